"""``python -m bench merging`` and ``refine``: on little data, that they measure what they say."""

import json

import pytest

from bench import cli, merging, refine
from bench.runner import Method, Result, Row


def a_row(name, *results):
    return Row(Method(name, "POLKClassifier"), [Result(figures) for figures in results])


def test_merging_measures_both_ways_and_judges_neither(tmp_path, capsys):
    out = tmp_path / "found.json"
    given = ["merging", "--quick", "--data", "multidist", "--runs", "1", "--json", str(out)]
    assert cli.main(given) == 0
    printed = capsys.readouterr().out
    for word in ("remove", "merge", "points against removal only", "percent more errors"):
        assert word in printed
    assert "multidist" in json.dumps(json.loads(out.read_text()))


def test_merging_compares_runs_of_the_same_seed():
    removing = a_row("remove", {"points": 100, "error": 5.0}, {"points": 50, "error": 6.0})
    merged = a_row("merge", {"points": 50, "error": 5.5}, {"points": 20, "error": 6.1})
    share, more = merging.promised("task", removing, merged)
    assert share.measured == pytest.approx(0.45)
    assert share.holds
    assert more.measured == pytest.approx(0.3)


@pytest.mark.parametrize("name", ["multidist", "usps"])
def test_refine_promises_errors_everywhere_and_seconds_on_mnist_alone(name):
    assert name not in refine.TIMED
    assert "mnist" in refine.TIMED
    moved, plain, bsgd = refine.methods_of(name, 16, 1)
    assert moved.settings["refine"]
    assert "refine" not in plain.settings
    assert bsgd.settings["maintenance"] == "merge"
    assert {method.settings["max_points"] for method in (moved, plain, bsgd)} == {16}


def test_refine_runs_on_little_data(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    given = ["refine", "--quick", "--data", "multidist", "--seeds", "1", "--out", str(tmp_path)]
    assert cli.main(given) == 0
    printed = capsys.readouterr().out
    assert "multidist, 16 points, error % above SVC's" in printed
    assert "seconds beyond BSGD's" not in printed
    assert (tmp_path / "points.png").exists()

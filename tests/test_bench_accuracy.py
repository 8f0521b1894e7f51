"""``python -m bench accuracy``: on tiny data, that it measures what it says."""

import pytest

from bench import accuracy
from bench.runner import Method, Result, Row


@pytest.mark.usefixtures("no_data")
def test_what_needs_no_data_is_measured_and_others_results_are_kept(run_bench, tmp_path):
    rows = ("onepass", "regression", "fit", "flipped", "cost")
    command = ("accuracy", "--quick", "--seeds", "1", "--out", str(tmp_path), "--rows", *rows)
    code, out, found = run_bench(*command)
    assert code == 0
    assert "Left out: The task usps cannot be run." in out
    assert [len(found["results"][row]) for row in rows] == [4, 1, 7, 2, 2]
    kept = sorted(path.name.rsplit("-", 2)[0] for path in (tmp_path / "runs").iterdir())
    assert kept == ["26-classes-svc", "digits-svc", "friedman1-kernelridge", "multidist-svc"] + [
        "quantiles-svc"
    ]


def test_medians_are_over_the_seeds_that_both_have():
    ours = Row(Method("ours", ""), [Result({"error": e}) for e in (1.0, 5.0, 3.0)])
    once = Row(Method("once", ""), [Result({"error": 1.0})])
    thrice = Row(Method("thrice", ""), [Result({"error": e}) for e in (0.0, 1.0, 1.0)])
    assert accuracy.beside(ours, once, accuracy.error_behind) == 2.0
    assert accuracy.beside(ours, thrice, accuracy.error_behind) == 2.0
    ours.results[:2] = [Result(diverged=True)] * 2
    assert accuracy.beside(ours, once, accuracy.error_behind) == float("inf")

"""``python -m bench streams``: on tiny streams, that the figures mean what they say."""

import numpy as np
import pytest
from bench_common import assert_missed

from bench import cli, machine, streams
from bench.runner import Method, Result, Row

pytest.importorskip("river")


def test_quick_streams(run_bench, tmp_path, capsys):
    arguments = ["streams", "--quick", "--streams", "bananas", "sea", "--out", str(tmp_path)]
    code, out, content = run_bench(*arguments)
    assert code == 0
    assert content["promises"] == []
    for rows in content["rows"].values():
        assert [row["method"] for row in rows] == [m.name for m in (*streams.OURS, *streams.OTHERS)]
        for row in rows:
            (found,) = row["results"]
            assert found["samples"] == streams.QUICK
            assert 50 < found["accuracy"] <= 100
            assert min(found["us"], found["cpu_us"], found["bytes"]) > 0
    assert "Bananas: 500 samples of 2 features in 2 classes, blocks of 10" in out
    kept = len(list((tmp_path / "runs").iterdir()))
    assert kept == 2 * len(streams.OTHERS)  # parsimon is always run


@pytest.mark.parametrize("name", streams.SOURCES)
def test_streams_are_the_same_every_time(name):
    stream, again = (streams.SOURCES[name].load(300, 3) for _ in range(2))
    assert stream.X.shape[0] == len(stream.y) == 300
    assert np.isfinite(stream.X).all()
    assert (stream.X == again.X).all()
    assert (stream.y == again.y).all()
    if streams.SOURCES[name].numbers:
        assert stream.y.std() > 0
    else:
        assert set(stream.y) == set(range(stream.y.max() + 1))


def test_streams_of_numbers_are_judged_by_their_errors(run_bench, tmp_path):
    arguments = ["streams", "--quick", "--streams", "chicks", "approval", "--only", "linear"]
    code, out, content = run_bench(*arguments, "--out", str(tmp_path))
    assert code == 0
    assert "ChickWeights: 500 samples of 3 features, blocks of 10" in out
    assert "mean absolute error" in out
    names = [*(m.name for m in streams.OURS_OF_NUMBERS), "river, linear"]
    for rows in content["rows"].values():
        assert [row["method"] for row in rows] == names
        assert all(0 < row["results"][0]["mae"] < np.inf for row in rows)


def test_the_best_of_river_is_what_counts():
    def row(name, accuracy, us):
        figures = {"accuracy": accuracy, "cpu_us": us}
        return Row(Method(name, ""), [Result(figures)])

    ours, arf, amf = (
        row("POLK", 90.0, 10.0),
        row("river, ARF", 89.0, 99.0),
        row("river, AMF", 88, 1),
    )
    assert_missed(
        streams.promises({"x": [ours, arf, amf]}), "time of a sample over that of river, ARF"
    )
    better = row("river, AMF", 91.0, 200.0)
    assert_missed(streams.promises({"x": [ours, arf, better]}), "accuracy, % (river, AMF)")
    assert_missed(streams.promises({"x": [ours, row("scikit-learn, Nystroem + SGD", 99, 1)]}), None)


def test_without_river(monkeypatch, capsys):
    monkeypatch.setattr(machine, "installed", lambda name: None)
    assert cli.main(["streams"]) == 2
    assert "pip install river" in capsys.readouterr().err

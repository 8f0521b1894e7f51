"""``python -m bench compress``: on few samples, that the figures mean what they say."""

import numpy as np
import pytest
from bench_common import assert_missed
from sklearn.neighbors import KernelDensity
from sklearn.svm import SVC, SVR

from bench import compress
from bench.runner import Method, Result, Row


def test_few_samples(run_bench, tmp_path, monkeypatch):
    monkeypatch.setattr(compress, "SECONDS", 0.01)
    arguments = ["compress", "--data", "digits", "--quick", "--out", str(tmp_path / "out")]
    code, out, content = run_bench(*arguments)
    assert code == 0
    assert "| Digits | POLKClassifier" in out
    (rows,) = content["rows"].values()
    assert [row["method"] for row in rows] == [
        method.name for method in compress.SOURCES["digits"].methods
    ]
    for row in rows:
        (found,) = row["results"]
        assert 0 < found["points"] <= found["points_before"] <= 266
        assert found["changed"] <= found["at_most"]
        assert min(found["us"], found["us_before"], found["bytes"], found["bytes_before"]) > 0
        assert (found["score"] is None) == (row["method"] == "OneClassSVM") == (not found["curve"])
        if found["curve"]:
            points, scores = zip(*found["curve"], strict=True)
            assert sorted(points, reverse=True) == [*points]
            assert scores[0] > scores[-1]
            assert abs(found["score"] - found["score_before"]) < 5
    assert (tmp_path / "out" / "compress.csv").is_file()
    # What was fitted is kept, but for what is parsimon's.
    kept = [path.parent for path in (tmp_path / "out").rglob("output.pkl")]
    assert len(kept) == 3


def test_what_changes_is_a_share_of_labels_or_relative_to_the_size():
    flat, other = np.zeros(4), np.array([0.0, 0.0, 0.0, 1.0])
    assert compress.changed(SVC(), flat, other) == 25
    assert compress.score(SVC(), other, flat) == 75
    before, after = np.array([1.0, -1.0]), np.array([1.1, -0.9])
    assert compress.changed(SVR(), before, after) == pytest.approx(10)
    assert compress.score(SVR(), after, before) == pytest.approx(99)
    assert compress.changed(KernelDensity(), 2 * np.ones(3), 3 * np.ones(3)) == pytest.approx(50)
    assert compress.score(KernelDensity(), before, after) is None


@pytest.mark.parametrize(
    ("points", "score", "complaint"), [(1200, 98.4, None), (1201, 98.4, "points"), (9, 98, "error")]
)
def test_promises(points, score, complaint):
    result = Result({"points_before": 16_122, "points": points, "score": score})
    found = {"MNIST": [Row(Method("SVC", SVC), [result])], "Digits": []}
    assert_missed(compress.promises(found), complaint)


@pytest.mark.usefixtures("no_data")
def test_data_that_are_not_here_are_left_out(run_bench, tmp_path):
    code, out, _ = run_bench("compress", "--data", "usps", "--out", str(tmp_path / "out"))
    assert code == 2
    assert "Left out: " in out

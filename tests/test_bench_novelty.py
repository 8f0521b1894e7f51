"""``python -m bench novelty``: on few samples, that the figures mean what they say."""

import pytest

from bench import novelty

METHODS = [method.name for method in novelty.METHODS]


def test_few_samples(run_bench):
    code, out, content = run_bench("novelty", "--data", "tumours", "--runs", "2")
    assert code == 0
    assert "Breast tumours: 178 samples of 30 features" in out
    (rows,) = content["rows"].values()
    assert [row["method"] for row in rows] == METHODS
    for row in rows:
        assert len(row["results"]) == 2
        for found in row["results"]:
            assert found["auc"] > 90
            assert found["found"] > found["false_alarms"]
            assert min(found["seconds"], found["predict_us"], found["bytes"]) > 0


def test_the_shuttle(run_bench):
    pytest.importorskip("river")
    arguments = ["novelty", "--data", "shuttle", "--samples", "300", "--runs", "1"]
    code, _, content = run_bench(*arguments)
    assert code == 0
    (rows,) = content["rows"].values()
    assert all(row["results"][0]["auc"] > 90 for row in rows)


@pytest.mark.usefixtures("no_data")
def test_data_that_are_not_here_are_left_out(run_bench):
    code, out, content = run_bench("novelty", "--data", "usps")
    assert code == 2
    assert content["rows"] == {}
    assert "Left out: USPS cannot be loaded" in out

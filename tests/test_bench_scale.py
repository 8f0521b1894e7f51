"""``python -m bench scale``: on little data, that it measures what it says."""

import json

import numpy as np
import pytest
from bench_common import assert_missed

from bench import faults, scale


def test_steps_and_simulation(run_bench):
    arguments = ("--only", "steps", "--task", "multidist", "--samples", "300", "--partitions", "3")
    code, out, result = run_bench("scale", *arguments)
    assert code == 0
    assert "Simulated, 100,000,000 samples" in out
    costs = result["costs"]
    assert costs["points"] > 5
    assert costs["rounds"] > 3
    # A gradient has points * classes numbers, a curvature half of points squared.
    assert costs["bytes_slope"] < costs["bytes_function"]
    workers = [line["workers"] for line in result["simulated"]]
    assert workers == [1, 10, 100, 1000]
    seconds = [line["seconds"] for line in result["simulated"]]
    assert seconds[0] > seconds[1]
    for line in result["simulated"]:
        assert 0 < line["busy"] <= 1
        phases = sum(line[name] for name in (*scale.PHASES, "driver"))
        assert line["seconds"] == pytest.approx(phases)


COSTS = scale.Costs(100, 10, *[1e-6] * 5, 0.1, 0.01, 1.0, 10_000, 1_000, 40_000)


def test_what_is_simulated():
    one, ten = (scale.simulate(COSTS, 10_000_000, count) for count in (1, 10))
    # No messages on one machine: samples, tasks (two each in 13 passes), three merges, three sums.
    expected = 10 * (4 + 10) + 2 * 4 * 1e-3 * 13 + 3 * (0.1 + 0.01) + 1.0
    assert one["seconds"] == pytest.approx(expected, rel=1e-3)
    assert one["seconds"] / 10 < ten["seconds"] < one["seconds"]


def test_verdicts():
    one = {"scaling": "one machine", "workers": 1, "error": 2.0, "points": 100}
    fine = [
        {"scaling": "strong", "workers": count, "error": 2.05, "points": 105, "seconds": 10 / count}
        for count in (1, 2)
    ]
    assert_missed(list(scale.judge([one, *fine])), None)
    for change, complaint in (
        ({"error": 2.2}, "error"),
        ({"points": 120}, "points"),
        ({"seconds": 8.0}, "times as fast"),
    ):
        assert_missed(list(scale.judge([one, fine[0], {**fine[1], **change}])), complaint)


def test_phases():
    history = [
        {"phase": "look", "seconds": 0.0},
        {"phase": "points", "seconds": 1.0},
        {"phase": "weights", "seconds": 3.0},
        {"phase": "weights", "seconds": 4.0},
    ]
    assert scale.phases(history, 10.0) == dict(zip(scale.TIMES, (1.0, 2.0, 7.0), strict=True))


def test_faults_are_counted():
    lines = [
        {"phase": "points", "in time": True, "apart": 1e-12, "seconds": 3.0},
        {"phase": "weights", "in time": False, "apart": 0.0, "seconds": 2.0},
        {"phase": "points", "in time": True, "apart": 0.0, "seconds": 5.0},
    ]
    assert faults.table_of_kills(lines).lines[0][:2] == ["points", "2"]
    assert_missed(list(faults.judge_kills(lines)), None)
    assert_missed(list(faults.judge_kills([{**lines[0], "apart": 1e-3}])), "changed")
    assert_missed(list(faults.judge_kills([lines[1]])), "before the end")
    assert faults.distance(np.ones(3), np.ones(2)) == np.inf
    history = [{"phase": "look", "seconds": 0.0}, {"phase": "points", "seconds": 1.0}]
    assert [faults.phase_at(history, moment) for moment in (0.5, 1.5)] == ["look", "points"]


def test_memory_is_judged():
    line = {"peak": 0.6, "limit": 1.0}
    assert_missed(list(faults.judge_memory(line)), None)
    assert_missed(list(faults.judge_memory({**line, "peak": 1.2})), "GB of memory")


@pytest.mark.slow
def test_faults_and_memory(run_bench):
    code, out, result = run_bench("scale", "--only", "faults", "--kills", "1")
    assert result["lines"][0]["apart"] <= faults.SAME
    assert "A worker of 4 killed, 1 times" in out
    arguments = ("--only", "memory", "--gigabytes", "0.02", "--features", "20")
    code, _, result = run_bench("scale", *arguments)
    assert code == 0
    assert result["lines"][0]["samples"] == 125_000


@pytest.mark.slow
def test_on_clusters(run_bench):
    arguments = ("--only", "clusters", "--task", "multidist", "--samples", "1000")
    code, _, result = run_bench("scale", *arguments, "--workers", "1", "2", "--partitions", "4")
    assert code == 0
    lines = result["lines"]
    kinds = [(line["scaling"], line["workers"], line["samples"]) for line in lines]
    assert kinds == [
        ("one machine", 1, 1000),
        ("strong", 1, 1000),
        ("strong", 2, 1000),
        ("weak", 1, 500),
        ("weak", 2, 1000),
    ]
    strong = [line for line in lines if line["scaling"] == "strong"]
    assert strong[0]["points"] == strong[1]["points"]
    assert strong[0]["error"] == strong[1]["error"]
    assert strong[0]["bytes"] < strong[1]["bytes"]
    assert json.dumps(lines)

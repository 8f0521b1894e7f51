"""``python -m bench``: on tiny sizes, that it measures what it says."""

import itertools
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bench import cli, limits, machine, speed

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def quick(monkeypatch):
    """Make rates quick to measure, if not precise."""
    best_seconds = machine.best_seconds
    monkeypatch.setattr(machine, "best_seconds", lambda call, _: best_seconds(call, 0))


def traced(**trace):
    return SimpleNamespace(
        trace_={name: np.array(values) for name, values in trace.items()}, t_=7, batch_size=30
    )


def test_floors_count_by_the_model_order_before_each_mini_batch():
    p, model = 7, traced(samples=[32, 64, 80], model_order=[10, 12, 11], active=[32, 20, 0])
    expected = 32 * 2 * 10 * p + 20 * 2 * 10**2 + 16 * 2 * 12 * p
    assert speed.polk_flops(model, p) == {"products": expected}
    model = traced(samples=[30, 60, 70], model_order=[104, 108, 100])
    assert speed.spppot_flops(model, 2) == {
        "products": 2 * (30 * 100 * 102 + 30 * 104 * 106 + 10 * 108 * 110),
        "matrix_vector": 2 * 100 * (100 + 104 + 108),
    }
    expected = {"matrix_vector": 7 * 2 * 20_000, "rank_one": 7 * 20_000}
    assert speed.newton_flops(model, 2) == expected


def test_gemm_rate_keeps_the_best_of_each_shape():
    rate = machine.GemmRate({(8, 8, 8): 1e30})
    rate.measure([(8, 8, 8), (16, 4, 2)], seconds=0)
    assert rate.best == 1e30
    assert 1e3 < rate.by_shape[16, 4, 2] < 1e13


def test_what_a_call_costs_is_taken_off_the_rates_of_vectors(monkeypatch):
    """1 us for a call, and 1, 2 and 4 us for the operations at size 10."""
    times = iter([2e-6, 3e-6, 5e-6, 1e-6, 1e-6, 1e-6])
    monkeypatch.setattr(machine, "best_seconds", lambda *_: next(times))
    rates = machine.vector_rates(10)
    assert_allclose(rates["matrix_vector"], 200 / 1e-6)
    assert_allclose(rates["rank_one"], 200 / 4e-6)


def test_the_quickest_burst_counts(monkeypatch):
    bursts, clock = iter([3.0, 2.0, 4.0]), iter(range(4))
    monkeypatch.setattr(machine, "timeit", lambda *_, **__: next(bursts))
    monkeypatch.setattr(machine.time, "perf_counter", lambda: next(clock))
    assert machine.best_seconds(lambda: sum(range(10**6)), 1.5) == 2.0


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "task",
    [
        "multidist",
        "synthetic",
        "spppot",
        "newton",
        pytest.param("mnist", marks=pytest.mark.data("mnist")),
    ],
)
def test_speed(run_bench, task):
    code, out, result = run_bench("speed", "--task", task, "--samples", "640", "--repeat", "3")
    assert code == 0
    assert "GFlop/s" in out
    assert "times the floor" in out
    assert result["task"] == task
    assert len(result["runs"]) == 3
    for each in result["runs"]:
        assert each["samples"] == (8 if task in ("spppot", "newton") else 1) * 640
        assert 0 < each["model_order"] <= each.get("largest_model_order", 640) <= 640
        flops = each["flops"]
        floor = sum(count / (1e9 * result["gflops"][name]) for name, count in flops.items())
        assert each["floor_seconds"] == pytest.approx(floor)
        assert each["ratio"] == pytest.approx(each["seconds"] / floor)
        assert each["cpu_ratio"] == pytest.approx(each["cpu_seconds"] / floor)
        best = sum(flops.values()) / (1e9 * result["gflops"]["best product"])
        assert each["gemm_ratio"] == pytest.approx(each["seconds"] / best)
    assert result["median"]["ratio"] == sorted(each["ratio"] for each in result["runs"])[1]
    if task not in ("spppot", "newton"):
        assert result["gflops"]["products"] == result["gflops"]["best product"]
    assert result["parsimon"]["simd"] in result["parsimon"]["simd_available"]
    assert result["versions"]["numpy"] == np.__version__
    assert all(library["num_threads"] == 1 for library in result["machine"]["blas"])


@pytest.mark.usefixtures("quick")
def test_speed_takes_the_settings_that_it_is_given(run_bench):
    options = ["--loss", "logistic", "--parsimony", "0.01", "--batch-size", "16"]
    _, _, result = run_bench("speed", "--task", "multidist", "--samples", "320", *options)
    expected = {"loss": "logistic", "parsimony": 0.01, "batch_size": 16, "epochs": 1}
    assert {**expected, "average": False}.items() <= result["settings"].items()


@pytest.mark.usefixtures("no_data")
@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("speed --task mnist", 2, "The task mnist cannot be run"),
        ("limits --repeat 1 --only training", 0, "Left out: The task mnist cannot be run"),
        ("compare --datasets usps --data . --out .", 2, "Left out: The task usps cannot be run"),
        ("intensity --data curry --samples 300", 2, "Left out: The task Curry's shots cannot"),
        ("intensity --data chicago --samples 300", 2, "There is nothing to run."),
        ("policy --task pendulum", 2, "pip install 'parsimon[gym]'"),
    ],
)
def test_what_is_not_here_is_a_message_and_no_traceback(
    command, code, message, capsys, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARSIMON_DATA", "")  # so that it is put back
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    assert cli.main(command.split()) == code
    assert message in "".join(capsys.readouterr())


@pytest.mark.usefixtures("quick")
def test_limits_tell_what_holds_and_what_does_not(run_bench):
    checks = ("--only", "small", "--only", "prediction")
    code, out, found = run_bench("limits", "--repeat", "1", *checks)
    results = found["results"]
    assert len(results) == 5
    assert all(np.isfinite(result["measured"]) and result["promised"] > 0 for result in results)
    # How fast this machine is just now is no test; that the verdicts are those of the figures is.
    for result in results:
        better = result["measured"] >= result["promised"]
        assert result["holds"] == (better if result["larger"] else not better)
    missed = sum(not result["holds"] for result in results)
    assert code == min(missed, 1)
    assert out.count("points") >= 3
    assert out.count("MISS") == missed


def test_a_long_stream_is_judged_by_its_first_and_last_tenth(monkeypatch):
    """A warm-up of 3 calls, then 20, of which two are a tenth."""
    seconds = [99.0] * 3 + [1.0, 2.0] + [50.0] * 16 + [1.0, 3.0]
    megabytes = [1] * 3 + [100, 100] + [300] * 17 + [110]
    clock = itertools.accumulate(x for each in seconds for x in (0.0, each))
    monkeypatch.setattr(limits, "STREAM", (2000, 300, 100))
    monkeypatch.setattr(machine.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(machine, "resident_bytes", lambda: 1e6 * megabytes.pop(0))
    time, memory = limits.long_stream(1)
    assert time.measured == pytest.approx(1.2 / 1.1)
    assert memory.measured == pytest.approx(1.1)


def test_command_line_runs_from_the_root():
    command = [sys.executable, "-W", "error", "-m", "bench", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "speed" in done.stdout


@pytest.mark.parametrize("samples", ["0", "-5", "many"])
def test_sizes_must_be_positive(samples, capsys):
    with pytest.raises(SystemExit):
        cli.main(["speed", "--task", "multidist", "--samples", samples])
    assert "--samples" in capsys.readouterr().err

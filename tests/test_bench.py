"""``python -m bench``: on tiny sizes, that it measures what it says."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from bench_common import assert_missed
from numpy.testing import assert_allclose

from bench import cli, machine, speed, stream

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def quick(monkeypatch):
    """Make rates quick to measure, if not precise."""
    best_seconds = machine.best_seconds
    monkeypatch.setattr(machine, "best_seconds", lambda call, _: best_seconds(call, 0))


def test_floors_count_by_the_model_order_before_each_mini_batch():
    p, samples, active = 7, np.array([32, 64, 80]), np.array([32, 20, 0])
    trace = {"samples": samples, "model_order": np.array([10, 12, 11]), "active": active}
    expected = 32 * 2 * 10 * p + 20 * 2 * 10**2 + 16 * 2 * 12 * p
    assert speed.polk_flops(trace, p) == {"products": expected}
    trace = {"samples": np.array([30, 60, 70]), "model_order": np.array([104, 108, 100])}
    assert speed.spppot_flops(trace, 2, 100) == {
        "products": 2 * (30 * 100 * 102 + 30 * 104 * 106 + 10 * 108 * 110),
        "matrix_vector": 2 * 100 * (100 + 104 + 108),
    }
    expected = {"matrix_vector": 7 * 2 * 20_000, "rank_one": 7 * 20_000}
    assert speed.newton_flops(7, 100) == expected


@pytest.mark.parametrize(("flops", "more"), [(speed.polk_flops, ()), (speed.spppot_flops, (9,))])
def test_floor_of_a_trace_that_lost_its_beginning(flops, more):
    trace = {name: np.array([320, 352]) for name in ("samples", "model_order", "active")}
    with pytest.raises(ValueError, match="only the latest 2 mini-batches"):
        flops(trace, 7, *more)


def test_gemm_rate_keeps_the_best_of_each_shape():
    rate = machine.GemmRate({(8, 8, 8): 1e30})
    rate.measure([(8, 8, 8), (16, 4, 2)], seconds=0)
    assert rate.best == 1e30
    assert 1e3 < rate.by_shape[16, 4, 2] < 1e13
    found = rate.as_dict()
    assert found["best_shape"] == [8, 8, 8]
    assert found["gflops_by_shape"].keys() == {"8x8x8", "16x4x2"}


def test_what_a_call_costs_is_taken_off_the_rates_of_vectors(monkeypatch):
    """1 us for a call, and 1, 2 and 4 us for the operations at size 10."""
    times = iter([1e-6, 1e-6, 1e-6, 2e-6, 3e-6, 5e-6])
    monkeypatch.setattr(machine, "best_seconds", lambda *_: next(times))
    rates = machine.vector_rates(10)
    assert_allclose(rates["matrix_vector"], 200 / 1e-6)
    assert_allclose(rates["rank_one"], 200 / 4e-6)


def test_the_quickest_burst_counts(monkeypatch):
    times, clock = iter([9.0, 1.0, 3.0, 2.0, 4.0]), iter(range(4))
    monkeypatch.setattr(machine, "time_of", lambda *_: next(times))
    monkeypatch.setattr(machine.time, "perf_counter", lambda: next(clock))
    assert machine.best_seconds(None, 2.5) == 2.0


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("task", ["multidist", "synthetic", "spppot", "newton"])
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
        best = sum(flops.values()) / (1e9 * result["gemm"]["gflops"])
        assert each["gemm_ratio"] == pytest.approx(each["seconds"] / best)
    assert result["median"]["ratio"] == sorted(each["ratio"] for each in result["runs"])[1]
    if task in ("multidist", "synthetic"):
        assert result["gflops"]["products"] == result["gemm"]["gflops"]
    assert result["parsimon"]["simd"] in result["parsimon"]["simd_available"]
    assert result["versions"]["numpy"] == np.__version__
    assert all(library["threads"] == 1 for library in result["machine"]["blas"])


@pytest.mark.usefixtures("quick")
def test_speed_takes_the_settings_that_it_is_given(run_bench):
    options = ["--loss", "logistic", "--parsimony", "0.01", "--batch-size", "16"]
    _, _, result = run_bench("speed", "--task", "multidist", "--samples", "320", *options)
    expected = {"loss": "logistic", "parsimony": 0.01, "batch_size": 16, "epochs": 1}
    assert {**expected, "average": False}.items() <= result["settings"].items()


def test_speed_draws_the_papers_number_of_samples():
    assert speed.toy(10_211, 0).X.shape == (10_211, 1)


@pytest.mark.usefixtures("quick")
@pytest.mark.data("mnist")
def test_speed_on_mnist(run_bench):
    code, out, _ = run_bench("speed", "--task", "mnist", "--samples", "640")
    assert code == 0
    assert "640 samples of 784 features" in out


@pytest.mark.usefixtures("no_data")
def test_mnist_that_is_not_here_is_a_message_and_no_traceback(capsys):
    assert cli.main(["speed", "--task", "mnist"]) == 2
    assert "The task mnist cannot be run" in capsys.readouterr().err
    assert cli.main(["limits", "--repeat", "1", "--only", "training"]) == 0
    assert "training: skipped. The task mnist cannot be run." in capsys.readouterr().out


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


def test_stream_shows_every_tenth(run_bench):
    # So short a stream proves nothing, and may fail.
    sizes = ("--samples", "4000", "--warm-up", "1000", "--block", "150")
    code, out, found = run_bench("stream", *sizes)
    assert code in (0, 1)
    assert "tenth 10" in out
    assert out.count("ok  ") + out.count("MISS") >= 2
    assert found["warm_up"]["samples"] == 1000
    assert [tenth["samples"] for tenth in found["tenths"]] == [400] * 10
    assert all(tenth["resident_mb"] > 1 for tenth in found["tenths"])


def stretch(*, seconds=1.0, cpu_seconds=1.0, quiet_us=1.0, resident_mb=100.0):
    figures = {"quiet_us": quiet_us, "clock_us": seconds, "resident_mb": resident_mb}
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, **figures}


@pytest.mark.parametrize(
    ("last", "complaint"),
    [
        ({"quiet_us": 1.1, "resident_mb": 101}, None),
        ({"quiet_us": 0.9, "resident_mb": 50}, None),
        ({"quiet_us": 1.3}, "last tenth over the first's, by undisturbed blocks: 1.3 (<= 1.2)"),
        ({"quiet_us": 0.7}, "the warm-up was too short"),
        ({"seconds": 1.3, "cpu_seconds": 1.3}, "by total time"),
        ({"seconds": 1.3}, None),  # someone else's work
        ({"resident_mb": 110}, "resident memory over that after the first tenth: 1.1 (<= 1.05)"),
    ],
)
def test_stream_is_judged_by_first_and_last_tenth(last, complaint):
    between = stretch(seconds=9, cpu_seconds=9, quiet_us=9, resident_mb=300)
    promises = stream.judge([stretch(), *[between] * 8, stretch(**last)])
    assert_missed(promises, complaint)


def test_command_line_runs_from_the_root():
    command = [sys.executable, "-W", "error", "-m", "bench", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "speed" in done.stdout
    assert "stream" in done.stdout


@pytest.mark.parametrize("samples", ["0", "-5", "many"])
def test_sizes_must_be_positive(samples, capsys):
    with pytest.raises(SystemExit):
        cli.main(["speed", "--task", "multidist", "--samples", samples])
    assert "--samples" in capsys.readouterr().err

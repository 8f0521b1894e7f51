"""``python -m bench``: on tiny sizes, that it measures what it says."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def quick(bench, monkeypatch):
    """Make the rate of matrix products quick to measure, if not precise."""
    measure = bench("machine").GemmRate.measure
    monkeypatch.setattr(
        bench("machine").GemmRate,
        "measure",
        lambda self, shapes, **_: measure(self, shapes, seconds=0),
    )


def test_floor_counts_flops_by_the_model_order_before_each_mini_batch(bench):
    trace = {
        "samples": np.array([32, 64, 80]),
        "model_order": np.array([10, 12, 11]),
        "active": np.array([32, 20, 0]),
    }
    p = 7
    expected = 32 * 2 * 10 * p + 20 * 2 * 10**2 + 16 * 2 * 12 * p
    assert bench("speed").floor_flops(trace, p, 80) == expected


def test_floor_of_a_trace_that_lost_its_beginning(bench):
    trace = {
        "samples": np.array([320, 352]),
        "model_order": np.array([10, 12]),
        "active": np.array([32, 20]),
    }
    with pytest.raises(ValueError, match="only the latest 2 mini-batches"):
        bench("speed").floor_flops(trace, 7, 352)


def test_gemm_rate_keeps_the_best_of_each_shape(bench):
    rate = bench("machine").GemmRate({(8, 8, 8): 1e30})
    rate.measure([(8, 8, 8), (16, 4, 2)], seconds=0)
    assert rate.best == 1e30
    assert rate.best_shape == (8, 8, 8)
    assert 1e3 < rate.by_shape[16, 4, 2] < 1e13
    assert rate.as_dict()["gflops_by_shape"].keys() == {"8x8x8", "16x4x2"}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("task", ["multidist", "synthetic"])
def test_speed(bench, task, tmp_path, capsys):
    path = tmp_path / "speed.json"
    arguments = ["speed", "--task", task, "--samples", "640", "--repeat", "3", "--json", str(path)]
    assert bench("cli").main(arguments) == 0
    out = capsys.readouterr().out
    assert "GFlop/s" in out
    assert "times the floor" in out

    result = json.loads(path.read_text())
    assert result["task"] == task
    assert len(result["runs"]) == 3
    for run in result["runs"]:
        assert run["samples"] == 640
        assert 0 < run["model_order"] <= run["largest_model_order"] <= 640
        assert run["floor_seconds"] == pytest.approx(
            run["floor_flops"] / (1e9 * result["gemm"]["gflops"])
        )
        assert run["ratio"] == pytest.approx(run["seconds"] / run["floor_seconds"])
        assert run["cpu_ratio"] == pytest.approx(run["cpu_seconds"] / run["floor_seconds"])
    assert result["median"]["ratio"] == sorted(run["ratio"] for run in result["runs"])[1]
    assert result["parsimon"]["simd"] in result["parsimon"]["simd_available"]
    assert result["versions"]["numpy"] == np.__version__
    assert all(library["threads"] == 1 for library in result["machine"]["blas"])


@pytest.mark.usefixtures("quick")
def test_speed_takes_the_settings_that_it_is_given(bench, tmp_path):
    path = tmp_path / "speed.json"
    options = ["--loss", "logistic", "--parsimony", "0.01", "--batch-size", "16"]
    arguments = ["speed", "--task", "multidist", "--samples", "320", *options, "--json", str(path)]
    assert bench("cli").main(arguments) == 0
    settings = json.loads(path.read_text())["settings"]
    assert settings["loss"] == "logistic"
    assert settings["parsimony"] == 0.01
    assert settings["batch_size"] == 16
    assert settings["epochs"] == 1
    assert settings["average"] is False


@pytest.mark.usefixtures("quick")
def test_limits_tell_what_holds_and_what_does_not(bench, tmp_path, capsys):
    path = tmp_path / "limits.json"
    options = ["--repeat", "1", "--only", "small", "--only", "prediction", "--json", str(path)]
    code = bench("cli").main(["limits", *options])
    results = json.loads(path.read_text())["results"]
    assert len(results) == 5
    assert all(np.isfinite(result["measured"]) and result["promised"] > 0 for result in results)
    # How fast this machine is just now is no test; that the verdicts are those of the figures is.
    for result in results:
        better = result["measured"] >= result["promised"]
        assert result["holds"] == (better if result["larger"] else not better)
    assert code == (0 if all(result["holds"] for result in results) else 1)
    assert capsys.readouterr().out.count("points") >= 3


@pytest.mark.usefixtures("quick")
def test_limits_without_mnist(bench, capsys, monkeypatch):
    def missing(*_):
        raise bench("cli").MissingDataError("There is no mnist.npz here.")

    monkeypatch.setattr(bench("limits"), "mnist", missing)
    assert bench("cli").main(["limits", "--repeat", "1", "--only", "training"]) == 0
    assert "training: skipped. There is no mnist.npz here." in capsys.readouterr().out


@pytest.mark.data("mnist")
@pytest.mark.usefixtures("quick")
def test_speed_on_mnist(bench, capsys):
    assert bench("cli").main(["speed", "--task", "mnist", "--samples", "640"]) == 0
    assert "640 samples of 784 features" in capsys.readouterr().out


def test_mnist_that_is_not_here_is_a_message_and_no_traceback(bench, monkeypatch, capsys):
    def absent(**_):
        raise FileNotFoundError("The data set 'mnist' is not here.")

    monkeypatch.setattr(bench("tasks").datasets, "load_mnist", absent)
    assert bench("cli").main(["speed", "--task", "mnist"]) == 2
    assert "The task mnist cannot be run" in capsys.readouterr().err


def test_stream_shows_every_tenth(bench, tmp_path, capsys):
    path = tmp_path / "stream.json"
    sizes = ["--samples", "4000", "--warm-up", "1000", "--block", "150"]
    # So short a stream proves nothing, and may fail.
    assert bench("cli").main(["stream", *sizes, "--json", str(path)]) in (0, 1)
    out = capsys.readouterr().out
    assert "tenth 10" in out
    assert "PASSED" in out or "FAILED" in out
    result = json.loads(path.read_text())
    assert result["warm_up"]["samples"] == 1000
    assert [tenth["samples"] for tenth in result["tenths"]] == [400] * 10
    assert all(tenth["resident_bytes"] > 1e6 for tenth in result["tenths"])


def stretch(bench, *, seconds=1.0, cpu_seconds=1.0, quiet=1.0, memory=1.0):
    return bench("stream").Stretch(1000, seconds, cpu_seconds, quiet, 15, round(memory * 10**8))


@pytest.mark.parametrize(
    ("last", "complaint"),
    [
        ({"quiet": 1.1, "memory": 1.01}, None),
        ({"quiet": 0.9, "memory": 0.5}, None),
        ({"quiet": 1.3}, "undisturbed blocks, a sample of the last tenth took 1.30 times as long"),
        ({"quiet": 0.7}, "the warm-up was too short"),
        ({"seconds": 1.3, "cpu_seconds": 1.3}, "By total time"),
        ({"seconds": 1.3}, None),  # someone else's work
        ({"memory": 1.1}, "memory grew by 10.0 %"),
    ],
)
def test_stream_is_judged_by_first_and_last_tenth(bench, last, complaint):
    between = stretch(bench, seconds=9, cpu_seconds=9, quiet=9, memory=3)
    tenths = [stretch(bench), *[between] * 8, stretch(bench, **last)]
    complaints = bench("stream").judge(tenths)
    verdict = bench("stream").verdict(tenths, complaints)
    if complaint is None:
        assert complaints == []
        assert verdict.startswith("PASSED")
    else:
        assert len(complaints) == 1
        assert complaint in complaints[0]
        assert verdict.startswith("FAILED")


def test_command_line_runs_from_the_root():
    command = [sys.executable, "-W", "error", "-m", "bench", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "speed" in done.stdout
    assert "stream" in done.stdout


@pytest.mark.parametrize("samples", ["0", "-5", "many"])
def test_sizes_must_be_positive(bench, samples, capsys):
    with pytest.raises(SystemExit):
        bench("cli").main(["speed", "--task", "multidist", "--samples", samples])
    assert "--samples" in capsys.readouterr().err

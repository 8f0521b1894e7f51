"""``python -m bench compare``: on tiny data, that the figures are there and mean what they say."""

import numpy as np
import pytest

from bench import cli, compare, machine, tasks
from bench.baselines import peers
from bench.baselines.scikit import Libsvm

FIGURES = ("seconds", "cpu_seconds", "predict_seconds", "error", "model_order", "bytes")


def table(out):
    return [line for line in out.splitlines() if line.startswith("| ")]


def test_quick_comparison(run_bench, tmp_path, monkeypatch):
    installed, hidden = machine.installed, {"river": None}
    monkeypatch.setattr(machine, "installed", lambda name: hidden.get(name, installed(name)))
    arguments = ["compare", "--quick", "--datasets", "multidist", "--out", str(tmp_path)]
    code, out, content = run_bench(*arguments)
    assert code == 0
    assert "Left out, because it is not installed: river, KNNClassifier: pip install river" in out
    assert content["peers"]["river"] is None
    assert content["parsimon"]["simd"]

    (found,) = content["data_sets"].values()
    rows = {row["method"]: row["results"][0] for row in found if row["results"]}
    (of,) = (each for each in compare.DATA_SETS if each.task == "multidist")
    assert {row["method"] for row in found} == {each.name for each in compare.methods(of, 1)}
    assert sum("pip install" in line for line in out.splitlines()) == len(found) - len(rows)
    assert len(table(out)) == len(rows) + 2
    assert (tmp_path / "compare.md").read_text().strip() in out
    for row in rows.values():
        assert all(np.isfinite(row[name]) and row[name] > 0 for name in FIGURES)
        assert row["error"] < 15
        assert row["samples_seen"] == row["samples"] == 1000
    points = {name: row["model_order"] for name, row in rows.items()}
    for name in ("BSGD", "Nystroem + SGD", "RBFSampler + SGD"):
        for size in ("small", "large"):
            assert points[f"{name}, {size}"] == points[f"POLK, {size}"]
    assert points["POLK, small"] < points["POLK, large"] < points["SVC"]

    code, again, _ = run_bench(*arguments)
    assert code == 0
    assert f"{len(rows)} of {len(rows)} rows are kept from an earlier run." in again
    assert table(again) == table(out)


@pytest.mark.usefixtures("no_data")
def test_a_data_set_that_is_not_here_is_left_out(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PARSIMON_DATA", "")  # so that it is put back
    arguments = ["--datasets", "usps", "--data", str(tmp_path), "--out", str(tmp_path)]
    assert cli.main(["compare", *arguments]) == 2
    assert "Left out: The task usps cannot be run." in capsys.readouterr().out


def test_slow_predictions_are_made_for_the_first_samples_only(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(machine.time, "perf_counter", lambda: clock[0])

    class Slow:
        def predict(self, X):
            clock[0] += 1e-4 * len(X)
            return X[:, 0]

    X = np.arange(1000.0)[:, None]
    predicted, times = compare.predict(Slow(), X, 0.02)
    assert 199 <= len(predicted) <= 200
    assert (predicted == X[: len(predicted), 0]).all()
    assert len(times) == 3
    assert len(compare.predict(Slow(), X, float("inf"))[0]) == 1000


@pytest.mark.parametrize(
    ("name", "module", "highest_error"),
    [
        ("IntelSvm", "sklearnex", 8),
        ("VowpalSvm", "vowpalwabbit", 8),
        ("RiverNeighbors", "river", 8),
        ("RiverFourier", "river", 50),
    ],
)
def test_peers(name, module, highest_error):
    pytest.importorskip(module)
    task = tasks.multidist(600, 0)
    X_test, y_test = task.X_test[:300], task.y_test[:300]
    points = [200] if module == "river" else []
    model = getattr(peers, name)(0.6**0.5, *points).fit(task.X, task.y)
    predicted = model.predict(X_test)
    assert 100 * (predicted != y_test).mean() < highest_error
    assert 0 < model.model_order_ <= 600 * 5
    assert compare.saved_bytes(model) > 100
    if name == "IntelSvm":
        libsvm = Libsvm(0.6**0.5).fit(task.X, task.y)
        assert (libsvm.predict(X_test) == predicted).mean() > 0.99
    else:
        model.set_params(seconds=0).fit(task.X, task.y)
        assert model.samples_seen_ == 1

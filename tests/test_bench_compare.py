"""``python -m bench compare`` and ``accuracy``: on tiny data, that figures mean what they say."""

from operator import sub

import numpy as np
import pytest

from bench import accuracy, compare, machine, tasks
from bench.baselines import peers
from bench.baselines.peers import Libsvm
from bench.runner import Method, Result, Row

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


@pytest.mark.usefixtures("no_data")
def test_what_needs_no_data_is_measured_and_others_results_are_kept(run_bench, tmp_path):
    rows = ("onepass", "regression", "fit", "epochs", "flipped", "cost")
    command = ("accuracy", "--quick", "--seeds", "1", "--out", str(tmp_path), "--rows", *rows)
    code, out, found = run_bench(*command)
    assert code == 0
    assert "Left out: The task usps cannot be run." in out
    assert [len(found["results"][row]) for row in rows] == [4, 1, 7, 3, 2, 1]
    kept = sorted(path.name.rsplit("-", 2)[0] for path in (tmp_path / "runs").iterdir())
    names = ["26-classes-svc", "digits-svc", "friedman1-kernelridge", "multidist-svc"]
    assert kept == [*names, "quantiles-svc"]


def test_medians_are_over_the_seeds_and_infinite_where_most_diverge():
    def row(*errors):
        results = [Result({} if e is None else {"error": e}, diverged=e is None) for e in errors]
        return Row(Method("name", ""), results)

    for theirs in (row(1.0), row(0.0, 1.0, 1.0)):
        assert accuracy.beside(row(1.0, 5.0, 3.0), theirs, "error", sub) == 2.0
        assert accuracy.beside(row(None, None, 3.0), theirs, "error", sub) == float("inf")

"""``python -m bench compare``: on tiny data, that the figures are there and mean what they say."""

import json

import numpy as np
import pytest

FIGURES = ("seconds", "cpu_seconds", "predict_seconds", "error", "model_order", "bytes")


@pytest.fixture
def without_river(bench, monkeypatch):
    machine = bench("machine")
    installed, hidden = machine.installed, {"river": None}
    monkeypatch.setattr(machine, "installed", lambda name: hidden.get(name, installed(name)))


@pytest.mark.usefixtures("without_river")
def test_quick_comparison(bench, tmp_path, capsys):
    file = tmp_path / "compare.json"
    arguments = ["compare", "--quick", "--datasets", "multidist", "--out", str(tmp_path)]
    assert bench("cli").main([*arguments, "--json", str(file)]) == 0
    out = capsys.readouterr().out
    assert "Left out, because it is not installed: river, KNNClassifier: pip install river" in out

    content = json.loads(file.read_text())
    assert content["peers"]["river"] is None
    assert content["parsimon"]["simd"]
    (found,) = content["data_sets"].values()
    rows = {row["method"]: row["results"][0] for row in found if row["results"]}
    compare = bench("compare")
    (of,) = (each for each in compare.DATA_SETS if each.task == "multidist")
    assert {row["method"] for row in found} == {each.name for each in compare.methods(of, 1)}
    assert sum("pip install" in line for line in out.splitlines()) == len(found) - len(rows)
    table = [line for line in out.splitlines() if line.startswith("| ")]
    assert len(table) == len(rows) + 2
    assert (tmp_path / "compare.md").read_text().strip() in out
    for row in rows.values():
        assert all(np.isfinite(row[name]) and row[name] > 0 for name in FIGURES)
        assert row["error"] < 15
        assert row["samples_seen"] == row["samples"] == 1000
    for size in ("small", "large"):
        points = rows[f"POLK, {size}"]["model_order"]
        for name in ("BSGD", "Nystroem + SGD", "RBFSampler + SGD"):
            assert rows[f"{name}, {size}"]["model_order"] == points
    small, large, svc = (
        rows[name]["model_order"] for name in ("POLK, small", "POLK, large", "SVC")
    )
    assert small < large < svc

    assert bench("cli").main(arguments) == 0
    again = capsys.readouterr().out
    assert f"{len(rows)} of {len(rows)} rows are kept from an earlier run." in again
    assert [line for line in again.splitlines() if line.startswith("| ")] == table


def test_a_data_set_that_is_not_here_is_left_out(bench, monkeypatch, tmp_path, capsys):
    def absent(**_):
        raise FileNotFoundError("The data set 'usps' is not here.")

    monkeypatch.setenv("PARSIMON_DATA", "")  # so that it is put back
    monkeypatch.setattr(bench("tasks").datasets, "load_usps", absent)
    arguments = ["--datasets", "usps", "--data", str(tmp_path), "--out", str(tmp_path)]
    assert bench("cli").main(["compare", *arguments]) == 2
    assert "Left out: The task usps cannot be run." in capsys.readouterr().out


def test_slow_predictions_are_made_for_the_first_samples_only(bench, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(bench("machine").time, "perf_counter", lambda: clock[0])

    class Slow:
        def predict(self, X):
            clock[0] += 1e-4 * len(X)
            return X[:, 0]

    X = np.arange(1000.0)[:, None]
    predicted, times = bench("compare").predict(Slow(), X, 0.02)
    assert 199 <= len(predicted) <= 200
    assert (predicted == X[: len(predicted), 0]).all()
    assert len(times) == 3
    assert len(bench("compare").predict(Slow(), X, float("inf"))[0]) == 1000


@pytest.mark.parametrize(
    ("name", "module", "highest_error"),
    [
        ("IntelSvm", "sklearnex", 8),
        ("VowpalSvm", "vowpalwabbit", 8),
        ("RiverNeighbors", "river", 8),
        ("RiverFourier", "river", 50),
    ],
)
def test_peers(bench, name, module, highest_error):
    pytest.importorskip(module)
    task = bench("tasks").multidist(600, 0)
    X_test, y_test = task.X_test[:300], task.y_test[:300]
    kind = getattr(bench("baselines.peers"), name)
    model = kind(0.6**0.5, *([200] if module == "river" else [])).fit(task.X, task.y)
    predicted = model.predict(X_test)
    assert 100 * (predicted != y_test).mean() < highest_error
    assert 0 < model.model_order_ <= 600 * 5
    assert bench("compare").saved_bytes(model) > 100
    if name == "IntelSvm":
        libsvm = bench("baselines.scikit").Libsvm(0.6**0.5).fit(task.X, task.y)
        assert (libsvm.predict(X_test) == predicted).mean() > 0.99
    else:
        model.set_params(seconds=0).fit(task.X, task.y)
        assert model.samples_seen_ == 1

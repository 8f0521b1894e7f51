"""``python -m bench compare``: on tiny data, that the figures are there and mean what they say."""

import json

import numpy as np
import pytest

FIGURES = ("train_seconds", "train_cpu_seconds", "predict_seconds", "error", "points", "bytes")


@pytest.fixture
def without_river(bench, monkeypatch):
    installed = bench("compare").installed
    hidden = {"river": None}
    monkeypatch.setattr(
        bench("compare"), "installed", lambda name: hidden.get(name, installed(name))
    )


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
    (found,) = content["data_sets"]
    rows = {row["method"]: row for row in found["rows"]}
    settings = bench("compare_settings")
    (of,) = (each for each in settings.DATA_SETS if each.task == "multidist")
    planned = {row.method.name for row in settings.rows(of.shortened)}
    absent = {sentence.split(": pip")[0] for sentence in found["left_out"]}
    assert rows.keys() | absent == planned
    assert not rows.keys() & absent
    table = [line for line in out.splitlines() if line.startswith("| ")]
    assert len(table) == len(rows) + 2
    assert (tmp_path / "compare.md").read_text().strip() in out
    for row in rows.values():
        assert all(np.isfinite(row[name]) and row[name] > 0 for name in FIGURES)
        assert row["error"] < 15
        assert row["samples_seen"] == row["samples"] == 1000
    for size in ("small", "large"):
        points = rows[f"POLK, {size}"]["points"]
        for name in ("BSGD", "Nystroem + SGD", "RBFSampler + SGD"):
            assert rows[f"{name}, {size}"]["points"] == points
    assert rows["POLK, small"]["points"] < rows["POLK, large"]["points"] < rows["SVC"]["points"]

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
    ("kind", "module", "highest_error"),
    [
        ("intel", "sklearnex", 8),
        ("vowpal", "vowpalwabbit", 8),
        ("river neighbors", "river", 8),
        ("river fourier", "river", 50),
    ],
)
def test_peers(bench, kind, module, highest_error):
    pytest.importorskip(module)
    task = bench("tasks").multidist(600, 0)
    X_test, y_test = task.X_test[:300], task.y_test[:300]
    settings = {"points": 200} if module == "river" else {}
    method = bench("classification").Method("peer", kind, "hinge", settings)
    model = method.make(task, 0).fit(task.X, task.y)
    predicted = model.predict(X_test)
    assert 100 * (predicted != y_test).mean() < highest_error
    assert 0 < model.model_order_ <= 600 * 5
    assert bench("compare").saved_bytes(model) > 100
    if kind == "intel":
        libsvm = bench("classification").Method("SVC", "libsvm", "hinge").make(task, 0)
        assert (libsvm.fit(task.X, task.y).predict(X_test) == predicted).mean() > 0.99
    else:
        model.set_params(seconds=0).fit(task.X, task.y)
        assert model.samples_seen_ == 1

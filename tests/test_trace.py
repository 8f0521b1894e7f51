"""`trace_` stays small, however long a stream is."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from polk_common import state

import parsimon
from parsimon import COLKRegressor, POLKClassifier, POLKRegressor, SPPPOTIntensity

GIVEN = {"kernel": parsimon.kernels.Gaussian(0.5), "learning_rate": 0.1, "budget": 0.1}


def stream(count, seed=0):
    X = np.random.default_rng(seed).uniform(size=(count, 1))
    return X, np.sin(6 * X[:, 0])


def test_a_long_stream_has_a_few_thousand_records():
    X, y = stream(30_000)
    model = POLKRegressor(batch_size=1, solver="sgd", max_points=5, **GIVEN)
    sizes = []
    for start in range(0, 30_000, 1000):
        model.partial_fit(X[start : start + 1000], y[start : start + 1000])
        sizes.append(len(model.trace_["samples"]))
    assert max(sizes) <= 4096
    assert sizes[:4] == [1000, 2000, 3000, 4000]
    trace = model.trace_
    assert trace["samples"][-1] == 30_000
    assert_array_equal(np.diff(trace["samples"][:-1]), 8)
    assert trace["active"].sum() == 30_000
    assert {len(column) for column in trace.values()} == {sizes[-1]}
    assert len(model._model.to_archive().to_bytes()) < 250_000


def test_a_record_of_several_mini_batches_has_their_mean_loss_and_largest_error():
    X, y = stream(5000)
    given = {"solver": "sgd", "half_life": None, **GIVEN}
    fine = POLKRegressor(batch_size=1, **given)
    losses, errors = [], []
    for start in range(0, 5000, 500):
        fine.partial_fit(X[start : start + 500], y[start : start + 500])
        if start < 4000:
            losses, errors = fine.trace_["loss"], fine.trace_["compression_error"]
    assert len(losses) == 4000
    trace = fine.trace_
    assert_array_equal(trace["samples"], np.arange(2, 5001, 2))
    np.testing.assert_allclose(trace["loss"][:2000], losses.reshape(-1, 2).mean(axis=1), rtol=1e-14)
    assert_array_equal(trace["compression_error"][:2000], errors.reshape(-1, 2).max(axis=1))


@pytest.mark.parametrize("cls", [POLKRegressor, COLKRegressor])
def test_long_streams_are_saved_and_go_on_bit_for_bit(cls, tmp_path):
    X, y = stream(9101)
    given = GIVEN | ({"solver": "sgd"} if cls is POLKRegressor else {})
    model = cls(batch_size=2, max_points=5, **given)
    for _ in range(2):
        model.partial_fit(X, y)
    assert len(model.trace_["loss"]) < 4097
    model.save(tmp_path / "model")
    again = parsimon.load(tmp_path / "model")
    assert state(again) == state(model)
    model.partial_fit(X, y)
    again.partial_fit(X, y)
    assert state(again) == state(model)


def test_files_with_a_record_for_each_of_many_mini_batches_can_be_read():
    X, y = stream(100)
    archive = parsimon._io.to_archive(POLKRegressor(solver="sgd", **GIVEN).partial_fit(X, y))
    rows = np.ones((10_000, 6))
    rows[:, 0] = np.arange(1, 10_001)
    archive["trace"] = rows
    trace = parsimon._io._from_archive(archive, None).trace_
    assert_array_equal(trace["samples"], np.append(np.arange(4, 10_001, 4), []))
    archive["trace.stride"] = np.array([1, 1])
    with pytest.raises(ValueError, match="trace in the model file makes no sense"):
        parsimon._io._from_archive(archive, None)


def test_measurements_of_a_density_are_found_in_records_of_several_mini_batches():
    X, _ = stream(4400)
    model = SPPPOTIntensity(solver="sgd", batch_size=1, domain=(0, 1), grid_size=8, bandwidth=0.3)
    model.partial_fit(X, validation=X[:50])
    trace = model.trace_
    assert len(trace["samples"]) == 2200
    measured = np.isfinite(trace["validation_nll"])
    assert measured.sum() == 4400 / 16
    assert measured[-1]


def test_the_progress_bar_shows_losses_errors_points_and_phases(capsys, monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.setenv("COLUMNS", "200")  # a bar is cut where the screen ends
    X, y = stream(300)
    model = POLKRegressor(verbose=1, epochs=1).fit(X, y)
    shown = capsys.readouterr().err
    assert f"model_order={model.model_order_}" in shown
    assert "loss=" in shown
    assert "compression_error=" in shown
    assert "POLKRegressor: solving for the weights" in shown
    POLKClassifier(verbose=1, refit=False, epochs=1).fit(X, y > 0)
    assert "solving" not in capsys.readouterr().err

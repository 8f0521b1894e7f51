"""drift_: where a stream was found to have changed, in the model, its trace and its file."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import parsimon
from parsimon import POLKClassifier, POLKRegressor


def streamed(model, changes):
    random = np.random.RandomState(0)
    X = random.uniform(-1, 1, size=(6000, 2))
    y = np.where(X[:, 0] > 0, 1, -1)
    for at in changes:
        y[at:] *= -1
    for start in range(0, 6000, 50):
        model.partial_fit(X[start : start + 50], y[start : start + 50])
    return model


@pytest.mark.parametrize(
    "model",
    [POLKClassifier(), POLKClassifier("logistic", solver="sgd"), POLKRegressor()],
    ids=["classifier", "steps", "regressor"],
)
def test_a_change_is_noted_where_it_is_found(model, tmp_path):
    streamed(model, [3000])
    assert 3000 < model.drift_[0] <= 3300
    trace = model.trace_
    assert trace["drift"].sum() == len(model.drift_)
    assert len(trace["drift"]) == len(trace["samples"])
    first = trace["samples"][np.flatnonzero(trace["drift"])[0]]
    assert model.drift_[0] <= first < model.drift_[0] + 50
    model.save(tmp_path / "model")
    assert_array_equal(parsimon.load(tmp_path / "model").drift_, model.drift_)


def test_a_stream_that_does_not_change_has_no_events():
    model = streamed(POLKClassifier(), [])
    assert len(model.drift_) == 0
    assert not model.trace_["drift"].any()
    assert len(streamed(POLKClassifier(half_life=500), [3000]).drift_) == 0  # nobody looks for any

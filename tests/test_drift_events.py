"""drift_: where a stream was found to have changed, in the model, its trace and its file."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone

import parsimon
from parsimon import (
    BSGDClassifier,
    COLKClassifier,
    POLKClassifier,
    POLKOneClass,
    POLKRegressor,
    SPPPOTClassifier,
    SPPPOTIntensity,
)


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


class Alarm:
    """Says that the losses have changed after so many of them, and again after as many."""

    def __init__(self, at):
        self.at = at
        self.seen = []
        self.drift_detected = False

    def update(self, loss):
        self.seen.append(loss)
        self.drift_detected = len(self.seen) % self.at == 0


TOLD = {
    "classifier": POLKClassifier(),
    "steps": POLKClassifier("logistic", solver="sgd"),
    "regressor": POLKRegressor(),
    "BSGD": BSGDClassifier(random_state=0),
    "COLK": COLKClassifier(random_state=0),
}


@pytest.mark.parametrize("name", TOLD)
def test_a_detector_that_was_brought_along_is_shown_losses_and_believed(name):
    given = Alarm(2500)
    model = streamed(clone(TOLD[name]).set_params(half_life=given), [3000])
    # Of single mini-batches: an alarm counts from the end of its own.
    assert_array_equal(model.drift_, [2500, 5000])
    assert given.seen == []  # a parameter stays as it was
    seen = np.array(model._detector_.seen)
    assert len(seen) == 6000
    if name != "regressor":
        assert set(seen) <= {0.0, 1.0}
    assert seen[2000:3000].mean() < seen[3000:3100].mean()
    assert clone(model).half_life.seen == []
    again = pickle.loads(pickle.dumps(model))
    X, y = np.ones((50, 2)), np.ones(50)
    for each in (model, again):
        each.partial_fit(X, y)
    assert_array_equal(again.weights_, model.weights_)
    assert len(again._detector_.seen) == len(model._detector_.seen) == 6050


@pytest.mark.parametrize("model", [POLKClassifier(), POLKRegressor(), POLKOneClass()], ids=str)
def test_nothing_is_found_without_a_word_of_the_detector(model):
    model = streamed(clone(model).set_params(half_life=Alarm(10**6)), [3000])
    assert len(model.drift_) == 0


def test_it_forgets_as_after_its_own_alarm():
    random = np.random.RandomState(0)
    X_test = random.uniform(-1, 1, size=(2000, 2))
    y_test = np.where(X_test[:, 0] > 0, -1, 1)
    right = {
        name: streamed(POLKClassifier(half_life=half_life), [5500]).score(X_test, y_test)
        for name, half_life in {"own": "auto", "told": Alarm(5700), "never": None}.items()
    }
    assert right["told"] > 0.95
    assert right["told"] > right["own"] - 0.02
    assert right["never"] < 0.5


@pytest.mark.parametrize("name", ["ADWIN", "PageHinkley", "KSWIN"])
def test_detectors_of_river(name):
    drift = pytest.importorskip("river.drift")
    given = {"KSWIN": {"seed": 0}}.get(name, {})
    model = streamed(POLKClassifier(half_life=getattr(drift, name)(**given)), [3000])
    if name != "KSWIN":
        assert any(3000 < at < 3300 for at in model.drift_)
    assert clone(model).partial_fit(np.ones((2, 2)), [0, 1]).t_ == 2


@pytest.mark.parametrize("half_life", [Alarm, {"a": 1}, "often", object(), -1, [3]])
@pytest.mark.parametrize("model", [POLKClassifier(), POLKRegressor(), POLKOneClass()], ids=str)
def test_what_is_no_detector_is_refused(model, half_life):
    with pytest.raises(ValueError, match=r"half_life must be .*update\(loss\) and drift_detected"):
        clone(model).set_params(half_life=half_life).partial_fit([[1.0], [2.0]], [1, 2])


def test_densities_and_policies_watch_no_losses():
    for model in (SPPPOTIntensity(domain=(0, 1)), SPPPOTClassifier()):
        with pytest.raises(ValueError, match="half_life must be"):
            model.set_params(half_life=Alarm(5)).partial_fit([[0.1], [0.2]], [1, 2])


def test_a_file_keeps_no_detector(tmp_path):
    model = streamed(POLKClassifier(half_life=Alarm(2500)), [3000])
    with pytest.raises(ValueError, match=r"half_life is .*Alarm.*training=False"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
    model.save(tmp_path / "model", training=False)
    again, X = parsimon.load(tmp_path / "model"), np.random.RandomState(1).normal(size=(50, 2))
    assert again.half_life is None
    assert_array_equal(again.predict(X), model.predict(X))
    assert model.half_life is not None


def test_novelties_have_changes_as_well():
    random = np.random.RandomState(0)
    model = POLKOneClass()
    for i in range(200):
        model.partial_fit(random.normal(size=(30, 2)) * 0.3 + (3.0 if i >= 100 else 0.0))
    assert 3000 < model.drift_[0] <= 3600


def test_a_linear_model_of_many_features_is_told_as_well():
    random = np.random.RandomState(0)
    X = sparse.random(400, 2500, density=0.01, random_state=0, format="csr")
    y = (X @ random.normal(size=2500) > 0).astype(int)
    model = POLKClassifier(kernel="linear", half_life=Alarm(150))
    for start in range(0, 400, 50):
        model.partial_fit(X[start : start + 50], y[start : start + 50])
    assert_array_equal(model.drift_, [150, 300])
    assert len(model._detector_.seen) == 400
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.drift_, model.drift_)
    for each in (model, again):
        each.partial_fit(X, y)
    assert_array_equal(again.predict(X), model.predict(X))

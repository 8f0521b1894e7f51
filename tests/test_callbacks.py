"""scikit-learn's callbacks: what they are told of fit, that they can end it, and no more."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from polk_common import curve, task
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import parsimon
from parsimon import (
    BSGDClassifier,
    COLKRegressor,
    POLKClassifier,
    POLKOneClass,
    POLKRegressor,
    SPPPOTClassifier,
)

callback = pytest.importorskip(
    "sklearn.callback", reason="scikit-learn has callbacks from 1.9 on; this one is older."
)

ESTIMATORS = [
    POLKClassifier(epochs=3, random_state=0),
    POLKClassifier("logistic", solver="sgd", epochs=3, random_state=0),
    POLKRegressor(epochs=3, random_state=0),
    BSGDClassifier(max_points=20, epochs=2, random_state=0),
    COLKRegressor("cvar", epochs=2, random_state=0),
    SPPPOTClassifier(epochs=2, random_state=0),
]
every = pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)


def data(estimator):
    return task() if hasattr(estimator, "decision_function") else curve()


def score_of(estimator):
    return "accuracy" if hasattr(estimator, "decision_function") else "r2"


def monitor_of(estimator):
    return callback.ScoringMonitor(scoring=score_of(estimator))


class Listener:
    """Note what is said; end the epochs, or fail, after some of them."""

    def __init__(self, stop_after=None, fail_after=None):
        self.said, self.stop_after, self.fail_after = [], stop_after, fail_after

    def setup(self, estimator, context):
        self.said.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.said.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context):
        self.said.append(f"end {context.task_name}")
        epochs = self.said.count("end epoch")
        if epochs == self.fail_after:
            raise RuntimeError("as it was told to")
        return epochs == self.stop_after

    def teardown(self, estimator, context):
        self.said.append("teardown")


@every
def test_a_score_is_monitored_epoch_by_epoch(estimator):
    monitor = monitor_of(estimator)
    model = clone(estimator).set_callbacks(monitor)
    X, y = data(model)
    model.fit(X, y)
    logged = monitor.get_logs().data
    assert [row["task_name"] for row in logged] == ["fit"] + ["epoch"] * model.epochs_
    fit, *epochs = [row[score_of(model)] for row in logged]
    assert fit == model.score(X, y)
    assert np.isfinite(epochs).all()


@pytest.mark.parametrize("learn", [POLKClassifier, POLKRegressor])
def test_with_steps_alone_the_last_epoch_is_what_fit_returns(learn):
    model = learn(solver="sgd", refit=False, epochs=3, random_state=0)
    monitor = monitor_of(model)
    model.set_callbacks(monitor).fit(*data(model))
    scores = [row[score_of(model)] for row in monitor.get_logs().data]
    assert scores[0] == scores[-1]
    assert scores[1] != scores[-1]


@every
def test_whoever_listens_changes_nothing(estimator):
    X, y = data(estimator)
    plain = clone(estimator).fit(X, y)
    heard = clone(estimator).set_callbacks(monitor_of(estimator)).fit(X, y)
    assert_array_equal(heard.dictionary_, plain.dictionary_)
    assert_array_equal(heard.weights_, plain.weights_)
    assert {name for name in vars(heard) if name not in vars(plain)} == {"_skl_callbacks"}


def test_weights_of_samples_count_in_the_score():
    X, y = curve()
    weight = np.linspace(0, 1, len(y))
    monitor = callback.ScoringMonitor(scoring="r2")
    model = POLKRegressor(epochs=1).set_callbacks(monitor).fit(X, y, sample_weight=weight)
    assert monitor.get_logs().data[0]["r2"] == model.score(X, y, weight)


def test_a_callback_can_end_the_epochs():
    X, y = curve()
    listener = Listener(stop_after=2)
    options = {"solver": "sgd", "refit": False, "random_state": 0}
    model = POLKRegressor(epochs=5, **options).set_callbacks(listener).fit(X, y)
    assert (model.epochs_, model.t_) == (2, 2 * len(y))
    assert_array_equal(model.predict(X), POLKRegressor(epochs=2, **options).fit(X, y).predict(X))
    epoch = ["begin epoch", "end epoch"]
    assert listener.said == ["setup", "begin fit", *epoch, *epoch, "end fit", "teardown"]


def test_a_callback_that_fails_is_let_go_and_changes_nothing():
    X, y = task()
    model = POLKClassifier(epochs=3, random_state=0).fit(X, y)
    before = dict(vars(model))
    listener = Listener(fail_after=1)
    with pytest.raises(RuntimeError, match="as it was told to"):
        model.set_callbacks(listener).fit(X, 1 - y)
    assert listener.said[-1] == "teardown"
    assert vars(model).keys() == {*before, "_skl_callbacks"}
    assert model._model is before["_model"]


def test_what_cannot_be_learned_from_is_refused_before_anybody_is_told():
    listener = Listener()
    with pytest.raises(ValueError, match="NaN"):
        POLKClassifier().set_callbacks(listener).fit([[np.nan], [1.0]], [0, 1])
    assert listener.said == []


def test_novelty_detectors_have_callbacks_too():
    listener = Listener()
    POLKOneClass(epochs=1).set_callbacks(listener).fit(curve()[0])
    assert listener.said[-2:] == ["end fit", "teardown"]


def test_a_search_hands_its_callbacks_on():
    X, y = curve()
    monitor = callback.ScoringMonitor(scoring="r2")
    model = POLKRegressor(epochs=1).set_callbacks(monitor)
    GridSearchCV(model, {"regularization": [0.1, 1.0]}, cv=2).fit(X, y)
    names = {row["task_name"] for row in monitor.get_logs().data}
    assert "epoch" in names


def test_files_and_pickles_of_a_model_with_callbacks(tmp_path):
    X, y = curve()
    model = POLKRegressor(epochs=1).set_callbacks(Listener()).fit(X, y)
    model.save(tmp_path / "model")
    for again in (parsimon.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert_array_equal(again.predict(X), model.predict(X))

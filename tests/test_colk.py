"""How COLKRegressor, COLKClassifier and CompositionalLearner behave."""

import threading
import warnings

import numpy as np
import pytest
from colk_common import GIVEN, RISKS, every_risk, outliers
from numpy.testing import assert_allclose, assert_array_equal
from polk_common import assert_refused, curve, state, task
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from parsimon import (
    COLKClassifier,
    COLKRegressor,
    CompositionalLearner,
    PolicyEvaluator,
    kernels,
)
from parsimon.schedules import AdaptiveBudget, PowerLaw

POLK_COLUMNS = ["samples", "model_order", "active", "loss", "compression_error", "budget"]


# -- what is learned -------------------------------------------------------------------------------


@every_risk
@pytest.mark.parametrize("loss", ["squared", "squared(2)", "huber", "pinball(0.5)"])
def test_every_risk_and_loss_learns(risk, loss):
    X, y = curve()
    model = COLKRegressor(risk, loss=loss, random_state=0).fit(X[:250], y[:250])
    assert model.score(X[250:], y[250:]) > 0.9
    assert_allclose(model.predict(X), model.expansion_(X)[:, 0] + model.intercept_, atol=1e-10)


@every_risk
@pytest.mark.parametrize("classes", [2, 5])
def test_every_risk_learns_classes(risk, classes):
    X, y = task()
    y = y % classes
    model = COLKClassifier(risk, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.85
    P = model.predict_proba(X)
    assert P.shape == (len(X), classes)
    assert_allclose(P.sum(axis=1), 1, rtol=1e-14)
    assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))
    assert model.weights_.shape == (model.model_order_, 1 if classes == 2 else classes)


def test_several_targets():
    X, y = curve()
    Y = np.column_stack([y, 100 * y**2 - 7])
    model = COLKRegressor(random_state=0).fit(X, Y)
    assert model.predict(X).shape == Y.shape
    assert model.score(X, Y) > 0.9


@every_risk
def test_the_weight_that_is_left_open(risk):
    assert COLKRegressor().risk == COLKClassifier().risk == "semideviation"
    assert COLKRegressor().clip == COLKClassifier().clip == 1.0
    weight = {"semideviation": 0.5, "semivariance": 0.1, "moments": 0.1, "cvar": 1.0}[risk]
    given = {**GIVEN, "risk": risk}
    left_open = COLKRegressor(**{**given, "risk_weight": "auto"}).fit(*outliers())
    stated = COLKRegressor(**{**given, "risk_weight": weight}).fit(*outliers())
    assert_array_equal(left_open.weights_, stated.weights_)
    more = COLKRegressor(**{**given, "risk_weight": 0.3}).fit(*outliers())
    assert not np.array_equal(left_open.predict([[0.3]]), more.predict([[0.3]]))


def test_without_weight_there_is_no_risk():
    X, y = outliers()
    plain = [
        COLKRegressor(**{**GIVEN, "risk": risk, "risk_weight": 0.0}).fit(X, y).predict(X)
        for risk in RISKS[:3]
    ]
    assert_array_equal(plain[0], plain[1])
    assert_array_equal(plain[0], plain[2])


def test_a_general_problem_without_targets():
    """Minimise E[f^2] / 2 - E[f] as a problem with inner expectations only: f is 1."""
    model = CompositionalLearner(
        inner=lambda f, y: np.hstack([f**2, f]),
        inner_derivative=lambda f, y: np.stack([2 * f, np.ones_like(f)], axis=1),
        outer_gradient=lambda f, y, g: np.tile([0.5, -1.0], (len(f), 1)),
        n_inner=2,
        kernel=kernels.Gaussian(0.5),
        learning_rate=0.5,
        budget=1e-3,
        epochs=40,
        random_state=0,
    )
    X = np.random.RandomState(0).uniform(-1, 1, (300, 1))
    assert ((model.fit(X).predict(X) - 1) ** 2).mean() < 0.01
    assert_allclose(model.tracked_, [1, 1], atol=0.05)
    assert model.model_order_ < 30


# -- the trace -------------------------------------------------------------------------------------


@every_risk
def test_the_trace_tells_mean_and_dispersion(risk):
    X, y = outliers(602)
    model = COLKRegressor(**{**GIVEN, "risk": risk, "risk_weight": 0.5, "epochs": 2}).fit(X, y)
    trace = model.trace_
    assert list(trace) == [*POLK_COLUMNS, "tracked", "mean", "dispersion", "clipped", "drift"]
    batches = 2 * -(-602 // 8)
    assert {column.shape for column in trace.values()} == {(batches,)}
    assert all(np.isfinite(column).all() for column in trace.values())
    assert_array_equal(trace["mean"], trace["loss"])
    assert trace["samples"][-1] == model.t_ == 2 * 602
    assert (trace["tracked"] > 0).all()
    assert (trace["compression_error"] <= trace["budget"]).all()
    # Of the eight samples of a mini-batch the outer derivative is taken at four.
    assert set(trace["clipped"]) <= set(range(5))
    if risk == "moments":
        assert trace["clipped"].any()
    if risk == "cvar":
        assert not trace["clipped"].any()
        assert (trace["dispersion"] >= trace["tracked"]).all()
    objective = trace["mean"] + 0.5 * trace["dispersion"]
    assert np.median(objective[-30:]) < np.median(objective[:30])


def test_the_trace_without_clip_counts_none():
    given = {**GIVEN, "risk": "semivariance", "risk_weight": 0.01, "clip": None}
    assert not COLKRegressor(**given).fit(*outliers()).trace_["clipped"].any()
    tight = {**given, "risk": "moments", "clip": 1e-6}
    clipped = COLKRegressor(**tight).fit(*outliers()).trace_["clipped"]
    assert clipped.sum() == 300  # at every sample but those that are tracked


def test_the_trace_is_whole_while_another_thread_learns():
    X, y = outliers(20_000)
    model = COLKRegressor(**{**GIVEN, "batch_size": 2}).partial_fit(X[:100], y[:100])
    done = threading.Event()
    lengths = set()

    def read():
        while not done.is_set():
            trace = model.trace_
            lengths.add(len({len(column) for column in trace.values()}))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for start in range(100, 20_000, 500):
            model.partial_fit(X[start : start + 500], y[start : start + 500])
    finally:
        done.set()
        reader.join()
    assert lengths == {1}


# -- budgets, schedules ----------------------------------------------------------------------------


def test_the_budget_is_c_alpha_squared():
    X, y = outliers()
    model = COLKRegressor(**GIVEN).fit(X, y)
    assert_allclose(model.trace_["budget"], 0.5 * 0.1**2, rtol=1e-12)
    fixed = COLKRegressor(**{**GIVEN, "parsimony": "auto", "budget": 0.5 * 0.1**2}).fit(X, y)
    assert_allclose(fixed.predict(X), model.predict(X), atol=1e-12)
    law = {"schedule": PowerLaw(0.9, 10), "tracking_schedule": PowerLaw(0.7, 10)}
    model = COLKRegressor(**{**GIVEN, **law}).fit(X, y)
    rates = 0.1 * (1 + np.arange(75) / 10) ** -0.9
    assert_allclose(model.trace_["budget"], 0.5 * rates**2, rtol=1e-12)
    models = [COLKRegressor(**{**GIVEN, "parsimony": C}).fit(X, y) for C in (0, 0.5, 5, 1e4)]
    orders = [model.model_order_ for model in models]
    assert orders[0] == models[0].trace_["active"].sum()
    assert sorted(set(orders), reverse=True) == orders
    assert orders[-1] == 0


def test_the_model_order_is_held():
    X, y = outliers(6000)
    model = COLKRegressor(budget=AdaptiveBudget(20), epochs=3, random_state=0).fit(X, y)
    assert model.trace_["model_order"][-150:].mean() == pytest.approx(20, rel=0.1)


@pytest.mark.parametrize(
    ("power", "tracking", "holds"),
    [(0.8, 0.55, True), (0.99, 0.97, True), (0.9, 0.51, True), (0.76, 0.515, True),
     (0.75, 0.5, False), (1.0, 0.9, False), (0.9, 0.8, False), (0.9, 0.85, False),
     (0.9, 0.5, False), (0.7, 0.6, False), (0.8, 1.0, False)],
)  # fmt: skip
@pytest.mark.parametrize("cls", [COLKRegressor, COLKClassifier])
def test_falling_rates_must_satisfy_the_theorem(cls, power, tracking, holds):
    X, y = outliers(60)
    y = y > 0 if cls is COLKClassifier else y
    falling = {"schedule": PowerLaw(power, 50), "tracking_schedule": PowerLaw(tracking, 20)}
    model = cls(epochs=1, **falling)
    if holds:
        assert model.fit(X, y).t_ == 60
    else:
        for name in ("fit", "partial_fit"):
            assert_refused(
                model, lambda m, n=name: getattr(m, n)(X, y), "power pa between 3/4 and 1"
            )
    # Without risk nothing is tracked, and any law that POLK takes is taken.
    assert cls(None, epochs=1, **falling).fit(X, y).t_ == 60


def test_both_rates_fall_or_none():
    X, y = outliers(60)
    for falling in ({"schedule": PowerLaw(0.9)}, {"tracking_schedule": PowerLaw(0.7)}):
        assert_refused(
            COLKRegressor(**falling), lambda m: m.fit(X, y), "both be constant or both fall"
        )


# -- streams, weights, sparse samples --------------------------------------------------------------


@every_risk
def test_partial_fit_is_one_unshuffled_epoch_of_fit(risk):
    X, y = outliers()
    given = {**GIVEN, "risk": risk, "half_life": None}
    whole = COLKRegressor(**given).partial_fit(X, y)
    assert state(whole) == state(COLKRegressor(**given).fit(X, y))
    blocks = COLKRegressor(**given)
    for start in range(0, len(X), 40):
        blocks.partial_fit(X[start : start + 40], y[start : start + 40])
    assert state(blocks) == state(whole)
    assert blocks.t_ == len(X)


def test_a_stream_of_single_samples_learns():
    X, y = curve()
    given = {"kernel": kernels.Gaussian(0.7), "learning_rate": 0.3, "budget": 0.01, "batch_size": 2}
    model = COLKRegressor(**given)
    general = CompositionalLearner(
        inner=lambda f, y: (f - y) ** 2,
        inner_derivative=lambda f, y: 2 * (f - y)[:, :, None],
        outer_gradient=lambda f, y, g: np.ones((len(f), 1)),
        **given,
    )
    for x, target in zip(X[:, None], y[:, None], strict=True):
        model.partial_fit(x, target)
        general.partial_fit(x, target)
    for learner in (model, general):
        assert np.corrcoef(learner.predict(X), y)[0, 1] > 0.9


def test_weights_of_one_are_no_weights():
    X, y = outliers()
    for risk in RISKS:
        model = COLKRegressor(**{**GIVEN, "risk": risk})
        plain = state(model.fit(X, y))
        assert state(model.fit(X, y, sample_weight=np.ones(len(X)))) == plain
        assert state(model.fit(X, y, sample_weight=np.arange(len(X)) % 2)) != plain


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array])
def test_sparse_samples_are_the_same_samples(kind):
    X, y = curve()
    Z = np.where(np.abs(X) < 0.5, 0.0, X)
    for cls, targets in ((COLKRegressor, y), (COLKClassifier, (y > 0).astype(int))):
        dense = cls(random_state=0, epochs=2).fit(Z, targets)
        assert state(dense) == state(cls(random_state=0, epochs=2).fit(kind(Z), targets))
        assert_array_equal(dense.predict(Z), dense.predict(kind(Z)))


# -- with scikit-learn -----------------------------------------------------------------------------


def test_within_scikit_learn():
    X, y = task()
    pipeline = make_pipeline(StandardScaler(), COLKClassifier(random_state=0, epochs=3))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.8
    search = GridSearchCV(
        COLKRegressor(epochs=3, random_state=0), {"risk": [*RISKS, None], "gamma": ["scale"]}, cv=3
    )
    assert search.fit(*curve()).best_score_ > 0.9
    model = COLKRegressor(**GIVEN).fit(*outliers())
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "t_")
    assert state(copy.fit(*outliers())) == state(model)


def test_not_fitted():
    models = (COLKClassifier(), COLKRegressor(), CompositionalLearner(), PolicyEvaluator())
    names = ("dictionary_", "weights_", "model_order_", "t_", "trace_", "expansion_")
    for model in models:
        with pytest.raises(NotFittedError):
            model.predict([[0.0]])
        for name in (*names, "tracked_", "tracker_order_"):
            assert not hasattr(model, name)


def test_no_warning_where_nothing_is_wrong():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for risk in [*RISKS, None]:
            COLKRegressor(risk, random_state=0, epochs=2).fit(*outliers())
            COLKRegressor(risk).partial_fit(*outliers())
            COLKClassifier(risk, random_state=0, epochs=2).fit(*task())

"""COLK stays finite whatever the data and the learning rate, or says what to change."""

import pickle

import numpy as np
import pytest
from colk_common import PAPER, every_risk, outliers
from polk_common import assert_refused, state, task
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from parsimon import COLKClassifier, COLKRegressor, DivergenceError


@pytest.mark.parametrize("kind", ["none", "symmetric", "one-sided"])
def test_the_parameters_of_the_paper(kind):
    X, y = outliers(6000, kind)
    model = COLKRegressor(**PAPER).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    truth = 2 * X[:, 0] + 3 * np.sin(6 * X[:, 0])
    assert ((model.predict(X) - truth) ** 2).mean() < 0.1 * truth.var()
    assert model.trace_["clipped"].sum() > 0
    assert 20 < model.model_order_ < 100


@every_risk
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("batch", [2, 3, 32])
def test_outliers_of_a_hundred_standard_deviations(risk, normalize, batch):
    X, y = outliers(1000, "none")
    far = np.where(np.arange(1000) % 20 == 0, y + 100 * y.std(), y)
    model = COLKRegressor(risk, normalize_y=normalize, batch_size=batch, epochs=3, random_state=0)
    values = model.fit(X, far).predict(X)
    assert np.isfinite(values).all()
    assert np.abs(values).max() < np.abs(far).max()
    # They come in the middle of a stream.
    model = COLKRegressor(risk, normalize_y=normalize, batch_size=batch).partial_fit(X, y)
    assert np.isfinite(model.partial_fit(X, far).partial_fit(X, -far).predict(X)).all()


@every_risk
@pytest.mark.parametrize("factor", [10, 100, 1e4])
@pytest.mark.parametrize("kind", ["none", "one-sided"])
def test_a_learning_rate_that_is_too_large(risk, factor, kind):
    X, y = outliers(1000, kind)
    good = COLKRegressor(risk, solver="sgd", epochs=5, random_state=0).fit(X, y)
    rate = factor * good._model.to_archive()["step.parameters"][0]
    model = COLKRegressor(risk, solver="sgd", learning_rate=rate, epochs=5, random_state=0)
    for name in ("fit", "partial_fit"):
        with pytest.warns(ConvergenceWarning, match="choose a smaller learning_rate") as caught:
            getattr(clone(model), name)(X, y)
        assert caught[0].filename == __file__
        assert f"learning_rate={rate}" in str(caught[0].message)
    with pytest.warns(ConvergenceWarning, match="is used instead"):
        values = model.fit(X, y).predict(X)
    assert np.isfinite(values).all()
    truth = 2 * X[:, 0] + 3 * np.sin(6 * X[:, 0])
    assert ((values - truth) ** 2).mean() < truth.var()


@every_risk
@pytest.mark.parametrize("rate", [1.0, 100.0, 1e8])
def test_a_classifier_stays_finite_at_any_rate(risk, rate):
    X, y = task()
    model = COLKClassifier(risk, learning_rate=rate, regularization=0.0, epochs=3, random_state=0)
    assert np.isfinite(model.fit(X, y).decision_function(X)).all()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("order", [3, 4])
def test_without_clip_it_stops_and_keeps_the_last_good_model(seed, order):
    X, y = outliers(2000, seed=seed)
    raw = {**PAPER, "clip": None, "moment_order": order}
    message = "grown beyond all bounds .* as it was before .*clip"
    assert_refused(COLKRegressor(**raw), lambda m: m.fit(X, y), message, DivergenceError)
    model = COLKRegressor(**raw).partial_fit(X[:2], y[:2])
    taken = 2
    while is_learned(model, X[taken : taken + 2], y[taken : taken + 2]):
        taken += 2
    bad = slice(taken, taken + 2)
    assert_refused(model, lambda m: m.partial_fit(X[bad], y[bad]), message, DivergenceError)
    assert model.t_ == taken < len(X)
    assert np.isfinite(model.predict(X)).all()
    assert state(pickle.loads(pickle.dumps(model))) == state(model)
    # A block of many mini-batches is taken back as a whole.
    assert_refused(model, lambda m: m.partial_fit(X, y), message, DivergenceError)


def is_learned(model, X, y):
    try:
        model.partial_fit(X, y)
    except DivergenceError:
        return False
    return True


# The 64th power of a loss is beyond all doubles long before the loss is.
@pytest.mark.parametrize(("order", "size"), [(4, 1e10), (4, 1e40), (64, 1e3), (64, 1e4)])
def test_moments_that_overflow(order, size):
    X, y = outliers(200, "none")
    far = np.where(np.arange(200) % 20 == 0, size, y)
    model = COLKRegressor("moments", moment_order=order, normalize_y=False, random_state=0)
    assert np.isfinite(model.fit(X, far).predict(X)).all()
    assert np.isfinite(model.trace_["dispersion"]).all()
    assert state(pickle.loads(pickle.dumps(model))) == state(model)

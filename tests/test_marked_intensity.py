"""Points with marks."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from parsimon import MarkedIntensity, POLKRegressor, SPPPOTIntensity, _core

FAST = SPPPOTIntensity(domain=(0, 1), bandwidth=0.15, regularization=1e-3)


def marked(count=900, seed=0):
    """Points whose mark is "b" with probability x^2."""
    random = np.random.RandomState(seed)
    X = random.rand(count, 1)
    return X, np.where(random.rand(count) < X[:, 0] ** 2, "b", "a")


def test_marks_are_as_likely_as_their_share_of_the_intensity():
    model = MarkedIntensity(FAST).fit(*marked())
    assert_array_equal(model.classes_, ["a", "b"])
    grid = np.linspace(0.1, 0.9, 9)[:, None]
    found = model.predict_proba(grid)
    assert_allclose(found.sum(axis=1), 1)
    assert_allclose(found[:, 1], grid[:, 0] ** 2, atol=0.12)
    values = model.intensities(grid)
    assert_allclose(found, values / values.sum(axis=1, keepdims=True))
    assert_allclose(values.sum(axis=1), 900, rtol=0.25)
    assert_array_equal(model.predict([[0.1], [0.95]]), ["a", "b"])
    X, y = marked(seed=1)
    assert model.score(X, y) > 0.68  # the best there is: .76


def test_the_dictionary_is_that_of_all_points():
    model = MarkedIntensity(SPPPOTIntensity(domain=(0, 1))).fit(*marked())
    for intensity in model.intensities_:
        assert_array_equal(intensity.dictionary_, model.pooled_.dictionary_)


def test_threads_are_those_of_the_intensity(monkeypatch):
    told = []
    monkeypatch.setattr(_core, "limit_threads_here", lambda threads: told.append(threads) or 7)
    model = MarkedIntensity(clone(FAST).set_params(n_jobs=3)).fit(*marked())
    assert told[:2] == [3, 7]
    told.clear()
    model.predict([[0.5]])
    assert told == [3, 7] * 2  # one for each mark


def test_counts_and_likelihood_add_up():
    X, y = marked()
    model = MarkedIntensity(FAST).fit(X, y, exposure=2.0)
    counts = [(y == mark).sum() / 2 for mark in model.classes_]
    assert_allclose(model.expected_count((0, 1)), counts, rtol=1e-3)
    each = [
        intensity.process_score(X[y == mark])
        for mark, intensity in zip(model.classes_, model.intensities_, strict=True)
    ]
    assert model.process_score(X, y) == pytest.approx(sum(each))
    half = model.process_score(X[:9], y[:9], exposure=1.0)
    assert half == pytest.approx(
        np.log(model.intensities(X[:9]))[range(9), (y[:9] == "b").astype(int)].sum() - 450, rel=1e-6
    )


def test_a_weight_is_that_many_points():
    X, y = marked()
    weight = 1.0 + np.arange(len(X)) % 2
    given = clone(FAST).set_params(regularization=1e-3)
    model = MarkedIntensity(given).fit(X, y, sample_weight=weight)
    counts = [weight[y == mark].sum() for mark in model.classes_]
    assert_allclose(model.expected_count((0, 1)), counts, rtol=1e-3)
    rows = np.repeat(np.arange(len(X)), weight.astype(int))
    each = MarkedIntensity(given).fit(X[rows], y[rows])
    assert_allclose(model.intensities([[0.3], [0.8]]), each.intensities([[0.3], [0.8]]), rtol=1e-6)
    with pytest.raises(ValueError, match="sample_weight"):
        MarkedIntensity(given).fit(X, y, sample_weight=weight[1:])


def test_outside_marks_are_as_common_as_everywhere():
    X, y = marked()
    model = MarkedIntensity(FAST).fit(X, y)
    assert_allclose(model.predict_proba([[7.0]])[0, 1], np.mean(y == "b"))


def test_it_is_cloned_and_pickled():
    model = clone(MarkedIntensity(FAST)).fit(*marked())
    other = pickle.loads(pickle.dumps(model))
    assert_array_equal(other.predict_proba(marked()[0]), model.predict_proba(marked()[0]))


def test_bad_input():
    X, y = marked(50)
    with pytest.raises(ValueError, match="one mark for each point: got 49 marks and 50 points"):
        MarkedIntensity(FAST).fit(X, y[1:])
    with pytest.raises(ValueError, match="Unknown label type"):
        MarkedIntensity(FAST).fit(X, X[:, 0])
    for wrong in (POLKRegressor(), SPPPOTIntensity(solver="sgd")):
        with pytest.raises(ValueError, match="intensity must be an intensity with solver='newton'"):
            MarkedIntensity(wrong).fit(X, y)
    with pytest.raises(NotFittedError):
        MarkedIntensity().predict(X)
    with pytest.raises(ValueError, match="There was no mark"):
        MarkedIntensity(FAST).fit(X, y).process_score(X[:1], ["c"])

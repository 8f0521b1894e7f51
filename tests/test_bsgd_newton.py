"""Models with a hard cap on their points, whose weights are solved."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from polk_common import curve, state, task
from sklearn.datasets import make_friedman1, make_moons

import parsimon
from parsimon import BSGDClassifier, BSGDRegressor, kernels
from parsimon.bsgd import MAINTENANCE
from parsimon.datasets import make_regression_outliers

each_rule = pytest.mark.parametrize("maintenance", MAINTENANCE)


def truth(X):
    return (2 * X + 3 * np.sin(6 * X))[:, 0]


def excess(model):
    X = np.linspace(-1, 1, 2001)[:, None]
    return ((model.predict(X) - truth(X)) ** 2).mean()


@each_rule
def test_fit_ends_with_the_best_weights_on_its_points(maintenance):
    """The minimiser of sum (f(x_i) - y_i)^2 + n lambda |f|^2 over their span."""
    X, y = curve()
    kernel = kernels.Gaussian(0.5)
    model = BSGDRegressor(
        kernel=kernel,
        max_points=15,
        maintenance=maintenance,
        maintenance_rate=1e9,
        regularization=1e-3,
        random_state=0,
    ).fit(X, y)
    D = model.dictionary_
    K, G = kernel(X, D), kernel(D)
    ridge = len(X) * 1e-3 * G
    best = np.linalg.solve(K.T @ K + ridge, K.T @ (y - y.mean()))
    assert len(D) <= 15
    assert_allclose(model.predict(X), K @ best + y.mean(), atol=1e-6)


@each_rule
def test_a_stream_keeps_the_cap_and_learns(maintenance):
    X, y = task()
    model = BSGDClassifier(max_points=20, maintenance=maintenance, maintenance_rate=1e9)
    for start in range(0, len(X), 50):
        model.partial_fit(X[start : start + 50], y[start : start + 50], classes=range(5))
        assert model.model_order_ <= 20
        assert np.isfinite(model.weights_).all()
    assert model.score(X, y) > 0.85


@pytest.mark.parametrize("maintenance", ["merge", "remove", "project"])
def test_merging_does_not_get_worse_with_training(maintenance):
    X, y = make_moons(4000, noise=0.35, random_state=0)
    errors = []
    for epochs in (2, 5, 20):
        model = BSGDClassifier(
            max_points=30, maintenance=maintenance, epochs=epochs, random_state=0
        ).fit(X[:1000], y[:1000])
        errors.append(1 - model.score(X[1000:], y[1000:]))
    # A standard error of the difference between two models that are both right is a quarter of it.
    assert max(errors[1:]) <= errors[0] + 0.01


@pytest.mark.data("banana")
def test_merging_does_not_get_worse_with_training_on_banana():
    """Errors of gradient steps were 11.4, 12.5 and 23.5 % after 2, 5 and 20 epochs."""
    with np.load(Path(os.environ["PARSIMON_DATA"]) / "banana.npz") as data:
        X, y = data["X"], data["y"]
    order = np.random.RandomState(0).permutation(len(X))
    learn, test = order[:2000], order[2000:]
    errors = [
        1 - BSGDClassifier(epochs=n, random_state=0).fit(X[learn], y[learn]).score(X[test], y[test])
        for n in (2, 5, 20)
    ]
    assert max(errors) < 0.12
    assert max(errors[1:]) <= errors[0] + 0.005


def test_points_that_merge_are_better_than_those_that_are_removed():
    X, y = make_friedman1(3000, noise=1.0, random_state=0)
    scores = [
        BSGDRegressor(max_points=20, maintenance=rule, epochs=3, random_state=0)
        .fit(X[:2000], y[:2000])
        .score(X[2000:], y[2000:])
        for rule in ("merge", "remove")
    ]
    assert scores[0] > scores[1] + 0.03


@pytest.mark.parametrize("maintenance", ["merge", "remove", "project"])
def test_errors_of_maintenance_do_not_add_up_along_a_stream(maintenance):
    """The excess of gradient steps was 0.06 with merging and 0.1 with removal."""
    X, y = make_regression_outliers(16_000, random_state=0)
    model = BSGDRegressor(kernel=kernels.Gaussian(0.06), maintenance=maintenance)
    found = []
    for start in range(0, len(X), 1000):
        model.partial_fit(X[start : start + 1000], y[start : start + 1000])
        found.append(excess(model))
    assert found[-1] < 5e-4
    assert max(found[10:]) <= found[5]


@each_rule
def test_files_and_pickles_go_on_where_they_stopped(maintenance, tmp_path):
    X, y = task()
    given = {"max_points": 9, "maintenance": maintenance, "maintenance_rate": 50}
    for first in (3, 100, 233):
        model = BSGDClassifier(**given, random_state=0)
        model.partial_fit(X[:first], y[:first], classes=range(5))
        model.save(tmp_path / "model")
        straight = pickle.loads(pickle.dumps(model)).partial_fit(X[first:], y[first:])
        loaded = parsimon.load(tmp_path / "model")
        assert state(loaded) == state(model)
        loaded.partial_fit(X[first:], y[first:])
        assert_array_equal(loaded.decision_function(X), straight.decision_function(X))


def test_a_block_that_is_refused_leaves_no_trace():
    X, y = curve()
    model = BSGDRegressor(max_points=12, random_state=0).partial_fit(X, y)
    before = state(model)
    for wrong in (np.nan, np.inf):
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            model.partial_fit(np.where(X > 0.9, wrong, X), y)
    assert state(model) == before


def test_a_fit_is_where_a_stream_goes_on():
    X, y = make_regression_outliers(6000, random_state=1)
    model = BSGDRegressor(kernel=kernels.Gaussian(0.06), random_state=0).fit(X[:3000], y[:3000])
    before = excess(model)
    for start in range(3000, 6000, 500):
        model.partial_fit(X[start : start + 500], y[start : start + 500])
        assert excess(model) < 1.5 * before
    assert excess(model) < before


@pytest.mark.parametrize("loss", ["huber", "epsilon_insensitive", "pinball(0.5)"])
def test_other_losses_are_solved_too(loss):
    X, y = make_regression_outliers(2000, random_state=0)
    model = BSGDRegressor(loss, kernel=kernels.Gaussian(0.06), random_state=0).fit(X, y)
    assert excess(model) < 0.01

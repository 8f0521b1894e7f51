"""Value functions from transitions: on a chain whose values are known, and where episodes end."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from polk_common import assert_keeps_what_is_done, assert_refused, state
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score

from parsimon import DivergenceError, PolicyEvaluator, kernels
from parsimon.schedules import AdaptiveBudget, PowerLaw

DISCOUNT = 0.9
METHODS = ["gtd", "td"]
# Single transitions, and steps that are small enough for them.
GIVEN = {
    "gtd": {"learning_rate": 0.1, "tracking_rate": 0.1},
    "td": {"learning_rate": 0.02},
}
SINGLE = {"kernel": kernels.Gaussian(0.1), "budget": 1e-3, "batch_size": 1}
LARGEST_ERROR = {"gtd": 0.25, "td": 0.08}

each_method = pytest.mark.parametrize("method", METHODS)


@cache
def chain(count=100_000, seed=0):
    """x -> reflect(x + 0.03 + 0.1 noise) on [0, 1], reward sin 2 pi x."""
    random = np.random.RandomState(seed)
    states = random.uniform(size=(count, 1))
    folded = np.abs(states + 0.03 + 0.1 * random.randn(count, 1))
    following = np.where(folded > 1, 2 - folded, folded)
    return states, np.sin(2 * np.pi * states[:, 0]), following


@cache
def values(size=500):
    """Solve V = r + discount P V on a fine grid; the density of a reflected step has images."""
    grid = (np.arange(size) + 0.5) / size
    to, of = grid[None], grid[:, None] + 0.03
    P = sum(norm.pdf(2 * k + s * to, of, 0.1) for k in range(-1, 2) for s in (-1, 1)) / size
    assert_allclose(P.sum(axis=1), 1, atol=1e-6)
    return grid[:, None], np.linalg.solve(np.eye(size) - DISCOUNT * P, np.sin(2 * np.pi * grid))


def error(model):
    grid, V = values()
    return np.sqrt(((model.predict(grid) - V) ** 2).mean())


# -- the chain -------------------------------------------------------------------------------------


def test_the_truth():
    assert values()[1].std() == pytest.approx(3.64, abs=0.005)


def assert_learned(method, models):
    """Over streams together: by chance alone, single errors differ by a factor of five."""
    assert np.sqrt(np.mean([error(model) ** 2 for model in models])) <= LARGEST_ERROR[method]
    for model in models:
        orders = model.trace_["model_order"]
        half = len(orders) // 2
        assert 4 <= orders[half:].max() <= orders[:half].max() + 2
        assert orders.max() < 30
        assert model.tracker_order_ < 30
        assert (model.tracker_order_ > 0) is (method == "gtd")


@pytest.mark.slow
@each_method
def test_with_the_settings_of_the_figures(method):
    models = [
        PolicyEvaluator(method, discount=DISCOUNT, **GIVEN[method], **SINGLE).partial_fit(
            *chain(seed=seed)
        )
        for seed in range(3 if method == "td" else 2)
    ]
    assert_learned(method, models)


@pytest.mark.slow
@each_method
def test_with_the_defaults(method):
    models = [
        PolicyEvaluator(method, discount=DISCOUNT).partial_fit(*chain(seed=seed))
        for seed in range(8)
    ]
    assert_learned(method, models)


@each_method
def test_averaging_helps(method):
    settings = {"discount": DISCOUNT, "kernel": kernels.Gaussian(0.1)}
    errors = [
        error(PolicyEvaluator(method, average=average, **settings).partial_fit(*chain()))
        for average in (False, True)
    ]
    assert errors[1] < errors[0] < 1


@each_method
def test_blocks_of_whole_mini_batches_do_not_matter(method):
    states, rewards, following = chain(2000)
    terminal = np.arange(2000) % 7 == 0
    given = {"learning_rate": 0.5, "tracking_rate": 0.5, "budget": 1e-3, "gamma": 30.0}
    given |= {"half_life": None}
    whole = PolicyEvaluator(method, **given)
    whole.partial_fit(states, rewards, following, terminal)
    blocks = clone(whole)
    for start in range(0, 2000, 320):
        part = slice(start, start + 320)
        blocks.partial_fit(states[part], rewards[part], following[part], terminal[part])
    assert state(blocks) == state(whole)
    one_pass = clone(whole).set_params(shuffle=False).fit(states, rewards, following, terminal)
    assert_array_equal(one_pass.weights_, whole.weights_)
    assert whole.t_ == one_pass.t_ == 2000


def test_fit_shuffles_and_repeats():
    transitions = chain(500)
    model = PolicyEvaluator(epochs=3, random_state=0).fit(*transitions)
    assert model.t_ == 1500
    again = state(clone(model).fit(*transitions))
    assert again == state(model)
    assert state(clone(model).set_params(random_state=1).fit(*transitions)) != again


# -- the ends of episodes --------------------------------------------------------------------------


@each_method
def test_without_a_future_it_is_regression(method):
    states, rewards, following = chain(20_000)
    everywhere = np.ones(20_000, dtype=bool)
    ends = PolicyEvaluator(method, discount=0.9).partial_fit(states, rewards, following, everywhere)
    myopic = PolicyEvaluator(method, discount=0.0).partial_fit(states, rewards, following)
    grid, _ = values()
    for model in (ends, myopic):
        off = model.predict(grid) - np.sin(2 * np.pi * grid[:, 0])
        assert np.sqrt((off**2).mean()) < 0.1
    # What follows a terminal state is of no account.
    other = PolicyEvaluator(method, discount=0.9)
    other.partial_fit(states, rewards, np.roll(following, 1, axis=0), everywhere)
    assert_allclose(other.predict(grid), ends.predict(grid), rtol=0, atol=1e-10)


@each_method
def test_a_walk_that_ends(method):
    """From x to x + 0.2, reward 1, until above 1: V counts the discounted steps that are left."""
    states = np.random.RandomState(0).uniform(size=(40_000, 1))
    following = states + 0.2
    terminal = following[:, 0] > 1
    model = PolicyEvaluator(method, discount=0.8, kernel=kernels.Matern(0.1, 1.5))
    model.partial_fit(states, np.ones(40_000), following, terminal)
    middle = np.array([[0.1], [0.3], [0.5], [0.7], [0.9]])  # between the jumps
    steps = np.array([5, 4, 3, 2, 1])
    assert_allclose(model.predict(middle), (1 - 0.8**steps) / 0.2, atol=0.25)


def test_terminal_flags_in_any_form():
    states, rewards, following = chain(300)
    flags = np.arange(300) % 5 == 0
    expected = state(PolicyEvaluator().partial_fit(states, rewards, following, flags))
    for form in (flags.astype(int), flags.astype(float), flags.tolist(), flags[:, None]):
        assert state(PolicyEvaluator().partial_fit(states, rewards, following, form)) == expected
    nowhere = state(PolicyEvaluator().partial_fit(states, rewards, following, 0 * flags))
    assert nowhere == state(PolicyEvaluator().partial_fit(states, rewards, following))
    assert nowhere != expected


# -- settings --------------------------------------------------------------------------------------


@each_method
def test_budgets_and_schedules(method):
    transitions = chain(94 * 32)
    model = PolicyEvaluator(method, learning_rate=0.4, parsimony=0.05, schedule=PowerLaw(0.8, 10))
    trace = model.partial_fit(*transitions).trace_
    rates = 0.4 * (1 + np.arange(94) / 10) ** -0.8
    assert_allclose(trace["budget"], 0.05 * rates**2, rtol=1e-12)
    assert (trace["compression_error"] <= trace["budget"]).all()
    orders = [
        PolicyEvaluator(method, budget=budget).partial_fit(*transitions).model_order_
        for budget in (1e-3, 1e-2, 1e-1, 1e3)
    ]
    assert orders == sorted(orders, reverse=True)
    assert orders[0] > 5
    assert orders[-1] == 0


def test_the_model_order_is_held():
    model = PolicyEvaluator(budget=AdaptiveBudget(12), kernel=kernels.Gaussian(0.1))
    orders = model.partial_fit(*chain(20_000)).trace_["model_order"]
    assert orders[-200:].mean() == pytest.approx(12, rel=0.1)
    with pytest.warns(ConvergenceWarning, match="more points than the data need"):
        PolicyEvaluator(budget=AdaptiveBudget(5000), epochs=200).fit(*chain(60))


def test_several_features_and_regularization():
    random = np.random.RandomState(1)
    states = random.uniform(size=(40_000, 3))
    model = PolicyEvaluator("td", discount=0.5).partial_fit(states, states[:, 0] + 1, states)
    # It stays where it is: V = r / (1 - discount).
    assert r2_score(2 * (states[:, 0] + 1), model.predict(states)) > 0.9
    small = PolicyEvaluator("td", discount=0.5, regularization=0.3)
    small.partial_fit(states, states[:, 0] + 1, states)
    assert np.linalg.norm(small.predict(states)) < 0.9 * np.linalg.norm(model.predict(states))


@each_method
def test_divergence_is_reported_and_finished_mini_batches_stay(method):
    transitions = chain(2000)
    model = PolicyEvaluator(method, learning_rate=1e3, tracking_rate=1e3, budget=1e-3)
    message = "grown beyond all bounds.* smaller learning"
    assert_refused(model, lambda m: m.fit(*transitions), message, DivergenceError)
    model.partial_fit(*(part[:32] for part in transitions))
    assert_keeps_what_is_done(model, transitions, message, DivergenceError)
    assert np.isfinite(model.predict(values()[0])).all()

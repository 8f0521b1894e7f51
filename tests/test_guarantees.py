"""docs/guarantees.md: the theorems of the POLK paper, on a problem whose optimum is known."""

from itertools import pairwise

import numpy as np
import pytest

from parsimon import POLKRegressor, kernels
from parsimon.schedules import PowerLaw

WIDTH, REGULARIZATION, NOISE = 0.3, 0.1, 0.3
KERNEL = kernels.Gaussian(WIDTH)
SGD = {
    "kernel": KERNEL,
    "solver": "sgd",
    "average": False,
    "regularization": REGULARIZATION,
    "batch_size": 1,
    "normalize_y": False,
}
# Samples are drawn from these: the risk is a sum, and its minimiser kernel ridge regression.
SITES = np.linspace(-1, 1, 41)[:, None]
TRUTH = np.sin(4 * SITES[:, 0])


def samples(count, seed):
    random = np.random.RandomState(seed)
    drawn = random.randint(len(SITES), size=count)
    return SITES[drawn], TRUTH[drawn] + NOISE * random.choice([-1, 1], size=count)


def optimum():
    """Return the weights on SITES of the minimiser of E (f(x) - y)^2 / 2 + lambda / 2 ||f||^2."""
    count = len(SITES)
    return np.linalg.solve(KERNEL(SITES) + count * REGULARIZATION * np.eye(count), TRUTH)


def distance(model):
    """Return the distance of the iterate to the optimum, in Hilbert norm."""
    points = np.vstack([model.dictionary_, SITES])
    weights = np.concatenate([model.weights_.ravel(), -optimum()])
    return np.sqrt(max(0.0, weights @ KERNEL(points) @ weights))


def distances(model, count, seed, every):
    X, y = samples(count, seed)
    found = []
    for start in range(0, count, every):
        model.partial_fit(X[start : start + every], y[start : start + every])
        found.append(distance(model))
    return np.array(found)


def size():
    weights = optimum()
    return np.sqrt(weights @ KERNEL(SITES) @ weights)


def test_theorem_1_the_iterate_converges_if_steps_fall_like_1_over_t():
    final = []
    for seed in range(3):
        model = POLKRegressor(learning_rate=0.5, schedule=PowerLaw(1, 40), parsimony="auto", **SGD)
        path = distances(model, 100_000, seed, 1000)
        trace = model.trace_
        # Budgets are squares of the steps, but for a constant.
        multiples = trace["budget"] * (1 + trace["samples"] / 40) ** 2
        assert np.median(multiples[-50:]) == pytest.approx(np.median(multiples[500:550]), rel=0.05)
        assert (trace["compression_error"] <= trace["budget"]).all()
        assert path[-10:].mean() < 0.4 * path[:10].mean()
        final.append(path[-10:].mean())
    # t^(-1/2): 100,000 steps of variance .1 would be within .3 / sqrt(1e5 * .1) or so.
    assert max(final) < 0.01 * size() + 0.01


def radius(eta, parsimony, count, seed):
    model = POLKRegressor(learning_rate=eta, parsimony=parsimony, **SGD)
    path = distances(model, count, seed, count // 200)
    return path[100:]


def test_theorem_2_the_radius_shrinks_like_the_root_of_the_step():
    parsimony = 0.1
    steps = (0.4, 0.1, 0.025)
    found = []
    for eta in steps:
        tails = np.array([radius(eta, parsimony, int(4000 / eta), seed) for seed in range(3)])
        found.append(tails.mean())
        # E ||gradient||^2 at the optimum, k(x, x) = 1; that of the regulariser is part of it.
        residual = KERNEL(SITES) @ optimum() - TRUTH
        variance = np.mean(residual**2) + NOISE**2
        bound = np.sqrt(eta) / REGULARIZATION
        bound *= parsimony + np.sqrt(parsimony**2 + REGULARIZATION * variance)
        assert (tails.min(axis=1) <= bound).all()
    for larger, smaller in pairwise(found):
        assert 1.6 < larger / smaller < 2.5  # sqrt(4)


@pytest.mark.parametrize("budget", [None, 1e-8])
def test_theorem_3_the_number_of_points_is_bounded_over_200_000_samples(budget):
    eta, parsimony = 0.25, 0.05
    random = np.random.RandomState(0)
    X = random.uniform(-1, 1, size=(200_000, 1))
    y = np.sin(4 * X[:, 0]) + NOISE * random.choice([-1, 1], size=len(X))
    bound_by = {"budget": budget} if budget else {"parsimony": parsimony}
    model = POLKRegressor(learning_rate=eta, **bound_by, **SGD).partial_fit(X, y)
    trace = model.trace_
    orders, samples_seen = trace["model_order"], trace["samples"]
    assert (trace["compression_error"] <= trace["budget"]).all()
    # As many in the first quarter as ever after.
    early = orders[samples_seen <= 50_000].max()
    assert orders.max() <= 1.1 * early + 1
    if budget:
        assert orders.max() < 40 + 512 + 256
    else:
        # Slopes are below 2.5: |f| <= 1.2 and |y| <= 1.3.
        separation = parsimony * np.sqrt(eta) / 2.5
        assert 5 < orders.max() <= 1 + 2 / (WIDTH * separation)


def test_the_certificate_of_a_mini_batch_is_the_distance_that_it_says():
    """A step by hand, and then the model's: what lies between is compression."""
    eta, X, y = 0.25, *samples(300, 1)
    model = POLKRegressor(learning_rate=eta, parsimony=0.1, **SGD).partial_fit(X[:200], y[:200])
    spent = []
    for i in range(200, 300):
        points, weights = model.dictionary_.copy(), model.weights_.ravel().copy()
        slope = model.predict(X[i : i + 1])[0] - y[i]
        model.partial_fit(X[i : i + 1], y[i : i + 1])
        both = np.vstack([points, X[i : i + 1], model.dictionary_])
        difference = np.concatenate(
            [(1 - eta * REGULARIZATION) * weights, [-eta * slope], -model.weights_.ravel()]
        )
        moved = np.sqrt(max(0.0, difference @ KERNEL(both) @ difference))
        spent.append(model.trace_["compression_error"][-1])
        assert moved == pytest.approx(spent[-1], abs=1e-7)
    assert max(spent) > 1e-3


def test_solved_weights_are_not_bound_by_the_certificate():
    """As docs/guarantees.md says: they are the best on these points, near to no iterate."""
    X, y = samples(3000, 2)
    settings = {**SGD, "learning_rate": 0.25, "parsimony": 0.1}
    iterate = POLKRegressor(**settings).partial_fit(X, y)
    solved = POLKRegressor(**{**settings, "solver": "newton"}).partial_fit(X, y)
    assert (solved.trace_["compression_error"] <= solved.trace_["budget"]).all()
    grid = SITES[:, 0]
    between = np.abs(solved.predict(SITES) - iterate.predict(SITES)).max()
    assert between > solved.trace_["budget"].max()
    errors = [np.mean((m.predict(SITES) - np.sin(4 * grid)) ** 2) for m in (solved, iterate)]
    assert errors[0] < errors[1]

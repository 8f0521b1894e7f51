"""docs/guarantees.md: the theorems of the COLK paper, on a composite whose optimum is known."""

import numpy as np
import pytest

from parsimon import CompositionalLearner, kernels
from parsimon.schedules import PowerLaw

WIDTH, REGULARIZATION, NOISE, TARGET = 0.3, 0.1, 0.3, 1.0
KERNEL = kernels.Gaussian(WIDTH)
# Samples are drawn from these, so that expectations are sums.
SITES = np.linspace(-1, 1, 41)[:, None]
TRUTH, LOADS = np.sin(4 * SITES[:, 0]), 1 + SITES[:, 0]

# E (f(theta) - y)^2 / 2 + (E b f(xi) - c)^2 / 2 + lambda / 2 ||f||^2, with noise in y and b.
QUADRATIC = {
    "inner": lambda f, y: y[:, 1:] * f,
    "inner_derivative": lambda f, y: y[:, 1:, None],
    "outer_gradient": lambda f, y, g: np.repeat(g - TARGET, len(f), axis=0),
    "direct_gradient": lambda f, y, g: f - y[:, :1],
    "kernel": KERNEL,
    "regularization": REGULARIZATION,
    "batch_size": 2,
    "average": False,
}


def samples(count, seed):
    random = np.random.RandomState(seed)
    drawn = random.randint(len(SITES), size=count)
    noise = NOISE * random.choice([-1, 1], size=(2, count))
    return SITES[drawn], np.column_stack([TRUTH[drawn] + noise[0], LOADS[drawn] + noise[1]])


def optimum():
    """Return the weights on SITES of the minimiser: a linear system."""
    count, K = len(SITES), KERNEL(SITES)
    pull = np.outer(LOADS, LOADS @ K) / count**2
    matrix = K / count + pull + REGULARIZATION * np.eye(count)
    return np.linalg.solve(matrix, (TRUTH + TARGET * LOADS) / count)


def distance(model):
    points = np.vstack([model.dictionary_, SITES])
    weights = np.concatenate([model.weights_.ravel(), -optimum()])
    return np.sqrt(max(0.0, weights @ KERNEL(points) @ weights))


def distances(model, count, seed, parts):
    X, y = samples(count, seed)
    found = []
    for block in np.array_split(np.arange(count), parts):
        model.partial_fit(X[block], y[block])
        found.append(distance(model))
    return np.array(found)


def test_the_optimum_is_one():
    weights, K = optimum(), KERNEL(SITES)

    def objective(w):
        f = K @ w
        inner = np.mean(LOADS * f)
        fit = np.mean((f - TRUTH) ** 2) + (inner - TARGET) ** 2
        return (fit + REGULARIZATION * w @ K @ w) / 2

    random = np.random.RandomState(0)
    for _ in range(50):
        assert objective(weights + 0.01 * random.randn(len(weights))) > objective(weights)


def test_theorem_1_the_iterate_converges_if_both_steps_fall():
    model = CompositionalLearner(
        **QUADRATIC, learning_rate=0.5, tracking_rate=0.5, parsimony=0.5,
        schedule=PowerLaw(0.8, 20), tracking_schedule=PowerLaw(0.55, 20),
    )  # fmt: skip
    path = distances(model, 60_000, 0, 60)
    trace = model.trace_
    assert (trace["compression_error"] <= trace["budget"]).all()
    size = np.sqrt(optimum() @ KERNEL(SITES) @ optimum())
    assert path[-10:].mean() < 0.05 * size
    # Eight times as many samples: the tracker's noise alone falls like t^(-0.55 / 2), to .56.
    assert path[-10:].mean() < 0.75 * path[5:10].mean()


STEPS = (0.2, 0.1, 0.05, 0.025, 0.0125)


def constant(alpha):
    return CompositionalLearner(
        **QUADRATIC, learning_rate=alpha, tracking_rate=alpha, parsimony=0.5
    )


@pytest.mark.slow
def test_theorem_3_the_squared_distance_is_proportional_to_the_step():
    ratios = []
    for alpha in STEPS:
        tails = [distances(constant(alpha), int(1600 / alpha), seed, 100)[40:] for seed in (0, 1)]
        ratios.append(np.mean(np.square(tails)) / alpha)
    assert max(ratios) < 1.5 * min(ratios), ratios


def test_theorem_4_the_number_of_points_is_bounded():
    for alpha in (0.2, 0.05):
        model = constant(alpha)
        random = np.random.RandomState(0)
        X = random.uniform(-1, 1, size=(40_000, 1))
        y = np.column_stack([np.sin(4 * X[:, 0]), 1 + X[:, 0]])
        y += NOISE * random.choice([-1, 1], size=y.shape)
        trace = model.partial_fit(X, y).trace_
        orders, seen = trace["model_order"], trace["samples"]
        early, late = orders[seen <= 20_000], orders[seen > 20_000]
        assert 3 < late.max() <= early.max() + 1
        # Slopes by f(theta) and through xi are below 2.5 and 2.3 * 2 or so.
        separation = 0.5 * alpha / 5
        assert late.max() <= 1 + 2 / (WIDTH * separation)

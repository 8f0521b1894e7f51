"""The NumPy transcriptions of SPPPOT against finite differences, closed forms and each other."""

from math import prod

import numpy as np
import pytest
import spppot_reference as spppot
from komp_reference import brute_force_komp, exact
from numpy.testing import assert_allclose, assert_array_equal
from polk_common import compress as least_squares_komp
from scipy.optimize import minimize
from spppot_reference import AdaptiveBudget, algorithm1, algorithm3, gaussian, laplacian, midpoints

KERNEL = gaussian(0.15)
# The transcriptions solve with the Gram matrix, so what is compressed must be far from singular.
ROUGH = laplacian(0.3)
NODES = midpoints(8)
PROBES = midpoints(37)
STEP = 1e-5


def weight_function(x):
    return 0.5 + x[:, 0] ** 2


MIRRORS = {
    "kl": spppot.kl,
    "euclidean": spppot.euclidean,
    "mahalanobis": spppot.mahalanobis(weight_function),
}


@pytest.fixture(name="X")
def _samples():
    return np.random.default_rng(0).beta(3, 5, size=(90, 1))


@pytest.fixture(name="z")
def _weights():
    """Weights of a function on the nodes that is positive everywhere."""
    return np.random.default_rng(1).uniform(0.2, 0.8, size=len(NODES))


def objective(mirror, values, values_at_nodes, x):
    """Return the empirical risk of a function with these values."""
    return -np.log(mirror(values, x)[0]).mean() + mirror(values_at_nodes, NODES)[0].mean()


def derivative(function):
    return (function(STEP) - function(-STEP)) / (2 * STEP)


def gradient_of(z, x, **settings):
    settings = {"eta": 0.01, "mirror": spppot.kl, "gradient": "likelihood", **settings}
    return spppot.pseudo_gradient(z, NODES, x, NODES, KERNEL, **settings)


# -- gradients -------------------------------------------------------------------------------------


def test_midpoints_are_those_of_the_cells():
    assert_allclose(midpoints(4)[:, 0], [0.125, 0.375, 0.625, 0.875])
    grid = midpoints(2, [(0, 4), (-1, 1)])
    assert_array_equal(grid, [[1, -0.5], [1, 0.5], [3, -0.5], [3, 0.5]])


@pytest.mark.parametrize("name", MIRRORS)
def test_likelihood_gradient_is_the_derivative_by_z(name, X, z):
    mirror, direction = MIRRORS[name], np.array([[0.31], [0.77]])
    weights = np.array([0.7, -1.3])

    def moved(t):
        """Return the risk of z + t v, v the direction with these weights."""
        values, at_nodes = (
            KERNEL(x, NODES) @ z + t * KERNEL(x, direction) @ weights for x in (X, NODES)
        )
        return objective(mirror, values, at_nodes, X)

    a, b = gradient_of(z, X, mirror=mirror)
    inner = (a @ KERNEL(X, direction) + b @ KERNEL(NODES, direction)) @ weights
    assert_allclose(inner, derivative(moved), rtol=1e-7)


@pytest.mark.parametrize("name", MIRRORS)
def test_kernel_embedding_is_the_derivative_by_f(name, X, z):
    mirror, direction = MIRRORS[name], np.array([[0.45]])

    def moved(t):
        f, at_nodes = (
            mirror(KERNEL(x, NODES) @ z, x)[0] + t * KERNEL(x, direction)[:, 0] for x in (X, NODES)
        )
        return objective(spppot.euclidean, f, at_nodes, X)

    a, b = gradient_of(z, X, mirror=mirror, gradient="kernel_embedding")
    inner = a @ KERNEL(X, direction) + b @ KERNEL(NODES, direction)
    assert_allclose(inner, [derivative(moved)], rtol=1e-7)


@pytest.mark.parametrize("name", MIRRORS)
def test_sign_is_that_of_the_derivative_at_each_node(name, X, z):
    mirror, x = MIRRORS[name], X[:30]
    z = 0.1 * z if name == "kl" else z  # so that the density is too low here and too high there
    a, b = gradient_of(z, x, mirror=mirror, gradient="sign")
    assert not a.any()
    for node, value in zip(NODES, b, strict=True):

        def moved(t, node=node):
            values, at_nodes = (
                KERNEL(y, NODES) @ z + t * KERNEL(y, node[None])[:, 0] for y in (x, NODES)
            )
            return objective(mirror, values, at_nodes, x)

        assert value == np.sign(derivative(moved)) / len(NODES)
    assert len(set(b)) == 2


def test_printed_gradients_of_the_kl_map(X, z):
    f, at_nodes = np.exp(KERNEL(X, NODES) @ z), np.exp(KERNEL(NODES, NODES) @ z)
    a, b = gradient_of(z, X)
    assert_array_equal(a, np.full(len(X), -1 / len(X)))
    assert_allclose(b, at_nodes / 8, rtol=1e-15)
    a, b = gradient_of(z, X, gradient="kernel_embedding")
    assert_allclose(a, -1 / f / len(X), rtol=1e-15)
    assert_array_equal(b, np.full(8, 1 / 8))


def test_uniform_start_has_mean_1():
    weights = spppot.uniform_start(NODES, KERNEL)
    assert np.ptp(weights) == 0
    assert_allclose((KERNEL(NODES, NODES) @ weights).mean(), 1)


@pytest.mark.parametrize("level", [-800.0, -20.0, 0.0])
def test_no_sample_moves_the_function_by_more_than_one_kernel(level):
    """At -800 the density underflows, and at 0 that of the Euclidean map vanishes."""
    x, z = NODES[3:4], np.linalg.solve(KERNEL(NODES, NODES), np.full(len(NODES), level))
    z = z if level else np.zeros(len(NODES))
    mirror = spppot.kl if level else spppot.euclidean
    a, _ = gradient_of(z, x, eta=0.1, mirror=mirror, gradient="kernel_embedding")
    assert_allclose(-0.1 * a, 1.0)


# -- Algorithm 1 -----------------------------------------------------------------------------------


@pytest.mark.parametrize("gradient", ["likelihood", "kernel_embedding", "sign"])
def test_a_step_goes_down_the_gradient(gradient, X, z):
    eta, shrink = 0.3, 0.05
    fit = algorithm1(
        X, NODES, KERNEL, eta=eta, batch=90, gradient=gradient, regularization=shrink, start=z
    )
    a, b = gradient_of(z, X, eta=eta, gradient=gradient)
    step = KERNEL(PROBES, X) @ a + KERNEL(PROBES, NODES) @ b
    expected = (1 - eta * shrink) * KERNEL(PROBES, NODES) @ z - eta * step
    assert_allclose(fit.z(PROBES, average=False), expected, atol=1e-14)
    assert fit.orders == [8 if gradient == "sign" else 98]


@pytest.mark.parametrize(("mirror", "gradient"), [("kl", "likelihood"), ("euclidean", "sign")])
def test_dual_averaging_is_mirror_descent_in_other_units(mirror, gradient, X, z):
    eta = 0.2
    given = {"eta": eta, "batch": 7, "gradient": gradient, "mirror": MIRRORS[mirror], "start": z}
    for budget in (0.0, 0.01):
        direct = algorithm1(X, NODES, ROUGH, budget=budget, **given)
        dual = algorithm1(X, NODES, ROUGH, budget=budget / eta, method="dual_averaging", **given)
        assert_array_equal(dual.points, direct.points)
        assert_allclose(dual.weights, direct.weights, atol=1e-10)
        assert_allclose(dual.average, direct.average, atol=1e-10)


def test_another_domain_is_the_same_problem(X):
    given = {"eta": 0.2, "batch": 7, "budget": 0.01}
    unit = algorithm1(X, NODES, ROUGH, **given)
    wide = algorithm1(5 * X - 2, midpoints(8, [(-2, 3)]), laplacian(1.5), **given)
    assert_allclose(wide.points, 5 * unit.points - 2)
    assert_allclose(wide.average, unit.average, atol=1e-8)


def test_last_batch_of_an_epoch_is_the_rest(X):
    fit = algorithm1(X, NODES, KERNEL, eta=0.2, batch=40, epochs=2)
    assert fit.orders == [48, 88, 98, 98, 98, 98]
    assert_array_equal(fit.points, np.vstack([NODES, X]))


@pytest.mark.parametrize("recency", [3, 9])
def test_average_weighs_iterates_by_a_power_of_their_number(recency):
    iterates = np.random.default_rng(0).normal(size=(20, 4))
    fit = spppot.Fit(KERNEL, NODES, iterates[0], np.full(4, 5.0))
    for t, fit.weights in enumerate(iterates, start=1):
        spppot.average(fit, t, recency)
    share = np.array([prod(range(t, t + recency)) for t in range(1, 21)], dtype=float)
    assert_allclose(fit.average, share @ iterates / share.sum(), rtol=1e-12)


def test_average_is_projected_as_the_last_iterate_is():
    random = np.random.default_rng(2)
    points = random.uniform(0, 1, size=(12, 1))
    weights, mean = random.normal(size=(12, 1)), random.normal(size=(12, 1))
    fit = spppot.Fit(ROUGH, points, weights, mean)
    spppot.compress(fit, 0.6, eta=1.0, protected=3)
    assert 3 < len(fit.points) < 11
    for before, after in ((weights, fit.weights), (mean, fit.average)):
        residual = ROUGH(fit.points, points) @ before - ROUGH(fit.points, fit.points) @ after
        assert_allclose(residual, 0, atol=1e-12)  # orthogonal to what is left


def test_a_point_that_is_there_already_has_its_weight_raised(z):
    x = np.vstack([NODES[2:3], [[0.4]], [[0.4]]])
    fit = algorithm1(x, NODES, KERNEL, eta=0.3, batch=3, start=z)
    a, b = gradient_of(z, x, eta=0.3)
    step = KERNEL(PROBES, x) @ a + KERNEL(PROBES, NODES) @ b
    assert fit.orders == [9]
    assert_allclose(fit.z(PROBES), KERNEL(PROBES, NODES) @ z - 0.3 * step, atol=1e-14)


# -- compression -----------------------------------------------------------------------------------


@pytest.mark.parametrize("protected", [0, 5])
@pytest.mark.parametrize("budget", [0.35, 0.6, 1.0])
def test_komp_is_the_brute_force_one(budget, protected):
    random = np.random.default_rng(3)
    points, weights = random.uniform(0, 1, size=(12, 1)), random.normal(size=(12, 2))
    gram = laplacian(0.3)(points, points)
    found = brute_force_komp(exact(gram), exact(weights), budget, protected=range(protected))
    assert 0 < len(found.removed) < 12 - protected
    kept = spppot.komp(gram, weights, budget, protected)
    assert kept.tolist() == found.kept
    fitted = spppot.projection(gram, weights, kept)
    spent = spppot.squared_distance(gram, weights, kept, fitted)
    assert_allclose(np.sqrt(spent), float(found.error), rtol=1e-8)
    if not protected:
        left, refitted = least_squares_komp(gram, weights, budget)
        assert_array_equal(kept, left)
        assert_allclose(fitted, refitted, atol=1e-9)


def test_compression_keeps_within_its_budget(X):
    given = {"eta": 0.5, "batch": 30}
    nodes = midpoints(4)
    free = algorithm1(X[:30], nodes, ROUGH, **given)
    tight = algorithm1(X[:30], nodes, ROUGH, budget=0.02, **given)
    assert 4 < len(tight.points) < 34
    assert_array_equal(tight.points[:4], nodes)
    both = np.vstack([free.points, tight.points])
    weights = np.concatenate([free.weights, -tight.weights])
    assert 0 < weights @ ROUGH(both, both) @ weights <= 0.02**2


def test_adaptive_budget_follows_the_printed_rule():
    budget = AdaptiveBudget(2e-3, target=105, lowest=1e-3, highest=2.1e-3)
    changes = {125: 2e-3 * 1.02, 95: 2e-3 * 1.02 * 0.99, 1000: 2.1e-3, 0: 2.1e-3 * 0.9}
    for order, expected in changes.items():
        budget.observe(order)
        assert_allclose(budget.alpha, expected, rtol=1e-14)
    for _ in range(20):
        budget.observe(0)
    assert budget.alpha == 1e-3


def test_adaptive_budget_reads_the_order_after_each_batch(X):
    budget = AdaptiveBudget(0.01, target=9)
    fit = algorithm1(X, midpoints(4), ROUGH, eta=0.5, batch=10, budget=budget)
    alpha = 0.01
    for order, eps in zip(fit.orders, fit.budgets, strict=True):
        assert_allclose(eps, 0.5 * alpha, rtol=1e-14)
        alpha *= 1 + (order - 9) * 0.001
    assert len(set(fit.orders)) > 1
    assert budget.alpha == 0.01  # the caller's is left alone


# -- Algorithms 3 and 4 ----------------------------------------------------------------------------


def test_newton_gradient_is_the_derivative_of_a_samples_loss(X, z):
    nodes, g = midpoints(20), spppot.newton_gradient(z, X[0], NODES, midpoints(20), KERNEL)
    for j, direction in enumerate(np.eye(len(NODES))):

        def moved(t, direction=direction):
            w = z + t * direction
            return -KERNEL(X[:1], NODES)[0] @ w + np.exp(KERNEL(nodes, NODES) @ w).mean()

        assert_allclose(g[j], derivative(moved), rtol=1e-7, atol=1e-9)


def test_newton_is_that_of_an_inverse_kept_by_sherman_and_morrison(X):
    nodes, eta, delta = midpoints(16), 1.5, 0.5
    w, inverse = np.zeros(len(NODES)), np.eye(len(NODES)) / delta
    for x in X:
        g = spppot.newton_gradient(w, x, NODES, nodes, KERNEL)
        s = inverse @ g
        inverse -= np.outer(s, s) / (1 + g @ s)
        w = w - eta * inverse @ g
    fit = algorithm3(X, NODES, nodes, KERNEL, eta=eta, delta=delta)
    assert_allclose(fit.weights, w, rtol=1e-9)


def test_newton_comes_near_the_batch_fit(X):
    nodes = midpoints(20)  # with the dictionary for nodes, the risk would have no minimum

    def risk(w):
        return -(KERNEL(X, NODES) @ w).mean() + np.exp(KERNEL(nodes, NODES) @ w).mean()

    best = minimize(risk, np.zeros(len(NODES)), method="BFGS").fun
    fit = algorithm3(X, NODES, nodes, KERNEL, eta=1.0, epochs=20)
    assert risk(np.zeros(len(NODES))) > best + 0.4
    assert risk(fit.average) < best + 0.015


@pytest.mark.parametrize(
    ("orders", "stable"),
    [
        ([50, 50], False),  # too few
        ([9, 50, 52, 51], True),
        ([9, 50, 53, 51], False),
        ([200, 204, 201], True),  # 2 %
        ([200, 205, 201], False),
        ([50, 53, 52, 51], True),  # a new band begins where the old one is left
        ([50, 51, 53, 54, 52, 55], False),
        ([1, 9, 20, 30, 40, 50, 60], True),  # the cap
    ],
)
def test_stable_is_two_points_or_two_percent(orders, stable):
    assert spppot.is_stable(orders, patience=3, cap=7) == stable


@pytest.mark.parametrize(("patience", "cap"), [(4, 99), (99, 7)])
def test_hybrid_is_one_after_the_other(X, patience, cap):
    nodes = midpoints(4)
    first, second = {"eta": 0.5, "batch": 20, "budget": 0.05}, {"eta": 1.0, "delta": 2.0}
    fit, taken = spppot.algorithm4(
        X,
        nodes,
        ROUGH,
        first=first,
        second=second,
        quadrature=lambda order: midpoints(2 * order),
        patience=patience,
        cap=cap,
        epochs=4,
    )
    every = algorithm1(X, nodes, ROUGH, epochs=4, **first)
    count = next(
        t for t in range(1, 20) if spppot.is_stable(every.orders[:t], patience=patience, cap=cap)
    )
    assert 5 < count < 15
    assert taken == 90 * (count // 5) + 20 * (count % 5)  # the last of 5 batches has 10 samples
    found = algorithm1(
        X, nodes, ROUGH, epochs=4, until=lambda orders: len(orders) == count, **first
    )
    assert found.orders == every.orders[:count]
    assert len(found.points) > len(nodes)
    rest, finer = np.vstack([X] * 4)[taken:], midpoints(2 * len(found.points))
    expected = algorithm3(rest, found.points, finer, ROUGH, start=found.average, **second)
    assert_array_equal(fit.points, found.points)
    assert_array_equal(fit.average, expected.average)


# -- the classifier --------------------------------------------------------------------------------


def test_classifier_gradient_is_the_derivative_by_f():
    random = np.random.default_rng(0)
    z, y = random.normal(size=(6, 4)), np.array([0, 1, 2, 3, 0, 1])
    gradient = spppot.classifier_gradient(z, y)
    for i in range(6):
        for c in range(4):

            def moved(t, i=i, c=c):
                f = np.exp(z[i])
                f[c] += t
                return np.log(np.exp(f).sum()) - f[y[i]]

            assert_allclose(gradient[i, c], derivative(moved), rtol=1e-7)


def test_classifier_begins_with_equal_classes(X):
    y = np.arange(len(X)) % 3
    fit = spppot.classifier(X, y, KERNEL, classes=3, eta=3.0, batch=90)
    expected = np.where(y[:, None] == np.arange(3), 2 / 3, -1 / 3) * 3.0 / 90
    assert_allclose(fit.weights, expected, rtol=1e-14)


@pytest.mark.parametrize("budget", [0.0, 0.2, AdaptiveBudget(0.05, target=12)])
def test_classifier_learns(budget):
    X = np.random.default_rng(0).uniform(0, 1, size=(300, 1))
    y = (3 * X[:, 0]).astype(int)
    fit = spppot.classifier(X, y, ROUGH, classes=3, eta=4.0, epochs=2, budget=budget)
    assert (fit.z(PROBES).argmax(axis=1) == (3 * PROBES[:, 0]).astype(int)).mean() > 0.9
    assert (len(fit.points) < 30) == (budget != 0.0)

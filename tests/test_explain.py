"""prototypes and shapley_values: sums that are predictions, shares that are exact."""

import itertools
import math

import numpy as np
import pytest
from export_common import of_kernel
from numpy.testing import assert_allclose
from polk_common import GIVEN, task
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import parsimon
from parsimon import KernelExpansion, kernels
from parsimon.explain import prototypes, shapley_values


def brute_force(f, x, background):
    """Return Shapley values by their definition, over all subsets of the features."""
    count, points = len(x), f.dictionary

    def factor(j, value):
        row = np.array(x)
        row[j] = value
        away = np.zeros(count)
        away[j] = 1
        # A sample that fits the points everywhere but in feature j.
        return np.array([f.kernel(np.where(away, row, p)[None], p[None])[0, 0] for p in points])

    known = np.stack([factor(j, x[j]) for j in range(count)])
    unknown = np.ones_like(known)
    if background is not None:
        means = [[factor(j, row[j]) for row in background] for j in range(count)]
        unknown = np.array(means).mean(axis=1)

    def value(subset):
        product = np.prod([(known if j in subset else unknown)[j] for j in range(count)], axis=0)
        return product @ f.weights

    shares = np.zeros((count, f.weights.shape[1]))
    for j in range(count):
        others = [i for i in range(count) if i != j]
        for size in range(count):
            weight = math.factorial(size) * math.factorial(count - size - 1) / math.factorial(count)
            for subset in itertools.combinations(others, size):
                shares[j] += weight * (value({*subset, j}) - value(set(subset)))
    return shares


@pytest.mark.parametrize("with_background", [False, True])
@pytest.mark.parametrize("features", [1, 2, 5])
@pytest.mark.parametrize("kind", [kernels.Gaussian, kernels.Laplacian])
def test_shares_are_those_of_the_definition(kind, features, with_background):
    random = np.random.default_rng(0)
    kernel = kind(random.uniform(0.5, 2, features))
    f = KernelExpansion(kernel, random.normal(size=(6, features)), random.normal(size=(6, 2)))
    X = random.normal(size=(3, features))
    background = random.normal(size=(4, features)) if with_background else None
    found = shapley_values(f, X, background=background)
    expected = [brute_force(f, x, background) for x in X]
    assert_allclose(found.values, expected, rtol=0, atol=1e-14)
    assert_allclose(found.base + found.values.sum(axis=1), f(X), atol=1e-13)


def test_sums_products_and_multiples_of_kernels():
    random = np.random.default_rng(0)
    a, b = kernels.Gaussian(0.8), kernels.Laplacian([1.0, 2.0, 3.0])
    D, W, X = (random.normal(size=(5, n)) for n in (3, 1, 3))
    f, g, h = (KernelExpansion(kernel, D, W) for kernel in (a, b, a * b))
    mixed = KernelExpansion(2.0 * a + b * (a + 0.5 * b) + 3.0 * kernels.Constant(), D, W)
    squared = KernelExpansion(b * b, D, W)
    expected = 2 * shapley_values(f, X).values + shapley_values(h, X).values
    expected = expected + 0.5 * shapley_values(squared, X).values
    found = shapley_values(mixed, X)
    assert_allclose(found.values, expected, atol=1e-14)
    assert_allclose(found.base + found.values.sum(axis=1), mixed(X)[:, 0], atol=1e-13)
    assert_allclose(shapley_values(g, X).values, shapley_values(1.0 * g, X).values)


def test_far_from_all_points_nothing_is_divided_by_zero():
    f = KernelExpansion(kernels.Gaussian(0.01), np.zeros((2, 3)), [1.0, 2.0])
    found = shapley_values(f, [[9.0, 9.0, 9.0]])
    assert_allclose(found.values, np.full((1, 3), -1.0), atol=1e-12)
    assert found.base == 3.0


def test_a_pipeline_is_explained_in_its_own_units():
    X, y = task()
    model = make_pipeline(StandardScaler(), parsimon.POLKRegressor(random_state=0))
    model.fit(X * 50 + 3, y)
    found = shapley_values(model, X[:5] * 50 + 3, background=X * 50 + 3)
    assert_allclose(found.base + found.values.sum(axis=1), model.predict(X[:5] * 50 + 3))


def test_other_kernels_are_refused():
    with pytest.raises(ValueError, match="products over the features, which Cauchy"):
        shapley_values(of_kernel(kernels.Cauchy(1.0)), [[0.0, 0.0]])


def test_contributions_add_up_to_the_prediction():
    X, y = task()
    for model in (
        parsimon.POLKClassifier(**GIVEN).fit(X, y),
        parsimon.POLKRegressor(random_state=0).fit(X, y),
        parsimon.POLKOneClass().fit(X),
    ):
        found = prototypes(model, X[:20], n_prototypes=3)
        total = found.contributions.sum(axis=1) + found.rest + found.intercept
        assert_allclose(total, found.values)
        sizes = np.abs(found.contributions)
        assert (np.diff(sizes, axis=1) <= 0).all()
        if isinstance(model, parsimon.POLKClassifier):
            assert_allclose(found.values, model.decision_function(X[:20]).max(axis=1))
        elif isinstance(model, parsimon.POLKRegressor):
            assert_allclose(found.values, model.predict(X[:20]))


def test_few_points_are_all_prototypes():
    f = KernelExpansion(kernels.Gaussian(1.0), [[0.0], [1.0]], [2.0, -1.0])
    found = prototypes(f, [[0.9]], n_prototypes=9)
    assert found.points.tolist() == [[0, 1]]
    assert found.rest == pytest.approx(0)


def test_what_cannot_be_explained_is_refused():
    X, y = task()
    model = parsimon.POLKClassifier(**GIVEN).fit(X, y)
    with pytest.raises(ValueError, match="X has 1 features, but the model has 2"):
        prototypes(model, [[1.0]])
    with pytest.raises(ValueError, match="output must be an integer from 0 to 4; got 5"):
        prototypes(model, X, output=5)
    with pytest.raises(ValueError, match="n_prototypes must be an integer of at least 1"):
        prototypes(model, X, n_prototypes=0)
    small, _ = parsimon.compress(SVC().fit(X, y), max_points=5)
    with pytest.raises(ValueError, match="say which output"):
        prototypes(small, X)
    assert prototypes(small, X, output=0).values.shape == (len(X),)

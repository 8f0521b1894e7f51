"""The comparators for densities: against the transcriptions, closed forms and the figures known."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from spppot_reference import algorithm1, euclidean, gaussian, midpoints

from bench.baselines import intensity
from parsimon import DivergenceError

BANDWIDTH, SIZE = 0.06, 8  # narrow, so that the Gram matrices of the transcriptions are regular
PROBES = midpoints(50)


@pytest.fixture(name="baselines")
def _baselines():
    return intensity


@pytest.fixture(name="X")
def _samples():
    return np.random.default_rng(0).beta(3, 5, size=(200, 1))


def toy(seed=0, count=10_000):
    """Draw from a Gaussian of standard deviation 0.1 in the middle of the unit interval."""
    return np.random.default_rng(seed).normal(0.5, 0.1, size=(count, 1)).clip(1e-3, 1 - 1e-3)


def true_density(X):
    return np.exp(-50 * (X[:, 0] - 0.5) ** 2) * 10 / np.sqrt(2 * np.pi)


def shuffled(X, seed):
    return X[np.random.default_rng(seed).permutation(len(X))]


def test_grids_are_made_of_midpoints(baselines):
    assert_array_equal(baselines.midpoints(5, [(0, 1), (2, 4)]), midpoints(5, [(0, 1), (2, 4)]))


# -- batch -----------------------------------------------------------------------------------------


def test_batch_gradient_is_the_derivative(baselines, X):
    model = baselines.BatchIntensity(BANDWIDTH, SIZE, ridge=0.3)
    kernel, nodes = gaussian(BANDWIDTH), midpoints(SIZE)
    mean, gram = kernel(X, nodes).mean(axis=0), kernel(nodes, nodes)
    w = np.random.default_rng(0).normal(size=SIZE)
    value, gradient = model.objective(w, mean, gram)
    expected = (
        -(kernel(X, nodes) @ w).mean() + np.exp(gram @ w).mean() + 0.15 * np.linalg.norm(w) ** 2
    )
    assert_allclose(value, expected, rtol=1e-13)
    for j, axis in enumerate(1e-5 * np.eye(SIZE)):
        up, down = (model.objective(w + step, mean, gram)[0] for step in (axis, -axis))
        assert_allclose((up - down) / 2e-5, gradient[j], rtol=1e-6, atol=1e-9)


def test_batch_fit_is_a_minimum(baselines, X):
    model = baselines.BatchIntensity(BANDWIDTH, SIZE).fit(X)
    kernel, nodes = gaussian(BANDWIDTH), midpoints(SIZE)
    given = kernel(X, nodes).mean(axis=0), kernel(nodes, nodes)
    best, gradient = model.objective(model.weights_, *given)
    assert np.abs(gradient).max() < 1e-7
    assert best < model.objective(np.zeros(SIZE), *given)[0] - 0.3
    assert_allclose(model.score_samples(PROBES), kernel(PROBES, nodes) @ model.weights_)


def test_batch_fit_of_the_toy(baselines):
    model = baselines.BatchIntensity(0.0065**0.5, 100).fit(toy())
    density = np.exp(model.score_samples(PROBES))
    assert np.sqrt(np.mean((density - true_density(PROBES)) ** 2)) < 0.08
    assert_allclose(model.integral_, 1, atol=0.002)


def test_squared_gradient_is_the_derivative(baselines, X):
    model = baselines.SquaredIntensity(BANDWIDTH, SIZE, scale=0.4, ridge=0.3)
    random = np.random.default_rng(0)
    samples, nodes, c = random.random((30, 4)), random.random((9, 4)), random.random(4)
    value, gradient = model.objective(c, samples, nodes)
    f_samples, f_nodes = 0.4 * (samples @ c) ** 2, 0.4 * (nodes @ c) ** 2
    assert_allclose(value, -np.log(f_samples).mean() + f_nodes.mean() + 0.15 * c @ c, rtol=1e-13)
    for j, axis in enumerate(1e-5 * np.eye(4)):
        up, down = (model.objective(c + step, samples, nodes)[0] for step in (axis, -axis))
        assert_allclose((up - down) / 2e-5, gradient[j], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("scale", [0.15, 1.0])
def test_squared_fit_of_the_toy(baselines, scale):
    model = baselines.SquaredIntensity(0.0065**0.5, 100, scale=scale).fit(toy())
    density = np.exp(model.score_samples(PROBES))
    assert np.sqrt(np.mean((density - true_density(PROBES)) ** 2)) < 0.08
    assert_allclose(model.integral_, 1, atol=0.005)


@pytest.mark.parametrize("name", ["BatchIntensity", "GridPMD", "PrimalPOLK"])
def test_another_box_is_the_same_problem(baselines, name, X):
    plane = np.hstack([X, shuffled(X, 1)])
    kind = getattr(baselines, name)
    given = {} if name == "BatchIntensity" else {"random_state": 0, "epochs": 1}
    unit = kind(BANDWIDTH, 5, **given).fit(plane)
    wide = kind(4 * BANDWIDTH, 5, [(-1, 3), (10, 14)], **given).fit(4 * plane + [-1, 10])
    assert unit.model_order_ == 25
    assert_allclose(wide.integral_, unit.integral_, rtol=1e-4)
    assert_allclose(
        wide.score_samples(4 * plane + [-1, 10]),
        unit.score_samples(plane) - np.log(16),
        rtol=1e-3,
        atol=1e-3,
    )


# -- streams ---------------------------------------------------------------------------------------


def test_pmd_is_algorithm_1_without_sample_points(baselines, X):
    model = baselines.GridPMD(
        BANDWIDTH, SIZE, learning_rate=0.02, batch_size=4, epochs=1, random_state=3
    ).fit(X)
    expected = algorithm1(
        shuffled(X, 3),
        midpoints(SIZE),
        gaussian(BANDWIDTH),
        eta=0.02,
        batch=4,
        budget=1e9,
        gradient="kernel_embedding",
    )
    assert_array_equal(expected.points, midpoints(SIZE))
    assert np.ptp(expected.z(PROBES, average=False)) > 0.3
    assert_allclose(model.score_samples(PROBES), expected.z(PROBES, average=False), atol=1e-9)


def test_pmd_bounds_the_increment_of_a_sample_if_asked(baselines):
    """All samples at one node and a large step: without a bound, log f rises as 1/f allows."""
    X = np.full((4, 1), 0.5 / SIZE)
    given = {"learning_rate": 5.0, "batch_size": 1, "epochs": 1}
    free = baselines.GridPMD(BANDWIDTH, SIZE, **given).fit(X)
    bound = baselines.GridPMD(BANDWIDTH, SIZE, largest_increment=1.0, **given).fit(X)
    drift = 5.0 * gaussian(BANDWIDTH)(X[:1], midpoints(SIZE)).mean()
    assert_allclose(bound.score_samples(X[:1]), 4 - 4 * drift, atol=1e-8)
    assert free.score_samples(X[:1]) > bound.score_samples(X[:1])


def test_pmd_on_the_toy(baselines):
    model = baselines.GridPMD(0.0065**0.5, 100, learning_rate=0.012, random_state=0).fit(toy())
    density = np.exp(model.score_samples(PROBES))
    assert np.sqrt(np.mean((density - true_density(PROBES)) ** 2)) < 0.1
    assert_allclose(model.integral_, 1, atol=0.02)


def test_pmd_that_diverges_says_so(baselines):
    with pytest.raises(DivergenceError, match="learning_rate smaller than 50"):
        baselines.GridPMD(0.0065**0.5, 100, learning_rate=50.0).fit(toy(count=1000))


def test_polk_in_the_primal_is_algorithm_1_with_the_euclidean_map(baselines, X):
    kernel, nodes = gaussian(BANDWIDTH), midpoints(SIZE)
    given = {"learning_rate": 0.02, "batch_size": 4, "random_state": 3}
    model = baselines.PrimalPOLK(BANDWIDTH, SIZE, start="uniform", epochs=1, **given).fit(X)
    expected = algorithm1(
        shuffled(X, 3),
        nodes,
        kernel,
        eta=0.02,
        batch=4,
        budget=1e9,
        mirror=euclidean,
        gradient="kernel_embedding",
        start=np.linalg.solve(kernel(nodes, nodes), np.ones(SIZE)),
    )
    values = expected.z(PROBES, average=False)
    assert np.ptp(values) > 0.5
    assert_allclose(model.function(PROBES), values, atol=1e-8)
    start = baselines.PrimalPOLK(BANDWIDTH, SIZE, epochs=0, **given).fit(X)
    assert_allclose(start.function(PROBES), -0.02 * kernel(PROBES, nodes).mean(axis=1))


@pytest.mark.parametrize("start", ["printed", "uniform"])
def test_polk_in_the_primal_goes_negative(baselines, start):
    model = baselines.PrimalPOLK(0.0065**0.5, 100, start=start, random_state=0).fit(toy())
    values, scores = model.function(PROBES), model.score_samples(PROBES)
    assert model.negative_fraction_ > 0.2
    assert_allclose((values < 0).mean(), model.negative_fraction_, atol=0.05)
    assert_allclose(values.mean(), model.integral_, rtol=0.01, atol=0.02)
    assert_array_equal(np.isneginf(scores), values <= 0)
    assert_allclose(np.exp(scores[values > 0]), values[values > 0])


def test_polk_starts_from_the_uniform_density_if_asked(baselines, X):
    model = baselines.PrimalPOLK(
        0.0065**0.5, 100, start="uniform", learning_rate=1e-9, epochs=1
    ).fit(X)
    assert_allclose(model.function(PROBES), 1, atol=0.01)

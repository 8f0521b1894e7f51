"""parsimon.KernelExpansion; cpp/tests/test_expansion.cpp has the exact arithmetic."""

import copy
import doctest
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from parsimon import KernelExpansion, expansion, kernels

KERNELS = [
    kernels.Gaussian(0.5),
    kernels.Gaussian([0.5, 2.0, 1.0]),
    kernels.Laplacian(0.7),
    kernels.Matern(0.6, 0.5),
    kernels.Matern(0.6, 2.5),
    kernels.Cauchy(0.4),
    kernels.Polynomial(3, 0.5, 1.0),
    kernels.Linear(),
    kernels.Gaussian(0.5) + 2.0 * kernels.Linear() * kernels.Cauchy(1.0),
]


def make(kernel, count=12, outputs=2, seed=0):
    rng = np.random.default_rng(seed)
    shape = (count, outputs) if outputs else count
    return KernelExpansion(kernel, rng.random((count, 3)), rng.normal(size=shape))


def test_doctests():
    assert doctest.testmod(expansion).failed == 0


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_values_inner_products_and_distances(kernel):
    f, g = make(kernel), make(kernel, 9, seed=1)
    x = np.random.default_rng(2).random((300, 3))
    # Sums of a dozen terms of size 1 to 100.
    assert_allclose(f(x), kernel(x, f.dictionary) @ f.weights, atol=1e-12)
    inner = np.sum(f.weights * (kernel(f.dictionary, g.dictionary) @ g.weights))
    assert f.inner(g) == pytest.approx(inner, rel=1e-12, abs=1e-12)
    assert g.inner(f) == pytest.approx(inner, rel=1e-12, abs=1e-12)
    assert f.norm() == pytest.approx(np.sqrt(f.inner(f)), rel=1e-14)
    squared = f.inner(f) - 2 * inner + g.inner(g)
    assert f.distance(g) == pytest.approx(np.sqrt(squared), rel=1e-10)
    assert f.distance(f) == 0.0


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_vector_space(kernel):
    f, g = make(kernel), make(kernel, 9, seed=1)
    x = np.random.default_rng(2).random((20, 3))
    assert_allclose((f + g)(x), f(x) + g(x), atol=1e-12)
    assert_allclose((f - g)(x), f(x) - g(x), atol=1e-12)
    assert_allclose((2 * f - g * 0.5 + (-g))(x), 2 * f(x) - 1.5 * g(x), atol=1e-12)
    assert (f - f).norm() == 0.0
    assert (f + g).model_order == 21
    assert (f + f).model_order == 12
    assert (f - g).norm() == pytest.approx(f.distance(g), rel=1e-14)
    assert isinstance(np.float64(2) * f, KernelExpansion)
    assert (f * np.int32(3)).norm() == pytest.approx(3 * f.norm())


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_gradients_are_derivatives(kernel):
    f, flat = make(kernel), make(kernel, outputs=0)
    x = np.random.default_rng(3).random((7, 3))
    step = 1e-5 * np.eye(3)
    gradient = f.gradient(x)
    assert gradient.shape == (7, 2, 3)
    assert flat.gradient(x).shape == (7, 3)
    for feature in range(3):
        # Right to 1e-10 or so, relative to second derivatives of size 100.
        difference = (f(x + step[feature]) - f(x - step[feature])) / 2e-5
        assert_allclose(gradient[:, :, feature], difference, atol=1e-6)
        difference = (flat(x + step[feature]) - flat(x - step[feature])) / 2e-5
        assert_allclose(flat.gradient(x)[:, feature], difference, atol=1e-6)


@pytest.mark.parametrize("outputs", [0, 1, 3])
def test_shapes_are_those_of_the_weights(outputs):
    f = make(kernels.Gaussian(0.5), 5, outputs)
    shape = (outputs,) if outputs else ()
    assert f.weights.shape == (5, *shape)
    assert f(np.zeros((4, 3))).shape == (4, *shape)
    assert (f + f).weights.shape == (5, *shape)
    assert f.gradient(np.zeros((4, 3))).shape == (4, *shape, 3)
    assert f(np.zeros((0, 3))).shape == (0, *shape)


@pytest.mark.parametrize("outputs", [0, 2])
def test_the_zero_function(outputs):
    shape = (0, outputs) if outputs else 0
    zero = KernelExpansion(kernels.Gaussian(0.5), np.zeros((0, 3)), np.zeros(shape))
    f = make(kernels.Gaussian(0.5), 5, outputs)
    x = np.random.default_rng(4).random((6, 3))
    assert zero.model_order == 0
    assert zero.norm() == 0.0
    assert_array_equal(zero(x), 0 * f(x))
    assert_array_equal(zero.gradient(x), 0 * f.gradient(x))
    assert zero.distance(f) == pytest.approx(f.norm(), rel=1e-14)
    assert_array_equal((f + zero).weights, f.weights)
    assert (zero + f).model_order == 5
    assert (zero * 2.0).model_order == 0


def test_data_far_from_zero():
    rng = np.random.default_rng(5)
    points, weights = np.round(rng.random((10, 2)) * 4096) / 4096, rng.normal(size=10)
    near = KernelExpansion(kernels.Gaussian(0.5), points, weights)
    far = KernelExpansion(kernels.Gaussian(0.5), points + 1e8, weights)
    assert_array_equal(far(points + 1e8), near(points))
    assert far.norm() == near.norm()
    assert_array_equal(far.gradient(points + 1e8), near.gradient(points))


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_data_of_any_size(scale):
    rng = np.random.default_rng(6)
    points, weights = rng.random((10, 2)), rng.normal(size=10)
    near = KernelExpansion(kernels.Gaussian(0.5), points, weights)
    far = KernelExpansion(kernels.Gaussian(0.5 * scale), points * scale, weights)
    assert_allclose(far(points * scale), near(points), rtol=1e-12)
    assert far.norm() == pytest.approx(near.norm(), rel=1e-12)
    assert_allclose(far.gradient(points * scale) * scale, near.gradient(points), rtol=1e-11)


def test_it_is_immutable():
    points, weights = np.zeros((2, 1)), np.array([1.0, 2.0])
    f = KernelExpansion(kernels.Gaussian(0.5), points, weights)
    points[0] = 5.0
    weights[0] = 5.0
    f.weights[0] = 7.0
    f.dictionary[0] = 7.0
    assert_array_equal(f.weights, [1.0, 2.0])
    assert_array_equal(f.dictionary, np.zeros((2, 1)))
    with pytest.raises(AttributeError):
        f.model_order = 3


@pytest.mark.parametrize("outputs", [0, 2])
@pytest.mark.parametrize("count", [0, 5])
def test_copies_and_pickles(outputs, count):
    f = make(kernels.Gaussian(0.5) + kernels.Linear(), count, outputs)
    for g in (copy.copy(f), copy.deepcopy(f), pickle.loads(pickle.dumps(f))):
        assert_array_equal(g.weights, f.weights)
        assert g.weights.shape == f.weights.shape
        assert_array_equal(g.dictionary, f.dictionary)
        assert g.kernel == f.kernel
        assert g.distance(f) == 0.0


def test_it_prints_what_it_is():
    assert repr(make(kernels.Linear(), 4, 0)) == "KernelExpansion(Linear(), model_order=4)"
    assert repr(make(kernels.Linear(), 4, 2)).endswith("model_order=4, n_outputs=2)")


def test_a_kernel_written_in_python():
    kernel = kernels.Function(lambda a, b: np.exp(-((a[:, None] - b[None]) ** 2).sum(axis=-1)))
    f, g = make(kernel), make(kernels.Gaussian(np.sqrt(0.5)))
    x = np.random.default_rng(7).random((20, 3))
    assert_allclose(f(x), g(x), atol=1e-13)
    assert f.norm() == pytest.approx(g.norm(), rel=1e-13)
    with pytest.raises(ValueError, match="without a gradient"):
        f.gradient(x)


@pytest.mark.parametrize(
    ("dictionary", "weights", "message"),
    [
        ([[0.0], [np.nan]], [1.0, 2.0], "NaN"),
        ([[0.0], [np.inf]], [1.0, 2.0], "infinity"),
        ([[0.0], [1.0]], [1.0, np.nan], "NaN"),
        ([[0.0], [1.0]], [1.0, 2.0, 3.0], "2 points"),
        ([0.0, 1.0], [1.0, 2.0], "Expected 2D array"),
        ([[0.0], [1.0]], np.zeros((2, 2, 2)), "dim 3"),
        ([["a"], ["b"]], [1.0, 2.0], "could not convert"),
    ],
)
def test_bad_functions(dictionary, weights, message):
    with pytest.raises(ValueError, match=message):
        KernelExpansion(kernels.Gaussian(1.0), dictionary, weights)


def test_functions_that_cannot_be_compared():
    f = make(kernels.Gaussian(0.5))
    others = [
        (make(kernels.Gaussian(0.6)), "different kernels"),
        (make(kernels.Gaussian(0.5), outputs=3), "outputs"),
        (make(kernels.Gaussian(0.5), outputs=0), "one dimension"),
        (KernelExpansion(kernels.Gaussian(0.5), np.zeros((2, 2)), np.ones((2, 2))), "features"),
    ]
    for other, message in others:
        for operation in (f.inner, f.distance, f.__add__, f.__sub__):
            with pytest.raises(ValueError, match=message):
                operation(other)
    for operation in (f.inner, f.distance):
        with pytest.raises(TypeError, match="int"):
            operation(3)
    with pytest.raises(TypeError):
        f + 1
    with pytest.raises(TypeError):
        f * f
    with pytest.raises(TypeError):
        f * "2"
    with pytest.raises(TypeError, match="rbf"):
        KernelExpansion("rbf", [[0.0]], [1.0])


def test_bad_points_and_factors():
    f = make(kernels.Gaussian(0.5))
    for call in (f, f.gradient):
        with pytest.raises(ValueError, match="features"):
            call(np.zeros((2, 4)))
        with pytest.raises(ValueError, match="NaN"):
            call([[0.0, np.nan, 0.0]])
        with pytest.raises(ValueError, match="2D"):
            call([0.0, 1.0, 2.0])
    for factor in (np.nan, np.inf):
        with pytest.raises(ValueError, match="finite"):
            f * factor
    with pytest.raises(ValueError, match="finite"):
        (f * 1e300) * 1e300
    with pytest.raises(ValueError, match="finite"):
        (f * 1.7e308) + (f * 1.7e308)

"""parsimon.kernels against scikit-learn and against exact arithmetic."""

import copy
import pickle

import mpmath
import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise

from parsimon import kernels
from parsimon.kernels import (
    Cauchy,
    Constant,
    Function,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Product,
    Scaled,
    StudentT,
    Sum,
    from_description,
    from_name,
)

ELEMENTARY = [
    Gaussian(0.7),
    Gaussian([0.5, 1.0, 2.0]),
    Laplacian(1.5),
    Laplacian([0.5, 1.0, 2.0]),
    Matern(2.0, 0.5),
    Matern(2.0, 1.5),
    Matern([1.0, 2.0, 3.0], 2.5),
    Cauchy(0.3),
    StudentT(1.5, 4.0),
    Polynomial(2, 0.5, 0.0),
    Linear(),
    Constant(),
    Gaussian() + 0.3 * Constant(),
]
COMPOSITE = [
    Gaussian() + Linear(),
    Gaussian() * Linear() * Cauchy(),
    0.5 * Gaussian(),
    (Gaussian() + Linear()) * (2.0 * Matern()) + 3.0 * (Linear() * Cauchy()) + Linear(),
    2.0 * (Gaussian() + 0.1 * Polynomial()),
    Sum([Gaussian()]),
    Product([Gaussian()]),
]


@pytest.fixture
def points():
    rng = np.random.default_rng(0)
    return rng.normal(size=(20, 3)), rng.normal(size=(30, 3))


@pytest.mark.parametrize(
    ("kernel", "reference"),
    [
        (Gaussian(0.7), lambda X, Y: pairwise.rbf_kernel(X, Y, gamma=1 / (2 * 0.7**2))),
        (Gaussian([0.5, 1.0, 2.0]), gp.RBF([0.5, 1.0, 2.0])),
        (Laplacian(1.5), lambda X, Y: pairwise.laplacian_kernel(X, Y, gamma=1 / 1.5)),
        (Matern(2.0, 0.5), gp.Matern(2.0, nu=0.5)),
        (Matern(2.0, 1.5), gp.Matern(2.0, nu=1.5)),
        (Matern([1.0, 2.0, 3.0], 2.5), gp.Matern([1.0, 2.0, 3.0], nu=2.5)),
        (Cauchy(0.3), gp.RationalQuadratic(0.3 / np.sqrt(2), alpha=1.0)),
        (StudentT(1.5, 4.0), gp.RationalQuadratic(1.5 * np.sqrt(4 / 5), alpha=2.5)),
        (Polynomial(3, 0.5, 2.0), lambda X, Y: pairwise.polynomial_kernel(X, Y, 3, 0.5, 2.0)),
        (Linear(), pairwise.linear_kernel),
        (Gaussian() + 2.0 * Linear(), gp.RBF() + 2.0 * gp.DotProduct(0.0)),
        (Gaussian() * Matern(), gp.RBF() * gp.Matern()),
    ],
    # A function has no name that is the same in every process.
    ids=lambda part: repr(part) if isinstance(part, kernels.Kernel) else "reference",
)
def test_equals_scikit_learn(kernel, reference, points):
    X, Y = points
    np.testing.assert_allclose(kernel(X, Y), reference(X, Y), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel(X), reference(X, X), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel.diag(X), np.diag(kernel(X)), rtol=1e-14)


@pytest.mark.parametrize("features", [1, 5, 40])
@pytest.mark.parametrize("offset", [0.0, 1e6, 1e8])
def test_data_far_from_zero(offset, features):
    rng = np.random.default_rng(1)
    X = offset + rng.normal(size=(6, features))
    Y = np.vstack([X[:2], X[2:3] + 1e-7, offset + rng.normal(size=(3, features))])
    h = np.sqrt(features)
    with mpmath.workdps(40):
        distances = [
            [mpmath.norm([mpmath.mpf(a) - b for a, b in zip(x, y, strict=True)]) / h for y in Y]
            for x in X
        ]
        gaussian = [[float(mpmath.exp(-(r**2) / 2)) for r in row] for row in distances]
        matern = [[float(mpmath.exp(-r)) for r in row] for row in distances]
    np.testing.assert_allclose(Gaussian(h)(X, Y), gaussian, rtol=1e-12)
    np.testing.assert_allclose(Matern(h, 0.5)(X, Y), matern, rtol=1e-12)
    assert Matern(h, 0.5)(X, Y)[0, 0] == 1.0


@pytest.mark.parametrize("scale", [1e-150, 1e150])
@pytest.mark.parametrize("make", [Gaussian, Laplacian, Matern, Cauchy, StudentT])
def test_tiny_and_huge_data(make, scale, points):
    X, Y = points
    np.testing.assert_allclose(make(2.0 * scale)(X * scale, Y * scale), make(2.0)(X, Y), rtol=1e-13)


@pytest.mark.parametrize("kernel", ELEMENTARY + COMPOSITE, ids=repr)
def test_is_a_value(kernel):
    again = eval(repr(kernel), vars(kernels))
    assert again == kernel
    assert again is not kernel
    assert hash(again) == hash(kernel)
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    assert copy.copy(kernel) == copy.deepcopy(kernel) == clone(kernel, safe=False) == kernel
    assert from_description(kernel.core.describe()) == kernel
    assert pickle.loads(pickle.dumps(kernel.core)).describe() == kernel.core.describe()


def test_different_kernels_differ():
    everything = ELEMENTARY + COMPOSITE
    assert len(set(everything)) == len(everything)
    assert Gaussian(1) == Gaussian(1.0) == Gaussian(np.float32(1)) == Gaussian()
    assert Gaussian(1.0) != Cauchy(1.0)
    assert Gaussian(1.0) != "gaussian(1)"
    assert Gaussian(np.array([1, 2])) == Gaussian((1.0, 2.0)) != Gaussian(1.0)


def test_is_immutable():
    kernel = Gaussian(1.0)
    with pytest.raises(AttributeError):
        kernel.bandwidth = 2.0
    with pytest.raises(AttributeError):
        kernel.core = Linear().core


def test_sums_products_and_multiples_are_merged():
    a, b, c = Gaussian(), Linear(), Cauchy()
    assert a + b + c == a + (b + c) == Sum([a, b, c])
    assert a * b * c == a * (b * c) == Product([a, b, c])
    assert 2 * a == a * 2.0 == np.float64(2) * a == a * np.float64(2) == Scaled(2.0, a)
    assert 2 * (3 * a) == 6 * a
    assert sum(range(100), start=0) * 0.01 * a == Scaled(49.5, a)
    many = a
    for _ in range(200):
        many = many + b
    assert from_description(many.core.describe()) == many


@pytest.mark.parametrize("other", [None, "a", 1j, [1.0], object()])
def test_operators_refuse_what_is_not_a_kernel(other):
    with pytest.raises(TypeError):
        Gaussian() + other
    with pytest.raises(TypeError):
        other * Gaussian()
    with pytest.raises(TypeError):
        Gaussian() + 1.0


def test_nesting_is_bounded():
    kernel = Linear()
    for _ in range(32):
        kernel = (kernel + Gaussian()) * Cauchy()
    with pytest.raises(ValueError, match="64 deep"):
        kernel + Gaussian()


class Estimator(BaseEstimator):
    def __init__(self, kernel=None):
        self.kernel = kernel


def test_is_a_good_hyper_parameter():
    estimator = Estimator(kernel=Gaussian(1.0) + Linear())
    assert clone(estimator).kernel == estimator.kernel
    assert estimator.set_params(kernel=Gaussian(2.0)).get_params() == {"kernel": Gaussian(2.0)}
    assert repr(estimator) == "Estimator(kernel=Gaussian(bandwidth=2.0))"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(0.0), "positive finite number, but 0"),
        (lambda: Gaussian(-1), "positive finite number, but -1"),
        (lambda: Gaussian(np.nan), "positive finite number, but nan"),
        (lambda: Laplacian(np.inf), "positive finite number, but inf"),
        (lambda: Cauchy([1.0, 0.0]), "positive finite number, but 0"),
        (lambda: Gaussian([]), "list is empty"),
        (lambda: Gaussian("wide"), "'wide' was given"),
        (lambda: Gaussian(None), "None was given"),
        (lambda: Gaussian([[1.0]]), r"\[\[1.0\]\] was given"),
        (lambda: Gaussian([[1.0], [1.0, 2.0]]), "one for each feature"),
        (lambda: Gaussian(1j), "1j was given"),
        (lambda: Matern(1.0, 1.0), "0.5, 1.5 or 2.5, but 1 was given"),
        (lambda: Matern(1.0, "rough"), "'rough' was given"),
        (lambda: StudentT(1.0, 0.0), "degrees of freedom"),
        (lambda: Polynomial(0), "integer from 1"),
        (lambda: Polynomial(2.5), "integer from 1"),
        (lambda: Polynomial(10**30), "integer from 1"),
        (lambda: Polynomial(2, gamma=0.0), "gamma"),
        (lambda: Polynomial(2, coef0=-1.0), "coef0"),
        (lambda: 0.0 * Linear(), "factor"),
        (lambda: -1.0 * (2.0 * Linear()), "factor"),
        (lambda: Scaled("two", Linear()), "'two' was given"),
        (lambda: Scaled(2.0, "linear"), "'linear' was given"),
        (lambda: Sum([]), "at least one"),
        (lambda: Sum([Linear(), 1.0]), "must be kernels"),
        (lambda: Function("minimum"), "must be callable"),
        (lambda: Function(max, gradient=1), "must be callable"),
        (lambda: from_name("sigmoid"), "rbf, gaussian, laplacian"),
        (lambda: from_name("rbf", gamma=0.0), "gamma must be positive"),
        (lambda: from_name("rbf", gamma="scale"), "gamma must be a number"),
        (lambda: from_description("function(f)"), "give the kernel again"),
        (lambda: from_description("gaussian(1) "), "could not be read"),
        (lambda: from_description("__import__('os')"), "no kernel named"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        ([[np.nan]], None, "NaN"),
        ([[np.inf]], None, "infinity"),
        ([1.0, 2.0], None, "2D array"),
        ([["a"]], None, "could not convert"),
        ([[1.0, 2.0]], [[1.0]], "2 and 1 features"),
        ([[1.0]], [[np.nan]], "NaN"),
        (np.empty((3, 0)), None, "0 feature"),
    ],
)
def test_bad_points(X, Y, message):
    with pytest.raises(ValueError, match=message):
        Gaussian()(X, Y)


def test_bandwidths_must_match_the_features():
    with pytest.raises(ValueError, match="3 bandwidths"):
        Gaussian([1.0, 2.0, 3.0])([[1.0, 2.0]])
    with pytest.raises(ValueError, match="1 bandwidths"):
        (Linear() + Gaussian([1.0])).diag([[1.0, 2.0]])


@pytest.mark.parametrize("kernel", ELEMENTARY + COMPOSITE, ids=repr)
def test_no_points_and_any_layout(kernel, points):
    X, Y = points
    assert kernel(np.empty((0, 3)), Y).shape == (0, 30)
    assert kernel(X, np.empty((0, 3))).shape == (20, 0)
    assert kernel.diag(np.empty((0, 3))).shape == (0,)
    expected = kernel(X, Y)
    wide = np.zeros((40, 6))
    wide[::2, ::2] = X
    np.testing.assert_array_equal(kernel(wide[::2, ::2], np.asfortranarray(Y)), expected)
    np.testing.assert_allclose(kernel(X.astype(np.float32), Y), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(kernel(X.tolist(), Y.tolist()), expected)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rbf", Gaussian(0.5)),
        ("gaussian", Gaussian(0.5)),
        ("laplacian", Laplacian(0.5)),
        ("matern", Matern(0.5, 2.5)),
        ("cauchy", Cauchy(0.5)),
        ("poly", Polynomial(4, 2.0, 0.5)),
        ("polynomial", Polynomial(4, 2.0, 0.5)),
        ("linear", Linear()),
    ],
)
def test_names(name, expected, points):
    gamma = 4.0 if name == "cauchy" else 2.0
    kernel = from_name(name, gamma=gamma, degree=4, coef0=0.5, nu=2.5)
    assert type(kernel) is type(expected)
    np.testing.assert_allclose(kernel(*points), expected(*points), rtol=1e-14)
    if name in pairwise.PAIRWISE_KERNEL_FUNCTIONS and name != "linear":
        more = {"degree": 4, "coef0": 0.5} if name.startswith("poly") else {}
        reference = pairwise.pairwise_kernels(*points, metric=name, gamma=gamma, **more)
        np.testing.assert_allclose(kernel(*points), reference, rtol=1e-11)


@pytest.mark.parametrize("gamma", [1e-300, 1e300])
def test_extreme_gamma(gamma):
    assert from_name("rbf", gamma=gamma)([[0.0]], [[gamma**-0.5]])[0, 0] == pytest.approx(
        np.exp(-1)
    )


@pytest.mark.parametrize("kernel", ELEMENTARY + COMPOSITE, ids=repr)
def test_gradient(kernel, points):
    X, Y = points
    weights = np.random.default_rng(2).normal(size=(20, 30))
    gradient = kernel.core.gradient(X, Y, weights)
    step = 1e-5
    for f in range(3):
        up, down = Y.copy(), Y.copy()
        up[:, f] += step
        down[:, f] -= step
        slope = (weights * (kernel(X, up) - kernel(X, down))).sum(axis=0) / (2 * step)
        np.testing.assert_allclose(gradient[:, f], slope, rtol=1e-5, atol=1e-6)

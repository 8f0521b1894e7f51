"""How far samples are from the span of a dictionary: `distance`, against 60 digits."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from polk_common import curve, task
from scipy import sparse
from sklearn.exceptions import NotFittedError

import parsimon
from parsimon import KernelExpansion, kernels

mp = mpmath.mp.clone()
mp.dps = 60

EPSILON = np.finfo(float).eps


def exact_squares(points, places, width):
    """Return squared distances for a Gaussian kernel, what kernel values that are rounded can tell
    of them, and the condition of the Gram matrix.
    """

    def kernel(a, b):
        squared = sum((mp.mpf(float(u)) - mp.mpf(float(v))) ** 2 for u, v in zip(a, b, strict=True))
        return mp.exp(-squared / (2 * mp.mpf(width) ** 2))

    gram = mp.matrix([[kernel(a, b) for b in points] for a in points])
    squares, blurs = [], []
    for place in places:
        values = mp.matrix([kernel(point, place) for point in points])
        # d^2 = k(x, x) - 2 a'k + a'K a at its smallest.
        coefficients = mp.lu_solve(gram, values)
        squares.append(1 - sum(a * v for a, v in zip(coefficients, values, strict=True)))
        blurs.append((1 + sum(abs(a) for a in coefficients)) ** 2)
    values = mp.eigsy(gram, eigvals_only=True)
    condition = float(max(values) / min(values))
    return np.array(squares, dtype=float), EPSILON * np.array(blurs, dtype=float), condition


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize(("count", "least_condition"), [(10, 1e7), (12, 1e10)])
def test_distances_have_the_digits_that_a_difference_can_have(count, least_condition, offset):
    points = np.linspace(0, 1, count)[:, None] + offset
    places = np.linspace(-0.3, 1.3, 30)[:, None] + offset
    f = KernelExpansion(kernels.Gaussian(0.3), points, np.ones(count))
    wanted, blur, condition = exact_squares(points, places, 0.3)
    assert condition > least_condition
    assert (abs(f.distance_to_span(places) ** 2 - wanted) <= 4 * blur).all()
    # Between the points that is next to nothing.
    assert (blur[np.abs(places[:, 0] - offset - 0.5) < 0.4] < 1e-13).all()


def test_several_features():
    random = np.random.default_rng(0)
    points, places = random.normal(size=(15, 3)), random.normal(size=(40, 3))
    f = KernelExpansion(kernels.Gaussian(2.0), points, np.ones(15))
    wanted, blur, condition = exact_squares(points, places, 2.0)
    assert condition > 1e3
    assert (abs(f.distance_to_span(places) ** 2 - wanted) <= 4 * blur).all()


@pytest.mark.parametrize(
    "kernel",
    [
        kernels.Gaussian(0.5),
        kernels.Laplacian(0.7),
        kernels.Matern(0.6, 2.5),
        kernels.Polynomial(3, 0.5, 1.0),
        kernels.Linear(),
        kernels.Gaussian(0.5) + 0.3 * kernels.Constant(),
    ],
    ids=repr,
)
def test_nothing_of_a_point_of_the_dictionary_lies_outside(kernel):
    random = np.random.default_rng(0)
    points = random.normal(size=(300, 3))
    points[100:200] = points[:100]  # copies
    points[200:] = points[:100] + 1e-9  # and almost copies
    f = KernelExpansion(kernel, points, random.normal(size=300))
    size = np.sqrt(kernel.diag(points))
    assert (f.distance_to_span(points) <= 1e-6 * size).all()
    places = random.normal(size=(50, 3))
    distances = f.distance_to_span(places)
    assert (distances >= 0).all()
    assert (distances <= np.sqrt(kernel.diag(places)) * (1 + 1e-12)).all()


def test_far_from_all_points_and_without_any_the_norm_is_the_distance():
    kernel = 4.0 * kernels.Gaussian(1.0)
    f = KernelExpansion(kernel, [[0.0, 0.0]], [1.0])
    assert_allclose(f.distance_to_span([[100.0, 0.0]]), [2.0])
    empty = KernelExpansion(kernel, np.empty((0, 2)), np.empty(0))
    assert_allclose(empty.distance_to_span([[1.0, 0.0], [0.0, 3.0]]), [2.0, 2.0])
    assert f.distance_to_span(np.empty((0, 2))).shape == (0,)


def test_a_kernel_of_few_dimensions_spans_everything():
    points = np.random.default_rng(0).normal(size=(20, 4))
    f = KernelExpansion(kernels.Linear(), points, np.ones(20))
    places = 1e3 * np.random.default_rng(1).normal(size=(20, 4))
    assert (f.distance_to_span(places) <= 1e-6 * np.linalg.norm(places, axis=1)).all()


ESTIMATORS = {
    "POLKClassifier": (task, {"epochs": 1, "refit": False}),
    "POLKRegressor": (curve, {"gamma": 0.5, "dtype": "float32", "refit": False}),
    # Points that merge come as near to each other as they like.
    "BSGDClassifier": (task, {"epochs": 1, "max_points": 30, "random_state": 0}),
    "BSGDRegressor": (curve, {"epochs": 1}),
    "COLKClassifier": (task, {"epochs": 1}),
    "COLKRegressor": (curve, {"epochs": 1}),
    "SPPPOTClassifier": (task, {"epochs": 1}),
    "SLKLRegressor": (curve, {"n_columns": 50}),
    "SLKLClassifier": (task, {"n_columns": 50}),
    "SPPPOTIntensity": (curve, {"epochs": 1}),
    "MirrorNewtonIntensity": (curve, {"epochs": 1}),
    "HybridIntensity": (curve, {"epochs": 2}),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_says_how_far_samples_are_from_what_it_knows(name):
    data, given = ESTIMATORS[name]
    X, y = data()
    X, y = X[:300], y[:300]
    model = getattr(parsimon, name)(**given).fit(X, y)
    distances = model.distance(X)
    assert distances.shape == (300,)
    # About another origin, which matters where points are nearly dependent.
    assert_allclose(distances, model.expansion_.distance_to_span(X), atol=2e-4)
    # Single precision sees points that are apart by less as one.
    rounding = 1e-2 if given.get("dtype") == "float32" else 1e-6
    assert (model.distance(model.dictionary_) < rounding).all()
    far = model.distance(X + 1e3 * X.std())
    assert (far > 0.9).all()
    with pytest.raises(NotFittedError):
        getattr(parsimon, name)().distance(X)
    with pytest.raises(ValueError, match="features"):
        model.distance(np.ones((3, X.shape[1] + 1)))


def test_protected_points_outside_the_factor_are_part_of_the_span():
    X = np.random.default_rng(0).uniform(size=(100, 1))
    model = parsimon.SPPPOTIntensity(
        grid_size=100, bandwidth=0.2, domain=(0, 1), solver="sgd"
    ).partial_fit(X)
    assert model.model_order_ >= 100  # of which numerical rank allows a third
    assert (model.distance(model.nodes_) < 1e-6).all()


def test_the_value_function_of_a_policy_has_a_span_too():
    X, y = curve()
    model = parsimon.PolicyEvaluator().fit(X[:-1], y[:-1], X[1:])
    assert_allclose(model.distance(X), model.expansion_.distance_to_span(X), atol=1e-7)


def test_sparse_and_single_precision_samples_are_at_the_same_distance():
    X, y = task()
    model = parsimon.POLKClassifier().partial_fit(X, y, classes=range(5))
    assert_array_equal(model.distance(sparse.csr_matrix(X)), model.distance(X))
    assert_array_equal(
        model.distance(X.astype(np.float32)), model.distance(X.astype(np.float32) * 1.0)
    )


def test_a_span_is_found_once_for_a_dictionary():
    X, y = task()
    model = parsimon.POLKClassifier(max_points=20).partial_fit(X[:200], y[:200], classes=range(5))
    span = model._model.span()
    model.predict(X)
    assert model._model.span() is span
    points = model.dictionary_
    model.partial_fit(X[200:], y[200:])
    assert not np.array_equal(model.dictionary_, points)
    assert model._model.span() is not span
    assert_allclose(model.distance(X), model.expansion_.distance_to_span(X), atol=1e-7)


def test_points_at_which_the_kernel_is_not_finite_are_refused():
    f = KernelExpansion(kernels.Polynomial(9, 1.0, 1.0), [[1.0]], [1.0])
    with pytest.raises(ValueError, match="not finite at these points"):
        f.distance_to_span([[1e200]])
    with pytest.raises(ValueError, match="2 features, but the dictionary's have 1"):
        f.distance_to_span([[1.0, 2.0]])

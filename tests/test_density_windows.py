"""Windows and features that go round."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from test_solved_density import finely

import parsimon
from parsimon import HybridIntensity, SPPPOTIntensity, kernels
from parsimon.goodness_of_fit import likelihood_ratio_test
from parsimon.spppot._polygons import Polygons
from parsimon.spppot._window import window_of

TRIANGLE = [(0.0, 0.0), (2.0, 0.0), (0.0, 2.0)]
SQUARE = [(0, 0), (4, 0), (4, 4), (0, 4)]
HOLE = [(1, 1), (3, 1), (3, 3), (1, 3)]
FAST = {"bandwidth": 0.4, "regularization": 1e-3}


def in_triangle(count, seed=0):
    X = 2 * np.random.RandomState(seed).rand(4 * count, 2)
    return X[X.sum(axis=1) < 2][:count]


def is_low(X):
    return X.sum(axis=1) < 2


# -- windows ---------------------------------------------------------------------------------------


def test_rings_within_others_are_holes():
    X = np.array([[0.5, 0.5], [2, 2], [3.5, 2], [5, 2], [2, 0.5]])
    assert_array_equal(window_of([SQUARE, HOLE]).contains(X), [True, False, True, False, True])
    # Whatever their direction, and the first corner may be the last, too.
    closed = [*reversed(SQUARE), SQUARE[-1]]
    solid = Polygons([np.array(closed, float)])
    assert_array_equal(solid.contain(X), [True, True, True, False, True])
    holed = window_of([SQUARE, HOLE])
    share = holed.shares([np.linspace(0, 4, 9), np.linspace(0, 8, 9)])
    assert share.mean() == pytest.approx(12 / 32)
    assert holed.volume(np.array([[0.0, 4.0], [0.0, 8.0]])) == pytest.approx(12)
    assert holed.volume(np.array([[-1.0, 2.0], [0.5, 9.0]])) == pytest.approx(5)


@pytest.mark.parametrize("window", [TRIANGLE, is_low], ids=["polygon", "function"])
def test_all_is_within_the_window(window):
    X = in_triangle(500)
    model = SPPPOTIntensity(domain=[(0, 2), (0, 2)], window=window, **FAST).fit(X)
    assert finely(model, 400) == pytest.approx(1, abs=0.01)
    assert model.integral_ == pytest.approx(1, abs=0.01)
    assert model.volume_ == pytest.approx(2, rel=0.01)
    # Uniform in it: without a window the density falls towards the border.
    assert np.exp(model.score_samples([[0.95, 0.95], [0.3, 0.3]])) == pytest.approx(0.5, abs=0.15)
    assert_array_equal(model.score_samples([[1.5, 1.5]]), -np.inf)
    assert_array_equal(model.intensity([[1.5, 1.5]]), 0)
    assert is_low(model.sample(300, random_state=0)).all()
    assert model.expected_count([(1, 2), (1, 2)]) == 0
    assert model.expected_count([(0, 1), (0, 1)]) == pytest.approx(250, rel=0.1)
    assert likelihood_ratio_test(model, in_triangle(200, seed=1), random_state=0).p_value > 0.01


def test_a_box_is_chosen_around_polygons():
    model = SPPPOTIntensity(window=TRIANGLE, **FAST).fit(in_triangle(200))
    assert_array_equal(model.domain_, [[0, 2], [0, 2]])
    assert_array_equal(model.window_[0], TRIANGLE)
    assert SPPPOTIntensity(domain=(0, 1), **FAST).fit([[0.1], [0.4]]).window_ is None


def test_points_outside_are_left_out():
    X = np.vstack([in_triangle(200), [[1.9, 1.9]]])
    with pytest.warns(UserWarning, match=r"1 of 201 samples are outside .* or the window"):
        model = SPPPOTIntensity(window=TRIANGLE, **FAST).fit(X)
    assert model.n_rejected_ == 1
    with pytest.warns(UserWarning, match="1 of 1 samples"):
        model.partial_fit([[1.9, 1.9]])
    assert model.n_points_ == 200


def test_geometries_of_other_packages():
    class Geometry:
        __geo_interface__ = {"type": "MultiPolygon", "coordinates": [[TRIANGLE], [SQUARE, HOLE]]}

    assert len(window_of(Geometry()).rings) == 3
    assert len(window_of({"type": "Polygon", "coordinates": [SQUARE, HOLE]}).rings) == 2


def test_polygons_are_saved(tmp_path):
    model = SPPPOTIntensity(window=[TRIANGLE], **FAST).fit(in_triangle(200))
    model.save(tmp_path / "model")
    other = parsimon.load(tmp_path / "model")
    X = 2 * np.random.RandomState(1).rand(50, 2)
    assert_array_equal(other.score_samples(X), model.score_samples(X))
    assert_array_equal(other.window_[0], TRIANGLE)
    for estimator in (model, other):
        estimator.partial_fit(in_triangle(50, seed=2))
    assert_array_equal(other.weights_, model.weights_)
    model.set_params(window=is_low)
    with pytest.raises(ValueError, match="cannot be saved because window is"):
        model.save(tmp_path / "model")


@pytest.mark.parametrize(
    ("window", "message"),
    [
        ([(0, 0), (1, 1)], "at least three finite corners"),
        ([(0, 0), (1, 1), (2, 2)], "no area"),
        ([(0, 0), (1, 1), (np.nan, 2)], "at least three finite corners"),
        ([], "a list of corners"),
        ("everywhere", "a list of corners"),
        ({"type": "Point", "coordinates": [0, 0]}, "Polygon or MultiPolygon; got a Point"),
        (lambda X: X[:, 0], "must return True or False for each"),
        (lambda X: X[:, 0] > 5, "None of the samples"),
    ],
)
def test_windows_that_are_none(window, message):
    with pytest.raises(ValueError, match=message):
        SPPPOTIntensity(domain=[(0, 2), (0, 2)], window=window, **FAST).fit(in_triangle(50))


def test_polygons_are_for_the_plane_and_windows_for_what_is_solved():
    with pytest.raises(ValueError, match="for 2 features; X has 1"):
        SPPPOTIntensity(window=TRIANGLE, domain=(0, 1)).fit([[0.5]])
    with pytest.raises(ValueError, match="window and periodic need solver='newton'"):
        SPPPOTIntensity(window=TRIANGLE, solver="sgd").fit(in_triangle(50))


# -- features that go round ------------------------------------------------------------------------


def hours(count, seed=0):
    """Points around midnight."""
    return np.mod(24 + 2 * np.random.RandomState(seed).randn(count, 1), 24)


def test_the_ends_of_a_day_are_the_same():
    given = {"domain": (0, 24), "bandwidth": 1.5, "regularization": 1e-3}
    model = SPPPOTIntensity(periodic=[0], **given).fit(hours(1000))
    at_end, at_start = model.score_samples([[24 - 1e-9], [1e-9]])
    assert at_end == pytest.approx(at_start, abs=1e-6)
    assert_allclose(model.score_samples([[25.0], [-3.0]]), model.score_samples([[1.0], [21.0]]))
    assert model.integral_ == pytest.approx(1, abs=1e-3)
    # The same, wherever the day begins.
    shifted = SPPPOTIntensity(periodic=[0], **given).fit(np.mod(hours(1000) + 12, 24))
    grid = np.linspace(0, 24, 49)[:, None]
    assert_allclose(shifted.intensity(grid + 12), model.intensity(grid), rtol=1e-4, atol=1e-3)
    std = shifted.intensity(grid + 12, return_std=True)[1]
    assert_allclose(std, model.intensity(grid, return_std=True)[1], rtol=1e-4, atol=1e-3)
    straight = SPPPOTIntensity(**given).fit(hours(1000))
    assert model.score(hours(1000, 1)) > straight.score(hours(1000, 1))


def test_the_kernel_that_goes_round_is_a_sum_over_periods():
    model = SPPPOTIntensity(
        domain=(0, 1), periodic=[0], bandwidth=0.3, regularization=0.1, grid_size=4
    )
    span = model.fit(np.random.RandomState(0).rand(20, 1))._span_of(model._model)
    X = np.random.RandomState(1).rand(7, 1)
    rows = span.rows(X)

    def wrapped(x, y):
        every = [np.exp(-0.5 * ((x[:, None] - y + m) / 0.3) ** 2) for m in range(-9, 10)]
        return np.sum(every, axis=0)

    base = np.arange(4) / 4
    across = wrapped(X[:, 0], base)
    assert_allclose(
        rows @ rows.T, across @ np.linalg.solve(wrapped(base, base), across.T), atol=1e-9
    )
    vector = np.random.RandomState(2).randn(span.size)
    assert_allclose(span.coordinates(span.weights(vector)), vector, atol=1e-8)


def test_a_day_in_the_plane_is_chosen_saved_and_goes_on(tmp_path):
    random = np.random.RandomState(0)
    X = np.column_stack([random.rand(600), hours(600)])
    model = HybridIntensity(domain=[(0, 1), (0, 24)], periodic=[1]).fit(X[:500])
    ends = model.score_samples([[0.5, 0.0], [0.5, 24.0], [0.0, 0.0], [1.0, 0.0]])
    assert ends[0] == pytest.approx(ends[1], abs=1e-6)
    model.save(tmp_path / "model")
    other = parsimon.load(tmp_path / "model")
    next_day = X[500:] + np.array([0, 24])
    for estimator in (model, other):
        estimator.partial_fit(next_day)
    assert model.n_rejected_ == 0
    assert_array_equal(other.weights_, model.weights_)
    assert_array_equal(other.score_samples(X), model.score_samples(X))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"periodic": [1]}, "names a feature that is not there; X has 1"),
        ({"periodic": 0}, "must be a list of the features"),
        ({"periodic": "time"}, "must be a list of the features"),
        ({"periodic": [0.5]}, "must be a list of the features"),
        ({"periodic": [0], "domain": "auto"}, "needs a domain, whose width is the period"),
        ({"periodic": [0], "kernel": "matern"}, "a Gaussian kernel"),
        ({"periodic": [0], "kernel": kernels.Cauchy(1.0)}, "a Gaussian kernel"),
        ({"periodic": [0], "parsimony": 0.1}, "neither budget nor parsimony"),
        ({"periodic": [0], "domain": [(0, 1)] * 4}, "at most 3 features"),
        ({"periodic": [0], "solver": "sgd"}, "need solver='newton'"),
    ],
)
def test_features_that_cannot_go_round(given, message):
    with pytest.raises(ValueError, match=message):
        SPPPOTIntensity(**{"domain": (0, 24)} | given).fit(hours(50))

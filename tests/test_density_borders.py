"""Windows whose borders are long, thin, finely drawn or small; and periods that a box goes over."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from parsimon import SPPPOTIntensity
from parsimon.goodness_of_fit import likelihood_ratio_test, quadrat_test, time_rescaling
from parsimon.spppot import _place, _polygons
from parsimon.spppot._polygons import Polygons
from parsimon.spppot._solve import log_integral, log_integrals
from parsimon.spppot._window import pieces, window_of

UNIT = np.array([[0.0, 1.0], [0.0, 1.0]])
FAST = {"bandwidth": 0.4, "regularization": 1e-3}


def star(corners, seed=0):
    random = np.random.RandomState(seed)
    angle = np.sort(2 * np.pi * random.rand(corners))
    radius = 0.2 + 0.3 * random.rand(corners)
    return np.column_stack([0.5 + radius * np.cos(angle), 0.5 + radius * np.sin(angle)])


def shoelace(ring):
    x, y = ring.T
    return abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1))) / 2


def crossed_an_odd_number_of_times(ring, X):
    """The rule itself, one edge after the other."""
    inside = np.zeros(len(X), dtype=bool)
    for (x0, y0), (x1, y1) in zip(ring, np.roll(ring, -1, axis=0), strict=True):
        up = (X[:, 1] - y0) / (y1 - y0)
        inside ^= ((y0 <= X[:, 1]) != (y1 <= X[:, 1])) & (X[:, 0] < x0 + up * (x1 - x0))
    return inside


def in_disc(count, radius, seed=0):
    random = np.random.RandomState(seed)
    angle, far = 2 * np.pi * random.rand(count), radius * np.sqrt(random.rand(count))
    return 0.5 + np.column_stack([far * np.cos(angle), far * np.sin(angle)])


def disc(radius):
    return lambda X: np.hypot(*(X - 0.5).T) < radius


# -- polygons --------------------------------------------------------------------------------------


@pytest.mark.parametrize("corners", [3, 50, 500])
def test_the_rule_of_polygons_is_that_of_crossings(corners):
    ring, X = star(corners), np.random.RandomState(1).rand(3000, 2)
    polygons = Polygons([ring])
    assert_array_equal(polygons.contain(X), crossed_an_odd_number_of_times(ring, X))
    assert polygons.area(UNIT) == pytest.approx(shoelace(ring), rel=1e-12)
    half = np.array([[0.0, 0.5], [0.0, 1.0]])
    other = np.array([[0.5, 1.0], [0.0, 1.0]])
    assert polygons.area(half) + polygons.area(other) == pytest.approx(shoelace(ring), rel=1e-12)


def test_shares_of_cells_are_what_is_inside_of_each():
    polygons = Polygons([star(40)])
    edges = np.array([0.0, 0.1, 0.35, 0.5, 0.8, 1.0]), np.array([0.2, 0.3, 0.6, 0.95])
    found = polygons.shares(*edges).reshape(5, 3)
    for i, j in np.ndindex(found.shape):
        box = np.array([edges[0][i : i + 2], edges[1][j : j + 2]])
        cell = float(np.prod(box[:, 1] - box[:, 0]))
        assert found[i, j] == pytest.approx(polygons.area(box) / cell, abs=1e-4)


def test_rings_that_overlap_have_the_area_of_what_is_within_one_of_them():
    square = np.array([(0, 0), (1, 0), (1, 1), (0, 1)], float)
    tilted = np.array([(0.5, -0.5), (1.5, 0.5), (0.5, 1.5), (-0.5, 0.5)])
    domain = np.array([[-1.0, 2.0], [-1.0, 2.0]])
    assert Polygons([square, tilted]).area(domain) == pytest.approx(2 - 1, rel=1e-4)


def test_many_corners_are_not_compared_with_all_points(monkeypatch):
    compared, pairs = [], _polygons._pairs

    def counted(first, last):
        for edge, item in pairs(first, last):
            compared.append(len(edge))
            yield edge, item

    monkeypatch.setattr(_polygons, "_pairs", counted)
    angle = np.linspace(0, 2 * np.pi, 5000, endpoint=False)
    circle = Polygons([0.5 + 0.4 * np.column_stack([np.cos(angle), np.sin(angle)])])
    X = np.random.RandomState(0).rand(2000, 2)
    inside = circle.contain(X)
    assert_array_equal(inside, np.hypot(*(X - 0.5).T) < 0.4)
    assert sum(compared) < 10 * len(X)


def test_points_on_an_edge_are_inside():
    square = window_of([(0, 0), (1, 0), (1, 1), (0, 1)])
    border = [[1, 0.5], [0.5, 1], [0, 0.5], [0.5, 0], [1, 1], [0, 0], [0, 1], [1, 0]]
    assert square.contains(np.array(border)).all()
    beyond = [[1 + 1e-9, 0.5], [0.5, 1 + 1e-9], [-1e-9, 0.5], [1.5, 1], [-0.5, 0]]
    assert not square.contains(np.array(beyond)).any()
    # Far from the origin, along a slope, where coordinates are rounded.
    corner = np.array([450_000.0, 5_400_000.0])
    slope = window_of((corner + np.array([(0, 0), (700, 0), (0, 300)])).tolist())
    along = np.linspace(0, 1, 101)[:, None]
    assert slope.contains(corner + (1 - along) * [700, 0] + along * [0, 300]).all()
    X = np.vstack([np.random.RandomState(0).rand(100, 2), border])
    model = SPPPOTIntensity(window=[(0, 0), (1, 0), (1, 1), (0, 1)], **FAST).fit(X)
    assert model.n_rejected_ == 0
    assert np.isfinite(model.score_samples(border)).all()


# -- thin and small windows ------------------------------------------------------------------------


@pytest.mark.parametrize("thin", [0.02, 0.002])
def test_thin_windows_along_a_diagonal_integrate_to_one(thin):
    along = np.linspace(0.1, 0.99, 100)
    model = SPPPOTIntensity(window=[(0, 0), (1, 1), (1, 1 - thin)])
    model.fit(np.column_stack([along, (1 - thin / 2) * along]))
    assert model.volume_ == pytest.approx(thin / 2, rel=1e-9)
    # By lines across the triangle, on which a rule of Gauss is nearly exact.
    x, share = np.polynomial.legendre.leggauss(200)
    x, share = (x + 1) / 2, share / 2
    across, part = np.polynomial.legendre.leggauss(10)
    across, part = (across + 1) / 2, part / 2
    nodes = np.column_stack([np.repeat(x, 10), np.outer(x, 1 - thin * across).ravel()])
    weights = np.outer(share * x * thin, part).ravel()
    exact = float(weights @ np.exp(model.score_samples(nodes)))
    assert exact == pytest.approx(1, abs=2e-3)
    assert model.integral_ == pytest.approx(exact, abs=2e-4)
    assert model.expected_count([(0, 0.5), (0, 1)]) + model.expected_count(
        [(0.5, 1), (0, 1)]
    ) == pytest.approx(100 * exact, rel=2e-4)


@pytest.mark.parametrize("radius", [0.3, 0.01])
def test_the_volume_of_a_disc_is_that_of_a_disc(radius):
    window = window_of(disc(radius))
    assert window.volume(UNIT) == pytest.approx(np.pi * radius**2, rel=1e-4)
    assert (np.abs(window.around(UNIT) - 0.5) < radius + 0.005).all()


def test_a_function_of_more_features_has_a_volume_and_one_on_a_line():
    assert window_of(lambda X: X[:, 0] < 0.5).volume(np.array([[0.0, 1.0]])) == pytest.approx(0.5)
    cube = np.array([[0.0, 1.0]] * 4)
    assert window_of(lambda X: X[:, 0] < 0.5).volume(cube) == pytest.approx(0.5, abs=1e-3)


def test_a_small_window_is_compared_with_a_homogeneous_process_in_it():
    near = [(0.4, 0.6), (0.4, 0.6)]
    flat = SPPPOTIntensity(domain=near, window=disc(0.02), bandwidth=0.04, regularization=1e-2)
    held_out = in_disc(100, 0.02, seed=1)
    found = likelihood_ratio_test(flat.fit(in_disc(200, 0.02)), held_out, random_state=0)
    assert found.p_value > 0.01
    aside = held_out[held_out[:, 0] < 0.49]
    steep = SPPPOTIntensity(domain=near, window=disc(0.02), bandwidth=0.02, regularization=1e-3)
    found = likelihood_ratio_test(steep.fit(aside[::2]), aside[1::2], random_state=0)
    assert found.p_value == pytest.approx(0.005)
    assert disc(0.02)(steep.sample(50, random_state=0)).all()


def test_what_is_highest_may_be_outside_the_window():
    values, measure = np.array([900.0, 1.0, 2.0]), np.array([0.0, 0.5, 0.5])
    total, shares = log_integral(values, measure)
    assert total == pytest.approx(np.log((np.exp(1) + np.exp(2)) / 2))
    assert_allclose(shares, [0, 1 / (1 + np.e), np.e / (1 + np.e)])
    both, each = log_integrals(np.stack([values, values + 1]), measure)
    assert_allclose(both, [total, total + 1])
    assert_allclose(each, [shares, shares])


def test_windows_that_are_too_small_to_be_seen_in_their_domain():
    tiny = [(0.5, 0.5), (0.5001, 0.5), (0.5, 0.5001)]
    with pytest.raises(ValueError, match=r"takes 5e-09 of the domain.*closer around"):
        SPPPOTIntensity(domain=UNIT, window=tiny).fit(np.full((30, 2), 0.50002))
    thin = {"window": [(0, 0), (1, 1), (1, 0.998)], "bandwidth": 0.3}
    for given in ({"kernel": "matern"}, {"budget": 0.1}):
        with pytest.raises(ValueError, match="closer around"):
            SPPPOTIntensity(**thin, **given).fit([[0.5, 0.4995], [0.7, 0.6993]])
    assert SPPPOTIntensity(window=tiny, bandwidth=1.0, regularization=1.0).fit(
        [[0.50002, 0.50003]]
    ).volume_ == pytest.approx(5e-9)


def test_edges_that_cross_leave_a_bow_tie_without_an_area():
    with pytest.raises(ValueError, match="its edges cross"):
        SPPPOTIntensity(window=[(0, 0), (1, 1), (1, 0), (0, 1)]).fit([[0.5, 0.7]])


def test_features_of_geojson_are_unwrapped():
    polygon = {"type": "Polygon", "coordinates": [[(0, 0), (1, 0), (0, 1)]]}
    other = {"type": "Polygon", "coordinates": [[(2, 0), (3, 0), (2, 1)]]}
    feature = {"type": "Feature", "properties": {}, "geometry": polygon}
    assert len(window_of(feature).rings) == 1
    every = [feature, {"type": "Feature", "geometry": other}]
    assert len(window_of({"type": "FeatureCollection", "features": every}).rings) == 2
    with pytest.raises(ValueError, match="got a Feature"):
        window_of({"type": "Feature", "geometry": None})


def test_geometries_of_shapely_are_windows():
    geometry = pytest.importorskip("shapely.geometry", reason="shapely is not installed")
    ring = geometry.Point(0.5, 0.5).buffer(0.4).difference(geometry.Point(0.5, 0.5).buffer(0.2))
    model = SPPPOTIntensity(window=ring, **FAST).fit([[0.5, 0.8], [0.2, 0.5], [0.8, 0.4]])
    assert model.volume_ == pytest.approx(ring.area)
    assert model.score_samples([[0.5, 0.5]]) == -np.inf
    two = geometry.MultiPolygon([geometry.box(0, 0, 1, 1), geometry.box(2, 0, 3, 2)])
    assert window_of(two).volume(np.array([[0.0, 3.0], [0.0, 3.0]])) == pytest.approx(3)


# -- periods ---------------------------------------------------------------------------------------


def hours(count, seed=0):
    return np.mod(24 + 3 * np.random.RandomState(seed).randn(count, 1), 24)


def test_a_box_goes_over_the_end_of_a_period():
    given = {"domain": (0, 24), "bandwidth": 1.5, "regularization": 1e-3}
    day = SPPPOTIntensity(periodic=[0], **given).fit(hours(500))
    around = day.expected_count((22, 26))
    assert around == pytest.approx(day.expected_count((22, 24)) + day.expected_count((0, 2)))
    assert around == pytest.approx(int(np.sum(np.abs(hours(500) - 12) >= 10)), rel=0.1)
    assert day.expected_count((-2, 2)) == pytest.approx(around)
    assert day.expected_count((46, 50)) == pytest.approx(around)
    assert day.expected_count((5, 90)) == pytest.approx(500, rel=1e-3)
    # Without a period what is beyond the domain holds nothing.
    straight = SPPPOTIntensity(**given).fit(hours(500))
    assert straight.expected_count((22, 26)) == straight.expected_count((22, 24))


def test_only_features_that_go_round_are_cut():
    box = np.array([[22.0, 26.0], [0.5, 3.0]])
    found = pieces(box, np.array([[0.0, 24.0], [0.0, 1.0]]), np.array([True, False]))
    assert_array_equal(found, [[[22, 24], [0.5, 3]], [[0, 2], [0.5, 3]]])


def test_tests_of_fit_take_hours_of_any_day():
    given = {"domain": (0, 24), "periodic": [0], "bandwidth": 1.5, "regularization": 1e-3}
    day = SPPPOTIntensity(**given).fit(hours(500))
    held_out = hours(200, seed=1)
    for test in (time_rescaling, quadrat_test):
        assert test(day, held_out + 48).p_value == pytest.approx(test(day, held_out).p_value)


# -- long tails and few places ---------------------------------------------------------------------


def test_grids_that_are_long_along_a_feature_are_not_tried(monkeypatch):
    made, span = [], _place.Place.span

    def noted(self, given, scales=1):
        found = span(self, given, scales)
        made.append(max(found.grid.counts))
        return found

    assert _place._MOST_ALONG <= 1024
    monkeypatch.setattr(_place, "_MOST_ALONG", 64)
    monkeypatch.setattr(_place.Place, "span", noted)
    X = 0.5 + 0.001 * np.random.RandomState(0).randn(200, 1)
    X[:, 0] += np.tile([-0.06, -0.02, 0.02, 0.06], 50)
    with pytest.warns(UserWarning, match="Transform features with long tails"):
        SPPPOTIntensity(domain=(0, 1)).fit(X)
    assert 32 < max(made) <= 64 + 2


def test_two_places_make_a_small_grid():
    with pytest.warns(UserWarning, match="400 samples are at 2 places"):
        model = SPPPOTIntensity(domain=(0, 1)).fit(np.repeat([[0.5], [0.3]], 200, axis=0))
    assert model.model_order_ <= 130


def test_spikes_at_rounded_values_are_said():
    counts = np.random.RandomState(0).randint(5, size=(1000, 2)).astype(float)
    with pytest.warns(UserWarning, match="1000 samples are at 25 places.*spikes"):
        SPPPOTIntensity().fit(counts)


def test_a_bandwidth_of_the_wrong_length():
    with pytest.raises(ValueError, match="The bandwidth has 3 numbers, but X has 2 features"):
        SPPPOTIntensity(bandwidth=[0.1, 0.2, 0.3]).fit(np.random.RandomState(0).rand(50, 2))

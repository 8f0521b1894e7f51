"""parsimon.komp against Algorithm 1 in exact arithmetic; cpp/tests/test_komp.cpp has many more."""

import re

import komp_reference as reference
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from parsimon import KernelExpansion, kernels, komp

EPS = np.finfo(float).eps

WELL_CONDITIONED = {
    "gaussian": (kernels.Gaussian(0.1), reference.gaussian(0.1)),
    "laplacian": (kernels.Laplacian(0.5), reference.laplacian(0.5)),
    "matern": (kernels.Matern(0.2, 1.5), reference.matern(0.2, 1.5)),
    "cauchy": (kernels.Cauchy(0.08), reference.cauchy(0.08)),
}
AWKWARD = {
    "gaussian": (kernels.Gaussian(0.4), reference.gaussian(0.4)),
    "matern": (kernels.Matern(0.8, 2.5), reference.matern(0.8, 2.5)),
    "polynomial": (kernels.Polynomial(3, 1.0, 1.0), reference.polynomial(3, 1.0, 1.0)),
}


def magnitude(f, g):
    """Return what the two norms would be at most, without cancellation."""
    return sum(
        np.sum(np.linalg.norm(np.atleast_2d(e.weights.T).T, axis=1) * root)
        for e in (f, g)
        for root in [np.sqrt(np.diag(e.kernel(e.dictionary))) if e.model_order else np.zeros(0)]
    )


def assert_certified(exact_kernel, f, g, report, budget):
    """The kernel is known to a few eps, and so is the cost of each point relative to `magnitude`.

    The cost of a point whose pivot is 1e-13, the smallest accepted, is right to eps / 1e-13.
    """
    assert report.error <= budget
    assert report.model_order == g.model_order == f.model_order - len(report.removed)
    true = float(reference.distance(exact_kernel, f, g))
    noise = (16 + f.model_order) * EPS * magnitude(f, g) ** 2
    assert abs(report.error**2 - true**2) <= noise + 1e-3 * true**2


def awkward_points(rng, count):
    """Return clusters of any tightness, some of them with copies."""
    centres = rng.random((4, 2))[rng.integers(0, 4, count)]
    points = centres + 10 ** rng.uniform(-8, 0) * rng.normal(size=(count, 2))
    copies = rng.random(count) < 0.2
    points[copies] = points[rng.integers(0, count, copies.sum())]
    return points


@pytest.mark.parametrize("name", WELL_CONDITIONED)
@pytest.mark.parametrize("outputs", [1, 5])
@pytest.mark.parametrize("protect", [False, True])
def test_same_removals_in_the_same_order(name, outputs, protect):
    kernel, exact_kernel = WELL_CONDITIONED[name]
    rng = np.random.default_rng(outputs + 10 * protect)
    points, weights = rng.random((14, 2)), rng.normal(size=(14, outputs))
    protected = np.flatnonzero(rng.random(14) < 0.3) if protect else np.zeros(0, dtype=int)
    f = KernelExpansion(kernel, points, weights)
    assert np.linalg.cond(kernel(points)) < 1e4
    for share in (0.1, 0.4, 0.8):
        budget = share * f.norm()
        expected = reference.brute_force_komp(
            reference.gram(exact_kernel, points), reference.exact(weights), budget, set(protected)
        )
        g, report = komp(f, budget, protected)
        assert_array_equal(report.removed, expected.removed)
        assert abs(report.error - float(expected.error)) < 1e-10
        assert_array_equal(g.dictionary, points[expected.kept])
        assert_certified(exact_kernel, f, g, report, budget)
    assert len(report.removed) >= 3


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("seed", range(6))
def test_same_model_order_where_points_are_nearly_dependent(name, seed):
    kernel, exact_kernel = AWKWARD[name]
    rng = np.random.default_rng(seed)
    points = awkward_points(rng, 14)
    weights = rng.normal(size=14)
    f = KernelExpansion(kernel, points, weights)
    budget = 10 ** rng.uniform(-6, -0.5) * magnitude(f, f)
    expected = reference.brute_force_komp(
        reference.gram(exact_kernel, points), reference.exact(weights[:, None]), budget
    )
    g, report = komp(f, budget)
    # The polynomial's space has 10 dimensions: more points cost nothing, and it is chance which of
    # them go first.
    assert report.model_order <= len(expected.kept) + 1
    assert name == "polynomial" or report.model_order >= len(expected.kept) - 1
    assert_certified(exact_kernel, f, g, report, budget)


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("seed", range(10))
def test_the_error_is_the_distance_whatever_the_weights_and_the_budget(name, seed):
    kernel, exact_kernel = AWKWARD[name]
    rng = np.random.default_rng(100 + seed)
    count = int(rng.integers(0, 20))
    points = awkward_points(rng, count) if count else np.zeros((0, 2))
    weights = 10 ** rng.uniform(-6, 6) * rng.normal(size=(count, 2))
    f = KernelExpansion(kernel, points, weights)
    mask = rng.random(count) < 0.3
    for budget in (0.0, 1e-9, 10 ** rng.uniform(-9, 0) * f.norm(), 2 * f.norm() + 1e-9):
        g, report = komp(f, budget, mask)
        assert_certified(exact_kernel, f, g, report, budget)
        assert not np.intersect1d(report.removed, np.flatnonzero(mask)).size


def test_the_certificate_bounds_every_value():
    rng = np.random.default_rng(1)
    f = KernelExpansion(kernels.Gaussian(0.3), rng.random((60, 2)), rng.normal(size=(60, 3)))
    at = rng.uniform(-1, 2, size=(500, 2))
    for budget in (1e-3, 0.1, 2.0):
        g, report = komp(f, budget)
        gap = np.linalg.norm(f(at) - g(at), axis=1)
        assert gap.max() <= report.error * (1 + 1e-9) + 1e-13
        assert g.distance(f) == pytest.approx(report.error, rel=1e-6)


def test_it_is_not_idempotent_and_the_given_function_stays():
    rng = np.random.default_rng(2)
    f = KernelExpansion(kernels.Gaussian(0.3), rng.random((60, 2)), rng.normal(size=60))
    before = f.dictionary, f.weights
    g, first = komp(f, 0.5)
    h, second = komp(g, 0.5)
    assert second.model_order < first.model_order < 60
    assert f.distance(h) <= first.error + second.error + 1e-12
    assert_array_equal(f.dictionary, before[0])
    assert_array_equal(f.weights, before[1])
    assert g.weights.ndim == 1


def test_no_point_one_point_two_points():
    kernel = kernels.Gaussian(1.0)
    g, report = komp(KernelExpansion(kernel, np.zeros((0, 2)), np.zeros(0)), 1.0)
    assert (g.model_order, report.error, len(report.removed)) == (0, 0.0, 0)
    one = KernelExpansion(kernel, [[0.3]], [-2.0])
    assert komp(one, 1.999)[1].model_order == 1
    assert komp(one, 2.0)[1].error == 2.0
    assert komp(one, 2.0, [0])[1].model_order == 1
    k = np.exp(-0.5)
    two = KernelExpansion(kernel, [[0.0], [1.0]], [1.0, 0.5])
    g, report = komp(two, 0.5)
    assert_array_equal(report.removed, [1])
    assert_allclose(report.error, 0.5 * np.sqrt(1 - k * k), rtol=1e-15)
    assert_allclose(g.weights, [1 + 0.5 * k], rtol=1e-15)


def test_fifty_copies_are_one_point():
    f = KernelExpansion(kernels.Gaussian(1.0), np.full((50, 2), 0.3), np.ones(50))
    g, report = komp(f, 1e-3)
    assert_allclose(g.weights, [50.0], rtol=1e-14)
    assert report.error < 1e-6
    g, report = komp(f, 1e-3, protected=[7, 11])
    assert g.model_order == 2
    assert_allclose(g([[0.3, 0.3]]), 50.0, rtol=1e-14)


@pytest.mark.parametrize(
    ("offset", "scale"), [(1e8, 1.0), (-1e8, 1.0), (0.0, 2.0**498), (0.0, 2.0**-498)]
)
def test_offsets_and_powers_of_two_change_no_bit(offset, scale):
    rng = np.random.default_rng(3)
    points = np.round(rng.random((40, 2)) * 4096) / 4096
    weights = rng.normal(size=40)
    plain, expected = komp(KernelExpansion(kernels.Gaussian(0.25), points, weights), 0.5)
    moved, report = komp(
        KernelExpansion(kernels.Gaussian(0.25 * scale), scale * (points + offset), weights), 0.5
    )
    assert len(report.removed) > 5
    assert_array_equal(report.removed, expected.removed)
    assert_array_equal(moved.weights, plain.weights)
    assert report.error == expected.error


def test_protected_points_by_mask_or_position():
    rng = np.random.default_rng(4)
    f = KernelExpansion(kernels.Gaussian(0.3), rng.random((20, 2)), rng.normal(size=20))
    mask = np.zeros(20, dtype=bool)
    mask[[3, 8]] = True
    by_mask, _ = komp(f, 1e3, mask)
    by_position, _ = komp(f, 1e3, [8, 3])
    assert_array_equal(by_mask.dictionary, f.dictionary[[3, 8]])
    assert_array_equal(by_mask.weights, by_position.weights)
    assert komp(f, 1e3, [])[0].model_order == 0


def test_bad_arguments():
    f = KernelExpansion(kernels.Gaussian(0.3), [[0.0], [1.0]], [1.0, 2.0])
    for budget in (-1e-9, np.nan, np.inf):
        with pytest.raises(ValueError, match=re.escape(f"got {budget}")):
            komp(f, budget)
    for protected in ([2], [-1], [0.5], [True], [[0]], "ab"):
        with pytest.raises(ValueError, match=r"mask of shape \(2,\)"):
            komp(f, 0.1, protected)
    with pytest.raises(TypeError, match="ndarray"):
        komp(np.zeros(3), 0.1)


def a_function(points=400, outputs=3):
    random = np.random.default_rng(0)
    X = random.normal(size=(points, 5))
    weights = random.normal(size=(points, outputs)) / points
    return KernelExpansion(kernels.Gaussian(2.0), X, weights)


def test_a_number_of_points_is_met_whatever_it_takes():
    f = a_function()
    errors = []
    for count in (200, 50, 1):
        g, report = komp(f, max_points=count)
        assert g.model_order == report.model_order == count
        assert len(report.removed) == 400 - count
        assert g.distance(f) == pytest.approx(report.error, rel=1e-6)
        errors.append(report.error)
    assert errors == sorted(errors)
    # The budget is spent first; then points go all the same.
    assert komp(f, budget=errors[0], max_points=200)[1].model_order <= 200
    assert komp(f, budget=errors[1], max_points=300)[1].model_order <= 60
    with pytest.raises(ValueError, match="max_points must be an integer of at least 1; got 0"):
        komp(f, max_points=0)


@pytest.fixture
def small_blocks(monkeypatch):
    """Make functions of 300 points large ones."""
    monkeypatch.setattr("parsimon.expansion._MOST_AT_ONCE", 250)


def test_a_large_function_is_compressed_as_well_as_a_small_one(small_blocks, monkeypatch):
    f = a_function()
    for limit in ({"max_points": 100}, {"max_points": 30}, {"budget": 0.1 * f.norm()}):
        g, report = komp(f, **limit)
        assert g.distance(f) == pytest.approx(report.error, rel=1e-6)
        assert len(report.removed) == 400 - g.model_order
        assert len(np.unique(report.removed)) == len(report.removed)
        kept = np.setdiff1d(np.arange(400), report.removed)
        assert (g.dictionary == f.dictionary[kept]).all()
        with monkeypatch.context() as as_before:
            as_before.setattr("parsimon.expansion._MOST_AT_ONCE", 3000)
            whole, exact = komp(f, **limit)
        if "budget" in limit:
            assert report.error <= limit["budget"]
            assert g.model_order <= 1.1 * whole.model_order
        else:
            assert g.model_order == limit["max_points"]
            assert report.error <= 1.1 * exact.error


def test_protected_points_of_a_large_function_stay(small_blocks):
    f = a_function()
    twin = KernelExpansion(
        f.kernel, np.vstack([f.dictionary, f.dictionary[:2]]), np.vstack([f.weights, f.weights[:2]])
    )
    protected = [7, 300, 400, 401]
    g, report = komp(twin, max_points=20, protected=protected)
    assert not set(protected) & set(report.removed.tolist())
    assert g.model_order == 20
    assert g.distance(twin) == pytest.approx(report.error, rel=1e-6)


def test_a_large_function_shows_its_progress(small_blocks, capsys):
    pytest.importorskip("tqdm")
    komp(a_function(), max_points=50, verbose=1)
    assert "points" in capsys.readouterr().err


@pytest.mark.slow
def test_twenty_thousand_points_take_little_memory_and_time():
    import resource
    import time

    random = np.random.default_rng(0)
    X = random.normal(size=(20_000, 20))
    f = KernelExpansion(kernels.Gaussian(4.0), X, random.normal(size=(20_000, 10)) / 1000)
    start, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _, report = komp(f, max_points=500)
    assert report.model_order == 500
    assert time.process_time() - start < 60
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_000_000  # kilobytes

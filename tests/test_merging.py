"""Two points may be replaced by one between them, under the same certificate."""

import mpmath
import numpy as np
import pytest

from parsimon import (
    COLKRegressor,
    KernelExpansion,
    POLKClassifier,
    POLKRegressor,
    kernels,
    komp,
    load,
)
from parsimon.datasets import make_multidist


def exact_distance(f, g, bandwidth):
    """||f - g|| in 60 digits, for a Gaussian kernel."""
    with mpmath.workdps(60):
        points = [[mpmath.mpf(v) for v in row] for row in np.vstack([f.dictionary, g.dictionary])]
        weights = [mpmath.mpf(w) for w in np.concatenate([f.weights, -g.weights])]
        two = 2 * mpmath.mpf(bandwidth) ** 2
        total = mpmath.mpf(0)
        for i, x in enumerate(points):
            for k, y in enumerate(points[: i + 1]):
                d = sum((a - b) ** 2 for a, b in zip(x, y, strict=True))
                total += (1 if i == k else 2) * weights[i] * weights[k] * mpmath.exp(-d / two)
        return float(mpmath.sqrt(abs(total)))


@pytest.mark.parametrize("bandwidth", [0.1, 0.4])
@pytest.mark.parametrize("budget", [0.003, 0.1])
def test_the_error_is_the_distance_in_60_digits(bandwidth, budget):
    random = np.random.default_rng(0)
    x, w = random.uniform(size=(25, 2)), random.normal(size=25) / 5
    f = KernelExpansion(kernels.Gaussian(bandwidth), x, w)
    g, report = komp(f, budget, compression="merge")
    plain, _ = komp(f, budget)
    assert report.error <= budget
    assert report.error == pytest.approx(exact_distance(f, g, bandwidth), rel=1e-4, abs=1e-7)
    assert g.model_order <= plain.model_order
    assert set(report.removed) <= set(range(25))
    kept = np.setdiff1d(np.arange(25), report.removed)
    np.testing.assert_array_equal(g.dictionary[: len(kept)], x[kept])


def test_of_points_of_one_sign_fewer_are_left():
    x = np.linspace(0, 1, 100)[:, None]
    f = KernelExpansion(kernels.Gaussian(0.02), x, np.full(100, 0.01))
    merged, report = komp(f, 0.01, compression="merge")
    plain, _ = komp(f, 0.01)
    assert merged.model_order < plain.model_order
    assert merged.distance(f) == pytest.approx(report.error, rel=1e-4)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("share", [0.02, 0.1, 0.4])
def test_the_error_of_a_large_function_is_its_distance_and_within_the_budget(
    seed, share, monkeypatch
):
    """It once took what merging has made for a part of the span of the points that were chosen."""
    monkeypatch.setattr("parsimon.expansion._MOST_AT_ONCE", 200)
    random = np.random.default_rng(seed)
    points, weights = random.normal(size=(600, 3)), random.random(600) / 600
    f = KernelExpansion(kernels.Gaussian(0.5), points, weights)
    budget = share * f.norm()
    g, report = komp(f, budget, compression="merge")
    assert np.isin(g.dictionary, points).all(axis=1).sum() < g.model_order
    assert report.error == pytest.approx(f.distance(g), rel=1e-8)
    assert f.distance(g) <= budget
    assert g.model_order <= komp(f, budget)[0].model_order
    g, report = komp(f, budget, max_points=10, compression="merge")
    assert g.model_order <= 10
    assert report.error == pytest.approx(f.distance(g), rel=1e-8)


@pytest.mark.parametrize("solver", ["sgd", "newton"])
def test_the_same_budget_makes_a_smaller_model(solver):
    X, y = make_multidist(2500, random_state=0)
    orders, scores = {}, {}
    for compression in ("remove", "merge"):
        model = POLKClassifier(
            compression=compression,
            solver=solver,
            parsimony=0.001,
            learning_rate=6.0,
            gamma=5 / 6,
            random_state=0,
        )
        for start in range(0, 2000, 250):
            model.partial_fit(X[start : start + 250], y[start : start + 250])
        trace = model.trace_
        assert (trace["compression_error"] <= trace["budget"]).all()
        orders[compression] = model.model_order_
        scores[compression] = model.score(X[2000:], y[2000:])
    assert orders["merge"] < orders["remove"]
    assert scores["merge"] > scores["remove"] - 0.03


def test_a_cap_holds(tmp_path):
    X, y = make_multidist(1500, random_state=1)
    model = POLKClassifier(compression="merge", max_points=20, random_state=0)
    model.partial_fit(X[:700], y[:700]).partial_fit(X[700:1000], y[700:1000])
    assert model.model_order_ <= 20
    model.save(tmp_path / "model.npz")
    other = load(tmp_path / "model.npz")
    assert other.compression == "merge"
    for one in (model, other):
        one.partial_fit(X[1000:], y[1000:])
    np.testing.assert_array_equal(model.dictionary_, other.dictionary_)
    np.testing.assert_array_equal(model.weights_, other.weights_)
    assert model.compress(max_points=10) > 0
    assert model.model_order_ == 10


@pytest.mark.parametrize("estimator", [POLKRegressor, COLKRegressor])
@pytest.mark.parametrize("solver", ["sgd", "newton"])
def test_regressors_merge(estimator, solver):
    random = np.random.default_rng(0)
    X = random.uniform(-1, 1, size=(600, 1))
    y = np.sin(6 * X[:, 0])
    model = estimator(compression="merge", solver=solver, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9


def test_words_and_kernels_that_cannot_be():
    X, y = make_multidist(100, random_state=0)
    f = KernelExpansion(kernels.Gaussian(1.0), [[0.0]], [1.0])
    with pytest.raises(ValueError, match="compression must be one of 'remove', 'merge'"):
        POLKClassifier(compression="unite").fit(X, y)
    with pytest.raises(ValueError, match="compression must be one of 'remove', 'merge'"):
        komp(f, 0.1, compression="project")
    kernel = kernels.Function(lambda a, b: np.exp(-((a[:, None] - b[None]) ** 2).sum(2)))
    with pytest.raises(ValueError, match="a kernel that has a gradient"):
        POLKClassifier(compression="merge", kernel=kernel).partial_fit(X, y)

"""What solver="newton" does with every hyper-parameter, and what a stream of it costs."""

import datetime

import numpy as np
import pytest
from intensity_common import INTENSITIES, toy
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import parsimon
from parsimon import (
    HybridIntensity,
    MirrorNewtonIntensity,
    POLKRegressor,
    SPPPOTIntensity,
    _core,
    kernels,
)
from parsimon.schedules import AdaptiveBudget
from parsimon.spppot import _solved
from parsimon.spppot._place import Place

LINE = {"domain": (0, 1), "bandwidth": 0.1, "regularization": 1e-3}


# -- the dictionary that the paper's algorithm finds -----------------------------------------------


@pytest.mark.parametrize("cls", [SPPPOTIntensity, HybridIntensity])
def test_weights_are_solved_on_the_points_that_a_budget_leaves(cls):
    # The budget was ignored.
    given = {**LINE, "grid_size": 12, "bandwidth": 0.03, "epochs": 12, "random_state": 0}
    held = cls(**given, budget=AdaptiveBudget(target=30)).fit(toy())
    assert held.model_order_ == pytest.approx(30, abs=4)
    assert held.integral_ == pytest.approx(1, abs=0.01)
    sparse, dense = (cls(**given, parsimony=alpha).fit(toy()) for alpha in (1.0, 1e-3))
    assert sparse.model_order_ < dense.model_order_
    # Of largest likelihood on its points: no change of the weights is better.
    objective = penalised(held, held.weights_[:, 0])
    for direction in 1e-3 * np.random.RandomState(0).randn(10, held.model_order_):
        assert penalised(held, held.weights_[:, 0] + direction) < objective


def penalised(model, weights):
    grid = (np.arange(4000)[:, None] + 0.5) / 4000
    kernel, points, X = model.kernel_, model.dictionary_, toy()
    norm = weights @ kernel(points) @ weights
    log_integral = np.log(np.exp(kernel(grid, points) @ weights).mean())
    return (kernel(X, points) @ weights).mean() - log_integral - 5e-4 * norm


def test_points_that_were_found_are_saved_and_go_on(tmp_path):
    model = SPPPOTIntensity(**LINE, parsimony=0.1, epochs=1, random_state=0).fit(toy()[:500])
    model.save(tmp_path / "model")
    other = parsimon.load(tmp_path / "model")
    for estimator in (model, other):
        estimator.partial_fit(toy()[500:])
    assert_array_equal(other.weights_, model.weights_)


def test_a_kernel_too_narrow_for_the_points_that_are_found():
    X = np.random.RandomState(0).rand(50, 2)
    model = SPPPOTIntensity(domain=[(0, 1), (0, 1)], bandwidth=0.01, parsimony=0.1)
    with pytest.raises(ValueError, match="more than 16384 nodes"):
        model.fit(X)


@pytest.mark.parametrize(
    ("cls", "name", "value"),
    [
        (SPPPOTIntensity, "mirror", "euclidean"),
        (SPPPOTIntensity, "method", "dual_averaging"),
        (SPPPOTIntensity, "gradient", "sign"),
        (SPPPOTIntensity, "average", False),
        (SPPPOTIntensity, "learning_rate", 0.1),
        (MirrorNewtonIntensity, "damping", 1.0),
        (MirrorNewtonIntensity, "learning_rate", 0.1),
        (HybridIntensity, "newton_learning_rate", 1.0),
        (HybridIntensity, "patience", 5),
        (HybridIntensity, "first_phase", 5),
        (HybridIntensity, "gradient", "sign"),
    ],
)
def test_choices_about_steps_need_steps(cls, name, value):
    with pytest.raises(ValueError, match=f"{name}=.*give it with solver='sgd'"):
        cls(domain=(0, 1), **{name: value}).fit(toy())
    cls(domain=(0, 1), **{name: value}, solver="sgd", epochs=1)._check_parameters()


@pytest.mark.parametrize("cls", [MirrorNewtonIntensity, HybridIntensity])
def test_steps_without_a_half_life_do_not_take_one(cls):
    with pytest.raises(ValueError, match="half_life=50 needs solver='newton'"):
        cls(domain=(0, 1), solver="sgd", half_life=50).fit(toy())


def test_a_kernel_that_is_too_narrow_is_refused_however_it_is_given():
    X = np.random.RandomState(0).rand(50, 2)
    square = [(0, 1), (0, 1)]
    for given in ({"bandwidth": 1e-4}, {"kernel": kernels.Gaussian(1e-4)}):
        with pytest.raises(ValueError, match="more than the 131072 points"):
            SPPPOTIntensity(domain=square, **given).fit(X)
    with pytest.raises(ValueError, match="more than the 1024 points"):
        SPPPOTIntensity(domain=square, kernel=kernels.Matern(1e-2, 1.5)).fit(X)


# -- dates -----------------------------------------------------------------------------------------

HOURS = np.datetime64("2024-01-01T00", "ns") + np.arange(30) * np.timedelta64(1, "h")


@pytest.mark.parametrize(
    ("X", "column"),
    [
        (HOURS[:, None], "0"),
        ((HOURS - HOURS[0])[:, None], "0"),
        ([[0.5, datetime.datetime(2024, 1, day)] for day in range(1, 20)], "1"),
        ([["0.5", f"2024-01-{day:02d}"] for day in range(1, 20)], "1"),
        ([[f"2024-01-{day:02d} 10:00"] for day in range(1, 20)], "0"),
    ],
)
def test_dates_are_no_numbers(X, column):
    # They were nanoseconds.
    for estimator in (SPPPOTIntensity(), POLKRegressor()):
        with pytest.raises(ValueError, match=rf"column {column} holds dates .* such as hours"):
            estimator.fit(X, np.zeros(len(X)))


def test_a_column_of_dates_has_a_name():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": np.arange(30.0), "time": HOURS})
    others = (
        frame.assign(time=frame["time"].dt.tz_localize("UTC")),
        frame.assign(time=frame["time"].dt.to_period("h")),
        frame.assign(time=frame["time"].astype(str)),
    )
    for X in (frame, frame[["time"]], *others):
        with pytest.raises(ValueError, match="column 'time' holds dates"):
            SPPPOTIntensity().fit(X)


# -- streams ---------------------------------------------------------------------------------------


@pytest.fixture
def solutions(monkeypatch):
    """Count how often a density is solved for."""
    counted, solve = [], _solved.solve

    def counting(*arguments, **options):
        counted.append(1)
        return solve(*arguments, **options)

    monkeypatch.setattr(_solved, "solve", counting)
    return counted


def test_a_stream_is_solved_when_somebody_asks(solutions):
    model = SPPPOTIntensity(**LINE).fit(toy()[:500])
    solutions.clear()
    for row in range(500, 900):
        model.partial_fit(toy()[row : row + 1])
    assert model.t_ == model.n_points_ == 900
    assert not solutions
    found = model.score_samples(toy())
    assert len(solutions) == 1
    assert_array_equal(model.score_samples(toy()), found)
    model.intensity(toy(), return_std=True)
    assert len(solutions) == 1
    # As if it had been learned from in one block.
    whole = SPPPOTIntensity(**LINE).fit(toy()[:500]).partial_fit(toy()[500:900])
    assert_allclose(found, whole.score_samples(toy()), atol=1e-6)
    trace = model.trace_
    assert_array_equal(trace["samples"], [500, 900])
    assert trace["loss"][1] == pytest.approx(whole.trace_["loss"][1])


@pytest.mark.parametrize("asked", [False, True])
def test_what_is_not_solved_yet_is_saved(asked, tmp_path):
    model = SPPPOTIntensity(**LINE).fit(toy()[:500])
    model.partial_fit(toy()[500:700])
    if asked:
        model.score_samples(toy())
    model.save(tmp_path / "model")
    other = parsimon.load(tmp_path / "model")
    for estimator in (model, other):
        estimator.partial_fit(toy()[700:])
    assert_array_equal(other.weights_, model.weights_)
    assert_array_equal(other.trace_["loss"], model.trace_["loss"])


def test_no_samples_are_in_a_file_that_only_predicts(tmp_path):
    # The first 5,000 were.
    model = SPPPOTIntensity(**LINE).partial_fit(toy()[:300], validation=toy()[300:400])
    model.save(tmp_path / "slim", training=False)
    names = _core.Archive.read(str(tmp_path / "slim")).keys()
    assert not [name for name in names if "buffer" in name or "validation" in name]
    other = parsimon.load(tmp_path / "slim")
    assert_array_equal(other.score_samples(toy()), model.score_samples(toy()))
    with pytest.raises(ValueError, match=r"saved with training=False.*fit can train it anew"):
        other.partial_fit(toy()[300:])
    other.fit(toy()).partial_fit(toy())


def test_partial_fit_warns_of_the_integral():
    model = SPPPOTIntensity(
        domain=(0, 1), solver="sgd", grid_size=3, bandwidth=0.02, random_state=0
    )
    model.partial_fit(toy()[:30])
    with pytest.warns(ConvergenceWarning, match="integrates to"):
        model.partial_fit(np.tile(toy(), (20, 1)))


def test_the_rule_is_refined_until_a_finer_one_agrees():
    place = Place(SPPPOTIntensity(**LINE), np.array([[0.0, 1.0]]), toy())
    grid = _core.ProductGrid([0.0], [0.05], [21])
    coarse = _solved.ProductSpan(grid, [0.05], place.domain, [7])
    model = coarse.model(kernels.Gaussian(0.05), place.box)
    model.observe(toy(), np.ones(len(toy())), 1.0)
    with_it = _solved.solve(place, coarse, 0.1, model)
    assert with_it.likelihood.span.cells[0] > 7
    assert abs(with_it.fine_integral - with_it.solution.log_integral) <= 0.01


def test_a_rule_that_cannot_be_refined_any_more_is_said(monkeypatch):
    monkeypatch.setattr(_solved, "MOST_NODES", 1)
    place = Place(SPPPOTIntensity(**LINE), np.array([[0.0, 1.0]]), toy())
    coarse = _solved.ProductSpan(_core.ProductGrid([0.0], [0.05], [21]), [0.05], place.domain, [7])
    model = coarse.model(kernels.Gaussian(0.05), place.box)
    model.observe(toy(), np.ones(len(toy())), 1.0)
    with pytest.warns(ConvergenceWarning, match="Two rules for the integral .* differ"):
        _solved.solve(place, coarse, 0.1, model)


# -- many features ---------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", INTENSITIES)
def test_the_count_of_the_domain_is_the_integral_in_many_features(cls):
    # They were by different rules.
    X = 0.5 + 0.1 * np.random.RandomState(0).randn(400, 4)
    model = cls(domain=[(0, 1)] * 4, bandwidth=0.2, regularization=1e-2).fit(X)
    assert model.expected_count([(0, 1)] * 4) == pytest.approx(400 * model.integral_, rel=1e-12)
    halves = [model.expected_count([side, *[(0, 1)] * 3]) for side in ((0, 0.5), (0.5, 1))]
    assert sum(halves) == pytest.approx(400, rel=0.05)
    assert clone(model).get_params() == model.get_params()


def test_a_grid_that_was_asked_for_in_many_features():
    # It was an IndexError.
    X = np.random.RandomState(0).rand(60, 4)
    given = {"domain": [(0, 1)] * 4, "bandwidth": 0.5, "regularization": 0.01}
    model = SPPPOTIntensity(**given, grid_size=3).fit(X)
    assert model.model_order_ == 81
    assert model.integral_ == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"grid_size": 10**6}, "at most 4096 along a feature"),
        ({"domain": [(0, 1)] * 2, "grid_size": 1000}, "131072 in all"),
        ({"domain": [(0, 1)] * 2, "grid_size": 100, "kernel": "matern"}, "4096 in all"),
    ],
)
def test_a_grid_that_is_too_large_to_be_solved_on(given, message):
    # It was a MemoryError.
    X = np.random.RandomState(0).rand(60, np.size(given.get("domain", (0, 1))) // 2)
    with pytest.raises(ValueError, match=message):
        SPPPOTIntensity(**{"domain": (0, 1), "bandwidth": 0.1} | given).fit(X)

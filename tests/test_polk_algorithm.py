"""POLK against a direct implementation; its kernels, schedules, budgets and trace."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from polk_common import (
    GIVEN,
    ONE_PASS_OF_SGD,
    SGD,
    curve,
    gaussian,
    hinge_gradient,
    reference,
    softmax_gradient,
    squared_gradient,
    state,
    task,
)
from sklearn.exceptions import ConvergenceWarning

from parsimon import POLKClassifier, POLKRegressor, kernels
from parsimon.datasets import make_multidist
from parsimon.schedules import AdaptiveBudget, PowerLaw


@pytest.fixture(name="task", scope="module")
def _task():
    return task()


@pytest.fixture(name="curve", scope="module")
def _curve():
    return curve()


# -- against a direct implementation ---------------------------------------------------------------


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize(
    ("loss", "gradient", "scale"),
    [
        ("squared", squared_gradient, 1),
        ("hinge", hinge_gradient, 2),
        ("logistic", softmax_gradient, 1),
    ],
)
def test_uncompressed_is_functional_gradient_descent(loss, gradient, scale, average, task):
    X, y = task[0][:150], task[1][:150]
    given = {**ONE_PASS_OF_SGD, "parsimony": 0.0, "average": average}
    if loss == "squared":
        y, outputs = np.sin(X[:, 0]), 1
        model = POLKRegressor(loss, normalize_y=False, refit=False, **given).fit(X, y)
    else:
        outputs = 5
        model = POLKClassifier(loss, **given).fit(X, y)
    D, W, mean = reference(X, y, gradient, outputs, 0.0, shrinkage=scale * 1e-4)
    assert_array_equal(model.dictionary_, D)
    assert_allclose(model.weights_, mean if average else W, rtol=1e-10, atol=1e-14)
    assert_allclose(model.expansion_(X), gaussian(X, D) @ model.weights_, atol=1e-12)


@pytest.mark.parametrize("batch", [1, 16])
def test_compressed_is_the_algorithm_as_printed(batch, task):
    X, y = task[0][:96], task[1][:96]
    budget = 0.05
    given = {**ONE_PASS_OF_SGD, "parsimony": "auto", "batch_size": batch, "average": False}
    model = POLKClassifier(budget=budget, **given).fit(X, y)
    D, W, _ = reference(X, y, hinge_gradient, 5, budget, shrinkage=2e-4, batch=batch)
    assert 5 < len(D) < 90
    order, expected = np.lexsort(model.dictionary_.T), np.lexsort(D.T)
    assert_array_equal(model.dictionary_[order], D[expected])
    assert_allclose(model.weights_[order], W[expected], atol=1e-6)


# -- kernels, schedules, budgets -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rbf", "laplacian", "matern", "cauchy", "poly", "linear"])
def test_a_name_stands_for_a_kernel(name, task, curve):
    X, y = task
    kernel = kernels.from_name(name, gamma=0.5)
    named = POLKRegressor(kernel=name, gamma=0.5, random_state=0).fit(*curve)
    given = POLKRegressor(kernel=kernel, random_state=0).fit(*curve)
    assert_array_equal(named.predict(X), given.predict(X))
    assert named.expansion_.kernel == kernel
    # A classifier has no mean to subtract; a named kernel comes with an intercept.
    intercept = 0.3 * float(kernel.diag(X).max()) * kernels.Constant()
    named = POLKClassifier(kernel=name, gamma=0.5, random_state=0).fit(X, y)
    given = POLKClassifier(kernel=kernel + intercept, random_state=0).fit(X, y)
    assert named.expansion_.kernel == kernel + intercept
    assert_array_equal(named.decision_function(X), given.decision_function(X))
    assert named.score(X, y) > {"linear": 0.3, "poly": 0.6}.get(name, 0.85)


@pytest.mark.parametrize(
    "kernel",
    [
        kernels.Gaussian([0.5, 2.0]),
        kernels.Gaussian(0.5) + 0.1 * kernels.Linear(),
        kernels.Matern(1.0, 2.5) * kernels.Cauchy(2.0),
        kernels.Function(gaussian),
    ],
    ids=["two widths", "sum", "product", "function"],
)
def test_any_kernel_learns(kernel, task, curve):
    assert POLKClassifier(kernel=kernel, random_state=0, epochs=5).fit(*task).score(*task) > 0.8
    assert POLKRegressor(kernel=kernel, random_state=0, epochs=5).fit(*curve).score(*curve) > 0.8


def test_a_function_is_as_good_as_the_kernel_it_computes(task):
    X, y = task
    function = kernels.Function(gaussian)
    own = POLKClassifier(**{**GIVEN, "kernel": function}).fit(X, y)
    built_in = POLKClassifier(**GIVEN).fit(X, y)
    assert own.model_order_ == built_in.model_order_
    assert_allclose(own.decision_function(X), built_in.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("gamma", ["scale", "median", "auto", 0.8])
def test_every_way_to_choose_the_width(gamma, task, curve):
    X, y = task
    assert POLKClassifier(gamma=gamma, random_state=0).fit(X, y).score(X, y) > 0.85
    X, y = curve
    model = POLKRegressor(gamma=gamma, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95
    if gamma == "scale":
        width = np.sqrt(X.shape[1] * X.var() / 2)
        assert model.expansion_.kernel.bandwidth == pytest.approx(width)


@pytest.mark.parametrize(
    ("schedule", "law"),
    [
        ("constant", lambda t: 1.5 + 0 * t),
        ("inverse", lambda t: 1.5 / (1 + t / 100)),
        ("sqrt", lambda t: 1.5 * (1 + t / 100) ** -0.5),
        (PowerLaw(0.75, 10), lambda t: 1.5 * (1 + t / 10) ** -0.75),
    ],
)
def test_the_budget_follows_the_schedule(schedule, law, task):
    model = POLKClassifier(**{**SGD, "schedule": schedule, "epochs": 5}).fit(*task)
    rates = law(np.arange(len(model.trace_["budget"])))
    assert_allclose(model.trace_["budget"], 0.01 * rates**1.5, rtol=1e-12)
    assert model.score(*task) > 0.85
    if schedule != "constant":
        model = POLKClassifier(**{**SGD, "schedule": schedule, "parsimony": "auto"}).fit(*task)
        rates = law(np.arange(len(model.trace_["budget"])))
        assert_allclose(model.trace_["budget"] / model.trace_["budget"][0], (rates / 1.5) ** 2)
        assert model.score(*task) > 0.85


def test_a_larger_budget_makes_a_smaller_model(task):
    orders = [
        POLKClassifier(**{**SGD, "parsimony": parsimony}).fit(*task).model_order_
        for parsimony in (0.0, 1e-3, 0.01, 0.1, 1e3)
    ]
    assert orders == sorted(orders, reverse=True)
    assert len(set(orders)) == 5
    assert orders[-1] == 0
    fixed = POLKClassifier(**{**SGD, "parsimony": "auto"}, budget=0.01 * 1.5**1.5).fit(*task)
    proportional = POLKClassifier(**SGD).fit(*task)
    assert_array_equal(fixed.weights_, proportional.weights_)
    assert_allclose(fixed.trace_["budget"], 0.01 * 1.5**1.5)


def test_without_budget_no_point_is_lost_and_none_is_kept_twice(task):
    X, y = task
    given = {"budget": 0, "solver": "sgd", "random_state": 0}
    model = POLKClassifier("logistic", epochs=3, **given).fit(X, y)
    assert model.model_order_ == len(X)
    assert_array_equal(np.unique(model.dictionary_, axis=0), np.unique(X, axis=0))
    assert not model.trace_["compression_error"].any()
    assert POLKRegressor(**given).fit(X, X[:, 0]).score(X, X[:, 0]) > 0.99


@pytest.mark.parametrize("budget", [1e-12, 1e-9, 1e-6])
def test_a_tiny_budget_keeps_no_point_twice(budget, task):
    X, y = task
    model = POLKClassifier(**{**GIVEN, "parsimony": "auto", "epochs": 4}, budget=budget)
    assert model.fit(X, y).model_order_ <= len(X)
    assert (model.trace_["compression_error"] <= budget).all()


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("target", [15, 40, 100])
def test_the_model_order_is_held(loss, target):
    X, y = make_multidist(6000, random_state=1)
    model = POLKClassifier(loss, budget=AdaptiveBudget(target), epochs=3, random_state=0).fit(X, y)
    orders = model.trace_["model_order"]
    assert_allclose(orders[-150:], target, rtol=0.1)
    assert model.model_order_ == orders[-1]
    assert model.score(X, y) > 0.8


def test_a_model_order_out_of_reach_is_reported(task):
    X, y = task
    with pytest.warns(ConvergenceWarning, match="more points than the data need"):
        POLKClassifier(budget=AdaptiveBudget(5000), epochs=200, random_state=0).fit(X[:60], y[:60])


def test_averaging_smooths(task):
    X, y = make_multidist(3000, random_state=2)
    errors = {}
    for average in (False, True):
        settings = {**SGD, "learning_rate": 6.0, "epochs": 1, "average": average}
        model = POLKClassifier(**settings).fit(X[:2000], y[:2000])
        errors[average] = 1 - model.score(X[2000:], y[2000:])
    assert errors[True] <= errors[False]


# -- the trace -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "extra",
    [{}, {"schedule": "sqrt"}, {"budget": AdaptiveBudget(20)}, {"max_points": 20}, {"budget": 0}],
)
@pytest.mark.parametrize("solver", ["sgd", "newton"])
def test_the_trace_tells_what_happened(solver, extra, task, curve):
    if solver == "newton" and extra.get("budget") == 0:
        pytest.skip("weights are not solved where every sample is kept")
    extra = {**extra, "solver": solver}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        classifier = POLKClassifier(random_state=0, epochs=3, **extra).fit(*task)
        regressor = POLKRegressor(random_state=0, epochs=3, **extra).fit(*curve)
    for model, (X, _) in ((classifier, task), (regressor, curve)):
        trace = model.trace_
        assert list(trace) == [
            "samples",
            "model_order",
            "active",
            "loss",
            "compression_error",
            "budget",
            "drift",
        ]
        batches = 3 * -(-len(X) // 32)
        assert {column.shape for column in trace.values()} == {(batches,)}
        for name in ("samples", "model_order", "active"):
            assert trace[name].dtype == np.int64
        sizes = np.diff(trace["samples"], prepend=0)
        assert set(sizes) <= {32, len(X) % 32}
        assert trace["samples"][-1] == model.t_ == 3 * len(X)
        assert trace["model_order"][-1] == model.model_order_
        assert (trace["active"] <= sizes).all()
        assert (trace["active"] >= 0).all()
        assert (trace["loss"] >= 0).all()
        assert (trace["compression_error"] >= 0).all()
        assert (trace["compression_error"] <= trace["budget"]).all()
        grown = np.diff(trace["model_order"], prepend=0)
        assert (grown <= trace["active"]).all()
        assert trace["loss"][-20:].mean() < trace["loss"][:3].mean()
    assert trace is not model.trace_  # a copy: changing it changes nothing


def test_what_is_handed_out_is_a_copy(task):
    model = POLKClassifier(**GIVEN).fit(*task)
    before = state(model)
    for array in (model.dictionary_, model.weights_, *model.trace_.values()):
        array[...] = 0
    assert state(model) == before


def test_the_samples_are_left_alone(task):
    X, y = task[0].copy(), task[1].copy()
    weight = np.ones(len(X))
    for array in (X, y, weight):
        array.setflags(write=False)
    POLKClassifier(**GIVEN).fit(X, y, sample_weight=weight).predict(X)
    fortran = POLKClassifier(**GIVEN).fit(np.asfortranarray(X), y)
    assert state(fortran) == state(POLKClassifier(**GIVEN).fit(X, y))
    half = POLKClassifier(**GIVEN).fit(np.repeat(X, 2, axis=1)[:, ::2], y)
    assert state(half) == state(fortran)
    single = X.astype(np.float32)
    assert state(POLKClassifier(**GIVEN).fit(single, y)) == state(
        POLKClassifier(**GIVEN).fit(single.astype(float), y)
    )

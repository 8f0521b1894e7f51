"""Data and budgets at which careless arithmetic fails."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from polk_common import GIVEN, SGD, curve, hinge_gradient, softmax_gradient, task

from parsimon import POLKClassifier, POLKRegressor, kernels
from parsimon.datasets import make_multidist
from parsimon.schedules import AdaptiveBudget, PowerLaw


def scores(X, **settings):
    labels = task()[1][: len(X)]
    targets = X[:, 0] / np.abs(X).max()
    classifier = POLKClassifier(random_state=0, **settings).fit(X, labels)
    regressor = POLKRegressor(random_state=0, **settings).fit(X, targets)
    for model in (classifier, regressor):
        assert np.isfinite(model.weights_).all()
        assert np.isfinite(model.trace_["loss"]).all()
        assert (model.trace_["compression_error"] <= model.trace_["budget"]).all()
    return classifier.score(X, labels), regressor.score(X, targets)


# -- where and how large the data are ------------------------------------------------------------


def on_a_grid(X, spacing=2.0**-20):
    """Round to what survives an offset of 1e8 without loss."""
    return np.round(X / spacing) * spacing


@pytest.mark.parametrize(("solver", "average"), [("newton", True), ("sgd", False), ("sgd", True)])
def test_an_offset_changes_nothing(solver, average):
    X, y = task()
    X, shift = on_a_grid(X), np.array([1e8, -1e8])
    settings = {**GIVEN, "solver": solver, "average": average}
    near = POLKClassifier(**settings).fit(X, y)
    far = POLKClassifier(**settings).fit(X + shift, y)
    assert_array_equal(far.dictionary_, near.dictionary_ + shift)
    assert_allclose(far.decision_function(X + shift), near.decision_function(X), atol=1e-9)
    near, far = POLKRegressor(**settings).fit(X, y), POLKRegressor(**settings).fit(X + shift, y)
    assert_array_equal(far.dictionary_, near.dictionary_ + shift)
    assert_allclose(far.predict(X + shift), near.predict(X), atol=1e-8)


@pytest.mark.parametrize("offset", [1e4, 1e8, -1e8])
def test_the_defaults_bear_an_offset(offset):
    X, y = task()
    plain, shifted = POLKClassifier(random_state=0), POLKClassifier(random_state=0)
    plain.fit(X, y)
    shifted.fit(X + offset, y)
    assert shifted.score(X + offset, y) == pytest.approx(plain.score(X, y), abs=0.02)
    assert shifted.model_order_ == pytest.approx(plain.model_order_, rel=0.2)
    X, y = curve()
    assert POLKRegressor(random_state=0).fit(X + offset, y).score(X + offset, y) > 0.98


@pytest.mark.parametrize("gamma", ["scale", "median", "auto"])
@pytest.mark.parametrize("exponent", [-498, -50, 498], ids=["1e-150", "1e-15", "1e150"])
def test_the_unit_of_the_features_changes_nothing(exponent, gamma):
    X, y = task()
    scale = 2.0**exponent
    settings = {"gamma": gamma, "epochs": 3, "random_state": 0}
    plain = POLKClassifier(**settings).fit(X, y)
    scaled = POLKClassifier(**settings).fit(scale * X, y)
    assert_array_equal(scaled.dictionary_, scale * plain.dictionary_)
    assert_allclose(scaled.decision_function(scale * X), plain.decision_function(X), rtol=1e-8)
    X, y = curve()
    plain = POLKRegressor(**settings).fit(X, y)
    scaled = POLKRegressor(**settings).fit(scale * X, y)
    assert_allclose(scaled.predict(scale * X), plain.predict(X), atol=1e-4)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
@pytest.mark.parametrize("name", ["rbf", "laplacian", "matern", "cauchy"])
def test_every_width_can_be_extreme(name, scale):
    X, _ = task()
    # A kernel that is nearly an identity takes as many points as samples.
    settings = {"kernel": name, "gamma": "scale", "epochs": 3, "max_points": None}
    classes, regression = scores(scale * X, **settings)
    if name != "laplacian" or scale < 1:  # its gamma is the inverse of a length, not of a square
        assert classes > 0.85
        assert regression > 0.9


@pytest.mark.parametrize("scale", [1e-30, 1e-6, 1e6, 1e30])
def test_the_unit_of_a_kernel_that_is_not_scaled(scale):
    X, _ = curve()
    linear = X @ [1.0, -2.0]
    model = POLKRegressor(kernel="linear", random_state=0).fit(scale * X, linear)
    assert model.score(scale * X, linear) > 0.999
    classifier = POLKClassifier(kernel="linear", random_state=0).fit(scale * X, linear > 0)
    assert classifier.score(scale * X, linear > 0) > 0.95


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_the_unit_of_the_targets_changes_nothing(scale):
    X, y = curve()
    plain = POLKRegressor(random_state=0).fit(X, y)
    scaled = POLKRegressor(random_state=0).fit(X, scale * y)
    assert_allclose(scaled.predict(X) / scale, plain.predict(X), atol=1e-6)
    offset = POLKRegressor(random_state=0).fit(X, y + 1e8)
    assert_allclose(offset.predict(X) - 1e8, plain.predict(X), atol=1e-4)


def test_constant_features_and_constant_data():
    X, y = task()
    for constant in (0.0, 1.0, 1e8):
        padded = np.column_stack([X, np.full(len(X), constant)])
        assert POLKClassifier(**GIVEN).fit(padded, y).score(padded, y) > 0.9
        plain, other = POLKClassifier(**GIVEN).fit(X, y), POLKClassifier(**GIVEN).fit(padded, y)
        assert_allclose(other.decision_function(padded), plain.decision_function(X), atol=1e-9)
    targets = np.arange(len(X)) % 7.0
    for value in (0.0, 3.0, -1e8, 1e-150):
        same = np.full_like(X, value)
        for kernel in ("rbf", "linear", "laplacian"):
            if kernel == "linear" and value == 1e-150:
                continue  # k(x, x) is 1e-300: weights that make a difference are not representable
            model = POLKRegressor(kernel=kernel, random_state=0).fit(same, targets)
            assert model.model_order_ <= 1
            assert_allclose(model.predict(same[:3]), targets.mean(), atol=0.5)
            assert POLKClassifier(kernel=kernel, random_state=0).fit(same, y).model_order_ <= 1


def test_constant_targets():
    X, _ = curve()
    for value in (0.0, 7.0, -1e-150, 1e300):
        model = POLKRegressor(random_state=0).fit(X, np.full(len(X), value))
        assert_allclose(model.predict(X), value, rtol=1e-12)
        assert model.model_order_ == 0


# -- copies, and almost copies -------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 16, 50, 64])
@pytest.mark.parametrize("budget", [1e-10, 1e-4, 0.0])
def test_fifty_copies_of_each_sample(budget, batch):
    X, y = task()
    X, y = np.repeat(X[:20], 50, axis=0), np.repeat(y[:20], 50)
    settings = {**GIVEN, "parsimony": "auto", "budget": budget, "batch_size": batch, "epochs": 2}
    settings |= {"solver": "sgd"} if budget == 0 else {}
    for shuffle in (False, True):
        model = POLKClassifier(shuffle=shuffle, **settings).fit(X, y)
        assert model.model_order_ <= 20
        assert len(np.unique(model.dictionary_, axis=0)) == model.model_order_
        assert (model.trace_["compression_error"] <= budget).all()
        assert np.isfinite(model.weights_).all()
        regressor = POLKRegressor(shuffle=shuffle, **settings).fit(X, y)
        assert regressor.model_order_ <= 20
        assert regressor.score(X, y) > 0.9


@pytest.mark.parametrize("distance", [1e-3, 1e-6, 1e-9, 1e-12])
def test_almost_copies(distance):
    X, y = task()
    random = np.random.RandomState(0)
    X = np.repeat(X[:20], 20, axis=0) + distance * random.randn(400, 2)
    y = np.repeat(y[:20], 20)
    settings = {**SGD, "parsimony": "auto", "epochs": 5}
    for budget in (1e-8, 1e-3):
        model = POLKClassifier(budget=budget, **settings).fit(X, y)
        assert np.isfinite(model.decision_function(X)).all()
        assert (model.trace_["compression_error"] <= budget).all()
        plain = POLKClassifier(budget=0, **settings).fit(X, y)
        assert_allclose(model.decision_function(X), plain.decision_function(X), atol=200 * budget)
        solved = POLKClassifier(budget=budget, **{**settings, "solver": "newton"}).fit(X, y)
        assert np.isfinite(solved.decision_function(X)).all()
        assert (solved.trace_["compression_error"] <= budget).all()
        assert solved.score(X, y) > 0.9


def test_a_kernel_of_low_rank():
    """With 2 features the linear kernel spans 2 dimensions: no third point is ever needed."""
    X, y = task()
    model = POLKClassifier(**{**GIVEN, "kernel": kernels.Linear(), "parsimony": 1e-5}).fit(X, y)
    assert 0 < model.model_order_ <= 2
    cubic = kernels.Polynomial(2)  # 6 monomials
    model = POLKClassifier(**{**GIVEN, "kernel": cubic, "learning_rate": 0.05, "parsimony": 1e-4})
    assert 0 < model.fit(X, y).model_order_ <= 6


# -- the smallest models -------------------------------------------------------------------------


def test_models_of_no_point():
    X, y = task()
    classifier = POLKClassifier(budget=1e9, epochs=2).fit(X, y)
    regressor = POLKRegressor(budget=1e9, epochs=2).fit(X, y)
    for model in (classifier, regressor):
        assert model.model_order_ == 0
        assert model.dictionary_.shape == (0, 2)
        assert model.expansion_.norm() == 0
        assert not model.trace_["model_order"].any()
        model.partial_fit(X, y)
        assert model.t_ == 3 * len(X)
    assert_array_equal(classifier.decision_function(X), 0)
    assert classifier.weights_.shape == (0, 5)
    assert_allclose(regressor.predict(X), y.mean())
    uniform = POLKClassifier("logistic", budget=1e9, epochs=1).fit(X, y).predict_proba(X)
    assert_allclose(uniform, 0.2)


def test_models_of_one_point():
    X, y = task()
    single = POLKClassifier(**GIVEN).partial_fit(X[:1], y[:1], classes=range(5))
    assert single.model_order_ == 1
    assert_array_equal(single.dictionary_, X[:1])
    assert single.predict(X[:1]) == y[0]
    regressor = POLKRegressor(**{**GIVEN, "normalize_y": False, "solver": "sgd"})
    regressor.partial_fit(X[:1], [2.0])
    assert_allclose(regressor.weights_, 1.5 * 2 / 16)  # its share of a mini-batch of 16
    assert_allclose(regressor.expansion_.norm(), 3.0 / 16)
    one = POLKRegressor(random_state=0).fit(X[:1], [5.0])
    assert_allclose(one.predict(X), 5.0)
    held = POLKClassifier(budget=AdaptiveBudget(1), epochs=20, random_state=0).fit(X, y)
    assert held.model_order_ <= 2
    capped = POLKClassifier(max_points=1, epochs=20, random_state=0).fit(X, y)
    assert (capped.trace_["model_order"] <= 1).all()


def test_one_sample_at_a_time_without_settings():
    """The first sample says nothing about the data; the model must stay small and learn anyway."""
    random = np.random.RandomState(0)
    X, y = make_multidist(1500, random_state=4)
    classifier, regressor = POLKClassifier(), POLKRegressor()
    for sample, label in zip(X, y, strict=True):
        classifier.partial_fit(sample[None], [label], classes=range(5))
        regressor.partial_fit(sample[None], [np.sin(sample[0]) + 0.1 * random.randn()])
    assert classifier.score(X, y) > 0.9
    assert classifier.model_order_ < 300
    assert regressor.score(X, np.sin(X[:, 0])) > 0.99
    assert regressor.model_order_ < 300


# -- multidist, where an explicit inverse diverges -----------------------------------------------

PAPER = {
    "kernel": kernels.Gaussian(np.sqrt(0.6)),
    "learning_rate": 6.0,
    "regularization": 1e-6,
    "solver": "sgd",
    "average": False,
    "epochs": 1,
    "shuffle": False,
}


def wide_gaussian(A, B):
    return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=-1) / 1.2)


def reference(X, y, gradient, scale, parsimony, explicit_inverse):
    """POLK with an inverse that is kept up to date, or computed anew for each mini-batch."""
    D, W, P = np.empty((0, 2)), np.empty((0, 5)), np.empty((0, 0))
    for start in range(0, len(X), 32):
        x, t = X[start : start + 32], y[start : start + 32]
        share = len(x) / 32
        squared_budget = (share * parsimony * 6.0**1.5) ** 2
        G = gradient(wide_gaussian(x, D) @ W, t)
        active = np.any(G != 0, axis=1)
        W = np.vstack([(1 - share * 6e-6 * scale) * W, -6.0 / 32 * G[active]])
        for point in x[active]:
            if explicit_inverse:
                k = wide_gaussian(D, point[None])
                a = P @ k
                s = 1 / (1 - k.T @ a)
                P = np.block([[P + s * a @ a.T, -s * a], [-s * a.T, s]])
            D = np.vstack([D, point])
        if not explicit_inverse:
            P = np.linalg.inv(wide_gaussian(D, D))
        spent = 0.0
        while len(D):
            costs = spent + (W**2).sum(axis=1) / P.diagonal()
            j = int(np.argmin(costs))
            if not costs[j] <= squared_budget:
                break
            spent = costs[j]
            W = np.delete(W - np.outer(P[:, j] / P[j, j], W[j]), j, axis=0)
            P = np.delete(np.delete(P - np.outer(P[:, j], P[j]) / P[j, j], j, 0), j, 1)
            D = np.delete(D, j, axis=0)
    return D, W


def draw(seed):
    X, y, centers = make_multidist(7500, sd=0.2, random_state=seed, return_centers=True)
    distances = ((X[5000:, None, None] - centers) ** 2).sum(axis=-1)
    best = np.exp(-distances / (2 * 0.2**2)).sum(axis=-1).argmax(axis=1)
    return X, y, np.mean(best != y[5000:])


# spec: model orders of 80 to 150 and 46 to 101 on 15 other draws; where classes overlap more, the
# function is simpler and so is the model.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "parsimony", "orders"), [("hinge", 1e-4, (60, 150)), ("logistic", 1e-3, (30, 101))]
)
def test_multidist_is_right_on_twenty_draws(loss, parsimony, orders):
    excess, found = [], []
    for seed in range(20):
        X, y, least = draw(seed)
        model = POLKClassifier(loss, parsimony=parsimony, **PAPER).fit(X[:5000], y[:5000])
        assert np.isfinite(model.weights_).all()
        assert np.abs(model.weights_).max() < 100
        assert (model.trace_["compression_error"] <= model.trace_["budget"]).all()
        error = 1 - model.score(X[5000:], y[5000:])
        # Compression costs nothing: the error is that of the model of all points.
        everything = POLKClassifier(loss, budget=0, **PAPER).fit(X[:5000], y[:5000])
        assert error == pytest.approx(1 - everything.score(X[5000:], y[5000:]), abs=0.01)
        excess.append(error - least)
        found.append(model.model_order_)
    assert orders[0] <= min(found) <= max(found) <= orders[1]
    assert np.median(excess) < 0.04


@pytest.mark.parametrize(
    ("loss", "gradient", "scale", "parsimony"),
    [("hinge", hinge_gradient, 2, 1e-4), ("logistic", softmax_gradient, 1, 1e-3)],
)
def test_the_model_order_is_that_of_exact_arithmetic(loss, gradient, scale, parsimony):
    for seed in (0, 2, 9):
        X, y, _ = draw(seed)
        model = POLKClassifier(loss, parsimony=parsimony, **PAPER).fit(X[:5000], y[:5000])
        D, W = reference(X[:5000], y[:5000], gradient, scale, parsimony, explicit_inverse=False)
        assert abs(model.model_order_ - len(D)) <= 3
        values = wide_gaussian(X[5000:], D) @ W
        assert np.mean(model.predict(X[5000:]) == values.argmax(axis=1)) > 0.99


def test_an_explicit_inverse_diverges():
    """What the factor is there for: its absence would show."""
    largest = []
    for seed in (2, 9, 19):
        X, y, _ = draw(seed)
        with np.errstate(all="ignore"):
            W = reference(X[:5000], y[:5000], hinge_gradient, 2, 1e-4, explicit_inverse=True)[1]
        largest.append(np.abs(W).max())
    assert not max(largest) < 1e4


def sine_stream(count, seed=0):
    random = np.random.RandomState(seed)
    X = random.uniform(-1, 1, size=(count, 1))
    return X, 2 * X[:, 0] + 3 * np.sin(6 * X[:, 0]) + 0.3 * random.randn(count)


@pytest.mark.parametrize("solver", ["newton", "sgd"])
@pytest.mark.parametrize("budget", [1e-8, 1e-12])
def test_points_once_piled_up_when_the_budget_was_tiny(solver, budget):
    """There were 1,500 points after 2,500 samples, each of which took 50 milliseconds."""
    X, y = sine_stream(3000)
    model = POLKRegressor(
        kernel=kernels.Gaussian(0.06),
        learning_rate=0.5,
        budget=budget,
        regularization=1e-6,
        solver=solver,
        batch_size=1,
    )
    for start in range(0, len(X), 500):
        model.partial_fit(X[start : start + 500], y[start : start + 500])
    trace = model.trace_
    # 33 widths of the kernel: not three points for each of them, but for those that wait outside.
    assert trace["model_order"].max() < 100 + 512 + 256
    assert trace["model_order"][1000:].min() < 110
    assert (trace["compression_error"] <= trace["budget"]).all()
    # Only steps that clear the outside spend more, a millionth of what is there at most.
    assert (trace["budget"] == budget).mean() > 0.99
    assert budget < trace["budget"].max() < 1e-6 * 1000


def test_points_once_piled_up_late_in_a_stream_whose_steps_fall():
    """Budgets fall like squares of the step: 2e-8 in the 80,000th sample."""
    X, y = sine_stream(100_000)
    model = POLKRegressor(
        kernel=kernels.Gaussian(0.06),
        learning_rate=1.0,
        schedule=PowerLaw(1, 12.5),
        regularization=1e-3,
        solver="sgd",
        batch_size=1,
    ).partial_fit(X, y)
    trace = model.trace_
    assert np.median(trace["budget"][-50:]) < 2e-8
    assert trace["model_order"].max() < 100 + 512 + 256
    assert (trace["compression_error"] <= trace["budget"]).all()

"""A step goes down the gradient of the empirical objective; the default objective is convex."""

import colk_reference as colk
import numpy as np
import pytest
from colk_reference import Risk
from numpy.testing import assert_allclose
from scipy import stats

from parsimon import CompositionalLearner, _core, kernels

SAMPLES = 40
STEP = 0.1
SHRINKAGE = 0.02
KERNEL = kernels.Gaussian(0.5)
constant = _core.StepSchedule.constant


def fixed(budget):
    return _core.Compression(_core.BudgetSchedule.fixed(budget))


RISKS = {
    "semideviation": Risk("semideviation", 0.7),
    "semivariance": Risk("semivariance", 0.3),
    "moments 2": Risk("moments", 0.3, 2),
    "moments 3": Risk("moments", 0.3, 3),
    "moments 4": Risk("moments", 0.3, 4),
    "cvar": Risk("cvar", 1.0, 0.8),
    "cvar, mixed": Risk("cvar", 0.3, 0.6),
}


def softmax_loss(f, labels):
    return np.log(np.exp(f).sum(axis=1)) - f[np.arange(len(f)), labels[:, 0].astype(int)]


def summed(loss):
    return lambda f, y: loss(f, y)[0].sum(axis=1)


# The losses of rows of values, beside the targets that they take.
LOSSES = {
    "squared": (summed(colk.squared(1)), "numbers", 1),
    "squared(2)": (summed(colk.squared(2)), "numbers", 2),
    "huber(0.5)": (summed(colk.huber(0.5)), "numbers", 1),
    "binary_logistic": (summed(colk.logistic), "labels", 1),
    "multiclass_logistic": (softmax_loss, "labels", 3),
}


def task(kind, outputs, seed=0):
    random = np.random.RandomState(seed)
    X = random.uniform(-1, 1, (SAMPLES, 2))
    if kind == "labels":
        return X, random.randint(max(2, outputs), size=(SAMPLES, 1)).astype(float)
    return X, random.randn(SAMPLES, outputs) + 2 * (random.uniform(size=(SAMPLES, 1)) < 0.1)


def somewhere(model, outputs, kind):
    """Take the model away from zero, by steps on other points, and return it."""
    random = np.random.RandomState(9)
    points = random.uniform(-1, 1, (30, 2))
    targets = task(kind, outputs, seed=8)[1][:30]
    if kind == "numbers":
        targets = 0.3 * targets  # the raw moments would be far away at once
    for _ in range(10):
        model.run(points, targets, np.empty(0), 10)
    return model


def step_of(model, X, y):
    """Take one step in which theta = xi = all samples, and return its gradient at each of them."""
    before = model.iterate
    model.run(np.vstack([X, X]), np.vstack([y, y]), np.empty(0), 2 * len(X))
    after = model.iterate
    old = len(before.dictionary)
    assert_allclose(after.weights[:old], (1 - STEP * SHRINKAGE) * before.weights, rtol=1e-12)
    # A sample without gradient is not added.
    gradient = np.zeros((len(X), before.weights.shape[1]))
    for point, weight in zip(after.dictionary[old:], after.weights[old:], strict=True):
        gradient[(point == X).all(axis=1)] = -weight / STEP
    return gradient


def slope(function, F, h=1e-5):
    """Return central differences by each entry of F."""
    result = np.zeros_like(F)
    for index in np.ndindex(F.shape):
        shift = np.zeros_like(F)
        shift[index] = h
        result[index] = (function(F + shift) - function(F - shift)) / (2 * h)
    return result


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("risk", RISKS)
def test_a_full_step_is_the_gradient_of_the_empirical_objective(risk, loss):
    risk, (losses, kind, outputs) = RISKS[risk], LOSSES[loss]
    X, y = task(kind, outputs)
    model = _core.Colk(
        KERNEL.core, _core.parse_loss(loss), risk=risk.kind, weight=risk.weight,
        parameter=risk.parameter, clip=None, step=constant(STEP),
        # With 1 the tracked mean is that of the latest mini-batch alone.
        tracking=constant(0.05 if risk.kind == "cvar" else 1.0),
        compression=fixed(0.0), regularization=SHRINKAGE, average=False, features=2,
        outputs=outputs,
    )  # fmt: skip
    somewhere(model, outputs, kind)
    F = model.predict(X)
    found = step_of(model, X, y)
    # CVaR is minimised over f and u together: the step of f is the gradient at the new u.
    u = model.tracked[0] if risk.kind == "cvar" else None
    assert np.abs(found).max() > 1e-3
    assert np.ptp(F) > 0.01
    expected = slope(lambda values: risk.total(losses(values, y), u), F)
    assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
    _, mean, dispersion, clipped = model.risk_trace[-1]
    assert_allclose([mean, dispersion], risk.objective(losses(F, y), u), rtol=1e-12)
    assert clipped == 0
    if risk.kind != "cvar":
        assert_allclose(model.tracked, losses(F, y).mean(), rtol=1e-12)


@pytest.mark.parametrize("level", [0.3, 0.9])
def test_the_value_at_risk_goes_down_its_own_gradient(level):
    X, y = task("numbers", 1)
    risk, beta = Risk("cvar", 1.0, level), 0.05
    model = _core.Colk(
        KERNEL.core, _core.parse_loss("squared(2)"), risk="cvar", weight=1.0, parameter=level,
        clip=None, step=constant(STEP), tracking=constant(beta),
        compression=fixed(0.0), regularization=SHRINKAGE, average=False, features=2, outputs=1,
    )  # fmt: skip
    somewhere(model, 1, "numbers")
    losses = ((model.predict(X) - y) ** 2)[:, 0]
    u, scale = model.tracked
    model.run(X, y, np.empty(0), len(X))
    by_u = slope(lambda v: risk.total(losses, v[0]), np.array([u]))[0]
    new_u, new_scale = model.tracked
    assert new_scale == pytest.approx((1 - beta) * scale + beta * losses.mean(), rel=1e-12)
    assert new_u - u == pytest.approx(-beta * new_scale * by_u, rel=1e-6)
    assert abs(new_u - u) > 1e-3


def test_the_value_at_risk_is_the_quantile_of_the_losses():
    """With f at rest, u goes to where the level says."""
    random = np.random.RandomState(0)
    y = random.randn(40_000, 1)
    model = _core.Colk(
        KERNEL.core, _core.parse_loss("squared(2)"), risk="cvar", weight=1.0, parameter=0.9,
        clip=None, step=constant(1e-12), tracking=_core.StepSchedule.power_law(0.5, 0.7, 10.0),
        compression=fixed(1.0), regularization=0.0, average=False, features=1, outputs=1,
    )  # fmt: skip
    model.run(random.uniform(size=(40_000, 1)), y, np.empty(0), 20)
    # (f - y)^2 is chi squared; 10 standard errors of its quantile from 40,000 samples.
    quantile = stats.chi2.ppf(0.9, 1)
    error = np.sqrt(0.09 / 40_000) / stats.chi2.pdf(quantile, 1)
    assert model.tracked[0] == pytest.approx(quantile, abs=10 * error)
    assert model.tracked[1] == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("loss", ["squared(2)", "binary_logistic"])
@pytest.mark.parametrize("risk", ["semivariance", "moments 4", "semideviation"])
def test_a_clip_bounds_the_pull_of_every_sample(risk, loss):
    """The step is the same as with the clipped pull, and within [0, 2] times the mean's."""
    risk, (losses, kind, _) = RISKS[risk], LOSSES[loss]
    X, y = task(kind, 1)
    gradients = {}
    for weight, clip in ((risk.weight, None), (50.0, 1.0), (0.0, None)):
        model = _core.Colk(
            KERNEL.core, _core.parse_loss(loss), risk=risk.kind, weight=weight,
            parameter=risk.parameter, clip=clip, step=constant(STEP),
            tracking=constant(1.0), compression=fixed(0.0), regularization=SHRINKAGE,
            average=False, features=2, outputs=1,
        )  # fmt: skip
        # The first mini-batch starts from zero, whatever the risk.
        F = np.zeros((len(X), 1))
        gradients[weight] = step_of(model, X, y)[:, 0]
        clipped = model.risk_trace[-1, 3]
    d = losses(F, y) - losses(F, y).mean()
    slopes = gradients[0.0]
    pull, count = Risk(risk.kind, 50.0, risk.parameter, clip=1.0).pull(d)
    assert clipped == 0
    assert count > 0 or np.ptp(d) == 0
    assert (np.abs(pull) <= 1).all()
    assert_allclose(gradients[50.0], slopes * (1 + pull - pull.mean()), atol=1e-12)


# -- the general problem ---------------------------------------------------------------------------


def ratios(values, y):
    """h: three numbers of two outputs; their derivatives."""
    a, b = values.T
    h = np.column_stack([a * b, np.sin(a) + y[:, 0], b**2])
    zero = np.zeros_like(a)
    slopes = np.array([[b, a], [np.cos(a), zero], [zero, 2 * b]])
    return h, slopes.transpose(2, 0, 1)


def outer_of(values, y, g):
    """Return l and its derivatives by the values and by g."""
    g1, g2, g3 = g[0]
    a, b = values.T
    value = (a - g1) ** 2 + y[:, 0] * b * g2 + np.exp(-g3) + g1 * g2 * g3
    by_f = np.column_stack([2 * (a - g1), y[:, 0] * g2])
    by_g = np.column_stack(
        [-2 * (a - g1) + g2 * g3, y[:, 0] * b + g1 * g3, -np.exp(-g3) + g1 * g2 + 0 * a]
    )
    return value, by_f, by_g


def test_a_general_problem_with_several_expectations_and_outputs():
    X, y = task("numbers", 1)
    model = CompositionalLearner(
        inner=lambda f, y: ratios(f, y)[0],
        inner_derivative=lambda f, y: ratios(f, y)[1],
        outer_gradient=lambda f, y, g: outer_of(f, y, g)[2],
        direct_gradient=lambda f, y, g: outer_of(f, y, g)[1],
        outer=lambda f, y, g: outer_of(f, y, g)[0],
        n_inner=3, n_outputs=2, kernel=KERNEL, learning_rate=STEP, tracking_rate=1.0,
        regularization=SHRINKAGE, batch_size=2 * SAMPLES, average=False, parsimony=0.0,
    )  # fmt: skip
    other = task("numbers", 1, seed=3)
    model.partial_fit(*other)
    # From zero, half of the problem has no gradient: two steps are taken first.
    model.partial_fit(other[0] + 0.01, other[1])
    F = model.predict(X)

    def objective(values):
        return outer_of(values, y, ratios(values, y)[0].mean(axis=0, keepdims=True))[0].mean()

    found = step_of(model._model, X, y)
    assert np.abs(found).max() > 0.01
    assert_allclose(found, slope(objective, F), rtol=1e-5, atol=1e-8)
    assert_allclose(model.tracked_, ratios(F, y)[0].mean(axis=0), rtol=1e-12)
    assert model.trace_["mean"][-1] == pytest.approx(objective(F), rel=1e-12)
    assert_allclose(model.trace_["tracked"][-1], model.tracked_[0])


# -- convexity -------------------------------------------------------------------------------------


def share_above_the_chord(risk, loss, pairs=4000, samples=8):
    """Return how often the objective at a point between two functions is above their chord."""
    random = np.random.RandomState(4)
    violations = 0
    for _ in range(pairs):
        y = random.randn(samples) + 3 * (random.uniform(size=samples) < 0.2)
        if loss is colk.logistic:
            y = (y > 0).astype(float)
        f, g = (10 ** random.uniform(-1, 1) * random.randn(samples) for _ in "fg")
        s = random.uniform()

        ends = (risk.total(loss(values, y)[0]) for values in (f, g))
        chord = s * next(ends) + (1 - s) * next(ends)
        between = risk.total(loss(s * f + (1 - s) * g, y)[0])
        violations += between > chord + 1e-9 * abs(chord)
    return violations / pairs


@pytest.mark.parametrize("loss", [colk.squared(1), colk.squared(2), colk.huber(0.5), colk.logistic])
@pytest.mark.parametrize("weight", [0.1, 0.5, 1.0])
def test_the_default_risk_is_convex(weight, loss):
    assert share_above_the_chord(Risk("semideviation", weight), loss) == 0


def test_the_other_risks_are_not():
    for risk in (
        Risk("semivariance", 1.0), Risk("moments", 1.0, 2), Risk("moments", 1.0, 4),
        Risk("semideviation", 5.0),
    ):  # fmt: skip
        assert share_above_the_chord(risk, colk.squared(2)) > 0.005, risk

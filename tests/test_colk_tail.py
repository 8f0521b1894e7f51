"""What risk does: the tail of the loss shrinks by what the exact minimisers promise."""

from functools import cache

import numpy as np
import pytest
from colk_reference import Risk
from scipy.optimize import brentq
from scipy.stats import norm

from parsimon import COLKRegressor, POLKRegressor, kernels
from parsimon.datasets import make_regression_outliers

SETS = 20
# The paper's settings; POLK takes one sample per step, COLK two.
SETTINGS = {
    "loss": "squared(2)",
    "kernel": kernels.Gaussian(0.06),
    "budget": 0.002,
    "regularization": 0.0,
    "epochs": 1,
    "shuffle": False,
    "normalize_y": False,
    "refit": False,
}
RISKS = {
    "moments": Risk("moments", 0.1, 4, clip=1.0),
    "semivariance": Risk("semivariance", 0.1, clip=1.0),
    "cvar": Risk("cvar", 1.0, 0.9),
}
# What prototypes took off standard deviation and 99 % quantile, at least: 2.41 and 14.1 became 2.22
# and 13.0, or 2.24 and 13.1, all rounded.
REFERENCES = {
    "moments": (1 - 2.225 / 2.405, 1 - 13.05 / 14.05),
    "semivariance": (1 - 2.245 / 2.405, 1 - 13.15 / 14.05),
}
# CVaR multiplies the gradients of the tail by ten: it needs a smaller step.
STEPS = {"polk": 0.02, "moments": 0.02, "semivariance": 0.02, "cvar": 0.005}


# -- the exact minimisers --------------------------------------------------------------------------
# The noise does not depend on x, so the minimiser is the truth plus a constant: that of a problem
# of one number. Expectations are sums over the noise and its probabilities.


def noise():
    grid = np.linspace(-2, 9, 200_001)
    density = 0.95 * norm.pdf(grid, 0, 0.2) + 0.05 * norm.pdf(grid, 3, np.hypot(1, 0.2))
    return grid, density / density.sum()


def quasi_gradient(shift, risk):
    """The expected braces of (83) at the truth plus a shift, bounded outer derivative and all."""
    grid, probability = noise()
    losses, slopes = (shift - grid) ** 2, 2 * (shift - grid)
    if risk is None:
        return probability @ slopes
    if risk.kind == "cvar":
        order = np.argsort(losses)
        above = np.cumsum(probability[order]) > risk.parameter
        return probability[order][above] @ slopes[order][above]
    pull, _ = risk.pull(losses - probability @ losses)
    return probability @ (slopes * (1 + pull)) - (probability @ pull) * (probability @ slopes)


@cache
def exact_shift(name):
    return brentq(lambda shift: quasi_gradient(shift, RISKS.get(name)), 0, 3)


# -- measurements ----------------------------------------------------------------------------------


@cache
def held_out():
    return make_regression_outliers(
        40_000, outliers="one-sided", random_state=999, return_truth=True
    )


def tail(values):
    """Return standard deviation, 99 % quantile and CVaR at 0.9 of the loss on held-out data."""
    losses = (values - held_out()[1]) ** 2
    worst = losses >= np.quantile(losses, 0.9)
    return np.array([losses.std(), np.quantile(losses, 0.99), losses[worst].mean()])


def excess(values):
    return ((values - held_out()[2]) ** 2).mean()


def learned(name, seed):
    X, y = make_regression_outliers(24_000, outliers="one-sided", random_state=seed)
    given = {**SETTINGS, "learning_rate": STEPS[name]}
    if name == "polk":
        return POLKRegressor(batch_size=1, **given).fit(X, y)
    given |= {"risk_weight": RISKS[name].weight, "tracking_rate": 0.01, "batch_size": 2}
    return COLKRegressor(name, solver="sgd", **given).fit(X, y)


def last_iterate(model, X):
    entries = dict(model._model.to_archive())
    return model.expansion_.kernel(X, entries["dictionary"]) @ entries["weights"][:, 0]


@cache
def results(name):
    """Return, for each training set: model order, excess, tail of the average and of the last."""
    rows = []
    for seed in range(SETS):
        model = learned(name, seed)
        X = held_out()[0]
        values = model.predict(X)
        rows.append(
            [model.model_order_, excess(values), *tail(values), *tail(last_iterate(model, X))]
        )
    return np.array(rows)


def margins(name):
    """Return what risk takes off the tail, set by set, as a part of POLK's."""
    return 1 - results(name)[:, 2:] / results("polk")[:, 2:]


def exact_margins(name):
    truth = held_out()[2]
    return 1 - tail(truth + exact_shift(name)) / tail(truth + exact_shift("polk"))


# -- what risk does --------------------------------------------------------------------------------


def test_the_exact_minimisers():
    assert exact_shift("polk") == pytest.approx(0.05 * 3, abs=1e-6)  # the mean of the noise
    grid, probability = noise()
    for name, risk in RISKS.items():
        assert exact_shift(name) > exact_shift("polk") + 0.1
        if risk.kind == "cvar":
            continue
        # Without a clip the quasi-gradient is the derivative of the objective.
        raw = Risk(risk.kind, risk.weight, risk.parameter)

        def objective(shift, raw=raw):
            losses = (shift - grid) ** 2
            mean = probability @ losses
            return mean + raw.weight * (probability @ raw.dispersion(losses - mean)[0])

        slope = (objective(0.2 + 1e-5) - objective(0.2 - 1e-5)) / 2e-5
        assert quasi_gradient(0.2, raw) == pytest.approx(slope, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["moments", "semivariance"])
def test_spread_and_upper_quantile_shrink_as_they_must(name):
    found, exact = margins(name), exact_margins(name)
    assert (exact[:2] > REFERENCES[name]).all()
    assert (found[:, :2] > 0).all()
    assert (found[:, :2].mean(axis=0) > REFERENCES[name]).all()
    # The last iterate of a constant step is noisier, and noisier with risk; still every time.
    assert (found[:, 3:5] > 0).all()


@pytest.mark.slow
def test_the_conditional_value_at_risk_shrinks_as_it_must():
    found, exact = margins("cvar"), exact_margins("cvar")
    assert exact[2] > 0.2
    assert (found > 0).all()
    # 2.41 and 14.1 became 1.76 and 10.4 in prototypes.
    assert (found[:, :2].mean(axis=0) > (1 - 1.765 / 2.405, 1 - 10.45 / 14.05)).all()
    # Lower than with the other risks, which minimise something else.
    for name in ("moments", "semivariance"):
        assert (results("cvar")[:, 4] < results(name)[:, 4]).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", RISKS)
def test_risk_is_paid_for_in_the_mean_at_equal_model_order(name):
    assert (results(name)[:, 1] > results("polk")[:, 1]).all()
    exact = exact_shift(name) ** 2
    assert results(name)[:, 1].mean() == pytest.approx(exact, rel=0.2)
    orders = results(name)[:, 0].mean(), results("polk")[:, 0].mean()
    assert orders[0] == pytest.approx(orders[1], rel=0.1)


@pytest.mark.slow
def test_against_outliers_there_is_the_huber_loss():
    X, y = make_regression_outliers(24_000, outliers="one-sided", random_state=0)
    given = {**SETTINGS, "loss": "huber(0.5)", "learning_rate": 0.02}
    robust = excess(POLKRegressor(batch_size=1, **given).fit(X, y).predict(held_out()[0]))
    # The pull of 5 % outliers is 0.5 at most: f is off by 0.05 * 0.5 / 0.95, squared, and noise.
    assert robust < 0.003
    assert robust < 0.15 * results("polk")[0, 1]
    assert robust < 0.05 * results("moments")[0, 1]

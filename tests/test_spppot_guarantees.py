"""What the SPPPOT paper proves, on problems whose optimum is known."""

from functools import cache

import numpy as np
import pytest
from intensity_common import toy

from parsimon import MirrorNewtonIntensity, SPPPOTIntensity, kernels
from parsimon.schedules import PowerLaw
from parsimon.spppot import _solved

STEPS = {"domain": (0, 1), "solver": "sgd", "grid_size": 20, "bandwidth": 0.08, "average": False}
STEPS |= {"regularization": 0.0, "batch_size": 1}


def batch(points, weights):
    return kernels.Gaussian(0.08), np.asarray(points), np.asarray(weights).ravel()


def squared_norm(kernel, points, weights):
    return float(weights @ kernel(points) @ weights)


def test_lemma_1_the_projected_gradient_is_off_by_the_budget_over_the_step():
    eta, alpha = 0.1, 0.05
    model = SPPPOTIntensity(**STEPS, learning_rate=eta, parsimony=alpha)
    model.partial_fit(toy()[:50])
    for x in toy()[50:120]:
        kernel, points, weights = batch(model.dictionary_, model.weights_)
        nodes = model.nodes_
        density = np.exp(kernel(nodes, points) @ weights)
        # z less eta g, with g the gradient of the likelihood
        stepped = np.vstack([points, x[None], nodes])
        step = np.concatenate([weights, [eta], -eta * density / len(nodes)])
        model.partial_fit(x[None])
        after, w = model.dictionary_, model.weights_.ravel()
        gap = squared_norm(kernel, np.vstack([stepped, after]), np.concatenate([step, -w]))
        assert np.sqrt(max(gap, 0)) / eta <= alpha + 1e-6
    # Points were dropped: there is something to bound.
    assert model.trace_["compression_error"].max() > 0


@cache
def best():
    """Return the smallest risk on the grid's span, and what measures the risk of a function."""
    model = SPPPOTIntensity(domain=(0, 1), grid_size=20, bandwidth=0.08, regularization=1e-6).fit(
        toy()
    )
    return risk(model.expansion_, toy())


def risk(z, X):
    """Return the negative log-likelihood of a point; the constant of z is that of its integral."""
    grid = (np.arange(2000)[:, None] + 0.5) / 2000
    return float(np.log(np.exp(z(grid)).mean()) - np.mean(z(X)))


def after(epochs, **given):
    model = SPPPOTIntensity(**STEPS | given, random_state=0)
    for _ in range(epochs):
        model.partial_fit(toy())
    return risk(model.expansion_, toy()) - best()


def test_theorem_1_the_risk_falls_to_a_ball_that_is_smaller_for_smaller_steps():
    given = {"learning_rate": 0.1, "parsimony": 1e-3, "batch_size": 10}
    early = [after(epochs, **given) for epochs in (1, 2, 4)]
    assert early[0] > early[1] > early[2] > 0
    near, far = (after(24, learning_rate=eta, parsimony=1e-3, batch_size=1) for eta in (0.02, 0.5))
    assert near < far


@pytest.mark.filterwarnings("ignore:The learned density integrates")
def test_corollary_2_the_model_order_has_a_bound():
    alpha, width = 0.1, 0.05
    given = STEPS | {"grid_size": 12, "bandwidth": width}
    model, orders = SPPPOTIntensity(**given, learning_rate=0.1, parsimony=alpha), []
    for start in range(0, 10_000, 500):
        model.partial_fit(np.random.RandomState(start).beta(3, 3, (500, 1)))
        orders.append(model.model_order_)
    # |g'| <= 1, and of Gaussians of this width |phi(x) - phi(y)| <= |x - y| / width.
    assert 12 < max(orders) <= 12 + 1 + 1 / (width * alpha)
    assert max(orders[10:]) <= max(orders[:10]) + 2


def test_theorem_3_steps_that_diminish_come_nearer():
    def regret(schedule):
        model = MirrorNewtonIntensity(
            domain=(0, 1),
            solver="sgd",
            grid_size=20,
            bandwidth=0.08,
            schedule=schedule,
            learning_rate=4.0,
        )
        random, differences = np.random.RandomState(0), []
        for _ in range(6):
            model.partial_fit(toy()[random.permutation(len(toy()))])
            differences.append(risk(model.expansion_, toy()) - best())
        return differences[-1]

    assert 0 < regret(PowerLaw(0.6, 50)) < 0.02
    assert regret(PowerLaw(0.6, 50)) < regret("constant") + 0.002


def test_a_schedule_is_about_steps():
    with pytest.raises(ValueError, match="schedule='sqrt' is a choice about the paper's steps"):
        SPPPOTIntensity(schedule="sqrt").fit(toy())
    model = SPPPOTIntensity(**STEPS, learning_rate=0.1, schedule="inverse").partial_fit(toy()[:64])
    assert model.learning_rate_ == pytest.approx(0.1)
    assert _solved.kept(model, 1.0) == 1.0

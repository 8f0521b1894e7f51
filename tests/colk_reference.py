"""COLK written down as in the paper: slow, direct, and what the core is held to.

Of each mini-batch the first half is theta, (x, y), the second half xi, (x', y'); with an odd number
theta has one more, and a single sample has the one before it as xi. A mini-batch with too few
samples takes their share of alpha, beta and the budget. A loss takes the values of f and the
targets and returns the loss of each sample and its derivative by the value.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit
from spppot_reference import FIRST_ORDER_RECENCY, Fit, append, average, batches, compress

# Width of the smoothed positive part of the semivariance.
SMOOTHING = 0.1


# -- losses ----------------------------------------------------------------------------------------


def squared(scale):
    """Return scale (f - y)^2 / 2; the paper's (80) has the scale 2."""
    return lambda f, y: (0.5 * scale * (f - y) ** 2, scale * (f - y))


def huber(threshold):
    def loss(f, y):
        r = f - y
        value = np.where(
            np.abs(r) <= threshold, 0.5 * r**2, threshold * (np.abs(r) - 0.5 * threshold)
        )
        return value, np.clip(r, -threshold, threshold)

    return loss


def logistic(f, y):
    """Return log(1 + exp(-s f)), s = 1 for the class 1 and -1 for the class 0."""
    s = 2 * y - 1
    return np.logaddexp(0, -s * f), -s * expit(-s * f)


# -- risks: what is minimised beside the mean loss -------------------------------------------------


@dataclass(frozen=True)
class Risk:
    """A dispersion with its weight; `parameter` is P of the moments or the level of CVaR."""

    kind: str
    weight: float
    parameter: float = 0.0
    clip: float = np.inf

    def dispersion(self, d):
        """Return D at deviations d = l - E l, and its derivative by d."""
        if self.kind == "semideviation":
            return np.maximum(d, 0), (d > 0).astype(float)
        if self.kind == "semivariance":
            smooth = SMOOTHING * np.logaddexp(0, d / SMOOTHING)
            return smooth**2, 2 * smooth * expit(d / SMOOTHING)
        powers = np.arange(2, self.parameter + 1)[:, None]  # (81), and m(p, g) below (83)
        return (d**powers).sum(axis=0), (powers * d ** (powers - 1)).sum(axis=0)

    def pull(self, d):
        """Return w m, bounded by the clip, and how many were."""
        wm = self.weight * self.dispersion(d)[1]
        return np.clip(wm, -self.clip, self.clip), np.count_nonzero(np.abs(wm) > self.clip)

    def objective(self, losses, u=None):
        """Return the mean and the dispersion of an empirical distribution of losses."""
        if self.kind == "cvar":
            tail = np.maximum(losses - u, 0).mean() / (1 - self.parameter)
            return losses.mean(), u + tail
        return losses.mean(), self.dispersion(losses - losses.mean())[0].mean()

    def total(self, losses, u=None):
        mean, dispersion = self.objective(losses, u)
        share = 1 - self.weight if self.kind == "cvar" else 1
        return share * mean + self.weight * dispersion


@dataclass
class Trace:
    tracked: list = field(default_factory=list)
    mean: list = field(default_factory=list)
    dispersion: list = field(default_factory=list)
    clipped: list = field(default_factory=list)

    def add(self, *record):
        for column, value in zip(vars(self).values(), record, strict=True):
            column.append(value)


def falling(initial, power, delay):
    return lambda t: initial * (1 + t / delay) ** -power


def learn(
    X, y, kernel, loss, risk, *, alpha, beta, batch, budget=0.0, regularization=0.0, weights=None,
):  # fmt: skip
    """Return the fit and its trace; alpha and beta are functions of the mini-batches done."""
    weights = np.ones(len(X)) if weights is None else weights
    fit = Fit(kernel, X[:0], np.zeros((0, 1)), np.zeros((0, 1)))
    step = cvar_step if risk.kind == "cvar" else mean_risk_step
    trace, g = Trace(), None
    for t, rows in enumerate(batches(np.arange(len(X)), batch)):
        share = len(rows) / batch
        if len(rows) == 1 and t > 0 and step is mean_risk_step:
            rows = np.array([rows[0], rows[0] - 1])
        x, target, relative = X[rows], y[rows], weights[rows] / weights.mean()
        values = (kernel(x, fit.points) @ fit.weights)[:, 0]
        gradient, g, record = step(values, target, relative, loss, risk, g, share * beta(t))
        gradient = weights[rows] * gradient
        trace.add(*record)
        fit.weights = (1 - share * alpha(t) * regularization) * fit.weights
        append(fit, x, -share * alpha(t) * gradient[:, None])
        if gradient.any():
            compress(fit, budget, alpha(t), protected=0, share=share)
        else:
            fit.orders.append(len(fit.points))
        average(fit, t + 1, FIRST_ORDER_RECENCY)
    return fit, trace


def mean_risk_step(values, target, relative, loss, risk, g, beta):
    """(82) and the braces of (83), the expectations over theta and xi being those of each half."""
    theta, xi = halves(len(values))
    losses, slopes = loss(values, target)
    mean_of_xi = np.average(losses[xi], weights=relative[xi])
    rate = 1 if g is None else min(1, beta * relative[xi].mean())
    g = (1 - rate) * (g or 0) + rate * mean_of_xi
    d = losses[theta] - g
    pull, clipped = risk.pull(d)
    gradient = np.zeros(len(values))
    gradient[theta] += slopes[theta] * (1 + pull) / len(pull)
    gradient[xi] -= slopes[xi] * (relative[theta] * pull).mean() / len(slopes[xi])
    return gradient, g, (g, losses[theta].mean(), risk.dispersion(d)[0].mean(), clipped)


def halves(count):
    first = count - count // 2
    return slice(0, first), slice(first if count > 1 else 0, count)


def cvar_step(values, target, relative, loss, risk, state, beta):
    """A subgradient step of u, in units of the tracked mean loss, then one of f at the new u."""
    losses, slopes = loss(values, target)
    tail = 1 / (1 - risk.parameter)
    mean_loss = np.average(losses, weights=relative)
    if state is None:
        u = scale = mean_loss
    else:
        u, scale = state
        rate = min(1, beta * relative.mean())
        scale = (1 - rate) * scale + rate * mean_loss
        u = u - rate * scale * (1 - tail * np.average(losses > state[0], weights=relative))
    share = 1 - risk.weight + risk.weight * tail * (losses > u)
    mean, dispersion = risk.objective(losses, u)
    return slopes * share / len(losses), (u, scale), (u, mean, dispersion, 0)


# -- policy evaluation -----------------------------------------------------------------------------


def evaluate_policy(
    states, rewards, following, terminal, kernel, *, gradient, alpha, beta, discount, batch,
    budget=0.0, regularization=0.0,
):  # fmt: skip
    """Return the fits of V and of z, which is read before it is updated; TD(0) has no z."""
    nothing = np.zeros((0, 1))
    V = Fit(kernel, states[:0], nothing, nothing)
    z = Fit(kernel, states[:0], nothing, nothing)
    losses = []
    for t, rows in enumerate(batches(np.arange(len(states)), batch), start=1):
        x, y, r = states[rows], following[rows], rewards[rows]
        ahead = discount * ~terminal[rows]
        d = r + ahead * V.z(y, average=False)[:, 0] - V.z(x, average=False)[:, 0]
        expected = z.z(x, average=False)[:, 0]
        share = len(rows) / batch
        V.weights = (1 - share * alpha * regularization) * V.weights
        if gradient:
            add(V, x, alpha * expected / batch, y, -alpha * ahead * expected / batch)
            add(z, x, beta * (d - expected) / batch)
            settle(z, beta * (d - expected), budget, beta, share)
        else:
            add(V, x, alpha * d / batch)
        settle(V, expected if gradient else d, budget, alpha, share)
        average(V, t, FIRST_ORDER_RECENCY)
        losses.append((d**2).mean() / 2)
    return V, z, losses


def add(fit, *points_and_weights):
    for points, weights in zip(points_and_weights[::2], points_and_weights[1::2], strict=True):
        append(fit, points, weights[:, None])


def settle(fit, change, budget, rate, share):
    """Compress unless nothing was added."""
    if change.any():
        compress(fit, budget, rate, protected=0, share=share)
    else:
        fit.orders.append(len(fit.points))

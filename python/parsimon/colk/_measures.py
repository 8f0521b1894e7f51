"""Risks as functions of many losses at once: their value, and how much each loss counts in it.

A measure maps losses l_i, which have shares p_i that add up to 1, to its value rho and to counts
q_i with d rho = sum_i p_i q_i d l_i. With all counts 1 it is the mean.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Measure = Callable[[Array, Array], tuple[float, Array]]

# Width of the smoothed positive part of a deviation, in units of the mean loss.
_WIDTH = 0.1
# The same where the kink is only in the way of a solver: the value moves by less than 1 %.
_SHARP = 0.01
# A dispersion grows linearly from where its slope reaches this, at the latest.
_STEEPEST = 1e6


def measure(risk: str, weight: float, parameter: float, clip: float | None) -> Measure:
    """Return the risk of an estimator; `parameter` is the level of CVaR or the order of moments."""
    if risk == "semideviation":
        return lambda losses, shares: _semideviation(losses, shares, weight)
    if risk == "cvar":
        return lambda losses, shares: _mixed_cvar(losses, shares, weight, parameter)
    dispersion = _squared_part if risk == "semivariance" else _moments(int(parameter))
    bounded = _linear_from(dispersion, weight, np.inf if clip is None else clip)
    return lambda losses, shares: _relative(losses, shares, weight, bounded)


def _softplus(values: Array) -> tuple[Array, Array]:
    """Return log(1 + exp(v)) and its derivative."""
    small = np.exp(-np.abs(values))
    return np.maximum(values, 0) + np.log1p(small), np.where(values >= 0, 1, small) / (1 + small)


def _semideviation(losses: Array, shares: Array, weight: float) -> tuple[float, Array]:
    """Return m (1 + w E s(l / m - 1)), s the positive part with its kink rounded off."""
    return _relative(losses, shares, weight, lambda z: _scaled(_softplus(z / _SHARP), _SHARP))


def _scaled(pair: tuple[Array, Array], width: float) -> tuple[Array, Array]:
    return width * pair[0], pair[1]


def _relative(
    losses: Array, shares: Array, weight: float, dispersion: Callable[[Array], tuple[Array, Array]]
) -> tuple[float, Array]:
    """Return m (1 + w E d(l / m - 1)) with m the mean loss."""
    mean = float(shares @ losses)
    if not mean > 0:
        return mean, np.ones_like(losses)
    relative = losses / mean
    value, slope = dispersion(relative - 1)
    spread = weight * float(shares @ value)
    through_mean = weight * float(shares @ (slope * relative))
    return mean * (1 + spread), 1 + spread + weight * slope - through_mean


def _squared_part(z: Array) -> tuple[Array, Array]:
    value, slope = _softplus(z / _WIDTH)
    return (_WIDTH * value) ** 2, 2 * _WIDTH * value * slope


def _moments(order: int) -> Callable[[Array], tuple[Array, Array]]:
    def dispersion(z: Array) -> tuple[Array, Array]:
        value, slope = np.zeros_like(z), np.zeros_like(z)
        for power in range(order, 1, -1):
            value, slope = value * z + 1, slope * z + power
        return value * z**2, slope * z

    return dispersion


def _linear_from(
    dispersion: Callable[[Array], tuple[Array, Array]], weight: float, clip: float
) -> Callable[[Array], tuple[Array, Array]]:
    """Return the same, continued by its tangent from where w times its slope reaches the clip."""
    most = min(clip / weight, _STEEPEST) if weight > 0 else _STEEPEST
    low, high = 0.0, 1.0
    while dispersion(np.array([high]))[1][0] < most:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (low, middle) if dispersion(np.array([middle]))[1][0] >= most else (middle, high)
        )

    def bounded(z: Array) -> tuple[Array, Array]:
        value, slope = dispersion(np.minimum(z, high))
        return value + np.maximum(z - high, 0) * slope, slope

    return bounded


def _mixed_cvar(losses: Array, shares: Array, weight: float, level: float) -> tuple[float, Array]:
    """Return (1 - w) E l + w min_u {u + E s(l - u) / (1 - level)}."""
    mean = float(shares @ losses)
    width = _SHARP * mean
    if not width > 0:
        return mean, np.ones_like(losses)
    at_risk = value_at_risk(losses, shares, level)
    # The minimiser of the smoothed form: as many losses are above it as below.
    low, high = at_risk - 40 * width, at_risk + 40 * width
    for _ in range(50):
        middle = (low + high) / 2
        above = float(shares @ _softplus((losses - middle) / width)[1])
        low, high = (middle, high) if above > 1 - level else (low, middle)
    scaled = (losses - low) / width
    value, slope = _softplus(scaled)
    tail = low + width * float(shares @ value) / (1 - level)
    # The width grows with the mean.
    by_width = _SHARP * float(shares @ (value - scaled * slope))
    counts = (slope + by_width) / (1 - level)
    return (1 - weight) * mean + weight * tail, 1 - weight + weight * counts


def value_at_risk(losses: Array, shares: Array, level: float) -> float:
    """Return the smallest loss that a share `level` of all losses does not exceed."""
    order = np.argsort(losses, kind="stable")
    reached = np.searchsorted(np.cumsum(shares[order]), level * (1 - 1e-12))
    return float(losses[order[min(int(reached), len(losses) - 1)]])

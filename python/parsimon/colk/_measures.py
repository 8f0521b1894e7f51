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
    if risk in _OF_WEIGHT:
        function = _OF_WEIGHT[risk]
        return lambda losses, shares: function(losses, shares, weight)
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


def _root_semideviation(losses: Array, shares: Array, weight: float) -> tuple[float, Array]:
    """Return E l + w sqrt(E (l - E l)_+^2)."""
    mean = float(shares @ losses)
    above = np.maximum(losses - mean, 0)
    size = float(np.sqrt(shares @ above**2))
    if not size > 0:
        return mean, np.ones_like(losses)
    return mean + weight * size, 1 + weight * (above - float(shares @ above)) / size


def _largest(losses: Array, shares: Array) -> float:
    """Return the largest loss that occurs."""
    return float(losses[shares > 0].max())


def _entropic(losses: Array, shares: Array, weight: float) -> tuple[float, Array]:
    """Return log(E exp(w l)) / w, the mean for w = 0."""
    if weight == 0:
        return float(shares @ losses), np.ones_like(losses)
    largest = _largest(losses, shares)
    # What has no share may be larger.
    tilted = np.exp(np.minimum(weight * (losses - largest), 0))
    mean = float(shares @ tilted)
    return largest + float(np.log(mean)) / weight, tilted / mean


def _kl_robust(losses: Array, shares: Array, radius: float) -> tuple[float, Array]:
    """Return the largest E_Q l with KL(Q | P) <= radius: min over t of t (radius + log E e^(l/t)).

    Its derivative by t is radius - KL of the tilted distribution, which falls as t grows. The law
    that is farthest sees the largest loss alone, at a distance of -log P(l = max l).
    """
    largest = _largest(losses, shares)
    spread = largest - float(shares @ losses)
    if radius == 0 or not spread > 0:
        return float(shares @ losses), np.ones_like(losses)
    worst = losses == largest
    share = float(shares[worst].sum())
    if radius >= -np.log(share):
        return largest, worst / share
    low, high = 1e-6 * spread, 1e6 * spread
    for _ in range(80):
        middle = float(np.sqrt(low * high))
        value, counts = _entropic(losses, shares, 1 / middle)
        far = float(shares @ (counts * losses)) - value > radius * middle
        low, high = (middle, high) if far else (low, middle)
    value, counts = _entropic(losses, shares, 1 / high)
    return value + radius * high, counts


def _chi_square_robust(losses: Array, shares: Array, radius: float) -> tuple[float, Array]:
    """Return the largest E_Q l with E_P (dQ/dP - 1)^2 <= radius.

    That is min over u of u + sqrt(1 + radius) sqrt(E (l - u)_+^2), whose derivative grows with u.
    """
    mean = float(shares @ losses)
    spread = _largest(losses, shares) - mean
    if radius == 0 or not spread > 0:
        return mean, np.ones_like(losses)
    factor = float(np.sqrt(1 + radius))
    # Where all losses are above u, the minimum is at E l - sd / sqrt(radius).
    deviation = float(np.sqrt(shares @ (losses - mean) ** 2))
    low, high = mean - deviation / np.sqrt(radius) - spread, mean + spread
    for _ in range(80):
        middle = (low + high) / 2
        above = np.maximum(losses - middle, 0)
        size = float(np.sqrt(shares @ above**2))
        grows = size == 0 or factor * float(shares @ above) < size
        low, high = (low, middle) if grows else (middle, high)
    above = np.maximum(losses - low, 0)
    size = float(np.sqrt(shares @ above**2))
    return low + factor * size, factor * above / size


_OF_WEIGHT = {
    "root_semideviation": _root_semideviation,
    "entropic": _entropic,
    "kl": _kl_robust,
    "chi_square": _chi_square_robust,
}


def value_at_risk(losses: Array, shares: Array, level: float) -> float:
    """Return the smallest loss that a share `level` of all losses does not exceed."""
    order = np.argsort(losses, kind="stable")
    reached = np.searchsorted(np.cumsum(shares[order]), level * (1 - 1e-12))
    return float(losses[order[min(int(reached), len(losses) - 1)]])

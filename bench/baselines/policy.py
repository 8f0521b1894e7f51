"""Value functions of a policy by ways that parsimon does not offer, and why it does not.

Both learn V from transitions x -> y with reward r, in the span of the kernels of some nodes, and
descend the squared Bellman error. They differ in how they know E[d | x], the expectation of the
temporal difference d = r + gamma V(y) - V(x) given the state.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.baselines.intensity import RANK_TOLERANCE, gaussian

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Span:
    """Functions spanned by the kernels of nodes, in an orthonormal basis."""

    nodes: Array
    bandwidth: float

    def features(self, X: Array) -> Array:
        """Return the coordinates of k(x, .), projected on the span."""
        values, vectors = np.linalg.eigh(gaussian(self.nodes, self.nodes, self.bandwidth))
        large = values > RANK_TOLERANCE * values[-1]
        to_basis = vectors[:, large] / np.sqrt(values[large])
        return np.asarray(gaussian(X, self.nodes, self.bandwidth) @ to_basis)


@dataclass(frozen=True)
class Iterates:
    """Coordinates of V after the last step, and on average over the second half of the steps."""

    last: Array
    average: Array


def scalar_tracker(
    now: Array, rewards: Array, following: Array, *, discount: float, alpha: float, beta: float
) -> Iterates:
    """Track E[d] by one number for all states, as the frame of COLK's paper has it.

    A warning, not a method: the expectation that the Bellman error needs depends on the state. One
    number only makes the *mean* of d vanish, which very many functions do, and V comes out as one
    of these, far from the right one at any beta.

    Parameters
    ----------
    now, following : ndarray of shape (n_transitions, n_coordinates)
        Features of the states and of those that followed.
    """
    z = 0.0
    value, total = np.zeros(now.shape[1]), np.zeros(now.shape[1])
    half = len(now) // 2
    for t in range(len(now)):
        slope = discount * following[t] - now[t]
        z += beta * (rewards[t] + slope @ value - z)
        value -= alpha * z * slope
        if t >= half:
            total += value
    return Iterates(value, total / (len(now) - half))


def double_sampling(
    now: Array, rewards: Array, following: Array, again: Array, *, discount: float, alpha: float
) -> Iterates:
    """Take d from one successor of x and its gradient from another, independent one.

    Unbiased, but only a simulator that can be set to a state can answer twice from there.
    """
    value, total = np.zeros(now.shape[1]), np.zeros(now.shape[1])
    half = len(now) // 2
    for t in range(len(now)):
        difference = rewards[t] + (discount * following[t] - now[t]) @ value
        value -= alpha * difference * (discount * again[t] - now[t])
        if t >= half:
            total += value
    return Iterates(value, total / (len(now) - half))

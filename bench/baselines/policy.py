"""Value functions of a policy by ways that parsimon does not offer, and why it does not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator

from bench.baselines.intensity import Array, gaussian, midpoints, orthonormal


@dataclass(eq=False, repr=False)
class BellmanDescent(BaseEstimator):
    """Descend the squared Bellman error in the span of the kernels of some nodes.

    V is learned from transitions x -> y with reward r. Double sampling takes the temporal
    difference d from one successor of x and its gradient from another, independent one: unbiased,
    but only a simulator that can be set to a state can answer twice from there.

    With `beta`, E[d] is tracked by one number for all states, as COLK tracks expectations that are
    not conditional. A warning, not a method, and not the paper's, which sends the conditional case
    to its reference [2]: very many functions make the *mean* of d vanish.
    """

    alpha: float  # the step
    beta: float | None = None  # of the tracker; None: double sampling
    discount: float = 0.9
    bandwidth: float = 0.1
    grid_size: int = 50  # nodes on the unit interval
    average: bool = True  # over the second half of the steps, or the last iterate

    def fit(self, states: Array, rewards: Array, following: Array, again: Array) -> BellmanDescent:
        now, following, again = map(self._features, (states, following, again))
        self.model_order_ = now.shape[1]
        tracked, value, total = 0.0, np.zeros(self.model_order_), np.zeros(self.model_order_)
        for t in range(len(now)):
            slope = self.discount * following[t] - now[t]
            difference = rewards[t] + slope @ value
            if self.beta is None:
                value -= self.alpha * difference * (self.discount * again[t] - now[t])
            else:
                tracked += self.beta * (difference - tracked)
                value -= self.alpha * tracked * slope
            if t >= len(now) // 2:
                total += value
        self._value = total / (len(now) - len(now) // 2) if self.average else value
        return self

    def predict(self, states: Array) -> Array:
        return self._features(states) @ self._value

    def _features(self, states: Array) -> Array:
        """Return the coordinates of k(x, .), projected on the span, in an orthonormal basis."""
        nodes = midpoints(self.grid_size, [(0.0, 1.0)])
        to_basis = orthonormal(gaussian(nodes, nodes, self.bandwidth))
        return gaussian(states, nodes, self.bandwidth) @ to_basis


@dataclass(eq=False, repr=False)
class ConstantValue(BaseEstimator):
    """The mean of the discounted rewards, wherever one is."""

    discount: float = 0.9

    def fit(self, states: Array, rewards: Array, following: Array, again: Array) -> ConstantValue:
        self.model_order_ = 0
        self._value = float(rewards.mean()) / (1 - self.discount)
        return self

    def predict(self, states: Array) -> Array:
        return np.full(len(states), self._value)

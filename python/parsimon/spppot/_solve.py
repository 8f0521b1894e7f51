"""Densities exp(z) by maximum penalised likelihood: Newton's method in orthonormal coordinates.

With phi(x) the coordinates of k(x, .) in the span of the dictionary and a those of z, what is
minimised is convex:

    -b'a + n log(sum_u m_u exp(z(u))) + ridge/2 |a|^2,   b = sum_i phi(x_i)

over n points and nodes u with the measure m. The constant of z is free: the density is divided by
its integral.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ._span import Span

Array = NDArray[np.float64]

_MOST_STEPS = 60
_MOST_INNER = 400
# Of the likelihood that a Newton step still promises, in nats, where no more are taken.
PRECISE, ROUGH = 1e-8, 0.05
# Coordinates up to which a Newton step is solved by a factor of the Hessian.
_MOST_DIRECT = 200
# Relative to the curvature of the likelihood: less ridge drowns in rounding.
_LEAST_RIDGE = 1e-10
# Coordinates up to which the Hessian is factored; beyond, variances come from draws.
_MOST_FACTORED = 1500
_DRAWS = 256


@dataclass(frozen=True)
class Solution:
    """Coordinates of z, and the logarithm of the integral of exp(z)."""

    coordinates: Array
    log_integral: float
    objective: float


def log_integral(values: Array, measure: Array) -> tuple[float, Array]:
    """Return the logarithm of the integral of exp(z), and the shares of the nodes in it."""
    top = float(values.max())
    shares = measure * np.exp(values - top)
    total = float(shares.sum())
    return top + float(np.log(total)), shares / total


@dataclass(frozen=True)
class Likelihood:
    """What points say, as a function of the coordinates of z."""

    span: Span
    moments: Array
    mass: float

    def solve(
        self, ridge: float, start: Array | None = None, precision: float = PRECISE
    ) -> Solution:
        """Minimise, by Newton steps that conjugate gradients solve."""
        ridge = max(ridge, _LEAST_RIDGE * max(self.mass, 1.0))
        at = np.zeros(self.span.size) if start is None else start
        value, log_total, shares = self._value(at, ridge)
        for _ in range(_MOST_STEPS):
            gradient = self.mass * self.span.from_nodes(shares) - self.moments + ridge * at
            step = self._newton_step(gradient, shares, ridge)
            promised = -float(gradient @ step)
            if not promised > precision:
                break
            length = 1.0
            while True:
                trial = self._value(at + length * step, ridge)
                if trial[0] <= value - 1e-4 * length * promised:
                    break
                length /= 2
                if length < 1e-9:  # rounding: there is nothing to gain any more
                    return Solution(at, log_total, value)
            at = at + length * step
            value, log_total, shares = trial
        return Solution(at, log_total, value)

    def _value(self, at: Array, ridge: float) -> tuple[float, float, Array]:
        log_total, shares = log_integral(self.span.to_nodes(at), self.span.measure)
        value = self.mass * log_total - float(self.moments @ at) + ridge / 2 * float(at @ at)
        return value, log_total, shares

    def hessian(self, shares: Array, ridge: float) -> Callable[[Array], Array]:
        """Return what multiplies by the Hessian where the nodes have these shares."""

        def times(vector: Array) -> Array:
            values = self.span.to_nodes(vector)
            values -= float(shares @ values)
            values *= shares
            return np.asarray(self.mass * self.span.from_nodes(values) + ridge * vector)

        return times

    def _newton_step(self, gradient: Array, shares: Array, ridge: float) -> Array:
        if len(gradient) <= _MOST_DIRECT:
            solved = linalg.solve(self.matrix(shares, ridge), gradient, assume_a="pos")
            return np.asarray(-solved)
        size = float(np.sqrt(gradient @ gradient))
        # Far from the solution a rough step is as good as an exact one.
        forcing = min(0.1, float(np.sqrt(size / max(self.mass, 1.0))))
        times = self.hessian(shares, ridge)
        return conjugate_gradients(times, -gradient, max(forcing, 1e-6) * size)

    def matrix(self, shares: Array, ridge: float) -> Array:
        """Return the Hessian itself."""
        rows, mean = self.span.dense, self.span.from_nodes(shares)
        matrix = self.mass * ((rows.T * shares) @ rows - np.outer(mean, mean))
        matrix[np.diag_indices_from(matrix)] += ridge
        return np.asarray(matrix)

    def shares(self, solution: Solution) -> Array:
        """Return how much of the integral each node has."""
        return log_integral(self.span.to_nodes(solution.coordinates), self.span.measure)[1]


def conjugate_gradients(times: Callable[[Array], Array], right: Array, tolerance: float) -> Array:
    """Solve a positive definite system until the residual is that short."""
    solution, residual = np.zeros_like(right), right.copy()
    direction, squared = residual.copy(), float(residual @ residual)
    for _ in range(_MOST_INNER):
        if squared <= tolerance**2:
            break
        product = times(direction)
        curvature = float(direction @ product)
        if not curvature > 0:
            break
        length = squared / curvature
        solution += length * direction
        residual -= length * product
        before, squared = squared, float(residual @ residual)
        direction *= squared / before
        direction += residual
    return solution


class Uncertainty:
    """Laplace's approximation: the variance of the log-intensity, from the Hessian.

    Of n points, var = 1/n + (phi(x) - m)' H^-1 (phi(x) - m), m the mean of phi under the density.
    Small systems are factored; in large ones the variance is that of draws from the approximation,
    which is known to 4 %.
    """

    def __init__(self, likelihood: Likelihood, solution: Solution, ridge: float) -> None:
        self._span = likelihood.span
        self._mass = likelihood.mass
        shares = likelihood.shares(solution)
        self._mean = self._span.from_nodes(shares)
        size = self._span.size
        times = likelihood.hessian(shares, ridge)
        if size <= _MOST_FACTORED:
            lower = linalg.cholesky(likelihood.matrix(shares, ridge), lower=True)
            self._root = linalg.solve_triangular(lower, np.eye(size), lower=True)
            self._scale = 1.0
            return
        # H^-1 e has the covariance H^-1 if e has the covariance H.
        random = np.random.RandomState(0)
        draws = np.empty((_DRAWS, size))
        for draw in draws:
            noise = np.sqrt(shares) * random.standard_normal(len(shares))
            data = self._span.from_nodes(noise) - float(noise.sum()) * self._mean
            spread = np.sqrt(likelihood.mass) * data
            spread += np.sqrt(ridge) * random.standard_normal(size)
            draw[:] = conjugate_gradients(times, spread, 1e-3 * float(np.sqrt(spread @ spread)))
        self._root, self._scale = draws, 1 / np.sqrt(_DRAWS)

    def log_std(self, X: Array) -> Array:
        """Return the standard deviation of the logarithm of the intensity at points."""
        deviations = np.empty(len(X))
        step = max(1, (1 << 22) // max(self._span.size, 1))
        for start in range(0, len(X), step):
            rows = self._span.rows(X[start : start + step]) - self._mean
            spread = self._scale * (rows @ self._root.T)
            deviations[start : start + step] = np.sqrt(1 / self._mass + (spread**2).sum(axis=1))
        return deviations

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
from typing import Any

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
MOST_DIRECT = 200
# Relative to the curvature of the likelihood: less ridge drowns in rounding.
_LEAST_RIDGE = 1e-10
# An integral, over the largest value, below which it has lost digits.
_TINY = 1e-200
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
    if not total > _TINY:  # what is highest is outside a window
        values = np.where(measure > 0, values, -np.inf)
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
        self,
        ridge: float,
        start: Array | None = None,
        precision: float = PRECISE,
    ) -> Solution:
        """Minimise, by Newton steps that conjugate gradients solve in large spans."""
        ridge = max(ridge, _LEAST_RIDGE * max(self.mass, 1.0))
        at = np.zeros(self.span.size) if start is None else start
        value, log_total, shares = self._value(at, ridge)
        for _ in range(_MOST_STEPS):
            gradient = self.mass * self.span.from_nodes(shares) - self.moments + ridge * at
            step = self._newton_step(gradient, shares, ridge, precision)
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
            # Near the solution, what the next step promises is about the square.
            if length == 1 and promised**2 <= precision:
                break
        return Solution(at, log_total, value)

    def _value(self, at: Array, ridge: float) -> tuple[float, float, Array]:
        log_total, shares = log_integral(self.span.to_nodes(at), self.span.measure)
        value = self.mass * log_total - float(self.moments @ at) + ridge / 2 * float(at @ at)
        return value, log_total, shares

    def hessian(
        self, shares: NDArray[Any], ridge: float, span: Span | None = None
    ) -> Callable[[Array], Array]:
        """Return what multiplies by the Hessian where the nodes have these shares.

        span: the same one in single precision, if that is enough.
        """
        span = self.span if span is None else span

        def times(vector: Array) -> Array:
            values = span.to_nodes(vector)
            values -= shares @ values
            values *= shares
            return np.asarray(self.mass * span.from_nodes(values) + ridge * vector)

        return times

    def _newton_step(self, gradient: Array, shares: Array, ridge: float, precision: float) -> Array:
        if len(gradient) <= MOST_DIRECT:
            # SciPy's solve takes longer to look at a small matrix than to solve.
            _, solved, info = linalg.lapack.dposv(self.matrix(shares, ridge), gradient)
            if info == 0:
                return np.asarray(-solved)
        size = float(np.sqrt(gradient @ gradient))
        # Far from the solution a rough step is as good as an exact one.
        forcing = float(np.sqrt(size / max(self.mass, 1.0)))
        if precision < ROUGH:
            times = self.hessian(shares, ridge)
            return conjugate_gradients(times, -gradient, max(min(forcing, 0.1), 1e-6) * size)
        # A rough step does not need more than half of the digits, which cost half as much.
        single = np.float32
        times = self.hessian(shares.astype(single), ridge, self.span.single)
        rough = conjugate_gradients(times, (-gradient / size).astype(single), 0.4)
        return np.asarray(size * rough, dtype=np.float64)

    def matrix(self, shares: Array, ridge: float) -> Array:
        """Return the Hessian itself."""
        rows, mean = self.span.dense, self.span.from_nodes(shares)
        matrix = self.mass * ((rows.T * shares) @ rows - np.outer(mean, mean))
        matrix[np.diag_indices_from(matrix)] += ridge
        return np.asarray(matrix)

    def shares(self, solution: Solution) -> Array:
        """Return how much of the integral each node has."""
        return log_integral(self.span.to_nodes(solution.coordinates), self.span.measure)[1]


class Together:
    """Several likelihoods of nearly the same points in one small span, solved side by side.

    One factor, of the Hessian of all of them together, serves them all: rows of matrices are the
    vectors of :class:`Likelihood`.
    """

    def __init__(self, span: Span, moments: Array, masses: Array) -> None:
        self._span, self._moments, self._masses = span, moments, masses

    def solve(self, ridge: float, start: Array | None, precision: float) -> Array | None:
        """Return the coordinates of each; None if steps by one factor do not come near."""
        ridge = max(ridge, _LEAST_RIDGE * max(float(self._masses.max()), 1.0))
        at = np.zeros_like(self._moments) if start is None else start
        value, shares = self._values(at, ridge)
        factor, before = None, np.inf
        for _ in range(_MOST_STEPS):
            means = shares @ self._span.dense
            gradient = self._masses[:, None] * means - self._moments + ridge * at
            if factor is None:
                factor = self._factor(shares.mean(axis=0), ridge)
                if factor is None:
                    return None
            step = -linalg.lapack.dpotrs(factor, gradient.T)[0].T
            promised = -(gradient * step).sum(axis=1)
            if not promised.max() > precision:
                return at
            length = np.ones(len(at))
            while True:
                trial, trial_shares = self._values(at + length[:, None] * step, ridge)
                worse = ~(trial <= value - 1e-4 * length * promised) & (promised > precision)
                if not worse.any():
                    break
                length[worse] /= 2
                if length.min() < 1e-9:
                    return None
            at, value, shares = at + length[:, None] * step, trial, trial_shares
            # A factor of where they were does as long as steps get shorter.
            factor = factor if promised.max() < 0.3 * before else None
            before = promised.max()
        return None

    def _values(self, at: Array, ridge: float) -> tuple[Array, Array]:
        logs, shares = log_integrals(self._span.each_to_nodes(at), self._span.measure)
        linear = ((ridge / 2 * at - self._moments) * at).sum(axis=1)
        return np.asarray(self._masses * logs + linear), shares

    def _factor(self, shares: Array, ridge: float) -> Array | None:
        every = Likelihood(self._span, self._moments[0], float(self._masses.mean()))
        factor, info = linalg.lapack.dpotrf(every.matrix(shares, ridge))
        return np.asarray(factor) if info == 0 else None


def log_integrals(values: Array, measure: Array) -> tuple[Array, Array]:
    """Return the same as :func:`log_integral` for each row of values."""
    top = values.max(axis=1)
    shares = measure * np.exp(values - top[:, None])
    totals = shares.sum(axis=1)
    if not totals.min() > _TINY:
        values = np.where(measure > 0, values, -np.inf)
        top = values.max(axis=1)
        shares = measure * np.exp(values - top[:, None])
        totals = shares.sum(axis=1)
    return np.asarray(top + np.log(totals)), shares / totals[:, None]


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

    def deviations(self) -> Array:
        """Return the standard deviations of the covariates' coefficients."""
        return np.asarray(self._span.deviations(self._scale * self._root))

    def log_std(self, X: Array) -> Array:
        """Return the standard deviation of the logarithm of the intensity at points."""
        deviations = np.empty(len(X))
        step = max(1, (1 << 22) // max(self._span.size, 1))
        for start in range(0, len(X), step):
            rows = self._span.rows(X[start : start + step]) - self._mean
            spread = self._scale * (rows @ self._root.T)
            deviations[start : start + step] = np.sqrt(1 / self._mass + (spread**2).sum(axis=1))
        return deviations

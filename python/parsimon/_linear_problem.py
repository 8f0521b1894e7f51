"""Fitting a linear function of many features to samples, which may be sparse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ._affine import affine, diagonal, squared_blocks
from ._newton import _CHOICE_STEPS, _RIDGES, _curvature_at_zero, _split
from ._problem import Problem
from .kernels import Kernel

Array = NDArray[np.float64]

# A step along a line is good enough where this is left of the slope, or after so many trials.
_SLOPE_LEFT = 0.1
_TRIALS = 6
_STRIDE = 4.0
# Relative to the objective: less than this is no progress.
_PROGRESS = 1e-5


class LinearProblem(Problem):
    """The loss of samples as a function of u, with f(x) = a <u, (x, z)>; a row of u per feature.

    The penalty is ridge / 2 ||f||^2 in units of the largest k(x, x).
    """

    def __init__(
        self, X: Any, targets: Array, weight: Array, loss: Any, kernel: Kernel, unit: float
    ) -> None:
        super().__init__(X, targets, weight, loss)
        self._kernel = kernel
        self.unit = unit
        self._scale, constant = affine(kernel) or (1.0, 0.0)
        self._intercept = float(np.sqrt(constant / self._scale))

    @classmethod
    def of(cls, samples: Any, loss: Any, kernel: Kernel) -> LinearProblem:
        """Return the problem of these samples."""
        unit = float(diagonal(kernel, samples.X).max(initial=0.0)) or 1.0
        return cls(samples.X, samples.targets, samples.weight, loss, kernel, unit)

    def part(self, rows: NDArray[Any]) -> LinearProblem:
        weight = self.weight[rows] if len(self.weight) else self.weight
        X, targets = self.features[rows], self.targets[rows]
        return LinearProblem(X, targets, weight, self.loss, self._kernel, self.unit)

    def predictions(self, solution: Array) -> Array:
        values = np.asarray(self.features @ solution[:-1], dtype=np.float64)
        values += self._intercept * solution[-1]
        values *= self._scale
        return values

    def diagonal(self, outputs: int) -> Array:
        """Return the diagonal of the curvature of the losses at zero."""
        weight = self.weight if len(self.weight) else np.ones(len(self.targets))
        X: Any = self.features
        if sparse.issparse(X):
            squares, done = np.zeros(X.shape[1]), 0
            for block in squared_blocks(X):
                squares += block.T @ weight[done : done + block.shape[0]]
                done += block.shape[0]
        else:
            squares = weight @ (X * X)
        squares = np.append(squares, self._intercept**2 * weight.sum())
        return np.asarray(_curvature_at_zero(self.loss, outputs) * self._scale**2 * squares)

    def _losses(self, values: Array) -> tuple[float, Array, Array]:
        """Return the sum of the losses of predictions, their slopes and their curvature."""
        losses, slopes, curvature = self.loss.majorise(values, self.targets)
        if len(self.weight):
            losses, curvature = losses * self.weight, curvature * self.weight
            slopes = slopes * self.weight[:, None]
        return float(losses.sum()), slopes, curvature

    def _gradient(self, slopes: Array, solution: Array, penalty: float) -> Array:
        gradient = np.empty_like(solution)
        gradient[:-1] = self.features.T @ slopes
        gradient[-1] = self._intercept * slopes.sum(axis=0)
        gradient *= self._scale
        gradient += penalty * solution
        return gradient

    def minimise(self, start: Array, normal: Array, ridge: float, steps: int) -> Array:
        """Return the minimiser, by conjugate gradients in units of the diagonal `normal`.

        The predictions are carried along, so that a trial along a line costs no product with the
        samples; and few arrays of the size of u are kept.
        """
        penalty = ridge * self.unit * self._scale
        units = 1 / (normal + penalty)[:, None]
        u: Array = start.copy() if start.any() else self._apart(start, units, penalty)
        values = self.predictions(u)
        total, slopes, curvature = self._losses(values)
        gradient = self._gradient(slopes, u, penalty)
        direction = -units * gradient
        size = float(np.vdot(gradient, direction))
        for _ in range(steps):
            along = self.predictions(direction)
            of_u = penalty * float(np.vdot(u, direction))
            of_square = penalty * float(np.vdot(direction, direction))
            bend = float(curvature @ (along**2).sum(axis=1)) + of_square
            if size >= 0 or bend <= 0:
                break

            def slope(step: float) -> float:
                at = self._losses(values + step * along)[1]  # noqa: B023
                return float(np.vdot(at, along)) + of_u + step * of_square  # noqa: B023

            step = _zero_of(slope, size, -size / bend)
            gain = step * (of_u + step / 2 * of_square) - total
            u += step * direction
            values += step * along
            total, slopes, curvature = self._losses(values)
            gain += total
            latest = self._gradient(slopes, u, penalty)
            if -gain <= _PROGRESS * abs(total):
                break
            # Polak and Ribiere: what is new in the gradient decides how much of the way is kept.
            before = _product(units, gradient, gradient)
            gradient -= latest
            kept = max(0.0, -_product(units, latest, gradient) / before)
            gradient = latest
            direction *= kept
            direction -= units * gradient
            size = float(np.vdot(gradient, direction))
            if size >= 0:
                np.multiply(-units, gradient, out=direction)
                size = float(np.vdot(gradient, direction))
        return u

    def _apart(self, zero: Array, units: Array, penalty: float) -> Array:
        """Return a step from zero that tells classes apart, of least squares.

        At zero all rivals of a class are equally strong. Which is the strongest changes with any
        step from there, so what the hinge loss says about the first of them leads nowhere.
        """
        if zero.shape[1] == 1 or not self.loss.is_classification:
            return np.zeros_like(zero)
        slopes = np.full((len(self.targets), zero.shape[1]), 1 / zero.shape[1])
        slopes[np.arange(len(slopes)), self.targets[:, 0].astype(int)] -= 1
        if len(self.weight):
            slopes *= self.weight[:, None]
        direction: Array = -units * self._gradient(slopes, zero, penalty)
        along = self.predictions(direction)
        bend = float(np.vdot(along, along)) + penalty * float(np.vdot(direction, direction))
        direction *= -float(np.vdot(slopes, along)) / (bend or 1.0)
        return direction


def choose_ridge(problem: LinearProblem, normal: Array, outputs: int) -> float:
    """Return the ridge whose solution on a part of the samples judges the others best.

    As for other kernels, but of the solutions only the latest is kept: they are as large as u.
    """
    parts = _split(problem)
    best = len(_RIDGES) // 2
    if parts is None:
        return _RIDGES[best]
    judge, learner, share = parts
    errors: dict[int, tuple[float, float]] = {}
    for direction in (0, -1, 1):
        solution, i = np.zeros((len(normal), outputs)), best + direction
        while 0 <= i < len(_RIDGES):
            solution = learner.minimise(solution, share * normal, _RIDGES[i], _CHOICE_STEPS)
            errors[i] = judge.error(solution)
            if direction == 0 or errors[i] >= errors[best]:
                break
            best, i = i, i + direction
    return _RIDGES[best]


def _product(units: Array, one: Array, other: Array) -> float:
    return float(np.einsum("i,ij,ij->", units[:, 0], one, other))


def _zero_of(slope: Callable[[float], float], first: float, step: float) -> float:
    """Return about where an increasing function is 0 that is `first` < 0 at 0, from a trial on."""
    low, at_low, high, at_high = 0.0, first, np.inf, np.inf
    for _ in range(_TRIALS):
        at = slope(step)
        if abs(at) <= _SLOPE_LEFT * abs(first):
            return step
        if at < 0:
            beyond = step + (step - low) * at / (at_low - at) if at > at_low else np.inf
            low, at_low = step, at
        else:
            high, at_high = step, at
        if high < np.inf:
            share = at_low / (at_low - at_high)
            step = low + min(max(share, 0.1), 0.9) * (high - low)
        else:
            step = min(beyond, _STRIDE * step)
    return low if low > 0 else step

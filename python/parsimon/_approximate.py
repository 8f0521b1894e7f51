"""A function approximated by one of few points, which are moved to where they serve best."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.optimize import minimize

from . import _core
from ._progress import progress
from ._units import units_of

Array = NDArray[np.float64]

# Relative to the largest k(x, x), what is added to a Gram matrix: weights stay small where points
# meet. What that costs is in the distance.
_JITTER = 1e-10
# Numbers that a gradient is computed from at a time: a fraction of a second.
_AT_ONCE = 1 << 26


def move_points(target: Any, start: Any, iterations: int, verbose: int) -> Any:
    """Return a core expansion nearer to the target, with the points of another one moved.

    With the best weights W = K^-1 f(D) the squared distance is |f|^2 - tr(W' f(D)), and its
    gradient by a point d is 2 (grad g(d) - grad f(d)) w, g = sum_m w_m k(d_m, .).
    """
    problem = _Problem(target, start)
    with progress(iterations, enabled=bool(verbose), description="Moving points", unit="") as bar:

        def watch(_: Array) -> None:
            bar.update(1)
            bar.set_postfix(distance=float(np.sqrt(max(problem.squared, 0.0))))

        found = minimize(
            problem,
            np.zeros(start.dictionary.size),
            jac=True,
            method="L-BFGS-B",
            callback=watch,
            options={"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": 20, "ftol": 1e-12},
        )
    points = problem.points(found.x)
    return _core.KernelExpansion(target.kernel, points, problem.weights(points)[0])


class _Problem:
    """The squared distance as a function of where the points are, in units of the kernel."""

    def __init__(self, target: Any, start: Any):
        self.target = target
        self.kernel = target.kernel
        self._centres, self._weights = target.dictionary, target.weights
        self._start = start.dictionary
        self._units = units_of(self.kernel.describe(), self._start)
        self._norm = float(target.inner(target))
        self._unit = float(self.kernel.diagonal(self._centres).max(initial=0.0)) or 1.0
        self.squared = self._norm

    def points(self, moves: Array) -> Array:
        return np.ascontiguousarray(self._start + moves.reshape(self._start.shape) * self._units)

    def weights(self, points: Array) -> tuple[Array, Array]:
        """Return the best weights, and the target at the points."""
        gram = self.kernel.block(points, points)
        gram[np.diag_indices_from(gram)] += _JITTER * self._unit
        values = np.asarray(self.target(points))
        return linalg.cho_solve(linalg.cho_factor(gram), values), values

    def __call__(self, moves: Array) -> tuple[float, Array]:
        points = self.points(moves)
        weights, values = self.weights(points)
        slope = self.kernel.gradient(points, points, weights @ weights.T)
        rows = max(1, _AT_ONCE // points.size)
        for first in range(0, len(self._centres), rows):
            # In parts, between which Ctrl-C is heard.
            part = slice(first, first + rows)
            centres = np.ascontiguousarray(self._centres[part])
            slope -= self.kernel.gradient(centres, points, self._weights[part] @ weights.T)
        self.squared = self._norm - float((weights * values).sum())
        scale = self._norm or 1.0
        return self.squared / scale, (2 / scale * slope * self._units).ravel()

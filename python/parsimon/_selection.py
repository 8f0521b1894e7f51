"""Points of a large function, chosen one by one: what KOMP removes from, where it cannot begin."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from threadpoolctl import threadpool_limits

from ._progress import ProgressBar

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

# What a point must bring to be chosen, relative to k(x, x).
_TOLERANCE = 1e-8
# Numbers that are kept at most: 2 GB.
_MOST_NUMBERS = 1 << 28
# Points that are looked at together, and how many of them are chosen before the next look: a look
# takes the longer the more points there are.
_FEW, _MANY = (64, 16), (128, 64)
_MANY_POINTS = 1000
_KERNEL_ROWS = 256


class Selection:
    """Orthogonal matching pursuit in the Hilbert space: the nearest function on few of the points.

    With P the projection onto the span of the points chosen so far, adding x_j brings f - P f down
    by ``||(f - P f)(x_j)||^2 / ||k(x_j, .) - P k(x_j, .)||^2`` in squared norm. The best few points
    are looked at together, so that what is done for each of them is a product of matrices, and
    chosen one by one. Memory is bounded: n numbers for each point that is chosen.
    """

    def __init__(self, expansion: Any) -> None:
        self._core = expansion._core
        self._kernel = expansion.kernel.core
        self._points: Array = self._core.dictionary
        self._weights: Array = self._core.weights
        self._room: Array = self._kernel.diagonal(self._points)
        self._least = _TOLERANCE * self._room
        # (f - P f)(x_i)
        self._residual: Array = np.asarray(self._core(self._points))
        self._rows = np.empty((0, len(self._points)))  # orthonormal functions at all points
        self._coordinates: list[Array] = []
        self.chosen: list[int] = []

    @property
    def squared_error(self) -> float:
        """||f - P f||^2, which is <f - P f, f>."""
        return max(float((self._weights * self._residual).sum()), 0.0)

    def run(self, budget: float, most: int, bar: ProgressBar, first: Indices | None = None) -> None:
        """Choose points until f is near enough, or there are enough of them.

        Those that are to come first are chosen if they are independent.
        """
        most = min(most, max(_MOST_NUMBERS // max(len(self._points), 1), 1))
        # As the core does: the same result whatever the number of processors.
        with threadpool_limits(limits=1, user_api="blas"):
            waiting = [] if first is None else first.tolist()
            while waiting:
                block, waiting = waiting[: _FEW[0]], waiting[_FEW[0] :]
                self._choose(np.array(block), len(block), bar, ranked=False)
            while len(self.chosen) < most and self.squared_error > budget**2:
                looked, count = _MANY if len(self.chosen) > _MANY_POINTS else _FEW
                gains = self._gains()
                best = np.argpartition(-gains, min(looked, len(gains)) - 1)[:looked]
                best = best[gains[best] > 0]
                count = min(count, most - len(self.chosen))
                if not len(best) or not self._choose(best, count, bar):
                    break

    def _gains(self) -> Array:
        square = (self._residual**2).sum(axis=1)
        free = self._room > self._least
        gains: Array = np.divide(square, self._room, out=np.zeros_like(square), where=free)
        return gains

    def _choose(
        self, candidates: Indices, count: int, bar: ProgressBar, ranked: bool = True
    ) -> int:
        """Choose up to so many of the candidates, by what they bring or in their order."""
        size = len(self.chosen)
        rows = np.empty((len(candidates), len(self._points)))
        for start in range(0, len(self._points), _KERNEL_ROWS):
            part = slice(start, start + _KERNEL_ROWS)
            rows[:, part] = self._kernel.block(self._points[candidates], self._points[part])
        rows -= self._rows[:size, candidates].T @ self._rows[:size]
        done = 0
        for k in range(count):
            if ranked:
                gains = self._gains()[candidates]
                k = int(gains.argmax())
                if not gains[k] > 0:
                    break
            j = int(candidates[k])
            if not self._room[j] > self._least[j]:
                continue
            function = rows[k] / math.sqrt(rows[k, j])
            rows -= np.outer(function[candidates], function)
            self._append(j, function)
            done += 1
        bar.update(done)
        bar.set_postfix(error=math.sqrt(self.squared_error))
        return done

    def _append(self, j: int, function: Array) -> None:
        size = len(self.chosen)
        if size == len(self._rows):
            grown = np.empty((max(2 * size, 256), len(self._points)))
            grown[:size] = self._rows
            self._rows = grown
        self._rows[size] = function
        coordinates = self._residual[j] / function[j]
        self._residual -= np.outer(function, coordinates)
        self._room = self._room - function**2
        self._room[j] = 0.0
        self._coordinates.append(coordinates)
        self.chosen.append(j)

    def weights(self) -> Array:
        """Return the weights of P f, for the points in the order in which they were chosen."""
        size = len(self.chosen)
        if not size:
            return np.zeros((0, self._weights.shape[1]))
        lower = self._rows[:size, self.chosen].T
        return np.asarray(
            linalg.solve_triangular(lower, np.array(self._coordinates), trans=1, lower=True)
        )

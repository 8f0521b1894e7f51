"""Polygons in the plane: what is inside, how much of a cell, and how large they are.

Edges are compared with the few points or rows that they pass, never with all: a coast may have
thousands of corners.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

# Pairs of an edge and what it passes that are looked at together.
_AT_ONCE = 1 << 20
# Rows on which the shares of cells are measured: in each cell, and in all.
_ROWS_PER_CELL, _FEWEST_ROWS = 4, 2048
# Rows in all strips between two corners: one each would be exact, unless edges cross.
_ROWS_OF_STRIPS = 4096
# How far from an edge a point is on it, in units of the rounding of the largest coordinate.
_ULPS = 8
# Of a cell, less is rounding.
_NOTHING = 1e-12


class Polygons:
    """What an odd number of rings go around, and the rings themselves."""

    def __init__(self, rings: list[Array]) -> None:
        self.rings = rings
        corners = np.concatenate(rings)
        self._x, self._y = corners.T
        ends = np.concatenate([np.roll(ring, -1, axis=0) for ring in rings])
        self._dx, self._dy = (ends - corners).T
        self._end_y = ends[:, 1]
        self._low, self._high = np.minimum(self._y, self._end_y), np.maximum(self._y, self._end_y)
        self._rounding = _ULPS * np.finfo(float).eps * float(np.abs(corners).max())

    def bounds(self) -> Array:
        """Return the box around them."""
        every = np.concatenate(self.rings)
        return np.column_stack([every.min(axis=0), every.max(axis=0)])

    def contain(self, X: Array) -> NDArray[np.bool_]:
        """Tell which points are inside or on an edge."""
        order = np.argsort(X[:, 1])
        x, y = X[order].T
        crossings, is_on_edge = np.zeros(len(X), dtype=np.int64), np.zeros(len(X), dtype=bool)
        first = np.searchsorted(y, self._low - self._rounding)
        last = np.searchsorted(y, self._high + self._rounding, side="right")
        for edge, point in _pairs(first, last):
            dx, dy = self._dx[edge], self._dy[edge]
            right, up = x[point] - self._x[edge], y[point] - self._y[edge]
            across = right * dy - up * dx
            length = np.hypot(dx, dy)
            along = right * dx + up * dy
            near = np.abs(across) <= self._rounding * length
            near &= (along >= -self._rounding * length) & (along <= length**2)
            is_on_edge[point[near]] = True
            # A ray to the right crosses an edge that has one end above it, and one not.
            crosses = ((up >= 0) != (y[point] >= self._end_y[edge])) & ((across < 0) == (dy > 0))
            crossings += np.bincount(point[crosses], minlength=len(X))
        inside = np.empty(len(X), dtype=bool)
        inside[order] = (crossings % 2 == 1) | is_on_edge
        return inside

    def shares(self, across: Array, upward: Array) -> Array:
        """Return how much of each cell between these edges is inside: of x first, then of y.

        Along x this is exact on each row; rows are as many as make the rest small.
        """
        columns, cells = len(across) - 1, len(upward) - 1
        per_cell = max(_ROWS_PER_CELL, -(-_FEWEST_ROWS // cells))
        middles = (np.arange(per_cell) + 0.5) / per_cell
        rows = (upward[:-1, None] + np.diff(upward)[:, None] * middles).ravel()
        row, x, sign = self._crossings(rows)
        x = np.clip(x, across[0], across[-1])
        column = np.searchsorted(across, x, side="right") - 1
        # What is right of an entry is inside, until an exit takes it back.
        ends, width = np.append(across, across[-1]), np.append(np.diff(across), 1.0)
        at, shape = row // per_cell * (columns + 2) + column, (cells, columns + 2)
        part = sign * (ends[column + 1] - x) / width[column]
        within = np.bincount(at, part, cells * (columns + 2)).reshape(shape)
        beyond = np.bincount(at + 1, sign, cells * (columns + 2)).reshape(shape).cumsum(axis=1)
        found = (within + beyond)[:, :columns].T / per_cell
        return np.where(found > _NOTHING, np.minimum(found, 1.0), 0.0).ravel()

    def area(self, box: Array) -> float:
        """Return the area of what is inside and in a box."""
        (left, right), (bottom, top) = box
        steep = self._dx != 0
        # Between these heights, what is inside is as wide as a straight line says.
        bends = [self._y, [bottom, top]]
        for side in (left, right):
            part = (side - self._x[steep]) / self._dx[steep]
            passed = (part > 0) & (part < 1)
            bends.append(self._y[steep][passed] + part[passed] * self._dy[steep][passed])
        heights = np.unique(np.clip(np.concatenate(bends), bottom, top))
        strips = np.diff(heights)
        each = max(1, _ROWS_OF_STRIPS // max(len(strips), 1))
        middles = (np.arange(each) + 0.5) / each
        row, x, sign = self._crossings((heights[:-1, None] + strips[:, None] * middles).ravel())
        widths = np.bincount(row, -sign * np.clip(x, left, right), len(strips) * each)
        return float(widths.reshape(-1, each).mean(axis=1) @ strips)

    def _crossings(self, rows: Array) -> tuple[Integers, Array, Array]:
        """Return where edges cross ascending rows: row, x, and 1 for entries or -1 for exits."""
        found: list[tuple[Integers, Array]] = [(np.empty(0, dtype=np.int64), np.empty(0))]
        first, last = np.searchsorted(rows, self._low), np.searchsorted(rows, self._high)
        for edge, row in _pairs(first, last):
            up = (rows[row] - self._y[edge]) / self._dy[edge]
            found.append((row, self._x[edge] + up * self._dx[edge]))
        row = np.concatenate([row for row, _ in found])
        x = np.concatenate([x for _, x in found])
        order = np.lexsort((x, row))
        row, x = row[order], x[order]
        rank = np.arange(len(row)) - np.searchsorted(row, row)
        sign = np.where(rank % 2 == 0, 1.0, -1.0)
        return row, np.asarray(x, dtype=np.float64), sign


def _pairs(first: Integers, last: Integers) -> Iterator[tuple[Integers, Integers]]:
    """Yield each edge with the numbers from its first to before its last, some edges at a time."""
    counts = np.maximum(last - first, 0)
    ends = np.cumsum(counts)
    start = 0
    while start < len(counts):
        before = ends[start] - counts[start]
        stop = max(start + 1, int(np.searchsorted(ends, before + _AT_ONCE, side="right")))
        some = counts[start:stop]
        edge = np.repeat(np.arange(start, stop), some)
        within = np.arange(len(edge)) - np.repeat(ends[start:stop] - some - before, some)
        yield edge, first[edge] + within
        start = stop

"""Integrals of a density over boxes, and points drawn from it, for any number of features."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from ._window import Window

Array = NDArray[np.float64]
Density = Callable[[Array], Array]

# Gauss-Legendre nodes along each axis of a cell: three are exact for polynomials up to degree 5.
# Fewer where there would be more than so many nodes in all.
_PER_CELL = (3, 2, 1)
_MOST_NODES = 1 << 20
_SCATTERED_NODES = 1 << 14
_BLOCK = 1 << 14
# SciPy 1.15 renamed the argument.
_SEED = "rng" if "rng" in inspect.signature(qmc.Sobol).parameters else "seed"
# By what the bound of a cell is above what has been seen there, in logarithms, and how far it may
# be below that of another.
_SLACK = float(np.log(1.2))
_DEEPEST = 690.0


def integrate(
    density: Density, box: Array, cells: Sequence[int] | None, window: Window | None = None
) -> float:
    """Integrate over a box: on a grid of this many cells along each feature, or scattered.

    window: of a grid, what is inside counts, and the density is one that does not know of it.
    """
    width = box[:, 1] - box[:, 0]
    if (width <= 0).any():
        return 0.0
    volume = float(np.prod(width))
    if cells is None:
        unit = qmc.Sobol(len(box), **{_SEED: 0}).random(_SCATTERED_NODES)
        values = _in_blocks(density, box[:, 0] + unit * width)
        return volume * float(values.mean())
    count = np.prod([float(n) for n in cells])
    fitting = [n for n in _PER_CELL if count * n ** len(cells) <= _MOST_NODES]
    per_cell = fitting[0] if fitting else _PER_CELL[-1]
    axes, shares = zip(*(_panels(n, per_cell) for n in cells), strict=True)
    unit = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(box))
    weight = np.ones(1)
    for share in shares:
        weight = np.multiply.outer(weight, share).ravel()
    if window is not None:
        # Each node stands for as much along each axis as it weighs, and is within that.
        edges = [
            low + extent * np.append(0.0, np.cumsum(share))
            for low, extent, share in zip(box[:, 0], width, shares, strict=True)
        ]
        weight = weight * window.shares(edges)
        unit, weight = unit[weight > 0], weight[weight > 0]
    if not len(unit):
        return 0.0
    return volume * float(_in_blocks(density, box[:, 0] + unit * width) @ weight)


def _panels(cells: int, per_cell: int) -> tuple[Array, Array]:
    """Return nodes and weights on [0, 1] of the rule that is repeated in each cell."""
    nodes, weights = np.polynomial.legendre.leggauss(per_cell)
    starts = np.arange(cells)[:, None]
    return ((starts + (nodes + 1) / 2) / cells).ravel(), np.tile(weights / 2 / cells, cells)


def _in_blocks(density: Density, points: Array) -> Array:
    parts = [density(points[i : i + _BLOCK]) for i in range(0, len(points), _BLOCK)]
    return np.concatenate(parts)


def draw(
    log_density: Density, box: Array, nodes: int, size: int, random: np.random.RandomState
) -> Array:
    """Draw points by rejection from a bound that is constant on each cell of the domain.

    The bound of a cell starts from what the density is at points scattered over it and grows as
    soon as a proposal shows that it is too low; then all starts again, so that the points that are
    returned were all accepted under the same bound.
    """
    cells = _Cells(box, nodes)
    # In logarithms: a density that underflows everywhere has a shape all the same.
    bound = _SLACK + cells.largest(log_density, random)
    if not np.isfinite(bound.max()):
        raise ValueError("The learned density is nowhere positive: there is nothing to draw from.")
    accepted: list[Array] = []
    count = 0
    while count < size:
        bound = np.maximum(bound, bound.max() - _DEEPEST)
        share = np.exp(bound - bound.max())
        chosen = random.choice(len(bound), p=share / share.sum(), size=max(2 * (size - count), 256))
        points = cells.points(chosen, random)
        values = log_density(points)
        over = values > bound[chosen]
        if over.any():
            np.maximum.at(bound, chosen[over], _SLACK + values[over])
            accepted, count = [], 0
            continue
        kept = points[np.log(1 - random.random_sample(len(points))) + bound[chosen] < values]
        accepted.append(kept)
        count += len(kept)
    return np.concatenate(accepted)[:size]


class _Cells:
    """A regular partition of a box, about as fine as there are nodes."""

    def __init__(self, box: Array, nodes: int) -> None:
        per_axis = max(1, round(nodes ** (1 / len(box))))
        self.counts = np.full(len(box), per_axis)
        self.low = box[:, 0]
        self.width = (box[:, 1] - box[:, 0]) / per_axis

    def points(self, chosen: NDArray[np.int64], random: np.random.RandomState) -> Array:
        corners = np.stack(np.unravel_index(chosen, self.counts), axis=-1)
        inside = random.random_sample((len(chosen), len(self.low)))
        return np.asarray(self.low + (corners + inside) * self.width)

    def largest(self, log_density: Density, random: np.random.RandomState) -> Array:
        every = np.arange(int(np.prod(self.counts)))
        largest = np.full(len(every), -np.inf)
        for _ in range(8):
            largest = np.maximum(largest, _in_blocks(log_density, self.points(every, random)))
        return largest

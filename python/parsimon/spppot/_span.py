"""The span of a dictionary in orthonormal coordinates, evaluated at the nodes of an integral.

Both kinds turn coordinates into values at the nodes (`to_nodes`) and back (`from_nodes`, the
transpose), sums of kernels over points into coordinates (`whiten`), and coordinates into weights of
the dictionary's points (`weights`). In these coordinates the squared norm of a function is the
squared length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special
from scipy.spatial import distance

from parsimon import _core, kernels
from parsimon._lazy import lazy

from ._window import Window

Array = NDArray[np.float64]

# Eigenvalues of a Gram matrix below this, relative to the largest, are rounding.
_RANK = 1e-10
# Of scattered nodes around points, in units of Silverman's length: wider than the density there.
_SPREAD = 1.5
# With two scales, z is a sum: the second kernel is that many times as long, and its part of z has
# that many times the variance.
_LONGER, _LOUDER = 4, 10.0
# Numbers in the products of a span that is no grid.
_BLOCK = 1 << 22


def midpoints(low: float, high: float, cells: int) -> Array:
    """Return the midpoints of cells, as the core's Quadrature has them along a feature."""
    return low + (np.arange(cells) + 0.5) / cells * (high - low)


def _orthonormal(gram: Array) -> tuple[Array, Array]:
    """Return what turns kernels with points into coordinates, and the coordinates' eigenvalues."""
    values, vectors = linalg.eigh(gram)
    large = values > _RANK * values[-1]
    return np.asarray(vectors[:, large] / np.sqrt(values[large])), values[large]


def _orthonormal_along(
    axis: NDArray[Any], step: float, length: float, low: float, high: float
) -> tuple[Array, Array, Array]:
    """Return what turns kernels with an axis into coordinates, its inverse, and eigenvalues.

    These are relative to the largest. An axis that begins before the domain goes round: its points
    beyond are the same as those within, a period away, and have the same weights, so that kernels
    are sums over all periods.
    """
    before = int(np.round(max(low - axis[0], 0.0) / step))
    if before == 0:
        gram = _gaussian(axis, axis, length)
        root, values = _orthonormal(gram)
        return root, root.T @ gram, values / values[-1]
    within = int(np.round((high - low) / step))
    copies = np.eye(within)[(np.arange(len(axis)) - before) % within]
    across = _gaussian(axis[before : before + within], axis, length)
    root, values = _orthonormal(across @ copies)
    return copies @ root, root.T @ across, values / values[-1]


def shares(domain: Array, cells: Sequence[int], window: Window | None) -> Array:
    """Return the share of the domain that each cell stands for."""
    count = int(np.prod(cells))
    if window is None:
        return np.full(count, 1 / count)
    edges = [np.linspace(low, high, n + 1) for (low, high), n in zip(domain, cells, strict=True)]
    # Only those that the box around the window reaches need to be asked about.
    near = tuple(
        slice(int(np.searchsorted(edge[1:], low, "right")), int(np.searchsorted(edge, high)))
        for edge, (low, high) in zip(edges, window.around(domain), strict=True)
    )
    inside = np.zeros(tuple(cells))
    found = window.shares([e[n.start : n.stop + 1] for e, n in zip(edges, near, strict=True)])
    inside[near] = found.reshape(inside[near].shape)
    if not inside.any():
        raise ValueError(
            f"The window has no area in the domain {domain.tolist()}: no point of a grid of "
            f"{list(cells)} cells is inside."
        )
    return inside.ravel() / count


class ProductSpan:
    """Of a regular grid with a Gaussian kernel, which are products over the features.

    With two scales the squared length is that of a norm whose kernel is the sum of this one and of
    a longer one: directions that are smooth, whose eigenvalue is large, cost less of it.
    """

    def __init__(
        self,
        grid: _core.ProductGrid,
        lengths: Sequence[float],
        domain: Array,
        cells: Sequence[int],
        window: Window | None = None,
        *,
        scales: int = 1,
    ) -> None:
        self.window = window
        self.scales = scales
        self.grid = grid
        self.lengths = [float(length) for length in lengths]
        self.domain = domain
        self._axes = [
            start + np.arange(count) * step
            for start, step, count in zip(grid.lower, grid.step, grid.counts, strict=True)
        ]
        along = [
            _orthonormal_along(axis, step, length, low, high)
            for axis, step, length, (low, high) in zip(
                self._axes, grid.step, self.lengths, domain, strict=True
            )
        ]
        self._roots = [root for root, _, _ in along]
        self._inverses = [inverse for _, inverse, _ in along]
        # What a coordinate is multiplied by; Gaussians of two lengths have eigenvalues of which one
        # is a power of the other.
        self._stretch: Array | None = None
        if scales == 2:
            eigenvalues = np.ones(1)
            for _, _, values in along:
                eigenvalues = np.multiply.outer(eigenvalues, values).ravel()
            longer = _LONGER ** len(along) * eigenvalues ** (_LONGER**2 - 1)
            self._stretch = np.sqrt(1 + _LOUDER * longer)
        self.cells = [int(count) for count in cells]
        self._factors = [
            _gaussian(midpoints(low, high, count), axis, length) @ root
            for (low, high), count, axis, length, root in zip(
                self.domain, self.cells, self._axes, self.lengths, self._roots, strict=True
            )
        ]

    @lazy
    def finer(self) -> ProductSpan:
        """The same span with an integral over half as wide cells."""
        cells = [2 * n for n in self.cells]
        return ProductSpan(
            self.grid, self.lengths, self.domain, cells, self.window, scales=self.scales
        )

    @lazy
    def single(self) -> InSingle:
        """What it does with coordinates and nodes, in single precision."""
        factors = [factor.astype(np.float32) for factor in self._factors]
        stretch = self._stretch
        return InSingle(factors, None if stretch is None else stretch.astype(np.float32))

    @lazy
    def measure(self) -> Array:
        """The share of the domain that each node stands for."""
        return shares(self.domain, self.cells, self.window)

    @lazy
    def dense(self) -> Array:
        """The coordinates of the nodes, one row each."""
        rows: Array = np.ones((1, 1))
        for factor in self._factors:
            rows = np.asarray(np.kron(rows, factor), dtype=np.float64)
        return stretched(rows, self._stretch)

    @property
    def quadrature(self) -> _core.Quadrature:
        """The rule of the integral."""
        return _core.Quadrature.grid(self.cells)

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return int(np.prod([root.shape[1] for root in self._roots]))

    def to_nodes(self, coordinates: Array) -> Array:
        return _apply(self._factors, stretched(coordinates, self._stretch))

    def each_to_nodes(self, rows: Array) -> Array:
        """Do the same with each of several coordinates, one row each."""
        columns = np.ascontiguousarray(stretched(rows, self._stretch).T)
        return _apply(self._factors, columns).reshape(len(rows), -1)

    def from_nodes(self, values: Array) -> Array:
        found = _apply([factor.T for factor in self._factors], values)
        return stretched(found, self._stretch)

    def whiten(self, moments: Array) -> Array:
        return stretched(_apply([root.T for root in self._roots], moments), self._stretch)

    def weights(self, coordinates: Array) -> Array:
        return _apply(self._roots, stretched(coordinates, self._stretch))

    def coordinates(self, weights: Array) -> Array:
        """Return the inverse of `weights`."""
        found = _apply(self._inverses, weights)
        return found if self._stretch is None else found / self._stretch

    def moments(self, X: Array, amounts: Array) -> Array:
        """Return sum_i amounts_i phi(x_i)."""
        return self.whiten(self.grid.gather(X, self.lengths, amounts))

    def rows(self, X: Array) -> Array:
        """Return the coordinates of k(x, .), one row each."""
        rows = np.ones((len(X), 1))
        for j, (axis, length, root) in enumerate(
            zip(self._axes, self.lengths, self._roots, strict=True)
        ):
            along = _gaussian(X[:, j], axis, length) @ root
            rows = (rows[:, :, None] * along[:, None, :]).reshape(len(X), -1)
        return stretched(rows, self._stretch)

    def model(self, kernel: kernels.Kernel, box: _core.Box) -> _core.SolvedDensity:
        """Return an untrained model of the core."""
        return _core.SolvedDensity.on_grid(kernel.core, self.grid, box, self.quadrature)


class PointSpan:
    """Of any points and any kernel, with nodes anywhere."""

    def __init__(
        self,
        kernel: kernels.Kernel,
        points: Array,
        domain: Array,
        quadrature: _core.Quadrature,
        window: Window | None = None,
    ) -> None:
        self.window = window
        self.kernel = kernel
        self.points = points
        self.domain = domain
        self._root = _orthonormal(kernel(points))[0]
        self._use(quadrature)

    def _use(self, quadrature: _core.Quadrature) -> None:
        self.quadrature = quadrature
        if quadrature.kind == "grid":
            nodes = quadrature.nodes(_core.Box(*self.domain.T.tolist()))
            self.measure = shares(self.domain, quadrature.counts, self.window)
        else:
            nodes, self.measure = scattered(quadrature.counts[0], self.points, self.domain)
            if self.window is not None:
                self.measure = self.measure * self.window.contains(nodes)
        self.nodes = nodes
        self.dense = self.rows(nodes)

    @lazy
    def finer(self) -> PointSpan:
        """The same span with an integral on more nodes."""
        counts = [2 * n for n in self.quadrature.counts]
        if self.quadrature.kind == "grid":
            rule = _core.Quadrature.grid(counts)
        else:
            rule = _core.Quadrature.scattered(counts[0])
        other = object.__new__(PointSpan)
        other.kernel, other.points, other.domain = self.kernel, self.points, self.domain
        other.window = self.window
        other._root = self._root
        other._use(rule)
        return other

    @lazy
    def single(self) -> InSingle:
        """What it does with coordinates and nodes, in single precision."""
        return InSingle([self.dense.astype(np.float32)])

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return int(self._root.shape[1])

    def to_nodes(self, coordinates: Array) -> Array:
        return np.asarray(self.dense @ coordinates)

    def each_to_nodes(self, rows: Array) -> Array:
        """Do the same with each of several coordinates, one row each."""
        return np.asarray(rows @ self.dense.T)

    def from_nodes(self, values: Array) -> Array:
        return np.asarray(values @ self.dense)

    def whiten(self, moments: Array) -> Array:
        return np.asarray(moments @ self._root)

    def weights(self, coordinates: Array) -> Array:
        return np.asarray(self._root @ coordinates)

    def coordinates(self, weights: Array) -> Array:
        return self.whiten(self.kernel(self.points) @ weights)

    def moments(self, X: Array, amounts: Array) -> Array:
        step = max(1, _BLOCK // len(self.points))
        total = np.zeros(self.size)
        for start in range(0, len(X), step):
            total += amounts[start : start + step] @ self.rows(X[start : start + step])
        return total

    def rows(self, X: Array) -> Array:
        values = self.kernel(X, self.points)
        if not np.isfinite(values).all():
            raise ValueError("The kernel is not finite on these samples; choose another one.")
        return np.asarray(values @ self._root)

    def model(self, kernel: kernels.Kernel, box: _core.Box) -> _core.SolvedDensity:
        return _core.SolvedDensity(kernel.core, self.points, box, self.quadrature)


Span = Any  # ProductSpan or PointSpan, with covariates beside it or not


class InSingle:
    """The nodes' coordinates as a product of these factors, in single precision."""

    def __init__(
        self, factors: list[NDArray[np.float32]], stretch: NDArray[np.float32] | None = None
    ) -> None:
        self._factors = factors
        self._stretch = stretch

    def to_nodes(self, coordinates: NDArray[Any]) -> Array:
        return _apply(self._factors, stretched(coordinates, self._stretch))

    def from_nodes(self, values: NDArray[Any]) -> Array:
        found = _apply([factor.T for factor in self._factors], values)
        return stretched(found, self._stretch)


def scattered(count: int, points: Array, domain: Array) -> tuple[Array, Array]:
    """Return nodes in a domain of many features, and the share of it that each stands for.

    Half of them fill the domain evenly. In many dimensions those miss where the density is: the
    other half is scattered around the points, and a node stands for less where there are many.
    """
    features, width = domain.shape[0], domain[:, 1] - domain[:, 0]
    even = _core.Quadrature.scattered(count - count // 2).nodes(_core.Box(*domain.T.tolist()))
    unit = [0.0] * (features + 1), [1.0] * (features + 1)
    draws = _core.Quadrature.scattered(count // 2).nodes(_core.Box(*unit))
    spread = np.maximum(_SPREAD * points.std(axis=0), width / 1000) * len(points) ** (
        -1 / (features + 4)
    )
    middle = points[np.minimum((draws[:, 0] * len(points)).astype(int), len(points) - 1)]
    around = middle + spread * special.ndtri(np.clip(draws[:, 1:], 1e-12, 1 - 1e-12))
    inside = ((around >= domain[:, 0]) & (around <= domain[:, 1])).all(axis=1)
    nodes = np.vstack([even, around[inside]])
    near = np.concatenate(
        [
            np.exp(-0.5 * distance.cdist(part, points / spread, "sqeuclidean")).mean(axis=1)
            for part in np.array_split(nodes / spread, max(1, count >> 12))
        ]
    )
    relative = near * np.prod(width / (np.sqrt(2 * np.pi) * spread))
    return nodes, 1 / (count * (0.5 + 0.5 * relative))


def stretched(values: NDArray[Any], by: NDArray[Any] | None) -> NDArray[Any]:
    """Return coordinates multiplied by numbers of their own, if there are any."""
    return values if by is None else np.asarray(values * by)


def _gaussian(x: NDArray[Any], centers: NDArray[Any], length: float) -> Array:
    return np.asarray(np.exp(-0.5 * ((x[:, None] - centers) / length) ** 2))


def _apply(factors: Sequence[NDArray[Any]], tensor: NDArray[Any]) -> NDArray[Any]:
    """Multiply each axis of a flat tensor by a matrix."""
    for factor in factors:
        # The first axis goes to the end; after all of them, they are in order again.
        tensor = tensor.reshape(factor.shape[1], -1).T @ factor.T
    return np.ascontiguousarray(tensor).ravel()

"""The problem of SLKL, whatever its columns are made of: of one kernel, of several, or given."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsimon import _core
from parsimon.expansion import KernelExpansion
from parsimon.kernels import Kernel, Linear, Product, Scaled, SinglePrecision, Sum

Array = NDArray[np.float64]

# What a file calls a function with points of several kernels.
SEPARATE = "slkl_separate"


@dataclass(frozen=True)
class Problem:
    """Samples, targets (one column per output) and the columns that were chosen, ready to solve."""

    kernel: Kernel
    columns: NDArray[np.int64]  # the sample that each column belongs to
    parts: NDArray[np.int64]  # and the part of the kernel
    core: Any
    # What the weights of some columns, scaled as those of k, make of them: a model that predicts.
    model: Callable[[NDArray[np.int64], Array], Any]
    square: float  # sum of all squared targets
    scale: Array  # 1 / sqrt(k(x_m, x_m)) of each column
    explicit: bool  # whether the core has the columns as they are
    intercept: Array
    seed: int

    def penalty(self, price: float | None, fraction: float, output: int | None = None) -> float:
        """Return the product of nu and lambda: as given, or a fraction of the largest useful one.

        That is the one of an output or, without, of all outputs together.
        """
        if price is not None:
            return price
        correlations = np.asarray(self.core.correlations)
        if output is not None:
            correlations = correlations[:, output : output + 1]
        # Where no column has anything to do with the targets, any price will do.
        largest = float((correlations**2).sum(axis=1).max())
        return fraction * (largest or 1.0)


def plain(kernel: Kernel, X: Array, columns: NDArray[np.int64], *, stored: bool) -> dict[str, Any]:
    """Return what a problem is made of whose columns are those of a kernel, and its samples."""
    points = np.ascontiguousarray(X[columns])

    def model(used: NDArray[np.int64], weights: Array) -> Any:
        return _core.Slkl(kernel.core, np.ascontiguousarray(points[used]), weights)

    return {
        "kernel": kernel,
        "columns": columns,
        "parts": np.zeros(len(columns), dtype=np.int64),
        "core": _core.KernelColumns(kernel.core, points, stored),
        "model": model,
        "scale": inverse_roots(kernel.diag(points)),
        "explicit": False,
        "samples": X,
    }


def precomputed(X: Array, columns: NDArray[np.int64]) -> dict[str, Any]:
    """Return the same where samples are rows of kernel values with all training samples."""
    diagonal = X[columns, columns]
    if (diagonal < 0).any():
        raise ValueError("The kernel of a sample with itself must not be negative.")
    scale = inverse_roots(diagonal)

    def model(used: NDArray[np.int64], weights: Array) -> Any:
        # x' e_m / sqrt(k_mm) is the column's value: units of the features, in a linear kernel.
        points = np.zeros((len(used), X.shape[1]))
        points[np.arange(len(used)), columns[used]] = scale[used]
        unscaled = np.divide(weights.T, scale[used], where=scale[used] > 0, out=0 * weights.T)
        return _core.Slkl(Linear().core, points, np.ascontiguousarray(unscaled.T))

    parts = np.zeros(len(columns), dtype=np.int64)
    return explicit(Linear(), columns, parts, X[:, columns] * scale, scale) | {"model": model}


def separate(kernel: Kernel, X: Array, columns: NDArray[np.int64]) -> dict[str, Any]:
    """Return the same with columns of each part of a kernel that is a sum."""
    kernels = parts_of(kernel)
    parts = np.repeat(np.arange(len(kernels)), len(columns))
    points, every = X[columns], np.tile(columns, len(kernels))
    scale = np.concatenate([inverse_roots(each.diag(points)) for each in kernels])
    values = np.hstack([each(X, points) for each in kernels]) * scale

    def model(used: NDArray[np.int64], weights: Array) -> Any:
        return SeparateKernels(kernel, kernels, X[every[used]], weights, parts[used])

    return explicit(kernel, every, parts, values, scale) | {"model": model}


def explicit(
    kernel: Kernel,
    columns: NDArray[np.int64],
    parts: NDArray[np.int64],
    values: Array,
    scale: Array,
) -> dict[str, Any]:
    """Return what problems have in common whose columns are features of a linear kernel."""
    units = np.eye(len(columns))
    return {
        "kernel": kernel,
        "columns": columns,
        "parts": parts,
        "core": _core.KernelColumns(Linear().core, units, True),
        "scale": scale,
        "explicit": True,
        "samples": np.ascontiguousarray(values),
    }


def parts_of(kernel: Kernel) -> tuple[Kernel, ...]:
    """Return the kernels that a kernel is the sum of, factors multiplied out; or the only one."""
    if isinstance(kernel, Sum):
        return tuple(each for part in kernel.parts for each in parts_of(part))
    if isinstance(kernel, Scaled):
        return tuple(kernel.scale * part for part in parts_of(kernel.kernel))
    if isinstance(kernel, SinglePrecision):
        return tuple(map(SinglePrecision, parts_of(kernel.kernel)))
    if isinstance(kernel, Product):
        factors = itertools.product(*map(parts_of, kernel.parts))
        return tuple(Product(each) for each in factors)
    return (kernel,)


def parts_in_file(archive: _core.Archive, kernel: Kernel) -> tuple[Kernel, ...]:
    """Return the kernels that a model in a file has: older ones do not multiply out factors."""
    if "separate.kernels" in archive:
        return parts_of(kernel)
    return kernel.parts if isinstance(kernel, Sum) else (kernel,)


def inverse_roots(diagonal: Array) -> Array:
    """Return 1 / sqrt(d), and 0 for 0: such a point has a column of zeros."""
    roots = np.sqrt(np.maximum(diagonal, 0))
    return np.divide(1.0, roots, where=roots > 0, out=np.zeros_like(roots))


class SeparateKernels:
    """A function that is a sum of expansions, one in the space of each part of a kernel."""

    def __init__(
        self,
        kernel: Kernel,
        kernels: tuple[Kernel, ...],
        points: Array,
        weights: Array,
        parts: NDArray[np.int64],
    ) -> None:
        self._kernel, self._kernels = kernel, kernels
        self.dictionary, self.weights, self.parts = points, weights, parts

    @property
    def model_order(self) -> int:
        return len(self.dictionary)

    @property
    def expansions(self) -> list[KernelExpansion]:
        return [
            KernelExpansion(kernel, self.dictionary[rows], self.weights[rows])
            for kernel, rows in zip(self._kernels, self._rows(), strict=True)
        ]

    @property
    def expansion(self) -> Any:
        raise ValueError(
            "With separate=True the function has a part in the space of each kernel, and is no "
            "single expansion: expansions_ has all of them."
        )

    def _rows(self) -> list[NDArray[np.int64]]:
        return [np.flatnonzero(self.parts == part) for part in range(len(self._kernels))]

    def predict(self, points: Array) -> Array:
        values = np.zeros((len(points), self.weights.shape[1]))
        for kernel, rows in zip(self._kernels, self._rows(), strict=True):
            if len(rows):
                values += kernel(points, self.dictionary[rows]) @ self.weights[rows]
        return values

    def span(self) -> Any:
        """Return the span of the points in the space of the sum of all kernels."""
        points = np.unique(self.dictionary, axis=0)
        return _core.KernelExpansion(self._kernel.core, points, np.ones((len(points), 1))).span()

    def to_archive(self) -> _core.Archive:
        return _core.Archive(
            {
                "algorithm": SEPARATE,
                "kernel": self._kernel.core.describe(),
                "features": self.dictionary.shape[1],
                "outputs": self.weights.shape[1],
                "separate.points": np.ascontiguousarray(self.dictionary),
                "separate.weights": np.ascontiguousarray(self.weights),
                "separate.parts": self.parts.astype(np.int64),
                "separate.kernels": len(self._kernels),
            }
        )

    @classmethod
    def from_archive(cls, archive: _core.Archive, kernel: Kernel) -> SeparateKernels:
        points, weights = archive["separate.points"], archive["separate.weights"]
        parts, shape = archive["separate.parts"], (archive["features"], archive["outputs"])
        points, weights = points.reshape(-1, shape[0]), weights.reshape(-1, shape[1])
        kernels = parts_in_file(archive, kernel)
        valid = (
            archive.get("separate.kernels", len(kernels)) == len(kernels)
            and len(points) == len(weights) == len(parts)
            and bool(np.isfinite(points).all() and np.isfinite(weights).all())
            and bool(np.isin(parts, np.arange(len(kernels))).all())
        )
        if not valid:
            raise ValueError("The model file does not hold a function of several kernels.")
        return cls(kernel, kernels, points, weights, np.asarray(parts))

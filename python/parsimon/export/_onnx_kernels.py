"""Kernels as nodes of an ONNX graph."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from parsimon.kernels import (
    Cauchy,
    Constant,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Product,
    Scaled,
    Sum,
)

Array = NDArray[np.float64]


class Graph(Protocol):
    """Where nodes and constants go; each is known by the name of its result."""

    dtype: Any

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output."""

    def constant(self, value: Any, dtype: Any = None) -> str:
        """Add an array, of the graph's type if it is of floats and no other is given."""

    def cast(self, name: str, dtype: Any) -> str:
        """Convert an array."""


def kernel_matrix(graph: Graph, kernel: Kernel, X: str, points: Array) -> str:
    """Return the values between the samples, in double precision, and the points."""
    if isinstance(kernel, (Sum, Product)):
        operation = "Add" if isinstance(kernel, Sum) else "Mul"
        matrix = kernel_matrix(graph, kernel.parts[0], X, points)
        for part in kernel.parts[1:]:
            matrix = graph.node(operation, matrix, kernel_matrix(graph, part, X, points))
        return matrix
    if isinstance(kernel, Scaled):
        matrix = kernel_matrix(graph, kernel.kernel, X, points)
        # One number for each point: runtimes fuse a single one into a product, rounded to float32.
        return graph.node("Mul", matrix, graph.constant(np.full((1, len(points)), kernel.scale)))
    if isinstance(kernel, Constant):
        nothing = graph.node(
            "ReduceSum", X, graph.constant([1], np.int64), keepdims=1, noop_with_empty_axes=0
        )
        zeros = graph.cast(graph.node("Mul", nothing, graph.constant(0.0, np.float64)), graph.dtype)
        return graph.node("Add", zeros, graph.constant(np.ones((1, len(points)))))
    if isinstance(kernel, (Linear, Polynomial)):
        return _of_products(graph, kernel, X, points)
    return _of_distances(graph, kernel, X, points)


def _of_products(graph: Graph, kernel: Kernel, X: str, points: Array) -> str:
    # In double precision as far as digits are lost: the sum over the features.
    factor = kernel.gamma if isinstance(kernel, Polynomial) else 1.0
    products = graph.node("MatMul", X, _table(graph, factor * points.T)[0])
    products = graph.cast(products, graph.dtype)
    if not isinstance(kernel, Polynomial):
        return products
    return _power(graph, graph.node("Add", products, graph.constant(kernel.coef0)), kernel.degree)


def _power(graph: Graph, base: str, exponent: int) -> str:
    """Return a power by squaring: runtimes compute others in single precision."""
    result = ""
    while True:
        if exponent % 2:
            result = graph.node("Mul", result, base) if result else base
        exponent //= 2
        if not exponent:
            return result
        base = graph.node("Mul", base, base)


def _table(graph: Graph, values: Array) -> tuple[str, Array]:
    """Return points as double precision, kept in the graph's own, and what they are then."""
    kept = values.astype(graph.dtype)
    name = graph.constant(kept)
    if graph.dtype != np.float64:
        name = graph.cast(name, np.float64)
    return name, kept.astype(np.float64)


def _of_distances(graph: Graph, kernel: Any, X: str, points: Array) -> str:
    lengths = np.broadcast_to(np.asarray(kernel.bandwidth, dtype=float), (points.shape[1],))
    if isinstance(kernel, Laplacian):
        distances = _differences(graph, "ReduceL1", X, points, lengths)
        return graph.node("Exp", graph.node("Neg", distances))
    rough = isinstance(kernel, Matern) and kernel.nu == 0.5
    # A root magnifies what is lost where a distance is small.
    measure = _differences if rough else _by_products
    squares = measure(graph, "ReduceSumSquare", X, points, lengths)
    if isinstance(kernel, Gaussian):
        return graph.node("Exp", graph.node("Mul", squares, graph.constant(-0.5)))
    if isinstance(kernel, Matern):
        return _matern(graph, squares, kernel.nu)
    degrees = 1.0 if isinstance(kernel, Cauchy) else kernel.degrees
    base = graph.node("Mul", squares, graph.constant(1 / degrees))
    base = graph.node("Add", base, graph.constant(1.0))
    return graph.node("Pow", base, graph.constant(-(degrees + 1) / 2))


def _matern(graph: Graph, squares: str, nu: float) -> str:
    s = graph.node("Sqrt", graph.node("Mul", squares, graph.constant(2 * nu)))
    # Beyond this the exponential is 0, and a finite s keeps 0 times it from being NaN.
    s = graph.node("Min", s, graph.constant(1e4))
    value = graph.node("Exp", graph.node("Neg", s))
    if nu == 0.5:
        return value
    factor = s
    if nu == 2.5:
        factor = graph.node("Mul", s, graph.constant(1 / 3))
        factor = graph.node("Mul", graph.node("Add", factor, graph.constant(1.0)), s)
    return graph.node("Mul", graph.node("Add", factor, graph.constant(1.0)), value)


def _by_products(graph: Graph, reduce: str, X: str, points: Array, lengths: Array) -> str:
    """Return |x|^2 + |p|^2 - 2 xp, about the middle of the points and in double precision."""
    middle = points.mean(axis=0) if len(points) else np.zeros(points.shape[1])
    scaled = (points - middle) / lengths
    x = graph.node("Sub", X, graph.constant(middle, np.float64))
    x = graph.node("Mul", x, graph.constant(1 / lengths, np.float64))
    table, scaled = _table(graph, scaled)
    squares = graph.constant((scaled**2).sum(axis=1)[None], np.float64)
    mixed = graph.node("Gemm", x, table, squares, alpha=-2.0, transB=1)
    own = graph.node(reduce, x, graph.constant([1], np.int64), keepdims=1)
    distances = graph.node(
        "Max", graph.node("Add", mixed, own), graph.constant(np.zeros(1), np.float64)
    )
    return graph.cast(distances, graph.dtype)


def _differences(graph: Graph, reduce: str, X: str, points: Array, lengths: Array) -> str:
    """Return sums over the features of all differences, which are a table each."""
    x = graph.node("Mul", X, graph.constant(1 / lengths, np.float64))
    x = graph.node("Unsqueeze", x, graph.constant([1], np.int64))
    difference = graph.node("Sub", x, _table(graph, (points / lengths)[None])[0])
    sums = graph.node(reduce, difference, graph.constant([2], np.int64), keepdims=0)
    return graph.cast(sums, graph.dtype)

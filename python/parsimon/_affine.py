"""Kernels a <x, y> + c, and what is computed of them from samples that may be sparse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from . import _core
from .kernels import Kernel

Array = NDArray[np.float64]

# Features above which a linear kernel is learned as a vector of weights, and kernel="auto" is one.
MANY_FEATURES = 2000
_BLOCK = 1024


def affine(kernel: Kernel) -> tuple[float, float] | None:
    """Return a and c where the kernel is a <x, y> + c with a > 0, and None where it is not."""
    parts = _affine(_core.parse_kernel_expression(kernel.core.describe()))
    return parts if parts is not None and parts[0] > 0 else None


def _affine(kernel: _core.KernelExpression) -> tuple[float, float] | None:
    if kernel.name == "linear":
        return 1.0, 0.0
    if kernel.name == "constant":
        return 0.0, 1.0
    if kernel.name not in ("sum", "scale", "single"):
        return None
    factor = kernel.parameters[0] if kernel.name == "scale" else 1.0
    scale = constant = 0.0
    for part in map(_affine, kernel.parts):
        if part is None:
            return None
        scale, constant = scale + factor * part[0], constant + factor * part[1]
    return scale, constant


def gram_of(kernel: Kernel, X: Any) -> Array:
    """Return the Gram matrix of samples, sparse ones of an affine kernel as they are."""
    if not sparse.issparse(X):
        return kernel(X)
    scale, constant = affine(kernel) or (1.0, 0.0)
    return np.asarray(scale * (X @ X.T).toarray() + constant)


def diagonal(kernel: Kernel, X: Any) -> Array:
    """Return the diagonal of the same."""
    if not sparse.issparse(X):
        return kernel.diag(X)
    scale, constant = affine(kernel) or (1.0, 0.0)
    norms = [np.asarray(squares.sum(axis=1)).ravel() for squares in squared_blocks(X)]
    return scale * np.concatenate([np.empty(0), *norms]) + constant


def squared_blocks(X: Any) -> Iterator[Any]:
    """Return the squares of the numbers in sparse samples, few samples at a time."""
    for start in range(0, X.shape[0], _BLOCK):
        block = X[start : start + _BLOCK].astype(np.float64)
        block.sum_duplicates()
        block.data **= 2
        yield block

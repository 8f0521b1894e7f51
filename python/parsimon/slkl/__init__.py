"""SLKL: regression with a learned low-rank kernel."""

from __future__ import annotations

from typing import Any

from parsimon.kernels import Kernel

from ._classifier import SLKLClassifier
from ._path import SparsityPath, sparsity_path
from ._regressor import SLKLRegressor

__all__ = [
    "SLKLClassifier",
    "SLKLRegressor",
    "SparsityPath",
    "from_core_entries",
    "sparsity_path",
]


def from_core_entries(entries: dict[str, Any], kernel: Kernel) -> tuple[Any, dict[str, Any]]:
    """Refuse a function without its estimator: the weights of the kernels are missing."""
    raise ValueError(
        f"The file holds a function with {len(entries['weights'])} points and the kernel "
        f"{kernel!r} that SLKL has learned, but no estimator; only a file that an estimator's save "
        f"method wrote can be loaded."
    )

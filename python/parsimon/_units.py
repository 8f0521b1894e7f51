"""The lengths in which points of a kernel are moved."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from .kernels import Function, Kernel, Product, Scaled, SinglePrecision, Sum

Array = NDArray[np.float64]


def check_gradient(kernel: Kernel) -> None:
    """Refuse a kernel whose points cannot be moved."""
    if isinstance(kernel, Function) and kernel.gradient is None:
        raise ValueError(
            f"Points can only be moved with a kernel that has a gradient, which {kernel!r} does "
            f"not: give it one, or leave the points where they are (refine=False)."
        )
    if isinstance(kernel, (Sum, Product)):
        for part in kernel.parts:
            check_gradient(part)
    if isinstance(kernel, (Scaled, SinglePrecision)):
        check_gradient(kernel.kernel)


def units_of(text: str, points: Array) -> Array:
    """Return the width of a kernel along each feature, or that of the points if it has none.

    text: what ``Kernel.describe()`` of the core says.
    """
    widths: list[Array] = []

    def look(kernel: Any) -> None:
        if len(kernel.bandwidth):
            lengths = np.asarray(kernel.bandwidth, dtype=np.float64)
            widths.append(np.broadcast_to(lengths, points.shape[1:]))
        for part in kernel.parts:
            look(part)

    if not text.startswith("function("):
        look(_core.parse_kernel_expression(text))
    if widths:
        return np.asarray(np.min(widths, axis=0))
    spread = points.std(axis=0)
    return np.where(spread > 0, spread, 1.0)

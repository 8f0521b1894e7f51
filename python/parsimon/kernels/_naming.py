"""Kernels by name: scikit-learn's names, and the text that a model file holds."""

from __future__ import annotations

import math
from typing import Any

from parsimon import _core

from ._base import Kernel, Product, Scaled, SinglePrecision, Sum, number
from ._elementary import (
    Cauchy,
    Constant,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    StudentT,
)

NAMES = ("rbf", "gaussian", "laplacian", "matern", "cauchy", "poly", "polynomial", "linear")


def from_name(
    name: str, *, gamma: float = 1.0, degree: int = 3, coef0: float = 1.0, nu: float = 1.5
) -> Kernel:
    """Make the kernel that scikit-learn users know by this name.

    Parameters
    ----------
    name : {"rbf", "gaussian", "laplacian", "matern", "cauchy", "poly", "polynomial", "linear"}
    gamma : float, default=1.0
        The inverse width, as scikit-learn defines it: exp(-gamma ||x - y||^2) for "rbf" and
        "gaussian", exp(-gamma ||x - y||_1) for "laplacian", (gamma <x, y> + coef0)^degree for
        "poly" and "polynomial". "cauchy" is 1 / (1 + gamma ||x - y||^2), and "matern" has the
        bandwidth of "rbf", 1 / sqrt(2 gamma). "linear" ignores it.
    degree : int, default=3
        Of "poly".
    coef0 : float, default=1.0
        Of "poly".
    nu : {0.5, 1.5, 2.5}, default=1.5
        Of "matern".

    Returns
    -------
    Kernel

    Examples
    --------
    >>> from parsimon.kernels import from_name
    >>> from_name("rbf", gamma=0.125)
    Gaussian(bandwidth=2.0)
    """
    if name not in NAMES:
        raise ValueError(f"There is no kernel named {name!r}; use one of {', '.join(NAMES)}.")
    gamma = number(gamma, "A kernel's gamma")
    if not 0 < gamma < math.inf:
        raise ValueError(f"A kernel's gamma must be positive and finite, but {gamma!r} was given.")
    if name in ("poly", "polynomial"):
        return Polynomial(degree, gamma, coef0)
    if name == "linear":
        return Linear()
    if name == "laplacian":
        return Laplacian(1 / gamma)
    if name == "cauchy":
        return Cauchy(1 / math.sqrt(gamma))
    bandwidth = math.sqrt(0.5) / math.sqrt(gamma)
    return Matern(bandwidth, nu) if name == "matern" else Gaussian(bandwidth)


_CONSTRUCTORS: dict[str, Any] = {
    "gaussian": Gaussian,
    "laplacian": Laplacian,
    "matern": Matern,
    "student_t": lambda bandwidth, degrees: (
        Cauchy(bandwidth) if degrees == 1 else StudentT(bandwidth, degrees)
    ),
    "polynomial": lambda degree, gamma, coef0: Polynomial(int(degree), gamma, coef0),
    "linear": Linear,
    "constant": Constant,
    "sum": lambda *parts: Sum(parts),
    "product": lambda *parts: Product(parts),
    "scale": Scaled,
    "single": SinglePrecision,
}


def from_description(text: str) -> Kernel:
    """Make the kernel whose compiled form describes itself by this text.

    Parameters
    ----------
    text : str
        What ``kernel.core.describe()`` returned. A :class:`Function` cannot be read back.

    Returns
    -------
    Kernel

    Examples
    --------
    >>> from parsimon.kernels import from_description
    >>> from_description("sum(gaussian(0.5),scale(2,linear()))")
    Gaussian(bandwidth=0.5) + 2.0 * Linear()
    """
    return _from_expression(_core.parse_kernel_expression(text))


def _from_expression(kernel: _core.KernelExpression) -> Kernel:
    bandwidth: list[Any] = [kernel.bandwidth] if kernel.per_feature else kernel.bandwidth
    parts = map(_from_expression, kernel.parts)
    made: Kernel = _CONSTRUCTORS[kernel.name](*bandwidth, *kernel.parameters, *parts)
    return made

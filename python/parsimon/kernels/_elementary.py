"""The kernels that are not made of others."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from parsimon import _core

from ._base import Array, Kernel, number


def _bandwidth(value: Any) -> float | tuple[float, ...]:
    try:
        array = np.asarray(value)
    except ValueError:  # a ragged list
        array = np.empty((0, 0))
    if array.ndim > 1 or array.dtype.kind not in "fiu":
        raise ValueError(
            "A kernel's bandwidth must be a positive number, or a sequence with one for each "
            f"feature, but {value!r} was given."
        )
    return float(array) if array.ndim == 0 else tuple(array.astype(float).tolist())


@dataclass(frozen=True)
class Gaussian(Kernel):
    """Gaussian kernel, exp(-||x - y||^2 / (2 bandwidth^2)); scikit-learn's "rbf".

    Parameters
    ----------
    bandwidth : float or sequence of floats, default=1.0
        One length for all features, or one for each.

    Examples
    --------
    >>> from parsimon.kernels import Gaussian
    >>> Gaussian(2.0)([[0.0, 0.0]], [[0.0, 2.0], [4.0, 0.0]])
    array([[0.60653066, 0.13533528]])
    >>> Gaussian([1.0, 2.0])
    Gaussian(bandwidth=(1.0, 2.0))
    """

    bandwidth: float | Sequence[float] = 1.0

    def __post_init__(self) -> None:
        h = _bandwidth(self.bandwidth)
        self._make(_core.gaussian(h), bandwidth=h)


@dataclass(frozen=True)
class Laplacian(Kernel):
    """Laplacian kernel, exp(-||x - y||_1 / bandwidth), of the sum of absolute differences.

    Parameters
    ----------
    bandwidth : float or sequence of floats, default=1.0
        One length for all features, or one for each.

    Examples
    --------
    >>> from parsimon.kernels import Laplacian
    >>> Laplacian(2.0)([[0.0, 0.0]], [[1.0, 1.0]])
    array([[0.36787944]])
    """

    bandwidth: float | Sequence[float] = 1.0

    def __post_init__(self) -> None:
        h = _bandwidth(self.bandwidth)
        self._make(_core.laplacian(h), bandwidth=h)


@dataclass(frozen=True)
class Matern(Kernel):
    """Matern kernel: a polynomial times exp(-s), s = sqrt(2 nu) ||x - y|| / bandwidth.

    Functions of its space are `nu` - 1/2 times differentiable.

    Parameters
    ----------
    bandwidth : float or sequence of floats, default=1.0
        One length for all features, or one for each.
    nu : {0.5, 1.5, 2.5}, default=1.5
        Smoothness: exp(-s), (1 + s) exp(-s) or (1 + s + s^2 / 3) exp(-s).

    Examples
    --------
    >>> from parsimon.kernels import Matern
    >>> Matern(1.0, nu=0.5)([[0.0]], [[1.0]])
    array([[0.36787944]])
    """

    bandwidth: float | Sequence[float] = 1.0
    nu: float = 1.5

    def __post_init__(self) -> None:
        h, nu = _bandwidth(self.bandwidth), number(self.nu, "A Matern kernel's nu")
        self._make(_core.matern(h, nu), bandwidth=h, nu=nu)


@dataclass(frozen=True)
class Cauchy(Kernel):
    """Cauchy kernel, 1 / (1 + ||x - y||^2 / bandwidth^2): its tails are heavy.

    Parameters
    ----------
    bandwidth : float or sequence of floats, default=1.0
        One length for all features, or one for each.

    Examples
    --------
    >>> from parsimon.kernels import Cauchy
    >>> Cauchy(1.0)([[0.0]], [[0.0], [1.0], [3.0]])
    array([[1. , 0.5, 0.1]])
    """

    bandwidth: float | Sequence[float] = 1.0

    def __post_init__(self) -> None:
        h = _bandwidth(self.bandwidth)
        self._make(_core.cauchy(h), bandwidth=h)


@dataclass(frozen=True)
class StudentT(Kernel):
    """Student's t kernel, (1 + r^2 / degrees)^(-(degrees + 1) / 2), r = ||x - y|| / bandwidth.

    Between the Cauchy kernel, which it is with one degree, and the Gaussian, its limit.

    Parameters
    ----------
    bandwidth : float or sequence of floats, default=1.0
        One length for all features, or one for each.
    degrees : float, default=3.0
        Degrees of freedom, positive.

    Examples
    --------
    >>> from parsimon.kernels import StudentT
    >>> StudentT(1.0, degrees=3.0)([[0.0]], [[3.0]])
    array([[0.0625]])
    """

    bandwidth: float | Sequence[float] = 1.0
    degrees: float = 3.0

    def __post_init__(self) -> None:
        h = _bandwidth(self.bandwidth)
        degrees = number(self.degrees, "The degrees of freedom of a Student-t kernel")
        self._make(_core.student_t(h, degrees), bandwidth=h, degrees=degrees)


@dataclass(frozen=True)
class Polynomial(Kernel):
    """Polynomial kernel, (gamma <x, y> + coef0)^degree; scikit-learn's "poly".

    Parameters
    ----------
    degree : int, default=3
    gamma : float, default=1.0
        Positive.
    coef0 : float, default=1.0
        Not negative.

    Examples
    --------
    >>> from parsimon.kernels import Polynomial
    >>> Polynomial(2)([[1.0, 2.0]], [[1.0, 1.0]])
    array([[16.]])
    """

    degree: int = 3
    gamma: float = 1.0
    coef0: float = 1.0

    def __post_init__(self) -> None:
        try:
            degree = operator.index(self.degree)
        except TypeError:
            degree = 0
        if not 1 <= degree <= 10**6:
            raise ValueError(
                "A polynomial kernel's degree must be an integer from 1 to 1000000, but "
                f"{self.degree!r} was given."
            )
        gamma = number(self.gamma, "A polynomial kernel's gamma")
        coef0 = number(self.coef0, "A polynomial kernel's coef0")
        core = _core.polynomial(degree, gamma, coef0)
        self._make(core, degree=degree, gamma=gamma, coef0=coef0)


@dataclass(frozen=True)
class Linear(Kernel):
    """Linear kernel, <x, y>.

    Examples
    --------
    >>> from parsimon.kernels import Linear
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    def __post_init__(self) -> None:
        self._make(_core.linear())


@dataclass(frozen=True)
class Constant(Kernel):
    """Constant kernel, 1 everywhere: added to another kernel, it makes room for an intercept.

    Examples
    --------
    >>> from parsimon.kernels import Constant, Gaussian
    >>> kernel = Gaussian(1.0) + 0.3 * Constant()
    >>> kernel([[0.0]], [[0.0], [100.0]])
    array([[1.3, 0.3]])
    """

    def __post_init__(self) -> None:
        self._make(_core.constant())


@dataclass(frozen=True, repr=False)
class Function(Kernel):
    """A kernel of your own.

    Models with such a kernel are saved without it: give it again to :func:`parsimon.load`.

    Parameters
    ----------
    callable : callable
        ``callable(X, Y)`` returns the values of the kernel between the rows of `X`, an ndarray of
        shape (n, p), and those of `Y`, (m, p), as an array of shape (n, m). It must be symmetric
        and positive definite, which is not checked.
    gradient : callable, optional
        ``gradient(X, y)`` returns the derivatives of k(x_i, y) by the point `y`, an ndarray of
        shape (p,), as an array of shape (n, p). Only needed to differentiate functions.

    Examples
    --------
    >>> import numpy as np
    >>> from parsimon.kernels import Function
    >>> def minimum(X, Y):
    ...     return np.minimum(X, Y.T)
    >>> Function(minimum)([[1.0], [2.0]], [[1.5]])
    array([[1. ],
           [1.5]])
    """

    callable: Callable[[Array, Array], npt.ArrayLike]
    gradient: Callable[[Array, Array], npt.ArrayLike] | None = None

    def __post_init__(self) -> None:
        for function in (self.callable, self.gradient):
            if not (callable(function) or function is self.gradient is None):
                raise ValueError(f"A kernel function must be callable, but {function!r} is not.")
        self._make(_core.function(self.callable, _name(self.callable), self.gradient))

    def __repr__(self) -> str:
        gradient = "" if self.gradient is None else f", gradient={_name(self.gradient)}"
        return f"Function({_name(self.callable)}{gradient})"


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", None) or type(function).__name__)

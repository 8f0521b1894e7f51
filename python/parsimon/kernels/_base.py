"""What all kernels share, and the kernels that are made of others."""

from __future__ import annotations

import numbers
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from html import escape
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array

from parsimon import _core
from parsimon._site import link_to

Array: TypeAlias = npt.NDArray[np.float64]


def points(X: npt.ArrayLike) -> Any:
    """Check that `X` is a matrix of finite numbers, one point per row."""
    return check_array(X, dtype=np.float64, ensure_min_samples=0)


def number(value: Any, what: str) -> float:
    """Turn `value` into a float; its range is the compiled kernel's to check."""
    if not isinstance(value, numbers.Real):
        raise ValueError(f"{what} must be a number, but {value!r} was given.")
    return float(value)


class Kernel:
    """A positive definite function of two points.

    The base of all kernels; not to be instantiated. ``kernel(X, Y)`` is the matrix of its values,
    ``kernel + kernel``, ``kernel * kernel`` and ``2.0 * kernel`` are kernels.

    Attributes
    ----------
    core : object
        The compiled kernel.
    """

    core: _core.Kernel

    # Else NumPy would multiply np.float64(2) * kernel itself, as an array of objects.
    __array_ufunc__ = None

    def _make(self, core: _core.Kernel, **values: Any) -> None:
        for name, value in (values | {"core": core}).items():
            object.__setattr__(self, name, value)

    def __call__(self, X: npt.ArrayLike, Y: npt.ArrayLike | None = None) -> Array:
        """Compute the kernel between all rows of `X` and all rows of `Y`.

        Parameters
        ----------
        X : array-like of shape (n, p)
        Y : array-like of shape (m, p), optional
            By default `X`.

        Returns
        -------
        ndarray of shape (n, m)
        """
        a = points(X)
        return self.core.block(a, a if Y is None else points(Y))

    def diag(self, X: npt.ArrayLike) -> Array:
        """Compute the kernel between each row of `X` and itself.

        Parameters
        ----------
        X : array-like of shape (n, p)

        Returns
        -------
        ndarray of shape (n,)
        """
        return self.core.diagonal(points(X))

    def _repr_html_(self) -> str:
        """Show the kernel in a notebook, with the names of its parts leading to their pages."""
        classes = {type(part).__name__: type(part) for part in _all_parts(self)}
        text = escape(repr(self))
        for name, cls in classes.items():
            text = re.sub(rf"\b{name}(?=\()", link_to(cls), text)
        return f"<code>{text}</code>"

    def __add__(self, other: Any) -> Kernel:
        return Sum((self, other)) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> Kernel:
        if isinstance(other, Kernel):
            return Product((self, other))
        return self.__rmul__(other)

    def __rmul__(self, other: Any) -> Kernel:
        return Scaled(float(other), self) if isinstance(other, numbers.Real) else NotImplemented

    def __copy__(self) -> Kernel:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Kernel:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, f.name) for f in fields(self))  # type: ignore[arg-type]


def _all_parts(kernel: Kernel) -> Iterator[Kernel]:
    """Return a kernel and all those that it is made of."""
    yield kernel
    inside = (getattr(kernel, "kernel", None), *getattr(kernel, "parts", ()))
    for part in inside:
        if isinstance(part, Kernel):
            yield from _all_parts(part)


def _parts(kernels: Iterable[Kernel], kind: type[Sum] | type[Product]) -> tuple[Kernel, ...]:
    flat: list[Kernel] = []
    for kernel in kernels:
        if not isinstance(kernel, Kernel):
            raise ValueError(f"The parts of a kernel must be kernels, but {kernel!r} was given.")
        flat.extend(kernel.parts if isinstance(kernel, kind) else [kernel])
    return tuple(flat)


def _within(kernel: Kernel, loose: type[Kernel] | tuple[type[Kernel], ...]) -> str:
    return f"({kernel!r})" if isinstance(kernel, loose) else repr(kernel)


@dataclass(frozen=True, repr=False)
class Sum(Kernel):
    """Sum of kernels; usually written ``a + b``. Sums within sums are merged.

    Parameters
    ----------
    parts : sequence of kernels

    Examples
    --------
    >>> from parsimon.kernels import Gaussian, Linear
    >>> Gaussian(1.0) + Gaussian(10.0) + Linear()
    Gaussian(bandwidth=1.0) + Gaussian(bandwidth=10.0) + Linear()
    """

    parts: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        parts = _parts(self.parts, Sum)
        self._make(_core.sum([part.core for part in parts]), parts=parts)

    def __repr__(self) -> str:
        if len(self.parts) == 1:
            return f"Sum(({self.parts[0]!r},))"
        return " + ".join(map(repr, self.parts))


@dataclass(frozen=True, repr=False)
class Product(Kernel):
    """Product of kernels; usually written ``a * b``. Products within products are merged.

    Parameters
    ----------
    parts : sequence of kernels

    Examples
    --------
    >>> from parsimon.kernels import Gaussian, Linear
    >>> (Gaussian(1.0) + Linear()) * Linear()
    (Gaussian(bandwidth=1.0) + Linear()) * Linear()
    """

    parts: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        parts = _parts(self.parts, Product)
        self._make(_core.product([part.core for part in parts]), parts=parts)

    def __repr__(self) -> str:
        if len(self.parts) == 1:
            return f"Product(({self.parts[0]!r},))"
        return " * ".join(_within(part, (Sum, Scaled)) for part in self.parts)


@dataclass(frozen=True, repr=False)
class Scaled(Kernel):
    """Positive multiple of a kernel; usually written ``2.0 * a``.

    Parameters
    ----------
    scale : float
    kernel : kernel

    Examples
    --------
    >>> from parsimon.kernels import Linear
    >>> 2.0 * (3.0 * Linear())
    6.0 * Linear()
    """

    scale: float
    kernel: Kernel

    def __post_init__(self) -> None:
        kernel = self.kernel
        if not isinstance(kernel, Kernel):
            raise ValueError(f"Only kernels can be scaled, but {kernel!r} was given.")
        scale = number(self.scale, "The factor of a scaled kernel")
        if isinstance(kernel, Scaled) and scale > 0:
            scale, kernel = scale * kernel.scale, kernel.kernel
        self._make(_core.scaled(scale, kernel.core), scale=scale, kernel=kernel)

    def __repr__(self) -> str:
        return f"{self.scale!r} * {_within(self.kernel, (Sum, Product))}"


@dataclass(frozen=True)
class SinglePrecision(Kernel):
    """A kernel that multiplies points in single precision.

    Twice as fast on samples of many features, and right to about six digits. Distances of near
    points are computed in double precision all the same. It is what ``dtype="float32"`` makes of
    the kernel of an estimator.

    Samples whose numbers are all smaller than 1e-19 are not for a dot-product kernel in single
    precision: their products are zero there.

    Parameters
    ----------
    kernel : kernel

    Examples
    --------
    >>> from parsimon.kernels import Gaussian, SinglePrecision
    >>> SinglePrecision(Gaussian(2.0))
    SinglePrecision(kernel=Gaussian(bandwidth=2.0))
    """

    kernel: Kernel

    def __post_init__(self) -> None:
        kernel = self.kernel
        if not isinstance(kernel, Kernel):
            raise ValueError(f"SinglePrecision needs a kernel, but {kernel!r} was given.")
        if isinstance(kernel, SinglePrecision):
            kernel = kernel.kernel
        self._make(_core.single(kernel.core), kernel=kernel)

"""Functions in a reproducing kernel Hilbert space, and their compression."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from . import _core
from ._approximate import move_points
from ._checks import choice, count, is_number
from ._progress import progress
from ._selection import Selection
from ._site import counted, link_to
from .kernels import Kernel

Array = NDArray[np.float64]


class KernelExpansion:
    """A function ``f(x) = sum_m weights[m] * kernel(dictionary[m], x)``.

    Expansions are immutable and form a vector space: they can be added, subtracted and scaled, and
    have the inner product, norm and distance of the kernel's Hilbert space. A distance there is a
    bound everywhere: ``|f(x) - g(x)| <= f.distance(g) * sqrt(kernel(x, x))``.

    Parameters
    ----------
    kernel : parsimon.kernels.Kernel
        The kernel.
    dictionary : array-like of shape (n_points, n_features)
        The points that carry the function.
    weights : array-like of shape (n_points,) or (n_points, n_outputs)
        One weight, or one row of weights, for each point.

    Examples
    --------
    >>> import numpy as np
    >>> from parsimon import KernelExpansion, kernels
    >>> f = KernelExpansion(kernels.Gaussian(1.0), [[0.0], [1.0]], [2.0, -1.0])
    >>> f.model_order
    2
    >>> f([[0.0]]).round(4)
    array([1.3935])
    >>> (f - f).norm()
    0.0
    """

    def __init__(self, kernel: Kernel, dictionary: ArrayLike, weights: ArrayLike) -> None:
        if not isinstance(kernel, Kernel):
            raise TypeError(
                f"The kernel of an expansion must be a parsimon.kernels.Kernel; "
                f"{kernel!r} of type {type(kernel).__name__} was given."
            )
        points = check_array(
            dictionary, dtype=np.float64, order="C", ensure_min_samples=0, input_name="dictionary"
        )
        rows = check_array(
            weights,
            dtype=np.float64,
            order="C",
            ensure_2d=False,
            ensure_min_samples=0,
            ensure_min_features=0,
            input_name="weights",
        )
        core_weights = rows.reshape(len(rows), -1) if len(rows) else rows.reshape(0, _width(rows))
        core = _core.KernelExpansion(kernel.core, points, core_weights)
        self._set(kernel, core, flat=rows.ndim == 1)

    def _set(self, kernel: Kernel, core: Any, *, flat: bool) -> None:
        self._kernel = kernel
        self._core = core
        self._flat = flat
        self._span: Any = None

    @classmethod
    def _wrap(cls, kernel: Kernel, core: Any, *, flat: bool) -> KernelExpansion:
        expansion = cls.__new__(cls)
        expansion._set(kernel, core, flat=flat)
        return expansion

    def _derive(self, core: Any) -> KernelExpansion:
        return self._wrap(self._kernel, core, flat=self._flat)

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        return self._kernel

    @property
    def dictionary(self) -> Array:
        """The points, of shape (n_points, n_features)."""
        return np.asarray(self._core.dictionary)

    @property
    def weights(self) -> Array:
        """The weights, of the shape that was given: one dimension for a single output."""
        weights = np.asarray(self._core.weights)
        return weights[:, 0] if self._flat else weights

    @property
    def model_order(self) -> int:
        """The number of points."""
        return int(self._core.model_order)

    def __call__(self, X: ArrayLike) -> Array:
        """Evaluate the function at the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Where to evaluate it.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            With the axis of the outputs if the weights have it.
        """
        values = np.asarray(self._core(self._points(X)))
        return values[:, 0] if self._flat else values

    def norm(self) -> float:
        """Return the norm ``sqrt(<f, f>)``, over all outputs together."""
        return float(self._core.norm())

    def inner(self, other: KernelExpansion) -> float:
        """Return the inner product with another expansion of the same kernel.

        Parameters
        ----------
        other : KernelExpansion
            With the same kernel, and as many features and outputs.

        Returns
        -------
        product : float
            Over all outputs together.
        """
        return float(self._core.inner(self._other(other)))

    def distance(self, other: KernelExpansion) -> float:
        """Return the norm of the difference to another expansion of the same kernel.

        Parameters
        ----------
        other : KernelExpansion
            With the same kernel, and as many features and outputs.

        Returns
        -------
        distance : float
            At any x the two differ by at most ``distance * sqrt(kernel(x, x))``.
        """
        return float(self._core.distance(self._other(other)))

    def refine(
        self, max_points: int, *, iterations: int = 200, verbose: int = 0
    ) -> tuple[KernelExpansion, float]:
        """Return an expansion of few points that is near to this one, and their distance.

        :func:`komp` chooses the points from those of this function. They are then moved to where
        the distance is smallest, with the best weights everywhere (L-BFGS); where that is not
        nearer, they stay.

        Parameters
        ----------
        max_points : int
            The largest number of points.
        iterations : int, default=200
            The largest number of steps.
        verbose : int, default=0
            1 shows a progress bar.

        Returns
        -------
        expansion : KernelExpansion
            The function of few points.
        distance : float
            How far it is from this one, in Hilbert norm; at any point x the two differ by at most
            ``distance * sqrt(kernel(x, x))``.

        Examples
        --------
        >>> import numpy as np
        >>> from parsimon import KernelExpansion, kernels, komp
        >>> x = np.linspace(0, 1, 200)[:, None]
        >>> f = KernelExpansion(kernels.Gaussian(0.1), x, np.sin(20 * x[:, 0]) / 200)
        >>> g, distance = f.refine(6)
        >>> g.model_order, distance < 0.5 * f.distance(komp(f, max_points=6)[0])
        (6, True)
        """
        count()("max_points", max_points)
        count()("iterations", iterations)
        start = komp(self, max_points=max_points, verbose=verbose)[0]
        before = self.distance(start)
        if start.model_order == 0 or start.model_order == self.model_order:
            return start, before
        moved = self._derive(move_points(self._core, start._core, iterations, verbose))
        after = self.distance(moved)
        return (moved, after) if after < before else (start, before)

    def distance_to_span(self, X: ArrayLike) -> Array:
        """Return how far ``kernel(x, .)`` is from the span of the points, for the rows of X.

        That is ``sqrt(kernel(x, x))`` where x has nothing in common with any of the points, and 0
        at the points themselves; values below about ``1e-7 * sqrt(kernel(x, x))`` are rounding.
        The weights do not matter.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples x.

        Returns
        -------
        distances : ndarray of shape (n_samples,)
            In the norm of the kernel's Hilbert space.

        Examples
        --------
        >>> from parsimon import KernelExpansion, kernels
        >>> f = KernelExpansion(kernels.Gaussian(1.0), [[0.0], [1.0]], [2.0, -1.0])
        >>> f.distance_to_span([[0.0], [0.5], [2.0], [9.0]]).round(2)
        array([0.  , 0.17, 0.74, 1.  ])
        """
        if self._span is None:
            self._span = self._core.span()
        return np.asarray(self._span.distance(self._points(X)))

    def gradient(self, X: ArrayLike) -> Array:
        """Differentiate the function by x at the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Where to differentiate it.

        Returns
        -------
        gradient : ndarray of shape (n_samples, n_features) or (n_samples, n_outputs, n_features)
            Without the axis of the outputs if the weights have one dimension.
        """
        points = self._points(X)
        outputs = range(1 if self._flat else self.weights.shape[1])
        gradients = [np.asarray(self._core.gradient(points, output)) for output in outputs]
        if self._flat:
            return gradients[0]
        return np.stack(gradients, axis=1) if gradients else np.empty((len(points), 0, 0))

    def __add__(self, other: object) -> KernelExpansion:
        return self._combine(other, 1.0)

    def __sub__(self, other: object) -> KernelExpansion:
        return self._combine(other, -1.0)

    def _combine(self, other: object, sign: float) -> KernelExpansion:
        if not isinstance(other, KernelExpansion):
            return NotImplemented  # type: ignore[no-any-return]
        return self._derive(self._core.combine(1.0, self._other(other), sign))

    def __mul__(self, factor: object) -> KernelExpansion:
        if not isinstance(factor, (int, float, np.integer, np.floating)):
            return NotImplemented
        if not np.isfinite(factor):
            raise ValueError(f"An expansion can be scaled by a finite number; got {factor}.")
        return self._derive(self._core.scaled(float(factor)))

    __rmul__ = __mul__

    def __neg__(self) -> KernelExpansion:
        return self * -1.0

    def __repr__(self) -> str:
        outputs = "" if self._flat else f", n_outputs={self.weights.shape[1]}"
        return f"KernelExpansion({self._kernel!r}, model_order={self.model_order}{outputs})"

    def _repr_html_(self) -> str:
        features = self._core.dictionary.shape[1]
        outputs = self._core.weights.shape[1]
        return (
            f"<div>{link_to(KernelExpansion)}: {counted(self.model_order, 'point')} with "
            f"{counted(features, 'feature')}, {counted(outputs, 'output')}, kernel "
            f"{self._kernel._repr_html_()}</div>"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the function to one file, from which :func:`parsimon.load` reads it back.

        Parameters
        ----------
        path : path-like
            Where to write; an existing file is replaced.
        """
        from ._io import check_path, read_back

        check_path(path)
        read_back(self._to_archive(), self._kernel, path).write(os.fspath(path))

    def _to_archive(self) -> Any:
        archive = _core.Slkl(
            self._kernel.core, self._core.dictionary, self._core.weights
        ).to_archive()
        archive["estimator"] = "KernelExpansion"
        archive["output.mean"] = np.zeros(self._core.weights.shape[1])
        archive["output.single"] = int(self._flat)
        return archive

    @classmethod
    def _from_archive(cls, archive: Any, kernel: Kernel) -> KernelExpansion:
        function = _core.read_model(archive, kernel.core).expansion
        flat = archive["output.single"] != 0
        if flat and function.weights.shape[1] != 1:
            raise ValueError(
                "The model file does not hold a KernelExpansion: its output.single cannot be that "
                "of a function with several outputs."
            )
        return cls._wrap(kernel, function, flat=flat)

    def __reduce__(self) -> tuple[Any, ...]:
        return (KernelExpansion, (self._kernel, self.dictionary, self.weights))

    def _points(self, X: ArrayLike) -> Array:
        return np.asarray(
            check_array(X, dtype=np.float64, order="C", ensure_min_samples=0, input_name="X")
        )

    def _other(self, other: object) -> Any:
        if not isinstance(other, KernelExpansion):
            raise TypeError(
                f"A KernelExpansion can only be compared with another one, not with "
                f"{type(other).__name__}."
            )
        if self._flat != other._flat:
            raise ValueError(
                "One expansion has weights of one dimension and the other of two; give both the "
                "same shape."
            )
        return other._core


def _width(weights: Array) -> int:
    return weights.shape[1] if weights.ndim == 2 else 1


@dataclass(frozen=True)
class CompressionReport:
    """What :func:`komp` did.

    Attributes
    ----------
    removed : ndarray of int
        Positions in the given dictionary of the points that were removed, in order.
    error : float
        Distance in Hilbert norm between the function before and after; at most the budget. At any
        point x the two differ by at most ``error * sqrt(kernel(x, x))``.
    model_order : int
        Points that are left.
    """

    removed: NDArray[np.int64]
    error: float
    model_order: int

    def __str__(self) -> str:
        return (
            f"{self.model_order + len(self.removed)} -> {self.model_order} points\n"
            f"moved by {self.error:.3g} in Hilbert norm\n"
            f"certified, at every x: values move by <= {self.error:.3g} * sqrt(k(x, x))"
        )

    __repr__ = __str__


# Functions of more points are not taken as a whole: that needs the square of their number in
# memory, and its cube in time.
_MOST_AT_ONCE = 3000
# How many more points are chosen than asked for, of which KOMP then removes the worst.
_SPARE = 1.5
# Budgets that are tried where points are merged, each smaller than this share of the one before.
_ATTEMPTS = 3
_LESS = 0.995


def komp(
    expansion: KernelExpansion,
    budget: float = 0.0,
    protected: ArrayLike | None = None,
    *,
    max_points: int | None = None,
    compression: str = "remove",
    verbose: int = 0,
) -> tuple[KernelExpansion, CompressionReport]:
    """Compress an expansion by kernel orthogonal matching pursuit.

    Points are removed one at a time, always the one whose removal, with the weights of all others
    fitted anew, leaves the function nearest to the given one, as long as the distance in Hilbert
    norm is within the budget, or there are more points than asked for.

    A function of more than 3,000 points is too large to begin with all of them. Then points are
    added first, always the one that brings the function nearest to the given one, until there are
    half as many again as asked for or half of the budget is left; from these, points are removed
    as above. That takes n numbers of memory for each point that is added, 2 GB at most.

    Parameters
    ----------
    expansion : KernelExpansion
        The function to compress.
    budget : float, default=0.0
        How far the function may move in Hilbert norm.
    protected : array-like of bool of shape (n_points,) or of int, optional
        Points that must stay: a mask, or their positions.
    max_points : int, optional
        The largest number of points, whatever that takes beyond the budget; protected points stay.
    compression : {"remove", "merge"}, default="remove"
        "merge": the point that would go and another one may be replaced by a point between them,
        if that moves the function less. For kernels with a gradient; slower.
    verbose : int, default=0
        1 shows a progress bar where points are added.

    Returns
    -------
    expansion : KernelExpansion
        The compressed function; its points are in the order they were given, and then come those
        that merging has made.
    report : CompressionReport
        The removed points and the error spent.

    Examples
    --------
    >>> import numpy as np
    >>> from parsimon import KernelExpansion, kernels, komp
    >>> x = np.linspace(0, 1, 200)[:, None]
    >>> f = KernelExpansion(kernels.Gaussian(0.3), x, np.sin(6 * x[:, 0]) / 200)
    >>> g, report = komp(f, budget=1e-3)
    >>> g.model_order < 20, bool(report.error <= 1e-3)
    (True, True)
    >>> bool(abs(g.distance(f) - report.error) < 1e-6)
    True
    >>> komp(f, max_points=5)[0].model_order
    5
    >>> merged, report = komp(f, max_points=5, compression="merge")
    >>> bool(report.error < 0.5 * komp(f, max_points=5)[1].error)
    True
    """
    if not isinstance(expansion, KernelExpansion):
        raise TypeError(f"komp compresses a KernelExpansion; got {type(expansion).__name__}.")
    if not is_number(budget) or budget < 0:
        raise ValueError(f"The budget must be a finite number, not negative; got {budget!r}.")
    count(optional=True)("max_points", max_points)
    choice("remove", "merge")("compression", compression)
    merges = compression == "merge"
    mask = _protected_mask(protected, expansion.model_order)
    if expansion.model_order > _MOST_AT_ONCE:
        return _large_komp(expansion, float(budget), mask, max_points, merges, verbose)
    core, removed, error = _core.komp(
        expansion._core, float(budget), mask.tolist(), max_points, merges
    )
    compressed = expansion._derive(core)
    report = CompressionReport(
        _given(removed, expansion.model_order), float(error), compressed.model_order
    )
    return compressed, report


def _given(removed: list[int], size: int) -> NDArray[np.int64]:
    """Leave out points that merging has made before they went."""
    positions = np.asarray(removed, dtype=np.int64)
    return positions[positions < size]


def _large_komp(
    expansion: KernelExpansion,
    budget: float,
    mask: NDArray[np.bool_],
    max_points: int | None,
    merges: bool,
    verbose: int,
) -> tuple[KernelExpansion, CompressionReport]:
    size = expansion.model_order
    most = size
    if max_points is not None:
        spare = int(_SPARE * max_points) + 50
        most = min(size, max_points if spare > 2 * _MOST_AT_ONCE else spare)
    selection = Selection(expansion)
    with progress(
        most if max_points is not None else None,
        enabled=bool(verbose),
        description="KOMP",
        unit=" points",
    ) as bar:
        selection.run(budget / 2, most, bar, np.flatnonzero(mask) if mask.any() else None)
    # Protected points that depend on others have no weight yet, and stay.
    kept = selection.chosen + np.setdiff1d(np.flatnonzero(mask), selection.chosen).tolist()
    weights = np.zeros((len(kept), expansion._core.weights.shape[1]))
    weights[: len(selection.chosen)] = selection.weights()
    order = np.argsort(kept)
    places = np.asarray(kept, dtype=np.int64)[order]
    chosen = _core.KernelExpansion(
        expansion.kernel.core, expansion._core.dictionary[places], weights[order]
    )
    error, gone = math.sqrt(selection.squared_error), np.empty(0, dtype=np.int64)
    if len(places) <= 2 * _MOST_AT_ONCE:
        full, outside = chosen, error
        left = math.sqrt(max(budget**2 - outside**2, 0.0))
        for attempt in range(_ATTEMPTS):
            chosen, removed, moved = _core.komp(
                full, left, mask[places].tolist(), max_points, merges
            )
            gone = places[_given(removed, len(places))]
            error = _distance(expansion._core, full, chosen, outside, float(moved))
            if error <= budget or not merges or not left or chosen.model_order == max_points:
                break
            # What was merged is not at a right angle to f - P f. Leave that much room; the last
            # time so much that the two distances together are within the budget.
            sure = max(budget - outside, 0.0)
            room = math.sqrt(max(left**2 - (error**2 - outside**2 - moved**2), 0.0))
            left = sure if attempt == _ATTEMPTS - 2 else max(sure, min(room, _LESS * left))
    removed_first = np.setdiff1d(np.arange(size), places)
    compressed = expansion._derive(chosen)
    report = CompressionReport(np.concatenate([removed_first, gone]), error, compressed.model_order)
    return compressed, report


def _distance(f: Any, projected: Any, g: Any, outside: float, moved: float) -> float:
    """Return ||f - g||, of ||f - P f|| and ||P f - g||.

    The square is the sum of these two squares and -2 <f - P f, g>, which is 0 but for the points of
    g that merging has made.
    """
    points = g.dictionary
    product = 0.0
    if len(points):
        made = ~_rows_in(points, projected.dictionary)
        rest = f(points[made]) - projected(points[made])
        product = float((g.weights[made] * rest).sum())
    return math.sqrt(max(outside**2 + moved**2 - 2 * product, 0.0))


def _rows_in(rows: Array, others: Array) -> NDArray[np.bool_]:
    known = {row.tobytes() for row in others}
    return np.array([row.tobytes() in known for row in rows], dtype=bool)


def _protected_mask(protected: ArrayLike | None, size: int) -> NDArray[np.bool_]:
    mask = np.zeros(size, dtype=bool)
    if protected is None:
        return mask
    given = np.asarray(protected)
    if given.dtype == bool and given.shape == (size,):
        return given
    integers = given.size == 0 or np.issubdtype(given.dtype, np.integer)
    if not integers or given.ndim != 1 or np.any((given < 0) | (given >= size)):
        raise ValueError(
            f"protected must be a mask of shape ({size},) or positions from 0 to {size - 1}; got "
            f"an array of type {given.dtype} and shape {given.shape}."
        )
    mask[given.astype(np.int64)] = True
    return mask

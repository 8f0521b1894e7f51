"""The functions of a compositional problem: their shapes, derivatives and curvature; pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsimon._checks import warn
from parsimon._lazy import lazy
from parsimon._stream import BLOCK, Samples, block_rows
from parsimon.kernels import Kernel

Array = NDArray[np.float64]

# Samples on which derivatives are checked, and on which the curvature is measured.
_CHECKED = 20
_MEASURED = 200
_STEP = 1e-5
_POWER_STEPS = 20
# How far a derivative may be from differences, which kinks spoil at a few places.
_TOLERANCE = 1e-3
_SPOILT = 0.2
# Of what the curvature at f = 0 allows: it may be larger elsewhere.
_CAUTION = 0.5
# Of what a mini-batch adds at f = 0, in norm, the part that compression may take.
_PARSIMONY = 0.02


def rows(
    function: Callable[..., Any] | None, of: str, shape: tuple[int, int], *arguments: Array
) -> Array:
    """Return what a function of blocks says, one row for each sample, as the core takes it."""
    assert function is not None  # noqa: S101 - the parameters were checked
    # Of copies: what a function does to its blocks stays there.
    result = function(*(argument.copy() for argument in arguments))
    try:
        given = np.asarray(result)
    except ValueError:  # rows of different lengths
        given = np.asarray("")
    if given.dtype.kind not in "fiub":
        raise ValueError(
            "The functions of a compositional problem must return arrays of real numbers."
        )
    count = len(given) if given.ndim else 1
    columns = given.size // count if count else 0
    if (count, columns) != shape:
        raise ValueError(
            f"The {of} returned {count} x {columns} numbers, where {shape[0]} x {shape[1]} were "
            f"expected."
        )
    values = np.asarray(given, dtype=np.float64).reshape(shape)
    if not np.isfinite(values).all():
        raise ValueError(f"The {of} returned numbers that are not finite.")
    return values


class Problem:
    """The functions of an estimator, for samples about which they know y."""

    def __init__(self, estimator: Any, y: Array) -> None:
        self._estimator = estimator
        self._y = y
        self._inner, self._outputs = int(estimator.n_inner), int(estimator.n_outputs)

    def inner(self, values: Array) -> Array:
        """Return h, n x m."""
        shape = (len(values), self._inner)
        return rows(self._estimator.inner, "inner function", shape, values, self._y)

    def outer(self, values: Array, g: Array) -> Array:
        """Return l, of n samples."""
        shape = (len(values), 1)
        return rows(self._estimator.outer, "outer function", shape, values, self._y, g)[:, 0]

    def inner_slopes(self, values: Array) -> Array:
        """Return h', n x m x outputs."""
        name, shape = "derivative of the inner function", (len(values), self._inner * self._outputs)
        slopes = rows(self._estimator.inner_derivative, name, shape, values, self._y)
        return slopes.reshape(len(values), self._inner, self._outputs)

    def by_g(self, values: Array, g: Array) -> Array:
        """Return dl/dg, n x m."""
        name, shape = "gradient of the outer function", (len(values), self._inner)
        return rows(self._estimator.outer_gradient, name, shape, values, self._y, g)

    def direct(self, values: Array, g: Array) -> Array:
        """Return dl/df, n x outputs."""
        if self._estimator.direct_gradient is None:
            return np.zeros((len(values), self._outputs))
        name = "derivative of the outer function by the prediction"
        shape = (len(values), self._outputs)
        return rows(self._estimator.direct_gradient, name, shape, values, self._y, g)

    def gradient(self, values: Array) -> Array:
        """Return the derivatives of the empirical objective by the values, n times."""
        g = self.inner(values).mean(axis=0)[None]
        through = np.einsum(
            "imk,m->ik", self.inner_slopes(values), self.by_g(values, g).mean(axis=0)
        )
        return np.asarray(self.direct(values, g) + through)


class Pairs(Samples):
    """Samples theta with as many xi: mini-batches have one half of each."""

    def __init__(self, theta: Samples, xi: Samples) -> None:
        self._theta, self._xi = theta, xi
        columns = zip((theta.X, theta.targets), (xi.X, xi.targets), strict=True)
        super().__init__(*(np.concatenate(both) for both in columns))

    def blocks(
        self, batch_size: int, random: np.random.RandomState | None = None, at_once: int = BLOCK
    ) -> Iterable[tuple[Any, ...]]:
        """Return the columns in blocks of whole mini-batches; pairs may change their order."""
        count, half = len(self._theta), batch_size // 2
        order = np.arange(count) if random is None else random.permutation(count)
        starts = range(0, count, half)
        parts = [order[start : start + half] for start in starts]
        joined = np.concatenate([np.concatenate([part, part + count]) for part in parts])
        size = max(1, min(at_once, block_rows(self.X)) // batch_size) * batch_size
        for start in range(0, len(joined), size):
            chosen = joined[start : start + size]
            yield self.X[chosen], self.targets[chosen], self.weight


class AtZero:
    """The objective about f = 0, on a part of the samples."""

    def __init__(self, estimator: Any, samples: Samples, kernel: Kernel) -> None:
        chosen = np.random.RandomState(0).permutation(len(samples))[:_MEASURED]
        self._problem = Problem(estimator, samples.targets[chosen])
        self._kernel, self._X = kernel, samples.X[chosen]
        self._batch = min(int(estimator.batch_size), len(samples))
        self._zero = np.zeros((len(chosen), int(estimator.n_outputs)))

    @lazy
    def _gram(self) -> Array:
        return np.asarray(self._kernel(self._X))

    @lazy
    def rate(self) -> float:
        """Half of the largest step with which a mini-batch cannot overshoot."""
        count, gram = len(self._X), self._gram
        at_zero = self._problem.gradient(self._zero)
        top, direction = 0.0, np.random.RandomState(0).randn(*self._zero.shape)
        for _ in range(_POWER_STEPS):
            direction /= np.abs(direction).max() or 1.0
            change = (self._problem.gradient(self._zero + _STEP * direction) - at_zero) / _STEP
            image = gram @ change / count
            top = float(np.linalg.norm(image) / np.linalg.norm(direction))
            if not 0 < top < np.inf:
                return _CAUTION
            direction = image
        largest = float(np.linalg.eigvalsh(gram)[-1]) / count
        each = max(1, self._batch // 2)
        noisy = (float(gram.diagonal().max()) + (each - 1) * largest) / (each * largest)
        return _CAUTION / (top * noisy)

    @lazy
    def size(self) -> float:
        """Return what compression may take of a step of 1."""
        gradient = self._problem.gradient(self._zero)
        typical = float(np.sqrt((gradient**2).sum(axis=1).mean())) or 1.0
        return _PARSIMONY * typical * float(np.sqrt(self._gram.diagonal().max() / self._batch))


def check_derivatives(estimator: Any, samples: Samples) -> None:
    """Refuse derivatives that differ from differences of the functions, where these are given."""
    y = samples.targets[:_CHECKED]
    count, outputs = len(y), int(estimator.n_outputs)
    values = np.random.RandomState(0).randn(count, outputs)
    problem = Problem(estimator, y)
    g = problem.inner(values).mean(axis=0)[None]
    slopes = problem.inner_slopes(values)
    for k, step in enumerate(_STEP * np.eye(outputs)):
        change = problem.inner(values + step) - problem.inner(values - step)
        _compare("inner_derivative", "inner", slopes[:, :, k], change)
    if estimator.outer is None:
        unchecked = "outer_gradient was"
        if estimator.direct_gradient is not None:
            unchecked = "outer_gradient and direct_gradient were"
        warn(f"{unchecked} not checked: that needs outer, the function l itself; give it.")
        return
    by_g, direct = problem.by_g(values, g), problem.direct(values, g)
    for m, step in enumerate(_STEP * np.eye(g.shape[1])):
        change = problem.outer(values, g + step) - problem.outer(values, g - step)
        _compare("outer_gradient", "outer", by_g[:, m], change)
    for k, step in enumerate(_STEP * np.eye(outputs)):
        change = problem.outer(values + step, g) - problem.outer(values - step, g)
        _compare("direct_gradient", "outer", direct[:, k], change)


def _compare(name: str, function: str, given: Array, difference: Array) -> None:
    found = difference / (2 * _STEP)
    known = np.isfinite(found)
    scale = max(1e-8, float(np.abs(found[known]).max(initial=0.0)))
    wrong = known & (np.abs(given - found) > _TOLERANCE * scale)
    if wrong.sum() > _SPOILT * known.sum():
        i = tuple(np.argwhere(wrong)[0])
        raise ValueError(
            f"{name} is not the derivative of {function}: it returned {given[i]:.6g} where "
            f"differences give {found[i]:.6g}, and is wrong at {wrong.sum()} of {known.sum()} "
            f"places. Correct it, or give check=False."
        )

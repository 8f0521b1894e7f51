"""What compression did to a model, and what is known about it."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from parsimon._formula import Classes, Density, Head, OneClass, Votes
from parsimon.expansion import KernelExpansion

from ._sources import Large

Array = NDArray[np.float64]

CONFIDENCE = 0.95
_TIMED, _REPEATS = 64, 5


@dataclass(frozen=True)
class ModelReport:
    """What :func:`parsimon.compress` did.

    Two kinds of statements are to be told apart. `certified_bound` holds for every sample there can
    be, and is far from what happens. What was seen on X, and what follows from it for further
    samples with a confidence of 95 %, holds for samples that are drawn as X was.

    Attributes
    ----------
    points_before, points_after : int
        Points of the two models.
    certified_bound : float
        Distance of the two functions in Hilbert norm: all outputs together change by at most
        ``certified_bound * sqrt(kernel(x, x))`` at any x whatsoever.
    deviation_bound : float or None
        Of a Gaussian process: variances change by at most this, relative to kernel(x, x), at any x;
        infinity if there were too many samples to compute it.
    weights : {"projected", "solved on X"}
        Whether the weights are those of the nearest function on the points, or those nearest to
        the large model's outputs on a part of X.
    samples : int
        Samples of X that the following were measured on, a third of them; 0 without X. No weights
        are solved on these. Where they had a say in how many points there are (`tolerance`), the
        confidence counts how often they were asked.
    largest_change : float or None
        The largest change of an output (a density's of the density) on these samples.
    exceeding : float or None
        At most this share of further samples changes by more, with a confidence of 95 %.
    labels_changed : float or None
        The share of these samples whose label is another one.
    labels_changed_at_most : float or None
        The same for further samples, with a confidence of 95 %.
    score_before, score_after : float or None
        Accuracy, or R^2, on these samples, if y was given.
    bytes_before, bytes_after : int
        Size of points and weights in double precision.
    microseconds_before, microseconds_after : float
        Time to evaluate the function at a sample, among many.
    """

    points_before: int
    points_after: int
    certified_bound: float
    deviation_bound: float | None
    weights: str
    samples: int
    largest_change: float | None
    exceeding: float | None
    labels_changed: float | None
    labels_changed_at_most: float | None
    score_before: float | None
    score_after: float | None
    bytes_before: int
    bytes_after: int
    microseconds_before: float
    microseconds_after: float

    def __str__(self) -> str:
        return "\n".join((self._size(), self._certified(), self._seen()))

    __repr__ = __str__

    def _size(self) -> str:
        return (
            f"{self.points_before} -> {self.points_after} points (weights {self.weights}), "
            f"{self.bytes_before} -> {self.bytes_after} bytes, {self.microseconds_before:.3g} -> "
            f"{self.microseconds_after:.3g} microseconds per sample"
        )

    def _certified(self) -> str:
        known = [f"outputs move by <= {self.certified_bound:.3g} * sqrt(k(x, x))"]
        if self.deviation_bound is not None:
            known.append(f"variances by <= {self.deviation_bound:.3g} * k(x, x)")
        return f"certified, at every x: {', '.join(known)}"

    def _seen(self) -> str:
        if not self.samples:
            return "seen on no samples: give X, and what changes there is measured"
        largest, rest = f"{self.largest_change:.3g}", f"{self.exceeding:.2%}"
        seen = [f"outputs change by at most {largest} (at most {rest} of further ones by more)"]
        if self.labels_changed is not None:
            seen.append(
                f"{self.labels_changed:.2%} of the labels change (at most "
                f"{self.labels_changed_at_most:.2%} of further ones)"
            )
        if self.score_before is not None:
            seen.append(f"score {self.score_before:.4f} -> {self.score_after:.4f}")
        where = f"seen on {self.samples} samples (and, {CONFIDENCE:.0%} sure, on further ones)"
        return f"{where}: {', '.join(seen)}"


@dataclass(frozen=True)
class Seen:
    """The outputs of the large function and of a small one, at the same samples."""

    before: Array
    after: Array
    head: Head
    X: Array

    def change(self) -> Array:
        """Return the largest change of an output, for each sample."""
        if isinstance(self.head, Density):
            with np.errstate(over="ignore"):
                both = [np.exp(self.head.log_density(z, self.X)) for z in (self.before, self.after)]
            return np.asarray(np.abs(both[1] - both[0]))
        return np.asarray(np.abs(self.after - self.before).max(axis=1, initial=0.0))

    def relabelled(self) -> NDArray[np.bool_] | None:
        """Return which labels are others, if there are labels."""
        if not isinstance(self.head, (Classes, Votes, OneClass)):
            return None
        return np.asarray(self.head.labels(self.before) != self.head.labels(self.after))


def most_likely_share(count: int, samples: int, looks: int) -> float:
    """Return the largest share that so many of the samples are still likely to come from.

    With a confidence that holds for all of several functions that were looked at.
    """
    if count >= samples:
        return 1.0
    return float(beta.ppf(1 - (1 - CONFIDENCE) / looks, count + 1, samples - count))


def microseconds(expansion: KernelExpansion, X: Array) -> float:
    """Return how long the function takes at one of many samples."""
    X = np.resize(X, (_TIMED, X.shape[1])) if len(X) else np.zeros((_TIMED, X.shape[1]))
    times = []
    for _ in range(_REPEATS):
        start = perf_counter()
        expansion(X)
        times.append(perf_counter() - start)
    return min(times) / _TIMED * 1e6


def size_in_bytes(expansion: KernelExpansion) -> int:
    """Return the size of points and weights in double precision."""
    core = expansion._core
    return int(8 * (core.dictionary.size + core.weights.size))


def score(large: Large, values: Array, y: Array) -> float | None:
    """Return accuracy or R^2 of these outputs; None for what has neither."""
    head = large.head
    if isinstance(head, (Classes, Votes, OneClass)):
        return float((head.labels(values) == y).mean())
    if isinstance(head, Density):
        return None
    target = np.asarray(y, dtype=float).reshape(len(y), -1)
    spread = ((target - target.mean(axis=0)) ** 2).sum(axis=0)
    left = ((target - values) ** 2).sum(axis=0)
    return float(np.mean(1 - left / np.where(spread > 0, spread, 1)))

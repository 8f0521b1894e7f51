"""The first look at the parts of the data: what they are, and a few samples of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import _check_sample_weight

from parsimon._labels import Labels, check_types

Array = NDArray[np.float64]


@contextmanager
def named(number: int) -> Iterator[None]:
    """Have errors say which partition they are about."""
    try:
        yield
    except (ValueError, TypeError) as error:
        text = str(error)
        if text.startswith("Partition "):
            raise
        raise type(error)(f"Partition {number}: {text}") from error


@dataclass(frozen=True)
class Summary:
    """What is known of some parts together."""

    numbers: tuple[int, ...]  # those with samples
    samples: tuple[int, ...]  # of each of these
    size: int = 0  # bytes of the samples
    features: int = 0
    names: Any = None
    classes: tuple[NDArray[Any], ...] = ()  # of each part
    counts: tuple[Array, ...] = ()  # of samples of each class
    moments: tuple[Array, Array] | None = None  # mean and sum of squared differences of targets
    single: bool = True  # whether targets have one dimension
    announced: NDArray[Any] | None = None  # labels of which there may be samples later

    @property
    def total(self) -> int:
        """How many samples there are."""
        return sum(self.samples)

    def labels(self) -> tuple[NDArray[Any], Array]:
        """Return all labels, and how many samples each has."""
        union = self.classes[0]
        announced = () if self.announced is None else (self.announced,)
        for classes in (*self.classes[1:], *announced):
            check_types(union, classes)
            union = np.union1d(union, classes)
        counts = np.zeros(len(union))
        for classes, count in zip(self.classes, self.counts, strict=True):
            counts[np.searchsorted(union, classes)] += count
        return union, counts

    def lacking(self, union: NDArray[Any]) -> dict[int, list[Any]]:
        """Return the labels that are missing in some parts, by their numbers."""
        missing = {
            number: np.setdiff1d(union, classes).tolist()
            for number, classes in zip(self.numbers, self.classes, strict=True)
        }
        return {number: labels for number, labels in missing.items() if labels}

    def scale(self) -> tuple[Array, Array]:
        """Return mean and standard deviation of the targets, 1 where they are all the same."""
        if self.moments is None:  # pragma: no cover - of regressors alone
            raise ValueError("Only targets have a scale.")
        mean, squares = self.moments
        deviation = np.sqrt(squares / self.total)
        return mean, np.where(deviation > 0, deviation, 1.0)

    def __add__(self, other: Summary) -> Summary:
        if not other.numbers:
            return self
        if not self.numbers:
            return other
        self._check_alike(other)
        moments = None
        if self.moments is not None and other.moments is not None:
            share = other.total / (self.total + other.total)
            apart = other.moments[0] - self.moments[0]
            moments = (
                self.moments[0] + share * apart,
                self.moments[1] + other.moments[1] + apart**2 * share * self.total,
            )
        return replace(
            self,
            numbers=self.numbers + other.numbers,
            samples=self.samples + other.samples,
            size=self.size + other.size,
            classes=self.classes + other.classes,
            counts=self.counts + other.counts,
            moments=moments,
        )

    def _check_alike(self, other: Summary) -> None:
        mine, its = self.numbers[0], other.numbers[0]
        if self.features != other.features:
            raise ValueError(
                f"Partition {its}: its samples have {other.features} features, but those of "
                f"partition {mine} have {self.features}."
            )
        if (self.names is None) != (other.names is None) or (
            self.names is not None and list(self.names) != list(other.names)
        ):
            raise ValueError(
                f"Partition {its}: the names of its features are not those of partition {mine}."
            )
        both = self.moments, other.moments
        one, two = (None if moments is None else len(moments[0]) for moments in both)
        if one != two or self.single != other.single:
            raise ValueError(
                f"Partition {its}: its samples do not have as many targets as those of partition "
                f"{mine}."
            )


@dataclass(frozen=True)
class Look:
    """A step: look at a part."""

    estimator: Any
    name: str = field(default="look", init=False)

    def __call__(self, number: int, X: Any, y: Any, weight: Any = None) -> Summary:
        with named(number):
            return self._of(number, X, y, weight)

    def _of(self, number: int, X: Any, y: Any, weight: Any) -> Summary:
        if not _rows(X):
            return Summary((), ())
        estimator = clone(self.estimator)
        if is_classifier(estimator):
            X, y = estimator._validate(X, y, reset=True)
            Labels.of_stream(None, None, y)
            classes, counts = np.unique(y, return_counts=True)
            known: dict[str, Any] = {"classes": (classes,), "counts": (counts.astype(float),)}
        else:
            X, y = estimator._validate_both(X, y, reset=True)
            rows = y.reshape(len(y), -1)
            mean = rows.mean(axis=0)
            known = {"moments": (mean, ((rows - mean) ** 2).sum(axis=0)), "single": y.ndim == 1}
        if weight is not None:
            _check_sample_weight(weight, X, ensure_non_negative=True)
        size = X.data.nbytes if sparse.issparse(X) else X.nbytes
        return Summary(
            (number,),
            (X.shape[0],),
            int(size),
            X.shape[1],
            estimator.__dict__.get("feature_names_in_"),
            **known,
        )


@dataclass(frozen=True)
class Draw:
    """A step: draw samples of a part at random, so many of each."""

    estimator: Any
    counts: dict[int, int]
    seed: int
    name: str = field(default="draw", init=False)

    def __call__(self, number: int, X: Any, y: Any, weight: Any = None) -> Drawn:
        if not _rows(X):
            return Drawn(())
        estimator = clone(self.estimator)
        with named(number):
            if is_classifier(estimator):
                X, y = estimator._validate(X, y, reset=True)
            else:
                X, y = estimator._validate_both(X, y, reset=True)
        rows = draw(X.shape[0], self.counts[number], self.seed, number)
        weights = None if weight is None else np.asarray(weight, dtype=float)[rows]
        return Drawn(((X[rows], y[rows], weights),))


@dataclass(frozen=True)
class Drawn:
    """Samples of some parts."""

    parts: tuple[tuple[Any, Any, Any], ...]

    def __add__(self, other: Drawn) -> Drawn:
        return Drawn(self.parts + other.parts)

    def joined(self) -> tuple[Any, Any, Any]:
        """Return all samples, their targets, and their weights or None."""
        X, y, weight = zip(*self.parts, strict=True)
        stacked = (
            sparse.csr_matrix(sparse.vstack(X)) if sparse.issparse(X[0]) else np.concatenate(X)
        )
        weights = None if weight[0] is None else np.concatenate(weight)
        return stacked, np.concatenate(y), weights


def draw(size: int, count: int, seed: int, number: int) -> NDArray[np.int64]:
    """Return rows of a part, the same whoever draws them."""
    random = np.random.RandomState([seed, number])
    return np.asarray(np.sort(random.permutation(size)[:count]), dtype=np.int64)


def shares(numbers: Sequence[int], sizes: Sequence[int], most: int) -> dict[int, int]:
    """Return how many samples of each part make so many in all, each at least one."""
    scale = min(1.0, most / sum(sizes))
    return {
        number: max(1, round(scale * size)) for number, size in zip(numbers, sizes, strict=True)
    }


def _rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)

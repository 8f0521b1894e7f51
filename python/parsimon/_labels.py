"""The labels of a classifier: the core knows them by their numbers."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets, unique_labels

Array = NDArray[np.float64]


class Labels:
    """All labels there are, in order; `encode` and `decode` translate them."""

    __slots__ = ("classes",)

    def __init__(self, classes: NDArray[Any]) -> None:
        self.classes = classes

    @classmethod
    def found_in(cls, y: Any) -> Labels:
        """Return the different labels of these samples."""
        classes = _distinct(y, "y")
        if len(classes) < 2:
            raise ValueError(
                f"A classifier needs samples of at least 2 classes; y has only one class, "
                f"{classes.tolist()[0]!r}."
            )
        return cls(classes)

    @classmethod
    def of_stream(cls, known: NDArray[Any] | None, classes: ArrayLike | None, y: Any) -> Labels:
        """Return the labels that were known, those that are announced, and those of a block."""
        found = _distinct(y, "y")
        if classes is not None:
            found = _union(_distinct(classes, "classes"), found)
        if known is None:
            return cls(found)
        if not len(_unseen(found, known)):
            return cls(known)
        return cls(_union(known, found))

    def places(self, earlier: NDArray[Any]) -> list[int]:
        """Return the numbers that labels have now which were 0, 1, ... before."""
        return [int(number) for number in np.searchsorted(self.classes, earlier)]

    def encode(self, y: Any) -> Array:
        """Return the number of each label, as the core's targets."""
        return np.asarray(np.searchsorted(self.classes, y)[:, None], dtype=np.float64)

    def encode_known(self, y: Any) -> Array | None:
        """Return the same for integers or texts that are all known, and None for anything else."""
        kinds = y.dtype.kind, self.classes.dtype.kind
        if kinds in _TEXT_OBJECTS:
            return self._encode_objects(y)
        if kinds not in _QUICK:
            return None
        numbers = self.classes.searchsorted(y)
        if (self.classes.take(numbers, mode="clip") != y).any():
            return None
        return np.asarray(numbers[:, None], dtype=np.float64)

    def _encode_objects(self, y: Any) -> Array | None:
        places = {label: place for place, label in enumerate(self.classes.tolist())}
        try:
            numbers = [places[label] for label in y.tolist()]
        except (KeyError, TypeError):  # something new, or what cannot be a label
            return None
        return np.array(numbers, dtype=np.float64)[:, None]

    def scores(self, values: Array) -> Array:
        """Return the core's outputs as a decision function: for two classes, one number.

        So it is while only one has been seen.
        """
        if len(self.classes) > 2:
            return values
        return values[:, 0] if values.shape[1] == 1 else values[:, 1] - values[:, 0]

    def decode(self, scores: Array) -> NDArray[Any]:
        """Return the label that the decision function chooses."""
        if len(self.classes) == 1:
            return np.repeat(self.classes, len(scores))
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes[chosen])

    def fitted(self) -> dict[str, Any]:
        """Return what an estimator keeps."""
        return {"classes_": self.classes}

    @staticmethod
    def stored(outputs: int) -> dict[str, Callable[[Any], bool]]:
        """Return the same for an estimator in a file, each with what makes it valid."""
        counts = (max(outputs, 2), 1 if outputs <= 2 else outputs)
        return {
            "classes_": lambda value: (
                value.ndim == 1 and len(value) in counts and np.array_equal(value, np.unique(value))
            )
        }


# Types of labels, and of those that are known, that compare without further ado.
_QUICK = {("U", "U"), ("b", "b"), *((a, b) for a in "iu" for b in "iu")}
# Texts as objects, as in columns of pandas and of CSV files.
_TEXT_OBJECTS = {("O", "O"), ("O", "U")}


def _unseen(labels: NDArray[Any], known: NDArray[Any]) -> NDArray[Any]:
    check_types(known, labels)
    return np.asarray(np.setdiff1d(labels, known))


def _union(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    check_types(first, second)
    return np.asarray(np.union1d(first, second))


def check_types(known: NDArray[Any], others: NDArray[Any]) -> None:
    """Refuse numbers after texts, and the other way round."""
    texts = [labels.dtype.kind in "OUT" for labels in (known, others)]
    if texts[0] != texts[1]:
        raise ValueError(
            f"Labels must be of one type, all numbers or all text: there were "
            f"{known.tolist()}, and now there are {others.tolist()}."
        )


def _distinct(labels: Any, name: str) -> NDArray[Any]:
    labels = list(labels) if isinstance(labels, Set) else labels
    given = np.asarray(labels)
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        raise ValueError(f"{name} must hold labels; it contains NaN or infinity.")
    if given.dtype.kind == "S":  # which scikit-learn 1.6 accepts with a warning
        raise ValueError(f"{name} must hold labels of one type, all numbers or all text, no bytes.")
    try:
        if name == "y":
            check_classification_targets(given)
        return np.asarray(unique_labels(labels))
    except TypeError as error:
        raise ValueError(
            f"{name} must hold labels of one type, all numbers or all text: {error}"
        ) from error

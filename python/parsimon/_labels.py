"""The labels of a classifier: the core knows them by their numbers."""

from __future__ import annotations

from collections.abc import Callable
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
                f"{classes[0]!r}."
            )
        return cls(classes)

    @classmethod
    def of_stream(cls, classes: ArrayLike | None, known: NDArray[Any] | None) -> Labels:
        """Return the labels of a stream; its first block must say them, and they cannot change."""
        if classes is None:
            if known is None:
                raise ValueError(
                    "The first call of partial_fit needs classes, all labels there are."
                )
            return cls(known)
        given = _distinct(classes, "classes")
        if known is not None and not np.array_equal(known, given):
            raise ValueError(
                f"classes is {classes!r}, but the first call gave {known!r}; it cannot change "
                f"along a stream."
            )
        if len(given) < 2:
            raise ValueError(f"classes must hold at least 2 labels; got {classes!r}.")
        return cls(given)

    def encode(self, y: Any) -> Array:
        """Return the number of each label, as the core's targets."""
        unseen = np.setdiff1d(_distinct(y, "y"), self.classes)
        if len(unseen):
            raise ValueError(
                f"y has the labels {unseen.tolist()}, which are not among the classes "
                f"{self.classes.tolist()} of the first call."
            )
        return np.asarray(np.searchsorted(self.classes, y)[:, None], dtype=np.float64)

    def encode_integers(self, y: Any) -> Array | None:
        """Return the same for integers that are all known, and None for anything else."""
        if y.dtype.kind not in "iu" or self.classes.dtype.kind not in "iu":
            return None
        numbers = self.classes.searchsorted(y)
        if (self.classes.take(numbers, mode="clip") != y).any():
            return None
        return np.asarray(numbers[:, None], dtype=np.float64)

    def scores(self, values: Array) -> Array:
        """Return the core's outputs as a decision function: for two classes, one number."""
        if len(self.classes) > 2:
            return values
        return values[:, 0] if values.shape[1] == 1 else values[:, 1] - values[:, 0]

    def decode(self, scores: Array) -> NDArray[Any]:
        """Return the label that the decision function chooses."""
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes[chosen])

    def fitted(self) -> dict[str, Any]:
        """Return what an estimator keeps."""
        return {"classes_": self.classes}

    @staticmethod
    def stored(outputs: int) -> dict[str, Callable[[Any], bool]]:
        """Return the same for an estimator in a file, each with what makes it valid."""
        count = max(outputs, 2)
        return {
            "classes_": lambda value: (
                value.shape == (count,) and np.array_equal(value, np.unique(value))
            )
        }


def _distinct(labels: ArrayLike, name: str) -> NDArray[Any]:
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

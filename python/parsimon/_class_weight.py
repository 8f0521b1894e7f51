"""How much samples of each class count, if not all the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._checks import is_number

Array = NDArray[np.float64]

NOTHING = np.empty(0)
# In a stream, each class counts as having had so many samples before, so that the first sample of a
# late class does not outweigh all others.
_PRIOR = 5.0


def check_class_weight(name: str, value: Any) -> None:
    """Refuse what does not say how much classes count."""
    if value is None or (isinstance(value, str) and value == "balanced"):
        return
    if not isinstance(value, Mapping):
        raise ValueError(
            f"{name} must be a dictionary of labels and weights, 'balanced' or None; got {value!r}."
        )
    for label, weight in value.items():
        if not is_number(weight) or weight < 0:
            raise ValueError(
                f"{name} must have finite weights that are not negative; that of {label!r} is "
                f"{weight!r}."
            )


def of_stream(given: Any, classes: NDArray[Any], targets: Array, counts: Array) -> tuple[Any, Any]:
    """Return a weight for each sample of a block, and how many of each class there were by now.

    targets: class numbers, a column. Nothing if all count the same.
    """
    if given is None:
        return NOTHING, NOTHING
    numbers = targets[:, 0].astype(int)
    if not isinstance(given, str):
        return _of_labels(given, classes)[numbers], NOTHING
    seen = np.bincount(numbers, minlength=len(classes)).astype(np.float64)
    if len(counts):
        seen += counts
    weights = (seen.sum() / len(seen) + _PRIOR) / (seen + _PRIOR)
    return weights[numbers], seen


def of_all(given: Any, classes: NDArray[Any], targets: Array) -> tuple[Any, Any]:
    """Return the same for all samples there are: n / (n_classes * n_of_class), if balanced."""
    if not isinstance(given, str):
        unknown = [label for label in given or () if label not in classes]
        if unknown:
            raise ValueError(
                f"class_weight has the labels {unknown}, which y does not have: it has "
                f"{classes.tolist()}."
            )
        return of_stream(given, classes, targets, NOTHING)
    numbers = targets[:, 0].astype(int)
    counts = np.bincount(numbers, minlength=len(classes)).astype(np.float64)
    return (len(numbers) / (len(counts) * counts))[numbers], counts


def times(weight: Array, class_weight: Array) -> Array:
    """Return the product of two kinds of weights, either of which may be nothing."""
    if not len(class_weight):
        return weight
    return weight * class_weight if len(weight) else class_weight


def _of_labels(given: Mapping[Any, Any], classes: NDArray[Any]) -> Array:
    return np.array([float(given.get(label, 1.0)) for label in classes.tolist()])

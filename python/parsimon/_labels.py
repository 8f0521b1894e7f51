"""Labels of classifiers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets, unique_labels


def distinct_labels(labels: ArrayLike, name: str) -> NDArray[Any]:
    """Return the different labels in order, or say why these are not labels."""
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

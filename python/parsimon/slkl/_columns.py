"""Which training points may carry the function of SLKL."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.cluster import kmeans_plusplus

from parsimon.kernels import Kernel

Array = NDArray[np.float64]

WAYS = ("random", "kmeans++", "leverage")
# Points from which leverages are estimated.
_LANDMARKS = 500
# Samples whose features are computed at a time.
_BLOCK = 1024


def check_columns(name: str, value: Any) -> None:
    """Refuse what does not say which training points to take."""
    if callable(value) or (isinstance(value, str) and value in WAYS):
        return
    if not isinstance(value, str) and value is not None and np.ndim(value) == 1:
        return
    raise ValueError(
        f"{name} must be one of {', '.join(map(repr, WAYS))}, indices of training samples, or a "
        f"function of them that returns indices; got {value!r}."
    )


def given_columns(columns: Any, X: Array) -> NDArray[np.int64]:
    """Return the indices that were given, or those that a function returns for the samples."""
    count = X.shape[0]
    indices = np.asarray(columns(X) if callable(columns) else columns)
    if indices.dtype == bool and indices.shape == (count,):
        indices = np.flatnonzero(indices)
    if (
        indices.ndim != 1
        or indices.dtype.kind not in "iu"
        or not len(indices)
        or indices.min() < 0
        or indices.max() >= count
        or len(np.unique(indices)) < len(indices)
    ):
        raise ValueError(
            f"columns must be different indices of the {count} training samples, from 0 on; got "
            f"{indices!r}."
        )
    return indices.astype(np.int64)


def drawn_columns(
    way: str, X: Array, kernel: Kernel, count: int, random: np.random.RandomState
) -> NDArray[np.int64]:
    """Draw so many different training samples."""
    if way == "kmeans++":
        chosen = np.unique(kmeans_plusplus(X, count, random_state=random)[1])
    elif way == "leverage":
        shares = _leverages(X, kernel, count, random)
        likely = min(count, int((shares > 0).sum()))
        chosen = random.choice(len(X), likely, replace=False, p=shares)
    else:
        return np.asarray(random.choice(len(X), count, replace=False), dtype=np.int64)
    # Samples that are equal are no choice: what is missing is drawn from the others.
    others = np.setdiff1d(np.arange(len(X)), chosen)
    more = random.choice(others, count - len(chosen), replace=False)
    return np.concatenate([chosen, more]).astype(np.int64)


def _leverages(X: Array, kernel: Kernel, count: int, random: np.random.RandomState) -> Array:
    """Return ridge leverage scores, estimated on some points, as shares of their sum.

    The ridge is the one with which about half as many dimensions count as columns are drawn.
    """
    some = X[random.choice(len(X), min(len(X), _LANDMARKS), replace=False)]
    values, vectors = linalg.eigh(kernel(some))
    used = values > 1e-10 * values[-1]
    basis = vectors[:, used] / np.sqrt(values[used])
    # In blocks, so that Ctrl-C is heard.
    blocks = [slice(start, start + _BLOCK) for start in range(0, len(X), _BLOCK)]
    features, products = np.empty((len(X), basis.shape[1])), np.zeros(2 * basis.shape[1:])
    for rows in blocks:
        features[rows] = kernel(X[rows], some) @ basis
        products += features[rows].T @ features[rows]
    spectrum, turn = linalg.eigh(products)
    spectrum = np.maximum(spectrum, 0.0)
    low, high = 1e-12 * spectrum[-1], spectrum[-1]
    for _ in range(60):
        ridge = np.sqrt(low * high)
        counts = (spectrum / (spectrum + ridge)).sum() > count / 2
        low, high = (ridge, high) if counts else (low, ridge)
    each = [((features[rows] @ turn) ** 2 / (spectrum + high)).sum(axis=1) for rows in blocks]
    scores = np.concatenate(each)
    return np.asarray(scores / scores.sum())

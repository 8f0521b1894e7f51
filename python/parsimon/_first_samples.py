"""The first samples of a stream: kept until there are enough to choose hyper-parameters from.

A stream may come one sample at a time. As long as there are fewer than `ENOUGH`, they are kept, and
a model begins anew with all of them whenever there are half as many again: it predicts meanwhile,
and its kernel width and scale are revised. Once there are enough, it begins for the last time, just
as if they had come in one block, and none are kept any more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

ENOUGH = 100
_GROWTH = 1.5

# What an estimator keeps: its columns, and with how many samples its model began last.
Kept = tuple[Any, ...]


@dataclass(frozen=True)
class Start:
    """The samples to learn from, whether a new model begins with them, and what is kept then."""

    columns: tuple[Any, ...]
    begins: bool
    kept: Kept = ()

    @classmethod
    def of(cls, estimator: Any, *columns: Any, anew: bool = False) -> Start:
        """Return how learning from one more block starts; `anew`: its model is of no more use."""
        earlier: Kept = estimator.__dict__.get("_first_", ())
        if "_model" not in estimator.__dict__:
            keeps = columns[0].shape[0] < ENOUGH and _leaves_something_open(estimator)
            return cls(columns, True, (*columns, columns[0].shape[0]) if keeps else ())
        if not earlier:
            return cls(columns, False)
        *before, begun = earlier
        joined = tuple(map(_joined, before, columns, [(before[0], columns[0])] * len(columns)))
        count = joined[0].shape[0]
        if anew or count >= min(_GROWTH * begun, ENOUGH):
            return cls(joined, True, (*joined, count) if count < ENOUGH else ())
        return cls(columns, False, (*joined, begun))


def is_kept(value: Any, features: int, samples: int) -> bool:
    """Tell whether this, from a file, can be what an estimator keeps of so many samples."""
    if not isinstance(value, tuple) or len(value) < 2:
        return False
    X, *others, begun = value
    if not (sparse.issparse(X) or isinstance(X, np.ndarray)) or X.ndim != 2:
        return False
    count = X.shape[0]
    numbers = X.data if sparse.issparse(X) else X
    return (
        X.shape[1] == features
        and 0 < count < ENOUGH
        and count == samples
        and type(begun) is int
        and 0 < begun <= count
        and numbers.dtype.kind == "f"
        and bool(np.isfinite(numbers).all())
        and all(isinstance(other, np.ndarray) and len(other) in (0, count) for other in others)
    )


def _leaves_something_open(estimator: Any) -> bool:
    """Tell whether the samples decide anything that was not given."""
    given: Callable[[str], Any] = lambda name: getattr(estimator, name, None)  # noqa: E731
    open_words = [name for name in ("learning_rate", "tracking_rate") if given(name) == "auto"]
    if given("parsimony") == "auto" and given("budget") is None:
        open_words.append("parsimony")
    if given("regularization") == "auto" and given("solver") == "newton":
        open_words.append("regularization")
    has_width = isinstance(given("kernel"), str) and isinstance(given("gamma"), str)
    return bool(open_words) or has_width or given("normalize_y") is True


def _joined(before: Any, column: Any, samples: tuple[Any, Any]) -> Any:
    if sparse.issparse(before) or sparse.issparse(column):
        return sparse.csr_matrix(sparse.vstack([before, column]))
    if len(before) == len(column) == 0:
        return before
    # Samples without weights have the weight 1.
    filled = [
        part if len(part) else np.ones(X.shape[0])
        for part, X in zip((before, column), samples, strict=True)
    ]
    return np.concatenate(filled)

"""What Dask has, as parts to learn from; and predictions as what Dask has."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from ._installed import Delayed, Future, delayed, is_dask_collection

# Rows of a part of what is in the memory of the one who asks.
_ROWS = 10_000


@dataclass(frozen=True)
class Blocks:
    """Parts of something: delayed objects or futures, and how many rows and bytes if known."""

    parts: list[Any]
    rows: list[int | None]
    size: float = math.nan


def is_lazy(X: Any) -> bool:
    """Tell whether this is a collection of Dask, or a list of delayed objects or futures."""
    return is_dask_collection(X) or _is_list(X) or isinstance(X, Future)


def blocks_of(values: Any, name: str) -> Blocks:
    """Return the parts that something has, or is cut into."""
    if _is_list(values):
        return Blocks(list(values), [None] * len(values))
    if isinstance(values, (Delayed, Future)):
        return Blocks([values], [None])
    if not is_dask_collection(values):
        return _cut(values)
    if hasattr(values, "chunks"):  # an array
        if values.ndim > 1 and values.numblocks[1] > 1:
            values = values.rechunk({1: -1})
        parts = list(values.to_delayed().ravel())
        rows = [None if math.isnan(rows) else int(rows) for rows in values.chunks[0]]
        return Blocks(parts, rows, float(values.nbytes))
    if hasattr(values, "to_delayed") and hasattr(values, "map_partitions"):
        parts = list(values.to_delayed())
        return Blocks(parts, [None] * len(parts))
    raise TypeError(
        f"{name} must be a Dask array or dataframe, or a list of delayed objects or futures; got "
        f"{type(values).__name__}."
    )


def parts_of(X: Any, y: Any, weight: Any) -> tuple[list[tuple[Any, Any, Any]], float]:
    """Return parts of samples with their targets and weights, and their bytes if known."""
    samples = blocks_of(X, "X")
    others = [_beside(samples, y, "y"), _beside(samples, weight, "sample_weight")]
    return list(zip(samples.parts, *others, strict=True)), samples.size


def _beside(samples: Blocks, values: Any, name: str) -> list[Any]:
    """Return what belongs to each part of the samples; what is in memory is cut as they are."""
    if values is None:
        return [None] * len(samples.parts)
    rows = [count for count in samples.rows if count is not None]
    if is_lazy(values) or len(rows) < len(samples.rows):
        found = blocks_of(values, name)
    else:
        values = values if hasattr(values, "shape") else np.asarray(values)
        if values.shape[:1] != (sum(rows),):
            raise ValueError(
                f"X has {sum(rows)} samples and {name} has the shape {tuple(values.shape)}: give "
                f"one row of it for each sample."
            )
        found = _cut(values, rows)
    _check_alike(samples, found, name)
    return found.parts


def ask(X: Any, local: Any, method: str, **options: Any) -> Any:
    """Return what a method of a fitted estimator says about samples, when it is needed."""
    if hasattr(X, "chunks"):
        return _of_array(X, local, method, options)
    if not _is_list(X) and hasattr(X, "map_partitions") and hasattr(X, "columns"):
        meta = _answer(local, method, options, X._meta_nonempty)
        # Names of the columns are those of the first answer: as many as the model has outputs.
        return X.map_partitions(
            lambda part: _answer(local, method, options, part), meta=meta.iloc[:0]
        )
    single = isinstance(X, (Delayed, Future))
    model = delayed(local, pure=False)
    answers = [
        delayed(_values, pure=False)(model, method, options, part)
        for part in ([X] if single else X)
    ]
    return answers[0] if single else answers


def _of_array(X: Any, local: Any, method: str, options: dict[str, Any]) -> Any:
    from dask import array as dask_array

    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    probe = _values(local, method, options, np.zeros((1, X.shape[1])))
    model = delayed(local, pure=False)
    answers = [
        dask_array.from_delayed(
            delayed(_values, pure=False)(model, method, options, part),
            shape=(rows, *probe.shape[1:]),
            meta=probe[:0],
        )
        for part, rows in zip(X.to_delayed().ravel(), X.chunks[0], strict=True)
    ]
    return dask_array.concatenate(answers, allow_unknown_chunksizes=True)


def _values(local: Any, method: str, options: dict[str, Any], part: Any) -> Any:
    if not (part.shape[0] if hasattr(part, "shape") else len(part)):
        whole = _values(local, method, options, np.zeros((1, local.n_features_in_)))
        return whole[:0]
    call: Callable[..., Any] = getattr(local, method)
    return call(part, **options)


def _answer(local: Any, method: str, options: dict[str, Any], part: Any) -> Any:
    import pandas

    values = _values(local, method, options, part)
    make = pandas.Series if values.ndim == 1 else pandas.DataFrame
    return make(values, index=part.index)


def _cut(values: Any, counts: list[int] | None = None) -> Blocks:
    """Cut what is in memory into parts of so many rows, or of as many as are good."""
    rows: Any = values if hasattr(values, "shape") else np.asarray(values)
    if sparse.issparse(rows):
        rows = rows.tocsr()  # others cannot be cut
    if not rows.shape:
        raise ValueError(
            f"Expected samples, or something for each of them; got a scalar: {values!r}."
        )
    size = rows.shape[0]
    if counts is None:
        counts = [min(_ROWS, size - start) for start in range(0, max(size, 1), _ROWS)]
    edges = np.cumsum([0, *counts]).tolist()
    take = rows.iloc if hasattr(rows, "iloc") else rows
    parts = [delayed(take[start:end], pure=False, traverse=False) for start, end in pairwise(edges)]
    return Blocks(parts, list(counts))


def _check_alike(samples: Blocks, others: Blocks, name: str) -> None:
    if len(samples.parts) != len(others.parts):
        raise ValueError(
            f"X has {len(samples.parts)} partitions and {name} has {len(others.parts)}: give both "
            f"the same chunks."
        )
    for number, (mine, its) in enumerate(zip(samples.rows, others.rows, strict=True)):
        if mine is not None and its is not None and mine != its:
            raise ValueError(
                f"Partition {number}: X has {mine} samples there and {name} has {its}; give both "
                f"the same chunks."
            )


def _is_list(values: Any) -> bool:
    return (
        isinstance(values, Sequence)
        and len(values) > 0
        and all(isinstance(part, (Delayed, Future)) for part in values)
    )

"""Files in the format of svmlight and LIBSVM."""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from ._sources import Block, Wanted, describe, opened


def read_svmlight(source: Any, wanted: Wanted) -> Iterator[Block]:
    """Yield sparse samples and the targets that the file has."""
    features, first = wanted.n_features, 1
    if features is None:
        if not isinstance(source, Path):
            raise ValueError(
                f"{describe(source)} can be read only once, so the number of features of an "
                f"svmlight stream cannot be counted first: give n_features (--features on the "
                f"command line)."
            )
        features, first = _count(source, wanted.rows)
    for X, y in _parts(source, wanted.rows, features + first):
        if first and X[:, :1].nnz:
            raise ValueError(
                f"{describe(source)} has a feature 0; with n_features, they are numbered from 1 on."
            )
        whole = y.astype(np.int64)
        yield X[:, first:], whole if (whole == y).all() else y


def _count(source: Path, rows: int) -> tuple[int, int]:
    """Return how many features there are, and the number of the first: 1, if there is no 0."""
    largest, first = 0, 1
    for X, _ in _parts(source, rows, None):
        largest = max(largest, X.shape[1])
        first = 0 if X[:, :1].nnz else first
    return largest - first, first


def _parts(source: Any, rows: int, columns: int | None) -> Iterator[Block]:
    with opened(source) as file:
        samples = (line for line in file if line.split(b"#", 1)[0].strip())
        while lines := list(islice(samples, rows)):
            text = io.BytesIO(b"".join(lines))
            try:
                yield load_svmlight_file(text, n_features=columns, zero_based=True)
            except ValueError as error:
                raise ValueError(f"{describe(source)} is no svmlight file: {error}.") from error

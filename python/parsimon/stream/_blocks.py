"""Streams: blocks of samples with their targets, from arrays, frames and files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsimon._checks import check_count, check_flag, choice

from ._arrow import count_parquet, read_arrow, read_parquet
from ._columns import is_dictionary, row_count, rows_of, without_decimals
from ._csv import read_csv
from ._npy import count_numpy, read_numpy
from ._sources import FRAMES, Block, Wanted, name_of
from ._svmlight import read_svmlight


@dataclass(frozen=True)
class Format:
    """How files of a kind are read; how many samples they say they have, if they do."""

    suffixes: tuple[str, ...]
    read: Callable[[Any, Wanted], Iterator[Block]]
    count: Callable[[Any, Wanted], int | None] | None = None


FORMATS = {
    "csv": Format((".csv", ".tsv"), read_csv),
    "parquet": Format((".parquet", ".pq"), read_parquet, count_parquet),
    "arrow": Format((".arrow", ".feather", ".ipc"), read_arrow),
    "svmlight": Format((".svm", ".svmlight", ".libsvm"), read_svmlight),
    "numpy": Format((".npy", ".npz"), read_numpy, count_numpy),
}


def _format_of(source: Any) -> str:
    """Return the format that the name of a file ends in."""
    name = name_of(source).lower().removesuffix(".gz")
    for format, reader in FORMATS.items():  # noqa: A001
        if name.endswith(reader.suffixes):
            return format
    what = repr(name) if name else f"the {type(source).__name__} that was given"
    raise ValueError(
        f"The format of {what} is not known; give format, one of {', '.join(FORMATS)} (on the "
        f"command line: --format)."
    )


def as_block(X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
    """Return a block of a stream, also of a single sample: one whose target is no sequence."""
    targets = without_decimals(np.asarray(y))
    if targets.ndim > 0:
        if len(targets) != row_count(X):
            raise ValueError(f"A block has {row_count(X)} samples, but {len(targets)} targets.")
        return X, targets
    if y is None:
        raise ValueError(
            "A stream to learn from requires y to be passed, but the target y is None; read_blocks "
            "needs the name of the target."
        )
    if is_dictionary(X):
        return {name: [value] for name, value in X.items()}, targets[None]
    return np.asarray(X)[None], targets[None]


@dataclass(frozen=True)
class _Parts:
    X: Any
    y: Any
    rows: int

    @property
    def n_samples(self) -> int:
        return row_count(self.X)

    def __iter__(self) -> Iterator[Block]:
        for start in range(0, self.n_samples, self.rows):
            part = slice(start, min(start + self.rows, self.n_samples))
            yield rows_of(self.X, part), None if self.y is None else rows_of(self.y, part)


def in_blocks(X: Any, y: Any = None, *, rows: int = 1000) -> _Parts:
    """Cut samples that are in memory, or mapped to it, into blocks.

    Parameters
    ----------
    X : array, sparse matrix, frame of pandas, polars or pyarrow, or dict of columns
        The samples. Of a memory map (``numpy.load(path, mmap_mode="r")``) no more than a block is
        read at a time.
    y : array-like of shape (n_samples,), optional
        Their targets.
    rows : int, default=1000
        Samples in a block; the last one may have fewer.

    Returns
    -------
    blocks : iterable of (X, y)
        The blocks, as often as they are asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from parsimon.stream import in_blocks
    >>> [len(y) for X, y in in_blocks(np.zeros((25, 2)), np.zeros(25), rows=10)]
    [10, 10, 5]
    """
    check_count("rows", rows)
    if y is not None and row_count(X) != row_count(y):
        raise ValueError(f"X has {row_count(X)} samples, but y has {row_count(y)} targets.")
    return _Parts(X, y, rows)


@dataclass(frozen=True)
class _File:
    source: Any
    format: str
    wanted: Wanted

    @property
    def n_samples(self) -> int | None:
        count = FORMATS[self.format].count
        return None if count is None else count(self.source, self.wanted)

    def __iter__(self) -> Iterator[Block]:
        return FORMATS[self.format].read(self.source, self.wanted)


def read_blocks(
    source: str | os.PathLike[str] | Any,
    target: str | int | None = None,
    *,
    rows: int = 1000,
    format: str | None = None,  # noqa: A002
    columns: Sequence[str] | None = None,
    text: Sequence[str] = (),
    frame: str = "auto",
    delimiter: str | None = None,
    header: bool = True,
    n_features: int | None = None,
) -> _File:
    r"""Read a file of any size in blocks of samples, of which one is in memory at a time.

    Parameters
    ----------
    source : path-like, "-" or file
        Where to read from; "-" is the standard input. CSV and svmlight may be compressed (``.gz``).
    target : str or int, optional
        The column of the targets, by its name; in a ``.npy`` file by its number, in a ``.npz`` file
        the name of the array. svmlight files say themselves. Without it, targets are None.
    rows : int, default=1000
        Samples in a block; some may have fewer.
    format : {"csv", "parquet", "arrow", "svmlight", "numpy"}, optional
        By default, as the name of the file ends: ``.csv``, ``.tsv``, ``.parquet``, ``.arrow``,
        ``.feather``, ``.svm``, ``.svmlight``, ``.libsvm``, ``.npy``, ``.npz``. Parquet and Arrow
        need pyarrow (``pip install 'parsimon[arrow]'``).
    columns : sequence of str, optional
        The columns of the features; by default all but the target's.
    text : sequence of str, default=()
        Columns of a CSV file that are text although the first block looks like numbers.
    frame : {"auto", "columns", "array", "pandas", "polars"}, default="auto"
        What the samples come as: a dictionary of columns, an array of numbers, or a data frame
        (``pip install 'parsimon[pandas]'`` or ``'parsimon[polars]'``). "auto": an array if all
        features are numbers, otherwise columns.
    delimiter : str, optional
        What separates the fields of a CSV file; by default a comma, in ``.tsv`` a tab.
    header : bool, default=True
        Whether the first line of a CSV file has the names; otherwise they are "0", "1" and so on.
    n_features : int, optional
        Features of an svmlight file; by default they are counted in a first pass over it.

    Returns
    -------
    blocks : iterable of (X, y)
        The blocks. A file is read anew each time it is iterated over.

    Examples
    --------
    >>> from pathlib import Path
    >>> from parsimon.stream import read_blocks
    >>> lines = ["size,colour,label", "1.5,red,yes", "2,blue,no", ",red,yes"]
    >>> _ = Path("stream.csv").write_text("\n".join(lines))
    >>> for X, y in read_blocks("stream.csv", target="label", rows=2):
    ...     print(X["size"], X["colour"], y)
    [1.5 2. ] ['red' 'blue'] ['yes' 'no']
    [nan] ['red'] ['yes']
    """
    check_count("rows", rows)
    check_flag("header", header)
    choice(*FRAMES)("frame", frame)
    choice(*FORMATS, optional=True)("format", format)
    if n_features is not None:
        check_count("n_features", n_features)
    for name, value in (("columns", columns), ("text", text)):
        if isinstance(value, str):
            raise ValueError(f"{name} must be a sequence of names; got {value!r}.")
    path = source if not isinstance(source, (str, os.PathLike)) or source == "-" else Path(source)
    found = format or _format_of(path)
    if delimiter is None:
        delimiter = "\t" if ".tsv" in getattr(path, "suffixes", ()) else ","
    wanted = Wanted(
        target=target,
        rows=int(rows),
        columns=None if columns is None else tuple(columns),
        text=frozenset(text),
        frame=frame,
        delimiter=delimiter,
        header=bool(header),
        n_features=n_features,
    )
    return _File(path, found, wanted)

"""What all readers of files share: opening, columns that are wanted, frames that are asked for."""

from __future__ import annotations

import gzip
import io
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from ._columns import Columns, is_number_column, numbers_of

Block = tuple[Any, Any]
FRAMES = ("auto", "columns", "array", "pandas", "polars")


@dataclass(frozen=True)
class Wanted:
    """What is to be read of a file."""

    target: str | int | None = None
    rows: int = 1000
    columns: tuple[str, ...] | None = None
    text: frozenset[str] = frozenset()
    frame: str = "auto"
    delimiter: str = ","
    header: bool = True
    n_features: int | None = None

    def features_of(self, names: list[str], where: str) -> list[str]:
        """Return the names of the features among those of all columns."""
        asked = [] if self.columns is None else list(self.columns)
        asked += [] if self.target is None else [str(self.target)]
        unknown = [name for name in dict.fromkeys([*asked, *self.text]) if name not in names]
        if unknown:
            raise ValueError(
                f"{where} has no column {', '.join(map(repr, unknown))}; it has "
                f"{', '.join(map(repr, names))}."
            )
        if self.columns is not None:
            return list(self.columns)
        return [name for name in names if self.target is None or name != str(self.target)]


def describe(source: Any) -> str:
    """Return what a message calls a source."""
    if isinstance(source, str) and source == "-":
        return "The standard input"
    name = name_of(source)
    return f"The file {name!r}" if name else f"The {type(source).__name__} that was given"


def name_of(source: Any) -> str:
    """Return the name of a file; nothing if it is in memory."""
    if isinstance(source, (str, Path)):
        return str(source)
    name = getattr(source, "name", None)
    return "" if name is None else str(name)


@contextmanager
def opened(source: Any) -> Iterator[IO[bytes]]:
    """Open a source for bytes; what was open already stays so."""
    if source == "-":
        yield sys.stdin.buffer
    elif isinstance(source, Path):
        opener: Any = gzip.open if source.suffix == ".gz" else open
        with opener(source, "rb") as file:
            yield file
    elif hasattr(source, "buffer"):  # of a text file, the bytes beneath
        yield source.buffer
    elif isinstance(source, io.TextIOBase):  # text in memory
        yield io.BytesIO(source.read().encode())
    else:
        yield source


@contextmanager
def seekable(source: Any) -> Iterator[Any]:
    """Open a source that is not read from beginning to end; a pipe is copied to a file."""
    with opened(source) as file:
        if file.seekable():
            yield file
            return
        with tempfile.TemporaryFile() as copy:
            shutil.copyfileobj(file, copy)
            copy.seek(0)
            yield copy


def framed(columns: Columns, wanted: Wanted, where: str) -> Any:
    """Return columns as what was asked for."""
    if wanted.frame == "columns":
        return columns
    if wanted.frame in ("pandas", "polars"):
        return imported(wanted.frame).DataFrame(columns)
    texts = [name for name, values in columns.items() if not is_number_column(values)]
    if not texts:
        return np.column_stack([numbers_of(name, values) for name, values in columns.items()])
    if wanted.frame == "auto":
        return columns
    raise ValueError(
        f"{where} cannot be read as an array of numbers: there is text in the columns "
        f"{', '.join(map(repr, texts))}. Choose other columns, or frame='columns' and a "
        f"StreamingPipeline."
    )


def imported(name: str) -> Any:
    """Import an optional package, or say how to get it."""
    try:
        if name == "pandas":
            import pandas

            return pandas
        if name == "polars":
            import polars

            return polars
        import pyarrow
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError as error:
        extra = "arrow" if name == "pyarrow" else name
        raise ImportError(
            f"This needs {name}, which is not installed; install it with: "
            f"pip install 'parsimon[{extra}]'."
        ) from error
    return pyarrow

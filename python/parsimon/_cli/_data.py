"""What the commands share: files of samples, models, tables."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import parsimon
from parsimon._progress import ProgressBar, progress
from parsimon.stream import StreamingPipeline, read_blocks
from parsimon.stream._blocks import FORMATS

Rows = Mapping[str, Any]


def positive_int(text: str) -> int:
    """Parse a number of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive whole number")
    return value


def add_data_arguments(parser: argparse.ArgumentParser) -> None:
    """Add how files are read."""
    add = parser.add_argument
    add("--format", choices=[*FORMATS], help="by default, as the name of the file ends")
    add("--delimiter", help="of CSV; a comma by default")
    add("--no-header", dest="header", action="store_false", help=_NO_HEADER)
    add("--block", type=positive_int, default=1000, metavar="ROWS", help="rows read at a time")
    add("--quiet", action="store_true", help=_QUIET)


_QUIET = "no progress bar; there is none either where the standard error is no terminal"
_NO_HEADER = "the first line of CSV is a sample: columns are called 0, 1, ..."


def names(text: str) -> list[str]:
    """Parse names that are separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def blocks_for(
    model: Any, source: str, options: argparse.Namespace, target: str | None = None
) -> Iterable[Any]:
    """Return the blocks of a file whose columns are those that a model has learned from."""
    given: dict[str, Any] = {
        "rows": options.block,
        "format": options.format,
        "delimiter": options.delimiter,
        "header": options.header,
    }
    scaler: Any = model.scaler_ if isinstance(model, StreamingPipeline) else model
    columns = getattr(scaler, "feature_names_in_", None)
    if columns is None:
        return read_blocks(source, target, n_features=model.n_features_in_, **given)
    if scaler is model:
        return read_blocks(source, target, columns=list(columns), frame="array", **given)
    encoding = scaler._encoding_
    texts = [name for name, is_text in zip(columns, encoding.is_text, strict=True) if is_text]
    return read_blocks(source, target, columns=list(columns), frame="columns", text=texts, **given)


def watched(blocks: Iterable[Any], what: str, *, quiet: bool) -> Iterator[tuple[Any, Any]]:
    """Yield the blocks behind a progress bar."""
    with bar_of(blocks, what, quiet=quiet) as bar:
        for X, y in blocks:
            yield X, y
            bar.update(_length(X))


def bar_of(blocks: Iterable[Any], what: str, *, quiet: bool) -> ProgressBar:
    """Open a progress bar for the samples of a file."""
    return progress(getattr(blocks, "n_samples", None), enabled=not quiet, description=what)


def _length(X: Any) -> int:
    return len(next(iter(X.values()))) if isinstance(X, dict) else int(X.shape[0])


def gathered(blocks: Iterable[tuple[Any, Any]]) -> tuple[Any, NDArray[Any]]:
    """Return all samples at once."""
    parts = list(blocks)
    if not parts:
        raise ValueError("There are no samples in the file.")
    first = parts[0][0]
    y = np.concatenate([y for _, y in parts])
    if isinstance(first, dict):
        return {name: np.concatenate([X[name] for X, _ in parts]) for name in first}, y
    stack = sparse.vstack if sparse.issparse(first) else np.concatenate
    return stack([X for X, _ in parts]), y


def loaded(path: str) -> Any:
    """Load a model that predicts."""
    model = parsimon.load(path)
    if not hasattr(model, "predict"):
        raise ValueError(
            f"The file {path!r} holds a {type(model).__name__}, which does not predict targets."
        )
    return model


def show(title: str, rows: Rows) -> None:
    """Print a table of two columns."""
    print(title)
    width = max(map(len, rows), default=0)
    for name, value in rows.items():
        print(f"  {name:<{width}}  {written(value)}")


def titled(figures: Rows, before: str = "") -> dict[str, Any]:
    """Return figures by the names that tables call them."""
    return {before + name.replace("_", " "): value for name, value in figures.items()}


def written(value: Any) -> str:
    """Write a value for people."""
    if isinstance(value, (bool, str)):
        return str(value)
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, (float, np.floating)) else str(value)


def size_of(path: str | Path) -> str:
    """Write the size of a file."""
    return f"{Path(path).stat().st_size:,} bytes"

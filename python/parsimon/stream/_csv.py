"""CSV files, with the standard library alone."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import islice
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ._sources import Block, Wanted, describe, framed, opened

# What stands for a number that is not known.
_MISSING = frozenset(("", "NA", "N/A", "nan", "NaN", "null", "None", "?"))


def read_csv(source: Any, wanted: Wanted) -> Iterator[Block]:
    where = describe(source)
    with opened(source) as file:
        lines = csv.reader(
            io.TextIOWrapper(io.BufferedReader(_Borrowed(file)), encoding="utf-8-sig", newline=""),
            delimiter=wanted.delimiter,
            strict=True,
        )
        rows = (row for row in _decoded(lines, where) if row)
        first = next(rows, None)
        if first is None:
            raise ValueError(f"{where} is empty.")
        names = first if wanted.header else [str(number) for number in range(len(first))]
        if len(set(names)) < len(names):
            raise ValueError(f"{where} has two columns of the same name: {', '.join(names)}.")
        features = wanted.features_of(names, where)
        kinds: dict[str, bool] = {}
        part = [] if wanted.header else [first]
        while part := part + list(islice(rows, wanted.rows - len(part))):
            if set(map(len, part)) != {len(names)}:
                wrong = next(row for row in part if len(row) != len(names))
                raise ValueError(
                    f"{where} has {len(wrong)} fields in or before line {lines.line_num}, where "
                    f"there are {len(names)} columns: {wanted.delimiter.join(wrong)[:60]!r}."
                )
            texts = dict(zip(names, zip(*part, strict=True), strict=True))
            for name in names:
                if name not in kinds:
                    kind = _is_text(name, texts[name], wanted)
                    kinds |= {} if kind is None else {name: kind}
            found = {
                name: _parsed(name, texts[name], kinds.get(name, False), where) for name in features
            }
            y = None
            if wanted.target is not None:
                name = str(wanted.target)
                y = _target(name, texts[name], kinds.get(name, False), where)
            yield framed(found, wanted, where), y
            part = []


def _decoded(lines: Any, where: str) -> Iterator[list[str]]:
    """Yield the lines of a file, if they are text in UTF-8."""
    try:
        yield from lines
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise ValueError(
            f"{where} is not text in UTF-8: there is a byte 0x{byte:02x} after line "
            f"{lines.line_num}. Convert it first, for example with: iconv -f LATIN1 -t UTF-8."
        ) from error


class _Borrowed(io.RawIOBase):
    """A file that is not closed along with what reads from it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _is_text(name: str, values: tuple[str, ...], wanted: Wanted) -> bool | None:
    """Tell whether a column is text, by its first values; None if all are missing."""
    if name in wanted.text:
        return True
    known = [value for value in values if value not in _MISSING]
    return not all(map(_is_number, known)) if known else None


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return "_" not in value  # which Python would skip


def _parsed(name: str, values: tuple[str, ...], is_text: bool, where: str) -> NDArray[Any]:
    if is_text:
        return np.array(values, dtype=object)
    try:
        return np.array(values, dtype=np.float64)
    except ValueError:
        pass  # there are gaps, or it is no number
    try:
        return np.array([np.nan if value in _MISSING else float(value) for value in values])
    except ValueError as error:
        raise ValueError(
            f"{where} has numbers in the first rows of the column {name!r}, but not in all: "
            f"{error}. If it is text, name it in text."
        ) from error


def _target(name: str, values: tuple[str, ...], is_text: bool, where: str) -> NDArray[Any]:
    if any(value in _MISSING for value in values) and not (is_text and "" not in values):
        raise ValueError(f"{where} has rows without a value in the target column {name!r}.")
    if is_text:
        return np.array(values, dtype=object)
    try:
        return np.array([int(value) for value in values])
    except (ValueError, OverflowError):
        return _parsed(name, values, False, where)

"""NumPy's files: ``.npy``, which is mapped to memory, and ``.npz``, which is read row by row."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._sources import Block, Wanted, describe, seekable

# A memory map is closed and opened again after so many bytes: what was read does not stay resident.
_MAPPED_BYTES = 1 << 26


def read_numpy(source: Any, wanted: Wanted) -> Iterator[Block]:
    if Path(str(getattr(source, "name", source))).suffix == ".npz":
        yield from _read_npz(source, wanted)
        return
    if not isinstance(source, Path):
        raise ValueError(f"{describe(source)} cannot be mapped to memory: give the path of a file.")
    samples, column = _mapped(source), wanted.target
    if column is not None:
        try:
            column = int(column)
        except ValueError:
            raise ValueError(
                f"{describe(source)} has columns without names: target must be the number of one, "
                f"from 0 on; got {column!r}."
            ) from None
        if not -samples.shape[1] <= column < samples.shape[1]:
            raise ValueError(
                f"{describe(source)} has {samples.shape[1]} columns; the target {column} is none."
            )
    total, width = samples.shape[0], samples.nbytes // max(samples.shape[0], 1)
    at_once = max(1, _MAPPED_BYTES // max(1, width * wanted.rows)) * wanted.rows
    for first in range(0, total, at_once):
        samples = _mapped(source)
        for start in range(first, min(first + at_once, total), wanted.rows):
            part = np.array(samples[start : start + wanted.rows])
            if column is None:
                yield part, None
            else:
                yield np.delete(part, column, axis=1), part[:, column]


def _mapped(path: Path) -> Any:
    samples = np.load(path, mmap_mode="r", allow_pickle=False)
    if samples.ndim != 2:
        raise ValueError(
            f"{describe(path)} must hold one sample per row; its array has the shape "
            f"{samples.shape}."
        )
    return samples


def count_numpy(source: Any, wanted: Wanted) -> int | None:  # noqa: ARG001
    is_array = isinstance(source, Path) and source.suffix == ".npy"
    return int(_mapped(source).shape[0]) if is_array else None


def _read_npz(source: Any, wanted: Wanted) -> Iterator[Block]:
    with seekable(source) as file, zipfile.ZipFile(file) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        features = wanted.features_of(names, describe(source))
        if len(features) != 1:
            raise ValueError(
                f"{describe(source)} has the arrays {', '.join(map(repr, names))}: name the one of "
                f"the features in columns, and that of the targets in target."
            )
        with _Member(archive, features[0], describe(source)) as samples:
            if wanted.target is None:
                for start in range(0, samples.shape[0], wanted.rows):
                    yield samples.read(min(wanted.rows, samples.shape[0] - start)), None
                return
            with _Member(archive, str(wanted.target), describe(source)) as targets:
                if targets.shape[:1] != samples.shape[:1]:
                    raise ValueError(
                        f"{describe(source)} has {samples.shape[0]} samples, but "
                        f"{targets.shape[0]} targets."
                    )
                for start in range(0, samples.shape[0], wanted.rows):
                    count = min(wanted.rows, samples.shape[0] - start)
                    yield samples.read(count), targets.read(count)


class _Member:
    """An array within an ``.npz`` file, compressed or not, from its first row to its last."""

    def __init__(self, archive: zipfile.ZipFile, name: str, where: str) -> None:
        self._file = archive.open(f"{name}.npy")
        version = np.lib.format.read_magic(self._file)
        header = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        self.shape, by_columns, self._dtype = header(self._file)
        if self._dtype.hasobject or (by_columns and len(self.shape) > 1):
            raise ValueError(
                f"{where} has an array {name!r} that cannot be read row by row: save it with "
                f"numpy.savez(..., {name}=numpy.ascontiguousarray(...)), and text as numpy.str_."
            )

    def __enter__(self) -> _Member:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def read(self, rows: int) -> NDArray[Any]:
        """Return the next rows."""
        shape = (rows, *self.shape[1:])
        size = int(np.prod(shape)) * self._dtype.itemsize
        rows_read = np.frombuffer(self._file.read(size), dtype=self._dtype)
        return np.array(rows_read.reshape(shape))

"""Parquet and Arrow files, by way of pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ._columns import array_of, columns_of
from ._sources import Block, Wanted, describe, framed, imported, seekable


def read_parquet(source: Any, wanted: Wanted) -> Iterator[Block]:
    arrow = imported("pyarrow")
    with seekable(source) as file:
        parquet = arrow.parquet.ParquetFile(file, pre_buffer=False)
        names = parquet.schema_arrow.names
        features = wanted.features_of(names, describe(source))
        target = [] if wanted.target is None else [str(wanted.target)]
        batches = parquet.iter_batches(wanted.rows, columns=[*features, *target])
        for batch in batches:
            yield _of_batch(batch, features, wanted, describe(source))


def count_parquet(source: Any, wanted: Wanted) -> int | None:  # noqa: ARG001
    if not isinstance(source, Path):
        return None
    with seekable(source) as file:
        return int(imported("pyarrow").parquet.ParquetFile(file).metadata.num_rows)


def read_arrow(source: Any, wanted: Wanted) -> Iterator[Block]:
    arrow = imported("pyarrow")
    with seekable(source) as file:
        for batch in _arrow_batches(arrow, source, file):
            features = wanted.features_of(batch.schema.names, describe(source))
            for start in range(0, batch.num_rows, wanted.rows):
                part = batch.slice(start, wanted.rows)
                yield _of_batch(part, features, wanted, describe(source))


def _arrow_batches(arrow: Any, source: Any, file: Any) -> Iterator[Any]:
    """Yield the batches of a file or of a stream; those of a file are mapped, not read."""
    is_file = file.read(6) == b"ARROW1"
    file.seek(0)
    if not is_file:
        yield from arrow.ipc.open_stream(file)
        return
    mapped = arrow.memory_map(str(source)) if isinstance(source, Path) else file
    reader = arrow.ipc.open_file(mapped)
    for number in range(reader.num_record_batches):
        yield reader.get_batch(number)


def _of_batch(batch: Any, features: list[str], wanted: Wanted, where: str) -> Block:
    y = None
    if wanted.target is not None:
        values = batch.column(batch.schema.names.index(str(wanted.target)))
        if values.null_count:
            raise ValueError(
                f"{where} has rows without a value in the target column {wanted.target!r}."
            )
        y = array_of(values)
    chosen = batch.select(features)
    if wanted.frame == "polars":
        return imported("polars").from_arrow(chosen), y
    if wanted.frame == "pandas":
        return _pandas(chosen), y
    return framed(columns_of(chosen) or {}, wanted, where), y


def _pandas(batch: Any) -> Any:
    imported("pandas")
    return batch.to_pandas()

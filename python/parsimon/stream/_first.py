"""The first samples of a stream, which a pipeline keeps for a while, and their entry in its file.

The entry ``pipeline.first`` is JSON: the columns of numbers, those of text, targets, weights, the
classes that were announced, and with how many samples the estimator began last. Only who learns on
needs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from parsimon import _io
from parsimon._labels import check_types

from ._encoding import Table, joined
from ._scaler import StreamingScaler

_ENTRY = "pipeline.first"


@dataclass(frozen=True)
class FirstSamples:
    """Blocks with targets and weights, if there are any, and how many the estimator began with."""

    blocks: tuple[tuple[Table, NDArray[Any] | None, NDArray[np.float64] | None], ...] = ()
    classes: ArrayLike | None = None
    begun: int = 0

    def __len__(self) -> int:
        return sum(rows_of(table) for table, _, _ in self.blocks)

    def plus(
        self, table: Table, y: Any, weight: NDArray[np.float64] | None, classes: ArrayLike | None
    ) -> FirstSamples:
        """Return these and another block."""
        if self.blocks and y is not None and self.blocks[0][1] is not None:
            check_types(np.unique(self.blocks[0][1]), np.unique(y))
        known = self.classes if classes is None else classes
        return FirstSamples((*self.blocks, (table, y, weight)), known, self.begun)

    @property
    def table(self) -> Table:
        """All samples."""
        return joined([table for table, _, _ in self.blocks])

    @property
    def targets(self) -> NDArray[Any] | None:
        """Their targets, if they have any."""
        targets = [y for _, y, _ in self.blocks if y is not None]
        return np.concatenate(targets) if targets else None

    @property
    def weight(self) -> NDArray[np.float64] | None:
        """Their weights, if some have any; without one, it is 1."""
        if all(weight is None for _, _, weight in self.blocks):
            return None
        return np.concatenate(
            [
                np.ones(rows_of(table)) if weight is None else weight
                for table, _, weight in self.blocks
            ]
        )


def rows_of(table: Table) -> int:
    """Return how many samples there are."""
    return len(table) if isinstance(table, np.ndarray) else len(table[0])


def write_first(archive: Any, first: FirstSamples, scaler: StreamingScaler) -> None:
    """Add the entry of the samples that are kept."""
    numbers, texts = scaler._encoding_._split(first.table)
    archive[_ENTRY] = _io._to_json(
        {
            "numbers": numbers,
            "texts": np.array(texts, dtype=object),
            "y": first.targets,
            "weight": first.weight,
            "classes": None if first.classes is None else np.asarray(first.classes),
            "begun": first.begun,
        }
    )


def read_first(archive: Any, scaler: StreamingScaler, warm_up: int) -> FirstSamples | None:
    """Return the samples that a file has kept, if there are any."""
    if _ENTRY not in archive:
        return None
    kept = _io._from_json(archive[_ENTRY])
    numbers, texts, y, weight = (kept[name] for name in ("numbers", "texts", "y", "weight"))
    is_text, count = scaler._encoding_.is_text, len(numbers)
    shapes = (count, is_text.count(False)), (is_text.count(True), count)
    others = [each for each in (y, weight) if each is not None]
    classes = kept["classes"]
    sound = (
        numbers.dtype.kind == "f"
        and numbers.shape == shapes[0]
        and texts.size == shapes[1][0] * count
        and all(isinstance(each, str) for each in texts.ravel())
        and all(isinstance(each, np.ndarray) and len(each) == count for each in others)
        and (classes is None or isinstance(classes, np.ndarray))
        and type(kept["begun"]) is int
        and 0 < kept["begun"] <= count < warm_up
        and not np.isinf(numbers).any()
    )
    if not sound:
        raise ValueError(
            "The first samples in the model file are not those of a stream that its pipeline has "
            "seen."
        )
    table = numbers
    if any(is_text):
        both = iter(numbers.T), iter(texts.reshape(shapes[1]))
        table = [next(both[each]) for each in is_text]
    return FirstSamples(((table, y, weight),), classes, kept["begun"])

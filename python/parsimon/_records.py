"""Records of mini-batches, as many as the core keeps of a model of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

_MOST = 4096


@dataclass
class Records:
    """What all mini-batches did: rows of a trace.

    When they are full, each two become one, and from then on a row is that of twice as many
    mini-batches: `stride` of them, of which the last row has `in_last` so far.
    """

    rows: list[list[float]] = field(default_factory=list)
    stride: int = 1
    in_last: int = 1

    def add(self, row: list[float]) -> None:
        """Take in one more mini-batch."""
        if self.in_last < self.stride:
            self.in_last += 1
            _take_in(self.rows[-1], row, 1 / self.in_last)
            return
        if len(self.rows) == _MOST:
            for first, second in zip(self.rows[::2], self.rows[1::2], strict=True):
                _take_in(first, second, 0.5)
            self.rows = self.rows[::2]
            self.stride *= 2
        self.rows.append(row)
        self.in_last = 1


def _take_in(row: list[float], other: list[float], share: float) -> None:
    """Make one row of two; there is no compression whose errors and budgets would differ."""
    row[:2] = other[:2]
    row[2] += other[2]
    row[3] += share * (other[3] - row[3])

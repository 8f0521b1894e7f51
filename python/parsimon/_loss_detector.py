"""The core's detector of change (``algorithm/drift.hpp``), for models whose steps are in Python.

The core shows nobody what its own one remembers, and a file must hold it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SHORT, _LONG, _WARM_UP = 100, 10_000, 300
# In standard deviations of one loss; of the mean of the latest.
_OUTLIER, _ALARM, _CALM = 4, 6, 2
# How much larger losses must be for a change that matters.
_WORSE = 1.3
# An alarm lasts for so many times the shortest memory.
_PATIENCE = 4
_LARGEST = 1e90


@dataclass
class LossDetector:
    """Watches the losses of a stream: whether those of late are what the ones before let expect.

    `recent` is the mean of about the last 100 losses, `expected` that of the last 10,000, which
    stands still while there is an alarm.
    """

    count: float = 0.0
    recent: float = 0.0
    expected: float = 0.0
    variance: float = 0.0
    drifting: bool = False
    changes: int = 0
    alarmed: float = 0.0

    def observe(self, losses: Array, points: int) -> list[int]:
        """Return the places of the losses with which a change was found."""
        found = []
        for place, loss in enumerate(losses.tolist()):
            before = self.changes
            self._take(loss if loss < _LARGEST else _LARGEST)  # NaN, too
            if self.changes > before:
                found.append(place)
            self._give_up(points)
        return found

    def _take(self, loss: float) -> None:
        self.count += 1
        slow = max(1 / self.count, 1 / _LONG)
        if not self.drifting:
            # One loss at most doubles the variance once there is one.
            largest, difference = math.sqrt(self.variance / slow), loss - self.expected
            seen = min(difference, largest) if self.variance > 0 else difference
            self.variance += slow * ((1 - slow) * seen * seen - self.variance)
        if self.count > _SHORT:  # one outlier is no change
            loss = min(loss, self.expected + _OUTLIER * math.sqrt(self.variance))
        self.recent += max(1 / self.count, 1 / _SHORT) * (loss - self.recent)
        if not self.drifting:
            self.expected += slow * (loss - self.expected)
            worse = self.recent > _WORSE * self.expected
            if self.count > _WARM_UP and self._excess() > _ALARM and worse:
                self.drifting, self.alarmed, self.changes = True, 0.0, self.changes + 1
        elif self._excess() < _CALM:
            self.drifting = False
        else:
            self.alarmed += 1

    def _give_up(self, points: int) -> None:
        """Expect what there is now, if an alarm has not ended for long."""
        if self.drifting and self.alarmed > _PATIENCE * max(2 * _SHORT, 2 * points):
            self.drifting, self.expected, self.count = False, self.recent, float(_SHORT)

    def _excess(self) -> float:
        """Return the standard deviations by which the latest losses are above what was expected."""
        deviation = math.sqrt(self.variance / (2 * _SHORT - 1))
        return (self.recent - self.expected) / deviation if deviation > 0 else 0.0

    def state(self) -> Array:
        """Return what a file keeps."""
        return np.array(
            [
                self.count,
                self.recent,
                self.expected,
                self.variance,
                float(self.drifting),
                float(self.changes),
                self.alarmed,
            ]
        )

    @classmethod
    def of(cls, state: Array) -> LossDetector:
        """Return the detector that a file kept."""
        if state.shape != (7,) or not ((state >= 0) & (state < 1e300)).all():
            raise ValueError(
                "The drift detector in the model file must have 7 finite numbers, none below 0."
            )
        count, recent, expected, variance, drifting, changes, alarmed = state.tolist()
        changes = int(min(changes, 2.0**53))
        return cls(count, recent, expected, variance, drifting > 0, changes, alarmed)

"""Points to learn a density from, and those whose likelihood is measured along the way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsimon import _core
from parsimon._stream import BLOCK, Samples

Array = NDArray[np.float64]

# Mini-batches between two measurements of the validation data.
_MEASURE_EVERY = 16
# Measurements that are kept, as many as records of the trace.
MOST_MEASURED = 4096


@dataclass
class Validation:
    """Points whose likelihood is measured along the way: rows (samples seen, value)."""

    points: Array
    domain: Array
    measured: list[tuple[float, float]]

    def __call__(self, model: Any) -> None:
        integral = 1.0  # of a density that has been solved
        if not isinstance(model, _core.SolvedDensity):
            volume = float(np.prod(self.domain[:, 1] - self.domain[:, 0]))
            integral = volume * float(model.density(model.nodes).mean())
        value = integral - float(model.log_density(self.points).mean())
        self.measured.append((float(model.samples), value))


class Points(Samples):
    """Points to learn from, and where they are looked for."""

    def __init__(
        self, X: Array, domain: Array, watch: Validation | None, amounts: Array | None = None
    ) -> None:
        super().__init__(X, watch=watch)
        self.domain = domain
        self.amounts = np.ones(len(X)) if amounts is None else amounts
        self.columns = (X,)

    def blocks(
        self, batch_size: int, random: np.random.RandomState | None = None, at_once: int = BLOCK
    ) -> Iterable[tuple[Any, ...]]:
        if self.watch is not None:
            at_once = _MEASURE_EVERY * batch_size
        return super().blocks(batch_size, random, at_once)

"""The targets of a regressor: the core learns them without their mean and their unit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Targets:
    """Mean and unit of each target; `encode` takes them away and `decode` puts them back."""

    __slots__ = ("intercept", "scale", "single")

    def __init__(self, intercept: Array, scale: Array, single: bool) -> None:
        self.intercept = intercept
        self.scale = scale
        self.single = single

    @classmethod
    def found_in(cls, y: Array, *, normalize: bool) -> Targets:
        """Return mean and standard deviation of these targets, or 0 and 1."""
        rows = y.reshape(len(y), -1)
        intercept, scale = np.zeros(rows.shape[1]), np.ones(rows.shape[1])
        if normalize:
            intercept, size = mean_of(rows)
            spread = (rows / size - intercept / size).std(axis=0) * size
            scale = np.where(spread > 0, spread, scale)
        return cls(intercept, scale, y.ndim == 1)

    def check(self, y: Any) -> None:
        """Refuse another number of targets than there were."""
        count = y.shape[1] if y.ndim > 1 else 1
        if count != len(self.intercept):
            raise ValueError(
                f"y has {count} targets per sample, but the model has learned "
                f"{len(self.intercept)}."
            )

    def encode(self, y: Any) -> Array:
        """Return the core's targets, one row per sample."""
        if y.size != len(y) * len(self.intercept):
            self.check(y)
        rows = y.reshape(len(y), -1)
        return np.asarray((rows - self.intercept) / self.scale)

    def decode(self, values: Array) -> Array:
        """Return the core's outputs as predictions, of one dimension if the targets were."""
        predictions: Array = values * self.scale + self.intercept
        return predictions[:, 0] if self.single else predictions

    def fitted(self) -> dict[str, Any]:
        """Return what an estimator keeps."""
        return {"intercept_": self.intercept, "_scale_": self.scale, "_single_": self.single}

    @staticmethod
    def stored(outputs: int) -> dict[str, Callable[[Any], bool]]:
        """Return the same for an estimator in a file, each with what makes it valid."""

        def numbers(value: Any) -> bool:
            return value.shape == (outputs,) and bool(np.isfinite(value).all())

        return {
            "intercept_": numbers,
            "_scale_": lambda value: numbers(value) and bool((value > 0).all()),
            "_single_": lambda value: type(value) is bool and (not value or outputs == 1),
        }


def mean_of(rows: Array, weight: Array | None = None) -> tuple[Array, Array]:
    """Return the mean of each column, and the size of its largest value.

    weight: of each row, or nothing if they all count the same.
    """
    # Dividing by the largest value first keeps targets near the limits of a double finite.
    size = np.maximum(np.abs(rows).max(axis=0), np.finfo(float).tiny)
    if weight is None or not len(weight):
        return (rows / size).mean(axis=0) * size, size
    return np.average(rows / size, axis=0, weights=weight / weight.max()) * size, size

"""What predictions are judged by, over a window of a stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Metric = Callable[[Any, Any], float]


def accuracy(truth: NDArray[Any], predicted: NDArray[Any]) -> float:
    """Return the share of labels that are right."""
    return float((truth == predicted).mean())


def error(truth: NDArray[Any], predicted: NDArray[Any]) -> float:
    """Return the share of labels that are wrong."""
    return float((truth != predicted).mean())


def balanced_accuracy(truth: NDArray[Any], predicted: NDArray[Any]) -> float:
    """Return the mean, over the classes there are, of the share that is recognised."""
    classes, numbers = np.unique(truth, return_inverse=True)
    right = np.bincount(numbers, truth == predicted, len(classes))
    return float((right / np.bincount(numbers, minlength=len(classes))).mean())


def mean_absolute_error(truth: NDArray[Any], predicted: NDArray[Any]) -> float:
    """Return the mean size of the differences."""
    return float(np.abs(truth - predicted).mean())


def mean_squared_error(truth: NDArray[Any], predicted: NDArray[Any]) -> float:
    """Return the mean of the squared differences."""
    return float(((truth - predicted) ** 2).mean())


def r2(truth: NDArray[Any], predicted: NDArray[Any]) -> float:
    """Return the share of the variance that is explained; NaN where there is none."""
    spread = ((truth - truth.mean(axis=0)) ** 2).mean()
    return float(1 - ((truth - predicted) ** 2).mean() / spread) if spread > 0 else float("nan")


METRICS: dict[str, Metric] = {
    metric.__name__: metric
    for metric in (
        accuracy,
        error,
        balanced_accuracy,
        mean_absolute_error,
        mean_squared_error,
        r2,
    )
}
OF_CLASSIFIERS = ("accuracy",)
OF_OTHERS = ("mean_absolute_error", "r2")


def named_metrics(
    given: str | Sequence[str] | Mapping[str, Metric] | None, *, classifies: bool
) -> dict[str, Metric]:
    """Return metrics by their names: those that were given, or what suits the model."""
    if given is None:
        given = OF_CLASSIFIERS if classifies else OF_OTHERS
    if isinstance(given, Mapping):
        if not given or not all(map(callable, given.values())):
            raise ValueError(
                f"metrics must map names to functions of true and predicted targets; got {given!r}."
            )
        return dict(given)
    names = [given] if isinstance(given, str) else list(given)
    unknown = [name for name in names if name not in METRICS]
    if unknown or not names:
        raise ValueError(
            f"metrics must be some of {', '.join(METRICS)}, or a dictionary of functions; "
            f"got {given!r}."
        )
    return {name: METRICS[name] for name in names}

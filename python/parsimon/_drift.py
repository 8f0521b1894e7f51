"""Detectors of change that were brought along, such as those of river.drift."""

from __future__ import annotations

import copy
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from ._checks import is_number

Array = NDArray[np.float64]


@runtime_checkable
class Detector(Protocol):
    """What is shown one loss after the other, and says whether they have changed."""

    @property
    def drift_detected(self) -> bool:
        """Whether a change was found with the latest loss."""

    def update(self, x: float, /) -> Any:
        """Take one loss."""


def is_detector(value: Any) -> bool:
    """Tell whether this is such an object; a class is none."""
    return not isinstance(value, type) and isinstance(value, Detector)


def check_half_life(name: str, value: Any) -> None:
    """Refuse what does not say how a stream forgets."""
    open_ended = value is None or (isinstance(value, str) and value == "auto")
    if not (open_ended or is_detector(value)) and not (is_number(value) and value > 0):
        raise ValueError(
            f"{name} must be a positive, finite number of samples, None (nothing is forgotten), "
            f"'auto', or an object with update(loss) and drift_detected, as those of river.drift; "
            f"got {value!r}."
        )
    if not open_ended and is_number(value) and value < 1:
        raise ValueError(
            f"{name} is a number of samples: after {value!r} of them half of what was learned is "
            f"forgotten, so that next to nothing is left when the next one comes. Give at least 1, "
            f"None (nothing is forgotten) or 'auto'; got {value!r}."
        )


def listening(given: Detector, model: Any) -> Detector:
    """Return a copy of a detector, which the model will be told by.

    A copy: hyper-parameters stay as they are.
    """
    model.listen()
    return copy.deepcopy(given)


def losses_of(estimator: Any, model: Any, samples: Array, targets: Array) -> Array:
    """Return what a detector is shown: mistakes of a classifier, or the size of the differences."""
    values = model.predict(samples)
    if isinstance(estimator, ClassifierMixin):
        several = values.shape[1] > 1
        chosen = values.argmax(axis=1) if several else values[:, 0] > 0
        return np.asarray(chosen != targets[:, 0], dtype=np.float64)
    return np.asarray(np.abs(values - targets).mean(axis=1))


def tell(model: Any, detector: Detector, losses: Array) -> None:
    """Show a detector the losses of a mini-batch, and tell the model if they have changed."""
    found = False
    for loss in losses.tolist():
        detector.update(loss)
        found = found or bool(detector.drift_detected)
    if found:
        model.raise_alarm()

"""How the learning rate and the compression budget change along a stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ._checks import check_count, check_flag, number

__all__ = ["AdaptiveBudget", "PowerLaw"]


@dataclass(frozen=True)
class PowerLaw:
    """A learning rate that falls like ``initial * (1 + t / delay) ** -power``.

    Here t counts mini-batches and the initial value is the estimator's ``learning_rate``.

    Parameters
    ----------
    power : float, default=1.0
        Between 0 (excluded) and 1. Theory asks for more than 0.5.
    delay : float, default=100.0
        Mini-batches after which the rate begins to fall.

    Examples
    --------
    >>> from parsimon import POLKClassifier
    >>> from parsimon.schedules import PowerLaw
    >>> model = POLKClassifier(schedule=PowerLaw(power=0.75, delay=50))
    """

    power: float = 1.0
    delay: float = 100.0

    def __post_init__(self) -> None:
        """Refuse values with which the steps would not fall."""
        if not 0 < self.power <= 1:
            raise ValueError(f"power must be above 0 and at most 1; got {self.power}.")
        if not (np.isfinite(self.delay) and self.delay > 0):
            raise ValueError(f"delay must be positive and finite; got {self.delay}.")


@dataclass(frozen=True)
class AdaptiveBudget:
    """A compression budget ``alpha * learning_rate`` whose alpha follows the model order.

    Too many points make alpha larger, too few make it smaller. A number of points that must not be
    exceeded is ``max_points``.

    Parameters
    ----------
    target : int
        The number of points to hold.
    initial : float, optional
        alpha at first, positive. By default what ``parsimony="auto"`` would begin with.
    printed : bool, default=False
        Whether alpha changes as the SPPPOT paper prints it, by a thousandth for each point too many
        or too few. By default the change is relative to the target, and damped.

    Examples
    --------
    >>> from parsimon import SPPPOTIntensity
    >>> from parsimon.schedules import AdaptiveBudget
    >>> model = SPPPOTIntensity(budget=AdaptiveBudget(target=105))
    """

    target: int
    initial: float | None = None
    printed: bool = False

    def __post_init__(self) -> None:
        """Refuse what no budget can follow."""
        check_count("target", self.target)
        number(positive=True, optional=True)("initial", self.initial)
        check_flag("printed", self.printed)


NAMED = {"constant": None, "inverse": PowerLaw(1.0), "sqrt": PowerLaw(0.5)}


def resolve(schedule: Any) -> PowerLaw | None:
    """Return the power law that a name stands for, None for a constant rate."""
    if isinstance(schedule, PowerLaw):
        return schedule
    if isinstance(schedule, str) and schedule in NAMED:
        return NAMED[schedule]
    raise ValueError(
        f"schedule must be one of {', '.join(map(repr, NAMED))} or a "
        f"parsimon.schedules.PowerLaw; got {schedule!r}."
    )

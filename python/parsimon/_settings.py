"""What the core's models are made of, in its own words, from what an estimator was given."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from ._core import Archive, BudgetSchedule, StepSchedule
from .schedules import AdaptiveBudget, PowerLaw, resolve

# Samples after which an iterate of a stream counts half in the average that predicts, if it is left
# to us: several times as many as the noise of the steps needs to be averaged out.
STREAM_HALF_LIFE = 1000.0
# An adaptive budget must begin with something that it can multiply.
_LEAST_ALPHA = 1e-6
# Of the rate, in the budgets of parsimony.
_POWERS = {"proportional": 1.0, "parsimony": 1.5, "step_squared": 2.0}


def core_step(rate: float, schedule: Any = "constant") -> StepSchedule:
    """Return the step size of a mini-batch."""
    law = resolve(schedule)
    if law is None:
        return StepSchedule.constant(rate)
    return StepSchedule.power_law(rate, law.power, law.delay)


def core_budget(
    budget: float | AdaptiveBudget | None, by_parsimony: BudgetSchedule, rate: float
) -> BudgetSchedule:
    """Return the budget of a mini-batch: the one that was given, or else that of parsimony."""
    if budget is None:
        return by_parsimony
    if not isinstance(budget, AdaptiveBudget):
        return BudgetSchedule.fixed(float(budget))
    alpha = budget.initial
    if alpha is None:
        first = by_parsimony.value * math.pow(rate, _POWERS[by_parsimony.name])
        alpha = max(first / rate, _LEAST_ALPHA)
    if budget.printed:
        return BudgetSchedule.hold_model_order_as_printed(budget.target, alpha)
    return BudgetSchedule.hold_model_order(budget.target, alpha)


def bound_memory(estimator: Any, model: Any) -> None:
    """Have the average of the iterates forget as a stream should, if it is one that predicts."""
    half_life = getattr(estimator, "half_life", None)
    averages = getattr(estimator, "average", False) and getattr(estimator, "solver", "sgd") == "sgd"
    if half_life is None or not averages:
        return
    changes = not isinstance(half_life, Real)
    model.remember(STREAM_HALF_LIFE if changes else float(half_life), changes)


def given_by(archive: Archive, parsimony: str) -> dict[str, Any]:
    """Return what an estimator was given, from the core's words in a file.

    `parsimony` is what the core calls the budget of its algorithm's constant.
    """
    given: dict[str, Any] = {
        "learning_rate": float(archive["step.parameters"][0]),
        "regularization": archive["regularization"],
        "average": bool(archive["average"]),
        "half_life": None,
    }
    if "average.memory" in archive:
        half_life, changes = archive["average.memory"].tolist()
        given["half_life"] = "auto" if changes else half_life
    if archive["step"] == "power_law":
        given["schedule"] = PowerLaw(*archive["step.parameters"][1:].tolist())
    word = {"fixed": "budget", parsimony: "parsimony"}.get(archive["budget"])
    if word is not None:
        given[word] = float(archive["budget.parameters"][0])
    return given

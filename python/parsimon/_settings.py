"""What the core's models are made of, in its own words, from what an estimator was given."""

from __future__ import annotations

import math
from typing import Any

from ._core import Archive
from .schedules import AdaptiveBudget, PowerLaw, resolve

Schedule = tuple[str, list[float]]
# Arguments of the constructor of a core model.
Compression = dict[str, Any]

# An adaptive budget must begin with something that it can multiply.
_LEAST_ALPHA = 1e-6


def core_step(rate: float, schedule: Any = "constant") -> Schedule:
    """Return the step size of a mini-batch."""
    law = resolve(schedule)
    return ("constant", [rate]) if law is None else ("power_law", [rate, law.power, law.delay])


def core_budget(
    budget: float | AdaptiveBudget | None, by_parsimony: Schedule, rate: float
) -> Schedule:
    """Return the budget of a mini-batch: the one that was given, or else that of parsimony."""
    if budget is None:
        return by_parsimony
    if not isinstance(budget, AdaptiveBudget):
        return "fixed", [float(budget)]
    alpha = budget.initial
    if alpha is None:
        alpha = max(_at(by_parsimony, rate) / rate, _LEAST_ALPHA)
    if not budget.printed:
        return "hold_model_order", [float(budget.target), alpha]
    control = [float(budget.target), 0.001, 0.0, 0.1, 0.0, 1e-6 * alpha, 1e6 * alpha]
    return "adaptive", [alpha, *control, 0.0, 0.0, 0.0, 0.0]


def core_compression(budget: Schedule, max_points: int | None) -> Compression:
    """Return how a model is kept small: within a budget, and to so many points."""
    if max_points is None:
        return {"budget": budget}
    return core_maintenance("project", max_points) | {"budget": budget}


def core_maintenance(rule: str, max_points: int, rate: float = 0.0, seed: int = 0) -> Compression:
    """Return how a model is kept to so many points: the rule by which one too many goes."""
    parameters = [float(max_points), float(rate), float(seed), 0.0]
    return {"budget": ("fixed", [0.0]), "maintenance": (rule, parameters)}


def _at(budget: Schedule, rate: float) -> float:
    name, (factor,) = budget
    powers = {"fixed": 0.0, "proportional": 1.0, "parsimony": 1.5, "step_squared": 2.0}
    return factor * math.pow(rate, powers[name])


def given_by(archive: Archive, parsimony: str) -> dict[str, Any]:
    """Return what an estimator was given, from the core's words in a file.

    `parsimony` is what the core calls the budget of its algorithm's constant.
    """
    given: dict[str, Any] = {
        "learning_rate": float(archive["step.parameters"][0]),
        "regularization": archive["regularization"],
        "average": bool(archive["average"]),
    }
    if archive["step"] == "power_law":
        given["schedule"] = PowerLaw(*archive["step.parameters"][1:].tolist())
    word = {"fixed": "budget", parsimony: "parsimony"}.get(archive["budget"])
    if word is not None:
        given[word] = float(archive["budget.parameters"][0])
    return given

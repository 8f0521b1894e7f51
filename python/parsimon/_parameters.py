"""Hyper-parameters: what each word may be, the same in every estimator, and who keeps them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from . import schedules
from ._checks import Check, check_flag, choice, count, is_number, number
from ._docs import documented
from ._threads import check_n_jobs
from .kernels import Kernel
from .kernels._naming import NAMES

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform as dataclass_transform  # noqa: PLC0414
else:

    def dataclass_transform() -> Any:
        """Do nothing: this is for type checkers."""
        return lambda function: function


def _check_kernel(name: str, value: Any) -> None:
    if isinstance(value, Kernel):
        return
    if not isinstance(value, str):
        raise ValueError(
            f"{name} must be a parsimon.kernels.Kernel or a name such as 'rbf'; got {value!r}."
        )
    if value != "auto" and value not in NAMES:
        raise ValueError(
            f"There is no kernel named {value!r}; use one of auto, {', '.join(NAMES)}."
        )


def _check_gamma(name: str, value: Any) -> None:
    named = isinstance(value, str) and value in ("auto", "scale", "median")
    if not named and not (is_number(value) and value > 0):
        raise ValueError(
            f"{name} must be a positive, finite number, 'auto', 'scale' or 'median'; got {value!r}."
        )


def check_refine(name: str, value: Any) -> None:
    """Refuse what says nothing about what is refined."""
    points = isinstance(value, (tuple, list)) and list(value) == ["points"]
    if not (points or isinstance(value, (bool, np.bool_))):
        raise ValueError(f"{name} must be True, False or ('points',); got {value!r}.")


_check_norm = number(optional=True)


def _check_budget(name: str, value: Any) -> None:
    if not isinstance(value, schedules.AdaptiveBudget):
        _check_norm(name, value)


def _check_half_life(name: str, value: Any) -> None:
    open_ended = value is None or (isinstance(value, str) and value == "auto")
    if not open_ended and not (is_number(value) and value > 0):
        raise ValueError(
            f"{name} must be a positive, finite number of samples, None (nothing is forgotten) or "
            f"'auto'; got {value!r}."
        )


def _check_schedule(name: str, value: Any) -> None:  # noqa: ARG001 - its sentence has the name
    schedules.resolve(value)


def _check_verbose(name: str, value: Any) -> None:
    if not isinstance(value, (int, np.integer, np.bool_)):
        raise ValueError(f"{name} must be an integer; got {value!r}.")


def _check_nothing(name: str, value: Any) -> None:
    """Leave it to whoever uses the value."""


# The words that several estimators have. One with another meaning for a word does not exist; one
# that allows less, or has words of its own, adds them to this table.
WORDS: dict[str, Check] = {
    "kernel": _check_kernel,
    "gamma": _check_gamma,
    "learning_rate": number(positive=True, auto=True),
    "tracking_rate": number(positive=True, auto=True, most=1),
    "parsimony": number(auto=True),
    "budget": _check_budget,
    "max_points": count(auto=True, optional=True),
    "compression": choice("remove", "merge"),
    "solver": choice("newton", "sgd"),
    "half_life": _check_half_life,
    "schedule": _check_schedule,
    "tracking_schedule": _check_schedule,
    "regularization": number(auto=True),
    "batch_size": count(),
    "epochs": count(auto=True),
    "shuffle": check_flag,
    "average": check_flag,
    "normalize_y": check_flag,
    "refit": check_flag,
    "refine": check_refine,
    "dtype": choice("float64", "float32"),
    "n_jobs": check_n_jobs,
    "random_state": _check_nothing,
    "verbose": _check_verbose,
}


Class = TypeVar("Class", bound=type)


@dataclass_transform()
def estimator(*tables: str) -> Callable[[Class], Class]:
    """Give a class the constructor that its annotated attributes spell out, and its docstrings.

    As scikit-learn wants it, the constructor keeps each hyper-parameter and does nothing else.
    """

    def make(cls: Class) -> Class:
        made: Any = dataclass(eq=False, repr=False, match_args=False)(cls)
        # It is no dataclass, which Dask, for one, would take to be its hyper-parameters alone.
        for mark in ("__dataclass_fields__", "__dataclass_params__", "__replace__"):
            if mark in vars(made):
                delattr(made, mark)
        documented(*tables)(made)
        return cls

    return make


def check_together(given: dict[str, Any]) -> None:
    """Refuse words that exclude each other."""
    if given.get("budget") is not None and is_number(given.get("parsimony")):
        raise ValueError(
            "Give budget, which is the budget itself, or parsimony, the constant of one that "
            "follows the learning rate, not both."
        )
    if given.get("refine") and given.get("solver") != "newton":
        raise ValueError(
            f"refine needs solver='newton', which solves for the weights of the points that have "
            f"moved; got solver={given.get('solver')!r}."
        )
    keeps_all = given.get("budget") == 0 or given.get("parsimony") == 0
    if given.get("solver") == "newton" and keeps_all and not is_number(given.get("max_points")):
        raise ValueError(
            "A budget or parsimony of 0 keeps every sample, and weights can only be solved on "
            "fewer points: give a positive one, or solver='sgd'."
        )

"""Checks of arguments that several modules share."""

from __future__ import annotations

from typing import Any

import numpy as np


def is_number(value: Any) -> bool:
    """Tell whether this is a finite real number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    try:
        return bool(np.isfinite(float(value)))
    except OverflowError:  # an integer beyond all doubles
        return False


def check_number(name: str, value: Any, *, positive: bool, auto: bool = False) -> None:
    """Refuse what is not a finite number, positive or at least not negative, or "auto"."""
    if auto and isinstance(value, str) and value == "auto":
        return
    if is_number(value) and (value > 0 or (value == 0 and not positive)):
        return
    wanted = "a positive, finite number" if positive else "a finite number, not negative"
    choice = ", or 'auto'" if auto else ""
    raise ValueError(f"{name} must be {wanted}{choice}; got {value!r}.")


def check_exclusive(estimator: Any, budget: str, parsimony: str) -> None:
    """Refuse a budget beside the constant of another one."""
    if getattr(estimator, budget) is not None and is_number(getattr(estimator, parsimony)):
        raise ValueError(
            f"Give {budget}, which is the budget itself, or {parsimony}, the constant of one that "
            f"follows the learning rate, not both."
        )


def check_count(name: str, value: Any, *, auto: bool = False) -> None:
    """Refuse what is not an integer of at least 1, or "auto"."""
    if auto and isinstance(value, str) and value == "auto":
        return
    integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if integer and 1 <= value <= np.iinfo(np.int64).max:
        return
    choice = ", or 'auto'" if auto else ""
    raise ValueError(f"{name} must be an integer of at least 1{choice}; got {value!r}.")


def check_flag(name: str, value: Any) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False; got {value!r}.")


def check_verbose(value: Any) -> None:
    """Refuse a verbosity that is not a number."""
    if not isinstance(value, (int, np.integer, np.bool_)):
        raise ValueError(f"verbose must be an integer; got {value!r}.")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse what is not one of these words."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")

"""Checks of arguments: each takes a name and a value, and refuses the value with a sentence."""

from __future__ import annotations

import datetime
import math
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray

# What it returns, if anything, is not for those who only check.
Check = Callable[[str, Any], object]

_LARGEST = np.iinfo(np.int64).max
_DATES = (np.datetime64, np.timedelta64, datetime.date, datetime.timedelta)
# Where calls are on their way: here, and in what scikit-learn (1.9) puts around `fit`.
_INSIDE = (
    str(Path(__file__).parent) + os.sep,
    str(Path(sklearn.__file__).parent / "callback") + os.sep,
)


def is_number(value: Any) -> bool:
    """Tell whether this is a finite real number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:  # an integer beyond all doubles
        return False


def is_integer(value: Any) -> bool:
    """Tell whether this is an integer."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def number(
    *, positive: bool = False, auto: bool = False, optional: bool = False, most: float = math.inf
) -> Check:
    """Return a check for finite numbers that are not negative, and maybe for "auto" or None."""
    wanted = "a positive, finite number" if positive else "a finite number, not negative"
    wanted += ", or 'auto'" if auto else ""
    also = "auto" if auto else None

    def check(name: str, value: Any) -> None:
        if (optional and value is None) or (isinstance(value, str) and value == also):
            return
        if not is_number(value) or value < 0 or (positive and value == 0):
            raise ValueError(f"{name} must be {wanted}; got {value!r}.")
        if value > most:
            raise ValueError(f"{name} must be at most {most:g}; got {value!r}.")

    return check


def count(*, auto: bool = False, optional: bool = False) -> Check:
    """Return a check for integers of at least 1, and maybe for "auto" or None."""
    wanted = "an integer of at least 1" + (", or 'auto'" if auto else "")
    also = "auto" if auto else None

    def check(name: str, value: Any) -> None:
        if (optional and value is None) or (isinstance(value, str) and value == also):
            return
        if not is_integer(value) or not 1 <= value <= _LARGEST:
            raise ValueError(f"{name} must be {wanted}; got {value!r}.")

    return check


def refuse_dates(X: Any) -> None:
    """Refuse samples with dates, which would become numbers of a unit that nobody chose."""
    if not isinstance(X, (list, tuple, np.ndarray)) and not hasattr(X, "columns"):
        return
    try:
        first = np.asarray(X[:1])
    except (TypeError, ValueError):  # which validation has a sentence for
        return
    if first.dtype.kind not in "mMOU":
        return
    all_dates = first.dtype.kind in "mM"
    values = [] if all_dates else first.ravel().tolist()
    dates = [j for j, value in enumerate(values) if _is_date(value)]
    if not (all_dates or dates):
        return
    column = 0 if all_dates else dates[0]
    name = repr(str(X.columns[column])) if hasattr(X, "columns") else str(column)
    raise _of_dates("Samples must be numbers", name)


def _is_date(value: Any) -> bool:
    """Tell whether this is a date, a period of pandas, or a text that is a date and no number."""
    if isinstance(value, _DATES) or hasattr(value, "to_timestamp"):
        return True
    if not isinstance(value, str) or not any(sign in value[1:] for sign in "-:"):
        return False
    try:
        float(value)
    except ValueError:
        pass
    else:  # such as 1e-3
        return False
    try:
        np.datetime64(value)
    except ValueError:
        return False
    return True


def refuse_dates_in(name: str, values: NDArray[Any]) -> None:
    """Refuse a column of dates, each of which would be a category of its own."""
    first = values[:1].tolist() if values.dtype == object else []
    if values.dtype.kind in ("m", "M") or any(isinstance(value, _DATES) for value in first):
        raise _of_dates("Columns must be numbers or text", repr(name))


def _of_dates(expected: str, column: str) -> ValueError:
    return ValueError(
        f"{expected}, but column {column} holds dates or durations. Give them in a unit of your "
        f"choice, such as hours: (t - t.min()) / numpy.timedelta64(1, 'h')."
    )


def choice(*words: str, optional: bool = False) -> Check:
    """Return a check for one of these words, and maybe for None."""

    def check(name: str, value: Any) -> None:
        if optional and value is None:
            return
        if not isinstance(value, str) or value not in words:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, words))}; got {value!r}.")

    return check


def check_flag(name: str, value: Any) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False; got {value!r}.")


check_count = count()


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, and name the line outside of this package from which it was called."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)

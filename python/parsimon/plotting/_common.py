"""What the displays share: matplotlib, imported when it is needed, and colours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

Array = NDArray[Any]

# Okabe and Ito's colours, which colour-blind readers can tell apart; black is the dictionary's.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#F0E442")


def pyplot() -> Any:
    """Import matplotlib's pyplot, or say how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "parsimon.plotting needs matplotlib, which is not installed; "
            "install it with: pip install 'parsimon[plot]'."
        ) from error
    return plt


def three_panels(ax: Any) -> Array:
    """Return three Axes, one above the other: those that were given, or new ones."""
    if ax is None:
        _, ax = pyplot().subplots(3, 1, sharex=True, figsize=(6.4, 6.4), layout="constrained")
    panels = np.asarray(ax, dtype=object).ravel()
    if len(panels) != 3:
        raise ValueError(f"ax must be three Axes, one for each panel; got {len(panels)}.")
    return panels


def final_step(estimator: Any) -> Any:
    """Return the estimator, or the one that a pipeline ends in."""
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


def class_colors(count: int) -> list[Any]:
    """Return a colour for each class."""
    if count <= len(PALETTE):
        return list(PALETTE[:count])
    from matplotlib import colormaps

    return list(colormaps["turbo"](np.linspace(0.05, 0.95, count)))


def rgb(color: Any) -> Array:
    """Return red, green and blue of any colour that matplotlib knows."""
    from matplotlib.colors import to_rgb

    return np.array(to_rgb(color))

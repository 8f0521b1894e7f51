"""What happened during training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ._common import PALETTE, Array, final_step, three_panels


class TraceDisplay:
    """What happened during training: loss, model order, and compression error within its budget.

    Use :meth:`from_estimator` to make one.

    Parameters
    ----------
    trace : mapping of str to ndarray
        An estimator's ``trace_``: arrays of equal length.

    Attributes
    ----------
    ax_ : ndarray of matplotlib Axes
        The panels, one above the other: loss, model order, compression error.
    figure_ : matplotlib Figure
        The figure.
    lines_ : dict of str to matplotlib Line2D
        The curves "loss", "model_order", "compression_error" and "budget".

    Examples
    --------
    >>> from parsimon import POLKClassifier
    >>> from parsimon.datasets import make_multidist
    >>> from parsimon.plotting import TraceDisplay
    >>> X, y = make_multidist(500, random_state=0)
    >>> display = TraceDisplay.from_estimator(POLKClassifier(random_state=0).fit(X, y))
    >>> [axes.get_ylabel() for axes in display.ax_]
    ['loss', 'model order', 'compression error']
    """

    def __init__(self, trace: Mapping[str, ArrayLike]) -> None:
        self.trace = {name: np.asarray(values) for name, values in trace.items()}

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, smoothing: int | None = None, ax: Any = None
    ) -> TraceDisplay:
        """Draw the trace of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator with a ``trace_``, or a pipeline that ends in one.
        smoothing : int, optional
            Mini-batches to average the loss over; by default a fiftieth of all.
        ax : array-like of three matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        display : TraceDisplay
            What was drawn.
        """
        check_is_fitted(estimator)
        final = final_step(estimator)
        if not hasattr(final, "trace_"):
            raise ValueError(
                f"{type(final).__name__} has no trace_; a TraceDisplay needs an estimator of "
                f"parsimon that learns from a stream."
            )
        return cls(final.trace_).plot(smoothing=smoothing, ax=ax)

    def plot(self, *, smoothing: int | None = None, ax: Any = None) -> TraceDisplay:
        """Draw the trace.

        Parameters
        ----------
        smoothing : int, optional
            Mini-batches to average the loss over; by default a fiftieth of all.
        ax : array-like of three matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        display : TraceDisplay
            Itself.
        """
        samples = self.trace["samples"]
        window = max(1, len(samples) // 50) if smoothing is None else smoothing
        if window < 1:
            raise ValueError(f"smoothing must be at least 1 mini-batch; got {smoothing}.")
        self.ax_ = three_panels(ax)
        self.figure_ = self.ax_[0].figure
        top, middle, bottom = self.ax_
        blue, orange = PALETTE[0], PALETTE[4]
        top.plot(samples, self.trace["loss"], color=blue, alpha=0.25, linewidth=0.8)
        curves = {
            "loss": (top, _moving_average(self.trace["loss"], window), {"color": blue}),
            "model_order": (middle, self.trace["model_order"], {"color": blue}),
            "compression_error": (bottom, self.trace["compression_error"], {"color": blue}),
            "budget": (bottom, self.trace["budget"], {"color": orange, "linestyle": "--"}),
        }
        self.lines_ = {
            name: axes.plot(samples, values, linewidth=1.5, **style)[0]
            for name, (axes, values, style) in curves.items()
        }
        for at in samples[self.trace.get("drift", np.zeros(len(samples))) > 0]:
            for axes in self.ax_:
                axes.axvline(at, color="0.4", linewidth=1, linestyle=":")
        bottom.legend([self.lines_["budget"]], ["budget"], frameon=False, loc="best")
        for axes, label in zip(self.ax_, ("loss", "model order", "compression error"), strict=True):
            axes.set_ylabel(label)
            axes.set_ylim(bottom=0)
            axes.spines[["top", "right"]].set_visible(False)
        middle.locator_params(axis="y", integer=True)
        bottom.set_xlabel("samples")
        return self


def _moving_average(values: Array, window: int) -> Array:
    """Average each value with those before it, `window` in all, fewer at the start."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(sums))
    starts = np.maximum(ends - window, 0)
    return np.asarray((sums[ends] - sums[starts]) / (ends - starts))

"""What a model was worth along a stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._common import PALETTE, three_panels

if TYPE_CHECKING:
    from parsimon.stream import PrequentialResult


class PrequentialDisplay:
    """Accuracy or error, points and time of a sample along a stream, and where it changed.

    Parameters
    ----------
    results : PrequentialResult or dict of str to PrequentialResult
        What :func:`parsimon.stream.prequential` returned; for several models, by their names.

    Attributes
    ----------
    ax_ : ndarray of matplotlib Axes
        The panels, one above the other: the metric, the points, the microseconds of a sample.
    figure_ : matplotlib Figure
        The figure.
    lines_ : dict of str to list of matplotlib Line2D
        The curves "metric", "points" and "microseconds", one for each model that has them, and
        "drift", the lines at the changes that were found.

    Examples
    --------
    >>> from parsimon import POLKClassifier
    >>> from parsimon.datasets import make_multidist
    >>> from parsimon.stream import in_blocks, prequential
    >>> X, y = make_multidist(1000, random_state=0)
    >>> blocks = in_blocks(X, y, rows=50)
    >>> result = prequential(POLKClassifier(), blocks, window=100)
    >>> [axes.get_ylabel() for axes in result.plot().ax_]
    ['accuracy', 'points', 'microseconds per sample']
    """

    def __init__(self, results: PrequentialResult | Mapping[str, PrequentialResult]) -> None:
        self.results = dict(results) if isinstance(results, Mapping) else {"": results}

    def plot(self, *, metric: str | None = None, ax: Any = None) -> PrequentialDisplay:
        """Draw the curves.

        Parameters
        ----------
        metric : str, optional
            Which metric; the first by default.
        ax : array-like of three matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        display : PrequentialDisplay
            Itself.
        """
        known = next(iter(self.results.values())).curves
        metric = next(iter(known)) if metric is None else metric
        missing = [name for name, result in self.results.items() if metric not in result.curves]
        if missing:
            raise ValueError(
                f"metric must be one of {', '.join(map(repr, known))}; got {metric!r}."
            )
        self.ax_ = three_panels(ax)
        self.figure_ = self.ax_[0].figure
        self.lines_: dict[str, list[Any]] = {"metric": [], "points": [], "microseconds": []}
        for number, (name, result) in enumerate(self.results.items()):
            curves = (result.curves[metric], result.points, result.microseconds)
            style = {"color": PALETTE[number % len(PALETTE)], "linewidth": 1.5, "label": name}
            for axes, curve, lines in zip(self.ax_, curves, self.lines_.values(), strict=True):
                if curve is not None:
                    lines.append(axes.plot(result.samples, curve, **style)[0])
        self._mark_changes()
        for axes, label in zip(
            self.ax_, (metric.replace("_", " "), "points", "microseconds per sample"), strict=True
        ):
            axes.set_ylabel(label)
            axes.spines[["top", "right"]].set_visible(False)
        for axes in self.ax_[1:]:
            axes.set_ylim(bottom=0)
        self.ax_[1].locator_params(axis="y", integer=True)
        self.ax_[-1].set_xlabel("samples")
        self._explain()
        return self

    def _mark_changes(self) -> None:
        self.lines_["drift"] = [
            axes.axvline(at, color=PALETTE[number % len(PALETTE)], linestyle=":", linewidth=1)
            for number, result in enumerate(self.results.values())
            for at in result.drift
            for axes in self.ax_
        ]

    def _explain(self) -> None:
        """Add a legend where there is something to explain."""
        handles = {
            line.get_label(): line for line in self.lines_["metric"] if len(self.results) > 1
        }
        if self.lines_["drift"]:
            handles["drift"] = self.lines_["drift"][0]
        if handles:
            self.ax_[0].legend(handles.values(), handles.keys(), frameon=False, loc="best")

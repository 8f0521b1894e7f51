"""Decision regions of a classifier in the plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted

from ._common import Array, class_colors, final_step, pyplot, rgb


@dataclass(eq=False, repr=False)
class DecisionSurfaceDisplay:
    """Decision regions of a classifier in the plane, with data and dictionary.

    Use :meth:`from_estimator` to make one.

    Parameters
    ----------
    xx0, xx1 : ndarray of shape (n_rows, n_columns)
        The grid, as from ``numpy.meshgrid``.
    scores : ndarray of shape (n_rows, n_columns, n_classes)
        Score of each class on the grid; the largest one decides.
    classes : ndarray of shape (n_classes,)
        Labels of the classes.
    X : ndarray of shape (n_samples, 2), optional
        Data to show.
    y : ndarray of shape (n_samples,), optional
        Their classes.
    dictionary : ndarray of shape (n_points, 2), optional
        The points of the model.
    feature_names : sequence of two str, optional
        Labels of the axes.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        What was drawn on.
    regions_, boundaries_ : list of matplotlib ContourSet
        The filled regions and the lines between them, one for each class that occurs.
    data_ : matplotlib PathCollection or None
        The data.
    dictionary_ : matplotlib PathCollection or None
        The points of the model.

    Examples
    --------
    >>> from parsimon import POLKClassifier
    >>> from parsimon.datasets import make_multidist
    >>> from parsimon.plotting import DecisionSurfaceDisplay
    >>> X, y = make_multidist(500, random_state=0)
    >>> model = POLKClassifier(random_state=0).fit(X, y)
    >>> display = DecisionSurfaceDisplay.from_estimator(model, X, y)
    >>> len(display.dictionary) == model.model_order_
    True
    """

    xx0: Array
    xx1: Array
    scores: Array
    classes: Array
    _: KW_ONLY
    X: Array | None = None
    y: Array | None = None
    dictionary: Array | None = None
    feature_names: Sequence[str] | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        grid_resolution: int = 300,
        margin: float = 0.06,
        ax: Any = None,
        **plot_options: Any,
    ) -> DecisionSurfaceDisplay:
        """Evaluate a fitted classifier on a grid and draw the regions.

        Parameters
        ----------
        estimator : classifier
            Any fitted classifier of two features. A pipeline's dictionary is carried back to the
            space of `X` if the steps before the classifier can do that.
        X : array-like of shape (n_samples, 2)
            Data, which set the range of the picture and are drawn on it.
        y : array-like of shape (n_samples,), optional
            Their classes, which give them colours.
        grid_resolution : int, default=300
            Points of the grid along each axis.
        margin : float, default=0.06
            Space around the data, as a fraction of their range.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **plot_options
            Options of :meth:`plot`.

        Returns
        -------
        display : DecisionSurfaceDisplay
            What was drawn.
        """
        pyplot()
        check_is_fitted(estimator)
        if not is_classifier(estimator):
            raise ValueError(
                f"Decision regions need a classifier; {type(estimator).__name__} is none."
            )
        if grid_resolution < 2:
            raise ValueError(f"grid_resolution must be at least 2; got {grid_resolution}.")
        points = check_array(X, dtype=np.float64, input_name="X")
        if points.shape[1] != 2:
            raise ValueError(
                f"Decision regions can be drawn for two features; X has {points.shape[1]}."
            )
        labels = None if y is None else np.asarray(y)
        check_consistent_length(points, labels)
        low, high = points.min(axis=0), points.max(axis=0)
        space = margin * np.where(high > low, high - low, 1.0)
        axes = np.linspace(low - space, high + space, grid_resolution).T
        xx0, xx1 = np.meshgrid(*axes)
        names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
        grid: Any = np.column_stack([xx0.ravel(), xx1.ravel()])
        if names is not None:
            grid = type(X)(grid, columns=X.columns)
        classes = np.asarray(estimator.classes_)
        display = cls(
            xx0,
            xx1,
            _scores(estimator, grid, classes).reshape(*xx0.shape, len(classes)),
            classes,
            X=points,
            y=labels,
            dictionary=_dictionary(estimator),
            feature_names=names,
        )
        return display.plot(ax=ax, **plot_options)

    def plot(
        self,
        *,
        ax: Any = None,
        colors: Sequence[Any] | None = None,
        data: bool = True,
        dictionary: bool = True,
        data_size: float | None = None,
        legend: bool = False,
    ) -> DecisionSurfaceDisplay:
        """Draw the regions, the data and the dictionary.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        colors : sequence of matplotlib colours, optional
            One for each class; a colour-blind-safe palette by default.
        data : bool, default=True
            Whether to draw the data.
        dictionary : bool, default=True
            Whether to draw the points of the model, as bold black dots.
        data_size : float, optional
            Area of a sample's dot; by default smaller the more samples there are.
        legend : bool, default=False
            Whether to name classes and dictionary beside the picture.

        Returns
        -------
        display : DecisionSurfaceDisplay
            Itself.
        """
        if ax is None:
            _, ax = pyplot().subplots(layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        shades = class_colors(len(self.classes)) if colors is None else list(colors)
        if len(shades) < len(self.classes):
            raise ValueError(
                f"colors must have one entry for each of the {len(self.classes)} classes; it has "
                f"{len(shades)}."
            )
        self._draw_regions(shades)
        self.data_ = self._draw_data(shades, data_size) if data else None
        self.dictionary_ = None
        if dictionary and self.dictionary is not None:
            bold = {"s": 52, "color": "black", "edgecolors": "white", "linewidths": 1.0}
            self.dictionary_ = ax.scatter(*self.dictionary.T, zorder=4, **bold)
        ax.set_xlim(self.xx0.min(), self.xx0.max())
        ax.set_ylim(self.xx1.min(), self.xx1.max())
        if self.feature_names is not None:
            ax.set(xlabel=self.feature_names[0], ylabel=self.feature_names[1])
        if legend:
            self._draw_legend(shades)
        return self

    def _draw_regions(self, shades: Sequence[Any]) -> None:
        self.regions_, self.boundaries_ = [], []
        grid = (self.xx0, self.xx1)
        # Of equal scores the first class wins, as with argmax: it is drawn last, on top.
        for k in reversed(range(len(self.classes))):
            others = np.delete(self.scores, k, axis=2)
            lead = self.scores[..., k] - others.max(axis=2, initial=self.scores.min() - 1.0)
            if lead.max() < 0:
                continue
            levels = [0.0, lead.max() + 1.0]
            tint = 0.3 * rgb(shades[k]) + 0.7
            self.regions_.append(
                self.ax_.contourf(*grid, lead, levels=levels, colors=[tint], zorder=1)
            )
            if lead.min() < 0 < lead.max():
                style = {"colors": "0.3", "linewidths": 0.8, "zorder": 3}
                self.boundaries_.append(self.ax_.contour(*grid, lead, levels=[0.0], **style))

    def _draw_data(self, shades: Sequence[Any], size: float | None) -> Any:
        if self.X is None:
            return None
        if size is None:
            size = float(np.clip(12000 / max(len(self.X), 1), 3.0, 24.0))
        # Classes share one collection: none is hidden under the next where they overlap.
        palette = np.array([rgb(shade) for shade in [*shades, "0.35"]])
        colors = palette[-1:]
        if self.y is not None:
            position = {label: k for k, label in enumerate(self.classes.tolist())}
            colors = palette[[position.get(label, -1) for label in self.y.tolist()]]
        return self.ax_.scatter(
            *self.X.T, c=colors, s=size, linewidths=0, alpha=0.8, zorder=2, rasterized=True
        )

    def _draw_legend(self, shades: Sequence[Any]) -> None:
        from matplotlib.lines import Line2D

        dot: dict[str, Any] = {"marker": "o", "linestyle": "none"}
        handles = [
            Line2D([], [], color=shade, label=str(label), **dot)
            for shade, label in zip(shades, self.classes, strict=False)
        ]
        if self.dictionary_ is not None:
            handles.append(Line2D([], [], color="black", label="dictionary", **dot))
        self.ax_.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)


def _dictionary(estimator: Any) -> Array | None:
    """Return the points of the model in the space of the data, or None if it has none there."""
    points = getattr(final_step(estimator), "dictionary_", None)
    if points is None or not isinstance(estimator, Pipeline) or len(estimator) == 1:
        return points
    before = estimator[:-1]
    return before.inverse_transform(points) if hasattr(before, "inverse_transform") else None


def _scores(estimator: Any, grid: Any, classes: Array) -> Array:
    """Score the classes so that the largest decides as ``predict`` does.

    Scores make smooth boundaries; where they say something else than ``predict`` (SVC may), or do
    not exist, votes take their place.
    """
    winners = np.searchsorted(classes, estimator.predict(grid))
    for method in ("decision_function", "predict_proba"):
        if hasattr(estimator, method):
            scores = np.asarray(getattr(estimator, method)(grid))
            if scores.ndim == 1:
                scores = np.column_stack([-scores, scores])
            if scores.shape[1] == len(classes) and np.array_equal(scores.argmax(axis=1), winners):
                return scores
    return np.asarray(np.eye(len(classes))[winners])

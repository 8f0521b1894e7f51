"""Points that speak for and against predictions, and shares of the features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from parsimon.explain import Prototypes, Shapley, prototypes, shapley_values

from ._common import PALETTE, Array, pyplot

_FOR, _AGAINST = PALETTE[0], PALETTE[4]
_INCHES = 1.1  # of an image


class PrototypesDisplay:
    """Which points of a model speak for and against its predictions.

    Use :meth:`from_estimator` to make one. There is a row for each sample. Images stand beside
    those of the points, with what each contributes above it; of other data there are bars.

    Parameters
    ----------
    prototypes : Prototypes
        What :func:`parsimon.explain.prototypes` returned.
    X : array-like of shape (n_samples, n_features)
        The samples.
    image_shape : tuple of int, optional
        Height and width, and the number of channels if there are several, if samples are images.

    Attributes
    ----------
    ax_ : ndarray of matplotlib Axes
        Of shape (n_samples, 1 + n_prototypes) for images, (n_samples, 1) for bars.
    figure_ : matplotlib Figure
        The figure.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from parsimon import POLKClassifier
    >>> from parsimon.plotting import PrototypesDisplay
    >>> X, y = load_digits(return_X_y=True)
    >>> model = POLKClassifier(random_state=0, epochs=1).fit(X[:600], y[:600])
    >>> display = PrototypesDisplay.from_estimator(model, X[600:602], image_shape=(8, 8))
    >>> display.ax_.shape
    (2, 6)
    """

    def __init__(
        self, prototypes: Prototypes, X: ArrayLike, *, image_shape: Sequence[int] | None = None
    ) -> None:
        self.prototypes = prototypes
        self.X = np.asarray(X, dtype=np.float64)
        self.image_shape = None if image_shape is None else tuple(image_shape)
        if self.image_shape is not None and np.prod(self.image_shape) != self.X.shape[1]:
            raise ValueError(
                f"image_shape must have as many pixels as X has features, {self.X.shape[1]}; got "
                f"{image_shape!r}."
            )

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: ArrayLike,
        *,
        n_prototypes: int = 5,
        output: int | None = None,
        samples: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        image_shape: Sequence[int] | None = None,
        ax: Any = None,
    ) -> PrototypesDisplay:
        """Draw the prototypes of a few samples.

        Parameters
        ----------
        model : estimator, pipeline or KernelExpansion
            Fitted.
        X : array-like of shape (n_samples, n_features)
            The samples, a few.
        n_prototypes : int, default=5
            How many points for each.
        output : int, optional
            Which output is explained; that of the predicted class by default.
        samples : array-like of shape (n_known, n_features), optional
            What the model was trained on: points are found in it.
        labels : array-like of shape (n_known,), optional
            Their labels, which are written below the points.
        image_shape : tuple of int, optional
            Height and width, if samples are images.
        ax : array-like of matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        display : PrototypesDisplay
            What was drawn.
        """
        found = prototypes(
            model, X, n_prototypes=n_prototypes, output=output, samples=samples, labels=labels
        )
        return cls(found, X, image_shape=image_shape).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> PrototypesDisplay:
        """Draw them.

        Parameters
        ----------
        ax : array-like of matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        display : PrototypesDisplay
            Itself.
        """
        count, shown = self.prototypes.points.shape
        columns = 1 if self.image_shape is None else 1 + shown
        width = 4.8 if self.image_shape is None else _INCHES * columns
        height = (0.28 * shown + 0.7 if self.image_shape is None else 1.35 * _INCHES) * count
        self.ax_ = _grid(ax, (count, columns), (width, height))
        self.figure_ = self.ax_.ravel()[0].figure
        for row, axes in enumerate(self.ax_):
            (self._bars if self.image_shape is None else self._images)(row, axes)
        return self

    def _name(self, row: int, k: int) -> str:
        found = self.prototypes
        if found.labels is not None and found.samples[row, k] >= 0:  # type: ignore[index]
            return str(found.labels[row, k])
        return f"point {found.points[row, k]}"

    def _images(self, row: int, axes: Array) -> None:
        shape, found = self.image_shape or (), self.prototypes
        pictures = [self.X[row], *found.rows[row]]
        low, high = min(map(np.min, pictures)), max(map(np.max, pictures))
        for panel, picture in zip(axes, pictures, strict=True):
            panel.imshow(np.reshape(picture, shape), cmap="gray_r", vmin=low, vmax=high)
            panel.set(xticks=[], yticks=[])
        axes[0].set_title(f"{found.values[row]:.3g}", fontsize=9)
        for k, panel in enumerate(axes[1:]):
            contribution = found.contributions[row, k]
            color = _FOR if contribution >= 0 else _AGAINST
            panel.set_title(f"{contribution:+.2g}", fontsize=9, color=color)
            panel.set_xlabel(self._name(row, k), fontsize=8)

    def _bars(self, row: int, axes: Array) -> None:
        (panel,), found = axes, self.prototypes
        names = [self._name(row, k) for k in range(found.points.shape[1])]
        parts = [*found.contributions[row], found.rest[row], found.intercept[row]]
        _draw_bars(panel, [*names, "all others", "intercept"], parts)
        panel.set_title(f"{found.values[row]:.3g}", fontsize=9)


class ShapleyDisplay:
    """Shares of the features in predictions.

    Use :meth:`from_estimator` to make one. Of a single sample there are bars, of several one point
    for each of them and each feature, features with the largest shares first.

    Parameters
    ----------
    shapley : Shapley
        What :func:`parsimon.explain.shapley_values` returned.
    feature_names : sequence of str, optional
        What the features are called.
    output : int, default=0
        Which output, if there are several.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The plot.
    figure_ : matplotlib Figure
        The figure.
    features_ : ndarray of int
        The features that are shown, from the top.

    Examples
    --------
    >>> from parsimon import POLKRegressor
    >>> from parsimon.plotting import ShapleyDisplay
    >>> from sklearn.datasets import make_friedman1
    >>> X, y = make_friedman1(500, random_state=0)  # five of ten features matter
    >>> model = POLKRegressor(random_state=0).fit(X, y)
    >>> display = ShapleyDisplay.from_estimator(model, X[:50], background=X)
    >>> sorted(display.features_[:5].tolist())
    [0, 1, 2, 3, 4]
    """

    def __init__(
        self, shapley: Shapley, *, feature_names: Sequence[str] | None = None, output: int = 0
    ) -> None:
        values = shapley.values
        count = 1 if values.ndim == 2 else values.shape[2]
        if type(output) is not int or not 0 <= output < count:
            raise ValueError(f"output must be an integer from 0 to {count - 1}; got {output!r}.")
        self.shapley = shapley
        self.shares = values if values.ndim == 2 else values[:, :, output]
        names = [f"x{j}" for j in range(values.shape[1])]
        self.feature_names = names if feature_names is None else [*map(str, feature_names)]
        if len(self.feature_names) != values.shape[1]:
            raise ValueError(
                f"feature_names must have {values.shape[1]} names; got {len(self.feature_names)}."
            )

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: ArrayLike,
        *,
        background: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        output: int = 0,
        max_features: int = 20,
        ax: Any = None,
    ) -> ShapleyDisplay:
        """Draw the shares of the features in the predictions for some samples.

        Parameters
        ----------
        model : estimator, pipeline or KernelExpansion
            Fitted, with a kernel that :func:`parsimon.explain.shapley_values` takes.
        X : array-like of shape (n_samples, n_features)
            The samples.
        background : array-like of shape (n_background, n_features), optional
            Samples over which what is unknown is averaged.
        feature_names : sequence of str, optional
            What the features are called; the model's ``feature_names_in_`` by default, if it has
            them.
        output : int, default=0
            Which output, if there are several.
        max_features : int, default=20
            How many features are shown.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        display : ShapleyDisplay
            What was drawn.
        """
        found = shapley_values(model, X, background=background)
        if feature_names is None:
            feature_names = getattr(model, "feature_names_in_", None)
        made = cls(found, feature_names=feature_names, output=output)
        return made.plot(max_features=max_features, ax=ax)

    def plot(self, *, max_features: int = 20, ax: Any = None) -> ShapleyDisplay:
        """Draw them.

        Parameters
        ----------
        max_features : int, default=20
            How many features are shown.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        display : ShapleyDisplay
            Itself.
        """
        size = np.abs(self.shares).mean(axis=0)
        self.features_ = np.argsort(-size, kind="stable")[:max_features]
        shape = (5.6, 0.26 * len(self.features_) + 0.8)
        self.ax_ = _grid(ax, (1, 1), shape)[0, 0]
        self.figure_ = self.ax_.figure
        names = [self.feature_names[j] for j in self.features_]
        if len(self.shares) == 1:
            _draw_bars(self.ax_, names, self.shares[0, self.features_])
        else:
            places = np.arange(len(names))
            for place, j in zip(places, self.features_, strict=True):
                at = np.full(len(self.shares), place)
                self.ax_.plot(self.shares[:, j], at, ".", color=_FOR, alpha=0.4, markersize=4)
            _name_rows(self.ax_, names)
        self.ax_.set_xlabel("share in the prediction")
        return self


def _grid(ax: Any, shape: tuple[int, int], size: tuple[float, float]) -> Array:
    """Return Axes in rows and columns: those that were given, or new ones."""
    if ax is None:
        more = {"figsize": size, "layout": "constrained", "squeeze": False}
        _, ax = pyplot().subplots(*shape, **more)
    panels = np.asarray(ax, dtype=object)
    if panels.size != shape[0] * shape[1]:
        raise ValueError(f"ax must be {shape[0]} x {shape[1]} Axes; got {panels.size}.")
    return panels.reshape(shape)


def _draw_bars(axes: Any, names: Sequence[str], values: Any) -> None:
    colors = [_FOR if value >= 0 else _AGAINST for value in values]
    axes.barh(np.arange(len(names)), values, color=colors, height=0.7)
    _name_rows(axes, names)


def _name_rows(axes: Any, names: Sequence[str]) -> None:
    axes.set_yticks(np.arange(len(names)), names, fontsize=8)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.axvline(0, color="0.4", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)

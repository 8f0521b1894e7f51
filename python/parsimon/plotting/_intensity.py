"""Intensities and densities on a line or in the plane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from parsimon.spppot._polygons import Polygons

from ._common import PALETTE, Array, pyplot, rgb
from ._densities import (
    Quantity,
    along,
    band_around,
    blank_outside,
    check_estimator,
    check_points,
    check_truth,
    evaluate,
    split_dictionary,
)

# Points of a grid that are drawn in the plane, at most: more of them hide what is below.
_MOST_NODES = 500


@dataclass(eq=False, repr=False)
class IntensityDisplay:
    """An intensity or density: a curve on a line, a heat map in the plane.

    Use :meth:`from_estimator` to make one.

    Parameters
    ----------
    grid : sequence of one or two ndarrays
        Where the values are, along each feature, in ascending order and evenly spaced.
    values : ndarray of shape (len(grid[0]),) or (len(grid[0]), len(grid[1]))
        The intensity or density there; in the plane NaN outside of a window.
    domain : ndarray of shape (n_features, 2)
        Range of the picture.
    quantity : {"intensity", "density", "std"}, default="intensity"
        What the values are.
    band : ndarray of shape (2, len(grid[0])), optional
        On a line: between which values 95 % of the probability are.
    X : ndarray of shape (n_points, n_features), optional
        Data to show.
    truth : ndarray of the shape of `values`, optional
        What the values should be; only on a line.
    nodes : ndarray of shape (n_nodes, n_features), optional
        Points of the model that are nodes of its grid.
    samples : ndarray of shape (n_samples, n_features), optional
        Points of the model that were learned from data.
    window : sequence of ndarrays of shape (n_corners, 2), optional
        In the plane: rings of polygons to draw.
    feature_names : sequence of str, optional
        Labels of the axes.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        What was drawn on.
    line_, truth_ : matplotlib Line2D or None
        On a line: the curve, and the truth.
    band_ : matplotlib PolyCollection or None
        On a line: what is known of the curve.
    mesh_ : matplotlib QuadMesh or None
        In the plane: the heat map.
    colorbar_ : matplotlib Colorbar or None
        Its scale.
    data_ : matplotlib Line2D, PathCollection or None
        The data: a rug on a line, dots in the plane.
    nodes_, samples_ : matplotlib PathCollection or None
        The points of the model.

    Examples
    --------
    >>> from parsimon import SPPPOTIntensity
    >>> from parsimon.datasets import make_poisson_gaussian
    >>> from parsimon.plotting import IntensityDisplay
    >>> X, density = make_poisson_gaussian(2000, random_state=0, return_density=True)
    >>> model = SPPPOTIntensity(domain=[(0, 1)], random_state=0).fit(X)
    >>> display = IntensityDisplay.from_estimator(model, X, truth=density, quantity="density")
    >>> display.values.shape
    (500,)
    """

    grid: Sequence[Array]
    values: Array
    domain: Array
    _: KW_ONLY
    quantity: Quantity = "intensity"
    band: Array | None = None
    X: Array | None = None
    truth: Array | None = None
    nodes: Array | None = None
    samples: Array | None = None
    window: Sequence[Array] | None = None
    feature_names: Sequence[str] | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike | None = None,
        *,
        truth: Callable[[Array], ArrayLike] | ArrayLike | None = None,
        quantity: Quantity = "intensity",
        band: bool = False,
        resolution: int | None = None,
        ax: Any = None,
        **plot_options: Any,
    ) -> IntensityDisplay:
        """Evaluate a fitted intensity on its domain and draw it.

        Parameters
        ----------
        estimator : estimator
            A fitted intensity of one or two features, such as :class:`parsimon.SPPPOTIntensity`.
        X : array-like of shape (n_points, n_features), optional
            Points to show.
        truth : callable or array-like of shape (resolution,), optional
            On a line, what the quantity should be: a function that takes points of shape
            (resolution, 1) and returns one value for each, or the values at
            ``numpy.linspace(low, high, resolution)`` over the estimator's domain.
        quantity : {"intensity", "density", "std"}, default="intensity"
            What to draw. An intensity is the density times the number of points that the estimator
            has seen; "std" is the intensity's standard deviation, which ``solver="newton"`` knows.
        band : bool, default=False
            Whether to draw, on a line, where the intensity or density is with a probability of
            95 %: 1.96 standard deviations of its logarithm on either side.
        resolution : int, optional
            Points to evaluate along each feature; by default 500 on a line and 200 in the plane.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **plot_options
            Options of :meth:`plot`.

        Returns
        -------
        display : IntensityDisplay
            What was drawn.
        """
        pyplot()
        domain = check_estimator(estimator, quantity)
        n_features = len(domain)
        if resolution is None:
            resolution = 500 if n_features == 1 else 200
        if resolution < 2:
            raise ValueError(f"resolution must be at least 2; got {resolution}.")
        points = check_points(X, n_features)
        names = getattr(estimator, "feature_names_in_", getattr(X, "columns", None))
        grid = [along(low, high, resolution, middles=n_features == 2) for low, high in domain]
        at = _nodes(grid)
        shape = (resolution,) * n_features
        nodes, samples = split_dictionary(estimator)
        values = blank_outside(estimator, at, evaluate(estimator, at, quantity))
        display = cls(
            grid,
            values.reshape(shape),
            domain,
            quantity=quantity,
            band=band_around(estimator, at, values, quantity) if band else None,
            X=points,
            truth=check_truth(truth, at),
            nodes=nodes,
            samples=samples,
            window=getattr(estimator, "window_", None),
            feature_names=None if names is None else [str(name) for name in names],
        )
        return display.plot(ax=ax, **plot_options)

    def plot(
        self,
        *,
        ax: Any = None,
        data: bool = True,
        dictionary: bool = True,
        max_points: int = 2000,
        colormap: Any = "viridis",
        colorbar: bool = True,
        legend: bool = True,
        aspect: Any = "auto",
    ) -> IntensityDisplay:
        """Draw the intensity, the data and the dictionary.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        data : bool, default=True
            Whether to draw the data.
        dictionary : bool, default=True
            Whether to draw the points of the model.
        max_points : int, default=2000
            Of more points than this, only this many are drawn, taken evenly from all.
        colormap : matplotlib Colormap or its name, default="viridis"
            Colours of the heat map.
        colorbar : bool, default=True
            Whether to draw the scale of the heat map.
        legend : bool, default=True
            Whether to name what is drawn.
        aspect : {"auto", "equal"} or float, default="auto"
            In the plane: how long a unit of the second feature is, in units of the first.

        Returns
        -------
        display : IntensityDisplay
            Itself.
        """
        if max_points < 1:
            raise ValueError(f"max_points must be at least 1; got {max_points}.")
        if ax is None:
            _, ax = pyplot().subplots(layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        nothing: Any = None
        self.line_ = self.truth_ = self.band_ = self.mesh_ = self.colorbar_ = nothing
        self.data_ = self.nodes_ = self.samples_ = nothing
        X = _thin(self.X, max_points) if data else None
        if len(self.grid) == 1:
            self._draw_curve(X, dictionary)
        else:
            self._draw_map(X, dictionary, max_points, colormap)
            ax.set_aspect(aspect)
            if colorbar:
                label = _LABELS.get(self.quantity, self.quantity)
                self.colorbar_ = self.figure_.colorbar(self.mesh_, ax=ax, label=label, pad=0.02)
                self.colorbar_.outline.set_visible(False)
        if self.feature_names is not None:
            ax.set(**dict(zip(("xlabel", "ylabel"), self.feature_names, strict=False)))
        if legend:
            self._draw_legend()
        return self

    def _draw_curve(self, X: Array | None, dictionary: bool) -> None:
        ax, x = self.ax_, self.grid[0]
        blue, orange = PALETTE[0], PALETTE[4]
        curves = [self.values] if self.truth is None else [self.values, self.truth]
        highest = max(np.max(curves), 0.0 if self.band is None else float(self.band.max()))
        top, bottom = 1.06 * highest or 1.0, min(0.0, 1.06 * np.min(curves))
        if X is not None:  # a rug, below the curve
            strip = bottom - 0.03 * (top - bottom)
            rug = {"color": "0.1", "markersize": 8, "markeredgewidth": 0.7, "rasterized": True}
            alpha = _opacity(X)
            heights = np.full(len(X), strip)
            (self.data_,) = ax.plot(X[:, 0], heights, "|", alpha=alpha, zorder=2, **rug)
            bottom = strip - 0.03 * (top - bottom)
        ax.axhline(0, color="0.75", linewidth=0.6, zorder=1)
        label = _LABELS.get(self.quantity, self.quantity)
        shade = {"color": blue, "linewidth": 0, "zorder": 1}
        if self.band is None:
            ax.fill_between(x, self.values, alpha=0.12, **shade)
        else:
            self.band_ = ax.fill_between(x, *self.band, alpha=0.25, label="95 % band", **shade)
        (self.line_,) = ax.plot(x, self.values, color=blue, label=label, zorder=3)
        if self.truth is not None:
            style = {"color": orange, "linestyle": "--", "linewidth": 1.3, "zorder": 4}
            (self.truth_,) = ax.plot(x, self.truth, label="truth", **style)
        if dictionary:
            small = {"s": 9, "color": "white", "edgecolors": blue, "linewidths": 0.8}
            self.nodes_ = self._mark(self.nodes, label="nodes", **small)
            bold = {"s": 22, "color": "black", "edgecolors": "white", "linewidths": 0.6}
            self.samples_ = self._mark(self.samples, label="learned points", **bold)
        ax.set(xlim=self.domain[0], ylim=(bottom, top), ylabel=label)
        ax.spines[["top", "right"]].set_visible(False)

    def _draw_map(self, X: Array | None, dictionary: bool, max_points: int, colormap: Any) -> None:
        ax = self.ax_
        edges = [
            np.linspace(low, high, len(at) + 1)
            for (low, high), at in zip(self.domain, self.grid, strict=True)
        ]
        values = self.values
        if self.window is not None:  # there is nothing outside, not even a colour
            inside = Polygons(list(self.window)).contain(_nodes(self.grid)).reshape(values.shape)
            values = np.where(inside, values, np.nan)
            for ring in self.window:
                ax.plot(*np.vstack([ring, ring[:1]]).T, color="black", linewidth=0.8, zorder=3)
        lowest = min(0.0, float(np.nanmin(values)))
        self.mesh_ = ax.pcolormesh(
            *edges, values.T, cmap=colormap, vmin=lowest, rasterized=True, zorder=1
        )
        if X is not None:  # black with a white rim shows on any colour
            size = float(np.clip(4000 / max(len(X), 1), 3.0, 12.0))
            dots = {"color": "black", "edgecolors": "white", "rasterized": True}
            self.data_ = ax.scatter(
                *X.T, s=size, linewidths=0.1 * size**0.5, label="data", zorder=2, **dots
            )
        if dictionary:
            if self.nodes is not None and len(self.nodes) <= _MOST_NODES:
                inks = [_contrast(color) for color in self._colors_below(self.nodes)]
                small = {"s": 10, "marker": "+", "color": inks, "alpha": 0.6, "linewidths": 0.6}
                self.nodes_ = self._mark(self.nodes, label="nodes", **small)
            bold = {"s": 30, "marker": "D", "color": PALETTE[4], "edgecolors": "white"}
            samples = _thin(self.samples, max_points)
            self.samples_ = self._mark(samples, label="learned points", linewidths=0.9, **bold)
        ax.set(xlim=self.domain[0], ylim=self.domain[1])

    def _colors_below(self, points: Array) -> Any:
        """Return the colours of the map at points; white where there is none."""
        low, high = np.asarray(self.domain, dtype=float).T
        shape = np.array(self.values.shape)
        at = (points - low) / (high - low) * shape
        column, row = np.clip(at.astype(np.int64), 0, shape - 1).T
        drawn = np.ma.filled(self.mesh_.get_array(), np.nan).reshape(shape[::-1])[row, column]
        colors = self.mesh_.cmap(self.mesh_.norm(drawn))
        return np.where(np.isnan(drawn)[:, None], 1.0, colors)

    def _mark(self, points: Array | None, **style: Any) -> Any:
        """Mark points of the model: on the curve, or where they are in the plane."""
        if points is None or len(points) == 0:
            return None
        if points.shape[1] == 1:
            height = np.interp(points[:, 0], self.grid[0], self.values)
            points = np.column_stack([points[:, 0], height])
        return self.ax_.scatter(*points.T, zorder=5, **style)

    def _draw_legend(self) -> None:
        """Name what is drawn besides the intensity, above the picture: nothing is hidden."""
        from matplotlib.lines import Line2D

        artists = [self.line_, self.band_, self.truth_, self.nodes_, self.samples_]
        handles: list[Any] = [artist for artist in artists if artist is not None]
        if self.data_ is not None:  # one mark among thousands would be too faint here
            mark, size = ("o", 4.0) if self.mesh_ is not None else ("|", 8.0)
            style: dict[str, Any] = {"linestyle": "none", "marker": mark, "markersize": size}
            if self.mesh_ is not None:
                style["markeredgecolor"] = "white"
            handles.append(Line2D([], [], color="black", label="data", **style))
        if self.nodes_ is not None and self.mesh_ is not None:  # the map's ink would be lost here
            at = handles.index(self.nodes_)
            style = {"linestyle": "none", "marker": "+", "markersize": 5}
            handles[at] = Line2D([], [], color="black", label="nodes", **style)
        if not handles or handles == [self.line_]:
            return
        place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "ncols": min(len(handles), 4)}
        self.ax_.legend(handles=handles, frameon=False, columnspacing=1.2, **place)


# What is written beside an axis.
_LABELS = {"std": "standard deviation of the intensity"}


def _nodes(grid: Sequence[Array]) -> Array:
    return np.stack(np.meshgrid(*grid, indexing="ij"), axis=-1).reshape(-1, len(grid))


def _thin(X: Array | None, count: int) -> Array | None:
    if X is None or len(X) <= count:
        return X
    return np.asarray(X[np.linspace(0, len(X) - 1, count).astype(np.int64)])


def _opacity(X: Array) -> float:
    """Make the marks of a rug fainter the more there are, so that they add up to a density."""
    return float(np.clip(100 / max(len(X), 1), 0.08, 0.7))


def _contrast(color: Any) -> str:
    """Choose the ink that can be seen on a colour, by its luminance."""
    return "white" if rgb(color) @ (0.299, 0.587, 0.114) < 0.5 else "black"

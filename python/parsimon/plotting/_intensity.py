"""Intensities and densities on a line or in the plane."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, check_is_fitted

from ._common import PALETTE, Array, pyplot, rgb

Quantity = Literal["intensity", "density"]


@dataclass(eq=False, repr=False)
class IntensityDisplay:
    """An intensity or density: a curve on a line, a heat map in the plane.

    Use :meth:`from_estimator` to make one.

    Parameters
    ----------
    grid : sequence of one or two ndarrays
        Where the values are, along each feature, in ascending order and evenly spaced.
    values : ndarray of shape (len(grid[0]),) or (len(grid[0]), len(grid[1]))
        The intensity or density there.
    domain : ndarray of shape (n_features, 2)
        Range of the picture.
    quantity : {"intensity", "density"}, default="intensity"
        What the values are.
    X : ndarray of shape (n_points, n_features), optional
        Data to show.
    truth : ndarray of the shape of `values`, optional
        What the values should be; only on a line.
    nodes : ndarray of shape (n_nodes, n_features), optional
        Points of the model that are nodes of its grid.
    samples : ndarray of shape (n_samples, n_features), optional
        Points of the model that were learned from data.
    feature_names : sequence of str, optional
        Labels of the axes.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        What was drawn on.
    line_, truth_ : matplotlib Line2D or None
        On a line: the curve, and the truth.
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
    X: Array | None = None
    truth: Array | None = None
    nodes: Array | None = None
    samples: Array | None = None
    feature_names: Sequence[str] | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike | None = None,
        *,
        truth: Callable[[Array], ArrayLike] | ArrayLike | None = None,
        quantity: Quantity = "intensity",
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
        quantity : {"intensity", "density"}, default="intensity"
            What to draw. An intensity is the density times the number of points that the estimator
            has seen.
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
        domain = _check_estimator(estimator, quantity)
        n_features = len(domain)
        if resolution is None:
            resolution = 500 if n_features == 1 else 200
        if resolution < 2:
            raise ValueError(f"resolution must be at least 2; got {resolution}.")
        points = _check_points(X, n_features)
        names = getattr(estimator, "feature_names_in_", getattr(X, "columns", None))
        grid = [_along(low, high, resolution, middles=n_features == 2) for low, high in domain]
        at = np.stack(np.meshgrid(*grid, indexing="ij"), axis=-1).reshape(-1, n_features)
        shape = (resolution,) * n_features
        nodes, samples = _split_dictionary(estimator)
        display = cls(
            grid,
            _evaluate(estimator, at, quantity).reshape(shape),
            domain,
            quantity=quantity,
            X=points,
            truth=_check_truth(truth, at),
            nodes=nodes,
            samples=samples,
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
        self.line_ = self.truth_ = self.mesh_ = self.colorbar_ = nothing
        self.data_ = self.nodes_ = self.samples_ = nothing
        X = _thin(self.X, max_points) if data else None
        if len(self.grid) == 1:
            self._draw_curve(X, dictionary)
        else:
            self._draw_map(X, dictionary, colormap)
            if colorbar:
                self.colorbar_ = self.figure_.colorbar(self.mesh_, ax=ax, label=self.quantity)
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
        top, bottom = 1.06 * np.max(curves) or 1.0, min(0.0, 1.06 * np.min(curves))
        if X is not None:  # a rug, below the curve
            strip = bottom - 0.03 * (top - bottom)
            rug = {"color": "0.1", "markersize": 8, "markeredgewidth": 0.7, "rasterized": True}
            alpha = _opacity(X)
            heights = np.full(len(X), strip)
            (self.data_,) = ax.plot(X[:, 0], heights, "|", alpha=alpha, zorder=2, **rug)
            bottom = strip - 0.03 * (top - bottom)
        ax.axhline(0, color="0.75", linewidth=0.6, zorder=1)
        ax.fill_between(x, self.values, color=blue, alpha=0.12, linewidth=0, zorder=1)
        (self.line_,) = ax.plot(x, self.values, color=blue, label=self.quantity, zorder=3)
        if self.truth is not None:
            style = {"color": orange, "linestyle": "--", "linewidth": 1.3, "zorder": 4}
            (self.truth_,) = ax.plot(x, self.truth, label="truth", **style)
        if dictionary:
            small = {"s": 9, "color": "white", "edgecolors": blue, "linewidths": 0.8}
            self.nodes_ = self._mark(self.nodes, label="nodes", **small)
            bold = {"s": 22, "color": "black", "edgecolors": "white", "linewidths": 0.6}
            self.samples_ = self._mark(self.samples, label="learned points", **bold)
        ax.set(xlim=self.domain[0], ylim=(bottom, top), ylabel=self.quantity)
        ax.spines[["top", "right"]].set_visible(False)

    def _draw_map(self, X: Array | None, dictionary: bool, colormap: Any) -> None:
        ax = self.ax_
        edges = [
            np.linspace(low, high, len(at) + 1)
            for (low, high), at in zip(self.domain, self.grid, strict=True)
        ]
        lowest = min(0.0, float(np.min(self.values)))
        self.mesh_ = ax.pcolormesh(
            *edges, self.values.T, cmap=colormap, vmin=lowest, rasterized=True, zorder=1
        )
        ink = _contrast(self.mesh_.cmap(0.0))
        if X is not None:
            size = float(np.clip(4000 / max(len(X), 1), 2.0, 12.0))
            faint = {"color": ink, "alpha": 0.45, "linewidths": 0, "rasterized": True}
            self.data_ = ax.scatter(*X.T, s=size, zorder=2, **faint)
        if dictionary:
            size = 14.0 if self.nodes is None or len(self.nodes) <= 200 else 7.0
            small = {"s": size, "marker": "+", "color": ink, "alpha": 0.6, "linewidths": 0.6}
            self.nodes_ = self._mark(self.nodes, label="nodes", **small)
            bold = {"s": 30, "color": "black", "edgecolors": "white", "linewidths": 0.9}
            self.samples_ = self._mark(self.samples, label="learned points", **bold)
        ax.set(xlim=self.domain[0], ylim=self.domain[1])

    def _mark(self, points: Array | None, **style: Any) -> Any:
        """Mark points of the model: on the curve, or where they are in the plane."""
        if points is None or len(points) == 0:
            return None
        if points.shape[1] == 1:
            height = np.interp(points[:, 0], self.grid[0], self.values)
            points = np.column_stack([points[:, 0], height])
        return self.ax_.scatter(*points.T, zorder=5, **style)

    def _draw_legend(self) -> None:
        """Name what is drawn besides the intensity."""
        from matplotlib.lines import Line2D

        artists = {"truth": self.truth_, "nodes": self.nodes_, "samples": self.samples_}
        handles: list[Any] = [artist for artist in artists.values() if artist is not None]
        plane = self.mesh_ is not None
        ground = self.mesh_.cmap(0.0) if plane else "white"
        ink = _contrast(ground)
        if self.data_ is not None:  # one mark among thousands would be too faint here
            mark, size = ("o", 2.5) if plane else ("|", 8.0)
            style: dict[str, Any] = {"linestyle": "none", "marker": mark, "markersize": size}
            handles.append(Line2D([], [], color=ink, label="data", **style))
        if not handles:
            return
        if plane:  # on the colour that the map has where nothing is, so that light marks show
            self.ax_.legend(handles=handles, facecolor=ground, labelcolor=ink, framealpha=0.8)
        else:
            self.ax_.legend(handles=[self.line_, *handles], frameon=False)


def _check_estimator(estimator: Any, quantity: Quantity) -> Array:
    """Return the domain of a fitted intensity that can be drawn."""
    check_is_fitted(estimator)
    if not hasattr(estimator, "domain_"):
        raise ValueError(
            f"An IntensityDisplay needs an intensity with a domain, such as SPPPOTIntensity; "
            f"{type(estimator).__name__} has no domain_."
        )
    if quantity not in ("intensity", "density"):
        raise ValueError(f'quantity must be "intensity" or "density"; got {quantity!r}.')
    domain = np.asarray(estimator.domain_)
    if len(domain) > 2:
        raise ValueError(
            f"Intensities can be drawn for one or two features; {type(estimator).__name__} has "
            f"learned from {len(domain)}."
        )
    return domain


def _check_points(X: ArrayLike | None, n_features: int) -> Array | None:
    if X is None:
        return None
    points: Array = check_array(X, dtype=np.float64, input_name="X", ensure_min_samples=0)
    if points.shape[1] != n_features:
        raise ValueError(
            f"X must have the {n_features} features that the estimator has learned from; it has "
            f"{points.shape[1]}."
        )
    return points


def _check_truth(truth: Callable[[Array], ArrayLike] | ArrayLike | None, at: Array) -> Array | None:
    if truth is None:
        return None
    if at.shape[1] != 1:
        raise ValueError(
            f"truth can be drawn for one feature; the estimator has learned from {at.shape[1]}."
        )
    values = np.asarray(truth(at) if callable(truth) else truth, dtype=np.float64)
    if values.size != len(at):
        raise ValueError(
            f"truth must give one value for each of the {len(at)} points of the curve; it has the "
            f"shape {values.shape}."
        )
    return values.reshape(len(at))


def _along(low: float, high: float, resolution: int, *, middles: bool) -> Array:
    """Return evenly spaced points with the ends, or the middles of as many cells."""
    points = np.linspace(low, high, resolution + middles)
    return (points[:-1] + points[1:]) / 2 if middles else points


def _evaluate(estimator: Any, at: Array, quantity: Quantity) -> Array:
    with warnings.catch_warnings():  # the grid is no data frame, even if the data were one
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        if quantity == "intensity":
            return np.asarray(estimator.intensity(at))
        return np.asarray(np.exp(estimator.score_samples(at)))


def _split_dictionary(estimator: Any) -> tuple[Array, Array]:
    """Return the points of the model that are nodes of its grid, and those that are not."""
    nodes = {tuple(node) for node in np.asarray(estimator.nodes_).tolist()}
    dictionary = np.asarray(estimator.dictionary_)
    is_node = np.array([tuple(point) in nodes for point in dictionary.tolist()], dtype=bool)
    return dictionary[is_node], dictionary[~is_node]


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

"""What an intensity is where it is drawn, checked and evaluated."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, check_is_fitted

from ._common import Array

Quantity = Literal["intensity", "density", "std"]
# Of a normal distribution, half the width of 95 %.
_WIDE = 1.96


def check_estimator(estimator: Any, quantity: Quantity) -> Array:
    """Return the domain of a fitted intensity that can be drawn."""
    check_is_fitted(estimator)
    if hasattr(estimator, "intensities_"):
        raise ValueError(
            f"{type(estimator).__name__} has one intensity for each mark: draw one of its "
            f"intensities_, such as intensities_[0], or its pooled_."
        )
    if not hasattr(estimator, "domain_"):
        raise ValueError(
            f"An IntensityDisplay needs an intensity with a domain, such as SPPPOTIntensity; "
            f"{type(estimator).__name__} has no domain_."
        )
    if quantity not in ("intensity", "density", "std"):
        raise ValueError(f'quantity must be "intensity", "density" or "std"; got {quantity!r}.')
    domain = np.asarray(estimator.domain_)
    if len(domain) > 2:
        raise ValueError(
            f"Intensities can be drawn for one or two features; {type(estimator).__name__} has "
            f"learned from {len(domain)}."
        )
    return domain


def check_points(X: ArrayLike | None, n_features: int) -> Array | None:
    if X is None:
        return None
    points: Array = check_array(X, dtype=np.float64, input_name="X", ensure_min_samples=0)
    if points.shape[1] != n_features:
        raise ValueError(
            f"X must have the {n_features} features that the estimator has learned from; it has "
            f"{points.shape[1]}."
        )
    return points


def check_truth(truth: Callable[[Array], ArrayLike] | ArrayLike | None, at: Array) -> Array | None:
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


def along(low: float, high: float, resolution: int, *, middles: bool) -> Array:
    """Return evenly spaced points with the ends, or the middles of as many cells."""
    points = np.linspace(low, high, resolution + middles)
    return (points[:-1] + points[1:]) / 2 if middles else points


def evaluate(estimator: Any, at: Array, quantity: Quantity) -> Array:
    with warnings.catch_warnings():  # the grid is no data frame, even if the data were one
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        if quantity == "density":
            return np.asarray(np.exp(estimator.score_samples(at)))
        if quantity == "std":
            return np.asarray(estimator.intensity(at, return_std=True)[1])
        return np.asarray(estimator.intensity(at))


def blank_outside(estimator: Any, at: Array, values: Array) -> Array:
    """Return values of the plane that are nothing, and not zero, where there can be no points."""
    if at.shape[1] != 2 or not hasattr(estimator, "_contain"):
        return values
    return np.where(estimator._contain(at), values, np.nan)


def band_around(estimator: Any, at: Array, values: Array, quantity: Quantity) -> Array:
    """Return the ends of a band around an intensity or density."""
    if at.shape[1] != 1 or quantity == "std":
        raise ValueError(
            f"band is drawn around an intensity or density on a line; this is the {quantity} of "
            f"{at.shape[1]} features. In the plane, quantity='std' shows the deviation."
        )
    intensity, std = evaluate(estimator, at, "intensity"), evaluate(estimator, at, "std")
    relative = np.divide(std, intensity, out=np.zeros_like(std), where=intensity > 0)
    return np.stack([values * np.exp(-_WIDE * relative), values * np.exp(_WIDE * relative)])


def split_dictionary(estimator: Any) -> tuple[Array, Array]:
    """Return the points of the model that are on a grid, and those that are not."""
    dictionary = np.asarray(estimator.dictionary_)
    if _is_grid(dictionary):  # which need not be that of the integral
        return dictionary, dictionary[:0]
    nodes = {tuple(node) for node in np.asarray(estimator.nodes_).tolist()}
    is_node = np.array([tuple(point) in nodes for point in dictionary.tolist()], dtype=bool)
    return dictionary[is_node], dictionary[~is_node]


def _is_grid(points: Array) -> bool:
    """Tell whether points are all those of a regular grid."""
    axes = [np.unique(column) for column in points.T]
    if np.prod([float(len(axis)) for axis in axes]) != len(points):
        return False
    steps = [np.diff(axis) for axis in axes if len(axis) > 1]
    return all(np.ptp(step) <= 1e-6 * step.max() for step in steps)

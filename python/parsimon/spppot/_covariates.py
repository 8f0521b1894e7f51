"""A log-linear part beside z: coefficients of covariates that are known everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsimon import _core
from parsimon._lazy import lazy

Array = NDArray[np.float64]

# Covariates count as so many standard deviations: the ridge on z hardly holds their coefficients.
_FREE = 30.0


def check_covariates(name: str, covariates: Any) -> None:
    """Refuse what is neither a function nor None."""
    if covariates is not None and not callable(covariates):
        raise ValueError(
            f"{name} must be a function that takes points of shape (n, n_features) and returns the "
            f"covariates there, of shape (n,) or (n, n_covariates); got {covariates!r}."
        )


def values_of(covariates: Callable[[Array], Any], X: Array) -> Array:
    """Return the covariates at points, one row each."""
    values = np.asarray(covariates(X), dtype=np.float64)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or len(values) != len(X):
        raise ValueError(
            f"covariates must return one row for each of the {len(X)} points it is given; it "
            f"returned an array of the shape {values.shape}."
        )
    missing = ~np.isfinite(values).all(axis=1)
    if missing.any():
        raise ValueError(
            f"Covariates are missing or not finite at {int(missing.sum())} of {len(X)} points, the "
            f"first of them {X[missing][0].tolist()}: they must be known everywhere in the domain, "
            f"for the integral of the intensity. Fill them in, or leave those places out by a "
            f"window."
        )
    return values


class WithCovariates:
    """A span and functions beside it, whose coordinates come last."""

    def __init__(
        self,
        inner: Any,
        covariates: Callable[[Array], Any],
        standard: tuple[Array, Array] | None = None,
    ) -> None:
        self.inner = inner
        self.covariates = covariates
        inside = inner.measure > 0  # a window is where they are known
        found = values_of(covariates, _nodes(inner)[inside])
        if standard is None:
            deviation = found.std(axis=0)
            if not (deviation > 1e-12 * np.abs(found).max(axis=0)).all():
                raise ValueError(
                    "A covariate is the same everywhere in the domain, so that it says nothing "
                    "about where points are; leave it out."
                )
            standard = found.mean(axis=0), deviation / _FREE
        self._mean, self._unit = standard
        values = np.zeros((len(inner.measure), found.shape[1]))
        values[inside] = (found - self._mean) / self._unit
        self._values = values

    @property
    def count(self) -> int:
        """Number of covariates."""
        return int(self._values.shape[1])

    @lazy
    def finer(self) -> WithCovariates:
        """The same span with an integral on more nodes."""
        return WithCovariates(self.inner.finer, self.covariates, (self._mean, self._unit))

    @lazy
    def single(self) -> WithCovariates:
        """What it does with coordinates and nodes, in single precision."""
        other = object.__new__(WithCovariates)
        other.inner, other._values = self.inner.single, self._values.astype(np.float32)
        return other

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return int(self.inner.size) + self.count

    @property
    def measure(self) -> Array:
        return np.asarray(self.inner.measure)

    @lazy
    def dense(self) -> Array:
        return np.hstack([self.inner.dense, self._values])

    def to_nodes(self, coordinates: Array) -> Array:
        inner = self.inner.to_nodes(coordinates[: -self.count])
        return np.asarray(inner + self._values @ coordinates[-self.count :])

    def each_to_nodes(self, rows: Array) -> Array:
        """Do the same with each of several coordinates, one row each."""
        inner = self.inner.each_to_nodes(rows[:, : -self.count])
        return np.asarray(inner + rows[:, -self.count :] @ self._values.T)

    def from_nodes(self, values: Array) -> Array:
        return np.concatenate([self.inner.from_nodes(values), values @ self._values])

    def rows(self, X: Array) -> Array:
        beside = (values_of(self.covariates, X) - self._mean) / self._unit
        return np.hstack([self.inner.rows(X), beside])

    def moments(self, X: Array, amounts: Array) -> Array:
        beside = (values_of(self.covariates, X) - self._mean) / self._unit
        return np.concatenate([self.inner.moments(X, amounts), amounts @ beside])

    def statistics(self, moments: Array, sums: Array, mass: float) -> Array:
        """Return what points say, from sums of kernels and of covariates over them."""
        beside = (sums - mass * self._mean) / self._unit
        return np.concatenate([self.inner.whiten(moments), beside])

    def weights(self, coordinates: Array) -> Array:
        return np.asarray(self.inner.weights(coordinates[: -self.count]))

    def coefficients(self, coordinates: Array) -> Array:
        """Return those of the covariates as they were given."""
        return np.asarray(coordinates[-self.count :] / self._unit)

    def constant(self, coordinates: Array) -> float:
        """Return what coordinates leave out: the covariates' mean."""
        return -float(self._mean @ self.coefficients(coordinates))

    def coordinates(self, weights: Array, coefficients: Array) -> Array:
        """Return the inverse of `weights` and `coefficients`."""
        return np.concatenate([self.inner.coordinates(weights), coefficients * self._unit])

    def deviations(self, root: Array) -> Array:
        """Return the coefficients' standard deviations, from a root of the covariance."""
        return np.asarray(np.sqrt((root[:, -self.count :] ** 2).sum(axis=0)) / self._unit)

    def model(self, kernel: Any, box: _core.Box) -> Any:
        return self.inner.model(kernel, box)


def _nodes(span: Any) -> Array:
    if hasattr(span, "nodes"):
        return np.asarray(span.nodes)
    return np.asarray(span.quadrature.nodes(_core.Box(*span.domain.T.tolist())))

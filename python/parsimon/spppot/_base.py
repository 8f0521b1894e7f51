"""What the intensity estimators share: a density on a box, learned from a stream of points."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from parsimon import _core
from parsimon._base import Array, StreamEstimator, Training
from parsimon._checks import check_count, check_flag, check_number, check_verbose
from parsimon._threads import check_n_jobs, threads_of
from parsimon.kernels import Kernel

from . import _auto
from ._quadrature import draw, integrate

Self = TypeVar("Self", bound="IntensityEstimator")

# Mini-batches between two measurements of the validation data.
_MEASURE_EVERY = 16
# How far from 1 an integral may be before it is worth a warning.
_TOLERABLE = 0.05


@dataclass
class _Validation:
    """Points whose likelihood is measured along the way: rows (samples seen, value)."""

    points: Array
    domain: Array
    measured: list[tuple[float, float]] = field(default_factory=list)

    def measure(self, model: Any) -> None:
        nodes = model.nodes
        volume = float(np.prod(self.domain[:, 1] - self.domain[:, 0]))
        integral = volume * float(model.density(nodes).mean())
        value = integral - float(model.log_density(self.points).mean())
        self.measured.append((float(model.samples), value))


@dataclass(frozen=True)
class _Points(Training):
    """Points to learn from, where they are looked for, and what to measure meanwhile."""

    domain: Array = field(default_factory=lambda: np.empty((0, 2)))
    validation: _Validation | None = None


@dataclass(frozen=True)
class Setting:
    """Everything that an untrained core model is made of, except its algorithm."""

    kernel: Kernel
    domain: Array
    quadrature: _auto.Quadrature
    X: Array
    epochs: int
    streaming: bool

    @cached_property
    def largest_self(self) -> float:
        """Return the largest k(x, x) on the data."""
        return float(self.kernel.diag(self.X).max()) or 1.0

    @cached_property
    def curvature(self) -> _auto.Curvature:
        """How steep the likelihood can be with these data, nodes and kernel."""
        nodes = _core.quadrature_nodes(self.quadrature, self.domain)
        return _auto.curvature(self.kernel, self.X, nodes)


class IntensityEstimator(DensityMixin, StreamEstimator):
    """A density on a box; times the number of points, an intensity."""

    domain: Any
    grid_size: Any
    bandwidth: Any
    learning_rate: float | str

    # Samples that fit takes in all, and epochs at most, if it is left to us.
    _effort = (80_000, 100)

    # -- learning --------------------------------------------------------------------------------

    def fit(
        self: Self,
        X: ArrayLike,
        y: Any = None,  # noqa: ARG002
        *,
        validation: ArrayLike | None = None,
    ) -> Self:
        """Learn from all points, forgetting what was learned before.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The points. Those outside the domain are left out, with a warning.
        y : None
            Ignored; present by convention.
        validation : array-like of shape (n_validation, n_features), optional
            Points whose negative log-likelihood is measured along the way, for
            ``trace_["validation_nll"]``.

        Returns
        -------
        self : estimator
            The fitted estimator.
        """
        with self._unchanged_on_error():
            self._check_parameters()
            X = self._validate_samples(X, reset=True)
            domain = _auto.choose_domain(self.domain, X)
            points, fitted = self._start(X, domain, validation)
            self._fit(points, {**fitted, "_fit_points_": len(points), "_fit_samples_": None})
            self._warn_if_integral_is_off()
            return self

    def partial_fit(
        self: Self,
        X: ArrayLike,
        y: Any = None,  # noqa: ARG002
        *,
        validation: ArrayLike | None = None,
    ) -> Self:
        """Learn from one block of a stream, in the order given.

        The first block fixes the settings (domain, bandwidth, steps): hyper-parameters that are
        changed later have no effect before the next ``fit``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The points. Those outside the domain are left out, with a warning.
        y : None
            Ignored; present by convention.
        validation : array-like of shape (n_validation, n_features), optional
            Points whose negative log-likelihood is measured along the way, for
            ``trace_["validation_nll"]``.

        Returns
        -------
        self : estimator
            The estimator.
        """
        with self._unchanged_on_error():
            self._check_parameters()
            first = not hasattr(self, "_model")
            X = self._validate_samples(X, reset=first)
            if first:
                domain = _auto.choose_domain(self.domain, X)
                points, fitted = self._start(X, domain, validation)
                return self._partial_fit(points, {**fitted, "_fit_points_": 0})
            points, rejected = self._inside(X, self.domain_, validation, first=False)
            fitted = {"n_rejected_": self.n_rejected_ + rejected}
            if points.validation is not None:
                points.validation.measured.extend(map(tuple, self._validation_))
                fitted["_validation_"] = points.validation.measured
            if not len(points):
                self._adopt(self._model, fitted)
                return self
            return self._partial_fit(points, fitted)

    def _start(
        self, X: Array, domain: Array, validation: ArrayLike | None
    ) -> tuple[_Points, dict[str, Any]]:
        points, rejected = self._inside(X, domain, validation, first=True)
        watch = points.validation
        return points, {
            "domain_": domain,
            "n_rejected_": rejected,
            "_fit_samples_": 0,
            "_validation_": [] if watch is None else watch.measured,
        }

    def _inside(
        self, X: Array, domain: Array, validation: ArrayLike | None, *, first: bool
    ) -> tuple[_Points, int]:
        """Return the points in the domain, and how many are not."""
        low, high = domain.T
        inside = ((low <= X) & (high >= X)).all(axis=1)
        rejected = int(len(X) - inside.sum())
        if first and not inside.any():
            raise ValueError(
                f"None of the samples (n_samples={len(X)}) is in the domain {domain.tolist()}."
            )
        if rejected:
            warnings.warn(
                f"{rejected} of {len(X)} samples are outside the domain {domain.tolist()} and are "
                f"left out; the first is {X[~inside][0].tolist()}.",
                UserWarning,
                stacklevel=4 if first else 3,
            )
        watch = None
        if validation is not None:
            try:
                held_out = self._validate_samples(validation)
            except ValueError as error:
                raise ValueError(f"The validation data cannot be used. {error}") from error
            watch = _Validation(held_out, domain)
        nothing = np.empty((int(inside.sum()), 0))
        return _Points(X[inside], nothing, np.empty(0), 0, domain, watch), rejected

    def _feed(
        self,
        model: Any,
        training: Any,
        X: Array,
        targets: Array,  # noqa: ARG002
        weight: Array,  # noqa: ARG002
    ) -> int:
        batch = self._mini_batch()
        watch = training.validation
        if watch is None:
            return int(model.run(X, batch))
        taken = 0
        rows = _MEASURE_EVERY * batch
        for start in range(0, len(X), rows):
            taken += int(model.run(X[start : start + rows], batch))
            watch.measure(model)
        return taken

    def _adopt(self, model: Any, fitted: dict[str, Any]) -> None:
        fitted = dict(fitted)
        if "_fit_samples_" in fitted and fitted["_fit_samples_"] is None:
            seen = int(model.samples)
            # Ctrl-C may have come within the first epoch.
            fitted |= {"_fit_samples_": seen, "_fit_points_": min(fitted["_fit_points_"], seen)}
        if "_validation_" in fitted:
            fitted["_validation_"] = np.reshape(fitted["_validation_"], (-1, 2)).astype(float)
        super()._adopt(model, fitted)

    def _check_parameters(self) -> None:
        _auto.check_domain(self.domain)
        _auto.check_grid_size(self.grid_size)
        _auto.check_kernel(self.kernel)
        _auto.check_bandwidth(self.bandwidth)
        check_number("learning_rate", self.learning_rate, positive=True, auto=True)
        check_count("epochs", self.epochs, auto=True)
        check_flag("shuffle", self.shuffle)
        check_n_jobs(self.n_jobs)
        check_verbose(self.verbose)

    def _new_model(self, training: Any, *, streaming: bool) -> tuple[Any, Kernel, int]:
        X, domain = training.X, training.domain
        bandwidth = _auto.choose_bandwidth(self.bandwidth, X, domain)
        kernel = self.kernel
        if isinstance(kernel, str):
            kernel = _auto.KERNELS[kernel](bandwidth)
        kernel.core.check_features(X.shape[1])
        setting = Setting(
            kernel=kernel,
            domain=domain,
            quadrature=_auto.choose_quadrature(self.grid_size, domain, bandwidth),
            X=X,
            epochs=_auto.epochs(self.epochs, len(X), *self._effort),
            streaming=streaming,
        )
        return self._make_model(setting), kernel, setting.epochs

    @abstractmethod
    def _make_model(self, setting: Setting) -> Any:
        """Return an untrained core model."""

    def _warn_if_integral_is_off(self) -> None:
        integral = self.integral_
        if not abs(integral - 1) <= _TOLERABLE:
            warnings.warn(
                f"The learned density integrates to {integral:.3f} instead of 1. Train for more "
                f"epochs, or choose a larger bandwidth, a finer grid_size or a smaller learning "
                f"rate.",
                ConvergenceWarning,
                stacklevel=3,
            )

    # -- what was learned ------------------------------------------------------------------------

    def score_samples(self, X: ArrayLike) -> Array:
        """Return the logarithm of the density at each point.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The points.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Minus infinity outside the domain.
        """
        model = self._fitted_model()
        points = self._validate_samples(X)
        with threads_of(self.n_jobs):
            return np.asarray(model.log_density(points))

    def score(self, X: ArrayLike, y: Any = None) -> float:  # noqa: ARG002
        """Return the total log-likelihood of the points, as scikit-learn's KernelDensity does.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The points.
        y : None
            Ignored; present by convention.

        Returns
        -------
        log_likelihood : float
            The sum of ``score_samples(X)``.
        """
        return float(self.score_samples(X).sum())

    def intensity(self, X: ArrayLike) -> Array:
        """Return the intensity at each point: the density times the number of points seen.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The points.

        Returns
        -------
        intensity : ndarray of shape (n_samples,)
            Expected points per unit of volume; 0 outside the domain.
        """
        model = self._fitted_model()
        points = self._validate_samples(X)
        with threads_of(self.n_jobs):
            return np.asarray(model.density(points) * self.n_points_)

    def expected_count(self, box: ArrayLike) -> float:
        """Return how many of the points seen are expected in a box.

        Parameters
        ----------
        box : array-like of shape (n_features, 2), or (2,) for one feature
            A pair (low, high) for each feature. What is outside the domain holds nothing.

        Returns
        -------
        count : float
            The integral of the intensity over the box.
        """
        self._fitted_model()
        bounds = _auto.check_domain(box, "box")
        if bounds is None or len(bounds) != self.n_features_in_:
            raise ValueError(
                f"box must be a pair (low, high) for each of the {self.n_features_in_} features; "
                f"got {box!r}."
            )
        return self.n_points_ * self._integral_over(bounds)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draw points from the learned density.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState instance or None, default=None
            Source of the randomness.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The points, in the domain.
        """
        model = self._fitted_model()
        check_count("n_samples", n_samples)
        random = check_random_state(random_state)
        return draw(model.log_density, self.domain_, len(model.nodes), n_samples, random)

    def _integral_over(self, box: Array) -> float:
        model = self._fitted_model()
        inside = np.column_stack(
            [
                np.maximum(box[:, 0], self.domain_[:, 0]),
                np.minimum(box[:, 1], self.domain_[:, 1]),
            ]
        )
        kind, counts = model.quadrature
        cells = None
        if kind == "grid":
            # As fine as the grid of the whole domain, however small the box.
            share = (inside[:, 1] - inside[:, 0]) / (self.domain_[:, 1] - self.domain_[:, 0])
            cells = [int(n) for n in np.maximum(np.ceil(share * counts), 1)]
        return integrate(model.density, inside, cells)

    @property
    def integral_(self) -> float:
        """The integral of the density over the domain; training brings it near 1."""
        self._state("integral_")
        return self._integral_over(self.domain_)

    @property
    def n_points_(self) -> int:
        """Points seen; those of repeated epochs count once."""
        samples = int(self._state("n_points_").samples)
        return int(self._fit_points_ + samples - self._fit_samples_)

    @property
    def nodes_(self) -> Array:
        """The nodes on which the density is integrated in training."""
        return np.asarray(self._state("nodes_").nodes)

    @property
    def trace_(self) -> dict[str, NDArray[Any]]:
        """What each mini-batch did, in arrays of equal length; NaN where nothing was measured."""
        trace = super().trace_
        if len(self._validation_):
            measured = dict(self._validation_)
            values = [measured.get(float(samples), np.nan) for samples in trace["samples"]]
            trace["validation_nll"] = np.array(values)
        return trace

    # -- input and persistence -------------------------------------------------------------------

    def _validate_samples(self, X: ArrayLike, *, reset: bool = False) -> Array:
        return np.asarray(validate_data(self, X, dtype=np.float64, order="C", reset=reset))

    def _check_fitted(self, fitted: dict[str, Any], entries: dict[str, Any]) -> None:
        super()._check_fitted(fitted, entries)
        domain = np.column_stack([entries["domain.lower"], entries["domain.upper"]])
        counts = [fitted["_fit_points_"], fitted["_fit_samples_"], entries["samples"]]
        if not np.array_equal(fitted["domain_"], domain) or counts != sorted(counts):
            raise ValueError(
                f"The model file does not hold a {type(self).__name__}: its domain or its counts "
                f"of points contradict each other."
            )

    def _fitted_attributes(self, outputs: int) -> dict[str, Callable[[Any], bool]]:  # noqa: ARG002
        def count(value: Any) -> bool:
            return type(value) is int and value >= 0

        return {
            "domain_": lambda value: (
                value.ndim == 2 and value.shape[1] == 2 and bool((value[:, 0] < value[:, 1]).all())
            ),
            "n_rejected_": count,
            "_fit_points_": count,
            "_fit_samples_": count,
            "_validation_": lambda value: value.ndim == 2 and value.shape[1] == 2,
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

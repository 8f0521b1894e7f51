"""What the intensity estimators share: a density on a box, learned from a stream of points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from parsimon import _core, _stream
from parsimon._checks import check_count, is_number, warn
from parsimon._docs import documented
from parsimon._formula import Density, Head
from parsimon._lazy import lazy
from parsimon._model import Array, ModelEstimator
from parsimon._parameters import WORDS
from parsimon._threads import threads_of
from parsimon.kernels import Kernel

from . import _auto, _solved
from ._points import MOST_MEASURED, Points, Validation
from ._quadrature import draw, integrate

if TYPE_CHECKING:
    from typing_extensions import Self

# How far from 1 an integral may be before it is worth a warning.
_TOLERABLE = 0.05
# The same in a stream, which is still being learned from, and the samples before the first look.
_TOLERABLE_IN_STREAMS = 0.5
_FIRST_LOOK = 1000


@dataclass(frozen=True)
class Setting:
    """Everything that an untrained core model is made of, except its algorithm."""

    kernel: Kernel
    domain: Array
    quadrature: _core.Quadrature
    X: Array
    epochs: int
    streaming: bool

    @lazy
    def largest_self(self) -> float:
        """Return the largest k(x, x) on the data."""
        return float(self.kernel.diag(self.X).max()) or 1.0

    @lazy
    def curvature(self) -> _auto.Curvature:
        """How steep the likelihood can be with these data, nodes and kernel."""
        return _auto.curvature(self.kernel, self.X, self.quadrature.nodes(self.box))

    @property
    def box(self) -> _core.Box:
        """The domain, as the core takes it."""
        return _core.Box(*self.domain.T.tolist())


_ENTRIES = """
X : array-like of shape (n_samples, n_features)
    The points.
y : None
    Ignored; present by convention.
sample_weight : array-like of shape (n_samples,), optional
    How many points each of them stands for. Only with ``solver="newton"``.
exposure : float, optional
    For how long, or how many times, these points were looked for: intensities are then per unit of
    exposure. In a stream, those of all blocks add up.
validation : array-like of shape (n_validation, n_features), optional
    Points whose negative log-likelihood is measured along the way, for
    ``trace_["validation_nll"]``.
log_density : ndarray of shape (n_samples,)
    Minus infinity outside the domain.
log_likelihood : float
    The sum of ``score_samples(X)``.
"""


@documented(_ENTRIES)
class Intensity(DensityMixin, ModelEstimator):
    """A density on a box; times the number of points, an intensity."""

    domain: Any
    grid_size: Any
    bandwidth: Any
    epochs: int | str
    solver: str
    half_life: float | str | None
    domain_: Array
    exposure_: float
    n_rejected_: int

    _words = {
        **WORDS,
        "domain": _auto.check_domain,
        "grid_size": _auto.check_grid_size,
        "kernel": _auto.check_kernel,
        "bandwidth": _auto.check_bandwidth,
    }
    _floats = (np.float64,)
    _takes_sparse = False
    # Samples that fit takes in all, and epochs at most, if it is left to us.
    _effort = (80_000, 100)

    # -- learning --------------------------------------------------------------------------------

    def fit(
        self,
        X: ArrayLike,
        y: Any = None,  # noqa: ARG002
        *,
        sample_weight: ArrayLike | None = None,
        exposure: float | None = None,
        validation: ArrayLike | None = None,
    ) -> Self:
        """Learn from all points, forgetting what was learned before.

        Those outside the domain are left out, with a warning.

        {X, y, sample_weight, exposure, validation -> self}
        """
        with self._unchanged_on_error():
            self._check_parameters()
            X = self._validate_samples(X, reset=True)
            points, fitted = self._first(X, sample_weight, validation)
            fitted |= {"_fit_points_": len(points), "_fit_samples_": None}
            fitted |= _solved.exposed(exposure, None, points.amounts)
            if self.solver == "newton":
                self._adopt_solved(*_solved.fit(self, points, fitted))
            else:
                _stream.fit(self, points, fitted)
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: Any = None,  # noqa: ARG002
        *,
        sample_weight: ArrayLike | None = None,
        exposure: float | None = None,
        validation: ArrayLike | None = None,
    ) -> Self:
        """Learn from one block of a stream, in the order given.

        The first block fixes the settings (domain, bandwidth, steps), with ``solver="newton"`` the
        first 5,000 points: hyper-parameters that are changed later have no effect before the next
        ``fit``. Points outside the domain are left out, with a warning. If learning ends half way,
        its finished mini-batches stay.

        {X, y, sample_weight, exposure, validation -> self}
        """
        with self._unchanged_on_error():
            self._check_parameters_if_changed()
            first = "_model" not in self.__dict__
            X = self._validate_samples(X, reset=first)
            if first:
                points, fitted = self._first(X, sample_weight, validation)
            else:
                points, fitted = self._further(X, sample_weight, validation)
            fitted |= _solved.exposed(exposure, None if first else self, points.amounts)
            if not len(points):
                self._adopt(self._model, fitted)
            elif self._is_solved(first):
                self._adopt_solved(*_solved.partial_fit(self, points, fitted, first=first))
            else:
                (_stream.begin if first else _stream.partial_fit)(self, points, fitted)
                self._warn_now_and_then()
        return self

    def _is_solved(self, first: bool) -> bool:
        if first:
            return self.solver == "newton"
        return isinstance(self._model, _core.SolvedDensity)

    def _first(
        self, X: Any, sample_weight: ArrayLike | None, validation: ArrayLike | None
    ) -> tuple[Points, dict[str, Any]]:
        amounts = self._amounts(X, sample_weight)
        domain, measured = _auto.choose_domain(self.domain, X), list[Any]()
        points, rejected = self._inside(X, amounts, domain, validation, measured, first=True)
        return points, {
            "domain_": domain,
            "n_rejected_": rejected,
            "_fit_points_": 0,
            "_fit_samples_": 0,
            "_validation_": measured,
            "_buffer_": np.empty((0, X.shape[1] + 1)),
            "_chosen_at_": 0,
        }

    def _further(
        self, X: Any, sample_weight: ArrayLike | None, validation: ArrayLike | None
    ) -> tuple[Points, dict[str, Any]]:
        amounts = self._amounts(X, sample_weight)
        measured, domain = list(map(tuple, self._validation_)), self.domain_
        if len(self._buffer_) and isinstance(self.domain, str):
            low, high = domain.T
            if not ((low <= X) & (high >= X)).all():
                # As long as all points are here, so is the choice of where they can be.
                domain = _auto.choose_domain(self.domain, np.vstack([self._buffer_[:, :-1], X]))
        points, rejected = self._inside(X, amounts, domain, validation, measured)
        fitted = {"n_rejected_": self.n_rejected_ + rejected}
        return points, fitted if points.watch is None else fitted | {"_validation_": measured}

    def _amounts(self, X: Array, sample_weight: ArrayLike | None) -> Array:
        weight = _stream.checked_weight(sample_weight, X)
        if sample_weight is None:
            return np.ones(len(X))
        if self.solver != "newton":
            raise ValueError(
                f"sample_weight needs solver='newton'; solver={self.solver!r} is the paper's "
                f"algorithm, which has none."
            )
        if not weight.any():
            raise ValueError("Sample weights must contain at least one non-zero number.")
        return weight

    def _inside(
        self,
        X: Array,
        amounts: Array,
        domain: Array,
        validation: ArrayLike | None,
        measured: list[Any],
        *,
        first: bool = False,
    ) -> tuple[Points, int]:
        """Return the points in the domain, and how many are not."""
        low, high = domain.T
        inside = ((low <= X) & (high >= X)).all(axis=1)
        rejected = int(len(X) - inside.sum())
        if first and not inside.any():
            raise ValueError(
                f"None of the samples (n_samples={len(X)}) is in the domain {domain.tolist()}."
            )
        if rejected:
            warn(
                f"{rejected} of {len(X)} samples are outside the domain {domain.tolist()} and are "
                f"left out; the first is {X[~inside][0].tolist()}."
            )
        watch = None
        if validation is not None:
            try:
                held_out = self._validate_samples(validation)
            except ValueError as error:
                raise ValueError(f"The validation data cannot be used. {error}") from error
            watch = Validation(held_out, domain, measured)
        return Points(X[inside], domain, watch, amounts[inside]), rejected

    def _adopt(self, model: Any, fitted: dict[str, Any]) -> None:
        fitted = dict(fitted)
        if "_fit_samples_" in fitted and fitted["_fit_samples_"] is None:
            seen = int(model.samples)
            # Ctrl-C may have come within the first epoch.
            fitted |= {"_fit_samples_": seen, "_fit_points_": min(fitted["_fit_points_"], seen)}
        if "_validation_" in fitted:
            measured = np.reshape(fitted["_validation_"], (-1, 2)).astype(float)
            while len(measured) > MOST_MEASURED:
                measured = measured[len(measured) % 2 == 0 :: 2]  # the latest stays
            fitted["_validation_"] = measured
        super()._adopt(model, fitted)

    def _new_model(self, samples: Points, *, streaming: bool) -> tuple[Any, Kernel, int]:
        X, domain = samples.X, samples.domain
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

    def _make_model(self, setting: Setting) -> Any:
        """Return an untrained core model."""
        raise NotImplementedError

    def _kept_points(self, model: Any) -> int:
        # In the second phase of a hybrid nothing is removed any more, and the nodes are others.
        return 0 if getattr(model, "in_second_phase", False) else len(model.nodes)

    def _finish_fit(self, model: Any, samples: Points) -> None:
        self._warn_of(self._integral(model, samples.domain, samples.domain))

    def _warn_now_and_then(self) -> None:
        """Measure the integral of a stream whenever it has doubled; at first it may be off."""
        if self.t_ >= 2 * self.__dict__.get("_checked_at", _FIRST_LOOK / 2):
            self.__dict__["_checked_at"] = self.t_
            self._warn_of(self.integral_, _TOLERABLE_IN_STREAMS)

    @staticmethod
    def _warn_of(integral: float, tolerable: float = _TOLERABLE) -> None:
        if not abs(integral - 1) <= tolerable:
            warn(
                f"The learned density integrates to {integral:.3f} instead of 1, and is divided by "
                f"that. Choose solver='newton', a larger bandwidth, a finer grid_size or a smaller "
                f"learning rate.",
                ConvergenceWarning,
            )

    # -- what was learned ------------------------------------------------------------------------

    def score_samples(self, X: ArrayLike) -> Array:
        """Return the logarithm of the density at each point.

        The density is normalised: what was learned is divided by its integral over the domain.

        {X -> log_density}
        """
        model = self._fitted_model()
        points = self._validate_samples(X)
        with threads_of(self.n_jobs):
            return np.asarray(model.log_density(points)) - self._log_integral(model)

    def score(self, X: ArrayLike, y: Any = None) -> float:  # noqa: ARG002
        """Return the total log-likelihood of the points, as scikit-learn's KernelDensity does.

        {X, y -> log_likelihood}
        """
        return float(self.score_samples(X).sum())

    def process_score(self, X: ArrayLike, exposure: float | None = None) -> float:
        """Return the log-likelihood of points as those of a Poisson process.

        That is the sum of the log-intensities, less the number of points that are expected in the
        domain; both are of the exposure, in the units of :meth:`fit`'s.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The points, all that were found.
        exposure : float, optional
            For how long they were looked for; by default as long as in training.

        Returns
        -------
        log_likelihood : float
            Minus infinity if a point is outside the domain.
        """
        log_density = self.score_samples(X)
        times = 1.0
        if exposure is not None:
            times = _solved.checked_exposure(exposure) / self.exposure_
        expected = self._total() * times
        return float(log_density.sum() + len(log_density) * np.log(expected) - expected)

    def intensity(self, X: ArrayLike, *, return_std: bool = False) -> Any:
        """Return the intensity at each point: the density times the number of points seen.

        If exposures were given, it is per unit of exposure.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The points.
        return_std : bool, default=False
            Whether to return standard deviations, too: by Laplace's approximation, from the
            curvature of the likelihood. Only with ``solver="newton"``.

        Returns
        -------
        intensity : ndarray of shape (n_samples,)
            Expected points per unit of volume; 0 outside the domain.
        std : ndarray of shape (n_samples,)
            Only if `return_std`. That of the logarithm is ``std / intensity``.
        """
        # Where a mirror map allows it, what was learned is negative; log densities are not.
        model = self._fitted_model()
        points = self._validate_samples(X)
        with threads_of(self.n_jobs):
            density = np.asarray(model.density(points)) / self._divisor(model)
        values = density * (self._total() / self.exposure_)
        if not return_std:
            return values
        if not isinstance(model, _core.SolvedDensity):
            raise ValueError(
                "return_std needs the curvature of the likelihood, which solver='newton' knows."
            )
        return values, values * self._uncertainty().log_std(points)

    def _total(self) -> float:
        """Return how many points there were, with their weights."""
        model = self._fitted_model()
        if isinstance(model, _core.SolvedDensity):
            return float(self._weight_)
        return float(self.n_points_)

    def _log_integral(self, model: Any) -> float:
        """Return the logarithm of what densities are divided by."""
        if isinstance(model, _core.SolvedDensity):
            return 0.0
        key = (id(model), model.samples, model.batches)
        known = self.__dict__.get("_known_integral")
        if known is None or known[0] != key:
            integral = self._integral(model, self.domain_, self.domain_)
            # A model without an integral has no density anywhere.
            log = float(np.log(integral)) if 0 < integral < np.inf else np.inf
            known = key, log
            self.__dict__["_known_integral"] = known
        return float(known[1])

    def _divisor(self, model: Any) -> float:
        """Return what densities are divided by; 1 for those that can be negative and are."""
        log = self._log_integral(model)
        return float(np.exp(log)) if np.isfinite(log) else 1.0

    def _adopt_solved(self, model: Any, fitted: dict[str, Any], span: Any) -> None:
        self._adopt(model, fitted)
        self.__dict__["_known_span"] = (id(model), span)

    def _solution(self) -> Any:
        """Return how the model was solved, which its weights tell."""
        known = self.__dict__.get("_known_span")
        if known is None or known[0] != id(self._model):
            known = id(self._model), _solved.span_of(self._model, self._kernel_, self.domain_)
            self.__dict__["_known_span"] = known
        return _solved.restored(self, self._model, known[1])

    def _uncertainty(self) -> Any:
        """Return how well the density is known, found once."""
        known = self.__dict__.get("_known_uncertainty")
        if known is None or known[0] != id(self._model):
            known = id(self._model), self._solution().uncertainty()
            self.__dict__["_known_uncertainty"] = known
        return known[1]

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
        bounds = _auto.check_domain("box", box)
        if bounds is None or len(bounds) != self.n_features_in_:
            raise ValueError(
                f"box must be a pair (low, high) for each of the {self.n_features_in_} features; "
                f"got {box!r}."
            )
        model = self._model
        share = self._integral(model, self.domain_, bounds) / self._divisor(model)
        return float(self._total() / self.exposure_ * share)

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
        with threads_of(self.n_jobs):
            return draw(model.log_density, self.domain_, len(model.nodes), n_samples, random)

    def _integral(self, model: Any, domain: Array, box: Array) -> float:
        """Integrate what was learned over a box; outside of the domain there is nothing.

        Cells are at most half as wide as the kernel, whatever the dictionary; so they are in small
        boxes.
        """
        low, high = np.maximum(box[:, 0], domain[:, 0]), np.minimum(box[:, 1], domain[:, 1])
        cells = _auto.cells_for(model, high - low, domain[:, 1] - domain[:, 0])
        with threads_of(self.n_jobs):
            return integrate(model.density, np.column_stack([low, high]), cells)

    @property
    def integral_(self) -> float:
        """The integral of what was learned over the domain, which densities are divided by."""
        model = self._state("integral_")
        if isinstance(model, _core.SolvedDensity) and len(self.domain_) > _auto.MOST_GRID_FEATURES:
            return float(self._solution().integral(model.offset))
        return self._integral(self._state("integral_"), self.domain_, self.domain_)

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
            seen, values = self._validation_.T
            # The latest in each record, which may stand for several mini-batches.
            latest = np.searchsorted(seen, trace["samples"], side="right") - 1
            before = np.concatenate([[0], trace["samples"][:-1]])
            measured = (latest >= 0) & (seen[latest] > before)
            trace["validation_nll"] = np.where(measured, values[latest], np.nan)
        return trace

    def _head(self) -> Head:
        archive = self._model.to_archive()
        head = Density(
            archive.get("mirror", "kl"),
            np.asarray(archive.get("mirror.parameters", ()), dtype=float),
            self.domain_[:, 0],
            self.domain_[:, 1],
            log_volume=0.0,
        )
        # The constant between the function and its density, whatever that is normalised by.
        nodes = self.nodes_
        found = self.score_samples(nodes)
        best = [int(found.argmax())]
        raw = head.log_density(np.asarray(self._model.expansion(nodes[best])), nodes[best])
        return replace(head, log_volume=float(raw[0] - found[best[0]]))

    # -- files -----------------------------------------------------------------------------------

    def _entries(self) -> dict[str, Any]:
        log = self._log_integral(self._model)
        solved = isinstance(self._model, _core.SolvedDensity)
        return {} if solved or not np.isfinite(log) else {"density.log_integral": log}

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        for name in ("_known_integral", "_known_span", "_known_uncertainty", "_checked_at"):
            state.pop(name, None)
        return state

    def _check_stored(self, fitted: dict[str, Any], archive: _core.Archive) -> None:
        # Which files of the first versions do not have.
        fitted.setdefault("exposure_", 1.0)
        fitted.setdefault("_weight_", float(archive["samples"]))
        fitted.setdefault("_is_exposed_", False)
        fitted.setdefault("_chosen_at_", 0)
        fitted.setdefault("_buffer_", np.empty((0, archive["features"] + 1)))
        super()._check_stored(fitted, archive)
        domain = np.column_stack([archive["domain.lower"], archive["domain.upper"]])
        counts = [fitted["_fit_points_"], fitted["_fit_samples_"], archive["samples"]]
        if not np.array_equal(fitted["domain_"], domain) or counts != sorted(counts):
            raise ValueError(
                f"The model file does not hold a {type(self).__name__}: its domain or its counts "
                f"of points contradict each other."
            )

    def _stored(self, outputs: int) -> dict[str, Callable[[Any], bool]]:  # noqa: ARG002
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
            "_buffer_": lambda value: value.ndim == 2 and bool(np.isfinite(value).all()),
            "exposure_": lambda value: is_number(value) and value > 0,
            "_weight_": lambda value: is_number(value) and value >= 0,
            "_is_exposed_": lambda value: isinstance(value, bool),
            "_chosen_at_": count,
        }

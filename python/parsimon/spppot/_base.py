"""What the intensity estimators share: a density on a box, learned from a stream of points."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from parsimon import _core, _stream
from parsimon._checks import check_count, warn
from parsimon._docs import documented
from parsimon._model import Array, ModelEstimator
from parsimon._parameters import WORDS
from parsimon._stream import BLOCK, Samples
from parsimon._threads import threads_of
from parsimon.kernels import Kernel

from . import _auto
from ._quadrature import draw, integrate

if TYPE_CHECKING:
    from typing_extensions import Self

# Mini-batches between two measurements of the validation data.
_MEASURE_EVERY = 16
# Measurements that are kept, as many as records of the trace.
_MOST_MEASURED = 4096
# How far from 1 an integral may be before it is worth a warning.
_TOLERABLE = 0.05


@dataclass
class _Validation:
    """Points whose likelihood is measured along the way: rows (samples seen, value)."""

    points: Array
    domain: Array
    measured: list[tuple[float, float]]

    def __call__(self, model: Any) -> None:
        volume = float(np.prod(self.domain[:, 1] - self.domain[:, 0]))
        integral = volume * float(model.density(model.nodes).mean())
        value = integral - float(model.log_density(self.points).mean())
        self.measured.append((float(model.samples), value))


class _Points(Samples):
    """Points to learn from, and where they are looked for."""

    def __init__(self, X: Array, domain: Array, watch: _Validation | None) -> None:
        super().__init__(X, watch=watch)
        self.domain = domain
        self.columns = (X,)

    def blocks(
        self, batch_size: int, random: np.random.RandomState | None = None, at_once: int = BLOCK
    ) -> Iterable[tuple[Any, ...]]:
        if self.watch is not None:
            at_once = _MEASURE_EVERY * batch_size
        return super().blocks(batch_size, random, at_once)


@dataclass(frozen=True)
class Setting:
    """Everything that an untrained core model is made of, except its algorithm."""

    kernel: Kernel
    domain: Array
    quadrature: _core.Quadrature
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
validation : array-like of shape (n_validation, n_features), optional
    Points whose negative log-likelihood is measured along the way, for
    ``trace_["validation_nll"]``.
log_density : ndarray of shape (n_samples,)
    Minus infinity outside the domain.
log_likelihood : float
    The sum of ``score_samples(X)``.
intensity : ndarray of shape (n_samples,)
    Expected points per unit of volume; 0 outside the domain.
"""


@documented(_ENTRIES)
class Intensity(DensityMixin, ModelEstimator):
    """A density on a box; times the number of points, an intensity."""

    domain: Any
    grid_size: Any
    bandwidth: Any
    epochs: int | str
    domain_: Array
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
        validation: ArrayLike | None = None,
    ) -> Self:
        """Learn from all points, forgetting what was learned before.

        Those outside the domain are left out, with a warning.

        {X, y, validation -> self}
        """
        with self._unchanged_on_error():
            self._check_parameters()
            X = self._validate_samples(X, reset=True)
            points, fitted = self._first(X, validation)
            fitted |= {"_fit_points_": len(points), "_fit_samples_": None}
            _stream.fit(self, points, fitted)
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: Any = None,  # noqa: ARG002
        *,
        validation: ArrayLike | None = None,
    ) -> Self:
        """Learn from one block of a stream, in the order given.

        The first block fixes the settings (domain, bandwidth, steps): hyper-parameters that are
        changed later have no effect before the next ``fit``. Points outside the domain are left
        out, with a warning. If learning ends half way, its finished mini-batches stay.

        {X, y, validation -> self}
        """
        with self._unchanged_on_error():
            self._check_parameters_if_changed()
            first = "_model" not in self.__dict__
            X = self._validate_samples(X, reset=first)
            if first:
                points, fitted = self._first(X, validation)
            else:
                points, fitted = self._further(X, validation)
            if len(points):
                _stream.partial_fit(self, points, fitted)
            else:
                self._adopt(self._model, fitted)
        return self

    def _first(self, X: Any, validation: ArrayLike | None) -> tuple[_Points, dict[str, Any]]:
        domain, measured = _auto.choose_domain(self.domain, X), list[Any]()
        points, rejected = self._inside(X, domain, validation, measured, first=True)
        return points, {
            "domain_": domain,
            "n_rejected_": rejected,
            "_fit_points_": 0,
            "_fit_samples_": 0,
            "_validation_": measured,
        }

    def _further(self, X: Any, validation: ArrayLike | None) -> tuple[_Points, dict[str, Any]]:
        measured = list(map(tuple, self._validation_))
        points, rejected = self._inside(X, self.domain_, validation, measured)
        fitted = {"n_rejected_": self.n_rejected_ + rejected}
        return points, fitted if points.watch is None else fitted | {"_validation_": measured}

    def _inside(
        self,
        X: Array,
        domain: Array,
        validation: ArrayLike | None,
        measured: list[Any],
        *,
        first: bool = False,
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
            watch = _Validation(held_out, domain, measured)
        return _Points(X[inside], domain, watch), rejected

    def _adopt(self, model: Any, fitted: dict[str, Any]) -> None:
        fitted = dict(fitted)
        if "_fit_samples_" in fitted and fitted["_fit_samples_"] is None:
            seen = int(model.samples)
            # Ctrl-C may have come within the first epoch.
            fitted |= {"_fit_samples_": seen, "_fit_points_": min(fitted["_fit_points_"], seen)}
        if "_validation_" in fitted:
            measured = np.reshape(fitted["_validation_"], (-1, 2)).astype(float)
            while len(measured) > _MOST_MEASURED:
                measured = measured[len(measured) % 2 == 0 :: 2]  # the latest stays
            fitted["_validation_"] = measured
        super()._adopt(model, fitted)

    def _new_model(self, samples: _Points, *, streaming: bool) -> tuple[Any, Kernel, int]:
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

    def _finish_fit(self, model: Any, samples: _Points) -> None:
        integral = self._integral(model, samples.domain, samples.domain)
        if not abs(integral - 1) <= _TOLERABLE:
            warn(
                f"The learned density integrates to {integral:.3f} instead of 1. Train for more "
                f"epochs, or choose a larger bandwidth, a finer grid_size or a smaller learning "
                f"rate.",
                ConvergenceWarning,
            )

    # -- what was learned ------------------------------------------------------------------------

    def score_samples(self, X: ArrayLike) -> Array:
        """Return the logarithm of the density at each point.

        {X -> log_density}
        """
        return self._at(X, "log_density")

    def score(self, X: ArrayLike, y: Any = None) -> float:  # noqa: ARG002
        """Return the total log-likelihood of the points, as scikit-learn's KernelDensity does.

        {X, y -> log_likelihood}
        """
        return float(self.score_samples(X).sum())

    def intensity(self, X: ArrayLike) -> Array:
        """Return the intensity at each point: the density times the number of points seen.

        {X -> intensity}
        """
        return self._at(X, "density") * self.n_points_

    def _at(self, X: ArrayLike, what: str) -> Array:
        model = self._fitted_model()
        points = self._validate_samples(X)
        with threads_of(self.n_jobs):
            return np.asarray(getattr(model, what)(points))

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
        return self.n_points_ * self._integral(self._model, self.domain_, bounds)

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
        """Integrate the learned density over a box; outside of the domain there is nothing."""
        low, high = np.maximum(box[:, 0], domain[:, 0]), np.minimum(box[:, 1], domain[:, 1])
        cells = None
        if model.quadrature.kind == "grid":
            # As fine as the grid of the whole domain, however small the box.
            share = (high - low) / (domain[:, 1] - domain[:, 0])
            cells = [int(n) for n in np.maximum(np.ceil(share * model.quadrature.counts), 1)]
        with threads_of(self.n_jobs):
            return integrate(model.density, np.column_stack([low, high]), cells)

    @property
    def integral_(self) -> float:
        """The integral of the density over the domain; training brings it near 1."""
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

    # -- files -----------------------------------------------------------------------------------

    def _check_stored(self, fitted: dict[str, Any], archive: _core.Archive) -> None:
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
        }

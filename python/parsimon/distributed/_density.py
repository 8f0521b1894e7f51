"""Densities of points in parts: all that is needed of the points are sums at a known dictionary."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import _check_sample_weight
from threadpoolctl import threadpool_limits

from parsimon import _core
from parsimon._checks import warn
from parsimon._stream import NOTHING_SPECIAL, cannot_go_on
from parsimon._threads import threads_of
from parsimon.spppot import _auto, _choose, _solved
from parsimon.spppot._base import Intensity
from parsimon.spppot._covariates import values_of
from parsimon.spppot._place import Place, choose
from parsimon.spppot._window import Window, folded, goes_round, window_of

from ._parts import draw, named, shares
from ._weights import add

Array = NDArray[np.float64]
MapReduce = Callable[[Any, Callable[[Any, Any], Any]], Any]
Watch = Callable[[str, dict[str, float]], None]

_NONE_IN_PARTS = "There are no samples in any of the partitions."


@dataclass(frozen=True)
class Extent:
    """Where the points of some parts are: the outermost values of each feature, sorted."""

    numbers: tuple[int, ...]
    samples: tuple[int, ...]  # of each part
    features: int
    names: Any
    size: int  # bytes
    outermost: Array

    @property
    def total(self) -> int:
        """How many points there are."""
        return sum(self.samples)

    def __add__(self, other: Extent) -> Extent:
        mine, its = self.numbers[0], other.numbers[0]
        if self.features != other.features:
            raise ValueError(
                f"Partition {its}: its samples have {other.features} features, but those of "
                f"partition {mine} have {self.features}."
            )
        names = [None if each.names is None else list(each.names) for each in (self, other)]
        if names[0] != names[1]:
            raise ValueError(
                f"Partition {its}: the names of its features are not those of partition {mine}."
            )
        return replace(
            self,
            numbers=self.numbers + other.numbers,
            samples=self.samples + other.samples,
            size=self.size + other.size,
            outermost=outermost(np.concatenate([self.outermost, other.outermost])),
        )


def outermost(X: Array) -> Array:
    """Return the smallest and the largest values of each feature, as many as a domain needs."""
    ordered, few = np.sort(X, axis=0), _auto._TAIL + 1
    return ordered if len(X) <= 2 * few else np.concatenate([ordered[:few], ordered[-few:]])


@dataclass(frozen=True)
class LookAround:
    """A step: see where the points of a part are."""

    estimator: Any
    name: str = field(default="look", init=False)

    def __call__(self, number: int, X: Any, y: Any = None, weight: Any = None) -> Extent | None:  # noqa: ARG002
        if not _rows(X):
            return None
        estimator = clone(self.estimator)
        with named(number):
            X = estimator._validate_samples(X, reset=True)
            _amounts(X, weight)
        names = estimator.__dict__.get("feature_names_in_")
        return Extent((number,), (len(X),), X.shape[1], names, int(X.nbytes), outermost(X))


@dataclass(frozen=True)
class Frame:
    """Where points can be."""

    domain: Array
    periodic: NDArray[np.bool_]
    window: Window | None

    def points(self, X: Array, amounts: Array) -> tuple[Array, Array, int]:
        """Return the points within, how many points each stands for, and how many are outside."""
        X = folded(X, self.domain, self.periodic)
        low, high = self.domain.T
        inside = ((low <= X) & (high >= X)).all(axis=1)
        if self.window is not None:
            inside &= self.window.contains(X)
        return X[inside], amounts[inside], int(len(X) - inside.sum())


@dataclass(frozen=True)
class Some:
    """Some of the points of a few parts, and how many there are in all."""

    points: tuple[tuple[Array, Array], ...]
    count: int
    mass: float
    rejected: int

    def __add__(self, other: Some) -> Some:
        return Some(
            self.points + other.points,
            self.count + other.count,
            self.mass + other.mass,
            self.rejected + other.rejected,
        )


@dataclass(frozen=True)
class DrawPoints:
    """A step: draw points of a part at random, so many of each."""

    estimator: Any
    frame: Frame
    counts: dict[int, int]
    name: str = field(default="draw", init=False)

    def __call__(self, number: int, X: Any, y: Any = None, weight: Any = None) -> Some | None:  # noqa: ARG002
        if not _rows(X):
            return None
        with named(number):
            X = clone(self.estimator)._validate_samples(X, reset=True)
        amounts = _amounts(X, weight)
        rows = draw(len(X), self.counts[number], 0, number)
        drawn = self.frame.points(X[rows], amounts[rows])[:2]
        inside, amounts, rejected = self.frame.points(X, amounts)
        return Some((drawn,), len(inside), float(amounts.sum()), rejected)


@dataclass(frozen=True)
class Observed:
    """What points say about a density on a known dictionary, as sums."""

    moments: Array
    covariates: Array
    mass: float
    count: int
    rejected: int
    loss: float

    def __add__(self, other: Observed) -> Observed:
        return Observed(
            self.moments + other.moments,
            self.covariates + other.covariates,
            self.mass + other.mass,
            self.count + other.count,
            self.rejected + other.rejected,
            self.loss + other.loss,
        )


@dataclass(frozen=True)
class Observe:
    """A step: sums over the points of a part of the kernels with the dictionary of a model."""

    shared: Any  # an estimator that has the model
    judged: bool = False  # whether the model has been solved, and the points have a loss
    name: str = field(default="statistics", init=False)

    def __call__(self, number: int, X: Any, y: Any = None, weight: Any = None) -> Observed | None:  # noqa: ARG002
        if not _rows(X):
            return None
        estimator, core = self.shared, self.shared._model
        with named(number):
            X = estimator._validate_samples(X)
            amounts = _amounts(X, weight)
            frame = Frame(estimator.domain_, estimator.periodic_, estimator._fitted_window())
            X, amounts, rejected = frame.points(X, amounts)
            sums = np.empty(0)
            if estimator.covariates is not None and len(X):
                sums = np.asarray(amounts @ values_of(estimator.covariates, X))
            elif estimator.covariates is not None:
                sums = np.zeros_like(estimator._covariate_sums_)
        with threads_of(estimator.n_jobs):
            loss = -float(estimator._log_density(core, X) @ amounts) if self.judged else 0.0
            alone = core.copy()
            alone.observe(X, amounts, 0.0)  # and nothing of what the model knew before
        return Observed(
            np.asarray(alone.moments), sums, float(amounts.sum()), len(X), rejected, loss
        )


def check_intensity(estimator: Any) -> None:
    """Refuse what cannot be learned from parts."""
    estimator._check_parameters()
    if estimator.solver != "newton" or estimator._searches():
        raise ValueError(
            "Densities of parts of data are learned with solver='newton' and neither budget nor "
            "parsimony: steps of the paper's algorithm are no sums over points."
        )


def fit_intensity(estimator: Any, run: MapReduce, watch: Watch, exposure: float | None) -> Any:
    """Return an intensity that has been learned from all points of all parts."""
    check_intensity(estimator)
    watch("look", {})
    extent: Extent | None = run(LookAround(clone(estimator)), add)
    if extent is None:
        raise ValueError(_NONE_IN_PARTS)
    frame = _frame(estimator, extent)
    counts = shares(extent.numbers, extent.samples, _choose._MOST_SAMPLES)
    some: Some = run(DrawPoints(clone(estimator), frame, counts), add)
    if not some.count:
        raise ValueError(
            f"None of the samples (n_samples={extent.total}) is in the domain "
            f"{frame.domain.tolist()} or its window."
        )
    if not some.mass > 0:
        raise ValueError("Sample weights must contain at least one non-zero number.")
    _warn_of_others(some.rejected, extent.total, frame)
    watch("settings", {"samples": float(some.count)})
    X, amounts = (np.concatenate(columns) for columns in zip(*some.points, strict=True))
    made = clone(estimator)
    made.n_features_in_ = extent.features
    if extent.names is not None:
        made.feature_names_in_ = np.asarray(extent.names, dtype=object)
    with threadpool_limits(limits=1, user_api="blas"), threads_of(estimator.n_jobs):
        place = Place(estimator, frame.domain, X, frame.window)
        choice = choose(place, X, amounts, of=(some.count, some.mass))
        lengths = choice.lengths.tolist()
        span: Any = place.span(lengths, choice.scales)
        kernel = place.kernel(lengths)
        core = span.model(kernel, place.box)
        none_yet = {
            "domain_": frame.domain,
            "periodic_": frame.periodic,
            "_window_": frame.window,
            "n_rejected_": some.rejected,
            "scales_": _solved.scales_of(span),
            "_fit_points_": some.count,
            "_fit_samples_": some.count,
            "_validation_": [],
            "_buffer_": np.empty((0, extent.features + 1)),
            "_chosen_at_": 0,
            "_covariate_sums_": _no_covariates(estimator, X),
            "_kernel_": kernel,
            "epochs_": 1,
            **NOTHING_SPECIAL,
            **_solved.exposed(exposure, None, np.array([some.mass])),
        }
        made._adopt(core, none_yet)
        watch("weights", {"points": float(core.model_order)})
        seen: Observed = run(Observe(made), add)
        core = _with_sums(core, kernel, seen.moments, seen.mass, seen.count)
        solved = _solved.solve(place, span, choice.ridge, core, sums=seen.covariates)
        if solved.likelihood.span is not span:  # by a finer rule of the integral
            span = solved.likelihood.span
            finer = span.model(kernel, place.box)
            core = _with_sums(finer, kernel, seen.moments, seen.mass, seen.count)
        _solved.assume(core, solved, 1 + float(np.log(place.width).sum()))
    found = {"_covariate_sums_": seen.covariates, "_coef_": _solved.coefficients(solved)}
    made._adopt_solved(core, {**found, "_unsolved_": (0.0, 0.0)}, span)
    return made


def go_on_with_intensity(model: Any, run: MapReduce, watch: Watch, exposure: float | None) -> Any:
    """Return an intensity that has learned from more points, too."""
    core = model._fitted_model()
    if not isinstance(core, _core.SolvedDensity) or model.__dict__.get("_predicts_only_"):
        raise cannot_go_on(model)
    made = copy.copy(model)
    made._adopt_solved(core, {"_unsolved_": (0.0, 0.0), "_coef_": model._coefficients(core)}, None)
    watch("weights", {"points": float(core.model_order)})
    seen: Observed | None = run(Observe(made, judged=True), add)
    if seen is None:
        raise ValueError(_NONE_IN_PARTS)
    frame = Frame(made.domain_, made.periodic_, made._fitted_window())
    _warn_of_others(seen.rejected, seen.count + seen.rejected, frame)
    if not seen.mass > 0:
        return made
    past = _solved.kept(made, seen.mass)
    moments = past * np.asarray(core.moments) + seen.moments
    mass = past * float(core.mass) + seen.mass
    sums = seen.covariates
    if len(sums):
        sums = sums + past * made._covariate_sums_
    fitted = {
        "_covariate_sums_": sums,
        "_unsolved_": (seen.loss, seen.mass),
        "_buffer_": made._buffer_[:0],
        "n_rejected_": made.n_rejected_ + seen.rejected,
        **_solved.exposed(exposure, made, np.array([seen.mass])),
    }
    core = _with_sums(core, made._kernel_, moments, mass, core.samples + seen.count)
    made._adopt_solved(core, fitted, None)
    core = made._fitted_model()
    fitted = {"_unsolved_": (0.0, 0.0), "_coef_": made._coefficients(core)}
    made._adopt_solved(core, fitted, made._latest()[1])
    return made


def is_intensity(estimator: Any) -> bool:
    """Tell whether this is an estimator of densities."""
    return isinstance(estimator, Intensity)


def _frame(estimator: Any, extent: Extent) -> Frame:
    window = window_of(estimator.window)
    if window is not None and window.rings is not None and extent.features != 2:
        raise ValueError(f"A window of polygons is for 2 features; X has {extent.features}.")
    around = None if window is None else window.bounds()
    domain = _auto.choose_domain(estimator.domain, extent.outermost, around)
    return Frame(domain, goes_round(estimator.periodic, extent.features), window)


def _amounts(X: Array, weight: Any) -> Array:
    """Return how many points each of them stands for."""
    if weight is None:
        return np.ones(len(X))
    return np.asarray(_check_sample_weight(weight, X, dtype=np.float64, ensure_non_negative=True))


def _no_covariates(estimator: Any, X: Array) -> Array:
    if estimator.covariates is None:
        return np.empty(0)
    return np.zeros(values_of(estimator.covariates, X[:1]).shape[1])


def _with_sums(core: Any, kernel: Any, moments: Array, mass: float, samples: int) -> Any:
    """Return a model that has observed points of which these are the sums."""
    archive = core.to_archive()
    archive["moments"], archive["moments.mass"] = moments, mass
    archive["samples"] = int(samples)
    return _core.read_model(archive, kernel.core)


def _warn_of_others(rejected: int, total: int, frame: Frame) -> None:
    if rejected:
        warn(
            f"{rejected} of {total} samples are outside the domain {frame.domain.tolist()} or its "
            f"window and are left out."
        )


def _rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)

"""Any kernel model with fewer points."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from parsimon._approximate import move_points
from parsimon._checks import count, is_number
from parsimon.expansion import KernelExpansion, komp

from ._kernels import has_gradient
from ._process import cholesky
from ._report import (
    ModelReport,
    Seen,
    check_targets,
    microseconds,
    most_likely_share,
    score,
    size_in_bytes,
)
from ._sources import Large, large_model

Array = NDArray[np.float64]

# Weights are solved on X if there are so many samples for it.
_FEWEST_SAMPLES = 30
_MOST_SOLVED_ON = 20_000
# How much the weights hold on to those of the projection, to choose among.
_ANCHORS = (1e-8, 1e-6, 1e-4, 1e-2)
# A function that a tolerance is searched for with has at most so many points.
_MOST_TO_SEARCH = 2000
# Points are moved by so many steps, or as many as take about half a minute; fewer are not worth it.
_STEPS, _FEWEST_STEPS, _MOST_NUMBERS = 100, 20, 1e10
# Points that move do with fewer: how many are looked for so many times, from this share on.
_TIMES, _LEAST_SHARE = 4, 0.4


def compress(
    model: Any,
    *,
    budget: float | None = None,
    max_points: int | None = None,
    tolerance: float | None = None,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    refine: bool = True,
    verbose: int = 0,
) -> tuple[Any, ModelReport]:
    """Make a model of fewer points that predicts as a fitted one does.

    The points are chosen from the large model's by kernel orthogonal matching pursuit
    (:func:`parsimon.komp`), and their weights are those of the nearest function in Hilbert norm.
    Then the points are moved to where that distance is smallest, as
    :meth:`parsimon.KernelExpansion.refine` does; with X, weights are solved again towards the large
    model's outputs on it. Either is kept if it brings the function nearer: in Hilbert norm, or,
    with X, on samples of it that no weights are solved on.

    Parameters
    ----------
    model : fitted estimator, pipeline or KernelExpansion
        Of scikit-learn: SVC, NuSVC, SVR, NuSVR, OneClassSVM, KernelRidge, GaussianProcessRegressor,
        GaussianProcessClassifier of two classes, KernelDensity with a Gaussian or exponential
        kernel, or Intel's counterparts; any estimator of parsimon; a pipeline that ends with one.
    budget : float, optional
        How far the function may move in Hilbert norm.
    max_points : int, optional
        The number of points. Give one of `budget`, `max_points` and `tolerance`.
    tolerance : float, optional
        What may happen on X: the largest change of a prediction or, for classifiers and novelty
        detectors, the share of labels that may change.
    X : array-like of shape (n_samples, n_features), optional
        Samples like those that predictions will be made for; best of all, samples that the large
        model was not trained on. The report's measurements are made on a third of them, on which
        no weights are solved.
    y : array-like of shape (n_samples,), optional
        Their labels or targets, for scores in the report.
    refine : bool, default=True
        Whether points may move. Points that have moved are none of the training samples any more,
        so that :func:`parsimon.explain.prototypes` finds no samples that they are. Those of SLKL,
        which must be samples, and those of Gaussian processes, which say how sure these are, stay
        where they are; so do those of kernels without a gradient and of very large models.
    verbose : int, default=0
        1 shows a progress bar for models of more than 3,000 points, and one while points move.

    Returns
    -------
    model : estimator, pipeline or KernelExpansion
        With the methods of the large one. Estimators of parsimon stay what they are, and can go on
        learning; the others become a :class:`CompressedClassifier`, :class:`CompressedRegressor`,
        :class:`CompressedOneClass` or :class:`CompressedDensity`.
    report : ModelReport
        What was done and what is known about it.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.svm import SVC
    >>> import parsimon
    >>> X, y = load_digits(return_X_y=True)
    >>> large = SVC().fit(X[:900], y[:900])
    >>> small, report = parsimon.compress(large, max_points=150, X=X[900:], y=y[900:])
    >>> report.points_before > 400, report.points_after, report.labels_changed < 0.02
    (True, 150, True)
    """
    _check_limits(budget, max_points, tolerance, X)
    if isinstance(model, Pipeline):
        return _compress_pipeline(
            model,
            budget=budget,
            max_points=max_points,
            tolerance=tolerance,
            X=X,
            y=y,
            refine=refine,
            verbose=verbose,
        )
    if hasattr(model, "scaler_") and hasattr(model, "estimator_"):  # a StreamingPipeline
        check_is_fitted(model)
        small, report = compress(
            model.estimator_,
            budget=budget,
            max_points=max_points,
            tolerance=tolerance,
            X=None if X is None else model.encode(X),
            y=y,
            refine=refine,
            verbose=verbose,
        )
        smaller = copy.deepcopy(model)
        smaller.estimator_ = small
        return smaller, report
    large = large_model(model)
    samples = _samples(large, X, y)
    task = _Task(large, samples, refine, verbose)
    if tolerance is not None:
        found = task.within(float(tolerance))
    else:
        found = task.attempt(0.0 if budget is None else float(budget), max_points)
    small, deviation_bound = large.make(found.expansion)
    names = getattr(model, "feature_names_in_", None)
    if names is not None and not hasattr(small, "feature_names_in_"):
        small.feature_names_in_ = names
    return small, _report(large, found, samples, deviation_bound)


def _check_limits(budget: Any, max_points: Any, tolerance: Any, X: Any) -> None:
    given = [value is not None for value in (budget, max_points, tolerance)]
    if sum(given) != 1:
        raise ValueError(
            "Give one of budget (a Hilbert norm), max_points (a number of points) and tolerance "
            f"(what may change on X); {sum(given)} of them were given."
        )
    count(optional=True)("max_points", max_points)
    for name, value in (("budget", budget), ("tolerance", tolerance)):
        if value is not None and (not is_number(value) or value < 0):
            raise ValueError(f"{name} must be a finite number, not negative; got {value!r}.")
    if tolerance is not None and X is None:
        raise ValueError("A tolerance is what may change on samples: give X as well.")


def _compress_pipeline(model: Pipeline, *, X: Any, **limits: Any) -> tuple[Any, ModelReport]:
    check_is_fitted(model)
    name, last = model.steps[-1]
    if X is not None:
        X = model[:-1].transform(X) if len(model.steps) > 1 else X
    small, report = compress(last, X=X, **limits)
    smaller = copy.deepcopy(model)
    smaller.steps[-1] = (name, small)
    return smaller, report


@dataclass(frozen=True)
class _Samples:
    """Samples that may decide, and those that only measure."""

    deciding: Array
    measuring: Array
    targets: NDArray[Any] | None


def _samples(large: Large, X: ArrayLike | None, y: ArrayLike | None) -> _Samples:
    features = large.expansion.dictionary.shape[1]
    if X is None:
        if y is not None:
            raise ValueError("y was given without X, the samples that it belongs to.")
        return _Samples(np.empty((0, features)), np.empty((0, features)), None)
    rows = check_array(X, accept_sparse="csr", dtype=np.float64, input_name="X")
    rows = np.ascontiguousarray(rows.toarray() if hasattr(rows, "toarray") else rows)
    if rows.shape[1] != features:
        raise ValueError(f"X has {rows.shape[1]} features, but the model has {features}.")
    order = np.random.RandomState(0).permutation(len(rows))
    third = max(len(rows) // 3, 1)
    targets = None
    if y is not None:
        check_consistent_length(rows, y)
        check_targets(large, np.asarray(y))
        targets = np.asarray(y)[order[:third]]
    return _Samples(rows[order[third:]], rows[order[:third]], targets)


@dataclass(frozen=True)
class _Found:
    """A smaller function, how far it is from the large one, and where points and weights are from.

    `left` is what it leaves of the large one's outputs, squared, on samples that are held out.
    `looks` is among how many functions it was chosen by what all samples say about them.
    """

    expansion: KernelExpansion
    error: float
    weights: str = "projected"
    points: str = "kept"
    left: float = math.inf
    looks: int = 1


class _Task:
    """A large function, and samples on which smaller ones are judged."""

    def __init__(self, large: Large, samples: _Samples, refine: bool, verbose: int) -> None:
        self._large = large
        self._refine = refine and large.may_move
        self._verbose = verbose
        self._X = samples.deciding[:_MOST_SOLVED_ON]
        self._wanted = np.asarray(large.expansion(self._X))
        self._judges = [np.vstack([samples.deciding, samples.measuring]), samples.measuring]

    def attempt(self, budget: float, max_points: int | None) -> _Found:
        """Return a function with a budget or a number of points."""
        start = self._large.expansion
        if max_points is not None:
            return self._smaller(start, 0.0, budget, max_points, move=True)
        found = self._smaller(start, 0.0, budget, None, most=budget, move=True)
        if found.points == "kept":
            return found
        fewer = self._fewer(start, 0.0, found, lambda each: each.error <= budget, most=budget)
        return replace(fewer, looks=1)  # no sample was asked how many there may be

    def _fewer(
        self,
        start: KernelExpansion,
        spent: float,
        best: _Found,
        enough: Callable[[_Found], bool],
        most: float = math.inf,
    ) -> _Found:
        """Return a function of fewer points, which have moved, that is good enough as well."""
        many = best.expansion.model_order
        few, looks = round(_LEAST_SHARE * many), best.looks
        for _ in range(_TIMES):
            size = round(math.sqrt(max(few, 1) * many))
            if not few < size < many:
                break
            found = self._smaller(start, spent, 0.0, size, most=most, move=True)
            if found.points == "kept" and most == math.inf:  # which the search has been through
                few = size
                continue
            looks += 1
            if enough(found):
                best, many = found, found.expansion.model_order
            else:
                few = size
        return replace(best, looks=looks)

    def _smaller(
        self,
        start: KernelExpansion,
        spent: float,
        budget: float,
        max_points: int | None,
        *,
        most: float = math.inf,
        move: bool,
    ) -> _Found:
        """Return the nearest function of a budget or a number of points that is found.

        ``spent`` is the distance between the large function and `start`, its projection; ``most``
        is how far weights that are solved may go from the large function.
        """
        small, report = komp(start, budget, max_points=max_points, verbose=self._verbose)
        candidates = [_Found(small, math.hypot(spent, report.error))]
        if move and self._refine:
            candidates += self._moved(start, spent, small)
        candidates = [found for found in candidates if found.error <= most] or candidates
        if len(self._X) < _FEWEST_SAMPLES:
            return min(candidates, key=lambda found: found.error)
        solved = [self._solved(found, partial(_apart, start, spent), most) for found in candidates]
        return min(solved, key=lambda found: found.left)

    def _moved(self, start: KernelExpansion, spent: float, small: KernelExpansion) -> list[_Found]:
        """Return a function with points that have moved, if there is any and it is nearer."""
        orders = small.model_order, start.model_order
        steps = min(_STEPS, int(_MOST_NUMBERS / _numbers_of_a_step(start, small)))
        if not 0 < orders[0] < orders[1] or steps < _FEWEST_STEPS:
            return []
        if not has_gradient(start.kernel):
            return []
        try:
            core = move_points(start._core, small._core, steps, self._verbose)
        except linalg.LinAlgError:  # points too much alike to begin with
            return []
        moved = start._derive(core)
        error = _apart(start, spent, moved)
        nearer = error < spent + start.distance(small)
        return [_Found(moved, error, points="moved")] if nearer else []

    def within(self, tolerance: float) -> _Found:
        """Return the smallest function that changes no more on the samples than is tolerable."""
        start, spent = self._large.expansion, 0.0
        if start.model_order > _MOST_TO_SEARCH:
            start, report = komp(start, max_points=_MOST_TO_SEARCH, verbose=self._verbose)
            spent = report.error
        wanted = [self._large.values(self._large.expansion, X) for X in self._judges]

        def tolerable(found: _Found) -> bool:
            return max(map(partial(self._change, found), wanted, self._judges)) <= tolerance

        best = _Found(self._large.expansion, 0.0)
        few, many, looks = 0, start.model_order, 0
        while many - few > max(1, many // 100):
            size = max(few + 1, round(math.sqrt(max(few, 1) * many)))
            size = min(size, many - 1) if many - 1 > few else size
            found = self._smaller(start, spent, 0.0, size, move=False)
            looks += 1
            if tolerable(found):
                best, many = found, found.expansion.model_order
            else:
                few = size
            if many <= 1:
                break
        best = replace(best, looks=max(looks, 1))
        if not self._refine:
            return best
        # Moving points takes time: they move where the search has ended, not along the way.
        moved = self._smaller(start, spent, 0.0, best.expansion.model_order, move=True)
        if moved.points == "kept":
            return best
        looks = best.looks + 1
        if not tolerable(moved):
            return replace(best, looks=looks)
        return self._fewer(start, spent, replace(moved, looks=looks), tolerable)

    def _change(self, found: _Found, wanted: Array, X: Array) -> float:
        """Return the share of labels that change on samples, or the largest change."""
        seen = Seen(wanted, self._large.values(found.expansion, X), self._large.head, X)
        relabelled = seen.relabelled()
        return float(seen.change().max() if relabelled is None else relabelled.mean())

    def _solved(
        self, found: _Found, apart: Callable[[KernelExpansion], float], most: float
    ) -> _Found:
        """Return the function with weights solved on the samples, if it is nearer on others.

        With g_0 the projection and V the coordinates of g - g_0 in an orthonormal basis of the
        span, minimise |F - g(X)|^2 + anchor N |V|^2: far from all samples, g stays near g_0. The
        distance to the large function is sqrt(|f - g_0|^2 + |V|^2), since g_0 is a projection; V is
        shortened where that would be more than `most`. The shorter, the nearer to g_0: by
        convexity, what is left on the samples lies between.
        """
        small, held = found.expansion, len(self._X) // 4
        gram = small.kernel(small.dictionary)
        values = small.kernel(small.dictionary, self._X)
        # Products of some libraries raise flags over numbers that they never use.
        with threadpool_limits(limits=1, user_api="blas"), np.errstate(invalid="ignore"):
            left = self._wanted - values.T @ small.weights
            found = replace(found, left=float((left[:held] ** 2).sum()))
            try:
                lower = linalg.cholesky(gram, lower=True)
            except linalg.LinAlgError:  # points too much alike to build upon
                return found
            features = linalg.solve_triangular(lower, values, lower=True).T
            room = math.sqrt(max(most**2 - found.error**2, 0.0)) if most < math.inf else math.inf
            best, anchor = found.left, None
            for choice in _ANCHORS:
                moved = _shortened(_ridge(features[held:], left[held:], choice), room)
                rest = float(((left[:held] - features[:held] @ moved) ** 2).sum())
                if rest < best:
                    best, anchor = rest, choice
            if anchor is None:
                return found
            moved = _shortened(_ridge(features, left, anchor), room)
        weights = small.weights + linalg.solve_triangular(lower, moved, lower=True, trans=1)
        solved = KernelExpansion(small.kernel, small.dictionary, weights)
        error = math.hypot(found.error, float(np.sqrt((moved**2).sum())))
        if found.points == "moved":  # no projection to the last digit: measured instead
            error = apart(solved)
        if error > most:
            return found
        return replace(found, expansion=solved, error=error, weights="solved on X", left=best)


def _numbers_of_a_step(start: KernelExpansion, small: KernelExpansion) -> float:
    """Return what a step of points costs: kernels and their slopes, and a factor of few points."""
    before, features = start.dictionary.shape
    after = small.model_order
    # A product in a factor costs little beside a kernel, and a kernel something beside features.
    return float(before * after * (features + 10) + after**3 / 50 + 1)


def _apart(start: KernelExpansion, spent: float, small: KernelExpansion) -> float:
    """Return how far a function is at most from one that is at a distance from `start`."""
    return spent + start.distance(small)


def _shortened(moved: Array, room: float) -> Array:
    """Return a move that is no longer than there is room for, by more than rounding."""
    length = float(np.sqrt((moved**2).sum()))
    return moved if length <= room else moved * ((1 - 1e-9) * room / length)


def _ridge(features: Array, left: Array, anchor: float) -> Array:
    normal = features.T @ features
    normal[np.diag_indices_from(normal)] += anchor * len(features)
    return np.asarray(linalg.cho_solve((cholesky(normal), True), features.T @ left))


def _report(
    large: Large, found: _Found, samples: _Samples, deviation_bound: float | None
) -> ModelReport:
    before, after, X = large.expansion, found.expansion, samples.measuring
    seen = Seen(large.values(before, X), large.values(after, X), large.head, X)
    relabelled = seen.relabelled()
    measured = len(X) > 0
    changed = None if relabelled is None or not measured else int(relabelled.sum())
    y = samples.targets
    return ModelReport(
        points_before=before.model_order,
        points_after=after.model_order,
        certified_bound=found.error,
        deviation_bound=deviation_bound,
        points=found.points,
        weights=found.weights,
        samples=len(X),
        largest_change=float(seen.change().max()) if measured else None,
        exceeding=most_likely_share(0, len(X), found.looks) if measured else None,
        labels_changed=None if changed is None else changed / len(X),
        labels_changed_at_most=None
        if changed is None
        else most_likely_share(changed, len(X), found.looks),
        score_before=None if y is None else score(large, seen.before, y),
        score_after=None if y is None else score(large, seen.after, y),
        bytes_before=size_in_bytes(before),
        bytes_after=size_in_bytes(after),
        microseconds_before=microseconds(before, X),
        microseconds_after=microseconds(after, X),
    )

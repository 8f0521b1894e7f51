"""Learning from data in parts: settings, points, weights, each a map and a reduce."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from parsimon import _core
from parsimon._affine import MANY_FEATURES
from parsimon._checks import warn
from parsimon._labels import Labels
from parsimon._model import ModelEstimator
from parsimon._newton import has_growing_cap, points_of_fit
from parsimon._primal import is_primal
from parsimon._stream import Samples
from parsimon.schedules import AdaptiveBudget

from ._density import fit_intensity, go_on_with_intensity, is_intensity
from ._dictionary import Merge, Plan, Scout, blank, describe_missing
from ._parts import Draw, Look, Summary, shares
from ._statistics import Statistics, encoded, fingerprint, packed, unpacked
from ._task import Learned, MapReduce, Task, Watch
from ._weights import Past, add

Array = NDArray[np.float64]

# Samples that settings are chosen on, and numbers in them: what the one who asks has to hold.
_GATHERED = 10_000
_GATHERED_NUMBERS = 1 << 23


def _silent(phase: str, figures: dict[str, float]) -> None:
    pass


def fit(
    estimator: Any,
    map_reduce: MapReduce,
    *,
    watch: Watch = _silent,
    classes: Any = None,
    exposure: float | None = None,
) -> Any:
    """Learn from data that are in parts, wherever these are.

    Settings are chosen on some samples of each part; each part finds points, which are merged two
    by two, and compressed each time; the weights on them are solved from sums over all parts, at
    once for the squared loss and otherwise in rounds. A risk is of all losses together: in each
    of its rounds, the one who asks gets the loss of every sample. Of an intensity, all that is
    needed of the points are sums of kernels: its weights are solved from them as on one machine.

    Parameters
    ----------
    estimator : POLKClassifier, POLKRegressor, COLKClassifier, COLKRegressor or SPPPOTIntensity
        With ``solver="newton"``. It is not changed.
    map_reduce : callable
        ``map_reduce(step, combine)`` calls ``step(number, X, y)``, or ``step(number, X, y,
        sample_weight)``, for each part of the data, which are numbered 0, 1, ..., and returns
        ``combine(...combine(combine(first, second), third)..., last)`` of what that returned, in
        any grouping, but always the same one: then the model does not depend on who does what. All
        these can be pickled. ``step.name`` says what is done. Points of an intensity have None as
        their y.
    watch : callable, optional
        It is called as ``watch(phase, figures)`` whenever there is something to tell.
    classes : array-like, optional
        Of a classifier: labels of which there may be no samples before later data come.
    exposure : float, optional
        Of an intensity, as in its `fit`.

    Returns
    -------
    estimator
        A fitted one, with which everything can be done as if it had learned here.

    Examples
    --------
    >>> import functools
    >>> from parsimon import POLKClassifier, distributed
    >>> from parsimon.datasets import make_multidist
    >>> X, y = make_multidist(2000, random_state=0)
    >>> parts = [(X[i::4], y[i::4]) for i in range(4)]
    >>> def map_reduce(step, combine):
    ...     return functools.reduce(combine, [step(i, *part) for i, part in enumerate(parts)])
    >>> model = distributed.fit(POLKClassifier(random_state=0), map_reduce)
    >>> model.score(X, y) > 0.9
    True
    """
    if is_intensity(estimator):
        return fit_intensity(estimator, map_reduce, watch, exposure)
    check_estimator(estimator)
    _check_no_exposure(estimator, exposure)
    watch("look", {})
    summary = _summary(map_reduce(Look(estimator), add), estimator, classes)
    made = blank(estimator, summary)
    _check_features(estimator, made, summary)
    seed = int(check_random_state(estimator.random_state).randint(2**31 - 1))
    samples = _gathered(made, map_reduce, summary, seed)
    # Sums in another order could choose something else.
    with threadpool_limits(limits=1, user_api="blas"):
        plan = Plan.of(made, samples, summary, seed)
    watch("points", {"samples": float(summary.total)})
    found = map_reduce(Scout(plan), Merge(plan))
    core = plan.new_model(plan.cap)
    core.replace(found.points, found.weights)
    watch("weights", {"points": float(core.model_order)})
    task = Task(made, plan, map_reduce, watch, float(summary.total))
    if plan.squared:
        core, numbers = task.exactly(core, None)
        return task.finish(core, numbers=numbers, error=found.error)
    if plan.has_risk:
        core, ridge, how = task.measured(core, samples)
        return task.finish(core, ridge=ridge, measured=how, error=found.error)
    core, ridge, against_rest = task.in_rounds(core, samples)
    return task.finish(core, ridge=ridge, against_rest=against_rest, error=found.error)


def partial_fit(
    model: Any,
    map_reduce: MapReduce,
    *,
    watch: Watch = _silent,
    classes: Any = None,
    exposure: float | None = None,
) -> Any:
    """Learn from more data that are in parts.

    The earlier samples stay in the model's statistics: exactly what they said about its points for
    the squared loss, and otherwise as a parabola about the solution of then. The new ones find
    points of their own beside those that there are; together they are compressed to as many as
    the samples so far may have. With a number as ``half_life``, the past fades by it; otherwise
    nothing is forgotten.

    Parameters
    ----------
    model : estimator
        One that :func:`fit` or this function returned, and that has not learned anywhere else
        since. It is not changed.
    map_reduce : callable
        As in :func:`fit`, for the new data.
    watch : callable, optional
        As in :func:`fit`.
    classes : array-like, optional
        Of a classifier: labels of which there may be no samples before later data come.
    exposure : float, optional
        Of an intensity, as in its `partial_fit`.

    Returns
    -------
    estimator
        A fitted one.
    """
    if is_intensity(model):
        return go_on_with_intensity(model, map_reduce, watch, exposure)
    learned = _learned(model)
    _check_no_exposure(model, exposure)
    watch("look", {})
    summary = _summary(map_reduce(Look(clone(model)), add), model, classes)
    _check_features(model, model, summary)
    made, core = _with_labels(model, summary)
    plan = _continued(learned, made, core, summary)
    archive = core.to_archive()
    archive["regularization"] = plan.regularization
    core = _core.read_model(archive, plan.kernel.core)
    watch("points", {"samples": float(summary.total)})
    points, weights = np.asarray(core.dictionary), np.asarray(core.weights)
    found = map_reduce(Scout(plan, (points, weights)), Merge(plan, len(points)))
    share = _kept(model, summary.total)
    new = ~_among(found.points, points)
    nothing = np.zeros((int(new.sum()), weights.shape[1]))
    core.replace(np.concatenate([points, found.points[new]]), np.concatenate([weights, nothing]))
    watch("weights", {"points": float(core.model_order)})
    samples = share * learned.samples + summary.total
    task = Task(made, plan, map_reduce, watch, samples)
    past = Past(share * _normal(core), np.asarray(core.solution).copy())
    error = learned.error + found.error
    if plan.squared:
        core, numbers = task.exactly(core, _least_squares(core, learned, past, share))
        return task.finish(core, numbers=numbers, error=error)
    core = task.go_on(core, past, learned)
    known = {name: getattr(learned, name) for name in ("ridge", "against_rest", "measured")}
    return task.finish(core, **known, error=error)


def _check_no_exposure(estimator: Any, exposure: float | None) -> None:
    if exposure is not None:
        raise ValueError(f"exposure is of intensities; {type(estimator).__name__} has none.")


def check_estimator(estimator: Any) -> None:
    """Refuse what cannot be learned from parts."""
    if not isinstance(estimator, ModelEstimator) or not hasattr(estimator, "_algorithms"):
        raise TypeError(
            f"An estimator of parsimon can learn from parts; got {type(estimator).__name__}."
        )
    given: dict[str, Any] = estimator.get_params(deep=False)
    learns = is_classifier(estimator) or is_regressor(estimator)
    if not learns or not {"solver", "parsimony", "max_points"} <= given.keys():
        raise ValueError(
            "POLK's and COLK's classifiers and regressors learn from parts, and intensities."
        )
    estimator._check_parameters()
    if given["solver"] != "newton" or not given.get("refit", True):
        raise ValueError(
            "Parts of data learn with solver='newton' and refit=True: steps of solver='sgd' are no "
            "sums over samples."
        )
    if given.get("refine") or given["compression"] != "remove":
        raise ValueError(
            "Points of parts are samples that somebody has: give refine=False and "
            "compression='remove' to learn from parts of data."
        )
    if isinstance(given["budget"], AdaptiveBudget):
        raise ValueError(
            "An AdaptiveBudget follows one stream: give max_points to learn from parts of data."
        )
    if hasattr(given["half_life"], "update"):
        raise ValueError(
            "A detector follows one stream: give half_life as a number, None or 'auto' to learn "
            "from parts of data."
        )


def _summary(found: Any, estimator: Any, classes: Any) -> Summary:
    if not isinstance(found, Summary) or not found.numbers:
        raise ValueError("There are no samples in any of the partitions.")
    if found.classes:
        lacking = found.lacking(found.labels()[0])
        if lacking:
            warn(describe_missing(lacking))
    if classes is None:
        return found
    if not found.classes:
        raise ValueError(f"classes are labels, of which {type(estimator).__name__} has none.")
    return replace(found, announced=Labels.of_stream(None, classes, found.labels()[0]).classes)


def _check_features(estimator: Any, made: Any, summary: Summary) -> None:
    if summary.features != made.n_features_in_:
        raise ValueError(
            f"Partition {summary.numbers[0]}: X has {summary.features} features, but "
            f"{type(made).__name__} is expecting {made.n_features_in_} features as input."
        )
    words = estimator.kernel == "auto" and summary.features > MANY_FEATURES
    if words or (summary.features > MANY_FEATURES and is_primal(estimator, estimator.kernel, 1)):
        raise ValueError(
            f"A linear model of {summary.features} features is no dictionary of points, and cannot "
            f"be learned from parts: give kernel='rbf' or max_points, or learn from all samples on "
            f"one machine."
        )


def _gathered(made: Any, run: MapReduce, summary: Summary, seed: int) -> Samples:
    most = max(min(_GATHERED, _GATHERED_NUMBERS // summary.features), 1)
    drawn = run(Draw(clone(made), shares(summary.numbers, summary.samples, most), seed), add)
    nameless = copy.copy(made)
    # What was drawn has no names any more.
    nameless.__dict__.pop("feature_names_in_", None)
    return encoded(nameless, *drawn.joined())


def _normal(core: Any) -> Array:
    return unpacked(np.asarray(core.to_archive()["statistics.normal"]), len(core.solution))


def _learned(model: Any) -> Learned:
    learned = getattr(model, "__dict__", {}).get("_learned_")
    core = None if learned is None else model._fitted_model()
    known = None if learned is None else (learned.steps, learned.of)
    if core is None or known != (core.samples, fingerprint(model, core)):
        raise ValueError(
            "partial_fit goes on from a model that fit or partial_fit of parsimon.distributed has "
            "returned, and that has learned nowhere else since."
        )
    return cast(Learned, learned)


def _kept(model: Any, samples: int) -> float:
    half_life = model.half_life
    if half_life is None or isinstance(half_life, str):
        return 1.0
    return float(0.5 ** (samples / half_life))


def _among(points: Array, known: Array) -> NDArray[np.bool_]:
    """Tell which points are some of those that are known."""
    there = {point.tobytes() for point in np.ascontiguousarray(known)}
    return np.array([point.tobytes() in there for point in np.ascontiguousarray(points)], bool)


def _with_labels(model: Any, summary: Summary) -> tuple[Any, Any]:
    """Return a copy that knows the labels of the new data, too, and a model of the core for it."""
    made = clone(model)
    # Steps are sent with it: it is as small as that of fit.
    left_out = {"_model", "_learned_"}
    made.__dict__.update({k: v for k, v in vars(model).items() if k not in left_out})
    core = model._model.copy()
    if not is_classifier(model):
        if summary.moments is not None and len(summary.moments[0]) != len(model.intercept_):
            raise ValueError(
                f"The targets have {len(summary.moments[0])} dimensions, but the model has learned "
                f"{len(model.intercept_)}."
            )
        return made, core
    found, counts = summary.labels()
    labels = Labels.of_stream(model.classes_, None, found)
    fitted: dict[str, Any] = labels.fitted()
    before = np.zeros(len(labels.classes))
    if isinstance(model.class_weight, str):
        before[labels.places(model.classes_)] = model._counts_
        before[labels.places(found)] += counts
        fitted["_counts_"] = before
    if len(labels.classes) > len(model.classes_):
        core, _ = model._with_classes(labels, model.classes_, np.empty(0))
    made.__dict__.update(fitted)
    return made, core


def _continued(learned: Learned, made: Any, core: Any, summary: Summary) -> Plan:
    total = int(learned.samples) + summary.total
    plan = learned.plan
    # What was chosen is for all samples together; what was given is for each of them.
    given = not isinstance(made.regularization, str)
    found_among = min(summary.total, made._samples_of_points(summary.total))
    cap = made.max_points
    if has_growing_cap(made):
        cap = points_of_fit(made, total)
    return replace(
        plan,
        estimator=made,
        regularization=plan.regularization * (1.0 if given else learned.samples / total),
        outputs=core.weights.shape[1],
        total=total,
        cap=None if isinstance(cap, str) else cap,
        learned=found_among,
        learned_share=found_among / summary.total,
        day=learned.plan.day + 1,
    )


def _least_squares(core: Any, learned: Learned, past: Past, share: float) -> Statistics:
    """Return what earlier samples have said, about the points that there are now."""
    squares, totals = learned.numbers or (np.zeros(core.weights.shape[1]), np.zeros(4))
    ridge = learned.plan.regularization * learned.samples
    right = past.normal @ past.solution + share * ridge * past.solution
    return Statistics("", packed(past.normal), right, share * squares, share * totals)

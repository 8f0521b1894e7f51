"""Weights solved from all samples at once, on the dictionary that a stream of them has found."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from ._checks import warn
from ._problem import OneVsRest, Problem, problem_of
from ._stream import Samples

Array = NDArray[np.float64]

# Samples whose coordinates are computed at a time: a fraction of a second with thousands of points.
_BLOCK = 256
# Samples that the first curvature is measured on, and how many for each point at least: it only
# decides how fast the solver is.
_CURVATURE_SAMPLES = 8000
_CURVATURE_PER_POINT = 5
# Of all samples, those that judge the regularization.
_HELD_OUT = 0.2
_MOST_HELD_OUT = 10_000
_FEWEST_JUDGES = 20
# There are as many parts, which judge in turn, as it takes for so many judges.
_JUDGES = 1400
_MOST_PARTS = 3
# Samples that are enough for a rough solution.
_FEW_SAMPLES = 5000
# Regularizations to choose among, in units of the largest k(x, x), and where the search begins.
_RIDGES = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
_MIDDLE = 3
# The one-against-rest form asks each output for twice the distance: a smaller one is as strong.
_MIDDLE_OF_REST = 4
# The errors that it may have, in units of those of the loss that was named, to take its place.
_CLEARLY = 0.95
# The same ridges for regression, in units of the best one for the mean of the squared loss.
_ABOUT = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
# How far a measure of the losses may lead away from the minimiser of their mean.
_WAYS = (1.0, 0.75, 0.5, 0.25, 0.0)
# Parts of the samples that judge that, one after the other.
_PARTS = 4
_CHOICE_STEPS = 15
_STEPS = 30
# Of an objective with kinks that are hardly rounded off.
MEASURE_STEPS = 300

# Points that a model may have after t samples, if their number is left to us: so many times
# t^(2/3) in a stream, between what kernel methods with random points need for the fastest rates
# (t^(1/2); Rudi, Camoriano, Rosasco 2015) and the number of support vectors, which is proportional
# to t where labels are noisy. Where there is little noise, there are as many vectors as t^0.65 to
# t^0.9, and `fit` asks for t^(3/4). Regression without much noise gains from every point: there the
# budget decides.
FEWEST_POINTS = 30
MOST_POINTS = 2200
# Samples that `fit` finds each of them among, for labels: more only exchange points for others as
# good, and cost more than solving does.
SAMPLES_PER_POINT = 15


# Of t^(2/3), and of t^(3/4) for labels in fit.
_STREAM_RATE = 1.6
_REGRESSION_RATE = 8.0
_FIT_RATE = 0.55


def growing_rate(estimator: Any) -> float:
    """Return the points of a stream, as a factor of t^(2/3)."""
    return _REGRESSION_RATE if is_regressor(estimator) else _STREAM_RATE


def points_of_fit(estimator: Any, size: int) -> int:
    """Return the largest number of points for so many samples, all of which there are."""
    rate = growing_rate(estimator) * size ** (2 / 3)
    points = int(rate if is_regressor(estimator) else _FIT_RATE * size**0.75)
    return min(max(FEWEST_POINTS, points), MOST_POINTS)


# Samples that are predicted well enough hold the function where it is in a later stream: so many of
# them count as much as one that is not.
_QUIET = 10
# Relative to the sum of the squared coordinates: less drowns in rounding.
_LEAST_RIDGE = 1e-9


def has_growing_cap(estimator: Any) -> bool:
    """Tell whether the number of points is left to us."""
    given = estimator.budget is not None or not isinstance(estimator.parsimony, str)
    return isinstance(estimator.max_points, str) and not given and estimator.solver == "newton"


def finish_fit(estimator: Any, model: Any, samples: Samples, measure: Any = None) -> None:
    """Solve for the weights on the dictionary that has been found; with a measure of all losses."""
    outputs = estimator._n_outputs(samples)
    loss = estimator._core_loss(outputs)
    if loss.is_squared and measure is None and not hasattr(model, "solve"):
        least_squares(model, samples)
        return
    # One thread: sums in another order would make models depend on the number of processors.
    # Products of some libraries raise flags over numbers that they never use; what comes out is
    # checked by the core.
    with threadpool_limits(limits=1, user_api="blas"), np.errstate(invalid="ignore"):
        if hasattr(model, "solve"):
            model.solve(samples, estimator.regularization)
            return
        solve_weights(model, samples, loss, estimator.regularization, measure)


def least_squares(model: Any, samples: Samples) -> None:
    """Solve for the weights of a model of the squared loss, exactly."""
    refit = model.begin_refit()
    # In blocks, so that sparse samples stay sparse and Ctrl-C is heard.
    for X, targets, weight in samples.blocks(_BLOCK, at_once=_BLOCK):
        model.add_to_refit(refit, X, targets, weight)
    model.finish_refit(refit)


def solve_weights(
    model: Any,
    samples: Samples,
    loss: Any,
    given: float | str,
    measure: Any = None,
    form: Any = None,
) -> None:
    """Solve for the weights, with this regularization or, if it is a word, the best one.

    `form`, if there is one, is the loss that is minimised in the place of the one that was named.
    """
    points = model.expansion
    # Coordinates are measured in units of the largest k(x, x)^(1/2): they are kept in single
    # precision, whatever the unit of the kernel.
    unit = float(points.kernel.diagonal(points.dictionary).max(initial=0.0)) or 1.0
    problem = problem_of(model, samples, loss, np.sqrt(unit))
    if form is not None:
        problem = problem.judged_by(form)
    problem.measure, problem.watch = measure, samples.watch_solver
    count, size = problem.features.shape
    outputs = model.solution.shape[1]
    if size == 0:
        model.stop_scouting()
        return
    some = max(_CURVATURE_SAMPLES, _CURVATURE_PER_POINT * size)
    few = problem.part(np.random.RandomState(0).permutation(count)[:some])
    normal = few.curvature() * (count / len(few.features) * _curvature_at_zero(loss, outputs))
    start = np.asarray(model.solution) * np.sqrt(unit)
    least = _LEAST_RIDGE * float(np.trace(normal))
    per_sample = model.regularization if isinstance(given, str) else float(given)
    ridge = per_sample * loss.regularizer_scale * count / unit
    if measure is not None:
        open_ended = isinstance(given, str)
        ridge, solution = _solve_measured(problem, normal, start, max(ridge, least), open_ended)
    else:
        if isinstance(given, str):
            problem, ridge, start = _choose_form(problem, normal, start)
        ridge = max(ridge, least)
        solution, converged = problem.solve(start, normal, ridge, _STEPS)
        if not converged:
            _warn_of_solver(given)
    # What the samples say where the function is now, for a stream that goes on from here.
    normal, ridge = problem.curvature(_remembered(problem, solution)) * unit, ridge * unit
    solution = solution / np.sqrt(unit)
    right = normal @ solution + ridge * solution
    model.assume(normal, right, solution, float(count), ridge)


def _remembered(problem: Problem, solution: Array) -> Array:
    """Return how much each sample counts in the curvature that is remembered."""
    values, _, curvature = problem.loss.majorise(problem.predictions(solution), problem.targets)
    quiet = np.flatnonzero(curvature <= 0)
    # Of many samples, every tenth for ten of them: what they cost shows.
    every = _QUIET if len(curvature) > _CURVATURE_SAMPLES else 1
    curvature[quiet[::every]] = every / _QUIET
    curvature = curvature * np.maximum(problem.measured(values)[1], 0.0)
    return np.asarray(curvature * problem.weight if len(problem.weight) else curvature)


def _solve_measured(
    problem: Problem, normal: Array, start: Array, ridge: float, open_ended: bool
) -> tuple[float, Array]:
    """Return the ridge and the minimiser of a measure of the losses.

    The fewer losses count, the less is known about it: on the way to it from the minimiser of their
    mean, it is the place where samples that were held out have the smallest measure.
    """
    of_mean, ridge, start, way = choose_measured(problem, normal, start, ridge, open_ended)
    plain = problem.of_mean().minimise(start, normal, of_mean, _STEPS)
    found = problem.minimise(plain, normal, ridge, MEASURE_STEPS)
    return ridge, plain + way * (found - plain)


def choose_measured(
    problem: Problem, normal: Array, start: Array, ridge: float, open_ended: bool
) -> tuple[float, float, Array, float]:
    """Return the ridges for the mean and for the measure, a start, and how far to go to the latter.

    The ridge that is given is kept unless it is open ended.
    """
    mean = problem.of_mean()
    of_mean = ridge
    if open_ended and problem.loss.is_classification:
        of_mean, start = _choose_ridge(mean, normal, start)
        ridge = _choose_ridge(problem, normal, start)[0]
    elif open_ended:
        # About the one that leaves out one of a part of the samples best.
        ridges = tuple(ridge * factor for factor in _ABOUT)
        ridge = _choose_ridge(problem, normal, start, ridges)[0]
    judged = np.zeros(len(_WAYS))
    for part in range(_PARTS if open_ended else 0):
        parts = _split(problem, part)
        if parts is None:
            break
        judge, learner, share = parts
        plain = learner.of_mean().minimise(start, share * normal, of_mean, _STEPS)
        found = learner.minimise(plain, share * normal, ridge, _STEPS)
        judged += [judge.error(plain + way * (found - plain))[1] for way in _WAYS]
    return of_mean, ridge, start, _WAYS[int(judged.argmin())]


def _curvature_at_zero(loss: Any, outputs: int) -> float:
    targets = np.zeros((1, 1 if loss.is_classification else outputs))
    return float(loss.majorise(np.zeros((1, outputs)), targets)[2][0]) or 1.0


def _split(problem: Problem, part: int = 0) -> tuple[Problem, Problem, float] | None:
    """Return samples to judge by, others to learn from, and which share of all these are."""
    count = len(problem.targets)
    order = np.random.RandomState(1).permutation(count)
    held_out = min(int(_HELD_OUT * count), _MOST_HELD_OUT)
    if held_out < _FEWEST_JUDGES:
        return None
    order = np.roll(order, -part * held_out)
    learner, judge = order[held_out : held_out + _FEW_SAMPLES], order[:held_out]
    return problem.part(judge), problem.part(learner), len(learner) / count


def _choose_form(problem: Problem, normal: Array, start: Array) -> tuple[Problem, float, Array]:
    """Return the form of the loss and the ridge whose solution judges other samples best.

    Margins between many classes can be asked for in two ways: the right class before the best of
    the others, or each class against all others. Neither is always the better one.
    """
    best = _Search(problem, normal, start, _RIDGES, _MIDDLE)
    if best.parts and problem.loss.describe() in ("multiclass_hinge", "multiclass_squared_hinge"):
        other = _Search(problem.judged_by(OneVsRest()), normal, start, _RIDGES, _MIDDLE_OF_REST)
        # Their losses cannot be compared. The loss that was named, unless the other one is clearly
        # better: more samples say nothing in it, so it is solved faster.
        best = other if other.judged[0] < _CLEARLY * best.judged[0] else best
    best.go_downhill()
    return best.problem, best.ridge, best.solution


def _choose_ridge(
    problem: Problem, normal: Array, start: Array, ridges: tuple[float, ...] = _RIDGES
) -> tuple[float, Array]:
    """Return the ridge whose solution on a part of the samples judges the others best."""
    search = _Search(problem, normal, start, ridges, len(ridges) // 2)
    search.go_downhill()
    return search.ridge, search.solution


class _Search:
    """The best of several ridges, as others than those who learn from them judge it."""

    def __init__(
        self, problem: Problem, normal: Array, start: Array, ridges: tuple[float, ...], middle: int
    ):
        self.problem = problem
        self.parts = _parts(problem)
        self._normal = normal
        self._ridges = ridges
        self._best = middle
        # For each ridge the share of errors and the mean loss, and the solution of each part.
        self._tried: dict[int, tuple[tuple[float, float], list[Array]]] = {}
        self._start = start
        if self.parts:
            self._attempt(middle, [start] * len(self.parts))

    @property
    def ridge(self) -> float:
        return self._ridges[self._best]

    @property
    def judged(self) -> tuple[float, float]:
        return self._tried[self._best][0]

    @property
    def solution(self) -> Array:
        return self._tried[self._best][1][0] if self.parts else self._start

    def go_downhill(self) -> None:
        """Move to the best ridge, on either side as far as the next one is better."""
        middle = self._best
        for direction in (-1, 1) if self.parts else ():
            i = middle
            while 0 <= i + direction < len(self._ridges):
                starts, before = self._tried[i][1], self._tried[i][0]
                i += direction
                if self._attempt(i, starts) >= before:
                    break
        self._best = min(self._tried, key=lambda i: self._tried[i][0], default=middle)

    def _attempt(self, i: int, starts: list[Array]) -> tuple[float, float]:
        if i not in self._tried:
            # The same for all samples and for a part of them, as everywhere.
            found = [
                learner.minimise(start, share * self._normal, self._ridges[i], _CHOICE_STEPS)
                for start, (_, learner, share) in zip(starts, self.parts, strict=True)
            ]
            judged = [judge.error(one) for one, (judge, *_) in zip(found, self.parts, strict=True)]
            wrong, loss = np.mean(judged, axis=0)
            self._tried[i] = (float(wrong), float(loss)), found
        return self._tried[i][0]


def _parts(problem: Problem) -> list[tuple[Problem, Problem, float]]:
    """Return several ways to split the samples, until there are enough judges in all."""
    found: list[tuple[Problem, Problem, float]] = []
    while len(found) < _MOST_PARTS and sum(len(part[0].targets) for part in found) < _JUDGES:
        split = _split(problem, len(found))
        if split is None:
            break
        found.append(split)
    return found


def _warn_of_solver(given: float | str) -> None:
    warn(
        f"The weights have not converged: with regularization={given!r} the objective hardly bends "
        f"along some directions. The best weights that were found are kept; give a larger "
        f"regularization, or leave it to 'auto'.",
        ConvergenceWarning,
    )

"""Weights solved from all samples at once, on the dictionary that a stream of them has found."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.optimize import minimize
from sklearn.base import is_regressor
from threadpoolctl import threadpool_limits

from ._stream import Samples

Array = NDArray[np.float64]

# Numbers that are kept of the samples' coordinates, in single precision: a gigabyte. Of more
# samples than that, a part is taken.
_KEPT_NUMBERS = 1 << 28
# Fewer numbers than these are kept in double precision.
_PRECISE_NUMBERS = 1 << 22
# Samples that the curvature is measured on: it only decides how fast the solver is.
_CURVATURE_SAMPLES = 20_000
# Of all samples, those that judge the regularization.
_HELD_OUT = 0.2
_MOST_HELD_OUT = 3000
# Regularizations to choose among, in units of the largest k(x, x).
_RIDGES = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
# The same for regression, in units of the best one for the mean of the squared loss.
_ABOUT = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
# How far a measure of the losses may lead away from the minimiser of their mean.
_WAYS = (1.0, 0.75, 0.5, 0.25, 0.0)
# Parts of the samples that judge that, one after the other.
_PARTS = 4
_CHOICE_STEPS = 20
_STEPS = 30
# Of an objective with kinks that are hardly rounded off.
_MEASURE_STEPS = 300
_FEWEST_JUDGES = 20
# Samples that are enough for a rough solution.
_FEW_SAMPLES = 4000
# Samples whose coordinates are computed at a time: a fraction of a second with thousands of points.
_BLOCK = 256

# Points that a model may have after t samples, if their number is left to us: so many times
# t^(2/3), between what kernel methods with random points need for the fastest rates (t^(1/2);
# Rudi, Camoriano, Rosasco 2015) and the number of support vectors, which is proportional to t. In a
# stream, whose weights are not solved as well, a few more make up for it. Regression without much
# noise gains from every point: there the budget decides.
FEWEST_POINTS = 20
MOST_POINTS = 2200


def points_rate(estimator: Any, *, streaming: bool) -> float:
    """Return the factor of t^(2/3)."""
    if is_regressor(estimator):
        return 8.0
    return 1.6 if streaming else 1.15


# How much samples that are predicted well enough hold the function where it is in a later stream.
_QUIET = 0.1
# Relative to the sum of the squared coordinates: less drowns in rounding.
_LEAST_RIDGE = 1e-9


class _Problem:
    """The loss of samples as a function of the coordinates of f in the span of the dictionary.

    A `measure` of all losses may take the place of their mean: it maps losses, and their shares in
    the mean, to its value and to how much each of them counts in it.
    """

    def __init__(
        self, features: NDArray[Any], targets: Array, weight: Array, loss: Any, measure: Any = None
    ):
        self.features = features
        self.targets = targets
        self.weight = weight
        self.loss = loss
        self.measure = measure

    def part(self, rows: NDArray[Any]) -> _Problem:
        weight = self.weight[rows] if len(self.weight) else self.weight
        return _Problem(self.features[rows], self.targets[rows], weight, self.loss, self.measure)

    def of_mean(self) -> _Problem:
        return _Problem(self.features, self.targets, self.weight, self.loss)

    def predictions(self, solution: Array) -> Array:
        predictions = self.features @ solution.astype(self.features.dtype)
        return np.asarray(predictions, dtype=np.float64)

    def value(self, solution: Array, ridge: float) -> tuple[float, Array]:
        """Return the objective and its gradient."""
        values, gradient, _ = self.loss.majorise(self.predictions(solution), self.targets)
        if self.measure is not None:
            value, counts = self.measured(values)
            values = np.array([self._total() * value])
            gradient = gradient * counts[:, None]
        elif len(self.weight):
            values = values * self.weight
        if len(self.weight):
            gradient = gradient * self.weight[:, None]
        slope = (self.features.T @ gradient.astype(self.features.dtype)).astype(np.float64)
        objective = float(values.sum()) + ridge / 2 * float((solution**2).sum())
        return objective, slope + ridge * solution

    def _total(self) -> float:
        return float(self.weight.sum()) if len(self.weight) else float(len(self.targets))

    def measured(self, losses: Array) -> tuple[float, Array]:
        """Return the measure of these losses, and how much each counts in it; 1 in the mean."""
        count = len(losses)
        shares = self.weight / self._total() if len(self.weight) else np.full(count, 1 / count)
        if self.measure is None:
            return float(shares @ losses), np.ones(count)
        value, counts = self.measure(losses, shares)
        return float(value), counts

    def curvature(self, weight: Array | None = None) -> Array:
        """Return sum_i w_i phi_i phi_i'."""
        if weight is None:
            weight = self.weight if len(self.weight) else None
        rows = self.features
        if weight is not None:
            rows = rows * np.sqrt(weight).astype(rows.dtype)[:, None]
        return np.asarray(rows.T @ rows, dtype=np.float64)

    def minimise(self, start: Array, normal: Array, ridge: float, steps: int) -> Array:
        """Return the coordinates of the minimiser, by L-BFGS in units of the curvature."""
        lower = linalg.cholesky(normal + ridge * np.eye(len(normal)), lower=True)

        def objective(units: Array) -> tuple[float, Array]:
            solution = linalg.solve_triangular(lower, units.reshape(start.shape), True, lower=True)
            value, gradient = self.value(solution, ridge)
            return value, linalg.solve_triangular(lower, gradient, lower=True).ravel()

        found = minimize(
            objective,
            (lower.T @ start).ravel(),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": steps, "maxfun": 2 * steps, "maxcor": 10, "ftol": 1e-5},
        )
        return np.asarray(
            linalg.solve_triangular(lower, found.x.reshape(start.shape), True, lower=True)
        )

    def error(self, solution: Array) -> tuple[float, float]:
        """Return what share of the samples is predicted wrongly, and their mean loss.

        With a measure, that is all that counts.
        """
        predictions = self.predictions(solution)
        losses = self.loss.evaluate(predictions, self.targets)[0]
        if self.measure is not None:
            return 0.0, self.measured(losses)[0]
        loss = float(losses.mean())
        if not self.loss.is_classification:
            return 0.0, loss
        labels = predictions[:, 0] > 0 if predictions.shape[1] == 1 else predictions.argmax(axis=1)
        return float((labels != self.targets[:, 0]).mean()), loss


def has_growing_cap(estimator: Any) -> bool:
    """Tell whether the number of points is left to us."""
    given = estimator.budget is not None or not isinstance(estimator.parsimony, str)
    return isinstance(estimator.max_points, str) and not given and estimator.solver == "newton"


def finish_fit(estimator: Any, model: Any, samples: Samples, measure: Any = None) -> None:
    """Solve for the weights on the dictionary that has been found; with a measure of all losses."""
    outputs = estimator._n_outputs(samples)
    loss = estimator._core_loss(outputs)
    if loss.describe() == "squared" and measure is None:
        least_squares(model, samples)
        return
    # One thread: sums in another order would make models depend on the number of processors.
    # Products of some libraries raise flags over numbers that they never use; what comes out is
    # checked by the core.
    with threadpool_limits(limits=1, user_api="blas"), np.errstate(invalid="ignore"):
        _solve(model, samples, loss, estimator.regularization, measure)


def least_squares(model: Any, samples: Samples) -> None:
    """Solve for the weights of a model of the squared loss, exactly."""
    refit = model.begin_refit()
    # In blocks, so that sparse samples stay sparse and Ctrl-C is heard.
    for X, targets, weight in samples.blocks(_BLOCK, at_once=_BLOCK):
        model.add_to_refit(refit, X, targets, weight)
    model.finish_refit(refit)


def _solve(
    model: Any, samples: Samples, loss: Any, given: float | str, measure: Any = None
) -> None:
    points = model.expansion
    # Coordinates are measured in units of the largest k(x, x)^(1/2): they are kept in single
    # precision, whatever the unit of the kernel.
    unit = float(points.kernel.diagonal(points.dictionary).max(initial=0.0)) or 1.0
    problem = _problem(model, samples, loss, np.sqrt(unit))
    problem.measure = measure
    count, size = problem.features.shape
    outputs = model.solution.shape[1]
    if size == 0:
        model.stop_scouting()
        return
    some = problem.part(np.random.RandomState(0).permutation(count)[:_CURVATURE_SAMPLES])
    normal = some.curvature() * (count / len(some.features) * _curvature_at_zero(loss, outputs))
    start = np.asarray(model.solution) * np.sqrt(unit)
    least = _LEAST_RIDGE * float(np.trace(normal))
    per_sample = model.regularization if isinstance(given, str) else float(given)
    ridge = per_sample * loss.regularizer_scale * count / unit
    if measure is not None:
        open_ended = isinstance(given, str)
        ridge, solution = _solve_measured(problem, normal, start, max(ridge, least), open_ended)
    else:
        if isinstance(given, str):
            ridge, start = _choose_ridge(problem, normal, start)
        ridge = max(ridge, least)
        solution = problem.minimise(start, normal, ridge, _STEPS)
    # What the samples say where the function is now, for a stream that goes on from here.
    values, _, curvature = loss.majorise(problem.predictions(solution), problem.targets)
    curvature = np.where(curvature > 0, curvature, _QUIET)
    curvature = curvature * np.maximum(problem.measured(values)[1], 0.0)
    if len(problem.weight):
        curvature = curvature * problem.weight
    normal, ridge = problem.curvature(curvature) * unit, ridge * unit
    solution = solution / np.sqrt(unit)
    right = normal @ solution + ridge * solution
    model.assume(normal, right, solution, float(count), ridge)


def _solve_measured(
    problem: _Problem, normal: Array, start: Array, ridge: float, open_ended: bool
) -> tuple[float, Array]:
    """Return the ridge and the minimiser of a measure of the losses.

    The fewer losses count, the less is known about it: on the way to it from the minimiser of their
    mean, it is the place where samples that were held out have the smallest measure.
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
    way = _WAYS[int(judged.argmin())]
    plain = mean.minimise(start, normal, of_mean, _STEPS)
    found = problem.minimise(plain, normal, ridge, _MEASURE_STEPS)
    return ridge, plain + way * (found - plain)


def _problem(model: Any, samples: Samples, loss: Any, unit: float) -> _Problem:
    """Return the coordinates of these samples, or of as many as can be kept."""
    size = len(model.solution)
    samples = _some(samples, max(_KEPT_NUMBERS // max(size, 1), 1))
    precise = len(samples) * size <= _PRECISE_NUMBERS
    features = np.empty((len(samples), size), dtype=np.float64 if precise else np.float32)
    start = 0
    for X, *_ in samples.blocks(_BLOCK, at_once=_BLOCK):
        features[start : start + len(X)] = model.coordinates(X) / unit
        start += len(X)
    return _Problem(features, samples.targets, samples.weight, loss)


def _some(samples: Samples, most: int) -> Samples:
    """Return at most so many of the samples, always the same ones."""
    if len(samples) <= most:
        return samples
    rows = np.sort(np.random.RandomState(0).permutation(len(samples))[:most])
    weight = samples.weight[rows] if len(samples.weight) else samples.weight
    return Samples(samples.X[rows], samples.targets[rows], weight)


def _curvature_at_zero(loss: Any, outputs: int) -> float:
    targets = np.zeros((1, 1 if loss.is_classification else outputs))
    return float(loss.majorise(np.zeros((1, outputs)), targets)[2][0]) or 1.0


def _split(problem: _Problem, part: int = 0) -> tuple[_Problem, _Problem, float] | None:
    """Return samples to judge by, others to learn from, and which share of all these are."""
    count = len(problem.features)
    order = np.random.RandomState(1).permutation(count)
    held_out = min(int(_HELD_OUT * count), _MOST_HELD_OUT)
    if held_out < _FEWEST_JUDGES:
        return None
    order = np.roll(order, -part * held_out)
    learner = problem.part(order[held_out : held_out + _FEW_SAMPLES])
    return problem.part(order[:held_out]), learner, len(learner.features) / count


def _choose_ridge(
    problem: _Problem, normal: Array, start: Array, ridges: tuple[float, ...] = _RIDGES
) -> tuple[float, Array]:
    """Return the ridge whose solution on a part of the samples judges the others best."""
    parts = _split(problem)
    if parts is None:
        return ridges[len(ridges) // 2], start
    judge, learner, share = parts
    tried: dict[int, tuple[tuple[float, float], Array]] = {}

    def attempt(i: int, start: Array) -> tuple[tuple[float, float], Array]:
        if i not in tried:
            # The same for all samples and for a part of them, as everywhere.
            found = learner.minimise(start, share * normal, ridges[i], _CHOICE_STEPS)
            tried[i] = judge.error(found), found
        return tried[i]

    # Downhill from the middle.
    best = len(ridges) // 2
    attempt(best, start)
    for direction in (-1, 1):
        while 0 <= best + direction < len(ridges):
            if attempt(best + direction, tried[best][1])[0] >= tried[best][0]:
                break
            best += direction
    return ridges[best], tried[best][1]

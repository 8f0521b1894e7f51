"""Weights solved from all samples at once, on the dictionary that a stream of them has found."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from ._stream import Samples

Array = NDArray[np.float64]

# Numbers that are kept of the samples' coordinates, in single precision: a gigabyte. Of more samples
# than that, a part is taken.
_KEPT_NUMBERS = 1 << 28
# Samples that the curvature is measured on: it only decides how fast the solver is.
_CURVATURE_SAMPLES = 20_000
# Of all samples, those that judge the regularization; and the most that learn for them.
_HELD_OUT = 0.2
_MOST_HELD_OUT = 3000
_MOST_FOR_CHOICE = 10_000
# Regularizations to choose among, in units of the largest k(x, x).
_RIDGES = (1.0, 0.3, 0.1, 0.03, 0.01)
_CHOICE_STEPS = 30
_STEPS = 60
# How much samples that are predicted well enough hold the function where it is in a later stream.
_QUIET = 0.1
# Relative to the sum of the squared coordinates: less drowns in rounding.
_LEAST_RIDGE = 1e-9


class _Problem:
    """The loss of samples as a function of the coordinates of f in the span of the dictionary."""

    def __init__(self, features: NDArray[np.float32], targets: Array, weight: Array, loss: Any):
        self.features = features
        self.targets = targets
        self.weight = weight
        self.loss = loss

    def part(self, rows: NDArray[Any]) -> _Problem:
        weight = self.weight[rows] if len(self.weight) else self.weight
        return _Problem(self.features[rows], self.targets[rows], weight, self.loss)

    def predictions(self, solution: Array) -> Array:
        return (self.features @ solution.astype(np.float32)).astype(np.float64)

    def value(self, solution: Array, ridge: float) -> tuple[float, Array]:
        """Return the objective and its gradient."""
        values, gradient, _ = self.loss.majorise(self.predictions(solution), self.targets)
        if len(self.weight):
            values, gradient = values * self.weight, gradient * self.weight[:, None]
        slope = (self.features.T @ gradient.astype(np.float32)).astype(np.float64)
        objective = float(values.sum()) + ridge / 2 * float((solution**2).sum())
        return objective, slope + ridge * solution

    def curvature(self, weight: Array | None = None) -> Array:
        """Return sum_i w_i phi_i phi_i'."""
        if weight is None:
            weight = self.weight if len(self.weight) else None
        rows = self.features
        if weight is not None:
            rows = rows * np.sqrt(weight).astype(np.float32)[:, None]
        return (rows.T @ rows).astype(np.float64)

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
            options={"maxiter": steps, "maxfun": 2 * steps, "maxcor": 10, "ftol": 1e-8},
        )
        return np.asarray(
            linalg.solve_triangular(lower, found.x.reshape(start.shape), True, lower=True)
        )

    def error(self, solution: Array) -> tuple[float, float]:
        """Return what share of the samples is predicted wrongly, and their mean loss."""
        predictions = self.predictions(solution)
        loss = float(self.loss.evaluate(predictions, self.targets)[0].mean())
        if not self.loss.is_classification:
            return 0.0, loss
        labels = predictions[:, 0] > 0 if predictions.shape[1] == 1 else predictions.argmax(axis=1)
        return float((labels != self.targets[:, 0]).mean()), loss


def finish_by_newton(estimator: Any, model: Any, samples: Samples) -> None:
    """Solve for the weights of a model on all samples, choosing the ridge if none was given."""
    outputs = estimator._n_outputs(samples)
    loss = estimator._core_loss(outputs)
    random = np.random.RandomState(0)
    # One thread: sums in another order would make models depend on the number of processors.
    with threadpool_limits(limits=1, user_api="blas"):
        problem = _problem(model, samples, loss, random)
        count, size = problem.features.shape
        if size == 0:
            return
        some = problem.part(random.permutation(count)[:_CURVATURE_SAMPLES])
        normal = some.curvature() * (count / len(some.features) * _curvature_at_zero(loss, outputs))
        start = np.zeros((size, outputs))
        if isinstance(estimator.regularization, str):
            points = model.expansion
            unit = float(points.kernel.diagonal(points.dictionary).max()) or 1.0
            ridge, start = _choose_ridge(problem, normal, unit, start, random)
        else:
            ridge = float(estimator.regularization) * loss.regularizer_scale * count
        ridge = max(ridge, _LEAST_RIDGE * float(np.trace(normal)))
        solution = problem.minimise(start, normal, ridge, _STEPS)
        # What the samples say where the function is now, for a stream that goes on from here.
        curvature = loss.majorise(problem.predictions(solution), problem.targets)[2]
        curvature = np.where(curvature > 0, curvature, _QUIET)
        if len(problem.weight):
            curvature = curvature * problem.weight
        normal = problem.curvature(curvature)
        model.assume(normal, normal @ solution + ridge * solution, solution, float(count), ridge)


def _curvature_at_zero(loss: Any, outputs: int) -> float:
    targets = np.zeros((1, 1 if loss.is_classification else outputs))
    return float(loss.majorise(np.zeros((1, outputs)), targets)[2][0]) or 1.0


def _problem(model: Any, samples: Samples, loss: Any, random: Any) -> _Problem:
    """Return the coordinates of all samples, or of as many as can be kept."""
    size = model.coordinates(np.zeros((0, samples.X.shape[1]))).shape[1]
    most = max(_KEPT_NUMBERS // max(size, 1), 1)
    if len(samples) > most:
        rows = np.sort(random.permutation(len(samples))[:most])
        weight = samples.weight[rows] if len(samples.weight) else samples.weight
        samples = Samples(samples.X[rows], samples.targets[rows], weight)
    features = np.empty((len(samples), size), dtype=np.float32)
    start = 0
    for X, *_ in samples.blocks(1, at_once=512):
        features[start : start + len(X)] = model.coordinates(X)
        start += len(X)
    return _Problem(features, samples.targets, samples.weight, loss)


def _choose_ridge(
    problem: _Problem, normal: Array, unit: float, start: Array, random: Any
) -> tuple[float, Array]:
    count = len(problem.features)
    order = random.permutation(count)
    held_out = min(int(_HELD_OUT * count), _MOST_HELD_OUT)
    if held_out < 20:
        return _RIDGES[2] * unit, start
    judge = problem.part(order[:held_out])
    learner = problem.part(order[held_out : held_out + _MOST_FOR_CHOICE])
    share = len(learner.features) / count
    best: tuple[tuple[float, float], float, Array] | None = None
    worse = 0
    for factor in _RIDGES:
        # As much for each sample as it would be with all of them.
        ridge = factor * unit
        start = learner.minimise(start, share * normal, ridge * share, _CHOICE_STEPS)
        error = judge.error(start)
        if best is None or error < best[0]:
            best, worse = (error, ridge, start), 0
        else:
            worse += 1
        if worse == 2:
            break
    assert best is not None
    return best[1], best[2]

"""The loss of samples as a function on the span of a dictionary, and where it is smallest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg.blas import dtrsm
from scipy.optimize import minimize

from . import _core
from ._stream import Samples

Array = NDArray[np.float64]
Watch = Callable[[float], None]

# Numbers that are kept of the samples' coordinates, in single precision: a gigabyte. Of more
# samples than that, a part is taken.
_KEPT_NUMBERS = 1 << 28
# Fewer numbers than these are kept in double precision, and fewer for labels, which do not ask for
# as much.
_PRECISE_NUMBERS = 1 << 22
_PRECISE_FOR_LABELS = 1 << 18
# Samples whose coordinates are computed at a time: a fraction of a second with thousands of points.
_BLOCK = 256
# The same in single precision.
_SINGLE_BLOCK = 1024
# How much of k(x, x) may lie in the span of the other points, as 1 / (1 - share), for coordinates
# that are computed in single precision: what is left keeps four digits.
_SINGLE_CONDITION = 1e4

# Samples whose predictions would do at two thirds of their size stay out of the sums for a while.
_FAR = 1.5
# More than this share of all is not worth leaving any out.
_MOST_NEAR = 0.8
# Steps with all samples before any are left out, and how often the others are looked at again.
_FIRST_STEPS = 5
_ROUNDS = 3
# Who takes more steps than these takes the first ones towards a better curvature.
_FEW_STEPS = 20
# The share of the objective that samples may have that were left out.
_LEFT_OUT = 1e-2
_STILL = 1e-5

# Where there is a solution for a ridge of this many times the mean curvature, smaller ones are
# approached step by step, each this share of the one before.
_EASY_RIDGE = 1e-3
_NEXT_RIDGE = 0.1
# What may be left to gain, as a share of the objective or as a mean loss.
_TO_GAIN = 1e-3
_MEAN_TO_GAIN = 1e-6
# The same for several outputs where the ridge is large: what is gained beyond it changes no label.
_TO_GAIN_OF_SEVERAL = 2e-2
# Steps of Newton's method for a single output, and how often each is cut in half at most.
_NEWTON_STEPS = 100
_HALVES = 30
# Rounds of steps for several outputs, each in a curvature that is measured anew, and where these
# stand still. The curvature has a part of that of all samples: few of them say something where the
# function is, and more where a step may lead.
_MOST_ROUNDS = 10
_STEPS_OF_ROUND = 50
_VERY_STILL = 1e-8
_OF_ALL = 1e-3
# Of the trace of a curvature that was computed in single precision.
_ROUNDING = 1e-7


class OneVsRest:
    """The squared hinge loss of each class against all others, 1/2 sum_c max(0, 1 - s_c f_c)^2."""

    is_classification = True

    def majorise(self, predictions: Array, targets: Array) -> tuple[Array, Array, Array]:
        """Return losses, their gradients, and a curvature that serves all classes."""
        signs = np.full_like(predictions, -1.0)
        signs[np.arange(len(signs)), targets[:, 0].astype(int)] = 1.0
        short = np.maximum(1 - signs * predictions, 0)
        curvature = np.asarray((short > 0).any(axis=1), dtype=np.float64)
        losses = np.asarray(np.einsum("ic,ic->i", short, short / 2))
        return losses, -signs * short, curvature

    def evaluate(self, predictions: Array, targets: Array) -> tuple[Array, Array]:
        """Return losses and their gradients."""
        return self.majorise(predictions, targets)[:2]

    def mean_curvature(self, predictions: Array, targets: Array) -> Array:
        """Return the mean curvature over the classes: each is a problem of its own."""
        right = np.arange(len(targets)), targets[:, 0].astype(int)
        short = predictions > -1
        short[right] = predictions[right] < 1
        return np.asarray(short.mean(axis=1))


class Problem:
    """The loss of samples as a function of the coordinates of f in the span of the dictionary.

    A `measure` of all losses may take the place of their mean: it maps losses, and their shares in
    the mean, to its value and to how much each of them counts in it. `watch` is shown the objective
    after every step of the solver.
    """

    def __init__(
        self, features: NDArray[Any], targets: Array, weight: Array, loss: Any, measure: Any = None
    ):
        self.features = features
        self.targets = targets
        self.weight = weight
        self.loss = loss
        self.measure = measure
        self.watch: Watch | None = None

    def part(self, rows: NDArray[Any]) -> Problem:
        """Return the loss of some of the samples."""
        weight = self.weight[rows] if len(self.weight) else self.weight
        part = Problem(self.features[rows], self.targets[rows], weight, self.loss, self.measure)
        part.watch = self.watch
        return part

    def of_mean(self) -> Problem:
        """Return the sum of the losses, without a measure."""
        return self.judged_by(self.loss)

    def judged_by(self, loss: Any) -> Problem:
        """Return the sum of another loss of the same samples."""
        other = Problem(self.features, self.targets, self.weight, loss)
        other.watch = self.watch
        return other

    def predictions(self, solution: Array) -> Array:
        """Return f at the samples."""
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
        """Return sum_i w_i phi_i phi_i'; samples of weight 0 cost nothing."""
        if weight is None:
            weight = self.weight if len(self.weight) else None
        rows = self.features
        if weight is not None:
            counted = np.flatnonzero(weight)
            roots = np.sqrt(weight[counted]).astype(rows.dtype)
            rows = rows[counted] * roots[:, None]
        return np.asarray(rows.T @ rows, dtype=np.float64)

    def solve(self, start: Array, normal: Array, ridge: float, steps: int) -> tuple[Array, bool]:
        """Return the coordinates of the minimiser, and whether they have been found.

        A small ridge is approached from larger ones: there, samples that say nothing where the
        function is decide where it may go. Other losses than those of labels are minimised as far
        as the steps lead.
        """
        if self.measure is not None or not self.loss.is_classification:
            return self.minimise(start, normal, ridge, steps), True
        ridges = _ridges_down_to(ridge, _EASY_RIDGE * float(np.trace(normal)) / len(normal))
        single = start.shape[1] == 1
        solution, lower = self._approach(start, normal, ridges[0], steps)
        for less in ridges[1:]:
            if single:
                solution, _ = self._by_newton(solution, less)
            else:
                solution, lower = self._approach(solution, normal, less, steps)
        value, slope = self.value(solution, ridge)
        best = self.value(start, ridge)[0]
        if not value <= best:
            solution, value = start, best
        elif len(ridges) == 1:
            to_gain = 0.5 * float((dtrsm(1.0, lower, slope, lower=1) ** 2).sum())
            if to_gain <= (_TO_GAIN if single else _TO_GAIN_OF_SEVERAL) * value:
                return solution, True
        if single:
            return self._by_newton(solution, ridge)
        return self._by_rounds(solution, ridge, normal)

    def _by_rounds(self, solution: Array, ridge: float, normal: Array) -> tuple[Array, bool]:
        """Take rounds of steps for several outputs, until one has gained little."""
        value = self.value(solution, ridge)[0]
        for _ in range(_MOST_ROUNDS):
            curvature = self.curvature_at(solution) + _OF_ALL * normal
            lower = _factor(curvature, ridge)
            solution = self._descend_in(lower, solution, ridge, _STEPS_OF_ROUND, _VERY_STILL)
            before, value = value, self.value(solution, ridge)[0]
            if self._is_enough(before - value, value):
                return solution, True
        return solution, False

    def _is_enough(self, to_gain: float, value: float) -> bool:
        return to_gain <= max(_TO_GAIN * value, _MEAN_TO_GAIN * self._total())

    def _by_newton(self, solution: Array, ridge: float) -> tuple[Array, bool]:
        """Take steps of Newton's method for a single output, until the next one gains little."""
        value, slope = self.value(solution, ridge)
        for _ in range(_NEWTON_STEPS):
            lower = _factor(self.curvature(self._bend(solution)), ridge)
            step = -linalg.cho_solve((lower, True), slope)
            gain = -0.5 * float((slope * step).sum())
            if self._is_enough(gain, value):
                return solution, True
            for _ in range(_HALVES):
                there = self.value(solution + step, ridge)
                if there[0] < value - 1e-4 * gain:
                    break
                step, gain = step / 2, gain / 2
            else:
                return solution, False
            solution, (value, slope) = solution + step, there
            if self.watch is not None:
                self.watch(value / self._total())
        return solution, False

    def _bend(self, solution: Array) -> Array:
        """Return the second derivatives of the losses of a single output."""
        _, slopes, bend = self.loss.majorise(self.predictions(solution), self.targets)
        if self.loss.gives_probabilities:
            # p - y is the slope. Where p is nearly 0 or 1, the bound above it leads nowhere.
            bend = np.abs(slopes[:, 0]) * (1 - np.abs(slopes[:, 0]))
        return np.asarray(bend * self.weight if len(self.weight) else bend)

    def minimise(self, start: Array, normal: Array, ridge: float, steps: int) -> Array:
        """Return coordinates near the minimiser, found in units of the curvature.

        normal: a curvature to begin with, or that of all samples.
        """
        if self.measure is not None or not self.loss.is_classification:
            return self._descend(start, normal, ridge, steps)
        return self._approach(start, normal, ridge, steps)[0]

    def _approach(
        self, start: Array, normal: Array, ridge: float, steps: int
    ) -> tuple[Array, Array]:
        """Return the same for labels, and the factor of the curvature that it was found in."""
        cold, solution = not start.any(), start
        if cold:
            solution = self._descend(solution, normal, ridge, _FIRST_STEPS)
        for turn in range(_ROUNDS):
            near = self._is_near(solution)
            some = bool(near.mean() < _MOST_NEAR)
            part = self.part(np.flatnonzero(near)) if some else self
            rough = turn == 0 and (cold or steps > _FEW_STEPS)
            lower = _factor(part.curvature_at(solution), ridge)
            count = min(steps, 2 * _FIRST_STEPS) if rough else steps
            solution = part._descend_in(lower, solution, ridge, count)
            if not rough and (not some or self._says_enough(near, solution, ridge)):
                break
        return solution, lower

    def _is_near(self, solution: Array) -> NDArray[np.bool_]:
        """Tell which samples are not predicted so well that they may be left out."""
        predictions = self.predictions(solution)
        return np.asarray(self.loss.majorise(predictions / _FAR, self.targets)[2] > 0)

    def _says_enough(self, near: NDArray[np.bool_], solution: Array, ridge: float) -> bool:
        """Tell whether the other samples have next to no loss."""
        values = self.loss.majorise(self.predictions(solution), self.targets)[0]
        values = values * self.weight if len(self.weight) else values
        objective = float(values.sum()) + ridge / 2 * float((solution**2).sum())
        return float(values[~near].sum()) <= _LEFT_OUT * objective

    def curvature_at(self, solution: Array) -> Array:
        """Return the curvature of the loss there, in which steps are measured."""
        predictions = self.predictions(solution)
        if isinstance(self.loss, OneVsRest):
            weight = self.loss.mean_curvature(predictions, self.targets)
        else:
            weight = self.loss.majorise(predictions, self.targets)[2]
        return self.curvature(weight * self.weight if len(self.weight) else weight)

    def _descend(self, start: Array, normal: Array, ridge: float, steps: int) -> Array:
        """Take steps of L-BFGS in units of a curvature."""
        return self._descend_in(_factor(normal, ridge), start, ridge, steps)

    def _descend_in(
        self, lower: Array, start: Array, ridge: float, steps: int, still: float = _STILL
    ) -> Array:
        """Take the same steps, given the factor of the curvature."""
        shape, latest = start.shape, [0.0]

        def coordinates(units: Array) -> Array:
            solution = dtrsm(1.0, lower, units.reshape(shape, order="F"), lower=1, trans_a=1)
            return np.asarray(solution)

        def objective(units: Array) -> tuple[float, Array]:
            latest[0], gradient = self.value(coordinates(units), ridge)
            return latest[0], dtrsm(1.0, lower, gradient, lower=1).ravel(order="F")

        watch = self.watch
        found = minimize(
            objective,
            (lower.T @ start).ravel(order="F"),
            jac=True,
            method="L-BFGS-B",
            callback=None if watch is None else lambda _: watch(latest[0] / self._total()),
            options={"maxiter": steps, "maxfun": 2 * steps, "maxcor": 10, "ftol": still},
        )
        return np.asarray(coordinates(found.x))

    def losses(self, solution: Array) -> Array:
        """Return the loss of each sample."""
        return np.asarray(self.loss.evaluate(self.predictions(solution), self.targets)[0])

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


def _factor(curvature: Array, ridge: float) -> Array:
    """Return L, lower triangular, with L L' the sum of both, or more where rounding asks for it."""
    while True:
        try:
            damped = curvature + ridge * np.eye(len(curvature))
            return np.asfortranarray(linalg.cholesky(damped, lower=True))
        except linalg.LinAlgError:
            ridge = max(10 * ridge, _ROUNDING * float(np.trace(curvature)))


def _ridges_down_to(ridge: float, easy: float) -> list[float]:
    """Return ridges from an easy one to this one."""
    ridges = [ridge]
    while ridges[-1] < easy:
        ridges.append(ridges[-1] / _NEXT_RIDGE)
    return ridges[::-1]


def problem_of(model: Any, samples: Samples, loss: Any, unit: float) -> Problem:
    """Return the coordinates of these samples, in this unit, or of as many as can be kept."""
    size = len(model.solution)
    samples = _some(samples, max(_KEPT_NUMBERS // max(size, 1), 1))
    dtype = precision(len(samples) * size, loss.is_classification)
    root = None if dtype == np.float64 else _single_root(model, unit)
    features = np.empty((len(samples), size), dtype=dtype)
    start, rows = 0, _BLOCK if root is None else _SINGLE_BLOCK
    single, points = _core.single(model.expansion.kernel), model.dictionary
    for X, *_ in samples.blocks(rows, at_once=rows):
        here = features[start : start + len(X)]
        if root is None:
            here[:] = model.coordinates(X)
        else:
            values = single.block(X.astype(np.float64, copy=False), points)
            np.matmul(values.astype(np.float32), root, out=here)
        start += len(X)
    if root is None:
        features /= features.dtype.type(unit)
    return Problem(features, samples.targets, samples.weight, loss)


def precision(numbers: int, labels: bool) -> Any:
    """Return the type in which so many coordinates are kept, of samples with labels or targets."""
    most = _PRECISE_FOR_LABELS if labels else _PRECISE_NUMBERS
    return np.float64 if numbers <= most else np.float32


def _single_root(model: Any, unit: float) -> NDArray[np.float32] | None:
    """Return what turns k(x, D) into coordinates, if single precision is enough for it."""
    points = model.dictionary
    if len(points) != len(model.solution):
        return None
    kernel = model.expansion.kernel
    try:
        factor = linalg.cho_factor(kernel.block(points, points))
    except linalg.LinAlgError:
        return None
    root = linalg.cho_solve(factor, model.coordinates(points))
    # K^-1 = root root': its diagonal is 1 over what the other points do not hold of a point.
    condition = (root**2).sum(axis=1) * kernel.diagonal(points)
    if not condition.max(initial=0.0) < _SINGLE_CONDITION:
        return None
    return np.asarray(root / unit, dtype=np.float32)


def _some(samples: Samples, most: int) -> Samples:
    """Return at most so many of the samples, always the same ones."""
    if len(samples) <= most:
        return samples
    rows = np.sort(np.random.RandomState(0).permutation(len(samples))[:most])
    weight = samples.weight[rows] if len(samples.weight) else samples.weight
    return Samples(samples.X[rows], samples.targets[rows], weight)

"""Weights on a dictionary that everybody knows, from sums over parts of the data, in rounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from parsimon._newton import _QUIET, MEASURE_STEPS
from parsimon._problem import OneVsRest, Problem

from ._parts import named
from ._statistics import BLOCK, encoded, packed, statistics_of, unpacked

Array = NDArray[np.float64]
MapReduce = Callable[[Any, Any], Any]

# Times that the curvature is measured anew, and what share of the objective the steps of one turn
# must take off for there to be another.
_TURNS = 4
_ENOUGH = 3e-3
_STEPS = 15
# Steps that are enough where points are going to be dropped.
_ROUGH_STEPS = 8


@dataclass(frozen=True)
class Coordinates:
    """A step: samples as the solver sees them."""

    shared: Any  # the model
    unit: float
    dtype: Any = np.float64
    name: str = field(default="coordinates", init=False)

    def __call__(
        self, number: int, X: Any, y: Any, weight: Any = None
    ) -> tuple[Array, Array, Array]:
        core = self.shared._model
        if not (X.shape[0] if hasattr(X, "shape") else len(X)):
            return np.empty((0, len(core.solution))), np.empty((0, 1)), np.empty(0)
        with named(number):
            samples = encoded(self.shared, X, y, weight)
        features = np.empty((len(samples), len(core.solution)), dtype=self.dtype)
        start = 0
        for rows, *_ in samples.blocks(1, at_once=BLOCK):
            features[start : start + len(rows)] = core.coordinates(rows) / self.unit
            start += len(rows)
        return features, samples.targets, samples.weight


@dataclass(frozen=True)
class Sums:
    """What one round brings: the sum of the losses, its gradient, and maybe its curvature."""

    value: float
    slope: Array
    normal: Array  # lower triangle, or nothing

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.value + other.value, self.slope + other.slope, self.normal + other.normal)


@dataclass(frozen=True)
class Losses:
    """The losses of samples, those of one part after those of another, and their weights."""

    parts: tuple[tuple[int, Array, Array], ...]

    def __add__(self, other: Losses) -> Losses:
        return Losses(self.parts + other.parts)

    def joined(self) -> tuple[Array, Array]:
        """Return all losses, and the weights of their samples, 1 if there are none."""
        losses = np.concatenate([values for _, values, _ in self.parts])
        weights = [
            weight if len(weight) else np.ones(len(values)) for _, values, weight in self.parts
        ]
        return losses, np.concatenate(weights)

    def latest(self, most: int) -> Array:
        """Return the last losses beside their weights, at most so many."""
        return np.column_stack(self.joined())[-most:]

    def apart(self, counts: Array) -> dict[int, Array]:
        """Return numbers that belong to all losses, part by part."""
        found: dict[int, list[Array]] = {}
        edges = np.cumsum([len(values) for _, values, _ in self.parts])[:-1]
        for (number, *_), part in zip(self.parts, np.split(counts, edges), strict=True):
            found.setdefault(number, []).append(part)
        return {number: np.concatenate(parts) for number, parts in found.items()}


@dataclass(frozen=True)
class Judge:
    """A step: the loss of each sample at a solution."""

    solution: Array
    estimator: Any  # that knows the loss
    name: str = field(default="losses", init=False)

    def __call__(self, number: int, features: Array, targets: Array, weight: Array) -> Losses:
        loss = self.estimator._core_loss(self.solution.shape[1])
        values = [np.empty(0)]
        with threadpool_limits(limits=1, user_api="blas"):
            for start in range(0, len(features), BLOCK):
                part = slice(start, start + BLOCK)
                problem = Problem(features[part], targets[part], np.empty(0), loss)
                predictions = problem.predictions(self.solution)
                values.append(loss.majorise(predictions, problem.targets)[0])
        return Losses(((number, np.concatenate(values), np.asarray(weight, dtype=float)),))


@dataclass(frozen=True)
class Round:
    """A step: what samples say at a solution; of coordinates, as :class:`Coordinates` has them."""

    solution: Array
    estimator: Any  # that knows the loss
    against_rest: bool
    curvature: str = ""  # "loss", or "memory": what a stream that goes on will remember
    # How much the loss of each sample counts in a risk, for each part; None: all the same.
    counts: dict[int, Array] | None = None
    name: str = field(default="round", init=False)

    def of_rows(self, number: int, rows: slice) -> Round:
        """Return the same step for some samples of a part."""
        if self.counts is None:
            return self
        return replace(self, counts={number: self.counts[number][rows]})

    def __call__(self, number: int, features: Array, targets: Array, weight: Array) -> Sums:
        outputs = self.solution.shape[1]
        loss = OneVsRest() if self.against_rest else self.estimator._core_loss(outputs)
        size = len(self.solution)
        value, slope = 0.0, np.zeros_like(self.solution)
        normal = np.zeros((size, size)) if self.curvature else np.empty((0, 0))
        with threadpool_limits(limits=1, user_api="blas"):
            for start in range(0, len(features), BLOCK):
                part = slice(start, start + BLOCK)
                problem = Problem(
                    features[part], targets[part], self._weight(number, part, weight), loss
                )
                if not self.curvature:
                    objective, gradient = problem.value(self.solution, 0.0)
                    value, slope = value + objective, slope + gradient
                else:
                    normal += problem.curvature(self._counts(problem))
        return Sums(value, slope, packed(normal))

    def _weight(self, number: int, rows: slice, weight: Array) -> Array:
        given = weight[rows] if len(weight) else weight
        if self.counts is None:
            return given
        counts = self.counts[number][rows]
        # A curvature of what counts less than nothing is none.
        counts = np.maximum(counts, 0.0) if self.curvature else counts
        return counts * given if len(given) else counts

    def _counts(self, problem: Problem) -> Array:
        predictions = problem.predictions(self.solution)
        counts: Array = problem.loss.majorise(predictions, problem.targets)[2]
        if self.curvature == "memory":
            quiet = np.flatnonzero(counts <= 0)
            counts[quiet[::_QUIET]] = 1.0
        return counts * problem.weight if len(problem.weight) else counts


@dataclass(frozen=True)
class Chain:
    """A step after another one, block by block: nothing of the first is kept."""

    first: Any
    then: Any

    @property
    def name(self) -> str:
        """That of the one that counts."""
        return str(self.then.name)

    def __call__(self, number: int, X: Any, y: Any, weight: Any = None) -> Any:
        size = X.shape[0] if hasattr(X, "shape") else len(X)
        total = None
        for start in range(0, max(size, 1), BLOCK):
            part = slice(start, start + BLOCK)
            block = (_rows(X, part), _rows(y, part), None if weight is None else weight[part])
            then = self.then.of_rows(number, part) if hasattr(self.then, "of_rows") else self.then
            sums = then(number, *self.first(number, *block))
            total = sums if total is None else total + sums
        return total


def without_shared(step: Any) -> tuple[Any, Any]:
    """Return a step without what all its calls have in common, and that; None if nothing."""
    if isinstance(step, Chain):
        first, shared = without_shared(step.first)
        return replace(step, first=first), shared
    if not hasattr(step, "shared"):
        return step, None
    return replace(step, shared=None), step.shared


def with_shared(step: Any, shared: Any) -> Any:
    """Return a step that has it again."""
    if shared is None:
        return step
    if isinstance(step, Chain):
        return replace(step, first=with_shared(step.first, shared))
    return replace(step, shared=shared)


def _rows(values: Any, part: slice) -> Any:
    return values.iloc[part] if hasattr(values, "iloc") else values[part]


@dataclass(frozen=True)
class Exact:
    """A step: the statistics of a model whose loss is squared."""

    shared: Any  # the model
    of: str
    name: str = field(default="statistics", init=False)

    def __call__(self, number: int, X: Any, y: Any, weight: Any = None) -> Any:
        if not (X.shape[0] if hasattr(X, "shape") else len(X)):
            return None
        with named(number):
            return statistics_of(self.shared, self.of, X, y, weight)


def add(one: Any, other: Any) -> Any:
    """Return the sum of what two parts have said, either of which may be nothing."""
    if one is None or other is None:
        return one if other is None else other
    return one + other


@dataclass(frozen=True)
class Past:
    """What earlier samples have said, as a parabola about the solution of then."""

    normal: Array
    solution: Array

    def value(self, solution: Array) -> tuple[float, Array]:
        """Return it and its gradient."""
        apart = solution - self.solution
        slope = self.normal @ apart
        return float((apart * slope).sum()) / 2, slope


class Summed(Problem):
    """The loss of samples that others have."""

    def __init__(
        self,
        run: MapReduce,
        estimator: Any,
        *,
        against_rest: bool,
        total: float,
        past: Past | None,
        tell: Callable[[float, int], None],
        measure: Any = None,
    ) -> None:
        loss = OneVsRest() if against_rest else estimator._core_loss(1)
        super().__init__(np.empty((0, 0)), np.empty(0), np.empty(0), loss, measure)
        self._run, self._estimator, self._against_rest = run, estimator, against_rest
        self._samples, self._past, self._tell = total, past, tell
        self._rounds = 0
        self._values: list[float] = []

    def _ask(self, solution: Array, curvature: str = "") -> Sums:
        """Return sums at a solution; of a measure, its gradient is that of weighed losses."""
        self._rounds += 1
        value, counts = None, None
        if self.measure is not None and curvature != "loss":
            losses = self.losses_of_parts(solution)
            values, weight = losses.joined()
            measured, each = self.measure(values, weight / weight.sum())
            value, counts = float(weight.sum()) * float(measured), losses.apart(each)
        step = Round(solution, self._estimator, self._against_rest, curvature, counts)
        found: Sums = self._run(step, add)
        return found if value is None else replace(found, value=value)

    def losses_of_parts(self, solution: Array) -> Losses:
        """Return the loss of each sample at a solution."""
        found: Losses = self._run(Judge(solution, self._estimator), add)
        return found

    def _total(self) -> float:
        return self._samples

    def value(self, solution: Array, ridge: float) -> tuple[float, Array]:
        """Return the objective and its gradient."""
        sums = self._ask(solution)
        self._tell(sums.value / self._samples, self._rounds)
        value = sums.value + ridge / 2 * float((solution**2).sum())
        slope = sums.slope + ridge * solution
        if self._past is not None:
            more, gradient = self._past.value(solution)
            value, slope = value + more, slope + gradient
        self._values.append(value)
        return value, slope

    def normal_at(self, solution: Array, kind: str = "loss") -> Array:
        """Return the curvature there."""
        normal = unpacked(self._ask(solution, kind).normal, len(solution))
        return normal if self._past is None else normal + self._past.normal

    def minimum(self, start: Array, ridge: float, *, rough: bool = False) -> Array:
        """Return where the objective is smallest, or nearly so."""
        if rough:
            return self._descend(start, self.normal_at(start), ridge, _ROUGH_STEPS)
        if self.measure is not None:
            # Where a risk has kinks, many steps in one curvature are worth more than others.
            return self._descend(start, self.normal_at(start), ridge, MEASURE_STEPS)
        solution = start
        for _ in range(_TURNS):
            self._values.clear()
            solution = self._descend(solution, self.normal_at(solution), ridge, _STEPS)
            best = min(self._values)
            if self._values[0] - best <= _ENOUGH * best:
                break
        return solution

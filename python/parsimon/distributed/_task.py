"""Weights that are solved on points that have been found, and what learning goes on from."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from threadpoolctl import threadpool_limits

from parsimon import _core
from parsimon._newton import _choose_form, _curvature_at_zero, choose_measured
from parsimon._problem import precision, problem_of
from parsimon._stream import NOTHING_SPECIAL, Samples
from parsimon.colk._risk import LATEST, own_measure

from ._dictionary import Plan
from ._statistics import LEAST_RIDGE, Statistics, fingerprint, solve
from ._weights import Chain, Coordinates, Exact, Past, Summed, add

Array = NDArray[np.float64]
MapReduce = Callable[[Any, Callable[[Any, Any], Any]], Any]
Watch = Callable[[str, dict[str, float]], None]


@dataclass(frozen=True)
class Measured:
    """How weights of a risk are found: from those of the mean loss, on the way to its minimum."""

    of_mean: float  # ridge of the mean loss, in units of the kernel
    way: float


@dataclass(frozen=True)
class Learned:
    """What learning goes on from when there are more data."""

    plan: Plan
    of: str  # the model
    steps: int  # samples that its steps have seen
    samples: float
    ridge: float = 0.0
    against_rest: bool = False
    numbers: tuple[Array, Array] | None = None  # of the squared loss: those beside H and r
    measured: Measured | None = None
    error: float = 0.0  # by how much the tree of compressions has moved the function


class Task:
    """Weights to be solved, and what is needed for it."""

    def __init__(self, made: Any, plan: Plan, run: MapReduce, watch: Watch, samples: float) -> None:
        self._made, self._plan, self._run, self._watch = made, plan, run, watch
        self._samples = samples

    def exactly(self, core: Any, past: Statistics | None) -> tuple[Any, tuple[Array, Array]]:
        """Return the solved model of the squared loss, and the numbers that go with it."""
        model = self._holder(core)
        before = core.model_order
        total = self._sums(model, past)
        model = solve(model, total)
        self._tell(model._model, total.loss)
        self._shrink(model._model)
        if past is None and model._model.model_order < before:
            total = self._sums(model, None)
            model = solve(model, total)
            self._tell(model._model, total.loss)
        return model._model, (total._squares, total._totals)

    def _sums(self, model: Any, past: Statistics | None) -> Statistics:
        of = fingerprint(model, model._model)
        found: Statistics = self._run(Exact(model, of), add)
        return found if past is None else found + replace(past, _of=of)

    def in_rounds(self, core: Any, samples: Samples) -> tuple[Any, float, bool]:
        """Return the solved model of another loss, its ridge, and the form of the loss."""
        unit = _unit(core)
        loss = self._made._core_loss(self._plan.outputs)
        with threadpool_limits(limits=1, user_api="blas"):
            problem = problem_of(core, samples, loss, unit)
            normal = problem.curvature() * _curvature_at_zero(loss, self._plan.outputs)
            start = np.zeros_like(core.solution)
            given = self._made.regularization
            if isinstance(given, str):
                problem, ridge, start = _choose_form(problem, normal, start)
            else:
                ridge = float(given) * loss.regularizer_scale * self._samples / unit**2
            against_rest = problem.loss is not loss
            least = LEAST_RIDGE * float(np.trace(normal)) * self._samples / len(samples)
            ridge = max(ridge, least)
        core = self._solved(core, start, ridge, against_rest, None, rough=True)
        self._shrink(core)
        start = np.asarray(core.solution) * unit
        core = self._solved(core, start, ridge, against_rest, None)
        return core, ridge * unit**2, against_rest

    def measured(self, core: Any, samples: Samples) -> tuple[Any, float, Measured]:
        """Return the solved model of a risk, its ridge, and how it was found.

        Both ridges, and how far to go from the minimum of the mean loss to that of the risk, are
        chosen on some samples.
        """
        unit, given = _unit(core), self._made.regularization
        loss = self._made._core_loss(self._plan.outputs)
        with threadpool_limits(limits=1, user_api="blas"):
            problem = problem_of(core, samples, loss, unit)
            problem.measure = own_measure(self._made)
            normal = problem.curvature() * _curvature_at_zero(loss, self._plan.outputs)
            per_sample = core.regularization if isinstance(given, str) else float(given)
            least = LEAST_RIDGE * float(np.trace(normal)) * self._samples / len(samples)
            ridge = max(per_sample * loss.regularizer_scale * self._samples / unit**2, least)
            start = np.zeros_like(core.solution)
            of_mean, ridge, start, way = choose_measured(
                problem, normal, start, ridge, isinstance(given, str)
            )
        how = Measured(of_mean * unit**2, way)
        core = self._solved(core, start, of_mean, False, None, rough=True)
        self._shrink(core)
        return self._of_risk(core, ridge * unit**2, how, None), ridge * unit**2, how

    def _of_risk(self, core: Any, ridge: float, how: Measured, past: Past | None) -> Any:
        unit = _unit(core)
        start = np.asarray(core.solution) * unit
        core = self._solved(core, start, how.of_mean / unit**2, False, past)
        return self._solved(
            core, np.asarray(core.solution) * unit, ridge / unit**2, False, past, way=how.way
        )

    def go_on(self, core: Any, past: Past, learned: Learned) -> Any:
        """Return the model of another loss, solved for what came before and what is new."""
        if learned.measured is not None:
            core = self._of_risk(core, learned.ridge, learned.measured, past)
            self._shrink(core)
            return core
        unit, loss = _unit(core), self._made._core_loss(self._plan.outputs)
        ridge, given = learned.ridge, self._made.regularization
        if not isinstance(given, str):
            ridge = float(given) * loss.regularizer_scale * self._samples
        start = np.asarray(core.solution) * unit
        core = self._solved(core, start, ridge / unit**2, learned.against_rest, past)
        self._shrink(core)
        return core

    def _solved(
        self,
        core: Any,
        start: Array,
        ridge: float,
        against_rest: bool,
        past: Past | None,
        *,
        rough: bool = False,
        way: float | None = None,
    ) -> Any:
        """Return the model solved from sums over all samples.

        way: how far to go from the start to the minimum of the estimator's risk; None for that of
        the mean loss itself.
        """
        unit = _unit(core)
        numbers = self._plan.total * len(core.solution)
        step = Coordinates(self._holder(core), unit, precision(numbers, is_classifier(self._made)))
        keep = getattr(self._run, "keep", None)
        if keep is not None:
            run = keep(step, numbers * np.dtype(step.dtype).itemsize)
        else:
            run = lambda then, combine: self._run(Chain(step, then), combine)  # noqa: E731
        if past is not None:
            past = Past(past.normal / unit**2, past.solution * unit)
        problem = Summed(
            run,
            self._made,
            against_rest=against_rest,
            total=self._samples,
            past=past,
            tell=lambda loss, rounds: self._tell(core, loss, rounds),
            measure=None if way is None else own_measure(self._made),
        )
        with threadpool_limits(limits=1, user_api="blas"):
            solution = problem.minimum(start, ridge, rough=rough)
            if way is not None:
                solution = start + way * (solution - start)
                self._made._latest_losses_ = problem.losses_of_parts(solution).latest(LATEST)
            normal = problem.normal_at(solution, "memory") * unit**2
        solution = solution / unit
        right = normal @ solution + ridge * unit**2 * solution
        core.assume(normal, right, solution, self._samples, ridge * unit**2)
        return core

    def _shrink(self, core: Any) -> bool:
        """Drop the points that are too many, and tell whether there were any."""
        before = core.model_order
        core.compress(self._plan.budget, self._plan.cap)
        return bool(core.model_order < before)

    def _tell(self, core: Any, loss: float, rounds: int = 1) -> None:
        figures = {"rounds": float(rounds), "loss": loss, "points": float(core.model_order)}
        self._watch("weights", figures)

    def _holder(self, core: Any) -> Any:
        """Return an estimator that has this model, as those who have samples need it."""
        holder = clone(self._made)
        holder.__dict__.update(vars(self._made))
        holder._adopt(core, {"_kernel_": self._plan.kernel})
        return holder

    def finish(self, core: Any, **known: Any) -> Any:
        """Return the estimator."""
        plan, made = self._plan, self._holder(core)
        archive = core.to_archive()
        steps = plan.learned * plan.epochs
        archive["samples"] = int(core.samples + steps)
        archive["batches"] = int(core.batches + math.ceil(steps / int(made.batch_size)))
        core = _core.read_model(archive, plan.kernel.core)
        made._adopt(core, {"epochs_": plan.epochs, **NOTHING_SPECIAL, "_detector_": None})
        made._learned_ = Learned(
            plan, fingerprint(made, core), core.samples, self._samples, **known
        )
        return made


def _unit(core: Any) -> float:
    points = core.expansion
    return math.sqrt(float(points.kernel.diagonal(points.dictionary).max(initial=0.0)) or 1.0)

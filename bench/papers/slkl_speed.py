"""How long SLKL takes to a relative gap of 1e-4, beside L-BFGS-B and the paper's selection.

All minimise the same F with the products of M = 1,024 columns already computed, from mu = 0.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from scipy import linalg, optimize

from bench import machine
from bench.papers.slkl import DATA_SETS, SPARSITY
from bench.report import Promise, at_least, at_most
from bench.runner import Figures
from bench.tasks import Array
from parsimon import _core, kernels

GAP = 1e-4
COLUMNS = 1024
TASKS = {"abalone": DATA_SETS["table2-abalone"], "usps": DATA_SETS["table3"]}


def promises(repeat: int) -> Iterator[Promise]:
    """Shrinking is ahead of both others, its gap is what it says, and a step is near its flops."""
    for name, data_set in TASKS.items():
        X, y, _, _ = data_set.draw(np.random.RandomState(0))
        X = np.ascontiguousarray(X)
        chosen = np.sort(np.random.RandomState(0).permutation(len(X))[:COLUMNS])
        about = f"SLKL on {name}, {len(X):,} samples, {len(chosen):,} columns"
        with machine.one_thread():
            problem = Problem(X, y, data_set.width, chosen)
            best = problem.solve("shrinking", 0.0)
            minimum = best.objective[-1]
            shrinking, uniform, generic = (
                [way(problem, minimum) for _ in range(repeat)]
                for way in (partial(ours, "shrinking"), partial(ours, "uniform"), lbfgs)
            )
            step = step_ratio(about, Problem(X, y, data_set.width, chosen[best.mu > 0]))
        gap = max(each["gap"] for each in shrinking)
        yield at_most(f"{about}, relative gap of shrinking", gap, GAP, described(shrinking))
        yield step
        for way, runs in (("uniform selection", uniform), ("L-BFGS-B", generic)):
            over = time_of(runs) / time_of(shrinking)
            yield at_least(f"{about}, time of {way} over shrinking's", over, 1, described(runs))


def time_of(runs: list[Figures], figure: str = "seconds") -> float:
    return median(each[figure] for each in runs)


def described(runs: list[Figures]) -> str:
    last = runs[-1]
    return (
        f"{time_of(runs):.4f} s, {time_of(runs, 'cpu_seconds'):.4f} CPU s, gap {last['gap']:.1e}, "
        f"{last['columns']} columns, {last['evaluations']} steps or values of F"
    )


class Problem:
    """F, its gradient, and its solution, from the products of some samples' columns."""

    def __init__(self, X: Array, y: Array, width: float, columns: Array) -> None:
        self.core = _core.KernelColumns(kernels.Gaussian(width).core, X[columns], True)
        self.core.prepare(X, y[:, None])
        self.products = np.asarray(self.core.products)
        self.correlations = np.asarray(self.core.correlations)[:, 0]
        self.target_norm = float(y @ y)

    def solve(self, selection: str, tolerance: float, epochs: int = 100_000) -> Any:
        return self.core.solve(
            0,
            penalty=SPARSITY,
            start=np.empty(0),
            tolerance=tolerance,
            epochs=epochs,
            step="exact",
            selection=selection,
            seed=0,
        )

    def value_and_gradient(self, mu: Array) -> tuple[float, Array]:
        """F and (20), by a Cholesky factor of I + D^1/2 B D^1/2 on the columns in use."""
        used = np.flatnonzero(mu)
        root = np.sqrt(mu[used])
        system = root[:, None] * self.products[np.ix_(used, used)] * root
        system[np.diag_indices_from(system)] += 1
        weights = np.zeros(0)
        if len(used):
            factor = linalg.cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
            right = root * self.correlations[used]
            weights = root * linalg.cho_solve(factor, right, check_finite=False)
        fit = self.target_norm - self.correlations[used] @ weights
        alignment = self.correlations - self.products[:, used] @ weights
        return float(fit + SPARSITY * mu.sum()), SPARSITY - alignment**2


def ours(selection: str, problem: Problem, minimum: float) -> Figures:
    """Time a selection with the largest tolerance that reaches the gap."""
    for tolerance in 10.0 ** -np.arange(2, 13, 0.5):
        with machine.Stopwatch() as watch:
            solution = problem.solve(selection, float(tolerance))
        gap = solution.objective[-1] / minimum - 1
        if gap <= GAP:
            break
    columns = int((solution.mu > 0).sum())
    return {**watch.figures, "gap": gap, "columns": columns, "evaluations": solution.steps}


def lbfgs(problem: Problem, minimum: float) -> Figures:
    """Time SciPy's L-BFGS-B until the first value of F within the gap."""
    evaluations: list[tuple[float, Array]] = []

    def function(mu: Array) -> tuple[float, Array]:
        value, gradient = problem.value_and_gradient(mu)
        evaluations.append((value, mu))
        if value <= (1 + GAP) * minimum:
            raise StopIteration
        return value, gradient

    start = np.zeros(len(problem.correlations))
    with machine.Stopwatch() as watch, contextlib.suppress(StopIteration):
        optimize.minimize(
            function,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None)] * len(start),
            options={"maxiter": 20_000, "maxfun": 20_000, "maxcor": 20, "ftol": 0, "gtol": 0},
        )
    value, mu = evaluations[-1]
    found = {"gap": value / minimum - 1, "columns": int((mu > 0).sum())}
    return {**watch.figures, **found, "evaluations": len(evaluations)}


def step_ratio(about: str, problem: Problem) -> Promise:
    """Time of a step that changes a weight over that of its flops, 2 m0^2, at the GEMM rate.

    The steps are those of uniform selection among the columns of the solution alone, once it has
    visited all of them: nearly every one changes a weight. Refreshes of the inverse are included.
    """

    def least_time(epochs: int) -> tuple[float, Any]:
        watches = [machine.Stopwatch() for _ in range(7)]
        for watch in watches:
            with watch:
                solution = problem.solve("uniform", 0.0, epochs)
        return min(watch.cpu_seconds for watch in watches), solution

    gemm = machine.GemmRate()
    gemm.measure(machine.GENERAL_SHAPES)
    (long, many), (short, few) = map(least_time, (30, 8))
    gemm.measure(machine.GENERAL_SHAPES)
    seconds = (long - short) / (many.updates - few.updates)
    order = float((many.mu > 0).sum() + (few.mu > 0).sum()) / 2
    detail = f"{1e6 * seconds:.1f} us of processor time for one of {order:.0f} weights"
    ratio = seconds * gemm.best / (2 * order**2)
    return at_most(f"{about}, time of a step over that of its flops", ratio, 3, detail)

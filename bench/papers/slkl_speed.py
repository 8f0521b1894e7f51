"""How long SLKL takes to a relative gap of 1e-4, beside L-BFGS-B and the paper's selection.

All minimise the same F with the products of M = 1,024 columns already computed, from mu = 0.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from statistics import median
from typing import Any

import numpy as np
from scipy import linalg, optimize

from bench import machine
from bench.papers.slkl_data import DATA_SETS, SPARSITY
from bench.report import Promise, at_least, at_most
from bench.runner import Figures
from bench.tasks import Array
from parsimon import _core, kernels

GAP = 1e-4
COLUMNS = 1024
TASKS = {"abalone": DATA_SETS["table2-abalone"], "usps": DATA_SETS["table3"]}


def promises(
    name: str, repeat: int, columns: int = COLUMNS, samples: int | None = None
) -> Iterator[Promise]:
    """Shrinking is ahead of both others, and its gap is what it says."""
    X, y, _, _ = TASKS[name].draw(np.random.RandomState(0))
    X, y, width = np.ascontiguousarray(X[:samples]), y[:samples], TASKS[name].width
    chosen = np.sort(np.random.RandomState(0).permutation(len(X))[:columns])
    with machine.one_thread():
        problem = Problem(X, y, width, chosen)
        best = problem.solve("shrinking", 0.0)
        minimum = best.objective[-1]
        ways = {
            "shrinking": [ours(problem, "shrinking", minimum) for _ in range(repeat)],
            "uniform selection": [ours(problem, "uniform", minimum) for _ in range(repeat)],
            "L-BFGS-B": [lbfgs(problem, minimum) for _ in range(repeat)],
        }
        step = step_ratio(Problem(X, y, width, chosen[best.mu > 0]))
    seconds = {way: median(each["seconds"] for each in runs) for way, runs in ways.items()}
    about = f"SLKL on {name}, {len(X):,} samples, {len(chosen):,} columns"
    yield at_most(
        f"{about}, relative gap of shrinking",
        max(each["gap"] for each in ways["shrinking"]),
        GAP,
        f"the minimum is {minimum:.8g}; {described(ways['shrinking'])}; a step that changes one of "
        f"{step['columns']:.0f} weights takes {step['microseconds']:.1f} us of processor time, "
        f"{step['ratio']:.2f} times its flops at {step['gemm_gflops']:.0f} GFlop/s",
    )
    for way in ("uniform selection", "L-BFGS-B"):
        over = seconds[way] / seconds["shrinking"]
        yield at_least(f"{about}, time of {way} over shrinking's", over, 1, described(ways[way]))


def described(runs: list[Figures]) -> str:
    clock, cpu = (median(each[name] for each in runs) for name in ("seconds", "cpu_seconds"))
    last = runs[-1]
    return (
        f"{clock:.4f} s, {cpu:.4f} CPU s, gap {last['gap']:.1e}, {last['columns']} columns, "
        f"{last['evaluations']} steps or values of F"
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


def ours(problem: Problem, selection: str, minimum: float) -> Figures:
    """Time a selection with the largest tolerance that reaches the gap."""
    for tolerance in 10.0 ** -np.arange(2, 13, 0.5):
        with machine.Stopwatch() as watch:
            solution = problem.solve(selection, float(tolerance))
        gap = solution.objective[-1] / minimum - 1
        if gap <= GAP:
            break
    return figures(watch, gap, solution.mu, solution.steps)


class _ReachedError(Exception):
    pass


def lbfgs(problem: Problem, minimum: float) -> Figures:
    """Time SciPy's L-BFGS-B until the first value of F within the gap."""
    evaluations: list[tuple[float, Array]] = []

    def function(mu: Array) -> tuple[float, Array]:
        value, gradient = problem.value_and_gradient(mu)
        evaluations.append((value, mu))
        if value <= (1 + GAP) * minimum:
            raise _ReachedError
        return value, gradient

    start = np.zeros(len(problem.correlations))
    with machine.Stopwatch() as watch, contextlib.suppress(_ReachedError):
        optimize.minimize(
            function,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None)] * len(start),
            options={"maxiter": 20_000, "maxfun": 20_000, "maxcor": 20, "ftol": 0, "gtol": 0},
        )
    value, mu = evaluations[-1]
    return figures(watch, value / minimum - 1, mu, len(evaluations))


def figures(watch: machine.Stopwatch, gap: float, mu: Array, evaluations: int) -> Figures:
    """Return the time, the true relative gap, the columns in use, and evaluations of F or steps."""
    columns = int((mu > 0).sum())
    return {**watch.figures, "gap": float(gap), "columns": columns, "evaluations": evaluations}


def step_ratio(problem: Problem) -> dict[str, float]:
    """Time of a step that changes a weight over that of its flops, 2 m0^2, at the GEMM rate.

    The steps are those of uniform selection among the columns of the solution alone, once it has
    visited all of them: nearly every one changes a weight. Refreshes of the inverse are included.
    """
    gemm = machine.GemmRate()
    gemm.measure(machine.GENERAL_SHAPES)
    (long, many), (short, few) = (least_time(problem, epochs) for epochs in (30, 8))
    gemm.measure(machine.GENERAL_SHAPES)
    updates = many.updates - few.updates
    order = float((many.mu > 0).sum() + (few.mu > 0).sum()) / 2
    seconds = (long - short) / updates
    return {
        "microseconds": 1e6 * seconds,
        "columns": order,
        "ratio": seconds * gemm.best / (2 * order**2),
        "gemm_gflops": gemm.best / 1e9,
        "updates": float(updates),
    }


def least_time(problem: Problem, epochs: int) -> tuple[float, Any]:
    """Return the least processor time of a few runs of this many epochs, and what they found."""
    times = []
    for _ in range(7):
        with machine.Stopwatch() as watch:
            solution = problem.solve("uniform", 0.0, epochs)
        times.append(watch.cpu_seconds)
    return min(times), solution

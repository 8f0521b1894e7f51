"""How long SLKL takes to a relative gap of 1e-4, beside L-BFGS-B and the paper's selection.

All minimise the same F with the products of M = 1024 columns already computed, from mu = 0. The
exit code is 1 if shrinking is not ahead of both.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize

from bench import machine, report
from bench.cli import positive_int
from bench.slkl_settings import DIGIT, DIGIT_WIDTH, SPARSITY, load_data
from parsimon import _core, kernels

Array = NDArray[np.float64]

GAP = 1e-4
COLUMNS = 1024
TASKS = ("abalone", "usps")


@dataclass(frozen=True)
class Timing:
    """Time of one way to the gap, and where it got."""

    seconds: float
    cpu_seconds: float
    gap: float  # relative, true
    columns: int
    evaluations: int  # of F, or steps


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--task", choices=TASKS, action="append", help="both by default")
    parser.add_argument("--columns", type=positive_int, default=COLUMNS, help="1024 by default")
    parser.add_argument("--samples", type=positive_int, help="fewer samples than there are")
    parser.add_argument("--repeat", type=positive_int, default=3, help="times each; 3 by default")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")


def run(options: argparse.Namespace) -> int:
    results = {}
    with machine.one_thread():
        for name in options.task or TASKS:
            results[name] = measure(name, options.columns, options.samples, options.repeat)
    if options.json:
        content = {"command": "slkl_speed", "results": results, **machine.environment()}
        report.write_json(options.json, content)
    return 0 if all(result["ahead"] for result in results.values()) else 1


def measure(name: str, columns: int, samples: int | None, repeat: int) -> dict[str, Any]:
    X, y, width = draw(name, samples)
    chosen = np.sort(np.random.RandomState(0).permutation(len(X))[:columns])
    core = _core.KernelColumns(kernels.Gaussian(width).core, X[chosen], True)
    with machine.Stopwatch() as watch:
        core.prepare(X, y[:, None])
    problem = Problem(core, float(y @ y))
    best = problem.solve("shrinking", 0.0)
    minimum = best.objective[-1]
    ways: dict[str, Callable[[], Timing]] = {
        "shrinking": lambda: ours(problem, "shrinking", minimum),
        "uniform": lambda: ours(problem, "uniform", minimum),
        "L-BFGS-B": lambda: lbfgs(problem, minimum),
    }
    timings = {way: [run() for _ in range(repeat)] for way, run in ways.items()}
    floor = step_ratio(X, y, width, chosen[best.mu > 0])
    print(
        f"\n{name}: {len(X):,} samples, {len(chosen):,} columns, products in "
        f"{watch.elapsed.wall:.2f} s; the minimum is {minimum:.8g}."
    )
    show(timings)
    print(
        f"A step that changes one of {floor['columns']:.0f} weights takes "
        f"{floor['microseconds']:.1f} us of processor time, {floor['ratio']:.2f} times its flops "
        f"at the {floor['gemm_gflops']:.0f} GFlop/s of the machine's best matrix product."
    )
    times = {way: median(t.seconds for t in runs) for way, runs in timings.items()}
    reached = all(t.gap <= GAP for t in timings["shrinking"])
    return {
        "prepare_seconds": watch.elapsed.wall,
        "minimum": minimum,
        "timings": {way: [asdict(t) for t in runs] for way, runs in timings.items()},
        "step": floor,
        "ahead": reached and times["shrinking"] < min(times["uniform"], times["L-BFGS-B"]),
    }


def draw(name: str, samples: int | None) -> tuple[Array, Array, float]:
    """Return samples, targets and the width of the paper's kernel."""
    if name == "abalone":
        X, y = load_data("abalone", standardize=True, return_X_y=True)
        order = np.random.RandomState(0).permutation(len(X))[: samples or 3000]
        return np.ascontiguousarray(X[order]), y[order], float(np.sqrt(2.5))
    X, labels = load_data("usps", pixel_range=None, return_X_y=True)
    part = slice(samples)
    return np.ascontiguousarray(X[part]), np.where(labels[part] == DIGIT, 1.0, -1.0), DIGIT_WIDTH


class Problem:
    """F, its gradient, and the ways to minimise it, from the products of columns."""

    def __init__(self, core: Any, target_norm: float) -> None:
        self.core = core
        self.products = np.asarray(core.products)
        self.correlations = np.asarray(core.correlations)[:, 0]
        self.target_norm = target_norm

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


def ours(problem: Problem, selection: str, minimum: float) -> Timing:
    """Time a selection with the largest tolerance that reaches the gap."""
    for tolerance in 10.0 ** -np.arange(2, 13, 0.5):
        with machine.Stopwatch() as watch:
            solution = problem.solve(selection, float(tolerance))
        gap = solution.objective[-1] / minimum - 1
        if gap <= GAP:
            break
    return Timing(
        watch.elapsed.wall,
        watch.elapsed.cpu,
        float(gap),
        int((solution.mu > 0).sum()),
        solution.steps,
    )


class _ReachedError(Exception):
    pass


def lbfgs(problem: Problem, minimum: float) -> Timing:
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
    return Timing(
        watch.elapsed.wall,
        watch.elapsed.cpu,
        float(value / minimum - 1),
        int((mu > 0).sum()),
        len(evaluations),
    )


def step_ratio(X: Array, y: Array, width: float, support: NDArray[np.int64]) -> dict[str, float]:
    """Time of a step that changes a weight over that of its flops, 2 m0^2, at the GEMM rate.

    The steps are those of uniform selection among the columns of the solution alone, once it has
    visited all of them: nearly every one changes a weight. Refreshes of the inverse are included.
    """
    core = _core.KernelColumns(kernels.Gaussian(width).core, X[support], True)
    core.prepare(X, y[:, None])
    problem = Problem(core, float(y @ y))
    gemm = machine.GemmRate()
    gemm.measure(machine.GENERAL_SHAPES)
    many, few = (min_time(problem, epochs) for epochs in (30, 8))
    gemm.measure(machine.GENERAL_SHAPES)
    updates = many[1].updates - few[1].updates
    order = float((many[1].mu > 0).sum() + (few[1].mu > 0).sum()) / 2
    seconds = (many[0] - few[0]) / updates
    return {
        "microseconds": 1e6 * seconds,
        "columns": order,
        "ratio": seconds * gemm.best / (2 * order**2),
        "gemm_gflops": gemm.best / 1e9,
        "updates": float(updates),
    }


def min_time(problem: Problem, epochs: int) -> tuple[float, Any]:
    """Return the least processor time of a few runs of so many epochs, and what they found."""
    times = []
    for _ in range(7):
        with machine.Stopwatch() as watch:
            solution = problem.solve("uniform", 0.0, epochs)
        times.append(watch.elapsed.cpu)
    return min(times), solution


def show(timings: dict[str, Sequence[Timing]]) -> None:
    first = median(t.seconds for t in timings["shrinking"])
    rows = []
    for way, runs in timings.items():
        seconds = median(t.seconds for t in runs)
        rows.append(
            [
                way,
                f"{seconds:.4f}",
                f"{median(t.cpu_seconds for t in runs):.4f}",
                f"{seconds / first:.1f}",
                f"{runs[-1].gap:.1e}",
                f"{runs[-1].columns}",
                f"{runs[-1].evaluations}",
            ]
        )
    header = ["", "seconds", "CPU s", "x shrinking", "gap", "columns", "steps or values of F"]
    report.print_table(header, rows)

"""Training time of the intensity estimators beside that of the linear algebra they cannot avoid.

Table I's toy row of SPPPOT's paper: 8 epochs of 10,211 samples, 100 nodes, for Algorithm 3 (newton)
and for Algorithm 1 in mini-batches of 30 (spppot). The floor is the number of flops over the rate
at which this machine does just these operations at just this size, measured in the same run; and,
beside it, over the rate of its best matrix product.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy.linalg import blas

import parsimon
from bench import machine, report
from bench.cli import MissingDataError, positive_int
from bench.intensity_settings import EXPERIMENTS, Method
from parsimon import datasets

SAMPLES = 10_211
WARM_UP_SAMPLES = 2000

# What a task runs, and how long the paper says it takes.
TASKS = {"spppot": "SPPPOTIntensity", "newton": "MirrorNewtonIntensity"}
PAPER_MINUTES = {"spppot": 5, "newton": 20}


@dataclass(frozen=True)
class Flops:
    """What no implementation can do without, by the operation that does it best."""

    products: float = 0.0  # of matrices
    matrix_vector: float = 0.0
    rank_one: float = 0.0

    @property
    def total(self) -> float:
        return self.products + self.matrix_vector + self.rank_one


@dataclass(frozen=True)
class Run:
    """One training from nothing."""

    seconds: float
    cpu_seconds: float
    samples: int
    model_order: int
    integral: float
    flops: Flops


@dataclass
class VectorRates:
    """Rates of BLAS's matrix-vector product and rank-1 update, in flops a second.

    The matrix, square and of the size given, stays in the cache, as it does in training. What a
    call costs from Python is measured at size 1 and taken off: it would flatter what is measured
    against these rates. As other work can only slow a call down, the least times count.
    """

    size: int
    seconds: dict[tuple[str, int], float] = field(default_factory=dict)

    def measure(self, *, seconds: float = 0.3) -> None:
        with machine.one_thread():
            for name, make in OPERATIONS.items():
                for size in (1, self.size):
                    least = self.seconds.get((name, size), float("inf"))
                    self.seconds[name, size] = min(least, _best_seconds(make(size), seconds))

    @property
    def by_operation(self) -> dict[str, float]:
        rates = {
            name: 2.0 * self.size**2 / max(self._net_seconds(name), 1e-9) for name in OPERATIONS
        }
        by_rows, by_columns = rates.pop("rows_vector"), rates.pop("columns_vector")
        return {**rates, "matrix_vector": max(by_rows, by_columns)}

    def _net_seconds(self, name: str) -> float:
        return self.seconds[name, self.size] - self.seconds[name, 1]


def _rows_vector(size: int) -> Callable[[], Any]:
    matrix, x, y = np.ones((size, size), order="F"), np.ones(size), np.zeros(size)
    return lambda: blas.dgemv(1.0, matrix, x, 0.0, y, trans=1, overwrite_y=1)


def _columns_vector(size: int) -> Callable[[], Any]:
    matrix, x, y = np.ones((size, size), order="F"), np.ones(size), np.zeros(size)
    return lambda: blas.dgemv(1.0, matrix, x, 0.0, y, overwrite_y=1)


def _rank_one(size: int) -> Callable[[], Any]:
    matrix, x, y = np.ones((size, size), order="F"), np.ones(size), np.ones(size)
    return lambda: blas.dger(1e-9, x, y, a=matrix, overwrite_x=1, overwrite_y=1, overwrite_a=1)


OPERATIONS = {
    "rows_vector": _rows_vector,
    "columns_vector": _columns_vector,
    "rank_one": _rank_one,
}


def _best_seconds(call: Callable[[], Any], seconds: float) -> float:
    """Return the seconds of a call in the quickest of many short bursts."""
    calls = max(1, round(machine.BURST / max(_time(call, 10), 1e-9)))
    best, end = _time(call, calls), time.perf_counter() + seconds
    while time.perf_counter() < end:
        best = min(best, _time(call, calls))
    return best


def _time(call: Callable[[], Any], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--task", choices=TASKS, required=True)
    parser.add_argument("--samples", type=positive_int, default=SAMPLES, help="10,211 by default")
    parser.add_argument("--repeat", type=positive_int, default=1, help="trainings; 1 by default")
    parser.add_argument("--seed", type=int, default=0, help="which draw of the toy")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")


def run(options: argparse.Namespace) -> int:
    if not hasattr(parsimon, TASKS[options.task]):
        raise MissingDataError(f"parsimon has no {TASKS[options.task]} here.")
    X, method = draw(options.samples or SAMPLES, options.seed), table_one(options.task)
    nodes = EXPERIMENTS["toy"].grid_size
    gemm, vectors = machine.GemmRate(), VectorRates(nodes)
    shape = (nodes, nodes, method.settings.get("batch_size", 1))
    print(
        f"{method.name} on the toy: {len(X):,} samples, {method.settings['epochs']} epochs, "
        f"{nodes} nodes, one thread."
    )

    def measure() -> None:
        vectors.measure()
        gemm.measure(machine.GENERAL_SHAPES)
        gemm.measure([shape])

    with machine.one_thread():
        train(options.task, method, X[:WARM_UP_SAMPLES], options.seed)
        measure()
        runs = []
        for _ in range(options.repeat):
            runs.append(train(options.task, method, X, options.seed))
            measure()
    rates = {"products": gemm.by_shape[shape], **vectors.by_operation}
    figures = [{**asdict(run), **ratios(run, rates, gemm.best)} for run in runs]
    show(options.task, figures, rates, gemm)
    if options.json:
        content = {
            "command": "intensity_speed",
            "task": options.task,
            "seed": options.seed,
            "settings": dict(method.settings),
            "runs": figures,
            "gflops": {name: rate / 1e9 for name, rate in rates.items()},
            "gemm": gemm.as_dict(),
            **machine.environment(),
        }
        report.write_json(options.json, content)
    return 0


def draw(samples: int, seed: int) -> Any:
    """Draw exactly so many points of the toy: the paper's are the draw that it happened to have."""
    X = datasets.make_poisson_gaussian(1.2 * samples + 100, random_state=seed)
    return X[:samples]


def table_one(task: str) -> Method:
    """Return the first row of Table I with this algorithm."""
    return next(m for m in EXPERIMENTS["toy"].printed if m.kind == TASKS[task])


def train(task: str, method: Method, X: Any, seed: int) -> Run:
    model = method.make(EXPERIMENTS["toy"], X.shape[1], seed, None)
    with machine.Stopwatch() as watch:
        model.fit(X)
    nodes, trained = EXPERIMENTS["toy"].grid_size, int(model.t_)
    return Run(
        seconds=watch.elapsed.wall,
        cpu_seconds=watch.elapsed.cpu,
        samples=trained,
        model_order=int(model.model_order_),
        integral=float(model.integral_),
        flops=(
            newton_flops(trained, nodes)
            if task == "newton"
            else spppot_flops(model.trace_, X.shape[1], nodes, trained)
        ),
    )


def newton_flops(samples: int, nodes: int) -> Flops:
    """Count Algorithm 3's: for a sample, two matrix-vector products and one rank-1 update."""
    square = 2.0 * nodes**2
    return Flops(matrix_vector=2 * square * samples, rank_one=square * samples)


def spppot_flops(trace: Mapping[str, Any], features: int, nodes: int, samples: int) -> Flops:
    """Count Algorithm 1's, with M the model order before a mini-batch.

    2 M (p + M) for a sample, its kernel with the dictionary and its projection; 2 |U| M for a
    mini-batch, the function at the nodes.
    """
    sizes = np.diff(trace["samples"], prepend=0)
    if len(sizes) > 1 and sizes[0] > sizes[1]:
        raise ValueError(
            f"The trace has only the latest {len(sizes):,} mini-batches of {samples:,} samples, so "
            f"their floor is not known; train on fewer samples."
        )
    before = np.concatenate([[nodes], trace["model_order"][:-1]]).astype(np.float64)
    return Flops(
        products=float(np.sum(2 * before * (features + before) * sizes)),
        matrix_vector=float(np.sum(2 * nodes * before)),
    )


def ratios(run: Run, rates: Mapping[str, float], gemm: float) -> dict[str, float]:
    """Return the floors in seconds, and how many times as long the run took."""
    own = sum(flops / rates[name] for name, flops in asdict(run.flops).items())
    best = run.flops.total / gemm
    return {
        "own_floor_seconds": own,
        "own_ratio": run.seconds / own,
        "own_cpu_ratio": run.cpu_seconds / own,
        "gemm_floor_seconds": best,
        "gemm_ratio": run.seconds / best,
    }


def show(
    task: str,
    figures: Sequence[Mapping[str, Any]],
    rates: Mapping[str, float],
    gemm: machine.GemmRate,
) -> None:
    print(
        "GFlop/s, double precision, one thread: "
        f"matrix-vector product {rates['matrix_vector'] / 1e9:.1f}, "
        f"rank-1 update {rates['rank_one'] / 1e9:.1f}, "
        f"product of a mini-batch {rates['products'] / 1e9:.1f}; "
        f"best product {gemm.best / 1e9:.1f}.\n"
    )
    header = ["", "seconds", "CPU s", "samples/s", "points", "integral"]
    header += ["own floor s", "ratio", "CPU ratio", "GEMM floor s", "ratio"]
    report.print_table(
        header,
        [
            [
                f"run {i}",
                f"{f['seconds']:.3f}",
                f"{f['cpu_seconds']:.3f}",
                f"{f['samples'] / f['seconds']:,.0f}",
                f"{f['model_order']}",
                f"{f['integral']:.4f}",
                f"{f['own_floor_seconds']:.3f}",
                f"{f['own_ratio']:.2f}",
                f"{f['own_cpu_ratio']:.2f}",
                f"{f['gemm_floor_seconds']:.3f}",
                f"{f['gemm_ratio']:.2f}",
            ]
            for i, f in enumerate(figures, start=1)
        ],
    )
    seconds, ratio = (median(f[name] for f in figures) for name in ("seconds", "own_ratio"))
    print(
        f"\n{seconds:.2f} s (the paper: about {PAPER_MINUTES[task]} minutes), {ratio:.2f} times "
        "the floor of its own operations."
    )
    if any(f["seconds"] > machine.BUSY * f["cpu_seconds"] for f in figures):
        print("The machine was busy: the clock ran on while other processes had the processor.")

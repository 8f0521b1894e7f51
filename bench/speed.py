"""Training time beside the time that the linear algebra alone would take.

POLK on a task of classifiers, or SPPPOT's Algorithms 1 (spppot) and 3 (newton) on the toy of its
Table I. The floor is the number of flops that no implementation can do without, each over the rate
at which this machine does such operations, measured in the same run.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import numpy as np

from bench import machine, report
from bench.cli import MissingDataError, positive_int
from bench.papers.intensity import DENSITIES, TABLE_ONE
from bench.report import Column, Table, one
from bench.runner import Figures, Row, Run
from bench.tasks import BATCH_SIZE, TASKS, Task
from parsimon import POLKClassifier, datasets

WARM_UP_SAMPLES = 2000
TOY_SAMPLES = 10_211
# The algorithms of Table I, and how many minutes the paper says that they take.
INTENSITIES = {"spppot": ("SPPPOTIntensity", 5), "newton": ("MirrorNewtonIntensity", 20)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--task", choices=(*TASKS, *INTENSITIES), required=True)
    parser.add_argument("--loss", choices=("hinge", "logistic"), default="hinge")
    parser.add_argument("--parsimony", type=float, help="K; the task's own by default")
    parser.add_argument("--batch-size", type=positive_int, default=BATCH_SIZE)
    parser.add_argument("--samples", type=positive_int, help="how many; the task's own by default")
    parser.add_argument("--repeat", type=positive_int, default=1, help="trainings; 1 by default")
    parser.add_argument("--seed", type=int, default=0, help="which draw of data that are drawn")
    report.add_json(parser)


def run(options: argparse.Namespace) -> int:
    subject = Intensity(options) if options.task in INTENSITIES else Classifier(options)
    gemm = machine.GemmRate()

    def measure(trained: Figures) -> None:
        gemm.measure([*machine.GENERAL_SHAPES, *subject.shapes(trained)])
        if subject.vectors:
            subject.vectors.measure()

    with machine.one_thread():
        measure(subject.train(WARM_UP_SAMPLES))
        runs = []
        for _ in range(options.repeat):
            runs.append(subject.train())
            measure(runs[-1])
    rates = {"products": gemm.best}
    if subject.vectors:
        rates = {"products": gemm.by_shape[subject.shape], **subject.vectors.by_operation}
    runs = [{**each, **ratios(each, rates, gemm.best)} for each in runs]
    summary = {name: median(each[name] for each in runs) for name in runs[0] if name != "flops"}
    show(subject, runs, summary, rates, gemm)
    gflops = {name: rate / 1e9 for name, rate in rates.items()}
    found = {"median": summary, "runs": runs, "gflops": gflops, "gemm": gemm.as_dict()}
    report.write_json(options, settings=subject.settings, **found)
    return 0


# -- floors ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Flops:
    """What no implementation can do without, by the operation that does it best."""

    products: float = 0.0  # of matrices
    matrix_vector: float = 0.0
    rank_one: float = 0.0

    @property
    def total(self) -> float:
        return self.products + self.matrix_vector + self.rank_one


def polk_flops(trace: Mapping[str, Any], features: int) -> Flops:
    """Count POLK's, with M the model order before a mini-batch.

    2 M p for a sample, its kernel with the dictionary; 2 M^2 more for its projection if it moves
    the function.
    """
    before, sizes = before_each_batch(trace, 0)
    return Flops(float(np.sum(2 * before * features * sizes + 2 * before**2 * trace["active"])))


def spppot_flops(trace: Mapping[str, Any], features: int, nodes: int) -> Flops:
    """Count Algorithm 1's: 2 M (p + M) for a sample, 2 |U| M for a mini-batch.

    A sample has its kernel with the dictionary and its projection, a mini-batch the function at the
    nodes U.
    """
    before, sizes = before_each_batch(trace, nodes)
    return Flops(
        products=float(np.sum(2 * before * (features + before) * sizes)),
        matrix_vector=float(np.sum(2 * nodes * before)),
    )


def before_each_batch(trace: Mapping[str, Any], first: int) -> tuple[Any, Any]:
    """Return the model order before each mini-batch, and how many samples it has."""
    sizes = np.diff(trace["samples"], prepend=0)
    if len(sizes) > 1 and sizes[0] > sizes[1]:
        raise ValueError(
            f"The trace has only the latest {len(sizes):,} mini-batches of a stream of "
            f"{trace['samples'][-1]:,} samples, so its floor is not known; train on fewer samples."
        )
    return np.concatenate([[first], trace["model_order"][:-1]]).astype(np.float64), sizes


def newton_flops(samples: int, nodes: int) -> Flops:
    """Count Algorithm 3's: for a sample, two matrix-vector products and one rank-1 update."""
    square = 2.0 * nodes**2
    return Flops(matrix_vector=2 * square * samples, rank_one=square * samples)


def ratios(trained: Figures, rates: Mapping[str, float], gemm: float) -> Figures:
    """Return the floor in seconds, and how many times as long training took.

    Beside it, the same with all flops at the rate of the best matrix product.
    """
    flops = trained["flops"]
    floor = sum(count / rates[name] for name, count in flops.items() if count)
    return {
        "samples_per_second": trained["samples"] / trained["seconds"],
        "floor_seconds": floor,
        "ratio": trained["seconds"] / floor if floor else float("nan"),
        "cpu_ratio": trained["cpu_seconds"] / floor if floor else float("nan"),
        "gemm_ratio": trained["seconds"] * gemm / sum(flops.values()) if floor else float("nan"),
    }


# -- what is trained -------------------------------------------------------------------------------


class Classifier:
    """POLK on a task, as its paper runs it."""

    vectors = None
    minutes = None

    def __init__(self, options: argparse.Namespace) -> None:
        self.task = task = TASKS[options.task](options.samples, options.seed)
        given = {"parsimony": options.parsimony, "batch_size": options.batch_size}
        self.model = model = task.classifier(options.loss, **given)
        self.settings = model.get_params()
        self.description = (
            f"POLK on {task.name}: {len(task.X):,} samples of {task.features} features, "
            f"{model.loss} loss, {model.kernel!r},\n"
            f"learning rate {model.learning_rate:g}, K = {model.parsimony:g}, mini-batches of "
            f"{model.batch_size}, one epoch, one thread."
        )

    def train(self, samples: int | None = None) -> Figures:
        return train(self.model, self.task, samples)

    def shapes(self, trained: Figures) -> list[machine.Shape]:
        return blocks(trained, self.task, self.model)


def train(model: POLKClassifier, task: Task, samples: int | None = None) -> Figures:
    """Fit to the first samples of a task, from nothing, and test."""
    X, y = task.X[:samples], task.y[:samples]
    with machine.Stopwatch() as watch:
        model.fit(X, y)
    return {
        **watch.figures,
        "samples": len(X),
        "model_order": model.model_order_,
        "largest_model_order": int(model.trace_["model_order"].max()),
        "test_error": float((model.predict(task.X_test) != task.y_test).mean()),
        "flops": asdict(polk_flops(model.trace_, task.features)),
    }


def blocks(trained: Figures, task: Task, model: POLKClassifier) -> list[machine.Shape]:
    """Return the two products of a mini-batch: the kernel block, and K^-1 times that block."""
    order, size = trained["model_order"], model.batch_size
    return [(order, task.features, size), (order, order, size)] if order else []


class Intensity:
    """The first row of Table I with an algorithm: 8 epochs on the toy, 100 nodes."""

    def __init__(self, options: argparse.Namespace) -> None:
        kind, self.minutes = INTENSITIES[options.task]
        self.method = next(each for each in TABLE_ONE["toy"] if each.kind == kind)
        if self.method.absent:
            raise MissingDataError(f"{kind} is {self.method.absent}.")
        self.X = draw_toy(options.samples or TOY_SAMPLES, options.seed)
        self.seed, self.offered = options.seed, DENSITIES["toy"].offered
        self.nodes = self.offered["grid_size"]
        self.settings = self.method.settings
        self.vectors = machine.VectorRates(self.nodes)
        self.shape = (self.nodes, self.nodes, self.settings.get("batch_size", 1))
        self.description = (
            f"{self.method.name} on the toy: {len(self.X):,} samples, "
            f"{self.settings['epochs']} epochs, {self.nodes} nodes, one thread."
        )

    def train(self, samples: int | None = None) -> Figures:
        X, model = self.X[:samples], Run(self.method, None, self.seed, self.offered).make()
        with machine.Stopwatch() as watch:
            model.fit(X)
        if self.method.kind == "MirrorNewtonIntensity":
            flops = newton_flops(int(model.t_), self.nodes)
        else:
            flops = spppot_flops(model.trace_, X.shape[1], self.nodes)
        return {
            **watch.figures,
            "samples": int(model.t_),
            "model_order": int(model.model_order_),
            "integral": float(model.integral_),
            "flops": asdict(flops),
        }

    def shapes(self, trained: Figures) -> list[machine.Shape]:
        return [self.shape]


def draw_toy(samples: int, seed: int) -> Any:
    """Draw exactly so many points of the toy: the paper's are the draw that it happened to have."""
    return datasets.make_poisson_gaussian(1.2 * samples + 100, random_state=seed)[:samples]


# -- showing ---------------------------------------------------------------------------------------

COLUMNS = (
    Column("seconds", "seconds", one(".3f")),
    Column("CPU s", "cpu_seconds", one(".3f")),
    Column("samples/s", "samples_per_second", one(",.0f")),
    Column("model order", "model_order", one(",.0f")),
    Column("test error", "test_error", one(".2%")),
    Column("integral", "integral", one(".4f")),
    Column("floor s", "floor_seconds", one(".3g")),
    Column("ratio", "ratio", one(".2f")),
    Column("CPU ratio", "cpu_ratio", one(".2f")),
    Column("ratio at best product", "gemm_ratio", one(".2f")),
)


def show(
    subject: Classifier | Intensity,
    runs: Sequence[Figures],
    summary: Figures,
    rates: Mapping[str, float],
    gemm: machine.GemmRate,
) -> None:
    libraries = ", ".join(f"{b['name']} {b['version']} {b['architecture']}" for b in machine.blas())
    known = {**gemm.as_dict()["gflops_by_shape"], **{k: v / 1e9 for k, v in rates.items()}}
    gflops = ", ".join(f"{name} {rate:.1f}" for name, rate in known.items())
    lines = [Row.single(f"run {number}", each) for number, each in enumerate(runs, start=1)]
    Table.of_rows(
        f"{subject.description}\nGFlop/s, double precision ({libraries or '?'}): best product "
        f"{gemm.best / 1e9:.1f}, {gflops}.",
        [*lines, Row.single("median", summary)],
        [column for column in COLUMNS if column.figure in summary],
    ).show()
    paper = f" (the paper: about {subject.minutes} minutes)" if subject.minutes else ""
    print(f"\n{summary['seconds']:.2f} s{paper}, {summary['ratio']:.2f} times the floor.")
    if machine.was_busy(summary):
        print("The machine was busy: the clock ran on while other processes had the processor.")

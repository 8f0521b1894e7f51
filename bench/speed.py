"""Training time beside the time that the linear algebra alone would take.

POLK on a task of classifiers, or SPPPOT's Algorithms 1 (spppot) and 3 (newton) on the toy of its
Table I. The floor is the number of flops that no implementation can do without, each over the rate
at which this machine does such operations, measured in the same run.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from statistics import median
from typing import Any

import numpy as np

from bench import machine, report
from bench.cli import positive_int
from bench.papers.intensity import DENSITIES, TABLE_ONE
from bench.runner import Figures, Run
from bench.tasks import BATCH_SIZE, TASKS, Task
from parsimon import datasets

WARM_UP_SAMPLES = 2000
TOY_SAMPLES = 10_211
NODES = DENSITIES["toy"].offered["grid_size"]
# The algorithms of Table I, and how many minutes the paper says that they take.
INTENSITIES = {"spppot": ("SPPPOTIntensity", 5), "newton": ("MirrorNewtonIntensity", 20)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--task", choices=(*TASKS, *INTENSITIES), required=True)
    add("--samples", type=positive_int, help="how many; the task's own by default")
    add("--repeat", type=positive_int, default=1, help="trainings; 1 by default")
    add("--seed", type=int, default=0, help="which draw of data that are drawn")
    add("--loss", choices=("hinge", "logistic"), default="hinge", help="of POLK")
    add("--parsimony", type=float, help="K of POLK; the task's own by default")
    add("--batch-size", type=positive_int, default=BATCH_SIZE, help="of POLK")
    report.add_json(parser)


def run(options: argparse.Namespace) -> int:
    if options.task in INTENSITIES:
        task, model = intensity(options)
    else:
        task = TASKS[options.task](options.samples, options.seed)
        settings = {"parsimony": options.parsimony, "batch_size": options.batch_size}
        model = task.classifier(options.loss, **settings)
    gemm, vectors = machine.GemmRate(), dict[str, float]()
    trained: list[Figures] = []
    with machine.one_thread():
        for samples in (WARM_UP_SAMPLES, *[None] * options.repeat):
            trained.append(train(model, task, samples))
            shapes = blocks(trained[-1], task, model)
            gemm.measure([*machine.GENERAL_SHAPES, *shapes])
            if options.task in INTENSITIES:
                now = machine.vector_rates(NODES)
                vectors = {name: max(rate, vectors.get(name, 0.0)) for name, rate in now.items()}
    rates = {"products": gemm.by_shape[shapes[-1]] if vectors else gemm.best, **vectors}
    runs = [{**each, **ratios(each, rates, gemm.best)} for each in trained[1:]]
    summary = {name: median(each[name] for each in runs) for name in runs[0] if name != "flops"}
    gflops = {name: rate / 1e9 for name, rate in {"best product": gemm.best, **rates}.items()}
    print(
        f"{model!r}\non {task.name}, {len(task.X):,} samples of {task.features} features, one "
        f"thread.\nGFlop/s: " + ", ".join(f"{name} {rate:.1f}" for name, rate in gflops.items())
    )
    for name, value in summary.items():
        print(f"{name.replace('_', ' '):>22}  {value:,.4g}")
    minutes = INTENSITIES.get(options.task, ("", None))[1]
    paper = f" (the paper: about {minutes} minutes)" if minutes else ""
    print(f"{summary['seconds']:.2f} s{paper}, {summary['ratio']:.2f} times the floor.")
    if machine.was_busy(summary):
        print("The machine was busy: the clock ran on while other processes had the processor.")
    found = {"median": summary, "runs": runs, "gflops": gflops}
    report.write_json(options, settings=model.get_params(), **found)
    return 0


def intensity(options: argparse.Namespace) -> tuple[Task, Any]:
    """Return the first row of Table I with an algorithm: 8 epochs on the toy, 100 nodes."""
    kind, _ = INTENSITIES[options.task]
    method = next(each for each in TABLE_ONE["toy"] if each.kind == kind)
    # The number of points in the paper is what one draw gave: draw more.
    samples = options.samples or TOY_SAMPLES
    X = datasets.make_poisson_gaussian(1.2 * samples + 100, random_state=options.seed)
    task = Task("toy", X[:samples], None, X[:0], None)
    return task, Run(method, task, options.seed, DENSITIES["toy"].offered).make()


def train(model: Any, task: Task, samples: int | None = None) -> Figures:
    """Fit to the first samples of a task, from nothing, and test."""
    X, y = task.X[:samples], None if task.y is None else task.y[:samples]
    with machine.Stopwatch() as watch:
        model.fit(X, y)
    if y is None:
        quality = {"integral": float(model.integral_)}
    else:
        quality = {"test_error": float((model.predict(task.X_test) != task.y_test).mean())}
        quality["largest_model_order"] = int(model.trace_["model_order"].max())
    return {
        **watch.figures,
        "samples": int(model.t_),
        "model_order": int(model.model_order_),
        **quality,
        "flops": FLOPS[type(model).__name__](model, task.features),
    }


def blocks(trained: Figures, task: Task, model: Any) -> list[machine.Shape]:
    """Return the two products of a mini-batch: the kernel block, and K^-1 times that block."""
    order, size = trained["model_order"], getattr(model, "batch_size", 1)
    return [(order, task.features, size), (order, order, size)] if order else []


# What no implementation can do without, by the operation that does it best: products of matrices,
# matrix_vector, rank_one.
Flops = dict[str, float]


def polk_flops(model: Any, features: int) -> Flops:
    """Count POLK's, with M the model order before a mini-batch.

    2 M p for a sample, its kernel with the dictionary; 2 M^2 more for its projection if it moves
    the function.
    """
    before, sizes = before_each_batch(model.trace_, 0)
    flops = 2 * before * features * sizes + 2 * before**2 * model.trace_["active"]
    return {"products": float(np.sum(flops))}


def spppot_flops(model: Any, features: int) -> Flops:
    """Count Algorithm 1's: 2 M (p + M) for a sample, 2 |U| M for a mini-batch.

    A sample has its kernel with the dictionary and its projection, a mini-batch the function at the
    nodes U.
    """
    before, sizes = before_each_batch(model.trace_, NODES)
    return {
        "products": float(np.sum(2 * before * (features + before) * sizes)),
        "matrix_vector": float(np.sum(2 * NODES * before * np.ceil(sizes / model.batch_size))),
    }


def newton_flops(model: Any, features: int) -> Flops:
    """Count Algorithm 3's: for a sample, two matrix-vector products and one rank-1 update."""
    square = 2.0 * NODES**2
    return {"matrix_vector": 2 * square * model.t_, "rank_one": square * model.t_}


FLOPS = {
    "POLKClassifier": polk_flops,
    "SPPPOTIntensity": spppot_flops,
    "MirrorNewtonIntensity": newton_flops,
}


def before_each_batch(trace: Mapping[str, Any], first: int) -> tuple[Any, Any]:
    """Return the model order before each record of a trace, and how many samples it has."""
    sizes = np.diff(trace["samples"], prepend=0)
    return np.concatenate([[first], trace["model_order"][:-1]]).astype(np.float64), sizes


def ratios(trained: Figures, rates: Mapping[str, float], gemm: float) -> Figures:
    """Return the floor in seconds, and how many times as long training took.

    Beside it, the same with all flops at the rate of the best matrix product.
    """
    flops = trained["flops"]
    floor = sum(count / rates[name] for name, count in flops.items())
    return {
        "samples_per_second": trained["samples"] / trained["seconds"],
        "floor_seconds": floor,
        "ratio": trained["seconds"] / floor if floor else float("nan"),
        "cpu_ratio": trained["cpu_seconds"] / floor if floor else float("nan"),
        "gemm_ratio": trained["seconds"] * gemm / sum(flops.values()) if floor else float("nan"),
    }

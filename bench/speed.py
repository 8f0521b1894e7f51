"""Training time of POLK beside the time that its matrix products alone would take.

The floor is the number of flops that no implementation of POLK can do without, divided by the rate
at which this machine multiplies matrices, measured in the same run.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bench import machine, report
from bench.cli import positive_int
from bench.tasks import BATCH_SIZE, TASKS, Task
from parsimon import POLKClassifier

WARM_UP_SAMPLES = 2000


@dataclass(frozen=True)
class Run:
    """One training from nothing."""

    seconds: float
    cpu_seconds: float
    samples: int
    model_order: int
    largest_model_order: int
    test_error: float
    floor_flops: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--task", choices=TASKS, required=True)
    parser.add_argument("--loss", choices=("hinge", "logistic"), default="hinge")
    parser.add_argument("--parsimony", type=float, help="K; the task's own by default")
    parser.add_argument("--batch-size", type=positive_int, default=BATCH_SIZE)
    parser.add_argument("--samples", type=positive_int, help="how many; the task's own by default")
    parser.add_argument("--repeat", type=positive_int, default=1, help="trainings; 1 by default")
    parser.add_argument("--seed", type=int, default=0, help="which draw of multidist or synthetic")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")


def run(options: argparse.Namespace) -> int:
    task = TASKS[options.task](options.samples, options.seed)
    model = task.classifier(
        options.loss, parsimony=options.parsimony, batch_size=options.batch_size
    )
    print(describe(task, model))
    rate = machine.GemmRate()
    rate.measure(machine.GENERAL_SHAPES)
    with machine.one_thread():
        warm_up = train(model, task, WARM_UP_SAMPLES)
        rate.measure(blocks(warm_up, task, model))
        runs = []
        for _ in range(options.repeat):
            runs.append(train(model, task))
            rate.measure(machine.GENERAL_SHAPES)
            rate.measure(blocks(runs[-1], task, model))
    summary = summarize(runs, rate.best)
    show(runs, summary, rate, blocks(runs[-1], task, model))
    if options.json:
        settings = {name: describe_value(value) for name, value in model.get_params().items()}
        content = {
            "command": "speed",
            "task": task.name,
            "seed": options.seed,
            "features": task.features,
            "settings": settings,
            "median": summary,
            "runs": [{**asdict(run), **ratios(run, rate.best)} for run in runs],
            "gemm": rate.as_dict(),
            **machine.environment(),
        }
        report.write_json(options.json, content)
    return 0


def train(model: POLKClassifier, task: Task, samples: int | None = None) -> Run:
    """Fit to the first samples of a task, from nothing, and test."""
    X, y = task.X[:samples], task.y[:samples]
    with machine.Stopwatch() as watch:
        model.fit(X, y)
    trace = model.trace_
    return Run(
        seconds=watch.elapsed.wall,
        cpu_seconds=watch.elapsed.cpu,
        samples=len(X),
        model_order=model.model_order_,
        largest_model_order=int(trace["model_order"].max()),
        test_error=float((model.predict(task.X_test) != task.y_test).mean()),
        floor_flops=floor_flops(trace, task.features, model.t_),
    )


def floor_flops(trace: Mapping[str, Any], features: int, samples: int) -> float:
    """Count the flops that POLK cannot do without.

    A sample costs 2 M p for its kernel with the dictionary, and 2 M^2 for the projection if it
    moves the function; M is the model order before its mini-batch.
    """
    batch_sizes = np.diff(trace["samples"], prepend=0)
    if len(batch_sizes) > 1 and batch_sizes[0] > batch_sizes[1]:
        raise ValueError(
            f"The trace has only the latest {len(batch_sizes):,} mini-batches of a stream of "
            f"{samples:,} samples, so its floor is not known; train on fewer samples."
        )
    before = np.concatenate([[0], trace["model_order"][:-1]]).astype(np.float64)
    return float(np.sum(2 * before * features * batch_sizes + 2 * before**2 * trace["active"]))


def blocks(run: Run, task: Task, model: POLKClassifier) -> list[machine.Shape]:
    return machine.block_shapes(task.features, run.model_order, model.batch_size)


def ratios(run: Run, rate: float) -> dict[str, float]:
    floor = run.floor_flops / rate
    return {
        "samples_per_second": run.samples / run.seconds,
        "floor_seconds": floor,
        "ratio": run.seconds / floor if floor > 0 else float("nan"),
        "cpu_ratio": run.cpu_seconds / floor if floor > 0 else float("nan"),
    }


def summarize(runs: Sequence[Run], rate: float) -> dict[str, float]:
    """Return the median of every figure over the runs."""
    figures = [{**asdict(run), **ratios(run, rate)} for run in runs]
    return {name: median(figure[name] for figure in figures) for name in figures[0]}


def describe(task: Task, model: POLKClassifier) -> str:
    return (
        f"POLK on {task.name}: {len(task.X):,} samples of {task.features} features, "
        f"{model.loss} loss, {model.kernel!r},\n"
        f"learning rate {model.learning_rate:g}, K = {model.parsimony:g}, mini-batches of "
        f"{model.batch_size}, one epoch, one thread."
    )


def describe_value(value: Any) -> Any:
    return value if isinstance(value, (int, float, str, type(None))) else repr(value)


def show(
    runs: Sequence[Run],
    summary: Mapping[str, float],
    rate: machine.GemmRate,
    shapes: Sequence[machine.Shape],
) -> None:
    own = ", ".join(
        f"{'x'.join(map(str, shape))}: {rate.by_shape[shape] / 1e9:.1f}" for shape in shapes
    )
    libraries = ", ".join(f"{b.name} {b.version} {b.architecture}" for b in machine.blas()) or "?"
    print(
        f"GEMM, double precision, one thread ({libraries}): {rate.best / 1e9:.1f} GFlop/s\n"
        f"at its best shape, {'x'.join(map(str, rate.best_shape))}; at the task's own: {own}.\n"
    )
    header = ["", "seconds", "CPU s", "samples/s", "model order", "test error"]
    header += ["floor s", "ratio", "CPU ratio"]
    rows = [
        row(f"run {number}", {**asdict(run), **ratios(run, rate.best)})
        for number, run in enumerate(runs, start=1)
    ]
    if len(runs) > 1:
        rows.append(row("median", summary))
    report.print_table(header, rows)
    print(f"\nPOLK took {summary['ratio']:.2f} times the floor.")
    if summary["seconds"] > machine.BUSY * summary["cpu_seconds"]:
        print("The machine was busy: the clock ran on while other processes had the processor.")


def row(name: str, figures: Mapping[str, float]) -> list[str]:
    return [
        name,
        f"{figures['seconds']:.3f}",
        f"{figures['cpu_seconds']:.3f}",
        f"{figures['samples_per_second']:,.0f}",
        f"{figures['model_order']:,.0f}",
        f"{100 * figures['test_error']:.2f} %",
        f"{figures['floor_seconds']:.3g}",
        f"{figures['ratio']:.2f}",
        f"{figures['cpu_ratio']:.2f}",
    ]

"""Experiments with classifiers: a data set, rows of methods, what a paper prints beside ours.

`publish` runs one and writes its table and the figures of its online methods.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from bench import figures, tasks, textons
from bench.classification import Method, train
from bench.experiments import Result, Run, Store, Table, mean_and_sd, span, times
from bench.tasks import Task

LOSS_TITLES = {"hinge": "Multi-KSVM", "logistic": "Multi-Logistic"}
QUICK_EPOCHS = 2
QUICK_ITERATIONS = 50


@dataclass(frozen=True)
class Row:
    """A method, and what the paper prints: risk, error in percent, model order; None: a dash."""

    method: Method
    printed: tuple[float | None, float | None, int | None] = (None, None, None)
    runs: int | None = None  # at most so many, where more change nothing or take too long


@dataclass(frozen=True)
class Experiment:
    """A data set with all methods on it."""

    task: str
    table: str  # its name
    runs: int
    rows: Sequence[Row]
    figures: Mapping[str, int] = field(default_factory=dict)  # number, by loss
    quick: int = 1000  # samples of the quick version
    quick_test: int = 2000
    risk_on: str = "test"
    data: Mapping[str, Any] = field(default_factory=dict)
    quick_data: Mapping[str, Any] = field(default_factory=dict)


def row(
    name: str,
    kind: str,
    loss: str,
    *printed: Any,
    epochs: int = 1,
    runs: int | None = None,
    **settings: Any,
) -> Row:
    """Return a row: name, kind and settings of the method, then the printed figures, if any."""
    return Row(Method(name, kind, loss, settings, epochs), printed or (None, None, None), runs)


def publish(paper: str, experiment: Experiment, options: argparse.Namespace) -> None:
    """Run an experiment, print its table, and write table and figures to the folder `out`."""
    experiment = shortened(experiment) if options.quick else experiment
    found = compare(experiment, options)
    name = re.sub(r"[^a-z0-9]+", "-", experiment.table.lower())
    table(experiment, found).publish(options.out / f"{paper}-{name}.csv")
    for loss, number in experiment.figures.items():
        draw_paths(options.out / f"{paper}-figure{number}.png", experiment, loss, found)


def shortened(experiment: Experiment) -> Experiment:
    """Return the quick version: little data, few epochs and iterations."""
    rows = []
    for each in experiment.rows:
        method = replace(each.method, epochs=min(each.method.epochs, QUICK_EPOCHS))
        settings = {**method.settings}
        if "iterations" in settings:
            settings["iterations"] = QUICK_ITERATIONS
        rows.append(replace(each, method=replace(method, settings=settings)))
    data = {
        "samples": experiment.quick,
        "test_samples": experiment.quick_test,
        **experiment.quick_data,
    }
    return replace(experiment, rows=rows, runs=1, data=data)


def load(name: str, seed: int, data: Mapping[str, Any], cache: Path) -> Task:
    """Return the task of a seed."""
    data = dict(data)
    samples, test_samples = data.pop("samples", None), data.pop("test_samples", None)
    make: Callable[..., Task] = tasks.TASKS[name]
    if name == "brodatz":
        make = partial(make, settings=textons.Settings(**data), cache=cache)
    task = make(samples, seed)
    return replace(task, X_test=task.X_test[:test_samples], y_test=task.y_test[:test_samples])


def compare(experiment: Experiment, options: argparse.Namespace) -> list[tuple[Row, list[Result]]]:
    """Train every method with every seed; one that is not in this build has no results."""
    store, seeds = Store(options.out / "runs"), range(options.runs or experiment.runs)

    @lru_cache(maxsize=1)
    def task_of(seed: int) -> Task:
        return load(experiment.task, seed, experiment.data, options.out / "cache")

    plan = [
        (configuration(experiment, row.method, seed), row)
        for seed in seeds
        for row in experiment.rows
        if row.method.is_here and (row.runs is None or seed < row.runs)
    ]
    results = store.results(
        plan,
        lambda run, row: train(task_of(run.seed), row.method, run.seed, risk_on=experiment.risk_on),
        experiment.task,
    )
    return [
        (row, [result for (_, each), result in zip(plan, results, strict=True) if each is row])
        for row in experiment.rows
    ]


def configuration(experiment: Experiment, method: Method, seed: int) -> Run:
    of_task = tasks.SETTINGS[experiment.task]
    settings = {
        **asdict(method),
        "risk_on": experiment.risk_on,
        "kernel": of_task["kernel"],
        "learning_rate": of_task["learning_rate"],
        "regularization": tasks.REGULARIZATION,
    }
    name = f"{settings.pop('name')} {method.loss}"
    return Run(experiment.task, name, seed, experiment.data, settings)


def table(experiment: Experiment, found: Sequence[tuple[Row, list[Result]]]) -> Table:
    runs = max((len(results) for _, results in found), default=0)
    reference = next((each for each in found if each[0].method.kind == "libsvm"), None)
    return Table(
        f"{experiment.table}: {times(runs)}; means, standard deviations in "
        "(parentheses), the paper's figures in [brackets]",
        ("task", "method", "risk", "error %", "above LIBSVM", "points", "CPU s"),
        [
            [LOSS_TITLES[row.method.loss], row.method.name, *cells(row, results, reference)]
            for row, results in found
        ],
    )


def cells(
    row: Row, results: Sequence[Result], reference: tuple[Row, Sequence[Result]] | None
) -> list[str]:
    """Return risk, error, how far that is above LIBSVM's with the same seed, points, CPU s."""
    risk, error, order = (brackets(value) for value in row.printed)
    sound = [result for result in results if "diverged" not in result]
    if not sound:
        word = "diverges" if results else "not in this build"
        return [word + risk, error.strip(), "", order.strip(), ""]
    risks = [result["risk"] for result in sound if result["risk"] is not None]
    return [
        (mean_and_sd(risks) if risks else "-") + risk,
        mean_and_sd([result["error"] for result in sound]) + error,
        "" if reference is None else above(row, results, *reference),
        span([result["model_order"] for result in sound]) + order,
        mean_and_sd([result["cpu_seconds"] for result in sound], 2),
    ]


def above(row: Row, results: Sequence[Result], best: Row, best_results: Sequence[Result]) -> str:
    """Write how far errors are above those of another row, seed by seed, in percent points.

    A row with a single run is compared with as it is.
    """
    if row is best:
        return ""
    others = best_results if len(best_results) > 1 else [*best_results] * len(results)
    differences = [
        one["error"] - other["error"]
        for one, other in zip(results, others, strict=False)
        if "diverged" not in one
    ]
    printed = row.printed[1], best.printed[1]
    known = None if None in printed else round(printed[0] - printed[1], 2)
    return mean_and_sd(differences, 2) + brackets(known)


def brackets(value: float | None) -> str:
    return "" if value is None else f" [{value:g}]"


def draw_paths(
    path: Path, experiment: Experiment, loss: str, found: Sequence[tuple[Row, list[Result]]]
) -> None:
    """Draw risk, test error and model order along the stream, for the first seed."""
    paths = {
        row.method.name: results[0]["path"]
        for row, results in found
        if row.method.loss == loss and results and "path" in results[0]
    }
    risk = "Empirical risk" if experiment.risk_on == "train" else "Expected risk"
    titles = {"risk": risk, "error": "Test error, %", "model_order": "Model order"}
    panels = [
        figures.Panel(
            title,
            {name: (curve["samples"], curve[column]) for name, curve in paths.items()},
            logarithmic=column != "model_order" or "FSGD" in paths,
        )
        for column, title in titles.items()
    ]
    figures.draw_panels(path, panels)

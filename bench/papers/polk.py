"""POLK (Koppel, Warnell, Stump and Ribeiro, 2019): Tables 2 and 3, Figures 2 to 8.

Five classes in the plane (multidist), digits (MNIST) and textures (Brodatz), each with the hinge
and the logistic loss. Kernel widths and parsimony constants are those with which the printed model
orders come out: on MNIST and Brodatz the printed sigma^2 is sigma, and on MNIST K is a tenth of
the printed one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from bench import experiments, figures, tasks, textons
from bench.classification import Method, train
from bench.cli import MissingDataError
from bench.experiments import Result, Run, Store, Table
from bench.tasks import Task


@dataclass(frozen=True)
class Row:
    """A method, and what the paper prints: risk, error in percent, model order; None: a dash."""

    method: Method
    printed: tuple[float | None, float | None, int | None] = (None, None, None)


@dataclass(frozen=True)
class Experiment:
    """A data set with all methods on it."""

    task: str
    table: int
    runs: int
    rows: Sequence[Row]
    figures: Mapping[str, int]  # by loss
    quick: int  # samples of the quick version
    quick_test: int = 2000
    risk_on: str = "test"
    data: Mapping[str, Any] = field(default_factory=dict)
    quick_data: Mapping[str, Any] = field(default_factory=dict)


def polk(loss: str, K: float, *printed: Any, epochs: int = 1) -> Row:
    return row(f"POLK, K = {K:g}", "polk", loss, *printed, epochs=epochs, parsimony=K)


def row(name: str, kind: str, loss: str, *printed: Any, epochs: int = 1, **settings: Any) -> Row:
    return Row(Method(name, kind, loss, settings, epochs), printed or (None, None, None))


def bsgd(points: int, *printed: Any, epochs: int = 1) -> Row:
    name = f"BSGD, merge, {points:,} points"
    return row(name, "bsgd", "hinge", *printed, epochs=epochs, budget=points, maintenance="merge")


def nystroem(points: int, loss: str = "hinge") -> Row:
    return row(f"Nystroem + SGD, {points:,} points", "nystroem", loss, points=points)


MULTIDIST = Experiment(
    "multidist",
    table=2,
    runs=5,
    risk_on="train",
    figures={"hinge": 2, "logistic": 4},
    quick=1000,
    rows=(
        row("LIBSVM", "libsvm", "hinge", None, 3.92, 656),
        row("L-BFGS", "lbfgs", "hinge", 0.0854, 4.08, 5000),
        bsgd(16, 0.385, 21.8, 16),
        bsgd(129),
        polk("hinge", 0.04, 0.0919, 3.98, 16),
        polk("hinge", 1e-4, None, None, 129),
        row("FSGD", "polk", "hinge", budget=0.0),
        row("FGD, 300 steps", "fgd", "hinge", iterations=300),
        nystroem(16),
        nystroem(129),
        row("L-BFGS", "lbfgs", "logistic", 0.0854, 4.04, 5000),
        row("IVM", "ivm", "logistic", 0.0894, 4.08, 16),
        polk("logistic", 0.03, 0.120, 4.36, 16),
        polk("logistic", 1e-3, None, None, 75),
        row("FSGD", "polk", "logistic", budget=0.0),
        row("FGD, 300 steps", "fgd", "logistic", iterations=300),
    ),
)
MNIST = Experiment(
    "mnist",
    table=3,
    runs=1,
    figures={"hinge": 5, "logistic": 7},
    quick=3000,
    rows=(
        row("LIBSVM", "libsvm", "hinge", None, 1.50, 16118),
        bsgd(324, epochs=5),
        bsgd(1086, 0.0731, 2.67, 1086, epochs=5),
        polk("hinge", 0.024, None, None, 324, epochs=5),
        polk("hinge", 0.016, 0.0684, 2.46, 1086, epochs=5),
        nystroem(1086),
        polk("logistic", 0.016, epochs=5),
        polk("logistic", 0.008, 0.116, 2.68, 2326, epochs=5),
    ),
)
BRODATZ = Experiment(
    "brodatz",
    table=3,
    runs=2,
    figures={"hinge": 6, "logistic": 8},
    quick=1000,
    quick_data={"crop": 128, "pixels": 20_000},
    rows=(
        row("LIBSVM, C = 10", "libsvm", "hinge", None, 3.72, 4777, C=10.0),
        row("L-BFGS", "lbfgs", "hinge", 0.0319, 4.44, 10_000),
        bsgd(305, epochs=20),
        bsgd(1171, 0.0560, 4.72, 1171, epochs=20),
        polk("hinge", 0.02, None, None, 305, epochs=20),
        polk("hinge", 0.01, 0.0507, 4.53, 1171, epochs=20),
        nystroem(1171),
        row("L-BFGS", "lbfgs", "logistic", 0.0572, 4.00, 10_000),
        polk("logistic", 0.015, epochs=20),
        polk("logistic", 0.005, 0.0871, 4.41, 1833, epochs=20),
    ),
)
EXPERIMENTS = (MULTIDIST, MNIST, BRODATZ)
QUICK_EPOCHS = 2
LOSS_TITLES = {"hinge": "Multi-KSVM", "logistic": "Multi-Logistic"}


def run(options: argparse.Namespace) -> int:
    done: dict[str, list[tuple[Row, list[Result]]]] = {}
    for experiment in EXPERIMENTS:
        experiment = shortened(experiment) if options.quick else experiment
        try:
            done[experiment.task] = compare(experiment, options)
        except MissingDataError as error:
            print(f"Left out: {error}")
            continue
        found = done[experiment.task]
        table(experiment, found).publish(
            options.out / f"polk-table{experiment.table}-{experiment.task}.csv"
        )
        for loss, number in experiment.figures.items():
            draw_paths(options.out / f"polk-figure{number}.png", experiment, loss, found)
    draw_surfaces(options.out / "polk-figure3.png", options.quick)
    return 0


def shortened(experiment: Experiment) -> Experiment:
    """Return the quick version: little data, few epochs and iterations."""
    rows = []
    for each in experiment.rows:
        method = replace(each.method, epochs=min(each.method.epochs, QUICK_EPOCHS))
        settings = {**method.settings}
        if "iterations" in settings:
            settings["iterations"] = 50
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
        if row.method.is_here
    ]
    results = store.results(
        plan,
        lambda run, row: train(task_of(run.seed), row.method, run.seed, risk_on=experiment.risk_on),
        f"POLK, {experiment.task}",
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
    rows = []
    for each, results in found:
        rows.append([LOSS_TITLES[each.method.loss], each.method.name, *cells(each, results)])
    runs = max((len(results) for _, results in found), default=0)
    return Table(
        f"Table {experiment.table}, {experiment.task}: {runs} runs; means, standard deviations in "
        "(parentheses), the paper's figures in [brackets]",
        ("task", "method", "risk", "error %", "points", "seconds"),
        rows,
    )


def cells(row: Row, results: Sequence[Result]) -> list[str]:
    risk, error, order = (brackets(value) for value in row.printed)
    if not results:
        return [f"not in this build{risk}", error.strip(), order.strip(), ""]
    sound = [result for result in results if "diverged" not in result]
    if not sound:
        return [f"diverges{risk}", error.strip(), order.strip(), ""]
    risks = [result["risk"] for result in sound if result["risk"] is not None]
    return [
        (experiments.mean_and_sd(risks) if risks else "-") + risk,
        experiments.mean_and_sd([result["error"] for result in sound]) + error,
        experiments.span([result["model_order"] for result in sound]) + order,
        experiments.mean_and_sd([result["seconds"] for result in sound], 2),
    ]


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


def draw_surfaces(path: Path, quick: bool) -> None:
    """Draw the decisions of POLK on multidist with either loss (Figure 3)."""
    sheet = figures.new_sheet(path, 2)
    if sheet is None:
        return
    from parsimon.plotting import DecisionSurfaceDisplay

    task = tasks.multidist(MULTIDIST.quick if quick else None, 0)
    for axes, loss in zip(sheet.subplots(1, 2), LOSS_TITLES, strict=True):
        model = task.classifier(loss).fit(task.X, task.y)
        DecisionSurfaceDisplay.from_estimator(model, task.X, task.y, ax=axes)
        axes.set_title(f"{LOSS_TITLES[loss]}, {model.model_order_} points")
    figures.save(sheet, path)

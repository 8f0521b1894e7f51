"""What risk-aware learning does to the loss: COLK beside POLK, without and with outliers.

The experiment of COLK's paper (section V): 2 x + 3 sin 6 x from 24,000 samples, once each, over
several training sets. Then LIDAR with outliers, if the data are here. Figures that prototypes in
NumPy reached stand in [brackets]; they are those of last iterates, which are noisier than the
averages that are measured here. The exit code is 1 if risk does not lower the tail of the loss as
it should.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from bench import figures, report
from bench.cli import left_out
from bench.report import Column, Promise, Table, at_least, at_most, cells, span, times
from bench.runner import Experiment, Figures, Method, Row, Run, add_check_arguments
from bench.tasks import Array, Task, load_data
from parsimon import datasets, kernels

OUTLIERS = ("none", "symmetric", "one-sided")
SAMPLES, QUICK_SAMPLES = 24_000, 2000
SETS, QUICK_SETS = 20, 2
TEST_SAMPLES = 60_000
# A seed for test samples that no training set has.
TEST_SEED = 10_000
LEVEL = 0.9

# The paper's; the budget is its 5 alpha^2.
SETTINGS: Mapping[str, Any] = {
    "loss": "squared(2)",
    "kernel": kernels.Gaussian(0.06),
    "learning_rate": 0.02,
    "budget": 0.002,
    "regularization": 0.0,
    "solver": "sgd",
    "batch_size": 1,
    "epochs": 1,
    "shuffle": False,
    "average": True,
    "normalize_y": False,
    "refit": False,
}
# One pair of samples per step: one for the gradient, one for the expectation.
PAIRS: Mapping[str, Any] = {"batch_size": 2, "tracking_rate": 0.01, "risk_weight": 0.1}

COLUMNS = (
    Column("excess", "excess"),
    Column("loss sd", "loss_sd"),
    Column("95 %", "quantile_95"),
    Column("99 %", "quantile_99"),
    Column("CVaR .9", "cvar"),
    Column("mean", "mean"),
    Column("points", "model_order", span),
)


def polk(name: str, **settings: Any) -> Method:
    return Method(name, "POLKRegressor", settings)


def colk(name: str, risk: str, **settings: Any) -> Method:
    return Method(name, "COLKRegressor", {**PAIRS, "risk": risk, **settings})


EQUAL_STEP, CLIPPED = "POLK, alpha .02", "COLK, P = 4, clipped"
METHODS = (
    # The paper's rate and its own budget, 0.09 alpha^2.
    polk("POLK, alpha .5", learning_rate=0.5, budget=0.0225),
    polk(EQUAL_STEP),
    colk("COLK, P = 4 as printed", "moments", moment_order=4, clip=None),
    colk(CLIPPED, "moments", moment_order=4),
    colk("COLK, semivariance", "semivariance"),
    colk("COLK, semideviation, weight .5", "semideviation", risk_weight=0.5),
    colk("COLK, semideviation, weight 1", "semideviation", risk_weight=1.0),
    colk("COLK, CVaR .9, alpha .005", "cvar", risk_weight=1.0, level=LEVEL, learning_rate=0.005),
    # Its middle is half as steep as the paper's squared loss: twice the rate is the same step.
    polk("POLK, Huber c = .5", loss="huber(0.5)", learning_rate=0.04),
)
# What prototypes reached by kind of outliers: excess; with one-sided ones loss sd, 95 %, 99 %, too.
DIVERGES = float("nan")
REACHED = {
    "POLK, alpha .5": ([0.037], [0.34], [0.57, 3.12, 6.2, 16.1]),
    EQUAL_STEP: ([0.0011], [0.010], [0.036, 2.41, 0.64, 14.1]),
    "COLK, P = 4 as printed": ([DIVERGES], [DIVERGES], [DIVERGES]),
    CLIPPED: ([0.0011], [0.035], [0.13, 2.22, 1.07, 13.0]),
    "COLK, semivariance": ([0.0011], [0.034], [0.12, 2.24, 1.06, 13.1]),
    "COLK, CVaR .9, alpha .005": ([0.0011], [0.071], [0.53, 1.76, 1.79, 10.4]),
    "POLK, Huber c = .5": ([0.0011], [0.0014], [0.0022, 2.58, 0.39, 15.1]),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_check_arguments(parser)
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw LIDAR with its outliers")


def run(options: argparse.Namespace) -> int:
    if options.plot:
        load_lidar(0)  # so that it is said before the work if there is nothing to draw
    found = {
        kind: experiment(kind, METHODS, options.samples or SAMPLES).rows(options)
        for kind in OUTLIERS
    }
    table(found).show()
    promises = list(judge(found))
    with left_out():
        found["LIDAR"] = lidar().rows(options)
        lidar_table(found["LIDAR"]).show()
    if options.plot:
        draw_lidar(options.plot)
    return report.conclude(options, found, promises)


def experiment(kind: str, methods: Sequence[Method], samples: int) -> Experiment:
    return Experiment(
        f"regression, outliers {kind}",
        f"outliers: {kind}",
        [replace(each, printed=reached(each.name, kind)) for each in methods],
        load=draw_samples,
        train=train,
        runs=SETS,
        data={"outliers": kind, "samples": samples, "test_samples": TEST_SAMPLES},
        offered=SETTINGS,
        quick={"samples": QUICK_SAMPLES},
        quick_runs=QUICK_SETS,
    )


def reached(name: str, kind: str) -> dict[str, float]:
    values = REACHED[name][OUTLIERS.index(kind)] if name in REACHED else ()
    return dict(zip((column.figure for column in COLUMNS), values, strict=False))


def draw_samples(seed: int, *, outliers: str, samples: int, test_samples: int) -> Task:
    X, y, _ = draw(samples, outliers, seed)
    X_test, y_test, truth = draw(test_samples, outliers, TEST_SEED)
    return Task("regression", X, y, X_test, y_test, {"truth": truth})


@lru_cache(maxsize=2)  # the same samples to test with for all seeds
def draw(count: int, kind: str, seed: int) -> tuple[Array, Array, Array]:
    given = {"outliers": kind, "random_state": seed, "return_truth": True}
    return datasets.make_regression_outliers(count, **given)


def train(run: Run) -> Figures:
    task = run.task
    model = run.make().fit(task.X, task.y)
    predicted = model.predict(task.X_test)
    losses = (predicted - task.y_test) ** 2
    return {
        "excess": float(((predicted - task.extra["truth"]) ** 2).mean()),
        "loss_sd": float(losses.std()),
        "quantile_95": float(np.quantile(losses, 0.95)),
        "quantile_99": float(np.quantile(losses, 0.99)),
        "cvar": float(losses[losses >= np.quantile(losses, LEVEL)].mean()),
        "mean": float(losses.mean()),
        "model_order": int(model.model_order_),
    }


def table(found: Mapping[str, Sequence[Row]]) -> Table:
    """Return all figures, for every kind of outliers."""
    sets = max(len(row.results) for rows in found.values() for row in rows)
    return Table(
        f"2 x + 3 sin 6 x, {times(sets, 'training set')}: the squared error to the function and "
        "figures of the loss on test samples; standard deviations in (parentheses), what "
        "prototypes reached in [brackets]",
        ("outliers", "method", *(column.title for column in COLUMNS)),
        [[kind, *cells(row, COLUMNS)] for kind, rows in found.items() for row in rows],
    )


def judge(found: Mapping[str, Sequence[Row]]) -> Iterator[Promise]:
    """With one-sided outliers, risk lowers the tail of the loss and keeps about as many points.

    By as much as in the prototypes, as far as their digits tell; where there are none, at all.
    """
    rows = {row.method.name: row for row in found["one-sided"]}
    polk = rows[EQUAL_STEP]
    for name, row in rows.items():
        known = row.method.printed
        if row.method.kind != "COLKRegressor" or np.isnan(known.get("excess", 0)):
            continue
        all_kinds = [each for kind in found.values() for each in kind if each.method.name == name]
        yield at_most(f"{name}, runs that diverge", sum(each.diverged for each in all_kinds), 0)
        if row.diverged:
            continue
        for figure, digit in (("loss_sd", 0.005), ("quantile_99", 0.05), ("cvar", 0.0)):
            least = 0.0
            if figure in known:
                least = 1 - (known[figure] + digit) / (polk.method.printed[figure] - digit)
            won = 1 - row.mean(figure) / polk.mean(figure)
            yield at_least(f"{name}, part by which {figure} is below POLK's", won, least)
        points = row.mean("model_order") / polk.mean("model_order")
        yield at_most(f"{name}, points over POLK's", points, 1.2)


LIDAR_EPOCHS = 100
LIDAR_FRACTION = 0.1
LIDAR_TEST = 0.2
# Mean and standard deviation of LIDAR's outliers: a quarter of those above, some ten times its
# noise. The reference does not say how large its own were.
LIDAR_OUTLIERS = {"none": (0.0, 0.0), "symmetric": (0.0, 0.75), "one-sided": (0.75, 0.25)}
LIDAR_METHODS = (
    polk("POLK"),
    colk(CLIPPED, "moments", moment_order=4),
    polk("POLK, Huber c = .1", loss="huber(0.1)", learning_rate=0.04),
)
LIDAR_REACHED = ((0.0069, 0.0130, 0.0201), (0.0069, 0.0199, 0.0248), (0.0069, 0.0074, 0.0080))


def lidar() -> Experiment:
    return Experiment(
        "lidar",
        "LIDAR",
        [
            replace(method, printed=dict(zip(OUTLIERS, reached, strict=True)))
            for method, reached in zip(LIDAR_METHODS, LIDAR_REACHED, strict=True)
        ],
        load=load_lidar,
        train=lidar_errors,
        runs=SETS,
        quick_runs=QUICK_SETS,
        offered={**SETTINGS, "epochs": LIDAR_EPOCHS, "shuffle": True},
    )


def load_lidar(seed: int) -> Task:
    """Return LIDAR with distances from 0 to 1; every method holds out its own part."""
    X, y = load_data("lidar", "LIDAR", return_X_y=True)
    return Task("lidar", (X - X.min()) / (X.max() - X.min()), y, X[:0], y[:0])


def lidar_errors(run: Run) -> Figures:
    """Return the squared error on clean held-out targets, by kind of outliers."""
    X, y = run.task.X, run.task.y
    held_out = round(LIDAR_TEST * len(y))

    def error(kind: str) -> float:
        random = np.random.RandomState(run.seed)
        order = random.permutation(len(y))
        test, rest = order[:held_out], order[held_out:]
        spoiled, _ = spoil(y[rest], kind, random)
        model = run.make().fit(X[rest], spoiled)
        return float(((model.predict(X[test]) - y[test]) ** 2).mean())

    return {kind: error(kind) for kind in OUTLIERS}


def spoil(y: Array, kind: str, random: np.random.RandomState) -> tuple[Array, Array]:
    """Return the targets with a tenth of them made outliers, and which these are."""
    mean, sd = LIDAR_OUTLIERS[kind]
    chosen = random.permutation(len(y))[: round(LIDAR_FRACTION * len(y))]
    spoiled = y.copy()
    spoiled[chosen] += mean + sd * random.normal(size=len(chosen))
    return spoiled, chosen


def lidar_table(rows: Sequence[Row]) -> Table:
    title = f"LIDAR, {LIDAR_EPOCHS} epochs, {100 * LIDAR_FRACTION:g} % outliers, "
    title += f"{times(len(rows[0].results), 'split')}: squared error on clean held-out targets"
    return Table.of_rows(title, rows, [Column(kind, kind) for kind in OUTLIERS])


def draw_lidar(path: Path) -> None:
    """Draw data, outliers and what the methods make of them, as in the paper's Fig. 3."""
    task, experiment = load_lidar(0), lidar()
    grid = np.linspace(0, 1, 400)[:, None]

    def draw(both: Sequence[Any]) -> None:
        colors = [figures.palette()[index] for index in (0, 4, 2)]
        for axes, kind in zip(both, OUTLIERS[1:], strict=True):
            spoiled, chosen = spoil(task.y, kind, np.random.RandomState(0))
            clean, X = np.setdiff1d(np.arange(len(task.y)), chosen), task.X[:, 0]
            axes.plot(X[clean], task.y[clean], ".", color="0.7", markersize=4, label="data")
            axes.plot(X[chosen], spoiled[chosen], "x", color="0.3", markersize=5, label="outliers")
            for method, color in zip(experiment.methods, colors, strict=True):
                model = Run(method, task, 0, experiment.offered).make().fit(task.X, spoiled)
                axes.plot(grid, model.predict(grid), color=color, linewidth=2, label=method.name)
            axes.set(title=f"{kind} outliers", xlabel="range, scaled")
            figures.bare(axes)
        both[0].set_ylabel("log ratio")
        entries = both[0].get_legend_handles_labels()
        figures.legend_below(both[0], *entries, ncols=len(entries[0]))

    figures.write(path, draw, 2, (4.5, 3.9), sharey=True)

"""Figures 1 to 3 of the SLKL paper, on sinc: along the epochs, and by the number of columns."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from bench import figures
from bench.papers.slkl_data import DATA_SETS, QUICK_RUNS, RUNS, SETTINGS, SPARSITY
from bench.runner import Experiment, Figures, Method, Result, Row, Run
from bench.tasks import Task
from parsimon import kernels

SINC = DATA_SETS["table2-sinc"]
OFFERED = {"kernel": kernels.Gaussian(SINC.width), **SETTINGS, "center": False}
# Figure 2: nu.
PRICES = (0.001, SPARSITY, 0.1, 1.0)


def draw(options: argparse.Namespace) -> None:
    out, paths, (row,) = options.out, EPOCHS.rows(options), COUNTS.rows(options)
    figures.write(out / "slkl-figure1.png", partial(draw_objective, paths), 2)
    counts = row.results[0]["counts"]
    curves: dict[str, Any] = {
        f"nu = {price:g}": (counts, np.mean(row.values(f"{price:g}"), axis=0)) for price in PRICES
    }
    printed = [float(value) for value in SINC.printed["m0"]]
    curves[f"nu = {SPARSITY:g}, printed"] = (SINC.columns, printed)
    panel = figures.Panel("Columns in use", curves, x_label="columns M")
    figures.draw_panels(out / "slkl-figure2.png", [panel])
    figures.write(out / "slkl-figure3.png", partial(draw_used, paths))


def load_first(seed: int, *, epochs: int) -> Task:
    """Return the same samples for all seeds: what differs is the order of the columns."""
    return SINC.load(0, epochs=epochs)


def watch(run: Run) -> Figures:
    """Train with 1, 2, ... epochs: with the same seed, each is the beginning of all longer ones."""
    X, y = run.task.X, run.task.y
    to_the_end = Method("minimum", "SLKLRegressor").make(
        {**run.offered, "n_columns": len(X), "random_state": 0}
    )
    minimum, model = to_the_end.fit(X, y), run.make(n_columns=len(X))
    # The epochs after which the weights are counted, further and further apart.
    looks = sorted({round(value) for value in np.geomspace(1, run.task.extra["epochs"], 30)})
    used = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for epochs in looks:
            model.set_params(max_iter=epochs).fit(X, y)
            used.append(len(model.support_))
    return {
        "objective": list(model.objective_),
        "minimum": minimum.objective_[-1],
        "looks": [0, *looks],
        "m0": [0, *used],
        "m0 at the minimum": len(minimum.support_),
    }


def draw_objective(rows: Sequence[Row], both: Sequence[Any]) -> None:
    """Draw the objective, and how far it is above its minimum (Figure 1)."""

    def above(found: Result) -> Any:
        values = np.array(found["objective"]) - found["minimum"]
        return range(len(values)), values

    draw_runs(both[0], rows, lambda found: (range(len(found["objective"])), found["objective"]))
    draw_runs(both[1], rows, above)
    for axes, title in zip(both, ("Objective", "Objective above its minimum"), strict=True):
        axes.set(title=title, xlabel="epochs", yscale="log")


def draw_used(rows: Sequence[Row], panels: Sequence[Any]) -> None:
    """Draw the number of columns in use (Figure 3)."""
    (axes,) = panels
    draw_runs(axes, rows, lambda found: (found["looks"], found["m0"]))
    least = rows[0].results[0]["m0 at the minimum"]
    axes.axhline(float(SINC.printed["m0"][-1]), color="black", linestyle=":", label="printed")
    axes.axhline(least, color="black", linestyle="--", label="at the minimum")
    axes.set(title="Columns in use", xlabel="epochs")
    axes.legend(frameon=False)


def draw_runs(axes: Any, rows: Sequence[Row], curve: Callable[[Result], Any]) -> None:
    """Draw a thin line for every run, in one colour for each kind of step."""
    for row, color in zip(rows, figures.palette(), strict=False):
        for index, found in enumerate(row.results):
            label = row.method.name if index == 0 else None
            axes.plot(*curve(found), color=color, linewidth=0.7, alpha=0.6, label=label)
    figures.bare(axes)
    axes.legend(frameon=False)


def count_used(run: Run) -> Figures:
    """Return m0 at the minimum by nu, each a list over M."""
    task, counts = run.task, run.task.extra["counts"]

    def used(count: int, price: float) -> int:
        random = task.extra["random"]
        model = run.make(n_columns=count, random_state=random, sparsity=price)
        return len(model.fit(task.X, task.y).support_)

    found = {f"{price:g}": [used(count, price) for count in counts] for price in PRICES}
    return {**found, "counts": counts}


# The paper's step, and the one that never increases the objective; all samples are columns.
EPOCHS = Experiment(
    "sinc epochs",
    "SLKL, epochs",
    [
        Method("Newton steps", "SLKLRegressor", {"selection": "uniform", "step": "newton"}),
        Method("exact steps", "SLKLRegressor", {"selection": "uniform", "step": "exact"}),
    ],
    load=load_first,
    train=watch,
    runs=RUNS,
    data={"epochs": 200},
    offered={**OFFERED, "tol": 0.0},
    quick={"epochs": 20},
    quick_runs=QUICK_RUNS,
)
COUNTS = Experiment(
    "sinc columns",
    "SLKL, columns",
    [Method("SLKL", "SLKLRegressor")],
    load=SINC.load,
    train=count_used,
    runs=RUNS,
    data={"counts": (64, 128, 256, 512, 1000)},
    offered=OFFERED,
    quick={"counts": (64, 128, 256)},
    quick_runs=QUICK_RUNS,
)

"""COLK (Bedi, Koppel, Rajawat and Sanyal, 2021): Figures 1 to 3.

2 x + 3 sin 6 x with and without outliers, then LIDAR. The paper prints no figures beside its plots;
what stands in [brackets] is what prototypes reached. COLK as printed diverges, so the paths are of
COLK with a bounded outer derivative.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench import figures
from bench.cli import left_out
from bench.figures import Panel
from bench.papers import risk
from bench.papers.risk import CLIPPED, METHODS, OUTLIERS, SAMPLES
from bench.runner import Figures, Method, Result, Row, Run

# About as many points as COLK keeps.
POINTS = 45
# NPBSGD maintains its points in nine tenths of the stream; then they become more.
NONPARAMETRIC = {
    "maintenance": "nonparametric",
    "maintenance_rate": 0.9 * SAMPLES,
    "random_state": 0,
}
COMPARATORS = tuple(
    Method(name, "BSGDRegressor", {"max_points": POINTS, **settings})
    for name, settings in (
        (f"BSGD, {POINTS} points", {"maintenance": "merge"}),
        (f"NPBSGD, from {POINTS} points", NONPARAMETRIC),
    )
)
WATCHED = ("POLK, alpha .5", CLIPPED)
LOOKS = 40
GRID = np.linspace(-1, 1, 200)[:, None]


def run(options: argparse.Namespace) -> int:
    out, methods = options.out, (*METHODS, *COMPARATORS)
    found = {kind: risk.experiment(kind, methods, SAMPLES).rows(options) for kind in OUTLIERS}
    risk.table(found).publish(out / "colk-figure2.csv")
    bars = partial(draw_bars, found)
    figures.write(out / "colk-figure2.png", bars, len(OUTLIERS), (4.2, 4.2), sharey=True)
    draw_paths(out / "colk-figure1.png", paths(options))
    with left_out():
        risk.lidar_table(risk.lidar().rows(options)).publish(out / "colk-figure3.csv")
        risk.draw_lidar(out / "colk-figure3.png")
    return 0


def draw_bars(found: Mapping[str, Sequence[Row]], panels: Sequence[Any]) -> None:
    """Draw means and standard deviations of the squared error to the function (Figure 2)."""
    for axes, (kind, rows) in zip(panels, found.items(), strict=True):
        shown = {row.method.name: row.values("excess") for row in rows if row.sound}
        means, sds = ([pick(each) for each in shown.values()] for pick in (np.mean, np.std))
        axes.barh(list(shown), means, xerr=sds, color="#56B4E9", capsize=3)
        axes.set(title=f"outliers: {kind}", xlabel="squared error to the function", xscale="log")
        figures.bare(axes)
    panels[0].invert_yaxis()


def paths(options: argparse.Namespace) -> dict[tuple[str, str], list[Result]]:
    """Return the paths of COLK and POLK on two training sets, by method and outliers."""
    watched = [method for method in METHODS if method.name in WATCHED]
    twice = argparse.Namespace(**{**vars(options), "runs": 2})
    found = {}
    for kind in OUTLIERS:
        each = risk.experiment(kind, watched, SAMPLES)
        data = {**each.data, "test_samples": risk.TEST_SAMPLES // 10}
        for row in replace(each, name=f"{each.name}, path", train=watch, data=data).rows(twice):
            found[row.method.name, kind] = row.results
    return found


def watch(run: Run) -> Figures:
    """Feed a stream in blocks, and look at the loss after each."""
    task, model = run.task, run.make()
    path: dict[str, list[float]] = {"samples": [], "mean": [], "variance": [], "order": []}
    step = max(2, len(task.X) // LOOKS // 2 * 2)  # pairs stay together
    for start in range(0, len(task.X), step):
        model.partial_fit(task.X[start : start + step], task.y[start : start + step])
        losses = (model.predict(task.X_test) - task.y_test) ** 2
        path["samples"].append(min(start + step, len(task.X)))
        path["mean"].append(float(losses.mean()))
        path["variance"].append(float(losses.var()))
        path["order"].append(int(model.model_order_))
    return {"path": path, "function": model.predict(GRID).tolist()}


def draw_paths(path: Path, found: Mapping[tuple[str, str], Sequence[Result]]) -> None:
    along = {f"COLK, outliers: {kind}": found[CLIPPED, kind][0]["path"] for kind in OUTLIERS}
    functions = {
        f"{name.split(',')[0]}, set {number}": (GRID[:, 0].tolist(), result["function"])
        for name in WATCHED
        for number, result in enumerate(found[name, "symmetric"], start=1)
    }

    def curves(value: Callable[[Mapping[str, Any]], Any]) -> Any:
        return {name: (each["samples"], value(each)) for name, each in along.items()}

    total = curves(lambda each: np.add(each["mean"], each["variance"]))
    panels = [
        Panel("Mean + variance of the loss", total, logarithmic=True),
        Panel("Mean loss", curves(lambda each: each["mean"]), logarithmic=True),
        Panel("Model order", curves(lambda each: each["order"])),
        Panel("Learned, symmetric outliers", functions, x_label="x"),
    ]
    figures.draw_panels(path, panels)

"""SPPPOT (Chakraborty, Rajawat and Koppel, 2022): Table I, Figures 1 to 4.

Densities of a toy, of Curry's shots and of Chicago's crimes, with the parameters of Table I; then
kernel logistic regression on MNIST. Curves are of trainings with 1, 2, ... epochs.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench import figures
from bench.baselines.intensity import finer
from bench.baselines.kernel_machine import FunctionalGradient
from bench.baselines.peers import Libsvm
from bench.cli import left_out
from bench.figures import Panel, draw_panels
from bench.papers import intensity
from bench.papers.classification import comparison, method, publish
from bench.papers.intensity import DENSITIES, TABLE_ONE
from bench.runner import Figures, Method, Result, Row, Run
from parsimon import datasets
from parsimon.schedules import AdaptiveBudget


def online(name: str, estimator: str, points: int | None = None, **settings: Any) -> Method:
    """Return a row of Figure 4: printed points, and settings; the regulariser is left out."""
    printed = (None, None, points)
    return method(name, estimator, "logistic", *printed, epochs=2, regularization=0.0, **settings)


# Figure 4: the printed budgets are eps. LIBSVM is POLK's own run. The paper's FGD had all samples
# and took 12 hours; a sixth of them is what a Gram matrix has room for.
POLK, SPPPOT = "POLKClassifier", "SPPPOTClassifier"
FGD: Any = {"iterations": 1000, "max_samples": 10_000, "regularization": 0.0, "runs": 1}
MNIST = comparison(
    "mnist",
    "Figure 4, MNIST",
    runs=3,
    quick={"samples": 2000},
    methods=(
        method("LIBSVM", Libsvm, "hinge", None, None, 16_122, runs=1),
        method("FGD", FunctionalGradient, "logistic", None, None, 60_000, **FGD),
        online("POLK, eps 1.8812", POLK, 404, budget=1.8812),
        online("SPPPOT, eps 1.4579", SPPPOT, 401, budget=1.4579),
        online("SPPPOT, 400 points wanted", SPPPOT, 400, budget=AdaptiveBudget(400)),
        # The paper does not say how large its mini-batches are.
        online("POLK, eps 1.8812, mini-batches of 64", POLK, budget=1.8812, batch_size=64),
        online("SPPPOT, eps 1.4579, mini-batches of 64", SPPPOT, budget=1.4579, batch_size=64),
    ),
)


# Figures 1 to 3: by data set, the number of its figure, and what its plots are of.
TITLES = {
    "density": "Density",
    "rmse": "RMSE",
    "nll": "Test loss",
    "train_nll": "Training loss",
    "model_order": "Model order",
}
PLOTS = {
    "toy": ("1", ("density", "rmse", "nll", "model_order")),
    "curry": ("2", ("train_nll", "density", "model_order")),
    "chicago": ("3-curves", ("nll", "model_order")),
}


def run(options: argparse.Namespace) -> int:
    for name in DENSITIES:
        with left_out():
            rows, paths = compare(name, options)
            rows = [row.above(rows[0], "nll") for row in rows]
            found = intensity.table(DENSITIES[name], rows)
            found.publish(options.out / f"spppot-table1-{name}.csv")
            draw_curves(options.out, name, paths)
            if name == "chicago":
                draw_maps(options.out / "spppot-figure3-maps.png", paths)
    with left_out():
        publish("spppot", MNIST, options, logistic=4)
    return 0


# Results of the first seed after 1, 2, ... epochs, by method.
Paths = Mapping[str, Sequence[Result]]


def compare(name: str, options: argparse.Namespace) -> tuple[list[Row], Paths]:
    """Return the rows of Table I, and for the first seed those after fewer epochs, too."""
    methods = []
    for each in TABLE_ONE[name]:
        last = each.shortened if options.quick else each
        for epochs in range(1, last.settings.get("epochs", 1)):
            methods.append(replace(last, settings={**last.settings, "epochs": epochs}, runs=1))
        methods.append(last)
    rows = replace(DENSITIES[name], methods=methods, train=train).rows(options)
    paths: dict[str, list[Result]] = {}
    for row in rows:
        paths.setdefault(row.method.name, []).append(row.results[0])
    return [row for row in rows if row.method.runs is None], paths


def train(run: Run) -> Figures:
    """Fit and test, and keep the density itself at the nodes of a fine grid."""
    model, found = intensity.fit(run)
    nodes = finer(run.offered["grid_size"], run.offered["domain"])
    # POLK in the primal has no logarithm where f < 0.
    primal = hasattr(model, "function")
    density = model.function(nodes) if primal else np.exp(model.score_samples(nodes))
    train_nll = float(-model.score_samples(run.task.X).mean()) + found["integral"]
    return {**found, "train_nll": train_nll, "density": np.round(density, 5).tolist()}


def draw_curves(out: Path, name: str, paths: Paths) -> None:
    """Draw the densities that were found, and figures by epoch as far as they are numbers."""
    offered, sound = DENSITIES[name].offered, final_densities(paths)
    nodes = finer(offered["grid_size"], offered["domain"])
    _, true_density = datasets.make_poisson_gaussian(1, random_state=0, return_density=True)

    def value(result: Result, figure: str) -> float:
        if figure == "rmse":
            distance = np.array(result["density"]) - true_density(nodes)
            return float(np.sqrt(np.mean(distance**2)))
        return result[figure]

    def panel(figure: str) -> Panel:
        curves: dict[str, Any] = {}
        if figure == "density":
            shown = {**sound, "truth": true_density(nodes)} if name == "toy" else sound
            curves = {each: (nodes[:, 0], values) for each, values in shown.items()}
            return Panel(TITLES[figure], curves, "x")
        for each, results in paths.items():
            found = {
                epoch: value(result, figure)
                for epoch, result in enumerate(results, start=1)
                if not result.diverged and np.isfinite(value(result, figure))
            }
            if found:
                curves[each] = (list(found), list(found.values()))
        return Panel(TITLES[figure], curves, "epochs", logarithmic=figure == "rmse")

    number, plotted = PLOTS[name]
    draw_panels(out / f"spppot-figure{number}.png", list(map(panel, plotted)))


def final_densities(paths: Paths) -> dict[str, Sequence[float]]:
    last = {name: results[-1] for name, results in paths.items()}
    return {name: result["density"] for name, result in last.items() if not result.diverged}


def draw_maps(path: Path, paths: Paths) -> None:
    """Draw Chicago's densities beside a histogram."""
    X, maps = DENSITIES["chicago"].load(0, samples=None).X, final_densities(paths)
    counts, _, _ = np.histogram2d(*X.T, bins=30, range=[(0, 1)] * 2, density=True)

    def draw(panels: Sequence[Any]) -> None:
        for axes, (name, values) in zip(panels, {"histogram": counts, **maps}.items(), strict=True):
            side = round(np.size(values) ** 0.5)
            picture = np.reshape(values, (side, side)).T
            axes.imshow(picture, origin="lower", extent=(0, 1, 0, 1), vmin=0, vmax=counts.max())
            axes.set_title(name, fontsize=8)

    figures.write(path, draw, 1 + len(maps), (2.9, 3.2))

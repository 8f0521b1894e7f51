"""SPPPOT (Chakraborty, Rajawat and Koppel, 2022): Table I, Figures 1 to 4.

Densities of a toy, of Curry's shots and of Chicago's crimes, with the parameters of Table I; then
kernel logistic regression on MNIST. Curves are of trainings with 1, 2, ... epochs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench import figures
from bench.baselines.kernel_machine import FunctionalGradient
from bench.baselines.scikit import Libsvm
from bench.cli import left_out
from bench.figures import Panel, draw_panels
from bench.papers import intensity
from bench.papers.classification import comparison, method, publish
from bench.papers.intensity import DENSITIES, TABLE_ONE, fine_nodes
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


def run(options: argparse.Namespace) -> int:
    for name in DENSITIES:
        with left_out():
            rows, paths = compare(name, options)
            found = intensity.table(DENSITIES[name], intensity.above_batch(rows))
            found.publish(options.out / f"spppot-table1-{name}.csv")
            DRAW[name](options.out, paths)
    with left_out():
        publish("spppot", MNIST, options, logistic=4)
    return 0


# Results of the first seed after 1, 2, ... epochs, by method.
Paths = Mapping[str, Sequence[Result]]


def compare(name: str, options: argparse.Namespace) -> tuple[list[Row], Paths]:
    """Return the rows of Table I, and for the first seed those with fewer epochs, too."""
    printed = [each.shortened if options.quick else each for each in TABLE_ONE[name]]
    methods = [each for method in printed for each in with_fewer_epochs(method)]
    rows = replace(DENSITIES[name], methods=methods, train=train).rows(options)
    paths: dict[str, list[Result]] = {}
    for row in rows:
        paths.setdefault(row.method.name, []).append(row.results[0])
    return [row for row in rows if row.method.runs is None], paths


def with_fewer_epochs(method: Method) -> list[Method]:
    """Return a method after each of its epochs; all but the last are run once."""
    fewer = [
        replace(method, settings={**method.settings, "epochs": epochs}, runs=1)
        for epochs in range(1, method.settings.get("epochs", 1))
    ]
    return [*fewer, method]


def train(run: Run) -> Figures:
    """Fit and test, and keep the density itself at the nodes of a fine grid."""
    model, found = intensity.fit(run)
    nodes = fine_nodes(run.offered)
    # POLK in the primal has no logarithm where f < 0.
    primal = hasattr(model, "function")
    density = model.function(nodes) if primal else np.exp(model.score_samples(nodes))
    train_nll = float(-model.score_samples(run.task.X).mean()) + found["integral"]
    return {**found, "train_nll": train_nll, "density": np.round(density, 5).tolist()}


Curves = dict[str, tuple[list[float], list[float]]]


def curves(paths: Paths, figure: str | Callable[[Result], float]) -> Curves:
    """Return a figure by epoch, as far as it is a number."""
    value = figure if callable(figure) else lambda result: result[figure]
    found = {
        name: {
            epoch: value(result)
            for epoch, result in enumerate(results, start=1)
            if not result.diverged and np.isfinite(value(result))
        }
        for name, results in paths.items()
    }
    return {name: (list(curve), list(curve.values())) for name, curve in found.items() if curve}


def final_densities(paths: Paths) -> dict[str, Sequence[float]]:
    last = {name: results[-1] for name, results in paths.items()}
    return {name: result["density"] for name, result in last.items() if not result.diverged}


def on_the_line(name: str, paths: Paths) -> Curves:
    x = fine_nodes(DENSITIES[name].offered)[:, 0].tolist()
    return {name: (x, list(values)) for name, values in final_densities(paths).items()}


def along_epochs(title: str, paths: Paths, figure: Any, *, logarithmic: bool = False) -> Panel:
    return Panel(title, curves(paths, figure), "epochs", logarithmic)


def draw_toy(out: Path, paths: Paths) -> None:
    _, true_density = datasets.make_poisson_gaussian(1, random_state=0, return_density=True)
    nodes = fine_nodes(DENSITIES["toy"].offered)
    truth = np.asarray(true_density(nodes))

    def rmse(result: Result) -> float:
        return float(np.sqrt(((np.array(result["density"]) - truth) ** 2).mean()))

    shown = {**on_the_line("toy", paths), "truth": (nodes[:, 0].tolist(), truth.tolist())}
    panels = [
        Panel("Density", shown, x_label="x"),
        along_epochs("RMSE", paths, rmse, logarithmic=True),
        along_epochs("Test loss", paths, "nll"),
        along_epochs("Model order", paths, "model_order"),
    ]
    draw_panels(out / "spppot-figure1.png", panels)


def draw_curry(out: Path, paths: Paths) -> None:
    panels = [
        along_epochs("Training loss", paths, "train_nll"),
        Panel("Density", on_the_line("curry", paths), x_label="distance, scaled"),
        along_epochs("Model order", paths, "model_order"),
    ]
    draw_panels(out / "spppot-figure2.png", panels)


def draw_chicago(out: Path, paths: Paths) -> None:
    panels = [
        along_epochs("Test loss", paths, "nll"),
        along_epochs("Model order", paths, "model_order"),
    ]
    draw_panels(out / "spppot-figure3-curves.png", panels)
    X, maps = DENSITIES["chicago"].load(0, samples=None).X, final_densities(paths)
    counts, _, _ = np.histogram2d(*X.T, bins=30, range=[(0, 1)] * 2, density=True)

    def draw(panels: Sequence[Any]) -> None:
        for axes, (name, values) in zip(panels, {"histogram": counts, **maps}.items(), strict=True):
            side = round(np.size(values) ** 0.5)
            picture = np.reshape(values, (side, side)).T
            axes.imshow(picture, origin="lower", extent=(0, 1, 0, 1), vmin=0, vmax=counts.max())
            axes.set_title(name, fontsize=8)

    figures.write(out / "spppot-figure3-maps.png", draw, 1 + len(maps), (2.9, 3.2))


DRAW = {"toy": draw_toy, "curry": draw_curry, "chicago": draw_chicago}

"""SPPPOT (Chakraborty, Rajawat and Koppel, 2022): Table I, Figures 1 to 4.

Densities of a toy, of Curry's shots and of Chicago's crimes, with the parameters of Table I; then
kernel logistic regression on MNIST. Curves are of trainings with 1, 2, ... epochs.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import parsimon
from bench import comparison, figures, intensity, machine
from bench.baselines.intensity import BatchIntensity
from bench.cli import MissingDataError
from bench.experiments import Result, Run, Store, Table, mean_and_sd, significant, span, times
from bench.intensity_settings import EXPERIMENTS, Experiment, Method, Problem
from parsimon import datasets
from parsimon.schedules import AdaptiveBudget

BATCH = Method("batch L-BFGS", BatchIntensity)
QUICK_SAMPLES, QUICK_EPOCHS = 1000, 2

# Model order and time of Table I: BFGS, then the rows in the order of `Experiment.printed`.
PRINTED: Mapping[str, Sequence[tuple[int, str]]] = {
    "toy": (
        (10_211, "8 h"),
        (100, "5 min"),
        (179, "5 min"),
        (100, "5 min"),
        (105, "5 min"),
        (100, "20 min"),
        (50, "20 min"),
        (90, "20 min"),
    ),
    "curry": (
        (8298, "8 h"),
        (100, "5 min"),
        (100, "5 min"),
        (100, "20 min"),
        (50, "20 min"),
        (100, "20 min"),
    ),
    "chicago": (
        (10_000, "12 h"),
        (441, "5 min"),
        (441, "5 min"),
        (441, "20 min"),
        (441, "20 min"),
    ),
}

# Figure 4. The regulariser is left out; the printed budgets are eps. LIBSVM is POLK's own run. The
# paper's FGD had all samples and took 12 hours; a sixth of them is what a Gram matrix has room for.
MNIST = comparison.Experiment(
    "mnist",
    table="Figure 4, MNIST",
    runs=3,
    figures={"logistic": 4},
    quick=2000,
    rows=(
        comparison.row("LIBSVM", "libsvm", "hinge", None, None, 16_122, runs=1),
        comparison.row(
            "FGD",
            "fgd",
            "logistic",
            *(None, None, 60_000),
            runs=1,
            iterations=1000,
            max_samples=10_000,
            regularization=0.0,
        ),
        comparison.row(
            "POLK, eps 1.8812",
            "polk",
            "logistic",
            *(None, None, 404),
            epochs=2,
            budget=1.8812,
            regularization=0.0,
        ),
        comparison.row(
            "SPPPOT, eps 1.4579",
            "spppot",
            "logistic",
            *(None, None, 401),
            epochs=2,
            budget=1.4579,
            regularization=0.0,
        ),
        comparison.row(
            "SPPPOT, 400 points wanted",
            "spppot",
            "logistic",
            *(None, None, 400),
            epochs=2,
            budget=AdaptiveBudget(400),
            regularization=0.0,
        ),
        # The paper does not say how large its mini-batches are.
        comparison.row(
            "POLK, eps 1.8812, mini-batches of 64",
            "polk",
            "logistic",
            epochs=2,
            budget=1.8812,
            batch_size=64,
            regularization=0.0,
        ),
        comparison.row(
            "SPPPOT, eps 1.4579, mini-batches of 64",
            "spppot",
            "logistic",
            epochs=2,
            budget=1.4579,
            batch_size=64,
            regularization=0.0,
        ),
    ),
)


@dataclass
class Row:
    """A method on a data set: results of its last epoch by seed, of the first seed by epoch."""

    method: Method
    order: int  # printed
    time: str  # printed
    finals: list[Result] = field(default_factory=list)
    path: dict[int, Result] = field(default_factory=dict)

    def sound(self) -> list[Result]:
        return [result for result in self.finals if "diverged" not in result]

    def values(self, figure: str) -> list[float]:
        return [result[figure] for result in self.sound()]

    def curve(self, figure: str) -> tuple[list[float], list[float]]:
        """Return a figure by epoch, as far as it is a number."""
        points = [
            (epoch, result[figure])
            for epoch, result in sorted(self.path.items())
            if result.get(figure) is not None
        ]
        return [epoch for epoch, _ in points], [value for _, value in points]


def run(options: argparse.Namespace) -> int:
    for name, experiment in EXPERIMENTS.items():
        try:
            problem = experiment.load(0)
        except FileNotFoundError as error:
            print(f"Left out: {experiment.title}. {error}")
            continue
        rows = compare(name, experiment, options)
        table(experiment, rows).publish(options.out / f"spppot-table1-{name}.csv")
        DRAW[name](options.out, experiment, problem, rows)
    try:
        comparison.publish("spppot", MNIST, options)
    except MissingDataError as error:
        print(f"Left out: {error}")
    return 0


def compare(name: str, experiment: Experiment, options: argparse.Namespace) -> list[Row]:
    """Train every method with every seed, and for the first seed with every number of epochs."""
    methods = (BATCH, *experiment.printed)
    rows = [Row(*each) for each in ((m, *p) for m, p in zip(methods, PRINTED[name], strict=True))]
    samples = QUICK_SAMPLES if options.quick else None
    seeds = range(options.runs or (1 if options.quick else experiment.seeds))
    plan = []
    for seed in seeds:
        for row in rows:
            epochs = epochs_of(row.method, options.quick)
            for epoch in range(1, epochs + 1) if seed == 0 else (epochs,):
                plan.append((configuration(name, row.method, seed, samples, epoch), row))

    @lru_cache(maxsize=1)
    def problem_of(seed: int) -> Problem:
        problem = experiment.load(seed)
        return problem.head(samples) if samples else problem

    def train(run: Run, row: Row) -> Result:
        return train_density(row.method, experiment, problem_of(run.seed), run)

    store = Store(options.out / "runs")
    results = store.results(plan, train, f"SPPPOT, {experiment.title}")
    for (run, row), result in zip(plan, results, strict=True):
        if run.seed == 0:
            row.path[run.settings["epochs"]] = result
        if run.settings["epochs"] == epochs_of(row.method, options.quick):
            row.finals.append(result)
    return rows


def epochs_of(method: Method, quick: bool) -> int:
    epochs = int(method.settings.get("epochs", 1))
    return min(epochs, QUICK_EPOCHS) if quick else epochs


def configuration(name: str, method: Method, seed: int, samples: int | None, epochs: int) -> Run:
    experiment = EXPERIMENTS[name]
    settings = {
        "estimator": method.kind,
        "variance": experiment.variance,
        "grid_size": experiment.grid_size,
        **method.settings,
        "epochs": epochs,
    }
    return Run(f"density {name}", method.name, seed, {"samples": samples}, settings)


def train_density(method: Method, experiment: Experiment, problem: Problem, run: Run) -> Result:
    """Fit and test, and keep the density itself at the nodes of a fine grid."""
    epochs = None if method is BATCH else run.settings["epochs"]
    model = method.make(experiment, problem.X.shape[1], run.seed, epochs)
    nodes = intensity.fine_nodes(experiment, problem)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with machine.Stopwatch() as watch:
                model.fit(problem.X)
        except parsimon.DivergenceError:
            return {"diverged": True}
    found = asdict(intensity.measure(model, problem, nodes, watch.elapsed.wall))
    test_loss = found.pop("dnll")
    train_loss = float(-model.score_samples(problem.X).mean()) + found["integral"]
    negative = hasattr(model, "function")  # POLK in the primal has no logarithm where f < 0
    density = model.function(nodes) if negative else np.exp(model.score_samples(nodes))
    return {
        **found,
        "test_loss": test_loss if np.isfinite(test_loss) else None,
        "train_loss": train_loss if np.isfinite(train_loss) else None,
        "density": np.round(density, 5),
        "warnings": sorted({str(warning.message) for warning in caught}),
    }


def table(experiment: Experiment, rows: Sequence[Row]) -> Table:
    batch = {seed: result["test_loss"] for seed, result in enumerate(rows[0].finals)}
    notes = {note for row in rows for result in row.sound() for note in result["warnings"]}
    return Table(
        f"Table I, {experiment.title}: {times(len(batch))}; test loss above the batch fit's, the "
        "paper's model order and time in [brackets]",
        ("method", "above batch", "smallest", "largest", "integral", "points", "seconds"),
        [[row.method.name, *cells(row, batch)] for row in rows],
        sorted(notes),
    )


def cells(row: Row, batch: Mapping[int, float]) -> list[str]:
    order, time = f" [{row.order:,}]", f" [{row.time}]"
    if not row.sound():
        return ["diverges", "", "", "", order.strip(), time.strip()]
    above = [
        result["test_loss"] - batch[seed] if result["test_loss"] is not None else np.inf
        for seed, result in enumerate(row.finals)
        if "diverged" not in result
    ]
    lost = len(row.finals) - len(above)
    if np.isinf(above).all():
        summary = ["infinite", "", ""]
    else:
        summary = [significant(float(value)) for value in (np.mean(above), min(above), max(above))]
    if lost:
        summary[0] += f", diverges {lost} of {len(row.finals)}"
    integrals = [f"{pick(row.values('integral')):.3f}" for pick in (min, max)]
    return [
        *summary,
        integrals[0] if integrals[0] == integrals[1] else " to ".join(integrals),
        span(row.values("model_order")) + order,
        mean_and_sd(row.values("seconds"), 2) + time,
    ]


# -- figures ---------------------------------------------------------------------------------------


def curves(rows: Sequence[Row], figure: str) -> dict[str, tuple[list[float], list[float]]]:
    found = {row.method.name: row.curve(figure) for row in rows}
    return {name: curve for name, curve in found.items() if curve[0]}


def densities(rows: Sequence[Row], nodes: Any) -> dict[str, tuple[list[float], list[float]]]:
    return {
        row.method.name: (nodes[:, 0].tolist(), row.finals[0]["density"])
        for row in rows
        if "diverged" not in row.finals[0]
    }


def draw_toy(out: Path, experiment: Experiment, problem: Problem, rows: Sequence[Row]) -> None:
    nodes = intensity.fine_nodes(experiment, problem)
    _, density = datasets.make_poisson_gaussian(1, random_state=0, return_density=True)
    truth = np.asarray(density(nodes))
    for row in rows:
        for result in row.path.values():
            if "diverged" not in result:
                result["rmse"] = float(np.sqrt(((np.array(result["density"]) - truth) ** 2).mean()))
    shown = {**densities(rows, nodes), "truth": (nodes[:, 0].tolist(), truth.tolist())}
    panels = [
        figures.Panel("Density", shown, x_label="x"),
        figures.Panel("RMSE", curves(rows, "rmse"), x_label="epochs", logarithmic=True),
        figures.Panel("Test loss", curves(rows, "test_loss"), x_label="epochs"),
        figures.Panel("Model order", curves(rows, "model_order"), x_label="epochs"),
    ]
    figures.draw_panels(out / "spppot-figure1.png", panels)


def draw_curry(out: Path, experiment: Experiment, problem: Problem, rows: Sequence[Row]) -> None:
    nodes = intensity.fine_nodes(experiment, problem)
    panels = [
        figures.Panel("Training loss", curves(rows, "train_loss"), x_label="epochs"),
        figures.Panel("Density", densities(rows, nodes), x_label="distance, scaled"),
        figures.Panel("Model order", curves(rows, "model_order"), x_label="epochs"),
    ]
    figures.draw_panels(out / "spppot-figure2.png", panels)


def draw_chicago(out: Path, experiment: Experiment, problem: Problem, rows: Sequence[Row]) -> None:
    panels = [
        figures.Panel("Test loss", curves(rows, "test_loss"), x_label="epochs"),
        figures.Panel("Model order", curves(rows, "model_order"), x_label="epochs"),
    ]
    figures.draw_panels(out / "spppot-figure3-curves.png", panels)
    path = out / "spppot-figure3-maps.png"
    sound = [row for row in rows if "diverged" not in row.finals[0]]
    sheet = figures.new_sheet(path, len(sound) + 1, width=2.9, height=3.2)
    if sheet is None:
        return
    first, *others = sheet.subplots(1, len(sound) + 1)
    side = round(len(sound[0].finals[0]["density"]) ** 0.5)
    counts, _, _ = np.histogram2d(*problem.X.T, bins=30, range=[(0, 1)] * 2, density=True)
    largest = counts.max()
    first.imshow(counts.T, origin="lower", extent=(0, 1, 0, 1), vmin=0, vmax=largest)
    first.set_title("histogram")
    for axes, row in zip(others, sound, strict=True):
        values = np.array(row.finals[0]["density"]).reshape(side, side)
        axes.imshow(values.T, origin="lower", extent=(0, 1, 0, 1), vmin=0, vmax=largest)
        axes.set_title(row.method.name, fontsize=8)
    figures.save(sheet, path)


DRAW = {"toy": draw_toy, "curry": draw_curry, "chicago": draw_chicago}

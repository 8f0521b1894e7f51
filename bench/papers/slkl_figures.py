"""Figures 1 to 3 of the SLKL paper, on sinc: along the epochs, and by the number of columns."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from bench import figures
from bench.experiments import Result, Run, Store
from bench.slkl_settings import SETTINGS, SPARSITY, TASKS, make
from parsimon import SLKLRegressor

SINC = next(task for task in TASKS if task.name == "sinc")
# Figures 1 and 3: the paper's step, and the one that never increases the objective.
STEPS = {"Newton steps": "newton", "exact steps": "exact"}
EPOCHS, QUICK_EPOCHS = 200, 20
# Figure 2: M, and nu.
COUNTS = (64, 128, 256, 512, 1000)
QUICK_COUNTS = (64, 128, 256)
PRICES = (0.001, SPARSITY, 0.1, 1.0)


def draw(out: Path, store: Store, runs: int, *, quick: bool) -> None:
    paths = along_epochs(store, runs, QUICK_EPOCHS if quick else EPOCHS)
    draw_objective(out / "slkl-figure1.png", paths)
    counts = QUICK_COUNTS if quick else COUNTS
    draw_used(out / "slkl-figure2.png", counts, by_count(store, runs, counts))
    draw_path_of_used(out / "slkl-figure3.png", paths)


# -- Figures 1 and 3 -------------------------------------------------------------------------------


def along_epochs(store: Store, runs: int, epochs: int) -> dict[str, list[Result]]:
    """Return objective and m0 along the epochs of the paper's algorithm, by the kind of step.

    The samples are the same in all runs and all of them are columns: what differs is the order.
    """
    settings = {"sparsity": SPARSITY, "epochs": epochs, "variance": SINC.variance}
    plan = [
        (Run("sinc epochs", name, seed, settings={**settings, "step": step}), step)
        for name, step in STEPS.items()
        for seed in range(runs)
    ]
    results = store.results(plan, watch, "SLKL, epochs")
    return {
        name: [found for (run, _), found in zip(plan, results, strict=True) if run.method == name]
        for name in STEPS
    }


def watch(run: Run, step: str) -> Result:
    """Train with 1, 2, ... epochs: with the same seed, each is the beginning of all longer ones."""
    X, y, _, _ = SINC.draw(np.random.RandomState(0))
    minimum = make(SLKLRegressor, SINC.width, len(X), 0, center=False, tol=0.0).fit(X, y)
    model = make(
        SLKLRegressor,
        SINC.width,
        len(X),
        run.seed,
        center=False,
        tol=0.0,
        selection="uniform",
        step=step,
    )
    looks = looks_at(run.settings["epochs"])
    used = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for epochs in looks:
            model.set_params(max_iter=epochs).fit(X, y)
            used.append(len(model.support_))
    return {
        "objective": model.objective_,
        "minimum": minimum.objective_[-1],
        "looks": [0, *looks],
        "m0": [0, *used],
        "m0 at the minimum": len(minimum.support_),
    }


def looks_at(epochs: int) -> list[int]:
    """Return the epochs after which the weights are counted, further and further apart."""
    return sorted({round(value) for value in np.geomspace(1, epochs, 30)})


def draw_objective(path: Path, paths: Mapping[str, Sequence[Result]]) -> None:
    sheet = figures.new_sheet(path, 2)
    if sheet is None:
        return
    whole, above = sheet.subplots(1, 2)
    draw_runs(whole, paths, lambda found: (range(len(found["objective"])), found["objective"]))
    whole.set(title="Objective", xlabel="epochs", yscale="log")

    def distance(found: Result) -> Any:
        values = np.array(found["objective"]) - found["minimum"]
        return range(len(values)), values

    draw_runs(above, paths, distance)
    above.set(title="Objective above its minimum", xlabel="epochs", yscale="log")
    figures.save(sheet, path)


def draw_path_of_used(path: Path, paths: Mapping[str, Sequence[Result]]) -> None:
    sheet = figures.new_sheet(path)
    if sheet is None:
        return
    axes = sheet.subplots()
    draw_runs(axes, paths, lambda found: (found["looks"], found["m0"]))
    least = next(iter(paths.values()))[0]["m0 at the minimum"]
    axes.axhline(float(SINC.printed["m0"][-1]), color="black", linestyle=":", label="printed")
    axes.axhline(least, color="black", linestyle="--", label="at the minimum")
    axes.set(title="Columns in use", xlabel="epochs")
    axes.legend(frameon=False)
    figures.save(sheet, path)


def draw_runs(
    axes: Any, paths: Mapping[str, Sequence[Result]], curve: Callable[[Result], Any]
) -> None:
    """Draw a thin line a run, in one colour for each kind of step."""
    from parsimon.plotting._common import PALETTE

    for (name, results), color in zip(paths.items(), PALETTE, strict=False):
        for index, found in enumerate(results):
            label = name if index == 0 else None
            axes.plot(*curve(found), color=color, linewidth=0.7, alpha=0.6, label=label)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)


# -- Figure 2 --------------------------------------------------------------------------------------


def by_count(store: Store, runs: int, counts: Sequence[int]) -> list[Result]:
    """Return m0 at the minimum by nu, in every run a list over M."""
    settings = {**SETTINGS, "columns": counts, "sparsity": PRICES, "variance": SINC.variance}
    plan = [(Run("sinc columns", "SLKL", seed, settings=settings), counts) for seed in range(runs)]
    return store.results(plan, count_used, "SLKL, columns")


def count_used(run: Run, counts: Sequence[int]) -> Result:
    random = np.random.RandomState(run.seed)
    X, y, _, _ = SINC.draw(random)

    def used(count: int, price: float) -> int:
        model = make(SLKLRegressor, SINC.width, count, random, center=False, sparsity=price)
        return len(model.fit(X, y).support_)

    return {f"{price:g}": [used(count, price) for count in counts] for price in PRICES}


def draw_used(path: Path, counts: Sequence[int], results: Sequence[Result]) -> None:
    curves: dict[str, Any] = {
        f"nu = {price}": (counts, np.mean([found[price] for found in results], axis=0))
        for price in results[0]
    }
    printed = [float(value) for value in SINC.printed["m0"]]
    curves[f"nu = {SPARSITY:g}, printed"] = (SINC.columns, printed)
    panel = figures.Panel("Columns in use", curves, x_label="columns M")
    figures.draw_panels(path, [panel])

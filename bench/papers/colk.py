"""COLK (Bedi, Koppel, Rajawat and Sanyal, 2021): Figures 1 to 3.

2 x + 3 sin 6 x with and without outliers, then LIDAR. The paper prints no figures beside its plots;
what stands in [brackets] is what prototypes reached. COLK as printed diverges, so the paths are of
COLK with a bounded outer derivative.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import parsimon
from bench import figures, risk
from bench.experiments import Result, Run, Store, Table, mean_and_sd, span, times
from bench.risk_settings import (
    LIDAR_EPOCHS,
    LIDAR_METHODS,
    METHODS,
    OUTLIERS,
    SAMPLES,
    SETTINGS,
    TEST_SAMPLES,
    TEST_SEED,
    Method,
)

QUICK_SAMPLES = 2000
SETS, QUICK_SETS = 20, 2
# About as many points as COLK keeps.
POINTS = 45
COMPARATORS = (
    Method(
        f"BSGD, {POINTS} points", "BSGDRegressor", {"max_points": POINTS, "maintenance": "merge"}
    ),
    # Its points are maintained in nine tenths of the stream; then they become more.
    Method(
        f"NPBSGD, from {POINTS} points",
        "BSGDRegressor",
        {
            "max_points": POINTS,
            "maintenance": "nonparametric",
            "maintenance_rate": 0.9 * SAMPLES,
            "random_state": 0,
        },
    ),
)
WATCHED = ("POLK, alpha .5", "COLK, P = 4, clipped")
LOOKS = 40
GRID = np.linspace(-1, 1, 200)[:, None]
# The squared error to the function itself, and figures of the loss on test samples.
FIGURES = {"excess": "excess", **risk.TAIL}


def run(options: argparse.Namespace) -> int:
    store, out = Store(options.out / "runs"), options.out
    sets = options.runs or (QUICK_SETS if options.quick else SETS)
    samples = QUICK_SAMPLES if options.quick else SAMPLES
    rows = compare(store, sets, samples)
    table(rows, sets, samples).publish(out / "colk-figure2.csv")
    draw_bars(out / "colk-figure2.png", rows)
    draw_paths(out / "colk-figure1.png", watch(store, samples))
    lidar = risk.load_lidar()
    if lidar is not None:
        lidar_table(store, *lidar, sets).publish(out / "colk-figure3.csv")
        risk.draw(*lidar, out / "colk-figure3.png")
    return 0


# -- Figure 2: the loss of every method ------------------------------------------------------------


def compare(store: Store, sets: int, samples: int) -> list[risk.Row]:
    """Train every method on every set; one that is not in this build has no results."""
    rows = [
        risk.Row(method, {kind: [] for kind in OUTLIERS}) for method in (*METHODS, *COMPARATORS)
    ]
    plan = [
        (configuration("regression", row.method, seed, samples=samples, outliers=kind), row)
        for kind in OUTLIERS
        for seed in range(sets)
        for row in rows
        if hasattr(parsimon, row.method.estimator)
    ]

    @lru_cache(maxsize=1)
    def test(kind: str) -> Any:
        return risk.draw_samples(TEST_SAMPLES, kind, TEST_SEED)

    def train(run: Run, row: risk.Row) -> Result:
        kind = run.data["outliers"]
        X, y, _ = risk.draw_samples(samples, kind, run.seed)
        found = risk.train(row.method, X, y, test(kind))
        return {"diverged": True} if found is None else asdict(found)

    results = store.results(plan, train, "COLK, regression")
    for (run, row), result in zip(plan, results, strict=True):
        found = None if "diverged" in result else risk.Result(**result)
        row.results[run.data["outliers"]].append(found)
    return rows


def configuration(task: str, method: Method, seed: int, **data: Any) -> Run:
    settings = {"estimator": method.estimator, **SETTINGS, **method.settings}
    return Run(task, method.name, seed, data, settings)


def table(rows: Sequence[risk.Row], sets: int, samples: int) -> Table:
    lines = []
    for kind in OUTLIERS:
        for row in rows:
            lines.append([kind, row.method.name, *cells(row, kind)])
    return Table(
        f"Figure 2: {times(sets, 'training set')} of {samples:,} samples; standard deviations in "
        "(parentheses), what prototypes reached in [brackets]",
        ("outliers", "method", *FIGURES.values(), "points"),
        lines,
    )


def cells(row: risk.Row, kind: str) -> list[str]:
    total, diverged = len(row.results[kind]), row.diverged(kind)
    known = row.method.reference.get(kind, ())
    references = [risk.reference(value) for value in known] + [""] * (len(FIGURES) - len(known))
    if diverged == total:
        word = f"diverges {diverged} of {total}" if total else "not in this build"
        return [word + references[0], *[""] * len(FIGURES)]
    found = [
        mean_and_sd(row.values(kind, figure)) + reference
        for figure, reference in zip(FIGURES, references, strict=True)
    ]
    found[0] += f", diverges {diverged} of {total}" if diverged else ""
    return [*found, span(row.values(kind, "model_order"))]


def draw_bars(path: Path, rows: Sequence[risk.Row]) -> None:
    """Draw means and standard deviations of the squared error to the function."""
    sheet = figures.new_sheet(path, len(OUTLIERS), height=4.2)
    if sheet is None:
        return
    for index, (axes, kind) in enumerate(
        zip(sheet.subplots(1, len(OUTLIERS), sharey=True), OUTLIERS, strict=True)
    ):
        shown = [row for row in rows if row.results[kind] and row.values(kind, "excess")]
        values = [row.values(kind, "excess") for row in shown]
        axes.barh(
            [row.method.name for row in shown],
            [np.mean(each) for each in values],
            xerr=[np.std(each) for each in values],
            color="#56B4E9",
            capsize=3,
        )
        axes.set(title=f"outliers: {kind}", xlabel="squared error to the function", xscale="log")
        axes.spines[["top", "right"]].set_visible(False)
        if index == 0:
            axes.invert_yaxis()
    figures.save(sheet, path)


# -- Figure 1: along the stream, and what is learned -----------------------------------------------


def watch(store: Store, samples: int) -> dict[tuple[str, str, int], Result]:
    """Return the paths of COLK and POLK on two training sets, by method, outliers and set."""
    plan = [
        (configuration("regression path", method, seed, samples=samples, outliers=kind), method)
        for method in METHODS
        if method.name in WATCHED
        for kind in OUTLIERS
        for seed in range(2)
    ]

    def train(run: Run, method: Method) -> Result:
        kind, model = run.data["outliers"], method.make()
        X, y, _ = risk.draw_samples(samples, kind, run.seed)
        X_test, y_test, _ = risk.draw_samples(TEST_SAMPLES // 10, kind, TEST_SEED)
        path: dict[str, list[float]] = {"samples": [], "mean": [], "variance": [], "order": []}
        step = max(2, samples // LOOKS // 2 * 2)  # pairs stay together
        for start in range(0, samples, step):
            model.partial_fit(X[start : start + step], y[start : start + step])
            losses = (model.predict(X_test) - y_test) ** 2
            path["samples"].append(min(start + step, samples))
            path["mean"].append(float(losses.mean()))
            path["variance"].append(float(losses.var()))
            path["order"].append(int(model.model_order_))
        return {"path": path, "function": model.predict(GRID).tolist()}

    results = store.results(plan, train, "COLK, paths")
    return {
        (run.method, run.data["outliers"], run.seed): result
        for (run, _), result in zip(plan, results, strict=True)
    }


def draw_paths(path: Path, found: Mapping[tuple[str, str, int], Result]) -> None:
    colk = WATCHED[1]
    paths = {f"COLK, outliers: {kind}": found[colk, kind, 0]["path"] for kind in OUTLIERS}
    functions = {
        f"{name.split(',')[0]}, set {seed + 1}": (
            GRID[:, 0].tolist(),
            found[name, "symmetric", seed]["function"],
        )
        for name in WATCHED
        for seed in range(2)
    }

    def curves(value: Callable[[Mapping[str, Any]], Any]) -> Any:
        return {name: (each["samples"], value(each)) for name, each in paths.items()}

    panels = [
        figures.Panel(
            "Mean + variance of the loss",
            curves(lambda each: np.add(each["mean"], each["variance"])),
            logarithmic=True,
        ),
        figures.Panel("Mean loss", curves(lambda each: each["mean"]), logarithmic=True),
        figures.Panel("Model order", curves(lambda each: each["order"])),
        figures.Panel("Learned, symmetric outliers", functions, x_label="x"),
    ]
    figures.draw_panels(path, panels)


# -- Figure 3: LIDAR -------------------------------------------------------------------------------


def lidar_table(store: Store, X: Any, y: Any, splits: int) -> Table:
    plan = [
        (configuration("lidar", method, split, outliers=kind, epochs=LIDAR_EPOCHS), method)
        for method in LIDAR_METHODS
        for kind in OUTLIERS
        for split in range(splits)
    ]

    def train(run: Run, method: Method) -> Result:
        return {"error": risk.lidar_error(method, X, y, run.data["outliers"], run.seed)}

    errors: dict[tuple[str, str], list[float]] = {}
    for (run, _), result in zip(plan, store.results(plan, train, "COLK, LIDAR"), strict=True):
        errors.setdefault((run.method, run.data["outliers"]), []).append(result["error"])
    return Table(
        f"Figure 3, LIDAR: squared error on clean held-out targets, {times(splits, 'split')}",
        ("method", *OUTLIERS),
        [
            [
                method.name,
                *(
                    risk.over_sets(errors[method.name, kind])
                    + risk.reference(method.reference[kind][0])
                    for kind in OUTLIERS
                ),
            ]
            for method in LIDAR_METHODS
        ],
    )

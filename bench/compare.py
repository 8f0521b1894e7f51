"""parsimon beside other packages: time, error and size of models on the same data.

Each method is trained once on one thread, and every row is kept: a comparison that was interrupted
goes on where it stopped. Methods that learn sample by sample in Python are stopped after `--limit`
seconds; the table says how far they came.
"""

from __future__ import annotations

import argparse
import os
import pickle
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import parsimon
from bench import figures, machine, report, tasks
from bench.baselines.peers import (
    FourierSGD,
    IntelSvm,
    Libsvm,
    NystroemSGD,
    RiverFourier,
    RiverNeighbors,
    VowpalSvm,
)
from bench.cli import left_out, positive_int
from bench.report import Column, Table, one, two_digits
from bench.runner import QUICK, Experiment, Figures, Like, Method, Result, Row, Run
from bench.tasks import Task
from parsimon._io import to_archive
from parsimon._model import ModelEstimator

LIMIT, QUICK_LIMIT = 600, 3
# Predictions may take this part of the limit; of a slow method only the first are made.
PREDICTION_SHARE = 0.5
PREDICTIONS, ENOUGH_SECONDS = 3, 10.0
# What is timed has run before, on this many samples.
WARM_UP_SAMPLES = 100


@dataclass(frozen=True)
class DataSet:
    """A task, and what its methods are told that is not in `tasks.py`."""

    task: str
    title: str
    parsimony: tuple[float, float]  # K of POLK's smaller and of its larger model
    passes: int
    C: float  # of the support vector machines
    with_passes: bool = True  # whether there is a row for gradient steps with nothing else set
    quick: Mapping[str, Any] = field(default_factory=dict)


FEW, TEXTURES = {"samples": 1000}, {"crop": 128, "pixels": 20_000}
DATA_SETS = (
    # Gradient steps alone make 20 passes with thousands of points: too long for all samples.
    DataSet("mnist", "MNIST", (0.024, 0.016), 5, C=1.0, with_passes=False),
    DataSet("usps", "USPS", (0.02, 0.01), 5, C=10.0),
    DataSet("brodatz", "Brodatz textures", (0.02, 0.01), 20, C=10.0, quick=TEXTURES),
    # Drawn, so that there is something to compare where there are no data.
    DataSet("multidist", "Five classes in the plane", (0.04, 1e-4), 1, C=1.0, quick=FEW),
)
REST = ", one against the rest"
# POLK's two models say how many points, components or neighbours the others get.
REFERENCES = ("POLK, small", "POLK, large")
SIZES = {name.split()[1]: Like(name, "model_order") for name in REFERENCES}


def methods(of: DataSet, limit: float) -> list[Method]:
    """Return what is run, in this order; some learn for a limited time only."""
    found = []
    for size, K in zip(SIZES, of.parsimony, strict=True):
        found.append(polk(f"POLK, {size}", K, of.passes))
        if of.passes > 1:
            found.append(polk(f"POLK, {size}, one pass", K, 1))
        found.append(polk(f"POLK, {size}, averaged", K, of.passes, average=True))
    K = tasks.SETTINGS[of.task]["parsimony"]["logistic"]
    found.append(polk("POLK, logistic", K, of.passes, "logistic"))
    if of.with_passes:
        found.append(
            Method("POLK, nothing set", gradient_steps, remark="all but the solver by itself")
        )
    found.append(Method("POLK, newton", newton, remark="all by itself, weights solved"))
    if of.passes > 1:
        found.append(bsgd("BSGD, small, one pass", "small", 1))
    found += [bsgd(f"BSGD, {size}", size, of.passes) for size in SIZES]
    C, limited, remark = {"C": of.C}, {"seconds": limit}, f"C = {of.C:g}"
    small = {"points": SIZES["small"], **limited}
    return [
        *found,
        Method("SVC", Libsvm, C, remark=remark),
        Method("SVC, Intel's extension", IntelSvm, C, remark=remark),
        *(
            Method(f"{name} + SGD, {size}", kind, {"points": points}, remark="20 passes")
            for name, kind in (("Nystroem", NystroemSGD), ("RBFSampler", FourierSGD))
            for size, points in SIZES.items()
        ),
        Method("river, KNNClassifier", RiverNeighbors, small, remark="latest samples"),
        Method("river, RBFSampler + softmax", RiverFourier, small, remark="one pass"),
        Method("Vowpal Wabbit, ksvm", VowpalSvm, {**C, **limited}, remark=remark + REST),
    ]


def polk(name: str, K: float, passes: int, loss: str = "hinge", **more: Any) -> Method:
    settings = {"parsimony": K, "epochs": passes, **more}
    return Method(name, "POLKClassifier", settings, loss, remark=f"K = {K:g}, {count(passes)}")


def bsgd(name: str, size: str, passes: int) -> Method:
    steps = {"learning_rate": 1.0, "batch_size": 1, "epochs": passes}
    settings = {"max_points": SIZES[size], "maintenance": "merge", **steps}
    return Method(name, "BSGDClassifier", settings, remark=f"merges, {count(passes)}")


def count(passes: int) -> str:
    return "one pass" if passes == 1 else f"{passes} passes"


# These two take nothing of what all are offered.
def gradient_steps(random_state: int) -> Any:
    return parsimon.POLKClassifier(solver="sgd", random_state=random_state)


def newton(random_state: int) -> Any:
    return parsimon.POLKClassifier(random_state=random_state)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = [each.task for each in DATA_SETS]
    add = parser.add_argument
    add("--data", type=Path, metavar="DIR", help="in place of PARSIMON_DATA")
    add("--datasets", nargs="+", choices=names, default=names, help="all by default")
    add("--only", metavar="TEXT", help="methods with this in their name, and POLK")
    add("--quick", action="store_true", help="little data: whether it works")
    limited = f"training of river and Vowpal Wabbit; {LIMIT} by default"
    add("--limit", type=positive_int, metavar="SECONDS", help=limited)
    kept = "folder for kept runs, tables and the plot; build/compare by default"
    add("--out", type=Path, default=Path("build/compare"), metavar="DIR", help=kept)
    report.add_json(parser)
    parser.set_defaults(runs=None)


def run(options: argparse.Namespace) -> int:
    if options.data is not None:
        os.environ["PARSIMON_DATA"] = str(options.data)
    found: dict[str, list[Row]] = {}
    pages = []
    for data_set in DATA_SETS:
        if data_set.task in options.datasets:
            with left_out():
                found[data_set.title] = rows = experiment(data_set, options).rows(options)
                pages.append(page(data_set, rows))
                print(f"\n{pages[-1]}\n")
    if not found:
        return 2
    path = options.out / "compare.md"
    path.write_text("\n\n".join(pages) + "\n", encoding="utf-8")
    print(f"  {path}")
    figures.write(path.with_suffix(".png"), partial(draw, found), len(found), (5.0, 5.6))
    report.write_json(options, data_sets=report.as_dicts(found))
    return 0


def experiment(of: DataSet, options: argparse.Namespace) -> Experiment:
    if options.quick:
        of = replace(of, passes=min(of.passes, QUICK["epochs"]))
    limit = options.limit or (QUICK_LIMIT if options.quick else LIMIT)
    return Experiment(
        of.task,
        of.title,
        [
            each
            for each in methods(of, limit)
            if each.name in REFERENCES or (options.only or "").lower() in each.name.lower()
        ],
        load=partial(load, name=of.task, cache=options.out / "cache"),
        train=measure,
        offered=tasks.offered(of.task),
        quick={"samples": 2000, "test_samples": 1000, **of.quick},
    )


def load(seed: int, **data: Any) -> Task:
    """Return a task whose samples are in an order that all methods share.

    Those to test with, too: the first of MNIST's are harder than the rest, and slow methods are
    judged on the first.
    """
    task, random = tasks.load(seed, **data), np.random.default_rng(seed)
    train, test = random.permutation(len(task.X)), random.permutation(len(task.X_test))
    return Task(task.name, task.X[train], task.y[train], task.X_test[test], task.y_test[test])


def measure(run: Run) -> Figures:
    """Train, predict and save."""
    task, limit = run.task, run.method.settings.get("seconds", float("inf"))
    run.make().fit(task.X[:WARM_UP_SAMPLES], task.y[:WARM_UP_SAMPLES])
    model = run.make()
    with machine.Stopwatch() as watch:
        model.fit(task.X, task.y)
    predicted, times = predict(model, task.X_test, PREDICTION_SHARE * limit)
    made = len(predicted)
    return {
        **watch.figures,
        "samples": len(task.X),
        "samples_seen": getattr(model, "samples_seen_", len(task.X)),
        "features": task.features,
        "classes": len(np.unique(task.y)),
        "test_samples": len(task.X_test),
        "predict_seconds": median(times) * len(task.X_test) / made,
        "predict_times": times,
        "predictions": made,
        "error": float(100 * (predicted != task.y_test[:made]).mean()),
        "model_order": int(model.model_order_),
        "bytes": saved_bytes(model),
    }


def predict(model: Any, X: Any, limit: float) -> tuple[Any, list[float]]:
    """Predict up to three times, the first samples only if all would take longer than allowed."""
    with machine.Stopwatch() as watch:
        model.predict(X[:WARM_UP_SAMPLES])
    affordable = min(len(X), WARM_UP_SAMPLES * limit / watch.seconds)
    X = X[: max(WARM_UP_SAMPLES, int(affordable))]
    times: list[float] = []
    while len(times) < PREDICTIONS and sum(times) < ENOUGH_SECONDS:
        with machine.Stopwatch() as watch:
            predicted = model.predict(X)
        times.append(watch.seconds)
    return predicted, times


def saved_bytes(model: Any) -> int:
    """Return the size of a model as its package saves it: our file, Vowpal's, or a pickle."""
    if hasattr(model, "saved_bytes_"):
        return int(model.saved_bytes_)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        if isinstance(model, ModelEstimator):
            # Whatever class of this folder it is: a file holds estimators of the package alone.
            to_archive(model).write(str(path))
        elif hasattr(model, "save"):
            model.save(path)
        else:
            with path.open("wb") as file:
                pickle.dump(model, file)
        return path.stat().st_size


COLUMNS = (
    Column("training s", "seconds"),
    Column("CPU s", "cpu_seconds"),
    Column("times POLK", "times", two_digits),
    Column("prediction s", "predict_seconds"),
    Column("error %", "error", one(".2f")),
    Column("points", "model_order", one(",")),
    Column("bytes saved", "bytes", one(",")),
    Column("remarks", "remarks", one("")),
)


def page(of: DataSet, rows: Sequence[Row]) -> str:
    """Write what was found on a data set as Markdown."""
    first = rows[0].results[0]
    trained = [
        row.plus("times", lambda _, found: found["seconds"] / first["seconds"]).plus(
            "remarks", partial(remarks, row.method)
        )
        for row in rows
        if row.sound
    ]
    table = Table.of_rows(of.title, trained, COLUMNS).after("#", range(1, len(trained) + 1))
    notes = [
        f"Left out, because it is not installed: {row.method.name}: {row.absent}"
        for row in rows
        if row.absent
    ]
    if kept := sum(row.results[0].kept for row in trained):
        notes.append(f"{kept} of {len(trained)} rows are kept from an earlier run.")
    if busy := sum(machine.was_busy(row.results[0]) for row in trained):
        notes.append(f"The machine was busy with other work during {busy} of {len(trained)} rows.")
    about = (
        f"{first['samples']:,} samples of {first['features']} features in {first['classes']} "
        f"classes, {first['test_samples']:,} to test; {tasks.SETTINGS[of.task]['kernel']!r}."
    )
    parts = [f"### {of.title}", about, table.markdown, "\n".join([*notes, *table.notes])]
    return "\n\n".join(part for part in parts if part)


def remarks(method: Method, seed: int, found: Result) -> str:
    words = [method.remark]
    if found["samples_seen"] < found["samples"]:
        words.append(f"stopped after {found['samples_seen']:,} of {found['samples']:,} samples")
    if found["predictions"] < found["test_samples"]:
        words.append(f"judged on {found['predictions']:,} test samples, prediction s scaled up")
    return "; ".join(words)


def draw(found: Mapping[str, Sequence[Row]], panels: Sequence[Any]) -> None:
    """Draw error against training time; numbers are those of the rows."""
    from matplotlib.lines import Line2D

    families = ("POLK", "BSGD", "SVC", "Nystroem", "RBFSampler", "river", "Vowpal")
    colors = dict(zip(families, figures.PALETTE, strict=True))
    for axes, (title, rows) in zip(panels, found.items(), strict=True):
        for number, row in enumerate((row for row in rows if row.sound), start=1):
            family = next(name for name in families if row.method.name.startswith(name))
            (result,) = row.results
            # No mistakes at all are drawn as half a one: the axis has no zero.
            at = result["seconds"], max(result["error"], 50 / result["predictions"])
            axes.plot(*at, "o", color=colors[family], markersize=5)
            axes.annotate(str(number), at, xytext=(4, 3), textcoords="offset points", fontsize=7)
        axes.set(title=title, xlabel="training, seconds", xscale="log", yscale="log")
        # Errors often stay within a decade, where only the minor ticks are.
        for formatted in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
            formatted("{x:g}")
        figures.bare(axes)
    panels[0].set_ylabel("test error, %")
    handles = [Line2D([], [], marker="o", linestyle="", color=color) for color in colors.values()]
    title = "numbers are those of the tables' rows"
    figures.legend_below(panels[0], handles, list(colors), title=title, ncols=len(colors))

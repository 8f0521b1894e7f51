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
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bench import figures, machine, report
from bench.baselines.peers import PACKAGES
from bench.classification import WARM_UP_SAMPLES, Method
from bench.cli import MissingDataError, positive_int
from bench.compare_settings import DATA_SETS, LARGE, SMALL, DataSet, Row, rows
from bench.comparison import load
from bench.experiments import Result, Run, Store, progress_of_runs, significant
from bench.tasks import REGULARIZATION, SETTINGS, Task

HEADER = ("#", "method", "training s", "CPU s", "times POLK", "prediction s", "error %")
HEADER += ("points", "bytes saved", "remarks")
LIMIT, QUICK_LIMIT = 600, 3
# Predictions may take this part of the limit; of a slow method only the first are made.
PREDICTION_SHARE = 0.5
LIMITED = ("river neighbors", "river fourier", "vowpal")
PREDICTIONS, ENOUGH_SECONDS = 3, 10.0
# Colours of the plot, by the first word of a method's name.
FAMILIES = ("POLK", "BSGD", "SVC", "Nystroem", "RBFSampler", "river", "Vowpal")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = [each.task for each in DATA_SETS]
    parser.add_argument("--data", type=Path, metavar="DIR", help="in place of PARSIMON_DATA")
    parser.add_argument(
        "--datasets",
        nargs="+",
        choices=names,
        default=names,
        metavar="NAME",
        help=f"some of {', '.join(names)}; all by default",
    )
    parser.add_argument("--only", metavar="TEXT", help="methods with this in their name, and POLK")
    parser.add_argument("--samples", type=positive_int, help="train on so many at most")
    parser.add_argument("--quick", action="store_true", help="little data: whether it works")
    parser.add_argument(
        "--limit",
        type=positive_int,
        metavar="SECONDS",
        help=f"training of river and Vowpal Wabbit; {LIMIT} by default",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("build/compare"),
        metavar="DIR",
        help="for kept runs and the plot; build/compare by default",
    )


def run(options: argparse.Namespace) -> int:
    if options.data is not None:
        os.environ["PARSIMON_DATA"] = str(options.data)
    found = []
    for data_set in DATA_SETS:
        if data_set.task not in options.datasets:
            continue
        data_set = data_set.shortened if options.quick else data_set
        if options.samples:
            data_set = replace(data_set, data={**data_set.data, "samples": options.samples})
        try:
            found.append(compare(data_set, options))
        except MissingDataError as error:
            print(f"Left out: {error}")
            continue
        print(f"\n{section(found[-1])}\n")
    if not found:
        return 2
    write_page(options.out / "compare.md", found)
    draw(options.out / "compare.png", found)
    if options.json:
        content = {"command": "compare", "quick": options.quick, "data_sets": found}
        content["peers"] = {package: installed(package) for package in PACKAGES.values()}
        report.write_json(options.json, {**content, **machine.environment()})
    return 0


def compare(data_set: DataSet, options: argparse.Namespace) -> Result:
    """Train all methods on a data set, and return what is known of it and of them."""
    task = shuffled(load(data_set.task, 0, data_set.data, options.out / "cache"))
    limit = options.limit or (QUICK_LIMIT if options.quick else LIMIT)
    store, results = Store(options.out / "runs"), {}
    wanted = [row for row in rows(data_set) if is_wanted(row.method, options.only)]
    plan = [row for row in wanted if not missing_package(row.method)]
    with progress_of_runs(len(plan), data_set.title) as advance, machine.one_thread():
        for row in plan:
            method = complete(row, results, limit)
            run = configuration(data_set, method)
            kept = store.find(run)
            result = kept or measure(task, method, limit)
            if kept is None:
                store.keep(run, result)
            results[method.name] = {
                "method": method.name,
                "kept": kept is not None,
                "settings": dict(method.settings),
                "loss": method.loss,
                "remarks": remarks(row, result),
                **result,
            }
            advance(run)
    return {
        "name": data_set.task,
        "title": data_set.title,
        "samples": len(task.X),
        "test_samples": len(task.X_test),
        "features": task.features,
        "classes": len(np.unique(task.y)),
        "kernel": repr(task.kernel),
        "rows": list(results.values()),
        "left_out": [
            f"{row.method.name}: pip install {missing_package(row.method)}"
            for row in wanted
            if row not in plan
        ],
    }


def shuffled(task: Task) -> Task:
    """Return a task whose samples are in an order that all methods share.

    Those to test with, too: the first of MNIST's are harder than the rest, and slow methods are
    judged on the first.
    """
    random = np.random.default_rng(0)
    train, test = random.permutation(len(task.X)), random.permutation(len(task.X_test))
    return replace(
        task, X=task.X[train], y=task.y[train], X_test=task.X_test[test], y_test=task.y_test[test]
    )


def is_wanted(method: Method, only: str | None) -> bool:
    return only is None or only.lower() in method.name.lower() or method.name in (SMALL, LARGE)


def installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def missing_package(method: Method) -> str | None:
    package = PACKAGES.get(method.kind)
    return package if package and installed(package) is None else None


def complete(row: Row, results: Mapping[str, Result], limit: float) -> Method:
    """Fill in what is only known now: the size of another model, the seconds allowed."""
    settings = dict(row.method.settings)
    if row.like:
        settings[row.size] = results[row.like]["points"]
    if row.method.kind in LIMITED:
        settings["seconds"] = limit
    return replace(row.method, settings=settings)


def configuration(data_set: DataSet, method: Method) -> Run:
    """Return all that a row depends on."""
    package = PACKAGES.get(method.kind, "scikit-learn")
    of_task = SETTINGS[data_set.task]
    settings = {
        **asdict(method),
        "kernel": of_task["kernel"],
        "learning_rate": of_task["learning_rate"],
        "regularization": REGULARIZATION,
        package: installed(package),
    }
    return Run(data_set.task, settings.pop("name"), 0, data_set.data, settings)


def measure(task: Task, method: Method, limit: float) -> Result:
    """Train, predict and save."""
    method.make(task, 0).fit(task.X[:WARM_UP_SAMPLES], task.y[:WARM_UP_SAMPLES])
    model = method.make(task, 0)
    with machine.Stopwatch() as watch:
        model.fit(task.X, task.y)
    allowed = PREDICTION_SHARE * limit if method.kind in LIMITED else float("inf")
    predicted, times = predict(model, task.X_test, allowed)
    count = len(predicted)
    return {
        "train_seconds": watch.elapsed.wall,
        "train_cpu_seconds": watch.elapsed.cpu,
        "samples": len(task.X),
        "samples_seen": getattr(model, "samples_seen_", len(task.X)),
        "predict_seconds": median(times) * len(task.X_test) / count,
        "predict_times": times,
        "predictions": count,
        "test_samples": len(task.X_test),
        "error": float(100 * (predicted != task.y_test[:count]).mean()),
        "points": int(model.model_order_),
        "bytes": saved_bytes(model),
    }


def predict(model: Any, X: Any, limit: float) -> tuple[Any, list[float]]:
    """Predict up to three times, the first samples only if all would take longer than allowed."""
    with machine.Stopwatch() as watch:
        model.predict(X[:WARM_UP_SAMPLES])
    affordable = min(len(X), WARM_UP_SAMPLES * limit / watch.elapsed.wall)
    X = X[: max(WARM_UP_SAMPLES, int(affordable))]
    times: list[float] = []
    while len(times) < PREDICTIONS and sum(times) < ENOUGH_SECONDS:
        with machine.Stopwatch() as watch:
            predicted = model.predict(X)
        times.append(watch.elapsed.wall)
    return predicted, times


class ByteCounter:
    """A file that only knows its size."""

    size = 0

    def write(self, data: Any) -> int:
        self.size += memoryview(data).nbytes
        return memoryview(data).nbytes


def saved_bytes(model: Any) -> int:
    """Return the size of a model as its package saves it: our file, Vowpal's, or a pickle."""
    if hasattr(model, "saved_bytes_"):
        return int(model.saved_bytes_)
    if hasattr(model, "save"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            model.save(path)
            return path.stat().st_size
    counter = ByteCounter()
    pickle.dump(model, counter)
    return counter.size


def remarks(row: Row, result: Result) -> str:
    words = [row.remark] if row.remark else []
    if result["samples_seen"] < result["samples"]:
        words.append(f"stopped after {result['samples_seen']:,} of {result['samples']:,} samples")
    if result["predictions"] < result["test_samples"]:
        words.append(f"judged on {result['predictions']:,} test samples, prediction s scaled up")
    return "; ".join(words)


def section(found: Result) -> str:
    """Write what was found on a data set as Markdown."""
    about = (
        f"{found['samples']:,} samples of {found['features']} features in {found['classes']} "
        f"classes, {found['test_samples']:,} to test; {found['kernel']}."
    )
    reference = next(row for row in found["rows"] if row["method"] == SMALL)["train_seconds"]
    lines = [cells(number, row, reference) for number, row in enumerate(found["rows"], start=1)]
    notes = [f"Left out, because it is not installed: {each}" for each in found["left_out"]]
    kept = sum(row["kept"] for row in found["rows"])
    if kept:
        notes.append(f"{kept} of {len(lines)} rows are kept from an earlier run.")
    busy = sum(
        row["train_seconds"] > machine.BUSY * row["train_cpu_seconds"] for row in found["rows"]
    )
    if busy:
        notes.append(f"The machine was busy with other work during {busy} of {len(lines)} rows.")
    parts = [f"### {found['title']}", about, report.markdown(HEADER, lines)]
    return "\n\n".join([*parts, *(["\n".join(notes)] if notes else [])])


def write_page(path: Path, found: Sequence[Result]) -> None:
    """Write what was printed, for a page of the documentation."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n\n".join(map(section, found))
    path.write_text(f"{text}\n", encoding="utf-8")
    print(f"  {path}")


def cells(number: int, row: Result, reference: float) -> list[str]:
    return [
        str(number),
        row["method"],
        significant(row["train_seconds"]),
        significant(row["train_cpu_seconds"]),
        significant(row["train_seconds"] / reference, 2),
        significant(row["predict_seconds"]),
        f"{row['error']:.2f}",
        f"{row['points']:,}",
        f"{row['bytes']:,}",
        row["remarks"],
    ]


def draw(path: Path, found: Sequence[Result]) -> None:
    """Draw error against training time; numbers are those of the rows."""
    sheet = figures.new_sheet(path, len(found), width=5.0, height=5.6)
    if sheet is None:
        return
    from matplotlib.lines import Line2D
    from matplotlib.ticker import NullFormatter, StrMethodFormatter

    from parsimon.plotting._common import PALETTE

    colors = dict(zip(FAMILIES, PALETTE, strict=True))
    for axes, each in zip(sheet.subplots(1, len(found), squeeze=False)[0], found, strict=True):
        for number, row in enumerate(each["rows"], start=1):
            # No mistakes at all are drawn as half a one: the axis has no zero.
            at = row["train_seconds"], max(row["error"], 50 / row["predictions"])
            axes.plot(*at, "o", color=colors[family(row)], markersize=5)
            axes.annotate(str(number), at, xytext=(4, 3), textcoords="offset points", fontsize=7)
        axes.set(title=each["title"], xlabel="training, seconds", xscale="log", yscale="log")
        # Errors often stay within a decade, where only the minor ticks are.
        low, high = axes.get_ylim()
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(
            StrMethodFormatter("{x:g}") if high < 20 * low else NullFormatter()
        )
        axes.spines[["top", "right"]].set_visible(False)
    sheet.axes[0].set_ylabel("test error, %")
    names = [Line2D([], [], marker="o", linestyle="", color=color) for color in colors.values()]
    sheet.legend(
        names,
        colors,
        title="numbers are those of the tables' rows",
        loc="outside lower center",
        ncols=len(colors),
        frameon=False,
    )
    figures.save(sheet, path)


def family(row: Result) -> str:
    return next(name for name in FAMILIES if row["method"].startswith(name))

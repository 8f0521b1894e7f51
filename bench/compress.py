"""Models of other packages, and ours, with fewer points: what remains of them.

Large models are fitted to two thirds of the training samples of six data sets, and compressed with
the rest (on MNIST both with all of them): as far as at most 0.5 % of the labels change on these, or
a prediction by a fifth of the targets' standard deviation; MNIST and densities to a number of
points. What changes, scores and times are of test samples, which nothing else has seen. Fitted
models of other packages are kept in `--out`, where scores against points are drawn, too. The exit
code is 0 if the promises for MNIST hold and 1 if not.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Memory
from sklearn.base import is_classifier, is_outlier_detector, is_regressor
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.neighbors import KernelDensity
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

import parsimon
from bench import accuracy, figures, machine, report
from bench.cli import left_out
from bench.compare import saved_bytes
from bench.figures import Panel
from bench.report import Column, Promise, Table, at_most, one
from bench.runner import Experiment, Figures, Method, Row, Run
from bench.tasks import Task

LABELS, DEVIATIONS = 0.005, 0.2  # what may change on the samples that are given
TIMED, SECONDS = 200, 0.5  # test samples, and for how long they are predicted again and again
# In the plot: parts of the points, but no more than these.
PARTS, MOST = (2, 4, 8, 16, 32), 2400


@dataclass(frozen=True)
class Source:
    """A data set, and the large models that are fitted to it."""

    title: str
    methods: Sequence[Method]
    samples: int | None = None  # to train on
    points: int | None = None  # of the small models, in place of a tolerance


def method(make: Any, **settings: Any) -> Method:
    return Method(make if isinstance(make, str) else make.__name__, make, settings)


def classifiers(nu: float, **settings: Any) -> tuple[Method, ...]:
    machines = method(SVC, **settings), method(NuSVC, nu=nu), method(OneClassSVM, nu=0.1)
    return (*machines, method("POLKClassifier"))


# Eight or ten features of variance 1: two samples have a distance of about four.
process: dict[str, Any] = {"kernel": RBF(3.0), "optimizer": None}
REGRESSORS = (
    method(SVR),
    method(NuSVR),
    method(KernelRidge, kernel="rbf", alpha=0.1),
    method(GaussianProcessRegressor, alpha=0.1, normalize_y=True, **process),
    method("POLKRegressor"),
    method(KernelDensity, bandwidth=0.5),
)
PAPER = {"C": 1.0, "gamma": 1 / 32, "cache_size": 2000}
SOURCES = {
    "mnist": Source("MNIST", (method(SVC, **PAPER),), points=1200),
    "usps": Source("USPS", classifiers(0.05, C=10.0)),
    "digits": Source("Digits", classifiers(0.05, C=10.0)),
    "cod_rna": Source(
        "cod-rna", (*classifiers(0.1), method(GaussianProcessClassifier, **process)), 6000
    ),
    "abalone": Source("Abalone", REGRESSORS),
    "california_housing": Source("California housing", REGRESSORS, 6000),
}
# Gaussian processes take the cube of the number of samples.
FEWER = {"GaussianProcessClassifier": 500, "GaussianProcessRegressor": 1000}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--data", nargs="+", choices=SOURCES, default=[*SOURCES], help="all by default")
    add("--quick", action="store_true", help="little data: whether it works, no verdict")
    kept = "folder for large models and the plot; build/compress by default"
    add("--out", type=Path, default=Path("build/compress"), metavar="DIR", help=kept)
    report.add_json(parser)
    parser.set_defaults(runs=1)


def run(options: argparse.Namespace) -> int:
    found: dict[str, Sequence[Row]] = {}
    once = argparse.Namespace(**{**vars(options), "out": None})  # no result is kept
    for name in options.data:
        source = SOURCES[name]
        experiment = Experiment(
            name,
            source.title,
            source.methods,
            load=partial(accuracy.load, name=name, cache=options.out),
            train=partial(measure, Memory(options.out / "large", verbose=0), source),
            data={"samples": source.samples},
            quick={"samples": 400, "test_samples": 200},
        )
        with left_out():
            found[source.title] = experiment.rows(once)
    if found:
        tables = [Table.of_rows(title, rows, COLUMNS) for title, rows in found.items()]
        lines = [[table.title, *line] for table in tables for line in table.lines]
        header = ("data", *tables[0].header)
        Table("Compressed", header, lines).publish(options.out / "compress.csv")
        figures.draw_panels(options.out / "compress.png", [*plots(found)])
    code, judged = report.verdict([] if options.quick else promises(found))
    report.write_json(options, rows=report.as_dicts(found), promises=judged)
    return code if found else 2


def fitted(model: Any, X: Any, y: Any, X_test: Any) -> tuple[Any, Any]:
    """Return a model that was fitted, and its answers."""
    model.fit(X, y)
    return model, answers(model, X_test)


def answers(model: Any, X: Any) -> Any:
    return model.predict(X) if hasattr(model, "predict") else np.exp(model.score_samples(X))


def measure(memory: Memory, source: Source, run: Run) -> Figures:
    """Fit a large model and compress it, as far as it should be and to parts of its points."""
    task = run.task
    if is_regressor(run.make()):
        deviations = np.std(task.y)
        task = replace(task, y=task.y / deviations, y_test=task.y_test / deviations)
    count = len(task.X) if source.points else 2 * len(task.X) // 3
    given = task.X if source.points else task.X[count:]
    count = min(count, FEWER.get(run.method.name, count))
    # What is parsimon's is not kept, because it is what changes.
    fit = fitted if isinstance(run.method.estimator, str) else memory.cache(fitted)
    large, before = fit(run.make(), task.X[:count], task.y[:count], task.X_test)
    small, known = parsimon.compress(large, **limits(large, source, count), X=given)
    after = answers(small, task.X_test)
    at_most = known.labels_changed_at_most
    return {
        "samples": count,
        "points_before": known.points_before,
        "points": known.points_after,
        "certified": known.certified_bound,
        "changed": changed(large, before, after),
        "at_most": None if at_most is None else 100 * at_most,
        "score_before": score(large, before, task.y_test),
        "score": score(small, after, task.y_test),
        "bytes_before": saved_bytes(large),
        "bytes": saved_bytes(small),
        "us_before": microseconds(large, task.X_test),
        "us": microseconds(small, task.X_test),
        "curve": [*curve(large, known.points_before, given, task)],
    }


def limits(large: Any, source: Source, samples: int) -> Mapping[str, Any]:
    if source.points or not hasattr(large, "predict"):
        return {"max_points": source.points or samples // 4}
    return {"tolerance": DEVIATIONS if is_regressor(large) else LABELS}


def curve(large: Any, points: int, given: Any, task: Task) -> Iterator[tuple[int, Any]]:
    """Compress to parts of the points, and tell how good that is."""
    if score(large, task.y_test, task.y_test) is None:
        return
    for count in (points // part for part in PARTS):
        if 0 < count <= MOST:
            small, known = parsimon.compress(large, max_points=count, X=given)
            yield known.points_after, score(large, answers(small, task.X_test), task.y_test)


def score(model: Any, predicted: Any, y: Any) -> float | None:
    """Return accuracy or R^2 in percent, of what has one."""
    if is_classifier(model):
        return 100 * float(np.mean(predicted == y))
    if is_regressor(model):
        return 100 * float(1 - np.mean((predicted - y) ** 2) / np.var(y))
    return None


def changed(model: Any, before: Any, after: Any) -> float:
    """Return the share of labels that are others, or how far answers move beside their size."""
    if is_classifier(model) or is_outlier_detector(model):
        return 100 * float(np.mean(before != after))
    size = np.std(before) if is_regressor(model) else np.sqrt(np.mean(before**2))
    return 100 * float(np.sqrt(np.mean((after - before) ** 2)) / size)


def microseconds(model: Any, X: Any) -> float:
    X = X[:TIMED]
    return 1e6 * machine.best_seconds(partial(answers, model, X), SECONDS) / len(X)


def size(values: Sequence[float]) -> str:
    return f"{values[0] / 1024:,.0f}"


COLUMNS = (
    Column("points before", "points_before", one(",")),
    Column("after", "points", one(",")),
    Column("certified bound", "certified", one(".3g")),
    Column("changed %", "changed", one(".2f")),
    Column("reported: at most", "at_most", one(".2f")),
    Column("score % before", "score_before", one(".2f")),
    Column("after", "score", one(".2f")),
    Column("KB before", "bytes_before", size),
    Column("after", "bytes", size),
    Column("us before", "us_before", one(",.1f")),
    Column("after", "us", one(",.1f")),
)


def plots(found: Mapping[str, Sequence[Row]]) -> Iterator[Panel]:
    """Draw scores against points, those of the large models at the end."""
    for title, rows in found.items():
        curves = {}
        for row in rows:
            for result in row.sound:
                if result["score"] is not None:
                    all_of_them = (result["points_before"], result["score_before"])
                    x, y = zip(*sorted([*map(tuple, result["curve"]), all_of_them]), strict=True)
                    curves[row.method.name] = (x, y)
        yield Panel(title, curves, "points", log_x=True)


def promises(found: Mapping[str, Sequence[Row]]) -> Iterator[Promise]:
    for row in found.get("MNIST", ()):
        (result,) = row.sound
        name = f"MNIST, {row.method.name} of {result['points_before']:,} vectors"
        yield at_most(f"{name}, points", result["points"], 1200)
        yield at_most(f"{name}, error %", 100 - result["score"], 1.6)

"""Stochastic low-rank kernel learning (ICML 2011): Tables 2 and 3, MNIST, Figures 1 to 3.

Figures 1 and 3 are of the paper's own selection of columns, the rest is at the minimum.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from bench import hog, machine
from bench.baselines import regression
from bench.cli import MissingDataError
from bench.experiments import Result, Run, Store, Table, mean_and_sd, significant, span, times
from bench.papers import slkl_figures
from bench.slkl_settings import (
    DIGIT,
    DIGIT_WIDTH,
    DIGITS,
    MNIST_COLUMNS,
    MNIST_TOLERANCE,
    MNIST_VARIANCE,
    PRINTED_DIGITS,
    QUICK_MNIST,
    QUICK_RUNS,
    RUNS,
    SETTINGS,
    TASKS,
    Array,
    Data,
    Task,
    load_data,
    make,
)
from parsimon import SLKLClassifier, SLKLRegressor

# Endings of the rows of SLKL.
CENTERING = {"": False, ", y centred": True}


def run(options: argparse.Namespace) -> int:
    store = Store(options.out / "runs")
    runs = options.runs or (QUICK_RUNS if options.quick else RUNS)
    tables: dict[str, Callable[..., Table]] = {
        **{f"table2-{task.name}": partial(table_two, task) for task in TASKS},
        "table3": table_three,
        "mnist": mnist,
    }
    for name, table in tables.items():
        try:
            found = table(store, runs, quick=options.quick)
        except MissingDataError as error:
            print(f"Left out: {error}")
            continue
        found.publish(options.out / f"slkl-{name}.csv")
    slkl_figures.draw(options.out, store, runs, quick=options.quick)
    return 0


# -- Table 2 ---------------------------------------------------------------------------------------


def table_two(task: Task, store: Store, runs: int, *, quick: bool) -> Table:
    columns = task.columns[:1] if quick else task.columns
    settings = {**SETTINGS, "columns": columns, "variance": task.variance}
    plan = [(Run(task.name, "SLKL", seed, settings=settings), task) for seed in range(runs)]
    results = store.results(plan, train_all, f"SLKL, {task.name}")
    return table(f"Table 2, {task.name}: mean squared error", columns, results, task.printed)


def train_all(run: Run, task: Task) -> Result:
    """Return the figures of all methods, for each number of columns."""
    random = np.random.RandomState(run.seed)
    data = task.draw(random)
    X, y, X_test, y_test = data
    full = mean_square(regression.kernel_ridge(X, y, X_test, task.width) - y_test)
    return by_row(
        {"KRRn": full, **one_run(task, data, count, random)} for count in run.settings["columns"]
    )


def one_run(task: Task, data: Data, count: int, random: np.random.RandomState) -> dict[str, Any]:
    """Return the errors of all methods with so many columns, and the numbers that SLKL uses."""
    X, y, X_test, y_test = data
    points = random.choice(len(X), count, replace=False)
    low_rank = (X, y, X_test, task.width, X[points])
    predictions = {
        "KRRM": regression.kernel_ridge(X[points], y[points], X_test, task.width),
        "Unif": regression.uniform(*low_rank),
        # With all points it is KRRn.
        "Nyst": regression.nystroem(*low_rank) if count < len(X) else None,
    }
    found = {
        name: None if predicted is None else mean_square(predicted - y_test)
        for name, predicted in predictions.items()
    }
    for ending, center in CENTERING.items():
        model = make(SLKLRegressor, task.width, count, random, center=center).fit(X, y)
        predicted = model.predict(X_test)
        found[f"SLKL{ending}"] = mean_square(predicted - y_test)
        found[f"m0{ending}"] = len(model.support_)
        if task.name == "sinc":
            clean = np.sinc(np.linalg.norm(X_test, axis=1) / np.pi)
            found[f"SLKL{ending}, clean targets"] = mean_square(predicted - clean)
    return found


def mean_square(values: Array) -> float:
    return float(np.mean(values**2))


# -- digits ----------------------------------------------------------------------------------------


def table_three(store: Store, runs: int, *, quick: bool) -> Table:
    """USPS, one digit against the rest."""
    columns = DIGITS[:1] if quick else DIGITS
    settings = {**SETTINGS, "columns": columns, "width": DIGIT_WIDTH}
    plan = [(Run("usps", "SLKL", k, {"digit": DIGIT}, settings), None) for k in range(runs)]

    @lru_cache(maxsize=1)
    def data() -> Data:
        (X, labels), (X_test, labels_test) = (
            load_data("usps", subset=subset, pixel_range=None, return_X_y=True)
            for subset in ("train", "test")
        )
        y, y_test = (np.where(each == DIGIT, 1.0, -1.0) for each in (labels, labels_test))
        return X, y, X_test, y_test

    def train(run: Run, _: None) -> Result:
        random = np.random.RandomState(run.seed)
        return by_row(count_errors(data(), count, random) for count in columns)

    results = store.results(plan, train, "SLKL, USPS")
    title = f"Table 3, USPS, {DIGIT} against the rest: errors on test data"
    return table(title, columns, results, PRINTED_DIGITS)


def count_errors(data: Data, count: int, random: np.random.RandomState) -> dict[str, int]:
    """Return the errors with so many columns, and the numbers that SLKL uses."""
    X, y, X_test, y_test = data
    points = random.choice(len(X), count, replace=False)
    predicted = regression.nystroem(X, y, X_test, DIGIT_WIDTH, X[points])
    found = {"Nyst": int(np.sum((predicted > 0) != (y_test > 0)))}
    for ending, center in CENTERING.items():
        model = make(SLKLClassifier, DIGIT_WIDTH, count, random, center=center).fit(X, y)
        found[f"SLKL{ending}"] = int(np.sum(model.predict(X_test) != y_test))
        found[f"m0{ending}"] = len(model.support_)
    return found


def mnist(store: Store, runs: int, *, quick: bool) -> Table:
    """MNIST on histograms of gradients, one against all; one run, whatever `runs` says."""
    size: Mapping[str, int] = QUICK_MNIST if quick else {"columns": MNIST_COLUMNS}
    settings = {**SETTINGS, "tol": MNIST_TOLERANCE, "variance": MNIST_VARIANCE}
    plan = [(Run("mnist of gradients", "SLKL", 0, size, settings), None)]
    (found,) = store.results(plan, train_mnist, "SLKL, MNIST")
    return Table(
        f"MNIST, {found['features']:,} histograms of gradients, {found['samples']:,} samples, "
        f"{found['columns']:,} columns, one against all: one run, the paper's figure in [brackets]",
        ("method", "error %", "columns a class", "columns in all", "seconds", "CPU s"),
        [
            [
                "SLKL",
                f"{found['error']:.2f} [around 2]",
                span(found["columns_by_class"]),
                f"{found['model_order']:,}",
                significant(found["seconds"], 2),
                significant(found["cpu_seconds"], 2),
            ]
        ],
    )


def train_mnist(run: Run, _: None) -> Result:
    X, y = gradients("train", run.data.get("samples"))
    X_test, y_test = gradients("test", run.data.get("test_samples"))
    # The paper does not say how its features are scaled: so that the width is a typical distance.
    scale = np.sqrt(MNIST_VARIANCE / np.median(_squared_distances(X[:1000])))
    width = float(np.sqrt(MNIST_VARIANCE))
    model = make(SLKLClassifier, width, run.data["columns"], run.seed, tol=run.settings["tol"])
    with machine.Stopwatch() as watch:
        model.fit(scale * X, y)
    return {
        "error": 100 * (1 - model.score(scale * X_test, y_test)),
        "samples": len(X),
        "features": X.shape[1],
        "columns": len(model.columns_),
        "columns_by_class": (model.mu_ > 0).sum(axis=0),
        "model_order": model.model_order_,
        "seconds": watch.elapsed.wall,
        "cpu_seconds": watch.elapsed.cpu,
    }


def gradients(subset: str, samples: int | None) -> tuple[Array, Array]:
    images, labels = load_data("mnist", subset=subset, dtype=np.float32, return_X_y=True)
    return hog.features(images[:samples]), labels[:samples]


def _squared_distances(X: Array) -> Array:
    norms = (X**2).sum(axis=1)
    squared = norms[:, None] + norms - 2 * X @ X.T
    return np.asarray(squared[np.triu_indices_from(squared, 1)])


# -- tables ----------------------------------------------------------------------------------------


def by_row(columns: Any) -> Result:
    """Turn figures by row, one mapping a column of the table, into lists by row."""
    found = list(columns)
    return {name: [each[name] for each in found] for name in found[0]}


def table(
    title: str,
    columns: Sequence[int],
    results: Sequence[Result],
    printed: Mapping[str, Sequence[str]],
) -> Table:
    """Return a row a method, a column a number M of columns."""

    def cell(name: str, k: int) -> str:
        values = [result[name][k] for result in results]
        ours = "-" if None in values else mean_and_sd(values)
        return f"{ours} [{printed[name][k]}]" if name in printed else ours

    return Table(
        f"{title}, {times(len(results))}; means, standard deviations in (parentheses), the paper's "
        "figures in [brackets]",
        ("method", *(f"M = {count}" for count in columns)),
        [[name, *(cell(name, k) for k in range(len(columns)))] for name in results[0]],
    )

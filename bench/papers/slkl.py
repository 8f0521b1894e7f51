"""Stochastic low-rank kernel learning (ICML 2011): Tables 2 and 3, MNIST, Figures 1 to 3.

Columns are drawn anew in every run. Figures 1 and 3 are of the paper's own selection of columns,
the rest is at the minimum.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from scipy.spatial.distance import pdist

from bench import machine
from bench.baselines import regression
from bench.cli import left_out
from bench.papers import hog, slkl_figures
from bench.papers.slkl_data import DATA_SETS, QUICK_RUNS, RUNS, SETTINGS, DataSet
from bench.report import Column, Table, brackets, mean_and_sd, span, times, two_digits
from bench.runner import Experiment, Figures, Method, Result, Row, Run
from bench.tasks import Array, Task, train_and_test
from parsimon import kernels

# Endings of the rows of SLKL.
CENTERING = {"": False, ", y centred": True}


def run(options: argparse.Namespace) -> int:
    for name, data_set in DATA_SETS.items():
        with left_out():
            (row,) = experiment(data_set).rows(options)
            table(data_set, row.results).publish(options.out / f"slkl-{name}.csv")
    with left_out():
        mnist_table(MNIST.rows(options)).publish(options.out / "slkl-mnist.csv")
    slkl_figures.draw(options)
    return 0


def experiment(data_set: DataSet) -> Experiment:
    return Experiment(
        data_set.name,
        f"SLKL, {data_set.name}",
        [Method("SLKL", data_set.estimator, SETTINGS)],
        load=data_set.load,
        train=train,
        runs=RUNS,
        data={"columns": data_set.columns},
        offered={"kernel": kernels.Gaussian(data_set.width), "width": data_set.width},
        quick={"columns": data_set.columns[:1]},
        quick_runs=QUICK_RUNS,
    )


def train(run: Run) -> Figures:
    """Return the figures of all methods, each a list by the number of columns."""
    task, width, random = run.task, run.offered["width"], run.task.extra["random"]
    X, y, X_test, y_test = task.X, task.y, task.X_test, task.y_test
    is_regression = run.method.kind == "SLKLRegressor"

    def error(predicted: Array, truth: Array = y_test) -> float:
        wrong = (predicted > 0) != (truth > 0)
        return float(np.mean((predicted - truth) ** 2)) if is_regression else int(np.sum(wrong))

    full = error(regression.kernel_ridge(X, y, X_test, width)) if is_regression else None
    columns = []
    for count in task.extra["columns"]:
        points = random.choice(len(X), count, replace=False)
        low_rank = (X, y, X_test, width, X[points])
        found: dict[str, float | None] = {}
        if is_regression:
            found["KRRn"] = full
            few = regression.kernel_ridge(X[points], y[points], X_test, width)
            found["KRRM"] = error(few)
            found["Unif"] = error(regression.uniform(*low_rank))
        # With all points it is KRRn.
        found["Nyst"] = error(regression.nystroem(*low_rank)) if count < len(X) else None
        for ending, center in CENTERING.items():
            model = run.make(n_columns=count, random_state=random, center=center).fit(X, y)
            predicted = model.predict(X_test)
            found[f"SLKL{ending}"] = error(predicted)
            found[f"m0{ending}"] = len(model.support_)
            if task.name == "sinc":
                clean = np.sinc(np.linalg.norm(X_test, axis=1) / np.pi)
                found[f"SLKL{ending}, clean targets"] = error(predicted, clean)
        columns.append(found)
    return {name: [found[name] for found in columns] for name in columns[0]}


def table(data_set: DataSet, results: Sequence[Result]) -> Table:
    """Return one line per method, one column per number M of columns."""
    methods, printed = results[0].figures, data_set.printed
    counts = data_set.columns[: len(next(iter(methods.values())))]

    def cell(name: str, k: int) -> str:
        values = [result[name][k] for result in results]
        ours = "-" if None in values else mean_and_sd(values)
        return ours + brackets(printed[name][k] if name in printed else None)

    return Table(
        f"{data_set.title}, {times(len(results))}; means, standard deviations in (parentheses), "
        "the paper's figures in [brackets]",
        ("method", *(f"M = {count}" for count in counts)),
        [[name, *(cell(name, k) for k in range(len(counts)))] for name in methods],
    )


MNIST_VARIANCE, MNIST_SETTINGS = 4.0, {**SETTINGS, "tol": 1e-4}


def load_gradients(
    seed: int, *, columns: int, samples: int | None = None, test_samples: int | None = None
) -> Task:
    """Return MNIST as histograms of gradients."""
    train, test = train_and_test("mnist", dtype=np.float32, return_X_y=True)
    X, X_test = hog.features(train[0][:samples]), hog.features(test[0][:test_samples])
    # The paper does not say how its features are scaled: so that the width is a typical distance.
    scale = np.sqrt(MNIST_VARIANCE / np.median(pdist(X[:1000], "sqeuclidean")))
    y, y_test = train[1][:samples], test[1][:test_samples]
    return Task("mnist", scale * X, y, scale * X_test, y_test, {"columns": columns})


def train_mnist(run: Run) -> Figures:
    task = run.task
    model = run.make(n_columns=task.extra["columns"])
    with machine.Stopwatch() as watch:
        model.fit(task.X, task.y)
    return {
        "error": 100 * (1 - model.score(task.X_test, task.y_test)),
        "samples": len(task.X),
        "features": task.features,
        "columns": len(model.columns_),
        "columns_by_class": (model.mu_ > 0).sum(axis=0).tolist(),
        "model_order": model.model_order_,
        **watch.figures,
    }


MNIST = Experiment(
    "mnist of gradients",
    "SLKL, MNIST",
    [Method("SLKL", "SLKLClassifier", MNIST_SETTINGS, printed={"error": "around 2"}, runs=1)],
    load=load_gradients,
    train=train_mnist,
    data={"columns": 1000},
    offered={"kernel": kernels.Gaussian(MNIST_VARIANCE**0.5)},
    quick={"samples": 2000, "test_samples": 1000, "columns": 200},
)


def mnist_table(rows: Sequence[Row]) -> Table:
    found = rows[0].results[0]
    return Table.of_rows(
        f"MNIST, {found['features']:,} histograms of gradients, {found['samples']:,} samples, "
        f"{found['columns']:,} columns, one against all: one run, the paper's figure in [brackets]",
        rows,
        (
            Column("error %", "error"),
            Column("columns of a class", "columns_by_class", lambda runs: span(runs[0])),
            Column("columns in all", "model_order", span),
            Column("seconds", "seconds", two_digits),
            Column("CPU s", "cpu_seconds", two_digits),
        ),
    )

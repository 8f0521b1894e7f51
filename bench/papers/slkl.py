"""Stochastic low-rank kernel learning (ICML 2011): Tables 2 and 3, MNIST, Figures 1 to 3.

lambda = 1, nu = 0.01, Gaussian kernels of the printed widths. Data are drawn or split anew in every
run, where the paper has one split, and so are the columns. Figures 1 and 3 are of the paper's own
selection of columns, the rest is at the minimum.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.exceptions import ConvergenceWarning

from bench import figures, machine, tasks
from bench.baselines import regression
from bench.cli import left_out
from bench.figures import Panel
from bench.papers import hog
from bench.report import Column, Table, brackets, mean_and_sd, span, times, two_digits
from bench.runner import Experiment, Figures, Method, Result, Run
from bench.tasks import Array, Task, load_data, train_and_test
from parsimon import datasets, kernels

Arrays = tuple[Array, Array, Array, Array]

RUNS, QUICK_RUNS = 20, 2
SPARSITY = 0.01
# The paper stops at 1e-4, where the number of columns has not settled.
SETTINGS = {"nu": SPARSITY, "tol": 1e-5}
# The digit that Table 3 tells from the others.
DIGIT = 4

# By data set and row, for each number M of columns.
PRINTED = """
    sinc     KRRn  0.009   0.009   0.009
    sinc     KRRM  0.0146  0.0124  0.0099
    sinc     Unif  0.0124  0.0124  0.0124
    sinc     SLKL  0.0106  0.0103  0.0104
    sinc     m0    83      108     139
    boston   KRRn  10.17   10.17   10.17
    boston   KRRM  33.27   16.89   10.17
    boston   Unif  149.7   147.84  147.72
    boston   SLKL  20.17   13.1    11.43
    boston   m0    108     161     184
    abalone  KRRn  6.91    6.91    6.91
    abalone  KRRM  6.14    5.51    5.25
    abalone  Unif  10.04   9.96    9.99
    abalone  SLKL  5.04    4.94    4.95
    abalone  m0    159     191     253
    usps     Nyst  101.3   34.5    35.9
    usps     SLKL  76.3    47.6    41.5
    usps     m0    61      210     515
"""


@dataclass(frozen=True)
class DataSet:
    """How to draw it, the width of the kernel, the numbers M of columns."""

    name: str
    draw: Callable[[np.random.RandomState], Arrays]
    width: float
    columns: tuple[int, ...]
    estimator: str = "SLKLRegressor"
    errors: str = "mean squared error"

    @property
    def printed(self) -> dict[str, list[str]]:
        lines = [line.split() for line in PRINTED.strip().splitlines()]
        return {method: figures for name, method, *figures in lines if name == self.name}

    def load(self, seed: int, **extra: Any) -> Task:
        """Draw the data; training goes on with the same random numbers."""
        random = np.random.RandomState(seed)
        return Task(self.name, *self.draw(random), {"random": random, **extra})


def draw_sinc(random: np.random.RandomState) -> Arrays:
    X, y = datasets.make_sinc(2000, random_state=random)
    return X[:1000], y[:1000], X[1000:], y[1000:]


def split(name: str, count: int, random: np.random.RandomState) -> Arrays:
    X, y = load_data(name, standardize=True, return_X_y=True)
    order = random.permutation(len(X))
    return X[order[:count]], y[order[:count]], X[order[count:]], y[order[count:]]


def one_digit(random: np.random.RandomState) -> Arrays:
    """Return USPS with targets 1 for the digit and -1 for the rest."""
    parts = train_and_test("usps", pixel_range=None, return_X_y=True)
    (X, y), (X_test, y_test) = ((X, np.where(y == DIGIT, 1.0, -1.0)) for X, y in parts)
    return X, y, X_test, y_test


BOSTON, ABALONE = partial(split, "boston", 350), partial(split, "abalone", 3000)
USPS = f"errors on test data, {DIGIT} against the rest"
SINC = DataSet("sinc", draw_sinc, 1.0, (256, 512, 1000))
DATA_SETS = {
    "table2-sinc": SINC,
    "table2-boston": DataSet("boston", BOSTON, 3.25**0.5, (128, 256, 350)),
    "table2-abalone": DataSet("abalone", ABALONE, 2.5**0.5, (512, 1024, 3000)),
    "table3": DataSet("usps", one_digit, 8.0, (64, 256, 1024), "SLKLClassifier", USPS),
}

# Endings of the rows of SLKL.
CENTERING = {"": False, ", y centred": True}


def run(options: argparse.Namespace) -> int:
    for name, data_set in DATA_SETS.items():
        with left_out():
            (row,) = experiment(data_set).rows(options)
            table(data_set, row.results).publish(options.out / f"slkl-{name}.csv")
    with left_out():
        rows = MNIST.rows(options)
        sizes = "{samples:,} samples, {features:,} histograms of gradients, {columns:,} columns"
        title = f"MNIST, {sizes.format(**rows[0].results[0].figures)}, one against all, one run"
        Table.of_rows(title, rows, MNIST_COLUMNS).publish(options.out / "slkl-mnist.csv")
    draw_figures(options)
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
        f"{data_set.name}, {data_set.errors}, {times(len(results))}; means, standard deviations in "
        "(parentheses), the paper's figures in [brackets]",
        ("method", *(f"M = {count}" for count in counts)),
        [[name, *(cell(name, k) for k in range(len(counts)))] for name in methods],
    )


MNIST_VARIANCE, MNIST_SETTINGS = 4.0, {**SETTINGS, "tol": 1e-4}


def load_gradients(seed: int, *, columns: int, **sizes: int) -> Task:
    """Return MNIST as histograms of gradients."""
    task = tasks.load(seed, name="mnist", **sizes)
    X, X_test = hog.features(task.X), hog.features(task.X_test)
    # The paper does not say how its features are scaled: so that the width is a typical distance.
    scale = np.sqrt(MNIST_VARIANCE / np.median(pdist(X[:1000], "sqeuclidean")))
    return replace(task, X=scale * X, X_test=scale * X_test, extra={"columns": columns})


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


MNIST_COLUMNS = (
    Column("error %", "error"),
    Column("columns of a class", "columns_by_class", lambda runs: span(runs[0])),
    Column("columns in all", "model_order", span),
    Column("seconds", "seconds", two_digits),
    Column("CPU s", "cpu_seconds", two_digits),
)


OFFERED = {"kernel": kernels.Gaussian(SINC.width), **SETTINGS, "center": False}
# Figure 2: nu.
PRICES = (0.001, SPARSITY, 0.1, 1.0)


def draw_figures(options: argparse.Namespace) -> None:
    """Draw the objective and the columns in use along the epochs, and by the number of columns."""
    out, paths, (row,) = options.out, EPOCHS.rows(options), COUNTS.rows(options)

    def along(x: str | None, values: Callable[[Result], Any]) -> dict[str, Any]:
        """Return the curves of all runs, by the kind of step; without an x, by epoch."""
        first = paths[0].results[0]
        epochs = first[x] if x else range(len(first["objective"]))
        return {each.method.name: (epochs, list(map(values, each.results))) for each in paths}

    objective = along(None, lambda found: found["objective"])
    above = along(None, lambda found: np.subtract(found["objective"], found["minimum"]))
    panels = [
        Panel("Objective", objective, "epochs", logarithmic=True),
        Panel("Objective above its minimum", above, "epochs", logarithmic=True),
    ]
    figures.draw_panels(out / "slkl-figure1.png", panels)
    counts, printed = row.results[0]["counts"], [float(value) for value in SINC.printed["m0"]]
    curves: dict[str, Any] = {
        f"nu = {price:g}": (counts, np.mean(row.values(f"{price:g}"), axis=0)) for price in PRICES
    }
    curves[f"nu = {SPARSITY:g}, printed"] = (SINC.columns, printed)
    figures.draw_panels(out / "slkl-figure2.png", [Panel("Columns in use", curves, "columns M")])
    used = along("looks", lambda found: found["m0"])
    last = paths[0].results[0]["looks"][-1]
    least = paths[0].results[0]["m0 at the minimum"]
    for name, value in (("printed", printed[-1]), ("at the minimum", least)):
        used[name] = ([0, last], [value, value])
    figures.draw_panels(out / "slkl-figure3.png", [Panel("Columns in use", used, "epochs")])


def watch(run: Run) -> Figures:
    """Train with 1, 2, ... epochs: with the same seed, each is the beginning of all longer ones."""
    X, y = run.task.X, run.task.y
    to_the_end = Method("minimum", "SLKLRegressor").make(
        {**run.offered, "n_columns": len(X), "random_state": 0}
    )
    minimum, model = to_the_end.fit(X, y), run.make(n_columns=len(X))
    # The epochs after which the weights are counted, further and further apart.
    looks = sorted({round(value) for value in np.geomspace(1, run.task.extra["epochs"], 30)})
    used = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for epochs in looks:
            model.set_params(max_iter=epochs).fit(X, y)
            used.append(len(model.support_))
    return {
        "objective": list(model.objective_),
        "minimum": minimum.objective_[-1],
        "looks": [0, *looks],
        "m0": [0, *used],
        "m0 at the minimum": len(minimum.support_),
    }


def count_used(run: Run) -> Figures:
    """Return m0 at the minimum by nu, each a list over M."""
    task, counts = run.task, run.task.extra["counts"]

    def used(count: int, price: float) -> int:
        random = task.extra["random"]
        model = run.make(n_columns=count, random_state=random, nu=price)
        return len(model.fit(task.X, task.y).support_)

    found = {f"{price:g}": [used(count, price) for count in counts] for price in PRICES}
    return {**found, "counts": counts}


# The paper's step, and the one that never increases the objective; all samples are columns.
EPOCHS = Experiment(
    "sinc epochs",
    "SLKL, epochs",
    [
        Method("Newton steps", "SLKLRegressor", {"selection": "uniform", "step": "newton"}),
        Method("exact steps", "SLKLRegressor", {"selection": "uniform", "step": "exact"}),
    ],
    # The same samples for all seeds: what differs is the order of the columns.
    load=lambda seed, **data: SINC.load(0, **data),
    train=watch,
    runs=RUNS,
    data={"epochs": 200},
    offered={**OFFERED, "tol": 0.0},
    quick={"epochs": 20},
    quick_runs=QUICK_RUNS,
)
COUNTS = Experiment(
    "sinc columns",
    "SLKL, columns",
    [Method("SLKL", "SLKLRegressor")],
    load=SINC.load,
    train=count_used,
    runs=RUNS,
    data={"counts": (64, 128, 256, 512, 1000)},
    offered=OFFERED,
    quick={"counts": (64, 128, 256)},
    quick_runs=QUICK_RUNS,
)

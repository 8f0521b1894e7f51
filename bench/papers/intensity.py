"""Test likelihood of the densities that parsimon learns, beside those of other methods.

The three data sets of SPPPOT's paper, with its kernels and grids: every method is judged by how far
its negative log-likelihood on test points is above that of a batch fit. parsimon chooses its own
steps, for its own number of epochs and for four times as many, beside comparators with steps chosen
by hand; the paper's Table I is `paper spppot`. The exit code is 1 if a default is too far off.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from bench import machine, report
from bench.baselines.intensity import (
    BatchIntensity,
    GridPMD,
    PrimalPOLK,
    SquaredIntensity,
    finer,
)
from bench.cli import MissingDataError, left_out
from bench.report import Column, Promise, Table, at_most, significant, span, times, two_digits
from bench.runner import Experiment, Figures, Like, Method, Row, Run, add_check_arguments
from bench.tasks import Task, train_and_test
from parsimon import datasets
from parsimon.schedules import AdaptiveBudget

ESTIMATORS = ("SPPPOTIntensity", "MirrorNewtonIntensity", "HybridIntensity")
# A seed for test points that no draw for training has.
TEST_SEED = 10_000

COLUMNS = (
    Column("above batch", "above", lambda values: significant(float(np.mean(values)))),
    Column("smallest", "above", lambda values: significant(min(values))),
    Column("largest", "above", lambda values: significant(max(values))),
    Column("integral", "integral", partial(span, form=".4f")),
    Column("negative on", "negative", partial(span, form=".0%")),
    Column("points", "model_order", span),
    Column("epochs", "epochs", span),
    Column("seconds", "seconds", two_digits),
)


BATCH = Method("batch L-BFGS", BatchIntensity)
# With the steps that parsimon chooses.
OURS = [
    method
    for name in ESTIMATORS
    for method in (
        Method(name, name),
        Method(f"{name}, 4 x epochs", name, {"epochs": Like(name, "epochs", 4)}),
    )
]
# (26), as printed.
EMBEDDING = {"batch_size": 30, "gradient": "kernel_embedding", "regularization": 0.0}


# Model orders and times are what Table I has beside parameters.
def row(name: str, estimator: Any, points: int | None, time: str, **settings: Any) -> Method:
    printed = {"model_order": points, "seconds": time} if points else {}
    return Method(name, estimator, settings, printed=printed)


def pmd(eta: float, epochs: int, points: int | None = None, **given: Any) -> Method:
    name = f"PMD, grid only, eta {eta:g}" + (", 1/f bounded" if given else "")
    return row(name, GridPMD, points, "5 min", learning_rate=eta, epochs=epochs, **given)


def squared(scale: float, points: int | None = None, time: str = "") -> Method:
    name = f"BFGS, f = a g^2, a {scale:g}"
    return row(name, SquaredIntensity, points, time, scale=scale)


def polk(start: str, points: int | None = None) -> Method:
    settings = {"learning_rate": 0.006, "epochs": 8, "start": start}
    return row(f"POLK in the primal, {start} start", PrimalPOLK, points, "5 min", **settings)


def algorithm1(eta: float, epochs: int, note: str, points: int, **given: Any) -> Method:
    settings = {"learning_rate": eta, "epochs": epochs, **EMBEDDING, "average": False, **given}
    return row(f"Algorithm 1, eta {eta:g}, {note}", ESTIMATORS[0], points, "5 min", **settings)


def algorithm3(eta: float, epochs: int, points: int, **given: Any) -> Method:
    settings = {"learning_rate": eta, "damping": 1.0, "epochs": epochs, **given}
    name = f"Algorithm 3, eta {eta:g}" + (f", {points} nodes" if given else "")
    return row(name, ESTIMATORS[1], points, "20 min", **settings)


def algorithm4(eta: float, newton_eta: float, epochs: int, points: int, **given: Any) -> Method:
    steps = {"learning_rate": eta, "newton_learning_rate": newton_eta, "damping": 1.0}
    settings = {**steps, "epochs": epochs, **EMBEDDING, **given}
    return row(
        f"Algorithm 4, eta {eta:g}, {newton_eta:g}", ESTIMATORS[2], points, "20 min", **settings
    )


def toy(seed: int, samples: int | None) -> Task:
    """Draw a Poisson process whose intensity is a Gaussian of standard deviation 0.1."""
    X, density = datasets.make_poisson_gaussian(10_211, random_state=seed, return_density=True)
    X_test = datasets.make_poisson_gaussian(1001, random_state=TEST_SEED + seed)
    true_nll = float(1 - np.log(density(X_test)).mean())
    return Task("toy", X[:samples], None, X_test, None, {"true_nll": true_nll})


def points_of(name: str, title: str, seed: int, samples: int | None) -> Task:
    X, X_test = train_and_test(name, title, random_state=seed, return_X=True)
    return Task(name, X[:samples], None, X_test, None)


def density(
    title: str, load: Callable[..., Task], variance: float, nodes: Sequence[int], runs: int
) -> Experiment:
    """Return a data set of the paper, whose "bandwidth" is the kernel's variance.

    There are this many nodes along each axis.
    """
    domain = [(0.0, 1.0)] * len(nodes)
    return Experiment(
        f"density {title}",
        title,
        (),
        load=load,
        train=lambda run: fit(run)[1],
        runs=runs,
        data={"samples": None},
        offered={
            "bandwidth": variance**0.5,
            "grid_size": nodes[0],
            "domain": domain,
            "solver": "sgd",
        },
        quick={"samples": 1000},
    )


CURRY, CHICAGO = "Curry's shots", "Chicago's crimes"
DENSITIES = {
    "toy": density("toy", toy, 0.0065, (100,), runs=5),
    "curry": density(CURRY, partial(points_of, "curry_shots", CURRY), 0.0025, (100,), runs=3),
    "chicago": density(
        CHICAGO, partial(points_of, "chicago_crimes", CHICAGO), 0.01, (21, 21), runs=3
    ),
}
# How far a default of parsimon's may be above the batch fit's likelihood, and its integral off 1.
TOLERANCES = {"toy": (0.003, 0.02), "curry": (0.01, np.inf), "chicago": (0.05, np.inf)}
BOUNDED = {"largest_increment": 1.0}
DEFAULT = {
    "toy": (
        BATCH,
        squared(0.15),
        pmd(0.012, 8, **BOUNDED),
        polk("printed"),
        polk("uniform"),
        *OURS,
    ),
    "curry": (BATCH, squared(1.0), pmd(0.1, 10, **BOUNDED), *OURS),
    "chicago": (BATCH, squared(1.0), pmd(0.15, 4, **BOUNDED), *OURS),
}
TABLE_ONE = {
    "toy": (
        BATCH,
        squared(0.15, 10_211, "8 h"),
        pmd(0.05, 8, 100),
        polk("printed", 179),
        algorithm1(0.012, 8, "eps 6.6e-6", 100, budget=6.6e-6),
        algorithm1(0.012, 8, "105 points", 105, budget=AdaptiveBudget(105, 2e-6)),
        algorithm3(1.25, 8, 100),
        algorithm3(1.0, 8, 50, grid_size=50),
        algorithm4(0.1, 1.8182, 8, 90, budget=AdaptiveBudget(90, 1.5e-6), grid_size=50),
    ),
    "curry": (
        BATCH,
        squared(1.0, 8298, "8 h"),
        pmd(0.1, 10, 100),
        algorithm1(0.03, 10, "eps 1e-5", 100, budget=1e-5),
        algorithm3(0.2381, 10, 100),
        algorithm3(0.2381, 10, 50, grid_size=50),
        algorithm4(0.03, 0.1408, 10, 100, budget=1e-5),
    ),
    "chicago": (
        BATCH,
        squared(1.0, 10_000, "12 h"),
        pmd(0.8, 4, 441),
        algorithm1(0.15, 4, "eps 3e-4", 441, budget=3e-4),
        algorithm3(6.6667, 4, 441),
        algorithm4(0.4, 5.0, 4, 441, budget=3e-4),
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", choices=DENSITIES, nargs="+", default=list(DENSITIES))
    add_check_arguments(parser)


def run(options: argparse.Namespace) -> int:
    found: dict[str, list[Row]] = {}
    data = {"samples": options.samples}
    for name in options.data:
        with left_out():
            rows = replace(DENSITIES[name], methods=DEFAULT[name], data=data).rows(options)
            found[name] = [row.above(rows[0], "nll") for row in rows]
            table(DENSITIES[name], found[name]).show()
    if not found:
        raise MissingDataError("There is nothing to run.")
    return report.conclude(options, found, judge(found))


def fit(run: Run) -> tuple[Any, Figures]:
    """Fit and test; a density that is not positive at a test point has an infinite NLL.

    The integral is ours, not the estimator's, except where log f cannot tell it.
    """
    task, model = run.task, run.make()
    with machine.Stopwatch() as watch:
        model.fit(task.X)
    log_density = model.score_samples(finer(run.offered["grid_size"], run.offered["domain"]))
    negative = float(np.isneginf(log_density).mean())
    seen = getattr(model, "t_", None)
    # parsimon's densities are normalised; the paper's loss is that of what was learned.
    integral = float(model.integral_ if negative or seen else np.exp(log_density).mean())
    divided_by = np.log(integral) if seen and integral > 0 else 0.0
    return model, {
        "nll": float(-model.score_samples(task.X_test).mean()) - divided_by + integral,
        "true_nll": task.extra.get("true_nll"),
        "integral": integral,
        "negative": negative,
        "model_order": int(model.model_order_),
        "samples": len(task.X),
        "epochs": seen / len(task.X) if seen else float(getattr(model, "epochs", 1)),
        **watch.figures,
    }


def table(density: Experiment, rows: Sequence[Row]) -> Table:
    batch, offered = rows[0], density.offered
    sizes = ", ".join(f"{samples:,}" for samples in batch.values("samples"))
    found = Table.of_rows(
        f"{density.title}: {sizes} points to train, kernel variance {offered['bandwidth'] ** 2:g}, "
        f"{offered['grid_size']} nodes per axis, {times(len(batch.results))}; test NLL above the "
        "batch fit's, printed model orders and times in [brackets]",
        rows,
        COLUMNS,
    )
    known = [
        f"Test NLL of {what}: {', '.join(f'{value:.4f}' for value in batch.values(figure))}"
        for what, figure in (("the batch fit", "nll"), ("the true density", "true_nll"))
        if None not in batch.values(figure)
    ]
    return replace(found, notes=[*known, *found.notes])


def judge(found: Mapping[str, Sequence[Row]]) -> Iterator[Promise]:
    """Defaults are near the batch fit on average, with more epochs too, and integrate to 1."""
    for name, row in ((name, row) for name, rows in found.items() for row in rows):
        if row.method.kind not in ESTIMATORS or row.absent:
            continue
        where = f"{row.method.name} on the {DENSITIES[name].title}"
        yield at_most(f"{where}, runs that diverge", row.diverged, 0)
        if not row.diverged:
            tolerance, of_integral = TOLERANCES[name]
            yield at_most(f"{where}, mean NLL above the batch fit's", row.mean("above"), tolerance)
            off = max(abs(value - 1) for value in row.values("integral"))
            yield at_most(f"{where}, integral off by", off, of_integral)

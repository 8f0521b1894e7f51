"""Test likelihood of the densities that parsimon learns, beside those of other methods.

The three data sets of SPPPOT's paper, with its kernels and grids: every method is judged by how far
its negative log-likelihood on test points is above that of a batch fit. By default parsimon chooses
its own steps, for its own number of epochs and for four times as many; --printed runs the paper's
Table I instead. The exit code is 1 if a default is too far off.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import parsimon
from bench import intensity_settings as settings
from bench import machine, report
from bench.baselines.intensity import BatchIntensity, midpoints
from bench.cli import MissingDataError, positive_int
from bench.intensity_settings import EXPERIMENTS, Experiment, Method


@dataclass(frozen=True)
class Result:
    """One training. A density that is not positive at a test point has an infinite dNLL."""

    dnll: float
    integral: float
    negative: float  # share of the domain
    model_order: int
    seconds: float
    epochs: float


@dataclass
class Row:
    """A method on one data set, over the seeds; None where it diverged."""

    name: str
    method: Method
    results: list[Result | None] = field(default_factory=list)

    def values(self, figure: str) -> list[float]:
        return [getattr(result, figure) for result in self.results if result is not None]

    @property
    def diverged(self) -> int:
        return self.results.count(None)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", choices=EXPERIMENTS, nargs="+", default=list(EXPERIMENTS))
    parser.add_argument("--seeds", type=positive_int, help="how many; 5 on the toy, else 3")
    parser.add_argument("--printed", action="store_true", help="run Table I of the paper")
    parser.add_argument("--samples", type=positive_int, help="train on so many only; no verdict")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")


def run(options: argparse.Namespace) -> int:
    missing = [name for name in settings.ESTIMATORS if not hasattr(parsimon, name)]
    if missing:
        print(f"parsimon has no {', '.join(missing)} here: left out.\n")
    content: dict[str, Any] = {"command": "intensity", "printed": options.printed, "data": {}}
    judged, complaints = False, []
    for name in options.data:
        experiment = EXPERIMENTS[name]
        seeds = range(options.seeds or experiment.seeds)
        try:
            problems = [experiment.load(seed) for seed in seeds]
        except FileNotFoundError as error:
            print(f"Left out: {experiment.title}. {error}\n")
            continue
        if options.samples:
            problems = [problem.head(options.samples) for problem in problems]
        methods = experiment.printed if options.printed else experiment.default
        rows, batch, notes = compare(experiment, problems, available(methods))
        show(experiment, problems, rows, batch, notes)
        if not options.printed and not options.samples and not missing:
            judged, complaints = True, complaints + judge(experiment, rows)
        content["data"][name] = {"batch_nll": batch, "rows": [as_dict(row) for row in rows]}
    if not content["data"]:
        raise MissingDataError("There is nothing to run.")
    if judged:
        print("\n".join(complaints) or "PASSED: all defaults are near the batch fit.")
    if options.json:
        report.write_json(options.json, {**content, **machine.environment()})
    return 1 if complaints else 0


def available(methods: Sequence[Method]) -> list[Method]:
    return [method for method in methods if method.is_here()]


def compare(
    experiment: Experiment, problems: Sequence[settings.Problem], methods: Sequence[Method]
) -> tuple[list[Row], list[float], list[str]]:
    """Train every method on every draw; also return the batch fit's NLL and what was warned of."""
    rows = [Row("batch L-BFGS", Method("batch L-BFGS", BatchIntensity))]
    for method in methods:
        rows.append(Row(method.name, method))
        if method.longer:
            rows.append(Row(f"  {method.longer} x epochs", method))
    batch, notes = [], []
    with machine.one_thread(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for seed, problem in enumerate(problems):
            nodes = fine_nodes(experiment, problem)
            for row in rows:
                epochs = longer_epochs(row, rows)
                result = train(row.method, experiment, problem, seed, nodes, epochs)
                if row is rows[0] and result is not None:
                    batch.append(result.dnll)  # the likelihood itself, as yet
                row.results.append(relative(result, batch[-1]))
        notes += [f"{warning.category.__name__}: {warning.message}" for warning in caught]
    return rows, batch, sorted(set(notes))


def relative(result: Result | None, batch: float) -> Result | None:
    return None if result is None else Result(**{**asdict(result), "dnll": result.dnll - batch})


def longer_epochs(row: Row, rows: Sequence[Row]) -> int | None:
    """Return how many epochs a row with more of them has: a multiple of those just above it."""
    if row.name == row.method.name:
        return None
    above = rows[rows.index(row) - 1].results[-1]
    # Where the default diverged there is no number to multiply.
    return row.method.longer * round(above.epochs) if above else row.method.longer


def train(
    method: Method,
    experiment: Experiment,
    problem: settings.Problem,
    seed: int,
    nodes: Any,
    epochs: int | None,
) -> Result | None:
    """Fit and test; None if it diverges. The likelihood is not yet that above the batch fit's."""
    model = method.make(experiment, problem.X.shape[1], seed, epochs)
    try:
        with machine.Stopwatch() as watch:
            model.fit(problem.X)
    except parsimon.DivergenceError:
        return None
    return measure(model, problem, nodes, watch.elapsed.wall)


def measure(model: Any, problem: settings.Problem, nodes: Any, seconds: float) -> Result:
    """Test a fitted model.

    The integral is ours, not the estimator's, except where log f cannot tell it.
    """
    log_density = model.score_samples(nodes)
    negative = float(np.isneginf(log_density).mean())
    integral = float(model.integral_ if negative else np.exp(log_density).mean())
    seen = getattr(model, "t_", None)
    return Result(
        dnll=float(-model.score_samples(problem.X_test).mean()) + integral,
        integral=integral,
        negative=negative,
        model_order=int(model.model_order_),
        seconds=seconds,
        epochs=seen / len(problem.X) if seen else float(getattr(model, "epochs", 1)),
    )


def fine_nodes(experiment: Experiment, problem: settings.Problem) -> Any:
    features = problem.X.shape[1]
    factor = 4 if features == 1 else 3
    return midpoints(factor * experiment.grid_size, [(0.0, 1.0)] * features)


def judge(experiment: Experiment, rows: Sequence[Row]) -> list[str]:
    """Return what does not hold: near the batch fit on average, with more epochs too."""
    complaints = []
    for row in rows:
        if row.method.kind not in settings.ESTIMATORS:
            continue
        where = f"FAILED: {row.method.name}{row.name.removeprefix(row.method.name)} on the "
        where += experiment.title
        if row.diverged:
            complaints.append(f"{where} diverges.")
            continue
        above = float(np.mean(row.values("dnll")))
        if above > experiment.tolerance:
            complaints.append(f"{where} is {above:.4f} above the batch fit on average.")
        off = max(abs(value - 1) for value in row.values("integral"))
        if off > experiment.integral_tolerance:
            complaints.append(f"{where} has an integral that is off by {off:.3f}.")
    return complaints


def show(
    experiment: Experiment,
    problems: Sequence[settings.Problem],
    rows: Sequence[Row],
    batch: Sequence[float],
    notes: Sequence[str],
) -> None:
    sizes = ", ".join(f"{len(problem.X):,}" for problem in problems)
    print(
        f"{experiment.title}: {sizes} points to train, kernel variance {experiment.variance:g}, "
        f"{experiment.grid_size} nodes an axis, {len(problems)} seeds.\n"
        f"Test NLL of the batch fit: {', '.join(f'{value:.4f}' for value in batch)}"
        + true_likelihood(problems)
    )
    header = ["", "dNLL", "min", "max", "integral", "negative", "points", "epochs", "s"]
    report.print_table(header, [cells(row) for row in rows])
    for note in notes:
        print(f"  {note}")
    print()


def true_likelihood(problems: Sequence[settings.Problem]) -> str:
    known = [problem.true_nll for problem in problems if problem.true_nll is not None]
    return f"; of the true density: {', '.join(f'{value:.4f}' for value in known)}" if known else ""


def cells(row: Row) -> list[str]:
    """Return the cells of a table: means over the seeds that did not diverge."""
    if row.diverged == len(row.results):
        return [row.name, "diverges", *[""] * 7]
    dnll = row.values("dnll")
    integral = row.values("integral")
    name = f"{row.name} (diverges: {row.diverged})" if row.diverged else row.name
    return [
        name,
        *(number(value) for value in (np.mean(dnll), min(dnll), max(dnll))),
        span(integral, number),
        f"{100 * np.mean(row.values('negative')):.0f} %",
        span(row.values("model_order"), lambda value: f"{value:.0f}"),
        f"{np.mean(row.values('epochs')):.0f}",
        f"{np.mean(row.values('seconds')):.2f}",
    ]


def number(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 100 else f"{value:.2g}"


def span(values: Sequence[float], write: Callable[[float], str]) -> str:
    low, high = write(min(values)), write(max(values))
    return low if low == high else f"{low} to {high}"


def as_dict(row: Row) -> Mapping[str, Any]:
    return {
        "method": row.name.strip(),
        "estimator": row.method.kind,
        "settings": dict(row.method.settings),
        "results": [result and asdict(result) for result in row.results],
    }

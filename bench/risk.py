"""What risk-aware learning does to the loss: COLK beside POLK, without and with outliers.

The experiment of COLK's paper (section V): 2 x + 3 sin 6 x from 24,000 samples, once each, over
several training sets; the last iterate counts. Then LIDAR with outliers, if the data are here.
Figures that prototypes in NumPy reached stand in [brackets]. The exit code is 1 if risk does not
lower the tail of the loss as it should.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import parsimon
from bench import figures, machine, report
from bench.cli import MissingDataError, positive_int
from bench.risk_settings import (
    EQUAL_STEP,
    LEVEL,
    LIDAR_EPOCHS,
    LIDAR_FRACTION,
    LIDAR_METHODS,
    LIDAR_OUTLIERS,
    LIDAR_TEST,
    METHODS,
    OUTLIERS,
    SAMPLES,
    SETTINGS,
    TEST_SAMPLES,
    TEST_SEED,
    Method,
)
from parsimon import datasets
from parsimon._progress import progress

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Result:
    """One training: the squared error to the function itself, and the loss on test samples."""

    excess: float
    loss_sd: float
    quantile_95: float
    quantile_99: float
    cvar: float
    mean: float
    model_order: int


@dataclass
class Row:
    """A method over the training sets, by kind of outliers; None where it diverged."""

    method: Method
    results: dict[str, list[Result | None]] = field(default_factory=dict)

    def values(self, kind: str, figure: str) -> list[float]:
        return [getattr(result, figure) for result in self.results[kind] if result is not None]

    def mean(self, kind: str, figure: str) -> float:
        return float(np.mean(self.values(kind, figure)))

    def diverged(self, kind: str) -> int:
        return self.results[kind].count(None)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sets", type=positive_int, default=20, help="training sets, or splits")
    parser.add_argument("--samples", type=positive_int, help="train on so many only; no verdict")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw LIDAR with its outliers")


def run(options: argparse.Namespace) -> int:
    lidar = load_lidar()
    if lidar is None and options.plot:
        raise MissingDataError(f"{options.plot} cannot be drawn: it shows LIDAR.")
    samples = options.samples or SAMPLES
    rows = compare(options.sets, samples)
    show(rows, options.sets, samples)
    complaints = [] if options.samples else judge(rows)
    if not options.samples:
        print("\n".join(complaints) or "PASSED: the tail of the loss is lower with every risk.")
    content: dict[str, Any] = {
        "command": "risk",
        "sets": options.sets,
        "samples": samples,
        "rows": [as_dict(row) for row in rows],
    }
    if lidar is not None:
        content["lidar"] = compare_lidar(*lidar, options.sets)
        show_lidar(content["lidar"], options.sets)
        if options.plot:
            draw(*lidar, options.plot)
    if options.json:
        report.write_json(options.json, {**content, **machine.environment()})
    return 1 if complaints else 0


# -- the paper's function --------------------------------------------------------------------------


def compare(sets: int, samples: int) -> list[Row]:
    """Train every method on every set."""
    rows = [Row(method, {kind: [] for kind in OUTLIERS}) for method in METHODS]
    total = len(OUTLIERS) * sets * len(rows) * samples
    with machine.one_thread(), progress(total, description="risk") as bar:
        for kind in OUTLIERS:
            test = draw_samples(TEST_SAMPLES, kind, TEST_SEED)
            for seed in range(sets):
                X, y, _ = draw_samples(samples, kind, seed)
                for row in rows:
                    row.results[kind].append(train(row.method, X, y, test))
                    bar.update(samples)
    return rows


def draw_samples(count: int, kind: str, seed: int) -> tuple[Array, Array, Array]:
    found: tuple[Array, Array, Array] = datasets.make_regression_outliers(
        count, outliers=kind, random_state=seed, return_truth=True
    )
    return found


def train(
    method: Method, X: Array, y: Array, test: tuple[Array, Array, Array], **given: Any
) -> Result | None:
    """Fit and test; None if it diverges."""
    X_test, y_test, truth = test
    try:
        model = method.make(**given).fit(X, y)
    except parsimon.DivergenceError:
        return None
    predicted = model.predict(X_test)
    losses = (predicted - y_test) ** 2
    return Result(
        excess=float(((predicted - truth) ** 2).mean()),
        loss_sd=float(losses.std()),
        quantile_95=float(np.quantile(losses, 0.95)),
        quantile_99=float(np.quantile(losses, 0.99)),
        cvar=float(losses[losses >= np.quantile(losses, LEVEL)].mean()),
        mean=float(losses.mean()),
        model_order=int(model.model_order_),
    )


def judge(rows: Sequence[Row]) -> list[str]:
    """Return what does not hold: with one-sided outliers, risk lowers the tail of the loss."""
    kind = "one-sided"
    polk_row = next(row for row in rows if row.method.name == EQUAL_STEP)
    complaints = []
    for row in rows:
        if row.method.margins is None:
            continue
        where = f"FAILED: {row.method.name}"
        if any(row.diverged(each) for each in OUTLIERS):
            complaints.append(f"{where} diverges.")
            continue
        for figure, least in zip(
            ("loss_sd", "quantile_99", "cvar"), (*row.method.margins, 0.0), strict=True
        ):
            won = 1 - row.mean(kind, figure) / polk_row.mean(kind, figure)
            if won < least:
                complaints.append(
                    f"{where} has a {figure} that is {100 * won:.1f} % below POLK's; it should be "
                    f"{100 * least:.1f} % at least."
                )
        if row.mean(kind, "model_order") > 1.2 * polk_row.mean(kind, "model_order"):
            complaints.append(f"{where} keeps many more points than POLK.")
    return complaints


def show(rows: Sequence[Row], sets: int, samples: int) -> None:
    print(
        f"2 x + 3 sin 6 x, {samples:,} samples, {sets} training sets: means, and standard "
        f"deviations over the sets in (parentheses).\n"
        f"Without outliers, and with symmetric ones:"
    )
    both = OUTLIERS[:2]
    report.print_table(
        ["", *[title for _ in both for title in ("excess", "points")]],
        [[row.method.name, *(cell for kind in both for cell in cells(row, kind))] for row in rows],
    )
    print("With one-sided outliers:")
    report.print_table(
        ["", "excess", *TAIL.values(), "points"],
        [[row.method.name, *cells(row, OUTLIERS[2], TAIL)] for row in rows],
    )
    print()


# Figures of the tail, in the order of the references, and their titles.
TAIL = {
    "loss_sd": "loss sd",
    "quantile_95": "95 %",
    "quantile_99": "99 %",
    "cvar": "CVaR .9",
    "mean": "mean",
}


def cells(row: Row, kind: str, tail: Iterable[str] = ()) -> list[str]:
    """Return excess, figures of the tail and model order, with the references in brackets."""
    known = [*row.method.reference.get(kind, ()), *[None] * (1 + len(TAIL))]
    tail, total, lost = list(tail), len(row.results[kind]), row.diverged(kind)
    if lost == total:
        return [f"diverges {lost} of {total}{reference(known[0])}", *[""] * (len(tail) + 1)]
    excess = over_sets(row.values(kind, "excess")) + reference(known[0])
    return [
        f"{excess}, diverges {lost} of {total}" if lost else excess,
        *(
            number(row.mean(kind, name)) + reference(value)
            for name, value in zip(tail, known[1:], strict=False)
        ),
        f"{row.mean(kind, 'model_order'):.0f}",
    ]


def reference(value: float | None) -> str:
    if value is None:
        return ""
    return " [diverges]" if np.isnan(value) else f" [{number(value)}]"


def over_sets(values: Sequence[float]) -> str:
    return f"{number(float(np.mean(values)))} ({number(float(np.std(values)))})"


def number(value: float) -> str:
    decimals = 4 if abs(value) < 0.1 else 3 if abs(value) < 1 else 2 if abs(value) < 10 else 1
    return f"{value:.{decimals}f}"


def as_dict(row: Row) -> Mapping[str, Any]:
    return {
        "method": row.method.name,
        "estimator": row.method.estimator,
        "settings": {**SETTINGS, **row.method.settings},
        "reference": {
            kind: [None if np.isnan(value) else value for value in values]
            for kind, values in row.method.reference.items()
        },
        "results": {
            kind: [result and asdict(result) for result in results]
            for kind, results in row.results.items()
        },
    }


# -- LIDAR -----------------------------------------------------------------------------------------


def load_lidar() -> tuple[Array, Array] | None:
    """Return LIDAR with distances from 0 to 1; say so if it is not here."""
    try:
        X, y = datasets.load_lidar(return_X_y=True)
    except FileNotFoundError as error:
        print(f"Left out: LIDAR. {error}\n")
        return None
    return (X - X.min()) / (X.max() - X.min()), y


def spoil(y: Array, kind: str, random: np.random.RandomState) -> tuple[Array, NDArray[np.intp]]:
    """Return the targets with a tenth of them made outliers, and which these are."""
    mean, sd = LIDAR_OUTLIERS[kind]
    chosen = random.permutation(len(y))[: round(LIDAR_FRACTION * len(y))]
    spoiled = y.copy()
    spoiled[chosen] += mean + sd * random.normal(size=len(chosen))
    return spoiled, chosen


def compare_lidar(X: Array, y: Array, splits: int) -> dict[str, dict[str, list[float]]]:
    """Return the mean squared errors on clean held-out targets, by method and kind of outliers."""
    errors = {method.name: {kind: [] for kind in OUTLIERS} for method in LIDAR_METHODS}
    held_out = round(LIDAR_TEST * len(y))
    total = len(OUTLIERS) * splits * len(LIDAR_METHODS) * LIDAR_EPOCHS * (len(y) - held_out)
    with machine.one_thread(), progress(total, description="LIDAR") as bar:
        for kind in OUTLIERS:
            for split in range(splits):
                for method in LIDAR_METHODS:
                    errors[method.name][kind].append(lidar_error(method, X, y, kind, split))
                    bar.update(LIDAR_EPOCHS * (len(y) - held_out))
    return errors


def lidar_error(method: Method, X: Array, y: Array, kind: str, split: int) -> float:
    """Return the mean squared error on the clean targets that a split holds out."""
    random = np.random.RandomState(split)
    order, held_out = random.permutation(len(y)), round(LIDAR_TEST * len(y))
    test, rest = order[:held_out], order[held_out:]
    spoiled, _ = spoil(y[rest], kind, random)
    model = lidar_model(method, split).fit(X[rest], spoiled)
    return float(((model.predict(X[test]) - y[test]) ** 2).mean())


def lidar_model(method: Method, seed: int) -> Any:
    return method.make(epochs=LIDAR_EPOCHS, shuffle=True, random_state=seed)


def show_lidar(errors: Mapping[str, Mapping[str, Sequence[float]]], splits: int) -> None:
    print(
        f"\nLIDAR, {LIDAR_EPOCHS} epochs, {100 * LIDAR_FRACTION:g} % outliers, {splits} splits: "
        f"squared error on clean held-out targets."
    )
    rows = [
        [
            method.name,
            *(
                over_sets(errors[method.name][kind]) + reference(method.reference[kind][0])
                for kind in OUTLIERS
            ),
        ]
        for method in LIDAR_METHODS
    ]
    report.print_table(["", *OUTLIERS], rows)


def draw(X: Array, y: Array, path: Path) -> None:
    """Draw data, outliers and what the methods make of them, as in the paper's Fig. 3."""
    sheet = figures.new_sheet(path, 2, width=4.5, height=3.9)
    if sheet is None:
        return
    from parsimon.plotting._common import PALETTE

    colors = (PALETTE[0], PALETTE[4], PALETTE[2])
    both = sheet.subplots(1, 2, sharey=True)
    grid = np.linspace(0, 1, 400)[:, None]
    for axes, kind in zip(both, OUTLIERS[1:], strict=True):
        spoiled, chosen = spoil(y, kind, np.random.RandomState(0))
        clean = np.setdiff1d(np.arange(len(y)), chosen)
        axes.plot(X[clean, 0], y[clean], ".", color="0.7", markersize=4, label="data")
        axes.plot(X[chosen, 0], spoiled[chosen], "x", color="0.3", markersize=5, label="outliers")
        for method, color in zip(LIDAR_METHODS, colors, strict=True):
            model = lidar_model(method, 0).fit(X, spoiled)
            axes.plot(grid, model.predict(grid), color=color, linewidth=2, label=method.name)
        axes.set(title=f"{kind} outliers", xlabel="range, scaled")
        axes.spines[["top", "right"]].set_visible(False)
    both[0].set_ylabel("log ratio")
    entries = both[0].get_legend_handles_labels()
    sheet.legend(*entries, loc="outside lower center", ncols=len(entries[0]), frameon=False)
    figures.save(sheet, path)

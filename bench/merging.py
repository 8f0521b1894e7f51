"""What points that merge save: the same budget with ``compression="remove"`` and ``"merge"``.

One pass of the papers' algorithm over each task, the last iterate, the same mini-batches. Promised:
at most 0.6 times as many points, and an error that is not higher by more than its noise.
"""

from __future__ import annotations

import argparse
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from bench import compare, machine, report, tasks
from bench.cli import left_out, positive_int
from bench.report import Column, Promise, Table, at_most
from bench.runner import Experiment, Figures, Method, Row, Run

SHARE = 0.6
# Of the errors of single runs, which differ by a few tenths of a percent from seed to seed.
NOISE = 0.3
METHODS = [Method(how, "POLKClassifier", {"compression": how}) for how in ("remove", "merge")]
COLUMNS = (
    Column("points", "points"),
    Column("test error %", "error"),
    Column("training s", "cpu_seconds"),
    Column("largest share of the budget", "spent"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--data", nargs="+", choices=[*tasks.TASKS], default=[*tasks.TASKS], help="all by default")
    add("--samples", type=positive_int, help="to learn from, at most")
    add("--runs", type=positive_int, default=3, help="orders of the samples")
    add("--quick", action="store_true", help="little data: whether it works, no verdict")
    report.add_json(parser)
    parser.set_defaults(out=None)


def run(options: argparse.Namespace) -> int:
    found: dict[str, list[Row]] = {}
    promises: list[Promise] = []
    for name in options.data:
        experiment = Experiment(
            name,
            name,
            METHODS,
            load=partial(compare.load, name=name),
            train=measure,
            offered={
                **tasks.offered(name),
                "parsimony": tasks.SETTINGS[name]["parsimony"]["hinge"],
            },
            data={"samples": options.samples},
            quick={"samples": 400, "test_samples": 300},
        )
        with left_out():
            found[name] = rows = experiment.rows(options)
            Table.of_rows(name, rows, COLUMNS).show()
            promises += promised(name, *rows)
    code = report.conclude(options, found, promises) if found else 2
    return 0 if options.quick and found else code


def promised(name: str, removing: Row, merging: Row) -> list[Promise]:
    pairs = list(zip(merging.sound, removing.sound, strict=True))
    share = median(ours["points"] / theirs["points"] for ours, theirs in pairs)
    more = median(ours["error"] - theirs["error"] for ours, theirs in pairs)
    return [
        at_most(f"{name}, points against removal only", share, SHARE),
        at_most(f"{name}, percent more errors", more, NOISE),
    ]


def measure(run: Run) -> Figures:
    task, model = run.task, run.make(loss="hinge", shuffle=False, epochs=1)
    with machine.Stopwatch() as watch:
        model.fit(task.X, task.y)
    trace: Any = model.trace_
    return {
        **watch.figures,
        "samples": len(task.X),
        "points": int(model.model_order_),
        "error": float(100 * (model.predict(task.X_test) != task.y_test).mean()),
        "spent": float(np.max(trace["compression_error"] / trace["budget"])),
    }

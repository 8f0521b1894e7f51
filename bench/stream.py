"""Whether a sample costs the same, and memory stays flat, however long the stream.

A million samples of multidist go through ``partial_fit`` in blocks, after a warm-up in which the
model grows from nothing. A sample of the last tenth must cost what one of the first does, within
20 %, and resident memory must not grow by more than 5 % between the first tenth's end and the
stream's. The exit code is 0 if both hold and 1 if not.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from bench import machine, report
from bench.cli import positive_int
from bench.report import Column, Promise, Table, at_least, at_most, one
from bench.runner import Figures, Row
from bench.tasks import Task, multidist
from parsimon import POLKClassifier
from parsimon._progress import progress

TENTHS = 10
TIME_TOLERANCE = 0.2
MEMORY_TOLERANCE = 0.05
# Other work on the machine makes blocks slower, never quicker: the lower tenth ran undisturbed.
QUIET = 0.1
CLASSES = range(5)

# Microseconds are those of a sample.
COLUMNS = (
    Column("samples", "samples", one(",")),
    Column("us in quiet blocks", "quiet_us", one(".3f")),
    Column("us by the clock", "clock_us", one(".3f")),
    Column("us of the processor", "cpu_us", one(".3f")),
    Column("model order", "model_order", one("d")),
    Column("resident MB", "resident_mb", one(".1f")),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--samples", type=positive_int, default=1_000_000)
    add("--block", type=positive_int, default=1000, help="samples per call")
    add("--warm-up", type=positive_int, default=20_000, help="samples before the stream begins")
    add("--loss", choices=("hinge", "logistic"), default="hinge")
    add("--parsimony", type=float, help="K; the task's own by default")
    add("--seed", type=int, default=0, help="which draw of multidist")
    report.add_json(parser)


def run(options: argparse.Namespace) -> int:
    # All samples are drawn before the first is learned: their memory is there from the start.
    task = multidist(options.warm_up + options.samples, options.seed)
    model = task.classifier(options.loss, parsimony=options.parsimony)
    edges = [options.warm_up + i * options.samples // TENTHS for i in range(TENTHS + 1)]
    with machine.one_thread(), progress(len(task.X), description="stream") as bar:
        stretches = [
            feed(model, task, start, stop, options.block, bar)
            for start, stop in pairwise([0, *edges])
        ]
    names = ["warm-up", *(f"tenth {number}" for number in range(1, TENTHS + 1))]
    Table.of_rows(
        f"{options.samples:,} samples of multidist, {model.loss} loss, K = {model.parsimony:g}, in "
        f"blocks of {options.block:,}, after {options.warm_up:,} to warm up; one thread",
        [Row.single(*each) for each in zip(names, stretches, strict=True)],
        COLUMNS,
    ).show()
    code, promises = report.verdict(judge(stretches[1:]))
    report.write_json(options, warm_up=stretches[0], tenths=stretches[1:], promises=promises)
    return code


def feed(model: POLKClassifier, task: Task, start: int, stop: int, block: int, bar: Any) -> Figures:
    """Learn from a part of the stream; only ``partial_fit`` is timed."""
    watch, per_sample = machine.Stopwatch(), []
    for first in range(start, stop, block):
        part = slice(first, min(first + block, stop))
        X, y, before = task.X[part], task.y[part], watch.seconds
        with watch:
            model.partial_fit(X, y, classes=CLASSES)
        per_sample.append((watch.seconds - before) / len(X))
        bar.update(len(X))
        bar.set_postfix(model_order=model.model_order_)
    return {
        **watch.figures,
        "samples": stop - start,
        "quiet_us": 1e6 * float(np.quantile(per_sample, QUIET)),
        "clock_us": 1e6 * watch.seconds / (stop - start),
        "cpu_us": 1e6 * watch.cpu_seconds / (stop - start),
        "model_order": model.model_order_,
        "resident_mb": machine.resident_bytes() / 1e6,
    }


def judge(tenths: Sequence[Figures]) -> Iterator[Promise]:
    """A sample of the last tenth takes as long as one of the first, and memory does not grow.

    The undisturbed blocks are compared and, if other processes left the machine alone, the totals.
    """
    first, last = tenths[0], tenths[-1]
    compared = {"undisturbed blocks": "quiet_us", "total time": "clock_us"}
    if machine.was_busy(first) or machine.was_busy(last):
        del compared["total time"]
    for what, figure in compared.items():
        name = f"time of a sample of the last tenth over the first's, by {what}"
        yield at_most(name, last[figure] / first[figure], 1 + TIME_TOLERANCE)
        if last[figure] < (1 - TIME_TOLERANCE) * first[figure]:
            advice = "the warm-up was too short, or other work slowed the first tenth: give a "
            advice += "longer --warm-up, or run it again on a quiet machine"
            yield at_least(name, last[figure] / first[figure], 1 - TIME_TOLERANCE, advice)
    memory = last["resident_mb"] / first["resident_mb"]
    yield at_most("resident memory over that after the first tenth", memory, 1 + MEMORY_TOLERANCE)

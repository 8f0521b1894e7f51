"""Whether a sample costs the same, and memory stays flat, however long the stream.

A million samples of multidist go through ``partial_fit`` in blocks, after a warm-up in which the
model grows from nothing. A sample of the last tenth must cost what one of the first does, within
20 %, and resident memory must not grow by more than 5 % between the first tenth's end and the
stream's. The exit code is 0 if both hold and 1 if not.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bench import machine, report
from bench.cli import positive_int
from bench.tasks import Task, multidist
from parsimon import POLKClassifier
from parsimon._progress import progress

TENTHS = 10
TIME_TOLERANCE = 0.2
MEMORY_TOLERANCE = 0.05

# Other work on the machine makes blocks slower, never quicker: the lower tenth ran undisturbed.
QUIET = 0.1

CLASSES = range(5)


@dataclass(frozen=True)
class Stretch:
    """A part of the stream, as it was when it ended."""

    samples: int
    seconds: float
    cpu_seconds: float
    quiet_microseconds: float  # a sample, in the quickest tenth of the blocks
    model_order: int
    resident_bytes: int

    @property
    def disturbed(self) -> bool:
        return self.seconds > machine.BUSY * self.cpu_seconds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--samples", type=positive_int, default=1_000_000)
    parser.add_argument("--block", type=positive_int, default=1000, help="samples a call")
    parser.add_argument(
        "--warm-up", type=positive_int, default=20_000, help="samples before the stream begins"
    )
    parser.add_argument("--loss", choices=("hinge", "logistic"), default="hinge")
    parser.add_argument("--parsimony", type=float, help="K; the task's own by default")
    parser.add_argument("--seed", type=int, default=0, help="which draw of multidist")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")


def run(options: argparse.Namespace) -> int:
    # All samples are drawn before the first is learned: their memory is there from the start.
    task = multidist(options.warm_up + options.samples, options.seed)
    model = task.classifier(options.loss, parsimony=options.parsimony)
    print(
        f"{options.samples:,} samples of multidist, {model.loss} loss, K = {model.parsimony:g}, in "
        f"blocks of {options.block:,}, after {options.warm_up:,} to warm up. One thread."
    )
    with (
        machine.one_thread(),
        progress(len(task.X), description="stream") as bar,
    ):
        warm_up = feed(model, task, 0, options.warm_up, options.block, bar)
        edges = [options.warm_up + i * options.samples // TENTHS for i in range(TENTHS + 1)]
        tenths = [
            feed(model, task, start, stop, options.block, bar) for start, stop in pairwise(edges)
        ]
    show(warm_up, tenths)
    complaints = judge(tenths)
    print(verdict(tenths, complaints))
    if options.json:
        content = {
            "command": "stream",
            "samples": options.samples,
            "block": options.block,
            "loss": options.loss,
            "parsimony": model.parsimony,
            "seed": options.seed,
            "passed": not complaints,
            "time_ratios": time_ratios(tenths),
            "memory_ratio": memory_ratio(tenths),
            "warm_up": asdict(warm_up),
            "tenths": [asdict(tenth) for tenth in tenths],
            **machine.environment(),
        }
        report.write_json(options.json, content)
    return 1 if complaints else 0


def feed(model: POLKClassifier, task: Task, start: int, stop: int, block: int, bar: Any) -> Stretch:
    """Learn from a part of the stream; only ``partial_fit`` is timed."""
    wall, cpu, per_sample = 0.0, 0.0, []
    for first in range(start, stop, block):
        part = slice(first, min(first + block, stop))
        X, y = task.X[part], task.y[part]
        with machine.Stopwatch() as watch:
            model.partial_fit(X, y, classes=CLASSES)
        wall += watch.elapsed.wall
        cpu += watch.elapsed.cpu
        per_sample.append(watch.elapsed.wall / len(X))
        bar.update(len(X))
        bar.set_postfix(model_order=model.model_order_)
    return Stretch(
        samples=stop - start,
        seconds=wall,
        cpu_seconds=cpu,
        quiet_microseconds=1e6 * float(np.quantile(per_sample, QUIET)),
        model_order=model.model_order_,
        resident_bytes=machine.resident_bytes(),
    )


def judge(tenths: Sequence[Stretch]) -> list[str]:
    """Return what is wrong, in sentences."""
    complaints = []
    for what, ratio in time_ratios(tenths).items():
        if ratio > 1 + TIME_TOLERANCE:
            complaints.append(
                f"By {what}, a sample of the last tenth took {ratio:.2f} times as long as one of "
                f"the first; at most {1 + TIME_TOLERANCE:g} times is allowed."
            )
        if ratio < 1 - TIME_TOLERANCE:
            complaints.append(
                f"By {what}, a sample of the last tenth took only {ratio:.2f} times as long as one "
                f"of the first: the warm-up was too short, or other work slowed the first tenth. "
                f"Give a longer --warm-up, or run it again on a quiet machine."
            )
    memory = memory_ratio(tenths)
    if memory > 1 + MEMORY_TOLERANCE:
        complaints.append(
            f"Resident memory grew by {100 * (memory - 1):.1f} % after the first tenth; at most "
            f"{100 * MEMORY_TOLERANCE:g} % is allowed."
        )
    return complaints


def time_ratios(tenths: Sequence[Stretch]) -> dict[str, float]:
    """Compare the undisturbed blocks and, if other processes left the machine alone, the totals."""
    first, last = tenths[0], tenths[-1]
    ratios = {"undisturbed blocks": last.quiet_microseconds / first.quiet_microseconds}
    if not (first.disturbed or last.disturbed):
        ratios["total time"] = (last.seconds / last.samples) / (first.seconds / first.samples)
    return ratios


def memory_ratio(tenths: Sequence[Stretch]) -> float:
    return tenths[-1].resident_bytes / tenths[0].resident_bytes


def verdict(tenths: Sequence[Stretch], complaints: Sequence[str]) -> str:
    if complaints:
        return "FAILED. " + " ".join(complaints)
    ratios = " and ".join(f"{ratio:.2f} by {what}" for what, ratio in time_ratios(tenths).items())
    return (
        f"PASSED. Last tenth over first, time a sample: {ratios}; "
        f"resident memory: {memory_ratio(tenths):.3f}."
    )


def show(warm_up: Stretch, tenths: Sequence[Stretch]) -> None:
    header = ["", "samples", "quiet us/sample", "us/sample", "CPU us/sample", "model order"]
    header += ["resident MB"]
    named = [("warm-up", warm_up), *((f"tenth {i}", t) for i, t in enumerate(tenths, start=1))]
    rows = [
        [
            name,
            f"{part.samples:,}",
            f"{part.quiet_microseconds:.3f}",
            f"{1e6 * part.seconds / part.samples:.3f}",
            f"{1e6 * part.cpu_seconds / part.samples:.3f}",
            f"{part.model_order}",
            f"{part.resident_bytes / 1e6:.1f}",
        ]
        for name, part in named
    ]
    report.print_table(header, rows)
    print()

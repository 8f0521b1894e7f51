"""Whether anything wears out: a very long stream, and what the engine promises measured on the way.

Regression on a cloud that wanders, with a kernel so wide that the basis is as ill-conditioned as
the engine lets it be (about 1e8): points join and leave all the time. Blocks alternate between
single samples and mini-batches of several sizes. After every stretch a line tells, of all so far,
how far the factor is from its invariant, max |T K T' - I|; what mini-batches that are checked by
hand lost to compression, and by how much that is more than they said, as shares of their budget;
memory; and the time of a sample. The exit code is 0 if all of it stays within bounds and 1 if not.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

import numpy as np

from bench import machine, report
from bench.cli import positive_int
from bench.report import Promise, at_most
from bench.runner import Figures
from bench.tasks import Array
from parsimon import _core

BATCH_SIZES = (1, 32, 3, 200)
BLOCK = 2000
BUDGET = 2e-4
STEP = 0.5
REGULARIZATION = 1e-4
UNWEIGHTED = np.empty(0)
# Mini-batches until the trace, which is bounded, has all the memory that it takes.
TRACE = 1 << 20
MOST = {"residual": 1e-6, "lost": 1 + 1e-6, "unsaid": 1e-3, "memory": 1.05}

LINE = "{samples:>13,}  {us:>9.2f}  {order:>6}  {condition:>9.1e}  {residual:>8.1e}  {lost:>6.4f}  "
LINE += "{unsaid:>7.1e}  {resident_mb:>11.1f}"
HEADER = "      samples  us/sample  points  condition  residual    lost   unsaid  resident MB"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--samples", type=positive_int, default=1_000_000)
    add("--lines", type=positive_int, default=50, help="how often to look; 50 by default")
    add("--solver", choices=("sgd", "newton"), default="sgd", help="where the weights come from")
    add("--seed", type=int, default=0)
    report.add_json(parser)


def run(options: argparse.Namespace) -> int:
    stream, stretches = Stream(options.seed), []
    model = make_model(options.solver)
    print(HEADER)
    edges = np.linspace(0, options.samples, options.lines + 1).astype(int)
    with machine.one_thread():
        for count in np.diff(edges):
            stretches.append(stretch(model, stream, int(count)))
            for name in ("residual", "lost", "unsaid"):
                stretches[-1][name] = max(each[name] for each in stretches[-2:])
            print(LINE.format(**stretches[-1]), flush=True)
    code, promises = report.verdict(judge(stretches))
    report.write_json(options, stretches=stretches, promises=promises)
    return code


def make_model(solver: str) -> _core.Polk:
    newton = _core.NewtonSettings(0.1, 0.0, 1e5, False) if solver == "newton" else None
    return _core.Polk(
        _core.gaussian(1.0),
        _core.parse_loss("squared"),
        _core.StepSchedule.constant(STEP),
        _core.Compression(_core.BudgetSchedule.fixed(BUDGET)),
        REGULARIZATION,
        False,
        newton,
        2,
        1,
    )


class Stream:
    """Samples of a cloud whose centre goes round in a circle, and a function of the place."""

    PERIOD = 100_000

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self.seen = 0

    def take(self, count: int) -> tuple[Array, Array]:
        angle = 2 * np.pi * (self.seen + np.arange(count)) / self.PERIOD
        X = 0.5 * self._random.normal(size=(count, 2))
        X += np.column_stack([np.cos(angle), np.sin(angle)])
        y = np.sin(3 * X[:, :1]) + X[:, 1:] ** 2 + 0.1 * self._random.normal(size=(count, 1))
        self.seen += count
        return X, y


def stretch(model: _core.Polk, stream: Stream, count: int) -> Figures:
    """Learn from so many samples, then look at what has become of the model."""
    watch, end, kind = machine.Stopwatch(), stream.seen + count, 0
    while stream.seen < end:
        X, y = stream.take(min(BLOCK, end - stream.seen))
        with watch:
            model.run(X, y, UNWEIGHTED, BATCH_SIZES[kind % len(BATCH_SIZES)])
        kind += 1
    residual, condition = factor_residual(model)
    lost, unsaid = np.max([losses(model, stream, size) for size in BATCH_SIZES], axis=0)
    return {
        **watch.figures,
        "samples": model.samples,
        "mini_batches": model.batches,
        "us": 1e6 * watch.cpu_seconds / count,
        "order": model.model_order,
        "condition": condition,
        "residual": residual,
        "lost": lost,
        "unsaid": unsaid,
        "resident_mb": machine.resident_bytes() / 1e6,
    }


def factor_residual(model: _core.Polk) -> tuple[float, float]:
    """Return max |T K T' - I| of the basis, and the condition of its K."""
    archive = model.to_archive()
    size = archive["factor.size"]
    root = np.zeros((size, size))
    root[np.tril_indices(size)] = archive["factor"]
    basis = archive["dictionary"][:size]
    gram = _core.parse_kernel(archive["kernel"]).block(basis, basis)
    defect = root @ gram @ root.T - np.eye(size)
    return float(np.abs(defect).max()), float(np.linalg.cond(gram))


def losses(model: _core.Polk, stream: Stream, size: int) -> tuple[float, float]:
    """Return the distance by which compression moves the function in a mini-batch, over its budget.

    By hand: the function before compression, from its definition, and the one after it. The second
    number is by how much that is more than the trace says.
    """
    X, y = stream.take(size)
    before = model.iterate
    pull = _core.KernelExpansion(before.kernel, X, -STEP / size * (before(X) - y))
    model.run(X, y, UNWEIGHTED, size)
    wanted = before.combine(1 - STEP * REGULARIZATION, pull, 1.0)
    lost = wanted.distance(model.iterate)
    return lost / BUDGET, (lost - model.trace[-1, 4]) / BUDGET


def judge(stretches: Sequence[Figures]) -> Iterator[Promise]:
    """Nothing has drifted, and memory has stayed flat once the trace was full."""
    last = stretches[-1]
    yield at_most("residual of the factor", last["residual"], MOST["residual"])
    yield at_most("share of its budget that a step lost", last["lost"], MOST["lost"])
    yield at_most(
        "share of its budget that a step lost without saying so", last["unsaid"], MOST["unsaid"]
    )
    full = [each for each in stretches if each["mini_batches"] >= TRACE]
    if len(full) > 1:
        memory = last["resident_mb"] / full[0]["resident_mb"]
        yield at_most("resident memory over that with a full trace", memory, MOST["memory"])

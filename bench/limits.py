"""How near to the machine's limits: every speed that parsimon promises, beside what it promises.

Each line is a ratio of two measurements of the same run, so that it means the same on any machine;
seconds and rates are printed beside it. The exit code is 0 if all promises hold and 1 if not.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from sklearn.svm import SVC

from bench import machine, report
from bench.cli import MissingDataError, positive_int
from bench.speed import Run, blocks, ratios, train
from bench.tasks import Task, mnist, multidist
from parsimon import POLKClassifier, _core, kernels

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Result:
    """A measured figure and its promise: at most, or at least if `larger` is better."""

    name: str
    measured: float
    promised: float
    larger: bool
    detail: str

    @property
    def holds(self) -> bool:
        return self.measured >= self.promised if self.larger else self.measured <= self.promised


def at_most(name: str, measured: float, promised: float, detail: str) -> Result:
    return Result(name, measured, promised, False, detail)


def at_least(name: str, measured: float, promised: float, detail: str) -> Result:
    return Result(name, measured, promised, True, detail)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", choices=CHECKS, action="append", help="may be given repeatedly")
    parser.add_argument("--repeat", type=positive_int, default=5, help="5 by default: the median")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")


def run(options: argparse.Namespace) -> int:
    results: list[Result] = []
    for name in options.only or CHECKS:
        try:
            for result in CHECKS[name](options.repeat):
                results.append(result)
                print(line(result), flush=True)
        except MissingDataError as error:
            print(f"     {name}: skipped. {error}", flush=True)
    if options.json:
        content = [{**asdict(result), "holds": result.holds} for result in results]
        report.write_json(options.json, {"results": content, **machine.environment()})
    return 0 if all(result.holds for result in results) else 1


def line(result: Result) -> str:
    verdict = "ok  " if result.holds else "MISS"
    sign = ">=" if result.larger else "<="
    return (
        f"{verdict} {result.name}: {result.measured:.3g} ({sign} {result.promised:g}); "
        f"{result.detail}"
    )


# -- training on MNIST ---------------------------------------------------------------------------


def train_ratios(repeat: int) -> Iterator[Result]:
    """Time of an epoch over that of the products that POLK cannot do without."""
    task = mnist(None, 0)
    for loss, parsimony, promised in (
        ("hinge", 0.024, 1.6),
        ("hinge", 0.016, 2.5),
        ("logistic", 0.0111, 2.0),
    ):
        model = task.classifier(loss, parsimony=parsimony)
        runs, rate = timed_runs(model, task, repeat)
        ratio = median(ratios(run, rate.best)["ratio"] for run in runs)
        yield at_most(
            f"training, {loss}, K = {parsimony:g}, time over floor",
            ratio,
            promised,
            f"{median(run.seconds for run in runs):.2f} s, {runs[0].model_order} points, "
            f"error {100 * runs[0].test_error:.2f} %, GEMM {rate.best / 1e9:.1f} GFlop/s",
        )


def timed_runs(
    model: POLKClassifier, task: Task, repeat: int
) -> tuple[list[Run], machine.GemmRate]:
    rate = machine.GemmRate()
    runs = []
    with machine.one_thread():
        train(model, task, 2000)
        for _ in range(repeat):
            rate.measure(machine.GENERAL_SHAPES, seconds=0.1)
            runs.append(train(model, task))
            rate.measure(blocks(runs[-1], task, model), seconds=0.1)
    return runs, rate


def one_by_one(repeat: int) -> Iterator[Result]:
    """Time of a stream of single samples over that of reading dictionary and factor."""
    task = mnist(6000, 0)
    model = task.classifier(batch_size=1).set_params(learning_rate=0.75, parsimony=0.12)
    with machine.one_thread():
        runs = [train(model, task) for _ in range(repeat)]
        trace = model.trace_
        before = np.concatenate([[0], trace["model_order"][:-1]]).astype(np.float64)
        read = 8 * float(np.sum(before * task.features + before * (before + 1) * trace["active"]))
        rate = read_rate(runs[0].model_order, task.features)
    seconds = median(run.seconds for run in runs)
    yield at_most(
        "single samples, time over that of reading the model",
        seconds / (read / rate),
        3.0,
        f"{1e6 * seconds / len(task.X):.0f} us a sample, {runs[0].model_order} points, "
        f"{rate / 1e9:.1f} GB/s",
    )


def read_rate(model_order: int, features: int, seconds: float = 0.5) -> float:
    """Return the bytes a second that a product of a dictionary with a vector reads, at its best."""
    random = np.random.default_rng(0)
    points, x = random.normal(size=(model_order, features)), random.normal(size=features)
    best = min(timed(lambda: points @ x, 20) for _ in range(max(3, round(seconds / 1e-2))))
    return points.nbytes / best


# -- small models --------------------------------------------------------------------------------


def small_models(repeat: int) -> Iterator[Result]:
    """Samples a second where a model has less than 100 points of two features."""
    block = 1000
    task = multidist(101_000, 0)
    for parsimony in (0.04, 0.001):
        rates, model = [], task.classifier(parsimony=parsimony)
        with machine.one_thread():
            for _ in range(repeat):
                model = task.classifier(parsimony=parsimony)
                model.partial_fit(task.X[:block], task.y[:block], classes=range(5))
                start = time.perf_counter()
                for first in range(block, len(task.X), block):
                    model.partial_fit(task.X[first : first + block], task.y[first : first + block])
                rates.append((len(task.X) - block) / (time.perf_counter() - start))
        yield at_least(
            f"multidist in blocks of {block}, samples a second",
            median(rates),
            500_000,
            f"{model.model_order_} points",
        )
    X, y = task.X[:1], task.y[:1]
    targets, weights = y.astype(float)[:, None], np.empty(0)
    core = model._model
    with machine.one_thread():
        whole = median(timed(lambda: model.partial_fit(X, y), 500) for _ in range(repeat))
        inner = median(timed(lambda: core.run(X, targets, weights, 32), 500) for _ in range(repeat))
    yield at_most(
        "partial_fit of one sample, microseconds beside the core's own",
        1e6 * (whole - inner),
        20,
        f"{1e6 * whole:.1f} us in all",
    )


# -- prediction ----------------------------------------------------------------------------------


def with_points(model_order: int, features: int, **settings: Any) -> POLKClassifier:
    """Return a model of so many random points and ten classes."""
    random = np.random.default_rng(0)
    # One mini-batch and no compression: every sample becomes a point of the model.
    model = POLKClassifier(
        kernel=kernels.Gaussian(features**0.5),
        learning_rate=1.0,
        budget=0.0,
        batch_size=model_order,
        epochs=1,
        average=False,
        **settings,
    )
    return model.fit(random.normal(size=(model_order, features)), np.arange(model_order) % 10)


def prediction(repeat: int) -> Iterator[Result]:
    """Rate of decision_function over that of a matrix product; time of SVC over ours."""
    model_order, features, samples = 1000, 784, 5000
    X = np.random.default_rng(1).normal(size=(samples, features))
    model = with_points(model_order, features)
    rate = machine.GemmRate()
    with machine.one_thread():
        rate.measure([*machine.GENERAL_SHAPES, (model_order, features, 256)])
        seconds = median(timed(lambda: model.decision_function(X)) for _ in range(repeat))
    ours = 2.0 * model_order * features * samples / seconds
    yield at_least(
        "decision_function, share of the GEMM rate",
        ours / rate.best,
        0.8,
        f"{ours / 1e9:.1f} of {rate.best / 1e9:.1f} GFlop/s",
    )
    random = np.random.default_rng(2)
    svc = SVC(C=1.0, gamma=0.5 / features).fit(
        random.normal(size=(model_order, features)), np.arange(model_order) % 10
    )
    ours_too = with_points(len(svc.support_), features)
    few = X[:500]
    with machine.one_thread():
        theirs = median(timed(lambda: svc.decision_function(few)) for _ in range(repeat))
        seconds = median(timed(lambda: ours_too.decision_function(few)) for _ in range(repeat))
    yield at_least(
        "decision_function, time of scikit-learn's SVC over ours",
        theirs / seconds,
        5,
        f"{len(svc.support_)} points, {1e3 * theirs:.0f} and {1e3 * seconds:.1f} ms",
    )


# -- threads and precision -----------------------------------------------------------------------


def two_threads(repeat: int) -> Iterator[Result]:
    """Time with one thread over that with two, and whether the bits are the same."""
    task, known = mnist(40_000, 0), 20_000
    for loss, parsimony in (("logistic", 0.0111), ("logistic", 0.008), ("hinge", 0.016)):
        # What is promised is training at more than 1,000 points, not the way there.
        model = task.classifier(loss, parsimony=parsimony).fit(task.X[:known], task.y[:known])

        def go_on(jobs: int, model: POLKClassifier = model) -> tuple[float, Array]:
            learner = deepcopy(model).set_params(n_jobs=jobs)
            start = time.perf_counter()
            learner.partial_fit(task.X[known:], task.y[known:])
            return time.perf_counter() - start, np.asarray(learner.weights_)

        name = f"training, {loss}, K = {parsimony:g}, {model.model_order_} points"
        yield speed_up(name, repeat, go_on)
    X = np.random.default_rng(1).normal(size=(5000, 784))
    fixed = with_points(1000, 784)

    def predict(jobs: int) -> tuple[float, Array]:
        fixed.set_params(n_jobs=jobs)
        start = time.perf_counter()
        values = fixed.decision_function(X)
        return time.perf_counter() - start, values

    yield speed_up("prediction", repeat, predict)


def speed_up(name: str, repeat: int, work: Callable[[int], tuple[float, Array]]) -> Result:
    """Compare the seconds, and what else it returns, of work by one and by two threads."""
    seconds: dict[int, list[float]] = {1: [], 2: []}
    outcome, meetings = {}, []
    for _ in range(repeat):
        meetings.append(1e9 * _core.meeting_seconds(2))
        for jobs, times in seconds.items():
            elapsed, outcome[jobs] = work(jobs)
            times.append(elapsed)
    one, two = (median(times) for times in seconds.values())
    same = np.array_equal(outcome[1], outcome[2])
    return at_least(
        f"{name}, time with one thread over that with two",
        one / two if same else 0.0,
        1.7,
        f"{one:.2f} and {two:.2f} s, {'the same bits' if same else 'OTHER BITS'}; "
        f"to meet took the threads {min(meetings):.0f} to {max(meetings):.0f} ns",
    )


def single_precision(repeat: int) -> Iterator[Result]:
    """Time in double over that in single precision, and what it does to the model."""
    X = np.random.default_rng(1).normal(size=(5000, 784))
    model, single = with_points(1000, 784), with_points(1000, 784, dtype="float32")
    narrow = X.astype(np.float32)
    with machine.one_thread():
        double_seconds = median(timed(lambda: model.decision_function(X)) for _ in range(repeat))
        seconds = median(timed(lambda: single.decision_function(narrow)) for _ in range(repeat))
    yield at_least(
        "kernel blocks (prediction), time in double over that in single precision",
        double_seconds / seconds,
        1.5,
        f"{double_seconds:.3f} and {seconds:.3f} s",
    )
    task = mnist(None, 0)
    for parsimony in (0.024, 0.016):
        runs, _ = timed_runs(task.classifier(parsimony=parsimony), task, repeat)
        thin = Task(**{**vars(task), "X": task.X.astype(np.float32)})
        rounded = task.classifier(parsimony=parsimony).set_params(dtype="float32")
        fast, _ = timed_runs(rounded, thin, repeat)
        name = f"hinge, K = {parsimony:g}, float32: "
        first, second = median(r.seconds for r in runs), median(r.seconds for r in fast)
        # Only the kernel blocks are in single precision, so training gains what share they have.
        yield at_most(
            f"{name}change of the model order, %",
            100 * abs(fast[0].model_order / runs[0].model_order - 1),
            2,
            f"{runs[0].model_order} and {fast[0].model_order} points; "
            f"training took {first:.2f} and {second:.2f} s, a ratio of {first / second:.2f}",
        )
        yield at_most(
            f"{name}change of the error, points",
            100 * abs(fast[0].test_error - runs[0].test_error),
            0.1,
            f"{100 * runs[0].test_error:.2f} and {100 * fast[0].test_error:.2f} %",
        )


def importing(repeat: int) -> Iterator[Result]:
    """Time to import parsimon over that to import scikit-learn."""

    def seconds(name: str) -> float:
        code = (
            f"import time; t = time.perf_counter(); import {name}; print(time.perf_counter() - t)"
        )
        command = [sys.executable, "-c", code]
        outputs = [
            subprocess.run(command, check=True, capture_output=True, text=True).stdout
            for _ in range(repeat + 1)
        ]
        return median(map(float, outputs[1:]))

    theirs, ours = seconds("sklearn"), seconds("parsimon")
    yield at_most(
        "import, time of parsimon over that of scikit-learn",
        ours / theirs,
        2,
        f"{ours:.2f} and {theirs:.2f} s",
    )


def timed(work: Callable[[], Any], calls: int = 1) -> float:
    """Return the seconds of one call, after one that does not count."""
    work()
    start = time.perf_counter()
    for _ in range(calls):
        work()
    return (time.perf_counter() - start) / calls


CHECKS: dict[str, Callable[[int], Iterator[Result]]] = {
    "training": train_ratios,
    "one_by_one": one_by_one,
    "small": small_models,
    "prediction": prediction,
    "threads": two_threads,
    "precision": single_precision,
    "import": importing,
}

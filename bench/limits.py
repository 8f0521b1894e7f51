"""How near to the machine's limits: every speed that parsimon promises, beside what it promises.

Each line is a ratio of two measurements of the same run, so that it means the same on any machine;
seconds and rates are printed beside it. The exit code is 0 if all promises hold and 1 if not.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from statistics import median
from timeit import timeit
from typing import Any

import numpy as np
from sklearn.svm import SVC
from sklearn.utils import gen_batches

from bench import machine, report
from bench.cli import left_out, positive_int
from bench.papers import slkl_speed
from bench.report import Promise, at_least, at_most
from bench.runner import Figures
from bench.speed import before_each_batch, blocks, ratios, train
from bench.tasks import Array, Task, mnist, multidist
from parsimon import POLKClassifier, POLKRegressor, _core, kernels
from parsimon.datasets import make_regression_outliers

# Samples of a long stream, those before it begins in which the model grows, and those of a call.
STREAM = (1_000_000, 20_000, 1000)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", choices=CHECKS, action="append", help="may be given repeatedly")
    parser.add_argument("--repeat", type=positive_int, default=5, help="5 by default: the median")
    report.add_json(parser)


def run(options: argparse.Namespace) -> int:
    codes, results = [0], []
    for name in options.only or CHECKS:
        with left_out():
            code, found = report.verdict(CHECKS[name](options.repeat))
            codes.append(code)
            results += found
    report.write_json(options, results=results)
    return max(codes)


def seconds_of(work: Callable[[], Any], repeat: int, calls: int = 1) -> float:
    """Return the median time of one call on one thread, each time after one that does not count."""
    with machine.one_thread():
        return median(timeit(work, work, number=calls) for _ in range(repeat)) / calls


def train_ratios(repeat: int) -> Iterator[Promise]:
    """Time of an epoch over that of the products that POLK cannot do without."""
    task = mnist(None, 0)
    for loss, parsimony, promised in (
        ("hinge", 0.024, 1.6),
        ("hinge", 0.016, 2.5),
        ("logistic", 0.0111, 2.0),
    ):
        runs, gemm = timed_runs(task.classifier(loss, parsimony=parsimony), task, repeat)
        ratio = median(ratios(each, {"products": gemm}, gemm)["ratio"] for each in runs)
        detail = f"{seconds(runs):.2f} s, {runs[0]['model_order']} points, error "
        detail += f"{100 * runs[0]['test_error']:.2f} %, GEMM {gemm / 1e9:.1f} GFlop/s"
        name = f"training, {loss}, K = {parsimony:g}, time over floor"
        yield at_most(name, ratio, promised, detail)


def timed_runs(model: POLKClassifier, task: Task, repeat: int) -> tuple[list[Figures], float]:
    """Train this many times, and return the machine's GEMM rate beside the figures."""
    rate, runs = machine.GemmRate(), []
    with machine.one_thread():
        train(model, task, 2000)
        for _ in range(repeat):
            rate.measure(machine.GENERAL_SHAPES, seconds=0.1)
            runs.append(train(model, task))
            rate.measure(blocks(runs[-1], task, model), seconds=0.1)
    return runs, rate.best


def seconds(runs: list[Figures]) -> float:
    return median(each["seconds"] for each in runs)


def one_by_one(repeat: int) -> Iterator[Promise]:
    """Time of a stream of single samples over that of reading dictionary and factor."""
    task = mnist(6000, 0)
    model = task.classifier(batch_size=1).set_params(learning_rate=0.75, parsimony=0.12)
    with machine.one_thread():
        taken = seconds([train(model, task) for _ in range(repeat)])
        order, trace = model.model_order_, model.trace_
        before, _ = before_each_batch(trace, 0)
        read = 8 * float(np.sum(before * task.features + before * (before + 1) * trace["active"]))
        # The rate at which a product of the dictionary with a vector reads, at its best.
        points, x = np.ones((order, task.features)), np.ones(task.features)
        rate = points.nbytes / machine.best_seconds(lambda: points @ x, 0.5)
    detail = f"{1e6 * taken / len(task.X):.0f} us per sample, {order} points, {rate / 1e9:.1f} GB/s"
    name = "single samples, time over that of reading the model"
    yield at_most(name, taken / (read / rate), 3.0, detail)


def small_models(repeat: int) -> Iterator[Promise]:
    """Samples per second where a model has less than 100 points of two features."""
    block = 1000
    task = multidist(100_000, 0)
    for parsimony in (0.04, 0.001):
        rates = []
        with machine.one_thread():
            for _ in range(repeat):
                model = task.classifier(parsimony=parsimony)
                model.partial_fit(task.X[:block], task.y[:block], classes=range(5))
                with machine.Stopwatch() as watch:
                    for part in gen_batches(len(task.X), block):
                        model.partial_fit(task.X[part], task.y[part])
                rates.append(len(task.X) / watch.seconds)
        name = f"multidist in blocks of {block}, samples per second"
        yield at_least(name, median(rates), 500_000, f"{model.model_order_} points")
    X, y = task.X[:1], task.y[:1]
    targets, weights, core = y.astype(float)[:, None], np.empty(0), model._model
    whole = seconds_of(lambda: model.partial_fit(X, y), repeat, 500)
    inner = seconds_of(lambda: core.run(X, targets, weights, 32), repeat, 500)
    name = "partial_fit of one sample, microseconds beside the core's own"
    yield at_most(name, 1e6 * (whole - inner), 20, f"{1e6 * whole:.1f} us in all")


def long_stream(repeat: int) -> Iterator[Promise]:
    """Time of a sample, and memory, at the end of a stream over those at its beginning."""
    # All samples are drawn before the first is learned: their memory is there from the start.
    samples, warm_up, block = STREAM
    task = multidist(warm_up + samples, 0)
    model, times, memory = task.classifier(), [], []
    with machine.one_thread():
        for part in gen_batches(len(task.X), block):
            with machine.Stopwatch() as watch:
                model.partial_fit(task.X[part], task.y[part], classes=range(5))
            times.append(watch.seconds)
            memory.append(machine.resident_bytes() / 1e6)
    tenth, start = samples // block // 10, warm_up // block
    # Other work makes blocks slower, never quicker: the quicker ones ran undisturbed.
    early, late = (np.quantile(each, 0.1) for each in (times[start:][:tenth], times[-tenth:]))
    about, detail = f"{samples:,} samples of multidist", f"{model.model_order_} points, "
    each = 1e6 / block
    name = f"{about}, time of a sample of the last tenth over the first's"
    yield at_most(name, late / early, 1.2, f"{detail}{each * early:.2f} and {each * late:.2f} us")
    name = f"{about}, resident memory over that after the first tenth"
    before, after = memory[start + tenth - 1], memory[-1]
    yield at_most(name, after / before, 1.05, f"{before:.0f} and {after:.0f} MB")


def tiny_budgets(repeat: int) -> Iterator[Promise]:
    """Time of a sample where double precision bounds the model over that where a budget does."""
    X, y = make_regression_outliers(20_000, random_state=0)
    taken, orders = [], []
    for budget in (1e-3, 1e-8):
        model = POLKRegressor(
            kernel=kernels.Gaussian(0.06),
            solver="sgd",
            learning_rate=0.5,
            budget=budget,
            regularization=1e-6,
            batch_size=1,
        )
        model.partial_fit(X[:10_000], y[:10_000])

        def go_on(model: POLKRegressor = model) -> None:
            deepcopy(model).partial_fit(X[10_000:], y[10_000:])

        taken.append(seconds_of(go_on, repeat) / 10_000)
        orders.append(model.model_order_)
    detail = " and ".join(
        f"{1e6 * each:.1f} us at {order} points" for each, order in zip(taken, orders, strict=True)
    )
    name = "single samples, time with budget 1e-8 over that with 1e-3"
    yield at_most(name, taken[1] / taken[0], 10, detail)


def with_points(model_order: int, features: int, **settings: Any) -> POLKClassifier:
    """Return a model of this many random points and ten classes."""
    # One mini-batch and no compression: every sample becomes a point of the model.
    model = POLKClassifier(
        kernel=kernels.Gaussian(features**0.5),
        solver="sgd",
        learning_rate=1.0,
        budget=0.0,
        batch_size=model_order,
        epochs=1,
        average=False,
        **settings,
    )
    return model.fit(*random_samples(model_order, features, 0))


def random_samples(count: int, features: int, seed: int) -> tuple[Array, Array]:
    X = np.random.default_rng(seed).normal(size=(count, features))
    return X, np.arange(count) % 10


def prediction(repeat: int) -> Iterator[Promise]:
    """Rate of decision_function over that of a matrix product; time of SVC over ours."""
    points, features, samples = 1000, 784, 500
    X, _ = random_samples(samples, features, 1)
    model, gemm = with_points(points, features), machine.GemmRate()
    with machine.one_thread():
        # Both at their quickest, in turns: other work on the machine slows the longer call more.
        bursts = []
        for _ in range(repeat):
            gemm.measure([*machine.GENERAL_SHAPES, (points, features, 256)], seconds=0.1)
            bursts.append(machine.best_seconds(lambda: model.decision_function(X), 0.3))
    rate = 2.0 * points * features * samples / min(bursts)
    detail = f"{rate / 1e9:.1f} of {gemm.best / 1e9:.1f} GFlop/s"
    yield at_least("decision_function, share of the GEMM rate", rate / gemm.best, 0.8, detail)
    svc = SVC(C=1.0, gamma=0.5 / features).fit(*random_samples(points, features, 2))
    ours = with_points(len(svc.support_), features)
    theirs = seconds_of(lambda: svc.decision_function(X), repeat)
    taken = seconds_of(lambda: ours.decision_function(X), repeat)
    detail = f"{len(svc.support_)} points, {1e3 * theirs:.0f} and {1e3 * taken:.1f} ms"
    name = "decision_function, time of scikit-learn's SVC over ours"
    yield at_least(name, theirs / taken, 5, detail)


def two_threads(repeat: int) -> Iterator[Promise]:
    """Time with one thread over that with two, and whether the bits are the same."""
    task, known = mnist(40_000, 0), 20_000
    for loss, parsimony in (("logistic", 0.0111), ("logistic", 0.008), ("hinge", 0.016)):
        # What is promised is training at more than 1,000 points, not the way there.
        model = task.classifier(loss, parsimony=parsimony).fit(task.X[:known], task.y[:known])

        def go_on(jobs: int, watch: machine.Stopwatch, model: POLKClassifier = model) -> Array:
            learner = deepcopy(model).set_params(n_jobs=jobs)
            with watch:
                learner.partial_fit(task.X[known:], task.y[known:])
            return np.asarray(learner.weights_)

        name = f"training, {loss}, K = {parsimony:g}, {model.model_order_} points"
        yield speed_up(name, repeat, go_on)
    X, _ = random_samples(5000, 784, 1)
    fixed = with_points(1000, 784)

    def predict(jobs: int, watch: machine.Stopwatch) -> Array:
        fixed.set_params(n_jobs=jobs)
        with watch:
            return fixed.decision_function(X)

    yield speed_up("prediction", repeat, predict)


def speed_up(name: str, repeat: int, work: Callable[[int, machine.Stopwatch], Array]) -> Promise:
    """Compare the time of work by one and by two threads, and what it returns."""
    times: dict[int, list[float]] = {1: [], 2: []}
    outcome, meetings = {}, []
    for _ in range(repeat):
        meetings.append(1e9 * _core.meeting_seconds(2))
        for jobs, taken in times.items():
            watch = machine.Stopwatch()
            outcome[jobs] = work(jobs, watch)
            taken.append(watch.seconds)
    one, two = map(median, times.values())
    same = np.array_equal(outcome[1], outcome[2])
    detail = f"{one:.2f} and {two:.2f} s, {'the same bits' if same else 'OTHER BITS'}; "
    detail += f"to meet took the threads {min(meetings):.0f} to {max(meetings):.0f} ns"
    name = f"{name}, time with one thread over that with two"
    return at_least(name, one / two if same else 0.0, 1.7, detail)


def single_precision(repeat: int) -> Iterator[Promise]:
    """Time in double over that in single precision, and what it does to the model."""
    X, _ = random_samples(5000, 784, 1)
    times = []
    for dtype in ("float64", "float32"):
        model, cast = with_points(1000, 784, dtype=dtype), X.astype(dtype)
        times.append(seconds_of(lambda: model.decision_function(cast), repeat))  # noqa: B023
    detail = f"{times[0]:.3f} and {times[1]:.3f} s"
    name = "kernel blocks (prediction), time in double over that in single precision"
    yield at_least(name, times[0] / times[1], 1.5, detail)
    task = mnist(None, 0)
    thin = replace(task, X=task.X.astype(np.float32))
    for parsimony in (0.024, 0.016):
        model = task.classifier(parsimony=parsimony)
        wide, _ = timed_runs(model, task, repeat)
        narrow, _ = timed_runs(model.set_params(dtype="float32"), thin, repeat)
        name = f"hinge, K = {parsimony:g}, float32: change of the "
        # Only the kernel blocks are in single precision, so training gains what share they have.
        before, after = wide[0]["model_order"], narrow[0]["model_order"]
        detail = f"{before} and {after} points; training took {seconds(wide):.2f} and "
        detail += f"{seconds(narrow):.2f} s, a ratio of {seconds(wide) / seconds(narrow):.2f}"
        yield at_most(f"{name}model order, %", 100 * abs(after / before - 1), 2, detail)
        before, after = 100 * wide[0]["test_error"], 100 * narrow[0]["test_error"]
        detail = f"{before:.2f} and {after:.2f} %"
        yield at_most(f"{name}error, points", abs(after - before), 0.1, detail)


def importing(repeat: int) -> Iterator[Promise]:
    """Time to import parsimon over that to import scikit-learn."""

    def seconds(name: str) -> float:
        code = f"from time import perf_counter as t; s = t(); import {name}; print(t() - s)"
        start = [sys.executable, "-c", code]
        times = [
            float(subprocess.run(start, check=True, capture_output=True, text=True).stdout)
            for _ in range(repeat + 1)
        ]
        return median(times[1:])

    theirs, ours = seconds("sklearn"), seconds("parsimon")
    name = "import, time of parsimon over that of scikit-learn"
    yield at_most(name, ours / theirs, 2, f"{ours:.2f} and {theirs:.2f} s")


CHECKS: dict[str, Callable[[int], Iterator[Promise]]] = {
    "training": train_ratios,
    "one_by_one": one_by_one,
    "small": small_models,
    "stream": long_stream,
    "tiny_budgets": tiny_budgets,
    "prediction": prediction,
    "threads": two_threads,
    "precision": single_precision,
    "slkl": slkl_speed.promises,
    "import": importing,
}

"""How near one pass over a stream, and a fit with nothing set, come to machines fitted in batch.

Each line is a figure beside what is promised of it: the median over some seeds, which split the
data where they come in one part, and put the samples in order. Features are standardised on the
training part, unless they are pixels. What other packages reach is kept, what parsimon does is
measured anew; times are of the processor. The exit code is 0 if all promises hold and 1 if not.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import cycle
from operator import sub, truediv
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.base import is_classifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import gen_batches

import parsimon
from bench import compare, machine, report, tasks
from bench.baselines.peers import IntelSvm, Libsvm, TunedRidge
from bench.cli import left_out, positive_int
from bench.report import Promise, at_least, at_most, significant, span
from bench.runner import Experiment, Figures, Method, Row, Run
from bench.tasks import Task
from parsimon import kernels
from parsimon.datasets import make_regression_outliers

BLOCK = 500
CLASSIFIER = Method("POLK", "POLKClassifier")
OF_PAPER = Method("gamma = 1/32", "POLKClassifier", {"gamma": 1 / 32})
# The samples to train on are always the same, and so is what a batch machine makes of them.
FIXED = ("mnist", "usps")
AS_THEY_ARE = (*FIXED, "digits", "brodatz")
# Data that are drawn, or come with scikit-learn, by seed.
DRAWN: dict[str, Callable[[int], Any]] = {
    "digits": lambda seed: datasets.load_digits(return_X_y=True),
    "abalone": lambda seed: tasks.load_data("abalone", return_X_y=True),
    "friedman1": lambda seed: datasets.make_friedman1(2000, noise=1, random_state=seed),
    "26 classes": lambda seed: datasets.make_classification(
        20_000, 16, n_informative=12, n_classes=26, class_sep=2, random_state=seed
    ),
    "quantiles": lambda seed: datasets.make_gaussian_quantiles(
        n_samples=12_000, n_features=6, n_classes=4, random_state=seed
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--rows", nargs="+", choices=ROWS, default=list(ROWS), help="all by default")
    add("--seeds", dest="runs", type=positive_int, default=3, help="3 by default: the median")
    add("--no-svc", action="store_true", help="leave out SVC on MNIST, which takes minutes")
    add("--quick", action="store_true", help="little data: whether it works, no verdict")
    kept = "folder for what other packages reached; build/accuracy by default"
    add("--out", type=Path, default=Path("build/accuracy"), metavar="DIR", help=kept)
    report.add_json(parser)


def run(options: argparse.Namespace) -> int:
    results, codes = {}, []
    for name in options.rows:
        with machine.one_thread():
            code, results[name] = report.verdict(ROWS[name](options))
        codes.append(code)
    report.write_json(options, results=results)
    return 0 if options.quick else max(codes) if any(results.values()) else 2


def rows_of(
    options: argparse.Namespace, name: str, train: Any, *methods: Method, **more: Any
) -> list[Row]:
    """Run methods on a task; what is parsimon's is not kept, because it is what changes."""
    ours = isinstance(methods[0].estimator, str)
    given: dict[str, Any] = {
        "load": partial(load, cache=options.out / "cache"),
        "data": {"name": name},
        "quick": {"samples": 400, "test_samples": 300},
        **more,
    }
    kept = argparse.Namespace(**{**vars(options), "out": None if ours else options.out})
    return Experiment(name, name, methods, train=train, **given).rows(kept)


def load(
    seed: int,
    *,
    name: str,
    samples: int | None = None,
    test_samples: int | None = None,
    cache: Path | None = None,
) -> Task:
    """Return the task of a seed; some are to test with, where there is no such part."""
    if name in tasks.TASKS:
        task = compare.load(seed, name=name, samples=samples, cache=cache)
    else:
        X, y = DRAWN[name](seed) if name in DRAWN else tasks.read(name, "X", "y")
        size = 3000 if name == "quantiles" else 0.75
        X, X_test, y, y_test = train_test_split(X, y, train_size=size, random_state=seed)
        task = Task(name, X[:samples], y[:samples], X_test, y_test)
    X, X_test, y_test = task.X, task.X_test[:test_samples], task.y_test[:test_samples]
    if name not in AS_THEY_ARE:
        scale = StandardScaler().fit(X).transform
        X, X_test = scale(X), scale(X_test)
    return replace(task, X=X, X_test=X_test, y_test=y_test)


def fit(run: Run) -> Figures:
    """Train on all samples, after a few that do not count."""
    X, y = run.task.X, run.task.y
    run.make().fit(X[:100], y[:100])
    model = run.make()
    with machine.Stopwatch() as watch:
        model.fit(X, y)
    return judged(model, run.task, watch)


def learn_once(run: Run) -> Figures:
    """Learn from the samples as they come, each once."""
    X, y, model, watch = run.task.X, run.task.y, run.make(), machine.Stopwatch()
    classes = {"classes": np.unique(y)} if is_classifier(model) else {}
    for part in gen_batches(len(X), BLOCK):
        with watch:
            model.partial_fit(X[part], y[part], **classes)
    return judged(model, run.task, watch)


def judged(model: Any, task: Task, watch: machine.Stopwatch) -> Figures:
    """Return the share of wrong labels in percent, or the root of the mean squared error."""
    predicted, y = model.predict(task.X_test), task.y_test
    if is_classifier(model):
        error = 100 * float(np.mean(predicted != y))
    else:
        error = float(np.sqrt(np.mean((predicted - y) ** 2)))
    points = model.n_support_.sum() if isinstance(model, SVC) else model.model_order_
    return {"error": error, "points": int(points), **watch.figures}


def beside(ours: Row, theirs: Row, figure: str, combine: Callable[[Any, Any], Any]) -> float:
    """Combine a figure of both, seed by seed, and return the median; infinity where we diverge."""
    pairs = zip(ours.results, cycle(theirs.results), strict=False)
    return median(
        float("inf") if our.diverged else combine(our[figure], their[figure])
        for our, their in pairs
    )


def described(*rows: Row) -> str:
    return "; ".join(
        f"{row.method.name}: error {span(row.values('error'), '.4g')}, points "
        f"{span(row.values('points'))}, {span(row.values('cpu_seconds'), '.3g')} s"
        for row in rows
    )


def beside_svc(
    options: argparse.Namespace, train: Any, name: str, behind: float, share: float | None = None
) -> Iterator[Promise]:
    """Compare what nothing was set of with SVC, of which nothing was set either, in batch."""
    with left_out():
        svc = Method("SVC", SVC, runs=1 if name in FIXED else None)
        (theirs,) = rows_of(options, name, fit, svc)
        (ours,) = rows_of(options, name, train, CLASSIFIER)
        what = f"{'fit' if train is fit else 'one pass'}, {name}"
        above = beside(ours, theirs, "error", sub)
        yield at_most(f"{what}, error % above SVC's", above, behind, described(ours, theirs))
        if share is not None:
            part = beside(ours, theirs, "points", truediv)
            yield at_most(f"{what}, points over SVC's vectors", part, share)
        if train is fit and share is not None:
            over = beside(ours, theirs, "cpu_seconds", lambda our, their: our / max(their, 0.5))
            yield at_most(f"{what}, time over SVC's, or over half a second", over, 1)


def one_pass(options: argparse.Namespace) -> Iterator[Promise]:
    """Classify after one pass over a stream."""
    steps = {"kernel": kernels.Gaussian(4.0), "learning_rate": 24.0, "parsimony": 0.016}
    methods = (Method("K = 0.016", "POLKClassifier", steps), OF_PAPER)
    with left_out():
        for row in rows_of(options, "mnist", learn_once, *methods):
            name = f"one pass, mnist, {row.method.name}, error %"
            yield at_most(name, median(row.values("error")), 2.2, described(row))
    for name in ("usps", "magic04", "cod_rna", "digits", "multidist"):
        yield from beside_svc(options, learn_once, name, 0.5, 1 / 3)


def regression(options: argparse.Namespace) -> Iterator[Promise]:
    """Predict numbers after one pass over a stream."""
    for name in ("concrete", "california_housing", "abalone", "friedman1"):
        with left_out():
            (ridge,) = rows_of(options, name, fit, Method("KernelRidge", TunedRidge))
            (ours,) = rows_of(options, name, learn_once, Method("POLK", "POLKRegressor"))
            ratio = beside(ours, ridge, "error", truediv)
            what = f"one pass, {name}, RMSE over tuned KernelRidge's"
            yield at_most(what, ratio, 1.1, described(ours, ridge))


def fit_mnist(options: argparse.Namespace) -> Iterator[Promise]:
    """Fit to MNIST with the kernel of the paper, beside support vector machines."""
    given = {"bandwidth": 4.0, "C": 1.0}
    peers = {4: Method("Intel's SVC", IntelSvm, given, runs=1)}
    if not options.no_svc:
        peers[15] = Method("SVC", Libsvm, given, runs=1)
    with left_out():
        (ours,) = rows_of(options, "mnist", fit, OF_PAPER)
        error = median(ours.values("error"))
        yield at_most("fit, mnist, error %", error, 1.65, described(ours))
        yield at_most("fit, mnist, points", median(ours.values("points")), 2200)
        for least, peer in zip(peers, rows_of(options, "mnist", fit, *peers.values()), strict=True):
            if peer.sound:
                times = 1 / beside(ours, peer, "cpu_seconds", truediv)
                name = f"fit, mnist, time of {peer.method.name} over ours"
                yield at_least(name, times, least, described(peer))


def nothing_set(options: argparse.Namespace) -> Iterator[Promise]:
    """Fit with nothing set."""
    for name in ("usps", "digits", "magic04", "cod_rna"):
        yield from beside_svc(options, fit, name, 0.3, 1 / 5)
    for name in ("brodatz", "26 classes"):
        yield from beside_svc(options, fit, name, 0.3, 1 / 3)
    yield from beside_svc(options, fit, "quantiles", 1.0)


def two_million(options: argparse.Namespace) -> Iterator[Promise]:
    """Learn from so long a stream that errors of compression would add up."""
    stops = [n // 100 if options.quick else n for n in (10**4, 10**5, 3 * 10**5, 10**6, 2 * 10**6)]
    for name in ("POLKRegressor", "BSGDRegressor"):
        paths = []
        for seed in range(options.runs):
            X, y = make_regression_outliers(stops[-1], random_state=seed)
            model = getattr(parsimon, name)(kernel=kernels.Gaussian(0.06), random_state=seed)
            path = []
            for part in gen_batches(len(X), stops[0] // 10):
                model.partial_fit(X[part], y[part])
                if part.stop in stops:
                    path.append(excess(model))
            paths.append(path)
        path = np.median(paths, axis=0)
        at = zip(path, stops, strict=True)
        detail = ", ".join(f"{significant(found, 2)} at {stop:,}" for found, stop in at)
        name = f"{name}, a stream of {stops[-1]:,}, excess over that at {stops[1]:,}"
        yield at_most(name, float(max(path[2:]) / path[1]), 1, detail)


def excess(model: Any) -> float:
    """Return the mean squared distance to 2 x + 3 sin 6 x."""
    grid = np.linspace(-1, 1, 20_001)
    truth = 2 * grid + 3 * np.sin(6 * grid)
    return float(np.mean((model.predict(grid[:, None]) - truth) ** 2))


def more_epochs(options: argparse.Namespace) -> Iterator[Promise]:
    """Fit with four times as many epochs: nothing becomes worse, up to noise."""
    samples = 300 if options.quick else 5000
    for name in ("POLKRegressor", "BSGDRegressor", "COLKRegressor"):
        found = []
        for seed in range(options.runs):
            X, y = make_regression_outliers(samples, random_state=seed)
            model = getattr(parsimon, name)(kernel=kernels.Gaussian(0.06), random_state=seed)
            found.append([excess(model.set_params(epochs=n).fit(X, y)) for n in (5, 20)])
        few, many = np.median(found, axis=0)
        what = f"{name}, excess after 20 epochs over that after 5"
        detail = f"{significant(few, 2)} and {significant(many, 2)}"
        yield at_most(what, float(many / few), 1.05, detail)


def flipped(options: argparse.Namespace) -> Iterator[Promise]:
    """Exchange the labels of a long stream, and count samples until 90 % are right again."""
    before, after = (2000, 8000) if options.quick else (320_000, 120_000)
    for half_life, most in ((2000, 5000), ("auto", 10_000)):
        recovered = []
        for seed in range(options.runs):
            X, y = datasets.make_moons(before + after, noise=0.2, random_state=seed)
            y[before:] = 1 - y[before:]
            model = parsimon.POLKClassifier(half_life=half_life, random_state=seed)
            for part in gen_batches(len(X), BLOCK):
                if part.start >= before and model.score(X[part], y[part]) > 0.9:
                    break
                model.partial_fit(X[part], y[part], classes=(0, 1))
            recovered.append(part.start - before)
        name = f"labels flipped after {before:,}, half_life={half_life!r}, samples to recover"
        yield at_most(name, median(recovered), most, f"{span(recovered)}")


def step_cost(options: argparse.Namespace) -> Iterator[Promise]:
    """Time of a step that solves over that of a step of gradient descent, at as many points."""
    # Caps a little below what K alone would give: both have the same number of points.
    name, samples, caps = "mnist", 30_000, ((300, 0.024), (2000, 0.016))
    if options.quick:
        name, samples, caps = "synthetic", 1500, ((50, 0.04),)
    with left_out():
        task = compare.load(0, name=name, samples=samples)
        for cap, K in caps:
            models = [
                task.classifier(parsimony=K).set_params(solver=solver, max_points=cap)
                for solver in ("newton", "sgd")
            ]
            times: list[list[float]] = []
            for part in gen_batches(samples, BLOCK):
                watches = [machine.Stopwatch() for _ in models]
                for model, watch in zip(models, watches, strict=True):
                    with watch:
                        model.partial_fit(task.X[part], task.y[part], classes=np.unique(task.y))
                times.append([watch.cpu_seconds for watch in watches])
            # The mean: weights are solved in few blocks, which a median would not see.
            newton, sgd = np.mean(times[2 * len(times) // 3 :], axis=0)
            points = " and ".join(f"{model.model_order_:,}" for model in models)
            what = "time of a step that solves over that of one of gradient descent"
            detail = f"{1e3 * newton:.1f} and {1e3 * sgd:.1f} ms for {BLOCK} samples"
            yield at_most(f"{points} points, {what}", newton / sgd, 2, detail)


ROWS: dict[str, Callable[[argparse.Namespace], Iterator[Promise]]] = {
    "onepass": one_pass,
    "regression": regression,
    "mnist": fit_mnist,
    "fit": nothing_set,
    "stream": two_million,
    "epochs": more_epochs,
    "flipped": flipped,
    "cost": step_cost,
}

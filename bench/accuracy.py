"""How near one pass over a stream, and a fit with nothing set, come to machines fitted in batch.

Each line is a figure beside what is promised of it: the median over some seeds, which split the
data where they come in one part, and put the samples in order. Features are standardised on the
training part, unless they are pixels. What other packages reach is kept, what parsimon does is
measured anew; times are of the processor. The exit code is 0 if all promises hold and 1 if not.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import cycle, pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.base import is_classifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bench import compare, machine, report, tasks
from bench.baselines.peers import IntelSvm
from bench.baselines.scikit import Libsvm, TunedRidge
from bench.cli import left_out, positive_int
from bench.report import Promise, at_least, at_most, significant, span
from bench.runner import Experiment, Figures, Method, Result, Row, Run
from bench.tasks import Task
from parsimon import kernels
from parsimon.datasets import make_regression_outliers

BLOCK = 500
QUICK = {"samples": 400, "test_samples": 300}
UNSET = {kind: Method(kind, f"POLK{kind}") for kind in ("Classifier", "Regressor")}
SVC_UNSET, RIDGE = Method("SVC()", SVC), Method("KernelRidge", TunedRidge)
# Where the samples to train on are always the same, so is what a batch machine makes of them.
FIXED = ("mnist", "usps")
PIXELS = ("mnist", "usps", "digits", "brodatz")


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
    results: dict[str, list[dict[str, Any]]] = {}
    codes = []
    for name in options.rows:
        code, results[name] = report.verdict(ROWS[name](options))
        codes.append(code)
    report.write_json(options, results=results)
    return 0 if options.quick else max(codes) if any(results.values()) else 2


def rows_of(
    options: argparse.Namespace, name: str, methods: Sequence[Method], train: Any, **more: Any
) -> list[Row]:
    """Run methods on a task; what is parsimon's is not kept, because it is what changes."""
    ours = all(isinstance(each.estimator, str) for each in methods)
    common = {"load": partial(load, cache=options.out / "cache"), "data": {"name": name}}
    settings = {**common, "quick": QUICK, **more}
    experiment = Experiment(name, name, methods, train=train, **settings)
    kept = argparse.Namespace(**{**vars(options), "out": None if ours else options.out})
    return experiment.rows(kept)


# What is drawn or comes with scikit-learn, by seed: samples, and how many of them to train on.
DRAWN: dict[str, Callable[[int], tuple[Any, float]]] = {
    "digits": lambda _: (datasets.load_digits(return_X_y=True), 0.75),
    "abalone": lambda _: (tasks.load_data("abalone", return_X_y=True), 0.75),
    "friedman1": lambda seed: (datasets.make_friedman1(2000, noise=1, random_state=seed), 0.75),
    "26 classes": lambda seed: (
        datasets.make_classification(
            20_000, 16, n_informative=12, n_classes=26, class_sep=2, random_state=seed
        ),
        15_000,
    ),
    "quantiles": lambda seed: (
        datasets.make_gaussian_quantiles(
            n_samples=8000, n_features=6, n_classes=4, random_state=seed
        ),
        3000,
    ),
}


def load(
    seed: int,
    *,
    name: str,
    samples: int | None = None,
    test_samples: int | None = None,
    cache: Path | None = None,
) -> Task:
    """Return the task of a seed, standardised unless its features are pixels."""
    if name in tasks.TASKS:
        task = compare.load(seed, name=name, samples=samples, cache=cache)
    else:
        (X, y), size = DRAWN[name](seed) if name in DRAWN else (tasks.read(name, "X", "y"), 0.75)
        X, X_test, y, y_test = train_test_split(X, y, train_size=size, random_state=seed)
        task = Task(name, X[:samples], y[:samples], X_test, y_test)
    X, X_test = task.X, task.X_test[:test_samples]
    if name not in PIXELS:
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    return replace(task, X=X, X_test=X_test, y_test=task.y_test[:test_samples])


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
    for part in blocks(len(X)):
        with watch:
            model.partial_fit(X[part], y[part], **classes)
    return judged(model, run.task, watch)


def blocks(samples: int, size: int = BLOCK) -> list[slice]:
    return [slice(first, first + size) for first in range(0, samples, size)]


def judged(model: Any, task: Task, watch: machine.Stopwatch) -> Figures:
    """Return the share of wrong labels in percent, or the root of the mean squared error."""
    predicted, y = model.predict(task.X_test), task.y_test
    if is_classifier(model):
        error = 100 * float(np.mean(predicted != y))
    else:
        error = float(np.sqrt(np.mean((predicted - y) ** 2)))
    points = model.n_support_.sum() if isinstance(model, SVC) else model.model_order_
    return {"error": error, "points": int(points), **watch.figures}


def beside(ours: Row, theirs: Row, compare: Callable[[Result, Result], float]) -> float:
    """Return the median over the seeds; infinity if we diverge more often than not."""
    pairs = zip(ours.results, cycle(theirs.results), strict=False)
    return median(float("inf") if our.diverged else compare(our, their) for our, their in pairs)


def described(*rows: Row) -> str:
    return "; ".join(
        f"{row.method.name}: error {span(row.values('error'), '.4g')}, points "
        f"{span(row.values('points'))}, {span(row.values('cpu_seconds'), '.3g')} s"
        for row in rows
    )


def points_over(our: Result, their: Result) -> float:
    return our["points"] / their["points"]


def error_behind(our: Result, their: Result) -> float:
    return our["error"] - their["error"]


def one_pass(options: argparse.Namespace) -> Iterator[Promise]:
    """Classify after one pass over a stream."""
    as_in_paper = {"kernel": kernels.Gaussian(4.0), "learning_rate": 24.0, "parsimony": 0.016}
    methods = (
        Method("K = 0.016", "POLKClassifier", as_in_paper),
        Method("gamma = 1/32", "POLKClassifier", {"gamma": 1 / 32}),
    )
    with left_out():
        for row in rows_of(options, "mnist", methods, learn_once):
            name = f"one pass, mnist, {row.method.name}, error %"
            yield at_most(name, median(row.values("error")), 2.2, described(row))
    for name in ("usps", "magic04", "cod_rna", "digits", "multidist"):
        with left_out():
            (svc,) = batch(options, name)
            (ours,) = rows_of(options, name, [UNSET["Classifier"]], learn_once)
            what = f"one pass, {name}, "
            detail = described(ours, svc)
            yield at_most(f"{what}points behind SVC", beside(ours, svc, error_behind), 0.5, detail)
            yield at_most(f"{what}points over SVC's vectors", beside(ours, svc, points_over), 1 / 3)


def batch(options: argparse.Namespace, name: str) -> list[Row]:
    runs = 1 if name in FIXED else None
    return rows_of(options, name, [replace(SVC_UNSET, runs=runs)], fit)


def regression(options: argparse.Namespace) -> Iterator[Promise]:
    """Predict numbers after one pass over a stream."""
    for name in ("concrete", "california_housing", "abalone", "friedman1"):
        with left_out():
            (ridge,) = rows_of(options, name, [RIDGE], fit)
            (ours,) = rows_of(options, name, [UNSET["Regressor"]], learn_once)
            what = f"one pass, {name}, RMSE over tuned KernelRidge's"
            ratio = beside(ours, ridge, lambda our, their: our["error"] / their["error"])
            yield at_most(what, ratio, 1.1, described(ours, ridge))


def fit_mnist(options: argparse.Namespace) -> Iterator[Promise]:
    """Fit to MNIST with the kernel of the paper."""
    peers = [
        Method("Intel's SVC", IntelSvm, {"bandwidth": 4.0, "C": 1.0}, runs=1),
        Method("SVC", Libsvm, {"bandwidth": 4.0, "C": 1.0}, runs=1),
    ][: 1 if options.no_svc else 2]
    with left_out():
        ours = Method("gamma = 1/32", "POLKClassifier", {"gamma": 1 / 32})
        (row,) = rows_of(options, "mnist", [ours], fit)
        error, points = (median(row.values(figure)) for figure in ("error", "points"))
        yield at_most("fit, mnist, error %", error, 1.65, described(row))
        yield at_most("fit, mnist, points", points, 2200)
        for peer, least in zip(rows_of(options, "mnist", peers, fit), (4, 15), strict=False):
            if peer.sound:
                times = beside(
                    row, peer, lambda our, their: their["cpu_seconds"] / our["cpu_seconds"]
                )
                name = f"fit, mnist, time of {peer.method.name} over ours"
                yield at_least(name, times, least, described(peer))


def nothing_set(options: argparse.Namespace) -> Iterator[Promise]:
    """Fit with nothing set, beside SVC with nothing set."""
    for name, error, share in (
        ("usps", 0.3, 1 / 5),
        ("brodatz", 0.3, 1 / 3),
        ("digits", 0.3, 1 / 5),
        ("magic04", 0.3, 1 / 5),
        ("cod_rna", 0.3, 1 / 5),
        ("26 classes", 0.3, 1 / 3),
        ("quantiles", 1.0, None),
    ):
        with left_out():
            (svc,), (ours,) = (
                batch(options, name),
                rows_of(options, name, [UNSET["Classifier"]], fit),
            )
            what, detail = f"fit, {name}, ", described(ours, svc)
            yield at_most(
                f"{what}points behind SVC", beside(ours, svc, error_behind), error, detail
            )
            if share is not None:
                ratio = beside(
                    ours,
                    svc,
                    lambda our, their: our["cpu_seconds"] / max(their["cpu_seconds"], 0.5),
                )
                yield at_most(f"{what}time over SVC's, or over half a second", ratio, 1)
                ratio = beside(ours, svc, points_over)
                yield at_most(f"{what}points over SVC's vectors", ratio, share)


def two_million(options: argparse.Namespace) -> Iterator[Promise]:
    """Learn from so long a stream that errors of compression would add up."""
    stops = [n // 100 if options.quick else n for n in (10_000, 100_000, 300_000, 10**6, 2 * 10**6)]

    def learn(run: Run) -> Figures:
        model, found = run.make(kernel=kernels.Gaussian(0.06)), {}
        for first, stop in pairwise([0, *stops]):
            X, y = run.task.X[first:stop], run.task.y[first:stop]
            for part in blocks(len(X), 1000):
                model.partial_fit(X[part], y[part])
            excess = (model.predict(run.task.X_test) - run.task.y_test) ** 2
            found[f"{stop:,}"] = float(excess.mean())
        return {**found, "points": model.model_order_}

    def draw(seed: int) -> Task:
        X, y = make_regression_outliers(stops[-1], random_state=seed)
        grid = np.linspace(-1, 1, 20_001)[:, None]
        return Task("stream", X, y, grid, 2 * grid[:, 0] + 3 * np.sin(6 * grid[:, 0]))

    methods = [Method(f"{name}Regressor", f"{name}Regressor") for name in ("POLK", "BSGD")]
    nothing = {"data": {}, "quick": {}}
    for row in rows_of(options, "stream", methods, learn, load=draw, **nothing):
        path = [median(row.values(f"{stop:,}")) for stop in stops]
        detail = ", ".join(
            f"{significant(each, 2)} at {n:,}" for n, each in zip(stops, path, strict=True)
        )
        name = f"{row.method.name}, a stream of {stops[-1]:,}, excess over that at {stops[1]:,}"
        yield at_most(name, max(path[2:]) / path[1], 1, detail)


def flipped(options: argparse.Namespace) -> Iterator[Promise]:
    """Exchange the labels of a long stream, and count samples until 90 % are right again."""
    before, after = (2000, 8000) if options.quick else (320_000, 120_000)

    def learn(run: Run) -> Figures:
        X, y, model = run.task.X, run.task.y, run.make()
        for part in blocks(before):
            model.partial_fit(X[part], y[part], classes=(0, 1))
        for part in blocks(after):
            new = slice(before + part.start, before + part.stop)
            if part.start and model.score(X[new], 1 - y[new]) > 0.9:
                break
            model.partial_fit(X[new], 1 - y[new])
        return {"samples": part.start, "points": model.model_order_}

    def draw(seed: int) -> Task:
        X, y = datasets.make_moons(before + after, noise=0.2, random_state=seed)
        return Task("flipped", X, y, X[:0], y[:0])

    methods = [
        Method("half_life = 2000", "POLKClassifier", {"half_life": 2000}),
        Method("nothing set", "POLKClassifier"),
    ]
    found = rows_of(options, "flipped", methods, learn, load=draw, data={}, quick={})
    for row, most in zip(found, (5000, 10_000), strict=True):
        name = f"labels flipped after {before:,}, {row.method.name}, samples to recover"
        samples = row.values("samples")
        yield at_most(
            name, median(samples), most, f"{span(samples)}; {span(row.values('points'))} points"
        )


def step_cost(options: argparse.Namespace) -> Iterator[Promise]:
    """Time of a step that solves over that of a step of gradient descent, at as many points."""
    name, quick = ("synthetic", {"samples": 3000}) if options.quick else ("mnist", {})

    def learn(run: Run) -> Figures:
        X, y, known = run.task.X, run.task.y, 2 * len(run.task.X) // 3
        both = {solver: run.make(solver=solver) for solver in ("sgd", "newton")}
        times: dict[str, list[float]] = {solver: [] for solver in both}
        for model in both.values():
            for part in blocks(known):
                model.partial_fit(X[part], y[part], classes=np.unique(y))
        for part in blocks(len(X))[known // BLOCK :]:
            for solver, model in both.items():
                with machine.Stopwatch() as watch:
                    model.partial_fit(X[part], y[part])
                times[solver].append(watch.seconds)
        sizes = [model.model_order_ for model in both.values()]
        return {"ratio": median(times["newton"]) / median(times["sgd"]), "sizes": sizes}

    # Caps a little below what K would give: both have the same number of points.
    methods = [
        Method(f"M = {cap}", "POLKClassifier", {"max_points": cap, "parsimony": K})
        for cap, K in ((300, 0.024), (2000, 0.016))
    ]
    with left_out():
        offered = {**tasks.offered(name)}
        del offered["bandwidth"], offered["solver"]
        more = {"offered": offered, "data": {"name": name, "samples": 30_000}, "quick": quick}
        for row in rows_of(options, name, methods, learn, **more):
            what = f"{row.method.name}, time of a step that solves over one of gradient descent"
            detail = "; ".join(f"{one} and {other} points" for one, other in row.values("sizes"))
            yield at_most(what, median(row.values("ratio")), 2, detail)


ROWS: dict[str, Callable[[argparse.Namespace], Iterator[Promise]]] = {
    "onepass": one_pass,
    "regression": regression,
    "mnist": fit_mnist,
    "fit": nothing_set,
    "stream": two_million,
    "flipped": flipped,
    "cost": step_cost,
}

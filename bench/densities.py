"""parsimon's densities beside scikit-learn's KernelDensity and a spline Poisson GLM, defaults only.

Held-out log-likelihood per point in five folds; KernelDensity has standardised features and a
bandwidth by cross-validation. Densities are divided by their integral on a grid four times finer
than their own. Promised: at least KernelDensity's likelihood on every data set in no more time,
integrals within 1 %, no difference with more epochs, nothing above 1.5 times a uniform density,
within .003 of the GLM on smooth intensities, a million events in the plane in 10 seconds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import PoissonRegressor
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KernelDensity
from sklearn.preprocessing import SplineTransformer

import parsimon
from bench import report
from bench.cli import left_out
from bench.machine import Stopwatch
from bench.report import Promise, at_least, at_most
from bench.tasks import load_data, read

Array = NDArray[np.float64]

FOLDS = 5
# Samples above which one fold is run, which is enough to tell.
MANY = 30_000
FINER = 4
WIDTHS = np.logspace(-1.5, 0.7, 12)  # of KernelDensity, in units of Silverman's
GLM_CELLS = 200
UNIT = (0.0, 1.0)


@dataclass(frozen=True)
class Points:
    """Points, and where they can be; None: nobody has said so."""

    X: Array
    domain: Any = None


def toy() -> Points:
    return Points(parsimon.datasets.make_poisson_gaussian(10_211, random_state=0), [UNIT])


def curry() -> Points:
    return Points(load_data("curry_shots", subset="all", return_X=True), [UNIT])


def chicago(count: int | None) -> Points:
    return Points(load_data("chicago_crimes", subset="all", return_X=True)[:count], [UNIT, UNIT])


def space_and_time() -> Points:
    x, time = read("chicago_crimes_2018", "x_km", "time")
    X = np.column_stack([x.astype(float), time.astype(float)])
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    return Points(X[np.random.RandomState(0).permutation(len(X))[:12_000]], [UNIT] * 3)


def bei() -> Points:
    X, window = read("bei", "x", "window")
    return Points(X.astype(float), window)


def old_faithful() -> Points:
    return Points(read("old_faithful", "x")[0].astype(float))


def uniform() -> Points:
    return Points(np.random.RandomState(0).rand(1000, 2), [UNIT, UNIT])


def clusters() -> Points:
    random = np.random.RandomState(0)
    middles = np.array([[0.2, 0.3], [0.7, 0.2], [0.6, 0.8]])
    X = middles[random.randint(3, size=2000)] + 0.01 * random.randn(2000, 2)
    return Points(X, [UNIT, UNIT])


DATA: dict[str, Callable[[], Points]] = {
    "toy": toy,
    "curry": curry,
    "old_faithful": old_faithful,
    "uniform": uniform,
    "clusters": clusters,
    "bei": bei,
    "chicago": partial(chicago, 12_000),
    "space_time": space_and_time,
    "chicago_all": partial(chicago, None),
}
MORE = ("smooth", "million")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", choices=[*DATA, *MORE], nargs="+", default=[*DATA, *MORE])
    parser.add_argument("--samples", type=int, help="of each data set, to try it out")
    report.add_json(parser)


def run(options: argparse.Namespace) -> int:
    code, judged = report.verdict(promises(options))
    report.write_json(options, promises=judged)
    return code if judged else 2  # nothing was measured


def promises(options: argparse.Namespace) -> Iterator[Promise]:
    for name in options.data:
        with left_out():
            if name == "smooth":
                yield from smooth(options)
            elif name == "million":
                yield from million(options)
            else:
                yield from beside_kernel_density(name, options)


def beside_kernel_density(name: str, options: argparse.Namespace) -> Iterator[Promise]:
    data = DATA[name]()
    X = data.X[: options.samples]
    ours, theirs, integrals, seconds, peaks = [], [], [], [], []
    folds = list(KFold(FOLDS, shuffle=True, random_state=0).split(X))
    for train, test in folds if len(X) <= MANY else folds[:1]:
        model = parsimon.SPPPOTIntensity(domain="auto" if data.domain is None else data.domain)
        with Stopwatch() as watch:
            model.fit(X[train])
        integral, peak = finely(model)
        with Stopwatch() as other:
            kde = KernelDensityByValidation().fit(X[train])
        ours.append(float(model.score_samples(X[test]).mean() - np.log(integral)))
        theirs.append(float(kde.score_samples(X[test]).mean()))
        integrals.append(abs(integral - 1))
        peaks.append(peak)
        seconds.append((watch.seconds, other.seconds))
    mine, its = np.mean(seconds, axis=0)
    what = f"{name}, log-likelihood per point less KernelDensity's"
    detail = f"{np.mean(ours):.4f} and {np.mean(theirs):.4f}, {model.model_order_:,} points"
    yield at_least(what, float(np.mean(ours) - np.mean(theirs)), 0, detail)
    yield at_most(f"{name}, integral off by", max(integrals), 0.01)
    yield at_most(f"{name}, time over KernelDensity's", mine / its, 1, f"{mine:.2g}, {its:.2g} s")
    more = parsimon.SPPPOTIntensity(**model.get_params() | {"epochs": 4}).fit(X[train])
    worse = float((model.score_samples(X[test]) - more.score_samples(X[test])).mean())
    yield at_most(f"{name}, likelihood lost with four times the epochs", worse, 0)
    if name == "uniform":
        yield at_most(f"{name}, largest density over the true one", max(peaks), 1.5)


def finely(model: Any) -> tuple[float, float]:
    """Return integral and maximum on a grid four times finer than the model's own."""
    cells = [FINER * count for count in model._model.quadrature.counts]
    total, peak = 0.0, 0.0
    domain = model.domain_
    widths = (domain[:, 1] - domain[:, 0]) / cells
    axes = [
        low + (np.arange(n) + 0.5) * width
        for (low, _), n, width in zip(domain, cells, widths, strict=True)
    ]
    rest = np.empty((1, 0))  # on a line there is nothing but the first axis
    if len(axes) > 1:
        rest = np.stack(np.meshgrid(*axes[1:], indexing="ij"), axis=-1).reshape(-1, len(axes) - 1)
    at_once = max(1, (1 << 20) // len(rest))
    for start in range(0, len(axes[0]), at_once):
        first = axes[0][start : start + at_once]
        nodes = np.column_stack([np.repeat(first, len(rest)), np.tile(rest, (len(first), 1))])
        density = np.exp(model.score_samples(nodes))
        total, peak = total + float(density.sum()), max(peak, float(density.max()))
    volume = float(np.prod(domain[:, 1] - domain[:, 0]))
    return total * float(np.prod(widths)), peak * volume


class KernelDensityByValidation:
    """KernelDensity on standardised features, its bandwidth by five-fold cross-validation."""

    # Samples that choose where there are many; the bandwidth is then scaled to all.
    most = 10_000

    def fit(self, X: Array) -> KernelDensityByValidation:
        self.scale_ = X.std(axis=0)
        Z = X / self.scale_
        some = Z[np.random.RandomState(0).permutation(len(Z))[: self.most]]
        features = Z.shape[1]
        rule = (4 / ((features + 2) * len(some))) ** (1 / (features + 4))
        search = GridSearchCV(KernelDensity(rtol=1e-4), {"bandwidth": rule * WIDTHS}, cv=FOLDS)
        bandwidth = search.fit(some).best_params_["bandwidth"]
        bandwidth *= (len(some) / len(Z)) ** (1 / (features + 4))
        self.model_ = KernelDensity(bandwidth=bandwidth, rtol=1e-4).fit(Z)
        return self

    def score_samples(self, X: Array) -> Array:
        return np.asarray(self.model_.score_samples(X / self.scale_) - np.log(self.scale_).sum())


# -- smooth intensities: a Poisson GLM with splines ------------------------------------------------

SMOOTH: dict[str, Callable[[Array], Array]] = {
    "a wave": lambda x: np.exp(np.sin(6 * x) + 0.5 * np.cos(11 * x)),
    "two hills": lambda x: 0.2 + np.exp(-60 * (x - 0.3) ** 2) + 2 * np.exp(-40 * (x - 0.75) ** 2),
}


def drawn(shape: Callable[[Array], Array], count: int, random: np.random.RandomState) -> Array:
    grid = (np.arange(20_000) + 0.5) / 20_000
    cumulative = np.cumsum(shape(grid))
    return np.interp(random.rand(count), cumulative / cumulative[-1], grid)[:, None]


def smooth(options: argparse.Namespace) -> Iterator[Promise]:
    """The true log-likelihood that is lost, over that of a GLM with the better of its penalties."""
    grid = (np.arange(4000) + 0.5) / 4000
    for name, shape in SMOOTH.items():
        truth = shape(grid) / shape(grid).mean()
        lost = []
        for seed in range(1 if options.samples else 10):
            X = drawn(shape, options.samples or 3000, np.random.RandomState(seed))
            ours = parsimon.SPPPOTIntensity(domain=(0, 1)).fit(X).score_samples(grid[:, None])
            theirs = spline_glm(X[:, 0], grid)
            lost.append(float((truth * (theirs - ours)).mean()))
        yield at_most(f"{name}, likelihood per point below a GLM's", float(np.mean(lost)), 0.003)


def spline_glm(x: Array, grid: Array) -> Array:
    """Return the log-density of a Poisson GLM of counts in cells, with 20 cubic splines."""
    counts, edges = np.histogram(x, bins=GLM_CELLS, range=UNIT)
    middles = (edges[1:] + edges[:-1]) / 2
    splines = SplineTransformer(n_knots=18, knots="uniform").fit([[0.0], [1.0]])
    search = GridSearchCV(
        PoissonRegressor(max_iter=1000), {"alpha": 10.0 ** np.arange(-6, 1)}, cv=5
    )
    order = np.random.RandomState(0).permutation(GLM_CELLS)
    search.fit(splines.transform(middles[order, None]), counts[order])
    rate = search.predict(splines.transform(grid[:, None]))
    return np.asarray(np.log(rate / rate.mean()))


def million(options: argparse.Namespace) -> Iterator[Promise]:
    """A million events of a mixture in the plane."""
    random, count = np.random.RandomState(0), options.samples or 1_000_000
    middles = 0.2 + 0.6 * random.rand(20, 2)
    X = middles[random.randint(20, size=count)] + 0.05 * random.randn(count, 2)
    X = X[((X > 0) & (X < 1)).all(axis=1)]
    with Stopwatch() as watch:
        model = parsimon.SPPPOTIntensity(domain=[UNIT, UNIT]).fit(X)
    detail = f"{model.model_order_:,} points, integral {finely(model)[0]:.4f}"
    yield at_most("a million events in the plane, seconds", watch.seconds, 10, detail)

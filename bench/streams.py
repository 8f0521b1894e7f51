"""parsimon beside river and scikit-learn on streams: test, then train, in blocks of ten samples.

Prequential accuracy, time of a sample and size of the model, on streams that river brings along or
draws: Phishing, ImageSegments, Bananas and Shuttle, SEA with a sudden drift and RandomRBF with a
gradual one. Of these, parsimon is promised to be ahead of the best of river's models in a tenth of
its time. Mean absolute error on two streams of numbers, ChickWeights and TrumpApproval, of which
nothing is promised. parsimon.river.Classifier is promised to take at most 60 us a sample more than
predict and partial_fit, for predict_one and learn_one together. Needs river. What other packages
gave is kept in a folder (`--out`) and not run again; parsimon is always run.
"""

from __future__ import annotations

import argparse
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from timeit import timeit
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler

from bench import machine, report
from bench.baselines.peers import named
from bench.cli import MissingDataError, positive_int
from bench.compare import saved_bytes
from bench.report import Column, Promise, Table, at_least, at_most
from bench.runner import Experiment, Figures, Method, Row, Run
from parsimon import POLKClassifier, POLKRegressor
from parsimon.stream import StreamingPipeline, in_blocks, prequential

DRAWN = 20_000
LONGEST = 20_000
QUICK = 500
FOURIER_FEATURES = 200
# How much faster than the best of river's.
TIMES_FASTER = 10
MOST_OVERHEAD = 60  # microseconds


# -- streams ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stream:
    X: NDArray[np.float64]
    y: NDArray[Any]  # labels are 0, 1, ...


def recorded(name: str, *, numbers: bool = False) -> Callable[[int, int], Stream]:
    """Return what reads a stream that is in river's wheel; its order is as recorded."""

    def load(samples: int, seed: int) -> Stream:
        from river import datasets

        pairs = getattr(datasets, name)()
        # Those of numbers are short, and their files stay open unless they are read to the end.
        return as_arrays(list(pairs) if numbers else pairs, samples, numbers=numbers)

    return load


def sea(samples: int, seed: int) -> Stream:
    """Draw SEA, whose boundary jumps half way."""
    from river.datasets import synth

    before, after = (synth.SEA(variant=variant, seed=seed + variant) for variant in (0, 3))
    return as_arrays(chain(before.take(samples // 2), after), samples)


def random_rbf(samples: int, seed: int) -> Stream:
    """Draw RandomRBF, whose 50 centroids of 4 classes in 10 dimensions never stand still."""
    from river.datasets import synth

    drawn = synth.RandomRBFDrift(
        seed_model=seed, seed_sample=seed, n_classes=4, n_features=10, change_speed=0.0005
    )
    return as_arrays(drawn, samples)


def as_arrays(samples: Any, count: int, *, numbers: bool = False) -> Stream:
    pairs = list(islice(samples, count))
    targets = np.array([target for _, target in pairs])
    y = targets.astype(np.float64) if numbers else np.unique(targets, return_inverse=True)[1]
    return Stream(np.array([[*x.values()] for x, _ in pairs], dtype=np.float64), y)


@dataclass(frozen=True)
class Source:
    title: str
    load: Callable[[int, int], Stream]
    samples: int
    numbers: bool = False  # are the targets, not labels

    @property
    def methods(self) -> tuple[tuple[Method, ...], tuple[Method, ...]]:
        """Ours, and those of others."""
        return (OURS_OF_NUMBERS, RIVERS_OF_NUMBERS) if self.numbers else (OURS, OTHERS)


SOURCES = {
    "phishing": Source("Phishing", recorded("Phishing"), LONGEST),
    "segments": Source("ImageSegments", recorded("ImageSegments"), LONGEST),
    "bananas": Source("Bananas", recorded("Bananas"), LONGEST),
    "shuttle": Source("Shuttle", recorded("Shuttle"), LONGEST),
    "sea": Source("SEA, sudden drift", sea, DRAWN),
    "rbf": Source("RandomRBF, gradual drift", random_rbf, DRAWN),
    "chicks": Source("ChickWeights", recorded("ChickWeights", numbers=True), LONGEST, True),
    "approval": Source("TrumpApproval", recorded("TrumpApproval", numbers=True), LONGEST, True),
}


# -- methods ---------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class RiverModel(BaseEstimator):
    """A model of river's, which learns and predicts one dictionary of features at a time."""

    package: ClassVar = "river"

    random_state: int = 0

    def partial_fit(self, X: ArrayLike, y: Any, classes: ArrayLike | None = None) -> RiverModel:
        if not hasattr(self, "model_"):
            self.model_ = self._make(np.asarray(X).shape[1])
        for x, label in zip(np.asarray(X), y.tolist(), strict=True):
            self.model_.learn_one(named(x), label)
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        found = [self.model_.predict_one(named(x)) for x in np.asarray(X)]
        return np.array([-1 if label is None else label for label in found])


class River(ClassifierMixin, RiverModel):
    """One that predicts labels."""


class RiverOfNumbers(RegressorMixin, RiverModel):
    """One that predicts numbers."""


class RiverArf(River):
    """Adaptive random forest."""

    def _make(self, features: int) -> Any:
        from river import forest

        return forest.ARFClassifier(seed=self.random_state)


class RiverAmf(River):
    """Aggregated Mondrian forest."""

    def _make(self, features: int) -> Any:
        from river import forest

        return forest.AMFClassifier(seed=self.random_state)


class RiverTree(River):
    """Hoeffding tree."""

    def _make(self, features: int) -> Any:
        from river import tree

        return tree.HoeffdingTreeClassifier()


class RiverSoftmax(River):
    """Softmax regression on random Fourier features of scaled numbers."""

    def _make(self, features: int) -> Any:
        from river import feature_extraction, linear_model, preprocessing

        # river's are cosines of one input each.
        each = max(1, FOURIER_FEATURES // features)
        sampler = feature_extraction.RBFSampler(n_components=each, seed=self.random_state)
        return preprocessing.StandardScaler() | sampler | linear_model.SoftmaxRegression()


class RiverArfOfNumbers(RiverOfNumbers):
    """Adaptive random forest."""

    def _make(self, features: int) -> Any:
        from river import forest

        return forest.ARFRegressor(seed=self.random_state)


class RiverAmfOfNumbers(RiverOfNumbers):
    """Aggregated Mondrian forest."""

    def _make(self, features: int) -> Any:
        from river import forest

        return forest.AMFRegressor(seed=self.random_state)


class RiverTreeOfNumbers(RiverOfNumbers):
    """Hoeffding tree."""

    def _make(self, features: int) -> Any:
        from river import tree

        return tree.HoeffdingTreeRegressor()


class RiverLinear(RiverOfNumbers):
    """Linear regression of scaled numbers."""

    def _make(self, features: int) -> Any:
        from river import linear_model, preprocessing

        return preprocessing.StandardScaler() | linear_model.LinearRegression()


@dataclass(eq=False, repr=False)
class NystroemStream(ClassifierMixin, BaseEstimator):
    """Linear machine by averaged SGD on Nystroem features, which the first samples are for.

    Until there are enough of them, everything is taken to be of the first class.
    """

    random_state: int = 0
    points: int = 100

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> NystroemStream:
        if not hasattr(self, "first_"):
            self.first_: list[tuple[Any, Any]] = []
            self.classes_ = np.asarray(classes)
            self.scaler_ = StandardScaler()
            self.sgd_ = SGDClassifier(average=True, random_state=self.random_state)
        self.scaler_.partial_fit(X)
        if not hasattr(self, "features_"):
            self.first_.append((X, y))
            if sum(map(len, (y for _, y in self.first_))) < self.points:
                return self
            X, y = (np.concatenate(part) for part in zip(*self.first_, strict=True))
            scaled = self.scaler_.transform(X)
            gamma = 1 / (X.shape[1] * scaled.var())
            self.features_ = Nystroem(
                gamma=gamma, n_components=self.points, random_state=self.random_state
            ).fit(scaled)
            self.first_ = []
        mapped = self.features_.transform(self.scaler_.transform(X))
        self.sgd_.partial_fit(mapped, y, classes=self.classes_)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        if not hasattr(self, "features_"):
            return np.full(len(X), self.classes_[0])
        mapped = self.features_.transform(self.scaler_.transform(X))
        return np.asarray(self.sgd_.predict(mapped))


def polk(random_state: int) -> Any:
    """Return POLK with nothing set."""
    return StreamingPipeline(POLKClassifier(random_state=random_state))


def polk_logistic(random_state: int) -> Any:
    return StreamingPipeline(POLKClassifier("logistic", random_state=random_state))


def polk_laplacian(random_state: int) -> Any:
    """Return POLK with the kernel that Mondrian forests approximate."""
    return StreamingPipeline(POLKClassifier(kernel="laplacian", random_state=random_state))


def polk_forgetting(random_state: int) -> Any:
    """Return POLK for a stream that never stands still."""
    return StreamingPipeline(POLKClassifier(half_life=500, random_state=random_state))


def polk_steps(random_state: int) -> Any:
    """Return the paper's algorithm, without averaging."""
    model = POLKClassifier(solver="sgd", average=False, random_state=random_state)
    return StreamingPipeline(model)


def polk_of_numbers(random_state: int) -> Any:
    """Return POLK with nothing set."""
    return StreamingPipeline(POLKRegressor(random_state=random_state))


def polk_of_numbers_forgetting(random_state: int) -> Any:
    """Return POLK for a stream of a few hundred samples that never stands still."""
    return StreamingPipeline(POLKRegressor(half_life=30, random_state=random_state))


def polk_of_numbers_steps(random_state: int) -> Any:
    return StreamingPipeline(POLKRegressor(solver="sgd", random_state=random_state))


OURS = (
    Method("POLK", polk),
    Method("POLK, logistic", polk_logistic),
    Method("POLK, Laplacian kernel", polk_laplacian),
    Method("POLK, half_life=500", polk_forgetting),
    Method("POLK, gradient steps", polk_steps),
)
RIVERS = (
    Method("river, ARF", RiverArf),
    Method("river, AMF", RiverAmf),
    Method("river, Hoeffding tree", RiverTree),
    Method("river, RBFSampler + softmax", RiverSoftmax),
)
OTHERS = (*RIVERS, Method("scikit-learn, Nystroem + SGD", NystroemStream))
OURS_OF_NUMBERS = (
    Method("POLK", polk_of_numbers),
    Method("POLK, half_life=30", polk_of_numbers_forgetting),
    Method("POLK, gradient steps", polk_of_numbers_steps),
)
RIVERS_OF_NUMBERS = (
    Method("river, ARF", RiverArfOfNumbers),
    Method("river, AMF", RiverAmfOfNumbers),
    Method("river, Hoeffding tree", RiverTreeOfNumbers),
    Method("river, linear", RiverLinear),
)


# -- the command -----------------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--streams", nargs="+", choices=[*SOURCES], default=[*SOURCES], help="all by default")
    add("--only", metavar="TEXT", help="methods with this in their name, and POLK")
    add("--samples", type=positive_int, help="of each stream at most; no verdict")
    add("--block", type=positive_int, default=10, help="samples per call; 10 by default")
    add("--runs", type=positive_int, default=1, help="seeds of what is drawn and of the models")
    add("--quick", action="store_true", help=f"{QUICK} samples: whether it works; no verdict")
    kept = "folder for what other packages gave; build/streams by default"
    add("--out", type=Path, default=Path("build/streams"), metavar="DIR", help=kept)
    report.add_json(parser)


def run(options: argparse.Namespace) -> int:
    if machine.installed("river") is None:
        raise MissingDataError("The streams are river's: pip install river.")
    if options.quick:
        options.samples, options.quick = min(options.samples or QUICK, QUICK), False
    found = {}
    for name in options.streams:
        source = SOURCES[name]
        rows = measured(name, options)
        found[source.title] = rows
        results = [row.results[0] for row in rows if row.sound]
        seen = f"{results[0]['samples']:,} samples of {results[0]['features']} features"
        if not source.numbers:
            seen += f" in {results[0]['classes']} classes"
        Table.of_rows(
            f"{source.title}: {seen}, blocks of {options.block}",
            [row for row in rows if row.results or row.absent],
            COLUMNS_OF_NUMBERS if source.numbers else COLUMNS,
        ).show()
    # A promise is about accuracies, which regression has none of.
    of_labels = {s.title for s in SOURCES.values() if not s.numbers}
    labels = {title: rows for title, rows in found.items() if title in of_labels}
    judged = chain(promises(labels), [overhead(river_overhead())])
    return report.conclude(options, found, judged)


def measured(name: str, options: argparse.Namespace) -> list[Row]:
    """Run all methods on a stream; what others gave is kept."""
    source = SOURCES[name]
    experiment = Experiment(
        name,
        source.title,
        methods=(),
        load=lambda seed, samples: source.load(samples, seed),
        train=measure,
        data={"samples": options.samples or source.samples},
        offered={"block": options.block},
    )
    mine, theirs = source.methods
    ours = replace(experiment, methods=mine).rows(
        argparse.Namespace(runs=options.runs, quick=False, out=None)
    )
    wanted = [each for each in theirs if (options.only or "").lower() in each.name.lower()]
    return [*ours, *replace(experiment, methods=wanted).rows(options)]


def measure(run: Run) -> Figures:
    """Test, then train, block by block."""
    stream, model = run.task, run.make()
    blocks = in_blocks(stream.X, stream.y, rows=run.offered["block"])
    classes = None if stream.y.dtype.kind == "f" else np.unique(stream.y)
    with machine.Stopwatch() as watch:
        summary = prequential(model, blocks, classes=classes, drift=None).summary
    judged = (
        {"mae": summary["mean_absolute_error"]}
        if classes is None
        else {"classes": len(classes), "accuracy": 100 * summary["accuracy"]}
    )
    return {
        **watch.figures,
        "samples": len(stream.X),
        "features": stream.X.shape[1],
        **judged,
        "us": summary["predict_us"] + summary["learn_us"],
        "cpu_us": 1e6 * watch.cpu_seconds / len(stream.X),
        "points": summary.get("points"),
        "bytes": saved_bytes(model) if hasattr(model, "save") else len(pickle.dumps(model)),
    }


COLUMNS = (
    Column("accuracy %", "accuracy"),
    Column("us a sample", "us"),
    Column("us of the processor", "cpu_us"),
    Column("points", "points"),
    Column("bytes", "bytes", lambda values: f"{np.mean(values):,.0f}"),
)


COLUMNS_OF_NUMBERS = (Column("mean absolute error", "mae"), *COLUMNS[1:])


def river_overhead(samples: int = 2000, features: int = 10) -> float:
    """Return the microseconds that a dictionary takes more than an array, in the median.

    To predict and then to learn, as each sample of a stream is.
    """
    from parsimon.river import Classifier

    random = np.random.default_rng(0)
    X = random.normal(size=(samples, features))
    labels = np.where(np.sin(2 * X[:, 0]) + X[:, 1] > 0, "yes", "no").tolist()
    rows = [named(x) for x in X]
    wrapped, extra = Classifier(loss="hinge", max_points=30), []
    with machine.one_thread():
        for x, label in zip(rows, labels, strict=True):
            wrapped.learn_one(x, label)
        # The same estimator learns in turn by one way and by the other.
        estimator, width = wrapped._estimator, wrapped._width
        for x, row, label in zip(X, rows, labels, strict=True):
            array = np.concatenate([x, np.zeros(width - features)])[None]
            target = np.array([wrapped._labels[label]])
            direct = timeit(partial(estimator.predict, array), number=1)
            direct += timeit(partial(estimator.partial_fit, array, target), number=1)
            taken = timeit(partial(wrapped.predict_one, row), number=1)
            taken += timeit(partial(wrapped.learn_one, row, label), number=1)
            extra.append(taken - direct)
    return 1e6 * float(np.median(extra))


def overhead(microseconds: float) -> Promise:
    return at_most("us of parsimon.river over an array", microseconds, MOST_OVERHEAD)


def promises(found: Mapping[str, Sequence[Row]]) -> Iterator[Promise]:
    """Ahead of the best of river's models, in a tenth of its time."""
    theirs = {method.name for method in RIVERS}
    for title, rows in found.items():
        rivers = [row for row in rows if row.method.name in theirs and row.sound]
        if not rivers:
            continue
        best = max(rivers, key=lambda row: row.mean("accuracy"))
        ours, name = rows[0], best.method.name
        accuracy = best.mean("accuracy")
        yield at_least(f"{title}: accuracy, % ({name})", ours.mean("accuracy"), accuracy)
        share = ours.mean("cpu_us") / best.mean("cpu_us")
        yield at_most(f"{title}: time of a sample over that of {name}", share, 1 / TIMES_FASTER)

"""Classifiers side by side: what each is made of, how it is trained, what is measured.

A method is an entry of a table: the estimator's kind, a key of MAKERS, and its settings. Online
methods are watched while they learn; the figures of a table are averages over the last 5 % of the
stream, as in POLK's paper. Batch methods are measured once: any classifier will do that says in
`model_order_` how many points it stores. If it also has `squared_norm_` and scores for each class
(`decision_function`), its risk is measured, too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

import parsimon
from bench import machine
from bench.baselines.ivm import ImportVectorMachine
from bench.baselines.kernel_machine import FunctionalGradient, KernelLBFGS
from bench.baselines.losses import LOSSES, PENALTY
from bench.baselines.peers import IntelSvm, RiverFourier, RiverNeighbors, VowpalSvm
from bench.baselines.scikit import FourierSGD, Libsvm, NystroemSGD
from bench.experiments import Result
from bench.tasks import BATCH_SIZE, REGULARIZATION, Task

Array = NDArray[Any]

# Where to look, as parts of the stream: every twentieth, and five times in the last twentieth.
CHECKPOINTS = (*np.arange(1, 20) / 20, *(0.95 + 0.01 * np.arange(1, 6)))
LAST = 5
# What is timed has run before, on so many samples.
WARM_UP_SAMPLES = 100


@dataclass(frozen=True)
class Method:
    """A row of a comparison."""

    name: str
    kind: str  # a key of MAKERS
    loss: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    epochs: int = 1  # of online methods

    @property
    def is_here(self) -> bool:
        """Whether parsimon has the estimator, if it is one of parsimon's."""
        name = PARSIMON.get(self.kind)
        return name is None or hasattr(parsimon, name)

    def make(self, task: Task, seed: int) -> Any:
        return MAKERS[self.kind](task, self.loss, seed, self.settings)


def online(name: str, *, with_loss: bool = True, **defaults: Any) -> Callable[..., Any]:
    """Return a maker of one of parsimon's estimators, with the paper's way to run it."""

    def make(task: Task, loss: str, seed: int, settings: Mapping[str, Any]) -> Any:
        given = {
            "kernel": task.kernel,
            "learning_rate": task.learning_rate,
            "regularization": REGULARIZATION,
            **({"loss": loss} if with_loss else {}),
            **defaults,
            **settings,
        }
        return getattr(parsimon, name)(**given)

    return make


def features(estimator: Callable[..., Any]) -> Callable[..., Any]:
    """Return a maker of a linear machine on random features."""

    def make(task: Task, loss: str, seed: int, settings: Mapping[str, Any]) -> Any:
        return estimator(
            task.kernel.bandwidth,
            loss=loss,
            regularization=REGULARIZATION,
            random_state=seed,
            **settings,
        )

    return make


def peer(estimator: Callable[..., Any]) -> Callable[..., Any]:
    """Return a maker of what needs the width of the kernel and its own settings."""
    return lambda task, loss, seed, settings: estimator(task.kernel.bandwidth, **settings)


def lbfgs(task: Task, loss: str, seed: int, settings: Mapping[str, Any]) -> Any:
    return KernelLBFGS(task.kernel, loss=loss, **{"regularization": REGULARIZATION, **settings})


def fgd(task: Task, loss: str, seed: int, settings: Mapping[str, Any]) -> Any:
    given = {"learning_rate": task.learning_rate, "regularization": REGULARIZATION, **settings}
    return FunctionalGradient(task.kernel, loss=loss, **given)


def ivm(task: Task, loss: str, seed: int, settings: Mapping[str, Any]) -> Any:
    return ImportVectorMachine(task.kernel, regularization=REGULARIZATION, **settings)


# Estimators of parsimon's that learn from a stream, by kind; one that is absent is left out.
PARSIMON = {"polk": "POLKClassifier", "spppot": "SPPPOTClassifier", "bsgd": "BSGDClassifier"}

# How each kind is made: (task, loss, seed, settings) -> estimator.
MAKERS: dict[str, Callable[..., Any]] = {
    "polk": online("POLKClassifier", batch_size=BATCH_SIZE, average=False),
    "polk defaults": lambda task, loss, seed, settings: parsimon.POLKClassifier(random_state=seed),
    "spppot": online("SPPPOTClassifier", with_loss=False, batch_size=BATCH_SIZE, average=False),
    # The paper's best step for BSGD, which takes one sample at a time.
    "bsgd": online("BSGDClassifier", learning_rate=1.0),
    "libsvm": peer(Libsvm),
    "intel": peer(IntelSvm),
    "vowpal": peer(VowpalSvm),
    "river neighbors": peer(RiverNeighbors),
    "river fourier": peer(RiverFourier),
    "nystroem": features(NystroemSGD),
    "fourier": features(FourierSGD),
    "lbfgs": lbfgs,
    "fgd": fgd,
    "ivm": ivm,
}


def train(task: Task, method: Method, seed: int, *, risk_on: str = "test") -> Result:
    """Train and measure. The seed decides the order of the samples and whatever a method draws.

    `risk_on` says whether the risk is that on the training or on the test samples.
    """
    with warnings.catch_warnings():  # that so few samples need fewer points than are wanted
        warnings.simplefilter("ignore", ConvergenceWarning)
        method.make(task, seed).fit(task.X[:WARM_UP_SAMPLES], task.y[:WARM_UP_SAMPLES])
    model = method.make(task, seed)
    judged = (task.X, task.y) if risk_on == "train" else (task.X_test, task.y_test)
    if method.kind in PARSIMON:
        return train_online(task, model, method, seed, judged)
    random = np.random.default_rng(seed)
    order = random.permutation(len(task.X))
    with machine.Stopwatch() as watch:
        model.fit(task.X[order], task.y[order])
    figures = measure(task, model, method, judged)
    return {**figures, "seconds": watch.elapsed.wall, "cpu_seconds": watch.elapsed.cpu}


def train_online(
    task: Task, model: Any, method: Method, seed: int, judged: tuple[Array, Array]
) -> Result:
    """Feed a stream in blocks; between them the clock stops, and the model is looked at."""
    classes = np.unique(task.y)
    wall = cpu = 0.0
    path = []
    for seen, block in blocks(len(task.X), method.epochs, seed):
        with machine.Stopwatch() as watch:
            try:
                model.partial_fit(task.X[block], task.y[block], classes=classes)
            except parsimon.DivergenceError:
                return {"diverged": seen}
        wall, cpu = wall + watch.elapsed.wall, cpu + watch.elapsed.cpu
        path.append({"samples": seen, **measure(task, model, method, judged)})
    columns = {key: [point[key] for point in path] for key in path[0]}
    return {
        "error": float(np.mean(columns["error"][-LAST:])),
        "risk": float(np.mean(columns["risk"][-LAST:])),
        "model_order": columns["model_order"][-1],
        "seconds": wall,
        "cpu_seconds": cpu,
        "path": columns,
    }


def blocks(samples: int, epochs: int, seed: int) -> Iterator[tuple[int, Array]]:
    """Yield the stream in blocks that end at the checkpoints: samples seen, and which come next.

    Blocks are whole mini-batches, so that looking changes nothing.
    """
    random = np.random.default_rng(seed)
    stream = np.concatenate([random.permutation(samples) for _ in range(epochs)])
    start = 0
    for part in CHECKPOINTS:
        end = min(len(stream), -(-round(part * len(stream)) // BATCH_SIZE) * BATCH_SIZE)
        if end > start:
            yield end, stream[start:end]
        start = end


def measure(task: Task, model: Any, method: Method, judged: tuple[Array, Array]) -> Result:
    """Return test error in percent, risk (None where a method has no scores) and model order."""
    return {
        "error": float(100 * (model.predict(task.X_test) != task.y_test).mean()),
        "risk": risk(model, method, *judged),
        "model_order": int(model.model_order_),
    }


def risk(model: Any, method: Method, X: Array, y: Array) -> float | None:
    """Return the mean loss plus the regulariser; (26) and (28) of POLK's paper."""
    if method.kind not in PARSIMON and not hasattr(model, "squared_norm_"):
        return None
    labels = np.searchsorted(model.classes_, y)
    if method.kind == "spppot":  # its scores are positive functions; (93) of its paper has no norm
        scores = np.log(np.maximum(model.predict_proba(X), np.finfo(float).tiny))
        return float(LOSSES["logistic"](scores, labels)[0].mean())
    losses, _ = LOSSES[method.loss](model.decision_function(X), labels)
    norm = model.expansion_.norm() ** 2 if method.kind in PARSIMON else model.squared_norm_
    weight = method.settings.get("regularization", REGULARIZATION)
    return float(losses.mean() + PENALTY[method.loss] * weight * norm)

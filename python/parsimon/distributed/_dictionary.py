"""The points of a model: each part of the data finds some, and they are merged two by two."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from parsimon import _core
from parsimon._auto import Choices
from parsimon._class_weight import of_all
from parsimon._newton import has_growing_cap, points_of_fit
from parsimon._settings import core_budget, core_step
from parsimon._stream import NOTHING, Samples
from parsimon.expansion import KernelExpansion, komp
from parsimon.kernels import Kernel
from parsimon.polk import polk_budget

from ._parts import Summary, draw, named
from ._statistics import encoded

Array = NDArray[np.float64]

# Points that the tree keeps for each that the model will have: the last compression is of a
# function whose weights have been solved.
_SPARE = 1.25
# Of the points that its share of the data would have, what a part may find: samples of one part
# cannot tell which of the other parts' points make theirs superfluous.
_SHARE = 1.25
_FEWEST = 30


@dataclass(frozen=True)
class Plan:
    """Settings that all parts share: chosen on a few samples of each, then the same everywhere."""

    estimator: Any  # fitted attributes but no model
    kernel: Kernel
    rate: float
    noise: float
    regularization: float
    solving: tuple[float, float, float, bool]  # of NewtonSettings
    epochs: int
    features: int
    outputs: int
    total: int  # samples of all parts
    cap: int | None
    learned: int  # samples of all parts that points are found among
    learned_share: float
    seed: int
    day: int = 0  # how often learning has gone on

    @classmethod
    def of(cls, estimator: Any, samples: Samples, summary: Summary, seed: int) -> Plan:
        """Choose what was left to us, from samples of all parts."""
        outputs = estimator._n_outputs(samples)
        loss = estimator._core_loss(outputs)
        total = summary.total
        chosen = Choices(estimator, samples, loss, streaming=False, size=total)
        learned = min(total, estimator._samples_of_points(total))
        cap = estimator.max_points
        if has_growing_cap(estimator):
            cap = points_of_fit(estimator, total)
        return cls(
            estimator,
            chosen.kernel,
            chosen.rate,
            chosen.noise,
            chosen.regularization,
            chosen.solving,
            chosen.epochs,
            samples.X.shape[1],
            outputs,
            total,
            None if isinstance(cap, str) else cap,
            learned,
            learned / total,
            seed,
        )

    @property
    def squared(self) -> bool:
        """Whether weights are solved at once: the mean loss is minimised, and is squared."""
        return not self.has_risk and bool(self.estimator._core_loss(self.outputs).is_squared)

    @property
    def has_risk(self) -> bool:
        """Whether a risk is minimised in the place of the mean loss."""
        return getattr(self.estimator, "risk", None) is not None

    @property
    def budget(self) -> float:
        """The budget of the first mini-batch, in Hilbert norm."""
        return float(self.new_model(None).budget)

    def new_model(self, cap: int | None) -> Any:
        """Return an untrained model of the core."""
        estimator = self.estimator
        chosen: Any = SimpleNamespace(rate=self.rate, noise=self.noise)
        budget = core_budget(estimator.budget, polk_budget(estimator, chosen), self.rate)
        return _core.Polk(
            self.kernel.core,
            estimator._core_loss(self.outputs),
            step=core_step(self.rate, estimator.schedule),
            compression=_core.Compression(budget, cap),
            regularization=self.regularization,
            average=False,
            newton=_core.NewtonSettings(*self.solving),
            features=self.features,
            outputs=self.outputs,
        )

    def cap_of(self, samples: int, known: int = 0) -> int | None:
        """Return how many points so many of the samples may have, beside those that were known."""
        if self.cap is None:
            return None
        share = _SHARE * samples / self.total
        return known + math.ceil(min(_SPARE * self.cap, max(_FEWEST, share * self.cap)))


@dataclass(frozen=True)
class Found:
    """A function that some of the parts have found together, and how far it is from their mean."""

    points: Array
    weights: Array
    samples: int
    error: float

    @property
    def order(self) -> int:
        """The number of points."""
        return len(self.points)


@dataclass(frozen=True)
class Scout:
    """A step: find points among the samples of a part."""

    plan: Plan
    shared: Any = None  # points and weights of the function to go on from
    name: str = field(default="scout", init=False)

    def __call__(self, number: int, X: Any, y: Any, weight: Any = None) -> Found:
        plan = self.plan
        if not (X.shape[0] if hasattr(X, "shape") else len(X)):
            return Found(np.empty((0, plan.features)), np.empty((0, plan.outputs)), 0, 0.0)
        with named(number):
            samples = encoded(plan.estimator, X, y, weight)
        size = len(samples)
        known = 0 if self.shared is None else len(self.shared[0])
        model = plan.new_model(plan.cap_of(size, known))
        if self.shared is not None:
            model.replace(*self.shared)
        model.scout()
        count = max(1, math.ceil(plan.learned_share * size))
        learned = _some(samples, draw(size, count, plan.seed, number))
        random = np.random.RandomState([plan.seed, number, 1 + plan.day])
        batch = int(plan.estimator.batch_size)
        for _ in range(plan.epochs):
            order = random if plan.estimator.shuffle else None
            for columns in learned.blocks(batch, order):
                model.run(*columns, batch)
        model.stop_scouting()
        function = model.expansion
        return Found(np.asarray(function.dictionary), np.asarray(function.weights), size, 0.0)


@dataclass(frozen=True)
class Merge:
    """A combination: the mean of two functions, by their samples, with fewer points."""

    plan: Plan
    known: int = 0  # points that all of them went on from
    name: str = field(default="merge", init=False)

    def __call__(self, one: Found, other: Found) -> Found:
        total = one.samples + other.samples
        if not one.order or not other.order:
            kept = one if one.order else other
            share = kept.samples / total if total else 0.0
            return Found(kept.points, share * kept.weights, total, share * kept.error)
        share = one.samples / total
        union = KernelExpansion(
            self.plan.kernel,
            np.concatenate([one.points, other.points]),
            np.concatenate([share * one.weights, (1 - share) * other.weights]),
        )
        cap = self.plan.cap_of(total, self.known)
        smaller, report = komp(union, self.plan.budget, max_points=cap)
        error = share * one.error + (1 - share) * other.error + report.error
        return Found(smaller.dictionary, smaller.weights, total, error)


def describe_missing(lacking: dict[int, list[Any]]) -> str:
    """Return a sentence about classes that some parts have no samples of."""
    shown = [f"partition {number} lacks {labels}" for number, labels in lacking.items()]
    more = f", and {len(shown) - 5} others lack some" if len(shown) > 5 else ""
    return (
        f"Some classes are not everywhere: {', '.join(shown[:5])}{more}. Their points come from "
        f"the other partitions; shuffle the samples if that is not what you want."
    )


def blank(estimator: Any, summary: Summary) -> Any:
    """Return an unfitted copy that knows labels, or units of targets, and features."""
    made = clone(estimator)
    fitted: dict[str, Any] = {"n_features_in_": summary.features}
    if summary.names is not None:
        fitted["feature_names_in_"] = np.asarray(summary.names, dtype=object)
    if is_classifier(estimator):
        classes, counts = summary.labels()
        balanced = isinstance(estimator.class_weight, str)
        if len(classes) < 2:
            raise ValueError(
                f"A classifier needs samples of at least 2 classes; y has only one class, "
                f"{classes.tolist()[0]!r}. If others come later, name them all: "
                f"partial_fit(..., classes=[...])."
            )
        # Its sentence about labels that there are not.
        of_all(None if balanced else estimator.class_weight, classes, np.zeros((1, 1)))
        fitted |= {"classes_": classes, "_counts_": counts if balanced else NOTHING}
    else:
        mean, scale = summary.scale()
        if not estimator.normalize_y:
            mean, scale = np.zeros_like(mean), np.ones_like(scale)
        fitted |= {"intercept_": mean, "_scale_": scale, "_single_": summary.single}
    made.__dict__.update(fitted)
    return made


def _some(samples: Samples, rows: NDArray[np.int64]) -> Samples:
    if len(rows) == len(samples):
        return samples
    weight = samples.weight[rows] if len(samples.weight) else samples.weight
    return Samples(samples.X[rows], samples.targets[rows], weight, n_classes=samples.n_classes)

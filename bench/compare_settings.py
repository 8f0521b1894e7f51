"""What is compared: data sets, and on each the same rows of methods.

The kernel is the same for all methods that have one. POLK's smaller and larger model say how many
points, components or neighbours the others get.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bench.classification import Method
from bench.tasks import SETTINGS

SMALL, LARGE = "POLK, small", "POLK, large"
QUICK_PASSES = 2


@dataclass(frozen=True)
class DataSet:
    """A task, POLK's settings for it (its own learning rate and kernel are in `tasks.py`)."""

    task: str
    title: str
    parsimony: Mapping[str, float]  # K of the smaller and of the larger model
    passes: int
    C: float  # of the support vector machines
    with_defaults: bool = True  # whether there is a row for POLK with nothing set
    data: Mapping[str, Any] = field(default_factory=dict)
    quick_data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def shortened(self) -> DataSet:
        """The quick version: little data, few passes."""
        few = {"samples": 2000, "test_samples": 1000, **self.quick_data}
        return replace(self, passes=min(self.passes, QUICK_PASSES), data=few)


@dataclass(frozen=True)
class Row:
    """A method; `size` is the setting that takes the number of points of the row `like`."""

    method: Method
    remark: str = ""
    like: str | None = None
    size: str = "points"


DATA_SETS = (
    # With nothing set, POLK makes 20 passes with thousands of points: too long for all samples.
    DataSet("mnist", "MNIST", {SMALL: 0.024, LARGE: 0.016}, passes=5, C=1.0, with_defaults=False),
    DataSet("usps", "USPS", {SMALL: 0.02, LARGE: 0.01}, passes=5, C=10.0),
    DataSet(
        "brodatz",
        "Brodatz textures",
        {SMALL: 0.02, LARGE: 0.01},
        passes=20,
        C=10.0,
        quick_data={"crop": 128, "pixels": 20_000},
    ),
    # Drawn, so that there is something to compare where there are no data.
    DataSet(
        "multidist",
        "Five classes in the plane",
        {SMALL: 0.04, LARGE: 1e-4},
        passes=1,
        C=1.0,
        quick_data={"samples": 1000},
    ),
)


def rows(of: DataSet) -> list[Row]:
    """Return what is run, in this order."""
    return [*_parsimons_own(of), *_batch(of), *_online(of)]


def _parsimons_own(of: DataSet) -> list[Row]:
    def polk(name: str, K: float, passes: int, *, loss: str = "hinge", **more: Any) -> Row:
        settings = {"parsimony": K, "epochs": passes, "random_state": 0, **more}
        return Row(Method(name, "polk", loss, settings), f"K = {K:g}, {_count(passes)}")

    def bsgd(like: str, passes: int) -> Row:
        name = f"BSGD, {_size(like)}" + (", one pass" if passes < of.passes else "")
        settings = {"maintenance": "merge", "average": False, "epochs": passes, "random_state": 0}
        remark = f"merges, {_count(passes)}"
        return Row(Method(name, "bsgd", "hinge", settings), remark, like, "max_points")

    found = []
    for name, K in of.parsimony.items():
        found.append(polk(name, K, of.passes))
        if of.passes > 1:
            found.append(polk(f"{name}, one pass", K, 1))
        found.append(polk(f"{name}, averaged", K, of.passes, average=True))
    logistic = SETTINGS[of.task]["parsimony"]["logistic"]
    found.append(polk("POLK, logistic", logistic, of.passes, loss="logistic"))
    if of.with_defaults:
        found.append(Row(Method("POLK, nothing set", "polk defaults", "hinge"), "all by itself"))
    if of.passes > 1:
        found.append(bsgd(SMALL, 1))
    return [*found, bsgd(SMALL, of.passes), bsgd(LARGE, of.passes)]


def _batch(of: DataSet) -> list[Row]:
    machines = [
        Row(Method(name, kind, "hinge", {"C": of.C}), f"C = {of.C:g}")
        for name, kind in (("SVC", "libsvm"), ("SVC, Intel's extension", "intel"))
    ]
    features = [
        Row(Method(f"{name} + SGD, {_size(like)}", kind, "hinge"), "20 passes", like)
        for name, kind in (("Nystroem", "nystroem"), ("RBFSampler", "fourier"))
        for like in (SMALL, LARGE)
    ]
    return machines + features


def _online(of: DataSet) -> list[Row]:
    return [
        Row(Method("river, KNNClassifier", "river neighbors", "hinge"), "latest samples", SMALL),
        Row(Method("river, RBFSampler + softmax", "river fourier", "logistic"), "one pass", SMALL),
        Row(
            Method("Vowpal Wabbit, ksvm", "vowpal", "hinge", {"C": of.C}),
            f"C = {of.C:g}, one against the rest",
        ),
    ]


def _size(like: str) -> str:
    return like.removeprefix("POLK, ")


def _count(passes: int) -> str:
    return "one pass" if passes == 1 else f"{passes} passes"

"""The experiments on intensities: data, kernels, grids, and the settings of every method.

``default`` is what parsimon does of its own accord, beside comparators with steps chosen by hand;
``printed`` is Table I of SPPPOT's paper. Its "bandwidths" are variances.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import parsimon
from bench.baselines.intensity import GridPMD, PrimalPOLK
from parsimon import datasets
from parsimon.schedules import AdaptiveBudget

Array = NDArray[np.float64]

ESTIMATORS = ("SPPPOTIntensity", "MirrorNewtonIntensity", "HybridIntensity")

# A seed for test points that no draw for training has.
TEST_SEED = 10_000


@dataclass(frozen=True)
class Problem:
    """Points in the unit cube, to train and to test."""

    X: Array
    X_test: Array
    true_nll: float | None = None

    def head(self, samples: int) -> Problem:
        return replace(self, X=self.X[:samples])


@dataclass(frozen=True)
class Method:
    """An estimator with its settings; `longer` times as many epochs are run as well, if not 0."""

    name: str
    estimator: str | type  # of parsimon, or a comparator
    settings: Mapping[str, Any] = field(default_factory=dict)
    longer: int = 0

    @property
    def kind(self) -> str:
        return self.estimator if isinstance(self.estimator, str) else self.estimator.__name__

    def is_here(self) -> bool:
        return not isinstance(self.estimator, str) or hasattr(parsimon, self.estimator)

    def make(self, experiment: Experiment, features: int, seed: int, epochs: int | None) -> Any:
        given = {
            "bandwidth": experiment.variance**0.5,
            "grid_size": experiment.grid_size,
            "domain": [(0.0, 1.0)] * features,
            "random_state": seed,
            **self.settings,
        }
        if epochs is not None:
            given["epochs"] = epochs
        if self.kind == "BatchIntensity":
            del given["random_state"]
        make = getattr(parsimon, self.kind) if isinstance(self.estimator, str) else self.estimator
        return make(**given)


@dataclass(frozen=True)
class Experiment:
    """A data set of the paper, and how far off a default of parsimon's may be."""

    title: str
    load: Callable[[int], Problem]
    variance: float
    grid_size: int
    seeds: int
    tolerance: float  # above the batch fit's likelihood
    default: Sequence[Method]
    printed: Sequence[Method]
    integral_tolerance: float = np.inf


def toy(seed: int) -> Problem:
    """Draw a Poisson process whose intensity is a Gaussian of standard deviation 0.1."""
    X, density = datasets.make_poisson_gaussian(10_211, random_state=seed, return_density=True)
    X_test = datasets.make_poisson_gaussian(1001, random_state=TEST_SEED + seed)
    return Problem(X, X_test, true_nll=float(1 - np.log(density(X_test)).mean()))


def curry(seed: int) -> Problem:
    parts = ("train", "test")
    X, X_test = (
        datasets.load_curry_shots(subset=part, random_state=seed, return_X=True) for part in parts
    )
    return Problem(X, X_test)


def chicago(seed: int) -> Problem:
    parts = ("train", "test")
    X, X_test = (
        datasets.load_chicago_crimes(subset=part, random_state=seed, return_X=True)
        for part in parts
    )
    return Problem(X, X_test)


def pmd(eta: float, epochs: int, **given: Any) -> Method:
    note = ", 1/f bounded" if "largest_increment" in given else ""
    return Method(
        f"PMD, grid only, eta {eta:g}{note}",
        GridPMD,
        {"learning_rate": eta, "epochs": epochs, **given},
    )


def polk(start: str) -> Method:
    return Method(
        f"POLK in the primal, {start} start",
        PrimalPOLK,
        {"learning_rate": 0.006, "epochs": 8, "start": start},
    )


def algorithm1(eta: float, epochs: int, note: str, **given: Any) -> Method:
    return Method(
        f"Algorithm 1, eta {eta:g}, {note}",
        "SPPPOTIntensity",
        {
            "learning_rate": eta,
            "epochs": epochs,
            "batch_size": 30,
            "gradient": "kernel_embedding",
            "regularization": 0.0,
            "average": False,
            **given,
        },
    )


def algorithm3(eta: float, epochs: int, **given: Any) -> Method:
    nodes = f", {given['grid_size']} nodes" if given else ""
    return Method(
        f"Algorithm 3, eta {eta:g}{nodes}",
        "MirrorNewtonIntensity",
        {"learning_rate": eta, "damping": 1.0, "epochs": epochs, **given},
    )


def algorithm4(eta: float, newton_eta: float, epochs: int, **given: Any) -> Method:
    return Method(
        f"Algorithm 4, eta {eta:g}, {newton_eta:g}",
        "HybridIntensity",
        {
            "learning_rate": eta,
            "newton_learning_rate": newton_eta,
            "damping": 1.0,
            "epochs": epochs,
            "batch_size": 30,
            "gradient": "kernel_embedding",
            "regularization": 0.0,
            **given,
        },
    )


# With the steps that parsimon chooses.
OURS = tuple(Method(name, name, longer=4) for name in ESTIMATORS)

EXPERIMENTS = {
    "toy": Experiment(
        "toy",
        toy,
        variance=0.0065,
        grid_size=100,
        seeds=5,
        tolerance=0.003,
        default=(pmd(0.012, 8, largest_increment=1.0), polk("printed"), polk("uniform"), *OURS),
        printed=(
            pmd(0.05, 8),
            polk("printed"),
            algorithm1(0.012, 8, "eps 6.6e-6", budget=6.6e-6),
            algorithm1(0.012, 8, "105 points", budget=AdaptiveBudget(105, 2e-6)),
            algorithm3(1.25, 8),
            algorithm3(1.0, 8, grid_size=50),
            algorithm4(0.1, 1.8182, 8, budget=AdaptiveBudget(90, 1.5e-6), grid_size=50),
        ),
        integral_tolerance=0.02,
    ),
    "curry": Experiment(
        "Curry's shots",
        curry,
        variance=0.0025,
        grid_size=100,
        seeds=3,
        tolerance=0.01,
        default=(pmd(0.1, 10, largest_increment=1.0), *OURS),
        printed=(
            pmd(0.1, 10),
            algorithm1(0.03, 10, "eps 1e-5", budget=1e-5),
            algorithm3(0.2381, 10),
            algorithm3(0.2381, 10, grid_size=50),
            algorithm4(0.03, 0.1408, 10, budget=1e-5),
        ),
    ),
    "chicago": Experiment(
        "Chicago's crimes",
        chicago,
        variance=0.01,
        grid_size=21,
        seeds=3,
        tolerance=0.05,
        default=(pmd(0.15, 4, largest_increment=1.0), *OURS),
        printed=(
            pmd(0.8, 4),
            algorithm1(0.15, 4, "eps 3e-4", budget=3e-4),
            algorithm3(6.6667, 4),
            algorithm4(0.4, 5.0, 4, budget=3e-4),
        ),
    ),
}

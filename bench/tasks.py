"""The tasks that benchmarks train on: data, and the settings of POLK that go with them.

To add one, write a function ``(samples, seed) -> Task`` and list it in ``TASKS``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import textons
from bench.cli import MissingDataError
from parsimon import POLKClassifier, datasets, kernels

Array = NDArray[Any]

REGULARIZATION = 1e-6
BATCH_SIZE = 32
TEST_SAMPLES = 10_000
BRODATZ_TEST_SAMPLES = 5_000

# What POLK needs to know about each task: parsimony constants are by loss.
SETTINGS: dict[str, dict[str, Any]] = {
    "mnist": {
        "kernel": kernels.Gaussian(4.0),
        "learning_rate": 24.0,
        "parsimony": {"hinge": 0.024, "logistic": 0.012},
    },
    "multidist": {
        "kernel": kernels.Gaussian(0.6**0.5),
        "learning_rate": 6.0,
        "parsimony": {"hinge": 0.04, "logistic": 0.03},
    },
    # Chosen on 1,491 of the training samples, held out.
    "usps": {
        "kernel": kernels.Gaussian(4.0),
        "learning_rate": 24.0,
        "parsimony": {"hinge": 0.02, "logistic": 0.01},
    },
    "brodatz": {
        "kernel": kernels.Gaussian(0.1),
        "learning_rate": 24.0,
        "parsimony": {"hinge": 0.02, "logistic": 0.015},
    },
    # 64 features: a typical pair of samples has kernel exp(-1).
    "synthetic": {
        "kernel": kernels.Gaussian(64**0.5),
        "learning_rate": 8.0,
        "parsimony": {"hinge": 0.04, "logistic": 0.02},
    },
}


@dataclass(frozen=True)
class Task:
    """Data to train on and to test with, and what POLK needs to know."""

    name: str
    X: Array
    y: Array
    X_test: Array
    y_test: Array
    kernel: kernels.Kernel
    learning_rate: float
    parsimony: Mapping[str, float]  # by loss

    @property
    def features(self) -> int:
        return int(self.X.shape[1])

    def classifier(
        self, loss: str = "hinge", *, parsimony: float | None = None, batch_size: int = BATCH_SIZE
    ) -> POLKClassifier:
        """Return POLK as the paper runs it: one epoch in the order given, the last iterate."""
        return POLKClassifier(
            loss,
            kernel=self.kernel,
            learning_rate=self.learning_rate,
            parsimony=self.parsimony[loss] if parsimony is None else parsimony,
            regularization=REGULARIZATION,
            batch_size=batch_size,
            epochs=1,
            shuffle=False,
            average=False,
        )


def mnist(samples: int | None, seed: int) -> Task:
    """MNIST's digits in the order of the file; the seed changes nothing."""
    return _digits("mnist", samples)


def usps(samples: int | None, seed: int) -> Task:
    """USPS's digits in the order of the file; the seed changes nothing."""
    return _digits("usps", samples)


def _digits(name: str, samples: int | None) -> Task:
    load = getattr(datasets, f"load_{name}")
    try:
        X, y = load(subset="train", return_X_y=True)
        X_test, y_test = load(subset="test", return_X_y=True)
    except OSError as error:
        raise MissingDataError(f"The task {name} cannot be run. {error}") from error
    return Task(name, X[:samples], y[:samples], X_test, y_test, **SETTINGS[name])


def multidist(samples: int | None, seed: int) -> Task:
    """Five classes of three Gaussians in the plane (POLK paper, section 5)."""
    count = 5000 if samples is None else samples
    X, y = datasets.make_multidist(count + TEST_SAMPLES, sd=0.2, random_state=seed)
    return Task(
        "multidist",
        X[:count],
        y[:count],
        X[count:],
        y[count:],
        **SETTINGS["multidist"],
    )


def brodatz(
    samples: int | None,
    seed: int,
    *,
    settings: textons.Settings = textons.Settings(),  # noqa: B008 - immutable
    cache: Path | None = None,
) -> Task:
    """Patches of 13 Brodatz textures as histograms of 256 textons (POLK paper, section 5).

    To find the textons takes a minute; they are kept in the folder `cache` if there is one. What
    the paper prints as sigma^2 is sigma, as on MNIST: only so its model orders and errors are met.
    """
    path = Path(os.environ.get("PARSIMON_DATA", ".")) / "brodatz13.npz"
    if not path.is_file():
        raise MissingDataError(
            "The task brodatz cannot be run. Please set PARSIMON_DATA to a folder with "
            "brodatz13.npz, which holds 13 textures in the array images."
        )
    with np.load(path, allow_pickle=False) as content:
        maps = textons.cached_maps(content["images"], settings, cache)
    count = 10_000 if samples is None else samples
    X, y = textons.draw_patches(maps, count + BRODATZ_TEST_SAMPLES, settings, seed)
    return Task(
        "brodatz",
        X[:count],
        y[:count],
        X[count:],
        y[count:],
        **SETTINGS["brodatz"],
    )


def synthetic(samples: int | None, seed: int) -> Task:
    """64 standard-normal features, five classes by a random function of the kernel's own space."""
    count = 20_000 if samples is None else samples
    features, classes, centers = 64, 5, 50
    random = np.random.default_rng(seed)
    bandwidth = SETTINGS["synthetic"]["kernel"].bandwidth
    teacher_centers = random.normal(size=(centers, features))
    teacher_weights = random.normal(size=(centers, classes))
    # Sums of weights that are not zero would favour a class everywhere.
    teacher_weights -= teacher_weights.mean(axis=0)
    X = random.normal(size=(count + TEST_SAMPLES, features))
    distances = (
        (X**2).sum(axis=1)[:, None] + (teacher_centers**2).sum(axis=1) - 2 * X @ teacher_centers.T
    )
    y = (np.exp(-distances / (2 * bandwidth**2)) @ teacher_weights).argmax(axis=1)
    return Task(
        "synthetic",
        X[:count],
        y[:count],
        X[count:],
        y[count:],
        **SETTINGS["synthetic"],
    )


TASKS: dict[str, Callable[[int | None, int], Task]] = {
    "mnist": mnist,
    "usps": usps,
    "multidist": multidist,
    "brodatz": brodatz,
    "synthetic": synthetic,
}

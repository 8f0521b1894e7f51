"""The tasks that benchmarks train on: data, and the settings of POLK that go with them.

To add one, write a function ``(samples, seed) -> Task`` and list it in ``TASKS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.cli import MissingDataError
from parsimon import POLKClassifier, datasets, kernels

Array = NDArray[Any]

REGULARIZATION = 1e-6
BATCH_SIZE = 32
TEST_SAMPLES = 10_000


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
    try:
        X, y = datasets.load_mnist(subset="train", return_X_y=True)
        X_test, y_test = datasets.load_mnist(subset="test", return_X_y=True)
    except FileNotFoundError as error:
        raise MissingDataError(f"The task mnist cannot be run. {error}") from error
    return Task(
        "mnist",
        X[:samples],
        y[:samples],
        X_test,
        y_test,
        kernel=kernels.Gaussian(4.0),
        learning_rate=24.0,
        parsimony={"hinge": 0.024, "logistic": 0.012},
    )


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
        kernel=kernels.Gaussian(0.6**0.5),
        learning_rate=6.0,
        parsimony={"hinge": 0.04, "logistic": 0.03},
    )


def synthetic(samples: int | None, seed: int) -> Task:
    """64 standard-normal features, five classes by a random function of the kernel's own space."""
    count = 20_000 if samples is None else samples
    features, classes, centers = 64, 5, 50
    random = np.random.default_rng(seed)
    bandwidth = features**0.5  # a typical pair of samples then has kernel exp(-1)
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
        kernel=kernels.Gaussian(bandwidth),
        learning_rate=8.0,
        parsimony={"hinge": 0.04, "logistic": 0.02},
    )


TASKS: dict[str, Callable[[int | None, int], Task]] = {
    "mnist": mnist,
    "multidist": multidist,
    "synthetic": synthetic,
}

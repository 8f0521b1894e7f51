"""Classifiers of other packages, which need not be installed until one is fitted.

Those that learn sample by sample stop after `seconds` of training, if that is given, and say in
`samples_seen_` how far they came. `package` is a name on PyPI.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from bench.baselines.scikit import Libsvm


class IntelSvm(Libsvm):
    """LIBSVM's problem, solved by Intel's extension for scikit-learn."""

    package = "scikit-learn-intelex"

    def _make(self, **settings: Any) -> Any:
        from sklearnex.svm import SVC

        return SVC(n_jobs=1, **settings)


@dataclass(eq=False, repr=False)
class _River(ClassifierMixin, BaseEstimator):
    """A model of river's, which learns and predicts one dictionary of features at a time.

    `model_order_` is the number of stored points, or of random features.
    """

    package: ClassVar = "river"

    bandwidth: float  # standard deviation of the kernel
    points: int  # size of the model
    seconds: float | None = None  # stop learning after so long

    def fit(self, X: ArrayLike, y: ArrayLike) -> _River:
        X, y = np.asarray(X), np.asarray(y)
        self.classes_ = np.unique(y)
        self._model, self.model_order_ = self._make(X.shape[1])
        self.samples_seen_ = 0
        for x, label in until(self.seconds, zip(X, y.tolist(), strict=True)):
            self._model.learn_one(named(x), label)
            self.samples_seen_ += 1
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        return np.array([self._model.predict_one(named(x)) for x in np.asarray(X)])


class RiverNeighbors(_River):
    """The five nearest of the latest samples vote; the kernel plays no part."""

    def _make(self, features: int) -> tuple[Any, int]:
        from river import neighbors

        engine = neighbors.LazySearch(window_size=self.points)
        return neighbors.KNNClassifier(n_neighbors=5, engine=engine), self.points


class RiverFourier(_River):
    """Softmax regression on river's random features, which are cosines of one input each.

    Its optimizer is river's default, SGD(0.01): SGD(0.1) and Adam did no better on samples of USPS
    that were held out.
    """

    def _make(self, features: int) -> tuple[Any, int]:
        from river import feature_extraction, linear_model

        each = max(1, self.points // features)
        gamma = 1 / (2 * self.bandwidth**2)
        sampler = feature_extraction.RBFSampler(gamma=gamma, n_components=each, seed=0)
        return sampler | linear_model.SoftmaxRegression(), each * features


@dataclass(eq=False, repr=False)
class VowpalSvm(ClassifierMixin, BaseEstimator):
    """Vowpal Wabbit's online kernel SVM, which is binary: one machine for each class.

    `model_order_` is the number of support vectors, those that several machines share counted for
    each; `saved_bytes_` is the size of the model's files.
    """

    package: ClassVar = "vowpalwabbit"

    bandwidth: float  # standard deviation of the kernel
    C: float = 1.0  # weight of the losses
    seconds: float | None = None  # stop learning after so long

    def fit(self, X: ArrayLike, y: ArrayLike) -> VowpalSvm:
        from vowpalwabbit import Workspace

        gamma = 1 / (2 * self.bandwidth**2)
        options = f"--ksvm --kernel rbf --bandwidth {gamma:.17g} --l2 {1 / self.C:.17g}"
        self.classes_ = np.unique(y)
        machines = [Workspace(options, enable_logging=True) for _ in self.classes_]
        self.samples_seen_ = 0
        samples = zip(np.asarray(X), np.asarray(y), strict=True)
        for x, label in until(self.seconds, samples):
            text = as_text(x)
            for machine, own in zip(machines, self.classes_, strict=True):
                machine.learn(f"{1 if label == own else -1} {text}")
            self.samples_seen_ += 1
        self._reload(machines)
        return self

    def _reload(self, machines: Iterable[Any]) -> None:
        """Put trained machines in the place of those that trained.

        The number of support vectors is only told when a machine is finished.
        """
        from vowpalwabbit import Workspace

        self._machines = []
        self.model_order_ = self.saved_bytes_ = 0
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            for machine in machines:
                machine.save(str(path))
                machine.finish()
                log = "\n".join(machine.get_log())
                self.model_order_ += int(log.split("Num support = ")[1].split()[0])
                self.saved_bytes_ += path.stat().st_size
                self._machines.append(Workspace(f"-i {path} --testonly", quiet=True))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        texts = map(as_text, np.asarray(X))
        scores = [[machine.predict(text) for machine in self._machines] for text in texts]
        return np.asarray(self.classes_[np.argmax(scores, axis=1)])


def until(seconds: float | None, samples: Iterable[Any]) -> Iterator[Any]:
    """Yield samples for so long."""
    end = float("inf") if seconds is None else time.perf_counter() + seconds
    for sample in samples:
        yield sample
        if time.perf_counter() > end:
            return


def named(x: NDArray[np.float64]) -> dict[int, float]:
    return dict(enumerate(x.tolist()))


def as_text(x: NDArray[np.float64]) -> str:
    """Return a sample in Vowpal Wabbit's format, with the zeros left out."""
    return "| " + " ".join(f"{index}:{x[index]:.9g}" for index in np.flatnonzero(x))

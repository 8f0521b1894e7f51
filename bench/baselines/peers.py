"""Machines of scikit-learn and of other packages, with the interface that comparisons need.

Other packages need not be installed until one of theirs is fitted; `package` is a name on PyPI.
Those that learn sample by sample stop after `seconds` of training, if that is given, and say in
`samples_seen_` how far they came. The bandwidth is the standard deviation of a Gaussian kernel.
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
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC


@dataclass(eq=False, repr=False)
class _Gaussian(ClassifierMixin, BaseEstimator):
    """A classifier with a Gaussian kernel."""

    bandwidth: float

    @property
    def gamma(self) -> float:
        return 1 / (2 * self.bandwidth**2)


@dataclass(eq=False, repr=False)
class Libsvm(_Gaussian):
    """LIBSVM's C-SVC: a binary machine for each pair of classes, and a vote.

    It has no score for each class that the multi-class risk could be computed from. `model_order_`
    is the number of support vectors, those that several pairs share counted once.
    """

    C: float = 1.0  # weight of the losses

    def fit(self, X: ArrayLike, y: ArrayLike) -> Libsvm:
        self._svc = self._make(C=self.C, gamma=self.gamma, cache_size=1000).fit(X, y)
        self.classes_ = self._svc.classes_
        self.model_order_ = len(self._svc.support_)
        return self

    def _make(self, **settings: Any) -> Any:
        return SVC(**settings)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        return np.asarray(self._svc.predict(X))


class IntelSvm(Libsvm):
    """LIBSVM's problem, solved by Intel's extension for scikit-learn."""

    package = "scikit-learn-intelex"

    def _make(self, **settings: Any) -> Any:
        from sklearnex.svm import SVC

        return SVC(n_jobs=1, **settings)


@dataclass(eq=False, repr=False)
class NystroemSGD(_Gaussian):
    """Nystroem features of the kernel, and a linear machine on them by SGD.

    One machine for each class against the rest. `model_order_` is the number of stored points.
    """

    points: int  # samples that the features are made of, drawn at random
    loss: str = "hinge"  # or "logistic"
    regularization: float = 1e-6  # lambda of lambda ||f||^2, for the logistic loss of half of that
    epochs: int = 20
    random_state: int | None = None

    def fit(self, X: ArrayLike, y: ArrayLike) -> NystroemSGD:
        X = np.asarray(X)
        features, self.model_order_ = self._features(len(X))
        drawn = {"n_components": self.model_order_, "random_state": self.random_state}
        machine = SGDClassifier(
            loss={"hinge": "hinge", "logistic": "log_loss"}[self.loss],
            # scikit-learn's penalty is alpha / 2 |w|^2.
            alpha=self.regularization * (2 if self.loss == "hinge" else 1),
            max_iter=self.epochs,
            tol=None,
            average=True,
            random_state=self.random_state,
        )
        self._pipeline = make_pipeline(features(gamma=self.gamma, **drawn), machine).fit(X, y)
        self.classes_ = self._pipeline.classes_
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        return np.asarray(self._pipeline.predict(X))

    def _features(self, samples: int) -> tuple[Any, int]:
        """Return what makes features, and how many."""
        return Nystroem, min(self.points, samples)


class FourierSGD(NystroemSGD):
    """The same on random Fourier features, which store directions in the place of points."""

    def _features(self, samples: int) -> tuple[Any, int]:
        return RBFSampler, self.points


class TunedRidge(RegressorMixin, BaseEstimator):
    """Kernel ridge regression with an intercept; width and ridge are chosen by cross-validation.

    They are chosen on the first of many samples, and the fit is to all of them. `model_order_` is
    their number.
    """

    samples = 2000  # on which they are chosen
    grid = {"gamma": np.logspace(-2.5, 0.5, 7), "alpha": np.logspace(-4, 1, 6)}

    def fit(self, X: ArrayLike, y: ArrayLike) -> TunedRidge:
        X, y = np.asarray(X), np.asarray(y)
        self._mean, self._scale = y.mean(), y.std() or 1.0
        y = (y - self._mean) / self._scale
        ridge = KernelRidge(kernel="rbf")
        search = GridSearchCV(ridge, self.grid, scoring="neg_mean_squared_error", refit=False)
        chosen = search.fit(X[: self.samples], y[: self.samples]).best_params_
        self._ridge = ridge.set_params(**chosen).fit(X, y)
        self.model_order_ = len(X)
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        return np.asarray(self._mean + self._scale * self._ridge.predict(X))


@dataclass(eq=False, repr=False)
class _River(_Gaussian):
    """A model of river's, which learns and predicts one dictionary of features at a time.

    `model_order_` is the number of stored points, or of random features.
    """

    package: ClassVar = "river"

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
        sampler = feature_extraction.RBFSampler(gamma=self.gamma, n_components=each, seed=0)
        return sampler | linear_model.SoftmaxRegression(), each * features


@dataclass(eq=False, repr=False)
class VowpalSvm(_Gaussian):
    """Vowpal Wabbit's online kernel SVM, which is binary: one machine for each class.

    `model_order_` is the number of support vectors, those that several machines share counted for
    each; `saved_bytes_` is the size of the model's files.
    """

    package: ClassVar = "vowpalwabbit"

    C: float = 1.0  # weight of the losses
    seconds: float | None = None  # stop learning after so long

    def fit(self, X: ArrayLike, y: ArrayLike) -> VowpalSvm:
        from vowpalwabbit import Workspace

        options = f"--ksvm --kernel rbf --bandwidth {self.gamma:.17g} --l2 {1 / self.C:.17g}"
        self.classes_ = np.unique(y)
        machines = [Workspace(options, enable_logging=True) for _ in self.classes_]
        self.samples_seen_ = 0
        samples = zip(np.asarray(X), np.asarray(y), strict=True)
        for x, label in until(self.seconds, samples):
            text = as_text(x)
            for machine, own in zip(machines, self.classes_, strict=True):
                machine.learn(f"{1 if label == own else -1} {text}")
            self.samples_seen_ += 1
        self._machines = []
        self.model_order_ = self.saved_bytes_ = 0
        # The number of support vectors is only told when a machine is finished: one that is read
        # from its file takes its place.
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            for machine in machines:
                machine.save(str(path))
                machine.finish()
                log = "\n".join(machine.get_log())
                self.model_order_ += int(log.split("Num support = ")[1].split()[0])
                self.saved_bytes_ += path.stat().st_size
                self._machines.append(Workspace(f"-i {path} --testonly", quiet=True))
        return self

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

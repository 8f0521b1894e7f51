"""Machines of scikit-learn, with the interface that comparisons need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
class Libsvm(ClassifierMixin, BaseEstimator):
    """LIBSVM's C-SVC with a Gaussian kernel: a binary machine for each pair of classes, and a vote.

    It has no score for each class that the multi-class risk could be computed from. `model_order_`
    is the number of support vectors, those that several pairs share counted once.
    """

    bandwidth: float  # standard deviation of the kernel
    C: float = 1.0  # weight of the losses

    def fit(self, X: ArrayLike, y: ArrayLike) -> Libsvm:
        gamma = 1 / (2 * self.bandwidth**2)
        self._svc = self._make(C=self.C, gamma=gamma, cache_size=1000).fit(X, y)
        self.classes_ = self._svc.classes_
        self.model_order_ = len(self._svc.support_)
        return self

    def _make(self, **settings: Any) -> Any:
        return SVC(**settings)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        return np.asarray(self._svc.predict(X))


@dataclass(eq=False, repr=False)
class NystroemSGD(ClassifierMixin, BaseEstimator):
    """Nystroem features of a Gaussian kernel, and a linear machine on them by SGD.

    One machine for each class against the rest. `model_order_` is the number of stored points.
    """

    bandwidth: float  # standard deviation of the kernel
    points: int  # samples that the features are made of, drawn at random
    loss: str = "hinge"  # or "logistic"
    regularization: float = 1e-6  # lambda of lambda ||f||^2, for the logistic loss of half of that
    epochs: int = 20
    random_state: int | None = None

    def fit(self, X: ArrayLike, y: ArrayLike) -> NystroemSGD:
        X = np.asarray(X)
        self.model_order_ = self._count(len(X))
        gamma = 1 / (2 * self.bandwidth**2)
        # scikit-learn's penalty is alpha / 2 |w|^2.
        alpha = self.regularization * (2 if self.loss == "hinge" else 1)
        self._pipeline = make_pipeline(
            self._features(gamma),
            SGDClassifier(
                loss={"hinge": "hinge", "logistic": "log_loss"}[self.loss],
                alpha=alpha,
                max_iter=self.epochs,
                tol=None,
                average=True,
                random_state=self.random_state,
            ),
        ).fit(X, y)
        self.classes_ = self._pipeline.classes_
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        return np.asarray(self._pipeline.predict(X))

    def _count(self, samples: int) -> int:
        return min(self.points, samples)

    def _features(self, gamma: float) -> Any:
        return Nystroem(gamma=gamma, n_components=self.model_order_, random_state=self.random_state)


class FourierSGD(NystroemSGD):
    """The same on random Fourier features, which store directions in the place of points."""

    def _count(self, samples: int) -> int:
        return self.points

    def _features(self, gamma: float) -> Any:
        return RBFSampler(
            gamma=gamma, n_components=self.model_order_, random_state=self.random_state
        )


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

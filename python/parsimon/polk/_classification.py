"""What the classifiers that train the core's POLK model share: labels in, labels out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from parsimon._base import Array, Training
from parsimon._labels import distinct_labels
from parsimon._model import FLOATS

from ._common import POLK

Self = TypeVar("Self", bound="POLKClassification")

_NO_WEIGHTS = np.empty(0)


def _gives_probabilities(estimator: POLKClassification) -> bool:
    estimator._require_probabilities()
    return True


class POLKClassification(ClassifierMixin, POLK):
    """A classifier whose function is learned by POLK, whatever its loss."""

    def _require_probabilities(self) -> None:
        """Raise AttributeError if the loss gives no probabilities."""

    def fit(self: Self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from all samples, forgetting what was learned before.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples, not negative.

        Returns
        -------
        self : estimator
            The fitted estimator.
        """
        with self._unchanged_on_error():
            self._check_parameters()
            X, labels = self._validate_both(X, y, reset=True)
            classes = distinct_labels(labels, "y")
            if len(classes) < 2:
                raise ValueError(
                    f"A classifier needs samples of at least 2 classes; y has only one class, "
                    f"{classes[0]!r}."
                )
            training = self._training(X, labels, classes, sample_weight)
            return self._fit(training, {"classes_": classes})

    def partial_fit(
        self: Self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from one block of a stream, in the order given.

        The first block fixes the settings: hyper-parameters that are changed later have no
        effect before the next ``fit``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : array-like, optional
            All labels that the stream will ever have; needed in the first call.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples, not negative.

        Returns
        -------
        self : estimator
            The estimator.
        """
        with self._unchanged_on_error():
            self._check_parameters_if_changed()
            quick = self._quick_training(X, y, classes, sample_weight)
            if quick is not None:
                return self._partial_fit(quick, {})
            first = not hasattr(self, "_model")
            X, labels = self._validate_both(X, y, reset=first)
            known = self._known_classes(classes, first)
            training = self._training(X, labels, known, sample_weight)
            return self._partial_fit(training, {"classes_": known} if first else {})

    def decision_function(self, X: ArrayLike) -> Array:
        """Return the values of the learned function.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes one value, positive for ``classes_[1]``; otherwise one a class.
        """
        values = self._evaluate(X)
        if len(self.classes_) > 2:
            return values
        return values[:, 0] if values.shape[1] == 1 else values[:, 1] - values[:, 0]

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most likely label of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The labels.
        """
        values = self.decision_function(X)
        chosen = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probability of each class; only with the logistic loss.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        values = self._evaluate(X)
        return np.asarray(self._core_loss(values.shape[1]).probabilities(values))

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Return the logarithm of the probability of each class; only with the logistic loss.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def _n_outputs(self, training: Training) -> int:
        classes = training.n_classes
        return 1 if classes == 2 else classes

    def _validate_both(
        self, X: ArrayLike, y: ArrayLike, *, reset: bool
    ) -> tuple[Any, NDArray[Any]]:
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=FLOATS, order="C", reset=reset)
        return X, np.asarray(y)

    def _quick_training(
        self, X: Any, y: Any, classes: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> Training | None:
        """Return the block if it is like many before, with labels that are known integers."""
        if classes is not None or not self._needs_no_validation(X, y, sample_weight):
            return None
        known = self.classes_
        if y.dtype.kind not in "iu" or known.dtype.kind not in "iu":
            return None
        targets = known.searchsorted(y)
        if (known.take(targets, mode="clip") != y).any():
            return None
        return Training(X, targets.astype(np.float64)[:, None], _NO_WEIGHTS, n_classes=len(known))

    def _known_classes(self, classes: ArrayLike | None, first: bool) -> NDArray[Any]:
        if not first:
            same = classes is None or np.array_equal(
                self.classes_, distinct_labels(classes, "classes")
            )
            if not same:
                raise ValueError(
                    f"classes is {classes!r}, but the first call gave {self.classes_!r}; it "
                    f"cannot change along a stream."
                )
            return np.asarray(self.classes_)
        if classes is None:
            raise ValueError("The first call of partial_fit needs classes, all labels there are.")
        known = distinct_labels(classes, "classes")
        if len(known) < 2:
            raise ValueError(f"classes must hold at least 2 labels; got {classes!r}.")
        return known

    def _training(
        self,
        X: Any,
        labels: NDArray[Any],
        classes: NDArray[Any],
        sample_weight: ArrayLike | None,
    ) -> Training:
        unseen = np.setdiff1d(distinct_labels(labels, "y"), classes)
        if len(unseen):
            raise ValueError(
                f"y has the labels {unseen.tolist()}, which are not among the classes "
                f"{classes.tolist()} of the first call."
            )
        targets = np.searchsorted(classes, labels).astype(np.float64)[:, None]
        weight = self._validate_sample_weight(sample_weight, X)
        return Training(X, targets, weight, n_classes=len(classes))

    def _fitted_attributes(self, outputs: int) -> dict[str, Callable[[Any], bool]]:
        count = max(outputs, 2)
        return {
            "classes_": lambda value: (
                value.shape == (count,) and np.array_equal(value, np.unique(value))
            )
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags

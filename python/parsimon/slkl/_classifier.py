"""The SLKL classifier: one regression for each class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import validate_data

from parsimon._labels import distinct_labels
from parsimon._model import Array

from ._common import SLKL

Self = TypeVar("Self", bound="SLKLClassifier")


class SLKLClassifier(ClassifierMixin, SLKL):
    """Classification by regression on the labels with learned kernels of low rank (SLKL).

    For each class the kernel and the function of :class:`SLKLRegressor` are learned for targets 1
    (this class) and -1 (the others); the class with the largest value wins. Columns and their
    products are shared between classes. Two classes need one function.

    Parameters
    ----------
    kernel, gamma, n_columns, sparsity, regularization, center, tol, max_iter, step, selection, \
store_columns, warm_start, n_jobs, random_state, verbose
        As in :class:`SLKLRegressor`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    mu_ : ndarray of shape (n_columns,) or (n_columns, n_classes)
        Weights of the kernels, of one dimension for two classes.
    columns_, support_, objective_, dual_gap_, n_iter_, intercept_, dictionary_, weights_, \
model_order_, expansion_, n_features_in_
        As in :class:`SLKLRegressor`, with one output for each class, or one for two classes; the
        support is that of all of them.

    Examples
    --------
    >>> from parsimon import SLKLClassifier
    >>> from parsimon.datasets import make_multidist
    >>> X, y = make_multidist(1500, random_state=0)
    >>> model = SLKLClassifier(n_columns=200, random_state=0).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.9
    True
    """

    def fit(self: Self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn a kernel and a function for each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples; sparse ones are made dense.
        y : array-like of shape (n_samples,)
            Their labels.

        Returns
        -------
        self : estimator
            The fitted estimator.
        """
        with self._unchanged_on_error():
            self._check_parameters()
            X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, order="C")
            labels = np.asarray(y)
            classes = distinct_labels(labels, "y")
            if len(classes) < 2:
                raise ValueError(
                    f"A classifier needs samples of at least 2 classes; y has only one class, "
                    f"{classes[0]!r}."
                )
            shown = classes[1:] if len(classes) == 2 else classes
            targets = np.where(labels[:, None] == shown, 1.0, -1.0)
            return self._learn(X, targets, {"classes_": classes})

    def decision_function(self, X: ArrayLike) -> Array:
        """Return the values of the learned functions.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes one value, positive for ``classes_[1]``; otherwise one a class.
        """
        values = self._values(X)
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the label of each sample.

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

    def _fitted_attributes(self, outputs: int) -> dict[str, Callable[[Any], bool]]:
        count = max(outputs, 2)
        return {
            **super()._fitted_attributes(outputs),
            "classes_": lambda value: (
                value.shape == (count,) and np.array_equal(value, np.unique(value))
            ),
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags

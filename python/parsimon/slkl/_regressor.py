"""The SLKL regressor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from parsimon._model import Array

from ._common import SLKL

Self = TypeVar("Self", bound="SLKLRegressor")


class SLKLRegressor(RegressorMixin, SLKL):
    """Regression with a learned kernel of low rank (SLKL).

    Each of M training points x_m gives a kernel of rank one, k(x, x_m) k(x', x_m) / k(x_m, x_m).
    Their weights mu >= 0 are learned together with the function: with c_m the values of the m-th
    kernel's feature at the samples, mu minimises the convex::

        y' (I + sum_m mu_m c_m c_m' / regularization)^-1 y + sparsity * sum_m mu_m

    which leaves most of them at 0. The points with mu > 0 carry the function. Its minimum is that
    of the Lasso ``||y - C w||^2 + 2 sqrt(regularization * sparsity) |w|_1``, which gives a bound
    on how far a solution can be from it, ``dual_gap_``.

    Parameters
    ----------
    kernel : parsimon.kernels.Kernel or str, default="rbf"
        A kernel, or the name of one as in scikit-learn ("rbf", "laplacian", "poly", "linear"...).
    gamma : float, "scale" or "median", default="scale"
        Width of a kernel given by name, as in scikit-learn: 1 / (n_features * X.var()) for
        "scale"; from the median distance between samples for "median".
    n_columns : int, float or None, default=None
        M: how many training points may carry the function, drawn at random. An integer, a
        fraction of all samples, or None for all of them.
    sparsity : float, default=0.01
        Price nu of the weights of the kernels. It goes with the square of the targets' scale.
    regularization : float, default=1.0
        Ridge parameter lambda. Only the product of ``regularization`` and ``sparsity`` matters for
        the function: with it, ``mu_`` scales like ``regularization``.
    center : bool, default=True
        Whether to subtract the mean of the targets; False does as the paper.
    tol : float, default=1e-5
        With "shrinking", how far the objective may be above its minimum, relative to itself; with
        "uniform", the relative decrease in an epoch below which to stop.
    max_iter : int, default=1000
        Epochs at most.
    step : {"exact", "newton"}, default="exact"
        How a weight is chosen while the others stay: the best value, or the paper's Newton step.
    selection : {"shrinking", "uniform"}, default="shrinking"
        Which weights are chosen in an epoch: "shrinking" looks at the gradient of all and chooses
        those that are not at their best, then solves for all that are not 0; "uniform" draws M at
        random, as in the paper.
    store_columns : bool, default=True
        Whether to keep the products of all M columns, M^2 numbers, so that a step costs O(m0^2)
        with m0 weights that are not 0. False keeps only the m0 columns in use, n m0 numbers, and
        computes the others when they are needed.
    warm_start : bool, default=False
        Whether ``fit`` starts from the weights of the last one, for the same columns: quick when
        only ``sparsity`` has changed a little.
    n_jobs : int, optional
        Threads to use, -1 for as many as there are processors; by default
        :func:`parsimon.get_num_threads`. The result is the same with any number.
    random_state : int, RandomState instance or None, default=None
        Source of the columns, and of the order of steps.
    verbose : int, default=0
        1 prints a line when ``fit`` is done.

    Attributes
    ----------
    mu_ : ndarray of shape (n_columns,) or (n_columns, n_targets)
        Weights of the kernels; those of different targets are learned independently.
    columns_ : ndarray of int of shape (n_columns,)
        The training samples that the columns belong to.
    support_ : ndarray of int of shape (model_order_,)
        Those among them with a weight.
    objective_ : ndarray of shape (n_iter_ + 1,)
        The objective before the first epoch and after each, summed over targets.
    dual_gap_ : float
        The last objective is at most this far above the minimum.
    n_iter_ : int
        Number of epochs.
    intercept_ : ndarray of shape (n_targets,)
        The mean that was subtracted from the targets, or zeros.
    dictionary_, weights_, model_order_, n_features_in_
        As in :class:`POLKRegressor`; the dictionary is ``X[support_]``.
    expansion_ : KernelExpansion
        The learned function: ``predict(X) == expansion_(X) + intercept_``.

    References
    ----------
    P. Machart, T. Peel, S. Anthoine, L. Ralaivola, H. Glotin: Stochastic low-rank kernel learning
    for regression. International Conference on Machine Learning, 2011.

    Examples
    --------
    >>> from parsimon import SLKLRegressor
    >>> from parsimon.datasets import make_sinc
    >>> X, y = make_sinc(1000, random_state=0)
    >>> model = SLKLRegressor(gamma=0.5, n_columns=256, random_state=0).fit(X, y)
    >>> model.model_order_ < 80
    True
    >>> model.score(*make_sinc(500, snr_db=None, random_state=1)) > 0.98
    True
    """

    def fit(self: Self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn kernel and function.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples; sparse ones are made dense.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their targets.

        Returns
        -------
        self : estimator
            The fitted estimator.
        """
        with self._unchanged_on_error():
            self._check_parameters()
            X, y = self._validate_both(X, y)
            return self._learn(X, y.reshape(len(y), -1), {"_single_": y.ndim == 1})

    def predict(self, X: ArrayLike) -> Array:
        """Return the predicted target of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            As the targets in training.
        """
        values = self._values(X)
        return values[:, 0] if self._single_ else values

    def _validate_both(self, X: ArrayLike, y: ArrayLike) -> tuple[Any, Array]:
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=np.float64,
            order="C",
            multi_output=True,
            y_numeric=True,
        )
        return X, np.asarray(y, dtype=np.float64)

    def _fitted_attributes(self, outputs: int) -> dict[str, Callable[[Any], bool]]:
        return {
            **super()._fitted_attributes(outputs),
            "_single_": lambda value: type(value) is bool and (not value or outputs == 1),
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

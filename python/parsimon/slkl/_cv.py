"""The sparsity of SLKL, chosen by cross-validation along its path."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from parsimon._checks import choice, is_integer
from parsimon._model import Array
from parsimon._parameters import WORDS
from parsimon._parameters import estimator as with_constructor
from parsimon._site import linked
from parsimon._sklearn import BaseEstimator, RegressorMixin
from parsimon._stream import checked_weight
from parsimon._threads import check_n_jobs
from parsimon._types import SparsityRule

from ._columns import given_columns
from ._estimators import SLKLRegressor
from ._path import default_sparsities, sparsity_path

if TYPE_CHECKING:
    from typing_extensions import Self

_RULES = ("best", "one_standard_error")


def _in_fold(model: SLKLRegressor, X: Any, train: Any) -> SLKLRegressor:
    """Return the model for a fold: indices of columns are those of all samples."""
    if isinstance(model.columns, str) or callable(model.columns):
        return model
    given = given_columns(model.columns, X)
    rows = np.arange(X.shape[0])[train]
    places = np.full(X.shape[0], -1)
    places[rows] = np.arange(len(rows))
    here = places[given]
    if not (here >= 0).any():
        raise ValueError(
            "A fold trains on none of the samples that columns names: give more columns, or "
            "fewer folds."
        )
    inside: SLKLRegressor = clone(model).set_params(columns=here[here >= 0])
    return inside


@linked
@with_constructor()
class SLKLRegressorCV(RegressorMixin, BaseEstimator):
    """:class:`SLKLRegressor` with the `sparsity` that cross-validation prefers.

    In each fold the path of sparsities is followed from the sparsest on, each solution from the one
    before, with columns and their products computed once.

    Parameters
    ----------
    estimator : SLKLRegressor, optional
        All settings but the sparsity; the default ones if there is none. It is not changed.
        Of `columns` that are indices, a fold has those that it trains on; a function of the
        samples is asked in each fold.
    sparsities : array-like, optional
        The values to choose among, above 0 and at most 1. By default, `n_sparsities` on a
        logarithmic scale from 1 down to `span`.
    n_sparsities : int, default=20
        How many values to choose, at least 1.
    span : float, default=1e-6
        The smallest value to choose, between 0 and 1.
    cv : int, cross-validation generator or iterable, default=5
        The folds; those of an integer are drawn at random.
    rule : {"best", "one_standard_error"}, default="best"
        "best" takes the value of least error, "one_standard_error" the sparsest one whose error is
        within one standard error of that: fewer points, hardly worse.
    n_jobs : int, optional
        Threads, as of the estimator; without it, those that it has.
    random_state : int, RandomState instance or None, default=None
        Source of the folds.
    verbose : int, default=0
        1 prints a line when the sparsity is chosen.

    Attributes
    ----------
    sparsity_ : float
        The value that was chosen. Where there is hardly any noise it is the smallest: a smaller
        `span` would show whether there are better ones.
    sparsities_ : ndarray of shape (n_sparsities,)
        All of them, falling.
    errors_ : ndarray of shape (n_sparsities, n_folds)
        Mean squared errors on the samples that each fold held out.
    best_estimator_ : SLKLRegressor
        The regressor with that sparsity, fitted to all samples; it can be saved.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> from parsimon import SLKLRegressor, SLKLRegressorCV
    >>> from parsimon.datasets import make_sinc
    >>> X, y = make_sinc(300, random_state=0)
    >>> model = SLKLRegressorCV(SLKLRegressor(gamma=0.5), n_sparsities=8, random_state=0).fit(X, y)
    >>> model.best_estimator_.sparsity == model.sparsity_
    True
    """

    estimator: SLKLRegressor | None = None
    _: KW_ONLY
    sparsities: Any = None
    n_sparsities: int = 20
    span: float = 1e-6
    cv: Any = 5
    rule: SparsityRule = "best"
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Choose the sparsity, then learn from all samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Their targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples, not negative: in learning, and in the errors.

        Returns
        -------
        self : SLKLRegressorCV
            The fitted estimator.
        """
        choice(*_RULES)("rule", self.rule)
        values = default_sparsities(self.n_sparsities, self.span)
        # Given as such, they are tried where no column has anything to do with y, too.
        values = values if self.sparsities is None else self.sparsities
        given = SLKLRegressor() if self.estimator is None else self.estimator
        if not isinstance(given, SLKLRegressor):
            raise TypeError(f"estimator must be an SLKLRegressor; got {given!r}.")
        check_n_jobs("n_jobs", self.n_jobs)
        WORDS["verbose"]("verbose", self.verbose)
        model = clone(given)
        if self.n_jobs is not None:
            model.set_params(n_jobs=self.n_jobs)
        checked, targets = model._validate_both(X, y)
        weight = checked_weight(sample_weight, checked)
        errors, judges = [], []
        for train, test in self._folds(checked, targets):
            judging = weight[test] if len(weight) else np.ones(1)
            # The smallest values are tried, and need not converge.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                path = sparsity_path(
                    model._some(checked, train, train),
                    targets[train],
                    sparsities=values,
                    X_validation=model._some(checked, test, train),
                    y_validation=targets[test],
                    estimator=_in_fold(model, checked, train),
                    sample_weight=weight[train] if len(weight) else None,
                    sample_weight_validation=judging if len(weight) and judging.any() else None,
                )
            errors.append(path.error)
            judges.append(float(judging.sum()))
        table = np.column_stack(errors)
        if not any(judges):
            raise ValueError("The samples that judge all have the weight 0.")
        best = self._choose(table, np.array(judges))
        chosen = clone(model).set_params(sparsity=float(path.sparsity[best]), nu=None)
        chosen.fit(X, y, sample_weight)
        self.sparsities_, self.errors_ = path.sparsity, table
        if self.verbose:
            place = f"the {best + 1}. of {len(table)}"
            print(f"SLKLRegressorCV: sparsity {path.sparsity[best]:.3g}, {place}")
        self.sparsity_, self.best_estimator_ = float(path.sparsity[best]), chosen
        self.n_features_in_ = chosen.n_features_in_
        if hasattr(chosen, "feature_names_in_"):
            self.feature_names_in_ = chosen.feature_names_in_
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Return the predicted target of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        predictions : ndarray of shape (n_samples,)
            Of `best_estimator_`.
        """
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict(X))

    def transform(self, X: ArrayLike) -> Array:
        """Return the features of the learned kernel; see :meth:`SLKLRegressor.transform`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        features : ndarray of shape (n_samples, model_order_)
            Of `best_estimator_`.
        """
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.transform(X))

    def save(self, path: Any, *, training: bool = True) -> None:
        """Write `best_estimator_` to a file, from which :func:`parsimon.load` reads it.

        Parameters
        ----------
        path : str or path-like
            Name of the file.
        training : bool, default=True
            As of :meth:`SLKLRegressor.save`.
        """
        check_is_fitted(self)
        self.best_estimator_.save(path, training=training)

    def _folds(self, X: Any, targets: Array) -> Any:
        if not is_integer(self.cv):
            return check_cv(self.cv).split(X, targets)
        random = check_random_state(self.random_state)
        return KFold(int(self.cv), shuffle=True, random_state=random).split(X)

    def _choose(self, errors: Array, judges: Array) -> int:
        """Return the place of the best value, or of the sparsest that is as good.

        judges: what the samples that each fold held out weigh.
        """
        errors, judges = errors[:, judges > 0], judges[judges > 0]
        means = np.average(errors, axis=1, weights=judges)
        best = int(means.argmin())
        if self.rule == "best" or errors.shape[1] < 2:
            return best
        deviation = errors[best].std(ddof=1) / np.sqrt(errors.shape[1])
        return int(np.flatnonzero(means <= means[best] + deviation)[0])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

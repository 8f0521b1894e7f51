"""Solutions of SLKL along a path of sparsities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array

from parsimon._checks import check_count, is_number, warn
from parsimon._model import Array
from parsimon._stream import checked_weight

from ._estimators import SLKLRegressor


@dataclass(frozen=True)
class SparsityPath:
    """What :func:`sparsity_path` found, in arrays of equal length, from the sparsest on.

    Attributes
    ----------
    sparsity : ndarray of shape (n_sparsities,)
        Values of ``sparsity``, falling: fractions of the largest useful price.
    objective : ndarray of shape (n_sparsities,)
        The minimum of the objective for each.
    error : ndarray of shape (n_sparsities,)
        Mean squared error on the validation data, or on the training data if there are none.
    model_order : ndarray of int of shape (n_sparsities,)
        Number m0 of columns in use.
    mu : ndarray of shape (n_sparsities, n_columns)
        Weights of the kernels.
    estimator : SLKLRegressor
        The regressor, fitted with the sparsity of least error.
    """

    sparsity: Array
    objective: Array
    error: Array
    model_order: NDArray[np.int64]
    mu: Array
    estimator: SLKLRegressor

    def plot(self, *, ax: Any = None) -> Any:
        """Draw the path; see :class:`parsimon.plotting.SparsityPathDisplay`."""
        from parsimon.plotting import SparsityPathDisplay

        return SparsityPathDisplay(self).plot(ax=ax)


def sparsity_path(
    X: ArrayLike,
    y: ArrayLike,
    *,
    sparsities: ArrayLike | None = None,
    n_sparsities: int = 30,
    span: float = 1e-6,
    X_validation: ArrayLike | None = None,
    y_validation: ArrayLike | None = None,
    estimator: SLKLRegressor | None = None,
    sample_weight: ArrayLike | None = None,
    sample_weight_validation: ArrayLike | None = None,
) -> SparsityPath:
    """Solve SLKL for a path of sparsities, each from the solution before.

    Columns and their products are computed once.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The samples.
    y : array-like of shape (n_samples,)
        Their targets.
    sparsities : array-like or float, optional
        The values, above 0 and at most 1; one number is a path of one. By default, `n_sparsities`
        on a logarithmic scale from 1, where no column is used at all, down to `span`.
    n_sparsities : int, default=30
        How many values to choose.
    span : float, default=1e-6
        The smallest value to choose.
    X_validation, y_validation : array-like, optional
        Data on which to measure the error; the training data by default.
    estimator : SLKLRegressor, optional
        All other settings; the default ones if there is none. It is not changed; its `nu` has no
        effect.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the samples, not negative.
    sample_weight_validation : array-like, optional
        The same of the data on which to measure the error.

    Returns
    -------
    path : SparsityPath
        Objective, error, model order and weights along the path, and the regressor of least error.

    Examples
    --------
    >>> from parsimon import SLKLRegressor, sparsity_path
    >>> from parsimon.datasets import make_sinc
    >>> X, y = make_sinc(600, random_state=0)
    >>> path = sparsity_path(
    ...     X[:400], y[:400], X_validation=X[400:], y_validation=y[400:],
    ...     estimator=SLKLRegressor(gamma=0.5),
    ... )
    >>> int(path.model_order[0]), path.estimator.sparsity in path.sparsity
    (0, True)
    """
    if estimator is not None and not isinstance(estimator, SLKLRegressor):
        raise TypeError(f"estimator must be an SLKLRegressor; got {estimator!r}.")
    if (X_validation is None) != (y_validation is None):
        raise ValueError("Give both X_validation and y_validation, or neither.")
    if X_validation is None and sample_weight_validation is not None:
        raise ValueError("sample_weight_validation belongs to X_validation: give both, or neither.")
    chosen = default_sparsities(n_sparsities, span)
    model = SLKLRegressor() if estimator is None else clone(estimator)
    weights = (sample_weight, sample_weight_validation)
    return _Path(model, X, y, X_validation, y_validation, weights).follow(sparsities, chosen)


def default_sparsities(count: int, span: float) -> Array:
    """Return so many values from 1 down to the span."""
    check_count("n_sparsities", count)
    if not is_number(span) or not 0 < span < 1:
        raise ValueError(f"span must be a number between 0 and 1; got {span!r}.")
    return np.asarray(np.logspace(0, np.log10(span), count))


class _Path:
    """The problem, whose columns are computed once, and the data to judge its solutions by."""

    def __init__(
        self,
        model: SLKLRegressor,
        X: ArrayLike,
        y: ArrayLike,
        X_validation: ArrayLike | None,
        y_validation: ArrayLike | None,
        weights: tuple[ArrayLike | None, ArrayLike | None] = (None, None),
    ) -> None:
        model._check_parameters()
        self._model = model
        self._X, targets = model._validate_both(X, y)
        if targets.ndim != 1:
            raise ValueError("A path is that of one target; y must have one dimension.")
        weight = checked_weight(weights[0], self._X)
        self._problem = model._problem(self._X, targets[:, None], weight)
        self._judged_X, self._judged_y, self._judged_weight = self._X, targets, weight
        if X_validation is not None:
            self._judged_X = model._validate_samples(X_validation)
            self._judged_y = check_array(y_validation, ensure_2d=False, dtype=np.float64)
            if self._judged_y.shape != (self._judged_X.shape[0],):
                raise ValueError(
                    f"y_validation must have one target for each of the "
                    f"{self._judged_X.shape[0]} samples; its shape is {self._judged_y.shape}."
                )
            self._judged_weight = checked_weight(weights[1], self._judged_X)

    def follow(self, sparsities: ArrayLike | None, chosen: Array) -> SparsityPath:
        values = self._sparsities(sparsities, chosen)
        start = np.zeros((len(self._problem.columns), 1))
        best, rows, late = None, [], 0
        for value in values:
            model = clone(self._model).set_params(sparsity=float(value), nu=None)
            model.n_features_in_ = self._X.shape[1]
            solutions = model._solve(self._problem, start)
            model._keep(self._problem, solutions, {"_single_": True})
            late += not solutions[0].converged
            start = model.mu_[:, None]
            error = self._error(model)
            if best is None or error < best[0]:
                best = (error, model)
            rows.append((model.objective_[-1], error, model.model_order_, model.mu_))
        if late:
            warn(
                f"The objective had not converged at {late} of {len(values)} sparsities; raise "
                f"max_iter or tol, or leave out the smallest.",
                ConvergenceWarning,
            )
        assert best is not None  # noqa: S101 - there is at least one value
        objectives, errors, orders, weights = map(np.array, zip(*rows, strict=True))
        return SparsityPath(values, objectives, errors, orders, weights, best[1])

    def _error(self, model: SLKLRegressor) -> float:
        errors, weight = (model.predict(self._judged_X) - self._judged_y) ** 2, self._judged_weight
        return float(np.average(errors, weights=weight if len(weight) else None))

    def _sparsities(self, given: ArrayLike | None, chosen: Array) -> Array:
        if given is not None:
            several: Any = given if np.ndim(given) else [given]
            values = np.asarray(
                check_array(several, ensure_2d=False, dtype=np.float64, input_name="sparsities")
            )
            if values.ndim != 1 or not ((values > 0) & (values <= 1)).all():
                raise ValueError(
                    f"sparsities must be numbers above 0 and at most 1, fractions of the largest "
                    f"useful one; got {given!r}."
                )
            return np.sort(values)[::-1]
        if not self._problem.core.correlations.any():
            raise ValueError(
                "No column has anything to do with y, so that no sparsity makes a difference: is y "
                "constant?"
            )
        return chosen

"""What the regressors that train the core's POLK model share: targets in, predictions out."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from parsimon import _core
from parsimon._base import Array, Training
from parsimon._checks import check_flag
from parsimon._model import FLOATS, is_finite

from ._common import POLK

Self = TypeVar("Self", bound="POLKRegression")

# Samples that a refit takes at a time: a fraction of a second with thousands of points.
_REFIT_ROWS = 256

# Name in the core, and the parameter of a loss that is given without one.
_LOSSES = {
    "squared": ("squared", None),
    "squared_error": ("squared", None),
    "huber": ("huber", 1.35),
    "epsilon_insensitive": ("epsilon_insensitive", 0.1),
    "pinball": ("pinball", 0.5),
    "quantile": ("pinball", 0.5),
}


class POLKRegression(RegressorMixin, POLK):
    """A regressor whose function is learned by steps like POLK's."""

    loss: str
    normalize_y: bool
    refit: bool

    def fit(self: Self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from all samples, forgetting what was learned before.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples, not negative.

        Returns
        -------
        self : estimator
            The fitted estimator.
        """
        with self._unchanged_on_error():
            self._check_parameters()
            X, y = self._validate_both(X, y, reset=True)
            fitted = self._normalisation(y)
            return self._fit(self._training(X, y, fitted, sample_weight), fitted)

    def partial_fit(
        self: Self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from one block of a stream, in the order given.

        The first block fixes the settings: hyper-parameters that are changed later have no
        effect before the next ``fit``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples, not negative.

        Returns
        -------
        self : estimator
            The estimator.
        """
        with self._unchanged_on_error():
            self._check_parameters_if_changed()
            quick = self._quick_training(X, y, sample_weight)
            if quick is not None:
                return self._partial_fit(quick, {})
            first = not hasattr(self, "_model")
            X, y = self._validate_both(X, y, reset=first)
            fitted = self._normalisation(y) if first else self._fitted_normalisation(y)
            return self._partial_fit(self._training(X, y, fitted, sample_weight), fitted)

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
        values: Array = self._evaluate(X) * self._scale_ + self.intercept_
        return values[:, 0] if self._single_ else values

    def _refits(self) -> bool:
        return self.refit and _regression_loss(self.loss) == "squared"

    def _finish_fit(self, model: Any, training: Training) -> None:
        if not self._refits():
            return
        refit = model.begin_refit()
        # In blocks, so that sparse samples stay sparse and Ctrl-C is heard.
        for X, targets, weight in training.blocks(_REFIT_ROWS, None, at_once=_REFIT_ROWS):
            model.add_to_refit(refit, X, targets, weight)
        model.finish_refit(refit)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("normalize_y", "refit"):
            check_flag(name, getattr(self, name))
        self._core_loss(1)

    def _core_loss(self, outputs: int) -> Any:  # noqa: ARG002
        return _core.parse_loss(_regression_loss(self.loss))

    def _n_outputs(self, training: Training) -> int:
        return int(training.targets.shape[1])

    def _output_scale(self) -> Any:
        return self._scale_

    def _validate_both(self, X: ArrayLike, y: ArrayLike, *, reset: bool) -> tuple[Any, Array]:
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=FLOATS,
            order="C",
            multi_output=True,
            y_numeric=True,
            reset=reset,
        )
        return X, np.asarray(y, dtype=np.float64)

    def _quick_training(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Training | None:
        """Return the block if it is like many before."""
        if not self._needs_no_validation(X, y, sample_weight):
            return None
        if y.dtype.type is not np.float64 or not is_finite(y):
            return None
        return self._training(X, y, self._fitted_normalisation(y), None)

    def _normalisation(self, y: Array) -> dict[str, Any]:
        rows = y.reshape(len(y), -1)
        intercept = np.zeros(rows.shape[1])
        scale = np.ones(rows.shape[1])
        if self.normalize_y:
            # Dividing by the largest value first keeps targets near the limits of a double finite.
            size = np.maximum(np.abs(rows).max(axis=0), np.finfo(float).tiny)
            intercept = (rows / size).mean(axis=0) * size
            spread = (rows / size - intercept / size).std(axis=0) * size
            scale = np.where(spread > 0, spread, scale)
        return {"intercept_": intercept, "_scale_": scale, "_single_": y.ndim == 1}

    def _fitted_normalisation(self, y: Array) -> dict[str, Any]:
        targets = y.reshape(len(y), -1).shape[1]
        if targets != len(self.intercept_):
            raise ValueError(
                f"y has {targets} targets a sample, but the model has learned "
                f"{len(self.intercept_)}."
            )
        return {"intercept_": self.intercept_, "_scale_": self._scale_, "_single_": self._single_}

    def _training(
        self, X: Any, y: Array, fitted: dict[str, Any], sample_weight: ArrayLike | None
    ) -> Training:
        targets = (y.reshape(len(y), -1) - fitted["intercept_"]) / fitted["_scale_"]
        return Training(X, targets, self._validate_sample_weight(sample_weight, X))

    def _fitted_attributes(self, outputs: int) -> dict[str, Callable[[Any], bool]]:
        def numbers(value: Any) -> bool:
            return value.shape == (outputs,) and bool(np.isfinite(value).all())

        return {
            "intercept_": numbers,
            "_scale_": lambda value: numbers(value) and bool((value > 0).all()),
            "_single_": lambda value: type(value) is bool and (not value or outputs == 1),
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _regression_loss(loss: Any) -> str:
    match = re.fullmatch(r"(\w+)(?:\((.+)\))?", loss) if isinstance(loss, str) else None
    if match is None or match[1] not in _LOSSES:
        raise ValueError(
            f"loss must be 'squared', 'huber', 'epsilon_insensitive' or 'pinball', each with "
            f"a parameter in parentheses if wanted; got {loss!r}."
        )
    name, default = _LOSSES[match[1]]
    if default is None and match[2] is None:
        return name
    return f"{name}({match[2] if match[2] is not None else default})"

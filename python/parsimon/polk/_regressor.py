"""The POLK regressor."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from parsimon import _core, schedules
from parsimon._base import Array, Training
from parsimon._checks import check_flag
from parsimon.kernels import Kernel

from ._common import POLK

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


class POLKRegressor(RegressorMixin, POLK):
    """Kernel regressor for streams, with a model that stays small (POLK).

    The same algorithm as :class:`POLKClassifier`, for one or several real targets.

    Parameters
    ----------
    loss : str, default="squared"
        "squared", "huber" (or "huber(c)" with the threshold c, 1.35 by default),
        "epsilon_insensitive" (or "epsilon_insensitive(e)", 0.1 by default), "pinball(q)" for the
        quantile q (0.5 by default).
    kernel : parsimon.kernels.Kernel or str, default="rbf"
        A kernel, or the name of one as in scikit-learn ("rbf", "laplacian", "poly", "linear"...).
    gamma : float, "auto", "scale" or "median", default="auto"
        Width of a kernel given by name. "auto" chooses among multiples of "scale" by the
        leave-one-out error of kernel ridge regression on a part of the data.
    learning_rate, parsimony, budget, max_model_order, schedule, regularization, batch_size, \
epochs, shuffle, average, random_state, verbose
        As in :class:`POLKClassifier`.
    normalize_y : bool, default=True
        Whether to subtract the mean of the targets and divide by their standard deviation, both
        taken from the first block seen. Learning rate, budget, the parameters of the loss and the
        trace refer to the normalised targets.
    refit : bool, default=True
        Whether ``fit`` ends with an exact least-squares fit of the weights on the dictionary found
        (squared loss only). ``partial_fit`` never does.

    Attributes
    ----------
    dictionary_, model_order_, n_features_in_, t_, trace_
        As in :class:`POLKClassifier`.
    weights_ : ndarray of shape (model_order_, n_targets)
        The weights, in units of y.
    expansion_ : KernelExpansion
        The learned function: ``predict(X) == expansion_(X) + intercept_``.
    intercept_ : ndarray of shape (n_targets,)
        The mean that was subtracted from the targets, or zeros.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from parsimon import POLKRegressor
    >>> X, y = make_friedman1(1000, random_state=0)
    >>> model = POLKRegressor(random_state=0).fit(X[:800], y[:800])
    >>> model.score(X[800:], y[800:]) > 0.95
    True
    """

    def __init__(
        self,
        loss: str = "squared",
        *,
        kernel: Kernel | str = "rbf",
        gamma: float | str = "auto",
        learning_rate: float | str = "auto",
        parsimony: float | str = "auto",
        budget: float | None = None,
        max_model_order: int | None = None,
        schedule: schedules.PowerLaw | str = "constant",
        regularization: float | str = "auto",
        batch_size: int = 32,
        epochs: int | str = "auto",
        shuffle: bool = True,
        average: bool = True,
        normalize_y: bool = True,
        refit: bool = True,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.learning_rate = learning_rate
        self.parsimony = parsimony
        self.budget = budget
        self.max_model_order = max_model_order
        self.schedule = schedule
        self.regularization = regularization
        self.batch_size = batch_size
        self.epochs = epochs
        self.shuffle = shuffle
        self.average = average
        self.normalize_y = normalize_y
        self.refit = refit
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> POLKRegressor:
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
        self : POLKRegressor
            The fitted estimator.
        """
        with self._unchanged_on_error():
            self._check_parameters()
            X, y = self._validate_both(X, y, reset=True)
            fitted = self._normalisation(y)
            return self._fit(self._training(X, y, fitted, sample_weight), fitted)

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> POLKRegressor:
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
        self : POLKRegressor
            The estimator.
        """
        with self._unchanged_on_error():
            self._check_parameters()
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
            dtype=np.float64,
            order="C",
            multi_output=True,
            y_numeric=True,
            reset=reset,
        )
        return X, np.asarray(y, dtype=np.float64)

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
            f"loss must be 'squared', 'huber', 'epsilon_insensitive' or 'pinball', the last three "
            f"with a parameter in parentheses if wanted; got {loss!r}."
        )
    name, default = _LOSSES[match[1]]
    if default is None:
        if match[2] is not None:
            raise ValueError(f"The squared loss has no parameter; got {loss!r}.")
        return name
    return f"{name}({match[2] if match[2] is not None else default})"

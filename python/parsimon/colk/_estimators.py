"""The mean loss and its dispersion: COLK for regression and classification."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any

from parsimon._classifier import Classifier
from parsimon._core import Archive
from parsimon._docs import OF_CLASSIFIERS, OF_REGRESSORS
from parsimon._drift import Detector
from parsimon._model import BUDGET
from parsimon._newton import finish_fit
from parsimon._parameters import estimator
from parsimon._regressor import Regressor
from parsimon._stream import Samples
from parsimon._types import (
    AnyKernel,
    Auto,
    ClassWeight,
    CompressionRule,
    Gamma,
    Precision,
    Risk,
    Schedule,
    Solver,
)
from parsimon.schedules import AdaptiveBudget

from ._risk import (
    CVAR,
    OBJECTIVE,
    RISK_ENTRIES,
    RISK_WORDS,
    VALUE_AT_RISK,
    Settings,
    check_risk,
    count_spread,
    finish_colk,
    new_colk,
    risk_trace,
    stop_early,
    stored_losses,
    weigher,
    weighs,
)


@estimator(OF_REGRESSORS, RISK_ENTRIES)
class COLKRegressor(Regressor):
    """Kernel regressor for streams that minimises the loss and its risk (COLK).

    The objective is E[l] + w D[l] with a dispersion D of the loss l, or the conditional value at
    risk. The inner expectation E[l] of the dispersion is tracked along the stream, on the second
    half of each mini-batch; steps are compressed as in :class:`POLKRegressor`.

    Risk controls the *tail* of the loss: its spread and upper quantiles go down, at the price of a
    larger mean. It does not make the regressor robust: samples with large losses count more, not
    less. Against outliers use ``POLKRegressor(loss="huber")``.

    Parameters
    ----------
    {risk, risk_weight, moment_order, level, clip}
    loss : str, default="squared"
        As in :class:`POLKRegressor`, where "squared" and "huber" are meant. The paper's squared
        loss, without 1/2, is "squared(2)".
    {kernel, gamma, learning_rate, tracking_rate, parsimony, budget, max_points,
    compression, solver, schedule, tracking_schedule, regularization, batch_size, epochs, shuffle,
    average, half_life, normalize_y}
    refit : bool, default=True
        As in :class:`POLKRegressor`; with ``solver="sgd"`` it has an effect without risk only.
    {dtype, n_jobs, random_state, verbose}

    Attributes
    ----------
    {dictionary_, weights_, model_order_, expansion_, intercept_, n_features_in_, kernel_,
    learning_rate_, regularization_, budget_, epochs_, t_, trace_, drift_, objective_,
    value_at_risk_, cvar_}

    References
    ----------
    A. S. Bedi, A. Koppel, K. Rajawat, P. Sanyal: Nonparametric compositional stochastic
    optimization for risk-sensitive kernel learning. IEEE Transactions on Signal Processing 69,
    2021.

    Notes
    -----
    A sample with weight 2 counts like two, in the gradient and in every expectation. In the tracked
    ones, weights are relative to their mean over the samples that are given together.

    Examples
    --------
    >>> from parsimon import COLKRegressor
    >>> from parsimon.datasets import make_regression_outliers
    >>> X, y = make_regression_outliers(2000, outliers="one-sided", random_state=0)
    >>> model = COLKRegressor(risk="cvar", level=0.9, random_state=0).fit(X, y)
    >>> model.predict(X[:3]).shape
    (3,)
    """

    risk: Risk | None = "semideviation"
    _: KW_ONLY
    risk_weight: float | Auto = "auto"
    moment_order: int = 4
    level: float = 0.9
    clip: float | None = 1.0
    loss: str = "squared"
    kernel: AnyKernel = "auto"
    gamma: Gamma = "auto"
    learning_rate: float | Auto = "auto"
    tracking_rate: float | Auto = "auto"
    parsimony: float | Auto = "auto"
    budget: float | AdaptiveBudget | None = None
    max_points: int | Auto | None = "auto"
    compression: CompressionRule = "remove"
    solver: Solver = "newton"
    schedule: Schedule = "constant"
    tracking_schedule: Schedule = "constant"
    regularization: float | Auto = "auto"
    batch_size: int = 32
    epochs: int | Auto = "auto"
    shuffle: bool = True
    average: bool = True
    half_life: float | Auto | Detector | None = "auto"
    normalize_y: bool = True
    refit: bool = True
    dtype: Precision = "float64"
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    budget_ = BUDGET

    _words = {**Regressor._words, **RISK_WORDS}
    # Without risk it is POLK, and so is its model.
    _algorithms = ("colk", "polk")
    _check_together = check_risk
    _new_model = new_colk
    _trace = staticmethod(risk_trace)
    _stop_early = stop_early
    _weigh = property(weigher)
    _count_spread = property(count_spread)
    objective_ = OBJECTIVE
    value_at_risk_ = VALUE_AT_RISK
    cvar_ = CVAR

    @property
    def _refits(self) -> bool:
        return (self.risk is None or self.solver == "newton") and super()._refits

    def _finish_fit(self, model: Any, samples: Samples) -> None:
        if self._refits and weighs(self):
            finish_colk(self, model, samples)
        else:
            super()._finish_fit(model, samples)

    def _stored(self, outputs: int) -> dict[str, Callable[[Any], bool]]:
        return super()._stored(outputs) | stored_losses(self, outputs)

    def _check_stored(self, fitted: dict[str, Any], archive: Archive) -> None:
        super()._check_stored(fitted, archive)
        fitted["_risk_"] = Settings.of(self)


@estimator(OF_CLASSIFIERS, RISK_ENTRIES)
class COLKClassifier(Classifier):
    """Kernel logistic regression for streams that minimises the loss and its risk (COLK).

    The risks of :class:`COLKRegressor` on the logistic loss: samples that are predicted badly count
    more, so that the worst losses go down, at the price of a larger mean. With ``risk=None`` it is
    ``POLKClassifier("logistic")``.

    Parameters
    ----------
    {risk, risk_weight, moment_order, level, clip, kernel, gamma, class_weight, learning_rate,
    tracking_rate, parsimony, budget, max_points, compression, solver, schedule, tracking_schedule,
    regularization, batch_size, epochs, shuffle, average, half_life, dtype, n_jobs, random_state,
    verbose}

    Attributes
    ----------
    {dictionary_, weights_, model_order_, expansion_, classes_, n_features_in_, kernel_,
    learning_rate_, regularization_, budget_, epochs_, t_, trace_, drift_, objective_,
    value_at_risk_, cvar_}

    References
    ----------
    A. S. Bedi, A. Koppel, K. Rajawat, P. Sanyal: Nonparametric compositional stochastic
    optimization for risk-sensitive kernel learning. IEEE Transactions on Signal Processing 69,
    2021.

    Examples
    --------
    >>> from parsimon import COLKClassifier
    >>> from parsimon.datasets import make_multidist
    >>> X, y = make_multidist(2000, random_state=0)
    >>> model = COLKClassifier(epochs=2, random_state=0).fit(X[:1500], y[:1500])
    >>> model.score(X[1500:], y[1500:]) > 0.8
    True
    """

    risk: Risk | None = "semideviation"
    _: KW_ONLY
    risk_weight: float | Auto = "auto"
    moment_order: int = 4
    level: float = 0.9
    clip: float | None = 1.0
    kernel: AnyKernel = "auto"
    gamma: Gamma = "scale"
    class_weight: ClassWeight = None
    learning_rate: float | Auto = "auto"
    tracking_rate: float | Auto = "auto"
    parsimony: float | Auto = "auto"
    budget: float | AdaptiveBudget | None = None
    max_points: int | Auto | None = "auto"
    compression: CompressionRule = "remove"
    solver: Solver = "newton"
    schedule: Schedule = "constant"
    tracking_schedule: Schedule = "constant"
    regularization: float | Auto = "auto"
    batch_size: int = 32
    epochs: int | Auto = "auto"
    shuffle: bool = True
    average: bool = True
    half_life: float | Auto | Detector | None = "auto"
    dtype: Precision = "float64"
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    budget_ = BUDGET

    _words = {**Classifier._words, **RISK_WORDS}
    _algorithms = ("colk", "polk")
    _check_together = check_risk
    _new_model = new_colk
    _trace = staticmethod(risk_trace)
    _stop_early = stop_early
    _weigh = property(weigher)
    _count_spread = property(count_spread)
    objective_ = OBJECTIVE
    value_at_risk_ = VALUE_AT_RISK
    cvar_ = CVAR

    @property
    def _refits(self) -> bool:  # type: ignore[override]
        return self.solver == "newton"

    def _finish_fit(self, model: Any, samples: Samples) -> None:
        if weighs(self):
            finish_colk(self, model, samples)
        elif self._refits:
            finish_fit(self, model, samples)

    def _stored(self, outputs: int) -> dict[str, Callable[[Any], bool]]:
        return super()._stored(outputs) | stored_losses(self, outputs)

    def _check_stored(self, fitted: dict[str, Any], archive: Archive) -> None:
        super()._check_stored(fitted, archive)
        fitted["_risk_"] = Settings.of(self)

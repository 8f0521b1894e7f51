"""How bad the worst losses are: measures of risk for losses, and scorers for model selection."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import _check_sample_weight, check_array, column_or_1d

from ._checks import is_integer, is_number
from .colk._measures import measure as _measure
from .colk._measures import value_at_risk as _value_at_risk

__all__ = [
    "chi_square_robust",
    "cvar",
    "entropic",
    "kl_robust",
    "moments",
    "risk_scorer",
    "root_semideviation",
    "semideviation",
    "semivariance",
    "value_at_risk",
]

Array = NDArray[np.float64]

_MEASURES = (
    "cvar",
    "semideviation",
    "value_at_risk",
    "root_semideviation",
    "entropic",
    "kl_robust",
    "chi_square_robust",
    "semivariance",
    "moments",
)


def _checked(losses: ArrayLike, sample_weight: ArrayLike | None) -> tuple[Array, Array]:
    values = check_array(losses, ensure_2d=False, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"losses must be one number per sample; got shape {values.shape}.")
    weight = _check_sample_weight(
        sample_weight, values[:, None], dtype=np.float64, ensure_non_negative=True
    )
    total = float(weight.sum())
    if not total > 0:
        raise ValueError("sample_weight must have a positive sum.")
    return values, weight / total


def _check_level(level: Any) -> None:
    if not (is_number(level) and 0 < level < 1):
        raise ValueError(f"level must be between 0 and 1; got {level!r}.")


def value_at_risk(
    losses: ArrayLike, *, level: float = 0.9, sample_weight: ArrayLike | None = None
) -> float:
    """Return the smallest loss that a share `level` of the losses does not exceed.

    Parameters
    ----------
    losses : array-like of shape (n_samples,)
        One loss per sample, of any kind.
    level : float, default=0.9
        Between 0 and 1.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the samples, not negative.

    Returns
    -------
    float
        One of the losses.

    Examples
    --------
    >>> from parsimon.metrics import value_at_risk
    >>> value_at_risk(range(1, 11), level=0.8)
    8.0
    """
    _check_level(level)
    return _value_at_risk(*_checked(losses, sample_weight), level)


def cvar(losses: ArrayLike, *, level: float = 0.9, sample_weight: ArrayLike | None = None) -> float:
    """Return the conditional value at risk: the mean of the worst losses, a share 1 - level of all.

    Parameters
    ----------
    losses : array-like of shape (n_samples,)
        One loss per sample, of any kind.
    level : float, default=0.9
        Between 0 and 1: 0.9 means the worst tenth.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the samples, not negative.

    Returns
    -------
    float
        At least the value at risk, and at least the mean.

    Examples
    --------
    >>> from parsimon.metrics import cvar
    >>> round(cvar(range(1, 11), level=0.8), 12)
    9.5
    """
    _check_level(level)
    values, shares = _checked(losses, sample_weight)
    at_risk = _value_at_risk(values, shares, level)
    return at_risk + float(shares @ np.maximum(values - at_risk, 0)) / (1 - level)


def semideviation(
    losses: ArrayLike, *, weight: float = 0.5, sample_weight: ArrayLike | None = None
) -> float:
    """Return the mean of the losses plus `weight` times that of what lies above it.

    Parameters
    ----------
    losses : array-like of shape (n_samples,)
        One loss per sample, of any kind.
    weight : float, default=0.5
        As `risk_weight` of :class:`parsimon.COLKRegressor`.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the samples, not negative.

    Returns
    -------
    float
        E l + weight E (l - E l)_+.

    Examples
    --------
    >>> from parsimon.metrics import semideviation
    >>> semideviation([0.0, 4.0], weight=0.5)
    2.5
    """
    _check_not_negative("weight", weight)
    values, shares = _checked(losses, sample_weight)
    mean = float(shares @ values)
    return mean + weight * float(shares @ np.maximum(values - mean, 0))


def root_semideviation(
    losses: ArrayLike, *, weight: float = 0.5, sample_weight: ArrayLike | None = None
) -> float:
    """Return the mean of the losses plus `weight` times the root mean square of what lies above it.

    Parameters
    ----------
    losses : array-like of shape (n_samples,)
        One loss per sample, of any kind.
    weight : float, default=0.5
        As `risk_weight` of :class:`parsimon.COLKRegressor`.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the samples, not negative.

    Returns
    -------
    float
        E l + weight sqrt(E (l - E l)_+^2).

    Examples
    --------
    >>> from parsimon.metrics import root_semideviation
    >>> round(root_semideviation([0.0, 4.0], weight=0.5), 4)
    2.7071
    """
    _check_not_negative("weight", weight)
    return _of_weight("root_semideviation", losses, weight, sample_weight)


def entropic(
    losses: ArrayLike, *, weight: float = 0.5, sample_weight: ArrayLike | None = None
) -> float:
    """Return the entropic risk of the losses: log(E exp(weight l)) / weight.

    Parameters
    ----------
    losses : array-like of shape (n_samples,)
        One loss per sample, of any kind.
    weight : float, default=0.5
        Per unit of the losses.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the samples, not negative.

    Returns
    -------
    float
        At least the mean, which it is for a weight of 0.

    Examples
    --------
    >>> from parsimon.metrics import entropic
    >>> round(entropic([0.0, 4.0], weight=0.5), 4)
    2.8676
    """
    _check_not_negative("weight", weight)
    return _of_weight("entropic", losses, weight, sample_weight)


def kl_robust(
    losses: ArrayLike, *, radius: float = 0.2, sample_weight: ArrayLike | None = None
) -> float:
    """Return the largest mean of the losses over laws within a relative entropy of theirs.

    Parameters
    ----------
    losses : array-like of shape (n_samples,)
        One loss per sample, of any kind.
    radius : float, default=0.2
        The largest relative entropy.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the samples, not negative.

    Returns
    -------
    float
        At least the mean.

    Examples
    --------
    >>> from parsimon.metrics import kl_robust
    >>> round(kl_robust([0.0, 4.0], radius=0.2), 3)
    3.221
    """
    _check_not_negative("radius", radius)
    return _of_weight("kl", losses, radius, sample_weight)


def chi_square_robust(
    losses: ArrayLike, *, radius: float = 0.5, sample_weight: ArrayLike | None = None
) -> float:
    """Return the largest mean of the losses over laws within a chi-square divergence of theirs.

    Parameters
    ----------
    losses : array-like of shape (n_samples,)
        One loss per sample, of any kind.
    radius : float, default=0.5
        The largest divergence.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the samples, not negative.

    Returns
    -------
    float
        The mean plus sqrt(radius) standard deviations, where no probability would be negative.

    Examples
    --------
    >>> from parsimon.metrics import chi_square_robust
    >>> round(chi_square_robust([0.0, 4.0], radius=0.25), 4)
    3.0
    """
    _check_not_negative("radius", radius)
    return _of_weight("chi_square", losses, radius, sample_weight)


def semivariance(
    losses: ArrayLike,
    *,
    weight: float = 0.1,
    clip: float | None = 1.0,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the mean of the losses plus `weight` times the square of what lies above it, smoothed.

    Parameters
    ----------
    losses : array-like of shape (n_samples,)
        One loss per sample, not negative.
    weight : float, default=0.1
        As `risk_weight` of :class:`parsimon.COLKRegressor`.
    clip : float or None, default=1.0
        As there, with ``solver="newton"``: the square goes on as a line from where weight times its
        slope is so large.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the samples, not negative.

    Returns
    -------
    float
        m (1 + weight E s(l / m - 1)^2) with m the mean, s the positive part with its kink rounded
        off: in the unit of the losses.

    Examples
    --------
    >>> from parsimon.metrics import semivariance
    >>> round(semivariance([0.0, 4.0], weight=0.5), 4)
    2.5
    """
    _check_not_negative("weight", weight)
    return _relative("semivariance", losses, weight, 0, clip, sample_weight)


def moments(
    losses: ArrayLike,
    *,
    weight: float = 0.1,
    order: int = 4,
    clip: float | None = 1.0,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the mean of the losses plus `weight` times their central moments from the second on.

    Parameters
    ----------
    losses : array-like of shape (n_samples,)
        One loss per sample, not negative.
    weight : float, default=0.1
        As `risk_weight` of :class:`parsimon.COLKRegressor`.
    order : int, default=4
        The highest moment, from 2 to 64.
    clip : float or None, default=1.0
        As there, with ``solver="newton"``: the powers go on as a line from where weight times their
        slope is so large.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the samples, not negative.

    Returns
    -------
    float
        m (1 + weight sum_p E (l / m - 1)^p) with m the mean: in the unit of the losses.

    Examples
    --------
    >>> from parsimon.metrics import moments
    >>> round(moments([1.0, 3.0], order=2), 4)
    2.05
    """
    _check_not_negative("weight", weight)
    if not (is_integer(order) and 2 <= order <= 64):
        raise ValueError(f"order must be an integer from 2 to 64; got {order!r}.")
    return _relative("moments", losses, weight, int(order), clip, sample_weight)


def _relative(
    risk: str,
    losses: ArrayLike,
    weight: float,
    order: int,
    clip: float | None,
    sample_weight: ArrayLike | None,
) -> float:
    if not (clip is None or (is_number(clip) and clip > 0)):
        raise ValueError(f"clip must be a positive number or None; got {clip!r}.")
    values, shares = _checked(losses, sample_weight)
    if values.min() < 0:
        raise ValueError(f"{risk} is in units of the mean loss: losses must not be negative.")
    return float(_measure(risk, float(weight), order, clip)(values, shares)[0])


def _check_not_negative(name: str, value: Any) -> None:
    if not (is_number(value) and value >= 0):
        raise ValueError(f"{name} must be a number that is not negative; got {value!r}.")


def _of_weight(
    risk: str, losses: ArrayLike, weight: float, sample_weight: ArrayLike | None
) -> float:
    return float(_measure(risk, float(weight), 0.0, None)(*_checked(losses, sample_weight))[0])


def _losses(estimator: Any, X: Any, y: Any) -> Array:
    y = np.asarray(y)
    if not is_classifier(estimator):
        predictions = np.asarray(estimator.predict(X))
        # A column of targets is the same as targets.
        predictions, y = (each.reshape(len(each), -1) for each in (predictions, y))
        if predictions.shape != y.shape:
            raise ValueError(
                f"y has the shape {y.shape}, but {type(estimator).__name__} predicts "
                f"{predictions.shape}."
            )
        return np.asarray(((predictions - y) ** 2).sum(axis=1) / 2)
    if not hasattr(estimator, "predict_log_proba"):
        raise ValueError(
            f"{type(estimator).__name__} has no predict_log_proba: the risk of a classifier is "
            f"that of its logistic loss."
        )
    y = column_or_1d(y)
    places = np.searchsorted(estimator.classes_, y)
    known = np.minimum(places, len(estimator.classes_) - 1)
    if not np.array_equal(estimator.classes_[known], y):
        raise ValueError("y has labels that the classifier has not learned.")
    return np.asarray(-estimator.predict_log_proba(X)[np.arange(len(y)), known])


class _RiskScorer:
    """The negative risk of an estimator's losses: an object, which other processes can be sent."""

    def __init__(self, measure: str, given: dict[str, Any]) -> None:
        self._measure, self._given = measure, given

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        function: Any = globals()[self._measure]
        losses = _losses(estimator, X, y)
        return -float(function(losses, sample_weight=sample_weight, **self._given))

    def __repr__(self) -> str:
        given = "".join(f", {name}={value!r}" for name, value in self._given.items())
        return f"risk_scorer({self._measure!r}{given})"


def risk_scorer(measure: str = "cvar", **given: Any) -> _RiskScorer:
    """Return a scorer for scikit-learn's model selection: the negative risk of the losses.

    Of regressors it is that of half the squared error, of classifiers that of the logistic loss.

    Parameters
    ----------
    measure : str, default="cvar"
        Which risk: the name of one of the functions here.
    **given
        What the function of this name takes: `level`, `weight`, `radius`, `order` or `clip`.

    Returns
    -------
    callable
        ``scorer(estimator, X, y, sample_weight=None)``; larger is better. It can be pickled.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from parsimon import COLKRegressor
    >>> from parsimon.datasets import make_regression_outliers
    >>> from parsimon.metrics import risk_scorer
    >>> X, y = make_regression_outliers(600, outliers="one-sided", random_state=0)
    >>> model, risks = COLKRegressor(random_state=0), {"risk": [None, "cvar"]}
    >>> GridSearchCV(model, risks, scoring=risk_scorer("cvar"), cv=3).fit(X, y).best_params_
    {'risk': 'cvar'}
    """
    if measure not in _MEASURES:
        raise ValueError(
            f"measure must be one of {', '.join(map(repr, _MEASURES))}; got {measure!r}."
        )
    function: Any = globals()[measure]
    function([0.0], **given)  # refuses what it cannot be given
    return _RiskScorer(measure, given)

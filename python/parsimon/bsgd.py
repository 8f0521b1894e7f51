"""BSGD: budgeted stochastic gradient descent, with a hard cap on the points of a model."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

from sklearn.utils import check_random_state

from ._checks import choice, count, number
from ._classifier import Classifier
from ._core import Compression
from ._docs import OF_CLASSIFIERS, OF_REGRESSORS
from ._drift import Detector
from ._newton import finish_fit
from ._parameters import estimator
from ._refine import refine, refine_on
from ._regressor import NOISE, Regressor
from ._stream import Samples
from ._types import (
    AnyKernel,
    Auto,
    ClassifierLoss,
    ClassWeight,
    Gamma,
    Maintenance,
    Refine,
    Schedule,
    Solver,
)
from .kernels import Kernel
from .polk import new_polk

__all__ = ["MAINTENANCE", "BSGDClassifier", "BSGDRegressor"]

MAINTENANCE = ("remove", "project", "merge", "nonparametric")

_WORDS = {
    "max_points": count(),
    "maintenance": choice(*MAINTENANCE),
    "maintenance_rate": number(),
}

_ENTRIES = """
max_points : int, default={default}
    The largest number of points, at least 1 (2 with "merge"); with "nonparametric", the first such
    number.
maintenance : {"merge", "project", "remove", "nonparametric"}, default={default}
    What happens when there is one point too many. "merge": the one with the smallest weight and
    its best partner become one point between them (Gaussian kernels only). "project": the point
    that the others explain best goes, and they take over its weight. "remove": the one with the
    smallest weight goes. "nonparametric" (NPBSGD): so it does, but ever more rarely; otherwise
    the largest number grows by one.
maintenance_rate : float, default={default}
    For "nonparametric", not negative: after t samples, a point is removed with probability
    min(1, maintenance_rate / t).
trace_ : dict of ndarray
    As of :class:`POLKClassifier`; "compression_error" bounds how far each maintenance has moved
    the function, in Hilbert norm.
"""


def _check_maintenance(estimator: Any) -> None:
    if estimator.maintenance == "merge" and estimator.max_points == 1:
        raise ValueError("max_points must be at least 2 with maintenance='merge'; got 1.")


def _new_model(estimator: Any, samples: Samples, *, streaming: bool) -> tuple[Any, Kernel, int]:
    rule, seed = estimator.maintenance, 0
    if rule == "nonparametric":
        seed = int(check_random_state(estimator.random_state).randint(2**31 - 1))
    compression = Compression.without_budget(
        rule, estimator.max_points, float(estimator.maintenance_rate), seed
    )
    # Points are merged by the named kernel alone.
    return new_polk(
        estimator, samples, streaming=streaming, compression=compression, intercept=False
    )


def _refits(estimator: Any) -> bool:
    return bool(estimator.solver == "newton")


def _finish_fit(estimator: Any, model: Any, samples: Samples) -> None:
    if estimator._refits:
        finish_fit(estimator, model, samples)
    if estimator.refine:
        refine(estimator, model, samples)


@estimator(OF_CLASSIFIERS, _ENTRIES)
class BSGDClassifier(Classifier):
    """Kernel classifier for streams with a hard cap on the points of its model (BSGD).

    Stochastic gradient descent as in :class:`POLKClassifier`. But where that bounds the error of
    its compression, and the model grows as far as it must, here the number of points is bounded,
    at whatever error, after every mini-batch.

    Parameters
    ----------
    {loss, kernel, gamma, class_weight, max_points, maintenance, maintenance_rate, solver,
    learning_rate, schedule, regularization, batch_size, epochs, shuffle, average, half_life,
    refine, n_jobs, random_state, verbose}

    Attributes
    ----------
    {dictionary_, weights_, model_order_, expansion_, classes_, n_features_in_, kernel_,
    learning_rate_, regularization_, epochs_, t_, trace_, drift_}

    References
    ----------
    Z. Wang, K. Crammer, S. Vucetic: Breaking the curse of kernelization: budgeted stochastic
    gradient descent for large-scale SVM training. Journal of Machine Learning Research 13, 2012.

    T. Le, V. Nguyen, T. D. Nguyen, D. Phung: Nonparametric budgeted stochastic gradient descent.
    AISTATS 2016.

    Examples
    --------
    >>> from parsimon import BSGDClassifier
    >>> from parsimon.datasets import make_multidist
    >>> X, y = make_multidist(2000, random_state=0)
    >>> model = BSGDClassifier(max_points=30, epochs=2, random_state=0).fit(X[:1500], y[:1500])
    >>> model.model_order_
    30
    >>> model.score(X[1500:], y[1500:]) > 0.8
    True
    """

    loss: ClassifierLoss = "hinge"
    _: KW_ONLY
    kernel: AnyKernel = "auto"
    gamma: Gamma = "scale"
    class_weight: ClassWeight = None
    max_points: int = 100
    maintenance: Maintenance = "merge"
    maintenance_rate: float = 1000.0
    solver: Solver = "newton"
    learning_rate: float | Auto = "auto"
    schedule: Schedule = "constant"
    regularization: float | Auto = "auto"
    batch_size: int = 1
    epochs: int | Auto = "auto"
    shuffle: bool = True
    average: bool = True
    half_life: float | Auto | Detector | None = "auto"
    refine: Refine = False
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    _words = {**Classifier._words, **_WORDS}
    _algorithms = ("polk",)
    _rules = MAINTENANCE
    _check_together = _check_maintenance
    _new_model = _new_model
    _refits = property(_refits)
    _finish_fit = _finish_fit
    refine_on = refine_on


@estimator(OF_REGRESSORS, _ENTRIES)
class BSGDRegressor(Regressor):
    """Kernel regressor for streams with a hard cap on the points of its model (BSGD).

    Stochastic gradient descent as in :class:`POLKRegressor`. But where that bounds the error of its
    compression, and the model grows as far as it must, here the number of points is bounded, at
    whatever error, after every mini-batch.

    Parameters
    ----------
    {loss, kernel, gamma, max_points, maintenance, maintenance_rate, solver, learning_rate,
    schedule, regularization, batch_size, epochs, shuffle, average, half_life, normalize_y, refine,
    n_jobs, random_state, verbose}

    Attributes
    ----------
    {dictionary_, weights_, model_order_, expansion_, intercept_}
    noise_ : float or ndarray of shape (n_targets,)
        As of :class:`POLKRegressor`.
    {n_features_in_, kernel_, learning_rate_, regularization_, epochs_, t_, trace_, drift_}

    References
    ----------
    As of :class:`BSGDClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from parsimon import BSGDRegressor
    >>> X, y = make_friedman1(1000, random_state=0)
    >>> model = BSGDRegressor(max_points=100, random_state=0).fit(X[:800], y[:800])
    >>> model.score(X[800:], y[800:]) > 0.8
    True
    """

    loss: str = "squared"
    _: KW_ONLY
    kernel: AnyKernel = "auto"
    gamma: Gamma = "auto"
    max_points: int = 100
    maintenance: Maintenance = "merge"
    maintenance_rate: float = 1000.0
    solver: Solver = "newton"
    learning_rate: float | Auto = "auto"
    schedule: Schedule = "constant"
    regularization: float | Auto = "auto"
    batch_size: int = 1
    epochs: int | Auto = "auto"
    shuffle: bool = True
    average: bool = True
    half_life: float | Auto | Detector | None = "auto"
    normalize_y: bool = True
    refine: Refine = False
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    noise_ = NOISE

    _words = {**Regressor._words, **_WORDS}
    _algorithms = ("polk",)
    _rules = MAINTENANCE
    _check_together = _check_maintenance
    _new_model = _new_model
    _refits = property(_refits)
    _finish_fit = _finish_fit
    refine_on = refine_on

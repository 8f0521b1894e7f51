"""POLK: parsimonious online learning with kernels, for classification and regression."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from . import _core
from ._affine import MANY_FEATURES
from ._auto import Choices
from ._checks import count, number
from ._classifier import Classifier
from ._core import BudgetSchedule, Compression
from ._docs import OF_CLASSIFIERS, OF_REGRESSORS
from ._drift import Detector
from ._model import BUDGET
from ._newton import (
    FEWEST_POINTS,
    SAMPLES_PER_POINT,
    finish_fit,
    growing_rate,
    has_growing_cap,
    points_of_fit,
)
from ._parameters import estimator
from ._primal import is_primal, new_primal
from ._refine import refine, refine_on
from ._regressor import NOISE, Regressor
from ._settings import core_budget, core_step
from ._stream import Samples
from ._types import (
    AnyKernel,
    Auto,
    ClassifierLoss,
    ClassWeight,
    CompressionRule,
    Gamma,
    Precision,
    Refine,
    Schedule,
    Solver,
)
from ._units import check_gradient
from .kernels import Kernel
from .schedules import AdaptiveBudget, resolve

__all__ = ["POLKClassifier", "POLKRegressor", "compress", "new_polk"]


def new_polk(
    estimator: Any,
    samples: Samples,
    *,
    streaming: bool,
    compression: Compression | None = None,
    intercept: bool = True,
) -> tuple[Any, Kernel, int]:
    """Return an untrained model of POLK, its kernel, and the epochs of fit."""
    outputs = estimator._n_outputs(samples)
    loss = estimator._core_loss(outputs)
    chosen = Choices(estimator, samples, loss, streaming=streaming, intercept=intercept)
    if getattr(estimator, "refine", False):
        check_gradient(chosen.kernel)
    if samples.X.shape[1] > MANY_FEATURES and is_primal(estimator, chosen.kernel, outputs):
        primal, epochs = new_primal(
            estimator, chosen, samples, loss, outputs=outputs, streaming=streaming
        )
        return primal, chosen.kernel, epochs
    by_budget = compression is None
    if compression is None:
        size = None if streaming else len(samples)
        compression = _compression(estimator, polk_budget(estimator, chosen), size)
    model = _core.Polk(
        chosen.kernel.core,
        loss,
        step=core_step(chosen.rate, estimator.schedule),
        compression=compression,
        regularization=chosen.regularization,
        average=estimator.average and chosen.newton is None,
        newton=chosen.newton,
        features=samples.X.shape[1],
        outputs=outputs,
    )
    if by_budget and not streaming and chosen.newton is not None and estimator._refits:
        # The weights are solved when all points are there.
        model.scout()
    return model, chosen.kernel, chosen.epochs


def _compression(estimator: Any, budget: BudgetSchedule, size: int | None) -> Compression:
    """Return how a model is kept small, of so many samples or of a stream."""
    cap = estimator.max_points
    merges = getattr(estimator, "compression", "remove") == "merge"  # others have no choice
    if has_growing_cap(estimator):
        if size is None:
            return Compression.growing(
                budget, FEWEST_POINTS, growing_rate(estimator), merges=merges
            )
        cap = points_of_fit(estimator, size)
    return Compression(budget, None if isinstance(cap, str) else cap, merges=merges)


def polk_budget(estimator: Any, chosen: Choices) -> BudgetSchedule:
    """Return the compression budget of POLK's theory, or the one that was given."""
    if not isinstance(estimator.parsimony, str):
        by_parsimony = BudgetSchedule.parsimony(float(estimator.parsimony))
    elif resolve(estimator.schedule) is not None:
        # From the budget of a constant rate downwards: eta^2 itself swallows steps above 1 whole.
        by_parsimony = BudgetSchedule.step_squared(float(np.sqrt(chosen.noise) / chosen.rate))
    else:
        by_parsimony = BudgetSchedule.parsimony(float(np.sqrt(chosen.noise / chosen.rate)))
    return core_budget(estimator.budget, by_parsimony, chosen.rate)


def compress(self: Any, *, budget: float = 0.0, max_points: int | None = None) -> float:
    """Drop points of the fitted model, and solve for the weights of those that are left.

    Points go as long as the learned function moves by no more than `budget` in Hilbert norm,
    or until there are `max_points`. The weights are then solved again from what all samples
    have said, which is remembered without the samples. Only with ``solver="newton"``.

    Parameters
    ----------
    budget : float, default=0.0
        Distance in Hilbert norm.
    max_points : int, optional
        The largest number of points, whatever that takes.

    Returns
    -------
    float
        How far the function was moved, in Hilbert norm, before the weights were solved again.
    """
    number()("budget", budget)
    count(optional=True)("max_points", max_points)
    if self.solver != "newton":
        raise ValueError(
            f"compress solves for the weights again, which solver={self.solver!r} cannot: use "
            f"parsimon.komp(model.expansion_), or solver='newton'."
        )
    model = self._fitted_model()
    if self.__dict__.get("_predicts_only_"):
        raise ValueError(
            "A model that was saved with training=False cannot be compressed: it has no statistics "
            "of the samples to solve for the weights again from. Use "
            "parsimon.komp(model.expansion_), or save it with training=True."
        )
    moved = float(model.compress(float(budget), max_points))
    # A stream goes on from here: it must not begin anew from its first samples.
    self._adopt(model, {"_first_": ()})
    return moved


def stop_early(self: Any, model: Any) -> None:  # noqa: ARG001
    """Predict with the weights that were stepped, and solve them from now on."""
    model.stop_scouting()


@estimator(OF_CLASSIFIERS)
class POLKClassifier(Classifier):
    """Kernel classifier for streams, with a model that stays small (POLK).

    After each mini-batch, a step of functional stochastic gradient descent is compressed by kernel
    orthogonal matching pursuit: points are dropped as long as the function moves by no more than a
    budget in Hilbert norm. All classes share one dictionary of points.

    Parameters
    ----------
    {loss, kernel, gamma, class_weight, learning_rate, parsimony, budget, max_points, compression,
    solver, half_life, schedule, regularization, batch_size, epochs, shuffle, average, refit,
    refine, dtype, n_jobs, random_state, verbose}

    Attributes
    ----------
    {dictionary_, weights_, model_order_, expansion_, classes_, n_features_in_, kernel_,
    learning_rate_, regularization_, budget_, epochs_, t_, trace_, drift_}

    References
    ----------
    A. Koppel, G. Warnell, E. Stump, A. Ribeiro: Parsimonious online learning with kernels via
    sparse projections in function space. Journal of Machine Learning Research 20, 2019.

    Examples
    --------
    >>> from parsimon import POLKClassifier
    >>> from parsimon.datasets import make_multidist
    >>> X, y = make_multidist(2000, random_state=0)
    >>> model = POLKClassifier(random_state=0)
    >>> for start in range(0, 1500, 100):
    ...     model = model.partial_fit(X[start:start + 100], y[start:start + 100])
    >>> model.model_order_ < 200
    True
    >>> model.score(X[1500:], y[1500:]) > 0.8
    True
    """

    loss: ClassifierLoss = "hinge"
    _: KW_ONLY
    kernel: AnyKernel = "auto"
    gamma: Gamma = "scale"
    class_weight: ClassWeight = None
    learning_rate: float | Auto = "auto"
    parsimony: float | Auto = "auto"
    budget: float | AdaptiveBudget | None = None
    max_points: int | Auto | None = "auto"
    compression: CompressionRule = "remove"
    solver: Solver = "newton"
    half_life: float | Auto | Detector | None = "auto"
    schedule: Schedule = "constant"
    regularization: float | Auto = "auto"
    batch_size: int = 32
    epochs: int | Auto = "auto"
    shuffle: bool = True
    average: bool = True
    refit: bool = True
    refine: Refine = False
    dtype: Precision = "float64"
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    budget_ = BUDGET

    compress = compress
    refine_on = refine_on
    _stop_early = stop_early
    _algorithms = ("polk",)
    _new_model = new_polk

    @property
    def _refits(self) -> bool:  # type: ignore[override]
        return self.refit and self.solver == "newton"

    def _samples_of_points(self, size: int) -> int:
        if not (self._refits and has_growing_cap(self) and isinstance(self.epochs, str)):
            return size
        return SAMPLES_PER_POINT * points_of_fit(self, size)

    def _finish_fit(self, model: Any, samples: Samples) -> None:
        if self._refits:
            finish_fit(self, model, samples)
        if self.refine:
            refine(self, model, samples)


@estimator(OF_REGRESSORS)
class POLKRegressor(Regressor):
    """Kernel regressor for streams, with a model that stays small (POLK).

    The same algorithm as :class:`POLKClassifier`, for one or several real targets.

    Parameters
    ----------
    {loss, kernel, gamma, learning_rate, parsimony, budget, max_points, compression, solver,
    half_life, schedule, regularization, batch_size, epochs, shuffle, average, normalize_y, refit,
    refine, dtype, n_jobs, random_state, verbose}

    Attributes
    ----------
    {dictionary_, weights_, model_order_, expansion_, intercept_}
    noise_ : float or ndarray of shape (n_targets,)
        Standard deviation of the noise of the targets, with ``loss="squared"`` and
        ``solver="newton"``: after ``fit`` from what is left of them, for each sample that fitting
        has not used up; in a stream from what was predicted for the latest samples (a quarter of
        all, 10,000 at most) before they were learned from. What the points of the model do not
        span is taken for part of the function, not for noise.
    {n_features_in_, kernel_, learning_rate_, regularization_, budget_, epochs_, t_, trace_,
    drift_}

    References
    ----------
    A. Koppel, G. Warnell, E. Stump, A. Ribeiro: Parsimonious online learning with kernels via
    sparse projections in function space. Journal of Machine Learning Research 20, 2019.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from parsimon import POLKRegressor
    >>> X, y = make_friedman1(1000, random_state=0)
    >>> model = POLKRegressor(random_state=0).fit(X[:800], y[:800])
    >>> model.score(X[800:], y[800:]) > 0.95
    True
    >>> predictions, deviations = model.predict(X[800:], return_std=True)
    >>> bool(deviations.mean() < 0.5 * y.std())
    True
    """

    loss: str = "squared"
    _: KW_ONLY
    kernel: AnyKernel = "auto"
    gamma: Gamma = "auto"
    learning_rate: float | Auto = "auto"
    parsimony: float | Auto = "auto"
    budget: float | AdaptiveBudget | None = None
    max_points: int | Auto | None = "auto"
    compression: CompressionRule = "remove"
    solver: Solver = "newton"
    half_life: float | Auto | Detector | None = "auto"
    schedule: Schedule = "constant"
    regularization: float | Auto = "auto"
    batch_size: int = 32
    epochs: int | Auto = "auto"
    shuffle: bool = True
    average: bool = True
    normalize_y: bool = True
    refit: bool = True
    refine: Refine = False
    dtype: Precision = "float64"
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    budget_ = BUDGET
    noise_ = NOISE

    compress = compress
    refine_on = refine_on
    _stop_early = stop_early
    _algorithms = ("polk",)
    _new_model = new_polk

    def _finish_fit(self, model: Any, samples: Samples) -> None:
        super()._finish_fit(model, samples)
        if self.refine:
            refine(self, model, samples)

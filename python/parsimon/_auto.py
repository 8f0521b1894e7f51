"""Hyper-parameters that were left to us, chosen from the data; docs/defaults.md explains the rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from . import kernels, schedules

if TYPE_CHECKING:
    from ._base import Training
    from .polk import _POLK

Array = NDArray[np.float64]
Schedule = tuple[str, list[float]]

# Samples on which eigenvalues and leave-one-out errors are computed.
_SUBSAMPLE = 500
# Multiples of the "scale" width among which gamma="auto" chooses.
_WIDTHS = (2.0, 1.0, 0.5, 0.25, 0.125, 0.0625)


@dataclass(frozen=True)
class Recipe:
    """Everything that the core needs to know."""

    kernel: kernels.Kernel
    step: Schedule
    budget: Schedule
    regularization: float
    epochs: int


@dataclass(frozen=True)
class _Ridge:
    """Kernel ridge regression on a part of the data: what the other choices are taken from."""

    kernel: kernels.Kernel
    largest_self: float  # max k(x, x)
    top: float  # largest eigenvalue of the Gram matrix over the number of samples
    alpha: float  # ridge with the smallest leave-one-out error
    error: float  # that error, over the variance of the targets


def choose(estimator: _POLK, training: Training, loss: Any) -> Recipe:
    """Fill in what the user left open."""
    X, targets = _subsample(training)
    alphas = np.logspace(-3, 1, 9) if loss.is_classification else np.logspace(-7, 2, 19)
    ridge = min(
        (_ridge(kernel, X, targets, alphas) for kernel in _kernels(estimator, X)),
        key=lambda fit: fit.error,
    )
    size = len(training)
    regularization = estimator.regularization
    if isinstance(regularization, str):
        regularization = ridge.alpha / (size * loss.regularizer_scale)
    # Largest step with which a mini-batch of the squared loss cannot overshoot.
    batch = min(estimator.batch_size, size)
    stable = batch / (ridge.largest_self + (batch - 1) * ridge.top)
    rate = estimator.learning_rate
    if isinstance(rate, str):
        rate = stable * (2.0 / _curvature(loss, training) if loss.is_classification else 1.0)
        limit = 0.25 / (regularization * loss.regularizer_scale) if regularization else np.inf
        rate = min(rate, limit)
    return Recipe(
        kernel=ridge.kernel,
        step=_step(estimator, float(rate)),
        budget=_budget(estimator, float(rate), _noise(ridge, loss) / batch),
        regularization=float(regularization),
        epochs=_epochs(estimator, size),
    )


def _subsample(training: Training) -> tuple[Array, Array]:
    rows = np.arange(len(training))
    if len(rows) > _SUBSAMPLE:
        # Always the same ones: the choice must not depend on random_state.
        rows = np.sort(np.random.RandomState(0).permutation(len(rows))[:_SUBSAMPLE])
    X = training.X[rows]
    targets = training.targets[rows]
    if training.n_classes:
        targets = np.eye(training.n_classes)[targets[:, 0].astype(int)]
    return X.toarray() if sparse.issparse(X) else X, targets


def _kernels(estimator: _POLK, X: Array) -> list[kernels.Kernel]:
    """Return the kernels to choose among; just one unless the width was left open."""
    if isinstance(estimator.kernel, kernels.Kernel):
        return [estimator.kernel]
    gamma = estimator.gamma
    if isinstance(gamma, str):
        if gamma == "auto":
            scale = _scale_gamma(X)
            return [estimator._resolve_kernel(scale * width) for width in _WIDTHS]
        rules = {"scale": _scale_gamma, "median": _median_gamma}
        if gamma not in rules:
            raise ValueError(
                f"gamma must be a positive number, 'auto', 'scale' or 'median'; got {gamma!r}."
            )
        gamma = rules[gamma](X)
    return [estimator._resolve_kernel(gamma)]


def _scale_gamma(X: Array) -> float:
    """Return 1 / (n_features * variance), as scikit-learn does."""
    size = np.abs(X).max(initial=0.0)
    variance = (X / size).var() if size > 0 else 0.0
    return float(1 / (X.shape[1] * variance) / size / size) if variance > 0 else 1.0


def _median_gamma(X: Array) -> float:
    """Return 1 / (2 median^2) of the distances between samples that are not equal."""
    size = np.abs(X).max(initial=0.0)
    scaled = X / size if size > 0 else X
    centred = scaled - scaled.mean(axis=0)
    norms = (centred**2).sum(axis=1)
    squared = norms[:, None] + norms - 2 * centred @ centred.T
    apart = squared[squared > 1e-12 * norms.max(initial=0.0)]
    return float(1 / (2 * np.median(apart)) / size / size) if len(apart) else 1.0


def _ridge(kernel: kernels.Kernel, X: Array, targets: Array, alphas: Array) -> _Ridge:
    gram = kernel(X)
    centred = targets - targets.mean(axis=0)
    variance = max((centred**2).mean(), np.finfo(float).tiny)
    values, vectors = linalg.eigh(gram)
    values = np.maximum(values, 0.0)
    rotated = vectors.T @ centred
    largest = float(gram.diagonal().max())
    errors = []
    for alpha in alphas:
        shrink = values / (values + alpha * largest)
        leverage = (vectors**2) @ shrink
        residual = centred - vectors @ (shrink[:, None] * rotated)
        loo = residual / np.maximum(1 - leverage, 1e-12)[:, None]
        errors.append((loo**2).mean() / variance)
    best = int(np.argmin(errors))
    return _Ridge(
        kernel=kernel,
        largest_self=largest,
        top=float(values[-1] / len(X)),
        alpha=float(alphas[best] * largest),
        error=float(errors[best]),
    )


def _step(estimator: _POLK, rate: float) -> Schedule:
    law = schedules.resolve(estimator.schedule)
    return ("constant", [rate]) if law is None else ("power_law", [rate, law.power, law.delay])


def _curvature(loss: Any, training: Training) -> float:
    """Return the largest second derivative of a classification loss; 1 where it has none."""
    if not loss.gives_probabilities:
        return 1.0
    return 0.25 if training.n_classes == 2 else 0.5


def _noise(ridge: _Ridge, loss: Any) -> float:
    """Return the squared norm, in steps of one sample, that compression may take from a step.

    A hundredth of what one sample adds; for regression less where the targets are less noisy and
    less regularised, because there small weights matter.
    """
    if loss.is_classification:
        return 0.01 * ridge.largest_self
    return 0.02 * ridge.alpha * min(ridge.error, 1.0)


def _budget(estimator: _POLK, rate: float, noise: float) -> Schedule:
    if estimator.budget is not None:
        return ("fixed", [float(estimator.budget)])
    if isinstance(estimator.parsimony, str):
        if schedules.resolve(estimator.schedule) is not None:
            return ("step_squared", [1.0])
        parsimony = np.sqrt(noise / rate)
    else:
        parsimony = estimator.parsimony
    if estimator.max_model_order is not None:
        start = max(float(parsimony) * np.sqrt(rate), 1e-6)
        return ("hold_model_order", [float(estimator.max_model_order), start])
    return ("parsimony", [float(parsimony)])


def _epochs(estimator: _POLK, size: int) -> int:
    if not isinstance(estimator.epochs, str):
        return int(estimator.epochs)
    if estimator._refits():
        return 2  # enough to find the dictionary; the weights are then fitted exactly
    return int(np.clip(np.ceil(20_000 / size), 10, 100)) if size < 1000 else 20

"""Hyper-parameters that were left to us, chosen from the data; docs/defaults.md explains them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from . import kernels, schedules
from ._checks import is_number
from ._settings import Schedule, core_budget, core_step

if TYPE_CHECKING:
    from ._base import Training
    from .polk._common import POLK

Array = NDArray[np.float64]

# Samples on which eigenvalues and leave-one-out errors are computed.
_SUBSAMPLE = 500
_SECOND_LOOK = 1000
# Constant that is added to the named kernel of a classifier, in units of max k(x, x).
_INTERCEPT = 0.3
# Samples below which there are too few to choose anything by their leave-one-out error.
_ENOUGH = 30
_CAUTIOUS_RIDGE = 0.1
# The papers' lambda: the length of a stream is not known, so neither is the best one.
_STREAM_REGULARIZATION = 1e-6
# A ridge up to which regression counts as free of noise.
_NOISELESS = 1e-4
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


def choose(estimator: POLK, training: Training, loss: Any, *, streaming: bool) -> Recipe:
    """Fill in what the user left open, from all samples there are or the first ones of a stream."""
    data = _Data(estimator, training, loss, streaming)
    regularization = data.regularization
    rate = data.learning_rate(regularization)
    single = estimator.dtype == "float32"
    return Recipe(
        kernel=kernels.SinglePrecision(data.kernel) if single else data.kernel,
        step=core_step(rate, estimator.schedule),
        budget=_budget(estimator, rate, data),
        regularization=regularization,
        epochs=_epochs(estimator, len(training)),
    )


@dataclass(frozen=True)
class _Ridge:
    """Kernel ridge regression on a part of the data."""

    kernel: kernels.Kernel
    top: float  # largest eigenvalue of the Gram matrix, over the number of samples
    alpha: float  # ridge with the smallest leave-one-out error
    error: float  # that error, over the variance of the targets


class _Data:
    """What the rules ask the data, each answer worked out only if it is needed."""

    def __init__(self, estimator: POLK, training: Training, loss: Any, streaming: bool) -> None:
        self._estimator = estimator
        self._streaming = streaming
        self._loss = loss
        self._training = training
        self._classes = training.n_classes
        self._size = len(training)
        self.batch = min(estimator.batch_size, self._size)
        self.X, self._targets = _subsample(training, _SUBSAMPLE)

    @cached_property
    def candidates(self) -> list[kernels.Kernel]:
        """Return the kernels to choose among; just one unless the width was left open."""
        estimator = self._estimator
        if isinstance(estimator.kernel, kernels.Kernel):
            return [estimator.kernel]
        named = [resolve_kernel(estimator.kernel, gamma) for gamma in self._gammas()]
        if not self._classes or estimator._caps_points:
            return named  # points are merged by the named kernel alone
        return [self._with_intercept(kernel) for kernel in named]

    def _gammas(self) -> list[float]:
        gamma = self._estimator.gamma
        if not isinstance(gamma, str):
            return [float(gamma)]
        if gamma == "median":
            return [_median_gamma(self.X)]
        scale = _scale_gamma(self._training)
        if gamma == "auto" and len(self.X) >= _ENOUGH:
            return [scale * width for width in _WIDTHS]
        return [scale]

    def _with_intercept(self, kernel: kernels.Kernel) -> kernels.Kernel:
        """Add a constant, without which the function must be pulled off zero point by point."""
        largest = float(kernel.diag(self.X).max())
        return kernel + (_INTERCEPT * largest if largest > 0 else 1.0) * kernels.Constant()

    @cached_property
    def kernel(self) -> kernels.Kernel:
        return self.candidates[0] if len(self.candidates) == 1 else self.ridge.kernel

    @cached_property
    def ridge(self) -> _Ridge:
        # A classifier is never regularised more than by the C = 1 of support vector machines.
        low, high, count = (-3, 0, 7) if self._classes else (-7, 2, 19)
        if not self._classes and (self._streaming or not self._estimator._refits()):
            # Gradient steps do not come near the fit of a smaller ridge: a wide kernel that needs
            # one would never be learned.
            low, count = -1, 7
        enough = len(self.X) >= _ENOUGH
        alphas = np.logspace(low, high, count) if enough else np.array([_CAUTIOUS_RIDGE])
        fits = [_ridge(kernel, self.X, self._targets, alphas) for kernel in self.candidates]
        best = min(range(len(fits)), key=lambda i: fits[i].error)
        # Where there is hardly any noise, the best width still shrinks as samples are added: look
        # again with more of them, at this width and the next narrower one.
        noisy = fits[best].alpha > _NOISELESS * self.candidates[best].diag(self.X).max()
        if noisy or self._size <= _SUBSAMPLE or len(fits) == 1:
            return fits[best]
        X, targets = _subsample(self._training, _SECOND_LOOK)
        narrower = self.candidates[max(best - 1, 0) : best + 1]
        return min(
            (_ridge(kernel, X, targets, alphas) for kernel in narrower), key=lambda fit: fit.error
        )

    @cached_property
    def largest_self(self) -> float:
        # A kernel that is zero on all samples (the linear one on zeros) learns at any rate.
        return float(self.kernel.diag(self.X).max()) or 1.0

    @property
    def regularization(self) -> float:
        given = self._estimator.regularization
        if isinstance(given, str) and self._streaming:
            return _STREAM_REGULARIZATION
        if isinstance(given, str):
            return float(self.ridge.alpha / (self._size * self._loss.regularizer_scale))
        return float(given)

    def learning_rate(self, regularization: float) -> float:
        given = self._estimator.learning_rate
        if not isinstance(given, str):
            return float(given)
        stable = _stable(self.batch, self.largest_self, self.ridge.top) / self._heaviness
        shrinkage = regularization * self._loss.regularizer_scale
        limit = 0.25 / shrinkage if shrinkage > 0 else np.inf
        return float(min(stable * self._boldness, limit))

    @property
    def _heaviness(self) -> float:
        """Return how much a mini-batch may weigh, in units of one without sample weights."""
        weight = self._training.sample_weight
        if not weight.any():
            return 1.0
        with np.errstate(over="ignore"):
            heaviness = float((weight.max() + (self.batch - 1) * weight.mean()) / self.batch)
        if not 1e-100 < heaviness < 1e100:
            raise ValueError(
                f"The sample weights, up to {weight.max():.3g}, are too large or too small to "
                f"compute with; divide them by their mean."
            )
        return heaviness

    @property
    def _boldness(self) -> float:
        """Return twice the inverse curvature for classification, where gradients are bounded."""
        if not self._classes:
            return 1.0
        if not self._loss.gives_probabilities:
            return 2.0
        return 8.0 if self._classes == 2 else 4.0

    @property
    def noise(self) -> float:
        """Return the squared norm, for a step of size 1, that compression may take from it.

        A hundredth of what a mini-batch adds; for regression less where the targets are less noisy
        and less regularised, because there small weights matter.
        """
        weight = self._heaviness**2
        if self._classes:
            return 0.01 * self.largest_self / self.batch * weight
        return 0.02 * self.ridge.alpha * min(self.ridge.error, 1.0) / self.batch * weight


def resolve_kernel(kernel: Any, gamma: float) -> kernels.Kernel:
    """Return the kernel, or the one of this name and width."""
    if isinstance(kernel, kernels.Kernel):
        return kernel
    if isinstance(kernel, str):
        return kernels.from_name(kernel, gamma=gamma)
    raise ValueError(
        f"kernel must be a parsimon.kernels.Kernel or a name such as 'rbf'; got {kernel!r}."
    )


def check_gamma(gamma: Any) -> None:
    """Refuse what is neither a width nor the name of a rule for one."""
    named = isinstance(gamma, str) and gamma in ("auto", "scale", "median")
    if not named and not (is_number(gamma) and gamma > 0):
        raise ValueError(
            f"gamma must be a positive, finite number, 'auto', 'scale' or 'median'; got {gamma!r}."
        )


def choose_kernel(kernel: Any, gamma: Any, training: Training) -> kernels.Kernel:
    """Return a kernel for these samples, without looking at their targets."""
    if isinstance(kernel, kernels.Kernel):
        return kernel
    if gamma == "median":
        gamma = _median_gamma(_subsample(training, _SUBSAMPLE)[0])
    elif isinstance(gamma, str):
        gamma = _scale_gamma(training)
    return resolve_kernel(kernel, float(gamma))


def _stable(batch: int, largest_self: float, top: float) -> float:
    """Return the largest step with which a mini-batch of the squared loss cannot overshoot."""
    return batch / (largest_self + (batch - 1) * top)


def stable_rate(kernel: kernels.Kernel, training: Training, batch: int) -> float:
    """Return the same for a kernel that is known, measured on a part of the data."""
    X, _ = _subsample(training, _SUBSAMPLE)
    gram = kernel(X)
    top = float(linalg.eigvalsh(gram)[-1]) / len(X)
    return _stable(min(batch, len(training)), float(gram.diagonal().max()) or 1.0, top)


def _subsample(training: Training, size: int) -> tuple[Array, Array]:
    rows = np.arange(len(training))
    if len(rows) > size:
        # Always the same ones: the choice must not depend on random_state.
        rows = np.sort(np.random.RandomState(0).permutation(len(rows))[:size])
    X = training.X[rows]
    targets = training.targets[rows]
    if training.n_classes:
        targets = np.eye(training.n_classes)[targets[:, 0].astype(int)]
    X = X.toarray() if sparse.issparse(X) else X
    return X.astype(np.float64, copy=False), targets


def _scale_gamma(training: Training) -> float:
    """Return 1 / (n_features * variance), as scikit-learn does."""

    def blocks() -> Iterator[Array]:
        # The same ones for sparse samples, so that these give the same bits.
        return (X.astype(np.float64, copy=False) for X, _, _ in training.blocks(1, None))

    size = max(float(np.abs(X).max(initial=0.0)) for X in blocks())
    if size == 0:
        return 1.0
    count = len(training) * training.X.shape[1]
    mean = sum(float((X / size).sum()) for X in blocks()) / count
    variance = sum(float(((X / size - mean) ** 2).sum()) for X in blocks()) / count
    return _inverse_square(training.X.shape[1] * variance, size)


def _median_gamma(X: Array) -> float:
    """Return 1 / (2 median^2) of the distances between samples that are not equal."""
    size = float(np.abs(X).max(initial=0.0)) or 1.0
    centred = X / size - (X / size).mean(axis=0)
    norms = (centred**2).sum(axis=1)
    squared = norms[:, None] + norms - 2 * centred @ centred.T
    apart = squared[squared > 1e-12 * norms.max(initial=0.0)]
    return _inverse_square(2 * float(np.median(apart)) if len(apart) else 0.0, size)


def _inverse_square(square: float, size: float) -> float:
    """Return 1 / (square * size^2), or 1 where there is nothing to measure."""
    # Equal features differ by rounding at most.
    if square <= np.finfo(float).eps ** 2:
        return 1.0
    gamma = 1 / square / size / size
    if not 0 < gamma < np.inf:
        raise ValueError(
            f"The features are of the order of {size:.0e}, where their variance leaves the range "
            f"of a double: scale them, or give gamma or a kernel."
        )
    return gamma


def _ridge(kernel: kernels.Kernel, X: Array, targets: Array, alphas: Array) -> _Ridge:
    gram = kernel(X)
    largest = float(np.abs(gram).max()) or 1.0
    # Beyond these, the squares of weights and kernel values are not numbers any more.
    if not 1e-100 < largest < 1e150:
        raise ValueError(
            f"The values of the kernel {kernel!r} on these samples, up to {largest:.1e}, are too "
            f"large or too small to compute with, or not finite; scale the features or choose "
            f"another kernel."
        )
    centred = targets - targets.mean(axis=0)
    variance = float((centred**2).mean())
    values, vectors = linalg.eigh(gram)
    values = np.maximum(values, 0.0)
    rotated = vectors.T @ centred
    errors = []
    for alpha in alphas * largest:
        shrink = values / (values + alpha)
        leverage = (vectors**2) @ shrink
        residual = centred - vectors @ (shrink[:, None] * rotated)
        loo = residual / np.maximum(1 - leverage, 1e-12)[:, None]
        errors.append((loo**2).mean() / variance if variance > 0 else 1.0)
    # Targets that are all equal, as in a block of one sample, tell nothing about the ridge.
    best = int(np.argmin(errors)) if variance > 0 else len(alphas) // 2
    return _Ridge(
        kernel=kernel,
        top=float(values[-1] / len(X)),
        alpha=float(alphas[best] * largest),
        error=float(errors[best]),
    )


def _budget(estimator: POLK, rate: float, data: _Data) -> Schedule:
    if estimator._caps_points:
        return ("fixed", [0.0])
    if not isinstance(estimator.parsimony, str):
        by_parsimony = ("parsimony", [float(estimator.parsimony)])
    elif schedules.resolve(estimator.schedule) is not None:
        # From the budget of a constant rate downwards: eta^2 itself swallows steps above 1 whole.
        by_parsimony = ("step_squared", [float(np.sqrt(data.noise) / rate)])
    else:
        by_parsimony = ("parsimony", [float(np.sqrt(data.noise / rate))])
    return core_budget(estimator.budget, by_parsimony, rate)


def _epochs(estimator: POLK, size: int) -> int:
    if not isinstance(estimator.epochs, str):
        return int(estimator.epochs)
    if estimator._refits() and not isinstance(estimator.budget, schedules.AdaptiveBudget):
        return 2  # enough to find the dictionary; the weights are then fitted exactly
    return int(np.clip(np.ceil(20_000 / size), 20, 100))

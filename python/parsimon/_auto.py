"""Hyper-parameters that were left to us, chosen from the data; docs/defaults.md explains them."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from . import kernels, schedules
from ._affine import MANY_FEATURES, affine, diagonal, gram_of
from ._core import NewtonSettings
from ._lazy import lazy
from ._stream import Samples

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
# The ridge of classifiers in a stream, in units of max k(x, x): C = 10 of support vector machines.
_CLASSIFICATION_RIDGE = 0.1
# What a stream adds to the ridge that was given for a hinge loss, in the same units: without any,
# a step goes anywhere along which the few samples that say something do not hold the function.
_LEAST_HINGE_RIDGE = 0.01
# Samples of which one pass finds a good dictionary.
_ONE_PASS = 5_000
# Of the squared budget, where a number of points was given: it decides, and no budget.
_BENEATH_A_CAP = 1e-4
# Multiples of the "scale" width among which gamma="auto" chooses.
_WIDTHS = (2.0, 1.0, 0.5, 0.25, 0.125, 0.0625)


@dataclass(frozen=True)
class _Ridge:
    """Kernel ridge regression on a part of the data."""

    kernel: kernels.Kernel
    top: float  # largest eigenvalue of the Gram matrix, over the number of samples
    alpha: float  # ridge with the smallest leave-one-out error
    error: float  # that error, over the variance of the targets


class Choices:
    """What the core needs to know: as it was given, or else as the data say, once it is asked for.

    The samples are all there are or, when streaming, the first ones of many; or a part of as many
    as `size` says. With an intercept, a constant is added to the named kernel of a classifier.
    """

    def __init__(
        self,
        estimator: Any,
        samples: Samples,
        loss: Any,
        *,
        streaming: bool,
        intercept: bool = True,
        size: int | None = None,
    ) -> None:
        self._estimator = estimator
        self._streaming = streaming
        self._loss = loss
        self._samples = samples
        self._classes = samples.n_classes
        self._intercept = intercept
        self._size = len(samples) if size is None else size
        self._solves = getattr(estimator, "solver", "sgd") == "newton"
        # The mean square of what samples count, if they do not all count one: noise grows with it.
        self._count_spread = float(getattr(estimator, "_count_spread", 1.0))
        self._batch = min(int(estimator.batch_size), self._size)
        self._named = resolved(estimator.kernel, samples)
        self._keeps = _keeps_sparse(self._named, samples)
        self._X, self._targets = _subsample(samples, _SUBSAMPLE, sparse_too=self._keeps)

    @lazy
    def kernel(self) -> kernels.Kernel:
        """The kernel, in the precision that was asked for."""
        single = getattr(self._estimator, "dtype", "float64") == "float32"
        return kernels.SinglePrecision(self._kernel) if single else self._kernel

    @lazy
    def _kernel(self) -> kernels.Kernel:
        return self._candidates[0] if len(self._candidates) == 1 else self._ridge.kernel

    @lazy
    def _candidates(self) -> list[kernels.Kernel]:
        """The kernels to choose among; just one unless the width was left open."""
        given = self._named
        if isinstance(given, kernels.Kernel):
            return [given]
        # A linear kernel has no width.
        gammas = [1.0] if given == "linear" else self._gammas()
        named = [kernels.from_name(given, gamma=gamma) for gamma in gammas]
        if self._classes and self._intercept:
            return [self._with_intercept(kernel) for kernel in named]
        return named

    def _gammas(self) -> list[float]:
        gamma = self._estimator.gamma
        if not isinstance(gamma, str):
            return [float(gamma)]
        if gamma == "median":
            return [_median_gamma(self._X)]
        scale = _scale_gamma(self._samples)
        if gamma == "auto" and self._X.shape[0] >= _ENOUGH:
            return [scale * width for width in _WIDTHS]
        return [scale]

    def _with_intercept(self, kernel: kernels.Kernel) -> kernels.Kernel:
        """Add a constant, without which the function must be pulled off zero point by point."""
        largest = float((diagonal(kernel, self._X) if self._keeps else kernel.diag(self._X)).max())
        return kernel + (_INTERCEPT * largest if largest > 0 else 1.0) * kernels.Constant()

    @lazy
    def _ridge(self) -> _Ridge:
        # A classifier is never regularised more than by the C = 1 of support vector machines.
        low, high, count = (-3, 0, 7) if self._classes else (-7, 2, 19)
        solved = self._solves or (self._estimator._refits and not self._streaming)
        if not self._classes and not solved:
            # Gradient steps do not come near the fit of a smaller ridge: a wide kernel that needs
            # one would never be learned.
            low, count = -1, 7
        enough = self._X.shape[0] >= _ENOUGH
        alphas = np.logspace(low, high, count) if enough else np.array([_CAUTIOUS_RIDGE])
        fits = [_fit_ridge(kernel, self._X, self._targets, alphas) for kernel in self._candidates]
        errors = [fit.error for fit in fits]
        best = errors.index(min(errors))
        if len(fits) == 1 or self._size <= _SUBSAMPLE:
            return fits[best]
        # Where there is hardly any noise, the best width still shrinks as samples are added: look
        # again with more of them, at this width and the next narrower one.
        if fits[best].alpha > _NOISELESS * diagonal(self._candidates[best], self._X).max():
            return fits[best]
        X, targets = _subsample(self._samples, _SECOND_LOOK, sparse_too=self._keeps)
        narrower = self._candidates[max(best - 1, 0) : best + 1]
        fits = [_fit_ridge(kernel, X, targets, alphas) for kernel in narrower]
        return min(fits, key=lambda fit: fit.error)

    @lazy
    def _largest_self(self) -> float:
        # A kernel that is zero on all samples (the linear one on zeros) learns at any rate.
        return float(diagonal(self._kernel, self._X).max()) or 1.0

    @lazy
    def regularization(self) -> float:
        """The weight of the squared norm."""
        given = self._estimator.regularization
        if isinstance(given, str) and self._streaming:
            return _STREAM_REGULARIZATION
        if isinstance(given, str):
            return float(self._ridge.alpha / (self._size * self._loss.regularizer_scale))
        return float(given)

    @lazy
    def rate(self) -> float:
        """The learning rate at the beginning."""
        given = self._estimator.learning_rate
        if not isinstance(given, str):
            return float(given)
        stable = _stable(self._batch, self._largest_self, self._ridge.top) / self._heaviness
        shrinkage = self.regularization * self._loss.regularizer_scale
        limit = 0.25 / shrinkage if shrinkage > 0 else np.inf
        return float(min(stable * self._boldness, limit))

    @lazy
    def newton(self) -> NewtonSettings | None:
        """How the weights are solved, if they are."""
        return NewtonSettings(*self.solving) if self._solves else None

    @property
    def solving(self) -> tuple[float, float, float, bool]:
        """The ridge, that of each sample, the half-life, and whether it adapts."""
        given = self._estimator.regularization
        if isinstance(given, str):
            # For all samples together: what the noise of the targets asks for does not grow with
            # their number.
            ridge = (
                _CLASSIFICATION_RIDGE * self._largest_self if self._classes else self._ridge.alpha
            )
            ridge, per_sample = ridge * self._count_spread, 0.0
        else:
            ridge, per_sample = 0.0, float(given) * self._loss.regularizer_scale
            refits = getattr(self._estimator, "_refits", False) and not self._streaming
            if self._classes and not refits and not self._loss.gives_probabilities:
                ridge = _LEAST_HINGE_RIDGE * self._largest_self
        half_life = self._estimator.half_life
        changes = not (half_life is None or isinstance(half_life, Real))
        lasting = np.inf if changes or half_life is None else float(half_life)
        return ridge, per_sample, lasting, changes

    @property
    def epochs(self) -> int:
        """The passes over the data that fit makes."""
        given = self._estimator.epochs
        if not isinstance(given, str):
            return int(given)
        adapts = isinstance(getattr(self._estimator, "budget", None), schedules.AdaptiveBudget)
        if self._estimator._refits and not adapts:
            # Enough to find the dictionary; the weights are then fitted exactly.
            return 1 if self._solves and self._size >= _ONE_PASS else 2
        return int(np.clip(np.ceil(20_000 / self._size), 20, 100))

    @lazy
    def _heaviness(self) -> float:
        """How much a mini-batch may weigh, in units of one without sample weights."""
        weight = self._samples.weight
        if not weight.any():
            return 1.0
        with np.errstate(over="ignore"):
            heaviness = float((weight.max() + (self._batch - 1) * weight.mean()) / self._batch)
        if not 1e-100 < heaviness < 1e100:
            raise ValueError(
                f"The sample weights, up to {weight.max():.3g}, are too large or too small to "
                f"compute with; divide them by their mean."
            )
        return heaviness

    @property
    def _boldness(self) -> float:
        """Twice the inverse curvature for classification, where gradients are bounded."""
        if not self._classes:
            return 1.0
        if self._loss.describe().endswith("squared_hinge"):
            # Its gradients are not bounded; between two outputs, its curvature is 2.
            return 1.0 if self._classes <= 2 else 0.5
        if not self._loss.gives_probabilities:
            return 2.0
        return 8.0 if self._classes <= 2 else 4.0

    @property
    def noise(self) -> float:
        """The squared norm, for a step of size 1, that compression may take from it.

        A hundredth of what a mini-batch adds; for regression less where the targets are less noisy
        and less regularised, because there small weights matter.
        """
        weight = self._heaviness**2
        if self._solves:
            # A cap keeps the model small; what compression takes is solved again.
            weight *= 0.25
            cap = getattr(self._estimator, "max_points", None)
            if cap is not None and not isinstance(cap, str):
                # As many points as were asked for, not fewer.
                weight *= _BENEATH_A_CAP
        if self._classes:
            return 0.01 * self._largest_self / self._batch * weight
        return 0.02 * self._ridge.alpha * min(self._ridge.error, 1.0) / self._batch * weight


def resolved(kernel: Any, samples: Samples) -> Any:
    """Return the name of the kernel that "auto" stands for, or what was given."""
    if not (isinstance(kernel, str) and kernel == "auto"):
        return kernel
    return "linear" if samples.X.shape[1] > MANY_FEATURES else "rbf"


def _keeps_sparse(kernel: Any, samples: Samples) -> bool:
    """Tell whether a part of sparse samples stays sparse for this kernel, or its name."""
    if samples.X.shape[1] <= MANY_FEATURES:
        return False
    return kernel == "linear" if isinstance(kernel, str) else affine(kernel) is not None


def choose_kernel(kernel: Any, gamma: Any, samples: Samples) -> kernels.Kernel:
    """Return a kernel for these samples, without looking at their targets."""
    kernel = resolved(kernel, samples)
    if isinstance(kernel, kernels.Kernel):
        return kernel
    if kernel == "linear":
        return kernels.Linear()
    if gamma == "median":
        gamma = _median_gamma(_subsample(samples, _SUBSAMPLE)[0])
    elif isinstance(gamma, str):
        gamma = _scale_gamma(samples)
    return kernels.from_name(kernel, gamma=float(gamma))


def _stable(batch: int, largest_self: float, top: float) -> float:
    """Return the largest step with which a mini-batch of the squared loss cannot overshoot."""
    return batch / (largest_self + (batch - 1) * top)


def stable_rate(kernel: kernels.Kernel, samples: Samples, batch: int) -> float:
    """Return the same for a kernel that is known, measured on a part of the data."""
    X, _ = _subsample(samples, _SUBSAMPLE, sparse_too=_keeps_sparse(kernel, samples))
    gram = gram_of(kernel, X) if sparse.issparse(X) else kernel(X)
    top = float(linalg.eigvalsh(gram)[-1]) / len(gram)
    return _stable(min(batch, len(samples)), float(gram.diagonal().max()) or 1.0, top)


def _subsample(samples: Samples, size: int, *, sparse_too: bool = False) -> tuple[Any, Array]:
    X, targets = samples.X, samples.targets
    if len(samples) > size:
        # Always the same ones: the choice must not depend on random_state.
        rows = np.sort(np.random.RandomState(0).permutation(len(samples))[:size])
        X, targets = X[rows], targets[rows] if len(targets) else targets
    if samples.n_classes:
        targets = np.eye(samples.n_classes)[targets[:, 0].astype(int)]
    if sparse.issparse(X) and not sparse_too:
        X = X.toarray()
    return X.astype(np.float64, copy=False), targets


def _scale_gamma(samples: Samples) -> float:
    """Return 1 / (n_features * variance), as scikit-learn does."""
    features = samples.X.shape[1]
    if sparse.issparse(samples.X) and features > MANY_FEATURES:
        return _sparse_scale_gamma(samples.X)
    size = mean = variance = 0.0
    # In blocks, through which sparse samples go just as well, and give the same bits.
    for X, *_ in samples.blocks(1):
        size = max(size, float(np.abs(X).max(initial=0.0)))
    if size == 0:
        return 1.0
    for X, *_ in samples.blocks(1):
        mean += float((X.astype(np.float64, copy=False) / size).sum())
    mean /= len(samples) * features
    for X, *_ in samples.blocks(1):
        variance += float(((X.astype(np.float64, copy=False) / size - mean) ** 2).sum())
    return _inverse_square(features * (variance / (len(samples) * features)), size)


def _sparse_scale_gamma(X: Any) -> float:
    """Return the same from the numbers that are not zero alone."""
    values, count = X.data.astype(np.float64, copy=False), float(np.prod(X.shape, dtype=float))
    size = float(np.abs(values).max(initial=0.0))
    if size == 0:
        return 1.0
    mean = float((values / size).sum()) / count
    zeros = count - len(values)
    variance = (float(((values / size - mean) ** 2).sum()) + zeros * mean**2) / count
    return _inverse_square(X.shape[1] * variance, size)


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


def _fit_ridge(kernel: kernels.Kernel, X: Array, targets: Array, alphas: Array) -> _Ridge:
    gram = gram_of(kernel, X) if sparse.issparse(X) else kernel(X)
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
        top=float(values[-1] / len(gram)),
        alpha=float(alphas[best] * largest),
        error=float(errors[best]),
    )

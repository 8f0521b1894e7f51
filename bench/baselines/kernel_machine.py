"""Batch kernel classifiers: L-BFGS and functional gradient descent on all samples at once.

Both minimise the objective of POLK's paper, the mean of the loss plus lambda ||f||^2 (half of that
for the logistic loss), over functions f = sum_m w_m k(d_m, .) with one column of weights per class.

The losses take scores of shape (n_samples, n_classes) and the index of each sample's class, and
return the loss of every sample and its derivative with respect to the scores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

# Weight of lambda ||f||^2 in the objective: (26) and (28) of the paper.
PENALTY = {"hinge": 1.0, "logistic": 0.5}


def hinge(scores: Array, y: Labels) -> tuple[Array, Array]:
    """Return max(0, 1 + f_r - f_y), r the best wrong class, and a subgradient."""
    rows = np.arange(len(y))
    wrong = scores.copy()
    wrong[rows, y] = -np.inf
    best = wrong.argmax(axis=1)
    losses = np.maximum(0.0, 1.0 + scores[rows, best] - scores[rows, y])
    slopes = np.zeros_like(scores)
    active = losses > 0
    slopes[rows[active], best[active]] = 1.0
    slopes[rows[active], y[active]] = -1.0
    return losses, slopes


def logistic(scores: Array, y: Labels) -> tuple[Array, Array]:
    """Return -log of the softmax at y, and softmax - one-hot."""
    rows = np.arange(len(y))
    total = logsumexp(scores, axis=1)
    slopes = np.exp(scores - total[:, None])
    losses = total - scores[rows, y]
    slopes[rows, y] -= 1.0
    return losses, slopes


def smoothed_hinge(scores: Array, y: Labels, temperature: float) -> tuple[Array, Array]:
    """Return s log(1 + sum over wrong c of exp((1 + f_c - f_y) / s)), s the temperature.

    Differentiable, and above the hinge loss by s log C at most.
    """
    rows = np.arange(len(y))
    # The sample's own class stands for the 0 in max(0, .).
    margins = (1.0 + scores - scores[rows, y][:, None]) / temperature
    margins[rows, y] = 0.0
    total = logsumexp(margins, axis=1)
    slopes = np.exp(margins - total[:, None])
    slopes[rows, y] -= 1.0
    return temperature * total, slopes


LOSSES = {"hinge": hinge, "logistic": logistic}

# Kernels of samples that the others explain to this, relative to the largest k(x, x), are rounding.
RANK_TOLERANCE = 1e-10


@dataclass(eq=False, repr=False)
class KernelMachine(ClassifierMixin, BaseEstimator):
    """What the classifiers share: a function on some of the samples, and the largest score wins.

    `_learn(X, y)` is theirs, which returns the samples that are stored and their weights.
    Once fitted, `points_` are the samples that are stored, `model_order_` is their number,
    `weights_` has one column per class, and `squared_norm_` is that of all functions together.
    """

    kernel: Callable[..., Array]  # kernel(X, Y) returns a matrix
    regularization: float = 1e-6  # lambda

    def fit(self, X: ArrayLike, y: ArrayLike) -> KernelMachine:
        X = np.asarray(X, dtype=np.float64)
        self.classes_, labels = np.unique(y, return_inverse=True)
        chosen, self.weights_ = self._learn(X, labels)
        self.points_ = X[chosen]
        self.model_order_ = len(chosen)
        images = np.asarray(self.kernel(self.points_, self.points_)) @ self.weights_
        self.squared_norm_ = float((self.weights_ * images).sum())
        return self

    def decision_function(self, X: ArrayLike) -> Array:
        """Return the score of each class, also where there are two."""
        return (
            np.asarray(self.kernel(np.asarray(X, dtype=np.float64), self.points_)) @ self.weights_
        )

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        return np.asarray(self.classes_[self.decision_function(X).argmax(axis=1)])


def pivoted_cholesky(gram: Array) -> tuple[Array, NDArray[np.intp]]:
    """Return L with L L' = gram, of as many columns as gram has rank, and the rows it stands on.

    The first rows of `L[pivots]` are lower triangular. The Gram matrix is overwritten.
    """
    scale = float(gram.diagonal().max())
    # LAPACK wants columns; a symmetric matrix has them in its rows.
    factor, order, rank, _ = dpstrf(gram.T, tol=RANK_TOLERANCE * scale, lower=1, overwrite_a=1)
    order = order - 1
    below = np.tril(factor)[:, :rank]
    unpivoted = np.empty_like(below)
    unpivoted[order] = below
    return unpivoted, order[:rank]


@dataclass(eq=False, repr=False)
class KernelLBFGS(KernelMachine):
    """Batch solution by L-BFGS (SciPy): hinge loss, smoothed, or logistic loss.

    The unknown is b in f = L b on the samples, with L L' the Gram matrix: then ||f||^2 = |b|^2, and
    the problem is as well conditioned as f itself. L has as many columns as the Gram matrix has
    numerical rank, so the solution is stored on that many samples; the others' kernels are
    combinations of theirs. `objective_` is what is reached, with the smoothed loss.
    """

    loss: str = "logistic"  # or "hinge"
    temperature: float = 0.03  # how much the hinge loss is smoothed in the end; more comes before
    max_iterations: int = 1000  # at each temperature
    tolerance: float = 1e-6  # largest entry of the gradient at which to stop

    def objective(
        self, flat: Array, factor: Array, y: Labels, temperature: float
    ) -> tuple[float, Array]:
        """Return what is minimised and its gradient, for the coordinates b as one vector."""
        b = flat.reshape(factor.shape[1], -1)
        scores = factor @ b
        if self.loss == "hinge":
            losses, slopes = smoothed_hinge(scores, y, temperature)
        else:
            losses, slopes = LOSSES[self.loss](scores, y)
        penalty = PENALTY[self.loss] * self.regularization
        gradient = factor.T @ slopes / len(y) + 2 * penalty * b
        return float(losses.mean() + penalty * (b**2).sum()), gradient.ravel()

    def _learn(self, X: Array, y: Labels) -> tuple[NDArray[np.intp], Array]:
        factor, pivots = pivoted_cholesky(np.array(self.kernel(X, X)))
        b = np.zeros(factor.shape[1] * len(self.classes_))
        # A little smoothing makes for slow progress unless the start is good.
        warm = (10 * self.temperature, 3 * self.temperature) if self.loss == "hinge" else ()
        for temperature in (*warm, self.temperature):
            found = minimize(
                self.objective,
                b,
                args=(factor, y, temperature),
                jac=True,
                method="L-BFGS-B",
                options={
                    "maxiter": self.max_iterations,
                    "maxfun": 2 * self.max_iterations,
                    "gtol": self.tolerance,
                    "ftol": 1e-10,
                },
            )
            b = found.x
        self.objective_ = float(found.fun)
        square = factor[pivots]
        weights = solve_triangular(square, b.reshape(len(pivots), -1), lower=True, trans="T")
        return pivots, weights


@dataclass(eq=False, repr=False)
class FunctionalGradient(KernelMachine):
    """Functional gradient descent on all samples (FGD): POLK with one mini-batch, uncompressed.

    f <- (1 - 2 c eta lambda) f - (eta / n) sum_i l'(f(x_i), y_i) k(x_i, .), with c = 1 for the
    hinge loss and 1/2 for the logistic one. Every sample is stored.
    """

    loss: str = "logistic"  # or "hinge"
    learning_rate: float = 1.0  # the step eta
    iterations: int = 1000
    max_samples: int | None = None  # use no more than these: the Gram matrix must fit in memory

    def _learn(self, X: Array, y: Labels) -> tuple[NDArray[np.intp], Array]:
        X, y = X[: self.max_samples], y[: self.max_samples]
        gram = np.asarray(self.kernel(X, X))
        weights = np.zeros((len(X), len(self.classes_)))
        shrink = 1 - 2 * PENALTY[self.loss] * self.learning_rate * self.regularization
        for _ in range(self.iterations):
            _, slopes = LOSSES[self.loss](gram @ weights, y)
            weights = shrink * weights - self.learning_rate / len(X) * slopes
        return np.arange(len(X)), weights

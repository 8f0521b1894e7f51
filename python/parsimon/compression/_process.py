"""Gaussian processes: how sure they are, with few points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.special import erf

from parsimon.kernels import Kernel

Array = NDArray[np.float64]

# More training samples than these, and no bound on the standard deviation is computed: it takes the
# cube of their number.
_MOST_BOUNDED = 4000

# A sum of error functions that is the logistic function, as scikit-learn has it.
_LAMBDAS = np.array([0.41, 0.4, 0.37, 0.44, 0.39])
_COEFFICIENTS = np.array([-1854.8214151, 3516.89893646, 221.29346712, 128.12323805, -2010.49422654])


def explained_root(
    kernel: Kernel, X: Array, explain: Callable[[Array], Array], few: Array
) -> tuple[Array, float]:
    """Return how a process on the samples X explains variance, in terms of few points.

    ``explain`` multiplies by L^-1, with k(x, x) - |L^-1 k(X, x)|^2 the variance at x; L^-1 is any
    matrix with a column for each sample. Returns R with |R' k(few, x)|^2 the part that is explained
    with k(x, .) replaced by its projection onto the span of the few points, and a bound on the
    change of the variance, relative to k(x, x); infinity if there are too many samples to compute
    one.
    """
    gram = kernel(few)
    mixed = kernel(few, X)
    # k(X, x) becomes K(X, few) K(few, few)^-1 k(few, x).
    share = explain(mixed.T)
    root = linalg.cho_solve((cholesky(gram, ridge=1e-12), True), share.T)
    if root.shape[1] > root.shape[0]:  # as many columns as points are enough
        root = linalg.qr(root.T, mode="r")[0][: len(few)].T
    if len(X) > _MOST_BOUNDED:
        return root, float("inf")
    # In the coordinates of the span of all samples and points: S is what is explained, P the
    # projection.
    everything, places = np.unique(np.vstack([X, few]), axis=0, return_inverse=True)
    values, vectors = linalg.eigh(kernel(everything))
    kept = values > 1e-12 * values[-1]
    turned = (vectors[:, kept] * np.sqrt(values[kept]))[places.ravel()]
    half = explain(turned[: len(X)])
    basis = linalg.qr(turned[len(X) :].T, mode="economic")[0]
    projected = (half @ basis) @ basis.T
    change = half.T @ half - projected.T @ projected
    return root, float(np.abs(linalg.eigvalsh(change)).max(initial=0.0))


def cholesky(matrix: Array, ridge: float = 0.0) -> Array:
    """Return lower L with L L' the matrix, plus a multiple of I that is no larger than it must be.

    ``ridge`` is the smallest multiple, relative to the largest entry of the diagonal. Where
    rounding eats it up, it grows until there is an L.
    """
    scale = max(float(np.abs(np.diag(matrix)).max(initial=0.0)), 1e-300)
    while ridge <= 1:
        try:
            damped = matrix + ridge * scale * np.eye(len(matrix))
            return np.asarray(linalg.cholesky(damped, lower=True))
        except linalg.LinAlgError:
            ridge = max(10 * ridge, 1e-15)
    raise ValueError(
        "The kernel is not positive definite on the points of the model: it cannot be compressed."
    )


def averaged_logistic(mean: Array, variance: Array) -> Array:
    """Return the mean of the logistic function of a normal variable, as scikit-learn does."""
    variance = np.maximum(variance, 1e-300)
    alpha = 1 / (2 * variance)
    gamma = _LAMBDAS[:, None] * mean
    integrals = (
        np.sqrt(np.pi / alpha)
        * erf(gamma * np.sqrt(alpha / (alpha + _LAMBDAS[:, None] ** 2)))
        / (2 * np.sqrt(variance * 2 * np.pi))
    )
    found: Any = (_COEFFICIENTS[:, None] * integrals).sum(axis=0) + 0.5 * _COEFFICIENTS.sum()
    return np.column_stack([1 - found, found])

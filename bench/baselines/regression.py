"""What the SLKL paper compares with: kernel ridge regression, full, on few points, of low rank.

Each takes training data, test points, a bandwidth (the Gaussian exp(-d^2 / 2 bandwidth^2)) and the
points that it may use, and returns predictions at the test points. The ridge is 1, as in the paper.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel

from bench.baselines.intensity import Array, orthonormal

RIDGE = 1.0


def gaussian(X: Array, Y: Array, bandwidth: float) -> Array:
    return np.asarray(rbf_kernel(X, Y, gamma=1 / (2 * bandwidth**2)))


def kernel_ridge(X: Array, y: Array, at: Array, bandwidth: float) -> Array:
    """Kernel ridge regression on these samples: KRRn on all of them, KRRM on M."""
    model = KernelRidge(alpha=RIDGE, kernel="rbf", gamma=1 / (2 * bandwidth**2))
    return np.asarray(model.fit(X, y).predict(at))


def uniform(X: Array, y: Array, at: Array, bandwidth: float, points: Array) -> Array:
    """Ridge regression with the mean of the rank-one kernels, what SLKL learns to weight."""
    return _ridge(X, y, at, bandwidth, points, np.eye(len(points)) / np.sqrt(len(points)))


def nystroem(X: Array, y: Array, at: Array, bandwidth: float, points: Array) -> Array:
    """Ridge regression with the Nystroem approximation of the kernel on these points."""
    to_features = orthonormal(gaussian(points, points, bandwidth))
    return _ridge(X, y, at, bandwidth, points, to_features)


def _ridge(
    X: Array, y: Array, at: Array, bandwidth: float, points: Array, to_features: Array
) -> Array:
    """Ridge regression on the features k(x, points) @ to_features."""
    features = gaussian(X, points, bandwidth) @ to_features
    normal = features.T @ features
    normal[np.diag_indices_from(normal)] += RIDGE
    weights = linalg.solve(normal, features.T @ y, assume_a="pos", overwrite_a=True)
    return np.asarray(gaussian(at, points, bandwidth) @ (to_features @ weights))

"""Warnings about settings that work but are probably mistakes: what was seen, and what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from ._affine import MANY_FEATURES, affine
from ._checks import is_number, warn
from .kernels import Kernel

# Samples that are looked at.
_SOME = 1000
# A feature that varies by less than this, relative to the widest, hardly counts in a distance.
_NARROW = 0.01
# A model that keeps more than this share of so many samples does not stay small.
_LARGE_SHARE = 0.5
_FEWEST_SAMPLES = 1000
# Samples whose distances are looked at, and how much of their mean these vary where all are alike.
_FEW = 100
_ALIKE = 0.2
# Bytes of points that are worth a warning.
_MUCH = 1e9
_RADIAL = ("rbf", "gaussian", "laplacian", "matern", "cauchy", "student_t")


def warn_of_features(estimator: Any, X: Any) -> None:
    """Say what is wrong with the features of samples, before hours are spent on learning them."""
    warn_of_features_out_of_scale(estimator, X)
    if not warn_of_equal_distances(estimator, X):
        warn_of_dense_points(estimator, X)


def warn_of_features_out_of_scale(estimator: Any, X: Any) -> None:
    """Warn if half of the features hardly count beside the widest one."""
    if sparse.issparse(X) or not isinstance(getattr(estimator, "kernel", None), str):
        return
    if hasattr(estimator, "bandwidth"):  # which each feature has of its own
        return
    some = np.asarray(X[:: max(1, len(X) // _SOME)], dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        spread = some.std(axis=0)
    varying = np.sort(spread[spread > 0])
    if len(some) < 2 or len(varying) < 2 or not np.isfinite(varying[-1]):
        return
    typical = varying[(len(varying) - 1) // 2]
    if typical >= _NARROW * varying[-1]:
        return
    warn(
        f"Feature {int(spread.argmax())} has a standard deviation of {varying[-1]:.3g}, half of "
        f"the others {typical:.3g} or less: a kernel compares samples by all features together, "
        f"so these hardly count. Scale them first, with sklearn.preprocessing.StandardScaler or "
        f"parsimon.stream.StreamingPipeline."
    )


def warn_of_equal_distances(estimator: Any, X: Any) -> bool:
    """Warn of a radial kernel that was asked for where all samples are equally far apart.

    Returns whether it did.
    """
    kernel, (count, features) = getattr(estimator, "kernel", None), X.shape
    if features <= MANY_FEATURES or count < 3 or not _is_radial(kernel):
        return False
    some = X[:: max(1, count // _FEW)]
    products = some @ some.T
    products = np.asarray(products.toarray() if sparse.issparse(products) else products, float)
    squares = products.diagonal()
    apart = (squares[:, None] + squares - 2 * products)[np.triu_indices(len(squares), 1)]
    with np.errstate(over="ignore", invalid="ignore"):
        alike = bool(apart.std() < _ALIKE * apart.mean())
    if not alike:
        return False
    warn(
        f"{features:,} features: all samples are about equally far apart, which is all that the "
        f"kernel {kernel!r} sees of them, and each point of the model takes {features:,} numbers. "
        f"Use kernel='linear' on rows of norm 1."
    )
    return True


def warn_of_dense_points(estimator: Any, X: Any) -> None:
    """Warn of a kernel that makes points of sparse samples which fill the memory."""
    kernel, (count, features) = getattr(estimator, "kernel", None), X.shape
    if not sparse.issparse(X) or features <= MANY_FEATURES or _stays_sparse(kernel):
        return
    cap: Any = getattr(estimator, "max_points", None)
    points = min(count, int(cap) if is_number(cap) else _SOME)
    if 8 * points * features <= _MUCH:
        return
    warn(
        f"{features:,} features, and the points of a kernel other than the linear one are dense: "
        f"{points:,} of them take {8e-9 * points * features:.1f} GB. Use kernel='linear', a "
        f"smaller max_points, or fewer features."
    )


def _stays_sparse(kernel: Any) -> bool:
    if isinstance(kernel, Kernel):
        return affine(kernel) is not None
    return kernel in ("auto", "linear", "precomputed")


def _is_radial(kernel: Any) -> bool:
    if isinstance(kernel, Kernel):
        return any(name + "(" in kernel.core.describe() for name in _RADIAL)
    return kernel in _RADIAL


def warn_of_growth(estimator: Any, model: Any, samples: int) -> None:
    """Warn if a model without a cap has kept most samples, in however many passes over them.

    Where a stream goes on from a fit, those of all its epochs count.
    """
    order = model.model_order - estimator._kept_points(model)
    if samples < _FEWEST_SAMPLES or order < _LARGE_SHARE * samples or not _is_unbounded(estimator):
        return
    warn(
        f"The model has kept {order:,} of {samples:,} samples and grows with every one: give a "
        f"larger budget or parsimony, a wider kernel, or a cap (max_points).",
        ConvergenceWarning,
    )


def _is_unbounded(estimator: Any) -> bool:
    cap = getattr(estimator, "max_points", None)
    given = estimator.get_params(deep=False)
    if is_number(cap) or given.get("budget") == 0 or given.get("parsimony") == 0:
        return False  # nothing else was asked for
    chosen = given.get("budget") is None and isinstance(given.get("parsimony"), str)
    left_to_us = isinstance(cap, str) and chosen and given.get("solver", "newton") == "newton"
    return not left_to_us

"""Warnings about what works but is hardly meant: each says what was seen and what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from ._checks import is_number, warn

# Samples that are looked at.
_SOME = 1000
# A feature that varies by less than this, relative to the widest, hardly counts in a distance.
_NARROW = 0.01
# A model that keeps more than this share of so many samples does not stay small.
_LARGE_SHARE = 0.5
_FEWEST_SAMPLES = 1000


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


def warn_of_growth(estimator: Any, model: Any) -> None:
    """Warn if a model without a cap has kept most of its samples."""
    samples, order = model.samples, model.model_order - estimator._kept_points(model)
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

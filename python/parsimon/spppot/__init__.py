"""SPPPOT: positive functions from streams, for intensities, densities and classification."""

from __future__ import annotations

from typing import Any

import numpy as np

from parsimon.kernels import Kernel

from ._classifier import SPPPOTClassifier
from ._hybrid import HybridIntensity
from ._intensity import SPPPOTIntensity
from ._newton import MirrorNewtonIntensity

__all__ = [
    "HybridIntensity",
    "MirrorNewtonIntensity",
    "SPPPOTClassifier",
    "SPPPOTIntensity",
    "from_core_entries",
]

ALGORITHMS: dict[str, Any] = {
    "spppot": SPPPOTIntensity,
    "mirror_newton": MirrorNewtonIntensity,
    "hybrid": HybridIntensity,
}


def from_core_entries(entries: dict[str, Any], kernel: Kernel) -> tuple[Any, dict[str, Any]]:
    """Return an estimator for a model that a C++ program saved, and its fitted attributes."""
    domain = np.column_stack([entries["domain.lower"], entries["domain.upper"]])
    estimator = ALGORITHMS[entries["algorithm"]](kernel=kernel, domain=domain)
    fitted = {
        "n_features_in_": entries["features"],
        "domain_": domain,
        "n_rejected_": 0,
        "_fit_points_": 0,
        "_fit_samples_": 0,
        "_validation_": np.empty((0, 2)),
    }
    return estimator, fitted

"""SPPPOT: positive functions from streams, for intensities, densities and classification."""

from ._estimators import (
    HybridIntensity,
    MirrorNewtonIntensity,
    SPPPOTClassifier,
    SPPPOTIntensity,
)
from ._marks import MarkedIntensity

__all__ = [
    "HybridIntensity",
    "MarkedIntensity",
    "MirrorNewtonIntensity",
    "SPPPOTClassifier",
    "SPPPOTIntensity",
]

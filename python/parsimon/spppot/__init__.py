"""SPPPOT: positive functions from streams, for intensities, densities and classification."""

from ._estimators import (
    HybridIntensity,
    MirrorNewtonIntensity,
    SPPPOTClassifier,
    SPPPOTIntensity,
)

__all__ = ["HybridIntensity", "MirrorNewtonIntensity", "SPPPOTClassifier", "SPPPOTIntensity"]

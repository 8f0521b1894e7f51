"""Kernel models of any origin with fewer points, and what they become."""

from ._compress import compress
from ._models import (
    CompressedClassifier,
    CompressedDensity,
    CompressedOneClass,
    CompressedRegressor,
)
from ._report import ModelReport

__all__ = [
    "CompressedClassifier",
    "CompressedDensity",
    "CompressedOneClass",
    "CompressedRegressor",
    "ModelReport",
    "compress",
]

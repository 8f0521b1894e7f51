"""Online learning with kernels whose memory stays small."""

from . import datasets, kernels, plotting, schedules
from ._build import __version__, build_info, get_cmake_dir, get_include
from ._core import DivergenceError
from ._io import load
from .expansion import CompressionReport, KernelExpansion, komp
from .polk import POLKClassifier, POLKRegressor

__all__ = [
    "CompressionReport",
    "DivergenceError",
    "KernelExpansion",
    "POLKClassifier",
    "POLKRegressor",
    "__version__",
    "build_info",
    "datasets",
    "get_cmake_dir",
    "get_include",
    "kernels",
    "komp",
    "load",
    "plotting",
    "schedules",
]

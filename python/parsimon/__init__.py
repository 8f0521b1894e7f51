"""Online learning with kernels whose memory stays small."""

from . import (
    compression,
    datasets,
    explain,
    export,
    goodness_of_fit,
    kernels,
    metrics,
    plotting,
    schedules,
    stream,
)
from ._build import __version__, build_info, get_cmake_dir, get_include
from ._core import DivergenceError
from ._io import load
from ._threads import get_num_threads, set_num_threads
from .bsgd import BSGDClassifier, BSGDRegressor
from .colk import COLKClassifier, COLKRegressor, CompositionalLearner, PolicyEvaluator, QLearner
from .compression import compress
from .expansion import CompressionReport, KernelExpansion, komp
from .novelty import POLKOneClass
from .polk import POLKClassifier, POLKRegressor
from .slkl import SLKLClassifier, SLKLRegressor, SLKLRegressorCV, sparsity_path
from .spppot import (
    HybridIntensity,
    MarkedIntensity,
    MirrorNewtonIntensity,
    SPPPOTClassifier,
    SPPPOTIntensity,
)

__all__ = [
    "BSGDClassifier",
    "BSGDRegressor",
    "COLKClassifier",
    "COLKRegressor",
    "CompositionalLearner",
    "CompressionReport",
    "DivergenceError",
    "HybridIntensity",
    "KernelExpansion",
    "MarkedIntensity",
    "MirrorNewtonIntensity",
    "POLKClassifier",
    "POLKOneClass",
    "POLKRegressor",
    "PolicyEvaluator",
    "QLearner",
    "SLKLClassifier",
    "SLKLRegressor",
    "SLKLRegressorCV",
    "SPPPOTClassifier",
    "SPPPOTIntensity",
    "__version__",
    "build_info",
    "compress",
    "compression",
    "datasets",
    "explain",
    "export",
    "get_cmake_dir",
    "get_include",
    "get_num_threads",
    "goodness_of_fit",
    "kernels",
    "komp",
    "load",
    "metrics",
    "plotting",
    "schedules",
    "set_num_threads",
    "sparsity_path",
    "stream",
]

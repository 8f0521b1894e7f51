"""The words that hyper-parameters may be, as types, so that editors complete them.

What an estimator checks when it runs are its tables of words; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from numpy.typing import NDArray

from .kernels import Kernel
from .schedules import PowerLaw

Auto = Literal["auto"]

KernelName = Literal[
    "auto", "rbf", "gaussian", "laplacian", "matern", "cauchy", "poly", "polynomial", "linear"
]
AnyKernel = Kernel | KernelName
Gamma = float | Literal["auto", "scale", "median"]
ClassifierLoss = Literal["hinge", "squared_hinge", "logistic", "log_loss"]
ClassWeight = Mapping[Any, float] | Literal["balanced"] | None
Schedule = PowerLaw | Literal["constant", "inverse", "sqrt"]
Solver = Literal["newton", "sgd"]
CompressionRule = Literal["remove", "merge"]
Maintenance = Literal["remove", "project", "merge", "nonparametric"]
Refine = bool | tuple[Literal["points"]]
Precision = Literal["float64", "float32"]

Risk = Literal[
    "semideviation",
    "semivariance",
    "moments",
    "cvar",
    "root_semideviation",
    "entropic",
    "kl",
    "chi_square",
]
PolicyMethod = Literal["lstd", "td", "gtd"]
QMethod = Literal["q", "sarsa"]

SLKLKernel = Kernel | KernelName | Literal["precomputed"]
Columns = (
    Literal["random", "kmeans++", "leverage"] | Sequence[int] | NDArray[Any] | Callable[[Any], Any]
)
CoordinateStep = Literal["exact", "newton"]
Selection = Literal["uniform", "shrinking"]
SparsityRule = Literal["best", "one_standard_error"]

DensityKernel = Kernel | Literal["rbf", "gaussian", "laplacian", "matern", "cauchy", "student_t"]
Bandwidth = float | Sequence[float] | NDArray[Any] | Literal["auto", "silverman"]
GridSize = int | Sequence[int] | NDArray[Any] | Auto
Scales = Literal["auto", 1, 2]
Mirror = Literal["kl", "euclidean", "mahalanobis"]
Gradient = Literal["likelihood", "kernel_embedding", "sign"]
MirrorMethod = Literal["mirror_descent", "dual_averaging"]

"""SLKL: regression with a learned low-rank kernel."""

from ._cv import SLKLRegressorCV
from ._estimators import SLKLClassifier, SLKLRegressor
from ._path import SparsityPath, sparsity_path

__all__ = ["SLKLClassifier", "SLKLRegressor", "SLKLRegressorCV", "SparsityPath", "sparsity_path"]

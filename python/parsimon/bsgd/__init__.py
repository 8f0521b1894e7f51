"""BSGD: budgeted stochastic gradient descent, with a hard cap on the points of a model."""

from ._classifier import BSGDClassifier
from ._regressor import BSGDRegressor

__all__ = ["BSGDClassifier", "BSGDRegressor"]

"""COLK: objectives that are a nonlinear function of an expectation: risk, value functions."""

from ._compositional import CompositionalLearner
from ._estimators import COLKClassifier, COLKRegressor
from ._policy import PolicyEvaluator
from ._q_learner import QLearner

__all__ = ["COLKClassifier", "COLKRegressor", "CompositionalLearner", "PolicyEvaluator", "QLearner"]

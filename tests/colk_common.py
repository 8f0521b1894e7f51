"""What the tests of COLK share: the paper's settings, and samples with outliers."""

import pytest

from parsimon import kernels
from parsimon.datasets import make_regression_outliers

RISKS = ["semideviation", "semivariance", "moments", "cvar"]
# Section V of the paper; the budget is K alpha^2 with K = 5.
PAPER = {
    "risk": "moments",
    "risk_weight": 0.1,
    "loss": "squared(2)",
    "kernel": kernels.Gaussian(0.06),
    "learning_rate": 0.02,
    "tracking_rate": 0.01,
    "parsimony": 5.0,
    "batch_size": 2,
    "epochs": 1,
    "regularization": 1e-6,
    "normalize_y": False,
    "shuffle": False,
}
GIVEN = {**PAPER, "learning_rate": 0.1, "parsimony": 0.5, "batch_size": 8}

every_risk = pytest.mark.parametrize("risk", RISKS)


def outliers(count=600, kind="one-sided", seed=0):
    return make_regression_outliers(count, outliers=kind, random_state=seed)

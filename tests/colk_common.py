"""What the tests of COLK share: the paper's settings, samples with outliers, estimators."""

import numpy as np
import pytest
from polk_common import task

from parsimon import COLKClassifier, COLKRegressor, PolicyEvaluator, kernels
from parsimon.datasets import make_regression_outliers
from parsimon.schedules import AdaptiveBudget, PowerLaw

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
    "solver": "sgd",
}
GIVEN = {**PAPER, "learning_rate": 0.1, "parsimony": 0.5, "batch_size": 8}

every_risk = pytest.mark.parametrize("risk", RISKS)


def outliers(count=600, kind="one-sided", seed=0):
    return make_regression_outliers(count, outliers=kind, random_state=seed)


FALLING = {"schedule": PowerLaw(0.9, 20), "tracking_schedule": PowerLaw(0.7, 5)}
POLICY = {"gamma": 20.0, "random_state": 0}
ESTIMATORS = {
    **{risk: lambda risk=risk: COLKRegressor(**{**GIVEN, "risk": risk}) for risk in RISKS},
    "no risk": lambda: COLKRegressor(None, random_state=0),
    "no clip": lambda: COLKRegressor(
        **{**GIVEN, "risk": "semivariance", "clip": None, "risk_weight": 0.01}
    ),
    "defaults": lambda: COLKRegressor(epochs=2, random_state=0),
    "falling": lambda: COLKRegressor(**GIVEN, **FALLING),
    "held order": lambda: COLKRegressor(budget=AdaptiveBudget(12), epochs=3, random_state=0),
    "last iterate": lambda: COLKRegressor(**GIVEN, average=False),
    "no compression": lambda: COLKRegressor(**{**GIVEN, "parsimony": 0.0}),
    "two targets": lambda: COLKRegressor(**GIVEN),
    "solved": lambda: COLKRegressor("moments", batch_size=8, random_state=0),
    "solved classes": lambda: COLKClassifier(epochs=2, random_state=0),
    "classes": lambda: COLKClassifier(solver="sgd", epochs=2, random_state=0),
    "two classes": lambda: COLKClassifier(
        "cvar", level=0.5, solver="sgd", epochs=2, random_state=0
    ),
    "lstd": lambda: PolicyEvaluator(**POLICY),
    "gtd": lambda: PolicyEvaluator("gtd", **POLICY),
    "td": lambda: PolicyEvaluator("td", schedule="sqrt", average=False, **POLICY),
    "policy, held order": lambda: PolicyEvaluator(budget=AdaptiveBudget(8), **POLICY),
}


def data(name, model):
    if isinstance(model, PolicyEvaluator):
        random = np.random.RandomState(0)
        states = random.uniform(size=(400, 1))
        following = np.clip(states + 0.1 * random.randn(400, 1), 0, 1)
        return states, np.sin(6 * states[:, 0]), following, random.uniform(size=400) < 0.1
    if isinstance(model, COLKClassifier):
        X, y = task()
        return X, np.array(["no", "yes"])[y % 2] if name == "two classes" else y
    X, y = outliers(400)
    return X, np.column_stack([y, X[:, 0] ** 2]) if name == "two targets" else y


def fitted(name, samples=100):
    """Return one of the estimators, trained on few samples."""
    model = ESTIMATORS[name]()
    return model.fit(*(block[:samples] for block in data(name, model)))

"""COLK: objectives that are a nonlinear function of an expectation: risk, value functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from parsimon.kernels import Kernel

from ._classifier import COLKClassifier
from ._compositional import CompositionalLearner
from ._policy import PolicyEvaluator
from ._regressor import COLKRegressor

__all__ = [
    "COLKClassifier",
    "COLKRegressor",
    "CompositionalLearner",
    "PolicyEvaluator",
    "from_core_entries",
]


def from_core_entries(entries: dict[str, Any], kernel: Kernel) -> tuple[Any, dict[str, Any]]:
    """Return an estimator for a model that a C++ program saved, and its fitted attributes."""
    fitted: dict[str, Any] = {"n_features_in_": entries["features"]}
    settings: dict[str, Any] = {
        "kernel": kernel,
        "learning_rate": float(entries["step.parameters"][0]),
        "regularization": entries["regularization"],
        "average": bool(entries["average"]),
    }
    if entries["algorithm"] == "policy_evaluation":
        settings |= {"method": "gtd" if entries["gradient"] else "td"}
        return PolicyEvaluator(discount=entries["discount"], **settings), fitted
    weight, parameter, clip = entries["risk.parameters"].tolist()
    risk = entries["risk"]
    settings |= {
        "risk": None if risk == "none" else risk,
        "risk_weight": weight,
        "clip": clip or None,
    }
    if risk == "cvar":
        settings["level"] = parameter
    elif risk == "moments":
        settings["moment_order"] = int(parameter)
    loss, outputs = entries["loss"], entries["outputs"]
    if loss.startswith(("binary_", "multiclass_")):
        return COLKClassifier(**settings), {**fitted, "classes_": np.arange(max(2, outputs))}
    fitted |= {
        "intercept_": np.zeros(outputs),
        "_scale_": np.ones(outputs),
        "_single_": outputs == 1,
    }
    return COLKRegressor(loss=loss, normalize_y=False, **settings), fitted

"""POLK: parsimonious online learning with kernels, for classification and regression."""

from __future__ import annotations

from typing import Any

import numpy as np

from parsimon.kernels import Kernel
from parsimon.schedules import PowerLaw

from ._classification import POLKClassification
from ._classifier import POLKClassifier
from ._common import POLK
from ._regression import POLKRegression
from ._regressor import POLKRegressor

__all__ = [
    "POLK",
    "POLKClassification",
    "POLKClassifier",
    "POLKRegression",
    "POLKRegressor",
    "from_core_entries",
]


# More outputs than any model has; those of a file are not allocated before they are believed.
_MOST_OUTPUTS = 1 << 20


def from_core_entries(entries: dict[str, Any], kernel: Kernel) -> tuple[Any, dict[str, Any]]:
    """Return an estimator for a model that a C++ program saved, and its fitted attributes."""
    loss, outputs = entries["loss"], entries["outputs"]
    if outputs > _MOST_OUTPUTS:
        raise ValueError(f"The model file has {outputs} outputs; at most {_MOST_OUTPUTS} can be.")
    settings: dict[str, Any] = {
        "kernel": kernel,
        "learning_rate": float(entries["step.parameters"][0]),
        "regularization": entries["regularization"],
        "average": bool(entries["average"]),
    }
    if entries["step"] == "power_law":
        settings["schedule"] = PowerLaw(*entries["step.parameters"][1:].tolist())
    budget = {"fixed": "budget", "parsimony": "parsimony"}.get(entries["budget"])
    if budget is not None:
        settings[budget] = float(entries["budget.parameters"][0])
    fitted: dict[str, Any] = {"n_features_in_": entries["features"]}
    if loss == "mirror_logistic":
        from parsimon.spppot import SPPPOTClassifier

        return SPPPOTClassifier(**settings), {**fitted, "classes_": np.arange(outputs)}
    classifier: Any = POLKClassifier
    regressor: Any = POLKRegressor
    if entries.get("maintenance", "none") != "none":
        from parsimon import bsgd

        classifier, regressor = bsgd.BSGDClassifier, bsgd.BSGDRegressor
        settings["maintenance"] = entries["maintenance"]
        cap, rate = entries["maintenance.parameters"][:2].tolist()
        settings |= {"max_points": int(cap), "maintenance_rate": rate}
    if loss.startswith(("binary_", "multiclass_")):
        fitted["classes_"] = np.arange(max(2, outputs))
        return classifier(loss.split("_", 1)[1], **settings), fitted
    fitted |= {
        "intercept_": np.zeros(outputs),
        "_scale_": np.ones(outputs),
        "_single_": outputs == 1,
    }
    return regressor(loss, normalize_y=False, **settings), fitted

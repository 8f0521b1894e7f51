"""Estimators for model files that a C++ program wrote: the core's entries say what they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._core import Archive
from ._labels import Labels
from ._meaning import read_meaning
from ._settings import given_by
from ._targets import Targets
from ._types import PolicyMethod
from .bsgd import BSGDClassifier, BSGDRegressor
from .colk import COLKClassifier, COLKRegressor, PolicyEvaluator
from .kernels import Kernel
from .polk import POLKClassifier, POLKRegressor
from .spppot import HybridIntensity, MirrorNewtonIntensity, SPPPOTClassifier, SPPPOTIntensity

# More outputs than any model has; those of a file are not allocated before they are believed.
_MOST_OUTPUTS = 1 << 20

Estimator = tuple[Any, dict[str, Any]]


def from_core_file(archive: Archive, kernel: Kernel) -> Estimator:
    """Return an estimator with the settings of the model in a file, and its fitted attributes."""
    algorithm = archive["algorithm"]
    if algorithm not in _ALGORITHMS:
        raise ValueError(
            f"The file holds a model of the algorithm {algorithm!r}, for which there is no "
            f"estimator that a file can tell; there is for {', '.join(_ALGORITHMS)}."
        )
    estimator, fitted = _ALGORITHMS[algorithm](archive, kernel)
    return estimator, {"n_features_in_": archive["features"], **fitted}


def _learned(archive: Archive, classifier: Any, regressor: Any, given: Any) -> Estimator:
    """Return what the loss tells, a classifier or a regressor."""
    loss, outputs = archive["loss"], archive["outputs"]
    if outputs > _MOST_OUTPUTS:
        raise ValueError(f"The model file has {outputs} outputs; at most {_MOST_OUTPUTS} can be.")
    told = read_meaning(archive, outputs)
    if loss == "mirror_logistic":
        return SPPPOTClassifier(**given), Labels(np.arange(outputs)).fitted() | told
    if loss.startswith(("binary_", "multiclass_")):
        if "loss" in classifier._get_param_names():
            given["loss"] = loss.split("_", 1)[1]
        return classifier(**given), Labels(np.arange(max(2, outputs))).fitted() | told
    targets = Targets(np.zeros(outputs), np.ones(outputs), outputs == 1)
    return regressor(loss=loss, normalize_y=False, **given), targets.fitted() | told


def _polk(archive: Archive, kernel: Kernel) -> Estimator:
    given = given_by(archive, "parsimony") | {"kernel": kernel}
    polk = given | _solver(archive)
    rule = archive.get("maintenance", "none")
    if "unite" in rule:
        polk["compression"] = "merge"
        if not len(archive["maintenance.parameters"]):
            return _learned(archive, POLKClassifier, POLKRegressor, polk)
    if rule == "none":
        return _learned(archive, POLKClassifier, POLKRegressor, polk)
    cap, rate = archive["maintenance.parameters"][:2].tolist()
    words = ("budget", "parsimony")
    if rule.startswith("growing"):  # a cap that grows is one that is left to us
        polk = {name: value for name, value in polk.items() if name not in words}
        return _learned(archive, POLKClassifier, POLKRegressor, polk | {"max_points": "auto"})
    # BSGD has a cap and no budget; POLK may have both. If weights are solved, they are the same.
    if rule == "unite" or (rule == "project" and (given.get("budget") != 0 or "newton" in archive)):
        return _learned(archive, POLKClassifier, POLKRegressor, polk | {"max_points": int(cap)})
    bsgd = {name: value for name, value in polk.items() if name not in words}
    bsgd |= {"max_points": int(cap), "maintenance": rule, "maintenance_rate": rate}
    return _learned(archive, BSGDClassifier, BSGDRegressor, bsgd)


def _solver(archive: Archive) -> dict[str, Any]:
    """Return how the weights of POLK and BSGD are found."""
    if archive["loss"] == "mirror_logistic":  # SPPPOT's, which has no choice
        return {}
    if "newton" not in archive:
        return {"solver": "sgd", "max_points": None}
    ridge, per_sample, half_life, adapts = archive["newton"].tolist()
    given: dict[str, Any] = {"solver": "newton", "max_points": None}
    given["half_life"] = "auto" if adapts else half_life or None
    if ridge > 0 and not per_sample > 0:  # one that was given would be for each sample
        given["regularization"] = "auto"
    return given


def _colk(archive: Archive, kernel: Kernel) -> Estimator:
    weight, parameter, clip = archive["risk.parameters"].tolist()
    risk = archive["risk"]
    given = given_by(archive, "step_squared") | {
        "kernel": kernel,
        "risk": None if risk == "none" else risk,
        "risk_weight": weight,
        "clip": clip or None,
        "solver": "sgd",
    }
    given.pop("schedule", None)
    if risk == "cvar":
        given["level"] = parameter
    elif risk == "moments":
        given["moment_order"] = int(parameter)
    return _learned(archive, COLKClassifier, COLKRegressor, given)


def _policy(archive: Archive, kernel: Kernel) -> Estimator:
    method: PolicyMethod = "gtd" if archive["gradient"] else "td"
    given = given_by(archive, "step_squared")
    return PolicyEvaluator(method, discount=archive["discount"], kernel=kernel, **given), {}


def _density(archive: Archive, kernel: Kernel) -> Estimator:
    domain = np.column_stack([archive["domain.lower"], archive["domain.upper"]])
    estimators: dict[str, Any] = {
        "spppot": SPPPOTIntensity,
        "mirror_newton": MirrorNewtonIntensity,
        "hybrid": HybridIntensity,
    }
    return estimators[archive["algorithm"]](kernel=kernel, domain=domain), {
        "domain_": domain,
        "n_rejected_": 0,
        "_fit_points_": 0,
        "_fit_samples_": 0,
        "_validation_": np.empty((0, 2)),
    }


def _slkl(archive: Archive, kernel: Kernel) -> Estimator:
    raise ValueError(
        f"The file holds a function with {len(archive['weights'])} points and the kernel "
        f"{kernel!r} that SLKL has learned, but no estimator; only a file that an estimator's save "
        f"method wrote can be loaded."
    )


_ALGORITHMS = {
    "polk": _polk,
    "colk": _colk,
    "policy_evaluation": _policy,
    "spppot": _density,
    "mirror_newton": _density,
    "hybrid": _density,
    "slkl": _slkl,
}

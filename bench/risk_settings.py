"""The experiments on risk: data, the settings of every method, and what prototypes reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import parsimon
from parsimon import kernels

OUTLIERS = ("none", "symmetric", "one-sided")
SAMPLES = 24_000
TEST_SAMPLES = 60_000
# A seed for test samples that no training set has.
TEST_SEED = 10_000
LEVEL = 0.9

# The paper's; the budget is its 5 alpha^2.
SETTINGS: Mapping[str, Any] = {
    "loss": "squared(2)",
    "kernel": kernels.Gaussian(0.06),
    "learning_rate": 0.02,
    "budget": 0.002,
    "regularization": 0.0,
    "batch_size": 1,
    "epochs": 1,
    "shuffle": False,
    "average": True,
    "normalize_y": False,
    "refit": False,
}
# A pair of samples a step: one for the gradient, one for the expectation.
PAIRS: Mapping[str, Any] = {"batch_size": 2, "tracking_rate": 0.01, "risk_weight": 0.1}
MOMENTS: Mapping[str, Any] = {"risk": "moments", "moment_order": 4, **PAIRS}

LIDAR_EPOCHS = 100
LIDAR_FRACTION = 0.1
LIDAR_TEST = 0.2
# Mean and standard deviation of LIDAR's outliers: a quarter of those above, some ten times its
# noise. The reference does not say how large its own were.
LIDAR_OUTLIERS = {"none": (0.0, 0.0), "symmetric": (0.0, 0.75), "one-sided": (0.75, 0.25)}


@dataclass(frozen=True)
class Method:
    """An estimator with its settings, what prototypes reached, and what it must win.

    The references are those of last iterates, which are noisier than the averages that are measured
    here.
    """

    name: str
    estimator: str
    settings: Mapping[str, Any]
    # By kind of outliers: excess, and for the one-sided ones loss sd, 95 %, 99 %; NaN: diverges.
    reference: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def make(self, **given: Any) -> Any:
        settings = {**SETTINGS, **self.settings, **given}
        if self.estimator == "BSGDRegressor":
            del settings["refit"]  # it never does
        return getattr(parsimon, self.estimator)(**settings)

    @property
    def margins(self) -> tuple[float, float] | None:
        """The parts by which loss sd and 99 % must be below POLK's with one-sided outliers.

        Those of the references, as far as their digits tell; where there are none, any.
        """
        tail = self.reference.get("one-sided", ())
        if self.estimator != "COLKRegressor" or np.isnan(tail).any():
            return None
        if not tail:
            return 0.0, 0.0
        _, sd, _, quantile = tail
        polk_sd, polk_quantile = 2.41, 14.1
        return 1 - (sd + 0.005) / (polk_sd - 0.005), 1 - (quantile + 0.05) / (polk_quantile - 0.05)


def polk(name: str, *reference: Sequence[float], **settings: Any) -> Method:
    return Method(name, "POLKRegressor", settings, dict(zip(OUTLIERS, reference, strict=True)))


def colk(name: str, settings: Mapping[str, Any], *reference: Sequence[float]) -> Method:
    return Method(name, "COLKRegressor", settings, dict(zip(OUTLIERS, reference, strict=False)))


EQUAL_STEP = "POLK, alpha .02"
METHODS = (
    # The paper's rate and its own budget, 0.09 alpha^2.
    polk(
        "POLK, alpha .5",
        *([0.037], [0.34], [0.57, 3.12, 6.2, 16.1]),
        learning_rate=0.5,
        budget=0.0225,
    ),
    polk(EQUAL_STEP, [0.0011], [0.010], [0.036, 2.41, 0.64, 14.1]),
    colk("COLK, P = 4 as printed", {**MOMENTS, "clip": None}, *[[np.nan]] * 3),
    colk(
        "COLK, P = 4, clipped",
        MOMENTS,
        *([0.0011], [0.035], [0.13, 2.22, 1.07, 13.0]),
    ),
    colk(
        "COLK, semivariance",
        {**PAIRS, "risk": "semivariance"},
        *([0.0011], [0.034], [0.12, 2.24, 1.06, 13.1]),
    ),
    colk(
        "COLK, semideviation, weight .5",
        {**PAIRS, "risk": "semideviation", "risk_weight": 0.5},
    ),
    colk(
        "COLK, semideviation, weight 1",
        {**PAIRS, "risk": "semideviation", "risk_weight": 1.0},
    ),
    colk(
        "COLK, CVaR .9, alpha .005",
        {**PAIRS, "risk": "cvar", "risk_weight": 1.0, "level": LEVEL, "learning_rate": 0.005},
        *([0.0011], [0.071], [0.53, 1.76, 1.79, 10.4]),
    ),
    # Its middle is half as steep as the paper's squared loss: twice the rate is the same step.
    polk(
        "POLK, Huber c = .5",
        *([0.0011], [0.0014], [0.0022, 2.58, 0.39, 15.1]),
        loss="huber(0.5)",
        learning_rate=0.04,
    ),
)
LIDAR_METHODS = (
    polk("POLK", [0.0069], [0.0130], [0.0201]),
    colk("COLK, P = 4, clipped", MOMENTS, [0.0069], [0.0199], [0.0248]),
    polk(
        "POLK, Huber c = .1",
        *([0.0069], [0.0074], [0.0080]),
        loss="huber(0.1)",
        learning_rate=0.04,
    ),
)

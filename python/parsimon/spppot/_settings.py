"""The settings of Algorithm 1, which the hybrid estimator begins with too."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from parsimon import _core
from parsimon._checks import (
    check_choice,
    check_count,
    check_exclusive,
    check_flag,
    check_number,
)
from parsimon._settings import Schedule, check_budget, core_budget, core_step
from parsimon.schedules import AdaptiveBudget

from ._base import IntensityEstimator, Setting

MIRRORS = ("kl", "euclidean", "mahalanobis")
GRADIENTS = ("likelihood", "kernel_embedding", "sign")
METHODS = ("mirror_descent", "dual_averaging")

# Steps in units of the inverse curvature. The pseudo-gradients that divide by the density are as
# noisy as it is small somewhere; the sign has the size of its step wherever it points.
_BOLDNESS = {"likelihood": 0.5, "kernel_embedding": 0.003, "sign": 0.05}
# Iterates scatter around their average z by a variance of eta k(x, x) / (2 B), so that the density
# of the average falls short by half of that: the step that makes it 2 %.
_NOISE = 0.08
# Of what a mini-batch adds, in norm, the part that compression may take.
_PARSIMONY = 0.1
# The shrinkage of the estimate in units of one sample; see docs/defaults.md.
_SHRINKAGE = 0.1


class FirstOrder(IntensityEstimator):
    """An estimator that runs Algorithm 1, from the beginning at least."""

    parsimony: float | str
    budget: float | AdaptiveBudget | None
    batch_size: int
    gradient: str
    regularization: float | str
    mirror: str = "kl"
    method: str = "mirror_descent"
    average: bool = True

    def _mini_batch(self) -> int:
        return int(self.batch_size)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("mirror", self.mirror, MIRRORS)
        check_choice("gradient", self.gradient, GRADIENTS)
        check_choice("method", self.method, METHODS)
        check_number("regularization", self.regularization, positive=False, auto=True)
        check_number("parsimony", self.parsimony, positive=False, auto=True)
        check_count("batch_size", self.batch_size)
        check_flag("average", self.average)
        check_budget("budget", self.budget)
        check_exclusive(self, "budget", "parsimony")

    def _first_model(self, setting: Setting) -> Any:
        """Return the core's model of Algorithm 1."""
        rate = self._first_rate(setting)
        return _core.Spppot(
            setting.kernel.core,
            setting.domain,
            setting.quadrature,
            mirror=self._mirror(setting),
            gradient=self.gradient,
            dual_averaging=self.method == "dual_averaging",
            step=core_step(rate),
            budget=self._budget(rate, setting),
            regularization=self._shrinkage(rate, setting),
            average=bool(self.average),
        )

    def _first_rate(self, setting: Setting) -> float:
        given = self.learning_rate
        if not isinstance(given, str):
            return float(given)
        steep = setting.curvature
        divides = self.gradient == "kernel_embedding" or self.mirror != "kl"
        boldness = _BOLDNESS["kernel_embedding" if divides else self.gradient]
        quiet = _NOISE * self.batch_size / setting.largest_self
        return min(boldness / max(steep.data, steep.nodes), quiet)

    def _shrinkage(self, rate: float, setting: Setting) -> float:
        given = self.regularization
        if not isinstance(given, str):
            return float(given)
        # How many samples a stream will have is not known.
        return 0.0 if setting.streaming else min(_SHRINKAGE / len(setting.X), 0.25 / rate)

    def _mirror(self, setting: Setting) -> tuple[str, list[float]]:
        if self.mirror != "mahalanobis":
            return self.mirror, []
        # Half uniform, half a Gaussian with the moments of the data.
        width = setting.domain[:, 1] - setting.domain[:, 0]
        center = setting.X.mean(axis=0)
        deviation = np.maximum(setting.X.std(axis=0), width / 100)
        height = 0.5 * float(np.prod(width / (np.sqrt(2 * np.pi) * deviation)))
        return self.mirror, [height, *map(float, center), *map(float, deviation)]

    def _budget(self, rate: float, setting: Setting) -> Schedule:
        if not isinstance(self.parsimony, str):
            alpha = float(self.parsimony)
        else:
            alpha = _PARSIMONY * float(np.sqrt(setting.largest_self / self.batch_size))
            if self.method == "dual_averaging":
                alpha /= rate  # what is compressed there is z over the step
        return core_budget(self.budget, ("proportional", [alpha]), rate)

    def _kept_nodes(self) -> int:
        """Return how many points of the dictionary are nodes, which are never removed."""
        return len(self.nodes_)

    def _warn_if_target_is_out_of_reach(self) -> None:
        if not isinstance(self.budget, AdaptiveBudget):
            return
        target = self.budget.target
        nodes, order = self._kept_nodes(), self.model_order_
        if target < nodes:
            problem = f"below the {nodes} nodes of the grid, which are never removed"
        elif self._model.target_out_of_reach:
            more = self._model.target_out_of_reach > 0
            problem = f"{'more' if more else 'fewer'} points than the data need on this grid"
        elif abs(order - target) > 0.1 * target:
            problem = "still being approached; train for more epochs"
        else:
            return
        warnings.warn(
            f"The model order is {order}: the target of {target} is {problem}.",
            ConvergenceWarning,
            stacklevel=4,
        )

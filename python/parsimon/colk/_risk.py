"""Risk: what is minimised beside the mean loss, and how its steps are kept in bounds."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from parsimon import _auto, _core, schedules
from parsimon._base import TRACE_COLUMNS, Training
from parsimon._checks import check_choice, check_count, check_number, is_number
from parsimon._settings import Schedule, core_budget_under, core_step
from parsimon.kernels import Kernel
from parsimon.polk import POLK

RISKS = ("semideviation", "semivariance", "moments", "cvar")
# The papers' weight of a dispersion with powers; the largest for which the semideviation is convex
# would be 1.
_WEIGHTS = {"semideviation": 0.5, "semivariance": 0.1, "moments": 0.1, "cvar": 1.0}
_TRACKING = 0.1
RISK_COLUMNS = ("tracked", "mean", "dispersion", "clipped")


class RiskAware(POLK):
    """An estimator that may minimise risk beside the mean loss."""

    risk: str | None
    risk_weight: float | str
    moment_order: int
    level: float
    clip: float | None
    tracking_rate: float | str
    tracking_schedule: schedules.PowerLaw | str

    # Without risk it is POLK, and so is its model.
    _algorithms = ("colk", "polk")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.risk is not None:
            check_choice("risk", self.risk, RISKS)
        check_number("risk_weight", self.risk_weight, positive=False, auto=True)
        check_count("moment_order", self.moment_order)
        if self.moment_order < 2 or self.moment_order > 64:
            raise ValueError(f"moment_order must be from 2 to 64; got {self.moment_order!r}.")
        if not (is_number(self.level) and 0 < self.level < 1):
            raise ValueError(f"level must be between 0 and 1; got {self.level!r}.")
        if self.clip is not None:
            check_number("clip", self.clip, positive=True)
        check_number("tracking_rate", self.tracking_rate, positive=True, auto=True)
        if not isinstance(self.tracking_rate, str) and self.tracking_rate > 1:
            raise ValueError(f"tracking_rate must be at most 1; got {self.tracking_rate!r}.")
        if self.risk == "cvar" and self._weight() > 1:
            raise ValueError(
                f"risk_weight must be at most 1 with risk='cvar', which it mixes with the mean; "
                f"got {self.risk_weight!r}."
            )
        if self.batch_size < 2 and self.risk not in (None, "cvar"):
            raise ValueError(
                f"batch_size must be at least 2 with risk={self.risk!r}: one half of a mini-batch "
                f"tracks the mean loss of the other; got {self.batch_size!r}."
            )
        self._check_exponents()

    def _check_exponents(self) -> None:
        """Refuse power laws with which the theorem does not hold: the tracker must be faster."""
        law = schedules.resolve(self.schedule)
        tracking = schedules.resolve(self.tracking_schedule)
        if self.risk is None or (law is None and tracking is None):
            return
        if law is None or tracking is None:
            raise ValueError(
                f"schedule and tracking_schedule must both be constant or both fall; got "
                f"{self.schedule!r} and {self.tracking_schedule!r}."
            )
        if not (0.75 < law.power < 1 and 0.5 < tracking.power < 2 * law.power - 1):
            raise ValueError(
                f"The steps converge if schedule falls with a power pa between 3/4 and 1 and "
                f"tracking_schedule with a power between 1/2 and 2 pa - 1; got {law.power} and "
                f"{tracking.power}."
            )

    def _weight(self) -> float:
        if isinstance(self.risk_weight, str):
            return _WEIGHTS.get(str(self.risk), 0.0)
        return float(self.risk_weight)

    def _amplification(self) -> float:
        """Return by how much risk can make a sample's gradient longer."""
        weight = self._weight()
        if self.risk == "cvar":
            return 1 - weight + weight / (1 - self.level)
        if self.risk == "semideviation":
            return 1 + (weight if self.clip is None else min(weight, self.clip))
        return np.inf if self.clip is None else 1 + float(self.clip)

    def _new_model(self, training: Training, *, streaming: bool) -> tuple[Any, Kernel, int]:
        if self.risk is None:
            return super()._new_model(training, streaming=streaming)
        loss = self._core_loss(self._n_outputs(training))
        recipe = _auto.choose(self, training, loss, streaming=streaming)
        step = self._safe_step(recipe, training, loss)
        model = _core.Colk(
            recipe.kernel.core,
            loss,
            risk=self.risk,
            weight=self._weight(),
            parameter=float(self.level if self.risk == "cvar" else self.moment_order),
            clip=None if self.clip is None else float(self.clip),
            step=step,
            tracking=self._tracking(),
            budget=self._risk_budget(recipe.budget, step[1][0]),
            regularization=recipe.regularization,
            average=self.average,
            features=training.X.shape[1],
            outputs=self._n_outputs(training),
        )
        return model, recipe.kernel, recipe.epochs

    def _safe_step(self, recipe: Any, training: Training, loss: Any) -> tuple[str, list[float]]:
        """Return the step, made smaller if predictions would run away with it."""
        name, (rate, *rest) = recipe.step
        amplification = self._amplification()
        auto = isinstance(self.learning_rate, str)
        if auto:
            rate /= min(amplification, 2.0)
        if np.isinf(amplification) or loss.is_classification:
            return name, [rate, *rest]
        # Half of the mini-batch takes the step, the other half can be pushed back.
        half = max(1, self.batch_size // 2)
        stable = _auto.stable_rate(recipe.kernel, training, half) / (
            amplification * _curvature(loss)
        )
        if rate > stable and not auto:
            warnings.warn(
                f"learning_rate={self.learning_rate} is too large for these data: predictions "
                f"would run away. {stable:.3g} is used instead; choose a smaller learning_rate.",
                ConvergenceWarning,
                stacklevel=5,
            )
        return name, [min(rate, stable), *rest]

    def _tracking(self) -> Schedule:
        rate = _TRACKING if isinstance(self.tracking_rate, str) else float(self.tracking_rate)
        return core_step(rate, self.tracking_schedule)

    def _risk_budget(self, chosen: Schedule, rate: float) -> Schedule:
        if not isinstance(self.parsimony, str):
            chosen = "step_squared", [float(self.parsimony)]
        return core_budget_under(self.max_points, chosen, rate)

    def _refits(self) -> bool:
        return self.risk is None and super()._refits()

    @property
    def trace_(self) -> dict[str, NDArray[Any]]:
        """What each mini-batch did, in arrays of equal length."""
        model = self._state("trace_")
        if isinstance(model, _core.Colk):
            return full_trace(model)
        trace = super().trace_
        nothing = np.zeros_like(trace["loss"])
        columns = (trace["loss"], trace["loss"], nothing, nothing)
        return trace | dict(zip(RISK_COLUMNS, columns, strict=True))


def full_trace(model: Any) -> dict[str, NDArray[Any]]:
    """Return the core's two traces side by side."""
    # Of a copy, which is made in one access: another thread may be training.
    model = model.copy()
    types = TRACE_COLUMNS | dict.fromkeys(RISK_COLUMNS, np.float64)
    columns = np.hstack([model.trace, model.risk_trace]).T
    return {
        name: column.astype(dtype)
        for (name, dtype), column in zip(types.items(), columns, strict=True)
    }


def _curvature(loss: Any) -> float:
    """Return the largest second derivative of a loss of one number, 1 if it has only kinks."""
    _, slopes = loss.evaluate(np.array([[1e-6], [2e-6]]), np.zeros((2, 1)))
    return float(max(slopes[1, 0] - slopes[0, 0], 0.0) / 1e-6) or 1.0

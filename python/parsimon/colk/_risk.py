"""Risk: what is minimised beside the mean loss, and how its steps are kept in bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from parsimon import _auto, _core, schedules
from parsimon._checks import choice, count, is_number, number, warn
from parsimon._model import TRACE_COLUMNS, named_columns
from parsimon._settings import core_step
from parsimon._stream import Samples
from parsimon.kernels import Kernel
from parsimon.polk import new_polk, polk_budget

RISKS = ("semideviation", "semivariance", "moments", "cvar")
# The papers' weight of a dispersion with powers; the largest for which the semideviation is convex
# would be 1.
_WEIGHTS = {"semideviation": 0.5, "semivariance": 0.1, "moments": 0.1, "cvar": 1.0}
_TRACKING = 0.1
_MOMENT_ORDERS = (2, 64)
RISK_COLUMNS = ("tracked", "mean", "dispersion", "clipped")


def _check_moment_order(name: str, value: Any) -> None:
    count()(name, value)
    low, high = _MOMENT_ORDERS
    if not low <= value <= high:
        raise ValueError(f"{name} must be from {low} to {high}; got {value!r}.")


def _check_level(name: str, value: Any) -> None:
    if not (is_number(value) and 0 < value < 1):
        raise ValueError(f"{name} must be between 0 and 1; got {value!r}.")


RISK_WORDS = {
    "risk": choice(*RISKS, optional=True),
    "risk_weight": number(auto=True),
    "moment_order": _check_moment_order,
    "level": _check_level,
    "clip": number(positive=True, optional=True),
}

RISK_ENTRIES = """
risk : {"semideviation", "semivariance", "moments", "cvar"} or None, default={default}
    The dispersion: E(l - E l)_+, which keeps the objective convex; E(l - E l)_+^2, smoothed;
    the sum of the central moments of l from the second to `moment_order`; or the conditional
    value at risk at `level`, the mean of the worst losses. None is the algorithm POLK.
risk_weight : float or "auto", default={default}
    w. "auto" is 0.5 for the semideviation (convex up to 1), 0.1 for semivariance and moments,
    and 1 for "cvar", which is mixed with the mean as (1 - w) E[l] + w CVaR.
moment_order : int, default={default}
    The highest moment.
level : float, default={default}
    Of "cvar": 0.9 means the worst tenth.
clip : float or None, default={default}
    Bound on w times the derivative of the dispersion: with 1, no step goes uphill. Without it
    (None, the paper's raw form) the moments diverge within a few samples. The
    semideviation and "cvar" have bounds of their own.
learning_rate : float or "auto", default={default}
    alpha. With a clip, a rate with which predictions would run away is reduced, with a warning.
tracking_rate : float or "auto", default={default}
    beta, the weight of the latest mini-batch in the tracked expectation; "auto" is 0.1.
tracking_schedule : {"constant"} or parsimon.schedules.PowerLaw, default={default}
    How the tracking rate changes. Falling rates must satisfy the theorem: a `schedule` with a
    power pa between 3/4 and 1, this one between 1/2 and 2 pa - 1.
parsimony : float or "auto", default={default}
    C in the budget C * learning_rate**2 (with risk); larger values make smaller models.
trace_ : dict of ndarray
    One entry for each mini-batch: "samples" seen, "model_order", "active" samples (with a
    gradient that is not zero), mean "loss" before the step, "compression_error", "budget",
    "tracked" (the inner expectation, or the value at risk), "mean" and "dispersion" (the two
    parts of the objective on the mini-batch) and "clipped" (samples at which `clip` acted).
"""


def check_risk(estimator: Any) -> None:
    """Refuse settings of risk that do not go together."""
    if estimator.risk == "cvar" and _weight(estimator) > 1:
        raise ValueError(
            f"risk_weight must be at most 1 with risk='cvar', which it mixes with the mean; "
            f"got {estimator.risk_weight!r}."
        )
    if estimator.batch_size < 2 and estimator.risk not in (None, "cvar"):
        raise ValueError(
            f"batch_size must be at least 2 with risk={estimator.risk!r}: one half of a mini-batch "
            f"tracks the mean loss of the other; got {estimator.batch_size!r}."
        )
    _check_exponents(estimator)


def _check_exponents(estimator: Any) -> None:
    """Refuse power laws with which the theorem does not hold: the tracker must be faster."""
    law = schedules.resolve(estimator.schedule)
    tracking = schedules.resolve(estimator.tracking_schedule)
    if estimator.risk is None or (law is None and tracking is None):
        return
    if law is None or tracking is None:
        raise ValueError(
            f"schedule and tracking_schedule must both be constant or both fall; got "
            f"{estimator.schedule!r} and {estimator.tracking_schedule!r}."
        )
    if not (0.75 < law.power < 1 and 0.5 < tracking.power < 2 * law.power - 1):
        raise ValueError(
            f"The steps converge if schedule falls with a power pa between 3/4 and 1 and "
            f"tracking_schedule with a power between 1/2 and 2 pa - 1; got {law.power} and "
            f"{tracking.power}."
        )


def _weight(estimator: Any) -> float:
    if isinstance(estimator.risk_weight, str):
        return _WEIGHTS.get(str(estimator.risk), 0.0)
    return float(estimator.risk_weight)


def _amplification(estimator: Any) -> float:
    """Return by how much risk can make a sample's gradient longer."""
    weight, clip = _weight(estimator), estimator.clip
    if estimator.risk == "cvar":
        return float(1 - weight + weight / (1 - estimator.level))
    if estimator.risk == "semideviation":
        return float(1 + (weight if clip is None else min(weight, clip)))
    return np.inf if clip is None else 1 + float(clip)


def new_colk(estimator: Any, samples: Samples, *, streaming: bool) -> tuple[Any, Kernel, int]:
    """Return an untrained model, its kernel, and the epochs of fit; without risk it is POLK's."""
    if estimator.risk is None:
        return new_polk(estimator, samples, streaming=streaming)
    outputs = estimator._n_outputs(samples)
    loss = estimator._core_loss(outputs)
    chosen = _auto.Choices(estimator, samples, loss, streaming=streaming)
    rate = _safe_rate(estimator, chosen, samples, loss)
    tracking = estimator.tracking_rate
    model = _core.Colk(
        chosen.kernel.core,
        loss,
        risk=estimator.risk,
        weight=_weight(estimator),
        parameter=float(estimator.level if estimator.risk == "cvar" else estimator.moment_order),
        clip=None if estimator.clip is None else float(estimator.clip),
        step=core_step(rate, estimator.schedule),
        tracking=core_step(
            _TRACKING if isinstance(tracking, str) else float(tracking),
            estimator.tracking_schedule,
        ),
        compression=_core.Compression(_budget(estimator, chosen), estimator.max_points),
        regularization=chosen.regularization,
        average=estimator.average,
        features=samples.X.shape[1],
        outputs=outputs,
    )
    return model, chosen.kernel, chosen.epochs


def _safe_rate(estimator: Any, chosen: _auto.Choices, samples: Samples, loss: Any) -> float:
    """Return the learning rate, made smaller if predictions would run away with it."""
    rate, amplification = chosen.rate, _amplification(estimator)
    auto = isinstance(estimator.learning_rate, str)
    if auto:
        rate /= min(amplification, 2.0)
    if np.isinf(amplification) or loss.is_classification:
        return rate
    # Half of the mini-batch takes the step, the other half can be pushed back.
    half = max(1, estimator.batch_size // 2)
    stable = _auto.stable_rate(chosen.kernel, samples, half) / (amplification * _curvature(loss))
    if rate > stable and not auto:
        warn(
            f"learning_rate={estimator.learning_rate} is too large for these data: predictions "
            f"would run away. {stable:.3g} is used instead; choose a smaller learning_rate.",
            ConvergenceWarning,
        )
    return min(rate, stable)


def _budget(estimator: Any, chosen: _auto.Choices) -> _core.BudgetSchedule:
    if isinstance(estimator.parsimony, str):
        return polk_budget(estimator, chosen)
    return _core.BudgetSchedule.step_squared(float(estimator.parsimony))


def _curvature(loss: Any) -> float:
    """Return the largest second derivative of a loss of one number, 1 if it has only kinks."""
    _, slopes = loss.evaluate(np.array([[1e-6], [2e-6]]), np.zeros((2, 1)))
    return float(max(slopes[1, 0] - slopes[0, 0], 0.0) / 1e-6) or 1.0


def risk_trace(model: Any) -> dict[str, NDArray[Any]]:
    """Return the core's two traces side by side; without risk, the mean is all there is."""
    if isinstance(model, _core.Polk):
        trace = named_columns(model.trace, TRACE_COLUMNS)
        nothing = np.zeros_like(trace["loss"])
        columns = (trace["loss"], trace["loss"], nothing, nothing)
        return trace | dict(zip(RISK_COLUMNS, columns, strict=True))
    # Of a copy, which is made in one access: another thread may be training.
    model = model.copy()
    types = TRACE_COLUMNS | dict.fromkeys(RISK_COLUMNS, np.float64)
    return named_columns(np.hstack([model.trace, model.risk_trace]), types)

"""Risk: what is minimised beside the mean loss, and how its steps are kept in bounds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from parsimon import _auto, _core, schedules
from parsimon._checks import choice, count, is_number, number, warn
from parsimon._model import TRACE_COLUMNS, named_columns
from parsimon._newton import finish_fit
from parsimon._settings import core_step
from parsimon._stream import NOTHING, Samples
from parsimon.kernels import Kernel
from parsimon.polk import new_polk, polk_budget

from ._measures import Measure, measure, value_at_risk

Array = NDArray[np.float64]

OF_THE_PAPER = ("semideviation", "semivariance", "moments", "cvar")
RISKS = (*OF_THE_PAPER, "root_semideviation", "entropic", "kl", "chi_square")
# The papers' weight of a dispersion with powers; the largest for which the semideviation is convex
# would be 1.
_WEIGHTS = {
    "semideviation": 0.5,
    "semivariance": 0.1,
    "moments": 0.1,
    "cvar": 1.0,
    "root_semideviation": 0.5,
    "entropic": 0.5,
    "kl": 0.2,
    "chi_square": 0.5,
}
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
risk : str or None, default={default}
    "semideviation", "semivariance", "moments", "cvar", "root_semideviation", "entropic", "kl" or
    "chi_square".
    The dispersion: E(l - E l)_+, which keeps the objective convex; E(l - E l)_+^2, smoothed;
    the sum of the central moments of l from the second to `moment_order`; or the conditional
    value at risk at `level`, the mean of the worst losses; sqrt(E(l - E l)_+^2), convex too;
    log(E exp(w l)) / w, in units of the losses of normalised targets; or, robust against changes
    of the data's law, the largest mean of l over laws whose relative entropy, or chi-square
    divergence, from theirs is at most `risk_weight`. These four need ``solver="newton"``. None is
    the algorithm POLK. With ``solver="newton"``, semivariance and moments are in units of E l:
    E l (1 + w E d(l / E l - 1)).
risk_weight : float or "auto", default={default}
    w, not negative. "auto" is 0.5 for the semideviation (convex up to 1), 0.1 for semivariance and
    moments, and 1 for "cvar", which is mixed with the mean as (1 - w) E[l] + w CVaR; 0.5 for the
    root semideviation (convex up to 1) and "entropic", radii of 0.2 for "kl" and 0.5 for
    "chi_square".
moment_order : int, default={default}
    The highest moment, from 2 to 64.
level : float, default={default}
    Of "cvar", between 0 and 1: 0.9 means the worst tenth.
clip : float or None, default={default}
    Bound on w times the derivative of the dispersion, positive: with 1, no step goes uphill.
    Without it (None, the paper's raw form) the moments diverge within a few samples. The
    semideviation and "cvar" have bounds of their own. With ``solver="newton"``, from there on the
    dispersion grows linearly.
learning_rate : float or "auto", default={default}
    alpha, positive. "auto" is POLK's, divided by how much risk can lengthen a gradient, and by 2 at
    most. With a clip, a rate with which predictions would run away is reduced, with a warning.
    With ``solver="newton"`` it only decides which points are found.
tracking_rate : float or "auto", default={default}
    beta, the weight of the latest mini-batch in the tracked expectation, above 0 and at most 1;
    "auto" is 0.1.
tracking_schedule : {"constant"} or parsimon.schedules.PowerLaw, default={default}
    How the tracking rate changes. Falling rates must satisfy the theorem: a `schedule` with a
    power pa between 3/4 and 1, this one between 1/2 and 2 pa - 1.
parsimony : float or "auto", default={default}
    C in the budget C * learning_rate**2 (with risk and ``solver="sgd"``; otherwise POLK's K), not
    negative; larger values make smaller models. "auto" is POLK's budget.
solver : {"newton", "sgd"}, default={default}
    "newton": the points are found as in :class:`POLKRegressor`; ``fit`` then minimises the
    objective over their weights, from all samples at once, and in a stream each sample counts in
    POLK's second-order statistics as the risk of the latest 1,000 losses says. "sgd" is the
    algorithm of the paper.
objective_ : float
    With ``solver="newton"`` and a risk: what is minimised, without its regulariser, at the losses
    of the latest 1,000 samples: of ``fit`` as they are in the end, of a stream as they were before
    it learned from them. In units of y (squared, for the losses that are); of several targets
    of different scales in those of the normalised ones, whose sum it is.
value_at_risk_ : float
    The loss that a share `level` of them does not exceed, always in units of y: those of several
    targets are added up, each in its own unit.
cvar_ : float
    The same for the mean of those beyond it.
trace_ : dict of ndarray
    One entry for each mini-batch: "samples" seen, "model_order", "active" samples (with a
    gradient that is not zero), mean "loss" before the step, "compression_error", "budget",
    "tracked" (the inner expectation, or the value at risk), "mean" and "dispersion" (the two
    parts of the objective on the mini-batch) and "clipped" (samples at which `clip` acted).
    The last four are those of ``solver="sgd"``; "newton" has the loss, the loss, 0 and 0.
"""


def check_risk(estimator: Any) -> None:
    """Refuse settings of risk that do not go together."""
    if estimator.risk == "cvar" and _weight(estimator) > 1:
        raise ValueError(
            f"risk_weight must be at most 1 with risk='cvar', which it mixes with the mean; "
            f"got {estimator.risk_weight!r}."
        )
    if estimator.solver == "sgd" and estimator.risk not in (None, *OF_THE_PAPER):
        raise ValueError(
            f"risk={estimator.risk!r} needs solver='newton': it is no expectation that stochastic "
            f"steps could track. Those of solver='sgd' are {', '.join(map(repr, OF_THE_PAPER))}."
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


# Losses of the latest samples, beside which those of new ones are judged.
LATEST = 1000
# Samples per point from which on a stream knows enough to count some of them more than others.
_PER_POINT = 10
# What steps that only find points are prepared for, where nothing bounds the risk.
_HEAVIEST = 10.0


class Settings(NamedTuple):
    """The risk that a model was begun with: what is asked of it later is about that one."""

    risk: str | None
    risk_weight: float | str
    moment_order: int
    level: float
    clip: float | None
    solver: str

    @classmethod
    def of(cls, estimator: Any) -> Settings:
        return cls(*(getattr(estimator, name) for name in cls._fields))


def _begun_with(estimator: Any) -> Any:
    """Return the risk that the estimator's model has; an older pickle does not tell."""
    return estimator.__dict__.get("_risk_", estimator)


def own_measure(estimator: Any) -> Measure:
    """Return the objective of an estimator with risk, without its regulariser."""
    parameter = estimator.level if estimator.risk == "cvar" else estimator.moment_order
    return measure(estimator.risk, _weight(estimator), float(parameter), estimator.clip)


def count_spread(estimator: Any) -> float:
    """Return the mean square of what samples count: of the tail alone, it is not near 1."""
    if estimator.risk == "chi_square":
        return 1 + _weight(estimator)
    if estimator.risk != "cvar":
        return 1.0
    return float(1 + _weight(estimator) ** 2 * (1 / (1 - estimator.level) - 1))


def weighs(estimator: Any) -> bool:
    """Tell whether samples count as the risk of their losses says: then POLK solves the rest."""
    return estimator.risk is not None and estimator.solver == "newton"


def _losses(estimator: Any, model: Any, X: Any, targets: Any, weight: Any) -> Array:
    """Return a row for each sample: loss, weight and, of several targets, the loss of each."""
    predictions = np.asarray(model.predict(X))
    outputs = predictions.shape[1]
    loss = estimator._core_loss(outputs)
    of_all: Array = loss.evaluate(predictions, targets)[0]
    rows = _weighed(of_all, weight)
    if outputs == 1 or loss.is_classification:
        return rows
    one, both = estimator._core_loss(1), (predictions, targets)
    pairs = [[np.ascontiguousarray(each[:, k : k + 1]) for each in both] for k in range(outputs)]
    return np.column_stack([rows, *(one.evaluate(*pair)[0] for pair in pairs)])


def weigh(estimator: Any, model: Any, X: Any, targets: Any, weight: Any) -> tuple[Any, ...]:
    """Return samples with weights: what their losses count in the risk of the latest ones."""
    now, latest = _losses(estimator, model, X, targets, weight), _latest(estimator)
    losses = now[:, 0]
    if len(latest) and latest.shape[1] < now.shape[1]:  # of an older file: all targets alike
        outputs = now.shape[1] - 2
        latest = np.column_stack([latest, np.repeat(latest[:, :1] / outputs, outputs, axis=1)])
    latest = np.vstack([latest, now]) if len(latest) else now
    counts = own_measure(_begun_with(estimator))(latest[:, 0], _shares(latest))[1]
    counts = np.maximum(counts, 0.0)
    # As many samples as would all count the same.
    known = (model.samples + len(losses)) * counts.mean() ** 2 / (counts**2).mean()
    share = min(1.0, known / (_PER_POINT * max(1, model.model_order)))
    counts = 1 + share * (counts[-len(losses) :] - 1)
    estimator._latest_losses_ = latest[-LATEST:]
    return X, targets, counts * weight if len(weight) else counts


def _weighed(losses: Array, weight: Any) -> Array:
    """Return losses beside the weights of their samples, 1 if there are none."""
    return np.column_stack([losses, weight if len(weight) else np.ones(len(losses))])


def _latest(estimator: Any) -> Array:
    """Return the latest losses with their weights, which older files do not have."""
    latest: Array = estimator._latest_losses_
    return latest if latest.ndim == 2 else _weighed(latest, NOTHING)


def _shares(latest: Array) -> Array:
    total = float(latest[:, 1].sum())
    return latest[:, 1] / total if total > 0 else np.full(len(latest), 1 / len(latest))


def finish_colk(estimator: Any, model: Any, samples: Samples) -> None:
    """Minimise the objective, risk and all, over the weights on the dictionary found."""
    finish_fit(estimator, model, samples, own_measure(estimator))
    found = [_losses(estimator, model, *columns) for columns in samples.blocks(1)]
    estimator._latest_losses_ = np.concatenate(found)[-LATEST:]


def _heaviest(estimator: Any, samples: Samples) -> Samples:
    """Return samples one of which weighs what a single one can: steps must not be too long."""
    weight = samples.weight if len(samples.weight) else np.ones(len(samples))
    weight = weight.copy()
    weight[0] *= min(_amplification(estimator), _HEAVIEST)
    return Samples(samples.X, samples.targets, weight, n_classes=samples.n_classes)


def new_colk(estimator: Any, samples: Samples, *, streaming: bool) -> tuple[Any, Kernel, int]:
    """Return an untrained model, its kernel, and the epochs of fit; without risk it is POLK's."""
    estimator._risk_ = Settings.of(estimator)
    if weighs(estimator):
        estimator._latest_losses_ = NOTHING
        if streaming or not estimator._refits:
            samples = _heaviest(estimator, samples)
    if estimator.risk is None or estimator.solver == "newton":
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
        compression=_core.Compression(
            _budget(estimator, chosen),
            None if isinstance(estimator.max_points, str) else estimator.max_points,
            merges=estimator.compression == "merge",
        ),
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


def weigher(estimator: Any) -> Any:
    """Return how samples of a stream are weighed, if they are."""
    return partial(weigh, estimator) if weighs(_begun_with(estimator)) else None


def stop_early(estimator: Any, model: Any) -> None:
    """Predict with the weights that were stepped where none have been solved yet."""
    if isinstance(model, _core.Polk):
        model.stop_scouting()
    if weighs(estimator) and not len(estimator._latest_losses_):
        estimator._latest_losses_ = np.zeros(1)


def stored_losses(estimator: Any, outputs: int) -> dict[str, Any]:
    """Return what a file keeps for the next samples, with what makes it valid."""

    def losses(value: Any) -> bool:
        fits = value.ndim == 1 or (value.ndim == 2 and value.shape[1] in (2, 2 + outputs))
        return fits and len(value) <= LATEST and bool(np.isfinite(value).all())

    return {"_latest_losses_": losses} if weighs(estimator) else {}


def _of_latest(name: str, meaning: str, of: Callable[[Any, Array], float]) -> Any:
    """Return the attribute that is a function of the latest losses."""

    def get(estimator: Any) -> float:
        estimator._state(name)
        if not weighs(_begun_with(estimator)):
            raise AttributeError(f"{name} is known with a risk and solver='newton'.")
        return float(of(estimator, _latest(estimator)))

    return property(get, doc=meaning)


def _units(estimator: Any) -> Array:
    """Return the unit of each target's loss: that of the target, once or squared."""
    grows_squared = estimator._core_loss(1).describe().startswith(("squared", "huber"))
    scale: Array = np.atleast_1d(estimator._output_scale()) ** (2 if grows_squared else 1)
    return scale


def _unit(estimator: Any) -> float:
    """Return the unit of the losses, 1 if the targets have different ones."""
    units = np.unique(_units(estimator))
    return float(units[0]) if len(units) == 1 else 1.0


def _in_units(estimator: Any, latest: Array) -> Array:
    """Return the losses in units of y, those of several targets each in its own."""
    if latest.shape[1] > 2:
        return np.asarray(latest[:, 2:] @ _units(estimator))
    return np.asarray(latest[:, 0] * _unit(estimator))


def _objective(estimator: Any, latest: Array) -> float:
    value, _ = own_measure(_begun_with(estimator))(latest[:, 0], _shares(latest))
    return value * _unit(estimator)


def _at_risk(estimator: Any, latest: Array) -> float:
    level = _begun_with(estimator).level
    return value_at_risk(_in_units(estimator, latest), _shares(latest), level)


def _cvar(estimator: Any, latest: Array) -> float:
    at_risk = _at_risk(estimator, latest)
    above = np.maximum(_in_units(estimator, latest) - at_risk, 0)
    level = float(_begun_with(estimator).level)
    return at_risk + float(_shares(latest) @ above) / (1 - level)


OBJECTIVE = _of_latest(
    "objective_",
    "What is minimised, at the latest losses, without the regulariser.",
    _objective,
)
VALUE_AT_RISK = _of_latest(
    "value_at_risk_",
    "The loss that a share `level` of the latest losses does not exceed.",
    _at_risk,
)
CVAR = _of_latest("cvar_", "The mean of the latest losses beyond the value at risk.", _cvar)


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

"""The core's models of the paper's algorithms, with the settings that were left to us."""

from __future__ import annotations

from typing import Any

import numpy as np

from parsimon import _core
from parsimon._core import BudgetSchedule, MirrorMap, StepSchedule
from parsimon._settings import core_budget, core_step

from ._setting import Setting

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
# The step of Newton's method would be 1; twice as much forgets the beginning faster.
_NEWTON_RATE = 2.0
# The damping, in units of the mean of |k_D(x)|^2.
_DAMPING = 0.1
# Mini-batches for which the model order of a stream must be stable, and after which it counts as
# stable in any case.
_STREAM_PATIENCE = 300
_STREAM_CAP = 3000


def spppot_model(estimator: Any, setting: Setting) -> Any:
    """Return the core's model of Algorithm 1."""
    rate = _rate(estimator, setting)
    return _core.Spppot(
        setting.kernel.core,
        setting.box,
        setting.quadrature,
        mirror=_mirror(estimator, setting),
        gradient=estimator.gradient,
        dual_averaging=estimator.method == "dual_averaging",
        step=core_step(rate, estimator.schedule),
        compression=_core.Compression(_budget(estimator, rate, setting)),
        regularization=_shrinkage(estimator, rate, setting),
        average=bool(estimator.average),
    )


def newton_model(estimator: Any, setting: Setting) -> Any:
    """Return the core's model of Algorithm 3."""
    return _core.MirrorNewton(
        setting.kernel.core,
        setting.box,
        setting.quadrature,
        step=_newton_step(estimator, estimator.learning_rate),
        damping=_damping(estimator, setting),
    )


def hybrid_model(estimator: Any, setting: Setting) -> Any:
    """Return the core's model of Algorithm 4."""
    patience, cap = _STREAM_PATIENCE, _STREAM_CAP
    if not setting.streaming:
        patience = -(-len(setting.X) // estimator.batch_size)
        cap = max(1, patience * setting.epochs // 2)
    return _core.Hybrid(
        spppot_model(estimator, setting),
        step=_newton_step(estimator, estimator.newton_learning_rate),
        damping=_damping(estimator, setting),
        patience=patience if isinstance(estimator.patience, str) else int(estimator.patience),
        cap=cap if isinstance(estimator.first_phase, str) else int(estimator.first_phase),
    )


def _rate(estimator: Any, setting: Setting) -> float:
    given = estimator.learning_rate
    if not isinstance(given, str):
        return float(given)
    steep = setting.curvature
    divides = estimator.gradient == "kernel_embedding" or estimator.mirror != "kl"
    boldness = _BOLDNESS["kernel_embedding" if divides else estimator.gradient]
    quiet = _NOISE * estimator.batch_size / setting.largest_self
    return float(min(boldness / max(steep.data, steep.nodes), quiet))


def _shrinkage(estimator: Any, rate: float, setting: Setting) -> float:
    given = estimator.regularization
    if not isinstance(given, str):
        return float(given)
    # How many samples a stream will have is not known.
    return 0.0 if setting.streaming else min(_SHRINKAGE / len(setting.X), 0.25 / rate)


def _mirror(estimator: Any, setting: Setting) -> MirrorMap:
    if estimator.mirror != "mahalanobis":
        return MirrorMap.kl() if estimator.mirror == "kl" else MirrorMap.euclidean()
    # Half uniform, half a Gaussian with the moments of the data.
    width = setting.domain[:, 1] - setting.domain[:, 0]
    center = setting.X.mean(axis=0)
    deviation = np.maximum(setting.X.std(axis=0), width / 100)
    height = 0.5 * float(np.prod(width / (np.sqrt(2 * np.pi) * deviation)))
    return MirrorMap.mahalanobis(height, center.tolist(), deviation.tolist())


def _budget(estimator: Any, rate: float, setting: Setting) -> BudgetSchedule:
    if not isinstance(estimator.parsimony, str):
        alpha = float(estimator.parsimony)
    else:
        alpha = _PARSIMONY * float(np.sqrt(setting.largest_self / estimator.batch_size))
        if estimator.method == "dual_averaging":
            alpha /= rate  # what is compressed there is z over the step
    return core_budget(estimator.budget, BudgetSchedule.proportional(alpha), rate)


def _newton_step(estimator: Any, given: float | str) -> StepSchedule:
    rate = _NEWTON_RATE if isinstance(given, str) else float(given)
    return core_step(rate, estimator.schedule)


def _damping(estimator: Any, setting: Setting) -> float:
    if not isinstance(estimator.damping, str):
        return float(estimator.damping)
    return _DAMPING * setting.curvature.features

"""Intensities whose weights are solved: what `solver="newton"` does in fit and in a stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from parsimon import kernels
from parsimon._checks import is_number, warn
from parsimon._stream import NOTHING_SPECIAL
from parsimon._threads import threads_of

from . import _auto
from ._covariates import WithCovariates, values_of
from ._place import MOST_DENSE_NODES, MOST_NODES, Place, choose, found
from ._points import Points
from ._solve import Likelihood, Solution, Uncertainty, log_integral
from ._span import PointSpan, ProductSpan, Span
from ._window import Window, window_of

Array = NDArray[np.float64]

# How far two rules may disagree about an integral before the finer one is taken.
_AGREEMENT = 0.01
# Points of a stream before it can be said to move, and the nats by which the latest are then less
# likely: so many, and so many standard deviations.
_FEWEST_TO_MOVE = 500
_MOVED = 0.25, 5.0
# Samples of a stream that are kept until there are enough to choose the bandwidth for good.
BUFFER = 5_000


@dataclass(frozen=True)
class Solved:
    """A solved density: how it was found, for all that comes later."""

    place: Place
    likelihood: Likelihood
    solution: Solution
    ridge: float
    fine_integral: float  # logarithm, by a finer rule

    def uncertainty(self) -> Uncertainty:
        """Return how well the density is known."""
        return Uncertainty(self.likelihood, self.solution, self.ridge)


def solve(
    place: Place,
    span: Span,
    ridge: float,
    model: Any,
    start: Array | None = None,
    *,
    sums: Array | None = None,
) -> Solved:
    """Solve for what a model has observed, by a rule that a finer one agrees with.

    sums: of the covariates of what was observed, if there are any.
    """
    while True:
        likelihood = likelihood_of(model, span, sums)
        solution = likelihood.solve(ridge, start)
        values = span.finer.to_nodes(solution.coordinates)
        fine = log_integral(values, span.finer.measure)[0]
        apart = abs(fine - solution.log_integral)
        if apart <= _AGREEMENT:
            break
        is_product = isinstance(getattr(span, "inner", span), ProductSpan)
        most = MOST_NODES if is_product else 4 * MOST_DENSE_NODES
        if len(values) > most:
            warn(
                f"Two rules for the integral of the density differ by a factor of "
                f"{np.exp(min(apart, 700.0)):.3g}; choose a larger bandwidth or regularization.",
                ConvergenceWarning,
            )
            break
        start, span = solution.coordinates, span.finer
    return Solved(place, likelihood, solution, ridge, fine)


def likelihood_of(model: Any, span: Span, sums: Array | None) -> Likelihood:
    """Return what the points that a model has observed say."""
    moments, mass = np.asarray(model.moments), float(model.mass)
    if isinstance(span, WithCovariates):
        return Likelihood(span, span.statistics(moments, np.asarray(sums), mass), mass)
    return Likelihood(span, span.whiten(moments), mass)


def checked_exposure(exposure: Any) -> float:
    """Return a positive number, or refuse."""
    if not is_number(exposure) or not exposure > 0:
        raise ValueError(f"exposure must be a positive, finite number; got {exposure!r}.")
    return float(exposure)


def exposed(exposure: Any, before: Any, amounts: Array) -> dict[str, Any]:
    """Return the exposure and the weight of all points, those before included.

    Without exposures nothing of their number is forgotten: intensities are of all points seen.
    """
    now, weight = None if exposure is None else checked_exposure(exposure), float(amounts.sum())
    if before is None:
        return {"exposure_": now or 1.0, "_is_exposed_": now is not None, "_weight_": weight}
    if before._is_exposed_ != (now is not None):
        raise ValueError(
            "Give the exposure with all blocks of a stream, or with none; it was "
            f"{'given' if before._is_exposed_ else 'not given'} with those before."
        )
    if now is None:
        return {"_weight_": before._weight_ + weight}
    past = kept(before, weight)
    return {
        "exposure_": past * before.exposure_ + now,
        "_weight_": past * before._weight_ + weight,
    }


def kept(estimator: Any, weight: float) -> float:
    """Return what is left of the past after so many points."""
    half_life = estimator.half_life
    if half_life is None or isinstance(half_life, str):
        return 1.0
    return float(0.5 ** (weight / half_life))


# A model, fitted attributes, and the span of its points if it is known.
Found = tuple[Any, dict[str, Any], Span | None]
# What has been learned from: minus the sum of log-densities before, and the points.
_SOLVED = (0.0, 0.0)


def fit(estimator: Any, points: Points, fitted: dict[str, Any]) -> Found:
    """Return a model for all points, and what else is known of them."""
    model, kernel, solved = trained(estimator, points.domain, points.X, points.amounts)
    if points.watch is not None:
        points.watch(model)
    fitted = fitted | NOTHING_SPECIAL | {"_kernel_": kernel, "epochs_": 1, "_unsolved_": _SOLVED}
    fitted |= {"scales_": scales_of(solved.likelihood.span)}
    fitted |= {"_covariate_sums_": covariate_sums(estimator, points)}
    fitted |= {"_coef_": coefficients(solved)}
    return model, fitted, solved.likelihood.span


def is_due(count: int, chosen_at: int) -> bool:
    """Tell whether so many samples that are kept choose the settings anew."""
    return count >= min(2 * chosen_at, BUFFER)


def partial_fit(estimator: Any, points: Points, fitted: dict[str, Any], *, first: bool) -> Found:
    """Return a model that knows these points, too.

    As long as few have been seen they are all kept, and the settings chosen anew whenever there are
    twice as many or some are outside a domain that was left to us. In between, points are observed,
    and solved for when somebody asks.
    """
    past = kept(estimator, float(points.amounts.sum()))
    buffer = np.column_stack([points.X, points.amounts])
    if not first:
        seen = estimator._buffer_ * np.append(np.ones(points.X.shape[1]), past)
        buffer = np.vstack([seen, buffer]) if len(seen) else seen
    elsewhere = not first and not np.array_equal(points.domain, estimator.domain_)
    chosen_at = 0 if first else estimator._chosen_at_
    if len(buffer) and (elsewhere or is_due(len(buffer), chosen_at)):
        X, amounts = np.ascontiguousarray(buffer[:, :-1]), np.ascontiguousarray(buffer[:, -1])
        model, kernel, solved = trained(estimator, points.domain, X, amounts)
        span = solved.likelihood.span
        fitted = fitted | {"_kernel_": kernel, "epochs_": 1, "domain_": points.domain}
        fitted |= {"_unsolved_": _SOLVED, "_coef_": coefficients(solved)}
        fitted |= {"scales_": scales_of(span)}
        chosen_at = len(buffer)
    else:
        fitted = fitted | {"_coef_": estimator._coefficients(estimator._latest()[0])}
        model, span, unsolved = continued(estimator, points, past)
        if points.watch is not None and unsolved[1] > 0:
            model, span, _ = caught_up(estimator, model, span, unsolved)
            unsolved = _SOLVED
        fitted = fitted | {"_unsolved_": unsolved}
    if points.watch is not None:
        points.watch(model)
    sums = covariate_sums(estimator, points)
    if not first and len(sums):
        sums = sums + past * estimator._covariate_sums_
    fitted = fitted | {"_covariate_sums_": sums}
    kept_points = buffer if len(buffer) < BUFFER else buffer[:0]
    return model, fitted | {"_buffer_": kept_points, "_chosen_at_": chosen_at}, span


def continued(
    estimator: Any, points: Points, past: float
) -> tuple[Any, Span | None, tuple[float, float]]:
    """Return the model with one more block observed, and what has not been solved for."""
    before, span, unsolved = estimator._latest()
    model = before.copy()
    with threads_of(estimator.n_jobs):
        loss = -float(estimator._log_density(before, points.X) @ points.amounts)
        model.observe(points.X, points.amounts, past)
    mass = float(points.amounts.sum())
    return model, span, (unsolved[0] + loss, unsolved[1] + mass)


def caught_up(
    estimator: Any, model: Any, span: Span | None, unsolved: tuple[float, float]
) -> tuple[Any, Span, Array]:
    """Return the model solved for all that it has observed, from where it was."""
    model = model.copy()
    with threadpool_limits(limits=1, user_api="blas"), threads_of(estimator.n_jobs):
        if span is None:
            span = estimator._span_of(model)
        before = restored(estimator, model, span)
        _warn_if_it_moves(estimator, before, unsolved)
        start, sums = before.solution.coordinates, estimator.__dict__.get("_covariate_sums_")
        solved = solve(before.place, span, before.ridge, model, start, sums=sums)
        assume(model, solved, 1 + unsolved[0] / unsolved[1])
    return model, solved.likelihood.span, coefficients(solved)


def _warn_if_it_moves(estimator: Any, before: Solved, unsolved: tuple[float, float]) -> None:
    """Say once that a stream leaves what nothing is forgotten of.

    Points like those before would have the mean loss that is the density's entropy, up to the
    deviation of as many points.
    """
    loss, mass = unsolved
    told = estimator.__dict__.get("_told_that_it_moves", False)
    if told or is_number(estimator.half_life) or before.likelihood.mass - mass < _FEWEST_TO_MOVE:
        return
    shares = before.likelihood.shares(before.solution)
    values = before.likelihood.span.to_nodes(before.solution.coordinates)
    logs = values - before.solution.log_integral - float(np.log(before.place.width).sum())
    logs = np.where(shares > 0, logs, 0.0)
    entropy = -float(shares @ logs)
    spread = np.sqrt(float(shares @ (logs + entropy) ** 2) / mass)
    excess = loss / mass - entropy
    if not excess > _MOVED[0] + _MOVED[1] * spread:
        return
    estimator.__dict__["_told_that_it_moves"] = True
    warn(
        f"The latest points of the stream, {mass:g} of them, are less likely than those before, by "
        f"{excess:.2f} nats each: the density may be moving, and half_life={estimator.half_life!r} "
        f"forgets nothing. Give the number of points after which a point counts half."
    )


def trained(
    estimator: Any, domain: Array, X: Array, amounts: Array
) -> tuple[Any, kernels.Kernel, Solved]:
    """Return a model of the core that has been solved for these points, and its kernel."""
    with threadpool_limits(limits=1, user_api="blas"), threads_of(estimator.n_jobs):
        place = Place(estimator, domain, X, window_of(estimator.window))
        choice = choose(place, X, amounts)
        lengths, ridge = choice.lengths, choice.ridge
        span: Any = place.span(lengths.tolist(), choice.scales)
        if estimator._searches():
            span, lengths = found(place, lengths)
        kernel = place.kernel(lengths.tolist())
        model = span.model(kernel, place.box)
        model.observe(X, amounts, 1.0)
        sums = covariate_sums(estimator, Points(X, domain, None, amounts))
        solved = solve(place, span, ridge, model, sums=sums)
        if solved.likelihood.span is not span:  # by a finer rule
            model = solved.likelihood.span.model(kernel, place.box)
            model.observe(X, amounts, 1.0)
        # That of the uniform density is the loss before.
        assume(model, solved, 1 + float(np.log(place.width).sum()))
        return model, kernel, solved


def covariate_sums(estimator: Any, points: Points) -> Array:
    """Return the sums of covariates over points."""
    if estimator.covariates is None or not len(points):
        return np.empty(0)
    return np.asarray(points.amounts @ values_of(estimator.covariates, points.X))


def coefficients(solved: Solved) -> Array:
    """Return the coefficients of the covariates."""
    span = solved.likelihood.span
    if isinstance(span, WithCovariates):
        return span.coefficients(solved.solution.coordinates)
    return np.empty(0)


def assume(model: Any, solved: Solved, loss: float) -> None:
    """Have the model of the core predict with the solution, from the loss before."""
    span, at = solved.likelihood.span, solved.solution.coordinates
    weights = span.weights(at)
    constant = span.constant(at) if isinstance(span, WithCovariates) else 0.0
    # Midpoints are off by the square of the cells' width: two rules tell by how much.
    integral = solved.fine_integral + (solved.fine_integral - solved.solution.log_integral) / 3
    if (
        isinstance(getattr(span, "inner", span), PointSpan)
        and len(solved.place.domain) > _auto.MOST_GRID_FEATURES
    ):
        integral = solved.fine_integral
    model.assume(weights, constant - integral, solved.ridge, loss)


def scales_of(span: Span) -> int:
    """Return how many scales the functions of a span have."""
    return int(getattr(getattr(span, "inner", span), "scales", 1))


def span_of(model: Any, kernel: Any, domain: Array, window: Window | None, scales: int) -> Span:
    """Return the span of a model's points, with the rule of its integral."""
    if not model.grid.counts:
        return PointSpan(kernel, np.asarray(model.dictionary), domain, model.quadrature, window)
    lengths = np.broadcast_to(np.asarray(kernel.bandwidth, dtype=float), len(domain))
    counts = model.quadrature.counts
    return ProductSpan(model.grid, lengths.tolist(), domain, counts, window, scales=scales)


def restored(estimator: Any, model: Any, span: Span) -> Solved:
    """Return how a model was solved, from its weights: the same whether it was saved or not."""
    place = Place(estimator, estimator.domain_, np.asarray(model.dictionary))
    likelihood = likelihood_of(model, span, estimator.__dict__.get("_covariate_sums_"))
    weights = np.asarray(model.weights)[:, 0]
    if isinstance(span, WithCovariates):
        coordinates = span.coordinates(weights, estimator._coefficients(model))
    else:
        coordinates = span.coordinates(weights)
    integral = log_integral(span.to_nodes(coordinates), span.measure)[0]
    return Solved(place, likelihood, Solution(coordinates, integral, 0.0), model.ridge, integral)

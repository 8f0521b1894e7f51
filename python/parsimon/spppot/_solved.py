"""Intensities whose weights are solved: what `solver="newton"` does in fit and in a stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from parsimon import _core, kernels
from parsimon._checks import is_number, warn
from parsimon._threads import threads_of

from . import _auto
from ._choose import CrossValidation
from ._points import Points
from ._solve import Likelihood, Solution, Uncertainty, log_integral
from ._span import PointSpan, ProductSpan, Span

Array = NDArray[np.float64]

# Points of a dictionary: of a grid with a Gaussian kernel, of any other grid, of samples.
_MOST_ON_GRID = 1 << 17
_MOST_POINTS = 1024
_MOST_SAMPLE_POINTS = 512
# Nodes of an integral: of a grid, with any kernel, scattered at first, and at most.
_MOST_NODES = 1 << 22
_MOST_DENSE_NODES = 1 << 14
_SCATTERED = 1 << 13
_FEWEST_CELLS = (50, 10, 10)
# How far two rules may disagree about an integral before the finer one is taken.
_AGREEMENT = 0.01
# A search for the bandwidth starts from that many times Silverman's, which is for kernels that are
# added up and not for their logarithm.
_START = 2.0
# Samples of a stream that are kept until there are enough to choose the bandwidth for good.
BUFFER = 5_000


@dataclass(frozen=True)
class Place:
    """Where points can be, and how the span of a dictionary is made there."""

    estimator: Any
    domain: Array
    sample: Array  # from which a dictionary is taken where there is no grid

    @property
    def width(self) -> Array:
        """Extent along each feature."""
        return np.asarray(self.domain[:, 1] - self.domain[:, 0])

    @property
    def box(self) -> _core.Box:
        """The domain, as the core takes it."""
        return _core.Box(*self.domain.T.tolist())

    def kernel(self, lengths: Sequence[float]) -> kernels.Kernel:
        """Return the kernel that was given, or the one that was named, of these lengths."""
        given = self.estimator.kernel
        if isinstance(given, kernels.Kernel):
            return given
        made: kernels.Kernel = _auto.KERNELS[given](list(lengths))
        return made

    @property
    def is_product(self) -> bool:
        """Whether dictionary and kernel are products over the features."""
        given = self.estimator.kernel
        gaussian = given in ("rbf", "gaussian") if isinstance(given, str) else _is_gaussian(given)
        return gaussian and len(self.domain) <= _auto.MOST_GRID_FEATURES

    def span(self, given: Sequence[float]) -> Span | None:
        """Return the span of kernels of these lengths; None if it would be too large."""
        counts = _auto.check_grid_size("grid_size", self.estimator.grid_size)
        lengths = np.asarray(given, dtype=np.float64)
        features = len(self.domain)
        if features > _auto.MOST_GRID_FEATURES and counts is None:
            rule = _core.Quadrature.scattered(_SCATTERED)
            span: Span = PointSpan(self.kernel(given), self.sample, self.domain, rule)
            return span
        grid = self._grid(lengths, counts)
        cells = np.maximum(np.ceil(2 * self.width / lengths - 1e-9), _FEWEST_CELLS[features - 1])
        cells = np.maximum(cells, grid.counts)
        points, nodes = (float(np.prod(np.asarray(n, dtype=float))) for n in (grid.counts, cells))
        most = (
            (_MOST_ON_GRID, _MOST_NODES >> features)
            if self.is_product
            else (_MOST_POINTS, _MOST_DENSE_NODES)
        )
        if counts is None and (points > most[0] or nodes > most[1]):
            return None
        if self.is_product:
            span = ProductSpan(grid, lengths.tolist(), self.domain, [int(n) for n in cells])
        else:
            rule = _core.Quadrature.grid([int(n) for n in cells])
            span = PointSpan(self.kernel(given), grid.points, self.domain, rule)
        return span

    def _grid(self, lengths: Array, given: list[int] | None) -> _core.ProductGrid:
        """Return midpoints of the cells that were asked for, or points a kernel's length apart."""
        low, width = self.domain[:, 0], self.width
        if given is None:
            counts = np.maximum(np.ceil(width / lengths - 1e-9) + 1, 3)
            step = width / (counts - 1)
        else:
            counts = np.asarray(_auto.grid_counts(given, len(width)))
            step = width / counts
            low = low + step / 2
        return _core.ProductGrid(low.tolist(), step.tolist(), [int(n) for n in counts])


def _is_gaussian(kernel: Any) -> bool:
    return isinstance(kernel, kernels.Gaussian)


@dataclass(frozen=True)
class Solved:
    """A solved density: how it was found, for all that comes later."""

    place: Place
    likelihood: Likelihood
    solution: Solution
    ridge: float
    fine_integral: float  # logarithm, by a finer rule

    def integral(self, offset: float) -> float:
        """Return the integral of the density on a finer rule than it was solved with."""
        finer = self.likelihood.span.finer.finer
        values = finer.to_nodes(self.solution.coordinates) + offset
        return float(np.exp(log_integral(values, finer.measure)[0]))

    def uncertainty(self) -> Uncertainty:
        """Return how well the density is known."""
        return Uncertainty(self.likelihood, self.solution, self.ridge)


def choose(place: Place, X: Array, amounts: Array) -> tuple[Array, float]:
    """Return the lengths of the kernel and the ridge, as given or by cross-validation."""
    estimator, mass = place.estimator, float(amounts.sum())
    given, regularization = estimator.bandwidth, estimator.regularization
    ridge = None if isinstance(regularization, str) else float(regularization) * mass
    move = isinstance(given, str) and given == "auto" and isinstance(estimator.kernel, str)
    if isinstance(estimator.kernel, kernels.Kernel):
        bandwidth = getattr(estimator.kernel, "bandwidth", None)
        lengths = place.width / 8 if bandwidth is None else np.asarray(bandwidth, dtype=float)
    elif move:
        lengths = _START * np.asarray(_auto.silverman(X, place.domain))
    else:
        lengths = np.asarray(_auto.choose_bandwidth(given, X, place.domain), dtype=float)
    lengths = np.broadcast_to(lengths, len(place.domain)).astype(float)
    while place.span(lengths.tolist()) is None:
        # Coarser than asked for is better than not at all; what it costs shows in the likelihood.
        if not move and not isinstance(estimator.kernel, kernels.Kernel):
            raise ValueError(
                f"A kernel of length {lengths.tolist()} needs more than the {_MOST_ON_GRID} points "
                f"that a grid may have in this domain; choose a larger bandwidth, or 'auto'."
            )
        lengths = lengths * 2
    if ridge is not None and not move:
        return lengths, ridge
    if len(X) < _auto.ENOUGH:
        return lengths, 1.0 if ridge is None else ridge
    validation = CrossValidation(X, amounts, place.span)
    choice = validation.choose(lengths, ridge, move=move)
    return (validation.scale_up(choice) if move else lengths), choice.ridge


def solve(place: Place, span: Span, ridge: float, model: Any, start: Array | None = None) -> Solved:
    """Solve for what a model has observed, by a rule that a finer one agrees with."""
    while True:
        likelihood = Likelihood(span, span.whiten(np.asarray(model.moments)), float(model.mass))
        solution = likelihood.solve(ridge, start)
        values = span.finer.to_nodes(solution.coordinates)
        fine = log_integral(values, span.finer.measure)[0]
        apart = abs(fine - solution.log_integral)
        if apart <= _AGREEMENT:
            break
        most = _MOST_NODES if isinstance(span, ProductSpan) else 4 * _MOST_DENSE_NODES
        if len(values) > most:
            warn(
                f"Two rules for the integral of the density differ by a factor of "
                f"{np.exp(min(apart, 700.0)):.3g}; choose a larger bandwidth or regularization.",
                ConvergenceWarning,
            )
            break
        start, span = solution.coordinates, span.finer
    return Solved(place, likelihood, solution, ridge, fine)


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


Found = tuple[Any, dict[str, Any], Span]  # a model, fitted attributes, the span of its points


def fit(estimator: Any, points: Points, fitted: dict[str, Any]) -> Found:
    """Return a model for all points, and what else is known of them."""
    model, kernel, solved = trained(estimator, points.domain, points.X, points.amounts)
    if points.watch is not None:
        points.watch(model)
    return model, {**fitted, "_kernel_": kernel, "epochs_": 1}, solved.likelihood.span


def partial_fit(estimator: Any, points: Points, fitted: dict[str, Any], *, first: bool) -> Found:
    """Return a model that knows these points, too.

    As long as few have been seen they are all kept, and the settings chosen anew whenever there are
    twice as many or some are outside a domain that was left to us.
    """
    past = kept(estimator, float(points.amounts.sum()))
    buffer = np.column_stack([points.X, points.amounts])
    if not first:
        seen = estimator._buffer_ * np.append(np.ones(points.X.shape[1]), past)
        buffer = np.vstack([seen, buffer]) if len(seen) else seen
    elsewhere = not first and not np.array_equal(points.domain, estimator.domain_)
    chosen_at = 0 if first else estimator._chosen_at_
    if len(buffer) and (elsewhere or len(buffer) >= min(2 * chosen_at, BUFFER)):
        X, amounts = np.ascontiguousarray(buffer[:, :-1]), np.ascontiguousarray(buffer[:, -1])
        model, kernel, solved = trained(estimator, points.domain, X, amounts)
        span = solved.likelihood.span
        fitted = fitted | {"_kernel_": kernel, "epochs_": 1, "domain_": points.domain}
        chosen_at = len(buffer)
    else:
        model, span = continued(estimator, points, past)
    if points.watch is not None:
        points.watch(model)
    kept_points = buffer if len(buffer) < BUFFER else buffer[:0]
    return model, fitted | {"_buffer_": kept_points, "_chosen_at_": chosen_at}, span


def continued(estimator: Any, points: Points, past: float) -> tuple[Any, Span]:
    """Return the model with one more block, from where it was."""
    model = estimator._model.copy()
    with threadpool_limits(limits=1, user_api="blas"), threads_of(estimator.n_jobs):
        before = estimator._solution()
        loss = 1 - float(model.log_density(points.X) @ points.amounts) / float(points.amounts.sum())
        model.observe(points.X, points.amounts, past)
        span = before.likelihood.span
        solved = solve(before.place, span, before.ridge, model, before.solution.coordinates)
        assume(model, solved, loss)
    return model, span


def trained(
    estimator: Any, domain: Array, X: Array, amounts: Array
) -> tuple[Any, kernels.Kernel, Solved]:
    """Return a model of the core that has been solved for these points, and its kernel."""
    with threadpool_limits(limits=1, user_api="blas"), threads_of(estimator.n_jobs):
        place = Place(estimator, domain, _some(X, _MOST_SAMPLE_POINTS))
        lengths, ridge = choose(place, X, amounts)
        span: Any = place.span(lengths.tolist())
        kernel = place.kernel(lengths.tolist())
        model = span.model(kernel, place.box)
        model.observe(X, amounts, 1.0)
        solved = solve(place, span, ridge, model)
        if solved.likelihood.span is not span:  # by a finer rule
            model = solved.likelihood.span.model(kernel, place.box)
            model.observe(X, amounts, 1.0)
        # That of the uniform density is the loss before.
        assume(model, solved, 1 + float(np.log(place.width).sum()))
        return model, kernel, solved


def assume(model: Any, solved: Solved, loss: float) -> None:
    """Have the model of the core predict with the solution, from the loss before."""
    weights = solved.likelihood.span.weights(solved.solution.coordinates)
    # Midpoints are off by the square of the cells' width: two rules tell by how much.
    integral = solved.fine_integral + (solved.fine_integral - solved.solution.log_integral) / 3
    if (
        isinstance(solved.likelihood.span, PointSpan)
        and len(solved.place.domain) > _auto.MOST_GRID_FEATURES
    ):
        integral = solved.fine_integral
    model.assume(weights, -integral, solved.ridge, loss)


def span_of(model: Any, kernel: Any, domain: Array) -> Span:
    """Return the span of a model's points, with the rule of its integral."""
    if not model.grid.counts:
        return PointSpan(kernel, np.asarray(model.dictionary), domain, model.quadrature)
    lengths = np.broadcast_to(np.asarray(kernel.bandwidth, dtype=float), len(domain))
    return ProductSpan(model.grid, lengths.tolist(), domain, model.quadrature.counts)


def restored(estimator: Any, model: Any, span: Span) -> Solved:
    """Return how a model was solved, from its weights: the same whether it was saved or not."""
    place = Place(estimator, estimator.domain_, np.asarray(model.dictionary))
    likelihood = Likelihood(span, span.whiten(np.asarray(model.moments)), model.mass)
    coordinates = span.coordinates(np.asarray(model.weights)[:, 0])
    integral = log_integral(span.to_nodes(coordinates), span.measure)[0]
    return Solved(place, likelihood, Solution(coordinates, integral, 0.0), model.ridge, integral)


def _some(X: Array, most: int) -> Array:
    """Return at most so many distinct points, always the same ones."""
    X = np.unique(X, axis=0)
    if len(X) > most:
        X = X[np.sort(np.random.RandomState(0).permutation(len(X))[:most])]
    return np.asarray(X)

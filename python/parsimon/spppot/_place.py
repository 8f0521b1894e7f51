"""Where points can be: the spans that there may be, and which of them the data choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsimon import _core, kernels
from parsimon._checks import warn
from parsimon._lazy import lazy

from . import _auto
from ._choose import Choice, CrossValidation
from ._covariates import WithCovariates
from ._span import PointSpan, ProductSpan, Span
from ._window import Window, goes_round

Array = NDArray[np.float64]

# Points of a dictionary: of a grid with a Gaussian kernel, of any other grid, of samples.
_MOST_ON_GRID = 1 << 17
_MOST_POINTS = 1024
_MOST_SAMPLE_POINTS = 512
# Of a grid whose lengths are tried, along a feature: the cost grows with the cube.
_MOST_ALONG = 1024
# Of a grid that was asked for: along a feature, and in all where the kernel is no product.
_MOST_GIVEN = 1 << 12
# Nodes of an integral: of a grid, with any kernel, scattered at first, and at most.
MOST_NODES = 1 << 22
MOST_DENSE_NODES = 1 << 14
_SCATTERED = 1 << 13
_FEWEST_CELLS = (50, 10, 10)
# The same with covariates, which vary as they like.
_FEWEST_BESIDE = (400, 50, 20)
# Of those, at least so many in a window.
_FEWEST_INSIDE = 50
# A kernel reaches as far as that many lengths; the core's sums end there.
_REACH = 8.5
# A search for the bandwidth starts from that many times Silverman's, which is for kernels that are
# added up and not for their logarithm.
_START = 2.0
# Distinct samples, as a share of all, below which a kernel can find out that they are rounded.
# Narrower than that many gaps between them, it does.
_FEW_PLACES, _SPIKE = 1 / 20, 1.0
# By what lengths that are chosen on a part of the samples grow until a grid for all fits.
_A_LITTLE = 1.05


@dataclass(frozen=True)
class Place:
    """Where points can be, and how the span of a dictionary is made there."""

    estimator: Any
    domain: Array
    X: Array  # from which a dictionary is taken where there is no grid
    window: Window | None = None

    @lazy
    def sample(self) -> Array:
        """At most so many distinct points, always the same ones."""
        X = np.unique(self.X, axis=0)
        if len(X) > _MOST_SAMPLE_POINTS:
            rows = np.random.RandomState(0).permutation(len(X))[:_MOST_SAMPLE_POINTS]
            X = X[np.sort(rows)]
        return np.asarray(X)

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

    def span(self, given: Sequence[float], scales: int = 1) -> Span | None:
        """Return the span of kernels of these lengths; None if it would be too large."""
        span = self._span(given, scales)
        return None if span is None else self._beside(span)

    def candidate(self, given: Sequence[float], scales: int = 1) -> Span | None:
        """Return the same for lengths that are tried, which must not cost too much either."""
        spread = float((self.width / np.asarray(given, dtype=np.float64)).max())
        is_long = isinstance(self.estimator.grid_size, str) and spread > _MOST_ALONG
        return None if is_long else self.span(given, scales)

    def _beside(self, span: Span) -> Span:
        """Return a span with the covariates beside it, if there are any."""
        covariates = self.estimator.covariates
        return span if covariates is None else WithCovariates(span, covariates)

    def _span(self, given: Sequence[float], scales: int) -> Span | None:
        counts = _auto.check_grid_size("grid_size", self.estimator.grid_size)
        lengths = np.asarray(given, dtype=np.float64)
        features = len(self.domain)
        if features > _auto.MOST_GRID_FEATURES:
            chosen = self.sample if counts is None else self._grid_of(counts, lengths).points
            rule = _core.Quadrature.scattered(_SCATTERED)
            return PointSpan(self.kernel(given), chosen, self.domain, rule, self.window)
        grid = self._grid(lengths, None) if counts is None else self._grid_of(counts, lengths)
        cells = np.maximum(self._cells(lengths), grid.counts)
        points, nodes = (float(np.prod(np.asarray(n, dtype=float))) for n in (grid.counts, cells))
        most_nodes = MOST_NODES >> features if self.is_product else MOST_DENSE_NODES
        if counts is None and (points > self.most_points or nodes > most_nodes):
            return None
        if self.is_product:
            whole = [int(n) for n in cells]
            return ProductSpan(
                grid, lengths.tolist(), self.domain, whole, self.window, scales=scales
            )
        rule = _core.Quadrature.grid([int(n) for n in cells])
        return PointSpan(self.kernel(given), grid.points, self.domain, rule, self.window)

    @property
    def most_points(self) -> int:
        """Return how many points a grid may have."""
        return _MOST_ON_GRID if self.is_product else _MOST_POINTS

    def can_be_summed(self, lengths: Array) -> bool:
        """Tell whether an integral has few enough nodes for a dictionary that is no grid."""
        is_scattered = len(self.domain) > _auto.MOST_GRID_FEATURES
        return is_scattered or float(np.prod(self._cells(lengths))) <= MOST_DENSE_NODES

    def span_of_points(self, points: Array, lengths: Array) -> Span:
        """Return the span of kernels with any points."""
        rule = _core.Quadrature.scattered(_SCATTERED)
        if len(self.domain) <= _auto.MOST_GRID_FEATURES:
            rule = _core.Quadrature.grid([int(n) for n in self._cells(lengths)])
        kernel = self.kernel(lengths.tolist())
        return self._beside(PointSpan(kernel, points, self.domain, rule, self.window))

    def _cells(self, lengths: Array) -> Array:
        """Return the cells of an integral along each feature: half as wide as the kernel."""
        varied = self.estimator.covariates is not None
        fewest = (_FEWEST_BESIDE if varied else _FEWEST_CELLS)[len(lengths) - 1]
        cells = np.maximum(np.ceil(2 * self.width / lengths - 1e-9), fewest)
        if self.window is None:
            return np.asarray(cells)
        share = self.window.volume(self.domain) / float(np.prod(self.width))
        is_dense = not self.is_product or self.estimator._searches()
        most = MOST_DENSE_NODES >> 1 if is_dense else MOST_NODES >> (len(cells) + 1)
        if not share * most > _FEWEST_INSIDE:
            advice = "Give a domain that is closer around it"
            advice += ", or a Gaussian kernel and no budget." if is_dense else "."
            raise ValueError(
                f"The window takes {share:.2g} of the domain {self.domain.tolist()}, which is too "
                f"little for the nodes of an integral. {advice}"
            )
        more = (_FEWEST_INSIDE / (share * float(np.prod(cells)))) ** (1 / len(cells))
        return np.asarray(np.ceil(cells * max(more, 1.0) - 1e-9))

    def _grid_of(self, counts: list[int], lengths: Array) -> _core.ProductGrid:
        """Return the grid that was asked for, if it is not too large to be solved on."""
        each = _auto.grid_counts(counts, len(self.domain))
        most = self.most_points if self.is_product else _MOST_GIVEN
        if max(each) > _MOST_GIVEN or float(np.prod([float(n) for n in each])) > most:
            raise ValueError(
                f"grid_size={self.estimator.grid_size!r} makes a grid of {each} points, which is "
                f"too large to be solved on: at most {_MOST_GIVEN} along a feature and {most} in "
                f"all. Choose a smaller one, or grid_size='auto'."
            )
        return self._grid(lengths, counts)

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
        round_and_round = goes_round(self.estimator.periodic, len(width))
        if round_and_round.any():
            # Copies of the points of one period, as far beyond either end as the kernel reaches.
            within = np.maximum(np.ceil(width / lengths - 1e-9), 3) if given is None else counts
            around = width / within
            beyond = np.ceil(_REACH * lengths / around)
            low = np.where(round_and_round, self.domain[:, 0] - beyond * around, low)
            step = np.where(round_and_round, around, step)
            counts = np.where(round_and_round, within + 2 * beyond, counts)
        return _core.ProductGrid(low.tolist(), step.tolist(), [int(n) for n in counts])


def _is_gaussian(kernel: Any) -> bool:
    return isinstance(kernel, kernels.Gaussian)


def choose(place: Place, X: Array, amounts: Array, of: tuple[int, float] | None = None) -> Choice:
    """Return lengths of the kernel, ridge and scales, as given or by cross-validation.

    of: how many points there are, and how many they stand for, if X are some of them.
    """
    estimator = place.estimator
    total, mass = of or (len(X), float(amounts.sum()))
    # Of a rule that gives fewer samples wider kernels.
    narrower = (len(X) / total) ** (1 / (X.shape[1] + 4))
    given, regularization = estimator.bandwidth, estimator.regularization
    ridge = None if isinstance(regularization, str) else float(regularization) * mass
    move = isinstance(given, str) and given == "auto" and isinstance(estimator.kernel, str)
    if isinstance(estimator.kernel, kernels.Kernel):
        bandwidth = getattr(estimator.kernel, "bandwidth", None)
        lengths = place.width / 8 if bandwidth is None else np.asarray(bandwidth, dtype=float)
    elif move:
        lengths = narrower * _START * np.asarray(_auto.silverman(X, place.domain))
    else:
        lengths = np.asarray(_auto.choose_bandwidth(given, X, place.domain), dtype=float)
        lengths = lengths * (narrower if isinstance(given, str) else 1.0)
    if lengths.size not in (1, len(place.domain)):
        raise ValueError(
            f"The bandwidth has {lengths.size} numbers, but X has {len(place.domain)} features; "
            f"give one for all, or one for each."
        )
    lengths = np.broadcast_to(lengths, len(place.domain)).astype(float)
    make_span = place.candidate if move else place.span
    while make_span(lengths.tolist()) is None:
        # Coarser than asked for is better than not at all; what it costs shows in the likelihood.
        if not move:
            raise ValueError(
                f"A kernel of length {lengths.tolist()} needs more than the {place.most_points} "
                f"points that a grid may have in this domain; choose a larger bandwidth, or a "
                f"kernel by name with bandwidth='auto'."
            )
        lengths = lengths * 2
    scales = 1 if isinstance(estimator.scales, str) else int(estimator.scales)
    if scales == 2 and not place.is_product:
        raise ValueError(
            f"scales=2 needs a grid, which at most {_auto.MOST_GRID_FEATURES} features can have; X "
            f"has {X.shape[1]}."
        )
    if (ridge is not None and not move) or len(X) < _auto.ENOUGH:
        return Choice(lengths, 1.0 if ridge is None else ridge, scales)
    validation = CrossValidation(X, amounts, make_span)
    validation.total = total
    # Who has given the kernel or the ridge means that one, and not a sum.
    broaden = move and ridge is None and place.is_product and not estimator._searches()
    broaden = broaden and isinstance(estimator.scales, str)
    choice = validation.choose(lengths, ridge, move=move, scales=scales, broaden=broaden)
    if not move:
        return choice
    if (place.width / choice.lengths).max() > _MOST_ALONG / 2:
        warn(
            f"Kernels of half the lengths {choice.lengths.tolist()} cannot be tried in a domain as "
            f"wide as {place.width.tolist()}, and might be better. "
            f"Transform features with long tails, for example by a logarithm, or give the domain "
            f"that matters."
        )
    few = validation.places < _FEW_PLACES * len(validation.X)
    if few and (choice.lengths < _SPIKE * _gaps(validation.X)).any():
        warn(
            f"{len(validation.X)} samples are at {validation.places} places, as if they were "
            f"rounded or counts, and the kernels of lengths {choice.lengths.tolist()} that fit "
            f"them best make spikes there. Add noise of the size of the rounding, or give the "
            f"bandwidth."
        )
    return _fitting(place, validation.scale_up(choice))


def _gaps(X: Array) -> Array:
    """Return the median gap between different values of each feature."""
    every = [np.diff(np.unique(column)) for column in X.T]
    return np.array([float(np.median(gaps)) if len(gaps) else np.inf for gaps in every])


def _fitting(place: Place, choice: Choice) -> Choice:
    """Return a choice with its lengths, or a little more if their grid would be too large."""
    while place.span(choice.lengths.tolist()) is None:
        choice = replace(choice, lengths=choice.lengths * _A_LITTLE)
    return choice


def found(place: Place, lengths: Array) -> tuple[Span, Array]:
    """Return the span of the points that the estimator's algorithm finds, and the kernel's lengths.

    Those are larger than was chosen where the integral would have too many nodes.
    """
    estimator = place.estimator
    while not place.can_be_summed(lengths):
        is_ours = isinstance(estimator.bandwidth, str) and estimator.bandwidth == "auto"
        if not is_ours or isinstance(estimator.kernel, kernels.Kernel):
            raise ValueError(
                f"With a kernel of length {lengths.tolist()} the integral needs more than "
                f"{MOST_DENSE_NODES} nodes, which is too many for a dictionary of samples; choose "
                f"a larger bandwidth, or give neither budget nor parsimony."
            )
        lengths = lengths * 2**0.5
    model = estimator._scout(place, lengths.tolist())
    return place.span_of_points(np.asarray(model.dictionary), lengths), lengths

"""Does an intensity fit the points? Tests that users of point processes know.

:func:`time_rescaling` and :func:`quadrat_test` compare a fitted intensity with a realisation X.
They differ in what they see: the gaps between neighbours on a line, or the number of points in the
cells of a partition. :func:`likelihood_ratio_test` asks whether X needs an intensity at all, or
could as well be from a homogeneous process.

By default both are conditional on the number of points: the intensity is scaled so that its
integral is ``len(X)``, and only its shape is judged. That is right for the points the estimator has
learned from, and for a part of a realisation that was held out. Where the number itself is to be
judged, say for a second realisation of the same process, give the number that was to be expected as
`expected_count`; for a realisation like that of the training, it is ``estimator.n_points_``.

An estimator fits the points that it has learned from better than others: on those, p-values are too
large. A p-value that means what it says needs points that were held out.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from ._checks import check_count, is_number
from .spppot._window import folded

__all__ = [
    "LikelihoodRatioReport",
    "QuadratReport",
    "TimeRescalingReport",
    "likelihood_ratio_test",
    "quadrat_test",
    "time_rescaling",
]

FloatArray = NDArray[np.float64]

# Points of simulated processes that are drawn together.
_MOST_DRAWN = 1 << 17


@dataclass(frozen=True, eq=False)
class TimeRescalingReport:
    """What :func:`time_rescaling` found.

    Attributes
    ----------
    residuals : ndarray of shape (n_points,)
        The rescaled gap before each point, in ascending order of the points: independent and
        exponential with mean 1 if the intensity is right.
    uniforms : ndarray of shape (n_points,)
        ``1 - exp(-residuals)``, uniform on (0, 1) if the intensity is right.
    statistic : float
        Kolmogorov-Smirnov distance between the distribution of `uniforms` and the uniform one.
    p_value : float
        Probability of such a distance, or a larger one, if the intensity is right.
    expected_count : float
        The number of points that was expected.
    """

    residuals: FloatArray
    uniforms: FloatArray
    statistic: float
    p_value: float
    expected_count: float


@dataclass(frozen=True, eq=False)
class QuadratReport:
    """What :func:`quadrat_test` found.

    Attributes
    ----------
    edges : tuple of ndarray
        The edges of the cells along each feature.
    observed : ndarray of int of shape `n_quadrats`
        Points in each cell.
    expected : ndarray of shape `n_quadrats`
        Points to be expected in each cell.
    residuals : ndarray of shape `n_quadrats`
        Pearson's residuals, ``(observed - expected) / sqrt(expected)``, before cells are merged. A
        cell where nothing is expected has 0, or infinity if there are points in it.
    statistic : float
        The sum of the squared residuals after merging.
    dof : int
        Degrees of freedom: the number of cells after merging, less 1 if `expected_count` was not
        given.
    p_value : float
        Probability of such a statistic, or a larger one, if the intensity is right.
    n_merged : int
        Cells that were merged into one.
    expected_count : float
        The number of points that was expected.
    """

    edges: tuple[FloatArray, ...]
    observed: NDArray[np.int64]
    expected: FloatArray
    residuals: FloatArray
    statistic: float
    dof: int
    p_value: float
    n_merged: int
    expected_count: float


@dataclass(frozen=True, eq=False)
class LikelihoodRatioReport:
    """What :func:`likelihood_ratio_test` found.

    Attributes
    ----------
    statistic : float
        The log-likelihood of the points, above that of the uniform density.
    e_value : float
        ``exp(statistic)``: the evidence against a homogeneous process, whose mean is 1 if the
        process is one. E-values of independent tests can be multiplied.
    p_value : float
        The share of simulated homogeneous processes whose statistic is at least as large.
    """

    statistic: float
    e_value: float
    p_value: float


def likelihood_ratio_test(
    estimator: Any, X: ArrayLike, *, n_simulations: int = 199, random_state: Any = None
) -> LikelihoodRatioReport:
    """Test whether points that were held out are from a homogeneous process.

    If they are, they are uniform on the domain, whatever the estimator has learned from others: the
    likelihood ratio then has a mean of 1, and is large with a probability of 1 / e_value at most.
    The p-value comes from as many uniform points, drawn again and again; it is exact, too. Points
    that the estimator has learned from fit better than these, and would always be significant.

    Parameters
    ----------
    estimator : estimator
        A fitted intensity, such as :class:`parsimon.SPPPOTIntensity`.
    X : array-like of shape (n_points, n_features)
        Points that it has not learned from, all of them in its domain.
    n_simulations : int, default=199
        How many homogeneous processes to draw. The p-value is at least one over that and one more.
    random_state : int, RandomState instance or None, default=None
        Source of the randomness.

    Returns
    -------
    report : LikelihoodRatioReport
        The ratio, and the test's p-value.

    Examples
    --------
    >>> from parsimon import SPPPOTIntensity
    >>> from parsimon.datasets import make_poisson_gaussian
    >>> from parsimon.goodness_of_fit import likelihood_ratio_test
    >>> X = make_poisson_gaussian(400, random_state=0)
    >>> model = SPPPOTIntensity(domain=[(0, 1)]).fit(X[:200])
    >>> likelihood_ratio_test(model, X[200:], random_state=0).p_value
    0.005
    """
    points = _check_points(estimator, X, "likelihood_ratio_test")
    check_count("n_simulations", n_simulations)
    random = check_random_state(random_state)
    low, high = np.asarray(estimator.domain_).T
    volume = float(getattr(estimator, "volume_", np.prod(high - low)))  # of a window in it
    values, drawn = _log_densities(estimator, points), list[float]()
    at_once = max(1, _MOST_DRAWN // len(points))
    for start in range(0, n_simulations if np.isfinite(values).all() else 0, at_once):
        count = min(at_once, n_simulations - start)
        uniform = _uniform(estimator, volume, count * len(points), random)
        drawn += _log_densities(estimator, uniform).reshape(count, -1).sum(axis=1).tolist()
    statistic = float(values.sum()) + len(points) * np.log(volume)
    as_large = int(np.sum(np.array(drawn) >= values.sum()))
    if not np.isfinite([statistic, *drawn]).all():
        raise ValueError(
            "likelihood_ratio_test needs an intensity that is positive everywhere; this one is not."
        )
    with np.errstate(over="ignore"):
        e_value = float(np.exp(statistic))
    return LikelihoodRatioReport(statistic, e_value, (1 + as_large) / (1 + n_simulations))


def _uniform(
    estimator: Any, volume: float, count: int, random: np.random.RandomState
) -> FloatArray:
    """Draw points that are uniform on the domain, or on a window in it."""
    low, high = np.asarray(estimator._box() if hasattr(estimator, "_box") else estimator.domain_).T
    accepted = volume / float(np.prod(high - low))
    drawn, missing = [np.empty((0, len(low)))], count
    while missing > 0:
        more = int(1.1 * missing / accepted) + 10
        some = random.uniform(low, high, (min(more, 16 * _MOST_DRAWN), len(low)))
        if hasattr(estimator, "_contain"):
            some = some[estimator._contain(some)]
        drawn.append(some)
        missing -= len(some)
    return np.concatenate(drawn)[:count]


def time_rescaling(
    estimator: Any, X: ArrayLike, *, expected_count: float | None = None
) -> TimeRescalingReport:
    """Test a fitted intensity on a line by the gaps between its points.

    With L(t) the integral of the intensity up to t, the points L(t_1) < L(t_2) < ... of a Poisson
    process are one of rate 1, so their gaps are exponential with mean 1 [1]_. A Kolmogorov-Smirnov
    test tells whether they are.

    If `expected_count` is not given, the number n of points is taken as known, and a gap is
    measured against the points that are yet to come: (n - i + 1) log(S(t_(i-1)) / S(t_i)) for the
    i-th point, where S(t) is the share of the intensity beyond t. Given n, these residuals are
    exactly independent and exponential. The gaps of L, scaled to n in all, are not: they have a
    given sum, and the test would reject too rarely.

    Parameters
    ----------
    estimator : estimator
        A fitted intensity of one feature, such as :class:`parsimon.SPPPOTIntensity`.
    X : array-like of shape (n_points, 1)
        The points, in any order, all of them in the estimator's domain.
    expected_count : float, optional
        The number of points to be expected in the domain, if it is to be judged, too. The
        residuals are then the gaps of L, scaled to `expected_count` in all.

    Returns
    -------
    report : TimeRescalingReport
        Residuals, and the test's statistic and p-value.

    Notes
    -----
    Points that coincide, as they do in rounded data, have a gap of 0. Many of these are evidence
    against every intensity: add noise of the size of the rounding before the test.

    References
    ----------
    .. [1] E. N. Brown, R. Barbieri, V. Ventura, R. E. Kass and L. M. Frank, "The time-rescaling
       theorem and its application to neural spike train data analysis", Neural Computation 14
       (2002).

    Examples
    --------
    >>> from parsimon import SPPPOTIntensity
    >>> from parsimon.datasets import make_poisson_gaussian
    >>> from parsimon.goodness_of_fit import time_rescaling
    >>> X = make_poisson_gaussian(3000, random_state=0)
    >>> model = SPPPOTIntensity(domain=[(0, 1)], random_state=0).fit(X[1000:])
    >>> report = time_rescaling(model, X[:1000])
    >>> report.residuals.shape
    (1000,)
    >>> shifted = time_rescaling(model, 0.9 * X[:1000])
    >>> shifted.p_value < 1e-6
    True
    """
    points = _check_points(estimator, X, "time_rescaling")
    if points.shape[1] != 1:
        raise ValueError(
            f"time_rescaling needs points on a line, with one feature; X has {points.shape[1]}. "
            f"Use quadrat_test for more."
        )
    total = _check_count(expected_count, len(points))
    masses = _masses_between(estimator, np.sort(points[:, 0]))
    if expected_count is None:
        # Summed from the far end: 1 - L(t) would lose all digits in the tail.
        beyond = np.cumsum(masses[::-1])[::-1][:-1]
        share = np.divide(masses[:-1], beyond, out=np.zeros_like(beyond), where=beyond > 0)
        with np.errstate(divide="ignore"):  # nothing beyond the last point: an infinite gap
            residuals = np.arange(len(points), 0.0, -1.0) * -np.log1p(-np.minimum(share, 1.0))
    else:
        residuals = masses[:-1] * (total / masses.sum())
    uniforms = -np.expm1(-residuals)
    test = stats.kstest(uniforms, "uniform")
    return TimeRescalingReport(
        residuals, uniforms, float(test.statistic), float(test.pvalue), total
    )


def quadrat_test(
    estimator: Any,
    X: ArrayLike,
    n_quadrats: int | Sequence[int] = 5,
    *,
    expected_count: float | None = None,
    min_expected: float = 5.0,
) -> QuadratReport:
    """Test a fitted intensity by the number of points in the cells of a partition.

    The domain is cut into boxes of equal size. The numbers of points in them are compared with what
    the intensity says, by Pearson's chi-square test.

    The chi-square distribution is an approximation that needs some points to be expected in every
    cell that it counts. Cells with less than `min_expected` are merged into one, wherever they are;
    if not even that one has enough, the smallest of the others joins it. Which cells those are does
    not depend on the points, so the test remains valid.

    Parameters
    ----------
    estimator : estimator
        A fitted intensity, such as :class:`parsimon.SPPPOTIntensity`.
    X : array-like of shape (n_points, n_features)
        The points, all of them in the estimator's domain.
    n_quadrats : int or sequence of n_features ints, default=5
        Number of cells along each feature: 5 makes 25 cells in the plane.
    expected_count : float, optional
        The number of points to be expected in the domain, if it is to be judged, too. By default it
        is the number of points in `X`; the counts then have a given sum, which takes one degree of
        freedom.
    min_expected : float, default=5.0
        Cells with a smaller expected count are merged.

    Returns
    -------
    report : QuadratReport
        Counts and residuals of the cells, and the test's statistic, degrees of freedom and p-value.

    Examples
    --------
    >>> import numpy as np
    >>> from parsimon import SPPPOTIntensity
    >>> from parsimon.goodness_of_fit import quadrat_test
    >>> X = np.random.default_rng(0).beta(2, 2, size=(3000, 2))
    >>> model = SPPPOTIntensity(domain=[(0, 1), (0, 1)], random_state=0).fit(X[1000:])
    >>> report = quadrat_test(model, X[:1000], n_quadrats=(4, 4))
    >>> report.observed.shape, int(report.observed.sum()), report.dof
    ((4, 4), 1000, 15)
    >>> quadrat_test(model, X[:1000] ** 2).p_value < 1e-6
    True
    """
    points = _check_points(estimator, X, "quadrat_test")
    total = _check_count(expected_count, len(points))
    if not is_number(min_expected) or min_expected <= 0:
        raise ValueError(f"min_expected must be a positive number; got {min_expected!r}.")
    shape = _check_cells(n_quadrats, points.shape[1])
    domain = np.asarray(estimator.domain_)
    edges = tuple(
        np.linspace(low, high, count + 1) for (low, high), count in zip(domain, shape, strict=True)
    )
    observed = np.histogramdd(points, bins=edges)[0]
    expected = _expected_counts(estimator, edges)
    expected *= total / expected.sum()
    residuals = _pearson(observed, expected)
    merged_observed, merged_expected, n_merged = _merge(observed, expected, min_expected)
    dof = len(merged_expected) - (expected_count is None)
    if dof < 1 or merged_expected.min() < min_expected:
        raise ValueError(
            f"quadrat_test needs {2 if expected_count is None else 1} or more cells where at least "
            f"min_expected={min_expected} points are expected; with {total:g} points expected in "
            f"{observed.size} cells, there are {np.sum(merged_expected >= min_expected)}. Use "
            f"more points or other quadrats."
        )
    statistic = float(np.square(_pearson(merged_observed, merged_expected)).sum())
    return QuadratReport(
        edges=edges,
        observed=observed.astype(np.int64),
        expected=expected,
        residuals=residuals,
        statistic=statistic,
        dof=dof,
        p_value=float(stats.chi2.sf(statistic, dof)),
        n_merged=n_merged,
        expected_count=total,
    )


def _check_points(estimator: Any, X: ArrayLike, test: str) -> FloatArray:
    check_is_fitted(estimator)
    if not hasattr(estimator, "domain_"):
        raise ValueError(
            f"{test} needs an intensity with a domain, such as SPPPOTIntensity; "
            f"{type(estimator).__name__} has no domain_."
        )
    points: FloatArray = check_array(X, dtype=np.float64, input_name="X")
    domain = np.asarray(estimator.domain_)
    if points.shape[1] != len(domain):
        raise ValueError(
            f"X must have the {len(domain)} features that {type(estimator).__name__} has learned "
            f"from; it has {points.shape[1]}."
        )
    if hasattr(estimator, "periodic_"):
        points = folded(points, domain, np.asarray(estimator.periodic_))
    outside = ((points < domain[:, 0]) | (points > domain[:, 1])).any(axis=1)
    if outside.any():
        first = int(outside.argmax())
        raise ValueError(
            f"The points must lie in the estimator's domain, {domain.tolist()}; {outside.sum()} of "
            f"{len(points)} do not, the first of them X[{first}] = {points[first].tolist()}. Leave "
            f"them out, or fit with a larger domain."
        )
    return points


def _check_count(expected_count: float | None, n_points: int) -> float:
    if expected_count is None:
        return float(n_points)
    if not is_number(expected_count) or expected_count <= 0:
        raise ValueError(f"expected_count must be a positive number; got {expected_count!r}.")
    return float(expected_count)


_MAX_CELLS = 1_000_000


def _check_cells(n_quadrats: int | Sequence[int], n_features: int) -> tuple[int, ...]:
    given = [n_quadrats] * n_features if isinstance(n_quadrats, Integral) else n_quadrats
    counts = list(given) if isinstance(given, (Sequence, np.ndarray)) else []
    if len(counts) != n_features or not all(isinstance(c, Integral) and int(c) > 0 for c in counts):
        raise ValueError(
            f"n_quadrats must be a positive integer or a sequence of {n_features}, one for each "
            f"feature; got {n_quadrats!r}."
        )
    shape = tuple(int(count) for count in counts)
    if math.prod(shape) > _MAX_CELLS:
        raise ValueError(
            f"n_quadrats makes {math.prod(shape)} cells, more than the {_MAX_CELLS} allowed; use "
            f"fewer along each of the {n_features} features."
        )
    return shape


def _masses_between(estimator: Any, x: FloatArray) -> FloatArray:
    """Integrate the density from the domain's low end over the sorted points to its high end.

    Between any two neighbours of the points and a grid, Gauss's rule with three nodes is exact for
    polynomials of degree 5. The grid is finer than the features that a dictionary can make.
    """
    ((low, high),) = np.asarray(estimator.domain_)
    cells = max(1000, 4 * len(estimator.nodes_))
    knots = np.unique(np.concatenate([np.linspace(low, high, cells + 1), x]))
    left, width = knots[:-1], np.diff(knots)
    nodes, weights = np.polynomial.legendre.leggauss(3)
    at = left[:, None] + width[:, None] * (nodes + 1) / 2
    log_density = _log_densities(estimator, at.reshape(-1, 1))
    if np.isnan(log_density).any():
        raise ValueError(
            "time_rescaling needs an intensity that is nowhere negative; this one is. A mirror "
            "map other than 'euclidean' keeps it positive."
        )
    pieces = np.exp(log_density).reshape(at.shape) @ weights * width / 2
    gap = np.searchsorted(x, left, side="right")
    return np.asarray(np.bincount(gap, weights=pieces, minlength=len(x) + 1), dtype=np.float64)


def _log_densities(estimator: Any, at: FloatArray) -> FloatArray:
    with warnings.catch_warnings():  # this is no data frame, even if X was one
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return np.asarray(estimator.score_samples(at), dtype=np.float64)


def _expected_counts(estimator: Any, edges: tuple[FloatArray, ...]) -> FloatArray:
    counts = np.empty([len(edge) - 1 for edge in edges])
    for cell in np.ndindex(counts.shape):
        box = [(edge[i], edge[i + 1]) for i, edge in zip(cell, edges, strict=True)]
        counts[cell] = estimator.expected_count(np.array(box))
    if not (counts >= 0).all():
        raise ValueError(
            "quadrat_test needs an intensity that is nowhere negative; this one is. A mirror map "
            "other than 'euclidean' keeps it positive."
        )
    return counts


def _pearson(observed: FloatArray, expected: FloatArray) -> FloatArray:
    surplus = observed - expected
    nowhere = np.where(surplus > 0, np.inf, 0.0)
    return np.divide(surplus, np.sqrt(expected), out=nowhere, where=expected > 0)


def _merge(
    observed: FloatArray, expected: FloatArray, minimum: float
) -> tuple[FloatArray, FloatArray, int]:
    """Merge the cells that expect too little into one, with others until it expects enough."""
    order = np.argsort(expected, axis=None, kind="stable")
    observed, expected = observed.ravel()[order], expected.ravel()[order]
    count = int(np.searchsorted(expected, minimum))
    if count and expected[:count].sum() < minimum:
        count = min(count + 1, len(expected))
    if count < 2:
        return observed, expected, 0
    starts = np.r_[0, count : len(expected)]
    return np.add.reduceat(observed, starts), np.add.reduceat(expected, starts), count

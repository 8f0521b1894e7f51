"""What an intensity that has been learned is asked."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from parsimon import _core
from parsimon._checks import check_count
from parsimon._docs import documented
from parsimon._formula import Density, Head
from parsimon._model import Array, ModelEstimator
from parsimon._sklearn import DensityMixin
from parsimon._threads import threads_of

from . import _auto, _solved
from ._covariates import WithCovariates, values_of
from ._quadrature import draw, integrate
from ._span import scattered
from ._window import Window, folded, pieces, window_of

# Cells along each feature of an integral over all of a window, at least, and over a part of it.
_IN_WINDOW, _IN_PART = (1024, 96, 24), 8
# Cells that points are drawn from, at least, where there are as many nodes.
_CELLS_TO_DRAW_FROM = 1 << 10
# Nodes of an integral over more features than a grid can cover.
_SCATTERED = 1 << 15

ENTRIES = """
X : array-like of shape (n_samples, n_features)
    The points.
y : None
    Ignored; present by convention.
sample_weight : array-like of shape (n_samples,), optional
    How many points each of them stands for. Only with ``solver="newton"``.
exposure : float, optional
    For how long, or how many times, these points were looked for: intensities are then per unit of
    exposure. In a stream, those of all blocks add up.
validation : array-like of shape (n_validation, n_features), optional
    Points whose negative log-likelihood is measured along the way, for
    ``trace_["validation_nll"]``.
log_density : ndarray of shape (n_samples,)
    Minus infinity outside the domain.
log_likelihood : float
    The sum of ``score_samples(X)``.
"""


@documented(ENTRIES)
class Learned(DensityMixin, ModelEstimator):
    """A density in a domain, however it was learned; times the number of points, an intensity."""

    window: Any
    covariates: Any
    domain_: Array
    periodic_: NDArray[np.bool_]
    exposure_: float
    scales_: int
    _validation_: Array
    _weight_: float
    _fit_points_: int
    _fit_samples_: int

    _does_not_need_weights = frozenset(
        {"t_", "n_points_", "nodes_", "dictionary_", "model_order_", "kernel_", "in_second_phase_"}
    )

    def _latest(self) -> tuple[Any, Any, tuple[float, float]]:
        """Return the latest model, the span of its points if it is known, and what is unsolved."""
        model, unsolved = self._model, self.__dict__.get("_unsolved_", (0.0, 0.0))
        known = self.__dict__.get("_known_solution")
        if known is not None and known[0] is model:
            model, unsolved = known[1], (0.0, 0.0)
        span = self.__dict__.get("_known_span")
        return model, span[1] if span is not None and span[0] is model else None, unsolved

    def _solved(self) -> Any:
        """Return the latest model, with weights for all that it has observed."""
        before = self._model
        model, span, unsolved = self._latest()
        if unsolved[1] > 0:
            model, span, found = _solved.caught_up(self, model, span, unsolved)
            # Only for this model: another thread may have gone on.
            self.__dict__.update(_known_solution=(before, model, found), _known_span=(model, span))
        return model

    def _fitted_model(self) -> Any:
        super()._fitted_model()
        return self._solved()

    def _state(self, name: str) -> Any:
        model = super()._state(name)
        return model if name in self._does_not_need_weights else self._solved()

    def score_samples(self, X: ArrayLike) -> Array:
        """Return the logarithm of the density at each point.

        The density is normalised: what steps have learned is divided by its integral over the
        domain, and what was solved for is found with an integral of 1.

        {X -> log_density}
        """
        model = self._fitted_model()
        points = folded(self._validate_samples(X), self.domain_, self.periodic_)
        with threads_of(self.n_jobs):
            return self._log_density(model, points) - self._log_integral(model)

    def _log_density(self, model: Any, points: Array) -> Array:
        """Return what a model says, and minus infinity outside the window."""
        values, window = self._log_density_around(model, points), self._fitted_window()
        return values if window is None else np.where(window.contains(points), values, -np.inf)

    def _log_density_around(self, model: Any, points: Array) -> Array:
        """Return the same as if there were no window."""
        values = np.asarray(model.log_density(points))
        coefficients = self._coefficients(model)
        if len(coefficients):
            inside = np.isfinite(values)
            values[inside] += values_of(self.covariates, points[inside]) @ coefficients
        return values

    def _coefficients(self, model: Any) -> Array:
        """Return those of the covariates that belong to a model."""
        known = self.__dict__.get("_known_solution")
        if known is not None and known[1] is model:
            return np.asarray(known[2])
        return np.asarray(self.__dict__.get("_coef_", ()), dtype=float)

    def _density(self, model: Any, points: Array) -> Array:
        values, window = self._density_around(model, points), self._fitted_window()
        return values if window is None else np.where(window.contains(points), values, 0.0)

    def _density_around(self, model: Any, points: Array) -> Array:
        """Return the same as if there were no window."""
        if len(self._coefficients(model)):
            return np.exp(self._log_density_around(model, points))
        return np.asarray(model.density(points))

    def _fitted_window(self) -> Window | None:
        """Return the window of the model, which a file keeps as it was given."""
        if "_window_" not in self.__dict__:
            self.__dict__["_window_"] = window_of(self.window)
        window: Window | None = self.__dict__["_window_"]
        return window

    def _span_of(self, model: Any) -> Any:
        window, scales = self._fitted_window(), self.scales_
        span = _solved.span_of(model, self._kernel_, self.domain_, window, scales)
        return span if self.covariates is None else WithCovariates(span, self.covariates)

    def score(self, X: ArrayLike, y: Any = None) -> float:  # noqa: ARG002
        """Return the total log-likelihood of the points, as scikit-learn's KernelDensity does.

        {X, y -> log_likelihood}
        """
        return float(self.score_samples(X).sum())

    def process_score(self, X: ArrayLike, exposure: float | None = None) -> float:
        """Return the log-likelihood of points as those of a Poisson process.

        That is the sum of the log-intensities, less the number of points that are expected in the
        domain; both are of the exposure, in the units of :meth:`fit`'s.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The points, all that were found.
        exposure : float, optional
            For how long they were looked for; by default as long as in training.

        Returns
        -------
        log_likelihood : float
            Minus infinity if a point is outside the domain.
        """
        log_density = self.score_samples(X)
        times = 1.0
        if exposure is not None:
            times = _solved.checked_exposure(exposure) / self.exposure_
        expected = self._total() * times
        return float(log_density.sum() + len(log_density) * np.log(expected) - expected)

    def intensity(self, X: ArrayLike, *, return_std: bool = False) -> Any:
        """Return the intensity at each point: the density times the number of points seen.

        If exposures were given, it is per unit of exposure.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The points.
        return_std : bool, default=False
            Whether to return standard deviations, too: by Laplace's approximation, from the
            curvature of the likelihood. Only with ``solver="newton"``.

        Returns
        -------
        intensity : ndarray of shape (n_samples,)
            Expected points per unit of volume; 0 outside the domain.
        std : ndarray of shape (n_samples,)
            Only if `return_std`. That of the logarithm is ``std / intensity``.
        """
        # Where a mirror map allows it, what was learned is negative; log densities are not.
        model = self._fitted_model()
        points = folded(self._validate_samples(X), self.domain_, self.periodic_)
        with threads_of(self.n_jobs):
            density = self._density(model, points) / self._divisor(model)
        values = density * (self._total() / self.exposure_)
        if not return_std:
            return values
        if not isinstance(model, _core.SolvedDensity):
            raise ValueError(
                "return_std needs the curvature of the likelihood, which solver='newton' knows."
            )
        return values, values * self._uncertainty().log_std(points)

    def _total(self) -> float:
        """Return how many points there were, with their weights."""
        model = self._fitted_model()
        if isinstance(model, _core.SolvedDensity):
            return float(self._weight_)
        return float(self.n_points_)

    def _log_integral(self, model: Any) -> float:
        """Return the logarithm of what densities are divided by."""
        if isinstance(model, _core.SolvedDensity):
            return 0.0
        key = (id(model), model.samples, model.batches)
        known = self.__dict__.get("_known_integral")
        if known is None or known[0] != key:
            integral = self._integral(model, self.domain_, self.domain_)
            # A model without an integral has no density anywhere.
            log = float(np.log(integral)) if 0 < integral < np.inf else np.inf
            known = key, log
            self.__dict__["_known_integral"] = known
        return float(known[1])

    def _divisor(self, model: Any) -> float:
        """Return what densities are divided by; 1 for those that can be negative and are."""
        log = self._log_integral(model)
        return float(np.exp(log)) if np.isfinite(log) else 1.0

    def _adopt_solved(self, model: Any, fitted: dict[str, Any], span: Any) -> None:
        self._adopt(model, fitted)
        self.__dict__["_known_span"] = (model, span) if span is not None else None

    def _uncertainty(self) -> Any:
        """Return how well the density is known, found once."""
        model, known = self._fitted_model(), self.__dict__.get("_known_uncertainty")
        if known is None or known[0] is not model:
            span = self._latest()[1] or self._span_of(model)
            known = model, _solved.restored(self, model, span).uncertainty()
            self.__dict__["_known_uncertainty"] = known
        return known[1]

    def expected_count(self, box: ArrayLike) -> float:
        """Return how many of the points seen are expected in a box.

        Parameters
        ----------
        box : array-like of shape (n_features, 2), or (2,) for one feature
            A pair (low, high) for each feature. What is outside the domain holds nothing. A feature
            that goes round has no outside: (22, 26) are the hours around midnight.

        Returns
        -------
        count : float
            The integral of the intensity over the box.
        """
        model = self._fitted_model()
        bounds = _auto.check_domain("box", box)
        if bounds is None or len(bounds) != self.n_features_in_:
            raise ValueError(
                f"box must be a pair (low, high) for each of the {self.n_features_in_} features; "
                f"got {box!r}."
            )
        parts = pieces(bounds, self.domain_, self.periodic_)
        share = sum(self._integral(model, self.domain_, part) for part in parts)
        share /= self._divisor(model)
        return float(self._total() / self.exposure_ * share)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draw points from the learned density.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState instance or None, default=None
            Source of the randomness.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The points, in the domain.
        """
        model = self._fitted_model()
        check_count("n_samples", n_samples)
        random = check_random_state(random_state)
        with threads_of(self.n_jobs):
            density = partial(self._log_density, model)
            box, width = self._box(), self.domain_[:, 1] - self.domain_[:, 0]
            part = float(np.prod((box[:, 1] - box[:, 0]) / width))
            cells = max(int(part * len(model.nodes)), min(_CELLS_TO_DRAW_FROM, len(model.nodes)))
            return draw(density, box, cells, n_samples, random)

    def simulate(self, exposure: float | None = None, random_state: Any = None) -> Array:
        """Draw a realisation of the Poisson process: as many points as there happen to be.

        Parameters
        ----------
        exposure : float, optional
            For how long, in the units of :meth:`fit`'s; by default as long as in training.
        random_state : int, RandomState instance or None, default=None
            Source of the randomness.

        Returns
        -------
        X : ndarray of shape (n_points, n_features)
            The points, in no order; there may be none.

        Examples
        --------
        >>> from parsimon import SPPPOTIntensity
        >>> from parsimon.datasets import make_poisson_gaussian
        >>> X = make_poisson_gaussian(500, random_state=0)
        >>> model = SPPPOTIntensity(domain=(0, 1)).fit(X, exposure=10.0)
        >>> 30 < len(model.simulate(exposure=1.0, random_state=0)) < 70
        True
        """
        self._fitted_model()
        times = 1.0
        if exposure is not None:
            times = _solved.checked_exposure(exposure) / self.exposure_
        random = check_random_state(random_state)
        count = int(random.poisson(self._total() * times))
        if count == 0:
            return np.empty((0, self.n_features_in_))
        return self.sample(count, random)

    def _integral(self, model: Any, domain: Array, box: Array) -> float:
        """Integrate what was learned over a box; outside of the domain there is nothing.

        Cells are at most half as wide as the kernel, whatever the dictionary; so they are in small
        boxes.
        """
        window = self._fitted_window()
        around = domain if window is None else window.around(domain)
        low, high = np.maximum(box[:, 0], around[:, 0]), np.minimum(box[:, 1], around[:, 1])
        cells = _auto.cells_for(model, high - low, domain[:, 1] - domain[:, 0])
        inner = np.column_stack([low, high])
        with threads_of(self.n_jobs):
            if cells is None and (low < high).all():
                nodes, share = scattered(_SCATTERED, np.asarray(model.dictionary), inner)
                return float(np.prod(high - low) * (share @ self._density(model, nodes)))
            if cells is None or window is None or not (low < high).all():
                return integrate(partial(self._density, model), inner, cells)
            part = (high - low) / (around[:, 1] - around[:, 0])
            fewest = np.maximum(np.ceil(_IN_WINDOW[len(low) - 1] * part), _IN_PART)
            cells = [int(n) for n in np.maximum(cells, fewest)]
            return integrate(partial(self._density_around, model), inner, cells, window)

    @property
    def integral_(self) -> float:
        """The integral of what was learned over the domain.

        What was solved for is normalised, so that this tells how well; what steps have learned is
        divided by it.
        """
        return self._integral(self._state("integral_"), self.domain_, self.domain_)

    @property
    def coef_(self) -> Array:
        """The coefficients of the covariates, in the logarithm of the intensity."""
        return self._coefficients(self._state("coef_"))

    @property
    def coef_std_(self) -> Array:
        """Their standard deviations, by Laplace's approximation."""
        if not len(self._coefficients(self._state("coef_std_"))):
            return np.empty(0)
        return np.asarray(self._uncertainty().deviations())

    @property
    def window_(self) -> list[Array] | None:
        """The rings of the window's polygons; None if it has none."""
        self._state("n_points_")
        window = self._fitted_window()
        return None if window is None else window.rings

    @property
    def volume_(self) -> float:
        """The volume of where points can be: of the domain, or of its window."""
        self._state("n_points_")
        window = self._fitted_window()
        if window is not None:
            return window.volume(self.domain_)
        return float(np.prod(self.domain_[:, 1] - self.domain_[:, 0]))

    def _box(self) -> Array:
        """Return a box that holds all points: the domain, or what is around its window."""
        window = self._fitted_window()
        return self.domain_ if window is None else window.around(self.domain_)

    def _contain(self, points: Array) -> NDArray[np.bool_]:
        """Tell which points of the domain are where points can be."""
        window = self._fitted_window()
        return np.ones(len(points), dtype=bool) if window is None else window.contains(points)

    @property
    def n_points_(self) -> int:
        """Points seen; those of repeated epochs count once."""
        samples = int(self._state("n_points_").samples)
        return int(self._fit_points_ + samples - self._fit_samples_)

    @property
    def nodes_(self) -> Array:
        """The nodes on which the density is integrated in training."""
        return np.asarray(self._state("nodes_").nodes)

    @property
    def trace_(self) -> dict[str, NDArray[Any]]:
        """What each mini-batch did, in arrays of equal length; NaN where nothing was measured."""
        trace = super().trace_
        if len(self._validation_):
            seen, values = self._validation_.T
            # The latest in each record, which may stand for several mini-batches.
            latest = np.searchsorted(seen, trace["samples"], side="right") - 1
            before = np.concatenate([[0], trace["samples"][:-1]])
            measured = (latest >= 0) & (seen[latest] > before)
            trace["validation_nll"] = np.where(measured, values[latest], np.nan)
        return trace

    def _head(self) -> Head:
        model = self._fitted_model()
        if self._fitted_window() is not None or self.covariates is not None:
            raise ValueError(
                "A density in a window or with covariates cannot be written down: only boxes and "
                "kernels can."
            )
        archive = model.to_archive()
        head = Density(
            archive.get("mirror", "kl"),
            np.asarray(archive.get("mirror.parameters", ()), dtype=float),
            self.domain_[:, 0],
            self.domain_[:, 1],
            log_volume=0.0,
            periodic=self.periodic_,
        )
        # The constant between the function and its density, whatever that is normalised by.
        nodes = self.nodes_
        found = self.score_samples(nodes)
        best = [int(found.argmax())]
        raw = head.log_density(np.asarray(model.expansion(nodes[best])), nodes[best])
        return replace(head, log_volume=float(raw[0] - found[best[0]]))

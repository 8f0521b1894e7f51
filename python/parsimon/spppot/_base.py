"""What the intensity estimators share: a density on a box, learned from a stream of points."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from parsimon import _core, _stream
from parsimon._checks import is_number, warn
from parsimon._docs import documented
from parsimon._model import Array
from parsimon._parameters import WORDS
from parsimon._types import Auto, Bandwidth, GridSize, Scales, Solver
from parsimon.kernels import Gaussian, Kernel

from . import _auto, _solved
from ._covariates import check_covariates
from ._learned import ENTRIES, Learned
from ._points import MOST_MEASURED, Points, Validation
from ._setting import Setting
from ._window import Window, check_periodic, check_window, folded, goes_round, window_of

if TYPE_CHECKING:
    from typing_extensions import Self

# How far from 1 an integral may be before it is worth a warning.
_TOLERABLE = 0.05
# The same in a stream, which is still being learned from, and the samples before the first look.
_TOLERABLE_IN_STREAMS = 0.5
_FIRST_LOOK = 1000


@documented(ENTRIES)
class Intensity(Learned):
    """A density on a box; times the number of points, an intensity."""

    domain: Any
    window: Any
    covariates: Any
    periodic: Any
    grid_size: GridSize
    bandwidth: Bandwidth
    scales: Scales
    epochs: int | Auto
    solver: Solver
    shuffle: bool
    random_state: Any
    half_life: float | Auto | None
    domain_: Array
    periodic_: NDArray[np.bool_]
    exposure_: float
    n_rejected_: int
    _buffer_: Array
    _chosen_at_: int

    _words = {
        **WORDS,
        "domain": _auto.check_domain,
        "window": check_window,
        "periodic": check_periodic,
        "covariates": check_covariates,
        "grid_size": _auto.check_grid_size,
        "kernel": _auto.check_kernel,
        "bandwidth": _auto.check_bandwidth,
        "scales": _auto.check_scales,
    }
    _floats = (np.float64,)
    _takes_sparse = False
    # Samples that fit takes in all, and epochs at most, if it is left to us.
    _effort = (80_000, 100)
    # Choices about steps that weights which are solved have no use for; nor for the others, unless
    # steps find the dictionary.
    _only_steps: ClassVar[dict[str, Any]] = {
        "mirror": "kl",
        "method": "mirror_descent",
        "average": True,
        "newton_learning_rate": "auto",
        "damping": "auto",
    }
    _of_steps: ClassVar[dict[str, Any]] = {
        "gradient": "likelihood",
        "learning_rate": "auto",
        "schedule": "constant",
        "patience": "auto",
        "first_phase": "auto",
    }
    _forgets_when_solved = True  # and only then

    # -- learning --------------------------------------------------------------------------------

    def fit(
        self,
        X: ArrayLike,
        y: Any = None,  # noqa: ARG002
        *,
        sample_weight: ArrayLike | None = None,
        exposure: float | None = None,
        validation: ArrayLike | None = None,
    ) -> Self:
        """Learn from all points, forgetting what was learned before.

        Those outside the domain are left out, with a warning.

        {X, y, sample_weight, exposure, validation -> self}
        """
        with self._unchanged_on_error():
            self._check_parameters()
            X = self._validate_samples(X, reset=True)
            points, fitted = self._first(X, sample_weight, validation)
            fitted |= {"_fit_points_": len(points), "_fit_samples_": None}
            fitted |= _solved.exposed(exposure, None, points.amounts)
            if self.solver == "newton":
                self._adopt_solved(*_solved.fit(self, points, fitted))
            else:
                _stream.fit(self, points, fitted)
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: Any = None,  # noqa: ARG002
        *,
        sample_weight: ArrayLike | None = None,
        exposure: float | None = None,
        validation: ArrayLike | None = None,
    ) -> Self:
        """Learn from one block of a stream, in the order given.

        The first block fixes the settings (domain, bandwidth, steps), with ``solver="newton"`` the
        first 5,000 points: hyper-parameters that are changed later have no effect before the next
        ``fit``. Points outside the domain are left out, with a warning. If learning ends half way,
        its finished mini-batches stay.

        {X, y, sample_weight, exposure, validation -> self}
        """
        with self._unchanged_on_error():
            self._check_parameters_if_changed()
            first = "_model" not in self.__dict__
            X = self._validate_samples(X, reset=first)
            if first:
                points, fitted = self._first(X, sample_weight, validation)
            else:
                if self.__dict__.get("_predicts_only_"):
                    raise _stream.cannot_go_on(self)
                points, fitted = self._further(X, sample_weight, validation)
            fitted |= _solved.exposed(exposure, None if first else self, points.amounts)
            if not len(points):
                self._adopt(self._model, fitted)
            elif self._is_solved(first):
                self._adopt_solved(*_solved.partial_fit(self, points, fitted, first=first))
            else:
                (_stream.begin if first else _stream.partial_fit)(self, points, fitted)
                self._warn_now_and_then()
        return self

    def _is_solved(self, first: bool) -> bool:
        if first:
            return self.solver == "newton"
        return isinstance(self._model, _core.SolvedDensity)

    def _first(
        self, X: Any, sample_weight: ArrayLike | None, validation: ArrayLike | None
    ) -> tuple[Points, dict[str, Any]]:
        self.__dict__.pop("_told_that_it_moves", None)
        amounts = self._amounts(X, sample_weight)
        window, round_and_round = window_of(self.window), goes_round(self.periodic, X.shape[1])
        if window is not None and window.rings is not None and X.shape[1] != 2:
            raise ValueError(f"A window of polygons is for 2 features; X has {X.shape[1]}.")
        around = None if window is None else window.bounds()
        domain, measured = _auto.choose_domain(self.domain, X, around), list[Any]()
        X = folded(X, domain, round_and_round)
        points, rejected = self._inside(
            X, amounts, domain, validation, measured, window=window, first=True
        )
        return points, {
            "domain_": domain,
            "periodic_": round_and_round,
            "scales_": 1,
            "_window_": window,
            "n_rejected_": rejected,
            "_fit_points_": 0,
            "_fit_samples_": 0,
            "_validation_": measured,
            "_buffer_": np.empty((0, X.shape[1] + 1)),
            "_chosen_at_": 0,
        }

    def _further(
        self, X: Any, sample_weight: ArrayLike | None, validation: ArrayLike | None
    ) -> tuple[Points, dict[str, Any]]:
        amounts = self._amounts(X, sample_weight)
        measured, domain = list(map(tuple, self._validation_)), self.domain_
        X = folded(X, domain, self.periodic_)
        window = self._fitted_window()
        is_ours = isinstance(self.domain, str) and (window is None or window.rings is None)
        if len(self._buffer_) and is_ours:
            (low, high), every = domain.T, np.vstack([self._buffer_[:, :-1], X])
            # As long as all points are here, so is the choice of where they can be: few of them
            # had wide gaps, and the margin that was left for more would stay for ever.
            due = _solved.is_due(len(every), self._chosen_at_)
            if due or not ((low <= X) & (high >= X)).all():
                domain = _auto.choose_domain(self.domain, every)
        points, rejected = self._inside(X, amounts, domain, validation, measured, window=window)
        fitted = {"n_rejected_": self.n_rejected_ + rejected}
        return points, fitted if points.watch is None else fitted | {"_validation_": measured}

    def _amounts(self, X: Array, sample_weight: ArrayLike | None) -> Array:
        weight = _stream.checked_weight(sample_weight, X)
        if sample_weight is None:
            return np.ones(len(X))
        if self.solver != "newton":
            raise ValueError(
                f"sample_weight needs solver='newton'; solver={self.solver!r} is the paper's "
                f"algorithm, which has none."
            )
        if not weight.any():
            raise ValueError("Sample weights must contain at least one non-zero number.")
        return weight

    def _inside(
        self,
        X: Array,
        amounts: Array,
        domain: Array,
        validation: ArrayLike | None,
        measured: list[Any],
        *,
        window: Window | None,
        first: bool = False,
    ) -> tuple[Points, int]:
        """Return the points in the domain and its window, and how many are not."""
        low, high = domain.T
        inside = ((low <= X) & (high >= X)).all(axis=1)
        where = f"the domain {domain.tolist()}"
        if window is not None:
            inside &= window.contains(X)
            where += " or the window"
        rejected = int(len(X) - inside.sum())
        if first and not inside.any():
            raise ValueError(f"None of the samples (n_samples={len(X)}) is in {where}.")
        if rejected:
            warn(
                f"{rejected} of {len(X)} samples are outside {where} and are left out; the first "
                f"is {X[~inside][0].tolist()}."
            )
        watch = None
        if validation is not None and self.covariates is not None:
            raise ValueError(
                "validation is not measured along the way with covariates; use process_score."
            )
        if validation is not None:
            try:
                held_out = self._validate_samples(validation)
            except ValueError as error:
                raise ValueError(f"The validation data cannot be used. {error}") from error
            watch = Validation(held_out, domain, measured)
        return Points(X[inside], domain, watch, amounts[inside]), rejected

    def _adopt(self, model: Any, fitted: dict[str, Any]) -> None:
        fitted = dict(fitted)
        if "_fit_samples_" in fitted and fitted["_fit_samples_"] is None:
            seen = int(model.samples)
            # Ctrl-C may have come within the first epoch.
            fitted |= {"_fit_samples_": seen, "_fit_points_": min(fitted["_fit_points_"], seen)}
        if "_validation_" in fitted:
            measured = np.reshape(fitted["_validation_"], (-1, 2)).astype(float)
            while len(measured) > MOST_MEASURED:
                measured = measured[len(measured) % 2 == 0 :: 2]  # the latest stays
            fitted["_validation_"] = measured
        super()._adopt(model, fitted)

    def _new_model(self, samples: Points, *, streaming: bool) -> tuple[Any, Kernel, int]:
        bandwidth = _auto.choose_bandwidth(self.bandwidth, samples.X, samples.domain)
        setting = self._setting(samples.X, samples.domain, bandwidth, streaming=streaming)
        return self._make_model(setting), setting.kernel, setting.epochs

    def _setting(self, X: Array, domain: Array, bandwidth: Any, *, streaming: bool) -> Setting:
        kernel = self.kernel
        if isinstance(kernel, str):
            kernel = _auto.KERNELS[kernel](bandwidth)
        kernel.core.check_features(X.shape[1])
        return Setting(
            kernel=kernel,
            domain=domain,
            quadrature=_auto.choose_quadrature(self.grid_size, domain, bandwidth),
            X=X,
            epochs=_auto.epochs(self.epochs, len(X), *self._effort),
            streaming=streaming,
        )

    def _searches(self) -> bool:
        """Tell whether weights are solved on points that the paper's algorithm finds."""
        return getattr(self, "budget", None) is not None or is_number(
            getattr(self, "parsimony", None)
        )

    def _scout(self, place: Any, bandwidth: list[float]) -> Any:
        """Return a model that the paper's algorithm has trained, for its dictionary."""
        setting = self._setting(place.X, place.domain, bandwidth, streaming=False)
        model, random = self._make_model(setting), check_random_state(self.random_state)
        samples = Points(place.X, place.domain, None)
        for _ in range(setting.epochs):
            _stream.run(self, model, samples, random if self.shuffle else None)
        _stream.warn_if_out_of_reach(self, model)
        return model

    def _check_together(self) -> None:
        steps = self._only_steps if self._searches() else self._only_steps | self._of_steps
        others = [name for name, usual in steps.items() if getattr(self, name, usual) != usual]
        if self.solver == "newton" and others:
            raise ValueError(
                f"{others[0]}={getattr(self, others[0])!r} is a choice about the paper's steps: "
                f"give it with solver='sgd'"
                + ("." if others[0] in self._only_steps else ", or with a budget.")
            )
        if self.solver == "sgd" and self._forgets_when_solved and is_number(self.half_life):
            raise ValueError(
                f"half_life={self.half_life!r} needs solver='newton': the steps of "
                f"{type(self).__name__} forget at a rate of their own."
            )
        more = (self.window, self.periodic, self.covariates)
        if self.solver == "sgd" and any(value is not None for value in more):
            raise ValueError(
                "The paper's steps are for boxes and for z alone: window and periodic need "
                "solver='newton', and so do covariates."
            )
        gaussian = isinstance(self.kernel, Gaussian) or self.kernel in ("rbf", "gaussian")
        if self.scales == 2 and (self.solver == "sgd" or not gaussian or self._searches()):
            raise ValueError(
                "scales=2 needs solver='newton', a Gaussian kernel, and neither budget nor "
                "parsimony."
            )
        self._check_periodic()

    def _check_periodic(self) -> None:
        if self.periodic is None or len(self.periodic) == 0:
            return
        gaussian = isinstance(self.kernel, Gaussian) or self.kernel in ("rbf", "gaussian")
        if isinstance(self.domain, str) or not gaussian or self._searches():
            raise ValueError(
                f"periodic={self.periodic!r} needs a domain, whose width is the period, a Gaussian "
                f"kernel, and neither budget nor parsimony."
            )
        if np.size(self.domain) > 2 * _auto.MOST_GRID_FEATURES:
            raise ValueError(
                f"periodic={self.periodic!r} needs a grid, which at most "
                f"{_auto.MOST_GRID_FEATURES} features can have."
            )

    def _make_model(self, setting: Setting) -> Any:
        """Return an untrained core model."""
        raise NotImplementedError

    def _kept_points(self, model: Any) -> int:
        # In the second phase of a hybrid nothing is removed any more, and the nodes are others.
        return 0 if getattr(model, "in_second_phase", False) else len(model.nodes)

    def _finish_fit(self, model: Any, samples: Points) -> None:
        self._warn_of(self._integral(model, samples.domain, samples.domain))

    def _warn_now_and_then(self) -> None:
        """Measure the integral of a stream whenever it has doubled; at first it may be off."""
        if self.t_ >= 2 * self.__dict__.get("_checked_at", _FIRST_LOOK / 2):
            self.__dict__["_checked_at"] = self.t_
            self._warn_of(self.integral_, _TOLERABLE_IN_STREAMS)

    @staticmethod
    def _warn_of(integral: float, tolerable: float = _TOLERABLE) -> None:
        if not abs(integral - 1) <= tolerable:
            warn(
                f"The learned density integrates to {integral:.3f} instead of 1, and is divided by "
                f"that. Choose solver='newton', a larger bandwidth, a finer grid_size or a smaller "
                f"learning rate.",
                ConvergenceWarning,
            )

    # -- files -----------------------------------------------------------------------------------

    def _entries(self) -> dict[str, Any]:
        log = self._log_integral(self._model)
        solved = isinstance(self._model, _core.SolvedDensity)
        found: dict[str, Any] = {}
        if not solved and np.isfinite(log):
            found["density.log_integral"] = log
        if self.periodic_.any():  # for programs in C++, as the following
            found["domain.periodic"] = self.periodic_.astype(np.float64)
        if self._fitted_window() is not None or self.covariates is not None:
            found["domain.window"] = 1
        return found

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        for name in (
            "_known_integral",
            "_known_solution",
            "_known_span",
            "_known_uncertainty",
            "_checked_at",
            "_unsolved_",
            "_told_that_it_moves",
        ):
            state.pop(name, None)
        if "_coef_" in state:  # of the model that is kept
            state["_coef_"] = self._coefficients(self._fitted_model())
        return state

    def _check_stored(self, fitted: dict[str, Any], archive: _core.Archive) -> None:
        # Which files of the first versions do not have.
        fitted.setdefault("exposure_", 1.0)
        fitted.setdefault("_weight_", float(archive["samples"]))
        fitted.setdefault("_is_exposed_", False)
        fitted.setdefault("scales_", 1)
        fitted.setdefault("_chosen_at_", 0)
        fitted.setdefault("_validation_", np.empty((0, 2)))
        fitted.setdefault("periodic_", np.zeros(archive["features"], dtype=bool))
        fitted.setdefault("_buffer_", np.empty((0, archive["features"] + 1)))
        super()._check_stored(fitted, archive)
        domain = np.column_stack([archive["domain.lower"], archive["domain.upper"]])
        counts = [fitted["_fit_points_"], fitted["_fit_samples_"], archive["samples"]]
        fits = np.array_equal(fitted["domain_"], domain) and len(fitted["periodic_"]) == len(domain)
        if not fits or counts != sorted(counts):
            raise ValueError(
                f"The model file does not hold a {type(self).__name__}: its domain or its counts "
                f"of points contradict each other."
            )

    def _stored(self, outputs: int) -> dict[str, Callable[[Any], bool]]:  # noqa: ARG002
        def count(value: Any) -> bool:
            return type(value) is int and value >= 0

        return {
            "domain_": lambda value: (
                value.ndim == 2 and value.shape[1] == 2 and bool((value[:, 0] < value[:, 1]).all())
            ),
            "n_rejected_": count,
            "periodic_": lambda value: value.dtype == bool and value.ndim == 1,
            "_fit_points_": count,
            "_fit_samples_": count,
            "_validation_": lambda value: value.ndim == 2 and value.shape[1] == 2,
            "_buffer_": lambda value: value.ndim == 2 and bool(np.isfinite(value).all()),
            "exposure_": lambda value: is_number(value) and value > 0,
            "_weight_": lambda value: is_number(value) and value >= 0,
            "_is_exposed_": lambda value: isinstance(value, bool),
            "scales_": lambda value: type(value) is int and value in (1, 2),
            "_chosen_at_": count,
        }

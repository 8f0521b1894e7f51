"""The general compositional problem, with functions that the user gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, validate_data

from parsimon import _auto, _core, schedules
from parsimon._base import Array, StreamEstimator, Training
from parsimon._checks import (
    check_count,
    check_exclusive,
    check_flag,
    check_number,
    check_verbose,
)
from parsimon._settings import check_budget, core_budget, core_step
from parsimon._threads import check_n_jobs
from parsimon.kernels import Kernel

from ._risk import full_trace

BlockFunction = Callable[..., Any]
# What the core calls its functions; the first three are needed.
_FUNCTIONS = ("inner", "inner_derivative", "outer_gradient", "direct_gradient", "outer")
_NEEDED = 3


class CompositionalLearner(StreamEstimator):
    """A function f that minimises E[l(f(theta), E[h(f(xi))])] + lambda / 2 ||f||^2 (COLK).

    The inner expectation g = E[h] is tracked along the stream: the second half of each mini-batch
    is xi, the first half theta. :class:`COLKRegressor` is an instance of this, with h the loss and
    l a dispersion.

    All functions take blocks: the values of f at n samples, of shape (n, n_outputs), their targets
    y of shape (n, n_targets), and the outer ones also g, of shape (1, n_inner).

    Parameters
    ----------
    inner : callable
        ``inner(values, y)`` returns h, of shape (n, n_inner).
    inner_derivative : callable
        ``inner_derivative(values, y)`` returns the derivatives of h by the values, of shape
        (n, n_inner, n_outputs).
    outer_gradient : callable
        ``outer_gradient(values, y, g)`` returns the derivatives of l by g, of shape (n, n_inner).
    direct_gradient : callable, optional
        ``direct_gradient(values, y, g)`` returns the derivatives of l by the values, of shape
        (n, n_outputs), if l depends on f(theta) itself.
    outer : callable, optional
        ``outer(values, y, g)`` returns l, of shape (n,), for the trace.
    n_inner : int, default=1
        Number of inner expectations.
    n_outputs : int, default=1
        Number of outputs of f.
    learning_rate : float, default=0.1
        alpha, the step of f.
    tracking_rate : float, default=0.1
        beta, the weight of the latest mini-batch in g; at most 1.
    parsimony : float, optional
        C in the budget C * alpha**2. Without it and without a budget, every point is kept.
    budget : float or parsimon.schedules.AdaptiveBudget, optional
        The compression budget itself instead, in Hilbert norm.
    schedule, tracking_schedule : {"constant"} or parsimon.schedules.PowerLaw, default="constant"
        How the two rates change along the stream.
    regularization : float, default=0.0
        lambda.
    kernel, gamma, batch_size, shuffle, average, n_jobs, random_state, verbose
        As in :class:`POLKRegressor`; gamma is "scale" by default.
    epochs : int, default=1
        Passes over the data that ``fit`` makes. ``partial_fit`` makes one.

    Attributes
    ----------
    dictionary_, weights_, model_order_, expansion_, n_features_in_, t_, trace_
        As of :class:`COLKRegressor`.
    tracked_ : ndarray of shape (n_inner,)
        g.

    Examples
    --------
    The mean of f(x) - y over all samples, squared, as an objective: f fits y on average only.

    >>> import numpy as np
    >>> from parsimon import CompositionalLearner
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> y = 1 + X[:, 0]
    >>> model = CompositionalLearner(
    ...     inner=lambda values, y: values - y,
    ...     inner_derivative=lambda values, y: np.ones((len(y), 1, 1)),
    ...     outer_gradient=lambda values, y, g: np.repeat(2 * g, len(y), axis=0),
    ...     budget=1e-3, epochs=20, random_state=0)
    >>> bool(abs(model.fit(X, y).predict(X).mean() - y.mean()) < 0.1)
    True
    """

    def __init__(
        self,
        inner: BlockFunction | None = None,
        inner_derivative: BlockFunction | None = None,
        outer_gradient: BlockFunction | None = None,
        *,
        direct_gradient: BlockFunction | None = None,
        outer: BlockFunction | None = None,
        n_inner: int = 1,
        n_outputs: int = 1,
        kernel: Kernel | str = "rbf",
        gamma: float | str = "scale",
        learning_rate: float = 0.1,
        tracking_rate: float = 0.1,
        parsimony: float | None = None,
        budget: float | schedules.AdaptiveBudget | None = None,
        schedule: schedules.PowerLaw | str = "constant",
        tracking_schedule: schedules.PowerLaw | str = "constant",
        regularization: float = 0.0,
        batch_size: int = 32,
        epochs: int = 1,
        shuffle: bool = True,
        average: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.inner = inner
        self.inner_derivative = inner_derivative
        self.outer_gradient = outer_gradient
        self.direct_gradient = direct_gradient
        self.outer = outer
        self.n_inner = n_inner
        self.n_outputs = n_outputs
        self.kernel = kernel
        self.gamma = gamma
        self.learning_rate = learning_rate
        self.tracking_rate = tracking_rate
        self.parsimony = parsimony
        self.budget = budget
        self.schedule = schedule
        self.tracking_schedule = tracking_schedule
        self.regularization = regularization
        self.batch_size = batch_size
        self.epochs = epochs
        self.shuffle = shuffle
        self.average = average
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> CompositionalLearner:
        """Learn from all samples, forgetting what was learned before.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), optional
            Whatever the functions need to know of the samples.

        Returns
        -------
        self : CompositionalLearner
            The fitted estimator.
        """
        with self._unchanged_on_error():
            self._check_parameters()
            return self._fit(self._samples(X, y, reset=True), {})

    def partial_fit(self, X: ArrayLike, y: ArrayLike | None = None) -> CompositionalLearner:
        """Learn from one block of a stream, in the order given.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), optional
            Whatever the functions need to know of the samples.

        Returns
        -------
        self : CompositionalLearner
            The estimator.
        """
        with self._unchanged_on_error():
            self._check_parameters()
            first = not hasattr(self, "_model")
            return self._partial_fit(self._samples(X, y, reset=first), {})

    def predict(self, X: ArrayLike) -> Array:
        """Return the values of f.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            The values.
        """
        values = self._evaluate(X)
        return values[:, 0] if values.shape[1] == 1 else values

    @property
    def tracked_(self) -> Array:
        """The tracked inner expectations."""
        return np.asarray(self._state("tracked_").tracked)

    @property
    def trace_(self) -> dict[str, Any]:
        """What each mini-batch did, in arrays of equal length."""
        return full_trace(self._state("trace_"))

    def save(self, path: Any) -> None:
        """Refuse: a model file cannot hold functions. Use pickle."""
        raise NotImplementedError(
            f"A model file cannot hold the functions of a CompositionalLearner, so {path!r} was "
            f"not written; use pickle, or save its expansion_."
        )

    def _check_parameters(self) -> None:
        for name in _FUNCTIONS[:_NEEDED]:
            if not callable(getattr(self, name)):
                raise ValueError(
                    f"{name} must be a function of blocks; got {getattr(self, name)!r}."
                )
        for name in _FUNCTIONS[_NEEDED:]:
            if not (getattr(self, name) is None or callable(getattr(self, name))):
                raise ValueError(f"{name} must be a function of blocks or None.")
        for name in ("n_inner", "n_outputs", "batch_size", "epochs"):
            check_count(name, getattr(self, name))
        if self.batch_size < 2:
            raise ValueError("batch_size must be at least 2: half of a mini-batch is xi; got 1.")
        for name in ("learning_rate", "tracking_rate"):
            check_number(name, getattr(self, name), positive=True)
        if self.tracking_rate > 1:
            raise ValueError(f"tracking_rate must be at most 1; got {self.tracking_rate!r}.")
        check_budget("budget", self.budget)
        if self.parsimony is not None:
            check_number("parsimony", self.parsimony, positive=False)
        check_exclusive(self, "budget", "parsimony")
        check_n_jobs(self.n_jobs)
        check_number("regularization", self.regularization, positive=False)
        check_flag("shuffle", self.shuffle)
        check_flag("average", self.average)
        check_verbose(self.verbose)
        schedules.resolve(self.schedule)
        schedules.resolve(self.tracking_schedule)
        _auto.resolve_kernel(self.kernel, 1.0)
        _auto.check_gamma(self.gamma)

    def _samples(self, X: ArrayLike, y: ArrayLike | None, *, reset: bool) -> Training:
        checked = np.asarray(validate_data(self, X, dtype=np.float64, order="C", reset=reset))
        targets = np.empty((len(checked), 0))
        if y is not None:
            given = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
            targets = given.reshape(len(given), -1)
        if len(targets) != len(checked):
            raise ValueError(f"X has {len(checked)} samples, but y has {len(targets)}.")
        return Training(checked, targets, np.empty(0))

    def _mini_batch(self) -> int:
        return int(self.batch_size)

    def _feed(
        self,
        model: Any,
        training: Training,  # noqa: ARG002
        X: Array,
        targets: Array,
        weight: Array,
    ) -> int:
        return int(model.run(X, targets, weight, self.batch_size))

    def _functions(self) -> dict[str, BlockFunction | None]:
        return {name: getattr(self, name) for name in _FUNCTIONS}

    def _new_model(self, training: Training, *, streaming: bool) -> tuple[Any, Kernel, int]:  # noqa: ARG002
        kernel = _auto.choose_kernel(self.kernel, self.gamma, training)
        by_parsimony = ("step_squared", [float(self.parsimony or 0.0)])
        model = _core.Compositional(
            kernel.core,
            self._functions(),
            int(self.n_inner),
            step=core_step(float(self.learning_rate), self.schedule),
            tracking=core_step(float(self.tracking_rate), self.tracking_schedule),
            budget=core_budget(self.budget, by_parsimony, float(self.learning_rate)),
            regularization=float(self.regularization),
            average=bool(self.average),
            features=training.X.shape[1],
            outputs=int(self.n_outputs),
        )
        return model, kernel, int(self.epochs)

    def _read_model(self, entries: dict[str, Any], kernel: Kernel) -> Any:
        return _core.Compositional.from_entries(
            entries, kernel.core, self._functions(), int(self.n_inner)
        )

    def _validate_samples(self, X: ArrayLike, *, reset: bool = False) -> Array:
        return np.asarray(validate_data(self, X, dtype=np.float64, order="C", reset=reset))

    def _fitted_attributes(self, outputs: int) -> dict[str, Callable[[Any], bool]]:  # noqa: ARG002
        return {}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

"""The general compositional problem, with functions that the user gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array

from parsimon import _auto, _core, _stream
from parsimon._checks import Check, check_flag, count, is_number, number
from parsimon._docs import OF_STEPS
from parsimon._first_samples import Start
from parsimon._model import BUDGET, LEARNING_RATE, REGULARIZATION, Array, ModelEstimator
from parsimon._parameters import WORDS, estimator
from parsimon._settings import core_budget, core_step
from parsimon._stream import Samples, checked_weight
from parsimon._types import AnyKernel, Auto, Gamma, Schedule
from parsimon.kernels import Kernel
from parsimon.schedules import AdaptiveBudget

from . import _functions
from ._risk import RISK_ENTRIES, risk_trace

if TYPE_CHECKING:
    from typing_extensions import Self

BlockFunction = Callable[..., Any]
# What the core calls its functions; the first three are needed.
_FUNCTIONS = ("inner", "inner_derivative", "outer_gradient", "direct_gradient", "outer")
_NEEDED = 3

_ENTRIES = """
weights_ : ndarray of shape (model_order_, n_outputs)
    Their weights.
X : array-like of shape (n_samples, n_features)
    The samples.
y : array-like of shape (n_samples,) or (n_samples, n_targets), optional
    Whatever the functions need to know of the samples.
sample_weight : array-like of shape (n_samples,), optional
    Weights of the samples, not negative: one of weight 2 counts like two in every expectation.
inner_X : array-like of shape (n_samples, n_features), optional
    As many samples xi, where theta and xi have different laws: X is theta then. `batch_size` must
    be even.
inner_y : array-like, optional
    What the functions need to know of them, as y of X.
values : ndarray of shape (n_samples,) or (n_samples, n_outputs)
    The values of f.
score : float
    The negative objective, without its regulariser; larger is better.
"""


def _function(*, optional: bool) -> Check:
    wanted = "a function of blocks" + (" or None" if optional else "")

    def check(name: str, value: Any) -> None:
        if not (callable(value) or (optional and value is None)):
            raise ValueError(f"{name} must be {wanted}; got {value!r}.")

    return check


@estimator(OF_STEPS, RISK_ENTRIES, _ENTRIES)
class CompositionalLearner(ModelEstimator):
    """A function f that minimises E[l(f(theta), E[h(f(xi))])] + lambda / 2 ||f||^2 (COLK).

    The inner expectation g = E[h] is tracked along the stream: the second half of each mini-batch
    is xi, the first half theta; of a single sample, xi is the one before. :class:`COLKRegressor` is
    an instance of this, with h the loss and l a dispersion.

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
        ``outer(values, y, g)`` returns l, of shape (n,), for the trace and `score`.
    outer_depends_on_sample : bool, default=True
        Whether l is another function for each theta. If not, as for a function of g alone, no half
        of a mini-batch is spent on theta.
    check : bool, default=False
        Whether the derivatives are compared with differences of `inner` and `outer`, as far as
        these are given, before learning begins; of `outer`, with a warning if it is not.
    n_inner : int, default=1
        Number of inner expectations, at least 1.
    n_outputs : int, default=1
        Number of outputs of f, at least 1.
    {kernel, gamma}
    learning_rate : float or "auto", default="auto"
        alpha, the step of f, positive. "auto" is half of what the curvature of the objective at f =
        0 allows.
    tracking_rate : float, default=0.1
        beta, the weight of the latest mini-batch in g; above 0 and at most 1.
    parsimony : float or "auto", default="auto"
        C in the budget C * alpha**2, not negative. "auto" is a fiftieth of what a mini-batch adds
        at f = 0.
    {budget, schedule}
    tracking_schedule : {"constant"} or parsimon.schedules.PowerLaw, default="constant"
        How the tracking rate changes along the stream.
    regularization : float, default=0.0
        lambda, not negative.
    {batch_size}
    epochs : int, default=1
        Passes over the data that ``fit`` makes, at least 1. ``partial_fit`` makes one.
    {shuffle, average, half_life, n_jobs, random_state, verbose}

    Attributes
    ----------
    {dictionary_, weights_, model_order_, expansion_, n_features_in_, kernel_, learning_rate_,
    regularization_, budget_, epochs_, t_, trace_}
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

    inner: BlockFunction | None = None
    inner_derivative: BlockFunction | None = None
    outer_gradient: BlockFunction | None = None
    _: KW_ONLY
    direct_gradient: BlockFunction | None = None
    outer: BlockFunction | None = None
    outer_depends_on_sample: bool = True
    check: bool = False
    n_inner: int = 1
    n_outputs: int = 1
    kernel: AnyKernel = "rbf"
    gamma: Gamma = "scale"
    learning_rate: float | Auto = "auto"
    tracking_rate: float = 0.1
    parsimony: float | Auto = "auto"
    budget: float | AdaptiveBudget | None = None
    schedule: Schedule = "constant"
    tracking_schedule: Schedule = "constant"
    regularization: float = 0.0
    batch_size: int = 32
    epochs: int = 1
    shuffle: bool = True
    average: bool = True
    half_life: float | Auto | None = "auto"
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    learning_rate_ = LEARNING_RATE
    regularization_ = REGULARIZATION
    budget_ = BUDGET

    _words = {
        **WORDS,
        **{name: _function(optional=False) for name in _FUNCTIONS[:_NEEDED]},
        **{name: _function(optional=True) for name in _FUNCTIONS[_NEEDED:]},
        "n_inner": count(),
        "n_outputs": count(),
        "outer_depends_on_sample": check_flag,
        "check": check_flag,
        "tracking_rate": number(positive=True, most=1),
        "regularization": number(),
        "epochs": count(),
    }
    _floats = (np.float64,)
    _takes_sparse = False
    _trace = staticmethod(risk_trace)

    def _check_together(self) -> None:
        if not self.outer_depends_on_sample and self.direct_gradient is not None:
            raise ValueError(
                "direct_gradient is the derivative of l by f(theta); with "
                "outer_depends_on_sample=False there is none: leave one of the two out."
            )

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        inner_X: ArrayLike | None = None,
        inner_y: ArrayLike | None = None,
    ) -> Self:
        """Learn from all samples, forgetting what was learned before.

        {X, y, sample_weight, inner_X, inner_y -> self}
        """
        with self._unchanged_on_error():
            self._check_parameters()
            samples = self._samples(X, y, sample_weight, reset=True)
            _stream.fit(self, self._paired(samples, inner_X, inner_y), {})
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        inner_X: ArrayLike | None = None,
        inner_y: ArrayLike | None = None,
    ) -> Self:
        """Learn from one block of a stream, in the order given.

        If learning ends half way, its finished mini-batches stay.

        {X, y, sample_weight, inner_X, inner_y -> self}
        """
        with self._unchanged_on_error():
            self._check_parameters_if_changed()
            samples = self._samples(X, y, sample_weight, reset=not hasattr(self, "_model"))
            samples = self._paired(samples, inner_X, inner_y)
            if isinstance(samples, _functions.Pairs):
                # Whole pairs come at once: they are not kept as single samples are.
                begins = "_model" not in self.__dict__
                _stream.learn(self, Start(samples.columns, begins), samples, {})
                return self
            start = Start.of(self, *samples.columns)
            _stream.learn(self, start, Samples(*start.columns), {})
        return self

    def score(
        self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the negative objective on these samples, with the mean of h over them as g.

        {X, y, sample_weight -> score}
        """
        if self.outer is None:
            raise ValueError("score needs outer, the function l itself; give it.")
        samples = self._samples(X, y, sample_weight, reset=False)
        weight = samples.weight if len(samples.weight) else np.ones(len(samples))
        shares = weight / weight.sum()
        values = self._evaluate(samples.X)
        problem = _functions.Problem(self, samples.targets)
        g = (shares @ problem.inner(values))[None]
        return -float(shares @ problem.outer(values, g))

    def predict(self, X: ArrayLike) -> Array:
        """Return the values of f.

        {X -> values}
        """
        values = self._evaluate(X)
        return values[:, 0] if values.shape[1] == 1 else values

    @property
    def tracked_(self) -> Array:
        """The tracked inner expectations."""
        return np.asarray(self._state("tracked_").tracked)

    def save(self, path: Any, *, training: bool = True) -> None:
        """Refuse: a model file cannot hold functions. Use pickle.

        Parameters
        ----------
        path : path-like
            Nothing is written there.
        training : bool, default=True
            Ignored.
        """
        raise NotImplementedError(
            f"A model file cannot hold the functions of a CompositionalLearner, so {path!r} was "
            f"not written; use pickle, or save its expansion_."
        )

    def _to_archive(self) -> _core.Archive:
        raise NotImplementedError(
            "The functions of a CompositionalLearner cannot be written down; use pickle, or write "
            "its expansion_."
        )

    def _samples(
        self, X: ArrayLike, y: ArrayLike | None, sample_weight: ArrayLike | None, *, reset: bool
    ) -> Samples:
        checked = self._validate_samples(X, reset=reset)
        targets = np.empty((len(checked), 0))
        if y is not None:
            given = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
            targets = given.reshape(len(given), -1)
        if len(targets) != len(checked):
            raise ValueError(f"X has {len(checked)} samples, but y has {len(targets)}.")
        return Samples(checked, targets, checked_weight(sample_weight, checked))

    def _paired(
        self, theta: Samples, inner_X: ArrayLike | None, inner_y: ArrayLike | None
    ) -> Samples:
        """Return mini-batches one half of which are theta, the other xi, if xi were given."""
        if inner_X is None:
            if inner_y is not None:
                raise ValueError("inner_y belongs to inner_X: give both, or neither.")
            return theta
        xi = self._samples(inner_X, inner_y, None, reset=False)
        if self.batch_size % 2 or not self.outer_depends_on_sample or len(theta.weight):
            raise ValueError(
                "With inner_X, one half of each mini-batch is theta and the other xi: batch_size "
                "must be even, outer_depends_on_sample True, and there are no sample weights."
            )
        if xi.X.shape != theta.X.shape or xi.targets.shape != theta.targets.shape:
            raise ValueError(
                f"There must be as many inner_X as X, with the same features and targets; got "
                f"{theta.X.shape} and {theta.targets.shape}, {xi.X.shape} and {xi.targets.shape}."
            )
        return _functions.Pairs(theta, xi)

    def _functions(self) -> dict[str, BlockFunction | None]:
        return {name: getattr(self, name) for name in _FUNCTIONS}

    def _new_model(self, samples: Samples, *, streaming: bool) -> tuple[Any, Kernel, int]:  # noqa: ARG002
        kernel = _auto.choose_kernel(self.kernel, self.gamma, samples)
        if self.check:
            _functions.check_derivatives(self, samples)
        problem = _functions.AtZero(self, samples, kernel)
        rate = self.learning_rate
        rate = problem.rate if isinstance(rate, str) else float(rate)
        if isinstance(self.parsimony, str) and not is_number(self.budget):
            by_parsimony = _core.BudgetSchedule.proportional(problem.size)
        else:
            constant = 0.0 if isinstance(self.parsimony, str) else float(self.parsimony)
            by_parsimony = _core.BudgetSchedule.step_squared(constant)
        model = _core.Compositional(
            kernel.core,
            self._functions(),
            int(self.n_inner),
            outer_sees_samples=bool(self.outer_depends_on_sample),
            step=core_step(rate, self.schedule),
            tracking=core_step(float(self.tracking_rate), self.tracking_schedule),
            compression=_core.Compression(core_budget(self.budget, by_parsimony, rate)),
            regularization=float(self.regularization),
            average=bool(self.average),
            features=samples.X.shape[1],
            outputs=int(self.n_outputs),
        )
        return model, kernel, int(self.epochs)

    def _read_model(self, archive: _core.Archive, kernel: Kernel) -> Any:
        return _core.Compositional.from_archive(
            archive,
            kernel.core,
            self._functions(),
            int(self.n_inner),
            bool(self.outer_depends_on_sample),
        )

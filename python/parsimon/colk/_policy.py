"""Value functions of policies, from transitions."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array

from parsimon import _auto, _core, _stream
from parsimon._checks import choice, count, is_number, number
from parsimon._core import BudgetSchedule, Compression
from parsimon._docs import OF_STEPS
from parsimon._first_samples import Start
from parsimon._model import BUDGET, LEARNING_RATE, REGULARIZATION, Array, ModelEstimator
from parsimon._parameters import WORDS, estimator
from parsimon._settings import core_budget, core_step
from parsimon._stream import Samples
from parsimon._types import AnyKernel, Auto, Gamma, PolicyMethod, Schedule
from parsimon.expansion import KernelExpansion
from parsimon.kernels import Constant, Kernel
from parsimon.schedules import AdaptiveBudget

from ._least_squares_td import (
    Differences,
    projected_error,
    warn_if_overshooting,
    warn_if_worse_than_constant,
)
from ._taking import Taking

if TYPE_CHECKING:
    from typing_extensions import Self

METHODS = ("lstd", "td", "gtd")
# Steps for single transitions; a mini-batch takes as many times as much, up to what is stable.
_RATES = {"gtd": 0.1, "td": 0.02, "lstd": 0.02}
_TRACKING = 0.1
# Of what a mini-batch adds, in norm, the part that compression may take.
_PARSIMONY = 0.1

_ENTRIES = """
weights_ : ndarray of shape (model_order_, 1)
    Their weights.
states : array-like of shape (n_transitions, n_features)
    The states.
rewards : array-like of shape (n_transitions,)
    The rewards of the transitions.
next_states : array-like of shape (n_transitions, n_features)
    The states that followed.
terminal : array-like of bool of shape (n_transitions,), optional
    Whether an episode ended there: the value of the next state is then zero.
discounts : array-like of shape (n_transitions,), optional
    The discount of what follows each transition, from 0 to 1, in place of `discount`: where
    transitions take different times, or options end.
importance : array-like of shape (n_transitions,), optional
    How much likelier the policy takes the action than whoever took it (importance ratios); 1 if
    the transitions follow the policy.
score : float
    Near 1 for the true values, 0 for the best constant, negative for what is worse than that.
values : ndarray of shape (n_transitions,)
    The expected discounted sums of rewards.
"""


class _Transitions(Samples):
    """Transitions as the core takes them: states, and what came after each."""

    def __init__(
        self, states: Array, rewards: Array, next_states: Array, discounts: Array, ratios: Array
    ) -> None:
        super().__init__(states)
        self.rewards, self.ratios = rewards, ratios
        self.columns = (states, rewards, next_states, discounts, ratios)


def _check_trace_decay(name: str, value: Any) -> None:
    if not (is_number(value) and 0 <= value <= 1):
        raise ValueError(f"{name} must be a number from 0 to 1; got {value!r}.")


def check_discount(name: str, value: Any) -> None:
    number()(name, value)
    if not value < 1:
        raise ValueError(f"{name} must be below 1; got {value!r}.")


@estimator(OF_STEPS, _ENTRIES)
class PolicyEvaluator(ModelEstimator):
    """The value function of a fixed policy, learned from a stream of transitions (COLK).

    V(x) is the expected discounted sum of rewards from the state x on. Each transition from x to y
    with reward r has a temporal difference d = r + discount * V(y) - V(x), whose expectation given
    x is zero for the right V.

    Parameters
    ----------
    method : {"lstd", "td", "gtd"}, default="lstd"
        "td" is kernel TD(0): V moves by d at x. It converges for certain only on transitions that
        follow the policy. "lstd" finds the points as "td" does, and solves for the weights on them
        that make d vanish in the span of the points, over all transitions seen (least squares): the
        most precise where there are few. "gtd" descends the squared expectation of d given the
        state, which is tracked by a second kernel expansion z(x) and read before it is updated:
        slower, and with `importance` ratios safe for transitions of any origin.
    discount : float, default=0.9
        gamma, at least 0 and below 1.
    trace_decay : float, default=0.0
        lambda of TD(lambda), from 0 to 1, with "lstd": what a transition tells reaches the states
        before it in the same episode, as long as each begins where the one before ended.
    refit : bool, default=False
        Whether ``fit`` ends with the least squares of "lstd" after "td" or "gtd" too.
    kernel : parsimon.kernels.Kernel or str, default="rbf"
        A kernel, or the name of one as in scikit-learn. To one that is given by name, a constant
        of max k(x, x) is added: values are rarely near zero, where other functions would have to
        pull them from point by point.
    {gamma}
    learning_rate : float or "auto", default="auto"
        alpha, the step of V, positive. "auto" is half of what is stable on the data, at most 0.1 B
        for mini-batches of B with "gtd" and 0.02 B with the others.
    tracking_rate : float or "auto", default="auto"
        beta, the step of the tracker of "gtd", positive; "auto" is half of what is stable, at most
        0.1 B.
    parsimony : float or "auto", default="auto"
        C in the budgets C * alpha**2 and C * beta**2, not negative. "auto" takes a tenth of what a
        mini-batch of rewards like the first ones would add.
    budget : float or parsimon.schedules.AdaptiveBudget, optional
        The compression budget of both functions itself instead, in Hilbert norm, not negative; one
        that adapts is for V.
    max_points : int, optional
        The largest number of points of V, at least 1, whatever error that takes.
    {schedule}
    tracking_schedule : {"constant"} or parsimon.schedules.PowerLaw, default="constant"
        How the tracking rate changes along the stream.
    regularization : float, default=0.0
        Weight of the squared norm of V, not negative; it pulls V towards zero.
    batch_size : int, default=32
        Transitions in a mini-batch, at least 1.
    epochs : int, default=1
        Passes over the data that ``fit`` makes, at least 1. ``partial_fit`` makes one.
    shuffle : bool, default=True
        Whether ``fit`` shuffles the transitions before each epoch.
    {average, half_life, n_jobs, random_state, verbose}

    Attributes
    ----------
    {dictionary_, weights_, model_order_, expansion_, n_features_in_, kernel_, learning_rate_,
    regularization_, budget_, epochs_, t_}
    tracker_ : KernelExpansion
        z of "gtd": the expected temporal difference of each state. It has no points with "td" and
        "lstd".
    tracker_order_ : int
        Its number of points.
    trace_ : dict of ndarray
        As of :class:`POLKRegressor`; the loss is d**2 / 2.

    Notes
    -----
    The paper tracks expectations that are not conditional by one number, and sends the conditional
    case, which this is, to its reference [2]. One number for all states would only make the *mean*
    of d vanish and leave V badly biased (on the chain of the tests, an error nearly as large as V
    itself), so it is not offered.

    References
    ----------
    A. S. Bedi, A. Koppel, K. Rajawat, P. Sanyal: Nonparametric compositional stochastic
    optimization for risk-sensitive kernel learning. IEEE Transactions on Signal Processing 69,
    2021.

    Examples
    --------
    >>> import numpy as np
    >>> from parsimon import PolicyEvaluator
    >>> random = np.random.RandomState(0)
    >>> states = random.uniform(size=(5000, 1))
    >>> following = np.clip(states + 0.1 * random.randn(5000, 1), 0, 1)
    >>> model = PolicyEvaluator("td", discount=0.5).partial_fit(states, states[:, 0], following)
    >>> low, high = model.predict([[0.1], [0.9]])
    >>> bool(low < high)
    True
    """

    method: PolicyMethod = "lstd"
    _: KW_ONLY
    discount: float = 0.9
    trace_decay: float = 0.0
    refit: bool = False
    kernel: AnyKernel = "rbf"
    gamma: Gamma = "scale"
    learning_rate: float | Auto = "auto"
    tracking_rate: float | Auto = "auto"
    parsimony: float | Auto = "auto"
    budget: float | AdaptiveBudget | None = None
    max_points: int | None = None
    schedule: Schedule = "constant"
    tracking_schedule: Schedule = "constant"
    regularization: float = 0.0
    batch_size: int = 32
    epochs: int = 1
    shuffle: bool = True
    average: bool = True
    half_life: float | Auto | None = None
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    learning_rate_ = LEARNING_RATE
    regularization_ = REGULARIZATION
    budget_ = BUDGET

    _words = {
        **WORDS,
        "method": choice(*METHODS),
        "discount": check_discount,
        "trace_decay": _check_trace_decay,
        "tracking_rate": number(positive=True, auto=True),
        "regularization": number(),
        "epochs": count(),
    }
    _algorithms = ("policy_evaluation",)
    _floats = (np.float64,)
    _takes_sparse = False

    def _check_together(self) -> None:
        if self.trace_decay > 0 and self.method != "lstd":
            raise ValueError(
                f"trace_decay={self.trace_decay!r} needs method='lstd': steps of "
                f"{self.method!r} know one transition at a time."
            )

    def fit(
        self,
        states: ArrayLike,
        rewards: ArrayLike,
        next_states: ArrayLike,
        terminal: ArrayLike | None = None,
        *,
        discounts: ArrayLike | None = None,
        importance: ArrayLike | None = None,
    ) -> Self:
        """Learn from all transitions, forgetting what was learned before.

        {states, rewards, next_states, terminal, discounts, importance -> self}
        """
        with self._unchanged_on_error():
            self._check_parameters()
            given = (states, rewards, next_states, terminal, discounts, importance)
            transitions = self._transitions(*given, reset=True)
            if not transitions.ratios.any():
                raise ValueError(
                    "importance is 0 for all transitions: there is nothing to learn from."
                )
            _stream.fit(self, transitions, {"_differences_": ()})
            if self.method == "lstd" or self.refit:
                seen = self._solve(transitions, None)
                self._differences_ = seen.kept if self.method == "lstd" else ()
            else:
                warn_if_overshooting(self, transitions.columns)
            warn_if_worse_than_constant(self, transitions.columns)
        return self

    def partial_fit(
        self,
        states: ArrayLike,
        rewards: ArrayLike,
        next_states: ArrayLike,
        terminal: ArrayLike | None = None,
        *,
        discounts: ArrayLike | None = None,
        importance: ArrayLike | None = None,
    ) -> Self:
        """Learn from one block of a stream, in the order given.

        The first 100 transitions fix the settings: hyper-parameters that are changed later have no
        effect before the next ``fit``. Until then they are kept, and the model begins anew with all
        of them whenever there are half as many again. If learning ends half way, its finished
        mini-batches stay.

        {states, rewards, next_states, terminal, discounts, importance -> self}
        """
        learning = Taking(self)
        try:
            with self._unchanged_on_error():
                self._check_parameters_if_changed()
                first = "_model" not in self.__dict__
                given = (states, rewards, next_states, terminal, discounts, importance)
                transitions = self._transitions(*given, reset=first)
                start = Start.of(self, *transitions.columns)
                transitions = _Transitions(*start.columns)
                learning.begin(start)
                _stream.learn(self, start, transitions, {"_differences_": ()})
        finally:
            # Of a block that was not finished, too, what was learned is known.
            if self.method == "lstd" and learning.taken:
                self._add(start, learning.taken)
        if self.method != "lstd":
            warn_if_overshooting(self, transitions.columns)
        return self

    def _add(self, start: Start, count: int) -> None:
        """Solve again, with so many of the transitions that learning started with."""
        known = () if start.begins else self.__dict__.get("_differences_", ())
        taken = _Transitions(*(column[:count] for column in start.columns))
        try:
            self._differences_ = self._solve(taken, Differences(*known)).kept
        except KeyboardInterrupt:
            # The points have learned from them: so must the weights.
            self._differences_ = self._solve(taken, Differences(*known)).kept
            raise

    def score(
        self,
        states: ArrayLike,
        rewards: ArrayLike,
        next_states: ArrayLike,
        terminal: ArrayLike | None = None,
        *,
        discounts: ArrayLike | None = None,
        importance: ArrayLike | None = None,
    ) -> float:
        """Return how well V predicts what follows: 1 - e(V) / e(c), c the best constant.

        e is the projected Bellman error: the mean square of what the functions on the points of the
        model, and constants, can predict of d. It is estimated without bias, from two halves of
        the transitions, so that it may be below 0: on a few of them even the true values may have
        less than 1, or more. Where e(c) is less than a thousandth of the mean squared reward,
        a constant is as good as the truth: then the score is 0, unless e(V) is more than that.

        {states, rewards, next_states, terminal, discounts, importance -> score}
        """
        self._fitted_model()
        given = (states, rewards, next_states, terminal, discounts, importance)
        columns = self._transitions(*given, reset=False).columns
        ours, constant, least, _ = projected_error(self, columns)
        if constant < least:
            return 1 - ours / least if ours > least else 0.0
        return 1 - ours / constant if constant > 0 else 0.0

    def predict(self, states: ArrayLike) -> Array:
        """Return the value of each state.

        {states -> values}
        """
        return self._evaluate(states)[:, 0]

    @property
    def tracker_(self) -> KernelExpansion:
        """The tracked expectation of the temporal difference, as a function of the state."""
        core = self._state("tracker_").tracker
        return KernelExpansion(self._kernel_, core.dictionary, core.weights)

    @property
    def tracker_order_(self) -> int:
        """The number of points of the tracker."""
        return int(self._state("tracker_order_").tracker_order)

    def _transitions(
        self,
        states: ArrayLike,
        rewards: ArrayLike,
        next_states: ArrayLike,
        terminal: ArrayLike | None,
        discounts: ArrayLike | None,
        importance: ArrayLike | None,
        *,
        reset: bool,
    ) -> _Transitions:
        X = self._validate_samples(states, reset=reset)
        following = check_array(next_states, dtype=np.float64, order="C", input_name="next_states")
        gained = column_of(
            "rewards",
            check_array(rewards, ensure_2d=False, dtype=np.float64, input_name="rewards"),
        )
        if terminal is None:
            stay = np.ones(len(X))
        else:
            flags = column_of("terminal", np.asarray(terminal))
            if not np.isin(flags, (0, 1)).all():
                raise ValueError("terminal must hold True or False for each transition.")
            stay = 1.0 - flags.astype(np.float64)
        if following.shape != X.shape or len(gained) != len(X) or len(stay) != len(X):
            raise ValueError(
                f"There must be as many rewards, next_states and terminal flags as states, and "
                f"next_states must have the features of states; got states {X.shape}, rewards "
                f"{gained.shape}, next_states {following.shape}, terminal {stay.shape}."
            )
        ahead = numbers_of("discounts", discounts, len(X), float(self.discount), 1.0)
        ratios = numbers_of("importance", importance, len(X), 1.0, np.inf)
        return _Transitions(X, gained, following, stay * ahead, ratios)

    def _solve(self, transitions: _Transitions, earlier: Differences | None) -> Differences:
        """Make V the least-squares solution over these transitions and those before."""
        seen = Differences() if earlier is None else earlier
        open_ended = self.half_life is None or isinstance(self.half_life, str)
        half_life = np.inf if open_ended else float(self.half_life)  # type: ignore[arg-type]
        seen = seen.on(self.dictionary_, self._kernel_)
        seen = seen.after(transitions.columns, self._kernel_, float(self.trace_decay), half_life)
        weights = seen.solution(self._kernel_, float(self.regularization))
        self._model.replace(seen.points, weights)
        return seen

    def _check_stored(self, fitted: dict[str, Any], archive: _core.Archive) -> None:
        # A file with nothing to train from has none.
        nothing = {"_differences_": ()} if self.method == "lstd" else {}
        super()._check_stored({**nothing, **fitted}, archive)

    def _stored(self, outputs: int) -> dict[str, Any]:  # noqa: ARG002
        return {"_differences_": Differences.is_valid} if self.method == "lstd" else {}

    def _new_model(
        self,
        samples: _Transitions,
        *,
        streaming: bool,  # noqa: ARG002
    ) -> tuple[Any, Kernel, int]:
        kernel = _auto.choose_kernel(self.kernel, self.gamma, samples)
        if isinstance(self.kernel, str):
            largest = float(kernel.diag(samples.X).max())
            kernel = kernel + (largest or 1.0) * Constant()
        stable = 0.5 * _auto.stable_rate(kernel, samples, self.batch_size)
        alpha = self._rate(self.learning_rate, _RATES[self.method], stable)
        beta = self._rate(self.tracking_rate, _TRACKING, stable)
        budget, tracker_budget = self._budgets(kernel, samples, alpha)
        model = _core.PolicyEvaluation(
            kernel.core,
            gradient=self.method == "gtd",
            discount=float(self.discount),
            step=core_step(alpha, self.schedule),
            tracking=core_step(beta, self.tracking_schedule),
            compression=Compression(budget, self.max_points),
            tracker_compression=Compression(tracker_budget, self.max_points),
            regularization=float(self.regularization),
            # What is solved is not averaged.
            average=bool(self.average) and self.method != "lstd",
            features=samples.X.shape[1],
        )
        return model, kernel, int(self.epochs)

    def _rate(self, given: float | str, single: float, stable: float) -> float:
        if not isinstance(given, str):
            return float(given)
        return min(single * self.batch_size, stable)

    def _budgets(
        self, kernel: Kernel, samples: _Transitions, rate: float
    ) -> tuple[BudgetSchedule, BudgetSchedule]:
        if isinstance(self.parsimony, str):
            size = float(samples.rewards.std()) or 1.0
            largest = float(kernel.diag(samples.X).max())
            own = BudgetSchedule.proportional(
                _PARSIMONY * size * np.sqrt(largest / self.batch_size)
            )
        else:
            own = BudgetSchedule.step_squared(float(self.parsimony))
        budget = core_budget(self.budget, own, rate)
        adapts = isinstance(self.budget, AdaptiveBudget)
        return budget, own if adapts else budget


def column_of(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Return one value for each transition, given as such or as a column."""
    if values.ndim == 1 or (values.ndim == 2 and values.shape[1] == 1):
        return values.ravel()
    raise ValueError(
        f"{name} must hold one value for each transition; got the shape {values.shape}."
    )


def numbers_of(
    name: str, given: ArrayLike | None, count: int, default: float, most: float
) -> Array:
    """Return one number that is not negative for each transition."""
    if given is None:
        return np.full(count, default)
    checked = check_array(given, ensure_2d=False, dtype=np.float64, input_name=name)
    values = column_of(name, checked)
    if len(values) != count or values.min() < 0 or values.max() > most:
        limit = "not negative" if most == np.inf else f"from 0 to {most:g}"
        raise ValueError(
            f"{name} must hold one number for each of the {count} transitions, {limit}; got "
            f"{len(values)} from {values.min():g} to {values.max():g}."
        )
    return values

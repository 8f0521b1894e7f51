"""Value functions of policies, from transitions."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array

from parsimon import _auto, _core, _stream
from parsimon._checks import choice, count, number
from parsimon._core import BudgetSchedule, Compression
from parsimon._docs import OF_STEPS
from parsimon._first_samples import Start
from parsimon._model import BUDGET, LEARNING_RATE, REGULARIZATION, Array, ModelEstimator
from parsimon._parameters import WORDS, estimator
from parsimon._settings import core_budget, core_step
from parsimon._stream import Samples
from parsimon.kernels import Kernel
from parsimon.schedules import AdaptiveBudget, PowerLaw

if TYPE_CHECKING:
    from typing_extensions import Self

METHODS = ("gtd", "td")
# Steps for single transitions; a mini-batch takes as many times as much, up to what is stable.
_RATES = {"gtd": 0.1, "td": 0.02}
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
values : ndarray of shape (n_transitions,)
    The expected discounted sums of rewards.
"""


class _Transitions(Samples):
    """Transitions as the core takes them: states, and what came after each."""

    def __init__(self, states: Array, rewards: Array, next_states: Array, stay: Array) -> None:
        super().__init__(states)
        self.rewards = rewards
        self.columns = (states, rewards, next_states, stay)


def _check_discount(name: str, value: Any) -> None:
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
    method : {"gtd", "td"}, default="gtd"
        "gtd" descends the squared expectation of d given the state. That expectation is tracked by
        a second kernel expansion z(x), which is read before it is updated. "td" is kernel TD(0): V
        moves by d at x. It is faster and more precise where it converges, which is certain only for
        transitions that follow the policy.
    discount : float, default=0.9
        gamma, at least 0 and below 1.
    {kernel, gamma}
    learning_rate : float or "auto", default="auto"
        alpha, the step of V.
    tracking_rate : float or "auto", default="auto"
        beta, the step of the tracker of "gtd".
    parsimony : float or "auto", default="auto"
        C in the budgets C * alpha**2 and C * beta**2. "auto" takes a tenth of what a mini-batch
        of rewards like the first ones would add.
    budget : float or parsimon.schedules.AdaptiveBudget, optional
        The compression budget of both functions itself instead, in Hilbert norm; one that adapts is
        for V.
    max_points : int, optional
        The largest number of points of V, whatever error that takes.
    {schedule}
    regularization : float, default=0.0
        Weight of the squared norm of V; it pulls V towards zero.
    batch_size : int, default=32
        Transitions in a mini-batch.
    epochs : int, default=1
        Passes over the data that ``fit`` makes. ``partial_fit`` makes one.
    shuffle : bool, default=True
        Whether ``fit`` shuffles the transitions before each epoch.
    {average, half_life, n_jobs, random_state, verbose}

    Attributes
    ----------
    {dictionary_, weights_, model_order_, expansion_, n_features_in_, kernel_, learning_rate_,
    regularization_, budget_, epochs_, t_}
    tracker_order_ : int
        Number of points of the tracker; 0 for "td".
    trace_ : dict of ndarray
        As of :class:`POLKRegressor`; the loss is d**2 / 2.

    Notes
    -----
    The paper's frame would track one number for all states. That only makes the *mean* of d vanish
    and leaves V badly biased (on the chain of the tests, an error nearly as large as V itself), so
    it is not offered.

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

    method: str = "gtd"
    _: KW_ONLY
    discount: float = 0.9
    kernel: Kernel | str = "rbf"
    gamma: float | str = "scale"
    learning_rate: float | str = "auto"
    tracking_rate: float | str = "auto"
    parsimony: float | str = "auto"
    budget: float | AdaptiveBudget | None = None
    max_points: int | None = None
    schedule: PowerLaw | str = "constant"
    regularization: float = 0.0
    batch_size: int = 32
    epochs: int = 1
    shuffle: bool = True
    average: bool = True
    half_life: float | str | None = None
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    learning_rate_ = LEARNING_RATE
    regularization_ = REGULARIZATION
    budget_ = BUDGET

    _words = {
        **WORDS,
        "method": choice(*METHODS),
        "discount": _check_discount,
        "tracking_rate": number(positive=True, auto=True),
        "regularization": number(),
        "epochs": count(),
    }
    _algorithms = ("policy_evaluation",)
    _floats = (np.float64,)
    _takes_sparse = False

    def fit(
        self,
        states: ArrayLike,
        rewards: ArrayLike,
        next_states: ArrayLike,
        terminal: ArrayLike | None = None,
    ) -> Self:
        """Learn from all transitions, forgetting what was learned before.

        {states, rewards, next_states, terminal -> self}
        """
        with self._unchanged_on_error():
            self._check_parameters()
            transitions = self._transitions(states, rewards, next_states, terminal, reset=True)
            _stream.fit(self, transitions, {})
        return self

    def partial_fit(
        self,
        states: ArrayLike,
        rewards: ArrayLike,
        next_states: ArrayLike,
        terminal: ArrayLike | None = None,
    ) -> Self:
        """Learn from one block of a stream, in the order given.

        The first 100 transitions fix the settings: hyper-parameters that are changed later have no
        effect before the next ``fit``. Until then they are kept, and the model begins anew with all
        of them whenever there are half as many again. If learning ends half way, its finished
        mini-batches stay.

        {states, rewards, next_states, terminal -> self}
        """
        with self._unchanged_on_error():
            self._check_parameters_if_changed()
            first = "_model" not in self.__dict__
            transitions = self._transitions(states, rewards, next_states, terminal, reset=first)
            if first or self.__dict__.get("_first_"):
                start = Start.of(self, *transitions.columns)
                _stream.learn(self, start, _Transitions(*start.columns), {})
            else:
                _stream.partial_fit(self, transitions, {})
        return self

    def predict(self, states: ArrayLike) -> Array:
        """Return the value of each state.

        {states -> values}
        """
        return self._evaluate(states)[:, 0]

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
        *,
        reset: bool,
    ) -> _Transitions:
        X = self._validate_samples(states, reset=reset)
        following = check_array(next_states, dtype=np.float64, order="C", input_name="next_states")
        gained = _column(
            "rewards",
            check_array(rewards, ensure_2d=False, dtype=np.float64, input_name="rewards"),
        )
        if terminal is None:
            stay = np.ones(len(X))
        else:
            flags = _column("terminal", np.asarray(terminal))
            if not np.isin(flags, (0, 1)).all():
                raise ValueError("terminal must hold True or False for each transition.")
            stay = 1.0 - flags.astype(np.float64)
        if following.shape != X.shape or len(gained) != len(X) or len(stay) != len(X):
            raise ValueError(
                f"There must be as many rewards, next_states and terminal flags as states, and "
                f"next_states must have the features of states; got states {X.shape}, rewards "
                f"{gained.shape}, next_states {following.shape}, terminal {stay.shape}."
            )
        return _Transitions(X, gained, following, stay)

    def _new_model(
        self,
        samples: _Transitions,
        *,
        streaming: bool,  # noqa: ARG002
    ) -> tuple[Any, Kernel, int]:
        kernel = _auto.choose_kernel(self.kernel, self.gamma, samples)
        stable = 0.5 * _auto.stable_rate(kernel, samples, self.batch_size)
        alpha = self._rate(self.learning_rate, _RATES[self.method], stable)
        beta = self._rate(self.tracking_rate, _TRACKING, stable)
        budget, tracker_budget = self._budgets(kernel, samples, alpha)
        model = _core.PolicyEvaluation(
            kernel.core,
            gradient=self.method == "gtd",
            discount=float(self.discount),
            step=core_step(alpha, self.schedule),
            tracking=core_step(beta),
            compression=Compression(budget, self.max_points),
            tracker_compression=Compression(tracker_budget, self.max_points),
            regularization=float(self.regularization),
            average=bool(self.average),
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


def _column(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Return one value for each transition, given as such or as a column."""
    if values.ndim == 1 or (values.ndim == 2 and values.shape[1] == 1):
        return values.ravel()
    raise ValueError(
        f"{name} must hold one value for each transition; got the shape {values.shape}."
    )

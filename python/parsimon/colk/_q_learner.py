"""Values of actions, and the policy that takes the best one, from transitions."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array

from parsimon import _auto, _core, _stream
from parsimon._checks import choice, count, is_number, number
from parsimon._docs import OF_STEPS
from parsimon._first_samples import Start
from parsimon._model import BUDGET, LEARNING_RATE, REGULARIZATION, Array, ModelEstimator
from parsimon._parameters import WORDS, estimator
from parsimon._settings import core_budget, core_step
from parsimon._stream import Samples
from parsimon._types import AnyKernel, Auto, Gamma, QMethod, Schedule, Solver
from parsimon.expansion import KernelExpansion, komp
from parsimon.kernels import Constant, Kernel
from parsimon.schedules import AdaptiveBudget

from ._action_values import ActionValues, LeastSquares, Replay, is_replay, novel
from ._policy import check_discount, column_of, numbers_of
from ._taking import Taking

if TYPE_CHECKING:
    from typing_extensions import Self

# Of a step for a single transition; a mini-batch takes as many times as much, up to what is stable.
_RATE = 0.02
# Of what a mini-batch adds, in norm, the part that compression may take.
_PARSIMONY = 0.1
# Policies that fit compares at most.
_ROUNDS = 20

_ENTRIES = """
weights_ : ndarray of shape (model_order_, n_actions)
    Their weights, one column for each action.
states : array-like of shape (n_transitions, n_features)
    The states.
actions : array-like of int of shape (n_transitions,)
    The actions taken there, from 0 to `n_actions` - 1.
rewards : array-like of shape (n_transitions,)
    The rewards of the transitions.
next_states : array-like of shape (n_transitions, n_features)
    The states that followed.
terminal : array-like of bool of shape (n_transitions,), optional
    Whether an episode ended there: nothing follows. One that was cut off did not end.
next_actions : array-like of int of shape (n_transitions,), optional
    The actions taken in the next states, which ``method="sarsa"`` needs.
discounts : array-like of shape (n_transitions,), optional
    The discount of what follows each transition, from 0 to 1, in place of `discount`.
values : ndarray of shape (n_states, n_actions)
    The expected discounted sums of rewards, for each action.
"""


@dataclass(frozen=True)
class GreedyPolicy:
    """The action with the largest value, by a function that may have few points."""

    expansion: KernelExpansion
    agreement: float

    @property
    def model_order(self) -> int:
        """The number of points."""
        return self.expansion.model_order

    def act(self, states: ArrayLike) -> NDArray[np.int64]:
        """Return the action for each state."""
        checked = check_array(states, dtype=np.float64, order="C", input_name="states")
        return np.asarray(np.asarray(self.expansion(checked)).argmax(axis=1))


class _Transitions(Samples):
    """Transitions with their actions, as `ActionValues` takes them."""

    def __init__(self, columns: tuple[Array, ...]) -> None:
        super().__init__(columns[0])
        self.rewards, self.columns = columns[2], columns


def _check_share(name: str, value: Any) -> None:
    if not (is_number(value) and 0 < value < 1):
        raise ValueError(f"{name} must be between 0 and 1; got {value!r}.")


@estimator(OF_STEPS, _ENTRIES)
class QLearner(ModelEstimator):
    """The values of discrete actions, and so a policy: kernel Q-learning and SARSA.

    Q(x, a) is the expected discounted sum of rewards if action a is taken in state x, and the best
    actions ever after. All actions share one dictionary of states.

    Parameters
    ----------
    n_actions : int, default=2
        How many actions there are, at least 1.
    method : {"q", "sarsa"}, default="q"
        Whose future counts: "q" that of the best action in the next state, whoever acted; "sarsa"
        that of the action that was taken there, so that what exploring costs counts, too.
    discount : float, default=0.99
        gamma, at least 0 and below 1.
    solver : {"newton", "sgd"}, default="newton"
        "newton" is least-squares policy iteration: a state becomes a point if those before leave
        much of it unexplained (`novelty`), and the weights make the temporal differences vanish in
        the span of the points, over all transitions that are kept; in a stream they go half way
        each time. "sgd": each mini-batch takes a step along its temporal differences, which is then
        compressed, as the authors of COLK do it. It needs many times as many transitions.
    memory : int, default=10000
        With "newton", how many transitions are kept, at least 1: of "q" drawn at random from all
        seen, of "sarsa" the latest.
    novelty : float, default=0.01
        With "newton", the share of k(x, x) that must lie outside of the span of the points, between
        0 and 1.
    kernel : parsimon.kernels.Kernel or str, default="rbf"
        A kernel, or the name of one as in scikit-learn. To one that is given by name, a constant
        of max k(x, x) is added, as in :class:`PolicyEvaluator`.
    {gamma}
    learning_rate : float or "auto", default="auto"
        The step of "sgd", positive. "auto" is half of what is stable on the data, at most 0.02 B
        for mini-batches of B.
    parsimony : float or "auto", default="auto"
        C in the budget C * learning_rate**2 of "sgd", not negative. "auto" takes a tenth of what a
        mini-batch of rewards like the first ones would add.
    budget : float or parsimon.schedules.AdaptiveBudget, optional
        The compression budget of "sgd" itself instead, in Hilbert norm, not negative.
    max_points : int, optional
        The largest number of points, at least 1; by default there is none.
    {schedule}
    regularization : float, default=0.0
        Weight of the squared norm of Q, not negative.
    batch_size : int, default=32
        Transitions in a mini-batch, at least 1. With "newton" new ones wait until there are so
        many, and a fiftieth of those that are kept.
    epochs : int, default=1
        Passes over the data that ``fit`` makes with "sgd", at least 1.
    shuffle : bool, default=True
        Whether ``fit`` shuffles the transitions before each epoch.
    {n_jobs, random_state, verbose}

    Attributes
    ----------
    {dictionary_, weights_, model_order_, expansion_, n_features_in_, kernel_, learning_rate_,
    regularization_, budget_, epochs_, t_}
    trace_ : dict of ndarray
        As of :class:`POLKRegressor`; the loss is half the squared temporal difference.

    References
    ----------
    E. Tolstaya, A. Koppel, E. Stump, A. Ribeiro: Nonparametric stochastic compositional gradient
    descent for Q-learning in continuous Markov decision problems. American Control Conference,
    2018 ("sgd"). X. Xu, D. Hu, X. Lu: Kernel-based least squares policy iteration for reinforcement
    learning. IEEE Transactions on Neural Networks 18, 2007 ("newton").

    Examples
    --------
    >>> import numpy as np
    >>> from parsimon import QLearner
    >>> random = np.random.RandomState(0)
    >>> states, actions = random.uniform(size=(2000, 1)), random.randint(2, size=2000)
    >>> following = np.clip(states + np.where(actions, 0.1, -0.1)[:, None], 0, 1)
    >>> model = QLearner(2, discount=0.9).fit(states, actions, following[:, 0] > 0.95, following)
    >>> model.act([[0.2], [0.8]]).tolist()  # to the right, where the reward is
    [1, 1]
    """

    n_actions: int = 2
    method: QMethod = "q"
    _: KW_ONLY
    discount: float = 0.99
    solver: Solver = "newton"
    memory: int = 10_000
    novelty: float = 0.01
    kernel: AnyKernel = "rbf"
    gamma: Gamma = "scale"
    learning_rate: float | Auto = "auto"
    parsimony: float | Auto = "auto"
    budget: float | AdaptiveBudget | None = None
    max_points: int | None = None
    schedule: Schedule = "constant"
    regularization: float = 0.0
    batch_size: int = 32
    epochs: int = 1
    shuffle: bool = True
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    learning_rate_ = LEARNING_RATE
    regularization_ = REGULARIZATION
    budget_ = BUDGET

    _words = {
        **WORDS,
        "n_actions": count(),
        "method": choice("q", "sarsa"),
        "discount": check_discount,
        "memory": count(),
        "novelty": _check_share,
        "max_points": count(optional=True),
        "regularization": number(),
        "epochs": count(),
    }
    _algorithms = ("polk",)
    _floats = (np.float64,)
    _takes_sparse = False

    def fit(
        self,
        states: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        next_states: ArrayLike,
        terminal: ArrayLike | None = None,
        next_actions: ArrayLike | None = None,
        *,
        discounts: ArrayLike | None = None,
    ) -> Self:
        """Learn from all transitions, forgetting what was learned before.

        {states, actions, rewards, next_states, terminal, next_actions, discounts -> self}
        """
        with self._unchanged_on_error():
            self._check_parameters()
            given = (states, actions, rewards, next_states, terminal, next_actions, discounts)
            transitions = self._transitions(*given, reset=True)
            _stream.fit(self, transitions, {"_replay_": ()})
            if self.solver == "newton":
                self._replay_ = self._kept_after(Replay(), transitions.columns).parts
        return self

    def partial_fit(
        self,
        states: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        next_states: ArrayLike,
        terminal: ArrayLike | None = None,
        next_actions: ArrayLike | None = None,
        *,
        discounts: ArrayLike | None = None,
    ) -> Self:
        """Learn from one block of a stream, such as an episode.

        The first 100 transitions fix the settings: hyper-parameters that are changed later have no
        effect before the next ``fit``.

        {states, actions, rewards, next_states, terminal, next_actions, discounts -> self}
        """
        learning = Taking(self)
        earlier = Replay(*self.__dict__.get("_replay_", ()))
        try:
            with self._unchanged_on_error():
                self._check_parameters_if_changed()
                first = "_model" not in self.__dict__
                given = (states, actions, rewards, next_states, terminal, next_actions, discounts)
                columns = self._transitions(*given, reset=first).columns
                if self.__dict__.get("_predicts_only_"):
                    raise _stream.cannot_go_on(self)
                if self.solver == "newton" and not first:
                    replay = earlier.with_waiting(columns)
                    if not replay.is_due(int(self.batch_size)):
                        self._replay_ = replay.parts
                        return self
                    columns = replay.waiting
                start = Start.of(self, *columns)
                learning.begin(start)
                _stream.learn(self, start, _Transitions(start.columns), {})
        finally:
            # Of a block that was not finished, too, what was learned is kept.
            if self.solver == "newton" and learning.taken:
                self._keep(start, learning.taken, Replay() if start.begins else earlier)
        if self.solver == "newton":
            self._join(self._model, start.columns[0])
            kept = Replay(*self._replay_).kept
            self._problem(self._model, kept).improve(self._model, fresh=start.begins)
        return self

    def _keep(self, start: Start, count: int, earlier: Replay) -> None:
        """Keep so many of the transitions that learning started with.

        Those that waited before, and were not reached, still wait.
        """
        replay = self._kept_after(earlier, tuple(column[:count] for column in start.columns))
        waits = tuple(column[count:] for column in earlier.waiting)
        if waits and len(waits[0]):
            replay = replay.with_waiting(waits)
        self._replay_ = replay.parts

    def predict(self, states: ArrayLike) -> Array:
        """Return the value of each action in each state.

        {states -> values}
        """
        return self._evaluate(states)

    def act(
        self, states: ArrayLike, *, epsilon: float = 0.0, random_state: Any = None
    ) -> NDArray[np.int64]:
        """Return an action for each state: the best one, or any.

        Parameters
        ----------
        states : array-like of shape (n_states, n_features)
            The states.
        epsilon : float, default=0.0
            The probability with which all actions are equally likely, to explore.
        random_state : int, RandomState instance or None, default=None
            Source of these draws.

        Returns
        -------
        actions : ndarray of int of shape (n_states,)
            From 0 to `n_actions` - 1.
        """
        if not (is_number(epsilon) and 0 <= epsilon <= 1):
            raise ValueError(f"epsilon must be a number from 0 to 1; got {epsilon!r}.")
        best = self.predict(states).argmax(axis=1)
        if epsilon == 0:
            return np.asarray(best)
        random = check_random_state(random_state)
        explores = random.uniform(size=len(best)) < epsilon
        any_action = random.randint(self.n_actions, size=len(best))
        return np.asarray(np.where(explores, any_action, best))

    def greedy_policy(self, states: ArrayLike, *, agreement: float = 0.99) -> GreedyPolicy:
        """Return the policy that takes the best action, compressed as far as actions stay the same.

        Values have to be known more precisely than which of them is the largest: fewer points will
        do. They are removed by :func:`parsimon.komp`.

        Parameters
        ----------
        states : array-like of shape (n_states, n_features)
            States that the policy meets.
        agreement : float, default=0.99
            The share of these in which its action has to be that of the model.

        Returns
        -------
        policy : GreedyPolicy
            With ``act(states)``, ``model_order``, ``expansion`` and the ``agreement`` it has.
        """
        if not (is_number(agreement) and 0 < agreement <= 1):
            raise ValueError(f"agreement must be above 0 and at most 1; got {agreement!r}.")
        checked, whole = self._validate_samples(states), self.expansion_
        best = np.asarray(whole(checked)).argmax(axis=1)
        found, enough, few = GreedyPolicy(whole, 1.0), whole.model_order, 0
        while enough - few > 1:
            middle = (enough + few) // 2
            smaller, _ = komp(whole, max_points=middle)
            same = float((np.asarray(smaller(checked)).argmax(axis=1) == best).mean())
            if same >= agreement:
                found, enough = GreedyPolicy(smaller, same), middle
            else:
                few = middle
        return found

    def _transitions(
        self,
        states: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        next_states: ArrayLike,
        terminal: ArrayLike | None,
        next_actions: ArrayLike | None,
        discounts: ArrayLike | None,
        *,
        reset: bool,
    ) -> _Transitions:
        X = self._validate_samples(states, reset=reset)
        following = check_array(next_states, dtype=np.float64, order="C", input_name="next_states")
        checked = check_array(rewards, ensure_2d=False, dtype=np.float64, input_name="rewards")
        gained = column_of("rewards", checked)
        if following.shape != X.shape or len(gained) != len(X):
            raise ValueError(
                f"There must be as many rewards and next_states as states, and next_states must "
                f"have the features of states; got states {X.shape}, rewards {gained.shape}, "
                f"next_states {following.shape}."
            )
        ends = self._whole_numbers("terminal", terminal, len(X), 2, "0 or 1, or True or False")
        ahead = numbers_of("discounts", discounts, len(X), float(self.discount), 1.0)
        which = (
            f"the number of an action, from 0 to {self.n_actions - 1} (n_actions={self.n_actions})"
        )
        taken = self._whole_numbers("actions", actions, len(X), self.n_actions, which)
        if self.method == "sarsa" and next_actions is None:
            raise ValueError("method='sarsa' needs next_actions, which were taken in next_states.")
        after = self._whole_numbers("next_actions", next_actions, len(X), self.n_actions, which)
        return _Transitions((X, taken, gained, following, (1 - ends) * ahead, after))

    @staticmethod
    def _whole_numbers(
        name: str, given: ArrayLike | None, size: int, limit: int, which: str
    ) -> Array:
        if given is None:
            return np.zeros(size)
        values = column_of(name, np.asarray(given))
        if len(values) != size or not np.isin(values, np.arange(limit)).all():
            raise ValueError(f"{name} must hold {which}, for each of the {size} transitions.")
        return values.astype(np.float64)

    # -- learning --------------------------------------------------------------------------------

    def _kept_after(self, replay: Replay, columns: tuple[Array, ...]) -> Replay:
        return replay.after(columns, int(self.memory), latest=self.method == "sarsa")

    def _finish_fit(self, model: Any, samples: Any) -> None:
        if self.solver != "newton":
            return
        self._join(model, samples.X)
        problem = self._problem(model, samples.columns)
        policy = problem.improve(model, fresh=True)
        for _ in range(_ROUNDS):
            before, policy = policy, problem.improve(model, fresh=False)
            if np.array_equal(before, policy):
                problem.improve(model, fresh=True)
                break

    def _join(self, model: Any, states: Array) -> None:
        """Let new kinds of states become points, of weight 0."""
        points, weights = np.asarray(model.dictionary), np.asarray(model.weights)
        joining = novel(points, states, model.kernel, float(self.novelty), self.max_points)
        if len(joining):
            zeros = np.zeros((len(joining), weights.shape[1]))
            model.replace(np.vstack([points, joining]), np.vstack([weights, zeros]))

    def _problem(self, model: Any, columns: tuple[Array, ...]) -> LeastSquares:
        on_policy = self.method == "sarsa"
        return LeastSquares.on(model, columns, float(self.regularization), on_policy=on_policy)

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
        rate = self.learning_rate
        if isinstance(rate, str):
            stable = 0.5 * _auto.stable_rate(kernel, samples, self.batch_size)
            rate = min(_RATE * self.batch_size, stable)
        budget = core_budget(self.budget, self._own_budget(kernel, samples), float(rate))
        core = _core.Polk(
            kernel.core,
            _core.parse_loss("squared"),
            step=core_step(float(rate), self.schedule),
            compression=_core.Compression(budget, self.max_points),
            regularization=float(self.regularization),
            average=False,
            newton=None,
            features=samples.X.shape[1],
            outputs=int(self.n_actions),
        )
        solved = self.solver == "newton"
        return self._around(core, kernel), kernel, 1 if solved else int(self.epochs)

    def _own_budget(self, kernel: Kernel, samples: _Transitions) -> Any:
        if not isinstance(self.parsimony, str):
            return _core.BudgetSchedule.step_squared(float(self.parsimony))
        size = float(samples.rewards.std()) or 1.0
        largest = float(kernel.diag(samples.X).max())
        per_rate = _PARSIMONY * size * np.sqrt(largest / self.batch_size)
        return _core.BudgetSchedule.proportional(per_rate)

    def _around(self, core: Any, kernel: Kernel) -> ActionValues:
        steps, on_policy = self.solver == "sgd", self.method == "sarsa"
        return ActionValues(core, kernel, steps=steps, on_policy=on_policy)

    def _read_model(self, archive: _core.Archive, kernel: Kernel) -> Any:
        return self._around(super()._read_model(archive, kernel), kernel)

    def _check_stored(self, fitted: dict[str, Any], archive: _core.Archive) -> None:
        if archive["outputs"] != self.n_actions:
            raise ValueError(
                f"The model file does not hold a QLearner of {self.n_actions} actions: its "
                f"function has {archive['outputs']} outputs."
            )
        replay = fitted.get("_replay_", ())
        if not is_replay(replay, self.n_actions, archive["features"]):
            raise ValueError("The model file does not hold the transitions of its QLearner.")
        super()._check_stored({"_replay_": (), **fitted}, archive)

    def _stored(self, outputs: int) -> dict[str, Any]:
        return {"_replay_": lambda value: is_replay(value, outputs)}

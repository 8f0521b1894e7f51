"""Value functions of policies, from transitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, validate_data

from parsimon import _auto, _core, schedules
from parsimon._base import Array, StreamEstimator, Training
from parsimon._checks import (
    check_choice,
    check_count,
    check_exclusive,
    check_flag,
    check_number,
    check_verbose,
)
from parsimon._settings import (
    Schedule,
    check_budget,
    core_budget,
    core_budget_under,
    core_step,
)
from parsimon._threads import check_n_jobs
from parsimon.kernels import Kernel

METHODS = ("gtd", "td")
# Steps for single transitions; a mini-batch takes as many times as much, up to what is stable.
_RATES = {"gtd": 0.1, "td": 0.02}
_TRACKING = 0.1
# Of what a mini-batch adds, in norm, the part that compression may take.
_PARSIMONY = 0.1


class PolicyEvaluator(StreamEstimator):
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
    kernel : parsimon.kernels.Kernel or str, default="rbf"
        A kernel, or the name of one as in scikit-learn.
    gamma : float, "scale" or "median", default="scale"
        Width of a kernel given by name, as in :class:`POLKClassifier`.
    learning_rate : float or "auto", default="auto"
        alpha, the step of V.
    tracking_rate : float or "auto", default="auto"
        beta, the step of the tracker of "gtd".
    parsimony : float or "auto", default="auto"
        C in the budgets C * alpha**2 and C * beta**2. "auto" takes a tenth of what a mini-batch
        of rewards like those of the first block would add.
    budget : float or parsimon.schedules.AdaptiveBudget, optional
        The compression budget of both functions itself instead, in Hilbert norm; one that adapts is
        for V.
    max_points : int, optional
        The largest number of points of V, whatever error that takes.
    schedule : {"constant", "inverse", "sqrt"} or parsimon.schedules.PowerLaw, default="constant"
        How the learning rate changes along the stream.
    regularization : float, default=0.0
        Weight of the squared norm of V; it pulls V towards zero.
    batch_size : int, default=32
        Transitions in a mini-batch.
    epochs : int, default=1
        Passes over the data that ``fit`` makes. ``partial_fit`` makes one.
    shuffle : bool, default=True
        Whether ``fit`` shuffles the transitions before each epoch.
    average : bool, default=True
        Whether to predict with an average of the iterates, weighted towards the latest.
    n_jobs : int, optional
        Threads to use, -1 for as many as there are processors; by default
        :func:`parsimon.get_num_threads`. The result is the same with any number.
    random_state : int, RandomState instance or None, default=None
        Source of the shuffling.
    verbose : int, default=0
        1 shows a progress bar in ``fit``, 2 in ``partial_fit`` too.

    Attributes
    ----------
    dictionary_, weights_, model_order_, expansion_, n_features_in_, t_
        Of V, as of :class:`POLKRegressor`.
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

    _algorithms = ("policy_evaluation",)

    def __init__(
        self,
        method: str = "gtd",
        *,
        discount: float = 0.9,
        kernel: Kernel | str = "rbf",
        gamma: float | str = "scale",
        learning_rate: float | str = "auto",
        tracking_rate: float | str = "auto",
        parsimony: float | str = "auto",
        budget: float | schedules.AdaptiveBudget | None = None,
        max_points: int | None = None,
        schedule: schedules.PowerLaw | str = "constant",
        regularization: float = 0.0,
        batch_size: int = 32,
        epochs: int = 1,
        shuffle: bool = True,
        average: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.method = method
        self.discount = discount
        self.kernel = kernel
        self.gamma = gamma
        self.learning_rate = learning_rate
        self.tracking_rate = tracking_rate
        self.parsimony = parsimony
        self.budget = budget
        self.max_points = max_points
        self.schedule = schedule
        self.regularization = regularization
        self.batch_size = batch_size
        self.epochs = epochs
        self.shuffle = shuffle
        self.average = average
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        states: ArrayLike,
        rewards: ArrayLike,
        next_states: ArrayLike,
        terminal: ArrayLike | None = None,
    ) -> PolicyEvaluator:
        """Learn from all transitions, forgetting what was learned before.

        Parameters
        ----------
        states : array-like of shape (n_transitions, n_features)
            The states.
        rewards : array-like of shape (n_transitions,)
            The rewards of the transitions.
        next_states : array-like of shape (n_transitions, n_features)
            The states that followed.
        terminal : array-like of bool of shape (n_transitions,), optional
            Whether an episode ended there: the value of the next state is then zero.

        Returns
        -------
        self : PolicyEvaluator
            The fitted estimator.
        """
        with self._unchanged_on_error():
            self._check_parameters()
            transitions = self._transitions(states, rewards, next_states, terminal, reset=True)
            return self._fit(transitions, {})

    def partial_fit(
        self,
        states: ArrayLike,
        rewards: ArrayLike,
        next_states: ArrayLike,
        terminal: ArrayLike | None = None,
    ) -> PolicyEvaluator:
        """Learn from one block of a stream, in the order given.

        The first block fixes the settings: hyper-parameters that are changed later have no
        effect before the next ``fit``.

        Parameters
        ----------
        states : array-like of shape (n_transitions, n_features)
            The states.
        rewards : array-like of shape (n_transitions,)
            The rewards of the transitions.
        next_states : array-like of shape (n_transitions, n_features)
            The states that followed.
        terminal : array-like of bool of shape (n_transitions,), optional
            Whether an episode ended there: the value of the next state is then zero.

        Returns
        -------
        self : PolicyEvaluator
            The estimator.
        """
        with self._unchanged_on_error():
            self._check_parameters()
            first = not hasattr(self, "_model")
            transitions = self._transitions(states, rewards, next_states, terminal, reset=first)
            return self._partial_fit(transitions, {})

    def predict(self, states: ArrayLike) -> Array:
        """Return the value of each state.

        Parameters
        ----------
        states : array-like of shape (n_states, n_features)
            The states.

        Returns
        -------
        values : ndarray of shape (n_states,)
            The expected discounted sums of rewards.
        """
        return self._evaluate(states)[:, 0]

    @property
    def tracker_order_(self) -> int:
        """The number of points of the tracker."""
        return int(self._state("tracker_order_").tracker_order)

    def _check_parameters(self) -> None:
        check_choice("method", self.method, METHODS)
        check_number("discount", self.discount, positive=False)
        if not self.discount < 1:
            raise ValueError(f"discount must be below 1; got {self.discount!r}.")
        for name in ("learning_rate", "tracking_rate"):
            check_number(name, getattr(self, name), positive=True, auto=True)
        check_number("parsimony", self.parsimony, positive=False, auto=True)
        check_number("regularization", self.regularization, positive=False)
        check_budget("budget", self.budget)
        if self.max_points is not None:
            check_count("max_points", self.max_points)
        check_exclusive(self, "budget", "parsimony")
        check_n_jobs(self.n_jobs)
        check_count("batch_size", self.batch_size)
        check_count("epochs", self.epochs)
        check_flag("shuffle", self.shuffle)
        check_flag("average", self.average)
        check_verbose(self.verbose)
        schedules.resolve(self.schedule)
        _auto.resolve_kernel(self.kernel, 1.0)
        _auto.check_gamma(self.gamma)

    def _transitions(
        self,
        states: ArrayLike,
        rewards: ArrayLike,
        next_states: ArrayLike,
        terminal: ArrayLike | None,
        *,
        reset: bool,
    ) -> Training:
        X = np.asarray(validate_data(self, states, dtype=np.float64, order="C", reset=reset))
        following = check_array(next_states, dtype=np.float64, input_name="next_states")
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
        # The core's samples are states; what belongs to them travels along as targets.
        return Training(X, np.column_stack([gained, stay, following]), np.empty(0))

    def _mini_batch(self) -> int:
        return int(self.batch_size)

    def _feed(
        self,
        model: Any,
        training: Training,  # noqa: ARG002
        X: Array,
        targets: Array,
        weight: Array,  # noqa: ARG002
    ) -> int:
        rewards, stay = (np.ascontiguousarray(column) for column in targets[:, :2].T)
        following = np.ascontiguousarray(targets[:, 2:])
        return int(model.run(X, rewards, following, stay, self.batch_size))

    def _new_model(self, training: Training, *, streaming: bool) -> tuple[Any, Kernel, int]:  # noqa: ARG002
        kernel = _auto.choose_kernel(self.kernel, self.gamma, training)
        stable = 0.5 * _auto.stable_rate(kernel, training, self.batch_size)
        alpha = self._rate(self.learning_rate, _RATES[self.method], stable)
        beta = self._rate(self.tracking_rate, _TRACKING, stable)
        budget, tracker_budget = self._budgets(kernel, training, alpha)
        model = _core.PolicyEvaluation(
            kernel.core,
            gradient=self.method == "gtd",
            discount=float(self.discount),
            step=core_step(alpha, self.schedule),
            tracking=core_step(beta),
            budget=budget,
            tracker_budget=tracker_budget,
            regularization=float(self.regularization),
            average=bool(self.average),
            features=training.X.shape[1],
        )
        return model, kernel, int(self.epochs)

    def _rate(self, given: float | str, single: float, stable: float) -> float:
        if not isinstance(given, str):
            return float(given)
        return min(single * self.batch_size, stable)

    def _budgets(
        self, kernel: Kernel, training: Training, rate: float
    ) -> tuple[Schedule, Schedule]:
        if isinstance(self.parsimony, str):
            size = float(training.targets[:, 0].std()) or 1.0
            part = (
                _PARSIMONY * size * np.sqrt(float(kernel.diag(training.X).max()) / self.batch_size)
            )
            own = ("proportional", [part])
        else:
            own = ("step_squared", [float(self.parsimony)])
        budget = core_budget(self.budget, own, rate)
        tracker = budget if budget[0] == "fixed" else own
        return core_budget_under(self.max_points, budget, rate), tracker

    def _fitted_attributes(self, outputs: int) -> dict[str, Callable[[Any], bool]]:  # noqa: ARG002
        return {}

    def _validate_samples(self, X: ArrayLike, *, reset: bool = False) -> NDArray[Any]:
        return np.asarray(validate_data(self, X, dtype=np.float64, order="C", reset=reset))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


def _column(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Return one value a transition, given as such or as a column."""
    if values.ndim == 1 or (values.ndim == 2 and values.shape[1] == 1):
        return values.ravel()
    raise ValueError(f"{name} must hold one value a transition; got the shape {values.shape}.")

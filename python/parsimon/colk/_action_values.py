"""What transitions say of the values of actions: points, kept transitions, least squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from parsimon._checks import is_number
from parsimon._stream import NOTHING
from parsimon.kernels import Kernel

from ._least_squares_td import RIDGE, orthonormal

Array = NDArray[np.float64]
# States, actions, rewards, next states, discounts, next actions.
Columns = tuple[Array, ...]
WIDTH = 6

# Policies that are evaluated, one greedy to the values of the other, until they stay the same.
_POLICIES = 6
# How often the ridge grows tenfold where values are larger than rewards can be.
_RIDGES = 6
# Of the kept transitions, how many new ones there have to be before anything is solved again.
_NEW = 0.02


class ActionValues:
    """The core's function with an output for each action, and how transitions change it.

    A mini-batch moves the value of each action taken by the step times
    r + discount * Q(y, next action) - Q(x, action); the other actions' targets are their values. If
    it `steps`: otherwise points and weights come from elsewhere, and mini-batches only count.
    """

    def __init__(self, core: Any, kernel: Kernel, *, steps: bool, on_policy: bool) -> None:
        self._core, self.kernel = core, kernel
        self._steps, self._on_policy = steps, on_policy

    def __getattr__(self, name: str) -> Any:
        if name == "_core":  # of an object that is not made yet
            raise AttributeError(name)
        return getattr(self._core, name)

    def run(self, *columns_and_batch: Any) -> int:
        *columns, batch_size = columns_and_batch
        for start in range(0, len(columns[0]), batch_size):
            part = slice(start, start + batch_size)
            states, actions, rewards, following, discounts, next_actions = (
                np.ascontiguousarray(column[part]) for column in columns
            )
            rows = np.arange(len(states))
            targets = np.asarray(self._core.predict(states))
            ahead = np.asarray(self._core.predict(following))
            chosen = next_actions.astype(int) if self._on_policy else ahead.argmax(axis=1)
            targets[rows, actions.astype(int)] = rewards + discounts * ahead[rows, chosen]
            weight = NOTHING if self._steps else np.zeros(len(states))
            self._core.run(states, targets, weight, batch_size)
        return len(columns[0])


@dataclass(frozen=True)
class Replay:
    """Transitions to learn from again, and the latest ones, which nothing was learned from yet."""

    kept: Columns = ()
    waiting: Columns = ()
    seen: int = 0

    @property
    def parts(self) -> tuple[Any, ...]:
        """What a file keeps; the arguments of the constructor."""
        return (self.kept, self.waiting, self.seen)

    def with_waiting(self, columns: Columns) -> Replay:
        return Replay(self.kept, _joined(self.waiting, columns), self.seen)

    def is_due(self, batch_size: int) -> bool:
        """Tell whether so many transitions wait that it is time to learn from them."""
        return len(self.waiting[0]) >= max(
            batch_size, _NEW * (len(self.kept[0]) if self.kept else 0)
        )

    def after(self, columns: Columns, memory: int, *, latest: bool) -> Replay:
        """Return what is kept after these: the latest ones, or as many of all at random."""
        count = len(columns[0])
        seen = self.seen + count
        joined = _joined(self.kept, columns)
        if latest or len(joined[0]) <= memory:
            return Replay(tuple(column[-memory:] for column in joined), (), seen)
        # Each transition takes a place among all that came before it, if there is one.
        random = np.random.RandomState(self.seen % 2**32)
        places = random.randint(0, np.arange(self.seen, seen) + 1)
        places[: max(0, memory - self.seen)] = np.arange(self.seen, max(self.seen, memory))[:count]
        stays = places < memory
        kept = tuple(column[:memory].copy() for column in joined)
        for column, new in zip(kept, columns, strict=True):
            column[places[stays]] = new[stays]
        return Replay(kept, (), seen)


def _joined(before: Columns, columns: Columns) -> Columns:
    return tuple(map(np.concatenate, zip(before, columns, strict=True))) if before else columns


def is_replay(value: Any, actions: int, features: int | None = None) -> bool:
    """Tell whether this, from a file, can be the parts of a `Replay`."""
    if not isinstance(value, tuple) or len(value) not in (0, 3):
        return False
    if not value:
        return True
    kept, waiting, seen = value
    return (
        type(seen) is int
        and seen >= 0
        and all(_are_transitions(part, actions, features) for part in (kept, waiting))
    )


def _are_transitions(value: Any, actions: int, features: int | None) -> bool:
    if not isinstance(value, tuple) or len(value) not in (0, WIDTH):
        return False
    if not value:
        return True
    if not all(isinstance(column, np.ndarray) and column.dtype.kind == "f" for column in value):
        return False
    states, taken, rewards, following, discounts, next_actions = value
    count = len(states)
    return (
        states.ndim == 2
        and features in (None, states.shape[1])
        and states.shape == following.shape
        and all(each.shape == (count,) for each in (taken, rewards, discounts, next_actions))
        and all(bool(np.isfinite(column).all()) for column in value)
        and all(bool(np.isin(each, np.arange(actions)).all()) for each in (taken, next_actions))
        and bool((discounts >= 0).all())
        and is_number(float(rewards.sum()))
    )


def novel(points: Array, states: Array, kernel: Kernel, share: float, most: int | None) -> Array:
    """Return the states that have to join the points, the newest kind first.

    One joins as long as the span of the points, with those that have joined, leaves more than a
    share of k(x, x) outside of it.
    """
    outside = kernel.diag(states).copy()
    least = share * outside
    # Coordinates of the states in the span; of those that join, as many as there is room for.
    rows = np.zeros((0, len(states)))
    if len(points):
        rows = orthonormal(kernel(points)).T @ kernel(points, states)
        outside -= (rows**2).sum(axis=0)
    used, joining = len(rows), list[int]()
    while most is None or len(points) + len(joining) < most:
        newest = int((outside - least).argmax())
        if not outside[newest] > least[newest]:
            break
        if used == len(rows):
            rows = np.vstack([rows, np.empty((used + 16, len(states)))])
        across = kernel(states[newest : newest + 1], states)[0]
        across -= rows[:used, newest] @ rows[:used]
        rows[used] = across / np.sqrt(outside[newest])
        outside -= rows[used] ** 2
        used += 1
        joining.append(newest)
    return np.asarray(states[joining])


@dataclass(frozen=True)
class LeastSquares:
    """Least-squares policy iteration over some transitions, in the span of some points.

    With phi the orthonormal coordinates of k(x, .) in the span, the weights w_a of each action make

        sum over transitions of action a of phi (r + discount phi'(y) w_b - phi' w_a) - ridge w_a

    vanish, b the next action: the one that was taken, or the greedy one of the weights before.
    """

    columns: Columns
    basis: Array  # of the coordinates
    gram: Array
    now: Array  # coordinates of the states, and of the next ones
    ahead: Array
    outputs: int
    ridge: float
    on_policy: bool

    @classmethod
    def on(
        cls, model: ActionValues, columns: Columns, regularization: float, *, on_policy: bool
    ) -> LeastSquares:
        """Return the problem on the points of a model."""
        points, kernel = np.asarray(model.dictionary), model.kernel
        gram = kernel(points)
        basis = orthonormal(gram)
        ridge = RIDGE * float(gram.diagonal().max()) + regularization * len(columns[0])
        now, ahead = (kernel(columns[i], points) @ basis for i in (0, 3))
        outputs = model.weights.shape[1]
        return cls(columns, basis, gram, now, ahead, outputs, ridge, on_policy)

    def improve(self, model: ActionValues, *, fresh: bool) -> NDArray[np.int64]:
        """Give the model new weights, and return the actions that are the best ones by them.

        Unless the model is fresh, they are half way from those before: a policy that is much worse
        is not followed before it has been found out.
        """
        start = self.basis.T @ (self.gram @ np.asarray(model.weights))
        found, policy = start, None
        for _ in range(1 if self.on_policy else _POLICIES):
            following = self.columns[5].astype(int)
            if not self.on_policy:
                following = self._greedy(found)
            if policy is not None and np.array_equal(policy, following):
                break
            with threadpool_limits(limits=1, user_api="blas"):
                policy, found = following, self._of(following)
        weights = found if fresh else (start + found) / 2
        model.replace(model.dictionary, np.ascontiguousarray(self.basis @ weights))
        return self._greedy(weights)

    def _greedy(self, weights: Array) -> NDArray[np.int64]:
        """Return the best action in each of the next states."""
        return np.asarray((self.ahead @ weights).argmax(axis=1))

    def _of(self, following: NDArray[np.int64]) -> Array:
        """Return the values of a policy, in coordinates: one column for each action."""
        _, actions, rewards, _, discounts, _ = self.columns
        size, taken = self.now.shape[1], actions.astype(int)
        matrix = np.zeros((self.outputs, size, self.outputs, size))
        vector = np.zeros((self.outputs, size))
        for a in range(self.outputs):
            mine = np.flatnonzero(taken == a)
            phi = self.now[mine]
            matrix[a, :, a] = phi.T @ phi
            vector[a] = phi.T @ rewards[mine]
            for b in range(self.outputs):
                led = following[mine] == b
                weighed = phi[led] * discounts[mine[led], None]
                matrix[a, :, b] -= weighed.T @ self.ahead[mine[led]]
        normal = matrix.reshape(self.outputs * size, -1)
        return np.asarray(self._solved(normal, vector.ravel()).reshape(self.outputs, size).T)

    def _solved(self, normal: Array, right: Array) -> Array:
        """Solve with a ridge that grows until no value is larger than rewards can add up to."""
        rewards, discounts = np.abs(self.columns[2]).max(), self.columns[4].max()
        limit = 2 * rewards / (1 - discounts) if discounts < 1 else np.inf
        ridge, found = self.ridge, right
        for _ in range(_RIDGES):
            try:
                found = np.asarray(np.linalg.solve(normal + ridge * np.eye(len(normal)), right))
            except np.linalg.LinAlgError:
                found = np.full_like(right, np.inf)
            else:
                values = self.now @ found.reshape(self.outputs, -1).T
                if np.isfinite(found).all() and np.abs(values).max() <= limit:
                    return np.asarray(found)
            ridge *= 10
        return np.zeros_like(right)

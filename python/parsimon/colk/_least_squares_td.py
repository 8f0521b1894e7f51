"""Least-squares temporal differences on the points of a value function that changes its points."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning

from parsimon._checks import is_number, warn
from parsimon.kernels import Kernel

Array = NDArray[np.float64]

# Ridge, in units of the largest k(x, x): little beside a single transition of a new kind.
RIDGE = 0.1
# Directions of the span that double precision does not tell from zero, relative to the widest.
_DEPENDENT = 1e-10
# Steps from which on the distance to a target grows, in units of that distance.
_PAST = 2.0
# Deviations from which on a difference of errors is no chance.
_SURE = 3.0
# Of the mean square of the rewards, an error that is none: that of a constant may vanish, and then
# whatever V has would be infinitely worse.
_NEGLIGIBLE = 1e-3
# Transitions whose features are computed at a time.
_BLOCK = 2048


@dataclass
class Differences:
    """What transitions say of the weights w of V = sum_m w_m k(d_m, .): matrix @ w = vector.

    With k = k_D(x), k' = k_D(y) and the eligibility e, which is k for lambda = 0,

        matrix = sum rho e (k - gamma k')',   vector = sum rho e r.

    They follow the points. One that is removed takes its row and column along, exactly; what the
    past saw of a new one is taken from the span of those before.
    """

    points: Array = field(default_factory=lambda: np.zeros((0, 0)))
    matrix: Array = field(default_factory=lambda: np.zeros((0, 0)))
    vector: Array = field(default_factory=lambda: np.zeros(0))
    eligibility: Array = field(default_factory=lambda: np.zeros(0))
    # Where the latest transition led, and how much of its eligibility lasts.
    latest: Array = field(default_factory=lambda: np.zeros(0))
    lasting: float = 0.0
    count: float = 0.0

    @property
    def kept(self) -> tuple[Any, ...]:
        """What a file keeps; the arguments of the constructor."""
        return tuple(vars(self).values())

    @staticmethod
    def is_valid(value: Any) -> bool:
        """Tell whether this, from a file, can be what is kept."""
        if not isinstance(value, tuple) or len(value) not in (0, 7):
            return False
        if not value:
            return True
        *arrays, lasting, count = value
        if not all(isinstance(a, np.ndarray) and a.dtype.kind == "f" for a in arrays):
            return False
        points, matrix, vector, eligibility, latest = arrays
        size = len(vector)
        return (
            points.ndim == 2
            and len(points) == size
            and matrix.shape == (size, size)
            and eligibility.shape == vector.shape == (size,)
            and latest.shape in ((0,), (points.shape[1],))
            and all(bool(np.isfinite(a).all()) for a in arrays)
            and is_number(lasting)
            and is_number(count)
            and count >= 0
        )

    def on(self, points: Array, kernel: Kernel) -> Differences:
        """Return the same on other points."""
        if np.array_equal(points, self.points):
            return self
        places = {row.tobytes(): i for i, row in enumerate(self.points)}
        known = np.array([places.get(row.tobytes(), -1) for row in points], dtype=np.int64)
        across = np.zeros((len(points), len(self.points)))
        across[known >= 0, known[known >= 0]] = 1
        new = np.flatnonzero(known < 0)
        if len(new) and len(self.points):
            basis = orthonormal(kernel(self.points))
            across[new] = kernel(points[new], self.points) @ basis @ basis.T
        return Differences(
            points,
            across @ self.matrix @ across.T,
            across @ self.vector,
            across @ self.eligibility,
            self.latest,
            self.lasting,
            self.count,
        )

    def after(
        self, transitions: tuple[Array, ...], kernel: Kernel, decay: float, half_life: float
    ) -> Differences:
        """Return what is known after some more transitions, in the order in which they came."""
        result = self
        for start in range(0, len(transitions[0]), _BLOCK):
            part = [column[start : start + _BLOCK] for column in transitions]
            result = result._after_block(part, kernel, decay, half_life)
        return result

    def _after_block(
        self, columns: list[Array], kernel: Kernel, decay: float, half_life: float
    ) -> Differences:
        states, rewards, following, discounts, ratios = columns
        now, count = kernel(states, self.points), len(states)
        change = now - discounts[:, None] * kernel(following, self.points)
        before = np.vstack([self.latest[None] if len(self.latest) else states[:1] - 1, following])
        goes_on = (before[:-1] == states).all(axis=1)
        lasting = np.concatenate([[self.lasting], decay * discounts])
        eligibility, traces = self.eligibility, now * ratios[:, None]
        if decay > 0:
            for i in range(count):
                eligibility = (lasting[i] * goes_on[i]) * eligibility + now[i]
                eligibility = traces[i] = ratios[i] * eligibility
        forgetting = 0.5 ** (np.arange(count, 0, -1) / half_life)
        weighed = traces * (forgetting[:, None] * 2 ** (1 / half_life))
        left = float(0.5 ** (count / half_life))
        return Differences(
            self.points,
            left * self.matrix + weighed.T @ change,
            left * self.vector + weighed.T @ rewards,
            eligibility,
            following[-1],
            float(lasting[-1]),
            left * self.count + count,
        )

    def solution(self, kernel: Kernel, regularization: float) -> Array:
        """Return the weights, with a ridge on the norm of V."""
        if not len(self.points):
            return np.zeros((0, 1))
        gram = kernel(self.points)
        basis = orthonormal(gram)
        ridge = RIDGE * float(gram.diagonal().max()) + regularization * self.count
        normal = basis.T @ self.matrix @ basis + ridge * np.eye(basis.shape[1])
        return np.asarray(basis @ np.linalg.solve(normal, basis.T @ self.vector))[:, None]


def orthonormal(gram: Array) -> Array:
    """Return B with B' K B = I, as many columns as the points have dimensions."""
    values, vectors = linalg.eigh(gram)
    used = values > _DEPENDENT * values[-1]
    return np.asarray(vectors[:, used] / np.sqrt(values[used]))


def projected_error(estimator: Any, columns: tuple[Array, ...]) -> tuple[float, ...]:
    """Return the projected Bellman errors of V and of the best constant, and what they say.

    That is, an error that is negligible, and the deviation of the two by chance. An error is
    b' C^-1 b with b = E rho phi d and C = E rho phi phi'. The two b are those of the even and of
    the odd transitions: of the same ones, noise would add up.
    """
    states, rewards, following, discounts, ratios = columns
    if not ratios.any():
        raise ValueError(
            "importance is 0 for all transitions: there is none that the policy would take, and "
            "nothing to judge V by."
        )
    points, kernel = estimator.dictionary_, estimator._kernel_
    basis = orthonormal(kernel(points)) if len(points) else np.zeros((0, 0))
    size = basis.shape[1] + 1
    normal, halves, square = np.zeros((size, size)), np.zeros((2, size, 3)), 0.0
    for start in range(0, len(states), _BLOCK):
        part = slice(start, start + _BLOCK)
        features = np.ones((len(states[part]), size))
        features[:, 1:] = kernel(states[part], points) @ basis
        weighed = features * ratios[part, None]
        ahead = discounts[part] * _values(estimator, following[part])
        ours = rewards[part] + ahead - _values(estimator, states[part])
        # Of V = c it is r - (1 - gamma) c: two parts, the best c of which is known in the end.
        parts = np.column_stack([ours, rewards[part], 1 - discounts[part]])
        normal += weighed.T @ features
        square += float(ratios[part] @ ours**2) / len(states)
        for half in range(2):
            halves[half] += weighed[half::2].T @ parts[half::2]
    normal += 1e-9 * np.trace(normal) * np.eye(size)
    even, odd = halves
    errors = 4 / len(states) * (even.T @ linalg.solve(normal, odd, assume_a="pos"))
    errors = (errors + errors.T) / 2
    constant = errors[1, 2] / errors[2, 2] if errors[2, 2] > 0 else 0.0
    of_constant = errors[1, 1] - 2 * constant * errors[1, 2] + constant**2 * errors[2, 2]
    least = _NEGLIGIBLE * float(ratios @ rewards**2) / len(states)
    # What the noise of d alone makes of it.
    deviation = 2 * np.sqrt(size) * square / len(states)
    return float(errors[0, 0]), float(of_constant), least, deviation


def _values(estimator: Any, states: Array) -> Array:
    """Return V at states that have been validated: the names of their features are gone by then."""
    values: Array = estimator._values_of(estimator._model, states)[:, 0]
    return values


def warn_if_worse_than_constant(estimator: Any, columns: tuple[Array, ...]) -> None:
    """Warn if a constant would explain the rewards better than V."""
    ours, constant, least, deviation = projected_error(estimator, columns)
    constant = max(constant, least)
    if ours - constant > _SURE * max(deviation, _SURE * least):
        other = "" if estimator.method == "lstd" else "method='lstd', "
        warn(
            f"V is worse than a constant: its projected Bellman error is {ours:.3g}, that of the "
            f"best constant {constant:.3g}. Try {other}more transitions or "
            f"epochs, a smaller budget, or another gamma; features should be standardised.",
            ConvergenceWarning,
        )


def warn_if_overshooting(estimator: Any, columns: tuple[Array, ...]) -> None:
    """Warn if a transition's importance made a step so long that V went past what it says."""
    states, ratios = columns[0], columns[4]
    heaviest = int(ratios.argmax())
    batch = min(int(estimator.batch_size), len(states))
    # By how much V moves towards the target there, as a fraction of the distance.
    share = float(estimator.learning_rate_ / batch)
    share *= float(estimator._kernel_.diag(states[heaviest : heaviest + 1])[0])
    if ratios[heaviest] > 1 and share * ratios[heaviest] > _PAST:
        warn(
            f"An importance ratio of {ratios[heaviest]:.3g} is too large for the steps of "
            f"method={estimator.method!r}: V goes farther past what its transition says than it "
            f"was before. Give ratios of at most {_PAST / share:.3g}, a smaller learning_rate, or "
            f"method='lstd', whose weights are solved.",
            ConvergenceWarning,
        )

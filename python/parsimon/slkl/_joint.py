"""One weight of a column for all outputs: the group form of SLKL's problem.

With W the weights of all outputs, minimising over them first leaves the group Lasso

    |Y - C W|^2 + 2 tau sum_m |W_m|,   tau^2 = lambda nu,   mu_m = lambda |W_m| / tau

where W_m is a row. Its dual: the largest 2 <Y, T> - |T|^2 with |c_m' T| <= tau for all m.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

Array = NDArray[np.float64]

# Unknowns up to which the support is solved for at once.
_MOST_AT_ONCE = 2000
_STEPS, _HALVINGS = 20, 12
# Rows that join the support at a time, at least: many at once hardly differ from each other.
_FEWEST_NEW = 4
# Of the mean curvature: added to all where it is singular.
_DAMPING = (1e-13, 1e-11, 1e-9, 1e-7, 1e-5, 1e-3)
# Of the value, below which steps on the support end.
_SMALL = 1e-12


@dataclass(frozen=True)
class JointSolution:
    """The weights of the columns, as the core tells them of one output."""

    mu: Array  # over lambda
    weights: Array  # of the columns, one column for each output
    objective: list[float]
    gap: float
    converged: bool


class _GroupLasso:
    def __init__(self, core: Any, targets_square: float, tau: float) -> None:
        self.products, self.right = np.asarray(core.products), np.asarray(core.correlations)
        self.square, self.tau = targets_square, tau
        self.weights = np.zeros_like(self.right)
        self.slack = self.right.copy()  # C'(Y - C W)

    def visit(self) -> None:
        """Choose each row that is not 0, and some of those that should not be, the others given."""
        used = self.weights.any(axis=1)
        sizes = np.where(used, 0.0, np.linalg.norm(self.slack, axis=1))
        worst = np.argsort(-sizes)[: max(_FEWEST_NEW, int(used.sum()) // 4)]
        for m in (*np.flatnonzero(used), *worst[sizes[worst] > self.tau]):
            norm = self.products[m, m]
            if not norm > 0:
                continue
            pull = self.slack[m] + norm * self.weights[m]
            size = float(np.linalg.norm(pull))
            row = pull * (max(0.0, 1 - self.tau / size) / norm if size > 0 else 0.0)
            self.slack -= np.outer(self.products[:, m], row - self.weights[m])
            self.weights[m] = row

    def solve_support(self) -> None:
        """Take Newton steps for the rows that are not 0; one that is led through 0 stays there.

        The function is smooth as long as no row is 0.
        """
        for _ in range(_STEPS):
            used = np.flatnonzero(self.weights.any(axis=1))
            if not 0 < used.size * self.weights.shape[1] <= _MOST_AT_ONCE:
                return
            before = self.value()
            if not self._step(used) or before - self.value() < _SMALL * before:
                return

    def _step(self, used: NDArray[np.int64]) -> bool:
        """Take one step; return whether it led downwards, and nothing has changed otherwise."""
        rows = self.weights[used]
        sizes = np.linalg.norm(rows, axis=1)
        along = rows / sizes[:, None]
        curvature = self._curvature(used, sizes, along)
        mean = float(np.trace(curvature)) / len(curvature)
        slope = (self.slack[used] - self.tau * along).ravel()
        for damping in _DAMPING:
            try:
                factor = linalg.cho_factor(curvature + damping * mean * np.eye(len(slope)))
            except linalg.LinAlgError:
                continue
            step = linalg.cho_solve(factor, slope).reshape(rows.shape)
            if self._goes_down(used, step, sizes / -np.sum(step * along, axis=1)):
                return True
        return False

    def _goes_down(self, used: NDArray[np.int64], step: Array, until: Array) -> bool:
        """Go along a step, or a part of it; until: where each row is led through 0, if it is."""
        part, before, kept = 1.0, self.value(), (self.weights, self.slack)
        for _ in range(_HALVINGS):
            passes = (until > 0) & (until <= part)
            self.weights = kept[0].copy()
            self.weights[used] = np.where(passes[:, None], 0.0, kept[0][used] + part * step)
            self.slack = self.right - self.products @ self.weights
            if self.value() < before:
                return True
            part /= 2
        self.weights, self.slack = kept
        return False

    def _curvature(self, used: NDArray[np.int64], sizes: Array, along: Array) -> Array:
        """Return half the second derivatives."""
        outputs = along.shape[1]
        curvature = np.kron(self.products[np.ix_(used, used)], np.eye(outputs))
        for i, direction in enumerate(along):
            block = slice(i * outputs, (i + 1) * outputs)
            across = np.eye(outputs) - np.outer(direction, direction)
            curvature[block, block] += self.tau / sizes[i] * across
        return curvature

    @property
    def residual(self) -> float:
        """|Y - C W|^2."""
        return self.square - float(np.sum(self.weights * (self.right + self.slack)))

    def value(self) -> float:
        return self.residual + 2 * self.tau * float(np.linalg.norm(self.weights, axis=1).sum())

    def gap(self) -> float:
        """Return by how much the value is above that of the scaled residual in the dual."""
        largest = float(np.linalg.norm(self.slack, axis=1).max())
        part = min(1.0, self.tau / largest) if largest > 0 else 1.0
        along = self.square - float(np.sum(self.weights * self.right))
        return max(0.0, self.value() - (2 * part * along - part**2 * self.residual))


def solve_jointly(
    core: Any, square: float, penalty: float, *, tolerance: float, epochs: int
) -> JointSolution:
    """Minimise the group form up to a relative gap; `penalty` is lambda nu."""
    tau = float(np.sqrt(penalty))
    problem = _GroupLasso(core, square, tau)
    objective, gap = [problem.value()], problem.gap()
    while gap > tolerance * objective[-1] and len(objective) <= epochs:
        problem.visit()
        problem.solve_support()
        objective.append(problem.value())
        gap = problem.gap()
    mu = np.linalg.norm(problem.weights, axis=1) / tau
    converged = gap <= tolerance * objective[-1]
    return JointSolution(mu, problem.weights, objective, gap, bool(converged))

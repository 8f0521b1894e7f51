"""The import vector machine (Zhu and Hastie, 2005): sparse kernel logistic regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import softmax

from bench.baselines.kernel_machine import PENALTY, Array, KernelMachine, Labels, logistic

# Added to the diagonal of a Hessian, relative to its largest entry, so that it can be factored.
JITTER = 1e-12


@dataclass(eq=False, repr=False)
class ImportVectorMachine(KernelMachine):
    """Kernel logistic regression on points that are chosen one by one.

    Minimises ``mean_i -log p(y_i | x_i) + lambda/2 ||f||^2`` over functions on a growing set S of
    samples. A round adds the sample that lowers the objective most and fits all weights anew by
    iteratively reweighted least squares (IRLS, Newton's method for the multinomial likelihood). All
    classes share S. To find the sample, every candidate is scored by how much a Newton step with
    it would gain in the quadratic model of each class (the curvature between classes left out),
    and the best of these are tried with one IRLS step each.

    Once fitted, `path_` is the objective after each round, and `objective_` that at the end.
    """

    tolerance: float = 1e-3  # stop when a round lowers the objective by less than this part of it
    max_points: int | None = None  # stop at this many points at the latest
    candidates: int = 10  # how many to try with an IRLS step in each round
    newton_tolerance: float = 1e-8  # IRLS ends when a step lowers the objective by less than this

    def _learn(self, X: Array, y: Labels) -> tuple[NDArray[np.intp], Array]:
        gram = np.asarray(self.kernel(X, X))
        limit = len(X) if self.max_points is None else min(self.max_points, len(X))
        chosen: list[int] = []
        weights = np.zeros((0, len(self.classes_)))
        path = [float(np.log(len(self.classes_)))]
        while len(chosen) < limit:
            gains = self._gains(gram, y, chosen, weights)
            best = np.argsort(-gains)[: self.candidates]
            start = np.vstack([weights, np.zeros((1, weights.shape[1]))])
            trials = [self._step(gram, y, [*chosen, point], start, np.inf) for point in best]
            tried = int(np.argmin([objective for objective, _ in trials]))
            chosen.append(int(best[tried]))
            objective, weights = trials[tried]
            objective, weights = self._irls(gram, y, chosen, weights, objective)
            path.append(objective)
            if path[-2] - path[-1] < self.tolerance * path[-1]:
                break
        self.objective_, self.path_ = path[-1], np.array(path[1:])
        return np.array(chosen, dtype=np.intp), weights

    def _gains(self, gram: Array, y: Labels, chosen: list[int], weights: Array) -> Array:
        """Return what each sample would gain if it joined, in the quadratic model of each class.

        At the optimum on S, adding a column with gradient g and curvature h to the model gains
        g^2 / (2 (h - h_S' H_SS^-1 h_S)).
        """
        n = len(y)
        own = gram[:, chosen]
        scores = own @ weights
        _, slopes = logistic(scores, y)
        gradients = gram @ slopes / n + self.regularization * scores
        p = softmax(scores, axis=1)
        gains, squared = np.zeros(n), gram**2
        for c in range(len(self.classes_)):
            w = p[:, c] * (1 - p[:, c]) / n
            full = squared @ w + self.regularization * gram.diagonal()
            curvature = full.copy()
            if chosen:
                weighted = gram @ (w[:, None] * own) + self.regularization * own
                solved = cho_solve(_factor(weighted[chosen]), weighted.T)
                curvature -= np.einsum("ij,ji->i", weighted, solved)
            # What S explains already has no curvature left but rounding.
            gains += gradients[:, c] ** 2 / (2 * np.maximum(curvature, 1e-10 * full))
        gains[chosen] = -np.inf
        return gains

    def _irls(
        self, gram: Array, y: Labels, points: list[int], weights: Array, objective: float
    ) -> tuple[float, Array]:
        while True:
            after, weights = self._step(gram, y, points, weights, objective)
            if objective - after <= self.newton_tolerance * after:
                return after, weights
            objective = after

    def _step(
        self, gram: Array, y: Labels, points: list[int], weights: Array, objective: float
    ) -> tuple[float, Array]:
        """Take a Newton step, halved until the objective falls; unchanged if it never does."""
        own, among = gram[:, points], gram[np.ix_(points, points)]
        gradient, hessian = self._derivatives(own, among, y, weights)
        direction = cho_solve(_factor(hessian), gradient.ravel()).reshape(gradient.shape)
        if not np.isfinite(objective):
            objective = self._objective(own, among, y, weights)
        step = 1.0
        while step > 1e-6:
            trial = weights - step * direction
            value = self._objective(own, among, y, trial)
            if value < objective:
                return value, trial
            step /= 2
        return objective, weights

    def _objective(self, own: Array, among: Array, y: Labels, weights: Array) -> float:
        losses, _ = logistic(own @ weights, y)
        norm = (weights * (among @ weights)).sum()
        return float(losses.mean() + PENALTY["logistic"] * self.regularization * norm)

    def _derivatives(
        self, own: Array, among: Array, y: Labels, weights: Array
    ) -> tuple[Array, Array]:
        """Return gradient (point, class) and Hessian, its rows in the same order."""
        scores = own @ weights
        n, size, classes = len(y), *weights.shape
        _, slopes = logistic(scores, y)
        gradient = own.T @ slopes / n + self.regularization * among @ weights
        p = softmax(scores, axis=1)
        hessian = np.empty((size, classes, size, classes))
        for a in range(classes):
            for b in range(a, classes):
                w = (p[:, a] * ((a == b) - p[:, b])) / n
                block = own.T @ (w[:, None] * own)
                if a == b:
                    block += self.regularization * among
                hessian[:, a, :, b] = hessian[:, b, :, a] = block
        return gradient, hessian.reshape(size * classes, size * classes)


def _factor(matrix: Array) -> tuple[Array, bool]:
    """Factor a positive semi-definite matrix, with as much added to its diagonal as that takes."""
    jitter = JITTER * float(matrix.diagonal().max())
    while True:
        try:
            return cho_factor(matrix + jitter * np.eye(len(matrix)))
        except LinAlgError:
            jitter *= 10

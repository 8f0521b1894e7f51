"""Densities on a regular grid: what SPPPOT's paper compares with.

All learn the normalised intensity of points in a box, on nodes U, the midpoints of the cells of a
grid, with a Gaussian kernel. As in parsimon, functions are relative to the uniform density: the
density at x is f(x) / V with V the volume of the box, and integrals are means over nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator

from parsimon import DivergenceError

Array = NDArray[np.float64]

# Eigenvalues of the Gram matrix below this, relative to the largest, are rounding.
RANK_TOLERANCE = 1e-8

# A density that is somewhere more than exp(this) times the uniform one is no result.
LARGEST_LOG = 20.0


def midpoints(grid_size: int, domain: ArrayLike) -> Array:
    """Return the midpoints of the cells of a grid, `grid_size` along each axis."""
    cells = (np.arange(grid_size) + 0.5) / grid_size
    return np.array(list(product(*(low + (high - low) * cells for low, high in np.array(domain)))))


def finer(grid_size: int, domain: ArrayLike) -> Array:
    """Return the midpoints of a finer grid, for integrals."""
    return midpoints((4 if len(np.array(domain)) == 1 else 3) * grid_size, domain)


def gaussian(X: Array, Y: Array, bandwidth: float) -> Array:
    return np.asarray(np.exp(-cdist(X, Y, "sqeuclidean") / (2 * bandwidth**2)))


def orthonormal(gram: Array) -> Array:
    """Return what turns kernels with nodes into coordinates: an orthonormal basis of their span."""
    values, vectors = np.linalg.eigh(gram)
    large = values > RANK_TOLERANCE * values[-1]
    return np.asarray(vectors[:, large] / np.sqrt(values[large]))


@dataclass(eq=False, repr=False)
class GridDensity(BaseEstimator):
    """What the baselines share: box, nodes, and the density that follows from f.

    They say how f is learned (`_learn`), and its logarithm, minus infinity where f is not positive
    (`_log_f`).

    Once fitted, `nodes_` are the nodes, `model_order_` is their number, and `integral_` is that of
    the density over the box, by a finer grid than the nodes'.
    """

    bandwidth: float  # standard deviation of the kernel; the paper prints its square
    grid_size: int  # nodes along each axis
    domain: ArrayLike | None = None  # lower and upper end along each axis; None: the unit cube

    def fit(self, X: ArrayLike, y: object = None) -> GridDensity:
        X = np.asarray(X, dtype=np.float64)
        self.domain_ = np.array([(0.0, 1.0)] * X.shape[1] if self.domain is None else self.domain)
        self.volume_ = float(np.prod(np.diff(self.domain_, axis=1)))
        self.nodes_ = midpoints(self.grid_size, self.domain_)
        self.model_order_ = len(self.nodes_)
        self._learn(X)
        self._fine_nodes = finer(self.grid_size, self.domain_)
        self.integral_ = float(np.exp(self._log_f(self._fine_nodes)).mean())
        return self

    def score_samples(self, X: ArrayLike) -> Array:
        """Return the log of the density."""
        return self._log_f(np.asarray(X, dtype=np.float64)) - np.log(self.volume_)

    def _kernel(self, X: Array) -> Array:
        return gaussian(X, self.nodes_, self.bandwidth)


@dataclass(eq=False, repr=False)
class BatchIntensity(GridDensity):
    """Maximum likelihood by L-BFGS: f = exp(w'k_U), all samples at once.

    Minimises ``-mean_i w'k_U(x_i) + mean_u exp(w'k_U(u)) + ridge/2 |w|^2``, with Algorithm 3's
    likelihood and parametrisation, and is thus what that should come near. The paper's batch method
    is :class:`SquaredIntensity`.
    """

    ridge: float = 1e-4  # without one, weights grow for ever where there are no samples

    def objective(self, weights: Array, mean: Array, gram: Array) -> tuple[float, Array]:
        """Return what is minimised and its gradient; `mean` is that of k_U over the samples."""
        f = np.exp(gram @ weights) / len(gram)
        value = -mean @ weights + f.sum() + self.ridge / 2 * weights @ weights
        return float(value), -mean + gram @ f + self.ridge * weights

    def _learn(self, X: Array) -> None:
        found = minimize(
            self.objective,
            np.zeros(len(self.nodes_)),
            args=(self._kernel(X).mean(axis=0), self._kernel(self.nodes_)),
            jac=True,
            method="L-BFGS-B",
            # Until the gradient vanishes, not until the objective hardly falls.
            options={"maxiter": 5000, "maxfun": 10_000, "gtol": 1e-8, "ftol": 0.0},
        )
        self.weights_ = found.x

    def _log_f(self, X: Array) -> Array:
        return np.asarray(self._kernel(X) @ self.weights_)


@dataclass(eq=False, repr=False)
class SquaredIntensity(GridDensity):
    """The paper's batch method (Flaxman, Teh and Sejdinovic, 2017): f = a g^2, by L-BFGS.

    Minimises ``-mean_i log(a g(x_i)^2) + mean_u a g(u)^2 + ridge/2 ||g||^2`` over g in the span of
    the nodes' kernels. Their representer theorem has a kernel at every sample instead, of
    which the paper says 8 to 12 hours; where the nodes are as dense as the kernel is wide, the
    spans are the same to rounding.
    """

    scale: float = 1.0  # a
    ridge: float = 1e-4

    def objective(self, coordinates: Array, samples: Array, nodes: Array) -> tuple[float, Array]:
        """Return what is minimised and its gradient, from the coordinates of kernels there."""
        at_samples, at_nodes = samples @ coordinates, nodes @ coordinates
        with np.errstate(divide="ignore"):
            value = -np.log(self.scale * at_samples**2).mean() + self.scale * (at_nodes**2).mean()
            gradient = -2 * (1 / at_samples) @ samples / len(samples)
        gradient += 2 * self.scale * at_nodes @ nodes / len(nodes) + self.ridge * coordinates
        return float(value + self.ridge / 2 * coordinates @ coordinates), gradient

    def _learn(self, X: Array) -> None:
        self._to_basis = orthonormal(self._kernel(self.nodes_))
        samples, nodes = self._features(X), self._features(self.nodes_)
        uniform = np.full(len(nodes), self.scale**-0.5)
        found = minimize(
            self.objective,
            np.linalg.lstsq(nodes, uniform, rcond=None)[0],
            args=(samples, nodes),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 5000, "maxfun": 10_000, "gtol": 1e-8, "ftol": 0.0},
        )
        self.coordinates_ = found.x

    def _features(self, X: Array) -> Array:
        return np.asarray(self._kernel(X) @ self._to_basis)

    def _log_f(self, X: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self.scale * (self._features(X) @ self.coordinates_) ** 2)


@dataclass(eq=False, repr=False)
class GridStream(GridDensity):
    """A function in the span of the nodes' kernels, learned mini-batch by mini-batch.

    The function is written in an orthonormal basis of that span, because the nodes' kernels are
    numerically dependent (rank 38 of 100 on the paper's toy). The first one is `_start`;
    `_increments` are the step over f, from the function's values at the samples.
    """

    learning_rate: float = 0.05  # the step eta
    batch_size: int = 30
    epochs: int = 8
    random_state: int | None = None  # seed of the order of the samples

    largest_increment: float = np.inf  # bound on that with which a sample's kernel is added

    def _learn(self, X: Array) -> None:
        """Add increments k(x_i, .) - eta h sum_u k(u, .), mini-batch by mini-batch."""
        self._to_basis = orthonormal(self._kernel(self.nodes_))
        self._integral_of_kernel = self._features(self.nodes_).mean(axis=0)
        self._weights = self._start()
        features, random = self._features(X), np.random.default_rng(self.random_state)
        with np.errstate(all="ignore"):
            for _ in range(self.epochs):
                order = random.permutation(len(X))
                for start in range(0, len(X), self.batch_size):
                    batch = features[order[start : start + self.batch_size]]
                    step = self.learning_rate / len(batch)
                    increments = self._increments(batch @ self._weights, step)
                    self._weights = self._weights - self.learning_rate * self._integral_of_kernel
                    self._weights += np.minimum(increments, self.largest_increment) @ batch
                    self._require(np.isfinite(self._weights).all())

    def _features(self, X: Array) -> Array:
        """Return the coordinates of k(x, .), projected on the span."""
        return np.asarray(self._kernel(X) @ self._to_basis)

    def _require(self, sound: bool | np.bool_) -> None:
        if not sound:
            raise DivergenceError(
                f"{type(self).__name__} diverged; choose a learning_rate smaller than "
                f"{self.learning_rate:g}."
            )


@dataclass(eq=False, repr=False)
class GridPMD(GridStream):
    """Pseudo mirror descent on the grid alone (Yang, Wang, Kiyavash and He, 2019).

    Multiplies f by exp(-eta g), g the pseudo-gradient (26) of SPPPOT's paper,
    ``-mean_i k(x_i, .) / f(x_i) + h sum_u k(u, .)``. That paper says of this method only that it
    "uses only grid points with no dictionary adaptation". We read: f is known by its values at the
    nodes, which get the update exactly; in between, log f is the kernel's interpolant of these
    values. That is k(x, .) replaced by its projection on the span of the nodes' kernels, and
    Algorithm 1 if its compression removes every sample. The last iterate counts.
    """

    def _start(self) -> Array:
        return np.zeros(self._to_basis.shape[1])

    def _increments(self, values: Array, step: float) -> Array:
        return step * np.exp(-values)

    def _learn(self, X: Array) -> None:
        super()._learn(X)
        self._require(self._log_f(self.nodes_).max() <= LARGEST_LOG)

    def _log_f(self, X: Array) -> Array:
        return self._features(X) @ self._weights


@dataclass(eq=False, repr=False)
class PrimalPOLK(GridStream):
    """POLK on f itself, without a mirror map: to show that f goes negative.

    f <- f + (eta / B) sum_i k(x_i, .) / f(x_i) - eta h sum_u k(u, .). Where f is negative, a sample
    pushes it further down. Samples are projected on the span of the nodes' kernels: that is what
    KOMP does with them at the paper's budget. `negative_fraction_` is the share of the box in which
    f is negative; `integral_` is that of f, its negative parts included.
    """

    learning_rate: float = 0.006
    # The first f: with weights -eta h on the nodes as the paper prints it ("printed"), negative
    # from the start; or as near to 1, the uniform density, as the nodes' kernels come ("uniform").
    start: str = "printed"

    def fit(self, X: ArrayLike, y: object = None) -> PrimalPOLK:
        super().fit(X)
        values = self.function(self._fine_nodes)
        self.negative_fraction_ = float((values < 0).mean())
        self.integral_ = float(values.mean())
        return self

    def function(self, X: ArrayLike) -> Array:
        """Return f, relative to the uniform density; it may be negative."""
        return self._features(np.asarray(X, dtype=np.float64)) @ self._weights

    def _start(self) -> Array:
        if self.start == "printed":
            return -self.learning_rate * self._integral_of_kernel
        at_nodes = self._features(self.nodes_)
        return np.linalg.lstsq(at_nodes, np.ones(len(at_nodes)), rcond=None)[0]

    def _increments(self, values: Array, step: float) -> Array:
        return step / values

    def _log_f(self, X: Array) -> Array:
        values = self.function(X)
        return np.log(values, out=np.full(len(values), -np.inf), where=values > 0)

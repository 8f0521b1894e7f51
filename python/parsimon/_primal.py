"""Linear kernels on many features: the function as a vector of weights, from rows as they come.

With k(x, y) = a <x, y> + c, every function of the space is f(x) = a <u, (x, z)> with
z^2 = c / a, and ||f||^2 = a |u|^2: as many numbers as there are features, whatever the number of
samples. Above some thousands of features nothing else is small: samples span little of such a
space, and each that is a point is as large as u. So u itself is learned, by steps of AdaGrad along
a stream and by conjugate gradients in ``fit``, and samples that are sparse are never made dense.

To everybody else this is a model of POLK: one point u_o of weight 1 for each output, and one at
zero for the intercept. No sample is compressed away, so there is no error of compression.
"""

from __future__ import annotations

import copy
import os
import threading
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from . import _core
from ._affine import MANY_FEATURES, affine
from ._checks import is_number
from ._linear_problem import LinearProblem, choose_ridge
from ._loss_detector import LossDetector
from ._newton import MOST_POINTS
from ._records import Records
from ._settings import core_step
from .kernels import Kernel

Array = NDArray[np.float64]

# By how much the first sample of a stream moves its own prediction.
_BOLDNESS = 1.0
# Samples in a mini-batch, at most: what is common to many of them would be learned many times over.
_AT_ONCE = 8
# By how much a mini-batch moves the intercept at first: a class that was rare becomes frequent.
_LEAST_MOVE = 0.25
# What is kept of the sums of squares when the stream has changed: steps become ten times as long.
_AFTER_CHANGE = 0.01
_MOST_CHANGES = 1024
_STEPS = 60
_LEAST_RIDGE = 1e-9
_SQUARES = "primal.squares"
_INTERCEPT = "primal.intercept"
_REGULARIZATION = "primal.regularization"
_DETECTOR = "primal.detector"


def is_primal(estimator: Any, kernel: Kernel, outputs: int) -> bool:
    """Tell whether a model of this kernel, of many features, is learned as a vector of weights."""
    parts = affine(kernel)
    if parts is None or estimator.solver != "newton":
        return False
    steers = not isinstance(getattr(estimator, "budget", None), (int, float, type(None)))
    cap = estimator.max_points
    return not steers and (cap is None or isinstance(cap, str) or cap >= _points(outputs, parts))


def _points(outputs: int, parts: tuple[float, float]) -> int:
    return outputs + (parts[1] > 0)


def first_rate(kernel: Kernel, X: Any) -> float:
    """Return a step size for samples like these, in units of u."""
    scale = (affine(kernel) or (1.0, 0.0))[0]
    size = float(np.asarray(abs(X).sum(axis=1), dtype=np.float64).mean())
    return _BOLDNESS / (scale * size or 1.0)


class PrimalModel:
    """A function that is a vector of weights, and what the core's models can be asked.

    `core` is such a model that has learned nothing: it knows the settings, and becomes the function
    where points are asked for.
    """

    takes_sparse = True
    target_out_of_reach = 0
    noise = np.empty(0)

    def __init__(self, core: Any, kernel: Kernel, archive: _core.Archive) -> None:
        self._core, self._kernel = core, kernel
        self._loss = _core.parse_loss(archive["loss"])
        # The ridge of each sample, and after how many a sample counts half: 0 is never.
        _, self._per_sample, half_life, changes = archive["newton"]
        self._half_life = half_life or np.inf
        self._most_points = int(archive["maintenance.parameters"][0])
        self._scale, self._constant = affine(kernel) or (1.0, 0.0)
        self._intercept = float(np.sqrt(self._constant / self._scale))
        self._intercept_rate = self.learning_rate
        if self._intercept > 0:
            least = _LEAST_MOVE / (self._scale * self._intercept)
            self._intercept_rate = max(self.learning_rate, least)
        shape = core.dictionary.shape[1] + 1, core.weights.shape[1]
        # u, and the sums of the squares of its gradients; the last rows are the intercept's.
        self._u, self._squares = np.zeros(shape), np.zeros(shape)
        self.samples = self.batches = 0
        self.drift: list[int] = []
        self.regularization = 0.0
        self._records = Records()
        # Where nothing is known of changes, the losses are watched for them.
        self._watch = LossDetector() if changes else None
        self._lock = threading.RLock()
        _ALIVE.add(self)
        self._shown: Any = None
        # What there was before a step that is being taken.
        self._before: tuple[Any, ...] | None = None

    # -- learning --------------------------------------------------------------------------------

    def run(self, X: Any, targets: Array, weight: Array, batch_size: int) -> int:
        """Learn from samples, mini-batch by mini-batch; return how many there were."""
        batch_size = min(batch_size, _AT_ONCE)
        for start in range(0, X.shape[0], batch_size):
            part = slice(start, start + batch_size)
            with self._lock:
                try:
                    self._step(X[part], targets[part], weight[part], batch_size)
                finally:
                    self._take_back()
        return int(X.shape[0])

    def _step(self, X: Any, targets: Array, weight: Array, batch_size: int) -> None:
        columns, rows = _present(X)
        u = self._u[columns]
        values = self._scale * (rows @ u[:-1] + self._intercept * u[-1])
        losses, slopes = self._loss.evaluate(values, targets)
        if len(weight):
            slopes = slopes * weight[:, None]
        gradient = np.empty_like(u)
        gradient[:-1] = rows.T @ slopes
        gradient[-1] = self._intercept * slopes.sum(axis=0)
        gradient += self._per_sample * len(targets) * u
        gradient *= self._scale / batch_size
        kept = np.exp2(-len(targets) / self._half_life)
        squares = kept * self._squares[columns] + gradient**2
        steps = gradient / np.sqrt(np.where(squares > 0, squares, 1.0))
        u[:-1] -= self.learning_rate * steps[:-1]
        u[-1] -= self._intercept_rate * steps[-1]
        if not (np.isfinite(losses).all() and np.isfinite(u).all()):
            raise _core.DivergenceError(
                f"The predictions have grown beyond all bounds (mean loss {losses.mean():.3g}). "
                f"The model is as it was before this mini-batch. Choose a smaller learning rate, "
                f"or scale the samples and the targets."
            )
        self._take_step(columns, u, squares, kept, len(targets))
        active = int(slopes.any(axis=1).sum())
        record = [self.samples, self.model_order, active, float(losses.mean()), 0.0, 0.0]
        self._records.add(record)
        if self._watch is not None and self._watch.observe(losses, self.model_order):
            self.raise_alarm()

    def _take_step(
        self, columns: NDArray[Any], u: Array, squares: Array, kept: float, count: int
    ) -> None:
        """Take a step whole: Ctrl-C between any two of these lines has it taken back."""
        whole, faded = self._squares, self._squares * kept if kept < 1 else self._squares
        self._before = columns, self._u[columns], whole, whole[columns], self.samples, self.batches
        self._shown = None
        self._u[columns] = u
        faded[columns] = squares
        self._squares = faded
        self.samples += count
        self.batches += 1
        self._before = None

    def _take_back(self) -> None:
        if self._before is None:
            return
        columns, u, whole, squares, self.samples, self.batches = self._before
        self._u[columns] = u
        whole[columns] = squares
        self._squares = whole
        self._before = None

    def solve(self, samples: Any, given: float | str) -> None:
        """Find the minimiser over all samples, with the regularization that was given."""
        loss = self._loss
        problem = LinearProblem.of(samples, loss, self._kernel)
        normal = problem.diagonal(self._u.shape[1])
        per_ridge = len(problem.targets) * loss.regularizer_scale / problem.unit
        start = self._u
        if isinstance(given, str) and not loss.is_squared:
            ridge = choose_ridge(problem, normal, start.shape[1])
        else:
            ridge = per_ridge * (self.regularization if isinstance(given, str) else float(given))
        ridge = max(ridge, _LEAST_RIDGE)
        # From where the steps have got to.
        found = problem.minimise(start, normal, ridge, _STEPS)
        if not np.isfinite(found).all():
            raise _core.DivergenceError("The solved weights are not finite.")
        with self._lock:
            self._u, self._shown, self.regularization = found, None, ridge / per_ridge

    def stop_scouting(self) -> None:
        """Go on predicting with what the steps have found, which is what predicts anyway."""

    def listen(self) -> None:
        """Be told when the stream has changed, and find nothing by itself."""
        self._watch = None

    def raise_alarm(self) -> None:
        """Forget most of what makes steps small: the stream has changed."""
        with self._lock:
            self._squares *= _AFTER_CHANGE
            self.drift = [*self.drift, self.samples][-_MOST_CHANGES:]

    def add_classes(self, places: list[int], classes: int, loss: Any) -> None:
        """Learn more classes; the i-th of those there are becomes number places[i]."""
        with self._lock:
            points = _points(classes, (self._scale, self._constant))
            if points > self._most_points:
                raise ValueError(
                    f"There is a class more than max_points={self._most_points} allows: a linear "
                    f"kernel on many features has a point for each class and one for the "
                    f"intercept, {points} here. Give a larger max_points."
                )
            # The core knows what outputs of more classes are to begin with.
            grown = self._known()
            grown.add_classes(places, classes, loss)
            self._core.add_classes(places, classes, loss)
            self._loss = loss
            before, self._squares = self._squares, np.zeros((len(self._u), grown.weights.shape[1]))
            for i, place in enumerate(places[: before.shape[1]] if before.shape[1] > 1 else []):
                self._squares[:, place] = before[:, i]
            self._take(grown.dictionary, grown.weights)
            if loss.gives_probabilities and self._intercept > 0:
                # It has not seen the samples: what has never come is unlikely.
                fresh = np.setdiff1d(np.arange(self._u.shape[1]), places)
                self._u[-1, fresh] -= np.log1p(self.samples) / (self._scale * self._intercept)

    def replace(self, points: Array, weights: Array) -> None:
        """Become another function."""
        with self._lock:
            self._take(points, weights)

    def _take(self, points: Array, weights: Array) -> None:
        u = np.empty_like(self._squares)
        u[:-1] = points.T @ weights
        u[-1] = self._intercept * weights.sum(axis=0)
        self._u, self._shown = u, None

    # -- what the core's models answer -----------------------------------------------------------

    def predict(self, X: Any) -> Array:
        """Return the values of the function."""
        with self._lock:
            values: Array = np.asarray(X @ self._u[:-1], dtype=np.float64)
            values += self._intercept * self._u[-1]
            values *= self._scale
            return values

    @property
    def model_order(self) -> int:
        """The number of points."""
        return _points(self._u.shape[1], (self._scale, self._constant)) if self.samples else 0

    @property
    def trace(self) -> Array:
        """One row for each record."""
        return np.array(self._records.rows, dtype=np.float64).reshape(-1, 6)

    @property
    def latest(self) -> tuple[float, float]:
        """The loss and the error of compression in the latest record."""
        rows = self._records.rows
        return (rows[-1][3], 0.0) if rows else (0.0, 0.0)

    def posterior(self) -> Any:
        """Refuse what needs second-order statistics of all features."""
        raise ValueError(
            f"The standard deviation of predictions is not known for a linear kernel on "
            f"{len(self._u) - 1:,} features: it takes statistics of the size of their number "
            f"squared. Up to {MANY_FEATURES:,} features it is."
        )

    def compress(self, budget: float, max_points: int | None) -> float:  # noqa: ARG002
        """Return 0, the error of leaving the function as it is, unless that has too many points."""
        if max_points is not None and max_points < self.model_order:
            raise ValueError(
                f"max_points is {max_points}, but a linear kernel on many features has one point "
                f"for each output and one for the intercept, {self.model_order} here, and no "
                f"fewer."
            )
        return 0.0

    def copy(self) -> PrimalModel:
        """Return a model that learns by itself from now on."""
        with self._lock:
            other = copy.copy(self)
            other._core, other._lock = self._core.copy(), threading.RLock()
            _ALIVE.add(other)
            other._u, other._squares = self._u.copy(), self._squares.copy()
            other._records, other._watch = copy.deepcopy((self._records, self._watch))
            return other

    @property
    def learning_rate(self) -> float:
        """The step size."""
        return float(self._core.learning_rate)

    @property
    def budget(self) -> float:
        """What compression may take, and does not."""
        return float(self._core.budget)

    @property
    def expansion(self) -> Any:
        """The function as a sum over points."""
        with self._lock:
            return _core.KernelExpansion(self._kernel.core, *self._expanded())

    @property
    def dictionary(self) -> Array:
        """The points."""
        return self._expanded()[0]

    @property
    def weights(self) -> Array:
        """Their weights."""
        return self._expanded()[1]

    def span(self) -> Any:
        """Return the span of the points."""
        return self._known().span()

    def _known(self) -> Any:
        """Return a model of the core that is this function."""
        with self._lock:
            if self._shown is None:
                shown = self._core.copy()
                shown.replace(*self._expanded())
                self._shown = shown
            return self._shown

    def _expanded(self) -> tuple[Array, Array]:
        """Return points and weights: k(u_o, x) = a <u_o, x> + c, and k(0, x) = c."""
        outputs = self._u.shape[1]
        points, weights = self._u[:-1].T, np.eye(outputs)
        if self._constant > 0:
            at_zero = self._scale * self._intercept * self._u[-1] / self._constant - 1
            points = np.vstack([points, np.zeros(points.shape[1])])
            weights = np.vstack([weights, at_zero])
        return np.ascontiguousarray(points), weights

    # -- files -----------------------------------------------------------------------------------

    def to_archive(self) -> _core.Archive:
        """Return all that the model is: one of the core, and what training needs beside it."""
        with self._lock:
            archive: _core.Archive = self._known().to_archive()
            archive["samples"], archive["batches"] = self.samples, self.batches
            # As they are, not as the core finds them again from its factor, but in its order.
            points, weights = self._expanded()
            rows: dict[bytes, list[int]] = {}
            for i, point in enumerate(points):
                rows.setdefault(point.tobytes(), []).append(i)
            order = [rows[point.tobytes()].pop() for point in archive["dictionary"]]
            archive["weights"] = np.tile(weights[order], 2)
            archive["trace"] = self.trace
            if self.drift:
                archive["drift"] = np.array(self.drift, dtype=np.int64)
            if self._records.stride > 1:
                archive["trace.stride"] = [self._records.stride, self._records.in_last]
            archive[_SQUARES], archive[_INTERCEPT] = self._squares, self._u[-1]
            archive[_REGULARIZATION] = self.regularization
            archive[_DETECTOR] = np.empty(0) if self._watch is None else self._watch.state()
            return archive

    @classmethod
    def read(cls, archive: _core.Archive, core: Any, kernel: Kernel) -> PrimalModel:
        """Return the model in an archive that the core has read, too."""
        if archive[_SQUARES].shape != (core.dictionary.shape[1] + 1, core.weights.shape[1]):
            # Before there is room for so many features: a small file may claim any number.
            raise ValueError("The steps in the model file are not those of its weights.")
        model = cls(core, kernel, archive)
        model.samples, model.batches = core.samples, core.batches
        model.drift = list(core.drift)
        stride, in_last = archive.get("trace.stride", (1, 1))
        model._records = Records(core.trace.tolist(), int(stride), int(in_last))
        model.regularization = archive[_REGULARIZATION]
        state = archive.get(_DETECTOR)
        if state is not None:  # which files of earlier versions do not tell
            model._watch = LossDetector.of(state) if len(state) else None
        squares, intercept = archive[_SQUARES], archive[_INTERCEPT]
        model._take(core.dictionary, core.weights)
        sound = (
            intercept.shape == model._u[-1].shape
            and bool((squares >= 0).all() and np.isfinite(squares).all())
            and np.allclose(intercept, model._u[-1], rtol=1e-9, atol=1e-9)
            and 0 <= model.regularization < np.inf
        )
        if not sound:
            raise ValueError("The steps in the model file are not those of its weights.")
        model._squares, model._u[-1] = squares, intercept
        return model


# A process is forked when no model is in the middle of anything: whoever asks one meanwhile waits.
_ALIVE: weakref.WeakSet[PrimalModel] = weakref.WeakSet()
_held: list[Any] = []


def _before_fork() -> None:
    for model in list(_ALIVE):
        model._lock.acquire()
        _held.append(model._lock)


def _after_fork() -> None:
    while _held:
        _held.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )


def read_model(archive: _core.Archive, kernel: Kernel) -> Any:
    """Return the model in an archive: one of the core, or a vector of weights."""
    model = _core.read_model(archive, kernel.core)
    return PrimalModel.read(archive, model, kernel) if _SQUARES in archive else model


def _present(X: Any) -> tuple[NDArray[Any], Any]:
    """Return the rows of u that samples have to do with, the intercept's last; and the samples."""
    features = X.shape[1]
    if not sparse.issparse(X):
        return np.arange(features + 1), X
    columns, places = np.unique(X.indices, return_inverse=True)
    rows = sparse.csr_matrix((X.data, places.ravel(), X.indptr), (X.shape[0], len(columns)))
    return np.append(columns, features), rows


def new_primal(
    estimator: Any, chosen: Any, samples: Any, loss: Any, *, outputs: int, streaming: bool
) -> tuple[PrimalModel, int]:
    """Return a model that has learned nothing yet, and the epochs of fit."""
    # Steps need no ridge, and that of other losses is chosen when their weights are solved.
    open_ended = isinstance(estimator.regularization, str)
    without = open_ended and (streaming or not loss.is_squared)
    given, cap = estimator.learning_rate, estimator.max_points
    budget = getattr(estimator, "budget", None) or 0.0
    rate = first_rate(chosen.kernel, samples.X) if isinstance(given, str) else float(given)
    core = _core.Polk(
        chosen.kernel.core,
        loss,
        step=core_step(rate),
        compression=_core.Compression(
            _core.BudgetSchedule.fixed(float(budget)), cap if is_number(cap) else MOST_POINTS
        ),
        regularization=0.0,
        average=False,
        newton=chosen.newton,
        features=samples.X.shape[1],
        outputs=outputs,
    )
    model = PrimalModel(core, chosen.kernel, core.to_archive())
    model.regularization = 0.0 if without else chosen.regularization
    one_pass = estimator._refits and isinstance(estimator.epochs, str)
    return model, 1 if one_pass else chosen.epochs

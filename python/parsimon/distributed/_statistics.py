"""What samples say about the weights on a dictionary: sums, whoever has the samples."""

from __future__ import annotations

import copy
import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from sklearn.base import is_classifier
from threadpoolctl import threadpool_limits

from parsimon import _class_weight, _core
from parsimon._labels import Labels
from parsimon._model import ModelEstimator
from parsimon._newton import _curvature_at_zero as curvature_at_zero
from parsimon._stream import NOTHING, Samples, checked_weight
from parsimon._targets import Targets

Array = NDArray[np.float64]

# Samples whose coordinates are computed at a time: what bounds the memory.
BLOCK = 1024
# Relative to the sum of the squared coordinates: less ridge drowns in rounding.
LEAST_RIDGE = 1e-9
_NUMBERS = ("normal", "right", "squares", "totals")


@dataclass(frozen=True)
class Statistics:
    """What samples say about the weights of a model, as sums: add those of all parts.

    They are made by :func:`statistics` and used by :func:`solve`.

    Attributes
    ----------
    samples : int
        How many samples they are of.
    loss : float
        The mean loss of these samples with the weights of the model.
    """

    _of: str  # the model
    _normal: Array  # lower triangle of sum_i h_i phi_i phi_i', row by row
    _right: Array  # sum_i phi_i y_i' (squared loss), or minus the gradient
    _squares: Array  # sum_i y_i^2
    _totals: Array  # samples, sum of losses; and of least squares those outside and those used

    @property
    def samples(self) -> int:
        """How many samples they are of."""
        return int(self._totals[0])

    @property
    def loss(self) -> float:
        """The mean loss of these samples with the weights of the model."""
        return float(self._totals[1] / max(self._totals[0], 1.0))

    def __add__(self, other: object) -> Statistics:
        if not isinstance(other, Statistics):
            return NotImplemented
        if self._of != other._of:
            raise ValueError(
                "Statistics can only be added if they are of the same model: the same points, "
                "labels or units of the targets and, unless the loss is squared, the same weights. "
                "These are of two different ones; give all parts the same model, by dumps and "
                "loads."
            )
        return Statistics(
            self._of, *(mine + its for mine, its in zip(self._sums(), other._sums(), strict=True))
        )

    def _sums(self) -> tuple[Array, ...]:
        return self._normal, self._right, self._squares, self._totals

    def __repr__(self) -> str:
        points, outputs = self._right.shape
        return f"Statistics(samples={self.samples}, points={points}, outputs={outputs})"


def statistics(
    model: Any, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> Statistics:
    """Return what samples say about the weights of a fitted model.

    Of the squared loss, these are H = sum phi phi' and r = sum phi y', with phi the coordinates of
    a sample in the span of the model's points: :func:`solve` finds the best weights from them at
    once. Of other losses they are a parabola above the loss that touches it at the model's weights,
    for one step downhill. Either way those of several parts of the data are sums.

    Parameters
    ----------
    model : POLKClassifier, POLKRegressor, or COLKClassifier or COLKRegressor without risk
        Fitted, with ``solver="newton"``. It is not changed.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Some samples.
    y : array-like
        Their labels or targets. Labels must be those of the model.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the samples, not negative.

    Returns
    -------
    Statistics
        That can be added to those of other samples.

    Examples
    --------
    >>> import numpy as np
    >>> from parsimon import POLKRegressor, distributed
    >>> X = np.random.default_rng(0).uniform(size=(600, 1))
    >>> y = np.sin(6 * X[:, 0])
    >>> model = POLKRegressor(random_state=0).fit(X[:300], y[:300])
    >>> parts = [distributed.statistics(model, X[i::3], y[i::3]) for i in range(3)]
    >>> total = parts[0] + parts[1] + parts[2]
    >>> total.samples
    600
    >>> model = distributed.solve(model, total)
    >>> bool(abs(model.predict(X) - y).max() < 0.01)
    True
    """
    core = solvable(model)
    return statistics_of(model, fingerprint(model, core), X, y, sample_weight)


def statistics_of(model: Any, of: str, X: Any, y: Any, sample_weight: Any) -> Statistics:
    """Return the same for a model whose fingerprint is known."""
    core = model._fitted_model()
    samples = encoded(model, X, y, sample_weight)
    loss = model._core_loss(core.solution.shape[1])
    with threadpool_limits(limits=1, user_api="blas"):
        if loss.is_squared:
            return _of_least_squares(core, samples, loss, of)
        return _at_weights(core, samples, loss, of)


def solve(model: Any, total: Statistics) -> Any:
    """Return a model on the same points, with the weights that statistics ask for.

    Parameters
    ----------
    model : estimator
        The model that the statistics are of; it is not changed.
    total : Statistics
        The sum over all samples.

    Returns
    -------
    estimator
        For the squared loss, its weights minimise the regularised loss of all samples, exactly as
        those of one machine that has them all. For other losses they are one step nearer to the
        minimum, which never goes uphill: compute statistics of the new model, and solve again.
        That takes dozens of rounds; :func:`fit` needs fewer.
    """
    core = solvable(model)
    if not isinstance(total, Statistics):
        raise TypeError(f"total must be Statistics; got {type(total).__name__}.")
    if total._of != fingerprint(model, core):
        raise ValueError(
            "The statistics are of another model than the one to solve for: give the one that they "
            "were computed with."
        )
    if not total.samples:
        raise ValueError("The statistics are of no samples: there is nothing to solve from.")
    core, loss = core.copy(), model._core_loss(core.solution.shape[1])
    with threadpool_limits(limits=1, user_api="blas"):
        (_solve_exactly if loss.is_squared else _step)(core, total, loss)
    solved = copy.copy(model)
    solved._model = core
    return solved


def dumps(total: Statistics) -> bytes:
    """Return statistics as bytes, to be sent or kept.

    Parameters
    ----------
    total : Statistics
        Of any samples.

    Returns
    -------
    bytes
        From which :func:`loads` makes them again; no code. They have M^2 / 2 numbers for M points.
    """
    named = dict(zip(_NUMBERS, total._sums(), strict=True))
    return bytes(_core.Archive({"statistics": total._of, **named}).to_bytes())


def loads(data: bytes) -> Statistics:
    """Return the statistics that :func:`dumps` wrote.

    Parameters
    ----------
    data : bytes
        Nothing in it is executed, and everything is checked before it is used.

    Returns
    -------
    Statistics
        As they were.
    """
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"loads takes bytes, which dumps returned; got {type(data).__name__}.")
    archive = _core.Archive.from_bytes(bytes(data))
    try:
        found = Statistics(
            str(archive["statistics"]), *(np.asarray(archive[name]) for name in _NUMBERS)
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"The bytes are no statistics: {error}.") from error
    size = len(found._right)
    shapes = [numbers.shape for numbers in found._sums()]
    right = [(size * (size + 1) // 2,), (size, *found._right.shape[1:]), shapes[2], (4,)]
    if shapes != right or not all(np.isfinite(numbers).all() for numbers in found._sums()):
        raise ValueError("The bytes are no statistics: their arrays do not belong together.")
    return found


def solvable(model: Any) -> Any:
    """Return the core's model of an estimator whose weights can be solved from sums."""
    if not isinstance(model, ModelEstimator):
        raise TypeError(
            f"Statistics are of a POLK or COLK estimator; got {type(model).__name__}: "
            f"use its to_local() if it is one of parsimon.dask."
        )
    core = model._fitted_model()
    if not isinstance(core, _core.Polk) or getattr(model, "risk", None) is not None:
        raise ValueError(
            f"The statistics of this {type(model).__name__} are no sums over samples: they are "
            f"known of POLK's estimators, and of COLK's with risk=None, with at most 2,000 "
            f"features or a kernel that is not linear."
        )
    if getattr(model, "solver", "sgd") != "newton":
        raise ValueError("Weights are solved with solver='newton'; the model has solver='sgd'.")
    return core


def encoded(model: Any, X: Any, y: Any, sample_weight: Any) -> Samples:
    """Return samples with labels and targets as the core of a fitted model knows them."""
    if not is_classifier(model):
        X, y = model._validate_both(X, y, reset=False)
        targets = Targets(model.intercept_, model._scale_, model._single_)
        targets.check(y)
        return Samples(X, targets.encode(y), checked_weight(sample_weight, X))
    X, y = model._validate(X, y, reset=False)
    labels = Labels(model.classes_)
    unknown = np.setdiff1d(y, model.classes_)
    if len(unknown):
        raise ValueError(
            f"y has the labels {unknown.tolist()}, which the model does not know: it knows "
            f"{model.classes_.tolist()}."
        )
    targets_of = labels.encode(y)
    weight = _class_weight.times(
        checked_weight(sample_weight, X), weight_of_classes(model, targets_of)
    )
    return Samples(X, targets_of, weight, n_classes=len(model.classes_))


def weight_of_classes(model: Any, targets: Array) -> Array:
    """Return what each sample counts as one of its class, of all that were counted in fit."""
    if not isinstance(model.class_weight, str):
        found: Array = _class_weight.of_stream(
            model.class_weight, model.classes_, targets, NOTHING
        )[0]
        return found
    counts = model._counts_
    # Of a label that was announced there may be no samples.
    balanced: Array = counts.sum() / (len(counts) * np.maximum(counts, 1.0))
    return np.asarray(balanced[targets[:, 0].astype(int)])


def packed(square: Array) -> Array:
    """Return the lower triangle, row by row: half of the numbers."""
    return np.asarray(square[np.tril_indices(len(square))])


def unpacked(triangle: Array, size: int) -> Array:
    """Return the symmetric matrix."""
    square = np.zeros((size, size))
    square[np.tril_indices(size)] = triangle
    return np.asarray(square + np.tril(square, -1).T)


def fingerprint(model: Any, core: Any) -> str:
    """Return what tells statistics of this model from those of others."""
    archive = core.to_archive()
    names = ["kernel", "loss", "dictionary", "factor", "factor.diagonal"]
    parts = [archive[name] for name in names if name in archive]
    if is_classifier(model):
        parts.append(repr(model.classes_.tolist()))
    else:
        parts += [model.intercept_, model._scale_]
    if not model._core_loss(core.solution.shape[1]).is_squared:
        parts.append(core.solution)
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() if isinstance(part, str) else np.asarray(part).tobytes())
    return digest.hexdigest()


def _of_least_squares(core: Any, samples: Samples, loss: Any, of: str) -> Statistics:
    refit = core.begin_refit()
    value = 0.0
    for X, targets, weight in samples.blocks(1, at_once=BLOCK):
        core.add_to_refit(refit, X, targets, weight)
        losses = loss.evaluate(np.asarray(core.predict(X)), targets)[0]
        value += float(losses @ weight if len(weight) else losses.sum())
    sums = refit.sums
    totals = np.array([sums.count, value, sums.outside, sums.used])
    return Statistics(of, packed(sums.normal), sums.right, sums.squares, totals)


def _solve_exactly(core: Any, total: Statistics, loss: Any) -> None:  # noqa: ARG001
    refit = core.begin_refit()
    count, _, outside, used = total._totals
    core.add_sums_to_refit(
        refit,
        _core.LeastSquaresSums(
            unpacked(total._normal, len(total._right)),
            total._right,
            total._squares,
            outside,
            count,
            used,
        ),
    )
    core.finish_refit(refit)


def _at_weights(core: Any, samples: Samples, loss: Any, of: str) -> Statistics:
    solution = np.asarray(core.solution)
    normal, slope = np.zeros((len(solution),) * 2), np.zeros_like(solution)
    value, most = 0.0, curvature_at_zero(loss, solution.shape[1])
    for X, targets, weight in samples.blocks(1, at_once=BLOCK):
        features = np.asarray(core.coordinates(X))
        losses, gradient, curvature = loss.majorise(features @ solution, targets)
        # Of a sample that is predicted well enough, too, the parabola must lie above the loss.
        curvature = np.where(curvature > 0, curvature, most)
        if len(weight):
            losses, curvature = losses * weight, curvature * weight
            gradient = gradient * weight[:, None]
        value += float(losses.sum())
        slope -= features.T @ gradient
        rows = features * np.sqrt(curvature)[:, None]
        normal += rows.T @ rows
    totals = np.array([float(len(samples)), value, 0.0, 0.0])
    return Statistics(of, packed(normal), slope, np.empty(0), totals)


def _step(core: Any, total: Statistics, loss: Any) -> None:
    solution = np.asarray(core.solution)
    normal = unpacked(total._normal, len(solution))
    ridge = core.regularization * loss.regularizer_scale * total.samples
    ridge = max(ridge, LEAST_RIDGE * float(np.trace(normal)))
    factor = linalg.cho_factor(normal + ridge * np.eye(len(normal)), lower=True)
    solution = solution + linalg.cho_solve(factor, total._right - ridge * solution)
    right = normal @ solution + ridge * solution
    core.assume(normal, right, solution, float(total.samples), ridge)

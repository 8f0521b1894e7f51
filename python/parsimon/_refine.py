"""Points that move: points and weights of a function improved together, on the loss of fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, sparse
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from . import _core
from ._checks import count
from ._newton import least_squares, solve_weights
from ._problem import OneVsRest, Problem
from ._progress import progress
from ._stream import Samples
from ._threads import threads_of
from ._units import check_gradient, units_of

Array = NDArray[np.float64]

# Samples that judge what moving the points has brought, a share of all.
_HELD_OUT = 0.1
_MOST_HELD_OUT = 10_000
_FEWEST_JUDGES = 20
# Passes over the samples: so many samples in all.
_SAMPLES = 500_000
_FEWEST_EPOCHS, _MOST_EPOCHS = 10, 100
_BATCH = 128
# A step of a point in units of the kernel's width, and of weights relative to their size; smaller
# where predictions must be exact.
_POINT_RATE = 0.14
_WEIGHT_RATE = 0.1
_SMALL_RATE = 0.001
# Up to this many features products are hardly faster in single precision.
_FEW_FEATURES = 16
# Samples for each point, and at least, that the curvature is measured on, and what is added to it.
_CURVATURE_PER_POINT = 3
_CURVATURE_SAMPLES = 4000
_DAMPING = 1e-5
# Relative to the largest k(x, x), what is added to a Gram matrix.
_JITTER = 1e-9
# Ridges that are tried after the points have moved, in units of the one before.
_RIDGES = (1.0, 3.0, 0.3, 10.0, 0.1)
# Numbers of the coordinates that ridges are chosen by.
_NUMBERS = 1 << 25
_STEPS = 30
_BLOCK = 1024
# The share of the epochs after which the judges are asked whether to go on, and a mean loss there,
# in units of the one before, that has never become a gain.
_TRIAL = 0.3
_LOST = 1.1
# A model that remembers so many times the samples is judged with its own weights, too; and where
# its file tells how many there are.
_MORE = 1.5
_REMEMBERED = 3


def refine_on(
    self: Any,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    epochs: int | str = "auto",
) -> Any:
    """Improve points and weights of the fitted model together, on these samples.

    Points move by stochastic steps on the loss that ``fit`` minimises, then the weights are solved
    for. A tenth of the samples judges the result, with weights from the others: if it is no better,
    the model stays what it was. The number of points stays, and a stream can go on.

    Give all samples that the model is to know: the weights are solved on these alone. A model that
    has learned from more than one and a half times as many keeps its own weights, and its points,
    unless new ones are better at the judges by more than chance.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The samples: those of ``fit``, or others of the same kind.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Their labels or targets.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the samples, not negative.
    epochs : int or "auto", default="auto"
        Passes over the samples: 500,000 samples in all, from 10 to 100 times each.

    Returns
    -------
    self : estimator
        The estimator.
    """
    count(auto=True)("epochs", epochs)
    model = self._fitted_model()
    if self.__dict__.get("_predicts_only_"):
        raise ValueError(
            "A model that was saved with training=False cannot be refined: it has no statistics of "
            "the samples that it has learned from. Save it with training=True."
        )
    check_gradient(self.kernel_)
    samples = self._samples_again(X, y, sample_weight)
    model = model.copy()
    with threads_of(self.n_jobs):
        refine(self, model, samples, None if isinstance(epochs, str) else int(epochs))
    # A stream goes on from here: it must not begin anew from its first samples.
    self._adopt(model, {"_first_": ()})
    return self


def refine(estimator: Any, model: Any, samples: Samples, epochs: int | None = None) -> None:
    """Move the points of a model whose weights are solved, if samples that are held out gain."""
    if estimator.solver != "newton" or not hasattr(model, "assume"):
        raise ValueError(
            "Points can be moved where weights are solved on them: with solver='newton', and with "
            "another kernel than 'linear' on many features."
        )
    if model.model_order == 0:
        return
    with threadpool_limits(limits=1, user_api="blas"), np.errstate(invalid="ignore"):
        split = _split(samples, check_random_state(estimator.random_state))
        if split is not None:
            _Refinement(estimator, model, samples, split, epochs).run()


class _Refinement:
    """One attempt to move the points of a model."""

    def __init__(
        self,
        estimator: Any,
        model: Any,
        samples: Samples,
        split: tuple[Samples, Samples],
        epochs: int | None,
    ):
        self.estimator, self.model, self.samples = estimator, model, samples
        function = model.expansion
        self.kernel, self.points, self.weights = (
            function.kernel,
            function.dictionary,
            function.weights,
        )
        outputs = self.weights.shape[1]
        self.named = estimator._core_loss(outputs)
        self.random = check_random_state(estimator.random_state)
        self.learner, self.judge = split
        self.unit = float(self.kernel.diagonal(self.points).max(initial=0.0)) or 1.0
        # Beside a mean loss, of (this / 2) ||f||^2.
        self.ridge = model.regularization * self.named.regularizer_scale
        size = len(self.learner)
        passes = int(np.clip(_SAMPLES // max(size, 1), _FEWEST_EPOCHS, _MOST_EPOCHS))
        self.epochs = passes if epochs is None else epochs

    def run(self) -> None:
        # Weights that know the judges would be judged too well: both are judged with weights from
        # the others.
        span = _Span(self.kernel, self.points, self.unit)
        found = [self._best_ridge(span, self.weights, form) for form in self._forms()]
        before = min(found, key=lambda one: one.error[0])
        moved = self._moved(span, before.form)
        if moved is None:
            return
        points, weights = moved
        after = self._best_ridge(_Span(self.kernel, points, self.unit), weights, before.form)
        if not after.error < before.error:
            return
        if self._remembers_more() and not self._beats_its_own_weights(span, points, after):
            return
        self.model.replace(points, after.weights)
        if self.named.is_squared:
            least_squares(self.model, self.samples)
            return
        per_sample = after.ridge / self.named.regularizer_scale
        solve_weights(self.model, self.samples, self.named, per_sample, form=before.form)

    def _remembers_more(self) -> bool:
        """Tell whether the model has learned from clearly more samples than there are here."""
        remembered = float(self.model.to_archive()["newton.numbers"][_REMEMBERED])
        return remembered > _MORE * len(self.samples)

    def _beats_its_own_weights(self, span: _Span, points: Array, after: _Found) -> bool:
        """Tell whether the points that moved are better than the model as it is, beyond chance.

        Its own weights know samples that are not here. They may know the judges, too, which is why
        they are not asked where all samples are here.
        """
        own = span.problem(self.judge, after.form)
        other = _Span(self.kernel, points, self.unit)
        moved = other.problem(self.judge, after.form)
        gains = own.losses(span.coordinates(self.weights)) - moved.losses(
            other.coordinates(after.weights)
        )
        chance = float(gains.std()) / np.sqrt(len(gains))
        fewer = after.error < own.error(span.coordinates(self.weights))
        return bool(fewer and gains.mean() > chance)

    def _forms(self) -> tuple[Any, ...]:
        """Return the forms of the loss among which `fit` chooses, too."""
        if self.named.describe() in ("multiclass_hinge", "multiclass_squared_hinge"):
            return self.named, OneVsRest()
        return (self.named,)

    def _moved(self, span: _Span, form: Any) -> tuple[Array, Array] | None:
        """Return points and weights that have moved, or nothing if that leads nowhere."""
        size = len(self.learner)
        features = self.points.shape[1]
        single = features > _FEW_FEATURES
        of_rest = isinstance(form, OneVsRest)
        moving = _core.MovingPoints(
            _core.single(self.kernel) if single else self.kernel,
            _core.parse_loss("one_vs_rest_squared_hinge") if of_rest else self.named,
            self.points,
            self.weights,
            units=units_of(self.kernel.describe(), self.points),
            ridge=self.ridge,
            point_rate=_POINT_RATE / np.sqrt(features),
            weight_rate=_WEIGHT_RATE if self.named.is_classification else _SMALL_RATE,
        )
        steps = self.epochs * -(-size // _BATCH)
        name, shown = type(self.estimator).__name__, self.estimator.verbose >= 1
        with progress(
            self.epochs * size, enabled=shown, description=f"{name}: moving points"
        ) as bar:
            for epoch in range(self.epochs):
                if epoch == self._trial and self._is_lost(span, moving, form):
                    return None
                moving.precondition(self._root(moving.points))
                for X, targets, weight in self.learner.blocks(_BATCH, self.random):
                    rows = np.asarray(X, dtype=np.float64)
                    bar.update(moving.run(rows, targets, weight, _BATCH, steps))
                    bar.set_postfix(model_order=len(self.points), loss=moving.latest_loss)
        return moving.points, moving.weights

    @property
    def _trial(self) -> int:
        """The epoch before which the judges are asked whether to go on."""
        return max(round(_TRIAL * self.epochs), 1)

    def _is_lost(self, span: _Span, moving: Any, form: Any) -> bool:
        """Tell whether the points that move are clearly worse by now than where they began."""
        now = _Span(self.kernel, moving.points, self.unit)
        began = self._best_ridge(span, self.weights, form, _RIDGES[:1]).error
        there = self._best_ridge(now, moving.weights, form, _RIDGES[:1]).error
        return there[0] >= began[0] and there[1] > _LOST * began[1]

    def _root(self, points: Array) -> Array:
        """Return R, upper triangular, with R R' the inverse of the curvature of a mean loss."""
        some = max(_CURVATURE_SAMPLES, _CURVATURE_PER_POINT * len(points))
        rows = self.random.permutation(len(self.learner))[:some]
        part = _part(self.learner, np.sort(rows))
        values = self.kernel.block(_dense(part.X), points)
        curvature = values.T @ values / len(rows)
        damping = _DAMPING * self.unit**2
        damped = curvature + damping * np.eye(len(points))
        lower = linalg.cholesky(damped, lower=True)
        root = linalg.solve_triangular(lower, np.eye(len(points)), lower=True, trans=1)
        return np.ascontiguousarray(root)

    def _best_ridge(
        self, span: _Span, weights: Array, form: Any, ridges: tuple[float, ...] = _RIDGES
    ) -> _Found:
        """Return the ridge whose weights predict the judges best."""
        most = max(_NUMBERS // len(span.points), 1)
        learner = self.learner
        if len(learner) > most:
            learner = _part(learner, np.sort(self.random.permutation(len(learner))[:most]))
        problem = span.problem(learner, form)
        judged = span.problem(self.judge, form)
        normal, start = problem.curvature(), span.coordinates(weights)
        best = self.ridge, (np.inf, np.inf), start
        # That of the squared loss is chosen before it is fitted.
        for factor in ridges[:1] if self.named.is_squared else ridges:
            ridge = self.ridge * factor * len(learner) / self.unit
            ridge = max(ridge, 1e-9 * float(np.trace(normal)))
            solution = problem.minimise(start, normal, ridge, _STEPS)
            error = judged.error(solution)
            if error < best[1]:
                best = self.ridge * factor, error, solution
        return _Found(form, best[0], best[1], span.weights(best[2]))


@dataclass(frozen=True)
class _Found:
    """Weights for a form of the loss, with their ridge and what they do at the judges.

    The ridge is that of a mean loss; the error is the share of wrong labels, and the mean loss.
    """

    form: Any
    ridge: float
    error: tuple[float, float]
    weights: Array


class _Span:
    """Coordinates in the span of points."""

    def __init__(self, kernel: Any, points: Array, unit: float):
        self.kernel, self.points = kernel, points
        gram = kernel.block(points, points)
        gram[np.diag_indices_from(gram)] += _JITTER * unit
        self._lower = linalg.cholesky(gram, lower=True)
        self._unit = np.sqrt(unit)
        eye = np.eye(len(points))
        self._root = linalg.solve_triangular(self._lower, eye, lower=True, trans=1)

    def problem(self, samples: Samples, loss: Any) -> Problem:
        features = np.empty((len(samples), len(self.points)), dtype=np.float32)
        root = (self._root / self._unit).astype(np.float32)
        single, start = _core.single(self.kernel), 0
        for X, *_ in samples.blocks(_BLOCK, at_once=_BLOCK):
            values = single.block(np.asarray(X, dtype=np.float64), self.points)
            np.matmul(values.astype(np.float32), root, out=features[start : start + len(values)])
            start += len(values)
        return Problem(features, samples.targets, samples.weight, loss)

    def coordinates(self, weights: Array) -> Array:
        return np.asarray(self._lower.T @ weights * self._unit)

    def weights(self, solution: Array) -> Array:
        return np.ascontiguousarray(self._root @ solution / self._unit)


def _split(samples: Samples, random: Any) -> tuple[Samples, Samples] | None:
    held_out = min(int(_HELD_OUT * len(samples)), _MOST_HELD_OUT)
    if held_out < _FEWEST_JUDGES:
        return None
    order = random.permutation(len(samples))
    return (
        _part(samples, np.sort(order[held_out:])),
        _part(samples, np.sort(order[:held_out])),
    )


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


def _part(samples: Samples, rows: NDArray[Any]) -> Samples:
    columns = (column[rows] if len(column) else column for column in samples.columns[1:])
    return Samples(samples.X[rows], *columns, n_classes=samples.n_classes)

"""Novelty detection in streams: which samples are unlike those seen before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core, _stream
from ._callbacks import FitTasks
from ._checks import is_number, number
from ._drift import Detector, check_half_life
from ._first_samples import Start
from ._formula import Head, OneClass
from ._model import DRIFT, LEARNING_RATE, REGULARIZATION, Array, ModelEstimator
from ._newton import finish_fit
from ._parameters import WORDS, estimator
from ._sklearn import CallbackSupportMixin, OutlierMixin, with_callbacks
from ._stream import NOTHING, Samples, checked_weight
from ._types import AnyKernel, Auto, Gamma, Precision
from .polk import compress, new_polk, stop_early
from .schedules import AdaptiveBudget

if TYPE_CHECKING:
    from typing_extensions import Self

# Scores that the threshold is taken from: half of those seen, within these bounds.
_FEWEST_SCORES = 100
_MOST_SCORES = 1000


def _check_contamination(name: str, value: Any) -> None:
    if not (is_number(value) and 0 < value <= 0.5):
        raise ValueError(
            f"{name} must be a number above 0, at most 0.5, the share of outliers; got {value!r}."
        )


_ENTRIES = """
contamination : float, default={default}
    The share of the samples learned from that are to be called outliers, above 0 and at most 0.5.
regularization : float, default={default}
    Weight lambda of the squared norm of the function, not negative. Larger values make it the
    density of a kernel density estimate, smaller ones the same for all samples learned from,
    however rare.
weights_ : ndarray of shape (model_order_, 1)
    Their weights.
offset_ : float
    The score below which a sample is an outlier.
y : None
    Ignored.
scores : ndarray of shape (n_samples,)
    About 1 where samples are dense, 0 far from all of them.
differences : ndarray of shape (n_samples,)
    Positive for inliers, negative for outliers.
labels : ndarray of shape (n_samples,)
    1 for inliers, -1 for outliers.
"""


@estimator(_ENTRIES)
class POLKOneClass(OutlierMixin, ModelEstimator, CallbackSupportMixin):
    """Novelty detector for streams, with a model that stays small.

    It learns the function f with f(x) = 1 at all samples, as far as a small norm allows, by
    regularized least squares: the minimiser of

        mean (1 - f(x_i))^2 / 2 + lambda / 2 ||f||^2

    on a dictionary that POLK finds. Since f is 0 where no sample is near, a low value is a novelty.
    The threshold is the `contamination` quantile of the scores: in ``fit`` of all samples, in a
    stream of the latest, each as it was before the model learned from the sample. So it follows a
    stream that changes.

    Parameters
    ----------
    {contamination, kernel, gamma, regularization, learning_rate, parsimony, budget, max_points,
    half_life, batch_size, epochs, shuffle, dtype, n_jobs, random_state, verbose}

    Attributes
    ----------
    {offset_, dictionary_, weights_, model_order_, expansion_, n_features_in_, kernel_,
    learning_rate_, regularization_, epochs_, t_, trace_, drift_}

    References
    ----------
    E. De Vito, L. Rosasco, A. Toigo: Spectral regularization for support estimation. NeurIPS 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from parsimon import POLKOneClass
    >>> random = np.random.default_rng(0)
    >>> model = POLKOneClass(contamination=0.05)
    >>> for _ in range(20):
    ...     model = model.partial_fit(random.normal(size=(50, 2)))
    >>> model.predict([[0.0, 0.5], [5.0, 5.0]])
    array([ 1, -1])
    """

    contamination: float = 0.1
    _: KW_ONLY
    kernel: AnyKernel = "auto"
    gamma: Gamma = "scale"
    regularization: float = 0.01
    learning_rate: float | Auto = "auto"
    parsimony: float | Auto = "auto"
    budget: float | AdaptiveBudget | None = None
    max_points: int | Auto | None = "auto"
    half_life: float | Auto | Detector | None = "auto"
    batch_size: int = 32
    epochs: int | Auto = "auto"
    shuffle: bool = True
    dtype: Precision = "float64"
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    learning_rate_ = LEARNING_RATE
    regularization_ = REGULARIZATION
    drift_ = DRIFT

    _words = {
        **WORDS,
        "contamination": _check_contamination,
        "regularization": number(),
        "half_life": check_half_life,
    }
    _algorithms = ("polk",)
    _new_model = new_polk
    compress = compress
    _stop_early = stop_early

    # What POLK's other estimators may choose.
    solver = "newton"
    schedule = "constant"
    average = False
    _refits = True

    def _core_loss(self, outputs: int) -> Any:  # noqa: ARG002
        return _core.parse_loss("squared")

    def _n_outputs(self, samples: Samples) -> int:  # noqa: ARG002
        return 1

    @with_callbacks
    def fit(
        self,
        X: ArrayLike,
        y: None = None,  # noqa: ARG002
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from all samples, forgetting what was learned before.

        {X, y, sample_weight -> self}
        """
        with self._unchanged_on_error():
            self._check_parameters()
            tasks = FitTasks(self, X, None, sample_weight)
            X = self._validate(X, reset=True)
            _stream.fit(
                self,
                self._samples(X, checked_weight(sample_weight, X)),
                {"offset_": 0.0, "_scores_": NOTHING},
                tasks,
            )
        scores = _weighed(self._values_of(self._model, X), checked_weight(sample_weight, X))
        self.offset_ = self._threshold(scores)
        # Some of them, for a stream that goes on from here.
        self._scores_ = scores[:: -(-len(scores) // _MOST_SCORES)]
        tasks.end()
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: None = None,  # noqa: ARG002
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from one block of a stream, in the order given.

        {X, y, sample_weight -> self}
        """
        with self._unchanged_on_error():
            self._check_parameters_if_changed()
            X = self._validate_samples(X, reset="_model" not in self.__dict__)
            start = Start.of(self, X, checked_weight(sample_weight, X))
            X, weight = start.columns
            # Scores of samples that are not known yet, as those that will be asked for.
            scores = NOTHING if start.begins else _weighed(self._values_of(self._model, X), weight)
            samples = self._samples(X, weight)
            _stream.learn(self, start, samples, {"offset_": 0.0, "_scores_": NOTHING})
        if start.begins:
            scores = _weighed(self._values_of(self._model, X), weight)
        scores = _one_after_the_other(self._scores_, scores)
        self._scores_ = scores[-_MOST_SCORES:]
        self.offset_ = self._threshold(scores[-max(self.t_ // 2, _FEWEST_SCORES) :])
        return self

    def _samples(self, X: Any, weight: Array) -> Samples:
        return Samples(X, np.ones((X.shape[0], 1)), weight)

    def _threshold(self, scores: Array) -> float:
        share = float(self.contamination)
        if scores.ndim == 1:
            return float(np.quantile(scores, share))
        return weighted_quantile(scores[:, 0], scores[:, 1], share)

    def _finish_fit(self, model: Any, samples: Samples) -> None:
        finish_fit(self, model, samples)

    def score_samples(self, X: ArrayLike) -> Array:
        """Return the values of the learned function: the lower, the more unusual.

        {X -> scores}
        """
        return self._evaluate(X)[:, 0]

    def decision_function(self, X: ArrayLike) -> Array:
        """Return by how much scores are above the threshold.

        {X -> differences}
        """
        scores = self.score_samples(X)
        return np.asarray(scores - self.offset_)

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Tell inliers from outliers.

        {X -> labels}
        """
        differences = self.decision_function(X)
        return np.where(differences < 0, -1, 1)

    def _head(self) -> Head:
        return OneClass(self.offset_)

    def _stored(self, outputs: int) -> dict[str, Callable[[Any], bool]]:
        def few(value: Any) -> bool:
            weighed = value.ndim == 2 and value.shape[1] == 2 and bool((value[:, 1] >= 0).all())
            sound = value.dtype.kind == "f" and bool(np.isfinite(value).all())
            return (value.ndim == 1 or weighed) and len(value) <= _MOST_SCORES and sound

        return {"offset_": is_number, "_scores_": lambda value: outputs == 1 and few(value)}

    def _foreign_entries(self, archive: _core.Archive) -> list[str]:
        wrong = super()._foreign_entries(archive)
        return wrong if archive["loss"] == "squared" else [*wrong, "loss"]


# Scores are kept as numbers, or as rows of a score and its weight once samples have weights.


def _weighed(scores: Array, weight: Array) -> Array:
    """Return the scores of samples, with their weights if there are any."""
    return np.column_stack([scores, weight]) if len(weight) else scores[:, 0]


def _one_after_the_other(earlier: Array, later: Array) -> Array:
    """Return scores of two blocks; without a weight, it is 1."""
    both = [earlier, later]
    if earlier.ndim != later.ndim:
        both = [
            each if each.ndim == 2 else np.column_stack([each, np.ones(len(each))]) for each in both
        ]
    return np.concatenate(both)


def weighted_quantile(values: Array, weight: Array, share: float) -> float:
    """Return the quantile of values of which each is there as often as its weight says.

    Weights are in units of the smallest, so what counts is how they compare; equal ones are as
    none. Between two values it is interpolated, as ``numpy.quantile`` does.
    """
    counts = weight > 0
    if not counts.any():
        return float(np.quantile(values, share))
    order = np.argsort(values[counts], kind="stable")
    values, weight = values[counts][order], weight[counts][order]
    times = weight / weight.min()
    last = times.cumsum() - 1
    # A value that is there several times is a step from its first place to its last.
    places = np.column_stack([last - times + 1, last]).ravel()
    return float(np.interp(share * last[-1], places, np.repeat(values, 2)))

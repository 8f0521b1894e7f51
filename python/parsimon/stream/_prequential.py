"""Test, then train: what a model is worth along a stream."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier, is_outlier_detector
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from parsimon._checks import check_count
from parsimon._core import DriftDetector
from parsimon._drift import is_detector
from parsimon._progress import progress

from ._blocks import as_block
from ._metrics import Metric, named_metrics

if TYPE_CHECKING:
    from parsimon.plotting import PrequentialDisplay


@dataclass(frozen=True)
class PrequentialResult:
    """What :func:`prequential` found.

    Attributes
    ----------
    model : estimator
        The model, as the stream has left it.
    samples : ndarray of shape (n_windows,)
        Samples of the stream up to the end of each window.
    curves : dict of str to ndarray
        The value of each metric over each window.
    points : ndarray of shape (n_windows,) or None
        The model's ``model_order_`` at the end of each window, if it has one.
    microseconds : ndarray of shape (n_windows,)
        What a sample took in each window, to predict and to learn from.
    drift : ndarray
        The samples with which a change of the stream was found.
    summary : dict
        "samples" of the stream, the mean of each metric over all that were predicted, "points",
        "changes" found, and the microseconds of a sample: "predict_us" and "learn_us".

    Examples
    --------
    >>> from parsimon import POLKClassifier
    >>> from parsimon.datasets import make_multidist
    >>> from parsimon.stream import in_blocks, prequential
    >>> X, y = make_multidist(2000, random_state=0)
    >>> result = prequential(POLKClassifier(), in_blocks(X, y, rows=100))
    >>> result.summary["accuracy"] > 0.8
    True
    """

    model: Any
    samples: NDArray[np.int64]
    curves: dict[str, NDArray[np.float64]]
    points: NDArray[np.int64] | None
    microseconds: NDArray[np.float64]
    drift: NDArray[np.int64]
    summary: dict[str, Any]

    def plot(self, *, ax: Any = None) -> PrequentialDisplay:
        """Draw the curves.

        Parameters
        ----------
        ax : array-like of three matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        display : PrequentialDisplay
            What was drawn.
        """
        from parsimon.plotting import PrequentialDisplay

        return PrequentialDisplay(self).plot(ax=ax)

    def __str__(self) -> str:
        return "\n".join(f"{name:>20}  {_written(value)}" for name, value in self.summary.items())


def _written(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def prequential(
    model: Any,
    blocks: Iterable[Any],
    metrics: str | Sequence[str] | Mapping[str, Metric] | None = None,
    window: int = 1000,
    *,
    classes: ArrayLike | None = None,
    drift: Any = "auto",
    verbose: int = 0,
) -> PrequentialResult:
    """Predict each block of a stream, compare with its targets, and only then learn from it.

    Every sample is predicted before the model has seen it, so nothing needs to be held out. A model
    that is not fitted yet learns from the first block without being judged by it.

    Parameters
    ----------
    model : estimator
        Anything with ``predict`` and ``partial_fit``, of parsimon's or of scikit-learn's.
    blocks : iterable of (X, y)
        The stream, as from :func:`read_blocks` or :func:`in_blocks`. Where y is a single label or
        number, X is one sample: a sequence, or a dictionary of features.
        An array or frame of one column is as good as a sequence for y.
    metrics : str, sequence of str or dict of str to callable, optional
        Some of "accuracy", "error", "balanced_accuracy", "mean_absolute_error",
        "mean_squared_error" and "r2", or functions of true and predicted targets, by names of your
        choice. By default the accuracy of a classifier and of a detector of novelties (where y is 1
        for inliers and -1 for outliers), the mean absolute error and r2 of others.
    window : int, default=1000
        Samples over which each metric is computed, again and again.
    classes : array-like, optional
        All labels that the stream will have, for classifiers that need to know them in their first
        call of ``partial_fit``.
    drift : "auto", None or object, default="auto"
        What watches the losses (mistakes, or the size of the differences) for changes of the
        stream: "auto" is the detector that ``half_life="auto"`` uses, None is none; otherwise an
        object with ``update(loss)`` and ``drift_detected``, as those of ``river.drift``.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    result : PrequentialResult
        The curves and their summary.

    Examples
    --------
    >>> from sklearn.linear_model import SGDClassifier
    >>> from parsimon.datasets import make_multidist
    >>> from parsimon.stream import in_blocks, prequential
    >>> X, y = make_multidist(1000, random_state=0)
    >>> result = prequential(
    ...     SGDClassifier(random_state=0), in_blocks(X, y, rows=10), "error", 100, classes=range(5)
    ... )
    >>> result.summary["samples"], len(result.curves["error"])
    (1000, 10)
    """
    missing = [name for name in ("predict", "partial_fit") if not hasattr(model, name)]
    if missing:
        raise TypeError(
            f"prequential needs a model with predict and partial_fit; {type(model).__name__} has "
            f"no {' and no '.join(missing)}."
        )
    check_count("window", window)
    detects = is_outlier_detector(model)
    classifies = detects or is_classifier(model)
    watch = _Watch(drift, classifies=classifies)
    record = _Record(named_metrics(metrics, classifies=classifies), window)
    first = {} if classes is None else {"classes": classes}
    fitted = _is_fitted(model)
    seen, changes = 0, []
    total, name = getattr(blocks, "n_samples", None), type(model).__name__
    with progress(total, enabled=verbose >= 1, description=name) as bar:
        for given in blocks:
            if detects:
                _check_inliers(model, given[1])
            X, y = as_block(*given)
            start = time.perf_counter()
            predicted = model.predict(X) if fitted else None
            predicting = time.perf_counter() - start
            if predicted is not None:
                y, predicted = _comparable(y, predicted)
            start = time.perf_counter()
            model.partial_fit(X, y, **first)
            learning = time.perf_counter() - start
            first, fitted = {}, True
            points = getattr(model, "model_order_", None)
            if predicted is not None:
                found = watch.observe(y, predicted, points or 0)
                changes += [seen + place + 1 for place in found]
            seen += len(y)
            record.add(y, predicted, predicting, learning, points)
            bar.update(len(y))
            bar.set_postfix(**record.latest())
    return record.result(model, np.array(changes, dtype=np.int64))


def _check_inliers(model: Any, y: Any) -> None:
    """Refuse targets that what a detector of novelties predicts cannot be compared with."""
    targets = set() if y is None else {*np.ravel(np.asarray(y)).tolist()}
    if y is None or not targets <= {1, -1}:
        found = "there are none" if y is None else f"they are {sorted(map(str, targets))[:5]}"
        raise ValueError(
            f"{type(model).__name__} predicts 1 for inliers and -1 for outliers, so the targets it "
            f"is judged by must be 1 and -1, too; {found}. To learn without being judged, call "
            f"partial_fit."
        )


def _comparable(y: NDArray[Any], predicted: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return targets and predictions in one shape: a single column is a sequence."""
    both = np.asarray(y), np.asarray(predicted)
    if both[0].shape != both[1].shape:
        truth, predicted = (
            each[:, 0] if each.ndim == 2 and each.shape[1] == 1 else each for each in both
        )
        both = truth, predicted
    if both[0].shape != both[1].shape:
        raise ValueError(
            f"The targets of a block have the shape {np.shape(y)}, but what the model predicts has "
            f"the shape {both[1].shape}: they cannot be compared."
        )
    return both


def _is_fitted(model: Any) -> bool:
    try:
        check_is_fitted(model)
    except (NotFittedError, TypeError):  # what has no fit is not one of scikit-learn's estimators
        return False
    return True


class _Watch:
    """A drift detector, ours or river's, that is shown the losses of predictions."""

    def __init__(self, given: Any, *, classifies: bool) -> None:
        self._classifies = classifies
        self._detector = given
        if isinstance(given, str) and given == "auto":
            self._detector = DriftDetector()
        elif given is not None and not is_detector(given):
            raise ValueError(
                f"drift must be 'auto', None or an object with update(loss) and drift_detected, as "
                f"those of river.drift; got {given!r}."
            )

    def observe(self, truth: NDArray[Any], predicted: NDArray[Any], points: int) -> list[int]:
        """Return the places of the samples with which a change was found."""
        if self._detector is None:
            return []
        if self._classifies:
            losses = (truth != predicted).astype(np.float64)
        else:
            losses = np.abs(truth - predicted).reshape(len(truth), -1).mean(axis=1)
        if isinstance(self._detector, DriftDetector):
            return self._detector.observe(losses, points)
        found = []
        for place, loss in enumerate(losses.tolist()):
            self._detector.update(loss)
            if self._detector.drift_detected:
                found.append(place)
        return found


class _Record:
    """Predictions of a window that is not full yet, and what the full ones gave."""

    def __init__(self, metrics: dict[str, Metric], window: int) -> None:
        self._metrics = metrics
        self._window = window
        # Of each sample: its target, the prediction, microseconds, points of the model.
        self._waiting: list[tuple[NDArray[Any], ...]] = []
        self._waits = 0
        self._sizes: list[int] = []
        self._curves: dict[str, list[float]] = {name: [] for name in metrics}
        self._microseconds: list[float] = []
        self._points: list[int] = []
        # Seconds and samples in all.
        self._predicting, self._judged = 0.0, 0
        self._learning, self._learned = 0.0, 0

    def add(
        self,
        truth: NDArray[Any],
        predicted: NDArray[Any] | None,
        predicting: float,
        learning: float,
        points: int | None,
    ) -> None:
        """Take a block, the seconds that it took, and the points that the model has after it."""
        size = len(truth)
        self._learning += learning
        self._learned += size
        if predicted is None:
            return
        self._predicting += predicting
        self._judged += size
        each = np.full(size, 1e6 * (predicting + learning) / max(size, 1))
        self._waiting.append((truth, np.asarray(predicted), each, np.full(size, points or 0)))
        self._waits += size
        if self._waits >= self._window:
            self._close(self._waits - self._waits % self._window)

    def _close(self, stop: int) -> None:
        """Judge the first of what waits, in windows."""
        columns = [np.concatenate(column) for column in zip(*self._waiting, strict=True)]
        for start in range(0, stop, self._window):
            part = slice(start, min(start + self._window, stop))
            truth, predicted, microseconds, points = (column[part] for column in columns)
            for name, metric in self._metrics.items():
                self._curves[name].append(float(metric(truth, predicted)))
            self._sizes.append(len(truth))
            self._microseconds.append(float(microseconds.mean()))
            self._points.append(int(points[-1]))
        self._waiting = [tuple(column[stop:] for column in columns)]
        self._waits -= stop

    def latest(self) -> dict[str, float]:
        """Return what a progress bar shows."""
        if not self._sizes:
            return {}
        shown = {name: round(curve[-1], 4) for name, curve in self._curves.items()}
        return {**shown, "points": self._points[-1]} if self._points[-1] else shown

    def result(self, model: Any, drift: NDArray[np.int64]) -> PrequentialResult:
        """Judge what still waits, and return everything."""
        if self._waits:
            self._close(self._waits)
        points = getattr(model, "model_order_", None)
        sizes = np.array(self._sizes, dtype=np.int64)
        curves = {name: np.array(curve) for name, curve in self._curves.items()}
        summary: dict[str, Any] = {"samples": self._learned}
        summary |= {name: _mean(curve, sizes) for name, curve in curves.items()}
        if points is not None:
            summary["points"] = int(points)
        summary["changes"] = len(drift)
        summary["predict_us"] = 1e6 * self._predicting / max(self._judged, 1)
        summary["learn_us"] = 1e6 * self._learning / max(self._learned, 1)
        return PrequentialResult(
            model=model,
            samples=self._learned - self._judged + sizes.cumsum(),
            curves=curves,
            points=None if points is None else np.array(self._points, dtype=np.int64),
            microseconds=np.array(self._microseconds),
            drift=drift,
            summary=summary,
        )


def _mean(curve: NDArray[np.float64], sizes: NDArray[np.int64]) -> float:
    """Return the mean over all samples, of the windows in which a metric is defined."""
    known = np.isfinite(curve)
    return float(np.average(curve[known], weights=sizes[known])) if known.any() else float("nan")

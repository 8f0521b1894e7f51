"""Learning from samples block by block, which all streaming estimators share.

Such an estimator has `batch_size`, `epochs`, `shuffle`, `random_state`, `n_jobs` and `verbose`, and

- ``_new_model(samples, streaming=...)`` returns an untrained core model for samples like these, its
  kernel, and how many epochs ``fit`` makes; when streaming, they are only the first of many;
- ``_finish_fit(model, samples)`` does what ``fit`` does once all epochs are over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight

from ._advice import warn_of_features, warn_of_growth
from ._callbacks import FitTasks
from ._checks import warn
from ._drift import Detector, listening, losses_of, tell
from ._first_samples import Start
from ._progress import ProgressBar, progress
from ._settings import bound_memory
from ._threads import threads_of
from .schedules import AdaptiveBudget

Array = NDArray[np.float64]

# Samples that are made dense or shuffled at a time, and numbers in them: bounds the memory, and
# paces the progress bar.
BLOCK = 4096
_BLOCK_NUMBERS = 1 << 22

# The same where sample weights depend on the model, which must not be an old one.
_WEIGHED = 256

NOTHING = np.empty(0)
# Fitted attributes of an ordinary model: it keeps no first samples of a stream, and can do more
# than predict.
NOTHING_SPECIAL: dict[str, Any] = {"_first_": (), "_predicts_only_": False}


def block_rows(X: Any) -> int:
    """Return how many of these samples to take at a time."""
    return max(1, min(_BLOCK_NUMBERS // int(X.shape[1]), BLOCK))


class Samples:
    """Samples as the core takes them: one row of targets per sample, and weights if there are.

    `watch`, if there is one, is shown the model after every block.
    """

    def __init__(
        self,
        X: Any,
        targets: Array = NOTHING,
        weight: Array = NOTHING,
        *,
        n_classes: int = 0,
        watch: Callable[[Any], None] | None = None,
    ) -> None:
        self.X = X
        self.targets = targets
        self.weight = weight
        self.n_classes = n_classes
        self.watch = watch
        # Shown the mean loss after every step where weights are solved.
        self.watch_solver: Callable[[float], None] | None = None
        # What a core model is given to learn from; an empty array has no rows to choose.
        self.columns: tuple[Any, ...] = (X, targets, weight)

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def blocks(
        self, batch_size: int, random: np.random.RandomState | None = None, at_once: int = BLOCK
    ) -> Iterable[tuple[Any, ...]]:
        """Return the columns in blocks of whole mini-batches, in random order if asked to."""
        rows = max(1, min(at_once, block_rows(self.X)) // batch_size) * batch_size
        if random is None and self.X.shape[0] <= rows and type(self.X) is np.ndarray:
            return (self.columns,)
        return self._parts(rows, None if random is None else random.permutation(len(self)), _dense)

    def sparse_blocks(
        self, batch_size: int, random: np.random.RandomState | None = None, at_once: int = BLOCK
    ) -> Iterable[tuple[Any, ...]]:
        """Return the same, with sparse samples as they are."""
        rows = max(1, at_once // batch_size) * batch_size
        return self._parts(rows, None if random is None else random.permutation(len(self)), _rows)

    def _parts(
        self, rows: int, order: NDArray[Any] | None, take: Callable[[Any, Any], Any]
    ) -> Iterator[tuple[Any, ...]]:
        for start in range(0, len(self), rows):
            part = slice(start, start + rows) if order is None else order[start : start + rows]
            yield tuple(take(column, part) for column in self.columns)


def _dense(column: Any, part: Any) -> Any:
    return column[part].toarray() if sparse.issparse(column) else _rows(column, part)


def _rows(column: Any, part: Any) -> Any:
    if sparse.issparse(column):
        return column[part]
    return np.ascontiguousarray(column[part]) if len(column) else column


def checked_weight(sample_weight: ArrayLike | None, X: Any) -> Array:
    """Return the weights of samples, or nothing if there are none."""
    if sample_weight is None:
        return NOTHING
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    return np.asarray(weight)


def fit(
    estimator: Any, samples: Samples, fitted: dict[str, Any], tasks: FitTasks | None = None
) -> None:
    """Train a new model and adopt it; if that fails, the estimator is as it was before."""
    warn_of_features(estimator, samples.X)
    tasks = FitTasks() if tasks is None else tasks
    model, kernel, epochs = estimator._new_model(samples, streaming=False)
    fitted = {**fitted, "_kernel_": kernel, "epochs_": epochs, **NOTHING_SPECIAL}
    brought: Any = getattr(estimator, "half_life", None)
    fitted["_detector_"] = listening(brought, model) if hasattr(brought, "update") else None
    random = check_random_state(estimator.random_state) if estimator.shuffle else None
    name, shown = type(estimator).__name__, estimator.verbose >= 1
    # Steps of a vector of weights are all that it learns before it is solved: those find no points.
    steps = getattr(model, "takes_sparse", False)
    learned = samples if steps else _enough(estimator, samples, random)
    try:
        with progress(epochs * len(learned), enabled=shown, description=name) as bar:
            weigh = None if getattr(estimator, "_refits", False) else estimator._weigh
            tasks.begin(epochs)
            for epoch in range(epochs):
                tasks.begin_epoch()
                run(estimator, model, learned, random, bar, weigh)
                if tasks.end_epoch(lambda: {**fitted, "_model": _as_it_is(model)}):
                    fitted["epochs_"] = epoch + 1
                    break
            if getattr(estimator, "_refits", False):
                bar.describe(f"{name}: solving for the weights")
                if shown:
                    samples.watch_solver = lambda loss: bar.show(
                        model_order=model.model_order, loss=loss
                    )
            with threads_of(estimator.n_jobs):
                estimator._finish_fit(model, samples)
    except KeyboardInterrupt:
        estimator._stop_early(model)
        bound_memory(estimator, model)
        estimator._adopt(model, fitted)
        raise
    warn_if_out_of_reach(estimator, model)
    # All samples have been seen; a stream that goes on from here may change.
    bound_memory(estimator, model)
    estimator._adopt(model, fitted)
    warn_of_growth(estimator, model, len(samples))


def _as_it_is(model: Any) -> Any:
    """Return a copy that predicts as if nothing more was to come."""
    now = model.copy()
    if hasattr(now, "stop_scouting"):
        now.stop_scouting()
    return now


def _enough(estimator: Any, samples: Samples, random: np.random.RandomState | None) -> Samples:
    """Return the samples that points are found among: all, or as many at random as are enough."""
    most = estimator._samples_of_points(len(samples))
    if random is None or len(samples) <= most:
        return samples
    rows = np.sort(random.permutation(len(samples))[:most])
    columns = (column[rows] if len(column) else column for column in samples.columns[1:])
    return Samples(samples.X[rows], *columns, n_classes=samples.n_classes, watch=samples.watch)


def begin(estimator: Any, samples: Samples, fitted: dict[str, Any]) -> None:
    """Train a new model on the first samples of a stream.

    If that fails, the mini-batches that are done stay, unless there was a model before.
    """
    if not fitted.get("_first_"):
        warn_of_features(estimator, samples.X)
    model, kernel, _ = estimator._new_model(samples, streaming=True)
    bound_memory(estimator, model)
    brought: Any = getattr(estimator, "half_life", None)
    detector = listening(brought, model) if hasattr(brought, "update") else None
    fitted = {**fitted, "_kernel_": kernel, "epochs_": 1, "_detector_": detector}
    try:
        (run if estimator.verbose < 2 else _run_shown)(
            estimator, model, samples, weigh=estimator._weigh, detector=detector
        )
    except BaseException:
        if model.samples and "_model" not in estimator.__dict__:
            estimator._adopt(model, {**fitted, "_first_": ()})
        raise
    estimator._adopt(model, fitted)


def partial_fit(
    estimator: Any, samples: Samples, fitted: dict[str, Any], model: Any = None
) -> None:
    """Train on samples once; whatever ends that, the mini-batches that are done stay.

    model: another one than the estimator has, to be adopted.
    """
    if model is None:
        model = estimator._model
    if estimator.__dict__.get("_predicts_only_"):
        raise cannot_go_on(estimator)
    before = model.samples
    try:
        (run if estimator.verbose < 2 else _run_shown)(
            estimator,
            model,
            samples,
            weigh=estimator._weigh,
            detector=estimator.__dict__.get("_detector_"),
        )
    finally:
        now = model.samples
        if fitted and now > before:
            if now - before < len(samples):
                fitted = estimator._after(fitted, samples, now - before)
            estimator._adopt(model, fitted)
    # Each time that there are twice as many.
    if now.bit_length() > before.bit_length():
        warn_of_growth(estimator, model, now)


def cannot_go_on(estimator: Any) -> ValueError:
    """Return what is wrong with a model of which a file kept no more than predictions need."""
    return ValueError(
        f"This {type(estimator).__name__} was saved with training=False: it can predict, and "
        f"fit can train it anew, but partial_fit cannot go on."
    )


def learn(estimator: Any, start: Start, samples: Samples, fitted: dict[str, Any]) -> None:
    """Train on the samples with which learning starts; fitted: of a model that begins with them."""
    if start.begins:
        begin(estimator, samples, {**fitted, "_first_": start.kept})
    else:
        partial_fit(estimator, samples, {"_first_": start.kept})


def _run_shown(
    estimator: Any, model: Any, samples: Samples, *, weigh: Any, detector: Detector | None
) -> None:
    with progress(len(samples), description=type(estimator).__name__) as bar:
        run(estimator, model, samples, bar=bar, weigh=weigh, detector=detector)


def run(
    estimator: Any,
    model: Any,
    samples: Samples,
    random: np.random.RandomState | None = None,
    bar: ProgressBar | None = None,
    weigh: Callable[..., tuple[Any, ...]] | None = None,
    detector: Detector | None = None,
) -> None:
    """Train a core model on all samples once.

    `weigh`, if there is one, is given the model and the columns of a block, and returns what is
    learned from instead. `detector`, if there is one, is shown the losses of each mini-batch from
    before it was learned from.
    """
    batch_size = int(estimator.batch_size)
    blocks = samples.sparse_blocks if getattr(model, "takes_sparse", False) else samples.blocks
    at_once = BLOCK if weigh is None else _WEIGHED
    with threads_of(estimator.n_jobs):
        for columns in blocks(batch_size, random, at_once if detector is None else 1):
            if detector is not None:
                losses = losses_of(estimator, model, *columns[:2])
            if weigh is not None:
                columns = weigh(model, *columns)
            taken = model.run(*columns, batch_size)
            if detector is not None:
                tell(model, detector, losses)
            if bar is not None:
                bar.update(taken)
                loss, error = model.latest
                bar.set_postfix(model_order=model.model_order, loss=loss, compression_error=error)
            if samples.watch is not None:
                samples.watch(model)


def warn_if_out_of_reach(estimator: Any, model: Any) -> None:
    budget = getattr(estimator, "budget", None)
    if not isinstance(budget, AdaptiveBudget):
        return
    order, target, kept = model.model_order, budget.target, estimator._kept_points(model)
    if target < kept:
        problem = f"below the {kept} nodes of the grid, which are never removed"
    elif model.target_out_of_reach:
        more = model.target_out_of_reach > 0
        problem = f"{'more' if more else 'fewer'} points than the data need"
    elif abs(order - target) > 0.1 * target + 1:
        problem = "still being approached; a stream that goes on comes nearer"
    else:
        return
    warn(f"The model order is {order}: the target of {target} is {problem}.", ConvergenceWarning)

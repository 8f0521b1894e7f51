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

from ._checks import warn
from ._progress import ProgressBar, progress
from ._settings import bound_memory
from ._threads import threads_of
from .schedules import AdaptiveBudget

Array = NDArray[np.float64]

# Samples that are made dense or shuffled at a time, and numbers in them: bounds the memory, and
# paces the progress bar.
BLOCK = 4096
_BLOCK_NUMBERS = 1 << 22

NOTHING = np.empty(0)


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
        return self._parts(rows, None if random is None else random.permutation(len(self)))

    def _parts(self, rows: int, order: NDArray[Any] | None) -> Iterator[tuple[Any, ...]]:
        for start in range(0, len(self), rows):
            part = slice(start, start + rows) if order is None else order[start : start + rows]
            yield tuple(_rows(column, part) for column in self.columns)


def _rows(column: Any, part: Any) -> Any:
    if sparse.issparse(column):
        return column[part].toarray()
    return np.ascontiguousarray(column[part]) if len(column) else column


def checked_weight(sample_weight: ArrayLike | None, X: Any) -> Array:
    """Return the weights of samples, or nothing if there are none."""
    if sample_weight is None:
        return NOTHING
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    return np.asarray(weight)


def fit(estimator: Any, samples: Samples, fitted: dict[str, Any]) -> None:
    """Train a new model and adopt it; if that fails, the estimator is as it was before."""
    model, kernel, epochs = estimator._new_model(samples, streaming=False)
    fitted = {**fitted, "_kernel_": kernel, "epochs_": epochs}
    random = check_random_state(estimator.random_state) if estimator.shuffle else None
    name, shown = type(estimator).__name__, estimator.verbose >= 1
    try:
        with progress(epochs * len(samples), enabled=shown, description=name) as bar:
            for _ in range(epochs):
                run(estimator, model, samples, random, bar)
            if getattr(estimator, "_refits", False):
                bar.describe(f"{name}: solving for the weights")
            with threads_of(estimator.n_jobs):
                estimator._finish_fit(model, samples)
    except KeyboardInterrupt:
        estimator._stop_early(model)
        bound_memory(estimator, model)
        estimator._adopt(model, fitted)
        raise
    _warn_if_out_of_reach(estimator, model)
    # All samples have been seen; a stream that goes on from here may change.
    bound_memory(estimator, model)
    estimator._adopt(model, fitted)


def partial_fit(estimator: Any, samples: Samples, fitted: dict[str, Any]) -> None:
    """Train on samples once; whatever ends that, the mini-batches that are done stay."""
    model = estimator.__dict__.get("_model")
    if model is None:
        model, kernel, _ = estimator._new_model(samples, streaming=True)
        bound_memory(estimator, model)
        fitted = {**fitted, "_kernel_": kernel, "epochs_": 1}
    try:
        if estimator.verbose < 2:
            run(estimator, model, samples)
        else:
            with progress(len(samples), description=type(estimator).__name__) as bar:
                run(estimator, model, samples, bar=bar)
    finally:
        if fitted and model.samples:
            estimator._adopt(model, fitted)


def run(
    estimator: Any,
    model: Any,
    samples: Samples,
    random: np.random.RandomState | None = None,
    bar: ProgressBar | None = None,
) -> None:
    """Train a core model on all samples once."""
    batch_size = int(estimator.batch_size)
    with threads_of(estimator.n_jobs):
        for columns in samples.blocks(batch_size, random):
            taken = model.run(*columns, batch_size)
            if bar is not None:
                bar.update(taken)
                loss, error = model.latest
                bar.set_postfix(model_order=model.model_order, loss=loss, compression_error=error)
            if samples.watch is not None:
                samples.watch(model)


def _warn_if_out_of_reach(estimator: Any, model: Any) -> None:
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
        problem = "still being approached; train for more epochs"
    else:
        return
    warn(f"The model order is {order}: the target of {target} is {problem}.", ConvergenceWarning)

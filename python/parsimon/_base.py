"""What all streaming estimators share: samples block by block, training, its trace."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight

from ._model import BLOCK, Array, ModelEstimator, block_rows
from ._progress import progress
from ._threads import threads_of
from .kernels import Kernel

__all__ = ["TRACE_COLUMNS", "Array", "StreamEstimator", "Training"]

Self = TypeVar("Self", bound="StreamEstimator")

TRACE_COLUMNS = {
    "samples": np.int64,
    "model_order": np.int64,
    "active": np.int64,
    "loss": np.float64,
    "compression_error": np.float64,
    "budget": np.float64,
}


@dataclass(frozen=True)
class Training:
    """One block of samples as the core takes it: targets one row a sample, weights maybe empty."""

    X: Any
    targets: Array
    sample_weight: Array
    n_classes: int = 0

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def blocks(
        self, batch_size: int, random: np.random.RandomState | None, *, at_once: int = BLOCK
    ) -> Iterator[tuple[Array, Array, Array]]:
        """Yield the samples in blocks of whole mini-batches, in random order if asked to."""
        order = None if random is None else random.permutation(len(self))
        rows = max(1, min(at_once, block_rows(self.X)) // batch_size) * batch_size
        if order is None and len(self) <= rows and type(self.X) is np.ndarray:
            yield self.X, self.targets, self.sample_weight
            return
        for start in range(0, len(self), rows):
            part = slice(start, start + rows) if order is None else order[start : start + rows]
            X = self.X[part]
            if sparse.issparse(X):
                X = X.toarray()
            weight = self.sample_weight[part] if len(self.sample_weight) else self.sample_weight
            yield np.ascontiguousarray(X), np.ascontiguousarray(self.targets[part]), weight


class StreamEstimator(ModelEstimator):
    """An estimator whose state is a model of the core that takes samples block by block."""

    # Hyper-parameters that every subclass has; set by its __init__.
    epochs: int | str
    shuffle: bool
    random_state: Any
    verbose: int

    @abstractmethod
    def _new_model(self, training: Training, *, streaming: bool) -> tuple[Any, Kernel, int]:
        """Return an untrained core model for data like these, its kernel, and fit's epochs.

        When streaming, these are only the first samples of many.
        """

    @abstractmethod
    def _mini_batch(self) -> int:
        """Return how many samples make a mini-batch."""

    @abstractmethod
    def _feed(self, model: Any, training: Training, X: Array, targets: Array, weight: Array) -> int:
        """Train the core model on one block of these; return how many samples it has taken."""

    def _fit(self: Self, training: Training, fitted: dict[str, Any]) -> Self:
        """Train a new model and adopt it; if that fails, the estimator is as it was before."""
        model, kernel, epochs = self._new_model(training, streaming=False)
        fitted = {**fitted, "_kernel_": kernel}
        random = check_random_state(self.random_state) if self.shuffle else None
        total = epochs * len(training)
        try:
            with progress(total, enabled=self.verbose >= 1, description=type(self).__name__) as bar:
                for _ in range(epochs):
                    self._run(model, training, random, bar)
            self._finish_fit(model, training)
        except KeyboardInterrupt:
            self._adopt(model, fitted)
            raise
        self._adopt(model, fitted)
        self._warn_if_target_is_out_of_reach()
        return self

    def _finish_fit(self, model: Any, training: Training) -> None:
        """Do what fit does once all epochs are over."""

    def _partial_fit(self: Self, training: Training, fitted: dict[str, Any]) -> Self:
        """Train on one block once; whatever ends that, the mini-batches that are done stay."""
        if hasattr(self, "_model"):
            model = self._model
        else:
            model, kernel, _ = self._new_model(training, streaming=True)
            fitted = {**fitted, "_kernel_": kernel}
        try:
            with progress(
                len(training), enabled=self.verbose >= 2, description=type(self).__name__
            ) as bar:
                self._run(model, training, None, bar)
        finally:
            if model.samples:
                self._adopt(model, fitted)
        return self

    def _run(
        self, model: Any, training: Training, random: np.random.RandomState | None, bar: Any
    ) -> None:
        with threads_of(self.n_jobs):
            for X, targets, weight in training.blocks(self._mini_batch(), random):
                bar.update(self._feed(model, training, X, targets, weight))
                bar.set_postfix(model_order=model.model_order)

    def _warn_if_target_is_out_of_reach(self) -> None:
        side = self._model.target_out_of_reach
        if side:
            few = "more points than the data need" if side > 0 else "fewer points than they need"
            warnings.warn(
                f"The model order is {self.model_order_}; the target asks for {few}, so the "
                f"budget has reached its bound. Choose another target.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _needs_no_validation(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> bool:
        """Tell whether this is a block of a stream like many before."""
        return (
            "_model" in self.__dict__
            and sample_weight is None
            and type(y) is np.ndarray
            and y.ndim == 1
            and self._takes_as_it_is(X)
            and len(y) == len(X)
        )

    def _validate_sample_weight(self, sample_weight: ArrayLike | None, X: Any) -> Array:
        if sample_weight is None:
            return np.empty(0)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        return np.asarray(weight)

    @property
    def t_(self) -> int:
        """Samples seen, those of earlier epochs included."""
        return int(self._state("t_").samples)

    @property
    def trace_(self) -> dict[str, NDArray[Any]]:
        """What each mini-batch did, in arrays of equal length."""
        columns = np.asarray(self._state("trace_").trace).T
        return {
            name: column.astype(dtype)
            for (name, dtype), column in zip(TRACE_COLUMNS.items(), columns, strict=True)
        }

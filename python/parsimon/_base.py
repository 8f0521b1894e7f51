"""What all streaming estimators share: validation, training, fitted state, persistence."""

from __future__ import annotations

import os
import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from . import _core, _io
from ._progress import progress
from .expansion import KernelExpansion
from .kernels import Kernel

Array = NDArray[np.float64]
Self = TypeVar("Self", bound="StreamEstimator")

TRACE_COLUMNS = {
    "samples": np.int64,
    "model_order": np.int64,
    "active": np.int64,
    "loss": np.float64,
    "compression_error": np.float64,
    "budget": np.float64,
}

_CORES: dict[str, Any] = {
    "polk": _core.Polk,
    "colk": _core.Colk,
    "policy_evaluation": _core.PolicyEvaluation,
    "spppot": _core.Spppot,
    "mirror_newton": _core.MirrorNewton,
    "hybrid": _core.Hybrid,
}

# Samples that are made dense or shuffled at a time, and numbers in them: bounds the memory, and
# paces the progress bar.
_BLOCK = 4096
_BLOCK_NUMBERS = 1 << 22


def _block_rows(X: Any) -> int:
    return int(np.clip(_BLOCK_NUMBERS // X.shape[1], 1, _BLOCK))


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
        self, batch_size: int, random: np.random.RandomState | None, *, at_once: int = _BLOCK
    ) -> Iterator[tuple[Array, Array, Array]]:
        """Yield the samples in blocks of whole mini-batches, in random order if asked to."""
        order = None if random is None else random.permutation(len(self))
        rows = max(1, min(at_once, _block_rows(self.X)) // batch_size) * batch_size
        for start in range(0, len(self), rows):
            part = slice(start, start + rows) if order is None else order[start : start + rows]
            X = self.X[part]
            if sparse.issparse(X):
                X = X.toarray()
            weight = self.sample_weight[part] if len(self.sample_weight) else self.sample_weight
            yield np.ascontiguousarray(X), np.ascontiguousarray(self.targets[part]), weight


class StreamEstimator(BaseEstimator, metaclass=ABCMeta):
    """An estimator whose state is a model of the core that takes samples block by block."""

    # Hyper-parameters that every subclass has; set by its __init__.
    kernel: Kernel | str
    epochs: int | str
    shuffle: bool
    random_state: Any
    verbose: int

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse hyper-parameters that make no sense, before any data are looked at."""

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
        """Train on one block once; if that fails, the estimator is as it was before."""
        first = not hasattr(self, "_model")
        if first:
            model, kernel, _ = self._new_model(training, streaming=True)
            fitted = {**fitted, "_kernel_": kernel}
        else:
            model = self._model
        # One mini-batch is all or nothing in the core; a failure in a later one undoes the others.
        before = model.copy() if not first and len(training) > self._mini_batch() else None
        try:
            with progress(
                len(training), enabled=self.verbose >= 2, description=type(self).__name__
            ) as bar:
                self._run(model, training, None, bar)
        except KeyboardInterrupt:
            self._adopt(model, fitted)
            raise
        except Exception:
            if before is not None:
                model.become(before)
            raise
        self._adopt(model, fitted)
        return self

    def _run(
        self, model: Any, training: Training, random: np.random.RandomState | None, bar: Any
    ) -> None:
        for X, targets, weight in training.blocks(self._mini_batch(), random):
            bar.update(self._feed(model, training, X, targets, weight))
            bar.set_postfix(model_order=model.model_order)

    def _adopt(self, model: Any, fitted: dict[str, Any]) -> None:
        # In one go: neither another thread nor Ctrl-C finds parts of two models.
        self.__dict__.update(fitted, _model=model)

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

    @contextmanager
    def _unchanged_on_error(self) -> Iterator[None]:
        """Put every attribute back if the block fails; an interrupt keeps what was learned."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException as error:
            learned = self.__dict__.get("_model") is not before.get("_model")
            if isinstance(error, Exception) or not learned:
                # Another thread may be reading: what was there before is never missing.
                self.__dict__.update(before)
                for name in set(self.__dict__) - set(before):
                    del self.__dict__[name]
            raise

    # -- input -----------------------------------------------------------------------------------

    def _validate_samples(self, X: ArrayLike, *, reset: bool = False) -> Any:
        return validate_data(self, X, accept_sparse="csr", dtype=np.float64, order="C", reset=reset)

    def _validate_sample_weight(self, sample_weight: ArrayLike | None, X: Any) -> Array:
        if sample_weight is None:
            return np.empty(0)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        return np.asarray(weight)

    # -- fitted state ----------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def _fitted_model(self) -> Any:
        check_is_fitted(self)
        return self._model

    def _state(self, name: str) -> Any:
        # AttributeError, so that hasattr() tells whether the estimator is fitted.
        if not hasattr(self, "_model"):
            raise AttributeError(f"{type(self).__name__} has no {name} before it is fitted.")
        return self._model

    @property
    def dictionary_(self) -> Array:
        """The points of the model, of shape (model_order_, n_features_in_)."""
        return np.asarray(self._state("dictionary_").dictionary)

    @property
    def weights_(self) -> Array:
        """The weights of the model, of shape (model_order_, n_outputs)."""
        return np.asarray(self._state("weights_").weights * self._output_scale())

    @property
    def model_order_(self) -> int:
        """The number of points of the model."""
        return int(self._state("model_order_").model_order)

    @property
    def expansion_(self) -> KernelExpansion:
        """The learned function."""
        # Points and weights in one access: another thread may be training.
        core = self._state("expansion_").expansion
        return KernelExpansion(self._kernel_, core.dictionary, core.weights * self._output_scale())

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

    def _output_scale(self) -> Any:
        return 1.0

    def _evaluate(self, X: ArrayLike) -> Array:
        """Values of the learned function, of shape (n_samples, n_outputs)."""
        model = self._fitted_model()
        checked = self._validate_samples(X)
        if not sparse.issparse(checked):
            return np.asarray(model.predict(checked))
        rows = _block_rows(checked)
        blocks = [
            model.predict(checked[start : start + rows].toarray())
            for start in range(0, checked.shape[0], rows)
        ]
        return np.concatenate(blocks)

    # -- persistence -----------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimator to one file, from which :func:`parsimon.load` reads it back.

        The file is written under a temporary name and renamed, so a crash leaves no broken file.
        It holds all that training needs to go on exactly as if it had not stopped, and no code.

        Parameters
        ----------
        path : path-like
            Where to write; an existing file is replaced.
        """
        check_is_fitted(self)
        self._check_parameters()
        _core.write_archive(os.fspath(path), _io.to_entries(self))

    def _check_fitted(self, fitted: dict[str, Any], entries: dict[str, Any]) -> None:
        """Refuse fitted attributes from a file that do not belong to the core's entries there."""
        features = entries["features"]
        expected = self._fitted_attributes(entries["outputs"]) | {
            "n_features_in_": lambda value: type(value) is int and value == features,
        }
        if "feature_names_in_" in fitted:
            expected["feature_names_in_"] = lambda value: value.shape == (features,)
        wrong = [name for name, right in expected.items() if not right(fitted[name])]
        wrong += [name for name in fitted if name not in expected]
        wrong += self._foreign_entries(entries)
        if wrong:
            raise ValueError(
                f"The model file does not hold a {type(self).__name__}: its {', '.join(wrong)} "
                f"cannot be that of such a model."
            )

    def _foreign_entries(self, entries: dict[str, Any]) -> list[str]:  # noqa: ARG002
        """Name the core's entries that a model of this estimator cannot have."""
        return []

    @abstractmethod
    def _fitted_attributes(self, outputs: int) -> dict[str, Callable[[Any], bool]]:
        """Return what fit sets beside the core's model, each with what makes it valid."""

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "_model" in state:
            state["_model"] = _core.archive_to_bytes(state["_model"].to_entries())
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_model" in state:
            entries = _core.archive_from_bytes(state["_model"])
            self._model = self._read_model(entries, self._kernel_)

    # Names of the core's algorithms whose models this estimator can have.
    _algorithms: tuple[str, ...] = ()

    def _read_model(self, entries: dict[str, Any], kernel: Kernel) -> Any:
        """Return the core model that these entries hold."""
        algorithm = entries["algorithm"]
        if algorithm not in self._algorithms:
            raise ValueError(
                f"A {type(self).__name__} cannot hold a model of the algorithm {algorithm!r}."
            )
        return _CORES[algorithm].from_entries(entries, kernel.core)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

"""What all estimators share: hyper-parameters, samples, fitted state, evaluation, files."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter, is_
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _core, _io
from ._checks import Check, check_flag, refuse_dates
from ._first_samples import is_kept
from ._formula import Head, Values
from ._parameters import WORDS, check_together
from ._primal import read_model
from ._site import linked
from ._sklearn import BaseEstimator
from ._stream import block_rows
from ._threads import threads_of
from .expansion import KernelExpansion
from .kernels import Kernel

Array = NDArray[np.float64]

TRACE_COLUMNS: dict[str, Any] = {
    "samples": np.int64,
    "model_order": np.int64,
    "active": np.int64,
    "loss": np.float64,
    "compression_error": np.float64,
    "budget": np.float64,
}


# What scikit-learn needs to let go of callbacks when `fit` is over, and takes away itself.
_OF_CALLBACKS = {"_callback_fit_ctx", "_skl_callbacks_to_teardown"}

# The function that a core model has learned.
_LEARNED = attrgetter("predict")


def is_finite(values: NDArray[Any]) -> bool:
    """Tell whether all are finite; numbers that sum to infinity count as not."""
    with np.errstate(over="ignore", invalid="ignore"):
        return math.isfinite(values.sum())


def named_columns(trace: Array, types: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return the columns of a trace by their names."""
    return {
        name: column.astype(dtype)
        for (name, dtype), column in zip(types.items(), trace.T, strict=True)
    }


def chosen(name: str, meaning: str) -> Any:
    """Return a property: what a hyper-parameter is in the fitted model, whoever chose it."""

    def get(estimator: ModelEstimator) -> float:
        return float(getattr(estimator._state(f"{name}_"), name))

    return property(get, doc=meaning)


LEARNING_RATE = chosen("learning_rate", "The step size of the first mini-batch.")
REGULARIZATION = chosen("regularization", "The weight of the squared norm.")
BUDGET = chosen("budget", "The compression budget of the first mini-batch, in Hilbert norm.")


def _drift(estimator: ModelEstimator) -> NDArray[np.int64]:
    """Return how many samples there were each time the stream was found to have changed."""
    return np.array(estimator._state("drift_").drift, dtype=np.int64)


DRIFT = property(_drift, doc="The samples seen each time the stream was found to have changed.")


@linked
class ModelEstimator(BaseEstimator):
    """An estimator whose state is a model of the core, which a file can hold."""

    kernel: Kernel | str
    n_jobs: int | None
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    epochs_: int
    _model: Any
    _kernel_: Kernel

    # What the hyper-parameters may be.
    _words: ClassVar[Mapping[str, Check]] = WORDS
    # Names of the core's algorithms whose models this estimator can have.
    _algorithms: ClassVar[tuple[str, ...]] = ()
    # How points may go where there are too many (`maintenance` in files of its models).
    _rules: ClassVar[tuple[str, ...]] = ("none", "project", "growing", "unite", "growing, unite")
    # What samples may be: the core takes some precisions as they are, mini-batch by mini-batch.
    _floats: ClassVar[tuple[type, ...]] = (np.float64, np.float32)
    _takes_sparse: ClassVar[bool] = True

    # -- hyper-parameters ------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        """Refuse hyper-parameters that make no sense, before any data are looked at."""
        given = self.get_params(deep=False)
        for name, value in given.items():
            self._words[name](name, value)
        check_together(given)
        self._check_together()
        self._checked = given

    def _check_together(self) -> None:
        """Refuse hyper-parameters that do not go together, each of which is fine."""

    def _check_parameters_if_changed(self) -> None:
        if not self._are_checked():
            self._check_parameters()

    def _are_checked(self) -> bool:
        checked = self.__dict__.get("_checked", {})
        # The very same objects: 2 and 2.0 are equal, but only one of them is a number of epochs.
        same = map(is_, map(self.__dict__.get, checked), checked.values())
        return bool(checked) and all(same)

    # -- samples ---------------------------------------------------------------------------------

    def _validate_samples(self, X: ArrayLike, *, reset: bool = False) -> Any:
        if not reset and self._takes_as_it_is(X):
            return X
        return self._validate(X, reset=reset)

    def _validate(self, *arrays: Any, reset: bool, **options: Any) -> Any:
        refuse_dates(arrays[0])
        kinds = {"accept_sparse": "csr" if self._takes_sparse else False, "dtype": self._floats}
        return validate_data(self, *arrays, order="C", reset=reset, **kinds, **options)

    def _takes_as_it_is(self, X: Any) -> bool:
        """Tell whether these are samples in which validation would find nothing to do.

        It takes a hundred times as long as a small model takes to learn from a sample.
        """
        return (
            type(X) is np.ndarray
            and X.dtype.type in self._floats
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == self.__dict__.get("n_features_in_")
            and "feature_names_in_" not in self.__dict__
            and X.flags.c_contiguous
            and is_finite(X)
        )

    def _is_familiar(self, X: Any, y: Any) -> bool:
        """Tell whether this is a block of a stream like many before."""
        return (
            "_model" in self.__dict__
            and not self.__dict__.get("_first_")
            and type(y) is np.ndarray
            and y.ndim == 1
            and self._takes_as_it_is(X)
            and len(y) == len(X)
            and self._are_checked()
        )

    # -- fitted state ----------------------------------------------------------------------------

    def _adopt(self, model: Any, fitted: dict[str, Any]) -> None:
        # In one go: neither another thread nor Ctrl-C finds parts of two models.
        self.__dict__.update(fitted, _model=model)

    @contextmanager
    def _unchanged_on_error(self) -> Iterator[None]:
        """Put every attribute back if the block fails before it has adopted a model."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            if self.__dict__.get("_model") is before.get("_model"):
                # Another thread may be reading: what was there before is never missing.
                self.__dict__.update(before)
                for name in set(self.__dict__) - set(before) - _OF_CALLBACKS:
                    del self.__dict__[name]
            raise

    def _finish_fit(self, model: Any, samples: Any) -> None:
        """Do what fit does once all epochs are over."""

    def _samples_of_points(self, size: int) -> int:
        """Return how many of so many samples fit needs to find the points among."""
        return size

    # How samples of a stream are weighed before they are learned from, if they are.
    _weigh: Callable[..., tuple[Any, ...]] | None = None

    def _stop_early(self, model: Any) -> None:
        """Make the best of a model whose fit has been interrupted."""

    def _after(self, fitted: dict[str, Any], samples: Any, taken: int) -> dict[str, Any]:  # noqa: ARG002
        """Return what is fitted once only so many samples of a block have been learned from."""
        return fitted

    def _kept_points(self, model: Any) -> int:  # noqa: ARG002
        """Return how many points of a model are never removed."""
        return 0

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def _fitted_model(self) -> Any:
        if "_model" not in self.__dict__:
            check_is_fitted(self)
        return self._model

    def _state(self, name: str) -> Any:
        # AttributeError, so that hasattr() tells whether the estimator is fitted.
        if not hasattr(self, "_model"):
            raise AttributeError(f"{type(self).__name__} has no {name} before it is fitted.")
        return self._model

    @property
    def dictionary_(self) -> Array:
        """The points of the model, of shape ``(model_order_, n_features_in_)``."""
        return np.asarray(self._state("dictionary_").dictionary)

    @property
    def weights_(self) -> Array:
        """The weights of the model, of shape ``(model_order_, n_outputs)``."""
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

    @expansion_.setter
    def expansion_(self, expansion: KernelExpansion) -> None:
        """Replace the learned function by another, from which a stream goes on."""
        model = self._state("expansion_")
        if not isinstance(expansion, KernelExpansion):
            raise TypeError(
                f"expansion_ must be a KernelExpansion; got {type(expansion).__name__}."
            )
        points, weights = expansion._core.dictionary, expansion._core.weights
        core, mine = expansion.kernel.core.describe(), self.kernel_.core.describe()
        shape = (self.n_features_in_, model.weights.shape[1])
        if core != mine or (points.shape[1], weights.shape[1]) != shape:
            raise ValueError(
                f"expansion_ must have the kernel {mine}, {shape[0]} features and {shape[1]} "
                f"outputs, as the model has; it has {core}, {points.shape[1]} and "
                f"{weights.shape[1]}."
            )
        self._replace(model, points, np.ascontiguousarray(weights / self._output_scale()))
        # A stream must not begin anew without it.
        self.__dict__.update(_first_=())

    def _replace(self, model: Any, points: Array, weights: Array) -> None:
        """Give the core's model another function."""
        if not hasattr(model, "replace"):
            raise ValueError(
                f"The function of a {type(self).__name__} cannot be replaced: its points are the "
                f"nodes that its integral is computed on."
            )
        model.replace(points, weights)

    @property
    def kernel_(self) -> Kernel:
        """The kernel of the model."""
        self._state("kernel_")
        kernel: Kernel = self._kernel_
        return kernel

    @property
    def t_(self) -> int:
        """Samples seen, those of earlier epochs included."""
        return int(self._state("t_").samples)

    @property
    def trace_(self) -> dict[str, NDArray[Any]]:
        """What each mini-batch did, in arrays of equal length."""
        model = self._state("trace_")
        trace = self._trace(model)
        changes = np.searchsorted(trace["samples"], getattr(model, "drift", []))
        inside = changes[changes < len(trace["samples"])]
        trace["drift"] = np.bincount(inside.astype(int), minlength=len(trace["samples"]))
        return trace

    @staticmethod
    def _trace(model: Any) -> dict[str, NDArray[Any]]:
        return named_columns(model.trace, TRACE_COLUMNS)

    def _output_scale(self) -> Any:
        return 1.0

    def _affine(self) -> tuple[Any, Any]:
        """Return what is added to the function's values, and what they are multiplied by first."""
        return 0.0, self._output_scale()

    def _head(self) -> Head:
        """Return what becomes of the function's values, for those who write models down."""
        return Values()

    def distance(self, X: ArrayLike) -> Array:
        """Return how far each sample is from anything that the model knows.

        That is the norm of what the dictionary's span does not hold of k(x, .): 0 at the points of
        the model (up to rounding, about ``1e-7 * sqrt(k(x, x))``), and ``sqrt(k(x, x))`` where a
        sample has nothing in common with them. The span is found once for a dictionary, which
        takes the cube of the number of points, and kept as long as the dictionary is the same.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        distances : ndarray of shape (n_samples,)
            In the norm of the kernel's Hilbert space.
        """
        return self._evaluate(X, lambda model: model.span().distance)

    def _evaluate(self, X: ArrayLike, of: Callable[[Any], Any] = _LEARNED) -> Array:
        """Values of a function of the core's model, by default of the one that was learned."""
        model = self._fitted_model()
        checked = self._validate_samples(X)
        if sparse.issparse(checked):
            return self._values_of(model, checked, of)
        with threads_of(self.n_jobs):
            return np.asarray(of(model)(checked))

    def _values_of(self, model: Any, checked: Any, of: Callable[[Any], Any] = _LEARNED) -> Array:
        """Return the same for samples that have been validated."""
        with threads_of(self.n_jobs):
            function = of(model)
            takes_it = of is _LEARNED and getattr(model, "takes_sparse", False)
            if takes_it or not sparse.issparse(checked):
                return np.asarray(function(checked))
            rows = block_rows(checked)
            starts = range(0, checked.shape[0], rows)
            return np.concatenate([function(checked[i : i + rows].toarray()) for i in starts])

    # -- persistence -----------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], *, training: bool = True) -> None:
        """Write the estimator to one file, from which :func:`parsimon.load` reads it back.

        The file is written under a temporary name and renamed once it is known that it can be read
        again, so neither a crash nor an error leaves a broken file. It holds all that training
        needs to go on exactly as if it had not stopped, and no code.

        Parameters
        ----------
        path : path-like
            Where to write; an existing file is replaced and keeps its permissions, a link is
            followed.
        training : bool, default=True
            Whether training is to go on from the file. If not, it holds what predictions need and
            nothing else: no trace, no statistics, no samples.
        """
        check_flag("training", training)
        check_is_fitted(self)
        self._check_parameters()
        _io.save(self, path, training=training)

    def _entries(self) -> dict[str, Any]:
        """Return entries of a file that only those need who predict from it."""
        return {}

    def _to_archive(self) -> _core.Archive:
        check_is_fitted(self)
        self._check_parameters()
        return _io.checked_archive(self)

    def _stored(self, outputs: int) -> dict[str, Callable[[Any], bool]]:  # noqa: ARG002
        """Return what the estimator keeps beside the core's model, with what makes it valid."""
        return {}

    def _foreign_entries(self, archive: _core.Archive) -> list[str]:
        """Name the core's entries that a model of this estimator cannot have."""
        return [] if archive.get("maintenance", "none") in self._rules else ["maintenance"]

    def _check_stored(self, fitted: dict[str, Any], archive: _core.Archive) -> None:
        """Refuse attributes from a file that do not belong to the core's entries there."""
        features = archive["features"]
        expected = self._stored(archive["outputs"]) | {
            "n_features_in_": lambda value: type(value) is int and value == features,
        }
        if "feature_names_in_" in fitted:
            expected["feature_names_in_"] = lambda value: value.shape == (features,)
        if "_predicts_only_" in fitted:
            expected["_predicts_only_"] = lambda value: value is True
        if "_first_" in fitted:
            samples = archive["samples"]
            expected["_first_"] = lambda value: is_kept(value, features, samples)
        if "epochs_" in fitted:  # which files of the first versions do not tell
            expected["epochs_"] = lambda value: type(value) is int and value > 0
        wrong = [name for name, right in expected.items() if not right(fitted[name])]
        wrong += [name for name in fitted if name not in expected]
        wrong += self._foreign_entries(archive)
        if wrong:
            raise ValueError(
                f"The model file does not hold a {type(self).__name__}: its {', '.join(wrong)} "
                f"cannot be that of such a model."
            )

    def _read_model(self, archive: _core.Archive, kernel: Kernel) -> Any:
        """Return the core model that a file holds."""
        return read_model(archive, kernel)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_checked", None)
        if "_model" in state:
            state["_model"] = self._fitted_model().to_archive().to_bytes()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_model" in state:
            archive = _core.Archive.from_bytes(state["_model"])
            self._model = self._read_model(archive, self._kernel_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        return tags

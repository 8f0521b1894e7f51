"""The model file: what an estimator is, as named texts and arrays."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np
from scipy import sparse

from . import _core, kernels
from ._drift import is_detector
from ._meaning import NUMBERS, read_meaning, text_array, write_meaning
from ._slim_file import without_training
from .expansion import KernelExpansion
from .schedules import AdaptiveBudget, PowerLaw

if TYPE_CHECKING:
    from ._model import ModelEstimator
    from .stream import StreamingPipeline

Kind = TypeVar("Kind")

# Entries that Python adds to those of the core's model.
_ESTIMATOR = "estimator"
_PARAMETERS = "estimator.parameters"
_FITTED = "estimator.fitted"
# What most have none of, and only training needs: first samples of a stream, how many there were of
# each class, what transitions have said, what was measured along the way.
_MAY_BE_EMPTY = (
    "_first_",
    "_counts_",
    "_differences_",
    "_replay_",
    "_predicts_only_",
    "_buffer_",
    "_validation_",
)


def save(
    estimator: ModelEstimator,
    path: str | os.PathLike[str],
    more: Any = None,
    *,
    training: bool = True,
) -> None:
    """Write an estimator, with entries that `more` adds, once it is known that it can be read."""
    check_path(path)
    archive = checked_archive(estimator, training=training)
    if more is not None:
        more(archive)
    read_back(archive, estimator._kernel_, path).write(os.fspath(path))


def read_back(archive: _core.Archive, kernel: kernels.Kernel, path: Any = None) -> _core.Archive:
    """Return what the bytes of an archive hold, once it is known that it can be read."""
    written = _core.Archive.from_bytes(archive.to_bytes())
    try:
        _from_archive(written, kernel)
    except (ValueError, *_BROKEN) as error:
        where = "" if path is None else f" to {os.fspath(path)!r}"
        raise ValueError(
            f"Nothing was written{where}: the file could not be read again. {error}"
        ) from error
    return written


def checked_archive(estimator: ModelEstimator, *, training: bool = True) -> _core.Archive:
    """Return everything that the estimator is, if a file would lose nothing of it."""
    _check_can_be_saved(estimator)
    return to_archive(estimator, training=training)


def check_path(path: Any) -> None:
    """Refuse what names no file."""
    name = os.fspath(path)
    if not name:
        raise ValueError("The path is empty: give the name of a file.")
    if ("\0" if isinstance(name, str) else b"\0") in name:
        raise ValueError(f"The path {name!r} holds a null character, which no file name can.")
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        raise ValueError(
            f"The path {name!r} holds characters that no file name can here."
        ) from None


def _check_can_be_saved(estimator: ModelEstimator) -> None:
    """Refuse what a file would lose."""
    cls = type(estimator)
    if known_estimators().get(cls.__name__) is not cls:
        raise ValueError(
            f"A model file holds estimators of parsimon, and {cls.__module__}.{cls.__qualname__} "
            f"is not one of them: use pickle, and load only what you trust."
        )
    known = {*estimator.get_params(deep=False), *_fitted(estimator)}
    foreign = [name for name in vars(estimator) if not name.startswith("_") and name not in known]
    if foreign:
        raise ValueError(
            f"The model cannot be saved because it was given the attribute {foreign[0]!r}: a model "
            f"file keeps what a {cls.__name__} has, and no more. Delete it, or use pickle."
        )


def to_archive(estimator: ModelEstimator, *, training: bool = True) -> _core.Archive:
    """Return everything that the estimator is, or what it needs to predict."""
    archive: _core.Archive = estimator._fitted_model().to_archive()
    fitted = {name: getattr(estimator, name) for name in _fitted(estimator)}
    if not training:
        archive = without_training(archive)
        fitted = {name: value for name, value in fitted.items() if name not in _MAY_BE_EMPTY}
        fitted["_predicts_only_"] = True
        if "_scores_" in fitted:  # of the latest samples, for a threshold that moves
            fitted["_scores_"] = fitted["_scores_"][:0]
    for name, value in estimator._entries().items():
        archive[name] = value
    archive[_ESTIMATOR] = type(estimator).__name__
    given = estimator.get_params(deep=False)
    if not training:  # where nothing watches the stream any more
        given = {name: None if is_detector(value) else value for name, value in given.items()}
    archive[_PARAMETERS] = _to_json(given)
    archive[_FITTED] = _to_json(write_meaning(archive, fitted))
    return archive


def _fitted(estimator: ModelEstimator) -> list[str]:
    # The kernel is an entry of the core.
    known = {
        *estimator._stored(1),
        *_MAY_BE_EMPTY,
        "n_features_in_",
        "feature_names_in_",
        "epochs_",
    }
    return [
        name
        for name, value in vars(estimator).items()
        if name in known and not _is_absent(name, value)
    ]


def _is_absent(name: str, value: Any) -> bool:
    return name in _MAY_BE_EMPTY and (value is False or (value is not True and not len(value)))


@overload
def load(
    path: str | os.PathLike[str], *, kind: type[Kind], kernel: kernels.Kernel | None = None
) -> Kind: ...


@overload
def load(
    path: str | os.PathLike[str], *, kind: None = None, kernel: kernels.Kernel | None = None
) -> ModelEstimator | StreamingPipeline | KernelExpansion: ...


def load(
    path: str | os.PathLike[str],
    *,
    kind: type[Any] | None = None,
    kernel: kernels.Kernel | None = None,
) -> Any:
    """Read an estimator that its ``save`` method, or a C++ program, wrote.

    Training can go on from there exactly as if it had not stopped. Loading never executes code
    from the file, and everything in it is checked before it is used.

    Parameters
    ----------
    path : path-like
        The file.
    kind : type, optional
        The class that is expected, such as :class:`POLKClassifier`: a file with another kind of
        model is refused, and type checkers know what was loaded.
    kernel : parsimon.kernels.Kernel, optional
        The kernel, if it is a :class:`parsimon.kernels.Function`: a file cannot hold a function.

    Returns
    -------
    estimator : estimator
        Of the class that was saved, fitted.

    Examples
    --------
    >>> import parsimon, tempfile, os
    >>> X, y = parsimon.datasets.make_multidist(500, random_state=0)
    >>> model = parsimon.POLKClassifier(epochs=1).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "model.parsimon")
    ...     model.save(file)
    ...     again = parsimon.load(file, kind=parsimon.POLKClassifier)
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    check_path(path)
    if kind is not None and not isinstance(kind, type):
        raise TypeError(f"kind must be a class, such as parsimon.POLKClassifier; got {kind!r}.")
    archive = _core.Archive.read(os.fspath(path))
    model = from_archive(archive, kernel, f"The file {os.fspath(path)!r}")
    if kind is not None and not isinstance(model, kind):
        raise TypeError(
            f"The file {os.fspath(path)!r} holds a {type(model).__name__}, not a {kind.__name__}: "
            f"load it with kind={type(model).__name__}, or without a kind."
        )
    return model


def from_archive(archive: _core.Archive, kernel: kernels.Kernel | None, source: str) -> Any:
    """Return the model in an archive; `source` says where it is from."""
    try:
        return _from_archive(archive, kernel)
    except _BROKEN as error:
        raise ValueError(f"{source} is not a complete model: {error!r}.") from error


# What Python raises over entries that are missing or of another type than was written.
_BROKEN = (KeyError, TypeError, IndexError, AttributeError, OverflowError, RecursionError)


def _from_archive(archive: _core.Archive, kernel: kernels.Kernel | None) -> Any:
    kernel = _kernel(archive["kernel"], kernel)
    if _ESTIMATOR in archive:
        name = archive[_ESTIMATOR]
        if name == "KernelExpansion":
            return KernelExpansion._from_archive(archive, kernel)
        cls = known_estimators().get(name)
        if cls is None:
            raise ValueError(
                f"The file holds a {name!r}, which this version of parsimon does not know; it "
                f"knows {', '.join(known_estimators())}."
            )
        if archive["algorithm"] not in cls._algorithms:
            raise ValueError(
                f"A {name} cannot hold a model of the algorithm {archive['algorithm']!r}."
            )
        estimator = cls(**_renamed(name, _from_json(archive[_PARAMETERS], kernel)))
        # Files of the first versions have all in one entry.
        fitted = _from_json(archive[_FITTED], kernel) | read_meaning(archive, archive["outputs"])
    else:
        from ._core_files import from_core_file

        estimator, fitted = from_core_file(archive, kernel)
    # The core checks its own entries; what follows may rely on them.
    model = estimator._read_model(archive, kernel)
    estimator._check_parameters()
    estimator._check_stored(fitted, archive)
    estimator._adopt(model, {**fitted, "_kernel_": kernel})
    if "pipeline" in archive:
        from .stream import StreamingPipeline

        return StreamingPipeline._from_archive(archive, estimator)
    return estimator


def known_estimators() -> dict[str, Any]:
    """Return every public estimator by its name."""
    import parsimon

    public = {name: getattr(parsimon, name) for name in parsimon.__all__}
    public |= {name: getattr(parsimon.compression, name) for name in parsimon.compression.__all__}
    return {name: cls for name, cls in public.items() if getattr(cls, "_algorithms", ())}


def _adaptive(target: Any, parsimony: Any = "auto") -> dict[str, Any]:
    if target is None:
        return {}
    initial = None if isinstance(parsimony, str) else parsimony
    return {"budget": AdaptiveBudget(target, initial), "parsimony": "auto"}


# Parameters of earlier versions: the estimators that had them, their names, what they are now.
_RENAMED: list[tuple[str, str, Callable[[Any, dict[str, Any]], dict[str, Any]]]] = [
    ("BSGD", "budget", lambda value, _: {"max_points": value}),
    ("SLKL", "sparsity", lambda value, others: {"sparsity" if "nu" in others else "nu": value}),
    ("", "max_model_order", lambda value, _: _adaptive(value)),
    ("", "target_model_order", lambda value, others: _adaptive(value, others["parsimony"])),
]


# What estimators did before they could be told: without this word, all of these.
_ABSENT: list[tuple[tuple[str, ...], str, dict[str, Any]]] = [
    (
        ("POLKClassifier", "POLKRegressor"),
        "solver",
        {"solver": "sgd", "max_points": None, "half_life": None},
    ),
    (
        ("BSGDClassifier", "BSGDRegressor", "COLKClassifier", "COLKRegressor"),
        "solver",
        {"solver": "sgd"},
    ),
    (
        (
            "BSGDClassifier",
            "BSGDRegressor",
            "COLKClassifier",
            "COLKRegressor",
            "CompositionalLearner",
            "PolicyEvaluator",
            "SPPPOTClassifier",
            "SPPPOTIntensity",
        ),
        "half_life",
        {"half_life": None},
    ),
    (
        ("HybridIntensity", "MirrorNewtonIntensity", "SPPPOTIntensity"),
        "solver",
        {"solver": "sgd"},
    ),
]


def _renamed(estimator: str, values: dict[str, Any]) -> dict[str, Any]:
    for family, name, now in _RENAMED:
        if estimator.startswith(family) and name in values:
            value = values.pop(name)
            values |= now(value, values)
    for estimators, name, then in _ABSENT:
        if estimator in estimators and name not in values:
            values = then | values
    return values


def _kernel(description: str, given: kernels.Kernel | None) -> kernels.Kernel:
    if given is None:
        return kernels.from_description(description)
    if not isinstance(given, kernels.Kernel):
        raise TypeError(f"kernel must be a parsimon.kernels.Kernel; got {given!r}.")
    if "function(" not in description and given.core.describe() != description:
        raise ValueError(
            f"The model in the file has the kernel {description}, but {given!r} was given; only a "
            f"parsimon.kernels.Function needs to be given, because a file cannot hold it."
        )
    return given


def _to_json(values: dict[str, Any]) -> str:
    # In order, so that equal models make equal files.
    return json.dumps({name: _encode(name, value) for name, value in sorted(values.items())})


def _encode(name: str, value: Any) -> Any:
    if isinstance(value, kernels.Kernel):
        return {"kernel": value.core.describe()}
    if isinstance(value, PowerLaw):
        return {"power_law": [value.power, value.delay]}
    if isinstance(value, AdaptiveBudget):
        return {"adaptive_budget": [value.target, value.initial, value.printed]}
    if sparse.issparse(value):
        parts = [value.data, value.indices, value.indptr, np.array(value.shape)]
        return {"csr": [_encode(name, part) for part in parts]}
    if isinstance(value, np.ndarray):
        kind = value.dtype.str if value.dtype.kind in "biuf" else "text"
        if kind == "text" and not all(isinstance(item, str) for item in value.ravel()):
            raise ValueError(
                f"{name} holds objects that are neither numbers nor text, which a model file "
                f"cannot keep; use labels of one of these types."
            )
        return {
            "array": value.tolist(),
            "type": kind,
            "object": value.dtype.kind == "O",
            "shape": list(value.shape),  # which an empty list does not tell
        }
    if isinstance(value, Mapping):  # weights of classes
        return {"mapping": [[_encode(name, item) for item in pair] for pair in value.items()]}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if is_detector(value):
        raise ValueError(
            f"The model cannot be saved because {name} is {value!r}, an object of its own that a "
            f"model file cannot keep: save(path, training=False) keeps what predictions need; to "
            f"learn on, use {name}='auto' from the beginning, or pickle."
        )
    if isinstance(value, (list, tuple)):  # a domain, bandwidths or the cells of a grid
        return {"sequence": [_encode(name, item) for item in value]}
    raise ValueError(
        f"The model cannot be saved because {name} is {value!r}; a model file keeps numbers, text "
        f"and None."
    )


def _from_json(text: str, kernel: kernels.Kernel | None = None) -> dict[str, Any]:
    values = json.loads(text)
    if not isinstance(values, dict):
        raise TypeError("its parameters are not named")
    return {str(name): _decode(value, kernel) for name, value in values.items()}


def _decode(value: Any, kernel: kernels.Kernel | None) -> Any:
    if not isinstance(value, dict):
        return value
    if "kernel" in value:
        return kernel
    if "power_law" in value:
        return PowerLaw(*value["power_law"])
    if "adaptive_budget" in value:
        return AdaptiveBudget(*value["adaptive_budget"])
    if "csr" in value:
        data, indices, indptr, shape = (_decode(part, kernel) for part in value["csr"])
        matrix = sparse.csr_matrix((data, indices, indptr), shape=tuple(shape.tolist()))
        matrix.check_format(full_check=True)
        return matrix
    if "mapping" in value:
        return {_decode(label, kernel): _decode(item, kernel) for label, item in value["mapping"]}
    if "sequence" in value:
        return tuple(_decode(item, kernel) for item in value["sequence"])
    name = value["type"]
    if name == "text":
        array = text_array(value["array"], as_objects=value["object"])
    elif isinstance(name, str) and NUMBERS.fullmatch(name):
        array = np.array(value["array"], dtype=name)
    else:
        raise ValueError(f"The file holds an array of the unknown type {name!r}.")
    return array.reshape(value["shape"]) if "shape" in value else array

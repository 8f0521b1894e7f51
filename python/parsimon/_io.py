"""The model file: what an estimator is, as named texts and arrays."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core, kernels
from .schedules import AdaptiveBudget, PowerLaw

if TYPE_CHECKING:
    from ._model import ModelEstimator

# Entries that Python adds to those of the core's model.
_ESTIMATOR = "estimator"
_PARAMETERS = "estimator.parameters"
_FITTED = "estimator.fitted"


def to_archive(estimator: ModelEstimator) -> _core.Archive:
    """Return everything that the estimator is."""
    archive: _core.Archive = estimator._model.to_archive()
    archive[_ESTIMATOR] = type(estimator).__name__
    archive[_PARAMETERS] = _to_json(estimator.get_params(deep=False))
    archive[_FITTED] = _to_json({name: getattr(estimator, name) for name in _fitted(estimator)})
    return archive


def _fitted(estimator: ModelEstimator) -> list[str]:
    # The kernel is an entry of the core; what has no trailing underscore is a hyper-parameter.
    return [name for name in vars(estimator) if name.endswith("_") and name != "_kernel_"]


def load(path: str | os.PathLike[str], *, kernel: kernels.Kernel | None = None) -> Any:
    """Read an estimator that its ``save`` method, or a C++ program, wrote.

    Training can go on from there exactly as if it had not stopped. Loading never executes code
    from the file, and everything in it is checked before it is used.

    Parameters
    ----------
    path : path-like
        The file.
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
    ...     again = parsimon.load(file)
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    archive = _core.Archive.read(os.fspath(path))
    try:
        return _from_archive(archive, kernel)
    except _BROKEN as error:
        raise ValueError(
            f"The file {os.fspath(path)!r} is not a complete model: {error!r}."
        ) from error


# What Python raises over entries that are missing or of another type than was written.
_BROKEN = (KeyError, TypeError, IndexError, AttributeError, OverflowError, RecursionError)


def _from_archive(archive: _core.Archive, kernel: kernels.Kernel | None) -> Any:
    kernel = _kernel(archive["kernel"], kernel)
    if _ESTIMATOR in archive:
        name = archive[_ESTIMATOR]
        cls = _known_estimators().get(name)
        if cls is None:
            raise ValueError(
                f"The file holds a {name!r}, which this version of parsimon does not know; it "
                f"knows {', '.join(_known_estimators())}."
            )
        if archive["algorithm"] not in cls._algorithms:
            raise ValueError(
                f"A {name} cannot hold a model of the algorithm {archive['algorithm']!r}."
            )
        estimator = cls(**_renamed(name, _from_json(archive[_PARAMETERS], kernel)))
        fitted = _from_json(archive[_FITTED], kernel)
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


def _known_estimators() -> dict[str, Any]:
    import parsimon

    public = {name: getattr(parsimon, name) for name in parsimon.__all__}
    return {name: cls for name, cls in public.items() if getattr(cls, "_algorithms", ())}


def _adaptive(target: Any, parsimony: Any = "auto") -> dict[str, Any]:
    if target is None:
        return {}
    initial = None if isinstance(parsimony, str) else parsimony
    return {"budget": AdaptiveBudget(target, initial), "parsimony": "auto"}


# Parameters of earlier versions: the estimators that had them, their names, what they are now.
_RENAMED: list[tuple[str, str, Callable[[Any, dict[str, Any]], dict[str, Any]]]] = [
    ("BSGD", "budget", lambda value, _: {"max_points": value}),
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
    return json.dumps({name: _encode(name, value) for name, value in values.items()})


def _encode(name: str, value: Any) -> Any:
    if isinstance(value, kernels.Kernel):
        return {"kernel": value.core.describe()}
    if isinstance(value, PowerLaw):
        return {"power_law": [value.power, value.delay]}
    if isinstance(value, AdaptiveBudget):
        return {"adaptive_budget": [value.target, value.initial, value.printed]}
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
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):  # a domain, bandwidths or the cells of a grid
        return {"sequence": [_encode(name, item) for item in value]}
    raise ValueError(
        f"The model cannot be saved because {name} is {value!r}; a model file keeps numbers, text "
        f"and None."
    )


def _from_json(text: str, kernel: kernels.Kernel) -> dict[str, Any]:
    values = json.loads(text)
    if not isinstance(values, dict):
        raise TypeError("its parameters are not named")
    return {str(name): _decode(value, kernel) for name, value in values.items()}


def _decode(value: Any, kernel: kernels.Kernel) -> Any:
    if not isinstance(value, dict):
        return value
    if "kernel" in value:
        return kernel
    if "power_law" in value:
        return PowerLaw(*value["power_law"])
    if "adaptive_budget" in value:
        return AdaptiveBudget(*value["adaptive_budget"])
    if "sequence" in value:
        return tuple(_decode(item, kernel) for item in value["sequence"])
    dtype = {"text": object if value["object"] else np.str_}.get(value["type"], value["type"])
    if dtype not in (object, np.str_) and np.dtype(dtype).kind not in "biuf":
        raise ValueError(f"The file holds an array of the unknown type {dtype!r}.")
    array = np.array(value["array"], dtype=dtype)
    return array.reshape(value["shape"]) if "shape" in value else array

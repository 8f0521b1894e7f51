"""Models as bytes and as JSON: the entries of the model file."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsimon import _core
from parsimon._formula import asked_for
from parsimon._io import from_archive, read_back
from parsimon.expansion import KernelExpansion
from parsimon.kernels import Kernel

_FORMAT, _VERSION = "parsimon", 1


def dumps(model: Any) -> bytes:
    """Return what ``model.save`` would write to a file.

    Parameters
    ----------
    model : estimator of parsimon, StreamingPipeline or KernelExpansion
        Fitted.

    Returns
    -------
    bytes
        Everything that :func:`loads`, :func:`parsimon.load` and C++ programs need; no code.

    Examples
    --------
    >>> from parsimon import KernelExpansion, kernels
    >>> from parsimon.export import dumps, loads
    >>> f = KernelExpansion(kernels.Gaussian(1.0), [[0.0], [1.0]], [2.0, -1.0])
    >>> loads(dumps(f)).weights
    array([ 2., -1.])
    """
    return bytes(read_back(_archive(model), _kernel_of(model)).to_bytes())


def loads(data: bytes, *, kernel: Kernel | None = None) -> Any:
    """Read a model from what :func:`dumps` returned, or from the content of a model file.

    Parameters
    ----------
    data : bytes
        The content. Nothing in it is executed, and everything is checked before it is used.
    kernel : parsimon.kernels.Kernel, optional
        The kernel, if it is a :class:`parsimon.kernels.Function`.

    Returns
    -------
    estimator, StreamingPipeline or KernelExpansion
        As it was.
    """
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"loads takes bytes, which dumps returned; got {type(data).__name__}.")
    return from_archive(_core.Archive.from_bytes(bytes(data)), kernel, "What was given")


def to_json(model: Any, *, indent: int | None = None) -> str:
    """Write a fitted model down as JSON.

    The object has `format` ("parsimon"), `version` (1) and `entries`: those of the model file, by
    name, which the page on the file format lists. A text is a string, a number a number, and an
    array an object with `type` ("integers" or "numbers"), `shape` and `data`, its elements row by
    row. Numbers have all their digits.

    Parameters
    ----------
    model : estimator of parsimon, StreamingPipeline or KernelExpansion
        Fitted.
    indent : int, optional
        Spaces for each level, for people who read it.

    Returns
    -------
    str
        From which :func:`from_json` makes the model again.

    Examples
    --------
    >>> from parsimon import KernelExpansion, kernels
    >>> from parsimon.export import from_json, to_json
    >>> f = KernelExpansion(kernels.Gaussian(1.0), [[0.0], [1.0]], [2.0, -1.0])
    >>> from_json(to_json(f)).dictionary.ravel()
    array([0., 1.])
    """
    archive = read_back(_archive(model), _kernel_of(model))
    entries = {name: _written(archive[name]) for name in archive.keys()}  # noqa: SIM118
    return json.dumps({"format": _FORMAT, "version": _VERSION, "entries": entries}, indent=indent)


def from_json(text: str, *, kernel: Kernel | None = None) -> Any:
    """Read a model from what :func:`to_json` returned.

    Parameters
    ----------
    text : str
        The JSON. Nothing in it is executed, and everything is checked before it is used.
    kernel : parsimon.kernels.Kernel, optional
        The kernel, if it is a :class:`parsimon.kernels.Function`.

    Returns
    -------
    estimator, StreamingPipeline or KernelExpansion
        As it was.
    """
    try:
        found = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"What was given, of the type {type(text).__name__}, is no text in JSON: give what "
            f"to_json returned, as it was. {error}"
        ) from error
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        raise ValueError("The text is no model of parsimon: its format is not 'parsimon'.")
    if found.get("version") != _VERSION:
        raise ValueError(
            f"The text has version {found.get('version')!r} of the format; this version of "
            f"parsimon reads {_VERSION}."
        )
    entries = found.get("entries")
    if not isinstance(entries, dict):
        raise ValueError("The text is no complete model: it has no entries.")
    archive = _core.Archive({name: _read(name, value) for name, value in entries.items()})
    if "kernel" not in archive:
        raise ValueError("The text is not a complete model: it has no entry 'kernel'.")
    return from_archive(archive, kernel, "The text")


def _archive(model: Any) -> Any:
    model = asked_for(model)
    if not hasattr(model, "_to_archive"):
        raise TypeError(
            f"A {type(model).__name__} cannot be written down: give an estimator of parsimon, a "
            f"StreamingPipeline or a KernelExpansion."
        )
    return model._to_archive()


def _kernel_of(model: Any) -> Kernel:
    model = asked_for(model)
    inner = getattr(model, "estimator_", model)
    kernel: Kernel = inner.kernel if isinstance(inner, KernelExpansion) else inner.kernel_
    return kernel


def _written(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    kind = "numbers" if value.dtype.kind == "f" else "integers"
    return {"type": kind, "shape": list(value.shape), "data": value.ravel().tolist()}


def _read(name: str, value: Any) -> Any:
    if isinstance(value, (str, int, float)):
        return value
    try:
        kinds: dict[str, Any] = {"numbers": np.float64, "integers": np.int64}
        array: NDArray[Any] = np.array(value["data"], dtype=kinds[value["type"]])
        return array.reshape(value["shape"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"The entry {name!r} must be a text, a number, or an object with type, shape and data."
        ) from error

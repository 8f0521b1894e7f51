"""Say what a model file holds: the model, its points, and the certificate of its compression."""

from __future__ import annotations

import argparse
import inspect
from typing import Any

import numpy as np

import parsimon
from parsimon import KernelExpansion, _core
from parsimon.stream import StreamingPipeline

from ._data import show, size_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("model", help="a file that train, or save() in Python, wrote")
    parser.add_argument(
        "--points", type=int, default=0, metavar="N", help="show the first N points"
    )
    parser.add_argument("--entries", action="store_true", help="all entries of the file")


def run(options: argparse.Namespace) -> int:
    """Show a model."""
    archive = _core.Archive.read(options.model)
    model = parsimon.load(options.model)
    pipeline = model if isinstance(model, StreamingPipeline) else None
    estimator = model if pipeline is None else pipeline.estimator_
    show(f"{options.model}, {size_of(options.model)}:", _about(estimator, archive))
    if pipeline is not None and pipeline.scaler_ is not None:
        show("Columns:", _columns(pipeline.scaler_))
    certificate = {} if isinstance(estimator, KernelExpansion) else _certificate(estimator)
    if certificate:
        title = "Certificate: how far compression moved the function, in Hilbert norm"
        show(
            f"{title}\n(a prediction moves by no more than that times the root of k(x, x)):",
            certificate,
        )
    if options.points:
        _show_points(estimator, options.points)
    if options.entries:
        show("Entries:", {name: _described(archive[name]) for name in archive.keys()})  # noqa: SIM118
    return 0


def _about(estimator: Any, archive: Any) -> dict[str, Any]:
    rows: dict[str, Any] = {"estimator": type(estimator).__name__}
    if isinstance(estimator, KernelExpansion):  # a function, which nothing was chosen for
        rows |= {"kernel": archive["kernel"], "features": estimator.dictionary.shape[1]}
        rows |= {"points": estimator.model_order, "norm": estimator.norm()}
        return rows
    rows |= {"parameters": _changed(estimator) or "defaults", "kernel": archive["kernel"]}
    for title, name in _COUNTS.items():
        if hasattr(estimator, name):
            rows[title] = getattr(estimator, name)
    if hasattr(estimator, "classes_"):
        rows["classes"] = ", ".join(map(str, estimator.classes_))
    rows["points"] = estimator.model_order_
    rows["norm"] = float(estimator.expansion_.norm())
    return rows


# Samples seen are those of all epochs.
_COUNTS = {"features": "n_features_in_", "samples seen": "t_", "epochs": "epochs_"}


def _changed(estimator: Any) -> str:
    """Write the parameters that are not the defaults."""
    defaults = inspect.signature(type(estimator)).parameters
    given = estimator.get_params(deep=False)
    return ", ".join(
        f"{name}={value!r}" for name, value in given.items() if value != defaults[name].default
    )


def _columns(scaler: Any) -> dict[str, Any]:
    encoding = scaler._encoding_
    numbers = iter(zip(encoding.mean, encoding.scale, strict=True))
    texts = iter(zip(encoding.categories, encoding.places, strict=True))
    rows = {}
    for name, is_text in zip(encoding.names, encoding.is_text, strict=True):
        if is_text:
            known, places = next(texts)
            rows[name] = f"{len(known)} categories, {places - 1 - len(known)} places free"
        else:
            mean, scale = next(numbers)
            rows[name] = f"mean {mean:.4g}, standard deviation {scale:.4g}"
    return rows


def _certificate(estimator: Any) -> dict[str, Any]:
    """Return how far compression has moved the function, by the trace."""
    trace = getattr(estimator, "trace_", {})
    errors = trace.get("compression_error", np.empty(0))
    if not len(errors):
        return {}
    rows = {
        "mini-batches recorded": len(errors),
        "largest move in one": float(errors.max()),
        "mean move": float(errors.mean()),
    }
    if np.isfinite(trace["budget"]).all():
        rows["largest budget"] = float(trace["budget"].max())
    return rows


def _show_points(estimator: Any, count: int) -> None:
    print("Points, with their weights:")
    function = estimator if isinstance(estimator, KernelExpansion) else estimator.expansion_
    rows = function.weights.reshape(function.model_order, -1)
    for point, weights in zip(function.dictionary[:count], rows[:count], strict=True):
        numbers = " ".join(f"{value:.4g}" for value in point)
        print(f"  {numbers}  |  {' '.join(f'{weight:.4g}' for weight in weights)}")


def _described(value: Any) -> str:
    if isinstance(value, str):
        return repr(value) if len(value) <= 60 else f"text of {len(value):,} characters"
    if isinstance(value, np.ndarray):
        kind = "integers" if value.dtype.kind == "i" else "numbers"
        return f"{' x '.join(map(str, value.shape))} {kind}"
    return repr(value)

"""Train a model on a file, and save it.

Columns of numbers are scaled, columns of text encoded, and the file that is written holds that as
well. By default all samples are read and learned from together; --stream reads the file once, block
by block, each of which is predicted before it is learned from, and keeps none of it.
"""

from __future__ import annotations

import argparse
import ast
import time
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsimon.polk import POLKClassifier, POLKRegressor
from parsimon.stream import StreamingPipeline, prequential, read_blocks

from ._data import (
    add_data_arguments,
    bar_of,
    blocks_for,
    gathered,
    names,
    show,
    size_of,
    titled,
    watched,
)
from ._evaluate import name_of_score, scores

# Whole numbers of at most so many values are taken to be labels.
_MOST_LABELS = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("file", help="CSV, Parquet, Arrow, svmlight or NumPy; - is the standard input")
    add("--target", help="the column to be predicted; svmlight files say themselves")
    add("-o", "--output", required=True, metavar="MODEL", help="the file to write")
    add("--stream", action="store_true", help="read it once, block by block: for files of any size")
    add("--test", metavar="FILE", help="samples to test with")
    add("--columns", type=names, help="columns to learn from, with commas; all by default")
    add("--text", type=names, default=[], help="columns of numbers that are categories")
    add("--task", choices=("classification", "regression"), help="by default, as the target looks")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help=_SET, dest="settings")
    add("--classes", type=names, help="with --stream: labels that are known before they come")
    add("--features", type=int, help="how many an svmlight file has, if it comes from a pipe")
    add("--seed", type=int, default=0, help="of the shuffling; 0 by default")
    add_data_arguments(parser)


_SET = "a parameter of POLKClassifier or POLKRegressor, such as max_points=100; repeat it for more"


def run(options: argparse.Namespace) -> int:
    """Train, save and say how good the model is."""
    _check_settings(options)
    blocks = read_blocks(
        options.file,
        options.target,
        rows=options.block,
        format=options.format,
        columns=options.columns,
        text=options.text,
        frame="columns",
        delimiter=options.delimiter,
        header=options.header,
        n_features=options.features,
    )
    _check_folder(options.output)
    start = time.perf_counter()
    train = _stream if options.stream else _batch
    model, found = train(blocks, options)
    seconds = time.perf_counter() - start
    # Before anything is tested: what was learned is not to be lost.
    model.save(options.output)
    if options.test:
        test = watched(
            blocks_for(model, options.test, options, options.target), "test", quiet=options.quiet
        )
        found |= titled(scores(model, test), "test ")
    estimator = model.estimator_
    rows = {
        "estimator": type(estimator).__name__,
        "features": f"{model.n_features_in_:,}",
        **({"classes": _listed(model.classes_)} if hasattr(model, "classes_") else {}),
        "points": model.model_order_,
        **found,
        "seconds": seconds,
        "written": f"{options.output}, {size_of(options.output)}",
    }
    show(f"Trained on {options.file}:", rows)
    return 0


def _stream(blocks: Any, options: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    rest = iter(blocks)
    first = next(rest, None)
    if first is None:
        raise ValueError("There are no samples in the file.")
    model = _pipeline(_targets(first[1]), options)
    classes = None
    if options.classes and isinstance(model.estimator, POLKClassifier):
        classes = _as_labels(options.classes, first[1])
    everything = _Counted(chain([first], rest), blocks)
    result = prequential(model, everything, classes=classes, verbose=not options.quiet)
    summary = result.summary
    keep = [name for name in summary if name not in ("points", "predict_us", "learn_us")]
    found = {name: summary[name] for name in keep}
    if len(result.samples) == 0:
        found |= dict.fromkeys(result.curves, "not known: there was one block (see --block)")
    found["microseconds per sample"] = summary["predict_us"] + summary["learn_us"]
    return model, titled(found)


class _Counted:
    """Blocks whose first has been looked at."""

    def __init__(self, blocks: Any, source: Any) -> None:
        self._blocks = blocks
        self.n_samples = getattr(source, "n_samples", None)

    def __iter__(self) -> Any:
        return iter(self._blocks)


def _batch(blocks: Any, options: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    with bar_of(blocks, "reading", quiet=options.quiet) as bar:
        parts = []
        for X, y in blocks:
            parts.append((X, _targets(y)))
            bar.update(len(y))
    X, y = gathered(parts)
    model = _pipeline(y, options)
    model.estimator.set_params(verbose=0 if options.quiet else 1)
    model.fit(X, y)
    model.estimator_.set_params(verbose=0)
    score = f"training {name_of_score(model)}"
    return model, {"samples": len(y), score: model.score(X, y)}


def _pipeline(y: NDArray[Any], options: argparse.Namespace) -> StreamingPipeline:
    """Return an untrained model for targets like these."""
    task = options.task or ("classification" if _are_labels(y) else "regression")
    estimator = _estimator(task, options)
    if task == "regression" and y.dtype.kind not in "iufb":
        raise ValueError(
            f"--task regression needs numbers to predict; the target of the first sample is "
            f"{y.tolist()[0]!r}."
        )
    return StreamingPipeline(estimator)


def _estimator(task: str, options: argparse.Namespace) -> Any:
    kind = POLKClassifier if task == "classification" else POLKRegressor
    return kind(random_state=options.seed).set_params(
        **dict(_setting(text) for text in options.settings)
    )


def _check_settings(options: argparse.Namespace) -> None:
    """Refuse settings before a file is read that says whether targets are labels or numbers."""
    tasks = [options.task] if options.task else ["classification", "regression"]
    refused = []
    for task in tasks:
        try:
            _estimator(task, options)._check_parameters()
        except ValueError as error:
            refused.append(error)
    if len(refused) == len(tasks):
        raise refused[0]


def _check_folder(path: str) -> None:
    """Refuse a file that could not be written, before it takes hours to find out."""
    folder = Path(path).resolve().parent
    if not folder.is_dir():
        raise ValueError(f"There is no folder {str(folder)!r} to write {path!r} to.")
    if Path(path).is_dir():
        raise ValueError(f"{path!r} is a folder: give the name of a file to write.")


def _setting(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign:
        raise ValueError(f"--set takes NAME=VALUE, such as max_points=100; got {text!r}.")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value  # a word


def _targets(y: Any) -> NDArray[Any]:
    if y is None:
        raise ValueError("There is nothing to predict: give --target, the name of a column.")
    return np.asarray(y)


def _are_labels(y: NDArray[Any]) -> bool:
    if y.dtype.kind not in "iuf":
        return True
    return y.dtype.kind in "iu" and len(np.unique(y)) <= _MOST_LABELS


def _as_labels(words: list[str], y: NDArray[Any]) -> NDArray[Any]:
    return np.array(words, dtype=y.dtype) if y.dtype.kind in "iu" else np.array(words, dtype=object)


def _listed(classes: NDArray[Any]) -> str:
    shown = ", ".join(map(str, classes[:10]))
    return f"{len(classes)}: {shown}{', ...' if len(classes) > 10 else ''}"

"""Predict the samples of a file with a saved model.

Predictions are written as CSV, one line for each sample, in the order of the file. Columns that the
model has not learned from are not looked at.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ._data import add_data_arguments, blocks_for, loaded, watched


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("model", help="a file that train, or save() in Python, wrote")
    add("file", help="CSV, Parquet, Arrow, svmlight or NumPy; - is the standard input")
    add("-o", "--output", metavar="FILE", help="where to write; the standard output by default")
    add("--proba", action="store_true", help="the probability of each class, too")
    add_data_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Write the predictions of all samples."""
    model = loaded(options.model)
    if options.proba and not hasattr(model, "predict_proba"):
        raise ValueError(
            "The model gives no probabilities; train it with --set loss=logistic, which does."
        )
    header = ["prediction"]
    if options.proba:
        header += [f"probability of {label}" for label in model.classes_]
    blocks = watched(blocks_for(model, options.file, options), "predicting", quiet=options.quiet)
    with _writing(options.output) as file:
        writer = csv.writer(file, lineterminator="\n")
        above: list[Any] = [header]  # nothing is written before something could be predicted
        for X, _ in blocks:
            columns = [model.predict(X).tolist()]
            if options.proba:
                columns += model.predict_proba(X).T.tolist()
            writer.writerows([*above, *zip(*columns, strict=True)])
            above = []
            file.flush()
        writer.writerows(above)
    return 0


@contextmanager
def _writing(path: str | None) -> Iterator[Any]:
    """Open what predictions are written to; a file is replaced when all of them are there."""
    if path is None:
        yield sys.stdout
        return
    target = Path(path).resolve()
    if target.exists() and not target.is_file():  # a pipe, say
        with target.open("w", newline="", encoding="utf-8") as file:
            yield file
        return
    part = target.with_name(f"{target.name}.part")
    try:
        with part.open("w", newline="", encoding="utf-8") as file:
            yield file
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)

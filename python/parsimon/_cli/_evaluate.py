"""Compare the predictions of a saved model with the targets of a file.

A classifier is judged by its accuracy, a regressor by R^2.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from parsimon.stream._metrics import METRICS

from ._data import add_data_arguments, blocks_for, loaded, show, titled, watched

# What comes first is what estimators call their score.
_OF_CLASSIFIERS = ("accuracy", "balanced_accuracy")
_OF_OTHERS = ("r2", "mean_absolute_error", "mean_squared_error")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("model", help="a file that train, or save() in Python, wrote")
    add("file", help="CSV, Parquet, Arrow, svmlight or NumPy; - is the standard input")
    add("--target", help="the column of the targets; svmlight files say themselves")
    add("--at-least", type=float, metavar="SCORE", help="end with 1 if accuracy or R^2 is lower")
    add_data_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Show how good a model is."""
    model = loaded(options.model)
    blocks = blocks_for(model, options.file, options, options.target)
    found = scores(model, watched(blocks, "evaluating", quiet=options.quiet))
    show(f"{options.model} on {options.file}:", found)
    score = next(iter(found.values()))
    if options.at_least is not None and not score >= options.at_least:
        print(f"The score of {score:.4g} is below {options.at_least:g}.")
        return 1
    return 0


def name_of_score(model: Any) -> str:
    """Return what the score of a model is called."""
    return (_OF_CLASSIFIERS if is_classifier(model) else _OF_OTHERS)[0]


def scores(model: Any, blocks: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """Return how good a model is on all blocks together; what counts comes first."""
    truth, predicted, seconds = [], [], 0.0
    for X, y in blocks:
        if y is None:
            raise ValueError("There is nothing to compare with: give --target.")
        start = time.perf_counter()
        predicted.append(model.predict(X))
        seconds += time.perf_counter() - start
        truth.append(y)
    if not truth:
        raise ValueError("There are no samples in the file.")
    both = np.concatenate(truth), np.concatenate(predicted)
    if is_classifier(model) and both[1].dtype.kind in "UO" and both[0].dtype.kind in "iuf":
        both = both[0].astype(str), both[1]  # labels that only look like numbers
    chosen = _OF_CLASSIFIERS if is_classifier(model) else _OF_OTHERS
    found = titled({name: METRICS[name](*both) for name in chosen})
    count = len(both[0])
    return {**found, "samples": count, "microseconds per sample": 1e6 * seconds / count}

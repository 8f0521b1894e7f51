"""Text: many documents with tens of thousands of features, almost all of them zero.

Drawn documents (``parsimon.datasets.make_documents``) as rows of TF-IDF, classified by linear
machines of scikit-learn and by ours, with nothing set: in one fit, and along a stream in blocks.
Each runs in a process of its own, whose largest growth in memory from the beginning of training to
its end is given in units of the samples' own size. The exit code is 0 if all promises hold and 1
if not.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import SGDClassifier
from sklearn.svm import LinearSVC
from sklearn.utils import gen_batches

from bench import machine, report
from bench.report import Column, Promise, Table, at_most
from bench.runner import Experiment, Figures, Method, Row, Run, add_check_arguments
from parsimon.datasets import make_documents

SAMPLES, TEST_SAMPLES, FEATURES = 20_000, 5000, 50_000
BLOCK = 500
RUNS = 3
BATCH, IN_BATCH = "LinearSVC", ("POLKClassifier", "POLKClassifier, stream")
METHODS = (
    Method(BATCH, LinearSVC),
    Method("SGDClassifier", SGDClassifier),
    Method("SGDClassifier, stream", SGDClassifier, {"average": 1000}),
    Method("POLKClassifier", "POLKClassifier"),
    Method("POLKClassifier, stream", "POLKClassifier"),
    Method("POLKClassifier, logistic, stream", "POLKClassifier", loss="logistic"),
)
COLUMNS = (
    Column("accuracy %", "accuracy"),
    Column("CPU s", "cpu_seconds"),
    Column("memory / data", "memory"),
    Column("points", "points"),
)


@dataclass(frozen=True)
class Task:
    """Documents in files: a process that reads them has nothing else in its memory."""

    path: Path


def draw(seed: int, *, samples: int, features: int) -> Task:
    """Draw the documents of a seed: some to train on, some to test with."""
    tests = min(TEST_SAMPLES, samples)
    X, y = make_documents(samples + tests, features, random_state=seed)
    task = Task(Path(tempfile.mkdtemp()))
    weakref.finalize(task, shutil.rmtree, task.path, ignore_errors=True)
    for name, part in (("train", slice(0, samples)), ("test", slice(samples, None))):
        rows = X[part]
        for array in ("data", "indices", "indptr"):
            np.save(task.path / f"{name}.{array}.npy", getattr(rows, array))
        np.save(task.path / f"{name}.y.npy", y[part])
    return task


def read(folder: Path, name: str, features: int) -> tuple[sparse.csr_matrix, Any]:
    arrays = [
        np.load(folder / f"{name}.{array}.npy") for array in ("data", "indices", "indptr", "y")
    ]
    *parts, y = arrays
    return sparse.csr_matrix(tuple(parts), shape=(len(y), features)), y


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_check_arguments(parser)


def run(options: argparse.Namespace) -> int:
    features = FEATURES if options.samples is None else FEATURES // 10
    experiment = Experiment(
        "documents",
        "Documents",
        METHODS,
        load=draw,
        train=partial(alone, features),
        runs=RUNS,
        data={"samples": options.samples or SAMPLES, "features": features},
    )
    rows = experiment.rows(options)
    title = f"{options.samples or SAMPLES:,} documents, {features:,} features"
    Table.of_rows(title, rows, COLUMNS).show()
    return report.conclude(options, {"documents": rows}, promises(rows))


def alone(features: int, run: Run) -> Figures:
    """Return the figures of a run, from a process that does nothing else."""
    model = run.make()
    streams = run.method.name.endswith("stream")
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return process.submit(measure, run.task.path, features, model, streams=streams).result()


def measure(folder: Path, features: int, model: Any, *, streams: bool) -> Figures:
    """Train, and return how good, how fast and how large that was."""
    X, y = read(folder, "train", features)
    learn = learn_once if streams else fit
    with machine.one_thread():
        # What is loaded at the first call does not count.
        learn(type(model)(**model.get_params()), X[:200], y[:200])
        with machine.MemoryGrowth() as memory, machine.Stopwatch() as watch:
            learn(model, X, y)
    X_test, y_test = read(folder, "test", features)
    return {
        "accuracy": 100 * float(model.score(X_test, y_test)),
        **watch.figures,
        "memory": memory.bytes / (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes),
        "points": getattr(model, "model_order_", None),
    }


def fit(model: Any, X: Any, y: Any) -> None:
    model.fit(X, y)


def learn_once(model: Any, X: Any, y: Any) -> None:
    for part in gen_batches(X.shape[0], BLOCK):
        model.partial_fit(X[part], y[part], classes=np.unique(y))


def promises(rows: Sequence[Row]) -> Iterator[Promise]:
    """Judge ours beside a linear support vector machine fitted to all at once."""
    found = {row.method.name: row for row in rows}
    for name in IN_BATCH:
        pairs = zip(found[BATCH].values("accuracy"), found[name].values("accuracy"), strict=True)
        behind = median(theirs - ours for theirs, ours in pairs)
        yield at_most(f"{name}, accuracy below LinearSVC's", behind, 2)
        yield at_most(f"{name}, memory over the data's", max(found[name].values("memory")), 2)

"""Classifiers side by side: how they are trained, what is measured, how it is shown.

Methods with `partial_fit` get the samples as a stream and are watched while they learn; the figures
of a table are averages over the last 5 % of the stream, as in POLK's paper. The others are measured
once: any classifier will do that says in `model_order_` how many points it stores. If it also has
`squared_norm_` and scores for each class (`decision_function`), its risk is measured, too.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import parsimon
from bench import figures, machine, tasks
from bench.baselines.kernel_machine import LOSSES, PENALTY
from bench.report import Column, Table, span, times, two_digits
from bench.runner import Experiment, Figures, Method, Row, Run
from bench.tasks import Array

# Where to look, as parts of the stream: every twentieth, and five times in the last twentieth.
CHECKPOINTS = (*np.arange(1, 20) / 20, *(0.95 + 0.01 * np.arange(1, 6)))
LAST = 5
# What is timed has run before, on this many samples.
WARM_UP_SAMPLES = 100

LOSS_TITLES = {"hinge": "Multi-KSVM", "logistic": "Multi-Logistic"}
COLUMNS = (
    Column("risk", "risk"),
    Column("error %", "error"),
    Column("above LIBSVM", "above", two_digits),
    Column("points", "model_order", span),
    Column("CPU s", "cpu_seconds", two_digits),
)


def method(name: str, estimator: Any, loss: str, *printed: Any, **settings: Any) -> Method:
    """Return a method: after its loss come risk, error in percent and points as printed."""
    known = dict(zip(("risk", "error", "model_order"), printed, strict=False))
    epochs, runs = settings.pop("epochs", 1), settings.pop("runs", None)
    return Method(name, estimator, settings, loss, epochs, known, runs)


def comparison(
    task: str,
    title: str,
    methods: Sequence[Method],
    *,
    runs: int,
    quick: Mapping[str, Any],
    risk_on: str = "test",
) -> Experiment:
    """Return a table of a paper: classifiers on a task of `tasks.py`."""
    return Experiment(
        task,
        title,
        methods,
        load=partial(tasks.load, name=task),
        train=train,
        runs=runs,
        offered={**tasks.offered(task), "risk_on": risk_on},
        quick={"test_samples": 2000, **quick},
    )


def publish(
    paper: str, experiment: Experiment, options: argparse.Namespace, **numbers: int
) -> None:
    """Run a comparison, and write its table and the figures of these numbers, by loss."""
    load = partial(experiment.load, cache=options.out / "cache")
    rows = replace(experiment, load=load).rows(options)
    name = re.sub(r"[^a-z0-9]+", "-", experiment.title.lower())
    table(experiment.title, rows).publish(options.out / f"{paper}-{name}.csv")
    for loss, number in numbers.items():
        draw_paths(options.out / f"{paper}-figure{number}.png", experiment, loss, rows)


def table(title: str, rows: Sequence[Row]) -> Table:
    """Return the table; errors are also given above those of LIBSVM with the same seed."""
    libsvm = next((row for row in rows if row.method.kind == "Libsvm"), None)
    if libsvm is not None:
        rows = [row if row is libsvm else row.above(libsvm, "error") for row in rows]
    runs = times(max(len(row.results) for row in rows))
    about = "means, standard deviations in (parentheses), the paper's figures in [brackets]"
    losses = [LOSS_TITLES[row.method.loss or "hinge"] for row in rows]
    bayes = sorted({round(error, 1) for row in rows for error in row.values("bayes")})
    if bayes:
        about += f"; Bayes errors {', '.join(map(str, bayes))} %"
    return Table.of_rows(f"{title}: {runs}; {about}", rows, COLUMNS).after("task", losses)


def draw_paths(path: Path, experiment: Experiment, loss: str, rows: Sequence[Row]) -> None:
    """Draw risk, test error and model order along the stream, for the first seed."""
    paths = {
        row.method.name: row.results[0]["path"]
        for row in rows
        if row.method.loss == loss and row.results and "path" in row.results[0].figures
    }
    risk = "Empirical risk" if experiment.offered["risk_on"] == "train" else "Expected risk"
    titles = {"risk": risk, "error": "Test error, %", "model_order": "Model order"}
    panels = [
        figures.Panel(
            title,
            {name: (curve["samples"], curve[column]) for name, curve in paths.items()},
            logarithmic=column != "model_order" or "FSGD" in paths,
        )
        for column, title in titles.items()
    ]
    figures.draw_panels(path, panels)


def train(run: Run) -> Figures:
    """Train and measure. The seed decides the order of the samples and whatever a method draws."""
    task = run.task
    with warnings.catch_warnings():  # that so few samples need fewer points than are wanted
        warnings.simplefilter("ignore", ConvergenceWarning)
        run.make().fit(task.X[:WARM_UP_SAMPLES], task.y[:WARM_UP_SAMPLES])
    model = run.make()
    if hasattr(model, "partial_fit"):
        return train_online(run, model)
    order = np.random.default_rng(run.seed).permutation(len(task.X))
    with machine.Stopwatch() as watch:
        model.fit(task.X[order], task.y[order])
    return {**measure(run, model), **watch.figures, **known(task)}


def known(task: tasks.Task) -> Figures:
    """Return the error of the Bayes rule, in percent, of a task whose law is known."""
    return {name: task.extra[name] for name in ("bayes",) if name in task.extra}


def train_online(run: Run, model: Any) -> Figures:
    """Feed a stream in blocks; between them the clock stops, and the model is looked at."""
    task, classes = run.task, np.unique(run.task.y)
    watch, path = machine.Stopwatch(), []
    for seen, block in blocks(len(task.X), run.method.epochs, run.seed):
        X, y = task.X[block], task.y[block]
        with watch:
            model.partial_fit(X, y, classes=classes)
        path.append({"samples": seen, **measure(run, model)})
    columns = {key: [point[key] for point in path] for key in path[0]}
    return {
        "error": float(np.mean(columns["error"][-LAST:])),
        "risk": float(np.mean(columns["risk"][-LAST:])),
        "model_order": columns["model_order"][-1],
        **watch.figures,
        **known(task),
        "path": columns,
    }


def blocks(samples: int, epochs: int, seed: int) -> Iterator[tuple[int, Array]]:
    """Yield the stream in blocks that end at the checkpoints: samples seen, and which come next.

    Blocks are whole mini-batches, so that looking changes nothing.
    """
    random = np.random.default_rng(seed)
    stream = np.concatenate([random.permutation(samples) for _ in range(epochs)])
    start = 0
    for part in CHECKPOINTS:
        whole = -(-round(part * len(stream)) // tasks.BATCH_SIZE) * tasks.BATCH_SIZE
        end = min(len(stream), whole)
        if end > start:
            yield end, stream[start:end]
        start = end


def measure(run: Run, model: Any) -> Figures:
    """Return test error in percent, risk (None where a method has no scores) and model order."""
    task = run.task
    on_train = run.offered["risk_on"] == "train"
    judged = (task.X, task.y) if on_train else (task.X_test, task.y_test)
    return {
        "error": float(100 * (model.predict(task.X_test) != task.y_test).mean()),
        "risk": risk(model, run.method, *judged),
        "model_order": int(model.model_order_),
    }


def risk(model: Any, method: Method, X: Array, y: Array) -> float | None:
    """Return the mean loss plus the regulariser; (26) and (28) of POLK's paper."""
    if hasattr(model, "expansion_"):
        norm = model.expansion_.norm() ** 2
    elif hasattr(model, "squared_norm_"):
        norm = model.squared_norm_
    else:
        return None
    labels = np.searchsorted(model.classes_, y)
    if isinstance(model, parsimon.SPPPOTClassifier):
        # Its scores are positive functions, and (93) of its paper has no norm.
        scores = np.log(np.maximum(model.predict_proba(X), np.finfo(float).tiny))
        return float(LOSSES["logistic"](scores, labels)[0].mean())
    losses, _ = LOSSES[method.loss](model.decision_function(X), labels)
    weight = method.settings.get("regularization", tasks.REGULARIZATION)
    return float(losses.mean() + PENALTY[method.loss] * weight * norm)

"""``partial_fit`` of a trained model: blocks of samples, and a single one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from typing import Any

import numpy as np
import pytest

from bench.machine import one_thread
from bench.tasks import Task, multidist, synthetic

BLOCK = 1000

Make = Callable[[int], tuple[Task, Any]]


def small(count: int) -> tuple[Task, Any]:
    """Model order about 100, 2 features."""
    task = multidist(count, seed=0)
    return task, task.classifier(parsimony=1e-4)


def large(count: int) -> tuple[Task, Any]:
    """Model order about 300; 784 features, into which those of the task are rotated."""
    task = synthetic(count, seed=0)
    basis, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(784, task.features)))
    rotated = replace(task, X=np.ascontiguousarray(task.X @ basis.T))
    return rotated, rotated.classifier()


@pytest.mark.parametrize(("make", "rounds"), [(small, 50), (large, 10)], ids=["small", "large"])
def test_partial_fit_of_a_block(benchmark: Any, make: Make, rounds: int) -> None:
    """Each round learns from fresh samples: those seen already would move the function less."""
    warm_up = 4 * BLOCK
    task, model = make(warm_up + (rounds + 1) * BLOCK)
    model.partial_fit(task.X[:warm_up], task.y[:warm_up], classes=range(5))
    starts = iter(range(warm_up, len(task.X), BLOCK))

    def block() -> tuple[tuple[Any, Any], dict[str, Any]]:
        part = slice(start := next(starts), start + BLOCK)
        return (task.X[part], task.y[part]), {}

    with one_thread():
        benchmark.pedantic(model.partial_fit, setup=block, rounds=rounds)
    benchmark.extra_info.update(
        samples=BLOCK, features=task.features, model_order=model.model_order_
    )


def test_partial_fit_of_one_sample(benchmark: Any) -> None:
    """A stream that comes one by one: with so small a model, mostly the overhead of a call."""
    task = multidist(5 * BLOCK, seed=0)
    model = task.classifier().partial_fit(task.X, task.y, classes=range(5))
    stream = cycle([(task.X[i : i + 1], task.y[i : i + 1]) for i in range(len(task.y))])
    with one_thread():
        benchmark(lambda: model.partial_fit(*next(stream)))
    benchmark.extra_info["model_order"] = model.model_order_

"""What one call costs: ``partial_fit``, ``decision_function``, KOMP."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle
from typing import Any

import numpy as np
import pytest
from sklearn.utils import gen_batches

from bench.limits import random_samples, with_points
from bench.machine import one_thread
from bench.tasks import Task, multidist, synthetic
from parsimon import KernelExpansion, kernels, komp

BLOCK = 1000


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
def test_partial_fit_of_a_block(benchmark: Any, make: Any, rounds: int) -> None:
    """Each round learns from fresh samples: those seen already would move the function less."""
    task, model = make((rounds + 5) * BLOCK)
    parts = [(task.X[part], task.y[part]) for part in gen_batches(len(task.X), BLOCK)]
    stream = iter(parts[4:])
    with one_thread():
        for X, y in parts[:4]:
            model.partial_fit(X, y, classes=range(5))
        benchmark.pedantic(model.partial_fit, setup=lambda: (next(stream), {}), rounds=rounds)
    benchmark.extra_info["model_order"] = model.model_order_


def test_partial_fit_of_one_sample(benchmark: Any) -> None:
    """A stream that comes one by one: with so small a model, mostly the overhead of a call."""
    task, model = small(5 * BLOCK)
    model.partial_fit(task.X, task.y, classes=range(5))
    stream = cycle([(task.X[part], task.y[part]) for part in gen_batches(len(task.y), 1)])
    with one_thread():
        benchmark(lambda: model.partial_fit(*next(stream)))
    benchmark.extra_info["model_order"] = model.model_order_


@pytest.mark.parametrize(
    ("points", "features", "samples"), [(100, 2, 10_000), (300, 784, 2000), (1000, 784, 2000)]
)
def test_decision_function(benchmark: Any, points: int, features: int, samples: int) -> None:
    X, _ = random_samples(samples, features, 1)
    with one_thread():
        benchmark(with_points(points, features).decision_function, X)


@pytest.mark.parametrize("outputs", [1, 10])
@pytest.mark.parametrize("budget", [1e-2, 1.0], ids=["few_removals", "many_removals"])
def test_komp(benchmark: Any, outputs: int, budget: float) -> None:
    random, points = np.random.default_rng(0), 500
    centers = random.normal(size=(points, 8))
    weights = random.normal(size=(points, outputs)) / points**0.5
    _, result = benchmark(komp, KernelExpansion(kernels.Gaussian(2.0), centers, weights), budget)
    benchmark.extra_info["model_order"] = result.model_order

"""``decision_function`` of a trained model, beside the matrix product that it must do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bench.limits import with_points
from bench.machine import one_thread


@pytest.mark.parametrize(
    ("model_order", "features", "samples"), [(100, 2, 10_000), (300, 784, 2000), (1000, 784, 2000)]
)
def test_decision_function(benchmark: Any, model_order: int, features: int, samples: int) -> None:
    model = with_points(model_order, features)
    X = np.random.default_rng(1).normal(size=(samples, features))
    with one_thread():
        benchmark(model.decision_function, X)
    benchmark.extra_info.update(model_order=model.model_order_, samples=samples, features=features)


@pytest.mark.parametrize(
    ("model_order", "features", "samples"), [(100, 2, 10_000), (300, 784, 2000), (1000, 784, 2000)]
)
def test_matrix_product(benchmark: Any, model_order: int, features: int, samples: int) -> None:
    random = np.random.default_rng(0)
    points, X = random.normal(size=(model_order, features)), random.normal(size=(features, samples))
    with one_thread():
        benchmark(np.dot, points, X)

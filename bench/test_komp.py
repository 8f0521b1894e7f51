"""Compression of a large expansion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bench.machine import one_thread
from parsimon import KernelExpansion, kernels, komp

POINTS = 500


@pytest.mark.parametrize("outputs", [1, 10])
@pytest.mark.parametrize("budget", [1e-2, 1.0], ids=["few_removals", "many_removals"])
def test_komp(benchmark: Any, outputs: int, budget: float) -> None:
    random = np.random.default_rng(0)
    points = random.normal(size=(POINTS, 8))
    weights = random.normal(size=(POINTS, outputs)) / POINTS**0.5
    f = KernelExpansion(kernels.Gaussian(2.0), points, weights)
    with one_thread():
        _, result = benchmark(komp, f, budget)
    benchmark.extra_info["model_order"] = result.model_order

"""What the tests of the benchmarks share."""

from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def bench(monkeypatch):
    """Import a module of the benchmarks, which are no part of the installed package."""
    pytest.importorskip("threadpoolctl")
    monkeypatch.syspath_prepend(ROOT)
    return lambda name: import_module(f"bench.{name}")

"""The examples of docs/scale.md run as they stand there."""

import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from parsimon import POLKRegressor
from parsimon.datasets import make_multidist

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "scale.md").read_text(encoding="utf-8")


def example(name):
    return re.search(rf"```python {name}\n(.*?)```", PAGE, re.DOTALL)[1]


@pytest.fixture(scope="module")
def parts():
    X, y = make_multidist(1200, random_state=0)
    return [(X[i::3], y[i::3]) for i in range(3)]


def test_statistics():
    random = np.random.default_rng(0)
    X = random.uniform(size=(600, 1))
    y = np.sin(6 * X[:, 0])
    names = {
        "model": POLKRegressor(random_state=0).fit(X[:200], y[:200]),
        "parts": [(X[i::3], y[i::3]) for i in range(3)],
    }
    exec(example("statistics"), names)
    assert abs(names["model"].predict(X) - y).max() < 0.01


def test_spark(parts, monkeypatch):
    """Spark needs Java: what it does with the function is done here."""
    pd = pytest.importorskip("pandas")
    spark = types.ModuleType("pyspark")
    current = [0]
    context = types.SimpleNamespace(partitionId=lambda: current[0])
    spark.TaskContext = types.SimpleNamespace(get=lambda: context)
    monkeypatch.setitem(sys.modules, "pyspark", spark)
    frames = [pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}) for X, y in parts]

    class Frame:
        def mapInPandas(self, function, schema):  # noqa: N802
            assert schema == "number long, found binary"
            self.rows = []
            for current[0], frame in [*enumerate(frames), (3, None)]:
                halves = [] if frame is None else [frame[:150], frame[150:]]
                for found in function(iter(halves)):
                    self.rows += list(found.itertuples(index=False))
            return self

        def collect(self):
            return self.rows[::-1]

    names = {"df": Frame(), "features": ["a", "b"]}
    exec(example("spark"), names)
    X, y = parts[0]
    assert names["model"].score(pd.DataFrame(X, columns=["a", "b"]), y) > 0.9


@pytest.mark.slow
def test_ray(parts):
    ray = pytest.importorskip("ray", reason="Ray is not installed: its example was not run.")
    ray.init(num_cpus=2, include_dashboard=False, configure_logging=False)
    try:
        names = {"parts": parts}
        exec(example("ray"), names)
    finally:
        ray.shutdown()
    X, y = parts[0]
    assert names["model"].score(X, y) > 0.9

"""``python -m bench text``: on few documents, that the figures mean what they say."""

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from bench_common import assert_missed

from bench import machine, text
from bench.runner import Result, Row


def test_few_documents(run_bench):
    code, out, content = run_bench("text", "--samples", "500", "--runs", "1")
    assert code == 0
    assert "500 documents, 5,000 features" in out
    (rows,) = content["rows"].values()
    assert [row["method"] for row in rows] == [method.name for method in text.METHODS]
    for row in rows:
        (found,) = row["results"]
        assert 20 < found["accuracy"] <= 100
        assert found["cpu_seconds"] > 0
        assert (found["points"] == 11) == row["method"].startswith("POLK")


@pytest.mark.parametrize(
    ("accuracy", "memory", "complaint"),
    [(89.0, 1.0, None), (87.0, 1.0, "accuracy"), (89.0, 2.5, "memory")],
)
def test_promises(accuracy, memory, complaint):
    def row(method):
        theirs = method.name == text.BATCH
        figures = {"accuracy": 90.0 if theirs else accuracy, "memory": memory}
        return Row(method, [Result(figures)])

    assert_missed(text.promises([*map(row, text.METHODS)]), complaint, 2)


def growth_of_an_array():
    np.ones(20_000_000).sum()
    with machine.MemoryGrowth() as growth:
        np.ones(5_000_000).sum()
    return growth.bytes


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the peak is never forgotten")
def test_growth_of_memory():
    # In a process of its own: nothing else takes or gives back memory meanwhile.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        assert 35e6 < process.submit(growth_of_an_array).result() < 80e6


@pytest.mark.slow
def test_twenty_thousand_documents_of_fifty_thousand_features(run_bench):
    code, out, content = run_bench("text", "--runs", "1")
    assert code == 0, out
    found = {row["method"]: row["results"][0] for row in content["rows"]["documents"]}
    # Neither easy nor hopeless: else the figures would say nothing.
    assert 85 < found[text.BATCH]["accuracy"] < 95

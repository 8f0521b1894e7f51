"""What a cluster of Dask survives: workers that are killed, and more data than memory.

Both are parts of ``python -m bench scale``.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bench.report import Promise, Table, at_least, at_most, significant
from bench.tasks import multidist

QUIET = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "threads_per_worker": 1}
WORKERS, PARTITIONS, SAMPLES = 4, 16, 8000
# Relative to the largest weight.
SAME = 1e-9


def kills(count: int) -> list[dict[str, Any]]:
    """Fit once in peace, then so many times with a worker killed at some time of it."""
    import dask.array as da
    from distributed import Client, LocalCluster

    from parsimon.dask import POLKClassifier

    task, random = multidist(SAMPLES, 0), np.random.default_rng(0)
    rows = -(-len(task.X) // PARTITIONS)
    X, y = da.from_array(task.X, chunks=(rows, -1)), da.from_array(task.y, chunks=rows)
    lines = []
    with LocalCluster(n_workers=WORKERS, **QUIET) as cluster, Client(cluster) as client:
        model = POLKClassifier(client=client, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)  # workers import what they need
            begun = time.perf_counter()
            expected = model.fit(X, y).weights_
            usual = time.perf_counter() - begun
            for _ in range(count):
                client.wait_for_workers(WORKERS, timeout=120)
                nannies = list(cluster.workers.values())  # one that starts again may be missing
                nanny = nannies[random.integers(len(nannies))]
                moment = float(random.uniform(0, usual))
                timer = threading.Timer(moment, end, [nanny])
                begun = time.perf_counter()
                timer.start()
                try:
                    found = model.fit(X, y).weights_
                finally:
                    seconds = time.perf_counter() - begun
                    timer.cancel()
                    timer.join()
                lines.append(
                    {
                        "share": moment / usual,
                        "in time": moment < seconds,
                        "phase": phase_at(model.history_, moment),
                        "seconds": seconds,
                        "apart": distance(found, expected),
                    }
                )
    return lines


def end(nanny: Any) -> None:
    """End the process of a worker as a machine that fails would."""
    if nanny.pid is not None:
        os.kill(nanny.pid, signal.SIGKILL)


def phase_at(history: Sequence[dict[str, Any]], moment: float) -> str:
    """Return what was being done then."""
    begun = [entry["phase"] for entry in history if entry["seconds"] <= moment]
    return begun[-1] if begun else "begin"


def distance(found: Any, expected: Any) -> float:
    """Return how far weights are apart, relative to the largest; infinite if not comparable."""
    if found.shape != expected.shape:
        return float("inf")
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def table_of_kills(lines: Sequence[dict[str, Any]]) -> Table:
    header = ["phase", "workers killed", "furthest apart", "s, median"]
    texts = []
    for phase in dict.fromkeys(line["phase"] for line in lines):
        some = [line for line in lines if line["phase"] == phase]
        apart, seconds = (np.array([line[name] for line in some]) for name in ("apart", "seconds"))
        counted = sum(line["in time"] for line in some)
        cells = [str(counted), f"{apart.max():.1e}", significant(float(np.median(seconds)), 2)]
        texts.append([phase, *cells])
    return Table(f"A worker of {WORKERS} killed, {len(lines)} times", header, texts)


def judge_kills(lines: Sequence[dict[str, Any]]) -> Iterator[Promise]:
    different = sum(line["apart"] > SAME for line in lines)
    yield at_most("Models that a dead worker has changed", different, 0)
    yield at_least("Workers killed before the end", sum(line["in time"] for line in lines), 1)


def more_than_memory(gigabytes: float, limit: float, features: int) -> dict[str, Any]:
    """Learn from so many gigabytes that are generated lazily, on two workers of so few each."""
    import dask.array as da
    from distributed import Client, LocalCluster

    from parsimon.dask import POLKRegressor

    rows, samples = int(5e7 // (8 * features)), int(1e9 * gigabytes // (8 * features))
    X = da.random.default_rng(0).normal(size=(samples, features), chunks=(rows, features))
    y = np.sqrt(2) * da.sin(X[:, 0]) + X[:, 1]
    quiet = {**QUIET, "memory_limit": f"{limit}GB"}
    with LocalCluster(n_workers=2, **quiet) as cluster, Client(cluster) as client:
        begun = time.perf_counter()
        model = POLKRegressor(
            client=client, max_points=50, gamma=1 / features, epochs=1, random_state=0
        )
        model.fit(X, y)
        seconds = time.perf_counter() - begun
        peak = max(client.run(peak_gigabytes).values())
    test = np.random.default_rng(1).normal(size=(2000, features))
    score = float(model.score(test, np.sqrt(2) * np.sin(test[:, 0]) + test[:, 1]))
    return {
        "gigabytes": X.nbytes / 1e9,
        "limit": limit,
        "samples": samples,
        "features": features,
        "seconds": seconds,
        "peak": peak,
        "points": model.model_order_,
        "score": score,
    }


def peak_gigabytes() -> float:
    """Return the largest memory that this process has had."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def table_of_memory(line: dict[str, Any]) -> Table:
    header = ["GB of samples", "GB a worker may have", "GB it had", "samples", "s", "points", "R^2"]
    names = ("gigabytes", "limit", "peak", "samples", "seconds", "points", "score")
    cells = [line[name] for name in names]
    texts = [f"{cell:,}" if isinstance(cell, int) else significant(cell) for cell in cells]
    return Table("More data than memory, two workers", header, [texts])


def judge_memory(line: dict[str, Any]) -> Iterator[Promise]:
    yield at_most("GB of memory that a worker had", line["peak"], line["limit"])

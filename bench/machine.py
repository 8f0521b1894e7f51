"""What the machine can do and is: its GEMM rate on one thread, its memory, its versions."""

from __future__ import annotations

import os
import platform
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from timeit import repeat, timeit
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemv, dger
from threadpoolctl import threadpool_info, threadpool_limits  # type: ignore[import-untyped]

import parsimon

Array = NDArray[Any]
# m, k, n of a product (m x k) times (k x n).
Shape = tuple[int, int, int]

# Large enough for any BLAS to come near its best.
GENERAL_SHAPES: tuple[Shape, ...] = ((256, 256, 256), (384, 384, 384), (512, 512, 512))

# Seconds of one measurement: shorter than the time slice of a busy machine's scheduler, so that
# some bursts run undisturbed.
BURST = 2e-3

# Clock over processor time from which on other processes have disturbed a measurement.
BUSY = 1.1


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold NumPy's BLAS, parsimon and whatever uses OpenMP to one thread inside ``with``."""
    before = parsimon.get_num_threads()
    parsimon.set_num_threads(1)
    try:
        with threadpool_limits(limits=1):
            yield
    finally:
        parsimon.set_num_threads(before)


@dataclass
class GemmRate:
    """Best rate of double-precision products so far, by shape, in flops per second.

    Other work on the machine can only slow a product down, so the best of all measurements is the
    nearest to what the machine can do.
    """

    by_shape: dict[Shape, float] = field(default_factory=dict)

    @property
    def best(self) -> float:
        return max(self.by_shape.values())

    def measure(self, shapes: Iterable[Shape], *, seconds: float = 0.3) -> None:
        """Time each shape in short bursts for this many seconds."""
        random = np.random.default_rng(0)
        with one_thread():
            for shape in shapes:
                m, k, n = shape
                multiply = partial(np.dot, random.normal(size=(m, k)), random.normal(size=(k, n)))
                taken = best_seconds(partial(multiply, out=np.empty((m, n))), seconds)
                rate = 2.0 * m * k * n / taken
                self.by_shape[shape] = max(rate, self.by_shape.get(shape, 0.0))


def best_seconds(call: Callable[[], Any], seconds: float) -> float:
    """Return the seconds of a call in the quickest of many short bursts."""
    calls = max(1, round(BURST / max(min(repeat(call, number=1, repeat=2)), 1e-9)))
    best, end = timeit(call, number=calls), time.perf_counter() + seconds
    while time.perf_counter() < end:
        best = min(best, timeit(call, number=calls))
    return best / calls


def vector_rates(size: int, *, seconds: float = 0.3) -> dict[str, float]:
    """Return the rates of BLAS's matrix-vector product and rank-1 update, in flops per second.

    The matrix, square and of the size given, stays in the cache, as it does in training. What a
    call costs from Python is measured at size 1 and taken off: it would flatter what is measured
    against these rates.
    """

    def times(size: int) -> Array:
        """Return the times of a product by rows, one by columns, and an update."""
        matrix, x, y = np.ones((size, size), order="F"), np.ones(size), np.zeros(size)
        kept = {"overwrite_x": 1, "overwrite_y": 1, "overwrite_a": 1}
        calls = (
            lambda: dgemv(1.0, matrix, x, 0.0, y, trans=1, overwrite_y=1),
            lambda: dgemv(1.0, matrix, x, 0.0, y, overwrite_y=1),
            lambda: dger(1e-9, x, x, a=matrix, **kept),
        )
        return np.array([best_seconds(call, seconds) for call in calls])

    with one_thread():
        by_rows, by_columns, update = 2.0 * size**2 / np.maximum(times(size) - times(1), 1e-9)
    return {"matrix_vector": max(by_rows, by_columns), "rank_one": update}


class Stopwatch:
    """Time inside ``with``, added up over all of them: by the clock, and of the processor."""

    def __init__(self) -> None:
        self.seconds = self.cpu_seconds = 0.0

    def __enter__(self) -> Stopwatch:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self._wall
        self.cpu_seconds += time.process_time() - self._cpu

    @property
    def figures(self) -> dict[str, float]:
        return {"seconds": self.seconds, "cpu_seconds": self.cpu_seconds}


def was_busy(figures: Any) -> bool:
    """Return whether other processes have disturbed what these times are of."""
    return figures["seconds"] > BUSY * figures["cpu_seconds"]


def resident_bytes() -> int:
    """Return the memory of this process that is in RAM: now on Linux, at its peak elsewhere."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return peak_bytes()


class MemoryGrowth:
    """By how much the memory of this process grew at most inside ``with``, in bytes."""

    bytes = 0

    def __enter__(self) -> MemoryGrowth:
        reset = Path("/proc/self/clear_refs")
        if reset.exists():
            with suppress(OSError):  # then the peak is that since the process began
                reset.write_text("5")
        self._before = resident_bytes()
        return self

    def __exit__(self, *_: object) -> None:
        self.bytes = max(peak_bytes() - self._before, 0)


def peak_bytes() -> int:
    """Return the largest memory of this process so far that was in RAM."""
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text()) if status.exists() else None
    if found:
        return 1024 * int(found[1])
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def environment() -> dict[str, Any]:
    """Return what a figure depends on beside the code: machine, versions, parsimon's build."""
    with one_thread():
        libraries = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    info = Path("/proc/cpuinfo")
    named = re.search(r"model name\s*: (.*)", info.read_text()) if info.exists() else None
    return {
        "machine": {
            "processor": named[1] if named else platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "system": platform.platform(),
            "blas": libraries,
        },
        "versions": {
            "python": platform.python_version(),
            **{name: installed(name) for name in ("parsimon", "numpy", "scipy", "scikit-learn")},
        },
        "parsimon": parsimon.build_info(),
    }


def installed(package: str) -> str | None:
    """Return the version of a package; None if it is not installed."""
    if package == "parsimon":
        return parsimon.__version__
    try:
        return version(package)
    except PackageNotFoundError:
        return None

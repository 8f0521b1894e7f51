"""What the machine can do and is: its GEMM rate on one thread, its memory, its versions."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits  # type: ignore[import-untyped]

import parsimon

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


def block_shapes(features: int, model_order: int, batch_size: int) -> list[Shape]:
    """Return the two products of a mini-batch: the kernel block, and K^-1 times that block."""
    if model_order == 0:
        return []
    return [(model_order, features, batch_size), (model_order, model_order, batch_size)]


@dataclass
class GemmRate:
    """Best rate of double-precision products so far, by shape, in flops a second.

    Other work on the machine can only slow a product down, so the best of all measurements is the
    nearest to what the machine can do.
    """

    by_shape: dict[Shape, float] = field(default_factory=dict)

    @property
    def best(self) -> float:
        return max(self.by_shape.values())

    @property
    def best_shape(self) -> Shape:
        return max(self.by_shape, key=lambda shape: self.by_shape[shape])

    def measure(self, shapes: Iterable[Shape], *, seconds: float = 0.3) -> None:
        """Time each shape in short bursts for so many seconds."""
        with one_thread():
            for shape in shapes:
                self.by_shape[shape] = max(_rate(shape, seconds), self.by_shape.get(shape, 0.0))

    def as_dict(self) -> dict[str, Any]:
        return {
            "gflops": self.best / 1e9,
            "best_shape": list(self.best_shape),
            "gflops_by_shape": {
                "x".join(map(str, shape)): rate / 1e9 for shape, rate in self.by_shape.items()
            },
        }


def _rate(shape: Shape, seconds: float) -> float:
    m, k, n = shape
    random = np.random.default_rng(0)
    a, b, out = random.normal(size=(m, k)), random.normal(size=(k, n)), np.empty((m, n))
    _time_products(a, b, out, 1)
    calls = max(1, round(BURST / _time_products(a, b, out, 1)))
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end or best == float("inf"):
        best = min(best, _time_products(a, b, out, calls) / calls)
    return 2.0 * m * k * n / best


def _time_products(a: Any, b: Any, out: Any, calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        np.dot(a, b, out=out)
    return time.perf_counter() - start


@dataclass(frozen=True)
class Elapsed:
    """Seconds on the clock, and seconds that this process had a processor."""

    wall: float
    cpu: float


class Stopwatch:
    """Time of a ``with`` block, in ``elapsed`` once it is over."""

    elapsed: Elapsed

    def __enter__(self) -> Stopwatch:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.elapsed = Elapsed(time.perf_counter() - self._wall, time.process_time() - self._cpu)


def resident_bytes() -> int:
    """Return the memory of this process that is in RAM: now on Linux, at its peak elsewhere."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


@dataclass(frozen=True)
class Blas:
    name: str
    version: str
    architecture: str
    threads: int


def blas() -> list[Blas]:
    """Return the BLAS libraries that are loaded, as they are limited right now."""
    return [
        Blas(
            str(pool["internal_api"]),
            str(pool.get("version")),
            str(pool.get("architecture", "unknown")),
            int(pool["num_threads"]),
        )
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    ]


def environment() -> dict[str, Any]:
    """Return what a figure depends on beside the code: machine, versions, parsimon's build."""
    with one_thread():
        libraries = [asdict(library) for library in blas()]
    return {
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "system": platform.platform(),
            "blas": libraries,
        },
        "versions": {"python": platform.python_version(), **_versions()},
        "parsimon": parsimon.build_info(),
    }


def _versions() -> dict[str, str]:
    found = {}
    for name in ("parsimon", "numpy", "scipy", "scikit-learn", "threadpoolctl"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()

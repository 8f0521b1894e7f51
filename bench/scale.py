"""How learning on a cluster of Dask scales: measured here, and from that to 1,000 workers.

Strong scaling: the same partitions of data on 1, 2 and 4 workers, each a process with one thread.
Weak scaling: as many partitions for each worker. Each line has the seconds of the phases, the bytes
that workers sent each other, the test error and the points, beside those of `fit` on one machine.
Then the steps are timed one by one, without a cluster, and from what they cost and send follows
what more machines would take. With more workers than processors, times only show that it runs.
"""

from __future__ import annotations

import argparse
import math
import os
import pickle
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from bench import faults, machine, report
from bench.cli import positive_int
from bench.report import Promise, Table, at_least, at_most, significant
from bench.tasks import Task, mnist, multidist
from parsimon import POLKClassifier, distributed

SETTINGS: dict[str, dict[str, Any]] = {"mnist": {"gamma": 1 / 32}, "multidist": {}}
PHASES = ("look", "points", "weights")
TIMES = tuple(f"{phase}_seconds" for phase in PHASES)

# Of the simulated cluster: a network of 10 Gbit/s between any two machines, what Dask takes for a
# task, and what it takes until a task that has all it needs begins.
BANDWIDTH = 1.25e9
OVERHEAD = 1e-3
LATENCY = 5e-3
SIMULATED = (1, 10, 100, 1000)
ROWS = 100_000_000
# Sums that one task adds up, and functions that one task merges.
SUMS, MERGED = 8, 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--task", choices=SETTINGS, default="mnist")
    add("--workers", type=positive_int, nargs="+", default=[1, 2, 4])
    add("--scaling", choices=("strong", "weak"), nargs="+", default=["strong", "weak"])
    add("--partitions", type=positive_int, default=16)
    add("--samples", type=positive_int, help="learn from this many only; no verdict")
    add("--rows", type=positive_int, default=ROWS, help="samples of the simulated data")
    add(
        "--only",
        choices=("clusters", "steps", "faults", "memory"),
        help="one part of it; the last two, workers that die and 5 GB of samples for workers of "
        "1 GB, are measured if they are asked for",
    )
    add("--kills", type=positive_int, default=50, help="workers that die one after the other")
    add("--gigabytes", type=float, default=5.0, help="of samples, for --only memory")
    add("--memory-limit", type=float, default=1.0, help="gigabytes of a worker")
    add("--features", type=positive_int, default=100, help="of the samples, for --only memory")
    report.add_json(parser)


def run(options: argparse.Namespace) -> int:
    if options.only in ("faults", "memory"):
        return run_part(options)
    task = (mnist if options.task == "mnist" else multidist)(options.samples, 0)
    lines: list[dict[str, Any]] = []
    if options.only != "steps":
        lines.append(alone(task, options.task))
        for scaling in options.scaling:
            for count in options.workers:
                share = count / max(options.workers) if scaling == "weak" else 1
                part = first(task, round(share * len(task.X)))
                lines.append(on_cluster(part, options, scaling, count))
        table_of(lines).show()
    found: dict[str, Any] = {"lines": lines}
    if options.only != "clusters":
        costs = measure(task, options)
        costs.table().show()
        simulated = [simulate(costs, options.rows, count) for count in SIMULATED]
        table_of_simulation(simulated, options.rows).show()
        found |= {"costs": asdict(costs), "simulated": simulated}
    code, promises = report.verdict([] if options.samples or not lines else judge(lines))
    report.write_json(options, **found, promises=promises)
    return code


def run_part(options: argparse.Namespace) -> int:
    """Measure what is only measured if it is asked for."""
    if options.only == "faults":
        lines = faults.kills(options.kills)
        faults.table_of_kills(lines).show()
        code, promises = report.verdict(faults.judge_kills(lines))
    else:
        given = options.gigabytes, options.memory_limit, options.features
        lines = [faults.more_than_memory(*given)]
        faults.table_of_memory(lines[0]).show()
        code, promises = report.verdict(faults.judge_memory(lines[0]))
    report.write_json(options, lines=lines, promises=promises)
    return code


def make(name: str, **more: Any) -> POLKClassifier:
    return POLKClassifier(random_state=0, **SETTINGS[name], **more)


def first(task: Task, count: int) -> Task:
    """Return the task with so many samples to learn from."""
    return replace(task, X=task.X[:count], y=task.y[:count])


def alone(task: Task, name: str) -> dict[str, Any]:
    """Return the figures of one machine."""
    watch = machine.Stopwatch()
    with machine.one_thread(), watch:
        model = make(name).fit(task.X, task.y)
    return {"scaling": "one machine", "workers": 1, **figures(model, task), **watch.figures}


def figures(model: Any, task: Task) -> dict[str, Any]:
    error = 100 * (1 - float(model.score(task.X_test, task.y_test)))
    return {"samples": len(task.X), "error": error, "points": model.model_order_}


def on_cluster(
    task: Task, options: argparse.Namespace, scaling: str, workers: int
) -> dict[str, Any]:
    """Return the figures of a cluster of so many processes."""
    import dask.array as da
    from distributed import Client, LocalCluster

    from parsimon import dask as on_dask

    parts = options.partitions
    if scaling == "weak":
        parts = max(1, parts * workers // max(options.workers))
    rows = math.ceil(len(task.X) / parts)
    quiet = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    cluster = LocalCluster(n_workers=workers, threads_per_worker=1, **quiet)
    with cluster, Client(cluster) as client, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X = da.from_array(task.X, chunks=(rows, -1)).persist()
        y = da.from_array(task.y, chunks=rows).persist()
        client.run(begin)
        before = sent(client)
        model = on_dask.POLKClassifier(client=client, **make(options.task).get_params())
        begun = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - begun
        found = {"bytes": sent(client) - before, "seconds": seconds}
        found |= phases(model.history_, seconds)
        return {
            "scaling": scaling,
            "workers": workers,
            **figures(model.to_local(), task),
            **found,
            "partitions": parts,
            "rounds": sum("rounds" in entry for entry in model.history_),
        }


def begin() -> None:
    """Import what takes a worker seconds the first time."""
    import parsimon.dask  # noqa: F401


def sent(client: Any) -> int:
    """Return the bytes that workers have sent each other."""
    counts = client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total)
    return int(sum(counts.values()))


def phases(history: Sequence[dict[str, Any]], end: float) -> dict[str, float]:
    """Return the seconds that each phase took."""
    begun = dict.fromkeys(PHASES, end)
    for entry in reversed(history):
        begun[entry["phase"]] = entry["seconds"]
    edges = [begun[phase] for phase in PHASES] + [end]
    return {f"{phase}_seconds": edges[i + 1] - edges[i] for i, phase in enumerate(PHASES)}


def table_of(lines: Sequence[dict[str, Any]]) -> Table:
    names = ("scaling", "workers", "samples", "seconds", *TIMES, "bytes", "error", "points")
    header = [*names[:4], *PHASES, "megabytes sent", "error %", "points"]
    texts = []
    for line in lines:
        cells = [line.get(name, "") for name in names]
        cells[7] = "" if cells[7] == "" else f"{cells[7] / 1e6:,.0f}"
        texts.append(
            [significant(cell) if isinstance(cell, float) else str(cell) for cell in cells]
        )
    return Table("On this machine", ["scaling", "workers", "samples", "s", *header[4:]], texts)


# -- what each step costs -------------------------------------------------------------------------


@dataclass(frozen=True)
class Costs:
    """Seconds of a sample in each phase, of a merge and of the driver, and bytes of messages."""

    points: int
    rounds: int
    look: float
    scout: float
    coordinates: float
    round: float
    curvature: float
    merge: float
    add: float
    driver: float
    bytes_function: int
    bytes_slope: int
    bytes_curvature: int

    def table(self) -> Table:
        per_sample = ("look", "scout", "coordinates", "round", "curvature")
        lines = [[name, f"{1e6 * getattr(self, name):.3g} us a sample"] for name in per_sample]
        lines += [
            ["merge of two functions", f"{self.merge:.3g} s, {self.bytes_function:,} bytes"],
            ["sum of two gradients", f"{self.bytes_slope:,} bytes"],
            ["sum of two curvatures", f"{self.add:.3g} s, {self.bytes_curvature:,} bytes"],
            ["driver", f"{self.driver:.3g} s, {self.rounds} rounds"],
        ]
        return Table(f"Steps, {self.points:,} points", ["step", "cost"], lines)


def measure(task: Task, options: argparse.Namespace) -> Costs:
    """Time each step on the task, part by part in this process."""
    spent: dict[str, list[float]] = {}
    sizes: dict[str, int] = {}
    parts = np.array_split(np.arange(len(task.X)), options.partitions)
    data = [(task.X[rows], task.y[rows]) for rows in parts]
    last_merge = [0.0]

    def timed(name: str, call: Callable[[], Any]) -> Any:
        begun = time.process_time()
        found = call()
        spent.setdefault(name, []).append(time.process_time() - begun)
        return found

    def reduce(name: str, found: list[Any], combine: Callable[[Any, Any], Any]) -> Any:
        if name in ("scout", "round", "curvature"):
            sizes[name] = len(pickle.dumps(found[0]))
        while len(found) > 1:
            pairs = [found[i : i + 2] for i in range(0, len(found), 2)]
            found = [
                timed(f"{name}-add", lambda p=pair: combine(*p)) if len(pair) > 1 else pair[0]
                for pair in pairs
            ]
        if name == "scout":
            last_merge[0] = spent["scout-add"][-1]
            sizes["function"] = len(pickle.dumps(found[0]))
        return found[0]

    def over(parts: Sequence[tuple[Any, ...]]) -> Callable[[Any, Any], Any]:
        def map_reduce(step: Any, combine: Callable[[Any, Any], Any]) -> Any:
            name = "curvature" if getattr(step, "curvature", "") else step.name
            found = [timed(name, lambda i=i, p=p: step(i, *p)) for i, p in enumerate(parts)]
            return reduce(name, found, combine)

        return map_reduce

    run = over(data)
    run.keep = lambda step, _: over(  # type: ignore[attr-defined]
        [timed("coordinates", lambda i=i, p=p: step(i, *p)) for i, p in enumerate(data)]
    )
    begun = time.process_time()
    with machine.one_thread():
        model = distributed.fit(make(options.task), run)
    total = time.process_time() - begun
    samples = len(task.X)
    rounds = len(spent["round"]) // len(parts)
    turns = len(spent["curvature"]) // len(parts)
    return Costs(
        points=model.model_order_,
        rounds=rounds,
        look=(sum(spent["look"]) + sum(spent["draw"])) / samples,
        scout=sum(spent["scout"]) / samples,
        coordinates=sum(spent["coordinates"]) / samples,
        round=sum(spent["round"]) / samples / rounds,
        curvature=sum(spent["curvature"]) / samples,
        merge=last_merge[0],
        add=float(np.mean(spent.get("curvature-add", [0.0]))) * turns,
        driver=total - sum(map(sum, spent.values())),
        bytes_function=sizes["function"],
        bytes_slope=sizes["round"],
        bytes_curvature=sizes["curvature"] * turns,
    )


def simulate(costs: Costs, rows: int, workers: int) -> dict[str, float]:
    """Return the seconds of each phase with so many workers, each with four partitions.

    Workers are as quick as this processor and all alike; a level of a tree takes one message, and
    messages between different pairs do not wait for each other; the model of as many points goes to
    all workers along a tree of two; each task takes Dask's overhead, one after the other.
    """
    parts = 4 * workers
    share = rows / workers
    tasks = 2 * parts * OVERHEAD

    def tree(size: int, together: int, seconds: float = 0.0) -> float:
        levels = math.ceil(math.log(max(parts, 2), together))
        level = LATENCY + (together - 1) * (size / BANDWIDTH + seconds)
        return levels * level if workers > 1 else (parts - 1) * seconds

    spread = math.ceil(math.log2(workers + 1)) * costs.bytes_curvature / BANDWIDTH
    look = 2 * tasks + costs.look * share + 2 * tree(1000, SUMS)
    points = (
        tasks + costs.scout * min(share, rows) + tree(costs.bytes_function, MERGED, costs.merge)
    )
    rounds = costs.rounds * (tasks + costs.round * share + tree(costs.bytes_slope, SUMS))
    weights = spread + costs.coordinates * share + costs.curvature * share + rounds
    weights += tree(costs.bytes_curvature, SUMS, costs.add)
    total = look + points + weights + costs.driver
    compute = costs.look + costs.scout + costs.coordinates + costs.curvature
    compute = (compute + costs.rounds * costs.round) * share
    return {
        "workers": workers,
        "look": look,
        "points": points,
        "weights": weights,
        "driver": costs.driver,
        "seconds": total,
        "busy": compute / total,
    }


def table_of_simulation(lines: Sequence[dict[str, float]], rows: int) -> Table:
    header = ["workers", *PHASES, "driver", "s in all", "workers busy %", "times one worker"]
    alone = lines[0]["seconds"]
    texts = [
        [
            f"{line['workers']:,}",
            *(significant(line[name], 2) for name in (*PHASES, "driver", "seconds")),
            f"{100 * line['busy']:.0f}",
            significant(alone / line["seconds"]),
        ]
        for line in lines
    ]
    return Table(f"Simulated, {rows:,} samples", header, texts)


def judge(lines: Sequence[dict[str, Any]]) -> Iterator[Promise]:
    one, *others = lines
    strong = {line["workers"]: line for line in others if line["scaling"] == "strong"}
    for count, line in strong.items():
        name = f"{count} workers"
        yield at_most(f"{name}, error above one machine's", line["error"] - one["error"], 0.1)
        yield at_most(f"{name}, points over one machine's", line["points"] / one["points"], 1.1)
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
    if {1, 2} <= strong.keys() and processors > 1:
        faster = strong[1]["seconds"] / strong[2]["seconds"]
        yield at_least("2 workers, times as fast as one", faster, 1.6)

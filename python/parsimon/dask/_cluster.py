"""A map and a reduce on a cluster of Dask: pure tasks with names, which may run anywhere, again."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from parsimon.distributed._density import Extent
from parsimon.distributed._parts import Summary
from parsimon.distributed._weights import Chain, with_shared, without_shared

from ._installed import Client, Delayed, dask, delayed, get_client

# Results that are combined by one task, of sums: a tree of few levels.
_TOGETHER = 8
# Of the cluster's memory, what the data and what the solver makes of them may each take.
_ROOM = 0.25
# Of a worker without a limit.
_UNLIMITED = 4 << 30


def client_of(given: Any) -> Client:
    """Return the client that was given, or else the one that there is."""
    if given is None:
        try:
            given = get_client()
        except ValueError as error:
            raise ValueError(
                "There is no Dask cluster: make a distributed.Client, or give one as client=..."
            ) from error
    if not isinstance(given, Client):
        raise TypeError(f"client must be a distributed.Client or None; got {type(given).__name__}.")
    if given.asynchronous:
        raise ValueError(
            "client is asynchronous, and fit waits for its answers: give a client that was made "
            "with asynchronous=False."
        )
    return given


class Cluster:
    """Parts of data on a cluster, and what is done to them."""

    def __init__(self, client: Client, parts: list[Any], size: float = float("nan")) -> None:
        self._client = client
        self._parts = parts
        self._shared: dict[int, tuple[Any, Any]] = {}
        if size <= self._room():
            self._hold()

    def __call__(self, step: Any, combine: Callable[[Any, Any], Any]) -> Any:
        """Return what the parts bring together, in the same order whoever answers first."""
        with _Pending(self._client) as pending:
            futures = pending.add(self._map(step))
            name, level = f"{step.name}-{getattr(combine, 'name', 'add')}", 0
            together = 2 if hasattr(combine, "name") else _TOGETHER
            token = _token()
            while len(futures) > 1:
                level += 1
                groups = range(0, len(futures), together)
                futures = pending.add(
                    [
                        self._client.submit(
                            _combined,
                            combine,
                            futures[start : start + together],
                            key=f"parsimon-{name}-{token}-{level}-{start}",
                            pure=False,
                        )
                        for start in groups
                    ]
                )
            result = futures[0].result()
        if isinstance(result, (Summary, Extent)) and result.size <= self._room():
            self._hold()
        return result

    def keep(self, step: Any, size: int) -> Callable[[Any, Any], Any]:
        """Return a map and a reduce of what a step makes of the parts, so many bytes in all."""
        if size > self._room():
            return lambda then, combine: self(Chain(step, then), combine)
        kept = Cluster(self._client, self._map(step))
        kept._shared = self._shared
        return kept

    def _room(self) -> float:
        workers = self._client.scheduler_info()["workers"].values()
        return _ROOM * sum(worker["memory_limit"] or _UNLIMITED for worker in workers)

    def _hold(self) -> None:
        """Have the cluster keep the data, which are then made or read once."""
        lazy = [part for part in self._parts if isinstance(part, tuple)]
        flat = [item for part in lazy for item in part if isinstance(item, Delayed)]
        held = iter(self._client.persist(flat) if flat else [])
        self._parts = [
            tuple(next(held) if isinstance(item, Delayed) else item for item in part)
            if isinstance(part, tuple)
            else part
            for part in self._parts
        ]

    def _map(self, step: Any) -> list[Any]:
        step, shared = without_shared(step)
        known = None if shared is None else self._share(shared)
        token = _token()
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "16 GiB"}):
            one = delayed(step, pure=False, traverse=False)
            tasks = [
                delayed(_done, pure=False)(
                    one,
                    known,
                    number,
                    part,
                    dask_key_name=f"parsimon-{step.name}-{token}-{number}",
                )
                for number, part in enumerate(self._parts)
            ]
            futures: list[Any] = self._client.compute(tasks, optimize_graph=False)
        return futures

    def _share(self, value: Any) -> Any:
        """Return a future of what many tasks need: sent once, and there again if it gets lost."""
        if id(value) not in self._shared:
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "16 GiB"}):
                future = self._client.submit(
                    _same, value, key=f"parsimon-model-{_token()}", pure=False
                )
            # The value is kept, too, so that no other object has its number.
            self._shared = {id(value): (value, future)}
        return self._shared[id(value)][1]


class _Pending:
    """Futures that are cancelled if waiting for them ends early."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._futures: list[Any] = []

    def __enter__(self) -> _Pending:
        return self

    def add(self, futures: list[Any]) -> list[Any]:
        self._futures += futures
        return futures

    def __exit__(self, kind: Any, *error: object) -> None:
        if kind is not None:
            self._client.cancel(self._futures, asynchronous=False)
        self._futures = []


def _token() -> str:
    # It begins with a digit: the dashboard shows what comes before as the name of the task.
    return f"0{uuid.uuid4().hex[:11]}"


def _same(value: Any) -> Any:
    return value


def _done(step: Any, shared: Any, number: int, part: tuple[Any, ...]) -> Any:
    return with_shared(step, shared)(number, *part)


def _combined(combine: Callable[[Any, Any], Any], found: list[Any]) -> Any:
    total = found[0]
    for other in found[1:]:
        total = combine(total, other)
    return total

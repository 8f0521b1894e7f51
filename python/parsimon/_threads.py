"""How many threads the core uses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from . import _core
from ._checks import is_integer


def set_num_threads(threads: int) -> None:
    """Set how many threads the products of large matrices use, in training and in prediction.

    At first it is ``OMP_NUM_THREADS`` if that is set, as it is in the workers of joblib and Dask,
    or else as many as there are processors. Results are the same to the last bit with any number.

    Parameters
    ----------
    threads : int
        At least 1.

    Examples
    --------
    >>> import parsimon
    >>> before = parsimon.get_num_threads()
    >>> parsimon.set_num_threads(2)
    >>> parsimon.get_num_threads()
    2
    >>> parsimon.set_num_threads(before)
    """
    if not is_integer(threads):
        raise ValueError(f"threads must be an integer of at least 1; got {threads!r}.")
    _core.set_num_threads(int(threads))


def get_num_threads() -> int:
    """Return how many threads the products of large matrices use.

    Returns
    -------
    int
        What :func:`set_num_threads` was given last.
    """
    return _core.get_num_threads()


def check_n_jobs(name: str, value: Any) -> None:
    """Refuse what is neither a number of threads, nor -1 for all processors, nor None."""
    if value is None or (is_integer(value) and (value == -1 or value >= 1)):
        return
    raise ValueError(
        f"{name} must be an integer of at least 1, -1 for all processors, or None for "
        f"parsimon.get_num_threads(); got {value!r}."
    )


def threads_of(n_jobs: int | None) -> AbstractContextManager[None]:
    """Have the core use this many threads for what this thread asks of it."""
    return _AS_EVER if n_jobs is None else _limited(n_jobs)


_AS_EVER = nullcontext()
_MOST_THREADS = 256


@contextmanager
def _limited(n_jobs: int) -> Iterator[None]:
    check_n_jobs("n_jobs", n_jobs)
    threads = _core.available_processors() if n_jobs == -1 else int(n_jobs)
    before = _core.limit_threads_here(min(threads, _MOST_THREADS))
    try:
        yield
    finally:
        _core.limit_threads_here(before)

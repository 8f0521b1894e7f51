"""How many threads the core uses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from . import _core


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
    if not _is_integer(threads):
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


def check_n_jobs(n_jobs: Any) -> None:
    """Refuse what is neither a number of threads, nor -1 for all processors, nor None."""
    if n_jobs is None or (_is_integer(n_jobs) and (n_jobs == -1 or n_jobs >= 1)):
        return
    raise ValueError(
        f"n_jobs must be an integer of at least 1, -1 for all processors, or None for "
        f"parsimon.get_num_threads(); got {n_jobs!r}."
    )


@contextmanager
def threads_of(n_jobs: int | None) -> Iterator[None]:
    """Have the core use so many threads for what this thread asks of it."""
    if n_jobs is None:
        yield
        return
    check_n_jobs(n_jobs)
    threads = _core.available_processors() if n_jobs == -1 else int(n_jobs)
    before = _core.limit_threads_here(min(threads, _MOST_THREADS))
    try:
        yield
    finally:
        _core.limit_threads_here(before)


_MOST_THREADS = 256


def _is_integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)

"""Learning from data on several machines: pieces that need only a map and a reduce.

:func:`statistics` of parts of the data are sums, from which :func:`solve` finds the weights on a
dictionary; :func:`fit` and :func:`partial_fit` do all of it, with whatever maps and reduces: Dask
(:mod:`parsimon.dask` does that), Spark, Ray, or a list in memory.
"""

from ._fit import fit, partial_fit
from ._statistics import Statistics, dumps, loads, solve, statistics

__all__ = ["Statistics", "dumps", "fit", "loads", "partial_fit", "solve", "statistics"]

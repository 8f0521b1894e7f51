"""Probabilities of many classes from those of all pairs of them (Wu, Lin, Weng 2004)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parsimon._formula import binary

Array = NDArray[np.float64]


def pairwise_coupling(values: Array, slope: Array, offset: Array, classes: int) -> Array:
    """Return the probability of each class, as LIBSVM computes it.

    The logit of a pair's first class is ``slope * value + offset``.
    """
    first, second = np.triu_indices(classes, 1)
    pairs = np.full((len(values), classes, classes), 0.5)
    for k, (i, j) in enumerate(zip(first, second, strict=True)):
        share = binary(values[:, k] * slope[k] + offset[k])[:, 1]
        share = np.clip(share, 1e-7, 1 - 1e-7)
        pairs[:, i, j], pairs[:, j, i] = share, 1 - share
    return _solve(pairs)


def _solve(pairs: Array) -> Array:
    """Minimise sum over pairs of (r_ji p_i - r_ij p_j)^2, by LIBSVM's iteration."""
    count, classes = pairs.shape[:2]
    others = ~np.eye(classes, dtype=bool)
    swapped = np.swapaxes(pairs, 1, 2)
    quadratic = np.where(others, -swapped * pairs, 0.0)
    diagonal = np.where(others, swapped**2, 0.0).sum(axis=2)
    quadratic[:, np.arange(classes), np.arange(classes)] = diagonal
    p = np.full((count, classes), 1 / classes)
    active = np.arange(count)
    for _ in range(max(100, classes)):
        q = quadratic[active]
        qp = np.einsum("nij,nj->ni", q, p[active])
        pqp = (p[active] * qp).sum(axis=1)
        going = np.abs(qp - pqp[:, None]).max(axis=1) >= 0.005 / classes
        active, q, qp, pqp = active[going], q[going], qp[going], pqp[going]
        if not len(active):
            break
        part = p[active]
        for t in range(classes):
            own = q[:, t, t]
            step = (-qp[:, t] + pqp) / own
            part[:, t] += step
            pqp = (pqp + step * (step * own + 2 * qp[:, t])) / (1 + step) ** 2
            qp = (qp + step[:, None] * q[:, t]) / (1 + step)[:, None]
            part /= (1 + step)[:, None]
        p[active] = part
    return p

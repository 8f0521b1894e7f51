"""Algorithm 1 of the POLK paper as printed, in arithmetic of 50 digits."""

from dataclasses import dataclass

import mpmath
import numpy as np

mp = mpmath.mp.clone()
mp.dps = 50

# Pivots below this are those of points that repeat others exactly.
NOTHING = mpmath.mpf("1e-35")


def squared_distance(x, y):
    return sum(((a - b) ** 2 for a, b in zip(x, y, strict=True)), mp.mpf(0))


def gaussian(bandwidth):
    h = mp.mpf(bandwidth)
    return lambda x, y: mp.exp(-squared_distance(x, y) / (2 * h * h))


def laplacian(bandwidth):
    h = mp.mpf(bandwidth)
    return lambda x, y: mp.exp(-sum(abs(a - b) for a, b in zip(x, y, strict=True)) / h)


def matern(bandwidth, nu):
    def kernel(x, y):
        s = mp.sqrt(2 * mp.mpf(nu) * squared_distance(x, y)) / mp.mpf(bandwidth)
        polynomial = {0.5: 1, 1.5: 1 + s, 2.5: 1 + s + s * s / 3}[nu]
        return polynomial * mp.exp(-s)

    return kernel


def cauchy(bandwidth):
    h = mp.mpf(bandwidth)
    return lambda x, y: 1 / (1 + squared_distance(x, y) / (h * h))


def polynomial(degree, gamma, coef0):
    def kernel(x, y):
        product = sum((a * b for a, b in zip(x, y, strict=True)), mp.mpf(0))
        return (mp.mpf(gamma) * product + mp.mpf(coef0)) ** degree

    return kernel


def exact(values):
    """Turn an array into nested lists of numbers of 50 digits."""
    return [[mp.mpf(float(value)) for value in row] for row in np.atleast_2d(values)]


def gram(kernel, points):
    rows = exact(points) if len(points) else []
    return [[kernel(x, y) for y in rows] for x in rows]


def squared_norm(matrix, weights):
    """Return tr(W' K W)."""
    total = mp.mpf(0)
    for i, row in enumerate(matrix):
        for j, value in enumerate(row):
            products = zip(weights[i], weights[j], strict=True)
            total += value * sum((a * b for a, b in products), mp.mpf(0))
    return total


def distance(kernel, f, g):
    """Return the distance of two expansions; the points of g are among those of f."""
    points = f.dictionary
    weights = exact(columns(f.weights))
    rows = {tuple(point): i for i, point in enumerate(points.tolist())}
    for point, row in zip(g.dictionary.tolist(), exact(columns(g.weights)), strict=False):
        twin = weights[rows[tuple(point)]]
        for c, value in enumerate(row):
            twin[c] -= value
    return mp.sqrt(abs(squared_norm(gram(kernel, points), weights)))


def columns(weights):
    return weights[:, None] if weights.ndim == 1 else weights


@dataclass
class Compression:
    removed: list
    kept: list
    error: object


def brute_force_komp(matrix, weights, budget, protected=()):
    """For every candidate of every round one least-squares problem."""
    target = [
        [sum((k * w[c] for k, w in zip(row, weights, strict=True)), mp.mpf(0)) for row in matrix]
        for c in range(len(weights[0]) if weights else 0)
    ]
    length = squared_norm(matrix, weights)
    kept, removed, error = list(range(len(matrix))), [], mp.mpf(0)
    while True:
        costs = {
            j: squared_residual(matrix, target, length, [i for i in kept if i != j])
            for j in kept
            if j not in protected
        }
        best = min(costs, key=costs.get, default=None)
        if best is None or mp.sqrt(costs[best]) > budget:
            return Compression(removed, kept, error)
        kept.remove(best)
        removed.append(best)
        error = mp.sqrt(costs[best])


def squared_residual(matrix, target, length, kept):
    """Return the squared distance of the function to the span of the kept points.

    `target` holds the function's values at all points. An orthonormal basis of the span is built
    by Cholesky factorisation; points that bring nothing new are left out.
    """
    rows, explained = [], mp.mpf(0)
    pivots, coordinates = [], []
    for i in kept:
        row = []
        for previous, pivot in zip(rows, pivots, strict=True):
            inner = sum((a * b for a, b in zip(row, previous, strict=False)), mp.mpf(0))
            row.append((matrix[i][pivot[0]] - inner) / pivot[1])
        rest = matrix[i][i] - sum((a * a for a in row), mp.mpf(0))
        if rest <= NOTHING * matrix[i][i]:
            continue
        root = mp.sqrt(rest)
        values = []
        for c, column in enumerate(target):
            inner = sum((a * b[c] for a, b in zip(row, coordinates, strict=True)), mp.mpf(0))
            values.append((column[i] - inner) / root)
        explained += sum((v * v for v in values), mp.mpf(0))
        rows.append([*row, root])
        pivots.append((i, root))
        coordinates.append(values)
    return max(mp.mpf(0), length - explained)

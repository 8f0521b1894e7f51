"""The SPPPOT family written down as in the paper: slow, direct, and what the core is held to.

Functions are relative to the uniform density of the domain: with V its volume, the density is
F(z(x)) / V, and the integral over the domain is the mean of F(z) over the nodes, the midpoints of
the grid's cells, so the quadrature weight h is one over their number. On the unit cube all is as
printed. Every function z is given by its points and one row of weights for each.
"""

from copy import copy
from dataclasses import dataclass, field
from itertools import pairwise, product

import numpy as np

# Iterate t counts in an average about like t to this power.
FIRST_ORDER_RECENCY = 3
NEWTON_RECENCY = 9


def gaussian(bandwidth):
    def kernel(A, B):
        return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=-1) / (2 * bandwidth**2))

    return kernel


def laplacian(bandwidth):
    """Return a kernel whose Gram matrices are far from singular however near the points are."""

    def kernel(A, B):
        return np.exp(-np.abs(A[:, None] - B[None]).sum(axis=-1) / bandwidth)

    return kernel


def midpoints(size, domain=((0.0, 1.0),)):
    """Return the midpoints of `size` cells along each axis, the last axis running fastest."""
    axes = [low + (high - low) * (np.arange(size) + 0.5) / size for low, high in domain]
    return np.array(list(product(*axes)))


@dataclass
class Fit:
    """The last iterate and the running average, on the same points; `orders` of every batch."""

    kernel: object
    points: np.ndarray
    weights: np.ndarray
    average: np.ndarray
    orders: list = field(default_factory=list)
    budgets: list = field(default_factory=list)

    def z(self, X, *, average=True):
        return self.kernel(X, self.points) @ (self.average if average else self.weights)


# -- mirror maps: F, dF/dz and d(log F)/dz at points x where the function has the values z ---------


def kl(z, x):
    return np.exp(z), np.exp(z), np.ones_like(z)


def euclidean(z, x):
    return z, np.ones_like(z), reciprocal(z)


def mahalanobis(reference):
    def mirror(z, x):
        return reference(x) * z, reference(x), reciprocal(z)

    return mirror


def uniform_start(nodes, kernel):
    """Return equal weights with which z has mean 1: for maps that take 0 to the density 0."""
    return np.full(len(nodes), len(nodes) / kernel(nodes, nodes).sum())


def reciprocal(values):
    """Return 1/F; a value of 0 is taken for a vanishing positive one."""
    return np.array([np.inf if value == 0 else 1 / value for value in values])


def pseudo_gradient(weights, points, x, nodes, kernel, *, eta, mirror, gradient):
    """Return a and b of g = sum_i a_i k(x_i, .) + sum_u b_u k(u, .) for the mini-batch x.

    No sample moves the function by more than its kernel, eta |a_i| <= 1, where 1 / F may be large.
    """
    h = 1 / len(nodes)
    F, _, log_slope = mirror(kernel(x, points) @ weights, x)
    _, slope_at_nodes, _ = mirror(kernel(nodes, points) @ weights, nodes)
    if gradient == "kernel_embedding":  # (26): of -log f(x) + h sum_u f(u) by f
        a, b = -reciprocal(F) / len(x), np.full(len(nodes), h)
    else:  # the same by z
        a, b = -log_slope / len(x), h * slope_at_nodes
    if gradient == "sign":  # of the gradient by z, integrated by the nodes
        G = kernel(nodes, x) @ a + kernel(nodes, nodes) @ b
        a, b = np.zeros(len(x)), h * np.sign(G)
    if gradient == "likelihood" and mirror is kl:
        return a, b
    return np.clip(a, -1 / eta, 1 / eta), b


# -- compression -----------------------------------------------------------------------------------


def projection(gram, weights, kept):
    """Return the weights on the kept points of the nearest function to the one given."""
    return np.linalg.solve(gram[np.ix_(kept, kept)], gram[kept] @ weights)


def squared_distance(gram, weights, kept, fitted):
    moved = weights.copy()
    moved[kept] -= fitted
    return np.einsum("ic,ij,jc->", moved, gram, moved)


def komp(gram, weights, budget, protected=0):
    """Return the points that KOMP keeps of all, of which the first `protected` are never removed.

    Every round starts from nothing: the inverse of the Gram matrix of the points that are left,
    and the projection of the function as it was given.
    """
    kept = np.arange(len(weights))
    while len(kept) > protected:
        inverse = np.linalg.solve(gram[np.ix_(kept, kept)], np.eye(len(kept)))
        fitted = projection(gram, weights, kept)
        spent = squared_distance(gram, weights, kept, fitted)
        costs = spent + (fitted**2).sum(axis=1) / np.diag(inverse)
        best = protected + np.argmin(costs[protected:])
        if costs[best] > budget**2:
            break
        kept = np.delete(kept, best)
    return kept


@dataclass
class AdaptiveBudget:
    """eps = alpha eta, alpha driven towards a model order (section VI)."""

    alpha: float
    target: int
    lowest: float = 0.0
    highest: float = np.inf

    def observe(self, model_order):
        change = np.clip((model_order - self.target) * 0.001, -0.1, 0.1)
        self.alpha = np.clip(self.alpha * (1 + change), self.lowest, self.highest)


def compress(fit, budget, eta, protected, share=1.0):
    """Compress the last iterate; the average is projected on the points that are left."""
    adaptive = isinstance(budget, AdaptiveBudget)
    eps = share * (budget.alpha * eta if adaptive else budget)
    if eps > 0:
        gram = fit.kernel(fit.points, fit.points)
        kept = komp(gram, fit.weights, eps, protected)
        fit.weights = projection(gram, fit.weights, kept)
        fit.average = projection(gram, fit.average, kept)
        fit.points = fit.points[kept]
    if adaptive:
        budget.observe(len(fit.points))
    fit.orders.append(len(fit.points))
    fit.budgets.append(eps)


def average(fit, t, recency):
    """Let iterate number t = 1, 2, ... into the average."""
    fit.average = fit.average + (recency + 1) / (t + recency) * (fit.weights - fit.average)


def append(fit, points, weights):
    """Add points with weights that are not 0; one that is in the dictionary has its weights raised.

    The average has none of the new points yet.
    """
    for point, row in zip(points, weights, strict=True):
        twin = np.flatnonzero((fit.points == point).all(axis=1))
        if len(twin):
            fit.weights[twin[0]] += row
        elif row.any():
            fit.points = np.vstack([fit.points, point])
            fit.weights = np.vstack([fit.weights, row])
            fit.average = np.vstack([fit.average, np.zeros_like(row)])


# -- the algorithms --------------------------------------------------------------------------------


def algorithm1(
    X,
    nodes,
    kernel,
    *,
    eta,
    epochs=1,
    batch=30,
    budget=0.0,
    mirror=kl,
    gradient="likelihood",
    method="mirror_descent",
    regularization=0.0,
    start=None,
    until=None,
):
    """SPPPOT over the mini-batches of X in their order; a budget of 0 keeps every point.

    A mini-batch with too few samples takes their share of the step and the budget.

    `budget` is a number or an AdaptiveBudget, `start` the first weights of the nodes, 0 unless
    given. Dual averaging (appendix D) keeps s with z = -eta s and compresses s; what is returned is
    z in either case. Ends early once until(model orders so far) is true.
    """
    # What is kept is z or s, and z is `scale` times what is kept.
    scale = {"mirror_descent": 1.0, "dual_averaging": -eta}[method]
    budget = copy(budget)
    start = np.zeros(len(nodes)) if start is None else np.asarray(start)
    fit = Fit(kernel, nodes.copy(), start[:, None] / scale, np.zeros((len(nodes), 1)))
    for t, x in enumerate(batches(X, batch) * epochs, start=1):
        z, share = scale * fit.weights[:, 0], len(x) / batch
        rate = share * eta
        a, b = pseudo_gradient(
            z, fit.points, x, nodes, kernel, eta=rate, mirror=mirror, gradient=gradient
        )
        fit.weights = (1 - rate * regularization) * fit.weights
        fit.weights[: len(nodes), 0] -= rate * b / scale  # (14), (88)
        append(fit, x, (-rate * a / scale)[:, None])
        compress(fit, budget, eta, protected=len(nodes), share=share)
        average(fit, t, FIRST_ORDER_RECENCY)
        if until and until(fit.orders):
            break
    fit.weights, fit.average = scale * fit.weights[:, 0], scale * fit.average[:, 0]
    return fit


def newton_gradient(weights, x, dictionary, nodes, kernel):
    """(33): the gradient of one sample's loss by the weights, with any nodes for the integral."""
    at_nodes = kernel(nodes, dictionary)
    return -kernel(x[None], dictionary)[0] + at_nodes.T @ np.exp(at_nodes @ weights) / len(nodes)


def algorithm3(X, dictionary, nodes, kernel, *, eta, epochs=1, delta=1.0, start=None):
    """Online quasi-Newton on a fixed dictionary, sample by sample."""
    start = np.zeros(len(dictionary)) if start is None else np.asarray(start)
    fit = Fit(kernel, dictionary, start, start)
    A = delta * np.eye(len(dictionary))
    for t, x in enumerate([*X] * epochs, start=1):
        g = newton_gradient(fit.weights, x, dictionary, nodes, kernel)
        A = A + np.outer(g, g)  # (28)
        fit.weights = fit.weights - eta * np.linalg.solve(A, g)  # (29)
        average(fit, t, NEWTON_RECENCY)
    return fit


def is_stable(orders, patience, cap):
    """Tell whether the first phase is over.

    It is once the model order has stayed in a band of width max(2, 2 % of its upper end) for
    `patience` mini-batches in a row, or after `cap` of them.
    """
    band = []
    for order in orders:
        band.append(order)
        if max(band) - min(band) > max(2, 0.02 * max(band)):
            band = [order]
    return len(band) >= patience or len(orders) >= cap


def algorithm4(X, nodes, kernel, *, first, second, quadrature, patience, cap, epochs=1):
    """Algorithm 1 until the model order is stable; then Algorithm 3 on the rest of the stream.

    `first` and `second` are the settings of the two; quadrature(model order) are the nodes of the
    second. Returns the fit, and the samples that the first phase took.
    """
    found = algorithm1(
        X,
        nodes,
        kernel,
        epochs=epochs,
        until=lambda orders: is_stable(orders, patience, cap),
        **first,
    )
    stream = batches(X, first["batch"]) * epochs
    taken = sum(map(len, stream[: len(found.orders)]))
    rest = np.vstack([X] * epochs)[taken:]
    finer = quadrature(len(found.points))
    return algorithm3(rest, found.points, finer, kernel, start=found.average, **second), taken


# -- the classifier (appendix E) -------------------------------------------------------------------


def softmax(values):
    shifted = np.exp(values - values.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def classifier_gradient(z, y):
    """(94): the gradient of log sum_c exp(f_c) - f_y with respect to f, at f = exp(z)."""
    return softmax(np.exp(z)) - np.eye(z.shape[1])[y]


def classifier(X, y, kernel, *, classes, eta, epochs=1, batch=32, budget=0.0, regularization=0.0):
    """SPPPOT for classes 0, 1, ...: one function z_c for each, on one dictionary."""
    budget = copy(budget)
    fit = Fit(kernel, X[:0], np.zeros((0, classes)), np.zeros((0, classes)))
    stream = [*zip(batches(X, batch), batches(y, batch), strict=True)] * epochs
    for t, (x, label) in enumerate(stream, start=1):
        g = classifier_gradient(kernel(x, fit.points) @ fit.weights, label)
        share = len(x) / batch
        fit.weights = (1 - share * eta * regularization) * fit.weights
        append(fit, x, -share * eta * g / len(x))
        compress(fit, budget, eta, protected=0, share=share)
        average(fit, t, FIRST_ORDER_RECENCY)
    return fit


def batches(values, size):
    edges = [*range(0, len(values), size), len(values)]
    return [values[start:stop] for start, stop in pairwise(edges)]

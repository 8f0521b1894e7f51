"""What the tests of the POLK estimators share: settings, data and a direct implementation."""

import copy
import pickle
from functools import cache

import numpy as np
import pytest

from parsimon import _io, kernels
from parsimon.datasets import make_multidist

# Every setting given: what is learned does not depend on the rules for the others.
GIVEN = {
    "kernel": kernels.Gaussian(0.7),
    "learning_rate": 1.5,
    "parsimony": 0.01,
    "regularization": 1e-4,
    "batch_size": 16,
    "epochs": 2,
    "random_state": 0,
}
ONE_PASS = {**GIVEN, "epochs": 1, "shuffle": False}
# The papers' algorithm: gradient steps are the weights.
SGD = {**GIVEN, "solver": "sgd"}
ONE_PASS_OF_SGD = {**ONE_PASS, "solver": "sgd"}
REGRESSION_LOSSES = ["squared", "huber", "huber(0.5)", "epsilon_insensitive", "pinball(0.3)"]


def state(estimator):
    """Return every bit of a fitted estimator."""
    return _io.to_archive(estimator).to_bytes()


def everything(model):
    """Return every bit of an estimator, fitted or not."""
    core = model._model.to_archive().to_bytes() if hasattr(model, "_model") else b""
    return core, pickle.dumps(vars(model) | {"_model": None})


def assert_refused(model, call, message, error=ValueError):
    before = everything(model)
    with pytest.raises(error, match=message):
        call(model)
    assert everything(model) == before


def assert_keeps_what_is_done(model, block, message, error=ValueError):
    """A block is learned up to the mini-batch that fails; return how many samples that are."""
    twin, before = copy.deepcopy(model), getattr(model, "t_", 0)
    with pytest.raises(error, match=message):
        model.partial_fit(*block)
    done = getattr(model, "t_", 0) - before
    assert done in range(0, len(block[0]), model.batch_size)
    if done:
        twin.partial_fit(*(part[:done] for part in block))
    assert everything(model)[0] == everything(twin)[0]
    return done


def spoiled(values, value):
    changed = np.array(values, dtype=float)
    changed[7] = value
    return changed


# Weights of a hundred samples.
bad_weights = pytest.mark.parametrize(
    ("weight", "message"),
    [
        (spoiled(np.ones(100), -1.0), "[Nn]egative"),
        (spoiled(np.ones(100), np.nan), "NaN"),
        (spoiled(np.ones(100), np.inf), "infinity"),
        (np.ones(99), "sample_weight.shape"),
        (np.ones((100, 2)), "1D array or scalar"),
        (np.full(100, "a"), "could not convert"),
    ],
    ids=["negative", "NaN", "infinity", "too few", "two columns", "text"],
)


def assert_number_of_targets_stays(regressor, X, targets):
    pair = np.column_stack([targets, targets])
    model = regressor.fit(X, targets)
    assert_refused(model, lambda m: m.partial_fit(X, pair), "2 targets .* learned 1")
    model = regressor.fit(X, pair)
    assert_refused(model, lambda m: m.partial_fit(X, targets), "1 targets .* learned 2")
    assert_refused(model, lambda m: m.partial_fit(X, pair[:, :, None]), "3|dim")


@cache
def task():
    """Return samples and labels of five classes."""
    return make_multidist(400, random_state=0)


@cache
def curve():
    """Return samples and a smooth target with a little noise."""
    random = np.random.RandomState(0)
    X = random.uniform(-2, 2, size=(300, 2))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.05 * random.randn(len(X))


def gaussian(A, B, bandwidth=0.7):
    return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=-1) / (2 * bandwidth**2))


def compress(gram, W, budget):
    """KOMP as printed: each removal refits all other weights by least squares."""
    target, left = W, np.arange(len(W))
    while len(left):
        costs, fits = [], []
        for j in range(len(left)):
            rest = np.delete(left, j)
            fits.append(np.linalg.solve(gram[np.ix_(rest, rest)], gram[rest] @ target))
            moved = target.copy()
            moved[rest] -= fits[-1]
            costs.append(np.einsum("ic,ij,jc->", moved, gram, moved))
        best = int(np.argmin(costs))
        if costs[best] > budget**2:
            break
        left, W = np.delete(left, best), fits[best]
    return left, W


def reference(X, y, gradient, outputs, budget, rate=1.5, shrinkage=1e-4, batch=16):
    """POLK in a few lines: the last iterate, and the average if nothing is compressed."""
    D, W, mean = np.empty((0, X.shape[1])), np.empty((0, outputs)), np.empty((0, outputs))
    for step, start in enumerate(range(0, len(X), batch), start=1):
        x, t = X[start : start + batch], y[start : start + batch]
        share = len(x) / batch
        G = gradient(gaussian(x, D) @ W, t)
        active = np.any(G != 0, axis=1)
        D = np.vstack([D, x[active]])
        W = np.vstack([(1 - share * rate * shrinkage) * W, -rate / batch * G[active]])
        if budget > 0 and active.any():
            left, W = compress(gaussian(D, D), W, share * budget)
            D = D[left]
        elif budget == 0:
            mean = np.vstack([mean, np.zeros((len(W) - len(mean), outputs))])
            mean += 4 / (step + 3) * (W - mean)
    return D, W, mean


def squared_gradient(F, t):
    return F - t[:, None]


def hinge_gradient(F, t):
    rows, G = np.arange(len(t)), np.zeros_like(F)
    wrong = F.copy()
    wrong[rows, t] = -np.inf
    rival = wrong.argmax(axis=1)
    active = 1 + F[rows, rival] - F[rows, t] > 0
    G[rows[active], rival[active]] = 1
    G[rows[active], t[active]] = -1
    return G


def softmax_gradient(F, t):
    P = np.exp(F - F.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    P[np.arange(len(t)), t] -= 1
    return P

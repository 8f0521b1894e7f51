"""What every risk promises, for both estimators and all data sets; minutes, so marked slow."""

import numpy as np
import pytest
from scipy.optimize import minimize
from test_colk_newton import DATA, REGRESSION, every_risk, learner, objective, on_all_data, own

from parsimon import kernels

pytestmark = pytest.mark.slow


@every_risk
@on_all_data
def test_the_objective_is_within_two_percent_of_a_batch_optimum_on_the_points(name, risk):
    """With kernel and regularization given, the regularised objective has one minimum."""
    X, y = DATA[name](800, 0)
    width, ridge = (0.3 if X.shape[1] == 1 else 1.0), 1e-3
    kernel = kernels.Gaussian(width)
    model = learner(name, risk, kernel=kernel, regularization=ridge).fit(X, y)
    D, outputs = model.dictionary_, model.weights_.shape[1]
    scale = model._scale_[0] if name in REGRESSION else 1.0
    if name in REGRESSION:
        targets = ((y - model.intercept_[0]) / scale)[:, None]
    else:
        numbers = np.searchsorted(model.classes_, y).astype(float)
        targets = numbers[:, None]
    loss, shares = model._core_loss(outputs), np.full(len(X), 1 / len(X))
    K, G = kernel(X, D), kernel(D)

    def regularised(flat):
        weights = flat.reshape(len(D), outputs)
        losses, slopes = loss.evaluate(np.ascontiguousarray(K @ weights), targets)
        value, counts = own(risk)(losses, shares)
        gradient = K.T @ ((shares * counts)[:, None] * slopes) + ridge * G @ weights
        return value + ridge / 2 * np.sum(weights * (G @ weights)), gradient.ravel()

    # In coordinates in which the ridge is round; from 0 and from what was found.
    values, vectors = np.linalg.eigh(G)
    kept = values > 1e-10 * values[-1]
    turn = vectors[:, kept] / np.sqrt(values[kept])

    def turned(flat):
        value, gradient = regularised((turn @ flat.reshape(-1, outputs)).ravel())
        return value, (turn.T @ gradient.reshape(-1, outputs)).ravel()

    found = model.weights_ / scale
    starts = (np.zeros(turn.shape[1] * outputs), (turn.T @ G @ found).ravel())
    options = {"maxiter": 5000, "maxfun": 10000, "ftol": 1e-13}
    best = min(
        minimize(turned, start, jac=True, method="L-BFGS-B", options=options).fun
        for start in starts
    )
    assert regularised(found.ravel())[0] <= 1.02 * best


@every_risk
@on_all_data
def test_the_objective_is_not_worse_with_four_times_the_epochs(name, risk):
    X, y = DATA[name](4000, 2)
    few, many = (learner(name, risk, epochs=n).fit(X[:2000], y[:2000]) for n in (2, 8))
    held_out = X[2000:], y[2000:]
    assert objective(many, risk, *held_out) <= 1.02 * objective(few, risk, *held_out)

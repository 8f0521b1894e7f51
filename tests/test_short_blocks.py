"""Streams that come in blocks smaller than a mini-batch: the same samples must not run away.

A mini-batch takes the mean of its gradients times the learning rate, which is chosen (or bounded)
for batch_size samples. A shorter one takes the same step with fewer samples, up to batch_size times
as much per sample: too much wherever that rate relies on their being many.
"""

import numpy as np
import pytest
from sklearn.base import clone

from parsimon import COLKRegressor, PolicyEvaluator, POLKRegressor, kernels
from parsimon.datasets import make_regression_outliers

REGRESSORS = {
    "POLK": POLKRegressor(kernel=kernels.Gaussian(0.06)),
    **{
        risk: COLKRegressor(risk, kernel=kernels.Gaussian(0.06))
        for risk in ("semideviation", "semivariance", "moments", "cvar")
    },
}


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("name", REGRESSORS)
def test_regression(name, size):
    X, y = make_regression_outliers(1100, random_state=0)
    model = clone(REGRESSORS[name]).partial_fit(X[:500], y[:500])
    for start in range(500, 1100, size):
        model.partial_fit(X[start : start + size], y[start : start + size])
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("name", REGRESSORS)
def test_one_sample_more_than_whole_mini_batches(name):
    """The last step of an epoch is one of a single sample; 1,024 samples give 0.98."""
    X, y = make_regression_outliers(6000, random_state=0)
    settings = {"average": False, "epochs": 5, "random_state": 0}
    model = clone(REGRESSORS[name]).set_params(**settings)
    if name == "POLK":
        model.set_params(refit=False)
    scores = [model.fit(X[:n], y[:n]).score(X[2000:], y[2000:]) for n in (1024, 1025)]
    assert scores[1] > scores[0] - 0.01


@pytest.mark.parametrize("method", ["gtd", "td"])
def test_policy_evaluation(method):
    """One transition at a time, as they come from an environment."""
    random = np.random.RandomState(0)
    states = random.uniform(size=(1500, 1))
    following = np.clip(states + 0.1 * random.randn(1500, 1), 0, 1)
    rewards = np.sin(6 * states[:, 0])
    model = PolicyEvaluator(method, kernel=kernels.Gaussian(0.05))
    model.partial_fit(states[:500], rewards[:500], following[:500])
    for i in range(500, 1500):
        model.partial_fit(states[i : i + 1], rewards[i : i + 1], following[i : i + 1])
    # No reward is beyond 1: |V| <= 1 / (1 - discount).
    assert np.abs(model.predict(states)).max() < 20

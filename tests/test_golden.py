"""Model files of every kind that an earlier version wrote: they can still be read, and go on."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import parsimon
from parsimon import (
    BSGDClassifier,
    COLKRegressor,
    HybridIntensity,
    MirrorNewtonIntensity,
    PolicyEvaluator,
    SLKLRegressor,
    SPPPOTIntensity,
    kernels,
)

GOLDEN = Path(__file__).parent / "golden"
LINE = {"domain": (0, 1), "grid_size": 12, "bandwidth": 0.1} | {
    "solver": "sgd",
    "epochs": 3,
    "random_state": 0,
}
GAUSSIAN = {"kernel": kernels.Gaussian(0.4), "random_state": 0}


def data():
    random = np.random.RandomState(0)
    X = random.beta(3, 5, size=(128, 1))
    return X, np.sin(6 * X[:, 0]) + 0.1 * random.randn(128)


def regression(model):
    return model.fit(*data())


def density(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # three epochs are not enough
        return model.fit(data()[0])


def policy(model):
    X, y = data()
    return model.partial_fit(X, y, np.roll(X, 1))


CASES = {
    "colk": (
        regression,
        COLKRegressor("cvar", learning_rate=0.1, budget=0.05, epochs=2, **GAUSSIAN),
    ),
    "policy_evaluation": (
        policy,
        PolicyEvaluator("gtd", kernel=kernels.Gaussian(0.4), budget=0.05),
    ),
    "spppot": (density, SPPPOTIntensity(**LINE)),
    "mirror_newton": (density, MirrorNewtonIntensity(**LINE)),
    "hybrid": (density, HybridIntensity(**LINE, patience=5)),
    "slkl": (regression, SLKLRegressor(n_columns=30, nu=0.01, **GAUSSIAN)),
    "bsgd": (
        lambda model: model.fit(data()[0], data()[1] > 0),
        BSGDClassifier(max_points=8, learning_rate=0.5, epochs=2, **GAUSSIAN),
    ),
}


def values(model):
    X = np.linspace(0.05, 0.95, 19)[:, None]
    for name in ("decision_function", "predict", "score_samples"):
        if hasattr(model, name):
            # Densities were not divided by their integral then.
            integral = getattr(model, "integral_", 1.0)
            return getattr(model, name)(X) + np.log(integral)
    raise AssertionError(model)


def continued(name, model):
    """Return what the model says after it has gone on learning; SLKL does not learn on."""
    X, y = data()
    if name == "policy_evaluation":
        return values(policy(model))
    if name == "slkl":
        return values(model)
    targets = {"colk": [y], "bsgd": [y > 0]}.get(name, [])
    return values(model.partial_fit(X, *targets))


def write():
    """Write the files anew; only for a kind that has none yet."""
    for name, (train, model) in CASES.items():
        path = GOLDEN / f"{name}_v1.parsimon"
        if path.exists():
            continue
        train(model).save(path)
        expected = {"values": values(model), "continued": continued(name, model)}
        np.savez_compressed(GOLDEN / f"{name}_v1.npz", **expected)


@pytest.mark.parametrize("name", CASES)
def test_the_first_format_can_still_be_read(name):
    path = GOLDEN / f"{name}_v1.parsimon"
    assert path.stat().st_size < 20_000
    model = parsimon.load(path)
    assert type(model) is type(CASES[name][1])
    with np.load(GOLDEN / f"{name}_v1.npz") as file:
        expected = dict(file)
    assert_allclose(values(model), expected["values"], rtol=1e-10, atol=1e-12)
    assert_allclose(continued(name, model), expected["continued"], rtol=1e-6, atol=1e-6)

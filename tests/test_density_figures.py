"""How near the learned densities come to a batch fit; `bench intensity` has all seeds."""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import KFold

from parsimon import HybridIntensity, MirrorNewtonIntensity, SPPPOTIntensity
from parsimon.datasets import load_chicago_crimes, load_curry_shots, make_poisson_gaussian

ALL = [SPPPOTIntensity, MirrorNewtonIntensity, HybridIntensity]


def toy(seed):
    return (
        make_poisson_gaussian(10211, random_state=seed),
        make_poisson_gaussian(1001, random_state=1000 + seed),
    )


def curry(seed):
    del seed
    return tuple(load_curry_shots(subset=part, return_X=True) for part in ("train", "test"))


def chicago(seed):
    del seed
    return tuple(load_chicago_crimes(subset=part, return_X=True) for part in ("train", "test"))


# Data, variance of the kernel, nodes along an axis, what may be lost against the batch fit.
CASES = {
    "toy": (toy, 0.0065, 100, 0.003, range(5)),
    "curry": (curry, 0.0025, 100, 0.01, [0]),
    "chicago": (chicago, 0.01, 21, 0.05, [0]),
}


@pytest.fixture(name="batch_fit")
def _batch_fit(monkeypatch):
    """Import the comparator, which is no part of the installed package."""
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[1])
    return import_module("bench.baselines.intensity").BatchIntensity


def loss(model, X):
    if hasattr(model, "t_"):  # parsimon's densities are normalised
        return 1 - model.score_samples(X)
    return model.integral_ - model.score_samples(X)


@pytest.mark.slow
@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize(
    "case",
    [
        "toy",
        pytest.param("curry", marks=pytest.mark.data("curry_shots")),
        pytest.param("chicago", marks=pytest.mark.data("chicago_crimes_2018")),
    ],
)
def test_near_the_batch_fit_with_steps_by_our_own_rule(case, cls, batch_fit):
    load, variance, nodes, tolerance, seeds = CASES[case]
    for seed in seeds:
        train, test = load(seed)
        settings = {
            "domain": [(0, 1)] * train.shape[1],
            "grid_size": nodes,
            "bandwidth": float(np.sqrt(variance)),
        }
        batch = batch_fit(**settings).fit(train)
        settings["solver"] = "sgd"
        model = cls(**settings, random_state=seed).fit(train)
        above = loss(model, test) - loss(batch, test)
        assert above.mean() <= tolerance
        assert (model.score_samples(test) > -np.inf).all()
        if case == "toy":
            assert abs(model.integral_ - 1) < 0.02
        if case == "chicago" and cls is not SPPPOTIntensity:
            continue  # four times as many epochs take minutes: `bench intensity`
        epochs = round(model.t_ / len(train))
        longer = cls(**settings, random_state=seed, epochs=4 * epochs).fit(train)
        worse = loss(longer, test) - loss(model, test)
        # Paired over the test points: no worse beyond two standard errors.
        assert worse.mean() <= 2 * worse.std() / np.sqrt(len(test)) + 1e-3
        assert (loss(longer, test) - loss(batch, test)).mean() <= tolerance


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("bei", marks=pytest.mark.data("bei")),
        pytest.param("old_faithful", marks=pytest.mark.data("old_faithful")),
    ],
)
def test_not_below_kernel_density_by_cross_validation(name, monkeypatch):
    """Defaults only; two of the folds of `bench densities`, which has all and more data."""
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[1])
    densities = import_module("bench.densities")
    data, gained = densities.DATA[name](), []
    folds = KFold(densities.FOLDS, shuffle=True, random_state=0)
    for train, test in list(folds.split(data.X))[:2]:
        model = SPPPOTIntensity(domain="auto" if data.domain is None else data.domain)
        integral, _ = densities.finely(model.fit(data.X[train]))
        assert abs(integral - 1) < 0.01
        other = densities.KernelDensityByValidation().fit(data.X[train])
        ours = model.score_samples(data.X[test]) - np.log(integral)
        gained.append(float((ours - other.score_samples(data.X[test])).mean()))
    assert np.mean(gained) > 0

"""Never a prediction that is not finite without an error."""

import copy
import warnings

import numpy as np
import pytest
from intensity_common import LINE, PLANE, cloud, toy
from persistence_common import load
from polk_common import GIVEN, everything, task

import parsimon
from parsimon import DivergenceError, MirrorNewtonIntensity, SPPPOTIntensity, _io, kernels


@pytest.mark.parametrize("rate", [1e3, 1e6, 1e12, 1e100])
@pytest.mark.parametrize(
    "model",
    [
        MirrorNewtonIntensity(**LINE),
        MirrorNewtonIntensity(**LINE, damping=1e-6),
        SPPPOTIntensity(**LINE),
        SPPPOTIntensity(**LINE, average=False),
        SPPPOTIntensity(**LINE, method="dual_averaging"),
        SPPPOTIntensity(**LINE, mirror="euclidean"),
        SPPPOTIntensity(**PLANE),
    ],
    ids=str,
)
def test_a_far_too_large_step_is_refused_or_leaves_finite_densities(model, rate):
    model = copy.deepcopy(model).set_params(learning_rate=rate)
    X = toy()[:200] if model.domain == LINE["domain"] else cloud()[:200]
    grid = X[np.argsort(X[:, 0])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of one pass not being enough
        for start in range(0, 200, 20):
            before = everything(model)
            try:
                model.partial_fit(X[start : start + 20])
            except (DivergenceError, ValueError):
                if start == 0:
                    assert everything(model) == before
                return
            density = np.exp(model.score_samples(grid))
            assert not np.isnan(density).any()
            assert np.isfinite(model.intensity(grid)).all()


def test_a_polynomial_from_a_file_predicts_no_nan():
    X, y = task()
    entries = dict(_io.to_archive(parsimon.POLKClassifier(**GIVEN).fit(X[:40], y[:40])))
    sgd = dict(_io.to_archive(parsimon.POLKClassifier(**{**GIVEN, "solver": "sgd"}).fit(X, y)))
    text = "polynomial(1000000,1,1)"
    for each in (entries, sgd):
        try:
            model = load({**each, "kernel": text})
        except (ValueError, DivergenceError):
            continue
        with pytest.raises(DivergenceError, match="beyond the range of finite numbers"):
            model.predict(10 + X[:10])
    expansion = parsimon.KernelExpansion(kernels.Polynomial(1_000_000), X[:5], np.ones(5))
    with pytest.raises((DivergenceError, ValueError), match="finite"):
        expansion(10 + X)
    # The values of the kernel overflow with both signs, which would be NaN.
    signs = parsimon.KernelExpansion(kernels.Polynomial(1_000_000), X[:4], [1.0, -1.0, 1.0, -1.0])
    with pytest.raises((DivergenceError, ValueError), match="finite"):
        signs(10 + np.abs(X))


def test_a_density_from_a_file_is_finite_or_refused():
    model = SPPPOTIntensity(**{**LINE, "solver": "newton"}).fit(toy()[:100])
    entries = dict(_io.to_archive(model))
    for entry, value in (("density.log_integral", -1e99), ("moments", 1e99)):
        stored = np.full_like(entries[entry], value) if np.ndim(entries[entry]) else value
        with pytest.raises((DivergenceError, ValueError)):
            load({**entries, entry: stored}).intensity(toy()[:5])


def test_outside_of_the_domain_a_density_is_zero_wherever_the_point_stands_in_a_block():
    model = SPPPOTIntensity(domain=(0, 1)).fit(np.random.default_rng(0).uniform(size=(100, 1)))
    points = np.array([[1.5], [-0.1], [0.5], [2.0], [3.0], [-7.0], [0.2]])
    inside = (points[:, 0] >= 0) & (points[:, 0] <= 1)
    assert (model.intensity(points)[~inside] == 0).all()
    assert (model.intensity(points)[inside] > 0).all()

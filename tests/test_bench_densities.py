"""``python -m bench densities``: on few samples, that the figures mean what they say."""

import numpy as np
import pytest
from sklearn.neighbors import KernelDensity

import parsimon
from bench import densities


def test_few_samples(run_bench):
    arguments = ["densities", "--data", "toy", "uniform", "smooth", "million", "--samples", "400"]
    _, out, content = run_bench(*arguments)
    found = {promise["name"]: promise["measured"] for promise in content["promises"]}
    for name in ("toy", "uniform"):
        assert found[f"{name}, log-likelihood per point less KernelDensity's"] > -0.05
        assert found[f"{name}, integral off by"] < 0.01
        assert found[f"{name}, likelihood lost with four times the epochs"] == 0
        assert found[f"{name}, time over KernelDensity's"] > 0
    assert found["uniform, largest density over the true one"] < 1.5
    assert all(f"{name}, likelihood per point below a GLM's" in found for name in densities.SMOOTH)
    assert found["a million events in the plane, seconds"] < 10
    assert "integral 1.0" in out


def test_the_fine_integral_is_that_of_the_density():
    X = densities.uniform().X[:200]
    model = parsimon.SPPPOTIntensity(domain=[(0, 1), (0, 2)], bandwidth=0.5, regularization=0.1)
    integral, peak = densities.finely(model.fit(X))
    assert integral == pytest.approx(1, abs=1e-3)
    nodes = np.stack(np.meshgrid(*[np.linspace(0, 1, 50)] * 2), axis=-1).reshape(-1, 2) * [1, 2]
    assert peak == pytest.approx(2 * np.exp(model.score_samples(nodes)).max(), rel=0.05)


def test_kernel_density_is_scaled_back():
    X = np.random.RandomState(0).randn(300, 2) * [1, 100]
    theirs = densities.KernelDensityByValidation().fit(X)
    scale = X.std(axis=0)
    again = KernelDensity(bandwidth=theirs.model_.bandwidth, rtol=1e-4).fit(X / scale)
    expected = again.score_samples(X / scale) - np.log(scale).sum()
    np.testing.assert_allclose(theirs.score_samples(X), expected)


@pytest.mark.usefixtures("no_data")
def test_data_that_are_not_here_are_left_out(run_bench):
    code, out, content = run_bench("densities", "--data", "bei")
    assert code == 2
    assert content["promises"] == []
    assert "Left out: " in out

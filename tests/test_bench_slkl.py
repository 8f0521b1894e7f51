"""The experiments of the SLKL paper, on tiny data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime
from sklearn.exceptions import ConvergenceWarning

from bench.baselines import regression
from bench.papers import hog, slkl, slkl_speed
from bench.runner import Result, Run
from parsimon import SLKLRegressor, datasets, kernels

X, Y = datasets.make_sinc(120, random_state=0)
AT = datasets.make_sinc(30, random_state=1)[0]
GAUSSIAN = kernels.Gaussian(1.0)


def test_nystroem_on_all_points_is_kernel_ridge():
    full = regression.kernel_ridge(X, Y, AT, 0.5)
    assert_allclose(regression.nystroem(X, Y, AT, 0.5, X), full, atol=1e-6)


def test_uniform_weights_are_ridge_regression_with_the_mean_kernel():
    C, C_at = GAUSSIAN(X, X[:20]), GAUSSIAN(AT, X[:20])
    expected = C_at @ C.T / 20 @ np.linalg.solve(C @ C.T / 20 + np.eye(120), Y)
    assert_allclose(regression.uniform(X, Y, AT, 1.0, X[:20]), expected, atol=1e-10)


def test_histograms_of_gradients_have_norm_one_and_ignore_contrast():
    images = np.random.RandomState(0).uniform(size=(3, 784))
    found = hog.features(images)
    assert_allclose(np.linalg.norm(found, axis=1), 1)
    assert_allclose(hog.features(0.5 * images), found)
    assert np.isfinite(hog.features(np.zeros((1, 28, 28)))).all()  # a blank image is no trouble


def test_an_edge_votes_for_its_orientation():
    image = np.zeros((1, 28, 28))
    image[:, :, 14:] = 1.0
    found = hog._votes(image)[0, :, 10:12, 13].sum(axis=1)
    assert found.argmax() == 0
    assert found[1:].max() == 0


@pytest.fixture(name="problem")
def _problem():
    return slkl_speed.Problem(X, Y, 1.0, np.arange(40))


def test_gradient_of_the_generic_solver(problem):
    mu = np.random.RandomState(0).uniform(size=40) * (np.arange(40) % 3 > 0)
    value, gradient = problem.value_and_gradient(mu)
    assert_allclose(problem.value_and_gradient(np.zeros(40))[0], Y @ Y)
    approximate = approx_fprime(mu, lambda m: problem.value_and_gradient(m)[0], 1e-7)
    assert_allclose(approximate[mu > 0], gradient[mu > 0], rtol=1e-3, atol=1e-5)
    assert value < Y @ Y + 0.01 * mu.sum()


def test_all_ways_reach_the_gap(problem):
    minimum = problem.solve("shrinking", 0.0).objective[-1]
    for found in (
        slkl_speed.ours("shrinking", problem, minimum),
        slkl_speed.ours("uniform", problem, minimum),
        slkl_speed.lbfgs(problem, minimum),
    ):
        assert -1e-9 < found["gap"] <= 1e-4


def test_speed_is_promised(monkeypatch):
    monkeypatch.setattr(slkl_speed, "TASKS", {"sinc": slkl.SINC})
    monkeypatch.setattr(slkl_speed, "COLUMNS", 60)
    promises = list(slkl_speed.promises(1))
    assert [promise.name.split(", ")[-1] for promise in promises] == [
        "relative gap of shrinking",
        "time of a step over that of its flops",
        "time of uniform selection over shrinking's",
        "time of L-BFGS-B over shrinking's",
    ]
    assert promises[0].holds
    assert all(promise.measured > 0 for promise in promises[1:])


def test_a_figure_that_no_run_has_is_a_dash():
    results = [Result({name: [value, None] for name in ("KRRM", "A")}) for value in (1.0, 3.0)]
    lines = slkl.table(slkl.DATA_SETS["table2-sinc"], results).lines
    assert lines[0] == ["KRRM", "2.00 (1.0) [0.0146]", "- [0.0124]"]
    assert lines[1] == ["A", "2.00 (1.0)", "-"]


@pytest.mark.parametrize("step", ["newton", "exact"])
def test_epochs_are_those_of_one_long_training(step):
    """m0 after k epochs is read off a training of k: it must be the beginning of a longer."""
    settings = {"selection": "uniform", "step": step, "tol": 0.0, "random_state": 3}
    model = SLKLRegressor(kernel=GAUSSIAN, n_columns=60, **settings)

    def objective(epochs):
        with pytest.warns(ConvergenceWarning):
            return model.set_params(max_iter=epochs).fit(X, Y).objective_

    long = objective(12)
    for epochs in (1, 5, 11):
        assert_allclose(objective(epochs), long[: epochs + 1], rtol=1e-12)


def test_the_objective_comes_down_to_its_minimum():
    task, exact = slkl.SINC.load(0, epochs=6), slkl.EPOCHS.methods[1]
    found = slkl.watch(Run(exact, task, 0, slkl.EPOCHS.offered))
    assert found["looks"] == list(range(7))
    assert len(found["objective"]) == len(found["m0"]) == 7
    assert (np.diff(found["objective"]) < 0).all()
    assert found["minimum"] < found["objective"][-1] < 1.01 * found["minimum"]
    assert found["m0 at the minimum"] < found["m0"][-1] < 1000


def test_fewer_columns_are_used_the_higher_their_price():
    (method,), task = slkl.COUNTS.methods, slkl.SINC.load(0, counts=(100, 300))
    found = slkl.count_used(Run(method, task, 0, slkl.COUNTS.offered))
    used = np.array([found[f"{price:g}"] for price in slkl.PRICES])
    assert used.shape == (len(slkl.PRICES), 2)
    assert (np.diff(used, axis=0) < 0).all()

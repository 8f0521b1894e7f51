"""The experiments of the SLKL paper, on tiny data."""

from argparse import Namespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge

from parsimon import SLKLRegressor, datasets, kernels

X, Y = datasets.make_sinc(120, random_state=0)
AT = datasets.make_sinc(30, random_state=1)[0]


@pytest.fixture(name="problem")
def _problem(bench):
    return bench("papers.slkl_speed").Problem(X, Y, 1.0, np.arange(40))


class TestBaselines:
    @pytest.fixture(name="regression")
    def _regression(self, bench):
        return bench("baselines.regression")

    def test_kernel_ridge_is_that_of_scikit_learn(self, regression):
        expected = KernelRidge(alpha=1.0, kernel="rbf", gamma=0.5).fit(X, Y).predict(AT)
        assert_allclose(regression.kernel_ridge(X, Y, AT, 1.0), expected)

    def test_nystroem_on_all_points_is_kernel_ridge(self, regression):
        full = regression.kernel_ridge(X, Y, AT, 0.5)
        assert_allclose(regression.nystroem(X, Y, AT, 0.5, X), full, atol=1e-6)

    def test_uniform_weights_are_ridge_regression_with_the_mean_kernel(self, regression):
        kernel = kernels.Gaussian(1.0)
        C, C_at = kernel(X, X[:20]), kernel(AT, X[:20])
        K = C @ C.T / 20
        expected = C_at @ C.T / 20 @ np.linalg.solve(K + np.eye(120), Y)
        assert_allclose(regression.uniform(X, Y, AT, 1.0, X[:20]), expected, atol=1e-10)


class TestHog:
    @pytest.fixture(name="hog")
    def _hog(self, bench):
        return bench("papers.hog")

    def test_histograms_have_norm_one_and_ignore_contrast(self, hog):
        images = np.random.RandomState(0).uniform(size=(3, 784))
        found = hog.features(images)
        assert_allclose(np.linalg.norm(found, axis=1), 1)
        assert_allclose(hog.features(0.5 * images), found)

    def test_a_blank_image_is_no_trouble(self, hog):
        assert np.isfinite(hog.features(np.zeros((1, 28, 28)))).all()

    def test_an_edge_votes_for_its_orientation(self, hog):
        image = np.zeros((1, 28, 28))
        image[:, :, 14:] = 1.0
        (found,) = hog._votes(image)[0][:, 10:12, 13].sum(axis=1).reshape(1, -1)
        assert found.argmax() == 0
        assert found[1:].max() == 0


class TestSpeed:
    def test_gradient_of_the_generic_solver(self, problem):
        mu = np.random.RandomState(0).uniform(size=40) * (np.arange(40) % 3 > 0)
        value, gradient = problem.value_and_gradient(mu)
        assert_allclose(problem.value_and_gradient(np.zeros(40))[0], Y @ Y)
        step = np.where(mu > 0, gradient, 0)
        approximate = approx_fprime(mu, lambda m: problem.value_and_gradient(m)[0], 1e-7)
        assert_allclose(np.where(mu > 0, approximate, 0), step, rtol=1e-3, atol=1e-5)
        assert value < Y @ Y + 0.01 * mu.sum()

    def test_all_ways_reach_the_gap(self, bench, problem):
        speed = bench("papers.slkl_speed")
        minimum = problem.solve("shrinking", 0.0).objective[-1]
        for found in (
            speed.ours(problem, "shrinking", minimum),
            speed.ours(problem, "uniform", minimum),
            speed.lbfgs(problem, minimum),
        ):
            assert -1e-9 < found["gap"] <= 1e-4


def test_speed_is_promised(bench, monkeypatch):
    speed, data_sets = bench("papers.slkl_speed"), bench("papers.slkl_data").DATA_SETS
    monkeypatch.setitem(speed.TASKS, "sinc", data_sets["table2-sinc"])
    promises = list(speed.promises("sinc", 1, columns=60, samples=300))
    assert [promise.name.split(", ")[-1] for promise in promises] == [
        "relative gap of shrinking",
        "time of uniform selection over shrinking's",
        "time of L-BFGS-B over shrinking's",
    ]
    assert promises[0].holds
    assert " times its flops at " in promises[0].detail
    assert all(promise.measured > 0 for promise in promises[1:])


@pytest.mark.data("boston")
def test_tables_show_printed_figures_beside_ours(bench, tmp_path):
    slkl = bench("papers.slkl")
    data_set = slkl.DATA_SETS["table2-boston"]
    (row,) = slkl.experiment(data_set).rows(Namespace(out=tmp_path, runs=2, quick=True))
    table = slkl.table(data_set, row.results)
    assert table.header == ("method", "M = 128")
    lines = dict(table.lines)
    assert lines["SLKL"].endswith(" [20.17]")
    assert lines["m0"].endswith(" [108]")
    # Learned weights are better than equal ones, and centring helps.
    error = {name: float(cell.split()[0]) for name, cell in lines.items()}
    assert error["SLKL, y centred"] < error["SLKL"] < error["Unif"]
    assert len(list((tmp_path / "runs").iterdir())) == 2


def test_a_figure_that_no_run_has_is_a_dash(bench):
    slkl, Result = bench("papers.slkl"), bench("runner").Result
    sinc = slkl.DATA_SETS["table2-sinc"]
    results = [Result({name: [value, None] for name in ("KRRM", "A")}) for value in (1.0, 3.0)]
    lines = slkl.table(sinc, results).lines
    assert lines[0] == ["KRRM", "2.00 (1.0) [0.0146]", "- [0.0124]"]
    assert lines[1] == ["A", "2.00 (1.0)", "-"]


class TestFigures:
    @pytest.mark.parametrize("step", ["newton", "exact"])
    def test_epochs_are_those_of_one_long_training(self, step):
        """m0 after k epochs is read off a training of k: it must be the beginning of a longer."""
        settings = {"selection": "uniform", "step": step, "tol": 0.0, "random_state": 3}
        model = SLKLRegressor(kernel=kernels.Gaussian(1.0), n_columns=60, **settings)
        with pytest.warns(ConvergenceWarning):
            long = model.set_params(max_iter=12).fit(X, Y).objective_
        for epochs in (1, 5, 11):
            with pytest.warns(ConvergenceWarning):
                model.set_params(max_iter=epochs).fit(X, Y)
            assert_allclose(model.objective_, long[: epochs + 1], rtol=1e-12)

    def test_the_objective_comes_down_to_its_minimum(self, bench):
        figures, Run = bench("papers.slkl_figures"), bench("runner").Run
        task, exact = figures.load_first(7, epochs=6), figures.EPOCHS.methods[1]
        found = figures.watch(Run(exact, task, 0, figures.EPOCHS.offered))
        assert found["looks"] == list(range(7))
        assert len(found["objective"]) == len(found["m0"]) == 7
        assert (np.diff(found["objective"]) < 0).all()
        assert found["minimum"] < found["objective"][-1] < 1.01 * found["minimum"]
        assert found["m0 at the minimum"] < found["m0"][-1] < 1000

    def test_fewer_columns_are_used_the_higher_their_price(self, bench):
        figures, Run = bench("papers.slkl_figures"), bench("runner").Run
        (method,), task = figures.COUNTS.methods, figures.SINC.load(0, counts=(100, 300))
        found = figures.count_used(Run(method, task, 0, figures.COUNTS.offered))
        used = np.array([found[f"{price:g}"] for price in figures.PRICES])
        assert used.shape == (len(figures.PRICES), 2)
        assert (np.diff(used, axis=0) < 0).all()

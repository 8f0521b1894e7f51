"""The benchmarks of risk, of densities and of value functions, on little data."""

import sys
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from bench_common import assert_missed
from numpy.testing import assert_allclose

from bench import cli, figures
from bench.baselines.intensity import BatchIntensity
from bench.papers import colk, intensity, policy
from bench.runner import Method, Result, Row, Run
from bench.tasks import Task


def test_risk_measures_the_loss_and_the_distance_to_the_function():
    class Zero:
        model_order_ = 3

        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.zeros(len(X))

    y = np.arange(1.0, 101.0)
    task = Task("zero", y, y, y, y, {"truth": np.full(100, 2.0)})
    found = colk.train(Run(Method("zero", Zero), task, 0))
    assert found["excess"] == 4
    assert_allclose(found["mean"], (y**2).mean())
    assert_allclose(found["loss_sd"], (y**2).std())
    assert_allclose(found["cvar"], (y[90:] ** 2).mean())
    assert_allclose(found["quantile_95"], np.quantile(y**2, 0.95))
    assert_allclose(found["quantile_99"], np.quantile(y**2, 0.99))
    assert found["model_order"] == 3


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({}, None),
        ({"loss_sd": 0.97}, "loss_sd is below POLK's: 0.03 (>= 0.0"),
        ({"quantile_99": 1.1}, "quantile_99 is below POLK's: -0.1 (>= 0.0"),
        ({"cvar": 1.01}, "cvar is below POLK's"),
        ({"model_order": 60}, "points over POLK's: 1.33 (<= 1.2)"),
        (None, "runs that diverge: 1 (<= 0)"),
    ],
)
def test_risk_is_judged_by_the_tail(change, complaint):
    polk = {"loss_sd": 1.0, "quantile_99": 1.0, "cvar": 1.0, "model_order": 45}
    good = {"loss_sd": 0.6, "quantile_99": 0.6, "cvar": 0.9, "model_order": 45}

    def row(method):
        if method.name == colk.CLIPPED:
            return Row(method, [Result({**good, **(change or {})}, diverged=change is None)])
        return Row(method, [Result(good if method.kind == "COLKRegressor" else polk)])

    methods = colk.experiment("one-sided", colk.METHODS).methods
    promises = list(colk.judge({"one-sided": [row(method) for method in methods]}))
    assert_missed(promises, complaint)
    assert all(each.holds or colk.CLIPPED in each.name for each in promises)


def test_outliers_of_lidar():
    y = np.zeros(200)
    for kind, size in (("none", 0), ("symmetric", 0.0), ("one-sided", 0.75)):
        spoiled, chosen = colk.spoil(y, kind, np.random.RandomState(0))
        assert len(chosen) == 20
        assert abs(spoiled[chosen].mean() - size) < 0.4
        spoiled[chosen] = 0
        assert not spoiled.any()


def test_without_matplotlib_there_is_a_sentence(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    figures.draw_panels(tmp_path / "no.png", [])
    assert "pip install 'parsimon[plot]'" in capsys.readouterr().err


def test_defaults_run_for_their_own_epochs_and_for_four_times_as_many(run_bench):
    code, out, found = run_bench("intensity", "--data", "toy", "--seeds", "2", "--samples", "400")
    assert code == 0
    assert "ok  " not in out  # so few samples prove nothing
    rows = {row["method"]: row["results"] for row in found["rows"]["toy"]}
    assert len(rows) == 2 + 3 + 2 * 3
    assert sum("f = a g^2" in name for name in rows) == 1
    for name in intensity.ESTIMATORS:
        for short, long in zip(rows[name], rows[f"{name}, 4 x epochs"], strict=True):
            assert long["epochs"] == 4 * round(short["epochs"])
            assert short["model_order"] == 100
    assert [result["above"] for result in rows["batch L-BFGS"]] == [0, 0]
    assert len({result["nll"] for result in rows["batch L-BFGS"]}) == 2
    assert rows["POLK in the primal, printed start"][0]["negative"] > 0.2
    assert "POLK in the primal, uniform start" in rows
    offered = intensity.DENSITIES["toy"].offered
    assert offered == {
        "bandwidth": 0.0065**0.5,
        "grid_size": 100,
        "domain": [(0.0, 1.0)],
        "solver": "sgd",
    }


def test_nll_is_that_of_a_density_with_its_own_integral():
    """A density that is too high by exp(a) costs exp(a) - 1 - a."""

    class TooHigh(BatchIntensity):
        def score_samples(self, X):
            return super().score_samples(X) + 0.5

    methods = (intensity.BATCH, replace(intensity.BATCH, name="too high", estimator=TooHigh))
    rows = replace(intensity.DENSITIES["toy"], methods=methods, runs=1).rows()
    batch, high = (row.above(rows[0], "nll") for row in rows)
    assert_allclose(high.values("above"), np.exp(0.5) - 1.5, rtol=1e-3)
    assert_allclose(high.values("integral"), np.exp(0.5), rtol=1e-3)
    assert 0 < abs(batch.mean("nll") - batch.mean("true_nll")) < 0.01


@pytest.mark.parametrize(
    ("figures", "complaint"),
    [
        ({"above": 0.002, "integral": 1.01}, None),
        ({"above": 0.004, "integral": 1.01}, "mean NLL above the batch fit's: 0.004 (<= 0.003)"),
        ({"above": 0.002, "integral": 0.97}, "integral off by: 0.03 (<= 0.02)"),
        (None, "runs that diverge: 1 (<= 0)"),
    ],
)
def test_a_default_that_is_off_fails(figures, complaint):
    result = Result(figures or {}, diverged=figures is None)
    rows = [Row(method, [result]) for method in intensity.DEFAULT["toy"]]
    assert_missed(intensity.judge({"toy": rows}), complaint, len(intensity.OURS))


def test_policy_compares_all_methods(run_bench):
    code, out, found = run_bench("policy", "--draws", "2", "--transitions", "300")
    assert code == 0
    assert "standard deviation 3.64" in out
    assert "[.39]" in out
    assert "[.22]" in out
    assert "ok  " not in out
    rows = found["rows"]["chain"]
    assert len(rows) == len(policy.METHODS)
    for row in rows:
        assert len(row["results"]) == 2
        for result in row["results"]:
            assert 0 < result["rmse"] < 5
            assert (result["tracker_order"] > 0) == ("gtd" in row["method"])


def test_true_values_solve_the_bellman_equation():
    chain = policy.draw_chain(0, transitions=100_000)

    def value(states):
        return np.interp(states[:, 0], chain.X_test[:, 0], chain.y_test)

    for following in (chain.extra["next_states"], chain.extra["again"]):
        assert following.min() >= 0
        assert following.max() <= 1
        difference = chain.y + 0.9 * value(following) - value(chain.X)
        bins = np.minimum((10 * chain.X[:, 0]).astype(int), 9)
        means = np.bincount(bins, weights=difference) / np.bincount(bins)
        assert np.abs(means).max() < 0.05


def test_one_number_for_all_states_is_biased():
    experiment = policy.chain(20_000)
    task = experiment.load(0, transitions=20_000)
    double, scalar, _ = (
        policy.evaluate(Run(method, task, 0, experiment.offered))["rmse"]
        for method in policy.METHODS[-3:]
    )
    assert scalar > 2.5
    assert double < 1


@pytest.mark.parametrize(
    ("error", "complaint", "missed"), [(0.075, None, 0), (0.1, 'td"', 3), (0.3, 'td"', 5)]
)
def test_policy_is_judged_by_its_worst_average(error, complaint, missed):
    results = [Result({"rmse": each}) for each in (0.05, error)]
    promises = list(policy.judge([Row(method, results) for method in policy.METHODS]))
    assert len(promises) == 5
    assert_missed(promises, complaint, missed)  # "lstd" and both rows of "td"; "gtd" may have more


class Track:
    """A car that rolls to the goal at a constant speed, whatever it is told."""

    def __init__(self, name, max_episode_steps):
        assert name == "MountainCarContinuous-v0"
        self.limit = max_episode_steps

    def reset(self, seed=None):
        self.random = self.random if seed is None else np.random.default_rng(seed)
        self.steps, self.position = 0, self.random.uniform(-1, 0.4)
        return self.state(), {}

    def state(self):
        return np.array([self.position, 0.02 * np.sin(self.position)], dtype=np.float32)

    def step(self, action):
        assert action.shape == (1,)
        self.steps += 1
        self.position += 0.1
        arrived = self.position > 0.45
        return self.state(), 100.0 * arrived, bool(arrived), self.steps >= self.limit, {}

    def close(self):
        pass


def test_policy_predicts_returns_in_gymnasium(run_bench, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    module, picture = ModuleType("gymnasium"), tmp_path / "gym.png"
    module.make = Track
    monkeypatch.setitem(sys.modules, "gymnasium", module)
    arguments = ["--task", "mountain_car", "--episodes", "150", "--plot", str(picture)]
    code, out, found = run_bench("policy", *arguments)
    assert code == 0
    assert "MountainCarContinuous-v0: " in out
    assert picture.stat().st_size > 1000
    (rows,) = found["rows"].values()
    results = {row["method"]: row["results"][0] for row in rows}
    assert results.keys() == {'"lstd"', '"td"', '"gtd"', "a constant"}
    assert results['"td"']["correlation"] > 0.9
    assert results['"gtd"']["tracker_order"] > 0


def test_returns_are_discounted_and_those_cut_off_are_left_out(monkeypatch):
    monkeypatch.setattr(policy, "HORIZON", 2)
    states, rewards = np.arange(4.0)[:, None], np.array([0.0, 1.0, 0.0, 2.0])
    expected = [0.95 + 2 * 0.95**3, 1 + 2 * 0.95**2, 2 * 0.95, 2]
    for last, known in ((True, 4), (False, 2)):
        terminal = np.array([False, False, False, last])
        found, totals = policy.returns((states, rewards, states + 1, terminal))
        assert_allclose(totals, expected[:known])
        assert_allclose(found, states[:known])


def test_pendulum_of_gymnasium(monkeypatch, capsys):
    pytest.importorskip("gymnasium")
    monkeypatch.setattr(policy, "TEST_EPISODES", 2)
    arguments = ["--episodes", "10", "--epochs", "1"]
    assert cli.main(["policy", "--task", "pendulum", *arguments]) == 0
    assert "Pendulum-v1: 800 transitions" in capsys.readouterr().out

"""The benchmarks of risk and of value functions, on little data."""

import sys
from types import ModuleType

import numpy as np
import pytest
from bench_common import assert_missed
from numpy.testing import assert_allclose

from bench import cli
from bench.papers import gym_worlds, policy, risk
from bench.runner import Method, Result, Row, Run
from bench.tasks import Task

PRINTED = "COLK, P = 4 as printed"


@pytest.mark.usefixtures("little_risk")
def test_risk_shows_what_was_measured_beside_the_reference(run_bench):
    code, out, found = run_bench("risk", "--sets", "2", "--samples", "300")
    assert code == 0
    assert "[diverges]" in out
    assert "[2.22]" in out
    assert "LIDAR, 2 epochs" in out
    assert "ok  " not in out  # so few samples prove nothing
    lidar = found["rows"].pop("LIDAR")
    assert found["rows"].keys() == {"none", "symmetric", "one-sided"}
    for rows in found["rows"].values():
        results = {row["method"]: row["results"] for row in rows}
        assert [len(each) for each in results.values()] == [2] * 9
        sound = [figures for figures in results.pop(PRINTED) if figures]
        for figures in sound + [each for both in results.values() for each in both]:
            assert 0 < figures["model_order"] < 150
            assert figures["mean"] < figures["cvar"]
            assert figures["quantile_95"] <= figures["quantile_99"]
    assert not sound  # with one-sided outliers, the last
    assert [len(row["results"]) for row in lidar] == [2] * 3
    assert all("one-sided" in result for row in lidar for result in row["results"])
    assert all(library["threads"] == 1 for library in found["machine"]["blas"])


def test_risk_measures_the_loss_and_the_distance_to_the_function():
    class Zero:
        model_order_ = 3

        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.zeros(len(X))

    y = np.arange(1.0, 101.0)
    task = Task("zero", y, y, y, y, {"truth": np.full(100, 2.0)})
    found = risk.train(Run(Method("zero", Zero), task, 0))
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
        if method.name == risk.CLIPPED:
            return Row(method, [Result({**good, **(change or {})}, diverged=change is None)])
        return Row(method, [Result(good if method.kind == "COLKRegressor" else polk)])

    methods = risk.experiment("one-sided", risk.METHODS, 100).methods
    promises = list(risk.judge({"one-sided": [row(method) for method in methods]}))
    assert_missed(promises, complaint)
    assert all(each.holds or risk.CLIPPED in each.name for each in promises)


def test_outliers_of_lidar():
    y = np.zeros(200)
    for kind, size in (("none", 0), ("symmetric", 0.0), ("one-sided", 0.75)):
        spoiled, chosen = risk.spoil(y, kind, np.random.RandomState(0))
        assert len(chosen) == 20
        assert abs(spoiled[chosen].mean() - size) < 0.4
        spoiled[chosen] = 0
        assert not spoiled.any()


@pytest.mark.usefixtures("little_risk", "no_data")
def test_lidar_that_is_not_here_is_left_out(capsys, tmp_path):
    arguments = ["risk", "--sets", "1", "--samples", "100"]
    assert cli.main(arguments) == 0
    message = "The task LIDAR cannot be run. The data are not here."
    assert f"Left out: {message}" in capsys.readouterr().out
    picture = tmp_path / "lidar.png"
    assert cli.main([*arguments, "--plot", str(picture)]) == 2
    assert message in capsys.readouterr().err
    assert not picture.exists()


@pytest.mark.usefixtures("little_risk")
def test_lidar_is_drawn(monkeypatch, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "lidar.png"
    risk.draw_lidar(picture)
    assert picture.stat().st_size > 1000
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    risk.draw_lidar(picture)
    assert "pip install 'parsimon[plot]'" in capsys.readouterr().err


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


@pytest.mark.parametrize(("error", "complaint"), [(0.07, None), (0.1, '"td"')])
def test_policy_is_judged_by_its_worst_average(error, complaint):
    results = [Result({"rmse": each}) for each in (0.05, error)]
    promises = list(policy.judge([Row(method, results) for method in policy.METHODS]))
    assert len(promises) == 4
    assert_missed(promises, complaint, 2)  # both rows of "td"


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
    assert results.keys() == {'"td"', '"gtd"'}
    assert results['"td"']["correlation"] > 0.9
    assert results['"gtd"']["tracker_order"] > 0


def test_returns_are_discounted_and_those_cut_off_are_left_out(monkeypatch):
    monkeypatch.setattr(gym_worlds, "HORIZON", 2)
    states, rewards = np.arange(4.0)[:, None], np.array([0.0, 1.0, 0.0, 2.0])
    expected = [0.95 + 2 * 0.95**3, 1 + 2 * 0.95**2, 2 * 0.95, 2]
    for last, known in ((True, 4), (False, 2)):
        terminal = np.array([False, False, False, last])
        episode = gym_worlds.Episode(states, rewards, states + 1, terminal)
        found, totals = gym_worlds.returns(episode)
        assert_allclose(totals, expected[:known])
        assert_allclose(found, states[:known])


def test_policies_stay_within_what_is_allowed():
    random = np.random.default_rng(0)
    for angle, velocity in random.uniform(-3, 3, size=(50, 2)):
        state = gym_worlds.pendulum_state(np.array([[angle, velocity]]))
        assert_allclose(gym_worlds.angle_and_velocity(state), [[angle, velocity]])
        assert -2 <= gym_worlds.swing_up(state[0], random) <= 2
        assert -1 <= gym_worlds.rock(np.array([angle, velocity]), random) <= 1


def test_gymnasium_that_is_not_here_is_a_message_and_no_traceback(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    assert cli.main(["policy", "--task", "pendulum"]) == 2
    assert "pip install 'parsimon[gym]'" in capsys.readouterr().err


def test_pendulum_of_gymnasium(monkeypatch, capsys):
    pytest.importorskip("gymnasium")
    monkeypatch.setattr(gym_worlds, "TEST_EPISODES", 2)
    arguments = ["--episodes", "10", "--epochs", "1", "--method", "td"]
    assert cli.main(["policy", "--task", "pendulum", *arguments]) == 0
    assert "Pendulum-v1: 800 transitions" in capsys.readouterr().out

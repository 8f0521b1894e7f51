"""The benchmarks of risk and of value functions, on little data."""

import json
import sys
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from numpy.testing import assert_allclose

import parsimon

NOT_HERE = "The data set 'lidar' is not here."


# -- risk ------------------------------------------------------------------------------------------


@pytest.fixture(name="tiny")
def _tiny(bench, monkeypatch):
    """Make LIDAR a step of 40 samples, and little of everything else."""
    risk = bench("risk")
    X = np.linspace(390, 720, 40)[:, None]
    y = -0.7 * (X[:, 0] > 555)
    monkeypatch.setattr(risk.datasets, "load_lidar", lambda **_: (X, y))
    monkeypatch.setattr(risk, "TEST_SAMPLES", 500)
    monkeypatch.setattr(risk, "LIDAR_EPOCHS", 3)
    return risk


@pytest.fixture(name="absent")
def _absent(tiny, monkeypatch):
    def load(**_):
        raise FileNotFoundError(NOT_HERE)

    monkeypatch.setattr(tiny.datasets, "load_lidar", load)


@pytest.mark.usefixtures("tiny")
def test_risk_shows_what_was_measured_beside_the_reference(bench, tmp_path, capsys):
    path = tmp_path / "risk.json"
    arguments = ["risk", "--sets", "2", "--samples", "300", "--json", str(path)]
    assert bench("cli").main(arguments) == 0
    out = capsys.readouterr().out
    assert "[diverges]" in out
    assert "[2.22]" in out
    assert "LIDAR, 3 epochs" in out
    assert "PASSED" not in out  # so few samples prove nothing
    assert "NaN" not in path.read_text()
    result = json.loads(path.read_text())
    rows = {row["method"]: row["results"] for row in result["rows"]}
    assert len(rows) == 9
    for name, results in rows.items():
        assert results.keys() == {"none", "symmetric", "one-sided"}
        for found in results.values():
            assert len(found) == 2
            for figures in found:
                if figures is None:
                    assert name == "COLK, P = 4 as printed"
                else:
                    assert 0 < figures["model_order"] < 150
                    assert figures["mean"] < figures["cvar"]
                    assert figures["quantile_95"] <= figures["quantile_99"]
    assert rows["COLK, P = 4 as printed"]["one-sided"] == [None, None]
    assert [len(errors["one-sided"]) for errors in result["lidar"].values()] == [2] * 3
    assert all(library["threads"] == 1 for library in result["machine"]["blas"])


def test_risk_measures_the_loss_and_the_distance_to_the_function(bench, monkeypatch):
    class Zero:
        model_order_ = 3
        _get_param_names = staticmethod(list)

        def __init__(self, **_):
            pass

        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.zeros(len(X))

    monkeypatch.setattr(parsimon, "Zero", Zero, raising=False)
    risk, settings = bench("risk"), bench("risk_settings")
    y = np.arange(1.0, 101.0)
    result = risk.train(settings.Method("zero", "Zero", {}), None, None, (y, y, np.full(100, 2.0)))
    assert result.excess == 4
    assert_allclose(result.mean, (y**2).mean())
    assert_allclose(result.loss_sd, (y**2).std())
    assert_allclose(result.cvar, (y[90:] ** 2).mean())
    assert_allclose([result.quantile_95, result.quantile_99], np.quantile(y**2, [0.95, 0.99]))
    assert result.model_order == 3


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({}, None),
        ({"loss_sd": 0.97}, "has a loss_sd that is 3.0 % below POLK's"),
        ({"quantile_99": 1.1}, "has a quantile_99 that is -10.0 % below POLK's"),
        ({"cvar": 1.01}, "has a cvar"),
        ({"model_order": 60}, "keeps many more points"),
        (None, "diverges"),
    ],
)
def test_risk_is_judged_by_the_tail(bench, change, complaint):
    risk = bench("risk")
    polk = risk.Result(0.1, 1.0, 1.0, 1.0, 1.0, 1.0, 45)
    good = risk.Result(0.2, 0.6, 1.2, 0.6, 0.9, 1.1, 45)
    rows = []
    for method in risk.METHODS:
        result = good if method.margins else polk
        if method.name == "COLK, P = 4, clipped":
            result = None if change is None else replace(result, **change)
        rows.append(risk.Row(method, {kind: [result] for kind in risk.OUTLIERS}))
    complaints = risk.judge(rows)
    if complaint is None:
        assert complaints == []
    else:
        assert len(complaints) == 1
        assert complaint in complaints[0]


def test_outliers_of_lidar(bench):
    y = np.zeros(200)
    for kind, size in (("none", 0), ("symmetric", 0.0), ("one-sided", 0.75)):
        spoiled, chosen = bench("risk").spoil(y, kind, np.random.RandomState(0))
        assert len(chosen) == 20
        assert abs(spoiled[chosen].mean() - size) < 0.4
        spoiled[chosen] = 0
        assert not spoiled.any()


@pytest.mark.usefixtures("absent")
def test_lidar_that_is_not_here_is_left_out(bench, capsys, tmp_path):
    arguments = ["risk", "--sets", "1", "--samples", "100"]
    assert bench("cli").main(arguments) == 0
    assert f"Left out: LIDAR. {NOT_HERE}" in capsys.readouterr().out
    picture = tmp_path / "lidar.png"
    assert bench("cli").main([*arguments, "--plot", str(picture)]) == 2
    assert "it shows LIDAR" in capsys.readouterr().err
    assert not picture.exists()


def test_lidar_is_drawn(tiny, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "lidar.png"
    tiny.draw(*tiny.load_lidar(), picture)
    assert picture.stat().st_size > 1000


def test_lidar_without_matplotlib(tiny, monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    tiny.draw(*tiny.load_lidar(), tmp_path / "lidar.png")
    assert "pip install 'parsimon[plot]'" in capsys.readouterr().err


# -- value functions -------------------------------------------------------------------------------


def test_policy_compares_all_methods(bench, tmp_path, capsys):
    path = tmp_path / "policy.json"
    arguments = ["policy", "--draws", "2", "--transitions", "300", "--json", str(path)]
    assert bench("cli").main(arguments) == 0
    out = capsys.readouterr().out
    assert "Standard deviation of the true V: 3.64" in out
    assert "[.39 / .22]" in out
    assert "PASSED" not in out
    results = json.loads(path.read_text())["results"]
    assert len(results) == len(bench("policy").METHODS)
    for name, found in results.items():
        assert len(found) == 2
        assert all(0 < result["rmse_average"] < 5 for result in found)
        assert all((result["tracker_order"] > 0) == ("gtd" in name) for result in found)


def test_true_values_solve_the_bellman_equation(bench):
    policy = bench("policy")
    grid, truth = policy.true_values()
    chain = policy.draw_chain(100_000, 0)

    def value(states):
        return np.interp(states[:, 0], grid[:, 0], truth)

    for following in (chain.next_states, chain.again):
        assert following.min() >= 0
        assert following.max() <= 1
        difference = chain.rewards + 0.9 * value(following) - value(chain.states)
        bins = np.minimum((10 * chain.states[:, 0]).astype(int), 9)
        means = np.bincount(bins, weights=difference) / np.bincount(bins)
        assert np.abs(means).max() < 0.05


def test_one_number_for_all_states_is_biased(bench):
    policy = bench("policy")
    grid, truth = policy.true_values()
    chain = policy.draw_chain(20_000, 0)
    errors = {
        method.kind: policy.evaluate(method, chain, grid, truth).rmse_average
        for method in policy.METHODS
        if method.kind in ("double", "scalar")
    }
    assert errors["scalar"] > 2.5
    assert errors["double"] < 1


@pytest.mark.parametrize(("error", "passed"), [(0.07, True), (0.1, False)])
def test_policy_is_judged_by_its_worst_average(bench, error, passed):
    policy = bench("policy")
    good, bad = (policy.Result(0.3, each, 12, 13, 0, 1.0, 1.0) for each in (0.05, error))
    complaints = policy.judge({method.name: [good, bad] for method in policy.METHODS})
    assert len(complaints) == (0 if passed else 2)  # both rows of "td"


# -- Gymnasium -------------------------------------------------------------------------------------


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


@pytest.fixture(name="track")
def _track(monkeypatch):
    module = ModuleType("gymnasium")
    module.make = Track
    monkeypatch.setitem(sys.modules, "gymnasium", module)


@pytest.mark.usefixtures("track")
def test_gym_policy_predicts_returns(bench, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    path, picture = tmp_path / "gym.json", tmp_path / "gym.png"
    arguments = ["gym_policy", "--task", "mountain_car", "--episodes", "150"]
    arguments += ["--json", str(path), "--plot", str(picture)]
    assert bench("cli").main(arguments) == 0
    assert "of 150 episodes" in capsys.readouterr().out
    assert picture.stat().st_size > 1000
    results = {result["method"]: result for result in json.loads(path.read_text())["results"]}
    assert results.keys() == {"td", "gtd"}
    assert results["td"]["correlation"] > 0.9
    assert results["gtd"]["tracker_order"] > 0


def test_returns_are_discounted_and_those_cut_off_are_left_out(bench, monkeypatch):
    gym_policy = bench("gym_policy")
    monkeypatch.setattr(gym_policy, "HORIZON", 2)
    states, rewards = np.arange(4.0)[:, None], np.array([0.0, 1.0, 0.0, 2.0])
    expected = [0.95 + 2 * 0.95**3, 1 + 2 * 0.95**2, 2 * 0.95, 2]
    for last, known in ((True, 4), (False, 2)):
        terminal = np.array([False, False, False, last])
        episode = gym_policy.Episode(states, rewards, states + 1, terminal)
        found, totals = gym_policy.returns(episode)
        assert_allclose(totals, expected[:known])
        assert_allclose(found, states[:known])


def test_policies_stay_within_what_is_allowed(bench):
    gym_policy, random = bench("gym_policy"), np.random.default_rng(0)
    for angle, velocity in random.uniform(-3, 3, size=(50, 2)):
        state = gym_policy.pendulum_state(np.array([[angle, velocity]]))
        assert_allclose(gym_policy.angle_and_velocity(state), [[angle, velocity]])
        assert -2 <= gym_policy.swing_up(state[0], random) <= 2
        assert -1 <= gym_policy.rock(np.array([angle, velocity]), random) <= 1


def test_gymnasium_that_is_not_here_is_a_message_and_no_traceback(bench, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    assert bench("cli").main(["gym_policy"]) == 2
    assert "pip install 'parsimon[gym]'" in capsys.readouterr().err


def test_pendulum_of_gymnasium(bench, monkeypatch, capsys):
    pytest.importorskip("gymnasium")
    monkeypatch.setattr(bench("gym_policy"), "TEST_EPISODES", 2)
    arguments = ["gym_policy", "--episodes", "10", "--epochs", "1", "--method", "td"]
    assert bench("cli").main(arguments) == 0
    assert "Pendulum-v1: 800 transitions" in capsys.readouterr().out

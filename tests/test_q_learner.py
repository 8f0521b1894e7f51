"""QLearner: kernel Q-learning and SARSA for discrete actions."""

import argparse
import pickle
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from bench import cli
from bench.papers import control
from parsimon import QLearner, kernels, load
from parsimon.colk._action_values import Replay

# A line of ten places; two actions, which slip one time in five; the right end pays and ends it.
PLACES, SLIP, DISCOUNT = 10, 0.2, 0.9
NARROW = kernels.Gaussian(0.03)
EXACT = {"discount": DISCOUNT, "kernel": NARROW, "random_state": 0}


def moves(count, seed=0, better=0.5):
    """Transitions of a policy that goes to the right with probability `better`, in any order."""
    random = np.random.RandomState(seed)
    place = random.randint(PLACES - 1, size=count)
    actions, next_actions = (random.uniform(size=(2, count)) < better).astype(int)
    slips = random.uniform(size=count) < SLIP
    step = np.where(actions ^ slips, 1, -1)
    following = np.clip(place + step, 0, PLACES - 1)
    ends = following == PLACES - 1
    columns = (place[:, None] / PLACES, actions, ends.astype(float), following[:, None] / PLACES)
    return (*columns, ends, next_actions)


def truth(policy=None):
    """Return Q of the best policy, or of one that goes right with a probability, by iteration."""
    values = np.zeros((PLACES, 2))
    for _ in range(500):
        ahead = values.max(axis=1)
        if policy is not None:
            ahead = (1 - policy) * values[:, 0] + policy * values[:, 1]
        ahead[-1] = 0
        for place in range(PLACES - 1):
            left, right = max(place - 1, 0), place + 1
            gain = [DISCOUNT * ahead[left], (right == PLACES - 1) + DISCOUNT * ahead[right]]
            values[place] = [
                (1 - SLIP) * gain[0] + SLIP * gain[1],
                SLIP * gain[0] + (1 - SLIP) * gain[1],
            ]
    return values[:-1]


AT = np.arange(PLACES - 1)[:, None] / PLACES


def test_q_learning_finds_the_values_of_the_best_policy_whoever_acted():
    transitions = moves(20_000)
    model = QLearner(2, **EXACT).fit(*transitions[:5])
    assert_allclose(model.predict(AT), truth(), atol=0.03)
    assert (model.act(AT) == 1).all()
    assert model.model_order_ == PLACES - 1
    assert model.t_ == 20_000


@pytest.mark.parametrize("better", [0.3, 0.5, 0.8])
def test_sarsa_finds_the_values_of_the_policy_that_acted(better):
    model = QLearner(2, "sarsa", **EXACT).fit(*moves(30_000, better=better))
    assert_allclose(model.predict(AT), truth(better), atol=0.04)


@pytest.mark.parametrize("method", ["q", "sarsa"])
def test_a_stream_comes_as_near_as_a_fit(method):
    model = QLearner(2, method, memory=20_000, **EXACT)
    transitions = moves(20_000)
    for start in range(0, 20_000, 1000):
        model.partial_fit(*(column[start : start + 1000] for column in transitions))
    assert_allclose(model.predict(AT), truth(0.5 if method == "sarsa" else None), atol=0.06)


@pytest.mark.parametrize("method", ["q", "sarsa"])
def test_a_step_of_sgd_is_the_temporal_difference_of_the_action_taken(method):
    given = {**EXACT, "solver": "sgd", "learning_rate": 0.4, "budget": 0.0, "shuffle": False}
    states, actions, rewards, following, ends, ahead = moves(96)
    states = states + 1e-3 * np.arange(96)[:, None]  # no two the same
    model = QLearner(2, method, batch_size=32, **given)
    model.partial_fit(states, actions, rewards, following, ends, ahead)
    points, weights = np.zeros((0, 1)), np.zeros((0, 2))
    for start in range(0, 96, 32):
        part = slice(start, start + 32)
        now, after = (NARROW(X[part], points) @ weights for X in (states, following))
        rows = np.arange(32)
        value = after[rows, ahead[part]] if method == "sarsa" else after.max(axis=1)
        difference = rewards[part] + DISCOUNT * (1 - ends[part]) * value
        difference -= now[rows, actions[part]]
        new = np.zeros((32, 2))
        new[rows, actions[part]] = 0.4 / 32 * difference
        points, weights = np.vstack([points, states[part]]), np.vstack([weights, new])
    grid = np.linspace(0, 1, 50)[:, None]
    assert_allclose(model.predict(grid), NARROW(grid, points) @ weights, atol=1e-10)


def test_steps_are_compressed_and_learn():
    model = QLearner(2, solver="sgd", discount=DISCOUNT, gamma=50.0, epochs=30, random_state=0)
    model.fit(*moves(5000)[:5])
    assert model.model_order_ < 20
    assert (model.act(AT) == 1).all()


def test_there_are_never_more_points_than_asked_for():
    random = np.random.RandomState(0)
    X = random.uniform(size=(600, 3))
    for solver in ("newton", "sgd"):
        model = QLearner(3, solver=solver, max_points=15, gamma=20.0, discount=0.5)
        for start in range(0, 600, 100):
            part = slice(start, start + 100)
            actions = random.randint(3, size=100)
            model.partial_fit(X[part], actions, X[part, 0], random.permutation(X[part]))
            assert model.model_order_ <= 15
    few, many = (
        QLearner(3, novelty=share, gamma=5.0).fit(X, X[:, 0] > 0.5, X[:, 1], X[::-1]).model_order_
        for share in (0.3, 0.003)
    )
    assert few < many


def test_discounts_take_the_place_of_discount_and_terminal():
    states, actions, rewards, following, ends, _ = moves(3000)
    one = QLearner(2, **EXACT).fit(states, actions, rewards, following, ends)
    other = QLearner(2, **{**EXACT, "discount": 0.1})
    other.fit(states, actions, rewards, following, discounts=np.where(ends, 0.0, DISCOUNT))
    assert_array_equal(one.predict(AT), other.predict(AT))


def test_values_are_never_larger_than_rewards_can_add_up_to():
    """Least squares off the policy can have a solution of any size; a larger ridge then helps."""
    states = np.array([[1.0], [2.0]])
    model = QLearner(1, discount=0.99, kernel=kernels.Linear(), novelty=1e-6)
    rows = np.r_[np.zeros(2000, int), np.ones(1, int)]
    # From 1 to 2 nearly always: with values in proportion to the state, 2 * 0.99 > 1.
    model.fit(states[rows], np.zeros(2001), np.ones(2001), np.full((2001, 1), 2.0))
    assert np.abs(model.predict(states)).max() <= 200


def test_few_transitions_wait_until_there_are_enough():
    columns = moves(400)
    model = QLearner(2, **EXACT).partial_fit(*(column[:300] for column in columns))
    before = model.predict(AT)
    for i in range(300, 331):
        model.partial_fit(*(column[i : i + 1] for column in columns))
    assert model.t_ == 300
    assert_array_equal(model.predict(AT), before)
    model.partial_fit(*(column[331:332] for column in columns))
    assert model.t_ == 332
    assert (model.predict(AT) != before).any()


class Interrupted:
    """A model that learns from some blocks before Ctrl-C comes."""

    def __init__(self, model, after):
        self._model, self._after, self._blocks = model, after, 0

    def __getattr__(self, name):
        return getattr(self._model, name)

    def run(self, *columns_and_batch):
        self._blocks += 1
        if self._blocks > self._after:
            raise KeyboardInterrupt
        return self._model.run(*columns_and_batch)


@pytest.mark.parametrize("method", ["q", "sarsa"])
def test_what_was_learned_before_control_c_is_kept(method):
    columns = moves(6000)
    model = QLearner(2, method, **EXACT).partial_fit(*(c[:300] for c in columns))
    model.partial_fit(*(c[300:310] for c in columns))  # these wait
    core = model._model
    model._model = Interrupted(core, after=1)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(*(c[310:] for c in columns))
    model._model = core
    count = model.t_
    assert 310 < count < 6000
    kept, waiting, seen = model._replay_
    assert seen == len(kept[0]) == count
    assert waiting == ()
    for column, stored in zip((columns[0], columns[1]), kept, strict=False):
        assert_array_equal(stored, column[:count])
    # Nothing was learned: those that waited still do.
    model.partial_fit(*(c[:3] for c in columns))
    model._model = Interrupted(core, after=0)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(*(c[:1000] for c in columns))
    model._model = core
    assert model.t_ == count
    assert len(model._replay_[1][0]) == 3
    assert model.partial_fit(*(c[:1000] for c in columns)).t_ == count + 1003


def test_what_is_kept_is_a_fair_sample_of_a_stream_or_its_end():
    kept, latest = Replay(), Replay()
    for start in range(0, 9000, 90):
        column = (np.arange(start, start + 90.0),)
        kept, latest = (
            replay.after(column, 300, latest=replay is latest) for replay in (kept, latest)
        )
    assert_array_equal(np.sort(latest.kept[0]), np.arange(8700, 9000))
    assert len(np.unique(kept.kept[0])) == 300
    # A third from each third of the stream, up to four deviations.
    assert np.abs(np.histogram(kept.kept[0], 3, (0, 9000))[0] - 100).max() < 35


@pytest.mark.parametrize("solver", ["newton", "sgd"])
@pytest.mark.parametrize("method", ["q", "sarsa"])
def test_learning_goes_on_from_a_file_as_if_it_had_not_stopped(method, solver, tmp_path):
    first, second = ([c[part] for c in moves(700)] for part in (slice(410), slice(410, 700)))
    model = QLearner(2, method, solver=solver, memory=300, **EXACT)
    for part in (slice(380), slice(380, 410)):  # the last ones wait
        model.partial_fit(*(column[part] for column in first))
    model.save(tmp_path / "q.parsimon")
    copies = [load(tmp_path / "q.parsimon"), pickle.loads(pickle.dumps(model))]
    model.partial_fit(*second)
    for copy in copies:
        assert type(copy) is QLearner
        assert_array_equal(copy.partial_fit(*second).predict(AT), model.predict(AT))
    model.save(tmp_path / "slim.parsimon", training=False)
    slim = load(tmp_path / "slim.parsimon")
    assert_allclose(slim.predict(AT), model.predict(AT), rtol=1e-12)
    with pytest.raises(ValueError, match="training=False"):
        slim.partial_fit(*second)


def test_the_greedy_policy_is_compressed_as_far_as_actions_stay_the_same():
    random = np.random.RandomState(0)
    X = random.uniform(-1, 1, size=(3000, 2))
    actions = random.randint(2, size=3000)
    # Which action is better depends on the side; how good either is, on much more.
    gain = np.where(actions == (X[:, 0] > 0), 1.0, 0.0) + np.sin(9 * X[:, 1])
    model = QLearner(2, discount=0.0, gamma=8.0, random_state=0).fit(X, actions, gain, X)
    policy = model.greedy_policy(X, agreement=0.97)
    assert policy.model_order < 0.5 * model.model_order_
    assert np.mean(policy.act(X) == model.act(X)) == policy.agreement >= 0.97
    same = model.greedy_policy(X, agreement=1.0)
    assert_array_equal(same.act(X), model.act(X))


def test_exploring():
    model = QLearner(2, **EXACT).fit(*moves(2000)[:5])
    states = np.repeat(AT, 1000, axis=0)
    actions = model.act(states, epsilon=0.4, random_state=0)
    assert_array_equal(actions, model.act(states, epsilon=0.4, random_state=0))
    assert abs(np.mean(actions == 0) - 0.2) < 0.02
    assert_array_equal(model.act(states), np.ones(len(states)))


STATES, ACTIONS, REWARDS, FOLLOWING, ENDS, AHEAD = moves(150)
BAD = {
    "an action too many": ({"actions": ACTIONS + 1}, "from 0 to 1 (n_actions=2), for each"),
    "half an action": ({"actions": ACTIONS / 2}, "actions must hold"),
    "too few actions": ({"actions": ACTIONS[1:]}, "actions must hold"),
    "no next actions": ({"next_actions": None}, "method='sarsa' needs next_actions"),
    "rewards": ({"rewards": REWARDS[1:]}, "as many rewards and next_states as states"),
    "features": ({"next_states": np.hstack([STATES, STATES])}, "have the features of states"),
    "flags": ({"terminal": ENDS + 0.5}, "terminal must hold 0 or 1"),
    "discounts": ({"discounts": np.full(150, 1.5)}, "discounts must hold"),
    "infinite": ({"rewards": REWARDS + np.inf}, "infinity"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_transitions_change_nothing(case):
    good = {"states": STATES, "actions": ACTIONS, "rewards": REWARDS, "next_states": FOLLOWING,
            "terminal": ENDS, "next_actions": AHEAD}  # fmt: skip
    wrong, message = BAD[case]
    model = QLearner(2, "sarsa", **EXACT).fit(**good)
    before = model.predict(AT)
    for learn in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=re.escape(message)):
            learn(**{**good, **wrong})
        assert_array_equal(model.predict(AT), before)


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_actions", 0), ("method", "td"), ("discount", 1.0), ("memory", 0), ("novelty", 1.0),
     ("solver", "lstd"), ("max_points", "auto")],
)  # fmt: skip
def test_bad_settings(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        clone(QLearner()).set_params(**{name: value}).fit(*moves(150)[:5])
    model = QLearner(2).fit(*moves(150)[:5])
    with pytest.raises(ValueError, match="epsilon must be a number from 0 to 1"):
        model.act(AT, epsilon=2)
    with pytest.raises(ValueError, match="agreement must be above 0"):
        model.greedy_policy(AT, agreement=0)


def test_the_benchmark_plays_and_learns(capsys, monkeypatch):
    pytest.importorskip("gymnasium")
    monkeypatch.setattr(control, "TEST_EPISODES", 2)
    assert cli.main(["control", "--runs", "1", "--episodes", "6"]) == 0
    assert '"sarsa"' in capsys.readouterr().out
    assert control.solved_after(np.r_[np.zeros(5), np.full(30, 500.0)], 475) == 5 + 19
    assert control.solved_after(np.zeros(50), 475) == np.inf


@pytest.mark.slow
@pytest.mark.parametrize("task", ["cart_pole", "mountain_car"])
def test_it_solves_environments_of_gymnasium(task):
    """As the environments say it: a mean return of so much in a hundred episodes."""
    pytest.importorskip("gymnasium")
    game = control.GAMES[task]
    options = argparse.Namespace(runs=2, quick=False, out=None)
    row, _ = control.experiment(task, game.episodes).rows(options)
    assert row.mean("greedy") >= game.solved

"""Value functions whose weights are solved, transitions of other policies, and how good V is."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from test_policy_evaluation import DISCOUNT, chain, error, values

import parsimon
from parsimon import PolicyEvaluator, kernels
from parsimon.colk._least_squares_td import warn_if_worse_than_constant
from parsimon.schedules import PowerLaw

GAUSSIAN = {"kernel": kernels.Gaussian(0.1)}


def features(model, states):
    return model._kernel_(states, model.dictionary_)


def exact(model, transitions, decay=0.0, terminal=None, ratios=None, discount=DISCOUNT):
    """Solve for the weights in plain loops, as in Boyan's least-squares TD(lambda)."""
    states, rewards, following = transitions
    now, then = features(model, states), features(model, following)
    size = now.shape[1]
    A, b, trace = np.zeros((size, size)), np.zeros(size), np.zeros(size)
    for t in range(len(states)):
        ahead = 0.0 if terminal is not None and terminal[t] else discount
        ratio = 1.0 if ratios is None else ratios[t]
        trace = ratio * (trace + now[t])
        A += np.outer(trace, now[t] - ahead * then[t])
        b += trace * rewards[t]
        goes_on = t + 1 < len(states) and np.array_equal(following[t], states[t + 1])
        trace = decay * ahead * trace if goes_on else np.zeros(size)
    gram = model._kernel_(model.dictionary_)
    return np.linalg.solve(A + 0.1 * gram.diagonal().max() * gram, b)


def walk(count, seed):
    """Transitions one after the other, with an end now and then."""
    random = np.random.RandomState(seed)
    states, following, terminal = np.empty((count, 1)), np.empty((count, 1)), np.zeros(count, bool)
    x = 0.5
    for t in range(count):
        y = np.abs(x + 0.03 + 0.1 * random.randn())
        y = 2 - y if y > 1 else y
        states[t], following[t], terminal[t] = x, y, random.uniform() < 0.05
        x = random.uniform() if terminal[t] or t % 37 == 36 else y
    return (states, np.sin(2 * np.pi * states[:, 0]), following), terminal


def test_lstd_is_more_precise_than_td_and_gtd():
    errors = {
        method: error(PolicyEvaluator(method).partial_fit(*chain(20_000)))
        for method in ("lstd", "td", "gtd")
    }
    assert errors["lstd"] < 0.1
    assert errors["lstd"] < 0.5 * min(errors["td"], errors["gtd"])
    assert PolicyEvaluator().method == "lstd"


@pytest.mark.parametrize("decay", [0.0, 0.6])
def test_lstd_solves_exactly_on_the_dictionary_found(decay):
    transitions, terminal = walk(600, 0)
    model = PolicyEvaluator(trace_decay=decay, random_state=0).fit(*transitions, terminal)
    known = exact(model, transitions, decay, terminal)
    assert_allclose(
        features(model, transitions[0]) @ known, model.predict(transitions[0]), atol=1e-5
    )


@pytest.mark.parametrize("method", ["td", "gtd"])
def test_refit_ends_with_the_least_squares_of_lstd(method):
    transitions = chain(3000)
    model = PolicyEvaluator(method, refit=True, random_state=0).fit(*transitions)
    known = features(model, transitions[0]) @ exact(model, transitions)
    assert_allclose(known, model.predict(transitions[0]), atol=1e-5)
    assert error(model) < 0.5 * error(clone(model).set_params(refit=False).fit(*transitions))


@pytest.mark.parametrize("decay", [0.0, 0.6])
def test_blocks_of_a_stream_are_solved_as_the_whole(decay):
    """Points are found along the way: what the past saw of them is taken from the span."""
    transitions, terminal = walk(6000, 1)
    columns = (*transitions, terminal)
    model = PolicyEvaluator(trace_decay=decay, **GAUSSIAN)
    for start in range(0, 6000, 50):
        model.partial_fit(*(column[start : start + 50] for column in columns))
    known = features(model, values()[0]) @ exact(model, transitions, decay, terminal)
    off = model.predict(values()[0]) - known
    assert np.sqrt((off**2).mean()) < 0.05 * known.std()


def test_td_lambda_knows_where_episodes_end_and_where_they_were_cut():
    transitions, terminal = walk(800, 2)
    whole = PolicyEvaluator(trace_decay=0.9, shuffle=False, **GAUSSIAN)
    whole.fit(*transitions, terminal)
    shuffled = np.random.RandomState(0).permutation(800)
    torn = clone(whole).fit(*(c[shuffled] for c in transitions), terminal[shuffled])
    plain = clone(whole).set_params(trace_decay=0.0).fit(*transitions, terminal)
    at = values()[0]
    # Nothing follows anything: lambda makes no difference.
    assert np.abs(torn.predict(at) - plain.predict(at)).max() < 0.3 * plain.predict(at).std()
    assert np.abs(whole.predict(at) - plain.predict(at)).max() > 1e-3
    with pytest.raises(ValueError, match="needs method='lstd'"):
        PolicyEvaluator("td", trace_decay=0.5).fit(*transitions)
    with pytest.raises(ValueError, match="trace_decay must be a number from 0 to 1"):
        PolicyEvaluator(trace_decay=1.5).fit(*transitions)


def off_policy(count, seed):
    """A coin decides between a step to the right, which is wanted nine times in ten, and left."""
    random = np.random.RandomState(seed)
    states = random.uniform(size=(count, 1))
    right = random.uniform(size=count) < 0.5
    following = np.clip(states + np.where(right, 0.1, -0.1)[:, None], 0, 1)
    rewards = following[:, 0]
    return (states, rewards, following), np.where(right, 0.9, 0.1) / 0.5


def true_off_policy(size=400):
    grid = (np.arange(size) + 0.5) / size
    up, down = np.clip(grid + 0.1, 0, 1), np.clip(grid - 0.1, 0, 1)
    P = np.zeros((size, size))
    for to, share in ((up, 0.9), (down, 0.1)):
        P[np.arange(size), np.minimum((to * size).astype(int), size - 1)] += share
    return grid[:, None], np.linalg.solve(np.eye(size) - 0.8 * P, 0.9 * up + 0.1 * down)


@pytest.mark.parametrize("method", ["lstd", "td", "gtd"])
def test_importance_ratios_make_it_the_value_of_the_policy(method):
    transitions, ratios = off_policy(40_000, 0)
    grid, V = true_off_policy()
    ours, biased = (
        PolicyEvaluator(method, discount=0.8, **GAUSSIAN).partial_fit(*transitions, importance=w)
        for w in (ratios, None)
    )
    rmse = [np.sqrt(((m.predict(grid) - V) ** 2).mean()) for m in (ours, biased)]
    # Steps are not there yet after one pass.
    assert rmse[0] < {"lstd": 0.3, "td": 0.5, "gtd": 1.0}[method]
    assert rmse[1] > 1.5 * rmse[0]


@pytest.mark.parametrize("method", ["lstd", "td", "gtd"])
def test_discounts_of_transitions_take_the_place_of_discount_and_terminal(method):
    states, rewards, following = chain(2000)
    ends = np.arange(2000) % 3 == 0
    given = PolicyEvaluator(method, random_state=0).fit(states, rewards, following, ends)
    same = clone(given).fit(
        states, rewards, following, discounts=np.where(ends, 0.0, given.discount)
    )
    assert_allclose(same.predict(states), given.predict(states), rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="discounts must hold one number for each of the 2000"):
        given.partial_fit(states, rewards, following, discounts=np.full(2000, 1.5))
    with pytest.raises(ValueError, match="importance must hold one number for each"):
        given.partial_fit(states, rewards, following, importance=np.full(2000, -1.0))


@pytest.mark.parametrize("method", ["lstd", "td", "gtd"])
def test_the_kernel_has_a_constant_unless_it_was_given(method):
    states, rewards, following = chain(500)
    model = PolicyEvaluator(method).fit(states, rewards, following)
    assert "constant" in model.kernel_.core.describe()
    given = PolicyEvaluator(method, **GAUSSIAN).fit(states, rewards, following)
    assert given.kernel_ == kernels.Gaussian(0.1)


def test_the_tracker_is_a_function():
    model = PolicyEvaluator("gtd", average=False, **GAUSSIAN).partial_fit(*chain(5000))
    tracker = model.tracker_
    assert isinstance(tracker, parsimon.KernelExpansion)
    assert len(tracker.weights) == model.tracker_order_ > 0
    assert np.isfinite(tracker(values()[0])).all()
    assert len(PolicyEvaluator().partial_fit(*chain(500)).tracker_.weights) == 0


def test_the_tracking_rate_follows_its_schedule():
    slow, fast = (
        PolicyEvaluator("gtd", tracking_schedule=law, average=False, **GAUSSIAN).partial_fit(
            *chain(3000)
        )
        for law in (PowerLaw(1.0, 0.1), "constant")
    )
    assert slow.tracker_.norm() < 0.7 * fast.tracker_.norm()


def test_score_is_one_for_the_truth_and_zero_for_the_best_constant():
    transitions = chain(20_000)
    model = PolicyEvaluator(**GAUSSIAN).partial_fit(*transitions)
    held_out = chain(20_000, 1)
    assert model.score(*held_out) == pytest.approx(1, abs=0.02)
    half = clone(model).partial_fit(*transitions)
    expansion = half.expansion_
    half.expansion_ = 0.5 * expansion
    assert 0 < half.score(*held_out) < 0.9
    half.expansion_ = -1.0 * expansion
    assert half.score(*held_out) < 0
    zero = PolicyEvaluator(budget=1e6, **GAUSSIAN).partial_fit(*transitions)
    assert zero.model_order_ == 0
    assert abs(zero.score(*held_out)) < 0.1


def test_it_warns_where_a_constant_is_better():
    states, _, following = chain(400)
    rewards = 1 + 0.001 * np.random.RandomState(0).randn(400)
    with pytest.warns(ConvergenceWarning, match="V is worse than a constant"):
        PolicyEvaluator("gtd", learning_rate=1e-3, **GAUSSIAN).fit(states, rewards, following)


def test_values_of_a_constant_reward_are_not_worse_than_a_constant(recwarn):
    """The best constant has no error at all there, and beside it nothing would be small."""
    states, _, following = chain(3000)
    for seed in range(5):
        model = PolicyEvaluator(random_state=seed).fit(states, np.ones(3000), following)
        assert_allclose(model.predict(values()[0]), 10, rtol=0.05)
        assert not [w for w in recwarn if w.category is ConvergenceWarning]
        # Some, in units of what counts as none; beside no error at all it would be billions.
        assert -10 < model.score(states, np.ones(3000), following) <= 0


def test_a_warning_of_lstd_does_not_advise_lstd():
    transitions = chain(3000)
    model = PolicyEvaluator(**GAUSSIAN).fit(*transitions)
    model.expansion_ = -1.0 * model.expansion_
    columns = model._transitions(*transitions, None, None, None, reset=False).columns
    with pytest.warns(ConvergenceWarning, match="Try more transitions") as caught:
        warn_if_worse_than_constant(model, columns)
    assert "lstd" not in str(caught[0].message)


def test_transitions_none_of_which_the_policy_takes_are_refused():
    transitions = chain(300)
    model = PolicyEvaluator(random_state=0).fit(*transitions)
    before = model.predict(transitions[0])
    for call in (model.fit, model.score):
        with pytest.raises(ValueError, match="importance is 0 for all transitions"):
            call(*transitions, importance=np.zeros(300))
    # In a stream others may follow.
    model.partial_fit(*transitions, importance=np.zeros(300))
    assert_allclose(model.predict(transitions[0]), before, atol=0.1 * np.abs(before).max())


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
@pytest.mark.parametrize("method", ["td", "gtd"])
def test_an_importance_ratio_that_no_step_can_take_is_told(method, call):
    transitions, ratios = chain(300), np.ones(300)
    ratios[77] = 1e12
    with pytest.warns(ConvergenceWarning, match=r"importance ratio of 1e\+12 is too large"):
        getattr(PolicyEvaluator(method), call)(*transitions, importance=ratios)


def test_lstd_takes_any_importance_ratio(recwarn):
    transitions, ratios = chain(300), np.ones(300)
    ratios[77] = 1e12
    model = PolicyEvaluator().partial_fit(*transitions, importance=ratios)
    assert np.abs(model.predict(values()[0])).max() < 20
    assert not [w for w in recwarn if w.category is ConvergenceWarning]


class Interrupted:
    """Transitions as columns, of which Ctrl-C lets only the first blocks be learned."""

    def __init__(self, model, after):
        self._model, self._after, self._blocks = model, after, 0

    def __getattr__(self, name):
        return getattr(self._model, name)

    def run(self, *columns_and_batch):
        self._blocks += 1
        if self._blocks > self._after:
            raise KeyboardInterrupt
        return self._model.run(*columns_and_batch)


def test_least_squares_know_what_was_learned_before_control_c():
    columns = chain(10_000)
    model, straight = (
        PolicyEvaluator(random_state=0).partial_fit(*(c[:500] for c in columns)) for _ in range(2)
    )
    core = model._model
    model._model = Interrupted(core, after=1)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(*(c[500:] for c in columns))
    model._model = core
    count = model.t_
    assert 500 < count < 10_000
    straight.partial_fit(*(c[500:count] for c in columns))
    assert model._differences_[-1] == count
    assert_allclose(model.predict(values()[0]), straight.predict(values()[0]), atol=1e-9)


def test_nothing_is_known_of_a_stream_that_control_c_ended_before_it_began():
    columns = chain(300)
    model = PolicyEvaluator(random_state=0).partial_fit(*columns)
    core, known = model._model, model._differences_[-1]
    model._model = Interrupted(core, after=0)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(*columns)
    model._model = core
    assert model.t_ == 300
    assert model._differences_[-1] == known


def test_a_solved_model_goes_on_from_its_file(tmp_path):
    transitions, terminal = walk(600, 3)
    columns = (*transitions, terminal)
    model = PolicyEvaluator(trace_decay=0.5, half_life=300.0)
    model.partial_fit(*(column[:300] for column in columns))
    model.save(tmp_path / "v.parsimon")
    again = parsimon.load(tmp_path / "v.parsimon")
    for each in (model, again):
        each.partial_fit(*(column[300:] for column in columns))
    assert np.array_equal(again.weights_, model.weights_)
    model.save(tmp_path / "slim.parsimon", training=False)
    slim = parsimon.load(tmp_path / "slim.parsimon")
    assert np.array_equal(slim.predict(transitions[0]), model.predict(transitions[0]))
    with pytest.raises(ValueError, match="training=False"):
        slim.partial_fit(*columns)


def test_a_half_life_forgets():
    states, rewards, following = chain(20_000)
    changed = np.concatenate([rewards[:10_000], -rewards[10_000:]])
    keeps, forgets = (
        PolicyEvaluator(half_life=half_life, **GAUSSIAN) for half_life in (None, 1000.0)
    )
    grid, V = values()
    off = []
    for model in (keeps, forgets):
        for start in range(0, 20_000, 2000):
            part = slice(start, start + 2000)
            model.partial_fit(states[part], changed[part], following[part])
        off.append(np.sqrt(((model.predict(grid) + V) ** 2).mean()))
    assert off[1] < 0.5
    assert off[0] > 2

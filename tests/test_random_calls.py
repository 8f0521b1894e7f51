"""Whatever is called in whatever order: invariants that hold for every stream (Hypothesis)."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from persistence_common import load
from polk_common import state

import parsimon
from parsimon import POLKClassifier, POLKRegressor, _core, _io, kernels

QUICK = settings(
    max_examples=30,
    deadline=None,
    derandomize=True,  # the same streams every time: a failure can be repeated
    suppress_health_check=list(HealthCheck),
)
SOLVERS = ["newton", "sgd"]


def regressor(solver, budget, **more):
    return POLKRegressor(
        kernel=kernels.Gaussian(0.5),
        learning_rate=0.5,
        budget=budget,
        solver=solver,
        batch_size=8,
        regularization=1e-4,
        normalize_y=False,
        random_state=0,
        **more,
    )


def block(seed, rows, spread):
    random = np.random.RandomState(seed)
    X = spread * random.standard_normal((rows, 2))
    if rows > 3:
        X[1] = X[0]  # an exact copy
        X[2] = X[0] + 1e-9  # and one that is nearly so
    return X, np.sin(X[:, 0]) + 0.1 * random.standard_normal(rows)


BLOCKS = st.tuples(
    st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([1e-3, 0.3, 1.0, 30.0])
)
BUDGETS = st.sampled_from([1e-8, 1e-3, 0.05, 1.0, 1e6])
BAD = [
    (np.full((3, 2), np.nan), np.zeros(3)),
    (np.zeros((3, 2)), np.full(3, np.inf)),
    (np.zeros((3, 5)), np.zeros(3)),
    (np.zeros((3, 2)), np.zeros(4)),
    (np.zeros((0, 2)), np.zeros(0)),
]


def check(model):
    """What is true of every model at any time."""
    trace = model.trace_
    assert (trace["compression_error"] <= trace["budget"] * (1 + 1e-12)).all()
    assert np.isfinite(model.weights_).all()
    assert np.isfinite(model.dictionary_).all()
    assert model.t_ == trace["samples"][-1]
    assert model.model_order_ == trace["model_order"][-1] == len(model.weights_)
    assert np.isfinite(model.predict(model.dictionary_)).all() if model.model_order_ else True


def through(way, model):
    if way == "pickle":
        return pickle.loads(pickle.dumps(model))
    if way == "copy":
        return copy.deepcopy(model)
    return load(dict(_io.to_archive(model)))


@QUICK
@given(
    st.sampled_from(SOLVERS),
    BUDGETS,
    st.lists(
        st.one_of(BLOCKS, st.sampled_from(["pickle", "copy", "file", "bad", "predict"])), max_size=8
    ),
)
def test_streams_of_random_calls(solver, budget, calls):
    model = regressor(solver, budget)
    model.partial_fit(*block(0, 16, 1.0))
    straight = copy.deepcopy(model)
    for call in calls:
        if isinstance(call, tuple):
            data = block(*call)
            model.partial_fit(*data)
            straight.partial_fit(*data)
        elif call == "bad":
            before = state(model)
            for X, y in BAD:
                with pytest.raises(ValueError, match=r".{10}"):
                    model.partial_fit(X, y)
            assert state(model) == before
        elif call == "predict":
            before = state(model)
            model.predict(block(1, 5, 100.0)[0])
            assert state(model) == before
        else:
            model = through(call, model)
        check(model)
    # Saved, copied, asked or refused: nothing of it leaves a trace.
    assert state(model) == state(straight)


@QUICK
@given(
    st.sampled_from(SOLVERS),
    BUDGETS,
    st.lists(st.integers(1, 5), min_size=1, max_size=6),
    st.integers(0, 10**6),
)
def test_blocks_of_whole_mini_batches_are_one_stream(solver, budget, cuts, seed):
    X, y = block(seed, 8 * sum(cuts), 1.0)
    whole, parts = regressor(solver, budget), regressor(solver, budget)
    # The first block chooses nothing here: every setting is given.
    whole.partial_fit(X, y)
    start = 0
    for cut in cuts:
        parts.partial_fit(X[start : start + 8 * cut], y[start : start + 8 * cut])
        start += 8 * cut
    assert state(whole) == state(parts)


@QUICK
@given(
    st.integers(0, 10**6),
    st.integers(1, 60),
    st.sampled_from([0.05, 0.5, 3.0]),
    st.floats(0, 10),
    st.data(),
)
def test_a_certificate_is_never_above_its_budget(seed, size, bandwidth, budget, data):
    random = np.random.RandomState(seed)
    points = random.standard_normal((size, 2)).round(1)  # some occur twice
    f = parsimon.KernelExpansion(
        kernels.Gaussian(bandwidth), points, random.standard_normal((size, 2))
    )
    chosen = data.draw(st.sets(st.integers(0, size - 1), max_size=3))
    protected = np.isin(np.arange(size), list(chosen))
    g, report = parsimon.komp(f, budget, protected=protected)
    assert report.error <= budget
    assert f.distance(g) <= report.error + 1e-6 * max(1.0, f.norm())
    for i in chosen:
        assert (g.dictionary == points[i]).all(axis=1).any()


@QUICK
@given(st.binary(max_size=200), st.integers(0, 10**6))
def test_no_bytes_are_more_than_an_error(data, seed):
    random = np.random.RandomState(seed)
    X, y = block(3, 24, 1.0)
    good = bytearray(state(regressor("newton", 0.05).partial_fit(X, y)))
    for _ in range(3):
        good[random.randint(len(good))] ^= 1 << random.randint(8)
    for content in (data, bytes(good)):
        with pytest.raises(ValueError, match=r".{10}"):
            _core.Archive.from_bytes(content)


@QUICK
@given(st.lists(st.sampled_from(["ash", "beech", "cedar"]), min_size=2, max_size=30), BLOCKS)
def test_labels_survive_everything(labels, blocks):
    X, _ = block(blocks[0], len(labels), 1.0)
    model = POLKClassifier(kernel=kernels.Gaussian(0.5), learning_rate=1.0, budget=0.1)
    model.partial_fit(X, labels, classes=["ash", "beech", "cedar"])
    for way in ("pickle", "copy", "file"):
        again = through(way, model)
        assert again.predict(X).tolist() == model.predict(X).tolist()

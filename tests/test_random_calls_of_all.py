"""The random streams of tests/test_random_calls.py, for every family of estimators."""

import copy
import os
import pickle
import signal
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from persistence_common import load
from polk_common import state

import parsimon
from parsimon import _io, kernels

QUICK = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
GAUSSIAN = {"kernel": kernels.Gaussian(0.5), "random_state": 0}
STEPS = GAUSSIAN | {"learning_rate": 0.5, "batch_size": 8}
CLASSES = [0, 1, 2]


def bsgd(maintenance, **more):
    def make():
        return parsimon.BSGDClassifier(**STEPS, max_points=7, maintenance=maintenance, **more)

    return make


MAKERS = {
    "merge": bsgd("merge", solver="sgd"),
    "remove": bsgd("remove", solver="sgd"),
    "project": bsgd("project", solver="sgd"),
    "merge, solved": bsgd("merge", solver="newton"),
    "nonparametric": bsgd("nonparametric", solver="sgd"),
    "COLK": lambda: parsimon.COLKRegressor("cvar", **STEPS, budget=0.05),
    "policy": lambda: parsimon.PolicyEvaluator(**STEPS, budget=0.05),
    "one class": lambda: parsimon.POLKOneClass(**STEPS),
    "density": lambda: parsimon.SPPPOTIntensity(
        domain=[(0, 1), (0, 1)], **GAUSSIAN, grid_size=5, solver="sgd", batch_size=8
    ),
    "solved density": lambda: parsimon.SPPPOTIntensity(
        domain=[(0, 1), (0, 1)], **GAUSSIAN, grid_size=5, batch_size=8
    ),
    "mirror": lambda: parsimon.MirrorNewtonIntensity(
        domain=[(0, 1), (0, 1)], **GAUSSIAN, grid_size=5, solver="sgd"
    ),
    "single precision": lambda: parsimon.POLKClassifier(
        **STEPS | {"kernel": kernels.SinglePrecision(kernels.Gaussian(0.5))}, budget=0.05
    ),
}


def samples(name, seed, rows):
    random = np.random.RandomState(seed)
    X = random.uniform(0, 1, (rows, 2))
    if rows > 3:
        X[1] = X[0]  # an exact copy
        X[2] = np.clip(X[0] + 1e-9, 0, 1)  # and one that is nearly so
    return X.astype(np.float32) if name == "single precision" else X


def train(name, model, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of one pass not being enough
        if name == "policy":
            return model.partial_fit(X, X[:, 1], np.roll(X, 1, axis=0))
        if name in ("one class", "density", "solved density", "mirror"):
            return model.partial_fit(X)
        if name == "COLK":
            return model.partial_fit(X, np.sin(3 * X[:, 0]))
        labels = np.floor(2.99 * np.nan_to_num(X[:, 0])).astype(int)
        return model.partial_fit(X, labels, classes=CLASSES)


def through(way, model):
    if way == "pickle":
        return pickle.loads(pickle.dumps(model))
    if way == "copy":
        return copy.deepcopy(model)
    return load(dict(_io.to_archive(model)))


def interrupted(name, model, X):
    """Train with Ctrl-C somewhere in it, or after it."""

    def stop(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 2e-4)
        train(name, model, X)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def replaced(name, model):
    """Give the model its own function back, without a point of it, where that is possible."""
    if name in ("density", "solved density", "mirror") or model.model_order_ < 2:
        return False
    model.expansion_ = 0.5 * model.expansion_
    return True


CALLS = ["pickle", "copy", "file", "bad", "replace"]
if os.name == "posix":
    CALLS.append("interrupt")
BLOCKS = st.tuples(st.integers(0, 10**6), st.integers(1, 40))


# Ctrl-C while a callback of threadpoolctl lists libraries is lost, and Python says so.
@pytest.mark.filterwarnings(
    "ignore:Exception ignored on calling ctypes callback:pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.parametrize("name", MAKERS)
@QUICK
@given(st.lists(st.one_of(BLOCKS, st.sampled_from(CALLS)), max_size=8))
def test_streams_of_random_calls(name, calls):
    model = train(name, MAKERS[name](), samples(name, 0, 24))
    straight = copy.deepcopy(model)
    for call in calls:
        if isinstance(call, tuple):
            X = samples(name, *call)
            train(name, model, X)
            train(name, straight, X)
        elif call == "bad":
            before = state(model)
            for X in (np.full((3, 2), np.nan), np.zeros((3, 5)), np.zeros((0, 2))):
                with pytest.raises(ValueError, match=r".{10}"):
                    train(name, model, X)
            assert state(model) == before
        elif call == "replace":
            if replaced(name, model):
                replaced(name, straight)
        elif call == "interrupt":
            interrupted(name, model, samples(name, 7, 400))
            straight = copy.deepcopy(model)
        else:
            model = through(call, model)
        # Both are asked: a density is solved then, from where it was solved last.
        for each in (model, straight):
            assert np.isfinite(each.weights_).all()
            assert np.isfinite(each.dictionary_).all()
            assert len(each.weights_) == each.model_order_
    assert state(model) == state(straight)

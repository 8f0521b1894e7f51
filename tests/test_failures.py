"""Learning that fails half way: fit changes nothing, a stream keeps its finished mini-batches."""

import copy
import functools
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from polk_common import (
    GIVEN,
    assert_keeps_what_is_done,
    assert_refused,
    curve,
    everything,
    task,
)

from parsimon import DivergenceError, POLKClassifier, POLKRegressor, kernels

X, LABELS = task()
X, LABELS = X[:100], LABELS[:100]
TARGETS = curve()[1][:100]
BATCH = GIVEN["batch_size"]


def make(cls, **settings):
    return cls(**{**GIVEN, **settings})


def test_divergence():
    message = "grown beyond all bounds .* smaller learning rate"
    stream = np.tile(X, (200, 1)), np.tile(TARGETS, 200)
    for batch in (BATCH, 100):
        settings = {"learning_rate": 1e3, "batch_size": batch, "epochs": 200, "refit": False}
        settings |= {"parsimony": "auto", "budget": 1e-3, "normalize_y": False}
        model = make(POLKRegressor, **settings)
        assert_refused(model, lambda m: m.fit(X, TARGETS), message, DivergenceError)
        assert assert_keeps_what_is_done(model, stream, message, DivergenceError) > 0
        assert_refused(model, lambda m: m.fit(X, TARGETS), message, DivergenceError)
        assert np.isfinite(model.predict(X)).all()
        model = make(POLKRegressor, **settings).partial_fit(X[:BATCH], TARGETS[:BATCH])
        assert assert_keeps_what_is_done(model, stream, message, DivergenceError) > 0
        assert np.isfinite(model.predict(X)).all()


def test_a_first_block_without_a_finished_mini_batch_leaves_no_model():
    model = make(POLKRegressor, normalize_y=False)
    targets = np.full(len(X), 1e200)
    assert_refused(model, lambda m: m.partial_fit(X, targets), "beyond all", DivergenceError)
    assert model.partial_fit(X, TARGETS).t_ == len(X)


PEAK = """
    import resource, numpy as np
    from parsimon import POLKClassifier, kernels
    # Samples that have nothing to do with each other: all become points, and then all are right.
    X = np.random.RandomState(0).randn(2000, 784)
    y = np.arange(2000) % 2
    model = POLKClassifier(
        kernel=kernels.Gaussian(1.0), learning_rate=4000.0, budget=1e-6, regularization=0.0,
        batch_size=2000, average=False, solver="sgd", n_jobs=1,
    ).partial_fit(X, y, classes=[0, 1])
    assert model.model_order_ == 2000
    model.set_params(batch_size=32).partial_fit(X[:32], y[:32])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model.partial_fit(X, y)
    assert (model.t_, model.model_order_) == (4032, 2000)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems count memory in other units")
def test_a_block_of_2000_points_makes_no_copy_of_the_model():
    command = [sys.executable, "-c", textwrap.dedent(PEAK)]
    grown = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    # In KB: the points alone are 12,250, and the model with its factor 200,000.
    assert grown < 4000


def test_one_mini_batch_that_diverges_leaves_no_bit_changed():
    model = make(POLKRegressor, normalize_y=False)
    for start in range(0, 3000, BATCH):
        samples = np.random.RandomState(start).randn(BATCH, 2)
        assert_refused(
            model,
            lambda m, s=samples: m.partial_fit(s, np.full(BATCH, 1e200)),
            "grown beyond all bounds",
            DivergenceError,
        )
        model.partial_fit(samples, np.sin(samples[:, 0]))


class Failing:
    """A kernel that fails at a given call, wherever in the work that may be."""

    def __init__(self):
        self.calls = 0
        self.fails_at = -1
        self.broken = lambda: 1 / 0

    def __call__(self, A, B):
        self.calls += 1
        if self.calls == self.fails_at + 1:
            return self.broken()
        return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=-1))

    def __reduce__(self):
        return Failing, ()


@pytest.mark.parametrize("samples", [BATCH, 100])
@pytest.mark.parametrize(
    ("broken", "error", "message"),
    [
        (lambda: 1 / 0, ZeroDivisionError, "division by zero"),
        (lambda: np.zeros(3), ValueError, "must return an array of shape"),
        (lambda: "text", ValueError, "must return real numbers"),
    ],
    ids=["exception", "shape", "type"],
)
@pytest.mark.parametrize("budget", [0.05, 0.0])
def test_a_kernel_that_fails(samples, broken, error, message, budget):
    function = Failing()
    kernel = kernels.Function(function)
    solver = "newton" if budget > 0 else "sgd"
    settings = {"parsimony": "auto", "budget": budget, "solver": solver}
    fitted = make(POLKClassifier, kernel=kernel, **settings)
    fitted.partial_fit(X, LABELS, classes=range(5))
    block = X[:samples], LABELS[:samples]
    # What the model is after each mini-batch of the block, and how many calls have led there.
    calls, after = [0], [everything(fitted)[0]]
    model, function = with_own_kernel(fitted)
    for start in range(0, samples, BATCH):
        model.partial_fit(*(part[start : start + BATCH] for part in block))
        calls.append(function.calls)
        after.append(everything(model)[0])
    assert calls[-1] > 0
    for fails_at in range(calls[-1]):
        model, function = with_own_kernel(fitted)
        function.broken, function.fails_at = broken, fails_at
        with pytest.raises(error, match=message):
            model.partial_fit(*block)
        finished = sum(count <= fails_at for count in calls) - 1
        assert everything(model)[0] == after[finished]


def with_own_kernel(fitted):
    """Return a copy of the model, and the function that is its kernel."""
    model = copy.deepcopy(fitted)
    function = model.expansion_.kernel.callable
    function.calls = 0
    return model, function


def not_finite(A, B, value):
    K = np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=-1))
    return np.where(np.isclose(A[:, :1], 7.0), value, K)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_kernel_that_is_not_finite(value):
    kernel = kernels.Function(functools.partial(not_finite, value=value))
    model = make(POLKClassifier, kernel=kernel)
    model.partial_fit(X, LABELS, classes=range(5))
    poison = np.vstack([X[:40], [[7.0, 0.0]]]), LABELS[:41]
    message = r"not finite|NaN or infinity"
    assert_refused(model, lambda m: m.fit(*poison), message)
    assert assert_keeps_what_is_done(model, poison, message, ValueError) == 2 * BATCH


def test_a_kernel_that_overflows():
    kernel = kernels.Polynomial(9)
    unfitted, fitted = make(POLKRegressor, kernel=kernel), make(POLKRegressor).fit(X, TARGETS)
    for model in (unfitted, fitted.set_params(kernel=kernel)):
        assert_refused(model, lambda m: m.fit(1e100 * X, TARGETS), "not finite")
    model = make(POLKRegressor, kernel=kernels.Linear()).fit(X, TARGETS)
    failure = "not finite|beyond all bounds", (ValueError, DivergenceError)
    for good in (0, 6 * BATCH):
        samples = np.vstack([X[:good], 1e200 * X])
        block = samples, np.resize(TARGETS, len(samples))
        assert assert_keeps_what_is_done(model, block, *failure) == good


@pytest.mark.parametrize("scale", [1e-200, 1e200])
@pytest.mark.parametrize("gamma", ["scale", "median", "auto"])
def test_features_beyond_any_width(gamma, scale):
    unfitted, fitted = make(POLKRegressor), make(POLKRegressor).fit(X, TARGETS)
    for model in (unfitted, fitted):
        model.set_params(kernel="rbf", gamma=gamma)
        assert_refused(model, lambda m: m.fit(scale * X, TARGETS), "features .* scale them")

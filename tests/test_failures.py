"""Learning that fails half way changes nothing."""

import numpy as np
import pytest
from polk_common import GIVEN, assert_refused, curve, everything, state, task

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
        model = make(POLKRegressor, parsimony="auto", budget=1e-3, **settings)
        assert_refused(model, lambda m: m.fit(X, TARGETS), message, DivergenceError)
        assert_refused(model, lambda m: m.partial_fit(*stream), message, DivergenceError)
        model.partial_fit(X[:BATCH], TARGETS[:BATCH])
        assert_refused(model, lambda m: m.fit(X, TARGETS), message, DivergenceError)
        assert_refused(model, lambda m: m.partial_fit(*stream), message, DivergenceError)
        model.partial_fit(X[:BATCH], TARGETS[:BATCH])
        assert model.t_ == 2 * BATCH
        assert np.isfinite(model.predict(X)).all()


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
        self.calls_left = np.inf
        self.broken = lambda: 1 / 0

    def __call__(self, A, B):
        self.calls_left -= 1
        if self.calls_left < 0:
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
    model = make(POLKClassifier, kernel=kernel, parsimony="auto", budget=budget)
    model.partial_fit(X, LABELS, classes=range(5))
    function.broken = broken
    before = everything(model)[0]
    calls = 0
    while not learns(model, function, calls, samples, error, message):
        assert everything(model)[0] == before
        calls += 1
    assert calls > 0
    assert model.t_ == len(X) + samples


def learns(model, function, calls, samples, error, message):
    function.calls_left = calls
    try:
        model.partial_fit(X[:samples], LABELS[:samples])
    except error as raised:
        if message not in str(raised):
            raise
        return False
    finally:
        function.calls_left = np.inf
    return True


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_kernel_that_is_not_finite(value):
    def kernel(A, B):
        K = np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=-1))
        return np.where(np.isclose(A[:, :1], 7.0), value, K)

    model = make(POLKClassifier, kernel=kernels.Function(kernel))
    model.partial_fit(X, LABELS, classes=range(5))
    poison = np.vstack([X[:40], [[7.0, 0.0]]]), LABELS[:41]
    for name in ("partial_fit", "fit"):
        before = state(model)
        with pytest.raises(ValueError, match=r"not finite|NaN or infinity"):
            getattr(model, name)(*poison)
        assert state(model) == before


def test_a_kernel_that_overflows():
    kernel = kernels.Polynomial(9)
    unfitted, fitted = make(POLKRegressor, kernel=kernel), make(POLKRegressor).fit(X, TARGETS)
    for model in (unfitted, fitted.set_params(kernel=kernel)):
        assert_refused(model, lambda m: m.fit(1e100 * X, TARGETS), "not finite")
    model = make(POLKRegressor, kernel=kernels.Linear()).fit(X, TARGETS)
    for samples in (1e200 * X[:BATCH], np.vstack([X, 1e200 * X])):
        targets = np.resize(TARGETS, len(samples))
        assert_refused(
            model,
            lambda m, s=samples, t=targets: m.partial_fit(s, t),
            "not finite|beyond all bounds",
            (ValueError, DivergenceError),
        )


@pytest.mark.parametrize("scale", [1e-200, 1e200])
@pytest.mark.parametrize("gamma", ["scale", "median", "auto"])
def test_features_beyond_any_width(gamma, scale):
    unfitted, fitted = make(POLKRegressor), make(POLKRegressor).fit(X, TARGETS)
    for model in (unfitted, fitted):
        model.set_params(kernel="rbf", gamma=gamma)
        assert_refused(model, lambda m: m.fit(scale * X, TARGETS), "features .* scale them")

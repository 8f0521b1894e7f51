"""COLK and policy evaluation refuse bad input with a sentence, and nothing changes."""

import numpy as np
import pytest
from colk_common import GIVEN, outliers
from numpy.testing import assert_array_equal
from polk_common import (
    assert_keeps_what_is_done,
    assert_number_of_targets_stays,
    assert_refused,
    bad_weights,
    spoiled,
)
from scipy import sparse

from parsimon import (
    COLKClassifier,
    COLKRegressor,
    CompositionalLearner,
    PolicyEvaluator,
    kernels,
)
from parsimon.schedules import PowerLaw

X, TARGETS = outliers(100)
LABELS = (TARGETS > 0).astype(int)
FOLLOWING = np.clip(X + 0.1, -1, 1)


def inner(f, y):
    return f - y


def inner_derivative(f, y):
    return np.ones((len(y), 1, 1))


def outer_gradient(f, y, g):
    return np.repeat(2 * g, len(y), axis=0)


def direct_gradient(f, y, g):
    return 0.1 * (f - y)


def outer(f, y, g):
    return (f - y)[:, 0] ** 2


def make(cls, **settings):
    """Return an estimator to be spoiled by these settings."""
    own = {
        COLKRegressor: GIVEN,
        COLKClassifier: {"epochs": 1, "solver": "sgd"},
        CompositionalLearner: {
            "inner": inner, "inner_derivative": inner_derivative, "outer_gradient": outer_gradient,
        },
        PolicyEvaluator: {"gamma": 3.0},
    }[cls]  # fmt: skip
    return cls(**{**own, "batch_size": 8, "random_state": 0, **settings})


def data(cls):
    return {
        COLKRegressor: (X, TARGETS),
        COLKClassifier: (X, LABELS),
        CompositionalLearner: (X, TARGETS),
        PolicyEvaluator: (X, TARGETS, FOLLOWING),
    }[cls]


def unfitted_and_fitted(cls, **settings):
    yield make(cls, **settings)
    yield make(cls).fit(*data(cls)).set_params(**settings)


def learn(model, name, *arguments, **extra):
    if isinstance(model, COLKClassifier) and name == "partial_fit":
        extra.setdefault("classes", [0, 1])
    return getattr(model, name)(*arguments, **extra)


def assert_both_refuse(cls, arguments, message, error=ValueError, settings=None, **extra):
    """Neither fit nor partial_fit takes these, whether the estimator is fitted or not."""
    for model in unfitted_and_fitted(cls, **(settings or {})):
        for name in ("fit", "partial_fit"):
            assert_refused(
                model, lambda m, n=name: learn(m, n, *arguments, **extra), message, error
            )


RISK_AWARE = [COLKRegressor, COLKClassifier]
ALL = [*RISK_AWARE, CompositionalLearner, PolicyEvaluator]

# -- hyper-parameters ------------------------------------------------------------------------------

NUMBER = [-1.0, np.nan, np.inf, "large", None, [1.0], 10**400, True]
COUNT = [0, -1, 2.0, "x", None, True]
FLAG = [None, "yes", 2]
OF_ALL = [
    *[("learning_rate", v, "learning_rate must be a positive") for v in (*NUMBER, 0.0)],
    *[("tracking_rate", v, "tracking_rate must be a positive") for v in (*NUMBER, 0.0)],
    *[("regularization", v, "regularization must be a finite") for v in NUMBER],
    *[("budget", v, "budget must be a finite") for v in NUMBER if v is not None],
    *[("parsimony", v, "parsimony must be a finite") for v in NUMBER if v is not None],
    *[("gamma", v, "gamma must be a positive") for v in (*NUMBER, 0.0)],
    *[("batch_size", v, "batch_size must be an integer") for v in COUNT],
    *[("epochs", v, "epochs must be an integer") for v in COUNT],
    *[("schedule", v, "'constant', 'inverse', 'sqrt'") for v in ("up", None, 0.5, PowerLaw)],
    *[("kernel", v, "kernel must be|no kernel named") for v in ("x", None, 1, kernels.Gaussian)],
    *[("average", v, "average must be True or False") for v in FLAG],
    *[("shuffle", v, "shuffle must be True or False") for v in FLAG],
    *[("verbose", v, "verbose must be an integer") for v in (None, "loud", 0.5)],
]
OF_RISK = [
    *[("risk", v, "risk must be one of 'semideviation'") for v in ("x", 1, ["cvar"], True, "none")],
    *[("risk_weight", v, "risk_weight must be a finite") for v in NUMBER],
    *[("moment_order", v, "moment_order must be an integer") for v in (*COUNT, 2.5)],
    *[("moment_order", v, "moment_order must be from 2 to 64") for v in (1, 65, 10**6)],
    *[("level", v, "level must be between 0 and 1") for v in (0, 1, 1.5, -0.1, np.nan, "x", None)],
    *[("clip", v, "clip must be a positive") for v in (0.0, -1.0, np.nan, np.inf, "x", True)],
    *[("tracking_rate", v, "tracking_rate must be at most 1") for v in (1.1, 5)],
    *[("tracking_schedule", v, "'constant', 'inverse', 'sqrt'") for v in ("up", None, PowerLaw)],
    *[("max_points", v, "max_points must be an integer") for v in (0, 2.5, "x", True)],
]
OF_GENERAL = [
    *[(n, v, f"{n} must be an integer") for n in ("n_inner", "n_outputs") for v in COUNT],
    *[(n, v, f"{n} must be a function") for n in ("inner", "outer_gradient") for v in (None, 3)],
    ("inner_derivative", None, "inner_derivative must be a function of blocks; got None"),
    *[(n, "x", f"{n} must be a function of blocks or None") for n in ("outer", "direct_gradient")],
    ("tracking_rate", 1.5, "tracking_rate must be at most 1"),
    *[
        (n, v, f"{n} must be True or False")
        for n in ("check", "outer_depends_on_sample")
        for v in FLAG
    ],
]
OF_POLICY = [
    *[("method", v, "method must be one of 'lstd', 'td', 'gtd'") for v in ("x", None, 1, "TD")],
    *[("discount", v, "discount must be a finite") for v in NUMBER],
    *[("discount", v, "discount must be below 1") for v in (1, 1.5)],
    *[("max_points", v, "max_points must be an integer") for v in (0, 2.5, "x", True)],
]
CASES = [
    *[(cls, *case) for cls in ALL for case in OF_ALL],
    *[(cls, *case) for cls in RISK_AWARE for case in OF_RISK],
    *[(CompositionalLearner, *case) for case in OF_GENERAL],
    *[(PolicyEvaluator, *case) for case in OF_POLICY],
]


@pytest.mark.parametrize(
    ("cls", "name", "value", "message"),
    CASES,
    ids=[f"{cls.__name__}-{name}={value!r:.12}" for cls, name, value, _ in CASES],
)
def test_settings(cls, name, value, message):
    assert_both_refuse(cls, data(cls), message, settings={name: value})


@pytest.mark.parametrize("cls", RISK_AWARE)
def test_settings_that_do_not_go_together(cls):
    both = {"budget": 0.1, "parsimony": 0.5}
    assert_both_refuse(cls, data(cls), "not both", settings=both)
    assert_both_refuse(PolicyEvaluator, data(PolicyEvaluator), "not both", settings=both)
    mixed = {"risk": "cvar", "risk_weight": 1.5}
    assert_both_refuse(cls, data(cls), "at most 1 with risk='cvar'", settings=mixed)
    # One sample can be a mini-batch.
    for risk in (None, "cvar", "semideviation"):
        alone = make(cls, risk=risk, risk_weight=0.5, batch_size=1, learning_rate=0.01)
        assert len(alone.fit(*data(cls)).trace_["loss"]) == 100


@pytest.mark.parametrize("cls", ALL)
def test_the_learning_rate_must_be_below_the_inverse_regularization(cls):
    for model in unfitted_and_fitted(cls, learning_rate=0.02, regularization=100.0):
        message = "learning rate .*times the regularization .*below"
        assert_refused(model, lambda m: m.fit(*data(cls)), message)


def test_settings_of_the_regressor():
    for name in ("normalize_y", "refit"):
        assert_both_refuse(
            COLKRegressor, (X, TARGETS), f"{name} must be True or False", settings={name: "yes"}
        )
    for loss in ("hinge", "logistic", None, "squared()", "squared(0)", "squared(-1)", "huber(0)"):
        assert_both_refuse(
            COLKRegressor, (X, TARGETS), "loss|Huber|squared|number", settings={"loss": loss}
        )


# -- samples and targets ---------------------------------------------------------------------------

BAD_SAMPLES = {
    "NaN": (spoiled(X, np.nan), "contains NaN"),
    "infinity": (spoiled(X, -np.inf), "contains infinity"),
    "no samples": (X[:0], "minimum of 1 is required|0 sample"),
    "no features": (X[:, :0], "0 feature"),
    "one dimension": (X[:, 0], "Expected 2D array"),
    "three dimensions": (X[None], "3"),
    "text": (np.full((100, 1), "a"), "could not convert|dtype"),
    "complex numbers": (X + 1j, "Complex data not supported"),
    "too few": (X[:50], "inconsistent numbers of samples|X has 50 samples|as many"),
}


@pytest.mark.parametrize("case", BAD_SAMPLES)
@pytest.mark.parametrize("cls", ALL)
def test_samples(cls, case):
    samples, message = BAD_SAMPLES[case]
    assert_both_refuse(cls, (samples, *data(cls)[1:]), message)
    model = make(cls).fit(*data(cls))
    if case != "too few":
        assert_refused(model, lambda m: m.predict(samples), message)
    wide = np.hstack([X, X])
    assert_refused(model, lambda m: m.predict(wide), "features, but .* is expecting 1")


@pytest.mark.parametrize("cls", [CompositionalLearner, PolicyEvaluator])
def test_sparse_samples_are_refused_where_they_are_not_taken(cls):
    assert_both_refuse(
        cls, (sparse.csr_matrix(X), *data(cls)[1:]), "dense data is required", TypeError
    )
    assert not make(cls).__sklearn_tags__().input_tags.sparse


@pytest.mark.parametrize("cls", [COLKRegressor, CompositionalLearner])
def test_targets(cls):
    for value, message in ((np.nan, "NaN"), (np.inf, "infinity")):
        assert_both_refuse(cls, (X, spoiled(TARGETS, value)), message)
    assert_both_refuse(cls, (X, TARGETS[:50]), "inconsistent|y has 50")
    assert_both_refuse(cls, (X, np.full(100, "a")), "could not convert")
    assert_both_refuse(cls, (X, TARGETS + 1j), "Complex data")


def test_number_of_targets():
    assert_number_of_targets_stays(make(COLKRegressor), X, TARGETS)


def test_labels():
    assert_both_refuse(COLKClassifier, (X, spoiled(LABELS, np.nan)), "NaN")
    assert_both_refuse(COLKClassifier, (X, LABELS + 0.5), "Unknown label type")
    assert_both_refuse(COLKClassifier, (X, np.column_stack([LABELS, LABELS])), "1d array|shape")
    model = make(COLKClassifier)
    assert_refused(model, lambda m: m.fit(X, 0 * LABELS), "one class")
    model.partial_fit(X, LABELS, classes=[0, 1])
    assert_refused(model, lambda m: m.partial_fit(X, LABELS.astype(str)), "one type")


@bad_weights
@pytest.mark.parametrize("cls", RISK_AWARE)
def test_sample_weights(cls, weight, message):
    assert_both_refuse(cls, data(cls), message, sample_weight=weight)


# -- transitions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rewards", "message"),
    [
        (spoiled(TARGETS, np.nan), "rewards contains NaN"),
        (spoiled(TARGETS, np.inf), "rewards contains infinity"),
        (np.column_stack([TARGETS, TARGETS]), "rewards must hold one value for each transition"),
        (TARGETS[:5], r"as many rewards.*rewards \(5,\)"),
        (np.full(100, "a"), "could not convert"),
        (TARGETS + 1j, "Complex data"),
    ],
    ids=["NaN", "infinity", "two columns", "too few", "text", "complex"],
)
def test_rewards(rewards, message):
    assert_both_refuse(PolicyEvaluator, (X, rewards, FOLLOWING), message)


@pytest.mark.parametrize(
    ("following", "message"),
    [
        (spoiled(FOLLOWING, np.nan), "next_states contains NaN"),
        (FOLLOWING[:5], r"as many .*next_states \(5, 1\)"),
        (np.hstack([FOLLOWING, FOLLOWING]), r"next_states must have the features of states"),
        (FOLLOWING[:, 0], "Expected 2D array"),
        (None, "Expected 2D array"),
    ],
    ids=["NaN", "too few", "two features", "one dimension", "none"],
)
def test_next_states(following, message):
    assert_both_refuse(PolicyEvaluator, (X, TARGETS, following), message)


@pytest.mark.parametrize(
    "terminal",
    [np.full(100, np.nan), np.full(100, 0.5), np.full(100, 2), np.full(100, -1), ["a"] * 100,
     np.full(100, None), np.zeros((100, 2)), True, np.zeros(99), np.zeros((0,))],
    ids=["NaN", "half", "two", "minus one", "text", "none", "columns", "one", "too few", "empty"],
)  # fmt: skip
def test_terminal_flags(terminal):
    assert_both_refuse(PolicyEvaluator, (X, TARGETS, FOLLOWING, terminal), "terminal")


# -- functions of a general problem ----------------------------------------------------------------


class Failing:
    """One of the three functions, which fails at a given call."""

    def __init__(self, function):
        self.function = function
        self.calls_left = np.inf
        self.broken = None

    def __call__(self, *blocks):
        self.calls_left -= 1
        return self.function(*blocks) if self.calls_left >= 0 else self.broken(*blocks)

    def __reduce__(self):
        return Failing, (self.function,)


def interrupt(*blocks):
    raise KeyboardInterrupt


BROKEN = {
    "exception": (lambda *b: 1 / 0, ZeroDivisionError, "division by zero"),
    "too few": (lambda *b: np.zeros((3, 1)), ValueError, "returned 3 x 1 numbers, where"),
    "too many columns": (lambda f, *b: np.zeros((len(f), 2)), ValueError, "x 2 numbers, where"),
    "a number": (lambda *b: 1.0, ValueError, "returned 1 x 1 numbers, where"),
    "nothing": (lambda *b: None, (ValueError, TypeError), "numbers"),
    "NaN": (lambda f, *b: np.full((len(f), 1), np.nan), ValueError, "not finite"),
    "infinity": (lambda f, *b: np.full((len(f), 1), np.inf), ValueError, "not finite"),
    "text": (lambda *b: "text", (ValueError, TypeError), "real numbers"),
    "an object": (lambda *b: object(), (ValueError, TypeError), "real numbers"),
    "ragged": (lambda *b: [[1.0], [1.0, 2.0]], (ValueError, TypeError), "real numbers"),
    "complex": (lambda f, *b: np.full((len(f), 1), 1j), (ValueError, TypeError), "real numbers"),
}
FUNCTIONS = {
    "inner": inner,
    "inner_derivative": inner_derivative,
    "outer_gradient": outer_gradient,
    "direct_gradient": direct_gradient,
    "outer": outer,
}


@pytest.mark.parametrize("case", BROKEN)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_that_fails(name, case):
    broken, error, message = BROKEN[case]
    function = Failing(FUNCTIONS[name])
    model = make(CompositionalLearner, **{name: function}, budget=1e-3).partial_fit(X, TARGETS)
    function.broken = broken
    for call in (0, 3, 11):
        function.calls_left = call
        assert_refused(model, lambda m: m.fit(X, TARGETS), message, error)
        function.calls_left = call
        # It is called once in each mini-batch of 8 samples.
        assert assert_keeps_what_is_done(model, (X, TARGETS), message, error) == call * 8
    function.calls_left = np.inf
    assert model.partial_fit(X, TARGETS).t_ == 200 + (0 + 3 + 11) * 8


@pytest.mark.parametrize("name", ["inner", "inner_derivative", "outer_gradient"])
def test_control_c_within_a_function_keeps_what_was_learned(name):
    function = Failing(FUNCTIONS[name])
    function.broken = interrupt
    model = make(CompositionalLearner, **{name: function}, budget=1e-3).partial_fit(X, TARGETS)
    function.calls_left = 5
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X, TARGETS)
    function.calls_left = np.inf
    assert model.t_ == 100 + 5 * 8
    assert model.trace_["samples"][-1] == model.t_
    assert np.isfinite(model.predict(X)).all()
    assert model.partial_fit(X, TARGETS).t_ == 240


def test_what_a_function_does_to_its_blocks_stays_there():
    def vandal(f, y):
        result = f - y
        f[:] = y[:] = 1e9
        return result

    plain = make(CompositionalLearner).fit(X, TARGETS)
    other = make(CompositionalLearner, inner=vandal).fit(X, TARGETS)
    assert_array_equal(other.weights_, plain.weights_)

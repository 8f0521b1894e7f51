"""Bad input is refused with a sentence that says what was expected, and changes nothing."""

import numpy as np
import pytest
from polk_common import (
    GIVEN,
    assert_number_of_targets_stays,
    assert_refused,
    bad_weights,
    curve,
    spoiled,
    task,
)
from scipy import sparse

from parsimon import POLKClassifier, POLKRegressor, kernels
from parsimon.schedules import AdaptiveBudget, PowerLaw

X, LABELS = task()
X, LABELS = X[:100], LABELS[:100]
TARGETS = curve()[1][:100]
BATCH = GIVEN["batch_size"]


def with_value(value, where=(3, 1)):
    changed = X.copy()
    changed[where] = value
    return changed


def make(cls, **settings):
    return cls(**{**GIVEN, **settings})


def good(cls):
    return LABELS if cls is POLKClassifier else TARGETS


def partial_fit(model, samples, targets, **extra):
    if isinstance(model, POLKClassifier):
        extra.setdefault("classes", range(5))
    return model.partial_fit(samples, targets, **extra)


def unfitted_and_fitted(cls, **settings):
    yield make(cls, **settings)
    yield make(cls).fit(X, good(cls)).set_params(**settings)
    yield partial_fit(make(cls), X[:BATCH], good(cls)[:BATCH]).set_params(**settings)


both = pytest.mark.parametrize("cls", [POLKClassifier, POLKRegressor])


# -- samples -------------------------------------------------------------------------------------

BAD_SAMPLES = {
    "NaN": (with_value(np.nan), "contains NaN"),
    "infinity": (with_value(np.inf), "contains infinity"),
    "minus infinity": (with_value(-np.inf, (99, 0)), "contains infinity"),
    "sparse NaN": (sparse.csr_matrix(with_value(np.nan)), "contains NaN"),
    "no samples": (X[:0], "minimum of 1 is required|0 sample"),
    "no features": (X[:, :0], "0 feature"),
    "one dimension": (X[:, 0], "Expected 2D array"),
    "three dimensions": (X[None], "3"),
    "a number": (5.0, "Expected 2D array|scalar"),
    "objects": (np.full((100, 2), object()), "float|number"),
    "text": (np.full((100, 2), "a"), "could not convert|dtype"),
    "complex numbers": (X + 1j, "Complex data not supported"),
    "ragged": ([[1.0], [1.0, 2.0]], "inhomogeneous|sequence"),
    "fewer than targets": (X[:50], "inconsistent numbers of samples"),
}


@pytest.mark.parametrize("case", BAD_SAMPLES)
@both
def test_samples(cls, case):
    samples, message = BAD_SAMPLES[case]
    for model in unfitted_and_fitted(cls):
        assert_refused(model, lambda m: m.fit(samples, good(cls)), message, (ValueError, TypeError))
        assert_refused(
            model, lambda m: partial_fit(m, samples, good(cls)), message, (ValueError, TypeError)
        )
    if case == "fewer than targets":
        return
    methods = ["predict", *(["decision_function"] if cls is POLKClassifier else [])]
    for method in methods:
        assert_refused(
            model,
            lambda m, name=method: getattr(m, name)(samples),
            message,
            (ValueError, TypeError),
        )


@both
def test_number_of_features(cls):
    wide = np.hstack([X, X])
    for samples in (wide, X[:, :1], sparse.csr_matrix(wide)):
        model = make(cls).fit(X, good(cls))
        message = r"features, but .* is expecting 2"
        assert_refused(model, lambda m, s=samples: partial_fit(m, s, good(cls)), message)
        assert_refused(model, lambda m, s=samples: m.predict(s), message)
    for bandwidth in ([1.0], [1.0, 2.0, 3.0]):
        for model in unfitted_and_fitted(cls, kernel=kernels.Gaussian(bandwidth)):
            assert_refused(model, lambda m: m.fit(X, good(cls)), "features")


# -- targets, labels, weights --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (spoiled(LABELS, np.nan), "NaN"),
        (spoiled(LABELS, np.inf), "infinity"),
        (LABELS + 0.5, "Unknown label type: continuous"),
        (np.column_stack([LABELS, LABELS]), "1d array|shape"),
        (np.where(LABELS > 2, "a", None), "labels of one type"),
        (LABELS.astype("S1"), "labels of one type"),
        (LABELS[:50], "inconsistent numbers of samples"),
        (None, "requires y|missing"),
    ],
    ids=["NaN", "infinity", "continuous", "two columns", "mixed", "bytes", "too few", "none"],
)
def test_labels(labels, message):
    for model in unfitted_and_fitted(POLKClassifier):
        assert_refused(model, lambda m: m.fit(X, labels), message)
        assert_refused(model, lambda m: m.partial_fit(X, labels, classes=range(5)), message)


def test_one_class():
    for model in unfitted_and_fitted(POLKClassifier):
        assert_refused(model, lambda m: m.fit(X, np.ones(100)), "one class, .*1.0")


def test_labels_of_another_type():
    model = make(POLKClassifier)
    model.partial_fit(X, LABELS)
    message = r"one type.*\[0, 1, 2, 3, 4\], and now there are \['0', '1', '2', '3', '4'\]"
    assert_refused(model, lambda m: m.partial_fit(X, LABELS.astype(str)), message)


def test_classes():
    model = make(POLKClassifier)
    for classes, message in [
        (5, "array-like"),
        ("abcde", "array-like"),
        ([0, 1, 2, 3, np.nan], "NaN"),
        ([0.5, 1.5], "label"),
        ([[0, 1], [2, 3]], "label|array"),
        (["a", 1], "types"),
        ([b"a", b"b"], "labels of one type"),
    ]:
        assert_refused(model, lambda m, c=classes: m.partial_fit(X, LABELS, classes=c), message)
    model.partial_fit(X, LABELS, classes=range(5))
    assert_refused(
        model, lambda m: m.partial_fit(X, LABELS, classes=list("abcde")), "one type, all numbers"
    )


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (spoiled(TARGETS, np.nan), "NaN"),
        (spoiled(TARGETS, -np.inf), "infinity"),
        (TARGETS[:50], "inconsistent numbers of samples"),
        (np.full(100, "a"), "could not convert|dtype"),
        (np.full(100, object()), "float|number"),
        (TARGETS + 1j, "Complex data not supported"),
        (np.ones((100, 2, 2)), "3|dim"),
        (None, "requires y|missing"),
    ],
    ids=["NaN", "infinity", "too few", "text", "objects", "complex", "three dimensions", "none"],
)
def test_targets(targets, message):
    for model in unfitted_and_fitted(POLKRegressor):
        for method in ("fit", "partial_fit"):
            assert_refused(
                model,
                lambda m, name=method: getattr(m, name)(X, targets),
                message,
                (ValueError, TypeError),
            )


def test_number_of_targets():
    assert_number_of_targets_stays(make(POLKRegressor), X, TARGETS)


@bad_weights
@both
def test_sample_weights(cls, weight, message):
    for model in unfitted_and_fitted(cls):
        assert_refused(model, lambda m: m.fit(X, good(cls), sample_weight=weight), message)
        assert_refused(model, lambda m: partial_fit(m, X, good(cls), sample_weight=weight), message)


# -- hyper-parameters ----------------------------------------------------------------------------

NUMBER = [-1.0, np.nan, np.inf, "large", None, [1.0], 10**400, True]
BAD_SETTINGS = [
    *[("learning_rate", value, "learning_rate must be a positive") for value in (*NUMBER, 0.0)],
    *[("regularization", value, "regularization must be a finite") for value in NUMBER],
    *[("parsimony", value, "parsimony must be a finite number") for value in NUMBER],
    *[("budget", v, "budget must be a finite") for v in NUMBER if v is not None],
    *[("gamma", value, "gamma must be a positive") for value in (*NUMBER, 0.0)],
    *[("batch_size", v, "batch_size must be an integer") for v in (0, -1, 2.0, "x", None, True)],
    *[("epochs", v, "epochs must be an integer") for v in (0, -1, 2.0, "x", None, True)],
    *[("max_points", v, "max_points must be an integer") for v in (0, 2.5, "x", True)],
    *[("schedule", v, "'constant', 'inverse', 'sqrt'") for v in ("rising", None, 0.5, PowerLaw)],
    *[("kernel", v, "kernel must be|no kernel named") for v in ("x", None, 1, kernels.Gaussian)],
    *[("loss", v, "loss must be") for v in ("x", None, 1, ["hinge"], "squared()", "hinge(")],
    *[("average", value, "average must be True or False") for value in (None, "yes", 2)],
    *[("shuffle", value, "shuffle must be True or False") for value in (None, "yes", 2)],
    *[("verbose", value, "verbose must be an integer") for value in (None, "loud", 0.5)],
]


@pytest.mark.parametrize(
    ("name", "value", "message"), BAD_SETTINGS, ids=[f"{n}={v!r:.12}" for n, v, _ in BAD_SETTINGS]
)
@both
def test_settings(cls, name, value, message):
    for model in unfitted_and_fitted(cls, **{name: value}):
        assert_refused(model, lambda m: m.fit(X, good(cls)), message)
        assert_refused(model, lambda m: partial_fit(m, X, good(cls)), message)


@pytest.mark.parametrize("name", ["normalize_y", "refit"])
def test_settings_of_the_regressor(name):
    for model in unfitted_and_fitted(POLKRegressor, **{name: "yes"}):
        assert_refused(model, lambda m: m.fit(X, TARGETS), f"{name} must be True or False")


def test_parameters_of_losses():
    losses = ["huber(0)", "huber(-1)", "huber(nan)", "huber(x)", "pinball(0)", "pinball(1)"]
    for loss in (*losses, "pinball(1,2)", "epsilon_insensitive(-1)", "squared(0)"):
        for model in unfitted_and_fitted(POLKRegressor, loss=loss):
            assert_refused(model, lambda m: m.fit(X, TARGETS), "loss|Huber|pinball|epsilon|number")


@both
def test_the_random_state(cls):
    for model in unfitted_and_fitted(cls, random_state="dice"):
        assert_refused(model, lambda m: m.fit(X, good(cls)), "'dice' cannot be used to seed")


@both
def test_two_budgets(cls):
    for budget in (0.1, AdaptiveBudget(10)):
        for model in unfitted_and_fitted(cls, budget=budget, parsimony=0.1):
            assert_refused(model, lambda m: m.fit(X, good(cls)), "not both")
    make(cls, budget=0.1, parsimony="auto", max_points=10).fit(X, good(cls))


def test_schedules():
    for power, delay in [(0, 1), (1.5, 1), (np.nan, 1), (0.5, 0), (0.5, -1), (0.5, np.inf)]:
        with pytest.raises(ValueError, match="must be"):
            PowerLaw(power, delay)
    for target, initial, printed in [
        (0, None, False),
        (2.5, None, False),
        (9, 0, False),
        (9, 1, 1),
    ]:
        with pytest.raises(ValueError, match="must be"):
            AdaptiveBudget(target, initial, printed)


# eta lambda < 1, or 1/2 with the multi-class hinge loss, whose regulariser is lambda ||f||^2.
@pytest.mark.parametrize(
    ("cls", "loss", "bound"),
    [
        (POLKClassifier, "hinge", 0.5),
        (POLKClassifier, "logistic", 1.0),
        (POLKRegressor, "squared", 1.0),
    ],
)
@pytest.mark.parametrize("schedule", ["constant", "inverse"])
def test_the_learning_rate_must_be_below_the_inverse_regularization(cls, loss, bound, schedule):
    message = f"learning rate .* times the regularization .* below {bound:g}"
    for rate in (bound / 0.25, 100.0):
        settings = {"learning_rate": rate, "regularization": 0.25, "schedule": schedule}
        model = make(cls, loss=loss, **settings)
        assert_refused(model, lambda m: m.fit(X, good(cls)), message)
        assert_refused(model, lambda m: partial_fit(m, X, good(cls)), message)
        fitted = make(cls, loss=loss).fit(X, good(cls)).set_params(**settings)
        assert_refused(fitted, lambda m: m.fit(X, good(cls)), message)
    make(cls, loss=loss, learning_rate=0.99 * bound / 0.25, regularization=0.25).fit(X, good(cls))

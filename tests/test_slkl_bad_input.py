"""Bad input to SLKL is refused with a sentence, and changes nothing; Ctrl-C is heard."""

import os

import numpy as np
import pytest
from control_c import interrupted
from polk_common import assert_refused
from scipy import sparse
from sklearn.base import clone

from parsimon import SLKLClassifier, SLKLRegressor, kernels
from parsimon.datasets import make_sinc

X, Y = make_sinc(80, random_state=0)
LABELS = np.digitize(Y, [0.0, 0.3])
GIVEN = {"kernel": kernels.Gaussian(1.0), "n_columns": 30, "random_state": 0}

both = pytest.mark.parametrize("cls", [SLKLRegressor, SLKLClassifier])


def good(cls):
    return Y if cls is SLKLRegressor else LABELS


def unfitted_and_fitted(cls, **settings):
    yield cls(**{**GIVEN, **settings})
    yield cls(**GIVEN).fit(X, good(cls)).set_params(**settings)


def spoiled(array, value):
    changed = np.array(array, dtype=float)
    changed.flat[7] = value
    return changed


SAMPLES = {
    "NaN": (spoiled(X, np.nan), "contains NaN"),
    "infinity": (spoiled(X, np.inf), "contains infinity"),
    "sparse NaN": (sparse.csr_matrix(spoiled(X, np.nan)), "contains NaN"),
    "none": (X[:0], "minimum of 1 is required|0 sample"),
    "one dimension": (X[:, 0], "Expected 2D array"),
    "text": (np.full((80, 2), "a"), "could not convert|dtype"),
    "complex": (X + 1j, "Complex data not supported"),
    "too few": (X[:50], "inconsistent numbers of samples"),
}


@both
@pytest.mark.parametrize("case", SAMPLES)
def test_samples(cls, case):
    samples, message = SAMPLES[case]
    for model in unfitted_and_fitted(cls):
        assert_refused(model, lambda m: m.fit(samples, good(cls)), message, (ValueError, TypeError))
    if case != "too few":
        assert_refused(model, lambda m: m.predict(samples), message, (ValueError, TypeError))


@both
def test_number_of_features(cls):
    model = cls(**GIVEN).fit(X, good(cls))
    assert_refused(model, lambda m: m.predict(np.hstack([X, X])), "is expecting 2")
    for model in unfitted_and_fitted(cls, kernel=kernels.Gaussian([1.0, 2.0, 3.0])):
        assert_refused(model, lambda m: m.fit(X, good(cls)), "features")


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (spoiled(Y, np.nan), "NaN"),
        (spoiled(Y, np.inf), "infinity"),
        (Y[:50], "inconsistent numbers"),
        (np.full(80, "a"), "could not convert|dtype"),
        (None, "requires y|missing"),
        (1e200 * Y, "scale features and targets"),
    ],
    ids=["NaN", "infinity", "too few", "text", "none", "squares overflow"],
)
def test_targets(targets, message):
    for model in unfitted_and_fitted(SLKLRegressor):
        assert_refused(model, lambda m: m.fit(X, targets), message, (ValueError, TypeError))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.ones(80), "one class"),
        (Y, "Unknown label type"),
        (spoiled(LABELS, np.nan), "NaN"),
        (np.column_stack([LABELS, LABELS]), "1d array|shape"),
    ],
    ids=["one class", "continuous", "NaN", "two columns"],
)
def test_labels(labels, message):
    for model in unfitted_and_fitted(SLKLClassifier):
        assert_refused(model, lambda m: m.fit(X, labels), message)


PARAMETERS = [
    *(("sparsity", value) for value in (0, 0.0, -1.0, np.nan, np.inf, 1.5, "a", None, True)),
    *(("nu", value) for value in (0, 0.0, -1.0, np.nan, np.inf, "a", True)),
    *(("regularization", value) for value in (0, -1.0, np.nan, "a")),
    *(("n_columns", value) for value in (0, -3, 0.0, 1.5, -0.5, np.nan, "all", True)),
    *(("tol", value) for value in (-1e-3, np.nan, "a")),
    *(("max_iter", value) for value in (0, 2.5, None)),
    *(("step", value) for value in ("gradient", None)),
    *(("selection", value) for value in ("cyclic", 1)),
    *(("center", value) for value in (None, 1)),
    *(("store_columns", value) for value in ("yes", 0)),
    ("warm_start", 2),
    ("verbose", "a"),
    ("gamma", -1.0),
    ("kernel", 3),
]


@both
@pytest.mark.parametrize(("name", "value"), PARAMETERS)
def test_parameters(cls, name, value):
    for model in unfitted_and_fitted(cls, **{name: value}):
        assert_refused(model, lambda m: m.fit(X, good(cls)), name)


def test_product_of_parameters_out_of_range():
    model = SLKLRegressor(**{**GIVEN, "nu": 1e-200}, regularization=1e-200)
    assert_refused(model, lambda m: m.fit(X, Y), "product of nu and regularization")


def test_too_many_products(monkeypatch):
    monkeypatch.setattr("parsimon.slkl._common._MOST_STORED", 50)
    model = SLKLRegressor(kernel=GIVEN["kernel"], store_columns=True)
    assert_refused(model, lambda m: m.fit(X, Y), 'leave store_columns at "auto"')


def test_any_number_of_samples_is_taken_by_default(monkeypatch):
    monkeypatch.setattr("parsimon.slkl._common._MOST_STORED", 50)
    found = SLKLRegressor(kernel=GIVEN["kernel"], random_state=0).fit(X, Y)
    computed = clone(found).set_params(store_columns=False).fit(X, Y)
    assert len(found.columns_) == len(X) > 50
    np.testing.assert_array_equal(found.predict(X), computed.predict(X))


def test_kernel_values_that_overflow():
    for model in unfitted_and_fitted(SLKLRegressor, kernel=kernels.Polynomial(9)):
        assert_refused(model, lambda m: m.fit(1e30 * X, Y), "scale (the )?features")


INTERRUPTED = """
    import time
    import numpy as np
    import parsimon
    X, y = parsimon.datasets.make_sinc({samples}, random_state=0)
    model = parsimon.SLKLRegressor(gamma=2.0, {settings})
    print("learning", flush=True)
    try:
        model.fit(X, y)
    except KeyboardInterrupt:
        print(time.monotonic(), hasattr(model, "mu_"), flush=True)
"""

CASES = {
    "products": (200_000, "n_columns=3000"),
    "uniform": (3000, "selection='uniform', tol=0, max_iter=10**6, nu=1e-5"),
    "shrinking": (4000, "nu=1e-8, tol=0"),
    "computed": (60_000, "n_columns=3000, store_columns=False, nu=1e-3, tol=0"),
}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
@pytest.mark.parametrize("case", CASES)
def test_control_c_ends_learning_within_a_second(case):
    samples, settings = CASES[case]
    program = INTERRUPTED.format(samples=samples, settings=settings)
    assert interrupted(program, after=1.5) == "False"  # nothing has been learned

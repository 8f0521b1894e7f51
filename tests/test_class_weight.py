"""Rare classes: class_weight in batch and in streams."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from polk_common import task
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score

import parsimon
from parsimon import (
    BSGDClassifier,
    COLKClassifier,
    POLKClassifier,
    SLKLClassifier,
    SPPPOTClassifier,
)

MODELS = {
    "hinge": POLKClassifier("hinge", random_state=0),
    "logistic": POLKClassifier("logistic", random_state=0),
    "steps": POLKClassifier("logistic", solver="sgd", random_state=0),
    "BSGD": BSGDClassifier(random_state=0),
    "COLK": COLKClassifier(random_state=0),
    "SPPPOT": SPPPOTClassifier(random_state=0),
}
every = pytest.mark.parametrize("name", MODELS)


def rare(count, seed):
    """One sample in a hundred is of a class that overlaps with the other: 92 % at best."""
    random = np.random.RandomState(seed)
    y = (random.uniform(size=count) < 0.01).astype(int)
    return random.normal(size=(count, 2)) + 2.0 * y[:, None], y


def streamed(model, X, y, rows=50):
    model = clone(model)
    for start in range(0, len(X), rows):
        model.partial_fit(X[start : start + rows], y[start : start + rows])
    return model


@every
def test_a_stream_of_one_in_a_hundred_does_not_collapse(name):
    X, y = rare(10_000, 0)
    X_test, y_test = rare(20_000, 1)
    plain = streamed(MODELS[name], X, y).predict(X_test)
    balanced = streamed(clone(MODELS[name]).set_params(class_weight="balanced"), X, y)
    score = balanced_accuracy_score(y_test, balanced.predict(X_test))
    assert score > 0.8
    assert score > balanced_accuracy_score(y_test, plain) + 0.05


@every
def test_fit_weighs_as_weights_by_hand_do(name):
    X, y = rare(2000, 2)
    counts = np.bincount(y)
    by_hand = (len(y) / (2 * counts))[y]
    expected = clone(MODELS[name]).fit(X, y, sample_weight=by_hand)
    for class_weight in ("balanced", dict(enumerate(len(y) / (2 * counts)))):
        model = clone(MODELS[name]).set_params(class_weight=class_weight).fit(X, y)
        assert_array_equal(model.weights_, expected.weights_)


def test_a_dictionary_weighs_a_stream_and_multiplies_the_weights_of_samples():
    X, y = task()
    weight = np.random.RandomState(0).uniform(0.5, 2, len(X))
    names = np.array(["a", "b", "c", "d", "e"])
    given = {"a": 3.0, "c": 0.5, "never": 7.0}
    model = POLKClassifier(class_weight=given)
    model.partial_fit(X, names[y], sample_weight=weight)
    model.partial_fit(X, names[y])
    by_class = np.array([3.0, 1.0, 0.5, 1.0, 1.0])[y]
    expected = POLKClassifier().partial_fit(X, names[y], sample_weight=weight * by_class)
    expected.partial_fit(X, names[y], sample_weight=by_class)
    assert_array_equal(model.weights_, expected.weights_)


def test_balanced_weights_follow_the_frequencies_of_a_stream():
    X, y = task()
    random = np.random.RandomState(0)
    y = np.where(random.uniform(size=len(y)) < 0.9, 0, 1)
    model, expected = POLKClassifier(class_weight="balanced"), POLKClassifier()
    seen = np.zeros(2)
    for start in range(0, len(X), 100):
        block = slice(start, start + 100)
        seen += np.bincount(y[block], minlength=2)
        # Each class is taken to have had five samples before.
        weights = (seen.sum() / 2 + 5) / (seen + 5)
        model.partial_fit(X[block], y[block])
        expected.partial_fit(X[block], y[block], sample_weight=weights[y[block]])
    assert_array_equal(model.weights_, expected.weights_)
    assert_array_equal(model._counts_, seen)


def test_a_late_class_is_counted_from_its_first_sample(tmp_path):
    X, y = task()
    model = POLKClassifier(class_weight="balanced")
    model.partial_fit(X[y > 1], y[y > 1])
    model.partial_fit(X[:1], [0])
    assert_array_equal(model._counts_, [1, *np.bincount(y)[2:]])
    model.save(tmp_path / "model")
    again = parsimon.load(tmp_path / "model")
    assert again.class_weight == "balanced"
    for each in (model, again):
        each.partial_fit(X, y)
    assert_allclose(again._counts_.sum(), (y > 1).sum() + 1 + len(y))
    assert_array_equal(again.weights_, model.weights_)


def test_a_dictionary_is_saved(tmp_path):
    X, y = task()
    model = POLKClassifier(class_weight={0: 2, np.int64(1): 0.5}, epochs=1).fit(X, y)
    model.save(tmp_path / "model")
    assert parsimon.load(tmp_path / "model").class_weight == {0: 2, 1: 0.5}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("equal", "'balanced' or None; got 'equal'"),
        ([1, 2], "dictionary"),
        ({0: -1}, "not negative; that of 0 is -1"),
        ({0: np.nan}, "finite"),
        ({0: "much"}, "finite"),
    ],
)
def test_what_says_nothing_about_classes_is_refused(given, message):
    X, y = task()
    for method in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=message):
            getattr(POLKClassifier(class_weight=given), method)(X, y)


def test_fit_refuses_labels_that_y_does_not_have():
    X, y = task()
    with pytest.raises(ValueError, match=r"labels \[9\], which y does not have"):
        POLKClassifier(class_weight={0: 2, 9: 1}).fit(X, y)


def test_slkl_weighs_as_weights_by_hand_do():
    X, y = rare(400, 2)
    y[:8] = 1
    counts = np.bincount(y)
    by_hand = (len(y) / (2 * counts))[y]
    expected = SLKLClassifier(random_state=0).fit(X, y, sample_weight=by_hand)
    for class_weight in ("balanced", dict(enumerate(len(y) / (2 * counts)))):
        model = SLKLClassifier(class_weight=class_weight, random_state=0).fit(X, y)
        assert_array_equal(model.weights_, expected.weights_)
    X_test, y_test = rare(20_000, 1)
    plain = SLKLClassifier(random_state=0).fit(X, y)
    found, before = (
        balanced_accuracy_score(y_test, each.predict(X_test)) for each in (expected, plain)
    )
    # Eight of the few that are rare lie where the others do.
    assert found > before + 0.05
    for given, message in (("equal", "'balanced' or None"), ({0: 0, 1: 0}, "all samples are 0")):
        with pytest.raises(ValueError, match=message):
            SLKLClassifier(class_weight=given).fit(X, y)


@pytest.mark.parametrize("name", ["hinge", "steps"])
def test_ctrl_c_leaves_counts_of_what_was_learned(name):
    X, y = task()
    gaussian, left = parsimon.kernels.Gaussian(0.7), [np.inf]

    def kernel(A, B):
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return gaussian(A, B)

    given = {"kernel": parsimon.kernels.Function(kernel), "class_weight": "balanced"}
    model = clone(MODELS[name]).set_params(**given).partial_fit(X[:200], y[:200])
    left[0] = 6
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[200:], y[200:])
    assert 200 < model.t_ < len(X)
    assert_array_equal(model._counts_, np.bincount(y[: model.t_], minlength=5))

"""The losses as Python sees them; their mathematics is tested in cpp/tests/test_losses.cpp."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from parsimon import _core

REGRESSION = ["squared", "huber(0.7)", "epsilon_insensitive(0.3)", "pinball(0.2)"]
BINARY = ["binary_logistic", "binary_hinge"]
MULTICLASS = ["multiclass_logistic", "multiclass_hinge"]
EVERY = REGRESSION + BINARY + MULTICLASS


def draw(text, n=50):
    rng = np.random.default_rng(0)
    if text in REGRESSION:
        return rng.normal(size=(n, 3)), rng.normal(size=(n, 3))
    outputs, classes = (1, 2) if text in BINARY else (4, 4)
    return rng.normal(size=(n, outputs)), rng.integers(0, classes, size=n)


@pytest.mark.parametrize("text", EVERY)
def test_gradient_is_the_derivative_of_the_value(text):
    loss = _core.parse_loss(text)
    predictions, targets = draw(text)
    values, gradient = loss.evaluate(predictions, targets)
    assert values.shape == (50,)
    assert gradient.shape == predictions.shape
    for k in range(predictions.shape[1]):
        step = np.zeros_like(predictions)
        step[:, k] = 1e-6
        up, _ = loss.evaluate(predictions + step, targets)
        down, _ = loss.evaluate(predictions - step, targets)
        assert_allclose((up - down) / 2e-6, gradient[:, k], atol=1e-8)


@pytest.mark.parametrize("text", EVERY)
def test_any_memory_layout_gives_the_same(text):
    loss = _core.parse_loss(text)
    predictions, targets = draw(text)
    values, gradient = loss.evaluate(predictions, targets)
    strided = np.repeat(predictions, 2, axis=0)[::2]
    for other in (np.asfortranarray(predictions), strided, predictions.tolist()):
        other_values, other_gradient = loss.evaluate(other, targets)
        assert_array_equal(other_values, values)
        assert_array_equal(other_gradient, gradient)


@pytest.mark.parametrize("text", EVERY)
def test_text_pickle_and_copy_give_the_same_loss(text):
    loss = _core.parse_loss(text)
    assert loss.describe() == repr(loss) == text
    assert pickle.loads(pickle.dumps(loss)).describe() == text
    assert copy.deepcopy(loss).describe() == text
    assert loss.is_classification == (text not in REGRESSION)
    assert loss.gives_probabilities == text.endswith("logistic")
    assert loss.regularizer_scale == (2.0 if text == "multiclass_hinge" else 1.0)


def test_probabilities():
    scores = np.array([[0.0, 1.0, 2.0], [1e300, 0.0, -1e300]])
    softmax = _core.parse_loss("multiclass_logistic").probabilities(scores)
    expected = np.exp(scores[0]) / np.exp(scores[0]).sum()
    assert_allclose(softmax, [expected, [1.0, 0.0, 0.0]], rtol=1e-14)
    sigmoid = _core.parse_loss("binary_logistic").probabilities([[0.0], [-1e300]])
    assert_array_equal(sigmoid, [[0.5, 0.5], [1.0, 0.0]])


@pytest.mark.parametrize("text", ["squared", "binary_hinge", "multiclass_hinge"])
def test_other_losses_have_no_probabilities(text):
    with pytest.raises(ValueError, match="no probabilities: use binary_logistic"):
        _core.parse_loss(text).probabilities(np.zeros((2, 1)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("absolute", 'no loss "absolute": use squared, squared'),
        ("huber", 'no loss "huber"'),
        ("huber(-1)", "is -1: give a positive"),
        ("huber(x)", "not of the form"),
        ("pinball(1)", "between 0 and 1"),
        ("epsilon_insensitive(-1)", "not negative"),
    ],
)
def test_bad_expressions(text, message):
    with pytest.raises(ValueError, match=message):
        _core.parse_loss(text)


@pytest.mark.parametrize(
    ("text", "outputs", "targets", "message"),
    [
        ("multiclass_hinge", 3, [0, 1, 3], "sample 2 is 3: .* from 0 to 2"),
        ("multiclass_logistic", 3, [0, 1.5, 2], "sample 1 is 1.5"),
        ("binary_logistic", 1, [0, 1, -1], "sample 2 is -1"),
        ("binary_hinge", 2, [0, 1, 0], "one output, but the model has 2"),
        ("multiclass_hinge", 1, [0, 1, 0], "one output for each class"),
        ("squared", 1, [0.0, np.nan, 1.0], "sample 1 is NaN or infinite"),
        ("squared", 2, [0.0, 1.0, 1.0], "1 columns, but the model has 2 outputs"),
        ("squared", 1, [0.0, 1.0], "3 predictions and 2 targets"),
    ],
)
def test_bad_targets(text, outputs, targets, message):
    with pytest.raises(ValueError, match=message):
        _core.parse_loss(text).evaluate(np.zeros((3, outputs)), np.asarray(targets, dtype=float))

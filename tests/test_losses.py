"""The losses as Python sees them; their mathematics is tested in cpp/tests/test_losses.cpp."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from parsimon import _core

REGRESSION = ["squared", "huber(0.7)", "epsilon_insensitive(0.3)", "pinball(0.2)"]
BINARY = ["binary_logistic", "binary_hinge", "binary_squared_hinge"]
MULTICLASS = ["multiclass_logistic", "multiclass_hinge", "multiclass_squared_hinge"]
EVERY = REGRESSION + BINARY + MULTICLASS
HINGES = ["multiclass_hinge", "multiclass_squared_hinge"]


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
    assert loss.regularizer_scale == (2.0 if text in HINGES else 1.0)


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


# -- the smooth losses of second-order solvers ----------------------------------------------------


def smooth_absolute(r, width=0.05):
    return np.where(np.abs(r) < width, r**2 / (2 * width), np.abs(r) - width / 2)


def violations(text, predictions, targets):
    """How far each prediction is from where it should be."""
    if text in BINARY:
        return 1 - np.where(targets > 0.5, 1, -1) * predictions[:, 0]
    rows = np.arange(len(targets))
    own = predictions[rows, targets]
    others = predictions.copy()
    others[rows, targets] = -np.inf
    return 1 + others.max(axis=1) - own


def smooth_values(text, predictions, targets):
    """What the smooth losses are said to be."""
    if text in REGRESSION:
        r = predictions - targets
        return {
            "squared": r**2 / 2,
            "huber(0.7)": np.where(np.abs(r) <= 0.7, r**2 / 2, 0.7 * (np.abs(r) - 0.35)),
            "epsilon_insensitive(0.3)": smooth_absolute(np.maximum(np.abs(r) - 0.3, 0)),
            "pinball(0.2)": smooth_absolute(r) / 2 + 0.3 * r,
        }[text].sum(axis=1)
    if text == "binary_logistic":
        return np.logaddexp(0, -np.where(targets > 0.5, 1, -1) * predictions[:, 0])
    if text == "multiclass_logistic":
        return (
            np.logaddexp.reduce(predictions, axis=1) - predictions[np.arange(len(targets)), targets]
        )
    v = np.maximum(violations(text, predictions, targets), 0)
    return v**2 / 2 if "squared" in text else np.where(v < 2, v**2 / 2, 2 * v - 2)


@pytest.mark.parametrize("text", EVERY)
def test_smooth_losses_are_what_is_said(text):
    loss = _core.parse_loss(text)
    predictions, targets = draw(text, 500)
    predictions[:100] *= 10
    values, gradient, curvature = loss.majorise(predictions, targets)
    assert values.shape == curvature.shape == (500,)
    assert gradient.shape == predictions.shape
    assert_allclose(values, smooth_values(text, predictions, targets), rtol=1e-12, atol=1e-13)
    for k in range(predictions.shape[1]):
        step = np.zeros_like(predictions)
        step[:, k] = 1e-6
        up, _, _ = loss.majorise(predictions + step, targets)
        down, _, _ = loss.majorise(predictions - step, targets)
        assert_allclose((up - down) / 2e-6, gradient[:, k], atol=2e-5)


@pytest.mark.parametrize("text", EVERY)
def test_parabolas_lie_above_smooth_losses(text):
    loss = _core.parse_loss(text)
    predictions, targets = draw(text, 300)
    if text in HINGES:  # of more classes, the best wrong one may change
        predictions, targets = predictions[:, :2], targets % 2
    if text.startswith("epsilon"):  # of several targets, some may be within the tolerance
        predictions, targets = predictions[:, :1], targets[:, :1]
    values, gradient, curvature = loss.majorise(predictions, targets)
    counts = curvature > 0
    rng = np.random.default_rng(1)
    for size in (0.01, 0.1, 1, 10, 100):
        for _ in range(5):
            moves = size * rng.normal(size=predictions.shape)
            if text in HINGES:  # along each output alone
                moves *= rng.integers(predictions.shape[1], size=300)[:, None] == np.arange(
                    predictions.shape[1]
                )
            there, _, _ = loss.majorise(predictions + moves, targets)
            square = (moves**2).sum(axis=1)
            above = values + (gradient * moves).sum(axis=1) + curvature * square / 2
            assert (there <= above + 1e-10 * (1 + above))[counts].all()


@pytest.mark.parametrize("text", ["binary_squared_hinge", "multiclass_squared_hinge"])
def test_squared_hinge_agrees_with_its_transcription(text):
    loss = _core.parse_loss(text)
    predictions, targets = draw(text, 200)
    v = np.maximum(violations(text, predictions, targets), 0)
    values, gradient = loss.evaluate(predictions, targets)
    assert_allclose(values, v**2 / 2, rtol=1e-14, atol=1e-15)
    expected = np.zeros_like(predictions)
    rows = np.arange(200)
    if text in BINARY:
        expected[:, 0] = np.where(targets > 0.5, -v, v)
    else:
        others = predictions.copy()
        others[rows, targets] = -np.inf
        expected[rows, others.argmax(axis=1)] = v
        expected[rows, targets] = -v
    assert_allclose(gradient, expected, rtol=1e-13, atol=1e-15)
    assert 0 < np.count_nonzero(v == 0) < 200
    same_values, same_gradient, curvature = loss.majorise(predictions, targets)
    assert_array_equal(same_values, values)
    assert_array_equal(same_gradient, gradient)
    assert_array_equal(curvature, (v > 0).astype(float))


@pytest.mark.parametrize("text", EVERY)
@pytest.mark.parametrize("size", [1e150, 1e-300])
def test_smooth_losses_of_extreme_predictions_are_finite(text, size):
    predictions, targets = draw(text)
    for result in _core.parse_loss(text).majorise(size * predictions, targets):
        assert np.isfinite(result).all()


def test_a_loss_without_curvature_says_so():
    with pytest.raises(ValueError, match="mirror_logistic has no second-order solver"):
        _core.parse_loss("mirror_logistic").majorise(np.zeros((2, 3)), np.zeros(2))

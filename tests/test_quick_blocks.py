"""Blocks like many before skip validation, and nobody can tell but by the clock."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from parsimon import COLKClassifier, POLKClassifier, POLKRegressor, datasets

BLOCK = 50


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    return datasets.make_multidist(600, random_state=0)


def stream(model: Any, X: Any, y: Any, *, disguise: Callable[[Any], Any]) -> Any:
    for start in range(0, len(X), BLOCK):
        part = slice(start, start + BLOCK)
        texts = y.dtype.kind in "UO"
        announced = {} if start or texts else {"classes": range(5)}
        more = announced if hasattr(model, "decision_function") else {}
        model.partial_fit(disguise(X[part]), disguise(y[part]), **more)
    return model


@pytest.mark.parametrize("model", [POLKClassifier(), COLKClassifier(), POLKRegressor()], ids=str)
def test_lists_and_arrays_are_learned_alike(
    model: Any, data: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = data
    y = y.astype(float) if isinstance(model, POLKRegressor) else y
    quick = stream(model, X, y, disguise=lambda a: a).weights_
    from sklearn.base import clone

    slow = stream(clone(model), X, y, disguise=lambda a: a.tolist()).weights_
    np.testing.assert_array_equal(quick, slow)


@pytest.fixture
def model(data: tuple[np.ndarray, np.ndarray]) -> POLKClassifier:
    X, y = data
    return stream(POLKClassifier(), X, y, disguise=lambda a: a)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X, y: (np.where(X[0, 0] == X, np.nan, X), y), "NaN"),
        (lambda X, y: (np.where(X[0, 0] == X, np.inf, X), y), "inf"),
        (lambda X, y: (X[:, :1], y), "1 features"),
        (lambda X, y: (X[:0], y[:0]), "0 sample"),
        (lambda X, y: (X, y[:-1]), "inconsistent"),
        (lambda X, y: (X, y.astype(str)), "one type, all numbers or all text"),
        (lambda X, y: (X[0], y), "2D"),
    ],
)
def test_bad_blocks_are_refused_as_ever(
    model: POLKClassifier, data: tuple[np.ndarray, np.ndarray], spoil: Any, message: str
) -> None:
    X, y = data
    before, seen = model.weights_, model.t_
    with pytest.raises(ValueError, match=message):
        model.partial_fit(*spoil(X[:BLOCK], y[:BLOCK]))
    np.testing.assert_array_equal(model.weights_, before)
    assert model.t_ == seen


def test_a_parameter_that_became_wrong_is_noticed(
    model: POLKClassifier, data: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = data
    model.set_params(batch_size=0)
    with pytest.raises(ValueError, match="batch_size"):
        model.partial_fit(X[:BLOCK], y[:BLOCK])


def test_names_of_features_are_still_compared(data: tuple[np.ndarray, np.ndarray]) -> None:
    pandas = pytest.importorskip("pandas")
    X, y = data
    frame = pandas.DataFrame(X, columns=["a", "b"])
    named = POLKClassifier().partial_fit(frame, y, classes=range(5))
    with pytest.warns(UserWarning, match="feature names"):
        named.partial_fit(X, y)
    with pytest.raises(ValueError, match="feature names"):
        named.partial_fit(frame.rename(columns={"a": "c"}), y)


def test_predictions_of_bad_samples(
    model: POLKClassifier, data: tuple[np.ndarray, np.ndarray]
) -> None:
    X, _ = data
    np.testing.assert_array_equal(model.decision_function(X), model.decision_function(X.tolist()))
    for bad, message in ((np.full((1, 2), np.nan), "NaN"), (np.ones((3, 5)), "5 features")):
        with pytest.raises(ValueError, match=message):
            model.predict(bad)


@pytest.mark.parametrize(("name", "value"), [("batch_size", 32.0), ("average", 1), ("epochs", 2.0)])
def test_a_value_that_equals_the_checked_one_but_is_of_another_type(
    data: tuple[np.ndarray, np.ndarray], name: str, value: Any
) -> None:
    X, y = data
    model = stream(POLKClassifier(epochs=2), X, y, disguise=lambda a: a).set_params(**{name: value})
    with pytest.raises(ValueError, match=name):
        model.partial_fit(X[:BLOCK], y[:BLOCK])


def test_finite_numbers_that_sum_to_infinity(model: POLKClassifier) -> None:
    huge = np.full((4, 2), 1e308)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        assert np.isfinite(model.decision_function(huge)).all()
    with pytest.raises(ValueError, match="inf"), np.errstate(invalid="ignore"):
        model.predict(np.array([[np.inf, -np.inf]]))


def test_a_wrong_n_jobs_is_refused_by_predict(
    model: POLKClassifier, data: tuple[np.ndarray, np.ndarray]
) -> None:
    X, _ = data
    with pytest.raises(ValueError, match="n_jobs"):
        model.set_params(n_jobs=-3).predict(X)


@pytest.mark.parametrize("kind", [str, object])
def test_texts_are_quick_whatever_array_they_are_in(
    kind: type, data: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = data
    names = np.array(["ash", "beech", "cedar", "date", "elm"])[y]
    model = stream(POLKClassifier(), X, names, disguise=lambda a: a)
    twin = stream(POLKClassifier(), X, names, disguise=lambda a: a)
    twin.partial_fit(X[:BLOCK], names[:BLOCK])
    monkeypatch.setattr(POLKClassifier, "_validate", None)  # is not asked
    model.partial_fit(X[:BLOCK], names[:BLOCK].astype(kind))
    np.testing.assert_array_equal(model.weights_, twin.weights_)


@pytest.mark.parametrize("label", [None, 3, float("nan"), ["ash"]])
def test_objects_that_are_no_texts_are_refused(
    label: Any, data: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = data
    names = np.array(["ash", "beech", "cedar", "date", "elm"], dtype=object)[y]
    model = stream(POLKClassifier(), X, names, disguise=lambda a: a)
    before, bad = model.weights_, names[:BLOCK].copy()
    bad[7] = label
    with pytest.raises((ValueError, TypeError)):
        model.partial_fit(X[:BLOCK], bad)
    np.testing.assert_array_equal(model.weights_, before)

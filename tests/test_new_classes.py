"""Classes that come at any time: partial_fit needs no classes, and a new label adds one."""

import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from polk_common import task
from sklearn.base import clone

import parsimon
from parsimon import BSGDClassifier, COLKClassifier, POLKClassifier, SPPPOTClassifier
from parsimon.datasets import make_multidist

MODELS = {
    "hinge": POLKClassifier("hinge", random_state=0),
    "squared hinge": POLKClassifier("squared_hinge", random_state=0),
    "logistic": POLKClassifier("logistic", random_state=0),
    "steps": POLKClassifier("logistic", solver="sgd", random_state=0),
    "BSGD": BSGDClassifier(random_state=0),
    "BSGD, projection": BSGDClassifier(maintenance="project", random_state=0),
    "COLK": COLKClassifier(random_state=0),
    "SPPPOT": SPPPOTClassifier(random_state=0),
}
every = pytest.mark.parametrize("name", MODELS)
NAMES = np.array(["b", "a", "eee", "dd", "c"])  # not in the order in which they come


def streamed(name, X, y, rows=20, **given):
    model = clone(MODELS[name])
    for start in range(0, len(X), rows):
        model.partial_fit(X[start : start + rows], y[start : start + rows], **given)
    return model


def late_stream(count=4000):
    """Of five classes, three come from the beginning and two after half of the stream."""
    X, y = make_multidist(count + 2000, random_state=0)
    half = count // 2
    chosen = np.r_[np.flatnonzero(y[:half] < 3), np.arange(half, count)]
    return X[chosen], y[chosen], X[count:], y[count:]


@every
def test_late_classes_are_learned_as_well_as_those_that_were_announced(name):
    X, y, X_test, y_test = late_stream()
    late, announced = streamed(name, X, y), streamed(name, X, y, classes=range(5))
    assert_array_equal(late.classes_, range(5))
    assert late.t_ == announced.t_ == len(X)
    assert late.score(X_test, y_test) > announced.score(X_test, y_test) - 0.01
    assert late.score(X_test, y_test) > 0.9


@every
def test_labels_are_sorted_whenever_they_come(name):
    X, y, X_test, y_test = late_stream()
    model = streamed(name, X, NAMES[y])
    assert_array_equal(model.classes_, sorted(NAMES))
    assert model.score(X_test, NAMES[y_test]) > 0.9


@every
def test_a_new_class_does_not_disturb_the_others(name):
    X, y = task()
    known = y < 3
    model = streamed(name, X[known], NAMES[y[known]])
    before, values = model.predict(X[known]), model.decision_function(X[known])
    model.partial_fit(X[:1], ["bb"])
    assert_array_equal(model.classes_, ["a", "b", "bb", "eee"])
    assert (model.predict(X[known]) == before).mean() > 0.97
    # Hardly anything has been learned about it yet: the others are as they were.
    kept = model.decision_function(X[known])[:, [0, 1, 3]]
    assert np.abs(kept - values).mean() < 0.2 * np.abs(values).mean()


@pytest.mark.parametrize("name", ["hinge", "squared hinge", "logistic", "COLK", "BSGD"])
def test_two_classes_become_three(name):
    X, y = task()
    two = y < 2
    model = streamed(name, X[two], y[two] + 1)
    margin = model.decision_function(X[two])
    assert margin.ndim == 1
    model = model.partial_fit(X[two][:1], [0])
    values = model.decision_function(X[two])
    assert values.shape == (two.sum(), 3)
    difference = values[:, 2] - values[:, 1]
    assert np.abs(difference - margin).mean() < 0.2 * np.abs(margin).mean()


@every
@pytest.mark.parametrize("order", [["a", "b"], ["b", "a"]])
def test_one_class_is_the_answer_until_there_is_another(name, order):
    random = np.random.RandomState(0)
    second = (random.uniform(size=2000) < 0.5) & (np.arange(2000) >= 300)
    X = random.normal(size=(2000, 2)) + 3.0 * second[:, None]
    y = np.array(order)[second.astype(int)]
    model = streamed(name, X[:300], y[:300])
    assert_array_equal(model.classes_, order[:1])
    assert set(model.predict(X)) == {order[0]}
    for start in range(300, 1500, 20):
        model.partial_fit(X[start : start + 20], y[start : start + 20])
    assert_array_equal(model.classes_, ["a", "b"])
    assert model.score(X[1500:], y[1500:]) > 0.96  # 98 % at best


def test_the_probability_of_a_single_class_is_1():
    X, _ = task()
    model = POLKClassifier("logistic").partial_fit(X, ["one"] * len(X))
    assert_array_equal(model.predict_proba(X[:3]), np.ones((3, 1)))
    model.partial_fit(X[:1], ["two"])
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model.predict_proba(X)[:, 0].mean() > 0.9


def test_announced_classes_need_not_be_complete_and_may_grow():
    X, y = task()
    model = POLKClassifier().partial_fit(X, y, classes=[0, 1])
    assert_array_equal(model.classes_, range(5))
    model.partial_fit(X, y, classes=[7, 9])
    assert_array_equal(model.classes_, [0, 1, 2, 3, 4, 7, 9])
    assert set(model.predict(X)) <= set(range(5))


@pytest.mark.parametrize("classes", [range(5), list(range(5)), tuple(range(5)), np.arange(5)])
def test_classes_that_are_repeated_take_the_short_way(classes, monkeypatch):
    X, y = task()
    model = POLKClassifier().partial_fit(X, y, classes=classes)
    calls = []
    monkeypatch.setattr(POLKClassifier, "_validate", lambda *_, **__: calls.append(1))
    model.partial_fit(
        X[:1],
        y[:1],
        classes=type(classes)(classes)
        if type(classes) is not range and not isinstance(classes, np.ndarray)
        else classes,
    )
    assert not calls


@pytest.mark.parametrize(
    "kind", ["Series", "Index", "text", "categorical", "polars", "set", "frozenset", "keys"]
)
def test_classes_may_be_any_collection(kind, monkeypatch):
    X, y = task()
    labels = np.array(list("abcde"))
    pandas = pytest.importorskip("pandas")
    make = {
        "Series": pandas.Series,
        "Index": pandas.Index,
        "text": lambda labels: pandas.Series(labels).array,
        "categorical": pandas.Categorical,
        "polars": lambda labels: pytest.importorskip("polars").Series(list(labels)),
        "set": set,
        "frozenset": frozenset,
        "keys": lambda labels: dict.fromkeys(labels).keys(),
    }[kind]
    model = POLKClassifier().partial_fit(X[:200], labels[y[:200] % 2], classes=make(labels[:4]))
    assert_array_equal(model.classes_, labels[:4])
    model.partial_fit(X[:9], labels[:1].repeat(9), classes=make(labels))
    assert_array_equal(model.classes_, labels)
    if kind != "keys":
        monkeypatch.setattr(POLKClassifier, "_validate", None)
        model.partial_fit(X[:9], labels[y[:9]], classes=make(labels))


def test_a_list_of_classes_that_has_grown_is_noticed():
    X, y = task()
    classes = [0, 1, 2, 3, 4]
    model = POLKClassifier().partial_fit(X, y, classes=classes)
    classes.append(5)
    model.partial_fit(X[:1], y[:1], classes=classes)
    assert_array_equal(model.classes_, range(6))


def test_texts_take_the_short_way_too(monkeypatch):
    X, y = task()
    model = POLKClassifier().partial_fit(X, NAMES[y])
    monkeypatch.setattr(POLKClassifier, "_validate", None)
    model.partial_fit(X[:3], NAMES[y[:3]])


@every
def test_a_file_knows_classes_that_came_late(name, tmp_path):
    X, y = task()
    model = streamed(name, X[y < 2], y[y < 2])
    model.partial_fit(X[:20], y[:20])
    model.save(tmp_path / "model")
    again = parsimon.load(tmp_path / "model")
    for each in (model, again):
        each.partial_fit(X[20:], y[20:])
    assert_array_equal(model.weights_, again.weights_)
    assert_array_equal(model.classes_, again.classes_)


def test_whoever_predicts_while_classes_come_finds_a_whole_model():
    X, y, _, _ = late_stream(1000)
    model = POLKClassifier("logistic").partial_fit(X[:100], y[:100])
    done, wrong = threading.Event(), []

    def read():
        while not done.is_set():
            try:
                model.predict_proba(X[:50])
                model.decision_function(X[:50])
            except Exception as error:
                wrong.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for new in range(5, 60):
        model.partial_fit(X[new : new + 1], [new])
    done.set()
    reader.join()
    assert not wrong
    assert len(model.classes_) > 55


def test_a_refused_block_with_a_new_class_adds_none():
    X, y = task()
    model = POLKClassifier().partial_fit(X, y)
    before = model._model.to_archive().to_bytes()
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit([[np.nan, 0.0]], [77])
    assert_array_equal(model.classes_, range(5))
    assert model._model.to_archive().to_bytes() == before

"""parsimon.river: river's own checks, late labels and features, and what it is without river."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

from parsimon import POLKClassifier, POLKRegressor
from parsimon.datasets import make_multidist

checks = pytest.importorskip("river.checks")
from river import datasets, evaluate, metrics, preprocessing  # noqa: E402

from parsimon.river import Classifier, Regressor  # noqa: E402

MODELS = [Classifier(), Classifier(loss="hinge", max_points=20), Regressor()]
EVERY_CHECK = [(model, check) for model in MODELS for check in checks.yield_checks(model)]


@pytest.mark.filterwarnings("ignore:Feature .* has a standard deviation")
@pytest.mark.parametrize(
    ("model", "check"),
    EVERY_CHECK,
    ids=[f"{type(model).__name__}-{check.__name__}" for model, check in EVERY_CHECK],
)
def test_passes_the_checks_of_river(model, check):
    check(model.clone())


def rows(count=400):
    X, y = make_multidist(count, random_state=0)
    return [dict(zip("ab", x, strict=True)) for x in X.tolist()], [*map("class {}".format, y)]


def learned(model, X, y):
    for x, label in zip(X, y, strict=True):
        model.learn_one(x, label)
    return model


def test_learns_as_well_as_the_estimator_does():
    X, y = rows(1000)
    right = [0, 0]
    model, estimator = Classifier(), POLKClassifier("logistic")
    array = np.array([[*x.values()] for x in X])
    names = sorted(set(y))
    for start in range(0, 1000, 50):
        part = slice(start, start + 50)
        if start:
            right[0] += sum(
                model.predict_one(x) == label for x, label in zip(X[part], y[part], strict=True)
            )
            right[1] += (estimator.predict(array[part]) == y[part]).sum()
        learned(model, X[part], y[part])
        estimator.partial_fit(array[part], y[part], classes=names)
    assert right[0] > right[1] - 15
    assert 0 < model.model_order < 300
    assert_allclose(sum(model.predict_proba_one(X[0]).values()), 1)
    assert (
        model.predict_one(X[0]) == max(model.predict_proba_one(X[0]).items(), key=lambda p: p[1])[0]
    )


def test_in_a_pipeline_of_river():
    model = preprocessing.StandardScaler() | Classifier()
    found = evaluate.progressive_val_score(datasets.Bananas().take(600), model, metrics.Accuracy())
    assert found.get() > 0.75
    model = preprocessing.StandardScaler() | Regressor()
    found = evaluate.progressive_val_score(datasets.TrumpApproval().take(400), model, metrics.MAE())
    assert found.get() < 1.5


def test_labels_may_come_at_any_time():
    X, y = rows(600)
    order = np.argsort(np.array(y) == "class 4", kind="stable")  # the last class comes last
    X, y = [X[i] for i in order], [y[i] for i in order]
    model = Classifier()
    assert model.predict_one(X[0]) is None
    assert model.predict_proba_one(X[0]) == {}
    model.learn_one(X[0], y[0])
    assert model.predict_one(X[1]) == y[0]
    assert model.predict_proba_one(X[1]) == {y[0]: 1.0}
    learned(model, X[1:], y[1:])
    assert set(model.predict_proba_one(X[0])) == set(y)
    late = [x for x, label in zip(X, y, strict=True) if label == "class 4"]
    assert np.mean([model.predict_one(x) == "class 4" for x in late]) > 0.7


def test_twenty_labels():
    random = np.random.default_rng(0)
    labels = random.integers(0, 20, 800).tolist()
    X = random.normal(size=(20, 5))[labels] + random.normal(0, 0.1, (800, 5))
    X = [dict(zip("abcde", x, strict=True)) for x in X.tolist()]
    model = learned(Classifier(), X, labels)
    assert len(model.predict_proba_one(X[0])) == 20
    assert (
        np.mean([model.predict_one(x) == label for x, label in zip(X, labels, strict=True)]) > 0.8
    )


def test_features_may_come_at_any_time():
    X, y = rows(300)
    model = learned(Classifier(), X, y)
    for number in range(12):  # more than there is room for
        for x, label in zip(X[:20], y[:20], strict=True):
            model.learn_one({**x, f"new {number}": 1.0}, label)
    assert model._width >= 14
    assert np.mean([model.predict_one(x) == label for x, label in zip(X, y, strict=True)]) > 0.7
    model.predict_one({"never seen": 5.0})
    model.learn_one({}, y[0])


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("model", [Classifier(), Regressor()], ids=str)
def test_frames_are_the_same_as_rows(library, model):
    frames = pytest.importorskip(library)
    X, y = rows(300)
    y = y if isinstance(model, Classifier) else [float(label[-1]) for label in y]
    one = learned(model.clone(), X, y)
    many = model.clone()
    for start in range(0, 300, 30):
        part = slice(start, start + 30)
        many.learn_many(frames.DataFrame(X[part]), frames.Series(y[part]))
    frame = frames.DataFrame(X)
    predicted = many.predict_many(frame)
    assert type(predicted).__module__.startswith(library)
    expected = [many.predict_one(x) for x in X]
    if isinstance(model, Classifier):
        assert predicted.to_list() == expected
        assert (
            np.mean([one.predict_one(x) == other for x, other in zip(X, expected, strict=True)])
            > 0.97
        )
        shares = many.predict_proba_many(frame)
        assert_allclose(np.asarray(shares).sum(axis=1), 1)
        assert list(shares.columns) == list(many.predict_proba_one(X[0]))
    else:
        assert_allclose(predicted, expected)


def test_nothing_is_known_of_frames_either():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0]})
    assert Classifier().predict_many(frame).tolist() == [None, None]
    assert Classifier().predict_proba_many(frame).empty
    assert Regressor().predict_many(frame).tolist() == [0, 0]


def test_bad_samples_leave_everything_as_it_was():
    X, y = rows(30)
    for count in (0, 30):
        model = learned(Classifier(), X[:count], y[:count])
        before = pickle.dumps(model)
        for bad, message in (
            ({"a": "red"}, "features must be numbers"),
            ({"a": float("nan")}, "NaN"),
        ):
            for label in (y[0], "never seen"):
                with pytest.raises(ValueError, match=message):
                    model.learn_one(bad, label)
        assert pickle.dumps(model) == before


def test_settings_are_those_of_the_estimator():
    assert Regressor(max_points=7)._new_estimator().max_points == 7
    assert isinstance(Regressor()._new_estimator(), POLKRegressor)
    clone = Classifier(max_points=7).clone()
    assert clone.settings == {"max_points": 7}
    assert clone.clone({"loss": "hinge"}).settings == {"max_points": 7, "loss": "hinge"}
    with pytest.raises(TypeError, match="max_pionts"):
        Classifier(max_pionts=7)
    hinge = learned(Classifier(loss="hinge"), *rows(20))
    with pytest.raises(NotImplementedError, match="with loss='logistic', not with loss='hinge'"):
        hinge.predict_proba_one({"a": 1.0})


def test_its_size_counts_what_is_kept_in_the_core():
    X, y = rows()
    small, large = Classifier(), learned(Classifier(), X, y)
    assert large._raw_memory_usage > small._raw_memory_usage + 8 * 2 * large.model_order


def test_without_river():
    code = "import sys; sys.modules['river'] = None; import parsimon; import parsimon.river"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'parsimon[river]'" in done.stderr


def test_class_weight_is_given_by_label():
    X, y = rows(400)
    y = np.where(np.random.default_rng(0).uniform(size=400) < 0.3, "spam", "ham").tolist()
    plain, weighed = learned(Classifier(), X, y), Classifier(class_weight={"spam": 5, "never": 9})
    learned(weighed, X, y)
    array = np.array([[*x.values()] for x in X])
    numbers = {label: number for number, label in enumerate(dict.fromkeys(y))}
    twin = Classifier(class_weight={"spam": 1.0, "ham": 1.0})
    assert_allclose(
        learned(twin, X, y)._estimator.decision_function(weighed._aligned(["a", "b"], array)),
        plain._estimator.decision_function(weighed._aligned(["a", "b"], array)),
    )
    assert weighed._estimator.class_weight == {numbers["spam"]: 5}
    # Nothing tells spam but how often it comes, and how much it counts: 1.5 to 0.7.
    spam, before = (np.mean([m.predict_one(x) == "spam" for x in X]) for m in (weighed, plain))
    assert before < 0.3 < 0.7 < spam
    again = pickle.loads(pickle.dumps(weighed))
    again.learn_one(X[0], "late")
    assert again._estimator.class_weight is again._weights


def test_class_weights_that_make_no_sense_are_refused():
    for given in ("equal", {"spam": -1}, [1, 2]):
        with pytest.raises(ValueError, match="class_weight must"):
            Classifier(class_weight=given)
    model = Classifier(class_weight={"spam": 5})
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="NaN"):
        model.learn_one({"a": float("nan")}, "spam")
    assert pickle.dumps(model) == before
    assert learned(Classifier(class_weight="balanced"), *rows(50)).model_order > 0


@pytest.mark.parametrize("Model", [Classifier, Regressor])
def test_settings_that_make_no_sense_are_refused_at_once(Model):
    with pytest.raises(ValueError, match="max_points must be"):
        Model(max_points=-3)

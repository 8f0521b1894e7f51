"""Scaling, encoding and model in one object: from the first sample on, and in one file."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from persistence_common import load
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

import parsimon
from parsimon import POLKClassifier, POLKRegressor, _core
from parsimon.stream import StreamingPipeline, StreamingScaler, in_blocks, prequential


@parametrize_with_checks(
    [StreamingPipeline(GaussianNB()), StreamingPipeline(SGDRegressor(random_state=0))]
)
def test_is_an_estimator_of_scikit_learn(estimator, check):
    check(estimator)


def samples(count=400, seed=0):
    """Whether something is large for its colour."""
    random = np.random.default_rng(seed)
    colour = random.choice(["red", "blue", "green"], count)
    size = random.normal(1000, 50, count) + 200 * (colour == "red")
    limit = np.where(colour == "red", 1200, 1000)
    return {"size": size, "colour": colour}, np.where(size > limit, "large", "small")


CLASSES = ["large", "small"]


def learned(X, y, rows, **options):
    model = StreamingPipeline(POLKClassifier(random_state=0), **options)
    for block, labels in in_blocks(X, y, rows=rows):
        model.partial_fit(block, labels, classes=CLASSES)
    return model


@pytest.mark.parametrize("rows", [1, 10, 400])
def test_learns_from_blocks_of_any_size(rows):
    X, y = samples()
    model = learned(X, y, rows)
    assert model.score(*samples(1000, seed=1)) > 0.93
    assert model.classes_.tolist() == CLASSES
    assert model.n_features_in_ == 2
    assert model.model_order_ == len(model.estimator_.dictionary_)
    assert model.encode(X).shape == (400, 1 + 3 + 4 + 1)


def test_while_the_first_samples_are_kept_it_begins_anew_with_all_of_them():
    X, y = samples(40)
    model = StreamingPipeline(POLKClassifier(random_state=0), warm_up=30)
    begun = []
    for count, (block, labels) in enumerate(in_blocks(X, y, rows=1), start=1):
        model.partial_fit(block, labels, classes=CLASSES)
        if model._waiting_ is None or model._waiting_.begun == count:
            begun.append(count)
        assert model.estimator_.t_ == count
    assert begun == [1, 2, 3, 5, 8, 12, 18, 27, *range(30, 41)]
    first = {name: values[:30] for name, values in X.items()}
    same = StreamingPipeline(POLKClassifier(random_state=0), warm_up=30)
    same.partial_fit(first, y[:30], classes=CLASSES)
    for block, labels in in_blocks({n: v[30:] for n, v in X.items()}, y[30:], rows=1):
        same.partial_fit(block, labels)
    assert_array_equal(same.predict(X), model.predict(X))
    assert_allclose(same.scaler_.mean_, model.scaler_.mean_)
    assert_array_equal(same.estimator_.dictionary_, model.estimator_.dictionary_)


def test_fit_scales_by_all_samples():
    X, y = samples()
    model = StreamingPipeline(POLKClassifier(random_state=0)).fit(X, y)
    assert_allclose(model.scaler_.mean_, X["size"].mean())
    same = POLKClassifier(random_state=0).fit(StreamingScaler().fit_transform(X), y)
    assert_array_equal(model.predict(X), same.predict(StreamingScaler().fit_transform(X)))


def test_regression_and_what_the_estimator_can_do():
    X, _ = samples()
    y = np.where(X["colour"] == "red", 2, -1) * X["size"]
    model = StreamingPipeline(POLKRegressor(random_state=0))
    result = prequential(model, in_blocks(X, y, rows=20))
    assert result.curves["r2"][-1] > 0.9
    assert is_regressor(model)
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "classes_")
    labels = samples()[1]
    model = StreamingPipeline(POLKClassifier("logistic")).fit(X, labels)
    assert is_classifier(model)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    likely = np.array(CLASSES)[model.predict_proba(X).argmax(axis=1)]
    assert_array_equal(likely, model.predict(X))
    assert_array_equal(model.decision_function(X) > 0, model.predict(X) == "small")
    assert not hasattr(StreamingPipeline(POLKClassifier()), "predict_proba")


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_frames_are_the_same_as_columns(kind):
    library = pytest.importorskip(kind)
    X, y = samples(150)
    expected = learned(X, y, 10).predict(X)
    frame = (library.table if kind == "pyarrow" else library.DataFrame)(X)
    assert_array_equal(learned(frame, y, 10).predict(frame), expected)


def test_sparse_samples_are_handed_on():
    random = np.random.default_rng(0)
    X = sparse.random(200, 50, density=0.2, random_state=0, format="csr")
    y = (X @ random.normal(size=50) > 0).astype(int)
    model = StreamingPipeline(SGDClassifier(random_state=0))
    same = SGDClassifier(random_state=0)
    for block, labels in in_blocks(X, y, rows=20):
        model.partial_fit(block, labels, classes=[0, 1])
        same.partial_fit(block, labels, classes=[0, 1])
    assert_array_equal(model.predict(X), same.predict(X))
    assert model.n_features_in_ == 50
    assert model.scaler_ is None
    assert model.fit(X, y).score(X, y) > 0.8


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ({"size": ["big"], "colour": ["red"]}, ["large"], "column 'size' must hold numbers"),
        ({"size": [1.0], "colour": ["red"]}, [7], "one type"),
        ({"size": [1.0], "colour": ["red"]}, ["large", "small"], "1 samples, but 2 targets"),
        ({"size": [1.0]}, ["large"], "columns are"),
    ],
)
@pytest.mark.parametrize("count", [20, 200])
def test_a_bad_block_leaves_everything_as_it_was(X, y, message, count):
    model = learned(*samples(count), 7)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, y)
    assert pickle.dumps(model) == before


def test_bad_parameters():
    X, y = samples(20)
    with pytest.raises(ValueError, match="warm_up must be an integer of at least 1; got 0"):
        StreamingPipeline(POLKClassifier(), warm_up=0).fit(X, y)
    with pytest.raises(ValueError, match="scaler must be a StreamingScaler or None"):
        StreamingPipeline(POLKClassifier(), scaler=3).partial_fit(X, y)
    model = StreamingPipeline(POLKClassifier())
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(NotFittedError):
        model.save("nowhere")
    assert not hasattr(model, "model_order_")
    assert not hasattr(model, "n_features_in_")


# -- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [30, 300])
@pytest.mark.parametrize("rows", [1, 30])
def test_a_file_holds_all_that_learning_needs(tmp_path, count, rows):
    scaler = StreamingScaler(half_life=90.0, categorical=["colour"], max_categories=7)
    X, y = samples(count)
    model = learned(X, y, rows, scaler=scaler, warm_up=50)
    model.save(tmp_path / "model.parsimon")
    again = parsimon.load(tmp_path / "model.parsimon")
    assert again.get_params()["scaler__half_life"] == 90
    assert again.get_params()["scaler__max_categories"] == 7
    assert again.get_params()["scaler__categorical"] == ["colour"]
    assert again.warm_up == 50
    assert clone(again).estimator.get_params() == model.estimator.get_params()
    assert_array_equal(again.predict(X), model.predict(X))
    model._waiting_ = None  # the first samples are not in the file
    more, labels = samples(50, seed=2)
    more["colour"][::5] = "orange"
    for each in (model, again):
        each.partial_fit(more, labels)
    assert again.scaler_.categories_[0].tolist() == model.scaler_.categories_[0].tolist()
    assert_array_equal(again.scaler_.mean_, model.scaler_.mean_)
    assert_array_equal(again.decision_function(more), model.decision_function(more))


def test_a_file_without_names_or_without_columns(tmp_path):
    X, y = parsimon.datasets.make_multidist(200, random_state=0)
    for given in (X, sparse.csr_matrix(X)):
        model = StreamingPipeline(POLKClassifier()).fit(given, y)
        model.save(tmp_path / "model.parsimon")
        again = parsimon.load(tmp_path / "model.parsimon")
        assert_array_equal(again.predict(given), model.predict(given))
        assert not hasattr(again.scaler_, "feature_names_in_")
        again.partial_fit(given[:10], y[:10])


def test_the_entries_are_plain_names_numbers_and_texts(tmp_path):
    """A program in another language encodes a sample with nothing but these."""
    X, y = samples()
    model = learned(X, y, 10)
    model.save(tmp_path / "model.parsimon")
    archive = _core.Archive.read(str(tmp_path / "model.parsimon"))
    assert archive["pipeline"] == 1
    names = [archive[f"pipeline.column.{i}"] for i in range(archive["pipeline.columns"])]
    is_text, places = archive["pipeline.is_text"], archive["pipeline.places"]
    sample = {name: X[name][5] for name in names}
    numbers = np.array([sample[n] for n, text in zip(names, is_text, strict=True) if not text])
    encoded = list((numbers - archive["pipeline.mean"]) / archive["pipeline.scale"])
    texts = [sample[name] for name, text in zip(names, is_text, strict=True) if text]
    for j, text in enumerate(texts):
        known = [
            archive[f"pipeline.category.{j}.{k}"] for k in range(archive["pipeline.categories"][j])
        ]
        hot = [0.0] * int(places[j])
        hot[known.index(text)] = 1.0
        encoded += hot
    one = {name: values[5:6] for name, values in X.items()}
    assert_allclose(model.encode(one)[0], encoded)
    expansion = model.estimator_.expansion_
    assert_allclose(expansion([encoded])[0], model.decision_function(one))


def test_only_estimators_of_parsimon_have_a_file(tmp_path):
    model = StreamingPipeline(GaussianNB()).fit(*samples())
    with pytest.raises(ValueError, match=r"if its estimator is one of parsimon's.*Use pickle"):
        model.save(tmp_path / "model.parsimon")
    assert_array_equal(
        pickle.loads(pickle.dumps(model)).predict(samples()[0]), model.predict(samples()[0])
    )


@pytest.fixture(scope="module")
def entries(tmp_path_factory):
    path = tmp_path_factory.mktemp("pipeline") / "model.parsimon"
    learned(*samples(100), 10).save(path)
    archive = _core.Archive.read(str(path))
    return {name: archive[name] for name in archive.keys()}  # noqa: SIM118


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pipeline": 2}, "pipeline of version 2.*upgrade parsimon"),
        ({"pipeline.columns": 1}, "not that of its estimator"),
        ({"pipeline.columns": 3}, "not a complete model"),
        ({"pipeline.is_text": np.array([0, 0])}, "not that of its estimator"),
        ({"pipeline.mean": np.array([np.nan])}, "not that of its estimator"),
        ({"pipeline.mean": np.array([1.0, 2.0])}, "not that of its estimator"),
        ({"pipeline.spread": np.array([-1.0])}, "not that of its estimator"),
        ({"pipeline.count": np.array([-1.0])}, "not that of its estimator"),
        ({"pipeline.half_life": 0.0}, "not that of its estimator"),
        ({"pipeline.scale": np.array([2.0])}, "not that of its estimator"),
        ({"pipeline.places": np.array([3])}, "not that of its estimator"),
        ({"pipeline.categories": np.array([9])}, "not a complete model"),
        ({"pipeline.category.0.0": "blue"}, "not that of its estimator"),
        ({"pipeline.category.0.0": 1}, "not that of its estimator"),
        ({"pipeline.column.0": "colour"}, "not that of its estimator"),
        ({"pipeline.categorical": np.array([2])}, "not that of its estimator"),
        ({"pipeline.max_categories": 0}, "max_categories must be"),
        ({"pipeline.warm_up": 0}, "warm_up must be"),
        ({"pipeline.warm_up": "long"}, "warm_up must be"),
    ],
)
def test_a_file_that_is_made_up_is_refused(entries, change, message):
    assert load(entries).predict(samples()[0]).shape == (400,)
    with pytest.raises(ValueError, match=message):
        load({**entries, **change})
    for name in entries:
        if name.startswith("pipeline"):
            if name == "pipeline":
                continue  # without it, it is the estimator alone
            with pytest.raises(ValueError, match="not a complete model"):
                load({key: value for key, value in entries.items() if key != name})

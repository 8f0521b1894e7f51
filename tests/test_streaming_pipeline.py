"""Scaling, encoding and model in one object: from the first sample on, and in one file."""

import json
import pickle
from decimal import Decimal

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
from parsimon import POLKClassifier, POLKOneClass, POLKRegressor, _core
from parsimon.stream import StreamingPipeline, StreamingScaler, in_blocks, prequential

# Of SGDRegressor by itself scikit-learn says the same.
WEIGHTS_ARE_NO_REPETITION = {
    f"check_sample_weight_equivalence_on_{kind}_data": "SGD visits repeated samples anew"
    for kind in ("dense", "sparse")
}


# GaussianNB takes the logarithm of the share of a class whose weights are all 0.
@pytest.mark.filterwarnings("ignore:divide by zero encountered in log:RuntimeWarning")
@parametrize_with_checks(
    [StreamingPipeline(GaussianNB()), StreamingPipeline(SGDRegressor(random_state=0))],
    expected_failed_checks=lambda pipeline: (
        WEIGHTS_ARE_NO_REPETITION if isinstance(pipeline.estimator, SGDRegressor) else {}
    ),
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


def test_a_dictionary_of_single_values_is_one_sample():
    X, y = samples(150)
    model, expected = (StreamingPipeline(POLKClassifier("logistic")) for _ in range(2))
    for place, label in enumerate(y):
        one = {name: values[place] for name, values in X.items()}
        model.partial_fit(one, label if place % 2 else [label])
        expected.partial_fit({name: [value] for name, value in one.items()}, [label])
    assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
    one = {name: values[:1] for name, values in X.items()}
    for size in (X["size"][0], None):
        single = {"size": size, "colour": X["colour"][0]}
        one["size"] = np.array([size])
        assert_array_equal(model.predict_proba(single), expected.predict_proba(one))
        assert model.predict(single).tolist() == expected.predict(one).tolist()
    with pytest.raises(ValueError, match="A block has 1 samples, but 2 targets"):
        model.partial_fit(single, ["small", "large"])


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


@pytest.mark.parametrize("rows", [1, 7, 60])
def test_weights_of_samples_are_handed_on(rows):
    X, y = samples(200)
    weight = np.random.default_rng(0).uniform(0, 2, 200)
    model, same = (StreamingPipeline(POLKClassifier(random_state=0)) for _ in range(2))
    for start in range(0, 200, rows):
        part = slice(start, start + rows)
        block = {name: values[part] for name, values in X.items()}
        model.partial_fit(block, y[part], sample_weight=weight[part])
        same.partial_fit(block, y[part])
    assert not np.array_equal(model.decision_function(X), same.decision_function(X))
    first = {name: values[:99] for name, values in X.items()}
    by_parts = StreamingPipeline(POLKClassifier(random_state=0))
    for start in range(0, 99, 9):
        part = slice(start, start + 9)
        block = {name: values[part] for name, values in first.items()}
        # Without weights, each is 1.
        given = {} if start == 9 else {"sample_weight": weight[part]}
        by_parts.partial_fit(block, y[part], **given)
    kept = by_parts._waiting_
    assert_array_equal(kept.weight, np.where(np.arange(99) // 9 == 1, 1.0, weight[:99]))
    expected = POLKClassifier(random_state=0).fit(
        StreamingScaler().fit_transform(X), y, sample_weight=weight
    )
    fitted = StreamingPipeline(POLKClassifier(random_state=0)).fit(X, y, sample_weight=weight)
    assert_array_equal(fitted.decision_function(X), expected.decision_function(fitted.encode(X)))


def test_a_weight_of_the_wrong_length_leaves_everything_as_it_was():
    X, y = samples(40)
    model = StreamingPipeline(POLKClassifier(random_state=0)).partial_fit(X, y)
    before = pickle.dumps(model)
    for count in (3, 5):
        block = {name: values[:4] for name, values in X.items()}
        with pytest.raises(ValueError, match="sample_weight"):
            model.partial_fit(block, y[:4], sample_weight=np.ones(count))
        assert pickle.dumps(model) == before


def test_a_detector_of_novelties_learns_without_targets(tmp_path):
    X, _ = samples(300)
    model = StreamingPipeline(POLKOneClass(contamination=0.05))
    for block, _ in in_blocks(X, rows=7):
        model.partial_fit(block)
    again = load_again(model, tmp_path)
    assert_array_equal(again.predict(X), model.predict(X))
    assert_array_equal(again.score_samples(X), model.score_samples(X))
    assert 0 < (model.predict(X) == -1).mean() < 0.2
    strange = {"size": [1e4], "colour": ["never"]}
    assert model.predict(strange) == [-1]
    fitted = StreamingPipeline(POLKOneClass()).fit(X)
    assert fitted.decision_function(X).shape == (300,)
    for needs in (POLKClassifier(), POLKRegressor()):
        with pytest.raises(ValueError, match="requires y to be passed"):
            StreamingPipeline(needs).partial_fit(X)


def load_again(model, tmp_path):
    model.save(tmp_path / "again.parsimon")
    return parsimon.load(tmp_path / "again.parsimon")


@pytest.mark.parametrize("estimator", [POLKClassifier(), POLKRegressor(), POLKOneClass()], ids=str)
def test_a_file_of_a_stream_that_has_just_begun_goes_on_to_the_last_bit(estimator, tmp_path):
    X, y = samples(160)
    X["colour"][::9] = ""
    X["size"][::8] = np.nan
    y = 1.0 * (X["size"] > 1000) if isinstance(estimator, POLKRegressor) else y.astype(object)
    weight = np.random.default_rng(1).uniform(0.5, 2, 160)
    model = StreamingPipeline(clone(estimator))
    for start in range(0, 160, 11):
        part = slice(start, start + 11)
        other = load_again(model, tmp_path) if start else model
        for each in {id(model): model, id(other): other}.values():
            block = {name: values[part] for name, values in X.items()}
            target = None if isinstance(estimator, POLKOneClass) else y[part]
            each.partial_fit(block, target, sample_weight=weight[part])
        assert_array_equal(other.predict(X), model.predict(X))
        assert (other._waiting_ is None) == (model._waiting_ is None)
        if start:
            assert_array_equal(other.encode(X), model.encode(X))
            model = other


def test_what_only_predicts_keeps_no_first_samples(tmp_path):
    model = learned(*samples(30), 7)
    model.save(tmp_path / "slim", training=False)
    archive = _core.Archive.read(str(tmp_path / "slim"))
    assert "pipeline.first" not in archive
    assert_array_equal(
        parsimon.load(tmp_path / "slim").predict(samples()[0]), model.predict(samples()[0])
    )


@pytest.mark.parametrize(
    "change",
    [
        {"begun": 0},
        {"begun": 31},
        {"begun": "all"},
        {"y": {"array": ["large"], "type": "text", "object": False, "shape": [1]}},
        {"numbers": {"array": [[1.0, 2.0]] * 30, "type": "<f8", "shape": [30, 2]}},
        {"numbers": {"array": [1.0] * 30, "type": "<f8", "shape": [30]}},
        {"weight": 3},
        {"classes": "all"},
        {"texts": {"array": ["red"], "type": "text", "object": True, "shape": [1, 1]}},
        {"texts": None},
    ],
    ids=str,
)
def test_first_samples_that_are_made_up_are_refused(change, tmp_path):
    learned(*samples(30), 7).save(tmp_path / "model")
    archive = _core.Archive.read(str(tmp_path / "model"))
    entries = {name: archive[name] for name in archive.keys()}  # noqa: SIM118
    kept = json.loads(entries["pipeline.first"])
    entries["pipeline.first"] = json.dumps({**kept, **change})
    with pytest.raises(ValueError, match=r"first samples in the model file|not a complete model"):
        load(entries)


@pytest.mark.parametrize("missing", [None, "", np.nan])
def test_a_value_that_is_missing_at_first_does_not_decide_what_a_column_is(missing, tmp_path):
    model = StreamingPipeline(POLKClassifier())
    model.partial_fit({"a": missing, "city": missing}, "x")
    model.partial_fit({"a": missing, "city": "Rome"}, "y")
    model.save(tmp_path / "model")
    for each in (model, parsimon.load(tmp_path / "model")):
        each.partial_fit({"a": 2.5, "city": "Oslo"}, "x")
        each.partial_fit({"a": 3.5, "city": "Rome"}, "y")
        assert each.scaler_.mean_.tolist() == [3.0]
        assert {*each.scaler_.categories_[0]} == {"", "Rome", "Oslo"}
        assert each.predict({"a": 3.5, "city": "Rome"}).tolist() == ["y"]
        with pytest.raises(ValueError, match="'a' must hold numbers"):
            each.partial_fit({"a": "many", "city": None}, "y")


def test_a_column_that_is_empty_for_long_is_refused_with_a_remedy():
    rows = {"a": np.arange(200.0), "city": [None] * 200}
    model = StreamingPipeline(POLKClassifier()).partial_fit(rows, ["x", "y"] * 100)
    with pytest.raises(ValueError, match=r"StreamingScaler\(categorical=\['city'\]\)"):
        model.partial_fit({"a": 1.0, "city": "Rome"}, "x")
    scaler = StreamingScaler(categorical=["city"])
    model = StreamingPipeline(POLKClassifier(), scaler=scaler)
    model.partial_fit(rows, ["x", "y"] * 100).partial_fit({"a": 1.0, "city": "Rome"}, "x")
    assert "Rome" in model.scaler_.categories_[0]


def frame_of_decimals(kind, values):
    if kind == "columns":
        return {"price": values}
    if kind == "pyarrow":
        return pytest.importorskip("pyarrow").table({"price": values})
    return pytest.importorskip(kind).DataFrame({"price": values})


@pytest.mark.parametrize("kind", ["columns", "pandas", "polars", "pyarrow"])
def test_decimals_are_numbers(kind):
    # With the same number of places: the first versions of polars mix no others.
    quarters = (Decimal(number) / 4 for number in range(-50, 50))
    values = [*(value.quantize(Decimal("0.01")) for value in quarters), None]
    floats = [None if value is None else float(value) for value in values]
    targets = [Decimal(number) / 8 for number in range(101)]
    model = StreamingPipeline(POLKRegressor())
    model.partial_fit(frame_of_decimals(kind, values), targets)
    expected = StreamingPipeline(POLKRegressor())
    expected.partial_fit({"price": floats}, np.array(targets, dtype=float))
    assert model.scaler_._encoding_.is_text == (False,)
    asked = frame_of_decimals(kind, values[:5])
    assert_array_equal(model.predict(asked), expected.predict({"price": floats[:5]}))


@pytest.mark.parametrize(
    "column", [np.array([1j, 2.0]), [1j, 2.0], np.array([1j, 2], dtype=object)]
)
def test_complex_numbers_are_refused(column):
    with pytest.raises(ValueError, match="'phase' holds complex numbers"):
        StreamingPipeline(POLKClassifier()).partial_fit({"phase": column}, ["x", "y"])
    model = StreamingPipeline(POLKClassifier()).partial_fit({"phase": [1.0, 2.0]}, ["x", "y"])
    with pytest.raises(ValueError, match="'phase' must hold numbers"):
        model.partial_fit({"phase": column}, ["x", "y"])


def test_a_list_of_dictionaries_and_an_array_with_fields_are_samples():
    X, y = samples(40)
    expected = StreamingPipeline(POLKClassifier()).partial_fit(X, y)
    rows = [{"size": size, "colour": colour} for size, colour in zip(*X.values(), strict=True)]
    fields = np.array([*zip(*X.values(), strict=True)], dtype=[("size", float), ("colour", "U9")])
    for given in (rows, fields):
        model = StreamingPipeline(POLKClassifier()).partial_fit(given, y)
        assert_array_equal(model.decision_function(given), expected.decision_function(X))
        assert [len(labels) for _, labels in in_blocks(given, y, rows=25)] == [25, 15]
    lacking = [{"size": 1000.0}, {"colour": "red"}]
    assert (
        len(StreamingPipeline(POLKClassifier()).partial_fit(lacking, ["a", "b"]).predict(rows))
        == 40
    )


def test_the_score_of_one_sample():
    X, y = samples(100)
    model = StreamingPipeline(POLKClassifier(random_state=0)).fit(X, y)
    one = {name: values[0] for name, values in X.items()}
    assert model.score(one, model.predict(one)[0]) == 1.0


def test_it_can_do_what_its_estimator_can():
    X, y = samples(300)
    model = StreamingPipeline(POLKClassifier("logistic")).partial_fit(X, y)
    inner, encoded = model.estimator_, model.encode(X)
    for name in ("predict_log_proba", "distance"):
        assert_array_equal(getattr(model, name)(X), getattr(inner, name)(encoded))
    assert_array_equal(model.drift_, inner.drift_)
    assert_array_equal(model.trace_["loss"], inner.trace_["loss"])
    target = X["size"] / 1000
    numbers = StreamingPipeline(POLKRegressor()).fit(X, target)
    found, expected = (
        each.predict(rows, return_std=True)
        for each, rows in ((numbers, X), (numbers.estimator_, numbers.encode(X)))
    )
    assert_array_equal(found, expected)
    novelties = StreamingPipeline(POLKOneClass(0.05, random_state=0))
    assert_array_equal(novelties.fit_predict(X), novelties.predict(X))
    assert 0 < (novelties.predict(X) == -1).sum() < 30


def test_it_can_do_no_more_than_its_estimator():
    model = StreamingPipeline(SGDClassifier())
    for name in ("fit_predict", "distance", "predict_log_proba", "drift_", "trace_"):
        assert not hasattr(model, name)
    with pytest.raises(TypeError, match="return_std"):
        model.fit(*samples(50)).predict(samples(5)[0], return_std=True)

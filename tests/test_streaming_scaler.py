"""Columns of numbers and text as comparable numbers, against the same of all samples at once."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from parsimon.stream import StreamingScaler, in_blocks


@parametrize_with_checks([StreamingScaler(), StreamingScaler(half_life=10.0)])
def test_is_a_transformer_of_scikit_learn(estimator, check):
    check(estimator)


def learned(X, rows, **options):
    scaler = StreamingScaler(**options)
    for block, _ in in_blocks(X, rows=rows):
        scaler.partial_fit(block)
    return scaler


def numbers(offset=0.0):
    X = np.random.default_rng(0).normal(size=(60, 3)) * [1, 10, 0.01] + offset
    X[:, 2] = X[0, 2]
    return X


@pytest.mark.parametrize("rows", [1, 7, 60])
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_mean_and_deviation_are_those_of_all_samples(rows, offset):
    X = numbers(offset)
    scaler = learned(X, rows)
    exact = X.astype(np.longdouble)
    assert_allclose(scaler.mean_, exact.mean(axis=0).astype(float), rtol=1e-15, atol=1e-15)
    # Numbers of 1e8 have 8 digits behind the point.
    assert_allclose(scaler.scale_[:2], exact.std(axis=0).astype(float)[:2], rtol=1e-7)
    assert scaler.scale_[2] == 1
    assert_allclose(scaler.transform(X), (X - scaler.mean_) / scaler.scale_)


@pytest.mark.parametrize("rows", [1, 7, 60])
def test_with_a_half_life_the_latest_samples_count_most(rows):
    X = numbers()
    weight = np.exp2(-np.arange(59, -1, -1) / 5.0)
    mean = np.average(X, axis=0, weights=weight)
    deviation = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    scaler = learned(X, rows, half_life=5.0)
    assert_allclose(scaler.mean_, mean)
    assert_allclose(scaler.scale_[:2], deviation[:2])


@pytest.mark.parametrize("rows", [1, 7, 60])
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_samples_without_gaps_are_counted_as_those_with_gaps_are(rows, offset):
    # Nothing is forgotten within so long a half-life, which takes the way that knows gaps.
    quick, careful = (learned(numbers(offset), rows, half_life=h) for h in (None, 1e300))
    assert_array_equal(quick.mean_, careful.mean_)
    assert_array_equal(quick.scale_, careful.scale_)


@pytest.mark.parametrize("rows", [1, 7, 60])
def test_missing_numbers_are_left_out_and_become_the_mean(rows):
    X = numbers()
    X[::3, 0] = X[0, 1] = X[:20, 2] = np.nan
    scaler = learned(X, rows)
    assert_allclose(scaler.mean_, np.nanmean(X, axis=0))
    assert_allclose(scaler.scale_[:2], np.nanstd(X, axis=0)[:2])
    encoded = scaler.transform(X)
    assert_array_equal(encoded[np.isnan(X)], 0)
    assert np.isfinite(encoded).all()


def test_numbers_near_the_end_of_the_range_leave_no_nan_behind():
    scaler = StreamingScaler().partial_fit([[1e300], [-1e300]])
    scaler.partial_fit([[1.0], [2.0]])
    assert np.isfinite(scaler.transform([[1.0], [1e300]])).all()
    assert not np.isnan(scaler.scale_).any()
    scaler = StreamingScaler().partial_fit([[np.nan]])
    assert scaler.transform([[3.0]])[0, 0] == 3
    assert scaler.partial_fit([[5.0]]).mean_ == [5]


def mixed(colours, sizes=None):
    sizes = np.arange(len(colours), dtype=float) if sizes is None else sizes
    return {"colour": colours, "size": sizes}


def test_categories_have_places_and_new_ones_get_theirs():
    scaler = StreamingScaler().partial_fit(mixed(["red", "blue", "red"], [1.0, 2.0, 3.0]))
    # A number; two categories, four free places, one shared.
    assert scaler.transform(mixed(["blue"], [2.0])).tolist() == [[0, 0, 1, 0, 0, 0, 0, 0]]
    assert scaler.transform(mixed(["green"], [2.0])).tolist() == [[0] * 8]
    scaler.partial_fit(mixed(["green", "", "grey", "pink"], [2.0] * 4))
    known = ["red", "blue", "green", "", "grey", "pink"]
    assert scaler.categories_[0].tolist() == known
    assert_array_equal(scaler.transform(mixed(known, [2.0] * 6))[:, 1:], np.eye(6, 7))
    # All places are taken: what has none shares the last.
    scaler.partial_fit(mixed(["white", "black"], [2.0] * 2))
    assert scaler.categories_[0].tolist() == known
    shared = scaler.transform(mixed(["white", "never seen"], [2.0] * 2))[:, 1:]
    assert_array_equal(shared, np.eye(7)[[6, 6]])
    assert scaler.get_feature_names_out().tolist() == [
        "size",
        *(f"colour_{name}" for name in known),
        "colour_others",
    ]


def test_no_more_categories_than_allowed():
    scaler = StreamingScaler(max_categories=2).partial_fit(mixed([*"abcab"]))
    assert scaler.categories_[0].tolist() == ["a", "b"]
    assert_array_equal(scaler.transform(mixed([*"abc"]))[:, 1:], np.eye(3))


def test_numbers_that_are_categories():
    X = np.array([[1.0, 7.0], [2.0, 8.0], [3.0, 7.0]])
    by_place = StreamingScaler(categorical=[1]).fit(X)
    assert by_place.categories_[0].tolist() == ["7", "8"]
    by_name = StreamingScaler(categorical=["b"]).fit({"a": X[:, 0], "b": X[:, 1]})
    assert_array_equal(by_name.transform({"a": X[:, 0], "b": X[:, 1]}), by_place.transform(X))
    assert by_name.get_feature_names_out().tolist()[:3] == ["a", "b_7", "b_8"]


COLUMNS = {
    "size": [1.5, 2.5, 4.0, 0.0],
    "count": [1, 2, 3, 4],
    "colour": ["red", "blue", "red", "green"],
    "on": [True, False, True, True],
}


@pytest.mark.parametrize("kind", ["array", "pandas", "polars", "pyarrow"])
def test_every_kind_of_frame_is_the_same(kind):
    expected = StreamingScaler().fit_transform(COLUMNS)
    if kind == "array":
        given = np.array(list(zip(*COLUMNS.values(), strict=True)), dtype=object)
    else:
        library = pytest.importorskip(kind)
        given = (library.table if kind == "pyarrow" else library.DataFrame)(COLUMNS)
    scaler = StreamingScaler().fit(given)
    assert_allclose(scaler.transform(given), expected)
    assert scaler.n_features_in_ == 4
    if kind != "array":
        assert scaler.feature_names_in_.tolist() == list(COLUMNS)


def test_gaps_of_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "n": pandas.array([1, None, 3], dtype="Int64"),
            "c": pandas.Categorical(["a", None, "b"]),
            "s": pandas.array(["x", None, "y"], dtype="string"),
        }
    )
    scaler = StreamingScaler().fit(frame)
    assert scaler.mean_ == [2]
    assert [known.tolist() for known in scaler.categories_] == [["a", "", "b"], ["x", "", "y"]]


def test_the_order_of_a_dictionary_does_not_matter():
    scaler = StreamingScaler().fit(mixed([*"aab"]))
    turned = {"size": np.arange(3.0), "colour": [*"aab"]}
    assert_array_equal(scaler.transform(turned), scaler.transform(mixed([*"aab"])))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"colour": ["a"]}, r"columns are \['colour'\], but those learned from are"),
        ({"colour": ["a"], "size": ["big"]}, "column 'size' must hold numbers"),
        ({"colour": ["a"], "size": [1.0, 2.0]}, "as many rows"),
        ({"colour": ["a"], "size": [np.inf]}, "contain infinity"),
        ({"colour": ["a"], "size": [[1.0]]}, "must have one dimension"),
        ({"colour": [], "size": []}, "There are no samples"),
        ({"colour": ["a"], "size": np.array(["2020-01-01"], "M8[D]")}, "column 'size' must hold"),
    ],
)
def test_bad_samples_leave_everything_as_it_was(given, message):
    scaler = StreamingScaler().fit(mixed([*"aab"]))
    before = scaler._encoding_
    for method in (scaler.partial_fit, scaler.transform, scaler.fit):
        if method == scaler.fit and "as many" not in message and "dimension" not in message:
            continue  # would be fine by themselves
        with pytest.raises(ValueError, match=message):
            method(given)
    assert scaler._encoding_ is before
    assert scaler.feature_names_in_.tolist() == ["colour", "size"]


def test_dates_and_frames_without_rows_are_refused():
    dates = np.array(["2020-01-01", "2020-01-02"], "M8[D]")
    for values in (dates, dates.astype(object), dates - dates[0]):
        with pytest.raises(ValueError, match="but column 'when' holds dates or durations"):
            StreamingScaler().fit({"when": values, "size": [1.0, 2.0]})
    assert StreamingScaler(categorical=["when"]).fit({"when": dates}).categories_[0].size == 2
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="a frame must have some rows"):
        StreamingScaler().fit(pandas.DataFrame({"size": []}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"half_life": 0}, "half_life must be a positive"),
        ({"max_categories": 0}, "max_categories must be an integer of at least 1"),
        ({"categorical": "colour"}, "categorical must be 'auto' or a sequence"),
        ({"categorical": ["shape"]}, "which are no columns"),
        ({"categorical": [5]}, "which are no columns"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        StreamingScaler(**options).fit(mixed([*"aab"]))


def test_nothing_is_there_before_it_is_fitted():
    scaler = StreamingScaler()
    assert not hasattr(scaler, "mean_")
    with pytest.raises(AttributeError, match="has no categories_ before it is fitted"):
        _ = scaler.categories_
    scaler.fit([[1.0]])
    assert not hasattr(clone(scaler), "mean_")

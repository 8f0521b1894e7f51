"""Test, then train: what is judged, when, and by what."""

import sys
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import metrics
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.svm import SVC

from parsimon import POLKClassifier, POLKOneClass, POLKRegressor
from parsimon.datasets import make_multidist
from parsimon.stream import PrequentialDisplay, StreamingPipeline, in_blocks, prequential
from parsimon.stream._metrics import METRICS


class Diary(ClassifierMixin, BaseEstimator):
    """Write down what is asked of it; predict the last feature of a sample."""

    def fit(self, X, y):
        return self.partial_fit(X, y)

    def partial_fit(self, X, y, classes=None):
        self.__dict__.setdefault("diary_", []).append(("learn", X[:, 0].tolist(), classes))
        return self

    def predict(self, X):
        self.diary_.append(("predict", X[:, 0].tolist()))
        return X[:, -1]


class Constant(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        return self.partial_fit(X, y)

    def partial_fit(self, X, y):
        self.fitted_ = True
        return self

    def predict(self, X):
        return np.zeros(len(X))


def stream(rows=23, wrong=(5, 11, 12, 20)):
    """Number of the sample, and what Diary predicts; the truth is 0."""
    X = np.column_stack([np.arange(rows), np.isin(np.arange(rows), wrong)]).astype(float)
    return X, np.zeros(rows)


def test_every_block_is_predicted_before_it_is_learned_from():
    model = Diary()
    result = prequential(model, in_blocks(*stream(7), rows=3), classes=[0, 1])
    assert model.diary_ == [
        ("learn", [0, 1, 2], [0, 1]),
        ("predict", [3, 4, 5]),
        ("learn", [3, 4, 5], None),
        ("predict", [6]),
        ("learn", [6], None),
    ]
    assert result.model is model
    assert result.summary["samples"] == 7


def test_a_model_that_is_fitted_is_judged_by_the_first_block_too():
    X, y = stream(6, wrong=(0,))
    model = Diary().partial_fit(X, y)
    assert prequential(model, in_blocks(X, y, rows=3)).summary["accuracy"] == 5 / 6
    assert prequential(Diary(), in_blocks(X, y, rows=3)).summary["accuracy"] == 1


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 23])
@pytest.mark.parametrize("window", [1, 4, 7, 100])
def test_windows_are_the_same_in_whatever_blocks_the_samples_come(rows, window):
    X, y = stream()
    model = Diary().partial_fit(X, y)
    result = prequential(model, in_blocks(X, y, rows=rows), ["error", "accuracy"], window)
    ends = [*range(window, 23, window), 23]
    assert_array_equal(result.samples, ends)
    parts = np.split(X[:, 1], ends[:-1])
    assert_allclose(result.curves["error"], [part.mean() for part in parts])
    assert_allclose(result.curves["accuracy"], [1 - part.mean() for part in parts])
    assert_allclose(result.summary["error"], 4 / 23)
    assert result.points is None
    assert "points" not in result.summary


def test_a_stream_without_anything_to_judge():
    for blocks in ([], in_blocks(*stream(), rows=100)):
        result = prequential(Diary(), blocks)
        assert len(result.samples) == len(result.curves["accuracy"]) == 0
        assert np.isnan(result.summary["accuracy"])


def test_metrics_are_those_of_scikit_learn():
    random = np.random.default_rng(0)
    labels, guesses = random.integers(0, 4, (2, 200))
    truth, predicted = random.normal(size=(2, 200))
    for name, expected in {
        "accuracy": metrics.accuracy_score(labels, guesses),
        "error": 1 - metrics.accuracy_score(labels, guesses),
        "balanced_accuracy": metrics.balanced_accuracy_score(labels, guesses),
    }.items():
        assert_allclose(METRICS[name](labels, guesses), expected)
    for name, expected in {
        "mean_absolute_error": metrics.mean_absolute_error(truth, predicted),
        "mean_squared_error": metrics.mean_squared_error(truth, predicted),
        "r2": metrics.r2_score(truth, predicted),
    }.items():
        assert_allclose(METRICS[name](truth, predicted), expected)
    assert np.isnan(METRICS["r2"](np.ones(3), np.zeros(3)))
    # A class that only predictions have is nobody's to recognise.
    assert METRICS["balanced_accuracy"](np.array([0, 0, 1]), np.array([0, 2, 1])) == 0.75


def test_metrics_of_regression_and_of_ones_own():
    X, y = np.zeros((10, 1)), np.arange(10.0)
    result = prequential(Constant().fit(X, y), in_blocks(X, y, rows=2), window=5)
    assert_allclose(result.curves["mean_absolute_error"], [2, 7])
    assert_allclose(result.curves["r2"], [1 - 6 / 2, 1 - 51 / 2])
    own = {"largest": lambda truth, predicted: np.abs(truth - predicted).max()}
    result = prequential(Constant().fit(X, y), in_blocks(X, y, rows=2), own, 5)
    assert_allclose(result.curves["largest"], [4, 9])
    assert result.summary["largest"] == 6.5


def test_where_a_metric_is_not_defined_it_does_not_count():
    y = np.array([1.0, 1.0, 1.0, 3.0])
    result = prequential(Constant().fit(y[:, None], y), in_blocks(y[:, None], y), "r2", 2)
    assert np.isnan(result.curves["r2"][0])
    assert result.summary["r2"] == result.curves["r2"][1] == 1 - 5.0


# -- drift -----------------------------------------------------------------------------------------


def drifting(rows=6000):
    """A quarter of the plane's labels turn round half way."""
    X, y = make_multidist(rows, n_classes=2, random_state=0)
    y[rows // 2 :] = 1 - y[rows // 2 :]
    return X, y


def test_a_change_of_the_stream_is_found_where_it_is():
    result = prequential(POLKClassifier(), in_blocks(*drifting(), rows=10), classes=[0, 1])
    assert len(result.drift) == result.summary["changes"] == 1
    assert 3000 < result.drift[0] < 3060
    X, y = make_multidist(6000, random_state=0)
    calm = prequential(POLKClassifier(), in_blocks(X, y, rows=100), classes=range(5))
    assert len(calm.drift) == 0


def test_a_change_of_a_regression_is_found_with_numbers_of_any_size():
    X = np.random.default_rng(1).uniform(size=(4000, 1))
    y = 1e6 * np.where(np.arange(4000) < 2500, 1, -1) + np.random.default_rng(0).normal(size=4000)
    result = prequential(POLKRegressor(), in_blocks(X, y, rows=50))
    assert len(result.drift) == 1
    assert 2500 < result.drift[0] < 2600


class Alarm:
    """Ring at the third loss of 1 and each one after it."""

    drift_detected, losses = False, 0

    def update(self, loss):
        self.losses += loss
        self.drift_detected = bool(loss) and self.losses >= 3


def test_another_detector_or_none():
    X, y = stream()
    model = Diary().partial_fit(X, y)
    result = prequential(model, in_blocks(X, y, rows=4), drift=Alarm())
    assert_array_equal(result.drift, [13, 21])
    assert len(prequential(model, in_blocks(X, y, rows=4), drift=None).drift) == 0


def test_a_detector_of_river():
    drift = pytest.importorskip("river.drift")
    blocks = in_blocks(*drifting(), rows=10)
    result = prequential(POLKClassifier(), blocks, drift=drift.ADWIN(), classes=[0, 1])
    assert any(3000 < place < 3300 for place in result.drift)


# -- models and data -------------------------------------------------------------------------------


def test_any_model_with_partial_fit():
    X, y = make_multidist(600, random_state=0)
    for model in (SGDClassifier(random_state=0), POLKClassifier()):
        result = prequential(model, in_blocks(X, y, rows=20), window=100, classes=range(5))
        assert result.summary["accuracy"] > 0.3
        assert len(result.microseconds) == 6
    result = prequential(SGDRegressor(random_state=0), in_blocks(X[:, :1], X[:, 1], rows=20))
    assert set(result.curves) == {"mean_absolute_error", "r2"}


def test_single_samples_are_blocks_of_one():
    X, y = make_multidist(300, random_state=0)
    labels = np.array(["a", "b", "c", "d", "e"])[y]
    options = {"window": 50, "classes": [*"abcde"]}
    one = prequential(POLKClassifier(), zip(X, labels, strict=True), **options)
    same = prequential(POLKClassifier(), in_blocks(X, labels, rows=1), **options)
    assert_array_equal(one.curves["accuracy"], same.curves["accuracy"])
    features = [dict(enumerate(map(float, x))) for x in X]
    model = StreamingPipeline(POLKClassifier())
    named = prequential(model, zip(features, labels.tolist(), strict=True), **options)
    assert named.summary["accuracy"] > 0.6
    assert named.points[-1] == model.model_order_ == named.summary["points"]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library):
    frames = pytest.importorskip(library)
    X, y = make_multidist(300, random_state=0)
    labels = np.array([*"abcde"])[y]
    frame = frames.DataFrame({"x": X[:, 0], "y": X[:, 1]})
    blocks = in_blocks(frame, frames.Series(labels), rows=20)
    assert blocks.n_samples == 300
    result = prequential(POLKClassifier(), blocks, classes=[*"abcde"])
    same = prequential(POLKClassifier(), in_blocks(X, labels, rows=20), classes=[*"abcde"])
    assert result.summary["accuracy"] == same.summary["accuracy"]


def test_the_bar_shows_how_far_it_is_and_how_good(capsys, monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.setenv("COLUMNS", "200")
    X, y = make_multidist(300, random_state=0)
    prequential(POLKClassifier(), in_blocks(X, y, rows=50), classes=range(5))
    assert capsys.readouterr().err == ""
    prequential(POLKClassifier(), in_blocks(X, y), window=50, classes=range(5), verbose=1)
    model = POLKClassifier()
    blocks = in_blocks(X, y, rows=50)
    result = prequential(model, blocks, window=50, classes=range(5), verbose=1)
    shown = capsys.readouterr().err
    assert "POLKClassifier: 100%" in shown
    assert "300/300" in shown
    assert f"points={model.model_order_}" in shown
    assert "accuracy" in str(result)
    assert f"{result.summary['samples']}" in str(result)


@pytest.mark.parametrize(
    ("model", "options", "error", "message"),
    [
        (SVC(), {}, TypeError, "SVC has no partial_fit"),
        (Diary(), {"window": 0}, ValueError, "window must be an integer of at least 1; got 0"),
        (Diary(), {"metrics": "f2"}, ValueError, "metrics must be some of accuracy"),
        (Diary(), {"metrics": []}, ValueError, "metrics must be some of"),
        (Diary(), {"metrics": {"f": 1}}, ValueError, "metrics must map names to functions"),
        (Diary(), {"drift": "adwin"}, ValueError, "drift must be 'auto', None or an object"),
        (Diary(), {"drift": object()}, ValueError, "drift must be 'auto', None or an object"),
    ],
)
def test_bad_arguments(model, options, error, message):
    with pytest.raises(error, match=message):
        prequential(model, in_blocks(*stream()), **options)


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([(np.zeros((3, 1)), [0, 1])], "3 samples, but 2 targets"),
        ([(np.zeros((3, 1)), None)], "y is None; read_blocks needs the name of the target"),
    ],
)
def test_bad_blocks(blocks, message):
    with pytest.raises(ValueError, match=message):
        prequential(Diary(), blocks)
    with pytest.raises(ValueError, match="X has 2 samples, but y has 1 targets"):
        in_blocks(np.zeros((2, 1)), [0])
    with pytest.raises(ValueError, match="rows must be an integer of at least 1; got 0"):
        in_blocks(np.zeros((2, 1)), [0, 1], rows=0)


@pytest.mark.parametrize("model", [SGDRegressor(random_state=0), POLKRegressor()])
def test_a_column_of_targets_is_judged_as_a_sequence(model):
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = X[:, 0] + 3
    expected = prequential(clone(model), in_blocks(X, y, rows=20), window=50)
    columns = [y[:, None], pytest.importorskip("pandas").DataFrame({"y": y})]
    for column in columns:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataConversionWarning)  # which is scikit-learn's to say
            found = prequential(clone(model), in_blocks(X, column, rows=20), window=50)
        for name, curve in expected.curves.items():
            assert_allclose(found.curves[name], curve, err_msg=name)
        assert found.summary["changes"] == expected.summary["changes"]


def test_shapes_that_do_not_go_together_are_refused():
    blocks = in_blocks(np.zeros((40, 2)), np.zeros((40, 2)), rows=20)
    with pytest.raises(ValueError, match=r"shape \(20, 2\).*shape \(20,\).*cannot be compared"):
        prequential(Constant(), blocks)


def test_a_detector_of_novelties_is_judged_by_inliers_and_outliers():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(600, 2)), np.ones(600, dtype=int)
    X[::20], y[::20] = 8.0, -1
    learned = [(X[:200][y[:200] > 0], y[:200][y[:200] > 0]), (X[200:], y[200:])]
    result = prequential(POLKOneClass(0.05), learned, "balanced_accuracy", drift=None)
    assert result.summary["balanced_accuracy"] > 0.9
    for targets, message in [(None, "there are none"), (["good"] * 600, "they are \\['good'\\]")]:
        with pytest.raises(ValueError, match=f"1 for inliers and -1 for outliers.*{message}"):
            prequential(StreamingPipeline(POLKOneClass()), in_blocks(X, targets, rows=100))


def test_a_frame_that_is_not_computed_is_refused():
    polars = pytest.importorskip("polars")
    with pytest.raises(TypeError, match=r"give X\.collect\(\)"):
        in_blocks(polars.LazyFrame({"x": [1.0, 2.0]}), [0, 1])


# -- the display -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def results():
    blocks = in_blocks(*drifting(), rows=50)
    options = {"metrics": ["error", "accuracy"], "window": 200, "classes": [0, 1]}
    return {
        "POLK": prequential(POLKClassifier(), blocks, **options),
        "linear": prequential(SGDClassifier(random_state=0), blocks, drift=None, **options),
    }


def test_draws_metric_points_and_time_with_the_changes(results, plt):
    result = results["POLK"]
    display = result.plot()
    assert [axes.get_ylabel() for axes in display.ax_] == [
        "error",
        "points",
        "microseconds per sample",
    ]
    for name, curve in {
        "metric": result.curves["error"],
        "points": result.points,
        "microseconds": result.microseconds,
    }.items():
        (line,) = display.lines_[name]
        assert_array_equal(line.get_data(), [result.samples, curve])
    assert [line.get_xdata()[0] for line in display.lines_["drift"]] == [result.drift[0]] * 3
    assert [text.get_text() for text in display.ax_[0].get_legend().get_texts()] == ["drift"]
    assert display.figure_ is display.ax_[0].figure


def test_draws_several_models_on_axes_that_are_given(results, plt):
    _, axes = plt.subplots(3)
    display = PrequentialDisplay(results).plot(metric="accuracy", ax=axes)
    assert display.ax_[1] is axes[1]
    assert len(display.lines_["metric"]) == 2
    assert len(display.lines_["points"]) == 1  # a linear model has none
    names = [text.get_text() for text in display.ax_[0].get_legend().get_texts()]
    assert names == ["POLK", "linear", "drift"]
    quiet = PrequentialDisplay(results["linear"]).plot()
    assert quiet.ax_[0].get_legend() is None


def test_a_metric_that_was_not_computed(results, plt):
    with pytest.raises(ValueError, match="metric must be one of 'error', 'accuracy'; got 'r2'"):
        PrequentialDisplay(results).plot(metric="r2")


def test_without_matplotlib(results, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'parsimon\[plot\]'"):
        results["POLK"].plot()

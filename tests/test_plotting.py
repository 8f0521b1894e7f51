"""Displays with matplotlib, and without."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_moons
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from parsimon import POLKClassifier, POLKRegressor
from parsimon.datasets import make_multidist
from parsimon.plotting import DecisionSurfaceDisplay, TraceDisplay


@pytest.fixture(scope="module")
def data():
    return make_multidist(600, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return POLKClassifier(epochs=1, random_state=0).fit(*data)


def region_of(display, x):
    """Colour of the topmost region at a point."""
    for region in reversed(display.regions_):
        if any(path.contains_point(x) for path in region.get_paths()):
            return tuple(region.get_facecolor()[0][:3])
    return None


@pytest.mark.usefixtures("plt")
class TestDecisionSurface:
    def test_draws_regions_data_and_dictionary(self, model, data):
        X, y = data
        display = DecisionSurfaceDisplay.from_estimator(model, X, y, grid_resolution=60)
        assert display.figure_ is display.ax_.figure
        assert display.scores.shape == (60, 60, 5)
        assert_array_equal(display.data_.get_offsets(), X)
        assert_array_equal(display.dictionary_.get_offsets(), model.dictionary_)
        assert_array_equal(display.dictionary_.get_facecolor(), [[0, 0, 0, 1]])
        assert len(np.unique(display.data_.get_facecolor(), axis=0)) == 5
        low, high = X.min(axis=0), X.max(axis=0)
        assert display.ax_.get_xlim()[0] < low[0] < high[0] < display.ax_.get_xlim()[1]
        assert display.ax_.get_ylim()[0] < low[1] < high[1] < display.ax_.get_ylim()[1]

    def test_regions_are_those_of_predict(self, model, data):
        X, y = data
        colors = ["red", "green", "blue", "black", "yellow"]
        display = DecisionSurfaceDisplay.from_estimator(model, X, y, colors=colors)
        from matplotlib.colors import to_rgb

        tints = 0.3 * np.array([to_rgb(color) for color in colors]) + 0.7
        margins = np.sort(model.decision_function(X), axis=1)
        clear = np.flatnonzero(margins[:, -1] - margins[:, -2] > 0.05)[:50]
        for x, label in zip(X[clear], model.predict(X[clear]), strict=True):
            assert_allclose(region_of(display, x), tints[label])

    def test_two_classes(self):
        X, y = make_moons(200, noise=0.1, random_state=0)
        labels = np.array(["left", "right"])[y]
        model = POLKClassifier(epochs=2, random_state=0).fit(X, labels)
        display = DecisionSurfaceDisplay.from_estimator(model, X, labels, grid_resolution=50)
        assert len(display.regions_) == 2
        decision = model.decision_function(np.column_stack([display.xx0.flat, display.xx1.flat]))
        assert_array_equal(display.scores[..., 1].ravel(), decision)

    def test_draws_on_given_axes_without_labels(self, model, data, plt):
        _, axes = plt.subplots()
        display = DecisionSurfaceDisplay.from_estimator(
            model, data[0], ax=axes, grid_resolution=20, dictionary=False
        )
        assert display.ax_ is axes
        assert display.dictionary_ is None
        assert len(display.data_.get_facecolor()) == 1

    def test_plots_again_with_other_options(self, model, data):
        display = DecisionSurfaceDisplay.from_estimator(model, *data, grid_resolution=20)
        first = display.ax_
        display.plot(data=False, legend=True)
        assert display.ax_ is not first
        assert display.data_ is None
        names = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        assert names == ["0", "1", "2", "3", "4", "dictionary"]

    def test_pipeline_carries_its_dictionary_back(self, data):
        X, y = data
        X = 100 + 10 * X
        pipeline = make_pipeline(StandardScaler(), POLKClassifier(epochs=1, random_state=0))
        pipeline.fit(X, y)
        display = DecisionSurfaceDisplay.from_estimator(pipeline, X, y, grid_resolution=20)
        back = pipeline[0].inverse_transform(pipeline[1].dictionary_)
        assert_allclose(display.dictionary, back)

    def test_pipeline_without_a_way_back_has_no_dictionary(self, data):
        X, y = data
        pipeline = make_pipeline(_OneWay(), POLKClassifier(epochs=1, random_state=0)).fit(X, y)
        display = DecisionSurfaceDisplay.from_estimator(pipeline, X, y, grid_resolution=20)
        assert display.dictionary_ is None

    def test_pipeline_of_function_transformer(self, data):
        X, y = data
        pipeline = make_pipeline(FunctionTransformer(), POLKClassifier(epochs=1, random_state=0))
        display = DecisionSurfaceDisplay.from_estimator(pipeline.fit(X, y), X, grid_resolution=20)
        assert_array_equal(display.dictionary, pipeline[1].dictionary_)

    @pytest.mark.parametrize(
        "other", [SVC(), SVC(decision_function_shape="ovo"), LogisticRegression()]
    )
    def test_any_classifier(self, other, data):
        X, y = data
        display = DecisionSurfaceDisplay.from_estimator(other.fit(X, y), X, y, grid_resolution=30)
        grid = np.column_stack([display.xx0.flat, display.xx1.flat])
        winners = display.classes[display.scores.argmax(axis=2)]
        assert_array_equal(winners.ravel(), other.predict(grid))
        assert display.dictionary_ is None

    def test_classifier_with_nothing_but_predict(self, data):
        X, y = data
        display = DecisionSurfaceDisplay.from_estimator(_Quadrant().fit(X, y), X, grid_resolution=9)
        assert set(display.scores.ravel()) == {0.0, 1.0}
        assert len(display.regions_) == 2  # the other classes never win

    def test_many_classes(self):
        X, y = make_multidist(400, n_classes=9, random_state=0)
        model = POLKClassifier(epochs=1, random_state=0).fit(X, y)
        display = DecisionSurfaceDisplay.from_estimator(model, X, y, grid_resolution=20)
        assert len(np.unique(display.data_.get_facecolor(), axis=0)) == 9

    def test_data_frame_names_the_axes(self, data):
        pandas = pytest.importorskip("pandas")
        X, y = pandas.DataFrame(data[0], columns=["width", "height"]), data[1]
        model = POLKClassifier(epochs=1, random_state=0).fit(X, y)
        display = DecisionSurfaceDisplay.from_estimator(model, X, y, grid_resolution=20)
        assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("width", "height")

    def test_one_sample(self, model):
        display = DecisionSurfaceDisplay.from_estimator(model, [[0.0, 0.0]], [1], grid_resolution=5)
        assert np.ptp(display.xx0) > 0

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"X": np.zeros((3, 3))}, "two features; X has 3"),
            ({"y": [0]}, "inconsistent numbers of samples"),
            ({"grid_resolution": 1}, "grid_resolution must be at least 2; got 1"),
            ({"colors": ["red"]}, "one entry for each of the 5 classes; it has 1"),
            ({"X": [[0.0, np.nan]]}, "NaN"),
        ],
    )
    def test_bad_arguments(self, model, options, message):
        with pytest.raises(ValueError, match=message):
            DecisionSurfaceDisplay.from_estimator(model, **{"X": np.eye(2), **options})

    def test_regressor_is_refused(self):
        regressor = LinearRegression().fit(np.eye(2), [0.0, 1.0])
        with pytest.raises(ValueError, match="need a classifier; LinearRegression is none"):
            DecisionSurfaceDisplay.from_estimator(regressor, np.eye(2))

    def test_unfitted_is_refused(self):
        from sklearn.exceptions import NotFittedError

        with pytest.raises(NotFittedError):
            DecisionSurfaceDisplay.from_estimator(POLKClassifier(), np.eye(2))


@pytest.mark.usefixtures("plt")
class TestTrace:
    def test_draws_the_trace(self, model):
        display = TraceDisplay.from_estimator(model)
        assert display.figure_ is display.ax_[0].figure
        for name in ("model_order", "compression_error", "budget"):
            x, y = display.lines_[name].get_data()
            assert_array_equal(x, model.trace_["samples"])
            assert_array_equal(y, model.trace_[name])

    def test_loss_is_a_moving_average(self):
        zeros = np.zeros(6)
        trace = dict.fromkeys(("model_order", "compression_error", "budget"), zeros)
        loss = np.array([6.0, 0.0, 3.0, 3.0, 9.0, 0.0])
        display = TraceDisplay({"samples": np.arange(6), "loss": loss, **trace}).plot(smoothing=3)
        assert_allclose(display.lines_["loss"].get_ydata(), [6, 3, 3, 2, 5, 4])
        display.plot(smoothing=1)
        assert_allclose(display.lines_["loss"].get_ydata(), loss)

    def test_regressor_pipeline_on_given_axes(self, plt):
        X = np.linspace(0, 1, 200)[:, None]
        pipeline = make_pipeline(StandardScaler(), POLKRegressor(epochs=1, random_state=0))
        pipeline.fit(X, np.sin(6 * X[:, 0]))
        figure, axes = plt.subplots(1, 3)
        display = TraceDisplay.from_estimator(pipeline, ax=axes)
        assert display.figure_ is figure
        assert display.ax_[2] is axes[2]

    def test_bad_arguments(self, model, plt, data):
        with pytest.raises(ValueError, match="smoothing must be at least 1 mini-batch; got 0"):
            TraceDisplay.from_estimator(model, smoothing=0)
        with pytest.raises(ValueError, match="ax must be three Axes, one for each panel; got 2"):
            TraceDisplay.from_estimator(model, ax=plt.subplots(2)[1])
        with pytest.raises(ValueError, match="SVC has no trace_"):
            TraceDisplay.from_estimator(SVC().fit(*data))


@pytest.mark.parametrize("display", [DecisionSurfaceDisplay, TraceDisplay])
def test_without_matplotlib(display, model, data, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    arguments = (model,) if display is TraceDisplay else (model, data[0])
    with pytest.raises(ImportError, match=r"pip install 'parsimon\[plot\]'"):
        display.from_estimator(*arguments)


class _OneWay(BaseEstimator):
    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X


class _Quadrant(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.where(X[:, 0] > 0, 2, 4)

"""The display of intensities, with one that is known."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.utils.validation import validate_data

from parsimon import MarkedIntensity, SPPPOTIntensity
from parsimon.plotting import IntensityDisplay


class Tilted(BaseEstimator):
    """A density that grows by a factor of 3 with the first feature and of 5/3 with the second.

    Its dictionary is nodes and samples, mixed.
    """

    def __init__(self, domain=((0.0, 4.0),)):
        self.domain = domain

    def fit(self, X, y=None):
        X = validate_data(self, X, dtype=np.float64)
        self.domain_ = np.array(self.domain, dtype=float)
        middles = [low + (high - low) * (np.arange(3) + 0.5) / 3 for low, high in self.domain_]
        self.nodes_ = np.stack(np.meshgrid(*middles), axis=-1).reshape(-1, len(self.domain_))
        self.dictionary_ = np.vstack([X[:2], self.nodes_[:-1], X[2:4]])
        self.n_points_ = len(X)
        return self

    def score_samples(self, X):
        X = validate_data(self, X, reset=False, dtype=np.float64)
        low, high = self.domain_.T
        u = (2 * X - low - high) / (high - low)
        slopes = 0.5 ** np.arange(1, len(low) + 1)
        return np.log((1 + slopes * u) / (high - low)).sum(axis=1)

    def intensity(self, X, return_std=False):
        values = self.n_points_ * np.exp(self.score_samples(X))
        return (values, 0.1 * values) if return_std else values


def truth(X):
    return 7 + X[:, 0]


def points(domain, count=50):
    low, high = np.array(domain).T
    return np.random.default_rng(0).uniform(low, high, size=(count, len(domain)))


LINE = ((0.0, 4.0),)
PLANE = ((0.0, 1.0), (-3.0, 3.0))


@pytest.fixture
def line():
    return Tilted(LINE).fit(points(LINE))


@pytest.fixture
def plane():
    return Tilted(PLANE).fit(points(PLANE))


def names(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


@pytest.mark.usefixtures("plt")
class TestLine:
    def test_draws_curve_rug_truth_and_dictionary(self, line):
        X = points(LINE)
        display = IntensityDisplay.from_estimator(line, X, truth=truth)
        assert display.figure_ is display.ax_.figure
        x = np.linspace(0, 4, 500)
        assert_array_equal(display.line_.get_xdata(), x)
        # 50 points and a density that grows from 1/8 to 3/8.
        assert_allclose(display.line_.get_ydata(), 50 * (1 / 8 + x / 16))
        assert_array_equal(display.truth_.get_ydata(), 7 + x)
        assert display.truth_.get_linestyle() == "--"
        assert_array_equal(display.data_.get_xdata(), X[:, 0])
        assert len(set(display.data_.get_ydata())) == 1
        assert_allclose(display.nodes_.get_offsets()[:, 0], [2 / 3, 2])
        assert_array_equal(display.samples_.get_offsets()[:, 0], X[:4, 0])
        marks = display.samples_.get_offsets()
        assert_allclose(marks[:, 1], 50 * (1 / 8 + marks[:, 0] / 16))
        assert names(display) == ["intensity", "truth", "nodes", "learned points", "data"]
        assert display.ax_.get_ylabel() == "intensity"
        assert display.mesh_ is None
        assert display.colorbar_ is None

    def test_everything_is_within_the_axes(self, line):
        display = IntensityDisplay.from_estimator(line, points(LINE), truth=lambda x: 90 + x)
        assert display.ax_.get_xlim() == (0, 4)
        low, high = display.ax_.get_ylim()
        assert low < display.data_.get_ydata()[0] < 0
        assert high > 94

    def test_density_and_resolution(self, line):
        display = IntensityDisplay.from_estimator(line, quantity="density", resolution=5)
        assert_allclose(display.line_.get_ydata(), [1 / 8, 3 / 16, 1 / 4, 5 / 16, 3 / 8])
        assert display.ax_.get_ylabel() == "density"
        assert display.data_ is None
        assert display.truth_ is None
        assert names(display) == ["density", "nodes", "learned points"]

    def test_truth_can_be_an_array(self, line):
        display = IntensityDisplay.from_estimator(line, truth=[1, 2, 3], resolution=3)
        assert_array_equal(display.truth_.get_ydata(), [1, 2, 3])

    def test_negative_values_are_shown(self, line):
        low = np.linspace(-2, 1, 7)
        display = IntensityDisplay([np.arange(7.0)], low, np.array([[0, 6]])).plot()
        assert display.ax_.get_ylim()[0] < -2

    def test_constant_zero(self):
        display = IntensityDisplay([np.arange(3.0)], np.zeros(3), np.array([[0, 2]])).plot()
        assert display.ax_.get_ylim() == (0, 1)
        assert display.ax_.get_legend() is None

    def test_nothing_but_the_curve(self, line):
        display = IntensityDisplay.from_estimator(line, points(LINE), dictionary=False, data=False)
        assert display.nodes_ is display.samples_ is display.data_ is None
        assert display.ax_.get_legend() is None

    def test_rug_of_no_points(self, line):
        display = IntensityDisplay.from_estimator(line, np.empty((0, 1)))
        assert len(display.data_.get_xdata()) == 0


@pytest.mark.usefixtures("plt")
class TestPlane:
    def test_draws_map_data_and_dictionary(self, plane):
        X = points(PLANE)
        display = IntensityDisplay.from_estimator(plane, X, resolution=20)
        colors = display.mesh_.get_array().reshape(20, 20)
        x, y = (np.arange(20) + 0.5) / 20, -3 + 6 * (np.arange(20) + 0.5) / 20
        # Rows of a mesh run along the second feature.
        exact = 50 / 6 * np.outer(1 + y / 12, 0.5 + x)
        assert_allclose(colors, exact)
        corners = display.mesh_.get_coordinates()
        assert_allclose(corners[[0, -1], [0, -1]], [[0, -3], [1, 3]])
        assert display.mesh_.get_clim()[0] == 0
        assert_array_equal(display.data_.get_offsets(), X)
        assert_array_equal(display.nodes_.get_offsets(), plane.nodes_[:-1])
        assert_array_equal(display.samples_.get_offsets(), X[:4])
        assert len(display.samples_.get_paths()[0]) != len(display.nodes_.get_paths()[0])
        assert display.colorbar_.ax.get_ylabel() == "intensity"
        assert names(display) == ["nodes", "learned points", "data"]
        assert display.ax_.get_xlim() == (0, 1)
        assert display.ax_.get_ylim() == (-3, 3)
        assert display.line_ is None

    def test_density(self, plane):
        display = IntensityDisplay.from_estimator(
            plane, quantity="density", resolution=4, aspect="equal"
        )
        assert display.ax_.get_aspect() == 1
        assert_allclose(display.values.mean(), 1 / 6)
        assert display.colorbar_.ax.get_ylabel() == "density"

    def test_nothing_but_the_map(self, plane, plt):
        figure, axes = plt.subplots()
        options = {"dictionary": False, "colorbar": False, "resolution": 4, "ax": axes}
        display = IntensityDisplay.from_estimator(plane, **options)
        assert figure.axes == [axes]
        assert display.colorbar_ is None
        assert axes.get_legend() is None

    @pytest.mark.parametrize("colormap", ["viridis", "Greys"])
    def test_marks_can_be_seen_on_any_colormap(self, plane, colormap):
        options = {"colormap": colormap, "resolution": 4}
        display = IntensityDisplay.from_estimator(plane, points(PLANE), **options)
        assert_array_equal(display.data_.get_facecolor()[0, :3], [0, 0, 0])
        assert_array_equal(display.data_.get_edgecolor()[0, :3], [1, 1, 1])

    @pytest.mark.parametrize("colormap", ["viridis", "Greys"])
    def test_nodes_can_be_seen_on_the_darkest_and_the_brightest_colour(self, plane, colormap):
        values = np.array([[0.0, 0.0], [1.0, np.nan]])
        grid = [np.array([0.25, 0.75]), np.array([-1.5, 1.5])]
        nodes = np.array([[0.1, -2.0], [0.9, -2.0], [0.9, 2.0]])
        display = IntensityDisplay(grid, values, np.array(PLANE), nodes=nodes)
        display.plot(colormap=colormap)
        inks = display.nodes_.get_edgecolor()[:, 0]
        dark = 0 if colormap == "viridis" else 1
        assert_array_equal(inks, [1 - dark, dark, 0])

    def test_of_many_points_some_are_drawn(self, plane):
        X = points(PLANE, 5000)
        display = IntensityDisplay.from_estimator(plane, X, resolution=4)
        drawn = display.data_.get_offsets()
        assert len(np.unique(drawn, axis=0)) == len(drawn) == 2000
        assert set(map(tuple, drawn)) <= set(map(tuple, X))
        display.plot(max_points=7)
        assert_array_equal(display.data_.get_offsets()[[0, -1]], X[[0, -1]])
        assert len(display.data_.get_offsets()) == 7

    def test_truth_is_refused(self, plane):
        with pytest.raises(ValueError, match=r"truth can be drawn for one feature; .* from 2"):
            IntensityDisplay.from_estimator(plane, truth=truth)


@pytest.mark.usefixtures("plt")
class TestBoth:
    @pytest.mark.parametrize("domain", [LINE, PLANE])
    def test_draws_on_given_axes(self, domain, plt):
        model = Tilted(domain).fit(points(domain))
        figure, (left, right) = plt.subplots(1, 2)
        display = IntensityDisplay.from_estimator(model, ax=right, resolution=5)
        assert display.ax_ is right
        assert display.figure_ is figure
        assert not left.has_data()
        assert len(plt.get_fignums()) == 1

    def test_plots_again_with_other_options(self, line):
        display = IntensityDisplay.from_estimator(line, points(LINE))
        first = display.ax_
        assert display.plot(data=False, legend=False) is display
        assert display.ax_ is not first
        assert display.data_ is None
        assert display.ax_.get_legend() is None

    @pytest.mark.parametrize("domain", [LINE, PLANE])
    def test_data_frame_names_the_axes(self, domain):
        pandas = pytest.importorskip("pandas")
        columns = ["east", "north"][: len(domain)]
        X = pandas.DataFrame(points(domain), columns=columns)
        model = Tilted(domain).fit(X)
        display = IntensityDisplay.from_estimator(model, X, resolution=5)
        assert display.ax_.get_xlabel() == "east"
        assert display.ax_.get_ylabel() == ("intensity" if len(domain) == 1 else "north")
        display = IntensityDisplay.from_estimator(model, resolution=5)
        assert display.ax_.get_xlabel() == "east"

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"X": np.zeros((3, 2))}, "the 1 features that the estimator has .* it has 2"),
            ({"X": [[np.nan]]}, "NaN"),
            ({"truth": [1, 2]}, r"each of the 500 points of the curve; it has the shape \(2,\)"),
            ({"truth": lambda x: x[:, 0] > 1, "resolution": 1}, "at least 2; got 1"),
            ({"truth": lambda x: 1.0}, r"it has the shape \(\)"),
            ({"quantity": "rate"}, 'must be "intensity", "density" or "std"; got .rate.'),
            ({"max_points": 0}, "max_points must be at least 1; got 0"),
        ],
    )
    def test_bad_arguments(self, line, options, message):
        with pytest.raises(ValueError, match=message):
            IntensityDisplay.from_estimator(line, **options)

    def test_three_features_are_refused(self):
        domain = ((0.0, 1.0),) * 3
        model = Tilted(domain).fit(points(domain))
        with pytest.raises(ValueError, match="one or two features; Tilted has learned from 3"):
            IntensityDisplay.from_estimator(model)

    def test_other_estimators_are_refused(self):
        regressor = LinearRegression().fit(np.eye(2), [0.0, 1.0])
        with pytest.raises(ValueError, match="SPPPOTIntensity; LinearRegression has no domain_"):
            IntensityDisplay.from_estimator(regressor)

    def test_unfitted_is_refused(self):
        with pytest.raises(NotFittedError):
            IntensityDisplay.from_estimator(Tilted())


def test_without_matplotlib(line, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'parsimon\[plot\]'"):
        IntensityDisplay.from_estimator(line)


def test_marks_are_drawn_one_at_a_time():
    X = points(LINE)
    model = MarkedIntensity(SPPPOTIntensity(domain=LINE, bandwidth=1.0, regularization=1e-3))
    with pytest.raises(ValueError, match=r"one intensity for each mark.*intensities_\[0\]"):
        IntensityDisplay.from_estimator(model.fit(X, np.arange(len(X)) % 2))


@pytest.mark.usefixtures("plt")
class TestSolved:
    """What the default solver learns: its dictionary is not where its integral has nodes."""

    def test_a_grid_is_no_set_of_learned_points(self):
        model = SPPPOTIntensity(domain=PLANE, bandwidth=(0.2, 1.2), regularization=1e-3)
        display = IntensityDisplay.from_estimator(model.fit(points(PLANE)), points(PLANE))
        assert display.samples_ is None
        assert len(display.nodes_.get_offsets()) == model.model_order_
        assert names(display) == ["nodes", "data"]
        fine = SPPPOTIntensity(domain=PLANE, bandwidth=(0.03, 0.2), regularization=1e-3)
        display = IntensityDisplay.from_estimator(fine.fit(points(PLANE)), points(PLANE))
        assert display.nodes_ is None  # too many to see anything else
        assert names(display) == ["data"]

    def test_the_legend_is_outside(self, plane, line):
        for model, domain in ((plane, PLANE), (line, LINE)):
            display = IntensityDisplay.from_estimator(model, points(domain))
            display.figure_.canvas.draw()
            legend = display.ax_.get_legend().get_window_extent()
            assert legend.y0 >= display.ax_.get_window_extent().y1 - 1

    def test_bands_are_those_of_the_deviation(self):
        X = points(LINE)
        model = SPPPOTIntensity(domain=LINE, bandwidth=1.0, regularization=1e-3).fit(X)
        display = IntensityDisplay.from_estimator(model, X, band=True, resolution=7)
        found, std = model.intensity(display.grid[0][:, None], return_std=True)
        low, high = display.band
        assert_allclose(np.sqrt(low * high), found)
        assert_allclose(np.log(high / low), 2 * 1.96 * std / found)
        assert display.ax_.get_ylim()[1] > high.max()
        assert "95 % band" in names(display)
        deviation = IntensityDisplay.from_estimator(model, quantity="std", resolution=7)
        assert_allclose(deviation.values, std)

    def test_bands_are_for_lines(self, plane, line):
        with pytest.raises(ValueError, match="quantity='std' shows the deviation"):
            IntensityDisplay.from_estimator(plane, band=True)
        with pytest.raises(ValueError, match="on a line; this is the std"):
            IntensityDisplay.from_estimator(line, band=True, quantity="std")

    def test_a_window_is_drawn_and_nothing_outside(self):
        ring = [(0, -3), (1, -3), (0, 3)]
        X = np.array([[0.1, -2.0], [0.2, 0.0], [0.5, -2.5], [0.3, -1.0]])
        model = SPPPOTIntensity(window=ring, bandwidth=(0.3, 2.0), regularization=1e-2).fit(X)
        display = IntensityDisplay.from_estimator(model, X, resolution=20)
        drawn = np.ma.filled(display.mesh_.get_array(), np.nan).reshape(20, 20)
        assert 0.4 < np.isnan(drawn).mean() < 0.6
        assert_array_equal(display.ax_.lines[0].get_xydata(), [*ring, ring[0]])

    def test_nothing_is_drawn_outside_a_window_that_is_a_function(self):
        X = np.array([[0.1, -2.0], [0.2, 0.0], [0.4, -2.5], [0.3, -1.0]])
        given = {"domain": PLANE, "bandwidth": (0.3, 2.0), "regularization": 1e-2}
        model = SPPPOTIntensity(window=lambda X: X[:, 0] < 0.5, **given).fit(X)
        for quantity in ("intensity", "std"):
            display = IntensityDisplay.from_estimator(model, resolution=20, quantity=quantity)
            drawn = np.ma.filled(display.mesh_.get_array(), np.nan).reshape(20, 20)
            assert_array_equal(np.isnan(drawn), np.arange(20) >= [[10]] * 20)

"""Time rescaling and quadrat counts, with an intensity whose integrals are known."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2, kstest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import validate_data

from parsimon import POLKRegressor
from parsimon.goodness_of_fit import likelihood_ratio_test, quadrat_test, time_rescaling


class Decay(BaseEstimator):
    """exp(-rate (x - low)) along each feature of the domain, with an integral that is a bit off."""

    def __init__(self, domain=((0.0, 2.0),), rates=(1.5,), n_points=1000):
        self.domain = domain
        self.rates = rates
        self.n_points = n_points

    def fit(self, X=None, y=None):
        if X is not None:
            validate_data(self, X)
        self.domain_ = np.array(self.domain, dtype=float)
        self.n_features_in_ = len(self.domain_)
        self.nodes_ = np.zeros((10, self.n_features_in_))
        self.n_points_ = self.n_points
        self.integral_ = 0.98
        return self

    def _along(self, k, low, high):
        rate, (start, end) = self.rates[k], self.domain_[k]
        return np.diff(-np.exp(-rate * (np.array([low, high]) - start)))[0] / -np.expm1(
            -rate * (end - start)
        )

    def expected_count(self, box):
        sides = [self._along(k, *side) for k, side in enumerate(np.reshape(box, (-1, 2)))]
        return self.n_points_ * self.integral_ * np.prod(sides)

    def score_samples(self, X):
        X = validate_data(self, X, reset=False, dtype=np.float64)
        low, high = self.domain_.T
        rates = np.array(self.rates)
        scale = np.log(rates / -np.expm1(-rates * (high - low))).sum()
        inside = ((low <= X) & (high >= X)).all(axis=1)
        values = scale + np.log(self.integral_) - (X - low) @ rates
        return np.where(inside, values, -np.inf)

    def sample(self, n, random_state):
        u = np.random.default_rng(random_state).uniform(size=(n, len(self.domain_)))
        low, high = self.domain_.T
        rates = np.array(self.rates)
        return low - np.log1p(u * np.expm1(-rates * (high - low))) / rates


@pytest.fixture
def line():
    return Decay().fit()


@pytest.fixture
def plane():
    return Decay(domain=((0.0, 1.0), (-2.0, 2.0)), rates=(2.0, 0.5)).fit()


class TestTimeRescaling:
    def test_gaps_of_the_cumulative_intensity(self, line):
        X = line.sample(40, 0)
        report = time_rescaling(line, X, expected_count=50)
        cumulative = [line._along(0, 0.0, t) for t in np.sort(X[:, 0])]
        gaps = 50 * np.diff(cumulative, prepend=0.0)
        assert_allclose(report.residuals, gaps, rtol=1e-9)
        assert_allclose(report.uniforms, 1 - np.exp(-gaps), rtol=1e-9)
        test = kstest(1 - np.exp(-gaps), "uniform")
        assert_allclose([report.statistic, report.p_value], [test.statistic, test.pvalue])
        assert report.expected_count == 50

    def test_given_their_number_the_points_to_come_are_counted(self, line):
        X = line.sample(40, 0)
        report = time_rescaling(line, X)
        beyond = [line._along(0, t, 2.0) for t in [0.0, *np.sort(X[:, 0])]]
        assert_allclose(report.residuals, -np.diff(np.log(beyond)) * np.arange(40, 0, -1))
        assert report.expected_count == 40

    # 500 tests of a right intensity: their p-values are uniform.
    @pytest.mark.slow
    def test_p_values_are_uniform_given_the_number_of_points(self, line):
        p_values = [time_rescaling(line, line.sample(60, s)).p_value for s in range(500)]
        assert kstest(p_values, "uniform").pvalue > 1e-3

    @pytest.mark.slow
    def test_p_values_are_uniform_for_poisson_processes(self, line):
        counts = np.random.default_rng(0).poisson(300, size=500)
        p_values = [
            time_rescaling(line, line.sample(count, s), expected_count=300).p_value
            for s, count in enumerate(counts)
        ]
        assert kstest(p_values, "uniform").pvalue > 1e-3

    def test_a_wrong_shape_is_rejected(self, line):
        X = Decay(rates=(0.5,)).fit().sample(1000, 0)
        assert time_rescaling(line, X).p_value < 1e-6
        assert time_rescaling(line, X, expected_count=1000).p_value < 1e-6

    def test_a_wrong_number_is_rejected_if_it_is_judged(self, line):
        X = line.sample(1000, 0)
        assert time_rescaling(line, X).p_value > 0.01
        assert time_rescaling(line, X, expected_count=1300).p_value < 1e-6

    def test_points_that_repel_each_other_are_rejected(self, line):
        quantiles = (np.arange(1000) + 0.5) / 1000
        X = -np.log1p(quantiles * np.expm1(-3.0))[:, None] / 1.5
        assert time_rescaling(line, X).p_value < 1e-6

    def test_order_does_not_matter(self, line):
        X = line.sample(30, 0)
        assert_array_equal(
            time_rescaling(line, X).residuals, time_rescaling(line, X[::-1]).residuals
        )

    def test_points_that_coincide_have_no_gap(self, line):
        report = time_rescaling(line, [[0.5], [0.7], [0.5]])
        assert report.residuals[1] == 0
        assert (report.residuals[[0, 2]] > 0).all()

    def test_points_at_the_ends_of_the_domain(self, line):
        report = time_rescaling(line, [[0.0], [2.0], [2.0]])
        assert_array_equal(report.residuals, [0, np.inf, 0])
        assert_array_equal(report.uniforms, [0, 1, 0])
        report = time_rescaling(line, [[0.0], [2.0]], expected_count=3)
        assert_allclose(report.residuals, [0, 3])

    def test_tail_keeps_its_digits(self):
        steep = Decay(domain=((0.0, 60.0),), rates=(1.0,)).fit()
        # Beyond 50 lies a share of 2e-22, which 1 minus the share before it would not show.
        report = time_rescaling(steep, [[50.0], [52.0]])
        beyond = [steep._along(0, t, 60.0) for t in (50.0, 52.0)]
        assert_allclose(report.residuals[1], np.log(beyond[0] / beyond[1]), rtol=1e-9)

    def test_one_point(self, line):
        report = time_rescaling(line, [[1.0]])
        assert_allclose(report.uniforms, line._along(0, 0.0, 1.0))

    def test_report_cannot_be_changed(self, line):
        report = time_rescaling(line, [[1.0]])
        with pytest.raises(dataclasses.FrozenInstanceError):
            report.p_value = 1.0

    def test_two_features_are_refused(self, plane):
        with pytest.raises(ValueError, match=r"one feature; X has 2\. Use quadrat_test"):
            time_rescaling(plane, plane.sample(5, 0))


class TestQuadrats:
    def test_counts_residuals_and_statistic(self, plane):
        X = plane.sample(900, 0)
        report = quadrat_test(plane, X, n_quadrats=(3, 2))
        assert_allclose(report.edges[0], [0, 1 / 3, 2 / 3, 1])
        assert_allclose(report.edges[1], [-2, 0, 2])
        columns = [plane._along(0, i / 3, (i + 1) / 3) for i in range(3)]
        rows = [plane._along(1, -2, 0), plane._along(1, 0, 2)]
        expected = 900 * np.outer(columns, rows)
        observed = [
            [((X[:, 0] // (1 / 3) == i) & ((X[:, 1] >= 0) == j)).sum() for j in range(2)]
            for i in range(3)
        ]
        assert_array_equal(report.observed, observed)
        assert report.observed.dtype == np.int64
        assert_allclose(report.expected, expected)
        residuals = (np.array(observed) - expected) / np.sqrt(expected)
        assert_allclose(report.residuals, residuals)
        assert_allclose(report.statistic, np.square(residuals).sum())
        assert report.dof == 5
        assert_allclose(report.p_value, chi2.sf(report.statistic, 5))
        assert (report.n_merged, report.expected_count) == (0, 900)

    def test_given_a_number_no_degree_of_freedom_is_lost(self, plane):
        report = quadrat_test(plane, plane.sample(900, 0), 3, expected_count=1100)
        assert report.dof == 9
        assert_allclose(report.expected.sum(), 1100)
        assert report.p_value < 1e-6

    @pytest.mark.slow
    @pytest.mark.parametrize("poisson", [False, True])
    def test_p_values_are_uniform(self, plane, poisson):
        counts = np.random.default_rng(0).poisson(1000, size=400)
        p_values = [
            quadrat_test(plane, plane.sample(count, s), 3, expected_count=1000).p_value
            if poisson
            else quadrat_test(plane, plane.sample(1000, s), 3).p_value
            for s, count in enumerate(counts)
        ]
        assert kstest(p_values, "uniform").pvalue > 1e-3

    def test_a_wrong_shape_is_rejected(self, plane):
        flat = Decay(plane.domain, rates=(1.0, 0.5)).fit()
        assert quadrat_test(plane, flat.sample(1000, 0)).p_value < 1e-6

    def test_cells_that_expect_little_are_merged(self):
        # A decay by a factor of 4 from cell to cell: 750, 187.5, 46.9, 11.7, 2.9, 0.7 and less.
        steep = Decay(domain=((0.0, 8.0),), rates=(np.log(4),)).fit()
        X = steep.sample(1000, 0)
        report = quadrat_test(steep, X, 8)
        assert_allclose(report.expected[:3], [750, 187.5, 46.9], rtol=1e-3)
        # Together the last four expect 3.9, so the fourth joins them.
        assert report.n_merged == 5
        assert report.dof == 3
        observed = [*report.observed[:3], report.observed[3:].sum()]
        expected = np.array([*report.expected[:3], report.expected[3:].sum()])
        assert_allclose(report.statistic, (np.square(observed - expected) / expected).sum())
        # Where 3 are enough, the last four make a cell of their own.
        report = quadrat_test(steep, X, 8, min_expected=3)
        assert (report.n_merged, report.dof) == (4, 4)

    def test_nothing_expected(self):
        steep = Decay(domain=((0.0, 1000.0),), rates=(1.0,)).fit()
        X = np.vstack([steep.sample(50, 0), [[900.0]]])
        report = quadrat_test(steep, X, 500)
        assert report.expected[450] == 0
        assert report.residuals[450] == np.inf
        assert report.residuals[451] == 0
        assert np.isfinite(report.statistic)

    def test_points_on_edges_are_counted_once(self, line):
        report = quadrat_test(line, [[0.0], [1.0], [2.0]], 2, min_expected=0.1)
        assert_array_equal(report.observed, [1, 2])

    def test_three_features(self):
        box = Decay(domain=((0.0, 1.0),) * 3, rates=(1.0, 2.0, 0.1)).fit()
        report = quadrat_test(box, box.sample(500, 0), 2)
        assert report.observed.shape == (2, 2, 2)
        assert report.dof == 7
        assert report.p_value > 1e-3

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"n_quadrats": 0}, r"positive integer or a sequence of 2, .* got 0"),
            ({"n_quadrats": (5,)}, r"sequence of 2, one for each feature; got \(5,\)"),
            ({"n_quadrats": 2.5}, "got 2.5"),
            ({"n_quadrats": "33"}, "got '33'"),
            ({"n_quadrats": 2000}, "makes 4000000 cells, more than the 1000000 allowed"),
            ({"min_expected": 0}, "min_expected must be a positive number; got 0"),
            ({"n_quadrats": 1}, r"needs 2 or more cells .* 100 points expected in 1 cells.* are 1"),
            ({"min_expected": 70}, "min_expected=70 points are expected.* there are 1"),
            ({"min_expected": 99, "expected_count": 98}, "needs 1 or more cells .* there are 0"),
        ],
    )
    def test_bad_arguments(self, plane, options, message):
        with pytest.raises(ValueError, match=message):
            quadrat_test(plane, plane.sample(100, 0), **options)


@pytest.mark.parametrize("test", [time_rescaling, quadrat_test])
class TestBoth:
    def test_points_outside_the_domain(self, test, line):
        with pytest.raises(ValueError, match=r"1 of 3 do not, the first of them X\[1\] = \[2.5\]"):
            test(line, [[0.5], [2.5], [1.0]])

    def test_features_of_another_number(self, test, line):
        with pytest.raises(ValueError, match=r"the 1 features that Decay has learned .* it has 3"):
            test(line, np.zeros((4, 3)))

    @pytest.mark.parametrize("X", [[[0.5], [np.nan]], np.empty((0, 1)), [0.5, 0.7]])
    def test_no_points(self, test, line, X):
        with pytest.raises(ValueError, match=r"NaN|minimum of 1|Expected 2D array"):
            test(line, X)

    @pytest.mark.parametrize("count", [0, -3, np.nan, "all"])
    def test_bad_expected_count(self, test, line, count):
        with pytest.raises(ValueError, match="expected_count must be a positive number; got"):
            test(line, [[0.5]], expected_count=count)

    def test_unfitted_is_refused(self, test):
        with pytest.raises(NotFittedError):
            test(Decay(), [[0.5]])

    def test_other_estimators_are_refused(self, test, line):
        X = np.linspace(0, 1, 20)[:, None]
        with pytest.raises(ValueError, match="SPPPOTIntensity; POLKRegressor has no domain_"):
            test(POLKRegressor(epochs=1).fit(X, X[:, 0]), X)
        with pytest.raises(ValueError, match="Pipeline has no domain_"):
            test(make_pipeline(StandardScaler(), line).fit(X), X)

    def test_negative_intensities_are_refused(self, test, line, monkeypatch):
        monkeypatch.setattr(Decay, "expected_count", lambda self, box: -1.0)
        monkeypatch.setattr(Decay, "score_samples", lambda self, X: np.full(len(X), np.nan))
        with pytest.raises(ValueError, match="nowhere negative"):
            test(line, [[0.5]])

    def test_data_frame(self, test):
        pandas = pytest.importorskip("pandas")
        X = Decay().fit().sample(100, 0)
        frame = pandas.DataFrame(X, columns=["time"])
        assert test(Decay().fit(frame), frame).p_value == test(Decay().fit(), X).p_value


# -- the homogeneous process -----------------------------------------------------------------------


def test_the_likelihood_ratio_is_that_of_the_densities():
    model, X = Decay().fit(), np.array([[0.1], [0.7], [1.9]])
    report = likelihood_ratio_test(model, X, random_state=0)
    assert report.statistic == pytest.approx(model.score_samples(X).sum() + 3 * np.log(2))
    assert report.e_value == pytest.approx(np.exp(report.statistic))


def test_p_values_of_homogeneous_points_are_uniform():
    model, random = Decay().fit(), np.random.RandomState(0)
    tests = [
        likelihood_ratio_test(
            model, random.uniform(0, 2, (20, 1)), n_simulations=49, random_state=i
        )
        for i in range(200)
    ]
    assert kstest([test.p_value for test in tests], "uniform").pvalue > 0.01
    # Markov: an e-value beyond 20 in one case of twenty at most.
    assert np.mean([test.e_value > 20 for test in tests]) <= 0.05


def test_other_points_are_found_out():
    X = np.random.RandomState(0).exponential(1 / 1.5, (200, 1))
    report = likelihood_ratio_test(Decay().fit(), X[X < 2, None], random_state=0)
    assert report.p_value == 1 / 200
    assert report.e_value > 1e6


def test_bad_input_of_the_likelihood_ratio():
    with pytest.raises(ValueError, match="must lie in the estimator's domain"):
        likelihood_ratio_test(Decay().fit(), [[3.0]])
    with pytest.raises(ValueError, match="n_simulations must be an integer"):
        likelihood_ratio_test(Decay().fit(), [[1.0]], n_simulations=0)

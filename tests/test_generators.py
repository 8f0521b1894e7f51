"""Generators."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2, kstest, truncnorm
from sklearn.naive_bayes import MultinomialNB
from sklearn.svm import SVC

from parsimon.datasets import (
    make_deliveries,
    make_documents,
    make_multidist,
    make_poisson_gaussian,
    make_regression_outliers,
    make_sinc,
)


class TestMultidist:
    def test_has_the_papers_shape_by_default(self):
        X, y = make_multidist(random_state=0)
        assert X.shape == (5000, 2)
        assert_array_equal(np.unique(y), np.arange(5))

    def test_classes_and_modes_are_equally_likely_and_have_the_given_spread(self):
        X, y, centers = make_multidist(60000, sd=0.01, random_state=1, return_centers=True)
        offsets = X[:, None, None] - centers
        nearest = np.square(offsets).sum(axis=3).reshape(len(X), -1).argmin(axis=1)
        assert_array_equal(nearest // 3, y)
        assert_allclose(np.bincount(nearest) / len(X), 1 / 15, atol=0.005)
        within = X - centers.reshape(-1, 2)[nearest]
        assert_allclose(within.std(axis=0), 0.01, rtol=0.02)

    def test_centers_scatter_around_the_unit_circle_with_variance_one(self):
        draws = [make_multidist(0, random_state=s, return_centers=True)[2] for s in range(2000)]
        centers = np.array(draws)
        angles = 2 * np.pi * np.arange(5) / 5
        circle = np.column_stack([np.cos(angles), np.sin(angles)])
        assert_allclose(centers.mean(axis=(0, 2)), circle, atol=0.06)
        assert_allclose((centers - circle[:, None]).var(axis=(0, 2)), 1.0, rtol=0.08)

    def test_same_seed_gives_the_same_task_whatever_the_number_of_samples(self):
        first = make_multidist(10, random_state=3, return_centers=True)
        second = make_multidist(10, random_state=3, return_centers=True)
        longer = make_multidist(500, random_state=3, return_centers=True)
        for left, right in zip(first, second, strict=True):
            assert_array_equal(left, right)
        assert_array_equal(first[2], longer[2])

    def test_a_support_vector_machine_finds_the_papers_error_on_an_easy_draw(self):
        X, y = make_multidist(7500, random_state=0)
        error = 1 - SVC(gamma=1 / 1.2).fit(X[:5000], y[:5000]).score(X[5000:], y[5000:])
        assert 0.02 < error < 0.08

    def test_other_sizes(self):
        X, y, centers = make_multidist(
            50, n_classes=2, n_modes=1, n_features=4, random_state=0, return_centers=True
        )
        assert X.shape == (50, 4)
        assert centers.shape == (2, 1, 4)
        assert set(y) == {0, 1}

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"n_samples": -1}, "n_samples must be an integer of at least 0"),
            ({"n_classes": 0}, "n_classes must be an integer of at least 1"),
            ({"n_modes": 1.5}, "n_modes must be an integer"),
            ({"n_features": 1}, "n_features must be an integer of at least 2"),
            ({"sd": -0.1}, "sd must be a finite number"),
            ({"sd": np.nan}, "sd must be a finite number"),
        ],
    )
    def test_bad_arguments(self, options, message):
        with pytest.raises(ValueError, match=message):
            make_multidist(**options)


class TestPoissonGaussian:
    def test_has_the_papers_shape_by_default(self):
        X = make_poisson_gaussian(random_state=0)
        assert X.shape[1] == 1
        assert abs(len(X) - 10211) < 5 * np.sqrt(10211)
        assert 0 < X.min() < X.max() < 1

    def test_counts_of_disjoint_sets_are_poisson_and_independent(self):
        edges = [0.0, 0.45, 0.5, 1.0]
        draws = [make_poisson_gaussian(30, random_state=seed)[:, 0] for seed in range(2000)]
        counts = np.array([np.histogram(x, edges)[0] for x in draws])
        means = 30 * np.diff(truncnorm.cdf(edges, -5, 5, 0.5, 0.1))
        # Variance over mean is 1 for Poisson counts, and for 2,000 of them about chi-square: the
        # bounds are exceeded once in a million.
        dispersion = counts.var(axis=0, ddof=1) / means
        low, high = chi2.ppf([1e-6, 1 - 1e-6], 1999) / 1999
        assert_allclose(counts.mean(axis=0), means, atol=5 * np.sqrt(means.max() / 2000))
        assert ((low < dispersion) & (dispersion < high)).all()
        # Were the number of points fixed, the correlations would be -0.3 to -0.7; the empirical
        # ones scatter by 0.022.
        off_diagonal = np.corrcoef(counts.T)[np.triu_indices(3, 1)]
        assert np.abs(off_diagonal).max() < 0.11

    def test_points_have_the_density_and_come_in_no_order(self):
        X, density = make_poisson_gaussian(20000, random_state=1, return_density=True)
        x = X[:, 0]
        assert kstest(x, truncnorm(-5, 5, 0.5, 0.1).cdf).pvalue > 1e-4
        halves = np.split(x[: 2 * (len(x) // 2)], 2)
        assert kstest(*halves).pvalue > 1e-4
        grid = np.linspace(0.001, 0.999, 50)
        exact = 10 / np.sqrt(2 * np.pi) * np.exp(-50 * (grid - 0.5) ** 2)
        assert_allclose(density(grid), exact, rtol=1e-13)

    def test_density_takes_points_or_samples_and_ends_with_the_domain(self):
        density = make_poisson_gaussian(0, return_density=True)[1]
        x = np.array([-0.1, 0.0, 0.3, 1.0, 1.4])
        assert density(x)[2] > 0
        assert_array_equal(density(x) > 0, [False, False, True, False, False])
        assert_array_equal(density(x[:, None]), density(x))
        with pytest.raises(ValueError, match=r"shape \(n,\) or \(n, 1\); got \(2, 3\)"):
            density(np.zeros((2, 3)))
        assert_array_equal(pickle.loads(pickle.dumps(density))(x), density(x))

    def test_seeds(self):
        first, second = (make_poisson_gaussian(100, random_state=3) for _ in range(2))
        assert_array_equal(first, second)
        other = make_poisson_gaussian(100, random_state=4)
        assert len(other) != len(first) or not np.array_equal(other, first)

    def test_no_points(self):
        assert make_poisson_gaussian(0).shape == (0, 1)

    @pytest.mark.parametrize("count", [-1, np.nan, np.inf, "many", None, True])
    def test_bad_arguments(self, count):
        with pytest.raises(ValueError, match="expected_count must be a finite number and not neg"):
            make_poisson_gaussian(count)


class TestRegressionOutliers:
    def test_is_the_papers_curve_with_noise(self):
        X, y, truth = make_regression_outliers(random_state=0, return_truth=True)
        assert X.shape == (24_000, 1)
        assert y.shape == truth.shape == (24_000,)
        assert_array_equal(truth, 2 * X[:, 0] + 3 * np.sin(6 * X[:, 0]))
        assert kstest((X[:, 0] + 1) / 2, "uniform").pvalue > 1e-4
        assert kstest((y - truth) / 0.2, "norm").pvalue > 1e-4

    @pytest.mark.parametrize(("kind", "mean", "sd"), [("symmetric", 0, 3), ("one-sided", 3, 1)])
    def test_outliers_are_added_to_the_same_samples(self, kind, mean, sd):
        X, clean = make_regression_outliers(60_000, random_state=1)
        same, y = make_regression_outliers(60_000, outliers=kind, random_state=1)
        assert_array_equal(same, X)
        added = (y - clean)[y != clean]
        # Four standard errors of a proportion.
        assert len(added) / 60_000 == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / 60_000))
        assert kstest((added - mean) / sd, "norm").pvalue > 1e-4

    def test_fractions_and_noise_at_their_limits(self):
        _, y, truth = make_regression_outliers(
            100, outliers="one-sided", fraction=0, noise=0, random_state=0, return_truth=True
        )
        assert_array_equal(y, truth)
        _, y = make_regression_outliers(100, outliers="one-sided", fraction=1, noise=0.0)
        assert len(y) == 100
        assert make_regression_outliers(0)[0].shape == (0, 1)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"n_samples": -1}, "n_samples must be an integer of at least 0"),
            ({"n_samples": 2.5}, "n_samples must be an integer"),
            ({"outliers": "many"}, "'none', 'symmetric', 'one-sided'"),
            ({"outliers": None}, "'none', 'symmetric', 'one-sided'"),
            ({"outliers": ["none"]}, "'none', 'symmetric', 'one-sided'"),
            ({"fraction": 1.5}, "fraction must be between 0 and 1"),
            ({"fraction": np.nan}, "fraction must be between 0 and 1"),
            ({"noise": -0.1}, "noise must be a finite number"),
            ({"noise": np.inf}, "noise must be a finite number"),
            ({"random_state": "dice"}, "cannot be used to seed"),
        ],
    )
    def test_refuses_what_makes_no_sense(self, options, message):
        with pytest.raises(ValueError, match=message):
            make_regression_outliers(**options)


class TestSinc:
    def test_is_the_cardinal_sine_of_the_norm(self):
        X, y = make_sinc(500, snr_db=None, random_state=0)
        assert X.shape == (500, 2)
        assert np.abs(X).max() <= 5
        norms = np.linalg.norm(X, axis=1)
        assert_allclose(y, np.sin(norms) / norms)

    @pytest.mark.parametrize("decibels", [0.0, 10.0, 20.0])
    def test_noise_has_the_given_ratio(self, decibels):
        X, y = make_sinc(40000, snr_db=decibels, random_state=1)
        clean = np.sinc(np.linalg.norm(X, axis=1) / np.pi)
        ratio = np.mean(clean**2) / np.mean((y - clean) ** 2)
        assert_allclose(10 * np.log10(ratio), decibels, atol=0.1)

    def test_no_samples(self):
        assert make_sinc(0)[0].shape == (0, 2)

    @pytest.mark.parametrize("bad", [{"n_samples": -1}, {"n_samples": 2.5}, {"snr_db": np.nan}])
    def test_bad_arguments(self, bad):
        with pytest.raises(ValueError, match=next(iter(bad))):
            make_sinc(**bad)


# -- deliveries ------------------------------------------------------------------------------------


def test_deliveries_have_numbers_text_gaps_and_a_city_that_comes_late():
    columns, y = make_deliveries(5000, random_state=0)
    assert all(len(values) == 5000 for values in columns.values())
    assert set(y) == {"late", "on time"}
    assert 0.4 < (y == "late").mean() < 0.6
    gaps = {name: np.isnan(v).mean() for name, v in columns.items() if v.dtype.kind == "f"}
    assert 0.01 < gaps.pop("weight") < 0.03
    assert set(gaps.values()) == {0}
    new = np.flatnonzero(columns["city"] == "Zadar")
    assert 3000 <= new.min() < 3050
    assert len(set(columns["city"][:3000])) == 6
    again, labels = make_deliveries(5000, random_state=0)
    assert all((again[name] == columns[name]).all() for name in ("distance", "city", "vehicle"))
    assert (labels == y).all()


def test_deliveries_change_where_they_are_told_to():
    columns, y = make_deliveries(5000, random_state=0)
    changed, other = make_deliveries(5000, change_at=2000, random_state=0)
    assert all((changed[name] == columns[name]).all() for name in ("distance", "hour", "city"))
    assert (other[:2000] == y[:2000]).all()
    assert (other[2000:] != y[2000:]).mean() > 0.1
    # In the evening hours, what was late is on time and the other way round.
    hour = columns["hour"][2000:]
    differs = other[2000:] != y[2000:]
    assert differs[(hour > 15) & (hour < 24)].mean() > 3 * differs[(hour > 4) & (hour < 12)].mean()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_samples": 0}, "n_samples must be an integer of at least 1; got 0"),
        ({"change_at": -1}, "change_at must be an integer of at least 0, or None; got -1"),
        ({"change_at": 0.5}, "change_at must be an integer"),
    ],
)
def test_deliveries_that_make_no_sense(options, message):
    with pytest.raises(ValueError, match=message):
        make_deliveries(**options)


def test_documents():
    X, y = make_documents(2000, 5000, 3, random_state=0)
    assert (X.shape, X.format) == ((2000, 5000), "csr")
    assert_allclose(np.sqrt(X.multiply(X).sum(axis=1)), 1)
    again, labels = make_documents(2000, 5000, 3, random_state=0)
    assert (again != X).nnz == 0
    assert_array_equal(y, labels)
    assert_allclose(np.bincount(y), 2000 / 3, rtol=0.15)
    # Zipf: the hundredth word is in about a tenth as many documents as the tenth.
    documents = np.sort(np.bincount(X.indices, minlength=5000))[::-1]
    assert 4 < documents[9] / documents[99] < 14
    # Poisson: lengths hardly differ, and few words come twice.
    assert 80 < np.diff(X.indptr).mean() < 120


def test_documents_are_the_same_task_whatever_their_number():
    few, labels = make_documents(1000, 3000, 4, random_state=0)
    more, answers = make_documents(1500, 3000, 4, random_state=0)
    other, others = make_documents(1500, 3000, 4, random_state=1)
    model = MultinomialNB().fit(few, labels)
    assert model.score(more, answers) > 0.8
    assert model.score(other, others) < 0.4


@pytest.mark.parametrize("name", ["n_samples", "n_features", "n_classes"])
def test_numbers_of_documents(name):
    with pytest.raises(ValueError, match=name):
        make_documents(**{name: 0})

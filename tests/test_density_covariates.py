"""A log-linear part of covariates beside z."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from test_solved_density import finely

from parsimon import MarkedIntensity, SPPPOTIntensity

FAST = {"domain": [(0, 1), (0, 1)], "bandwidth": 0.5, "regularization": 1e-2}


def altitude(X):
    return np.sin(8 * X[:, 0]) + 3.0


def both(X):
    return np.column_stack([altitude(X), 100 * X[:, 1] ** 2])


def thinned(count, slope=1.5, seed=0):
    """Points whose intensity is proportional to exp(slope altitude)."""
    random = np.random.RandomState(seed)
    X = random.rand(40 * count, 2)
    kept = random.rand(len(X)) < np.exp(slope * (altitude(X) - 4.0))
    return X[kept][:count]


def test_coefficients_are_those_of_the_truth():
    found = []
    for seed in range(5):
        model = SPPPOTIntensity(**FAST, covariates=altitude).fit(thinned(800, seed=seed))
        found.append((model.coef_[0], model.coef_std_[0]))
        assert model.integral_ == pytest.approx(1, abs=0.01)
    slopes, deviations = np.transpose(found)
    assert slopes.mean() == pytest.approx(1.5, abs=0.15)
    assert (np.abs(slopes - 1.5) < 3 * deviations).all()
    assert finely(model, 200) == pytest.approx(1, abs=0.01)


def test_the_solution_has_the_largest_penalised_likelihood():
    X = thinned(300)
    model = SPPPOTIntensity(**FAST, covariates=both).fit(X)
    assert model.coef_.shape == model.coef_std_.shape == (2,)
    density = np.exp(model.score_samples(X))
    assert_allclose(model.intensity(X), 300 * density)
    # The score equations: expected covariates are the observed ones, but for the little ridge.
    axis = (np.arange(300) + 0.5) / 300
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    share = np.exp(model.score_samples(grid))
    assert_allclose(share @ both(grid) / share.sum(), both(X).mean(axis=0), rtol=2e-3)


def test_a_covariate_says_what_points_do_not():
    X, new = thinned(150), thinned(2000, seed=7)
    given = {"domain": FAST["domain"], "bandwidth": 0.5}
    with_it = SPPPOTIntensity(**given, covariates=altitude).fit(X)
    without = SPPPOTIntensity(**given).fit(X)
    assert with_it.score(new) > without.score(new)
    std = with_it.intensity(X, return_std=True)[1]
    assert np.isfinite(std).all()
    drawn = with_it.sample(3000, random_state=0)
    assert altitude(drawn).mean() == pytest.approx(altitude(X).mean(), abs=0.1)
    halves = [with_it.expected_count([side, (0, 1)]) for side in ((0, 0.3), (0.3, 1))]
    assert sum(halves) == pytest.approx(150, rel=0.01)


def test_a_stream_comes_to_what_fit_finds():
    X = thinned(600)
    whole = SPPPOTIntensity(**FAST, covariates=altitude).fit(X)
    stream = SPPPOTIntensity(**FAST, covariates=altitude).fit(X[:200])
    for start in range(200, 600, 100):
        stream.partial_fit(X[start : start + 100])
        if start == 300:
            stream.score_samples(X[:5])  # which solves half way
    stream.set_params(regularization=FAST["regularization"])
    # The ridge of all is that of the first 200, a third.
    assert_allclose(stream.coef_, whole.coef_, rtol=0.02)
    for other in (copy.deepcopy(stream), pickle.loads(pickle.dumps(stream))):
        assert_allclose(other.score_samples(X), stream.score_samples(X))
        assert_allclose(other.coef_, stream.coef_)


def test_places_where_they_are_missing_are_left_out_by_a_window():
    def known_below(X):
        return np.where(X[:, 1] < 0.5, altitude(X), np.nan)

    X = thinned(400)
    X = X[X[:, 1] < 0.5]
    with pytest.raises(ValueError, match=r"Covariates are missing or not finite .* by a window"):
        SPPPOTIntensity(**FAST, covariates=known_below).fit(X)
    window = [(0, 0), (1, 0), (1, 0.4999), (0, 0.4999)]
    X = X[X[:, 1] < 0.4999]
    model = SPPPOTIntensity(**FAST, covariates=known_below, window=window).fit(X)
    assert model.coef_[0] == pytest.approx(1.5, abs=0.6)


def test_each_mark_has_coefficients_of_its_own():
    X = np.vstack([thinned(300), thinned(300, slope=-1.0)])
    model = MarkedIntensity(SPPPOTIntensity(**FAST, covariates=altitude))
    model.fit(X, np.repeat([0, 1], 300))
    assert model.intensities_[0].coef_[0] > 0 > model.intensities_[1].coef_[0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"covariates": np.zeros(3)}, "covariates must be a function"),
        ({"covariates": lambda X: X[:2]}, "one row for each of the"),
        ({"covariates": lambda X: np.full(len(X), 2.0)}, "is the same everywhere"),
        ({"covariates": altitude, "solver": "sgd"}, "and so do covariates"),
    ],
)
def test_covariates_that_are_none(given, message):
    with pytest.raises(ValueError, match=message):
        SPPPOTIntensity(**FAST | given).fit(thinned(50))


def test_what_cannot_be_done_with_functions(tmp_path):
    model = SPPPOTIntensity(**FAST, covariates=altitude).fit(thinned(50))
    with pytest.raises(ValueError, match="cannot be saved because covariates is"):
        model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="use process_score"):
        model.fit(thinned(50), validation=thinned(50))

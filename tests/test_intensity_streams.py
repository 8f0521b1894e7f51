"""Intensity estimators along a stream: blocks, counts, traces, validation, samples, warnings."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from intensity_common import INTENSITIES, LINE, PLANE, PROBES, cloud, mini_batch, toy
from numpy.testing import assert_allclose, assert_array_equal
from polk_common import everything, state
from scipy import stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from parsimon import HybridIntensity, MirrorNewtonIntensity, SPPPOTIntensity
from parsimon.schedules import AdaptiveBudget
from parsimon.spppot._quadrature import draw

both_spaces = pytest.mark.parametrize(
    ("settings", "X"), [(LINE, toy()), (PLANE, cloud())], ids=["line", "plane"]
)
every = pytest.mark.parametrize("cls", INTENSITIES)


def core(model):
    """Return every bit of what was learned."""
    return model._model.to_archive().to_bytes()


def given(cls, **settings):
    """Return settings of which nothing is taken from the data."""
    rates = {
        SPPPOTIntensity: {"learning_rate": 0.8, "regularization": 1e-3},
        MirrorNewtonIntensity: {"learning_rate": 1.5, "damping": 0.5},
        HybridIntensity: {
            "learning_rate": 0.8,
            "regularization": 1e-3,
            "newton_learning_rate": 1.5,
            "damping": 0.5,
            "patience": 9,
            "first_phase": 12,
        },
    }
    return {**settings, **rates[cls]}


# -- fit and partial_fit ---------------------------------------------------------------------------


@both_spaces
@every
def test_partial_fit_is_one_unshuffled_epoch_of_fit(cls, settings, X):
    settings = given(cls, **{**settings, "epochs": 1, "shuffle": False})
    streamed = cls(**settings).partial_fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # one epoch is not enough
        fitted = cls(**settings).fit(X)
    assert core(streamed) == core(fitted)
    assert streamed.n_points_ == fitted.n_points_ == len(X)


@pytest.mark.parametrize("held_out", [None, toy()[::7]], ids=["alone", "validation"])
@every
def test_blocks_of_whole_mini_batches_do_not_matter(cls, held_out):
    X, settings = toy(), given(cls, **LINE)
    whole = cls(**settings).partial_fit(X)
    step = mini_batch(whole)
    for sizes in ([1] * (len(X) // step), [7, 11, 1], [20], [13, 2]):
        blocks = cls(**settings)
        edges = [0, *np.cumsum(sizes) * step, len(X)]
        for start, stop in pairwise(edges):
            if stop > start:
                blocks.partial_fit(X[start:stop], validation=held_out)
        assert core(blocks) == core(whole)
        assert blocks.n_points_ == whole.n_points_ == len(X)


@every
def test_a_cut_within_a_mini_batch_leaves_a_smaller_one(cls):
    X = toy()[:200]
    model = cls(**given(cls, **LINE)).partial_fit(X[:100]).partial_fit(X[100:])
    sizes = np.diff(model.trace_["samples"], prepend=0)
    step = mini_batch(model)
    assert_array_equal(sizes, 2 * [*[step] * (100 // step), 100 % step])


@every
def test_fit_forgets_and_the_random_state_decides(cls):
    X = toy()
    model = cls(**LINE).fit(X)
    once = state(model)
    assert state(model.partial_fit(X[:50])) != once
    assert state(model.fit(X)) == once
    assert state(cls(**LINE).fit(X)) == once
    assert core(cls(**{**LINE, "random_state": 1}).fit(X)) != core(model)


@every
def test_points_are_counted_once_and_samples_each_time(cls):
    X = toy()
    model = cls(**LINE)
    model.partial_fit(X[:100]).partial_fit(X[100:130])
    assert (model.n_points_, model.t_, model.n_rejected_) == (130, 130, 0)
    model.fit(X)
    assert (model.n_points_, model.t_) == (len(X), LINE["epochs"] * len(X))
    outside = np.vstack([X[:60], [[1.5], [-0.1]]])
    with pytest.warns(UserWarning, match="2 of 62 samples are outside"):
        model.partial_fit(outside)
    assert (model.n_points_, model.n_rejected_) == (len(X) + 60, 2)
    assert model.t_ == LINE["epochs"] * len(X) + 60
    density = np.exp(model.score_samples(PROBES))
    assert_allclose(model.intensity(PROBES), density * (len(X) + 60), rtol=1e-13)
    assert_allclose(model.expected_count((0, 1)), len(X) + 60, rtol=1e-13)
    with pytest.warns(UserWarning, match="1 of 301 samples"):
        model.fit(np.vstack([X[:300], [[7.0]]]))
    assert (model.n_points_, model.n_rejected_) == (300, 1)


@every
def test_faces_belong_to_the_domain(cls):
    model = cls(**LINE).fit(np.vstack([toy(), [[0.0], [1.0]]]))
    assert model.n_rejected_ == 0
    log_density = model.score_samples([[0.0], [1.0], [np.nextafter(1, 2)], [-5e-324]])
    assert_array_equal(np.isfinite(log_density), [True, True, False, False])
    assert_array_equal(model.intensity([[2.0], [-1.0]]), [0, 0])


# -- traces and validation -------------------------------------------------------------------------


@both_spaces
@every
def test_the_trace_tells_what_happened(cls, settings, X):
    model = cls(**settings).fit(X)
    trace = model.trace_
    expected = ["samples", "model_order", "active", "loss", "compression_error", "budget", "drift"]
    assert list(trace) == expected
    batches = settings["epochs"] * -(-len(X) // mini_batch(model))
    assert {column.shape for column in trace.values()} == {(batches,)}
    assert trace["samples"][-1] == model.t_
    assert trace["model_order"][-1] == model.model_order_ == len(model.dictionary_)
    assert (trace["compression_error"] <= trace["budget"]).all()
    assert trace["loss"][-20:].mean() < trace["loss"][:3].mean()
    if cls is not MirrorNewtonIntensity:
        # The first loss is that of the uniform density.
        volume = np.prod(np.diff(np.reshape(settings["domain"], (-1, 2)), axis=1))
        assert_allclose(trace["loss"][0], 1 + np.log(volume), rtol=1e-14)


@pytest.mark.parametrize("mirror", ["kl", "mahalanobis"])
def test_the_loss_is_that_before_the_step(mirror):
    X, volume = cloud(), 5.0
    model = SPPPOTIntensity(**PLANE, mirror=mirror, average=False)
    for start in range(0, 300, 30):
        model.partial_fit(X[start : start + 30])
        following = X[start + 30 : start + 60]
        integral = model.integral_  # by which densities are divided
        density = integral * model.intensity(model.nodes_) / model.n_points_
        expected = volume * density.mean() - model.score_samples(following).mean()
        expected -= np.log(integral)
        again = SPPPOTIntensity(**PLANE, mirror=mirror, average=False)
        again.partial_fit(X[:30])  # which fixes what is taken from the data
        again.partial_fit(X[30 : start + 60])
        assert_allclose(again.trace_["loss"][-1], expected, rtol=1e-10)


@both_spaces
@every
def test_validation_is_measured_along_the_way(cls, settings, X):
    held_out, volume = X[::5], np.prod(np.diff(np.reshape(settings["domain"], (-1, 2)), axis=1))
    model = cls(**{**settings, "epochs": 12}).fit(X, validation=held_out)
    assert core(model) == core(cls(**{**settings, "epochs": 12}).fit(X))

    def measured():
        values = model.trace_["validation_nll"]
        integral = model.integral_  # by which densities are divided
        density = integral * np.exp(model.score_samples(model.nodes_))
        expected = volume * density.mean() - model.score_samples(held_out).mean()
        expected -= np.log(integral)
        assert_allclose(values[-1], expected, rtol=1e-12)
        assert len(values) == len(model.trace_["loss"])
        return values

    values = measured()
    assert np.isfinite(values).sum() >= 24  # at least every 16 mini-batches and after each epoch
    assert np.nanmean(values[-40:]) < values[np.isfinite(values)][0]
    model.partial_fit(X[:40], validation=held_out)
    assert_array_equal(measured()[: len(values)], values)
    model.partial_fit(X[:40])
    assert np.isnan(model.trace_["validation_nll"][-1])
    model.fit(X)
    assert "validation_nll" not in model.trace_


def test_validation_outside_the_domain_has_no_likelihood():
    model = SPPPOTIntensity(**LINE).fit(toy(), validation=[[0.5], [1.5]])
    assert model.trace_["validation_nll"][-1] == np.inf


def test_a_block_of_nothing_but_outsiders_is_no_step(tmp_path):
    model = SPPPOTIntensity(**LINE).fit(toy(), validation=toy()[:9])
    before = core(model)
    with pytest.warns(UserWarning, match="3 of 3 samples are outside"):
        model.partial_fit([[7.0]] * 3, validation=toy()[:9])
    assert core(model) == before
    assert (model.n_rejected_, model.n_points_) == (3, len(toy()))
    model.save(tmp_path / "model")  # what was measured is still what a file can hold


# -- samples ---------------------------------------------------------------------------------------


@every
def test_samples_in_the_plane_fill_the_quadrats_as_expected(cls):
    model = cls(**PLANE).fit(cloud())
    drawn = model.sample(5000, random_state=0)
    (left, right), (low, high) = PLANE["domain"]
    x, y = np.linspace(left, right, 5), np.linspace(low, high, 5)
    counts = np.histogram2d(*drawn.T, bins=[x, y])[0]
    expected = np.array([[model.expected_count([a, b]) for b in pairwise(y)] for a in pairwise(x)])
    assert counts.sum() == 5000
    assert stats.chisquare(counts.ravel(), 5000 * expected.ravel() / expected.sum()).pvalue > 1e-3
    # The test can tell: a uniform sample does not fit.
    uniform = np.full(counts.size, 5000 / counts.size)
    assert stats.chisquare(counts.ravel(), uniform).pvalue < 1e-9


def test_the_source_of_randomness():
    model = SPPPOTIntensity(**LINE).fit(toy())
    before = everything(model)
    random = np.random.RandomState(3)
    first, second = model.sample(5, random_state=random), model.sample(5, random_state=random)
    assert not np.array_equal(first, second)
    assert_array_equal(first, model.sample(5, random_state=3))
    assert model.sample().shape == (1, 1)
    assert everything(model) == before


@pytest.mark.parametrize("level", [-1e5, 0.0, 1e5])
def test_samples_of_densities_that_no_double_can_hold(level):
    def log_density(x):
        return level - 0.5 * ((x[:, 0] - 0.3) / 0.02) ** 2

    random = np.random.RandomState(0)
    drawn = draw(log_density, np.array([[0.0, 1.0]]), 20, 2000, random)
    assert stats.kstest(drawn[:, 0], stats.norm(0.3, 0.02).cdf).pvalue > 1e-3
    with pytest.raises(ValueError, match="nowhere positive"):
        draw(lambda x: np.full(len(x), -np.inf), np.array([[0.0, 1.0]]), 20, 1, random)


def test_samples_come_from_where_the_density_is_positive():
    with pytest.warns(ConvergenceWarning, match="integrates to"):
        model = SPPPOTIntensity(**LINE, mirror="euclidean", learning_rate=0.3).fit(toy())
    assert (model.intensity(PROBES) < 0).any()
    assert (model.intensity(model.sample(500, random_state=0)) > 0).all()


# -- as scikit-learn has it ------------------------------------------------------------------------


def test_in_a_pipeline_and_a_grid_search():
    X = 1e3 * toy() - 7
    model = make_pipeline(MinMaxScaler((0.05, 0.95)), SPPPOTIntensity(**LINE)).fit(X)
    assert model.score(X) == pytest.approx(model[-1].score(model[0].transform(X)))
    search = GridSearchCV(
        MirrorNewtonIntensity(**LINE), {"bandwidth": [0.02, 0.1, 5.0]}, error_score="raise", cv=3
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        search.fit(toy())
    assert search.best_params_ == {"bandwidth": 0.1}


@every
def test_warnings_name_the_callers_line(cls):
    X, outside = toy(), np.vstack([toy()[:60], [[2.0]]])
    coarse = {**LINE, "grid_size": 3, "epochs": 1}
    calls = [
        lambda: cls(**{**LINE, "epochs": 40}).fit(outside),
        lambda: cls(**LINE).partial_fit(outside),
        lambda: cls(**LINE).partial_fit(X).partial_fit(outside),
        lambda: cls(**coarse).fit(X),
    ]
    if cls is not MirrorNewtonIntensity:
        calls.append(lambda: cls(**LINE, budget=AdaptiveBudget(5)).fit(X))
    for call in calls:
        with pytest.warns((UserWarning, ConvergenceWarning)) as caught:
            call()
        assert {warning.filename for warning in caught} == {__file__}

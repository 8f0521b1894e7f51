"""Standard deviations of predictions: those of Gaussian processes, and as large as they say."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import make_friedman1
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import parsimon
from parsimon import POLKRegressor, kernels

WIDTH = 0.25
# Every sample is a point.
EVERY = {
    "kernel": kernels.Gaussian(WIDTH),
    "budget": 1e-9,
    "max_points": None,
    "regularization": 1e-3,
    "half_life": None,
}


def wave(count, targets=1, seed=0):
    random = np.random.default_rng(seed)
    X = random.uniform(size=(count, 2))
    y = np.sin(6 * X[:, :1]) + np.arange(targets) * X[:, 1:]
    y = y + 0.1 * (1 + np.arange(targets)) * random.normal(size=y.shape)
    return X, y[:, 0] if targets == 1 else y


@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
@pytest.mark.parametrize("normalize_y", [True, False])
def test_if_every_sample_is_a_point_it_is_the_gaussian_process(learn, normalize_y):
    X, y = wave(60)
    model = getattr(POLKRegressor(normalize_y=normalize_y, **EVERY), learn)(X, y)
    assert model.model_order_ == 60
    variance, ridge = model.noise_**2, 60 * model.regularization_
    prior = ConstantKernel(variance / ridge) * RBF(WIDTH)
    process = GaussianProcessRegressor(prior, alpha=variance, optimizer=None)
    places = np.random.default_rng(1).uniform(-0.3, 1.3, size=(300, 2))
    wanted = process.fit(X, y - model.intercept_).predict(places, return_std=True)
    predictions, deviations = model.predict(places, return_std=True)
    assert_allclose(predictions - model.intercept_, wanted[0], atol=1e-9)
    assert_allclose(deviations, wanted[1], rtol=1e-9)


def test_the_noise_of_a_fit_is_what_is_left_for_each_sample_that_is_not_used_up():
    X, y = wave(60)
    model = POLKRegressor(normalize_y=False, **EVERY).fit(X, y)
    gram, ridge = model.kernel_(X), 60 * model.regularization_
    smoother = gram @ np.linalg.inv(gram + ridge * np.eye(60))
    left = y - smoother @ y
    assert model.noise_ == pytest.approx(np.sqrt(left @ left / (60 - np.trace(smoother))), rel=1e-9)


def test_samples_of_twice_the_weight_have_half_the_variance():
    X, y = wave(60)
    weight = np.random.default_rng(1).uniform(0.5, 2, 60)
    model = POLKRegressor(normalize_y=False, **EVERY).fit(X, y, sample_weight=weight)
    variance, ridge = model.noise_**2, 60 * model.regularization_
    prior = ConstantKernel(variance / ridge) * RBF(WIDTH)
    process = GaussianProcessRegressor(prior, alpha=variance / weight, optimizer=None)
    _, wanted = process.fit(X, y).predict(X, return_std=True)
    assert_allclose(model.predict(X, return_std=True)[1], wanted, rtol=1e-9)


@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_intervals_hold_as_many_targets_as_they_promise(learn):
    X, y = make_friedman1(3000, noise=1.0, random_state=0)
    model = POLKRegressor(max_points=200, random_state=0)
    if learn == "fit":
        model.fit(X[:2000], y[:2000])
    else:
        for start in range(0, 2000, 200):
            model.partial_fit(X[start : start + 200], y[start : start + 200])
    predictions, deviations = model.predict(X[2000:], return_std=True)
    assert 0.9 < model.noise_ < 1.5
    off = abs(y[2000:] - predictions) / np.sqrt(deviations**2 + model.noise_**2)
    # 683 and 955 of 1,000 are expected, with standard deviations of 15 and 7; a stream has larger
    # ones, because it predicted worse before.
    assert 0.62 < (off < 1).mean() < 0.8
    assert 0.93 < (off < 2).mean() < 0.99


def test_several_targets_have_the_noise_of_each():
    X, y = wave(400, targets=3)
    model = POLKRegressor(random_state=0).fit(X, y)
    predictions, deviations = model.predict(X, return_std=True)
    assert predictions.shape == deviations.shape == (400, 3)
    assert_allclose(model.noise_, [0.1, 0.2, 0.3], rtol=0.15)
    assert_allclose(deviations / model.noise_, np.repeat(deviations[:, :1], 3, 1) / model.noise_[0])


def test_deviations_grow_with_the_distance_up_to_those_of_the_prior():
    X, y = wave(400)
    model = POLKRegressor(random_state=0).fit(X, y)
    path = np.linspace(0.5, 9, 40)[:, None] * [1.0, 0.0] + [0.0, 0.5]
    deviations = model.predict(path, return_std=True)[1]
    ridge = model.regularization_ * 400
    assert deviations[-1] == pytest.approx(model.noise_ / np.sqrt(ridge))
    assert deviations[0] < model.noise_
    assert (np.diff(deviations)[5:] >= -1e-9).all()
    assert_allclose(model.predict(X), model.predict(X, return_std=True)[0], rtol=0)


def test_forgotten_samples_say_nothing():
    X, y = wave(2000)
    last = POLKRegressor(**{**EVERY, "budget": 0.1}).partial_fit(X, y)
    short = POLKRegressor(**{**EVERY, "budget": 0.1, "half_life": 20}).partial_fit(X, y)
    ratio = [
        np.median(model.predict(X, return_std=True)[1] / model.noise_) for model in (last, short)
    ]
    assert ratio[1] > 3 * ratio[0]


def test_a_stream_keeps_track_of_noise_that_changes():
    random = np.random.default_rng(0)
    model = POLKRegressor(half_life=500)
    for noise in (0.1, 0.4):
        X = random.uniform(size=(6000, 1))
        model.partial_fit(X, np.sin(6 * X[:, 0]) + noise * random.normal(size=6000))
        assert model.noise_ == pytest.approx(noise, rel=0.2)


@pytest.mark.parametrize("given", [{"loss": "huber"}, {"solver": "sgd"}, {"loss": "pinball(0.9)"}])
def test_other_losses_and_solvers_say_that_they_do_not_know(given):
    X, y = wave(100)
    model = POLKRegressor(epochs=1, **given).fit(X, y)
    with pytest.raises(ValueError, match="known for the squared loss and the solver newton"):
        model.predict(X, return_std=True)
    assert not hasattr(model, "noise_")
    assert model.predict(X).shape == (100,)


def test_files_pickles_and_copies_know_the_same(tmp_path):
    X, y = wave(300)
    model = POLKRegressor(random_state=0).partial_fit(X[:200], y[:200])
    wanted = model.predict(X, return_std=True)[1]
    model.save(tmp_path / "model.parsimon")
    again = parsimon.load(tmp_path / "model.parsimon")
    for twin in (again, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert_array_equal(twin.predict(X, return_std=True)[1], wanted)
        assert twin.noise_ == model.noise_
    model.partial_fit(X[200:], y[200:])
    again.partial_fit(X[200:], y[200:])
    assert again.noise_ == model.noise_
    assert not np.array_equal(model.predict(X, return_std=True)[1], wanted)


def test_sparse_and_single_precision_samples_and_frozen_parameters():
    X, y = wave(200)
    model = POLKRegressor(random_state=0).fit(X, y)
    wanted = model.predict(X, return_std=True)[1]
    assert_array_equal(model.predict(sparse.csr_matrix(X), return_std=True)[1], wanted)
    assert_allclose(model.predict(X.astype(np.float32), return_std=True)[1], wanted, rtol=1e-4)
    # The fitted model counts, not what the next one will be.
    assert_array_equal(model.set_params(loss="huber").predict(X, return_std=True)[1], wanted)


def test_budgeted_models_know_it_too():
    X, y = wave(300)
    for learn in ("fit", "partial_fit"):
        model = getattr(parsimon.BSGDRegressor(max_points=40, random_state=0), learn)(X, y)
        assert 0.07 < model.noise_ < 0.15
        _, near = model.predict(X, return_std=True)
        _, far = model.predict(X + 100, return_std=True)
        assert near.max() < far.min()


def test_who_does_not_know_it_says_so():
    X, y = wave(100)
    model = parsimon.COLKRegressor(risk="semivariance", random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="is not known to a COLKRegressor"):
        model.predict(X, return_std=True)
    with pytest.raises(ValueError, match="squared loss"):
        parsimon.BSGDRegressor(loss="huber", random_state=0).fit(X, y).predict(X, return_std=True)


def test_a_model_without_its_statistics_names_the_parameter_that_left_them_out(tmp_path):
    """It once said that its loss was not squared, or its solver not newton."""
    X, y = wave(100)
    POLKRegressor(random_state=0).fit(X, y).save(tmp_path / "model", training=False)
    model = parsimon.load(tmp_path / "model")
    with pytest.raises(ValueError, match="saved with training=False"):
        model.predict(X, return_std=True)
    with pytest.raises(AttributeError, match="saved with training=False"):
        _ = model.noise_
    with pytest.raises(ValueError, match="saved with training=False cannot be compressed"):
        model.compress(max_points=5)
    with pytest.raises(ValueError, match="saved with training=False cannot be refined"):
        model.refine_on(X, y)
    assert model.predict(X).shape == (100,)

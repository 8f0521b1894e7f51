"""The average of the iterates of a stream forgets: `half_life` with gradient steps as weights."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from polk_common import curve, state, task

import parsimon
from parsimon import (
    BSGDClassifier,
    BSGDRegressor,
    COLKClassifier,
    COLKRegressor,
    PolicyEvaluator,
    POLKClassifier,
    POLKRegressor,
    SPPPOTClassifier,
    SPPPOTIntensity,
)
from parsimon.datasets import make_multidist

STREAMS = {
    POLKClassifier: {"solver": "sgd"},
    BSGDClassifier: {"solver": "sgd"},
    COLKClassifier: {"solver": "sgd"},
    SPPPOTClassifier: {},
}
REGRESSORS = {
    POLKRegressor: {"solver": "sgd"},
    BSGDRegressor: {"solver": "sgd"},
    COLKRegressor: {"solver": "sgd"},
}


def samples_to_recover(model, before):
    """Return how many samples it takes after all labels have changed."""
    X, y = make_multidist(before + 8000, random_state=0)
    for start in range(0, before, 1000):
        model.partial_fit(X[start : start + 1000], y[start : start + 1000], classes=range(5))
    held_out, wanted = X[-1000:], (y[-1000:] + 1) % 5
    good = model.score(held_out, y[-1000:]) - 0.02
    for start in range(before, before + 7000, 250):
        model.partial_fit(X[start : start + 250], (y[start : start + 250] + 1) % 5)
        if model.score(held_out, wanted) > good:
            return start + 250 - before
    return 8000


@pytest.mark.parametrize("cls", STREAMS)
def test_a_stream_recovers_from_a_change(cls):
    assert samples_to_recover(cls(**STREAMS[cls]), 5000) <= 3000
    assert samples_to_recover(cls(half_life=300, **STREAMS[cls]), 5000) <= 3000


@pytest.mark.slow
@pytest.mark.parametrize("cls", STREAMS)
def test_how_long_that_takes_does_not_depend_on_the_length_of_the_stream(cls):
    for half_life in ("auto", 1000):
        short = samples_to_recover(cls(half_life=half_life, **STREAMS[cls]), 5000)
        long = samples_to_recover(cls(half_life=half_life, **STREAMS[cls]), 100_000)
        assert short <= 5000
        assert long <= 6000
    # An average over the whole stream does not.
    assert samples_to_recover(cls(half_life=None, **STREAMS[cls]), 100_000) == 8000


def test_a_half_life_is_one_in_samples_whatever_the_blocks():
    """An average of constants a and then b is the same as computed by hand."""
    X, y = np.zeros((1, 1)), np.ones(1)
    given = {"kernel": parsimon.kernels.Gaussian(1.0), "solver": "sgd", "normalize_y": False}
    given |= {"learning_rate": 1e-3, "regularization": 0.0, "budget": 0.0, "batch_size": 4}
    model = POLKRegressor(half_life=20.0, **given)
    iterate, average = 0.0, 0.0
    for t in range(1, 200):
        count = 1 + t % 4
        model.partial_fit(np.repeat(X, count, 0), np.repeat(y, count))
        iterate += count / 4 * 1e-3 * (1 - iterate)
        share = max(4 / (t + 3), 1 - 2 ** (-count / 20))
        average += share * (iterate - average)
        assert model.predict(X)[0] == pytest.approx(average, rel=1e-12)


def learned(cls, given, method, count=400):
    X, y = task() if cls in STREAMS else curve()
    return getattr(cls(random_state=0, **given), method)(X[:count], y[:count])


@pytest.mark.parametrize("cls", [*STREAMS, *REGRESSORS])
def test_fit_averages_over_all_iterates_whatever_the_half_life(cls):
    given = {**STREAMS, **REGRESSORS}[cls] | {"epochs": 2}
    weights = [
        learned(cls, given | {"half_life": half_life}, "fit").weights_
        for half_life in (None, 50.0, "auto")
    ]
    assert_array_equal(weights[0], weights[1])
    assert_array_equal(weights[0], weights[2])


@pytest.mark.parametrize("cls", REGRESSORS)
def test_a_stream_that_goes_on_after_fit_forgets(cls):
    X, y = curve()
    models = [
        cls(half_life=half_life, epochs=10, random_state=0, **REGRESSORS[cls]).fit(X, y)
        for half_life in (None, 20.0)
    ]
    errors = []
    for model in models:
        model.partial_fit(X, -y)
        errors.append(((model.predict(X) + y) ** 2).mean())
    assert errors[1] < 0.7 * errors[0]


@pytest.mark.filterwarnings("ignore:The learned density integrates")
def test_densities_and_value_functions_forget_too():
    random = np.random.default_rng(0)
    X = np.concatenate([random.uniform(0, 0.5, 6000), random.uniform(0.5, 1, 3000)])[:, None]
    late = [
        SPPPOTIntensity(domain=(0, 1), half_life=half_life, solver="sgd")
        .partial_fit(X)
        .expected_count((0.5, 1))
        for half_life in (None, 200)
    ]
    assert late[1] > 1.1 * late[0]  # of 9,000 at most, to which both are normalised
    rewards = np.where(np.arange(9000) < 6000, 0.0, 1.0)
    values = [
        PolicyEvaluator("td", discount=0.5, half_life=half_life)
        .partial_fit(X, rewards, X, np.ones(9000))
        .predict([[0.7]])[0]
        for half_life in (None, 200)
    ]
    assert abs(values[1] - 1) < 0.7 * abs(values[0] - 1)


@pytest.mark.parametrize("half_life", [None, 300.0, "auto"])
@pytest.mark.parametrize("cls", [*STREAMS, *REGRESSORS])
def test_files_keep_it_and_go_on_bit_for_bit(cls, half_life, tmp_path):
    given = {**STREAMS, **REGRESSORS}[cls] | {"half_life": half_life}
    X, y = task() if cls in STREAMS else curve()
    first = {"classes": range(5)} if cls in STREAMS else {}
    model = cls(**given).partial_fit(X[:150], y[:150], **first)
    model.save(tmp_path / "model")
    again = parsimon.load(tmp_path / "model")
    assert again.half_life == half_life
    copied = copy.deepcopy(model)
    for twin in (model, again, copied):
        twin.partial_fit(X[150:], y[150:])
    assert state(again) == state(model) == state(copied)


def test_averages_of_noise_are_as_good_as_ever():
    """What is forgotten is more than the noise of the steps needs to be averaged out."""
    random = np.random.default_rng(0)
    X = random.uniform(size=(20_000, 1))
    y = np.sin(6 * X[:, 0]) + 0.3 * random.normal(size=20_000)
    places = np.linspace(0.05, 0.95, 50)[:, None]
    errors = {}
    for name, given in {
        "all": {"half_life": None},
        "auto": {},
        "last": {"average": False},
    }.items():
        model = POLKRegressor(solver="sgd", gamma=10.0, normalize_y=False, **given)
        model.partial_fit(X, y)
        errors[name] = np.sqrt(((model.predict(places) - np.sin(6 * places[:, 0])) ** 2).mean())
    assert errors["auto"] < 0.6 * errors["last"]
    assert errors["auto"] < 0.05


def test_nothing_is_bounded_where_weights_are_solved():
    X, y = curve()
    model = POLKRegressor(half_life=200.0).partial_fit(X, y)
    assert "average.memory" not in parsimon._io.to_archive(model)
    assert_allclose(model._model.regularization, model.regularization_)

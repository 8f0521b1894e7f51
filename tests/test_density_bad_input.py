"""Bad input gets a sentence, and nothing is lost: intensity estimators."""

import warnings

import numpy as np
import pytest
from polk_common import assert_refused
from sklearn.exceptions import ConvergenceWarning

import parsimon
from parsimon import HybridIntensity, MirrorNewtonIntensity, SPPPOTIntensity
from parsimon.datasets import make_poisson_gaussian

ALL = [SPPPOTIntensity, MirrorNewtonIntensity, HybridIntensity]
X = make_poisson_gaussian(300, random_state=0)
GIVEN = {"domain": (0, 1), "grid_size": 20, "bandwidth": 0.1} | {
    "solver": "sgd",
    "epochs": 30,
    "random_state": 0,
}

PARAMETERS = [
    ("domain", (1.0, 1.0), "no volume"),
    ("domain", (1.0, 0.0), "no volume"),
    ("domain", (0.0, np.inf), "finite bounds"),
    ("domain", "everywhere", "domain must be"),
    ("domain", [(0, 1), (0, 1)], "2 pairs .* X has 1 features"),
    ("grid_size", 0, "grid_size must be"),
    ("grid_size", 2.5, "grid_size must be"),
    ("grid_size", (3, 3), "grid_size has 2 numbers"),
    ("grid_size", 10**6, r"1e\+06 nodes .* GB; choose at most \d+ cells"),
    ("bandwidth", 0.0, "bandwidth"),
    ("bandwidth", "scott", "silverman"),
    ("bandwidth", (0.1, 0.1), "2 bandwidths"),
    ("kernel", "poly", "kernel must be"),
    ("kernel", 3, "kernel must be"),
    ("learning_rate", -1.0, "learning_rate must be"),
    ("epochs", 0, "epochs must be"),
    ("shuffle", 3, "shuffle must be"),
    ("verbose", None, "verbose must be"),
]
FIRST_ORDER = [
    ("gradient", "newton", "gradient must be one of"),
    ("budget", -1.0, "budget must be"),
    ("parsimony", np.nan, "parsimony must be"),
    ("budget", "adaptive", "budget must be"),
    ("batch_size", 0, "batch_size must be"),
    ("regularization", -1e-3, "regularization must be"),
]
SAMPLES = [
    (np.empty((0, 1)), "0 sample"),
    (np.array([[np.nan]]), "NaN"),
    (np.array([[np.inf]]), "infinity"),
    (np.zeros(3), "2D array"),
    (np.zeros((3, 2)), "features"),
    (np.array([["a"]]), "could not convert"),
]


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize(("name", "value", "message"), PARAMETERS)
def test_hyper_parameters(cls, name, value, message):
    assert_refused(cls(**{**GIVEN, name: value}), lambda model: model.fit(X), message)


@pytest.mark.parametrize("cls", [SPPPOTIntensity, HybridIntensity])
@pytest.mark.parametrize(("name", "value", "message"), FIRST_ORDER)
def test_hyper_parameters_of_the_first_order(cls, name, value, message):
    assert_refused(cls(**{**GIVEN, name: value}), lambda model: model.fit(X), message)


@pytest.mark.parametrize(
    ("cls", "settings", "message"),
    [
        (SPPPOTIntensity, {"mirror": "glass"}, "mirror must be one of"),
        (SPPPOTIntensity, {"method": "luck"}, "method must be one of"),
        (SPPPOTIntensity, {"average": 1}, "average must be"),
        (SPPPOTIntensity, {"budget": 1.0, "parsimony": 0.1}, "not both"),
        (MirrorNewtonIntensity, {"damping": 0.0}, "damping must be"),
        (HybridIntensity, {"patience": 0}, "patience must be"),
        (HybridIntensity, {"first_phase": -1}, "first_phase must be"),
        (HybridIntensity, {"newton_learning_rate": 0}, "newton_learning_rate must be"),
    ],
)
def test_hyper_parameters_of_one(cls, settings, message):
    assert_refused(cls(**GIVEN, **settings), lambda model: model.fit(X), message)


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize(("bad", "message"), SAMPLES)
def test_samples(cls, bad, message):
    model = cls(**GIVEN).fit(X)
    for call in ("partial_fit", "score_samples", "intensity"):
        assert_refused(model, lambda m, call=call: getattr(m, call)(bad), message)
    assert_refused(model, lambda m: m.partial_fit(X, validation=bad), message)


@pytest.mark.parametrize("cls", ALL)
def test_points_outside_the_domain(cls):
    model = cls(**GIVEN)
    with pytest.warns(
        UserWarning, match=rf"1 of {len(X) + 1} samples are outside .* the first is \[1.5\]"
    ):
        model.fit(np.vstack([X, [[1.5]]]))
    assert model.n_rejected_ == 1
    assert model.n_points_ == len(X)
    with pytest.warns(UserWarning, match="1 of 1 samples"):
        model.partial_fit([[-0.1]])
    assert (model.n_rejected_, model.n_points_) == (2, len(X))
    assert model.score_samples([[1.5], [0.5]])[0] == -np.inf
    assert model.intensity([[1.5]])[0] == 0
    for other in (cls(**GIVEN), model):
        assert_refused(other, lambda m: m.fit([[7.0]]), "None of the samples .* is in the domain")
    assert_refused(cls(**GIVEN), lambda m: m.partial_fit([[7.0]]), "None of the samples")


@pytest.mark.parametrize("cls", ALL)
def test_domain_without_width(cls):
    flat = np.column_stack([X[:, 0], np.full(len(X), 3.0)])
    assert_refused(cls(), lambda m: m.fit(flat), "same value along feature 1")
    assert_refused(cls(), lambda m: m.partial_fit(X[:1]), "n_samples=1")
    model = cls(domain=(0, 1), random_state=0).partial_fit(X[:1])
    assert np.isfinite(model.score_samples(X)).all()


@pytest.mark.parametrize("cls", [SPPPOTIntensity, MirrorNewtonIntensity, HybridIntensity])
def test_divergence_leaves_the_last_good_model(cls):
    model = cls(**GIVEN).fit(X)
    rate = "newton_learning_rate" if cls is HybridIntensity else "learning_rate"
    model.set_params(**{rate: 1e6})
    assert_refused(model, lambda m: m.fit(X), "smaller learning rate", parsimon.DivergenceError)


def test_a_step_that_is_too_large_is_told():
    model = SPPPOTIntensity(**GIVEN, learning_rate=20.0, average=False)
    with pytest.warns(ConvergenceWarning, match=r"integrates to .* smaller learning\s+rate"):
        model.fit(X)
    assert np.isfinite(model.weights_).all()


@pytest.mark.parametrize("box", [(0.5, 0.5), (0, np.nan), [(0, 1), (0, 1)], "auto", None])
def test_boxes(box):
    model = SPPPOTIntensity(**GIVEN).fit(X)
    assert_refused(model, lambda m: m.expected_count(box), "domain|box")


def test_sample_counts():
    model = SPPPOTIntensity(**GIVEN).fit(X)
    for count in (0, -1, 2.5, "many"):
        assert_refused(model, lambda m, n=count: m.sample(n), "n_samples must be")


def test_not_fitted():
    for cls in ALL:
        for name in ("integral_", "n_points_", "nodes_", "trace_", "dictionary_"):
            assert not hasattr(cls(), name)


@pytest.mark.parametrize("features", [5, 12])
def test_many_dimensions_give_a_density(features):
    random = np.random.RandomState(0)
    cloud = random.randn(400, features)
    for cls in ALL:
        model = cls(epochs=3, random_state=0)
        with warnings.catch_warnings():
            # A density in many dimensions from few samples may say that its integral is off.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(cloud)
        assert np.isfinite(model.score_samples(cloud)).all()
        assert model.sample(5, random_state=0).shape == (5, features)

"""Densities where careless arithmetic fails: dependent nodes, odd units, odd streams, many axes."""

import warnings

import numpy as np
import pytest
from intensity_common import INTENSITIES, LINE, PROBES, cloud, toy
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from parsimon import HybridIntensity, MirrorNewtonIntensity, SPPPOTIntensity
from parsimon.spppot._auto import choose_bandwidth

every = pytest.mark.parametrize("cls", INTENSITIES)


def trained(model, X):
    """Return the model, whatever its integral."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X)


def assert_sound(model, points):
    """Everything is a number, and the density is positive in its domain."""
    assert np.isfinite(model.weights_).all()
    assert np.isfinite(model.score_samples(points)).all()
    assert (model.intensity(points) > 0).all()
    assert np.isfinite(model.integral_)
    for column in model.trace_.values():
        assert np.isfinite(column).all()
    assert (model.trace_["compression_error"] <= model.trace_["budget"]).all()


# -- a grid finer than the kernel ------------------------------------------------------------------

FINE = {"domain": (0, 1), "grid_size": 100, "bandwidth": 0.0065**0.5} | {
    "solver": "sgd",
    "random_state": 0,
}
# Below this share of k(x, x), what the other points do not explain of a node is rounding.
DEPENDENT = 1e-8


def size(model):
    return np.linalg.norm(model.weights_)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"budget": 1e-5},
        {"gradient": "kernel_embedding"},
        {"gradient": "sign"},
        {"method": "dual_averaging"},
        {"mirror": "euclidean"},
        {"mirror": "mahalanobis"},
        {"batch_size": 1, "epochs": 4},
        {"average": False},
    ],
    ids=lambda settings: "-".join(map(str, settings.values())) or "default",
)
def test_dependent_nodes_keep_the_weights_bounded(settings):
    model = SPPPOTIntensity(**{**FINE, "epochs": 20, **settings})
    nodes = np.arange(0.005, 1, 0.01)[:, None]
    gram = np.exp(-((nodes - nodes.T) ** 2) / 2 / 0.0065)
    assert np.linalg.matrix_rank(gram, tol=1e-8) < 40
    trained(model, toy())
    assert np.isfinite(model.weights_).all()
    assert size(model) <= model.expansion_.norm() / np.sqrt(DEPENDENT)
    assert model.model_order_ == 100
    assert np.isfinite(model.trace_["loss"]).all()


def test_weights_of_dependent_nodes_settle():
    """They once grew by the same amount with every epoch: four times in four times as long."""
    X = toy()[:300]
    model, longer = (trained(SPPPOTIntensity(**FINE, epochs=n), X) for n in (500, 2000))
    assert size(longer) < 1.5 * size(model)
    assert_allclose(longer.score_samples(X), model.score_samples(X), atol=0.1)


@pytest.mark.parametrize("cls", [MirrorNewtonIntensity, HybridIntensity])
def test_the_second_order_bears_dependent_nodes(cls):
    model = cls(**FINE, epochs=30).fit(toy())
    assert_sound(model, PROBES)
    assert size(model) <= model.expansion_.norm() / np.sqrt(DEPENDENT)
    assert model.model_order_ == 100


# -- where and how large the data are --------------------------------------------------------------


@pytest.mark.parametrize("offset", [1e6, -(2.0**30)])
@every
def test_an_offset_changes_nothing(cls, offset):
    settings = {**LINE, "grid_size": 16}
    near = cls(**settings).fit(toy())
    far = cls(**{**settings, "domain": (offset, offset + 1)}).fit(toy() + offset)
    assert_array_equal(far.nodes_, near.nodes_ + offset)
    # Nodes of the integral are rounded where doubles are 2^-22 apart.
    assert_allclose(far.score_samples(PROBES + offset), near.score_samples(PROBES), atol=1e-7)
    assert far.integral_ == pytest.approx(near.integral_, abs=1e-7)


@pytest.mark.parametrize("units", [(1e-6, 1e6), (1e60, 1e-60)])
@pytest.mark.parametrize("domain", ["auto", "given"])
@every
def test_axes_in_other_units(cls, domain, units):
    """Everything is left to the defaults, which must not care; the domain too, in one case."""
    bounds = np.array([(0, 1), (-2, 3)])
    settings = {"epochs": 3, "random_state": 0}
    models = []
    for scale in (np.ones(2), np.array(units)):
        given = "auto" if domain == "auto" else bounds * scale[:, None]
        models.append(trained(cls(domain=given, **settings), cloud() * scale))
    plain, scaled = models
    density = scaled.score_samples(cloud() * units) + np.log(units).sum()
    assert_allclose(density, plain.score_samples(cloud()), atol=1e-8)
    assert scaled.integral_ == pytest.approx(plain.integral_, rel=1e-8)


# -- odd streams -----------------------------------------------------------------------------------

STREAMS = {
    "one point again and again": np.full((600, 1), 0.3),
    "one point on the face": np.zeros((600, 1)),
    "sorted": np.sort(toy(), axis=0),
    "two corners in turn": np.tile([[0.0], [1.0]], (300, 1)),
    "a node again and again": np.full((600, 1), 0.525),
    "the last is far from all others": np.vstack([0.05 * toy()[:600], [[1.0]]]),
    "nearly copies": 0.4 + 1e-9 * toy()[:600],
}


@pytest.mark.parametrize("stream", STREAMS)
@every
def test_odd_streams_leave_a_positive_density(cls, stream):
    X = STREAMS[stream]
    for model in (trained(cls(**LINE), X), cls(**LINE).partial_fit(X).partial_fit(X[:1])):
        assert_sound(model, PROBES)
        assert model.model_order_ <= 2 * LINE["grid_size"]
        inside = np.abs(PROBES - X[0]) < 0.02
        everywhere = model.score_samples(PROBES)
        if np.ptp(X) < 0.1:  # most likely where all of them are
            assert everywhere[inside[:, 0]].max() > np.median(everywhere) + 1


@pytest.mark.filterwarnings("ignore:The learned density integrates")
@pytest.mark.parametrize("batch", [1, 4])
def test_a_point_where_nothing_is_expected_moves_z_by_one_kernel_at_most(batch):
    """1 / f is above 1e30 there, and (26) asks for as much."""
    model = SPPPOTIntensity(
        **{**LINE, "gradient": "kernel_embedding", "learning_rate": 2.0, "budget": 0.0},
        batch_size=batch,
        average=False,
    )
    for _ in range(400):
        model.partial_fit(0.3 * toy()[:batch])
    far = np.full((batch, 1), 0.97)
    before = model.expansion_(PROBES)[:, 0]
    assert model.score_samples(far)[0] < -70
    model.partial_fit(far)
    kernel = model.expansion_.kernel
    pull = 2.0 * kernel(PROBES, model.nodes_).mean(axis=1)
    push = model.expansion_(PROBES)[:, 0] - before + pull
    assert_allclose(push, batch * kernel(PROBES, far[:1])[:, 0], atol=1e-9)
    assert_sound(model, PROBES)


@every
def test_a_huge_domain_is_positive_throughout(cls):
    random = np.random.RandomState(0)
    X = random.randn(500, 2) * (1.0, 1e-4)
    domain = np.array([(-1e6, 1e6), (-100.0, 100.0)])
    model = trained(cls(domain=domain, random_state=0, epochs=5), X)
    low, high = domain.T
    assert_sound(model, np.vstack([X, low + (high - low) * random.rand(2000, 2), domain.T]))


# -- many features ---------------------------------------------------------------------------------


def test_the_width_of_the_kernel_reaches_the_next_node():
    """In one dimension Silverman's; in more, a thousand nodes are soon far from each other."""
    random = np.random.RandomState(0)
    for features, least in [(1, 1e-3), (2, 1.5 / 32), (5, 1.5 / 4), (10, 1.5 / 2)]:
        domain = np.array([(-3.0, 5.0)] * features)
        clusters = np.clip(1e-4 * random.randn(4000, features), -3, 5)
        assert_allclose(choose_bandwidth("silverman", clusters, domain), 8 * least)
    line = random.randn(100, 1)
    robust = min(line.std(), np.diff(np.percentile(line, [25, 75]))[0] / 1.34)
    found = choose_bandwidth("silverman", line, np.array([(-5.0, 5.0)]))
    assert_allclose(found, robust * (4 / 300) ** 0.2)


@pytest.mark.slow
@every
def test_five_features_give_a_density(cls):
    """The defaults once had an integral of 5,000 here, or diverged."""
    random = np.random.RandomState(0)
    X, X_test = random.randn(300, 5), random.randn(1000, 5)
    model = trained(cls(random_state=0, epochs=8), X)
    assert model.integral_ == pytest.approx(1, abs=0.15)
    low, high = model.domain_.T
    X_test = X_test[((low <= X_test) & (high >= X_test)).all(axis=1)]
    assert_sound(model, X_test)
    uniform = -np.log(high - low).sum()
    truth = (-0.5 * X_test**2 - 0.5 * np.log(2 * np.pi)).sum(axis=1).mean()
    found = model.score_samples(X_test).mean() - np.log(model.integral_)
    assert uniform + 0.8 * (truth - uniform) < found <= truth

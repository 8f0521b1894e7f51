"""The core's SPPPOT algorithms agree with their NumPy transcriptions, in any domain."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
import spppot_reference as spppot
from numpy.testing import assert_allclose, assert_array_equal
from spppot_reference import algorithm1, algorithm3, midpoints

from parsimon import (
    HybridIntensity,
    MirrorNewtonIntensity,
    SPPPOTClassifier,
    SPPPOTIntensity,
    kernels,
)
from parsimon.datasets import make_multidist
from parsimon.schedules import AdaptiveBudget

# What 1,000 samples leave of the integral and of a target is not the matter here.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The learned density integrates to"),
    pytest.mark.filterwarnings("ignore:The model order is"),
]

AGREE = {"rtol": 0, "atol": 1e-8}
SAMPLES = 1000
MIRRORS = ["kl", "euclidean", "mahalanobis"]
GRADIENTS = ["likelihood", "kernel_embedding", "sign"]
METHODS = ["mirror_descent", "dual_averaging"]


@dataclass(frozen=True)
class Place:
    """A domain with its nodes, and a kernel on it in both languages."""

    domain: tuple
    grid_size: int
    rough: bool = True  # a Laplacian kernel, whose Gram matrices are regular on any points
    width: float = 0.3  # of the kernel, in units of the domain
    batch: int = 25  # with compression, beside a budget in units of the step
    budget: float = 0.03

    @property
    def bandwidth(self):
        return self.width * np.diff(self.domain, axis=1)[:, 0]

    @property
    def nodes(self):
        return midpoints(self.grid_size, self.domain)

    @property
    def probes(self):
        return midpoints(37 if len(self.domain) == 1 else 9, self.domain)

    def kernel(self, A, B):
        unit = spppot.laplacian(1.0) if self.rough else spppot.gaussian(1.0)
        return unit(A / self.bandwidth, B / self.bandwidth)

    @property
    def given(self):
        return {
            "domain": self.domain,
            "solver": "sgd",
            "grid_size": self.grid_size,
            "kernel": "laplacian" if self.rough else "gaussian",
            "bandwidth": self.bandwidth.tolist(),
            "epochs": 1,
            "shuffle": False,
        }

    def samples(self, count=SAMPLES):
        random = np.random.default_rng(7)
        unit = np.column_stack([random.beta(3, 5, count), random.beta(2, 2, count)])
        low, high = np.array(self.domain).T
        return low + (high - low) * unit[:, : len(self.domain)]


UNIT = Place(((0.0, 1.0),), 12)
PLACES = {
    "unit": UNIT,
    "shifted": Place(((-1002.0, -998.0),), 12),
    "plane": Place(((0.0, 1e3), (-0.5, -0.25)), 4, budget=0.1),
    "gaussian": Place(((2, 5), (0, 1)), 6, rough=False, width=0.1, batch=5, budget=0.15),
}
everywhere = pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
# Everything on the unit interval and in the plane; the other two are for the default map.
COMBINATIONS = [
    combination
    for combination in product(PLACES, MIRRORS, GRADIENTS, METHODS)
    if combination[0] in ("unit", "plane") or combination[1] == "kl"
]
in_every_way = pytest.mark.parametrize(
    ("place", "mirror", "gradient", "method"),
    [(PLACES[name], *rest) for name, *rest in COMBINATIONS],
    ids=["-".join(combination) for combination in COMBINATIONS],
)


def half_uniform_half_gaussian(X, domain):
    """Return the weight function that the Mahalanobis map is documented to have."""
    volume = np.prod(np.diff(domain, axis=1))
    center, deviation = X.mean(axis=0), X.std(axis=0)

    def weight(x):
        heights = np.exp(-(((x - center) / deviation) ** 2) / 2) / deviation / np.sqrt(2 * np.pi)
        return 0.5 + 0.5 * volume * heights.prod(axis=1)

    return weight


def settings_of(mirror, X, place):
    """Return the transcription's mirror map and its start."""
    if mirror == "kl":
        return {"mirror": spppot.kl}
    maps = {
        "euclidean": spppot.euclidean,
        "mahalanobis": spppot.mahalanobis(half_uniform_half_gaussian(X, place.domain)),
    }
    start = spppot.uniform_start(place.nodes, place.kernel)
    return {"mirror": maps[mirror], "start": start}


def assert_same(place, expected, **given):
    """Compare last iterate and average, and the model order of every mini-batch."""
    for average in (False, True):
        model = SPPPOTIntensity(**place.given, **given, average=average).fit(place.samples())
        found = model.expansion_(place.probes)[:, 0]
        assert_allclose(found, expected.z(place.probes, average=average), **AGREE)
        assert_array_equal(model.trace_["model_order"], expected.orders)
        assert_allclose(model.trace_["budget"], expected.budgets, rtol=1e-12)
    kept, meant = (is_in(place.samples(), D) for D in (model.dictionary_, expected.points))
    assert_array_equal(kept, meant)
    return model


def is_in(X, points):
    return (X[:, None] == points).all(axis=-1).any(axis=1)


# -- Algorithm 1 -----------------------------------------------------------------------------------


def run_both(place, *, mirror, gradient, method, budget, eta=None, batch=25):
    """Run Algorithm 1 in both languages; budget in units of the step."""
    X = place.samples()
    eta = eta or (0.2 if mirror == "kl" else 0.02)
    budget *= eta if method == "mirror_descent" else 1
    shared = {"gradient": gradient, "method": method, "regularization": 0.01, "budget": budget}
    expected = algorithm1(
        X,
        place.nodes,
        place.kernel,
        eta=eta,
        batch=batch,
        **settings_of(mirror, X, place),
        **shared,
    )
    model = assert_same(
        place, expected, learning_rate=eta, batch_size=batch, mirror=mirror, **shared
    )
    return model, expected


@in_every_way
def test_without_compression(place, mirror, gradient, method):
    model, expected = run_both(place, mirror=mirror, gradient=gradient, method=method, budget=0)
    nodes = len(place.nodes)
    assert model.model_order_ == (nodes if gradient == "sign" else nodes + SAMPLES)
    assert np.ptp(expected.z(place.probes)) > 0.1  # something has been learned


@in_every_way
def test_with_compression_on_a_grid_of_full_rank(place, mirror, gradient, method):
    given = {"mirror": mirror, "gradient": gradient, "method": method}
    _, expected = run_both(place, **given, budget=place.budget, batch=place.batch)
    assert np.linalg.cond(place.kernel(place.nodes, place.nodes)) < 1e3
    if gradient != "sign":  # some samples stay, and some that had stayed go again
        assert len(place.nodes) < max(expected.orders) < SAMPLES / 2
        assert min(np.diff(expected.orders)) < 0


@pytest.mark.parametrize("budget", [0.0, 0.3])
@pytest.mark.parametrize("gradient", ["likelihood", "kernel_embedding"])
def test_sample_by_sample_with_steps_that_are_cut(gradient, budget):
    """With eta = 1.5 and one sample per step, none may move z by as much as it wants to."""
    model, _ = run_both(
        UNIT,
        mirror="kl",
        gradient=gradient,
        method="mirror_descent",
        budget=budget,
        eta=1.5,
        batch=1,
    )
    assert model.t_ == len(model.trace_["loss"]) == SAMPLES


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("mirror", MIRRORS)
def test_the_rest_is_a_mini_batch_and_repeated_points_are_one(mirror, method):
    X = np.vstack([UNIT.samples()[:500], UNIT.nodes, UNIT.samples()[:488]])
    assert len(X) == SAMPLES
    shared = {"gradient": "likelihood", "method": method, "regularization": 0.0}
    for budget in (0.0, 0.002 if method == "mirror_descent" else 0.04):
        model = SPPPOTIntensity(
            **UNIT.given, learning_rate=0.05, mirror=mirror, batch_size=30, budget=budget, **shared
        ).fit(X)
        expected = algorithm1(
            X,
            UNIT.nodes,
            UNIT.kernel,
            eta=0.05,
            batch=30,
            budget=budget,
            **shared,
            **settings_of(mirror, X, UNIT),
        )
        assert_allclose(model.expansion_(UNIT.probes)[:, 0], expected.z(UNIT.probes), **AGREE)
        assert_array_equal(model.trace_["model_order"], expected.orders)
        assert_array_equal(model.trace_["samples"][-2:], [990, 1000])
        assert model.model_order_ == 512 or budget


class HeldOrder(spppot.AdaptiveBudget):
    """The rule that holds a model order of any size: relative, damped, and patient at first."""

    def __init__(self, alpha, target):
        super().__init__(alpha, target)
        self.lowest, self.highest = 1e-6 * alpha, 1e6 * alpha
        self.previous = self.maximum = self.waited = 0
        self.settled = False

    def observe(self, order):
        self.waited = 0 if order > self.maximum else self.waited + 1
        self.maximum = max(self.maximum, order)
        self.settled |= order >= 0.9 * self.target or self.waited >= 20
        change = 0.1 * (order - self.target) / self.target
        if self.settled:
            change += 0.5 * (order - self.previous) / self.target
        change = np.clip(change, -0.1 if self.settled else 0, 0.1)
        self.alpha = np.clip(self.alpha * (1 + change), self.lowest, self.highest)
        self.previous = order


@pytest.mark.parametrize("printed", [False, True])
@pytest.mark.parametrize("target", [20, 60])
@pytest.mark.parametrize("method", METHODS)
def test_adaptive_budget(target, method, printed):
    X, eta = UNIT.samples(), 0.2
    alpha = 0.02 if method == "mirror_descent" else 0.1
    shared = {"gradient": "likelihood", "method": method, "regularization": 0.01}
    rule = HeldOrder(alpha, target)
    if printed:
        rule = spppot.AdaptiveBudget(alpha, target, 1e-6 * alpha, 1e6 * alpha)
    expected = algorithm1(X, UNIT.nodes, UNIT.kernel, eta=eta, batch=20, budget=rule, **shared)
    assert_same(
        UNIT,
        expected,
        learning_rate=eta,
        batch_size=20,
        budget=AdaptiveBudget(target, alpha, printed),
        **shared,
    )
    assert len(set(expected.budgets)) > 10


# -- Algorithm 3 -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("eta", "damping"), [(1.0, 1.0), (2.0, 0.05), (0.25, 30.0)])
@everywhere
def test_mirror_newton(place, eta, damping):
    model = MirrorNewtonIntensity(**place.given, learning_rate=eta, damping=damping)
    model.fit(place.samples())
    expected = algorithm3(
        place.samples(), place.nodes, place.nodes, place.kernel, eta=eta, delta=damping
    )
    assert_allclose(model.dictionary_, place.nodes, rtol=1e-14)
    assert_allclose(model.weights_[:, 0], expected.average, **AGREE)
    assert_allclose(model.expansion_(place.probes)[:, 0], expected.z(place.probes), **AGREE)
    last = model._model.to_archive()["weights"]
    assert_allclose(last, expected.weights, **AGREE)


def test_mirror_newton_with_its_own_step_and_damping():
    """Few samples, so that what is measured on some of them is measured on all."""
    X = UNIT.samples()[:400]
    damping = 0.1 * (UNIT.kernel(X, UNIT.nodes) ** 2).sum(axis=1).mean()
    model = MirrorNewtonIntensity(**{**UNIT.given, "epochs": 3}).fit(X)
    expected = algorithm3(X, UNIT.nodes, UNIT.nodes, UNIT.kernel, eta=2.0, delta=damping, epochs=3)
    assert_allclose(model.weights_[:, 0], expected.average, **AGREE)


def test_mirror_newton_on_a_grid_of_deficient_rank():
    """The inverse that is kept does not drift from the inverse, with 5,000 updates of rank 1."""
    place = Place(((0.0, 1.0),), 100, rough=False, width=0.0065**0.5)
    assert np.linalg.matrix_rank(place.kernel(place.nodes, place.nodes)) < 60
    X = place.samples(5000)
    model = MirrorNewtonIntensity(**place.given, learning_rate=1.25, damping=1.0).fit(X)
    expected = algorithm3(X, place.nodes, place.nodes, place.kernel, eta=1.25, delta=1.0)
    assert_allclose(model.weights_[:, 0], expected.average, **AGREE)


# -- Algorithm 4 -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("patience", "cap"), [(8, 99), (999, 13), (1, 99)])
@pytest.mark.parametrize("place", [UNIT, PLACES["plane"]], ids=["unit", "plane"])
def test_hybrid(place, patience, cap):
    X, budget = place.samples()[:500], 0.02
    model = HybridIntensity(
        **{**place.given, "epochs": 2},
        learning_rate=0.2,
        budget=budget,
        regularization=0.01,
        batch_size=30,
        newton_learning_rate=1.5,
        damping=0.7,
        patience=patience,
        first_phase=cap,
    ).fit(X)
    expected, taken = spppot.algorithm4(
        X,
        place.nodes,
        place.kernel,
        first={"eta": 0.2, "budget": budget, "regularization": 0.01, "batch": 30},
        second={"eta": 1.5, "delta": 0.7},
        quadrature=lambda order: model.nodes_,
        patience=patience,
        cap=cap,
        epochs=2,
    )
    assert model.in_second_phase_
    assert 30 <= taken < 800
    assert_array_equal(first_phase(model), taken)
    assert_allclose(model.expansion_(place.probes)[:, 0], expected.z(place.probes), **AGREE)
    assert model.model_order_ == len(expected.points)
    assert_finer(model, place)


def first_phase(model):
    """Return the samples of the first phase, the only one with a budget."""
    return model.trace_["samples"][model.trace_["budget"] > 0][-1]


def assert_finer(model, place):
    """The second phase integrates on a regular grid with at least twice as many nodes."""
    assert len(model.nodes_) >= 2 * model.model_order_
    size = round(len(model.nodes_) ** (1 / len(place.domain)))
    assert_allclose(model.nodes_, midpoints(size, place.domain), rtol=1e-12)


def test_hybrid_before_the_switch_is_the_first_algorithm():
    X, given = UNIT.samples(), {**UNIT.given, "learning_rate": 0.2, "budget": 0.003}
    first = SPPPOTIntensity(**given, regularization=0.0).fit(X)
    hybrid = HybridIntensity(**given, regularization=0.0, patience=999, first_phase=999).fit(X)
    assert not hybrid.in_second_phase_
    assert_array_equal(hybrid.weights_, first.weights_)
    assert_array_equal(hybrid.dictionary_, first.dictionary_)
    assert_array_equal(hybrid.nodes_, first.nodes_)


# -- the classifier --------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [0.0, 0.3, HeldOrder(0.1, 30)], ids=["none", "fixed", "held"])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_classifier(classes, budget):
    X, y = make_multidist(SAMPLES, random_state=0)
    y, eta, adaptive = y % classes, 3.0, isinstance(budget, HeldOrder)
    expected = spppot.classifier(
        X,
        y,
        spppot.laplacian(1.0),
        classes=classes,
        eta=eta,
        batch=30,
        budget=budget,
        regularization=1e-3,
    )
    held = {"budget": AdaptiveBudget(30, 0.1)}
    given = {
        "kernel": kernels.Laplacian(1.0),
        "learning_rate": eta,
        "regularization": 1e-3,
        "batch_size": 30,
        "epochs": 1,
        "shuffle": False,
        **(held if adaptive else {"budget": budget}),
    }
    for average in (False, True):
        model = SPPPOTClassifier(**given, average=average).fit(X, y)
        z = expected.z(X, average=average)
        assert_allclose(model.expansion_(X), z, **AGREE)
        assert_allclose(model.predict_proba(X), spppot.softmax(np.exp(z)), **AGREE)
        assert_array_equal(model.trace_["model_order"], expected.orders)
    assert (model.model_order_ == SAMPLES) == (budget == 0.0)
    assert np.mean(model.predict(X) == y) > 0.8

"""Models with a hard cap on their points."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from polk_common import assert_refused, curve, hinge_gradient, state, task

import parsimon
from parsimon import BSGDClassifier, BSGDRegressor, POLKClassifier, kernels
from parsimon.bsgd import MAINTENANCE

GIVEN = {
    "kernel": kernels.Gaussian(0.6),
    "learning_rate": 1.5,
    "regularization": 1e-4,
    "epochs": 1,
    "shuffle": False,
    "average": False,
    "solver": "sgd",
    "random_state": 0,
}
each_rule = pytest.mark.parametrize("maintenance", MAINTENANCE)


def removal(D, W, budget):
    while len(D) > budget:
        keep = np.arange(len(D)) != (W**2).sum(axis=1).argmin()
        D, W = D[keep], W[keep]
    return D, W


def merging(D, W, budget):
    """The smallest point and its best partner, by a fine grid of the places between them."""
    h = np.linspace(0, 1, 2001)[:, None]
    while len(D) > budget:
        a = (W**2).sum(axis=1).argmin()
        losses, places = [], []
        for b in range(len(D)):
            kappa = kernel(D[a : a + 1], D[b : b + 1])[0, 0]
            merged = kappa ** ((1 - h) ** 2) * W[a] + kappa ** (h**2) * W[b]
            value = (merged**2).sum(axis=1)
            before = (W[a] ** 2).sum() + (W[b] ** 2).sum() + 2 * kappa * W[a] @ W[b]
            losses.append(np.inf if a == b else before - value.max())
            places.append((h[value.argmax(), 0], merged[value.argmax()]))
        b = int(np.argmin(losses))
        place, weight = places[b]
        keep = ~np.isin(np.arange(len(D)), [a, b])
        D = np.vstack([D[keep], place * D[a] + (1 - place) * D[b]])
        W = np.vstack([W[keep], weight])
    return D, W


def kernel(A, B):
    return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=-1) / 2 / 0.6**2)


def bsgd(X, y, maintain, budget, batch=1):
    """BSGD in a few lines, for the hinge loss of five classes."""
    D, W = np.empty((0, 2)), np.empty((0, 5))
    for start in range(0, len(X), batch):
        x, t = X[start : start + batch], y[start : start + batch]
        G = hinge_gradient(kernel(x, D) @ W, t)
        active = np.any(G != 0, axis=1)
        D = np.vstack([D, x[active]])
        W = np.vstack([(1 - 2 * 1.5e-4) * W, -1.5 / batch * G[active]])
        D, W = maintain(D, W, budget)
    return D, W


@pytest.mark.parametrize(("maintenance", "maintain"), [("remove", removal), ("merge", merging)])
def test_it_is_the_algorithm_in_a_few_lines(maintenance, maintain):
    X, y = task()
    X, y = X[:160], y[:160]
    model = BSGDClassifier(**GIVEN, max_points=12, maintenance=maintenance).fit(X, y)
    D, W = bsgd(X, y, maintain, 12)
    assert model.model_order_ == len(D) == 12
    values = model.decision_function(X)
    # The grid of the reference knows the best place to 2.5e-4.
    assert_allclose(values, kernel(X, D) @ W, atol=1e-8 if maintenance == "remove" else 2e-2)
    assert np.abs(values).max() > 1


def test_projection_keeps_the_values_at_the_points_left():
    X, y = task()
    model = BSGDClassifier(**GIVEN, max_points=12, maintenance="project")
    model.partial_fit(X[:100], y[:100], classes=range(5))
    for x, label in zip(X[100:200, None], y[100:200, None], strict=True):
        before = model.expansion_
        G = hinge_gradient(before(x), label)
        model.partial_fit(x, label)
        step = (1 - 2 * 1.5e-4) * before - 1.5 * kernels_at(x, G)
        kept = model.expansion_
        assert_allclose(kept(kept.dictionary), step(kept.dictionary), atol=1e-7)
        assert (step - kept).norm() == pytest.approx(
            model.trace_["compression_error"][-1], abs=1e-6
        )


def kernels_at(x, weights):
    return parsimon.KernelExpansion(GIVEN["kernel"], x, weights)


@each_rule
def test_there_are_never_more_points(maintenance):
    X, y = task()
    model = BSGDClassifier(**GIVEN, max_points=9, maintenance=maintenance, maintenance_rate=1e9)
    model.fit(np.vstack([X, X[:50], X[:50]]), np.concatenate([y, y[:50], y[:50]]))
    assert model.trace_["model_order"].max() == model.model_order_ == 9
    assert len(model.dictionary_) == len(model.weights_) == 9
    assert np.isfinite(model.weights_).all()
    assert model.trace_["compression_error"].max() > 0


def test_without_pressure_it_is_polk_without_compression():
    X, y = task()
    model = BSGDClassifier(**GIVEN, max_points=10**6, maintenance="remove").fit(X, y)
    polk = POLKClassifier(**GIVEN, budget=0, batch_size=1).fit(X, y)
    assert_array_equal(model.decision_function(X), polk.decision_function(X))
    assert not model.trace_["compression_error"].any()


def test_a_nonparametric_budget_grows():
    X, y = task()
    given = {**GIVEN, "max_points": 9, "maintenance": "nonparametric", "maintenance_rate": 100}
    model = BSGDClassifier(**given).fit(X, y)
    orders = model.trace_["model_order"]
    assert orders[:100].max() == 9
    assert orders[-1] > 12
    assert state(BSGDClassifier(**given).fit(X, y)) == state(model)
    other = BSGDClassifier(**{**given, "random_state": 1}).fit(X, y)
    assert not np.array_equal(other.trace_["model_order"], orders)


def test_defaults_learn():
    X, y = task()
    for maintenance in ("merge", "project"):
        model = BSGDClassifier(max_points=30, maintenance=maintenance, random_state=0).fit(X, y)
        assert model.score(X, y) > 0.85
    X, y = curve()
    model = BSGDRegressor(max_points=30, random_state=0).fit(X, y)
    assert model.model_order_ == 30
    assert model.score(X, y) > 0.9


@each_rule
def test_files_and_pickles_go_on_where_they_stopped(maintenance, tmp_path):
    X, y = task()
    model = BSGDClassifier(
        **{**GIVEN, "average": True}, max_points=9, maintenance=maintenance, maintenance_rate=50
    ).fit(X[:200], y[:200])
    model.save(tmp_path / "model")
    for other in (parsimon.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert state(other) == state(model)
        other.partial_fit(X[200:], y[200:])
        assert_array_equal(
            other.decision_function(X),
            pickle.loads(pickle.dumps(model)).partial_fit(X[200:], y[200:]).decision_function(X),
        )


def test_files_of_others_are_refused(tmp_path):
    X, y = task()
    from parsimon import _core, _io

    for model, name in (
        (BSGDClassifier(**GIVEN).fit(X, y), "POLKClassifier"),
        (POLKClassifier(**GIVEN, max_points=None).fit(X, y), "BSGDClassifier"),
    ):
        entries = {**_io.to_archive(model), "estimator": name}
        entries["estimator.parameters"] = "{}"
        _core.Archive(entries).write(str(tmp_path / "model"))
        with pytest.raises(ValueError, match="maintenance"):
            parsimon.load(tmp_path / "model")


@pytest.fixture(scope="module")
def fitted():
    return [cls(random_state=0).fit(*task()) for cls in (BSGDClassifier, BSGDRegressor)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_points": 0}, "max_points"),
        ({"max_points": 2.5}, "max_points"),
        ({"max_points": None}, "max_points"),
        ({"max_points": 1}, "at least 2 with maintenance='merge'"),
        ({"maintenance": "forget"}, "maintenance must be one of 'remove'"),
        ({"maintenance_rate": -1}, "maintenance_rate"),
        ({"kernel": kernels.Laplacian(1.0)}, "merged with a Gaussian kernel"),
        ({"kernel": "laplacian"}, "merged with a Gaussian kernel"),
    ],
)
def test_bad_settings(settings, message, fitted):
    X, y = task()
    for model in map(deepcopy, fitted):
        model.set_params(**settings)
        assert_refused(model, lambda m: m.fit(X, y), message)


def test_komp_of_its_expansion():
    X, y = task()
    model = BSGDClassifier(**GIVEN, max_points=20).fit(X, y)
    smaller, report = parsimon.komp(model.expansion_, budget=1.0)
    assert report.model_order < 20
    assert (smaller - model.expansion_).norm() <= 1.0 + 1e-9


def test_sample_weights_do_not_make_steps_too_long():
    """Three times as much as the squared loss of a single sample bears once diverged."""
    X, y = curve()
    model = BSGDRegressor(max_points=30, random_state=0).fit(
        X, y, sample_weight=np.full(len(X), 3.0)
    )
    assert model.score(X, y) > 0.9

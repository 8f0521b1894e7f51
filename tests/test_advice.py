"""Warnings that say what to do: features out of scale, models that grow without end."""

import re
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from parsimon import (
    POLKClassifier,
    POLKRegressor,
    SLKLClassifier,
    SLKLRegressor,
    _stream,
    kernels,
)


def data(count=400, seed=0, scales=(1.0, 1.0, 1.0)):
    random = np.random.RandomState(seed)
    X = random.normal(size=(count, 3))
    return X * scales, (X[:, 0] + X[:, 1] > 0).astype(int)


def said(learn):
    with warnings.catch_warnings(record=True) as all_of_them:
        warnings.simplefilter("always")
        learn()
    ours = (each for each in all_of_them if not issubclass(each.category, DeprecationWarning))
    return [str(each.message) for each in ours]


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_features_that_are_not_scaled(method):
    X, y = data(scales=(1.0, 5000.0, 0.2))
    (message,) = said(lambda: getattr(POLKClassifier(epochs=1), method)(X, y))
    assert re.search(
        r"Feature 1 has a standard deviation of 5.*e\+03, half.*StandardScaler", message
    )
    # Not for those that are, for a kernel that knows, or for sparse samples.
    assert not said(lambda: getattr(POLKClassifier(epochs=1), method)(*data()))
    known = POLKClassifier(kernel=kernels.Gaussian([1.0, 5000.0, 0.2]), epochs=1)
    assert not said(lambda: getattr(known, method)(X, y))
    assert not said(lambda: getattr(POLKClassifier(epochs=1), method)(sparse.csr_matrix(X), y))


def test_a_stream_says_so_once_when_it_has_seen_enough():
    X, y = data(scales=(1.0, 5000.0, 0.2))
    model = POLKClassifier()

    def learn(part):
        for i in part:
            model.partial_fit(X[i : i + 1], y[i : i + 1])

    assert not said(lambda: learn(range(99)))
    assert len(said(lambda: learn(range(99, 400)))) == 1


def test_constant_features_and_single_samples_say_nothing():
    X, y = data()
    X[:, 1:] = 3.0
    assert not said(lambda: POLKClassifier(epochs=1).fit(X, y))
    assert not said(lambda: POLKRegressor().partial_fit(X[:1], [1.0]))


def test_a_model_that_keeps_nearly_every_sample():
    X, y = data(2500)
    model = POLKRegressor(budget=1e-12, kernel=kernels.Gaussian(0.05))

    def learn():
        for start in range(0, 2500, 100):
            model.partial_fit(X[start : start + 100], 1.0 * y[start : start + 100])

    messages = said(learn)
    assert model.model_order_ > 2000
    # At 1,024 and at 2,048 samples, not at every block.
    assert len(messages) == 2
    assert "has kept 1,1" in messages[0]
    assert "give a larger budget" in messages[0]
    with pytest.warns(ConvergenceWarning, match="grows with every one"):
        POLKRegressor(budget=1e-12, kernel=kernels.Gaussian(0.05), epochs=1).fit(X, 1.0 * y)


def test_a_cap_or_what_is_left_to_us_does_not_grow_without_end():
    X, y = data(2500)
    for given in ({"max_points": 2000}, {}):
        model = POLKRegressor(kernel=kernels.Gaussian(0.05), **given)
        assert not said(lambda model=model: model.partial_fit(X, 1.0 * y))


def test_probabilities_of_the_hinge_loss():
    X, y = data()
    with pytest.raises(AttributeError) as error:
        POLKClassifier(epochs=1).fit(X, y).predict_proba(X)
    assert "use loss='logistic'" in str(error.value.__cause__ or error.value)


def test_passes_over_the_same_samples_do_not_hide_that_all_are_kept():
    X, y = data(1200)
    model = POLKRegressor(budget=1e-12, kernel=kernels.Gaussian(0.05), epochs=3, solver="sgd")
    with pytest.warns(ConvergenceWarning, match=r"has kept 1,[12]\d\d of 1,200 samples"):
        model.fit(X, 1.0 * y)


@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_what_is_wrong_with_features_is_said_before_learning(learn, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    X, y = data(scales=(1.0, 5000.0, 0.2))
    model = POLKClassifier(epochs=1)
    monkeypatch.setattr(_stream, "run", interrupt)
    with (
        pytest.warns(UserWarning, match="Feature 1 has a standard deviation"),
        pytest.raises(KeyboardInterrupt),
    ):
        getattr(model, learn)(X, y)


def test_points_that_would_fill_the_memory_are_announced(monkeypatch):
    random = np.random.RandomState(0)
    X = sparse.random(30, 200_000, density=1e-4, format="csr", random_state=random)
    kernel = kernels.Polynomial(degree=2)

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(POLKClassifier, "_new_model", interrupt)
    many = sparse.vstack([X] * 30, format="csr")

    def learn(X, kernel="linear", cap=None):
        with pytest.raises(KeyboardInterrupt):
            POLKClassifier(kernel=kernel, max_points=cap).fit(X, np.arange(X.shape[0]) % 2)

    (message,) = said(lambda: learn(many, kernel))
    assert "900 of them take 1.4 GB. Use kernel='linear', a smaller max_points" in message
    assert not said(lambda: learn(many, kernel, 100))
    assert not said(lambda: learn(many))
    assert not said(lambda: learn(X, kernel))


def test_slkl_says_that_features_are_not_scaled():
    X, y = data(100, scales=(1.0, 5000.0, 0.2))
    for model, targets in ((SLKLRegressor(), X[:, 0]), (SLKLClassifier(), y)):
        (message,) = said(lambda model=model, targets=targets: model.fit(X, targets))
        assert "Feature 1 has a standard deviation" in message
        assert not said(lambda model=model, targets=targets: model.fit(data(100)[0], targets))
    gram = SLKLRegressor(kernel="precomputed")
    assert not said(lambda: gram.fit(X @ X.T, X[:, 0]))

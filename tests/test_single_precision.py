"""Samples and products in single precision."""

from __future__ import annotations

import pickle
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import parsimon
from parsimon import COLKRegressor, POLKClassifier, POLKRegressor, SPPPOTClassifier, kernels


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 40))
    return X.astype(np.float32), X[:, :3].argmax(axis=1)


def make(**settings: object) -> POLKClassifier:
    return POLKClassifier(
        kernel=kernels.Gaussian(6.0), learning_rate=4.0, epochs=1, random_state=0, **settings
    )


def test_float32_samples_give_the_bits_of_their_float64_copies(
    data: tuple[np.ndarray, np.ndarray],
) -> None:
    X, y = data[0][:800], data[1][:800]
    wide = X.astype(np.float64)
    for model in (
        POLKClassifier(epochs=1, random_state=0),
        SPPPOTClassifier(epochs=1, random_state=0),
        POLKRegressor(epochs=1, random_state=0),
        COLKRegressor(epochs=1, random_state=0),
    ):
        narrow_model = model.fit(X, y)
        values = narrow_model.predict(X)
        weights = narrow_model.weights_
        wide_model = model.fit(wide, y)
        np.testing.assert_array_equal(wide_model.weights_, weights)
        np.testing.assert_array_equal(wide_model.predict(wide), values)
        assert wide_model.dictionary_.dtype == np.float64


def test_float32_samples_are_not_copied_to_float64() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(40_000, 200)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    model = POLKClassifier(
        kernel=kernels.Gaussian(15.0), learning_rate=4.0, parsimony=1.0, epochs=1, shuffle=False
    )
    model.fit(X[:2000], y[:2000])
    tracemalloc.start()
    model.fit(X, y)
    model.predict(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # NumPy's arrays are traced. A copy in double precision would be twice the samples' size.
    assert peak < 0.5 * X.nbytes


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_the_model_hardly_changes(data: tuple[np.ndarray, np.ndarray], loss: str) -> None:
    X, y = data
    double = make(loss=loss, parsimony=0.05).fit(X[:2000], y[:2000])
    single = make(loss=loss, parsimony=0.05, dtype="float32").fit(X[:2000], y[:2000])
    assert single.model_order_ == pytest.approx(double.model_order_, rel=0.02)
    assert single.score(X[2000:], y[2000:]) == pytest.approx(
        double.score(X[2000:], y[2000:]), abs=0.002
    )


@pytest.mark.parametrize(
    "kernel",
    [
        kernels.Gaussian(3.0),
        kernels.Matern(3.0, 1.5),
        kernels.Cauchy(2.0),
        kernels.Linear(),
        kernels.Polynomial(2, 0.1, 1.0),
        kernels.Gaussian(3.0) + 2.0 * kernels.Linear(),
        kernels.Laplacian(5.0),
    ],
    ids=str,
)
@pytest.mark.parametrize("features", [2, 16, 17, 50])
def test_values_to_six_digits(kernel: kernels.Kernel, features: int) -> None:
    random = np.random.default_rng(0)
    a, b = random.normal(size=(33, features)), random.normal(size=(70, features))
    b[:5] = a[:5] + 1e-4 * random.normal(size=(5, features))  # near pairs
    b[5:9] = a[5:9]  # equal ones
    single = kernels.SinglePrecision(kernel)
    exact = kernel(a, b)
    size = np.sqrt(np.outer(kernel.diag(a), kernel.diag(b)))
    assert np.abs((single(a, b) - exact) / size).max() < 1e-5
    np.testing.assert_allclose(single.diag(a), kernel.diag(a), rtol=1e-15)
    # Symmetric to the last bit, or a Gram matrix that is updated would not be one.
    gram = single(b)
    np.testing.assert_array_equal(gram, gram.T)


def test_near_points_keep_their_distance() -> None:
    random = np.random.default_rng(0)
    a = 100 + random.normal(size=(20, 30))
    b = a + 1e-3 * random.normal(size=a.shape)
    kernel = kernels.Gaussian(0.01)
    near = np.diag(kernels.SinglePrecision(kernel)(a, b))
    np.testing.assert_allclose(near, np.diag(kernel(a, b)), rtol=1e-10)


def test_it_prints_saves_and_loads(tmp_path: Path, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    kernel = kernels.SinglePrecision(kernels.Gaussian(2.0))
    assert repr(kernel) == "SinglePrecision(kernel=Gaussian(bandwidth=2.0))"
    assert kernels.from_description(kernel.core.describe()) == kernel
    assert kernels.SinglePrecision(kernel) == kernel
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    model = make(dtype="float32").fit(X[:1000], y[:1000])
    model.save(tmp_path / "model")
    again = parsimon.load(tmp_path / "model")
    assert again.dtype == "float32"
    for one in (model, again):
        one.partial_fit(X[1000:], y[1000:])
    np.testing.assert_array_equal(again.weights_, model.weights_)


@pytest.mark.parametrize("dtype", ["float16", np.float32, None, 32])
def test_a_dtype_that_cannot_be(dtype: object, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    with pytest.raises(ValueError, match="dtype must be one of 'float64', 'float32'"):
        make(dtype=dtype).fit(X, y)


@pytest.mark.parametrize("kernel", [kernels.Linear(), kernels.Polynomial(2, 0.1, 1.0)], ids=str)
def test_products_beyond_single_precision_are_computed_in_double(kernel: kernels.Kernel) -> None:
    a = np.random.default_rng(0).normal(size=(9, 40))
    b = 1e25 * np.random.default_rng(1).normal(size=(11, 40))
    b[:3] = a[:3]
    exact = kernel(a * 1e20, b)
    np.testing.assert_allclose(kernels.SinglePrecision(kernel)(a * 1e20, b), exact, rtol=1e-3)


@pytest.mark.parametrize("features", [784, 5000, 50_000])
def test_equal_terms_do_not_lose_digits_however_many(features: int) -> None:
    random = np.random.default_rng(0)
    X = (random.uniform(size=(24, features)) < 0.3).astype(float)
    kernel = kernels.Gaussian(np.sqrt(features) / 3)
    assert np.abs(kernels.SinglePrecision(kernel)(X) - kernel(X)).max() < 5e-6

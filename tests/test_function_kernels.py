"""Kernels that the user writes."""

import gc
import pickle
import threading
import weakref

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

from parsimon import POLKRegressor
from parsimon.kernels import Function, Gaussian, Linear, Polynomial


def product_of_minima(X, Y):
    """Brownian sheet: a kernel on positive points."""
    return np.minimum(X[:, None, :], Y[None, :, :]).prod(axis=2)


def test_values():
    X = np.random.default_rng(0).uniform(size=(40, 2))
    kernel = Function(product_of_minima)
    np.testing.assert_array_equal(kernel(X, X[:5]), product_of_minima(X, X[:5]))
    np.testing.assert_array_equal(kernel.diag(X), np.diag(product_of_minima(X, X)))
    mixed = 2.0 * kernel + Gaussian()
    np.testing.assert_allclose(mixed(X), 2 * product_of_minima(X, X) + Gaussian()(X), rtol=1e-15)


def test_is_a_value():
    kernel = Function(product_of_minima)
    assert repr(kernel) == "Function(product_of_minima)"
    assert kernel.core.describe() == "function(product_of_minima)"
    assert kernel == Function(product_of_minima) != Function(lambda X, Y: X @ Y.T)
    assert hash(kernel) == hash(Function(product_of_minima))
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    text = pickle.dumps(kernel.core)
    with pytest.raises(ValueError, match="give the kernel again"):
        pickle.loads(text)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (np.zeros((2, 2)), r"shape \(2, 3\), but returned one of shape \(2, 2\)"),
        (np.zeros(6), r"shape \(6,\)"),
        (1.0, r"shape \(\)"),
        (np.zeros((2, 3), dtype=complex), "dtype complex128"),
        (np.zeros((2, 3), dtype=object), "dtype object"),
        ("text", "dtype <U4"),
        (None, "dtype object"),
        ([[1.0], [1.0, 2.0]], "two-dimensional array"),
        (np.full((2, 3), np.nan), "returned NaN or infinity"),
        (np.full((2, 3), np.inf), "returned NaN or infinity"),
    ],
)
def test_bad_results(result, message):
    with pytest.raises(ValueError, match=message):
        Function(lambda X, Y: result)([[0.0], [1.0]], [[0.0], [1.0], [2.0]])


def test_results_of_other_types():
    ones = Function(lambda X, Y: [[True] * len(Y)] * len(X))
    np.testing.assert_array_equal(ones([[0.0], [1.0]]), np.ones((2, 2)))
    fortran = Function(lambda X, Y: np.asfortranarray(product_of_minima(X, Y), dtype="f4"))
    np.testing.assert_array_equal(fortran([[0.0], [1.0]], [[0.5]]), [[0.0], [0.5]])


def test_exceptions_pass_through():
    def fail(X, Y):
        raise NotFittedError("not yet")

    with pytest.raises(NotFittedError, match="not yet"):
        (Gaussian() + Function(fail))([[1.0]])


def test_gradient():
    kernel = Function(
        lambda X, Y: (X @ Y.T + 1) ** 2, gradient=lambda X, y: 2 * (X @ y + 1)[:, None] * X
    )
    X, weights = np.eye(3, 2), np.ones((3, 3))
    expected = Polynomial(2).core.gradient(X, X, weights)
    np.testing.assert_allclose(kernel.core.gradient(X, X, weights), expected, rtol=1e-15)
    with pytest.raises(ValueError, match="without a gradient"):
        Function(product_of_minima).core.gradient(X, X, weights)
    wrong = Function(product_of_minima, gradient=lambda X, y: X.T)
    with pytest.raises(ValueError, match=r"gradient of the kernel function.*shape \(3, 2\)"):
        wrong.core.gradient(X, X, weights)


def test_what_the_function_is_given_is_its_own():
    kept = []

    def keep(X, Y):
        kept.append(X)
        X += 1.0
        return X @ Y.T

    X = np.ones((2, 2))
    Function(keep)(X)
    np.testing.assert_array_equal(X, np.ones((2, 2)))
    gc.collect()
    np.testing.assert_array_equal(kept[0], np.full((2, 2), 2.0))


def test_is_released():
    class Product:
        def __call__(self, X, Y):
            return X @ Y.T

    function = Product()
    alive = weakref.ref(function)
    kernel = Function(function) + Linear()
    kernel([[1.0]])
    del kernel, function
    gc.collect()
    assert alive() is None


def test_from_several_threads():
    kernel = Function(product_of_minima) * Gaussian()
    X = np.random.default_rng(0).uniform(size=(50, 2))
    expected, results = kernel(X), []
    threads = [threading.Thread(target=lambda: results.append(kernel(X))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    for result in results:
        np.testing.assert_array_equal(result, expected)


def test_a_kernel_that_uses_its_own_model_is_refused():
    """It once waited for itself for ever."""
    asked = []

    def recursive(a, b):
        if asked:
            model.predict(a)
        return a @ b.T

    given = {"learning_rate": 0.1, "regularization": 0.0, "budget": 0, "solver": "sgd"}
    model = POLKRegressor(kernel=Function(recursive), **given)
    X = np.arange(12.0).reshape(6, 2) / 10
    model.partial_fit(X, X[:, 0])
    before = model.weights_
    asked.append(True)
    for call in (lambda: model.predict(X), lambda: model.partial_fit(X, X[:, 0])):
        with pytest.raises(ValueError, match="cannot use the model itself"):
            call()
    asked.clear()
    assert_array_equal(model.weights_, before)

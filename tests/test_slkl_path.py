"""SLKL along a path of sparsities, and its picture."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from parsimon import SLKLClassifier, SLKLRegressor, kernels, sparsity_path
from parsimon.datasets import make_sinc

X, Y = make_sinc(150, random_state=0)
GIVEN = {"kernel": kernels.Gaussian(1.0), "n_columns": 60, "random_state": 0}


def test_path():
    path = sparsity_path(
        X[:100],
        Y[:100],
        X_validation=X[100:],
        y_validation=Y[100:],
        n_sparsities=12,
        estimator=SLKLRegressor(kernel=GIVEN["kernel"], tol=1e-8),
    )
    assert path.mu.shape == (12, 100)
    assert path.model_order[0] == 0
    assert (np.diff(path.sparsity) < 0).all()
    assert (np.diff(path.objective) < 0).all()
    assert_array_equal((path.mu > 0).sum(axis=1), path.model_order)
    assert path.error[0] > 3 * path.error.min()
    best = path.estimator
    assert best.sparsity == path.sparsity[path.error.argmin()]
    assert_allclose(np.mean((best.predict(X[100:]) - Y[100:]) ** 2), path.error.min())
    alone = SLKLRegressor(kernel=GIVEN["kernel"], tol=1e-8, sparsity=best.sparsity)
    alone.fit(X[:100], Y[:100])
    assert_allclose(alone.predict(X), best.predict(X), atol=1e-3)


def test_values_of_a_path_do_not_depend_on_the_scale_of_y():
    one, other = (
        sparsity_path(X, scale * Y, n_sparsities=5, estimator=SLKLRegressor(**GIVEN))
        for scale in (1.0, 1e4)
    )
    assert_array_equal(one.sparsity, other.sparsity)
    assert_array_equal(one.model_order, other.model_order)
    assert_allclose(other.error, 1e8 * one.error, rtol=1e-3)


def test_path_of_given_values_on_training_data():
    path = sparsity_path(X, Y, sparsities=[0.01, 1.0, 0.1], estimator=SLKLRegressor(**GIVEN))
    assert_array_equal(path.sparsity, [1.0, 0.1, 0.01])
    assert (np.diff(path.error) < 0).all()


def test_path_of_one_value_with_a_model_of_ones_own():
    class Own(SLKLRegressor):
        __init__ = SLKLRegressor.__init__

    path = sparsity_path(X, Y, sparsities=0.1, estimator=Own(**GIVEN))
    assert_array_equal(path.sparsity, [0.1])
    assert isinstance(path.estimator, Own)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sparsities": [0.1, 0.0]}, "above 0"),
        ({"sparsities": -0.1}, "above 0"),
        ({"sparsities": 1.1}, "at most 1"),
        ({"sparsities": "tiny"}, "tiny"),
        ({"sparsities": [0.1, np.nan]}, "NaN"),
        ({"sparsities": []}, "minimum of 1"),
        ({"n_sparsities": 0}, "n_sparsities"),
        ({"span": 1.0}, "span"),
        ({"X_validation": X}, "both"),
        ({"X_validation": X, "y_validation": Y[:5]}, "one target for each"),
        ({"X_validation": X[:, :1], "y_validation": Y}, "features"),
        ({"estimator": SLKLRegressor(sparsity=-1)}, "sparsity"),
        ({"y": np.ones(150)}, "constant"),
        ({"y": np.ones((150, 2))}, "one dimension"),
    ],
)
def test_bad_paths(arguments, message):
    with pytest.raises(ValueError, match=message):
        sparsity_path(X, arguments.pop("y", Y), **arguments)


def test_path_needs_a_regressor_of_ours():
    with pytest.raises(TypeError, match="SLKLRegressor"):
        sparsity_path(X, Y, estimator=SLKLClassifier())


def test_path_is_drawn():
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    path = sparsity_path(X, Y, n_sparsities=5, estimator=SLKLRegressor(**GIVEN))
    display = path.plot()
    for name in ("error", "model_order", "objective"):
        assert_array_equal(display.lines_[name].get_xdata(), path.sparsity)
        assert_array_equal(display.lines_[name].get_ydata(), getattr(path, name))
    with pytest.raises(ValueError, match="three Axes"):
        path.plot(ax=plt.subplots(2)[1])
    plt.close("all")

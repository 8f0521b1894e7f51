"""Objectives of the user's own: weights, score, checked derivatives, steps that nobody gave."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from parsimon import COLKRegressor, CompositionalLearner, kernels

X = np.random.RandomState(0).uniform(-1, 1, size=(300, 1))
Y = np.sin(3 * X[:, 0]) + 1
KERNEL = kernels.Gaussian(0.5)


def squared(values, y):
    return (values - y) ** 2 / 2


def squared_slope(values, y):
    return (values - y)[:, :, None]


def root(values, y, g):
    return np.repeat(np.sqrt(g + 0.1), len(y), axis=0)


def root_slope(values, y, g):
    return np.repeat(0.5 / np.sqrt(g + 0.1), len(y), axis=0)


ROOT = {"inner": squared, "inner_derivative": squared_slope, "outer_gradient": root_slope,
        "outer": root, "kernel": KERNEL, "random_state": 0}  # fmt: skip


@pytest.mark.parametrize("scale", [1e-2, 1.0, 30.0])
@pytest.mark.parametrize("size", [0.3, 1.0, 10.0])
def test_step_and_budget_are_chosen_for_any_scale_of_objective_and_kernel(scale, size):
    given = {**ROOT, "kernel": size * KERNEL, "epochs": 30}
    given |= {
        "outer_gradient": lambda f, y, g: scale * root_slope(f, y, g),
        "outer": lambda f, y, g: scale * root(f, y, g),
    }
    model = CompositionalLearner(**given).fit(X, Y)
    assert np.mean((model.predict(X) - Y) ** 2) < 0.02
    assert model.model_order_ < 40


def test_score_is_the_negative_objective():
    model = CompositionalLearner(**ROOT).fit(X, Y)
    loss = np.mean((model.predict(X) - Y) ** 2) / 2
    assert model.score(X, Y) == pytest.approx(-np.sqrt(loss + 0.1))
    weight = np.r_[np.ones(150), np.zeros(150)]
    assert model.score(X, Y, weight) == pytest.approx(model.score(X[:150], Y[:150]))
    with pytest.raises(ValueError, match="score needs outer"):
        clone(model).set_params(outer=None).fit(X, Y).score(X, Y)


def test_a_sample_of_weight_two_counts_like_two():
    given = {**ROOT, "learning_rate": 0.2, "budget": 1e-4, "shuffle": False, "batch_size": 300}
    weight = np.where(np.arange(300) < 150, 3.0, 1.0)
    both = CompositionalLearner(**given, outer_depends_on_sample=False, average=False)
    weighed = clone(both).fit(X, Y, weight)
    doubled = clone(both).set_params(batch_size=600, learning_rate=0.4)
    doubled.fit(np.vstack([X, X[:150], X[:150]]), np.r_[Y, Y[:150], Y[:150]])
    assert_allclose(weighed.predict(X), doubled.predict(X), atol=1e-3)
    assert np.abs(weighed.predict(X) - clone(both).fit(X, Y).predict(X)).max() > 1e-2


def test_derivatives_are_checked():
    CompositionalLearner(**ROOT, check=True).fit(X, Y)
    wrong = {
        "inner_derivative": lambda f, y: 2 * squared_slope(f, y),
        "outer_gradient": lambda f, y, g: -root_slope(f, y, g),
        "direct_gradient": lambda f, y, g: f,
    }
    for name, function in wrong.items():
        model = CompositionalLearner(**{**ROOT, name: function}, check=True)
        with pytest.raises(ValueError, match=f"{name} is not the derivative of"):
            model.fit(X, Y)
        assert not hasattr(model, "dictionary_")


@pytest.mark.parametrize("direct", [None, lambda f, y, g: f])
def test_a_check_that_needs_the_outer_function_says_so(direct):
    given = {**ROOT, "outer": None, "direct_gradient": direct}
    names = "outer_gradient was" if direct is None else "outer_gradient and direct_gradient were"
    with pytest.warns(UserWarning, match=f"{names} not checked: that needs outer"):
        CompositionalLearner(**given, check=True).fit(X, Y)


def test_no_half_is_wasted_where_the_outer_function_does_not_depend_on_the_sample():
    whole = CompositionalLearner(**ROOT, outer_depends_on_sample=False, budget=0.0)
    half = CompositionalLearner(**ROOT, budget=0.0)
    assert whole.fit(X, Y).model_order_ == 300
    assert half.fit(X, Y).model_order_ < 160
    with pytest.raises(ValueError, match="leave one of the two out"):
        whole.set_params(direct_gradient=lambda f, y, g: f).fit(X, Y)


def test_theta_and_xi_of_different_laws():
    """L = E_theta (f - 1)^2 / 2 + E_xi f: the second pulls down where its samples are."""
    given = {
        "inner": lambda f, y: f, "inner_derivative": lambda f, y: np.ones((len(f), 1, 1)),
        "outer_gradient": lambda f, y, g: np.ones((len(f), 1)),
        "direct_gradient": lambda f, y, g: f - 1, "kernel": kernels.Gaussian(0.2),
        "regularization": 0.1, "epochs": 30, "random_state": 0,
    }  # fmt: skip
    random = np.random.RandomState(1)
    left, right = -random.uniform(size=(300, 1)), random.uniform(size=(300, 1))
    model = CompositionalLearner(**given).fit(left, inner_X=right)
    assert model.predict([[-0.5]])[0] > 0.5
    assert model.predict([[0.5]])[0] < -1
    stream = clone(model)
    for start in range(0, 300, 100):
        block = slice(start, start + 100)
        stream.partial_fit(left[block], inner_X=right[block])
    assert stream.predict([[-0.5]])[0] > 0 > stream.predict([[0.5]])[0]
    for bad, message in (
        ({"inner_X": right[:5]}, "as many inner_X as X"),
        ({"inner_y": right}, "inner_y belongs to inner_X"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(left, **bad)
    with pytest.raises(ValueError, match="batch_size must be even"):
        model.set_params(batch_size=3).fit(left, inner_X=right)


@pytest.mark.parametrize("risk", ["semideviation", "moments"])
def test_one_sample_at_a_time_keeps_the_risk(risk):
    """theta = xi: the two halves cancelled, and the risk weight made a difference of 1e-15."""
    given = {"kernel": KERNEL, "solver": "sgd", "batch_size": 1, "learning_rate": 0.1,
             "budget": 1e-3, "average": False}  # fmt: skip
    noisy = Y + np.random.RandomState(2).exponential(size=300)
    with_risk, without = (
        COLKRegressor(risk, risk_weight=w, **given).partial_fit(X, noisy) for w in (1.0, 0.0)
    )
    assert np.abs(with_risk.predict(X) - without.predict(X)).max() > 0.05
    blocks = COLKRegressor(risk, risk_weight=1.0, **given).partial_fit(X[:100], noisy[:100])
    for i in range(100, 300):
        blocks.partial_fit(X[i : i + 1], noisy[i : i + 1])
    alone = COLKRegressor(risk, risk_weight=1.0, **given).partial_fit(X[:100], noisy[:100])
    alone.partial_fit(X[100:], noisy[100:])
    assert_allclose(blocks.predict(X), alone.predict(X), rtol=0, atol=1e-12)


def test_the_sample_before_is_in_the_file(tmp_path):
    import parsimon

    given = {"kernel": KERNEL, "solver": "sgd", "batch_size": 1, "learning_rate": 0.1}
    model = COLKRegressor(**given, budget=1e-3).partial_fit(X[:100], Y[:100])
    model.save(tmp_path / "m.parsimon")
    again = parsimon.load(tmp_path / "m.parsimon")
    for each in (model, again):
        each.partial_fit(X[100:], Y[100:])
    assert np.array_equal(model.weights_, again.weights_)

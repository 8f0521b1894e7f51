"""SLKL with columns of several kernels, with kernel values that are given, with one mu for all."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.model_selection import cross_val_score

from parsimon import SLKLClassifier, SLKLRegressor, SLKLRegressorCV, kernels, load
from parsimon.datasets import make_multidist
from parsimon.slkl._problem import SeparateKernels

WIDE, NARROW = kernels.Gaussian(2.0), kernels.Gaussian(0.1)
X = np.random.RandomState(0).uniform(-3, 3, size=(150, 1))
SMOOTH, ROUGH = np.sin(X[:, 0]), np.sin(25 * X[:, 0])
NOISE = 0.05 * np.random.RandomState(1).normal(size=150)
EXACT = {"tol": 1e-9, "sparsity": 1e-4, "random_state": 0}


def test_each_kernel_has_the_share_that_the_targets_give_it():
    model = SLKLRegressor(kernel=WIDE + NARROW, separate=True, sparsity=0.01)
    shares = [
        model.fit(X, y + NOISE).kernel_shares_[1] for y in (SMOOTH, 0.5 * SMOOTH + ROUGH, ROUGH)
    ]
    assert shares[0] < 0.05 < 0.5 < shares[1] < 0.95 < shares[2]
    assert_allclose(model.kernel_shares_.sum(), 1)
    assert_array_equal(SLKLRegressor(kernel=WIDE).fit(X, SMOOTH).kernel_shares_, [1.0])


def test_columns_of_several_kernels_are_a_lasso_on_all_of_them():
    model = SLKLRegressor(kernel=WIDE + NARROW, separate=True, n_columns=40, center=False, **EXACT)
    model.fit(X, SMOOTH + 0.3 * ROUGH)
    assert model.mu_.shape == model.columns_.shape == (80,)
    points = X[model.columns_[:40]]
    C = np.hstack([WIDE(X, points), NARROW(X, points)])  # k(x, x) = 1
    y = SMOOTH + 0.3 * ROUGH
    tau = np.sqrt(1e-4) * np.abs(C.T @ y).max()
    w = np.zeros(80)
    used = model.mu_ > 0
    w[used] = model.weights_[:, 0]
    slack = C.T @ (y - C @ w)
    assert_allclose(slack[used], tau * np.sign(w[used]), rtol=1e-3)
    assert np.abs(slack).max() <= tau * (1 + 1e-3)
    assert_allclose(model.predict(X), C @ w, atol=1e-9)
    assert_allclose(model.mu_[used], np.abs(w[used]) / tau, rtol=1e-3)
    # The learned kernel is the paper's, with the columns of both.
    features = model.transform(X)
    assert_allclose(features @ features.T, (C * model.mu_) @ C.T, atol=1e-8)
    parts = sum(np.asarray(part(X)) for part in model.expansions_ if part.model_order)
    assert_allclose(parts[:, 0], model.predict(X), atol=1e-9)


def test_a_factor_before_several_kernels_is_multiplied_out(tmp_path):
    """A column is scaled by its norm, not by the factor: the model is that of a + b."""
    y = SMOOTH + 0.3 * ROUGH + NOISE
    given = {"separate": True, "n_columns": 50, **EXACT}
    sums = (WIDE + NARROW, 2.0 * (WIDE + NARROW), (WIDE + NARROW) * (3.0 * kernels.Constant()))
    models = [SLKLRegressor(kernel=kernel, **given).fit(X, y) for kernel in sums]
    for model, factor in zip(models, (1, 2, 3), strict=True):
        assert len(model.kernel_shares_) == 2
        assert (model.kernel_shares_ > 0).all()
        # mu belongs to columns in units of the kernel.
        assert_allclose(model.predict(X), models[0].predict(X), atol=1e-3)
        assert len(model.mu_) == 100
        assert factor == round(model.kernel_(X[:1])[0, 0] / 2)
    nested = SLKLRegressor(kernel=2.0 * (WIDE + NARROW) + kernels.Linear(), **given).fit(X, y)
    assert len(nested.kernel_shares_) == 3
    nested.save(tmp_path / "nested.parsimon")
    again = load(tmp_path / "nested.parsimon")
    assert_array_equal(again.predict(X), nested.predict(X))
    assert_array_equal(pickle.loads(pickle.dumps(nested)).predict(X), nested.predict(X))


def test_a_file_in_which_a_factor_was_not_multiplied_out_is_read_as_it_was():
    kernel = 2.0 * (WIDE + NARROW)
    whole = SeparateKernels(kernel, (kernel,), X[:3], np.ones((3, 1)), np.zeros(3, dtype=int))
    archive = whole.to_archive()
    older = {name: archive[name] for name in archive.keys() if name != "separate.kernels"}  # noqa: SIM118
    again = SeparateKernels.from_archive(older, kernel)
    assert_array_equal(again.predict(X), whole.predict(X))


@pytest.mark.parametrize("kernel", [WIDE, 2.0 * WIDE, "rbf"])
def test_a_kernel_without_parts_is_not_separated_in_silence(kernel):
    with pytest.raises(ValueError, match="separate=True needs a kernel with parts"):
        SLKLRegressor(kernel=kernel, separate=True).fit(X, SMOOTH)


@pytest.mark.parametrize("cls", [SLKLRegressor, SLKLClassifier])
def test_a_model_of_several_kernels_is_in_its_file(cls, tmp_path):
    y = SMOOTH + NOISE if cls is SLKLRegressor else SMOOTH > 0
    model = cls(kernel=WIDE + NARROW, separate=True, n_columns=30, random_state=0).fit(X, y)
    model.save(tmp_path / "several.parsimon")
    for copy in (load(tmp_path / "several.parsimon"), pickle.loads(pickle.dumps(model))):
        assert_array_equal(copy.predict(X), model.predict(X))
        assert_array_equal(copy.kernel_shares_, model.kernel_shares_)
        assert_array_equal(copy.transform(X), model.transform(X))
    assert (model.distance(X) <= np.sqrt(2) + 1e-9).all()
    with pytest.raises(ValueError, match="expansions_ has all of them"):
        _ = model.expansion_


def test_kernel_values_that_are_given_make_the_same_model(tmp_path):
    y, kernel = SMOOTH + 0.3 * ROUGH + NOISE, 3.0 * NARROW + kernels.Linear()
    given = {"n_columns": 60, **EXACT}
    model = SLKLRegressor(kernel="precomputed", **given).fit(kernel(X), y)
    same = SLKLRegressor(kernel=kernel, **given).fit(X, y)
    others = np.linspace(-3, 3, 40)[:, None]
    values = kernel(others, X)
    assert_array_equal(model.support_, same.support_)
    assert_allclose(model.predict(values), same.predict(others), atol=1e-5)
    assert_allclose(model.transform(values), same.transform(others), rtol=1e-4, atol=1e-6)
    model.save(tmp_path / "given.parsimon")
    assert_array_equal(load(tmp_path / "given.parsimon").predict(values), model.predict(values))


def test_cross_validation_takes_rows_and_columns_of_given_kernel_values():
    y = SMOOTH + NOISE
    scores = [
        cross_val_score(SLKLRegressor(kernel=kernel, random_state=0), samples, y, cv=3)
        for kernel, samples in (("precomputed", WIDE(X)), (WIDE, X))
    ]
    assert_allclose(*scores, atol=1e-3)
    chosen = [
        SLKLRegressorCV(SLKLRegressor(kernel=kernel), n_sparsities=5, cv=3, random_state=0)
        .fit(samples, y)
        .errors_
        for kernel, samples in (("precomputed", WIDE(X)), (WIDE, X))
    ]
    assert_allclose(*chosen, rtol=1e-3)


def test_joint_weights_are_the_minimum_of_the_group_form():
    Y = np.column_stack([SMOOTH + NOISE, 2 * SMOOTH + ROUGH, ROUGH])
    model = SLKLRegressor(kernel=kernels.Gaussian(0.5), n_columns=25, joint=True, **EXACT)
    model.fit(X, Y)
    assert model.mu_.shape == (25,)
    assert 0 <= model.dual_gap_ <= 1e-9 * model.objective_[-1]
    points, centred = X[model.columns_], Y - Y.mean(axis=0)
    C = kernels.Gaussian(0.5)(X, points)
    nu = 1e-4 * (np.linalg.norm(C.T @ centred, axis=1) ** 2).max()

    def objective(mu):
        kernel = np.eye(len(X)) + (C * mu) @ C.T
        solved = np.linalg.solve(kernel, centred)
        value = np.sum(centred * solved) + nu * mu.sum()
        return value, nu - np.sum((C.T @ solved) ** 2, axis=1)

    assert_allclose(objective(model.mu_)[0], model.objective_[-1], rtol=1e-6)
    best = minimize(
        objective, model.mu_ + 1e-6, jac=True, method="L-BFGS-B", bounds=25 * [(0, None)]
    )
    assert model.objective_[-1] <= best.fun * (1 + 1e-6)
    # And the function is the ridge regression with that kernel.
    kernel = (C * model.mu_) @ C.T
    fitted = kernel @ np.linalg.solve(kernel + np.eye(len(X)), centred) + Y.mean(axis=0)
    assert_allclose(model.predict(X), fitted, atol=1e-5)


def test_joint_outputs_share_their_points():
    samples, labels = make_multidist(900, random_state=0)
    # At the same error, one mu has fewer points in all.
    apart, joint = (
        SLKLClassifier(n_columns=150, joint=joint, sparsity=1e-5, random_state=0).fit(
            samples[:500], labels[:500]
        )
        for joint in (False, True)
    )
    scores = [model.score(samples[500:], labels[500:]) for model in (apart, joint)]
    assert joint.model_order_ < 0.8 * apart.model_order_
    assert scores[1] > scores[0] - 0.02
    single = [
        SLKLRegressor(joint=joint, n_columns=40, **EXACT).fit(X, SMOOTH + NOISE).predict(X)
        for joint in (False, True)
    ]
    assert_allclose(*single, atol=1e-4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel": "precomputed", "columns": "leverage"}, "looks at samples"),
        ({"kernel": "precomputed", "separate": True}, "needs a kernel with parts"),
        ({"kernel": "precomputed"}, "the kernel of all pairs of training samples"),
        ({"joint": True, "store_columns": False}, "joint=True needs the products"),
        ({"joint": True, "warm_start": True}, "joint=True begins anew"),
        ({"separate": 1}, "separate must be True or False"),
    ],
)
def test_what_does_not_go_together(settings, message):
    with pytest.raises(ValueError, match=message):
        SLKLRegressor(**settings).fit(X, SMOOTH)

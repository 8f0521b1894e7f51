"""SLKL: its sparsity by cross-validation, which columns there are, and the kernel it learns."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold

import parsimon
from parsimon import SLKLClassifier, SLKLRegressor, SLKLRegressorCV, kernels, sparsity_path
from parsimon.datasets import make_sinc
from parsimon.slkl._columns import drawn_columns

X, Y = make_sinc(200, random_state=0)
MODEL = SLKLRegressor(kernel=kernels.Gaussian(1.0), random_state=0)
GIVEN = {"n_sparsities": 10, "random_state": 0}


def test_errors_are_those_of_a_path_in_each_fold():
    folds = KFold(3, shuffle=True, random_state=1)
    model = SLKLRegressorCV(MODEL, n_sparsities=6, cv=folds).fit(X, Y)
    for i, (train, test) in enumerate(folds.split(X)):
        path = sparsity_path(
            X[train], Y[train], n_sparsities=6, X_validation=X[test], y_validation=Y[test],
            estimator=MODEL,
        )  # fmt: skip
        assert_array_equal(model.errors_[:, i], path.error)
        assert_array_equal(model.sparsities_, path.sparsity)
    assert model.sparsity_ == model.sparsities_[model.errors_.mean(axis=1).argmin()]
    alone = clone(MODEL).set_params(sparsity=model.sparsity_).fit(X, Y)
    assert_array_equal(model.predict(X), alone.predict(X))


def test_one_standard_error_has_fewer_points_and_is_hardly_worse():
    best = SLKLRegressorCV(MODEL, **GIVEN).fit(X, Y)
    sparse = SLKLRegressorCV(MODEL, rule="one_standard_error", **GIVEN).fit(X, Y)
    assert_array_equal(sparse.errors_, best.errors_)
    assert sparse.sparsity_ > best.sparsity_
    assert sparse.best_estimator_.model_order_ < best.best_estimator_.model_order_
    means = best.errors_.mean(axis=1)
    deviation = best.errors_[means.argmin()].std(ddof=1) / np.sqrt(5)
    chosen = list(best.sparsities_).index(sparse.sparsity_)
    assert means[chosen] <= means.min() + deviation
    assert (means[:chosen] > means.min() + deviation).all()


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_the_choice_does_not_depend_on_the_scale_of_y(scale):
    one, other = (SLKLRegressorCV(MODEL, **GIVEN).fit(X, s * Y) for s in (1.0, scale))
    assert one.sparsity_ == other.sparsity_
    assert_allclose(other.predict(X), scale * one.predict(X), rtol=1e-6, atol=1e-9 * scale)


def test_it_is_better_than_the_default_where_that_is_off():
    X, y = load_diabetes(return_X_y=True)
    train, test = slice(0, 300), slice(300, None)
    model = SLKLRegressor(random_state=0)
    chosen = SLKLRegressorCV(model, **GIVEN).fit(X[train], y[train])
    assert chosen.score(X[test], y[test]) > model.fit(X[train], y[train]).score(X[test], y[test])


def test_bad_settings_of_cross_validation():
    for settings, error, message in (
        ({"rule": "two"}, ValueError, "rule must be one of"),
        ({"n_sparsities": 0}, ValueError, "n_sparsities"),
        ({"estimator": SLKLClassifier()}, TypeError, "estimator must be an SLKLRegressor"),
        ({"sparsities": [2.0]}, ValueError, "above 0 and at most 1"),
    ):
        with pytest.raises(error, match=message):
            SLKLRegressorCV(**settings).fit(X, Y)


@pytest.mark.parametrize("columns", ["random", "kmeans++", "leverage"])
def test_columns_are_drawn(columns):
    model = clone(MODEL).set_params(n_columns=40, columns=columns).fit(X, Y)
    assert len(np.unique(model.columns_)) == 40
    assert_array_equal(clone(model).fit(X, Y).columns_, model.columns_)
    assert model.score(X, Y) > 0.5


@pytest.mark.parametrize("columns", ["kmeans++", "leverage"])
def test_columns_that_are_chosen_with_care_see_a_small_cluster(columns):
    random = np.random.RandomState(0)
    X = np.r_[0.1 * random.randn(985, 2), 5 + 0.1 * random.randn(15, 2)]
    y = (np.arange(1000) >= 985).astype(float)
    seen = {"random": 0, columns: 0}
    for way in seen:
        for seed in range(5):
            model = SLKLRegressor(kernel=kernels.Gaussian(1.0), n_columns=15, columns=way,
                                  random_state=seed).fit(X, y)  # fmt: skip
            seen[way] += (model.columns_ >= 985).sum()
    assert seen[columns] > 2 * seen["random"]


def test_equal_samples_are_no_choice():
    same = np.repeat(X[:10], 20, axis=0)
    for columns in ("kmeans++", "leverage"):
        model = clone(MODEL).set_params(n_columns=50, columns=columns).fit(same, Y)
        assert len(np.unique(model.columns_)) == 50


def test_columns_are_given():
    indices = [5, 3, 190]
    model = clone(MODEL).set_params(columns=indices).fit(X, Y)
    assert_array_equal(model.columns_, indices)
    assert set(model.support_) <= set(indices)
    by_function = clone(MODEL).set_params(columns=lambda X: np.argsort(X[:, 0])[::50]).fit(X, Y)
    assert_array_equal(by_function.columns_, np.argsort(X[:, 0])[::50])
    by_flags = clone(MODEL).set_params(columns=lambda X: X[:, 0] > 0).fit(X, Y)
    assert_array_equal(by_flags.columns_, np.flatnonzero(X[:, 0] > 0))
    for bad in ([0, 0], [-1], [200], [0.5], []):
        with pytest.raises(ValueError, match="columns must be different indices of the 200"):
            clone(MODEL).set_params(columns=bad).fit(X, Y)
    with pytest.raises(ValueError, match="columns must be one of 'random'"):
        clone(MODEL).set_params(columns="all").fit(X, Y)


def test_given_columns_are_the_same_samples_in_every_fold():
    """What is outside of a fold is not there to be a column; numbers do not move to others."""
    left = np.flatnonzero(X[:, 0] < 0)
    folds = KFold(4, shuffle=True, random_state=0)
    model = SLKLRegressorCV(clone(MODEL).set_params(columns=left), n_sparsities=5, cv=folds)
    model.fit(X, Y)
    for i, (train, test) in enumerate(folds.split(X)):
        inside = np.flatnonzero(X[train, 0] < 0)
        path = sparsity_path(
            X[train], Y[train], n_sparsities=5, X_validation=X[test], y_validation=Y[test],
            estimator=clone(MODEL).set_params(columns=inside),
        )  # fmt: skip
        assert_allclose(model.errors_[:, i], path.error, rtol=1e-9)
    assert_array_equal(model.best_estimator_.columns_, left)
    with pytest.raises(ValueError, match="trains on none of the samples that columns names"):
        clone(model).set_params(estimator__columns=[3], cv=KFold(4)).fit(X, Y)


def test_cross_validation_of_constant_targets_predicts_the_constant():
    for constant in (0.0, 3.0):
        model = SLKLRegressorCV(MODEL, n_sparsities=4, random_state=0)
        model.fit(X, np.full(len(X), constant))
        assert_allclose(model.predict(X), constant)


def test_samples_of_weight_zero_have_no_part_in_cross_validation():
    random = np.random.RandomState(5)
    weight, spoilt = np.ones(len(X)), Y.copy()
    outliers = random.choice(len(X), 40, replace=False)
    weight[outliers], spoilt[outliers] = 0, 100
    model = SLKLRegressorCV(MODEL, **GIVEN).fit(X, spoilt, sample_weight=weight)
    assert model.errors_.min() < 0.1
    assert model.score(*make_sinc(300, snr_db=None, random_state=1)) > 0.9
    # A fold whose samples all have the weight 0 judges nothing.
    in_order = SLKLRegressorCV(MODEL, n_sparsities=10, cv=KFold(5))
    weight, spoilt = np.r_[np.zeros(40), np.ones(160)], np.r_[np.full(40, 100.0), Y[40:]]
    in_order.fit(X, spoilt, sample_weight=weight)
    best = in_order.errors_[:, 1:].mean(axis=1).argmin()
    assert in_order.sparsity_ == in_order.sparsities_[best]
    ones = SLKLRegressorCV(MODEL, **GIVEN).fit(X, Y, sample_weight=np.ones(len(X)))
    assert_allclose(ones.errors_, SLKLRegressorCV(MODEL, **GIVEN).fit(X, Y).errors_, rtol=1e-6)


def test_what_was_chosen_transforms_and_is_saved(tmp_path):
    model = SLKLRegressorCV(MODEL, **GIVEN).fit(X, Y)
    assert_array_equal(model.transform(X), model.best_estimator_.transform(X))
    model.save(tmp_path / "best.parsimon")
    again = parsimon.load(tmp_path / "best.parsimon")
    assert isinstance(again, SLKLRegressor)
    assert_array_equal(again.predict(X), model.predict(X))


def test_leverages_are_those_of_all_samples_whatever_the_blocks(monkeypatch):
    whole = clone(MODEL).set_params(n_columns=20, columns="leverage").fit(X, Y)
    monkeypatch.setattr("parsimon.slkl._columns._BLOCK", 7)
    blocks = clone(MODEL).set_params(n_columns=20, columns="leverage").fit(X, Y)
    assert_array_equal(blocks.columns_, whole.columns_)


def test_leverages_leave_room_for_control_c():
    """No kernel is computed at more samples than a moment takes."""
    sizes = []

    class Counting(kernels.Gaussian):
        def __call__(self, points, others=None):
            sizes.append(len(points))
            return super().__call__(points, others)

    many = np.random.RandomState(0).uniform(size=(9000, 1))
    drawn_columns("leverage", many, Counting(0.3), 10, np.random.RandomState(0))
    assert sum(sizes) == 500 + 9000
    assert max(sizes) <= 1024


def test_given_columns_are_in_the_file(tmp_path):
    model = clone(MODEL).set_params(columns=[5, 3, 190]).fit(X, Y)
    model.save(tmp_path / "m.parsimon")
    again = parsimon.load(tmp_path / "m.parsimon")
    assert list(again.columns) == [5, 3, 190]
    assert_array_equal(again.predict(X), model.predict(X))


def test_transform_is_the_learned_kernel():
    model = clone(MODEL).set_params(n_columns=60).fit(X, Y)
    features = model.transform(X)
    assert features.shape == (200, model.model_order_)
    points = X[model.columns_]
    C = model.kernel_(X, points) / np.sqrt(model.kernel_.diag(points))
    assert_allclose(features @ features.T, (C * model.mu_) @ C.T, atol=1e-9)
    # Ridge regression with that kernel is the function itself.
    learned = features @ features.T
    centred = Y - Y.mean()
    alpha = np.linalg.solve(learned + model.regularization * np.eye(200), centred)
    assert_allclose(learned @ alpha + Y.mean(), model.predict(X), atol=1e-6)
    several = clone(model).fit(X, np.column_stack([Y, Y**2]))
    assert several.transform(X[:3]).shape == (3, several.model_order_)

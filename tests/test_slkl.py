"""SLKL: the objective, its minimum, the function it gives, for labels, from files."""

import copy
import pickle
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize, sparse
from sklearn.exceptions import ConvergenceWarning

import parsimon
from parsimon import SLKLClassifier, SLKLRegressor, kernels, komp
from parsimon.datasets import make_multidist, make_sinc

X, Y = make_sinc(150, random_state=0)
GIVEN = {"kernel": kernels.Gaussian(1.0), "n_columns": 60, "nu": 0.01, "random_state": 0}


class Dense:
    """(14) and (20) with the n x n matrix that the package never forms."""

    def __init__(self, model, X, y):
        points = X[model.columns_]
        kernel = model.expansion_.kernel
        self.C = kernel(X, points) / np.sqrt(kernel.diag(points))
        self.y = y - model.intercept_
        self.ridge, self.nu = model.regularization, model.nu

    def inverse_times_y(self, mu):
        K = (self.C * mu) @ self.C.T / self.ridge + np.eye(len(self.y))
        return np.linalg.solve(K, self.y)

    def objective(self, mu):
        return self.y @ self.inverse_times_y(mu) + self.nu * mu.sum()

    def gradient(self, mu):
        return self.nu - (self.C.T @ self.inverse_times_y(mu)) ** 2 / self.ridge

    def weights(self, mu):
        return mu * (self.C.T @ self.inverse_times_y(mu)) / self.ridge

    def minimum(self):
        found = optimize.minimize(
            lambda mu: (self.objective(mu), self.gradient(mu)),
            np.zeros(self.C.shape[1]),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None)] * self.C.shape[1],
            options={"maxiter": 20000, "maxfun": 40000, "ftol": 1e-15, "gtol": 1e-10},
        )
        return found.fun


# -- the minimum ---------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("store", [True, False])
def test_optimality_conditions_at_tolerance_zero(width, store):
    model = SLKLRegressor(
        **{**GIVEN, "kernel": kernels.Gaussian(width)}, tol=0, store_columns=store
    ).fit(X, Y)
    gradient = Dense(model, X, Y).gradient(model.mu_) / model.nu
    used = model.mu_ > 0
    assert 0 < used.sum() < 60
    assert np.abs(gradient[used]).max() < 1e-6
    assert gradient[~used].min() > -1e-6


@pytest.mark.parametrize("settings", [{}, {"center": False}, {"nu": 1.0}, {"tol": 1e-3}])
def test_minimum_is_that_of_a_generic_solver(settings):
    model = SLKLRegressor(**{**GIVEN, "tol": 0, **settings}).fit(X, Y)
    dense = Dense(model, X, Y)
    assert_allclose(model.objective_[-1], dense.objective(model.mu_), rtol=1e-10)
    minimum = dense.minimum()
    above = model.objective_[-1] - minimum
    assert above <= model.dual_gap_ + 1e-9 * minimum
    assert above <= max(model.tol, 1e-7) * minimum


@pytest.mark.parametrize("selection", ["uniform", "shrinking"])
def test_exact_steps_never_increase_the_objective(selection):
    for seed in range(5):
        model = SLKLRegressor(
            **{**GIVEN, "random_state": seed}, selection=selection, tol=1e-8, max_iter=5000
        ).fit(X, Y)
        objective = model.objective_
        assert len(objective) == model.n_iter_ + 1
        assert_allclose(objective[0], np.sum((Y - Y.mean()) ** 2))
        assert (np.diff(objective) <= 1e-12 * objective[0]).all()


def test_all_ways_lead_to_the_same_function():
    models = [
        SLKLRegressor(
            **GIVEN, selection=selection, step=step, store_columns=store, tol=1e-12, max_iter=10**5
        ).fit(X, Y)
        for selection in ("shrinking", "uniform")
        for step in ("exact", "newton")
        for store in (True, False)
    ]
    for model in models[1:]:
        assert_array_equal(model.columns_, models[0].columns_)
        assert_allclose(model.objective_[-1], models[0].objective_[-1], rtol=1e-7)
        assert_allclose(model.predict(X), models[0].predict(X), atol=1e-3)


def test_predictions_are_those_of_the_learned_kernel():
    model = SLKLRegressor(**GIVEN).fit(X, Y)
    weights = Dense(model, X, Y).weights(model.mu_)
    points = X[model.columns_]
    expected = kernels.Gaussian(1.0)(X, points) @ weights + Y.mean()
    assert_allclose(model.predict(X), expected, atol=1e-8)
    assert_allclose(model.expansion_(X)[:, 0] + model.intercept_, model.predict(X))
    assert_array_equal(model.support_, model.columns_[model.mu_ > 0])
    assert_array_equal(model.dictionary_, X[model.support_])


def test_the_kernels_own_scale_does_not_enter_the_columns():
    plain = SLKLRegressor(**GIVEN).fit(X, Y)
    scaled = SLKLRegressor(**{**GIVEN, "kernel": 9.0 * kernels.Gaussian(1.0), "nu": 9 * 0.01}).fit(
        X, Y
    )
    assert_allclose(scaled.predict(X), plain.predict(X), atol=1e-8)


def test_only_the_product_of_regularization_and_sparsity_matters():
    one = SLKLRegressor(**{**GIVEN, "nu": 0.08}, tol=1e-10).fit(X, Y)
    other = SLKLRegressor(**{**GIVEN, "nu": 0.01}, regularization=8.0, tol=1e-10).fit(X, Y)
    assert_allclose(other.predict(X), one.predict(X), atol=1e-10)
    assert_allclose(other.mu_, 8 * one.mu_, rtol=1e-8)
    dense = Dense(other, X, Y)
    assert_allclose(other.objective_[-1], dense.objective(other.mu_), rtol=1e-10)


def test_a_solution_is_a_lasso():
    from sklearn.linear_model import Lasso

    model = SLKLRegressor(**GIVEN, tol=1e-12).fit(X, Y)
    dense = Dense(model, X, Y)
    lasso = Lasso(
        alpha=np.sqrt(model.nu) / len(X), fit_intercept=False, tol=1e-10, max_iter=10**6
    ).fit(dense.C, dense.y)
    assert_allclose(lasso.predict(dense.C), model.predict(X) - model.intercept_, atol=1e-4)


# -- columns -------------------------------------------------------------------------------------


def test_columns():
    assert len(SLKLRegressor(**{**GIVEN, "n_columns": 0.2}).fit(X, Y).columns_) == 30
    everything = SLKLRegressor(kernel=GIVEN["kernel"]).fit(X, Y)
    assert_array_equal(everything.columns_, np.arange(150))
    one, again, other = (
        SLKLRegressor(**{**GIVEN, "random_state": seed}).fit(X, Y).columns_ for seed in (1, 1, 2)
    )
    assert_array_equal(one, again)
    assert len(np.unique(one)) == 60
    assert not np.array_equal(one, other)


def test_more_columns_than_samples_are_all():
    with pytest.warns(UserWarning, match="only 150 samples") as caught:
        model = SLKLRegressor(**{**GIVEN, "n_columns": 151}).fit(X, Y)
    assert caught[0].filename == __file__
    assert len(model.columns_) == 150


def test_collinear_columns():
    twice = np.vstack([X, X, X + 1e-12])
    y = np.tile(Y, 3)
    for store in (True, False):
        model = SLKLRegressor(kernel=GIVEN["kernel"], store_columns=store, tol=1e-9).fit(twice, y)
        assert np.isfinite(model.mu_).all()
        assert model.dual_gap_ <= 1e-8 * model.objective_[-1]
        assert model.score(twice, y) > 0.8


def test_columns_of_zeros():
    model = SLKLRegressor(kernel="linear").fit(
        np.vstack([np.zeros((5, 2)), X]), np.r_[np.ones(5), Y]
    )
    assert (model.mu_[:5] == 0).all()


@pytest.mark.filterwarnings("error")
def test_constant_targets_are_predicted():
    for constant in (0.0, 7.5, -1e150):
        model = SLKLRegressor(**GIVEN).fit(X, np.full(150, constant))
        assert_allclose(model.predict(X), constant)
    with np.errstate(all="raise"):
        model = SLKLRegressor(**GIVEN, center=False).fit(X, np.zeros(150))
    assert model.model_order_ == 0


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 10.0, 1e5])
def test_the_scale_of_y_does_not_matter(scale):
    """With the absolute price, R^2 went from .51 to -1.07 as y was multiplied by .001 to 10."""
    given = {name: value for name, value in GIVEN.items() if name != "nu"}
    one = SLKLRegressor(**given).fit(X, Y)
    other = SLKLRegressor(**given).fit(X, scale * Y)
    assert_array_equal(other.support_, one.support_)
    assert_allclose(other.predict(X), scale * one.predict(X), rtol=1e-6, atol=1e-8 * scale)
    both = SLKLRegressor(**given).fit(X, np.column_stack([Y, scale * Y]))
    assert_allclose(both.predict(X)[:, 1], scale * one.predict(X), rtol=1e-6, atol=1e-8 * scale)


def test_sparsity_is_a_fraction_of_the_largest_useful_price():
    given = {name: value for name, value in GIVEN.items() if name != "nu"}
    with pytest.warns(ConvergenceWarning, match="sparsity is 1, and must be below 1 "):
        assert SLKLRegressor(**given, sparsity=1.0).fit(X, Y).model_order_ == 0
    assert SLKLRegressor(**given, sparsity=0.99).fit(X, Y).model_order_ > 0
    orders = [SLKLRegressor(**given, sparsity=s).fit(X, Y).model_order_ for s in (0.1, 1e-3, 1e-5)]
    assert orders == sorted(orders)
    model = SLKLRegressor(**given, sparsity=0.01).fit(X, Y)
    C = Dense(model.set_params(nu=1.0), X, Y).C
    nu = 0.01 * np.abs(C.T @ (Y - Y.mean())).max() ** 2
    assert_allclose(SLKLRegressor(**given, nu=nu).fit(X, Y).mu_, model.mu_, rtol=1e-6)


def test_too_large_a_sparsity_predicts_the_mean_and_warns():
    model = SLKLRegressor(**{**GIVEN, "nu": 1e9})
    with pytest.warns(ConvergenceWarning, match="No column is used.*must be below") as caught:
        model.fit(X, Y)
    assert caught[0].filename == __file__
    limit = float(str(caught[0].message).split("below ")[1].split()[0])
    assert (model.mu_ == 0).all()
    assert_allclose(model.predict(X), Y.mean())
    assert SLKLRegressor(**{**GIVEN, "nu": 0.98 * limit}).fit(X, Y).model_order_ > 0
    with pytest.warns(ConvergenceWarning, match="No column"):
        SLKLRegressor(**{**GIVEN, "nu": 1.02 * limit}).fit(X, Y)


def test_unfinished_optimisation_warns():
    with pytest.warns(ConvergenceWarning, match="not converged after 2 epochs"):
        model = SLKLRegressor(**GIVEN, max_iter=2, selection="uniform", tol=1e-9).fit(X, Y)
    assert model.n_iter_ == 2


def test_several_targets_are_learned_independently():
    targets = np.column_stack([Y, X[:, 0], np.cos(X[:, 1])])
    model = SLKLRegressor(**GIVEN, tol=1e-9).fit(X, targets)
    assert model.mu_.shape == (60, 3)
    for k in range(3):
        alone = SLKLRegressor(**GIVEN, tol=1e-9).fit(X, targets[:, k])
        assert_allclose(model.predict(X)[:, k], alone.predict(X), atol=1e-6)
    assert_array_equal(model.support_, model.columns_[(model.mu_ > 0).any(axis=1)])


def test_sparse_samples_are_as_dense_ones():
    dense = SLKLRegressor(**GIVEN).fit(X, Y)
    model = SLKLRegressor(**GIVEN).fit(sparse.csr_matrix(X), Y)
    assert_array_equal(model.predict(sparse.csr_matrix(X)), dense.predict(X))


def test_far_from_the_origin():
    near = SLKLRegressor(**GIVEN).fit(X, Y)
    far = SLKLRegressor(**GIVEN).fit(X + 2.0**26, Y)
    rounded = (X + 2.0**26) - 2.0**26
    assert_allclose(far.predict(X + 2.0**26), near.predict(rounded), atol=1e-4)


def test_expansions_of_slkl_are_compressed_by_komp():
    model = SLKLRegressor(**GIVEN).fit(X, Y)
    smaller, report = komp(model.expansion_, 0.1)
    assert smaller.model_order < model.model_order_
    assert np.abs(smaller(X) - model.expansion_(X)).max() <= report.error + 1e-9


# -- memory --------------------------------------------------------------------------------------

PEAK = """
    import numpy as np, resource, sys
    import parsimon
    rows = int(sys.argv[1])
    random = np.random.RandomState(0)
    X = random.normal(size=(rows, 3)); y = np.sin(2 * X[:, 0]) + 0.1 * random.normal(size=rows)
    model = parsimon.SLKLRegressor(
        kernel=parsimon.kernels.Gaussian(1.0), n_columns=min(500, rows), nu=10.0,
        random_state=0, store_columns=sys.argv[2] == "True",
    ).fit(X, y)
    used = model.model_order_
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, used)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB on Linux only")
@pytest.mark.parametrize("store", [True, False])
def test_memory_is_that_of_the_columns_in_use(store):
    def peak(rows):
        arguments = [sys.executable, "-c", textwrap.dedent(PEAK), str(rows), str(store)]
        output = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
        return map(int, output.split())

    least, _ = peak(100)
    most, used = peak(50_000)
    assert 0 < used < 100
    # Samples and copies of them; M^2 products, or m0 columns and 64 more at a time. All M columns
    # would be 200 MB, an n x n matrix 20 GB.
    columns = 0 if store else 8 * 50_000 * (3 * used + 2 * 64)
    assert most - least < 8 * 50_000 * 25 + 4 * 8 * 500**2 + 8 * 256 * 500 * 4 + columns + 20e6


# -- warm starts ---------------------------------------------------------------------------------


def test_a_warm_start_saves_epochs_and_keeps_the_columns():
    settings = {**GIVEN, "random_state": None, "tol": 1e-10}
    model = SLKLRegressor(**settings, warm_start=True).fit(X, Y)
    columns, cold = model.columns_, model.n_iter_
    model.fit(X, Y)
    assert_array_equal(model.columns_, columns)
    assert model.n_iter_ < cold
    model.set_params(nu=0.009).fit(X, Y)
    assert_allclose(model.objective_[-1], Dense(model, X, Y).minimum(), rtol=1e-6)


def test_a_warm_start_with_other_data_starts_anew():
    model = SLKLRegressor(**{**GIVEN, "n_columns": 20}, warm_start=True).fit(X, Y)
    smaller = model.fit(X[:30], Y[:30])
    assert smaller.columns_.max() < 30


# -- labels --------------------------------------------------------------------------------------


def test_classes_are_regressions_on_their_labels():
    samples, labels = make_multidist(400, random_state=0)
    names = np.array(["e", "d", "c", "b", "a"])[labels]
    settings = {"kernel": kernels.Gaussian(0.5), "n_columns": 80, "random_state": 0, "tol": 1e-8}
    settings["sparsity"] = 3e-5  # "auto" is another one for labels
    model = SLKLClassifier(**settings).fit(samples, names)
    assert_array_equal(model.classes_, list("abcde"))
    assert model.mu_.shape == (80, 5)
    for k, name in enumerate("abcde"):
        alone = SLKLRegressor(**settings).fit(samples, np.where(names == name, 1.0, -1.0))
        assert_allclose(model.decision_function(samples)[:, k], alone.predict(samples), atol=1e-4)
    assert model.score(samples, names) > 0.9


def test_two_classes_need_one_function():
    samples, labels = make_multidist(300, n_classes=2, random_state=1)
    model = SLKLClassifier(n_columns=50, random_state=0).fit(samples, labels == 1)
    assert model.decision_function(samples).shape == (300,)
    assert model.mu_.shape == (50,)
    assert_array_equal(model.predict(samples), model.decision_function(samples) > 0)
    assert model.score(samples, labels == 1) > 0.9


# -- files ---------------------------------------------------------------------------------------


def through_file(model, folder):
    model.save(folder / "model.parsimon")
    return parsimon.load(folder / "model.parsimon")


@pytest.mark.parametrize(
    "way",
    [through_file, lambda m, _: pickle.loads(pickle.dumps(m)), lambda m, _: copy.deepcopy(m)],
    ids=["file", "pickle", "deepcopy"],
)
@pytest.mark.parametrize("kind", ["one target", "two targets", "classes", "two classes", "nothing"])
@pytest.mark.filterwarnings("ignore:No column")
def test_a_copy_predicts_the_same_bit_for_bit(way, kind, tmp_path):
    targets = {
        "one target": Y,
        "two targets": np.column_stack([Y, X]),
        "classes": np.digitize(Y, [0.0, 0.3]),
        "two classes": Y > 0,
        "nothing": Y,
    }[kind]
    cls = SLKLClassifier if "classes" in kind else SLKLRegressor
    model = cls(**{**GIVEN, "nu": 1e9 if kind == "nothing" else 0.01}, warm_start=True)
    model.fit(X + 1e3, targets)
    again = way(model, tmp_path)
    assert type(again) is cls
    assert_array_equal(again.predict(X + 1e3), model.predict(X + 1e3))
    for name in ("mu_", "columns_", "support_", "objective_", "intercept_"):
        assert_array_equal(getattr(again, name), getattr(model, name))
    assert (again.n_iter_, again.dual_gap_) == (model.n_iter_, model.dual_gap_)
    again.fit(X + 1e3, targets)
    model.fit(X + 1e3, targets)
    assert_array_equal(again.mu_, model.mu_)


def test_a_file_without_an_estimator_is_refused(tmp_path):
    model = SLKLRegressor(**GIVEN).fit(X, Y)

    model._model.to_archive().write(str(tmp_path / "function"))
    with pytest.raises(ValueError, match="no estimator"):
        parsimon.load(tmp_path / "function")


def test_verbose_prints_a_line(capsys):
    SLKLRegressor(**GIVEN, verbose=1).fit(X, Y)
    assert "of 60 columns used" in capsys.readouterr().out


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("scale", [1e2, 1e3, 1e6])
def test_targets_of_any_scale_never_blow_up(scale, stored):
    """The larger they are, the nearer to collinear the columns in use: F once rose to 1e240."""
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 3))
    y = scale * (np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.3 * random.normal(size=300))
    model = SLKLRegressor(nu=0.01, store_columns=stored, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert np.isfinite(model.objective_).all()
    assert (np.diff(model.objective_) <= 1e-3 * model.objective_[:-1]).all()
    assert model.score(X, y) > 0.95
    # What the certificate does not confirm is told.
    certified = model.dual_gap_ <= 1e-3 * model.objective_[-1]
    assert certified or any("rounding keeps it" in str(w.message) for w in caught)


@pytest.mark.parametrize("store_columns", [True, False])
@pytest.mark.parametrize("center", [True, False])
def test_a_weight_of_two_is_the_same_as_two_samples(store_columns, center):
    random = np.random.default_rng(0)
    X = random.uniform(-3, 3, size=(120, 1))
    y = 5 + np.sinc(X[:, 0]) + 0.1 * random.normal(size=120)
    weight = random.integers(1, 4, size=120)  # one of 0 would still have a column
    settings = {
        "gamma": 0.5,
        "center": center,
        "store_columns": store_columns,
        "tol": 1e-12,
        "random_state": 0,
    }
    model = SLKLRegressor(**settings).fit(X, y, sample_weight=weight)
    repeated = SLKLRegressor(**settings).fit(X.repeat(weight, axis=0), y.repeat(weight))
    assert_allclose(model.intercept_, repeated.intercept_, rtol=1e-12)
    assert_allclose(model.predict(X), repeated.predict(X), atol=1e-4)
    assert_allclose(model.objective_[-1], repeated.objective_[-1], rtol=1e-8)
    assert not np.allclose(model.predict(X), SLKLRegressor(**settings).fit(X, y).predict(X))
    same = SLKLRegressor(**settings).fit(X, y, sample_weight=np.ones(120))
    assert_array_equal(same.predict(X), SLKLRegressor(**settings).fit(X, y).predict(X))


def test_weights_that_say_nothing_are_refused():
    X = np.linspace(0, 1, 20)[:, None]
    for weight, message in (
        (np.zeros(20), "all samples are 0|at least one non-zero"),
        (-np.ones(20), "[Nn]egative"),
    ):
        with pytest.raises(ValueError, match=message):
            SLKLRegressor().fit(X, X[:, 0], sample_weight=weight)


def test_a_classifier_by_squared_differences_says_who_has_probabilities():
    X, y = make_multidist(60, random_state=0)
    model = SLKLClassifier().fit(X, y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError) as refused:
        model.predict_proba(X)
    assert "CalibratedClassifierCV(model)" in str(refused.value.__cause__)

"""How POLKClassifier and POLKRegressor behave."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from polk_common import (
    GIVEN,
    ONE_PASS,
    ONE_PASS_OF_SGD,
    REGRESSION_LOSSES,
    SGD,
    curve,
    gaussian,
    state,
    task,
)
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import parsimon
from parsimon import POLKClassifier, POLKRegressor, kernels
from parsimon.datasets import make_multidist
from parsimon.schedules import PowerLaw


@pytest.fixture(name="task", scope="module")
def _task():
    return task()


@pytest.fixture(name="curve", scope="module")
def _curve():
    return curve()


# -- fit and partial_fit ---------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["newton", "sgd"])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_partial_fit_is_one_unshuffled_epoch_of_fit(loss, solver, task):
    X, y = task
    same = {"epochs": 1, "shuffle": False, "regularization": 1e-6, "solver": solver}
    same |= {"half_life": None}
    # What fit does differently: a cap that is smaller, and solving once more in the end.
    same |= {"max_points": None, "refit": False} if solver == "newton" else {}
    fitted = POLKClassifier(loss, **same).fit(X, y)
    streamed = POLKClassifier(loss, **same).partial_fit(X, y, classes=range(5))
    assert state(fitted) == state(streamed)


@pytest.mark.parametrize("loss", REGRESSION_LOSSES)
def test_partial_fit_is_one_unshuffled_epoch_of_fit_in_regression(loss, curve):
    settings = {**ONE_PASS, "refit": False}
    fitted = POLKRegressor(loss, **settings).fit(*curve)
    assert state(fitted) == state(POLKRegressor(loss, **settings).partial_fit(*curve))


def test_blocks_of_whole_mini_batches_do_not_matter(task):
    X, y = task
    whole = POLKClassifier(**GIVEN).partial_fit(X, y, classes=range(5))
    blocks = POLKClassifier(**GIVEN)
    for start in range(0, len(X), 80):
        blocks.partial_fit(X[start : start + 80], y[start : start + 80], classes=np.arange(5))
    assert state(whole) == state(blocks)
    assert blocks.t_ == len(X)


def test_fit_forgets_and_partial_fit_does_not(task):
    X, y = task
    model = POLKClassifier(**GIVEN).fit(X, y)
    assert model.t_ == 2 * len(X)
    once = state(model)
    assert state(model.fit(X, y)) == once
    model.partial_fit(X[:40], y[:40])
    assert model.t_ == 2 * len(X) + 40
    assert state(model.fit(X[:, :1], y > 1)) != once
    assert model.n_features_in_ == 1
    assert_array_equal(model.classes_, [False, True])


def test_not_fitted():
    for model in (POLKClassifier(), POLKRegressor()):
        with pytest.raises(NotFittedError):
            model.predict([[0.0]])
        with pytest.raises(NotFittedError):
            model.save("nowhere")
        for name in ("dictionary_", "weights_", "model_order_", "t_", "trace_", "expansion_"):
            assert not hasattr(model, name)


@pytest.mark.parametrize("shuffle", [True, False])
def test_the_random_state_decides_everything(task, shuffle):
    settings = {**GIVEN, "shuffle": shuffle}
    first = POLKClassifier(**settings).fit(*task)
    assert state(first) == state(POLKClassifier(**settings).fit(*task))
    other = POLKClassifier(**{**settings, "random_state": 1}).fit(*task)
    assert (first.dictionary_.tobytes() == other.dictionary_.tobytes()) is not shuffle


# -- classification --------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_shapes(loss, classes, task):
    X, y = task[0], task[1] % classes
    model = POLKClassifier(loss, **GIVEN).fit(X, y)
    outputs = 1 if classes == 2 else classes
    assert model.weights_.shape == (model.model_order_, outputs)
    assert model.dictionary_.shape == (model.model_order_, 2)
    assert model.expansion_.model_order == model.model_order_
    values = model.decision_function(X)
    assert values.shape == ((len(X),) if classes == 2 else (len(X), classes))
    chosen = (values > 0).astype(int) if classes == 2 else values.argmax(axis=1)
    assert_array_equal(model.predict(X), model.classes_[chosen])
    assert model.predict(X[:1]).shape == (1,)


def test_probabilities(task):
    X, y = task
    for labels in (y, y > 1):
        model = POLKClassifier("logistic", **GIVEN).fit(X, labels)
        P = model.predict_proba(X)
        assert P.shape == (len(X), len(model.classes_))
        assert_allclose(P.sum(axis=1), 1, rtol=1e-14)
        assert (P >= 0).all()
        assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))
        assert_allclose(model.predict_log_proba(X), np.log(P))
    assert_allclose(P[:, 1], 1 / (1 + np.exp(-model.decision_function(X))))
    far = model.predict_proba(1e3 + X)  # no kernel reaches there
    assert_allclose(far, 0.5)


def test_the_hinge_loss_has_no_probabilities(task):
    model = POLKClassifier(**GIVEN).fit(*task)
    assert not hasattr(model, "predict_proba")
    for name in ("predict_proba", "predict_log_proba"):
        with pytest.raises(AttributeError, match=name) as error:
            getattr(model, name)
        assert "loss='logistic'" in str(error.value.__cause__)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["a", "b", "c", "d", "e"]),
        np.array(["ä", "", "longer text", "x" * 50, "z"], dtype=object),
        np.array([-7, 0, 3, 2**40, 2**62]),
        np.array([-1.5e10, 0, 1, 2, 1e18]),
        np.array([0, 1, 2, 3, 250], dtype=np.uint8),
        [False, True],
    ],
    ids=["text", "objects", "integers", "floats", "bytes", "booleans"],
)
def test_labels_of_any_type(labels, task, tmp_path):
    labels = np.sort(np.asarray(labels))
    X, y = task[0], labels[task[1] % len(labels)]
    plain = POLKClassifier(**GIVEN).fit(X, task[1] % len(labels))
    model = POLKClassifier(**GIVEN).fit(X, y)
    assert_array_equal(model.classes_, labels)
    assert model.predict(X).dtype == model.classes_.dtype
    assert_array_equal(model.predict(X), labels[plain.predict(X)])
    model.save(tmp_path / "model")
    again = parsimon.load(tmp_path / "model")
    assert again.classes_.dtype == model.classes_.dtype
    assert_array_equal(again.predict(X), model.predict(X))
    again.partial_fit(X, y, classes=labels[::-1].tolist())


def test_a_class_that_has_not_come_yet(task):
    X, y = task
    model = POLKClassifier(**GIVEN).partial_fit(X[y < 2], y[y < 2], classes=range(5))
    assert model.decision_function(X).shape == (len(X), 5)
    assert set(model.predict(X)) <= set(range(5))
    for _ in range(3):
        model.partial_fit(X, y)
    assert model.score(X, y) > 0.85


# -- regression ------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [*REGRESSION_LOSSES, "squared_error", "quantile"])
def test_every_regression_loss_learns(loss, curve):
    X, y = curve
    model = POLKRegressor(loss, random_state=0).fit(X[:250], y[:250])
    error = np.abs(model.predict(X[250:]) - y[250:]).mean()
    assert error < 0.2 * np.abs(y - y.mean()).mean()
    assert_allclose(model.predict(X), model.expansion_(X)[:, 0] + model.intercept_, atol=1e-10)


def test_quantiles():
    noisy = np.random.RandomState(0).randn(2000)
    X = np.random.RandomState(1).uniform(-1, 1, (2000, 1))
    for quantile in (0.1, 0.5, 0.9):
        model = POLKRegressor(f"pinball({quantile})", regularization=1e-4, random_state=0).fit(
            X, noisy
        )
        assert np.mean(noisy < model.predict(X)) == pytest.approx(quantile, abs=0.05)


def test_several_targets_are_learned_side_by_side(curve):
    X, y = curve
    Y = np.column_stack([y, 100 * y**2, X[:, 0] - 7])
    given = {**SGD, "parsimony": 0.0, "refit": False}
    model = POLKRegressor(**given).fit(X, Y)
    assert model.predict(X).shape == Y.shape
    assert model.intercept_.shape == (3,)
    assert model.weights_.shape == (model.model_order_, 3)
    for column in range(3):
        alone = POLKRegressor(**given).fit(X, Y[:, column])
        assert alone.predict(X).shape == (len(X),)
        assert_allclose(model.predict(X)[:, column], alone.predict(X), rtol=1e-9)
    one = POLKRegressor(**given).fit(X, Y[:, :1])
    assert one.predict(X).shape == (len(X), 1)
    assert POLKRegressor(random_state=0).fit(X, Y).score(X, Y) > 0.95


def test_normalised_targets_do_not_depend_on_their_unit(curve):
    X, y = curve
    plain = POLKRegressor(random_state=0).fit(X, y)
    other = POLKRegressor(random_state=0).fit(X, 2.0**20 * y)
    assert_array_equal(other.predict(X), 2.0**20 * plain.predict(X))
    assert plain.intercept_ == pytest.approx(y.mean())
    shifted = POLKRegressor(random_state=0).fit(X, 1e-3 * y - 5)
    assert_allclose(shifted.predict(X), 1e-3 * plain.predict(X) - 5, rtol=1e-6)


def test_without_normalisation_the_function_is_the_prediction(curve):
    X, y = curve
    model = POLKRegressor(normalize_y=False, random_state=0).fit(X, y + 1)
    assert_array_equal(model.intercept_, [0])
    assert_allclose(model.predict(X), model.expansion_(X)[:, 0], rtol=1e-9)
    assert model.score(X, y + 1) > 0.95


def test_the_first_block_fixes_the_normalisation(curve):
    X, y = curve
    model = POLKRegressor(**GIVEN).partial_fit(X[:100], y[:100])
    intercept = model.intercept_.copy()
    assert intercept == pytest.approx(y[:100].mean())
    model.partial_fit(X[100:], 3 + y[100:])
    assert_array_equal(model.intercept_, intercept)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("budget", "solver"), [(0.05, "newton"), (0.05, "sgd"), (0.0, "sgd")])
def test_refit_is_the_exact_minimiser_on_the_dictionary(weighted, budget, solver, curve):
    X, y = curve
    counts = np.random.RandomState(2).randint(0, 3, len(X)).astype(float) if weighted else None
    given = {**GIVEN, "parsimony": "auto", "budget": budget, "normalize_y": False, "solver": solver}
    model = POLKRegressor(refit=True, **given).fit(X, y, sample_weight=counts)
    D = model.dictionary_
    K, k = gaussian(D, D), gaussian(X, D)
    C = np.ones(len(X)) if counts is None else counts
    ridge = 1e-4 * len(X)
    exact = np.linalg.lstsq(k.T @ (C[:, None] * k) + ridge * K, k.T @ (C * y), rcond=None)[0]
    assert_allclose(model.predict(X), k @ exact, atol=1e-6)
    plain = POLKRegressor(refit=False, **given).fit(X, y, sample_weight=counts)
    assert_array_equal(np.sort(plain.dictionary_, axis=0), np.sort(D, axis=0))
    assert plain.score(X, y, counts) < model.score(X, y, counts)


# -- sample weights, sparse input ------------------------------------------------------------------


def test_weights_of_one_are_no_weights(task, curve):
    ones = np.ones(len(task[0]))
    plain, weighted = POLKClassifier(**GIVEN), POLKClassifier(**GIVEN)
    assert state(plain.fit(*task)) == state(weighted.fit(*task, sample_weight=ones))
    plain, weighted = POLKRegressor(**GIVEN), POLKRegressor(**GIVEN)
    assert state(plain.fit(*curve)) == state(weighted.fit(*curve, sample_weight=ones[:300]))


def test_a_sample_of_weight_zero_is_not_learned_from(task):
    X, y = task
    weight = (np.arange(len(X)) % 3 > 0).astype(float)
    given = {**ONE_PASS_OF_SGD, "parsimony": 0.0}
    model = POLKClassifier("logistic", **given).fit(X, y, sample_weight=weight)
    assert_array_equal(model.dictionary_, X[weight > 0])
    assert model.trace_["active"].sum() == np.count_nonzero(weight)
    # Whatever its label says.
    lies = np.where(weight > 0, y, (y + 1) % 5)
    other = POLKClassifier("logistic", **given).fit(X, lies, sample_weight=weight)
    assert_array_equal(other.weights_, model.weights_)


def test_a_weight_scales_the_gradient(curve):
    X, y = curve
    given = {**ONE_PASS_OF_SGD, "regularization": 0.0, "normalize_y": False, "refit": False}
    doubled = POLKRegressor(**given).fit(X, y, sample_weight=np.full(len(X), 2.0))
    faster = POLKRegressor(**{**given, "learning_rate": 3.0, "parsimony": 0.01 / 2**1.5}).fit(X, y)
    assert doubled.trace_["budget"][0] == pytest.approx(faster.trace_["budget"][0])
    assert_allclose(doubled.predict(X), faster.predict(X), atol=1e-10)
    # One mini-batch from zero: twice the weight counts as much as the sample twice.
    first, w = slice(0, 16), np.arange(16.0)
    given |= {"parsimony": 0.0, "batch_size": 16}
    single = POLKRegressor(**given).partial_fit(X[first], y[first], sample_weight=w)
    repeated = POLKRegressor(**{**given, "batch_size": 120, "learning_rate": 1.5 * 120 / 16})
    repeated.partial_fit(
        np.repeat(X[first], 16 * [1] * w.astype(int), axis=0), np.repeat(y[first], w.astype(int))
    )
    assert repeated.model_order_ == single.model_order_ == 15
    assert_allclose(single.predict(X), repeated.predict(X), rtol=1e-10)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix])
def test_sparse_samples_are_the_same_samples(kind, task, curve):
    X = np.where(np.abs(task[0]) < 0.5, 0.0, task[0])
    y, weight = task[1], np.arange(len(X)) % 4
    dense = POLKClassifier(random_state=0, epochs=2).fit(X, y, sample_weight=weight)
    thin = POLKClassifier(random_state=0, epochs=2).fit(kind(X), y, sample_weight=weight)
    assert state(dense) == state(thin)
    assert_array_equal(dense.decision_function(X), thin.decision_function(kind(X)))
    dense.partial_fit(X[:100], y[:100])
    assert state(dense) == state(thin.partial_fit(kind(X[:100]), y[:100]))
    Z = np.where(np.abs(curve[0]) < 0.5, 0.0, curve[0])
    assert state(POLKRegressor(random_state=0, epochs=2).fit(Z, curve[1])) == state(
        POLKRegressor(random_state=0, epochs=2).fit(kind(Z), curve[1])
    )


def test_blocks_larger_than_those_made_dense_at_a_time():
    X, y = make_multidist(9000, random_state=3)
    given = {**GIVEN, "batch_size": 100}
    dense = POLKClassifier(**given).fit(X, y)
    thin = POLKClassifier(**given).fit(sparse.csr_matrix(X), y)
    assert state(dense) == state(thin)
    assert_array_equal(dense.predict(X), thin.predict(sparse.csr_matrix(X)))
    assert_array_equal(np.diff(dense.trace_["samples"]), 100)


# -- with scikit-learn -----------------------------------------------------------------------------


def test_within_scikit_learn(task, curve):
    X, y = task
    pipeline = make_pipeline(StandardScaler(), POLKClassifier(random_state=0, epochs=3))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.85
    search = GridSearchCV(
        pipeline,
        {
            "polkclassifier__kernel": [kernels.Gaussian(0.1), kernels.Gaussian(1.0), "laplacian"],
            "polkclassifier__loss": ["hinge", "logistic"],
        },
        cv=3,
    ).fit(X, y)
    assert search.best_score_ > 0.85
    search = GridSearchCV(POLKRegressor(epochs=3), {"gamma": ["scale", 100.0]}, cv=3).fit(*curve)
    assert search.best_params_ == {"gamma": "scale"}


@pytest.mark.parametrize("cls", [POLKClassifier, POLKRegressor])
def test_clones_have_the_settings_and_nothing_else(cls, task):
    X, y = task
    model = cls(**{**GIVEN, "schedule": PowerLaw(0.7)}).fit(X, y)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "t_")
    assert state(copy.fit(X, y)) == state(model)
    assert (
        eval(repr(copy), vars(kernels) | {"PowerLaw": PowerLaw, cls.__name__: cls}).get_params()
        == copy.get_params()
    )
    copy.set_params(epochs=1, kernel="rbf", gamma=3.0)
    kernel, rbf = copy.fit(X, y).expansion_.kernel, kernels.from_name("rbf", gamma=3.0)
    assert kernel == (rbf if cls is POLKRegressor else rbf + 0.3 * kernels.Constant())


def test_data_frames(task):
    pandas = pytest.importorskip("pandas")
    X, y = task
    frame = pandas.DataFrame(X, columns=["a", "b"])
    model = POLKClassifier(**GIVEN).fit(frame, y)
    assert_array_equal(model.feature_names_in_, ["a", "b"])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a"]])

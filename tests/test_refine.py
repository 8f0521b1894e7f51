"""Points of a model that move, together with their weights."""

import numpy as np
import pytest
from control_c import interrupted
from scipy import sparse
from sklearn.datasets import load_digits, make_classification, make_friedman1

from parsimon import (
    BSGDClassifier,
    BSGDRegressor,
    POLKClassifier,
    POLKRegressor,
    _core,
    _refine,
    kernels,
    load,
)
from parsimon.datasets import make_multidist

NOTHING = np.empty(0)
# Units of the points, ridge, and rates of points and weights.
SETTINGS = np.ones(3), 0.3, 0.1, 0.1

KERNELS = [
    kernels.Gaussian(1.3),
    kernels.Gaussian([1.0, 2.0, 0.7]),
    kernels.Gaussian(1.3) + kernels.Constant(),
    3 * kernels.Gaussian(1.3) + 0.5 * kernels.Constant(),
    kernels.Gaussian(1.3) * kernels.Matern(2.0, 1.5),
    kernels.Matern(1.3, 2.5),
    kernels.Laplacian(1.3),
    kernels.Polynomial(3, 0.2, 1.0),
    kernels.Linear(),
]
LOSSES = [
    ("squared", 2),
    ("huber(1.0)", 1),
    ("epsilon_insensitive(0.1)", 1),
    ("pinball(0.3)", 1),
    ("binary_logistic", 1),
    ("binary_hinge", 1),
    ("multiclass_logistic", 3),
    ("multiclass_squared_hinge", 3),
    ("one_vs_rest_squared_hinge", 3),
]


def moving(kernel, loss, outputs, points=6):
    random = np.random.RandomState(0)
    loss = _core.parse_loss(loss)
    D, W = random.randn(points, 3), random.randn(points, outputs)
    X, weight = random.randn(9, 3), random.rand(9) + 0.5
    targets = random.randn(9, outputs)
    if loss.is_classification:
        targets = np.arange(9.0)[:, None] % max(outputs, 2)
    return kernel.core, loss, D, W, X, targets, weight


def check_gradient(kernel, loss, outputs):
    core, judge, D, W, X, targets, weight = moving(kernel, loss, outputs)

    def value(D, W):
        return _core.MovingPoints(core, judge, D, W, *SETTINGS).slope(X, targets, weight)

    _, by_points, by_weights, _ = value(D, W)
    for i in range(len(D)):
        for f in range(3):
            step = np.zeros_like(D)
            step[i, f] = 1e-6
            difference = (value(D + step, W)[0] - value(D - step, W)[0]) / 2e-6
            assert by_points[i, f] == pytest.approx(difference, abs=1e-7, rel=1e-6)
        for c in range(outputs):
            step = np.zeros_like(W)
            step[i, c] = 1e-6
            difference = (value(D, W + step)[0] - value(D, W - step)[0]) / 2e-6
            assert by_weights[i, c] == pytest.approx(difference, abs=1e-7, rel=1e-6)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_gradients_of_every_kernel_are_those_of_the_objective(kernel):
    check_gradient(kernel, "multiclass_logistic", 3)


@pytest.mark.parametrize(("loss", "outputs"), LOSSES)
def test_gradients_of_every_loss_are_those_of_the_objective(loss, outputs):
    check_gradient(kernels.Gaussian(1.3), loss, outputs)


def test_gradients_in_single_precision_are_as_good_as_that():
    random = np.random.RandomState(0)
    D, W, X = random.randn(7, 40), random.randn(7, 1), random.randn(30, 40)
    targets, loss = random.randn(30, 1), _core.parse_loss("squared")
    settings = np.ones(40), 0.1, 0.1, 0.1
    exact = kernels.Gaussian(5.0).core
    residuals = (exact.block(X, D) @ W - targets) / 30
    truth = exact.gradient(X, D, residuals @ W.T) + 0.1 * exact.gradient(D, D, W @ W.T)
    for offset, error in ((0.0, 1e-5), (1000.0, 1e-4)):
        one = _core.MovingPoints(_core.single(exact), loss, D + offset, W, *settings)
        slope = one.slope(X + offset, targets, NOTHING)[1]
        assert abs(slope - truth).max() < error * abs(truth).max()
        assert abs(slope - truth).max() > 0


def digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.RandomState(0).permutation(len(X))
    X, y = X[order] / 16, y[order]
    return X[:1200], y[:1200], X[1200:], y[1200:]


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_points_that_moved_make_fewer_errors(loss):
    X, y, X_test, y_test = digits()
    model = POLKClassifier(loss=loss, max_points=25, random_state=0, n_jobs=1).fit(X, y)
    before, points = 1 - model.score(X_test, y_test), model.dictionary_
    assert model.refine_on(X, y, epochs=40) is model
    assert model.model_order_ == 25
    assert not np.isin(model.dictionary_, points).all()
    assert 1 - model.score(X_test, y_test) < 0.85 * before


def test_fit_refines_if_asked():
    X, y, X_test, y_test = digits()
    plain = POLKClassifier(max_points=25, random_state=0, n_jobs=1).fit(X, y)
    refined = POLKClassifier(max_points=25, random_state=0, n_jobs=1, refine=True).fit(X, y)
    named = POLKClassifier(max_points=25, random_state=0, n_jobs=1, refine=("points",)).fit(X, y)
    assert refined.model_order_ == 25
    assert 1 - refined.score(X_test, y_test) < 0.75 * (1 - plain.score(X_test, y_test))
    assert np.array_equal(named.dictionary_, refined.dictionary_)
    assert refined.t_ == plain.t_


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_regression_gains_too(loss):
    X, y = make_friedman1(1500, noise=1, random_state=0)
    model = POLKRegressor(loss=loss, max_points=20, random_state=0, n_jobs=1)
    model.fit(X[:1000], y[:1000])
    before = model.score(X[1000:], y[1000:])
    model.refine_on(X[:1000], y[:1000])
    assert 1 - model.score(X[1000:], y[1000:]) < 0.9 * (1 - before)
    if loss == "squared":
        _, deviations = model.predict(X[1000:], return_std=True)
        assert np.isfinite(deviations).all()
        assert 0 < model.noise_ < y.std()


def test_it_works_for_budgeted_models_and_two_classes():
    X, y, X_test, y_test = digits()
    two = BSGDClassifier(max_points=8, random_state=0, n_jobs=1, refine=True).fit(X, y % 2 == 1)
    assert two.model_order_ == 8
    assert two.score(X_test, y_test % 2 == 1) > 0.9
    regressor = BSGDRegressor(max_points=20, random_state=0, n_jobs=1).fit(X, y)
    before = regressor.score(X_test, y_test)
    assert regressor.refine_on(X, y, epochs=30).score(X_test, y_test) > before


def test_what_is_no_better_on_samples_held_out_is_not_taken(monkeypatch):
    X, y, X_test, _ = digits()
    model = POLKClassifier(max_points=25, random_state=0, n_jobs=1).fit(X, y)
    before = model.decision_function(X_test)
    # Steps that ruin the points.
    monkeypatch.setattr("parsimon._refine._POINT_RATE", 30.0)
    model.refine_on(X, y, epochs=2)
    assert np.array_equal(model.decision_function(X_test), before)


def test_what_is_clearly_worse_after_a_few_passes_is_given_up(monkeypatch):
    """All passes were once made for nothing."""
    X, y, X_test, _ = digits()
    model = POLKClassifier(max_points=25, random_state=0, n_jobs=1).fit(X, y)
    before, passes = model.decision_function(X_test), []
    root = _refine._Refinement._root
    monkeypatch.setattr(
        _refine._Refinement, "_root", lambda *given: passes.append(1) or root(*given)
    )
    model.refine_on(X, y, epochs=20)
    assert len(passes) == 20
    model = POLKClassifier(max_points=25, random_state=0, n_jobs=1).fit(X, y)
    passes.clear()
    monkeypatch.setattr(_refine, "_POINT_RATE", 30.0)
    model.refine_on(X, y, epochs=20)
    assert len(passes) == 6
    assert np.array_equal(model.decision_function(X_test), before)


def test_weights_and_sparse_samples_count():
    X, y, X_test, _ = digits()
    weight = np.where(np.arange(len(y)) % 2, 1.0, 0.0)
    model = POLKClassifier(max_points=20, random_state=0, n_jobs=1).fit(X, y)
    dense = POLKClassifier(max_points=20, random_state=0, n_jobs=1).fit(X, y)
    model.refine_on(sparse.csr_matrix(X), y, weight, epochs=3)
    dense.refine_on(X, y, weight, epochs=3)
    assert np.allclose(model.decision_function(X_test), dense.decision_function(X_test), atol=1e-6)
    unweighted = (
        POLKClassifier(max_points=20, random_state=0, n_jobs=1).fit(X, y).refine_on(X, y, epochs=3)
    )
    assert not np.allclose(unweighted.dictionary_, dense.dictionary_)


def test_a_stream_goes_on_and_a_file_holds_it(tmp_path):
    X, y = make_multidist(3000, random_state=0)
    model = POLKClassifier(max_points=20, random_state=0, n_jobs=1).fit(X[:1500], y[:1500])
    model.refine_on(X[:1500], y[:1500], epochs=20)
    refined, taken = model.score(X[1500:], y[1500:]), model.t_
    model.save(tmp_path / "model.parsimon")
    other = load(tmp_path / "model.parsimon")
    for one in (model, other):
        for start in range(1500, 2500, 100):
            one.partial_fit(X[start : start + 100], y[start : start + 100])
    assert np.array_equal(model.decision_function(X), other.decision_function(X))
    assert model.t_ == taken + 1000
    assert model.model_order_ <= 20
    # What the samples of fit have said is remembered.
    assert model.score(X[2500:], y[2500:]) > refined - 0.05
    assert (model.distance(model.dictionary_) < 1e-5).all()


def test_a_parameter_survives_a_file(tmp_path):
    X, y = make_multidist(300, random_state=0)
    model = POLKClassifier(refine=("points",), random_state=0, n_jobs=1).fit(X, y)
    model.save(tmp_path / "model.parsimon")
    assert tuple(load(tmp_path / "model.parsimon").refine) == ("points",)


def test_few_samples_leave_the_model_as_it_is():
    X, y = make_multidist(60, random_state=0)
    model = POLKClassifier(random_state=0, n_jobs=1).fit(X, y)
    before = model.dictionary_
    assert np.array_equal(model.refine_on(X, y).dictionary_, before)


def test_bad_input_is_refused_and_changes_nothing():
    X, y = make_multidist(300, random_state=0)
    for bad in ("points", ("widths",), ("points", "colours"), 1, None, ()):
        with pytest.raises(ValueError, match="refine must be True, False or"):
            POLKClassifier(refine=bad).fit(X, y)
    for kind in (POLKClassifier, BSGDClassifier):
        with pytest.raises(ValueError, match="refine needs solver='newton'"):
            kind(refine=True, solver="sgd").fit(X, y)
    with pytest.raises(ValueError, match="solver='newton'"):
        POLKClassifier(solver="sgd").fit(X, y).refine_on(X, y)
    model = POLKClassifier(random_state=0, n_jobs=1).fit(X, y)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="features"):
        model.refine_on(X[:, :1], y)
    with pytest.raises(ValueError, match=r"y has the labels \[9\]"):
        model.refine_on(X, np.where(np.arange(300) == 5, 9, y))
    with pytest.raises(ValueError, match="epochs must be an integer"):
        model.refine_on(X, y, epochs=0)
    with pytest.raises(ValueError, match="NaN"):
        model.refine_on(np.where(X[0, 0] == X, np.nan, X), y)
    assert np.array_equal(model.decision_function(X), before)


@pytest.mark.parametrize("count", [300, 1000])
def test_few_samples_do_not_take_the_place_of_all_that_a_model_has_learned(count):
    """Weights of 20,000 samples were once thrown away for those of 300."""
    kind = {"n_informative": 10, "n_classes": 6, "class_sep": 1.5, "random_state": 0}
    X, y = make_classification(9000, 16, **kind)
    model = POLKClassifier(max_points=60, random_state=0, n_jobs=1).fit(X[:6000], y[:6000])
    before = model.score(X[7000:], y[7000:])
    model.refine_on(X[6000 : 6000 + count], y[6000 : 6000 + count], epochs=20)
    assert model.score(X[7000:], y[7000:]) > before - 0.01


def test_what_few_samples_clearly_improve_is_taken():
    X, y, X_test, y_test = digits()
    model = POLKClassifier(max_points=25, random_state=0, n_jobs=1).fit(X, y)
    before, points = model.score(X_test, y_test), model.dictionary_
    model.refine_on(X[:700], y[:700], epochs=40)
    assert not np.isin(model.dictionary_, points).all()
    assert model.score(X_test, y_test) > before


@pytest.mark.parametrize("parts", [lambda kernel: kernel, lambda kernel: 2.0 * kernel + kernel])
def test_a_kernel_without_a_gradient_is_refused_before_anything_is_learned(parts, monkeypatch):
    """It was once found out after the whole fit."""

    def gaussian(a, b):
        return np.exp(-((a[:, None] - b[None]) ** 2).sum(2))

    kernel = parts(kernels.Function(gaussian))
    X, y = make_multidist(300, random_state=0)
    plain = POLKClassifier(kernel=kernel, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="a kernel that has a gradient"):
        plain.refine_on(X, y)

    def learn(*_):
        raise AssertionError

    monkeypatch.setattr("parsimon._stream.run", learn)
    with pytest.raises(ValueError, match="a kernel that has a gradient"):
        POLKClassifier(kernel=kernel, refine=True).fit(X, y)


def test_control_c_ends_it_within_a_second_and_leaves_the_model():
    program = """
        import time
        import numpy as np
        from parsimon import POLKClassifier
        random = np.random.RandomState(0)
        X, y = random.randn(3000, 200), random.randint(3, size=3000)
        model = POLKClassifier(max_points=60, random_state=0, n_jobs=1).fit(X, y)
        before = model.decision_function(X[:5])
        print("learning", flush=True)
        try:
            model.refine_on(X, y, epochs=10000)
        except KeyboardInterrupt:
            now = time.monotonic()
            same = np.array_equal(model.decision_function(X[:5]), before)
            print(now, "same" if same else "changed")
    """
    assert interrupted(program, 1) == "same"

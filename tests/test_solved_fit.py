"""What fit does once the points are there: coordinates, forms of the loss, ridges, the solver."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import linalg
from scipy.optimize import minimize
from sklearn.datasets import load_digits, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from parsimon import BSGDClassifier, POLKClassifier, _core, _newton, _problem, kernels
from parsimon._problem import OneVsRest, Problem, problem_of
from parsimon._stream import NOTHING, Samples
from parsimon.datasets import make_multidist


def problem(loss, samples=800, size=30, classes=4, seed=0):
    """Return a problem with labels that the first coordinates tell, most of the time."""
    random = np.random.RandomState(seed)
    features = random.normal(size=(samples, size)) / np.sqrt(size)
    noisy = features[:, :classes] + 0.02 * random.normal(size=(samples, classes))
    targets = noisy.argmax(axis=1)[:, None].astype(float)
    return Problem(features, targets, NOTHING, loss)


LOSSES = {
    "one_vs_rest": OneVsRest(),
    "hinge": _core.parse_loss("multiclass_hinge"),
    "logistic": _core.parse_loss("multiclass_logistic"),
}


def test_one_against_the_rest_has_its_gradient_and_a_curvature_that_bounds_it():
    random = np.random.RandomState(0)
    predictions, other = random.normal(size=(2, 50, 4))
    targets = random.randint(4, size=(50, 1)).astype(float)
    loss = OneVsRest()
    values, gradient, curvature = loss.majorise(predictions, targets)
    assert_allclose(loss.evaluate(predictions, targets)[0], values)
    step = 1e-6 * other
    moved = loss.evaluate(predictions + step, targets)[0]
    assert_allclose((moved - values) / 1e-6, (gradient * other).sum(axis=1), atol=1e-4)
    assert set(curvature) <= {0.0, 1.0}
    wanted = 2 * np.eye(4)[targets[:, 0].astype(int)] - 1
    assert loss.majorise(1.01 * wanted, targets)[2].sum() == 0


def test_the_mean_curvature_is_that_of_the_gradient():
    random = np.random.RandomState(0)
    predictions = random.normal(size=(50, 4))
    targets = random.randint(4, size=(50, 1)).astype(float)
    gradient, bent = OneVsRest().majorise(predictions, targets)[1], np.zeros(50)
    for c in range(4):
        moved = predictions.copy()
        moved[:, c] += 1e-6
        bent += (OneVsRest().majorise(moved, targets)[1][:, c] - gradient[:, c]) / 1e-6 / 4
    assert_allclose(OneVsRest().mean_curvature(predictions, targets), bent, atol=1e-6)


def test_as_many_steps_as_fit_takes_come_near_the_minimum_of_one_against_the_rest():
    """They once ended 3.4 % above it: each class alone has few samples that say something."""
    X, y = load_digits(return_X_y=True)
    points = X[np.random.RandomState(0).permutation(len(X))[:150]]
    kernel = kernels.Gaussian(float(X.std()) * 32**0.5)
    values, vectors = np.linalg.eigh(kernel(points, points))
    features = kernel(X, points) @ (vectors / np.sqrt(np.maximum(values, 1e-10)))
    problem_ = Problem(features, y[:, None].astype(float), NOTHING, OneVsRest())
    few, normal = problem_.part(np.arange(200)), problem_.curvature()
    start = few.minimise(np.zeros((150, 10)), few.curvature(), 0.01, 60)
    found = problem_.minimise(start, normal, 0.01, _newton._STEPS)
    exact = problem_.minimise(found, normal, 0.01, 3000)
    assert problem_.value(found, 0.01)[0] <= 1.02 * problem_.value(exact, 0.01)[0]


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_samples_that_are_left_out_do_not_move_the_minimum(name, weighted, monkeypatch):
    problem_ = problem(LOSSES[name])
    if weighted:
        problem_.weight = np.random.RandomState(1).uniform(0.5, 2, size=800)
    normal, start = problem_.curvature(), np.zeros((30, 4))
    found = problem_.minimise(start, normal, 0.01, 200)
    value, slope = problem_.value(found, 0.01)
    # The strict way: all samples in every sum.
    monkeypatch.setattr(_problem, "_MOST_NEAR", 0.0)
    exact = problem_.minimise(start, normal, 0.01, 2000)
    assert value <= 1.02 * problem_.value(exact, 0.01)[0]
    assert np.linalg.norm(slope) < 0.05 * np.linalg.norm(problem_.value(start, 0.01)[1])


def test_coordinates_in_single_precision_are_those_of_the_core():
    random = np.random.RandomState(0)
    X = random.normal(size=(900, 10))
    y = (np.sin(X).sum(axis=1) > 0).astype(int)
    model = POLKClassifier(max_points=300, random_state=0).fit(X, y)
    samples, core = Samples(X, y[:, None].astype(float)), model._model
    assert model.model_order_ * len(X) > _problem._PRECISE_FOR_LABELS
    found = problem_of(core, samples, _core.parse_loss("binary_hinge"), 2.0).features
    assert found.dtype == np.float32
    assert_allclose(2 * found, core.coordinates(X), atol=2e-4)


def test_coordinates_stay_precise_where_the_points_nearly_depend_on_each_other():
    X = np.linspace(0, 1, 4000)[:, None]
    y = (np.sin(20 * X[:, 0]) > 0).astype(int)
    model = POLKClassifier(max_points=80, gamma=5.0, random_state=0).fit(X, y)
    assert _problem._single_root(model._model, 1.0) is None
    samples = Samples(X, y[:, None].astype(float))
    found = problem_of(model._model, samples, _core.parse_loss("binary_hinge"), 1.0).features
    assert_allclose(found, model._model.coordinates(X), atol=1e-6)


def margins_of(problem_):
    """Return which form of the loss is chosen for these samples."""
    start = np.zeros((problem_.features.shape[1], len(np.unique(problem_.targets))))
    form, ridge, _ = _newton._choose_form(problem_, problem_.curvature(), start)
    assert ridge in _newton._RIDGES
    assert form.features is problem_.features
    return form.loss


def test_the_better_form_of_the_margins_is_kept():
    """Where no class can be told from all others at once, only the best of them matters."""
    random = np.random.RandomState(0)
    angle = random.uniform(0, 2 * np.pi, size=1500)
    features = np.column_stack([np.cos(angle), np.sin(angle)])
    targets = np.floor(angle / (2 * np.pi) * 7)[:, None]
    hinge = LOSSES["hinge"]
    # Seven sectors of a circle: a linear function has its largest value in each, but none separates
    # one of them from all others.
    assert margins_of(Problem(features, targets, NOTHING, hinge)) is hinge
    logistic = LOSSES["logistic"]
    assert margins_of(Problem(features, targets, NOTHING, logistic)) is logistic
    # Mostly noise: labels are drawn, the more often the nearer.
    features = random.normal(size=(3000, 40)) / np.sqrt(40)
    scores = 12 * features[:, :26] + random.gumbel(size=(3000, 26))
    targets = scores.argmax(axis=1)[:, None].astype(float)
    assert isinstance(margins_of(Problem(features, targets, NOTHING, hinge)), OneVsRest)


def test_a_regularization_that_is_given_is_that_of_the_loss_that_was_named():
    X, y = make_multidist(600, random_state=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(_newton, "_choose_form")
        model = POLKClassifier(regularization=1e-3, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9


def test_as_many_points_as_were_asked_for():
    kind = {"n_informative": 5, "n_redundant": 0, "n_classes": 3, "class_sep": 2}
    X, y = make_classification(1500, 6, random_state=0, **kind)
    by_budget = POLKClassifier(max_points=None, random_state=0).fit(X, y)
    assert by_budget.model_order_ < 200
    model = POLKClassifier(max_points=400, random_state=0).fit(X, y)
    assert model.model_order_ == 400
    stream = POLKClassifier(max_points=400)
    for start in range(0, 1500, 500):
        part = slice(start, start + 500)
        stream.partial_fit(X[part], y[part], classes=range(3))
    assert stream.model_order_ == 400
    # A budget that was given is kept to.
    assert POLKClassifier(max_points=400, budget=1.0, random_state=0).fit(X, y).model_order_ < 100


def test_nothing_set_is_as_good_as_a_support_vector_machine_with_a_third_of_its_vectors():
    kind = {"n_informative": 8, "n_classes": 3, "class_sep": 1.5, "n_clusters_per_class": 2}
    above = []
    for seed in range(3):
        X, y = make_classification(4000, 12, flip_y=0.02, random_state=seed, **kind)
        X, X_test, y, y_test = train_test_split(X, y, test_size=2000, random_state=0)
        scale = StandardScaler().fit(X).transform
        X, X_test = scale(X), scale(X_test)
        svc, model = SVC().fit(X, y), POLKClassifier(random_state=0).fit(X, y)
        above.append(svc.score(X_test, y_test) - model.score(X_test, y_test))
        assert model.model_order_ <= svc.n_support_.sum() / 3
    assert np.median(above) <= 0.006


def test_the_bar_shows_the_loss_while_weights_are_solved(capsys, monkeypatch):
    pytest.importorskip("tqdm")
    shown = []
    monkeypatch.setattr(
        "parsimon._progress.ProgressBar.show", lambda _, **values: shown.append(values)
    )
    X, y = make_multidist(600, random_state=0)
    model = POLKClassifier(random_state=0, verbose=1).fit(X, y)
    assert "solving for the weights" in capsys.readouterr().err
    assert len(shown) > 5
    assert all(np.isfinite(values["loss"]) for values in shown)
    assert {values["model_order"] for values in shown} == {model.model_order_}


def test_points_are_found_among_as_many_samples_as_are_enough():
    X, y = make_multidist(6000, random_state=0)
    enough = _newton.SAMPLES_PER_POINT * _newton.points_of_fit(POLKClassifier(), 6000)
    assert enough < 6000
    model = POLKClassifier(random_state=0).fit(X, y)
    assert model.t_ == enough
    assert model.score(X, y) > 0.93
    for all_of_them in ({"shuffle": False}, {"epochs": 1}, {"max_points": 50}, {"budget": 0.5}):
        assert POLKClassifier(random_state=0, **all_of_them).fit(X, y).t_ == 6000


def bands():
    random = np.random.RandomState(0)
    X = random.normal(size=(400, 3))
    return X, (X[:, 0] + 0.1 * random.normal(size=400) > 0).astype(int)


@pytest.mark.parametrize("regularization", [1e-5, 1e-7, 1e-9, 0.0])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_a_small_regularization_does_not_ruin_the_weights(loss, regularization):
    """They were once worse than none: no step was checked, and there were 30 of them."""
    X, y = bands()
    given = {"loss": loss, "regularization": regularization, "random_state": 0}
    assert POLKClassifier(**given).fit(X, y).score(X, y) > 0.985
    assert BSGDClassifier(**given, max_points=30).fit(X, y).score(X, y) > 0.975


def long_run(problem_, start, ridge):
    """Return the objective after thousands of steps in double precision, from a good start."""
    exact = Problem(problem_.features.astype(float), problem_.targets, NOTHING, problem_.loss)
    curvature = exact.curvature() / 100 + ridge * np.eye(start.shape[0])
    lower = linalg.cholesky(curvature, lower=True)

    def objective(units):
        solution = linalg.solve_triangular(lower, units.reshape(start.shape), lower=True, trans=1)
        value, slope = exact.value(solution, ridge)
        return value, linalg.solve_triangular(lower, slope, lower=True).ravel()

    options = {"maxiter": 20_000, "maxfun": 40_000, "maxcor": 30, "ftol": 1e-14, "gtol": 1e-12}
    units = (lower.T @ start).ravel()
    return minimize(objective, units, jac=True, method="L-BFGS-B", options=options).fun


@pytest.mark.parametrize("ridge", [1.0, 1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_weights_of_two_classes_are_those_of_a_long_run(loss, ridge):
    problem_ = problem(_core.parse_loss(f"binary_{loss}"), classes=2)
    problem_.targets = (problem_.targets > 0).astype(float)
    found, converged = problem_.solve(np.zeros((30, 1)), problem_.curvature(), ridge, 30)
    assert converged
    value = problem_.value(found, ridge)[0]
    assert value <= 1.005 * long_run(problem_, found, ridge) + 1e-5 * len(problem_.targets)


# The hinge loss of several classes has kinks where rivals meet. Where the ridge is small, they keep
# the steps short.
@pytest.mark.parametrize(
    ("name", "ridge"),
    [(name, ridge) for name in LOSSES for ridge in (1.0, 1e-2)]
    + [("one_vs_rest", 1e-4), ("logistic", 1e-4)],
)
def test_weights_of_several_classes_are_near_those_of_a_long_run(name, ridge):
    problem_ = problem(LOSSES[name])
    found, converged = problem_.solve(np.zeros((30, 4)), problem_.curvature(), ridge, 30)
    assert converged
    value = problem_.value(found, ridge)[0]
    assert value <= 1.03 * long_run(problem_, found, ridge) + 1e-4 * len(problem_.targets)


def test_a_start_that_is_better_is_kept():
    problem_ = problem(_core.parse_loss("binary_squared_hinge"), classes=2)
    normal, ridge = problem_.curvature(), 1e-3
    problem_.targets = (problem_.targets > 0).astype(float)
    exact, _ = problem_.solve(np.zeros((30, 1)), normal, ridge, 30)
    with pytest.MonkeyPatch.context() as patch:
        lower = np.asfortranarray(np.eye(30))
        patch.setattr(Problem, "_approach", lambda *_: (100 * np.ones((30, 1)), lower))
        patch.setattr(_problem, "_NEWTON_STEPS", 0)
        found, converged = problem_.solve(exact, normal, ridge, 30)
    assert not converged
    assert_allclose(found, exact)


def test_weights_that_have_not_converged_are_said_to(monkeypatch):
    X, y = bands()
    monkeypatch.setattr(_problem, "_NEWTON_STEPS", 1)
    with pytest.warns(ConvergenceWarning, match="The weights have not converged"):
        POLKClassifier("hinge", regularization=1e-9, random_state=0).fit(X, y)


def test_a_curvature_that_rounding_has_made_indefinite_is_damped():
    curvature = np.diag([1e6, 1.0, -1e-3])
    lower = _problem._factor(curvature, 1e-6)
    assert np.isfinite(lower).all()
    assert_allclose(lower @ lower.T, curvature, rtol=0.2, atol=0.2)

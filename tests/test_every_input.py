"""Every method of every streaming estimator, from everything that samples and labels may come as.

An array is what all others are compared with: to the last bit, and without a warning.
"""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone, is_classifier, is_regressor

import parsimon
from parsimon import POLKClassifier, _io, compression, explain
from parsimon.stream import StreamingPipeline

COUNT, ROWS = 117, 13  # the first hundred samples of a stream are kept
NAMES = ("width", "height")
# By steps: solving for a density takes a second, and samples come to it by the same way.
DENSITY = {"grid_size": 6, "bandwidth": 1.5, "solver": "sgd", "epochs": 2, "random_state": 0}
LABELS = np.array(["ash", "beech", "cedar"])


def estimators():
    """Return every public estimator with partial_fit, and a pipeline around one of each kind."""
    made = {}
    for name, cls in _io.known_estimators().items():
        if not hasattr(cls, "partial_fit"):
            continue
        if name.endswith("Intensity"):
            made[name] = cls(domain=[(-4, 6), (-4, 6)], **DENSITY)
        else:
            made[name] = cls(random_state=0)
        if name in ("POLKClassifier", "BSGDClassifier"):
            made[f"{name}, logistic"] = cls(loss="logistic", random_state=0)
    for name in ("POLKClassifier", "POLKRegressor", "POLKOneClass"):
        made[f"pipeline of {name}"] = StreamingPipeline(made[name])
    return made


MODELS = estimators()
every = pytest.mark.parametrize("name", MODELS)


def data():
    random = np.random.default_rng(0)
    y = random.integers(0, 3, COUNT)
    return np.array([[0, 0], [2, 0], [0, 2]])[y] + 0.5 * random.normal(size=(COUNT, 2)), y


def targets_for(model):
    """Return what an estimator learns from, as arrays; classes are texts."""
    X, y = data()
    if isinstance(model, parsimon.PolicyEvaluator):
        return {"rewards": 1.0 * y, "next_states": np.roll(X, 1, axis=0)}
    if isinstance(model, parsimon.QLearner):
        return {"actions": y % 2, "rewards": 1.0 * y, "next_states": np.roll(X, 1, axis=0)}
    if is_classifier(model):
        return {"y": LABELS[y]}
    if is_regressor(model):
        return {"y": X[:, 0] - y}
    return {}


def pandas_frame(X):
    return pytest.importorskip("pandas").DataFrame(X, columns=NAMES)


def polars_frame(X):
    return pytest.importorskip("polars").DataFrame(np.ascontiguousarray(X), schema=list(NAMES))


def pandas_series(y):
    return pytest.importorskip("pandas").Series(y)


def polars_series(y):
    return pytest.importorskip("polars").Series(y.tolist())


def same(values):
    return values


# What samples are disguised as, and what targets are.
DISGUISES = {
    "lists": (np.ndarray.tolist, np.ndarray.tolist),
    "objects": (same, lambda y: y.astype(object)),
    "columns first": (np.asfortranarray, same),
    "pandas": (pandas_frame, pandas_series),
    "polars": (polars_frame, polars_series),
    "pandas, targets in a list": (pandas_frame, np.ndarray.tolist),
}


def disguised(model, how, X, targets):
    """Return samples and targets as they come; tables for a policy's next states as well."""
    of_X, of_y = DISGUISES[how]
    if how == "objects" and not is_classifier(model):
        of_y = same
    given = {n: of_X(v) if v.ndim == 2 else of_y(v) for n, v in targets.items()}
    return of_X(X), given


def learned(model, how=None, rows=ROWS):
    """Learn in blocks; how None: from arrays."""
    model = clone(model)
    X, targets = data()[0], targets_for(model)
    for start in range(0, COUNT, rows):
        part = slice(start, start + rows)
        block = X[part], {name: values[part] for name, values in targets.items()}
        if how is not None:
            block = disguised(model, how, *block)
        model.partial_fit(block[0], **block[1])
    return model


ANSWERS = (
    "predict",
    "decision_function",
    "predict_proba",
    "predict_log_proba",
    "score_samples",
    "distance",
    "density",
    "intensity",
)


def assert_same_answers(model, other, how):
    """What both say about the samples; the other is given them in disguise."""
    X, targets = data()[0], targets_for(model)
    given, given_targets = disguised(model, how, X, targets)
    asked = 0
    for answer in ANSWERS:
        assert hasattr(other, answer) == hasattr(model, answer), answer
        if hasattr(model, answer):
            asked += 1
            expected = getattr(model, answer)(X)
            found = getattr(other, answer)(given)
            assert type(found) is np.ndarray, answer
            assert_array_equal(found, expected, err_msg=answer)
    assert asked >= 1
    if hasattr(model, "score") and not isinstance(model, parsimon.PolicyEvaluator):
        truth = targets.get("y"), given_targets.get("y")
        judged = [(X, truth[0]), (given, truth[1])] if "y" in targets else [(X,), (given,)]
        if "y" in targets or not isinstance(model, StreamingPipeline):
            assert model.score(*judged[0]) == other.score(*judged[1])
    expected = getattr(model, "classes_", np.empty(0))
    assert_array_equal(getattr(other, "classes_", np.empty(0)), expected)


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Two passes are not enough, whatever samples come as.
        warnings.filterwarnings("ignore", message="The learned density integrates to")
        yield


@pytest.fixture(scope="module")
def expected():
    """Return each model as it has learned from arrays, once."""
    known = {}

    def of(name, rows=ROWS):
        if (name, rows) not in known:
            known[name, rows] = learned(MODELS[name], rows=rows)
        return known[name, rows]

    return of


@every
@pytest.mark.parametrize("how", DISGUISES)
def test_a_stream_of_blocks(name, how, expected, tmp_path):
    model, other = expected(name), learned(MODELS[name], how)
    assert_same_answers(model, other, how)
    other.save(tmp_path / "model")
    assert_same_answers(model, parsimon.load(tmp_path / "model"), how)


@every
def test_a_stream_of_single_samples(name, expected):
    for how in ("lists", "pandas", "polars"):
        assert_same_answers(expected(name, 1), learned(MODELS[name], how, rows=1), how)


@every
@pytest.mark.parametrize("how", DISGUISES)
def test_all_samples_at_once(name, how):
    model, other = clone(MODELS[name]), clone(MODELS[name])
    if not hasattr(model, "fit"):
        return
    X, targets = data()[0], targets_for(model)
    given, given_targets = disguised(model, how, X, targets)
    model.fit(X, **targets)
    other.fit(given, **given_targets)
    assert_same_answers(model, other, how)


TABLES = ("pandas", "polars")


def weighed(model):
    """Return weights of samples for estimators that know them; steps to densities do not."""
    if type(model).__name__.endswith("Intensity"):
        return {}
    random = np.random.default_rng(1)
    options = inspect.signature(model.partial_fit).parameters
    return {"sample_weight": random.uniform(0.5, 2, COUNT)} if "sample_weight" in options else {}


@pytest.mark.parametrize("how", TABLES)
@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if weighed(model)])
def test_weights_and_classes_as_series(name, how):
    model, other = clone(MODELS[name]), clone(MODELS[name])
    X, targets, weights = data()[0], targets_for(model), weighed(model)
    announced = {"classes": LABELS} if is_classifier(model) else {}
    of_series = DISGUISES[how][1]
    for start in range(0, COUNT, ROWS):
        part = slice(start, start + ROWS)
        y = {name: values[part] for name, values in (targets | weights).items()}
        model.partial_fit(X[part], **y, **announced)
        given, series = disguised(POLKClassifier(), how, X[part], y | announced)
        other.partial_fit(given, **series)
    assert_same_answers(model, other, how)
    if hasattr(model, "fit"):
        model.fit(X, **targets, **weights)
        series = {name: of_series(values) for name, values in (targets | weights).items()}
        other.fit(disguised(model, how, X, {})[0], **series)
        assert_same_answers(model, other, how)


@pytest.mark.parametrize("how", TABLES)
def test_what_follows_learning_takes_tables_too(how):
    X, y = data()
    of_X, of_y = DISGUISES[how]
    weight = np.random.default_rng(1).uniform(0.5, 2, COUNT)
    model = POLKClassifier(random_state=0).fit(X, LABELS[y])
    other = POLKClassifier(random_state=0).fit(of_X(X), of_y(LABELS[y]))
    model.refine_on(X, LABELS[y], weight)
    other.refine_on(of_X(X), of_y(LABELS[y]), of_y(weight))
    assert_same_answers(model, other, how)
    small, _ = compression.compress(model, max_points=5, X=X, y=LABELS[y])
    same_small, _ = compression.compress(other, max_points=5, X=of_X(X), y=of_y(LABELS[y]))
    assert_array_equal(same_small.decision_function(of_X(X)), small.decision_function(X))
    model.compress(max_points=5)
    other.compress(max_points=5)
    assert_same_answers(model, other, how)
    found = [
        explain.prototypes(each, rows, samples=rows, labels=labels)
        for each, rows, labels in ((model, X, LABELS[y]), (other, of_X(X), of_y(LABELS[y])))
    ]
    assert_array_equal(found[0].contributions, found[1].contributions)
    assert_array_equal(found[0].labels, found[1].labels)
    shares = [
        explain.shapley_values(each, rows, background=rows).values
        for each, rows in ((model, X), (other, of_X(X)))
    ]
    assert_array_equal(shares[0], shares[1])

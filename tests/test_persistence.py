"""Files, pickles and copies: learning goes on as if it had not stopped, and nothing is trusted."""

import copy
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from persistence_common import WAYS, assert_learning_goes_on, through_file
from polk_common import GIVEN, SGD, curve, gaussian, state, task

import parsimon
from parsimon import POLKClassifier, POLKRegressor, SPPPOTClassifier, _core, _io, kernels
from parsimon.schedules import AdaptiveBudget, PowerLaw

GOLDEN = Path(__file__).parent / "golden"

ESTIMATORS = {
    "hinge": lambda: POLKClassifier(**GIVEN),
    "two classes": lambda: POLKClassifier(**GIVEN),
    "logistic": lambda: POLKClassifier("logistic", epochs=3, random_state=0),
    "gradient steps": lambda: POLKClassifier(**SGD),
    "last iterate": lambda: POLKClassifier(**{**SGD, "average": False}),
    "falling rate": lambda: POLKClassifier(**{**GIVEN, "schedule": PowerLaw(0.6, 7)}),
    "held order": lambda: POLKClassifier(budget=AdaptiveBudget(12), epochs=3, random_state=0),
    "capped": lambda: POLKClassifier(max_points=12, epochs=3, random_state=0),
    "no compression": lambda: POLKClassifier(budget=0, solver="sgd", epochs=2, random_state=0),
    "all compressed": lambda: POLKClassifier(budget=1e9, epochs=2, random_state=0),
    "nearly dependent": lambda: POLKClassifier(**{**GIVEN, "kernel": kernels.Gaussian(30.0)}),
    "composite": lambda: POLKClassifier(
        **{
            **GIVEN,
            "kernel": kernels.Matern([0.5, 2.0], 2.5) * kernels.Cauchy(1.0)
            + 0.1 * kernels.Linear(),
        }
    ),
    "positive functions": lambda: SPPPOTClassifier(**GIVEN),
    "two positive functions": lambda: SPPPOTClassifier(
        budget=AdaptiveBudget(12, 0.1, printed=True), epochs=3, random_state=0
    ),
    "squared": lambda: POLKRegressor(random_state=0),
    "huber": lambda: POLKRegressor("huber(0.5)", **GIVEN),
    "two targets": lambda: POLKRegressor(**GIVEN),
}


def data(name, estimator):
    if isinstance(estimator, POLKRegressor):
        X, y = curve()
        return X, np.column_stack([y, 3 * y**2]) if name == "two targets" else y
    X, y = task()
    return X, np.array(["no", "yes"])[y % 2] if name.startswith("two") else y


@pytest.mark.filterwarnings("ignore:The model order is")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_learning_goes_on_as_if_it_had_not_stopped(name, way, tmp_path):
    model = ESTIMATORS[name]()
    X, y = data(name, model)
    parts = [slice(start, start + 90) for start in range(0, 6 * 37, 37)]
    other = assert_learning_goes_on(model.fit(X, y), way, tmp_path, (X, y), parts)
    assert other.get_params() == model.get_params()
    assert other.fit(X, y).t_ == model.fit(X, y).t_
    assert state(other) == state(model)


@pytest.mark.parametrize("way", ["pickle", "deepcopy"])
def test_copies_are_independent(way, tmp_path):
    X, y = task()
    model = POLKClassifier(**GIVEN).fit(X, y)
    before = state(model)
    WAYS[way](model, tmp_path).partial_fit(X, y)
    assert state(model) == before


def test_estimators_that_are_not_fitted():
    for model in (POLKClassifier(**GIVEN), POLKRegressor("huber", schedule="sqrt")):
        for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            assert other.get_params() == model.get_params()
            assert not hasattr(other, "t_")


def test_a_long_stream_with_a_stop_after_every_block(tmp_path):
    X, y = parsimon.datasets.make_multidist(3000, random_state=5)
    settings = {**GIVEN, "parsimony": 1e-4, "learning_rate": 6.0}
    straight, stopping = POLKClassifier(**settings), POLKClassifier(**settings)
    for start in range(0, 3000, 100):
        part = slice(start, start + 100)
        straight.partial_fit(X[part], y[part], classes=range(5))
        stopping.partial_fit(X[part], y[part], classes=range(5))
        stopping = through_file(stopping, tmp_path)
    assert state(straight) == state(stopping)


# -- kernels that are functions ------------------------------------------------------------------


def test_function_kernels_are_given_again(tmp_path):
    X, y = task()
    kernel = kernels.Function(gaussian) + 0.5 * kernels.Linear()
    model = POLKClassifier(**{**GIVEN, "kernel": kernel}).fit(X, y)
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="give the kernel again when loading"):
        parsimon.load(tmp_path / "model")
    other = parsimon.load(tmp_path / "model", kernel=kernel)
    assert state(other.partial_fit(X, y)) == state(model.partial_fit(X, y))
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert state(twin) == state(model)
        assert_array_equal(twin.predict(X), model.predict(X))


def test_a_kernel_that_is_not_the_saved_one_is_refused(tmp_path):
    model = POLKClassifier(**GIVEN).fit(*task())
    model.save(tmp_path / "model")
    assert state(parsimon.load(tmp_path / "model", kernel=GIVEN["kernel"])) == state(model)
    with pytest.raises(ValueError, match=r"has the kernel gaussian\(0\.7\)"):
        parsimon.load(tmp_path / "model", kernel=kernels.Gaussian(0.71))


# -- writing -------------------------------------------------------------------------------------


def test_a_file_is_replaced_in_one_go(tmp_path, monkeypatch):
    X, y = task()
    path = tmp_path / "model"
    first = POLKClassifier(**GIVEN).fit(X, y)
    first.save(path)
    link = tmp_path / "link"
    os.link(path, link)
    second = POLKClassifier(**GIVEN).fit(X[:50], y[:50])
    second.save(path)
    assert state(parsimon.load(path)) == state(second)
    assert state(parsimon.load(link)) == state(first)  # the old file was not written into
    assert sorted(file.name for file in tmp_path.iterdir()) == ["link", "model"]


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path):
    X, y = task()
    model = POLKClassifier(**GIVEN).fit(X, y)
    with pytest.raises(OSError, match=r"No such file|not found") as error:
        model.save(tmp_path / "missing" / "model")
    assert error.value.filename is not None
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        model.save(tmp_path / "folder")
    assert [file.name for file in tmp_path.iterdir()] == ["folder"]
    model.save(tmp_path / "model")
    before = (tmp_path / "model").read_bytes()
    model.set_params(random_state=np.random.RandomState(0))
    with pytest.raises(ValueError, match="random_state is RandomState"):
        model.save(tmp_path / "model")
    model.set_params(random_state=0, batch_size=-1)
    with pytest.raises(ValueError, match="batch_size must be an integer"):
        model.save(tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == before


# -- files of earlier versions -------------------------------------------------------------------


def write_golden():
    """Run once for each version of the format, with the first parsimon that has it."""
    X, y = task()
    names = np.array(["ash", "beech", "cedar", "date", "elm"])
    settings = {**GIVEN, "parsimony": 0.1, "learning_rate": 3.0}
    model = POLKClassifier(**settings).fit(X[:200], names[y[:200]])
    model.save(GOLDEN / "polk_v1.parsimon")
    decision, labels = model.decision_function(X)[::10], model.predict(X)
    continued = model.partial_fit(X, names[y]).decision_function(X)[::10]
    np.savez_compressed(
        GOLDEN / "polk_v1.npz", decision=decision, labels=labels, continued=continued
    )


def test_the_first_format_can_still_be_read():
    path = GOLDEN / "polk_v1.parsimon"
    assert path.stat().st_size < 20_000
    model = parsimon.load(path)
    with np.load(GOLDEN / "polk_v1.npz") as file:
        expected = dict(file)
    X, y = task()
    assert_allclose(model.decision_function(X)[::10], expected["decision"], rtol=1e-10, atol=1e-12)
    assert_array_equal(model.predict(X), expected["labels"])
    assert model.t_ == 400
    assert model.get_params()["batch_size"] == 16
    # What there was before there was a choice.
    assert model.solver == "sgd"
    assert model.max_points is None
    model.partial_fit(X, model.classes_[y])
    assert_allclose(model.decision_function(X)[::10], expected["continued"], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("cls", [POLKClassifier, POLKRegressor])
@pytest.mark.parametrize("cap", [{}, {"max_points": 9}])
def test_a_file_from_before_the_solver_goes_on_with_gradient_steps(cls, cap, tmp_path):
    X, y = task()
    model = cls(**{**SGD, "max_points": None, "half_life": None, **cap}).fit(X[:200], y[:200])
    archive = _io.to_archive(model)
    parameters = json.loads(archive["estimator.parameters"])
    for name in ("solver", "half_life", *({"max_points"} - cap.keys())):
        del parameters[name]
    archive["estimator.parameters"] = json.dumps(parameters)
    archive.write(str(tmp_path / "model"))
    again = parsimon.load(tmp_path / "model")
    assert again.get_params() == model.get_params()
    assert state(again.partial_fit(X[200:], y[200:])) == state(model.partial_fit(X[200:], y[200:]))


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"half_life": 300.0, "budget": 0.05},
        {"half_life": None, "regularization": 1e-4, "parsimony": 0.02},
        {"max_points": 15, "budget": 0.01},
        {"max_points": 15, "budget": 0},
        {"solver": "sgd", "max_points": None, "regularization": 1e-4, "budget": 0.05},
        {"solver": "sgd", "max_points": 15, "regularization": 1e-4, "budget": 0.05},
    ],
    ids=str,
)
def test_a_core_file_tells_how_its_weights_are_found(given, tmp_path):
    X, y = task()
    model = POLKClassifier(kernel=kernels.Gaussian(0.7), **given)
    model.partial_fit(X[:200], y[:200], classes=range(5))
    path = tmp_path / "core.parsimon"
    _core.Archive(dict(model._model.to_archive())).write(str(path))
    again = parsimon.load(path)
    assert type(again) is POLKClassifier
    expected = {"solver": "newton", "half_life": "auto", "max_points": None, **given}
    if not given:
        expected["max_points"] = "auto"
    assert {name: again.get_params()[name] for name in expected} == expected
    again.partial_fit(X[200:], y[200:])
    model.partial_fit(X[200:], y[200:])
    assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_a_core_file_with_a_budget_and_a_cap_is_polks(tmp_path):
    X = np.random.default_rng(0).normal(size=(200, 2))
    y = (X[:, 0] > 0).astype(int)
    model = POLKClassifier(parsimony=0.01, max_points=7, epochs=1, random_state=0)
    entries = dict(model.fit(X, y)._model.to_archive())
    path = tmp_path / "core.parsimon"
    _core.Archive(entries).write(str(path))
    again = parsimon.load(path)
    assert type(again) is POLKClassifier
    assert (again.max_points, again.parsimony) == (7, 0.01)
    assert again.model_order_ <= 7
    assert_array_equal(again.decision_function(X), model.decision_function(X))

"""Files, pickles and copies of COLK and policy evaluation: learning goes on bit for bit."""

import os
import pickle
import signal
import threading

import numpy as np
import pytest
from colk_common import ESTIMATORS, FALLING, data, fitted, outliers
from numpy.testing import assert_array_equal
from persistence_common import WAYS, assert_learning_goes_on, load
from polk_common import state

import parsimon
from parsimon import (
    CompositionalLearner,
    _io,
    _stream,
    kernels,
)


@pytest.mark.filterwarnings("ignore:The model order is")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_learning_goes_on_as_if_it_had_not_stopped(name, way, tmp_path):
    model = ESTIMATORS[name]()
    blocks = data(name, model)
    parts = [slice(start, start + 90) for start in range(0, 6 * 37, 37)]
    other = assert_learning_goes_on(model.fit(*blocks), way, tmp_path, blocks, parts)
    assert other.get_params() == model.get_params()
    assert other.fit(*blocks).t_ == model.fit(*blocks).t_
    assert state(other) == state(model)


@pytest.mark.parametrize("name", ["moments", "classes", "gtd"])
def test_a_model_of_a_program_in_cpp(name, tmp_path):
    """Without what Python adds, the file says what the estimator is."""
    model = ESTIMATORS[name]()
    blocks = data(name, model)
    model.fit(*blocks)
    model._model.to_archive().write(os.fspath(tmp_path / "model"))
    other = parsimon.load(tmp_path / "model")
    assert type(other) is type(model)
    assert_array_equal(other.expansion_(blocks[0]), model.expansion_(blocks[0]))
    for setting in ("risk", "risk_weight", "clip", "level", "loss", "method", "discount"):
        if hasattr(model, setting) and getattr(model, setting) != "auto":
            assert getattr(other, setting) == getattr(model, setting), setting
    other.partial_fit(*(other.predict(blocks[0]) if i == 1 else b for i, b in enumerate(blocks)))


# -- the general problem ---------------------------------------------------------------------------


def inner(f, y):
    return (f - y) ** 2


def inner_derivative(f, y):
    return 2 * (f - y)[:, :, None]


def outer_gradient(f, y, g):
    return np.repeat(1 / (1 + g), len(f), axis=0)


def general(**settings):
    return CompositionalLearner(
        inner, inner_derivative, outer_gradient, kernel=kernels.Gaussian(0.1), learning_rate=0.2,
        batch_size=8, budget=1e-3, random_state=0, **settings,
    )  # fmt: skip


@pytest.mark.parametrize("way", ["pickle", "oldest pickle", "deepcopy"])
@pytest.mark.parametrize("settings", [{}, FALLING], ids=["constant", "falling"])
def test_a_general_problem_goes_on(way, settings, tmp_path):
    X, y = outliers(400)
    model = general(**settings).fit(X, y)
    other = WAYS[way](model, tmp_path)
    for start in range(0, 400, 70):
        part = slice(start, start + 70)
        model.partial_fit(X[part], y[part])
        other.partial_fit(X[part], y[part])
        other = WAYS[way](other, tmp_path)
        assert other.weights_.tobytes() == model.weights_.tobytes()
        assert other.tracked_.tobytes() == model.tracked_.tobytes()
        assert_array_equal(other.trace_["tracked"], model.trace_["tracked"])
    assert model.model_order_ > 5


def test_a_general_problem_has_no_file(tmp_path):
    model = general().fit(*outliers(100))
    with pytest.raises(NotImplementedError, match=r"cannot hold the functions .* use pickle"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())
    entries = {**model._model.to_archive(), "estimator": "CompositionalLearner"}
    with pytest.raises(ValueError, match="CompositionalLearner"):
        load(entries)
    with pytest.raises(ValueError, match=r"compositional|not a complete model"):
        load(dict(model._model.to_archive()))


# -- files that are damaged or made up -------------------------------------------------------------


FOREIGN = {
    "short trace": ("moments", {"trace.risk": np.zeros((0, 4))}, "trace"),
    "long trace": ("moments", {"trace.risk": np.zeros((100, 4))}, "trace"),
    "infinite trace": ("moments", {"trace.risk": np.full((13, 4), np.inf)}, "trace|finite"),
    "weight": ("moments", {"risk.parameters": np.array([-1.0, 4, 1])}, "risk weight"),
    "order": ("moments", {"risk.parameters": np.array([0.1, 4.5, 1])}, "order of the moments"),
    "clip": ("moments", {"risk.parameters": np.array([0.1, 4, -1])}, "clip"),
    "level": ("cvar", {"risk.parameters": np.array([1.0, 1.0, 1])}, "level between 0 and 1"),
    "another risk": ("moments", {"risk": "cvar"}, "CVaR|tracked"),
    "no risk": ("moments", {"risk": "none"}, "tracked"),
    "unknown risk": ("moments", {"risk": "x"}, "no risk"),
    "tracked": ("moments", {"tracked": np.array([np.nan])}, "tracked"),
    "two tracked": ("moments", {"tracked": np.ones(2)}, "tracked"),
    "tracking rate": ("moments", {"tracking.parameters": np.array([1.5])}, "tracking rate"),
    "another algorithm": ("moments", {"algorithm": "policy_evaluation"}, "policy_evaluation"),
    "another estimator": ("moments", {"estimator": "PolicyEvaluator"}, "PolicyEvaluator"),
    "another loss": ("moments", {"loss": "binary_logistic"}, "loss"),
    "a regressor's loss": ("two classes", {"loss": "squared"}, "loss"),
    "discount": ("gtd", {"discount": 1.0}, "discount"),
    "another policy": ("gtd", {"estimator": "COLKRegressor"}, "COLKRegressor"),
}  # fmt: skip


@pytest.mark.parametrize("case", FOREIGN)
def test_entries_that_do_not_belong_together(case):
    name, change, message = FOREIGN[case]
    model = fitted(name)
    with pytest.raises(ValueError, match=message):
        load({**_io.to_archive(model), **change})


# -- interrupts ------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
@pytest.mark.parametrize("name", ["moments", "two classes", "gtd", "general"])
def test_control_c_keeps_a_model_that_can_be_used(name, monkeypatch):
    model = general() if name == "general" else ESTIMATORS[name]()
    blocks = outliers(400) if name == "general" else data(name, model)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    run = _stream.run

    def interrupted_run(*arguments):
        if timer.ident is None:
            timer.start()
        run(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(_stream, "run", interrupted_run)
        with pytest.raises(KeyboardInterrupt):
            model.set_params(epochs=10**6, shuffle=False).fit(*blocks)
    assert model.t_ == model.trace_["samples"][-1] > 0
    assert len({len(column) for column in model.trace_.values()}) == 1
    taken = model.t_
    assert model.partial_fit(*blocks).t_ == taken + 400
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(blocks[0]), model.predict(blocks[0]))

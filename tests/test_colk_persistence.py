"""Files, pickles and copies of COLK and policy evaluation: learning goes on bit for bit."""

import copy
import json
import os
import pickle
import signal
import threading

import numpy as np
import pytest
from colk_common import GIVEN, RISKS, outliers
from numpy.testing import assert_array_equal
from polk_common import state, task
from test_damaged_files import JSON_JUNK, JUNK

import parsimon
from parsimon import (
    COLKClassifier,
    COLKRegressor,
    CompositionalLearner,
    PolicyEvaluator,
    _core,
    _io,
    _stream,
    kernels,
)
from parsimon.schedules import AdaptiveBudget, PowerLaw

FALLING = {"schedule": PowerLaw(0.9, 20), "tracking_schedule": PowerLaw(0.7, 5)}
POLICY = {"gamma": 20.0, "random_state": 0}
ESTIMATORS = {
    **{risk: lambda risk=risk: COLKRegressor(**{**GIVEN, "risk": risk}) for risk in RISKS},
    "no risk": lambda: COLKRegressor(None, random_state=0),
    "no clip": lambda: COLKRegressor(
        **{**GIVEN, "risk": "semivariance", "clip": None, "risk_weight": 0.01}
    ),
    "defaults": lambda: COLKRegressor(epochs=2, random_state=0),
    "falling": lambda: COLKRegressor(**GIVEN, **FALLING),
    "held order": lambda: COLKRegressor(budget=AdaptiveBudget(12), epochs=3, random_state=0),
    "last iterate": lambda: COLKRegressor(**GIVEN, average=False),
    "no compression": lambda: COLKRegressor(**{**GIVEN, "parsimony": 0.0}),
    "two targets": lambda: COLKRegressor(**GIVEN),
    "classes": lambda: COLKClassifier(epochs=2, random_state=0),
    "two classes": lambda: COLKClassifier("cvar", level=0.5, epochs=2, random_state=0),
    "gtd": lambda: PolicyEvaluator(**POLICY),
    "td": lambda: PolicyEvaluator("td", schedule="sqrt", average=False, **POLICY),
    "policy, held order": lambda: PolicyEvaluator(budget=AdaptiveBudget(8), **POLICY),
}


def data(name, model):
    if isinstance(model, PolicyEvaluator):
        random = np.random.RandomState(0)
        states = random.uniform(size=(400, 1))
        following = np.clip(states + 0.1 * random.randn(400, 1), 0, 1)
        return states, np.sin(6 * states[:, 0]), following, random.uniform(size=400) < 0.1
    if isinstance(model, COLKClassifier):
        X, y = task()
        return X, np.array(["no", "yes"])[y % 2] if name == "two classes" else y
    X, y = outliers(400)
    return X, np.column_stack([y, X[:, 0] ** 2]) if name == "two targets" else y


def through_file(model, tmp_path):
    model.save(tmp_path / "model.parsimon")
    return parsimon.load(tmp_path / "model.parsimon")


WAYS = {
    "file": through_file,
    "pickle": lambda model, _: pickle.loads(pickle.dumps(model)),
    "oldest pickle": lambda model, _: pickle.loads(pickle.dumps(model, protocol=2)),
    "deepcopy": lambda model, _: copy.deepcopy(model),
}


@pytest.mark.filterwarnings("ignore:The model order is")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_learning_goes_on_as_if_it_had_not_stopped(name, way, tmp_path):
    model = ESTIMATORS[name]()
    blocks = data(name, model)
    model.fit(*blocks)
    other = WAYS[way](model, tmp_path)
    assert type(other) is type(model)
    assert other.get_params() == model.get_params()
    for round_ in range(6):
        assert state(other) == state(model)
        assert_array_equal(other.predict(blocks[0]), model.predict(blocks[0]))
        for column in model.trace_:
            assert_array_equal(other.trace_[column], model.trace_[column])
        part = slice(37 * round_, 37 * round_ + 90)
        model.partial_fit(*(block[part] for block in blocks))
        other.partial_fit(*(block[part] for block in blocks))
        other = WAYS[way](other, tmp_path)
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


def load(entries):
    """Load from memory: writing thousands of files safely takes longer than all the rest."""
    content = _core.Archive(entries).to_bytes()
    with pytest.MonkeyPatch.context() as patch:
        archive = _core.Archive.from_bytes(content)
        patch.setattr(_core.Archive, "read", staticmethod(lambda _: archive))
        return parsimon.load("made up")


def assert_refused_or_usable(entries, model):
    """Either it says what is wrong, or what is loaded works. Return whether it was loaded."""
    try:
        other = load(entries)
    except ValueError as error:
        return len(str(error)) < 20
    points = model.dictionary_
    assert np.isfinite(other.expansion_(points)).all()
    assert len({len(column) for column in other.trace_.values()}) == 1
    targets = other.predict(points)
    other.partial_fit(points, targets, *([points] if isinstance(other, PolicyEvaluator) else []))
    return True


def sources():
    for name in ("moments", "cvar", "no risk", "two classes", "gtd", "td"):
        model = ESTIMATORS[name]()
        model.fit(*(block[:100] for block in data(name, model)))
        yield model, dict(_io.to_archive(model))
        yield model, dict(model._model.to_archive())


def test_truncated_files_and_flipped_bits(tmp_path):
    random = np.random.RandomState(0)
    for name in ("moments", "gtd"):
        model = ESTIMATORS[name]()
        model.fit(*(block[:100] for block in data(name, model))).save(tmp_path / "model")
        content = (tmp_path / "model").read_bytes()
        damaged = [content[:length] for length in range(0, len(content), 53)]
        for position in random.randint(0, len(content), 100):
            flipped = bytearray(content)
            flipped[position] ^= 1 << random.randint(8)
            damaged.append(bytes(flipped))
        for part in damaged:
            (tmp_path / "broken").write_bytes(part)
            with pytest.raises((ValueError, OSError), match=r".{20}"):
                parsimon.load(tmp_path / "broken")


def test_entries_that_are_missing():
    for model, entries in sources():
        for name in entries:
            rest = {key: value for key, value in entries.items() if key != name}
            assert assert_refused_or_usable(rest, model) is (name == "estimator"), name


def test_entries_of_another_type():
    for model, entries in sources():
        for name in entries:
            for junk in JUNK:
                assert_refused_or_usable({**entries, name: junk}, model)


@pytest.mark.parametrize("entry", ["estimator.parameters", "estimator.fitted"])
def test_settings_and_attributes_that_are_wrong(entry):
    for model, entries in sources():
        if entry not in entries:
            continue
        values = json.loads(entries[entry])
        changed = [{**values, name: junk} for name in values for junk in JSON_JUNK]
        changed += [{**values, name: 3} for name in ("_model", "predict", "t_", "__class__", "x_")]
        for change in changed:
            assert_refused_or_usable({**entries, entry: json.dumps(change)}, model)


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
    model = ESTIMATORS[name]()
    model.fit(*(block[:100] for block in data(name, model)))
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

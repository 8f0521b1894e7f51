"""Model files that are damaged or made up: refused with a sentence, never believed."""

import copy
import json
import pickle
from pathlib import Path

import colk_common
import numpy as np
import pytest
from intensity_common import LINE, toy
from numpy.testing import assert_allclose
from persistence_common import load
from polk_common import GIVEN, task
from sklearn.base import clone

import parsimon
from parsimon import (
    HybridIntensity,
    MirrorNewtonIntensity,
    PolicyEvaluator,
    POLKClassifier,
    POLKRegressor,
    SPPPOTClassifier,
    SPPPOTIntensity,
    _core,
    _io,
)
from parsimon.schedules import AdaptiveBudget


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Return a small model and its file."""
    X, y = task()
    settings = {**GIVEN, "parsimony": 0.1, "learning_rate": 3.0}
    model = POLKClassifier(**settings).fit(X[:100], y[:100])
    assert 0 < model.model_order_ < 20
    path = tmp_path_factory.mktemp("small") / "model"
    model.save(path)
    return model, path


def assert_refused(path, content, message=r".{20}"):
    path.write_bytes(content)
    with pytest.raises((ValueError, OSError), match=message):
        parsimon.load(path)


@pytest.fixture(name="content", scope="module", params=["polk", "moments", "gtd"])
def _content(request, small, tmp_path_factory):
    """Return what a file holds, of several algorithms."""
    if request.param == "polk":
        return small[1].read_bytes()
    path = tmp_path_factory.mktemp("content") / "model"
    colk_common.fitted(request.param).save(path)
    return path.read_bytes()


def test_truncated_files(content, tmp_path):
    lengths = {*range(200), *range(0, len(content), 53), *range(len(content) - 50, len(content))}
    for length in lengths:
        assert_refused(tmp_path / "model", content[:length])


def test_files_that_are_too_long(content, tmp_path):
    for more in (b"\0", content, b"x" * 1000):
        assert_refused(tmp_path / "model", content + more)


def test_a_future_version(content, tmp_path):
    newer = bytearray(content)
    newer[8] += 1
    assert_refused(tmp_path / "model", bytes(newer), "written by a newer parsimon .*upgrade")


def test_flipped_bits(content, tmp_path):
    random = np.random.RandomState(0)
    for position in {*range(64), *random.randint(0, len(content), 300)}:
        flipped = bytearray(content)
        flipped[position] ^= 1 << random.randint(8)
        assert_refused(tmp_path / "model", bytes(flipped))


def test_foreign_files(small, tmp_path):
    path = tmp_path / "model"
    random = np.random.RandomState(1)
    content = small[1].read_bytes()
    for length in (0, 1, 7, 8, 31, 32, 100, 1000, 10_000):
        assert_refused(path, random.bytes(length))
        if length >= 32:
            assert_refused(path, content[:32] + random.bytes(length - 32))
    assert_refused(path, pickle.dumps(small[0]))
    assert_refused(path, Path(__file__).read_bytes())
    np.savez(tmp_path / "arrays.npz", a=np.zeros(3))
    assert_refused(path, (tmp_path / "arrays.npz").read_bytes())
    with pytest.raises(FileNotFoundError):
        parsimon.load(tmp_path / "missing")
    with pytest.raises(OSError, match="director"):
        parsimon.load(tmp_path)


# -- reading what was made up, with a checksum that is right --------------------------------------

JUNK = [
    "",
    "text",
    0,
    -1,
    2**62,
    -(2**63),
    0.0,
    np.nan,
    -np.inf,
    1e300,
    np.zeros(0),
    np.zeros(3),
    np.full(1, np.nan),
    np.zeros((2, 2)),
    np.zeros((0, 2)),
    np.arange(3),
    np.full(1, 2**62),
]
JSON_JUNK = [
    None,
    -1,
    1e400,
    "x",
    [1],
    {},
    {"kernel": 1},
    {"power_law": 5},
    {"power_law": [7.0]},
    {"adaptive_budget": [7]},
    {"adaptive_budget": [0.5, 1]},
    {"array": [1], "type": "<i8", "object": False},
    {"array": [10**30], "type": "<i8", "object": False},
    {"array": [[1, 2], [3]], "type": "<f8", "object": False},
    {"array": ["a"], "type": "text", "object": True},
    {"array": [1], "type": "O", "object": False},
    {"array": [1], "type": "9999999f8", "object": False},
    {"array": [None] * 5, "type": "<f8", "object": False},
    {"array": [0] * 5, "type": "<i8", "object": False},
]


def polk_and_densities():
    X, y = task()
    classifier = POLKClassifier(**GIVEN).fit(X[:100], y[:100])
    regressor = POLKRegressor(**{**GIVEN, "schedule": "sqrt"}).fit(X[:100], X[:100])
    positive = SPPPOTClassifier(**GIVEN).fit(X[:100], y[:100])
    held = SPPPOTIntensity(**LINE, mirror="mahalanobis", budget=AdaptiveBudget(25))
    densities = [
        held.partial_fit(toy()[:300], validation=toy()[:9]),
        MirrorNewtonIntensity(**LINE).fit(toy()[:300]),
        HybridIntensity(**LINE, patience=5).fit(toy()[:300]),
        HybridIntensity(**LINE, patience=10**6).partial_fit(toy()[:100]),
    ]
    return classifier, regressor, positive, *densities


def colk():
    return map(colk_common.fitted, ("moments", "cvar", "no risk", "two classes", "gtd", "td"))


@pytest.fixture(name="sources", scope="module", params=[polk_and_densities, colk])
def _sources(request):
    """Models, and what files hold of them: those of Python, and those of a C++ program."""
    return [
        (model, entries)
        for model in request.param()
        for entries in (dict(_io.to_archive(model)), dict(model._model.to_archive()))
    ]


def loads(entries, model):
    """Return whether load takes these entries; either it says what is wrong or its model works."""
    try:
        other = load(entries)
    except ValueError as error:
        return len(str(error)) < 20
    X = model.dictionary_
    assert np.isfinite(other.expansion_(X)).all()
    assert len({len(column) for column in other.trace_.values()}) == 1
    if hasattr(other, "predict"):
        following = [X] if isinstance(other, PolicyEvaluator) else []
        other.partial_fit(X, other.predict(X), *following)
    else:
        other.partial_fit(X)
        assert other.n_points_ >= len(X)
        assert np.isfinite(other.integral_)
    return True


def test_entries_that_are_missing(sources):
    for model, entries in sources:
        for name in entries:
            rest = {key: value for key, value in entries.items() if key != name}
            loaded = loads(rest, model)
            # Without what Python added, it is the file of a C++ program; earlier versions did not
            # write the integral. They had no latest sample either: without it, what it weighs and
            # its target are not looked at. One text of two is what has been seen of one class.
            optional = ("estimator", "density.log_integral", "latest.sample", "labels.1")
            assert loaded is (name in optional), name


def test_files_without_a_latest_sample(sources):
    for model, entries in sources:
        earlier = {key: value for key, value in entries.items() if not key.startswith("latest.")}
        assert loads(earlier, model)


def test_entries_of_another_type(sources):
    for model, entries in sources:
        for name in entries:
            for junk in JUNK:
                loads({**entries, name: junk}, model)


@pytest.mark.parametrize("entry", ["estimator.parameters", "estimator.fitted"])
def test_settings_and_attributes_that_are_wrong(entry, sources):
    for model, entries in sources:
        if entry not in entries:
            continue
        values = json.loads(entries[entry])
        changed = [{**values, name: junk} for name in values for junk in JSON_JUNK]
        changed += [{**values, name: 3} for name in ("_model", "predict", "t_", "__class__", "x_")]
        changed += [{k: v for k, v in values.items() if k != name} for name in values]
        for change in changed:
            loads({**entries, entry: json.dumps(change)}, model)
        for text in ("", "{", "[]", "null", "3", "[" * 100_000, '{"a":' * 50_000, '"\\ud800"'):
            assert not loads({**entries, entry: text}, model)


@pytest.mark.filterwarnings("ignore:The learned density integrates")
def test_kernels_that_are_wrong(sources):
    texts = [
        "",
        "x",
        "gaussian(nan)",
        "gaussian(0)",
        "gaussian([1,2,3])",
        "linear()",
        "gaussian(0.1)",
    ]
    texts += ["sum(" * 1000 + "linear()" + ")" * 1000, "gaussian([" + "1," * 10_000 + "1])"]
    texts += ["function(x)", "__import__('os')", "polynomial(2.5,1,1)", "gaussian(0.7)"]
    for model, entries in sources:
        for text in texts:
            loads({**entries, "kernel": text}, model)


def test_an_unknown_estimator(small, tmp_path):
    entries = dict(_io.to_archive(small[0])) | {"estimator": "Oracle"}
    _core.Archive(entries).write(tmp_path / "model")
    with pytest.raises(ValueError, match="'Oracle', which this version of parsimon does not know"):
        parsimon.load(tmp_path / "model")


def test_a_factor_that_is_wrong_is_not_believed(small, tmp_path):
    X, y = task()
    model = clone(small[0]).set_params(solver="sgd").fit(X[:100], y[:100])
    entries, solved = dict(_io.to_archive(model)), dict(_io.to_archive(small[0]))
    for change in (lambda f: 0 * f, lambda f: -f, lambda f: 2 * f, lambda f: f[::-1].copy()):
        _core.Archive({**solved, "factor": change(solved["factor"])}).write(tmp_path / "model")
        # Without it, nobody knows what the statistics are about.
        with pytest.raises(ValueError, match="statistics in the model file are not those"):
            parsimon.load(tmp_path / "model")
        _core.Archive({**entries, "factor": change(entries["factor"])}).write(tmp_path / "model")
        other = parsimon.load(tmp_path / "model")
        assert_allclose(other.decision_function(X), model.decision_function(X), rtol=1e-12)
        other.partial_fit(X, y)
        expected = copy.deepcopy(model).partial_fit(X, y)
        assert_allclose(other.decision_function(X), expected.decision_function(X), atol=1e-6)
        assert (other.trace_["compression_error"] <= other.trace_["budget"]).all()


def test_claims_without_end_are_not_allocated(small, tmp_path):
    entries = dict(small[0]._model.to_archive())
    for name, columns in (("outputs", 1 << 39), ("features", 1 << 39)):
        huge = {
            **entries,
            name: columns,
            "dictionary": np.zeros((0, 2)),
            "weights": np.zeros((0, 10)),
            "dictionary.origin": np.zeros(0),
            "dictionary.ids": np.zeros(0, dtype=np.int64),
            "dictionary.protected": np.zeros(0, dtype=np.int64),
            "factor": np.zeros(0),
            "factor.size": 0,
        }
        _core.Archive(huge).write(tmp_path / "model")
        with pytest.raises(ValueError, match=r".{20}"):
            parsimon.load(tmp_path / "model")

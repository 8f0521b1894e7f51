"""dumps, loads, to_json, from_json: models that come back as they were."""

import json

import numpy as np
import pytest
from export_common import every_estimator, said, samples
from polk_common import task

import parsimon
from parsimon import kernels
from parsimon.export import dumps, from_json, loads, to_json

MODELS = every_estimator()


@pytest.mark.parametrize("name", MODELS)
def test_every_estimator_comes_back(name):
    model, X = MODELS[name], samples(100)
    expected = said(model, X)
    for again in (loads(dumps(model)), from_json(to_json(model))):
        assert type(again) is type(model)
        for what, rows in said(again, X).items():
            assert (rows == expected[what]).all()
        assert dumps(again) == dumps(model)


def test_bytes_are_those_of_the_file(tmp_path):
    MODELS["classes"].save(tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == dumps(MODELS["classes"])


def test_a_pipeline_comes_back():
    X, y = task()
    model = parsimon.stream.StreamingPipeline(parsimon.POLKClassifier(random_state=0)).fit(X, y)
    for again in (loads(dumps(model)), from_json(to_json(model))):
        assert (again.predict(X) == model.predict(X)).all()


def test_a_kernel_of_the_user_is_given_again():
    kernel = kernels.Function(lambda X, Y: X @ Y.T)
    f = parsimon.KernelExpansion(kernel, [[1.0], [2.0]], [1.0, 3.0])
    for again in (loads(dumps(f), kernel=kernel), from_json(to_json(f), kernel=kernel)):
        assert (again([[2.0]]) == f([[2.0]])).all()


def test_the_schema_is_what_the_documentation_says():
    found = json.loads(to_json(MODELS["slkl"]))
    assert set(found) == {"format", "version", "entries"}
    entry = found["entries"]["dictionary"]
    assert set(entry) == {"type", "shape", "data"}
    points = np.reshape(entry["data"], entry["shape"])
    assert (points == MODELS["slkl"].dictionary_).all()


def damaged(**change):
    found = json.loads(to_json(MODELS["slkl"]))
    entries = found["entries"] | change
    return json.dumps({**found, "entries": {k: v for k, v in entries.items() if v is not None}})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "no model of parsimon"),
        ("{", "of the type str, is no text in JSON: give what to_json"),
        ('{"format": "parsimon", "version": 2}', "version 2 of the format"),
        ('{"format": "parsimon", "version": 1}', "it has no entries"),
        (damaged(weights={"type": "numbers"}), "The entry 'weights' must be"),
        (damaged(weights={"type": "numbers", "shape": [7], "data": [1.0]}), "The entry 'weights'"),
        (damaged(kernel=None), "not a complete model: it has no entry 'kernel'"),
        (damaged(features=77), "."),
    ],
)
def test_what_is_no_model_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        from_json(text)


def test_what_is_no_text_is_refused():
    with pytest.raises(ValueError, match="of the type int, is no text in JSON"):
        from_json(3)


def test_what_cannot_be_written_is_refused():
    for write in (dumps, to_json):
        with pytest.raises(TypeError, match="A list cannot be written down"):
            write([])
        with pytest.raises(ValueError, match="not fitted"):
            write(parsimon.POLKClassifier())
    with pytest.raises(TypeError, match="loads takes bytes"):
        loads("text")
    with pytest.raises(ValueError, match="not a parsimon model"):
        loads(b"something else")

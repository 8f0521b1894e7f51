"""to_onnx: graphs that say what Python says."""

import sys

import numpy as np
import pytest
from export_common import (
    EVERY_KERNEL,
    allowed,
    every_estimator,
    of_kernel,
    said,
    samples,
    unit,
    written,
)
from polk_common import GIVEN, task
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

import parsimon
from parsimon import kernels
from parsimon.export import register_with_skl2onnx, to_onnx

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

TOLERANCE = {"float32": 1e-6, "float64": 1e-12}
MODELS = every_estimator()


def ask(proto, X, dtype):
    session = runtime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    given = {session.get_inputs()[0].name: X.astype(dtype)}
    return dict(zip(names, session.run(None, given), strict=True))


def assert_same(model, X, dtype, tolerance=None):
    X = X.astype(dtype).astype(float)
    expected = said(model, X, iterates=False)
    found = ask(written(to_onnx, model, iterates=False, dtype=dtype), X, dtype)
    assert set(found) == set(expected)
    for what, rows in expected.items():
        assert found[what].shape == rows.shape
        if what == "label":
            assert (found[what] == rows).all()
            continue
        assert found[what].dtype == dtype
        finite = np.isfinite(rows)
        assert (np.isfinite(found[what]) == finite).all()
        away = np.abs(found[what][finite] - rows[finite]) / allowed(model, X, what, rows[finite])
        assert away.max() <= (tolerance or TOLERANCE[dtype]), what


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", MODELS)
def test_every_estimator(name, dtype):
    assert_same(MODELS[name], samples(), dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("kernel", EVERY_KERNEL, ids=str)
def test_every_kernel(kernel, dtype):
    # Points of the model among them, where a distance is 0.
    assert_same(of_kernel(kernel), np.vstack([samples(1000), task()[0][:200]]), dtype)


@pytest.mark.parametrize(
    "scaler", [StandardScaler(), RobustScaler(), MinMaxScaler(), MaxAbsScaler()], ids=str
)
def test_the_scaler_in_front_is_part_of_it(scaler):
    X, y = task()
    X = X * [3.0, 1e-3] + [100.0, 0.5]
    model = make_pipeline(scaler, "passthrough", StandardScaler(), parsimon.POLKClassifier(**GIVEN))
    model.fit(X[:200], y[:200])
    assert_same(model, X[200:], "float64")
    assert_same(model, X[200:], "float32", tolerance=1e-5)


def test_a_density_behind_a_scaler_has_its_domain_in_scaled_units():
    model = make_pipeline(StandardScaler(), parsimon.SPPPOTIntensity(domain=[(-2, 2)] * 2))
    model.fit(5 + 3 * np.random.default_rng(0).uniform(-1, 1, size=(200, 2)))
    X = 5 + 3 * samples(500)
    expected = model.score_samples(X)
    finite = np.isfinite(expected)
    assert 0 < finite.sum() < len(X)
    found = ask(to_onnx(model, dtype="float64"), X, "float64")["log_density"]
    assert (np.isfinite(found) == finite).all()
    assert np.abs(found[finite] - expected[finite]).max() <= 1e-11


def test_a_search_of_sparsities_exports_what_it_has_chosen():
    X, y = task()[0][:60], task()[0][:60, 0]
    model = parsimon.SLKLRegressorCV(n_sparsities=3, cv=2, random_state=0).fit(X, y)
    found = ask(to_onnx(model, dtype="float64"), X, "float64")["predictions"]
    assert np.abs(found - model.predict(X)).max() <= 1e-12 * unit(model, X)


def test_intensities_of_marks_are_exported_one_by_one():
    X, y = task()
    model = parsimon.MarkedIntensity().fit(X[:100], y[:100] > 1)
    with pytest.raises(TypeError, match=r"intensities_\[i\], whose mark is classes_\[i\]"):
        to_onnx(model)
    X = samples(100).clip(X.min(), X.max())
    found = ask(to_onnx(model.intensities_[0], dtype="float64"), X, "float64")["log_density"]
    expected = model.intensities_[0].score_samples(X)
    finite = np.isfinite(expected)
    assert np.abs(found[finite] - expected[finite]).max() <= 1e-11


def test_a_streaming_scaler_takes_missing_numbers():
    X, y = task()
    scaler = parsimon.stream.StreamingScaler()
    model = parsimon.stream.StreamingPipeline(parsimon.POLKClassifier(**GIVEN), scaler=scaler)
    model.fit(X, y)
    missing = X[:50].copy()
    missing[::3, 0] = np.nan
    found = ask(to_onnx(model, dtype="float64"), missing, "float64")
    assert (found["label"] == model.predict(missing)).all()
    assert np.abs(found["scores"] - model.decision_function(missing)).max() < 1e-9


def test_columns_of_text_are_refused():
    X = {"size": [1.0, 2.0, 3.0, 4.0], "colour": ["red", "blue", "red", "blue"]}
    model = parsimon.stream.StreamingPipeline(parsimon.POLKClassifier(random_state=0), warm_up=1)
    model.fit(X, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="encodes columns of text"):
        to_onnx(model)


def test_a_step_that_cannot_be_folded_in_is_refused():
    X, y = task()
    model = make_pipeline(PowerTransformer(), parsimon.POLKClassifier(**GIVEN)).fit(X, y)
    with pytest.raises(ValueError, match="PowerTransformer in front of a model cannot be folded"):
        to_onnx(model)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", ["text", "two classes", "two targets", "policy", "newton"])
def test_skl2onnx_converts_pipelines(name, dtype):
    skl2onnx = pytest.importorskip("skl2onnx")
    register_with_skl2onnx()
    last, X = MODELS[name], samples(500)
    model = make_pipeline(PCA(2, whiten=True).fit(samples(50)), last)
    proto = skl2onnx.to_onnx(model, X[:1].astype(dtype), target_opset=18)
    found = list(ask(proto, X, dtype).values())
    expected = said(last, model[:-1].transform(X))
    if "label" in expected:
        assert (found[0] == expected["label"]).all()
        scores = expected.get("probabilities", expected["scores"])
        found, expected = found[1], scores
    else:
        found, expected = found[0].reshape(500, -1), next(iter(expected.values()))
        expected = expected.reshape(500, -1)
    finite = np.isfinite(expected)
    # PCA computes in single precision, too.
    tolerance = {"float32": 1e-4, "float64": 1e-12}[dtype]
    assert np.abs(found[finite] - expected[finite]).max() <= tolerance * max(unit(last, X), 1.0)


def test_the_graph_has_the_operators_of_the_opset_asked_for():
    proto = to_onnx(MODELS["text"], opset=18, name="digits")
    assert [each.version for each in proto.opset_import] == [18]
    assert proto.graph.name == "digits"
    kinds = {node.op_type for node in proto.graph.node}
    assert {"Gemm", "Exp"} <= kinds
    assert not kinds & {"SVMClassifier", "SVMRegressor"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"opset": 11}, "opset must be an integer from 18 to .*; got 11"),
        ({"opset": 1000}, "got 1000"),
        ({"opset": True}, "got True"),
        ({"dtype": "float16"}, "dtype must be 'float32' or 'float64'; got 'float16'"),
    ],
)
def test_what_is_not_understood_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        to_onnx(MODELS["classes"], **given)


def test_an_unfitted_model_is_refused():
    with pytest.raises(ValueError, match="not fitted"):
        to_onnx(parsimon.POLKClassifier())
    with pytest.raises(ValueError, match="not fitted"):
        to_onnx(make_pipeline(StandardScaler(), parsimon.POLKClassifier()))


def test_what_is_no_model_of_ours_is_refused():
    with pytest.raises(TypeError, match=r"PCA is no model of parsimon.*parsimon\.compress"):
        to_onnx(PCA())


def test_a_kernel_that_is_a_function_is_refused():
    kernel = kernels.Function(lambda X, Y: X @ Y.T)
    f = parsimon.KernelExpansion(kernel, [[1.0]], [1.0])
    with pytest.raises(ValueError, match="a Python function, which cannot be exported"):
        to_onnx(f)
    with pytest.raises(ValueError, match="a Python function, which cannot be exported"):
        to_onnx(parsimon.KernelExpansion(kernels.Linear() + 2.0 * kernel, [[1.0]], [1.0]))


def test_without_onnx_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'parsimon\[onnx\]'"):
        to_onnx(MODELS["classes"])
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'parsimon\[onnx\]'"):
        register_with_skl2onnx()

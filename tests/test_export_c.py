"""to_c: headers that compile without a warning and say what Python says."""

import shutil
import subprocess

import numpy as np
import pytest
from export_common import (
    COUNT,
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
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import parsimon
from parsimon import kernels
from parsimon.compression import CompressedOneClass
from parsimon.export import to_c

STRICT = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic"]
TOLERANCE = {"float": 1e-6, "double": 1e-12, "int16": 2e-3}
MODELS = every_estimator()

# Reads samples as raw numbers, and writes what the header says of each in one row of doubles.
PROGRAM = """
#include "m.h"
#include <stdio.h>
int main(void)
{{
  {real} x[{features}], out[{width}];
  double row[{width}];
  size_t j;
  if (m_self_test() != 0) return 3;
  while (fread(x, sizeof x, 1, stdin) == 1) {{
    {calls}
    for (j = 0; j < {width}; ++j) row[j] = (double)out[j];
    if (fwrite(row, sizeof row, 1, stdout) != 1) return 4;
  }}
  return 0;
}}
"""
CALLS = {
    "predictions": "m_predict(x, out + {at});",
    "scores": "m_scores(x, out + {at});",
    "score": "out[{at}] = m_score(x);",
    "probabilities": "m_probabilities(x, out + {at});",
    "label": "out[{at}] = ({real})m_predict(x);",
    "log_density": "out[{at}] = m_log_density(x);",
}


def need(tool):
    path = shutil.which(tool)
    if path is None:
        pytest.skip(f"needs {tool}")
    return path


def ask(folder, model, X, widths, float_type="double", compiler=("cc",), under=()):
    """Return what a program with the header answers, each answer with this many columns."""
    real = "double" if float_type == "double" else "float"
    (folder / "m.h").write_text(written(to_c, model, float_type=float_type, name="m"))
    places = dict(zip(widths, np.cumsum([0, *widths.values()]), strict=False))
    calls = [CALLS[what].format(at=at, real=real) for what, at in places.items()]
    width = sum(widths.values())
    (folder / "main.c").write_text(
        PROGRAM.format(real=real, features=X.shape[1], width=width, calls="\n    ".join(calls))
    )
    build = [*STRICT, folder / "main.c", "-o", folder / "program", "-lm"]
    subprocess.run([need(compiler[0]), *compiler[1:], *build], check=True, cwd=folder)
    given = np.ascontiguousarray(X, dtype="f8" if real == "double" else "f4").tobytes()
    done = subprocess.run(
        [*under, folder / "program"], input=given, stdout=subprocess.PIPE, check=False
    )
    assert done.returncode == 0, done.returncode
    rows = np.frombuffer(done.stdout).reshape(len(X), width)
    return {what: rows[:, at : at + widths[what]] for what, at in places.items()}


def assert_same(folder, model, X, float_type, **how):
    if float_type != "double":
        X = X.astype(np.float32).astype(float)
    expected = said(model, X)
    one_class = isinstance(model, (parsimon.POLKOneClass, CompressedOneClass))
    if one_class:
        expected["score"] = expected.pop("scores")
    widths = {what: 1 if each.ndim == 1 else each.shape[1] for what, each in expected.items()}
    found = ask(folder, model, X, widths, float_type, **how)
    if "label" in expected:
        labels = found.pop("label")[:, 0].astype(int)
        wrong = (labels if one_class else model.classes_[labels]) != expected["label"]
        assert wrong.mean() <= (0.002 if float_type == "int16" else 0), wrong.sum()
    for what, rows in found.items():
        finite = np.isfinite(expected[what])
        rows = rows.reshape(finite.shape)
        assert (np.isfinite(rows) == finite).all()
        told = expected[what][finite]
        away = np.abs(rows[finite] - told) / allowed(model, X, what, told)
        tolerance = TOLERANCE[float_type]
        if what == "probabilities" and rows.shape[1] > 2 and hasattr(model, "_votes_"):
            # Where LIBSVM's iteration stops: rounding decides whether it makes one more round.
            tolerance = max(tolerance, 0.005 if float_type != "double" else 0)
        assert away.max() <= tolerance, what


@pytest.mark.parametrize("float_type", ["float", "double"])
@pytest.mark.parametrize("name", MODELS)
def test_every_estimator(name, float_type, tmp_path):
    assert_same(tmp_path, MODELS[name], samples(COUNT), float_type)


@pytest.mark.parametrize("float_type", ["float", "double"])
@pytest.mark.parametrize("kernel", EVERY_KERNEL, ids=str)
def test_every_kernel(kernel, float_type, tmp_path):
    assert_same(tmp_path, of_kernel(kernel), samples(1000), float_type)


def test_a_density_behind_a_scaler_has_its_domain_in_scaled_units(tmp_path):
    model = make_pipeline(StandardScaler(), parsimon.SPPPOTIntensity(domain=[(-2, 2)] * 2))
    model.fit(5 + 3 * np.random.default_rng(0).uniform(-1, 1, size=(200, 2)))
    X = 5 + 3 * samples(500)
    expected = model.score_samples(X)
    finite = np.isfinite(expected)
    assert 0 < finite.sum() < len(X)
    found = ask(tmp_path, model, X, {"log_density": 1})["log_density"][:, 0]
    assert (np.isfinite(found) == finite).all()
    assert np.abs(found[finite] - expected[finite]).max() <= 1e-11
    with pytest.raises(ValueError, match="has neither a scaler in front of a density nor"):
        to_c(model, float_type="int16")


def test_the_header_says_that_probabilities_are_not_in_it():
    text = written(to_c, MODELS["process of two"])
    assert "Probabilities are not here: those of a Gaussian process" in text


@pytest.mark.parametrize("name", ["classes", "regressor", "one class", "spppot", "density kl"])
def test_integers(name, tmp_path):
    assert_same(tmp_path, MODELS[name], samples(COUNT), "int16")


def test_integers_with_a_laplacian_kernel(tmp_path):
    assert_same(tmp_path, of_kernel(2.0 * kernels.Laplacian([0.9, 2.0])), samples(), "int16")


@pytest.mark.parametrize("float_type", TOLERANCE)
@pytest.mark.parametrize(
    ("compiler", "under"),
    [
        (("clang",), ()),
        (("gcc", "-m32"), ()),
        (("arm-linux-gnueabihf-gcc", "-static"), ("qemu-arm",)),
    ],
    ids=["clang", "32 bits", "arm"],
)
def test_other_compilers_and_machines(compiler, under, float_type, tmp_path):
    need(compiler[0])
    for tool in under:
        need(tool)
    if "-m32" in compiler:
        (tmp_path / "empty.c").write_text("#include <math.h>\nint main(void) { return 0; }\n")
        build = [*compiler, tmp_path / "empty.c", "-o", tmp_path / "empty"]
        if subprocess.run(build, capture_output=True, check=False).returncode:
            pytest.skip("needs the libraries of 32-bit programs")
    for name in ("text", "density mahalanobis") if float_type != "int16" else ("text",):
        model = MODELS[name]
        assert_same(tmp_path, model, samples(500), float_type, compiler=compiler, under=under)


@pytest.mark.parametrize("float_type", TOLERANCE)
def test_the_scaler_in_front_is_part_of_it(float_type, tmp_path):
    X, y = task()
    X = X * [3.0, 1e-3] + [100.0, 0.5]
    model = make_pipeline(StandardScaler(), parsimon.POLKClassifier(**GIVEN)).fit(X[:200], y[:200])
    X = X[200:]
    found = ask(tmp_path, model, X, {"scores": 5}, float_type)["scores"]
    # A float has seven digits, of which the offset takes two.
    tolerance = {"float": 1e-5, "double": 1e-12, "int16": 5e-3}[float_type]
    assert np.abs(found - model.decision_function(X)).max() <= tolerance * unit(model, X)


def test_a_streaming_scaler_takes_missing_numbers(tmp_path):
    X, y = task()
    scaler = parsimon.stream.StreamingScaler()
    model = parsimon.stream.StreamingPipeline(
        parsimon.POLKClassifier(random_state=0), scaler=scaler
    )
    model.fit(X, y)
    X = X[:50].copy()
    X[::3, 0] = np.nan
    found = ask(tmp_path, model, X, {"scores": 5})["scores"]
    assert np.abs(found - model.decision_function(X)).max() <= 1e-12 * unit(model, np.nan_to_num(X))


def test_a_model_without_points_is_a_constant(tmp_path):
    f = parsimon.KernelExpansion(kernels.Gaussian(1.0), np.empty((0, 2)), np.empty((0, 3)))
    for float_type in ("float", "double"):
        found = ask(tmp_path, f, samples(3), {"predictions": 3}, float_type)
        assert (found["predictions"] == 0).all()


def test_the_self_test_fails_where_numbers_are_wrong(tmp_path):
    model = MODELS["classes"]
    text = to_c(model, name="m")
    place = text.index("m_weights[")
    damaged = text[:place] + text[place:].replace("= {\n  ", "= {\n  99.0f + ", 1)
    assert damaged != text
    (tmp_path / "m.h").write_text(damaged)
    (tmp_path / "main.c").write_text('#include "m.h"\nint main(void) { return m_self_test(); }\n')
    program = tmp_path / "program"
    build = [need("cc"), *STRICT, tmp_path / "main.c", "-o", program, "-lm"]
    subprocess.run(build, check=True)
    assert subprocess.run([program], check=False).returncode > 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"float_type": "half"}, "float_type must be 'float', 'double' or 'int16'; got 'half'"),
        ({"name": "2x"}, "name must be a name in C"),
        ({"name": "double"}, "a word of C"),
    ],
)
def test_what_is_not_understood_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        to_c(MODELS["classes"], **given)


@pytest.mark.parametrize("kernel", [kernels.Cauchy(1.0), kernels.Linear() + kernels.Gaussian(1.0)])
def test_integers_say_which_kernels_they_are_for(kernel):
    with pytest.raises(ValueError, match="Gaussian or a Laplacian kernel"):
        to_c(of_kernel(kernel), float_type="int16")


def test_the_header_says_how_large_it_is():
    text = to_c(MODELS["slkl"])
    order = MODELS["slkl"].model_order_
    assert f"{order} points, 2 features, 1 outputs" in text
    assert f"take {4 * order * 3} bytes as float" in text

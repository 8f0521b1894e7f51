"""cpp/examples/predict.cpp: a C++ program that only loads and predicts says what the core says."""

import os
import shutil
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest
from intensity_common import LINE, PLANE, cloud, toy
from numpy.testing import assert_allclose
from polk_common import GIVEN, task

import parsimon
from parsimon import kernels

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = sorted((ROOT / "tests" / "golden").glob("*.parsimon"))
ALL_KERNELS = [
    kernels.Gaussian(0.7),
    kernels.Gaussian([0.7, 1.3]),
    kernels.Laplacian(0.9),
    kernels.Matern(0.8, nu=0.5),
    kernels.Matern(0.8, nu=1.5),
    kernels.Matern([0.8, 1.1], nu=2.5),
    kernels.Cauchy(0.7),
    kernels.StudentT(0.7, degrees=3.5),
    kernels.Polynomial(3, gamma=0.2, coef0=0.5),
    kernels.Linear() + kernels.Constant(),
    0.5 * kernels.Gaussian(0.4) * kernels.Matern(1.0) + kernels.Linear(),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Build the example without Eigen's headers: it needs none."""
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    path = tmp_path_factory.mktemp("program") / "predict"
    source = ROOT / "cpp" / "examples" / "predict.cpp"
    include = ROOT / "cpp" / "include"
    subprocess.run([compiler, "-std=c++17", "-O1", f"-I{include}", source, "-o", path], check=True)
    return path


def predict(program, model_file, X):
    """Return what the program prints for the samples, one row for each."""
    text = "\n".join(" ".join(repr(float(x)) for x in row) for row in X)
    done = subprocess.run(
        [program, model_file], input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return np.array([line.split() for line in done.stdout.splitlines()], dtype=float)


def assert_same(program, model, path, X):
    model.save(path)
    core = model._model
    if hasattr(core, "density"):
        expected = np.column_stack([core.expansion(X), core.density(X)])
    else:
        expected = core.predict(X)
    assert np.abs(expected).max() > 0
    tolerance = 1e-12 * np.abs(expected).max(axis=0)
    assert (np.abs(predict(program, path, X) - expected) <= tolerance).all()


def fitted_models():
    X, y = task()
    X, y = X[:200], y[:200]
    score = np.column_stack([np.sin(X[:, 0]), X[:, 1]])
    few = {"kernel": kernels.Gaussian(0.7), "random_state": 0}
    yield parsimon.POLKClassifier(**GIVEN).fit(X, y)
    yield parsimon.POLKClassifier(**{**GIVEN, "average": False}).fit(X, y > 1)
    yield parsimon.POLKRegressor(**{**GIVEN, "learning_rate": 0.3}).fit(X, score)
    yield parsimon.BSGDClassifier(**few, max_points=10).fit(X, y)
    yield parsimon.COLKRegressor("cvar", **few, learning_rate=0.1).fit(X, score[:, 0])
    yield parsimon.COLKClassifier(**few, learning_rate=0.1).fit(X, y > 1)
    yield parsimon.PolicyEvaluator(kernel=few["kernel"]).partial_fit(X, y, np.roll(X, 1, axis=0))
    yield parsimon.SLKLRegressor(**few, n_columns=30).fit(X, score[:, 0])
    yield parsimon.SLKLClassifier(**few, n_columns=30).fit(X, y)
    yield parsimon.SPPPOTClassifier(**GIVEN).fit(X, y)


def densities():
    for mirror in ("kl", "euclidean", "mahalanobis"):
        for average in (True, False):
            yield parsimon.SPPPOTIntensity(**PLANE, mirror=mirror, average=average)
    yield parsimon.SPPPOTIntensity(**PLANE, method="dual_averaging", average=False)
    yield parsimon.MirrorNewtonIntensity(**PLANE)
    yield parsimon.HybridIntensity(**PLANE, patience=5)
    yield parsimon.HybridIntensity(**PLANE, patience=10**6)


def test_every_estimator(program, tmp_path):
    X = np.vstack([task()[0][200:260], [[9.0, -9.0]]])
    for model in fitted_models():
        assert_same(program, model, tmp_path / "model", X)


def test_every_density(program, tmp_path):
    inside, outside = cloud()[500:560], [[-0.5, 0.0]]
    phases = set()
    for model in densities():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of one pass not being enough
            model.partial_fit(cloud()[:300])
        phases.add(getattr(model, "in_second_phase_", None))
        assert_same(program, model, tmp_path / "model", np.vstack([inside, outside]))
    assert phases == {None, False, True}


@pytest.mark.parametrize("kernel", ALL_KERNELS, ids=str)
def test_every_kernel(kernel, program, tmp_path):
    X = task()[0]
    model = parsimon.POLKRegressor(**{**GIVEN, "kernel": kernel, "learning_rate": 0.05})
    assert_same(program, model.fit(X[:200], np.sin(X[:200])), tmp_path / "model", X[200:260])


def test_single_precision_is_computed_in_double_precision(program, tmp_path):
    X, y = task()
    kernel = kernels.SinglePrecision(kernels.Gaussian(0.7))
    model = parsimon.POLKClassifier(**{**GIVEN, "kernel": kernel}).fit(X[:200], y[:200])
    model.save(tmp_path / "model")
    outputs = predict(program, tmp_path / "model", X[200:260])
    assert_allclose(outputs, model._model.predict(X[200:260]), rtol=0, atol=1e-5)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_files_of_the_first_version(path, program):
    core = parsimon.load(path)._model
    X = np.linspace(0.05, 0.95, 19)[:, None] * np.ones(core.dictionary.shape[1])
    outputs = predict(program, path, X)[:, -1]
    expected = core.density(X) if hasattr(core, "density") else core.predict(X)[:, -1]
    assert_allclose(outputs, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda good: good[:100], "incomplete"),
        (lambda good: good[:-1] + bytes([good[-1] ^ 1]), "checksum"),
        (lambda good: b"something else", "not a parsimon model"),
    ],
)
def test_a_damaged_file_is_refused_with_a_sentence(damage, message, program, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(damage(GOLDEN[0].read_bytes()))
    done = subprocess.run([program, path], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert message in done.stderr


def test_a_missing_file_is_an_error(program, tmp_path):
    done = subprocess.run([program, tmp_path / "no"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Cannot open" in done.stderr


def test_the_program_reads_whole_samples_only(program, tmp_path):
    model = parsimon.SPPPOTIntensity(**LINE).partial_fit(toy()[:200])
    model.save(tmp_path / "model")
    assert predict(program, tmp_path / "model", [[0.5], [0.25]]).shape == (2, 2)
    assert predict(program, tmp_path / "model", []).size == 0

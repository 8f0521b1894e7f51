"""cpp/examples/predict.cpp: a C++ program that only loads and predicts says what the core says."""

import csv
import io
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
from sklearn.base import clone
from sklearn.neighbors import KernelDensity
from sklearn.svm import SVC, SVR, OneClassSVM

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


def lines(program, kind, model_file, X):
    """Return what the program prints for the samples, one line for each."""
    text = "\n".join(" ".join(repr(float(x)) for x in row) for row in X)
    done = subprocess.run(
        [program, kind, model_file], input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def numbers(texts):
    return np.array([text.split() for text in texts], dtype=float)


def predict(program, model_file, X):
    """Return the raw outputs, one row for each sample."""
    return numbers(lines(program, "raw", model_file, X))


def assert_near(found, expected, tolerance=1e-12):
    expected = expected.reshape(len(expected), -1)
    assert np.abs(expected).max() > 0
    assert (np.abs(found - expected) <= tolerance * np.abs(expected).max(axis=0)).all()


def assert_same(program, model, path, X):
    model.save(path)
    core = model._model
    if hasattr(core, "density"):
        # A density is divided by its integral; one that is not positive has no logarithm.
        divisor = model.integral_ if model.integral_ > 0 else 1.0
        density = core.density(X) / (divisor if model.solver == "sgd" else 1.0)
        expected = np.column_stack([core.expansion(X), density])
        # The exponential of a sum whose terms are a hundred times as large.
        assert_near(predict(program, path, X), expected, tolerance=1e-11)
        return
    assert_near(predict(program, path, X), core.predict(X))


def assert_speaks_as_python_does(program, model, path, X):
    """Predictions of regressors, decisions, probabilities and labels of classifiers."""
    model.save(path)
    if not hasattr(model, "decision_function"):
        assert_near(numbers(lines(program, "regressor", path, X)), model.predict(X))
        return
    said = [line.split("\t") for line in lines(program, "classifier", path, X)]
    expected = model.decision_function(X).reshape(len(X), -1)
    if hasattr(model, "predict_proba"):
        expected = np.hstack([expected, model.predict_proba(X)])
    assert_near(numbers([values for values, _ in said]), expected)
    labels = [str(label) for label in model.predict(X).tolist()]
    as_text = {"True": "1", "False": "0"}
    assert [label for _, label in said] == [as_text.get(label, label) for label in labels]


def fitted_models():
    X, y = task()
    X, y = X[:200], y[:200]
    score = np.column_stack([np.sin(X[:, 0]), X[:, 1]])
    few = {"kernel": kernels.Gaussian(0.7), "random_state": 0}
    yield parsimon.QLearner(2, random_state=0).fit(X[:-1], X[:-1, 0] > 0, score[:-1, 0], X[1:])
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
    yield parsimon.POLKOneClass(kernel=few["kernel"], random_state=0).fit(X)
    yield parsimon.compress(SVR(gamma=1.0).fit(X, score[:, 0]), max_points=20)[0]
    yield parsimon.compress(OneClassSVM(gamma=1.0, nu=0.3).fit(X), max_points=20)[0]
    for given in ({}, {"decision_function_shape": "ovo"}, {"break_ties": True}):
        yield parsimon.compress(SVC(gamma=1.0, **given).fit(X, y), max_points=30)[0]
    yield parsimon.compress(SVC(gamma=1.0).fit(X, y > 1), max_points=20)[0]


def calibrated_models():
    X, y = task()
    X, y = X[:200], y[:200]
    for labels in (y, y > 1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn deprecates its calibration
            model = SVC(gamma=1.0, probability=True, random_state=0).fit(X, labels)
        yield parsimon.compress(model, max_points=30)[0]


def test_calibrated_probabilities_of_a_compressed_classifier(program, tmp_path):
    X = task()[0][200:260]
    for model in calibrated_models():
        assert hasattr(model, "predict_proba")
        assert_speaks_as_python_does(program, model, tmp_path / "model", X)


def test_a_compressed_density(program, tmp_path):
    X = np.vstack([task()[0][200:260], [[9.0, -9.0]]])
    model = parsimon.compress(KernelDensity(bandwidth=0.5).fit(X[:60]), max_points=20)[0]
    model.save(tmp_path / "model")
    said = predict(program, tmp_path / "model", X)[:, -1]
    with np.errstate(divide="ignore"):
        positive = np.isfinite(model.score_samples(X))
    assert_near(said[positive][:, None], np.exp(model.score_samples(X[positive])), 1e-11)
    inside = cloud()[500:560]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of one pass not being enough
        large = parsimon.SPPPOTIntensity(domain=PLANE["domain"]).partial_fit(cloud()[:300])
    model = parsimon.compress(large, max_points=30)[0]
    model.save(tmp_path / "model")
    said = predict(program, tmp_path / "model", np.vstack([inside, [[-50.0, 0.0]]]))[:, -1]
    assert_near(said[:-1, None], np.exp(model.score_samples(inside)), 1e-11)
    assert said[-1] == 0


def test_a_periodic_density_is_folded_in_cxx(program, tmp_path):
    model = parsimon.SPPPOTIntensity(domain=PLANE["domain"], periodic=[0]).fit(cloud()[:300])
    X = np.vstack([cloud()[500:560] + np.array([turns, 0.0]) for turns in (0.0, 2.0, -3.0)])
    for each in (model, parsimon.compress(model, max_points=30)[0]):
        each.save(tmp_path / "model")
        said = predict(program, tmp_path / "model", X)[:, -1:]
        assert_near(said, np.exp(each.score_samples(X)), 1e-11)


def test_a_density_in_a_window_is_refused_in_cxx(program, tmp_path):
    corners = [(0.0, -2.0), (1.0, -2.0), (0.5, 3.0)]
    inside = cloud()[np.abs(cloud()[:, 0] - 0.5) < 0.5 * (3 - cloud()[:, 1]) / 5]
    model = parsimon.SPPPOTIntensity(window=corners).fit(inside)
    model.save(tmp_path / "model")
    done = subprocess.run(
        [program, "raw", tmp_path / "model"], input="", capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "which Python alone can tell" in done.stderr


def test_a_regressors_mean_and_a_classifiers_labels_are_for_cxx_as_well(program, tmp_path):
    X = np.vstack([task()[0][200:260], [[9.0, -9.0]]])
    seen = set()
    for model in fitted_models():
        seen.add(type(model).__name__)
        assert_speaks_as_python_does(program, model, tmp_path / "model", X)
    without = {"CompositionalLearner", "BSGDRegressor"}  # no file; COLKRegressor's class
    densities = {"SPPPOTIntensity", "MirrorNewtonIntensity", "HybridIntensity"}
    densities.add("CompressedDensity")
    assert seen | without | densities >= set(parsimon._io.known_estimators())


@pytest.mark.parametrize(
    "names",
    [
        ["ash", "Buche", "c\u00e8dre", "date", "elm"],
        [-7, 0, 3, 10**15, 2**62],
        np.array([1, 2, 3, 4, 250], dtype=np.uint8),
        np.array([1, 2, 3, 4, 2**64 - 1], dtype=np.uint64),
        [-1.5, 0.0, 0.1, 2.0, 1e300],
    ],
    ids=lambda names: str(np.asarray(names).dtype),
)
def test_labels_of_every_type(names, program, tmp_path):
    X, y = task()
    y = np.asarray(names)[y]
    if y.dtype.kind == "f":  # scikit-learn takes such targets for those of a regression
        y = np.round(y).clip(-2, 2)
    model = parsimon.POLKClassifier("logistic", **GIVEN).fit(X[:200], y[:200])
    model.save(tmp_path / "model")
    said = lines(program, "classifier", tmp_path / "model", X[200:260])
    decoded = [line.split("\t")[1] for line in said]
    if y.dtype.kind == "f":
        assert [float(label) for label in decoded] == model.predict(X[200:260]).tolist()
    else:
        assert decoded == [str(label) for label in model.predict(X[200:260]).tolist()]
    again = parsimon.load(tmp_path / "model")
    assert again.classes_.dtype == model.classes_.dtype
    assert again.classes_.tolist() == model.classes_.tolist()


def test_a_pipeline_of_numbers_scales_its_samples_in_cxx(program, tmp_path):
    X, y = task()
    X = X * [1000.0, 0.01] + [5.0, -3.0]
    given = X[200:260].copy()
    given[::7, 1] = np.nan
    pipeline = parsimon.stream.StreamingPipeline(parsimon.POLKRegressor(**GIVEN))
    pipeline.partial_fit(X[:200], 3 + 2.0 * y[:200])
    pipeline.save(tmp_path / "model")
    assert_near(
        numbers(lines(program, "regressor", tmp_path / "model", given)), pipeline.predict(given)
    )


def mixed(count=200, seed=0):
    """Columns of numbers and of text, some missing, and what is learned from them."""
    random = np.random.default_rng(seed)
    size, weight = random.normal(100, 30, count), random.normal(1e-3, 1e-4, count)
    colour = random.choice(["red", "blue", 'a "b", c', ""], count).astype(object)
    shape = random.choice(["round", "square"], count).astype(object)
    size[::11] = np.nan
    X = {"size": size, "colour": colour, "weight": weight, "shape": shape}
    return X, np.where((np.nan_to_num(size, nan=100) > 100) == (colour == "red"), "yes", "no")


def asked_for():
    """Categories that are new, that overflow the places kept for new ones, and that are missing."""
    X, _ = mixed(60, seed=1)
    X["colour"][3::7] = ""
    X["colour"][::5] = "never seen"
    X["shape"][::4] = "late 9"  # shares the last place with others
    X["shape"][1::4] = "never seen"
    return X


def csv_lines(program, kind, model_file, X):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = [*reversed(X)]  # the order of the columns does not matter
    writer.writerow(names)
    for row in zip(*(X[name].tolist() for name in names), strict=True):
        writer.writerow(["" if cell != cell else cell for cell in row])
    done = subprocess.run(
        [program, kind, model_file],
        input=text.getvalue(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_pipeline_of_numbers_and_texts_encodes_its_samples_in_cxx(program, tmp_path):
    X, y = mixed()
    late, outcome = mixed(40, seed=2)
    late["shape"] = np.array([f"late {i}" for i in range(40)], dtype=object)
    given = asked_for()
    for estimator, target in (
        (parsimon.POLKRegressor(random_state=0), lambda y: 3.0 + 2.0 * (y == "yes")),
        (parsimon.POLKClassifier("logistic", random_state=0), lambda y: y),
    ):
        pipeline = parsimon.stream.StreamingPipeline(estimator)
        pipeline.partial_fit(X, target(y)).partial_fit(late, target(outcome))
        encoded = pipeline.encode(given)
        names = pipeline.scaler_.get_feature_names_out().tolist()
        assert encoded[:, names.index("shape_others")].any()
        assert not encoded[::5, [name.startswith("colour") for name in names]].any()
        path = tmp_path / "model"
        pipeline.save(path)
        if isinstance(estimator, parsimon.POLKRegressor):
            said = csv_lines(program, "regressor", path, given)
            assert_near(numbers(said), pipeline.predict(given))
            continue
        said = [line.split("\t") for line in csv_lines(program, "classifier", path, given)]
        expected = np.column_stack(
            [pipeline.decision_function(given), pipeline.predict_proba(given)]
        )
        assert_near(numbers([values for values, _ in said]), expected)
        assert [label for _, label in said] == pipeline.predict(given).tolist()


@pytest.mark.parametrize("label", ["only", 7])
@pytest.mark.parametrize(
    "model",
    [
        parsimon.POLKClassifier(),
        parsimon.POLKClassifier("logistic"),
        parsimon.SPPPOTClassifier(),
    ],
    ids=["hinge", "logistic", "positive"],
)
def test_a_classifier_that_has_seen_one_class_is_sure_of_it(model, label, program, tmp_path):
    X = task()[0]
    model = clone(model).partial_fit(X[:50], [label] * 50)
    assert_speaks_as_python_does(program, model, tmp_path / "model", X[50:60])
    again = parsimon.load(tmp_path / "model")
    assert again.classes_.tolist() == [label]
    again.partial_fit(X[:50], [label * 2] * 50)
    assert len(again.classes_) == 2


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("regressor", "polk", "holds a classifier: use load_classifier"),
        ("classifier", "polk", "load it there and save it again"),
        ("regressor", "colk", "load it there and save it again"),
        ("classifier", "colk", "use load_regressor"),
        ("regressor", "spppot", "holds a density"),
    ],
)
def test_a_file_of_another_kind_or_of_an_old_version_is_refused(kind, name, message, program):
    path = ROOT / "tests" / "golden" / f"{name}_v1.parsimon"
    done = subprocess.run([program, kind, path], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert message in done.stderr


def densities():
    for mirror in ("kl", "euclidean", "mahalanobis"):
        for average in (True, False):
            yield parsimon.SPPPOTIntensity(**PLANE, mirror=mirror, average=average)
    yield parsimon.SPPPOTIntensity(**PLANE, method="dual_averaging", average=False)
    yield parsimon.MirrorNewtonIntensity(**PLANE)
    yield parsimon.HybridIntensity(**PLANE, patience=5)
    yield parsimon.HybridIntensity(**PLANE, patience=10**6)
    yield parsimon.SPPPOTIntensity(domain=PLANE["domain"])
    yield parsimon.SPPPOTIntensity(domain=PLANE["domain"], kernel="matern", bandwidth=0.3)


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
    done = subprocess.run([program, "raw", path], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert message in done.stderr


def test_a_missing_file_is_an_error(program, tmp_path):
    done = subprocess.run(
        [program, "raw", tmp_path / "no"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Cannot open" in done.stderr


def test_the_program_reads_whole_samples_only(program, tmp_path):
    model = parsimon.SPPPOTIntensity(**LINE).partial_fit(toy()[:200])
    model.save(tmp_path / "model")
    assert predict(program, tmp_path / "model", [[0.5], [0.25]]).shape == (2, 2)
    assert predict(program, tmp_path / "model", []).size == 0


# -- what it costs --------------------------------------------------------------------------------

LATENCY = """
#include <chrono>
#include <cstdio>
#include <parsimon/predict.hpp>
int main(int, char** names) {
  using Clock = std::chrono::steady_clock;
  const auto model = parsimon::load_regressor(names[1]);
  std::vector<double> x(static_cast<std::size_t>(model.features()), 0.5);
  double best = 1, y = 0, sum = 0;
  for (int burst = 0; burst < 2000; ++burst) {
    const auto start = Clock::now();
    for (int i = 0; i < 100; ++i) {
      x[0] = i;
      model.predict(x.data(), &y);
      sum += y;
    }
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count() / 100);
  }
  std::printf("%g %g\\n", best, sum);
}
"""


@pytest.mark.slow
def test_a_prediction_takes_a_microsecond_and_its_compilation_seconds(tmp_path):
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    resource = pytest.importorskip("resource")
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 64))
    model = parsimon.POLKRegressor(kernel=kernels.Gaussian(8.0), max_points=100, epochs=1)
    assert model.fit(X, X[:, 0]).model_order_ == 100
    model.save(tmp_path / "model")
    (tmp_path / "latency.cpp").write_text(LATENCY)
    build = ["-std=c++17", "-O3", "-march=native", f"-I{ROOT / 'cpp' / 'include'}"]
    command = [compiler, *build, tmp_path / "latency.cpp", "-o", tmp_path / "latency"]

    def seconds():
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run(command, check=True)
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before

    # Beside others, a second of the processor may be half of one.
    assert any(seconds() <= 5 for _ in range(3))
    said = subprocess.run(
        [tmp_path / "latency", tmp_path / "model"], capture_output=True, text=True, check=True
    )
    assert float(said.stdout.split()[0]) <= 1e-6

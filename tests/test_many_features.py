"""Linear kernels on many features: learned as vectors of weights, from sparse rows as they are."""

import copy
import pickle
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

import parsimon
from bench import machine
from parsimon import (
    BSGDClassifier,
    BSGDRegressor,
    COLKClassifier,
    POLKClassifier,
    POLKOneClass,
    POLKRegressor,
    kernels,
)
from parsimon._affine import affine
from parsimon._core import DriftDetector
from parsimon._labels import Labels
from parsimon._loss_detector import LossDetector
from parsimon._records import Records
from parsimon.datasets import make_documents
from parsimon.kernels import Constant, Gaussian, Linear

X, Y = make_documents(1200, 3000, 4, random_state=0)
TRAIN, TEST = slice(0, 900), slice(900, None)
RANDOM = np.random.default_rng(0)
TARGET = np.asarray(X @ RANDOM.normal(size=3000)) + 0.01 * RANDOM.normal(size=1200)


def stream(model, X, y, block=50, **given):
    for start in range(0, X.shape[0], block):
        model.partial_fit(X[start : start + block], y[start : start + block], **given)
    return model


@pytest.mark.parametrize(("features", "kernel"), [(2000, Gaussian), (2001, Linear)])
def test_auto_is_linear_above_two_thousand_features(features, kernel):
    samples = RANDOM.normal(size=(60, features))
    labels = np.arange(60) % 2
    model = POLKClassifier().fit(samples, labels)
    assert kernel.__name__ in repr(model.kernel_)
    assert kernel.__name__ in repr(COLKClassifier(epochs=1).fit(samples, labels).kernel_)
    model = POLKRegressor().fit(samples, labels)
    assert isinstance(model.kernel_, kernel)


@pytest.mark.parametrize("Estimator", [POLKClassifier, BSGDClassifier])
@pytest.mark.parametrize("way", ["fit", "partial_fit"])
def test_sparse_equals_dense(Estimator, way):
    models = []
    for rows in (X, X.toarray()):
        model = Estimator(random_state=0)
        models.append(model.fit(rows[:300], Y[:300]) if way == "fit" else stream(model, rows, Y))
    ours, dense = (model.decision_function(X[TEST]) for model in models)
    assert_allclose(ours, dense, rtol=1e-6, atol=1e-9)
    assert_allclose(models[0].decision_function(X[TEST].toarray()), ours, rtol=1e-9, atol=1e-12)
    # BSGD has no intercept.
    assert models[0].model_order_ == (5 if Estimator is POLKClassifier else 4)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("way", ["fit", "partial_fit"])
def test_as_good_as_linear_machines(loss, way):
    theirs = LinearSVC().fit(X[TRAIN], Y[TRAIN]).score(X[TEST], Y[TEST])
    model = POLKClassifier(loss=loss, random_state=0)
    model = model.fit(X[TRAIN], Y[TRAIN]) if way == "fit" else stream(model, X[TRAIN], Y[TRAIN])
    assert model.score(X[TEST], Y[TEST]) > theirs - (0.02 if way == "fit" else 0.05)


def test_fit_is_the_minimiser():
    binary = Y[TRAIN] % 2
    ours = POLKClassifier(loss="logistic", kernel=Linear(), regularization=0.01)
    theirs = LogisticRegression(C=1 / (0.01 * 900), fit_intercept=False, tol=1e-8, max_iter=1000)
    ours.fit(X[TRAIN], binary)
    theirs.fit(X[TRAIN], binary)
    expected = theirs.decision_function(X[TEST])
    assert_allclose(ours.decision_function(X[TEST]), expected, atol=0.02 * np.abs(expected).max())
    assert_allclose(ours.regularization_, 0.01)


def test_least_squares_is_ridge_regression():
    ours = POLKRegressor(kernel="linear", regularization=1e-4, normalize_y=False)
    theirs = Ridge(alpha=1e-4 * 900, fit_intercept=False, solver="lsqr", tol=1e-10)
    expected = theirs.fit(X[TRAIN], TARGET[TRAIN]).predict(X[TEST])
    found = ours.fit(X[TRAIN], TARGET[TRAIN]).predict(X[TEST])
    assert_allclose(found, expected, atol=0.01 * np.abs(expected).max())


def test_weights_of_samples_count():
    counts = RANDOM.integers(0, 3, size=300)
    repeated = np.repeat(np.arange(300), counts)
    ours = POLKRegressor(kernel=Linear(), regularization=0.001, normalize_y=False)
    weighed = ours.fit(X[:300], TARGET[:300], sample_weight=counts * 300 / counts.sum())
    expected = copy.deepcopy(ours).fit(X[repeated], TARGET[repeated]).predict(X[TEST])
    assert_allclose(weighed.predict(X[TEST]), expected, atol=0.02 * np.abs(expected).max())


def test_the_expansion_is_the_function():
    model = POLKClassifier(loss="logistic", random_state=0).fit(X[TRAIN], Y[TRAIN])
    expected = model.decision_function(X[TEST])
    assert_allclose(model.expansion_(X[TEST].toarray()), expected, atol=1e-9)
    assert model.dictionary_.shape == (5, 3000)
    assert model.weights_.shape == (5, 4)
    assert not model.dictionary_[-1].any()
    assert model.compress(budget=1.0) == 0
    with pytest.raises(ValueError, match="5 here, and no fewer"):
        model.compress(max_points=3)
    assert_allclose(model.distance(model.dictionary_[:2]), 0, atol=1e-5)
    doubled = model.expansion_ * 2.0
    model.expansion_ = doubled
    assert_allclose(model.decision_function(X[TEST]), 2 * expected, atol=1e-9)


@pytest.mark.parametrize("kernel", ["auto", 2.5 * Linear() + 0.7 * Constant(), Linear()])
def test_training_goes_on_from_a_file(tmp_path, kernel):
    first, second = slice(0, 400), slice(400, 900)
    model = stream(POLKClassifier(kernel=kernel), X[first], Y[first])
    model.save(tmp_path / "model")
    model.save(tmp_path / "slim", training=False)
    read, slim = parsimon.load(tmp_path / "model"), parsimon.load(tmp_path / "slim")
    expected = model.decision_function(X[TEST])
    assert_array_equal(read.decision_function(X[TEST]), expected)
    assert_allclose(slim.decision_function(X[TEST]), expected, atol=1e-9)
    assert (tmp_path / "slim").stat().st_size < 0.7 * (tmp_path / "model").stat().st_size
    for other in (model, read, pickle.loads(pickle.dumps(model))):
        stream(other, X[second], Y[second])
        assert_array_equal(other.decision_function(X[TEST]), model.decision_function(X[TEST]))
        assert other.t_ == 900
        assert_array_equal(other.trace_["loss"], model.trace_["loss"])


def test_a_file_that_was_changed_is_refused(tmp_path):
    model = stream(POLKClassifier(), X[:200], Y[:200])
    archive = model._to_archive()
    for name, wrong in [
        ("primal.squares", np.ones((7, 4))),
        ("primal.squares", -np.ones((3001, 4))),
        ("primal.intercept", np.full(4, np.nan)),
        ("primal.regularization", -1.0),
        ("primal.intercept", np.ones(4)),
        ("primal.detector", np.ones(6)),
        ("primal.detector", np.full(7, -1.0)),
        ("primal.detector", np.full(7, np.nan)),
    ]:
        changed = parsimon._core.Archive.from_bytes(archive.to_bytes())
        changed[name] = wrong
        changed.write(str(tmp_path / "wrong"))
        with pytest.raises(ValueError, match="in the model file"):
            parsimon.load(tmp_path / "wrong")


def test_streams_of_single_samples_and_late_classes():
    model = POLKClassifier(loss="logistic")
    early = np.flatnonzero(Y[TRAIN] < 2)
    for i in early[:300]:
        model.partial_fit(X[i], [Y[i]])
    assert model.decision_function(X[TEST]).shape == (300,)
    before = model.predict_proba(X[TEST])
    model.partial_fit(X[900], [3])
    assert model.predict_proba(X[TEST]).shape == (300, 3)
    assert_allclose(model.predict_proba(X[TEST])[:, :2], before, atol=0.05)
    stream(model, X[TRAIN], Y[TRAIN])
    assert sorted(model.classes_) == [0, 1, 2, 3]
    assert model.score(X[TEST], Y[TEST]) > 0.75


def test_a_stream_goes_on_after_fit():
    model = POLKClassifier(random_state=0).fit(X[:600], Y[:600])
    before = model.score(X[TEST], Y[TEST])
    stream(model, X[600:900], Y[600:900])
    assert model.score(X[TEST], Y[TEST]) > before - 0.02
    assert model.t_ == 900


def test_a_half_life_forgets():
    flipped = (Y + 1) % 4
    scores = []
    for half_life in (None, 200.0):
        model = POLKClassifier(half_life=half_life)
        for labels in (Y, Y, Y, flipped):
            stream(model, X[TRAIN], labels[TRAIN])
        scores.append(model.score(X[TEST], flipped[TEST]))
    assert scores[1] > scores[0]


class Alarm:
    """A detector that finds a change once so many losses have been shown."""

    def __init__(self, at):
        self.at, self.count = at, 0

    def update(self, loss):
        self.count += 1

    @property
    def drift_detected(self):
        return self.count == self.at


def test_a_detector_makes_it_forget():
    flipped = (Y + 1) % 4
    scores = []
    for half_life in (None, Alarm(1850)):
        model = POLKClassifier(half_life=half_life)
        for labels in (Y, Y, flipped):
            stream(model, X[TRAIN], labels[TRAIN])
        scores.append(model.score(X[TEST], flipped[TEST]))
    assert scores[1] > scores[0]
    assert len(model.drift_) == 1
    assert 1800 < model.drift_[0] < 2100
    assert_array_equal(pickle.loads(pickle.dumps(model)).drift_, model.drift_)


def changing(seed=0, kinds=(0.1, 1.0, 0.3, 30.0, 0.2)):
    """Losses that become other ones, with outliers and what is no number among them."""
    random = np.random.default_rng(seed)
    losses = np.concatenate([random.exponential(kind, 1500) for kind in kinds])
    losses[610::611], losses[6777] = 50.0, np.nan
    mistakes = (random.uniform(size=6000) < np.repeat([0.02, 0.4, 0.1], 2000)).astype(float)
    return [losses, mistakes, np.zeros(500)]


@pytest.mark.parametrize("seed", range(3))
def test_the_detector_is_that_of_the_core(seed):
    for losses in changing(seed):
        ours, core, found = LossDetector(), DriftDetector(), []
        for start in range(0, len(losses), 7):
            part = losses[start : start + 7]
            found.append(ours.observe(part, 20))
            assert found[-1] == core.observe(part, 20)
            ours = LossDetector.of(ours.state())
        assert ours.changes == core.changes
        assert any(found) == losses.any()


def test_a_change_is_found_by_itself_and_learned_sooner(tmp_path):
    flipped = (Y + 1) % 4
    known = stream(POLKClassifier(), X, Y)
    assert len(known.drift_) == 0
    known.save(tmp_path / "model")
    blind = stream(POLKClassifier(half_life=None), X, Y)
    for model in (known, read := parsimon.load(tmp_path / "model"), blind):
        stream(model, X[TRAIN], flipped[TRAIN])
    assert len(known.drift_) == 1
    assert 1200 < known.drift_[0] < 1300
    assert known.trace_["drift"].sum() == 1
    assert_array_equal(read.drift_, known.drift_)
    assert_array_equal(read.decision_function(X), known.decision_function(X))
    assert known.score(X[TEST], flipped[TEST]) > blind.score(X[TEST], flipped[TEST]) + 0.2
    assert len(blind.drift_) == 0
    assert len(stream(POLKClassifier(half_life=300.0), X, Y).drift_) == 0


def test_files_from_before_there_was_a_detector_are_read(tmp_path):
    model = stream(POLKClassifier(), X[:200], Y[:200])
    archive = model._to_archive()
    names = [name for name in archive.keys() if name != "primal.detector"]  # noqa: SIM118
    parsimon._core.Archive({name: archive[name] for name in names}).write(str(tmp_path / "model"))
    read = parsimon.load(tmp_path / "model")
    assert_array_equal(read.decision_function(X), model.decision_function(X))
    assert len(stream(read, X[200:], Y[200:]).drift_) == 0


def test_what_is_asked_for_is_done():
    # A cap below one point for each output, a number of points to hold, gradient steps alone.
    few, labels = X[:150], Y[:150]
    for given in (
        {"max_points": 3},
        {"budget": parsimon.schedules.AdaptiveBudget(20)},
        {"solver": "sgd", "epochs": 1},
    ):
        model = POLKClassifier(kernel="linear", random_state=0, **given)
        stream(model, few, labels)
        assert not hasattr(model._model, "takes_sparse")
    model = POLKClassifier(kernel="linear", max_points=5).fit(few, labels)
    assert model.model_order_ == 5
    with pytest.raises(ValueError, match="one for the intercept, 6 here"):
        model.partial_fit(few[:1], [7])


def test_other_estimators():
    novelty = POLKOneClass(contamination=0.1).fit(X[TRAIN])
    assert novelty.kernel_ == Linear()
    assert abs((novelty.predict(X[TRAIN]) == -1).mean() - 0.1) < 0.02
    for model in (POLKRegressor(), BSGDRegressor()):
        assert model.fit(X[TRAIN], TARGET[TRAIN]).score(X[TEST], TARGET[TEST]) > 0.1
    with pytest.raises(ValueError, match="not known for a linear kernel on 3,000 features"):
        POLKRegressor().fit(X[TRAIN], TARGET[TRAIN]).predict(X[TEST], return_std=True)


def test_a_radial_kernel_on_many_features_is_advised_against():
    for kernel in ("rbf", Gaussian(1.0)):
        with pytest.warns(UserWarning, match="3,000 features: all samples are about equally far"):
            POLKClassifier(kernel=kernel, epochs=1).fit(X[:200], Y[:200])


def test_what_diverges_leaves_the_model_as_it_was():
    model = stream(POLKRegressor(kernel=Linear()), X[:200], TARGET[:200])
    before = model.predict(X[TEST])
    with pytest.raises(ValueError, match="infinity"):
        model.partial_fit(X[:3], [np.inf, 0, 0])
    assert_array_equal(model.predict(X[TEST]), before)


def test_kernels_that_are_affine():
    assert affine(Linear()) == (1, 0)
    assert affine(2.0 * (Linear() + 3.0 * Constant())) == (2, 6)
    assert affine(kernels.SinglePrecision(Linear())) == (1, 0)
    assert affine(Constant()) is None
    assert affine(Linear() + Gaussian(1.0)) is None
    assert affine(Linear() * Linear()) is None


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the peak is never forgotten")
def test_a_stream_of_documents_takes_a_second_and_little_memory():
    documents, labels = make_documents(3000, 47_841, random_state=0)
    stream(POLKClassifier(), documents[:200], labels[:200], 100)
    with machine.MemoryGrowth() as memory, machine.Stopwatch() as watch:
        model = stream(POLKClassifier(), documents, labels, 100)
    # Two numbers for each feature and class, where 3,000 dense rows would take a gigabyte.
    assert memory.bytes < 4 * 8 * 47_841 * 10
    assert watch.cpu_seconds < 5
    assert model.t_ == 3000


def test_the_trace_is_as_long_as_that_of_other_models():
    records = Records()
    for i in range(10_001):
        records.add([i + 1, 5, 1, float(i % 4), 0.0, 0.0])
    assert len(records.rows) == 2501
    assert (records.stride, records.in_last) == (4, 1)
    assert records.rows[0] == [4, 5, 4, 1.5, 0.0, 0.0]
    assert records.rows[-1] == [10_001, 5, 1, 0.0, 0.0, 0.0]


class Interrupted(np.ndarray):
    """An array that somebody presses Ctrl-C at, right after a part of it was set."""

    at = 0

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        Interrupted.at -= 1
        if Interrupted.at == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("half_life", [None, 100.0])
@pytest.mark.parametrize("at", range(1, 14))
def test_control_c_in_a_step_takes_it_back(at, half_life):
    whole = stream(POLKClassifier(half_life=half_life, batch_size=8), X[:400], Y[:400])
    targets = Labels(whole.classes_).encode(Y[400:440])
    half = copy.deepcopy(whole)
    half._model._u = half._model._u.view(Interrupted)
    half._model._squares = half._model._squares.view(Interrupted)
    Interrupted.at = at
    with pytest.raises(KeyboardInterrupt):
        half._model.run(X[400:440], targets, np.empty(0), 8)
    taken = half._model.samples - whole._model.samples
    assert taken in (0, 8, 16)
    straight = copy.deepcopy(whole)._model
    straight.run(X[400 : 400 + taken], targets[:taken], np.empty(0), 8)
    assert_array_equal(np.asarray(half._model._u), straight._u)
    assert_array_equal(np.asarray(half._model._squares), straight._squares)

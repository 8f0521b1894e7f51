"""save(path, training=False): what predictions need, and nothing else."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from polk_common import curve, task

import parsimon
from parsimon import (
    BSGDClassifier,
    COLKClassifier,
    COLKRegressor,
    HybridIntensity,
    MirrorNewtonIntensity,
    PolicyEvaluator,
    POLKClassifier,
    POLKOneClass,
    POLKRegressor,
    SLKLRegressor,
    SPPPOTClassifier,
    SPPPOTIntensity,
)
from parsimon.stream import StreamingPipeline


def density(cls, **parameters):
    points = np.random.default_rng(0).uniform(size=(200, 2))
    return cls(domain=((0, 1), (0, 1)), random_state=0, **parameters).fit(points)


MODELS = {
    "classifier": lambda: POLKClassifier("logistic").partial_fit(*task()),
    "fitted": lambda: POLKClassifier(random_state=0).fit(*task()),
    "steps": lambda: POLKClassifier("logistic", solver="sgd").partial_fit(*task()),
    "last step": lambda: POLKClassifier(solver="sgd", average=False).partial_fit(*task()),
    "first samples": lambda: POLKClassifier().partial_fit(task()[0][:20], task()[1][:20]),
    "regressor": lambda: POLKRegressor().partial_fit(*curve()),
    "BSGD": lambda: BSGDClassifier(random_state=0).partial_fit(*task()),
    "COLK": lambda: COLKRegressor(random_state=0).partial_fit(*curve()),
    "COLK, classes": lambda: COLKClassifier(random_state=0).partial_fit(*task()),
    "SPPPOT": lambda: SPPPOTClassifier(random_state=0).partial_fit(*task()),
    "policy": lambda: PolicyEvaluator().partial_fit(*curve(), curve()[0]),
    "density": lambda: density(SPPPOTIntensity),
    "density by steps": lambda: density(SPPPOTIntensity, solver="sgd"),
    "dual averaging": lambda: density(SPPPOTIntensity, solver="sgd", method="dual_averaging"),
    "dual averaging, last step": lambda: density(
        SPPPOTIntensity, solver="sgd", method="dual_averaging", average=False
    ),
    "mirror Newton": lambda: density(MirrorNewtonIntensity, solver="sgd"),
    "hybrid": lambda: density(HybridIntensity, solver="sgd"),
    "one class": lambda: POLKOneClass().partial_fit(task()[0]),
    "SLKL": lambda: SLKLRegressor(n_columns=50, random_state=0).fit(*curve()),
}
every = pytest.mark.parametrize("name", MODELS)


def samples(model):
    X = task()[0]
    if hasattr(model, "intensity"):
        return np.random.default_rng(1).uniform(size=(50, 2))
    return X if X.shape[1] == model.n_features_in_ else curve()[0]


@every
def test_predicts_the_same_to_the_last_bit(name, tmp_path):
    model = MODELS[name]()
    model.save(tmp_path / "whole")
    model.save(tmp_path / "slim", training=False)
    again, X = parsimon.load(tmp_path / "slim"), samples(model)
    for method in ("predict", "predict_proba", "decision_function", "intensity", "score_samples"):
        if hasattr(model, method):
            assert_array_equal(getattr(again, method)(X), getattr(model, method)(X))
    assert again.model_order_ == model.model_order_
    assert again.get_params() == model.get_params()
    if name != "SLKL":  # which is learned at once, and keeps nothing else
        assert (tmp_path / "slim").stat().st_size < (tmp_path / "whole").stat().st_size
    # And so does what is written from there.
    again.save(tmp_path / "again", training=False)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "slim").read_bytes()


@every
def test_nothing_is_left_of_the_stream(name, tmp_path):
    MODELS[name]().save(tmp_path / "slim", training=False)
    entries = parsimon._core.Archive.read(str(tmp_path / "slim"))
    names = list(entries.keys())
    of_stream = ("newton.numbers", "newton.pending", "newton.points", "statistics", "noise")
    assert not [entry for entry in names if entry == "newton" or entry.startswith(of_stream)]
    assert all(len(entries[entry]) == 0 for entry in names if entry.startswith("trace"))
    assert len(getattr(parsimon.load(tmp_path / "slim"), "_scores_", ())) == 0


@pytest.mark.parametrize("cls", [POLKClassifier, POLKOneClass])
def test_the_file_is_little_more_than_points_and_weights(cls, tmp_path):
    X, y = task()
    model = cls()
    for _ in range(20):
        model.partial_fit(X, y)
    model.save(tmp_path / "slim", training=False)
    numbers = model.dictionary_.size + model.weights_.size
    assert (tmp_path / "slim").stat().st_size < 8 * numbers + 32 * model.model_order_ + 8000


def test_learning_cannot_go_on_but_begin_anew(tmp_path):
    X, y = task()
    POLKClassifier().partial_fit(X, y).save(tmp_path / "slim", training=False)
    model = parsimon.load(tmp_path / "slim")
    before = model.weights_
    for block in ((X[:1], y[:1]), (X[:1].tolist(), [77])):
        with pytest.raises(ValueError, match=r"saved with training=False.*fit can train it anew"):
            model.partial_fit(*block)
    assert_array_equal(model.weights_, before)
    model.fit(X, y)
    model.partial_fit(X, y)
    assert model.t_ > len(X)


def test_a_pipeline(tmp_path):
    X, y = task()
    model = StreamingPipeline(POLKClassifier()).partial_fit(X, y)
    model.save(tmp_path / "slim", training=False)
    assert_array_equal(parsimon.load(tmp_path / "slim").predict(X), model.predict(X))


def test_a_density(tmp_path):
    X = np.random.RandomState(0).uniform(size=(500, 1))
    model = SPPPOTIntensity(domain=(0, 1), random_state=0).fit(X)
    model.save(tmp_path / "slim", training=False)
    assert_array_equal(parsimon.load(tmp_path / "slim").score_samples(X), model.score_samples(X))


def test_training_is_a_flag(tmp_path):
    X, y = task()
    with pytest.raises(ValueError, match="training must be True or False; got 'no'"):
        POLKClassifier(epochs=1).fit(X, y).save(tmp_path / "model", training="no")

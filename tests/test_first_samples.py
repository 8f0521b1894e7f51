"""Streams that come one sample at a time: the first ones are kept until there are enough."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from polk_common import curve, task
from scipy import sparse

import parsimon
from parsimon import (
    BSGDClassifier,
    BSGDRegressor,
    COLKClassifier,
    COLKRegressor,
    PolicyEvaluator,
    POLKClassifier,
    POLKOneClass,
    POLKRegressor,
    SPPPOTClassifier,
    _io,
    kernels,
)
from parsimon._first_samples import ENOUGH
from parsimon.datasets import make_multidist

ESTIMATORS = [
    POLKClassifier,
    BSGDClassifier,
    COLKClassifier,
    SPPPOTClassifier,
    POLKRegressor,
    BSGDRegressor,
    COLKRegressor,
    POLKOneClass,
    PolicyEvaluator,
]
every = pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)


def columns(cls, count):
    if cls is POLKOneClass:
        return (task()[0][:count],)
    if cls is PolicyEvaluator:
        X, y = curve()
        return X[:count], y[:count], X[1 : count + 1]
    X, y = task() if cls.__name__.endswith("Classifier") else curve()
    return X[:count], y[:count]


def one_by_one(model, given, start=0):
    for i in range(start, len(given[0])):
        model.partial_fit(*(column[i : i + 1] for column in given))
    return model


def everything(model):
    return model._model.to_archive().to_bytes()


@every
def test_after_the_first_hundred_it_does_not_matter_how_they_came(cls):
    given = columns(cls, ENOUGH)
    single, at_once = one_by_one(cls(), given), cls().partial_fit(*given)
    assert everything(single) == everything(at_once)
    assert single.t_ == at_once.t_ == ENOUGH
    # Nothing is kept any more.
    assert not single._first_
    odd = cls()
    for part in (slice(0, 1), slice(1, 38), slice(38, ENOUGH)):
        odd.partial_fit(*(column[part] for column in given))
    assert everything(odd) == everything(at_once)


@every
def test_meanwhile_everything_works_and_nothing_is_counted_twice(cls, tmp_path):
    given = columns(cls, 60)
    model = cls()
    for i in range(60):
        model.partial_fit(*(column[i : i + 1] for column in given))
        assert model.t_ == i + 1
        assert np.isfinite(model.weights_).all()
        assert model.trace_["samples"][-1] == i + 1
    assert model.kernel_ is not None
    assert len(model.dictionary_) == model.model_order_ == len(model.weights_)
    model.save(tmp_path / "model")
    others = [parsimon.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))]
    others.append(copy.deepcopy(model))
    rest = columns(cls, 150)
    one_by_one(model, rest, 60)
    for other in others:
        one_by_one(other, rest, 60)
        assert everything(other) == everything(model)
        assert_array_equal(other.predict(rest[0]), model.predict(rest[0]))


def test_three_orders_of_the_same_data_choose_the_same_kind_of_width():
    """A stream of single samples took its width from the first one: 1.6, 0.025 and 0.9."""
    X, y = make_multidist(3000, random_state=0)
    widths, accuracies = [], []
    for seed in range(3):
        order = np.random.RandomState(seed).permutation(2000)
        model = one_by_one(POLKClassifier(random_state=0), (X[order], y[order]))
        widths.append(model.kernel_.parts[0].bandwidth)
        accuracies.append(model.score(X[2000:], y[2000:]))
    blocks = POLKClassifier(random_state=0)
    for start in range(0, 2000, 500):
        blocks.partial_fit(X[start : start + 500], y[start : start + 500])
    assert max(widths) < 1.2 * min(widths)
    assert min(accuracies) > blocks.score(X[2000:], y[2000:]) - 0.01


def test_a_regressor_revises_the_unit_of_its_targets():
    X, y = curve()
    y = 1000 * y + 5e4
    model = one_by_one(POLKRegressor(), (X[:150], y[:150]))
    assert model.score(X, y) > 0.9
    early = one_by_one(POLKRegressor(), (X[:10], y[:10]))
    assert abs(early.predict(X[:10]) - y[:10]).mean() < y.std()
    assert not np.array_equal(early.intercept_, model.intercept_)


def test_one_sample_is_enough_to_predict():
    X, y = task()
    model = POLKClassifier(loss="logistic").partial_fit(X[:1], y[:1])
    assert_array_equal(model.predict(X[:5]), [y[0]] * 5)
    assert_array_equal(model.predict_proba(X[:5]), np.ones((5, 1)))
    assert POLKRegressor().partial_fit(X[:1], [3.5]).predict(X[:1])[0] == pytest.approx(3.5)


def test_what_was_given_needs_no_first_samples():
    X, y = curve()
    given = {
        "kernel": kernels.Gaussian(0.1),
        "learning_rate": 0.5,
        "budget": 0.01,
        "regularization": 1e-4,
        "normalize_y": False,
    }
    model = POLKRegressor(**given).partial_fit(X[:1], y[:1])
    assert not model._first_
    assert POLKRegressor(**{**given, "normalize_y": True}).partial_fit(X[:1], y[:1])._first_


def test_weights_and_single_precision_and_sparse_samples_are_kept_as_they_are(tmp_path):
    X, y = task()
    weight = np.arange(1.0, 101.0)
    whole = POLKClassifier().partial_fit(
        X[:100], y[:100], sample_weight=np.r_[np.ones(50), weight[50:]]
    )
    model = POLKClassifier().partial_fit(X[:50], y[:50])
    model.partial_fit(X[50:100], y[50:100], sample_weight=weight[50:])
    assert everything(model) == everything(whole)
    for change in (np.float32, sparse.csr_matrix):
        model = POLKClassifier().partial_fit(change(X[:40]), y[:40])
        model.save(tmp_path / "model")
        again = parsimon.load(tmp_path / "model")
        again.partial_fit(change(X[40:100]), y[40:100])
        assert everything(again) == everything(
            POLKClassifier().partial_fit(change(X[:100]), y[:100])
        )


@every
def test_a_refused_block_changes_nothing(cls):
    given = columns(cls, 30)
    model = one_by_one(cls(), given)
    before, kept = everything(model), model._first_
    bad = [column[:2].astype(float).copy() for column in given]
    bad[0][0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(*bad)
    assert everything(model) == before
    assert model._first_ is kept


def test_fit_keeps_nothing():
    X, y = task()
    model = POLKClassifier(epochs=1).partial_fit(X[:5], y[:5]).fit(X, y)
    assert not model._first_
    model.partial_fit(X[:5], y[:5])
    assert model.t_ == len(X) + 5


@pytest.mark.parametrize(
    "damage",
    [
        lambda X, y, weight, begun: (X[:, :1], y, weight, begun),
        lambda X, y, weight, begun: (X[:10], y[:10], weight, begun),
        lambda X, y, weight, begun: (X, y[:10], weight, begun),
        lambda X, y, weight, begun: (X, y, weight, 21),
        lambda X, y, weight, begun: (X, y, weight, 0.5),
        lambda X, y, weight, begun: (X * np.inf, y, weight, begun),
        lambda X, y, weight, begun: (y, weight, begun),
        lambda X, y, weight, begun: 5,
    ],
)
def test_a_damaged_file_is_refused(damage, tmp_path):
    X, y = task()
    model = POLKClassifier().partial_fit(X[:20], y[:20])
    model._first_ = damage(*model._first_)
    archive = model._model.to_archive()
    fitted = {"_first_": model._first_, "classes_": model.classes_, "n_features_in_": X.shape[1]}
    archive["estimator"] = "POLKClassifier"
    archive["estimator.parameters"] = _io._to_json(model.get_params())
    archive["estimator.fitted"] = _io._to_json(fitted)
    archive.write(str(tmp_path / "model"))
    with pytest.raises(ValueError, match=r"_first_|not a complete model"):
        parsimon.load(tmp_path / "model")


def test_a_stream_of_single_samples_runs_without_warnings():
    code = (
        "import warnings; warnings.simplefilter('error')\n"
        "from parsimon import POLKClassifier\n"
        "from parsimon.datasets import make_multidist\n"
        "X, y = make_multidist(150, random_state=0)\n"
        "model = POLKClassifier()\n"
        "for i in range(150): model.partial_fit(X[i:i+1], y[i:i+1])\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("replaced_by", ["expansion_", "compress", "refine_on"])
@pytest.mark.parametrize("cls", [POLKClassifier, POLKRegressor], ids=lambda cls: cls.__name__)
def test_a_function_that_was_changed_is_not_lost_with_the_next_of_the_first_samples(
    cls, replaced_by
):
    """The model once began anew from the samples it had kept, without what was done to it."""
    given = columns(cls, 80)
    model = cls(max_points=12).partial_fit(*(column[:50] for column in given))
    assert len(model._first_) > 0
    if replaced_by == "expansion_":
        model.expansion_ = 0.5 * model.expansion_
    elif replaced_by == "compress":
        model.compress(max_points=5)
    else:
        model.refine_on(*given, epochs=1)
    core, before = model._model, model.expansion_
    one_by_one(model, tuple(column[:1] for column in given))
    assert model._model is core
    assert model.expansion_.distance(before) < 0.5 * before.norm()
    one_by_one(model, given, 50)
    assert model._model is core
    assert model.t_ == 50 + 1 + 30

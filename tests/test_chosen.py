"""What was left to us is visible on a fitted estimator, also once it has been saved and loaded."""

import numpy as np
import pytest
from polk_common import curve, task

import parsimon
from parsimon import kernels

CLASSIFIERS = ["POLKClassifier", "BSGDClassifier", "COLKClassifier", "SPPPOTClassifier"]
REGRESSORS = ["POLKRegressor", "BSGDRegressor", "COLKRegressor"]
NUMBERS = ["learning_rate", "regularization", "budget"]


def data(name):
    X, y = task() if name in CLASSIFIERS else curve()
    return X[:60], y[:60]


def numbers_of(cls):
    return [number for number in NUMBERS if number in cls._get_param_names()]


@pytest.mark.parametrize("name", [*CLASSIFIERS, *REGRESSORS])
def test_what_was_given_is_shown_as_it_is(name):
    cls = getattr(parsimon, name)
    given = {"kernel": kernels.Gaussian(0.7), "learning_rate": 0.3, "regularization": 1e-3}
    given |= {"budget": 0.05} if "budget" in numbers_of(cls) else {}
    for learn in ("fit", "partial_fit"):
        model = getattr(cls(epochs=1, **given), learn)(*data(name), **classes(name, learn))
        assert model.kernel_ == given["kernel"]
        for number in numbers_of(cls):
            shown = getattr(model, f"{number}_")
            hinge = learn == "partial_fit" and name in ("POLKClassifier", "BSGDClassifier")
            if number == "regularization" and hinge:
                # Streams of a hinge loss add a little, once for all samples: docs/defaults.md.
                assert 1e-3 < shown < 1.2e-3
            else:
                assert shown == pytest.approx(given[number], rel=1e-12)
        assert model.epochs_ == 1


def classes(name, learn):
    return {"classes": range(5)} if name in CLASSIFIERS and learn == "partial_fit" else {}


@pytest.mark.parametrize("name", [*CLASSIFIERS, *REGRESSORS])
def test_what_was_chosen_gives_the_same_model_when_it_is_given(name):
    cls = getattr(parsimon, name)
    given = {"random_state": 0, "average": False}
    given |= {"solver": "sgd"} if "solver" in cls._get_param_names() else {}
    given |= {"max_points": None} if name.startswith("POLK") else {}
    model = cls(**given).fit(*data(name))
    chosen = {word: getattr(model, f"{word}_") for word in ["kernel", "epochs", *numbers_of(cls)]}
    again = cls(**given, **chosen).fit(*data(name))
    np.testing.assert_allclose(again.dictionary_, model.dictionary_)
    np.testing.assert_allclose(again.weights_, model.weights_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", [*CLASSIFIERS, *REGRESSORS])
@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_files_keep_it(name, learn, tmp_path):
    cls = getattr(parsimon, name)
    model = getattr(cls(), learn)(*data(name), **classes(name, learn))
    model.save(tmp_path / "model")
    again = parsimon.load(tmp_path / "model")
    for word in ["kernel", "epochs", *numbers_of(cls)]:
        assert getattr(again, f"{word}_") == getattr(model, f"{word}_"), word


def test_solved_weights_show_the_ridge_for_each_sample():
    X, y = curve()
    fitted = parsimon.POLKRegressor(regularization=1e-3).fit(X, y)
    assert fitted.regularization_ == pytest.approx(1e-3)
    stream = parsimon.POLKRegressor(half_life=None).partial_fit(X, y)
    once = stream.regularization_
    stream.partial_fit(X, y)
    # One ridge for all samples, however many there are.
    assert stream.regularization_ == pytest.approx(once / 2, rel=0.2)
    X, y = task()
    hinge = parsimon.POLKClassifier(regularization=1e-3, epochs=1).fit(X, y)
    assert hinge.regularization_ == pytest.approx(1e-3, rel=1e-6)


def test_densities_and_value_functions_show_it_too():
    X, y = curve()
    density = parsimon.SPPPOTIntensity(epochs=20, solver="sgd").fit(X)
    assert density.epochs_ == 20
    assert density.learning_rate_ > 0
    assert density.budget_ > 0
    policy = parsimon.PolicyEvaluator(learning_rate=0.1, budget=0.01).fit(X[:-1], y[:-1], X[1:])
    assert (policy.learning_rate_, policy.budget_, policy.regularization_) == (0.1, 0.01, 0.0)
    assert "gaussian" in policy.kernel_.core.describe()


def test_before_fit_there_is_nothing_to_see():
    for word in ("kernel_", "learning_rate_", "regularization_", "budget_", "epochs_"):
        assert not hasattr(parsimon.POLKClassifier(), word)


def test_files_of_the_first_versions_do_not_tell_the_epochs():
    X, y = curve()
    model = parsimon.POLKRegressor().partial_fit(X, y)
    archive = parsimon._io.to_archive(model)
    fitted = archive["estimator.fitted"].replace('"epochs_": 1, ', "").replace(', "epochs_": 1', "")
    assert "epochs_" not in fitted
    archive["estimator.fitted"] = fitted
    old = parsimon._io._from_archive(archive, None)
    assert not hasattr(old, "epochs_")
    assert old.learning_rate_ == model.learning_rate_

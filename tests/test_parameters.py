"""One word, one meaning, in every estimator."""

import inspect
import json

import numpy as np
import pytest
from polk_common import assert_refused, curve, task

import parsimon
from parsimon import _core, _io, kernels
from parsimon.schedules import AdaptiveBudget

ESTIMATORS = {
    name: cls
    for name, cls in vars(parsimon).items()
    if inspect.isclass(cls) and hasattr(cls, "get_params")
}
# A MarkedIntensity has the threads of the intensity that it is given, whose parameters are its own.
WITH_THREADS = [name for name in ESTIMATORS if name != "MarkedIntensity"]


def words(name):
    return list(inspect.signature(ESTIMATORS[name]).parameters)


def with_words(*wanted):
    return [name for name in ESTIMATORS if set(wanted) <= set(words(name))]


def data(cls):
    if cls.__name__.endswith("Classifier"):
        return task()
    X, y = curve()
    if cls.__name__.endswith("Intensity"):
        return (X,)
    if cls is parsimon.QLearner:
        return X, (y > 0).astype(int), y, np.roll(X, 1, axis=0)
    return (X, y, np.roll(X, 1, axis=0)) if cls is parsimon.PolicyEvaluator else (X, y)


def function(*blocks):
    return blocks[0]


def test_all_estimators_are_here():
    assert len(ESTIMATORS) == 18


@pytest.mark.parametrize("name", WITH_THREADS)
def test_every_estimator_says_how_many_threads_it_uses(name):
    given = words(name)
    assert given[given.index("n_jobs") :] == ["n_jobs", "random_state", "verbose"]


@pytest.mark.parametrize("name", WITH_THREADS)
def test_no_estimator_takes_a_number_of_threads_that_is_none(name):
    cls = ESTIMATORS[name]
    functions = (function,) * 3 if name == "CompositionalLearner" else ()
    for wrong in (0, -2, 1.5, "all", True):
        model = cls(*functions, n_jobs=wrong)
        assert_refused(model, lambda m: m.fit(*data(cls)), "n_jobs must be an integer of at least")


@pytest.mark.filterwarnings("ignore:The learned density integrates")
@pytest.mark.parametrize("name", WITH_THREADS)
def test_the_core_is_told_how_many_threads_to_use(name, monkeypatch):
    told = []
    monkeypatch.setattr(_core, "limit_threads_here", lambda threads: told.append(threads) or 7)
    cls = ESTIMATORS[name]
    settings = {"epochs": 1} if "epochs" in words(name) else {}
    if name == "CompositionalLearner":
        settings |= dict.fromkeys(("inner", "outer_gradient"), lambda f, *_: 0 * f)
        settings["inner_derivative"] = lambda f, y: np.ones((len(f), 1, 1))
    model = cls(n_jobs=3, **settings).fit(*data(cls))
    assert told[:2] == [3, 7]
    told.clear()
    (model.score_samples if hasattr(model, "score_samples") else model.predict)(data(cls)[0])
    assert told == [3, 7]


@pytest.mark.parametrize("name", with_words("budget", "parsimony"))
def test_a_budget_and_the_constant_of_another_one_exclude_each_other(name):
    cls = ESTIMATORS[name]
    functions = (function,) * 3 if name == "CompositionalLearner" else ()
    for budget in (0.1, AdaptiveBudget(20)):
        model = cls(*functions, budget=budget, parsimony=0.1)
        with pytest.raises(ValueError, match=r"Give budget, .* or parsimony, .* not both"):
            model.fit(*data(cls))
        assert not hasattr(model, "dictionary_")


@pytest.mark.parametrize("more", [{}, {"budget": 1e-3}, {"parsimony": 1e-3}], ids=str)
@pytest.mark.parametrize("name", ["POLKClassifier", "POLKRegressor", "SPPPOTClassifier"])
def test_there_are_never_more_than_max_points(name, more):
    cls = ESTIMATORS[name]
    given = {"kernel": kernels.Gaussian(0.5), "max_points": 9, "epochs": 3, "random_state": 0}
    model = cls(**given, **more).fit(*data(cls))
    assert model.trace_["model_order"].max() == 9


def test_an_adaptive_budget_is_a_value():
    budget = AdaptiveBudget(12, initial=0.5)
    assert budget == AdaptiveBudget(12, 0.5)
    assert eval(repr(budget)) == budget
    assert_refused(
        parsimon.POLKRegressor(budget="adaptive"), lambda m: m.fit(*curve()), "budget must be"
    )


OLD = {
    "max_model_order": ("POLKClassifier", {}, {"budget": AdaptiveBudget(12)}),
    "target_model_order": (
        "SPPPOTIntensity",
        {"parsimony": 0.25},
        {"budget": AdaptiveBudget(12, 0.25), "parsimony": "auto"},
    ),
    "budget": ("BSGDClassifier", {}, {"max_points": 12}),
}


@pytest.mark.filterwarnings("ignore:The model order is", "ignore:The learned density integrates")
@pytest.mark.parametrize("old", OLD)
def test_files_with_the_words_of_earlier_versions(old, monkeypatch):
    name, more, now = OLD[old]
    cls = ESTIMATORS[name]
    model = cls(**now, random_state=0, epochs=1).fit(*data(cls))
    entries = dict(_io.to_archive(model))
    parameters = json.loads(entries["estimator.parameters"])
    parameters |= {"budget": None, old: 12, **more}
    for word in set(now) - {"budget", "parsimony"}:
        del parameters[word]
    content = _core.Archive({**entries, "estimator.parameters": json.dumps(parameters)}).to_bytes()
    archive = _core.Archive.from_bytes(content)
    monkeypatch.setattr(_core.Archive, "read", staticmethod(lambda _: archive))
    assert parsimon.load("made up").get_params() == model.get_params()

"""A cap on the points of a model holds after every mini-batch, whatever else is asked for."""

import numpy as np
import pytest

import parsimon
from parsimon.schedules import AdaptiveBudget

CAP = 7
ESTIMATORS = {
    name: getattr(parsimon, name)
    for name in parsimon.__all__
    if isinstance(getattr(parsimon, name), type)
    and "max_points" in getattr(getattr(parsimon, name), "__annotations__", {})
}
BUDGETS = {
    "parsimony": {},
    "no budget": {"budget": 0.0},
    "budget": {"budget": 0.01},
    "large budget": {"budget": 1.0},
    "adaptive budget": {"budget": AdaptiveBudget(30)},
}
RULES = {rule: {"maintenance": rule} for rule in ("merge", "project", "remove")}
SETTINGS = [
    pytest.param(name, given, id=f"{name}, {setting}")
    for name, cls in ESTIMATORS.items()
    for setting, given in (BUDGETS if "budget" in cls.__annotations__ else RULES).items()
]


def samples(name, duplicates):
    """Return the arguments of fit."""
    random = np.random.RandomState(0)
    X = random.uniform(-1, 1, size=(240, 2))
    if duplicates:
        X = X[random.randint(10, size=240)]
    y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2
    if name == "PolicyEvaluator":
        return X, y, np.roll(X, 1, axis=0)
    if name == "QLearner":
        return X, (y > 0.3).astype(int), y, np.roll(X, 1, axis=0)
    return X, (y > 0.3).astype(int) if name.endswith("Classifier") else y


def assert_within_cap(model):
    assert model.model_order_ <= CAP
    assert getattr(model, "tracker_order_", 0) <= CAP
    assert len(model.dictionary_) == len(model.weights_) == model.model_order_
    assert model.trace_["model_order"].max() <= CAP
    assert np.isfinite(model.weights_).all()


def test_every_estimator_of_a_stream_has_a_cap():
    assert set(ESTIMATORS) == {
        "BSGDClassifier",
        "BSGDRegressor",
        "COLKClassifier",
        "COLKRegressor",
        "POLKClassifier",
        "POLKOneClass",
        "POLKRegressor",
        "PolicyEvaluator",
        "QLearner",
        "SPPPOTClassifier",
    }


@pytest.mark.filterwarnings("ignore:The model order is", "ignore:V is worse than a constant")
@pytest.mark.parametrize("duplicates", [False, True], ids=["distinct", "duplicates"])
@pytest.mark.parametrize(("name", "given"), SETTINGS)
def test_the_cap_holds_after_every_block_and_after_fit(name, given, duplicates):
    data = samples(name, duplicates)
    # Mini-batches of more samples than the cap, too.
    for batch_size in (2, 16):
        model = ESTIMATORS[name](
            max_points=CAP, batch_size=batch_size, epochs=2, random_state=0, **given
        )
        first = {"classes": [0, 1]} if name.endswith("Classifier") else {}
        for start in range(0, 240, 40):
            model.partial_fit(*(column[start : start + 40] for column in data), **first)
            assert_within_cap(model)
        assert_within_cap(model.fit(*data))
        assert_within_cap(model.partial_fit(*data))
        if given.get("budget") == 0.0 and not duplicates:
            assert model.model_order_ == CAP


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_cap_of_a_file_holds_when_learning_goes_on(name, tmp_path):
    data = samples(name, duplicates=False)
    model = ESTIMATORS[name](max_points=CAP, random_state=0).fit(*data)
    model.save(tmp_path / "model")
    again = parsimon.load(tmp_path / "model")
    assert again.max_points == CAP
    assert_within_cap(again.partial_fit(*data))

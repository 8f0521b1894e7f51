"""Learning from parts of the data with nothing but a map and a reduce."""

import functools
import pickle
import warnings

import numpy as np
import pytest

from parsimon import (
    COLKClassifier,
    COLKRegressor,
    POLKClassifier,
    POLKRegressor,
    SPPPOTClassifier,
    SPPPOTIntensity,
    distributed,
    kernels,
    schedules,
)
from parsimon.colk._risk import finish_colk, own_measure
from parsimon.datasets import make_multidist
from parsimon.distributed._statistics import encoded
from parsimon.export import dumps, loads


def cut(X, y, parts):
    return [(X[i::parts], y[i::parts]) for i in range(parts)]


def over(parts, order=None):
    """Return a map and a reduce over parts in memory, which may be asked in any order."""

    def map_reduce(step, combine):
        numbers = range(len(parts)) if order is None else order
        found = {i: pickle.loads(pickle.dumps(step))(i, *parts[i]) for i in numbers}
        return functools.reduce(combine, [found[i] for i in range(len(parts))])

    return map_reduce


@pytest.fixture(scope="module")
def labelled():
    X, y = make_multidist(1600, random_state=0)
    return X[:800], y[:800], X[800:], y[800:]


@pytest.fixture(scope="module")
def measured():
    random = np.random.default_rng(0)
    X = random.uniform(-1, 1, size=(1000, 2))
    y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * random.normal(size=1000)
    return X[:600], y[:600], X[600:], y[600:]


# -- statistics -----------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [1, 2, 16])
def test_weights_of_summed_statistics_are_those_of_one_machine(measured, parts):
    X, y, X_test, _ = measured
    model = POLKRegressor(random_state=0).fit(X, y)
    found = [
        distributed.statistics(loads(dumps(model)), *part, sample_weight=None)
        for part in cut(X, y, parts)
    ]
    total = functools.reduce(lambda a, b: a + b, found)
    solved = distributed.solve(model, total)
    scale = np.abs(model.weights_).max()
    np.testing.assert_allclose(solved.weights_, model.weights_, rtol=0, atol=1e-9 * scale)
    np.testing.assert_allclose(solved.noise_, model.noise_, rtol=1e-9)
    one, other = (m.predict(X_test, return_std=True)[1] for m in (solved, model))
    np.testing.assert_allclose(one, other, rtol=1e-9)
    assert total.samples == len(X)
    assert total.loss == pytest.approx(((model.predict(X) - y) ** 2).mean() / 2 / y.var(), rel=1e-9)


def test_weighted_statistics_are_those_of_one_machine(measured):
    X, y, *_ = measured
    weight = np.random.default_rng(1).uniform(0, 2, size=len(X))
    model = POLKRegressor(random_state=0).fit(X, y, weight)
    total = sum_of(distributed.statistics(model, X[i::3], y[i::3], weight[i::3]) for i in range(3))
    solved = distributed.solve(model, total)
    scale = np.abs(model.weights_).max()
    np.testing.assert_allclose(solved.weights_, model.weights_, rtol=0, atol=1e-9 * scale)


def sum_of(statistics):
    return functools.reduce(lambda a, b: a + b, statistics)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_steps_of_other_losses_never_go_uphill(labelled, loss):
    X, y, *_ = labelled
    model = POLKClassifier(loss, max_points=30, random_state=0).partial_fit(X[:300], y[:300])
    scale = model._core_loss(5).regularizer_scale
    objectives = []
    for _ in range(6):
        total = sum_of(distributed.statistics(model, *part) for part in cut(X, y, 3))
        ridge = scale / 2 * model.regularization_ * model.expansion_.norm() ** 2
        objectives.append(total.loss + ridge)
        model = distributed.solve(model, total)
    assert (np.diff(objectives) < 0).all()


def test_the_model_is_not_changed(measured):
    X, y, *_ = measured
    model = POLKRegressor(random_state=0).fit(X[:500], y[:500])
    before = dumps(model)
    distributed.solve(model, distributed.statistics(model, X, y))
    assert dumps(model) == before


def test_statistics_as_bytes(measured):
    X, y, *_ = measured
    model = POLKRegressor(random_state=0).fit(X, y)
    total = distributed.statistics(model, X, y)
    again = distributed.loads(distributed.dumps(total))
    assert distributed.dumps(again) == distributed.dumps(total)
    assert again.samples == total.samples
    np.testing.assert_array_equal(
        distributed.solve(model, again).weights_, distributed.solve(model, total).weights_
    )


def test_bytes_that_are_no_statistics(measured):
    X, y, *_ = measured
    model = POLKRegressor(random_state=0).fit(X[:200], y[:200])
    with pytest.raises(TypeError, match="loads takes bytes"):
        distributed.loads("text")
    with pytest.raises(ValueError, match="no statistics"):
        distributed.loads(dumps(model))
    data = distributed.dumps(distributed.statistics(model, X, y))
    with pytest.raises(ValueError, match=r"\w"):
        distributed.loads(data[:-10])


def test_statistics_of_two_dictionaries_are_not_added(measured):
    X, y, *_ = measured
    one, other = (POLKRegressor(random_state=seed).fit(X[:400], y[:400]) for seed in (0, 1))
    of_one, of_other = (distributed.statistics(model, X, y) for model in (one, other))
    with pytest.raises(ValueError, match="same model"):
        of_one + of_other
    with pytest.raises(ValueError, match="another model"):
        distributed.solve(one, of_other)
    with pytest.raises(TypeError):
        of_one + 1


def test_statistics_of_a_model_that_has_none(labelled):
    X, y, *_ = labelled
    with pytest.raises(TypeError, match="POLK or COLK"):
        distributed.statistics(object(), X, y)
    at_risk = COLKRegressor(random_state=0).fit(X[:200], X[:200, 0])
    with pytest.raises(ValueError, match="no sums over samples"):
        distributed.statistics(at_risk, X, X[:, 0])
    model = POLKClassifier(solver="sgd", epochs=1).fit(X[:200], y[:200])
    with pytest.raises(ValueError, match="solver='sgd'"):
        distributed.statistics(model, X, y)
    model = POLKClassifier(random_state=0).fit(X[:200], y[:200])
    with pytest.raises(ValueError, match="does not know"):
        distributed.statistics(model, X[:1], [77])


# -- all of it ------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_as_good_as_one_machine(labelled, loss):
    X, y, X_test, y_test = labelled
    one = POLKClassifier(loss, random_state=0).fit(X, y)
    parts = distributed.fit(POLKClassifier(loss, random_state=0), over(cut(X, y, 5)))
    assert parts.score(X_test, y_test) > one.score(X_test, y_test) - 0.01
    assert parts.model_order_ <= 1.5 * one.model_order_
    assert parts.classes_.tolist() == one.classes_.tolist()


def test_regression_is_as_good_as_on_one_machine(measured):
    X, y, X_test, y_test = measured
    one = POLKRegressor(random_state=0).fit(X, y)
    parts = distributed.fit(POLKRegressor(random_state=0), over(cut(X, y, 4)))
    best = 1 - one.score(X_test, y_test)
    assert 1 - parts.score(X_test, y_test) < 1.1 * best
    # On the points found, the weights are those that one machine solves for.
    again = distributed.solve(parts, distributed.statistics(parts, X, y))
    scale = np.abs(again.weights_).max()
    np.testing.assert_allclose(parts.weights_, again.weights_, rtol=0, atol=1e-9 * scale)
    assert parts.noise_ == pytest.approx(one.noise_, rel=0.05)


@pytest.mark.parametrize("loss", ["huber", "pinball(0.8)"])
def test_other_losses_of_regression(measured, loss):
    X, y, X_test, _ = measured
    one = POLKRegressor(loss, random_state=0).fit(X, y)
    parts = distributed.fit(POLKRegressor(loss, random_state=0), over(cut(X, y, 4)))
    difference = parts.predict(X_test) - one.predict(X_test)
    assert np.sqrt((difference**2).mean()) < 0.1 * y.std()


@pytest.fixture(scope="module")
def skewed():
    """Targets with a tail on one side, of which a risk and the mean loss make different models."""
    random = np.random.default_rng(0)
    X = random.uniform(-1, 1, size=(1600, 2))
    tail = 0.3 * random.exponential(size=len(X)) * (X[:, 0] > 0)
    y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + tail
    return X[:800], y[:800], X[800:], y[800:]


def worst(model, X, y):
    losses = np.sort((model.predict(X) - y) ** 2)
    return losses[-len(y) // 10 :].mean()


@pytest.mark.parametrize("risk", ["semideviation", "cvar", "moments", "kl"])
def test_a_risk_is_as_small_as_on_one_machine(skewed, risk):
    X, y, X_test, y_test = skewed
    one = COLKRegressor(risk=risk, random_state=0).fit(X, y)
    model = distributed.fit(COLKRegressor(risk=risk, random_state=0), over(cut(X, y, 4)))
    losses = [(each.predict(X_test) - y_test) ** 2 / 2 / y.var() for each in (model, one)]
    share = np.full(len(y_test), 1 / len(y_test))
    found, best = (own_measure(model)(each, share)[0] for each in losses)
    assert found < 1.05 * best


@pytest.mark.parametrize("kept", [True, False])
def test_weights_of_a_risk_minimise_it_over_all_samples(skewed, kept):
    X, y, *_ = skewed
    weight = np.random.default_rng(1).uniform(0.5, 1.5, size=len(X))
    parts = [(X[i::3], y[i::3], weight[i::3]) for i in range(3)]
    run = over(parts)
    if kept:
        run.keep = lambda step, size: over([step(i, *part) for i, part in enumerate(parts)])
    estimator = COLKRegressor(risk="cvar", regularization=1e-4, random_state=0)
    model = distributed.fit(estimator, run)
    one = loads(dumps(model))
    joined = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
    samples = encoded(one, *joined)
    finish_colk(one, one._model, samples)
    assert model.objective_ == pytest.approx(one.objective_, rel=1e-3)
    assert model.cvar_ == pytest.approx(one.cvar_, rel=0.01)
    # The mean loss alone leads elsewhere.
    mean = distributed.fit(COLKRegressor(risk=None, random_state=0), over(cut(X, y, 3)))
    assert worst(model, X, y) < 0.95 * worst(mean, X, y)


def test_the_next_day_of_a_risk(skewed):
    X, y, X_test, y_test = skewed
    model = distributed.fit(
        COLKRegressor(risk="cvar", random_state=0), over(cut(X[:200], y[:200], 2))
    )
    before = worst(model, X_test, y_test)
    for start in (200, 400, 600):
        day = over(cut(X[start : start + 200], y[start : start + 200], 2))
        model = distributed.partial_fit(model, day)
    assert worst(model, X_test, y_test) < before
    mean = COLKRegressor(risk=None, random_state=0).fit(X, y)
    assert worst(model, X_test, y_test) < worst(mean, X_test, y_test)


def test_a_risk_of_classification(labelled):
    X, y, X_test, y_test = labelled
    one = COLKClassifier(risk="cvar", random_state=0).fit(X, y)
    model = distributed.fit(COLKClassifier(risk="cvar", random_state=0), over(cut(X, y, 3)))
    assert model.score(X_test, y_test) > one.score(X_test, y_test) - 0.02


def test_who_answers_first_does_not_matter(labelled):
    X, y, *_ = labelled
    parts = cut(X, y, 4)
    models = [
        distributed.fit(POLKClassifier(random_state=0), over(parts, order))
        for order in (None, [3, 1, 0, 2])
    ]
    assert dumps(models[0]) == dumps(models[1])


def test_the_model_goes_on_from_a_file(labelled):
    X, y, X_test, y_test = labelled
    model = distributed.fit(POLKClassifier(random_state=0), over(cut(X, y, 3)))
    again = loads(dumps(model))
    np.testing.assert_array_equal(again.decision_function(X_test), model.decision_function(X_test))
    before = again.score(X_test, y_test)
    again.partial_fit(X[:300], y[:300])
    assert again.score(X_test, y_test) > before - 0.02
    assert again.t_ > 300


def test_names_weights_and_empty_parts(labelled):
    pd = pytest.importorskip("pandas")
    X, y, *_ = labelled
    names = [f"f{i}" for i in range(X.shape[1])]
    frame, text = pd.DataFrame(X, columns=names), pd.Series(np.array(["a", "b", "c", "d", "e"])[y])
    weight = np.ones(len(X))
    parts = [(frame[i : i + 250], text[i : i + 250], weight[i : i + 250]) for i in (0, 250, 500)]
    parts.insert(1, (frame[:0], text[:0], weight[:0]))
    model = distributed.fit(POLKClassifier(random_state=0), over(parts))
    assert model.feature_names_in_.tolist() == names
    assert model.score(frame, text) > 0.9


# -- densities ------------------------------------------------------------------------------------


def scattered(size, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(size, 2)) * [1.0, 0.5]
    X[: size // 3] = 0.3 * X[: size // 3] + 1
    return X


def points_in(X, parts, weight=None):
    rows = np.array_split(np.arange(len(X)), parts)
    return over([(X[part], None, None if weight is None else weight[part]) for part in rows])


@pytest.mark.parametrize(
    "given",
    [
        {"bandwidth": 0.6, "regularization": 1e-3},
        {"bandwidth": 0.6, "regularization": 1e-3, "domain": [(-2, 3), (-2, 2)]},
        {"kernel": "matern", "bandwidth": 0.8, "regularization": 1e-3},
        {"bandwidth": [0.6, 0.5], "regularization": 1e-3, "domain": [(-2, 3)] * 2, "periodic": [0]},
        {"bandwidth": 0.6, "covariates": lambda X: X[:, :1] > 0},
    ],
)
def test_a_density_of_parts_is_that_of_one_machine(given):
    X, weight = scattered(900), np.random.default_rng(1).uniform(0, 2, size=900)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that some are outside
        one = SPPPOTIntensity(**given).fit(X, sample_weight=weight, exposure=3.0)
        run = points_in(X, 4, weight)
        if "covariates" in given:  # a function of this test, which is not sent
            run = over_here([(X[i::4], None, weight[i::4]) for i in range(4)])
        model = distributed.fit(SPPPOTIntensity(**given), run, exposure=3.0)
    inside = X[np.isfinite(one.score_samples(X))]
    np.testing.assert_array_equal(model.domain_, one.domain_)
    np.testing.assert_allclose(
        model.score_samples(inside), one.score_samples(inside), rtol=0, atol=1e-9
    )
    np.testing.assert_allclose(model.intensity(inside), one.intensity(inside), rtol=1e-9)
    np.testing.assert_allclose(model.coef_, one.coef_, rtol=0, atol=1e-9)
    assert (model.n_points_, model.n_rejected_) == (one.n_points_, one.n_rejected_)


def over_here(parts):
    return lambda step, combine: functools.reduce(
        combine, [step(i, *part) for i, part in enumerate(parts)]
    )


def test_what_a_density_chooses_is_what_one_machine_does():
    X = scattered(600)[:, :1]
    one, model = SPPPOTIntensity().fit(X), distributed.fit(SPPPOTIntensity(), points_in(X, 3))
    assert model.kernel_.bandwidth == pytest.approx(one.kernel_.bandwidth)
    assert model.regularization_ == pytest.approx(one.regularization_)
    np.testing.assert_allclose(model.score_samples(X), one.score_samples(X), rtol=0, atol=1e-9)


def test_more_points_than_are_gathered(monkeypatch):
    from parsimon.spppot import _choose

    X, test = scattered(4000)[:, :1], scattered(1000, seed=1)[:, :1]
    one = SPPPOTIntensity(domain=(-6, 6)).fit(X)
    monkeypatch.setattr(_choose, "_MOST_SAMPLES", 800)
    model = distributed.fit(SPPPOTIntensity(domain=(-6, 6)), points_in(X, 5))
    assert model.n_points_ == 4000
    # A nat in a thousand points is what chance decides.
    assert abs(model.score(test) - one.score(test)) < 5


def test_the_next_day_of_a_density():
    X = scattered(1200)
    given = {"domain": [(-6, 6)] * 2, "bandwidth": 1.5, "regularization": 1e-3, "half_life": 500.0}
    one = SPPPOTIntensity(**given).fit(X[:700]).partial_fit(X[700:])
    model = distributed.fit(SPPPOTIntensity(**given), points_in(X[:700], 2))
    before = model.score_samples(X)
    later = distributed.partial_fit(loads(dumps(model)), points_in(X[700:], 3))
    np.testing.assert_allclose(later.score_samples(X), one.score_samples(X), rtol=0, atol=1e-9)
    assert later.n_points_ == one.n_points_
    np.testing.assert_array_equal(model.score_samples(X), before)
    # A stream goes on from it.
    np.testing.assert_allclose(
        later.partial_fit(X[:100]).intensity(X), one.partial_fit(X[:100]).intensity(X), rtol=1e-9
    )


def test_densities_that_do_not_learn_from_parts():
    X = scattered(200)
    with pytest.raises(ValueError, match="solver='newton'"):
        distributed.fit(SPPPOTIntensity(solver="sgd"), points_in(X, 2))
    with pytest.raises(ValueError, match="neither budget"):
        distributed.fit(SPPPOTIntensity(parsimony=1.0), points_in(X, 2))
    with pytest.raises(ValueError, match="None of the samples"):
        distributed.fit(SPPPOTIntensity(domain=[(9, 10)] * 2), points_in(X, 2))
    with pytest.raises(ValueError, match="no samples in any"):
        distributed.fit(SPPPOTIntensity(), over([(X[:0], None)]))
    bad = np.where(np.arange(200)[:, None] == 150, np.nan, X)
    with pytest.raises(ValueError, match="Partition 1: Input X contains NaN"):
        distributed.fit(SPPPOTIntensity(), points_in(bad, 2))
    with pytest.raises(ValueError, match="Partition 1: its samples have 1 features"):
        distributed.fit(SPPPOTIntensity(), over([(X, None), (X[:, :1], None)]))
    with pytest.raises(ValueError, match="exposure is of intensities"):
        distributed.fit(POLKRegressor(), over([(X, X[:, 0])]), exposure=1.0)
    with pytest.warns(UserWarning, match="samples are outside the domain"):
        distributed.fit(SPPPOTIntensity(domain=[(-1, 1)] * 2), points_in(X, 2))


# -- the next day ---------------------------------------------------------------------------------


def test_daily_parts_are_as_good_as_one_pass(labelled):
    X, y, X_test, y_test = labelled
    one = POLKClassifier(random_state=0)
    for start in range(0, len(X), 100):
        one.partial_fit(X[start : start + 100], y[start : start + 100])
    model = distributed.fit(POLKClassifier(random_state=0), over(cut(X[:200], y[:200], 2)))
    for start in range(200, len(X), 200):
        day = over(cut(X[start : start + 200], y[start : start + 200], 2))
        model = distributed.partial_fit(model, day)
    assert model.score(X_test, y_test) > one.score(X_test, y_test) - 0.01


def test_the_squared_loss_remembers_exactly(measured):
    X, y, X_test, y_test = measured
    estimator = POLKRegressor(kernel=kernels.Gaussian(0.7), normalize_y=False, random_state=0)
    model = distributed.fit(estimator, over(cut(X[:300], y[:300], 2)))
    model = distributed.partial_fit(model, over(cut(X[300:], y[300:], 2)))
    # What the earlier samples say of points that are new is taken from the span of the old ones.
    again = distributed.solve(model, distributed.statistics(model, X, y))
    one = POLKRegressor(kernel=kernels.Gaussian(0.7), normalize_y=False, random_state=0).fit(X, y)
    errors = [1 - each.score(X_test, y_test) for each in (model, again, one)]
    assert errors[0] < 1.05 * errors[1]
    assert errors[0] < 1.1 * errors[2]
    assert model.noise_ == pytest.approx(one.noise_, rel=0.05)


def test_a_class_of_the_next_day(labelled):
    X, y, X_test, y_test = labelled
    early = y < 4
    model = distributed.fit(
        POLKClassifier(random_state=0), over(cut(X[early][:300], y[early][:300], 2))
    )
    assert model.classes_.tolist() == [0, 1, 2, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        later = distributed.partial_fit(model, over(cut(X[300:], y[300:], 2)))
    assert later.classes_.tolist() == [0, 1, 2, 3, 4]
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert later.score(X_test, y_test) > 0.9


def test_forgetting_by_a_half_life(labelled):
    X, y, X_test, y_test = labelled
    flipped = 4 - y
    scores = {}
    for half_life in (None, 100.0):
        estimator = POLKClassifier(half_life=half_life, random_state=0)
        model = distributed.fit(estimator, over(cut(X[:400], y[:400], 2)))
        model = distributed.partial_fit(model, over(cut(X[400:], flipped[400:], 2)))
        scores[half_life] = model.score(X_test, 4 - y_test)
    assert scores[100.0] > max(0.85, scores[None])


def test_what_has_learned_elsewhere_does_not_go_on(labelled):
    X, y, *_ = labelled
    parts = over(cut(X[:200], y[:200], 2))
    with pytest.raises(ValueError, match="goes on from a model"):
        distributed.partial_fit(POLKClassifier(random_state=0).fit(X, y), parts)
    model = distributed.fit(POLKClassifier(random_state=0), parts)
    model.partial_fit(X[600:800], y[600:800])
    with pytest.raises(ValueError, match="nowhere else"):
        distributed.partial_fit(model, parts)


# -- sentences ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda X, y: (np.where(np.arange(len(X))[:, None] == 3, np.nan, X), y), "NaN"),
        (lambda X, y: (X[:, :1], y), "1 features"),
        (lambda X, y: (X, y[:-1]), "inconsistent"),
        (lambda X, y: (X, np.where(np.arange(len(y)) == 3, np.nan, y)), "NaN"),
    ],
)
def test_a_bad_part_is_named(labelled, change, sentence):
    X, y, *_ = labelled
    parts = cut(X[:300], y[:300].astype(float), 3)
    parts[2] = change(*parts[2])
    with pytest.raises(ValueError, match=rf"(?s)Partition 2:.*{sentence}"):
        distributed.fit(POLKClassifier(), over(parts))


def test_parts_that_lack_a_class_are_named(labelled):
    X, y, X_test, y_test = labelled
    order = np.argsort(y, kind="stable")
    parts = [(X[rows], y[rows]) for rows in np.array_split(order, 4)]
    with pytest.warns(UserWarning, match=r"partition 0 lacks .*Their points come from"):
        model = distributed.fit(POLKClassifier(random_state=0), over(parts))
    assert model.score(X_test, y_test) > 0.9


@pytest.mark.parametrize(
    ("estimator", "sentence"),
    [
        (POLKClassifier(solver="sgd"), "solver='newton'"),
        (POLKRegressor(refit=False), "refit=True"),
        (POLKClassifier(budget=schedules.AdaptiveBudget(20)), "AdaptiveBudget"),
        (COLKRegressor(solver="sgd"), "solver='newton'"),
        (SPPPOTClassifier(), "POLK's and COLK's classifiers"),
        (POLKClassifier(compression="merge"), "compression='remove'"),
        (POLKClassifier(refine=True), "refine=False"),
        (POLKClassifier(max_points=0), "max_points"),
    ],
)
def test_estimators_that_do_not_learn_from_parts(labelled, estimator, sentence):
    X, y, *_ = labelled
    with pytest.raises(ValueError, match=sentence):
        distributed.fit(estimator, over(cut(X, y, 2)))


def test_nothing_to_learn_from(labelled):
    X, y, *_ = labelled
    with pytest.raises(ValueError, match="no samples in any"):
        distributed.fit(POLKClassifier(), over([(X[:0], y[:0])]))
    with pytest.raises(ValueError, match="only one class"):
        distributed.fit(POLKClassifier(), over([(X[:5], np.zeros(5, int))]))
    with pytest.raises(TypeError, match="An estimator of parsimon"):
        distributed.fit(object(), over([(X, y)]))


def test_many_features_are_no_dictionary():
    X, y = np.random.default_rng(0).normal(size=(40, 2100)), np.arange(40) // 2 % 2
    with pytest.raises(ValueError, match="one machine"):
        distributed.fit(POLKClassifier(), over(cut(X, y, 2)))


def test_what_is_told(labelled):
    X, y, *_ = labelled
    told = []
    distributed.fit(
        POLKClassifier(random_state=0),
        over(cut(X, y, 2)),
        watch=lambda phase, figures: told.append((phase, figures)),
    )
    assert [phase for phase, _ in told][:3] == ["look", "points", "weights"]
    assert set(told[-1][1]) == {"rounds", "loss", "points"}

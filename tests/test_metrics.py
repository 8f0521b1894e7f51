"""Measures of risk, and scorers that choose by them."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import LinearSVC

from parsimon import COLKRegressor
from parsimon.metrics import (
    chi_square_robust,
    cvar,
    entropic,
    kl_robust,
    moments,
    risk_scorer,
    semideviation,
    semivariance,
    value_at_risk,
)


def losses(count=200):
    return np.random.RandomState(0).exponential(size=count)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9, 0.985])
def test_cvar_is_the_least_of_its_variational_form(level):
    found = losses()
    least = min(u + np.maximum(found - u, 0).mean() / (1 - level) for u in found)
    assert_allclose(cvar(found, level=level), least, rtol=1e-12)
    assert cvar(found, level=level) >= value_at_risk(found, level=level)
    assert cvar(found, level=level) >= found.mean()


def test_a_sample_with_weight_two_counts_like_two():
    found = losses(50)
    weight = np.random.RandomState(1).randint(0, 4, size=50)
    repeated = np.repeat(found, weight)
    for measure in (cvar, semideviation, value_at_risk):
        assert_allclose(measure(found, sample_weight=weight), measure(repeated), rtol=1e-12)


def test_equal_losses_have_no_risk():
    for measure in (cvar, semideviation, value_at_risk):
        assert_allclose(measure(np.full(7, 3.0)), 3.0)


def test_scorers_are_the_negative_risk_of_the_losses():
    random = np.random.RandomState(0)
    X = random.normal(size=(300, 2))
    y = X[:, 0] + random.exponential(size=300)
    model = Ridge().fit(X, y)
    squared = (model.predict(X) - y) ** 2 / 2
    assert_allclose(risk_scorer("cvar", level=0.8)(model, X, y), -cvar(squared, level=0.8))
    assert_allclose(risk_scorer("semideviation")(model, X, y), -semideviation(squared))
    assert np.isfinite(cross_val_score(Ridge(), X, y, scoring=risk_scorer())).all()
    X, labels = make_moons(200, random_state=0)
    classes = np.array(["no", "yes"])[labels]
    model = LogisticRegression().fit(X, classes)
    logistic = -model.predict_log_proba(X)[np.arange(200), labels]
    assert_allclose(
        risk_scorer("value_at_risk")(model, X, classes), -value_at_risk(logistic), rtol=1e-12
    )


@pytest.mark.parametrize("radius", [np.log(3), 2.0, 1e9])
def test_laws_that_are_far_enough_see_the_largest_loss_alone(radius):
    """Of three losses that is log 3 away."""
    assert kl_robust([0.0, 1.0, 2.0], radius=radius) == 2
    assert kl_robust([0.0, 2.0, 2.0], radius=radius) == 2
    nearly = kl_robust([0.0, 1.0, 2.0], radius=0.999 * np.log(3))
    assert 1.99 < nearly < 2


def test_the_objective_of_laws_that_are_far_enough_is_the_largest_loss():
    random = np.random.RandomState(0)
    X = random.uniform(size=(200, 1))
    y = X[:, 0] + 0.1 * random.normal(size=200)
    model = COLKRegressor("kl", risk_weight=1e9, random_state=0).fit(X, y)
    largest = ((model.predict(X) - y) ** 2).max() / 2
    assert_allclose(model.objective_, largest, rtol=1e-9)


@pytest.mark.parametrize("measure", [entropic, kl_robust, chi_square_robust])
def test_what_has_no_weight_is_no_loss(measure):
    weight = [1, 1, 0]
    assert_allclose(measure([1.0, 2.0, 1e6], sample_weight=weight), measure([1.0, 2.0]))


def test_semivariance_and_moments_are_in_units_of_the_mean_loss():
    found = losses()
    relative = found / found.mean() - 1
    square = found.mean() * (1 + 0.01 * (np.maximum(relative, 0) ** 2).mean())
    assert_allclose(semivariance(found, weight=0.01, clip=None), square, rtol=1e-3)
    powers = found.mean() * (1 + 0.1 * sum((relative**p).mean() for p in (2, 3, 4)))
    assert_allclose(moments(found, clip=None), powers, rtol=1e-12)
    for measure in (semivariance, moments):
        assert_allclose(measure(1000 * found), 1000 * measure(found), rtol=1e-9)
        assert found.mean() < measure(found) < measure(found, clip=None)
    with pytest.raises(ValueError, match="losses must not be negative"):
        semivariance([-1.0, 1.0])
    with pytest.raises(ValueError, match="order must be an integer from 2 to 64"):
        moments(found, order=1)
    with pytest.raises(ValueError, match="clip must be a positive number or None"):
        moments(found, clip=0)


@pytest.mark.parametrize("risk", ["semivariance", "moments"])
def test_the_objective_is_what_the_metric_says(risk):
    random = np.random.RandomState(0)
    X = random.uniform(size=(300, 1))
    y = X[:, 0] + random.exponential(size=300)
    model = COLKRegressor(risk, random_state=0).fit(X, y)
    measure = {"semivariance": semivariance, "moments": moments}[risk]
    assert_allclose(model.objective_, measure((model.predict(X) - y) ** 2 / 2), rtol=1e-9)


def test_a_column_of_targets_is_scored_as_targets():
    random = np.random.RandomState(0)
    X = random.normal(size=(100, 2))
    y = X[:, 0] + random.exponential(size=100)
    model = Ridge().fit(X, y)
    assert risk_scorer()(model, X, y[:, None]) == risk_scorer()(model, X, y)
    with pytest.raises(ValueError, match="y has the shape"):
        risk_scorer()(model, X, np.column_stack([y, y]))
    X, labels = make_moons(100, random_state=0)
    classifier = LogisticRegression().fit(X, labels)
    in_column = risk_scorer()(classifier, X, labels[:, None])
    assert in_column == risk_scorer()(classifier, X, labels)


def test_a_scorer_can_be_sent_to_other_processes():
    scorer = pickle.loads(pickle.dumps(risk_scorer("cvar", level=0.8)))
    assert repr(scorer) == "risk_scorer('cvar', level=0.8)"
    X, y = np.arange(20.0)[:, None], np.arange(20.0) ** 2
    search = GridSearchCV(Ridge(), {"alpha": [1e-3, 1e3]}, scoring=scorer, cv=2).fit(X, y)
    again = pickle.loads(pickle.dumps(search))
    assert again.score(X, y) == search.score(X, y) == scorer(search.best_estimator_, X, y)


def test_what_makes_no_sense_is_refused():
    for level in (0, 1, -0.5, "x", None, True):
        with pytest.raises(ValueError, match="level must be between 0 and 1"):
            cvar(losses(), level=level)
    with pytest.raises(ValueError, match="one number per sample"):
        cvar(np.ones((3, 2)))
    with pytest.raises(ValueError, match="NaN"):
        value_at_risk([1.0, np.nan])
    with pytest.raises(ValueError, match="not negative"):
        semideviation(losses(), weight=-1)
    with pytest.raises(ValueError, match=r"positive sum|non-zero"):
        cvar([1.0, 2.0], sample_weight=[0, 0])
    with pytest.raises(ValueError, match="measure must be one of"):
        risk_scorer("mean")
    with pytest.raises(TypeError, match="weight"):
        risk_scorer("cvar", weight=1)
    X, y = make_moons(50, random_state=0)
    with pytest.raises(ValueError, match="no predict_log_proba"):
        risk_scorer()(LinearSVC().fit(X, y), X, y)
    with pytest.raises(ValueError, match="labels that the classifier has not learned"):
        risk_scorer()(LogisticRegression().fit(X, y), X, y + 1)

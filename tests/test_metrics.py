"""Measures of risk, and scorers that choose by them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import cross_val_score
from sklearn.svm import LinearSVC

from parsimon.metrics import cvar, risk_scorer, semideviation, value_at_risk


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

"""COLK and policy evaluation agree with their NumPy transcriptions; POLK is COLK without risk."""

import colk_reference as colk
import numpy as np
import pytest
import spppot_reference as numpy_kernels
from colk_reference import Risk, falling
from numpy.testing import assert_allclose, assert_array_equal

from parsimon import (
    COLKClassifier,
    COLKRegressor,
    CompositionalLearner,
    PolicyEvaluator,
    POLKClassifier,
    POLKRegressor,
    kernels,
)
from parsimon.datasets import make_multidist, make_regression_outliers
from parsimon.schedules import AdaptiveBudget, PowerLaw

AGREE = {"rtol": 0, "atol": 1e-10}
PROBES = np.linspace(-1, 1, 101)[:, None]

RISKS = {
    "moments 2": Risk("moments", 0.1, 2, clip=1.0),
    "moments 3": Risk("moments", 0.1, 3, clip=1.0),
    "moments 4": Risk("moments", 0.1, 4, clip=1.0),
    "moments 4, tight": Risk("moments", 0.5, 4, clip=0.05),
    "semivariance": Risk("semivariance", 0.1, clip=1.0),
    "semivariance, raw": Risk("semivariance", 0.02),
    "semideviation": Risk("semideviation", 0.5),
    "semideviation, full": Risk("semideviation", 1.0, clip=0.7),
    "cvar": Risk("cvar", 1.0, 0.9),
    "cvar, mixed": Risk("cvar", 0.4, 0.75),
}
LOSSES = {
    "squared(2)": colk.squared(2),
    "squared": colk.squared(1),
    "huber(0.5)": colk.huber(0.5),
}


def outliers(count=1000):
    return make_regression_outliers(count, outliers="one-sided", random_state=1)


def as_settings(risk):
    return {
        "risk": risk.kind,
        "risk_weight": risk.weight,
        "moment_order": int(risk.parameter) if risk.kind == "moments" else 4,
        "level": risk.parameter if risk.kind == "cvar" else 0.5,
        "clip": None if np.isinf(risk.clip) else risk.clip,
    }


def raw(**settings):
    """Return settings with which the core is given everything, and targets as they are."""
    return {
        "epochs": 1,
        "shuffle": False,
        "normalize_y": False,
        "refit": False,
        "parsimony": "auto",
        "regularization": 1e-3,
        "solver": "sgd",
        **settings,
    }


def assert_same(model, expected, trace, *, compressed):
    """Compare last iterate, average, dictionary and the whole trace."""
    iterate = model._model.iterate
    core = kernels_of(model)(PROBES, iterate.dictionary) @ iterate.weights
    assert_allclose(core, expected.z(PROBES, average=False), **AGREE)
    assert_allclose(model.predict(PROBES), expected.z(PROBES)[:, 0], **AGREE)
    assert_array_equal(model.trace_["model_order"], expected.orders)
    assert_array_equal(np.sort(model.dictionary_[:, 0]), np.sort(expected.points[:, 0]))
    for name, column in vars(trace).items():
        assert_allclose(model.trace_[name], column, rtol=1e-9, atol=1e-10, err_msg=name)
    assert len(expected.points) > 10
    # A sample that is alone in the last mini-batch has the one before it beside it, once more.
    assert bool(model.trace_["active"].sum() > len(expected.points) + 1) is compressed


def kernels_of(model):
    return model.expansion_.kernel


# -- (82) and (83) ---------------------------------------------------------------------------------

CASES = [
    *[(risk, "squared(2)", 2) for risk in RISKS],
    *[(risk, "squared(2)", 7) for risk in ("moments 4", "semivariance", "semideviation", "cvar")],
    *[(risk, "huber(0.5)", 3) for risk in ("moments 4", "semivariance", "semideviation", "cvar")],
    *[(risk, "squared", 32) for risk in ("moments 3", "semideviation", "cvar, mixed")],
    *[("moments 4", loss, 11) for loss in LOSSES],
]
in_every_case = pytest.mark.parametrize(
    ("risk", "loss", "batch"), CASES, ids=["-".join(map(str, case)) for case in CASES]
)


@in_every_case
def test_without_compression_it_is_the_transcription(risk, loss, batch):
    X, y = outliers()
    risk, rate, bandwidth = RISKS[risk], 0.02, 0.06
    expected, trace = colk.learn(
        X, y, numpy_kernels.gaussian(bandwidth), LOSSES[loss], risk,
        alpha=lambda t: rate, beta=lambda t: 0.01, batch=batch, regularization=1e-3,
    )  # fmt: skip
    model = COLKRegressor(
        loss=loss, kernel=kernels.Gaussian(bandwidth), learning_rate=rate, tracking_rate=0.01,
        batch_size=batch, **raw(budget=0), **as_settings(risk),
    ).fit(X, y)  # fmt: skip
    assert_same(model, expected, trace, compressed=False)
    if risk.kind == "moments":
        assert sum(trace.clipped) > 10
    if np.isinf(risk.clip) or risk.kind == "cvar":
        assert not model.trace_["clipped"].any()


@in_every_case
def test_compressed_by_komp_it_is_the_transcription(risk, loss, batch):
    X, y = outliers()
    risk, rate, bandwidth = RISKS[risk], 0.01 * batch, 0.3
    budget = 0.005 if loss == "huber(0.5)" else 0.02
    expected, trace = colk.learn(
        X, y, numpy_kernels.laplacian(bandwidth), LOSSES[loss], risk,
        alpha=lambda t: rate, beta=lambda t: 0.05, batch=batch, budget=budget, regularization=1e-3,
    )  # fmt: skip
    model = COLKRegressor(
        loss=loss, kernel=kernels.Laplacian(bandwidth), learning_rate=rate, tracking_rate=0.05,
        batch_size=batch, **raw(budget=budget), **as_settings(risk),
    ).fit(X, y)  # fmt: skip
    assert_same(model, expected, trace, compressed=True)
    assert (model.trace_["compression_error"] <= budget).all()


@pytest.mark.parametrize("batch", [2, 7])
@pytest.mark.parametrize("risk", ["moments 4", "semivariance", "semideviation", "cvar, mixed"])
def test_sample_weights_count_in_every_expectation(risk, batch):
    """Relative to their mean, up to 13 here: more than 1 / beta."""
    X, y = outliers(500)
    weights = np.where(np.arange(500) % 40 == 7, 3000.0, 100.0) * np.random.RandomState(0).rand(500)
    expected, trace = colk.learn(
        X, y, numpy_kernels.gaussian(0.06), LOSSES["squared"], RISKS[risk],
        alpha=lambda t: 1e-4, beta=lambda t: 0.1, batch=batch, weights=weights,
    )  # fmt: skip
    model = COLKRegressor(
        loss="squared", kernel=kernels.Gaussian(0.06), learning_rate=1e-4, tracking_rate=0.1,
        batch_size=batch, **{**raw(budget=0), "regularization": 0.0}, **as_settings(RISKS[risk]),
    ).fit(X, y, sample_weight=weights)  # fmt: skip
    assert_same(model, expected, trace, compressed=False)
    assert weights.max() / weights.mean() > 10


@pytest.mark.parametrize("budget", [0.0, 0.02])
@pytest.mark.parametrize("risk", ["moments 4", "semivariance", "semideviation", "cvar"])
def test_falling_rates(risk, budget):
    X, y = outliers()
    risk = RISKS[risk]
    expected, trace = colk.learn(
        X, y, numpy_kernels.laplacian(0.3), LOSSES["squared(2)"], risk,
        alpha=falling(0.03, 0.9, 20), beta=falling(0.5, 0.7, 5), batch=4, budget=budget,
        regularization=1e-3,
    )  # fmt: skip
    model = COLKRegressor(
        loss="squared(2)", kernel=kernels.Laplacian(0.3), learning_rate=0.03, tracking_rate=0.5,
        schedule=PowerLaw(0.9, 20), tracking_schedule=PowerLaw(0.7, 5), batch_size=4,
        **raw(budget=budget), **as_settings(risk),
    ).fit(X, y)  # fmt: skip
    assert_same(model, expected, trace, compressed=budget > 0)


@pytest.mark.parametrize("risk", ["moments 4", "semideviation", "cvar"])
def test_the_classifier_is_the_transcription_with_the_logistic_loss(risk):
    X, _ = make_regression_outliers(1000, random_state=2)
    y = (np.sin(6 * X[:, 0]) + np.random.RandomState(0).randn(1000) > 0).astype(int)
    risk = RISKS[risk]
    expected, trace = colk.learn(
        X, y, numpy_kernels.laplacian(0.3), colk.logistic, risk,
        alpha=lambda t: 0.5, beta=lambda t: 0.1, batch=8, budget=0.02, regularization=1e-3,
    )  # fmt: skip
    settings = raw(budget=0.02)
    del settings["normalize_y"], settings["refit"]
    model = COLKClassifier(
        kernel=kernels.Laplacian(0.3), learning_rate=0.5, tracking_rate=0.1, batch_size=8,
        **settings, **as_settings(risk),
    ).fit(X, y)  # fmt: skip
    assert_allclose(model.decision_function(PROBES), expected.z(PROBES)[:, 0], **AGREE)
    assert_array_equal(model.trace_["model_order"], expected.orders)
    for name, column in vars(trace).items():
        assert_allclose(model.trace_[name], column, rtol=1e-9, atol=1e-10, err_msg=name)


# -- without risk it is POLK -----------------------------------------------------------------------


def assert_last_bit(model, polk, X):
    assert model._model.to_archive().keys() == polk._model.to_archive().keys()
    for name, value in dict(polk._model.to_archive()).items():
        assert_array_equal(model._model.to_archive()[name], value, err_msg=name)
    assert_array_equal(model.predict(X), polk.predict(X))
    for name in ("weights_", "dictionary_"):
        assert getattr(model, name).tobytes() == getattr(polk, name).tobytes()
    for name, column in polk.trace_.items():
        assert_array_equal(model.trace_[name], column)
    assert_array_equal(model.trace_["mean"], polk.trace_["loss"])
    assert not model.trace_["dispersion"].any()


WITHOUT_RISK = {
    "defaults": {},
    "no refit": {"refit": False},
    "huber": {"loss": "huber(0.5)"},
    "quantile": {"loss": "pinball(0.8)"},
    "paper": {"kernel": kernels.Gaussian(0.06), "learning_rate": 0.02, "budget": 0.002,
              "batch_size": 1, "epochs": 1, "loss": "squared(2)"},
    "held order": {"budget": AdaptiveBudget(20)},
    "falling": {"schedule": "sqrt", "refit": False},
    "last iterate": {"average": False, "refit": False, "parsimony": 0.01},
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:The model order is")
@pytest.mark.parametrize("case", WITHOUT_RISK)
@pytest.mark.parametrize("targets", [1, 2])
def test_the_regressor_without_risk_is_polk_to_the_last_bit(case, targets):
    X, y = outliers(600)
    y = y if targets == 1 else np.column_stack([y, X[:, 0] ** 2])
    settings = {**WITHOUT_RISK[case], "random_state": 3}
    # What belongs to risk has no say, whatever it is.
    model = COLKRegressor(
        None, clip=0.1, risk_weight=7.0, tracking_rate=1.0, solver="sgd", **settings
    )
    polk = POLKRegressor(solver="sgd", **settings)
    weight = np.arange(600) % 3
    for name, extra in (("fit", {}), ("partial_fit", {}), ("fit", {"sample_weight": weight})):
        getattr(model, name)(X, y, **extra)
        getattr(polk, name)(X, y, **extra)
        assert_last_bit(model, polk, PROBES)
    streamed, other = (cls.__class__(**cls.get_params()) for cls in (model, polk))
    for start in range(0, 600, 90):
        streamed.partial_fit(X[start : start + 90], y[start : start + 90])
        other.partial_fit(X[start : start + 90], y[start : start + 90])
        assert_last_bit(streamed, other, PROBES)


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("settings", [{}, {"batch_size": 1, "epochs": 1}, {"budget": 0}])
def test_the_classifier_without_risk_is_logistic_polk_to_the_last_bit(classes, settings):
    X, y = make_multidist(300, random_state=0)
    y = y % classes
    model = COLKClassifier(
        None, solver="sgd", random_state=0, epochs=settings.get("epochs", 2), budget=None
    )
    model.set_params(**settings)
    polk = POLKClassifier("logistic", solver="sgd", random_state=0, epochs=2)
    polk.set_params(**settings)
    for name in ("fit", "partial_fit"):
        getattr(model, name)(X, y)
        getattr(polk, name)(X, y)
        assert_last_bit(model, polk, X)
        assert_array_equal(model.predict_proba(X), polk.predict_proba(X))


# -- an instance of the general problem ------------------------------------------------------------


def as_functions(loss, risk):
    """Return the problem of a risk as the functions that CompositionalLearner asks for."""

    def column(values):
        return values.sum(axis=1, keepdims=True)

    def deviation(f, y, g):
        return column(loss(f, y)[0])[:, 0] - g[0, 0]

    def pull(f, y, g):
        return risk.pull(deviation(f, y, g))[0][:, None]

    return {
        "inner": lambda f, y: column(loss(f, y)[0]),
        "inner_derivative": lambda f, y: loss(f, y)[1][:, None, :],
        "outer_gradient": lambda f, y, g: -pull(f, y, g),
        "direct_gradient": lambda f, y, g: loss(f, y)[1] * (1 + pull(f, y, g)),
        "outer": lambda f, y, g: (
            column(loss(f, y)[0])[:, 0] + risk.weight * risk.dispersion(deviation(f, y, g))[0]
        ),
    }


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("budget", [0.0, 0.02])
@pytest.mark.parametrize("risk", ["moments 4", "semivariance", "semideviation"])
def test_the_regressor_is_an_instance_of_the_general_problem(risk, budget, targets):
    X, y = outliers()
    y = y if targets == 1 else np.column_stack([y, X[:, 0] ** 2])
    same = {
        "kernel": kernels.Laplacian(0.3), "learning_rate": 0.1, "tracking_rate": 0.5,
        "schedule": PowerLaw(0.9, 20), "tracking_schedule": PowerLaw(0.7, 5), "batch_size": 6,
        "budget": budget, "regularization": 1e-3, "random_state": 0, "epochs": 2,
    }  # fmt: skip
    risk = RISKS[risk]
    special = COLKRegressor(
        loss="squared(2)", normalize_y=False, solver="sgd", **as_settings(risk), **same
    ).fit(X, y)  # fmt: skip
    general = CompositionalLearner(
        **as_functions(LOSSES["squared(2)"], risk), n_outputs=targets, **same
    ).fit(X, y)
    exact = {"rtol": 0, "atol": 1e-12}
    assert_array_equal(general.dictionary_, special.dictionary_)
    assert_allclose(general.weights_, special.weights_, **exact)
    assert_allclose(general.predict(PROBES), special.predict(PROBES), **exact)
    for name in ("model_order", "active", "budget", "tracked"):
        assert_allclose(general.trace_[name], special.trace_[name], rtol=1e-12, err_msg=name)
    whole = special.trace_["mean"] + risk.weight * special.trace_["dispersion"]
    assert_allclose(general.trace_["mean"], whole, rtol=1e-9)
    assert_allclose(general.tracked_, special.trace_["tracked"][-1:], rtol=1e-12)


# -- policy evaluation -----------------------------------------------------------------------------


def transitions(count=1000, features=1):
    random = np.random.RandomState(5)
    states = random.uniform(size=(count, features))
    following = np.clip(states + 0.03 + 0.1 * random.randn(count, features), 0.001, 0.999)
    return states, np.sin(6 * states[:, 0]), following, random.uniform(size=count) < 0.1


@pytest.mark.parametrize(
    ("batch", "budget"), [(1, 0.0), (3, 0.0), (16, 0.0), (1, 0.05), (3, 0.03), (16, 0.01)]
)
@pytest.mark.parametrize("method", ["gtd", "td"])
def test_policy_evaluation_is_the_transcription(method, batch, budget):
    states, rewards, following, terminal = transitions()
    V, z, losses = colk.evaluate_policy(
        states, rewards, following, terminal, numpy_kernels.laplacian(0.3),
        gradient=method == "gtd", alpha=0.2, beta=0.3, discount=0.9, batch=batch, budget=budget,
        regularization=1e-3,
    )  # fmt: skip
    settings = {
        "discount": 0.9, "kernel": kernels.Laplacian(0.3), "learning_rate": 0.2,
        "tracking_rate": 0.3, "budget": budget, "batch_size": batch, "regularization": 1e-3,
    }  # fmt: skip
    probes = (PROBES + 1) / 2
    for average in (False, True):
        model = PolicyEvaluator(method, average=average, **settings)
        model.partial_fit(states, rewards, following, terminal)
        assert_allclose(model.predict(probes), V.z(probes, average=average)[:, 0], **AGREE)
    assert_array_equal(model.trace_["model_order"], V.orders)
    assert_allclose(model.trace_["loss"], losses, rtol=1e-9)
    assert model.tracker_order_ == len(z.points)
    assert (len(V.points) < 60) is (budget > 0)
    assert np.ptp(V.z(probes)) > 0.1

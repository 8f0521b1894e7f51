"""Models of every kind to export, and what Python says about them."""

import warnings

import numpy as np
import pytest
from intensity_common import PLANE, cloud
from polk_common import GIVEN, task
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.neighbors import KernelDensity
from sklearn.svm import SVC, SVR, OneClassSVM

import parsimon
from parsimon import kernels
from parsimon._formula import formula_of, unwritten_probabilities

COUNT = 10_000
EVERY_KERNEL = [
    kernels.Gaussian(0.7),
    kernels.Gaussian([0.7, 1.3]),
    kernels.Laplacian(0.9),
    kernels.Matern(0.8, nu=0.5),
    kernels.Matern(0.8, nu=1.5),
    kernels.Matern([0.8, 1.1], nu=2.5),
    kernels.Cauchy(0.7),
    kernels.StudentT(0.7, degrees=3.5),
    kernels.Polynomial(3, gamma=0.2, coef0=0.5),
    kernels.Linear() + kernels.Constant(),
    0.3 * kernels.Linear(),
    0.5 * kernels.Gaussian(0.4) * kernels.Matern(1.0) + kernels.Linear(),
    kernels.SinglePrecision(kernels.Gaussian(0.7)),
]


def samples(count=COUNT):
    return np.random.default_rng(5).normal(size=(count, 2))


def every_estimator():
    """Return one fitted model of each kind, by a name that says which."""
    X, y = task()
    X, y = X[:200], y[:200]
    score = np.column_stack([np.sin(X[:, 0]), X[:, 1]])
    few = {"kernel": kernels.Gaussian(0.7), "random_state": 0}
    names = np.array(["one", 'a "two"?', "dr\u00e9i", "f\\our", "five"])[y]
    polk = parsimon.POLKClassifier
    return {
        "classes": polk(**GIVEN).fit(X, y),
        "two classes": polk(**GIVEN).fit(X, y > 1),
        "text": polk("logistic", random_state=0, epochs=1).fit(X, names),
        "only class": polk("logistic").partial_fit(X, np.repeat("only", len(X))),
        "only class, positive": parsimon.SPPPOTClassifier().partial_fit(X, np.full(len(X), 7)),
        "floats": polk("logistic", random_state=0, epochs=1).fit(X, (y > 1) * 2.0 - 1),
        "regressor": parsimon.POLKRegressor(random_state=0, epochs=1).fit(X, score[:, 0]),
        "two targets": parsimon.POLKRegressor(**{**GIVEN, "learning_rate": 0.3}).fit(X, score),
        "one class": parsimon.POLKOneClass().fit(X),
        "bsgd regressor": parsimon.BSGDRegressor(**few, max_points=10).fit(X, score[:, 0]),
        "bsgd": parsimon.BSGDClassifier(**few, max_points=10).fit(X, y),
        "colk": parsimon.COLKRegressor("cvar", **few, learning_rate=0.1).fit(X, score[:, 0]),
        "colk classes": parsimon.COLKClassifier(**few, learning_rate=0.1).fit(X, y > 1),
        "policy": parsimon.PolicyEvaluator(kernel=few["kernel"]).partial_fit(
            X, y, np.roll(X, 1, axis=0)
        ),
        "actions": parsimon.QLearner(2, random_state=0).fit(
            X[:-1], X[:-1, 0] > 0, score[:-1, 0], X[1:]
        ),
        "slkl": parsimon.SLKLRegressor(**few, n_columns=30).fit(X, score[:, 0]),
        "slkl classes": parsimon.SLKLClassifier(**few, n_columns=30).fit(X, y),
        "spppot": parsimon.SPPPOTClassifier(**GIVEN).fit(X, y),
        "spppot two": parsimon.SPPPOTClassifier(**GIVEN).fit(X, y > 1),
        "expansion": parsimon.KernelExpansion(few["kernel"], X[:20], score[:20]),
        **densities(),
        **compressed(X, y, score),
    }


def compressed(X, y, score):
    """Return what parsimon.compress makes of other packages' models."""
    machines = {
        "votes": SVC(gamma=1.0),
        "votes, pairs": SVC(gamma=1.0, decision_function_shape="ovo"),
        "votes, ties": SVC(gamma=1.0, break_ties=True),
        "machine of two": SVC(gamma=1.0),
        "machine, regressor": SVR(gamma=1.0),
        "ridge": KernelRidge(kernel="rbf", alpha=0.1),
        "machine, one class": OneClassSVM(gamma=1.0, nu=0.3),
        "kernel density": KernelDensity(bandwidth=0.5),
        "votes, calibrated": calibrated(),
        "machine of two, calibrated": calibrated(),
        "process": GaussianProcessRegressor(RBF(1.0), alpha=0.1, optimizer=None),
        "process of two": GaussianProcessClassifier(RBF(1.0), optimizer=None),
    }
    given = {
        "machine of two": y > 1,
        "machine, regressor": score[:, 0],
        "ridge": score,
        "machine, one class": None,
        "kernel density": None,
        "machine of two, calibrated": y > 1,
        "process": score,
        "process of two": y > 1,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn deprecates its calibration
        fitted = {name: model.fit(X, given.get(name, y)) for name, model in machines.items()}
    return {name: parsimon.compress(model, max_points=30)[0] for name, model in fitted.items()}


def calibrated():
    return SVC(gamma=1.0, probability=True, random_state=0)


def densities():
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of one pass not being enough
        for mirror in ("kl", "euclidean", "mahalanobis"):
            model = parsimon.SPPPOTIntensity(**PLANE, mirror=mirror)
            found[f"density {mirror}"] = model.partial_fit(cloud()[:300])
        found["newton"] = parsimon.MirrorNewtonIntensity(**PLANE).partial_fit(cloud()[:300])
        # Samples of every place are in a domain that goes round along both features.
        for name, more in {
            "solved": {},
            "scales": {"scales": 2},
            "periodic": {"periodic": [0]},
            "periodic, both": {"periodic": [0, 1]},
        }.items():
            model = parsimon.SPPPOTIntensity(domain=PLANE["domain"], **more)
            found[f"density {name}"] = model.fit(cloud()[:300])
        found["hybrid"] = parsimon.HybridIntensity(**PLANE, patience=5).partial_fit(cloud()[:300])
    return found


def of_kernel(kernel):
    X = task()[0][:200]
    settings = {**GIVEN, "kernel": kernel, "learning_rate": 0.05}
    return parsimon.POLKRegressor(**settings).fit(X, np.sin(X))


def said(model, X, *, iterates=True):
    """Return what Python says, by the names that exports have for it.

    ``iterates`` is whether the export can repeat steps until something holds.
    """
    if isinstance(model, parsimon.KernelExpansion):
        return {"predictions": model(X)}
    if hasattr(model, "score_samples") and not hasattr(model, "decision_function"):
        return {"log_density": model.score_samples(X)}
    if not hasattr(model, "decision_function"):
        return {"predictions": model.predict(X)}
    found = {"label": model.predict(X), "scores": model.decision_function(X)}
    if hasattr(model, "predict_proba") and not lacks_probabilities(model, iterates):
        found["probabilities"] = model.predict_proba(X)
    return found


def lacks_probabilities(model, iterates):
    """Return whether an export leaves the probabilities of a model out."""
    return unwritten_probabilities(formula_of(model).head, iterates=iterates) is not None


def written(write, model, *, iterates=True, **how):
    """Return what an export writes, which warns of probabilities that it leaves out."""
    if not lacks_probabilities(model, iterates):
        return write(model, **how)
    with pytest.warns(UserWarning, match="and no probabilities: those of"):
        return write(model, **how)


def unit(model, X):
    """Return the largest sum of the absolute values of all terms: rounding is relative to it."""
    formula = formula_of(model)
    terms = np.abs(formula.kernel(formula.scaled(X), formula.dictionary)) @ np.abs(formula.weights)
    return float((terms + np.abs(formula.intercept)).max())


def allowed(model, X, what, rows):
    """Return what rounding is relative to, for each number that Python said.

    Logarithms and probabilities are of the order of 1 already; but the logarithm of a sum f that is
    far below its terms has their rounding over f.
    """
    if isinstance(model, parsimon.compression.CompressedDensity) and what == "log_density":
        return np.maximum(unit(model, X) * np.exp(-rows), 1.0)
    return max(unit(model, X), 1.0)

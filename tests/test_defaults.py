"""The defaults work: close to tuned batch methods on standardised data, without any argument."""

import numpy as np
import pytest
from sklearn import datasets
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from parsimon import POLKClassifier, POLKRegressor

CLASSIFICATION = {
    "digits": lambda: datasets.load_digits(return_X_y=True),
    "wine": lambda: datasets.load_wine(return_X_y=True),
    "breast cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "moons": lambda: datasets.make_moons(1000, noise=0.2, random_state=0),
    "circles": lambda: datasets.make_circles(1000, noise=0.1, factor=0.5, random_state=0),
    # No constant of the rules was tuned on these.
    "three rings": lambda: datasets.make_gaussian_quantiles(
        n_samples=800, n_features=3, n_classes=3, random_state=7
    ),
    "ball": lambda: datasets.make_hastie_10_2(1000, random_state=7),
    "one in ten": lambda: datasets.make_classification(
        1000, 15, n_informative=6, weights=[0.9], random_state=7
    ),
    "noisy labels": lambda: datasets.make_classification(
        600, 8, n_informative=5, flip_y=0.15, random_state=7
    ),
}

REGRESSION = {
    "diabetes": lambda: datasets.load_diabetes(return_X_y=True),
    "friedman1": lambda: datasets.make_friedman1(600, noise=1.0, random_state=0),
    "friedman1 without noise": lambda: datasets.make_friedman1(600, random_state=0),
    # No constant of the rules was tuned on these.
    "friedman3": lambda: datasets.make_friedman3(500, noise=0.1, random_state=7),
    "sparse": lambda: datasets.make_sparse_uncorrelated(500, random_state=7),
}


@pytest.mark.parametrize("name", CLASSIFICATION)
def test_classifier_is_within_two_points_of_svc(name):
    X, y = CLASSIFICATION[name]()
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    ours = cross_val_score(
        make_pipeline(StandardScaler(), POLKClassifier(random_state=0)), X, y, cv=folds
    )
    svc = cross_val_score(make_pipeline(StandardScaler(), SVC()), X, y, cv=folds)
    assert ours.mean() >= svc.mean() - 0.02


@pytest.mark.slow
@pytest.mark.parametrize("name", REGRESSION)
def test_regressor_is_within_a_tenth_of_tuned_kernel_ridge(name):
    X, y = REGRESSION[name]()
    folds = KFold(5, shuffle=True, random_state=0)
    grid = {"alpha": np.logspace(-5, 1, 7), "gamma": np.logspace(-3, 0, 7)}
    score = "neg_root_mean_squared_error"
    errors = {"ours": [], "ridge": []}
    for train, test in folds.split(X):
        scaler = StandardScaler().fit(X[train])
        A, B = scaler.transform(X[train]), scaler.transform(X[test])
        mean = y[train].mean()  # KernelRidge has no intercept
        ridge = GridSearchCV(KernelRidge(kernel="rbf"), grid, scoring=score, cv=3)
        predicted = ridge.fit(A, y[train] - mean).predict(B) + mean
        errors["ridge"].append(np.mean((predicted - y[test]) ** 2))
        ours = POLKRegressor(random_state=0).fit(A, y[train])
        errors["ours"].append(np.mean((ours.predict(B) - y[test]) ** 2))
    assert np.sqrt(np.mean(errors["ours"])) <= 1.1 * np.sqrt(np.mean(errors["ridge"]))

"""The classifiers that comparisons use, each against something that knows the answer."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import check_grad
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from bench.baselines import kernel_machine as losses
from bench.baselines.ivm import ImportVectorMachine
from bench.baselines.kernel_machine import FunctionalGradient, KernelLBFGS, pivoted_cholesky
from bench.baselines.peers import Libsvm, NystroemSGD
from parsimon import kernels
from parsimon.datasets import make_multidist

WIDE, REGULARIZED = kernels.Gaussian(0.8), {"regularization": 1e-2}


@pytest.fixture(name="blobs", scope="module")
def _blobs():
    """Four classes in six dimensions that overlap, far from the origin."""
    X, y = make_blobs(300, 6, centers=4, cluster_std=4.0, random_state=0)
    return X / 5, np.array(list("abcd"))[y]


def scores_and_labels(samples, scale=1.0):
    random = np.random.default_rng(0)
    return scale * random.normal(size=(samples, 5)), random.integers(5, size=samples)


@pytest.mark.parametrize("name", ["hinge", "logistic", "smoothed_hinge"])
def test_slopes_are_those_of_the_losses(name):
    further = (0.2,) if name == "smoothed_hinge" else ()
    scores, y = scores_and_labels(20)

    def loss(flat):
        return getattr(losses, name)(flat.reshape(scores.shape), y, *further)

    def total(flat):
        return loss(flat)[0].sum()

    def slope(flat):
        return loss(flat)[1].ravel()

    assert check_grad(total, slope, scores.ravel()) < 1e-5


def test_smoothed_hinge_is_just_above_the_hinge():
    scores, y = scores_and_labels(200, 3)
    above = losses.smoothed_hinge(scores, y, 0.05)[0] - losses.hinge(scores, y)[0]
    assert above.min() >= -1e-12
    assert above.max() <= 0.05 * np.log(5)


@pytest.mark.parametrize(
    ("make", "settings", "tolerance"),
    [(KernelLBFGS, {}, 2e-3), (ImportVectorMachine, {"max_points": 6, "tolerance": 0.0}, 1e-3)],
)
def test_with_a_linear_kernel_it_is_logistic_regression(blobs, make, settings, tolerance):
    """As many points as the Gram matrix has rank, or there are features, span all functions."""
    X, y = blobs
    model = make(kernels.Linear(), **REGULARIZED, **settings).fit(X, y)
    expected = LogisticRegression(
        C=1 / (1e-2 * len(X)), fit_intercept=False, tol=1e-10, max_iter=10_000
    ).fit(X, y)
    scores = model.decision_function(X)
    assert_allclose(scores, expected.decision_function(X), atol=tolerance)
    assert model.model_order_ == 6
    assert_allclose(model.squared_norm_, ((model.points_.T @ model.weights_) ** 2).sum())


def test_lbfgs_with_a_gaussian_kernel_is_stationary():
    """The representer theorem: w = -l'(f) / (n lambda) on all samples, however it is stored."""
    X, y = make_multidist(150, random_state=0)
    kernel = kernels.Gaussian(0.5)
    model = KernelLBFGS(kernel, **REGULARIZED, tolerance=1e-9)
    scores = model.fit(X, y).decision_function(X)
    _, slopes = losses.logistic(scores, y)
    assert_allclose(kernel(X, X) @ (-slopes / (len(X) * 1e-2)), scores, atol=1e-4)


def test_lbfgs_with_the_hinge_loss_of_two_classes_is_a_support_vector_machine():
    """With f_0 = -f_1 = g, the loss is that of g at twice the margin: an SVM for 2 g."""
    X, y = make_multidist(200, n_classes=2, sd=0.6, random_state=0)
    precise = {"temperature": 1e-3, "max_iterations": 20_000}
    scores = (
        KernelLBFGS(WIDE, loss="hinge", **REGULARIZED, **precise).fit(X, y).decision_function(X)
    )
    assert_allclose(scores.sum(axis=1), 0, atol=1e-4)
    # lambda (|g|^2 + |g|^2) = lambda/2 |2 g|^2; scikit-learn has 1/2 |h|^2 + C sum of losses. The
    # intercept that it adds is kept off by giving each sample its mirror image, and C counts both.
    gram = WIDE(X, X)
    mirrored = np.block([[gram, -gram], [-gram, gram]])
    svm = SVC(C=0.5 / (1e-2 * len(X)), kernel="precomputed", tol=1e-6)
    svm.fit(mirrored, np.r_[y, 1 - y])
    expected = svm.decision_function(mirrored)[: len(X)]
    assert_allclose(scores[:, 1] - scores[:, 0], expected, atol=0.02)


def test_pivoted_cholesky():
    half = np.random.default_rng(0).normal(size=(40, 7))
    gram = half @ half.T
    factor, pivots = pivoted_cholesky(gram.copy())
    assert factor.shape == (40, 7)
    assert_allclose(factor @ factor.T, gram, atol=1e-10)
    assert_allclose(factor[pivots], np.tril(factor[pivots]))


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_functional_gradient_takes_the_steps_it_says(loss):
    X, y = make_multidist(60, random_state=0)
    eta, scores = 2.0, np.zeros((60, 5))
    shrink = 1 - eta * 1e-2 * (2 if loss == "hinge" else 1)
    for iterations in (1, 2, 3):
        _, slopes = losses.LOSSES[loss](scores, y)
        scores = shrink * scores - eta / 60 * WIDE(X, X) @ slopes
        steps = {"learning_rate": eta, "iterations": iterations}
        model = FunctionalGradient(WIDE, loss=loss, **REGULARIZED, **steps).fit(X, y)
        assert_allclose(model.decision_function(X), scores, atol=1e-12)
    assert model.model_order_ == 60


def test_ivm_comes_near_the_batch_solution_with_few_points():
    X, y = make_multidist(600, random_state=0)
    batch, model = (
        kind(kernels.Gaussian(0.6**0.5), regularization=1e-4).fit(X, y)
        for kind in (KernelLBFGS, ImportVectorMachine)
    )
    assert batch.objective_ <= model.objective_ <= 1.05 * batch.objective_
    assert model.model_order_ < 60
    assert (np.diff(model.path_) < 0).all()
    assert (model.predict(X) == batch.predict(X)).mean() > 0.98


def test_ivm_picks_the_point_that_brute_force_picks():
    X, y = make_multidist(50, n_classes=2, sd=0.4, random_state=1)
    first = ImportVectorMachine(WIDE, **REGULARIZED, max_points=1).fit(X, y)
    model, start = ImportVectorMachine(WIDE, **REGULARIZED), np.zeros((1, 2))
    alone = [model._irls(WIDE(X, X), y, [point], start, np.inf)[0] for point in range(50)]
    assert_allclose(first.objective_, min(alone), rtol=1e-6)


def test_ivm_does_not_mind_copies():
    X, y = make_multidist(80, random_state=0)
    X, y = np.tile(X, (3, 1)), np.tile(y, 3)
    model = ImportVectorMachine(WIDE, tolerance=1e-4).fit(X, y)
    assert np.isfinite(model.weights_).all()
    assert len(np.unique(model.points_, axis=0)) == model.model_order_


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_nystroem_with_few_points_comes_near_libsvm(loss):
    X, y = make_multidist(1500, random_state=0)
    model = NystroemSGD(0.6**0.5, 100, loss=loss, random_state=0).fit(X[:1000], y[:1000])
    assert model.model_order_ == 100
    svm, expected = (
        each.fit(X[:1000], y[:1000]) for each in (Libsvm(0.6**0.5), SVC(gamma=1 / 1.2))
    )
    assert (svm.predict(X) == expected.predict(X)).all()
    assert svm.model_order_ == expected.n_support_.sum()
    assert model.score(X[1000:], y[1000:]) > svm.score(X[1000:], y[1000:]) - 0.03

"""The classifiers that comparisons use, each against something that knows the answer."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import check_grad
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from parsimon import kernels
from parsimon.datasets import make_multidist


@pytest.fixture(name="baselines")
def _baselines(bench):
    return lambda name: bench(f"baselines.{name}")


@pytest.fixture(name="blobs", scope="module")
def _blobs():
    """Four classes in six dimensions that overlap, far from the origin."""
    X, y = make_blobs(300, 6, centers=4, cluster_std=4.0, random_state=0)
    return X / 5, np.array(list("abcd"))[y]


def scikit_scores(X, y, regularization):
    """Return the scores of logistic regression without intercept, with the same objective."""
    model = LogisticRegression(
        C=1 / (regularization * len(X)), fit_intercept=False, tol=1e-10, max_iter=10_000
    )
    return model.fit(X, y).decision_function(X)


# -- losses ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["hinge", "logistic", "smoothed_hinge"])
def test_slopes_are_those_of_the_losses(baselines, name):
    losses = baselines("losses")
    further = (0.2,) if name == "smoothed_hinge" else ()
    loss = getattr(losses, name)
    random = np.random.default_rng(0)
    scores, y = random.normal(size=(20, 5)), random.integers(5, size=20)

    def total(flat):
        return loss(flat.reshape(scores.shape), y, *further)[0].sum()

    def slope(flat):
        return loss(flat.reshape(scores.shape), y, *further)[1].ravel()

    assert check_grad(total, slope, scores.ravel()) < 1e-5


def test_smoothed_hinge_is_just_above_the_hinge(baselines):
    losses = baselines("losses")
    random = np.random.default_rng(0)
    scores, y = 3 * random.normal(size=(200, 5)), random.integers(5, size=200)
    above = losses.smoothed_hinge(scores, y, 0.05)[0] - losses.hinge(scores, y)[0]
    assert above.min() >= -1e-12
    assert above.max() <= 0.05 * np.log(5)


def test_hinge_by_hand(baselines):
    losses, slopes = baselines("losses").hinge(
        np.array([[2.0, 0.5, 1.5], [3.0, 0.0, 1.0]]), np.array([0, 0])
    )
    assert_allclose(losses, [0.5, 0])
    assert_allclose(slopes, [[-1, 0, 1], [0, 0, 0]])


# -- batch kernel machines -------------------------------------------------------------------------


def test_lbfgs_with_a_linear_kernel_is_logistic_regression(baselines, blobs):
    X, y = blobs
    model = baselines("kernel_machine").KernelLBFGS(kernels.Linear(), regularization=1e-2)
    scores = model.fit(X, y).decision_function(X)
    assert_allclose(scores, scikit_scores(X, y, 1e-2), atol=2e-3)
    assert model.model_order_ == 6  # the rank of the Gram matrix
    assert_allclose(model.squared_norm_, ((model.points_.T @ model.weights_) ** 2).sum())


def test_lbfgs_with_a_gaussian_kernel_is_stationary(baselines):
    """The representer theorem: w = -l'(f) / (n lambda) on all samples, however it is stored."""
    X, y = make_multidist(150, random_state=0)
    kernel = kernels.Gaussian(0.5)
    model = baselines("kernel_machine").KernelLBFGS(kernel, regularization=1e-2, tolerance=1e-9)
    scores = model.fit(X, y).decision_function(X)
    _, slopes = baselines("losses").logistic(scores, y)
    assert_allclose(kernel(X, X) @ (-slopes / (len(X) * 1e-2)), scores, atol=1e-4)


def test_lbfgs_with_the_hinge_loss_of_two_classes_is_a_support_vector_machine(baselines):
    """With f_0 = -f_1 = g, the loss is that of g at twice the margin: an SVM for 2 g."""
    X, y = make_multidist(200, n_classes=2, sd=0.6, random_state=0)
    kernel, regularization = kernels.Gaussian(0.8), 1e-2
    model = (
        baselines("kernel_machine")
        .KernelLBFGS(
            kernel,
            loss="hinge",
            regularization=regularization,
            temperature=1e-3,
            max_iterations=20_000,
        )
        .fit(X, y)
    )
    scores = model.decision_function(X)
    assert_allclose(scores.sum(axis=1), 0, atol=1e-4)
    # lambda (|g|^2 + |g|^2) = lambda/2 |2 g|^2; scikit-learn has 1/2 |h|^2 + C sum of losses. The
    # intercept that it adds is kept off by giving each sample its mirror image, and C counts both.
    gram = kernel(X, X)
    mirrored = np.block([[gram, -gram], [-gram, gram]])
    svm = SVC(C=0.5 / (regularization * len(X)), kernel="precomputed", tol=1e-6)
    svm.fit(mirrored, np.r_[y, 1 - y])
    expected = svm.decision_function(mirrored)[: len(X)]
    assert_allclose(scores[:, 1] - scores[:, 0], expected, atol=0.02)


def test_pivoted_cholesky(baselines):
    random = np.random.default_rng(0)
    half = random.normal(size=(40, 7))
    gram = half @ half.T
    factor, pivots = baselines("kernel_machine").pivoted_cholesky(gram.copy())
    assert factor.shape == (40, 7)
    assert_allclose(factor @ factor.T, gram, atol=1e-10)
    assert_allclose(factor[pivots], np.tril(factor[pivots]))


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_functional_gradient_takes_the_steps_it_says(baselines, loss):
    X, y = make_multidist(60, random_state=0)
    machine, losses = baselines("kernel_machine"), baselines("losses")
    kernel, eta, regularization = kernels.Gaussian(0.8), 2.0, 1e-2
    shrink = 1 - eta * regularization * (2 if loss == "hinge" else 1)
    scores = np.zeros((60, 5))
    for iterations in (1, 2, 3):
        _, slopes = getattr(losses, loss)(scores, y)
        scores = shrink * scores - eta / 60 * kernel(X, X) @ slopes
        model = machine.FunctionalGradient(
            kernel,
            loss=loss,
            learning_rate=eta,
            regularization=regularization,
            iterations=iterations,
        ).fit(X, y)
        assert_allclose(model.decision_function(X), scores, atol=1e-12)
    assert model.model_order_ == 60


def test_functional_gradient_comes_to_where_lbfgs_is(baselines):
    X, y = make_multidist(100, random_state=0)
    machine, kernel = baselines("kernel_machine"), kernels.Gaussian(0.8)
    batch = machine.KernelLBFGS(kernel, regularization=1e-2).fit(X, y)
    descent = machine.FunctionalGradient(
        kernel, learning_rate=2.0, regularization=1e-2, iterations=3000
    ).fit(X, y)
    assert_allclose(descent.decision_function(X), batch.decision_function(X), atol=1e-3)


# -- import vector machine -------------------------------------------------------------------------


def test_ivm_with_a_linear_kernel_is_logistic_regression(baselines, blobs):
    """As many import points as features span all linear functions."""
    X, y = blobs
    model = (
        baselines("ivm")
        .ImportVectorMachine(kernels.Linear(), regularization=1e-2, max_points=6, tolerance=0.0)
        .fit(X, y)
    )
    assert model.model_order_ == 6
    assert_allclose(model.decision_function(X), scikit_scores(X, y, 1e-2), atol=1e-3)


def test_ivm_comes_near_the_batch_solution_with_few_points(baselines):
    X, y = make_multidist(600, random_state=0)
    kernel = kernels.Gaussian(0.6**0.5)
    batch = baselines("kernel_machine").KernelLBFGS(kernel, regularization=1e-4).fit(X, y)
    model = baselines("ivm").ImportVectorMachine(kernel, regularization=1e-4).fit(X, y)
    assert batch.objective_ <= model.objective_ <= 1.05 * batch.objective_
    assert model.model_order_ < 60
    assert (np.diff(model.path_) < 0).all()
    assert (model.predict(X) == batch.predict(X)).mean() > 0.98


def test_ivm_picks_the_point_that_brute_force_picks(baselines):
    X, y = make_multidist(50, n_classes=2, sd=0.4, random_state=1)
    kernel = kernels.Gaussian(0.8)
    make = baselines("ivm").ImportVectorMachine
    first = make(kernel, regularization=1e-2, max_points=1).fit(X, y)

    model = make(kernel, regularization=1e-2)
    alone = [
        model._irls(kernel(X, X), y, [point], np.zeros((1, 2)), np.inf)[0] for point in range(50)
    ]
    assert_allclose(first.objective_, min(alone), rtol=1e-6)


def test_ivm_does_not_mind_copies(baselines):
    X, y = make_multidist(80, random_state=0)
    X, y = np.tile(X, (3, 1)), np.tile(y, 3)
    model = baselines("ivm").ImportVectorMachine(kernels.Gaussian(0.8), tolerance=1e-4).fit(X, y)
    assert np.isfinite(model.weights_).all()
    assert len(np.unique(model.points_, axis=0)) == model.model_order_


# -- scikit-learn's --------------------------------------------------------------------------------


def test_libsvm_is_scikit_learns(baselines, blobs):
    X, y = blobs
    model = baselines("scikit").Libsvm(2.0, C=3.0).fit(X, y)
    expected = SVC(C=3.0, gamma=1 / 8).fit(X, y)
    assert (model.predict(X) == expected.predict(X)).all()
    assert model.model_order_ == expected.n_support_.sum()


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_nystroem_with_few_points_comes_near_libsvm(baselines, loss):
    X, y = make_multidist(1500, random_state=0)
    model = baselines("scikit").NystroemSGD(0.6**0.5, 100, loss=loss, random_state=0)
    model.fit(X[:1000], y[:1000])
    assert model.model_order_ == 100
    svm = SVC(gamma=1 / 1.2).fit(X[:1000], y[:1000])
    assert model.score(X[1000:], y[1000:]) > svm.score(X[1000:], y[1000:]) - 0.03

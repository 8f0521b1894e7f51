"""How the papers' classifiers are trained and measured, and textures as histograms of textons."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.signal import fftconvolve

from bench import tasks
from bench.baselines.kernel_machine import FunctionalGradient
from bench.papers import classification, textons
from bench.runner import Run


def run(samples, estimator, loss, seed=0, **settings):
    """Return a run of a method on little of multidist."""
    task = tasks.multidist(samples, 0)
    task = replace(task, X_test=task.X_test[:100], y_test=task.y_test[:100])
    method = classification.method("name", estimator, loss, **settings)
    return Run(method, task, seed, {**tasks.offered("multidist"), "risk_on": "test"})


def test_looking_at_a_stream_does_not_change_it():
    watched = run(500, "POLKClassifier", "hinge", 3, parsimony=0.01, epochs=2)
    found, task = classification.train(watched), watched.task
    stream = np.concatenate([block for _, block in classification.blocks(500, 2, 3)])
    assert sorted(stream[:500]) == sorted(stream[500:]) == list(range(500))
    model = watched.make().partial_fit(task.X[stream], task.y[stream], classes=range(5))
    assert found["model_order"] == model.model_order_
    error = 100 * (1 - model.score(task.X_test, task.y_test))
    assert_allclose(found["path"]["error"][-1], error)
    assert found["path"]["samples"][-1] == 1000
    assert_allclose(found["error"], np.mean(found["path"]["error"][-5:]))


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_risk_is_loss_and_norm(loss):
    descent = run(200, FunctionalGradient, loss, iterations=5, regularization=0.3)
    task, kernel = descent.task, descent.offered["kernel"]
    model = descent.make().fit(task.X, task.y)
    scores = kernel(task.X, task.X) @ model.weights_
    own = scores[np.arange(200), task.y]
    if loss == "hinge":
        scores[np.arange(200), task.y] = -np.inf
        losses = np.maximum(0, 1 + scores.max(axis=1) - own)
    else:
        losses = np.log(np.exp(scores).sum(axis=1)) - own
    norm = np.trace(model.weights_.T @ kernel(task.X, task.X) @ model.weights_)
    expected = losses.mean() + 0.3 * norm * (1 if loss == "hinge" else 0.5)
    assert_allclose(classification.risk(model, descent.method, task.X, task.y), expected)


def test_risk_of_parsimons_own_is_that_of_its_expansion():
    polk = run(200, "POLKClassifier", "logistic", regularization=0.1)
    task, model = polk.task, polk.make().fit(polk.task.X, polk.task.y)
    likelihood = -np.log(model.predict_proba(task.X)[np.arange(200), task.y]).mean()
    expected = likelihood + 0.05 * model.expansion_.norm() ** 2
    assert_allclose(classification.risk(model, polk.method, task.X, task.y), expected)


def test_filter_bank():
    bank = textons.filter_bank()
    assert bank.shape == (48, 49, 49)
    assert_allclose(np.abs(bank).sum(axis=(1, 2)), 1)
    assert_allclose(bank[:44].sum(axis=(1, 2)), 0, atol=1e-12)
    assert (bank[44:] > 0).all()
    # Edges are odd, bars and blobs even.
    edges, even = [*range(6), *range(12, 18), *range(24, 30)], [*range(6, 12), *range(36, 48)]
    assert_allclose(bank[edges, ::-1, ::-1], -bank[edges], atol=1e-12)
    assert_allclose(bank[even, ::-1, ::-1], bank[even], atol=1e-12)


def test_responses_are_convolutions():
    image = np.random.default_rng(0).integers(0, 255, size=(70, 60), dtype=np.uint8)
    bank = textons.filter_bank()
    found = textons.responses(image, bank).reshape(70, 60, 48)
    picture = (image - image.mean()) / image.std()
    for index in (0, 20, 40, 47):
        expected = fftconvolve(picture, bank[index], mode="same")
        # away from the edges, which are mirrored
        assert_allclose(found[24:-24, 24:-24, index], expected[24:-24, 24:-24], atol=1e-5)


def test_textons_tell_textures_apart():
    noise = np.random.default_rng(0).integers(0, 50, size=(2, 80, 80))
    stripes = np.tile(np.arange(80) % 8 < 4, (80, 1)) * 150
    images = (np.array([stripes, stripes.T]) + noise).astype(np.uint8)
    maps = textons.texton_maps(images, textons=16, pixels=4000)
    X, y = textons.draw_patches(maps, 200, 0, side=12, textons=16)
    assert X.shape == (200, 16)
    assert_allclose(X.sum(axis=1), 1)
    one, other = X[y == 0].mean(axis=0), X[y == 1].mean(axis=0)
    assert np.abs(one - other).sum() > 1  # 2 would be no texton in common


def test_a_patch_is_counted_by_hand():
    maps = np.arange(2 * 6 * 6, dtype=np.uint16).reshape(2, 6, 6) % 5
    X, y = textons.draw_patches(maps, 10, 1, side=6, textons=5)
    for row, label in zip(X, y, strict=True):
        assert_allclose(row, np.bincount(maps[label].ravel(), minlength=5) / 36)

"""Solved weights against 60 digits, where the Gram matrix has a condition of 1e8 and more."""

import mpmath
import numpy as np
import pytest

from parsimon import _core

mp = mpmath.mp.clone()
mp.dps = 60

WIDTH = 0.3
POINTS = 10
PLACES = np.linspace(-0.1, 1.1, 60)
NEVER = float("inf")


def gram(a, b):
    def value(x, y):
        return mp.exp(-((mp.mpf(float(x)) - mp.mpf(float(y))) ** 2) / (2 * mp.mpf(WIDTH) ** 2))

    return mp.matrix([[value(x, y) for y in b] for x in a])


def condition(points):
    values = mp.eigsy(gram(points, points), eigvals_only=True)
    return float(max(values) / min(values))


def exact_predictions(points, samples, targets, counts, ridge, places):
    """Return f at the places, where f on these points minimises the sum of
    c_i (f(x_i) - y_i)^2 / 2 and of ridge / 2 ||f||^2.
    """
    cross = gram(points, samples)
    weighted = cross.copy()
    for i, count in enumerate(counts):
        for m in range(len(points)):
            weighted[m, i] *= mp.mpf(float(count))
    normal = weighted * cross.T + mp.mpf(ridge) * gram(points, points)
    right = weighted * mp.matrix([mp.mpf(float(y)) for y in targets])
    values = gram(places, points) * mp.lu_solve(normal, right)
    return np.array([float(value) for value in values])


def fixed_model(ridge, half_life=NEVER):
    """Return a model whose dictionary stays what it is: its points weigh about 1, and those that
    come nothing.
    """
    grid = np.linspace(0, 1, POINTS)[:, None]
    model = _core.Polk(
        _core.parse_kernel(f"gaussian({WIDTH})"),
        _core.parse_loss("squared"),
        _core.StepSchedule.constant(1e-12),
        _core.Compression(_core.BudgetSchedule.fixed(0.0), POINTS),
        0.0,
        False,
        _core.NewtonSettings(ridge, 0.0, half_life, False),
        1,
        1,
    )
    model.run(grid, np.ones((POINTS, 1)), np.empty(0), POINTS)
    assert model.model_order == model.coordinates(grid).shape[1] == POINTS
    nothing, something = np.zeros((POINTS, 1)), np.ones((POINTS, 1))
    model.assume(np.zeros((POINTS, POINTS)), nothing, something, 0.0, ridge)
    return model


def data(n=400):
    rng = np.random.default_rng(0)
    samples = rng.uniform(size=(n, 1))
    targets = np.sin(6 * samples) + 2 * samples + 0.1 * rng.normal(size=(n, 1))
    return samples, targets, rng.uniform(0.5, 2, size=n)


def ages(n, half_life):
    return 2.0 ** (-np.arange(n)[::-1] / half_life)


def learn(model, samples, targets, counts, batch_size):
    """Learn all samples, the last hundred at once: then nothing is left pending."""
    model.run(samples[:-100], targets[:-100], counts[:-100], batch_size)
    model.run(samples[-100:], targets[-100:], counts[-100:], 100)


def test_the_gram_matrix_is_as_bad_as_it_is_said_to_be():
    assert 3e7 < condition(np.linspace(0, 1, POINTS)) < 3e8


# In terms of weights the normal equations would have the square of that condition, and no digit
# would be right. As it is, digits are lost to a small ridge alone, which leaves to rounding what
# the kernel hardly sees.
@pytest.mark.parametrize("batch_size", [1, 10, 100])
@pytest.mark.parametrize(
    ("ridge", "half_life", "allowed"),
    [(1.0, NEVER, 1e-12), (1e-3, NEVER, 1e-10), (1e-3, 100.0, 1e-10), (1e-6, NEVER, 1e-8)],
)
def test_solved_weights_are_those_of_60_digits(ridge, half_life, allowed, batch_size):
    model = fixed_model(ridge, half_life)
    samples, targets, counts = data()
    learn(model, samples, targets, counts, batch_size)
    points = np.sort(model.dictionary[:, 0])
    assert points.tolist() == np.linspace(0, 1, POINTS).tolist()
    exact = exact_predictions(
        points, samples[:, 0], targets[:, 0], counts * ages(400, half_life), ridge, PLACES
    )
    assert np.abs(model.predict(PLACES[:, None])[:, 0] - exact).max() < allowed


# What the others saw does not change: as if the points that left had never been there.
@pytest.mark.parametrize("left", [9, 6, 3])
def test_removals_are_exact_for_everything_ever_seen(left):
    ridge = 1e-3
    model = fixed_model(ridge)
    samples, targets, counts = data()
    model.run(samples[:300], targets[:300], counts[:300], 10)
    model.compress(0.0, left)
    points = model.dictionary[:, 0]
    assert len(points) == left
    # The last samples are copies of the points: the cap leaves room, but nothing joins.
    samples[300:, 0] = points[np.arange(100) % left]
    model.run(samples[300:], targets[300:], counts[300:], 100)
    assert sorted(model.dictionary[:, 0]) == sorted(points)
    exact = exact_predictions(points, samples[:, 0], targets[:, 0], counts, ridge, PLACES)
    assert np.abs(model.predict(PLACES[:, None])[:, 0] - exact).max() < 1e-9


# The same in coordinates: samples have the inner products of their projections.
def test_coordinates_are_those_of_60_digits():
    model = fixed_model(1.0)
    samples = data(50)[0]
    phi = model.coordinates(samples)
    points = np.linspace(0, 1, POINTS)
    cross = gram(points, samples[:, 0])
    projected = cross.T * mp.inverse(gram(points, points)) * cross
    expected = np.array(projected.tolist(), dtype=float)
    assert np.abs(phi @ phi.T - expected).max() < 1e-13

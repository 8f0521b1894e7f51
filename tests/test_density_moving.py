"""Streams whose density moves, and those that seem to at first."""

import numpy as np
import pytest

from parsimon import MirrorNewtonIntensity, SPPPOTIntensity

GIVEN = {"domain": (0, 1), "bandwidth": 0.1, "regularization": 1e-4}


def follow(model, means, seed=0):
    """Learn from blocks around these means, each of which is judged before."""
    random = np.random.RandomState(seed)
    for mean in means:
        X = np.clip(mean + 0.05 * random.randn(100, 1), 0, 1)
        if hasattr(model, "t_"):
            model.score(X)
        model.partial_fit(X)
    return model


@pytest.mark.parametrize("cls", [SPPPOTIntensity, MirrorNewtonIntensity])
def test_a_stream_that_leaves_what_is_not_forgotten_is_told_once(cls):
    means = np.linspace(0.2, 0.8, 30)
    with pytest.warns(UserWarning, match=r"less likely .* half_life=.* forgets nothing") as said:
        follow(cls(**GIVEN), means)
    assert len(said) == 1
    follow(cls(**GIVEN, half_life=50), means)  # which says nothing: a warning would be an error


def test_a_stream_that_stays_is_not_said_to_move():
    for seed in range(3):
        model = follow(SPPPOTIntensity(**GIVEN), np.full(60, 0.5), seed)
    random = np.random.RandomState(0)
    model = SPPPOTIntensity(domain=(0, 1))
    for _ in range(40):
        X = random.beta(2, 5, (50, 1))
        model.partial_fit(X).score(X)


def test_the_margin_of_the_first_block_does_not_stay():
    X = np.random.RandomState(0).rand(1300, 1)
    model = SPPPOTIntensity(bandwidth=0.2, regularization=1e-3)
    for start in range(0, len(X), 20):
        model.partial_fit(X[start : start + 20])
        if start == 0:
            low, high = model.domain_[0]
            assert high - low > 1.1
    low, high = model.domain_[0]
    assert -0.03 < low < X.min()
    assert X.max() < high < 1.03
    assert model.n_points_ == len(X)
    assert model.n_rejected_ == 0

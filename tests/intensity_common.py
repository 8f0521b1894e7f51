"""What the tests of the intensity estimators share."""

from functools import cache

import numpy as np

from parsimon import HybridIntensity, MirrorNewtonIntensity, SPPPOTIntensity
from parsimon.datasets import make_poisson_gaussian

INTENSITIES = [SPPPOTIntensity, MirrorNewtonIntensity, HybridIntensity]
# Few nodes that see every point: quick, and the integral comes out right.
# By the steps of the paper.
STEPS = {"solver": "sgd", "epochs": 10, "random_state": 0}
LINE = {"domain": (0, 1), "grid_size": 20, "bandwidth": 0.08, **STEPS}
PLANE = {
    "domain": [(0, 1), (-2, 3)],
    "grid_size": (7, 8),
    "bandwidth": (0.2, 0.9),
    **STEPS,
}
PROBES = np.linspace(0, 1, 257)[:, None]


@cache
def toy(count=960):
    """Return points whose coordinates are multiples of 2^-20: offsets leave them as they are."""
    points = make_poisson_gaussian(2 * count, random_state=0)[:count]
    return np.round(points * 2.0**20) / 2.0**20


@cache
def cloud(count=960):
    """Return points in the domain of PLANE."""
    random = np.random.RandomState(1)
    return np.column_stack([random.beta(2, 4, count), -2 + 5 * random.beta(4, 3, count)])


def mini_batch(model):
    """Return what a stream must be cut into to be learned from in the same way."""
    return 32 if isinstance(model, MirrorNewtonIntensity) else model.batch_size

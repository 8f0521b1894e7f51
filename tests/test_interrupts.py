"""Ctrl-C within a second, also in one call that takes a minute."""

import os

import pytest
from control_c import interrupted

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="signals of POSIX"),
    pytest.mark.slow,
]

PROGRAM = """
    import time, warnings
    import numpy as np
    import parsimon
    from parsimon import POLKClassifier, POLKRegressor, SPPPOTIntensity, kernels
    from parsimon.datasets import make_multidist

    warnings.simplefilter("ignore")
    X, y = make_multidist(20_000, random_state=0)
    few = dict(random_state=0, epochs=1)
    {prepare}
    print("learning", flush=True)
    try:
        patient = True  # see below
        {compute}
    except KeyboardInterrupt:
        print(time.monotonic(), flush=True)
        {after}
        print("usable", flush=True)
"""

# Again and again, so that a quick machine is still at it when the signal comes. In Python 3.11 a
# signal that is seen as a loop jumps back counts for the instruction before the loop: that must be
# inside of the try as well, so a loop is not the first thing in it.
CASES = {
    "predict of two million points": (
        (
            "model = POLKRegressor(kernel=kernels.Gaussian(0.05), learning_rate=1.0, budget=1e-4,"
            " max_points=2000, solver='sgd', **few).fit(X[:4000], y[:4000]);"
            " many = np.tile(X, (100, 1))"
        ),
        "while True: model.predict(many)",
        "assert np.isfinite(model.predict(X[:10])).all()",
    ),
    "komp of 20,000 points": (
        "f = parsimon.KernelExpansion(kernels.Gaussian(0.01), X, np.ones((len(X), 1)))",
        "while True: parsimon.komp(f, 1e-3)",
        "assert f.model_order == len(X)",
    ),
    "one mini-batch of 20,000": (
        (
            "model = POLKClassifier(kernel=kernels.Gaussian(0.02), learning_rate=1.0, budget=1e-3,"
            " batch_size=20_000, solver='sgd', max_points=None, **few);"
            " model.partial_fit(X[:500], y[:500], classes=range(5));"
            " before = model._model.to_archive().to_bytes()"
        ),
        "model.partial_fit(X, y)",
        "assert model._model.to_archive().to_bytes() == before; model.partial_fit(X[:32], y[:32])",
    ),
    "SPPPOT on a 64 x 64 grid": (
        (
            "Z = np.clip(np.random.default_rng(0).normal(0.5, 0.15, (2000, 2)), 0, 1);"
            " model = SPPPOTIntensity(domain=[(0, 1), (0, 1)], grid_size=64, bandwidth=0.03,"
            " random_state=0, epochs=50, solver='sgd')"
        ),
        "while True: model.fit(Z)",
        "pass",
    ),
    "one small mini-batch on 4,096 nodes with a wide kernel": (
        (
            "Z = np.clip(np.random.default_rng(0).normal(0.5, 0.15, (200, 2)), 0, 1);"
            " model = SPPPOTIntensity(domain=[(0, 1), (0, 1)], grid_size=64, bandwidth=0.3,"
            " random_state=0, batch_size=100, solver='sgd')"
        ),
        "while True: model.partial_fit(Z)",
        "pass",
    ),
    "the distance of two expansions": (
        (
            "f, g = (parsimon.KernelExpansion(kernels.Gaussian(0.1), x, np.ones((len(x), 1)))"
            " for x in (X, X + 1e-3))"
        ),
        "while True: f.distance(g)",
        "assert f.model_order == len(X)",
    ),
    "a block of kernel values": (
        "pass",
        "while True: kernels.Gaussian(0.1)(X[:9000], X[:9000])",
        "pass",
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("after", [0.3, 2.0, 5.0])
def test_control_c_ends_within_a_second(name, after):
    prepare, compute, then = CASES[name]
    program = PROGRAM.format(prepare=prepare, compute=compute, after=then)
    assert interrupted(program, after) == "usable"

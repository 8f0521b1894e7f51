"""KernelExpansion.refine: a function approximated by few points that move."""

import numpy as np
import pytest
from control_c import interrupted

from parsimon import KernelExpansion, kernels, komp


def function(kernel, points=150, features=3, outputs=2, seed=0):
    random = np.random.RandomState(seed)
    X = random.randn(points, features)
    return KernelExpansion(kernel, X, random.randn(points, outputs))


KERNELS = [
    kernels.Gaussian(1.5),
    kernels.Gaussian([1.0, 2.0, 3.0]),
    kernels.Matern(1.5, 2.5),
    kernels.Laplacian(2.0),
    kernels.Gaussian(1.0) + kernels.Constant(),
    kernels.Polynomial(3, 0.3, 1.0),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_it_is_nearer_than_komp_and_says_how_near(kernel):
    f = function(kernel)
    g, distance = f.refine(12)
    assert g.model_order == 12
    assert distance == pytest.approx(f.distance(g), rel=1e-9)
    assert distance < f.distance(komp(f, max_points=12)[0])
    x = np.random.RandomState(1).randn(50, 3)
    bound = distance * np.sqrt([kernel(row[None], row[None])[0, 0] for row in x])
    assert (np.linalg.norm(f(x) - g(x), axis=1) <= bound * (1 + 1e-9)).all()


def test_it_finds_the_points_that_a_function_was_made_of():
    # Two points of their own, hidden among many that cancel.
    kernel, random = kernels.Gaussian(1.0), np.random.RandomState(0)
    hidden = KernelExpansion(kernel, [[0.0, 0.0], [1.5, 0.5]], [1.0, -2.0])
    X = random.uniform(-1, 2.5, (100, 2))
    gram = kernel(X, X) + 1e-9 * np.eye(100)
    f = KernelExpansion(kernel, X, np.linalg.solve(gram, hidden(X)))
    g, distance = f.refine(2)
    assert f.distance(komp(f, max_points=2)[0]) > 0.05
    assert distance < 2e-3
    assert g.distance(hidden) < 5e-3


def test_the_gradient_is_that_of_the_squared_distance():
    from parsimon._approximate import _Problem

    f = function(kernels.Matern(1.5, 2.5), points=40)
    problem = _Problem(f._core, komp(f, max_points=7)[0]._core)
    moves = 0.1 * np.random.RandomState(2).randn(21)
    slope = problem(moves)[1]
    for i in range(21):
        step = np.zeros(21)
        step[i] = 1e-6
        difference = (problem(moves + step)[0] - problem(moves - step)[0]) / 2e-6
        assert slope[i] == pytest.approx(difference, abs=1e-7)


def test_what_cannot_be_better_is_left_as_it_is():
    f = function(kernels.Gaussian(1.5), points=10)
    g, distance = f.refine(10)
    assert g.model_order == 10
    assert distance < 1e-6
    nothing = KernelExpansion(kernels.Gaussian(1.0), np.empty((0, 2)), np.empty(0))
    g, distance = nothing.refine(3)
    assert (g.model_order, distance) == (0, 0.0)


def test_one_output_stays_one():
    x = np.linspace(0, 1, 50)[:, None]
    f = KernelExpansion(kernels.Gaussian(0.1), x, np.sin(20 * x[:, 0]))
    g, _ = f.refine(5)
    assert g.weights.shape == (5,)
    assert g(x).shape == (50,)


def test_bad_input_is_refused():
    f = function(kernels.Gaussian(1.0))
    for bad in (0, -1, 2.5, "many", None):
        with pytest.raises(ValueError, match="max_points must be an integer of at least 1"):
            f.refine(bad)
    with pytest.raises(ValueError, match="iterations must be an integer"):
        f.refine(3, iterations=0)
    without = kernels.Function(lambda a, b: (a @ b.T + 1) ** 2)
    with pytest.raises(ValueError, match="without a gradient"):
        function(without).refine(3)


def test_control_c_ends_it_within_a_second():
    program = """
        import time
        import numpy as np
        from parsimon import KernelExpansion, kernels
        random = np.random.RandomState(0)
        f = KernelExpansion(
            kernels.Gaussian(4.0), random.randn(2500, 30), random.randn(2500, 3)
        )
        print("learning", flush=True)
        try:
            patient = True  # a loop must not come first here: see test_interrupts.py
            while True:
                f.refine(60, iterations=1000)
        except KeyboardInterrupt:
            print(time.monotonic(), "interrupted")
    """
    assert interrupted(program, 2) == "interrupted"

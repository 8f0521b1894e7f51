"""Algorithm 3: online quasi-Newton mirror descent on a fixed grid."""

from __future__ import annotations

from typing import Any

from parsimon import _core
from parsimon._checks import check_number
from parsimon._settings import Schedule, core_step
from parsimon.kernels import Kernel

from ._base import IntensityEstimator, Setting

# The step of Newton's method would be 1; twice as much forgets the beginning faster.
_RATE = 2.0
# The damping, in units of the mean of |k_D(x)|^2.
_DAMPING = 0.1
# Samples for which there is one entry in the trace; each of them is a step.
_TRACED = 32


class SecondOrder(IntensityEstimator):
    """An estimator that runs Algorithm 3, in the end at least."""

    damping: float | str

    # Steps of second order need fewer passes, and fit the noise if they have many.
    _effort = (40_000, 20)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("damping", self.damping, positive=True, auto=True)

    def _damping(self, setting: Setting) -> float:
        if not isinstance(self.damping, str):
            return float(self.damping)
        return _DAMPING * setting.curvature.features


def newton_step(given: float | str) -> Schedule:
    """Return the step of the second-order algorithm."""
    return core_step(_RATE if isinstance(given, str) else float(given))


class MirrorNewtonIntensity(SecondOrder):
    """Density and intensity of points from a stream, by online quasi-Newton mirror descent.

    As :class:`SPPPOTIntensity`, on the nodes of the grid alone, with steps that are scaled by the
    inverse of the sum of the gradients' outer products. A sample costs the square of the number of
    nodes. The density is that of an average of the last iterates.

    Parameters
    ----------
    domain : "auto" or array-like of shape (n_features, 2), default="auto"
        Where points can be: a pair (low, high) for each feature. The density is zero elsewhere.
        "auto" takes the range of the data and a tenth more on either side.
    grid_size : int, sequence of int or "auto", default="auto"
        Cells of the grid along each feature. "auto" makes them half as wide as the kernel, or as
        wide if there would be more than 256; beyond 1,024, that many nodes are scattered over the
        domain.
    kernel : parsimon.kernels.Kernel or str, default="rbf"
        A kernel, or the name of one: "rbf", "laplacian", "matern", "cauchy", "student_t".
    bandwidth : float, sequence of float or "silverman", default="silverman"
        Length of a kernel given by name, for all features or for each. The paper's "bandwidth" is
        its square.
    learning_rate : float or "auto", default="auto"
        Step size eta; "auto" is 2.
    damping : float or "auto", default="auto"
        delta, the multiple of the identity that the sum of outer products starts with. "auto"
        takes a tenth of the mean squared length of the gradients' kernel part.
    epochs : int or "auto", default="auto"
        Passes over the data that ``fit`` makes. ``partial_fit`` makes one.
    shuffle : bool, default=True
        Whether ``fit`` shuffles the samples before each epoch.
    n_jobs : int, optional
        Threads to use, -1 for as many as there are processors; by default
        :func:`parsimon.get_num_threads`. The result is the same with any number.
    random_state : int, RandomState instance or None, default=None
        Source of the shuffling.
    verbose : int, default=0
        1 shows a progress bar in ``fit``, 2 in ``partial_fit`` too.

    Attributes
    ----------
    dictionary_ : ndarray of shape (model_order_, n_features_in_)
        The points of the model, which are the nodes of the grid.
    weights_ : ndarray of shape (model_order_, 1)
        Their weights.
    model_order_ : int
        Number of points.
    expansion_ : KernelExpansion
        The function z whose exponential the density is, times a constant.
    domain_, nodes_, integral_, n_points_, n_rejected_, n_features_in_, t_, trace_
        As of :class:`SPPPOTIntensity`; an entry of the trace is for 32 samples.

    References
    ----------
    A. Chakraborty, K. Rajawat, A. Koppel: Sparse representations of positive functions via first
    and second-order pseudo-mirror descent. IEEE Transactions on Signal Processing 70, 2022.

    Examples
    --------
    >>> from parsimon import MirrorNewtonIntensity
    >>> from parsimon.datasets import make_poisson_gaussian
    >>> X = make_poisson_gaussian(2000, random_state=0)
    >>> model = MirrorNewtonIntensity(domain=(0, 1), random_state=0).fit(X)
    >>> abs(model.integral_ - 1) < 0.01
    True
    """

    def __init__(
        self,
        *,
        domain: Any = "auto",
        grid_size: Any = "auto",
        kernel: Kernel | str = "rbf",
        bandwidth: Any = "silverman",
        learning_rate: float | str = "auto",
        damping: float | str = "auto",
        epochs: int | str = "auto",
        shuffle: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.domain = domain
        self.grid_size = grid_size
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.learning_rate = learning_rate
        self.damping = damping
        self.epochs = epochs
        self.shuffle = shuffle
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    _algorithms = ("mirror_newton",)

    def _mini_batch(self) -> int:
        return _TRACED

    def _make_model(self, setting: Setting) -> Any:
        return _core.MirrorNewton(
            setting.kernel.core,
            setting.domain,
            setting.quadrature,
            step=newton_step(self.learning_rate),
            damping=self._damping(setting),
        )

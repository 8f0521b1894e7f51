"""Algorithm 1: sparse positive functions by projected pseudo-mirror descent."""

from __future__ import annotations

from typing import Any

from parsimon.kernels import Kernel
from parsimon.schedules import AdaptiveBudget

from ._base import Setting
from ._settings import FirstOrder


class SPPPOTIntensity(FirstOrder):
    """Density and intensity of points from a stream, positive by construction (SPPPOT).

    The logarithm of the density is a function z in a Hilbert space. Each mini-batch takes a step of
    stochastic mirror descent on the Poisson likelihood, whose integral is a sum over the nodes of
    a grid, and is compressed by kernel orthogonal matching pursuit: points are dropped as long as
    z moves by no more than a budget. The nodes of the grid always stay.

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
        Step size eta. "auto" takes it from the largest eigenvalue of the kernel on the data.
    parsimony : float or "auto", default="auto"
        alpha in the budget alpha * eta; larger values make smaller models.
    budget : float or parsimon.schedules.AdaptiveBudget, optional
        The compression budget itself instead, in Hilbert norm; 0 keeps every point. One that adapts
        holds a number of points, the nodes of the grid included.
    batch_size : int, default=30
        Samples in a mini-batch.
    mirror : {"kl", "euclidean", "mahalanobis"}, default="kl"
        How the density f (relative to the uniform one) and z belong together: f = exp(z), which is
        positive whatever z is; f = z; or f = r z with r half uniform, half a Gaussian with the
        moments of the data. The last two can become negative.
    gradient : {"likelihood", "kernel_embedding", "sign"}, default="likelihood"
        The gradient of the likelihood with respect to z; the paper's pseudo-gradient (26), which
        divides by the density and has no fixed point where there are no data; or the sign of the
        first on the grid.
    method : {"mirror_descent", "dual_averaging"}, default="mirror_descent"
        Whether steps are added to z, or gradients to a sum that the step size multiplies.
    regularization : float or "auto", default="auto"
        Weight of the squared norm of z. "auto" is a tenth over the number of samples in ``fit``
        and zero in ``partial_fit``.
    epochs : int or "auto", default="auto"
        Passes over the data that ``fit`` makes. ``partial_fit`` makes one.
    shuffle : bool, default=True
        Whether ``fit`` shuffles the samples before each epoch.
    average : bool, default=True
        Whether the density comes from an average of the iterates z, weighted towards the latest,
        instead of the last one.
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
        The points of the model.
    weights_ : ndarray of shape (model_order_, 1)
        Their weights.
    model_order_ : int
        Number of points, the nodes of the grid included.
    expansion_ : KernelExpansion
        The function z.
    domain_ : ndarray of shape (n_features_in_, 2)
        Where points can be.
    nodes_ : ndarray of shape (n_nodes, n_features_in_)
        The nodes of the grid.
    integral_ : float
        Integral of the density over the domain, measured on a finer rule than in training. Near 1.
    n_points_ : int
        Points seen; those of repeated epochs count once.
    n_rejected_ : int
        Points that were left out because they were outside the domain.
    n_features_in_ : int
        Number of features.
    t_ : int
        Samples seen, those of earlier epochs included.
    trace_ : dict of ndarray
        One entry a mini-batch: "samples" seen, "model_order", "active" samples, mean "loss" (the
        negative log-likelihood) before the step, "compression_error" and "budget"; and
        "validation_nll" where it was measured, if there are validation data.

    References
    ----------
    A. Chakraborty, K. Rajawat, A. Koppel: Sparse representations of positive functions via first
    and second-order pseudo-mirror descent. IEEE Transactions on Signal Processing 70, 2022.

    Examples
    --------
    >>> from parsimon import SPPPOTIntensity
    >>> from parsimon.datasets import make_poisson_gaussian
    >>> X = make_poisson_gaussian(2000, random_state=0)
    >>> model = SPPPOTIntensity(domain=(0, 1), random_state=0).fit(X)
    >>> abs(model.integral_ - 1) < 0.02
    True
    >>> round(model.expected_count((0.5, 1.0)) / len(X), 1)
    0.5
    >>> model.sample(3, random_state=0).shape
    (3, 1)
    """

    def __init__(
        self,
        *,
        domain: Any = "auto",
        grid_size: Any = "auto",
        kernel: Kernel | str = "rbf",
        bandwidth: Any = "silverman",
        learning_rate: float | str = "auto",
        parsimony: float | str = "auto",
        budget: float | AdaptiveBudget | None = None,
        batch_size: int = 30,
        mirror: str = "kl",
        gradient: str = "likelihood",
        method: str = "mirror_descent",
        regularization: float | str = "auto",
        epochs: int | str = "auto",
        shuffle: bool = True,
        average: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.domain = domain
        self.grid_size = grid_size
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.learning_rate = learning_rate
        self.parsimony = parsimony
        self.budget = budget
        self.batch_size = batch_size
        self.mirror = mirror
        self.gradient = gradient
        self.method = method
        self.regularization = regularization
        self.epochs = epochs
        self.shuffle = shuffle
        self.average = average
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    _algorithms = ("spppot",)

    def _make_model(self, setting: Setting) -> Any:
        return self._first_model(setting)

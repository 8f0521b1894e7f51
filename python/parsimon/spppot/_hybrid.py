"""Algorithm 4: the first-order algorithm until its dictionary is stable, then the second."""

from __future__ import annotations

from typing import Any

from parsimon import _core
from parsimon._checks import check_count, check_number
from parsimon.kernels import Kernel
from parsimon.schedules import AdaptiveBudget

from ._base import Setting
from ._newton import SecondOrder, newton_step
from ._settings import FirstOrder

# Mini-batches for which the model order of a stream must be stable, and after which it counts as
# stable in any case.
_STREAM_PATIENCE = 300
_STREAM_CAP = 3000


class HybridIntensity(FirstOrder, SecondOrder):
    """Density and intensity of points from a stream: first-order steps, then quasi-Newton ones.

    :class:`SPPPOTIntensity` finds the dictionary. When the model order is stable, the dictionary is
    fixed and :class:`MirrorNewtonIntensity`'s steps refine the weights, with an integral on at
    least twice as many nodes as the dictionary has points.

    The model order counts as stable once it has stayed within a band of 2 points or 2 %, whichever
    is more, for `patience` mini-batches in a row, or after `first_phase` mini-batches.

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
        Step size of the first phase.
    newton_learning_rate : float or "auto", default="auto"
        Step size of the second phase; "auto" is 2.
    damping : float or "auto", default="auto"
        delta of the second phase, as of :class:`MirrorNewtonIntensity`.
    parsimony : float or "auto", default="auto"
        alpha in the budget alpha * eta; larger values make smaller models.
    budget : float or parsimon.schedules.AdaptiveBudget, optional
        The compression budget itself instead, in Hilbert norm; 0 keeps every point. One that adapts
        holds a number of points, the nodes of the grid included.
    batch_size : int, default=30
        Samples in a mini-batch of the first phase.
    gradient : {"likelihood", "kernel_embedding", "sign"}, default="likelihood"
        Direction of the first phase, as of :class:`SPPPOTIntensity`.
    regularization : float or "auto", default="auto"
        Weight of the squared norm of z in the first phase.
    patience : int or "auto", default="auto"
        Mini-batches for which the model order must be stable; "auto" is one epoch in ``fit`` and
        300 mini-batches in ``partial_fit``.
    first_phase : int or "auto", default="auto"
        Mini-batches that the first phase has at most; "auto" is half of them in ``fit`` and 3,000
        in ``partial_fit``.
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
    in_second_phase_ : bool
        Whether the dictionary has been fixed.
    dictionary_, weights_, model_order_, expansion_, domain_, nodes_, integral_, n_points_, \
n_rejected_, n_features_in_, t_, trace_
        As of :class:`SPPPOTIntensity`.

    References
    ----------
    A. Chakraborty, K. Rajawat, A. Koppel: Sparse representations of positive functions via first
    and second-order pseudo-mirror descent. IEEE Transactions on Signal Processing 70, 2022.

    Examples
    --------
    >>> from parsimon import HybridIntensity
    >>> from parsimon.datasets import make_poisson_gaussian
    >>> X = make_poisson_gaussian(2000, random_state=0)
    >>> model = HybridIntensity(domain=(0, 1), random_state=0).fit(X)
    >>> model.in_second_phase_, abs(model.integral_ - 1) < 0.01
    (True, True)
    """

    def __init__(
        self,
        *,
        domain: Any = "auto",
        grid_size: Any = "auto",
        kernel: Kernel | str = "rbf",
        bandwidth: Any = "silverman",
        learning_rate: float | str = "auto",
        newton_learning_rate: float | str = "auto",
        damping: float | str = "auto",
        parsimony: float | str = "auto",
        budget: float | AdaptiveBudget | None = None,
        batch_size: int = 30,
        gradient: str = "likelihood",
        regularization: float | str = "auto",
        patience: int | str = "auto",
        first_phase: int | str = "auto",
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
        self.newton_learning_rate = newton_learning_rate
        self.damping = damping
        self.parsimony = parsimony
        self.budget = budget
        self.batch_size = batch_size
        self.gradient = gradient
        self.regularization = regularization
        self.patience = patience
        self.first_phase = first_phase
        self.epochs = epochs
        self.shuffle = shuffle
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    _algorithms = ("hybrid",)

    @property
    def in_second_phase_(self) -> bool:
        """Whether the dictionary has been fixed."""
        return bool(self._state("in_second_phase_").in_second_phase)

    def _kept_nodes(self) -> int:
        # In the second phase nothing is removed any more, and the nodes are others.
        return 0 if self.in_second_phase_ else super()._kept_nodes()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("newton_learning_rate", self.newton_learning_rate, positive=True, auto=True)
        check_count("patience", self.patience, auto=True)
        check_count("first_phase", self.first_phase, auto=True)

    def _make_model(self, setting: Setting) -> Any:
        patience, cap = _STREAM_PATIENCE, _STREAM_CAP
        if not setting.streaming:
            patience = -(-len(setting.X) // self.batch_size)
            cap = max(1, patience * setting.epochs // 2)
        return _core.Hybrid(
            self._first_model(setting),
            step=newton_step(self.newton_learning_rate),
            damping=self._damping(setting),
            patience=patience if isinstance(self.patience, str) else int(self.patience),
            cap=cap if isinstance(self.first_phase, str) else int(self.first_phase),
        )

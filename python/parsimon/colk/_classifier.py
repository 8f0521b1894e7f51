"""The COLK classifier: the logistic loss and its dispersion."""

from __future__ import annotations

from typing import Any

from parsimon import _core, schedules
from parsimon.kernels import Kernel
from parsimon.polk import POLKClassification

from ._risk import RiskAware


class COLKClassifier(RiskAware, POLKClassification):
    """Kernel logistic regression for streams that minimises the loss and its risk (COLK).

    The risks of :class:`COLKRegressor` on the logistic loss: samples that are predicted badly count
    more, so that the worst losses go down, at the price of a larger mean.

    Parameters
    ----------
    risk, risk_weight, moment_order, level, clip, tracking_rate, tracking_schedule, parsimony
        As in :class:`COLKRegressor`. With ``risk=None`` it is ``POLKClassifier("logistic")``.
    kernel, gamma, learning_rate, budget, max_points, schedule, regularization, batch_size, \
epochs, shuffle, average, dtype, n_jobs, random_state, verbose
        As in :class:`POLKClassifier`.

    Attributes
    ----------
    dictionary_, weights_, model_order_, expansion_, classes_, n_features_in_, t_
        As of :class:`POLKClassifier`.
    trace_ : dict of ndarray
        As of :class:`COLKRegressor`.

    References
    ----------
    A. S. Bedi, A. Koppel, K. Rajawat, P. Sanyal: Nonparametric compositional stochastic
    optimization for risk-sensitive kernel learning. IEEE Transactions on Signal Processing 69,
    2021.

    Examples
    --------
    >>> from parsimon import COLKClassifier
    >>> from parsimon.datasets import make_multidist
    >>> X, y = make_multidist(2000, random_state=0)
    >>> model = COLKClassifier(epochs=2, random_state=0).fit(X[:1500], y[:1500])
    >>> model.score(X[1500:], y[1500:]) > 0.8
    True
    """

    def __init__(
        self,
        risk: str | None = "semideviation",
        *,
        risk_weight: float | str = "auto",
        moment_order: int = 4,
        level: float = 0.9,
        clip: float | None = 1.0,
        kernel: Kernel | str = "rbf",
        gamma: float | str = "scale",
        learning_rate: float | str = "auto",
        tracking_rate: float | str = "auto",
        parsimony: float | str = "auto",
        budget: float | schedules.AdaptiveBudget | None = None,
        max_points: int | None = None,
        schedule: schedules.PowerLaw | str = "constant",
        tracking_schedule: schedules.PowerLaw | str = "constant",
        regularization: float | str = "auto",
        batch_size: int = 32,
        epochs: int | str = "auto",
        shuffle: bool = True,
        average: bool = True,
        dtype: str = "float64",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.risk = risk
        self.risk_weight = risk_weight
        self.moment_order = moment_order
        self.level = level
        self.clip = clip
        self.kernel = kernel
        self.gamma = gamma
        self.learning_rate = learning_rate
        self.tracking_rate = tracking_rate
        self.parsimony = parsimony
        self.budget = budget
        self.max_points = max_points
        self.schedule = schedule
        self.tracking_schedule = tracking_schedule
        self.regularization = regularization
        self.batch_size = batch_size
        self.epochs = epochs
        self.shuffle = shuffle
        self.average = average
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _core_loss(self, outputs: int) -> Any:
        return _core.parse_loss("binary_logistic" if outputs == 1 else "multiclass_logistic")

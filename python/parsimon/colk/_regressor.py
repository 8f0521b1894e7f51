"""The COLK regressor: the mean loss and its dispersion."""

from __future__ import annotations

from typing import Any

from parsimon import schedules
from parsimon.kernels import Kernel
from parsimon.polk import POLKRegression

from ._risk import RiskAware


class COLKRegressor(RiskAware, POLKRegression):
    """Kernel regressor for streams that minimises the loss and its risk (COLK).

    The objective is E[l] + w D[l] with a dispersion D of the loss l, or the conditional value at
    risk. The inner expectation E[l] of the dispersion is tracked along the stream, on the second
    half of each mini-batch; steps are compressed as in :class:`POLKRegressor`.

    Risk controls the *tail* of the loss: its spread and upper quantiles go down, at the price of a
    larger mean. It does not make the regressor robust: samples with large losses count more, not
    less. Against outliers use ``POLKRegressor(loss="huber")``.

    Parameters
    ----------
    risk : {"semideviation", "semivariance", "moments", "cvar"} or None, default="semideviation"
        The dispersion: E(l - E l)_+, which keeps the objective convex; E(l - E l)_+^2, smoothed;
        the sum of the central moments of l from the second to `moment_order`; or the conditional
        value at risk at `level`, the mean of the worst losses. None is :class:`POLKRegressor`.
    risk_weight : float or "auto", default="auto"
        w. "auto" is 0.5 for the semideviation (convex up to 1), 0.1 for semivariance and moments,
        and 1 for "cvar", which is mixed with the mean as (1 - w) E[l] + w CVaR.
    moment_order : int, default=4
        The highest moment.
    level : float, default=0.9
        Of "cvar": 0.9 means the worst tenth.
    clip : float or None, default=1.0
        Bound on w times the derivative of the dispersion: with 1, no step goes uphill. Without it
        (None, the paper's raw form) the moments diverge within a few samples. The
        semideviation and "cvar" have bounds of their own.
    loss : str, default="squared"
        "squared" or "huber", as in :class:`POLKRegressor`. The paper's squared loss, without 1/2,
        is "squared(2)".
    tracking_rate : float or "auto", default="auto"
        beta, the weight of the latest mini-batch in the tracked expectation; "auto" is 0.1.
    tracking_schedule : {"constant"} or parsimon.schedules.PowerLaw, default="constant"
        How the tracking rate changes. Falling rates must satisfy the theorem: a `schedule` with a
        power pa between 3/4 and 1, this one between 1/2 and 2 pa - 1.
    parsimony : float or "auto", default="auto"
        C in the budget C * learning_rate**2 (with risk); larger values make smaller models.
    learning_rate : float or "auto", default="auto"
        alpha. With a clip, a rate with which predictions would run away is reduced, with a warning.
    kernel, gamma, budget, max_points, schedule, regularization, batch_size, epochs, shuffle, \
average, normalize_y, refit, dtype, n_jobs, random_state, verbose
        As in :class:`POLKRegressor`; `refit` has an effect without risk only.

    Attributes
    ----------
    dictionary_, weights_, model_order_, expansion_, intercept_, n_features_in_, t_
        As of :class:`POLKRegressor`.
    trace_ : dict of ndarray
        As of :class:`POLKRegressor`, and "tracked" (the inner expectation, or the value at risk),
        "mean" and "dispersion" (the two parts of the objective on the mini-batch) and "clipped"
        (samples at which `clip` acted).

    References
    ----------
    A. S. Bedi, A. Koppel, K. Rajawat, P. Sanyal: Nonparametric compositional stochastic
    optimization for risk-sensitive kernel learning. IEEE Transactions on Signal Processing 69,
    2021.

    Notes
    -----
    A sample with weight 2 counts like two, in the gradient and in every expectation. In the tracked
    ones, weights are relative to their mean over the samples that are given together.

    Examples
    --------
    >>> from parsimon import COLKRegressor
    >>> from parsimon.datasets import make_regression_outliers
    >>> X, y = make_regression_outliers(2000, outliers="one-sided", random_state=0)
    >>> model = COLKRegressor(risk="cvar", level=0.9, random_state=0).fit(X, y)
    >>> model.predict(X[:3]).shape
    (3,)
    """

    def __init__(
        self,
        risk: str | None = "semideviation",
        *,
        risk_weight: float | str = "auto",
        moment_order: int = 4,
        level: float = 0.9,
        clip: float | None = 1.0,
        loss: str = "squared",
        kernel: Kernel | str = "rbf",
        gamma: float | str = "auto",
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
        normalize_y: bool = True,
        refit: bool = True,
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
        self.loss = loss
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
        self.normalize_y = normalize_y
        self.refit = refit
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

"""The BSGD classifier."""

from __future__ import annotations

from typing import Any

from parsimon import schedules
from parsimon.kernels import Kernel
from parsimon.polk import POLKClassifier

from ._common import BudgetMaintenance


class BSGDClassifier(BudgetMaintenance, POLKClassifier):
    """Kernel classifier for streams with a hard cap on the points of its model (BSGD).

    Stochastic gradient descent as in :class:`POLKClassifier`. But where that bounds the error of
    its compression, and the model grows as far as it must, here the number of points is bounded,
    at whatever error, after every mini-batch.

    Parameters
    ----------
    loss : {"hinge", "logistic"}, default="hinge"
        As in :class:`POLKClassifier`.
    kernel, gamma
        As in :class:`POLKClassifier`, but without a constant part.
    max_points : int, default=100
        The largest number of points; with "nonparametric", the first such number.
    maintenance : {"merge", "project", "remove", "nonparametric"}, default="merge"
        What happens when there is one point too many. "merge": the one with the smallest weight and
        its best partner become one point between them (Gaussian kernels only). "project": the point
        that the others explain best goes, and they take over its weight. "remove": the one with the
        smallest weight goes. "nonparametric" (NPBSGD): so it does, but ever more rarely; otherwise
        the number grows by one.
    maintenance_rate : float, default=1000.0
        For "nonparametric": after t samples, a point is removed with probability
        min(1, maintenance_rate / t).
    learning_rate, schedule, regularization, epochs, shuffle, n_jobs, random_state, \
verbose
        As in :class:`POLKClassifier`.
    batch_size : int, default=1
        Samples a step.
    average : bool, default=True
        Whether to predict with an average of the iterates, weighted towards the latest.

    Attributes
    ----------
    dictionary_, weights_, model_order_, expansion_, classes_, n_features_in_, t_, trace_
        As in :class:`POLKClassifier`. ``trace_["compression_error"]`` bounds how far each
        maintenance has moved the function, in Hilbert norm.

    References
    ----------
    Z. Wang, K. Crammer, S. Vucetic: Breaking the curse of kernelization: budgeted stochastic
    gradient descent for large-scale SVM training. Journal of Machine Learning Research 13, 2012.

    T. Le, V. Nguyen, T. D. Nguyen, D. Phung: Nonparametric budgeted stochastic gradient descent.
    AISTATS 2016.

    Examples
    --------
    >>> from parsimon import BSGDClassifier
    >>> from parsimon.datasets import make_multidist
    >>> X, y = make_multidist(2000, random_state=0)
    >>> model = BSGDClassifier(max_points=30, epochs=2, random_state=0).fit(X[:1500], y[:1500])
    >>> model.model_order_
    30
    >>> model.score(X[1500:], y[1500:]) > 0.8
    True
    """

    def __init__(
        self,
        loss: str = "hinge",
        *,
        kernel: Kernel | str = "rbf",
        gamma: float | str = "scale",
        max_points: int = 100,
        maintenance: str = "merge",
        maintenance_rate: float = 1000.0,
        learning_rate: float | str = "auto",
        schedule: schedules.PowerLaw | str = "constant",
        regularization: float | str = "auto",
        batch_size: int = 1,
        epochs: int | str = "auto",
        shuffle: bool = True,
        average: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.max_points = max_points
        self.maintenance = maintenance
        self.maintenance_rate = maintenance_rate
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.regularization = regularization
        self.batch_size = batch_size
        self.epochs = epochs
        self.shuffle = shuffle
        self.average = average
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

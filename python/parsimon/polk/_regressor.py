"""The POLK regressor."""

from __future__ import annotations

from typing import Any

from parsimon import schedules
from parsimon.kernels import Kernel

from ._regression import POLKRegression


class POLKRegressor(POLKRegression):
    """Kernel regressor for streams, with a model that stays small (POLK).

    The same algorithm as :class:`POLKClassifier`, for one or several real targets.

    Parameters
    ----------
    loss : str, default="squared"
        "squared" (or "squared(s)" for s times as much), "huber" (or "huber(c)" with the threshold
        c, 1.35 by default), "epsilon_insensitive" (or "epsilon_insensitive(e)", 0.1 by default),
        "pinball(q)" for the quantile q (0.5 by default).
    kernel : parsimon.kernels.Kernel or str, default="rbf"
        A kernel, or the name of one as in scikit-learn ("rbf", "laplacian", "poly", "linear"...).
    gamma : float, "auto", "scale" or "median", default="auto"
        Width of a kernel given by name. "auto" chooses among multiples of "scale" by the
        leave-one-out error of kernel ridge regression on a part of the data.
    learning_rate, parsimony, budget, max_points, schedule, regularization, batch_size, \
epochs, shuffle, average, dtype, n_jobs, random_state, verbose
        As in :class:`POLKClassifier`.
    normalize_y : bool, default=True
        Whether to subtract the mean of the targets and divide by their standard deviation, both
        taken from the first block seen. Learning rate, budget, the parameters of the loss and the
        trace refer to the normalised targets.
    refit : bool, default=True
        Whether ``fit`` ends with an exact least-squares fit of the weights on the dictionary found
        (squared loss only). ``partial_fit`` never does.

    Attributes
    ----------
    dictionary_, model_order_, n_features_in_, t_, trace_
        As in :class:`POLKClassifier`.
    weights_ : ndarray of shape (model_order_, n_targets)
        The weights, in units of y.
    expansion_ : KernelExpansion
        The learned function: ``predict(X) == expansion_(X) + intercept_``.
    intercept_ : ndarray of shape (n_targets,)
        The mean that was subtracted from the targets, or zeros.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from parsimon import POLKRegressor
    >>> X, y = make_friedman1(1000, random_state=0)
    >>> model = POLKRegressor(random_state=0).fit(X[:800], y[:800])
    >>> model.score(X[800:], y[800:]) > 0.95
    True
    """

    def __init__(
        self,
        loss: str = "squared",
        *,
        kernel: Kernel | str = "rbf",
        gamma: float | str = "auto",
        learning_rate: float | str = "auto",
        parsimony: float | str = "auto",
        budget: float | schedules.AdaptiveBudget | None = None,
        max_points: int | None = None,
        schedule: schedules.PowerLaw | str = "constant",
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
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.learning_rate = learning_rate
        self.parsimony = parsimony
        self.budget = budget
        self.max_points = max_points
        self.schedule = schedule
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

"""The POLK classifier."""

from __future__ import annotations

from typing import Any

from parsimon import _core, schedules
from parsimon.kernels import Kernel

from ._classification import POLKClassification

_LOSSES = {"hinge": "hinge", "logistic": "logistic", "log_loss": "logistic"}


class POLKClassifier(POLKClassification):
    """Kernel classifier for streams, with a model that stays small (POLK).

    After each mini-batch, a step of functional stochastic gradient descent is compressed by kernel
    orthogonal matching pursuit: points are dropped as long as the function moves by no more than a
    budget in Hilbert norm. All classes share one dictionary of points.

    Parameters
    ----------
    loss : {"hinge", "logistic"}, default="hinge"
        The hinge loss makes a support vector machine, the logistic loss gives probabilities.
    kernel : parsimon.kernels.Kernel or str, default="rbf"
        A kernel, or the name of one as in scikit-learn ("rbf", "laplacian", "poly", "linear"...).
    gamma : float, "scale" or "median", default="scale"
        Width of a kernel given by name, as in scikit-learn: 1 / (n_features * X.var()) for
        "scale"; from the median distance between samples for "median".
    learning_rate : float or "auto", default="auto"
        Step size eta. "auto" takes it from the largest eigenvalue of the kernel on the data.
    parsimony : float or "auto", default="auto"
        K in the budget K * eta**1.5; larger values make smaller models. With a learning rate that
        falls, "auto" makes the budget fall like eta**2.
    budget : float or parsimon.schedules.AdaptiveBudget, optional
        The compression budget itself instead, in Hilbert norm; 0 keeps every point.
    max_points : int, optional
        The largest number of points, whatever error that takes.
    schedule : {"constant", "inverse", "sqrt"} or parsimon.schedules.PowerLaw, default="constant"
        How the learning rate changes along the stream.
    regularization : float or "auto", default="auto"
        Weight lambda of the squared norm of the function.
    batch_size : int, default=32
        Samples in a mini-batch.
    epochs : int or "auto", default="auto"
        Passes over the data that ``fit`` makes. ``partial_fit`` makes one.
    shuffle : bool, default=True
        Whether ``fit`` shuffles the samples before each epoch.
    average : bool, default=True
        Whether to predict with an average of the iterates, weighted towards the latest, instead
        of the last one.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the products between samples and the points of the model; "float32" is faster
        on many features. The model itself is always kept in double precision.
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
    weights_ : ndarray of shape (model_order_, n_outputs)
        Their weights: one column for two classes, otherwise one a class.
    model_order_ : int
        Number of points.
    expansion_ : KernelExpansion
        The learned function.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    n_features_in_ : int
        Number of features.
    t_ : int
        Samples seen, those of earlier epochs included.
    trace_ : dict of ndarray
        One entry a mini-batch: "samples" seen, "model_order", "active" samples (with a gradient
        that is not zero), mean "loss" before the step, "compression_error" and "budget".

    References
    ----------
    A. Koppel, G. Warnell, E. Stump, A. Ribeiro: Parsimonious online learning with kernels via
    sparse projections in function space. Journal of Machine Learning Research 20, 2019.

    Examples
    --------
    >>> from parsimon import POLKClassifier
    >>> from parsimon.datasets import make_multidist
    >>> X, y = make_multidist(2000, random_state=0)
    >>> model = POLKClassifier(random_state=0)
    >>> for start in range(0, 1500, 100):
    ...     model = model.partial_fit(X[start:start + 100], y[start:start + 100], classes=range(5))
    >>> model.model_order_ < 200
    True
    >>> model.score(X[1500:], y[1500:]) > 0.8
    True
    """

    def __init__(
        self,
        loss: str = "hinge",
        *,
        kernel: Kernel | str = "rbf",
        gamma: float | str = "scale",
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
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _require_probabilities(self) -> None:
        if self.loss not in ("logistic", "log_loss"):
            raise AttributeError(
                f"predict_proba is available with loss='logistic', not with loss={self.loss!r}."
            )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        _core_loss_name(self.loss, 1)

    def _core_loss(self, outputs: int) -> Any:
        return _core.parse_loss(_core_loss_name(self.loss, outputs))


def _core_loss_name(loss: Any, outputs: int) -> str:
    if not isinstance(loss, str) or loss not in _LOSSES:
        raise ValueError(f"loss must be 'hinge' or 'logistic'; got {loss!r}.")
    return f"{'binary' if outputs == 1 else 'multiclass'}_{_LOSSES[loss]}"

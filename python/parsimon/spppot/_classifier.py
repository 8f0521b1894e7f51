"""The SPPPOT classifier: logistic regression of positive functions."""

from __future__ import annotations

from typing import Any

from parsimon import _core, schedules
from parsimon._base import Training
from parsimon.kernels import Kernel
from parsimon.polk import POLKClassification


class SPPPOTClassifier(POLKClassification):
    """Kernel logistic regression of positive functions, for streams, with a model that stays small.

    As :class:`POLKClassifier` with the logistic loss, but the score of each class is a positive
    function f = exp(z): the probabilities are the softmax of the f, and z takes steps along the
    gradient with respect to f (mirror descent with the KL map). One function a class, one
    dictionary for all.

    Parameters
    ----------
    kernel : parsimon.kernels.Kernel or str, default="rbf"
        A kernel, or the name of one as in scikit-learn ("rbf", "laplacian", "poly", "linear"...).
    gamma : float, "scale" or "median", default="scale"
        Width of a kernel given by name, as in scikit-learn: 1 / (n_features * X.var()) for
        "scale"; from the median distance between samples for "median".
    learning_rate : float or "auto", default="auto"
        Step size eta. "auto" takes it from the largest eigenvalue of the kernel on the data.
    parsimony : float or "auto", default="auto"
        K in the budget K * eta**1.5; larger values make smaller models.
    budget : float or parsimon.schedules.AdaptiveBudget, optional
        The compression budget itself instead, in Hilbert norm; 0 keeps every point.
    max_points : int, optional
        The largest number of points, whatever error that takes.
    schedule : {"constant", "inverse", "sqrt"} or parsimon.schedules.PowerLaw, default="constant"
        How the learning rate changes along the stream.
    regularization : float or "auto", default="auto"
        Weight lambda of the squared norm of z.
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
    dictionary_, weights_, model_order_, expansion_, classes_, n_features_in_, t_, trace_
        As of :class:`POLKClassifier`; the expansion is z, with one output for each class.

    References
    ----------
    A. Chakraborty, K. Rajawat, A. Koppel: Sparse representations of positive functions via first
    and second-order pseudo-mirror descent. IEEE Transactions on Signal Processing 70, 2022.

    Examples
    --------
    >>> from parsimon import SPPPOTClassifier
    >>> from parsimon.datasets import make_multidist
    >>> X, y = make_multidist(2000, random_state=0)
    >>> model = SPPPOTClassifier(random_state=0, epochs=2).fit(X[:1500], y[:1500])
    >>> model.score(X[1500:], y[1500:]) > 0.8
    True
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    def __init__(
        self,
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

    def _core_loss(self, outputs: int) -> Any:  # noqa: ARG002
        return _core.parse_loss("mirror_logistic")

    def _n_outputs(self, training: Training) -> int:
        return training.n_classes

    def _foreign_entries(self, entries: dict[str, Any]) -> list[str]:
        return [] if entries["loss"] == "mirror_logistic" else ["loss"]

"""The POLK classifier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import validate_data

from parsimon import _core, schedules
from parsimon._base import Array, Training
from parsimon.kernels import Kernel

from ._common import POLK

_LOSSES = {"hinge": "hinge", "logistic": "logistic", "log_loss": "logistic"}


class POLKClassifier(ClassifierMixin, POLK):
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
    budget : float, optional
        A fixed compression budget instead; 0 keeps every point.
    max_model_order : int, optional
        A number of points to hold by adapting the budget.
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
        budget: float | None = None,
        max_model_order: int | None = None,
        schedule: schedules.PowerLaw | str = "constant",
        regularization: float | str = "auto",
        batch_size: int = 32,
        epochs: int | str = "auto",
        shuffle: bool = True,
        average: bool = True,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.learning_rate = learning_rate
        self.parsimony = parsimony
        self.budget = budget
        self.max_model_order = max_model_order
        self.schedule = schedule
        self.regularization = regularization
        self.batch_size = batch_size
        self.epochs = epochs
        self.shuffle = shuffle
        self.average = average
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> POLKClassifier:
        """Learn from all samples, forgetting what was learned before.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples, not negative.

        Returns
        -------
        self : POLKClassifier
            The fitted estimator.
        """
        with self._unchanged_on_error():
            self._check_parameters()
            X, labels = self._validate_both(X, y, reset=True)
            classes = _distinct(labels, "y")
            if len(classes) < 2:
                raise ValueError(
                    f"A classifier needs samples of at least 2 classes; y has only one class, "
                    f"{classes[0]!r}."
                )
            training = self._training(X, labels, classes, sample_weight)
            return self._fit(training, {"classes_": classes})

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> POLKClassifier:
        """Learn from one block of a stream, in the order given.

        The first block fixes the settings: hyper-parameters that are changed later have no
        effect before the next ``fit``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : array-like, optional
            All labels that the stream will ever have; needed in the first call.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples, not negative.

        Returns
        -------
        self : POLKClassifier
            The estimator.
        """
        with self._unchanged_on_error():
            self._check_parameters()
            first = not hasattr(self, "_model")
            X, labels = self._validate_both(X, y, reset=first)
            known = self._known_classes(classes, first)
            training = self._training(X, labels, known, sample_weight)
            return self._partial_fit(training, {"classes_": known} if first else {})

    def decision_function(self, X: ArrayLike) -> Array:
        """Return the values of the learned function.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes one value, positive for ``classes_[1]``; otherwise one a class.
        """
        values = self._evaluate(X)
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most likely label of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The labels.
        """
        values = self.decision_function(X)
        chosen = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    def _gives_probabilities(self) -> bool:
        if self.loss in ("logistic", "log_loss"):
            return True
        raise AttributeError(
            f"predict_proba is available with loss='logistic', not with loss={self.loss!r}."
        )

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probability of each class; only with the logistic loss.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        values = self._evaluate(X)
        return np.asarray(self._core_loss(values.shape[1]).probabilities(values))

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Return the logarithm of the probability of each class; only with the logistic loss.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        _core_loss_name(self.loss, 1)

    def _core_loss(self, outputs: int) -> Any:
        return _core.parse_loss(_core_loss_name(self.loss, outputs))

    def _n_outputs(self, training: Training) -> int:
        classes = training.n_classes
        return 1 if classes == 2 else classes

    def _validate_both(
        self, X: ArrayLike, y: ArrayLike, *, reset: bool
    ) -> tuple[Any, NDArray[Any]]:
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, order="C", reset=reset
        )
        return X, np.asarray(y)

    def _known_classes(self, classes: ArrayLike | None, first: bool) -> NDArray[Any]:
        if not first:
            same = classes is None or np.array_equal(self.classes_, _distinct(classes, "classes"))
            if not same:
                raise ValueError(
                    f"classes is {classes!r}, but the first call gave {self.classes_!r}; it "
                    f"cannot change along a stream."
                )
            return np.asarray(self.classes_)
        if classes is None:
            raise ValueError("The first call of partial_fit needs classes, all labels there are.")
        known = _distinct(classes, "classes")
        if len(known) < 2:
            raise ValueError(f"classes must hold at least 2 labels; got {classes!r}.")
        return known

    def _training(
        self,
        X: Any,
        labels: NDArray[Any],
        classes: NDArray[Any],
        sample_weight: ArrayLike | None,
    ) -> Training:
        unseen = np.setdiff1d(_distinct(labels, "y"), classes)
        if len(unseen):
            raise ValueError(
                f"y has the labels {unseen.tolist()}, which are not among the classes "
                f"{classes.tolist()} of the first call."
            )
        targets = np.searchsorted(classes, labels).astype(np.float64)[:, None]
        weight = self._validate_sample_weight(sample_weight, X)
        return Training(X, targets, weight, n_classes=len(classes))

    def _fitted_attributes(self, outputs: int) -> dict[str, Callable[[Any], bool]]:
        count = 2 if outputs == 1 else outputs
        return {
            "classes_": lambda value: (
                value.shape == (count,) and np.array_equal(value, np.unique(value))
            )
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags


def _distinct(labels: ArrayLike, name: str) -> NDArray[Any]:
    """Return the different labels in order, or say why these are not labels."""
    given = np.asarray(labels)
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        raise ValueError(f"{name} must hold labels; it contains NaN or infinity.")
    try:
        if name == "y":
            check_classification_targets(given)
        return np.asarray(unique_labels(labels))
    except TypeError as error:
        raise ValueError(
            f"{name} must hold labels of one type, all numbers or all text: {error}"
        ) from error


def _core_loss_name(loss: Any, outputs: int) -> str:
    if not isinstance(loss, str) or loss not in _LOSSES:
        raise ValueError(f"loss must be 'hinge' or 'logistic'; got {loss!r}.")
    return f"{'binary' if outputs == 1 else 'multiclass'}_{_LOSSES[loss]}"

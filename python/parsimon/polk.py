"""POLK: parsimonious online learning with kernels, for classification and regression."""

from __future__ import annotations

import re
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _auto, _core, schedules
from ._base import Array, StreamEstimator, Training
from .kernels import Kernel


class _POLK(StreamEstimator):
    """What the classifier and the regressor share: settings for the core, chosen or given."""

    learning_rate: float | str
    parsimony: float | str
    budget: float | None
    max_model_order: int | None
    schedule: schedules.PowerLaw | str
    regularization: float | str
    average: bool

    @classmethod
    def _core_model(cls) -> Any:
        return _core.Polk

    @abstractmethod
    def _core_loss(self, outputs: int) -> Any:
        """Return the core's loss for this many outputs."""

    def _check_parameters(self) -> None:
        """Refuse hyper-parameters that make no sense, before any data are looked at."""
        for name in ("learning_rate", "regularization", "parsimony"):
            _check_number(name, getattr(self, name), positive=name == "learning_rate", auto=True)
        if self.budget is not None:
            _check_number("budget", self.budget, positive=False)
        for name in ("batch_size", "epochs", "max_model_order"):
            _check_count(name, getattr(self, name), auto=name == "epochs")
        if self.budget is not None and self.max_model_order is not None:
            raise ValueError(
                "Give a fixed budget or a max_model_order that the budget adapts to, not both."
            )
        schedules.resolve(self.schedule)
        if not isinstance(self.kernel, (Kernel, str)):
            self._resolve_kernel(1.0)

    def _new_model(self, training: Training) -> tuple[Any, int]:
        loss = self._core_loss(self._n_outputs(training))
        recipe = _auto.choose(self, training, loss)
        self._kernel_ = recipe.kernel
        model = _core.Polk(
            recipe.kernel.core,
            loss,
            recipe.step,
            recipe.budget,
            recipe.regularization,
            self.average,
            training.X.shape[1],
            self._n_outputs(training),
        )
        return model, recipe.epochs

    def _refits(self) -> bool:
        """Whether fit ends with an exact fit of the weights."""
        return False

    @abstractmethod
    def _n_outputs(self, training: Training) -> int:
        """Return how many outputs the model has."""


class POLKClassifier(ClassifierMixin, _POLK):
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
        falls, "auto" makes the budget eta**2.
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
            X, labels = self._validate_Xy(X, y, reset=True)
            classes = unique_labels(labels)
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
            X, labels = self._validate_Xy(X, y, reset=first)
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
        if self.loss in _LOGISTIC:
            return True
        raise AttributeError(
            f"predict_proba is available with loss='logistic', not with loss={self.loss!r}."
        )

    @available_if(_gives_probabilities)
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

    @available_if(_gives_probabilities)
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

    def _validate_Xy(self, X: ArrayLike, y: ArrayLike, *, reset: bool) -> tuple[Any, NDArray[Any]]:
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, order="C", reset=reset
        )
        check_classification_targets(y)
        return X, np.asarray(y)

    def _known_classes(self, classes: ArrayLike | None, first: bool) -> NDArray[Any]:
        if not first:
            if classes is not None and not np.array_equal(self.classes_, unique_labels(classes)):
                raise ValueError(
                    f"classes is {classes!r}, but the first call gave {self.classes_!r}; it "
                    f"cannot change along a stream."
                )
            return self.classes_
        if classes is None:
            raise ValueError("The first call of partial_fit needs classes, all labels there are.")
        known = unique_labels(classes)
        if len(known) < 2:
            raise ValueError(f"classes must hold at least 2 labels; got {classes!r}.")
        return np.asarray(known)

    def _training(
        self,
        X: Any,
        labels: NDArray[Any],
        classes: NDArray[Any],
        sample_weight: ArrayLike | None,
    ) -> Training:
        unseen = np.setdiff1d(labels, classes)
        if len(unseen):
            raise ValueError(
                f"y has the labels {unseen.tolist()}, which are not among the classes "
                f"{classes.tolist()} of the first call."
            )
        targets = np.searchsorted(classes, labels).astype(np.float64)[:, None]
        weight = self._validate_sample_weight(sample_weight, X)
        return Training(X, targets, weight, n_classes=len(classes))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags


class POLKRegressor(RegressorMixin, _POLK):
    """Kernel regressor for streams, with a model that stays small (POLK).

    The same algorithm as :class:`POLKClassifier`, for one or several real targets.

    Parameters
    ----------
    loss : str, default="squared"
        "squared", "huber" (or "huber(c)" with the threshold c, 1.35 by default),
        "epsilon_insensitive" (or "epsilon_insensitive(e)", 0.1 by default), "pinball(q)" for the
        quantile q (0.5 by default).
    kernel : parsimon.kernels.Kernel or str, default="rbf"
        A kernel, or the name of one as in scikit-learn ("rbf", "laplacian", "poly", "linear"...).
    gamma : float, "auto", "scale" or "median", default="auto"
        Width of a kernel given by name. "auto" chooses among multiples of "scale" by the
        leave-one-out error of kernel ridge regression on a part of the data.
    learning_rate, parsimony, budget, max_model_order, schedule, regularization, batch_size, \
epochs, shuffle, average, random_state, verbose
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
        budget: float | None = None,
        max_model_order: int | None = None,
        schedule: schedules.PowerLaw | str = "constant",
        regularization: float | str = "auto",
        batch_size: int = 32,
        epochs: int | str = "auto",
        shuffle: bool = True,
        average: bool = True,
        normalize_y: bool = True,
        refit: bool = True,
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
        self.normalize_y = normalize_y
        self.refit = refit
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> POLKRegressor:
        """Learn from all samples, forgetting what was learned before.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples, not negative.

        Returns
        -------
        self : POLKRegressor
            The fitted estimator.
        """
        with self._unchanged_on_error():
            self._check_parameters()
            X, y = self._validate_Xy(X, y, reset=True)
            fitted = self._normalisation(y)
            return self._fit(self._training(X, y, fitted, sample_weight), fitted)

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> POLKRegressor:
        """Learn from one block of a stream, in the order given.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples, not negative.

        Returns
        -------
        self : POLKRegressor
            The estimator.
        """
        with self._unchanged_on_error():
            self._check_parameters()
            first = not hasattr(self, "_model")
            X, y = self._validate_Xy(X, y, reset=first)
            fitted = self._normalisation(y) if first else self._fitted_normalisation(y)
            return self._partial_fit(self._training(X, y, fitted, sample_weight), fitted)

    def predict(self, X: ArrayLike) -> Array:
        """Return the predicted target of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            As the targets in training.
        """
        values = self._evaluate(X) * self._scale_ + self.intercept_
        return values[:, 0] if self._single_ else values

    def _refits(self) -> bool:
        return self.refit and _regression_loss(self.loss) == "squared"

    def _finish_fit(self, model: Any, training: Training) -> None:
        if self._refits():
            X = training.X.toarray() if sparse.issparse(training.X) else training.X
            model.refit(X, training.targets, training.sample_weight)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._core_loss(1)

    def _core_loss(self, outputs: int) -> Any:
        return _core.parse_loss(_regression_loss(self.loss))

    def _n_outputs(self, training: Training) -> int:
        return training.targets.shape[1]

    def _output_scale(self) -> Any:
        return self._scale_

    def _validate_Xy(self, X: ArrayLike, y: ArrayLike, *, reset: bool) -> tuple[Any, Array]:
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=np.float64,
            order="C",
            multi_output=True,
            y_numeric=True,
            reset=reset,
        )
        return X, np.asarray(y, dtype=np.float64)

    def _normalisation(self, y: Array) -> dict[str, Any]:
        rows = y.reshape(len(y), -1)
        intercept = np.zeros(rows.shape[1])
        scale = np.ones(rows.shape[1])
        if self.normalize_y:
            # Dividing by the largest value first keeps targets near the limits of a double finite.
            size = np.maximum(np.abs(rows).max(axis=0), np.finfo(float).tiny)
            intercept = (rows / size).mean(axis=0) * size
            spread = (rows / size - intercept / size).std(axis=0) * size
            scale = np.where(spread > 0, spread, scale)
        return {"intercept_": intercept, "_scale_": scale, "_single_": y.ndim == 1}

    def _fitted_normalisation(self, y: Array) -> dict[str, Any]:
        check_is_fitted(self)
        targets = y.reshape(len(y), -1).shape[1]
        if targets != len(self.intercept_):
            raise ValueError(
                f"y has {targets} targets a sample, but the model has learned "
                f"{len(self.intercept_)}."
            )
        return {"intercept_": self.intercept_, "_scale_": self._scale_, "_single_": self._single_}

    def _training(
        self, X: Any, y: Array, fitted: dict[str, Any], sample_weight: ArrayLike | None
    ) -> Training:
        targets = (y.reshape(len(y), -1) - fitted["intercept_"]) / fitted["_scale_"]
        return Training(X, targets, self._validate_sample_weight(sample_weight, X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


_LOGISTIC = ("logistic", "log_loss")
_CLASSIFICATION = {"hinge": "hinge", "logistic": "logistic", "log_loss": "logistic"}
_REGRESSION = {
    "squared": ("squared", None),
    "squared_error": ("squared", None),
    "huber": ("huber", 1.35),
    "epsilon_insensitive": ("epsilon_insensitive", 0.1),
    "pinball": ("pinball", 0.5),
    "quantile": ("pinball", 0.5),
}


def _core_loss_name(loss: Any, outputs: int) -> str:
    if loss not in _CLASSIFICATION:
        raise ValueError(f"loss must be 'hinge' or 'logistic'; got {loss!r}.")
    return f"{'binary' if outputs == 1 else 'multiclass'}_{_CLASSIFICATION[loss]}"


def _regression_loss(loss: Any) -> str:
    match = re.fullmatch(r"(\w+)(?:\((.+)\))?", loss) if isinstance(loss, str) else None
    if match is None or match[1] not in _REGRESSION:
        raise ValueError(
            f"loss must be 'squared', 'huber', 'epsilon_insensitive' or 'pinball', the last three "
            f"with a parameter in parentheses if wanted; got {loss!r}."
        )
    name, default = _REGRESSION[match[1]]
    if default is None:
        if match[2] is not None:
            raise ValueError(f"The squared loss has no parameter; got {loss!r}.")
        return name
    return f"{name}({match[2] if match[2] is not None else default})"


def _check_number(name: str, value: Any, *, positive: bool, auto: bool = False) -> None:
    if auto and isinstance(value, str) and value == "auto":
        return
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(
        value, bool
    )
    if number and np.isfinite(value) and (value > 0 or (value == 0 and not positive)):
        return
    wanted = "a positive, finite number" if positive else "a finite number, not negative"
    raise ValueError(f"{name} must be {wanted}{' or auto' if auto else ''}; got {value!r}.")


def _check_count(name: str, value: Any, *, auto: bool) -> None:
    if (auto and isinstance(value, str) and value == "auto") or (
        value is None and name == "max_model_order"
    ):
        return
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= 1:
        return
    raise ValueError(
        f"{name} must be an integer of at least 1{' or auto' if auto else ''}; got {value!r}."
    )


def from_core_entries(entries: dict[str, Any], kernel: Kernel) -> tuple[Any, dict[str, Any]]:
    """Return an estimator for a model that a C++ program saved, and its fitted attributes."""
    loss, outputs = entries["loss"], int(entries["outputs"])
    settings = {
        "kernel": kernel,
        "learning_rate": float(entries["step.parameters"][0]),
        "regularization": float(entries["regularization"]),
        "average": bool(entries["average"]),
    }
    fitted: dict[str, Any] = {"n_features_in_": int(entries["features"])}
    if loss.startswith(("binary_", "multiclass_")):
        fitted["classes_"] = np.arange(max(2, outputs))
        return POLKClassifier(loss.split("_", 1)[1], **settings), fitted
    fitted |= {
        "intercept_": np.zeros(outputs),
        "_scale_": np.ones(outputs),
        "_single_": outputs == 1,
    }
    return POLKRegressor(loss, normalize_y=False, **settings), fitted

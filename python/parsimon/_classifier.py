"""What all classifiers for streams share: labels in, labels out."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if

from . import _class_weight, _core, _stream
from ._callbacks import FitTasks
from ._checks import choice
from ._class_weight import check_class_weight, times
from ._docs import OF_CLASSIFIERS, documented
from ._drift import check_half_life
from ._first_samples import Start
from ._formula import Classes, Head
from ._labels import Labels
from ._model import DRIFT, LEARNING_RATE, REGULARIZATION, Array, ModelEstimator
from ._parameters import WORDS
from ._sklearn import CallbackSupportMixin, ClassifierMixin, with_callbacks
from ._stream import NOTHING, Samples, checked_weight
from ._types import ClassWeight

if TYPE_CHECKING:
    from typing_extensions import Self


# What the core calls the losses.
_LOSSES = {
    "hinge": "hinge",
    "squared_hinge": "squared_hinge",
    "logistic": "logistic",
    "log_loss": "logistic",
}


# Kinds of collections that compare by themselves; of all others, such as a Series, an array does.
_BUILT_IN = (type(None), list, tuple, range, set, frozenset)


def _copied(classes: Any) -> Any:
    """Return classes that stay as they are whatever the caller does to those that were given."""
    if type(classes) in _BUILT_IN:
        return copy.copy(classes)
    heard = np.array(classes)
    return heard if heard.ndim == 1 else None


def _gives_probabilities(estimator: Classifier) -> bool:
    if _LOSSES.get(estimator.loss) == "logistic":
        return True
    raise AttributeError(
        f"predict_proba is available with loss='logistic', not with loss={estimator.loss!r}: use "
        f"loss='logistic'."
    )


@documented(OF_CLASSIFIERS)
class Classifier(ClassifierMixin, ModelEstimator, CallbackSupportMixin):
    """A classifier that learns from a stream; what it minimises is the subclass's to say."""

    class_weight: ClassWeight
    classes_: NDArray[Any]
    _counts_: Array  # how many samples of each class there were, if it matters

    _words = {
        **WORDS,
        "loss": choice(*_LOSSES),
        "class_weight": check_class_weight,
        "half_life": check_half_life,
    }
    # A subclass may make it a hyper-parameter.
    loss = "logistic"
    learning_rate_ = LEARNING_RATE
    regularization_ = REGULARIZATION
    drift_ = DRIFT

    # A subclass may have an exact fit at the end.
    _refits: bool = False

    def _core_loss(self, outputs: int) -> Any:
        """Return the core's loss for this many outputs."""
        kind = "binary" if outputs == 1 else "multiclass"
        return _core.parse_loss(f"{kind}_{_LOSSES[self.loss]}")

    def _n_outputs(self, samples: Samples) -> int:
        return 1 if samples.n_classes <= 2 else samples.n_classes

    @with_callbacks
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from all samples, forgetting what was learned before.

        {X, y, sample_weight -> self}
        """
        with self._unchanged_on_error():
            self._check_parameters()
            tasks = FitTasks(self, X, y, sample_weight)
            X, y = self._validate(X, y, reset=True)
            labels, weight = Labels.found_in(y), checked_weight(sample_weight, X)
            targets, classes = labels.encode(y), labels.classes
            by_class, counts = _class_weight.of_all(self.class_weight, classes, targets)
            samples = Samples(X, targets, times(weight, by_class), n_classes=len(classes))
            _stream.fit(self, samples, {**labels.fitted(), "_counts_": counts}, tasks)
            tasks.end()
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from one block of a stream, in the order given.

        The first 100 samples fix the settings: hyper-parameters that are changed later have no
        effect before the next ``fit``. Until then they are kept, and the model begins anew with all
        of them whenever there are half as many again. A label that was never seen adds a class,
        whenever it comes. If learning ends half way, its finished mini-batches stay.

        {X, y, classes, sample_weight -> self}
        """
        heard = classes is None or self._has_heard(classes)
        if heard and sample_weight is None and self._is_familiar(X, y):
            targets = Labels(self.classes_).encode_known(y)
            if targets is not None:
                weight, fitted = (
                    (NOTHING, {})
                    if self.class_weight is None
                    else self._weigh_classes(targets, self.classes_, self._counts_)
                )
                _stream.partial_fit(self, Samples(X, targets, weight), fitted)
                return self
        with self._unchanged_on_error():
            self._check_parameters_if_changed()
            known = self.classes_ if "_model" in self.__dict__ else None
            X, y = self._validate(X, y, reset=known is None)
            labels = Labels.of_stream(known, classes, y)
            self._learn_first(X, y, checked_weight(sample_weight, X), labels, known)
            self._heard = _copied(classes)
        return self

    def _samples_again(self, X: ArrayLike, y: ArrayLike, sample_weight: Any) -> Samples:
        """Return samples of the classes that the model knows, weighed as in `fit`."""
        X, y = self._validate(X, y, reset=False)
        unknown = [
            label
            for label in Labels.of_stream(None, None, y).classes.tolist()
            if label not in self.classes_.tolist()
        ]
        if unknown:
            raise ValueError(
                f"y has the labels {unknown}, but the model knows {self.classes_.tolist()}: learn "
                f"them first, with partial_fit."
            )
        targets = Labels(self.classes_).encode(y)
        by_class = _class_weight.of_stream(self.class_weight, self.classes_, targets, NOTHING)[0]
        weight = times(checked_weight(sample_weight, X), by_class)
        return Samples(X, targets, weight, n_classes=len(self.classes_))

    def _learn_first(
        self, X: Any, y: Any, weight: Array, labels: Labels, known: NDArray[Any] | None
    ) -> None:
        """Learn from a block of a stream that has something new about it."""
        grows = known is None or len(labels.classes) > len(known)
        start = Start.of(self, X, y, weight, anew=grows)
        X, y, weight = start.columns
        targets, counts, model = labels.encode(y), NOTHING, None
        if not start.begins:
            counts = self.__dict__.get("_counts_", NOTHING)
            if grows:
                model, counts = self._with_classes(labels, known, counts)
        by_class, fitted = self._weigh_classes(targets, labels.classes, counts)
        samples = Samples(X, targets, times(weight, by_class), n_classes=len(labels.classes))
        fitted |= {**labels.fitted(), "_first_": start.kept}
        if start.begins:
            _stream.begin(self, samples, fitted)
        else:
            _stream.partial_fit(self, samples, fitted, model)

    def _with_classes(self, labels: Labels, known: Any, counts: Array) -> tuple[Any, Array]:
        """Return a model that has outputs for these labels, too, and what it has seen of each."""
        # A copy: whoever predicts meanwhile finds a model that has the classes of before.
        model, places = self._model.copy(), labels.places(known)
        classes = len(labels.classes)
        outputs = self._n_outputs(Samples(NOTHING, n_classes=classes))
        model.add_classes(places, classes, self._core_loss(outputs))
        if len(counts):
            earlier, counts = counts, np.zeros(classes)
            counts[places] = earlier
        return model, counts

    def _weigh_classes(
        self, targets: Array, classes: NDArray[Any], counts: Array
    ) -> tuple[Array, dict[str, Any]]:
        weight, counts = _class_weight.of_stream(self.class_weight, classes, targets, counts)
        return weight, {"_counts_": counts}

    def _after(self, fitted: dict[str, Any], samples: Samples, taken: int) -> dict[str, Any]:
        counts = fitted.get("_counts_", NOTHING)
        if len(counts):
            left = samples.targets[taken:, 0].astype(int)
            fitted = {**fitted, "_counts_": counts - np.bincount(left, minlength=len(counts))}
        return fitted

    def _has_heard(self, classes: Any) -> bool:
        """Tell whether these are the classes that the call before was given."""
        heard: Any = self.__dict__.get("_heard")
        if type(classes) in _BUILT_IN:
            return type(classes) is type(heard) and bool(classes == heard)
        return type(heard) is np.ndarray and np.array_equal(np.asarray(classes), heard)

    def decision_function(self, X: ArrayLike) -> Array:
        """Return the values of the learned function.

        {X -> values}
        """
        values = self._evaluate(X)
        return Labels(self.classes_).scores(values)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most likely label of each sample.

        {X -> labels}
        """
        scores = self.decision_function(X)
        return Labels(self.classes_).decode(scores)

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probability of each class; only with the logistic loss.

        {X -> probabilities}
        """
        values = self._evaluate(X)
        if len(self.classes_) == 1:
            return np.ones((len(values), 1))
        return np.asarray(self._core_loss(values.shape[1]).probabilities(values))

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Return the logarithm of the probability of each class; only with the logistic loss.

        {X -> log_probabilities}
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def _head(self) -> Head:
        outputs = self._model.expansion.weights.shape[1]
        loss = self._core_loss(outputs).describe() if hasattr(self, "predict_proba") else None
        return Classes(self.classes_, loss)

    def _stored(self, outputs: int) -> dict[str, Callable[[Any], bool]]:
        return Labels.stored(outputs)

    def _check_stored(self, fitted: dict[str, Any], archive: _core.Archive) -> None:
        counts = fitted.pop("_counts_", NOTHING)
        super()._check_stored(fitted, archive)
        if len(counts) and (counts.shape != fitted["classes_"].shape or not (counts >= 0).all()):
            raise ValueError(f"The model file counts {counts.tolist()} samples of its classes.")
        fitted["_counts_"] = counts

    def _foreign_entries(self, archive: _core.Archive) -> list[str]:
        wrong = super()._foreign_entries(archive)
        classifies = _core.parse_loss(archive["loss"]).is_classification
        return wrong if classifies else [*wrong, "loss"]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags

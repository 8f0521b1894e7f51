"""What all classifiers for streams share: labels in, labels out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from . import _core, _stream
from ._checks import choice
from ._docs import OF_CLASSIFIERS, documented
from ._labels import Labels
from ._model import LEARNING_RATE, REGULARIZATION, Array, ModelEstimator
from ._parameters import WORDS
from ._stream import Samples, checked_weight

if TYPE_CHECKING:
    from typing_extensions import Self


# What the core calls the losses.
_LOSSES = {
    "hinge": "hinge",
    "squared_hinge": "squared_hinge",
    "logistic": "logistic",
    "log_loss": "logistic",
}


def _gives_probabilities(estimator: Classifier) -> bool:
    if _LOSSES.get(estimator.loss) == "logistic":
        return True
    raise AttributeError(
        f"predict_proba is available with loss='logistic', not with loss={estimator.loss!r}."
    )


@documented(OF_CLASSIFIERS)
class Classifier(ClassifierMixin, ModelEstimator):
    """A classifier that learns from a stream; what it minimises is the subclass's to say."""

    classes_: NDArray[Any]

    _words = {**WORDS, "loss": choice(*_LOSSES)}
    # A subclass may make it a hyper-parameter.
    loss = "logistic"
    learning_rate_ = LEARNING_RATE
    regularization_ = REGULARIZATION

    # A subclass may have an exact fit at the end.
    _refits: bool = False

    def _core_loss(self, outputs: int) -> Any:
        """Return the core's loss for this many outputs."""
        kind = "binary" if outputs == 1 else "multiclass"
        return _core.parse_loss(f"{kind}_{_LOSSES[self.loss]}")

    def _n_outputs(self, samples: Samples) -> int:
        return 1 if samples.n_classes == 2 else samples.n_classes

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from all samples, forgetting what was learned before.

        {X, y, sample_weight -> self}
        """
        with self._unchanged_on_error():
            self._check_parameters()
            X, y = self._validate(X, y, reset=True)
            labels = Labels.found_in(y)
            _stream.fit(self, self._samples(X, y, labels, sample_weight), labels.fitted())
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from one block of a stream, in the order given.

        The first block fixes the settings: hyper-parameters that are changed later have no
        effect before the next ``fit``. If learning ends half way, its finished mini-batches stay.

        {X, y, classes, sample_weight -> self}
        """
        if classes is None and sample_weight is None and self._is_familiar(X, y):
            targets = Labels(self.classes_).encode_integers(y)
            if targets is not None:
                _stream.partial_fit(self, Samples(X, targets), {})
                return self
        with self._unchanged_on_error():
            self._check_parameters_if_changed()
            first = "_model" not in self.__dict__
            X, y = self._validate(X, y, reset=first)
            labels = Labels.of_stream(classes, None if first else self.classes_)
            fitted = labels.fitted() if first else {}
            _stream.partial_fit(self, self._samples(X, y, labels, sample_weight), fitted)
        return self

    def _samples(self, X: Any, y: Any, labels: Labels, sample_weight: ArrayLike | None) -> Samples:
        weight = checked_weight(sample_weight, X)
        return Samples(X, labels.encode(y), weight, n_classes=len(labels.classes))

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
        return np.asarray(self._core_loss(values.shape[1]).probabilities(values))

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Return the logarithm of the probability of each class; only with the logistic loss.

        {X -> log_probabilities}
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def _stored(self, outputs: int) -> dict[str, Callable[[Any], bool]]:
        return Labels.stored(outputs)

    def _foreign_entries(self, archive: _core.Archive) -> list[str]:
        wrong = super()._foreign_entries(archive)
        classifies = _core.parse_loss(archive["loss"]).is_classification
        return wrong if classifies else [*wrong, "loss"]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags

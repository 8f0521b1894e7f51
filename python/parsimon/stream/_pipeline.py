"""An estimator for streams of mixed columns: scaling, encoding and model in one object."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from parsimon import _io
from parsimon._checks import check_count, check_flag
from parsimon._docs import documented
from parsimon._model import ModelEstimator
from parsimon._site import linked
from parsimon._sklearn import BaseEstimator

from ._blocks import as_block
from ._encoding_file import read_encoding, write_encoding
from ._first import FirstSamples, read_first, write_first
from ._scaler import StreamingScaler

if TYPE_CHECKING:
    from typing_extensions import Self

_ENTRIES = """
X : array, sparse matrix, frame of pandas, polars or pyarrow, or dict of columns
    The samples. A dict of single values is one sample.
y : array-like of shape (n_samples,) or None
    Their targets; None for an estimator that learns without.
sample_weight : array-like of shape (n_samples,), optional
    How much samples count, for an estimator that knows weights. Columns are scaled by all alike.
classes : array-like, optional
    All labels of the stream, if the estimator needs to know them in the first call.
encoded : ndarray of shape (n_samples, n_outputs) or sparse matrix
    Columns of numbers first, then the places of each column of text.
predictions : ndarray of shape (n_samples,)
    Labels or numbers.
probabilities : ndarray of shape (n_samples, n_classes)
    In the order of ``classes_``.
values : ndarray of shape (n_samples,) or (n_samples, n_classes)
    As those of the estimator.
scores : ndarray of shape (n_samples,)
    As those of the estimator.
distances : ndarray of shape (n_samples,)
    As those of the estimator.
options : dict
    What the estimator's ``predict`` takes besides, such as ``return_std=True``.
score : float
    The accuracy of a classifier, R^2 of a regressor.
"""
# While the first samples are kept, the estimator begins anew when there are so many times as many.
_GROWTH = 1.5


def _estimator_has(name: str) -> Callable[[Any], bool]:
    def check(pipeline: Any) -> bool:
        getattr(getattr(pipeline, "estimator_", pipeline.estimator), name)
        return True

    return check


@linked
@documented(_ENTRIES)
class StreamingPipeline(BaseEstimator):
    """An estimator that learns from a stream of columns of numbers and of text.

    A :class:`StreamingScaler` makes comparable numbers of the columns, from which the estimator
    learns. The first samples are kept for a while: until there are `warm_up` of them, the estimator
    begins anew with all of them, scaled by what they show together, whenever there are half as many
    again. So a stream may come sample by sample. Sparse samples are handed on as they are.

    Parameters
    ----------
    estimator : estimator
        Anything with ``partial_fit`` and ``predict``.
    scaler : StreamingScaler, optional
        How the columns are encoded; by default ``StreamingScaler()``.
    warm_up : int, default=100
        How many of the first samples are kept.

    Attributes
    ----------
    estimator_ : estimator
        The estimator, fitted.
    scaler_ : StreamingScaler or None
        The scaler, fitted; None if samples are sparse.
    model_order_ : int
        Points of the estimator, if it has any.
    classes_ : ndarray of shape (n_classes,)
        Labels of the estimator, if it has any.
    drift_, trace_
        Those of the estimator, if it has any.
    n_features_in_ : int
        Number of columns.

    Examples
    --------
    >>> import numpy as np, parsimon
    >>> from parsimon.stream import StreamingPipeline
    >>> random = np.random.default_rng(0)
    >>> size, colour = random.normal(100, 30, 500), random.choice(["red", "blue"], 500)
    >>> y = np.where((size > 100) == (colour == "red"), "yes", "no")
    >>> model = StreamingPipeline(parsimon.POLKClassifier())
    >>> model = model.partial_fit({"size": size, "colour": colour}, y)
    >>> model.predict({"size": [150.0, 150.0], "colour": ["red", "blue"]})
    array(['yes', 'no'], dtype='<U3')
    >>> model.save("model.parsimon")
    >>> again = parsimon.load("model.parsimon")
    >>> again.predict({"size": [150.0], "colour": ["red"]})
    array(['yes'], dtype='<U3')
    """

    estimator_: Any
    scaler_: Any  # None if samples are sparse
    _waiting_: FirstSamples | None

    def __init__(
        self, estimator: Any, *, scaler: StreamingScaler | None = None, warm_up: int = 100
    ) -> None:
        self.estimator = estimator
        self.scaler = scaler
        self.warm_up = warm_up

    # -- learning --------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from all samples, forgetting what was learned before.

        {X, y, sample_weight -> self}
        """
        self._check_parameters()
        X, y = self._block(X, y)
        scaler = None if sparse.issparse(X) else self._new_scaler()
        encoded = X if scaler is None else scaler.fit_transform(X)
        estimator = clone(self.estimator).fit(encoded, y, **_given(None, sample_weight))
        self.__dict__.update(scaler_=scaler, estimator_=estimator, _waiting_=None)
        return self

    def partial_fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from one block of a stream, in the order given.

        {X, y, classes, sample_weight -> self}
        """
        self._check_parameters()
        X, y = self._block(X, y)
        weight = None if sample_weight is None else np.atleast_1d(sample_weight)
        first = "estimator_" not in self.__dict__
        if sparse.issparse(X) if first else self.scaler_ is None:
            estimator = clone(self.estimator) if first else self.estimator_
            estimator.partial_fit(X, y, **_given(classes, weight))
            self.__dict__.update(scaler_=None, estimator_=estimator, _waiting_=None)
            return self
        scaler = self._new_scaler() if first else self.scaler_
        table = scaler._table(X, reset=first)
        if first:
            self._begin(scaler, FirstSamples().plus(table, y, weight, classes))
            return self
        # What does not fit the columns is refused before anything else.
        encoding, waiting = scaler._encoding_, self._waiting_
        settled = waiting is not None and encoding.is_settled_by(table)
        if not settled:
            encoding = encoding.plus(table)
        if waiting is not None:
            waiting = waiting.plus(table, y, weight, classes)
            if settled or len(waiting) >= min(_GROWTH * waiting.begun, self.warm_up):
                self._begin(scaler, waiting)
                return self
        self.estimator_.partial_fit(encoding.encode(table), y, **_given(classes, weight))
        scaler._encoding_, self._waiting_ = encoding, waiting
        return self

    def _begin(self, scaler: StreamingScaler, waiting: FirstSamples) -> None:
        """Begin anew with all samples so far."""
        scaler, table = copy.copy(scaler), waiting.table
        scaler._encoding_ = scaler._first(table)
        estimator = clone(self.estimator)
        encoded, given = scaler._encoding_.encode(table), _given(waiting.classes, waiting.weight)
        estimator.partial_fit(encoded, waiting.targets, **given)
        count = len(waiting)
        kept = replace(waiting, begun=count) if count < self.warm_up else None
        self.__dict__.update(scaler_=scaler, estimator_=estimator, _waiting_=kept)

    def _block(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return samples and their targets, which an estimator may not need."""
        if y is None and not get_tags(self.estimator).target_tags.required:
            return X, None
        return as_block(X, y)

    def _new_scaler(self) -> StreamingScaler:
        scaler: StreamingScaler = clone(self.scaler or StreamingScaler())
        return scaler

    def _check_parameters(self) -> None:
        check_count("warm_up", self.warm_up)
        if self.scaler is not None and not isinstance(self.scaler, StreamingScaler):
            raise ValueError(f"scaler must be a StreamingScaler or None; got {self.scaler!r}.")

    # -- predicting ------------------------------------------------------------------------------

    def encode(self, X: Any) -> Any:
        """Return samples as the estimator is given them.

        {X -> encoded}
        """
        if "estimator_" not in self.__dict__:  # which takes a moment to say
            check_is_fitted(self, "estimator_")
        return X if self.scaler_ is None else self.scaler_.transform(X)

    def predict(self, X: Any, **options: Any) -> Any:
        """Return what the estimator predicts for each sample.

        {X, options -> predictions}
        """
        encoded = self.encode(X)
        found = self.estimator_.predict(encoded, **options)
        return found if isinstance(found, tuple) else np.asarray(found)

    @available_if(_estimator_has("fit_predict"))  # type: ignore[untyped-decorator]
    def fit_predict(self, X: Any, y: ArrayLike | None = None) -> NDArray[Any]:
        """Learn from all samples, and return what is predicted for them.

        {X, y -> predictions}
        """
        return np.asarray(self.fit(X, y).predict(X))

    @available_if(_estimator_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class.

        {X -> probabilities}
        """
        encoded = self.encode(X)
        return np.asarray(self.estimator_.predict_proba(encoded))

    @available_if(_estimator_has("predict_log_proba"))  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithm of the probability of each class.

        {X -> probabilities}
        """
        encoded = self.encode(X)
        return np.asarray(self.estimator_.predict_log_proba(encoded))

    @available_if(_estimator_has("distance"))  # type: ignore[untyped-decorator]
    def distance(self, X: Any) -> NDArray[np.float64]:
        """Return how far each sample, once encoded, is from anything that the model knows.

        {X -> distances}
        """
        encoded = self.encode(X)
        return np.asarray(self.estimator_.distance(encoded))

    @available_if(_estimator_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the values of the estimator's decision function.

        {X -> values}
        """
        encoded = self.encode(X)
        return np.asarray(self.estimator_.decision_function(encoded))

    @available_if(_estimator_has("score_samples"))  # type: ignore[untyped-decorator]
    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return the estimator's scores of samples.

        {X -> scores}
        """
        encoded = self.encode(X)
        return np.asarray(self.estimator_.score_samples(encoded))

    def score(self, X: Any, y: ArrayLike) -> float:
        """Return the estimator's score on these samples.

        {X, y -> score}
        """
        X, y = as_block(X, y)
        encoded = self.encode(X)
        return float(self.estimator_.score(encoded, y))

    @property
    def model_order_(self) -> int:
        """Points of the estimator."""
        return int(self._fitted("model_order_"))

    @property
    def drift_(self) -> NDArray[np.int64]:
        """The samples seen each time the estimator found that the stream had changed."""
        return np.asarray(self._fitted("drift_"))

    @property
    def trace_(self) -> dict[str, NDArray[Any]]:
        """What each mini-batch of the estimator did."""
        trace: dict[str, NDArray[Any]] = self._fitted("trace_")
        return trace

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of the estimator."""
        return np.asarray(self._fitted("classes_"))

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        if self.__dict__.get("scaler_") is not None:
            return int(self.scaler_.n_features_in_)
        return int(self._fitted("n_features_in_"))

    def _fitted(self, name: str) -> Any:
        # AttributeError, so that hasattr() tells what there is.
        if not hasattr(self, "estimator_"):
            raise AttributeError(f"StreamingPipeline has no {name} before it is fitted.")
        return getattr(self.estimator_, name)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        tags.target_tags = inner.target_tags
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = tags.input_tags.string = True
        return tags

    # -- persistence -----------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], *, training: bool = True) -> None:
        """Write the pipeline to one file, from which :func:`parsimon.load` reads it back.

        The file is that of the estimator, which must be one of parsimon's, with what the columns
        are and how they are encoded, and with the first samples, if they are still being kept.

        Parameters
        ----------
        path : path-like
            Where to write; an existing file is replaced.
        training : bool, default=True
            Whether training is to go on from the file; if not, it holds what predictions need.
        """
        check_flag("training", training)
        self._check_can_be_saved()
        _io.save(
            self.estimator_,
            path,
            lambda archive: self._describe(archive, training=training),
            training=training,
        )

    def _to_archive(self) -> Any:
        self._check_can_be_saved()
        archive = _io.checked_archive(self.estimator_)
        self._describe(archive, training=True)
        return archive

    def _describe(self, archive: Any, *, training: bool) -> None:
        """Add what the columns are to the entries of the estimator."""
        write_encoding(archive, self.scaler_, self.warm_up)
        if training and self._waiting_ is not None:
            write_first(archive, self._waiting_, self.scaler_)

    def _check_can_be_saved(self) -> None:
        check_is_fitted(self, "estimator_")
        if not isinstance(self.estimator_, ModelEstimator):
            raise ValueError(
                f"A pipeline can be saved to a model file if its estimator is one of parsimon's; "
                f"this one is {self.estimator_!r}. Use pickle, and load only what you trust."
            )

    @classmethod
    def _from_archive(cls, archive: Any, estimator: Any) -> StreamingPipeline:
        """Return the pipeline of a file whose estimator has been read."""
        scaler, warm_up = read_encoding(archive, estimator.n_features_in_)
        unfitted = clone(estimator)
        pipeline = cls(unfitted, scaler=None if scaler is None else clone(scaler), warm_up=warm_up)
        pipeline._check_parameters()
        waiting = None if scaler is None else read_first(archive, scaler, warm_up)
        pipeline.__dict__.update(scaler_=scaler, estimator_=estimator, _waiting_=waiting)
        return pipeline


def _given(classes: ArrayLike | None, weight: ArrayLike | None) -> dict[str, Any]:
    given = {"classes": classes, "sample_weight": weight}
    return {name: value for name, value in given.items() if value is not None}

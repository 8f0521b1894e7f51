"""POLK for river: models that learn from one dictionary of features at a time.

Needs river: ``pip install 'parsimon[river]'``.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._class_weight import check_class_weight
from .polk import POLKClassifier, POLKRegressor

try:
    from river import base
    from river.utils import dataframe
except ImportError as error:
    raise ImportError(
        "parsimon.river needs river 0.26.1 or later, which is not installed; install it with: "
        "pip install 'parsimon[river]'."
    ) from error

__all__ = ["Classifier", "Regressor"]

Features = Mapping[Hashable, float]

# While there are fewer samples, the estimator begins anew whenever there is a new feature.
_WARM_UP = 100
# The latest samples, from which it begins anew with features that it has no room for.
_KEPT = 500
# Columns kept for features that come later: a quarter of those there are, at least so many.
_FEWEST_FREE = 4


class _Learner:
    """What both have: features by name, the latest samples, an estimator that can begin anew."""

    settings: dict[str, Any]

    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        self._new_estimator()._check_parameters()  # what it refuses is refused now
        self._estimator: Any = None
        self._places: dict[Hashable, int] = {}
        self._width = 0
        self._kept: deque[tuple[NDArray[np.float64], Any]] = deque(maxlen=_KEPT)
        self._seen = 0

    def _new_estimator(self) -> Any:
        raise NotImplementedError

    def _learn(self, x: Features, target: Any) -> None:
        """Learn from a sample, with the core's target; all or nothing."""
        new = x.keys() - self._places.keys()
        places = self._places
        if new:
            # In the order of the names, so that the order within a dictionary does not matter.
            names = [*places, *sorted(new, key=str)]
            places = {name: place for place, name in enumerate(names)}
        no_room = self._estimator is None or len(places) > self._width
        if no_room or self._seen + 1 == _WARM_UP:
            free = 0 if self._seen + 1 < _WARM_UP else max(_FEWEST_FREE, len(places) // 4)
            self._begin(places, len(places) + free, _row(x, places, len(places)), target)
        else:
            row = _row(x, places, self._width)
            self._estimator.partial_fit(row, np.array([target]))
            self._kept.append((row, target))
            self._places = places
        self._seen += 1

    def _begin(self, places: dict[Hashable, int], width: int, row: Any, target: Any) -> None:
        """Begin anew with the latest samples and this one."""
        rows = np.zeros((len(self._kept) + 1, width))
        for number, (kept, _) in enumerate(self._kept):
            count = min(width, kept.shape[1])  # beyond, there is nothing but free places
            rows[number, :count] = kept[0, :count]
        rows[-1, : row.shape[1]] = row[0]
        targets = np.array([*(kept for _, kept in self._kept), target])
        estimator = self._new_estimator().partial_fit(rows, targets)
        self._kept.append((rows[-1:], target))
        self._estimator, self._places, self._width = estimator, places, width

    def learn_one(self, x: Features, y: Any) -> None:
        raise NotImplementedError

    def _encoded(self, y: list[Any]) -> list[Any] | None:
        """Return the core's targets; None if some are new."""
        raise NotImplementedError

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn from several samples, as from one after the other.

        Parameters
        ----------
        X
            A frame of features.
        y
            A series of their targets.
        """
        frame, y = dataframe.into_frame(X), list(y)
        names, rows, targets = list(frame.columns), dataframe.to_numpy(frame), self._encoded(y)
        if targets is None or self._seen < _WARM_UP or set(names) - self._places.keys():
            for row, target in zip(rows.tolist(), y, strict=True):
                self.learn_one(dict(zip(names, row, strict=True)), target)
            return
        aligned = self._aligned(names, rows)
        self._estimator.partial_fit(aligned, np.array(targets))
        self._kept.extend(zip(aligned[:, None], targets, strict=True))
        self._seen += len(rows)

    def _aligned(self, names: list[Hashable], rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the rows of a frame with its columns at their places; new ones have none."""
        aligned = np.zeros((len(rows), self._width))
        for column, name in enumerate(names):
            if name in self._places:
                aligned[:, self._places[name]] = rows[:, column]
        return aligned

    def _known_row(self, x: Features) -> NDArray[np.float64]:
        return _row(x, self._places, self._width)

    @property
    def model_order(self) -> int:
        """Points of the model."""
        return 0 if self._estimator is None else int(self._estimator.model_order_)

    @property
    def _raw_memory_usage(self) -> int:
        # What is kept in C++ is not among the objects that river would count.
        return len(pickle.dumps(self))


def _row(x: Features, places: Mapping[Hashable, int], width: int) -> NDArray[np.float64]:
    """Return a sample as a row; features that it lacks are 0."""
    get = x.get
    values = [get(name, 0.0) for name in places]
    try:
        return np.array([values + [0.0] * (width - len(values))], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"The features must be numbers; encode text first, for example with "
            f"river.preprocessing.OneHotEncoder. Got {x!r}."
        ) from error


class Classifier(_Learner, base.MiniBatchClassifier):
    """A kernel classifier whose model stays small, for river.

    It is a :class:`parsimon.POLKClassifier`, with the logistic loss unless another is given. Scale
    the features first, as for any model that compares samples by their distance. Labels and
    features may come at any time; a feature that a sample lacks is 0. For features beyond those
    that there is room for, the model begins anew with the latest 500 samples.

    Parameters
    ----------
    settings
        Parameters of :class:`parsimon.POLKClassifier`, such as ``max_points=100`` or
        ``class_weight={"spam": 5}``.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> import parsimon.river
    >>> model = preprocessing.StandardScaler() | parsimon.river.Classifier()
    >>> accuracy = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    >>> accuracy.get() > 0.85
    True
    """

    def __init__(self, **settings: Any) -> None:
        self._labels: dict[Any, int] = {}
        # What the estimator is given for weights by label: it knows labels by their numbers.
        self._weights: dict[int, float] = {}
        check_class_weight("class_weight", settings.get("class_weight"))
        super().__init__(**settings)

    def _new_estimator(self) -> POLKClassifier:
        given = {"loss": "logistic", **self.settings}
        if isinstance(given.get("class_weight"), Mapping):
            given["class_weight"] = self._weights
        return POLKClassifier(**given)

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: Features, y: Any) -> None:
        """Learn from one sample.

        Parameters
        ----------
        x
            A dictionary of features.
        y
            A label.
        """
        number = self._labels.get(y)
        if number is not None:
            self._learn(x, number)
            return
        number, given = len(self._labels), self.settings.get("class_weight")
        if isinstance(given, Mapping) and y in given:
            self._weights[number] = given[y]
        try:
            self._learn(x, number)
        except BaseException:
            self._weights.pop(number, None)
            raise
        self._labels[y] = number

    def _encoded(self, y: list[Any]) -> list[Any] | None:
        known = all(label in self._labels for label in y)
        return [self._labels[label] for label in y] if known else None

    def predict_one(self, x: Features, **kwargs: Any) -> Any:  # noqa: ARG002
        """Return the most likely label; None before there is one.

        Parameters
        ----------
        x
            A dictionary of features.
        kwargs
            Ignored.

        Returns
        -------
        The label.
        """
        if self._estimator is None:
            return None
        return self._named(self._estimator.decision_function(self._known_row(x)))[0]

    def predict_proba_one(self, x: Features, **kwargs: Any) -> dict[Any, float]:  # noqa: ARG002
        """Return the probability of each label; only with the logistic loss.

        Parameters
        ----------
        x
            A dictionary of features.
        kwargs
            Ignored.

        Returns
        -------
        A dictionary of probabilities; it is empty before there is a label.
        """
        if self._estimator is None:
            return {}
        shares = self._probabilities(self._known_row(x))[0].tolist()
        return dict(zip(self._labels, shares, strict=True))

    def predict_many(self, X: Any) -> Any:
        """Return the most likely label of several samples.

        Parameters
        ----------
        X
            A frame of features.

        Returns
        -------
        A series of labels.
        """
        X = dataframe.into_frame(X)
        if self._estimator is None:
            return dataframe.to_native_series([None] * len(X), name=None, like=X)
        rows = self._aligned(list(X.columns), dataframe.to_numpy(X))
        labels = self._named(self._estimator.decision_function(rows))
        return dataframe.to_native_series(labels, name=None, like=X)

    def predict_proba_many(self, X: Any) -> Any:
        """Return the probability of each label for several samples.

        Parameters
        ----------
        X
            A frame of features.

        Returns
        -------
        A frame with a column for each label.
        """
        X = dataframe.into_frame(X)
        if self._estimator is None:
            return dataframe.to_native_frame({}, like=X)
        rows = self._aligned(list(X.columns), dataframe.to_numpy(X))
        columns = dict(zip(self._labels, self._probabilities(rows).T, strict=True))
        return dataframe.to_native_frame(columns, like=X)

    def _named(self, scores: NDArray[np.float64]) -> list[Any]:
        """Return the labels with the highest scores, of those that have been seen."""
        labels = list(self._labels)
        if len(labels) == 1:
            return labels * len(scores)
        best = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
        return [labels[number] for number in best.astype(int).tolist()]

    def _probabilities(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        if not hasattr(self._estimator, "predict_proba"):
            raise NotImplementedError(
                f"There are probabilities with loss='logistic', not with "
                f"loss={self._estimator.loss!r}."
            )
        return np.asarray(self._estimator.predict_proba(rows))

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"loss": "hinge", "max_points": 20}


class Regressor(_Learner, base.MiniBatchRegressor):
    """A kernel regressor whose model stays small, for river.

    It is a :class:`parsimon.POLKRegressor`. Scale the features first. Features may come at any
    time; one that a sample lacks is 0. For features beyond those that there is room for, the model
    begins anew with the latest 500 samples.

    Parameters
    ----------
    settings
        Parameters of :class:`parsimon.POLKRegressor`, such as ``max_points=100``.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> import parsimon.river
    >>> model = preprocessing.StandardScaler() | parsimon.river.Regressor()
    >>> error = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    >>> error.get() < 2
    True
    """

    def _new_estimator(self) -> POLKRegressor:
        return POLKRegressor(**self.settings)

    def learn_one(self, x: Features, y: float) -> None:
        """Learn from one sample.

        Parameters
        ----------
        x
            A dictionary of features.
        y
            A number.
        """
        self._learn(x, float(y))

    def _encoded(self, y: list[Any]) -> list[Any] | None:
        return list(map(float, y))

    def predict_one(self, x: Features) -> float:
        """Return the prediction; 0 before anything is known.

        Parameters
        ----------
        x
            A dictionary of features.

        Returns
        -------
        A number.
        """
        if self._estimator is None:
            return 0.0
        return float(self._estimator.predict(self._known_row(x))[0])

    def predict_many(self, X: Any) -> Any:
        """Return the predictions for several samples.

        Parameters
        ----------
        X
            A frame of features.

        Returns
        -------
        A series of numbers.
        """
        X = dataframe.into_frame(X)
        if self._estimator is None:
            return dataframe.to_native_series(np.zeros(len(X)), name=None, like=X)
        rows = self._aligned(list(X.columns), dataframe.to_numpy(X))
        return dataframe.to_native_series(self._estimator.predict(rows), name=None, like=X)

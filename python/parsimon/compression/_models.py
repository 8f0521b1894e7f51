"""Models that compression makes of others: a function that stays as it is, and what it means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if

from parsimon import _core
from parsimon._checks import is_number
from parsimon._formula import Classes, Density, Head, OneClass, Values, Votes
from parsimon._model import Array, ModelEstimator
from parsimon._parameters import estimator
from parsimon._sklearn import ClassifierMixin, DensityMixin, OutlierMixin, RegressorMixin
from parsimon.expansion import KernelExpansion

from ._coupling import pairwise_coupling
from ._process import averaged_logistic, explained_root

_NONE = np.empty((0, 0))


class Compressed(ModelEstimator):
    """A function with few points, which was another model's."""

    intercept_: Array
    offset_: float
    # What outputs mean; each kind of model has some of these.
    _single_: bool
    _root_: Array
    _noise_: float
    _deviation_scale_: Array
    _labels_: NDArray[Any]
    _votes_: bool
    _per_class_: bool
    _by_score_: bool
    _slope_: Array
    _offsets_: Array
    _mirror_: str
    _mirror_numbers_: Array
    _box_: Array
    _bounded_: bool
    _periodic_: NDArray[Any]
    _log_volume_: float
    # The core's name for a function that nothing learns any more.
    _algorithms: ClassVar[tuple[str, ...]] = ("slkl",)

    def _set(self, expansion: KernelExpansion, **fitted: Any) -> Any:
        core = expansion._core
        model = _core.Slkl(expansion.kernel.core, core.dictionary, core.weights)
        features = int(core.dictionary.shape[1])
        self._adopt(model, {"n_features_in_": features, "_kernel_": expansion.kernel, **fitted})
        return self

    def _replace(self, model: Any, points: Array, weights: Array) -> None:
        root = self.__dict__.get("_root_", _NONE)
        if root.size:  # what is known of variances is in terms of the points
            before = np.asarray(model.dictionary)
            root = explained_root(self._kernel_, before, root.T.__matmul__, points)[0]
        fitted = {"_root_": root} if "_root_" in self.__dict__ else {}
        self._adopt(_core.Slkl(self._kernel_.core, points, weights), fitted)

    def fit(self, X: Any, y: Any = None) -> Any:
        """Refuse: what made this model is another's.

        Parameters
        ----------
        X, y : object
            Ignored.
        """
        raise NotImplementedError(
            f"A {type(self).__name__} is made by parsimon.compress from a fitted model; fit that "
            f"one, or a POLK estimator."
        )

    def _affine(self) -> tuple[Any, Any]:
        return self.intercept_, 1.0

    def _values(self, X: ArrayLike) -> Array:
        return np.asarray(self._evaluate(X) + self.intercept_)

    def _stored(self, outputs: int) -> dict[str, Callable[[Any], bool]]:
        return {"intercept_": lambda value: _finite(value) and value.shape == (outputs,)}


def _finite(value: Any) -> bool:
    return (
        isinstance(value, np.ndarray) and value.dtype.kind == "f" and bool(np.isfinite(value).all())
    )


@estimator()
class CompressedRegressor(RegressorMixin, Compressed):
    """A regressor with few points, made by :func:`parsimon.compress`.

    Parameters
    ----------
    n_jobs : int, optional
        Threads for predictions.
    """

    n_jobs: int | None = None

    def predict(self, X: ArrayLike, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Return the predicted target of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.
        return_std : bool, default=False
            Whether to return standard deviations, too, if the large model had them.

        Returns
        -------
        predictions : ndarray of shape (n_samples,) or (n_samples, n_targets)
            As those of the large model.
        deviations : ndarray of the same shape
            If they were asked for.
        """
        values = self._values(X)
        predictions = values[:, 0] if self._single_ else values
        return (predictions, self._deviations(X)) if return_std else predictions

    def _deviations(self, X: ArrayLike) -> Array:
        if self._root_.size == 0:
            raise ValueError(
                "The model that was compressed gave no standard deviations; that of a "
                "GaussianProcessRegressor does."
            )
        X = self._validate_samples(X)
        explained = self.kernel_(X, self.dictionary_) @ self._root_
        variance = self.kernel_.diag(X) + self._noise_ - (explained**2).sum(axis=1)
        deviations: Array = np.sqrt(np.maximum(variance, 0.0))[:, None] * self._deviation_scale_
        return deviations[:, 0] if self._single_ else deviations

    def _head(self) -> Head:
        return Values(single=self._single_)

    def _stored(self, outputs: int) -> dict[str, Callable[[Any], bool]]:
        return super()._stored(outputs) | {
            "_single_": lambda value: type(value) is bool and (not value or outputs == 1),
            "_root_": lambda value: _finite(value) and value.ndim == 2,
            "_noise_": lambda value: is_number(value) and value >= 0,
            "_deviation_scale_": lambda value: _finite(value) and value.ndim == 1,
        }


def _has_probabilities(estimator: Any) -> bool:
    if len(getattr(estimator, "_slope_", ())) or getattr(estimator, "_root_", _NONE).size:
        return True
    raise AttributeError("The model that was compressed gave no probabilities.")


@estimator()
class CompressedClassifier(ClassifierMixin, Compressed):
    """A classifier with few points, made by :func:`parsimon.compress`.

    Parameters
    ----------
    n_jobs : int, optional
        Threads for predictions.
    """

    n_jobs: int | None = None

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels."""
        self._state("classes_")
        classes: NDArray[Any] = self._labels_
        return classes

    def decision_function(self, X: ArrayLike) -> Array:
        """Return the decision function of the large model, as it would be with fewer points.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            With a column for each pair of classes if the large model had that.
        """
        return self._meaning().scores(self._values(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the label of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            One of `classes_` for each.
        """
        return self._meaning().labels(self._values(X))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Their sum is 1.
        """
        values, head = self._values(X), self._meaning()
        if self._root_.size:
            X = self._validate_samples(X)
            explained = self.kernel_(X, self.dictionary_) @ self._root_
            variance = self.kernel_.diag(X) - (explained**2).sum(axis=1)
            return averaged_logistic(values[:, 0], variance)
        if isinstance(head, Classes):
            return head.probabilities(values)
        return pairwise_coupling(values, self._slope_, self._offsets_, len(self._labels_))

    def _meaning(self) -> Classes | Votes:
        calibrated = len(self._slope_) > 0
        calibration = (self._slope_, self._offsets_) if calibrated else None
        if not self._votes_:
            return Classes(self._labels_, None, calibration, averaged=self._root_.size > 0)
        return Votes(self._labels_, self._per_class_, self._by_score_, calibration)

    def _head(self) -> Head:
        return self._meaning()

    def _stored(self, outputs: int) -> dict[str, Callable[[Any], bool]]:
        def labels(value: Any) -> bool:
            count = len(value)
            fits = outputs in (count * (count - 1) // 2, 1 if count == 2 else count)
            return value.ndim == 1 and fits and np.array_equal(value, np.unique(value))

        def flag(value: Any) -> bool:
            return type(value) is bool

        return super()._stored(outputs) | {
            "_labels_": labels,
            "_votes_": flag,
            "_per_class_": flag,
            "_by_score_": flag,
            "_root_": lambda value: _finite(value) and value.ndim == 2,
            "_slope_": lambda value: _finite(value) and value.shape in ((outputs,), (0,)),
            "_offsets_": lambda value: _finite(value) and value.shape in ((outputs,), (0,)),
        }


@estimator()
class CompressedOneClass(OutlierMixin, Compressed):
    """A novelty detector with few points, made by :func:`parsimon.compress`.

    Parameters
    ----------
    n_jobs : int, optional
        Threads for predictions.
    """

    n_jobs: int | None = None

    def score_samples(self, X: ArrayLike) -> Array:
        """Return the values of the function: the lower, the more unusual.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            As those of the large model.
        """
        return self._values(X)[:, 0]

    def decision_function(self, X: ArrayLike) -> Array:
        """Return by how much scores are above the threshold.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        differences : ndarray of shape (n_samples,)
            Negative for outliers.
        """
        return np.asarray(self.score_samples(X) - self.offset_)

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Tell inliers from outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            1 for inliers, -1 for outliers.
        """
        return np.where(self.decision_function(X) < 0, -1, 1)

    def _head(self) -> Head:
        return OneClass(self.offset_)

    def _stored(self, outputs: int) -> dict[str, Callable[[Any], bool]]:
        return super()._stored(outputs) | {"offset_": is_number}


@estimator()
class CompressedDensity(DensityMixin, Compressed):
    """A density with few points, made by :func:`parsimon.compress`.

    Where its function is not positive, which weights of both signs can make it far from all data,
    the logarithm of the density is minus infinity.

    Parameters
    ----------
    n_jobs : int, optional
        Threads for predictions.
    """

    n_jobs: int | None = None

    def score_samples(self, X: ArrayLike) -> Array:
        """Return the logarithm of the density at each point.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The points.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Minus infinity where there is no density.
        """
        head = self._meaning()
        if self._periodic_.any():
            X = head.folded(self._validate_samples(X))
        return head.log_density(self._values(X), np.asarray(X, dtype=np.float64))

    def score(self, X: ArrayLike, y: Any = None) -> float:  # noqa: ARG002
        """Return the total log-likelihood of the points.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The points.
        y : None
            Ignored.

        Returns
        -------
        log_likelihood : float
            The sum of ``score_samples(X)``.
        """
        return float(self.score_samples(X).sum())

    def _meaning(self) -> Density:
        lower, upper = self._box_
        if not self._bounded_:
            lower, upper = np.full_like(lower, -np.inf), np.full_like(upper, np.inf)
        return Density(
            self._mirror_,
            self._mirror_numbers_,
            lower,
            upper,
            self._log_volume_,
            self._periodic_,
        )

    def _head(self) -> Head:
        return self._meaning()

    def _stored(self, outputs: int) -> dict[str, Callable[[Any], bool]]:
        return super()._stored(outputs) | {
            "_mirror_": lambda value: value in ("kl", "euclidean", "mahalanobis"),
            "_mirror_numbers_": lambda value: _finite(value) and value.ndim == 1,
            "_box_": lambda value: _finite(value) and value.ndim == 2 and len(value) == 2,
            "_bounded_": lambda value: type(value) is bool,
            "_log_volume_": is_number,
            "_periodic_": lambda value: value.dtype == bool and value.ndim == 1,
        }

    def _check_stored(self, fitted: dict[str, Any], archive: Any) -> None:
        super()._check_stored(fitted, archive)
        periodic = fitted["_periodic_"]
        bounded = fitted["_bounded_"] or not periodic.any()
        if not bounded or periodic.shape != fitted["_box_"].shape[1:]:
            raise ValueError(
                "The model file does not hold a CompressedDensity: its domain.periodic does not "
                "belong to its domain."
            )

"""Points of several kinds: one intensity for each, on one dictionary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from parsimon._site import linked
from parsimon._sklearn import BaseEstimator, ClassifierMixin
from parsimon._stream import checked_weight

from ._base import Intensity
from ._estimators import SPPPOTIntensity
from ._solved import checked_exposure

if TYPE_CHECKING:
    from typing_extensions import Self

Array = NDArray[np.float64]


@linked
class MarkedIntensity(ClassifierMixin, BaseEstimator):
    """Intensities of points with marks, such as species or kinds of crimes.

    All points together choose the domain and the kernel, and with them the dictionary (of more than
    three features, the points of each mark are its own). On it one intensity is solved for each
    mark, with a ridge of its own. Which mark a point at x has is as likely as its intensity's share
    there: a classifier that knows how common each mark is.

    Parameters
    ----------
    intensity : estimator, optional
        An intensity with ``solver="newton"`` that is not fitted; by default
        :class:`SPPPOTIntensity` with its defaults.

    Attributes
    ----------
    classes_ : ndarray of shape (n_marks,)
        The marks.
    intensities_ : list of n_marks estimators
        The intensity of each.
    pooled_ : estimator
        That of all points together.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from parsimon import MarkedIntensity, SPPPOTIntensity
    >>> random = np.random.default_rng(0)
    >>> X = np.vstack([random.beta(2, 5, (300, 1)), random.beta(5, 2, (100, 1))])
    >>> kinds = np.repeat(["oak", "beech"], [300, 100])
    >>> model = MarkedIntensity(SPPPOTIntensity(domain=(0, 1))).fit(X, kinds)
    >>> model.predict([[0.2], [0.9]]).tolist()
    ['oak', 'beech']
    >>> model.intensities([[0.2], [0.9]]).shape
    (2, 2)
    """

    def __init__(self, intensity: Any = None) -> None:
        self.intensity = intensity

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        exposure: float | None = None,
    ) -> Self:
        """Learn the intensity of each mark.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The points.
        y : array-like of shape (n_samples,)
            Their marks.
        sample_weight : array-like of shape (n_samples,), optional
            How many points each of them stands for.
        exposure : float, optional
            For how long they were looked for; see :meth:`SPPPOTIntensity.fit`.

        Returns
        -------
        self : MarkedIntensity
        """
        template = SPPPOTIntensity() if self.intensity is None else self.intensity
        if not isinstance(template, Intensity) or template.solver != "newton":
            raise ValueError(
                f"intensity must be an intensity with solver='newton', such as SPPPOTIntensity(); "
                f"got {template!r}."
            )
        marks = column_or_1d(y, warn=True)
        check_classification_targets(marks)
        if len(marks) != np.shape(X)[0]:
            raise ValueError(
                f"There must be one mark for each point: got {len(marks)} marks and "
                f"{np.shape(X)[0]} points."
            )
        pooled = clone(template).fit(X, sample_weight=sample_weight, exposure=exposure)
        points = pooled._validate_samples(X)
        weights = checked_weight(sample_weight, points)
        classes, kinds = np.unique(marks, return_inverse=True)
        given = {"domain": pooled.domain_, "kernel": pooled.kernel_, "scales": pooled.scales_}
        intensities = []
        for kind in range(len(classes)):
            its = kinds == kind
            weight = None if sample_weight is None else weights[its]
            model = clone(template).set_params(**given)
            intensities.append(model.fit(points[its], sample_weight=weight, exposure=exposure))
        self.classes_, self.intensities_, self.pooled_ = classes, intensities, pooled
        self.n_features_in_ = pooled.n_features_in_
        return self

    def intensities(self, X: ArrayLike) -> Array:
        """Return the intensity of each mark at each place.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The places.

        Returns
        -------
        intensities : ndarray of shape (n_samples, n_marks)
            One column for each mark, in the order of ``classes_``.
        """
        check_is_fitted(self)
        points = self.pooled_._validate_samples(X)
        return np.column_stack([model.intensity(points) for model in self.intensities_])

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return how likely each mark is for a point at each place.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The places.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_marks)
            In the order of ``classes_``; where there are no points, outside the domain, those of
            all points together.
        """
        values = self.intensities(X)
        everywhere = np.array([model._total() for model in self.intensities_])
        values = np.where(values.sum(axis=1, keepdims=True) > 0, values, everywhere)
        return np.asarray(values / values.sum(axis=1, keepdims=True))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most likely mark of a point at each place.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The places.

        Returns
        -------
        marks : ndarray of shape (n_samples,)
            Some of ``classes_``.
        """
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def expected_count(self, box: ArrayLike) -> Array:
        """Return how many points of each mark are expected in a box.

        Parameters
        ----------
        box : array-like of shape (n_features, 2) or (2,)
            The ends of the box along each feature, as for :meth:`SPPPOTIntensity.expected_count`.

        Returns
        -------
        counts : ndarray of shape (n_marks,)
            One number for each mark, in the order of ``classes_``.
        """
        check_is_fitted(self)
        return np.array([model.expected_count(box) for model in self.intensities_])

    def process_score(self, X: ArrayLike, y: ArrayLike, exposure: float | None = None) -> float:
        """Return the log-likelihood of points with marks as those of a Poisson process.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The points.
        y : array-like of shape (n_samples,)
            Their marks, some of ``classes_``.
        exposure : float, optional
            For how long they were looked for; by default, as long as in ``fit``.

        Returns
        -------
        log_likelihood : float
        """
        check_is_fitted(self)
        points, marks = self.pooled_._validate_samples(X), np.asarray(y)
        unknown = np.setdiff1d(marks, self.classes_)
        if len(unknown):
            raise ValueError(f"There was no mark {unknown[0]!r} among those learned from.")
        times = 1.0
        if exposure is not None:
            times = checked_exposure(exposure) / self.pooled_.exposure_
        total = 0.0
        for mark, model in zip(self.classes_, self.intensities_, strict=True):
            expected, mine = model._total() * times, points[marks == mark]
            if len(mine):
                total += float(model.score_samples(mine).sum()) + len(mine) * np.log(expected)
            total -= expected
        return total

"""Estimators that learn from collections of Dask."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Any

from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

import parsimon
from parsimon import distributed
from parsimon._callbacks import FitTasks
from parsimon._classifier import _gives_probabilities
from parsimon._docs import OF_CLASSIFIERS, OF_REGRESSORS, OF_STEPS
from parsimon._parameters import Class, dataclass_transform, estimator
from parsimon._progress import progress
from parsimon._sklearn import with_callbacks
from parsimon.colk._risk import RISK_ENTRIES
from parsimon.spppot._estimators import _ENTRIES as SPPPOT_ENTRIES
from parsimon.spppot._learned import ENTRIES as POINTS

from ._cluster import Cluster, client_of
from ._collections import ask, is_lazy, parts_of

if TYPE_CHECKING:
    from typing_extensions import Self


_ENTRIES = """
compression : {"remove", "merge"}, default={default}
    Only "remove" here.
refine : bool or tuple, default={default}
    Only False here: ``to_local().refine_on(X, y)`` moves the points, with samples in memory.
client : distributed.Client, optional
    By default the one that was made last.
"""


def _check_client(name: str, value: Any) -> None:
    """Leave it until there is something to do: a client cannot be checked without a cluster."""


@dataclass_transform()
def on_cluster(plain: type, *tables: str) -> Callable[[Class], Class]:
    """Give a class the constructor of a plain estimator, and a client."""

    def make(cls: Any) -> Any:
        cls.__annotations__ = {**_words_of(plain), **cls.__annotations__}
        cls._plain = plain
        cls._words = {**plain._words, "client": _check_client}  # type: ignore[attr-defined]
        return estimator(*tables)(cls)

    return make


def _words_of(plain: Any) -> dict[str, Any]:
    return {
        name: KW_ONLY if name == "_" else word
        for name, word in plain.__annotations__.items()
        if name == "_" or name in plain._get_param_names()
    }


class OnCluster:
    """What all of them share: they learn on a cluster, and predict lazily."""

    client: Any
    _plain: type
    # Phases of learning: what was done, seconds since the beginning, and figures.
    history_: list[dict[str, Any]]

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from all samples, forgetting what was learned before.

        Parameters
        ----------
        X : Dask array or dataframe, or list of delayed objects or futures
            The samples. What is in memory here is cut into parts of 10,000 rows.
        y : the same
            Their labels or targets, in partitions of the same lengths.
        sample_weight : the same, optional
            Weights of the samples, not negative.

        Returns
        -------
        self : estimator
            The estimator.
        """
        tasks = FitTasks(self)
        tasks.begin(0)
        self._begin(X, y, sample_weight)
        tasks.end()
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from more data, such as those of the next day.

        Parameters
        ----------
        X : Dask array or dataframe, or list of delayed objects or futures
            The samples.
        y : the same
            Their labels or targets, in partitions of the same lengths. A label that was never seen
            adds a class.
        sample_weight : the same, optional
            Weights of the samples, not negative.

        Returns
        -------
        self : estimator
            The estimator.
        """
        return self._go_on(X, y, sample_weight)

    def to_local(self) -> Any:
        """Return the plain estimator, which knows nothing of Dask.

        Returns
        -------
        estimator
            With what was learned; it can be saved, and go on learning from a stream.
        """
        local = self._fitted_copy()
        local.__dict__.pop("_learned_", None)
        local._model = local._model.copy()
        return local

    def save(self, path: Any, *, training: bool = True) -> None:
        """Write what :meth:`to_local` returns to a file.

        Parameters
        ----------
        path : path-like
            Where to write.
        training : bool, default=True
            Whether training is to go on from the file.
        """
        self.to_local().save(path, training=training)

    def _to_archive(self) -> Any:
        return self.to_local()._to_archive()

    def _begin(self, X: Any, y: Any, weight: Any, **more: Any) -> Self:
        local = self._unfitted()
        return self._learn(
            X, y, weight, lambda run, watch: distributed.fit(local, run, watch=watch, **more)
        )

    def _go_on(self, X: Any, y: Any, weight: Any, **more: Any) -> Self:
        if "_model" not in self.__dict__:
            return self._begin(X, y, weight, **more)
        local = self._fitted_copy()
        return self._learn(
            X,
            y,
            weight,
            lambda run, watch: distributed.partial_fit(local, run, watch=watch, **more),
        )

    def _unfitted(self) -> Any:
        given = self.get_params(deep=False)  # type: ignore[attr-defined]
        given.pop("client")
        return self._plain(**given)

    def _fitted_copy(self) -> Any:
        self._fitted_model()  # type: ignore[attr-defined]
        local, given = self._unfitted(), self.get_params(deep=False)  # type: ignore[attr-defined]
        own = {*given, "history_"}
        local.__dict__.update({k: v for k, v in vars(self).items() if k not in own})
        return local

    def _learn(self, X: Any, y: Any, weight: Any, learn: Callable[..., Any]) -> Self:
        client = client_of(self.client)
        parts, size = parts_of(X, y, weight)
        history: list[dict[str, Any]] = []
        begun = time.perf_counter()
        name = type(self).__name__
        with progress(None, enabled=self.verbose >= 1, description=name, unit=" rounds") as bar:  # type: ignore[attr-defined]

            def watch(phase: str, figures: dict[str, float]) -> None:
                entry = {"phase": phase, "seconds": time.perf_counter() - begun, **figures}
                history.append(entry)
                client.log_event("parsimon", {"estimator": name, **entry})
                bar.describe(f"{name}: {phase}")
                bar.set_postfix(**figures)
                bar.update("rounds" in figures)

            learned = learn(Cluster(client, parts, size), watch)
        fitted = {k: v for k, v in vars(learned).items() if k not in learned.get_params(deep=False)}
        self.__dict__.pop("feature_names_in_", None)
        self.__dict__.update(fitted, history_=history)
        return self

    def __sklearn_clone__(self) -> Any:
        given = self.get_params(deep=False)  # type: ignore[attr-defined]
        client = given.pop("client")
        copies = {name: clone(value, safe=False) for name, value in given.items()}
        # Two estimators may have the same client.
        return type(self)(**copies, client=client)  # type: ignore[call-arg]

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "client": None}  # type: ignore[misc]


@on_cluster(parsimon.POLKClassifier, OF_CLASSIFIERS, _ENTRIES)
class POLKClassifier(OnCluster, parsimon.POLKClassifier):
    """:class:`parsimon.POLKClassifier` that learns from data on a cluster of Dask.

    Points are found by the workers, each among its own samples, and merged two by two; the weights
    are solved from sums over all of them. The model does not depend on how many workers there are,
    nor on who answers first, but on the partitions of the data.

    Parameters
    ----------
    {loss, kernel, gamma, class_weight, learning_rate, parsimony, budget, max_points, compression,
    solver, half_life, schedule, regularization, batch_size, epochs, shuffle, average, refit,
    refine, dtype, n_jobs, random_state, verbose, client}

    Attributes
    ----------
    history_ : list of dict
        What was done: "phase", "seconds" since the beginning and, of weights, "rounds", mean "loss"
        and "points".
    {dictionary_, weights_, model_order_, expansion_, classes_, n_features_in_, kernel_,
    learning_rate_, regularization_, budget_, epochs_}

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from parsimon.dask import POLKClassifier
    >>> from parsimon.datasets import make_multidist
    >>> X, y = make_multidist(2000, random_state=0)
    >>> X, y = da.from_array(X, chunks=(500, -1)), da.from_array(y, chunks=500)
    >>> with Client(processes=False, dashboard_address=None) as client:  # doctest: +SKIP
    ...     model = POLKClassifier(client=client, random_state=0).fit(X, y)
    ...     labels = model.predict(X).compute()
    """

    _: KW_ONLY
    client: Any = None

    def partial_fit(  # type: ignore[override]
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn from more data, such as those of the next day.

        Parameters
        ----------
        X : Dask array or dataframe, or list of delayed objects or futures
            The samples.
        y : the same
            Their labels, in partitions of the same lengths. One that was never seen adds a class.
        classes : array-like, optional
            All labels, if some have no samples yet: the first data may then have a single one.
        sample_weight : the same as y, optional
            Weights of the samples, not negative.

        Returns
        -------
        self : estimator
            The estimator.
        """
        return self._go_on(X, y, sample_weight, classes=classes)

    def predict(self, X: Any) -> Any:
        """Return the most likely label of each sample, lazily for collections of Dask.

        {X -> labels}
        """
        return ask(X, self.to_local(), "predict") if is_lazy(X) else super().predict(X)

    def decision_function(self, X: Any) -> Any:
        """Return the values of the learned function, lazily for collections of Dask.

        {X -> values}
        """
        lazy = is_lazy(X)
        return (
            ask(X, self.to_local(), "decision_function") if lazy else super().decision_function(X)
        )

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class; only with the logistic loss.

        {X -> probabilities}
        """
        return ask(X, self.to_local(), "predict_proba") if is_lazy(X) else super().predict_proba(X)


class RegressorOnCluster(OnCluster):
    """What the regressors share besides."""

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the predicted target of each sample, lazily for collections of Dask.

        Parameters
        ----------
        X : Dask array or dataframe, list of delayed objects or futures, or array-like
            The samples.
        return_std : bool, default=False
            Whether to return standard deviations, too; of samples in memory only.

        Returns
        -------
        predictions : of the same kind
            As the targets in training.
        deviations : ndarray
            If asked for.
        """
        if not is_lazy(X):
            return super().predict(X, return_std)  # type: ignore[misc]
        if return_std:
            raise ValueError("Standard deviations are of samples in memory: use to_local().")
        return ask(X, self.to_local(), "predict")


@on_cluster(parsimon.POLKRegressor, OF_REGRESSORS, _ENTRIES)
class POLKRegressor(RegressorOnCluster, parsimon.POLKRegressor):
    """:class:`parsimon.POLKRegressor` that learns from data on a cluster of Dask.

    As :class:`POLKClassifier` does; for the squared loss, the weights are those that one machine
    with all samples would find on these points.

    Parameters
    ----------
    {loss, kernel, gamma, learning_rate, parsimony, budget, max_points, compression, solver,
    half_life, schedule, regularization, batch_size, epochs, shuffle, average, normalize_y, refit,
    refine, dtype, n_jobs, random_state, verbose, client}

    Attributes
    ----------
    history_ : list of dict
        What was done: "phase", "seconds" since the beginning and, of weights, "rounds", mean "loss"
        and "points".
    {dictionary_, weights_, model_order_, expansion_, intercept_, n_features_in_, kernel_,
    learning_rate_, regularization_, budget_, epochs_}
    """

    _: KW_ONLY
    client: Any = None


@on_cluster(parsimon.COLKRegressor, OF_REGRESSORS, RISK_ENTRIES, _ENTRIES)
class COLKRegressor(RegressorOnCluster, parsimon.COLKRegressor):
    """:class:`parsimon.COLKRegressor` that learns from data on a cluster of Dask.

    Points are found as :class:`POLKRegressor` does. A risk is a function of all losses together:
    in each round, every worker sends the losses of its samples, 8 bytes each, and is told how much
    each of them counts; gradients are then sums as those of the mean loss are.

    Parameters
    ----------
    {risk, risk_weight, moment_order, level, clip, loss, kernel, gamma, learning_rate,
    tracking_rate, parsimony, budget, max_points, compression, solver, schedule, tracking_schedule,
    regularization, batch_size, epochs, shuffle, average, half_life, normalize_y, refit, dtype,
    n_jobs, random_state, verbose, client}

    Attributes
    ----------
    history_ : list of dict
        What was done: "phase", "seconds" since the beginning and, of weights, "rounds", mean "loss"
        or risk, and "points".
    {dictionary_, weights_, model_order_, expansion_, intercept_, n_features_in_, kernel_,
    learning_rate_, regularization_, budget_, epochs_, objective_, value_at_risk_, cvar_}
    """

    _: KW_ONLY
    client: Any = None


@on_cluster(parsimon.SPPPOTIntensity, OF_STEPS, SPPPOT_ENTRIES, POINTS, _ENTRIES)
class SPPPOTIntensity(OnCluster, parsimon.SPPPOTIntensity):
    """:class:`parsimon.SPPPOTIntensity` that learns from points on a cluster of Dask.

    All that the density needs of its points are sums of kernels at the points of a grid: each
    worker adds up its own, and the weights are solved from the total, as on one machine. The domain
    is that of all points; what is left to us besides is chosen on at most 50,000 of them. Needs
    ``solver="newton"`` and neither budget nor parsimony.

    Parameters
    ----------
    {domain, window, periodic, covariates, grid_size, kernel, bandwidth, scales, solver,
    learning_rate, parsimony, budget, schedule, batch_size}
    mirror : {"kl", "euclidean", "mahalanobis"}, default="kl"
        Of ``solver="sgd"``, which does not learn from parts; as `method` and `average` are.
    {gradient}
    method : {"mirror_descent", "dual_averaging"}, default="mirror_descent"
        See `mirror`.
    {regularization, epochs, shuffle}
    average : bool, default=True
        See `mirror`.
    half_life : float, "auto" or None, default="auto"
        The number of points after which a point counts half, from one `partial_fit` to the next;
        "auto" and None: nothing is forgotten.
    {n_jobs, random_state, verbose, client}

    Attributes
    ----------
    history_ : list of dict
        What was done: "phase", "seconds" since the beginning, and figures.
    {dictionary_, weights_, model_order_, expansion_, coef_, coef_std_, domain_, window_, volume_,
    nodes_, integral_, scales_, exposure_, n_points_, n_rejected_, n_features_in_, kernel_,
    regularization_, epochs_}
    """

    _: KW_ONLY
    client: Any = None

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        *,
        sample_weight: Any = None,
        exposure: float | None = None,
    ) -> Self:
        """Learn from all points, forgetting what was learned before.

        Parameters
        ----------
        X : Dask array or dataframe, or list of delayed objects or futures
            The points. What is in memory here is cut into parts of 10,000 rows.
        y : None
            Ignored; present by convention.
        sample_weight : the same as X, optional
            How many points each of them stands for.
        exposure : float, optional
            For how long, or how many times, these points were looked for.

        Returns
        -------
        self : estimator
            The estimator.
        """
        return self._begin(X, None, sample_weight, exposure=exposure)

    def partial_fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        *,
        sample_weight: Any = None,
        exposure: float | None = None,
    ) -> Self:
        """Learn from more points, such as those of the next day, with the settings of the first.

        Parameters
        ----------
        X : Dask array or dataframe, or list of delayed objects or futures
            The points.
        y : None
            Ignored; present by convention.
        sample_weight : the same as X, optional
            How many points each of them stands for.
        exposure : float, optional
            For how long these points were looked for; with all of a stream or with none.

        Returns
        -------
        self : estimator
            The estimator.
        """
        return self._go_on(X, None, sample_weight, exposure=exposure)

    def score_samples(self, X: Any) -> Any:
        """Return the logarithm of the density at each point, lazily for collections of Dask.

        {X -> log_density}
        """
        return ask(X, self.to_local(), "score_samples") if is_lazy(X) else super().score_samples(X)

    def intensity(self, X: Any, *, return_std: bool = False) -> Any:
        """Return the intensity at each point, lazily for collections of Dask.

        Parameters
        ----------
        X : Dask array or dataframe, list of delayed objects or futures, or array-like
            The points.
        return_std : bool, default=False
            Whether to return standard deviations, too; of points in memory only.

        Returns
        -------
        intensity : of the same kind
            Expected points per unit of volume, and of exposure if that was given; 0 outside the
            domain.
        std : ndarray
            If asked for.
        """
        if not is_lazy(X):
            return super().intensity(X, return_std=return_std)
        if return_std:
            raise ValueError("Standard deviations are of points in memory: use to_local().")
        return ask(X, self.to_local(), "intensity")

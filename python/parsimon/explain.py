"""Why a model predicts what it predicts: points that speak for it, and shares of the features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils import check_array, check_consistent_length

from ._checks import check_count
from ._formula import Classes, Formula, Votes, formula_of
from .kernels import Constant, Gaussian, Kernel, Laplacian, Product, Scaled, Sum

Array = NDArray[np.float64]

__all__ = ["Prototypes", "Shapley", "prototypes", "shapley_values"]


@dataclass(frozen=True)
class Prototypes:
    """What :func:`prototypes` returns.

    Attributes
    ----------
    values : ndarray of shape (n_samples,)
        The output that is explained: the sum of all contributions, and the intercept.
    intercept : ndarray of shape (n_samples,)
        What no point contributes.
    points : ndarray of int of shape (n_samples, n_prototypes)
        Places in the model's dictionary of those that contribute most, whatever their sign.
    contributions : ndarray of shape (n_samples, n_prototypes)
        What each of them contributes: positive speaks for the output, negative against it.
    rest : ndarray of shape (n_samples,)
        What all other points contribute together.
    rows : ndarray of shape (n_samples, n_prototypes, n_features)
        These points themselves, in the units of X.
    samples : ndarray of int of shape (n_samples, n_prototypes) or None
        Which of the samples that were given each of them is; -1 if it is none of them, as a point
        that two were merged to, or one that has moved: ``parsimon.compress(model, refine=False)``
        leaves points where they are.
    labels : ndarray of shape (n_samples, n_prototypes) or None
        The labels of these samples, where `samples` is not -1.
    """

    values: Array
    intercept: Array
    points: NDArray[np.int64]
    contributions: Array
    rest: Array
    rows: Array
    samples: NDArray[np.int64] | None = None
    labels: NDArray[Any] | None = None


def prototypes(
    model: Any,
    X: ArrayLike,
    *,
    n_prototypes: int = 5,
    output: int | None = None,
    samples: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> Prototypes:
    """Tell which points of a model speak for and against each prediction.

    Parameters
    ----------
    model : estimator, pipeline or KernelExpansion
        Fitted; a scaler in front is looked through.
    X : array-like of shape (n_samples, n_features)
        The samples.
    n_prototypes : int, default=5
        How many points for each sample.
    output : int, optional
        Which output of the model is explained. By default that of the predicted class, or the first
        if there is no such thing; for two classes with one output, positive speaks for the second.
        Of a one-vs-one classifier, which has an output for each pair of classes, it is the sum of
        those that the predicted class is in, positive where they speak for it.
    samples : array-like of shape (n_known, n_features), optional
        What the model was trained on, or a part of it: each point is looked for among them.
    labels : array-like of shape (n_known,), optional
        Their labels or targets.

    Returns
    -------
    Prototypes
        The points and what they contribute.

    Examples
    --------
    >>> from parsimon import POLKClassifier
    >>> from parsimon.datasets import make_multidist
    >>> from parsimon.explain import prototypes
    >>> X, y = make_multidist(1000, random_state=0)
    >>> model = POLKClassifier(random_state=0).fit(X, y)
    >>> found = prototypes(model, X[:3], n_prototypes=2, samples=X, labels=y)
    >>> found.points.shape
    (3, 2)
    >>> bool((X[found.samples] == found.rows).all() and (y[found.samples] == found.labels).all())
    True
    >>> total = found.contributions.sum(axis=1) + found.rest + found.intercept
    >>> bool(abs(total - model.decision_function(X[:3]).max(axis=1)).max() < 1e-9)
    True
    """
    check_count("n_prototypes", n_prototypes)
    formula, rows = _checked(model, X)
    weights, intercept = _explained(formula, rows, output)
    kernel = formula.kernel(formula.scaled(rows), formula.dictionary)
    all_of_them = kernel * weights
    count = min(int(n_prototypes), all_of_them.shape[1])
    order = np.argsort(-np.abs(all_of_them), axis=1, kind="stable")[:, :count]
    shown = np.take_along_axis(all_of_them, order, axis=1)
    total = all_of_them.sum(axis=1)
    places, names = _origins(model, formula, order, samples, labels)
    rows = (
        formula.dictionary if formula.scaling is None else formula.scaling.undo(formula.dictionary)
    )
    rest = total - shown.sum(axis=1)
    return Prototypes(total + intercept, intercept, order, shown, rest, rows[order], places, names)


def _origins(
    model: Any, formula: Formula, order: NDArray[np.int64], samples: Any, labels: Any
) -> tuple[NDArray[np.int64] | None, NDArray[Any] | None]:
    """Return which samples points are, and the labels of these."""
    if samples is None:
        if labels is not None:
            raise ValueError("labels were given without samples, which they belong to.")
        return None, None
    known = formula.scaled(_checked(model, samples)[1])
    if labels is not None:
        check_consistent_length(known, labels)
    used, inverse = np.unique(order, return_inverse=True)
    points = formula.dictionary[used]
    nearest = np.asarray(pairwise_distances_argmin(points, known))
    # A scaler that is folded in rounds otherwise than the one in front did.
    away = np.abs(points - known[nearest]).max(axis=1)
    nearest[away > 1e-9 * np.maximum(np.abs(points).max(axis=1), 1)] = -1
    places = nearest[inverse.reshape(order.shape)]
    return places, None if labels is None else np.asarray(labels)[places]


@dataclass(frozen=True)
class Shapley:
    """What :func:`shapley_values` returns.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_features) or (n_samples, n_features, n_outputs)
        The share of each feature in each output; without the last axis if there is one output.
    base : ndarray of shape () or (n_outputs,)
        The output where no feature is known. With the shares added, it is the output.
    """

    values: Array
    base: Array


def shapley_values(model: Any, X: ArrayLike, *, background: ArrayLike | None = None) -> Shapley:
    """Share the outputs of a model out among the features, exactly.

    A Gaussian or Laplacian kernel is a product over the features, so that a function is
    sum_i w_i prod_j k_j(d_ij, x_j). Where feature j is unknown, its factor is m_ij: 1, as if it
    fitted every point, or its mean over background samples. The Shapley values of this game are

        phi_j = sum_i w_i (k_ij - m_ij) int_0^1 prod_{l != j} (t k_il + (1 - t) m_il) dt

    and the integral of the polynomial is exact with Gauss-Legendre nodes, half as many as features.
    So the time for each sample grows with the points and with the square of the features: about a
    millisecond for 300 points of 20 features, a second for 784.

    Parameters
    ----------
    model : estimator, pipeline or KernelExpansion
        Fitted, with a kernel that is Gaussian, Laplacian or constant, or made of these.
    X : array-like of shape (n_samples, n_features)
        The samples.
    background : array-like of shape (n_background, n_features), optional
        Samples over which the factor of an unknown feature is averaged.

    Returns
    -------
    Shapley
        The shares, and the output where no feature is known.

    Examples
    --------
    >>> from parsimon import POLKRegressor
    >>> from sklearn.datasets import make_friedman1
    >>> from parsimon.explain import shapley_values
    >>> X, y = make_friedman1(500, random_state=0)  # five of ten features matter
    >>> model = POLKRegressor(random_state=0).fit(X, y)
    >>> found = shapley_values(model, X[:50], background=X)
    >>> bool(abs(found.base + found.values.sum(axis=1) - model.predict(X[:50])).max() < 1e-9)
    True
    >>> shares = abs(found.values).mean(axis=0)
    >>> bool(shares[:5].min() > 2 * shares[5:].max())
    True
    """
    formula, rows = _checked(model, X)
    samples = formula.scaled(rows)
    known = None if background is None else formula.scaled(_checked(model, background)[1])
    values = np.zeros((len(rows), formula.n_features, formula.n_outputs))
    base = formula.intercept.astype(float).copy()
    for scale, lengths, power in _terms(formula.kernel, formula.n_features):
        part, start = _shares(formula, (lengths, power), samples, known)
        values += scale * part
        base += scale * start
    if formula.n_outputs == 1:
        return Shapley(values[:, :, 0], base[0])
    return Shapley(values, base)


def _checked(model: Any, X: ArrayLike) -> tuple[Formula, Array]:
    formula = formula_of(model)
    missing = formula.scaling is not None and formula.scaling.takes_missing
    rows = check_array(
        X, dtype=np.float64, input_name="X", ensure_all_finite="allow-nan" if missing else True
    )
    if rows.shape[1] != formula.n_features:
        raise ValueError(f"X has {rows.shape[1]} features, but the model has {formula.n_features}.")
    return formula, rows


def _explained(formula: Formula, X: Array, output: int | None) -> tuple[Array, Array]:
    """Return the weights, a row for each sample, and the intercepts of what is explained."""
    head, count = formula.head, formula.n_outputs
    weights, intercept = formula.weights, formula.intercept
    if output is not None:
        if type(output) is not int or not 0 <= output < count:
            raise ValueError(f"output must be an integer from 0 to {count - 1}; got {output!r}.")
        chosen = np.full(len(X), output, dtype=np.int64)
    elif isinstance(head, Votes):
        # Of the pairs that the predicted class is in, those outputs that speak for it.
        chosen = np.searchsorted(head.classes, head.labels(formula.values(X)))
        weights, intercept = weights @ head.tournament, intercept @ head.tournament
    elif isinstance(head, Classes) and count > 1:
        chosen = np.asarray(formula.values(X).argmax(axis=1))
    else:
        chosen = np.zeros(len(X), dtype=np.int64)
    return weights.T[chosen], intercept[chosen]


def _terms(kernel: Kernel, features: int) -> list[tuple[float, list[Array], list[float]]]:
    """Return a kernel as a sum of multiples of products over the features.

    A product is that of exp(-sum_j |(x_j - y_j) / length_j|^power / power) over all lengths and
    powers.
    """
    if isinstance(kernel, Sum):
        return [term for part in kernel.parts for term in _terms(part, features)]
    if isinstance(kernel, Scaled):
        inner = _terms(kernel.kernel, features)
        return [(kernel.scale * scale, lengths, powers) for scale, lengths, powers in inner]
    if isinstance(kernel, Constant):
        return [(1.0, [], [])]
    if isinstance(kernel, Product):
        found = [(1.0, list[Array](), list[float]())]
        for part in kernel.parts:
            found = [
                (a * b, lengths + more, powers + others)
                for a, lengths, powers in found
                for b, more, others in _terms(part, features)
            ]
        return found
    if isinstance(kernel, (Gaussian, Laplacian)):
        lengths = np.broadcast_to(np.asarray(kernel.bandwidth, dtype=np.float64), (features,))
        return [(1.0, [lengths], [2.0 if isinstance(kernel, Gaussian) else 1.0])]
    raise ValueError(
        f"Shapley values are exact for kernels that are products over the features, which "
        f"{kernel!r} is not: Gaussian and Laplacian kernels, constants, and what is made of "
        f"them are."
    )


def _factors(kind: tuple[list[Array], list[float]], points: Array, X: Array) -> Array:
    """Return k_j(d_ij, x_j) for one sample or several: of shape (..., n_points, n_features)."""
    exponent = np.zeros((*X.shape[:-1], *points.shape))
    for lengths, power in zip(*kind, strict=True):
        away = np.abs((X[..., None, :] - points) / lengths)
        exponent -= away**power / power
    return np.asarray(np.exp(exponent))


def _shares(
    formula: Formula, kind: tuple[list[Array], list[float]], X: Array, background: Array | None
) -> tuple[Array, Array]:
    points, weights = formula.dictionary, formula.weights
    unknown = np.ones(points.shape)
    if background is not None:
        unknown = np.zeros(points.shape)
        for row in background:
            unknown += _factors(kind, points, row) / len(background)
    features = points.shape[1]
    places, shares = np.polynomial.legendre.leggauss((features + 1) // 2)
    values = np.empty((len(X), features, weights.shape[1]))
    for row, x in enumerate(X):
        known = _factors(kind, points, x)
        integral = np.zeros_like(known)
        for place, share in zip((places + 1) / 2, shares / 2, strict=True):
            integral += share * _others(place * known + (1 - place) * unknown)
        values[row] = ((known - unknown) * integral).T @ weights
    return values, np.asarray(unknown.prod(axis=1) @ weights)


def _others(factors: Array) -> Array:
    """Return the product of all factors but one, for each one; some may be 0."""
    ones = np.ones((len(factors), 1))
    before = np.cumprod(np.hstack([ones, factors[:, :-1]]), axis=1)
    after = np.cumprod(np.hstack([ones, factors[:, :0:-1]]), axis=1)[:, ::-1]
    return np.asarray(before * after)

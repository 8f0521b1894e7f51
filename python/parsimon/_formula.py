"""How a fitted model predicts, as numbers alone: what every export writes down."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ._core import parse_loss
from ._labels import Labels
from .expansion import KernelExpansion
from .kernels import Constant, Function, Kernel, Product, Scaled, SinglePrecision, Sum

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Scaling:
    """What happens to a sample first: (x - mean) * factor, and 0 for what may be missing and is."""

    mean: Array
    factor: Array
    takes_missing: bool = False

    def __call__(self, X: Array) -> Array:
        scaled = (X - self.mean) * self.factor
        return np.where(np.isnan(scaled), 0.0, scaled) if self.takes_missing else scaled

    def undo(self, scaled: Array) -> Array:
        """Return samples as they were; what is always scaled to 0 is the mean."""
        return np.asarray(
            self.mean
            + np.divide(scaled, self.factor, out=np.zeros_like(scaled), where=self.factor != 0)
        )

    def then(self, other: Scaling) -> Scaling:
        """Return both as one: (x - m1) f1, then (. - m2) f2."""
        if other.takes_missing and not self.takes_missing:
            raise ValueError("A scaler that takes missing numbers must be the first of a pipeline.")
        if self.takes_missing and other.mean.any():
            raise ValueError(
                "A scaler behind a StreamingScaler that moves its zero cannot be folded into one: "
                "missing numbers would become another number."
            )
        mean = self.mean + np.divide(
            other.mean, self.factor, out=np.zeros_like(self.mean), where=self.factor != 0
        )
        return Scaling(mean, self.factor * other.factor, self.takes_missing)


@dataclass(frozen=True)
class Values:
    """The outputs are what is predicted: of one dimension if there is one and `single`."""

    single: bool = True


@dataclass(frozen=True)
class Classes:
    """The largest output wins, or the sign of a single one; `link` turns them into probabilities.

    `link` is the name of a loss of the core. With a calibration, its slope and offset, the
    probabilities of two classes are those of logits. Where they are `averaged` over what a Gaussian
    process does not know, the outputs alone do not tell them.
    """

    classes: NDArray[Any]
    link: str | None = None
    calibration: tuple[Array, Array] | None = None
    averaged: bool = False

    def scores(self, values: Array) -> Array:
        """Return the decision function."""
        return Labels(self.classes).scores(values)

    def labels(self, values: Array) -> NDArray[Any]:
        """Return the label of each sample."""
        return Labels(self.classes).decode(self.scores(values))

    def probabilities(self, values: Array) -> Array:
        """Return the probability of each class."""
        if len(self.classes) == 1:
            return np.ones((len(values), 1))
        if self.calibration is not None:
            slope, offset = self.calibration
            return binary(values[:, 0] * slope[0] + offset[0])
        return np.asarray(parse_loss(str(self.link)).probabilities(values))


@dataclass(frozen=True)
class Votes:
    """One output for each pair of classes, (0, 1), (0, 2), ..., (1, 2), ...; positive: the first.

    The class with most votes wins. `per_class` has one score for each class instead of one for each
    pair, as SVC(decision_function_shape="ovr") does; `by_score` lets them break ties.
    """

    classes: NDArray[Any]
    per_class: bool = True
    by_score: bool = False
    calibration: tuple[Array, Array] | None = None

    @property
    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first and the second class of each output."""
        first, second = np.triu_indices(len(self.classes), 1)
        return first, second

    @property
    def tournament(self) -> Array:
        """Who gains, 1, and who loses, -1, from each output: of shape (n_pairs, n_classes)."""
        first, second = self.pairs
        table = np.zeros((len(first), len(self.classes)))
        table[np.arange(len(first)), first] = 1
        table[np.arange(len(first)), second] = -1
        return table

    def votes(self, values: Array) -> Array:
        """Return how many pairs each class wins."""
        won = (values > 0).astype(float)
        table = self.tournament
        return np.asarray(won @ (table > 0) + (1 - won) @ (table < 0))

    def scores(self, values: Array) -> Array:
        """Return the decision function."""
        if not self.per_class:
            return values
        confidence = values @ self.tournament
        return np.asarray(self.votes(values) + confidence / (3 * (np.abs(confidence) + 1)))

    def labels(self, values: Array) -> NDArray[Any]:
        """Return the label of each sample."""
        table = self.scores(values) if self.by_score else self.votes(values)
        return np.asarray(self.classes[table.argmax(axis=1)])


@dataclass(frozen=True)
class OneClass:
    """Samples whose output is below the offset are outliers."""

    offset: float

    def scores(self, values: Array) -> Array:
        """Return the decision function."""
        return np.asarray(values[:, 0] - self.offset)

    def labels(self, values: Array) -> NDArray[np.int64]:
        """Return 1 for inliers and -1 for outliers."""
        return np.where(self.scores(values) < 0, -1, 1)


@dataclass(frozen=True)
class Density:
    """The output z gives the density f / volume in a box: exp(z), z, or r(x) z; outside it is 0.

    ``r(x) = 1/2 + height * exp(-sum(((x - center) / width)^2) / 2)``, the parameters in this order.
    A box without bounds has a volume of 1. Where the box is `periodic` along a feature, samples are
    folded into it first.
    """

    mirror: str
    parameters: Array
    lower: Array
    upper: Array
    log_volume: float
    periodic: NDArray[np.bool_]

    def folded(self, X: Array) -> Array:
        """Return samples with what goes round brought into the box."""
        if not self.periodic.any():
            return X
        low, width = self.lower[self.periodic], (self.upper - self.lower)[self.periodic]
        X = X.copy()
        X[:, self.periodic] = low + np.mod(X[:, self.periodic] - low, width)
        return X

    @property
    def is_bounded(self) -> bool:
        """Whether there is anything outside."""
        return bool(np.isfinite(self.lower).any())

    def center_and_width(self) -> tuple[float, Array, Array]:
        """Return height, center and width of the Mahalanobis map."""
        count = len(self.lower)
        return (
            float(self.parameters[0]),
            self.parameters[1 : count + 1],
            self.parameters[count + 1 :],
        )

    def log_density(self, values: Array, X: Array) -> Array:
        """Return the logarithm of the density, of values at folded samples."""
        z, X = values[:, 0], self.folded(X)
        if self.mirror != "kl":
            if self.mirror == "mahalanobis":
                height, center, width = self.center_and_width()
                square = (((X - center) / width) ** 2).sum(axis=1)
                z = z * (0.5 + height * np.exp(-0.5 * square))
            with np.errstate(divide="ignore", invalid="ignore"):
                z = np.where(z > 0, np.log(z), -np.inf)
        inside = ((self.lower <= X) & (self.upper >= X)).all(axis=1)
        return np.where(inside, z - self.log_volume, -np.inf)


Head = Values | Classes | Votes | OneClass | Density


@dataclass(frozen=True)
class Formula:
    """``head(sum_m weights[m] * kernel(dictionary[m], scaling(x)) + intercept)``."""

    kernel: Kernel
    dictionary: Array
    weights: Array
    intercept: Array
    head: Head
    scaling: Scaling | None = None

    @property
    def n_features(self) -> int:
        """How many numbers a sample has."""
        return int(self.dictionary.shape[1])

    @property
    def n_outputs(self) -> int:
        """How many numbers the function gives."""
        return int(self.weights.shape[1])

    def scaled(self, X: Array) -> Array:
        """Return samples as the function takes them."""
        X = X if self.scaling is None else self.scaling(X)
        return self.head.folded(X) if isinstance(self.head, Density) else X

    def values(self, X: Array) -> Array:
        """Return the outputs, before the head."""
        values = KernelExpansion(self.kernel, self.dictionary, self.weights)(self.scaled(X))
        return np.asarray(values + self.intercept)


def unwritten_probabilities(head: Head, *, iterates: bool) -> str | None:
    """Say why the probabilities of a model are not written down, if they are not.

    ``iterates`` is whether what is written can repeat steps until something holds.
    """
    if isinstance(head, Votes) and head.calibration is not None and not iterates:
        return (
            "those of pairs of classes are put together by solving a system of equations for each "
            "sample"
        )
    if isinstance(head, Classes) and head.averaged:
        return "those of a Gaussian process are averages over what it does not know"
    return None


def warn_of_probabilities(head: Head, what: str, *, iterates: bool) -> None:
    """Warn if probabilities that a model has are not written down."""
    why = unwritten_probabilities(head, iterates=iterates)
    if why is not None:
        warnings.warn(
            f"{what} labels and scores, and no probabilities: {why}. They remain in Python.",
            UserWarning,
            stacklevel=3,
        )


def binary(logits: Array) -> Array:
    """Return the probabilities of two classes, of which the second has these logits."""
    return np.asarray(parse_loss("binary_logistic").probabilities(logits[:, None]))


def formula_of(model: Any) -> Formula:
    """Return how a fitted model predicts, or say why that cannot be written down."""
    if isinstance(model, Formula):
        return model
    if isinstance(model, KernelExpansion):
        weights = np.asarray(model._core.weights)
        head = Values(single=model.weights.ndim == 1)
        return _checked(
            Formula(model.kernel, model.dictionary, weights, np.zeros(weights.shape[1]), head)
        )
    if isinstance(model, Pipeline):
        check_is_fitted(model)
        steps = [step for _, step in model.steps]
        return _behind([step for step in steps[:-1] if step != "passthrough"], steps[-1])
    if hasattr(model, "scaler_") and hasattr(model, "estimator_"):  # a StreamingPipeline
        check_is_fitted(model)
        return _behind([] if model.scaler_ is None else [model.scaler_], model.estimator_)
    model = asked_for(model)
    if not hasattr(model, "_head"):
        raise TypeError(
            f"{type(model).__name__} is no model of parsimon: give one of its fitted estimators, a "
            f"pipeline that ends with one, or a KernelExpansion. Of scikit-learn's kernel models, "
            f"parsimon.compress makes one of ours."
        )
    check_is_fitted(model)
    core = model._model.expansion
    intercept, scale = model._affine()
    weights = np.asarray(core.weights) * scale
    intercept = np.broadcast_to(np.asarray(intercept, dtype=float), (weights.shape[1],))
    dictionary = np.asarray(core.dictionary)
    return _checked(Formula(model.kernel_, dictionary, weights, intercept, model._head()))


def asked_for(model: Any) -> Any:
    """Return the estimator that a fitted model asks, if it has one that answers alone."""
    kind = type(model).__name__
    if kind == "MarkedIntensity":
        raise TypeError(
            "A MarkedIntensity is one intensity for each mark, each a function of its own: give "
            "the fitted model's intensities_[i], whose mark is classes_[i]."
        )
    if kind == "SLKLRegressorCV":
        check_is_fitted(model)
        return model.best_estimator_
    return model


def _behind(scalers: list[Any], model: Any) -> Formula:
    formula = formula_of(model)
    scaling = None
    for step in scalers:
        further = _scaling(step, formula.n_features)
        scaling = further if scaling is None else scaling.then(further)
    return replace(formula, scaling=scaling)


def _scaling(step: Any, features: int) -> Scaling:
    kind = type(step).__name__
    zeros, ones = np.zeros(features), np.ones(features)

    def or_else(value: Any, otherwise: Array) -> Array:
        return otherwise if value is None else np.asarray(value, dtype=float)

    if kind == "StandardScaler":
        return Scaling(or_else(step.mean_, zeros), 1 / or_else(step.scale_, ones))
    if kind == "RobustScaler":
        return Scaling(or_else(step.center_, zeros), 1 / or_else(step.scale_, ones))
    if kind == "MaxAbsScaler":
        return Scaling(zeros, 1 / np.asarray(step.scale_))
    if kind == "MinMaxScaler" and not step.clip:
        return Scaling(-step.min_ / step.scale_, np.asarray(step.scale_))
    if kind == "StreamingScaler":
        if step.categories_:
            raise ValueError(
                "The StreamingScaler in front encodes columns of text, and an export takes numbers "
                "alone: encode them yourself, and export the estimator behind it."
            )
        return Scaling(step.mean_, 1 / step.scale_, takes_missing=True)
    raise ValueError(
        f"A {kind} in front of a model cannot be folded into it; StandardScaler, RobustScaler, "
        f"MaxAbsScaler, MinMaxScaler without clip and StreamingScaler can. Transform the samples "
        f"first, and export the last step."
    )


def _checked(formula: Formula) -> Formula:
    """Refuse a kernel that is no formula; make one that is as simple as it can be."""
    kernel = _plain(formula.kernel)
    if not isinstance(kernel, Sum):
        return replace(formula, kernel=kernel)
    # What a constant adds is the same everywhere.
    constant = sum(_constant(part) for part in kernel.parts)
    others = tuple(part for part in kernel.parts if not _constant(part))
    if not others:
        return replace(formula, kernel=kernel)
    return replace(
        formula,
        kernel=others[0] if len(others) == 1 else Sum(others),
        intercept=formula.intercept + constant * formula.weights.sum(axis=0),
    )


def _constant(kernel: Kernel) -> float:
    if isinstance(kernel, Scaled) and isinstance(kernel.kernel, Constant):
        return kernel.scale
    return 1.0 if isinstance(kernel, Constant) else 0.0


def _plain(kernel: Kernel) -> Kernel:
    if isinstance(kernel, Function):
        raise ValueError(
            f"The kernel {kernel!r} is a Python function, which cannot be exported; the other "
            f"kernels of parsimon.kernels can."
        )
    if isinstance(kernel, SinglePrecision):
        return _plain(kernel.kernel)
    if isinstance(kernel, Scaled):
        return Scaled(kernel.scale, _plain(kernel.kernel))
    if isinstance(kernel, (Sum, Product)):
        return type(kernel)(tuple(map(_plain, kernel.parts)))
    return kernel

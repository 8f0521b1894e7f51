"""Large models: what their function is, and what becomes of a smaller one."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.special import gammaln
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from parsimon import kernels
from parsimon._formula import Classes, Density, Head, OneClass, Values, Votes, asked_for, formula_of
from parsimon._model import ModelEstimator
from parsimon.expansion import KernelExpansion
from parsimon.slkl._common import SLKL

from ._kernels import by_name, of_process
from ._models import (
    CompressedClassifier,
    CompressedDensity,
    CompressedOneClass,
    CompressedRegressor,
)
from ._process import explained_root

Array = NDArray[np.float64]
_NOTHING = np.empty(0)
# From a reader of a model to who called compress.
_OF_THE_CALLER = 5


@dataclass(frozen=True)
class Large:
    """A function, what it means, and how a model is made of a smaller one.

    ``make`` returns that model, and a bound on the change of its variances relative to k(x, x),
    which is None if it has none. ``may_move`` is whether its points may be others than before.
    """

    expansion: KernelExpansion
    intercept: Array
    head: Head
    make: Callable[[KernelExpansion], tuple[Any, float | None]]
    may_move: bool = True

    def values(self, expansion: KernelExpansion, X: Array) -> Array:
        """Return the outputs of the large function, or of a smaller one, at samples."""
        return np.asarray(expansion(X) + self.intercept)


def large_model(model: Any) -> Large:
    """Return a model as a function, or say why it is none that can be compressed."""
    if isinstance(model, KernelExpansion):
        return _of_expansion(model)
    model = asked_for(model)
    if isinstance(model, ModelEstimator):
        check_is_fitted(model)
        return _of_ours(model)
    # By name: Intel's models expose the same attributes, and derive from scikit-learn's or not.
    names = [cls.__name__ for cls in type(model).__mro__]
    for name, read in _READERS.items():
        if name in names:
            check_is_fitted(model)
            return read(model)
    raise TypeError(
        f"A {type(model).__name__} cannot be compressed: give a fitted {', '.join(_READERS)}, an "
        f"estimator of parsimon, a KernelExpansion, or a pipeline that ends with one of them."
    )


def _expansion(kernel: kernels.Kernel, points: Any, weights: Any) -> KernelExpansion:
    points = points.toarray() if sparse.issparse(points) else np.asarray(points)
    weights = weights.toarray() if sparse.issparse(weights) else np.asarray(weights)
    return KernelExpansion(kernel, points.astype(np.float64), np.asarray(weights, dtype=np.float64))


def _of_expansion(function: KernelExpansion) -> Large:
    flat = function.weights.ndim == 1
    wide = KernelExpansion._wrap(function.kernel, function._core, flat=False)
    head = Values(single=flat)

    def make(small: KernelExpansion) -> tuple[Any, None]:
        return KernelExpansion._wrap(small.kernel, small._core, flat=flat), None

    return Large(wide, np.zeros(wide.weights.shape[1]), head, make)


def _of_ours(model: ModelEstimator) -> Large:
    formula, core = formula_of(model), model._model.expansion
    intercept, scale = model._affine()
    weights = np.asarray(core.weights) * scale
    # The kernel with its constant, in whose space the points were chosen.
    function = KernelExpansion(model.kernel_, core.dictionary, weights)
    intercept = np.broadcast_to(np.asarray(intercept, dtype=float), (weights.shape[1],))
    head = formula.head
    if isinstance(head, Density):
        return Large(function, intercept, head, lambda small: (_density(small, head), None))

    root = getattr(model, "_root_", np.empty((0, 0)))

    def make(small: KernelExpansion) -> tuple[Any, float | None]:
        smaller = copy.deepcopy(model)
        smaller.expansion_ = small
        if not root.size:
            return smaller, None
        points = np.asarray(core.dictionary)
        return smaller, explained_root(model.kernel_, points, root.T.__matmul__, small.dictionary)[
            1
        ]

    # Points of SLKL are training samples.
    may_move = not root.size and not isinstance(model, SLKL)
    return Large(function, intercept, head, make, may_move)


def _density(small: KernelExpansion, head: Density) -> CompressedDensity:
    bounded = head.is_bounded
    box = np.stack([head.lower, head.upper]) if bounded else np.zeros((2, len(head.lower)))
    made: CompressedDensity = CompressedDensity()._set(
        small,
        intercept_=np.zeros(1),
        _mirror_=head.mirror,
        _mirror_numbers_=head.parameters,
        _box_=box,
        _bounded_=bounded,
        _log_volume_=head.log_volume,
        _periodic_=head.periodic,
    )
    return made


# -- support vector machines ----------------------------------------------------------------------


def _support_vectors(model: Any) -> tuple[kernels.Kernel, Any]:
    kernel = by_name(model, getattr(model, "_gamma", 1.0))
    points = model.support_vectors_
    if callable(model.kernel):
        points = np.asarray(model._BaseLibSVM__Xfit)[model.support_]
    return kernel, points


def _pairs(model: Any) -> Array:
    """Return the weights of each pair of classes, one row for each support vector."""
    dual = model.dual_coef_
    dual = dual.toarray() if sparse.issparse(dual) else np.asarray(dual)
    classes = len(model.classes_)
    if classes == 2:
        return np.asarray(dual.T)
    ends = np.concatenate([[0], np.cumsum(model.n_support_)])
    first, second = np.triu_indices(classes, 1)
    weights = np.zeros((dual.shape[1], len(first)))
    for pair, (i, j) in enumerate(zip(first, second, strict=True)):
        weights[ends[i] : ends[i + 1], pair] = dual[j - 1, ends[i] : ends[i + 1]]
        weights[ends[j] : ends[j + 1], pair] = dual[i, ends[j] : ends[j + 1]]
    return weights


def _of_svc(model: Any) -> Large:
    kernel, points = _support_vectors(model)
    function = _expansion(kernel, points, _pairs(model))
    intercept = np.atleast_1d(np.asarray(model.intercept_, dtype=float))
    slope = offset = _NOTHING
    votes = len(model.classes_) > 2
    if getattr(model, "probability", False) not in (False, "deprecated") and _is_calibrated(model):
        # P(first) = 1 / (1 + exp(A f + B)) in LIBSVM, where f is positive for the first class.
        slope = -np.asarray(model._probA if hasattr(model, "_probA") else model.probA_, dtype=float)
        offset = -np.asarray(
            model._probB if hasattr(model, "_probB") else model.probB_, dtype=float
        )
        if not votes:  # the logit of the second class, whose decision function has the other sign
            offset = -offset
    calibration = (slope, offset) if len(slope) else None
    per_class = getattr(model, "decision_function_shape", "ovr") == "ovr"
    by_score = bool(per_class and getattr(model, "break_ties", False))
    head: Head = Classes(model.classes_, calibration=calibration)
    if votes:
        head = Votes(model.classes_, per_class, by_score, calibration)

    def make(small: KernelExpansion) -> tuple[Any, None]:
        made = CompressedClassifier()._set(
            small,
            intercept_=intercept,
            _labels_=np.asarray(model.classes_),
            _votes_=votes,
            _per_class_=per_class,
            _by_score_=by_score,
            _slope_=slope,
            _offsets_=offset,
            _root_=np.empty((0, 0)),
        )
        return made, None

    return Large(function, intercept, head, make)


def _is_calibrated(model: Any) -> bool:
    """Return whether the calibration of a model is in its attributes."""
    # Intel's models keep it in a classifier of their own, and zeros where LIBSVM has numbers.
    slope = model._probA if hasattr(model, "_probA") else model.probA_
    elsewhere = hasattr(model, "clf_prob") or (np.size(slope) > 0 and not np.any(slope))
    if not elsewhere:
        return np.size(slope) > 0
    warnings.warn(
        f"The {type(model).__name__} of {type(model).__module__} keeps its calibration where it "
        f"cannot be read: the compressed model has no predict_proba. Fit scikit-learn's SVC if you "
        f"need one.",
        UserWarning,
        stacklevel=_OF_THE_CALLER,
    )
    return False


def _of_svr(model: Any) -> Large:
    kernel, points = _support_vectors(model)
    dual = model.dual_coef_
    dual = dual.toarray() if sparse.issparse(dual) else np.asarray(dual)
    return _regression(_expansion(kernel, points, dual.T), model.intercept_, single=True)


def _of_one_class(model: Any) -> Large:
    kernel, points = _support_vectors(model)
    dual = model.dual_coef_
    dual = dual.toarray() if sparse.issparse(dual) else np.asarray(dual)
    function, offset = _expansion(kernel, points, dual.T), float(np.ravel(model.offset_)[0])

    def make(small: KernelExpansion) -> tuple[Any, None]:
        return CompressedOneClass()._set(small, intercept_=np.zeros(1), offset_=offset), None

    return Large(function, np.zeros(1), OneClass(offset), make)


# -- regression -----------------------------------------------------------------------------------


def _regression(function: KernelExpansion, intercept: Any, *, single: bool) -> Large:
    intercept = np.broadcast_to(
        np.asarray(intercept, dtype=float).ravel(), (function.weights.shape[1],)
    ).copy()

    def make(small: KernelExpansion) -> tuple[Any, None]:
        made = CompressedRegressor()._set(
            small,
            intercept_=intercept,
            _single_=single,
            _root_=np.empty((0, 0)),
            _noise_=0.0,
            _deviation_scale_=np.ones(1),
        )
        return made, None

    return Large(function, intercept, Values(single), make)


def _of_ridge(model: Any) -> Large:
    points = model.X_fit_
    gamma = 1 / points.shape[1] if model.gamma is None else model.gamma
    dual = np.asarray(model.dual_coef_)
    function = _expansion(by_name(model, gamma), points, dual.reshape(len(dual), -1))
    return _regression(function, np.zeros(function.weights.shape[1]), single=dual.ndim == 1)


def _of_process(model: Any) -> Large:
    if not hasattr(model, "X_train_"):
        raise NotFittedError("The GaussianProcessRegressor is not fitted yet: it has no X_train_.")
    kernel, noise = of_process(model.kernel_)
    if kernel is None:
        raise ValueError(f"The kernel {model.kernel_} is noise alone: there is no function.")
    scale = np.atleast_1d(np.asarray(model._y_train_std, dtype=float))
    mean = np.atleast_1d(np.asarray(model._y_train_mean, dtype=float))
    alpha = np.asarray(model.alpha_)
    X = np.asarray(model.X_train_, dtype=float)
    function = _expansion(kernel, X, alpha.reshape(len(alpha), -1) * scale)
    single = alpha.ndim == 1
    explain = partial(linalg.solve_triangular, model.L_, lower=True)

    def make(small: KernelExpansion) -> tuple[Any, float]:
        root, bound = explained_root(kernel, X, explain, small.dictionary)
        made = CompressedRegressor()._set(
            small,
            intercept_=np.broadcast_to(mean, (function.weights.shape[1],)).copy(),
            _single_=single,
            _root_=root,
            _noise_=noise,
            _deviation_scale_=scale,
        )
        return made, bound

    return Large(function, mean, Values(single), make, may_move=False)


def _of_process_classifier(model: Any) -> Large:
    base = model.base_estimator_
    if len(model.classes_) > 2:
        raise ValueError(
            f"A GaussianProcessClassifier of {len(model.classes_)} classes is one process, with a "
            f"kernel of its own, for each class or pair of them: its functions are in different "
            f"spaces. Compress classifiers of two classes."
        )
    kernel, noise = of_process(base.kernel_)
    if kernel is None or noise:
        raise ValueError(f"The kernel {base.kernel_} of a classifier cannot have white noise.")
    X = np.asarray(base.X_train_, dtype=float)
    function = _expansion(kernel, X, (base.y_train_ - base.pi_)[:, None])
    # The variance is k(x, x) - |L^-1 W^(1/2) k(X, x)|^2.
    lower = base.L_ / base.W_sr_[:, None]
    explain = partial(linalg.solve_triangular, lower, lower=True)

    def make(small: KernelExpansion) -> tuple[Any, float]:
        root, bound = explained_root(kernel, X, explain, small.dictionary)
        made = CompressedClassifier()._set(
            small,
            intercept_=np.zeros(1),
            _labels_=np.asarray(model.classes_),
            _votes_=False,
            _per_class_=True,
            _by_score_=False,
            _slope_=_NOTHING,
            _offsets_=_NOTHING,
            _root_=root,
        )
        return made, bound

    head = Classes(model.classes_, averaged=True)
    return Large(function, np.zeros(1), head, make, may_move=False)


# -- densities ------------------------------------------------------------------------------------


def _of_kernel_density(model: Any) -> Large:
    kind = (model.kernel, model.metric)
    width = float(model.bandwidth_)
    X = np.asarray(model.tree_.data, dtype=float)
    features = X.shape[1]
    if kind == ("gaussian", "euclidean"):
        kernel: kernels.Kernel = kernels.Gaussian(width)
        log_norm = features * (0.5 * math.log(2 * math.pi) + math.log(width))
    elif kind == ("exponential", "euclidean"):
        kernel = kernels.Matern(width, nu=0.5)
        surface = math.log(2) + 0.5 * features * math.log(math.pi) - gammaln(features / 2)
        log_norm = surface + gammaln(features) + features * math.log(width)
    else:
        raise ValueError(
            f"A KernelDensity with kernel={kind[0]!r} and metric={kind[1]!r} cannot be compressed: "
            f"that is no positive definite function; kernel='gaussian' or 'exponential' with "
            f"metric='euclidean' is."
        )
    weight = model.tree_.sample_weight
    weight = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float)
    shares = weight / weight.sum() * math.exp(-log_norm)
    none = np.full(features, np.inf)
    head = Density("euclidean", _NOTHING, -none, none, 0.0, np.zeros(features, dtype=bool))
    function = _expansion(kernel, X, shares[:, None])
    return Large(function, np.zeros(1), head, lambda small: (_density(small, head), None))


_READERS: dict[str, Callable[[Any], Large]] = {
    "SVC": _of_svc,
    "NuSVC": _of_svc,
    "SVR": _of_svr,
    "NuSVR": _of_svr,
    "OneClassSVM": _of_one_class,
    "KernelRidge": _of_ridge,
    "GaussianProcessRegressor": _of_process,
    "GaussianProcessClassifier": _of_process_classifier,
    "KernelDensity": _of_kernel_density,
}

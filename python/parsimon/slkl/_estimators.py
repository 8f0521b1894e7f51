"""The SLKL regressor, and the classifier that is one regression for each class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if

from parsimon import _class_weight
from parsimon._class_weight import check_class_weight, times
from parsimon._docs import OF_CLASSIFIERS, OF_REGRESSORS, documented
from parsimon._formula import Classes, Head, Values
from parsimon._labels import Labels
from parsimon._model import Array
from parsimon._parameters import estimator
from parsimon._sklearn import ClassifierMixin, RegressorMixin
from parsimon._stream import checked_weight
from parsimon._targets import Targets
from parsimon._types import Auto, ClassWeight, Columns, CoordinateStep, Gamma, Selection, SLKLKernel

from ._common import SLKL

if TYPE_CHECKING:
    from typing_extensions import Self

_ENTRIES = """
kernel : parsimon.kernels.Kernel or str, default={default}
    A kernel, or the name of one as in scikit-learn. "precomputed": X holds the kernel of all pairs
    of training samples and, to predict, of samples with those.
gamma : float, "scale" or "median", default={default}
    Width of a kernel given by name, positive, as in scikit-learn: 1 / (n_features * X.var()) for
    "scale"; 1 / (2 m^2) with the median distance m between samples for "median".
n_columns : int, float or None, default={default}
    M: how many training points may carry the function, drawn at random. An integer of at least 1, a
    fraction of all samples above 0 and at most 1, or None for all of them.
columns : {"random", "kmeans++", "leverage"}, array-like of int or callable, default={default}
    How these points are chosen: drawn all alike, spread out as the first centres of k-means are, or
    with probabilities proportional to their ridge leverage scores; or their indices in X, or
    a function that returns these for X, and then `n_columns` has no effect.
sparsity : float or "auto", default={default}
    Price of the weights of the kernels, as a fraction of the largest useful one, from which on no
    column is used: above 0 and at most 1. So the model does not depend on the scale of the targets;
    those of several outputs have prices of their own. "auto" is 3e-5 for regression and 1e-6 for
    classification.
nu : float, optional
    The price itself instead, as the paper has it, positive. It goes with the square of the targets'
    scale.
regularization : float, default={default}
    Ridge parameter lambda, positive, which ``mu_`` is proportional to. The function does not depend
    on it, or with `nu` on the product of the two only.
separate : bool, default={default}
    Whether each part of a kernel that is a sum, as ``Gaussian(0.5) + Gaussian(2.0)``, gives columns
    of its own, one for each of the M points (multiple kernel learning). `kernel_shares_` is what
    each part comes to. The values of all columns are kept, n numbers for each.
joint : bool, default={default}
    Whether several targets, or classes, have the same mu (the group form): then they share their
    points. It needs the products of all columns.
center : bool, default={default}
    Whether to subtract the mean of the targets; False does as the paper.
tol : float, default={default}
    With "shrinking", how far the objective may be above its minimum, relative to itself; with
    "uniform", the relative decrease in an epoch below which to stop. Not negative.
max_iter : int, default={default}
    Epochs at most; at least 1.
step : {"exact", "newton"}, default={default}
    How a weight is chosen while the others stay: the best value, or the paper's Newton step.
selection : {"shrinking", "uniform"}, default={default}
    Which weights are chosen in an epoch: "shrinking" looks at the gradient of all and chooses
    those that are not at their best, then solves for all that are not 0; "uniform" draws M at
    random, as in the paper.
store_columns : bool or "auto", default={default}
    Whether to keep the products of all M columns, M^2 numbers, so that a step costs O(m0^2)
    with m0 weights that are not 0. False keeps only the m0 columns in use, n m0 numbers, and
    computes the others when they are needed. "auto" keeps them up to 20,000 columns, 3 GB.
warm_start : bool, default={default}
    Whether ``fit`` starts from the weights of the last one, for the same columns: quick when
    only ``sparsity`` has changed a little.
random_state : int, RandomState instance or None, default={default}
    Source of the columns, and of the order of steps.
verbose : int, default={default}
    1 prints a line when ``fit`` is done.
mu_ : ndarray of shape (n_columns,) or (n_columns, n_outputs)
    Weights of the kernels; those of different targets or classes are learned independently,
    unless `joint`. With `separate`, the columns of one part of the kernel after the other.
kernel_shares_ : ndarray of shape (n_kernels,)
    How much of the sum of `mu_` each part of the kernel has.
expansions_ : list of KernelExpansion
    The functions that add up to the learned one: with `separate` one for each part of the kernel,
    and `expansion_` is none.
columns_ : ndarray of int of shape (n_columns,)
    The training samples that the columns belong to.
support_ : ndarray of int of shape (model_order_,)
    Those among them with a weight.
objective_ : ndarray of shape (n_iter_ + 1,)
    The objective before the first epoch and after each, summed over outputs.
dual_gap_ : float
    The last objective is at most this far above the minimum.
n_iter_ : int
    Number of epochs.
intercept_ : ndarray of shape (n_outputs,)
    The mean that was subtracted from the targets, or zeros.
dictionary_ : ndarray of shape (model_order_, n_features_in_)
    The points of the model, ``X[support_]``.
"""


@documented(OF_REGRESSORS, _ENTRIES)
class SLKLRegressor(RegressorMixin, SLKL):
    """Regression with a learned kernel of low rank (SLKL).

    Each of M training points x_m gives a kernel of rank one, k(x, x_m) k(x', x_m) / k(x_m, x_m).
    Their weights mu >= 0 are learned together with the function: with c_m the values of the m-th
    kernel's feature at the samples, mu minimises the convex::

        y' (I + sum_m mu_m c_m c_m' / regularization)^-1 y + nu * sum_m mu_m

    which leaves most of them at 0. Where samples have weights, y and c_m are multiplied by their
    roots, so that a weight of 2 is the same as two samples. The points with mu > 0 carry the
    function. Its minimum is that of the Lasso
    ``||y - C w||^2 + 2 sqrt(regularization * nu) |w|_1``, which gives a bound on how far a solution
    can be from it, ``dual_gap_``. nu is `sparsity` times
    ``(max |c_m' y|)^2 / regularization``, from which on all mu are 0.

    Parameters
    ----------
    {kernel, gamma, n_columns, columns, sparsity, nu, regularization, separate, joint, center, tol,
    max_iter, step, selection, store_columns, warm_start, n_jobs, random_state, verbose}

    Attributes
    ----------
    {mu_, kernel_shares_, expansions_, columns_, support_, objective_, dual_gap_, n_iter_,
    intercept_, dictionary_, weights_, model_order_, expansion_, n_features_in_, kernel_}

    References
    ----------
    P. Machart, T. Peel, S. Anthoine, L. Ralaivola, H. Glotin: Stochastic low-rank kernel learning
    for regression. International Conference on Machine Learning, 2011.

    Examples
    --------
    >>> from parsimon import SLKLRegressor
    >>> from parsimon.datasets import make_sinc
    >>> X, y = make_sinc(1000, random_state=0)
    >>> model = SLKLRegressor(gamma=0.5, n_columns=256, random_state=0).fit(X, y)
    >>> model.model_order_ < 80
    True
    >>> model.score(*make_sinc(500, snr_db=None, random_state=1)) > 0.98
    True
    """

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn kernel and function; sparse samples are made dense.

        {X, y, sample_weight -> self}
        """
        with self._unchanged_on_error():
            self._check_parameters()
            X, y = self._validate_both(X, y)
            weight = checked_weight(sample_weight, X)
            self._learn(X, y.reshape(len(y), -1), {"_single_": y.ndim == 1}, weight)
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Return the predicted target of each sample.

        {X -> predictions}
        """
        values = self._values(X)
        return values[:, 0] if self._single_ else values

    def _validate_both(self, X: ArrayLike, y: ArrayLike) -> tuple[Any, Array]:
        X, y = self._validate(X, y, reset=True, multi_output=True, y_numeric=True)
        return X, np.asarray(y, dtype=np.float64)

    def _head(self) -> Head:
        return Values(single=self._single_)

    def _stored(self, outputs: int) -> dict[str, Callable[[Any], bool]]:
        return super()._stored(outputs) | {"_single_": Targets.stored(outputs)["_single_"]}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _gives_no_probabilities(estimator: SLKLClassifier) -> bool:
    raise AttributeError(
        f"{type(estimator).__name__} has no predict_proba, because it learns by squared "
        f"differences from 1 and -1: use sklearn.calibration.CalibratedClassifierCV(model), or "
        f"POLKClassifier(loss='logistic')."
    )


@estimator(OF_CLASSIFIERS, _ENTRIES)
class SLKLClassifier(ClassifierMixin, SLKL):
    """Classification by regression on the labels with learned kernels of low rank (SLKL).

    For each class the kernel and the function of :class:`SLKLRegressor` are learned for targets 1
    (this class) and -1 (the others); the class with the largest value wins. Columns and their
    products are shared between classes. Two classes need one function.

    Parameters
    ----------
    {kernel, gamma, class_weight, n_columns, columns, sparsity, nu, regularization, separate,
    joint, center, tol, max_iter, step, selection, store_columns, warm_start, n_jobs, random_state,
    verbose}

    Attributes
    ----------
    {classes_, mu_, kernel_shares_, expansions_, columns_, support_, objective_, dual_gap_, n_iter_,
    intercept_, dictionary_, weights_, model_order_, expansion_, n_features_in_, kernel_}

    Examples
    --------
    >>> from parsimon import SLKLClassifier
    >>> from parsimon.datasets import make_multidist
    >>> X, y = make_multidist(1500, random_state=0)
    >>> model = SLKLClassifier(n_columns=200, random_state=0).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.9
    True
    """

    _: KW_ONLY
    kernel: SLKLKernel = "rbf"
    gamma: Gamma = "scale"
    class_weight: ClassWeight = None
    n_columns: int | float | None = None
    columns: Columns = "random"
    sparsity: float | Auto = "auto"
    nu: float | None = None
    regularization: float = 1.0
    separate: bool = False
    joint: bool = False
    center: bool = True
    tol: float = 1e-5
    max_iter: int = 1000
    step: CoordinateStep = "exact"
    selection: Selection = "shrinking"
    store_columns: bool | Auto = "auto"
    warm_start: bool = False
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    _words = {**SLKL._words, "class_weight": check_class_weight}
    # Labels have less noise than most targets.
    _fraction = 1e-6

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn a kernel and a function for each class; sparse samples are made dense.

        {X, y, sample_weight -> self}
        """
        with self._unchanged_on_error():
            self._check_parameters()
            X, y = self._validate(X, y, reset=True)
            labels, weight = Labels.found_in(y), checked_weight(sample_weight, X)
            numbers, classes = labels.encode(y), len(labels.classes)
            by_class, _ = _class_weight.of_all(self.class_weight, labels.classes, numbers)
            shown = [1] if classes == 2 else np.arange(classes)
            targets = np.where(numbers == shown, 1.0, -1.0)
            self._learn(X, targets, labels.fitted(), times(weight, by_class))
        self.classes_: NDArray[Any]
        return self

    def decision_function(self, X: ArrayLike) -> Array:
        """Return the values of the learned functions.

        {X -> values}
        """
        values = self._values(X)
        return Labels(self.classes_).scores(values)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the label of each sample.

        {X -> labels}
        """
        scores = self.decision_function(X)
        return Labels(self.classes_).decode(scores)

    @available_if(_gives_no_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike) -> Array:
        """Say that there are no probabilities, and who has them.

        {X -> probabilities}
        """
        raise NotImplementedError

    def _head(self) -> Head:
        return Classes(self.classes_)

    def _stored(self, outputs: int) -> dict[str, Callable[[Any], bool]]:
        return super()._stored(outputs) | Labels.stored(outputs)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags

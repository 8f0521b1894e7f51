"""The paper's Algorithms 1, 3 and 4 for intensities, and logistic regression."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

from parsimon import _core
from parsimon._checks import choice, count, number
from parsimon._classifier import Classifier
from parsimon._docs import OF_CLASSIFIERS, OF_STEPS
from parsimon._model import BUDGET, LEARNING_RATE, REGULARIZATION
from parsimon._parameters import WORDS, estimator
from parsimon._stream import Samples
from parsimon._types import (
    AnyKernel,
    Auto,
    Bandwidth,
    ClassWeight,
    DensityKernel,
    Gamma,
    Gradient,
    GridSize,
    Mirror,
    MirrorMethod,
    Precision,
    Scales,
    Schedule,
    Solver,
)
from parsimon.polk import new_polk
from parsimon.schedules import AdaptiveBudget

from ._base import Intensity
from ._settings import hybrid_model, newton_model, spppot_model

MIRRORS = ("kl", "euclidean", "mahalanobis")
GRADIENTS = ("likelihood", "kernel_embedding", "sign")
METHODS = ("mirror_descent", "dual_averaging")

_ENTRIES = """
domain : "auto" or array-like of shape (n_features, 2), default={default}
    Where points can be: a pair (low, high) for each feature. The density is zero elsewhere.
    "auto" takes the range of the data and, on either side, so much more that one in a hundred
    samples of the same size would have a point beyond it: little at an edge, more in a tail.
window : callable, list of polygons or geometry, optional
    The part of the domain where points can be; the density is zero elsewhere, and points elsewhere
    are left out. A function that takes points of shape (n, n_features) and returns n times True
    or False; in the plane a polygon, as a list of corners (x, y), or a list of such rings, of
    which those within others are holes; or a Polygon or MultiPolygon of shapely or GeoJSON. Points
    on an edge are inside. The
    domain "auto" is then the box around the polygons. A file keeps lists of corners; C++ programs
    that read it see the whole box.
periodic : list of int, optional
    The features that go round, such as hours of the day or directions, by their numbers from 0: the
    two ends of their domain are the same place, and values beyond are taken modulo its width.
covariates : callable, optional
    A function that takes points of shape (n, n_features) and returns covariates there, of shape
    (n,) or (n, n_covariates), such as an altitude: the intensity is then exp(z + covariates @
    coef_), with coefficients that the penalty hardly holds. They must be known everywhere in the
    domain or its window. A file cannot hold a function.
grid_size : int, sequence of int or "auto", default={default}
    Cells of the grid along each feature whose midpoints are in the dictionary. "auto": points as
    far apart as the kernel is long, from face to face; of more than three features, 512 of the
    samples. With ``solver="sgd"`` cells half as wide as the kernel, or as wide if there would be
    more than 256; beyond 1,024, that many points are scattered over the domain.
kernel : parsimon.kernels.Kernel or str, default={default}
    A kernel, or the name of one: "rbf", "laplacian", "matern", "cauchy", "student_t".
bandwidth : float, sequence of float, "auto" or "silverman", default={default}
    Length of a kernel given by name, positive, for all features or for each. "auto" chooses it for
    each feature by cross-validation; with ``solver="sgd"`` it is Silverman's. The paper's
    "bandwidth" is its square.
scales : {"auto", 1, 2}, default={default}
    With 2, z is a sum of two functions, of which one has a kernel that is four times as long and
    ten times the variance: hills on plains. "auto" chooses by cross-validation, where kernel and
    penalty are chosen, too. Only for a Gaussian kernel, with ``solver="newton"``; the dictionary is
    the same.
solver : {"newton", "sgd"}, default={default}
    How the weights on the dictionary are found. "newton" solves for those of largest penalised
    likelihood, from sums over all points that it keeps, and needs no steps: hyper-parameters about
    them are refused, and `epochs` makes no difference. With a `budget` or `parsimony`, steps find
    the dictionary first. "sgd": the paper's algorithm, whose steps are the weights.
regularization : float or "auto", default={default}
    Weight of the squared norm of z, for each point; not negative. "auto" chooses it by
    cross-validation; with ``solver="sgd"`` it is a tenth over the number of samples in ``fit`` and
    zero in ``partial_fit``.
half_life : float, "auto" or None, default={default}
    How a stream forgets: the number of points after which a point counts half; "auto" and None:
    nothing is forgotten, and a warning says when the latest points are less likely than those
    before. A number needs ``solver="newton"``.
parsimony : float or "auto", default={default}
    alpha in the budget alpha * eta, not negative; larger values make smaller models. With
    ``solver="newton"`` "auto" takes a grid, with "sgd" a tenth of what a mini-batch adds; a number
    has the paper's algorithm find the dictionary, on which the weights are then solved.
budget : float or parsimon.schedules.AdaptiveBudget, optional
    The compression budget itself instead, in Hilbert norm, not negative; 0 keeps every point. One
    that adapts holds a number of points, the nodes of the grid included. As with `parsimony`, the
    paper's algorithm then finds the dictionary.
learning_rate : float or "auto", default={default}
    Step size eta of the paper's algorithm, positive. "auto" is half the inverse of the likelihood's
    largest curvature on the data and the nodes (less with another `gradient` or `mirror`), and at
    most 0.08 B / max k(x, x) for mini-batches of B.
epochs : int or "auto", default={default}
    Passes over the data that steps make in ``fit``, at least 1. "auto" is 80,000 / n for n points,
    from 8 to 100; of quasi-Newton steps 40,000 / n, from 8 to 20.
schedule : {"constant", "inverse", "sqrt"} or parsimon.schedules.PowerLaw, default={default}
    How the learning rates change along the stream; those that diminish are in the paper's
    Theorem 3 (ii).
gradient : {"likelihood", "kernel_embedding", "sign"}, default={default}
    The gradient of the likelihood with respect to z; the paper's pseudo-gradient (26), which
    divides by the density and has no fixed point where there are no data; or the sign of the
    first on the grid.
damping : float or "auto", default={default}
    delta, positive, the multiple of the identity that the sum of outer products starts with. "auto"
    takes a tenth of the mean squared length of the gradients' kernel part.
weights_ : ndarray of shape (model_order_, 1)
    Their weights.
model_order_ : int
    Number of points of the dictionary.
expansion_ : KernelExpansion
    The function z.
domain_ : ndarray of shape (n_features_in_, 2)
    Where points can be.
coef_ : ndarray of shape (n_covariates,)
    Coefficients of the covariates.
coef_std_ : ndarray of shape (n_covariates,)
    Their standard deviations, by Laplace's approximation.
window_ : list of ndarray or None
    The rings of the window's polygons.
volume_ : float
    The volume of where points can be: of the domain, or of its window.
nodes_ : ndarray of shape (n_nodes, n_features_in_)
    The nodes of the integral in training; with ``solver="sgd"`` they are in the dictionary.
integral_ : float
    Integral over the domain of what was learned, on cells at most half as wide as the kernel. What
    was solved for is normalised already: it is 1 but for the errors of two rules. With
    ``solver="sgd"`` steps bring it near 1, and densities and intensities are divided by it.
scales_ : int
    How many scales z has.
exposure_ : float
    The exposure of all points, or 1 if none was given.
n_points_ : int
    Points seen; those of repeated epochs count once.
n_rejected_ : int
    Points that were left out because they were outside the domain.
trace_ : dict of ndarray
    One entry for each mini-batch (or 32 samples, where each is a step): "samples" seen,
    "model_order", "active" samples, mean "loss" (the negative log-likelihood) before the step,
    "compression_error" and "budget"; and "validation_nll" where it was measured, if there are
    validation data.
"""


@estimator(OF_STEPS, _ENTRIES)
class SPPPOTIntensity(Intensity):
    """Density and intensity of points from a stream, positive by construction (SPPPOT).

    The logarithm of the density is a function z in a Hilbert space: a sum of kernels with the
    points of a dictionary. By default the weights are those of largest penalised likelihood on a
    grid, kernel and penalty are chosen by cross-validation, and a stream keeps sums over its
    points and solves again when somebody asks.

    With ``solver="sgd"`` it is the paper's Algorithm 1: each mini-batch takes a step of stochastic
    mirror descent on the Poisson likelihood, whose integral is a sum over the nodes of a grid, and
    is compressed by kernel orthogonal matching pursuit: points are dropped as long as z moves by no
    more than a budget. The nodes of the grid always stay.

    Parameters
    ----------
    {domain, window, periodic, covariates, grid_size, kernel, bandwidth, scales, solver,
    learning_rate, parsimony, budget, schedule, batch_size}
    mirror : {"kl", "euclidean", "mahalanobis"}, default="kl"
        How the density f (relative to the uniform one) and z belong together: f = exp(z), which is
        positive whatever z is; f = z; or f = r z with r half uniform, half a Gaussian with the
        moments of the data. The last two can become negative.
    {gradient}
    method : {"mirror_descent", "dual_averaging"}, default="mirror_descent"
        Whether steps are added to z, or gradients to a sum that the step size multiplies.
    {regularization, epochs, shuffle}
    average : bool, default=True
        Whether the density comes from an average of the iterates z, weighted towards the latest,
        instead of the last one.
    half_life : float, "auto" or None, default="auto"
        How a stream forgets: the number of points after which a point counts half; "auto" and
        None: nothing is forgotten. With ``solver="sgd"`` that of an iterate in the average, where
        "auto" is 1,000, and None an average over about the last quarter of all iterates, as it
        always is in ``fit``.
    {n_jobs, random_state, verbose}

    Attributes
    ----------
    {dictionary_, weights_, model_order_, expansion_, coef_, coef_std_, domain_, window_, volume_,
    nodes_, integral_, scales_, exposure_, n_points_, n_rejected_, n_features_in_, kernel_,
    learning_rate_, regularization_, budget_, epochs_, t_, trace_}

    References
    ----------
    A. Chakraborty, K. Rajawat, A. Koppel: Sparse representations of positive functions via first
    and second-order pseudo-mirror descent. IEEE Transactions on Signal Processing 70, 2022.

    Examples
    --------
    >>> from parsimon import SPPPOTIntensity
    >>> from parsimon.datasets import make_poisson_gaussian
    >>> X = make_poisson_gaussian(2000, random_state=0)
    >>> model = SPPPOTIntensity(domain=(0, 1), random_state=0).fit(X)
    >>> abs(model.integral_ - 1) < 0.02
    True
    >>> round(model.expected_count((0.5, 1.0)) / len(X), 1)
    0.5
    >>> model.sample(3, random_state=0).shape
    (3, 1)
    """

    _: KW_ONLY
    domain: Any = "auto"
    window: Any = None
    periodic: Any = None
    covariates: Any = None
    grid_size: GridSize = "auto"
    kernel: DensityKernel = "rbf"
    bandwidth: Bandwidth = "auto"
    scales: Scales = "auto"
    solver: Solver = "newton"
    learning_rate: float | Auto = "auto"
    parsimony: float | Auto = "auto"
    budget: float | AdaptiveBudget | None = None
    schedule: Schedule = "constant"
    batch_size: int = 30
    mirror: Mirror = "kl"
    gradient: Gradient = "likelihood"
    method: MirrorMethod = "mirror_descent"
    regularization: float | Auto = "auto"
    epochs: int | Auto = "auto"
    shuffle: bool = True
    average: bool = True
    half_life: float | Auto | None = "auto"
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    learning_rate_ = LEARNING_RATE
    regularization_ = REGULARIZATION
    budget_ = BUDGET

    _words = {
        **Intensity._words,
        "mirror": choice(*MIRRORS),
        "gradient": choice(*GRADIENTS),
        "method": choice(*METHODS),
    }
    _algorithms = ("spppot", "solved_density")
    _forgets_when_solved = False
    _make_model = spppot_model


@estimator(_ENTRIES)
class MirrorNewtonIntensity(Intensity):
    """Density and intensity of points from a stream, by online quasi-Newton mirror descent.

    As :class:`SPPPOTIntensity`, of which it differs with ``solver="sgd"`` alone: the paper's
    Algorithm 3, on the nodes of the grid, with steps that are scaled by the inverse of the sum of
    the gradients' outer products. A sample then costs the square of the number of nodes, and the
    density is that of an average of the last iterates.

    Parameters
    ----------
    {domain, window, periodic, covariates, grid_size, kernel, bandwidth, scales, solver,
    regularization}
    learning_rate : float or "auto", default="auto"
        Step size eta, positive; "auto" is 2.
    {damping, schedule, epochs, shuffle, half_life, n_jobs, random_state, verbose}

    Attributes
    ----------
    dictionary_ : ndarray of shape (model_order_, n_features_in_)
        The points of the model, which are the nodes of the grid.
    {weights_, model_order_}
    expansion_ : KernelExpansion
        The function z whose exponential the density is, times a constant.
    {coef_, coef_std_, domain_, window_, volume_, nodes_, integral_, scales_, exposure_, n_points_,
    n_rejected_, n_features_in_, kernel_, regularization_, epochs_, t_, trace_}

    References
    ----------
    A. Chakraborty, K. Rajawat, A. Koppel: Sparse representations of positive functions via first
    and second-order pseudo-mirror descent. IEEE Transactions on Signal Processing 70, 2022.

    Examples
    --------
    >>> from parsimon import MirrorNewtonIntensity
    >>> from parsimon.datasets import make_poisson_gaussian
    >>> X = make_poisson_gaussian(2000, random_state=0)
    >>> model = MirrorNewtonIntensity(domain=(0, 1), random_state=0).fit(X)
    >>> abs(model.integral_ - 1) < 0.01
    True
    """

    _: KW_ONLY
    domain: Any = "auto"
    window: Any = None
    periodic: Any = None
    covariates: Any = None
    grid_size: GridSize = "auto"
    kernel: DensityKernel = "rbf"
    bandwidth: Bandwidth = "auto"
    scales: Scales = "auto"
    solver: Solver = "newton"
    regularization: float | Auto = "auto"
    learning_rate: float | Auto = "auto"
    damping: float | Auto = "auto"
    schedule: Schedule = "constant"
    epochs: int | Auto = "auto"
    shuffle: bool = True
    half_life: float | Auto | None = None
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    # Samples for which there is one entry in the trace; each of them is a step.
    batch_size = 32

    _words = {**Intensity._words, "damping": number(positive=True, auto=True)}
    regularization_ = REGULARIZATION

    _algorithms = ("mirror_newton", "solved_density")
    # Steps of second order need fewer passes, and fit the noise if they have many.
    _effort = (40_000, 20)
    _make_model = newton_model


@estimator(_ENTRIES)
class HybridIntensity(Intensity):
    """Density and intensity of points from a stream: first-order steps, then quasi-Newton ones.

    As :class:`SPPPOTIntensity`, of which it differs with ``solver="sgd"`` and where a budget has
    steps find the dictionary: by the paper's Algorithm 4. :class:`SPPPOTIntensity`'s steps find the
    dictionary. When the model order is stable, it is fixed and :class:`MirrorNewtonIntensity`'s
    steps refine the weights, with an integral on at least twice as many nodes as the dictionary
    has points.

    The model order counts as stable once it has stayed within a band of 2 points or 2 %, whichever
    is more, for `patience` mini-batches in a row, or after `first_phase` mini-batches.

    Parameters
    ----------
    {domain, window, periodic, covariates, grid_size, kernel, bandwidth, scales, solver}
    learning_rate : float or "auto", default="auto"
        Step size of the first phase, positive; "auto" as of :class:`SPPPOTIntensity`.
    newton_learning_rate : float or "auto", default="auto"
        Step size of the second phase, positive; "auto" is 2.
    {damping, parsimony, budget, schedule}
    batch_size : int, default=30
        Samples in a mini-batch of the first phase, at least 1.
    {gradient, regularization}
    patience : int or "auto", default="auto"
        Mini-batches for which the model order must be stable, at least 1; "auto" is one epoch in
        ``fit`` and 300 mini-batches in ``partial_fit``.
    first_phase : int or "auto", default="auto"
        Mini-batches that the first phase has at most, at least 1; "auto" is half of them in ``fit``
        and 3,000 in ``partial_fit``.
    {epochs, shuffle, half_life, n_jobs, random_state, verbose}

    Attributes
    ----------
    in_second_phase_ : bool
        Whether the dictionary has been fixed.
    {dictionary_, weights_, model_order_, expansion_, coef_, coef_std_, domain_, window_, volume_,
    nodes_, integral_, scales_, exposure_, n_points_, n_rejected_, n_features_in_, kernel_,
    regularization_, epochs_, t_, trace_}

    References
    ----------
    A. Chakraborty, K. Rajawat, A. Koppel: Sparse representations of positive functions via first
    and second-order pseudo-mirror descent. IEEE Transactions on Signal Processing 70, 2022.

    Examples
    --------
    >>> from parsimon import HybridIntensity
    >>> from parsimon.datasets import make_poisson_gaussian
    >>> X = make_poisson_gaussian(2000, random_state=0)
    >>> model = HybridIntensity(domain=(0, 1), random_state=0).fit(X)
    >>> model.in_second_phase_, abs(model.integral_ - 1) < 0.01
    (True, True)
    """

    _: KW_ONLY
    domain: Any = "auto"
    window: Any = None
    periodic: Any = None
    covariates: Any = None
    grid_size: GridSize = "auto"
    kernel: DensityKernel = "rbf"
    bandwidth: Bandwidth = "auto"
    scales: Scales = "auto"
    solver: Solver = "newton"
    learning_rate: float | Auto = "auto"
    newton_learning_rate: float | Auto = "auto"
    damping: float | Auto = "auto"
    parsimony: float | Auto = "auto"
    budget: float | AdaptiveBudget | None = None
    schedule: Schedule = "constant"
    batch_size: int = 30
    gradient: Gradient = "likelihood"
    regularization: float | Auto = "auto"
    patience: int | Auto = "auto"
    first_phase: int | Auto = "auto"
    epochs: int | Auto = "auto"
    shuffle: bool = True
    half_life: float | Auto | None = None
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    # What SPPPOTIntensity may choose.
    mirror, method, average = "kl", "mirror_descent", True

    _words = {
        **Intensity._words,
        "newton_learning_rate": number(positive=True, auto=True),
        "damping": number(positive=True, auto=True),
        "gradient": choice(*GRADIENTS),
        "patience": count(auto=True),
        "first_phase": count(auto=True),
    }
    regularization_ = REGULARIZATION

    _algorithms = ("hybrid", "solved_density")
    _effort = MirrorNewtonIntensity._effort
    _make_model = hybrid_model

    @property
    def in_second_phase_(self) -> bool:
        """Whether the dictionary has been fixed; one that is solved for always is."""
        return bool(getattr(self._state("in_second_phase_"), "in_second_phase", True))


@estimator(OF_STEPS, OF_CLASSIFIERS)
class SPPPOTClassifier(Classifier):
    """Kernel logistic regression of positive functions, for streams, with a model that stays small.

    As :class:`POLKClassifier` with the logistic loss, but the score of each class is a positive
    function f = exp(z): the probabilities are the softmax of the f, and z takes steps along the
    gradient with respect to f (mirror descent with the KL map). There is one function for each
    class, and one dictionary for all.

    Parameters
    ----------
    {kernel, gamma, class_weight, learning_rate, parsimony, budget, max_points, schedule}
    regularization : float or "auto", default="auto"
        Weight lambda of the squared norm of z, not negative. "auto": in ``fit`` the ridge of least
        leave-one-out error of kernel ridge regression, over n; 1e-6 in a stream.
    {batch_size, epochs, shuffle, average, half_life, dtype, n_jobs, random_state, verbose}

    Attributes
    ----------
    {dictionary_}
    weights_ : ndarray of shape (model_order_, n_classes)
        Their weights.
    {model_order_}
    expansion_ : KernelExpansion
        The function z, with one output for each class.
    {classes_, n_features_in_, kernel_, learning_rate_, regularization_, budget_, epochs_, t_,
    trace_, drift_}

    References
    ----------
    A. Chakraborty, K. Rajawat, A. Koppel: Sparse representations of positive functions via first
    and second-order pseudo-mirror descent. IEEE Transactions on Signal Processing 70, 2022.

    Examples
    --------
    >>> from parsimon import SPPPOTClassifier
    >>> from parsimon.datasets import make_multidist
    >>> X, y = make_multidist(2000, random_state=0)
    >>> model = SPPPOTClassifier(random_state=0, epochs=2).fit(X[:1500], y[:1500])
    >>> model.score(X[1500:], y[1500:]) > 0.8
    True
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    _: KW_ONLY
    kernel: AnyKernel = "rbf"
    gamma: Gamma = "scale"
    class_weight: ClassWeight = None
    learning_rate: float | Auto = "auto"
    parsimony: float | Auto = "auto"
    budget: float | AdaptiveBudget | None = None
    max_points: int | None = None
    schedule: Schedule = "constant"
    regularization: float | Auto = "auto"
    batch_size: int = 32
    epochs: int | Auto = "auto"
    shuffle: bool = True
    average: bool = True
    half_life: float | Auto | None = "auto"
    dtype: Precision = "float64"
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    budget_ = BUDGET

    _words = {**Classifier._words, "half_life": WORDS["half_life"]}
    _algorithms = ("polk",)
    _new_model = new_polk

    def _core_loss(self, outputs: int) -> Any:  # noqa: ARG002
        return _core.parse_loss("mirror_logistic")

    def _n_outputs(self, samples: Samples) -> int:
        return max(samples.n_classes, 2)

    def _foreign_entries(self, archive: _core.Archive) -> list[str]:
        wrong = super()._foreign_entries(archive)
        return wrong if archive["loss"] == "mirror_logistic" else [*wrong, "loss"]

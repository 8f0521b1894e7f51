"""Parts of docstrings that many estimators share, written once.

In the docstring of a class or method that is `documented`, a line ``{kernel, gamma}`` stands for
the entries of these names, and ``{X, y -> self}`` for the sections on parameters and on what is
returned. ``{default}`` in an entry is the default in the class's own signature.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)

SHARED = """
kernel : parsimon.kernels.Kernel or str, default={default}
    A kernel, or the name of one as in scikit-learn ("rbf", "laplacian", "poly", "linear"...).
    "auto" is "rbf" up to 2,000 features and "linear" above.
gamma : float, "scale", "median" or "auto", default={default}
    Width of a kernel given by name, positive, as in scikit-learn: 1 / (n_features * X.var()) for
    "scale"; 1 / (2 m^2) with the median distance m between samples for "median"; for "auto" the one
    of "scale" times 2, 1, 1/2... 1/16 with the least leave-one-out error of kernel ridge
    regression (of :class:`PolicyEvaluator`, :class:`QLearner` and :class:`CompositionalLearner`:
    that of "scale").
learning_rate : float or "auto", default={default}
    Step size eta, positive. "auto" for mini-batches of B samples: B / (max k(x, x) + (B - 1) top),
    with top the largest eigenvalue of k / n on at most 500 samples, beyond which steps of the
    squared loss overshoot; for classification twice that, over the curvature of the loss. With
    ``solver="newton"`` it only decides which points are found.
parsimony : float or "auto", default={default}
    K in the budget K * eta**1.5, not negative; larger values make smaller models, 0 keeps every
    point. "auto" lets compression take a tenth of what a mini-batch of labels adds, less of targets
    with little noise, and half of these with ``solver="newton"``; with a learning rate that falls,
    the budget then falls like eta**2.
budget : float or parsimon.schedules.AdaptiveBudget, optional
    The compression budget itself instead, in Hilbert norm, not negative; 0 keeps every point. If it
    is too small for double precision, points wait outside until there are 512, and the mini-batch
    that clears them has a floor (docs/guarantees.md): "budget" of ``trace_`` says so.
max_points : int, "auto" or None, default={default}
    The largest number of points, at least 1, whatever error that takes. "auto": for t samples of a
    stream 1.6 t^(2/3), of ``fit`` 0.55 t^(3/4), of regression 8 t^(2/3), from 30 to 2,200; no cap
    if a budget or a parsimony constant is given or with ``solver="sgd"``. None: as many as the
    budget needs.
compression : {"remove", "merge"}, default={default}
    How the model is kept small. "remove": the point goes that the others explain best. "merge": or
    it and another one are replaced by a point between them, if that moves the function less; the
    same budget then buys a smaller model, whose points are no samples. Slower, and only for kernels
    with a gradient.
solver : {"newton", "sgd"}, default={default}
    How the weights on the dictionary are found. "newton" solves for them from all samples seen,
    kept as second-order statistics; stochastic gradient steps only find the points. "sgd": the
    papers' algorithm, whose gradient steps are the weights.
half_life : float, "auto", detector or None, default={default}
    How a stream forgets: the number of samples, positive, after which a sample counts half or,
    with ``solver="sgd"``, an iterate in the average that predicts. None: nothing is forgotten, and
    averages are over about the last quarter of all iterates, as they always are in ``fit``. "auto":
    nothing is forgotten (with "sgd", iterates are, with a half-life of 1,000 samples), unless the
    losses become larger than the model expects; then the past fades until they are not. An object
    with ``update(loss)`` and ``drift_detected``, as those of ``river.drift``: the same, but it says
    when; of each sample of a stream a copy of it is shown whether its label was mistaken, or how
    far off its target was predicted (in standard deviations with ``normalize_y``).
schedule : {"constant", "inverse", "sqrt"} or parsimon.schedules.PowerLaw, default={default}
    How the learning rate changes along the stream: not at all, or with the mini-batches t like
    1 / (1 + t / 100) or the root of that.
regularization : float or "auto", default={default}
    Weight lambda of the squared norm of the function, not negative. "auto" with
    ``solver="newton"``: one ridge for all samples together, in ``fit`` chosen by predictions of
    samples held out, in a stream of labels 0.1 max k(x, x), and in a stream of targets, as for the
    squared loss in ``fit``, that of least leave-one-out error of kernel ridge regression.
    Otherwise this last one over n in ``fit``, and 1e-6 in a stream.
batch_size : int, default={default}
    Samples in a mini-batch, at least 1.
epochs : int or "auto", default={default}
    Passes over the data that ``fit`` makes, at least 1; ``partial_fit`` makes one. "auto": where
    the weights are solved in the end 2 (with ``solver="newton"`` 1 from 5,000 samples on),
    otherwise 20,000 / n for n samples, from 20 to 100.
shuffle : bool, default={default}
    Whether ``fit`` shuffles the samples before each epoch.
average : bool, default={default}
    For ``solver="sgd"``: whether to predict with an average of the iterates, weighted towards the
    latest, instead of the last one.
normalize_y : bool, default={default}
    Whether to subtract the mean of the targets and divide by their standard deviation, both
    taken from the first 100 samples of a stream. Learning rate, budget, the parameters of the
    loss and the trace refer to the normalised targets.
refit : bool, default={default}
    Whether ``fit`` ends with solving for the weights on the dictionary found, from all samples at
    once (with ``solver="sgd"``: for the squared loss only). ``partial_fit`` never does.
refine : bool or tuple, default={default}
    Whether ``fit`` ends with moving the points of the dictionary, together with their weights, as
    :meth:`refine_on` does: fewer points are as good then. True is ``("points",)``. Only with
    ``solver="newton"``.
dtype : {"float64", "float32"}, default={default}
    Precision of the products between samples and the points of the model; "float32" is faster
    on many features. The model itself is always kept in double precision.
n_jobs : int, optional
    Threads to use, at least 1, or -1 for as many as there are processors; by default
    :func:`parsimon.get_num_threads`. The result is the same with any number.
random_state : int, RandomState instance or None, default={default}
    Source of the shuffling.
verbose : int, default={default}
    0 shows nothing, 1 a progress bar in ``fit``, 2 in ``partial_fit`` too.
dictionary_ : ndarray of shape (model_order_, n_features_in_)
    The points of the model.
model_order_ : int
    Number of points.
expansion_ : KernelExpansion
    The learned function.
n_features_in_ : int
    Number of features.
kernel_ : parsimon.kernels.Kernel
    The kernel, as it was given or chosen.
learning_rate_ : float
    The learning rate, as it was given or chosen; with a schedule, that of the first mini-batch.
regularization_ : float
    The regularization lambda, as it was given or chosen. With ``solver="newton"``: the ridge of the
    solved weights, for each of the samples that are remembered.
budget_ : float
    The compression budget of a mini-batch, as it was given or chosen, in Hilbert norm: with a
    schedule that of the first one, if it adapts that of the latest.
epochs_ : int
    Passes that were made over the data; 1 in a stream.
t_ : int
    Samples seen, those of earlier epochs included.
trace_ : dict of ndarray
    One entry for each mini-batch (where there are more than 4,096, for each 2, 4, 8... of them):
    "samples" seen, "model_order", "active" samples (with a
    gradient that is not zero), mean "loss" before the step, "compression_error", "budget", and
    "drift", how often the stream was found to have changed (``drift_`` has the samples).
drift_ : ndarray of int
    How many samples there were each time the stream was found to have changed, which is looked for
    with ``half_life="auto"`` or a detector; the latest 1,024.
X : {array-like, sparse matrix} of shape (n_samples, n_features)
    The samples.
sample_weight : array-like of shape (n_samples,), optional
    Weights of the samples, not negative.
self : estimator
    The estimator.
"""

# Of estimators that have no other solver than stochastic gradient steps.
OF_STEPS = """
regularization_ : float
    The regularization lambda, as it was given or chosen.
half_life : float, "auto" or None, default={default}
    How the average of the iterates of a stream forgets: the number of samples, positive, after
    which an iterate counts half. None: it is an average over about the last quarter of all
    iterates, as it always is in ``fit``. "auto": 1,000 samples, and fewer as long as the losses are
    larger than those before.
"""

OF_CLASSIFIERS = """
loss : {"hinge", "squared_hinge", "logistic"}, default={default}
    The hinge losses make a support vector machine, the logistic loss gives probabilities. Solvers
    that use curvature round the hinge off: v^2 / 2 for violations v of the margin up to 2, and
    2 v - 2 beyond.
class_weight : dict, "balanced" or None, default={default}
    Weights of the classes, not negative, 1 for those that are not named; they multiply those of the
    samples.
    "balanced": n_samples / (n_classes * samples of the class), of all samples in ``fit`` and of
    those seen so far in a stream.
weights_ : ndarray of shape (model_order_, n_outputs)
    Their weights: one column for two classes, otherwise one for each class.
classes_ : ndarray of shape (n_classes,)
    The labels.
y : array-like of shape (n_samples,)
    Their labels.
classes : array-like, optional
    Labels of the stream, as far as they are known. Others may come at any time: a label that was
    never seen adds a class.
labels : ndarray of shape (n_samples,)
    The labels.
values : ndarray of shape (n_samples,) or (n_samples, n_classes)
    For two classes one value, positive for ``classes_[1]``; otherwise one for each class.
probabilities : ndarray of shape (n_samples, n_classes)
    In the order of ``classes_``.
log_probabilities : ndarray of shape (n_samples, n_classes)
    In the order of ``classes_``.
"""

OF_REGRESSORS = """
loss : str, default={default}
    "squared" (or "squared(s)" for s times as much), "huber" (or "huber(c)" with the threshold
    c, 1.35 by default), "epsilon_insensitive" (or "epsilon_insensitive(e)", 0.1 by default),
    "pinball(q)" for the quantile q (0.5 by default). c is positive, e not negative, q between
    0 and 1.
gamma : float, "auto", "scale" or "median", default={default}
    Width of a kernel given by name, positive. "auto" chooses among multiples of "scale", which is
    1 / (n_features * X.var()), by the leave-one-out error of kernel ridge regression on a part
    of the data; "median" takes the median distance between samples.
weights_ : ndarray of shape (model_order_, n_targets)
    Their weights, in units of y.
expansion_ : KernelExpansion
    The learned function: ``predict(X) == expansion_(X) + intercept_``.
intercept_ : ndarray of shape (n_targets,)
    The mean that was subtracted from the targets, or zeros.
y : array-like of shape (n_samples,) or (n_samples, n_targets)
    Their targets.
predictions : ndarray of shape (n_samples,) or (n_samples, n_targets)
    As the targets in training.
"""


def documented(*tables: str) -> Callable[[Class], Class]:
    """Fill in the docstrings of a class; later tables replace entries of earlier ones."""
    entries = {name: text for table in (SHARED, *tables) for name, text in _entries(table)}

    def fill(cls: Class) -> Class:
        defaults = {
            name: f'"{parameter.default}"'
            if isinstance(parameter.default, str)
            else repr(parameter.default)
            for name, parameter in inspect.signature(cls).parameters.items()
        }
        for member in (cls, *vars(cls).values()):
            function = getattr(member, "fn", member)  # what is available only sometimes
            if member is cls or inspect.isfunction(function):
                function.__doc__ = _filled(function.__doc__, entries, defaults)
        return cls

    return fill


def _entries(table: str) -> list[tuple[str, str]]:
    texts = re.split(r"\n(?=\S)", table.strip())
    return [(text.split(" : ", 1)[0], text) for text in texts]


def _filled(doc: str | None, entries: dict[str, str], defaults: dict[str, Any]) -> str | None:
    def text_of(names: str) -> str:
        known = [(name, entries[name]) for name in re.split(r",\s*", names)]
        return "\n".join(text.replace("{default}", defaults.get(name, "")) for name, text in known)

    def fill(match: re.Match[str]) -> str:
        indent, names, returned = match.groups()
        text = text_of(names)
        if returned is not None:
            text = f"Parameters\n----------\n{text}\n\nReturns\n-------\n{text_of(returned)}"
        return textwrap.indent(text, indent)

    # Without docstrings (python -OO) there is nothing to do.
    return doc and re.sub(r"(?m)^( *)\{(\w+(?:,\s*\w+)*)(?: -> (\w+))?\}$", fill, doc)

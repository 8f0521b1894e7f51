"""Data drawn at random, from the papers."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from parsimon._checks import is_number


def make_multidist(
    n_samples: int = 5000,
    *,
    n_classes: int = 5,
    n_modes: int = 3,
    sd: float = 0.2,
    n_features: int = 2,
    random_state: Any = None,
    return_centers: bool = False,
) -> Any:
    """Draw the classification task "multidist" of the POLK paper.

    Each class is an equally weighted mixture of Gaussians. The means of its modes are themselves
    drawn from a Gaussian of standard deviation 1 around a point of the class, and these points are
    equally spaced on the unit circle (in the first two features).

    The means are drawn first: the same `random_state` gives the same task for any `n_samples`. To
    get training and test data, draw both at once and split.

    Parameters
    ----------
    n_samples : int, default=5000
        Number of samples.
    n_classes : int, default=5
        Number of classes, equally likely.
    n_modes : int, default=3
        Number of Gaussians in each class.
    sd : float, default=0.2
        Standard deviation of each Gaussian. The paper prints 0.2 as the variance, but its error
        rates are those of a standard deviation of 0.2.
    n_features : int, default=2
        Number of features, at least 2.
    random_state : int, RandomState instance or None, default=None
        Seed of the means and of the samples.
    return_centers : bool, default=False
        Whether to return the means as well.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The samples.
    y : ndarray of shape (n_samples,)
        The class of each, from 0 on.
    centers : ndarray of shape (n_classes, n_modes, n_features)
        The means; only if `return_centers` is true.

    References
    ----------
    .. [1] A. Koppel, G. Warnell, E. Stump and A. Ribeiro, "Parsimonious Online Learning with
       Kernels via Sparse Projections in Function Space", JMLR 20 (2019), section 5.

    Examples
    --------
    >>> from parsimon.datasets import make_multidist
    >>> X, y, centers = make_multidist(1000, random_state=0, return_centers=True)
    >>> X.shape, centers.shape, sorted(set(y.tolist()))
    ((1000, 2), (5, 3, 2), [0, 1, 2, 3, 4])
    """
    least: dict[str, tuple[Any, int]] = {
        "n_samples": (n_samples, 0),
        "n_classes": (n_classes, 1),
        "n_modes": (n_modes, 1),
        "n_features": (n_features, 2),
    }
    for name, (value, minimum) in least.items():
        if not isinstance(value, Integral) or value < minimum:
            raise ValueError(f"{name} must be an integer of at least {minimum}; got {value!r}.")
    if not is_number(sd) or sd < 0:
        raise ValueError(f"sd must be a finite number and not negative; got {sd!r}.")
    random = check_random_state(random_state)
    angles = 2 * np.pi * np.arange(n_classes) / n_classes
    origins = np.zeros((n_classes, 1, n_features))
    origins[:, 0, 0], origins[:, 0, 1] = np.cos(angles), np.sin(angles)
    centers = origins + random.normal(size=(n_classes, n_modes, n_features))
    y = random.randint(n_classes, size=n_samples)
    modes = random.randint(n_modes, size=n_samples)
    X = centers[y, modes] + sd * random.normal(size=(n_samples, n_features))
    return (X, y, centers) if return_centers else (X, y)


def make_sinc(
    n_samples: int = 1000, *, snr_db: float | None = 10.0, random_state: Any = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draw the regression task "sinc" of the SLKL paper.

    The cardinal sine of the norm, sin(||x||) / ||x||, at points drawn uniformly from the square
    [-5, 5]^2, with Gaussian noise.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of samples.
    snr_db : float or None, default=10.0
        Signal-to-noise ratio in decibels: the power of the signal is its mean square over the
        samples. None adds no noise.
    random_state : int, RandomState instance or None, default=None
        Seed of the points and of the noise.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        The points.
    y : ndarray of shape (n_samples,)
        Their targets.

    References
    ----------
    .. [1] P. Machart, T. Peel, S. Anthoine, L. Ralaivola and H. Glotin, "Stochastic Low-Rank Kernel
       Learning for Regression", ICML 2011, section 5.1.

    Examples
    --------
    >>> from parsimon.datasets import make_sinc
    >>> X, y = make_sinc(1000, snr_db=None, random_state=0)
    >>> X.shape, bool(y.max() <= 1)
    ((1000, 2), True)
    """
    count: Any = n_samples
    if not isinstance(count, Integral) or count < 0:
        raise ValueError(f"n_samples must be an integer of at least 0; got {n_samples!r}.")
    if snr_db is not None and not is_number(snr_db):
        raise ValueError(f"snr_db must be a finite number or None; got {snr_db!r}.")
    random = check_random_state(random_state)
    X = random.uniform(-5.0, 5.0, size=(n_samples, 2))
    y = np.sinc(np.linalg.norm(X, axis=1) / np.pi)
    if snr_db is not None and n_samples > 0:
        noise = np.sqrt(np.mean(y**2) * 10 ** (-snr_db / 10))
        y = y + noise * random.normal(size=n_samples)
    return X, y


def make_regression_outliers(
    n_samples: int = 24000,
    *,
    outliers: str = "none",
    fraction: float = 0.05,
    noise: float = 0.2,
    random_state: Any = None,
    return_truth: bool = False,
) -> Any:
    """Draw the regression task "regression outliers" of the COLK paper.

    y = 2 x + 3 sin(6 x) plus Gaussian noise, with x uniform on [-1, 1]. A part of the targets are
    outliers: a further Gaussian is added to them, of mean 0 and standard deviation 3
    ("symmetric") or of mean 3 and standard deviation 1 ("one-sided").

    Parameters
    ----------
    n_samples : int, default=24000
        Number of samples; the paper's training sets have 24,000.
    outliers : {"none", "symmetric", "one-sided"}, default="none"
        What the outliers are like.
    fraction : float, default=0.05
        Probability that a target is an outlier.
    noise : float, default=0.2
        Standard deviation of the noise.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw.
    return_truth : bool, default=False
        Whether to return the values without noise and outliers as well.

    Returns
    -------
    X : ndarray of shape (n_samples, 1)
        The samples.
    y : ndarray of shape (n_samples,)
        Their targets.
    truth : ndarray of shape (n_samples,)
        The values of 2 x + 3 sin(6 x). Only if `return_truth` is true.

    References
    ----------
    .. [1] A. S. Bedi, A. Koppel, K. Rajawat and P. Sanyal, "Nonparametric Compositional Stochastic
       Optimization for Risk-Sensitive Kernel Learning", IEEE Transactions on Signal Processing 69
       (2021), section V.

    Examples
    --------
    >>> from parsimon.datasets import make_regression_outliers
    >>> X, y = make_regression_outliers(1000, outliers="one-sided", random_state=0)
    >>> X.shape, y.shape
    ((1000, 1), (1000,))
    """
    count: Any = n_samples
    if not isinstance(count, Integral) or count < 0:
        raise ValueError(f"n_samples must be an integer of at least 0; got {n_samples!r}.")
    if outliers not in tuple(_OUTLIERS):
        raise ValueError(
            f"outliers must be one of {', '.join(map(repr, _OUTLIERS))}; got {outliers!r}."
        )
    if not is_number(fraction) or not 0 <= fraction <= 1:
        raise ValueError(f"fraction must be between 0 and 1; got {fraction!r}.")
    if not is_number(noise) or noise < 0:
        raise ValueError(f"noise must be a finite number and not negative; got {noise!r}.")
    random = check_random_state(random_state)
    X = random.uniform(-1, 1, size=(n_samples, 1))
    truth = 2 * X[:, 0] + 3 * np.sin(6 * X[:, 0])
    y = truth + noise * random.normal(size=n_samples)
    # Drawn in any case: the same seed gives the same samples and noise for all kinds of outliers.
    is_outlier = random.uniform(size=n_samples) < fraction
    mean, sd = _OUTLIERS[outliers]
    y = y + is_outlier * (mean + sd * random.normal(size=n_samples))
    return (X, y, truth) if return_truth else (X, y)


# Mean and standard deviation of what is added to an outlier.
_OUTLIERS = {"none": (0.0, 0.0), "symmetric": (0.0, 3.0), "one-sided": (3.0, 1.0)}


def make_poisson_gaussian(
    expected_count: float = 10211,
    *,
    random_state: Any = None,
    return_density: bool = False,
) -> Any:
    """Draw the Poisson process on (0, 1) with a Gaussian intensity of the SPPPOT paper.

    The intensity is `expected_count` times f(x) = 10 / sqrt(2 pi) exp(-50 (x - 0.5)^2), the density
    of a Gaussian of mean 0.5 and standard deviation 0.1. (The paper prints the exponent without its
    minus sign.) The number of points is random, too: draws with the same `expected_count` have
    different lengths.

    Parameters
    ----------
    expected_count : float, default=10211
        Number of points to expect, not negative; the paper has 10,211 to train and 1,001 to test.
        A share of 6e-7 of them would fall outside (0, 1) and is left out.
    random_state : int, RandomState instance or None, default=None
        Seed of the number of points and of the points.
    return_density : bool, default=False
        Whether to return f as well.

    Returns
    -------
    X : ndarray of shape (n_samples, 1)
        The points, independent of each other and in no order.
    density : callable
        The function f, which takes points of shape (n,) or (n, 1) and returns an array of shape
        (n,); it is 0 outside (0, 1). Times `expected_count` it is the intensity. Only if
        `return_density` is true.

    References
    ----------
    .. [1] A. Chakraborty, K. Rajawat and A. Koppel, "Sparse Representations of Positive Functions
       via First and Second-Order Pseudo-Mirror Descent", arXiv:2011.07142, section VI.

    Examples
    --------
    >>> from parsimon.datasets import make_poisson_gaussian
    >>> X, density = make_poisson_gaussian(1000, random_state=0, return_density=True)
    >>> X.shape[1], bool(950 < len(X) < 1050)
    (1, True)
    >>> density([0.5, 0.6]).round(3)
    array([3.989, 2.42 ])
    """
    if not is_number(expected_count) or expected_count < 0:
        raise ValueError(
            f"expected_count must be a finite number and not negative; got {expected_count!r}."
        )
    random = check_random_state(random_state)
    # A Poisson process on the whole line, seen through a window, is one on the window: exact.
    X = random.normal(_MEAN, _SD, size=(random.poisson(expected_count), 1))
    X = X[(X[:, 0] > 0) & (X[:, 0] < 1)]
    return (X, _gaussian_density) if return_density else X


_MEAN, _SD = 0.5, 0.1


def _gaussian_density(X: ArrayLike) -> NDArray[np.float64]:
    x = np.asarray(X, dtype=np.float64)
    if x.ndim != 1 and not (x.ndim == 2 and x.shape[1] == 1):
        raise ValueError(f"X must have the shape (n,) or (n, 1); got {x.shape}.")
    x = x.ravel()
    peak = 1 / (_SD * np.sqrt(2 * np.pi))
    values = peak * np.exp(-np.square((x - _MEAN) / _SD) / 2)
    return np.where((x > 0) & (x < 1), values, 0.0)

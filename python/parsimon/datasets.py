"""Data sets of the papers: generators, and loaders for real data.

A loader first looks for ``<name>.npz`` in the folder that the environment variable
``PARSIMON_DATA`` names. If it is not there, the data are fetched from OpenML, where OpenML has
them, and kept in scikit-learn's cache (``data_home``).

==========  =======================================================  ==========================
loader      arrays in the file                                       OpenML
==========  =======================================================  ==========================
mnist       X_train, y_train, X_test, y_test; pixels 0 to 255        data_id=554
usps        X_train, y_train, X_test, y_test; pixels -1 to 1         data_id=41082
abalone     X (sex one-hot as M, F, I; then 7 measures), y (rings)   data_id=183
boston      X (13 columns), y (medv)                                 data_id=531
lidar       X (range), y (logratio)                                  no
==========  =======================================================  ==========================
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike
from sklearn.utils import Bunch, check_random_state

from ._checks import is_number
from ._data_sources import ABALONE, BOSTON, LIDAR, MNIST, USPS, Array, PathLike, Source, read

__all__ = [
    "load_abalone",
    "load_boston",
    "load_lidar",
    "load_mnist",
    "load_usps",
    "make_multidist",
]

Subset = Literal["train", "test", "all"]


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


def load_mnist(
    *,
    subset: Subset = "train",
    pixel_range: tuple[float, float] | None = (0.0, 1.0),
    dtype: DTypeLike = np.float64,
    return_X_y: bool = False,
    data_home: PathLike | None = None,
) -> Any:
    """Load the MNIST handwritten digits: 60,000 to train and 10,000 to test, 28 x 28 pixels.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        Which samples; "all" has those for training first.
    pixel_range : tuple of two floats, default=(0.0, 1.0)
        What black and white are mapped to; None keeps 0 and 255.
    dtype : data type, default=float64
        Type of the pixels.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` instead of a Bunch.
    data_home : path-like, optional
        Cache for OpenML; scikit-learn's by default.

    Returns
    -------
    mnist : Bunch
        With ``data`` of shape (n_samples, 784), ``target`` (digits 0 to 9) and ``DESCR``.
    """
    arrays = read(MNIST, data_home)
    return _digits(arrays, MNIST, (0.0, 255.0), subset, pixel_range, dtype, return_X_y)


def load_usps(
    *,
    subset: Subset = "train",
    pixel_range: tuple[float, float] | None = (0.0, 1.0),
    dtype: DTypeLike = np.float64,
    return_X_y: bool = False,
    data_home: PathLike | None = None,
) -> Any:
    """Load the USPS handwritten digits: 7,291 to train and 2,007 to test, 16 x 16 pixels.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        Which samples; "all" has those for training first.
    pixel_range : tuple of two floats, default=(0.0, 1.0)
        What black and white are mapped to; None keeps -1 and 1.
    dtype : data type, default=float64
        Type of the pixels.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` instead of a Bunch.
    data_home : path-like, optional
        Cache for OpenML; scikit-learn's by default.

    Returns
    -------
    usps : Bunch
        With ``data`` of shape (n_samples, 256), ``target`` (digits 0 to 9) and ``DESCR``.
    """
    arrays = read(USPS, data_home)
    return _digits(arrays, USPS, (-1.0, 1.0), subset, pixel_range, dtype, return_X_y)


def load_abalone(
    *,
    standardize: bool = False,
    return_X_y: bool = False,
    data_home: PathLike | None = None,
) -> Any:
    """Load Abalone (UCI): the number of rings of 4,177 shells from ten features.

    Parameters
    ----------
    standardize : bool, default=False
        Whether to give each feature mean 0 and standard deviation 1, over all samples. To judge a
        model, leave it off and put a ``StandardScaler`` before the model.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` instead of a Bunch.
    data_home : path-like, optional
        Cache for OpenML; scikit-learn's by default.

    Returns
    -------
    abalone : Bunch
        With ``data`` of shape (4177, 10), ``target``, ``feature_names`` and ``DESCR``.
    """
    return _table(read(ABALONE, data_home), ABALONE, standardize, return_X_y)


def load_boston(
    *,
    standardize: bool = False,
    return_X_y: bool = False,
    data_home: PathLike | None = None,
) -> Any:
    """Load the Boston house prices: 506 districts, 13 features, for comparison with old papers.

    One feature, ``b``, was built on the assumption that racial segregation raises prices:
    scikit-learn removed the data for that reason, and it is no basis for a study of houses.

    Parameters
    ----------
    standardize : bool, default=False
        Whether to give each feature mean 0 and standard deviation 1, over all samples. To judge a
        model, leave it off and put a ``StandardScaler`` before the model.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` instead of a Bunch.
    data_home : path-like, optional
        Cache for OpenML; scikit-learn's by default.

    Returns
    -------
    boston : Bunch
        With ``data`` of shape (506, 13), ``target``, ``feature_names`` and ``DESCR``.
    """
    return _table(read(BOSTON, data_home), BOSTON, standardize, return_X_y)


def load_lidar(*, standardize: bool = False, return_X_y: bool = False) -> Any:
    """Load LIDAR: 221 log ratios of received laser light against the distance travelled.

    OpenML does not have these data: ``PARSIMON_DATA`` must name a folder that does.

    Parameters
    ----------
    standardize : bool, default=False
        Whether to give the distance mean 0 and standard deviation 1.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    lidar : Bunch
        With ``data`` of shape (221, 1), ``target``, ``feature_names`` and ``DESCR``.
    """
    return _table(read(LIDAR, None), LIDAR, standardize, return_X_y)


def _digits(
    arrays: Mapping[str, Array],
    source: Source,
    stored_range: tuple[float, float],
    subset: Subset,
    pixel_range: tuple[float, float] | None,
    dtype: DTypeLike,
    return_X_y: bool,
) -> Any:
    if subset not in ("train", "test", "all"):
        raise ValueError(f'subset must be "train", "test" or "all"; got {subset!r}.')
    parts = ("train", "test") if subset == "all" else (subset,)
    X = np.concatenate([arrays[f"X_{part}"] for part in parts]).astype(dtype)
    X = X.reshape(len(X), -1)
    y = np.concatenate([arrays[f"y_{part}"] for part in parts]).astype(np.int64)
    if pixel_range is not None:
        (low, high), (old_low, old_high) = pixel_range, stored_range
        X -= old_low
        X *= (high - low) / (old_high - old_low)
        X += low
    return _result(X, y, source, return_X_y)


def _table(arrays: Mapping[str, Array], source: Source, standardize: bool, return_X_y: bool) -> Any:
    X = np.asarray(arrays["X"], dtype=np.float64)
    y = np.asarray(arrays["y"], dtype=np.float64)
    if standardize:
        spread = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return _result(X, y, source, return_X_y)


def _result(X: Array, y: Array, source: Source, return_X_y: bool) -> Any:
    if return_X_y:
        return X, y
    names = {"feature_names": list(source.feature_names)} if source.feature_names else {}
    return Bunch(data=X, target=y, DESCR=source.description, **names)

"""Real data: what the files hold, brought into scikit-learn's shape."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike
from sklearn.utils import Bunch, check_random_state

from ._sources import (
    ABALONE,
    BOSTON,
    CHICAGO_CRIMES,
    CURRY_SHOTS,
    LIDAR,
    MNIST,
    USPS,
    Array,
    PathLike,
    Source,
    read,
)

Subset = Literal["train", "test", "all"]


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


def load_curry_shots(
    *,
    subset: Subset = "train",
    n_train: int = 8298,
    normalize: bool = True,
    random_state: Any = 0,
    return_X: bool = False,
) -> Any:
    """Load the distances from which Stephen Curry shot: 9,278 points on a line.

    These are his attempts from less than 40 feet in the seasons that ended in 2013 to 2019. OpenML
    does not have these data: ``PARSIMON_DATA`` must name a folder that does.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        Which points, in random order; "all" has those for training first.
    n_train : int, default=8298
        Number of points to train, as in the SPPPOT paper; the others are to test.
    normalize : bool, default=True
        Whether to divide by 40 feet, so that the distances are between 0 and 1.
    random_state : int, RandomState instance or None, default=0
        Seed of the split. Calls with the same int split in the same way; with None or an instance,
        each call splits anew, and training and test points from two calls overlap.
    return_X : bool, default=False
        Whether to return ``data`` instead of a Bunch.

    Returns
    -------
    shots : Bunch
        With ``data`` of shape (n_samples, 1), ``bounds`` (of shape (1, 2): what becomes 0 and 1),
        ``feature_names`` and ``DESCR``.
    """
    arrays = read(CURRY_SHOTS, None)
    season = arrays["season_end_year"]
    distance = np.asarray(arrays["dist_ft"], dtype=np.float64)
    x = distance[(season >= 2013) & (season <= 2019) & (distance < 40), None]
    x = _split(x, subset, n_train, None, random_state)
    return _points(x, np.array([[0.0, 40.0]]), CURRY_SHOTS, normalize, return_X)


def load_chicago_crimes(
    *,
    subset: Subset = "train",
    n_train: int = 10000,
    n_test: int = 2000,
    normalize: bool = True,
    random_state: Any = 0,
    return_X: bool = False,
) -> Any:
    """Load the places of 156,385 crimes in Chicago in 2018: points in the plane.

    Places are given by block, so many points coincide. OpenML does not have these data:
    ``PARSIMON_DATA`` must name a folder that does.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        Which points, in random order; "all" has those for training first, then those to test, then
        the rest.
    n_train, n_test : int, default=10000 and 2000
        Number of points to train and to test, as in the SPPPOT paper.
    normalize : bool, default=True
        Whether to map the smallest rectangle around all 156,385 points to the unit square.
    random_state : int, RandomState instance or None, default=0
        Seed of the split. Calls with the same int split in the same way; with None or an instance,
        each call splits anew, and training and test points from two calls overlap.
    return_X : bool, default=False
        Whether to return ``data`` instead of a Bunch.

    Returns
    -------
    crimes : Bunch
        With ``data`` of shape (n_samples, 2), ``bounds`` (of shape (2, 2): what becomes 0 and 1 on
        each axis), ``feature_names`` and ``DESCR``.
    """
    x = np.asarray(read(CHICAGO_CRIMES, None)["x"], dtype=np.float64)
    bounds = np.column_stack([x.min(axis=0), x.max(axis=0)])
    x = _split(x, subset, n_train, n_test, random_state)
    return _points(x, bounds, CHICAGO_CRIMES, normalize, return_X)


def _digits(
    arrays: Mapping[str, Array],
    source: Source,
    stored_range: tuple[float, float],
    subset: Subset,
    pixel_range: tuple[float, float] | None,
    dtype: DTypeLike,
    return_X_y: bool,
) -> Any:
    _check_subset(subset)
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


def _split(x: Array, subset: Subset, n_train: int, n_test: int | None, random_state: Any) -> Array:
    """Shuffle the points and take a part; without `n_test`, what is not for training is to test."""
    _check_subset(subset)
    counts: dict[str, Any] = {"n_train": n_train, "n_test": 0 if n_test is None else n_test}
    for name, count in counts.items():
        if not isinstance(count, Integral) or count < 0:
            raise ValueError(f"{name} must be an integer of at least 0; got {count!r}.")
    end = sum(counts.values())
    if end > len(x):
        raise ValueError(
            f"n_train and n_test must not exceed the {len(x)} points that there are; together they "
            f"are {end}."
        )
    ranges = {
        "train": slice(n_train),
        "test": slice(n_train, None if n_test is None else end),
        "all": slice(None),
    }
    order = check_random_state(random_state).permutation(len(x))
    return np.asarray(x[order[ranges[subset]]])


def _check_subset(subset: Subset) -> None:
    if subset not in ("train", "test", "all"):
        raise ValueError(f'subset must be "train", "test" or "all"; got {subset!r}.')


def _points(x: Array, bounds: Array, source: Source, normalize: bool, return_X: bool) -> Any:
    if normalize:
        x = (x - bounds[:, 0]) / (bounds[:, 1] - bounds[:, 0])
    if return_X:
        return x
    names = list(source.feature_names)
    return Bunch(data=x, bounds=bounds, feature_names=names, DESCR=source.description)


def _result(X: Array, y: Array, source: Source, return_X_y: bool) -> Any:
    if return_X_y:
        return X, y
    names = {"feature_names": list(source.feature_names)} if source.feature_names else {}
    return Bunch(data=X, target=y, DESCR=source.description, **names)

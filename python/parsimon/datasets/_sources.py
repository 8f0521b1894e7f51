"""Where real data come from: files in the folder ``PARSIMON_DATA``, or OpenML."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

Array = NDArray[Any]
PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Source:
    """Where a data set is: ``<name>.npz``, or a number at OpenML and how to read what it sends."""

    name: str
    arrays: tuple[str, ...]
    description: str
    feature_names: tuple[str, ...] = ()
    openml_id: int | None = None
    from_openml: Callable[[Bunch], Mapping[str, Array]] | None = None


def read(source: Source, data_home: PathLike | None) -> Mapping[str, Array]:
    folder = os.environ.get("PARSIMON_DATA", "")
    if folder:
        path = Path(folder) / f"{source.name}.npz"
        if path.is_file():
            return _read_file(path, source)
        where = f"the folder that PARSIMON_DATA names, {folder}, has no {source.name}.npz"
    else:
        where = "PARSIMON_DATA is not set"
    advice = (
        f"set PARSIMON_DATA to a folder with {source.name}.npz, which holds the arrays "
        f"{', '.join(source.arrays)}"
    )
    if source.openml_id is None or source.from_openml is None:
        raise FileNotFoundError(
            f"The data set {source.name!r} is not here: {where}, and OpenML does not have it. "
            f"Please {advice}."
        )
    try:
        answer = _fetch(source.openml_id, data_home)
    except (OSError, ValueError) as error:  # no network, or OpenML says no
        raise FileNotFoundError(
            f"The data set {source.name!r} is not here: {where}, and it could not be fetched from "
            f"OpenML ({error}). Please {advice}, or connect this machine to the network."
        ) from error
    return source.from_openml(answer)


def _read_file(path: Path, source: Source) -> Mapping[str, Array]:
    try:
        with path.open("rb") as stream:
            archive = np.load(stream, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("it is a single array")
            arrays = {name: archive[name] for name in source.arrays if name in archive}
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path} is not a NumPy archive of plain arrays: {error}.") from error
    if len(arrays) < len(source.arrays):
        raise ValueError(
            f"{path} must hold the arrays {', '.join(source.arrays)}; it lacks "
            f"{', '.join(name for name in source.arrays if name not in arrays)}."
        )
    return arrays


def _fetch(data_id: int, data_home: PathLike | None) -> Bunch:
    from sklearn.datasets import fetch_openml

    # pandas reads large files much faster, but is no requirement of parsimon.
    parser = "pandas" if find_spec("pandas") is not None else "liac-arff"
    home = None if data_home is None else os.fspath(data_home)
    return fetch_openml(data_id=data_id, as_frame=False, parser=parser, data_home=home)


def _mnist_from_openml(answer: Bunch) -> Mapping[str, Array]:
    return _split(answer.data, answer.target.astype(np.int64), 60000)


def _usps_from_openml(answer: Bunch) -> Mapping[str, Array]:
    arrays = _split(answer.data, answer.target.astype(np.int64) - 1, 7291)
    expected = [1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644]
    if not np.array_equal(np.bincount(arrays["y_train"], minlength=10), expected):
        raise ValueError(
            "OpenML's USPS digits are not in the order expected, training samples first; set "
            "PARSIMON_DATA to a folder with usps.npz."
        )
    return arrays


def _split(X: Array, y: Array, n_train: int) -> dict[str, Array]:
    return {
        "X_train": X[:n_train],
        "y_train": y[:n_train],
        "X_test": X[n_train:],
        "y_test": y[n_train:],
    }


def _abalone_from_openml(answer: Bunch) -> Mapping[str, Array]:
    columns = _columns(answer)
    sex = columns.pop("sex")
    X = np.column_stack([*(sex == letter for letter in "MFI"), *columns.values()])
    return {"X": X.astype(np.float64), "y": answer.target.astype(np.float64)}


def _boston_from_openml(answer: Bunch) -> Mapping[str, Array]:
    columns = _columns(answer)
    X = np.column_stack([columns[name] for name in BOSTON.feature_names])
    return {"X": X.astype(np.float64), "y": answer.target.astype(np.float64)}


def _columns(answer: Bunch) -> dict[str, Array]:
    """Name OpenML's columns in lower case, with categories spelt out.

    Of scikit-learn's two parsers, pandas leaves categories as they are in an array of objects;
    liac-arff replaces them by codes.
    """
    data = np.asarray(answer.data)
    columns: dict[str, Array] = {}
    for name, values in zip(answer.feature_names, data.T, strict=True):
        if data.dtype != object and name in answer.categories:
            values = np.asarray(answer.categories[name], dtype=object)[values.astype(np.int64)]
        columns[name.lower()] = values
    return columns


_TRAIN_TEST = ("X_train", "y_train", "X_test", "y_test")

MNIST = Source(
    name="mnist",
    arrays=_TRAIN_TEST,
    description="MNIST handwritten digits (Y. LeCun, C. Cortes and C. J. C. Burges).",
    openml_id=554,
    from_openml=_mnist_from_openml,
)
USPS = Source(
    name="usps",
    arrays=_TRAIN_TEST,
    description="USPS handwritten digits (J. J. Hull, IEEE PAMI 16, 1994).",
    openml_id=41082,
    from_openml=_usps_from_openml,
)
ABALONE = Source(
    name="abalone",
    arrays=("X", "y"),
    description="Abalone (W. J. Nash et al., 1994; UCI Machine Learning Repository).",
    feature_names=(
        *("sex_M", "sex_F", "sex_I", "length", "diameter", "height"),
        *("whole_weight", "shucked_weight", "viscera_weight", "shell_weight"),
    ),
    openml_id=183,
    from_openml=_abalone_from_openml,
)
BOSTON = Source(
    name="boston",
    arrays=("X", "y"),
    description="Boston house prices (D. Harrison and D. L. Rubinfeld, 1978).",
    feature_names=(
        *("crim", "zn", "indus", "chas", "nox", "rm", "age"),
        *("dis", "rad", "tax", "ptratio", "b", "lstat"),
    ),
    openml_id=531,
    from_openml=_boston_from_openml,
)
LIDAR = Source(
    name="lidar",
    arrays=("X", "y"),
    description="LIDAR (D. Ruppert, M. P. Wand and R. J. Carroll, 2003; R package SemiPar).",
    feature_names=("range",),
)
CURRY_SHOTS = Source(
    name="curry_shots",
    arrays=("dist_ft", "season_end_year"),
    description="Stephen Curry's field-goal attempts in NBA regular seasons (NBA shot charts).",
    feature_names=("distance",),
)
CHICAGO_CRIMES = Source(
    name="chicago_crimes_2018",
    arrays=("x",),
    description="Crimes in Chicago, January to August 2018 (City of Chicago data portal).",
    feature_names=("longitude", "latitude"),
)

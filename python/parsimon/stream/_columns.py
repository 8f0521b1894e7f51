"""Named columns of data frames of any kind, as NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Columns = dict[str, NDArray[Any]]


def is_dictionary(X: Any) -> bool:
    """Tell whether this maps names to columns; a kind of SciPy's sparse matrices maps, too."""
    return isinstance(X, Mapping) and not sparse.issparse(X)


def is_one_sample(X: Any) -> bool:
    """Tell whether a dictionary maps names to values, not to columns."""
    value = next(iter(X.values()), ())
    return isinstance(value, str) or not hasattr(value, "__len__")


def is_rows(X: Any) -> bool:
    """Tell whether this is a list of samples that are dictionaries."""
    return isinstance(X, (list, tuple)) and bool(X) and all(map(is_dictionary, X))


def has_fields(X: Any) -> bool:
    """Tell whether this is an array whose columns have names, one with a structured type."""
    return getattr(getattr(X, "dtype", None), "names", None) is not None


def refuse_plan(X: Any) -> None:
    """Refuse a frame of polars that has not been computed yet."""
    if type(X).__name__ == "LazyFrame":
        raise TypeError("A LazyFrame has no samples before it is computed: give X.collect().")


def columns_of(X: Any) -> Columns | None:
    """Return the columns of a frame of pandas, polars or pyarrow, or of a dictionary of columns.

    Also those of a list of dictionaries, in which a name that a sample lacks is missing there, and
    of an array with fields. None for what has no columns with names, such as other arrays.
    """
    refuse_plan(X)
    if is_rows(X):
        names = dict.fromkeys(name for row in X for name in row)
        columns = {str(name): array_of([row.get(name) for row in X]) for name in names}
    elif has_fields(X):
        columns = {name: array_of(X[name]) for name in X.dtype.names}
    elif is_dictionary(X):
        one = is_one_sample(X)
        columns = {str(name): array_of([v] if one else v) for name, v in X.items()}
    elif sparse.issparse(X):
        return None
    elif hasattr(X, "column_names"):  # pyarrow's tables and batches
        columns = {name: array_of(X.column(name)) for name in X.column_names}
    elif hasattr(X, "columns") and hasattr(X, "__getitem__"):  # pandas and polars
        columns = {str(name): array_of(X[name]) for name in X.columns}
        if len(columns) != X.shape[1]:
            raise ValueError(
                f"The names of columns must differ; the frame has {list(X.columns)!r}."
            )
    else:
        return None
    sizes = {name: len(values) for name, values in columns.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"All columns must have as many rows; they have {sizes}.")
    return columns


def array_of(values: Any) -> NDArray[Any]:
    """Return one column as an array."""
    # A series of pandas takes long to say what it does not have.
    if type(values).__module__.startswith("pyarrow"):
        chunked = hasattr(values, "combine_chunks")
        # Of a single array, a copy must be allowed.
        values = values.to_numpy() if chunked else values.to_numpy(zero_copy_only=False)
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"A column must have one dimension; one has the shape {array.shape}.")
    return without_decimals(array)


def without_decimals(values: NDArray[Any]) -> NDArray[Any]:
    """Return decimal numbers as those that are computed with; anything else as it is."""
    if values.dtype.kind != "O" or values.ndim != 1:
        return values
    known = (value for value in values if value is not None)
    if not isinstance(next(known, None), Decimal) or not is_number_column(values):
        return values
    return np.array([np.nan if is_missing(value) else value for value in values], dtype=np.float64)


def row_count(X: Any) -> int:
    """Return how many samples there are in an array, a sparse matrix, a frame or columns."""
    refuse_plan(X)
    if is_dictionary(X):
        return 1 if is_one_sample(X) else len(next(iter(X.values()), ()))
    return int(X.shape[0]) if hasattr(X, "shape") else len(np.asarray(X))


def rows_of(X: Any, part: slice) -> Any:
    """Return some rows of the same."""
    if is_dictionary(X):
        return {name: values[part] for name, values in X.items()}
    if hasattr(X, "iloc"):  # pandas
        return X.iloc[part]
    if hasattr(X, "column_names"):  # pyarrow
        return X.slice(part.start, part.stop - part.start)
    return X[part]


def is_missing(value: Any) -> bool:
    """Tell whether this stands for a value that is not known: None, NaN, pandas.NA, no text."""
    if value is None or (isinstance(value, str) and not value):
        return True
    same = value == value  # which NaN is not
    return same is not True and not (isinstance(same, np.bool_) and bool(same))


def is_number_column(values: NDArray[Any]) -> bool:
    """Tell whether a column holds numbers, some of which may be missing.

    Where all are missing, it does unless they are missing texts.
    """
    if values.dtype.kind in "biuf":
        return True
    if values.dtype.kind in "mMc":
        return False
    known = [value for value in values if not is_missing(value)]
    if not known:
        return not any(isinstance(value, str) for value in values)
    return values.dtype.kind == "O" and all(isinstance(value, _NUMBERS) for value in known)


_NUMBERS = (int, float, Decimal, np.integer, np.floating)


def says_nothing(values: NDArray[Any]) -> bool:
    """Tell whether all values of a column are missing."""
    return values.dtype.kind not in "biumMc" and all(map(is_missing, values))


def refuse_complex_in(name: str, values: NDArray[Any]) -> None:
    """Refuse a column of complex numbers, each of which would be a category of its own."""
    objects = values if values.dtype.kind == "O" else ()
    if values.dtype.kind == "c" or any(isinstance(value, complex) for value in objects):
        raise ValueError(
            f"Columns must be numbers or text, but column {name!r} holds complex numbers. Give "
            f"their real and imaginary parts, or size and angle, as columns of their own."
        )


def numbers_of(name: str, values: NDArray[Any]) -> NDArray[np.float64]:
    """Return a column as numbers, NaN where they are missing."""
    try:
        if values.dtype.kind == "O":
            values = np.array([np.nan if is_missing(value) else value for value in values])
        if values.dtype.kind in "mMc":
            raise TypeError(f"it holds {values.dtype}")
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"The column {name!r} must hold numbers, as it did in the first samples: {error}. If "
            f"it is text that was missing at first, say so: "
            f"StreamingScaler(categorical=[{name!r}])."
        ) from error


def texts_of(values: NDArray[Any]) -> list[str]:
    """Return a column as text, "" where it is missing."""
    return [value if type(value) is str else _text(value) for value in values.tolist()]


def _text(value: Any) -> str:
    if is_missing(value):
        return ""
    # A column of numbers with gaps is one of floats: 3.0 there is 3.
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)

"""The transformer for streams of mixed columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, validate_data

from parsimon._checks import check_count, is_number
from parsimon._docs import documented
from parsimon._model import is_finite
from parsimon._site import linked
from parsimon._sklearn import BaseEstimator, TransformerMixin

from ._columns import columns_of, has_fields, is_dictionary, is_rows
from ._encoding import Encoding, Table

if TYPE_CHECKING:
    from typing_extensions import Self


_ENTRIES = """
X : array, frame of pandas, polars or pyarrow, or dict of columns
    The samples. A dict of single values is one sample.
y : None
    Ignored.
encoded : ndarray of shape (n_samples, n_outputs)
    Columns of numbers first, then the places of each column of text.
"""


@linked
@documented(_ENTRIES)
class StreamingScaler(TransformerMixin, BaseEstimator):
    """Numbers to mean 0 and variance 1, and text to one-hot columns, along a stream.

    Means, variances and categories are those of all samples so far, or of the latest if a half-life
    is given. Missing numbers become 0, which is their mean; a missing text is a category. The width
    of the result is fixed by the first samples: beside the categories that they have, as many
    places again, at least 4, are kept for those that come later. A category that was never learned
    is encoded as zeros; once all places are taken, those without one share another.

    Parameters
    ----------
    half_life : float, optional
        The number of samples, positive, after which a sample counts half in mean and variance. By
        default all count the same.
    categorical : "auto" or sequence, default="auto"
        The columns that are categories though they may be numbers, by names or by positions.
        Columns of text always are.
    max_categories : int, default=100
        Places that a column of text can have, beside the shared one.

    Attributes
    ----------
    mean_ : ndarray
        The mean of each column of numbers.
    scale_ : ndarray
        Their standard deviations; 1 where all numbers are equal.
    categories_ : list of ndarray
        The categories of each column of text that have a place of their own.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Their names, if they have any.

    Examples
    --------
    >>> from parsimon.stream import StreamingScaler
    >>> scaler = StreamingScaler().partial_fit({"size": [1.0, 3.0], "colour": ["red", "blue"]})
    >>> scaler.transform({"size": [2.0], "colour": ["blue"]})
    array([[0., 0., 1., 0., 0., 0., 0., 0.]])
    >>> scaler = scaler.partial_fit({"size": [2.0], "colour": ["green"]})
    >>> scaler.categories_
    [array(['red', 'blue', 'green'], dtype=object)]
    """

    _encoding_: Encoding

    def __init__(
        self,
        *,
        half_life: float | None = None,
        categorical: str | Sequence[Any] = "auto",
        max_categories: int = 100,
    ) -> None:
        self.half_life = half_life
        self.categorical = categorical
        self.max_categories = max_categories

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Learn from these samples alone.

        {X, y -> self}
        """
        fresh = clone(self)
        fresh._encoding_ = fresh._first(fresh._table(X, reset=True))
        # Only now: what cannot be learned from leaves everything as it was.
        for name in ("feature_names_in_", "_encoding_"):
            self.__dict__.pop(name, None)
        self.__dict__.update(fresh.__dict__)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Learn from one block of a stream.

        {X, y -> self}
        """
        if not hasattr(self, "_encoding_"):
            return self.fit(X)
        self._encoding_ = self._encoding_.plus(self._table(X))
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return samples as numbers.

        {X -> encoded}
        """
        if "_encoding_" not in self.__dict__:  # which takes a moment to say
            check_is_fitted(self)
        return self._encoding_.encode(self._table(X))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:  # noqa: ARG002
        """Return a name for each column of the result.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        names : ndarray of str
            The name of the column, for text with the category behind it.
        """
        check_is_fitted(self)
        return np.array(self._encoding_.output_names(), dtype=object)

    @property
    def mean_(self) -> NDArray[np.float64]:
        """The mean of each column of numbers."""
        return self._state("mean_").mean

    @property
    def scale_(self) -> NDArray[np.float64]:
        """Their standard deviations; 1 where all numbers are equal."""
        return self._state("scale_").scale

    @property
    def categories_(self) -> list[NDArray[Any]]:
        """The categories of each column of text."""
        return [np.array(known, dtype=object) for known in self._state("categories_").categories]

    def _state(self, name: str) -> Encoding:
        if not hasattr(self, "_encoding_"):
            raise AttributeError(f"{type(self).__name__} has no {name} before it is fitted.")
        return self._encoding_

    def _first(self, table: Table) -> Encoding:
        """Return what the first samples show."""
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = [f"x{number}" for number in range(self.n_features_in_)]
        chosen = set() if isinstance(self.categorical, str) else set(self.categorical)
        known = {*names, *range(self.n_features_in_)}
        if not chosen <= known:
            raise ValueError(
                f"categorical names {sorted(map(repr, chosen - known))}, which are no columns; "
                f"there are {self.n_features_in_}: {', '.join(map(repr, names))}."
            )
        return Encoding.of(
            table,
            names,
            categorical=lambda place: place in chosen or names[place] in chosen,
            half_life=float("inf") if self.half_life is None else float(self.half_life),
            max_categories=int(self.max_categories),
        )

    def _check_parameters(self) -> None:
        if self.half_life is not None and not (is_number(self.half_life) and self.half_life > 0):
            raise ValueError(
                f"half_life must be a positive, finite number of samples, or None; "
                f"got {self.half_life!r}."
            )
        check_count("max_categories", self.max_categories)
        if isinstance(self.categorical, str) and self.categorical != "auto":
            raise ValueError(
                f"categorical must be 'auto' or a sequence of columns; got {self.categorical!r}."
            )

    def _table(self, X: Any, *, reset: bool = False) -> Table:
        """Return the columns of samples, after a look at their names and number."""
        if reset:
            self._check_parameters()
        elif self._takes_as_it_is(X):
            return X
        if is_dictionary(X) or hasattr(X, "column_names") or is_rows(X) or has_fields(X):
            return self._by_name(columns_of(X) or {}, reset=reset)
        columns = columns_of(X)
        if columns is not None:
            if not len(next(iter(columns.values()), ())):
                raise ValueError("There are no samples: a frame must have some rows.")
            if reset or [*columns] != getattr(self, "feature_names_in_", _NO_NAMES).tolist():
                validate_data(self, X, reset=reset, skip_check_array=True)
            return _numbers_if_all(list(columns.values()))
        kind = getattr(X, "dtype", np.asarray(X).dtype if isinstance(X, (list, tuple)) else None)
        if getattr(kind, "kind", "f") in "OUT":
            X = validate_data(self, X, reset=reset, dtype=object, ensure_all_finite=False)
            return list(X.T)
        # Row by row, whatever came: sums along a column in another order are other sums.
        options: dict[str, Any] = {"order": "C", "ensure_all_finite": "allow-nan"}
        return validate_data(self, X, reset=reset, dtype=np.float64, **options)

    def _takes_as_it_is(self, X: Any) -> bool:
        """Tell whether these are samples in which validation would find nothing to do."""
        return (
            type(X) is np.ndarray
            and X.dtype.type is np.float64
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == self.n_features_in_
            and "feature_names_in_" not in self.__dict__
            and X.flags.c_contiguous
            and is_finite(X)
        )

    def _by_name(self, columns: dict[str, NDArray[Any]], *, reset: bool) -> Table:
        """Return the columns of a dictionary, whose order does not matter."""
        if not columns or not len(next(iter(columns.values()))):
            raise ValueError("There are no samples: a dictionary of columns must have some rows.")
        if reset:
            self.n_features_in_ = len(columns)
            self.feature_names_in_ = np.array(list(columns), dtype=object)
        names = getattr(self, "feature_names_in_", None)
        if names is None or set(names) != set(columns):
            expected = f"{self.n_features_in_} without names" if names is None else names.tolist()
            raise ValueError(
                f"The columns are {list(columns)}, but those learned from are {expected}."
            )
        return _numbers_if_all([columns[name] for name in names])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_encoding_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


_NO_NAMES = np.empty(0)


def _numbers_if_all(columns: list[NDArray[Any]]) -> Table:
    """Return columns as one array, if they are all numbers."""
    if all(column.dtype.kind in "biuf" for column in columns):
        return np.column_stack(columns)
    return columns

"""Columns of numbers and of text as comparable numbers, learned along a stream."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsimon._checks import refuse_dates_in
from parsimon._lazy import lazy
from parsimon._model import is_finite

from ._columns import is_number_column, numbers_of, refuse_complex_in, says_nothing, texts_of

Array = NDArray[np.float64]
# Samples: all columns as one array of numbers, or one array for each.
Table = Any

# Columns of the result that are kept for categories that a stream has not shown yet, at least.
_FEWEST_FREE = 4


def joined(tables: Sequence[Table]) -> Table:
    """Return the samples of several blocks as one."""
    if len(tables) == 1:
        return tables[0]
    if all(isinstance(table, np.ndarray) for table in tables):
        return np.concatenate(tables)
    return [_joined(parts) for parts in zip(*map(_columns, tables), strict=True)]


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return a column of several blocks; numbers beside missing texts stay numbers."""
    if len({part.dtype.kind in "biuf" for part in parts}) > 1:
        parts = [part.astype(object) for part in parts]
    return np.concatenate(parts)


def _columns(table: Table) -> list[NDArray[Any]]:
    return list(table.T) if isinstance(table, np.ndarray) else table


@dataclass(frozen=True)
class Encoding:
    """What a stream has shown of its columns so far; it never changes, `plus` returns another.

    Samples become one row each: every number, less its mean and over its standard deviation (0 if
    it is missing), then for every column of text as many places as `places` says, with a 1 at the
    place of the category. A category that was never learned has no place, its row is 0 there. The
    last place is shared by all categories that come when the others are taken.
    """

    names: tuple[str, ...]
    is_text: tuple[bool, ...]
    half_life: float
    count: Array
    mean: Array
    spread: Array  # sum of squared differences from the mean
    categories: tuple[tuple[str, ...], ...]
    places: tuple[int, ...]

    # -- making ----------------------------------------------------------------------------------

    @classmethod
    def of(
        cls,
        table: Table,
        names: Sequence[str],
        *,
        categorical: Callable[[int], bool],
        half_life: float,
        max_categories: int,
    ) -> Encoding:
        """Return what the first samples of a stream show."""
        if isinstance(table, np.ndarray):
            is_text = [categorical(j) for j in range(table.shape[1])]
        else:
            is_text = [
                categorical(j) or not is_number_column(column) for j, column in enumerate(table)
            ]
            for j, column in enumerate(table):
                refuse_complex_in(names[j], column)
                if not categorical(j):
                    refuse_dates_in(names[j], column)
        texts = [texts_of(table[j]) for j in np.flatnonzero(is_text)] if any(is_text) else []
        found = [len(dict.fromkeys(column)) for column in texts]
        places = tuple(min(k + max(k, _FEWEST_FREE), max_categories) + 1 for k in found)
        zeros = np.zeros(len(is_text) - len(texts))
        empty = cls(
            tuple(names), tuple(is_text), half_life, zeros, zeros, zeros, ((),) * len(texts), places
        )
        return empty.plus(table)

    def is_settled_by(self, table: Table) -> bool:
        """Tell whether a column of which nothing was known is of the other kind, as it now shows.

        Columns that were known are refused if they are no numbers any more.
        """
        numbers, texts, settled = iter(self.count), iter(self.categories), False
        for name, is_text, column in zip(self.names, self.is_text, _columns(table), strict=True):
            unknown = {*next(texts)} <= {""} if is_text else next(numbers) == 0
            if unknown and not says_nothing(column):
                settled = settled or is_number_column(column) == is_text
            elif not is_text:
                numbers_of(name, column)
        return settled

    def plus(self, table: Table) -> Encoding:
        """Return what there is to know after further samples."""
        numbers, texts = self._split(table)
        categories = self.categories
        if texts:
            categories = tuple(
                self._with_new(*each)
                for each in zip(self.categories, self.places, texts, strict=True)
            )
        count, mean, spread = self._moments(numbers)
        return replace(self, count=count, mean=mean, spread=spread, categories=categories)

    @staticmethod
    def _with_new(known: tuple[str, ...], places: int, texts: list[str]) -> tuple[str, ...]:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        return (*known, *new[: places - 1 - len(known)]) if new else known

    def _moments(self, numbers: Array) -> tuple[Array, Array, Array]:
        """Return count, mean and spread with the numbers of a block added."""
        if self.half_life == math.inf and is_finite(numbers):
            return self._moments_of_all(numbers)
        fade = np.exp2(-np.arange(len(numbers), -1, -1) / self.half_life)
        weight = fade[1:, None] * ~np.isnan(numbers)
        numbers = np.where(weight > 0, numbers, self.mean)
        fresh, old = weight.sum(axis=0), fade[0] * self.count
        share = fresh / np.maximum(fresh + old, np.finfo(float).tiny)
        # Differences from where the mean was: sums of large numbers would drown them.
        start = np.where(old > 0, self.mean, numbers[0])
        moved = np.divide(
            (weight * (numbers - start)).sum(axis=0),
            fresh,
            out=np.zeros(len(fresh)),
            where=fresh > 0,
        )
        with np.errstate(over="ignore"):  # numbers beyond 1e154 become 0, all of them
            within = (weight * (numbers - (start + moved)) ** 2).sum(axis=0)
            spread = fade[0] * self.spread + within + moved * (moved * (old * share))
        return fresh + old, start + moved * share, spread

    def _moments_of_all(self, numbers: Array) -> tuple[Array, Array, Array]:
        """Return the same where nothing is missing or forgotten, to the last bit, but quickly."""
        fresh = float(len(numbers))
        count = fresh + self.count
        start = np.where(self.count > 0, self.mean, numbers[0])
        moved = (numbers - start).sum(axis=0) / fresh
        share = fresh / count
        with np.errstate(over="ignore"):
            within = ((numbers - (start + moved)) ** 2).sum(axis=0)
            spread = self.spread + within + moved * (moved * (self.count * share))
        return count, start + moved * share, spread

    # -- encoding --------------------------------------------------------------------------------

    @lazy
    def scale(self) -> Array:
        """The standard deviations; 1 where numbers are equal, up to rounding."""
        deviation = np.sqrt(self.spread / np.maximum(self.count, np.finfo(float).tiny))
        differs = deviation > 10 * np.finfo(float).eps * np.abs(self.mean)
        return np.where(differs, deviation, 1.0)

    @lazy
    def _place_of(self) -> list[dict[str, int]]:
        return [{category: place for place, category in enumerate(k)} for k in self.categories]

    @property
    def width(self) -> int:
        """Numbers of a sample once it is encoded."""
        return len(self.mean) + sum(self.places)

    def encode(self, table: Table) -> Array:
        """Return samples as rows of numbers."""
        numbers, texts = self._split(table)
        scaled: Array = (numbers - self.mean) / self.scale
        gaps = np.isnan(scaled)
        if gaps.any():
            scaled[gaps] = 0.0
        if not texts:
            return scaled
        result = np.zeros((len(scaled), self.width))
        start = len(self.mean)
        result[:, :start] = scaled
        for place_of, places, column in zip(self._place_of, self.places, texts, strict=True):
            # What has no place of its own shares the last one, once the others are taken.
            other = places - 1 if len(place_of) == places - 1 else -1
            found = np.array([place_of.get(text, other) for text in column])
            rows = np.flatnonzero(found >= 0)
            result[rows, start + found[rows]] = 1.0
            start += places
        return result

    def output_names(self) -> list[str]:
        """Return a name for each number of an encoded sample."""
        named = list(zip(self.names, self.is_text, strict=True))
        result = [name for name, is_text in named if not is_text]
        texts = [name for name, is_text in named if is_text]
        for name, known, places in zip(texts, self.categories, self.places, strict=True):
            free = [f"{name}_free{number}" for number in range(places - 1 - len(known))]
            result += [*(f"{name}_{category}" for category in known), *free, f"{name}_others"]
        return result

    def _split(self, table: Table) -> tuple[Array, list[list[str]]]:
        """Return the numbers, one row per sample, and the columns of text."""
        if isinstance(table, np.ndarray) and not self.categories:
            return np.asarray(table, dtype=np.float64), []
        columns = _columns(table)
        named = list(zip(self.names, self.is_text, columns, strict=True))
        numbers = [numbers_of(name, values) for name, is_text, values in named if not is_text]
        texts = [texts_of(values) for _, is_text, values in named if is_text]
        stacked = np.column_stack(numbers) if numbers else np.empty((len(columns[0]), 0))
        if np.isinf(stacked).any():
            raise ValueError("The samples contain infinity; give numbers, or NaN for missing ones.")
        return stacked, texts

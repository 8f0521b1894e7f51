"""Bandwidth and ridge of a density by cross-validation.

What is left out of a fold is judged without being looked at again: its log-likelihood is b'a - n
log integral, with b the sum of its coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ._solve import ROUGH, Likelihood, log_integral
from ._span import Span

Array = NDArray[np.float64]

# Samples that are left out in all, about, on a line and elsewhere: five folds of few samples, one
# of many.
_LEFT_OUT = (20_000, 4_000)
_FOLDS = 5
# Samples above which a part of them chooses.
_MOST_SAMPLES = 50_000
# A ridge in steps of sqrt(10), from 1; the smallest and the largest of them.
_RIDGE_STEP = 10**0.5
_RIDGES = (-6, 8)
# Features up to which each has a length of its own.
_MOST_APART = 3
# Coordinates for each place where there are samples, and how many there may be in any case. Samples
# that are rounded lie on each other, and the narrower the kernel, the better it finds them again.
_PER_PLACE = 64
_FEW_COORDINATES = 1024
# A model that is more complex must be better by that many nats on all that was left out.
_NATS = 2.0
# One with a larger ridge may be worse by that many.
_SIMPLER = 2.0

# Makes the span of kernels of these lengths; None if it would be too large.
MakeSpan = Callable[[Sequence[float]], "Span | None"]


@dataclass
class Choice:
    """Lengths of the kernel and a ridge."""

    lengths: Array
    ridge: float
    score: float = -np.inf


@dataclass
class CrossValidation:
    """Held-out likelihoods of candidates."""

    X: Array
    amounts: Array
    make_span: MakeSpan
    _folds: list[NDArray[np.int64]] = field(init=False)
    _most: int = field(init=False)
    _seen: dict[tuple[float, ...], Choice] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        random = np.random.RandomState(0)  # the choice must not depend on random_state
        self.total = len(self.X)
        if self.total > _MOST_SAMPLES:
            rows = np.sort(random.permutation(self.total)[:_MOST_SAMPLES])
            self.X, self.amounts = self.X[rows], self.amounts[rows]
        places = len(np.unique(self.X, axis=0))
        self._most = max(_FEW_COORDINATES, _PER_PLACE * places)
        left_out = _LEFT_OUT[self.X.shape[1] > 1]
        order = random.permutation(len(self.X)).astype(np.int64)
        parts = np.array_split(order, min(_FOLDS, len(self.X)))
        self._folds = parts[: max(1, round(_FOLDS * left_out / len(self.X)))]

    def choose(self, start: Array, ridge: float | None, *, move: bool = True) -> Choice:
        """Return the best choice that is found downhill from a start.

        A ridge that was given stays; so do the lengths unless they may move.
        """
        first = 1.0 if ridge is None else ridge
        if not move:
            return self._judge(start, first, search=ridge is None)
        # With one ridge down to the right scale, then both.
        best = self._walk(self._judge(start, first, search=False), 2.0, search=False)
        if ridge is None:
            best = self._judge(best.lengths, first, search=True)
        search, features = ridge is None, len(start)
        best = self._walk(best, 2.0, search=search)
        if features == 1 or features > _MOST_APART:
            best = self._walk(best, 2**0.5, search=search)
        else:
            for factor, j in product((2.0, 2**0.5), range(features)):
                best = self._walk(best, np.where(np.arange(features) == j, factor, 1.0), search)
        return best if ridge is not None else self._simplify(best)

    def _simplify(self, best: Choice) -> Choice:
        """Return the largest ridge that is not clearly worse."""
        made = self.make_span([float(length) for length in best.lengths])
        trials, ridge = _Trials(self, made), best.ridge
        while ridge * _RIDGE_STEP < _RIDGE_STEP ** _RIDGES[1]:
            if not trials._score(ridge * _RIDGE_STEP) > best.score - _SIMPLER:
                break
            ridge *= _RIDGE_STEP
        return Choice(best.lengths, ridge, best.score)

    def scale_up(self, choice: Choice) -> Array:
        """Return the lengths for all samples, where a part of them has chosen."""
        features = self.X.shape[1]
        return np.asarray(choice.lengths * (len(self.X) / self.total) ** (1 / (features + 4)))

    def _walk(self, best: Choice, factor: float | Array, search: bool) -> Choice:
        """Follow a direction as long as it is better, first to narrower kernels, then to wider."""
        for direction, needed in ((1 / factor, _NATS), (factor, 0.0)):
            moved = False
            while True:
                found = self._judge(best.lengths * direction, best.ridge, search=search)
                if not found.score > best.score + needed:
                    break
                best, moved = found, True
            if moved:
                break
        return best

    def _judge(self, lengths: Array, ridge: float, *, search: bool) -> Choice:
        """Return these lengths with a ridge, or with the best one downhill from it."""
        key = (*np.round(np.log2(lengths), 6), search or ridge)
        if key not in self._seen:
            made = self.make_span([float(length) for length in lengths])
            if made is None or made.size > self._most:
                self._seen[key] = Choice(lengths, ridge)
            else:
                self._seen[key] = _Trials(self, made).choose(lengths, ridge, search=search)
        return self._seen[key]


class _Trials:
    """The folds in one span, for several ridges."""

    def __init__(self, validation: CrossValidation, span: Span) -> None:
        X, amounts = validation.X, validation.amounts
        self._span = span
        self._folds = [
            (span.moments(X[f], amounts[f]), amounts[f].sum()) for f in validation._folds
        ]
        self._total = sum(moments for moments, _ in self._folds)
        rest = np.setdiff1d(np.arange(len(X)), np.concatenate(validation._folds))
        if len(rest):
            self._total = self._total + span.moments(X[rest], amounts[rest])
        self._mass = float(amounts.sum())
        self._starts: list[Array | None] = [None] * len(self._folds)

    def choose(self, lengths: Array, ridge: float, *, search: bool) -> Choice:
        best = Choice(lengths, ridge, self._score(ridge))
        if not search:
            return best
        for factor, needed in ((1 / _RIDGE_STEP, _NATS), (_RIDGE_STEP, 0.0)):
            moved = False
            while _RIDGE_STEP ** _RIDGES[0] < best.ridge * factor < _RIDGE_STEP ** _RIDGES[1]:
                score = self._score(best.ridge * factor)
                if not score > best.score + needed:
                    break
                best, moved = Choice(lengths, best.ridge * factor, score), True
            if moved:
                break
        return best

    def _score(self, ridge: float) -> float:
        score = 0.0
        for i, (moments, mass) in enumerate(self._folds):
            rest = Likelihood(self._span, self._total - moments, float(self._mass - mass))
            found = rest.solve(ridge, self._starts[i], ROUGH)
            self._starts[i] = found.coordinates
            # By a finer rule: what hides between the nodes of the one that was solved with counts.
            finer = self._span.finer
            integral = log_integral(finer.to_nodes(found.coordinates), finer.measure)[0]
            score += float(moments @ found.coordinates) - float(mass) * integral
        return score

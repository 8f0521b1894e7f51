"""Bandwidth and ridge of a density by cross-validation.

What is left out of a fold is judged without being looked at again: its log-likelihood is b'a - n
log integral, with b the sum of its coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ._solve import MOST_DIRECT, ROUGH, Likelihood, Together, log_integral, log_integrals
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
# Coordinates for each place where there are samples, and how many there may be of two scales in any
# case. Samples that are rounded lie on each other, and the narrower the kernel, the better it finds
# them again.
_PER_PLACE = 64
_FEW_COORDINATES = 1024
# The same with two scales, with which narrow kernels are good for more, and cost as much.
_PER_PLACE_OF_TWO = 2
# A model that is more complex must be better by that many nats on all that was left out.
_NATS = 2.0
# One with a larger ridge may be worse by that many.
_SIMPLER = 2.0
# A choice that is behind another by that many after some of the folds is not tried on the others:
# if it were the truth, that would happen once in exp(10) times. Two scales have to be better by as
# many than one.
_HOPELESS = 10.0

# Makes the span of kernels of these lengths and scales; None if it would be too large.
MakeSpan = Callable[[Sequence[float], int], "Span | None"]


@dataclass
class Choice:
    """Lengths of the kernel, a ridge, and how many scales z has."""

    lengths: Array
    ridge: float
    scales: int = 1
    scores: tuple[float, ...] = ()  # of the folds; none of what was not tried on all

    @property
    def score(self) -> float:
        """The log-likelihood of all that was left out."""
        return sum(self.scores) if self.scores else -np.inf


@dataclass
class CrossValidation:
    """Held-out likelihoods of candidates."""

    X: Array
    amounts: Array
    make_span: MakeSpan
    _folds: list[NDArray[np.int64]] = field(init=False)
    _most: dict[int, int] = field(init=False)
    _seen: dict[tuple[float, ...], Choice] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        random = np.random.RandomState(0)  # the choice must not depend on random_state
        self.total = len(self.X)
        if self.total > _MOST_SAMPLES:
            rows = np.sort(random.permutation(self.total)[:_MOST_SAMPLES])
            self.X, self.amounts = self.X[rows], self.amounts[rows]
        self.places = len(np.unique(self.X, axis=0))
        few = min(_FEW_COORDINATES, _PER_PLACE * self.places)
        self._most = {
            1: max(few, _PER_PLACE * self.places),
            2: max(few, _PER_PLACE_OF_TWO * self.places),
        }
        left_out = _LEFT_OUT[self.X.shape[1] > 1]
        order = random.permutation(len(self.X)).astype(np.int64)
        parts = np.array_split(order, min(_FOLDS, len(self.X)))
        self._folds = parts[: max(1, round(_FOLDS * left_out / len(self.X)))]

    def choose(
        self,
        start: Array,
        ridge: float | None,
        *,
        move: bool = True,
        scales: int = 1,
        broaden: bool = False,
    ) -> Choice:
        """Return the best choice that is found downhill from a start.

        A ridge that was given stays; so do the lengths unless they may move, and the scales unless
        another one may be added.
        """
        first = Choice(start, 1.0 if ridge is None else ridge, scales)
        if not move:
            return self._judge(first, None, search=ridge is None)
        # With one ridge down to the right scale, then both.
        best = self._walk(self._judge(first, None, search=False), 2.0, search=False)
        if ridge is None:
            best = self._judge(replace(first, lengths=best.lengths), None, search=True)
        search, features = ridge is None, len(start)
        best = self._walk(best, 2.0, search=search)
        if features == 1 or features > _MOST_APART:
            best = self._walk(best, 2**0.5, search=search)
        else:
            for factor, j in product((2.0, 2**0.5), range(features)):
                best = self._walk(best, np.where(np.arange(features) == j, factor, 1.0), search)
        best = self._broadened(best) if broaden else best
        return best if ridge is not None else self._simplify(best)

    def _broadened(self, best: Choice) -> Choice:
        """Return the best choice with two scales, if that is better."""
        found = self._judge(replace(best, scales=2), None, search=True)
        if not found.score > best.score + _HOPELESS:
            return best
        # What is broad has a scale of its own now, and the other one is free to be narrow.
        features = len(best.lengths)
        factors = [np.full(features, 2**0.5)]
        if 1 < features <= _MOST_APART:
            factors += [np.where(np.arange(features) == j, 2**0.5, 1.0) for j in range(features)]
        for factor in factors:
            found = self._walk(found, factor, search=True)
        return found

    def _simplify(self, best: Choice) -> Choice:
        """Return the largest ridge that is not clearly worse."""
        made = self.make_span(best.lengths.tolist(), best.scales)
        trials, simplest = _Trials(self, made), best
        while simplest.ridge * _RIDGE_STEP < _RIDGE_STEP ** _RIDGES[1]:
            more = replace(simplest, ridge=simplest.ridge * _RIDGE_STEP)
            if not trials.judge(more, best).score > best.score - _SIMPLER:
                break
            simplest = more
        return simplest

    def scale_up(self, choice: Choice) -> Choice:
        """Return a choice with the lengths for all samples, where a part of them has chosen."""
        factor = (len(self.X) / self.total) ** (1 / (self.X.shape[1] + 4))
        return replace(choice, lengths=choice.lengths * factor)

    def _walk(self, best: Choice, factor: float | Array, search: bool) -> Choice:
        """Follow a direction as long as it is better, first to narrower kernels, then to wider."""
        for direction, needed in ((1 / factor, _NATS), (factor, 0.0)):
            moved = False
            while True:
                there = replace(best, lengths=best.lengths * direction)
                found = self._judge(there, best, search=search)
                if not found.score > best.score + needed:
                    break
                best, moved = found, True
            if moved:
                break
        return best

    def _judge(self, choice: Choice, rival: Choice | None, *, search: bool) -> Choice:
        """Return a choice with its scores, or with those of the best ridge downhill from its own.

        rival: whose scores they are compared with; if a choice falls far behind, it has none.
        """
        lengths, scales = choice.lengths, choice.scales
        key = (*np.round(np.log2(lengths), 6), search or choice.ridge, scales)
        if key not in self._seen:
            made = self.make_span(lengths.tolist(), scales)
            choice = replace(choice, scores=())
            if made is not None and made.size <= self._most[scales]:
                trials = _Trials(self, made)
                choice = trials.choose(choice) if search else trials.judge(choice, rival)
            self._seen[key] = choice
        return self._seen[key]


class _Trials:
    """The folds in one span, for several ridges."""

    def __init__(self, validation: CrossValidation, span: Span) -> None:
        X, amounts = validation.X, validation.amounts
        self._span = span
        folds = validation._folds
        self._left_out = np.array([span.moments(X[f], amounts[f]) for f in folds])
        self._masses = np.array([amounts[f].sum() for f in folds])
        total = self._left_out.sum(axis=0)
        rest = np.setdiff1d(np.arange(len(X)), np.concatenate(folds))
        if len(rest):
            total = total + span.moments(X[rest], amounts[rest])
        self._moments = total - self._left_out
        self._rest = float(amounts.sum()) - self._masses
        self._starts: dict[int, Array] = {}

    def choose(self, choice: Choice) -> Choice:
        """Return a choice with the best ridge downhill from its own."""
        best = self.judge(choice, None)
        for factor, needed in ((1 / _RIDGE_STEP, _NATS), (_RIDGE_STEP, 0.0)):
            moved = False
            while _RIDGE_STEP ** _RIDGES[0] < best.ridge * factor < _RIDGE_STEP ** _RIDGES[1]:
                found = self.judge(replace(best, ridge=best.ridge * factor), best)
                if not found.score > best.score + needed:
                    break
                best, moved = found, True
            if moved:
                break
        return best

    def judge(self, choice: Choice, rival: Choice | None) -> Choice:
        """Return a choice with its scores; without any as soon as it is far behind a rival."""
        scores: tuple[float, ...] = ()
        for score in self._scores(choice.ridge):
            scores += (score,)
            behind = sum(rival.scores[: len(scores)]) - sum(scores) if rival else 0.0
            if rival and rival.scores and behind > _HOPELESS:
                return replace(choice, scores=())
        return replace(choice, scores=scores)

    def _scores(self, ridge: float) -> Iterator[float]:
        """Solve for what each fold leaves, from where it was with another ridge.

        Integrals are by a finer rule: what hides between the nodes of the one that was solved with
        counts.
        """
        finer, folds = self._span.finer, range(len(self._masses))
        if self._span.size <= MOST_DIRECT:
            every = Together(self._span, self._moments, self._rest)
            known = len(self._starts) == len(folds)
            starts = np.array([self._starts[i] for i in folds]) if known else None
            found = every.solve(ridge, starts, ROUGH)
            if found is not None:
                self._starts = dict(enumerate(found))
                integrals = log_integrals(finer.each_to_nodes(found), finer.measure)[0]
                yield from (
                    (self._left_out * found).sum(axis=1) - self._masses * integrals
                ).tolist()
                return
        for i in folds:
            rest = Likelihood(self._span, self._moments[i], float(self._rest[i]))
            # What the others say is nearly the same.
            at = rest.solve(ridge, self._starts.get(i, self._starts.get(0)), ROUGH).coordinates
            self._starts[i] = at
            integral = log_integral(finer.to_nodes(at), finer.measure)[0]
            yield float(self._left_out[i] @ at) - float(self._masses[i]) * integral

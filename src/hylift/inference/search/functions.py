"""Coordinate ascent over the variables of functions, which are evaluated in Python."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGroup
from hylift.inference.local.kernels import worth_of_each
from hylift.inference.local.terms import LocalTerms
from hylift.inference.search.kernels.moves import UNBROKEN
from hylift.inference.search.landmarks import Landmarks
from hylift.numerics.segments import inverse
from hylift.rewrite.kinds import Kinds

NUM_POINTS = 17
"""Points of the first grid along a real."""

NUM_HALVINGS = 40
"""Times that the distance to the points on both sides of the best one is halved."""

FAR = 1e15
"""A real without bounds goes no further from here on."""

LEAST_GAIN = 1e-8
"""Of a variable of functions: coordinate ascent would go on for long for less."""

FloatArray = NDArray[np.float64]
Worth = tuple[FloatArray, FloatArray]
"""Per variable: the multiplicity of its factors at -inf, and the sum of its others."""


@dataclass(frozen=True, slots=True, eq=False)
class FunctionSet:
    """Variables of functions of which no two share a factor, so that all may move at once."""

    variables: NDArray[np.int64]
    groups: list[tuple[FactorGroup, NDArray[np.int64]]]
    """Functions at these variables, and per factor the place of its variable in the set."""


@dataclass(frozen=True, slots=True, eq=False)
class FunctionMoves:
    """Coordinate ascent over the variables of functions, in sets that move in lock-step."""

    terms: LocalTerms
    sets: list[FunctionSet]
    landmarks: Landmarks

    @classmethod
    def of(cls, kinds: Kinds, terms: LocalTerms) -> FunctionMoves:
        return cls(terms, function_sets(kinds, terms), Landmarks.of(kinds))

    def broken(self, x: FloatArray) -> float:
        """More than 0 if a function is -inf."""
        worths = [self._worth(x, some, x[some.variables])[0].max(initial=0.0) for some in self.sets]
        return float(max(worths, default=0.0))

    def ascend(self, x: FloatArray) -> bool:
        """Move each variable of `x` to its best value given the others; True if one gained."""
        gained = False
        for some in self.sets:
            is_real = self.terms.variable["num_states"][some.variables] == 0
            if not is_real.all():
                gained |= self._ascend_states(x, some)
            if is_real.any():
                gained |= self._ascend_reals(x, some)
        return gained

    def _ascend_states(self, x: FloatArray, some: FunctionSet) -> bool:
        num_states = self.terms.variable["num_states"][some.variables]
        now = x[some.variables].copy()
        best, worth = now.copy(), self._worth(x, some, now)
        for state in range(int(num_states.max())):
            tried = np.where(num_states > state, state, now)
            worth = self._keep_better(best, worth, tried, self._worth(x, some, tried))
        x[some.variables] = best
        return bool((best != now).any())

    def _ascend_reals(self, x: FloatArray, some: FunctionSet) -> bool:
        """The best of a grid along each real and of peaks, then of ever nearer points."""
        record = self.terms.variable[some.variables]
        now = x[some.variables].copy()
        is_real = record["num_states"] == 0
        # Other rounds go on from the end of what has no bounds, but not for ever.
        reach = np.where(np.abs(now) < FAR, 4 * (1 + np.abs(now)), 0.0)
        low = np.where(np.isfinite(record["lower"]), record["lower"], now - reach)
        high = np.where(np.isfinite(record["upper"]), record["upper"], now + reach)
        low, high = np.where(is_real, np.minimum(low, now), now), np.where(is_real, high, now)
        best, worth = now.copy(), self._worth(x, some, now)
        for share in np.linspace(0, 1, NUM_POINTS):
            tried = low + share * (high - low)
            worth = self._keep_better(best, worth, tried, self._worth(x, some, tried))
        for peak in self.landmarks.value[:, some.variables]:
            tried = np.where(np.isnan(peak), now, peak)
            worth = self._keep_better(best, worth, tried, self._worth(x, some, tried))
        width = (high - low) / (NUM_POINTS - 1)
        for _ in range(NUM_HALVINGS):
            width *= 0.5
            for tried in (np.maximum(low, best - width), np.minimum(high, best + width)):
                worth = self._keep_better(best, worth, tried, self._worth(x, some, tried))
        x[some.variables] = best
        return bool((best != now).any())

    def _keep_better(
        self, best: FloatArray, worth: Worth, tried: FloatArray, other: Worth
    ) -> Worth:
        """Writes the tried values that are better into `best`; returns the worth of the best."""
        better = _better(worth, other, max(LEAST_GAIN, self.terms.least))
        best[better] = tried[better]
        return np.where(better, other[0], worth[0]), np.where(better, other[1], worth[1])

    def _worth(self, x: FloatArray, some: FunctionSet, values: FloatArray) -> Worth:
        """The worth of the factors at each variable of a set, were these its values."""
        moved = x.copy()
        moved[some.variables] = values
        broken, total = np.zeros((2, len(values)))
        worth_of_each(self.terms, moved, some.variables, broken, total)
        for group, owner in some.groups:
            log_values = group.log_values(moved)
            impossible = np.isneginf(log_values)
            finite = group.multiplicity * np.where(impossible, 0.0, log_values)
            total += np.bincount(owner, finite, minlength=len(values))
            broken += np.bincount(owner, group.multiplicity * impossible, minlength=len(values))
        return broken, total


def function_sets(kinds: Kinds, terms: LocalTerms) -> list[FunctionSet]:
    """The variables of functions, in sets of which no two share a factor."""
    groups, sets = kinds.functions, list[FunctionSet]()
    if not groups:
        return sets
    color = colors(groups, terms)
    for number in range(int(color.max()) + 1):
        variables = np.flatnonzero(color == number)
        place = inverse(variables, len(color))
        touched = []
        for group in groups:
            owner = place[group.scope].max(axis=1)
            some = np.flatnonzero(owner >= 0)
            if len(some):
                touched.append((group.take(some), owner[some]))
        sets.append(FunctionSet(variables, touched))
    return sets


def _better(worth: Worth, other: Worth, least: float) -> NDArray[np.bool_]:
    """(variable,): whether the other is better: first by what is broken, then by the sum."""
    fewer = other[0] < worth[0] - UNBROKEN
    return fewer | ((other[0] <= worth[0] + UNBROKEN) & (other[1] > worth[1] + least))


def colors(
    groups: list[FactorGroup], terms: LocalTerms, block: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """(variable,): which set of variables it moves with; -1 if it stands in no function.

    Each set is as large as can be, without two variables that share a function or a term, unless
    they are of one block: (variable,), the least of its block.
    """
    is_left = terms.variable["movable"] == 0
    block = np.arange(len(is_left)) if block is None else block
    term = terms.entry_term()
    slots, scope, count = [terms.entry["variable"]], [term], len(terms.term)
    for group in groups:
        slots.append(group.scope.ravel())
        scope.append(count + np.repeat(np.arange(len(group)), group.arity))
        count += len(group)
    variable, of_scope = np.concatenate(slots), np.concatenate(scope)
    inside = is_left[variable]
    variable, of_scope = block[variable[inside]], of_scope[inside]
    is_left &= block == np.arange(len(block))
    # Scattered, so that few rounds are enough where neighbours have successive numbers.
    rank = 2**32 - np.arange(len(is_left)) * 0x9E3779B1 % 2**32
    color, number = np.full(len(is_left), -1), 0
    while is_left.any():
        is_open = is_left.copy()
        while is_open.any():  # those that come first in all their scopes, in parallel
            order, first = np.where(is_open, rank, 0), np.zeros(count, dtype=np.int64)
            np.maximum.at(first, of_scope, order[variable])
            chosen = is_open.copy()
            chosen[variable[order[variable] < first[of_scope]]] = False
            color[chosen] = number
            is_taken = np.zeros(count, dtype=bool)
            is_taken[of_scope[chosen[variable]]] = True
            is_open[variable[is_taken[of_scope]]] = False
        is_left &= color < 0
        number += 1
    return color[block]

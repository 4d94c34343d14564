"""Coordinate ascent over the variables of functions, which are evaluated in Python."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.inference.control import always
from hylift.inference.local.functions import Part, colors
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

AT_ONCE = 1_000_000
"""Values of all variables together, in the trials that are evaluated at once."""


@dataclass(frozen=True, slots=True, eq=False)
class FunctionSet:
    """Variables of functions of which no two share a factor, so that all may move at once."""

    variables: NDArray[np.int64]
    parts: list[Part]
    """Functions at these variables, whose blocks are their places in the set."""


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
        worths = [self._worth(x, some, x[None, some.variables])[0] for some in self.sets]
        return float(max((worth.max(initial=0.0) for worth in worths), default=0.0))

    def ascend(self, x: FloatArray, go_on: Callable[[], bool] = always) -> bool:
        """Move each variable of `x` to its best value given the others, or fewer where it says not
        to go on; True if one gained."""
        gained = False
        for some in self.sets:
            if not go_on():
                break
            is_real = self.terms.variable["num_states"][some.variables] == 0
            if not is_real.all():
                gained |= self._ascend_states(x, some, go_on)
            if is_real.any():
                gained |= self._ascend_reals(x, some, go_on)
        return gained

    def _ascend_states(self, x: FloatArray, some: FunctionSet, go_on: Callable[[], bool]) -> bool:
        num_states = self.terms.variable["num_states"][some.variables]
        now = x[some.variables].copy()
        states = np.arange(int(num_states.max()))[:, None]
        best, _ = self._best(x, some, now, np.where(num_states > states, states, now), go_on)
        x[some.variables] = best
        return bool((best != now).any())

    def _ascend_reals(self, x: FloatArray, some: FunctionSet, go_on: Callable[[], bool]) -> bool:
        """The best of a grid along each real and of peaks, then of ever nearer points."""
        record = self.terms.variable[some.variables]
        now = x[some.variables].copy()
        is_real = record["num_states"] == 0
        # Other rounds go on from the end of what has no bounds, but not for ever.
        reach = np.where(np.abs(now) < FAR, 4 * (1 + np.abs(now)), 0.0)
        low = np.where(np.isfinite(record["lower"]), record["lower"], now - reach)
        high = np.where(np.isfinite(record["upper"]), record["upper"], now + reach)
        low, high = np.where(is_real, np.minimum(low, now), now), np.where(is_real, high, now)
        grid = low + np.linspace(0, 1, NUM_POINTS)[:, None] * (high - low)
        peaks = self.landmarks.value[:, some.variables]
        tried = np.concatenate([grid, np.where(np.isnan(peaks), now, peaks)])
        best, worth = self._best(x, some, now, tried, go_on)
        width = (high - low) / (NUM_POINTS - 1)
        for _ in itertools.takewhile(lambda _: go_on(), range(NUM_HALVINGS)):
            width *= 0.5
            tried = np.stack([np.maximum(low, best - width), np.minimum(high, best + width)])
            best, worth = self._best(x, some, best, tried, go_on, worth)
        x[some.variables] = best
        return bool((best != now).any())

    def _best(
        self,
        x: FloatArray,
        some: FunctionSet,
        now: FloatArray,
        tried: FloatArray,
        go_on: Callable[[], bool],
        worth: Worth | None = None,
    ) -> tuple[FloatArray, Worth]:
        """Of each variable of a set, the best of its value now and those tried (trial, member), as
        far as time goes; and its worth. worth: that of now, if it is known."""
        best = now.copy()
        if worth is None:
            broken, total = self._worth(x, some, now[None])
            worth = broken[0], total[0]
        at_once = max(1, AT_ONCE // len(x))
        for first in range(0, len(tried), at_once):
            if not go_on():
                break
            values = tried[first : first + at_once]
            for value, *other in zip(values, *self._worth(x, some, values), strict=True):
                better = _better(worth, other, max(LEAST_GAIN, self.terms.least))
                best[better] = value[better]
                worth = (
                    np.where(better, other[0], worth[0]),
                    np.where(better, other[1], worth[1]),
                )
        return best, worth

    def _worth(self, x: FloatArray, some: FunctionSet, values: FloatArray) -> Worth:
        """(trial, member): the worth of the factors at each variable of a set, were these its
        values (trial, member)."""
        moved = np.repeat(x[None], len(values), axis=0)
        moved[:, some.variables] = values
        broken, total = np.zeros((2, *values.shape))
        for trial in range(len(values)):
            worth_of_each(self.terms, moved[trial], some.variables, broken[trial], total[trial])
        active = np.ones(values.shape, dtype=bool)
        for part in some.parts:
            sums = part.sums(moved, active, breaks=False)
            if np.isneginf(sums).any():
                group, at = part.group, (np.arange(len(values))[:, None], part.owner)
                slots = [moved[:, group.scope[:, slot]] for slot in range(group.arity)]
                log_values = group.potential.log_value(group.row, slots)
                impossible = np.isneginf(log_values)
                np.add.at(broken, at, group.multiplicity * impossible)
                sums = np.zeros(values.shape)
                np.add.at(sums, at, group.multiplicity * np.where(impossible, 0.0, log_values))
            total += sums
        return broken, total


def function_sets(kinds: Kinds, terms: LocalTerms) -> list[FunctionSet]:
    """The variables of functions, in sets of which no two share a factor."""
    if not kinds.functions:
        return []
    color = colors(kinds.functions, terms)
    members = [np.flatnonzero(color == number) for number in range(int(color.max()) + 1)]
    return [
        FunctionSet(some, Part.each(kinds.functions, inverse(some, len(color)))) for some in members
    ]


def _better(worth: Worth, other: Sequence[FloatArray], least: float) -> NDArray[np.bool_]:
    """(variable,): whether the other is better: first by what is broken, then by the sum."""
    fewer = other[0] < worth[0] - UNBROKEN
    return fewer | ((other[0] <= worth[0] + UNBROKEN) & (other[1] > worth[1] + least))

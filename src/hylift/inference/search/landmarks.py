"""Peaks of functions along their reals, found by scans: a narrow one lies between the nodes of a
grid, and no particle or walk meets it by chance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ModelError
from hylift.graph import FactorGroup, Variables
from hylift.numerics.segments import counts_up
from hylift.rewrite.kinds import Kinds

FloatArray = NDArray[np.float64]

NUM_POINTS, NUM_FINER, ZOOMS = 2048, 33, 3
"""Points of a scan between the bounds of a real; and of finer ones about the best of them."""
STARTS, ROUNDS = 16, 2
"""Values of the other slots from which scans of a factor begin, and scans of each slot."""
MOST_VALUES, AT_ONCE = 1 << 24, 1 << 18
"""Values of functions in all, beyond which factors are left out, and in one call."""
MOST, LEAST_HEIGHT = 16, 1.0
"""Peaks of a real, and log-value that one is above the middle of its scan."""
HALVINGS = 40
FAR = 1e4
"""Farthest point of a scan from 0, or from its only bound, of a real without two bounds."""
NARROW, BESIDE = 6.0, 4.0
"""Widths of a peak that a panel may be wide, and those of the panels next to it."""


@dataclass(frozen=True, slots=True, eq=False)
class Landmarks:
    """Peaks of each real, the highest first; nan where there are no more.

    Wide ones, which any grid or particle meets, are left out, and functions that are quadratic in a
    real given the others. Found are those wider than about a two-thousandth of the interval that
    show from one of a few values of the other slots: what a function has there may be tiny, but not
    lost in rounding.
    """

    value: FloatArray  # (rank, variable)
    width: FloatArray  # (rank, variable): distance at which a function has fallen by 1
    is_joint: bool
    """True if some are peaks in several slots at once, which no move of one variable finds."""
    is_blind: bool
    """True if a function was the same number wherever it was looked at: what it has, lies between
    all points of the scans, or is lost in rounding."""

    @classmethod
    def of(cls, kinds: Kinds) -> Landmarks:
        left, variables = float(MOST_VALUES), kinds.graph.variables
        found, is_joint, is_blind = [np.zeros((4, 0))], False, False
        for group in kinds.functions:
            if _is_quadratic_given(group, variables):
                continue
            starts, rounds = (STARTS, ROUNDS) if group.arity > 1 else (1, 1)
            each = NUM_POINTS * rounds * group.potential.num_reals
            starts = int(np.clip(left // max(len(group) * each, 1), 0, starts))
            left -= starts * len(group) * each
            pieces = 1 + len(group) * starts * NUM_POINTS // AT_ONCE
            for some in np.array_split(np.arange(len(group)), pieces):
                if starts and len(some) and group.potential.num_reals:
                    own, is_constant = _peaks(group.take(some), variables, starts)
                    is_blind |= is_constant
                    found.append(own[:, own[2] < _wide(variables, own[0].astype(int), own[1])])
                    is_joint |= group.arity > 1 and found[-1].size > 0
        value, width = _ranked(len(variables), np.concatenate(found, axis=1))
        return cls(value, width, is_joint, is_blind)

    def starts(self, x: FloatArray, most: int) -> FloatArray:
        """(start, variable): assignments with reals at their first peaks, at their second, …"""
        some = self.value[:most]
        return np.where(np.isnan(some), np.where(np.isnan(self.value[:1]), x, self.value[:1]), some)

    def resolved(self, edges: FloatArray, real: NDArray[np.int64], most: int) -> FloatArray:
        """(row, panel + 1): edges of panels of some reals (row,), with more of them about peaks
        that are too narrow for the panels; as many in all rows."""
        value, width = self.value[:most, real].T, self.width[:most, real].T
        widest = np.diff(edges).max(axis=1, initial=0.0)[:, None]
        apart = BESIDE * width[..., None] * 2.0 ** np.arange(HALVINGS)
        is_used = (widest > NARROW * width)[..., None] & (apart < widest[..., None])
        if not is_used.any():
            return edges
        more = np.where(is_used, apart, np.nan)
        more = np.concatenate([value[..., None] - more, value[..., None] + more], axis=2)
        knots = np.concatenate([edges, more.reshape(len(edges), -1)], axis=1)
        is_inside = (knots >= edges[:, :1]) & (knots <= edges[:, -1:])
        is_inside[:, : edges.shape[1]] = True
        order = np.argsort(np.where(is_inside, knots, np.inf), axis=1)
        knots, is_inside = (np.take_along_axis(a, order, axis=1) for a in (knots, is_inside))
        least = 0.5 * BESIDE * np.nanmin(width, axis=1, initial=np.inf)[:, None]
        is_close = (order >= edges.shape[1])[:, 1:] & ~(np.diff(knots) > least)
        knots[~is_inside] = np.nan
        knots[:, 1:][is_close] = np.nan
        return _filled(np.sort(knots, axis=1))


def _filled(knots: FloatArray) -> FloatArray:
    """(row, panel + 1): knots (row, knot) in order, nan at their ends: in rows that have fewer than
    others, the widest panels are halved."""
    count = np.count_nonzero(~np.isnan(knots), axis=1)
    knots = knots[:, : count.max()]
    while len(row := np.flatnonzero(count < knots.shape[1])):
        at = np.nanargmax(np.diff(knots[row]), axis=1)
        knots[row, count[row]] = 0.5 * (knots[row, at] + knots[row, at + 1])
        knots[row] = np.sort(knots[row], axis=1)
        count[row] += 1
    return knots


def _ranked(count: int, peaks: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Of peaks of one real that overlap the highest, and of these the highest of all; peaks: as
    `_peaks` has them."""
    value, width, height = peaks[1:, np.lexsort((peaks[1], peaks[0]))]
    variable = np.sort(peaks[0]).astype(np.int64)
    is_new = np.ones(len(value), dtype=bool)
    is_new[1:] = (np.diff(variable) > 0) | (np.diff(value) > np.maximum(width[1:], width[:-1]))
    cluster = np.cumsum(is_new)
    order = np.lexsort((-height, cluster))
    kept = order[np.unique(cluster[order], return_index=True)[1]]
    kept = kept[np.lexsort((-height[kept], variable[kept]))]
    rank = counts_up(np.bincount(variable[kept], minlength=count))
    kept, rank = kept[rank < MOST], rank[rank < MOST]
    values, widths = np.full((2, int(rank.max(initial=-1)) + 1, count), np.nan)
    values[rank, variable[kept]], widths[rank, variable[kept]] = value[kept], width[kept]
    return values, widths


def _wide(variables: Variables, real: NDArray[Any], value: FloatArray) -> FloatArray:
    """(peak,): width from which on a peak is not narrow."""
    with np.errstate(invalid="ignore"):
        width = (variables.upper - variables.lower)[real]
    return np.where(np.isfinite(width), width / (2.0 * NARROW), 0.25 * (1.0 + np.abs(value)))


def _is_quadratic_given(group: FactorGroup, variables: Variables) -> bool:
    """True if a function is quadratic in some real where its others are known, such as the density
    of a Gaussian of unknown variance."""
    reals, first = group.reals[:1], group.potential.num_discrete_slots
    low, high = np.maximum(variables.lower[reals], -1.0), np.minimum(variables.upper[reals], 1.0)
    values = np.where(low < high, 0.3 * low + 0.7 * high, variables.lower[reals] + 1.0)
    for slot in range(reals.shape[1] if reals.shape[1] > 1 else 0):
        others = [other for other in range(reals.shape[1]) if other != slot]
        slots = tuple(first + other for other in others)
        rest, _ = group.potential.reduce(group.row[:1], slots, values[:, others])
        if rest.quadratic() is not None:
            return True
    return False


def _peaks(group: FactorGroup, variables: Variables, starts: int) -> tuple[FloatArray, bool]:
    """(4, peak): reals, their values, and widths and heights of peaks of each factor by itself, by
    coordinate ascent over scans; and whether one of the factors is constant along all of them."""
    scans = [_points(variables, group.scope[:, slot]) for slot in range(group.arity)]
    row = group.row[:, None, None]
    # Starts are spread evenly in each slot, and jointly: multiples of roots of a generalised
    # golden section (Roberts 2018).
    root = np.roots([1.0, *[0.0] * (group.arity - 1), -1.0, -1.0]).real.max()
    share = (0.5 + np.arange(starts)[:, None] * root ** -np.arange(1.0, group.arity + 1)) % 1.0
    now = [scan[:, (share[:, s] * scan.shape[1]).astype(int)] for s, scan in enumerate(scans)]

    def along(slot: int, points: FloatArray) -> FloatArray:
        """(factor, start, point); points: (factor, start or 1, point)."""
        slots = [each[..., None] for each in now]
        slots[slot] = points
        return group.potential.log_value(row, slots)

    discrete = range(group.potential.num_discrete_slots)
    reals = range(len(discrete), group.arity)
    found, varies = [], np.zeros(len(group), dtype=bool)
    try:
        with np.errstate(all="ignore"):
            height = np.zeros((group.arity, *now[0].shape))
            # Reals first: in the best state a function may be constant, as it is where `A * f(x)`
            # is switched off.
            for slot in [*reals, *[*discrete, *reals] * (ROUNDS - 1)]:
                values = along(slot, scans[slot][:, None])
                height[slot] = values.max(axis=2) - np.median(values, axis=2)
                if slot in reals:
                    varies |= (values != values[..., :1]).any(axis=(1, 2))
                now[slot] = _best(scans[slot][:, None], values)
                spacing = np.diff(scans[slot]).max(axis=1, initial=0.0)[:, None, None]
                for _ in range(ZOOMS if slot in reals else 0):
                    finer = now[slot][..., None] + spacing * np.linspace(-1.0, 1.0, NUM_FINER)
                    finer = np.clip(finer, scans[slot][:, None, :1], scans[slot][:, None, -1:])
                    now[slot] = _best(finer, along(slot, finer))
                    spacing = spacing * 2.0 / (NUM_FINER - 1)
            for slot in reals:
                variable = np.repeat(group.scope[:, slot], starts)
                width = _width(now[slot], scans[slot][:, [0, -1]], partial(along, slot))
                seen = height[slot].ravel() * np.repeat(group.multiplicity, starts)
                own = np.stack([variable, now[slot].ravel(), width.ravel(), seen])
                found.append(own[:, (seen > LEAST_HEIGHT) & np.isfinite(own[2])])
    except ModelError:  # where it is no number, a run says so
        found, varies = [], np.ones(len(group), dtype=bool)
    return np.concatenate([np.zeros((4, 0)), *found], axis=1), not varies.all()


def _best(points: FloatArray, values: FloatArray) -> FloatArray:
    """(factor, start): the points (factor, start or 1, point) at which values are largest."""
    at = np.argmax(values, axis=2)[..., None]
    return np.take_along_axis(np.broadcast_to(points, values.shape), at, axis=2)[..., 0]


def _width(
    at: FloatArray, ends: FloatArray, value: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """(factor, start): the distance from peaks at which values have fallen by 1 on both sides; inf
    where they never do. ends: (factor, 2)."""
    apart = (ends[:, 1] - ends[:, 0])[:, None, None] * 0.5 ** np.arange(HALVINGS, -1, -1)
    widest, here = np.zeros(at.shape), value(at[..., None])
    for sign, end in ((-1.0, ends[:, :1]), (1.0, ends[:, 1:])):
        points = np.clip(at[..., None] + sign * apart, ends[:, None, :1], ends[:, None, 1:])
        has_fallen = value(points) <= here - 1.0
        side = np.take_along_axis(
            np.broadcast_to(apart, points.shape), np.argmax(has_fallen, axis=2)[..., None], axis=2
        )[..., 0]
        side = np.where(has_fallen.any(axis=2), side, np.where(at == end, 0.0, np.inf))
        widest = np.maximum(widest, side)
    return np.where(widest > 0.0, widest, np.inf)


def _points(variables: Variables, variable: NDArray[np.int32]) -> FloatArray:
    """(factor, point): the states of variables of as many states each, or points along reals."""
    num_states = int(variables.num_states[variable[0]])
    if num_states:
        return np.tile(np.arange(float(num_states)), (len(variable), 1))
    lower, upper = variables.lower[variable][:, None], variables.upper[variable][:, None]
    share = np.linspace(0.0, 1.0, NUM_POINTS)
    far = FAR * np.sinh(12.0 * share) / np.sinh(12.0)
    both = FAR * np.sinh(12.0 * (2.0 * share - 1.0)) / np.sinh(12.0)
    with np.errstate(invalid="ignore"):
        closed = lower + share * (upper - lower)
    above = np.where(np.isfinite(lower), lower + far, both)
    found = np.where(np.isfinite(upper), upper - far[::-1], above)
    return np.where(np.isfinite(lower) & np.isfinite(upper), closed, found)

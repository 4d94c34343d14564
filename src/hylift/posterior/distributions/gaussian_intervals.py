"""Entropies and global maxima of Gaussian mixtures, by work on many intervals at once."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hylift.components.family import FloatArray, IntArray
from hylift.posterior.distributions.base import BLOCK_SIZE, without_idle
from hylift.posterior.distributions.univariate import (
    MAX_LEVELS,
    NODES,
    Intervals,
    find_roots,
    integrate,
)

EXACT_COMPONENTS = 64  # beyond, the search keeps only the most hopeful intervals
MAX_LEVEL_SIZE = 1 << 22  # intervals times components that the search then keeps for one row
ROOT_THREE = float(np.sqrt(3.0))
FAR = 100.0  # in standard deviations: the density is 0 there, and z² still finite
VANISHING = 39.0  # exp(-z²/2) underflows beyond this many standard deviations


@dataclass(frozen=True, slots=True)
class SortedMixtures:
    """Mixtures with components sorted by mean; all arrays are (row, component)."""

    means: FloatArray
    sds: FloatArray
    heights: FloatArray  # density of each weighted component at its own mean

    @classmethod
    def of(cls, weights: FloatArray, means: FloatArray, sds: FloatArray) -> "SortedMixtures":
        """Components of weight 0 become copies, of height 0, of the heaviest component."""
        means, sds = without_idle(weights, means, sds)
        order = np.argsort(means, axis=1, kind="stable")
        heights = weights / (sds * np.sqrt(2.0 * np.pi))
        return cls(*(np.take_along_axis(a, order, 1) for a in (means, sds, heights)))

    def parts(self, spans: Intervals, points: int) -> Iterator[tuple[slice, "SortedMixtures"]]:
        """Blocks of intervals, each with the mixtures (interval or 1, component) it needs.

        For a single mixture, components that vanish on the whole block are left out.
        """
        pending = [slice(0, len(spans.row))]
        while pending:
            block = pending.pop()
            size = block.stop - block.start
            near = self._near(spans.low[block], spans.high[block])
            if size > 1 and size * (near.stop - near.start) * points > BLOCK_SIZE:
                middle = block.start + size // 2
                pending += [slice(middle, block.stop), slice(block.start, middle)]
            elif size:
                row = spans.row[block] if len(self.means) > 1 else slice(None)
                arrays = (self.means, self.sds, self.heights)
                yield block, SortedMixtures(*(array[row, near] for array in arrays))

    def _near(self, low: FloatArray, high: FloatArray) -> slice:
        """The components that do not vanish between the lowest and the highest point."""
        if len(self.means) != 1 or not len(low):
            return slice(0, self.means.shape[1])
        reach = VANISHING * self.sds.max()
        ends = np.searchsorted(self.means[0], [low.min() - reach, high.max() + reach])
        return slice(int(ends[0]), int(ends[1]))


def entropies(mixtures: SortedMixtures) -> FloatArray:
    """The differential entropy of each row."""
    with np.errstate(over="ignore"):
        return integrate(lambda spans: _entropy_terms(mixtures, spans), scale_knots(mixtures))


def scale_knots(mixtures: SortedMixtures) -> FloatArray:
    """Each component's middle and ends, snapped to a grid as coarse as its standard deviation.

    Snapping merges the knots of components that overlap, so that their number grows with the
    range in standard deviations, not with the number of components.
    """
    mantissa, exponent = np.frexp(mixtures.sds)
    grid = np.ldexp(np.ones_like(mantissa), exponent - 1)
    ends = [mixtures.means + sds * mixtures.sds for sds in (-9.0, 0.0, 9.0)]
    return np.sort(np.concatenate([grid * np.round(end / grid) for end in ends], axis=1), axis=1)


def _entropy_terms(mixtures: SortedMixtures, spans: Intervals) -> FloatArray:
    """-f log f at the nodes of each interval."""
    width = spans.high - spans.low
    values = np.empty((len(width), len(NODES)))
    for block, near in mixtures.parts(spans, points=len(NODES)):
        # From the ends, which are exact, since the nodes lose digits far from 0.
        start = (spans.low[block, None] - near.means) / near.sds
        z = width[block, None, None] / near.sds[:, :, None] * (0.5 + 0.5 * NODES)
        z += start[:, :, None]  # (interval, component, node)
        density = (near.heights[:, None, :] @ np.exp(-0.5 * z**2))[:, 0]
        values[block] = special.entr(density)
    return values


def modes(mixtures: SortedMixtures) -> FloatArray:
    """Where each density is largest, by branch and bound with Newton at the end.

    An interval is dropped if the density cannot exceed the best value known, or is monotone; it
    is settled if the density is concave on it, and otherwise halved.
    """
    with np.errstate(over="ignore"):
        knots = _knots(mixtures)
        num_components = mixtures.means.shape[1]
        best = _Best(np.zeros(len(knots)), knots[:, 0].copy())
        row, x = np.repeat(np.arange(len(knots)), knots.shape[1]), knots.ravel()
        best.improve(row, x, _derivatives(mixtures, row, x)[0])
        spans = Intervals.between(knots)
        settled: list[Intervals] = []
        for _ in range(MAX_LEVELS):
            if not len(spans.row):
                break
            bounds = _bounds(mixtures, spans)
            best.improve(spans.row, spans.middle, bounds.density)
            hopeful = (bounds.ceiling > (1.0 + 1e-12) * best.density[spans.row]) & bounds.may_turn
            concave = bounds.curvature < 0
            settled.append(spans.where(hopeful & concave))
            if num_components > EXACT_COMPONENTS:
                beam = int(np.clip(MAX_LEVEL_SIZE // num_components, 32, 256))
                hopeful = _most_hopeful(spans.row, bounds.ceiling, hopeful, beam)
            spans = spans.where(hopeful & ~concave).halves()
        settled.append(spans)
        candidates = Intervals(*(np.concatenate(arrays) for arrays in zip(*settled, strict=True)))
        _climb(mixtures, candidates, best)
        return _polished(mixtures, best)


class _Best(NamedTuple):
    """The highest point of each row known so far."""

    density: FloatArray
    x: FloatArray

    def improve(self, row: IntArray, x: FloatArray, density: FloatArray) -> None:
        np.maximum.at(self.density, row, density)
        record = density >= self.density[row]
        self.x[row[record]] = x[record]


class _Bounds(NamedTuple):
    density: FloatArray  # at the middle of the interval
    ceiling: FloatArray  # the density is nowhere higher
    curvature: FloatArray  # the second derivative is nowhere higher
    may_turn: NDArray[np.bool_]  # False only if the first derivative has no zero


def _knots(mixtures: SortedMixtures) -> FloatArray:
    """Sorted points that cut the range of the means, outside of which there is no mode."""
    means, heights = mixtures.means, mixtures.heights
    num_components = means.shape[1]
    if num_components <= EXACT_COMPONENTS:
        return means
    spread = means[:, np.linspace(0, num_components - 1, EXACT_COMPONENTS).astype(np.int64)]
    highest = np.argpartition(heights, -EXACT_COMPONENTS, axis=1)[:, -EXACT_COMPONENTS:]
    return np.sort(np.concatenate([spread, np.take_along_axis(means, highest, 1)], axis=1), axis=1)


def _bounds(mixtures: SortedMixtures, spans: Intervals) -> _Bounds:
    half, middle = 0.5 * (spans.high - spans.low), spans.middle
    density, slope, ceiling, lowest, highest = np.empty((5, len(half)))
    for block, near in mixtures.parts(spans, points=1):
        z = (middle[block, None] - near.means) / near.sds
        reach = half[block, None] / near.sds
        closest = np.clip(np.abs(z) - reach, 0.0, FAR)
        farthest = np.minimum(np.abs(z) + reach, FAR)
        at_closest, at_farthest = np.exp(-0.5 * closest**2), np.exp(-0.5 * farthest**2)
        # (z² - 1) exp(-z²/2), the second derivative, rises up to z = √3 and then falls.
        bend_closest, bend_farthest = (closest**2 - 1) * at_closest, (farthest**2 - 1) * at_farthest
        bend = np.where(farthest <= ROOT_THREE, bend_farthest, 2.0 * np.exp(-1.5))
        bend = np.where(closest >= ROOT_THREE, bend_closest, bend)

        z = np.clip(z, -FAR, FAR)
        at_middle, scale = np.exp(-0.5 * z**2), near.heights / near.sds
        density[block] = _dot(near.heights, at_middle)
        slope[block] = np.abs(_dot(scale, z * at_middle))
        ceiling[block] = _dot(near.heights, at_closest)
        scale = scale / near.sds
        highest[block] = _dot(scale, bend)
        lowest[block] = _dot(scale, np.minimum(bend_closest, bend_farthest))
    taylor = density + half * slope + 0.5 * half**2 * np.maximum(highest, 0.0)
    may_turn = slope <= 1.001 * half * np.maximum(np.abs(lowest), np.abs(highest))
    return _Bounds(density, np.minimum(ceiling, taylor), highest, may_turn)


def _most_hopeful(
    row: IntArray, ceiling: FloatArray, hopeful: NDArray[np.bool_], beam: int
) -> NDArray[np.bool_]:
    """The hopeful intervals, in each row only the `beam` with the highest ceilings."""
    order = np.lexsort((-ceiling, ~hopeful, row))
    rank = np.empty(len(row), dtype=np.int64)
    rank[order] = np.arange(len(row)) - np.searchsorted(row, row)
    return hopeful & (rank < beam)


def _derivatives(
    mixtures: SortedMixtures, row: IntArray, x: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Density, first and second derivative at x[i] of mixture row[i]."""
    density, slope, bend = np.empty((3, len(x)))
    for block, near in mixtures.parts(Intervals(row, x, x), points=1):
        z = np.clip((x[block, None] - near.means) / near.sds, -FAR, FAR)
        value, scale = np.exp(-0.5 * z**2), near.heights / near.sds
        density[block] = _dot(near.heights, value)
        slope[block] = -_dot(scale, z * value)
        bend[block] = _dot(scale / near.sds, (z**2 - 1) * value)
    return density, slope, bend


def _dot(left: FloatArray, right: FloatArray) -> FloatArray:
    """Sums over components of (interval or 1, component) times (interval, component)."""
    if len(left) == 1:
        return np.asarray(right @ left[0])
    return np.asarray(np.einsum("ik,ik->i", left, right))


def _climb(mixtures: SortedMixtures, spans: Intervals, best: _Best) -> None:
    """Improve `best` by the maxima inside the intervals where the slope changes its sign."""
    rises = _derivatives(mixtures, spans.row, spans.low)[1] >= 0
    falls = _derivatives(mixtures, spans.row, spans.high)[1] <= 0
    spans = spans.where(rises & falls)

    def evaluate(x: FloatArray, which: IntArray) -> tuple[FloatArray, FloatArray]:
        density, slope, bend = _derivatives(mixtures, spans.row[which], x)
        concave = np.where(bend < 0, bend, np.nan)
        step = -slope / concave
        precise = np.abs(step) <= 1e-13 * np.sqrt(density / -concave)
        return np.where(precise, 0.0, -slope), step

    tops = find_roots(evaluate, spans.low, spans.high, spans.middle)
    best.improve(spans.row, tops, _derivatives(mixtures, spans.row, tops)[0])


def _polished(mixtures: SortedMixtures, best: _Best) -> FloatArray:
    """The best points after Newton steps, short since they are at most 1e-12 below the top."""
    row, x = np.arange(len(best.x)), best.x
    for _ in range(2):
        density, slope, bend = _derivatives(mixtures, row, x)
        bent = np.where(bend < 0, bend, -np.inf)
        limit = 1e-3 * np.sqrt(density / -bent)
        x = x + np.clip(-slope / bent, -limit, limit)
    return x

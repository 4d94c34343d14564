"""Gaussian mixtures on many intervals at once.

Intervals of all mixtures stand in flat lists (row, low, high). A search or a quadrature handles
the whole list in a few array operations and goes on with halves of those that need more care.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hylift.posterior.distributions.base import BLOCK_SIZE, FloatArray, IntArray, without_idle

MAX_LEVELS = 60
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

    def parts(self, spans: "Intervals", points: int) -> Iterator[tuple[slice, "SortedMixtures"]]:
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


class Intervals(NamedTuple):
    """Intervals of the real line, each belonging to a row of some mixtures."""

    row: IntArray
    low: FloatArray
    high: FloatArray

    @property
    def middle(self) -> FloatArray:
        return 0.5 * self.low + 0.5 * self.high

    @classmethod
    def between(cls, knots: FloatArray) -> "Intervals":
        """The gaps between neighbouring knots (row, knot), sorted along the last axis."""
        row, left = np.nonzero(knots[:, 1:] > knots[:, :-1])
        return cls(row, knots[row, left], knots[row, left + 1])

    def where(self, selected: NDArray[np.bool_]) -> "Intervals":
        return Intervals(self.row[selected], self.low[selected], self.high[selected])

    def halves(self) -> "Intervals":
        middle = self.middle
        low = np.stack([self.low, middle], axis=1).ravel()
        high = np.stack([middle, self.high], axis=1).ravel()
        return Intervals(np.repeat(self.row, 2), low, high)

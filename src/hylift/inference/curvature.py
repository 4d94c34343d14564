"""The memory of quasi-Newton steps (L-BFGS), for many independent problems side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.archive import Arrays
from hylift.components.kernels.steps import quasi_newton
from hylift.inference.held import Held, State

FloatArray = NDArray[np.float64]
Ids = NDArray[np.int64]

MEMORY = 10
"""Steps that are remembered."""


@dataclass(frozen=True, slots=True, eq=False)
class Curvature:
    """The last steps in unconstrained coordinates, and what they did to the slope.

    Rows belong to parts, which do not depend on each other, and have steps of their own.
    """

    steps: FloatArray  # (place, row, component)
    changes: FloatArray  # (place, row, component)
    count: Ids  # (part,): places that are filled
    newest: Ids  # (part,): place of the latest

    @classmethod
    def none(cls, slope: FloatArray, num_parts: int = 1) -> Curvature:
        """slope: (row, component)"""
        shape, empty = (MEMORY, *slope.shape), np.zeros(num_parts, dtype=np.int64)
        return cls(np.zeros(shape), np.zeros(shape), empty, empty - 1)

    def arrays(self) -> State:
        """All of it, for a checkpoint."""
        return {
            "steps": self.steps,
            "changes": self.changes,
            "count": Held(self.count, 0, MEMORY),
            "newest": Held(self.newest, -1, MEMORY - 1),
        }

    def restored(self, own: Arrays) -> Curvature:
        """The memory that has these arrays, which are checked."""
        return Curvature(own["steps"], own["changes"], own["count"], own["newest"])

    def direction(self, slope: FloatArray, inverse: FloatArray, row_part: Ids) -> FloatArray:
        """(row, component): the quasi-Newton direction; inverse: the diagonal to start from."""
        found = np.empty_like(slope)
        work = np.empty((MEMORY + 2, len(self.count)))
        quasi_newton(
            self.steps, self.changes, self.count, self.newest, row_part, slope, inverse, work, found
        )
        return found

    def spread(self, rows: Ids, share: FloatArray, parts: Ids) -> Curvature:
        """The same over finer classes; rows, share: (row,), where each comes from, and its share in
        the slope; parts: (part,), where it comes from."""
        # In the order in which kernels expect them: another one would be compiled for anew.
        steps = np.ascontiguousarray(self.steps[:, rows])
        changes = np.ascontiguousarray(self.changes[:, rows] * share[:, None])
        return Curvature(steps, changes, self.count[parts], self.newest[parts])

    def remember(self, step: FloatArray, change: FloatArray, row_part: Ids) -> Curvature:
        """The memory with one more step (row, component), of the parts whose slope has risen along
        it."""
        num_parts = len(self.count)
        along = sums_by_part(step * change, row_part, num_parts)
        sizes = [sums_by_part(one**2, row_part, num_parts) for one in (step, change)]
        rises = along > 1e-12 * np.sqrt(sizes[0] * sizes[1])
        newest = np.where(rises, (self.newest + 1) % MEMORY, self.newest)
        rows = np.flatnonzero(rises[row_part])
        steps, changes = self.steps.copy(), self.changes.copy()
        place = newest[row_part[rows]]
        steps[place, rows], changes[place, rows] = step[rows], change[rows]
        count = np.where(rises, np.minimum(self.count + 1, MEMORY), self.count)
        return Curvature(steps, changes, count, newest)


def sums_by_part(values: FloatArray, row_part: Ids, num_parts: int) -> FloatArray:
    """(part,): sums of values (row, component)."""
    return np.bincount(row_part, values.sum(axis=1), num_parts).astype(np.float64)

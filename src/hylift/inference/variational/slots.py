"""Slots of terms or scopes, whose gradients are added up in blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hylift.components import Layout
from hylift.inference.variational.kernels import scatter
from hylift.inference.variational.problem import FloatArray
from hylift.numerics import threads
from hylift.numerics.segments import offsets

IntArray = NDArray[np.int64]


class Target(NamedTuple):
    """Arrays to add the gradients and values of a block to."""

    gradient: FloatArray  # (start, entry, component)
    value: FloatArray  # (start, part, component), from `first_part` on
    slots: IntArray
    """(slot,): less `shift`, the first entry of its gradient."""
    shift: int
    first_part: int


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """The slots of terms or scopes, whose gradients are added up in blocks of whole terms."""

    slot_ptr: IntArray  # (term + 1,)
    slots: NDArray[np.int32]
    target: IntArray  # (slot,): first entry of its variable
    source: IntArray  # (slot + 1,): places of the gradients of slots, one behind the other
    cost: IntArray  # (term + 1,): work up to each term, for one component, about in grid points
    part: NDArray[np.int32]  # (term,): increasing
    most: int
    """Slots of the largest term."""

    @classmethod
    def of(
        cls,
        layout: Layout,
        part: NDArray[np.int32],
        slot_ptr: IntArray,
        slots: NDArray[np.int32],
        cost: IntArray | None = None,
    ) -> Slots:
        source = offsets((layout.first[1:] - layout.first[:-1])[slots])
        cost = 4 * np.diff(source[slot_ptr]) if cost is None else cost
        most = int(np.diff(slot_ptr).max(initial=1))
        of = part[slots[slot_ptr[:-1]]]
        return cls(slot_ptr, slots, layout.first[slots], source, offsets(cost), of, most)

    def scratch(self) -> tuple[IntArray, FloatArray]:
        """For the slots of the largest term: a state of each, and one number more."""
        return np.empty(self.most, dtype=np.int64), np.empty(self.most + 1)

    def add_up(
        self,
        run: Callable[[int, int, Target], None],
        first: IntArray,
        gradient: FloatArray,
        value: FloatArray,
    ) -> None:
        """Run all blocks, and add their gradients and values in order."""
        work = gradient.shape[0] * gradient.shape[2]
        if int(self.cost[-1]) * work < 2 * threads.BLOCK:
            run(0, len(self.slot_ptr) - 1, Target(gradient, value, self.target, 0, 0))
            return
        starts, _, size = gradient.shape

        def run_block(begin: int, end: int) -> Target:
            low, high = self.source[self.slot_ptr[[begin, end]]].tolist()
            first_part, last_part = self.part[[begin, end - 1]].tolist()
            buffer = np.zeros((starts, high - low, size))
            total = np.zeros((starts, last_part + 1 - first_part, size))
            to = Target(buffer, total, self.source, low, first_part)
            run(begin, end, to)
            return to

        blocks = threads.cut(self.cost, work)
        found = threads.in_order(run_block, blocks)
        for (begin, end), to in zip(blocks, found, strict=True):
            scatter(
                begin, end, self.slot_ptr, self.slots, first, self.source, to.gradient, gradient
            )
            value[:, to.first_part : to.first_part + to.value.shape[1]] += to.value

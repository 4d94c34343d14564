"""Gradients of slots, computed in blocks and added up in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.inference.variational.kernels.energy import scatter
from hylift.inference.variational.problem import FloatArray, Mixtures, Problem
from hylift.numerics.threads import cut, in_order


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """Where the gradients of slots stand in a buffer, and blocks of whole terms."""

    slot_ptr: NDArray[np.int64]
    slots: NDArray[np.int32]
    grad_ptr: NDArray[np.int64]  # (slot + 1,)
    cost: NDArray[np.int64]  # (term + 1,): work up to each term, for one component

    @classmethod
    def of(
        cls,
        problem: Problem,
        slot_ptr: NDArray[np.int64],
        slots: NDArray[np.int32],
        cost: NDArray[np.int64] | None = None,
    ) -> Slots:
        width = np.diff(problem.layout.first)[slots]
        grad_ptr = np.concatenate([[0], np.cumsum(width)])
        if cost is None:
            cost = 4 * np.diff(grad_ptr[slot_ptr])
        return cls(slot_ptr, slots, grad_ptr, np.concatenate([[0], np.cumsum(cost)]))

    @property
    def num_entries(self) -> int:
        return int(self.grad_ptr[-1])

    def blocks(self, work: int) -> list[tuple[int, int]]:
        """Stretches of terms of about equal work, about in grid points."""
        return cut(self.cost, work)

    def buffer(self, begin: int, end: int, q: Mixtures) -> FloatArray:
        low, high = self.grad_ptr[self.slot_ptr[[begin, end]]]
        return np.empty((q.num_starts, int(high - low), q.num_components))

    def add_up(
        self,
        blocks: list[tuple[int, int]],
        run: Callable[[int, int], tuple[FloatArray, FloatArray]],
        first: NDArray[np.int64],
        gradient: FloatArray,
        value: FloatArray,
    ) -> None:
        """Runs all blocks, and adds their gradients and values in order."""
        for (begin, end), (buffer, part) in zip(blocks, in_order(run, blocks), strict=True):
            scatter(begin, end, self.slot_ptr, self.slots, first, self.grad_ptr, buffer, gradient)
            value += part

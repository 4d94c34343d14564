"""Work cut into blocks, which threads share without a difference to the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numba import get_num_threads
from numpy.typing import NDArray

from hylift.inference.variational.kernels.energy import scatter
from hylift.inference.variational.problem import FloatArray, Mixtures, Problem

BLOCK = 1 << 18
"""Work of one block, about in grid points: what one thread does at a time."""

T = TypeVar("T")


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
        """Stretches of terms of about equal work; they depend on the problem alone, not on the
        threads, and so does the order in which numbers are added."""
        count = max(1, int(self.cost[-1]) * work // BLOCK)
        if count == 1 or len(self.cost) <= 2:
            return [(0, len(self.cost) - 1)]
        marks = np.linspace(0, self.cost[-1], count + 1)
        cuts = np.unique(np.searchsorted(self.cost, marks))
        cuts[0], cuts[-1] = 0, len(self.cost) - 1
        return list(pairwise(np.unique(cuts).tolist()))

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


def in_order(run: Callable[[int, int], T], blocks: Iterable[tuple[int, int]]) -> Iterator[T]:
    """What `run` returns for each block, in order, with as many threads as Numba has.

    Few results wait at any time.
    """
    blocks = list(blocks)
    num_threads = min(get_num_threads(), len(blocks))
    if num_threads <= 1:
        for block in blocks:
            yield run(*block)
        return
    with ThreadPoolExecutor(num_threads) as pool:
        waiting: list[Future[T]] = []
        for block in blocks:
            waiting.append(pool.submit(run, *block))
            if len(waiting) > 2 * num_threads:
                yield waiting.pop(0).result()
        for future in waiting:
            yield future.result()

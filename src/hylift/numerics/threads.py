"""Work cut into blocks, which threads share without a difference to the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numba import get_num_threads
from numpy.typing import NDArray

BLOCK = 1 << 18
"""Work of one block: what one thread does at a time, about a millisecond or more."""

T = TypeVar("T")


def cut(cost: NDArray[np.int64], work: int = 1) -> list[tuple[int, int]]:
    """Stretches of about equal work; they depend on the problem alone, not on the threads, and so
    does the order in which numbers are added.

    cost: (item + 1,), the work up to each item, from 0; `work` times that is what is to be done.
    """
    count = max(1, int(cost[-1]) * work // BLOCK)
    if count == 1 or len(cost) <= 2:
        return [(0, len(cost) - 1)]
    marks = np.linspace(0, cost[-1], count + 1)
    cuts = np.unique(np.searchsorted(cost, marks))
    cuts[0], cuts[-1] = 0, len(cost) - 1
    return list(pairwise(np.unique(cuts).tolist()))


def in_order(run: Callable[[int, int], T], blocks: Iterable[tuple[int, int]]) -> Iterator[T]:
    """Yield the result of `run` for each block, in order, with as many threads as Numba has.

    Few results wait at any time.
    """
    blocks = list(blocks)
    num_threads = min(get_num_threads(), len(blocks)) if len(blocks) > 1 else 1
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

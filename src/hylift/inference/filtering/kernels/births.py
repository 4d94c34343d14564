"""In which order the reals of each time come to life."""

import heapq

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def plan_births(factor_ptr, variable, rank, factor_of, entry_ptr, entries, by_rank):
    """The entry through which each variable is born, -1 where there is none; and those that are
    born, in order.

    Entry e of factor_ptr[f] to factor_ptr[f + 1] is a variable of factor f; entries[entry_ptr[v]:
    entry_ptr[v + 1]] are those of variable v that are of its own time. A factor that has one unborn
    variable left may give birth to it, those of a low rank before others; by_rank are entries in
    this order. The rank of an entry is -1 where it may not, and -2 where its variable is known or
    of an earlier time.
    """
    num_factors, num_variables = len(factor_ptr) - 1, len(entry_ptr) - 1
    birth = np.full(num_variables, -1, dtype=np.int64)
    order = np.empty(num_variables, dtype=np.int64)
    num_born = 0
    unborn = np.zeros(num_factors, dtype=np.int64)
    ready = [np.int64(0) for _ in range(0)]
    for factor in range(num_factors):
        only = np.int64(-1)
        for entry in range(factor_ptr[factor], factor_ptr[factor + 1]):
            if rank[entry] > -2:
                unborn[factor] += 1
                only = entry
        if unborn[factor] == 1 and rank[only] >= 0:
            heapq.heappush(ready, rank[only])
    while len(ready):
        entry = by_rank[heapq.heappop(ready)]
        born = variable[entry]
        if birth[born] >= 0:
            continue
        birth[born] = entry
        order[num_born] = born
        num_born += 1
        for at in range(entry_ptr[born], entry_ptr[born + 1]):
            other = factor_of[entries[at]]
            unborn[other] -= 1
            if unborn[other] == 1:
                for left in range(factor_ptr[other], factor_ptr[other + 1]):
                    if rank[left] >= 0 and birth[variable[left]] < 0:
                        heapq.heappush(ready, rank[left])
    return birth, order[:num_born]

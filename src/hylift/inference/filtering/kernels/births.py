"""In which order the reals of each time come to life."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def plan_births(factor_ptr, variable, level, factor_of, entry_ptr, entries, num_levels):
    """The entry through which each variable is born, -1 where there is none; and those that are
    born, in order.

    Entry e of factor_ptr[f] to factor_ptr[f + 1] is a variable of factor f; entries[entry_ptr[v]:
    entry_ptr[v + 1]] are those of variable v that are of its own time. A factor that has one unborn
    variable left may give birth to it, those of a low level before others; the level of an entry
    is -1 where it may not, and -2 where its variable is of an earlier time.
    """
    num_factors, num_variables = len(factor_ptr) - 1, len(entry_ptr) - 1
    birth = np.full(num_variables, -1, dtype=np.int64)
    order = np.empty(num_variables, dtype=np.int64)
    num_born = 0
    unborn = np.zeros(num_factors, dtype=np.int64)
    # One queue per level: lists of entries, each of another factor.
    after = np.full(num_factors, -1, dtype=np.int64)
    waiting = np.full(num_factors, -1, dtype=np.int64)
    first = np.full(num_levels, -1, dtype=np.int64)
    last = np.full(num_levels, -1, dtype=np.int64)
    for factor in range(num_factors):
        only = np.int64(-1)
        for entry in range(factor_ptr[factor], factor_ptr[factor + 1]):
            if level[entry] > -2:
                unborn[factor] += 1
                only = entry
        if unborn[factor] == 1:
            _append(factor, only, level[only], waiting, after, first, last)
    place = 0
    while place < num_levels:
        factor = first[place]
        if factor < 0:
            place += 1
            continue
        first[place] = after[factor]
        if birth[variable[waiting[factor]]] >= 0:
            continue
        born = variable[waiting[factor]]
        birth[born] = waiting[factor]
        order[num_born] = born
        num_born += 1
        for at in range(entry_ptr[born], entry_ptr[born + 1]):
            other = factor_of[entries[at]]
            unborn[other] -= 1
            if unborn[other] == 1:
                for entry in range(factor_ptr[other], factor_ptr[other + 1]):
                    if level[entry] > -2 and birth[variable[entry]] < 0:
                        _append(other, entry, level[entry], waiting, after, first, last)
        place = 0
    return birth, order[:num_born]


@njit(cache=True, nogil=True)
def _append(factor, entry, level, waiting, after, first, last):
    """Puts a factor at the end of the queue of a level."""
    if level < 0:
        return
    waiting[factor] = entry
    after[factor] = -1
    if first[level] < 0:
        first[level] = factor
    else:
        after[last[level]] = factor
    last[level] = factor

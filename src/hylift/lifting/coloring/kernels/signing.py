"""What tells members of one class apart, when others have moved to new classes."""

import numpy as np
from numba import njit

from hylift.lifting.coloring.kernels.dividing import number_chains


@njit(cache=True)
def sign_variables(
    moved, by_kind, of_whole, fresh, walk, weight, num_orbits, group, color, size, at
):
    """Variables in the slots of factors that have moved, and a number for each: equal for those of
    one class that have the same total weight in each new class of factors and orbit; a bound on the
    numbers.

    by_kind: 1 where factors have moved for their kinds; 0 where they have for `fresh` variables. A
    fresh one hears nothing new from a factor that has moved with it alone, out of a class of which
    others have stayed: all its members' factors in that class have moved, so that what is not new
    of them is known from the rest. of_whole: (class of factors,): where none have stayed. walk:
    slots, first, orbit. at: (variable,), zeros to work with.
    """
    slots, first, orbit = walk
    touched, begin = touched_variables(
        moved, by_kind, of_whole, fresh, slots, first, group, color, size, at
    )
    link = np.empty(begin[-1], dtype=np.int64)
    share = np.ones(begin[-1], dtype=np.int64)
    weighted = len(weight) > 0
    for place in range(len(moved)):
        factor = moved[place]
        news = by_kind + of_whole[group[factor]]
        for edge in range(first[factor], first[factor + 1]):
            news += fresh[slots[edge]]
        for edge in range(first[factor], first[factor + 1]):
            variable = slots[edge]
            if news > fresh[variable] and size[color[variable]] > 1:
                link[at[variable]] = np.int64(group[factor]) * num_orbits + orbit[edge]
                if weighted:
                    share[at[variable]] = weight[factor]
                at[variable] += 1
    for place in range(len(touched)):
        at[touched[place]] = 0
    part, count = number_chains(touched, begin, link, share, color)
    return touched, part, count


@njit(cache=True)
def touched_variables(moved, by_kind, of_whole, fresh, slots, first, group, color, size, at):
    """Variables that hear something new from these factors, unless they are alone in their class;
    where what each hears begins in a list of it all, also in `at`."""
    num_edges = 0
    for place in range(len(moved)):
        num_edges += first[moved[place] + 1] - first[moved[place]]
    touched = np.empty(num_edges, dtype=np.int32)
    num_touched = 0
    for place in range(len(moved)):
        factor = moved[place]
        news = by_kind + of_whole[group[factor]]
        for edge in range(first[factor], first[factor + 1]):
            news += fresh[slots[edge]]
        for edge in range(first[factor], first[factor + 1]):
            variable = slots[edge]
            if news > fresh[variable] and size[color[variable]] > 1:
                if at[variable] == 0:
                    touched[num_touched] = variable
                    num_touched += 1
                at[variable] += 1
    begin = np.zeros(num_touched + 1, dtype=np.int64)
    for place in range(num_touched):
        begin[place + 1] = begin[place] + at[touched[place]]
        at[touched[place]] = begin[place]
    return touched[:num_touched].copy(), begin


@njit(cache=True)
def sign_factors(fresh, touched, walk, num_orbits, color, group):
    """int32 (factor,): a number for each, equal for those of one class that have variables of the
    same new classes in their orbits; a bound on the numbers.

    fresh: (variable,): those that have moved. touched: the factors they stand in. walk: slots,
    first, orbit.
    """
    slots, first, orbit = walk
    begin = np.zeros(len(touched) + 1, dtype=np.int64)
    for place in range(len(touched)):
        count = 0
        for edge in range(first[touched[place]], first[touched[place] + 1]):
            count += fresh[slots[edge]]
        begin[place + 1] = begin[place] + count
    link = np.empty(begin[-1], dtype=np.int64)
    at = 0
    for place in range(len(touched)):
        for edge in range(first[touched[place]], first[touched[place] + 1]):
            if fresh[slots[edge]]:
                link[at] = np.int64(color[slots[edge]]) * num_orbits + orbit[edge]
                at += 1
    return number_chains(touched, begin, link, np.ones(begin[-1], dtype=np.int64), group)


@njit(cache=True)
def touched_factors(moved, start, factors, group, size, seen):
    """Sorted factors in whose slots these variables stand, unless alone in their class.

    start, factors: from variables to the factors they stand in. seen: (factor,), all False, to work
    with.
    """
    count = 0
    for place in range(len(moved)):
        for link in range(start[moved[place]], start[moved[place] + 1]):
            factor = factors[link]
            if not seen[factor] and size[group[factor]] > 1:
                seen[factor] = True
                count += 1
    touched = np.empty(count, dtype=np.int32)
    at = 0
    if count * 16 > len(seen):
        for factor in range(len(seen)):
            if seen[factor]:
                seen[factor] = False
                touched[at] = factor
                at += 1
        return touched
    for place in range(len(moved)):
        for link in range(start[moved[place]], start[moved[place] + 1]):
            factor = factors[link]
            if seen[factor]:
                seen[factor] = False
                touched[at] = factor
                at += 1
    touched.sort()
    return touched

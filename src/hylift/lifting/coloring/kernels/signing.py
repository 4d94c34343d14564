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
    room = num_edges(moved, first)
    listener = np.empty(room, dtype=np.int32)
    said = np.empty(room, dtype=np.int64)
    amount = np.ones(room if len(weight) else 0, dtype=np.int64)
    touched = np.empty(room, dtype=np.int32)
    count, num_touched = 0, 0
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
                listener[count] = variable
                said[count] = np.int64(group[factor]) * num_orbits + orbit[edge]
                if len(weight):
                    amount[count] = weight[factor]
                count += 1
    touched = touched[:num_touched].copy()
    begin, link, share = by_listener(touched, listener[:count], said, amount, at)
    part, num_parts = number_chains(touched, begin, link, share, color)
    return touched, part, num_parts


@njit(cache=True)
def num_edges(moved, first):
    """Slots of these factors."""
    count = 0
    for place in range(len(moved)):
        count += first[moved[place] + 1] - first[moved[place]]
    return count


@njit(cache=True)
def by_listener(touched, listener, said, amount, at):
    """What was said, sorted by variable: where that of each begins, what it is, and its weight.

    amount: (message,), or nothing where all are 1. at: (variable,), how much each hears; zeros
    then.
    """
    begin = np.zeros(len(touched) + 1, dtype=np.int64)
    for place in range(len(touched)):
        begin[place + 1] = begin[place] + at[touched[place]]
        at[touched[place]] = begin[place]
    link = np.empty(len(listener), dtype=np.int64)
    share = np.ones(len(listener), dtype=np.int64)
    for place in range(len(listener)):
        spot = at[listener[place]]
        at[listener[place]] = spot + 1
        link[spot] = said[place]
        if len(amount):
            share[spot] = amount[place]
    for place in range(len(touched)):
        at[touched[place]] = 0
    return begin, link, share


@njit(cache=True)
def sign_factors(fresh, touched, walk, num_orbits, color, group):
    """int32 (factor,): a number for each, equal for those of one class that have variables of the
    same new classes in their orbits; a bound on the numbers.

    fresh: (variable,): those that have moved. touched: the factors they stand in. walk: slots,
    first, orbit.
    """
    slots, first, orbit = walk
    begin = np.zeros(len(touched) + 1, dtype=np.int64)
    link = np.empty(num_edges(touched, first), dtype=np.int64)
    at = 0
    for place in range(len(touched)):
        for edge in range(first[touched[place]], first[touched[place] + 1]):
            if fresh[slots[edge]]:
                link[at] = np.int64(color[slots[edge]]) * num_orbits + orbit[edge]
                at += 1
        begin[place + 1] = at
    return number_chains(touched, begin, link[:at], np.ones(0, dtype=np.int64), group)


@njit(cache=True)
def touched_factors(moved, start, factors, group, size, seen):
    """Factors in whose slots these variables stand, unless alone in their class.

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
    return touched

"""Whether a partition is equitable, without trust in hashes."""

import numpy as np
from numba import njit


@njit(cache=True)
def split_unlike(color, num_classes, factor_class, num_factor_classes, weight, links, num_orbits):
    """Gives new classes, in place, to variables that do not have the slots of their class's first
    member: the same weight for each class of factors and orbit. Returns the number of classes.

    links: start, factors, orbits of `incidence`. All that differ from the first member of one class
    share one new class: what is alike is never separated.
    """
    start, factors, orbits = links
    order, class_start = by_class(color, num_classes)
    wanted = np.zeros(num_factor_classes * num_orbits, dtype=np.int64)
    found = np.zeros(num_factor_classes * num_orbits, dtype=np.int64)
    weighted = len(weight) > 0
    count = num_classes
    for number in range(num_classes):
        begin, end = class_start[number], class_start[number + 1]
        if end - begin < 2:
            continue
        leader = order[begin]
        total = 0
        for at in range(start[leader], start[leader + 1]):
            share = weight[factors[at]] if weighted else 1
            wanted[factor_class[factors[at]] * num_orbits + orbits[at]] += share
            total += share
        unlike = -1
        for place in range(begin + 1, end):
            variable = order[place]
            left = total
            for at in range(start[variable], start[variable + 1]):
                share = weight[factors[at]] if weighted else 1
                found[factor_class[factors[at]] * num_orbits + orbits[at]] += share
                left -= share
            # With equal totals, what is equal wherever this one has slots is equal everywhere.
            same = left == 0
            for at in range(start[variable], start[variable + 1]):
                code = factor_class[factors[at]] * num_orbits + orbits[at]
                same = same and found[code] == wanted[code]
            for at in range(start[variable], start[variable + 1]):
                found[factor_class[factors[at]] * num_orbits + orbits[at]] = 0
            if not same:
                if unlike < 0:
                    unlike = count
                    count += 1
                color[variable] = unlike
        for at in range(start[leader], start[leader + 1]):
            wanted[factor_class[factors[at]] * num_orbits + orbits[at]] = 0
    return count


@njit(cache=True)
def by_class(color, num_classes):
    """Variables sorted by class, and where each class begins."""
    begin = np.zeros(num_classes + 1, dtype=np.int64)
    for variable in range(len(color)):
        begin[color[variable] + 1] += 1
    for number in range(num_classes):
        begin[number + 1] += begin[number]
    at = begin[:-1].copy()
    order = np.empty(len(color), dtype=np.int32)
    for variable in range(len(color)):
        order[at[color[variable]]] = variable
        at[color[variable]] += 1
    return order, begin

"""Whether a partition is equitable, without trust in hashes."""

import numpy as np
from numba import njit


@njit(cache=True)
def split_unlike(slots, first, orbit, weight, color, num_classes, factor_class, base, code):
    """Gives new classes, in place, to variables that do not have the slots of their class's first
    member: the same weight for each class of factors and orbit. Returns the number of classes.

    base: (factor class + 1,), numbers from which its orbits are counted. code: room for one number
    per edge. All that differ from the first member of one class share one new class: what is alike
    is never separated.
    """
    order, begin = by_class(color, num_classes)
    start, share = edge_codes(slots, first, orbit, weight, color, begin, factor_class, base, code)
    wanted = np.zeros(base[-1], dtype=np.int64)
    found = np.zeros(base[-1], dtype=np.int64)
    weighted = len(weight) > 0
    count = num_classes
    for number in range(num_classes):
        if begin[number + 1] - begin[number] < 2:
            continue
        leader = order[begin[number]]
        total = 0
        for at in range(start[leader], start[leader + 1]):
            amount = share[at] if weighted else 1
            wanted[code[at]] += amount
            total += amount
        unlike = -1
        for place in range(begin[number] + 1, begin[number + 1]):
            variable = order[place]
            left = total
            for at in range(start[variable], start[variable + 1]):
                amount = share[at] if weighted else 1
                found[code[at]] += amount
                left -= amount
            # With equal totals, what is equal wherever this one has slots is equal everywhere.
            same = left == 0
            for at in range(start[variable], start[variable + 1]):
                same &= found[code[at]] == wanted[code[at]]
            for at in range(start[variable], start[variable + 1]):
                found[code[at]] = 0
            if not same:
                if unlike < 0:
                    unlike = count
                    count += 1
                color[variable] = unlike
        for at in range(start[leader], start[leader + 1]):
            wanted[code[at]] = 0
    return count


@njit(cache=True)
def edge_codes(slots, first, orbit, weight, color, begin, factor_class, base, code):
    """Writes the class of factors and orbit of each slot, variable after variable; returns where
    those of a variable start, and their weights. Variables alone in their class have none."""
    start = np.zeros(len(color) + 1, dtype=np.int64)
    alone = np.empty(len(color), dtype=np.bool_)
    for variable in range(len(color)):
        alone[variable] = begin[color[variable] + 1] - begin[color[variable]] == 1
    for edge in range(len(slots)):
        start[slots[edge] + 1] += 1
    for variable in range(len(color)):
        own = 0 if alone[variable] else start[variable + 1]
        start[variable + 1] = start[variable] + own
    at = start[:-1].copy()
    weighted = len(weight) > 0
    share = np.empty(start[-1] if weighted else 0, dtype=np.int64)
    for factor in range(len(factor_class)):
        for edge in range(first[factor], first[factor + 1]):
            variable = slots[edge]
            if alone[variable]:
                continue
            place = at[variable]
            at[variable] = place + 1
            code[place] = base[factor_class[factor]] + orbit[edge]
            if weighted:
                share[place] = weight[factor]
    return start, share


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

"""Classes of variables and factors, refined from where they are, without trust in hashes.

Where a class is divided, its largest part keeps the number. What members of another class have to
do with that part follows from what they have to do with the others, so that only these are looked
at: each time something is looked at, its class has halved.
"""

import numpy as np
from numba import njit

from hylift.lifting.coloring.kernels.grouping import same_multisets
from hylift.lifting.coloring.kernels.hashing import factor_hash, mix

EMPTY = np.int32(-1)
ONE = np.uint64(1)
ZERO = np.uint64(0)


@njit(cache=True)
def divide(some, part, num_parts, number, size, touched_of, largest_of, count):
    """Gives new numbers, in place, to parts of classes; returns who has a new one, and how many
    classes there are.

    some: the members in question; part: (member,), equal for those of a class that stay together.
    Members of a class that are not in question stay together, too, and keep its number; where there
    are none, the largest part does. number: (item,). size: (class,), kept up to date. touched_of,
    largest_of: (class,), zeros to work with.
    """
    part_size = np.zeros(num_parts, dtype=np.int32)
    part_class = np.empty(num_parts, dtype=np.int32)
    for place in range(len(some)):
        part_size[part[place]] += 1
        part_class[part[place]] = number[some[place]]
    for one in range(num_parts):
        if part_size[one]:
            old = part_class[one]
            touched_of[old] += part_size[one]
            best = largest_of[old] - 1
            if best < 0 or part_size[one] > part_size[best]:
                largest_of[old] = one + 1
    new = np.empty(num_parts, dtype=np.int32)
    for one in range(num_parts):
        if part_size[one]:
            old = part_class[one]
            if touched_of[old] == size[old] and largest_of[old] == one + 1:
                new[one] = old
            else:
                new[one] = count
                count += 1
    for one in range(num_parts):
        if part_size[one]:
            old = part_class[one]
            touched_of[old] = 0
            largest_of[old] = 0
            if new[one] != old:
                size[new[one]] = part_size[one]
                size[old] -= part_size[one]
    moved = np.empty(len(some), dtype=np.int32)
    num_moved = 0
    for place in range(len(some)):
        item = some[place]
        if number[item] != new[part[place]]:
            number[item] = new[part[place]]
            moved[num_moved] = item
            num_moved += 1
    return moved[:num_moved].copy(), count


@njit(cache=True)
def by_class(moved, number, low, high):
    """Items sorted by class, and where each class from `low` to below `high` begins."""
    begin = np.zeros(high - low + 1, dtype=np.int64)
    for place in range(len(moved)):
        begin[number[moved[place]] - low + 1] += 1
    for one in range(high - low):
        begin[one + 1] += begin[one]
    at = begin[:-1].copy()
    order = np.empty(len(moved), dtype=np.int32)
    for place in range(len(moved)):
        one = number[moved[place]] - low
        order[at[one]] = moved[place]
        at[one] += 1
    return order, begin


@njit(cache=True)
def sign_variables(
    order, begin, slots, first, orbit, weight, color, size, signature, amount, num_edges
):
    """Variables in the slots of factors that have moved, and a number for each: equal for those of
    one class that have the same total weight in each new class of factors and orbit.

    order, begin: the factors by class. signature, amount: (variable,), zeros to work with.
    num_edges: slots of these factors.

    A number stands for a chain of (class of factors, orbit, weight), after the color. It is looked
    up by the number of the chain before its last link, and that link.
    """
    last = np.uint64(1)
    while last < np.uint64(2 * num_edges):
        last *= np.uint64(2)
    table = np.full(last, EMPTY, dtype=np.int32)
    last -= ONE
    before = np.empty(num_edges, dtype=np.int64)
    link = np.empty(num_edges, dtype=np.int64)
    total = np.empty(num_edges, dtype=np.int64)
    touched = np.empty(num_edges, dtype=np.int32)
    now = np.empty(num_edges, dtype=np.int32)
    num_chains, num_touched, num_links = 0, 0, 0
    weighted = len(weight) > 0
    for one in range(len(begin) - 1):
        low, high = begin[one], begin[one + 1]
        leader = first[order[low]]
        arity = first[order[low] + 1] - leader
        for slot in range(arity):
            place = orbit[leader + slot]
            if place != slot:
                continue  # an orbit has the number of its first slot
            num_now = 0
            for at in range(low, high):
                factor = order[at]
                share = weight[factor] if weighted else 1
                for edge in range(first[factor] + slot, first[factor + 1]):
                    variable = slots[edge]
                    if orbit[edge] == place and size[color[variable]] > 1:
                        if amount[variable] == 0:
                            now[num_now] = variable
                            num_now += 1
                        amount[variable] += share
            for at in range(num_now):
                variable = now[at]
                chain = np.int64(signature[variable])
                if chain == 0:
                    touched[num_touched] = variable
                    num_touched += 1
                    chain = -1 - np.int64(color[variable])
                count = amount[variable]
                amount[variable] = 0
                hashed = mix(mix(np.uint64(chain)) + np.uint64(count)) + np.uint64(num_links)
                hashed = mix(hashed)
                spot = hashed & last
                found = table[spot]
                while found != EMPTY and not (
                    before[found] == chain and link[found] == num_links and total[found] == count
                ):
                    spot = (spot + ONE) & last
                    found = table[spot]
                if found == EMPTY:
                    found = np.int32(num_chains)
                    table[spot] = found
                    before[found], link[found], total[found] = chain, num_links, count
                    num_chains += 1
                signature[variable] = found + 1
            num_links += 1
    part = np.empty(num_touched, dtype=np.int32)
    for at in range(num_touched):
        part[at] = signature[touched[at]] - 1
        signature[touched[at]] = 0
    return touched[:num_touched].copy(), part, num_chains


@njit(cache=True)
def number_factors(moved, slots, first, orbit, start, factors, color, group, size, seen):
    """Factors with variables that have moved, and a number for each, equal for those of one class
    that have the same colors in their slots; how many there are.

    seen: (factor,), False to work with.
    """
    num_edges = 0
    for at in range(len(moved)):
        num_edges += start[moved[at] + 1] - start[moved[at]]
    touched = np.empty(num_edges, dtype=np.int32)
    num_touched = 0
    for at in range(len(moved)):
        for link in range(start[moved[at]], start[moved[at] + 1]):
            factor = factors[link]
            if not seen[factor] and size[group[factor]] > 1:
                seen[factor] = True
                touched[num_touched] = factor
                num_touched += 1
    last = np.uint64(1)
    while last < np.uint64(2 * num_touched):
        last *= np.uint64(2)
    table = np.full(last, EMPTY, dtype=np.int32)
    last -= ONE
    leader = np.empty(num_touched, dtype=np.int32)
    part = np.empty(num_touched, dtype=np.int32)
    count = 0
    for at in range(num_touched):
        factor = touched[at]
        seen[factor] = False
        spot = factor_hash(factor, slots, first, orbit, group, color, ZERO) & last
        found = table[spot]
        begin = first[factor]
        arity = first[factor + 1] - begin
        while found != EMPTY:
            other = leader[found]
            if group[other] == group[factor]:
                offset = first[other]
                differ = 0
                for slot in range(arity):
                    differ |= color[slots[begin + slot]] ^ color[slots[offset + slot]]
                if differ == 0 or same_multisets(begin, offset, arity, slots, orbit, color):
                    break
            spot = (spot + ONE) & last
            found = table[spot]
        if found == EMPTY:
            found = np.int32(count)
            table[spot] = found
            leader[count] = factor
            count += 1
        part[at] = found
    return touched[:num_touched].copy(), part, count


@njit(cache=True)
def renumbered(number, count):
    """Numbers in the order of the first items that have them, and these items."""
    new = np.full(count, -1, dtype=np.int32)
    first = np.empty(count, dtype=np.int64)
    result = np.empty_like(number)
    seen = 0
    for item in range(len(number)):
        old = number[item]
        if new[old] < 0:
            new[old] = seen
            first[seen] = item
            seen += 1
        result[item] = new[old]
    return result, first[:seen].copy()

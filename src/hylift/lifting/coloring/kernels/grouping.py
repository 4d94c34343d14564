"""Dense numbers for what is equal, through tables with open addressing."""

import numpy as np
from numba import njit

from hylift.lifting.coloring.kernels.hashing import factor_hash, mix

EMPTY = np.int32(-1)
START = 1024
"""First size of a table; it is doubled when it is half full, so that few groups stay in cache."""


@njit(cache=True)
def group_pairs(first, second):
    """int32 (item,): dense numbers of distinct pairs, in the order of their first items; and how
    many there are. second: 64 bits."""
    size = START
    table = np.full(size, EMPTY, dtype=np.int32)
    representative = np.empty(size // 2, dtype=np.int64)
    hashes = np.empty(size // 2, dtype=np.uint64)
    group = np.empty(len(first), dtype=np.int32)
    count = 0
    for item in range(len(first)):
        hashed = mix(mix(np.uint64(first[item])) + np.uint64(second[item]))
        place = hashed & np.uint64(size - 1)
        while True:
            found = table[place]
            if found == EMPTY:
                break
            if hashes[found] == hashed:
                other = representative[found]
                if first[other] == first[item] and second[other] == second[item]:
                    break
            place = (place + np.uint64(1)) & np.uint64(size - 1)
        if found == EMPTY:
            found = np.int32(count)
            table[place] = found
            representative[count] = item
            hashes[count] = hashed
            count += 1
            if count == size // 2:
                size, table, representative, hashes = grown(size, representative, hashes)
        group[item] = found
    return group, count


@njit(cache=True)
def grown(size, representative, hashes):
    """The table twice as large, with the same groups."""
    count = len(hashes)
    size *= 2
    table = np.full(size, EMPTY, dtype=np.int32)
    more_representative = np.empty(size // 2, dtype=np.int64)
    more_hashes = np.empty(size // 2, dtype=np.uint64)
    more_representative[:count] = representative
    more_hashes[:count] = hashes
    for group in range(count):
        place = hashes[group] & np.uint64(size - 1)
        while table[place] != EMPTY:
            place = (place + np.uint64(1)) & np.uint64(size - 1)
        table[place] = group
    return size, table, more_representative, more_hashes


@njit(cache=True)
def group_factors(slots, first, orbit, kind, color, seed, mask):
    """int32 (factor,): dense numbers of factors of one kind with the same colors, slot by slot or
    in exchangeable slots; and how many there are. Equality is exact, whatever the hashes."""
    size = START
    table = np.full(size, EMPTY, dtype=np.int32)
    representative = np.empty(size // 2, dtype=np.int64)
    hashes = np.empty(size // 2, dtype=np.uint64)
    group = np.empty(len(kind), dtype=np.int32)
    count = 0
    for factor in range(len(kind)):
        hashed = factor_hash(factor, slots, first, orbit, kind, color, seed) & mask
        place = hashed & np.uint64(size - 1)
        while True:
            found = table[place]
            if found == EMPTY:
                break
            if hashes[found] == hashed:
                other = representative[found]
                if same_factor(factor, other, slots, first, orbit, kind, color):
                    break
            place = (place + np.uint64(1)) & np.uint64(size - 1)
        if found == EMPTY:
            found = np.int32(count)
            table[place] = found
            representative[count] = factor
            hashes[count] = hashed
            count += 1
            if count == size // 2:
                size, table, representative, hashes = grown(size, representative, hashes)
        group[factor] = found
    return group, representative[:count].copy()


@njit(cache=True)
def same_factor(factor, other, slots, first, orbit, kind, color):
    """Whether two factors have one kind, and in each orbit the same colors equally often."""
    if kind[factor] != kind[other]:
        return False
    start, end, offset = first[factor], first[factor + 1], first[other]
    if first[other + 1] - offset != end - start:
        return False
    equal = True
    for edge in range(start, end):
        twin = offset + edge - start
        if orbit[edge] != orbit[twin] or color[slots[edge]] != color[slots[twin]]:
            equal = False
            break
    if equal:
        return True
    for edge in range(start, end):
        place, wanted = orbit[edge], color[slots[edge]]
        surplus = 0
        for k in range(end - start):
            mine, theirs = start + k, offset + k
            surplus += orbit[mine] == place and color[slots[mine]] == wanted
            surplus -= orbit[theirs] == place and color[slots[theirs]] == wanted
        if surplus != 0:
            return False
    return True


@njit(cache=True)
def first_members(group, count):
    """int64 (group,): the first item of each group, for groups numbered in that order."""
    first = np.empty(count, dtype=np.int64)
    seen = 0
    for item in range(len(group)):
        if group[item] == seen:
            first[seen] = item
            seen += 1
    return first

"""Dense numbers for what is equal, through tables with open addressing."""

import numpy as np
from numba import njit

from hylift.lifting.kernels.hashing import mix

EMPTY = np.int32(-1)
ONE = np.uint64(1)
START = 1024
"""First size of a table; doubled when half full, so that few groups stay in cache."""


@njit(cache=True)
def group_pairs(first, second):
    """int32 (item,): dense numbers of distinct pairs, in the order of their first items; and how
    many there are. first: small numbers, none negative; second: 64 bits."""
    often = occurrences(first)
    table, leader, hashes = new_table(0)
    group = np.empty(len(first), dtype=np.int32)
    done, count, full = 0, 0, 0
    while True:
        done, count, full = _number_pairs(
            first, second, often, group, done, count, full, table, leader, hashes
        )
        if done == len(first):
            return group, count
        table, leader, hashes = grown(leader, hashes)


@njit(cache=True)
def occurrences(number):
    """int32: how often each number occurs."""
    largest = -1
    for item in range(len(number)):
        largest = max(largest, number[item])
    often = np.zeros(largest + 1, dtype=np.int32)
    for item in range(len(number)):
        often[number[item]] += 1
    return often


@njit(cache=True)
def _number_pairs(first, second, often, group, done, count, full, table, leader, hashes):
    """Numbers items until the table is half full; returns how many are done, the number of groups,
    and of those in the table: an item whose `first` no other has needs no place there.

    Apart from the loop that grows the table: arrays that may change are slow in a loop.
    """
    last = np.uint64(len(table) - 1)
    for item in range(done, len(first)):
        if often[first[item]] == 1:
            group[item] = count
            count += 1
            continue
        hashed = mix(mix(np.uint64(first[item])) + np.uint64(second[item]))
        place = hashed & last
        found = table[place]
        while found != EMPTY:
            if hashes[found] == hashed:
                other = leader[found]
                if first[other] == first[item] and second[other] == second[item]:
                    break
            place = (place + ONE) & last
            found = table[place]
        if found == EMPTY:
            if full == len(leader):
                return item, count, full
            table[place] = full
            leader[full] = item
            hashes[full] = hashed
            full += 1
            group[item] = count
            count += 1
        else:
            group[item] = group[leader[found]]
    return len(first), count, full


@njit(cache=True)
def new_table(expected):
    """Places of groups by hash; the first item and the hash of each group."""
    size = START
    while size < 2 * expected:
        size *= 2
    table = np.full(size, EMPTY, dtype=np.int32)
    return table, np.empty(size // 2, dtype=np.int64), np.empty(size // 2, dtype=np.uint64)


@njit(cache=True)
def grown(leader, hashes):
    """A full table twice as large, with the same groups."""
    count = len(hashes)
    table = np.full(4 * count, EMPTY, dtype=np.int32)
    last = np.uint64(4 * count - 1)
    for group in range(count):
        place = hashes[group] & last
        while table[place] != EMPTY:
            place = (place + ONE) & last
        table[place] = group
    more_leader = np.empty(2 * count, dtype=np.int64)
    more_hashes = np.empty(2 * count, dtype=np.uint64)
    more_leader[:count] = leader
    more_hashes[:count] = hashes
    return table, more_leader, more_hashes


@njit(cache=True)
def group_factors(slots, first, orbit, kind, color, signs, expected):
    """int32 (factor,): dense numbers of factors of one kind with the same colors, slot by slot or
    in exchangeable slots; and the first factor of each.

    signs: uint64 (factor,), equal for such factors; equality is exact, whatever else has the same
    sign. expected: about how many there will be.
    """
    table, leader, hashes = new_table(expected)
    group = np.empty(len(kind), dtype=np.int32)
    done, count = 0, 0
    while True:
        done, count = _number_factors(
            slots, first, orbit, kind, color, signs, group, done, count, table, leader, hashes
        )
        if done == len(kind):
            return group, leader[:count].copy()
        table, leader, hashes = grown(leader, hashes)


@njit(cache=True)
def _number_factors(
    slots, first, orbit, kind, color, signs, group, done, count, table, leader, hashes
):
    """Numbers factors until the table is half full; returns how many are done, and the groups.

    Factors of one kind have equally many slots.
    """
    last = np.uint64(len(table) - 1)
    for factor in range(done, len(kind)):
        hashed = signs[factor]
        place = hashed & last
        found = table[place]
        while found != EMPTY:
            if hashes[found] == hashed and kind[leader[found]] == kind[factor]:
                start, offset = first[factor], first[leader[found]]
                size = first[factor + 1] - start
                colors_differ, orbits_differ = 0, 0
                for slot in range(size):
                    colors_differ |= color[slots[start + slot]] ^ color[slots[offset + slot]]
                    orbits_differ |= orbit[start + slot] ^ orbit[offset + slot]
                if orbits_differ == 0 and (
                    colors_differ == 0 or same_multisets(start, offset, size, slots, orbit, color)
                ):
                    break
            place = (place + ONE) & last
            found = table[place]
        if found == EMPTY:
            if count == len(leader):
                return factor, count
            found = np.int32(count)
            table[place] = found
            leader[count] = factor
            hashes[count] = hashed
            count += 1
        group[factor] = found
    return len(kind), count


@njit(cache=True)
def same_multisets(start, offset, size, slots, orbit, color):
    """Whether two factors with the same orbits have in each the same colors equally often."""
    for slot in range(size):
        place, wanted = orbit[start + slot], color[slots[start + slot]]
        surplus = 0
        for k in range(size):
            if orbit[start + k] == place:
                surplus += color[slots[start + k]] == wanted
                surplus -= color[slots[offset + k]] == wanted
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

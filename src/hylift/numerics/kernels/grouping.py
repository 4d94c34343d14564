"""Equal items get dense numbers, by hash tables with open addressing; sums and lists by number."""

import numpy as np
from numba import njit

EMPTY = np.int32(-1)
ONE = np.uint64(1)
START = 1024
"""First size of a table; doubled when half full, so that few groups stay in cache."""

ODD_1 = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ / golden ratio
ODD_2 = np.uint64(0xB504F333F9DE6485)  # 2⁶⁴ / √2, odd
SHIFT_1, SHIFT_2 = np.uint64(32), np.uint64(29)


@njit(cache=True)
def mix(x):
    """A number whose bits all depend on all bits of x."""
    x = (x ^ (x >> SHIFT_1)) * ODD_1
    x = (x ^ (x >> SHIFT_2)) * ODD_2
    return x ^ (x >> SHIFT_1)


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
def first_members(group, count):
    """int64 (group,): the first item of each group, for groups numbered in that order."""
    first = np.empty(count, dtype=np.int64)
    seen = 0
    for item in range(len(group)):
        if group[item] == seen:
            first[seen] = item
            seen += 1
    return first


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


@njit(cache=True)
def members_by_class(color, num_classes):
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


@njit(cache=True)
def incidence(slots, first, num_variables):
    """Per variable the factors in whose slots it stands: start (variable + 1,), factor (edge,)."""
    start = np.zeros(num_variables + 1, dtype=np.int64)
    for edge in range(len(slots)):
        start[slots[edge] + 1] += 1
    for variable in range(num_variables):
        start[variable + 1] += start[variable]
    at = start[:-1].copy()
    factors = np.empty(len(slots), dtype=np.int32)
    for factor in range(len(first) - 1):
        for edge in range(first[factor], first[factor + 1]):
            place = at[slots[edge]]
            at[slots[edge]] = place + 1
            factors[place] = factor
    return start, factors


@njit(cache=True)
def class_sums(values, to_class, count):
    """float64 (class,): sums of the values of its members."""
    total = np.zeros(count)
    for member in range(len(values)):
        total[to_class[member]] += values[member]
    return total


@njit(cache=True)
def average_rows(flat, row, weight, target, leader, num_targets):
    """float64 (target, entry): weighted means of the rows that go to each target.

    row, weight, target: (factor,), a negative target is none. leader: (target,), one of its rows.
    Sums are of differences to that one, so that the mean of equal rows is the row itself; where one
    row has -inf the mean has it.
    """
    num_entries = flat.shape[1]
    mean = np.zeros((num_targets, num_entries))
    total = np.zeros(num_targets)
    for factor in range(len(row)):
        goal = target[factor]
        if goal < 0:
            continue
        total[goal] += weight[factor]
        for entry in range(num_entries):
            origin = flat[leader[goal], entry]
            if origin != -np.inf:
                mean[goal, entry] += weight[factor] * (flat[row[factor], entry] - origin)
    for goal in range(num_targets):
        for entry in range(num_entries):
            mean[goal, entry] = flat[leader[goal], entry] + mean[goal, entry] / total[goal]
    return mean


@njit(cache=True)
def snap_sorted(values, order, tolerance):
    """float64 (value,): the values, each replaced by the one of smallest size in its interval.

    order: sorts the values. Intervals reach from a value v to v (1 + tolerance), each beginning
    with the first value that the one before leaves out; so no two values in one differ by more.
    """
    snapped = np.empty_like(values)
    zero = np.searchsorted(values[order], 0.0)
    begin = 0.0
    for place in range(zero, len(values)):
        value = values[order[place]]
        if place == zero or value - begin > tolerance * begin:
            begin = value
        snapped[order[place]] = begin
    for place in range(zero - 1, -1, -1):
        value = values[order[place]]
        if place == zero - 1 or value - begin < tolerance * begin:
            begin = value
        snapped[order[place]] = begin
    return snapped

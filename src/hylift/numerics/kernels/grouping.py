"""Hash tables with open addressing that give equal items one number; loops over numbered items."""

import numpy as np
from numba import njit

EMPTY = np.int32(-1)
ONE = np.uint64(1)

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
def number_pairs(first, second, often, group, state, table, leader, hashes):
    """Number items by their pairs until all are done or the table is half full.

    often: zeros, in which the first call counts how often each `first` occurs; an item whose
    `first` no other has needs no place in the table. For the others see
    `numerics.grouping.number_items`.
    """
    if state[0] == 0:
        for item in range(len(first)):
            often[first[item]] += 1
    last = np.uint64(len(table) - 1)
    count, full = state[1], state[2]
    for item in range(state[0], len(first)):
        if often[first[item]] == 1:
            group[item] = count
            count += 1
            continue
        hashed = mix(mix(np.uint64(first[item])) + second[item])
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
                state[0], state[1], state[2] = item, count, full
                return
            table[place] = full
            leader[full] = item
            hashes[full] = hashed
            full += 1
            group[item] = count
            count += 1
        else:
            group[item] = group[leader[found]]
    state[0], state[1], state[2] = len(first), count, full


@njit(cache=True)
def enter(hashes, table):
    """Enter groups with these hashes into an empty table."""
    last = np.uint64(len(table) - 1)
    for group in range(len(hashes)):
        place = hashes[group] & last
        while table[place] != EMPTY:
            place = (place + ONE) & last
        table[place] = group


@njit(cache=True)
def count_numbers(number, often):
    """Add to `often` how often each number occurs."""
    for item in range(len(number)):
        often[number[item]] += 1


@njit(cache=True)
def renumber(number, new, first, result):
    """Write numbers in the order of the first items that have them, and these items.

    new: (number,), -1; first: (number,).
    """
    seen = 0
    for item in range(len(number)):
        old = number[item]
        if new[old] < 0:
            new[old] = seen
            first[seen] = item
            seen += 1
        result[item] = new[old]
    return seen


@njit(cache=True)
def sort_by_number(number, item, at, order):
    """Write items sorted by their numbers, a counting sort; at: (number,), where each begins."""
    for place in range(len(number)):
        spot = at[number[place]]
        at[number[place]] = spot + 1
        order[spot] = item[place]


@njit(cache=True)
def add_rows(flat, row, weight, target, leader, mean, total):
    """Write weighted means of rows (row, entry) per target; see `numerics.grouping.average_rows`.

    mean: (target, entry), zeros. total: (target,), zeros.
    """
    num_entries = flat.shape[1]
    for factor in range(len(row)):
        goal = target[factor]
        if goal < 0:
            continue
        total[goal] += weight[factor]
        for entry in range(num_entries):
            origin = flat[leader[goal], entry]
            if origin != -np.inf:
                mean[goal, entry] += weight[factor] * (flat[row[factor], entry] - origin)
    for goal in range(len(total)):
        for entry in range(num_entries):
            mean[goal, entry] = flat[leader[goal], entry] + mean[goal, entry] / total[goal]


@njit(cache=True)
def snap(values, tolerance):
    """Replace values that increase from 0, in place, by the smallest in their intervals.

    Intervals reach from a value v to v (1 + tolerance), each beginning with the first value that
    the one before leaves out; so no two values in one differ by more.
    """
    begin = 0.0
    for place in range(len(values)):
        if place == 0 or values[place] - begin > tolerance * begin:
            begin = values[place]
        values[place] = begin

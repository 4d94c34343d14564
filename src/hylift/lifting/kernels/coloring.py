"""Rounds of color passing over all factors by hashes, and a check that does not rely on them."""

import numpy as np
from numba import njit

from hylift.numerics.kernels.grouping import (
    EMPTY,
    ODD_1,
    ODD_2,
    ONE,
    grown,
    members_by_class,
    mix,
    new_table,
)

ORBIT_BITS = np.uint64(16)

PRIME = np.uint64((1 << 61) - 1)
LOW_32 = np.uint64((1 << 32) - 1)
LOW_29 = np.uint64((1 << 29) - 1)


@njit(cache=True)
def collect(slots, first, orbit, kind, weight, color, seed, mask):
    """uint64 (variable,): sum of the messages from its factors; uint64 (factor,): their hashes.

    weight: (factor,), or nothing where all are 1.
    """
    heard = np.zeros(len(color), dtype=np.uint64)
    hashes = np.empty(len(kind), dtype=np.uint64)
    weighted = len(weight) > 0
    for factor in range(len(kind)):
        hashed = factor_hash(factor, slots, first, orbit, kind, color, seed)
        hashes[factor] = hashed
        for edge in range(first[factor], first[factor + 1]):
            share = message(hashed, orbit[edge], mask)
            variable = slots[edge]
            if weighted:
                heard[variable] = add(heard[variable], share, weight[factor])
            else:
                heard[variable] += share
    return heard, hashes


@njit(cache=True)
def hash_factors(slots, first, orbit, kind, color):
    """uint64 (factor,): equal for factors of one kind with the same colors in their orbits."""
    hashes = np.empty(len(kind), dtype=np.uint64)
    for factor in range(len(kind)):
        hashes[factor] = factor_hash(factor, slots, first, orbit, kind, color, np.uint64(0))
    return hashes


@njit(cache=True)
def num_slots(flag, color, slots):
    """Number of slots with variables of flagged classes."""
    count = 0
    for edge in range(len(slots)):
        count += flag[color[slots[edge]]]
    return count


@njit(cache=True)
def moved(old, new, count):
    """bool (class,): whether a new class is not the largest part of its old one; the number of
    members of such classes."""
    size = np.zeros(count, dtype=np.int64)
    parent = np.empty(count, dtype=np.int32)
    for item in range(len(new)):
        size[new[item]] += 1
        parent[new[item]] = old[item]
    largest = np.full(count, -1, dtype=np.int32)  # an old class has a number below `count`
    for part in range(count):
        best = largest[parent[part]]
        if best < 0 or size[part] > size[best]:
            largest[parent[part]] = part
    flag = np.ones(count, dtype=np.bool_)
    total = len(new)
    for part in range(count):
        best = largest[part]
        if best >= 0:
            flag[best] = False
            total -= size[best]
    return flag, total


@njit(cache=True)
def factor_hash(factor, slots, first, orbit, kind, color, seed):
    """Hash of the kind and, per orbit, of the multiset of colors in its slots.

    Kinds and places start far apart, and far from 0, which `mix` leaves as it is.
    """
    total = mix(np.uint64(kind[factor]) + seed + ODD_1)
    for edge in range(first[factor], first[factor + 1]):
        place = np.uint64(color[slots[edge]]) << ORBIT_BITS | np.uint64(orbit[edge])
        total += mix((place ^ seed) + ODD_2)
    return mix(total)


@njit(cache=True)
def message(hashed, orbit, mask):
    """The message of a factor to the variable in a slot of this orbit."""
    return mix(hashed + np.uint64(orbit) * ODD_2) & mask


@njit(cache=True)
def times(a, b):
    """a * b modulo 2⁶¹ - 1, for a and b below it: sums keep all bits whatever the weights are."""
    a0, a1 = a & LOW_32, a >> np.uint64(32)
    b0, b1 = b & LOW_32, b >> np.uint64(32)
    low, middle, high = a0 * b0, a1 * b0 + a0 * b1, a1 * b1
    # 2⁶¹ = 1, so 2⁶⁴ = 8.
    total = (high << np.uint64(3)) + (middle >> np.uint64(29))
    total += ((middle & LOW_29) << np.uint64(32)) + (low >> np.uint64(61)) + (low & PRIME)
    return reduced(total)


@njit(cache=True)
def reduced(x):
    """x modulo 2⁶¹ - 1."""
    x = (x & PRIME) + (x >> np.uint64(61))
    return x - PRIME if x >= PRIME else x


@njit(cache=True)
def add(total, share, weight):
    """A sum of hashes with one more, counted `weight` times."""
    return reduced(total + times(reduced(share), reduced(np.uint64(weight))))


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
def split_unlike(slots, first, orbit, weight, color, num_classes, factor_class, base, code):
    """Moves variables, in place, to new classes if they differ from their class's first member in
    the weight of a class of factors and orbit; returns the number of classes.

    base: (factor class + 1,), offset of its orbits. code: room for one number per edge. All that
    differ from the first member of a class share one new class: equal ones are never separated.
    """
    order, begin = members_by_class(color, num_classes)
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

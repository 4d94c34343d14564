"""Rounds of color passing over all factors by hashes, and a check that does not rely on them."""

import numpy as np
from numba import njit

from hylift.numerics.kernels.grouping import EMPTY, ODD_1, ODD_2, ONE, mix

ORBIT_BITS = np.uint64(16)

PRIME = np.uint64((1 << 61) - 1)
LOW_32 = np.uint64((1 << 32) - 1)
LOW_29 = np.uint64((1 << 29) - 1)


@njit(cache=True)
def pass_colors(slots, first, orbit, kind, weight, color, seed, mask, heard, signs):
    """Add to `heard`, (variable,), the messages from the factors of each variable, and write the
    hashes of factors to `signs`.

    weight: (edge,), or nothing where all are 1.
    """
    weighted = len(weight) > 0
    for factor in range(len(kind)):
        hashed = factor_hash(factor, slots, first, orbit, kind, color, seed)
        signs[factor] = hashed
        for edge in range(first[factor], first[factor + 1]):
            share = mix(hashed + np.uint64(orbit[edge]) * ODD_2) & mask
            variable = slots[edge]
            if weighted:
                heard[variable] = add(heard[variable], share, weight[edge])
            else:
                heard[variable] += share


@njit(cache=True)
def hash_factors(slots, first, orbit, kind, color, signs):
    """Write the hashes of factors, equal for those of one kind with the same colors in orbits."""
    for factor in range(len(kind)):
        signs[factor] = factor_hash(factor, slots, first, orbit, kind, color, np.uint64(0))


@njit(cache=True)
def find_largest(old, new, size, parent, largest):
    """Write the class of which each new class is part, and the largest part of each old class.

    size, parent: (new class,), zeros. largest: (new class,), -1; an old class has a lower number.
    """
    for item in range(len(new)):
        size[new[item]] += 1
        parent[new[item]] = old[item]
    for part in range(len(size)):
        best = largest[parent[part]]
        if best < 0 or size[part] > size[best]:
            largest[parent[part]] = part


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
def number_factors(slots, first, orbit, kind, color, signs, group, state, table, leader, hashes):
    """Number factors of one kind with the same colors, slot by slot or in exchangeable slots, until
    all are done or the table is half full; see `numerics.grouping.number_items`.

    signs: (factor,), hashes; equality is exact, whatever else has the same hash. Factors of one
    kind have equally many slots.
    """
    last = np.uint64(len(table) - 1)
    count = state[1]
    for factor in range(state[0], len(kind)):
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
                state[0], state[1], state[2] = factor, count, count
                return
            found = np.int32(count)
            table[place] = found
            leader[count] = factor
            hashes[count] = hashed
            count += 1
        group[factor] = found
    state[0], state[1], state[2] = len(kind), count, count


@njit(cache=True)
def same_multisets(start, offset, size, slots, orbit, color):
    """True if two factors with the same orbits have in each the same colors equally often."""
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
def split_unlike(color, order, begin, start, code, share, wanted, found):
    """Move variables, in place, to new classes if they differ from their class's first member in
    the weight of a class of factors and orbit; return the number of classes.

    order, begin: variables by class. start, code, share: see `edge_codes`. wanted, found: (code,),
    zeros. All that differ from the first member of a class share one new class: equal ones are
    never separated.
    """
    weighted = len(share) > 0
    num_classes = len(begin) - 1
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
def edge_codes(slots, first, orbit, weight, factor_class, base, alone, at, code, share):
    """Write the class of factors and orbit of each slot, variable after variable, as a code, and
    its weight; without variables that are alone in their class.

    at: (variable,), where the codes of each begin. weight, share: empty where all weights are 1.
    """
    for factor in range(len(factor_class)):
        for edge in range(first[factor], first[factor + 1]):
            variable = slots[edge]
            if alone[variable]:
                continue
            place = at[variable]
            at[variable] = place + 1
            code[place] = base[factor_class[factor]] + orbit[edge]
            if len(weight):
                share[place] = weight[edge]

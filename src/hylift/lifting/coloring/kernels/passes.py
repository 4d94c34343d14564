"""One round of color passing over all factors."""

import numpy as np
from numba import njit

from hylift.lifting.kernels.hashing import add, factor_hash, message


@njit(cache=True)
def collect(slots, first, orbit, kind, weight, color, seed, mask):
    """uint64 (variable,): sum of what each variable hears from its factors; uint64 (factor,): their
    hashes.

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
    """Slots of variables of flagged classes."""
    count = 0
    for edge in range(len(slots)):
        count += flag[color[slots[edge]]]
    return count


@njit(cache=True)
def moved(old, new, count):
    """bool (class,): whether a new class is not the largest part of its old one; how many members
    such classes have."""
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

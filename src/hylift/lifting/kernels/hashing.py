"""Hashes of 64 bits that may be added in any order."""

import numpy as np
from numba import njit

ODD_1 = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ / golden ratio
ODD_2 = np.uint64(0xB504F333F9DE6485)  # 2⁶⁴ / √2, odd
SHIFT_1, SHIFT_2 = np.uint64(32), np.uint64(29)
ORBIT_BITS = np.uint64(16)

PRIME = np.uint64((1 << 61) - 1)
LOW_32 = np.uint64((1 << 32) - 1)
LOW_29 = np.uint64((1 << 29) - 1)


@njit(cache=True)
def mix(x):
    """A number whose bits all depend on all bits of x."""
    x = (x ^ (x >> SHIFT_1)) * ODD_1
    x = (x ^ (x >> SHIFT_2)) * ODD_2
    return x ^ (x >> SHIFT_1)


@njit(cache=True)
def factor_hash(factor, slots, first, orbit, kind, color, seed):
    """Of the kind, and per orbit of the multiset of colors in its slots.

    Kinds and places start far apart, and far from 0, which `mix` leaves as it is.
    """
    total = mix(np.uint64(kind[factor]) + seed + ODD_1)
    for edge in range(first[factor], first[factor + 1]):
        place = np.uint64(color[slots[edge]]) << ORBIT_BITS | np.uint64(orbit[edge])
        total += mix((place ^ seed) + ODD_2)
    return mix(total)


@njit(cache=True)
def message(hashed, orbit, mask):
    """What a factor adds to the variable in a slot of this orbit."""
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

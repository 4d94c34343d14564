"""Random numbers whose generator lives in an array, so that threads make no difference.

SplitMix64 (Steele, Lea & Flood 2014); random: (1,), its state.
"""

import numpy as np
from numba import njit

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)
S11, S27, S30, S31, S32 = (np.uint64(shift) for shift in (11, 27, 30, 31, 32))

inner = njit(cache=True, nogil=True, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)


@inner
def _bits(random):
    """64 random bits."""
    random[0] += GOLDEN
    z = random[0]
    z = (z ^ (z >> S30)) * FIRST
    z = (z ^ (z >> S27)) * SECOND
    return z ^ (z >> S31)


@inner
def below(random, size):
    """An integer from 0 to size - 1; size is less than 2³²."""
    return np.int64(((_bits(random) >> S32) * np.uint64(size)) >> S32)


@inner
def uniform(random):
    """A number from 0 to 1, 1 excluded."""
    return np.float64(_bits(random) >> S11) * 2.0**-53


@inner
def normal(random):
    """A standard normal number (Box & Muller 1958)."""
    radius = np.sqrt(-2.0 * np.log(1.0 - uniform(random)))
    return radius * np.cos(2.0 * np.pi * uniform(random))


@inner
def exponential(random):
    """A number with the density exp(-x)."""
    return -np.log(1.0 - uniform(random))

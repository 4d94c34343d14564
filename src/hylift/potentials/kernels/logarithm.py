"""Logarithms of many numbers, in operations that a processor does on several of them at once."""

import math

import numpy as np
from numba import njit

LOG_TWO = math.log(2.0)
ROOT_HALF = np.float64(math.sqrt(0.5)).view(np.uint64)
ONE = np.float64(1.0).view(np.uint64)
WIDTH = np.uint64(52)
"""Bits of a fraction; above them stands the exponent."""
FRACTION = np.uint64((1 << 52) - 1)
INTEGER = np.float64(2.0**52).view(np.uint64)
"""With a small integer in place of its fraction, this is 2^52 more than that integer."""
SHIFT = 2.0**52 + 1023.0
"""What an exponent is kept above itself, on top of 2^52."""


@njit(cache=True, nogil=True, error_model="numpy")
def take_logs(values, count):
    """Replaces the first `count` values, none of them less than 1e-307, by their logarithms; exact
    to about one rounding. What is no finite number becomes NaN."""
    for place in range(count):
        # value = 2^exponent m, with m from √½ to √2; log m = 2 artanh s, a series in s².
        value = values[place]
        bits = np.float64(value).view(np.uint64) + (ONE - ROOT_HALF)
        exponent = np.uint64((bits >> WIDTH) | INTEGER).view(np.float64) - SHIFT
        m = np.uint64((bits & FRACTION) + ROOT_HALF).view(np.float64)
        s = (m - 1.0) / (m + 1.0)
        z = s * s
        tail = 2 / 15 + z * (2 / 17 + z * (2 / 19 + z * (2 / 21)))
        tail = 2 / 7 + z * (2 / 9 + z * (2 / 11 + z * (2 / 13 + z * tail)))
        log = exponent * LOG_TWO + s * (2.0 + z * (2 / 3 + z * (2 / 5 + z * tail)))
        values[place] = log + (value - value)

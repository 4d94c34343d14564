"""Sums of many exponentials, several of which a processor takes at a time.

The exponential of the mathematical library takes one number at a time, five times longer.
"""

import numpy as np
from numba import njit

ROUNDING = 1.5 * 2.0**52
"""Added to a number, it leaves the nearest whole one in the last bits."""
PER_LOG_TWO = 1.0 / np.log(2.0)
LOG_TWO_HIGH = 6.93147180369123816490e-01
LOG_TWO_LOW = 1.90821492927058770002e-10
"""Both together are log 2; whole multiples of the first are exact."""
LEAST = -700.0
"""Below this all exponentials are the same, and nothing."""
ONE = np.int64(1023) << np.int64(52)
"""Bits of the number 1, less its digits."""


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "reassoc"})
def largest_of(values, size):
    """The largest of so many values; -inf of none."""
    top = -np.inf
    for k in range(size):
        if values[k] > top:
            top = values[k]
    return top


@njit(cache=True, nogil=True)
def sum_of_exponentials(values, size, less, power, rest):
    """Σ exp(values - less), for differences that are not large.

    With x = n log 2 + r, exp(x) is 2ⁿ times a polynomial in r, right to 1e-14. power, rest: room.
    """
    _split(values, size, less, power, rest)
    bits = power.view(np.int64)
    for k in range(size):
        bits[k] = (bits[k] << 52) + ONE
    return _dot(power, rest, size)


@njit(cache=True, nogil=True, fastmath={"contract"})
def _split(values, size, less, power, rest):
    """Writes n, in the last bits of a number, and the exponential of r."""
    for k in range(size):
        x = values[k] - less
        x = x if x > LEAST else LEAST
        n = x * PER_LOG_TWO + ROUNDING
        power[k] = n
        n -= ROUNDING
        r = (x - n * LOG_TWO_HIGH) - n * LOG_TWO_LOW
        e = 1.0 + r * (1 / 11)
        e = 1.0 + r * (1 / 10) * e
        e = 1.0 + r * (1 / 9) * e
        e = 1.0 + r * (1 / 8) * e
        e = 1.0 + r * (1 / 7) * e
        e = 1.0 + r * (1 / 6) * e
        e = 1.0 + r * (1 / 5) * e
        e = 1.0 + r * (1 / 4) * e
        e = 1.0 + r * (1 / 3) * e
        e = 1.0 + r * (1 / 2) * e
        rest[k] = 1.0 + r * e


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _dot(first, second, size):
    total = 0.0
    for k in range(size):
        total += first[k] * second[k]
    return total

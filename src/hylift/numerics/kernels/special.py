"""Logarithms and exponentials of many numbers, and the gamma family for positive arguments."""

import math

import numpy as np
from numba import njit

LARGE = 10.0
"""From here on eight terms of an asymptotic series are exact to rounding."""

HALF_LOG_TWO_PI = 0.91893853320467274178

ROOT = (1569415565 / 2**30, 381566830 / 2**60, 9.016312093258696e-20)
"""The zero of digamma, in parts: their sum has more digits than one number holds."""

LOG_TWO = math.log(2.0)
ROOT_HALF = np.float64(math.sqrt(0.5)).view(np.uint64)
ONE = np.float64(1.0).view(np.uint64)
WIDTH = np.uint64(52)
"""Bits of a fraction; above them stands the exponent."""
FRACTION = np.uint64((1 << 52) - 1)
INTEGER = np.float64(2.0**52).view(np.uint64)
"""With a small integer in place of its fraction, this is 2^52 more than that integer."""
SHIFT = 2.0**52 + 1023.0
"""Offset of a stored exponent, on top of 2^52."""


@njit(cache=True, nogil=True, error_model="numpy")
def digamma(x):
    """ψ(x), the derivative of log Γ, for x > 0; relative accuracy holds at its zero too."""
    if x >= LARGE:
        z = 1.0 / (x * x)
        series = 691 / 32760 - z * (1 / 12 - z * (3617 / 8160))
        series = 1 / 252 - z * (1 / 240 - z * (1 / 132 - z * series))
        return math.log(x) - 0.5 / x - z * (1 / 12 - z * (1 / 120 - z * series))
    shift = 0.0
    if x < 1.0:
        shift = -1.0 / x
        x += 1.0
    while x > 2.0:
        x -= 1.0
        shift += 1.0 / x
    # Rational minimax approximation of ψ(x) / (x - zero) on [1, 2], as in the Boost library.
    t = x - 1.0
    p = -0.045251321448739056 - 0.0020713321167745952 * t
    p = -0.65031853770896507 + t * (-0.28919126444774784 + t * p)
    p = 0.25479851061131551 + t * (-0.32555031186804491 + t * p)
    q = 0.0021284987017821144 - 0.55789841321675513e-6 * t
    q = 0.43593529692665969 + t * (0.054151797245674225 + t * q)
    q = 1.0 + t * (2.0767117023730469 + t * (1.4606242909763515 + t * q))
    distance = ((x - ROOT[0]) - ROOT[1]) - ROOT[2]
    return shift + distance * (0.99558162689208984 + p / q)


@njit(cache=True, nogil=True, error_model="numpy")
def trigamma(x):
    """ψ'(x), the second derivative of log Γ, for x > 0."""
    shift = 0.0
    while x < LARGE:
        shift += 1.0 / (x * x)
        x += 1.0
    z = 1.0 / (x * x)
    series = 5 / 66 - z * (691 / 2730 - z * (7 / 6 - z * (3617 / 510)))
    series = 1 / 6 - z * (1 / 30 - z * (1 / 42 - z * (1 / 30 - z * series)))
    return shift + 1.0 / x + z * (0.5 + series / x)


@njit(cache=True, nogil=True, error_model="numpy")
def log_beta(a, b):
    """log B(a, b) = log Γ(a) + log Γ(b) - log Γ(a + b), for a, b > 0.

    The logarithms of Γ are never formed: where arguments are large, most of their digits cancel.
    """
    low, high = min(a, b), max(a, b)
    # B(x, y) = B(x + 1, y) (x + y) / x
    total, numerator, denominator = low + high, 1.0, 1.0
    while low < LARGE:
        numerator *= total
        denominator *= low
        low += 1.0
        total += 1.0
    while high < LARGE:
        numerator *= total
        denominator *= high
        high += 1.0
        total += 1.0
    tails = _stirling_tail(low) + _stirling_tail(high) - _stirling_tail(total)
    powers = (low - 0.5) * math.log(low / total) - high * math.log1p(low / high)
    moved = math.log(numerator / (denominator * math.sqrt(high)))
    return moved + powers + HALF_LOG_TWO_PI + tails


@njit(cache=True, nogil=True, error_model="numpy")
def _stirling_tail(x):
    """log Γ(x) minus Stirling's (x - ½) log x - x + ½ log 2π."""
    z = 1.0 / (x * x)
    series = 1 / 1260 - z * (1 / 1680 - z * (1 / 1188 - z * (691 / 360360 - z / 156)))
    return (1 / 12 - z * (1 / 360 - z * series)) / x


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


ROUNDING = 1.5 * 2.0**52
"""Added to a number, it leaves the nearest whole one in the last bits."""
PER_LOG_TWO = 1.0 / np.log(2.0)
LOG_TWO_HIGH = 6.93147180369123816490e-01
LOG_TWO_LOW = 1.90821492927058770002e-10
"""Both together are log 2; whole multiples of the first are exact."""
LEAST = -700.0
"""Below this all exponentials are the same, and nothing."""
BITS_OF_ONE = np.int64(1023) << np.int64(52)
"""Bits of the number 1, less its digits."""

IMPROBABLE = -150.0
"""Log-probability, relative to the largest, of what counts as 0."""
FEW = 16
"""Values for which the library's exponentials are faster than many at a time."""


@njit(cache=True, nogil=True)
def take_exponentials(values, top):
    """Replaces values by exp(value - top), no value being above the top, or by 0 where it is
    `IMPROBABLE`; returns their sum. Exact to about one rounding."""
    total = 0.0
    if len(values) < FEW:
        for k in range(len(values)):
            x = values[k] - top
            values[k] = np.exp(x) if x > IMPROBABLE else 0.0
            total += values[k]
        return total
    for k in range(len(values)):
        # exp(x) = 2ⁿ exp(r), with |r| ≤ ½ log 2
        x = values[k] - top
        inside = x if x > IMPROBABLE else IMPROBABLE
        n = inside * PER_LOG_TWO + ROUNDING
        bits = (np.float64(n).view(np.int64) << np.int64(52)) + BITS_OF_ONE
        n -= ROUNDING
        r = (inside - n * LOG_TWO_HIGH) - n * LOG_TWO_LOW
        tail = 1 / 39916800 + r * (1 / 479001600 + r * (1 / 6227020800))
        tail = 1 / 5040 + r * (1 / 40320 + r * (1 / 362880 + r * (1 / 3628800 + r * tail)))
        tail = 1 / 6 + r * (1 / 24 + r * (1 / 120 + r * (1 / 720 + r * tail)))
        power = np.int64(bits).view(np.float64) * (1.0 + r * (1.0 + r * (0.5 + r * tail)))
        values[k] = power if x > IMPROBABLE else 0.0
    for k in range(len(values)):
        total += values[k]
    return total


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
        bits[k] = (bits[k] << 52) + BITS_OF_ONE
    return _sum_of_products(power, rest, size)


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
def _sum_of_products(first, second, size):
    total = 0.0
    for k in range(size):
        total += first[k] * second[k]
    return total

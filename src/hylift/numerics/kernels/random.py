"""Random numbers whose generator lives in an array, so that threads make no difference.

SplitMix64 (Steele, Lea & Flood 2014); random: (1,), its state.
"""

import numpy as np

from hylift.numerics.kernels import inner

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)
S11, S27, S30, S31, S32 = (np.uint64(shift) for shift in (11, 27, 30, 31, 32))


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
def normalise(weight, num_states):
    """Turns log-weights into probabilities."""
    top, total = -np.inf, 0.0
    for state in range(num_states):
        top = max(top, weight[state])
    for state in range(num_states):
        weight[state] = np.exp(weight[state] - top)
        total += weight[state]
    for state in range(num_states):
        weight[state] /= total


@inner
def categorical(weight, num_states, random):
    """Turns log-weights into probabilities, and draws a state with them."""
    normalise(weight, num_states)
    left, chosen = uniform(random), np.int64(-1)
    for state in range(num_states):
        if weight[state] > 0.0 and left >= 0.0:  # by rounding, something may be left at the end
            chosen = np.int64(state)
            left -= weight[state]
    return chosen


@inner
def normal(random):
    """A standard normal number (Box & Muller 1958)."""
    radius = np.sqrt(-2.0 * np.log(1.0 - uniform(random)))
    return radius * np.cos(2.0 * np.pi * uniform(random))


@inner
def exponential(random):
    """A number with the density exp(-x)."""
    return -np.log(1.0 - uniform(random))


FLAT = 1e-10
"""A curve that changes the log-density by no more than this within the bounds counts as none."""

NARROW = 1.5
"""Fall of the log-density up to which uniform proposals are good."""


@inner
def draw_between(random, curve, slope, low, high):
    """A draw with the density exp(curve x² + slope x) between bounds, up to a constant.

    NaN where that is no distribution.
    """
    if abs(curve) * (high - low) ** 2 <= FLAT:
        curve = 0.0
    if curve < 0.0:
        scale = 1.0 / np.sqrt(-2.0 * curve)
        middle = -0.5 * slope / curve
        if low == -np.inf and high == np.inf:
            return middle + scale * normal(random)
        a, b = (low - middle) / scale, (high - middle) / scale
        # Counted from the nearer bound, so that no digits are lost far from the middle.
        if a > 0.0:
            x = low + scale * _beyond(random, a, b)
        elif b < 0.0:
            x = high - scale * _beyond(random, -b, -a)
        else:
            x = middle + scale * _around_zero(random, a, b)
    elif np.isfinite(low) and np.isfinite(high):
        x = _convex(random, curve, slope, low, high)
    elif curve == 0.0 and slope < 0.0 and np.isfinite(low):
        x = low - exponential(random) / slope
    elif curve == 0.0 and slope > 0.0 and np.isfinite(high):
        x = high - exponential(random) / slope
    else:
        return np.nan
    return min(max(x, low), high)


@inner
def _around_zero(random, a, b):
    """Of a standard normal between a ≤ 0 and b ≥ 0."""
    while True:
        if b - a < NARROW:
            z = a + (b - a) * uniform(random)
            if uniform(random) < np.exp(-0.5 * z * z):
                return z
        else:
            z = normal(random)
            if a <= z <= b:
                return z


@inner
def _beyond(random, a, b):
    """Of a standard normal between a > 0 and b: how far beyond a it is."""
    width = b - a
    narrow = width * (a + 0.5 * width) < NARROW
    # The best exponential proposal (Robert 1995).
    rate = 0.5 * (a + np.sqrt(a * a + 4.0))
    while True:
        if narrow:
            step = width * uniform(random)
            if uniform(random) < np.exp(-step * (a + 0.5 * step)):
                return step
        else:
            step = exponential(random) / rate
            if step <= width and uniform(random) < np.exp(-0.5 * (a + step - rate) ** 2):
                return step


@inner
def _convex(random, curve, slope, low, high):
    """A draw where the log-density is convex or straight: it lies below its chords.

    Proposals come from the chords on either side of its least point, and at least about one half
    of them is taken.
    """
    least = high
    if curve > 0.0:
        least = min(max(-0.5 * slope / curve, low), high)
    # Log-values relative to `least`.
    left = curve * (low - least) ** 2 + (2.0 * curve * least + slope) * (low - least)
    right = curve * (high - least) ** 2 + (2.0 * curve * least + slope) * (high - least)
    top = max(left, right, 0.0)
    on_left = (least - low) * np.exp(max(left, 0.0) - top) * _share(abs(left))
    on_right = (high - least) * np.exp(max(right, 0.0) - top) * _share(abs(right))
    while True:
        if uniform(random) * (on_left + on_right) < on_left:
            start, end, rise = least, low, left
        else:
            start, end, rise = least, high, right
        # A share t of the way from `least` to the bound has density exp(rise t).
        u = uniform(random)
        t = u
        if rise > 0.0:
            t = 1.0 + np.log(u + (1.0 - u) * np.exp(-rise)) / rise
        elif rise < 0.0:
            t = np.log(u + (1.0 - u) * np.exp(rise)) / rise
        # Below the chord by curve · t (1 - t) · width².
        if uniform(random) < np.exp(-curve * t * (1.0 - t) * (end - start) ** 2):
            return start + t * (end - start)


@inner
def _share(rise):
    """∫₀¹ exp(-rise t) dt."""
    return 1.0 if rise < 1e-12 else -np.expm1(-rise) / rise

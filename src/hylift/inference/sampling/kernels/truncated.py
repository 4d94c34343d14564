"""Draws of one real from exp(curve x² + slope x) between two bounds."""

import numpy as np

from hylift.inference.sampling.kernels.inner import inner

FLAT = 1e-10
"""A curve that changes the log-density by no more than this within the bounds counts as none."""

NARROW = 1.5
"""Fall of the log-density up to which uniform proposals are good."""


@inner
def draw_between(rng, curve, slope, low, high):
    """A draw, or NaN where there is no distribution because nothing holds it."""
    if abs(curve) * (high - low) ** 2 <= FLAT:
        curve = 0.0
    if curve < 0.0:
        scale = 1.0 / np.sqrt(-2.0 * curve)
        middle = -0.5 * slope / curve
        if low == -np.inf and high == np.inf:
            return middle + scale * rng.standard_normal()
        a, b = (low - middle) / scale, (high - middle) / scale
        # Counted from the nearer bound, so that no digits are lost far from the middle.
        if a > 0.0:
            x = low + scale * _beyond(rng, a, b)
        elif b < 0.0:
            x = high - scale * _beyond(rng, -b, -a)
        else:
            x = middle + scale * _around_zero(rng, a, b)
    elif np.isfinite(low) and np.isfinite(high):
        x = _convex(rng, curve, slope, low, high)
    elif curve == 0.0 and slope < 0.0 and np.isfinite(low):
        x = low - _exponential(rng) / slope
    elif curve == 0.0 and slope > 0.0 and np.isfinite(high):
        x = high - _exponential(rng) / slope
    else:
        return np.nan
    return min(max(x, low), high)


@inner
def _around_zero(rng, a, b):
    """Of a standard normal between a ≤ 0 and b ≥ 0."""
    while True:
        if b - a < NARROW:
            z = a + (b - a) * rng.random()
            if rng.random() < np.exp(-0.5 * z * z):
                return z
        else:
            z = rng.standard_normal()
            if a <= z <= b:
                return z


@inner
def _beyond(rng, a, b):
    """Of a standard normal between a > 0 and b: how far beyond a it is."""
    width = b - a
    narrow = width * (a + 0.5 * width) < NARROW
    # The best exponential proposal (Robert 1995).
    rate = 0.5 * (a + np.sqrt(a * a + 4.0))
    while True:
        if narrow:
            step = width * rng.random()
            if rng.random() < np.exp(-step * (a + 0.5 * step)):
                return step
        else:
            step = _exponential(rng) / rate
            if step <= width and rng.random() < np.exp(-0.5 * (a + step - rate) ** 2):
                return step


@inner
def _convex(rng, curve, slope, low, high):
    """Where the log-density is convex or straight: it lies below its chords.

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
        if rng.random() * (on_left + on_right) < on_left:
            start, end, rise = least, low, left
        else:
            start, end, rise = least, high, right
        # A share t of the way from `least` to the bound has density exp(rise t).
        u = rng.random()
        t = u
        if rise > 0.0:
            t = 1.0 + np.log(u + (1.0 - u) * np.exp(-rise)) / rise
        elif rise < 0.0:
            t = np.log(u + (1.0 - u) * np.exp(rise)) / rise
        # Below the chord by curve · t (1 - t) · width².
        if rng.random() < np.exp(-curve * t * (1.0 - t) * (end - start) ** 2):
            return start + t * (end - start)


@inner
def _share(rise):
    """∫₀¹ exp(-rise t) dt."""
    return 1.0 if rise < 1e-12 else -np.expm1(-rise) / rise


@inner
def _exponential(rng):
    """Numba's own takes longer to compile than all else here."""
    return -np.log(1.0 - rng.random())

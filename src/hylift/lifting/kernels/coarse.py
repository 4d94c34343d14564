"""Coarse-to-fine lifting: intervals of sorted values, and sums of rows."""

import math

import numpy as np
from numba import njit


@njit(cache=True)
def moments(value, weight, distinct, begin, end):
    """Per interval [begin, end) of the sorted values: mean, variance, number of distinct values.

    Values are taken relative to the first and in units of about the range, so that neither a large
    offset nor a large range costs digits.
    """
    count = len(begin)
    mean, variance = np.empty(count), np.empty(count)
    num_distinct = np.empty(count, dtype=np.int64)
    for number in range(count):
        low, high = begin[number], end[number]
        lowest, unit = value[low], half_unit(value[low], value[high - 1])
        num_distinct[number] = distinct[high - 1] - distinct[low] + 1
        total, centre = weight_and_centre(value, weight, low, high, lowest, unit)
        first, second = 0.0, 0.0
        for place in range(low, high):
            away = relative(value[place], lowest, unit) - centre
            first += weight[place] * away
            second += weight[place] * away * away
        spread = max(second - first * first / total, 0.0) / total
        mean[number] = lowest + centre * unit + centre * unit
        variance[number] = 4 * (spread * unit * unit)
    return mean, variance, num_distinct


@njit(cache=True)
def best_cuts(value, weight, distinct, begin, end):
    """int64 (interval,): where to cut [begin, end) so that the weighted squared distances to the
    means of both sides are least; -1 where all values are equal.

    distinct: (value,), increasing: values with one number are not separated.
    """
    cuts = np.empty(len(begin), dtype=np.int64)
    for number in range(len(begin)):
        low, high = begin[number], end[number]
        lowest, unit = value[low], half_unit(value[low], value[high - 1])
        total, centre = weight_and_centre(value, weight, low, high, lowest, unit)
        first = 0.0
        for place in range(low, high):
            first += weight[place] * (relative(value[place], lowest, unit) - centre)
        left, left_first = 0.0, 0.0
        best, cut = -1.0, -1
        for place in range(low, high):
            if place > low and distinct[place] != distinct[place - 1]:
                # Squared distances fall by W₁W₂/W (m₁ - m₂)² = (S₁ - S W₁/W)² W / (W₁W₂).
                apart = left_first - first * left / total
                right = max(total - left, weight[high - 1])  # the difference may round to 0
                fall = apart * apart / left / right
                if fall > best:
                    best, cut = fall, place
            left += weight[place]
            left_first += weight[place] * (relative(value[place], lowest, unit) - centre)
        cuts[number] = cut
    return cuts


@njit(cache=True)
def weight_and_centre(value, weight, low, high, lowest, unit):
    """The weight of an interval, and its mean relative to the lowest value."""
    total, first = 0.0, 0.0
    for place in range(low, high):
        total += weight[place]
        first += weight[place] * relative(value[place], lowest, unit)
    return total, first / total


@njit(cache=True)
def half_unit(lowest, highest):
    """A power of two that is at most half the range; halves, so that no range is too large."""
    return math.ldexp(1.0, math.frexp(highest / 2 - lowest / 2)[1] - 1)


@njit(cache=True, inline="always")
def relative(value, lowest, unit):
    """The distance from the lowest value, in units."""
    return (value / 2 - lowest / 2) / unit


@njit(cache=True)
def add_rows(total, begin, width, weight, rows):
    """Adds weight[i] * rows[i] to the stretch of `total` at begin[i], as far as its width reaches.

    rows: (item, entry). begin: (item,), negative for items that are left out.
    """
    for item in range(len(begin)):
        if begin[item] >= 0:
            for entry in range(min(width[item], rows.shape[1])):
                total[begin[item] + entry] += weight[item] * rows[item, entry]

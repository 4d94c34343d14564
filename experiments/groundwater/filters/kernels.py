"""Kalman filters of the levels of wells, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from experiments.groundwater.model import MONTHS_OF_YEAR

NUM_SHARED = 1 + MONTHS_OF_YEAR
"""The trend and the season, which are the first of the state."""


@njit(cache=True, nogil=True)
def filter_cluster(month, well, value, a, q, r, b, s, v, mean, var, error, spread):
    """Writes what wells that share a trend and a season are predicted to measure.

    `month`, `well`, `value`: (measurement,), in the order of months. `a`, `q`, `r`: (well,).
    `mean`, `var`: of a measurement, given those of earlier months. `error`, `spread`: how far it is
    from its mean, and its variance, given also those that come before it in its own month.
    """
    last = np.empty(len(a), np.int64)  # (well,): its last measurement
    for k in range(len(well)):
        last[well[k]] = k
    # A well is in the state only from its first measurement to its last.
    place, owner = np.full(len(a), -1), np.empty(NUM_SHARED + len(a), np.int64)
    left, var0, state = np.ones(len(owner)), np.full(len(owner), v), np.zeros(len(owner))
    left[0], var0[0] = b, s / (1 - b * b)
    cov = np.diag(var0)  # only its lower half is kept
    gain = np.empty((len(a), len(owner)))  # (measurement of a month, of the state), by deviation
    size, begin = NUM_SHARED, 0
    while begin < len(month):
        now, end = month[begin], begin + 1
        while end < len(month) and month[end] == now:
            end += 1
        if begin > 0:  # all are as at the start until then
            _pass_time(left[:size] ** (now - month[begin - 1]), var0, state, cov)
        season = 1 + now % MONTHS_OF_YEAR
        for k in range(begin, end):
            w = well[k]
            if place[w] < 0:
                place[w], owner[size] = size, w
                left[size], var0[size], state[size] = a[w], q[w] / (1 - a[w] * a[w]), 0.0
                cov[size, :size], cov[size, size] = 0.0, var0[size]
                size += 1
        for k in range(begin, end):
            at = place[well[k]]
            mean[k] = state[at] + state[0] + state[season]
            twice = cov[at, 0] + cov[at, season] + cov[season, 0]
            var[k] = cov[at, at] + cov[0, 0] + cov[season, season] + 2 * twice + r[well[k]]
        _read(well, value, r, begin, end, place, season, size, state, cov, gain, error, spread)
        for k in range(begin, end):
            if last[well[k]] == k:
                size -= 1
                at, moved = place[well[k]], owner[size]
                _move(size, at, left, var0, state, cov)
                place[moved], owner[at] = at, moved
        begin = end


@njit(cache=True, nogil=True)
def _read(well, value, r, begin, end, place, season, size, state, cov, gain, error, spread):
    """Learns from the measurements of a month, one after another."""
    for k in range(begin, end):
        at, row = place[well[k]], gain[k - begin]
        _tell(cov, gain, k - begin, at, season, size, row)
        spread[k] = row[at] + row[0] + row[season] + r[well[k]]
        error[k] = value[k] - state[at] - state[0] - state[season]
        root = np.sqrt(spread[k])
        for i in range(size):
            row[i] /= root
            state[i] += row[i] * error[k] / root
    for i in range(size):  # while a row is in the cache
        for k in range(end - begin):
            scale = gain[k, i]
            for j in range(i + 1):
                cov[i, j] -= scale * gain[k, j]


@njit(cache=True, nogil=True)
def _pass_time(decay, var0, state, cov):
    """Takes the state on to a later month; decay: (state,), what is left of it then."""
    for i in range(len(decay)):
        state[i] *= decay[i]
        scale = decay[i]
        for j in range(i + 1):
            cov[i, j] *= scale * decay[j]
        cov[i, i] += var0[i] * (1 - decay[i] * decay[i])


@njit(cache=True, nogil=True)
def _tell(cov, earlier, num_earlier, at, season, size, row):
    """Writes the covariance of the state and a measurement, after the month's earlier ones.

    `earlier`: (measurement, of the state), such covariances, each by its standard deviation.
    """
    for i in range(season):
        row[i] = cov[i, 0] + cov[season, i] + cov[at, i]
    for i in range(season, at):
        row[i] = cov[i, 0] + cov[i, season] + cov[at, i]
    for i in range(at, size):
        row[i] = cov[i, 0] + cov[i, season] + cov[i, at]
    for k in range(num_earlier):
        known = earlier[k, at] + earlier[k, 0] + earlier[k, season]
        for i in range(size):
            row[i] -= known * earlier[k, i]


@njit(cache=True, nogil=True)
def _move(source, target, left, var0, state, cov):
    """Moves the last of the state to another's place."""
    left[target], var0[target], state[target] = left[source], var0[source], state[source]
    for i in range(target):
        cov[target, i] = cov[source, i]
    for i in range(target + 1, source):
        cov[i, target] = cov[source, i]
    cov[target, target] = cov[source, source]


@njit(cache=True, nogil=True)
def filter_wells(month, value, first, a, q, r, mean, var):
    """Writes what wells on their own are predicted to measure.

    `month`, `value`: (measurement,), well by well. `first`: (well + 1,), where a well's begin.
    """
    for w in range(len(first) - 1):
        stationary = q[w] / (1 - a[w] * a[w])
        state, spread = 0.0, stationary
        for k in range(first[w], first[w + 1]):
            if k > first[w]:
                decay = a[w] ** (month[k] - month[k - 1])
                state *= decay
                spread = stationary + decay * decay * (spread - stationary)
            mean[k], var[k] = state, spread + r[w]
            share = spread / var[k]
            state += share * (value[k] - mean[k])
            spread -= share * spread

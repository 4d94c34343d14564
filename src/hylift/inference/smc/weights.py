"""Weights of particles: steps of temperature that keep them even, and resampling."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hylift.inference.smc.kernels.temper import KEPT

FloatArray = NDArray[np.float64]

LEAST_STEP, HALVINGS = 1e-12, 40
"""Of a change of temperature, relative to what is left; and the tries to find it."""


def next_step(energy: FloatArray, most: FloatArray) -> FloatArray:
    """(part,): the largest step, up to `most`, that leaves enough effective particles on average
    over groups; energy: (group, particle, part)."""
    step, some = most.copy(), np.flatnonzero(most > 0.0)
    own, low, high = energy[..., some], LEAST_STEP * most[some], most[some].copy()
    is_whole = _effective(own, high) >= KEPT
    for _ in range(HALVINGS):
        middle = np.sqrt(low * high)
        is_enough = _effective(own, middle) >= KEPT
        low, high = np.where(is_enough, middle, low), np.where(is_enough, high, middle)
    step[some] = np.where(is_whole, most[some], low)
    return step


def _effective(energy: FloatArray, step: FloatArray) -> FloatArray:
    """(part,): the effective share of particles with weights exp(step · energy), over groups."""
    weight = step * energy
    weight = np.exp(weight - weight.max(axis=1, keepdims=True))
    squares = (weight**2).sum(axis=1)
    return np.asarray((weight.sum(axis=1) ** 2 / (energy.shape[1] * squares)).mean(axis=0))


def ancestors(
    weights: FloatArray, is_due: NDArray[np.bool_], mark: FloatArray
) -> NDArray[np.int64]:
    """(group, particle, part): the particle of which each is a copy, by systematic resampling of
    each group in each part where that is due: (group, part).

    weights: (group, particle, part); mark: (group, 1, part), random between 0 and 1. Particles that
    stay keep their places.
    """
    groups, count, num_parts = weights.shape
    ends = np.minimum(np.floor(np.cumsum(weights, axis=1) * count + mark), count)
    ends[:, -1] = count
    copies = np.diff(ends, axis=1, prepend=0.0).astype(np.int64)
    order = np.argsort(copies > 0, axis=1, kind="stable")  # those without offspring first
    spare = np.maximum(copies - 1, 0)
    place = np.cumsum(spare, axis=1) - spare
    source = np.tile(np.arange(count)[:, None], (groups, 1, num_parts))
    group, own, part = np.nonzero(spare * is_due[:, None])
    times = spare[group, own, part]
    first = np.repeat(np.cumsum(times) - times, times)
    at = np.repeat(place[group, own, part], times) + np.arange(len(first)) - first
    group, own, part = (np.repeat(one, times) for one in (group, own, part))
    source[group, order[group, at, part], part] = own
    return source

"""Parameters by maximum likelihood, of clusters and of wells on their own.

Parameters are searched in coordinates of their own, called free here: what is left after a month
by its logit, variances by their logarithm.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from experiments.groundwater.filters.kernels import filter_cluster, filter_wells
from experiments.groundwater.filters.predictions import Measurements, Predictions, density_of
from experiments.groundwater.filters.search import ROUGH, highest
from experiments.groundwater.model import FloatArray, Parameters

LEAST_LEFT, MOST_LEFT = 0.5, 0.9999
"""Of a level or a trend, after a month."""
LEFT_BOX, VAR_BOX = (-6.0, 9.0), (-8.0, 6.0)
ALONE_BOX = (LEFT_BOX, VAR_BOX, VAR_BOX)
"""Of a, q and r."""
TOGETHER_BOX = (*ALONE_BOX, LEFT_BOX, VAR_BOX, VAR_BOX)
"""Of a, q, r, b, s and v."""

START = (3.0, 0.0, 0.0)
TREND_STARTS = (3.0, 0.0)
"""Of b: a trend that lasts for a year or so, and one that is gone after a few months. Each may lead
to a maximum that the other misses."""


def parameters(wells: FloatArray, common: FloatArray) -> Parameters:
    """From free ones of wells, (well, 3), and of what they share, (3,)."""
    return Parameters(*_of_wells(wells), float(_left(common[0])), *map(float, np.exp(common[1:])))


def together(measurements: Measurements, parameters: Parameters) -> Predictions:
    """Predictions of wells that share a trend and a season."""
    mean, var, error, spread = _filtered(measurements, parameters)
    return Predictions.of(measurements, mean, var, density_of(error, spread))


def alone(measurements: Measurements, free: FloatArray) -> Predictions:
    """Predictions of wells on their own; free: (3,) for all of them, or (well, 3)."""
    m = measurements
    mean, var = _filtered_alone(m, np.broadcast_to(free, (m.num_wells, 3)))
    return Predictions.of(m, mean, var, density_of(m.value - mean, var))


def fit_shared(measurements: Measurements) -> FloatArray:
    """(3,) free parameters that all wells of a cluster share, each on its own otherwise."""
    m = measurements

    def predict(free: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean, var = _filtered_alone(m, np.broadcast_to(free, (m.num_wells, 3)))
        return m.value - mean, var

    free, _ = highest(predict, np.zeros_like(m.well), np.array([START]), ALONE_BOX)
    return free[0]


def fit_own(
    measurements: Measurements, shared: FloatArray, strength: float, start: FloatArray | None = None
) -> FloatArray:
    """(well, 3) free parameters of each well, drawn towards those that they share.

    strength: of the penalty ½ strength ‖free - shared‖².
    """
    m = measurements

    def predict(free: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean, var = _filtered_alone(m, free)
        return m.value - mean, var

    start = np.tile(shared, (m.num_wells, 1)) if start is None else start
    return highest(predict, m.well, start, ALONE_BOX, shared, strength)[0]


def fit_together(measurements: Measurements, shared: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(3,) free parameters that all wells have, and (3,) those of their trend and season.

    shared: (3,), those of wells on their own, to start from.
    """
    m = measurements

    def predict(free: FloatArray) -> tuple[FloatArray, FloatArray]:
        return _told(m, np.tile(free[0, :3], (m.num_wells, 1)), free[0, 3:])

    starts = [np.array([[*shared, left, shared[1] - 1.0, -1.0]]) for left in TREND_STARTS]
    owner = np.zeros_like(m.well)
    found = [highest(predict, owner, each, TOGETHER_BOX, enough=ROUGH) for each in starts]
    best, _ = max(found, key=lambda each: float(each[1][0]))
    free, _ = highest(predict, owner, best, TOGETHER_BOX)
    return free[0, :3], free[0, 3:]


def fit_common(measurements: Measurements, wells: FloatArray, start: FloatArray) -> FloatArray:
    """(3,) free parameters of trend and season, given those of wells, (well, 3)."""
    m = measurements

    def predict(free: FloatArray) -> tuple[FloatArray, FloatArray]:
        return _told(m, wells, free[0])

    return highest(predict, np.zeros_like(m.well), start[None], TOGETHER_BOX[3:])[0][0]


def floored(wells: FloatArray, shared: FloatArray, floor: float) -> FloatArray:
    """(well, 3) free parameters, with variances of at least so much of those that wells share."""
    least = np.log(floor) if floor > 0 else -np.inf
    return np.maximum(wells, shared + np.array([-np.inf, least, least]))


def _left(free: FloatArray) -> FloatArray:
    return LEAST_LEFT + (MOST_LEFT - LEAST_LEFT) * expit(free)


def _of_wells(free: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(well,): a, q and r."""
    return _left(free[:, 0]), np.exp(free[:, 1]), np.exp(free[:, 2])


def _filtered(m: Measurements, p: Parameters) -> FloatArray:
    """(4, measurement): mean and variance given earlier months, error and variance given earlier
    measurements."""
    order = np.argsort(m.month, kind="stable")
    found = np.empty((4, len(m)))
    month, well, value = m.month[order], m.well[order], m.value[order]
    filter_cluster(month, well, value, p.a, p.q, p.r, p.b, p.s, p.v, *found)
    found[:, order] = found.copy()
    return found


def _told(m: Measurements, wells: FloatArray, common: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(measurement,): error and variance, given earlier measurements."""
    _, _, error, spread = _filtered(m, parameters(wells, common))
    return error, spread


def _filtered_alone(m: Measurements, free: FloatArray) -> FloatArray:
    """(2, measurement): mean and variance of wells on their own."""
    first = np.searchsorted(m.well, np.arange(m.num_wells + 1))
    found = np.empty((2, len(m)))
    filter_wells(m.month, m.value, first, *_of_wells(free), *found)
    return found

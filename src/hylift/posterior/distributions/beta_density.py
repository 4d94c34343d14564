"""Beta densities on intervals; arrays of parameters are (row, component), bounds are (row,)."""

import numpy as np
from scipy import special

from hylift.posterior.distributions.base import FloatArray


def log_densities(
    x: FloatArray, alpha: FloatArray, beta: FloatArray, lower: FloatArray, upper: FloatArray
) -> FloatArray:
    """The log density of each component at x (…, row): (…, row, component).

    -inf outside the interval; infinite at an edge where alpha or beta is below 1.
    """
    width = upper - lower
    near, far = (x - lower) / width, (upper - x) / width
    inside = (near >= 0.0) & (far >= 0.0)
    logs = log_unit_densities(np.clip(near, 0.0, 1.0), np.clip(far, 0.0, 1.0), alpha, beta)
    return np.where(inside[..., None], logs - np.log(width)[:, None], -np.inf)


def log_unit_densities(
    near: FloatArray, far: FloatArray, alpha: FloatArray, beta: FloatArray
) -> FloatArray:
    """Log densities on the unit interval, at these distances (…, row) from its ends."""
    logs = special.xlogy(alpha - 1.0, near[..., None])
    logs += special.xlogy(beta - 1.0, far[..., None])
    return np.asarray(logs - special.betaln(alpha, beta))


def moments(
    alpha: FloatArray, beta: FloatArray, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Means and variances (row, component)."""
    total, width = alpha + beta, (upper - lower)[:, None]
    near, far = alpha / total, beta / total
    return lower[:, None] + width * near, width**2 * near * far / (total + 1.0)


def scaled(share: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """From shares of the interval (…, row) to values in it, never beyond its ends."""
    return np.asarray(np.clip(lower + (upper - lower) * share, lower, upper))


def peak(near: FloatArray, far: FloatArray) -> FloatArray:
    """The u in [0, 1] where near log u + far log(1 - u) is largest; 1/2 where it is flat.

    Where both ends are infinite, that of the stronger pole.
    """
    inside = (near > 0) & (far > 0)
    safe = np.where(inside, near + far, 1.0)
    edge = np.where(near <= far, 0.0, 1.0)
    flat = (near == 0) & (far == 0)
    return np.where(inside, near / safe, np.where(flat, 0.5, edge))

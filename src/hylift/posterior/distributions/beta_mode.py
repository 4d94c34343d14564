"""Where Beta densities and their mixtures are largest, on the unit interval."""

import numpy as np
from scipy import special

from hylift.posterior.distributions.base import FloatArray, IntArray, without_idle
from hylift.posterior.distributions.beta_density import peak
from hylift.posterior.distributions.monotone_root import find_roots
from hylift.posterior.distributions.real_mixture import log_sum_exp

LEVELS = np.array([0.001, 0.01, 0.03, *np.linspace(0.07, 0.93, 13), 0.97, 0.99, 0.999])
"""Quantiles of each component at which a mixture is sampled: less than half a deviation apart."""
SLACK = 0.3
"""How far, in logs, a sampled maximum may lie below the best one and still be climbed from."""


def modes(weights: FloatArray, alpha: FloatArray, beta: FloatArray) -> FloatArray:
    """The mode of each mixture (row, component)."""
    alpha, beta = without_idle(weights, alpha, beta)
    near, far = (alpha - 1.0).min(axis=1), (beta - 1.0).min(axis=1)
    infinite = (near < 0) | (far < 0)
    result = peak(near, far)
    flat = ((alpha == 1.0) & (beta == 1.0)).all(axis=1)
    bounded = np.flatnonzero(~infinite & ~flat)
    result[flat] = 0.5
    if len(bounded):
        result[bounded] = _bounded_modes(weights[bounded], alpha[bounded], beta[bounded])
    return result


def _bounded_modes(weights: FloatArray, alpha: FloatArray, beta: FloatArray) -> FloatArray:
    """Modes where no density is infinite: samples, then Newton from the best of them."""
    num_rows = len(weights)
    with np.errstate(divide="ignore"):
        heights = np.log(weights) - special.betaln(alpha, beta)
    samples = special.betaincinv(alpha[..., None], beta[..., None], LEVELS).reshape(num_rows, -1)
    ends = np.broadcast_to([0.0, 1.0], (num_rows, 2))
    grid = np.concatenate([samples, peak(alpha - 1.0, beta - 1.0), ends], axis=1)
    grid = np.sort(grid, axis=1)
    logs = _log_density(heights[:, None], alpha[:, None], beta[:, None], grid)
    best = np.argmax(logs, axis=1)
    rows = np.arange(num_rows)
    top, at = logs[rows, best], grid[rows, best]

    padded = np.pad(logs, ((0, 0), (1, 1)), constant_values=-np.inf)
    local = (logs >= padded[:, :-2]) & (logs >= padded[:, 2:]) & (logs >= top[:, None] - SLACK)
    row, place = np.nonzero(local)
    low = grid[row, np.maximum(place - 1, 0)]
    high = grid[row, np.minimum(place + 1, grid.shape[1] - 1)]
    climbed = _climbed(heights[row], alpha[row], beta[row], low, high)
    found = _log_density(heights[row], alpha[row], beta[row], climbed)
    order = np.lexsort((found, row))
    last = np.searchsorted(row[order], rows, side="right") - 1
    chosen = order[last]
    better = found[chosen] > top
    return np.where(better, climbed[chosen], at)


def _climbed(
    heights: FloatArray, alpha: FloatArray, beta: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Where the slope of each log density changes from rise to fall, between low and high."""

    def evaluate(u: FloatArray, which: IntArray) -> tuple[FloatArray, FloatArray]:
        near, far = alpha[which] - 1.0, beta[which] - 1.0
        logs = _log_terms(heights[which], alpha[which], beta[which], u)
        share = np.exp(logs - log_sum_exp(logs)[:, None])
        left, right = near / u[:, None], far / (1.0 - u)[:, None]
        slopes = np.where(share > 0, left - right, 0.0)
        bends = np.where(share > 0, -left / u[:, None] - right / (1.0 - u)[:, None], 0.0)
        slope = np.einsum("ik,ik->i", share, slopes)
        bend = np.einsum("ik,ik->i", share, bends + slopes**2) - slope**2
        return -slope, -slope / np.where(bend < 0, bend, np.nan)

    with np.errstate(all="ignore"):
        return find_roots(evaluate, low, high, 0.5 * low + 0.5 * high)


def _log_density(
    heights: FloatArray, alpha: FloatArray, beta: FloatArray, u: FloatArray
) -> FloatArray:
    return log_sum_exp(_log_terms(heights, alpha, beta, u))


def _log_terms(
    heights: FloatArray, alpha: FloatArray, beta: FloatArray, u: FloatArray
) -> FloatArray:
    """Log of weight times density of each component at u (…,): (…, component)."""
    near = special.xlogy(alpha - 1.0, u[..., None])
    return np.asarray(heights + near + special.xlog1py(beta - 1.0, -u[..., None]))

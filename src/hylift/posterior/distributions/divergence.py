"""Divergences between batches of distributions, row by row, and entropies."""

import numpy as np
from scipy import special

from hylift.components.family import FloatArray
from hylift.errors import ArgumentError
from hylift.posterior.distributions.base import BatchedDistribution, blocks
from hylift.posterior.distributions.beta_mixture import BetaMixture, LogitLine
from hylift.posterior.distributions.categorical import Categorical
from hylift.posterior.distributions.gaussian_mixture import GaussianMixture
from hylift.posterior.distributions.reals import Density, RealDistribution
from hylift.posterior.distributions.univariate import NODES, Intervals, integrate

NEGLIGIBLE = 1e-9
"""Probability that may lie where the other density vanishes: that of rounding, and of tails."""


def divergences(p: BatchedDistribution, q: BatchedDistribution) -> FloatArray:
    """KL(p || q) of each row, in nats; both batches are of shape (row,).

    Infinite where p has probability that q has not. In closed form for states and for single
    Gaussians, else by adaptive quadrature (to about 1e-9).
    """
    if isinstance(p, Categorical) and isinstance(q, Categorical):
        return np.asarray(special.rel_entr(p.probs, q.probs).sum(axis=-1))
    if not isinstance(p, RealDistribution) or not isinstance(q, RealDistribution):
        raise ArgumentError("states and reals cannot be compared")
    if not isinstance(p, Density) or not isinstance(q, Density):  # observed values
        both = not isinstance(p, Density) and not isinstance(q, Density)
        return np.where(both & (np.asarray(p.mean) == np.asarray(q.mean)), 0.0, np.inf)
    if (
        isinstance(p, GaussianMixture)
        and isinstance(q, GaussianMixture)
        and p.num_components == q.num_components == 1
    ):
        return _of_gaussians(p, q)
    return _integrals(p, q)


def distances(p: BatchedDistribution, q: BatchedDistribution) -> FloatArray:
    """Σ |p - q| over the states, or the difference of the means of reals, of each row."""
    if isinstance(p, Categorical) and isinstance(q, Categorical):
        return np.asarray(np.abs(p.probs - q.probs).sum(axis=-1))
    if not isinstance(p, RealDistribution) or not isinstance(q, RealDistribution):
        raise ArgumentError("states and reals cannot be compared")
    return np.abs(np.asarray(p.mean) - np.asarray(q.mean))


def entropies(p: Density) -> FloatArray:
    """The differential entropy of each row of a batch (row,): -KL to Lebesgue's measure."""
    return -_integrals(p, None)


def _of_gaussians(p: GaussianMixture, q: GaussianMixture) -> FloatArray:
    (mean, var), (other_mean, other_var) = (
        (some.means[:, 0], some.variances[:, 0]) for some in (p, q)
    )
    excess = var / other_var - 1.0
    # Nearly the same variances lose digits in their quotient's log, far ones in excess + 1.
    is_near = np.abs(excess) < 0.5
    log_ratio = np.where(
        is_near, np.log1p(np.where(is_near, excess, 0.0)), np.log(var) - np.log(other_var)
    )
    return np.asarray(0.5 * (excess - log_ratio + (mean - other_mean) ** 2 / other_var))


def _integrals(p: Density, q: Density | None) -> FloatArray:
    """∫ p log(p / q) of each row, with q = 1 if there is none."""
    found = np.empty(p.batch_shape[0])
    num_knots = sum(some[:1]._knots().shape[1] for some in (p, q) if some is not None)
    for _, rows in blocks(1, len(found), num_knots * len(NODES)):
        found[rows] = _by_quadrature(p[rows], None if q is None else q[rows])
    return found


def _by_quadrature(p: Density, q: Density | None) -> FloatArray:
    line, knots = None, p._knots()
    if isinstance(p, BetaMixture):
        line = LogitLine(p.lower, p.upper)
        knots = line.knots(p)
    if q is not None:
        others = line.of_reals(q._knots()) if line else q._knots()
        ends = knots.min(axis=1)[:, None], knots.max(axis=1)[:, None]
        knots = np.concatenate([knots, np.clip(others, *ends)], axis=1)
    knots = np.sort(knots, axis=1)
    vanishes = np.zeros(len(knots), dtype=bool)

    def logs(some: Density | None, spans: Intervals) -> FloatArray:
        if line is not None:
            return line.log_densities(some, spans)
        if some is None:
            return np.zeros((len(spans.row), len(NODES)))
        return some._log_densities(spans)

    def values(spans: Intervals) -> FloatArray:
        log_p, log_q = logs(p, spans), logs(q, spans)
        density = np.exp(log_p)
        if q is None:
            return np.where(density > 0, density * (log_p - log_q), 0.0)
        vanishes[spans.row[(np.isneginf(log_q) & (density > 0)).any(axis=1)]] = True
        counts = (density > 0) & np.isfinite(log_q)
        return np.where(counts, density * (log_p - log_q), 0.0)

    def values_beyond(spans: Intervals) -> FloatArray:
        return np.where(np.isneginf(logs(q, spans)), np.exp(logs(p, spans)), 0.0)

    with np.errstate(invalid="ignore", over="ignore"):
        found = integrate(values, knots)
        if q is None:
            return found
        beyond = integrate(values_beyond, np.where(vanishes[:, None], knots, 0.0))
    return np.where(beyond > NEGLIGIBLE, np.inf, np.maximum(found, 0.0))  # less only by rounding

"""Divergences between batches of distributions, row by row."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hylift.components.family import FloatArray, IntArray
from hylift.errors import ArgumentError
from hylift.posterior.distributions.base import (
    BLOCK_SIZE,
    BatchedDistribution,
    RealDistribution,
    RealMixture,
    blocks,
)
from hylift.posterior.distributions.beta_mixture import (
    BetaMixture,
    log_heights,
    log_shares,
    logit_knots,
    logit_log_density,
)
from hylift.posterior.distributions.categorical import Categorical
from hylift.posterior.distributions.gaussian_intervals import SortedMixtures, scale_knots
from hylift.posterior.distributions.gaussian_mixture import GaussianMixture
from hylift.posterior.distributions.piecewise import PiecewiseDensity
from hylift.posterior.distributions.point_mass import PointMass
from hylift.posterior.distributions.univariate import EPS, NODES, Intervals, integrate

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
    if isinstance(p, PointMass) or isinstance(q, PointMass):
        both = isinstance(p, PointMass) and isinstance(q, PointMass)
        is_same = both & (np.asarray(p.mean) == np.asarray(q.mean))
        return np.where(is_same, 0.0, np.inf)
    if (
        isinstance(p, GaussianMixture)
        and isinstance(q, GaussianMixture)
        and p.num_components == q.num_components == 1
    ):
        return _of_gaussians(p, q)
    found = np.empty(p.batch_shape[0])
    num_knots = _knots(p[:1]).shape[1] + _knots(q[:1]).shape[1]
    for _, rows in blocks(1, len(found), num_knots * len(NODES)):
        found[rows] = _by_quadrature(p[rows], q[rows])
    return found


def distances(p: BatchedDistribution, q: BatchedDistribution) -> FloatArray:
    """Σ |p - q| over the states, or the difference of the means of reals, of each row."""
    if isinstance(p, Categorical) and isinstance(q, Categorical):
        return np.asarray(np.abs(p.probs - q.probs).sum(axis=-1))
    if not isinstance(p, RealDistribution) or not isinstance(q, RealDistribution):
        raise ArgumentError("states and reals cannot be compared")
    return np.abs(np.asarray(p.mean) - np.asarray(q.mean))


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


def _by_quadrature(p: RealDistribution, q: RealDistribution) -> FloatArray:
    line = _Line.of(p)
    own = logit_knots(p.alpha, p.beta) if isinstance(p, BetaMixture) else _knots(p)
    ends = own.min(axis=1)[:, None], own.max(axis=1)[:, None]
    knots = np.concatenate([own, np.clip(line.of_reals(_knots(q)), *ends)], axis=1)
    knots.sort(axis=1)
    vanishes = np.zeros(len(knots), dtype=bool)

    def values(spans: Intervals) -> FloatArray:
        log_p, log_q, is_zero = _log_densities(line, p, q, spans)
        density = np.exp(log_p)
        vanishes[spans.row[(is_zero & (density > 0)).any(axis=1)]] = True
        counts = (density > 0) & np.isfinite(log_q)
        return np.where(counts, density * (log_p - log_q), 0.0)

    def values_beyond(spans: Intervals) -> FloatArray:
        log_p, _, is_zero = _log_densities(line, p, q, spans)
        return np.where(is_zero, np.exp(log_p), 0.0)

    with np.errstate(invalid="ignore", over="ignore"):
        found = np.maximum(integrate(values, knots), 0.0)  # less only by rounding
        beyond = integrate(values_beyond, np.where(vanishes[:, None], knots, 0.0))
    return np.where(beyond > NEGLIGIBLE, np.inf, found)


@dataclass(frozen=True, slots=True)
class _Line:
    """What is integrated over: the reals, or log u/(1 - u) for the share u of an interval.

    Betas have poles at the ends of their interval, of which nothing is left on the second one.
    """

    lower: FloatArray | None = None  # (row,): of the interval
    upper: FloatArray | None = None

    @classmethod
    def of(cls, p: RealDistribution) -> "_Line":
        return cls(p.lower, p.upper) if isinstance(p, BetaMixture) else cls()

    def of_reals(self, x: FloatArray) -> FloatArray:
        """Places (row, knot) of reals."""
        if self.lower is None or self.upper is None:
            return x
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high = self.lower[:, None], self.upper[:, None]
            near, far = np.maximum(x - low, 0.0), np.maximum(high - x, 0.0)
            return np.asarray(np.log(near) - np.log(far))


def _log_densities(
    line: _Line, p: RealDistribution, q: RealDistribution, spans: Intervals
) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Log densities of p and q along the line at the nodes, and where that of q is none."""
    at = spans.nodes
    found = np.empty((2, *at.shape))
    is_zero = np.empty(at.shape, dtype=bool)
    width = max(p._width, q._width) * len(NODES)
    step = max(1, BLOCK_SIZE // width)
    for first in range(0, len(at), step):
        some = slice(first, first + step)
        row = spans.row[some]
        found[0, some], _ = _log_density(line, p, row, at[some])
        found[1, some], is_zero[some] = _log_density(line, q, row, at[some])
    return found[0], found[1], is_zero


def _log_density(
    line: _Line, some: RealDistribution, row: IntArray, at: FloatArray
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """The log density of a row each at places (span, node) on the line, and where it is none."""
    rows = some[row]
    if line.lower is None or line.upper is None:
        return _log_density_of_reals(rows, at)
    lower, upper = line.lower[row, None], line.upper[row, None]
    log_near, log_far = log_shares(at)
    if isinstance(rows, BetaMixture) and _is_within(rows, line, row):
        heights = log_heights(rows.weights, rows.alpha, rows.beta)
        logs = logit_log_density(heights, rows.alpha, rows.beta, at)
        return logs, np.zeros(at.shape, dtype=bool)
    width = upper - lower
    x = np.where(at < 0, lower + width * np.exp(log_near), upper - width * np.exp(log_far))
    logs, is_zero = _log_density_of_reals(rows, x)
    return logs + np.log(width) + log_near + log_far, is_zero


def _is_within(rows: BetaMixture, line: _Line, row: IntArray) -> bool:
    """Whether Betas have the interval that the line is made of."""
    assert line.lower is not None
    assert line.upper is not None
    same = (rows.lower == line.lower[row]) & (rows.upper == line.upper[row])
    return bool(same.all())


def _log_density_of_reals(
    rows: RealDistribution, x: FloatArray
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """The log density of each row at x (row, node), and where it is none.

    A series may fall below 0 between its nodes, where what it stands for is small but positive.
    There, and where it is lost in rounding, its density counts as 4 EPS Σ |coefficients|, which is
    a small share of the panel's mean. None is only beyond the panels, and on those that are 0.
    """
    if isinstance(rows, RealMixture):
        logs = rows._log_pdf(x.T).T
        return logs, np.isneginf(logs)
    density = rows._pdf(x.T).T
    if isinstance(rows, PiecewiseDensity):
        panel = rows._locate(x.T)[0]
        least = 4.0 * EPS * np.abs(rows._gather(panel)).sum(axis=-1).T
        beyond = (x < rows.edges[:, :1]) | (x > rows.edges[:, -1:])
        density = np.maximum(density, np.where(beyond, 0.0, least))
    with np.errstate(divide="ignore"):
        return np.log(density), density == 0.0


def _knots(rows: RealDistribution) -> FloatArray:
    """Where the densities of rows bend: middles and ends of components, edges of panels."""
    if isinstance(rows, GaussianMixture):
        return scale_knots(SortedMixtures.of(*rows._components()))
    if isinstance(rows, BetaMixture):
        means, variances = rows._component_moments()
        sds = np.sqrt(variances)
        flanks = [means + share * sds for share in (-3.0, 0.0, 3.0)]
        ends = np.stack([rows.lower, rows.upper], axis=1)
        inner = np.clip(np.concatenate(flanks, axis=1), ends[:, :1], ends[:, 1:])
        return np.concatenate([inner, ends], axis=1)
    if isinstance(rows, PiecewiseDensity):
        return rows.edges
    raise ArgumentError(f"densities of the family {type(rows).__name__} cannot be compared")

"""Entropies of Gaussian mixtures, by adaptive quadrature over intervals."""

import numpy as np
from scipy import special

from hylift.posterior.distributions.adaptive_quadrature import NODES, integrate
from hylift.posterior.distributions.base import FloatArray
from hylift.posterior.distributions.mixture_intervals import Intervals, SortedMixtures


def entropies(mixtures: SortedMixtures) -> FloatArray:
    """The differential entropy of each row."""
    with np.errstate(over="ignore"):
        return integrate(lambda spans: _values(mixtures, spans), scale_knots(mixtures))


def scale_knots(mixtures: SortedMixtures) -> FloatArray:
    """Each component's middle and ends, snapped to a grid as coarse as its standard deviation.

    Snapping merges the knots of components that overlap, so that their number grows with the
    range in standard deviations, not with the number of components.
    """
    mantissa, exponent = np.frexp(mixtures.sds)
    grid = np.ldexp(np.ones_like(mantissa), exponent - 1)
    ends = [mixtures.means + sds * mixtures.sds for sds in (-9.0, 0.0, 9.0)]
    return np.sort(np.concatenate([grid * np.round(end / grid) for end in ends], axis=1), axis=1)


def _values(mixtures: SortedMixtures, spans: Intervals) -> FloatArray:
    """-f log f at the nodes of each interval."""
    width = spans.high - spans.low
    values = np.empty((len(width), len(NODES)))
    for block, near in mixtures.parts(spans, points=len(NODES)):
        # From the ends, which are exact, since the nodes lose digits far from 0.
        start = (spans.low[block, None] - near.means) / near.sds
        z = width[block, None, None] / near.sds[:, :, None] * (0.5 + 0.5 * NODES)
        z += start[:, :, None]  # (interval, component, node)
        density = (near.heights[:, None, :] @ np.exp(-0.5 * z**2))[:, 0]
        values[block] = special.entr(density)
    return values

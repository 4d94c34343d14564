"""Entropies of Gaussian mixtures, by adaptive quadrature over intervals."""

import numpy as np
from scipy import special

from hylift.posterior.distributions.base import FloatArray
from hylift.posterior.distributions.mixture_intervals import MAX_LEVELS, Intervals, SortedMixtures

TOLERANCE = 1e-10  # of the estimated error, in each interval

# Gauss-Kronrod rule of 15 nodes on [-1, 1] and the Gauss rule of 7 at its odd nodes (QUADPACK).
_HALF_NODES = [
    0.991455371120812639206854697526329,
    0.949107912342758524526189684047851,
    0.864864423359769072789712788640926,
    0.741531185599394439863864773280788,
    0.586087235467691130294144450236103,
    0.405845151377397166906606412076961,
    0.207784955007898467600689403773245,
    0.0,
]
_HALF_KRONROD = [
    0.022935322010529224963732008058970,
    0.063092092629978553290700663189204,
    0.104790010322250183839876322541518,
    0.140653259715525918745189590510238,
    0.169004726639267902826583426598550,
    0.190350578064785409913256402421014,
    0.204432940075298892414161999234649,
    0.209482141084727828012999174891714,
]
_HALF_GAUSS = [
    0.129484966168869693270611432679082,
    0.279705391489276667901467771423780,
    0.381830050505118944950369775488975,
    0.417959183673469387755102040816327,
]
NODES = np.array([*(-np.array(_HALF_NODES[:-1])), *_HALF_NODES[::-1]])
KRONROD = np.array([*_HALF_KRONROD, *_HALF_KRONROD[-2::-1]])
GAUSS = np.zeros(15)
GAUSS[1::2] = [*_HALF_GAUSS, *_HALF_GAUSS[-2::-1]]


def entropies(mixtures: SortedMixtures) -> FloatArray:
    """The differential entropy of each row, by adaptive Gauss-Kronrod quadrature."""
    total = np.zeros(len(mixtures.means))
    spans = Intervals.between(_scale_knots(mixtures))
    with np.errstate(over="ignore"):
        for level in range(MAX_LEVELS):
            if not len(spans.row):
                break
            integral, error = _integrals(mixtures, spans)
            done = (error <= TOLERANCE) | (level == MAX_LEVELS - 1)
            total += np.bincount(spans.row[done], integral[done], minlength=len(total))
            spans = spans.where(~done).halves()
    return total


def _scale_knots(mixtures: SortedMixtures) -> FloatArray:
    """Each component's middle and ends, snapped to a grid as coarse as its standard deviation.

    Snapping merges the knots of components that overlap, so that their number grows with the
    range in standard deviations, not with the number of components.
    """
    mantissa, exponent = np.frexp(mixtures.sds)
    grid = np.ldexp(np.ones_like(mantissa), exponent - 1)
    ends = [mixtures.means + sds * mixtures.sds for sds in (-9.0, 0.0, 9.0)]
    return np.sort(np.concatenate([grid * np.round(end / grid) for end in ends], axis=1), axis=1)


def _integrals(mixtures: SortedMixtures, spans: Intervals) -> tuple[FloatArray, FloatArray]:
    """The integral of -f log f over each interval, with QUADPACK's estimate of its error."""
    width = spans.high - spans.low
    terms = np.empty((len(width), len(NODES)))
    for block, near in mixtures.parts(spans, points=len(NODES)):
        # From the ends, which are exact, since the nodes lose digits far from 0.
        start = (spans.low[block, None] - near.means) / near.sds
        z = width[block, None, None] / near.sds[:, :, None] * (0.5 + 0.5 * NODES)
        z += start[:, :, None]  # (interval, component, node)
        density = (near.heights[:, None, :] @ np.exp(-0.5 * z**2))[:, 0]
        terms[block] = special.entr(density)
    terms *= 0.5 * width[:, None]
    integral = terms @ KRONROD
    size = np.abs(terms) @ KRONROD + np.finfo(float).tiny
    error = size * np.minimum(1.0, (200.0 * np.abs(integral - terms @ GAUSS) / size) ** 1.5)
    return integral, error

"""Integrals over many intervals at once, by adaptive Gauss-Kronrod quadrature."""

from collections.abc import Callable

import numpy as np

from hylift.posterior.distributions.base import FloatArray
from hylift.posterior.distributions.mixture_intervals import MAX_LEVELS, Intervals

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


def integrate(values: Callable[[Intervals], FloatArray], knots: FloatArray) -> FloatArray:
    """The integral of each row's function over the range of its sorted knots (row, knot).

    `values`: of the functions at `NODES` of the intervals, (interval, node). Intervals are halved
    until QUADPACK's estimate of the error is small.
    """
    total = np.zeros(len(knots))
    spans = Intervals.between(knots)
    for level in range(MAX_LEVELS):
        if not len(spans.row):
            break
        terms = values(spans) * (0.5 * (spans.high - spans.low))[:, None]
        integral = terms @ KRONROD
        size = np.abs(terms) @ KRONROD + np.finfo(float).tiny
        error = size * np.minimum(1.0, (200.0 * np.abs(integral - terms @ GAUSS) / size) ** 1.5)
        done = (error <= TOLERANCE) | (level == MAX_LEVELS - 1)
        total += np.bincount(spans.row[done], integral[done], minlength=len(total))
        spans = spans.where(~done).halves()
    return total

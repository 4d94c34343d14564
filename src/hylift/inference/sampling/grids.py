"""Grids on which the densities of reals between bounds are kept."""

from __future__ import annotations

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from hylift.graph import Variables
from hylift.inference.gaussian.bounds import too_narrow
from hylift.inference.sampling.kernels.arrays import Mixtures
from hylift.inference.sampling.kernels.panels import lay_panels
from hylift.posterior import PiecewiseDensity

FloatArray = NDArray[np.float64]

DEGREE = 4
"""Nodes of a panel."""

REACH = 40.0
"""Standard deviations beyond a density at which a grid without a bound ends."""

APART = 64.0
"""Numbers of its size that lie within the narrowest panel that is aimed at."""

LEAST_NUMBERS = 2.0**12
"""Numbers that there must be between two bounds."""

MOST_STEPS = 1 << 12
"""On the way from one end of a grid to the other."""

LEAST_VALUE = 1e-300
"""Of a density, against its largest."""

LEAST_SHARE = 1e-12
"""Of the mean of a density in a panel, below which it does not fall there."""


def check_bounds(variables: Variables) -> None:
    """Refuses reals whose bounds have too few numbers between them."""
    lower, upper = variables.lower, variables.upper
    is_closed = (variables.num_states == 0) & np.isfinite(lower) & np.isfinite(upper)
    with np.errstate(invalid="ignore"):
        largest = np.where(is_closed, np.maximum(np.abs(lower), np.abs(upper)), 0.0)
        wrong = is_closed & (upper - lower < LEAST_NUMBERS * np.spacing(largest))
    if wrong.any():
        name = variables.names[int(np.argmax(wrong))]
        raise too_narrow(name)


def lay_edges(
    mixtures: Mixtures,
    steps: NDArray[np.int64],
    lower: FloatArray,
    upper: FloatArray,
    num_panels: int,
) -> FloatArray:
    """(grid, panel + 1): between the bounds, or well beyond what was seen where there is none.

    mixtures: where densities were seen, and how wide they were, of the real of each grid.
    """
    mean, var = mixtures.mean[steps], mixtures.var[steps]
    is_there = np.arange(mean.shape[1]) < mixtures.count[steps][:, None]
    reach = REACH * np.sqrt(var)
    lowest = np.where(is_there, mean - reach, np.inf).min(axis=1, initial=np.inf)
    highest = np.where(is_there, mean + reach, -np.inf).max(axis=1, initial=-np.inf)
    low = np.where(np.isfinite(lower), lower, lowest)
    high = np.where(np.isfinite(upper), upper, highest)
    least = APART * np.spacing(np.maximum(np.abs(low), np.abs(high)))
    # Where a bound is far from 0, a density may be narrower than numbers can tell.
    low = np.where(np.isfinite(lower), low, np.minimum(low, high - REACH * least))
    high = np.where(np.isfinite(upper), high, np.maximum(high, low + REACH * least))
    edges = np.empty((len(steps), num_panels + 1))
    lay_panels(mixtures, steps, low, high, least, edges, np.empty(MOST_STEPS))
    return edges


def positive_density(edges: FloatArray, values: FloatArray) -> PiecewiseDensity:
    """The density that is proportional to values (grid, panel, node) at the nodes.

    A cubic that dips below 0 between its nodes is flattened, as Zhang and Shu do it: its integral
    over the panel stays.
    """
    peak = values.max(axis=(1, 2), keepdims=True)
    values = np.maximum(values, LEAST_VALUE * peak)
    density = PiecewiseDensity.from_gauss_legendre(edges, values)
    weights = legendre.leggauss(values.shape[2])[1] / 2.0
    share = np.clip(0.5 * values.min(axis=2) / (values @ weights), LEAST_SHARE, None)
    middle, least = density.coefficients[..., 0], _least(density.coefficients)
    wanted = share * middle
    with np.errstate(divide="ignore", invalid="ignore"):
        flat = np.where(least < wanted, (middle - wanted) / (middle - least), 1.0)
    coefficients = density.coefficients.copy()
    coefficients[..., 1:] *= flat[..., None]
    return PiecewiseDensity(density.edges, coefficients)


def _least(coefficients: FloatArray) -> FloatArray:
    """(grid, panel): the least value of each cubic: at an end, or where it is level."""
    c0, c1, c2, c3 = np.moveaxis(coefficients, -1, 0)
    # Its derivative is a t² + b t + c.
    a, b, c = 7.5 * c3, 3.0 * c2, c1 - 1.5 * c3
    with np.errstate(divide="ignore", invalid="ignore"):
        root = -0.5 * (b + np.copysign(np.sqrt(b * b - 4.0 * a * c), b))
        level = np.stack([root / a, c / root, -np.ones_like(c0), np.ones_like(c0)])
    level = np.where(np.abs(level) <= 1.0, level, 1.0)  # NaN where it is nowhere level
    values = c0 + level * (c1 - 1.5 * c3) + 0.5 * c2 * (3.0 * level**2 - 1.0) + 2.5 * c3 * level**3
    return np.asarray(values.min(axis=0))

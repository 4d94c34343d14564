"""Marginals of reals of functions, which have no conditional in closed form: smoothed draws."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hylift.graph import Variables
from hylift.inference.sampling.marginals import (
    DEGREE,
    MOST_COMPONENTS,
    MOST_PANELS,
    lay_edges,
    positive_density,
)
from hylift.inference.sampling.state import GaussianSums
from hylift.numerics.quadrature import gauss_legendre_nodes
from hylift.numerics.segments import slices
from hylift.posterior import GaussianMixture
from hylift.posterior.distributions import BatchedDistribution
from hylift.posterior.marginals import Batches

FloatArray = NDArray[np.float64]

BLOCK = 1 << 22
"""Densities of components that are computed at a time."""
NARROWED = 0.5
"""Width of components beside bounds, where reflections make a distribution narrower."""


def smoothed(variables: Variables, ids: NDArray[np.int64], values: FloatArray) -> Batches:
    """Distributions of reals from values (draw, real of `ids`)."""
    found: Batches = []
    lower, upper = variables.lower[ids], variables.upper[ids]
    has_bound = np.isfinite(lower) | np.isfinite(upper)
    free, bounded = np.flatnonzero(~has_bound), np.flatnonzero(has_bound)
    if len(free):
        weight, mean, var = _binned(values[:, free])
        found.append((ids[free], GaussianMixture(weight, mean, var)))
    step = BLOCK // (MOST_PANELS * DEGREE * MOST_COMPONENTS)
    for some in (bounded[part] for part in slices(len(bounded), step)):
        parts = _binned(values[:, some], NARROWED)
        found.append((ids[some], _within(parts, lower[some], upper[some])))
    return found


def _binned(values: FloatArray, wide: float = 1.0) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(real, component): a mixture with the mean and variance of values (draw, real), which has a
    Gaussian for each of equally many successive draws, so many times as wide as it is far from the
    next."""
    count = min(MOST_COMPONENTS, len(values))
    ordered = np.sort(values, axis=0)
    start = np.arange(count) * len(values) // count
    size = np.diff(np.append(start, len(values)))[:, None]
    weight = size / len(values)
    mean = np.add.reduceat(ordered, start, axis=0) / size
    var = np.add.reduceat((ordered - np.repeat(mean, size[:, 0], axis=0)) ** 2, start, axis=0)
    var = var / size
    centre, total = values.mean(axis=0), values.var(axis=0)
    gap = np.diff(mean, axis=0)
    if len(gap):
        var += (0.5 * wide * (np.r_[gap[:1], gap] + np.r_[gap, gap[-1:]])) ** 2
    # The widths are taken from the distances of the means, so that the variance stays.
    within, between = (weight * var).sum(axis=0), (weight * (mean - centre) ** 2).sum(axis=0)
    share = np.sqrt(np.maximum(total - within, 0.0) / np.where(between > 0, between, 1.0))
    var *= np.where(within > total, total / np.where(within > 0, within, 1.0), 1.0)
    var = np.maximum(var, np.maximum(np.spacing(np.abs(centre)), np.finfo(float).tiny) ** 2)
    mean = centre + share * (mean - centre)
    return np.broadcast_to(weight.T, mean.T.shape).copy(), mean.T.copy(), var.T.copy()


def _within(
    parts: tuple[FloatArray, FloatArray, FloatArray], lower: FloatArray, upper: FloatArray
) -> BatchedDistribution:
    """Mixtures whose components are reflected at bounds."""
    weight, mean, var = parts
    count = np.full(len(mean), mean.shape[1])
    sums = GaussianSums(count, weight, mean, var, np.zeros(mean.shape[1]))
    edges = lay_edges(sums, np.arange(len(mean)), lower, upper, MOST_PANELS)
    nodes, _ = gauss_legendre_nodes(edges, DEGREE)
    sd = np.sqrt(var)
    values = np.zeros(nodes.shape)
    for centre in (mean, 2.0 * lower[:, None] - mean, 2.0 * upper[:, None] - mean):
        apart = (nodes[:, :, None] - centre[:, None, :]) / sd[:, None, :]
        values += (np.exp(-0.5 * apart**2) @ (weight / sd)[:, :, None])[..., 0]
    return positive_density(edges, values.reshape(len(mean), MOST_PANELS, DEGREE))

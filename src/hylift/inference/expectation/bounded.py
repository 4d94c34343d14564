"""Marginals of reals with bounds that matter."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.components.gaussian import mass_beyond
from hylift.inference.expectation.joint import FloatArray, Ids
from hylift.inference.expectation.numeric import BoundSites, FunctionSites
from hylift.inference.expectation.state import Propagation
from hylift.numerics.quadrature import gauss_legendre_nodes
from hylift.posterior import GaussianMixture, PiecewiseDensity
from hylift.posterior.distributions import BatchedDistribution

PANELS, DEGREE = 24, 8
"""Of a density between bounds."""
REACH, BEND = 30.0, 3.0
"""Of a density between bounds, in standard deviations of the whole; and those from which on its
panels grow with the distance."""
NEGLIGIBLE = 1e-10
"""Mass beyond bounds that is ignored."""

Batches = list[tuple[NDArray[Any], BatchedDistribution]]


def by_functions(state: Propagation) -> Batches:
    """Reals with bounds in functions, and their tilted densities there."""
    found: Batches = []
    sites = state.sites
    is_done = np.zeros(sites.points.graph.num_variables, dtype=bool)
    for number, piece in enumerate(sites.pieces):
        functions = piece.numeric
        if not isinstance(functions, FunctionSites) or not functions.is_bounded:
            continue
        coordinate = piece.coordinate_of_real
        is_bounded = np.isfinite(functions.bounds[0]) | np.isfinite(functions.bounds[1])
        for slot in range(piece.num_reals):
            at = np.flatnonzero(
                (coordinate[:, slot] >= 0) & is_bounded[:, slot] & ~is_done[piece.reals[:, slot]]
            )
            ids, once = np.unique(piece.reals[at, slot], return_index=True)
            is_done[ids] = True
            for along in np.unique(coordinate[at[once], slot]).tolist():
                chosen = np.flatnonzero(coordinate[at[once], slot] == along)
                some = at[once[chosen]]
                logs = log_states(state, sites.first[number] + some)
                ends, values = functions.densities(some, state.current(number, some), logs, along)
                if piece.basis is not None:
                    ends = ends / piece.basis[some, slot, along][:, None]
                density = PiecewiseDensity.from_gauss_legendre(ends, values[:, None])
                found.append((ids[chosen], density))
    return found


def log_states(state: Propagation, site: Ids) -> FloatArray:
    """(site, joint state): what others say about the states of sites of one shape."""
    terms, points, cavity = state.sites.terms, state.sites.points, state.tilted.cavity
    total = np.zeros((len(site), 1))
    for slot in range(int(terms.num_discrete[site[0]])):
        place = points.place[terms.slot_ptr[site] + slot]
        size = int(points.place[terms.slot_ptr[site[0]] + slot + 1] - place[0])
        own = cavity[place[:, None] + np.arange(size)]
        total = (total[:, :, None] + own[:, None]).reshape(len(site), -1)
    return total


def within_bounds(
    state: Propagation, ids: NDArray[Any], mixture: GaussianMixture
) -> list[tuple[NDArray[Any], BatchedDistribution]]:
    """Marginals of some reals; where bounds matter, with the bounds in place of their site."""
    variables = state.sites.points.graph.variables
    low, high = variables.lower[ids], variables.upper[ids]
    mean, sd = np.atleast_1d(mixture.mean), np.atleast_1d(mixture.std)
    beyond = mass_beyond(low[:, None], high[:, None], mixture.means, np.sqrt(mixture.variances))
    is_cut = (np.broadcast_to(mixture.weights, beyond.shape) * beyond).sum(axis=1) > NEGLIGIBLE
    if not is_cut.any():
        return [(ids, mixture)]
    cut, others = np.flatnonzero(is_cut), np.flatnonzero(~is_cut)
    low, high, mean, sd = (part[is_cut] for part in (low, high, mean, sd))
    begin = np.clip(mean - REACH * sd, low, high)
    end = np.clip(mean + REACH * sd, low, high)
    is_empty = ~(begin < end)  # a Gaussian far from what has not converged yet
    begin[is_empty] = np.maximum(low, high - sd)[is_empty]
    end[is_empty] = np.minimum(high, begin + sd)[is_empty]
    size = BEND * sd
    first, last = (np.arcsinh((bound - mean) / size)[:, None] for bound in (begin, end))
    along = first + (last - first) * np.linspace(0.0, 1.0, PANELS + 1)
    edges = mean[:, None] + size[:, None] * np.sinh(along)
    edges[:, 0], edges[:, -1] = begin, end
    nodes = gauss_legendre_nodes(edges, DEGREE)[0]
    weights = np.broadcast_to(mixture.weights, mixture.means.shape)[is_cut]
    parts = (weights, mixture.means[is_cut], mixture.variances[is_cut])
    logs = _log_density(nodes, *parts) - _log_site(state, ids[is_cut], nodes)
    values = np.exp(logs - logs.max(axis=1, keepdims=True)).reshape(len(cut), PANELS, DEGREE)
    found: list[tuple[NDArray[Any], BatchedDistribution]] = [
        (ids[cut], PiecewiseDensity.from_gauss_legendre(edges, values))
    ]
    return [*found, (ids[others], mixture[others])] if len(others) else found


def _log_density(
    nodes: FloatArray, weights: FloatArray, means: FloatArray, variances: FloatArray
) -> FloatArray:
    """(real, node): of mixtures (real, component)."""
    square = (nodes[:, :, None] - means[:, None]) ** 2 / variances[:, None]
    with np.errstate(divide="ignore"):
        height = np.log(weights) - 0.5 * np.log(variances)
    return np.asarray(np.logaddexp.reduce(height[:, None] - 0.5 * square, axis=2))


def _log_site(state: Propagation, ids: NDArray[Any], nodes: FloatArray) -> FloatArray:
    """(real, node): of the sites of the bounds of some reals, where they have one."""
    sites = state.sites
    last = sites.pieces[-1] if sites.pieces else None
    if last is None or not isinstance(last.numeric, BoundSites):
        return np.zeros_like(nodes)
    number = np.full(sites.points.graph.num_variables, -1)
    number[last.scope[:, 0]] = np.arange(len(last))
    has_site, site = number[ids] >= 0, sites.first[-2] + np.maximum(number[ids], 0)
    linear = np.where(has_site, state.linear[sites.dim_ptr[site]], 0.0)[:, None]
    precision = np.where(has_site, state.precision[sites.matrix_ptr[site]], 0.0)[:, None]
    copies = state.copies_of_site[site][:, None]
    return np.asarray(copies * nodes * (linear - 0.5 * precision * nodes))

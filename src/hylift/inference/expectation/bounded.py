"""Marginals of reals with bounds that matter."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.components.gaussian import mass_beyond
from hylift.inference.expectation.joint import FloatArray, Ids
from hylift.inference.expectation.numeric import BLOCK, BoundSites, FunctionSites
from hylift.inference.expectation.state import Propagation
from hylift.numerics.quadrature import gauss_legendre_nodes
from hylift.posterior import GaussianMixture, PiecewiseDensity
from hylift.posterior.marginals import Batches

PANELS, DEGREE = 24, 8
"""Of a density between bounds."""
MANY, FEW_PANELS = 500, 6
"""Slots of functions from which on their densities have fewer panels."""
REACH, BEND = 30.0, 3.0
"""Of a density between bounds, in standard deviations of the whole; and those from which on its
panels grow with the distance."""
NEGLIGIBLE = 1e-10
"""Mass beyond bounds that is ignored."""


def by_functions(state: Propagation) -> Batches:
    """Reals with bounds in functions: densities with all of these put back at once, as in
    `corrected`."""
    sites, variables = state.sites, state.sites.points.graph.variables
    uses: list[tuple[int, int, int, Ids]] = []  # piece, slot, coordinate, sites of the piece
    for number, piece in enumerate(sites.pieces):
        functions = piece.numeric
        if isinstance(functions, FunctionSites) and functions.is_bounded and piece.dim <= 2:
            alone = piece.coordinate_of_real
            for slot, along in np.ndindex(piece.num_reals, piece.dim):
                own = np.flatnonzero(alone[:, slot] == along)
                real = piece.reals[own, slot]
                own = own[np.isfinite(variables.lower[real]) | np.isfinite(variables.upper[real])]
                if len(own):
                    uses.append((number, slot, along, own))
    if not uses:
        return []
    ids = np.unique(np.concatenate([sites.pieces[n].reals[own, slot] for n, slot, _, own in uses]))
    step = sites.joint.step[ids]
    mean, variance = state.solved.mean[step], state.solved.covariance[step]
    count = sum(len(own) for *_, own in uses)
    panels = PANELS if count <= MANY else FEW_PANELS
    edges = _edges(variables.lower[ids], variables.upper[ids], mean, np.sqrt(variance), panels)
    nodes = gauss_legendre_nodes(edges, DEGREE)[0]
    away = nodes - mean[:, None]
    log_q = -0.5 * (away**2 / variance[:, None] + np.log(2 * np.pi * variance)[:, None])
    total = log_q.copy()
    for number, slot, along, own in uses:
        piece, block = sites.pieces[number], max(1, BLOCK // (256 * nodes.shape[1]))
        for begin in range(0, len(own), block):
            some = own[begin : begin + block]
            at = np.searchsorted(ids, piece.reals[some, slot])
            share = np.ones(len(some))
            if piece.basis is not None:
                share = piece.basis[piece.row[some], slot, along]
            current, site = state.current(number, some), sites.first[number] + some
            assert isinstance(piece.numeric, FunctionSites)
            logs = piece.numeric.log_marginals(
                some, current, log_states(state, site), along, share[:, None] * away[at]
            )
            np.add.at(total, at, current.copies[:, None] * (logs - log_q[at]))
    top = total.max(axis=1, keepdims=True)
    values = np.exp(total - np.where(np.isfinite(top), top, 0.0))
    density = PiecewiseDensity.from_gauss_legendre(edges, values.reshape(len(ids), panels, DEGREE))
    return [(ids, density)]


def _edges(
    low: FloatArray, high: FloatArray, mean: FloatArray, sd: FloatArray, panels: int
) -> FloatArray:
    """(real, panel + 1): between bounds, closer to each other near the mean."""
    begin = np.clip(mean - REACH * sd, low, high)
    end = np.clip(mean + REACH * sd, low, high)
    is_empty = ~(begin < end)  # a Gaussian far from what has not converged yet
    begin[is_empty] = np.maximum(low, high - sd)[is_empty]
    end[is_empty] = np.minimum(high, begin + sd)[is_empty]
    size = BEND * sd
    first, last = (np.arcsinh((bound - mean) / size)[:, None] for bound in (begin, end))
    along = first + (last - first) * np.linspace(0.0, 1.0, panels + 1)
    edges = mean[:, None] + size[:, None] * np.sinh(along)
    edges[:, 0], edges[:, -1] = begin, end
    return edges


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


def within_bounds(state: Propagation, ids: NDArray[Any], mixture: GaussianMixture) -> Batches:
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
    edges = _edges(low, high, mean, sd, PANELS)
    nodes = gauss_legendre_nodes(edges, DEGREE)[0]
    weights = np.broadcast_to(mixture.weights, mixture.means.shape)[is_cut]
    parts = (weights, mixture.means[is_cut], mixture.variances[is_cut])
    logs = _log_density(nodes, *parts) - _log_site(state, ids[is_cut], nodes)
    values = np.exp(logs - logs.max(axis=1, keepdims=True)).reshape(len(cut), PANELS, DEGREE)
    found: Batches = [(ids[cut], PiecewiseDensity.from_gauss_legendre(edges, values))]
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

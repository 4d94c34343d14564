"""The densities of reals, from the final messages at points between the particles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.errors import too_narrow
from hylift.inference.message.layout import CutShortError, FloatArray, Ids
from hylift.inference.message.particle.messages import ParticleMessages
from hylift.numerics.quadrature import (
    gauss_legendre_nodes,
    legendre_coefficients,
    spaced_by_mass,
)
from hylift.posterior import PiecewiseDensity

NUM_PANELS = 40
FEW_PANELS = 10
"""Used when time has run out."""
DEGREE = 8
REACH = 12.0
"""Standard deviations that the first panels reach to both sides."""
TAILS = 10.0
"""Standard deviations of a belief that panels cover at least, so that improbable values do not
become impossible."""
VANISHED = 1e-26
"""Density, relative to the largest, that is ignored."""
LEAST_SHARE = 1e-9
"""Share of the proposals in the densities."""
ROUGH = 1e-6
"""Coefficients of the last degrees, relative to the density, at which panels are narrow enough."""
ROUNDS = 6
"""Refinements of the panels, at most."""
MOST_OFF = 10.0
"""Largest relative error of sums over particles that is reported."""


@dataclass(frozen=True, slots=True, eq=False)
class RealBeliefs:
    """Beliefs about all reals of a graph."""

    real: Ids  # (real,): variables
    density: PiecewiseDensity
    error: FloatArray
    """(real,): relative error of sums over particles against integrals, up to `MOST_OFF`."""
    is_cut: bool = False
    """True if there was no time for densities: they are Gaussians with the moments of particles."""


def densities(passing: ParticleMessages, has_time: Callable[[], bool]) -> RealBeliefs | None:
    """The densities of all reals; None where there are none.

    Panels cover all that is left of a density, and are refined where it is large, in the time left.
    """
    real = np.flatnonzero(passing.factors.is_real)
    if not len(real):
        return None
    proposals = passing.proposals
    lower, upper, centre = (a[real] for a in (proposals.lower, proposals.upper, proposals.centre))
    num_panels = NUM_PANELS if has_time() else FEW_PANELS
    edges = _first_edges(passing, real, num_panels)
    _check_increasing(passing, real, edges)
    nodes, weights = gauss_legendre_nodes(edges, DEGREE)
    logs = _incoming(passing, real, nodes)
    if logs is None:
        return _gaussian(passing, real, edges)
    for _ in range(ROUNDS - 1):
        values = np.exp(logs - logs.max(axis=1, keepdims=True))
        settled, edges_then = _better_edges(edges, nodes, weights, values, lower, upper)
        open_ones = np.flatnonzero(~settled)
        if not len(open_ones) or not has_time():
            break
        _check_increasing(passing, real[open_ones], edges_then[open_ones])
        finer, of_finer = gauss_legendre_nodes(edges_then[open_ones], DEGREE)
        more = _incoming(passing, real[open_ones], finer)
        if more is None:
            break
        edges[open_ones], logs[open_ones] = edges_then[open_ones], more
        nodes[open_ones], weights[open_ones] = finer, of_finer
    values = np.exp(logs - logs.max(axis=1, keepdims=True))
    total = (weights * values).sum(axis=1)
    # Far out, couplings may be narrower than the gaps between particles.
    mean, sd = proposals.mean[real][:, None], proposals.sd[real][:, None]
    far = np.exp(-0.5 * ((nodes - mean) / sd) ** 2) / (np.sqrt(2 * np.pi) * sd)
    far = np.where(np.isneginf(logs), 0.0, far)
    panels = values + LEAST_SHARE * total[:, None] * far
    panels = panels.reshape(len(real), num_panels, DEGREE)
    slots, count = passing.factors.terms.slots, passing.points.count
    height = np.bincount(slots, count * passing.height, len(passing.fewest))
    integral = np.log(total) + logs.max(axis=1) - height[real]
    placed = edges + centre[:, None]
    _check_increasing(passing, real, placed)
    return RealBeliefs(
        real,
        PiecewiseDensity.from_gauss_legendre(placed, panels),
        np.abs(np.expm1(np.minimum(passing.log_sums()[real] - integral, np.log1p(MOST_OFF)))),
    )


def _gaussian(passing: ParticleMessages, real: Ids, edges: FloatArray) -> RealBeliefs:
    """Gaussians in the panels, with the moments of the particles."""
    found, _ = passing.proposals.adapted(passing.points, passing.particles, passing.probs(), 0.0)
    nodes, _ = gauss_legendre_nodes(edges, DEGREE)
    values = np.exp(-0.5 * ((nodes - found.mean[real][:, None]) / found.sd[real][:, None]) ** 2)
    placed = edges + found.centre[real][:, None]
    _check_increasing(passing, real, placed)
    panels = values.reshape(len(real), -1, DEGREE)
    density = PiecewiseDensity.from_gauss_legendre(placed, panels)
    return RealBeliefs(real, density, np.zeros(len(real)), is_cut=True)


def _incoming(passing: ParticleMessages, real: Ids, nodes: FloatArray) -> FloatArray | None:
    """(real, node): sum of all messages at nodes of some reals; None if there is no time for it."""
    num_points = np.zeros(len(passing.fewest), dtype=np.int64)
    num_points[real] = nodes.shape[1]
    targets = passing.factors.points(num_points)
    try:
        return passing.incoming(targets, nodes.ravel()).reshape(nodes.shape)
    except CutShortError:
        return None


def _check_increasing(passing: ParticleMessages, real: Ids, edges: FloatArray) -> None:
    """Raise where a density is narrower than the spacing of floats of its size."""
    lost = ~(np.diff(edges, axis=1) > 0).all(axis=1)
    if lost.any():
        name = passing.factors.graph.variables.names[int(real[np.argmax(lost)])]
        raise too_narrow(name)


def _first_edges(passing: ParticleMessages, real: Ids, num_panels: int) -> FloatArray:
    """(real, edge): equal panels around the mean of each proposal."""
    proposals = passing.proposals
    mean, away = proposals.mean[real], REACH * proposals.sd[real]
    low = np.maximum(mean - away, proposals.lower[real])
    high = np.minimum(mean + away, proposals.upper[real])
    return np.asarray(np.linspace(low, high, num_panels + 1, axis=1))


def _better_edges(
    edges: FloatArray, nodes: FloatArray, weights: FloatArray, values: FloatArray,
    lower: FloatArray, upper: FloatArray,
) -> tuple[NDArray[np.bool_], FloatArray]:  # fmt: skip
    """(real,): whether the panels are good enough; and better ones."""
    low, high = edges[:, :1], edges[:, -1:]
    wide = high - low
    # An end that is no bound moves outwards while mass is left there, otherwise inwards.
    there = values > VANISHED
    open_low = (values[:, 0] > VANISHED) & (edges[:, 0] > lower)
    open_high = (values[:, -1] > VANISHED) & (edges[:, -1] < upper)
    num_panels = edges.shape[1] - 1
    margin = wide[:, 0] / num_panels
    first = np.take_along_axis(nodes, there.argmax(axis=1)[:, None], axis=1)[:, 0]
    last = np.take_along_axis(nodes, -1 - there[:, ::-1].argmax(axis=1)[:, None], axis=1)[:, 0]
    new_low = np.where(open_low, edges[:, 0] - wide[:, 0], np.maximum(first - margin, edges[:, 0]))
    new_high = np.where(
        open_high, edges[:, -1] + wide[:, 0], np.minimum(last + margin, edges[:, -1])
    )
    share = weights * values / (weights * values).sum(axis=1, keepdims=True)
    mean = (share * nodes).sum(axis=1)
    tails = TAILS * np.sqrt((share * (nodes - mean[:, None]) ** 2).sum(axis=1))
    new_low = np.maximum(np.minimum(new_low, mean - tails), lower)
    new_high = np.minimum(np.maximum(new_high, mean + tails), upper)
    mass = (weights * values).reshape(len(edges), num_panels, DEGREE).sum(axis=2)
    mass /= mass.sum(axis=1, keepdims=True)
    settled = ~open_low & ~open_high & (_roughness(values) < ROUGH)
    return settled, spaced_by_mass(edges, mass, new_low[:, None], new_high[:, None])


def _roughness(values: FloatArray) -> FloatArray:
    """(real,): the largest of the last two coefficients of a panel's series."""
    series = legendre_coefficients(values.reshape(len(values), -1, DEGREE))
    return np.asarray(np.abs(series[..., -2:]).max(axis=(1, 2)))

"""Bounded reals as discrete variables: the nodes of composite Gauss-Legendre rules.

Panels are chosen so that quadratics are resolved. As a function of one real, with all else fixed, a
sum of quadratics is a bell, or rises towards an end of the interval. Panels of a few standard
deviations of the narrowest possible bell resolve the one, panels that shrink towards both ends the
other, however steep.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import IntractableError
from hylift.graph import FactorGroup, by_slots
from hylift.inference.bounds import too_narrow
from hylift.inference.exact.elimination import Flags, FloatArray, Ids, Ids32
from hylift.inference.exact.parts import Parts, RealFactors
from hylift.numerics.quadrature import gauss_legendre_nodes
from hylift.potentials import ConditionalQuadratic, Table
from hylift.potentials.base import along_axis
from hylift.words import Wording

DEGREE = 16
"""Nodes per panel."""

SAME = 1e-10
"""Relative difference of densities at neighbouring floats that does not matter."""

FEWEST_PANELS = 2
MAX_PANELS = 8192

PANEL_SDS = 8.0
"""Widest panel, in standard deviations of the narrowest bell that a real can have."""

PANEL_DECAY = 20.0
"""Widest panel at an end of the interval, in lengths over which the density can fall e-fold."""


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Nodes of the gridded reals, which continue the numbering of the discrete variables.

    The other reals are numbered anew.
    """

    real: Ids  # (gridded,): which reals
    free: Ids  # (free,): the others
    number: Ids32  # (real,): discrete number of a gridded one, else -1
    free_number: Ids32  # (real,): number among the free ones, else -1
    edges: FloatArray  # (gridded, panel + 1)
    nodes: FloatArray  # (gridded, node)
    weights: FloatArray  # (gridded, node)
    num_states: Ids32  # (discrete + gridded,): of the discrete variables, then nodes

    @property
    def num_discrete(self) -> int:
        """Number of discrete variables before the gridded reals."""
        return len(self.num_states) - len(self.real)


def make_grid(parts: Parts, gridded: Flags, edges: FloatArray) -> Grid:
    """Nodes on the panels with these edges (gridded, panel + 1).

    Edges that coincide in floating point are moved to the next floats where that changes nothing.
    """
    real, free = np.flatnonzero(gridded), np.flatnonzero(~gridded)
    number = np.full(len(gridded), -1, dtype=np.int32)
    number[real] = len(parts.discrete) + np.arange(len(real), dtype=np.int32)
    free_number = np.full(len(gridded), -1, dtype=np.int32)
    free_number[free] = np.arange(len(free), dtype=np.int32)
    edges = _increasing(parts, real, edges)
    nodes, weights = gauss_legendre_nodes(edges, DEGREE)
    num_nodes = np.full(len(real), nodes.shape[1], dtype=np.int32)
    num_states = np.concatenate([parts.num_states, num_nodes])
    return Grid(real, free, number, free_number, edges, nodes, weights, num_states)


def put_on_grid(
    parts: Parts, grid: Grid, max_entries: int, *, maximise: bool
) -> tuple[list[FactorGroup], list[RealFactors]]:
    """Tables over discrete variables and nodes, and quadratics of the free reals given those.

    When integrating, each node brings its weight. All reals of functions must be gridded.
    """
    tables = list(parts.tables)
    quadratics = []
    for factors in parts.quadratics:
        for slots, at in by_slots(grid.number[factors.real] >= 0):
            some = factors.take(at)
            if not slots:
                free = grid.free_number[some.real]
                quadratics.append(
                    RealFactors(some.potential, some.discrete, free, some.row, some.multiplicity)
                )
            elif len(slots) == some.real.shape[1]:
                tables.append(_table(grid, some, max_entries))
            else:
                table, quadratic = _given_nodes(grid, some, slots, max_entries)
                tables.append(table)
                quadratics.append(quadratic)
    for factors in parts.functions:
        shapes, which = np.unique(grid.num_states[factors.discrete], axis=0, return_inverse=True)
        for place in range(len(shapes)):
            at = np.flatnonzero(which.reshape(-1) == place)
            tables.append(_table(grid, factors.take(at), max_entries))
    if len(grid.real) and not maximise:
        tables.append(FactorGroup(Table(np.log(grid.weights)), grid.number[grid.real][:, None]))
    return tables, quadratics


def _increasing(parts: Parts, real: Ids, edges: FloatArray) -> FloatArray:
    """The edges (gridded, panel + 1), increasing; raises where there are too few floats."""
    equal = np.flatnonzero((np.diff(edges) <= 0).any(axis=1))
    if not len(equal):
        return edges
    place, nth = _places(edges[equal]), np.arange(edges.shape[1])
    is_full = place[:, -1] - place[:, 0] < nth[-1]
    least, most = (slope[real[equal]] for slope in _slopes(parts))
    # A density that is steep gathers at the lower end if it falls, at the upper one if it rises.
    first, last = np.spacing(np.abs(edges[equal][:, [0, -1]])).T
    is_steep = np.maximum(-least * first, most * last) > SAME
    if (is_full | is_steep).any():
        name = parts.real_name(int(real[equal[np.argmax(is_full | is_steep)]]))
        raise too_narrow(name)
    moved = np.maximum.accumulate(place - nth, axis=1) + nth
    moved = np.minimum(moved, place[:, -1:] - nth[::-1])
    edges = edges.copy()
    edges[equal] = _at_places(moved)
    return edges


def _places(numbers: FloatArray) -> Ids:
    """Signed number of floats between 0 and each number."""
    size = np.abs(numbers).view(np.int64)  # the bits of positive floats are in their order
    return np.where(numbers < 0, -size, size)


def _at_places(places: Ids) -> FloatArray:
    return np.copysign(np.abs(places).view(np.float64), places)


def _slopes(parts: Parts) -> tuple[FloatArray, FloatArray]:
    """(real,): bounds on the slope of the quadratics in it, in any state and anywhere in the box; a
    neighbour without bounds counts as fixed at 0."""
    least, most = np.zeros(len(parts.real)), np.zeros(len(parts.real))
    low, high = (np.where(parts.is_closed, ends, 0.0) for ends in (parts.lower, parts.upper))
    middle, reach = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
    for f in parts.quadratics:
        A, b = f.form.A[f.row], f.form.b[f.row]  # (factor, joint state, real slot, ...)
        slope = b + 2 * (A * middle[f.real][:, None, None]).sum(axis=-1)
        spread = 2 * (np.abs(A) * reach[f.real][:, None, None]).sum(axis=-1)
        times = f.multiplicity[:, None]
        np.add.at(least, f.real, times * (slope - spread).min(axis=1))
        np.add.at(most, f.real, times * (slope + spread).max(axis=1))
    return least, most


def _table(grid: Grid, factors: RealFactors, max_entries: int) -> FactorGroup:
    """The potential at every joint state and node of each factor; one number of states per slot."""
    scope = np.concatenate([factors.discrete, grid.number[factors.real]], axis=1)
    shape = grid.num_states[scope[0]].tolist()
    _check_entries(len(scope), shape, factors.real.shape[1], max_entries)
    slots: list[NDArray[Any]] = []
    for slot, size in enumerate(shape):
        points = np.arange(size)[None]
        if slot >= factors.discrete.shape[1]:
            points = grid.nodes[scope[:, slot] - grid.num_discrete]
        slots.append(points.reshape(along_axis(slot, len(shape), len(points))))
    row = factors.row.reshape((-1,) + (1,) * len(shape))
    values = factors.potential.log_value(row, slots)
    log_table = np.broadcast_to(values, (len(scope), *shape))
    rows = np.arange(len(scope), dtype=np.int32)
    return FactorGroup(Table(log_table), scope, rows, factors.multiplicity)


def _given_nodes(
    grid: Grid, factors: RealFactors, gridded: tuple[int, ...], max_entries: int
) -> tuple[FactorGroup, RealFactors]:
    """A quadratic whose reals g are on the grid and h are free, split at nodes x_g:

    the table x_gᵀ A_gg x_g + b_gᵀ x_g, and the quadratic of h with b_h + 2 A_hg x_g.
    """
    g = list(gridded)
    h = [slot for slot in range(factors.real.shape[1]) if slot not in gridded]
    num_discrete = factors.discrete.shape[1]
    states = grid.num_states[factors.discrete[0]].tolist()
    num_nodes = grid.nodes.shape[1]
    shape = [*states, *([num_nodes] * len(g))]
    _check_entries(len(factors.row), [*shape, len(h), len(h)], len(g), max_entries)

    on = (len(factors.row), *states, *(1,) * len(g))
    A = factors.form.A[factors.row].reshape(*on, *factors.form.A.shape[2:])
    b = factors.form.b[factors.row].reshape(*on, -1)
    table, linear = np.zeros((1,) * (1 + len(shape))), b[..., h]
    for i, slot in enumerate(g):
        nodes = grid.nodes[grid.number[factors.real[:, slot]] - grid.num_discrete]
        x = nodes.reshape(along_axis(num_discrete + i, len(shape), len(nodes)))
        table = table + x * (b[..., slot] + A[..., slot, slot] * x)
        for j, other in enumerate(g[:i]):
            nodes = grid.nodes[grid.number[factors.real[:, other]] - grid.num_discrete]
            y = nodes.reshape(along_axis(num_discrete + j, len(shape), len(nodes)))
            table = table + 2 * A[..., slot, other] * x * y
        linear = linear + 2 * A[..., h, slot] * x[..., None]

    whole = (len(factors.row), *shape)
    inner = np.broadcast_to(A[..., h, :][..., h], (*whole, len(h), len(h)))
    linear = np.broadcast_to(linear, (*whole, len(h)))
    discrete = np.concatenate([factors.discrete, grid.number[factors.real[:, g]]], axis=1)
    rows = np.arange(len(factors.row), dtype=np.int32)
    quadratic = ConditionalQuadratic(inner, linear, np.zeros(whole))
    free = grid.free_number[factors.real[:, h]]
    return (
        FactorGroup(Table(np.broadcast_to(table, whole)), discrete, rows, factors.multiplicity),
        RealFactors(quadratic, discrete, free, rows, factors.multiplicity),
    )


def _check_entries(num_factors: int, shape: list[int], num_gridded: int, max_entries: int) -> None:
    entries = num_factors * float(np.prod([float(size) for size in shape]))
    if entries > max_entries:
        raise IntractableError(
            f"integrating numerically needs tables of {entries:.3g} entries for {num_factors} "
            f"factors with {num_gridded} bounded reals each; the limit is {max_entries:.3g}.",
            Wording("Raise Exact(max_entries=…), or use BVI().", "Use --method bvi."),
        )


def resolving_edges(parts: Parts, gridded: Flags) -> FloatArray:
    """(gridded, panel + 1): edges of panels that resolve every quadratic factor."""
    reals = np.flatnonzero(gridded)
    lower, width = parts.lower[reals], (parts.upper - parts.lower)[reals]
    precision, slope = _steepest(parts)
    precision, slope = precision[reals], slope[reals]
    needed = width * np.sqrt(precision) / PANEL_SDS
    if needed.max(initial=0.0) > MAX_PANELS:
        worst = int(np.argmax(needed))
        raise IntractableError(
            f"'{parts.real_name(int(reals[worst]))}' may be held to within "
            f"{1 / np.sqrt(precision[worst]):.2g} on an interval of width {width[worst]:.3g}: "
            "numerical integration would need too many nodes. Narrow its interval, or leave it "
            "unbounded."
        )
    count = max(FEWEST_PANELS, int(np.ceil(needed.max(initial=0.0))))
    decay = (width / count * slope).max(initial=0.0) / PANEL_DECAY
    levels = int(np.ceil(np.log2(max(decay, 1.0))))
    inner = np.linspace(0.0, 1.0, count + 1)
    towards = inner[1] * 0.5 ** np.arange(levels, 0, -1)
    unit = np.concatenate([[0.0], towards, inner[1:-1], 1.0 - towards[::-1], [1.0]])
    return lower[:, None] + width[:, None] * unit


def halved(edges: FloatArray) -> FloatArray:
    """(gridded, 2 panel + 1): every panel cut in two."""
    middle = 0.5 * (edges[:, 1:] + edges[:, :-1])
    finer = np.empty((len(edges), edges.shape[1] + middle.shape[1]))
    finer[:, ::2], finer[:, 1::2] = edges, middle
    return finer


def _steepest(parts: Parts) -> tuple[FloatArray, FloatArray]:
    """(real,): bounds on its precision, and on the slope in it anywhere in the box, given all else.

    Each sums over its factors the largest in any state. A neighbour without bounds counts as
    fixed at 0: integrated out, it can only make the density wider.
    """
    precision, slope = np.zeros(len(parts.real)), np.zeros(len(parts.real))
    reach = np.maximum(np.abs(parts.lower), np.abs(parts.upper))
    reach = np.where(np.isfinite(reach), reach, 0.0)
    for f in parts.quadratics:
        A, b, _ = f.form
        for slot in range(f.real.shape[1]):
            bell = np.maximum(-2 * A[..., slot, slot], 0.0).max(axis=1)
            np.add.at(precision, f.real[:, slot], bell[f.row] * f.multiplicity)
            steep = np.abs(b[..., slot]).max(axis=1)[f.row]
            for other in range(f.real.shape[1]):
                pull = 2 * np.abs(A[..., slot, other]).max(axis=1)[f.row]
                steep = steep + pull * reach[f.real[:, other]]
            np.add.at(slope, f.real[:, slot], steep * f.multiplicity)
    return precision, slope

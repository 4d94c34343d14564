"""The variables that tables are eliminated over: discrete ones, and reals on nodes.

A real that is integrated numerically takes the nodes of a composite Gauss-Legendre rule as its
states. Panels are chosen so that quadratics are resolved. As a function of one real, with all else
fixed, a sum of quadratics is a bell, or rises towards an end of the interval. Panels of a few
standard deviations of the narrowest possible bell resolve the one, panels that shrink towards both
ends the other, however steep.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import IntractableError, too_narrow
from hylift.graph import FactorGroup, Variables, by_slots
from hylift.inference.exact.elimination import Flags, FloatArray, Ids, Ids32
from hylift.inference.exact.nodes.conditional import quadratic_given, summed
from hylift.inference.exact.nodes.placement import Scale
from hylift.numerics.quadrature import at_distinct_floats, gauss_legendre_nodes, towards_ends
from hylift.numerics.segments import inverse, offsets
from hylift.potentials import ConditionalQuadratic, Potential, Table
from hylift.potentials.base import along_axis
from hylift.rewrite.kinds import Kinds, by_states
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
class Axes:
    """States of discrete variables, and nodes of some reals; all other reals are free."""

    num_states: Ids32  # (variable,): states or nodes; 0 of a free real
    real: Ids  # (gridded,): reals on nodes
    row: Ids  # (variable,): its row in `nodes`, or -1
    scale: Scale  # of the reals on nodes
    edges: FloatArray  # (gridded, panel + 1), along the scale
    nodes: FloatArray  # (gridded, node)
    weights: FloatArray  # (gridded, node)

    @classmethod
    def of(
        cls,
        kinds: Kinds,
        gridded: Flags,
        edges: FloatArray,
        scale: Scale | None = None,
        degree: int = DEGREE,
    ) -> Axes:
        """Nodes on the panels with these edges (gridded, panel + 1) for some reals (variable,).

        Edges that coincide in floating point are moved to the next floats where that changes
        nothing.
        """
        real = np.flatnonzero(gridded)
        row = inverse(real, len(gridded))
        edges = _increasing(kinds, real, edges)
        u, weights = gauss_legendre_nodes(edges, degree)
        num_states = kinds.graph.variables.num_states.copy()
        num_states[real] = u.shape[1]
        scale = scale or Scale.linear(len(real))
        nodes, weights = scale.value(u), weights * scale.slope(u)
        return cls(num_states, real, row, scale, edges, nodes, weights)

    @property
    def width(self) -> FloatArray:
        """(gridded,): of the intervals with nodes."""
        ends = self.scale.value(self.edges[:, [0, -1]])
        return ends[:, 1] - ends[:, 0]

    @property
    def free(self) -> Ids:
        """Reals that are not on nodes."""
        return np.flatnonzero(self.num_states == 0)

    @property
    def first(self) -> Ids:
        """(variable + 1,): its states among those of all variables."""
        return offsets(self.num_states)

    def spread(self, state: Ids32) -> Ids32:
        """(variable,): states of the axes in their order; 0 of free reals."""
        found = np.zeros(len(self.num_states), dtype=np.int32)
        found[self.num_states > 0] = state
        return found

    def on_nodes(self, states: FloatArray) -> FloatArray:
        """(gridded, node): entries of a flat array (state,) of all axes."""
        return states[self.first[self.real][:, None] + np.arange(self.nodes.shape[1])]

    def log_density(self, marginals: FloatArray) -> FloatArray:
        """(gridded, node): of reals along their scale, from marginals (state,) of all axes."""
        slope = self.scale.slope(self.scale.place(self.nodes))
        with np.errstate(divide="ignore"):
            return np.log(self.on_nodes(marginals)) - np.log(self.weights / slope)

    def points(self, variable: NDArray[Any]) -> NDArray[Any]:
        """(variable, point), or one row for all: nodes, or states, of variables of one kind."""
        row = self.row[variable]
        return self.nodes[row] if row[0] >= 0 else np.arange(self.num_states[variable[0]])[None]


FEWEST_FLOATS = 256
"""Floats of an interval, without which nodes would coincide."""


def is_closed(variables: Variables) -> Flags:
    """(variable,): whether it is a real with bounds on both sides."""
    return np.isfinite(variables.lower) & np.isfinite(variables.upper)


def put_on_axes(
    kinds: Kinds, axes: Axes, max_entries: int, *, maximise: bool
) -> tuple[list[FactorGroup], list[FactorGroup]]:
    """Tables over the axes, and quadratics of the free reals given the states of axes.

    When integrating, each node brings its weight. Functions must be quadratic in their free reals
    once those on nodes are known.
    """
    tables, quadratics = list(kinds.tables), []
    for whole in kinds.quadratics:
        for slots, at in by_slots(axes.row[whole.reals] >= 0):
            group = whole.take(at)
            if not slots:
                quadratics.append(group)
            elif len(slots) == group.reals.shape[1]:
                tables.append(_table(axes, group, max_entries))
            else:
                table, quadratic = _given_nodes(axes, group, slots, max_entries)
                tables.append(table)
                quadratics.append(quadratic)
    for whole in kinds.functions:
        for group in by_states(whole, axes.num_states):
            free = axes.num_states[group.reals[0]] == 0
            if not free.any():
                tables.append(summed(_table(axes, group, max_entries)))
                continue
            table, quadratic = _function_given_nodes(axes, group, free, max_entries)
            tables.append(table)
            quadratics.append(quadratic)
    if len(axes.real) and not maximise:
        tables.append(FactorGroup(Table(np.log(axes.weights)), axes.real[:, None].astype(np.int32)))
    return tables, quadratics


def _table(axes: Axes, group: FactorGroup, max_entries: int) -> FactorGroup:
    """The potential at every joint state and node of each factor; one number of states per slot."""
    shape = axes.num_states[group.scope[0]].tolist()
    _check_entries(len(group), shape, group.reals.shape[1], max_entries)
    slots: list[NDArray[Any]] = []
    for slot in range(len(shape)):
        points = axes.points(group.scope[:, slot])
        slots.append(points.reshape(along_axis(slot, len(shape), len(points))))
    row = group.row.reshape((-1,) + (1,) * len(shape))
    values = group.potential.log_value(row, slots)
    return _own_rows(Table(np.broadcast_to(values, (len(group), *shape))), group, group.scope)


def _given_nodes(
    axes: Axes, group: FactorGroup, gridded: tuple[int, ...], max_entries: int
) -> tuple[FactorGroup, FactorGroup]:
    """A quadratic whose reals g are on nodes and h are free, split at nodes x_g:

    the table x_gᵀ A_gg x_g + b_gᵀ x_g, and the quadratic of h with b_h + 2 A_hg x_g.
    """
    form, real = group.potential.quadratic(), group.reals
    assert form is not None
    num_discrete = group.potential.num_discrete_slots
    g = list(gridded)
    h = [slot for slot in range(real.shape[1]) if slot not in gridded]
    states = axes.num_states[group.scope[0, :num_discrete]].tolist()
    shape = [*states, *([axes.nodes.shape[1]] * len(g))]
    _check_entries(len(group), [*shape, len(h), len(h)], len(g), max_entries)

    on = (len(group), *states, *(1,) * len(g))
    A = form.A[group.row].reshape(*on, *form.A.shape[2:])
    b = form.b[group.row].reshape(*on, -1)
    table, linear = np.zeros((1,) * (1 + len(shape))), b[..., h]
    x = [
        axes.points(real[:, slot]).reshape(along_axis(num_discrete + i, len(shape), len(group)))
        for i, slot in enumerate(g)
    ]
    for i, slot in enumerate(g):
        table = table + x[i] * (b[..., slot] + A[..., slot, slot] * x[i])
        for j, other in enumerate(g[:i]):
            table = table + 2 * A[..., slot, other] * x[i] * x[j]
        linear = linear + 2 * A[..., h, slot] * x[i][..., None]

    whole = (len(group), *shape)
    inner = np.broadcast_to(A[..., h, :][..., h], (*whole, len(h), len(h)))
    linear = np.broadcast_to(linear, (*whole, len(h)))
    on_axes = np.concatenate([group.scope[:, :num_discrete], real[:, g]], axis=1)
    quadratic = ConditionalQuadratic(inner, linear, np.zeros(whole))
    return (
        _own_rows(Table(np.broadcast_to(table, whole)), group, on_axes),
        _own_rows(quadratic, group, np.concatenate([on_axes, real[:, h]], axis=1)),
    )


def _function_given_nodes(
    axes: Axes, group: FactorGroup, free: Flags, max_entries: int
) -> tuple[FactorGroup, FactorGroup]:
    """Functions at the nodes of some of their reals: tables, and quadratics of the free ones;
    one of each for all factors of one scope. free: (real slot,)."""
    num_discrete, real = group.potential.num_discrete_slots, group.reals
    g, h = np.flatnonzero(~free).tolist(), np.flatnonzero(free).tolist()
    states = axes.num_states[group.scope[0, :num_discrete]].tolist()
    shape = [*states, *axes.num_states[real[0, g]].tolist()]
    _check_entries(len(group), [*shape, len(h), len(h)], len(g), max_entries)
    whole = quadratic_given(group, tuple(g), states, [axes.points(real[:, s]) for s in g])
    on_axes = np.concatenate([group.scope[:, :num_discrete], real[:, g]], axis=1)
    quadratic = ConditionalQuadratic(whole.A, whole.b, np.zeros(whole.c.shape))
    return (
        summed(_own_rows(Table(whole.c), group, on_axes)),
        summed(_own_rows(quadratic, group, np.concatenate([on_axes, real[:, h]], axis=1))),
    )


def _own_rows(potential: Potential, group: FactorGroup, scope: Ids32) -> FactorGroup:
    """Factors of a group with another potential, which has a row for each."""
    rows = np.arange(len(group), dtype=np.int32)
    return FactorGroup(potential, scope, rows, group.multiplicity)


def _check_entries(num_factors: int, shape: list[int], num_gridded: int, max_entries: int) -> None:
    entries = num_factors * float(np.prod([float(size) for size in shape]))
    if entries > max_entries and not num_gridded:
        raise IntractableError(
            f"a factor of {len(shape):,} discrete variables needs a table of {entries:.3g} "
            f"entries; the limit is {max_entries:.3g}.",
            Wording("Count fewer atoms, or use Gibbs() or SMC().", "Use --method gibbs, or smc."),
        )
    if entries > max_entries:
        raise IntractableError(
            f"integrating numerically needs tables of {entries:.3g} entries for {num_factors} "
            f"factors with {num_gridded} bounded reals each; the limit is {max_entries:.3g}.",
            Wording("Raise Exact(max_entries=…), or use BVI().", "Use --method bvi."),
        )


def resolving_edges(kinds: Kinds, gridded: Flags) -> FloatArray:
    """(gridded, panel + 1): edges of panels that resolve every quadratic factor."""
    reals, variables = np.flatnonzero(gridded), kinds.graph.variables
    if not len(reals):
        return np.zeros((0, FEWEST_PANELS + 1))
    lower, width = variables.lower[reals], (variables.upper - variables.lower)[reals]
    precision, slope = (bound[reals] for bound in _steepest(kinds))
    needed = width * np.sqrt(precision) / PANEL_SDS
    if needed.max(initial=0.0) > MAX_PANELS:
        worst = int(np.argmax(needed))
        raise IntractableError(
            f"'{variables.names[int(reals[worst])]}' may be held to within "
            f"{1 / np.sqrt(precision[worst]):.2g} on an interval of width {width[worst]:.3g}: "
            "numerical integration would need too many nodes. Narrow its interval, or leave it "
            "unbounded."
        )
    count = max(FEWEST_PANELS, int(np.ceil(needed.max(initial=0.0))))
    decay = (width / count * slope).max(initial=0.0) / PANEL_DECAY
    levels = int(np.ceil(np.log2(max(decay, 1.0))))
    return lower[:, None] + width[:, None] * towards_ends(count, levels)


def _increasing(kinds: Kinds, real: Ids, edges: FloatArray) -> FloatArray:
    """The edges (gridded, panel + 1), increasing; raises where there are too few floats."""
    ends = edges[:, [0, -1]]
    few = np.ptp(ends, axis=1) < FEWEST_FLOATS * np.spacing(np.abs(ends).max(axis=1))
    if few.any():
        raise too_narrow(kinds.graph.variables.names[int(real[np.argmax(few)])])
    equal = np.flatnonzero((np.diff(edges) <= 0).any(axis=1))
    if not len(equal):
        return edges
    moved, is_full = at_distinct_floats(edges[equal])
    least, most = (slope[real[equal]] for slope in _slopes(kinds))
    # A density that is steep gathers at the lower end if it falls, at the upper one if it rises.
    first, last = np.spacing(np.abs(edges[equal][:, [0, -1]])).T
    lost = is_full | (np.maximum(-least * first, most * last) > SAME)
    if lost.any():
        raise too_narrow(kinds.graph.variables.names[int(real[equal[np.argmax(lost)]])])
    edges = edges.copy()
    edges[equal] = moved
    return edges


def _slopes(kinds: Kinds) -> tuple[FloatArray, FloatArray]:
    """(variable,): bounds on the slope of the quadratics in it, in any state and anywhere in the
    box; a neighbour without bounds counts as fixed at 0: integrated out, it can only make the
    density wider."""
    variables = kinds.graph.variables
    least, most = np.zeros(len(variables)), np.zeros(len(variables))
    closed = is_closed(variables)
    low, high = (np.where(closed, ends, 0.0) for ends in (variables.lower, variables.upper))
    middle, reach = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
    for group in kinds.quadratics:
        form, at = group.potential.quadratic(), group.reals
        assert form is not None
        A, b = form.A[group.row], form.b[group.row]  # (factor, joint state, real slot, ...)
        slope = b + 2 * (A * middle[at][:, None, None]).sum(axis=-1)
        spread = 2 * (np.abs(A) * reach[at][:, None, None]).sum(axis=-1)
        times = group.multiplicity[:, None]
        np.add.at(least, at, times * (slope - spread).min(axis=1))
        np.add.at(most, at, times * (slope + spread).max(axis=1))
    return least, most


def _steepest(kinds: Kinds) -> tuple[FloatArray, FloatArray]:
    """(variable,): bounds on its precision, and on the slope in it anywhere in the box, given all
    else.

    Each sums over its factors the largest of its terms in any state. Terms that cancel count, so
    that panels shrink to what rounding leaves of them.
    """
    variables = kinds.graph.variables
    precision, slope = np.zeros((2, len(variables)))
    reach = np.maximum(np.abs(variables.lower), np.abs(variables.upper))
    reach = np.where(np.isfinite(reach), reach, 0.0)
    for group in kinds.quadratics:
        form, times = group.potential.quadratic(), group.multiplicity[:, None]
        assert form is not None
        bell = np.maximum(-2 * np.diagonal(form.A, axis1=-2, axis2=-1), 0.0).max(axis=1)
        np.add.at(precision, group.reals, bell[group.row] * times)
        pull = 2 * np.abs(form.A).max(axis=1)[group.row]
        steep = np.abs(form.b).max(axis=1)[group.row]
        steep = steep + np.einsum("fij,fj->fi", pull, reach[group.reals])
        np.add.at(slope, group.reals, steep * times)
    return precision, slope

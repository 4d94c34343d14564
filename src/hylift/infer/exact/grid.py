"""Bounded reals as discrete variables: the nodes of composite Gauss-Legendre rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import IntractableError
from hylift.graph import FactorGroup
from hylift.infer.exact.gaussian import QuadraticFactors
from hylift.infer.exact.parts import Parts
from hylift.posterior.distributions import gauss_legendre_panels
from hylift.potentials import Table

DEGREE = 16
"""Nodes per panel."""


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Nodes of the gridded reals; they continue the numbering of the discrete variables."""

    real: NDArray[np.int64]  # (gridded,): which reals
    number: NDArray[np.int32]  # (real,): discrete number, or -1 where not gridded
    edges: NDArray[np.float64]  # (gridded, panel + 1)
    nodes: NDArray[np.float64]  # (gridded, node)
    weights: NDArray[np.float64]  # (gridded, node)


def make_grid(parts: Parts, gridded: NDArray[np.bool_], num_panels: int) -> Grid:
    """`num_panels` panels over the domain of every real in `gridded`."""
    real = np.flatnonzero(gridded)
    number = np.full(len(gridded), -1, dtype=np.int32)
    number[real] = len(parts.discrete) + np.arange(len(real), dtype=np.int32)
    edges, nodes, weights = gauss_legendre_panels(
        parts.lower[real], parts.upper[real], num_panels, DEGREE
    )
    return Grid(real, number, edges, nodes, weights)


def tabulate(parts: Parts, grid: Grid, max_entries: int, *, maximise: bool) -> list[FactorGroup]:
    """All factors with gridded reals, and functions of discrete slots, as tables.

    Scopes are discrete numbers. When integrating, each node brings its weight.
    """
    tables = []
    for quadratic in parts.quadratics:
        on_grid = np.flatnonzero(grid.number[quadratic.real[:, 0]] >= 0)
        if len(on_grid):
            tables.append(_tabulate_quadratic(parts, grid, quadratic, on_grid, max_entries))
    is_real = parts.graph.variables.num_states == 0
    for group in parts.others:
        for slots, factors in group.by_slots(is_real):
            kinds = [slot in slots for slot in range(group.arity)]
            tables.extend(_tabulate_others(parts, grid, group.take(factors), kinds, max_entries))
    if len(grid.real) and not maximise:
        scope = grid.number[grid.real][:, None]
        tables.append(FactorGroup(Table(np.log(grid.weights)), scope))
    return tables


def _tabulate_quadratic(
    parts: Parts,
    grid: Grid,
    quadratic: QuadraticFactors,
    factors: NDArray[np.int64],
    max_entries: int,
) -> FactorGroup:
    discrete, real = quadratic.discrete[factors], grid.number[quadratic.real[factors]]
    scope = np.concatenate([discrete, real], axis=1)
    states = list(quadratic.potential.slot_states[: discrete.shape[1]])
    group = FactorGroup(
        quadratic.potential, scope, quadratic.row[factors], quadratic.multiplicity[factors]
    )
    is_real = [False] * discrete.shape[1] + [True] * real.shape[1]
    return _table(parts, grid, group, is_real, states + [grid.nodes.shape[1]] * real.shape[1],
                  max_entries)  # fmt: skip


def _tabulate_others(
    parts: Parts, grid: Grid, group: FactorGroup, is_real: list[bool], max_entries: int
) -> list[FactorGroup]:
    """Tables of one group of functions: one per combination of numbers of states."""
    number = parts.number[group.scope]
    for slot, real in enumerate(is_real):
        if real:
            number[:, slot] = grid.number[number[:, slot]]
    num_states = np.concatenate(
        [parts.num_states, np.full(len(grid.real), grid.nodes.shape[1], dtype=np.int32)]
    )
    shapes, which = np.unique(num_states[number], axis=0, return_inverse=True)
    tables = []
    for place, shape in enumerate(shapes):
        at = np.flatnonzero(which.reshape(-1) == place)
        part = FactorGroup(group.potential, number[at], group.row[at], group.multiplicity[at])
        tables.append(_table(parts, grid, part, is_real, [int(s) for s in shape], max_entries))
    return tables


def _table(
    parts: Parts,
    grid: Grid,
    group: FactorGroup,
    is_real: list[bool],
    shape: list[int],
    max_entries: int,
) -> FactorGroup:
    """The group with its potential evaluated at every joint state of each factor."""
    entries = len(group) * float(np.prod([float(size) for size in shape]))
    if entries > max_entries:
        raise IntractableError(
            f"integrating numerically needs tables of {entries:.3g} entries for "
            f"{len(group)} factors with {sum(is_real)} bounded reals each; the limit is "
            f"{max_entries:.3g}. Exact inference integrates bounded reals only where that is small."
        )
    slots: list[NDArray[Any]] = []
    for slot, real in enumerate(is_real):
        axis = (-1,) + (1,) * slot + (shape[slot],) + (1,) * (len(shape) - slot - 1)
        if real:
            points = grid.nodes[group.scope[:, slot] - len(parts.discrete)]
            slots.append(points.reshape(axis))
        else:
            slots.append(np.arange(shape[slot]).reshape((1, *axis[1:])))
    row = group.row.reshape((-1,) + (1,) * len(shape))
    log_table = np.broadcast_to(group.potential.log_value(row, slots), (len(group), *shape))
    rows = np.arange(len(group), dtype=np.int32)
    return FactorGroup(Table(log_table), group.scope, rows, group.multiplicity)

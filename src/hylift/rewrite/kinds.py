"""The factors of a graph by kind, and quadratics taken apart into pieces that share no real."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph, FactorGroup, merge_groups
from hylift.graph.factors import by_slots
from hylift.numerics.segments import inverse
from hylift.potentials import Table
from hylift.potentials.base import FloatArray, Potential
from hylift.potentials.quadratic import ConditionalQuadratic, as_quadratic, as_table
from hylift.potentials.reduced import standard_form

MOST_STATES = 2**12
"""Joint states of a function's discrete slots up to which it is made a table."""


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A summand of some rows of a potential, over the slots on which it really depends."""

    potential: Potential
    slots: tuple[int, ...]  # slots of the whole potential
    rows: NDArray[np.int64]  # (piece row,): the row of the whole potential it is part of

    def of(self, group: FactorGroup) -> FactorGroup:
        """The piece of those factors of a group that have it."""
        if len(self.rows) == group.potential.num_rows:
            part, row = group, group.row
        else:
            piece_row = inverse(self.rows, group.potential.num_rows, np.int32)
            part = group.take(np.flatnonzero(piece_row[group.row] >= 0))
            row = piece_row[part.row]
        scope = part.scope[:, list(self.slots)]
        return part.changed(potential=self.potential, scope=scope, row=row)


def decouple(potential: Potential) -> list[Piece]:
    """Pieces whose sum is a potential with a quadratic form, row by row.

    Real slots stay together where some state multiplies them. A discrete slot that makes no
    difference to a piece is left out of it, and so is a real slot that no row depends on.
    """
    whole = as_quadratic(potential)
    assert whole is not None
    num_reals, num_rows, num_discrete = whole.num_reals, whole.num_rows, whole.num_discrete_slots
    coupled = (whole.A != 0).any(axis=tuple(range(1, whole.c.ndim)))
    # Rows that depend on different discrete slots are taken apart separately.
    every = itertools.product(whole.coefficients, range(num_discrete))
    depends = [_varies(values, slot) for values, slot in every]
    shape = np.concatenate([coupled.reshape(num_rows, -1), *(d[:, None] for d in depends)], axis=1)
    parts = []
    for flagged, rows in by_slots(shape):
        pattern = np.zeros(shape.shape[1], dtype=bool)
        pattern[list(flagged)] = True
        links = pattern[: num_reals * num_reals].reshape(num_reals, num_reals)
        for reals in _blocks(links):
            A = whole.A[rows][..., reals, :][..., reals]
            b = whole.b[rows][..., reals]
            if A.any() or b.any():
                parts.append(_quadratic_piece(num_discrete, rows, reals, A, b))
        constant = _constant_piece(whole, rows)
        if constant is not None:
            parts.append(constant)
    return parts


def pieces(group: FactorGroup) -> list[FactorGroup]:
    """The group itself, or, of quadratics, the groups of their decoupled summands."""
    form = group.potential.quadratic()
    if form is None or not form.num_reals:
        return [group]
    return [piece.of(group) for piece in decouple(group.potential)]


def dependent(group: FactorGroup) -> list[FactorGroup]:
    """The factors of a group of tables, each over the slots on which it really depends, without
    those that are 0 everywhere."""
    table = as_table(group.potential)
    assert table is not None
    values = table.log_table
    varies = np.zeros((len(values), group.arity), dtype=bool)
    for slot in range(group.arity):
        varies[:, slot] = _varies(values, slot)
    found = []
    for slots, rows in by_slots(varies):
        dropped = [slot for slot in range(group.arity) if slot not in slots]
        rest = _first_state(values[rows], dropped)
        if rest.any():
            found.append(Piece(Table(rest), slots, rows).of(group))
    return found


def _blocks(links: NDArray[np.bool_]) -> list[NDArray[np.int64]]:
    """Real slots in the blocks in which links (real slot, real slot) hold them together."""
    reached = links | np.eye(len(links), dtype=bool)
    while (wider := reached @ reached).sum() > reached.sum():
        reached = wider
    _, first = np.unique(np.argmax(reached, axis=1), return_index=True)
    return [np.flatnonzero(reached[slot]) for slot in first]


def _quadratic_piece(
    num_discrete: int,
    rows: NDArray[np.int64],
    reals: NDArray[np.int64],
    A: FloatArray,
    b: FloatArray,
) -> Piece:
    slots = [
        slot for slot in range(num_discrete) if _varies(A, slot).any() or _varies(b, slot).any()
    ]
    dropped = [slot for slot in range(num_discrete) if slot not in slots]
    A, b = _first_state(A, dropped), _first_state(b, dropped)
    piece = ConditionalQuadratic(A, b, np.zeros(b.shape[:-1]))
    return Piece(piece, (*slots, *(num_discrete + int(real) for real in reals)), rows)


def _constant_piece(whole: ConditionalQuadratic, rows: NDArray[np.int64]) -> Piece | None:
    c = whole.c[rows]
    if not c.any():
        return None
    slots = [slot for slot in range(whole.num_discrete_slots) if _varies(c, slot).any()]
    dropped = [slot for slot in range(whole.num_discrete_slots) if slot not in slots]
    return Piece(Table(_first_state(c, dropped)), tuple(slots), rows)


def _varies(values: FloatArray, slot: int) -> NDArray[np.bool_]:
    """(row,): whether the values differ between states of a discrete slot."""
    along = np.moveaxis(values, 1 + slot, 1)
    return (along[:, 1:] != along[:, :1]).reshape(len(values), -1).any(axis=1)


def _first_state(values: FloatArray, slots: list[int]) -> FloatArray:
    for slot in sorted(slots, reverse=True):
        values = np.take(values, 0, axis=1 + slot)
    return values


@dataclass(frozen=True, slots=True, eq=False)
class Kinds:
    """Groups of factors whose sum is the log-density of a graph; scopes are its variables.

    Quadratics are taken apart into pieces that share no real, and functions of few discrete states
    are tables.
    """

    graph: FactorGraph
    tables: list[FactorGroup]
    quadratics: list[FactorGroup]  # with real slots
    functions: list[FactorGroup]
    """All else. The factors of a group have the same numbers of states."""
    log_constant: float
    """Of the graph and of factors without slots."""

    @classmethod
    def of(
        cls, graph: FactorGraph, parts: Callable[[FactorGroup], Sequence[FactorGroup]] = pieces
    ) -> Kinds:
        """The factors of a graph without evidence; `parts` takes those of quadratics apart."""
        num_states = graph.variables.num_states
        kinds = cls(graph, [], [], [], graph.log_constant)
        constant = graph.log_constant
        for whole in graph.groups:
            is_function = whole.potential.quadratic() is None
            for group in tabulated(whole, num_states) if is_function else parts(whole):
                form = group.potential.quadratic()
                if not len(group):
                    continue
                if not group.arity:
                    constant += group.log_sum(np.zeros(0))
                elif form is None:
                    kinds.functions.extend(by_states(group, num_states))
                else:
                    (kinds.quadratics if form.num_reals else kinds.tables).append(group)
        return cls(graph, kinds.tables, kinds.quadratics, kinds.functions, constant)


def in_standard_form(graph: FactorGraph, *, keeps_origins: bool = False) -> FactorGraph:
    """The same graph with potentials as solvers take them.

    keeps_origins: quadratics about points of their own stay, for evidence to be absorbed
    """
    groups = []
    for group in graph.groups:
        potential, order = standard_form(group.potential, keeps_origins=keeps_origins)
        if potential is not group.potential:
            scope = group.scope[:, list(order)]
            group = replace(group, potential=potential, scope=scope)
        groups.append(group)
    if all(new is old for new, old in zip(groups, graph.groups, strict=True)):
        return graph
    return graph.with_groups(groups)


def with_tables(graph: FactorGraph) -> FactorGraph:
    """The same graph with functions of few discrete states as tables."""
    num_states = graph.variables.num_states
    parts = [tabulated(group, num_states) for group in graph.groups]
    if all(part[0] is group for part, group in zip(parts, graph.groups, strict=True)):
        return graph
    return graph.with_groups(merge_groups([group for part in parts for group in part]))


def tabulated(group: FactorGroup, num_states: NDArray[np.int32]) -> list[FactorGroup]:
    """Functions of discrete slots as tables, a group for each number of states; others as they
    are, where there are reals or too many states."""
    potential = group.potential
    is_table = potential.quadratic() is not None
    if is_table or not group.arity or not len(group) or potential.num_reals:
        return [group]
    sizes = np.unique(num_states[group.scope], axis=0)
    if np.prod(sizes, axis=1, dtype=np.float64).max() > MOST_STATES:
        return [group]
    found = []
    for some in by_states(group, num_states):
        rows, row = np.unique(some.row, return_inverse=True)
        table = Table(potential.tabulate(rows, num_states[some.scope[0]]))
        found.append(some.changed(potential=table, row=row))
    return found


def by_states(group: FactorGroup, num_states: NDArray[np.int32]) -> list[FactorGroup]:
    """Groups whose factors have the same numbers of states in their slots."""
    sizes, which = np.unique(num_states[group.scope], axis=0, return_inverse=True)
    which = which.reshape(-1)
    return [group.take(np.flatnonzero(which == number)) for number in range(len(sizes))]

"""The factors of a graph by kind: tables, quadratics in the reals, and functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph, FactorGroup, merge_groups
from hylift.potentials import Table
from hylift.potentials.reduced import standard_form
from hylift.rewrite.decouple import pieces

MOST_STATES = 2**12
"""Joint states of a function's discrete slots up to which it is made a table."""


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

"""The factors of a graph as the terms of an expected energy, laid out flat."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph, FactorGroup
from hylift.graph.factors import merge_groups
from hylift.inference.terms import Terms, same_slots
from hylift.numerics.grouping import average_rows, class_sums, first_members
from hylift.potentials import ConditionalQuadratic, Table
from hylift.rewrite.decouple import pieces
from hylift.rewrite.kinds import tabulated

FloatArray = NDArray[np.float64]


def energy_terms(graph: FactorGraph) -> tuple[Terms, tuple[FactorGroup, ...], float]:
    """Terms in closed form, factors of the user's own functions, and a constant log-value.

    Quadratics are taken apart, so that no term has a slot that makes no difference to it, and
    terms of one kind with the same slots are added up.
    """
    closed: list[FactorGroup] = []
    functions: list[FactorGroup] = []
    constant = graph.log_constant
    num_states = graph.variables.num_states
    for group in graph.groups:
        if not len(group):
            continue
        if isinstance(group.potential, ConditionalQuadratic):
            for piece in pieces(group):
                if piece.arity:
                    closed.append(piece)
                else:
                    constant += piece.log_sum(np.zeros(0))
        elif isinstance(group.potential, Table):
            closed.append(group)
        else:
            for part in tabulated(group, num_states):
                (functions if part.potential is group.potential else closed).append(part)
    merged = tuple(_added_up(group) for group in merge_groups(closed))
    return Terms.of(merged, num_states), tuple(functions), constant


def _added_up(group: FactorGroup) -> FactorGroup:
    """Factors with the same slots become one, whose parameters are the mean of theirs."""
    alike, count = same_slots(group.scope)
    if count == len(group):
        return group
    first = first_members(alike)
    rows = average_rows(
        group.potential.flat, group.row, group.multiplicity, alike, group.row[first]
    )
    return FactorGroup.unchecked(
        group.potential.with_flat(rows),
        group.scope[first],
        np.arange(count, dtype=np.int32),
        class_sums(group.multiplicity, alike, count),
        group.label,
    )

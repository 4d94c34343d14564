"""Potentials of user-defined classes converted to functions, which solvers support."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph.factor_graph import FactorGraph
from hylift.graph.factors import FactorGroup, merge_groups
from hylift.potentials import REAL, ConditionalQuadratic, Function, Potential, Table
from hylift.potentials.base import Expectation, FloatArray

KNOWN = (Table, ConditionalQuadratic, Function)
"""Classes that solvers support."""


def with_known_kinds(graph: FactorGraph) -> FactorGraph:
    """The same graph, with potentials of user-defined classes as functions."""
    own = [g for g in graph.groups if not isinstance(g.potential, KNOWN) and g.arity]
    if not own:
        return graph
    others = [g for g in graph.groups if isinstance(g.potential, KNOWN) or not g.arity]
    groups = [*others, *map(_as_function, merge_groups(own))]
    return FactorGraph.unchecked(graph.variables, groups, graph.evidence, graph.log_constant)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _OfRow:
    """The log-value of a potential as a function of its slots, in another order, and its row."""

    potential: Potential
    place: NDArray[np.intp]  # (slot,): which argument it is

    def __call__(self, *arguments: NDArray[Any]) -> NDArray[np.float64]:
        slots = [arguments[place] for place in self.place]
        return self.potential.log_value(arguments[-1].astype(np.int64), slots)

    def expected(self, slots: Sequence[FloatArray], row: FloatArray) -> Expectation | None:
        found = self.potential.expected(
            row.astype(np.int64), [slots[place] for place in self.place]
        )
        if found is None:
            return None
        return Expectation(found.value, [found.gradients[slot] for slot in np.argsort(self.place)])

    def __repr__(self) -> str:
        return type(self.potential).__name__


def _as_function(group: FactorGroup) -> FactorGroup:
    """Factors of any potential as those of a function; rows that are equal become one."""
    potential = group.potential
    is_real = np.array(potential.slot_states) == REAL
    order = np.argsort(is_real, kind="stable")  # functions have their discrete slots first
    _, first, same = np.unique(potential.flat, axis=0, return_index=True, return_inverse=True)
    function = Function(
        _OfRow(potential, np.argsort(order)),
        num_discrete=int(np.count_nonzero(~is_real)),
        num_reals=int(np.count_nonzero(is_real)),
        parameters=first[:, None].astype(np.float64),
        symmetric=_symmetric(potential, order),
    )
    row = same.reshape(-1)[group.row].astype(np.int32)
    return FactorGroup.unchecked(
        function, group.scope[:, order], row, group.multiplicity, group.label
    )


def _symmetric(potential: Potential, order: NDArray[np.intp]) -> tuple[tuple[int, ...], ...]:
    """Positions in an order of the slots that may be exchanged in all rows."""
    groups: list[list[int]] = []
    for place, slot in enumerate(order):
        for group in groups:
            swapped = potential.exchange(int(order[group[0]]), int(slot))
            if swapped is not None and np.array_equal(potential.flat[:, swapped], potential.flat):
                group.append(place)
                break
        else:
            groups.append([place])
    return tuple(tuple(group) for group in groups if len(group) > 1)

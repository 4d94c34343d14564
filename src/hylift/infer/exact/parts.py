"""A conditioned graph taken apart by kind: tables, quadratics in the reals, and the rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph, FactorGroup
from hylift.infer.exact.gaussian import QuadraticFactors
from hylift.potentials import ConditionalQuadratic, Table, decouple


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Factors by kind, with discrete variables and reals numbered separately.

    Scopes of `tables` are discrete numbers; those of `others` stay variables of the graph.
    """

    graph: FactorGraph
    discrete: NDArray[np.int64]  # variables that are discrete
    real: NDArray[np.int64]  # variables that are real
    number: NDArray[np.int32]  # (variable,): its position in the one or the other
    tables: list[FactorGroup]
    quadratics: list[QuadraticFactors]
    others: list[FactorGroup]
    log_constant: float

    @property
    def num_states(self) -> NDArray[np.int32]:
        """(discrete,): number of states."""
        return self.graph.variables.num_states[self.discrete]

    @property
    def lower(self) -> NDArray[np.float64]:
        return self.graph.variables.lower[self.real]

    @property
    def upper(self) -> NDArray[np.float64]:
        return self.graph.variables.upper[self.real]

    def real_name(self, number: int) -> str:
        return self.graph.variables.names[int(self.real[number])]


def take_apart(graph: FactorGraph) -> Parts:
    """The parts of a ground graph without evidence."""
    if (graph.variables.multiplicity != 1).any():
        raise UnsupportedError(
            "exact inference needs a ground graph: this one is lifted, and the joint "
            "distribution of the members of a class is not in it"
        )
    num_states = graph.variables.num_states
    discrete, real = np.flatnonzero(num_states > 0), np.flatnonzero(num_states == 0)
    number = np.empty(graph.num_variables, dtype=np.int32)
    number[discrete] = np.arange(len(discrete), dtype=np.int32)
    number[real] = np.arange(len(real), dtype=np.int32)
    parts = Parts(graph, discrete, real, number, [], [], [], graph.log_constant)
    constant = sum(_sort_group(parts, group) for group in graph.groups if len(group))
    return Parts(
        graph, discrete, real, number, parts.tables, parts.quadratics, parts.others,
        graph.log_constant + constant,
    )  # fmt: skip


def _sort_group(parts: Parts, group: FactorGroup) -> float:
    """Puts a group where it belongs; returns what of it is constant."""
    if isinstance(group.potential, Table):
        return _add_table(parts, group)
    if not isinstance(group.potential, ConditionalQuadratic):
        parts.others.append(group)
        return 0.0
    constant = 0.0
    for piece in decouple(group.potential):
        piece_row = np.full(group.potential.num_rows, -1, dtype=np.int32)
        piece_row[piece.rows] = np.arange(len(piece.rows), dtype=np.int32)
        factors = np.flatnonzero(piece_row[group.row] >= 0)
        row = piece_row[group.row[factors]]
        scope = group.scope[np.ix_(factors, np.array(piece.slots, dtype=np.int64))]
        if isinstance(piece.potential, ConditionalQuadratic):
            split = piece.potential.num_discrete
            parts.quadratics.append(
                QuadraticFactors(
                    piece.potential,
                    parts.number[scope[:, :split]],
                    parts.number[scope[:, split:]],
                    row,
                    group.multiplicity[factors],
                )
            )
        else:
            part = FactorGroup(piece.potential, scope, row, group.multiplicity[factors])
            constant += _add_table(parts, part)
    return constant


def _add_table(parts: Parts, group: FactorGroup) -> float:
    if not group.arity:
        return group.log_sum(np.zeros(0))
    parts.tables.append(
        FactorGroup(
            group.potential, parts.number[group.scope], group.row, group.multiplicity, group.label
        )
    )
    return 0.0

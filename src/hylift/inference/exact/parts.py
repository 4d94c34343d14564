"""The factors of a conditioned graph by kind: tables, quadratics in the reals, and functions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph, FactorGroup
from hylift.inference.exact.elimination import Flags, FloatArray, Ids, Ids32
from hylift.potentials import Potential
from hylift.potentials.base import QuadraticForm
from hylift.rewrite.decouple import pieces

LARGEST = 1e290
"""Finite log-values beyond this, in size, are refused: their sums would pass for infinite ones."""


@dataclass(frozen=True, slots=True, eq=False)
class RealFactors:
    """Factors of one potential, with discrete and real slots apart."""

    potential: Potential
    discrete: Ids32  # (factor, discrete slot)
    real: Ids32  # (factor, real slot)
    row: Ids32  # (factor,)
    multiplicity: FloatArray  # (factor,)

    @property
    def form(self) -> QuadraticForm:
        """The coefficients of quadratics."""
        form = self.potential.quadratic()
        assert form is not None
        return form

    def take(self, factors: Ids) -> RealFactors:
        return RealFactors(
            self.potential,
            self.discrete[factors],
            self.real[factors],
            self.row[factors],
            self.multiplicity[factors],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Factors by kind, with discrete variables and reals numbered separately.

    Scopes of `tables` are discrete numbers.
    """

    graph: FactorGraph
    discrete: Ids  # variables that are discrete
    real: Ids  # variables that are real
    number: Ids32  # (variable,): its position in the one or the other
    tables: list[FactorGroup]
    quadratics: list[RealFactors]
    functions: list[RealFactors]  # of discrete slots, of reals, or of both
    log_constant: float

    @property
    def num_states(self) -> Ids32:
        """(discrete,): number of states."""
        return self.graph.variables.num_states[self.discrete]

    @property
    def lower(self) -> FloatArray:
        return self.graph.variables.lower[self.real]

    @property
    def upper(self) -> FloatArray:
        return self.graph.variables.upper[self.real]

    @property
    def has_bounds(self) -> Flags:
        """(real,): whether it is bounded on at least one side."""
        return np.isfinite(self.lower) | np.isfinite(self.upper)

    @property
    def is_closed(self) -> Flags:
        """(real,): whether it is bounded on both sides."""
        return np.isfinite(self.lower) & np.isfinite(self.upper)

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
    tables: list[FactorGroup] = []
    quadratics: list[RealFactors] = []
    functions: list[RealFactors] = []
    constant = graph.log_constant
    parted = [piece for whole in graph.groups if len(whole) for piece in pieces(whole)]
    for group in parted:
        scope, split = number[group.scope], group.potential.num_discrete_slots
        form, rest = group.potential.quadratic(), (group.row, group.multiplicity)
        if not group.arity:
            constant += group.log_sum(np.zeros(0))
        elif form is not None and not form.num_reals:
            tables.append(FactorGroup(group.potential, scope, *rest))
        else:
            kind = functions if form is None else quadratics
            kind.append(RealFactors(group.potential, scope[:, :split], scope[:, split:], *rest))
    parts = Parts(graph, discrete, real, number, tables, quadratics, functions, constant)
    _check_log_values(parts)
    return parts


def _check_log_values(parts: Parts) -> None:
    """Raise if a finite number in a table is too large to compute with."""
    found = 0.0 if parts.log_constant == -np.inf else abs(parts.log_constant)
    whose = "the factors of what is observed add up to"
    for group in parts.tables:
        values = group.potential.flat
        largest = np.abs(values).max(axis=1, where=values > -np.inf, initial=0.0)
        if largest.max(initial=0.0) * group.multiplicity.max(initial=1.0) <= LARGEST:
            continue
        of_factor = largest[group.row] * group.multiplicity
        worst = int(np.argmax(of_factor))
        if of_factor[worst] > found:
            found = float(of_factor[worst])
            variables = parts.discrete[group.scope[worst]].tolist()
            names = ", ".join(f"'{parts.graph.variables.names[v]}'" for v in variables)
            whose = f"a factor of {names} has"
    if not found <= LARGEST:
        raise UnsupportedError(
            f"exact inference computes with finite log-values up to {LARGEST:.0e}, and {whose} "
            f"{found:.3g}. A rule that must hold has the weight inf, and what is impossible the "
            "log-value -inf."
        )

"""Conditioning: evidence is absorbed into the factors, and observed slots disappear."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.errors import ImpossibleEvidenceError
from hylift.graph.evidence import Evidence
from hylift.graph.factor_graph import FactorGraph
from hylift.graph.factors import FactorGroup, by_signature, by_slots, join_groups
from hylift.graph.variables import Variables
from hylift.potentials import REAL, ConditionalQuadratic
from hylift.potentials.about import FAR, QuadraticAbout

MEASUREMENTS = -1
"""`Part.source` of factors that stand for measurements."""


MOST_STATES = 16
"""Observed joint states up to which functions are looked at separately."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Factors of a conditioned group that come from one group, with the same slots observed."""

    source: int
    """Index of the group in the graph before; -1 for measurements (soft evidence)."""
    factors: NDArray[np.int64]
    """(factor,): positions in that group; for measurements, in the evidence."""
    slots: tuple[int, ...]
    """Slots of the source that were observed."""


@dataclass(frozen=True, slots=True, eq=False)
class Conditioned:
    """A graph with its evidence absorbed, and the origin of its variables and factors."""

    source: FactorGraph
    """As it was given, with its evidence."""
    graph: FactorGraph
    """Of the hidden variables only."""
    hidden: NDArray[np.int64]
    """(variable,): its id in `source`."""
    parts: tuple[tuple[Part, ...], ...]
    """Per group of `graph`: what it was joined from, in the order of its factors."""

    @classmethod
    def of(cls, graph: FactorGraph) -> Conditioned:
        """The graph of the hidden variables, with all evidence absorbed into its factors.

        Hidden variables keep their order and their names. Factors whose reduced potentials have one
        signature share a group, wherever they came from. A graph that is conditioned already is
        returned as it is.
        """
        return cls._whole(graph) if is_conditioned(graph) else conditioned(graph)

    @classmethod
    def _whole(cls, graph: FactorGraph) -> Conditioned:
        parts = (
            (Part(source, np.arange(len(group)), ()),) for source, group in enumerate(graph.groups)
        )
        return cls(graph, graph, np.arange(graph.num_variables), tuple(parts))


def is_conditioned(graph: FactorGraph) -> bool:
    """True if a graph has no evidence to absorb, no constants, and no groups to join."""
    if len(graph.evidence) or not all(len(group) and group.arity for group in graph.groups):
        return False
    return len({group.potential.signature for group in graph.groups}) == len(graph.groups)


def conditioned(graph: FactorGraph) -> Conditioned:
    """A graph that may have evidence, conditioned; `Conditioned.of` is what others call."""
    observed = Observed.of(graph.num_variables, graph.evidence)
    log_constant = graph.log_constant
    groups, parts = [], []
    for source, group in enumerate(graph.groups):
        for slots, factors in observed.patterns(group):
            part = observed.reduce(group, slots, factors)
            if part.arity:
                groups.append(part)
                parts.append(Part(source, factors, slots))
            else:
                log_constant += _constant(part)
    measured = np.flatnonzero(~graph.evidence.is_hard)
    if len(measured):
        groups.append(measurements(graph, measured, observed.new_id))
        parts.append(Part(MEASUREMENTS, measured, ()))
    alike = by_signature(groups)
    return Conditioned(
        graph,
        FactorGraph.unchecked(
            observed.hidden_variables(graph.variables),
            (join_groups([groups[at] for at in same]) for same in alike),
            Evidence.none(),
            log_constant,
            graph.rules and graph.rules.conditioned(graph.evidence, observed.hidden),
        ),
        observed.hidden,
        tuple(tuple(parts[at] for at in same) for same in alike),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """The variables observed without error, and the ids of the others among themselves."""

    flag: NDArray[np.bool_]  # (variable,)
    value: NDArray[np.float64]  # (variable,)
    hidden: NDArray[np.int64]  # (hidden variable,)
    new_id: NDArray[np.int32] | None
    """(variable,): position in `hidden`; None if nothing is observed."""

    @classmethod
    def of(cls, num_variables: int, evidence: Evidence) -> Observed:
        hard = evidence.is_hard
        flag = np.zeros(num_variables, dtype=bool)
        value = np.zeros(num_variables)
        if not hard.any():
            return cls(flag, value, np.arange(num_variables), None)
        flag[evidence.variable[hard]] = True
        value[evidence.variable[hard]] = evidence.value[hard]
        new_id = np.cumsum(~flag, dtype=np.int32) - np.int32(1)
        return cls(flag, value, np.flatnonzero(~flag), new_id)

    def patterns(self, group: FactorGroup) -> Iterator[tuple[tuple[int, ...], NDArray[np.int64]]]:
        """Observed slots, and the factors of the group in which it is these."""
        if self.new_id is not None:
            for slots, factors in by_slots(self.flag[group.scope]):
                yield from ((slots, some) for some in self._by_states(group, slots, factors))
        elif len(group):
            yield (), np.arange(len(group))

    def _by_states(
        self, group: FactorGroup, slots: tuple[int, ...], factors: NDArray[np.int64]
    ) -> list[NDArray[np.int64]]:
        """Factors of a function that may be simpler, as `Answer * (x > 0)` is where the answer is
        no, by their observed states, if those are few; and all others together."""
        own, states = group.potential, group.potential.slot_states
        discrete = [slot for slot in slots if states[slot] != REAL]
        if not (own.may_be_simpler and discrete):
            return [factors]
        known = self.value[group.scope[np.ix_(factors, np.array(discrete))]]
        found, which = np.unique(known, axis=0, return_inverse=True)
        if len(found) > MOST_STATES:
            return [factors]
        return [factors[which.reshape(-1) == number] for number in range(len(found))]

    def reduce(
        self,
        group: FactorGroup,
        slots: tuple[int, ...],
        factors: NDArray[np.int64],
        new_id: NDArray[np.int32] | None = None,
    ) -> FactorGroup:
        """These factors of a group, in which these slots are observed, without those slots.

        new_id: (variable,): of the hidden variables; by default their positions.
        """
        new_id = self.new_id if new_id is None else new_id
        if new_id is None:
            return group
        some = group if len(factors) == len(group) else group.take(factors)
        potential, scope = some.potential, some.scope
        row: NDArray[Any] = some.row
        if slots:
            potential, row = potential.reduce(row, slots, self.value[scope[:, list(slots)]])
            scope = scope[:, [slot for slot in range(group.arity) if slot not in slots]]
        scope = new_id[scope]
        return some.changed(potential=potential, scope=scope, row=row)

    def hidden_variables(self, variables: Variables) -> Variables:
        return variables if self.new_id is None else variables.take(self.hidden)


def _constant(part: FactorGroup) -> float:
    """The summed log-value of factors without slots."""
    values = part.potential.log_value(part.row, [])
    if np.isneginf(values).any():
        raise ImpossibleEvidenceError(
            f"the evidence breaks a hard constraint: all variables of "
            f"{np.count_nonzero(np.isneginf(values))} factors of {part.named()} are observed, "
            "in a state that is impossible"
        )
    return float((part.multiplicity * values).sum())


def measurements(
    graph: FactorGraph, measured: NDArray[np.int64], new_id: NDArray[np.int32] | None = None
) -> FactorGroup:
    """A factor N(value; x, var) per measured real; measured: positions in the evidence."""
    variable = graph.evidence.variable[measured]
    value, var = graph.evidence.value[measured], graph.evidence.var[measured]
    about = QuadraticAbout(
        value[:, None],
        (-0.5 / var)[:, None, None],
        np.zeros((len(var), 1)),
        -0.5 * np.log(2 * np.pi * var),
    )
    is_far = (value**2 / var).max() > FAR
    potential = about if is_far else ConditionalQuadratic.of_form(about.quadratic(), ())
    multiplicity = graph.variables.multiplicity[variable]
    scope = variable if new_id is None else new_id[variable]
    return FactorGroup(potential, scope[:, None], multiplicity=multiplicity, label="measurements")

"""The factors of a graph as quadratics of hidden and known reals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph, FactorGroup
from hylift.graph.condition import MEASUREMENTS, Conditioned
from hylift.graph.factors import by_slots
from hylift.inference.filtering.forms import Forms
from hylift.inference.filtering.times import FloatArray, IntArray
from hylift.potentials import REAL, ConditionalQuadratic, Function, Potential


def forms_of(graph: FactorGraph, conditioned: Conditioned, step: IntArray) -> list[Forms]:
    """All factors with real slots, and soft evidence; step (variable,): of all variables.

    Quadratics keep their observed reals. Functions keep one that they measure, if what is left is
    quadratic; of others, and of discrete variables, the evidence is absorbed.
    """
    known = _Known.of(graph, step)
    first = np.cumsum([0, *(len(group) for group in graph.groups)])
    found, done = [], np.zeros(int(first[-1]), dtype=bool)
    for group, begin in zip(graph.groups, first, strict=False):
        for part, factors in known.quadratics(group):
            source = group.take(factors)
            leads = _leads(group.potential, source.scope, part.scope)
            found.append(known.forms(part, source.scope, leads, begin + factors))
            done[begin + factors] = True
    for group, parts in zip(conditioned.graph.groups, conditioned.parts, strict=True):
        begin = 0
        for piece in parts:
            own = np.arange(begin, begin + len(piece.factors))
            begin += len(piece.factors)
            if piece.source == MEASUREMENTS:
                continue
            source = graph.groups[piece.source]
            origin = first[piece.source] + piece.factors
            left = np.flatnonzero(~done[origin])
            if len(left) and isinstance(group.potential, ConditionalQuadratic):
                part = group.take(own[left])
                scope = conditioned.hidden[part.scope].astype(np.int32)
                part = FactorGroup.unchecked(
                    part.potential, scope, part.row, part.multiplicity, part.label
                )
                whole = source.scope[piece.factors[left]]
                leads = np.full(len(left), num_discrete(source.potential) not in piece.slots)
                found.append(known.forms(part, whole, leads, origin[left]))
    return [form for form in [*found, known.soft(graph, int(first[-1]))] if len(form)]


def _leads(
    potential: Potential, scope: NDArray[np.int32], left: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """(factor,): whether the first slot that is left was the first real one."""
    return np.asarray(scope[:, num_discrete(potential)] == left[:, 0])


def num_discrete(potential: Potential) -> int:
    """Discrete slots of a potential, which come before the real ones."""
    return sum(states != REAL for states in potential.slot_states)


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """What evidence says of all variables."""

    value: FloatArray  # (variable,): nan where it is not known for sure
    hidden_id: IntArray  # (variable,): among those that are not
    step: IntArray  # (variable,)
    once: NDArray[np.bool_]
    """(variable,): whether it is an observed real of one factor only."""

    @classmethod
    def of(cls, graph: FactorGraph, step: IntArray) -> _Known:
        evidence, hard = graph.evidence, graph.evidence.is_hard
        value = np.full(graph.num_variables, np.nan)
        value[evidence.variable[hard]] = evidence.value[hard]
        count = np.zeros(graph.num_variables, dtype=np.int64)
        for group in graph.groups:
            count += np.bincount(group.scope.ravel(), minlength=len(count))
        once = (count == 1) & ~np.isnan(value) & (graph.variables.num_states == 0)
        return cls(value, np.cumsum(np.isnan(value)) - 1, step, once)

    def measured(self, scope: NDArray[np.int32], latest: IntArray) -> NDArray[np.bool_]:
        """(factor, slot): whether a factor may measure it; latest: (factor,), its step."""
        return np.asarray(self.once[scope] & (self.step[scope] == latest[:, None]))

    def forms(
        self,
        part: FactorGroup,
        whole: NDArray[np.int32],
        leads: NDArray[np.bool_],
        origin: IntArray,
    ) -> Forms:
        """Factors whose slots are real; whole (factor, slot): with what was absorbed."""
        potential, weight, scope = part.potential, part.multiplicity, part.scope
        assert isinstance(potential, ConditionalQuadratic)
        own = self.step[whole].max(axis=1)
        value = self.value[scope]
        hidden = np.isnan(value)
        seen = ~np.isnan(self.value[whole]) & (self.step[whole] == own[:, None])
        measured = self.measured(scope, own)
        A = weight[:, None, None] * potential.A[part.row]
        return Forms(
            np.where(hidden, self.hidden_id[scope], -1).astype(np.int32),
            np.where(hidden, 0.0, value),
            np.where(measured, scope, -1).astype(np.int64),
            np.abs(np.diagonal(A, axis1=1, axis2=2)),
            A,
            weight[:, None] * potential.b[part.row],
            weight * potential.c[part.row],
            np.zeros(len(part)),
            own,
            seen.any(axis=1),
            leads,
            origin,
        )

    def soft(self, graph: FactorGraph, begin: int) -> Forms:
        """Soft evidence, as densities of what was measured given the real."""
        at = np.flatnonzero(~graph.evidence.is_hard)
        variable = graph.evidence.variable[at].astype(np.int64)
        precision, nothing = 1 / graph.evidence.var[at], np.full(len(at), -1)
        return Forms(
            np.stack([nothing, self.hidden_id[variable]], axis=1).astype(np.int32),
            np.stack([graph.evidence.value[at], np.zeros(len(at))], axis=1),
            np.stack([variable, nothing], axis=1),
            np.repeat(0.5 * precision[:, None], 2, axis=1),
            -0.5 * precision[:, None, None] * np.array([[1.0, -1.0], [-1.0, 1.0]]),
            np.zeros((len(at), 2)),
            0.5 * np.log(precision / (2 * np.pi)),
            np.zeros(len(at)),
            self.step[variable],
            np.ones(len(at), dtype=bool),
            np.zeros(len(at), dtype=bool),
            begin + at,
        )

    def quadratics(self, group: FactorGroup) -> Iterator[tuple[FactorGroup, IntArray]]:
        """Factors as quadratics of reals that may be known, and which they are.

        What is left of a function is quadratic, if ever, where all is known but one real that it
        measures and what is hidden.
        """
        potential, everything = group.potential, np.arange(len(group))
        if isinstance(potential, ConditionalQuadratic) and len(group):
            yield self._absorbed(group, tuple(range(potential.num_discrete))), everything
        elif isinstance(potential, Function):
            is_open = self.measured(group.scope, self.step[group.scope].max(axis=1, initial=0))
            for slot in range(group.arity):
                candidates = everything[is_open[:, slot]]
                known = ~np.isnan(self.value[group.scope[candidates]])
                known[:, slot] = False
                for slots, at in by_slots(known):
                    factors = candidates[at]
                    part = self._absorbed(group.take(factors), slots)
                    if isinstance(part.potential, ConditionalQuadratic):
                        place = slot - sum(earlier < slot for earlier in slots)
                        held = np.flatnonzero(part.potential.A[part.row, place, place] < 0)
                        is_open[factors[held]] = False
                        if len(held):
                            yield part.take(held), factors[held]

    def _absorbed(self, group: FactorGroup, slots: tuple[int, ...]) -> FactorGroup:
        """The factors without these slots, whose variables are observed."""
        if not slots:
            return group
        values = self.value[group.scope[:, list(slots)]]
        potential, row = group.potential.reduce(group.row, slots, values)
        left = [slot for slot in range(group.arity) if slot not in slots]
        return FactorGroup.unchecked(
            potential, group.scope[:, left], row.astype(np.int32), group.multiplicity, group.label
        )

"""The hard rules of a graph, and the joint states that they allow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph

MAX_CONSTRAINTS = 20_000
MAX_TRIES = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class _Constraint:
    """A set of discrete variables, and which of their joint states are possible."""

    scope: tuple[int, ...]
    allowed: NDArray[np.bool_]

    def may_hold(self, chosen: Mapping[int, int]) -> bool:
        """True if some possible joint state agrees with the chosen states."""
        at = tuple(chosen.get(variable, slice(None)) for variable in self.scope)
        return bool(np.any(self.allowed[at]))


@dataclass(frozen=True, slots=True, eq=False)
class Constraints:
    """The hard rules of a graph."""

    known: tuple[_Constraint, ...]
    unsure: NDArray[np.bool_]
    """(variable,): whether functions, or too many rules, may constrain it further."""
    num_states: NDArray[np.int32]  # (variable,)

    @classmethod
    def of(cls, graph: FactorGraph) -> Constraints:
        known: list[_Constraint] = []
        unsure = np.zeros(graph.num_variables, dtype=np.bool_)
        for group in graph.groups:
            form = group.potential.quadratic()
            if form is None:
                unsure[group.scope] = True
                continue
            possible = form.c > -np.inf
            hard = np.asarray(~possible.all(axis=1))
            factors = np.flatnonzero(hard[group.row])
            if len(known) + len(factors) > MAX_CONSTRAINTS:
                unsure[group.scope[factors]] = True
                continue
            num_discrete = group.potential.num_discrete_slots
            sizes = group.potential.slot_states[:num_discrete]
            known += [
                _Constraint(tuple(scope[:num_discrete].tolist()), possible[row].reshape(sizes))
                for scope, row in zip(group.scope[factors], group.row[factors], strict=True)
            ]
        return cls(tuple(known), unsure, graph.variables.num_states)

    def allow(self, states: Mapping[int, int]) -> bool | None:
        """True if all rules can hold in these states; None if that is not known."""
        chosen = dict(states)
        around = self._connected(set(chosen))
        if not all(constraint.may_hold(chosen) for constraint in around):
            return False
        variables = [v for c in around for v in c.scope if v not in chosen]
        found = self._complete(chosen, list(dict.fromkeys(variables)), around)
        return None if found and self.unsure[list(chosen)].any() else found

    def _connected(self, variables: set[int]) -> list[_Constraint]:
        """The rules that are connected with some variables."""
        left, found = list(self.known), []
        while near := [c for c in left if not variables.isdisjoint(c.scope)]:
            found += near
            left = [c for c in left if variables.isdisjoint(c.scope)]
            variables = variables.union(*(c.scope for c in near))
        return found

    def _complete(
        self, chosen: dict[int, int], free: list[int], around: list[_Constraint]
    ) -> bool | None:
        """Backtracking over the states of the free variables; None after too many tries."""
        of = {v: [constraint for constraint in around if v in constraint.scope] for v in free}
        next_state = [0] * (len(free) + 1)
        depth = tries = 0
        while depth < len(free):
            variable = free[depth]
            chosen.pop(variable, None)
            state = next_state[depth]
            if state == self.num_states[variable]:
                next_state[depth] = 0
                depth -= 1
                if depth < 0:
                    return False
                continue
            next_state[depth] += 1
            chosen[variable] = state
            tries += 1
            if tries > MAX_TRIES:
                return None
            if all(constraint.may_hold(chosen) for constraint in of[variable]):
                depth += 1
                next_state[depth] = 0
        return True

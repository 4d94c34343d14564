"""Whether some states of a few variables can be true together, as far as hard rules go."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph
from hylift.potentials import REAL, ConditionalQuadratic, Table

MAX_CONSTRAINTS = 20_000
MAX_TRIES = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class _Constraint:
    """A set of discrete variables, and which of their joint states are possible."""

    scope: tuple[int, ...]
    allowed: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Possible:
    """The hard rules of a graph."""

    constraints: tuple[_Constraint, ...]
    unsure: NDArray[np.bool_]
    """(variable,): whether there may be more about it, in a function of the user's own."""
    num_states: NDArray[np.int32]  # (variable,)

    @classmethod
    def of(cls, graph: FactorGraph) -> Possible:
        constraints: list[_Constraint] = []
        unsure = np.zeros(graph.num_variables, dtype=np.bool_)
        for group in graph.groups:
            potential = group.potential
            if isinstance(potential, Table):
                values = potential.log_table
            elif isinstance(potential, ConditionalQuadratic):
                values = potential.c
            else:
                unsure[group.scope] = True
                continue
            possible = values > -np.inf
            hard = ~np.asarray(possible.reshape(len(values), -1).all(axis=1))
            factors = np.flatnonzero(hard[group.row])
            if len(constraints) + len(factors) > MAX_CONSTRAINTS:
                unsure[group.scope[factors]] = True
                continue
            num_discrete = sum(states != REAL for states in potential.slot_states)
            constraints += [
                _Constraint(
                    tuple(group.scope[factor, :num_discrete].tolist()),
                    possible[group.row[factor]],
                )
                for factor in factors
            ]
        return cls(tuple(constraints), unsure, graph.variables.num_states)

    def allows(self, states: Mapping[int, int]) -> bool | None:
        """Whether all rules can hold with these states; None if it cannot be told."""
        chosen = dict(states)
        around = self._reachable(set(chosen))
        if any(not _may_hold(constraint, chosen) for constraint in around):
            return False
        variables = [v for c in around for v in c.scope if v not in chosen]
        found = self._complete(chosen, list(dict.fromkeys(variables)), around)
        return None if found and self.unsure[list(chosen)].any() else found

    def _reachable(self, variables: set[int]) -> list[_Constraint]:
        """The rules that are connected with some variables."""
        left, found = list(self.constraints), []
        grew = True
        while grew:
            near = [c for c in left if not variables.isdisjoint(c.scope)]
            found += near
            left = [c for c in left if variables.isdisjoint(c.scope)]
            variables = variables.union(*(c.scope for c in near)) if near else variables
            grew = bool(near)
        return found

    def _complete(
        self, chosen: dict[int, int], open_: list[int], around: list[_Constraint]
    ) -> bool | None:
        """Tries states of the other variables, one after the other, and goes back where stuck."""
        of: dict[int, list[_Constraint]] = {}
        for constraint in around:
            for variable in constraint.scope:
                of.setdefault(variable, []).append(constraint)
        next_state = [0] * (len(open_) + 1)
        depth = tries = 0
        while depth < len(open_):
            variable = open_[depth]
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
            if all(_may_hold(constraint, chosen) for constraint in of[variable]):
                depth += 1
                next_state[depth] = 0
        return True


def _may_hold(constraint: _Constraint, chosen: Mapping[int, int]) -> bool:
    """Whether some joint state of a constraint agrees with what is chosen."""
    at = tuple(chosen.get(variable, slice(None)) for variable in constraint.scope)
    return bool(np.any(constraint.allowed[at]))


def num_joint(sizes: NDArray[np.int32]) -> int:
    """The number of joint states of variables with so many states each."""
    return math.prod(sizes.tolist())

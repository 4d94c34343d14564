"""A rewritten graph, and the way back from answers about it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hylift.errors import UnsupportedError
from hylift.graph.factor_graph import FactorGraph
from hylift.graph.factors import FactorGroup, by_slots, merge_groups
from hylift.graph.variables import set_frozen
from hylift.numerics.grouping import group_rows
from hylift.numerics.segments import counts_up, first_equal, number_rows, offsets, ranges
from hylift.potentials.quadratic import closed_form

SAME = -1
"""`StateMap.table` of a variable that is also in the other graph."""
KNOWN = -1
"""`StateMap.variable` of a variable whose state is known."""


class Entries(NamedTuple):
    """Probabilities of states of some variables as sums over states of variables of another graph.

    Each entry adds `share` times the probability of a state there to that of a state here.
    """

    place: NDArray[np.int64]  # (entry,): which of the variables
    there: NDArray[np.int64]  # (entry,): the state of the variable that it depends on
    here: NDArray[np.int64]  # (entry,): the state of the variable
    share: NDArray[np.float64]  # (entry,)


class WayBack(ABC):
    """Answers about the variables of one graph from answers about those of another."""

    __slots__ = ()

    variable: NDArray[np.int32]
    """(variable,): the one of the other graph that its marginal depends on; KNOWN for none."""
    table: NDArray[np.int64]
    """(variable,): SAME where it is that variable, and so has its marginal."""

    @abstractmethod
    def entries(self, ids: NDArray[Any], size: NDArray[Any]) -> Entries:
        """The marginals of some discrete variables that are not the SAME and not KNOWN; size: the
        states of the variables that they depend on."""

    @abstractmethod
    def values(self, values: NDArray[Any], rng: np.random.Generator) -> NDArray[np.float64]:
        """(…, variable): states and reals, from those of the other graph, (…, its variable)."""

    @abstractmethod
    def in_other(
        self, groups: Sequence[FactorGroup], num_states: NDArray[np.int32]
    ) -> tuple[tuple[FactorGroup, ...], float]:
        """Factors as factors of the other graph, with these (variable,) numbers of states, and the
        sum of those that are constant there: with the same expected log-values."""


@dataclass(frozen=True, slots=True, eq=False)
class StateMap(WayBack):
    """Each variable of one graph as a function of at most one variable of another.

    Variable i is variable `variable[i]` of the other graph where `table[i]` is SAME; else its state
    is `states[table[i] + s]` in state s of that variable, and `states[table[i]]` where it is KNOWN.
    """

    variable: NDArray[np.int32]  # (variable,)
    table: NDArray[np.int64]  # (variable,)
    states: NDArray[np.int32]

    def __post_init__(self) -> None:
        set_frozen(
            self,
            variable=(self.variable, np.int32),
            table=(self.table, np.int64),
            states=(self.states, np.int32),
        )

    @classmethod
    def same(cls, count: int) -> StateMap:
        """The first variables of the other graph are those of this one."""
        same = np.full(count, SAME, dtype=np.int64)
        return cls(np.arange(count, dtype=np.int32), same, np.zeros(0, dtype=np.int32))

    @classmethod
    def of_kept(cls, kept: NDArray[Any], state: NDArray[Any]) -> StateMap:
        """The variables `kept` are in the other graph, in their order; of the others the states
        are known. kept: increasing ids; state: (variable,), read where it is not kept."""
        variable = np.full(len(state), KNOWN, dtype=np.int32)
        variable[kept] = np.arange(len(kept))
        table = np.full(len(state), SAME, dtype=np.int64)
        gone = np.flatnonzero(variable == KNOWN)
        table[gone] = np.arange(len(gone))
        return cls(variable, table, state[gone].astype(np.int32))

    def __len__(self) -> int:
        return len(self.variable)

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """(variable,): whether its state is known."""
        return self.variable == KNOWN

    @property
    def is_mapped(self) -> NDArray[np.bool_]:
        """(variable,): whether it is a function of a variable of the other graph."""
        return (self.table != SAME) & (self.variable != KNOWN)

    def take(self, ids: NDArray[Any]) -> StateMap:
        """The map of some variables."""
        return StateMap(self.variable[ids], self.table[ids], self.states)

    def then(self, later: StateMap, num_states: NDArray[Any]) -> StateMap:
        """This map, and one from its other graph into a third, with these (variable,) states."""
        there = later.take(np.where(self.is_known, 0, self.variable)) if len(later) else None
        if there is None:
            return self
        variable = np.where(self.is_known, KNOWN, there.variable)
        passes = self.table == SAME
        behind = np.where(there.table == SAME, SAME, there.table + len(self.states))
        table = np.where(passes, behind, self.table)
        both = np.flatnonzero(self.is_mapped & (there.table != SAME))
        if not len(both):
            return StateMap(variable, table, np.concatenate([self.states, later.states]))
        # What both maps change gets a table of its own.
        size = np.where(variable[both] == KNOWN, 1, num_states[np.maximum(variable[both], 0)])
        inner = later.states[ranges(there.table[both], size)]
        own = self.states[np.repeat(self.table[both], size) + inner]
        table[both] = len(self.states) + len(later.states) + offsets(size)[:-1]
        return StateMap(variable, table, np.concatenate([self.states, later.states, own]))

    def entries(self, ids: NDArray[Any], size: NDArray[Any]) -> Entries:
        place, there = np.repeat(np.arange(len(ids)), size), counts_up(size)
        here = self.states[self.table[ids][place] + there].astype(np.int64)
        return Entries(place, there, here, np.ones(len(place)))

    def values(
        self, values: NDArray[Any], rng: np.random.Generator | None = None
    ) -> NDArray[np.float64]:
        known, mapped = self.is_known, np.flatnonzero(self.is_mapped)
        found = np.empty((*values.shape[:-1], len(self)))
        found[..., ~known] = values[..., self.variable[~known]]
        found[..., known] = self.states[self.table[known]]
        found[..., mapped] = self.states[self.table[mapped] + found[..., mapped].astype(np.int64)]
        return found

    def in_other(
        self, groups: Sequence[FactorGroup], num_states: NDArray[np.int32]
    ) -> tuple[tuple[FactorGroup, ...], float]:
        found: list[FactorGroup] = []
        constant = 0.0
        for group in groups:
            for part in self._without_known(group):
                if not part.arity:
                    constant += part.log_sum(np.zeros(0))
                    continue
                mapped = (self.table[part.scope] != SAME).any(axis=1)
                rest = part.take(np.flatnonzero(~mapped))
                if len(rest):
                    found.append(replace(rest, scope=self.variable[rest.scope]))
                found += self._mapped(part.take(np.flatnonzero(mapped)), num_states)
        return merge_groups(found), constant

    def _without_known(self, group: FactorGroup) -> Iterator[FactorGroup]:
        """The factors of a group, without slots whose states are known."""
        for slots, factors in by_slots(self.is_known[group.scope]):
            some = group if len(factors) == len(group) else group.take(factors)
            if not slots:
                yield some
                continue
            values = self.states[self.table[some.scope[:, list(slots)]]].astype(np.float64)
            potential, row = some.potential.reduce(some.row, slots, values)
            left = [slot for slot in range(group.arity) if slot not in slots]
            yield replace(
                some, potential=potential, scope=some.scope[:, left], row=row.astype(np.int32)
            )

    def _mapped(self, group: FactorGroup, num_states: NDArray[np.int32]) -> Iterator[FactorGroup]:
        """Factors with tables over the states of the other graph's variables, by their shapes."""
        if not len(group):
            return
        potential, count = closed_form(group.potential), group.potential.num_discrete_slots
        if potential is None:
            raise UnsupportedError(
                f"{group.named()} is a function of a variable that hard rules tie to others"
            )
        old = group.scope[:, :count]
        new = self.variable[old]
        # (factor, slot): the first slot with the same variable of the other graph
        first = first_equal(new)
        shape, num_shapes = group_rows(np.hstack([first, num_states[new]]).astype(np.int32))
        for number in range(num_shapes):
            some = np.flatnonzero(shape == number)
            slots = np.unique(first[some[0]])
            sizes = num_states[new[some[0], slots]].tolist()
            row, first_row = number_rows(
                group.row[some].astype(np.int64), *(self.table[old[some]] - SAME).T
            )
            example = some[first_row]
            joint = np.zeros((len(example), *(1 for _ in sizes)), dtype=np.int64)
            for slot, place in enumerate(np.searchsorted(slots, first[some[0]]).tolist()):
                shaped = [len(example), *(1 for _ in sizes)]
                shaped[1 + place] = sizes[place]
                state = self._states_of(old[example, slot], sizes[place]).reshape(shaped)
                joint = joint * potential.slot_states[slot] + state
            of = group.row[example].reshape(-1, *(1 for _ in sizes))
            parts = (
                part.reshape(len(part), -1, *part.shape[1 + count :])[of, joint]
                for part in potential.coefficients
            )
            scope = np.hstack([new[some][:, slots], self.variable[group.scope[some, count:]]])
            yield replace(
                group.take(some),
                potential=type(potential)(*parts),
                scope=scope,
                row=row.astype(np.int32),
            )

    def _states_of(self, variable: NDArray[Any], size: int) -> NDArray[np.int64]:
        """(variable, state): its state in each of the states of the variable it depends on."""
        table, state = self.table[variable][:, None], np.arange(size)[None]
        at = np.where(table == SAME, 0, table + state)
        return np.where(table == SAME, state, self.states[at]).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Rewritten:
    """A graph of the same distribution as another: log Z is the same, and answers about the
    variables of the other follow from answers about its own.

    One that was made to be maximised has the same maximum instead of the same log Z."""

    name: str
    graph: FactorGraph
    """Ground, without evidence."""
    back: WayBack
    summary: str
    """Sizes, for explanations: `12 variables in 4 clusters of up to 3 joint states`."""
    copies: NDArray[np.int64] | None = None
    """(variable of `graph`,): how many copies of its part there were, which are independent: log Z
    is that of each part times its copies, and the constant of the graph before. None for one each.
    No other rewrite follows."""
    keeps_maximum: bool = True
    """The best assignment to its variables leads back to the best one before."""

"""Hard factors as relations: possible joint states, found by propagation and by joins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from hylift.errors import ImpossibleEvidenceError
from hylift.graph.factor_graph import FactorGraph
from hylift.numerics.grouping import by_number, first_members, group_rows
from hylift.numerics.segments import counts_up, inverse, offsets, ranges
from hylift.numerics.sparse import connected_by
from hylift.words import counted, listed

Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]

BLOCK = 1 << 22
"""Entries of the largest temporary."""
MOST_ROUNDS = 10_000
"""Rounds of propagation; where more would be needed, some states that are impossible stay."""
MOST_MEMBERS = 1 << 16
"""Variables of one part whose joint states are listed."""
MOST_JOINT = 1 << 21
"""Joint states that are extended together, at most, where no relation excludes any."""


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """Factors that allow some joint states of their discrete slots only."""

    scope: NDArray[np.int32]  # (factor, slot)
    row: NDArray[np.int32]  # (factor,)
    possible: Flags  # (row, states…)

    def __len__(self) -> int:
        return len(self.scope)

    def take(self, factors: NDArray[Any]) -> Relation:
        return Relation(self.scope[factors], self.row[factors], self.possible)

    def links(self, num_variables: int) -> tuple[NDArray[np.int32], Ids]:
        """The factors of each variable, and where they begin, (variable + 1,)."""
        factor = np.repeat(np.arange(len(self), dtype=np.int32), self.scope.shape[1])
        return by_number(self.scope.reshape(-1), num_variables, factor)

    def blocks(self) -> Iterator[Relation]:
        """The factors in blocks of limited joint states."""
        width = max(1, BLOCK // max(1, self.possible[0].size))
        for first in range(0, len(self), width):
            yield self.take(np.arange(first, min(first + width, len(self))))


def relations_of(graph: FactorGraph) -> list[Relation]:
    """The hard factors of a graph without evidence, of tables and quadratics."""
    found = []
    for group in graph.groups:
        form, count = group.potential.quadratic(), group.potential.num_discrete_slots
        if form is None or not count or not len(group):
            continue
        possible = np.asarray(form.c > -np.inf, dtype=bool)
        factors = np.flatnonzero((form.c == -np.inf).any(axis=1)[group.row])
        if len(factors):
            table = possible.reshape(-1, *group.potential.slot_states[:count])
            found.append(Relation(group.scope[factors, :count], group.row[factors], table))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Possible:
    """The states of each variable that no relation excludes by itself."""

    graph: FactorGraph
    first: Ids  # (variable + 1,): where its states begin in `state`
    state: Flags

    @classmethod
    def of(cls, graph: FactorGraph, relations: Sequence[Relation]) -> Possible:
        """By propagation: a state without support in a relation is impossible."""
        first = offsets(graph.variables.num_states)
        found = cls(graph, first, np.ones(first[-1], dtype=bool))
        owner = np.repeat(np.arange(graph.num_variables), np.diff(first))
        links = [relation.links(graph.num_variables) for relation in relations]
        active = [np.arange(len(relation)) for relation in relations]
        for _ in range(MOST_ROUNDS):
            gone = [
                found._exclude(some)
                for relation, factors in zip(relations, active, strict=True)
                for some in relation.take(factors).blocks()
            ]
            changed = np.unique(owner[np.concatenate([np.zeros(0, dtype=np.int64), *gone])])
            if not len(changed):
                break
            active = [
                np.unique(factor[ranges(start[changed], start[changed + 1] - start[changed])])
                for factor, start in links
            ]
        return found

    def take(self, graph: FactorGraph, keep: Flags) -> Possible:
        """Of the variables to keep (variable,), which are those of another graph."""
        states = np.diff(self.first)
        return Possible(graph, offsets(states[keep]), self.state[np.repeat(keep, states)])

    @property
    def count(self) -> Ids:
        """(variable,): its possible states; 0 for a real."""
        total = offsets(self.state)
        return np.diff(total[self.first])

    def _exclude(self, relation: Relation) -> Ids:
        """Exclude the states that have no support in these factors, and return them."""
        allowed = relation.possible[relation.row] & self.within(relation)
        gone = [np.zeros(0, dtype=np.int64)]
        for slot in range(relation.scope.shape[1]):
            others = tuple(axis for axis in range(1, allowed.ndim) if axis != 1 + slot)
            at = self.first[relation.scope[:, slot]][:, None] + np.arange(allowed.shape[1 + slot])
            without = np.asarray(~allowed.any(axis=others))
            empty = np.flatnonzero(without.all(axis=1))
            if len(empty):
                raise contradiction(self.graph, relation.scope[empty[:1], slot])
            lost = at[without]
            gone.append(lost[self.state[lost]])
            self.state[lost] = False
        found = np.concatenate(gone)
        self._check_some(relation, found)
        return found

    def _check_some(self, relation: Relation, gone: Ids) -> None:
        """Raise if a variable of these factors has lost its last state."""
        if not len(gone):
            return
        variable = np.unique(relation.scope)
        size = self.first[variable + 1] - self.first[variable]
        is_left = self.state[ranges(self.first[variable], size)]
        is_empty = ~np.logical_or.reduceat(is_left, offsets(size)[:-1])
        if is_empty.any():
            raise contradiction(self.graph, variable[is_empty][:1])

    def within(self, relation: Relation) -> Flags:
        """(factor, states…): whether all states are possible."""
        found = np.ones((len(relation),) + (1,) * relation.scope.shape[1], dtype=bool)
        for slot, size in enumerate(relation.possible.shape[1:]):
            at = self.first[relation.scope[:, slot]][:, None] + np.arange(size)
            shape = [len(relation)] + [1] * relation.scope.shape[1]
            shape[1 + slot] = size
            found = found & self.state[at].reshape(shape)
        return found

    def tying(self, relation: Relation) -> Relation:
        """The factors that still exclude a joint state of possible states."""
        ties = [
            (self.within(some) & ~some.possible[some.row]).reshape(len(some), -1).any(axis=1)
            for some in relation.blocks()
        ]
        return relation.take(np.flatnonzero(np.concatenate([np.zeros(0, dtype=bool), *ties])))


def contradiction(graph: FactorGraph, members: NDArray[Any]) -> ImpossibleEvidenceError:
    """The error that hard factors leave some variables no joint state."""
    names = [f"'{graph.variables.names[int(member)]}'" for member in members[:3]]
    names += [counted(len(members) - 3, "more variable")] if len(members) > 3 else []
    state = "state" if len(names) == 1 else "joint state"
    return ImpossibleEvidenceError(
        f"no {state} of {listed(names)} is possible: the hard constraints and the evidence "
        "contradict each other"
    )


@dataclass(frozen=True, slots=True, eq=False)
class JointStates:
    """The possible joint states of parts of equally many variables, which relations tie."""

    member: Ids  # (part, member): variables, increasing
    ptr: Ids  # (part + 1,): where the joint states of a part begin
    states: NDArray[np.int32]  # (joint state, member), in lexical order within a part

    @classmethod
    def joined(cls, several: Sequence[JointStates]) -> JointStates:
        """All parts of several, which have equally many members."""
        count = np.concatenate([np.diff(one.ptr) for one in several])
        member = np.concatenate([one.member for one in several])
        return cls(member, offsets(count), np.concatenate([one.states for one in several]))


def joint_states(
    possible: Possible, relations: Sequence[Relation], most_states: int
) -> list[JointStates]:
    """The parts of variables that relations tie, or that have impossible states, with at most so
    many joint states. Raises where a part has none."""
    graph, count = possible.graph, possible.count
    tying = [possible.tying(relation) for relation in relations]
    part = connected_by(graph.num_variables, (relation.scope for relation in tying))
    wanted = (count > 0) & (count < np.diff(possible.first))
    for relation in tying:
        wanted[relation.scope] = True
    members = np.flatnonzero(wanted)
    if not len(members):
        return []
    _, part_of = np.unique(part[members], return_inverse=True)
    order = _order(members, graph.num_variables, tying)
    members, part_of = members[order], part_of[order]
    by_part = np.argsort(part_of, kind="stable")
    members, part_of = members[by_part], part_of[by_part]
    size = np.bincount(part_of)
    position = np.zeros(graph.num_variables, dtype=np.int64)
    position[members] = counts_up(size)
    owner = np.full(graph.num_variables, -1)
    owner[members] = part_of
    checks = [check for relation in tying for check in _checks(relation, position)]
    search = _Search(possible, offsets(size), members, position, owner, checks, most_states)
    most = np.minimum(np.bincount(part_of, np.log(count[members])), np.log(4.0 * most_states))
    block = (np.cumsum(np.exp(most)) // MOST_JOINT).astype(np.int64)
    runs = (search.run(np.flatnonzero(block == number)) for number in np.unique(block))
    by_size: dict[int, list[JointStates]] = {}
    for found in (found for run in runs for found in run):
        by_size.setdefault(found.member.shape[1], []).append(found)
    return [JointStates.joined(same) for same in by_size.values()]


def _order(members: Ids, num_variables: int, relations: Sequence[Relation]) -> Ids:
    """Positions of members such that neighbours in relations come soon after each other."""
    place = inverse(members, num_variables)
    ends = [
        place[r.scope[:, [one, other]]]
        for r in relations
        for one in range(r.scope.shape[1])
        for other in range(r.scope.shape[1])
        if one != other
    ]
    pairs = np.concatenate([np.zeros((0, 2), dtype=np.int64), *ends])
    links = csr_array((np.ones(len(pairs)), pairs.T), shape=(len(members),) * 2)
    return np.asarray(reverse_cuthill_mckee(links, symmetric_mode=True)).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class _Check:
    """Which states of the first slots of some relations, in the order of the search, can still be
    completed. It applies once the last of these slots has a state."""

    scope: NDArray[np.int32]  # (factor, slot)
    row: NDArray[np.int32]  # (factor,)
    possible: Flags  # (row, states…)
    at: Ids  # (factor,): position of the last slot


def _checks(relation: Relation, position: Ids) -> Iterator[_Check]:
    """The checks of a relation, for each number of its slots that have states."""
    if not len(relation):
        return
    orders = np.argsort(position[relation.scope], axis=1, kind="stable").astype(np.int32)
    which, _ = group_rows(orders)
    for number, order in enumerate(orders[first_members(which)].tolist()):
        some = relation.take(np.flatnonzero(which == number))
        scope = some.scope[:, order]
        possible = some.possible.transpose(0, *(1 + slot for slot in order))
        for count in range(2, len(order) + 1):
            rest = tuple(range(1 + count, possible.ndim))
            some_states = np.asarray(possible.any(axis=rest))
            if not some_states.all():
                at = position[scope[:, count - 1]]
                yield _Check(scope[:, :count], some.row, some_states, at)


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """Joint states of many parts at once, extended variable by variable."""

    possible: Possible
    ptr: Ids  # (part + 1,)
    members: Ids  # of each part, in the order of the search
    position: Ids  # (variable,)
    owner: Ids  # (variable,): its part; -1 for none
    checks: list[_Check]
    most_states: int

    def run(self, parts: Ids) -> Iterator[JointStates]:
        """The joint states of these parts, by numbers of members."""
        size = np.diff(self.ptr)
        part = parts[size[parts] <= MOST_MEMBERS]
        states, step = np.zeros((len(part), 0), dtype=np.int32), 0
        while len(part):
            done = size[part] == step
            if done.any():
                yield self._finished(part[done], states[done])
                part, states = part[~done], states[~done]
            if len(part):
                part, states = self._small(*self._extended(part, states, step))
            step += 1

    def _extended(
        self, part: Ids, states: NDArray[np.int32], step: int
    ) -> tuple[Ids, NDArray[np.int32]]:
        """All joint states with one more variable that no check excludes."""
        variable = self.members[self.ptr[part] + step]
        first, state = self.possible.first, self.possible.state
        size = (first[variable + 1] - first[variable]).astype(np.int64)
        from_, new = np.repeat(np.arange(len(part)), size), counts_up(size)
        fits = state[np.repeat(first[variable], size) + new]
        from_, new = from_[fits], new[fits]
        longer = np.empty((len(from_), step + 1), dtype=np.int32)
        longer[:, :step], longer[:, step] = states[from_], new
        owner = part[from_]
        keep = np.ones(len(longer), dtype=bool)
        for check in self.checks:
            factors = np.flatnonzero(check.at == step)
            if len(factors):
                self._apply(check, factors, owner, longer, keep)
        self._check_alive(part, owner[keep])
        return owner[keep], longer[keep]

    def _apply(
        self,
        check: _Check,
        factors: Ids,
        owner: Ids,
        states: NDArray[np.int32],
        keep: Flags,
    ) -> None:
        """Drop the joint states that these factors exclude."""
        of = self.owner[check.scope[factors, 0]]
        factors = factors[np.argsort(of, kind="stable")]
        ptr = offsets(np.bincount(of, minlength=len(self.ptr) - 1))
        count = np.diff(ptr)[owner]
        factor = factors[ranges(ptr[owner], count)]
        joint = np.repeat(np.arange(len(states)), count)
        places = self.position[check.scope[factor]]
        index = tuple(states[joint, places[:, slot]] for slot in range(places.shape[1]))
        keep[joint[~check.possible[(check.row[factor], *index)]]] = False

    def _check_alive(self, before: Ids, after: Ids) -> None:
        """Raise if a part has no joint state left."""
        gone = np.setdiff1d(before, after)
        if len(gone):
            at = int(gone[0])
            raise contradiction(
                self.possible.graph, np.sort(self.members[self.ptr[at] : self.ptr[at + 1]])
            )

    def _small(self, part: Ids, states: NDArray[np.int32]) -> tuple[Ids, NDArray[np.int32]]:
        """Without the parts that have too many joint states, so far, to go on with."""
        count = np.bincount(part, minlength=len(self.ptr) - 1)
        limit = 4 * self.most_states
        while (count[count <= limit]).sum() * states.shape[1] > 16 * BLOCK:
            limit //= 2
        keep = count[part] <= limit
        return (part, states) if keep.all() else (part[keep], states[keep])

    def _finished(self, part: Ids, states: NDArray[np.int32]) -> JointStates:
        """Parts with few enough joint states, with these in lexical order."""
        keep = np.bincount(part)[part] <= self.most_states
        part, states = part[keep], states[keep]
        own, which, count = np.unique(part, return_inverse=True, return_counts=True)
        member = self.members[self.ptr[own][:, None] + np.arange(states.shape[1])]
        order = np.argsort(member, axis=1)
        states = np.take_along_axis(states, order[which], axis=1)
        states = states[np.lexsort((*states.T[::-1], part))]
        return JointStates(np.take_along_axis(member, order, axis=1), offsets(count), states)

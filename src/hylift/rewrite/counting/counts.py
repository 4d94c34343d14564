"""Twins replaced by counts: how many of them have each state.

Any of a class of twins may be exchanged, so that the density of a joint state depends only on how
many members have each state: n + 1 counts in place of 2ⁿ joint states of n Booleans. The factors of
all pairs, or of everybody with somebody else, are then tables of counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.special import gammaln

from hylift.errors import UnsupportedError
from hylift.graph.domains import categorical
from hylift.graph.evidence import Evidence
from hylift.graph.factor_graph import FactorGraph
from hylift.graph.factors import FactorGroup
from hylift.graph.names import Names
from hylift.graph.variables import Variables
from hylift.numerics.grouping import first_members, group_rows
from hylift.numerics.segments import first_equal, inverse, offsets
from hylift.potentials import Table
from hylift.potentials.quadratic import closed_form
from hylift.rewrite.counting.leaves import weighted_sum
from hylift.rewrite.counting.twins import twins

Floats = NDArray[np.float64]
Numbers = NDArray[np.int32]
Ids = NDArray[np.int64]

LEAST = 3
"""Twins from which on they are counted."""
MOST_STATES = 2**16
"""Counts of one class of twins."""
MOST_ENTRIES = 2**22
"""Entries of a table of counts."""


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """Classes of twins of a graph."""

    number: Numbers  # (variable,): its class, or -1
    size: Ids  # (class,): members
    num_states: Ids  # (class,): states of a member

    @classmethod
    def of(cls, graph: FactorGraph, number: Numbers) -> Classes:
        member = np.flatnonzero(number >= 0)
        num_states = np.zeros(int(number.max(initial=-1)) + 1, dtype=np.int64)
        num_states[number[member]] = graph.variables.num_states[member]
        return cls(number, np.bincount(number[member], minlength=len(num_states)), num_states)

    def __len__(self) -> int:
        return len(self.size)

    @property
    def num_counts(self) -> Floats:
        """(class,): numbers of counts that members may have."""
        found = np.ones(len(self))
        for n, k, some in self.shapes():
            found[some] = math.comb(n + k - 1, k - 1)
        return found

    def shapes(self) -> list[tuple[int, int, Ids]]:
        """Numbers of members and of their states, and the classes that have them."""
        shape = np.column_stack([self.size, self.num_states]).astype(np.int32)
        alike, num_shapes = group_rows(shape)
        every = [np.flatnonzero(alike == number) for number in range(num_shapes)]
        return [(*shape[some[0]].tolist(), some) for some in every]

    def alike(self, group: FactorGroup) -> tuple[Numbers, Ids]:
        """(factor,): the same for factors of equal parameters whose variables are the same, or of
        the same classes; and (number,): a factor that has it."""
        own = self.number[group.scope]
        columns = np.where(own >= 0, len(self.number) + own, group.scope)
        number, _ = group_rows(np.column_stack([group.row, columns]).astype(np.int32))
        return number, first_members(number)

    def without(self, dropped: NDArray[np.bool_]) -> Classes:
        """The classes that are not dropped, (class,)."""
        new = np.append(np.where(dropped, -1, np.cumsum(~dropped) - 1), -1)
        return Classes(
            new[self.number].astype(np.int32), self.size[~dropped], self.num_states[~dropped]
        )


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """A graph with a variable per class of twins, the counts of its members' states."""

    graph: FactorGraph
    """Its last variables are the counts."""
    kept: Ids
    """(variable of `graph` that is no count,): its id in the graph before."""
    classes: Classes

    def restated(self, group: FactorGroup) -> list[tuple[FactorGroup, Ids]]:
        """Factors over `graph` whose log-values have the expectations of those of factors over the
        graph before; and (factor,): which of these."""
        return _restated(group, self.classes, self.new_id())

    def restored(self, values: Floats, rng: np.random.Generator | None = None) -> Floats:
        """(…, variable of the graph before): values of `graph`'s, (…, its variable); members have
        the states of their counts in order, or in a random one."""
        found = np.empty((*values.shape[:-1], len(self.classes.number)))
        found[..., self.kept] = values[..., : len(self.kept)]
        counts = values[..., len(self.kept) :].astype(np.int64)
        for n, k, some in self.classes.shapes():
            ends = np.cumsum(compositions(n, k)[counts[..., some]], axis=-1)
            order = np.broadcast_to(np.arange(n), (*ends.shape[:-1], n))
            if rng is not None:
                order = rng.permuted(order, axis=-1)
            state = (order[..., None] >= ends[..., None, :]).sum(axis=-1)
            found[..., self._members(n, some)] = state
        return found

    def _members(self, size: int, classes: Ids) -> Ids:
        """(class, member): ids in the graph before of the members of classes of one size."""
        order = np.argsort(self.classes.number, kind="stable")[len(self.kept) :]
        start = offsets(self.classes.size)[classes]
        return order[start[:, None] + np.arange(size)]

    def new_id(self) -> tuple[Numbers, Numbers]:
        """Ids in `graph` of variables of the graph before, and of classes."""
        variable = inverse(self.kept, len(self.classes.number), np.int32)
        return variable, len(self.kept) + np.arange(len(self.classes), dtype=np.int32)


def find_classes(graph: FactorGraph) -> Classes:
    """The classes of twins that are worth counting. graph: ground and without evidence."""
    return _affordable(graph, Classes.of(graph, twins(graph, LEAST)))


def count_twins(graph: FactorGraph, classes: Classes, *, maximise: bool = False) -> Counted:
    """The graph with classes of twins replaced by counts of their states.

    With `maximise` the weight of a count is that of one of its joint states, not of all.
    """
    kept = np.flatnonzero(classes.number < 0)
    counted = Counted(graph, kept, classes)
    if not len(classes):
        return counted
    new_id = counted.new_id()
    groups = []
    for group in graph.groups:
        touched = (classes.number[group.scope] >= 0).any(axis=1)
        rest = group.take(np.flatnonzero(~touched)) if touched.any() else group
        if len(rest):
            groups.append(rest.changed(scope=new_id[0][rest.scope]))
        own = group.take(np.flatnonzero(touched))
        if len(own):
            number, first = classes.alike(own)
            times = np.bincount(number, own.multiplicity).astype(np.float64)
            groups += [
                _to_the_power(part, times[some])
                for part, some in _restated(own.take(first), classes, new_id)
            ]
    if not maximise:
        groups += _ways(classes, new_id[1])
    smaller = FactorGraph.unchecked(
        _variables(graph.variables, kept, classes), groups, Evidence.none(), graph.log_constant
    )
    return Counted(smaller, kept, classes)


def _variables(variables: Variables, kept: Ids, classes: Classes) -> Variables:
    """The variables that are kept, and a count per class."""
    sizes, which = np.unique(classes.num_counts.astype(np.int64), return_inverse=True)
    domains = [categorical(int(size)) for size in sizes]
    member = np.flatnonzero(classes.number >= 0)
    first = member[np.unique(classes.number[member], return_index=True)[1]]
    labels = pc.binary_join_element_wise("count of atoms like", variables.names.render(first), " ")
    return variables.take(kept).with_more(domains, which.reshape(-1), Names.listed(labels))


def _ways(classes: Classes, count: Numbers) -> list[FactorGroup]:
    """Per count, the number of joint states that have it."""
    found = []
    for n, k, some in classes.shapes():
        ways = gammaln(n + 1) - gammaln(compositions(n, k) + 1).sum(axis=1)
        found.append(FactorGroup(Table.shared(ways), count[some][:, None], label="counts"))
    return found


def _to_the_power(group: FactorGroup, times: Floats) -> FactorGroup:
    """Factors of multiplicity 1 whose log-values are so many (factor,) times those of others."""
    powers, power = np.unique(times, return_inverse=True)
    row, _ = group_rows(np.column_stack([group.row, power.reshape(-1)]).astype(np.int32))
    example = first_members(row)
    potential = closed_form(group.potential.take(group.row[example]))
    assert potential is not None
    by = powers[power.reshape(-1)[example]]
    scaled = [each * by.reshape(-1, *(1,) * (each.ndim - 1)) for each in potential.coefficients]
    ones = np.ones(len(group))
    return group.changed(potential=type(potential)(*scaled), row=row, multiplicity=ones)


def _restated(
    group: FactorGroup, classes: Classes, new_id: tuple[Numbers, Numbers]
) -> list[tuple[FactorGroup, Ids]]:
    """See `Counted.restated`."""
    split = group.potential.num_discrete_slots
    number = classes.number[group.scope[:, :split]]
    # (factor, slot): the first slot of the same class, itself for a variable that is kept
    first = first_equal(np.where(number >= 0, number, -1 - np.arange(split)))
    size = np.where(number >= 0, classes.size[number] if len(classes) else 0, 0)
    shape, num_shapes = group_rows(np.hstack([first, size]).astype(np.int32))
    found = []
    for place in range(num_shapes):
        some = np.flatnonzero(shape == place)
        part, heads = group.take(some), first[some[0]].tolist()
        sizes = size[some[0]].tolist()
        kept = [slot for slot in range(split) if not sizes[slot]]
        lead = [slot for slot in range(split) if sizes[slot] and heads[slot] == slot]
        scope = np.hstack(
            [
                new_id[0][part.scope[:, kept]],
                new_id[1][number[some][:, lead]],
                new_id[0][part.scope[:, split:]],
            ]
        )
        if lead:
            part = _averaged(part, heads, sizes, lead)
        found.append((part.changed(scope=scope), some))
    return found


def _averaged(
    group: FactorGroup, heads: list[int], sizes: list[int], lead: list[int]
) -> FactorGroup:
    """Factors whose discrete slots are variables that are kept, then counts; with their old
    scopes. heads, sizes: (slot,): first slot of the same class, its members; lead: the first."""
    potential = closed_form(group.potential)
    if potential is None:
        raise UnsupportedError(f"{group.named()} is a function of variables that are counted")
    rows, row = np.unique(group.row, return_inverse=True)
    states, split = potential.slot_states, len(heads)
    found = []
    for each in potential.coefficients:
        values, names = each[rows], [*range(1 + split)]
        for head in lead:
            slots = [slot for slot in range(split) if heads[slot] == head]
            weights = drawn(sizes[head], states[head], len(slots))
            inner = [1 + slot for slot in slots]
            rest = [name for name in names if name not in inner]
            new = 1 + split + head
            values = weighted_sum(values, names, weights, [new, *inner], [*rest, new])
            names = [*rest, new]
        found.append(values)
    return group.changed(potential=type(potential)(*found), row=row.reshape(-1))


def _affordable(graph: FactorGraph, classes: Classes) -> Classes:
    """The classes whose counts are few enough, alone and together with others in a factor."""
    classes = classes.without(classes.num_counts > MOST_STATES)
    while len(classes):
        sizes = np.append(classes.num_counts, np.nan)
        worst, entries = -1, float(MOST_ENTRIES)
        for group in graph.groups:
            number = classes.number[group.scope]
            number = number[(number >= 0).any(axis=1)]
            if not len(number) or group.arity < 2:
                continue
            together = number[first_members(group_rows(np.sort(number, axis=1))[0])]
            together = np.sort(together, axis=1)
            is_first = np.append(
                np.ones((len(together), 1), dtype=bool), together[:, 1:] != together[:, :-1], axis=1
            )
            counts = np.where((together >= 0) & is_first, sizes[together], 1.0)
            most = counts.prod(axis=1)
            at = int(np.argmax(most))
            if most[at] > entries:
                entries, worst = most[at], int(together[at, np.argmax(counts[at])])
        if worst < 0:
            return classes
        classes = classes.without(np.arange(len(classes)) == worst)
    return classes


def compositions(total: int, parts: int) -> Ids:
    """(composition, part): all ways to write a number as an ordered sum, the first falling."""
    found = np.array([[total]], dtype=np.int64)
    for _ in range(parts - 1):
        left = found[:, -1]
        size = left + 1
        start = np.repeat(np.cumsum(size) - size, size)
        taken = np.arange(size.sum()) - start  # 0 … left for the rest
        found = np.repeat(found, size, axis=0)
        found = np.column_stack([found[:, :-1], found[:, -1] - taken, taken])
    return found


def drawn(size: int, num_states: int, times: int) -> Floats:
    """(count, state, state, …): probabilities of the states of so many members of a class, drawn
    one after the other without replacement, given each count."""
    counts = compositions(size, num_states)
    probs = np.ones(len(counts))
    for place in range(times):
        left = np.broadcast_to(
            counts.reshape(len(counts), *(1,) * place, num_states), (*probs.shape, num_states)
        ).astype(np.float64)
        for earlier in range(place):
            taken = np.eye(num_states)
            left = left - taken.reshape(
                1, *(num_states if axis == earlier else 1 for axis in range(place)), num_states
            )
        probs = probs[..., None] * np.maximum(left, 0.0) / (size - place)
    return probs

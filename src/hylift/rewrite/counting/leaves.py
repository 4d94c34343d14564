"""Discrete variables of a single factor, summed out of it.

An example is `Friends(x, y)` in `Friends(x, y) ^ Smokes(x) => Smokes(y)`: without evidence on
friends, this rule and the weight of friendship are one table of `Smokes(x)` and `Smokes(y)`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from hylift.errors import UnsupportedError
from hylift.graph.factor_graph import FactorGraph
from hylift.graph.factors import FactorGroup, by_slots
from hylift.numerics.segments import inverse, number_lists, number_rows
from hylift.potentials import Table
from hylift.potentials.base import along_axis
from hylift.potentials.quadratic import as_table, closed_form
from hylift.rewrite.kinds import dependent
from hylift.rewrite.leaves import Leaves, Remaining

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ids = NDArray[np.int64]


class CountedLeaves(Leaves):
    """Leaves of one kind beside variables that are counted."""

    __slots__ = ()

    @abstractmethod
    def averaged(self, group: FactorGroup, place: Ids) -> Iterable[FactorGroup]:
        """Factors without these leaves, with the expectations of their log-values over them; place:
        (variable,): its place among the leaves, or -1."""


L = TypeVar("L", bound=CountedLeaves)


def restated(left: Remaining[L], group: FactorGroup) -> list[FactorGroup]:
    """Factors over what is left with the expected log-values of factors over the graph before."""
    parts, new_id = [group], left.new_id
    for one in left.eliminated:
        place = inverse(one.variables.reshape(-1), len(new_id))
        parts = [new for part in parts for new in one.averaged(part, place)]
    return [part.changed(scope=new_id[part.scope]) for part in parts]


@final
@dataclass(frozen=True, slots=True, eq=False)
class DiscreteLeaves(CountedLeaves):
    """Leaves of factors that share one table, in the same slots of each."""

    group: FactorGroup
    """Their factors, over the variables of the graph before, times the leaves' own factors."""
    slots: tuple[int, ...]
    """Of the leaves."""

    @property
    def variables(self) -> NDArray[np.int32]:
        return self.group.scope[:, self.slots]

    @property
    def log_table(self) -> Floats:
        table = as_table(self.group.potential)
        assert table is not None
        return table.log_table

    @property
    def others(self) -> list[int]:
        """The other slots."""
        return [slot for slot in range(self.group.arity) if slot not in self.slots]

    def summed(self, *, maximise: bool) -> FactorGroup:
        """The factors without their leaves."""
        axes = tuple(1 + slot for slot in self.slots)
        table = self.log_table.max(axis=axes) if maximise else _log_sum(self.log_table, axes)
        g = self.group
        return g.changed(potential=Table(table), scope=g.scope[:, self.others])

    def given_others(self) -> Floats:
        """(row, states…): probabilities of the leaves given the other slots; uniform where these
        are impossible."""
        axes = tuple(1 + slot for slot in self.slots)
        top = _log_sum(self.log_table, axes, keepdims=True)
        possible = top > -np.inf
        ratio = np.exp(self.log_table - np.where(possible, top, 0.0))
        size = np.prod([self.log_table.shape[axis] for axis in axes])
        return np.where(possible, ratio, 1.0 / size)

    def restore(self, values: Floats, rng: np.random.Generator | None) -> None:
        """Leaves get the best of their states given the others, or a random one."""
        states = [self.log_table.shape[1 + slot] for slot in self.slots]
        table = self.log_table if rng is None else self.given_others()
        last = np.moveaxis(table, [1 + s for s in self.slots], range(-len(states), 0))
        last = last.reshape(*last.shape[: last.ndim - len(states)], -1)
        scope, row = self.group.scope, self.group.row
        given = tuple(values[..., scope[:, slot]].astype(np.int64) for slot in self.others)
        if rng is None:
            joint = last.argmax(axis=-1)[(row, *given)]
        else:
            below = np.cumsum(last, axis=-1)[..., :-1][(row, *given)]
            joint = (rng.random(below.shape[:-1])[..., None] >= below).sum(axis=-1)
        for slot, state in zip(self.slots, np.unravel_index(joint, states), strict=True):
            values[..., scope[:, slot]] = state

    def averaged(self, group: FactorGroup, place: Ids) -> Iterator[FactorGroup]:
        for slots, some in by_slots(place[group.scope] >= 0):
            part = group.take(some)
            if slots:
                yield from _averaged(part, self, place[part.scope[:, slots[0]]] // len(self.slots))
            else:
                yield part

    def probs(self, slot: int) -> Floats:
        """(row, other states…, state): probabilities of one of the leaves."""
        rest = tuple(1 + other for other in self.slots if other != slot)
        kept = [s for s in range(self.group.arity) if s == slot or s not in self.slots]
        return np.moveaxis(self.given_others().sum(axis=rest), 1 + kept.index(slot), -1)


def eliminate_discrete_leaves(
    graph: FactorGraph, keep: Flags | None = None, *, maximise: bool = False
) -> Remaining[DiscreteLeaves]:
    """The graph without the discrete variables that stand in one table only, beside tables of
    their own, except those (variable,) to keep. With `maximise`, tables are of their best states.

    graph: ground and without evidence.
    """
    is_leaf = _leaves(graph)
    if keep is not None:
        is_leaf &= ~keep
    if not is_leaf.any():
        return Remaining.whole(graph)
    own = _OwnTables.of(graph.groups, np.where(is_leaf, graph.variables.num_states, 0))
    groups, eliminated, log_constant = list[FactorGroup](), list[DiscreteLeaves](), 0.0
    for group in graph.groups:
        if group.arity == 1:
            group = group.take(np.flatnonzero(~is_leaf[group.scope[:, 0]]))
        for slots, factors in by_slots(is_leaf[group.scope]):
            if not slots:
                groups.append(group if len(factors) == len(group) else group.take(factors))
                continue
            leaves = own.joined(group.take(factors), slots)
            eliminated.append(leaves)
            summed = leaves.summed(maximise=maximise)
            for part in dependent(summed):
                constant = part.log_sum(np.zeros(0)) if not part.arity else -np.inf
                if constant > -np.inf:
                    log_constant += constant
                else:
                    groups.append(part)
    return Remaining.of(graph, eliminated, groups, graph.log_constant + log_constant)


def _leaves(graph: FactorGraph) -> Flags:
    """(variable,): whether it is discrete, in one factor with others, which is a table, and in
    tables of its own."""
    found = (graph.variables.num_states > 0) & (graph.variables.multiplicity == 1)
    num_shared = np.zeros(graph.num_variables, dtype=np.int64)
    for group in graph.groups:
        ends = group.scope.reshape(-1)
        if as_table(group.potential) is None:
            found[ends] = False
        elif group.arity > 1:
            num_shared += np.bincount(ends, minlength=len(num_shared))
    return found & (num_shared == 1)


@dataclass(frozen=True, slots=True, eq=False)
class _OwnTables:
    """The tables of single leaves, added up; equal sums are stored once."""

    number: Ids  # (variable,): row of `values`
    values: Floats  # (number, state), padded with 0

    @classmethod
    def of(cls, groups: Sequence[FactorGroup], num_states: NDArray[np.int32]) -> _OwnTables:
        """num_states: (variable,): those of leaves, 0 for others."""
        is_leaf = num_states > 0
        owners, kinds, tables = [], [], []
        num_kinds = 1  # the first is that of leaves without a table
        for group in groups:
            if group.arity != 1 or as_table(group.potential) is None:
                continue
            some = group.take(np.flatnonzero(is_leaf[group.scope[:, 0]]))
            if not len(some):
                continue
            _, times = np.unique(some.multiplicity, return_inverse=True)
            kind, example = number_rows(some.row.astype(np.int64), times.reshape(-1))
            owners.append(some.scope[:, 0].astype(np.int64))
            kinds.append(kind + num_kinds)
            tables.append(
                group.potential.flat[some.row[example]] * some.multiplicity[example, None]
            )
            num_kinds += len(example)
        number = np.zeros(len(is_leaf), dtype=np.int64)
        width = int(num_states.max(initial=1))
        padded = [np.pad(table, ((0, 0), (0, width - table.shape[1]))) for table in tables]
        values = np.concatenate([np.zeros((1, width)), *padded])
        if not owners:
            return cls(number, values)
        owner, kind = np.concatenate(owners), np.concatenate(kinds)
        number[owner] = kind
        if np.bincount(owner).max() == 1:
            return cls(number, values)
        order = np.lexsort((kind, owner))
        leaf, dense = np.unique(owner[order], return_inverse=True)
        lists, example = number_lists(dense.reshape(-1), kind[order])
        sums = np.zeros((len(example) + 1, width))
        in_example = np.isin(dense, example)
        np.add.at(sums, 1 + lists[dense[in_example]], values[kind[order][in_example]])
        number[leaf] = 1 + lists
        return cls(number, sums)

    def joined(self, group: FactorGroup, slots: tuple[int, ...]) -> DiscreteLeaves:
        """Factors with leaves in these slots, times the leaves' own."""
        whole = as_table(group.potential)
        assert whole is not None
        _, times = np.unique(group.multiplicity, return_inverse=True)
        own = [self.number[group.scope[:, slot]] for slot in slots]
        row, example = number_rows(group.row.astype(np.int64), times.reshape(-1), *own)
        power = group.multiplicity[example].reshape(-1, *(1,) * group.arity)
        table = whole.log_table[group.row[example]] * power
        for slot, numbers in zip(slots, own, strict=True):
            states = table.shape[1 + slot]
            along = along_axis(slot, group.arity, len(example))
            table = table + self.values[numbers[example], :states].reshape(along)
        ones = np.ones(len(group))
        joined = group.changed(potential=Table(table), row=row, multiplicity=ones)
        return DiscreteLeaves(joined, slots)


def _averaged(group: FactorGroup, leaves: DiscreteLeaves, at: Ids) -> Iterator[FactorGroup]:
    """Expectations of factors given the other slots of their leaves' factors.

    at: (factor,): the factor of its leaves.
    """
    split, potential = group.potential.num_discrete_slots, closed_form(group.potential)
    if potential is None:
        raise UnsupportedError(f"{group.named()} is a function of discrete variables and reals")
    whole = leaves.group.scope[at]
    same = group.scope[:, :split, None] == whole[:, None, :]
    slot = np.where(same.any(axis=2), same.argmax(axis=2), -1)  # of the leaves' factor
    probs = leaves.given_others()
    pattern, first = number_rows(*(slot.T + 1).astype(np.int64))
    for number, shape in enumerate(slot[first].tolist()):
        some = np.flatnonzero(pattern == number)
        row, example = number_rows(
            group.row[some].astype(np.int64), leaves.group.row[at[some]].astype(np.int64)
        )
        beside = [own for own, there in enumerate(shape) if there < 0]
        names = [
            1 + there if there >= 0 else 1 + probs.ndim + own for own, there in enumerate(shape)
        ]
        result = [0, *(1 + other for other in leaves.others), *(names[own] for own in beside)]
        given = probs[leaves.group.row[at[some[example]]]]
        coefficients = [
            weighted_sum(
                each[group.row[some[example]]], [0, *names], given, [*range(probs.ndim)], result
            )
            for each in potential.coefficients
        ]
        scope = np.hstack(
            [
                whole[some][:, leaves.others],
                group.scope[some][:, [*beside, *range(split, group.arity)]],
            ]
        )
        averaged = type(potential)(*coefficients)
        yield group.take(some).changed(potential=averaged, scope=scope, row=row)


def weighted_sum(
    values: Floats, names: list[int], weights: Floats, axes: list[int], result: list[int]
) -> Floats:
    """Sums over products of values, whose first axes have these names, and weights; -inf counts
    where it has a weight."""
    infinite = np.isneginf(values)
    einsum: Any = np.einsum  # its annotations know no axes by number
    own, left = [*names, Ellipsis], [*result, Ellipsis]
    total = einsum(np.where(infinite, 0.0, values), own, weights, axes, left)
    if infinite.any():
        reached = einsum(infinite.astype(float), own, (weights > 0).astype(float), axes, left)
        total = np.where(reached > 0, -np.inf, total)
    return np.asarray(total)


def _log_sum(values: Floats, axes: tuple[int, ...], *, keepdims: bool = False) -> Floats:
    return np.asarray(logsumexp(values, axis=axes, keepdims=keepdims))

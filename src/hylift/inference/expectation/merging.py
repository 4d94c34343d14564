"""Fewer and larger factors for expectation propagation: the same distribution, better sites.

Factors of the same reals, whatever their states, become one where it has few joint states: its site
keeps what they tell about each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.graph import FactorGraph, FactorGroup
from hylift.inference.prepared import Prepared
from hylift.numerics.segments import inverse, number_lists, number_rows, offsets
from hylift.potentials import REAL, ConditionalQuadratic
from hylift.potentials.product import Product
from hylift.rewrite.kinds import in_standard_form
from hylift.rewrite.merge import MANY_SLOTS, merge_factors, places

MOST_STATES, MOST_REALS = 256, 3
"""Joint states, and reals, of factors that are merged because they have the same reals."""
MOST_IN_ALL, FEW_STATES = 2**22, 16
"""Joint states of all these factors; and of each, where there would be more."""
MOST_KINDS = 200
"""Products of functions that differ in the number or kind of their factors; each is a group."""

Ids = NDArray[np.int64]


def is_base(group: FactorGroup) -> bool:
    """True for quadratics of reals alone, which need no approximation."""
    return group.potential.quadratic() is not None and not group.potential.num_discrete_slots


def with_larger_factors(prepared: Prepared) -> Prepared:
    """The same model, with factors of nested scopes, or of the same reals, merged."""
    graph = in_standard_form(prepared.ground)
    for num_reals in range(1, MOST_REALS + 1):
        groups = [g for g in graph.groups if g.potential.num_reals == num_reals and not is_base(g)]
        rest = [g for g in graph.groups if not any(g is other for other in groups)]
        graph = graph.with_groups([*rest, *_with_same_reals(graph, groups, num_reals)])
    alone = [g for g in graph.groups if is_base(g) or g.arity < 2]
    others = [g for g in graph.groups if not (is_base(g) or g.arity < 2)]
    merged = merge_factors(graph.with_groups(others), "shared")
    return prepared.with_ground(merged.with_groups([*alone, *merged.groups]))


@dataclass(frozen=True, slots=True, eq=False)
class _Pool:
    """Factors that may be merged, numbered through all their groups."""

    groups: Sequence[FactorGroup]
    group: Ids  # (factor,)
    factor: Ids  # (factor,): its number in the group
    owner: Ids  # (factor,): the set of its reals
    is_function: NDArray[np.bool_]  # (factor,)

    @classmethod
    def of(cls, groups: Sequence[FactorGroup]) -> tuple[_Pool, Ids]:
        """Also the sets (set, slot) of reals."""
        sizes = [len(group) for group in groups]
        reals = np.concatenate([np.sort(g.reals, axis=1) for g in groups]).astype(np.int64)
        owner, example = number_rows(*reals.T)
        pool = cls(
            groups,
            np.repeat(np.arange(len(groups)), sizes),
            np.concatenate([np.arange(size) for size in sizes]),
            owner,
            np.repeat([g.potential.quadratic() is None for g in groups], sizes),
        )
        return pool, reals[example]

    def products(self, sets: Ids, scope: NDArray[np.int32], sizes: list[int]) -> list[FactorGroup]:
        """One factor for each of some sets, with scopes (set, slot) of discrete slots of these
        sizes and reals."""
        number = inverse(sets, int(self.owner.max()) + 1)
        some = np.flatnonzero(number[self.owner] >= 0)
        place = np.full((len(some), scope.shape[1]), -1)
        for at in np.unique(self.group[some]).tolist():
            own = np.flatnonzero(self.group[some] == at)
            inner = self.groups[at].scope[self.factor[some[own]]]
            place[own, : inner.shape[1]] = places(inner, scope[number[self.owner[some[own]]]])
        pattern = number_rows(self.group[some], *(place + 1).T)[0]
        order = np.lexsort((pattern, number[self.owner[some]]))
        some, pattern = some[order], pattern[order]
        owner = number[self.owner[some]]
        kind = number_lists(owner, pattern)[0]
        if kind.max() >= MOST_KINDS:
            return []
        states = (*sizes, *[REAL] * (scope.shape[1] - len(sizes)))
        found = []
        for one in range(int(kind.max()) + 1):
            chosen = np.flatnonzero(kind == one)
            items = some[kind[owner] == one].reshape(len(chosen), -1)  # (set, factor of it)
            parts = [self.groups[at] for at in self.group[items[0]].tolist()]
            own = self.factor[items]
            first = order[np.flatnonzero(owner == chosen[0])]
            slots = [
                tuple(place[at, : g.arity].tolist()) for at, g in zip(first, parts, strict=True)
            ]
            power = np.stack([g.multiplicity[own[:, i]] for i, g in enumerate(parts)], axis=1)
            factors = tuple(g.potential.take(g.row[own[:, i]]) for i, g in enumerate(parts))
            label = " + ".join(dict.fromkeys(g.label for g in parts if g.label))
            found.append(
                FactorGroup.unchecked(
                    Product(factors, tuple(slots), states, power), scope[chosen],
                    np.arange(len(chosen), dtype=np.int32), np.ones(len(chosen)), label,
                )
            )  # fmt: skip
        return found


def _with_same_reals(
    graph: FactorGraph, groups: Sequence[FactorGroup], num_reals: int
) -> Iterator[FactorGroup]:
    """Factors of so many reals, those of the same ones as one: products where some are functions;
    else a constant is added, into which all will be merged."""
    groups = [group for group in groups if len(group)]
    if not groups:
        return
    pool, reals = _Pool.of(groups)
    states = graph.variables.num_states.astype(np.int64)
    arity = np.array([g.arity for g in groups])[pool.group]
    variable = np.concatenate([g.scope[:, : g.arity - num_reals].ravel() for g in groups])
    of_set, variable = np.repeat(pool.owner, arity - num_reals), variable.astype(np.int64)
    once = number_rows(of_set, variable)[1]
    once = once[np.lexsort((variable[once], states[variable[once]], of_set[once]))]
    of_set, variable = of_set[once], variable[once]
    log_states = np.bincount(of_set, np.log(states[variable]), len(reals))
    count = np.bincount(of_set, minlength=len(reals))
    widest, has_function = np.zeros(len(reals), dtype=np.int64), np.zeros(len(reals), dtype=bool)
    np.maximum.at(widest, pool.owner, arity)
    np.logical_or.at(has_function, pool.owner, pool.is_function)
    joint = np.exp(np.minimum(log_states, np.log(MOST_STATES) + 1.0))
    is_small = (np.bincount(pool.owner) > 1) & (joint < MOST_STATES + 0.5)
    # so that factors are found to be merged
    is_small &= has_function | (count + num_reals <= MANY_SLOTS) | (widest <= 2)
    if joint[is_small].sum() > MOST_IN_ALL:
        is_small &= joint < FEW_STATES + 0.5
    start, is_gone = offsets(count), np.zeros(len(reals), dtype=bool)
    for slots in np.unique(count[is_small]).tolist():
        sets = np.flatnonzero(is_small & (count == slots))
        own = variable[start[sets][:, None] + np.arange(slots)]
        scope = np.concatenate([own, reals[sets]], axis=1).astype(np.int32)
        kind, first = number_rows(has_function[sets].astype(np.int64), *states[own].T)
        for number, one in enumerate(first.tolist()):
            chosen, sizes = np.flatnonzero(kind == number), states[own[one]].tolist()
            if has_function[sets[one]]:
                found = pool.products(sets[chosen], scope[chosen], sizes)
                is_gone[sets[chosen]] = bool(found)
                yield from found
            else:
                yield FactorGroup(_constant(sizes, num_reals), scope[chosen])
    for number, group in enumerate(groups):
        left = ~is_gone[pool.owner[pool.group == number]]
        yield group if left.all() else group.take(np.flatnonzero(left))


def _constant(sizes: Sequence[int], num_reals: int) -> ConditionalQuadratic:
    return ConditionalQuadratic(
        np.zeros((1, *sizes, num_reals, num_reals)),
        np.zeros((1, *sizes, num_reals)),
        np.zeros((1, *sizes)),
    )

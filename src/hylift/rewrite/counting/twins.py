"""Twins: discrete variables that can be exchanged without any change to a graph.

Every two of a class of twins have the same factors, with the same others, or with each other.
Hashes find them: a variable's hash is a sum over its factors of a number of the kind of factor
times numbers of the other variables. Two that share no factor are twins if their hashes are equal,
two that share some if the rest of their hashes is. The number of factors then proves it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hylift.graph.factor_graph import FactorGraph
from hylift.graph.factors import FactorGroup
from hylift.numerics.grouping import first_members, group_rows
from hylift.numerics.sparse import connected
from hylift.potentials.alike import RowClasses

Flags = NDArray[np.bool_]
Numbers = NDArray[np.int32]
Hashes = NDArray[np.uint64]


def twins(graph: FactorGraph, least: int) -> Numbers:
    """(variable,): the class of twins it is in, or -1 where that would have fewer than `least`.

    graph: ground and without evidence. Twins in a common factor of more than two slots are not
    found.
    """
    variables = graph.variables
    may_be = (variables.num_states > 1) & (variables.multiplicity == 1)
    tied = np.zeros(len(variables), dtype=bool)
    for group in graph.groups:
        if group.potential.quadratic() is None:
            may_be[group.scope] = False
        elif group.arity > 1:
            tied[group.scope] = True
    may_be &= tied
    if np.count_nonzero(may_be) < least:
        return np.full(len(variables), -1, dtype=np.int32)
    rng = np.random.default_rng(0)
    closed = (group for group in graph.groups if group.potential.quadratic() is not None)
    kinds = [Scopes.of(group) for group in closed]
    found = _Hashed.of(kinds, variables.domain_number, rng)
    number = _large(_joined(found, kinds, may_be), least)
    return number if _is_proven(kinds, number) else np.full(len(variables), -1, dtype=np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class Scopes:
    """The factors of one group, numbered by kind: equal parameters and multiplicity."""

    scope: Numbers  # (factor, slot), symmetric slots in increasing order
    kind: Numbers  # (factor,)
    num_kinds: int
    orbit: NDArray[np.int64]  # (kind, slot): the first slot that it may be exchanged with

    @classmethod
    def of(cls, group: FactorGroup) -> Scopes:
        rows = RowClasses.of(group.potential, up_to_constants=False)
        kind, example = number_kinds(group, rows)
        orbit = rows.orbits(group.potential)[rows.row_to_class[example]].astype(np.int64)
        return cls(_in_order(group.scope, orbit, kind), kind, len(example), orbit)


def number_kinds(group: FactorGroup, rows: RowClasses | None = None) -> tuple[Numbers, Numbers]:
    """(factor,): the same for equal parameters and multiplicities; and (kind,): a row that has
    it."""
    rows = rows or RowClasses.of(group.potential, up_to_constants=False)
    kind = rows.row_to_class[group.row]
    if not len(group) or (group.multiplicity == group.multiplicity[0]).all():
        return kind, rows.first.astype(np.int32)
    _, times = np.unique(group.multiplicity, return_inverse=True)
    kind, _ = group_rows(np.column_stack([kind, times]).astype(np.int32))
    return kind, group.row[first_members(kind)]


def _in_order(scope: Numbers, orbit: NDArray[np.int64], kind: Numbers) -> Numbers:
    """Scopes with the variables of exchangeable slots in increasing order."""
    if (orbit == np.arange(orbit.shape[1])).all():
        return scope
    key = orbit[kind].astype(np.int64) << 32 | scope
    # Slots of one orbit may be apart, so that sorted variables go to the slots sorted by orbit.
    slots = np.argsort(orbit, axis=1, kind="stable")[kind]
    ordered = np.empty_like(scope)
    np.put_along_axis(ordered, slots, (np.sort(key, axis=1) & 0xFFFFFFFF).astype(np.int32), axis=1)
    return ordered


@dataclass(frozen=True, slots=True, eq=False)
class _Hashed:
    """Hashes of variables, and the numbers they are made of."""

    whole: Hashes  # (variable,): of its domain, its factors and the others in them
    coarse: Hashes  # (variable,): of its domain, and the kinds of its factors
    variable: Hashes  # (variable,)
    kinds: list[Hashes]  # (kind, slot) per group
    slots: Hashes  # (slot,)

    @classmethod
    def of(cls, kinds: Sequence[Scopes], domain: Numbers, rng: np.random.Generator) -> _Hashed:
        arity = max([1, *(each.scope.shape[1] for each in kinds)])
        variable, slots = _odd(rng, len(domain)), _odd(rng, arity)
        whole = _odd(rng, int(domain.max(initial=0)) + 1)[domain]
        coarse, tables = whole.copy(), list[Hashes]()
        for each in kinds:
            table = _odd(rng, each.orbit.size).reshape(each.orbit.shape)
            table = np.take_along_axis(table, each.orbit, axis=1)
            tables.append(table)
            own = table[each.kind]
            there = variable[each.scope] ^ slots[each.orbit][each.kind]
            for slot in range(each.scope.shape[1]):
                others = [other for other in range(each.scope.shape[1]) if other != slot]
                term = own[:, slot] * there[:, others].prod(axis=1, dtype=np.uint64)
                np.add.at(whole, each.scope[:, slot], term)
                np.add.at(coarse, each.scope[:, slot], own[:, slot])
        return cls(whole, coarse, variable, tables, slots)


def _odd(rng: np.random.Generator, size: int) -> Hashes:
    return rng.integers(0, 2**64, size, dtype=np.uint64) | np.uint64(1)


def _joined(hashed: _Hashed, kinds: Sequence[Scopes], may_be: Flags) -> Numbers:
    """(variable,): numbers of candidates, equal for twins; -1 for other variables."""
    parts = [
        _pairs(hashed, each, table, may_be) for each, table in zip(kinds, hashed.kinds, strict=True)
    ]
    ends = np.concatenate([np.zeros((0, 2), dtype=np.int32), *(part[0] for part in parts)])
    terms = np.concatenate([np.zeros((0, 4), dtype=np.uint64), *(part[1] for part in parts)])
    pair, count = group_rows(ends)
    total = np.zeros((count, 4), dtype=np.uint64)
    np.add.at(total, pair, terms)
    ends = ends[first_members(pair)] if count else ends
    rest = hashed.whole[ends] - total[:, :2]
    together = ends[(rest[:, 0] == rest[:, 1]) & (total[:, 2] == total[:, 3])]
    number = connected(len(may_be), together).astype(np.int32)
    alone = may_be.copy()
    alone[together] = False
    _, same = np.unique(hashed.whole[alone], return_inverse=True)
    number[alone] = int(number.max(initial=-1)) + 1 + same.reshape(-1)
    number[~may_be] = -1
    return number


def _pairs(hashed: _Hashed, kinds: Scopes, table: Hashes, may_be: Flags) -> tuple[Numbers, Hashes]:
    """Candidates in a common factor of two slots, the first smaller, (factor, 2); and what the
    factor adds to the hash of each, with and without the number of the other, (factor, 4)."""
    if kinds.scope.shape[1] != 2:
        return np.zeros((0, 2), dtype=np.int32), np.zeros((0, 4), dtype=np.uint64)
    one, other = kinds.scope.T
    fits = may_be[one] & may_be[other] & (hashed.coarse[one] == hashed.coarse[other])
    ends, kind = kinds.scope[fits], kinds.kind[fits]
    own = table[kind]
    terms = own * (hashed.variable[ends] ^ hashed.slots[kinds.orbit[kind]])[:, ::-1]
    swapped = ends[:, 0] > ends[:, 1]
    for each in (ends, own, terms):
        each[swapped] = each[swapped][:, ::-1]
    return ends, np.hstack([terms, own])


def _large(number: Numbers, least: int) -> Numbers:
    """Numbers from 0 of those that at least so many variables have; -1 for the others."""
    size = np.bincount(number + 1)
    size[0] = 0
    is_large = size >= least
    return np.where(is_large, np.cumsum(is_large) - 1, -1)[number + 1].astype(np.int32)


def _is_proven(kinds: Sequence[Scopes], number: Numbers) -> bool:
    """True if each kind of factor of twins and given others has all combinations of twins, equally
    often."""
    size = np.bincount(number[number >= 0])
    for each in kinds:
        some = np.flatnonzero((number[each.scope] >= 0).any(axis=1))
        if not len(some):
            continue
        scope, kind = each.scope[some], each.kind[some]
        different, _ = group_rows(np.column_stack([kind, scope]))
        first, times = first_members(different), np.bincount(different).astype(np.int32)
        scope, kind = scope[first], kind[first]
        of_class = number[scope]
        encoded = np.where(of_class >= 0, len(number) + of_class, scope).astype(np.int32)
        encoded = _in_order(encoded, each.orbit, kind)
        alike, _ = group_rows(np.column_stack([kind, times, encoded]))
        example = first_members(alike)
        found = encoded[example] - len(number)
        orbit = each.orbit[kind[example]]
        full = np.ones(len(example))
        for slot in range(found.shape[1]):
            same = (found[:, :slot] == found[:, [slot]]) & (found[:, [slot]] >= 0)
            with_orbit = same & (orbit[:, :slot] == orbit[:, [slot]])
            left = size[np.maximum(found[:, slot], 0)] - same.sum(axis=1)
            full *= np.where(found[:, slot] >= 0, left / (1 + with_orbit.sum(axis=1)), 1)
        if not np.array_equal(np.bincount(alike), np.rint(full)):
            return False
    return True

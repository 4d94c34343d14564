"""Classes of constants, and of the pairs that tables or evidence name, by color passing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.grounding.query import Groundings
from hylift.lifting.coloring import stable_coloring
from hylift.lifting.implicit.listed import Listed
from hylift.lifting.implicit.marks import Mark
from hylift.lifting.structure import Structure
from hylift.numerics.grouping import by_number, group_pairs, often, renumbered
from hylift.numerics.segments import offsets

Ints = NDArray[np.int32]
Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Constants:
    """The constants of a type in classes, numbered by their first members."""

    number: Ints  # (constant,): its class
    first: Ids  # (class,)
    size: Ints  # (class,)
    order: Ints  # (constant,): by class
    start: Ids  # (class + 1,): where in `order` those of each begin

    @classmethod
    def of(cls, color: Ints, num_colors: int) -> Constants:
        number, first = renumbered(color, num_colors)
        return cls(number, first, often(number, len(first)), *by_number(number, len(first)))


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """The pairs of constants of two types that are named, in classes numbered by first members."""

    key: Ids  # (pair,): first constant * size of the second type + second one, increasing
    number: Ints  # (pair,): its class
    first: Ids  # (class,)

    @classmethod
    def of(cls, key: Ids, color: Ints, num_colors: int) -> Pairs:
        return cls(key, *renumbered(color, num_colors))


@dataclass(frozen=True, slots=True, eq=False)
class Symmetry:
    """The constants and pairs that look alike to all rules.

    Constants of a class have the same marks and equally many pairs in each class; pairs of a class
    have the same marks, both ways, and constants of the same classes. So all groundings of a rule
    with at most two variables look alike where their constants and pairs are of the same classes.
    """

    constants: Mapping[str, Constants]
    pairs: Mapping[tuple[str, str], Pairs]
    """Of types in alphabetical order; of one type with itself both ways, without (c, c)."""
    listed: Mapping[int, Groundings]
    """By the identity of a rule: groundings that stand for those that were listed."""

    def num_cells(self, types: tuple[str, ...]) -> int:
        """The number of combinations of classes of constants."""
        return math.prod(len(self.constants[name].first) for name in types)

    @classmethod
    def of(
        cls, sizes: Mapping[str, int], marks: Iterable[Mark], listed: Sequence[Listed] = ()
    ) -> Symmetry:
        """sizes: constants of each type that rules have variables of. marks: with the pairs of the
        listed groundings."""
        marks = [mark.in_order() for mark in marks]
        nodes = _Nodes.of(sizes, _keys(sizes, marks))
        color, kind = np.zeros(nodes.count, dtype=np.int32), 0
        for start in (*nodes.first.values(), *nodes.first_pair.values()):
            color[start:], kind = kind, kind + 1
        for mark in marks:
            for some, code in nodes.marked(mark):
                heard = np.zeros(nodes.count, dtype=np.uint64)
                heard[some] = code.astype(np.uint64) + np.uint64(1)
                color, _ = group_pairs(color, heard)
        scopes = [nodes.links(pair) for pair in nodes.keys]
        kinds = [np.zeros(len(some), dtype=np.int32) for some in scopes]
        scopes += [nodes.scopes(rule) for rule in listed]
        structure = Structure.of_scopes(scopes, [*kinds, *(one.kind for one in listed)], color)
        stable = stable_coloring(structure)
        found = stable.variable
        parts = np.split(stable.factor, structure.offsets[len(kinds) : -1])[1:]
        alike = {
            id(one.plan.rule): one.alike(part) for one, part in zip(listed, parts, strict=True)
        }
        count = int(found.max(initial=-1)) + 1
        first, first_pair = nodes.first.items(), nodes.first_pair.items()
        return cls(
            {name: Constants.of(found[at : at + sizes[name]], count) for name, at in first},
            {
                pair: Pairs.of(nodes.keys[pair], found[at : at + len(nodes.keys[pair])], count)
                for pair, at in first_pair
            },
            alike,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Nodes:
    """Constants and named pairs as nodes with colors, type after type."""

    sizes: Mapping[str, int]
    keys: Mapping[tuple[str, str], Ids]
    first: Mapping[str, int]
    first_pair: Mapping[tuple[str, str], int]
    count: int

    @classmethod
    def of(cls, sizes: Mapping[str, int], keys: Mapping[tuple[str, str], Ids]) -> _Nodes:
        start = offsets([*sizes.values(), *map(len, keys.values())]).tolist()
        first_pair = dict(zip(keys, start[len(sizes) :], strict=False))
        return cls(sizes, keys, dict(zip(sizes, start, strict=False)), first_pair, start[-1])

    def marked(self, mark: Mark) -> Iterator[tuple[NDArray[Any], Ints]]:
        """Nodes that a mark tells apart from all others, with its codes."""
        if len(mark.types) == 1:
            yield self.first[mark.types[0]] + mark.ids[:, 0], mark.code
            return
        one, other = mark.types
        pair = one, other
        same = mark.ids[:, 0] == mark.ids[:, 1] if one == other else np.zeros(len(mark.ids), bool)
        yield self.first[one] + mark.ids[same, 0], mark.code[same]
        ids = mark.ids[~same]
        for way in (ids, ids[:, ::-1]) if one == other else (ids,):
            at = np.searchsorted(self.keys[pair], _key(way, self.sizes[other]))
            yield self.first_pair[pair] + at, mark.code[~same]

    def of_atoms(self, types: tuple[str, ...], ids: NDArray[np.int32]) -> NDArray[Any]:
        """The nodes of atoms (atom, argument): of pairs that are marked, or of constants."""
        if len(types) == 1:
            return self.first[types[0]] + ids[:, 0]
        one, other = sorted(types)
        ids = ids if types[0] == one else ids[:, ::-1]
        pair = self.first_pair[one, other]
        at = pair + np.searchsorted(self.keys[one, other], _key(ids, self.sizes[other]))
        same = ids[:, 0] == ids[:, 1] if one == other else np.zeros(len(ids), bool)
        return np.where(same, self.first[one] + ids[:, 0], at)

    def scopes(self, rule: Listed) -> Ints:
        """(grounding, slot): the nodes of atoms."""
        nodes = [self.of_atoms(t, ids) for t, ids in zip(rule.types, rule.ids, strict=True)]
        nothing = np.zeros((len(rule.kind), 0), dtype=np.int32)
        return np.column_stack([nothing, *nodes]).astype(np.int32)

    def links(self, pair: tuple[str, str]) -> Ints:
        """(pair, slot): its own node, those of its constants, and that of the pair the other way
        round where both are of one type."""
        key, size = self.keys[pair], self.sizes[pair[1]]
        one, other = np.divmod(key, size)
        nodes = [self.first_pair[pair] + np.arange(len(key)), self.first[pair[0]] + one]
        nodes.append(self.first[pair[1]] + other)
        if pair[0] == pair[1]:
            nodes.append(self.first_pair[pair] + np.searchsorted(key, other * size + one))
        return np.stack(nodes, axis=1).astype(np.int32)


def _key(ids: NDArray[np.int32], size: int) -> Ids:
    return ids[:, 0].astype(np.int64) * size + ids[:, 1]


def _keys(sizes: Mapping[str, int], marks: Iterable[Mark]) -> dict[tuple[str, str], Ids]:
    """All pairs that are marked, those of one type both ways."""
    found: dict[tuple[str, str], list[Ids]] = {}
    for mark in marks:
        if len(mark.types) == 2:
            one, other = mark.types
            ids, own = mark.ids, found.setdefault((one, other), [])
            if one == other:
                ids = ids[ids[:, 0] != ids[:, 1]]
                own.append(_key(ids[:, ::-1], sizes[other]))
            own.append(_key(ids, sizes[other]))
    return {pair: np.unique(np.concatenate(parts)) for pair, parts in found.items()}

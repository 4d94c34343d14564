"""Classes of tuples of constants: of constants with themselves, then named pairs, then cells, which
are pairs of two classes of constants without those; and a tuple that stands for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hylift.graph.class_names import ALL_ALIKE, TupleClasses
from hylift.lifting.implicit.kernels import first_unnamed
from hylift.lifting.implicit.symmetry import Ints, Pairs, Symmetry
from hylift.numerics.grouping import often
from hylift.numerics.segments import offsets


@dataclass(frozen=True, slots=True, eq=False)
class Tuples:
    """All tuples of constants of these types, in classes of those that look alike."""

    columns: tuple[Ints, ...]
    """Per place (class,): the constant there of the tuple that stands for the class."""
    size: NDArray[np.float64]  # (class,): number of tuples
    classes: TupleClasses

    @classmethod
    def of(cls, symmetry: Symmetry, types: Sequence[str]) -> Tuples:
        """types: at most two."""
        if not types:
            return cls((), np.ones(1), ALL_ALIKE)
        if len(types) == 2:
            return _pairs(symmetry, (types[0], types[1]))
        one = symmetry.constants[types[0]]
        count = len(one.first)
        own = replace(
            ALL_ALIKE,
            number=(one.number,),
            shape=(count,),
            of_cell=np.arange(count, dtype=np.int32),
        )
        return cls((one.first.astype(np.int32),), one.size.astype(np.float64), own)

    def __len__(self) -> int:
        return len(self.size)


def _pairs(symmetry: Symmetry, types: tuple[str, str]) -> Tuples:
    one, other = (symmetry.constants[name] for name in types)
    is_same, num_second = types[0] == types[1], len(other.first)
    named = _named(symmetry, types)
    first, second = np.divmod(named.key, len(other.number))
    of_class = one.number[first].astype(np.int64) * num_second + other.number[second]
    count = np.outer(one.size, other.size.astype(np.float64)).ravel()
    count -= often(of_class.astype(np.int32), len(count))
    if is_same:
        count[:: num_second + 1] -= one.size
    cells = np.flatnonzero(count > 0)
    partner, begin = second, offsets(np.bincount(first, minlength=len(one.number)))
    if is_same:
        itself = np.arange(len(one.number))
        partner, begin = (
            np.insert(second, begin[:-1], itself),
            begin + np.append(itself, len(itself)),
        )
    unnamed = np.empty(len(cells), dtype=np.int64)
    first_unnamed(
        cells, num_second, one.first, begin, partner, other.order, other.start,
        np.full(len(other.number), -1, dtype=np.int64), unnamed,
    )  # fmt: skip
    stands = named.key[named.first]
    same = one.first if is_same else one.first[:0]
    columns = (
        np.concatenate([same, stands // len(other.number), one.first[cells // num_second]]),
        np.concatenate([same, stands % len(other.number), unnamed]),
    )
    size = [one.size[: len(same)], often(named.number, len(named.first)), count[cells]]
    cell = np.full(len(count), -1, dtype=np.int32)
    cell[cells] = len(same) + len(stands) + np.arange(len(cells), dtype=np.int32)
    return Tuples(
        tuple(column.astype(np.int32) for column in columns),
        np.concatenate(size).astype(np.float64),
        TupleClasses(
            (one.number, other.number),
            (len(one.first), num_second),
            cell,
            named.key,
            named.number + np.int32(len(same)),
            np.arange(len(same), dtype=np.int32),
        ),
    )


def _named(symmetry: Symmetry, types: tuple[str, str]) -> Pairs:
    """The named pairs of these types in this order."""
    if types in symmetry.pairs:
        return symmetry.pairs[types]
    found = symmetry.pairs.get((types[1], types[0]))
    if found is None:
        nothing = np.zeros(0, dtype=np.int64)
        return Pairs(nothing, nothing.astype(np.int32), nothing)
    second, first = np.divmod(found.key, len(symmetry.constants[types[0]].number))
    key = first * len(symmetry.constants[types[1]].number) + second
    order = np.argsort(key)
    count = len(found.first)
    return Pairs.of(key[order], found.number[order], count)

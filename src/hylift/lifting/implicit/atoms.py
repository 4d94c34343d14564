"""Atoms in classes: a variable for each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hylift.graph.class_names import ALL_ALIKE, ClassAtoms, TupleClasses
from hylift.grounding.atoms import AtomNumbers, AtomSpace
from hylift.lifting.implicit.tuples import Tuples


@dataclass(frozen=True, slots=True)
class ClassNumbers(AtomNumbers):
    """The atoms of a predicate that factors use, a variable for each class from `offset` on."""

    classes: TupleClasses = ALL_ALIKE
    """Variables of tuples of arguments, from 0; -1 where no factor uses one of the class."""
    size: NDArray[np.float64] | None = None  # (variable,): number of atoms

    @classmethod
    def of_tuples(
        cls, space: AtomSpace, tuples: Tuples, used: Sequence[NDArray[Any]], offset: int
    ) -> ClassNumbers:
        """used: codes of atoms in factors, at least one for each class that has one in a factor."""
        is_used = np.zeros(len(tuples), dtype=bool)
        for codes in used:
            is_used[_found(space, tuples.classes, codes)] = True
        some = np.flatnonzero(is_used)
        place = np.where(is_used, np.cumsum(is_used) - 1, -1).astype(np.int32)
        codes = space.codes([column[some] for column in tuples.columns], len(some))
        size = tuples.size[some]
        return cls(space, offset, len(some), codes, None, tuples.classes.renamed(place), size)

    def ids(self, codes: NDArray[Any]) -> NDArray[np.int32]:
        place = _found(self.space, self.classes, codes)
        return np.where(place >= 0, place + np.int32(self.offset), np.int32(-1))

    def fill(self, scope: NDArray[np.int32], slot: int, codes: NDArray[Any]) -> None:
        scope[:, slot] = self.ids(codes)

    def block(self) -> ClassAtoms:
        assert self.codes is not None
        own = self.space.block(self.space.arguments(self.codes))
        parts = own.predicate, own.constants, own.arguments, True, own.labels, own.types
        return ClassAtoms(*parts, self.classes)

    @property
    def multiplicity(self) -> NDArray[np.float64]:
        assert self.size is not None
        return self.size

    @property
    def num_atoms(self) -> int:
        return int(self.multiplicity.sum())

    def some(self, ids: NDArray[Any]) -> NDArray[np.int64]:
        return np.unique(ids, return_index=True)[1]


def _found(space: AtomSpace, classes: TupleClasses, codes: NDArray[Any]) -> NDArray[np.int32]:
    columns = np.unravel_index(codes, space.sizes) if space.sizes else ()
    return classes.find(columns, len(codes))

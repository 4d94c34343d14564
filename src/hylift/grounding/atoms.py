"""Atoms of the open predicates: numbered by their arguments, kept where a factor uses them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import IntractableError
from hylift.graph import Atoms, Domain, NameBlock, Variables, categorical
from hylift.grounding.kernels import mark, write_slot
from hylift.grounding.world import World
from hylift.language.syntax import PredicateDeclaration

MAX_DENSE = 1 << 26
"""Most possible atoms of a predicate that have a mark each; beyond, used ones are sorted."""

SPARSE = 16
"""Possible atoms per grounding beyond which sorting is cheaper than marking."""


@dataclass(frozen=True, slots=True)
class AtomSpace:
    """All possible atoms of a predicate, numbered with the last argument running fastest."""

    predicate: PredicateDeclaration
    places: tuple[int, ...]
    """Arguments that identify an atom: all but the one marked `!`."""
    constants: tuple[pa.StringArray, ...]
    constant_types: tuple[pa.DataType, ...]
    domain: Domain

    @classmethod
    def of(cls, world: World, predicate: PredicateDeclaration) -> AtomSpace:
        types = predicate.arguments
        places = tuple(place for place in range(len(types)) if place != predicate.unique)
        domain = predicate.domain
        if predicate.unique is not None:
            domain = categorical(world.constants[types[predicate.unique]].to_pylist())
        constants = tuple(world.constants[types[place]] for place in places)
        constant_types = tuple(world.constant_types[types[place]] for place in places)
        return cls(predicate, places, constants, constant_types, domain)

    @property
    def labels(self) -> tuple[str, ...]:
        """A name for each argument: its type, numbered where a type occurs more than once."""
        types = [self.predicate.arguments[place] for place in self.places]
        return tuple(
            name if types.count(name) == 1 else f"{name}{1 + types[:place].count(name)}"
            for place, name in enumerate(types)
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(constants) for constants in self.constants)

    @property
    def size(self) -> int:
        """Number of possible atoms."""
        return math.prod(self.sizes)

    def codes(self, arguments: Sequence[Any], count: int) -> NDArray[Any]:
        """(grounding,): the number of an atom, from one array or number per argument."""
        if self.size >= 1 << 62:
            raise IntractableError(
                f"'{self.predicate.name}' has {self.size:.1e} possible atoms, too many to number"
            )
        dtype = np.int32 if self.size < 1 << 31 else np.int64
        if len(arguments) == 1 and np.ndim(arguments[0]):
            return np.asarray(arguments[0], dtype=dtype)
        code: NDArray[Any] = np.zeros(count, dtype=dtype)
        for argument, size in zip(arguments, self.sizes, strict=True):
            code *= dtype(size)
            code += np.asarray(argument, dtype=dtype)
        return code

    def arguments(self, codes: NDArray[Any]) -> NDArray[np.int32]:
        """(atom, argument): positions among the constants."""
        columns = np.unravel_index(codes, self.sizes) if self.sizes else ()
        arguments = np.empty((len(codes), len(self.sizes)), dtype=np.int32)
        for place, column in enumerate(columns):
            arguments[:, place] = column
        return arguments

    def block(self, arguments: NDArray[np.int32] | None) -> Atoms:
        """The names of atoms (atom, argument); None: of all."""
        return Atoms(
            self.predicate.name,
            self.constants,
            arguments,
            distinct=True,
            labels=self.labels,
            types=self.constant_types,
        )


@dataclass(slots=True)
class AtomTable:
    """The atoms of one predicate that factors use; filled first, then numbered."""

    space: AtomSpace
    marks: NDArray[np.bool_] | None = None  # (possible atom,): whether it is used
    found: list[NDArray[np.int64]] = field(default_factory=list)
    """Used atoms in parts, where they are few among the possible ones."""

    def use(self, codes: NDArray[Any]) -> None:
        """Mark atoms that factors use."""
        size = self.space.size
        if self.marks is None and (size > MAX_DENSE or size > SPARSE * len(codes)):
            self.found.append(np.unique(codes).astype(np.int64, copy=False))
            return
        if self.marks is None:
            self.marks = np.zeros(size, dtype=bool)
        mark(self.marks, codes)

    def numbered(self, offset: int) -> AtomNumbers:
        """The used atoms in order, as variables from `offset` on."""
        if self.marks is None:
            codes = np.unique(np.concatenate([np.zeros(0, np.int64), *self.found]))
            return AtomNumbers(self.space, offset, len(codes), codes, None)
        for codes in self.found:
            self.marks[codes] = True
        if self.marks.all():
            return AtomNumbers(self.space, offset, self.space.size, None, None)
        codes = np.flatnonzero(self.marks)
        position = np.cumsum(self.marks, dtype=np.int32) - np.int32(1)
        position[~self.marks] = -1
        return AtomNumbers(self.space, offset, len(codes), codes, position)


@dataclass(frozen=True, slots=True)
class AtomNumbers:
    """Variable ids of a predicate's atoms."""

    space: AtomSpace
    offset: int
    count: int
    codes: NDArray[np.int64] | None  # (atom,): which atoms they are, increasing; None: all
    position: NDArray[np.int32] | None  # (possible atom,): place among `codes`, or -1

    def ids(self, codes: NDArray[Any]) -> NDArray[np.int32]:
        """The variable of each atom; -1 where no factor uses it."""
        if self.codes is None:
            return codes.astype(np.int32) + np.int32(self.offset)
        if self.position is not None:
            place = self.position[codes]
        elif not self.count:
            return np.full(len(codes), -1, dtype=np.int32)
        else:
            place = np.minimum(np.searchsorted(self.codes, codes), self.count - 1).astype(np.int32)
            place[self.codes[place] != codes] = -1
        return np.where(place >= 0, place + np.int32(self.offset), np.int32(-1))

    def fill(self, scope: NDArray[np.int32], slot: int, codes: NDArray[Any]) -> None:
        """Write the variables of used atoms into one slot of a scope (factor, slot)."""
        if self.codes is None or self.position is not None:
            position = np.zeros(0, np.int32) if self.position is None else self.position
            write_slot(scope, slot, codes, position, self.offset)
        else:
            scope[:, slot] = np.searchsorted(self.codes, codes) + self.offset

    def block(self) -> NameBlock:
        """Their names."""
        codes = self.codes
        return self.space.block(None if codes is None else self.space.arguments(codes))


def variables_of(numbers: Sequence[AtomNumbers]) -> Variables:
    """One variable per used atom, predicate by predicate."""
    return Variables.in_blocks([(table.block(), table.space.domain) for table in numbers])

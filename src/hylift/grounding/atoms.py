"""Atoms of the open predicates: numbered by their arguments, kept where a factor uses them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import IntractableError
from hylift.graph import Atoms, Domain, NameBlock, Variables, categorical
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


@dataclass(frozen=True, slots=True)
class AtomNumbers:
    """The atoms of a predicate that factors use, as variables from `offset` on."""

    space: AtomSpace
    offset: int
    count: int
    codes: NDArray[np.int64] | None  # (atom,): which atoms they are, increasing; None: all
    variable: NDArray[np.int32] | None = None
    """(possible atom,): its variable, or -1; None where these are too many, or all are used."""

    @classmethod
    def of(cls, space: AtomSpace, used: Sequence[NDArray[Any]], offset: int) -> AtomNumbers:
        """used: codes of the atoms in factors, in parts and with repetitions."""
        if space.size > MAX_DENSE or space.size > SPARSE * sum(map(len, used)):
            codes = np.unique(np.concatenate([np.zeros(0, np.int64), *map(np.unique, used)]))
            return cls(space, offset, len(codes), codes)
        is_used = np.zeros(space.size, dtype=bool)
        for part in used:
            is_used[part] = True
        if is_used.all():
            return cls(space, offset, space.size, None)
        variable = np.cumsum(is_used, dtype=np.int32) + np.int32(offset - 1)
        variable[~is_used] = -1
        codes = np.flatnonzero(is_used)
        return cls(space, offset, len(codes), codes, variable)

    def ids(self, codes: NDArray[Any]) -> NDArray[np.int32]:
        """The variable of each atom; -1 where no factor uses it."""
        if self.codes is None:
            return codes.astype(np.int32) + np.int32(self.offset)
        if self.variable is not None:
            return self.variable[codes]
        place = np.searchsorted(self.codes, codes)
        is_used = np.append(self.codes, -1)[place] == codes
        return np.where(is_used, place + self.offset, -1).astype(np.int32)

    def block(self) -> NameBlock:
        """Their names."""
        codes = self.codes
        return self.space.block(None if codes is None else self.space.arguments(codes))


def variables_of(numbers: Sequence[AtomNumbers]) -> Variables:
    """One variable per used atom, predicate by predicate."""
    return Variables.in_blocks([(table.block(), table.space.domain) for table in numbers])

"""Names of classes of atoms: the name of every member finds the variable of its class."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hylift.errors import IntractableError, ModelError
from hylift.graph.name_blocks import Atoms, regex_of, split_atom

MOST_MEMBERS = 1_000_000
"""Most atoms that a pattern may name where variables stand for several."""


@dataclass(frozen=True, slots=True, eq=False)
class TupleClasses:
    """The class of each tuple of constants, which the classes of the constants decide, but for
    pairs that are named and pairs of a constant with itself."""

    number: tuple[NDArray[np.int32], ...]
    """Per place (constant,): its class among constants."""
    shape: tuple[int, ...]
    """Per place: the number of classes of constants."""
    of_cell: NDArray[np.int32]
    """(combination of classes of constants, the last running fastest,), or -1."""
    key: NDArray[np.int64]
    """(named pair,): first * number of second constants + second, increasing."""
    of_key: NDArray[np.int32]  # (named pair,)
    of_same: NDArray[np.int32]
    """(class of constants,): of a constant with itself; empty where that is like any pair."""

    def __post_init__(self) -> None:
        fits = len(self.shape) == len(self.number) and len(self.key) == len(self.of_key)
        fits = fits and len(self.of_cell) == math.prod(self.shape)
        for number, size in zip(self.number, self.shape, strict=fits):
            fits = (fits and not len(number)) or bool(0 <= number.min() <= number.max() < size)
        if not fits or len(self.of_same) not in (0, *self.shape[:1]):
            raise ModelError("classes of constants and of tuples that do not fit each other")

    def find(self, columns: Sequence[NDArray[Any]], count: int) -> NDArray[np.int32]:
        """(tuple,): the class of each; columns: its constants."""
        cell = np.zeros(count, dtype=np.int64)
        for number, size, column in zip(self.number, self.shape, columns, strict=True):
            cell = cell * size + number[column]
        found = self.of_cell[cell]
        if len(self.key):
            key = columns[0].astype(np.int64) * len(self.number[1]) + columns[1]
            at = np.minimum(np.searchsorted(self.key, key), len(self.key) - 1)
            is_named = self.key[at] == key
            found[is_named] = self.of_key[at[is_named]]
        if len(self.of_same):
            same = columns[0] == columns[1]
            found[same] = self.of_same[self.number[0][columns[0][same]]]
        return found

    def renamed(self, name: NDArray[np.int32]) -> TupleClasses:
        """With other numbers (class,) in place of classes."""
        name = np.append(name, np.int32(-1))
        return replace(
            self,
            of_cell=name[self.of_cell],
            of_key=name[self.of_key],
            of_same=name[self.of_same],
        )


NOTHING = np.zeros(0, dtype=np.int32)
ALL_ALIKE = TupleClasses((), (), np.zeros(1, np.int32), NOTHING.astype(np.int64), NOTHING, NOTHING)


@dataclass(frozen=True, slots=True, eq=False)
class ClassAtoms(Atoms):
    """Atoms that stand for classes, whose members all have names here."""

    classes: TupleClasses = field(default=ALL_ALIKE)
    """Of the arguments: positions in the block; -1 for atoms in no factor."""

    def __post_init__(self) -> None:
        Atoms.__post_init__(self)
        known = self.classes
        sizes = tuple(len(number) for number in known.number)
        parts = known.of_cell, known.of_key, known.of_same
        places = np.concatenate([part.astype(np.int64) for part in parts])
        fits = sizes == tuple(len(words) for words in self.constants)
        if not fits or places.min(initial=-1) < -1 or places.max(initial=-1) >= len(self):
            raise ModelError(f"the classes of '{self.predicate}' do not fit its atoms")

    def find(self, names: Sequence[str]) -> NDArray[np.int64]:
        every = Atoms(self.predicate, self.constants, distinct=True)
        code = every.find(names)
        found = np.full(len(names), -1, dtype=np.int64)
        known = np.flatnonzero(code >= 0)
        sizes = [len(words) for words in self.constants]
        columns = np.unravel_index(code[known], sizes) if sizes else ()
        found[known] = self.classes.find(columns, len(known))
        return found

    def take(self, index: NDArray[np.int64]) -> Atoms:
        taken = Atoms.take(self, index)
        own = taken.predicate, taken.constants, taken.arguments, True, taken.labels, taken.types
        return Atoms(*own)

    @property
    def has_members(self) -> bool:
        return True

    def members(self, pattern: str) -> pa.StringArray:
        """The names of atoms, of any class, that match a pattern; refused if there are too many."""
        predicate, words = split_atom(pattern, len(self.constants))
        if words in ([], ["*"]):
            words = ["*"] * len(self.constants)
        fits = re.fullmatch(regex_of(predicate), self.predicate)
        if not fits or len(words) != len(self.constants):
            return pa.array([], pa.string())
        chosen = [
            np.flatnonzero(pc.match_substring_regex(constants, regex_of(word)))
            for constants, word in zip(self.constants, words, strict=True)
        ]
        count = math.prod(map(len, chosen))
        if count > MOST_MEMBERS:
            raise IntractableError(
                f"'{pattern}' names {count:,} atoms, and at most {MOST_MEMBERS:,} have a row each: "
                f"ask for '{self.predicate}', which has a row for each of its {len(self):,} "
                f"classes, or for fewer atoms, such as '{self.render(np.zeros(1, np.int64))[0]}'"
            )
        grid = np.meshgrid(*chosen, indexing="ij") if chosen else []
        arguments = np.stack([column.ravel() for column in grid], 1) if grid else np.zeros((1, 0))
        own = Atoms(self.predicate, self.constants, arguments.astype(np.int32), distinct=True)
        names = own.render(np.arange(len(own)))
        return names.filter(pa.array(self.find(names.to_pylist()) >= 0))

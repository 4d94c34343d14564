"""Names of variables, by id and by name, without a Python string per variable.

A name is made when it is asked for. What is stored are blocks: a counted prefix, the constants of
a predicate's arguments, or strings packed in one Arrow array.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hylift.errors import ModelError, UnknownNameError, did_you_mean

MAX_SUGGESTIONS = 20_000
"""Longest list of names that is searched for the closest one."""


class NameBlock(ABC):
    """Names of consecutive variables that are made in one way."""

    __slots__ = ()

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def render(self, index: NDArray[np.int64]) -> pa.StringArray:
        """The names at these positions of the block."""

    @abstractmethod
    def find(self, name: str) -> int:
        """The position of a name in the block, or -1."""

    @abstractmethod
    def suggest(self, name: str) -> str:
        """A sentence that helps someone who asked for a name that is not here, or nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Numbered(NameBlock):
    """prefix0, prefix1, …"""

    prefix: str
    count: int

    def __len__(self) -> int:
        return self.count

    def render(self, index: NDArray[np.int64]) -> pa.StringArray:
        numbers = pc.cast(pa.array(index), pa.string())
        return pc.binary_join_element_wise(self.prefix, numbers, "")

    def find(self, name: str) -> int:
        digits = name[len(self.prefix) :]
        if not name.startswith(self.prefix) or not digits.isascii() or not digits.isdigit():
            return -1
        position = int(digits)
        return position if position < self.count and str(position) == digits else -1

    def suggest(self, name: str) -> str:
        return f" Names here are {self.prefix}0 to {self.prefix}{self.count - 1}."


@dataclass(frozen=True, slots=True, eq=False)
class Listed(NameBlock):
    """Names given one by one, packed in one Arrow array."""

    strings: pa.StringArray

    def __len__(self) -> int:
        return len(self.strings)

    def render(self, index: NDArray[np.int64]) -> pa.StringArray:
        return self.strings.take(pa.array(index))

    def find(self, name: str) -> int:
        return int(pc.index(self.strings, name).as_py())

    def suggest(self, name: str) -> str:
        return did_you_mean(name, self.strings.slice(0, MAX_SUGGESTIONS).to_pylist())


@dataclass(frozen=True, slots=True, eq=False)
class Atoms(NameBlock):
    """Ground atoms of a predicate: `loss(c3,b1)`.

    Without `arguments` there is one atom per combination of constants, the last argument running
    fastest; with them, one atom per row.
    """

    predicate: str
    constants: tuple[Any, ...]
    """Per argument: the constants of its type. Given as any sequences of words."""
    arguments: NDArray[np.int32] | None = None  # (atom, argument): positions in `constants`

    def __post_init__(self) -> None:
        packed = tuple(
            c if isinstance(c, pa.StringArray) else pa.array([str(word) for word in c], pa.string())
            for c in self.constants
        )
        object.__setattr__(self, "constants", packed)
        if self.arguments is not None:
            shape = np.shape(self.arguments)
            if len(shape) != 2 or shape[1] != len(packed):
                raise ModelError(
                    f"atoms of '{self.predicate}' have {len(packed)} arguments each, so theirs are "
                    f"an array (atom, {len(packed)}), not one of shape {shape}"
                )

    def __len__(self) -> int:
        if self.arguments is not None:
            return len(self.arguments)
        return int(np.prod([len(c) for c in self.constants], dtype=np.int64))

    def render(self, index: NDArray[np.int64]) -> pa.StringArray:
        if not self.constants:
            return pa.array([self.predicate] * len(index), pa.string())
        columns = self._columns(index)
        words = [
            _quoted(constants.take(pa.array(column)))
            for constants, column in zip(self.constants, columns, strict=True)
        ]
        inside = pc.binary_join_element_wise(*words, ",") if len(words) > 1 else words[0]
        return pc.binary_join_element_wise(f"{self.predicate}(", inside, ")", "")

    def _columns(self, index: NDArray[np.int64]) -> Sequence[NDArray[Any]]:
        if self.arguments is not None:
            return list(self.arguments[index].T)
        return np.unravel_index(index, [len(c) for c in self.constants])

    def find(self, name: str) -> int:
        predicate, words = split_atom(name)
        if predicate != self.predicate or len(words) != len(self.constants):
            return -1
        position = [
            int(pc.index(c, word).as_py()) for c, word in zip(self.constants, words, strict=True)
        ]
        if -1 in position:
            return -1
        if self.arguments is None:
            sizes = [len(c) for c in self.constants]
            return int(np.ravel_multi_index(position, sizes)) if sizes else 0
        rows = np.flatnonzero((self.arguments == np.asarray(position)).all(axis=1))
        return int(rows[0]) if len(rows) else -1

    def suggest(self, name: str) -> str:
        predicate, words = split_atom(name)
        if predicate != self.predicate:
            return did_you_mean(predicate, [self.predicate])
        if len(words) != len(self.constants):
            return f" '{predicate}' takes {len(self.constants)} arguments, not {len(words)}."
        for place, (constants, word) in enumerate(zip(self.constants, words, strict=True)):
            if pc.index(constants, word).as_py() == -1:
                close = did_you_mean(word, constants.slice(0, MAX_SUGGESTIONS).to_pylist())
                return f" '{word}' is not a constant of argument {place + 1} of it.{close}"
        return " These constants exist, but the model has no such atom."


@dataclass(frozen=True, slots=True, eq=False)
class Selected(NameBlock):
    """Some of the names of others, such as those of the variables that evidence left hidden."""

    names: Names
    ids: NDArray[np.int64]  # increasing

    def __len__(self) -> int:
        return len(self.ids)

    def render(self, index: NDArray[np.int64]) -> pa.StringArray:
        return self.names.render(self.ids[index])

    def find(self, name: str) -> int:
        wanted = self.names.find(name)
        position = int(np.searchsorted(self.ids, wanted))
        return position if position < len(self.ids) and self.ids[position] == wanted else -1

    def suggest(self, name: str) -> str:
        if self.names.find(name) >= 0:
            return " It is observed, or otherwise left out here."
        return self.names.suggest(name)


@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """The names of all variables of a graph: blocks, one after the other."""

    blocks: tuple[NameBlock, ...]

    @classmethod
    def numbered(cls, count: int, prefix: str = "x") -> Names:
        return cls((Numbered(prefix, count),))

    @classmethod
    def listed(cls, names: Iterable[str] | pa.StringArray) -> Names:
        strings = names if isinstance(names, pa.StringArray) else pa.array(list(names), pa.string())
        if len(pc.unique(strings)) < len(strings):
            counts = pc.value_counts(strings)
            twice = counts.filter(pc.greater(counts.field("counts"), 1))[0]["values"].as_py()
            raise ModelError(f"two variables are named '{twice}'")
        return cls((Listed(strings),))

    def __len__(self) -> int:
        return sum(len(block) for block in self.blocks)

    @property
    def offsets(self) -> NDArray[np.int64]:
        """(block + 1,): the first id of each block, and the number of names."""
        return np.cumsum([0, *(len(block) for block in self.blocks)], dtype=np.int64)

    def __getitem__(self, variable: int) -> str:
        return str(self.render(np.array([variable]))[0].as_py())

    def render(self, ids: NDArray[Any] | None = None) -> pa.StringArray:
        """The names of these variables (all of them by default) as one Arrow array."""
        index = np.arange(len(self)) if ids is None else np.asarray(ids, dtype=np.int64)
        if len(self.blocks) == 1:
            return self.blocks[0].render(index)
        offsets = self.offsets
        which = np.searchsorted(offsets, index, side="right") - 1
        order = np.argsort(which, kind="stable")
        parts = [
            block.render(index[which == place] - offsets[place])
            for place, block in enumerate(self.blocks)
        ]
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return pa.concat_arrays(parts).take(pa.array(back)) if parts else pa.array([], pa.string())

    def find(self, name: str) -> int:
        """The id of a name, or -1."""
        for block, offset in zip(self.blocks, self.offsets, strict=False):
            position = block.find(name)
            if position >= 0:
                return int(offset) + position
        return -1

    def id(self, name: str) -> int:
        """The id of a name; an unknown one is an error that suggests the closest."""
        found = self.find(name)
        if found < 0:
            raise UnknownNameError(f"there is no variable '{name}'.{self.suggest(name)}")
        return found

    def matching(self, pattern: str) -> NDArray[np.int64]:
        """Ids of the names that match a pattern with * and ?; an error if there are none."""
        if not any(sign in pattern for sign in "*?"):
            return np.array([self.id(pattern)])
        words = {"*": ".*", "?": "."}
        regex = "".join(words.get(letter) or re.escape(letter) for letter in pattern)
        found = pc.match_substring_regex(self.render(), f"^{regex}$")
        ids = np.flatnonzero(found.to_numpy(zero_copy_only=False))
        if not len(ids):
            raise UnknownNameError(f"no variable matches '{pattern}'")
        return ids

    def suggest(self, name: str) -> str:
        same = [
            b for b in self.blocks if isinstance(b, Atoms) and b.predicate == split_atom(name)[0]
        ]
        if same:
            return same[0].suggest(name)
        predicates = [b.predicate for b in self.blocks if isinstance(b, Atoms)]
        close = did_you_mean(split_atom(name)[0], predicates)
        others = (b.suggest(name) for b in self.blocks if not isinstance(b, Atoms))
        return next((text for text in (close, *others) if text), "")

    def take(self, ids: NDArray[Any]) -> Names:
        """The names of some variables, given by increasing ids."""
        return Names((Selected(self, np.asarray(ids, dtype=np.int64)),))


def split_atom(name: str) -> tuple[str, list[str]]:
    """`loss(c3, b1)` -> ('loss', ['c3', 'b1']); a name without arguments has none."""
    predicate, bracket, rest = name.partition("(")
    if not bracket:
        return name.strip(), []
    words = ARGUMENT.findall(rest.rstrip().removesuffix(")") + ",")
    return predicate.strip(), [
        plain.strip() if plain or not quoted else re.sub(r"\\(.)", r"\1", quoted)
        for quoted, plain in words
    ]


ARGUMENT = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"\s*|([^,]*)),')
"""A quoted or a plain argument, with the comma behind it."""


def _quoted(words: pa.StringArray) -> pa.StringArray:
    """Words as they stand in an atom: in quotes where they would be misread without."""
    doubtful = pc.match_substring_regex(words, r'[,()"\\]|^\s|\s$|^$')
    if not pc.any(doubtful).as_py():
        return words
    escaped = pc.replace_substring_regex(words, r'(["\\])', r"\\\1")
    return pc.if_else(doubtful, pc.binary_join_element_wise('"', escaped, '"', ""), words)

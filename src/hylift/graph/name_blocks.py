"""Blocks of names of consecutive variables: counted, listed, or atoms of a predicate."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hylift.errors import ModelError, did_you_mean

COUNTING = re.compile(r"0|[1-9][0-9]{0,17}")
"""Digits that count something, without leading zeros."""

MAX_SUGGESTIONS = 20_000
"""Longest list of names that is searched for the closest one."""

NO_VARIABLE = " No factor mentions it; atoms of closed-world predicates are data, not variables."

ARGUMENT = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"\s*|([^,]*)),')
"""A quoted or a plain argument, with the comma behind it."""

TEXT = pa.string()


class NameBlock(ABC):
    """Names of consecutive variables, rendered in one way."""

    __slots__ = ()

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def render(self, index: NDArray[np.int64]) -> pa.StringArray:
        """The names at these positions of the block."""

    @property
    @abstractmethod
    def label(self) -> str:
        """Prefix of all its names, unique in a graph; may be empty."""

    @property
    def has_members(self) -> bool:
        """True if a name here stands for a class of atoms, and theirs are found, too."""
        return False

    @abstractmethod
    def find(self, names: Sequence[str]) -> NDArray[np.int64]:
        """The positions of names in the block, -1 where they are not in it."""

    @abstractmethod
    def suggest(self, name: str) -> str:
        """A hint for someone who asked for a name that is not here, or nothing."""


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

    @property
    def label(self) -> str:
        return self.prefix

    def find(self, names: Sequence[str]) -> NDArray[np.int64]:
        return np.array([self._position(name) for name in names], dtype=np.int64)

    def _position(self, name: str) -> int:
        digits = name[len(self.prefix) :]
        if not name.startswith(self.prefix) or not COUNTING.fullmatch(digits):
            return -1
        return int(digits) if int(digits) < self.count else -1

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

    @property
    def label(self) -> str:
        return ""

    def find(self, names: Sequence[str]) -> NDArray[np.int64]:
        return positions(self.strings, names)

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
    distinct: bool = False
    """True skips the check that the constants are distinct."""
    labels: tuple[str, ...] = ()
    """Names of the arguments, for tables; arg1, arg2, … by default."""
    types: tuple[pa.DataType, ...] = ()
    """Of the arguments in tables, where their constants are not only text; text by default."""

    def __post_init__(self) -> None:
        if isinstance(self.constants, str) or any(isinstance(c, str) for c in self.constants):
            raise ModelError(
                f"the constants of '{self.predicate}' must be one list per argument, such as "
                f"[['a', 'b']], not {self.constants!r}"
            )
        packed = tuple(
            c if isinstance(c, pa.StringArray) else pa.array([str(word) for word in c], pa.string())
            for c in self.constants
        )
        object.__setattr__(self, "constants", packed)
        for place, words in enumerate(packed if not self.distinct else ()):
            if len(pc.unique(words)) < len(words):
                raise ModelError(f"argument {place + 1} of '{self.predicate}' has a constant twice")
        if self.types and len(self.types) != len(packed):
            raise ModelError(
                f"'{self.predicate}' has {len(packed)} arguments, but {len(self.types)} types"
            )
        if self.arguments is not None:
            shape = np.shape(self.arguments)
            if len(shape) != 2 or shape[1] != len(packed):
                raise ModelError(
                    f"the arguments of '{self.predicate}' must be an array (atom, {len(packed)}), "
                    f"not one of shape {shape}"
                )
            for place, (column, words) in enumerate(zip(self.arguments.T, packed, strict=True)):
                if len(column) and (column.min() < 0 or column.max() >= len(words)):
                    wrong = column[(column < 0) | (column >= len(words))][0]
                    raise ModelError(
                        f"an atom of '{self.predicate}' has {wrong} as argument {place + 1}, "
                        f"which has {len(words)} constants"
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
            quoted(constants.take(pa.array(column)))
            for constants, column in zip(self.constants, columns, strict=True)
        ]
        inside = pc.binary_join_element_wise(*words, ",") if len(words) > 1 else words[0]
        return pc.binary_join_element_wise(f"{self.predicate}(", inside, ")", "")

    def argument_columns(self) -> dict[str, pa.Array]:
        """The arguments of all atoms, by label, each of its type."""
        labels = self.labels or tuple(f"arg{i + 1}" for i in range(len(self.constants)))
        types = self.types or (TEXT,) * len(self.constants)
        return {
            label: read_as(constants, kind).take(pa.array(ids))
            for label, constants, kind, ids in zip(
                labels, self.constants, types, self.constant_ids(), strict=True
            )
        }

    def constant_ids(self) -> Sequence[NDArray[Any]]:
        """Per argument, (atom,): its position among the constants."""
        return self._columns(np.arange(len(self))) if self.constants else ()

    def take(self, index: NDArray[np.int64]) -> Atoms:
        """Some of the atoms."""
        ids = np.array(self._columns(index), dtype=np.int32).T if self.constants else None
        arguments = np.zeros((len(index), 0), np.int32) if ids is None else ids
        return replace(self, arguments=arguments, distinct=True)

    def _columns(self, index: NDArray[np.int64]) -> Sequence[NDArray[Any]]:
        if self.arguments is not None:
            return list(self.arguments[index].T)
        return np.unravel_index(index, [len(c) for c in self.constants])

    @property
    def label(self) -> str:
        return f"{self.predicate}("

    def find(self, names: Sequence[str]) -> NDArray[np.int64]:
        found = np.full(len(names), -1, dtype=np.int64)
        if not len(self):
            return found
        atoms = [split_atom(name, len(self.constants)) for name in names]
        fits = [p == self.predicate and len(w) == len(self.constants) for p, w in atoms]
        place = np.flatnonzero(fits)
        if not len(place) or not self.constants:
            found[place] = 0
            return found
        words = zip(*(atoms[at][1] for at in place.tolist()), strict=True)
        columns = [positions(c, w) for c, w in zip(self.constants, words, strict=True)]
        known = np.all([column >= 0 for column in columns], axis=0)
        code = self._code([column[known] for column in columns])
        if self.arguments is not None:
            atom_code = self._code(list(self.arguments.T))
            order = np.argsort(atom_code, kind="stable")
            at = np.minimum(np.searchsorted(atom_code[order], code), len(order) - 1)
            code = np.where(atom_code[order[at]] == code, order[at], -1)
        found[place[known]] = code
        return found

    def _code(self, columns: list[NDArray[Any]]) -> NDArray[np.int64]:
        """One number per combination of constants, the last argument running fastest."""
        code = np.zeros(len(columns[0]), dtype=np.int64)
        for column, constants in zip(columns, self.constants, strict=True):
            code = code * len(constants) + column
        return code

    def suggest(self, name: str) -> str:
        predicate, words = split_atom(name)
        if predicate != self.predicate:
            return did_you_mean(predicate, [self.predicate])
        if len(words) != len(self.constants):
            arity = len(self.constants)
            plural = "" if arity == 1 else "s"
            more = len(words) > arity > 1
            comma = "; a constant with a comma stands in double quotes" if more else ""
            return f" '{predicate}' takes {arity} argument{plural}, not {len(words)}{comma}."
        for place, (constants, word) in enumerate(zip(self.constants, words, strict=True)):
            if pc.index(constants, word).as_py() == -1:
                close = did_you_mean(word, constants.slice(0, MAX_SUGGESTIONS).to_pylist())
                return f" '{word}' is not a constant of argument {place + 1} of it.{close}"
        return NO_VARIABLE


def positions(strings: pa.StringArray, names: Sequence[str]) -> NDArray[np.int64]:
    """The position of each name among the strings, or -1."""
    if len(names) == 1:
        return np.array([pc.index(strings, names[0]).as_py()], dtype=np.int64)
    found = pc.index_in(pa.array(names, pa.string()), value_set=strings)
    return pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)


def regex_of(pattern: str) -> str:
    """The regular expression of a pattern with * and ?."""
    words = {"*": ".*", "?": ".", ", ": ",\\s*"}
    parts = re.findall(r", |.", pattern, re.DOTALL)
    return "(?s)^" + "".join(words.get(part) or re.escape(part) for part in parts) + "$"


def split_atom(name: str, arity: int | None = None) -> tuple[str, list[str]]:
    """`loss(c3, b1)` -> ('loss', ['c3', 'b1']); a name without arguments has none.

    arity: 1 takes everything in brackets without quotes for one word, commas included.
    """
    predicate, bracket, rest = name.partition("(")
    if not bracket:
        return name.strip(), []
    inside = rest.rstrip().removesuffix(")")
    words = ARGUMENT.findall(inside + ",")
    if arity == 1 < len(words) and '"' not in inside:
        return predicate.strip(), [inside.strip()]
    return predicate.strip(), [
        plain.strip() if plain or not inside else re.sub(r"\\(.)", r"\1", inside)
        for inside, plain in words
    ]


def quoted(words: pa.StringArray) -> pa.StringArray:
    """Words as written in an atom, quoted where needed."""
    doubtful = pc.match_substring_regex(words, r'[,()"\\]|^\s|\s$|[[:cntrl:]]|^$')
    if not pc.any(doubtful).as_py():
        return words
    escaped = pc.replace_substring_regex(words, r'(["\\])', r"\\\1")
    return pc.if_else(doubtful, pc.binary_join_element_wise('"', escaped, '"', ""), words)


def has_own_type(kind: pa.DataType) -> bool:
    """True for types in which tables return constants: integers, dates, timestamps; not text."""
    return bool(pa.types.is_integer(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def read_as(words: pa.StringArray, kind: pa.DataType) -> pa.Array:
    """The constants in a type of their own; an ArrowException where one of them is not of it."""
    if kind == TEXT:
        return words
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pc.assume_timezone(pc.cast(words, pa.timestamp(kind.unit)), kind.tz)
    return pc.cast(words, kind)

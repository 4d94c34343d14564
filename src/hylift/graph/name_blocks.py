"""Blocks of names of consecutive variables: counted, or given one by one."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hylift.errors import did_you_mean

COUNTING = re.compile(r"0|[1-9][0-9]{0,17}")
"""Digits that count something, without leading zeros."""

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

    @property
    @abstractmethod
    def label(self) -> str:
        """What all its names begin with; no two blocks of a graph share one. May be empty."""

    @abstractmethod
    def find(self, names: Sequence[str]) -> NDArray[np.int64]:
        """The positions of names in the block, -1 where they are not in it."""

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


def positions(strings: pa.StringArray, names: Sequence[str]) -> NDArray[np.int64]:
    """Where each name is among the strings, or -1."""
    if len(names) == 1:
        return np.array([pc.index(strings, names[0]).as_py()], dtype=np.int64)
    found = pc.index_in(pa.array(names, pa.string()), value_set=strings)
    return pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)

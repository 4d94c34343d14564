"""Lists of constants whose long ranges, such as `{t0, ..., t9999999}`, are stored by their ends."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import overload

LONG = 1000
"""Shortest range that is stored by its ends."""

MOST_ALIKE = 100
"""Most long ranges of one prefix that are kept as ranges."""

MOST_MERGED = 1_000_000
"""Most constants of ranges that overlap, and are merged."""

INTEGER = re.compile(r"0|-?[1-9][0-9]*")
NUMBERED = re.compile(r"(.*?)([0-9]+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Range(Sequence[str]):
    """Constants that are counted: a prefix and numbers, padded with zeros to a width."""

    prefix: str
    numbers: range
    width: int = 0

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> Range: ...
    def __getitem__(self, place: int | slice) -> str | Range:
        if isinstance(place, slice):
            return Range(self.prefix, self.numbers[place], self.width)
        return self._of(self.numbers[place])

    def __iter__(self) -> Iterator[str]:
        return map(self._of, self.numbers)

    def __contains__(self, word: object) -> bool:
        digits = word[len(self.prefix) :] if isinstance(word, str) else ""
        if not re.fullmatch("-?[0-9]{1,18}", digits):
            return False
        return int(digits) in self.numbers and self._of(int(digits)) == word

    def _of(self, number: int) -> str:
        return f"{self.prefix}{number:0{self.width}d}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Constants(Sequence[str]):
    """The constants of several lists, all different; equal to a tuple of them."""

    parts: tuple[Sequence[str], ...]

    @classmethod
    def of(cls, parts: Sequence[Sequence[str]]) -> tuple[Sequence[str], tuple[str, ...]]:
        """All constants of the parts, each once, and those that they have more than once."""
        words = Counter(chain.from_iterable(part for part in parts if not _is_long(part)))
        if not _are_apart(parts, words):
            if sum(map(len, parts)) > MOST_MERGED:
                raise ValueError("has ranges that overlap: list each constant once")
            words = Counter(chain.from_iterable(parts))
            parts = [list(words)]
        repeated = tuple(word for word, count in words.items() if count > 1)
        if not any(map(_is_long, parts)):
            return tuple(words), repeated
        if repeated:
            left = dict.fromkeys(words)
            parts = [p if _is_long(p) else [w for w in p if left.pop(w, w) is None] for p in parts]
        return cls(tuple(part if _is_long(part) else tuple(part) for part in parts)), repeated

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[str, ...]: ...
    def __getitem__(self, place: int | slice) -> str | tuple[str, ...]:
        if isinstance(place, slice):
            return tuple(self[at] for at in range(*place.indices(len(self))))
        place = range(len(self))[place]
        for part in self.parts:
            if place < len(part):
                return part[place]
            place -= len(part)
        raise IndexError(place)

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self.parts)

    def __contains__(self, word: object) -> bool:
        return any(word in part for part in self.parts)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Constants) and other.parts == self.parts:
            return True
        if not isinstance(other, Constants | tuple) or len(self) != len(other):
            return NotImplemented
        return all(one == another for one, another in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Constants({self[0]}, ..., {self[-1]})"


def _is_long(part: Sequence[str]) -> bool:
    return isinstance(part, Range) and len(part) >= LONG


def _are_apart(parts: Sequence[Sequence[str]], words: Iterable[str]) -> bool:
    """True if no long range has a constant of another, or one of the words."""
    ranges: dict[str, list[Range]] = {}
    for part in parts:
        if isinstance(part, Range) and _is_long(part):
            ranges.setdefault(part.prefix, []).append(part)
    for alike in ranges.values():
        ends = sorted((one.numbers.start, one.numbers.stop) for one in alike)
        is_ordered = all(one[1] <= other[0] for one, other in pairwise(ends))
        if len(alike) > MOST_ALIKE or len({one.width for one in alike}) > 1 or not is_ordered:
            return False
    return not any(word in one for word in words for one in ranges.get(_prefix(word), ()))


def _prefix(word: str) -> str:
    """The prefix of the ranges that may have a word."""
    found = None if INTEGER.fullmatch(word) else NUMBERED.fullmatch(word)
    return found[1] if found else ""

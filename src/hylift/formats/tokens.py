"""Files of numbers separated by white space; errors give line and column."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NoReturn

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hylift.errors import FormatError
from hylift.files import read_text
from hylift.words import counted

QUOTED = 40
"""Longest piece of a file that an error quotes."""


class NumberFile:
    """The words of a file: one leading keyword where its format has one, then numbers."""

    def __init__(self, path: str | Path, keywords: tuple[str, ...] = ()) -> None:
        self.path = Path(path)
        self.text = read_text(path)
        self.num_keywords = 0
        self.keyword = ""
        body = self.text
        if keywords:
            first = self._word(0)
            if first is None:
                raise FormatError(path, "the file is empty")
            self.keyword = first.group().upper()
            if self.keyword not in keywords:
                self.fail(0, f"expected {' or '.join(keywords)}, found {self.quoted(0)}")
            self.num_keywords = 1
            body = self.text[first.end() :]
        self.values = self._numbers(body)

    def _words(self, start: int = 0) -> Iterator[re.Match[str]]:
        """The words of the numbers from this index on."""
        return islice(re.finditer(r"\S+", self.text), start + self.num_keywords, None)

    def _word(self, index: int) -> re.Match[str] | None:
        """The word of the number at this index; None after the last."""
        return next(self._words(index), None)

    def _numbers(self, body: str) -> NDArray[np.float64]:
        # Fast, but it splits '1-2' into two numbers, and some versions only warn when they stop
        # early; if anything is odd, the slow way finds out what.
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)
            try:
                values = np.fromstring(body, dtype=np.float64, sep=" ")
            except (ValueError, DeprecationWarning):
                values = np.zeros(0)
        if len(values) == len(body.split()):
            return values
        for index, word in enumerate(self._words()):
            if not _is_number(word.group()):
                self.fail(index, f"expected a number, found {_quoted(word.group())}")
        return np.array([float(word) for word in body.split()], dtype=np.float64)

    def __len__(self) -> int:
        return len(self.values)

    def quoted(self, index: int) -> str:
        """The number of this index as the file writes it, in quotes."""
        word = self._word(index)
        return _quoted(word.group()) if word else "nothing"

    def fail(self, index: int, message: str) -> NoReturn:
        """Raise a `FormatError` at the number of this index, or where the last one ends."""
        word = self._word(index)
        start = word.start() if word else len(self.text.rstrip())
        line = self.text.count("\n", 0, start) + 1
        column = start - self.text.rfind("\n", 0, start)
        raise FormatError(self.path, message, line=line, column=column)

    def fail_at_end(self, message: str) -> NoReturn:
        """Raise a `FormatError` where the last number ends."""
        self.fail(len(self.values), message)

    def whole(
        self, start: int, count: int, what: str, *, low: int = 0, high: int | None = None
    ) -> NDArray[np.int64]:
        """`count` whole numbers from index `start` on, each from `low` to below `high`."""
        missing = start + count - len(self.values)
        if missing > 0:
            more = f" ({missing} numbers are missing)" if missing > 1 else ""
            self.fail_at_end(f"the file ends where {what} should follow{more}")
        some = self.values[start : start + count]
        limit = 2**53 if high is None else high
        wrong = ~((some == np.floor(some)) & (some >= low) & (some < limit))
        if wrong.any():
            at = start + int(np.argmax(wrong))
            allowed = f"from {low}" + ("" if high is None else f" to {high - 1}")
            self.fail(at, f"{what} must be a whole number {allowed}, not {self.quoted(at)}")
        return some.astype(np.int64)

    def lists(self, start: int, count: int, what: str) -> tuple[NDArray[np.int64], int]:
        """The positions of `count` lists, each with its length before it, and their end.

        (list + 1,): positions of the lengths; the last is the position after the last list.
        """
        if start + count > len(self.values):
            self.fail_at_end(f"the file ends before {counted(count, what)} could follow")
        at, bad = _scan_lists(self.values, start, count)
        if bad >= 0:
            where = int(at[bad])
            if where >= len(self.values):
                self.fail_at_end(f"the file ends where {what} {bad} of {count} should follow")
            size, found = self.values[where], self.quoted(where)
            if not (np.isfinite(size) and size == np.floor(size) and size >= 0):
                self.fail(where, f"the length of {what} {bad} must be a whole number, not {found}")
            rest = counted(len(self.values) - where - 1, "number")
            self.fail(where, f"{what} {bad} has the length {found}, but the file ends after {rest}")
        return at, int(at[-1])

    def items(self, at: NDArray[np.int64]) -> NDArray[np.float64]:
        """(list, item): the numbers of lists of one length, which begin at these positions."""
        size = int(self.values[at[0]]) if len(at) else 0
        return self.values[at[:, None] + 1 + np.arange(size)]

    def end(self, position: int, what: str) -> None:
        """Raise unless the file ends after that many numbers."""
        more = len(self.values) - position
        if more > 0:
            follow = "1 more number follows" if more == 1 else f"{more} more numbers follow"
            self.fail(position, f"the file should end after {what}, but {follow}")


@njit(cache=True)
def _scan_lists(values, start, count):  # type: ignore[no-untyped-def]
    """Positions of `count` lengths and of what follows; and the list that does not fit, or -1."""
    at = np.empty(count + 1, dtype=np.int64)
    position = start
    for number in range(count):
        at[number] = position
        if position >= len(values):
            return at, number
        size = values[position]
        if not (size >= 0 and size == np.floor(size) and position + 1 + size <= len(values)):
            return at, number
        position += 1 + np.int64(size)
    at[count] = position
    return at, -1


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return "_" not in word and word.isascii()


def _quoted(word: str) -> str:
    shown = word if len(word) <= QUOTED else word[: QUOTED - 1] + "…"
    letters = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)
    return f"'{''.join(letters)}'"

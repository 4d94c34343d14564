"""Files of numbers separated by white space, with a place for every error."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hylift.errors import FormatError
from hylift.files import read_text

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
            first = next(self._words(), None)
            if first is None:
                raise FormatError(path, "the file is empty")
            self.keyword = first.group().upper()
            if self.keyword not in keywords:
                allowed = " or ".join(keywords)
                self.fail(0, f"expected {allowed}, found {_quoted(first.group())}")
            self.num_keywords = 1
            body = self.text[first.end() :]
        self.values = self._numbers(body)

    def _words(self) -> Iterator[re.Match[str]]:
        return re.finditer(r"\S+", self.text)

    def _numbers(self, body: str) -> NDArray[np.float64]:
        # The reader stops at the first word that is no number, with a warning that is our error.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            try:
                values = np.fromstring(body, dtype=np.float64, sep=" ")
            except ValueError:
                values = np.zeros(0)
        if len(values) == len(body.split()):
            return values
        for number, word in enumerate(self._words()):
            if number >= self.num_keywords and not _is_number(word.group()):
                self.fail(
                    number - self.num_keywords,
                    f"expected a number, found {_quoted(word.group())}",
                )
        return np.array([float(word) for word in body.split()])

    def __len__(self) -> int:
        return len(self.values)

    def fail(self, index: int, message: str) -> NoReturn:
        """Raises a `FormatError` at the number of this index, or at the end of the file."""
        target = index + self.num_keywords if index or self.num_keywords == 0 else index
        for number, word in enumerate(self._words()):
            if number == target:
                line = self.text.count("\n", 0, word.start()) + 1
                column = word.start() - self.text.rfind("\n", 0, word.start())
                raise FormatError(self.path, message, line=line, column=column)
        lines = self.text.count("\n") + 1
        raise FormatError(self.path, message, line=lines)

    def whole(
        self, start: int, count: int, what: str, *, low: int = 0, high: float = np.inf
    ) -> NDArray[np.int64]:
        """`count` whole numbers from index `start` on, each from `low` to below `high`."""
        if start + count > len(self.values):
            self.fail(
                len(self.values),
                f"the file ends where {what} should follow "
                f"({start + count - len(self.values)} numbers are missing)",
            )
        some = self.values[start : start + count]
        wrong = ~((some == np.floor(some)) & (some >= low) & (some < min(high, 2.0**53)))
        if wrong.any():
            at = int(np.argmax(wrong))
            limit = f"a whole number from {low}" + ("" if high == np.inf else f" to {high - 1:g}")
            self.fail(start + at, f"{what} must be {limit}, not {some[at]:g}")
        return some.astype(np.int64)

    def lists(self, start: int, count: int, what: str) -> tuple[NDArray[np.int64], int]:
        """Where each of `count` lists begins (its length stands before it), and where all end.

        (list + 1,): positions of the lengths; the last is the position after the last list.
        """
        if start + count > len(self.values):
            self.fail(
                len(self.values),
                f"the file ends before all {count} of {what} are there",
            )
        at, bad = _scan_lists(self.values, start, count)
        if bad >= 0:
            where = int(at[bad])
            if where >= len(self.values):
                self.fail(where, f"the file ends where {what} {bad} of {count} should follow")
            size = self.values[where]
            if not (size == np.floor(size) and size >= 0):
                self.fail(where, f"the length of {what} {bad} must be a whole number, not {size:g}")
            self.fail(
                len(self.values),
                f"the file ends within {what} {bad} of {count}, which should have {size:g} numbers",
            )
        return at, int(at[-1])

    def end(self, position: int, what: str) -> None:
        """Raises unless the file ends after that many numbers."""
        if position < len(self.values):
            self.fail(
                position,
                f"{what} end here, but {len(self.values) - position} more numbers follow",
            )


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
    return "_" not in word


def _quoted(word: str) -> str:
    shown = word if len(word) <= QUOTED else word[: QUOTED - 1] + "…"
    return f"'{shown.encode('unicode_escape').decode()}'"


def listed(file: NumberFile, at: NDArray[np.int64], which: NDArray[Any]) -> NDArray[np.float64]:
    """The numbers of some lists of one length, (list, item)."""
    size = int(file.values[at[which[0]]]) if len(which) else 0
    return file.values[at[which][:, None] + 1 + np.arange(size)]

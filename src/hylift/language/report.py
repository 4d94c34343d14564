"""Errors and warnings about a model, with their place in the text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NoReturn

from hylift.errors import HyliftWarning, ModelError
from hylift.language.syntax import Node, Place
from hylift.words import printable, worded

INDENT = "    "

WIDEST = 120
"""Maximum number of characters of a line that are shown."""


@dataclass(frozen=True, slots=True)
class Problem:
    """An error in a model, or a warning about it."""

    severity: Literal["error", "warning"]
    message: str
    place: Place | None = None
    subject: str | None = None
    """The predicate that a warning is about, where it is about one."""

    def __str__(self) -> str:
        return located(self.message, self.place)


def error(message: str, node: Node) -> Problem:
    """An error at the place of a node."""
    return Problem("error", message, node.place)


def warning(message: str, node: Node) -> Problem:
    """A warning at the place of a node."""
    return Problem("warning", message, node.place)


class ModelWarning(HyliftWarning):
    """A model that is valid, but probably not what was meant."""


def fail(message: str, place: Place | None) -> NoReturn:
    """Raise an error about a place."""
    problem = Problem("error", message, place)
    error = ModelError(str(problem)).in_lines()
    error.problems = (problem,)
    raise error from None


def located(message: str, place: Place | None) -> str:
    """The message after file, line and column, with the line and carets below it."""
    message = printable(message, one_line=True)
    if place is None:
        return message
    lines = _lines(place.source.text)
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    first = max(0, place.column - 1 - WIDEST // 2) if len(line) > WIDEST else 0
    shown = _printable(line[first : first + WIDEST])
    start = place.column - 1 - first
    width = max(1, min(place.end - 1 - first, len(shown)) - start)
    name = printable(place.source.name, one_line=True)
    where = f"{name}:{place.line}:{place.column}"
    margin = "".join(letter if letter == "\t" else " " for letter in shown[:start].ljust(start))
    below = f"\n{INDENT}{shown}\n{INDENT}{margin}{'^' * width}"
    return worded(f"{where}: ", message, below)


@lru_cache(maxsize=4)
def _lines(text: str) -> tuple[str, ...]:
    """The lines of a text, cached because many problems may be about one text."""
    return tuple(text.split("\n"))


def _printable(text: str) -> str:
    """The text with blanks in place of unprintable characters, except tabs."""
    return "".join(letter if letter.isprintable() or letter == "\t" else " " for letter in text)

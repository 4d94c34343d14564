"""How errors and warnings about a model show the place they speak of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hylift.language.syntax import Place

INDENT = "    "


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a model (an error), or worth a second look (a warning)."""

    severity: Literal["error", "warning"]
    message: str
    place: Place | None = None

    def __str__(self) -> str:
        return located(self.message, self.place)


class ModelWarning(UserWarning):
    """A model that is allowed, but probably not what was meant."""


def located(message: str, place: Place | None) -> str:
    """The message with file, line and column before it, and the line with carets below it."""
    if place is None:
        return message
    lines = place.source.text.splitlines()
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    start = place.column - 1
    width = max(1, min(place.end, len(line) + 1) - place.column)
    # Tabs stay tabs under the text, so that the carets stand where the text stands.
    margin = "".join("\t" if letter == "\t" else " " for letter in line[:start])
    where = f"{place.source.name}:{place.line}:{place.column}"
    return f"{where}: {message}\n{INDENT}{line}\n{INDENT}{margin}{'^' * width}"

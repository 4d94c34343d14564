"""Files of tables, and which of their columns are meant."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hylift.errors import EvidenceError, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

NAME = re.compile(
    r"""\s*(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<plain>(?:[^\s",][^,]*?)?))\s*(?P<end>,|$)"""
)
"""One name in a list of columns, up to the comma behind it."""


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file, and the columns of its table that are meant, in their order."""

    path: Path
    columns: tuple[str, ...] | None = None
    """None: all."""

    @classmethod
    def parse(cls, text: str) -> TableFile:
        """From `wine.csv`, or from `wine.csv[tasting,price]`; a file that is called so comes first.

        A name with a comma, or with a space at an end, stands in double quotes.
        """
        starts = [at for at, letter in enumerate(text) if letter == "[" and at]
        if not starts or os.path.exists(text):
            return cls(Path(text))
        start = next((at for at in starts if os.path.isfile(text[:at])), None)
        if start is None and not text.endswith("]"):
            return cls(Path(text))
        start = starts[-1] if start is None else start
        return cls(Path(text[:start]), _names(text, start))

    def __str__(self) -> str:
        return f"{self.path}{'' if self.columns is None else listed_columns(self.columns)}"

    def chosen(self, table: pa.Table, label: str) -> pa.Table:
        """The columns of the file's table that are meant; `label` is what errors call it."""
        if self.columns is None:
            return table
        names = table.column_names
        found = [_only_one(column, names, label) for column in self.columns]
        unknown = [c for c, name in zip(self.columns, found, strict=True) if name is None]
        if unknown:
            quoted = " or ".join(f"'{column}'" for column in unknown)
            hints = "".join(did_you_mean(column, names) for column in unknown)
            raise EvidenceError(
                f"{label}: there is no column {quoted}; its columns are "
                f"{', '.join(map(quoted_name, names))}{'.' if hints else ''}{hints}"
            )
        for place, name in enumerate(found):
            if names.count(name) > 1:
                raise EvidenceError(f"{label}: {names.count(name)} columns are called '{name}'")
            if name in found[:place]:
                first, second = self.columns[found.index(name)], self.columns[place]
                raise EvidenceError(
                    f"{label}: '{first}' and '{second}' are one column, '{name}': name it once"
                )
        return table.select(found)


def same_name(name: str, known: Sequence[str]) -> str | None:
    """The same word, or else the same but for capitals."""
    if name in known:
        return name
    return next((other for other in known if other.casefold() == name.casefold()), None)


def listed_columns(names: Sequence[str]) -> str:
    """`[tasting,price]`."""
    return f"[{','.join(map(quoted_name, names))}]"


def quoted_name(name: str) -> str:
    """The name of a column as a list of columns has it: in double quotes where it needs them."""
    is_plain = name and name == name.strip() and "," not in name and '"' not in name
    doubled = name.replace('"', '""')
    return name if is_plain else f'"{doubled}"'


def _only_one(name: str, known: Sequence[str], label: str) -> str | None:
    """The same word, or else the only one that is the same but for capitals."""
    alike = sorted({other for other in known if other.casefold() == name.casefold()})
    if name not in alike and len(alike) > 1:
        choice = " or ".join(f"'{other}'" for other in alike)
        raise EvidenceError(f"{label}: '{name}' may be {choice}: write it as the file does")
    return same_name(name, known)


def _names(text: str, start: int) -> tuple[str, ...]:
    """The names in the brackets that begin at this place."""
    if not text.endswith("]"):
        raise EvidenceError(f"{text}: the list of columns has no ']' at its end")
    inside = text[start + 1 : -1]
    if not inside.strip():
        raise EvidenceError(
            f"{text}: there is no column between the brackets: name some, as in "
            f"{text[:start]}[first,second]"
        )
    names: list[str] = []
    start, is_more = 0, True
    while is_more:
        found = NAME.match(inside, start)
        if found is None:
            raise EvidenceError(
                f"{text}: the list of columns cannot be read; names stand between commas, and "
                "those with a comma or quotes in double quotes"
            )
        quoted = found["quoted"]
        names.append(found["plain"] if quoted is None else quoted.replace('""', '"'))
        start, is_more = found.end(), found["end"] == ","
    for place, name in enumerate(names):
        if not name:
            raise EvidenceError(f"{text}: column {place + 1} between the brackets has no name")
        if name in names[:place]:
            raise EvidenceError(f"{text}: the column '{name}' is named twice")
    return tuple(names)

"""Rows about one predicate, as a source states them: which columns are what."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import EvidenceError
from hylift.grounding.evidence.columns import WordColumn
from hylift.language.syntax import PredicateDeclaration

ROLES = {"value": "value", "probability": "value", "prob": "value", "sd": "sd", "std": "sd"}
"""Columns that are known by their name, in lower case; all others are arguments."""


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """Where rows come from, as errors call it."""

    name: str
    unit: str = "row"
    """What its rows are called: `row`, or `line` in a text."""
    entries: tuple[str, ...] = ()
    """Keys of a mapping that are the rows themselves, which have no numbers then."""

    def where(self, row: int) -> str:
        """`facts.csv, row 7`."""
        if self.entries:
            return f"{self.name}['{self.entries[row - 1]}']"
        return f"{self.name}, {self.row(row)}"

    def row(self, row: int) -> str:
        """`row 7`, where it is clear of what."""
        return f"'{self.entries[row - 1]}'" if self.entries else f"{self.unit} {row}"


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """What a source states about atoms of one predicate."""

    predicate: PredicateDeclaration
    origin: Origin
    row: NDArray[np.int64]  # (fact,): counted from 1
    arguments: tuple[WordColumn, ...]
    value: pa.ChunkedArray | None = None  # None: all are true
    sd: pa.ChunkedArray | None = None  # None: all are exact

    def __len__(self) -> int:
        return len(self.row)

    def where(self, fact: int) -> str:
        return self.origin.where(int(self.row[fact]))

    def atom(self, fact: int) -> str:
        """`In(p3, t1)`, in the words of the source."""
        if not self.arguments:
            return self.predicate.name
        words = (column[fact] for column in self.arguments)
        return f"{self.predicate.name}({', '.join('' if w is None else w for w in words)})"

    def filter(self, keep: NDArray[np.bool_]) -> Facts:
        mask = pa.array(keep)
        return replace(
            self,
            row=self.row[keep],
            arguments=tuple(column.filter(keep) for column in self.arguments),
            value=None if self.value is None else self.value.filter(mask),
            sd=None if self.sd is None else self.sd.filter(mask),
        )


@dataclass(frozen=True, slots=True, eq=False)
class GivenConstants:
    """Constants of a type that a source lists."""

    type_name: str
    origin: Origin
    words: WordColumn
    is_ordered: bool = False
    """Whether their order is meant, as in a list."""


def from_table(predicate: PredicateDeclaration, table: pa.Table, origin: Origin) -> Facts:
    """A table of one predicate: a column per argument, then perhaps values and their errors."""
    if not table.num_columns:  # an empty list
        table = pa.table(
            [pa.array([], pa.string())] * (len(predicate.arguments) + 1),
            names=[*predicate.arguments, "value"],
        )
    places = _roles(predicate, table.column_names, origin)
    names = [table.column_names[place] for place in places["argument"]]
    arguments = tuple(
        words_of(table.column(place), name, origin)
        for place, name in zip(places["argument"], names, strict=True)
    )
    value, sd = (
        table.column(places[role][0]) if places[role] else None for role in ("value", "sd")
    )
    row = np.arange(1, table.num_rows + 1)
    return complete(Facts(predicate, origin, row, arguments, value, sd))


def _roles(
    predicate: PredicateDeclaration, names: list[str], origin: Origin
) -> dict[str, list[int]]:
    """The places of the columns that are arguments (in order), values and errors."""
    types = predicate.arguments
    places: dict[str, list[int]] = {"argument": [], "value": [], "sd": []}
    for place, name in enumerate(names):
        places[ROLES.get(name.lower(), "argument")].append(place)
    if len(names) == len(types) and sorted(names) == sorted(types):
        places = {"argument": list(range(len(names))), "value": [], "sd": []}
    rest = places["argument"]
    if len(rest) == len(types) + 2 and not places["value"] and not places["sd"]:
        places["sd"] = [rest.pop()]
    if len(rest) == len(types) + 1 and not places["value"]:
        places["value"] = [rest.pop()]
    one_each = len(places["value"]) <= 1 and len(places["sd"]) <= 1
    by_name = [names[place].lower() for place in places["value"]]
    improbable = not predicate.domain.is_discrete and by_name in (["probability"], ["prob"])
    if len(rest) != len(types) or not one_each or improbable:
        raise EvidenceError(_wrong_columns(predicate, names, origin))
    if len(set(types)) == len(types) and {names[place] for place in rest} == set(types):
        rest.sort(key=lambda place: types.index(names[place]))
    return places


def _wrong_columns(predicate: PredicateDeclaration, names: list[str], origin: Origin) -> str:
    expected = ", ".join(predicate.arguments)
    further = "value, and perhaps sd" if not predicate.domain.is_discrete else "perhaps value"
    columns = ", ".join([*([expected] if expected else []), further])
    wanted = f"a table of '{predicate.name}' has the columns {columns}"
    return f"{origin.name}: {wanted}; this one has {', '.join(names)}"


def words_of(column: pa.ChunkedArray, name: str, origin: Origin) -> WordColumn:
    try:
        return WordColumn.of(column, name)
    except EvidenceError as error:
        raise EvidenceError(f"{origin.name}: {error}") from None


def complete(facts: Facts) -> Facts:
    """The facts, after a check that no argument is missing."""
    for place, column in enumerate(facts.arguments):
        missing = np.flatnonzero(column.is_missing)
        if len(missing):
            first = int(missing[0])
            raise EvidenceError(
                f"{facts.where(first)}: {facts.atom(first)} lacks argument {place + 1}, of type "
                f"'{facts.predicate.arguments[place]}'{like_it(len(missing) - 1)}"
            )
    return facts


def like_it(more: int) -> str:
    """` … and 99 more rows like it`, or nothing."""
    if not more:
        return ""
    return f" … and {more} more row{'' if more == 1 else 's'} like it"

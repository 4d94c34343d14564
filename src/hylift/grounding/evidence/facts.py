"""Facts: rows about atoms of one predicate, as a source states them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import EvidenceError
from hylift.formats.table_file import listed_columns
from hylift.grounding.constants import WordColumn, closest, not_among
from hylift.language.statements import PredicateDeclaration
from hylift.words import Wording, option, worded


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """A source of rows, as errors call it."""

    name: str
    unit: str = "row"
    """`row`, or `line` in a text."""
    entries: tuple[str, ...] = ()
    """Keys of a mapping that are the rows; rows have no numbers then."""
    index: tuple[str, ...] = ()
    """Names of pandas' row labels, which are no columns; `index` where unnamed."""
    file: str = ""
    """The path, where it is a file."""

    @property
    def spells_atoms(self) -> bool:
        """True if it writes atoms out, `In(p3, t1)`, and has no cells that may be empty."""
        return self.unit == "line" or bool(self.entries)

    @property
    def index_note(self) -> str:
        """That row labels are no column, behind the columns of a table; empty without labels."""
        if not self.index:
            return ""
        named = f", {', '.join(self.index)}," if self.index != ("index",) else ""
        return f" (its index{named} is not a column: reset_index() makes it one)"

    def where(self, row: int) -> str:
        """`facts.csv, row 7`."""
        if self.entries:
            return f"{self.name}['{self.entries[row - 1]}']"
        return f"{self.name}, {self.row(row)}"

    def row(self, row: int) -> str:
        """`row 7`, where it is clear of what."""
        return f"'{self.entries[row - 1]}'" if self.entries else f"{self.unit} {row}"

    def selection(self, name: str, columns: Sequence[str]) -> Wording:
        """The way to choose columns for a predicate or type; … stands for unknown ones.

        `df[['paper', 'topic']]` in Python, `--evidence In=all.csv[paper,topic]` on the command
        line.
        """
        quoted = [column if column == "…" else repr(column) for column in columns]
        chosen = ", ".join(quoted) if set(quoted) != {"…"} else "…"
        file = shlex.quote(f"{name}={self.file}{listed_columns(columns)}")
        return Wording(f"df[[{chosen}]]", f"--evidence {file}")


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """The statements of a source about atoms of one predicate, or a list of constants of a type."""

    predicate: PredicateDeclaration
    origin: Origin
    row: NDArray[np.int64]  # (fact,): counted from 1
    arguments: tuple[WordColumn, ...]
    value: pa.ChunkedArray | None = None  # None: all are true
    sd: pa.ChunkedArray | None = None  # None: all are exact
    is_list: bool = False
    """True if the order of constants is meant, as in a list."""

    def __post_init__(self) -> None:
        """Raise if an argument is missing.

        The state of a variable may be, as may the value of a real; not where atoms are spelled out.
        """
        for place, column in enumerate(self.arguments):
            is_missing = column.is_missing
            if place == self.predicate.unique:
                is_known = True if self.value is None else self.value.is_valid().to_numpy()
                is_missing = is_missing & is_known & self.origin.spells_atoms
            lacking = f"lacks argument {place + 1}, of type '{self.predicate.arguments[place]}'"
            self.refuse(is_missing, partial(self._about, lacking))

    def __len__(self) -> int:
        return len(self.row)

    @property
    def lacks_state(self) -> NDArray[np.bool_]:
        """(fact,): whether it does not say which constant of a unique argument holds."""
        unique = self.predicate.unique
        if unique is None:
            return np.zeros(len(self), dtype=bool)
        return self.arguments[unique].is_missing

    def where(self, fact: int) -> str:
        return self.origin.where(int(self.row[fact]))

    def _about(self, said: str, fact: int) -> str:
        return f"{self.atom(fact)} {said}"

    def refuse(self, wrong: NDArray[np.bool_], message: Callable[[int], str]) -> None:
        """Raise if facts are wrong, with the message about the first of them."""
        refuse_rows(self.origin, self.row, wrong, message)

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


def refuse_rows(
    origin: Origin,
    row: NDArray[np.int64],
    wrong: NDArray[np.bool_],
    message: Callable[[int], str],
) -> None:
    """Raise if rows are wrong, with the message about the first of them.

    row: (place,), their numbers in the source. message: from the place of the first.
    """
    places = np.flatnonzero(wrong)
    if len(places):
        first = int(places[0])
        where, more = origin.where(int(row[first])), more_rows(len(places) - 1)
        raise EvidenceError(f"{where}: {message(first)}{more}")


def more_rows(more: int) -> str:
    """` … and 99 more rows like it`, or nothing."""
    if not more:
        return ""
    return f" … and {more} more row{'' if more == 1 else 's'} like it"


@dataclass(frozen=True, slots=True)
class Unmatched:
    """Rows of one source with one kind of problem."""

    origin: Origin
    row: int
    """The first of them."""
    problem: str
    """The error in the first."""
    count: int
    hint: str = ""
    """` Did you mean 'Wall'?`, or nothing."""

    def __str__(self) -> str:
        rows = "1 row" if self.count == 1 else f"{self.count} rows"
        first = self.origin.row(self.row)
        return f"{self.origin.name}: {rows} left out; the first, {first}: {self.problem}"


def refuse(unmatched: Sequence[Unmatched]) -> None:
    """Raise if there are any unmatched rows."""
    if unmatched:
        first = unmatched[0]
        more = more_rows(sum(rows.count for rows in unmatched) - 1)
        raise EvidenceError(
            f"{first.origin.where(first.row)}: {first.problem}{more}.{first.hint}",
            worded("Pass ", option("unmatched", "ignore"), " to leave such rows out."),
        )


def match_facts(
    given: Sequence[Facts], listed: Mapping[str, pa.StringArray]
) -> tuple[list[Facts], list[Unmatched]]:
    """The facts whose constants are in the lists of their types, by type; and the others."""
    pairs = [_matched(facts, listed) for facts in given]
    return [facts for facts, _ in pairs], [rows for _, rows in pairs if rows is not None]


def _matched(facts: Facts, listed: Mapping[str, pa.StringArray]) -> tuple[Facts, Unmatched | None]:
    keep = np.ones(len(facts), dtype=bool)
    columns = list(facts.arguments)
    problems: dict[int, tuple[str, str]] = {}  # by fact
    for place, type_name in enumerate(facts.predicate.arguments):
        if type_name in listed:
            column = columns[place] = columns[place].among(listed[type_name])
            wrong = (column.ids(listed[type_name]) < 0) & ~column.is_missing
            for first in np.flatnonzero(wrong)[:1].tolist():
                word, constants = str(column[first]), listed[type_name]
                text = not_among(word, type_name, constants)
                if facts.predicate.name != type_name:  # about an atom, not a list of the type
                    text = f"{facts.atom(first)}: {text}"
                problems.setdefault(first, (text, closest(word, constants)))
            keep &= ~wrong
    facts = replace(facts, arguments=tuple(columns))
    if not problems:
        return facts, None
    first = min(problems)
    problem, hint = problems[first]
    count = int(np.count_nonzero(~keep))
    unmatched = Unmatched(facts.origin, int(facts.row[first]), problem, count, hint)
    return facts.filter(keep), unmatched

"""Rows that speak of what the model does not have: refused, or left out and counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from hylift.errors import EvidenceError
from hylift.grounding.constants import closest, not_among
from hylift.grounding.evidence.facts import Facts, GivenConstants, Origin, like_it


@dataclass(frozen=True, slots=True)
class Unmatched:
    """Rows of one source with one kind of problem."""

    origin: Origin
    row: int
    """The first of them."""
    problem: str
    """What is wrong with the first."""
    count: int
    hint: str = ""
    """` Did you mean 'Wall'?`, or nothing."""

    def __str__(self) -> str:
        rows = "1 row" if self.count == 1 else f"{self.count} rows"
        first = self.origin.row(self.row)
        return f"{self.origin.name}: {rows} left out; the first, {first}: {self.problem}"


def refuse(unmatched: Sequence[Unmatched]) -> None:
    """Raises if there are any unmatched rows."""
    if unmatched:
        first = unmatched[0]
        more = like_it(sum(rows.count for rows in unmatched) - 1)
        raise EvidenceError(
            f"{first.origin.where(first.row)}: {first.problem}{more}; pass unmatched='ignore' to "
            f"leave such rows out{'.' if first.hint else ''}{first.hint}"
        )


def match_facts(
    facts: Facts, listed: Mapping[str, pa.StringArray]
) -> tuple[Facts, list[Unmatched]]:
    """The facts whose constants are in the lists of their types, by type; and what others say."""
    keep = np.ones(len(facts), dtype=bool)
    columns = list(facts.arguments)
    problems: dict[int, tuple[str, str]] = {}  # by fact
    for place, type_name in enumerate(facts.predicate.arguments):
        if type_name in listed:
            column = columns[place] = columns[place].among(listed[type_name])
            wrong = (column.ids(listed[type_name]) < 0) & ~column.is_missing
            for first in np.flatnonzero(wrong)[:1].tolist():
                word, constants = str(column[first]), listed[type_name]
                text = f"{facts.atom(first)}: {not_among(word, type_name, constants)}"
                problems.setdefault(first, (text, closest(word, constants)))
            keep &= ~wrong
    facts = replace(facts, arguments=tuple(columns))
    if not problems:
        return facts, []
    first = min(problems)
    problem, hint = problems[first]
    count = int(np.count_nonzero(~keep))
    unmatched = Unmatched(facts.origin, int(facts.row[first]), problem, count, hint)
    return facts.filter(keep), [unmatched]


def match_constants(given: GivenConstants, listed: Mapping[str, pa.StringArray]) -> list[Unmatched]:
    """What a source's constants of a type say that are not in its list."""
    if given.type_name not in listed:
        return []
    constants = listed[given.type_name]
    wrong = np.flatnonzero(given.words.ids(constants) < 0)
    if not len(wrong):
        return []
    first = int(wrong[0])
    word = str(given.words[first])
    problem, hint = not_among(word, given.type_name, constants), closest(word, constants)
    return [Unmatched(given.origin, first + 1, problem, len(wrong), hint)]

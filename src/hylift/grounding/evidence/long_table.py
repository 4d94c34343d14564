"""Tables with facts about several predicates, which one column names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import EvidenceError, did_you_mean
from hylift.grounding.evidence.columns import WordColumn
from hylift.grounding.evidence.facts import ROLES, Facts, Origin, complete, like_it, words_of
from hylift.grounding.evidence.unmatched import Unmatched
from hylift.language.syntax import PredicateDeclaration
from hylift.language.types import arity_fault


@dataclass(frozen=True, slots=True, eq=False)
class LongTable:
    """Columns predicate, arg1, arg2, …, and perhaps value and sd."""

    predicate: WordColumn
    arguments: tuple[pa.ChunkedArray, ...]  # null where a predicate has fewer
    value: pa.ChunkedArray | None
    sd: pa.ChunkedArray | None
    row: NDArray[np.int64]
    origin: Origin

    @classmethod
    def of(cls, table: pa.Table, origin: Origin) -> LongTable:
        names = [name.lower() for name in table.column_names]
        places: dict[str, list[int]] = {"predicate": [], "argument": [], "value": [], "sd": []}
        for place, name in enumerate(names):
            is_argument = re.fullmatch(r"arg[0-9]+", name)
            role = "argument" if is_argument else ROLES.get(name, name)
            places.setdefault(role, []).append(place)
        places["argument"].sort(key=lambda place: int(names[place][3:]))
        single = all(len(places[role]) <= 1 for role in places if role != "argument")
        if len(places) > 4 or len(places["predicate"]) != 1 or not single:
            raise EvidenceError(
                f"{origin.name}: evidence on several predicates has the columns predicate, arg1, "
                "arg2, …, and perhaps value and sd; this table has "
                f"{', '.join(table.column_names) or 'none'}. For a table of one predicate, pass "
                "{'Predicate': table}"
            )
        value, sd = (table.column(places[r][0]) if places[r] else None for r in ("value", "sd"))
        return cls(
            words_of(table.column(places["predicate"][0]), "predicate", origin),
            tuple(table.column(place) for place in places["argument"]),
            value,
            sd,
            np.arange(1, table.num_rows + 1),
            origin,
        )

    def split(
        self, known: Mapping[str, PredicateDeclaration]
    ) -> tuple[list[Facts], list[Unmatched]]:
        """The facts about each predicate, and what is about unknown ones."""
        missing = np.flatnonzero(self.predicate.is_missing)
        if len(missing):
            where = self.origin.where(int(self.row[missing[0]]))
            raise EvidenceError(f"{where}: there is no predicate{like_it(len(missing) - 1)}")
        words, code_of_row = self.predicate.encoded()
        order = np.argsort(code_of_row, kind="stable")
        ends = np.searchsorted(code_of_row[order], np.arange(len(words) + 1))
        names = words.to_pylist()
        facts = [
            self._facts(known[name], order[ends[code] : ends[code + 1]])
            for code, name in enumerate(names)
            if name in known
        ]
        is_known = np.array([name in known for name in names], dtype=bool)
        unknown = np.flatnonzero(~is_known[code_of_row])
        unmatched = []
        for first in unknown[:1].tolist():
            name = str(self.predicate[first])
            problem, hint = f"unknown predicate '{name}'", did_you_mean(name, known)
            row = int(self.row[first])
            unmatched.append(Unmatched(self.origin, row, problem, len(unknown), hint))
        return facts, unmatched

    def _facts(self, predicate: PredicateDeclaration, at: NDArray[np.int64]) -> Facts:
        """The facts about one predicate, which has these rows."""
        rows = pa.array(at)
        count = len(predicate.arguments)
        columns = tuple(
            words_of(column.take(rows), f"arg{place + 1}", self.origin)
            for place, column in enumerate(self.arguments)
        )
        for column in columns[count:]:
            extra = np.flatnonzero(~column.is_missing)
            if len(extra):
                self._fail(predicate, columns, at, int(extra[0]), len(extra))
        if len(columns) < count and len(at):
            self._fail(predicate, columns, at, 0, len(at))
        value = None if self.value is None else self.value.take(rows)
        sd = None if self.sd is None else self.sd.take(rows)
        return complete(Facts(predicate, self.origin, self.row[at], columns[:count], value, sd))

    def _fail(
        self,
        predicate: PredicateDeclaration,
        columns: tuple[WordColumn, ...],
        at: NDArray[np.int64],
        fact: int,
        count: int,
    ) -> NoReturn:
        """Raises about a number of facts with too many or too few arguments, this one first."""
        words = [word for column in columns if (word := column[fact]) is not None]
        raise EvidenceError(
            f"{self.origin.where(int(self.row[at[fact]]))}: {predicate.name}({', '.join(words)}): "
            f"{arity_fault(predicate, len(words))}{like_it(count - 1)}"
        )

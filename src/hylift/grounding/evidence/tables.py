"""Tables of facts: which columns are arguments, values and errors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import EvidenceError, did_you_mean
from hylift.formats.table_file import quoted_name
from hylift.grounding.constants import WordColumn
from hylift.grounding.evidence.facts import Facts, Origin, Unmatched, refuse_rows
from hylift.language.statements import PredicateDeclaration
from hylift.language.types import arity_fault
from hylift.words import Wording, worded

ROLES = {"value": "value", "probability": "value", "prob": "value", "sd": "sd", "std": "sd"}
"""Columns with a role by their name, in lower case; all others are arguments."""

ERRORS = frozenset(
    ("sd", "std", "stdev", "stddev", "dev", "deviation", "sigma", "se", "stderr", "err", "error")
)
"""Last words, in lower case, of the names that a column of errors behind the values may have:
`sigma`, `celsius_error`, `standard deviation`."""


def from_table(predicate: PredicateDeclaration, table: pa.Table, origin: Origin) -> Facts:
    """A table of one predicate: a column per argument, then perhaps values and their errors."""
    if not table.num_columns:  # an empty list
        table = pa.table(
            [pa.array([], pa.string())] * (len(predicate.arguments) + 1),
            names=[*predicate.arguments, "value"],
        )
    return _WideTable(predicate, table, origin).facts()


@dataclass(frozen=True, slots=True, eq=False)
class _WideTable:
    """A table whose columns are the arguments of one predicate, values and errors."""

    predicate: PredicateDeclaration
    table: pa.Table
    origin: Origin

    @property
    def names(self) -> list[str]:
        return list(self.table.column_names)

    def facts(self) -> Facts:
        arguments, values, sds = self._roles()
        words = tuple(words_of(self.table.column(p), self.names[p], self.origin) for p in arguments)
        self._check_index(arguments)
        self._check_truths(values)
        self._check_errors(sds)
        if not values and not self.predicate.domain.is_discrete:
            self._fail(f": '{self.predicate.name}' is real, but has no values")
        value, sd = (self.table.column(p[0]) if p else None for p in (values, sds))
        row = np.arange(1, self.table.num_rows + 1)
        return Facts(self.predicate, self.origin, row, words, value, sd)

    def _roles(self) -> tuple[list[int], list[int], list[int]]:
        """The places of the columns that are arguments (in order), values and errors."""
        types, names = self.predicate.arguments, self.names
        folded, folded_types = ([name.casefold() for name in words] for words in (names, types))
        places: dict[str, list[int]] = {"argument": [], "value": [], "sd": []}
        are_types = sorted(folded) == sorted(folded_types)
        for place, name in enumerate(folded):
            places["argument" if are_types else ROLES.get(name, "argument")].append(place)
        arguments, values, sds = places.values()
        by_name = [folded[place] for place in values]
        self._move_surplus(arguments, values, sds)
        improbable = not self.predicate.domain.is_discrete and by_name in (
            ["probability"],
            ["prob"],
        )
        if len(arguments) != len(types) or len(values) > 1 or len(sds) > 1 or improbable:
            self._fail(remedy=self._choice() if len(arguments) > len(types) else None)
        arguments = _by_type(arguments, names, types)
        expected = [*zip(arguments, types, strict=True)]
        expected += [(place, role) for role in ("value", "sd") for place in places[role]]
        for place, role in expected:
            if folded[place] in folded_types and folded[place] not in (role.casefold(), *ROLES):
                choice = self._choice() if set(folded_types) <= set(folded) else None
                self._fail(
                    "" if choice else f", with '{names[place]}' in the place of '{role}'",
                    choice or worded("rename or reorder the columns"),
                )
        return arguments, values, sds

    def _move_surplus(self, arguments: list[int], values: list[int], sds: list[int]) -> None:
        """Make columns beyond the arguments values and errors: the last ones, value before error.

        A column that is called like the predicate has the values wherever it stands.
        """
        types, own = self.predicate.arguments, self.predicate.name.casefold()
        named = [place for place in arguments if self.names[place].casefold() == own]
        if own in (name.casefold() for name in types):
            named = []
        has_sd = len(arguments) == len(types) + 2 and not values and not sds
        if len(arguments) > len(types) and not values and named:
            values.append(named[0])
            arguments.remove(named[0])
        if has_sd and (named or not self.predicate.domain.is_discrete):
            sds.append(arguments.pop())
        if len(arguments) == len(types) + 1 and not values:
            values.append(arguments.pop())

    def _check_index(self, arguments: list[int]) -> None:
        """Raise if arguments are the labels of rows, and something else is taken for them."""
        index = self.origin.index
        missing = {name.casefold() for name in self.predicate.arguments}
        missing -= {name.casefold() for name in self.names}
        are_truths = any(pa.types.is_boolean(self.table.column(p).type) for p in arguments)
        if missing.intersection(map(str.casefold, index)) or (index and are_truths):
            self._fail()

    def _check_truths(self, values: list[int]) -> None:
        """Raise if a column that nothing marks as truth values would be taken for them."""
        for place in values if self.predicate.domain.is_discrete else ():
            name = self.names[place]
            known = {*ROLES, self.predicate.name.casefold(), f"#{place + 1}"}
            is_boolean = pa.types.is_boolean(self.table.column(place).type)
            if name.casefold() not in known and not is_boolean:
                is_many = len(self.names) > len(self.predicate.arguments) + 1
                choice = self._choice() if is_many else None
                self._fail(
                    remedy=choice
                    if choice is not None and "…" not in choice
                    else worded(
                        f"if '{name}' says which rows are true, call it 'value'; else ",
                        self._without(place),
                    )
                )

    def _check_errors(self, sds: list[int]) -> None:
        """Raise if a column that nothing marks as errors would be taken for them."""
        for place in sds:
            name = self.names[place]
            last_word = (re.findall(r"[^\W_]+", name.casefold()) or [""])[-1]
            if last_word not in ERRORS and name != f"#{place + 1}":
                advice = self._without(place)
                if not self.predicate.domain.is_discrete:
                    advice = worded(
                        advice, ", or call it 'sd' if it has the standard deviations of the values"
                    )
                self._fail(remedy=advice)

    def _fail(self, why: str = "", remedy: Wording | None = None) -> NoReturn:
        further = (
            "optionally value" if self.predicate.domain.is_discrete else "value, and optionally sd"
        )
        columns = ", ".join([*self.predicate.arguments, further])
        here = ", ".join(map(quoted_name, self.names)) + self.origin.index_note
        raise EvidenceError(
            f"{self.origin.name}: a table of '{self.predicate.name}' has the columns {columns}; "
            f"this one has {here}{why}",
            remedy,
        )

    def _choice(self) -> Wording | None:
        """The advice to choose from too many columns; None where they have no names."""
        wanted = [*self.predicate.arguments]
        folded = [name.casefold() for name in self.names]
        if not self.predicate.domain.is_discrete:
            value = (word for word in (self.predicate.name, "value") if word.casefold() in folded)
            sd = (word for word in ("sd", "std") if word in folded)
            wanted += [next(value, "…"), *list(sd)[:1]]
        if len(folded) <= len(wanted) or not are_named(self.names):
            return None
        columns = [
            self.names[folded.index(word.casefold())]
            if folded.count(word.casefold()) == 1 == wanted.count(word)
            else "…"
            for word in wanted
        ]
        return worded("choose columns of it (", self._selection(columns), ")")

    def _without(self, place: int) -> Wording:
        others = [name for other, name in enumerate(self.names) if other != place]
        return worded(f"leave '{self.names[place]}' out (", self._selection(others), ")")

    def _selection(self, columns: list[str]) -> Wording:
        return self.origin.selection(self.predicate.name, columns)


def _by_type(places: list[int], names: list[str], types: Sequence[str]) -> list[int]:
    """The places of arguments in the order of their types, if they are called like them."""
    for fold in (str, str.casefold):
        wanted, given = [fold(name) for name in types], [fold(names[place]) for place in places]
        if len(set(wanted)) == len(wanted) and set(given) == set(wanted):
            return [places[given.index(name)] for name in wanted]
    return places


def are_named(columns: Sequence[str]) -> bool:
    """True if columns can be chosen by name; those of a list of rows are only numbered."""
    return any(name != f"#{place}" for place, name in enumerate(columns, start=1))


def words_of(column: pa.ChunkedArray, name: str, origin: Origin) -> WordColumn:
    """The words of a column, whose origin errors name."""
    try:
        return WordColumn.of(column, name)
    except EvidenceError as error:
        raise EvidenceError(f"{origin.name}: {error}") from None


@dataclass(frozen=True, slots=True, eq=False)
class LongTable:
    """Facts about several predicates: columns predicate, arg1, arg2, …, optionally value and sd."""

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
                f"{origin.name}: evidence on several predicates must have the columns predicate, "
                f"arg1, "
                "arg2, …, and optionally value and sd; this table has "
                f"{', '.join(table.column_names) or 'none'}",
                Wording(
                    "for a table of one predicate, pass {'Predicate': table}",
                    "for a table of one predicate, pass --evidence PREDICATE=FILE",
                ),
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
        no_predicate = "the predicate is missing"
        refuse_rows(self.origin, self.row, self.predicate.is_missing, lambda _: no_predicate)
        words, code = self.predicate.encoded()
        order = np.argsort(code, kind="stable")
        rows = np.split(order, np.searchsorted(code[order], np.arange(1, len(words))))
        facts, unknown = [], []
        for name, at in zip(words.to_pylist(), rows, strict=False):
            if name in known:
                facts.append(self._facts(known[name], at))
            else:
                unknown.append((int(at[0]), name, len(at)))
        if not unknown:
            return facts, []
        first, name, _ = min(unknown)
        problem, hint = f"unknown predicate '{name}'", did_you_mean(name, known)
        count = sum(count for _, _, count in unknown)
        return facts, [Unmatched(self.origin, int(self.row[first]), problem, count, hint)]

    def _facts(self, predicate: PredicateDeclaration, at: NDArray[np.int64]) -> Facts:
        """The facts about one predicate, which has these rows."""
        rows = pa.array(at)
        count = len(predicate.arguments)
        columns = tuple(
            words_of(column.take(rows), f"arg{place + 1}", self.origin)
            for place, column in enumerate(self.arguments)
        )

        def fault(fact: int) -> str:
            words = [word for column in columns if (word := column[fact]) is not None]
            atom = f"{predicate.name}({', '.join(words)})"
            return f"{atom}: {arity_fault(predicate, len(words))}"

        wrong = [~column.is_missing for column in columns[count:]]
        wrong += [np.ones(len(at), dtype=bool)] if len(columns) < count else []
        for is_wrong in wrong:
            refuse_rows(self.origin, self.row[at], is_wrong, fault)
        value, sd = (
            None if column is None else column.take(rows) for column in (self.value, self.sd)
        )
        return Facts(predicate, self.origin, self.row[at], columns[:count], value, sd)

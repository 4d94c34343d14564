"""Tables of probabilities: a row per joint state of the conditions and the value."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import EvidenceError, did_you_mean
from hylift.formats.table_file import quoted_name
from hylift.graph.domains import boolean
from hylift.grounding.constants import WordColumn, closest, not_among
from hylift.grounding.evidence.facts import Facts, Origin, refuse_rows
from hylift.grounding.evidence.observed import numbers_in, truths_in
from hylift.grounding.evidence.tables import words_of
from hylift.language.report import fail
from hylift.language.statements import Model, PredicateDeclaration
from hylift.language.syntax import Atom, Categorical, Expr, Probabilities, Variable, WeightTable
from hylift.language.text.formatter import shown
from hylift.language.types import constant_value
from hylift.language.walk import categoricals, rebuild
from hylift.words import Wording, listed

PROBABILITY = ("probability", "prob", "p", "value")
"""Names of the column of probabilities; otherwise it is the last one."""

TOLERANCE = 1e-6
"""Distance from 1 of a sum of probabilities that are then scaled to 1."""

MAX_ENTRIES = 1 << 24
"""Most entries of a table."""

TRUTHS = pa.array(["false", "true"])
"""The states of a Boolean, as constants."""


@dataclass(frozen=True, slots=True)
class GivenTable:
    """A table of the data, as it is stated."""

    table: pa.Table
    origin: Origin


@dataclass(frozen=True, slots=True)
class Subject:
    """A condition or the value of a table: what its column is about."""

    part: Expr
    type_name: str | None
    """None for a Boolean."""

    @classmethod
    def of(cls, part: Expr, model: Model, types: Mapping[str, str]) -> Subject:
        if isinstance(part, Variable):
            return cls(part, types[part.name])
        assert isinstance(part, Atom)
        declared = model.predicate_by_name[part.predicate]
        unique = declared.unique
        return cls(part, None if unique is None else declared.arguments[unique])

    @property
    def names(self) -> set[str]:
        """The names that its column may have, in lower case."""
        own = part.predicate if isinstance(part := self.part, Atom) else shown(part)
        return {name.casefold() for name in (own, shown(part), self.type_name) if name}

    @property
    def name(self) -> str:
        return self.part.predicate if isinstance(self.part, Atom) else shown(self.part)

    def constants(self, all_of: Mapping[str, pa.StringArray]) -> pa.StringArray:
        return TRUTHS if self.type_name is None else all_of[self.type_name]


def given_constants(
    model: Model, types: Sequence[Mapping[str, str]], tables: Mapping[str, GivenTable]
) -> Iterator[Facts]:
    """The states that tables of data have, as lists of the constants of their types."""
    for rule, own in zip(model.rules, types, strict=True):
        for node in categoricals(rule.formula):
            if isinstance(node.table, str):
                stated = _Stated.of(node, model, own, tables)
                yield from stated.facts()


def with_probabilities(
    expr: Expr,
    model: Model,
    types: Mapping[str, str],
    tables: Mapping[str, GivenTable],
    constants: Mapping[str, pa.StringArray],
) -> Expr:
    """The expression with the numbers of tables in place of their names."""
    if isinstance(expr, Categorical):
        subjects = [Subject.of(part, model, types) for part in expr.subjects]
        states = [subject.constants(constants) for subject in subjects]
        if math.prod(map(len, states)) > MAX_ENTRIES:
            sizes = " times ".join(f"{len(one):,}" for one in states)
            fail(f"a table of {sizes} states is too large", expr.place)
        table = expr.table
        if isinstance(table, str):
            log = _Stated.of(expr, model, types, tables).log(states)
        else:
            assert isinstance(table, WeightTable)
            log = _written(expr, table, model, subjects, states)
        return Categorical(expr.value, Probabilities(log), expr.conditions, place=expr.place)
    if not categoricals(expr):
        return expr
    return rebuild(expr, lambda part: with_probabilities(part, model, types, tables, constants))


@dataclass(frozen=True, slots=True)
class _Stated:
    """A table of data whose columns are known."""

    name: str
    subjects: tuple[Subject, ...]
    columns: tuple[pa.ChunkedArray, ...]
    """Per subject."""
    probability: pa.ChunkedArray
    origin: Origin

    @classmethod
    def of(
        cls,
        node: Categorical,
        model: Model,
        types: Mapping[str, str],
        tables: Mapping[str, GivenTable],
    ) -> _Stated:
        name = str(node.table)
        subjects = tuple(Subject.of(part, model, types) for part in node.subjects)
        wanted = [*(subject.name for subject in subjects), "probability"]
        if name not in tables:
            raise EvidenceError(
                f"the table '{name}' of categorical has no rows: pass them as evidence, with the "
                f"columns {', '.join(wanted)}",
                Wording(f"evidence={{'{name}': df}}", f"--evidence {name}=FILE"),
            )
        table, origin = tables[name].table, tables[name].origin
        names = [column.casefold() for column in table.column_names]
        if len(names) != len(wanted):
            _fail_columns(name, wanted, table, origin)
        by_name = [place for place, column in enumerate(names) if column in PROBABILITY]
        last = by_name[0] if len(by_name) == 1 else len(names) - 1
        places = [place for place in range(len(names)) if place != last]
        order = _by_name([names[place] for place in places], subjects)
        if order is None:
            _fail_columns(name, wanted, table, origin)
        columns = tuple(table.column(places[order.index(at)]) for at in range(len(subjects)))
        return cls(name, subjects, columns, table.column(last), origin)

    @property
    def row(self) -> NDArray[np.int64]:
        return np.arange(1, len(self.probability) + 1)

    def facts(self) -> Iterator[Facts]:
        for subject, column in zip(self.subjects, self.columns, strict=True):
            if subject.type_name is not None:
                declared = PredicateDeclaration(subject.type_name, (subject.type_name,), boolean)
                words = self._words(subject, column)
                yield Facts(declared, self.origin, self.row, (words,))

    def _words(self, subject: Subject, column: pa.ChunkedArray) -> WordColumn:
        words = words_of(column, subject.name, self.origin)
        self.refuse(words.is_missing, f"the state of {subject.name} is missing")
        return words

    def refuse(self, wrong: NDArray[np.bool_], message: str) -> None:
        refuse_rows(self.origin, self.row, wrong, lambda _: message)

    def log(self, states: Sequence[pa.StringArray]) -> NDArray[np.float64]:
        """(state of each subject...): log-probabilities."""
        ids = [self._ids(*of) for of in zip(self.subjects, self.columns, states, strict=True)]
        value = self._probabilities()
        shape = tuple(map(len, states))
        code = np.ravel_multi_index(tuple(ids), shape)
        order = np.argsort(code, kind="stable")
        again = np.flatnonzero(np.diff(code[order]) == 0)
        if len(again):
            first, later = int(order[again[0]]), int(order[again[0] + 1])
            same = "repeats" if value[first] == value[later] else "contradicts"
            raise EvidenceError(
                f"{self.origin.where(later + 1)}: {self.said(ids, states, later)} {same} "
                f"{self.origin.row(first + 1)}",
                Wording("df.drop_duplicates() drops repeated rows", "leave repeated rows out"),
            )
        table = np.full(math.prod(shape), np.nan)
        table[code] = value
        missing = np.flatnonzero(np.isnan(table))
        if len(missing):
            at = np.unravel_index(missing[:1], shape)
            more = f" and {len(missing) - 1:,} other joint states" if len(missing) > 1 else ""
            raise EvidenceError(
                f"{self.origin.name}: the table '{self.name}' has no row for "
                f"{self.said(list(at), states, 0)}{more}: add it, with probability 0 if it is "
                "impossible"
            )
        return self._normalised(table.reshape(shape), states)

    def _normalised(
        self, table: NDArray[np.float64], states: Sequence[pa.StringArray]
    ) -> NDArray[np.float64]:
        total = table.sum(axis=-1)
        wrong = np.argwhere(np.abs(total - 1) > TOLERANCE)
        if len(wrong):
            at = tuple(wrong[0])
            given = self.said([np.array([i]) for i in at], states[:-1], 0)
            raise EvidenceError(
                f"{self.origin.name}: the probabilities of {self.subjects[-1].name}"
                f"{given and f' given {given}'} sum to {total[at]:.6g}, not to 1"
            )
        return _log(table)

    def _ids(
        self, subject: Subject, column: pa.ChunkedArray, states: pa.StringArray
    ) -> NDArray[np.int64]:
        if subject.type_name is None:
            value, wrong = truths_in(column)
            stated = column.to_pylist()
            wrong = wrong | ~np.isin(value, (0.0, 1.0))
            refuse_rows(
                self.origin,
                self.row,
                wrong,
                lambda at: f"{subject.name} is {stated[at]!r}, which is neither true nor false",
            )
            return value.astype(np.int64)
        words = self._words(subject, column)
        ids = words.ids(states).astype(np.int64)
        kind = str(subject.type_name)
        refuse_rows(
            self.origin,
            self.row,
            ids < 0,
            lambda at: _unknown(str(words[at]), kind, states),
        )
        return ids

    def _probabilities(self) -> NDArray[np.float64]:
        value, wrong = numbers_in(self.probability)
        stated = self.probability.to_pylist()
        refuse_rows(
            self.origin,
            self.row,
            wrong | ~((value >= 0) & (value <= 1)),
            lambda at: (
                "the probability is missing"
                if stated[at] is None
                else f"the probability is {stated[at]!r}, which is not a number from 0 to 1"
            ),
        )
        return value

    def said(
        self, ids: Sequence[NDArray[np.intp]], states: Sequence[pa.StringArray], row: int
    ) -> str:
        """`Rain true and Sky Clear`."""
        parts = zip(self.subjects, ids, states, strict=False)
        return listed([f"{subject.name} {of[int(at[row])]}" for subject, at, of in parts])


def _by_name(names: Sequence[str], subjects: Sequence[Subject]) -> list[int] | None:
    """Per column the subject it is about: by name, or else in the order of the sentence; None if
    a name says that it is not in that order."""
    about = [[at for at, one in enumerate(subjects) if name in one.names] for name in names]
    first = [found[0] if len(found) == 1 else -1 for found in about]
    if sorted(first) == list(range(len(subjects))):
        return first
    fits = all(not found or place in found for place, found in enumerate(about))
    return list(range(len(subjects))) if fits else None


def _fail_columns(name: str, wanted: Sequence[str], table: pa.Table, origin: Origin) -> NoReturn:
    here = ", ".join(map(quoted_name, table.column_names)) + origin.index_note
    close = did_you_mean(wanted[0], table.column_names) if len(wanted) == 1 else ""
    raise EvidenceError(
        f"{origin.name}: the table '{name}' has the columns {', '.join(wanted)}, in this order or "
        f"with these names; this one has {here}.{close}"
    )


def _written(
    node: Categorical,
    table: WeightTable,
    model: Model,
    subjects: Sequence[Subject],
    states: Sequence[pa.StringArray],
) -> NDArray[np.float64]:
    """The numbers of a table that is written in a rule."""
    found = np.full([len(one) for one in states], np.nan)
    numbers = [{word: i for i, word in enumerate(one.to_pylist())} for one in states]
    for key, value in table.entries:
        for subject, word, known, of in zip(subjects, key, numbers, states, strict=True):
            if word not in known:
                kind = subject.type_name or "boolean"
                fail(_unknown(word, kind, of), table.place)
        at = tuple(known[word] for known, word in zip(numbers, key, strict=True))
        found[at] = constant_value(model, value, "a probability")
    for missing in np.argwhere(np.isnan(found))[:1].tolist():
        words = (str(of[at]) for of, at in zip(states, missing, strict=True))
        fail(f"the table has no probability of {', '.join(words)}: add it", table.place)
    total = found.sum(axis=-1)
    for wrong in np.argwhere(np.abs(total - 1) > TOLERANCE)[:1].tolist():
        words = (str(of[at]) for of, at in zip(states, wrong, strict=False))
        given = ", ".join(words)
        where = f" given {given}" if given else ""
        fail(
            f"the probabilities of {subjects[-1].name}{where} sum to {total[tuple(wrong)]:.6g}, "
            "not to 1",
            table.place,
        )
    return _log(found)


def _unknown(word: str, kind: str, states: pa.StringArray) -> str:
    return f"{not_among(word, kind, states)}.{closest(word, states)}"


def _log(table: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(table / table.sum(axis=-1, keepdims=True)))

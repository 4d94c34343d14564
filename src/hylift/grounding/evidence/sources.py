"""Evidence as a user passes it: files, tables, frames, mappings, or a list of them."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hylift.errors import EvidenceError, did_you_mean
from hylift.formats.alchemy_db import read_facts
from hylift.formats.table_file import TableFile, quoted_name, same_name
from hylift.formats.tables import (
    SQLITE,
    DatabaseFormat,
    FileKind,
    as_table,
    is_missing,
    kind_of,
    read_table,
    row_labels,
)
from hylift.graph.domains import as_float, boolean
from hylift.graph.evidence import Soft
from hylift.graph.name_blocks import split_atom
from hylift.grounding.constants import WordColumn
from hylift.grounding.evidence.facts import Facts, Origin, Unmatched, refuse_rows
from hylift.grounding.evidence.probabilities import GivenTable
from hylift.grounding.evidence.tables import LongTable, are_named, from_table
from hylift.language.statements import Model, PredicateDeclaration
from hylift.language.types import arity_fault
from hylift.words import worded

MAX_SHOWN = 64
"""Most arguments of an atom that are read where its predicate has fewer."""


def gather(model: Model, evidence: object, databases: Sequence[DatabaseFormat]) -> Gathered:
    """All that the evidence says, whether or not it fits the model's constants and domains."""
    gathered = Gathered(model, (SQLITE, *databases))
    if isinstance(evidence, Sequence) and not isinstance(evidence, str | bytes):
        for place, source in enumerate(evidence):
            gathered.add(source, f"evidence[{place}]")
    elif evidence is not None:
        gathered.add(evidence, "evidence")
    return gathered


@dataclass(slots=True)
class Gathered:
    """The content of all sources, in their order."""

    model: Model
    databases: tuple[DatabaseFormat, ...]
    facts: list[Facts] = field(default_factory=list)
    constants: list[Facts] = field(default_factory=list)
    """Lists of the constants of types, as facts about the type."""
    tables: dict[str, GivenTable] = field(default_factory=dict)
    """Tables of probabilities."""
    unmatched: list[Unmatched] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, source: object, label: str) -> None:
        """Add one source, called `label` in errors."""
        if isinstance(source, Mapping):
            self._add_mapping(source, label)
        elif (file := _file(source)) is None:
            self._add_long(LongTable.of(as_table(source, label), Origin(label)))
        else:
            kind = kind_of(file.path, self.databases)
            if isinstance(kind, DatabaseFormat):
                self._add_database(file, kind)
            elif kind == "alchemy":
                self._add_alchemy(file)
            else:
                self._add_long(LongTable.of(*_table_in(file, kind, "")))

    def _add_long(self, table: LongTable) -> None:
        facts, unmatched = table.split(self.model.predicate_by_name)
        self.facts += facts
        self.unmatched += unmatched

    def _add_alchemy(self, file: TableFile, only: str | None = None) -> None:
        """The facts of an Alchemy file, or those about one predicate."""
        if file.columns is not None:
            raise EvidenceError(f"{file}: a file of facts has no columns to choose")
        table = read_facts(file.path)
        if only is not None:
            table = table.filter(pc.equal(table["predicate"], only))
        origin = Origin(str(file.path), "line")
        table = self._without_lists(table, origin)
        arguments = table["arguments"].combine_chunks()
        declared = max((len(p.arguments) for p in self.model.predicates), default=0)
        longest = pc.max(pc.list_value_length(arguments)).as_py() or 0
        count = max(declared, min(longest, MAX_SHOWN))
        _check_forms(self.model, table, origin)
        self._add_long(
            LongTable(
                WordColumn.of(table["predicate"], "predicate"),
                tuple(pa.chunked_array([_nth(arguments, place)]) for place in range(count)),
                table["value"],
                table["sd"],
                table["line"].to_numpy(),
                origin,
            )
        )

    def _without_lists(self, table: pa.Table, origin: Origin) -> pa.Table:
        """The facts of an Alchemy file without its lists of constants, which are added."""
        is_constant = pc.equal(table["form"], "constant")
        lists = table.filter(is_constant)
        for name in pc.unique(lists["predicate"]).to_pylist():
            rows = lists.filter(pc.equal(lists["predicate"], name))
            if name not in self.model.type_by_name:
                message = f"the model has no type '{name}'."
                message += did_you_mean(name, self.model.type_by_name)
                raise EvidenceError(f"{origin.where(rows['line'][0].as_py())}: {message}")
            words = pa.chunked_array([_nth(rows["arguments"].combine_chunks(), 0)])
            self.constants.append(_constants(name, pa.table({name: words}), origin))
        return table.filter(pc.invert(is_constant))

    def _add_database(self, file: TableFile, kind: DatabaseFormat) -> None:
        """The tables that are named like a predicate or a type."""
        if file.columns is not None:
            raise EvidenceError(
                f"{file}: a database has several tables: say whose columns these are, as in "
                f"NAME={file}"
            )
        path, model = file.path, self.model
        names = kind.table_names(path)
        unused = []
        for name in names:
            known = [*model.predicate_by_name, *model.type_by_name, *model.table_names]
            match = same_name(name[-1], known)
            if match is None:
                unused.append(f"'{name[-1]}'")
                continue
            table = kind.read(path, name)
            origin = Origin(f"{path}, table '{name[-1]}'", file=str(path))
            if match in model.predicate_by_name:
                self.facts.append(from_table(model.predicate_by_name[match], table, origin))
            elif match in model.table_names:
                self.tables[match] = GivenTable(table, origin)
            else:
                self.constants.append(_constants(match, table, origin))
        if len(unused) == len(names):
            raise EvidenceError(
                f"{path}: no table is named after a predicate "
                f"({', '.join(model.predicate_by_name)}); "
                f"its tables are {', '.join(unused) or 'none at all'}"
            )
        if unused:
            self.notes.append(f"{path}: unused tables: {', '.join(unused)}")

    def _add_mapping(self, mapping: Mapping[Any, Any], label: str) -> None:
        predicates, types = self.model.predicate_by_name, self.model.type_by_name
        atoms: dict[str, object] = {}
        for key, data in mapping.items():
            if not isinstance(key, str):
                raise EvidenceError(
                    f"{label}: the name of a predicate, type or atom must be a string, not {key!r}"
                )
            name = key.strip()
            predicate = predicates.get(name)
            origin = Origin(f"{label}['{key}']")
            # SegType(A1) names the variable of a unique argument, so `Weather` alone may, too.
            is_atom = predicate and len(predicate.arguments) == (predicate.unique is not None)
            if "(" in name or (is_atom and _is_value(data)):
                atoms[key] = data
            elif predicate is not None:
                self._add_predicate(predicate, data, origin)
            elif name in self.model.table_names:
                self.tables[name] = GivenTable(*self._table(data, name, origin))
            elif name in types:
                table, origin = self._table(data, name, origin)
                is_list = isinstance(data, list | tuple)
                self.constants.append(_constants(name, table, origin, is_list))
            else:
                raise EvidenceError(
                    f"{label} is about '{name}', which is not a predicate or type of the model."
                    f"{did_you_mean(name, [*predicates, *types, *self.model.table_names])}"
                )
        self._add_atoms(atoms, label)

    def _add_predicate(self, predicate: PredicateDeclaration, data: object, origin: Origin) -> None:
        file, name = _file(data), predicate.name
        if file is not None and kind_of(file.path, self.databases) == "alchemy":
            self._add_alchemy(file, only=name)
            return
        if file is None and _is_value(data):
            raise EvidenceError(
                f"{origin.name} cannot be {data!r}: '{name}' takes arguments, so give a "
                f"table, or name an atom: '{name}({', '.join(predicate.arguments)})'"
            )
        table, origin = self._table(data, name, origin)
        self.facts.append(from_table(predicate, table, origin))

    def _table(self, data: object, name: str, origin: Origin) -> tuple[pa.Table, Origin]:
        """The table of that name in data, and its origin."""
        if (file := _file(data)) is not None:
            return _table_in(file, kind_of(file.path, self.databases), name)
        return as_table(data, origin.name), replace(origin, index=row_labels(data))

    def _add_atoms(self, atoms: Mapping[str, object], label: str) -> None:
        """Atoms named one by one, `In(p1, t2)`, with their values."""
        known = self.model.predicate_by_name
        by_predicate: dict[str, list[tuple[str, list[str], object]]] = {}
        for key, value in atoms.items():
            name, words = split_atom(key)
            words = [] if words == [""] else words  # boom()
            if name not in known:
                raise EvidenceError(
                    f"{label}['{key}']: unknown predicate '{name}'.{did_you_mean(name, known)}"
                )
            predicate = known[name]
            if predicate.unique is not None and len(words) == len(predicate.arguments) - 1:
                # SegType(A1): Door
                is_known = not is_missing(value)
                words.insert(predicate.unique, str(value) if is_known else "")
                value = True if is_known else None
            if fault := arity_fault(predicate, len(words)):
                raise EvidenceError(f"{label}['{key}']: {fault}")
            by_predicate.setdefault(name, []).append((key, words, value))
        for name, rows in by_predicate.items():
            keys, words_of_rows, values = zip(*rows, strict=True)
            origin = Origin(label, entries=keys)
            self.facts.append(_atom_facts(known[name], origin, words_of_rows, values))


def _file(data: object) -> TableFile | None:
    """The file that data are in; None if they are in memory."""
    if isinstance(data, str | os.PathLike):
        return TableFile(Path(data))
    return data if isinstance(data, TableFile) else None


def _is_value(data: object) -> bool:
    """True for the value of one atom, False for a table."""
    if isinstance(data, str):
        return not os.path.exists(data)
    return data is None or isinstance(data, Real | bool | np.bool_ | Soft)


def _table_in(
    file: TableFile, kind: FileKind | DatabaseFormat, name: str
) -> tuple[pa.Table, Origin]:
    """The table of a file, or of that name in a database; and its origin."""
    path = file.path
    if kind == "alchemy":
        raise EvidenceError(f"{path}: a file of facts lists no constants of the type '{name}'")
    if not isinstance(kind, DatabaseFormat):
        return file.chosen(read_table(path, kind), str(path)), Origin(str(path), file=str(path))
    names = {parts[-1]: parts for parts in kind.table_names(path)}
    match = same_name(name, list(names))
    if match is None:
        tables = ", ".join(f"'{other}'" for other in names) or "none at all"
        raise EvidenceError(f"{path}: there is no table '{name}'; its tables are {tables}")
    label = f"{path}, table '{match}'"
    return file.chosen(kind.read(path, names[match]), label), Origin(label, file=str(path))


def _constants(type_name: str, table: pa.Table, origin: Origin, is_list: bool = False) -> Facts:
    words = WordColumn.of(_constant_column(type_name, table, origin), type_name)
    row = np.arange(1, len(words) + 1)
    refuse_rows(origin, row, words.is_missing, lambda _: "the constant is missing")
    declared = PredicateDeclaration(type_name, (type_name,), boolean)
    return Facts(declared, origin, row, (words,), is_list=is_list)


def _constant_column(type_name: str, table: pa.Table, origin: Origin) -> pa.ChunkedArray:
    """The only column, or the one called like the type, `id` or `name`."""
    if not table.num_columns:
        return pa.chunked_array([], pa.string())
    if table.num_columns == 1:
        return table.column(0)
    for name in (type_name, "id", "name"):
        match = same_name(name, table.column_names)
        if match is not None and table.column_names.count(match) == 1:
            return table.column(match)
    remedy = None
    if are_named(table.column_names):
        remedy = worded("choose one of them (", origin.selection(type_name, ["…"]), ")")
    raise EvidenceError(
        f"{origin.name}: the constants of the type '{type_name}' are one column, or one that is "
        f"called '{type_name}', 'id' or 'name'; this table has "
        f"{', '.join(map(quoted_name, table.column_names))}",
        remedy,
    )


def _check_forms(model: Model, table: pa.Table, origin: Origin) -> None:
    """Raise if a real is said to be true, false or probable in an Alchemy file."""
    reals = [p.name for p in model.predicates if not p.domain.is_discrete]
    is_number = pc.is_in(table["form"], value_set=pa.array(["number", "unknown"]))
    is_real = pc.is_in(table["predicate"], value_set=pa.array(reals, pa.string()))

    def fault(place: int) -> str:
        name, words = str(table["predicate"][place]), ", ".join(table["arguments"][place].as_py())
        atom = f"{name}({words})" if words else name
        return f"'{name}' is real: write its value behind it, as in '{atom} 0.5'"

    wrong = pc.and_not(is_real, is_number).to_numpy()
    refuse_rows(origin, table["line"].to_numpy(), wrong, fault)


def _nth(lists: pa.ListArray, place: int) -> pa.StringArray:
    """The entry at this place of each list, null where a list is shorter."""
    start = lists.offsets.to_numpy()
    has = np.diff(start) > place
    return lists.values.take(pa.array(start[:-1] + place, mask=~has))


def _atom_facts(
    predicate: PredicateDeclaration,
    origin: Origin,
    words: Sequence[list[str]],
    values: Sequence[object],
) -> Facts:
    columns = (
        WordColumn.of(pa.chunked_array([list(column)], pa.string()), predicate.arguments[place])
        for place, column in enumerate(zip(*words, strict=True))
    )
    stated = as_table(
        [
            (value.value, _sd(value.var, origin.where(row)))
            if isinstance(value, Soft)
            else (value, 0.0)
            for row, value in enumerate(values, start=1)
        ],
        origin.name,
    )
    row = np.arange(1, len(values) + 1)
    return Facts(predicate, origin, row, tuple(columns), stated[0], stated[1])


def _sd(var: object, where: str) -> float:
    number = as_float(var, f"{where}: a variance")
    if not number >= 0:
        raise EvidenceError(f"{where}: a variance must not be negative, but is {number:g}")
    return math.sqrt(number)

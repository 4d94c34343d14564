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
    as_table,
    is_missing,
    kind_of,
    read_table,
    row_labels,
)
from hylift.graph.atom_text import split_atom
from hylift.graph.domains import as_float
from hylift.graph.evidence import Soft
from hylift.grounding.evidence.columns import WordColumn
from hylift.grounding.evidence.facts import (
    Facts,
    GivenConstants,
    Origin,
    are_named,
    complete,
    from_table,
    like_it,
)
from hylift.grounding.evidence.long_table import LongTable
from hylift.grounding.evidence.unmatched import Unmatched
from hylift.language.syntax import Model, PredicateDeclaration
from hylift.language.types import arity_fault

MAX_SHOWN = 64
"""Most arguments of an atom that are looked at, where its predicate has fewer."""


@dataclass(slots=True)
class Gathered:
    """What all sources together say, in the order in which they say it."""

    model: Model
    databases: tuple[DatabaseFormat, ...]
    facts: list[Facts] = field(default_factory=list)
    constants: list[GivenConstants] = field(default_factory=list)
    unmatched: list[Unmatched] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def gather(model: Model, evidence: object, databases: Sequence[DatabaseFormat]) -> Gathered:
    """All that the evidence says, whether or not it fits the model's constants and domains."""
    gathered = Gathered(model, (SQLITE, *databases))
    if isinstance(evidence, Sequence) and not isinstance(evidence, str | bytes):
        for place, source in enumerate(evidence):
            _add_source(gathered, source, f"evidence[{place}]")
    elif evidence is not None:
        _add_source(gathered, evidence, "evidence")
    return gathered


def _add_source(gathered: Gathered, source: object, label: str) -> None:
    if isinstance(source, Mapping):
        _add_mapping(gathered, source, label)
    elif (file := _file(source)) is not None:
        _add_file(gathered, file)
    else:
        _add_long(gathered, LongTable.of(as_table(source, label), Origin(label)))


def _file(data: object) -> TableFile | None:
    """The file that data are in; None if they are in memory."""
    if isinstance(data, str | os.PathLike):
        return TableFile(Path(data))
    return data if isinstance(data, TableFile) else None


def _add_file(gathered: Gathered, file: TableFile) -> None:
    path, kind = file.path, kind_of(file.path, gathered.databases)
    if isinstance(kind, DatabaseFormat):
        if file.columns is not None:
            raise EvidenceError(
                f"{file}: a database has several tables: say whose columns these are, as in "
                f"NAME={file}"
            )
        _add_database(gathered, path, kind)
    elif kind == "alchemy":
        _add_alchemy(gathered, file)
    else:
        _add_long(gathered, LongTable.of(*_table_in(gathered, file, "")))


def _add_long(gathered: Gathered, table: LongTable) -> None:
    facts, unmatched = table.split(gathered.model.predicate_by_name)
    gathered.facts += facts
    gathered.unmatched += unmatched


def _add_alchemy(gathered: Gathered, file: TableFile, only: str | None = None) -> None:
    """The facts of an Alchemy file, or those about one predicate."""
    path = file.path
    if file.columns is not None:
        raise EvidenceError(f"{file}: a file of facts has no columns to choose")
    table = read_facts(path)
    if only is not None:
        table = table.filter(pc.equal(table["predicate"], only))
    arguments = table["arguments"].combine_chunks()
    declared = max((len(p.arguments) for p in gathered.model.predicates), default=0)
    longest = pc.max(pc.list_value_length(arguments)).as_py() or 0
    count = max(declared, min(longest, MAX_SHOWN))
    long = LongTable(
        WordColumn.of(table["predicate"], "predicate"),
        tuple(pa.chunked_array([_nth(arguments, place)]) for place in range(count)),
        table["value"],
        table["sd"],
        table["line"].to_numpy(),
        Origin(str(path), "line"),
    )
    _check_forms(gathered.model, table, str(path))
    _add_long(gathered, long)


def _check_forms(model: Model, table: pa.Table, path: str) -> None:
    """Raises if a real is said to be true, false or probable in an Alchemy file."""
    reals = [p.name for p in model.predicates if not p.domain.is_discrete]
    is_number = pc.is_in(table["form"], value_set=pa.array(["number", "unknown"]))
    is_real = pc.is_in(table["predicate"], value_set=pa.array(reals, pa.string()))
    wrong = table.filter(pc.and_not(is_real, is_number))
    for fact in wrong.slice(0, 1).to_pylist():
        name, words = fact["predicate"], ", ".join(fact["arguments"])
        atom = f"{name}({words})" if words else name
        raise EvidenceError(
            f"{path}, line {fact['line']}: '{name}' is real, so that its value stands behind it, "
            f"as in '{atom} 0.5'{like_it(len(wrong) - 1)}"
        )


def _nth(lists: pa.ListArray, place: int) -> pa.StringArray:
    """The entry at this place of each list, null where a list is shorter."""
    start = lists.offsets.to_numpy()
    has = np.diff(start) > place
    return lists.values.take(pa.array(start[:-1] + place, mask=~has))


def _add_database(gathered: Gathered, path: Path, kind: DatabaseFormat) -> None:
    """The tables that are named like a predicate or a type."""
    names = kind.table_names(path)
    model = gathered.model
    known = [*model.predicate_by_name, *model.type_by_name]
    unused = []
    for name in names:
        match = same_name(name[-1], known)
        if match is None:
            unused.append(f"'{name[-1]}'")
            continue
        table = kind.read(path, name)
        origin = Origin(f"{path}, table '{name[-1]}'")
        if match in model.predicate_by_name:
            gathered.facts.append(from_table(model.predicate_by_name[match], table, origin))
        else:
            gathered.constants.append(_constants(match, table, origin))
    if len(unused) == len(names):
        raise EvidenceError(
            f"{path}: no table is named like a predicate ({', '.join(model.predicate_by_name)}); "
            f"its tables are {', '.join(unused) or 'none at all'}"
        )
    if unused:
        gathered.notes.append(f"{path}: tables that are not used: {', '.join(unused)}")


def _add_mapping(gathered: Gathered, mapping: Mapping[Any, Any], label: str) -> None:
    model = gathered.model
    atoms: dict[str, object] = {}
    for key, data in mapping.items():
        if not isinstance(key, str):
            raise EvidenceError(
                f"{label}: a predicate, type or atom is named by a text, not {key!r}"
            )
        name = key.strip()
        predicate = model.predicate_by_name.get(name)
        origin = Origin(f"{label}['{key}']")
        # SegType(A1) names the variable of a unique argument, so that `Weather` alone may, too.
        is_atom = predicate and len(predicate.arguments) == (predicate.unique is not None)
        if "(" in name or (is_atom and _is_value(data)):
            atoms[key] = data
        elif predicate is not None:
            _add_predicate(gathered, predicate, data, origin)
        elif name in model.type_by_name:
            _add_constants(gathered, name, data, origin)
        else:
            known = [*model.predicate_by_name, *model.type_by_name]
            raise EvidenceError(
                f"{label} is about '{name}', which is no predicate or type of the model."
                f"{did_you_mean(name, known)}"
            )
    _add_atoms(gathered, atoms, label)


def _is_value(data: object) -> bool:
    """Whether it is the value of an atom and not a table of them."""
    if isinstance(data, str):
        return not os.path.exists(data)
    return data is None or isinstance(data, Real | bool | np.bool_ | Soft)


def _add_predicate(
    gathered: Gathered, predicate: PredicateDeclaration, data: object, origin: Origin
) -> None:
    if (file := _file(data)) is not None:
        if kind_of(file.path, gathered.databases) == "alchemy":
            _add_alchemy(gathered, file, only=predicate.name)
            return
        table, origin = _table_in(gathered, file, predicate.name)
    elif _is_value(data):
        raise EvidenceError(
            f"{origin.name} cannot be {data!r}: '{predicate.name}' takes arguments, so give a "
            f"table, or name an atom: '{predicate.name}({', '.join(predicate.arguments)})'"
        )
    else:
        table = as_table(data, origin.name)
        origin = replace(origin, index=row_labels(data))
    gathered.facts.append(from_table(predicate, table, origin))


def _add_constants(gathered: Gathered, type_name: str, data: object, origin: Origin) -> None:
    if (file := _file(data)) is not None:
        table, origin = _table_in(gathered, file, type_name)
    else:
        table = as_table(data, origin.name)
    given = _constants(type_name, table, origin)
    gathered.constants.append(replace(given, is_ordered=isinstance(data, list | tuple)))


def _table_in(gathered: Gathered, file: TableFile, name: str) -> tuple[pa.Table, Origin]:
    """The table of a file, or of that name in a database; and what errors call it."""
    path, kind = file.path, kind_of(file.path, gathered.databases)
    if kind == "alchemy":
        raise EvidenceError(f"{path}: a file of facts lists no constants of the type '{name}'")
    if not isinstance(kind, DatabaseFormat):
        return file.chosen(read_table(path, kind), str(path)), Origin(str(path))
    names = {".".join(parts[-1:]): parts for parts in kind.table_names(path)}
    match = same_name(name, list(names))
    if match is None:
        tables = ", ".join(f"'{other}'" for other in names) or "none at all"
        raise EvidenceError(f"{path}: there is no table '{name}'; its tables are {tables}")
    label = f"{path}, table '{match}'"
    return file.chosen(kind.read(path, names[match]), label), Origin(label)


def _constants(type_name: str, table: pa.Table, origin: Origin) -> GivenConstants:
    column = _constant_column(type_name, table, origin)
    words = WordColumn.of(column, type_name)
    missing = np.flatnonzero(words.is_missing)
    if len(missing):
        where = origin.where(int(missing[0]) + 1)
        raise EvidenceError(f"{where}: there is no constant{like_it(len(missing) - 1)}")
    return GivenConstants(type_name, origin, words)


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
    remedy = ": choose one of them (df[[…]])" if are_named(table.column_names) else ""
    raise EvidenceError(
        f"{origin.name}: the constants of the type '{type_name}' are one column, or one that is "
        f"called '{type_name}', 'id' or 'name'; this table has "
        f"{', '.join(map(quoted_name, table.column_names))}{remedy}"
    )


def _add_atoms(gathered: Gathered, atoms: Mapping[str, object], label: str) -> None:
    """Atoms named one by one, `In(p1, t2)`, with their values."""
    known = gathered.model.predicate_by_name
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
        origin = Origin(label, entries=tuple(key for key, _, _ in rows))
        arguments, values = [words for _, words, _ in rows], [value for _, _, value in rows]
        gathered.facts.append(_atom_facts(known[name], origin, arguments, values))


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
    return complete(Facts(predicate, origin, row, tuple(columns), stated[0], stated[1]))


def _sd(var: object, where: str) -> float:
    number = as_float(var, f"{where}: a variance")
    if not number >= 0:
        raise EvidenceError(f"{where}: a variance is 0 or positive, not {number:g}")
    return math.sqrt(number)

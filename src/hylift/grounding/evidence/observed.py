"""Facts as numbers: the observed atoms, checked against domains and each other, and stored."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import EvidenceError
from hylift.grounding.engine import Engine
from hylift.grounding.evidence.columns import numbers, truths
from hylift.grounding.evidence.facts import Facts, more_rows
from hylift.language.syntax import PredicateDeclaration

_Number = TypeVar("_Number", bound=np.generic)


@dataclass(frozen=True, slots=True, eq=False)
class ObservedAtoms:
    """Atoms of one predicate with their values, ordered by argument, each atom once."""

    ids: NDArray[np.int32]  # (row, argument): positions among the constants of its type
    value: NDArray[np.float64]  # (row,): truth as 0 or 1, a probability between, or a real
    sd: NDArray[np.float64]  # (row,): 0 where the value is exact
    fact: NDArray[np.int64]  # (row,): counted through all facts
    facts: tuple[Facts, ...]
    num_unknown: int
    """Facts without a value, which observe nothing."""
    without_sd: NDArray[np.int64]  # (fact,): values without an error in a table of such

    def __len__(self) -> int:
        return len(self.value)

    def source(self, row: int) -> tuple[Facts, int]:
        """The facts a row comes from, and its place among them."""
        return _located(self.facts, int(self.fact[row]))

    def doubt(self) -> str | None:
        """A warning about values that are exact only because their error is missing."""
        if not len(self.without_sd):
            return None
        facts, at = _located(self.facts, int(self.without_sd[0]))
        count = len(self.without_sd)
        have = "has no sd, and counts" if count == 1 else "have no sd, and count"
        first = facts.atom(at) if count == 1 else f"the first is {facts.atom(at)}"
        return (
            f"{facts.predicate.name}: {count:,} of its rows {have} as exact ({first}): fill in "
            f"the sd, or leave the row{'' if count == 1 else 's'} out"
        )


def observed_atoms(
    facts: Sequence[Facts], constants: Mapping[str, pa.StringArray], *, closed: bool
) -> ObservedAtoms:
    """The atoms that facts about one predicate observe; all their constants are known."""
    predicate = facts[0].predicate
    values, sds, lacking = zip(*(_values(part, closed=closed) for part in facts), strict=True)
    value, sd = _joined(values), _joined(sds)
    columns = [
        _joined([part.arguments[place].ids(constants[type_name]) for part in facts])
        for place, type_name in enumerate(predicate.arguments)
    ]
    is_unknown = np.isnan(value)
    num_unknown = int(np.count_nonzero(is_unknown))
    if num_unknown:
        columns = [column[~is_unknown] for column in columns]
    sizes = [len(constants[type_name]) for type_name in predicate.arguments]
    order = _order(columns, sizes, len(value) - num_unknown)
    fact = np.flatnonzero(~is_unknown)[order] if num_unknown else order
    ids = np.empty((len(order), len(columns)), dtype=np.int32, order="F")
    for place, column in enumerate(columns):
        ids[:, place] = column[order]
    value, sd = _taken(value, fact), _taken(sd, fact)
    without_sd = np.flatnonzero(_joined(lacking))
    found = ObservedAtoms(ids, value, sd, fact, tuple(facts), num_unknown, without_sd)
    _check_once(found)
    return found


def _joined(parts: Sequence[NDArray[_Number]]) -> NDArray[_Number]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _all(value: float, count: int) -> NDArray[np.float64]:
    """One value for all, stored once."""
    return np.broadcast_to(np.float64(value), count)


def _taken(column: NDArray[np.float64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    is_one_value = column.strides == (0,)
    return column[: len(rows)] if is_one_value else column[rows]


def _order(columns: list[NDArray[np.int32]], sizes: list[int], count: int) -> NDArray[np.int64]:
    """The order of rows by their arguments; equal ones stay in their order."""
    num_codes = math.prod(sizes)
    if num_codes >= 2**63:
        return np.lexsort(columns[::-1])
    code = np.zeros(count, dtype=np.int64)
    for column, size in zip(columns, sizes, strict=True):
        code *= size
        code += column
    if num_codes <= 2**63 >> count.bit_length():
        # Sorting numbers is much faster than argsort, so the row is part of the number.
        code <<= count.bit_length()
        code |= np.arange(count)
        code.sort()
        code &= (1 << count.bit_length()) - 1
        return code
    order = np.argsort(code)
    if (np.diff(code[order]) == 0).any():
        order = np.argsort(code, kind="stable")  # slower, and needed only for an error
    return order


def _values(
    facts: Facts, *, closed: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """(fact,): values, NaN where unknown; their errors; and whether an error is missing."""
    predicate = facts.predicate
    if predicate.domain.is_discrete:
        value = _truths(facts, closed=closed)
        if facts.lacks_state.any():
            value = np.where(facts.lacks_state, np.nan, value)
    elif facts.value is None:
        raise EvidenceError(f"{facts.origin.name}: '{predicate.name}' is real, but has no values")
    else:
        value, wrong = numbers(facts.value)
        _refuse(facts, wrong, "is {}, which is not a number")
    lacks_sd = np.zeros(len(facts), dtype=bool)
    if facts.sd is None:
        sd = _all(0.0, len(facts))
    else:
        sd, wrong = numbers(facts.sd)
        # Atoms that are written out have an error only where one is meant.
        if not facts.origin.spells_atoms and (sd > 0).any():
            lacks_sd = np.isnan(sd) & ~np.isnan(value)
        sd = np.where(np.isnan(sd) & ~wrong, 0.0, sd)
        wrong |= ~((sd >= 0) & np.isfinite(sd))
        _refuse(facts, wrong, "has the error {}; sd is 0 or positive", facts.sd)
    if predicate.domain.is_discrete:
        _refuse(facts, sd > 0, "has the error {}; only reals are measured with an error", facts.sd)
    else:
        domain = predicate.domain
        _refuse(facts, np.isinf(value), "is {}; values are finite numbers")
        inside = (value >= domain.lower) & (value <= domain.upper) | (sd > 0)
        outside = ~inside & ~np.isnan(value)
        _refuse(facts, outside, f"is {{}}; its domain is [{domain.lower:g}, {domain.upper:g}]")
    return value, sd, lacks_sd


def _truths(facts: Facts, *, closed: bool) -> NDArray[np.float64]:
    if facts.value is None:
        return _all(1.0, len(facts))
    value, wrong = truths(facts.value)
    wrong |= (value < 0) | (value > 1)
    words = "neither true (yes, t, 1) nor false (no, f, 0) nor a probability"
    _refuse(facts, wrong, f"is {{}}, which is {words}")
    name = facts.predicate.name
    is_soft = (value > 0) & (value < 1)
    if closed:
        _refuse(facts, is_soft, f"is {{}}, but '{name}' is closed, so that it is true or false")
        unknown = "has no value, but '{}' is closed, so that all of it is known"
        _refuse(facts, np.isnan(value), unknown.format(name))
    if facts.predicate.unique is not None:
        _refuse(facts, is_soft, f"is {{}}, but '{name}' has a `!`, so that it is true or false")
    return value


def _refuse(
    facts: Facts,
    wrong: NDArray[np.bool_],
    message: str,
    column: pa.ChunkedArray | None = None,
) -> None:
    """Raise if a fact is wrong; {} in the message is what the column (the values) has there."""
    if not wrong.any():
        return
    first = int(np.argmax(wrong))
    stated = facts.value if column is None else column
    shown = stated[first].as_py() if stated is not None else "true"
    quoted = f"'{shown}'" if isinstance(shown, str) else str(shown)
    raise EvidenceError(
        f"{facts.where(first)}: {facts.atom(first)} {message.format(quoted)}"
        f"{more_rows(int(np.count_nonzero(wrong)) - 1)}"
    )


def _check_once(found: ObservedAtoms) -> None:
    """Raise if an atom is observed more than once."""
    same = np.ones(max(len(found) - 1, 0), dtype=bool)
    for column in found.ids.T:
        same &= column[1:] == column[:-1]
    if not same.any():
        return
    # The first row of each run of equal ones, for every row.
    rows = np.arange(len(found))
    first = np.maximum.accumulate(np.where(np.append(False, same), 0, rows))
    differs = (found.value != found.value[first]) | (found.sd != found.sd[first])
    is_repeated = first != rows
    wrong = is_repeated & differs if (is_repeated & differs).any() else is_repeated
    later = int(min(np.flatnonzero(wrong), key=lambda row: found.fact[row]))
    _fail_twice(found, later, int(first[later]), int(np.count_nonzero(wrong)) - 1)


def _fail_twice(found: ObservedAtoms, later: int, earlier: int, more: int) -> NoReturn:
    """Raise about two rows that observe one variable."""
    (facts, at), (others, other_at) = found.source(later), found.source(earlier)
    if facts.origin is others.origin:
        here = facts.origin.row(int(facts.row[at]))
        there = others.origin.row(int(others.row[other_at]))
        start = f"{facts.origin.name}: {facts.atom(at)}: "
    else:
        here, there = facts.where(at), others.where(other_at)
        start = f"{facts.atom(at)}: "
    if (found.ids[later] != found.ids[earlier]).any():
        what = f"{here} says {_state(facts, at)} where {there} says {_state(others, other_at)}"
    elif found.value[later] == found.value[earlier] and found.sd[later] == found.sd[earlier]:
        what = f"{here} repeats {there}"
    else:
        what = f"{here} says {_said(found, later)} where {there} says {_said(found, earlier)}"
    raise EvidenceError(f"{start}{what}{more_rows(more)}")


def _state(facts: Facts, at: int) -> str | None:
    return facts.arguments[facts.predicate.unique or 0][at]


def _said(found: ObservedAtoms, row: int) -> str:
    value, sd = float(found.value[row]), float(found.sd[row])
    if found.facts[0].predicate.domain.is_discrete and value in (0.0, 1.0):
        return "true" if value else "false"
    return f"{value:g} with sd {sd:g}" if sd else f"{value:g}"


def _located(facts: Sequence[Facts], fact: int) -> tuple[Facts, int]:
    for part in facts:
        if fact < len(part):
            return part, fact
        fact -= len(part)
    raise IndexError(fact)


@dataclass(frozen=True, slots=True)
class EvidenceTable:
    """A table of the engine with observed atoms, ordered by argument.

    Columns a0, a1, … (INTEGER) are the positions of the arguments among the constants of their
    types. `value` and `sd` (DOUBLE) follow: truth as 0 or 1, a probability strictly between them,
    or a real with the standard deviation of its error. A closed predicate has its true atoms only,
    without `value` and `sd`. Where an argument is unique, the others are a0, a1, …, and `value` is
    the position of the constant that holds for it.
    """

    table: str
    num_rows: int
    num_arguments: int
    is_closed: bool = False
    excluded: str | None = None
    """Where an argument is unique: a table of constants that do not hold, with the same columns."""

    def arrays(
        self, engine: Engine, *, excluded: bool = False
    ) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]:
        """(row, argument): positions of constants; (row,): values; (row,): their errors."""
        columns = engine.fetch(f"SELECT * FROM {self.excluded if excluded else self.table}")
        num_rows = len(next(iter(columns.values())))
        ids = np.empty((num_rows, self.num_arguments), dtype=np.int32)
        for place in range(self.num_arguments):
            ids[:, place] = columns[f"a{place}"]
        if self.is_closed:
            return ids, np.ones(num_rows), np.zeros(num_rows)
        return ids, np.asarray(columns["value"]), np.asarray(columns["sd"])


def store(
    found: ObservedAtoms | None,
    predicate: PredicateDeclaration,
    constants: Mapping[str, pa.StringArray],
    engine: Engine,
    table: str,
    *,
    closed: bool,
) -> EvidenceTable:
    """Store what is observed of a predicate (None: nothing) as a table of the engine."""
    types = predicate.arguments
    if found is None:
        ids, value, sd = np.zeros((0, len(types)), np.int32), np.zeros(0), np.zeros(0)
    elif predicate.unique is not None:
        num_states = len(constants[types[predicate.unique]])
        return _store_states(found, predicate.unique, num_states, engine, table)
    else:
        ids, value, sd = found.ids, found.value, found.sd
    further: dict[str, NDArray[Any]] = {"value": value, "sd": sd}
    if closed:
        is_true = value == 1
        ids = ids if is_true.all() else ids[is_true]
        # A table must have a column.
        further = {} if types else {"holds": np.ones(len(ids), dtype=bool)}
    _load(engine, table, ids, further)
    return EvidenceTable(table, len(ids), len(types), closed)


def _store_states(
    found: ObservedAtoms, unique: int, num_states: int, engine: Engine, table: str
) -> EvidenceTable:
    """Store what is observed of a predicate with a unique argument."""
    is_true = found.value == 1
    others = np.delete(found.ids, unique, axis=1)
    state = found.ids[:, unique].astype(np.float64)
    order = np.lexsort((state, *others.T[::-1]))  # each variable's states side by side
    true, false = order[is_true[order]], order[~is_true[order]]
    twice = np.flatnonzero((others[true][1:] == others[true][:-1]).all(axis=1))
    if len(twice):
        pair = true[twice[0] : twice[0] + 2]
        earlier, later = sorted(pair.tolist(), key=lambda row: int(found.fact[row]))
        _fail_twice(found, later, earlier, len(twice) - 1)
    _check_excluded(found, others, false, num_states)
    excluded = f"{table}_excluded" if len(false) else None
    for name, rows in ((table, true), (excluded, false)):
        if name is not None:
            _load(engine, name, others[rows], {"value": state[rows], "sd": found.sd[rows]})
    return EvidenceTable(table, len(true), others.shape[1], excluded=excluded)


def _check_excluded(
    found: ObservedAtoms, others: NDArray[np.int32], false: NDArray[np.int64], num_states: int
) -> None:
    """Raise if all states of one variable are false."""
    if not len(false):
        return
    starts = np.append(True, (others[false][1:] != others[false][:-1]).any(axis=1))
    counts = np.diff(np.append(np.flatnonzero(starts), len(false)))
    for at in np.flatnonzero(starts)[counts == num_states][:1].tolist():
        facts, fact = found.source(int(false[at]))
        raise EvidenceError(
            f"{facts.where(fact)}: {facts.atom(fact)}: all {num_states} constants of type "
            f"'{facts.predicate.arguments[facts.predicate.unique or 0]}' are said to be false"
        )


def _load(
    engine: Engine, table: str, ids: NDArray[np.int32], further: Mapping[str, NDArray[Any]]
) -> None:
    columns = {f"a{place}": pa.array(column) for place, column in enumerate(ids.T)}
    columns |= {key: pa.array(column) for key, column in further.items()}
    engine.load(table, pa.table(columns))

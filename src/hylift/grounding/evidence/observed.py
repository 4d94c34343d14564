"""Facts as numbers: the observed atoms, checked against domains and each other."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hylift.errors import EvidenceError
from hylift.grounding.constants import WordColumn
from hylift.grounding.evidence.facts import Facts, more_rows
from hylift.language.statements import PredicateDeclaration
from hylift.words import Wording

NUMBER = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"
"""A number as text; Arrow's own parser stops at the first text that is none."""

MOST_WHOLE = 2**53
"""Up to here, floating-point numbers hold all integers."""
LONG_INTEGER = "^[-+]?[0-9]{16,37}$"
INTEGER = pa.decimal128(38, 0)

ODD_NUMBERS = {"nan": np.nan, "inf": np.inf, "+inf": np.inf, "-inf": -np.inf}

TRUTHS = dict.fromkeys(("true", "t", "yes", "y"), 1.0)
TRUTHS |= dict.fromkeys(("false", "f", "no", "n"), 0.0)
"""Words for truth values, in lower case."""

MISSING = ("n/a", "na", "n.a.", "none", "null", "missing", "unknown", "?", "-", ".", "#n/a")
"""Words for missing values in other programs, in lower case."""

_Number = TypeVar("_Number", bound=np.generic)


@dataclass(frozen=True, slots=True, eq=False)
class ObservedAtoms:
    """The observed atoms of one predicate, ordered by argument, each variable once."""

    ids: NDArray[np.int32]  # (row, argument): positions among constants; without a unique argument
    value: NDArray[np.float64]
    """(row,): truth as 0 or 1, a probability between, a real, or the state of a unique argument.
    Of a closed-world predicate only the true atoms have rows."""
    sd: NDArray[np.float64]  # (row,): 0 where the value is exact
    excluded: tuple[NDArray[np.int32], NDArray[np.float64]] | None = None
    """If an argument is unique: ids, and states that do not hold for them."""
    num_unknown: int = 0
    """Facts without a value, which observe nothing."""
    doubt: str | None = None
    """A warning about values that count as exact only because their error is missing."""
    num_repeated: int = 0
    """Facts that repeat others, and are left out."""

    def __len__(self) -> int:
        return len(self.value)

    def exact(self) -> ObservedAtoms:
        """Those without an error."""
        is_exact = self.sd == 0
        return replace(
            self, ids=self.ids[is_exact], value=self.value[is_exact], sd=self.sd[is_exact]
        )

    def has(self, ids: Sequence[int]) -> bool:
        """True if the atom of these arguments is observed without an error."""
        return bool((self.exact().ids == np.asarray(ids, dtype=np.int32)).all(axis=1).any())

    @classmethod
    def of(
        cls, facts: Sequence[Facts], constants: Mapping[str, pa.StringArray], *, closed: bool
    ) -> ObservedAtoms:
        """From facts about one predicate, all of whose constants are known."""
        rows = _Rows.of(facts, constants, closed=closed)
        predicate = rows.predicate
        if predicate.unique is not None:
            num_states = len(constants[predicate.arguments[predicate.unique]])
            return rows.states(predicate.unique, num_states)
        ids, value, sd = rows.ids, rows.value, rows.sd
        if closed and not (is_true := value == 1).all():
            ids, value, sd = ids[is_true], value[is_true], sd[is_true]
        return cls(ids, value, sd, None, rows.num_unknown, rows.doubt, rows.num_repeated)


def rows_of(facts: Sequence[Facts], constants: Mapping[str, pa.StringArray]) -> NDArray[np.int32]:
    """(row, argument): the atoms that tables have, whether with a value or without; without a
    unique argument."""
    predicate = facts[0].predicate
    columns = [
        _joined([part.arguments[place].ids(constants[type_name]) for part in facts])
        for place, type_name in enumerate(predicate.arguments)
        if place != predicate.unique
    ]
    if not columns:
        return np.zeros((1, 0), dtype=np.int32)
    return np.unique(np.stack(columns, axis=1), axis=0)


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Atoms with their values, ordered by argument, each atom once, and the facts they are from."""

    ids: NDArray[np.int32]  # (row, argument)
    value: NDArray[np.float64]
    sd: NDArray[np.float64]
    fact: NDArray[np.int64]  # (row,): counted through all facts
    facts: tuple[Facts, ...]
    num_unknown: int
    doubt: str | None
    num_repeated: int = 0

    @classmethod
    def of(
        cls, facts: Sequence[Facts], constants: Mapping[str, pa.StringArray], *, closed: bool
    ) -> _Rows:
        types = facts[0].predicate.arguments
        values, sds, lacking = zip(*(_values(part, closed=closed) for part in facts), strict=True)
        value, sd = _joined(values), _joined(sds)
        columns = [
            _joined([part.arguments[place].ids(constants[type_name]) for part in facts])
            for place, type_name in enumerate(types)
        ]
        is_unknown = np.isnan(value)
        num_unknown = int(np.count_nonzero(is_unknown))
        if num_unknown:
            columns = [column[~is_unknown] for column in columns]
        sizes = [len(constants[type_name]) for type_name in types]
        order = _order(columns, sizes, len(value) - num_unknown)
        fact = np.flatnonzero(~is_unknown)[order] if num_unknown else order
        ids = np.empty((len(order), len(columns)), dtype=np.int32, order="F")
        for place, column in enumerate(columns):
            ids[:, place] = column[order]
        doubt = _doubt(facts, np.flatnonzero(_joined(lacking)))
        value, sd = _taken(value, fact), _taken(sd, fact)
        rows = cls(ids, value, sd, fact, tuple(facts), num_unknown, doubt)
        return rows.without_repeats()

    @property
    def predicate(self) -> PredicateDeclaration:
        return self.facts[0].predicate

    def source(self, row: int) -> tuple[Facts, int]:
        """The facts a row comes from, and its place among them."""
        return _located(self.facts, int(self.fact[row]))

    def without_repeats(self) -> _Rows:
        """Each atom once; raise if two rows about one contradict each other."""
        same = np.ones(max(len(self.value) - 1, 0), dtype=bool)
        for column in self.ids.T:
            same &= column[1:] == column[:-1]
        if not same.any():
            return self
        # The first row of each run of equal ones, for every row.
        rows = np.arange(len(self.value))
        first = np.maximum.accumulate(np.where(np.append(False, same), 0, rows))
        wrong = (self.value != self.value[first]) | (self.sd != self.sd[first])
        wrong |= (first != rows) & (self.sd > 0)  # two measurements, perhaps
        if wrong.any():
            later = int(min(np.flatnonzero(wrong), key=lambda row: self.fact[row]))
            self._fail_twice(later, int(first[later]), int(np.count_nonzero(wrong)) - 1)
        kept = first == rows
        return replace(
            self,
            ids=self.ids[kept],
            value=self.value[kept],
            sd=self.sd[kept],
            fact=self.fact[kept],
            num_repeated=int(np.count_nonzero(~kept)),
        )

    def states(self, unique: int, num_states: int) -> ObservedAtoms:
        """The states that are observed and excluded, where an argument is unique."""
        is_true = self.value == 1
        others = np.delete(self.ids, unique, axis=1)
        state = self.ids[:, unique].astype(np.float64)
        order = np.lexsort((state, *others.T[::-1]))  # each variable's states side by side
        true, false = order[is_true[order]], order[~is_true[order]]
        twice = np.flatnonzero((others[true][1:] == others[true][:-1]).all(axis=1))
        if len(twice):
            pair = true[twice[0] : twice[0] + 2]
            earlier, later = sorted(pair.tolist(), key=lambda row: int(self.fact[row]))
            self._fail_twice(later, earlier, len(twice) - 1)
        self._check_excluded(others[false], false, num_states)
        excluded = (others[false], state[false]) if len(false) else None
        return ObservedAtoms(
            others[true],
            state[true],
            self.sd[true],
            excluded,
            self.num_unknown,
            self.doubt,
            self.num_repeated,
        )

    def _check_excluded(
        self, others: NDArray[np.int32], false: NDArray[np.int64], num_states: int
    ) -> None:
        """Raise if all states of one variable are false; others: ids of the false rows."""
        if not len(false):
            return
        starts = np.append(True, (others[1:] != others[:-1]).any(axis=1))
        counts = np.diff(np.append(np.flatnonzero(starts), len(false)))
        for at in np.flatnonzero(starts)[counts == num_states][:1].tolist():
            facts, fact = self.source(int(false[at]))
            raise EvidenceError(
                f"{facts.where(fact)}: {facts.atom(fact)}: all {num_states} constants of type "
                f"'{facts.predicate.arguments[facts.predicate.unique or 0]}' are false"
            )

    def _fail_twice(self, later: int, earlier: int, more: int) -> NoReturn:
        """Raise about two rows that observe one variable."""
        (facts, at), (others, other_at) = self.source(later), self.source(earlier)
        if facts.origin is others.origin:
            here = facts.origin.row(int(facts.row[at]))
            there = others.origin.row(int(others.row[other_at]))
            start = f"{facts.origin.name}: {facts.atom(at)}: "
        else:
            here, there = facts.where(at), others.where(other_at)
            start = f"{facts.atom(at)}: "
        said = f"{here} says {self._said(later)} where {there} says {self._said(earlier)}"
        if (self.ids[later] != self.ids[earlier]).any():
            said = f"{here} says {_state(facts, at)} where {there} says {_state(others, other_at)}"
        remedy = None
        if (self.ids[later] == self.ids[earlier]).all() and self.sd[later] == self.sd[earlier] > 0:
            said = f"{here} repeats {there}"
        if not facts.origin.spells_atoms:
            remedy = Wording(
                f"keep one row of each, as df.drop_duplicates({self._keys()}) does",
                "keep one row of each",
            )
        raise EvidenceError(f"{start}{said}{more_rows(more)}", remedy)

    def _keys(self) -> str:
        types = self.predicate.arguments
        return str([name for place, name in enumerate(types) if place != self.predicate.unique])

    def _said(self, row: int) -> str:
        value, sd = float(self.value[row]), float(self.sd[row])
        if self.predicate.domain.is_discrete and value in (0.0, 1.0):
            return "true" if value else "false"
        return f"{value:g} with sd {sd:g}" if sd else f"{value:g}"


def _state(facts: Facts, at: int) -> str | None:
    return facts.arguments[facts.predicate.unique or 0][at]


def _located(facts: Sequence[Facts], fact: int) -> tuple[Facts, int]:
    for part in facts:
        if fact < len(part):
            return part, fact
        fact -= len(part)
    raise IndexError(fact)


def _doubt(facts: Sequence[Facts], without_sd: NDArray[np.int64]) -> str | None:
    """The warning about facts without an error in a table of errors."""
    if not len(without_sd):
        return None
    source, at = _located(facts, int(without_sd[0]))
    count = len(without_sd)
    have = "has no sd, and counts" if count == 1 else "have no sd, and count"
    first = source.atom(at) if count == 1 else f"the first is {source.atom(at)}"
    return (
        f"{source.predicate.name}: {count:,} of its rows {have} as exact ({first}): fill in "
        f"the sd, or leave the row{'' if count == 1 else 's'} out"
    )


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
        value, wrong = numbers_in(facts.value)
        _refuse(facts, wrong, "is {}, which is not a number")
        rounded = "is {}, an integer with more digits than floating-point numbers hold"
        _refuse(facts, _is_rounded(facts.value, value), f"{rounded}: subtract an origin from all")
    lacks_sd = np.zeros(len(facts), dtype=bool)
    if facts.sd is None:
        sd = _all(0.0, len(facts))
    else:
        sd, wrong = numbers_in(facts.sd)
        # Atoms that are written out have an error only where one is meant.
        if not facts.origin.spells_atoms and (sd > 0).any():
            lacks_sd = np.isnan(sd) & ~np.isnan(value)
        sd = np.where(np.isnan(sd) & ~wrong, 0.0, sd)
        wrong |= ~((sd >= 0) & np.isfinite(sd))
        _refuse(facts, wrong, "has the error {}; sd must be a number >= 0", facts.sd)
    if predicate.domain.is_discrete:
        _refuse(facts, sd > 0, "has the error {}; only reals are measured with an error", facts.sd)
    else:
        domain = predicate.domain
        _refuse(facts, np.isinf(value), "is {}; values must be finite")
        inside = (value >= domain.lower) & (value <= domain.upper) | (sd > 0)
        outside = ~inside & ~np.isnan(value)
        _refuse(facts, outside, f"is {{}}; its domain is [{domain.lower:g}, {domain.upper:g}]")
    return value, sd, lacks_sd


def _truths(facts: Facts, *, closed: bool) -> NDArray[np.float64]:
    if facts.value is None:
        return _all(1.0, len(facts))
    value, wrong = truths_in(facts.value)
    wrong |= (value < 0) | (value > 1)
    words = "neither true (yes, t, 1) nor false (no, f, 0) nor a probability"
    _refuse(facts, wrong, f"is {{}}, which is {words}")
    name = facts.predicate.name
    is_soft = (value > 0) & (value < 1)
    if closed:
        _refuse(facts, is_soft, f"is {{}}, but '{name}' is closed, so it must be true or false")
        unknown = "has no value, but '{}' is closed, so all its atoms must be known"
        _refuse(facts, np.isnan(value), unknown.format(name))
    if facts.predicate.unique is not None:
        _refuse(facts, is_soft, f"is {{}}, but '{name}' has a `!`, so it must be true or false")
    return value


def _refuse(
    facts: Facts,
    wrong: NDArray[np.bool_],
    message: str,
    column: pa.ChunkedArray | None = None,
) -> None:
    """Raise if a fact is wrong; {} in the message is what the column (the values) has there."""
    stated = facts.value if column is None else column

    def fault(first: int) -> str:
        shown = stated[first].as_py() if stated is not None else "true"
        quoted = f"'{shown}'" if isinstance(shown, str) else str(shown)
        remedy = _remedy(shown) if isinstance(shown, str) else ""
        return f"{facts.atom(first)} {message.format(quoted)}{remedy}"

    facts.refuse(wrong, fault)


def _remedy(word: str) -> str:
    """The advice on a common word in the place of a value."""
    if word.strip().casefold() in MISSING:
        return ": leave the cell empty where a value is missing"
    if re.fullmatch(r"[-+]?\d+,\d+", word.strip()):
        return ": write numbers with a point"
    return ""


# Values in columns.


def numbers_in(column: pa.ChunkedArray) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """(row,): the number, NaN where missing; and whether something else is stated."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        value = pc.fill_null(column.cast(pa.float64(), safe=False), np.nan).to_numpy()
        return value, np.zeros(len(value), dtype=bool)
    return _parsed(column, ODD_NUMBERS)


def _is_rounded(column: pa.ChunkedArray, value: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(row,): whether an integer is stated, and the value is another."""
    found = np.abs(value) >= MOST_WHOLE
    if found.any() and not pa.types.is_floating(column.type):
        large = pa.array(found)
        words = pc.utf8_trim_whitespace(column.filter(large).cast(pa.string()))
        found[found] = is_whole = pc.match_substring_regex(words, LONG_INTEGER).to_numpy()
        digits = words.filter(pa.array(is_whole)).cast(INTEGER)
        found[found] = pc.not_equal(digits, pa.array(value[found]).cast(INTEGER)).to_numpy()
        return found
    return np.zeros(len(value), dtype=bool)


def truths_in(column: pa.ChunkedArray) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """As `numbers_in`, with 1 and 0 for true and false, and for words such as `No`."""
    if pa.types.is_boolean(column.type):
        return numbers_in(column.cast(pa.int8()))
    if pa.types.is_string(column.type) or not pa.types.is_primitive(column.type):
        return _parsed(column, TRUTHS | ODD_NUMBERS)
    return numbers_in(column)


def _parsed(
    stated: pa.ChunkedArray, spoken: dict[str, float]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The numbers that words are or stand for; and where they do neither."""
    try:
        distinct, code = WordColumn.of(stated, "value").encoded()
    except EvidenceError:  # no words at all
        return np.full(len(stated), np.nan), stated.is_valid().to_numpy()
    words = pc.utf8_lower(pc.utf8_trim_whitespace(distinct))
    is_number = pc.match_substring_regex(words, NUMBER).to_numpy(zero_copy_only=False)
    place = pc.fill_null(pc.index_in(words, value_set=pa.array(list(spoken))), -1)
    place = place.to_numpy(zero_copy_only=False)
    value = np.full(len(words) + 1, np.nan)  # the last is for rows with nothing
    digits = pc.utf8_ltrim(words.filter(pa.array(is_number)), "+")
    value[:-1][is_number] = pc.cast(digits, pa.float64()).to_numpy(zero_copy_only=False)
    value[:-1][place >= 0] = np.array(list(spoken.values()))[place[place >= 0]]
    is_wrong = np.append(~is_number & (place < 0), False)
    return value[code], is_wrong[code]

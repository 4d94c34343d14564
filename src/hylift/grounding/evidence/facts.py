"""Rows about one predicate, as a source states them: which columns are what."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import EvidenceError
from hylift.formats.table_file import quoted_name
from hylift.grounding.evidence.columns import WordColumn
from hylift.language.syntax import PredicateDeclaration

ROLES = {"value": "value", "probability": "value", "prob": "value", "sd": "sd", "std": "sd"}
"""Columns that are known by their name, in lower case; all others are arguments."""

ERRORS = frozenset(
    ("sd", "std", "stdev", "stddev", "dev", "deviation", "sigma", "se", "stderr", "err", "error")
)
"""The last word of the name that a column of errors behind the values has, in lower case: `sigma`,
`celsius_error`, `standard deviation`. No other column is taken for errors."""


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """Where rows come from, as errors call it."""

    name: str
    unit: str = "row"
    """What its rows are called: `row`, or `line` in a text."""
    entries: tuple[str, ...] = ()
    """Keys of a mapping that are the rows themselves, which have no numbers then."""
    index: tuple[str, ...] = ()
    """What pandas calls the labels of its rows, which are no columns; `index` if they have no
    name."""

    @property
    def spells_atoms(self) -> bool:
        """Whether it writes atoms out, `In(p3, t1)`, and has no cells that may be empty."""
        return self.unit == "line" or bool(self.entries)

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

    @property
    def lacks_state(self) -> NDArray[np.bool_]:
        """(fact,): whether it does not say which constant of a unique argument holds."""
        unique = self.predicate.unique
        if unique is None:
            return np.zeros(len(self), dtype=bool)
        return self.arguments[unique].is_missing

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
    _check_index(predicate, table, places["argument"], origin)
    _check_truths(predicate, table, places["value"], origin)
    _check_errors(predicate, table.column_names, places["sd"], origin)
    if not places["value"] and not predicate.domain.is_discrete:
        raise EvidenceError(
            f"{_wrong_columns(predicate, table.column_names, origin)}: '{predicate.name}' is real, "
            "but has no values"
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
    folded, folded_types = ([name.casefold() for name in words] for words in (names, types))
    places: dict[str, list[int]] = {"argument": [], "value": [], "sd": []}
    for place, name in enumerate(folded):
        places[ROLES.get(name, "argument")].append(place)
    if sorted(folded) == sorted(folded_types):
        places = {"argument": list(range(len(names))), "value": [], "sd": []}
    by_name = [folded[place] for place in places["value"]]
    improbable = not predicate.domain.is_discrete and by_name in (["probability"], ["prob"])
    _move_surplus(predicate, folded, places)
    one_each = len(places["value"]) <= 1 and len(places["sd"]) <= 1
    if len(places["argument"]) != len(types) or not one_each or improbable:
        remedy = _choice(predicate, names) if len(places["argument"]) > len(types) else ""
        raise EvidenceError(_wrong_columns(predicate, names, origin) + remedy)
    places["argument"] = _by_type(places["argument"], names, types)
    expected = [*zip(places["argument"], types, strict=True)]
    expected += [(place, role) for role in ("value", "sd") for place in places[role]]
    for place, role in expected:
        if folded[place] in folded_types and folded[place] not in (role.casefold(), *ROLES):
            remedy = _choice(predicate, names) if set(folded_types) <= set(folded) else ""
            remedy = remedy or (
                f", with '{names[place]}' in the place of '{role}': rename or reorder the columns"
            )
            raise EvidenceError(_wrong_columns(predicate, names, origin) + remedy)
    return places


def _check_truths(
    predicate: PredicateDeclaration, table: pa.Table, places: list[int], origin: Origin
) -> None:
    """Raises if a column that nothing marks as truth values would be taken for them."""
    for place in places if predicate.domain.is_discrete else ():
        name = table.column_names[place]
        known = {*ROLES, predicate.name.casefold(), f"#{place + 1}"}
        if name.casefold() not in known and not pa.types.is_boolean(table.column(place).type):
            raise EvidenceError(
                f"{_wrong_columns(predicate, table.column_names, origin)}: if '{name}' says which "
                f"rows are true, call it 'value'; else {_without(place, table.column_names)}"
            )


def _check_errors(
    predicate: PredicateDeclaration, names: list[str], places: list[int], origin: Origin
) -> None:
    """Raises if a column that nothing marks as errors would be taken for them."""
    for place in places:
        last_word = (re.findall(r"[^\W_]+", names[place].casefold()) or [""])[-1]
        if last_word not in ERRORS and names[place] != f"#{place + 1}":
            advice = _without(place, names)
            if not predicate.domain.is_discrete:
                advice += ", or call it 'sd' if it has the standard deviations of the values"
            raise EvidenceError(f"{_wrong_columns(predicate, names, origin)}: {advice}")


def _check_index(
    predicate: PredicateDeclaration, table: pa.Table, places: list[int], origin: Origin
) -> None:
    """Raises if arguments are the labels of rows, and something else is taken for them."""
    columns = {name.casefold() for name in table.column_names}
    missing = {name.casefold() for name in predicate.arguments} - columns
    are_truths = any(pa.types.is_boolean(table.column(place).type) for place in places)
    if missing.intersection(map(str.casefold, origin.index)) or (origin.index and are_truths):
        raise EvidenceError(_wrong_columns(predicate, table.column_names, origin))


def _move_surplus(
    predicate: PredicateDeclaration, folded: list[str], places: dict[str, list[int]]
) -> None:
    """Makes columns beyond the arguments values and errors: the last ones, value before error.

    A column that is called like the predicate has the values wherever it stands.
    """
    types, rest = predicate.arguments, places["argument"]
    own = predicate.name.casefold()
    is_argument = own in (name.casefold() for name in types)
    called_so = [place for place in rest if folded[place] == own and not is_argument]
    has_sd = len(rest) == len(types) + 2 and not places["value"] and not places["sd"]
    if len(rest) > len(types) and not places["value"]:
        places["value"] = called_so[:1]
        rest[:] = [place for place in rest if place not in called_so[:1]]
    if has_sd:
        places["sd"] = [rest.pop()]
    if len(rest) == len(types) + 1 and not places["value"]:
        places["value"] = [rest.pop()]


def _by_type(rest: list[int], names: list[str], types: Sequence[str]) -> list[int]:
    """The places of arguments in the order of their types, if they are called like them."""
    for fold in (str, str.casefold):
        wanted, given = [fold(name) for name in types], [fold(names[place]) for place in rest]
        if len(set(wanted)) == len(wanted) and set(given) == set(wanted):
            return [rest[given.index(name)] for name in wanted]
    return rest


def _wrong_columns(predicate: PredicateDeclaration, names: list[str], origin: Origin) -> str:
    expected = ", ".join(predicate.arguments)
    further = "value, and perhaps sd" if not predicate.domain.is_discrete else "perhaps value"
    columns = ", ".join([*([expected] if expected else []), further])
    wanted = f"a table of '{predicate.name}' has the columns {columns}"
    here = ", ".join(map(quoted_name, names))
    if origin.index:
        here += f" (its index, {', '.join(origin.index)}, is no column: reset_index() makes it one)"
    return f"{origin.name}: {wanted}; this one has {here}"


def _choice(predicate: PredicateDeclaration, names: list[str]) -> str:
    """How to choose from more columns than are needed, those that are known by their names; or
    nothing."""
    wanted = [*predicate.arguments]
    folded = [name.casefold() for name in names]
    if not predicate.domain.is_discrete:
        value = (word for word in (predicate.name, "value") if word.casefold() in folded)
        sd = (word for word in ("sd", "std") if word in folded)
        wanted += [next(value, "…"), *list(sd)[:1]]
    if len(names) <= len(wanted) or not are_named(names):
        return ""
    columns = [
        names[folded.index(word.casefold())]
        if folded.count(word.casefold()) == 1 == wanted.count(word)
        else "…"
        for word in wanted
    ]
    return f": choose columns of it ({_selection(columns)})"


def are_named(columns: Sequence[str]) -> bool:
    """Whether columns can be chosen by name; those of a list of rows are only numbered."""
    return any(name != f"#{place}" for place, name in enumerate(columns, start=1))


def _without(place: int, names: list[str]) -> str:
    others = [name for other, name in enumerate(names) if other != place]
    return f"leave '{names[place]}' out ({_selection(others)})"


def _selection(columns: list[str]) -> str:
    """`df[['paper', 'topic']]`; … stands for columns that are not known."""
    quoted = [name if name == "…" else repr(name) for name in columns]
    return f"df[[{', '.join(quoted) if set(quoted) != {'…'} else '…'}]]"


def words_of(column: pa.ChunkedArray, name: str, origin: Origin) -> WordColumn:
    try:
        return WordColumn.of(column, name)
    except EvidenceError as error:
        raise EvidenceError(f"{origin.name}: {error}") from None


def complete(facts: Facts) -> Facts:
    """The facts, after a check that no argument is missing.

    The state of a variable may be, as the value of a real may, but not where atoms are written out.
    """
    for place, column in enumerate(facts.arguments):
        is_missing = column.is_missing
        if place == facts.predicate.unique:
            is_known = True if facts.value is None else facts.value.is_valid().to_numpy()
            is_missing = is_missing & is_known & facts.origin.spells_atoms
        missing = np.flatnonzero(is_missing)
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

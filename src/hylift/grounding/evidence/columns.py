"""Columns of evidence: words that name constants, truth values, numbers; unknown constants."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hylift.errors import EvidenceError, did_you_mean
from hylift.graph.name_blocks import MAX_SUGGESTIONS, TEXT, has_own_type

NUMBER = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"
"""A number as text; Arrow's own parser stops at the first text that is none."""

ODD_NUMBERS = {"nan": np.nan, "inf": np.inf, "+inf": np.inf, "-inf": -np.inf}

TRUTHS = {"true": 1.0, "t": 1.0, "yes": 1.0, "false": 0.0, "f": 0.0, "no": 0.0}
"""Words for truth values, in lower case."""

FEW = 6
"""Longest list of constants that an error shows in full."""

ISO_TIME = "%Y-%m-%dT%H:%M:%S"


@dataclass(frozen=True, slots=True, eq=False)
class WordColumn:
    """A column of words that name constants."""

    stated: pa.ChunkedArray  # text or integers; null where missing
    looked_up: tuple[pa.StringArray, NDArray[np.int32]] | None = None
    """Constants, and the ids of the words among them, if looked up before."""
    given: pa.DataType = TEXT
    """The type of the words in the table: integers, dates, timestamps, or else text."""

    @classmethod
    def of(cls, column: pa.ChunkedArray, name: str) -> WordColumn:
        """The words of a column; dates and truth values are written as text."""
        plain = _plain(column, name)
        if not pa.types.is_integer(plain.type) and pc.index(plain, "").as_py() >= 0:
            plain = pc.if_else(pc.equal(plain, ""), None, plain)
        return cls(plain, given=_own_type(column.type, plain.type))

    def __len__(self) -> int:
        return len(self.stated)

    def __getitem__(self, row: int) -> str | None:
        word = self.stated[row].as_py()
        return None if word is None else str(word)

    def filter(self, keep: NDArray[np.bool_]) -> WordColumn:
        stated, looked_up = self.stated.filter(pa.array(keep)), self.looked_up
        if looked_up is not None:
            looked_up = looked_up[0], looked_up[1][keep]
        return replace(self, stated=stated, looked_up=looked_up)

    @property
    def is_missing(self) -> NDArray[np.bool_]:
        """(row,)"""
        return np.asarray(self.stated.is_null().to_numpy())

    @property
    def used(self) -> pa.StringArray:
        """The distinct words that some row has."""
        return pc.cast(self.stated.unique().drop_null(), pa.string())

    def encoded(self) -> tuple[pa.StringArray, NDArray[np.int32]]:
        """The distinct words; and (row,): the index of each row's word, -1 where missing."""
        encoded = self.stated.dictionary_encode()
        if not encoded.num_chunks:
            return pa.array([], pa.string()), np.zeros(0, dtype=np.int32)
        indices = pa.chunked_array([chunk.indices for chunk in encoded.chunks])
        return pc.cast(encoded.chunk(0).dictionary, pa.string()), _places(indices)

    def among(self, constants: pa.StringArray) -> WordColumn:
        """The same words, with their ids among the constants looked up."""
        return replace(self, looked_up=(constants, self.ids(constants)))

    def ids(self, constants: pa.StringArray) -> NDArray[np.int32]:
        """(row,): the position of each word among the constants, -1 where it is not there."""
        if self.looked_up is not None and self.looked_up[0] is constants:
            return self.looked_up[1]
        if not pa.types.is_integer(self.stated.type):
            return _places(pc.index_in(self.stated, value_set=constants.cast(self.stated.type)))
        words, code = self.encoded()
        # Code -1 picks the entry behind the last word.
        return np.append(_places(pc.index_in(words, value_set=constants)), np.int32(-1))[code]


def _places(found: pa.Array | pa.ChunkedArray) -> NDArray[np.int32]:
    """Positions as numbers, -1 for null."""
    return np.asarray(pc.fill_null(found, -1) if found.null_count else found, dtype=np.int32)


def _own_type(kind: pa.DataType, plain: pa.DataType) -> pa.DataType:
    """The type of a column's constants in results; plain: the type of its words."""
    if pa.types.is_dictionary(kind):
        return _own_type(kind.value_type, plain)
    if has_own_type(kind):
        return kind
    return plain if pa.types.is_integer(plain) else TEXT


def _plain(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """The column as integers or as text."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _plain(column.cast(kind.value_type), name)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_int64(kind):
        return column
    if pa.types.is_integer(kind) and not pa.types.is_uint64(kind):
        return column.cast(pa.int64())
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _whole_or_text(column.cast(pa.float64()))
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return _iso_text(column)
    if not pa.types.is_nested(kind) and not pa.types.is_binary(kind):
        try:
            return column.cast(pa.string())
        except pa.ArrowException:
            pass
    raise EvidenceError(f"the column '{name}' holds {kind}, which does not name constants")


def _whole_or_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Integers where all are whole, as pandas stores integers with gaps as floats."""
    stated = pc.if_else(pc.is_nan(column), None, column)
    is_whole = pc.and_(pc.equal(pc.floor(stated), stated), pc.less(pc.abs(stated), 2.0**63))
    if pc.all(is_whole).as_py() is False:
        return stated.cast(pa.string())
    return stated.cast(pa.int64())


def _iso_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """One text per moment, whatever its unit; midnight is a date, as pandas has no date type."""
    if pa.types.is_time(column.type):
        return _without_zeros(column.cast(pa.string()), column.type.unit)
    text = _without_zeros(pc.strftime(column, format=ISO_TIME), column.type.unit)
    return pc.replace_substring_regex(text, "T00:00:00$", "")


def _without_zeros(text: pa.ChunkedArray, unit: str) -> pa.ChunkedArray:
    """Without trailing zeros of fractions, which all texts have unless in seconds."""
    return text if unit == "s" else pc.replace_substring_regex(text, r"\.?0+$", "")


def numbers(column: pa.ChunkedArray) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """(row,): the number, NaN where missing; and whether something else is stated."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        value = pc.fill_null(column.cast(pa.float64()), np.nan).to_numpy()
        return value, np.zeros(len(value), dtype=bool)
    return _parsed(column, ODD_NUMBERS)


def truths(column: pa.ChunkedArray) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """As `numbers`, with 1 and 0 for true and false, and for words such as `No`."""
    if pa.types.is_boolean(column.type):
        return numbers(column.cast(pa.int8()))
    if pa.types.is_string(column.type) or not pa.types.is_primitive(column.type):
        return _parsed(column, TRUTHS | ODD_NUMBERS)
    return numbers(column)


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


# Constants in errors.


def not_among(word: str, type_name: str, constants: pa.StringArray) -> str:
    """`'t12' is not a constant of type 'topic', which has t0 to t9`."""
    if _are_counted(constants):
        shown = f"{constants[0]} to {constants[-1]}"
    elif len(constants) <= FEW:
        shown = ", ".join(constants.to_pylist()) or "none"
    else:
        shown = f"{len(constants)} constants, such as {constants[0]} and {constants[-1]}"
    return f"'{word}' is not a constant of type '{type_name}', which has {shown}"


def closest(word: str, constants: pa.StringArray) -> str:
    """` Did you mean 'Wall'?`, or nothing, as among numbered constants."""
    if _are_counted(constants):
        return ""
    return did_you_mean(word, constants.slice(0, MAX_SUGGESTIONS).to_pylist())


def _are_counted(constants: pa.StringArray) -> bool:
    """True if three or more constants differ only in consecutive numbers."""
    if len(constants) < 3:
        return False
    first = str(constants[0])
    prefix = first.rstrip("0123456789")
    digits = first[len(prefix) :]
    if not 0 < len(digits) < 16:
        return False
    numbers = pa.array(np.arange(int(digits), int(digits) + len(constants))).cast(pa.string())
    return bool(constants.equals(pc.binary_join_element_wise(prefix, numbers, "")))

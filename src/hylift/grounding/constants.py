"""Words that name constants: columns of data, the order and type of constants, unknown ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hylift.errors import EvidenceError, did_you_mean
from hylift.graph.name_blocks import MAX_SUGGESTIONS, TEXT, has_own_type, read_as
from hylift.language.ranges import Constants, Range

INTEGER = r"^(0|-?[1-9][0-9]{0,17})$"
"""An integer without leading zeros or a plus."""

NUMBER = r"-?[0-9]{1,15}(\.[0-9]{1,15})?"

UNITS = ("s", "ms", "us", "ns")

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


# Order and type.


def words_of(constants: Sequence[str]) -> pa.StringArray:
    """The constants that a model lists."""
    if isinstance(constants, Constants):
        return pa.concat_arrays([words_of(part) for part in constants.parts])
    if isinstance(constants, Range):
        numbers = np.arange(constants.numbers.start, constants.numbers.stop)
        digits = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), constants.width, padding="0")
        return pc.binary_join_element_wise(constants.prefix, digits, "")
    return pa.array(constants, pa.string())


def in_order(
    listed: Iterable[pa.StringArray],
    mentioned: Iterable[pa.StringArray],
    *,
    order_matters: bool = False,
) -> pa.StringArray:
    """All words, each once, given arrays of distinct words: by number if all are integers.

    Otherwise listed words come first, in their order, then those only mentioned, bytewise. Where
    rules compare constants or use neighbours, decimals and words that differ only in a number at
    their end are ordered by number, too.
    """
    lists, others = list(listed), list(mentioned)
    distinct = _distinct([*lists, *others])
    numbers = as_integers(distinct)
    if numbers is not None:
        return distinct.take(pa.array(np.argsort(numbers)))
    first = _distinct(lists)
    rest = distinct.slice(len(first))
    trailing = _trailing_numbers(rest) if order_matters else None
    order = pc.sort_indices(rest) if trailing is None else pa.array(np.argsort(trailing))
    return pa.concat_arrays([first, rest.take(order)])


def _trailing_numbers(words: pa.StringArray) -> NDArray[np.float64] | None:
    """The number that each word is, or has behind a shared prefix; None if some have none."""
    if not len(words):
        return None
    first = str(words[0])
    prefix = "" if re.fullmatch(NUMBER, first) else first.rstrip("0123456789.")
    rest = pc.utf8_slice_codeunits(words, len(prefix))
    same = pc.all(pc.starts_with(words, prefix)).as_py()
    if not (same and pc.all(pc.match_substring_regex(rest, f"^{NUMBER}$")).as_py()):
        return None
    return np.asarray(pc.cast(rest, pa.float64()).to_numpy(zero_copy_only=False))


def _distinct(arrays: list[pa.StringArray]) -> pa.StringArray:
    filled = [array for array in arrays if len(array)]
    return filled[0] if len(filled) == 1 else pc.unique(pa.chunked_array(filled, pa.string()))


def as_integers(words: pa.StringArray) -> NDArray[np.int64] | None:
    """The words as integers, or None if one is none."""
    if not (_are_integers(words.slice(0, 1)) and _are_integers(words)):
        return None
    return np.asarray(pc.cast(words, pa.int64()).to_numpy(zero_copy_only=False))


def _are_integers(words: pa.StringArray) -> bool:
    return bool(pc.all(pc.match_substring_regex(words, INTEGER)).as_py())


def type_of(constants: pa.StringArray, given: Iterable[pa.DataType]) -> pa.DataType:
    """The Arrow type of constants in the tables that name them; text where tables differ.

    Constants of the model have the type of the tables if reading and writing them as such gives
    the same words.
    """
    kind = _shared(list(dict.fromkeys(given)))
    try:
        column = pa.chunked_array([read_as(constants, kind)])
    except pa.ArrowException:
        return TEXT
    same = WordColumn.of(column, "").stated.cast(TEXT).equals(pa.chunked_array([constants]))
    return kind if same else TEXT


def _shared(kinds: list[pa.DataType]) -> pa.DataType:
    """The common type of columns of these types."""
    if len(kinds) == 1:
        return kinds[0]
    if kinds and all(pa.types.is_integer(kind) for kind in kinds):
        return pa.int64()
    if kinds and all(pa.types.is_timestamp(kind) and kind.tz == kinds[0].tz for kind in kinds):
        return max(kinds, key=lambda kind: UNITS.index(kind.unit))
    return TEXT


# Errors.


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

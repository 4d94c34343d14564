"""Columns of tables as what evidence needs: words that name constants, truth values, numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hylift.errors import EvidenceError

NUMBER = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"
"""A number as text; Arrow's own reading of numbers stops at the first text that is none."""

ODD_NUMBERS = {"nan": np.nan, "inf": np.inf, "+inf": np.inf, "-inf": -np.inf}

TRUTHS = {"true": 1.0, "t": 1.0, "yes": 1.0, "false": 0.0, "f": 0.0, "no": 0.0}
"""Words for truth values, in lower case; numbers are read as such."""

ISO_TIME = "%Y-%m-%dT%H:%M:%S"


@dataclass(frozen=True, slots=True, eq=False)
class WordColumn:
    """A column of words: the distinct ones, and which of them each row has."""

    words: pa.StringArray
    code: NDArray[np.int32]  # (row,): a position in `words`, -1 where there is nothing

    @classmethod
    def of(cls, column: pa.ChunkedArray, name: str) -> WordColumn:
        """The words of a column; whole numbers, dates and truth values are written as text."""
        encoded = _plain(column, name).dictionary_encode()
        if not encoded.num_chunks:
            return cls(pa.array([], pa.string()), np.zeros(0, dtype=np.int32))
        words = pc.cast(encoded.chunk(0).dictionary, pa.string())
        indices = pa.chunked_array([chunk.indices for chunk in encoded.chunks])
        code = pc.fill_null(indices, -1).to_numpy().astype(np.int32)
        nothing = pc.index(words, "").as_py()
        if nothing >= 0:
            code[code == nothing] = -1
        return cls(words, code)

    def __len__(self) -> int:
        return len(self.code)

    def __getitem__(self, row: int) -> str | None:
        code = int(self.code[row])
        return None if code < 0 else str(self.words[code].as_py())

    def filter(self, keep: NDArray[np.bool_]) -> WordColumn:
        return WordColumn(self.words, self.code[keep])

    @property
    def used(self) -> pa.StringArray:
        """The distinct words that some row has."""
        is_used = np.zeros(len(self.words) + 1, dtype=bool)  # the last is for rows with nothing
        is_used[self.code] = True
        return self.words if is_used[:-1].all() else self.words.filter(pa.array(is_used[:-1]))

    def ids(self, constants: pa.StringArray) -> NDArray[np.int32]:
        """(row,): the position of each word among the constants, -1 where it is not there."""
        found = pc.fill_null(pc.index_in(self.words, value_set=constants), -1)
        # Code -1 picks the entry behind the last word.
        return np.append(found.to_numpy(zero_copy_only=False), -1).astype(np.int32)[self.code]


def _plain(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """The column as whole numbers, or as text."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _plain(column.cast(kind.value_type), name)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_int64(kind):
        return column
    if pa.types.is_integer(kind) and not pa.types.is_uint64(kind):
        return column.cast(pa.int64())
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _whole_or_text(column.cast(pa.float64()))
    if pa.types.is_timestamp(kind):
        return _iso_text(column)
    if not pa.types.is_nested(kind) and not pa.types.is_binary(kind):
        try:
            return column.cast(pa.string())
        except pa.ArrowException:
            pass
    raise EvidenceError(f"the column '{name}' holds {kind}, which does not name constants")


def _whole_or_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whole numbers where all are whole, as pandas makes floats of integers with gaps."""
    stated = pc.if_else(pc.is_nan(column), None, column)
    is_whole = pc.and_(pc.equal(pc.floor(stated), stated), pc.less(pc.abs(stated), 2.0**63))
    if pc.all(is_whole).as_py() is False:
        return stated.cast(pa.string())
    return stated.cast(pa.int64())


def _iso_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dates where no row has a time of day, as pandas has no type of its own for dates."""
    days = pc.floor_temporal(column, unit="day")
    only_days = pc.all(pc.equal(days, column)).as_py() is not False
    return pc.strftime(column, format="%Y-%m-%d" if only_days else ISO_TIME)


def numbers(column: pa.ChunkedArray) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """(row,): the number, NaN where none is stated; and whether what is stated is no number."""
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
    """The numbers that words are, or stand for; and where they do neither."""
    try:
        column = WordColumn.of(stated, "value")
    except EvidenceError:  # no words at all
        return np.full(len(stated), np.nan), stated.is_valid().to_numpy()
    words = pc.utf8_lower(pc.utf8_trim_whitespace(column.words))
    is_number = pc.match_substring_regex(words, NUMBER).to_numpy(zero_copy_only=False)
    place = pc.fill_null(pc.index_in(words, value_set=pa.array(list(spoken))), -1)
    place = place.to_numpy(zero_copy_only=False)
    value = np.full(len(words) + 1, np.nan)  # the last is for rows with nothing
    digits = pc.utf8_ltrim(words.filter(pa.array(is_number)), "+")
    value[:-1][is_number] = pc.cast(digits, pa.float64()).to_numpy(zero_copy_only=False)
    value[:-1][place >= 0] = np.array(list(spoken.values()))[place[place >= 0]]
    is_wrong = np.append(~is_number & (place < 0), False)
    return value[column.code], is_wrong[column.code]

"""What constants are beside words: whole numbers, dates or moments."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

TEXT = pa.string()


def has_own_type(kind: pa.DataType) -> bool:
    """Whether constants that tables have in this type are given back in it, and not as text."""
    return bool(pa.types.is_integer(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def read_as(words: pa.StringArray, kind: pa.DataType) -> pa.Array:
    """The constants in a type of their own; an ArrowException where one of them is not of it."""
    if kind == TEXT:
        return words
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pc.assume_timezone(pc.cast(words, pa.timestamp(kind.unit)), kind.tz)
    return pc.cast(words, kind)

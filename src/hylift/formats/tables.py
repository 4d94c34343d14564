"""Tables from where they are: text files, Parquet, Arrow, frames of any library, lists of rows."""

from __future__ import annotations

import csv
import math
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.feather as pa_feather
import pyarrow.parquet as pa_parquet

from hylift.errors import EvidenceError, FormatError
from hylift.files import read_bytes, read_text

FileKind = Literal["csv", "tsv", "parquet", "arrow", "alchemy", "sqlite", "duckdb"]

KIND_BY_SUFFIX: dict[str, FileKind] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".db": "alchemy",
    ".sqlite": "sqlite",
    ".duckdb": "duckdb",
}

MAGIC: tuple[tuple[int, bytes, FileKind], ...] = (
    (0, b"SQLite format 3\0", "sqlite"),
    (8, b"DUCK", "duckdb"),
    (0, b"PAR1", "parquet"),
    (0, b"ARROW1", "arrow"),
)
"""Where a binary file says what it is; this counts for more than its name, as `.db` is used by many
programs."""


INDEX = re.compile(r"__index_level_[0-9]+__")
"""What pandas calls row labels without a name in the files it writes."""


def kind_of(path: str | Path) -> FileKind:
    """What a file holds, by its first bytes or else by its name."""
    check_regular(path)
    try:
        with open(path, "rb") as stream:
            head = stream.read(16)
    except OSError:
        read_bytes(path)  # says why
        raise
    for start, magic, kind in MAGIC:
        if head[start:].startswith(magic):
            return kind
    suffix = Path(path).suffix.lower()
    if suffix not in KIND_BY_SUFFIX:
        known = ", ".join(KIND_BY_SUFFIX)
        raise FormatError(path, f"what it holds is unknown: files of evidence end in {known}")
    promised = KIND_BY_SUFFIX[suffix]
    if promised in ("sqlite", "duckdb"):
        name = {"sqlite": "SQLite", "duckdb": "DuckDB"}[promised]
        raise FormatError(path, f"is not a database of {name}")
    return promised


def check_regular(path: str | Path) -> None:
    """Raises unless the path is that of a file that can be read: pipes and devices may not end."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        read_bytes(path)  # says why
        raise
    if stat.S_ISDIR(mode):
        read_bytes(path)  # says so
    if not stat.S_ISREG(mode):
        raise FormatError(
            path, "is a pipe or a device, not a file; write what it gives to a file first"
        )


def read_table(path: str | Path, kind: FileKind) -> pa.Table:
    """The table in a CSV, TSV, Parquet or Arrow file."""
    check_regular(path)
    if kind in ("csv", "tsv"):
        return _read_csv(path, kind)
    content = read_bytes(path)
    source = pa.BufferReader(content)
    try:
        if kind == "parquet":
            return _without_index(pa_parquet.ParquetFile(source).read())
        if content.startswith((b"ARROW1", b"FEA1")):
            return _without_index(pa_feather.read_table(source))
        return _without_index(pa.ipc.open_stream(source).read_all())
    except (pa.ArrowException, OSError) as error:
        raise FormatError(path, f"cannot be read as {kind}: {_one_line(error)}") from None


def _read_csv(path: str | Path, kind: FileKind) -> pa.Table:
    """All columns as text without blanks around it, empty ones null; the first line names them.

    Columns of whole numbers are such, as most libraries read them. Text as it stands keeps
    constants such as 007 apart from 7.
    """
    content = read_bytes(path)
    first, skipped = _first_line(path, content)
    if not first.strip():
        raise FormatError(path, "the file is empty; its first line names the columns")
    delimiter = "\t" if kind == "tsv" else next((mark for mark in ",;\t" if mark in first), ",")
    header = [name.strip() for name in next(csv.reader([first], delimiter=delimiter))]
    for name in header:
        if _is_number(name):
            raise FormatError(path, f"the first line names the columns, but has '{name}'")
    places = [str(place) for place in range(len(header))]
    options: dict[str, Any] = {
        "parse_options": pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        "convert_options": pa_csv.ConvertOptions(
            column_types=dict.fromkeys(places, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
        ),
    }
    reading = {"column_names": places, "skip_rows": skipped}
    try:
        table = pa_csv.read_csv(pa.BufferReader(content), pa_csv.ReadOptions(**reading), **options)
    except pa.ArrowInvalid:
        # Threads lose the number of the row.
        try:
            table = pa_csv.read_csv(
                pa.BufferReader(content),
                pa_csv.ReadOptions(**reading, use_threads=False),
                **options,
            )
        except pa.ArrowInvalid as error:
            raise FormatError(path, _one_line(error)) from None
    return pa.table([_cleaned(column) for column in table.columns], names=header)


def _first_line(path: str | Path, content: bytes) -> tuple[str, int]:
    """The first line that is not blank, and how many lines end with it."""
    start, number = 0, 0
    while start < len(content):
        end = content.find(b"\n", start)
        end = len(content) if end < 0 else end
        number += 1
        try:
            line = content[start:end].decode("utf-8-sig").rstrip("\r")
        except UnicodeDecodeError:
            read_text(path)  # says where
            raise
        if line.strip():
            return line, number
        start = end + 1
    return "", number


def _cleaned(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Without blanks around words, and as numbers where all are whole, as 7 or all as 7.0."""
    trimmed = pc.utf8_trim_whitespace(column)
    words = pc.if_else(pc.equal(trimmed, ""), None, trimmed)
    first = next((word for word in words.slice(0, 100).to_pylist() if word is not None), "")
    if first.endswith(".0") and pc.all(pc.match_substring_regex(words, r"^-?[0-9]+\.0$")).as_py():
        words = pc.replace_substring_regex(words, r"\.0$", "")
    return _whole_numbers(words)


def _whole_numbers(words: pa.ChunkedArray) -> pa.ChunkedArray:
    """The words as numbers, if all are whole and written as such: 7, but not 007 or +7."""
    if words.null_count == len(words):
        return words
    try:
        numbers = words.cast(pa.int64())
    except pa.ArrowInvalid:
        return words
    return numbers if numbers.cast(pa.string()).equals(words) else words


def as_table(data: object, label: str) -> pa.Table:
    """Rows that are in memory: an Arrow table, a frame, a relation, an array, a list of rows.

    A column without a name is called by its number, `#1`, `#2`, …
    """
    if isinstance(data, pa.Table):
        return _without_index(data)
    try:
        if hasattr(data, "__arrow_c_stream__"):
            return _from_stream(data)
        if isinstance(data, pa.RecordBatch):
            return pa.table(data)
        if isinstance(data, pa.Array):
            return _unnamed([data])
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise EvidenceError(f"{label} cannot be read as a table: {_one_line(error)}") from None
    if hasattr(data, "to_numpy"):  # a column of older versions of pandas
        data = data.to_numpy()
    if isinstance(data, np.ndarray) and data.ndim == 2:
        return _unnamed([column_of(column) for column in data.T.tolist()])
    if isinstance(data, np.ndarray):
        data = data.tolist()
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return _from_rows(data, label)
    raise EvidenceError(
        f"{label} cannot be a {type(data).__name__}: give a file, an Arrow table, a frame, a "
        "DuckDB relation or a list of rows"
    )


def _without_index(table: pa.Table) -> pa.Table:
    """The table without the row labels that pandas stores beside its columns."""
    return table.drop_columns([n for n in table.column_names if INDEX.fullmatch(n)])


def row_labels(data: object) -> tuple[str, ...]:
    """What pandas calls the labels of the rows, `index` if they have no name; none where they only
    count the rows."""
    index = getattr(data, "index", None)
    names = getattr(index, "names", None)
    if names is None or (list(names) == [None] and type(index).__name__ == "RangeIndex"):
        return ()
    return tuple("index" if name is None else str(name) for name in names)


def _from_stream(data: Any) -> pa.Table:
    """What any library hands over through Arrow; the row labels of pandas are no column."""
    try:
        reader = pa.RecordBatchReader.from_stream(data)
    except pa.ArrowInvalid:
        return _unnamed([pa.chunked_array(data)])
    table = reader.read_all()
    labels = (table.schema.pandas_metadata or {}).get("index_columns", [])
    table = table.drop_columns([label for label in labels if isinstance(label, str)])
    # Arrow cannot yet select rows of the views that Polars uses for text.
    return table.cast(pa.schema([_without_view(column) for column in table.schema]))


def _without_view(column: pa.Field) -> pa.Field:
    return column.with_type(pa.large_string()) if column.type == pa.string_view() else column


def _from_rows(rows: Sequence[Any], label: str) -> pa.Table:
    """From tuples or lists; words and numbers by themselves are rows of one column."""
    rows = [row if isinstance(row, tuple | list) else (row,) for row in rows]
    if not rows:
        return pa.table({})
    widths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    odd = np.flatnonzero(widths != widths[0])
    if len(odd):
        at = int(odd[0])
        raise EvidenceError(
            f"{label}, row {at + 1}: {rows[at]!r} has {widths[at]} columns, row 1 has {widths[0]}"
        )
    return _unnamed([column_of(column) for column in zip(*rows, strict=True)])


def _unnamed(columns: Sequence[Any]) -> pa.Table:
    return pa.table(list(columns), names=[f"#{place + 1}" for place in range(len(columns))])


def column_of(values: Sequence[Any]) -> pa.Array:
    """Values of one kind as they are, of several kinds as text; NaN and the like are nothing."""
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, OverflowError):
        words = [None if is_missing(value) else str(value) for value in values]
        return pa.array(words, pa.string())


def is_missing(value: object) -> bool:
    """Whether it is None, NaN or what pandas has for nothing."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return word.lower() not in ("nan", "inf", "infinity")


def _one_line(error: Exception) -> str:
    return " ".join(" ".join(map(str, error.args)).split())

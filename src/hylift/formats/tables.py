"""Tables from files (CSV, Parquet, Arrow, SQLite) and from memory (Arrow, frames, rows)."""

from __future__ import annotations

import csv
import importlib
import math
import re
import shutil
import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.feather as pa_feather
import pyarrow.parquet as pa_parquet

from hylift.errors import EvidenceError, FormatError
from hylift.files import check_regular, read_bytes, read_text

FileKind = Literal["csv", "tsv", "parquet", "arrow", "alchemy"]

KIND_BY_SUFFIX: dict[str, FileKind] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".db": "alchemy",
}

KIND_BY_MAGIC: dict[bytes, FileKind] = {b"PAR1": "parquet", b"ARROW1": "arrow"}

TableName = tuple[str, ...]
"""`(name,)`, or `(schema, name)`."""


@dataclass(frozen=True, slots=True)
class DatabaseFormat:
    """A file format with several tables. Reading runs nothing that a file brings along."""

    name: str
    suffix: str
    magic_at: int
    magic: bytes
    library: str
    """The module whose `Error` is raised for broken files."""
    connect: Callable[[str], Any]
    """Opens the file at a path, read-only."""
    tables: str
    """SQL: `TableName`s in order; not views, which are queries of the file."""
    columns: str
    """SQL: the columns of one; not generated ones, which are expressions of the file."""
    fetch: Callable[[Any, str, list[str]], pa.Table]
    """All rows of an SQL query, as columns of these names."""
    catalog: str = ""
    """Prefix of the names of tables."""

    def table_names(self, path: Path) -> list[TableName]:
        with self._opened(path) as database:
            names: list[TableName] = database.execute(self.tables).fetchall()
        return names

    def read(self, path: Path, name: TableName) -> pa.Table:
        """All rows of a table."""
        with self._opened(path) as database:
            names = [str(n) for (n,) in database.execute(self.columns, name).fetchall()]
            columns = ", ".join(map(quoted_identifier, names))
            table = self.catalog + ".".join(map(quoted_identifier, name))
            return self.fetch(database, f"SELECT {columns} FROM {table}", names)

    @contextmanager
    def _opened(self, path: Path) -> Iterator[Any]:
        check_regular(path)
        error_class = importlib.import_module(self.library).Error
        try:
            with closing(self.connect(str(path.resolve()))) as database:
                yield database
        except error_class as error:
            reason = " ".join(str(error).split())
            raise FormatError(path, f"cannot be read as {self.name}: {reason}") from None


SQLITE_CHUNK = 100_000
"""Rows of an SQLite table that are Python objects at the same time."""

LINE = re.compile(rb"([^\r\n]+|(?=[\r\n]))(?:\r\n|\r|\n|$)")
"""A line of any system; old ones of Apple end lines with a carriage return."""

NAMES_COLUMNS = "the first line names the columns"
LONG_ROW = "a row has more than a million characters: is a quote never closed?"

INDEX = re.compile(r"__index_level_[0-9]+__")
"""Columns of unnamed row labels in files that pandas writes."""


def kind_of(path: Path, databases: Sequence[DatabaseFormat]) -> FileKind | DatabaseFormat:
    """The kind of a file: by its first bytes, as many programs write `.db`, or else by its name."""
    head = read_bytes(path, most=16)
    for database in databases:
        if head[database.magic_at :].startswith(database.magic):
            return database
    for magic, kind in KIND_BY_MAGIC.items():
        if head.startswith(magic):
            return kind
    suffix = path.suffix.lower()
    for database in databases:
        if suffix == database.suffix:
            raise FormatError(path, f"is not a valid {database.name} database")
    if suffix not in KIND_BY_SUFFIX:
        known = ", ".join([*KIND_BY_SUFFIX, *(database.suffix for database in databases)])
        raise FormatError(path, f"unknown kind of file: evidence files end in {known}")
    return KIND_BY_SUFFIX[suffix]


def read_table(path: Path, kind: FileKind) -> pa.Table:
    """The table in a CSV, TSV, Parquet or Arrow file."""
    content = read_bytes(path)
    if kind in ("csv", "tsv"):
        return _read_csv(path, content, kind)
    source = pa.BufferReader(content)
    try:
        if kind == "parquet":
            table = pa_parquet.ParquetFile(source).read()
        elif content.startswith((b"ARROW1", b"FEA1")):
            table = pa_feather.read_table(source)
        else:
            table = pa.ipc.open_stream(source).read_all()
        table.validate(full=True)
        return _without_index(table)
    except Exception as error:  # a damaged file can fail in any of the layers that read it
        raise FormatError(path, f"cannot be read as {kind}: {_one_line(error)}") from None


def _read_csv(path: Path, content: bytes, kind: FileKind) -> pa.Table:
    """Columns of integers where all words are, else of trimmed text; null where empty.

    The first line names the columns. Text stays as written: the constants 007 and 7 differ.
    """
    first, num_skipped = _first_line(path, content)
    if not first.strip():
        raise FormatError(path, "the file is empty; its first line names the columns")
    delimiter = "\t" if kind == "tsv" else next((mark for mark in ",;\t" if mark in first), ",")
    try:
        header = [name.strip() for name in next(csv.reader([first], delimiter=delimiter))]
    except csv.Error as error:
        raise FormatError(path, f"{NAMES_COLUMNS}: {error}", line=num_skipped) from None
    for name in header:
        if _is_number(name):
            raise FormatError(path, f"{NAMES_COLUMNS}, but has '{name}'")
    places = [str(place) for place in range(len(header))]
    parsing = pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    converting = pa_csv.ConvertOptions(
        column_types=dict.fromkeys(places, pa.string()), null_values=[""], strings_can_be_null=True
    )
    for use_threads in (True, False):  # errors name the row only without threads
        reading = pa_csv.ReadOptions(
            column_names=places, skip_rows=num_skipped, use_threads=use_threads
        )
        try:
            table = pa_csv.read_csv(pa.BufferReader(content), reading, parsing, converting)
        except pa.ArrowInvalid as error:
            if "UTF8" in str(error):
                read_text(path)  # says where
            problem = LONG_ROW if "straddling" in str(error) else _one_line(error)
        else:
            return pa.table([_cleaned(column) for column in table.columns], names=header)
    raise FormatError(path, problem)


def _first_line(path: Path, content: bytes) -> tuple[str, int]:
    """The first line that is not blank, and its number."""
    number = 0
    for number, line in enumerate(LINE.finditer(content), start=1):
        try:
            text = line[1].decode("utf-8-sig")
        except UnicodeDecodeError:
            read_text(path)  # says where
            raise
        if text.strip():
            return text, number
    return "", number


def _cleaned(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Trimmed words; integers if all are written as 7 (not 007 or +7), or all as 7.0."""
    trimmed = pc.utf8_trim_whitespace(column)
    words = pc.if_else(pc.equal(trimmed, ""), None, trimmed)
    first = next((word for word in words.slice(0, 100).to_pylist() if word is not None), "")
    if first.endswith(".0") and pc.all(pc.match_substring_regex(words, r"^-?[0-9]+\.0$")).as_py():
        words = pc.replace_substring_regex(words, r"\.0$", "")
    if words.null_count == len(words):
        return words
    try:
        integers = words.cast(pa.int64())
    except pa.ArrowInvalid:
        return words
    return integers if integers.cast(pa.string()).equals(words) else words


def _connect_sqlite(path: str) -> sqlite3.Connection:
    log, index = Path(f"{path}-wal"), Path(f"{path}-shm")
    if not _has_log(path) or index.exists():
        database = _opened_sqlite(path)
    elif not log.exists():  # nobody else has the file open
        database = _opened_sqlite(path, "&immutable=1")
    else:  # SQLite would write an index of the log beside the file
        database = sqlite3.connect(":memory:")
        with TemporaryDirectory(prefix="hylift") as folder:
            copy = shutil.copy(path, folder)
            shutil.copy(log, f"{copy}-wal")
            with closing(_opened_sqlite(copy)) as whole:
                whole.backup(database)
    database.execute("PRAGMA trusted_schema = OFF")
    return database


def _opened_sqlite(path: str, option: str = "") -> sqlite3.Connection:
    return sqlite3.connect(f"{Path(path).as_uri()}?mode=ro{option}", uri=True)


def _has_log(path: str) -> bool:
    """True if a file keeps changes in a log beside it, as its header says."""
    return read_bytes(path, most=20)[18:20] != b"\1\1"


def _fetch_sqlite(database: sqlite3.Connection, query: str, names: list[str]) -> pa.Table:
    cursor, chunks = database.execute(query), list[list[pa.Array]]()
    while rows := cursor.fetchmany(SQLITE_CHUNK):
        chunks.append([column_of(values) for values in zip(*rows, strict=True)])
    stored = [_chunked([chunk[place] for chunk in chunks]) for place in range(len(names))]
    return pa.table(stored, names=names)


def _chunked(chunks: list[pa.Array]) -> pa.ChunkedArray:
    """One column of chunks whose types may differ, as SQLite lets a column mix them."""
    kinds = {chunk.type for chunk in chunks} - {pa.null()}
    if len(kinds) <= 1:
        kind = next(iter(kinds), pa.string())
    else:
        is_numeric = all(pa.types.is_integer(k) or pa.types.is_floating(k) for k in kinds)
        kind = pa.float64() if is_numeric else pa.string()
    return pa.chunked_array([chunk.cast(kind) for chunk in chunks], kind)


SQLITE = DatabaseFormat(
    "SQLite",
    ".sqlite",
    0,
    b"SQLite format 3\0",
    "sqlite3",
    _connect_sqlite,
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' "
    "ESCAPE '~' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name",
    "SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0 ORDER BY cid",
    _fetch_sqlite,
)


def quoted_identifier(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def as_table(data: object, label: str) -> pa.Table:
    """Rows in memory: an Arrow table, a data frame, a relation, an array or a list of rows.

    Columns without names are called by their number, `#1`, `#2`, …
    """
    if isinstance(data, pa.Table):
        return _without_index(data)
    try:
        if hasattr(data, "__arrow_c_stream__"):
            return _from_stream(data) if not _is_mixed(data) else _from_columns(data, label)
        if isinstance(data, pa.RecordBatch):
            return pa.table(data)
        if isinstance(data, pa.Array):
            return _unnamed([data])
    except EvidenceError:
        raise
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
        f"{label} cannot be a {type(data).__name__}: give a file, an Arrow table, a data frame, a "
        "database relation or a list of rows"
    )


def _without_index(table: pa.Table) -> pa.Table:
    """The table without the row labels that pandas stores beside its columns."""
    return table.select([i for i, n in enumerate(table.column_names) if not INDEX.fullmatch(n)])


def row_labels(data: object) -> tuple[str, ...]:
    """The names of pandas' row labels, `index` where unnamed; none if they only number the rows,
    as they still do after a filter."""
    index = getattr(data, "index", None)
    names = getattr(index, "names", None)
    if index is None or names is None or (list(names) == [None] and index.dtype.kind in "iu"):
        return ()
    return tuple("index" if name is None else str(name) for name in names)


def _from_stream(data: Any) -> pa.Table:
    """The Arrow table of any library's frame, without the row labels of pandas."""
    try:
        reader = pa.RecordBatchReader.from_stream(data)
    except pa.ArrowInvalid:
        return _unnamed([pa.chunked_array(data)])
    table = reader.read_all()
    labels = (table.schema.pandas_metadata or {}).get("index_columns", [])
    table = table.select([i for i, n in enumerate(table.column_names) if n not in labels])
    # Arrow cannot yet filter the string views of Polars.
    fields = [
        field.with_type(pa.large_string()) if field.type == pa.string_view() else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def _is_mixed(data: Any) -> bool:
    """True for a frame of pandas with a column that Arrow cannot read, as it mixes types."""
    if not hasattr(data, "itertuples") or not data.columns.is_unique:
        return False
    for name, kind in data.dtypes.items():
        if kind.kind == "O":
            try:
                pa.array(data[name], from_pandas=True)
            except (pa.ArrowException, ValueError, TypeError):
                return True
    return False


def _from_columns(frame: Any, label: str) -> pa.Table:
    """The table of a frame of pandas, with columns of mixed types as text."""
    columns = {}
    for name in frame.columns:
        values = frame[name].tolist()
        for row, value in enumerate(values, start=1):
            if isinstance(value, Collection) and not isinstance(value, str):
                raise EvidenceError(
                    f"{label}, row {row}: '{name}' is {value!r}, which is neither a word nor a "
                    "number"
                )
        columns[str(name)] = column_of(values)
    return pa.table(columns)


def _from_rows(rows: Sequence[Any], label: str) -> pa.Table:
    """From tuples or lists; words and numbers by themselves are rows of one column."""
    rows = [row if isinstance(row, tuple | list) else (row,) for row in rows]
    if not rows:
        return pa.table({})
    width = len(rows[0])
    for number, row in enumerate(rows, start=1):
        if len(row) != width:
            raise EvidenceError(
                f"{label}, row {number}: {row!r} has {len(row)} columns, row 1 has {width}"
            )
    return _unnamed([column_of(column) for column in zip(*rows, strict=True)])


def _unnamed(columns: Sequence[Any]) -> pa.Table:
    return pa.table(list(columns), names=[f"#{place + 1}" for place in range(len(columns))])


def column_of(values: Sequence[Any]) -> pa.Array:
    """Values of one type as they are, of several types as text; NaN and the like as null."""
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, OverflowError):
        return pa.array([None if is_missing(v) else _word(v) for v in values], pa.string())


def _word(value: object) -> str:
    """The value as a column of its own type would have it as text."""
    if isinstance(value, datetime):
        return value.isoformat().removesuffix("T00:00:00")
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def is_missing(value: object) -> bool:
    """True for None, NaN and the missing values of pandas."""
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

"""Tables of SQLite and DuckDB files, read without running anything that the files bring along."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal

import duckdb
import pyarrow as pa

from hylift.errors import FormatError
from hylift.formats.tables import check_regular, column_of

DatabaseKind = Literal["sqlite", "duckdb"]

CHUNK = 100_000
"""Rows of an SQLite table that are Python objects at the same time."""


def table_names(path: str | Path, kind: DatabaseKind) -> list[tuple[str, ...]]:
    """The tables of a database, in order; those of DuckDB have a schema before the name.

    Views are not among them: a view is a query, and a file's queries are not run.
    """
    if kind == "sqlite":
        with _sqlite(path) as database:
            names = database.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' "
                "ESCAPE '~' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
            )
            return [(str(name),) for (name,) in names]
    with _duckdb(path) as database:
        rows = database.sql(
            "SELECT schema_name, table_name FROM duckdb_tables() "
            "WHERE database_name = 'evidence' AND NOT internal ORDER BY ALL"
        ).fetchall()
        return [(str(schema), str(name)) for schema, name in rows]


def read_database_table(path: str | Path, kind: DatabaseKind, name: tuple[str, ...]) -> pa.Table:
    """All rows of one table.

    Generated columns are left out: they are expressions of the file. Older versions of DuckDB
    do not tell which columns of their files are generated, and compute them.
    """
    identifier = ".".join(map(_quoted, name))
    if kind == "duckdb":
        with _duckdb(path) as database:
            listed = database.execute(
                "SELECT column_name FROM information_schema.columns "
                "WHERE table_catalog = 'evidence' AND table_schema = ? AND table_name = ? "
                "AND is_generated IS DISTINCT FROM 'ALWAYS' ORDER BY ordinal_position",
                name,
            )
            columns = ", ".join(_quoted(column) for (column,) in listed.fetchall())
            return database.sql(f"SELECT {columns} FROM evidence.{identifier}").to_arrow_table()
    with _sqlite(path) as database:
        rows_of_columns = database.execute(
            "SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0 ORDER BY cid", name
        )
        names = [str(column) for (column,) in rows_of_columns]
        cursor = database.execute(f"SELECT {', '.join(map(_quoted, names))} FROM {identifier}")
        chunks: list[list[pa.Array]] = []
        while rows := cursor.fetchmany(CHUNK):
            chunks.append([column_of(values) for values in zip(*rows, strict=True)])
    stored = [_chunked([chunk[place] for chunk in chunks]) for place in range(len(names))]
    return pa.table(stored, names=names)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def _sqlite(path: str | Path) -> Iterator[sqlite3.Connection]:
    check_regular(path)
    try:
        uri = f"{Path(path).resolve().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as database:
            database.execute("PRAGMA trusted_schema = OFF")
            yield database
    except sqlite3.Error as error:
        raise FormatError(path, f"cannot be read as SQLite: {error}") from None


@contextmanager
def _duckdb(path: str | Path) -> Iterator[duckdb.DuckDBPyConnection]:
    check_regular(path)
    literal = str(Path(path).resolve()).replace("'", "''")
    try:
        with duckdb.connect() as database:
            database.execute(f"ATTACH '{literal}' AS evidence (READ_ONLY)")
            database.execute("SET enable_external_access = false")
            yield database
    except duckdb.Error as error:
        reason = " ".join(str(error).split())
        raise FormatError(path, f"cannot be read as DuckDB: {reason}") from None


def _chunked(chunks: list[pa.Array]) -> pa.ChunkedArray:
    """One column of chunks whose kinds may differ, as SQLite lets a column mix them."""
    kinds = {chunk.type for chunk in chunks} - {pa.null()}
    if len(kinds) <= 1:
        kind = next(iter(kinds), pa.string())
    else:
        is_numeric = all(pa.types.is_integer(k) or pa.types.is_floating(k) for k in kinds)
        kind = pa.float64() if is_numeric else pa.string()
    return pa.chunked_array([chunk.cast(kind) for chunk in chunks], kind)

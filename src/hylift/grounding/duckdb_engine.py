"""DuckDB as the engine of grounding, and its files as evidence."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import FormatError
from hylift.formats.tables import DatabaseFormat, TableName, check_regular, quoted_identifier

if TYPE_CHECKING:
    import duckdb

# DuckDB takes a tenth of a second to import, and many models join nothing.


class DuckDBEngine:
    """An embedded database in memory, which cannot reach anything outside itself."""

    @cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """Opened when first used; with one thread, results have one order."""
        import duckdb

        spill = Path(tempfile.gettempdir()) / f"hylift-{secrets.token_hex(6)}"
        return duckdb.connect(
            config={"threads": 1, "enable_external_access": "false", "temp_directory": str(spill)}
        )

    @property
    def databases(self) -> tuple[DatabaseFormat, ...]:
        return (DUCKDB_FILE,)

    def load(self, table: str, columns: pa.Table) -> None:
        self.connection.register("loaded", columns)
        self.connection.execute(f"CREATE TABLE {table} AS SELECT * FROM loaded")
        self.connection.unregister("loaded")

    def store(self, table: str, query: str) -> None:
        self.connection.execute(f"CREATE OR REPLACE TABLE {table} AS {query}")

    def fetch(self, query: str) -> dict[str, NDArray[Any]]:
        return self.connection.execute(query).fetchnumpy()

    def integers(self, values: range, table: str) -> str:
        return f"range({values.start}, {values.stop}) AS {table}(v)"


@contextmanager
def _opened(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A file as the catalog `evidence`, read-only and without access to other files."""
    import duckdb

    check_regular(path)
    literal = str(path.resolve()).replace("'", "''")
    try:
        with duckdb.connect() as database:
            database.execute(f"ATTACH '{literal}' AS evidence (READ_ONLY)")
            database.execute("SET enable_external_access = false")
            yield database
    except duckdb.Error as error:
        reason = " ".join(str(error).split())
        raise FormatError(path, f"cannot be read as DuckDB: {reason}") from None


def _table_names(path: Path) -> list[TableName]:
    with _opened(path) as database:
        return database.sql(
            "SELECT schema_name, table_name FROM duckdb_tables() "
            "WHERE database_name = 'evidence' AND NOT internal ORDER BY ALL"
        ).fetchall()


def _read(path: Path, name: TableName) -> pa.Table:
    """A table without its generated columns, which are expressions of the file.

    Older versions of DuckDB do not say which columns are generated, and compute them.
    """
    with _opened(path) as database:
        listed = database.execute(
            "SELECT column_name FROM information_schema.columns "
            "WHERE table_catalog = 'evidence' AND table_schema = ? AND table_name = ? "
            "AND is_generated IS DISTINCT FROM 'ALWAYS' ORDER BY ordinal_position",
            name,
        )
        columns = ", ".join(quoted_identifier(column) for (column,) in listed.fetchall())
        identifier = ".".join(map(quoted_identifier, name))
        return database.sql(f"SELECT {columns} FROM evidence.{identifier}").to_arrow_table()


DUCKDB_FILE = DatabaseFormat("DuckDB", ".duckdb", 8, b"DUCK", _table_names, _read)

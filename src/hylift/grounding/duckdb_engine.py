"""DuckDB as the engine of grounding, and its files as evidence."""

from __future__ import annotations

import secrets
import tempfile
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from numpy.typing import NDArray

from hylift.files import check_working_directory
from hylift.formats.tables import DatabaseFormat

if TYPE_CHECKING:
    import duckdb

# DuckDB takes a tenth of a second to import, and many models join nothing.


class DuckDBEngine:
    """An embedded database in memory, which cannot reach anything outside itself."""

    @cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """Opened when first used; with one thread, results have one order."""
        import duckdb

        check_working_directory()
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


def _connect(path: str) -> duckdb.DuckDBPyConnection:
    """A file as the catalog `evidence`, read-only and without access to other files."""
    import duckdb

    check_working_directory()
    database = duckdb.connect()
    literal = path.replace("'", "''")
    database.execute(f"ATTACH '{literal}' AS evidence (READ_ONLY)")
    database.execute("SET enable_external_access = false")
    return database


DUCKDB_FILE = DatabaseFormat(
    "DuckDB",
    ".duckdb",
    8,
    b"DUCK",
    "duckdb",
    _connect,
    "SELECT schema_name, table_name FROM duckdb_tables() "
    "WHERE database_name = 'evidence' AND NOT internal ORDER BY ALL",
    # Older versions of DuckDB do not say which columns are generated, and compute them.
    "SELECT column_name FROM information_schema.columns "
    "WHERE table_catalog = 'evidence' AND table_schema = ? AND table_name = ? "
    "AND is_generated IS DISTINCT FROM 'ALWAYS' ORDER BY ordinal_position",
    lambda database, query, names: database.sql(query).to_arrow_table(),
    "evidence.",
)

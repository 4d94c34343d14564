"""A second engine: what grounding asks of a database, answered by SQLite."""

from __future__ import annotations

import sqlite3
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hylift.formats.tables import DatabaseFormat


class SQLiteEngine:
    databases: tuple[DatabaseFormat, ...] = ()

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:")

    def load(self, table: str, columns: pa.Table) -> None:
        marks = ", ".join("?" * columns.num_columns)
        rows = list(zip(*columns.to_pydict().values(), strict=True))
        self.connection.execute(f"CREATE TABLE {table} ({', '.join(columns.column_names)})")
        self.connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)

    def store(self, table: str, query: str) -> None:
        self.connection.execute(f"DROP TABLE IF EXISTS {table}")
        self.connection.execute(f"CREATE TABLE {table} AS {query}")

    def fetch(self, query: str) -> dict[str, NDArray[Any]]:
        cursor = self.connection.execute(query)
        rows = cursor.fetchall()
        columns = list(zip(*rows, strict=True)) or [()] * len(cursor.description)
        return {
            name: np.array(column) if column else np.zeros(0, np.int64)
            for (name, *_), column in zip(cursor.description, columns, strict=True)
        }

    def integers(self, values: range, table: str) -> str:
        return (
            f"(WITH RECURSIVE n(v) AS (SELECT {values.start} WHERE {values.start} < {values.stop} "
            f"UNION ALL SELECT v + 1 FROM n WHERE v + 1 < {values.stop}) "
            f"SELECT v FROM n) AS {table}"
        )

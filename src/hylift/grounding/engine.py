"""The protocol between grounding and a database, and the databases that implement it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import pyarrow as pa
from numpy.typing import NDArray

from hylift.errors import UnsupportedError, did_you_mean
from hylift.formats.tables import DatabaseFormat


class Engine(Protocol):
    """A database of its own for one world, empty at first; it cleans up when it is deleted.

    Queries are SELECT statements in SQL that common engines share: joins, comparisons, tuples with
    IN, EXISTS, CAST, DISTINCT, UNION, and GROUP BY and ORDER BY column numbers. Identifiers need no
    quotes. Whatever dialects spell differently is a method here.
    """

    @property
    def databases(self) -> tuple[DatabaseFormat, ...]:
        """Files of the engine's own, which evidence may come from."""

    def load(self, table: str, columns: pa.Table) -> None:
        """Store columns as a new table."""

    def store(self, table: str, query: str) -> None:
        """Store the result of a query as a table, in place of any table of that name."""

    def fetch(self, query: str) -> dict[str, NDArray[Any]]:
        """The columns of a query's result, by name; equal data give equal order."""

    def integers(self, values: range, table: str) -> str:
        """SQL after FROM for a table with one column, v, of consecutive integers."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A table of an engine with the true atoms of a closed-world predicate.

    Columns a0, a1, … are the positions of the arguments among the constants of their types; without
    arguments there is one column, `holds`.
    """

    table: str
    num_rows: int


ENGINES = {
    "duckdb": "hylift.grounding.duckdb_engine:DuckDBEngine",
}
"""Module and class of each engine; imported when a world is made with it."""


def open_engine(name: str) -> Engine:
    """A new database of the engine of that name."""
    if name not in ENGINES:
        raise UnsupportedError(
            f"unknown engine '{name}'; available: {', '.join(ENGINES)}."
            f"{did_you_mean(name, ENGINES)}"
        )
    module, _, class_name = ENGINES[name].partition(":")
    engine: Engine = getattr(import_module(module), class_name)()
    return engine


def num_rows(engine: Engine, query: str) -> int:
    """The number of rows of a query's result."""
    return int(engine.fetch(f"SELECT count(*) AS n FROM ({query}) AS rows_of_query")["n"][0])

"""The same evidence grounds to the same graph, wherever it comes from."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as pa_feather
import pyarrow.parquet as pa_parquet
import pytest

from hylift.graph import FactorGraph, Soft
from hylift.grounding import ground
from hylift.language import parse

MODEL = parse("""
    kind = {Wall, Door, Other}
    Near(segment, segment)
    Seen(segment)
    Kind(segment, kind!)
    Length(segment): real[0, 10]
    bias: real
    Rain: boolean
    0.5  Near(s, t) ^ Seen(s) => Seen(t)
    {Door: 1, *: 0.2}  Near(s, t) ^ Kind(s, +k) => Kind(t, k)
    0.7  Kind(s, Door) * (Length(s) = 1 + bias)
    0.1  bias^2 * -1
    -1   Rain <=> Seen(s)
    0.3  !Near(s, t) * (Length(s) > Length(t))  where s != t
""")

ODD = 'S 3, "back"'  # what has to be quoted somewhere

TABLES = {
    "Near": pa.table([["S1", "S2", "S1"], ["S2", ODD, "S10"]], names=["a", "b"]),
    "Seen": pa.table({"segment": ["S2", ODD, "S1"], "value": [1.0, 0.0, 0.25]}),
    "Kind": pa.table([["S1", "S10"], ["Door", "Other"]], names=["segment", "kind"]),
    "Length": pa.table(
        {"segment": ["S10", "S1"], "value": [1.5, 2.25], "sd": pa.array([None, 0.5], pa.float64())}
    ),
    "bias": pa.table({"value": [0.125]}),
    "Rain": pa.table({"value": [True]}),
}


def long_table() -> pa.Table:
    """All tables in one, with the columns predicate, arg1, arg2, value and sd."""
    rows = []
    for name, table in TABLES.items():
        for row in table.to_pylist():
            value, sd = float(row.pop("value", 1.0)), row.pop("sd", None)
            arguments = [*row.values(), None, None][:2]
            rows.append((name, *arguments, value, sd))
    columns = zip(*rows, strict=True)
    names = ["predicate", "arg1", "arg2", "value", "sd"]
    return pa.table(dict(zip(names, map(pa.array, columns), strict=True)))


def atoms(_: Path) -> dict[str, object]:
    quoted = ODD.replace('"', '\\"')
    return {
        "Near(S1, S2)": True,
        f'Near(S2, "{quoted}")': True,
        "Near(S1,S10)": 1,
        "Seen(S2)": True,
        f'Seen("{quoted}")': False,
        "Seen(S1)": 0.25,
        "Kind(S1)": "Door",
        "Kind(S10, Other)": True,
        "Length(S10)": 1.5,
        "Length(S1)": Soft(2.25, 0.25),
        "bias": 0.125,
        "Rain": True,
    }


def csv_file(folder: Path) -> Path:
    pa_csv.write_csv(long_table(), folder / "facts.csv")
    return folder / "facts.csv"


def feather_file(folder: Path) -> Path:
    pa_feather.write_feather(long_table(), folder / "facts.feather")
    return folder / "facts.feather"


def parquet_files(folder: Path) -> dict[str, Path]:
    for name, table in TABLES.items():
        pa_parquet.write_table(table, folder / f"{name}.parquet")
    return {name: folder / f"{name}.parquet" for name in TABLES}


def csv_files(folder: Path) -> dict[str, str]:
    for name, table in TABLES.items():
        pa_csv.write_csv(table, folder / f"{name}.csv")
    return {name: str(folder / f"{name}.csv") for name in TABLES}


def relations(_: Path) -> dict[str, object]:
    connection = duckdb.connect()
    return {name: connection.from_arrow(table) for name, table in TABLES.items()}


def facts_file(folder: Path) -> list[object]:
    """Facts have no errors of measurement, so that one atom is given beside them."""
    quoted = ODD.replace('"', '\\"')
    lines = [
        "Near(S1,S2)",
        f'Near(S2, "{quoted}")',
        "Near(S1, S10)",
        "Seen(S2)",
        f'!Seen("{quoted}")',
        "0.25 Seen(S1)",
        "Kind(S1,Door)",
        "Kind(S10,Other)",
        "Length(S10) 1.5",
        "bias 0.125",
        "Rain",
    ]
    (folder / "facts.db").write_text("\n".join(lines) + "\n")
    return [folder / "facts.db", {"Length(S1)": Soft(2.25, 0.25)}]


def sqlite_file(folder: Path) -> Path:
    with sqlite3.connect(folder / "facts.sqlite") as database:
        for name, table in TABLES.items():
            columns = ", ".join(table.column_names)
            marks = ", ".join("?" * table.num_columns)
            database.execute(f"CREATE TABLE {name} ({columns})")
            rows = [tuple(row.values()) for row in table.to_pylist()]
            database.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
    database.close()
    return folder / "facts.sqlite"


def duckdb_file(folder: Path) -> Path:
    with duckdb.connect(folder / "facts.duckdb") as database:
        for name, table in TABLES.items():
            database.register("given", table)
            database.execute(f'CREATE TABLE "{name}" AS SELECT * FROM given')
            database.unregister("given")
    return folder / "facts.duckdb"


SOURCES: dict[str, Callable[[Path], Any]] = {
    "atoms": atoms,
    "long csv": csv_file,
    "long feather": feather_file,
    "long arrow": lambda _: long_table(),
    "long pandas": lambda _: long_table().to_pandas(),
    "long polars": lambda _: pl.from_arrow(long_table()),
    "long relation": lambda _: duckdb.connect().from_arrow(long_table()),
    "pandas": lambda _: {name: table.to_pandas() for name, table in TABLES.items()},
    "polars": lambda _: {name: pl.from_arrow(table) for name, table in TABLES.items()},
    "relations": relations,
    "parquet files": parquet_files,
    "csv files": csv_files,
    "facts": facts_file,
    "sqlite": sqlite_file,
    "duckdb": duckdb_file,
    "rows": lambda _: {
        name: [tuple(row.values()) for row in table.to_pylist()] for name, table in TABLES.items()
    },
    "pieces": lambda _: [{name: table} for name, table in reversed(TABLES.items())],
}


def arrays(graph: FactorGraph) -> list[object]:
    """All that a graph is made of, as plain lists."""
    rng = np.random.default_rng(5)
    num_states = graph.variables.num_states
    values = np.where(num_states > 0, 0, rng.random(len(num_states)))
    groups = [
        (g.label, g.potential.signature, g.scope.tolist(), g.row.tolist(), g.multiplicity.tolist())
        for g in graph.groups
    ]
    evidence = graph.evidence
    return [
        graph.variables.names.render().to_pylist(),
        groups,
        [evidence.variable.tolist(), evidence.value.tolist(), evidence.var.tolist()],
        graph.log_constant,
        graph.log_density(values),
    ]


# A missing error is read alike everywhere, and tables are warned of it.
@pytest.mark.filterwarnings("ignore:Length. 1 of its rows has no sd")
@pytest.mark.parametrize("closed", [(), ("Near",)], ids=["open", "closed"])
@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_every_source_grounds_to_the_same_graph(
    tmp_path: Path, make: Callable[[Path], Any], closed: tuple[str, ...]
) -> None:
    expected = ground(MODEL, TABLES, closed=closed)

    graph = ground(MODEL, make(tmp_path), closed=closed)

    assert arrays(graph) == arrays(expected)
    assert graph.num_variables > 12
    assert len(graph.evidence) > 4

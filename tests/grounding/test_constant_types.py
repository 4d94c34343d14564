"""Arguments in tables of results have the types of the columns that named their constants."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import pytest

import hylift as hl
from hylift.grounding.world import World

MODEL = hl.parse("""
    x(key): real
    y(key): real
    z(other, key): real
    normal(x(k) | 0, 1)
    normal(y(k) | x(k), 1)
""")
TEXT = pa.string()
MOMENTS = ["2024-03-01", "2024-03-02T10:20:30.25"]


def type_of(evidence: Any, model: hl.Model = MODEL) -> pa.DataType:
    return World.of(model, evidence).constant_types["key"]


def table(*keys: Any, kind: pa.DataType | None = None) -> pa.Table:
    return pa.table({"key": pa.array(keys, kind), "value": [1.0] * len(keys)})


def moments(unit: str, zone: str | None = None) -> pa.Array:
    local = pa.array(MOMENTS).cast(pa.timestamp(unit))
    return local if zone is None else pa.compute.assume_timezone(local, zone)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([3, 12]), pa.int64()),
        (pa.array([3, 12], pa.int32()), pa.int32()),
        (pa.array([3, 2**63 + 5], pa.uint64()), pa.uint64()),
        (pa.array([3, 12]).dictionary_encode(), pa.int64()),
        (pd.Series([3.0, 12.0]), pa.int64()),
        (pl.Series([3, 12], dtype=pl.Int16), pa.int16()),
        (range(3), pa.int64()),
        ([3, 12], pa.int64()),
        ([date(2024, 3, 1)], pa.date32()),
        (pl.Series([date(2024, 3, 1)]), pa.date32()),
        (pa.array([date(2024, 3, 1)], pa.date64()), pa.date64()),
        (pd.Series(pd.to_datetime(["2024-03-01"]).as_unit("ns")), pa.timestamp("ns")),
        (pl.Series([datetime(2024, 3, 1, 10, 20)]), pa.timestamp("us")),
        (moments("ms"), pa.timestamp("ms")),
        (moments("ns", "Europe/Berlin"), pa.timestamp("ns", "Europe/Berlin")),
        (pa.array([3.5, 12.0]), TEXT),
        (pa.array(["3", "12"]), TEXT),
        (pd.Series(["3", "12"], dtype="category"), TEXT),
        ([3, "12"], TEXT),
        ([True, False], TEXT),
    ],
    ids=str,
)
def test_constants_keep_the_type_of_their_column(column: Any, expected: pa.DataType) -> None:
    assert type_of({"key": column}) == expected


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (table(3), table(3, 12), pa.int64()),
        (table(3, kind=pa.int8()), table(12, kind=pa.int32()), pa.int64()),
        (table(3, kind=pa.int8()), table(2**63 + 5, kind=pa.uint64()), TEXT),
        (table(3), table("12"), TEXT),
        (table(3), table(kind=TEXT), pa.int64()),
        (table(3), table(date(2024, 3, 1)), TEXT),
        (table(date(2024, 3, 1)), table(datetime(2024, 3, 1)), TEXT),
        (
            table(*moments("us").to_pylist(), kind=pa.timestamp("us")),
            table(datetime(2024, 3, 3), kind=pa.timestamp("s")),
            pa.timestamp("us"),
        ),
        (
            table(datetime(2024, 3, 3), kind=pa.timestamp("s")),
            table(datetime(2024, 3, 3), kind=pa.timestamp("s", "UTC")),
            TEXT,
        ),
    ],
    ids=["same", "widths", "too wide", "text", "nothing", "kinds", "dates", "units", "zones"],
)
def test_tables_agree_on_a_type_or_it_is_text(
    first: pa.Table, second: pa.Table, expected: pa.DataType
) -> None:
    assert type_of({"x": first, "y": second}) == expected
    assert type_of([{"y": second}, {"x": first}]) == expected


@pytest.mark.parametrize(
    ("listed", "expected"),
    [("{3, ..., 5}", pa.int64()), ("{3, 007}", TEXT), ("{3, Other}", TEXT)],
)
def test_a_list_in_the_model_is_what_the_tables_say_if_it_can_be(
    listed: str, expected: pa.DataType
) -> None:
    model = hl.parse(f"key = {listed}\nx(key): real\nnormal(x(k) | 0, 1)")

    assert type_of({"x": table(3)}, model) == expected
    assert type_of({"x(3)": 1.0}, model) == TEXT
    assert type_of(None, model) == TEXT


@pytest.mark.parametrize(("word", "expected"), [("7", pa.int64()), ("Seven", TEXT)])
def test_so_is_a_constant_in_a_rule(word: str, expected: pa.DataType) -> None:
    model = hl.parse(f"x(key): real\nnormal(x(k) | 0, 1)\nnormal(x({word}) | 1, 1)")

    assert type_of({"x": table(3)}, model) == expected


def test_a_date_in_the_model_is_one_if_it_is_written_like_the_others() -> None:
    text = "key = {{{}}}\nx(key): real\nnormal(x(k) | 0, 1)"
    evidence = {"x": table(datetime(2024, 3, 1))}

    as_date = type_of(evidence, hl.parse(text.format('"2024-03-01", "2024-03-02"')))
    as_midnight = type_of(evidence, hl.parse(text.format('"2024-03-01", "2024-03-02T00:00:00"')))

    assert as_date == pa.timestamp("us")
    assert as_midnight == TEXT


def test_an_hour_that_summer_time_repeats_is_text() -> None:
    twice = pa.array([datetime(2024, 10, 27, 0, 30)], pa.timestamp("s", "Europe/Berlin"))

    assert type_of({"key": twice}) == TEXT


def test_single_atoms_and_facts_in_text_make_it_text(tmp_path: Path) -> None:
    facts = tmp_path / "facts.db"
    facts.write_text("x(3) 1.5\n")

    assert type_of([{"y": table(3)}, {"x(3)": 1.5}]) == TEXT
    assert type_of([{"y": table(3)}, facts]) == TEXT


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["3", "12"], pa.int64()),
        ([" 3", "-12 "], pa.int64()),
        (["3.0", "12.0"], pa.int64()),
        (["3", "012"], TEXT),
        (["3", "+12"], TEXT),
        (["3", "0x12"], TEXT),
        (["3", "12.0"], TEXT),
        (["3", str(2**70)], TEXT),
        (["3", "a"], TEXT),
        (["2024-03-01", "2024-03-02"], TEXT),
    ],
    ids=str,
)
def test_columns_of_a_csv_are_numbers_where_all_entries_are(
    keys: list[str], expected: pa.DataType, tmp_path: Path
) -> None:
    path = tmp_path / "x.csv"
    path.write_text("key,value\n" + "".join(f"{key},1.5\n" for key in keys))

    world = World.of(MODEL, {"x": path})

    assert world.constant_types["key"] == expected
    written = {key.strip().removesuffix(".0") if expected != TEXT else key for key in keys}
    assert set(world.constants["key"].to_pylist()) == written
    if expected != TEXT:
        assert pd.api.types.is_numeric_dtype(pd.read_csv(path)["key"])


def test_a_long_table_has_the_types_of_its_columns(tmp_path: Path) -> None:
    long = pa.table({"predicate": ["x", "y"], "arg1": [3, 4], "value": [1.0, 2.0]})
    mixed = pa.table(
        {
            "predicate": ["x", "z"],
            "arg1": ["3", "a"],
            "arg2": pa.array([None, 3]),
            "value": [1.0, 2.0],
        }
    )
    pa_csv.write_csv(long, tmp_path / "long.csv")
    pa_csv.write_csv(mixed, tmp_path / "mixed.csv")

    assert type_of(long) == type_of(tmp_path / "long.csv") == pa.int64()
    assert type_of(mixed) == type_of(tmp_path / "mixed.csv") == TEXT


def test_files_and_databases_have_types(tmp_path: Path) -> None:
    days = table(date(2024, 3, 1))
    pa_parquet.write_table(days, tmp_path / "days.parquet")
    with duckdb.connect(str(tmp_path / "days.duckdb")) as connection:
        connection.execute("CREATE TABLE x AS SELECT * FROM days")

    assert type_of({"x": tmp_path / "days.parquet"}) == pa.date32()
    assert type_of(tmp_path / "days.duckdb") == pa.date32()


def test_names_stay_text_and_tables_merge_with_the_frame_they_came_from() -> None:
    model = hl.parse("""
        reading(well, day): real
        Dry(well)
        normal(reading(w, d) | -Dry(w), 1)
    """)
    frame = pd.DataFrame(
        {"well": [7, 12], "day": pd.to_datetime(["2024-03-01", "2024-03-02"]), "value": [0.5, 2.0]}
    )

    posterior = hl.infer(hl.ground(model, {"reading": frame}))

    assert posterior.variables.names[0] == "reading(7,2024-03-01)"
    assert posterior.marginal("reading(12,2024-03-02)").mean == 2.0
    for table in (posterior.to_pandas("reading", observed=True), posterior.to_pandas("Dry")):
        assert table["well"].dtype == frame["well"].dtype
        merged = frame.merge(table)
        assert len(merged) == 2
    polars = posterior.to_polars("reading", observed=True)
    joined = pl.from_pandas(frame).join(polars, on=["well", "day"])
    assert joined["mean"].to_list() == frame["value"].to_list()


def test_types_survive_all_that_becomes_of_a_graph(tmp_path: Path) -> None:
    model = hl.parse("""
        x(key, zone): real
        y(key): real
        normal(x(k, z) | 0, 1)
        normal(y(k) | 5, 1)
    """)
    zones = moments("ms", "Europe/Berlin")
    evidence = {"x": pa.table({"key": [3, 12], "zone": zones, "value": [1.0, 2.0]})}
    graph = hl.ground(model, evidence)
    kinds = [pa.int64(), pa.timestamp("ms", "Europe/Berlin")]

    observed = graph.observe({"y(3)": 1.0})
    graphs = [graph, observed, graph.condition(), hl.lift(graph).graph]
    posterior = hl.infer(observed, hl.MeanField())
    posterior.save(tmp_path / "saved")
    answers = [hl.infer(graph, hl.MeanField()) for graph in graphs]
    answers += [posterior, hl.Posterior.load(tmp_path / "saved"), posterior.given({"y(12)": 0.0})]

    for answer in answers:
        assert answer.table("x").schema.types[:2] == kinds
        assert answer.table("y", observed=True).schema.types[:1] == kinds[:1]
    again = hl.Posterior.load(tmp_path / "saved")
    assert again.table("x", observed=True).equals(posterior.table("x", observed=True))


def test_draws_stand_along_numbers_and_dates(tmp_path: Path) -> None:
    arviz = pytest.importorskip("arviz")
    model = hl.parse("x(key, day): real\nnormal(x(k, d) | 0, 1)")
    evidence = {"key": [3, 12], "day": [date(2024, 3, 1), date(2024, 3, 2)]}
    posterior = hl.infer(hl.ground(model, evidence), hl.MeanField())

    draws = posterior.to_xarray(draws=10)
    posterior.to_netcdf(tmp_path / "draws.nc", draws=10)
    again = arviz.from_netcdf(str(tmp_path / "draws.nc")).posterior

    for data in (draws, again):
        assert data["key"].dtype == np.int64
        assert np.issubdtype(data["day"].dtype, np.datetime64)
        assert data["x"].sel(key=12, day="2024-03-02").shape == (1, 10)

"""Evidence from every kind of source, and what is wrong with it where it does not fit."""

import sqlite3
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as pa_feather
import pyarrow.parquet as pa_parquet
import pytest

from hylift.errors import EvidenceError
from hylift.graph import Soft
from hylift.grounding.world import World
from hylift.language import parse

MODEL = parse("""
    topic = {t0, t1, t2}
    kind = {Wall, Door, Other}
    In(paper, topic)
    Likes(paper, paper)
    Size(paper): real[0, 10]
    Kind(paper, kind!)
    boom: real[-1, 1]
    Rain: boolean
""")

IN = pa.table({"paper": ["p2", "p1", "p3"], "topic": ["t1", "t0", "t1"], "value": [1.0, 0.25, 0.0]})
SIZE = pa.table({"paper": ["p1", "p2"], "value": [2.5, 12.0], "sd": [None, 0.5]})
LONG = pa.table(
    {
        "predicate": ["In", "Size", "In", "In", "Size", "boom"],
        "arg1": ["p2", "p1", "p1", "p3", "p2", None],
        "arg2": ["t1", None, "t0", "t1", None, None],
        "value": [1.0, 2.5, 0.25, 0.0, 12.0, 0.5],
        "sd": [None, None, None, None, 0.5, None],
    }
)


def contents(world: World) -> dict[str, Any]:
    """All that a world knows, as plain lists."""
    tables: dict[str, Any] = {
        name: [found.ids.tolist(), found.value.tolist(), found.sd.tolist()]
        for name, found in world.evidence.items()
    }
    for name, relation in world.relations.items():
        columns = world.engine.fetch(f"SELECT * FROM {relation.table}").values()
        tables[name] = np.stack(list(columns), axis=1).tolist()
    return {name: words.to_pylist() for name, words in world.constants.items()} | tables


EXPECTED = {
    "paper": ["p1", "p2", "p3"],
    "topic": ["t0", "t1", "t2"],
    "kind": ["Wall", "Door", "Other"],
    "In": [[[0, 0], [1, 1], [2, 1]], [0.25, 1.0, 0.0], [0.0, 0.0, 0.0]],
    "Size": [[[0], [1]], [2.5, 12.0], [0.0, 0.5]],
    "boom": [[[]], [0.5], [0.0]],
}


def csv_file(folder: Path) -> Path:
    pa_csv.write_csv(LONG, folder / "facts.csv")
    return folder / "facts.csv"


def tsv_file(folder: Path) -> Path:
    options = pa_csv.WriteOptions(delimiter="\t")
    pa_csv.write_csv(LONG, folder / "it's [1]*.tsv", options)
    return folder / "it's [1]*.tsv"


def semicolon_file(folder: Path) -> Path:
    text = csv_file(folder).read_text().replace(",", ";")
    (folder / "semicolons.csv").write_text("\ufeff\n" + text.replace("\n", "\r\n"))
    return folder / "semicolons.csv"


def parquet_file(folder: Path) -> str:
    pa_parquet.write_table(LONG, folder / "facts*.parquet")
    return str(folder / "facts*.parquet")


def feather_file(folder: Path) -> Path:
    pa_feather.write_feather(LONG, folder / "facts.feather")
    return folder / "facts.feather"


def stream_file(folder: Path) -> Path:
    with pa.ipc.new_stream(folder / "facts.arrow", LONG.schema) as writer:
        writer.write_table(LONG)
    return folder / "facts.arrow"


def sqlite_file(folder: Path, name: str = "facts.sqlite") -> Path:
    with sqlite3.connect(folder / name) as database:
        database.execute("CREATE TABLE 'IN' (paper TEXT, topic TEXT, value REAL)")
        database.executemany("INSERT INTO 'IN' VALUES (?, ?, ?)", rows(IN))
        database.execute("CREATE TABLE Size (paper, value, sd)")
        database.executemany("INSERT INTO Size VALUES (?, ?, ?)", rows(SIZE))
        database.execute("CREATE TABLE boom (value)")
        database.execute("INSERT INTO boom VALUES (0.5)")
        database.execute("CREATE TABLE readers (name)")
        database.execute("CREATE VIEW Likes AS SELECT paper, paper FROM Size")
    database.close()
    return folder / name


def sqlite_named_db(folder: Path) -> Path:
    return sqlite_file(folder, "facts.db")


def duckdb_file(folder: Path) -> Path:
    path = folder / "it's.duckdb"
    with duckdb.connect(path) as database:
        for name, table in (("In", IN), ("size", SIZE)):
            database.register("given", table)
            database.execute(f'CREATE TABLE "{name}" AS SELECT * FROM given')
            database.unregister("given")
        database.execute("CREATE TABLE boom AS SELECT 0.5 AS value")
        database.execute("CREATE TABLE readers AS SELECT 'Ann' AS name")
        database.execute("CREATE VIEW Likes AS SELECT paper, paper AS other FROM size")
    return path


def alchemy_file(folder: Path) -> Path:
    path = folder / "facts.db"
    path.write_text("In(p2, t1)\n0.25 In(p1,t0)\n!In(p3,t1)\nSize(p1) 2.5\nboom 0.5\n")
    return path


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


SOURCES: dict[str, Callable[[Path], Any]] = {
    "csv": csv_file,
    "tsv": tsv_file,
    "semicolons": semicolon_file,
    "parquet": parquet_file,
    "feather": feather_file,
    "arrow stream": stream_file,
    "sqlite": sqlite_file,
    "sqlite named .db": sqlite_named_db,
    "duckdb": duckdb_file,
    "alchemy, and one atom": lambda folder: [alchemy_file(folder), {"Size(p2)": Soft(12.0, 0.25)}],
    "arrow": lambda _: LONG,
    "record batches": lambda _: LONG.to_reader(),
    "pandas": lambda _: LONG.to_pandas(),
    "filtered pandas": lambda _: pd.concat([LONG.to_pandas(), LONG.to_pandas()])[6:].loc[
        [5, 0, 1, 2, 3, 4]
    ],
    "polars": lambda _: pl.from_arrow(LONG),
    "relation": lambda _: duckdb.connect().from_arrow(LONG),
    "list": lambda _: [LONG.slice(0, 2), LONG.slice(2)],
    "tables": lambda _: {"In": IN, "Size": SIZE.to_pandas(), "boom": 0.5},
    "other frames": lambda _: {
        "In": IN.to_pandas()[["topic", "paper", "value"]],
        "Size": pl.from_arrow(SIZE),
        "boom": pa.table({"value": [0.5]}),
    },
    "rows": lambda _: {"In": rows(IN), "Size": [["p1", 2.5, None], ["p2", 12, 0.5]], "boom": [0.5]},
    "unnamed text": lambda _: {
        "In": np.array([[str(x) for x in row] for row in rows(IN)]),
        "Size": rows(SIZE),
        "boom()": "0.5",
    },
    "atoms": lambda _: {
        "In(p2, t1)": True,
        "In(p1,t0)": 0.25,
        'In("p3", t1)': "no",
        "Size(p1)": np.float64(2.5),
        "Size(p2)": Soft(12.0, 0.25),
        "boom": 0.5,
    },
    "paths by predicate": lambda folder: {
        "In": sqlite_file(folder),
        "Size": duckdb_file(folder),
        "boom": alchemy_file(folder),
    },
}


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_every_source_gives_the_same_world(tmp_path: Path, make: Callable[[Path], Any]) -> None:
    assert contents(World.of(MODEL, make(tmp_path))) == EXPECTED


def test_tables_of_a_database_that_are_not_used_are_noted(tmp_path: Path) -> None:
    path = sqlite_file(tmp_path)

    world = World.of(MODEL, path)

    assert world.notes == (f"{path}: unused tables: 'readers'",)
    assert "Likes" not in world.evidence  # a view


def test_generated_columns_of_a_database_are_not_read(tmp_path: Path) -> None:
    lite, duck = tmp_path / "facts.sqlite", tmp_path / "facts.duckdb"
    with sqlite3.connect(lite) as database:
        database.execute("CREATE TABLE Size (paper, twice AS (2 * value), value, x AS (1) STORED)")
        database.execute("INSERT INTO Size VALUES ('p1', 2.5)")
    database.close()
    with duckdb.connect(duck) as other:
        other.execute(
            "CREATE TABLE Size (paper TEXT, twice AS (2 * value), value DOUBLE DEFAULT 2.5)"
        )
        other.execute("INSERT INTO Size (paper) VALUES ('p1')")

    for path in (lite, duck):
        assert contents(World.of(MODEL, path))["Size"] == [[[0]], [2.5], [0.0]]


@pytest.mark.parametrize("named", [["t1", "p1", 1], ["p1", "t1", True]])
def test_columns_named_like_their_types_may_stand_in_any_order(named: list[Any]) -> None:
    names = ["topic", "paper", "Prob"] if named[0] == "t1" else ["a", "b", "c"]

    world = World.of(MODEL, {"In": pa.table([[v] for v in named], names=names)})

    assert contents(world)["In"] == [[[0, 1]], [1.0], [0.0]]


@pytest.mark.parametrize(
    ("names", "row"),
    [
        (["Topic", "PAPER"], ["t1", "p1"]),
        (["TOPIC", "Paper", "in"], ["t1", "p1", True]),
        (["In", "paper", "topic"], [1, "p1", "t1"]),
        (["who", "topic", "IN"], ["p1", "t1", "yes"]),
        (["who", "in"], ["p1", "t1"]),
    ],
)
def test_case_does_not_matter_and_values_may_be_called_like_the_predicate(
    names: list[str], row: list[Any]
) -> None:
    world = World.of(MODEL, {"In": pa.table([[value] for value in row], names=names)})

    assert contents(world)["In"] == [[[0, 1]], [1.0], [0.0]]


@pytest.mark.parametrize("names", [["size", "paper", "sd"], ["paper", "Size", "error"]])
def test_a_measured_value_may_be_called_like_its_predicate(names: list[str]) -> None:
    row: dict[str, Any] = {"size": 2.5, "paper": "p1", "sd": 0.5, "error": 0.5}

    table = pa.table([[row[name.lower()]] for name in names], names=names)

    assert contents(World.of(MODEL, {"Size": table}))["Size"] == [[[0]], [2.5], [0.5]]


@pytest.mark.parametrize(
    "name", ["sigma", "SE", "std_dev", "cm_error", "Standard Deviation", "err."]
)
def test_a_column_behind_the_values_has_their_errors_if_its_name_says_so(name: str) -> None:
    table = pa.table([["p1"], [2.5], [0.5]], names=["paper", "cm", name])

    assert contents(World.of(MODEL, {"Size": table}))["Size"] == [[[0]], [2.5], [0.5]]


def test_truths_in_a_series_whose_labels_are_the_constants_are_no_constants() -> None:
    model = parse("Faulty(sensor)")

    with pytest.raises(EvidenceError, match=r"its index is not a column: reset_index\(\)"):
        World.of(model, {"Faulty": pd.Series({"s1": True, "s2": False})})


def test_labels_of_rows_do_not_matter_where_the_columns_are_there() -> None:
    frame = pd.DataFrame({"paper": ["p0", "p1"], "cm": [1.0, 2.5]}, index=["a", "b"])

    world = World.of(MODEL, {"Size": frame[frame.cm > 2]})

    assert contents(world)["Size"] == [[[0]], [2.5], [0.0]]


def test_types_that_differ_by_case_are_told_apart() -> None:
    model = parse("Has(Box, box)")

    world = World.of(model, {"Has": pa.table([["inner"], ["outer"]], names=["box", "Box"])})

    assert [world.constants[name].to_pylist() for name in ("Box", "box")] == [["outer"], ["inner"]]


def test_columns_without_values_are_true_facts() -> None:
    world = World.of(MODEL, {"In": [("p1", "t1")], "Rain": True}, closed=["In", "Likes", "Rain"])

    assert contents(world)["In"] == [[0, 1]]
    assert world.relations["In"].num_rows == 1
    assert world.relations["Rain"].num_rows == 1
    assert world.relations["Likes"].num_rows == 0
    assert list(world.engine.fetch("SELECT * FROM relation_0")) == ["a0", "a1"]


def test_a_closed_table_has_the_true_atoms_only() -> None:
    world = World.of(MODEL, {"In": [("p1", "t1", 0), ("p0", "t2", 1)]}, closed=["In"])

    assert contents(world)["In"] == [[0, 2]]
    assert world.size("paper") == 2


@pytest.mark.parametrize(
    "column",
    [
        pa.array([2, 10]),
        pa.array([2, 10], pa.uint8()),
        pa.array(["2", "10"]),
        pa.array(["2", "10"]).dictionary_encode(),
        pa.array([2.0, 10.0]),
        pd.Series([2, 10]),
        pl.Series([2, 10]),
        np.array([2, 10]),
        range(2, 11, 8),
        [2, "10"],
    ],
    ids=str,
)
def test_whole_numbers_are_one_constant_however_they_are_stored(column: Any) -> None:
    world = World.of(MODEL, {"paper": column, "In": [(10, "t0"), (2, "t1")], "Size(2)": 1})

    assert world.constants["paper"].to_pylist() == ["2", "10"]
    assert contents(world)["Size"][0] == [[0]]


def test_floats_that_stand_for_integers_are_integers_in_text_too(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    pd.DataFrame({"paper": [3.0, 12.0], "topic": ["t0", "t1"]}).to_csv(path, index=False)

    assert World.of(MODEL, {"In": path}).constants["paper"].to_pylist() == ["3", "12"]


def test_leading_zeros_and_quoted_text_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text('paper,topic\n007, t0\n"a, b",t1\n"two\nlines",t1\n')

    assert World.of(MODEL, {"In": path}).constants["paper"].to_pylist() == [
        "007",
        "a, b",
        "two\nlines",
    ]


def test_dates_are_named_in_iso_form() -> None:
    days = pd.to_datetime(["2024-05-01", "2024-04-30"])

    world = World.of(MODEL, {"paper": days.to_series(), "Size": [("2024-05-02", 1.0)]})

    assert world.constants["paper"].to_pylist() == ["2024-04-30", "2024-05-01", "2024-05-02"]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_moment_has_one_name_whatever_its_unit(unit: str) -> None:
    moments = pa.array(["2024-05-01T10:20:00", "2024-05-01"]).cast(pa.timestamp(unit))
    times = pa.array([36_000, 36_030], pa.time32("s"))
    times = times.cast(pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit))

    named = World.of(MODEL, {"paper": moments}).constants["paper"].to_pylist()
    of_day = World.of(MODEL, {"paper": times}).constants["paper"].to_pylist()

    assert named == ["2024-05-01", "2024-05-01T10:20:00"]
    assert of_day == ["10:00:00", "10:00:30"]


def test_a_fraction_of_a_second_has_no_zeros_at_its_end() -> None:
    moment = datetime(2024, 5, 1, 10, 20, 30, 250_000)
    frames = [pd.Series([moment], dtype="datetime64[ns]"), pl.Series([moment]), [moment]]

    names = [World.of(MODEL, {"paper": frame}).constants["paper"].to_pylist() for frame in frames]

    assert names == [["2024-05-01T10:20:30.25"]] * 3


def test_rows_without_a_value_observe_nothing_and_are_counted() -> None:
    frame = pd.DataFrame({"paper": ["p1", "p2", "p3"], "value": [np.nan, 1.0, None]})

    world = World.of(MODEL, {"Size": frame, "In": [("p1", "t0", None)]})

    assert contents(world)["Size"] == [[[1]], [1.0], [0.0]]
    assert world.size("paper") == 3
    assert world.notes == (
        "Size: 2 of its rows observe nothing, as the value is missing",
        "In: 1 of its rows observes nothing, as the value is missing",
    )


STATES = pa.table({"paper": ["p1", "p2", "p3"], "kind": ["Door", None, "Wall"]})
LONG_STATES = pa.table(
    {"predicate": ["Kind"] * 3, "arg1": ["p1", "p2", "p3"], "arg2": ["Door", None, "Wall"]}
)


def state_sources(folder: Path) -> dict[str, object]:
    """What STATES says, from everywhere."""
    pa_csv.write_csv(STATES, folder / "kind.csv")
    pa_csv.write_csv(LONG_STATES, folder / "long.csv")
    pa_parquet.write_table(STATES, folder / "kind.parquet")
    with duckdb.connect(folder / "kind.duckdb") as connection:
        connection.register("states", STATES)
        connection.execute("CREATE TABLE Kind AS SELECT * FROM states")
    frame = STATES.to_pandas()
    return {
        "arrow": {"Kind": STATES},
        "pandas": {"Kind": frame},
        "categories": {"Kind": frame.astype({"kind": "category"})},
        "columns in another order": {"Kind": frame[["kind", "paper"]]},
        "truths": {"Kind": frame.assign(value=True)},
        "polars": {"Kind": pl.from_arrow(STATES)},
        "rows": {"Kind": [("p1", "Door"), ("p2", float("nan")), ("p3", "Wall")]},
        "empty text": {"Kind": [("p1", "Door"), ("p2", ""), ("p3", "Wall")]},
        "atoms": {"Kind(p1)": "Door", "Kind(p2)": None, "Kind(p3)": "Wall"},
        "atoms with NaN": {"Kind(p1)": "Door", "Kind(p2)": np.nan, "Kind(p3)": "Wall"},
        "csv": {"Kind": folder / "kind.csv"},
        "parquet": {"Kind": folder / "kind.parquet"},
        "duckdb": folder / "kind.duckdb",
        "long": LONG_STATES,
        "long csv": folder / "long.csv",
    }


def test_a_row_without_a_state_observes_nothing_and_keeps_its_constants(tmp_path: Path) -> None:
    for name, source in state_sources(tmp_path).items():
        world = World.of(MODEL, source)

        assert contents(world)["Kind"] == [[[0], [2]], [1.0, 0.0], [0.0, 0.0]], name
        assert world.constants["paper"].to_pylist() == ["p1", "p2", "p3"], name
        note = "Kind: 1 of its rows observes nothing, as the value or state is missing"
        assert world.notes == (note,), name


def test_a_missing_state_is_no_constant_where_none_are_listed() -> None:
    model = parse("Soil(vineyard, soil!)\nCellar(vineyard)")
    whole = pd.DataFrame({"vineyard": [1, 2], "soil": [7, 8]})
    gap = pd.DataFrame({"vineyard": [3, 4], "soil": [None, None]})

    world = World.of(model, [{"Soil": whole}, {"Soil": gap}])

    assert world.constants["soil"].to_pylist() == ["7", "8"]
    assert world.constants["vineyard"].to_pylist() == ["1", "2", "3", "4"]
    assert world.constant_types["soil"] == pa.int64()


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (
            {"Kind": [("p1", "Door"), (None, "Wall")]},
            "evidence['Kind'], row 2: Kind(, Wall) lacks argument 1, of type 'paper'",
        ),
        (
            {"Kind": [("p1", None), (None, None)]},
            "evidence['Kind'], row 2: Kind(, ) lacks argument 1, of type 'paper'",
        ),
        (
            {"In": [("p1", None)]},
            "evidence['In'], row 1: In(p1, ) lacks argument 2, of type 'topic'",
        ),
        (
            {"Kind(p1, )": True},
            "evidence['Kind(p1, )']: Kind(p1, ) lacks argument 2, of type 'kind'",
        ),
        (
            {"Kind": [("p1", None), ("p2", "Dor")]},
            "evidence['Kind'], row 2: Kind(p2, Dor): 'Dor' is not a constant of type 'kind', which "
            "has Wall, Door, Other. Did you mean 'Door'? Pass unmatched='ignore' to leave such "
            "rows out.",
        ),
    ],
)
def test_only_the_state_of_a_row_may_be_missing(evidence: object, expected: str) -> None:
    with pytest.raises(EvidenceError) as refusal:
        World.of(MODEL, evidence)

    assert str(refusal.value) == expected


@pytest.mark.parametrize("num_arguments", [3, 62, 64])
def test_facts_are_in_order_however_many_atoms_there_may_be(num_arguments: int) -> None:
    model = parse(f"coin = {{c0, c1}}\nToss({', '.join(['coin'] * num_arguments)})")
    ids = np.eye(num_arguments, dtype=int)[[1, 2, 0]]
    given = [tuple(f"c{number}" for number in row) for row in ids]

    world = World.of(model, {"Toss": given})
    stated = [*((*row, True) for row in given), (*given[1], False)]
    with pytest.raises(EvidenceError, match="row 4 says false where row 2 says true"):
        World.of(model, {"Toss": stated})

    assert contents(world)["Toss"] == [ids[[1, 0, 2]].tolist(), [1.0] * 3, [0.0] * 3]


def test_one_state_is_observed_or_some_are_excluded() -> None:
    given = [("p1", "Door", True), ("p1", "Wall", False), ("p2", "Other", False), ("p2", "Wall", 0)]

    world = World.of(MODEL, {"Kind": given, "Kind(p3)": "Other", "Kind(p4,Wall)": True})

    found = world.evidence["Kind"]
    assert found.ids.tolist() == [[0], [2], [3]]
    assert found.value.tolist() == [1.0, 2.0, 0.0]
    assert found.excluded is not None
    ids, state = found.excluded
    assert ids.tolist() == [[0], [1], [1]]
    assert state.tolist() == [0.0, 0.0, 2.0]


def test_a_variable_without_other_arguments_is_observed_by_its_name() -> None:
    model = parse("Weather(sky!)\nsky = {Clear, Cloudy}")

    for key in ("Weather", "Weather()", "Weather(Cloudy)"):
        world = World.of(model, {key: True if "Cloudy" in key else "Cloudy"})
        assert contents(world)["Weather"] == [[[]], [1.0], [0.0]]


def test_missing_values_in_rows_are_unknown_and_missing_arguments_an_error() -> None:
    given = [("p1", pd.NA), ("p2", float("nan")), ("p3", None), ("p4", np.int64(3))]

    assert contents(World.of(MODEL, {"Size": given}))["Size"] == [[[3]], [3.0], [0.0]]
    with pytest.raises(EvidenceError, match=r"row 2: Size\(\) lacks argument 1"):
        World.of(MODEL, {"Size": [("p1", 1), (float("nan"), 2)]})


def test_rows_that_match_nothing_can_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "facts.db"
    path.write_text("In(p1, t9)\nIn(p2, t1)\nInn(p3, t1)\nLikes(p4, p5)\n")

    world = World.of(MODEL, [path, {"topic": ["t1", "t7"]}], unmatched="ignore")

    assert contents(world)["In"] == [[[0, 1]], [1.0], [0.0]]
    assert world.constants["paper"].to_pylist() == ["p2", "p4", "p5"]
    assert world.notes == (
        f"{path}: 1 row left out; the first, line 3: unknown predicate 'Inn'",
        f"{path}: 1 row left out; the first, line 1: In(p1, t9): 't9' is not a constant of type "
        "'topic', which has t0 to t2",
        "evidence[1]['topic']: 1 row left out; the first, row 2: 't7' is not a constant of type "
        "'topic', which has t0 to t2",
    )


def test_row_labels_that_pandas_stores_are_no_column(tmp_path: Path) -> None:
    frame = pd.DataFrame({"paper": ["p1", "p2"], "topic": ["t0", "t1"]}, index=[0, 0])
    frame.to_parquet(tmp_path / "in.parquet")
    table = pa.Table.from_pandas(frame)

    worlds = [
        World.of(MODEL, {"In": source}, closed=["In"])
        for source in (frame, tmp_path / "in.parquet", table)
    ]

    assert [world.relations["In"].num_rows for world in worlds] == [2, 2, 2]


def test_a_column_that_nothing_marks_as_truth_is_not_taken_for_it() -> None:
    frame = pd.DataFrame({"paper": ["p1", "p2"], "topic": ["t0", "t1"], "stars": [1, 0]})

    with pytest.raises(EvidenceError) as refusal:
        World.of(MODEL, {"In": frame})

    assert str(refusal.value) == (
        "evidence['In']: a table of 'In' has the columns paper, topic, optionally value; this one "
        "has "
        "paper, topic, stars: if 'stars' says which rows are true, call it 'value'; else leave "
        "'stars' out (df[['paper', 'topic']])"
    )


def test_columns_that_are_called_like_the_arguments_are_the_ones_to_choose() -> None:
    frame = pd.DataFrame([["t0", "p1", 3, 2.5]], columns=["topic", "paper", "day", "stars"])

    with pytest.raises(EvidenceError) as refusal:
        World.of(MODEL, {"In": frame})

    assert str(refusal.value).endswith(
        "this one has topic, paper, day, stars: choose columns of it (df[['paper', 'topic']])"
    )


def test_columns_to_choose_are_written_as_python_writes_them() -> None:
    frame = pd.DataFrame({"it's": ["p1"], "a, b": ["t0"], "stars": [1]})

    with pytest.raises(EvidenceError) as refusal:
        World.of(MODEL, {"In": frame})

    assert str(refusal.value).endswith(
        "; this one has it's, \"a, b\", stars: if 'stars' says which rows are true, call it "
        "'value'; else leave 'stars' out (df[[\"it's\", 'a, b']])"
    )


def test_columns_of_mixed_types_are_words() -> None:
    rules = "a(thing): real\nA(thing)\nnormal(a(x) | 0, 1)\n1 A(x)"
    model = parse(rules)

    def said(**evidence: object) -> str:
        with pytest.raises(EvidenceError) as caught:
            World.of(model, evidence)
        return str(caught.value)

    numbers = pd.DataFrame({"thing": ["p", "q"], "value": ["n/a", 1.5]})
    assert said(a=numbers) == (
        "evidence['a'], row 1: a(p) is 'n/a', which is not a number: leave the cell empty where a "
        "value is missing"
    )
    spoken = pd.DataFrame({"thing": ["p", "q", "r"], "value": ["Y", "n", "maybe"]})
    assert said(A=spoken) == (
        "evidence['A'], row 3: A(r) is 'maybe', which is neither true (yes, t, 1) nor false (no, "
        "f, 0) nor a probability"
    )
    commas = pd.DataFrame({"thing": ["p"], "value": ["1,5"]})
    assert said(a=commas).endswith("is '1,5', which is not a number: write numbers with a point")
    lists = pd.DataFrame({"thing": ["p", {"k": 1}], "value": [True, False]})
    assert said(A=lists) == (
        "evidence['A'], row 2: 'thing' is {'k': 1}, which is neither a word nor a number"
    )
    moments = [datetime(2024, 3, 1), date(2024, 3, 2), "2024-03-03", 7, 8.0]
    mixed = pd.DataFrame({"thing": moments, "value": [True] * 5})
    world = World.of(model, {"A": mixed})
    assert world.constants["thing"].to_pylist() == [
        "2024-03-01",
        "2024-03-02",
        "2024-03-03",
        "7",
        "8",
    ]

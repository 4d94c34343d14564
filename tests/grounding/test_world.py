"""Constants, closed predicates, and what errors say about evidence that does not fit."""

import os
import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from hylift.errors import EvidenceError, FormatError, HyliftError, UnknownNameError
from hylift.formats.alchemy_db import read_facts
from hylift.formats.tables import SQLITE
from hylift.graph import Soft
from hylift.grounding.world import World
from hylift.language import parse

MODEL = parse("""
    topic = {t0, ..., t9}
    kind = {Wall, Door, Other}
    In(paper, topic)
    Size(paper): real[0, 10]
    Kind(paper, kind!)
    boom: real
    Rain: boolean
""")


def message(evidence: Any, **options: Any) -> str:
    """What the error about evidence says."""
    with pytest.raises(HyliftError) as caught:
        World.of(MODEL, evidence, **options)
    return str(caught.value)


IGNORE = "Pass unmatched='ignore' to leave such rows out."

ERRORS = [
    (
        {"In": [("p1", "t1"), ("p1", "t12"), ("p2", "x")]},
        "evidence['In'], row 2: In(p1, t12): 't12' is not a constant of type 'topic', which has "
        f"t0 to t9 … and 1 more row like it. {IGNORE}",
    ),
    (
        {"Kind(p1)": "wall"},
        "evidence['Kind(p1)']: Kind(p1, wall): 'wall' is not a constant of type 'kind', which has "
        f"Wall, Door, Other. Did you mean 'Wall'? {IGNORE}",
    ),
    (
        {"topic": ["t1", "t10"]},
        "evidence['topic'], row 2: 't10' is not a constant of type 'topic', which has t0 to t9"
        f". {IGNORE}",
    ),
    (
        pa.table({"predicate": ["In", "Inn"], "arg1": ["p", "p"], "arg2": ["t1", "t1"]}),
        f"evidence, row 2: unknown predicate 'Inn'. Did you mean 'In'? {IGNORE}",
    ),
    (
        pa.table({"predicate": ["Odd"] * 3, "arg1": ["p"] * 3}),
        f"evidence, row 1: unknown predicate 'Odd' … and 2 more rows like it. {IGNORE}",
    ),
    (
        {"Inn": [("p1", "t1")]},
        "evidence is about 'Inn', which is not a predicate or type of the model. Did you mean "
        "'In'?",
    ),
    (
        {"Sise(p1)": 1.0},
        "evidence['Sise(p1)']: unknown predicate 'Sise'. Did you mean 'Size'?",
    ),
    (
        {"In(p1)": True},
        "evidence['In(p1)']: 'In' takes 2 arguments (paper, topic), not 1",
    ),
    (
        {"Rain(x)": True},
        "evidence['Rain(x)']: 'Rain' takes no arguments, not 1",
    ),
    ({1: True}, "evidence: the name of a predicate, type or atom must be a string, not 1"),
    (
        {"In": True},
        "evidence['In'] cannot be True: 'In' takes arguments, so give a table, or name an atom: "
        "'In(paper, topic)'",
    ),
    (
        {"In": {"p1"}},
        "evidence['In'] cannot be a set: give a file, an Arrow table, a data frame, a database "
        "relation or a list of rows",
    ),
    (
        {"In": [("p1", "t1"), ("p1",)]},
        "evidence['In'], row 2: ('p1',) has 1 columns, row 1 has 2",
    ),
    (
        {"In": [("p1",)]},
        "evidence['In']: a table of 'In' has the columns paper, topic, optionally value; this one "
        "has "
        "#1",
    ),
    (
        {"Size": pd.DataFrame({"a": ["p"], "b": ["q"], "value": [1]})},
        "evidence['Size']: a table of 'Size' has the columns paper, value, and optionally sd; this "
        "one has a, b, value: choose columns of it (df[[…, 'value']])",
    ),
    (
        {"Size": pd.DataFrame({"paper": ["p"], "value": [1], "prob": [1]})},
        "evidence['Size']: a table of 'Size' has the columns paper, value, and optionally sd; this "
        "one has paper, value, prob",
    ),
    (
        {"Size": pd.DataFrame({"paper": ["p"], "prob": [0.5]})},
        "evidence['Size']: a table of 'Size' has the columns paper, value, and optionally sd; this "
        "one has paper, prob",
    ),
    (
        {"In": pa.table([["t1"], ["p"]], names=["Topic", "paper_id"])},
        "evidence['In']: a table of 'In' has the columns paper, topic, optionally value; this one "
        "has "
        "Topic, paper_id, with 'Topic' in the place of 'paper': rename or reorder the columns",
    ),
    (
        {"In": pa.table([["p"], ["q"]], names=["paper", "PAPER"])},
        "evidence['In']: a table of 'In' has the columns paper, topic, optionally value; this one "
        "has "
        "paper, PAPER, with 'PAPER' in the place of 'topic': rename or reorder the columns",
    ),
    (
        {"Size": pa.table([[2.0], ["p"]], names=["cm", "paper"])},
        "evidence['Size']: a table of 'Size' has the columns paper, value, and optionally sd; this "
        "one has cm, paper, with 'paper' in the place of 'value': rename or reorder the columns",
    ),
    (
        {"Size": pd.DataFrame([["p", 1]], columns=["x", "x"])},
        "evidence['Size'] cannot be read as a table: Duplicate column names found: ['x', 'x']",
    ),
    (
        {"Size(p1)": Soft(1.0, -2)},
        "evidence['Size(p1)']: a variance must not be negative, but is -2",
    ),
    (
        {"Size(p1)": Soft(1.0, "x")},  # type: ignore[arg-type]
        "evidence['Size(p1)']: a variance is real and cannot be 'x'",
    ),
    (
        {"Size(p1)": [1, 2]},
        "evidence['Size(p1)']: Size(p1) is [1, 2], which is not a number",
    ),
    (
        {"Size": ["p1"]},
        "evidence['Size']: a table of 'Size' has the columns paper, value, and optionally sd; this "
        "one has #1: 'Size' is real, but has no values",
    ),
    (
        {"Size": pd.DataFrame({"paper": ["p1"], "cm": [2.0], "pages": [8]})},
        "evidence['Size']: a table of 'Size' has the columns paper, value, and optionally sd; this "
        "one has paper, cm, pages: leave 'pages' out (df[['paper', 'cm']]), or call it 'sd' if it "
        "has the standard deviations of the values",
    ),
    (
        {"In": pd.DataFrame({"p": ["p1"], "t": ["t1"], "in": [True], "pages": [8]})},
        "evidence['In']: a table of 'In' has the columns paper, topic, optionally value; this one "
        "has "
        "p, t, in, pages: leave 'pages' out (df[['p', 't', 'in']])",
    ),
    (
        {"In": pd.DataFrame({"year": [1], "Topic": ["t1"], "paper": ["p1"], "value": [8], "x": 1})},
        "evidence['In']: a table of 'In' has the columns paper, topic, optionally value; this one "
        "has "
        "year, Topic, paper, value, x: choose columns of it (df[['paper', 'Topic']])",
    ),
    (
        {"In": pd.DataFrame({"paper": ["p1"], "year": [1], "topic": ["t1"]})},
        "evidence['In']: a table of 'In' has the columns paper, topic, optionally value; this one "
        "has "
        "paper, year, topic: choose columns of it (df[['paper', 'topic']])",
    ),
    (
        {"Size": pd.DataFrame({"x": [1], "y": [1], "size": [2.0], "paper": ["p1"], "sd": [1]})},
        "evidence['Size']: a table of 'Size' has the columns paper, value, and optionally sd; this "
        "one has x, y, size, paper, sd: choose columns of it (df[['paper', 'size', 'sd']])",
    ),
    (
        {"In": pd.DataFrame({"x": [1], "y": [1], "z": [2.0], "u": [1], "v": [1]})},
        "evidence['In']: a table of 'In' has the columns paper, topic, optionally value; this one "
        "has "
        "x, y, z, u, v: choose columns of it (df[[…]])",
    ),
    (
        {"In": [("p1", "t1", 1, 2, 3)]},
        "evidence['In']: a table of 'In' has the columns paper, topic, optionally value; this one "
        "has "
        "#1, #2, #3, #4, #5",
    ),
    (
        {"paper": pd.DataFrame({"a": ["p"], "b": ["q"]})},
        "evidence['paper']: the constants of the type 'paper' are one column, or one that is "
        "called 'paper', 'id' or 'name'; this table has a, b: choose one of them (df[[…]])",
    ),
    (
        {"Size": pd.DataFrame({"paper": ["p1"], "cm": [2.0]}).set_index("paper")},
        "evidence['Size']: a table of 'Size' has the columns paper, value, and optionally sd; this "
        "one has cm (its index, paper, is not a column: reset_index() makes it one)",
    ),
    (
        {"Size": pd.Series({"p1": 2.0})},
        "evidence['Size']: a table of 'Size' has the columns paper, value, and optionally sd; this "
        "one has #1 (its index is not a column: reset_index() makes it one): 'Size' is "
        "real, "
        "but has no values",
    ),
    (
        {"In": pd.DataFrame({"topic": ["t1"]}, index=["p1"])},
        "evidence['In']: a table of 'In' has the columns paper, topic, optionally value; this one "
        "has "
        "topic (its index is not a column: reset_index() makes it one)",
    ),
    (
        pa.table({"predicate": ["Size"], "args": ["p1"], "value": [1.0]}),
        "evidence: evidence on several predicates must have the columns predicate, arg1, arg2, …, "
        "and "
        "optionally value and sd; this table has predicate, args, value: for a table of one "
        "predicate, pass {'Predicate': table}",
    ),
    (
        pa.table({"predicate": ["Size"], "arg1": ["p1"], "arg2": ["p2"], "value": [1.0]}),
        "evidence, row 1: Size(p1, p2): 'Size' takes 1 argument (paper), not 2",
    ),
    (
        pa.table({"predicate": ["In", "In"], "arg1": ["p1", "p2"]}),
        "evidence, row 1: In(p1): 'In' takes 2 arguments (paper, topic), not 1 … and 1 more row "
        "like it",
    ),
    (
        pa.table({"predicate": ["In", None], "arg1": ["p1", "p2"]}),
        "evidence, row 2: the predicate is missing",
    ),
    (
        {"In": [("p1", "t1"), (None, "t1"), ("", "t2")]},
        "evidence['In'], row 2: In(, t1) lacks argument 1, of type 'paper' … and 1 more row like "
        "it",
    ),
    (
        {"In": pa.table({"a": [[1]], "topic": ["t1"]})},
        "evidence['In']: the column 'a' holds list<item: int64>, which does not name constants",
    ),
    (
        {"In": [("p1", "t1", "perhaps"), ("p2", "t1", "1")]},
        "evidence['In'], row 1: In(p1, t1) is 'perhaps', which is neither true (yes, t, 1) nor "
        "false (no, f, 0) nor a probability",
    ),
    (
        {"In": [("p1", "t1", 1.5), ("p2", "t1", -1)]},
        "evidence['In'], row 1: In(p1, t1) is 1.5, which is neither true (yes, t, 1) nor false "
        "(no, f, 0) nor a probability … and 1 more row like it",
    ),
    (
        {"In(p1,t1)": Soft(1.0, 0.25)},
        "evidence['In(p1,t1)']: In(p1, t1) has the error 0.5; only reals are measured with an "
        "error",
    ),
    (
        {"Size": [("p1", "big")]},
        "evidence['Size'], row 1: Size(p1) is 'big', which is not a number",
    ),
    (
        {"Size(p1)": True},
        "evidence['Size(p1)']: Size(p1) is True, which is not a number",
    ),
    (
        {"Size": [("p1", 3), ("p2", 12), ("p3", -1)]},
        "evidence['Size'], row 2: Size(p2) is 12; its domain is [0, 10] … and 1 more row like it",
    ),
    (
        {"boom": float("inf"), "paper": ["p1"]},
        "evidence['boom']: boom is inf; values must be finite",
    ),
    (
        {"Size": [("p1", 3, None), ("p2", "-inf", 0.5)]},
        "evidence['Size'], row 2: Size(p2) is '-inf'; values must be finite",
    ),
    (
        {"Size": [("p1", 3, -0.5)]},
        "evidence['Size'], row 1: Size(p1) has the error -0.5; sd must be a number >= 0",
    ),
    (
        {"Size": [("p1", 3, "x")]},
        "evidence['Size'], row 1: Size(p1) has the error 'x'; sd must be a number >= 0",
    ),
    (
        {"Size": [("p1", 3, 0.1), ("p2", 2, 0.1), ("p1", 3, 0.1), ("p1", 3, 0.1)]},
        "evidence['Size']: Size(p1): row 3 repeats row 1 … and 1 more row like it: keep one row of "
        "each, as df.drop_duplicates(['paper']) does",
    ),
    (
        {"Size": [("p2", 3), ("p1", 0.5), ("p1", 0.3)]},
        "evidence['Size']: Size(p1): row 3 says 0.3 where row 2 says 0.5: keep one row of each, as "
        "df.drop_duplicates(['paper']) does",
    ),
    (
        {"Size": [("p1", 0.5, 0.1), ("p1", 0.5, 0.2)]},
        "evidence['Size']: Size(p1): row 2 says 0.5 with sd 0.2 where row 1 says 0.5 with sd 0.1: "
        "keep one row of each, as df.drop_duplicates(['paper']) does",
    ),
    (
        [{"In": [("p1", "t1", 0)]}, {"In(p1, t1)": True}],
        "In(p1, t1): evidence[1]['In(p1, t1)'] says true where evidence[0]['In'], row 1 says false",
    ),
    (
        {"In(p1,t1)": True, "In(p1, t1)": False},
        "evidence: In(p1, t1): 'In(p1, t1)' says false where 'In(p1,t1)' says true",
    ),
    (
        {"Kind": [("p1", "Wall"), ("p2", "Wall"), ("p1", "Door")]},
        "evidence['Kind']: Kind(p1, Door): row 3 says Door where row 1 says Wall: keep one row of "
        "each, as df.drop_duplicates(['paper']) does",
    ),
    (
        {"Kind": [("p1", "Wall", 1), ("p1", "Wall", 0)]},
        "evidence['Kind']: Kind(p1, Wall): row 2 says false where row 1 says true: keep one "
        "row of each, as df.drop_duplicates(['paper']) does",
    ),
    (
        {"Kind": [("p1", kind, False) for kind in ("Door", "Wall", "Other")]},
        "evidence['Kind'], row 2: Kind(p1, Wall): all 3 constants of type 'kind' are false",
    ),
    (
        {"Kind": [("p1", "Wall", 0.5)]},
        "evidence['Kind'], row 1: Kind(p1, Wall) is 0.5, but 'Kind' has a `!`, so it must be true "
        "or false",
    ),
    (
        {"paper": ["p1", None]},
        "evidence['paper'], row 2: the constant is missing",
    ),
    (
        {"paper": [("p1", "Title")]},
        "evidence['paper']: the constants of the type 'paper' are one column, or one that is "
        "called 'paper', 'id' or 'name'; this table has "
        "#1, #2",
    ),
]


@pytest.mark.parametrize(("evidence", "expected"), ERRORS)
def test_evidence_that_does_not_fit_is_refused_with_its_place(evidence: Any, expected: str) -> None:
    assert message(evidence) == expected


@pytest.mark.parametrize(
    ("evidence", "options", "expected"),
    [
        ({}, {"closed": "In"}, "closed must be a list of predicates, such as ['In'], not a string"),
        (
            {},
            {"closed": ["Inn"]},
            "closed names 'Inn', which is not a predicate of the model. Did you mean 'In'?",
        ),
        (
            {},
            {"closed": ["in"]},
            "closed names 'in', which is not a predicate of the model. Did you mean 'In'?",
        ),
        ({}, {"closed": ["Size"]}, "'Size' is real and cannot be closed: it is not true or false"),
        (
            {},
            {"closed": ["Kind"]},
            "'Kind' has a `!` and cannot be closed: one of its atoms is always true",
        ),
        ({}, {"unmatched": "drop"}, "unmatched must be 'error' or 'ignore', not 'drop'"),
        (
            {"In": [("p1", "t1", 0.5)]},
            {"closed": ["In"]},
            "evidence['In'], row 1: In(p1, t1) is 0.5, but 'In' is closed, so it must be true or "
            "false",
        ),
        (
            {"In": [("p1", "t1", None)]},
            {"closed": ["In"]},
            "evidence['In'], row 1: In(p1, t1) has no value, but 'In' is closed, so all its atoms "
            "must be known",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(
    evidence: Any, options: dict[str, Any], expected: str
) -> None:
    assert message(evidence, **options) == expected


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("no.csv", None, "{path}: no such file"),
        ("empty.csv", "", "{path}: the file is empty; its first line names the columns"),
        ("bare.csv", "Size,p1,0.5\n", "{path}: the first line names the columns, but has '0.5'"),
        (
            "ragged.csv",
            "predicate,arg1,value\nSize,p1,1\nSize,p2\n",
            "{path}: CSV parse error: Row #3: Expected 3 columns, got 2: Size,p2",
        ),
        (
            "latin.csv",
            b"predicate,arg1\nSize,p\nSize,caf\xe9\n",
            "{path}:3:9: not a text file: byte 0xe9 is not UTF-8",
        ),
        ("latin.csv", b"arg\xe9\n", "{path}:1:4: not a text file: byte 0xe9 is not UTF-8"),
        (
            "facts.txt",
            "In(A)",
            "{path}: unknown kind of file: evidence files end in .csv, .tsv, .parquet, "
            ".arrow, .feather, .db, .sqlite, .duckdb",
        ),
        ("x.sqlite", "In(A)", "{path}: is not a valid SQLite database"),
        ("x.duckdb", "In(A)", "{path}: is not a valid DuckDB database"),
        ("x.db", "In(A,t1)\nIn(A,\n", "{path}:2:6: expected a constant: 'In(A,'"),
        ("x.db", "\nIn(A)\n", "{path}, line 2: In(A, ) lacks argument 2, of type 'topic'"),
        (
            "x.db",
            "papr = {A}\n",
            "{path}, line 1: the model has no type 'papr'. Did you mean 'paper'?",
        ),
        ("x.db", "Kind(A)\n", "{path}, line 1: Kind(A, ) lacks argument 2, of type 'kind'"),
        (
            "x.db",
            "\nIn(A,t1,B,C)\n",
            "{path}, line 2: In(A, t1, B, C): 'In' takes 2 arguments (paper, topic), not 4",
        ),
        (
            "x.db",
            "In(A,t1)\nSize(A)\n!Size(B)\n",
            "{path}, line 2: 'Size' is real: write its value behind it, as in "
            "'Size(A) 0.5' … and 1 more row like it",
        ),
        (
            "x.db",
            "Size(A) 0.5\n\nSize(A) 0.3\n",
            "{path}: Size(A): line 3 says 0.3 where line 1 says 0.5",
        ),
    ],
)
def test_files_that_cannot_be_used_are_refused(
    tmp_path: Path, name: str, content: str | bytes | None, expected: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    assert message(path) == expected.format(path=path)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/dev/zero", "is a pipe or a device, not a file; save its content to a file"),
        ("x" * 5000 + ".csv", "cannot be read: File name too long"),
        ("a\0b.csv", "cannot be read: embedded null byte"),
    ],
)
@pytest.mark.parametrize("as_table", [False, True])
def test_paths_that_are_no_files_are_refused(path: str, expected: str, as_table: bool) -> None:
    evidence = {"In": path} if as_table else path

    shown = path.replace("\0", r"\x00")
    assert message(evidence) == f"{shown}: {expected}"


@pytest.mark.parametrize("name", ["x.csv", "x.db", "x.sqlite", "x.parquet"])
def test_a_pipe_is_refused_before_it_is_read(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)  # reading it would wait for ever

    assert "is a pipe or a device, not a file" in message(tmp_path / name)
    with pytest.raises(FormatError, match="is a pipe or a device"):
        read_facts(tmp_path / name)
    with pytest.raises(FormatError, match="is a pipe or a device"):
        SQLITE.table_names(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("x.parquet", b"PAR1"),
        ("x.arrow", b"ARROW1"),
        ("x.db", b"SQLite format 3\0"),
        ("x.db", b"12345678DUCK"),
    ],
)
def test_broken_binary_files_are_refused(tmp_path: Path, name: str, start: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(start + b"\xff" * 200)

    with pytest.raises(FormatError, match=r"x\.\w+: cannot be read as .*") as caught:
        World.of(MODEL, path)

    assert "\n" not in str(caught.value)


def test_a_database_without_a_fitting_table_lists_its_tables(tmp_path: Path) -> None:
    path = tmp_path / "facts.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE papers (a)")
        database.execute("CREATE TABLE topics (a)")
    database.close()

    assert message(path) == (
        f"{path}: no table is named after a predicate (In, Size, Kind, boom, Rain); its tables are "
        "'papers', 'topics'"
    )
    assert message({"In": path}) == (
        f"{path}: there is no table 'In'; its tables are 'papers', 'topics'"
    )


def test_names_of_tables_and_columns_are_never_run_as_sql(tmp_path: Path) -> None:
    path = tmp_path / "facts.duckdb"
    column = 'paper"; DROP TABLE x; --'
    with duckdb.connect(path) as database:
        quoted = column.replace('"', '""')
        database.execute(f"CREATE TABLE Size AS SELECT 'p''1' AS \"{quoted}\", 2.0 AS value")

    world = World.of(MODEL, {"Size": path})

    assert world.constants["paper"].to_pylist() == ["p'1"]


def test_a_sqlite_column_may_mix_kinds(tmp_path: Path) -> None:
    path = tmp_path / "facts.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE Size (paper, value)")
        database.executemany("INSERT INTO Size VALUES (?, ?)", [(1, 2), ("p", 2.5), (3, "4")])
    database.close()

    world = World.of(MODEL, path)

    assert world.constants["paper"].to_pylist() == ["1", "3", "p"]
    assert world.evidence["Size"].value.tolist() == [2.0, 4.0, 2.5]


def test_the_database_of_a_world_reaches_nothing_outside(tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n")
    engine = World.of(MODEL, {"paper": ["p"]}).engine

    with pytest.raises(duckdb.Error):
        engine.fetch(f"SELECT * FROM read_csv('{tmp_path}/secret.csv')")
    assert engine.fetch("SELECT current_setting('threads') AS threads")["threads"].tolist() == [1]


def test_a_type_without_constants_is_refused_where_a_rule_needs_it() -> None:
    text = "In(paper, topic)\nSeen(paper, day)\n0.5  In(p, t)\n"

    with pytest.raises(EvidenceError) as refusal:
        World.of(parse(text), {"topic": ["t1"]})

    assert str(refusal.value) == (
        "the type 'paper' has no constants: list them in the model (paper = {…}), pass "
        "evidence={'paper': […]}, or evidence on In or Seen"
    )
    assert World.of(parse(text), {"In": [("p1", "t1")]}).size("day") == 0


def test_constants_come_from_data_rules_conditions_and_weight_tables() -> None:
    model = parse("""
        In(paper, topic)
        Near(paper, paper)
        0.5  In(P3, t)  where t != T9
        {T1: 0.1, T2: 0.2, *: 0}  In(p, +t)
        0.1  Near(p, q)  where q != P7
    """)

    world = World.of(model, {"In": [("P1", "T0")], "paper": ["P2"]})

    assert world.constants["paper"].to_pylist() == ["P2", "P1", "P3", "P7"]
    assert world.constants["topic"].to_pylist() == ["T0", "T1", "T2", "T9"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["10", "9", "-3", "0"], ["-3", "0", "9", "10"]),
        (["10", "9", "a"], ["10", "9", "a"]),
        (["10", "09", "1"], ["09", "1", "10"]),
        (["é", "z", "Z", "a b"], ["Z", "a b", "z", "é"]),
        (["b", "a", "b"], ["a", "b"]),
    ],
)
def test_constants_are_in_order_of_number_or_text(given: list[str], expected: list[str]) -> None:
    world = World.of(MODEL, {"paper": pa.array(given)})

    assert world.constants["paper"].to_pylist() == expected


def test_constants_of_a_list_keep_its_order_unless_they_are_numbers() -> None:
    months = World.of(MODEL, {"paper": ["jan", "feb", "mar"], "Size": [("apr", 1.0)]})
    numbers = World.of(MODEL, {"paper": [3, 1, 2]})

    assert months.constants["paper"].to_pylist() == ["jan", "feb", "mar", "apr"]
    assert numbers.constants["paper"].to_pylist() == ["1", "2", "3"]


def test_listed_constants_keep_their_order_and_have_ids() -> None:
    world = World.of(MODEL, {"Kind": [("p1", "Other")]})

    assert world.constants["kind"].to_pylist() == ["Wall", "Door", "Other"]
    assert world.size("kind") == 3
    assert world.constant_id("kind", "Door") == 1
    with pytest.raises(UnknownNameError, match="'door' is not a constant of type 'kind'"):
        world.constant_id("kind", "door")


def test_order_and_split_of_sources_change_nothing() -> None:
    rng = np.random.default_rng(3)
    codes = rng.permutation(2000)[:500]
    table = pa.table({"paper": codes // 10, "topic": [f"t{c % 10}" for c in codes]})
    shuffled = table.take(pa.array(rng.permutation(500)))

    one = World.of(MODEL, {"In": table}, closed=["In"])
    other = World.of(
        MODEL, [{"In": shuffled.slice(100)}, {"In": shuffled.slice(0, 100)}], closed=["In"]
    )

    ids, other_ids = (
        np.stack(list(w.engine.fetch("SELECT * FROM relation_0").values()), axis=1)
        for w in (one, other)
    )
    assert ids.tolist() == other_ids.tolist() == sorted(ids.tolist())
    assert len(ids) == 500


def test_many_arguments_are_told_apart() -> None:
    sizes = ", ".join(["paper"] * 8)
    model = parse(f"P({sizes})")
    names = [f"p{i}" for i in range(300)]  # 300^8 atoms are more than an integer counts
    rows = [(*names[i : i + 7], names[-1]) for i in range(250)]

    world = World.of(model, {"P": rows, "paper": names}, closed=["P"])

    assert world.relations["P"].num_rows == 250
    given = [*((*row, True) for row in rows), (*rows[3], False)]
    with pytest.raises(EvidenceError, match="row 251 says false where row 4 says true"):
        World.of(model, {"P": given, "paper": names})


def test_the_published_papers_match_in_part(data_dir: Path) -> None:
    path = data_dir / "papers" / "evidence_0.csv"
    model = parse("""
        topic = {t0, ..., t9}
        PaperPopularity(paper): real[0, 10]
        TopicPopularity(topic): real[0, 10]
        PaperIn(paper, topic)
        SameSession(topic, topic)
    """)
    problem = (
        "SameSession(t212, t275): 't212' is not a constant of type 'topic', which has t0 to t9"
    )

    with pytest.raises(EvidenceError) as caught:
        World.of(model, path)
    world = World.of(model, path, unmatched="ignore")

    assert str(caught.value) == f"{path}, row 1135: {problem} … and 99 more rows like it. {IGNORE}"
    assert world.notes == (f"{path}: 100 rows left out; the first, row 1135: {problem}",)
    assert {name: len(found) for name, found in world.evidence.items()} == {
        "PaperPopularity": 210,
        "TopicPopularity": 7,
        "PaperIn": 917,
    }


def test_the_published_map_is_a_world(data_dir: Path) -> None:
    model = parse("""
        type = {Wall, Door, Other}
        PartOf(segment, line)
        Aligned(segment, segment)
        SegType(segment, type!)
        Length(segment): real[0, 1]
        Depth(segment): real[0, 0.5]
    """)

    world = World.of(model, data_dir / "robot" / "robot-map.db", closed=["Aligned"])

    assert world.relations["Aligned"].num_rows == 652
    assert {name: len(found) for name, found in world.evidence.items()} == {
        "PartOf": 19,
        "SegType": 9,
        "Length": 28,
        "Depth": 17,
    }
    assert (world.size("segment"), world.size("line")) == (37, 2)
    found = world.evidence["SegType"]
    segments = world.constants["segment"].take(pa.array(found.ids[:, 0])).to_pylist()
    kinds = world.constants["type"].take(pa.array(found.value, pa.int64())).to_pylist()
    assert dict(zip(segments, kinds, strict=True))["A1_5"] == "Other"


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (["10.5", "0.5", "9.5"], ["0.5", "9.5", "10.5"]),
        (["t10", "t2", "t1"], ["t1", "t2", "t10"]),
        (["2024-05-01", "2024-04-30"], ["2024-04-30", "2024-05-01"]),
        (["b", "a"], ["a", "b"]),
    ],
)
def test_where_rules_speak_of_the_order_numbers_at_the_end_count(times, expected) -> None:
    model = parse("x(time): real\nnormal(x(t+1) | x(t), 1)\n-1 x(t)^2\n")

    world = World.of(model, {"time": pa.array(times)})

    assert world.constants["time"].to_pylist() == expected

"""Columns of wide tables: `--evidence NAME=FILE[COLUMN,…]`."""

import shutil
from pathlib import Path

import duckdb
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from cli.conftest import Run
from cli.test_bad_input import assert_refused

ALL = ("-e", "In=all.csv[paper,topic]", "-e", "Popularity=all.csv[paper,popularity]", "-c", "In")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["infer"], "papers.mln: 3 variables, 1 observed; method exact"),
        (["race", "--methods", "exact"], "papers.mln: 3 variables, 1 observed; 30 s"),
        (["explain"], "papers.mln: 3 variables, 1 observed; lifted in"),
        (["ground"], "papers.mln: 5 variables and 5 factors, grounded in"),
        (["check", "--bethe"], "papers.mln: Bethe free energy bounded below"),
    ],
)
def test_every_command_takes_columns_of_a_wide_table(
    command: list[str], expected: str, run: Run, folder: Path
) -> None:
    ended = run(command[0], "papers.mln", *ALL, *command[1:])

    assert ended.code == 0
    assert expected in ended.out
    note = "hylift: note: Popularity: 1 of its rows observe nothing, as they have no value\n"
    assert ended.err == note


def test_columns_are_of_any_table(run: Run, folder: Path) -> None:
    table = pa_csv.read_csv(folder / "all.csv")
    pq.write_table(table, folder / "all.parquet")
    with duckdb.connect(folder / "all.duckdb") as connection:
        connection.register("loaded", table)
        connection.execute('CREATE TABLE "In" AS SELECT * FROM loaded')
    shutil.copy(folder / "in.parquet", folder / "in.parquet[topic]")
    asked = ("infer", "papers.mln", "-c", "In", "-q", "Trend(*)", "-o", "-")
    expected = run(*asked, "-e", "In=in.parquet")

    for file in ("all.csv", "all.parquet", "all.duckdb"):
        ended = run(*asked, "-e", f"In={file}[paper,topic]")

        assert (ended.code, ended.err) == (0, "")
        assert ended.out.split('"solution"')[0] == expected.out.split('"solution"')[0]
    assert run(*asked, "-e", "In=in.parquet[topic]").code == 0


def test_columns_are_of_a_long_table(run: Run, folder: Path) -> None:
    rows = "source,predicate,arg1,arg2\nx,In,P1,T1\ny,In,P2,T1\n"
    (folder / "long.csv").write_text(rows)

    ended = run("ground", "papers.mln", "-c", "In", "-e", "long.csv[predicate,arg1,arg2]")

    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("papers.mln: 5 variables and 5 factors, grounded in ")


def test_a_file_that_is_read_by_columns_is_not_replaced(run: Run, folder: Path) -> None:
    ended = run("infer", "papers.mln", *ALL, "-o", "all.csv")

    assert ended.code == 2
    assert (folder / "all.csv").read_text().startswith("year,")


REFUSED = {
    "surplus columns": (
        "In=all.csv",
        "all.csv: a table of 'In' has the columns paper, topic, perhaps value; this one has year, "
        "topic, paper, popularity: choose columns of it (--evidence 'In=all.csv[paper,topic]')",
    ),
    "surplus columns of a real": (
        "Popularity=all.csv",
        "all.csv: a table of 'Popularity' has the columns paper, value, and perhaps sd; this one "
        "has year, topic, paper, popularity: choose columns of it "
        "(--evidence 'Popularity=all.csv[paper,popularity]')",
    ),
    "one column too many": (
        "In=all.csv[paper,topic,year]",
        "all.csv: a table of 'In' has the columns paper, topic, perhaps value; this one has paper, "
        "topic, year: leave 'year' out (--evidence 'In=all.csv[paper,topic]'), or call it 'value' "
        "if it says which rows are true",
    ),
    "unknown column": (
        "In=all.csv[paper,topics]",
        "all.csv: there is no column 'topics'; its columns are year, topic, paper, popularity. Did "
        "you mean 'topic'?",
    ),
    "no column": (
        "In=all.csv[]",
        "all.csv[]: there is no column between the brackets: name some, as in "
        "all.csv[first,second]",
    ),
    "unknown predicate": (
        "Inn=all.csv[paper,topic]",
        "Inn=all.csv[paper,topic]: 'Inn' is no predicate or type of the model. Did you mean 'In'?",
    ),
    "no file": ("In=nowhere.csv[paper,topic]", "nowhere.csv: no such file"),
    "facts": ("In=facts.db[paper]", "facts.db[paper]: a file of facts has no columns to choose"),
    "a database without a table": (
        "x.duckdb[paper,topic]",
        "x.duckdb[paper,topic]: a database has several tables: say whose columns these are, as in "
        "NAME=x.duckdb[paper,topic]",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_columns_that_cannot_be_taken_are_refused(case: str, run: Run, folder: Path) -> None:
    duckdb.connect(folder / "x.duckdb").close()
    evidence, expected = REFUSED[case]

    ended = run("infer", "papers.mln", "-e", evidence)

    assert_refused(ended)
    assert ended.err == f"hylift: {expected}\n"


def test_what_is_measured_is_counted_apart_everywhere(run: Run, folder: Path) -> None:
    (folder / "measured.csv").write_text("paper,value,sd\nP1,3.5,0.5\nP2,2,\n")
    given = ("papers.mln", "-e", "In=in.parquet", "-c", "In", "-e", "Popularity=measured.csv")
    counts = "1 observed, 1 measured; "

    shown = [run(command, *given).out for command in ("infer", "explain", "race")]
    ground = run("ground", *given, "--stats").out

    assert all(f"papers.mln: 3 variables, {counts}" in text for text in shown)
    assert "3 observed, 1 measured; kept: 3 variables" in ground
    lines = [" ".join(line.split()) for line in ground.splitlines()]
    assert "predicate atoms observed measured world" in lines
    assert "Popularity 2 1 1 open" in lines

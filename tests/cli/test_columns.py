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
    note = "hylift: note: Popularity: 1 of its rows observes nothing, as the value is missing\n"
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
    assert ended.err == "hylift: all.csv: is read by this command; name another file to write\n"
    assert (folder / "all.csv").read_text().startswith("year,")


REFUSED = {
    "surplus columns": (
        "In=all.csv",
        "all.csv: a table of 'In' has the columns paper, topic, optionally value; this one has "
        "year, "
        "topic, paper, popularity: choose columns of it (--evidence 'In=all.csv[paper,topic]')",
    ),
    "surplus columns of a real": (
        "Popularity=all.csv",
        "all.csv: a table of 'Popularity' has the columns paper, value, and optionally sd; this "
        "one "
        "has year, topic, paper, popularity: choose columns of it "
        "(--evidence 'Popularity=all.csv[paper,popularity]')",
    ),
    "one column too many": (
        "In=all.csv[paper,topic,year]",
        "all.csv: a table of 'In' has the columns paper, topic, optionally value; this one has "
        "paper, "
        "topic, year: if 'year' says which rows are true, call it 'value'; else leave 'year' out "
        "(--evidence 'In=all.csv[paper,topic]')",
    ),
    "a column twice": (
        "In=all.csv[paper,Topic,TOPIC]",
        "all.csv: 'Topic' and 'TOPIC' are one column, 'topic': name it once",
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
        "Inn=all.csv[paper,topic]: 'Inn' is not a predicate or type of the model."
        " Did you mean 'In'?",
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

    shown = [run(command, *given).out for command in ("infer", "explain")]
    shown.append(run("race", *given, "-m", "exact").out)
    ground = run("ground", *given, "--stats").out

    assert all(f"papers.mln: 3 variables, {counts}" in text for text in shown)
    assert "3 observed, 1 measured; kept: 3 variables" in ground
    lines = [" ".join(line.split()) for line in ground.splitlines()]
    assert "predicate atoms observed measured world" in lines
    assert "Popularity 2 1 1 open" in lines


def test_an_error_that_is_missing_beside_others_is_warned_of(run: Run, folder: Path) -> None:
    (folder / "measured.csv").write_text("paper,value,sd\nP1,3.5,0.5\nP2,2,\n")
    given = ("papers.mln", "-e", "In=in.parquet", "-c", "In", "-e", "Popularity=measured.csv")

    ended = run("infer", *given)

    assert ended.code == 0
    assert ended.err == (
        "hylift: warning: Popularity: 1 of its rows has no sd, and counts as exact "
        "(Popularity(P2)): fill in the sd, or leave the row out\n"
    )


def test_evidence_on_atoms_that_no_rule_has_is_warned_of(run: Run, folder: Path) -> None:
    (folder / "days.mln").write_text(
        "At(day)\nlevel: real\nscore(day): real\nnormal(level | 0, 1)\n"
        "At(d) * normal(score(d) | level, 1)\n"
    )
    (folder / "at.csv").write_text("day\n2023-06-11\n")
    (folder / "score.csv").write_text("day,score\n11/06/2023,2.5\n12/06/2023,2\n")

    ended = run("infer", "days.mln", "-e", "At=at.csv", "-e", "score=score.csv", "-c", "At")

    assert ended.code == 0
    assert ended.err == (
        "hylift: warning: the type 'day' has dates in two notations, such as '2023-06-11' and "
        "'11/06/2023': write all as the first\n"
        "hylift: warning: score: none of its 2 observed atoms is in a ground rule, e.g. "
        "score(11/06/2023); rules about it have e.g. score(2023-06-11): do the keys of the tables "
        "agree?\n"
    )


def test_a_column_that_python_quotes_otherwise_can_be_chosen(run: Run, folder: Path) -> None:
    rows = "paper,the topic's,stars\nP1,T1,1\nP2,T1,0\n"
    (folder / "stars.csv").write_text(rows)

    refused = run("ground", "papers.mln", "-c", "In", "-e", "In=stars.csv")
    ended = run("ground", "papers.mln", "-c", "In", "-e", "In=stars.csv[paper,the topic's]")

    assert refused.err.endswith("""(--evidence 'In=stars.csv[paper,the topic'"'"'s]')\n""")
    assert (ended.code, ended.err) == (0, "")

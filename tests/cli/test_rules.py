"""`hylift infer` and `hylift ground` on models of rules, with evidence from files."""

import csv
import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hylift as hl
from cli.conftest import Run
from cli.test_bad_input import assert_refused


def solved(run: Run, *arguments: object) -> dict[str, Any]:
    """The JSON that `hylift infer` prints, without the time it took."""
    ended = run("infer", *arguments, "-o", "-")
    assert (ended.code, ended.err) == (0, "")
    result: dict[str, Any] = json.loads(ended.out)
    del result["solution"]["seconds"]
    return result


def write_other_sources(folder: Path) -> None:
    """What facts.db says, in other files."""
    shutil.copy(folder / "facts.db", folder / "a=b.db")
    (folder / "long.csv").write_text(
        "predicate,arg1,arg2,value\nIn,P1,T1,1\nIn,P2,T1,true\nIn,P2,T2,0\nPopularity,P1,,3.5\n"
    )
    (folder / "pairs.csv").write_text("paper,topic,value\nP1,T1,yes\nP2,T1,yes\nP2,T2,no\n")
    ratings = pa.table({"paper": ["P1"], "value": [3.5]})
    pq.write_table(ratings, folder / "ratings=1.parquet")
    database = sqlite3.connect(folder / "facts.sqlite")
    database.execute('CREATE TABLE "In" (paper, topic, value)')
    database.executemany(
        'INSERT INTO "In" VALUES (?, ?, ?)', [("P1", "T1", 1), ("P2", "T1", 1), ("P2", "T2", 0)]
    )
    database.execute("CREATE TABLE Popularity (paper, value)")
    database.execute("INSERT INTO Popularity VALUES ('P1', 3.5)")
    database.commit()
    database.close()


@pytest.mark.parametrize(
    "files",
    [
        ["a=b.db"],
        ["long.csv"],
        ["facts.sqlite"],
        ["In=pairs.csv", "Popularity=ratings=1.parquet"],
        ["In=facts.db", "Popularity=facts.db"],
        ["In=facts.sqlite", "Popularity=ratings=1.parquet"],
    ],
    ids=" ".join,
)
def test_all_forms_of_evidence_give_one_answer(files: list[str], run: Run, folder: Path) -> None:
    write_other_sources(folder)
    options = [word for file in files for word in ("--evidence", file)]

    result = solved(run, "papers.mln", *options)

    assert result == solved(run, "papers.mln", "-e", "facts.db")


def test_the_answer_is_that_of_the_library(run: Run, folder: Path) -> None:
    posterior = hl.infer(hl.ground(hl.read_model("papers.mln"), "facts.db"))

    result = solved(run, "papers.mln", "-e", "facts.db")

    assert result["log_partition"]["value"] == posterior.log_partition.value
    assert list(result["marginals"]) == ["In(P1,T2)", "Popularity(P2)", "Trend(T1)", "Trend(T2)"]
    assert result["marginals"]["Trend(T1)"]["mean"] == posterior.marginal("Trend(T1)").mean


def test_a_closed_predicate_multiplies_what_is_true(run: Run, folder: Path) -> None:
    # The log-density over P1, P2 and T1 is -z'Lz/2 + h'z - c.
    precision = np.array([[1.6, 0, -1], [0, 1.6, -1], [-1, -1, 2.2]])
    pull = np.array([0.6, 0.6, 1.0])
    constant = 0.3 + 0.3 + 2.5

    result = solved(run, "papers.mln", "-e", "In=in.parquet", "--closed", "In")

    mean = np.linalg.solve(precision, pull)
    log_volume = (3 * np.log(2 * np.pi) - np.linalg.slogdet(precision).logabsdet) / 2
    log_z = pull @ mean / 2 - constant + log_volume
    found = result["marginals"]
    assert list(found) == ["Popularity(P1)", "Popularity(P2)", "Trend(T1)"]
    assert [one["mean"] for one in found.values()] == pytest.approx(mean, abs=1e-10)
    assert result["log_partition"]["value"] == pytest.approx(log_z, abs=1e-10)


@pytest.mark.parametrize(
    "closed",
    [
        ["-c", "Friends", "-c", "Smokes"],
        ["-c", "Friends,Smokes"],
        ["--closed", " Smokes , Friends"],
    ],
)
def test_predicates_are_closed_one_by_one_or_in_a_list(
    closed: list[str], run: Run, folder: Path
) -> None:
    (folder / "all.db").write_text("Friends(Ann,Bob)\nSmokes(Ann)\n")

    result = solved(run, "smokers.mln", "-e", "all.db", *closed)

    # Ann smokes and Bob does not: one of the two groundings is false.
    assert result["log_partition"]["value"] == pytest.approx(1.1)
    assert result["marginals"] == {}


def test_types_take_their_constants_from_tables(run: Run, folder: Path) -> None:
    (folder / "papers.csv").write_text("paper\nP7\n12\n")
    (folder / "topics.csv").write_text("topic\nNew York\n")

    result = solved(run, "papers.mln", "-e", "paper=papers.csv", "-e", "topic=topics.csv")

    assert list(result["marginals"]) == [
        "In(12,New York)",
        "In(P7,New York)",
        "Popularity(12)",
        "Popularity(P7)",
        "Trend(New York)",
    ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (["Popularity(*)"], ["Popularity(New York)", "Popularity(P1)"]),
        (["Popularity(New York)"], ["Popularity(New York)"]),
        (['Popularity("New York")'], ["Popularity(New York)"]),
        (["*(T1)", "Popularity(P?)"], ["Trend(T1)", "Popularity(P1)"]),
        (["In( P1 , T1 )"], ["In(P1,T1)"]),
        (["In(P1,*)"], ["In(P1,T1)"]),
        (["Popularity"], ["Popularity(New York)", "Popularity(P1)"]),
        (
            ["Trend", "Popularity(P1)", "Popularity"],
            ["Trend(T1)", "Popularity(P1)", "Popularity(New York)"],
        ),
    ],
    ids=" ".join,
)
def test_a_query_names_atoms(query: list[str], expected: list[str], run: Run, folder: Path) -> None:
    (folder / "in.csv").write_text("paper,topic\nP1,T1\nNew York,T1\n")
    options = [word for pattern in query for word in ("--query", pattern)]

    result = solved(run, "papers.mln", "-e", "In=in.csv", "-t", "marginals,map", *options)

    assert list(result["marginals"]) == expected
    assert list(result["map"]["assignment"]) == expected


def test_outputs_hold_one_answer(run: Run, folder: Path) -> None:
    asked = ["papers.mln", "-e", "facts.db", "-q", "Trend(*)", "-q", "In(*)"]

    for name in ("out.json", "out.csv", "out.parquet"):
        ended = run("infer", *asked, "--quiet", "-o", name)
        assert (ended.code, ended.out, ended.err) == (0, "", "")

    marginals = json.loads((folder / "out.json").read_text(encoding="utf-8"))["marginals"]
    table = pq.read_table(folder / "out.parquet").to_pylist()
    with (folder / "out.csv").open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["atom"] for row in table] == list(marginals)
    assert {row["atom"] for row in rows} == set(marginals)
    for row in rows:
        expected = marginals[row["atom"]]
        if row["state"]:
            place = expected["states"].index(row["state"])
            assert float(row["prob"]) == pytest.approx(expected["probs"][place], abs=1e-10)
        else:
            assert float(row["mean"]) == pytest.approx(expected["mean"], abs=1e-10)


def test_notes_say_what_was_left_out(run: Run, folder: Path) -> None:
    note = "hylift: note: facts.csv: 1 row left out; the first, row 3: unknown predicate 'Seen'\n"

    for command in ("infer", "ground"):
        ended = run(command, "papers.mln", "-e", "facts.csv", "--unmatched", "ignore")
        quiet = run(command, "papers.mln", "-e", "facts.csv", "--unmatched", "ignore", "--quiet")

        assert (ended.code, ended.err) == (0, note)
        assert (quiet.code, quiet.out, quiet.err) == (0, "", "")


def test_a_real_that_nothing_holds_is_warned_about(run: Run, folder: Path) -> None:
    (folder / "free.mln").write_text("t = {A}\nx(t): real\n1 x(a)\n")
    warning = (
        "hylift: warning: free.mln:2:1: the density may be improper in 'x': none of its rules has "
        "a negative square of it; give it bounds or add a rule such as '-0.01 x(t)^2'"
        "\n    x(t): real\n    ^\n"
    )

    ground = run("ground", "free.mln")
    infer = run("infer", "free.mln")
    quiet = run("ground", "free.mln", "--quiet")

    assert (ground.code, ground.err) == (0, warning)
    assert infer.code == 2
    assert infer.err.startswith(
        f"{warning}hylift: the model cannot be normalised: the density is improper in 'x(A)': "
    )
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")


def test_ground_counts_what_there_is(run: Run, folder: Path) -> None:
    ended = run("ground", "papers.mln", "-e", "facts.db", "--closed", "In", "--stats")

    assert (ended.code, ended.err) == (0, "")
    first, second, *tables = (" ".join(line.split()) for line in ended.out.splitlines())
    assert first.startswith("papers.mln: 8 variables and 8 factors, grounded in ")
    assert second.startswith("5 observed; kept: 4 variables, 6 factors, ")
    assert tables == [
        "predicate atoms observed world",
        "In 4 4 closed",
        "Popularity 2 1 open",
        "Trend 2 0 open",
        "groundings factors constant rule",
        "4 2 2 0.5 In(p, t) * (Popularity(p) = Trend(t))",
        "2 2 0 0.1 Trend(t) = 5",
        "2 2 0 0.3 Popularity(p) = 1",
    ]


def test_ground_without_stats_says_only_the_size(run: Run, folder: Path) -> None:
    ended = run("ground", "smokers.mln")

    assert (ended.code, ended.err) == (0, "")
    assert len(ended.out.splitlines()) == 2
    assert ended.out.startswith("smokers.mln: 4 variables and 2 factors, grounded in ")


@pytest.mark.parametrize("options", [[], ["-e", "some.db"], ["-e", "some.db", "-c", "Friends"]])
def test_a_ground_model_is_read_back_with_the_same_log_z(
    options: list[str], run: Run, folder: Path
) -> None:
    (folder / "some.db").write_text("Friends(Ann,Bob)\n!Friends(Bob,Ann)\n")

    ended = run("ground", "smokers.mln", *options, "--output", "smokers.uai")

    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[-1] == "Written to smokers.uai"
    expected = solved(run, "smokers.mln", *options)["log_partition"]["value"]
    found = solved(run, "smokers.uai")["log_partition"]["value"]
    assert found == pytest.approx(expected, abs=1e-10)


def test_a_model_with_reals_is_no_uai_file_but_its_sizes_are_shown(run: Run, folder: Path) -> None:
    ended = run("ground", "papers.mln", "-e", "facts.db", "-o", "out.uai")

    assert ended.code == 2
    assert ended.out.startswith("papers.mln: 8 variables and ")
    assert ended.err.endswith("holds discrete variables only; 'Popularity(P2)' is real\n")
    assert not (folder / "out.uai").exists()


MODELS_END = "models are read from files that end in .mln or .uai"
LONG = "evidence on several predicates must have the columns predicate, arg1, arg2, …"

REFUSED = {
    "unmatched rows": (
        ["infer", "papers.mln", "-e", "facts.csv"],
        "hylift: facts.csv, row 3: unknown predicate 'Seen'. Pass --unmatched "
        "ignore to leave such rows out.\n",
    ),
    "unmatched word": (
        ["infer", "papers.mln", "--unmatched", "nonsense"],
        "--unmatched must be 'error' or 'ignore', not 'nonsense'\n",
    ),
    "unknown name of a table": (
        ["infer", "papers.mln", "-e", "Inn=in.parquet"],
        "hylift: Inn=in.parquet: 'Inn' is not a predicate or type of the model."
        " Did you mean 'In'?\n",
    ),
    "table of one predicate without its name": (
        ["infer", "papers.mln", "-e", "in.parquet"],
        f"in.parquet: {LONG}, and optionally value and sd; this table has paper, topic: for a "
        f"table "
        "of one predicate, pass --evidence PREDICATE=FILE\n",
    ),
    "missing evidence": (
        ["infer", "papers.mln", "-e", "nowhere.db"],
        "hylift: nowhere.db: no such file\n",
    ),
    "missing table": (
        ["ground", "papers.mln", "-e", "In=nowhere.csv"],
        "hylift: nowhere.csv: no such file\n",
    ),
    "evidence that is the model": (
        ["infer", "papers.mln", "-e", "papers.mln"],
        "papers.mln: unknown kind of file: evidence files end in .csv, .tsv, .parquet, "
        ".arrow, .feather, .db, .sqlite, .duckdb\n",
    ),
    "no constants": (["infer", "papers.mln"], "hylift: the type 'paper' has no constants: list"),
    "value outside the domain": (
        ["infer", "sizes.mln", "-e", "far.csv"],
        "hylift: far.csv, row 2: Size(P2) is 12; its domain is [0, 10]\n",
    ),
    "rows that contradict": (
        ["infer", "sizes.mln", "-e", "Size=against.csv"],
        "hylift: against.csv: Size(P1): row 3 says 4 where row 1 says 3: keep one row of each\n",
    ),
    "unknown constant": (
        ["ground", "smokers.mln", "-e", "some.db"],
        "hylift: some.db, line 2: Smokes(Bo): 'Bo' is not a constant of type 'person', which has "
        "Ann, Bob. Did you mean 'Bob'? Pass --unmatched ignore to leave such rows out.\n",
    ),
    "unknown closed predicate": (
        ["infer", "papers.mln", "-e", "facts.db", "--closed", "In,Inn"],
        "--closed names 'Inn', which is not a predicate of the model. Did you mean 'In'?\n",
    ),
    "closed real": (
        ["ground", "papers.mln", "-e", "facts.db", "--closed", "Popularity"],
        "hylift: 'Popularity' is real and cannot be closed: it is not true or false\n",
    ),
    "query of nothing": (
        ["infer", "papers.mln", "-e", "facts.db", "-q", "Popular(*)"],
        "hylift: no variable matches 'Popular(*)'\n",
    ),
    "query of an unknown predicate": (
        ["infer", "papers.mln", "-e", "facts.db", "-q", "Trends"],
        "hylift: there is no variable 'Trends'. Did you mean 'Trend'?\n",
    ),
    "query of a closed predicate": (
        ["infer", "papers.mln", "-e", "facts.db", "-c", "In", "-q", "In"],
        "hylift: 'In' has no variables. No factor mentions it; atoms of closed-world predicates",
    ),
    "query of an unknown constant": (
        ["infer", "papers.mln", "-e", "facts.db", "-q", "Trend(T3)"],
        "there is no variable 'Trend(T3)'. 'T3' is not a constant of argument 1",
    ),
    "query of another case": (
        ["infer", "papers.mln", "-e", "facts.db", "-q", "trend(T1)"],
        "there is no variable 'trend(T1)'. Did you mean 'Trend'?\n",
    ),
    "query of a closed atom": (
        ["infer", "papers.mln", "-e", "facts.db", "-c", "In", "-q", "In(P1,T1)"],
        "there is no variable 'In(P1,T1)'.",
    ),
    "reals in UAI marginals": (
        ["infer", "papers.mln", "-e", "facts.db", "-o", "out.MAR"],
        "hylift: out.MAR: such a file holds discrete variables only; 'Popularity(P1)' is real\n",
    ),
    "reals in a UAI assignment": (
        ["infer", "papers.mln", "-e", "facts.db", "-o", "out.mpe"],
        "hylift: out.mpe: such a file holds discrete variables only; 'Popularity(P1)' is real\n",
    ),
    "ground model in another format": (
        ["ground", "smokers.mln", "-o", "out.txt"],
        "hylift: out.txt: a ground model is written to a file in .json, .csv, .parquet, .uai, or "
        "'-'\n",
    ),
    "ground model in a missing folder": (
        ["ground", "smokers.mln", "-o", "missing/out.uai"],
        "missing/out.uai: cannot be written: there is no folder 'missing'\n",
    ),
    "closed predicates of tables": (
        ["infer", "model.uai", "--closed", "In"],
        "hylift: model.uai: --closed, --only-rows and --unmatched are for models of rules (.mln)\n",
    ),
    "unmatched rows of tables": (
        ["infer", "model.uai", "--unmatched", "ignore"],
        "hylift: model.uai: --closed, --only-rows and --unmatched are for models of rules (.mln)\n",
    ),
    "two files of evidence for tables": (
        ["infer", "model.uai", "-e", "model.uai.evid", "-e", "model.uai.evid"],
        "hylift: model.uai: a .uai model takes one evidence file\n",
    ),
    "grounding of tables": (
        ["ground", "model.uai"],
        "hylift: model.uai: only models of rules (.mln) are grounded\n",
    ),
    "other kind of model": (["infer", "facts.db"], f"hylift: facts.db: {MODELS_END}\n"),
    "text file to ground": (["ground", "rules.txt"], f"hylift: rules.txt: {MODELS_END}\n"),
    "folder": (["infer", "folder.mln"], "hylift: folder.mln: is a directory, not a file\n"),
}


@pytest.mark.parametrize(("arguments", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_what_does_not_fit_is_refused_in_one_line(
    arguments: list[str], expected: str, run: Run, folder: Path
) -> None:
    (folder / "rules.txt").write_text("P(t)\n")
    (folder / "folder.mln").mkdir()
    (folder / "sizes.mln").write_text("Size(paper): real[0, 10]\n1 Size(p) = 1\n")
    (folder / "far.csv").write_text("predicate,arg1,value\nSize,P1,3\nSize,P2,12\n")
    (folder / "against.csv").write_text("paper,value\nP1,3\nP2,3\nP1,4\n")
    (folder / "some.db").write_text("Smokes(Ann)\nSmokes(Bo)\n")
    before = sorted(folder.iterdir())

    ended = run(*arguments)

    assert_refused(ended)
    assert expected in ended.err
    assert sorted(folder.iterdir()) == before


def test_an_error_in_a_model_shows_its_place(run: Run, folder: Path) -> None:
    (folder / "wrong.mln").write_text("Smokes(person)\n1.5  Smoke(x)\n")

    for command in ("infer", "ground", "check"):
        ended = run(command, "wrong.mln")

        assert (ended.code, ended.out) == (2, "")
        assert ended.err == (
            "hylift: wrong.mln:2:6: unknown predicate 'Smoke'. Did you mean 'Smokes'?\n"
            "    1.5  Smoke(x)\n"
            "         ^^^^^\n"
        )


@pytest.mark.parametrize("name", ["facts.csv", "papers.mln"])
def test_what_is_read_is_not_written_over(name: str, run: Run, folder: Path) -> None:
    copy = folder / "copy.csv"
    copy.hardlink_to(folder / name)

    ended = run("infer", "papers.mln", "-e", "facts.csv", "--unmatched", "ignore", "-o", copy)

    assert ended.code == 2
    assert f"{copy}: is read by this command; name another file to write" in ended.err

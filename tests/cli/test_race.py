"""`hylift race`."""

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cli.conftest import Run

PAPERS = ("race", "papers.mln", "-e", "facts.db")
FEW = ("--methods", "exact,mean-field,bvi,bp")


def test_all_methods_are_shown_or_skipped(run: Run, folder: Path) -> None:
    ended = run(*PAPERS, "--seconds", 5)

    assert (ended.code, ended.err) == (0, "")
    for name in ("exact", "mean field", "BVI(3)", "NPVI(3)", "EPBP(50)", "Gibbs", "MaxWalkSAT"):
        assert any(line.startswith(name) for line in ended.out.splitlines()), name
    skipped = ended.out[ended.out.index("Skipped:") :]
    assert "BP " in skipped
    assert "GaBP " in skipped


def test_the_screen_has_a_table_and_says_what_it_is_measured_by(run: Run, folder: Path) -> None:
    ended = run(*PAPERS, *FEW)

    lines = ended.out.splitlines()
    assert lines[0].startswith("papers.mln: ")
    assert lines[0].endswith("; 30 s for each method")
    assert lines[1].split()[:3] == ["method", "seconds", "log"]
    assert "yardstick" in lines[2]
    assert any("from those of exact (exact inference)." in line for line in lines)
    assert lines[-1].strip().startswith("BP")
    assert "is real" in lines[-1]


def test_what_there_is_to_know_of_the_yardstick_is_on_the_screen(run: Run, folder: Path) -> None:
    ended = run(*PAPERS, "--methods", "gibbs,mean-field", "--output", "-")
    notes = json.loads(ended.out)["finished"][0]["notes"]

    shown = run(*PAPERS, "--methods", "gibbs,mean-field").out

    assert json.loads(ended.out)["yardstick"]["method"] == "Gibbs"
    assert notes
    words = " ".join(shown.split())
    for note in notes:
        assert f"Note on Gibbs: {note}" in words


def test_a_picture_is_drawn(run: Run, folder: Path) -> None:
    ended = run(*PAPERS, *FEW, "--figure", "race.png")

    assert ended.out.splitlines()[-1] == "Figure: race.png"
    assert (folder / "race.png").read_bytes().startswith(b"\x89PNG")


def test_json_has_everything(run: Run, folder: Path) -> None:
    ended = run(*PAPERS, *FEW, "--output", "-", "--seed", 4)

    result = json.loads(ended.out)
    assert (result["model"], result["seed"], result["seconds"]) == ("papers.mln", 4, 30.0)
    assert result["yardstick"] == {"method": "exact", "reason": "exact inference"}
    exact, mean_field, bvi = result["finished"]
    assert (exact["method"], exact["is_yardstick"], exact["mean_kl"]) == ("exact", True, None)
    assert mean_field["log_z_kind"] == "lower bound"
    assert 0 <= bvi["mean_kl"] < 1
    assert result["skipped"][0]["method"] == "BP"
    assert result["skipped"][0]["reason"].startswith("BP is for discrete variables")


@pytest.mark.parametrize("ending", ["json", "csv", "parquet"])
def test_the_table_is_written(run: Run, folder: Path, ending: str) -> None:
    name = f"race.{ending}"

    ended = run(*PAPERS, *FEW, "-o", name)

    assert ended.out.splitlines()[-1] == f"Written to {name}"
    if ending == "json":
        methods = [row["method"] for row in json.loads((folder / name).read_text())["finished"]]
    elif ending == "csv":
        with open(folder / name, newline="") as stream:
            methods = [row["method"] for row in csv.DictReader(stream)][:3]
    else:
        methods = pq.read_table(folder / name)["method"].to_pylist()[:3]
    assert methods == ["exact", "mean field", "BVI(3)"]


def test_quiet_prints_nothing(run: Run, folder: Path) -> None:
    ended = run(*PAPERS, *FEW, "--quiet", "-o", "race.csv")

    assert (ended.code, ended.out, ended.err) == (0, "", "")
    assert (folder / "race.csv").exists()


def test_tables_are_raced_too(run: Run, folder: Path) -> None:
    ended = run("race", "model.uai", "-e", "model.uai.evid", "-m", "exact", "-m", "bp,npvi")

    names = [line.split()[0] for line in ended.out.splitlines()[2:5]]
    assert names == ["exact", "BP", "NPVI(3)"]


REFUSED = {
    "another method": (
        ["--methods", "exact,gapb"],
        "there is no method 'gapb': choose among exact, mean-field, bvi, bvi-coarse-to-fine, npvi, "
        "bp, gabp, epbp, ep, gibbs, smc, maxwalksat, mini-buckets. Did you mean 'gabp'?",
    ),
    "no method": (["--methods", ""], "there is no method '': choose among exact, mean-field"),
    "a comma too many": (["--methods", "exact,"], "there is no method '': choose among exact"),
    "no time": (["--seconds", 0], "--seconds must be a positive number, not 0"),
    "another lifting": (["--lift", "fine"], "there is no lift 'fine': choose among exact"),
    "negative seed": (["--seed", -1], "--seed must be a non-negative integer, not -1"),
    "figure in text": (
        ["--figure", "a.txt"],
        "a.txt: a figure is written to a file in .png, .pdf, .svg",
    ),
    "output in text": (
        ["-o", "a.txt"],
        "a.txt: a race is written to a file in .json, .csv, .parquet, or '-'",
    ),
    "output in no folder": (["-o", "no/a.csv"], "no/a.csv: cannot be written: there is no folder"),
}


@pytest.mark.parametrize(("arguments", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_bad_options_are_refused_before_any_work(
    arguments: list[object], expected: str, run: Run, folder: Path
) -> None:
    ended = run("race", "nowhere.mln", *arguments)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"hylift: {expected}")
    assert ended.err.count("\n") == 1


def test_what_is_read_is_not_written(run: Run, folder: Path) -> None:
    ended = run("race", "papers.mln", "-e", "facts.csv", "-o", "facts.csv")

    assert ended.code == 2
    assert ended.err.startswith("hylift: facts.csv: is read by this command")


def test_methods_that_all_refuse_are_an_error_with_the_reason(run: Run, folder: Path) -> None:
    ended = run(*PAPERS, "--methods", "bp")

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("hylift: BP is for discrete variables, and '")

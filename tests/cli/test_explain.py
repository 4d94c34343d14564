"""`hylift explain`: what lifting saves, on the terminal, as JSON and as a picture."""

import json
from pathlib import Path
from typing import Any

import pytest

import hylift.cli.commands.explain
from cli.conftest import Run
from cli.test_bad_input import assert_refused
from experiments.instances import papers, rgm
from experiments.instances.sources import MODELS
from hylift.lifting import lift


def explained(run: Run, *arguments: object) -> dict[str, Any]:
    """The JSON that `hylift explain` prints."""
    ended = run("explain", *arguments, "-o", "-")
    assert ended.code == 0
    result: dict[str, Any] = json.loads(ended.out)
    return result


def test_sizes_classes_and_a_verdict_are_shown(run: Run) -> None:
    ended = run("explain", MODELS / "toy.mln")

    assert (ended.code, ended.err) == (0, "")
    rows = [line.split() for line in ended.out.splitlines()]
    assert ended.out.startswith("toy.mln: 21 variables, 0 observed; lifted in ")
    assert ["variables", "21", "5", "4.2"] in rows
    assert ["factors", "24", "3", "8.0"] in rows
    assert ["posA", "1", "2", "posA(a0),", "posA(a1)"] in rows
    assert "No variable is alone in its class." in ended.out
    assert "A step of variational inference on the lifted graph should be about 5.6" in ended.out


def test_the_text_is_that_of_the_library(run: Run, data_dir: Path) -> None:
    evidence = data_dir / "rgm" / "evidence_0.csv"
    explanation = lift(rgm.published(data_dir, 0).graph).explain()

    ended = run("explain", MODELS / "rgm.mln", "-e", evidence)

    assert str(explanation).split() == ended.out.partition("\n")[2].split()


def test_json_is_that_of_the_library(run: Run, data_dir: Path) -> None:
    evidence = data_dir / "papers" / "evidence_0.csv"
    explanation = lift(papers.published(data_dir, 0, "paper").graph).explain()

    result = explained(run, MODELS / "papers.mln", "-e", evidence, "--unmatched", "ignore")

    assert result.pop("model") == str(MODELS / "papers.mln")
    assert result.pop("notes") == []
    assert result == explanation.to_dict()


def test_closed_world_evidence_is_said_not_to_be_measured(run: Run, folder: Path) -> None:
    arguments = ["papers.mln", "-e", "In=in.parquet", "--closed", "In"]

    ended = run("explain", *arguments)
    result = explained(run, *arguments)

    note = "Not measured: closed-world evidence (In), which shapes the ground graph itself."
    assert note in ended.out
    assert result["notes"] == [note]
    assert result["evidence"] == []


def test_evidence_given_as_a_probability_is_said_not_to_be_measured(run: Run, folder: Path) -> None:
    (folder / "maybe.csv").write_text("person,value\nAnn,0.8\n")

    ended = run("explain", "smokers.mln", "-e", "Smokes=maybe.csv")

    assert ended.code == 0
    assert "Not measured: evidence on Smokes that is a probability" in ended.out


def test_tables_are_explained_too(run: Run, folder: Path) -> None:
    result = explained(run, "model.uai", "-e", "model.uai.evid")

    assert result["ground"]["num_variables"] == 11
    assert result["num_observed"] == 1
    (effect,) = result["evidence"]
    assert effect["predicate"] == "x"


def test_nothing_is_printed_when_quiet_and_files_are_written(run: Run, folder: Path) -> None:
    ended = run(
        "explain", "papers.mln", "-e", "facts.db", "--quiet", "-o", "why.json",
        "--figure", "classes.svg",
    )  # fmt: skip

    assert (ended.code, ended.out, ended.err) == (0, "", "")
    assert json.loads((folder / "why.json").read_text())["model"] == "papers.mln"
    assert "<svg" in (folder / "classes.svg").read_text()


def test_files_that_were_written_are_named(run: Run, folder: Path) -> None:
    ended = run("explain", "smokers.mln", "-o", "why.json", "--figure", "classes.png")

    assert (ended.code, ended.err) == (0, "")
    assert ended.out.endswith("Written to why.json\nFigure: classes.png\n")


REFUSED = {
    "figure without a known ending": (
        ["papers.mln", "--figure", "classes.gif"],
        "classes.gif: a figure is written to a file in .png, .pdf, .svg",
    ),
    "figure in no folder": (["papers.mln", "--figure", "no/c.png"], "there is no folder 'no'"),
    "output of another kind": (
        ["papers.mln", "-o", "why.txt"],
        "why.txt: an explanation is written to a file in .json, .csv, .parquet, or '-'",
    ),
    "output in no folder": (["papers.mln", "-o", "no/why.json"], "there is no folder 'no'"),
    "unknown predicate": (
        ["papers.mln", "-e", "Inn=in.parquet"],
        "'Inn' is not a predicate or type of the model. Did you mean 'In'?",
    ),
    "missing model": (["nowhere.mln"], "nowhere.mln: no such file"),
    "other kind of model": (["model.txt"], "models are read from files that end in .mln or .uai"),
    "options for rules": (["model.uai", "--closed", "x"], "are for models of rules (.mln)"),
}


@pytest.mark.parametrize(("arguments", "text"), REFUSED.values(), ids=REFUSED)
def test_bad_input_is_refused_in_one_line(
    arguments: list[str], text: str, run: Run, folder: Path
) -> None:
    ended = run("explain", *arguments)

    assert_refused(ended)
    assert text in ended.err


@pytest.mark.parametrize("option", ["--output", "--figure"])
def test_what_is_wrong_with_a_file_is_found_before_any_work(
    option: str, run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(*_: object) -> None:
        raise AssertionError("the model was read")

    monkeypatch.setattr(hylift.cli.commands.explain, "ground_file", work)

    assert_refused(run("explain", "papers.mln", option, "facts.xyz"))


def test_what_is_read_is_not_written_over(run: Run, folder: Path) -> None:
    (folder / "more.json").symlink_to(folder / "facts.db")

    ended = run("explain", "papers.mln", "-e", "facts.db", "-o", "more.json")

    assert_refused(ended)
    assert "more.json: is read by this command" in ended.err

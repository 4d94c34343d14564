"""Runs that are interrupted, and runs that are taken up again."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import hylift.cli.commands.infer
from cli.conftest import Run
from hylift.inference.checking.check import Check
from hylift.posterior import Posterior

BVI = ("infer", "papers.mln", "-e", "facts.db", "-m", "bvi")


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inference that ends as if by Ctrl-C after 12 steps."""
    solve = hylift.cli.commands.infer.infer

    def infer(*arguments: object, **options: object) -> Posterior:
        found = solve(*arguments, **options)
        solution = replace(found.solution, result="interrupted", steps=12)
        return replace(found, solution=solution, checked=None)

    monkeypatch.setattr(hylift.cli.commands.infer, "infer", infer)


BEST = "hylift: interrupted after 12 steps: this is the best answer so far"


def test_an_interrupted_run_shows_and_writes_its_answer_and_ends_with_130(
    run: Run, folder: Path, interrupted: None
) -> None:
    ended = run(*BVI, "-o", "out.json", "--save", "out.npz")

    assert (ended.code, ended.err) == (130, f"{BEST}\n")
    assert "interrupted after 12 steps" in ended.out
    assert "log Z = " in ended.out
    assert ended.out.endswith("Written to out.json\nPosterior: out.npz\n")
    result = json.loads((folder / "out.json").read_text())
    assert result["solution"]["result"] == "interrupted"
    assert Posterior.load("out.npz").solution.result == "interrupted"


def test_an_interrupted_run_with_a_checkpoint_says_how_to_go_on(
    run: Run, folder: Path, interrupted: None
) -> None:
    ended = run(*BVI, "--quiet", "--checkpoint", "run.ckpt")

    assert (ended.code, ended.out) == (130, "")
    assert ended.err == f"{BEST} (resume with the same command: --checkpoint run.ckpt)\n"


def test_an_interrupted_check_ends_with_130_too(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pressed(check: Check) -> None:
        check.attempts.request.interrupt.requested = True

    monkeypatch.setattr(Check, "run", pressed)

    ended = run("infer", "papers.mln", "-e", "facts.db", "--no-exact", "-o", "out.json")

    assert ended.code == 130
    assert ended.err == "hylift: interrupted during the check: this is the best answer so far\n"
    assert "unchecked: The check was interrupted.\n" in ended.out
    result = json.loads((folder / "out.json").read_text())
    assert result["solution"]["result"] == "interrupted"
    assert result["trust"]["verdict"] == "unchecked"
    assert "Interrupted during the check: this is the best" in str(result["solution"]["notes"])


def test_an_output_that_fails_matters_more_than_the_interruption(
    run: Run, folder: Path, interrupted: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no full device here")
    (folder / "out.json").symlink_to("/dev/full")

    ended = run(*BVI, "-o", "out.json")

    assert ended.code == 2
    assert ended.err.splitlines() == [
        BEST,
        "hylift: out.json: cannot be written: No space left on device",
    ]


def test_a_run_with_a_checkpoint_has_the_answer_of_one_without(run: Run, folder: Path) -> None:
    runs = [run(*BVI, "-o", "-", *more) for more in ((), ("--checkpoint", "run.ckpt"))]
    again = run(*BVI, "-o", "-", "--checkpoint", "run.ckpt")

    results = [json.loads(ended.out) for ended in (*runs, again)]
    for result in results:
        del result["solution"]["seconds"]
    assert results[1:] == results[:1] * 2


REFUSED = {
    "of another run": (
        ["-m", "bvi", "--seed", 1, "--checkpoint", "run.ckpt"],
        "run.ckpt: is a checkpoint of another run: ",
    ),
    "that is none": (["--checkpoint", "in.parquet"], "in.parquet: is not a checkpoint"),
    "of exact": (
        ["-m", "exact", "--checkpoint", "a.ckpt"],
        "--checkpoint is for --method auto, mean-field, bvi, npvi, bp, gabp, epbp, ep, gibbs, smc, "
        "maxwalksat or mini-buckets, not for exact\n",
    ),
    "that is read": (["--checkpoint", "facts.db"], "facts.db: is read by this command"),
    "that is an output": (
        ["--checkpoint", "a.npz", "--save", "a.npz"],
        "a.npz: would be written twice; name two files\n",
    ),
    "in no folder": (["--checkpoint", "no/a.ckpt"], "there is no folder 'no'\n"),
}


@pytest.mark.parametrize(("arguments", "expected"), REFUSED.values(), ids=REFUSED)
def test_a_checkpoint_that_does_not_fit_is_refused_in_one_line(
    arguments: list[object], expected: str, run: Run, folder: Path
) -> None:
    run(*BVI, "--quiet", "--checkpoint", "run.ckpt")

    ended = run("infer", "papers.mln", "-e", "facts.db", *arguments)

    assert (ended.code, ended.out) == (2, "")
    assert expected in ended.err
    assert ended.err.count("\n") == 1

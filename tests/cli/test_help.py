"""Help tells the truth: every example it prints works as printed."""

import itertools
import re
import shlex
from pathlib import Path

import pytest

from cli.conftest import Run, write_posteriors

COMMANDS = [[], ["infer"], ["race"], ["check"], ["ground"], ["explain"], ["plot"], ["demo"]]

OPTIONS = (
    *("--evidence", "--task", "--query", "--output", "--save", "--figure", "--convergence"),
    *("--seed", "--quiet", "--method", "--components", "--lift", "--seconds", "--restarts"),
    *("--max-steps", "--optimiser", "--learning-rate", "--reals", "--start"),
    *("--checkpoint", "--damping", "--schedule", "--particles", "--chains", "--draws", "--flips"),
    *("--warm-up", "--merge-factors", "--no-exact"),
)
"""Of `hylift infer`."""


@pytest.fixture(autouse=True)
def ordinary_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The width that most terminals have, and that pipes are given."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0] if command else "all")
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_every_command_has_help(command: list[str], option: str, run: Run) -> None:
    ended = run(*command, option)

    assert (ended.code, ended.err) == (0, "")
    assert "Usage: " + " ".join(["hylift", *command]) in ended.out
    assert "Examples" in ended.out
    assert "\x1b" not in ended.out


def test_help_names_everything_that_can_be_chosen(run: Run) -> None:
    text = " ".join(re.sub(r"[│\n]", " ", run("infer", "--help").out).split())

    for option in OPTIONS:
        assert option in text
    for word in ("marginals", "map", "logz", "auto", "exact", "bvi", "npvi", "mean-field"):
        assert word in text
    for word in ("bp", "gabp", "epbp", "gibbs", "maxwalksat", "flooding", "residual"):
        assert word in text
    for ending in (".json", ".csv", ".parquet", ".nc", ".MAR", ".PR", ".MPE", "'-'"):
        assert ending in text


def test_no_arguments_show_the_help(run: Run) -> None:
    ended = run()

    assert (ended.code, ended.err) == (2, "")
    assert "Usage: hylift" in ended.out


def test_the_version_is_shown(run: Run) -> None:
    ended = run("--version")

    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("hylift")
    assert ended.out.count("\n") == 1


def examples(run: Run) -> list[list[str]]:
    """The arguments of all example lines in all help texts."""
    found = []
    for command in COMMANDS:
        text = run(*command, "--help").out
        after = text[text.index("Examples") :]
        found += [shlex.split(line) for line in after.splitlines() if line.startswith(" hylift ")]
    return found


def test_the_examples_in_the_help_work_as_printed(run: Run, folder: Path) -> None:
    write_posteriors(run)
    lines = examples(run)
    assert len(lines) >= 30

    for program, *arguments in lines:
        assert program == "hylift"
        ended = run(*arguments)
        said = [line for line in ended.err.splitlines() if not line.startswith("hylift: note:")]
        assert (ended.code, said) == (0, []), arguments
        assert ended.out.strip()
        for option, name in itertools.pairwise(arguments):
            if option in ("--output", "--figure", "--save", "--checkpoint"):
                assert (folder / name).stat().st_size > 0


def test_examples_are_not_broken_over_lines(run: Run) -> None:
    for command in COMMANDS:
        text = run(*command, "--help").out
        after = text[text.index("Examples") :].splitlines()[1:]
        for line in after:
            if line.strip().startswith(("Outputs", "Exit codes")):
                break
            assert not line.strip() or line.startswith(" hylift ")


def test_the_demo_shows_marginals_log_z_and_an_assignment(run: Run) -> None:
    ended = run("demo")

    assert (ended.code, ended.err) == (0, "")
    assert "log Z = 13.344" in ended.out
    assert "method BVI(3)" in ended.out
    assert "posA(a0)" in ended.out
    assert "MAP energy = " in ended.out

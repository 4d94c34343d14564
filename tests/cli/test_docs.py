"""The commands on the page about the command line work as printed."""

import re
import shlex
from pathlib import Path

import duckdb
import pytest

from cli.conftest import Run

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
BLOCKS = re.findall(
    r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
)


def commands(block: str) -> list[list[str]]:
    """The words of each line, up to a comment or a pipe."""
    lines = [shlex.split(line, comments=True) for line in block.splitlines()]
    return [words[: words.index("|")] if "|" in words else words for words in lines if words]


def test_there_are_commands_to_try() -> None:
    assert len(BLOCKS) >= 6
    tried = {words[1] for block in BLOCKS for words in commands(block)}
    assert tried >= {"check", "ground", "explain", "infer", "race", "plot", "demo"}


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_the_commands_on_the_page_work_as_printed(block: str, run: Run, folder: Path) -> None:
    for program, *arguments in commands(block):
        if program == "duckdb":
            assert duckdb.sql(arguments[arguments.index("-c") + 1]).fetchall()
            continue
        assert program == "hylift"

        ended = run(*arguments)

        assert ended.code == 0, (arguments, ended.err)
        assert ended.out or "--quiet" in arguments

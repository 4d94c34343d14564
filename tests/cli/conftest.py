"""The command line, run in this process as `hylift` would run it."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from hylift.cli import main

CHAIN = 12
"""Variables of the model in the folder: x0 to x11."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What a run left behind."""

    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `hylift` with these arguments."""

    def run_main(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["hylift", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return Ended(int(ended.value.code or 0), captured.out, captured.err)

    return run_main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with model.uai and model.uai.evid: a chain that likes to stay."""
    pairs = [f"2 {i} {i + 1}" for i in range(CHAIN - 1)]
    tables = ["4\n 2 1\n 1 3"] * (CHAIN - 1)
    lines = ["MARKOV", CHAIN, "2 " * CHAIN, CHAIN, "1 0", *pairs, "2\n 0.4 0.6", *tables, ""]
    (tmp_path / "model.uai").write_text("\n".join(map(str, lines)))
    (tmp_path / "model.uai.evid").write_text("1\n0 1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path

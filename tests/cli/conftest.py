"""The command line, run in this process as `hylift` would run it."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
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
    """A folder to be in.

    model.uai and model.uai.evid: a chain that likes to stay. papers.mln with facts.db, facts.csv
    and in.parquet: papers in topics; all.csv: columns of several predicates. smokers.mln: discrete,
    with a list of its constants.
    """
    pairs = [f"2 {i} {i + 1}" for i in range(CHAIN - 1)]
    tables = ["4\n 2 1\n 1 3"] * (CHAIN - 1)
    lines = ["MARKOV", CHAIN, "2 " * CHAIN, CHAIN, "1 0", *pairs, "2\n 0.4 0.6", *tables, ""]
    (tmp_path / "model.uai").write_text("\n".join(map(str, lines)))
    (tmp_path / "model.uai.evid").write_text("1\n0 1\n")
    _write_rules(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_posteriors(run: Run) -> None:
    """result.npz and other.npz: what BVI and mean field say of papers.mln."""
    for method, name in (("bvi", "result.npz"), ("mean-field", "other.npz")):
        asked = ("infer", "papers.mln", "-e", "facts.db", "--quiet")
        assert run(*asked, "--method", method, "--save", name).code == 0


PAPERS = """
In(paper, topic)
Popularity(paper): real
Trend(topic): real
0.5  In(p, t) * (Popularity(p) = Trend(t))
0.1  Trend(t) = 5
0.3  Popularity(p) = 1
"""

SMOKERS = """
person = {Ann, Bob}
Smokes(person)
Friends(person, person)
1.1  Friends(x, y) ^ Smokes(x) => Smokes(y)  where x != y
"""


def _write_rules(folder: Path) -> None:
    (folder / "papers.mln").write_text(PAPERS)
    (folder / "smokers.mln").write_text(SMOKERS)
    (folder / "facts.db").write_text("In(P1,T1)\nIn(P2,T1)\n!In(P2,T2)\nPopularity(P1) 3.5\n")
    rows = ["predicate,arg1,arg2,value", "In,P1,T1,1", "Popularity,P1,,3.5", "Seen,P1,,1", ""]
    (folder / "facts.csv").write_text("\n".join(rows))
    pairs = pa.table({"paper": ["P1", "P2"], "topic": ["T1", "T1"]})
    pq.write_table(pairs, folder / "in.parquet")
    wide = ["year,topic,paper,popularity", "2020,T1,P1,3.5", "2021,T1,P2,", ""]
    (folder / "all.csv").write_text("\n".join(wide))

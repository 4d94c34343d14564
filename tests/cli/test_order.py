"""`hylift infer` with the largest numbers first, cut, and with a column per argument."""

import csv
from pathlib import Path

import numpy as np
import pytest

from cli.conftest import Run

ASKED = ("infer", "many.mln", "-q", "R")


@pytest.fixture
def many(folder: Path) -> Path:
    """many.mln: R(0) to R(29), the likelier the larger, and a real."""
    rules = "".join(f'{0.1 * i + 0.1:.1f} R("{i}")\n' for i in range(30))
    text = f"n = {{0, ..., 29}}\nR(n)\nx(n): real\n{rules}normal(x(i) | 0, 1)\n"
    (folder / "many.mln").write_text(text)
    return folder


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_table_has_the_top_atoms_by_argument(run: Run, many: Path) -> None:
    ended = run(*ASKED, "--top", 3, "--by", "prob", "--arguments", "-o", "top.csv", "--quiet")

    assert (ended.code, ended.err) == (0, "")
    found = rows(many / "top.csv")
    assert [row["n"] for row in found] == ["29", "28", "27"]
    assert float(found[0]["prob"]) == pytest.approx(1 / (1 + np.exp(-3)))
    assert found[0]["verdict"] == "certified"


def test_the_terminal_shows_as_many_as_are_asked_for(run: Run, many: Path) -> None:
    ended = run(*ASKED, "--top", 25)

    shown = [line.split()[0] for line in ended.out.splitlines() if "R(" in line]
    assert shown == [f"R({i})" for i in range(29, 4, -1)]
    assert "more (" not in ended.out


def test_an_order_alone_leaves_nothing_out(run: Run, many: Path) -> None:
    run(*ASKED, "--by", "prob", "-o", "all.parquet", "--quiet")
    ended = run(*ASKED, "--by", "prob")

    assert "… and 10 more (--query or --top choose some, --output has all)" in ended.out
    assert "R(29)" in ended.out


def test_an_assignment_is_written_with_a_column_per_argument(run: Run, many: Path) -> None:
    run(*ASKED, "--task", "map", "-q", "R", "--arguments", "-o", "best.csv", "--quiet")

    header, first, *_ = (many / "best.csv").read_text().splitlines()
    assert header.endswith(',"state"')
    assert '"atom"' not in header
    assert "R(" not in first


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--by", "probs"],
            "there is no number to sort by 'probs': choose among prob, mean, std, mode, q05, q50, "
            "q95. Did you mean 'prob'?",
        ),
        (["--top", "0"], "--top must be an integer of at least 1, not 0"),
        (
            ["--top", "2", "--task", "map"],
            "--top is about marginals: ask for the task 'marginals' too",
        ),
        (
            ["--arguments", "--task", "logz"],
            "--arguments is about marginals: ask for the task 'marginals' too",
        ),
        (
            ["--arguments"],
            "--arguments is about tables: name an --output in .csv and .parquet",
        ),
        (
            ["--arguments", "-q", "x", "-o", "both.csv"],
            "a column per argument needs atoms of one predicate: 'x(0)' is not of 'R'. Ask for "
            "one predicate at a time",
        ),
        (
            ["--top", "2", "-o", "all.MAR"],
            "all.MAR: such a file holds all variables, so it takes no --top",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    arguments: list[str], message: str, run: Run, many: Path
) -> None:
    asked = ASKED[:2] if "all.MAR" in arguments else ASKED

    ended = run(*asked, *arguments)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"hylift: {message}\n"

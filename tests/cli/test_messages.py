"""What the library says in terms of Python, the command line says in terms of options."""

from pathlib import Path

import pytest

from cli.conftest import Run
from hylift.cli.messages import in_options


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pass unmatched='ignore' to go on", "pass --unmatched ignore to go on"),
        ("use lift='exact' or lift='none'", "use --lift exact or --lift none"),
        ("name it in closed=… (--closed In), or", "name it in --closed In, or"),
        ("hidden; closed=['In'] (--closed In) makes", "hidden; --closed In makes"),
        ("The limit is 9 numbers (Exact(max_entries=…)).", "The limit is 9 numbers."),
        ("Exact() can tell; use BVI() or MeanField()", "--method exact can tell; use --method bvi "
         "or --method mean-field"),
        ("pass evidence={'paper': […]}, or", "pass --evidence paper=FILE, or"),
        ("method BVI(3), by name", "method BVI(3), by name"),
    ],
)  # fmt: skip
def test_arguments_of_functions_become_options(text: str, expected: str) -> None:
    assert in_options(text) == expected


def test_errors_speak_of_options(run: Run, folder: Path) -> None:
    ended = run("infer", "papers.mln")

    assert ended.code == 2
    assert "pass --evidence paper=FILE, or evidence on In or Popularity\n" in ended.err


def test_notes_on_the_screen_speak_of_options(run: Run, folder: Path) -> None:
    size = 40
    rows = " ".join(f"2 {a} {b}" for a in range(size) for b in range(a))
    pairs = size * (size - 1) // 2
    tables = "4 1 2 2 1 " * pairs
    (folder / "wide.uai").write_text(f"MARKOV {size} {'2 ' * size} {pairs} {rows} {tables}")

    ended = run("infer", "wide.uai", "--seconds", 1)

    assert ended.code == 0
    assert "Note: BVI(3) was chosen" in ended.out
    assert "max_entries" not in ended.out

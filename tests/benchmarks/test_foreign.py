"""Counts of models and facts that others wrote."""

import itertools
from pathlib import Path

import pytest

from benchmarks import foreign
from benchmarks.setting import Setting
from hylift.language.text.parser import parse


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("A(x)", 1),
        ("A(x) ^ B(x) => A(y) v !B(y)", 1),
        ("A(x) ^ B(x)", 2),
        ("A(x) => (B(x) <=> B(y))", 2),
        ("!(A(x) v B(x))", 2),
        ("!(A(x) <=> B(x))", 2),
        ("A(x) v B(x) => A(y) ^ B(y)", 4),
        ("EXIST y A(y) v B(x)", 1),
        ("FORALL y A(y) ^ B(y)", 2),
    ],
)
def test_clauses_of_a_formula_are_counted(formula: str, expected: int) -> None:
    [rule] = parse(f"A(t)\nB(t)\n1 {formula}").rules

    assert foreign.num_clauses(rule.formula) == expected


def test_files_are_counted_by_origin_and_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = ("1 A(x)", "1 A(x) ^ A(y)", "A(x) => A(y)", "*A(x) v A(y).")
    for number, (origin, rules) in enumerate(itertools.product(("here", "there"), models)):
        path = tmp_path / "foreign" / origin / f"m{number}.mln"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"A(t)\n{rules}\n", encoding="utf-8")
    (path.parent / "facts.db").write_text("A(T1)\n", encoding="utf-8")

    foreign.run(Setting(data=tmp_path))

    lines = capsys.readouterr().out.splitlines()
    assert "| here | 4 | 2 | 1 | 1 | 0 | 0 | 0 |" in lines
    assert "| there | 4 | 2 | 1 | 1 | 1 | 1 | 0 |" in lines
    assert "| `*P(x)` | 2 |" in lines
    assert lines[-1].startswith("2 models that are read have weights that Alchemy divides")

"""Any database that speaks plain SQL grounds the same models."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import hylift
from grounding.random_rules import RandomRules
from grounding.test_random_models import assert_same_density
from hylift.errors import ImpossibleEvidenceError, UnsupportedError
from hylift.grounding import World, ground_world
from hylift.grounding.engine import ENGINES
from hylift.language import parse

SOURCE = Path(hylift.__file__).parent

pytestmark = pytest.mark.filterwarnings("ignore::hylift.language.report.ModelWarning")


@pytest.mark.parametrize("chunk", range(4))
def test_a_second_engine_grounds_random_models_to_the_same_density(
    monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setitem(ENGINES, "sqlite", "grounding.sqlite_engine:SQLiteEngine")
    compared = 0
    for seed in range(20 * chunk, 20 * chunk + 20):
        case = RandomRules(seed).case()
        worlds = [
            World.of(case.model, case.evidence(), closed=case.closed, engine=engine)
            for engine in ("duckdb", "sqlite")
        ]
        try:
            expected = ground_world(worlds[0])
        except ImpossibleEvidenceError:
            with pytest.raises(ImpossibleEvidenceError):
                ground_world(worlds[1])
            continue

        actual = ground_world(worlds[1])

        assert actual.statistics() == expected.statistics()
        assert actual.graph.log_constant == pytest.approx(expected.graph.log_constant, rel=1e-12)
        assert_same_density(case, actual)
        compared += 1
    assert compared


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"unknown engine 'ducdb'.* Did you mean 'duckdb'"):
        World.of(parse("Boom\n1 Boom\n"), engine="ducdb")


def test_only_the_engine_imports_the_database() -> None:
    importing = [
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if "import duckdb" in path.read_text(encoding="utf-8")
    ]

    assert importing == ["grounding/duckdb_engine.py"]


def test_grounding_is_imported_without_the_database() -> None:
    code = "import sys, hylift.grounding; print('duckdb' in sys.modules)"

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout == "False\n"

"""`python -m experiments`: its options, its files, and its ways out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import hylift as hl
from experiments import measure
from experiments.measure import Run, seconds_until
from hylift.posterior import History

ROOT = Path(__file__).parents[2]


def command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "experiments", *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def test_help_shows_examples():
    ran = command("--help")

    assert ran.returncode == 0
    assert "python -m experiments all --out results" in ran.stdout


def test_an_experiment_prints_a_table_and_writes_files(tmp_path):
    ran = command("toy", "--quick", "--out", tmp_path)

    assert ran.returncode == 0, ran.stderr
    assert "Toy hybrid MLN (Table 1, Figure 1) (no evidence)" in ran.stdout
    assert "Q1 Do the variational methods give accurate MAP and marginals?" in ran.stdout
    content = json.loads((tmp_path / "toy.json").read_text())
    assert len(content["figures"]) == 24
    assert {path.suffix for path in tmp_path.iterdir()} == {".csv", ".json", ".png"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nothing"], "'nothing' is not one of"),
        (["toy", "--data", "nowhere"], "there is no folder 'nowhere'"),
        (["toy", "--variant", "other"], "'other' is not one of"),
        (["toy", "--out", "pyproject.toml"], "cannot be a folder for results"),
        (["rgm", "--data", "docs"], "docs/rgm/evidence_0.csv"),
    ],
)
def test_bad_input_is_a_line_on_the_error_stream(arguments, sentence):
    ran = command(*arguments)

    assert ran.returncode == 2
    assert sentence in ran.stderr
    assert "Traceback" not in ran.stderr


def posterior_of(objective: list[float]) -> hl.Posterior:
    """One whose run had this history, a step a second."""
    from dataclasses import replace

    import numpy as np

    graph = hl.FactorGraph.build({"a": hl.boolean}, [])
    found = hl.infer(graph, hl.BVI(1))
    steps = np.arange(1.0, len(objective) + 1)
    history = History(
        steps, np.array(objective), np.full(len(steps), 7), np.zeros(len(steps), np.int32)
    )
    solution = replace(found.solution, objective=objective[-1], history=history)
    return replace(found, solution=solution)


def test_near_is_a_thousandth_of_the_way_above_the_end_that_is_highest():
    runs = {
        "none": Run(hl.BVI(2), "none", posterior_of([1000.0, 5.0, 1.5, 0.0]), 4.0),
        "exact": Run(hl.BVI(2), "exact", posterior_of([1000.0, 2.5, 1.0]), 3.0),
    }

    found = measure.speed("", "BVI(2)", runs)

    assert (found.ground.near, found.lifted.near) == (3.0, 3.0)  # at most 1.999
    assert found.above_lowest == (0.0, 1.0)
    assert found.by_lifting == 1.0


def test_an_objective_that_rises_again_is_not_near_yet():
    history = posterior_of([9.0, 1.0, 5.0, 1.0]).solution.history

    assert history is not None
    assert seconds_until(history, 2.0) == 4.0
    assert seconds_until(history, 0.5) == float("inf")

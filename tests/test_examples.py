"""The examples run, and the commands that go with them give the exact answers."""

import json
import runpy
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from hylift.cli import main
from hylift.language import check, read_model

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
MODELS = sorted((EXAMPLES / "models").glob("*.mln"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_runs_and_prints_numbers(
    script: Path,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)

    runpy.run_path(str(script), run_name="__main__")

    printed = capsys.readouterr()
    assert any(letter.isdigit() for letter in printed.out)
    assert "nan" not in printed.out.lower().split()
    assert printed.err == ""


def test_two_data_frames_lift_what_is_rated_well(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "two_data_frames.py"), run_name="__main__")

    first, *lines = capsys.readouterr().out.splitlines()
    rows = [line.split() for line in lines if not line.strip().startswith(("paper", "topic"))]
    means = {row[0]: float(row[1]) for row in rows}
    assert first.startswith("Posterior(7 hidden variables, method exact, log Z = ")
    assert len(means) == 7
    assert max(means, key=lambda name: means[name]) == "lifting"
    assert min(means, key=lambda name: means[name]) == "survey"
    assert all(5 < mean < 8.5 for mean in means.values())


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_a_model_has_neither_errors_nor_warnings(path: Path) -> None:
    assert list(check(read_model(path))) == []


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with the examples in it."""
    folder = tmp_path / "project"
    shutil.copytree(EXAMPLES, folder / "examples")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def shared(project: Path, data_dir: Path) -> None:
    """The published data beside the project."""
    (project.parent / "shared").mkdir()
    (project.parent / "shared" / "data").symlink_to(data_dir, target_is_directory=True)


def answer(command: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The JSON that a command writes into the file it names last."""
    words = shlex.split(command)
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    result: dict[str, Any] = json.loads(Path(words[-1]).read_text(encoding="utf-8"))
    return result


def test_the_toy_has_its_exact_marginals(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = answer(
        "hylift infer examples/models/toy.mln --task marginals --output toy.json", monkeypatch
    )

    assert len(result["marginals"]) == 21
    for atom in ("posA(a0)", "posA(a1)"):
        assert result["marginals"][atom]["mean"] == pytest.approx(-0.486916, abs=1e-6)
        assert result["marginals"][atom]["var"] == pytest.approx(6.013026, abs=1e-6)


@pytest.mark.usefixtures("shared")
def test_the_recession_has_its_exact_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    result = answer(
        "hylift infer examples/models/rgm.mln --evidence ../shared/data/rgm/evidence_0.csv "
        "--output rgm.json",
        monkeypatch,
    )

    assert result["marginals"]["recession"]["mean"] == pytest.approx(0.164827734, abs=1e-8)
    assert result["log_partition"]["kind"] == "exact"


@pytest.mark.usefixtures("shared")
def test_the_papers_have_their_exact_map(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = answer(
        "hylift infer examples/models/papers.mln --evidence ../shared/data/papers/evidence_0.csv "
        "--unmatched ignore --task map --output papers.json",
        monkeypatch,
    )

    assert result["map"]["energy"] == pytest.approx(7425.860899, abs=1e-6)
    assert result["map"]["kind"] == "exact"
    assert capsys.readouterr().err == (
        "hylift: note: ../shared/data/papers/evidence_0.csv: 100 rows left out; the first, row "
        "1135: SameSession(t212, t275): 't212' is not a constant of type 'topic', which has t0 to "
        "t9\n"
    )


@pytest.mark.usefixtures("shared")
def test_the_robot_has_its_exact_map(monkeypatch: pytest.MonkeyPatch) -> None:
    result = answer(
        "hylift infer examples/models/robot.mln --evidence ../shared/data/robot/robot-map.db "
        "--closed Aligned --unmatched ignore --task map --output robot.json",
        monkeypatch,
    )

    best = result["map"]["assignment"]
    assert result["map"]["energy"] == pytest.approx(-5020.526558, abs=1e-6)
    assert result["map"]["kind"] == "exact"
    # Kinds of the segments: 34 walls, no doors, 3 others.
    kinds = [atom[-2] for atom, value in best.items() if atom[:7] == "SegType" and value == "true"]
    assert {kind: kinds.count(kind) for kind in "WDO"} == {"W": 34, "D": 0, "O": 3}

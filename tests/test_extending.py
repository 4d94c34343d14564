"""A toy solver, added as docs/extending.md says, is seen by the whole library.

The package under test is a copy made of links, with the three files that the page changes.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs_build.pages import snippets

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
DIFF = re.compile(r"^```diff\n--- (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MODEL = "coin = {a, b, c}\nHeads(coin)\n0.7 Heads(x) ^ Heads(y) where x != y\n-1 Heads(x)\n"


def edits() -> dict[Path, str]:
    """The new text of each file that the page changes, by its place in the repository."""
    found = {Path("src/hylift/inference/uniform.py"): snippets(PAGE)[0].code}
    for name, diff in re.findall(
        r"^```diff\n--- (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL
    ):
        lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
        at = -1
        for line in diff.splitlines():
            if line.startswith("+"):
                at += 1
                lines.insert(at, line[1:])
            else:
                assert lines.count(line[1:]) == 1, f"{name} has no line, or several, as {line!r}"
                at = lines.index(line[1:])
        found[Path(name)] = "\n".join(lines) + "\n"
    return found


def link(source: Path, target: Path, changed: dict[Path, str]) -> None:
    """Make a folder of links to all that `source` has, with the changed files in their place."""
    target.mkdir()
    names = {path.name for path in source.iterdir()} | {file.parts[0] for file in changed}
    for name in names - {"__pycache__"}:
        below = {file.relative_to(name): changed[file] for file in changed if file.parts[0] == name}
        if not below:
            (target / name).symlink_to(source / name)
        elif Path(".") in below:
            (target / name).write_text(below[Path(".")], encoding="utf-8")
        else:
            link(source / name, target / name, below)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the library that has the toy solver, and a model."""
    found = tmp_path_factory.mktemp("extended")
    package = Path("src/hylift")
    changed = {file.relative_to(package): text for file, text in edits().items()}
    link(ROOT / package, found / "hylift", changed)
    (found / "coins.mln").write_text(MODEL)
    return found


def run(folder: Path, *arguments: str) -> str:
    """What Python prints with the extended library."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_solver_is_three_files() -> None:
    assert len(edits()) <= 3


def test_infer_races_and_plots_have_it(folder: Path) -> None:
    script = """
import hylift as hl
from hylift.plot.race import _own_color
graph = hl.ground(hl.read_model("coins.mln"))
found = hl.infer(graph, hl.Uniform(20), checkpoint="run.ckpt")
assert hl.infer(graph, hl.Uniform(20), checkpoint="run.ckpt").compare(found).max_l1 == 0
race = hl.race(graph, ["exact", "uniform", "gibbs"], seconds=5)
print(found.solution.method, race["uniform(100)"].mean_kl < 1e-3, race["uniform(100)"].lift)
print("uniform" in [one.label.partition("(")[0] for one in hl.race(graph, seconds=1)])
drawn = [text.get_text() for ax in hl.plot_race(race) for text in ax.texts]
print("uniform(100)" in drawn, _own_color("uniform(100)") is not None)
hl.plot_convergence(found, path="convergence.png")
"""

    printed = run(folder, "-c", script)

    assert printed.splitlines() == ["uniform(20) True none", "True", "True True"]
    assert (folder / "convergence.png").exists()


def test_the_command_line_has_it_with_its_settings(folder: Path) -> None:
    help_text = run(folder, "-m", "hylift", "infer", "--help")
    infer = ("-m", "hylift", "infer", "coins.mln", "--method", "uniform")

    printed = run(folder, *infer, "--batches", "20", "--convergence", "steps.png")

    assert "--batches" in help_text
    assert "method uniform(20)" in printed
    assert "converged after 20 steps" in printed
    assert (folder / "steps.png").exists()


def test_the_warm_up_has_it(folder: Path) -> None:
    script = """
import hylift as hl, hylift.warm_up
ran = []
infer = hl.infer
hl.infer = lambda graph, method, **how: ran.append(method.name) or infer(graph, method, **how)
hylift.warm_up._run_each_method()
print("uniform(2)" in ran)
"""

    assert run(folder, "-c", script) == "True\n"

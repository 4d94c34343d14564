"""A toy solver and toy potentials, added as docs/extending.md says, are seen by the whole library.

The package under test is a copy made of links, with the three files that the page changes.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hylift as hl
from docs_build.pages import snippets
from hylift.inference import Method

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
from hylift.inference import Method
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


# Potentials


def potentials() -> dict[str, Any]:
    """The names that the page's section on potentials defines: two classes, and graphs of them."""
    code = next(s.code for s in snippets(PAGE) if "class Spring" in s.code)
    names: dict[str, Any] = {"dataclass": dataclass, "np": np, "hl": hl}
    exec(code, names)
    return names


def springs(page: dict[str, Any], num: int = 3) -> tuple[hl.FactorGraph, hl.FactorGraph]:
    """Points on springs from one centre, with the page's class and with quadratics."""
    points = [f"x{i}" for i in range(num)]
    domains = {"taut": hl.boolean, "centre": hl.real} | dict.fromkeys(points, hl.real)
    own = page["Spring"](np.array([[0.5, 1.0]]))
    form = own.quadratic()
    same = hl.ConditionalQuadratic(form.A, form.b, form.c)
    scopes = [["taut", "centre", x] for x in points]
    rest = [
        (hl.ConditionalQuadratic.gaussian([0.0], [[4.0]]), [[x] for x in points]),
        (hl.ConditionalQuadratic.gaussian([1.0], [[2.0]]), ["centre"]),
        (hl.Table.shared([0.0, 0.4]), ["taut"]),
    ]
    return tuple(
        hl.FactorGraph.build(domains, [(potential, scopes), *rest]).observe({"x0": 2.0})
        for potential in (own, same)
    )


@pytest.mark.parametrize(
    "method",
    [hl.Exact(), hl.BVI(2), hl.NPVI(2), hl.MeanField(), hl.EPBP(20), hl.Gibbs(draws=100)],
    ids=lambda method: method.name,
)
def test_a_new_potential_with_a_quadratic_form_has_closed_forms(method: Method) -> None:
    own, same = (
        hl.infer(graph, method, tasks=("marginals", "logz", "map"))
        for graph in springs(potentials())
    )

    assert same.compare(own).max_l1 <= 1e-10
    assert own.map().energy == pytest.approx(same.map().energy, abs=1e-10)
    assert own.log_partition == same.log_partition


def test_a_new_potential_of_gaussians_is_taken_by_gabp_and_the_filter() -> None:
    own, same = (graph.observe({"taut": True}) for graph in springs(potentials()))
    time = np.array([-1, 0, 0, 1, 2])

    found, wanted = (hl.infer(graph, hl.GaBP()) for graph in (own, same))
    filtered, expected = (hl.kalman_filter(graph, time) for graph in (own, same))

    assert wanted.compare(found).max_l1 <= 1e-10
    np.testing.assert_allclose(filtered.log_likelihood, expected.log_likelihood, atol=1e-10)


def test_a_new_potential_is_lifted_merged_and_raced() -> None:
    own, same = springs(potentials(), num=6)

    lifted, wanted = hl.lift(own), hl.lift(same)
    merged = hl.infer(hl.merge_factors(own.condition()), hl.Exact())
    race = hl.race(own, ["exact", "bvi", "maxwalksat"], seconds=5)

    assert lifted.graph.num_variables == wanted.graph.num_variables == 3
    assert merged.compare(hl.infer(same.condition(), hl.Exact())).max_l1 <= 1e-10
    assert race["exact"].posterior.log_partition.kind == "exact"
    assert len(race.finishes) == 3


@pytest.mark.parametrize(
    "method", [hl.Exact(), hl.BVI(2), hl.EPBP(20), hl.MaxWalkSAT(flips=50)], ids=lambda m: m.name
)
def test_a_new_potential_with_values_alone_is_solved_as_a_function(method: Method) -> None:
    page = potentials()
    weights = np.array([[1.0], [1.0]])
    function = hl.Function(lambda x, y, w: -w * np.abs(x - y), 0, 2, weights, symmetric=((0, 1),))
    bell = (hl.ConditionalQuadratic.squared_distance(0.5, [1.0], 3.0), ["left"])
    tasks = "map" if isinstance(method, hl.MaxWalkSAT) else ("marginals", "map")

    own, same = (
        hl.infer(
            hl.FactorGraph.build(page["places"], [(potential, page["pairs"]), bell]).observe(
                {"right": 6.0}
            ),
            method,
            tasks=tasks,
        )
        for potential in (page["Laplace"](weights), function)
    )

    assert own.map().energy == pytest.approx(same.map().energy, abs=1e-6)
    if tasks != "map":
        assert same.compare(own).max_l1 <= 1e-6


def test_a_discrete_new_potential_is_a_table_to_every_method() -> None:
    @dataclass(frozen=True, slots=True, eq=False)
    class Unequal(hl.Potential):
        flat: np.ndarray
        slot_states = (3, 3)

        def with_flat(self, flat: np.ndarray) -> "Unequal":
            return Unequal(flat)

        def log_value(self, row: Any, slots: Any) -> np.ndarray:
            return self.flat[row, 0] * (slots[0] != slots[1])

    colors = dict.fromkeys("abc", hl.categorical(3))
    unequal = Unequal(np.array([[1.2]]))
    table = hl.Table.shared(1.2 * (1 - np.eye(3)))
    own, same = (
        hl.FactorGraph.build(colors, [(p, [["a", "b"], ["b", "c"]])]).observe({"a": 1})
        for p in (unequal, table)
    )

    for method in (hl.Exact(), hl.BP(), hl.Gibbs(draws=100)):
        assert hl.infer(same, method).compare(hl.infer(own, method)).max_l1 <= 1e-12
    assert hl.infer(own, hl.Exact()).log_partition.kind == "exact"

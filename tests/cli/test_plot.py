"""`hylift plot` draws what `hylift infer --save` has kept."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import hylift.cli.commands.plot
from cli.conftest import Run, write_posteriors
from cli.test_bad_input import assert_refused
from hylift.plot import plot_convergence, plot_forest, plot_marginals
from hylift.posterior import Posterior

REALS = ("-q", "Popularity(*)", "-q", "Trend(*)")


@pytest.fixture
def kept(run: Run, folder: Path) -> Path:
    """The folder, with result.npz and other.npz in it."""
    write_posteriors(run)
    return folder


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
@pytest.mark.parametrize("kind", ["marginals", "forest", "convergence"])
def test_every_kind_of_figure_is_drawn(kind: str, ending: str, run: Run, kept: Path) -> None:
    chosen = () if kind == "convergence" else REALS

    ended = run("plot", "result.npz", "--kind", kind, *chosen, "-o", f"figure.{ending}")

    assert (ended.code, ended.err) == (0, "")
    assert ended.out == f"Figure: figure.{ending}\n"
    assert (kept / f"figure.{ending}").stat().st_size > 1000


def test_the_figure_is_that_of_the_library(run: Run, kept: Path) -> None:
    posterior = Posterior.load("result.npz")
    plot_marginals(posterior, path="marginals.png")
    plot_forest(posterior, ["Popularity(*)", "Trend(*)"], sort=True, path="forest.png")
    plot_convergence(posterior, path="convergence.png")

    run("plot", "result.npz", "-o", "a.png")
    run("plot", "result.npz", *REALS, "--kind", "forest", "--sort", "-o", "b.png")
    run("plot", "result.npz", "--kind", "convergence", "-o", "c.png")

    for name, drawn in (("marginals", "a"), ("forest", "b"), ("convergence", "c")):
        assert (kept / f"{drawn}.png").read_bytes() == (kept / f"{name}.png").read_bytes()


def test_a_figure_without_a_name_is_named_by_the_result_and_replaces_nothing(
    run: Run, kept: Path
) -> None:
    first = run("plot", "result.npz")
    content = (kept / "result-marginals.png").read_bytes()
    (kept / "result-marginals-2.png").write_text("precious")
    again = run("plot", "result.npz")

    assert first.out == "Figure: result-marginals.png\n"
    assert again.out == "Figure: result-marginals-3.png\n"
    assert (kept / "result-marginals-2.png").read_text() == "precious"
    assert (kept / "result-marginals-3.png").read_bytes() == content


def test_a_figure_with_a_name_is_replaced(run: Run, kept: Path) -> None:
    (kept / "a.png").write_text("old")

    run("plot", "result.npz", "-o", "a.png")

    assert (kept / "a.png").read_bytes().startswith(b"\x89PNG")


def write_many(run: Run, count: int) -> None:
    """many.npz: so many states that nothing ties to each other."""
    Path("many.uai").write_text(f"MARKOV {count} {'2 ' * count} 0")
    run("infer", "many.uai", "--save", "many.npz", "--quiet")


def test_many_marginals_are_a_forest(run: Run, folder: Path) -> None:
    write_many(run, 30)

    ended = run("plot", "many.npz")
    few = run("plot", "many.npz", "--query", "x1*")

    assert ended.out == "Figure: many-forest.png\n"
    assert few.out == "Figure: many-marginals.png\n"


@pytest.mark.parametrize(
    ("kind", "room"), [(None, 100), ("forest", 100), ("marginals", 24)], ids=str
)
def test_atoms_that_nobody_has_chosen_are_drawn_as_far_as_there_is_room(
    kind: str | None, room: int, run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_many(run, 120)
    seen = drawn_atoms(monkeypatch)
    chosen = () if kind is None else ("--kind", kind)

    ended = run("plot", "many.npz", *chosen, "-o", "a.png")
    quiet = run("plot", "many.npz", *chosen, "-o", "a.png", "--quiet")

    said = f"hylift: the figure has the first {room} of 120 atoms; choose with --query\n"
    assert (ended.code, ended.err) == (0, said)
    assert (quiet.code, quiet.err) == (0, "")
    assert seen == [f"x{i}" for i in range(room)] * 2


def test_a_forest_that_nobody_has_chosen_atoms_for_is_of_the_reals(
    run: Run, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = drawn_atoms(monkeypatch)

    ended = run("plot", "result.npz", "--kind", "forest", "-o", "a.png")

    assert ended.code == 0
    assert ended.err == "hylift: the figure has the 3 reals among 4 atoms; choose with --query\n"
    assert {name.partition("(")[0] for name in seen} == {"Trend", "Popularity"}
    assert "Popularity(P1)" not in seen  # it is observed


def drawn_atoms(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that gets the atoms of all figures."""
    seen: list[str] = []

    def spy(posterior: Posterior, atoms: list[str], **options: Any) -> None:
        seen.extend(atoms)

    for name in ("plot_forest", "plot_marginals"):
        monkeypatch.setattr(hylift.cli.commands.plot, name, spy)
    return seen


def test_a_predicate_is_drawn_with_its_atoms_in_the_order_of_the_query(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("infer", "papers.mln", "-e", "facts.db", "--save", "papers.npz", "--quiet")
    seen = drawn_atoms(monkeypatch)
    query = ("--query", "Trend", "--query", "Popularity")
    ended = run("plot", "papers.npz", "--kind", "forest", *query, "-o", "a.png")

    assert (ended.code, ended.err) == (0, "")
    predicates = [name.partition("(")[0] for name in seen]
    assert predicates == sorted(predicates, reverse=True)
    assert set(predicates) == {"Trend", "Popularity"}
    assert "Popularity(P1)" not in seen  # it is observed


def drawn_labels(monkeypatch: pytest.MonkeyPatch, run: Run, *results: object) -> list[str]:
    """Labels that a figure of these results has."""
    seen: list[str] = []

    def spy(posteriors: Mapping[str, Posterior], atoms: Any, **options: Any) -> None:
        seen.extend(posteriors)

    monkeypatch.setattr(hylift.cli.commands.plot, "plot_forest", spy)
    assert run("plot", *results, "--kind", "forest", *REALS, "-o", "spied.png").code == 0
    return seen


def test_several_results_are_drawn_over_each_other_with_their_names(
    run: Run, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (kept / "old").mkdir()
    (kept / "old" / "result.npz").write_bytes((kept / "result.npz").read_bytes())

    for files, expected in (
        (("result.npz", "other.npz"), ["result", "other"]),
        (("result.npz", "old/result.npz"), ["result", str(Path("old/result"))]),
        (("result.npz", "result.npz"), ["result", "result (2)"]),
    ):
        assert drawn_labels(monkeypatch, run, *files) == expected


@pytest.mark.parametrize("kind", ["marginals", "forest", "convergence"])
def test_two_results_make_one_figure(kind: str, run: Run, kept: Path) -> None:
    chosen = () if kind == "convergence" else REALS

    both = run("plot", "result.npz", "other.npz", "--kind", kind, *chosen, "-o", "both.png")
    run("plot", "result.npz", "--kind", kind, *chosen, "-o", "one.png")

    assert (both.code, both.err) == (0, "")
    assert (kept / "both.png").read_bytes() != (kept / "one.png").read_bytes()


REFUSED = {
    "nothing": ([], "Missing argument 'RESULT'. (see 'hylift plot --help')"),
    "missing": (["nowhere.npz"], "nowhere.npz: no such file\n"),
    "foreign": (["facts.db"], "facts.db: is not a saved posterior, or is damaged"),
    "damaged": (["damaged.npz"], "damaged.npz: is not a saved posterior, or is damaged"),
    "unknown kind": (
        ["result.npz", "--kind", "forrest"],
        "there is no kind of figure 'forrest': choose among marginals, forest, convergence. Did "
        "you mean 'forest'?\n",
    ),
    "figure in text": (
        ["result.npz", "-o", "a.txt"],
        "a.txt: a figure is written to a file in .png, .pdf, .svg\n",
    ),
    "figure in no folder": (["result.npz", "-o", "no/a.png"], "there is no folder 'no'\n"),
    "sorted marginals": (["result.npz", "--sort"], "--sort goes with --kind forest\n"),
    "query of steps": (
        ["result.npz", "--kind", "convergence", "-q", "x"],
        "--query is not for --kind convergence, which draws no atoms\n",
    ),
    "unknown atom": (["result.npz", "-q", "Trend(T9)"], "there is no variable 'Trend(T9)'."),
    "atom that one of them has not": (
        ["result.npz", "chain.npz", "-q", "Trend(T1)"],
        "chain.npz: there is no variable 'Trend(T1)'",
    ),
    "two kinds of atoms": (
        ["result.npz", "--kind", "forest", "-q", "*"],
        "is a real: name atoms of one kind with --query\n",
    ),
    "too many marginals": (
        ["many.npz", "--kind", "marginals", "-q", "x*"],
        "a figure shows 1 to 24 marginals, not 120: name some with --query, or draw a forest "
        "plot\n",
    ),
    "no steps": (["chain.npz", "--kind", "convergence"], "took no steps that could be drawn"),
}


@pytest.mark.parametrize(("arguments", "expected"), REFUSED.values(), ids=REFUSED)
def test_bad_input_is_refused_in_one_line(
    arguments: list[str], expected: str, run: Run, kept: Path
) -> None:
    run("infer", "model.uai", "--save", "chain.npz", "--quiet")
    write_many(run, 120)
    (kept / "damaged.npz").write_bytes((kept / "result.npz").read_bytes()[:500])
    before = sorted(kept.iterdir())

    ended = run("plot", *arguments)

    assert_refused(ended)
    assert expected in ended.err
    assert sorted(kept.iterdir()) == before

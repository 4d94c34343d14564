"""`hylift infer` with a method: what it says of itself, and which options go with it."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import CHAIN, Run

NAMES = {"bvi": "BVI(3)", "npvi": "NPVI(3)", "mean-field": "mean field"}

PAPERS = ("infer", "papers.mln", "-e", "facts.db")


def solved(run: Run, *arguments: object) -> dict[str, Any]:
    """The JSON that a run prints."""
    ended = run(*arguments, "-o", "-")
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def without_seconds(result: dict[str, Any]) -> dict[str, Any]:
    del result["solution"]["seconds"]
    return result


@pytest.fixture
def wide(folder: Path) -> Path:
    """A model of forty variables that are all tied to each other, in different ways: too wide for
    exact inference."""
    size = 40
    pairs = list(itertools.combinations(range(size), 2))
    scopes = " ".join(f"2 {a} {b}" for a, b in pairs)
    tables = " ".join(f"4 1.1 1 1 {1.1 + a / 1000}" for a, _ in pairs)
    path = folder / "wide.uai"
    path.write_text(f"MARKOV {size} {'2 ' * size} {len(pairs)} {scopes} {tables}")
    return path


@pytest.mark.parametrize("method", NAMES)
def test_a_method_is_named_and_says_how_it_ended(method: str, run: Run, folder: Path) -> None:
    result = solved(run, *PAPERS, "--method", method)

    assert result["method"] == NAMES[method]
    solution = result["solution"]
    assert solution["result"] == "converged"
    assert isinstance(solution["steps"], int)
    assert solution["num_classes"] >= 3
    assert result["log_partition"]["kind"] in ("lower bound", "estimate")
    assert result["log_partition"]["error"] >= 0


def test_exact_inference_has_no_classes(run: Run, folder: Path) -> None:
    assert solved(run, *PAPERS, "--method", "exact")["solution"]["num_classes"] is None


@pytest.mark.parametrize("method", NAMES)
def test_a_bound_of_a_chain_is_below_its_log_z(method: str, run: Run, folder: Path) -> None:
    exact = solved(run, "infer", "model.uai", "-m", "exact", "-t", "logz")["log_partition"]

    found = solved(run, "infer", "model.uai", "-m", method, "-t", "logz")["log_partition"]

    assert found["kind"] == "lower bound"
    assert found["value"] <= exact["value"] + found["error"] + 1e-10


@pytest.mark.parametrize("method", NAMES)
@pytest.mark.parametrize("arguments", [["infer", "model.uai"], [*PAPERS]], ids=["uai", "mln"])
def test_every_method_finds_the_best_assignment(
    arguments: list[str], method: str, run: Run, folder: Path
) -> None:
    exact = solved(run, *arguments, "-m", "exact", "--task", "map")["map"]

    found = solved(run, *arguments, "-m", method, "--task", "map")["map"]

    assert found["energy"] == pytest.approx(exact["energy"], abs=1e-6)
    assert found["kind"] == "estimate"


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["--method", "bvi", "--components", 5], "BVI(5)"),
        (["-m", "npvi", "-k", 2], "NPVI(2)"),
        (["-m", "bvi", "--restarts", 2, "--max-steps", 500, "--reals", "gaussian"], "BVI(3)"),
        (["-m", "mean-field", "--restarts", 1, "--seconds", 60], "mean field"),
        (["-m", "bvi", "--lift", "none"], "BVI(3)"),
        (["-m", "bvi", "--lift", "coarse-to-fine"], "BVI(3)"),
    ],
)
def test_settings_reach_the_method(
    arguments: list[object], name: str, run: Run, folder: Path
) -> None:
    result = solved(run, *PAPERS, *arguments)

    assert result["method"] == name
    assert result["solution"]["result"] == "converged"


def test_adam_takes_a_learning_rate(run: Run, folder: Path) -> None:
    adam = ["--optimiser", "adam", "--learning-rate", 0.05, "--max-steps", 50]

    result = solved(run, *PAPERS, "-m", "bvi", *adam)

    natural = solved(run, *PAPERS, "-m", "bvi")
    # Adam is not at the optimum after fifty steps, but on its way.
    value = result["log_partition"]["value"]
    assert value == pytest.approx(natural["log_partition"]["value"], abs=0.5)
    assert value != natural["log_partition"]["value"]


def test_lifting_solves_look_alikes_once(run: Run, folder: Path) -> None:
    smokers = ["infer", "smokers.mln", "-m", "bvi", "-t", "logz"]

    ground = solved(run, *smokers, "--lift", "none")["solution"]
    lifted = solved(run, *smokers, "--lift", "exact")["solution"]

    # Two people and the friendships between them; those with oneself are in no rule.
    assert ground["num_classes"] == 4
    assert lifted["num_classes"] == 2


def test_one_seed_gives_one_answer(run: Run, folder: Path) -> None:
    first, second = (
        without_seconds(solved(run, *PAPERS, "-m", "bvi", "--seed", 3)) for _ in range(2)
    )

    assert first == second


def test_auto_says_that_exact_inference_is_cheap(run: Run, folder: Path) -> None:
    ended = run("infer", "model.uai")

    assert ended.code == 0
    assert "method exact" in ended.out
    assert "Note: Exact inference was chosen, because it is cheap here." in ended.out.splitlines()


def test_auto_says_why_it_is_not(run: Run, wide: Path) -> None:
    result = solved(run, "infer", "wide.uai")

    assert result["method"] == "SMC"
    note = result["solution"]["notes"][0]
    assert note.startswith("SMC was chosen, because exact inference is not cheap here: ")
    assert "width 39" in note


def test_the_screen_says_how_inference_ended(run: Run, folder: Path) -> None:
    ended = run("infer", "model.uai", "-e", "model.uai.evid", "-m", "npvi")

    first, second, third, *_ = ended.out.splitlines()
    assert first.startswith(f"model.uai: {CHAIN} variables, 1 observed; method NPVI(3), ")
    assert second.startswith("converged after ")
    assert second.endswith(f" steps, {CHAIN - 1} classes of variables")
    assert third.startswith("log Z = ")
    assert third.endswith(" (lower bound)")


def test_too_few_steps_and_too_little_time_are_no_errors(run: Run, wide: Path) -> None:
    bvi = ["infer", "wide.uai", "-m", "bvi", "-k", 2, "--lift", "none"]

    few = run(*bvi, "--max-steps", 1)
    late = run(*bvi, "--seconds", 1e-6)

    assert (few.code, late.code) == (0, 0)
    assert few.out.splitlines()[1].startswith("not converged after ")
    assert late.out.splitlines()[1].startswith("out of time after ")


def test_a_saved_posterior_is_a_start(run: Run, folder: Path) -> None:
    first = run(*PAPERS, "-m", "bvi", "-k", 2, "--save", "earlier.npz")

    again = solved(run, *PAPERS, "-m", "bvi", "--start", "earlier.npz")

    assert first.out.splitlines()[-1] == "Posterior: earlier.npz"
    assert again["method"] == "BVI(2)"
    assert again["solution"]["result"] == "converged"
    assert again["solution"]["steps"] <= 30


def test_figures_are_drawn(run: Run, folder: Path) -> None:
    ended = run(*PAPERS, "-m", "bvi", "--figure", "marginals.png", "--convergence", "way.svg")

    assert ended.code == 0
    assert ended.out.splitlines()[-2:] == ["Figure: marginals.png", "Convergence: way.svg"]
    assert (folder / "marginals.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / "way.svg").read_text()


VARIATIONAL = "mean-field, bvi or npvi"
LIFTING = "mean-field, bvi, npvi, bp, gabp, epbp or ep"
STEPPING = "mean-field, bvi, npvi, bp, gabp, epbp, ep or mini-buckets"
TIMED = "mean-field, bvi, npvi, bp, gabp, epbp, ep, gibbs, smc, maxwalksat or mini-buckets"

REFUSED = {
    "another method": (
        ["--method", "BVI"],
        "there is no method 'BVI': choose among auto, exact, mean-field, bvi, npvi, bp, gabp, "
        "epbp, ep, gibbs, smc, maxwalksat, mini-buckets. Did you mean 'bvi'?",
    ),
    "components of exact": (
        ["-m", "exact", "--components", 3],
        "--components is for --method bvi or npvi, not for exact",
    ),
    "components of auto": (
        ["--components", 3],
        "--components is for --method bvi or npvi, not for auto",
    ),
    "components of mean field": (
        ["-m", "mean-field", "-k", 3],
        "--components is for --method bvi or npvi, not for mean-field",
    ),
    "no components": (
        ["-m", "bvi", "-k", 0],
        "--components must be an integer of at least 1, not 0",
    ),
    "restarts of exact": (
        ["-m", "exact", "--restarts", 3],
        "--restarts is for --method mean-field, bvi, npvi or maxwalksat, not for exact",
    ),
    "steps of exact": (
        ["-m", "exact", "--max-steps", 3],
        f"--max-steps is for --method {STEPPING}, not for exact",
    ),
    "lifting of exact": (
        ["-m", "exact", "--lift", "none"],
        f"--lift is for --method auto, {LIFTING}, not for exact",
    ),
    "time of exact": (
        ["-m", "exact", "--seconds", 3],
        f"--seconds is for --method auto, {TIMED}, not for exact",
    ),
    "no time": (["--seconds", 0], "--seconds must be a positive number, not 0"),
    "optimiser of auto": (
        ["--optimiser", "adam"],
        f"--optimiser is for --method {VARIATIONAL}, not for auto",
    ),
    "another optimiser": (
        ["-m", "bvi", "--optimiser", "adma"],
        "there is no optimiser 'adma': choose among natural, adam. Did you mean 'adam'?",
    ),
    "rate of another optimiser": (
        ["-m", "bvi", "--learning-rate", 0.1],
        "--learning-rate is for --optimiser adam",
    ),
    "no rate": (
        ["-m", "bvi", "--optimiser", "adam", "--learning-rate", 0],
        "a learning rate is positive, not 0.0",
    ),
    "another lifting": (
        ["-m", "bvi", "--lift", "coarse"],
        "there is no lift 'coarse': choose among exact, coarse-to-fine, none.",
    ),
    "another family": (
        ["-m", "bvi", "--reals", "gaussians"],
        "there is no family of reals 'gaussians': choose among auto, gaussian, beta. Did you mean "
        "'gaussian'?",
    ),
    "convergence of auto": (
        ["--convergence", "way.png"],
        "--convergence is for --method mean-field, bvi, npvi, bp, gabp, epbp, ep, maxwalksat or "
        "mini-buckets, not for auto",
    ),
    "convergence in text": (
        ["-m", "bvi", "--convergence", "way.txt"],
        "way.txt: a figure is written to a file in .png, .pdf, .svg",
    ),
    "figure of no marginals": (
        ["--figure", "some.png", "--task", "map"],
        "--figure draws marginals: ask for the task 'marginals' too",
    ),
    "two in one": (
        ["-m", "bvi", "--figure", "some.png", "--convergence", "./some.png"],
        "some.png: would be written twice; name two files",
    ),
    "saved as text": (["--save", "p.json"], "p.json: a posterior is written to a file in .npz"),
    "start of exact": (
        ["-m", "exact", "--start", "p.npz"],
        "--start is for --method mean-field, bvi, npvi, smc or maxwalksat, not for exact",
    ),
    "no start": (["-m", "bvi", "--start", "nowhere.npz"], "nowhere.npz: no such file"),
    "start that is none": (
        ["-m", "bvi", "--start", "facts.db"],
        "facts.db: is not a saved posterior, or is damaged",
    ),
}


@pytest.mark.parametrize(("arguments", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_options_that_do_not_fit_are_refused_in_one_line(
    arguments: list[object], expected: str, run: Run, folder: Path
) -> None:
    before = sorted(folder.iterdir())

    ended = run(*PAPERS, *arguments)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"hylift: {expected}")
    assert ended.err.count("\n") == 1
    assert sorted(folder.iterdir()) == before


def test_a_figure_has_the_first_variables_and_says_so(run: Run, wide: Path) -> None:
    first = [word for i in range(24) for word in ("-q", f"x{i}")]

    ended = run("infer", "wide.uai", "--figure", "all.png")
    few = run("infer", "wide.uai", "--figure", "few.png", *first)
    quiet = run("infer", "wide.uai", "--figure", "quiet.png", "--quiet")

    said = "hylift: the figure has the first 24 of 40 atoms; choose with --query\n"
    assert (ended.code, ended.err) == (0, said)
    assert (few.code, few.err) == (0, "")
    assert (quiet.code, quiet.err) == (0, "")
    assert Path("all.png").read_bytes() == Path("few.png").read_bytes()


def test_exact_answers_are_no_start(run: Run, folder: Path) -> None:
    run(*PAPERS, "-m", "exact", "--save", "exact.npz")

    ended = run(*PAPERS, "-m", "bvi", "--start", "exact.npz")

    assert ended.code == 2
    assert ended.err == (
        "hylift: a warm start needs the posterior of BVI, NPVI or MeanField, not one of 'exact'\n"
    )


def test_a_saved_posterior_may_be_allowed_more_memory(run: Run, folder: Path) -> None:
    assert run(*PAPERS, "-m", "bvi", "--max-steps", "2", "--save", "p.npz").code == 0

    refused = run(*PAPERS, "-m", "bvi", "--start", "p.npz", "--max-bytes", "1000")
    drawn = run("plot", "p.npz", "--max-bytes", "100000000")

    assert refused.code == 2
    assert "and at most 1,000 are read: if you trust the file, allow more with --max" in refused.err
    assert drawn.code == 0

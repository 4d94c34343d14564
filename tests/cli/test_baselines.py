"""`hylift infer` with message passing, sampling and local search."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import CHAIN, Run

CHAIN_MODEL = ("infer", "model.uai", "-e", "model.uai.evid")
PAPERS = ("infer", "papers.mln", "-e", "facts.db")
LEVELS = ("infer", "levels.mln", "-e", "levels.csv")

NAMES = {"bp": "BP", "gabp": "GaBP", "epbp": "EPBP(50)", "ep": "EP", "gibbs": "Gibbs"}


@pytest.fixture
def levels(folder: Path) -> Path:
    """Reals about a common one, of which one is observed."""
    rules = [
        "month = {m0, m1, m2}",
        "x(month): real",
        "level: real",
        "normal(x(t) | level, 2)",
        "normal(level | 1, 4)",
        "",
    ]
    (folder / "levels.mln").write_text("\n".join(rules))
    (folder / "levels.csv").write_text("predicate,arg1,value\nx,m0,3.5\n")
    return folder


def solved(run: Run, *arguments: object) -> dict[str, Any]:
    """The JSON that a run prints."""
    ended = run(*arguments, "-o", "-")
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def test_belief_propagation_is_exact_on_a_chain(run: Run, folder: Path) -> None:
    exact = solved(run, *CHAIN_MODEL, "-m", "exact")

    found = solved(run, *CHAIN_MODEL, "-m", "bp")

    assert found["method"] == "BP"
    assert found["solution"]["result"] == "converged"
    assert found["solution"]["num_classes"] == CHAIN - 1
    assert found["log_partition"]["value"] == pytest.approx(
        exact["log_partition"]["value"], abs=1e-9
    )
    for name, marginal in exact["marginals"].items():
        assert found["marginals"][name]["probs"] == pytest.approx(marginal["probs"], abs=1e-9)


def test_gaussian_belief_propagation_is_exact_on_a_tree(run: Run, levels: Path) -> None:
    exact = solved(run, *LEVELS, "-m", "exact")

    found = solved(run, *LEVELS, "-m", "gabp")

    assert found["method"] == "GaBP"
    for name, marginal in exact["marginals"].items():
        assert found["marginals"][name]["mean"] == pytest.approx(marginal["mean"], abs=1e-9)
        assert found["marginals"][name]["std"] == pytest.approx(marginal["std"], abs=1e-9)


@pytest.mark.parametrize("method", ["epbp", "gibbs"])
def test_particles_and_draws_come_near_on_a_hybrid_model(
    method: str, run: Run, folder: Path
) -> None:
    exact = solved(run, *PAPERS, "-m", "exact")

    found = solved(run, *PAPERS, "-m", method)

    assert found["method"] == NAMES[method]
    for name, marginal in exact["marginals"].items():
        # Estimates by random numbers: four thousand draws have an error of some hundredths.
        key = "mean" if "mean" in marginal else "probs"
        assert found["marginals"][name][key] == pytest.approx(marginal[key], abs=0.3)


def test_search_answers_the_task_map_by_itself(run: Run, folder: Path) -> None:
    exact = solved(run, *PAPERS, "-m", "exact", "-t", "map")

    found = solved(run, *PAPERS, "-m", "maxwalksat", "--flips", 2000)

    assert set(found) == {"model", "method", "seed", "map", "trust", "solution"}
    assert found["map"]["energy"] == pytest.approx(exact["map"]["energy"], abs=1e-6)


def test_the_screen_shows_the_assignment_of_a_search(run: Run, folder: Path) -> None:
    ended = run(*PAPERS, "-m", "maxwalksat", "--flips", 500, "--restarts", 2)

    assert ended.code == 0, ended.err
    assert "method MaxWalkSAT" in ended.out
    assert "MAP energy = " in ended.out
    assert "log Z" not in ended.out


def test_draws_have_no_log_z_and_say_so(run: Run, folder: Path) -> None:
    found = solved(run, *CHAIN_MODEL, "-m", "gibbs", "--draws", 200)

    assert "log_partition" not in found
    assert "marginals" in found


@pytest.mark.parametrize(
    "arguments",
    [
        ["-m", "bp", "--damping", 0.3, "--schedule", "residual", "--max-steps", 500],
        ["-m", "bp", "--lift", "none", "--seconds", 20],
        ["-m", "epbp", "--particles", 20, "--damping", 0.1],
        ["-m", "gibbs", "--chains", 2, "--draws", 300, "--seconds", 20],
    ],
)
def test_settings_reach_the_method(arguments: list[object], run: Run, folder: Path) -> None:
    found = solved(run, *CHAIN_MODEL, *arguments)

    assert len(found["marginals"]) == CHAIN - 1


def test_the_number_of_particles_is_in_the_name(run: Run, levels: Path) -> None:
    assert solved(run, *LEVELS, "-m", "epbp", "--particles", 20)["method"] == "EPBP(20)"


@pytest.mark.parametrize("method", ["bp", "maxwalksat"])
def test_the_way_of_a_method_with_steps_is_drawn(method: str, run: Run, folder: Path) -> None:
    ended = run(*CHAIN_MODEL, "-m", method, "--convergence", "way.png")

    assert ended.code == 0, ended.err
    assert (folder / "way.png").read_bytes().startswith(b"\x89PNG")


def test_a_model_that_a_method_cannot_take_is_refused_with_the_reason(
    run: Run, folder: Path
) -> None:
    ended = run(*PAPERS, "-m", "bp")

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("hylift: BP is for discrete variables, and '")


MESSAGES = "bp, gabp, epbp or ep"

REFUSED = {
    "marginals of a search": (
        ["-m", "maxwalksat", "-t", "marginals"],
        "--method maxwalksat does not answer the task 'marginals', only map",
    ),
    "log Z of draws": (
        ["-m", "gibbs", "-t", "logz"],
        "--method gibbs does not answer the task 'logz', only marginals and map",
    ),
    "UAI's log Z of draws": (
        ["-m", "gibbs", "-o", "x.PR"],
        "--method gibbs does not answer the task 'logz', only marginals and map",
    ),
    "figure of a search": (
        ["-m", "maxwalksat", "--figure", "some.png"],
        "--figure draws marginals: ask for the task 'marginals' too",
    ),
    "damping of bvi": (
        ["-m", "bvi", "--damping", 0.1],
        f"--damping is for --method {MESSAGES}, not for bvi",
    ),
    "too much damping": (["-m", "bp", "--damping", 1.5], "--damping "),
    "schedule of gabp": (
        ["-m", "gabp", "--schedule", "flooding"],
        "--schedule is for --method bp, not for gabp",
    ),
    "another schedule": (["-m", "bp", "--schedule", "resdual"], "there is no schedule 'resdual'"),
    "particles of gibbs": (
        ["-m", "gibbs", "--particles", 10],
        "--particles is for --method epbp or smc, not for gibbs",
    ),
    "chains of bp": (["-m", "bp", "--chains", 2], "--chains is for --method gibbs, not for bp"),
    "no draws": (["-m", "gibbs", "--draws", 0], "--draws must be an integer"),
    "flips of bp": (["-m", "bp", "--flips", 2], "--flips is for --method maxwalksat, not for bp"),
    "lifting of draws": (
        ["-m", "gibbs", "--lift", "none"],
        "--lift is for --method auto, mean-field, bvi, npvi, bp, gabp, epbp or ep, not for gibbs",
    ),
    "convergence of draws": (
        ["-m", "gibbs", "--convergence", "way.png"],
        "--convergence is for --method mean-field, bvi, npvi, bp, gabp, epbp, ep, maxwalksat or "
        "mini-buckets, not for gibbs",
    ),
}


@pytest.mark.parametrize(("arguments", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_options_that_do_not_fit_are_refused_before_any_work(
    arguments: list[object], expected: str, run: Run, folder: Path
) -> None:
    ended = run("infer", "nowhere.uai", *arguments)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"hylift: {expected}")


def test_mini_buckets_give_an_interval_for_log_z(run: Run, folder: Path) -> None:
    pairs = [(a, b) for b in range(6) for a in range(b)]
    lines = ["MARKOV", "6", "2 " * 6, str(len(pairs)), *(f"2 {a} {b}" for a, b in pairs)]
    lines += [f"4\n{1 + a} 1 2 {3 + b}" for a, b in pairs]
    (folder / "complete.uai").write_text("\n".join(lines))
    complete = ("infer", "complete.uai", "-t", "logz")
    exact = solved(run, *complete, "-m", "exact")["log_partition"]["value"]

    found = solved(run, *complete, "-m", "mini-buckets", "--max-entries", 8)["log_partition"]
    shown = run(*complete, "-m", "mini-buckets", "--max-entries", 8)

    assert found["kind"] == "interval"
    assert found["lower"] < exact < found["upper"]
    assert found["value"] == pytest.approx((found["lower"] + found["upper"]) / 2)
    line = next(line for line in shown.out.splitlines() if line.startswith("log Z"))
    assert line == f"log Z = {found['lower']:.10g} to {found['upper']:.10g} (interval)"

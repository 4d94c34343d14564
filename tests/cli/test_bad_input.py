"""Bad input ends with exit code 2 and one line that says what to do."""

import itertools
import logging
from pathlib import Path

import pytest

import hylift.cli.commands.infer
from cli.conftest import Ended, Run
from formats.mutations import EVIDENCE, MODELS, QUERIES, Mutator


def assert_refused(ended: Ended) -> None:
    """Exit code 2, one line on stderr, nothing on stdout."""
    assert ended.code == 2
    assert ended.out == ""
    assert ended.err.startswith("hylift: ")
    assert ended.err.endswith("\n")
    assert ended.err[:-1].isprintable()


REFUSED = {
    "no model": (["infer"], "Missing argument 'MODEL'. (see 'hylift infer --help')"),
    "two models": (["infer", "model.uai", "other.uai"], "unexpected extra argument"),
    "unknown command": (["inferr", "model.uai"], "No such command 'inferr'"),
    "unknown option": (["infer", "model.uai", "--bogus"], "No such option: --bogus"),
    "option cut short": (["infer", "model.uai", "--evidenc", "e"], "--evidence"),
    "option without value": (["infer", "model.uai", "--task"], "'--task' requires an argument"),
    "bad seed": (["infer", "model.uai", "--seed", "a"], "'--seed'"),
    "missing": (["infer", "nowhere.uai"], "hylift: nowhere.uai: no such file\n"),
    "folder": (["infer", "folder.uai"], "folder.uai: is a directory, not a file"),
    "other kind of model": (
        ["infer", "model.txt"],
        "model.txt: models are read from files that end in .mln or .uai",
    ),
    "broken model": (["infer", "broken.uai"], "broken.uai:2:1: the file should end"),
    "binary model": (["infer", "binary.uai"], "binary.uai:1:1: not a text file: byte 0xff"),
    "missing evidence": (
        ["infer", "model.uai", "--evidence", "nowhere.evid"],
        "nowhere.evid: no such file",
    ),
    "broken evidence": (
        ["infer", "model.uai", "--evidence", "broken.evid"],
        "broken.evid:2:3: x0 has the states 0 to 1, not 2",
    ),
    "unknown method": (
        ["infer", "model.uai", "--method", "exct"],
        "there is no method 'exct': choose among auto, exact, mean-field, bvi, npvi, bp, gabp, "
        "epbp, ep, gibbs, smc, maxwalksat, mini-buckets. Did you mean 'exact'?",
    ),
    "unknown task": (
        ["infer", "model.uai", "--task", "marginal"],
        "there is no task 'marginal': choose among marginals, logz, map. Did you mean 'marginals'?",
    ),
    "one unknown task": (["infer", "model.uai", "-t", "map,lgz"], "no task 'lgz'"),
    "empty task": (["infer", "model.uai", "-t", "map,"], "there is no task ''"),
    "unknown name": (
        ["infer", "model.uai", "--query", "x12"],
        "there is no variable 'x12'. Names here are x0 to x11.",
    ),
    "unknown pattern": (["infer", "model.uai", "--query", "y*"], "no variable matches 'y*'"),
    "pattern that is no text": (
        ["infer", "model.uai", "-q", "\udcff*"],
        "no variable matches '�*'",
    ),
    "missing query": (["infer", "model.uai", "--query", "no.query"], "no.query: no such file"),
    "broken query": (
        ["infer", "model.uai", "--query", "broken.query"],
        "broken.query:2:1: there is no variable 12: the model has 12 (0 to 11)",
    ),
    "unknown ending": (
        ["infer", "model.uai", "--output", "out.xyz"],
        "out.xyz: a result is written to a file in .json, .csv, .parquet, .nc, .MAR, .PR, .MPE, "
        "or '-'\n",
    ),
    "ending with a slip": (
        ["infer", "model.uai", "--output", "out.parqet"],
        ".MPE, or '-'. Did you mean '.parquet'?\n",
    ),
    "no ending": (["infer", "model.uai", "--output", "out"], "out: a result is written to"),
    "missing folder": (
        ["infer", "model.uai", "--output", "missing/out.json"],
        "missing/out.json: cannot be written: there is no folder 'missing'",
    ),
    "output is a folder": (
        ["infer", "model.uai", "--output", "folder.uai"],
        "folder.uai: cannot be written: it is a folder",
    ),
    "task that the output cannot hold": (
        ["infer", "model.uai", "--task", "map", "--output", "out.MAR"],
        "out.MAR: such a file holds the task 'marginals', not map",
    ),
    "log Z in a table": (
        ["infer", "model.uai", "--task", "logz", "--output", "out.csv"],
        "out.csv: a table holds marginals or the MAP assignment, not the task 'logz'",
    ),
    "query of a file that holds all": (
        ["infer", "model.uai", "--query", "x1", "--output", "out.MAR"],
        "out.MAR: such a file holds all variables, so it takes no --query",
    ),
    "impossible evidence": (
        ["infer", "impossible.uai"],
        "no joint state is possible: the hard constraints and the evidence contradict",
    ),
    "evidence that breaks a constraint": (
        ["infer", "clause.uai", "--evidence", "clause.evid"],
        "the evidence breaks a hard constraint: all variables of 1 factors of group 'clause.uai'",
    ),
    "unknown kind of figure": (
        ["demo", "--figure", "a.xyz"],
        "a.xyz: a figure is written to a file in .png, .pdf, .svg\n",
    ),
    "figure in a missing folder": (["demo", "--figure", "missing/a.png"], "no folder 'missing'"),
}


@pytest.mark.parametrize(("arguments", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_bad_input_is_refused_in_one_line(
    arguments: list[str], expected: str, run: Run, folder: Path
) -> None:
    (folder / "folder.uai").mkdir()
    (folder / "broken.uai").write_text("MARKOV 1 2 0\n7\n")
    (folder / "binary.uai").write_bytes(b"\xff\xfe\x00")
    (folder / "broken.evid").write_text("1\n0 2\n")
    (folder / "broken.query").write_text("1\n12\n")
    (folder / "impossible.uai").write_text("MARKOV 1 2 1 1 0 2 0 0")
    (folder / "clause.uai").write_text("MARKOV 2 2 2 1 2 0 1 4 0 1 1 1")
    (folder / "clause.evid").write_text("2 0 0 1 0")

    ended = run(*arguments)

    assert_refused(ended)
    assert expected in ended.err


def test_a_model_that_is_too_wide_is_refused_with_its_width(run: Run, folder: Path) -> None:
    size = 40
    pairs = list(itertools.combinations(range(size), 2))
    scopes = " ".join(f"2 {a} {b}" for a, b in pairs)
    tables = " ".join(f"4 1 {2 + a / 100} {2 + b / 100} 1" for a, b in pairs)
    (folder / "wide.uai").write_text(f"MARKOV {size} {'2 ' * size} {len(pairs)} {scopes} {tables}")

    ended = run("infer", "wide.uai", "--method", "exact")

    assert_refused(ended)
    assert "exact elimination of these 40 variables has width 39" in ended.err
    assert "2^40.0 entries" in ended.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["infer", "broken.uai"],
        ["infer", "model.uai", "--evidence", "nowhere.evid"],
        ["infer", "model.uai", "--query", "y"],
        ["infer", "impossible.uai"],
    ],
)
def test_an_output_stays_as_it_was_when_the_run_fails(
    arguments: list[str], run: Run, folder: Path
) -> None:
    (folder / "broken.uai").write_text("MARKOV")
    (folder / "impossible.uai").write_text("MARKOV 1 2 1 1 0 2 0 0")
    (folder / "out.json").write_text("precious")
    before = sorted(folder.iterdir())

    ended = run(*arguments, "--output", "out.json")

    assert_refused(ended)
    assert (folder / "out.json").read_text() == "precious"
    assert sorted(folder.iterdir()) == before


def test_a_bad_output_is_found_before_any_work(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hylift.cli.commands.infer, "infer", None)

    ended = run("infer", "model.uai", "--output", "missing/out.json")

    assert_refused(ended)
    assert "missing" in ended.err


def test_an_interrupt_ends_with_130_and_no_traceback(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(hylift.cli.commands.infer, "infer", interrupted)

    ended = run("infer", "model.uai", "--output", "out.json")

    assert (ended.code, ended.out, ended.err) == (130, "", "hylift: interrupted\n")
    assert not (folder / "out.json").exists()


def test_a_lack_of_memory_is_told_in_one_line(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_large(*arguments: object, **options: object) -> None:
        raise MemoryError

    monkeypatch.setattr(hylift.cli.commands.infer, "infer", too_large)

    ended = run("infer", "model.uai")

    assert_refused(ended)
    assert "not enough memory" in ended.err


@pytest.mark.parametrize(("arguments", "notices"), [([], 1), (["--quiet"], 0)])
def test_quiet_also_silences_notices(
    arguments: list[str],
    notices: int,
    run: Run,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    solve = hylift.cli.commands.infer.infer

    def announced(*arguments: object, **options: object) -> object:
        logging.getLogger("hylift").warning("this takes a while")
        return solve(*arguments, **options)

    monkeypatch.setattr(hylift.cli.commands.infer, "infer", announced)

    ended = run("infer", "model.uai", *arguments)

    assert ended.code == 0
    assert len(caplog.records) == notices


def test_broken_files_never_show_a_traceback(run: Run, folder: Path) -> None:
    mutator = Mutator(5)
    codes = []

    for _ in range(60):
        (folder / "m.uai").write_bytes(mutator.mutated(MODELS))
        (folder / "m.evid").write_bytes(mutator.mutated(EVIDENCE))
        (folder / "m.query").write_bytes(mutator.mutated(QUERIES))
        model = mutator.rng.choice(["m.uai", "model.uai"])
        evidence = mutator.rng.choice([["-e", "m.evid"], []])
        query = mutator.rng.choice([["-q", "m.query"], []])
        ended = run("infer", model, *evidence, *query, "-t", "marginals,logz,map")
        codes.append(ended.code)
        if ended.code == 0:
            assert ended.err == ""
        else:
            assert_refused(ended)

    assert {0, 2} == set(codes)

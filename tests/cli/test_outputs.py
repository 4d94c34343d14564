"""Outputs of all commands: what they hold, and that nothing is lost where one cannot be written."""

import errno
import io
import json
import os
import sys
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import hylift.cli.outputs
import hylift.files
from cli.conftest import Run, write_posteriors
from cli.test_check import DOUBTFUL, WRONG
from hylift.cli.render import print_table
from hylift.posterior.datasets import extra
from hylift.words import TextTable

EVIDENCE = ("papers.mln", "-e", "facts.db")
INFER = ("infer", *EVIDENCE, "-m", "bvi")

WRITTEN = {
    "check": (("check", "papers.mln"), "-o", "out.json"),
    "certificate": (("check", *EVIDENCE, "--bethe"), "-o", "out.json"),
    "counts": (("ground", *EVIDENCE), "-o", "out.json"),
    "table of counts": (("ground", *EVIDENCE), "-o", "out.csv"),
    "ground model": (("ground", "smokers.mln"), "-o", "out.uai"),
    "explanation": (("explain", *EVIDENCE), "-o", "out.json"),
    "classes": (("explain", *EVIDENCE), "-o", "out.parquet"),
    "picture of classes": (("explain", *EVIDENCE), "--figure", "out.png"),
    "result": (INFER, "-o", "out.json"),
    "marginals": (INFER, "-o", "out.parquet"),
    "UAI result": (("infer", "model.uai"), "-o", "out.MAR"),
    "posterior": (INFER, "--save", "out.npz"),
    "picture of marginals": (INFER, "--figure", "out.svg"),
    "picture of the way": (INFER, "--convergence", "out.pdf"),
    "race": (("race", *EVIDENCE, "-m", "exact"), "-o", "out.csv"),
    "picture of a race": (("race", *EVIDENCE, "-m", "exact"), "--figure", "out.png"),
    "plot": (("plot", "result.npz"), "-o", "out.png"),
    "demo": (("demo",), "-o", "out.json"),
    "picture of the demo": (("demo",), "--figure", "out.png"),
}
"""Every kind of file that a command writes: the command, the option and the file."""


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files named out.… find no room."""

    class Full(io.BytesIO):
        def write(self, content: Any) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def opened(path: Path, mode: str) -> IO[bytes]:
        return Full() if path.name.startswith(".out.") else open(path, mode)

    monkeypatch.setattr(hylift.files, "open", opened, raising=False)


@pytest.mark.parametrize(("command", "option", "name"), WRITTEN.values(), ids=WRITTEN)
def test_on_a_full_disk_the_old_file_is_kept_and_the_answer_shown(
    command: tuple[str, ...], option: str, name: str, run: Run, folder: Path, full_disk: None
) -> None:
    if command[0] == "plot":
        write_posteriors(run)
    (folder / name).write_text("precious")
    before = sorted(folder.iterdir())

    ended = run(*command, option, name)

    assert ended.code == 2
    assert ended.err == f"hylift: {name}: cannot be written: No space left on device\n"
    assert (folder / name).read_text() == "precious"
    assert sorted(folder.iterdir()) == before
    assert bool(ended.out.strip()) == (command[0] != "plot")  # which has nothing else to show
    assert f"{name}\n" not in ended.out


@pytest.mark.parametrize(("command", "option", "name"), WRITTEN.values(), ids=WRITTEN)
def test_a_read_only_folder_is_told_before_any_work(
    command: tuple[str, ...],
    option: str,
    name: str,
    run: Run,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # For the superuser no folder is read-only.
    monkeypatch.setattr(hylift.cli.outputs.os, "access", lambda path, mode: mode != os.W_OK)

    ended = run(*command, option, name)

    assert (ended.code, ended.out) == (2, "")
    text = f"{name}: cannot be written: the folder '{folder.resolve()}' is read-only"
    assert ended.err == f"hylift: {text}\n"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the superuser may write")
def test_a_folder_without_leave_to_write_is_read_only(run: Run, folder: Path) -> None:
    (folder / "shut").mkdir(mode=0o500)

    ended = run("infer", "model.uai", "-o", "shut/out.json")

    assert ended.code == 2
    assert ended.err.endswith("shut' is read-only\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device here")
def test_a_full_device_is_told_after_the_answer(run: Run, folder: Path) -> None:
    (folder / "out.json").symlink_to("/dev/full")

    ended = run("infer", "model.uai", "-o", "out.json")

    assert ended.code == 2
    assert ended.out.startswith("model.uai: 12 variables")
    assert ended.err == "hylift: out.json: cannot be written: No space left on device\n"


def test_one_full_disk_keeps_no_other_file_from_being_written(
    run: Run, folder: Path, full_disk: None
) -> None:
    ended = run(*INFER, "-o", "out.json", "--save", "kept.npz", "--figure", "out.png")

    assert ended.code == 2
    assert ended.out.splitlines()[-1] == "Posterior: kept.npz"
    assert ended.err.splitlines() == [
        "hylift: out.json: cannot be written: No space left on device",
        "out.png: cannot be written: No space left on device",
    ]
    assert (folder / "kept.npz").stat().st_size > 0


def test_printed_json_is_whole_where_a_file_fails(run: Run, folder: Path, full_disk: None) -> None:
    ended = run(*INFER, "-o", "-", "--save", "out.npz")

    assert ended.code == 2
    assert json.loads(ended.out)["method"] == "BVI(3)"


@pytest.mark.parametrize(
    "command",
    [
        ("check", "papers.mln"),
        ("ground", *EVIDENCE),
        ("explain", *EVIDENCE),
        ("infer", *EVIDENCE),
        ("race", *EVIDENCE, "-m", "exact"),
        ("demo",),
    ],
    ids=lambda command: command[0],
)
def test_a_dash_prints_json_and_nothing_else(
    command: tuple[str, ...], run: Run, folder: Path
) -> None:
    ended = run(*command, "-o", "-")

    assert (ended.code, ended.err) == (0, "")
    assert isinstance(json.loads(ended.out), dict)


@pytest.mark.parametrize(
    "command",
    [
        ("check", "doubtful.mln"),
        ("check", "doubtful.mln", "--bethe"),
        ("ground", *EVIDENCE),
        ("explain", *EVIDENCE),
        ("infer", *EVIDENCE),
        ("race", *EVIDENCE, "-m", "exact"),
        ("plot", "result.npz"),
        ("demo",),
    ],
    ids=" ".join,
)
def test_quiet_prints_nothing(command: tuple[str, ...], run: Run, folder: Path) -> None:
    (folder / "doubtful.mln").write_text(DOUBTFUL)
    write_posteriors(run)

    ended = run(*command, "--quiet")

    assert (ended.code, ended.out, ended.err) == (0, "", "")


def refuse_constants(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


def test_numbers_that_json_has_not_are_words(run: Run, folder: Path) -> None:
    ended = run("race", *EVIDENCE, "-m", "exact", "--seconds", "inf", "-o", "-")

    result = json.loads(ended.out, parse_constant=refuse_constants)
    assert result["seconds"] == "inf"


def test_the_report_of_a_check_has_warnings_with_their_places(run: Run, folder: Path) -> None:
    (folder / "doubtful.mln").write_text(DOUBTFUL)

    ended = run("check", "doubtful.mln", "-o", "report.json")

    report = json.loads((folder / "report.json").read_text())
    assert ended.out.splitlines()[-1] == "Written to report.json"
    assert (report["types"], report["predicates"], report["rules"]) == (1, 3, 2)
    assert report["errors"] == []
    assert report["warnings"][1] == {
        "file": "doubtful.mln", "line": 4, "column": 1, "message": "no rule uses 'Tall'",
    }  # fmt: skip


def test_the_report_of_a_check_has_errors_and_the_exit_code_says_so(run: Run, folder: Path) -> None:
    (folder / "wrong.mln").write_text(WRONG)

    ended = run("check", "wrong.mln", "-o", "-")

    report = json.loads(ended.out)
    assert ended.code == 2
    assert len(report["errors"]) == 6
    assert [error["line"] for error in report["errors"]] == [4, 5, 6, 7, 8, 9]


def test_the_report_of_a_check_has_the_place_of_an_error_of_syntax(run: Run, folder: Path) -> None:
    (folder / "wrong.mln").write_text("P(t)\n1 P(x) ^\n")

    ended = run("check", "wrong.mln", "-o", "-")

    (error,) = json.loads(ended.out)["errors"]
    assert (ended.code, error["line"], error["column"]) == (2, 2, 9)
    assert error["message"] == "expected a formula after '^', not the end of the line"


def test_the_report_of_a_certificate_has_its_bound(run: Run, folder: Path) -> None:
    ended = run("check", *EVIDENCE, "--bethe", "-o", "-")

    report = json.loads(ended.out)
    assert report["bethe"]["holds"] is True
    assert report["bethe"]["log_bound"] == -report["bethe"]["free_energy_bound"]


def test_the_canonical_form_is_no_report(run: Run, folder: Path) -> None:
    ended = run("check", "papers.mln", "--format", "-o", "-")

    assert ended.err == ("hylift: --format and --output ask for different things: choose one\n")


def test_counts_of_a_grounding_are_a_table_of_predicates_and_rules(run: Run, folder: Path) -> None:
    run("ground", *EVIDENCE, "-o", "sizes.csv", "--quiet")
    ended = run("ground", *EVIDENCE, "-o", "-")

    table = pa.csv.read_csv(folder / "sizes.csv").to_pylist()
    result = json.loads(ended.out)
    atoms = {row["name"]: row["atoms"] for row in table if row["kind"] == "predicate"}
    assert atoms == {"In": 4, "Popularity": 2, "Trend": 2}
    assert sum(row["factors"] for row in table if row["kind"] == "rule") == result["num_factors"]
    assert result["num_variables"] == sum(atoms.values())
    assert [one["num_observed"] for one in result["predicates"]] == [3, 1, 0]


def test_classes_are_a_table_of_variables(run: Run, folder: Path) -> None:
    run("explain", "smokers.mln", "-o", "classes.parquet", "--quiet")

    table = pq.read_table(folder / "classes.parquet")
    classes = dict(zip(table["atom"].to_pylist(), table["class"].to_pylist(), strict=True))
    assert table.column_names == ["atom", "predicate", "class", "class_size"]
    assert classes["Smokes(Ann)"] == classes["Smokes(Bob)"]
    assert set(table["predicate"].to_pylist()) == {"Smokes", "Friends"}
    assert set(table["class_size"].to_pylist()) == {2}


def test_the_demo_writes_both_answers(run: Run, folder: Path) -> None:
    run("demo", "-o", "demo.parquet", "--quiet")
    ended = run("demo", "-o", "-", "--seed", 3)

    table = pq.read_table(folder / "demo.parquet")
    result = json.loads(ended.out)
    assert set(table["method"].to_pylist()) == {"exact", "BVI(3)"}
    assert result["seed"] == 3
    assert [one["method"] for one in result["results"]] == ["exact", "BVI(3)"]
    assert result["results"][0]["log_partition"]["value"] == pytest.approx(13.344035, abs=1e-6)


def test_a_negative_seed_is_refused_everywhere(run: Run, folder: Path) -> None:
    for command in (("infer", *EVIDENCE), ("race", *EVIDENCE), ("demo",)):
        ended = run(*command, "--seed", -1)

        assert (ended.code, ended.out) == (2, "")
        assert ended.err == "hylift: --seed must be a non-negative integer, not -1\n"


def test_netcdf_holds_draws_of_what_is_asked_for(run: Run, folder: Path) -> None:
    arviz = extra("arviz")

    ended = run(*INFER, "-q", "Trend(*)", "-o", "draws.nc")

    data = arviz.from_netcdf("draws.nc")
    assert (ended.code, ended.err) == (0, "")
    assert set(data.posterior.data_vars) == {"Trend"}
    assert data.posterior.sizes["draw"] == 1000
    data.close()


def test_netcdf_without_arviz_is_told_before_any_work(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "arviz", None)

    ended = run("infer", "nowhere.mln", "-o", "draws.nc")

    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        "hylift: this needs ArviZ, which is not installed: install the extra 'arviz' of hylift, or "
        "the package itself\n"
    )


def test_netcdf_holds_no_assignment(run: Run, folder: Path) -> None:
    ended = run(*INFER, "-t", "map", "-o", "draws.nc")

    assert ended.err == "hylift: draws.nc: such a file holds the task 'marginals', not map\n"


@pytest.mark.parametrize("width", [60, 100])
def test_a_table_loses_no_word_on_a_narrow_terminal(width: int) -> None:
    row = ("BVI(3)", "0.094", "≈ 0.2255970663", "yardstick", "converged", "20 MB in all")
    header = ("method", "seconds", "log Z", "distance", "ended", "memory")
    out = Console(width=width, file=io.StringIO())

    print_table(out, TextTable(header, (row,) * 2, (1,)))

    lines = out.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    for word in (*header[1:], *row):
        assert word in " ".join(" ".join(lines).split())

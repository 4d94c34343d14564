"""The command line as processes: what a shell, a pipe and Ctrl-C see."""

import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import hylift
import hylift.__main__
import hylift.cli.app
from cli.conftest import Run
from hylift.cli import main

HYLIFT = [sys.executable, "-m", "hylift"]


def process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*HYLIFT, *arguments],
        capture_output=True,
        check=False,
        timeout=120,
        env=os.environ | environment,
    )


@pytest.fixture(autouse=True)
def source_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets another process import the same hylift from any folder, and buffer what it prints."""
    monkeypatch.setenv("PYTHONPATH", str(Path(hylift.__file__).parents[1]))
    monkeypatch.setenv("PYTHONUNBUFFERED", "")


def test_the_installed_command_is_what_python_m_hylift_runs() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())

    assert project["project"]["scripts"] == {"hylift": "hylift.cli:process"}
    assert hylift.__main__.process is hylift.cli.process


def test_a_command_that_fails_leaves_no_files_of_its_database_behind(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"""
import sys
import duckdb
from hylift.cli import process
from pathlib import Path

connect = duckdb.connect

def spilling(*_: object, **settings: object) -> duckdb.DuckDBPyConnection:
    found = connect(config={{"temp_directory": {str(tmp_path / "spilled")!r}}})
    found.execute("SET memory_limit = '30MB'")
    found.execute("CREATE TABLE big AS SELECT range AS a, hash(range) AS b FROM range(3000000)")
    print(len(list(Path({str(tmp_path / "spilled")!r}).iterdir())) > 0)
    return found

duckdb.connect = spilling
process()
""")
    model = tmp_path / "model.mln"
    rules = "1 Near(x, y) ^ Near(y, z) ^ P(x, z)\n1 P(x, y) ^ P(y, z)\n"  # the first is a join
    model.write_text(f"thing = {{1, ..., 900000}}\nNear(thing, thing)\nP(thing, thing)\n{rules}")
    (tmp_path / "near.csv").write_text("a,b\n1,2\n2,3\n")
    evidence = ["-e", f"Near={tmp_path / 'near.csv'}", "-c", "Near"]

    command = [sys.executable, str(program), "ground", str(model), *evidence]
    ended = subprocess.run(command, capture_output=True, check=False, timeout=120)

    assert (ended.returncode, ended.stdout) == (2, b"True\n")
    assert b"hylift: grounding makes" in ended.stderr
    assert not list((tmp_path / "spilled").glob("*"))


def test_python_m_hylift_answers_into_a_pipe(folder: Path) -> None:
    ended = process("infer", "model.uai", "-e", "model.uai.evid", "-o", "-")

    assert (ended.returncode, ended.stderr) == (0, b"")
    assert len(json.loads(ended.stdout)["marginals"]) == 11


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"MARKOV\n1\n2\n1\n1 0\n2 nan 1\n", "6:3: an entry of a table must be finite and not neg"),
        (b"MARKOV\n1\n2\n1\n1 0\n2 1", "6:4: the file ends within the table of factor 0, after 1"),
        (b"MARKOV\n1\n\x9c\n", "3:1: not a text file: byte 0x9c is not UTF-8"),
    ],
    ids=["nan", "truncated", "binary"],
)
def test_a_broken_file_is_one_line_on_stderr(content: bytes, expected: str, folder: Path) -> None:
    (folder / "model.uai").write_bytes(content)

    ended = process("infer", "model.uai")

    assert (ended.returncode, ended.stdout) == (2, b"")
    assert ended.stderr.decode().startswith(f"hylift: model.uai:{expected}")
    assert ended.stderr.count(b"\n") == 1


def test_a_terminal_without_bars_shows_something_else(folder: Path) -> None:
    ended = process("infer", "model.uai", PYTHONIOENCODING="ascii")

    assert (ended.returncode, ended.stderr) == (0, b"")
    assert b"x1 " in ended.stdout
    assert ended.stdout.isascii()


@pytest.mark.skipif(os.name != "posix", reason="names of files are text here")
def test_a_name_that_is_no_text_does_no_harm(folder: Path) -> None:
    name = os.fsdecode(b"mod\xffel.uai")
    (folder / "model.uai").rename(folder / name)

    ended = process("infer", name, "-o", "out.json")

    assert (ended.returncode, ended.stderr) == (0, b"")
    assert json.loads((folder / "out.json").read_text(encoding="utf-8"))["model"] == "mod�el.uai"


def test_ctrl_c_ends_with_130_and_one_line() -> None:
    program = """
import time
import hylift.cli.app
from hylift.cli import process

def waiting(**_: object) -> None:
    print("waiting", flush=True)
    time.sleep(60)

hylift.cli.app.app = waiting
process()
"""
    # What a shell starts in the background is told to ignore Ctrl-C, and its children are, too.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    signal.signal(signal.SIGINT, before)
    assert process.stdout is not None
    assert process.stdout.readline() == b"waiting\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)

    assert (process.returncode, out, err) == (130, b"", b"hylift: interrupted\n")


@pytest.mark.parametrize("wraps", [lambda e: e, lambda e: SystemError("with an exception set")])
def test_ctrl_c_within_a_kernel_ends_with_130_too(
    wraps: Callable[[BaseException], BaseException], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(**_: object) -> None:
        cause = KeyboardInterrupt()
        error = wraps(cause)
        raise error from (None if error is cause else cause)

    monkeypatch.setattr(hylift.cli.app, "app", interrupted)

    ended = run("demo")

    assert (ended.code, ended.err) == (130, "hylift: interrupted\n")


def test_an_error_of_the_interpreter_is_not_taken_for_ctrl_c(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(**_: object) -> None:
        raise SystemError("broken") from ValueError("of another sort")

    monkeypatch.setattr(hylift.cli.app, "app", broken)

    with pytest.raises(SystemError, match="broken"):
        main()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device here")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "arguments", [["infer", "model.uai"], ["explain", "model.uai", "-o", "-"], ["--help"]]
)
def test_a_full_disk_is_one_line_on_stderr(
    arguments: list[str], unbuffered: str, folder: Path
) -> None:
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            [*HYLIFT, *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            timeout=120,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        )

    text = b"hylift: standard output cannot be written: No space left on device\n"
    assert (ended.returncode, ended.stderr) == (2, text)


@pytest.mark.skipif(os.name != "posix", reason="pipes break in another way here")
def test_a_reader_that_leaves_early_causes_no_noise(folder: Path) -> None:
    (folder / "many.uai").write_text(f"MARKOV 5000 {'2 ' * 5000} 0")
    process = subprocess.Popen(
        [*HYLIFT, "infer", "many.uai", "-o", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None

    process.stdout.read(1)
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()

    assert process.wait(timeout=60) == 1
    assert err == b""


def test_an_error_stream_that_cannot_be_written_costs_no_answer(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    model, facts = tmp_path / "model.mln", tmp_path / "facts.csv"
    model.write_text("thing = {a, b}\nP(thing)\n1 P(x)\n")
    facts.write_text("predicate,arg1,value\nP,a,1\nP,elsewhere,1\n")
    command = [*HYLIFT, "infer", str(model), "-e", str(facts), "--unmatched", "ignore"]

    told = subprocess.run([*command, "-o", "-"], capture_output=True, check=False)
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            [*command, "-o", "-"], stdout=subprocess.PIPE, stderr=full, check=False
        )
        failed = subprocess.run([*HYLIFT, "infer", "no.uai"], stderr=full, check=False)

    assert b"note: " in told.stderr
    assert (ended.returncode, len(json.loads(ended.stdout)["marginals"])) == (0, 1)
    assert failed.returncode == 2


def test_pandas_is_loaded_where_somebody_wants_it_and_not_for_pyarrow(folder: Path) -> None:
    pytest.importorskip("pandas")
    program = """
import atexit, sys
atexit.register(lambda: print("pandas" in sys.modules, file=sys.stderr))
from hylift.cli import process
process()
"""
    command = [sys.executable, "-c", program, "infer", "model.uai", "-e", "model.uai.evid"]

    plain = subprocess.run([*command, "-o", "a.csv"], capture_output=True, check=False)
    wanting = subprocess.run(
        [sys.executable, "-c", "import pandas" + program, *command[3:], "-o", "b.csv"],
        capture_output=True,
        check=False,
    )

    assert (plain.returncode, plain.stderr) == (0, b"False\n")
    assert (wanting.returncode, wanting.stderr) == (0, b"True\n")
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()


def test_netcdf_is_written_by_a_process(folder: Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("arviz")

    ended = process("infer", "model.uai", "--method", "bvi", "--output", "draws.nc")

    assert (ended.returncode, ended.stderr) == (0, b"")
    with xarray.open_dataset("draws.nc", group="posterior") as draws:
        assert draws.sizes["draw"] == 1000

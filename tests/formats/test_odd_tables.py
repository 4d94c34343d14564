"""Tables that other programs write in odd ways are read, or refused in one line."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest

from hylift import ground, parse
from hylift.errors import EvidenceError, FormatError, HyliftError

MODEL = parse("r(x): real\nIn(x, y)\n-0.1 r(x)^2\n1 In(x, y)\n")
LARGE = 2**53 + 1


def values(table: object) -> list[float]:
    return ground(MODEL, {"r": table, "In": [("a", "b")]}).evidence.value.tolist()[:-1]


@pytest.mark.parametrize(
    "table",
    [
        [("a", LARGE)],
        [("a", LARGE), ("b", 1.5)],
        [("a", -LARGE), ("b", None)],
        [("a", 2**64 - 1)],
        [("a", 10**25)],
        pa.table({"x": ["a"], "r": pa.array([LARGE], pa.decimal128(38, 0))}),
        pa.table({"x": ["a"], "r": pa.array([f" {LARGE}"])}),
    ],
    ids=str,
)
def test_integers_that_a_real_cannot_hold_are_refused(table: object) -> None:
    with pytest.raises(EvidenceError, match=r"row 1: r\(a\) is '? ?-?[0-9]{16,}'?, an integer"):
        values(table)


def test_an_integer_that_a_real_cannot_hold_cannot_be_observed() -> None:
    graph = ground(MODEL, {"r": [("a", 1.0)], "In": [("b", "b")]})

    with pytest.raises(EvidenceError, match=r"r\(b\) cannot be 9007199254740993, an integer with"):
        graph.observe({"r(b)": LARGE})


@pytest.mark.parametrize("stated", [2**60, -(2**53), "1e25", "9007199254740993.25"])
def test_large_numbers_that_a_real_can_hold_are_read(stated: object, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(f"x,r\na,{stated}\n")

    assert values(tmp_path / "r.csv") == [float(stated)]
    assert values([("a", stated)]) == [float(stated)]


@pytest.mark.parametrize(
    "content",
    [b"x,r\ra,1\rb,2\r", b'\r\r"x","r"\ra,1\rb,2', b"x,r\r\na,1\rb,2\n", b"\n\r\nx,r\na,1\nb,2"],
)
def test_lines_end_as_on_any_system(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_bytes(content)

    assert values(tmp_path / "r.csv") == [1.0, 2.0]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"x," + b"r" * 131_073 + b"\na,1\n", ":1: the first line names the columns: field larger"),
        (b"\n\n" + b"x" * 131_073, ":3: the first line names the columns: field larger than"),
        (b"x,r\n" + b"a" * 3_000_000 + b",1\n", ": a row has more than a million characters"),
        (b'x,r\n"a,1\n' + b"b,2\n" * 500_000, ": CSV parse error: Row #2: Expected 2 columns"),
    ],
)
def test_endless_lines_are_refused(content: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_bytes(content)

    with pytest.raises(FormatError, match=rf"/r\.csv{reason}"):
        values(tmp_path / "r.csv")


def test_all_row_labels_of_pandas_are_left_out(tmp_path: Path) -> None:
    labels = ["__index_level_0__", "__index_level_0__", "__index_level_1__"]
    table = pa.table([["a"], [1.5], [0], [0], [0]], names=["x", "r", *labels])
    pa_parquet.write_table(table, tmp_path / "r.parquet")

    assert values(table) == values(tmp_path / "r.parquet") == [1.5]


def test_damaged_parquet_is_read_or_refused(tmp_path: Path) -> None:
    table = pa.table({"x": [f"c{at}" for at in range(50)], "r": np.linspace(0, 1, 50)})
    path, rng = tmp_path / "r.parquet", np.random.default_rng(0)
    pa_parquet.write_table(table, path)
    sound, refused = path.read_bytes(), 0

    for _ in range(150):
        content = bytearray(sound)
        for at in rng.integers(len(content), size=int(rng.integers(1, 4))):
            content[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(content[: rng.integers(len(content)) if rng.random() < 0.1 else None])
        try:
            values(path)
        except HyliftError as error:
            assert len(str(error).splitlines()) == 1  # noqa: PT017
            refused += 1

    assert refused > 20


def stored(path: Path, *, is_open: bool) -> sqlite3.Connection:
    """An SQLite file that keeps changes in a log, with a row of which only the log knows."""
    database = sqlite3.connect(path)
    for statement in ("PRAGMA journal_mode = WAL", "PRAGMA wal_autocheckpoint = 0"):
        database.execute(statement)
    database.execute('CREATE TABLE "In" (x, y)')
    database.execute("INSERT INTO \"In\" VALUES ('a', 'b')")
    database.commit()
    if not is_open:
        database.close()
    return database


def rows(path: Path) -> int:
    return len(ground(MODEL, [path, {"r": [("c", 1.0)]}]).evidence) - 1


@pytest.mark.parametrize("state", ["closed", "open", "copied"])
def test_reading_sqlite_leaves_nothing_beside_it(state: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    database = stored(folder / "x.sqlite", is_open=state != "closed")
    if state == "copied":
        os.rename(folder, tmp_path / "used")
        folder.mkdir()
        for name in ("x.sqlite", "x.sqlite-wal"):
            (folder / name).write_bytes((tmp_path / "used" / name).read_bytes())
    before = sorted((path.name, path.stat().st_size) for path in folder.iterdir())

    count = rows(folder / "x.sqlite")

    assert count == 1
    assert sorted((path.name, path.stat().st_size) for path in folder.iterdir()) == before
    database.close()


@pytest.mark.parametrize("name", ["r.parquet", "r.arrow"])
@pytest.mark.parametrize("damaged", [b"segment", b"wall"])
def test_words_that_are_no_text_are_refused(name: str, damaged: bytes, tmp_path: Path) -> None:
    table, path = pa.table({"segment": ["wall"], "r": [1.0]}), tmp_path / name
    if path.suffix == ".parquet":
        pa_parquet.write_table(table, path, store_schema=False, compression="none")
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    path.write_bytes(path.read_bytes().replace(damaged, b"\xf3" + damaged[1:]))

    with pytest.raises(FormatError, match=rf"{name}: cannot be read as (parquet|arrow): "):
        values(path)

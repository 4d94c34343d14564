"""Files that cannot be read or written give one clear line, and good ones are never lost."""

import os
import stat
from pathlib import Path
from typing import IO

import numpy as np
import pytest

from hylift import Posterior, ground, parse, read_evidence, read_model, read_uai, write_uai
from hylift.errors import FormatError
from hylift.files import OutputError, read_bytes, read_text, write_whole
from hylift.graph import FactorGraph, Variables, boolean


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"/nowhere\.uai: no such file$"):
        read_uai(tmp_path / "nowhere.uai")


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r": is a directory, not a file$"):
        read_uai(tmp_path)


def test_a_file_below_a_file_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(FormatError, match=r"/file/model\.uai: cannot be read: Not a directory$"):
        read_uai(tmp_path / "file" / "model.uai")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="this user may read everything")
def test_a_file_without_read_permission_is_named(tmp_path: Path) -> None:
    path = tmp_path / "secret.uai"
    path.write_text("MARKOV 0 0")
    path.chmod(0)

    with pytest.raises(FormatError, match=r"secret\.uai: cannot be read: Permission denied$"):
        read_uai(path)


def test_the_reason_of_the_system_is_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, mode: str) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    (tmp_path / "secret.uai").touch()

    with pytest.raises(FormatError, match=r"secret\.uai: cannot be read: Permission denied$"):
        read_uai(tmp_path / "secret.uai")


@pytest.mark.parametrize(
    ("name", "reason"), [("a" * 300, "File name too long"), ("a\0b", "embedded null byte")]
)
def test_a_name_that_no_file_can_have_is_refused(name: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=f"cannot be read: {reason}"):
        read_bytes(tmp_path / name)


READERS = {
    "x.mln": read_model,
    "x.uai": read_uai,
    "x.evid": lambda path: read_evidence(path, np.array([2])),
    "x.npz": Posterior.load,
    "x.csv": lambda path: ground(parse("P(x)\n1 P(x)\n"), path),
}


@pytest.mark.skipif(os.name != "posix", reason="there are no named pipes here")
@pytest.mark.parametrize("name", READERS)
def test_pipes_and_devices_are_refused_before_they_are_read(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)

    for path in (tmp_path / name, "/dev/zero"):
        with pytest.raises(FormatError, match="is a pipe or a device, not a file; save its"):
            READERS[name](path)


def test_what_is_not_utf8_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes("eins\nzwölf".encode("latin-1"))

    with pytest.raises(FormatError, match=":2:3: not a text file: byte 0xf6 is not UTF-8"):
        read_text(tmp_path / "latin")


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "marked").write_text("text", encoding="utf-8-sig")

    assert read_text(tmp_path / "marked") == "text"


def test_writing_into_a_missing_folder_names_the_folder(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "model.uai"

    with pytest.raises(OutputError, match=r"cannot be written: there is no folder '.*missing'$"):
        write_uai(FactorGraph(Variables.uniform(boolean, 1), ()), path)


def test_writing_over_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r": cannot be written: it is a folder$"):
        write_uai(FactorGraph(Variables.uniform(boolean, 1), ()), tmp_path)


def test_a_removed_working_directory_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    joined = parse("A(x, y)\nB(y)\n1 A(x, y) ^ B(y)")

    with pytest.raises(OutputError, match="the working directory has been removed: change to"):
        write_whole("result.json", lambda stream: stream.write(b"new"))
    with pytest.raises(OutputError, match="the working directory has been removed"):
        ground(joined, {"A": [("a", "b")], "B": [("b",)]}, closed=["A"])


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text("old")

    def fail(stream: IO[bytes]) -> None:
        stream.write(b"half of the new")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_whole(path, fail)

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text("old")

    def fail(stream: IO[bytes]) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OutputError, match=r"result\.json: cannot be written: No space left on"):
        write_whole(path, fail)

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_written_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")

    write_whole(tmp_path / "written", lambda stream: stream.write(b"new"))

    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "written")]
    assert modes[0] == modes[1]
    assert (tmp_path / "written").read_bytes() == b"new"


def test_a_long_name_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 250)

    write_whole(path, lambda stream: stream.write(b"new"))

    assert path.read_bytes() == b"new"


def test_writing_through_a_link_keeps_the_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")

    write_whole(tmp_path / "link", lambda stream: stream.write(b"new"))

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
def test_a_device_is_written_to_and_stays_a_device() -> None:
    with pytest.raises(OutputError, match="/dev/full: cannot be written: No space left"):
        write_whole("/dev/full", lambda stream: stream.write(b"0" * 100_000))

    assert Path("/dev/full").is_char_device()


def test_a_file_keeps_its_permissions(tmp_path: Path) -> None:
    target = tmp_path / "private.json"
    target.write_text("old")
    target.chmod(0o600)

    write_whole(target, lambda stream: stream.write(b"new"))

    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600

"""Files: clear errors for unreadable ones, and atomic writes."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from hylift.errors import FormatError, HyliftError, UnsupportedError

FIGURES = (".png", ".pdf", ".svg")

TOKEN = 6
"""Random bytes in the name of a file that is being written."""


class OutputError(HyliftError, OSError):
    """A file that cannot be written."""


def check_regular(path: str | Path) -> None:
    """Raise unless the path is that of a file: pipes and devices may not end."""
    with _as_format_error(path):
        mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise FormatError(path, "is a directory, not a file")
    if not stat.S_ISREG(mode):
        raise FormatError(path, "is a pipe or a device, not a file; save its content to a file")


def read_bytes(path: str | Path, most: int = -1) -> bytes:
    """The content of a file, or its first bytes; a `FormatError` says why there is none."""
    check_regular(path)
    with _as_format_error(path), Path(path).open("rb") as stream:
        return stream.read(most)


@contextlib.contextmanager
def _as_format_error(path: str | Path) -> Iterator[None]:
    """Errors of the system as a `FormatError`."""
    try:
        yield
    except FileNotFoundError:
        raise FormatError(path, "no such file") from None
    except OSError as error:
        raise FormatError(path, f"cannot be read: {error.strerror}") from None
    except MemoryError:
        raise FormatError(path, "is larger than the memory") from None
    except ValueError as error:  # a zero byte in the name
        raise FormatError(path, f"cannot be read: {error}") from None


def read_text(path: str | Path) -> str:
    """The text of a UTF-8 file, without a byte order mark."""
    content = read_bytes(path)
    try:
        return content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        raise FormatError(
            path,
            f"not a text file: byte 0x{content[error.start]:02x} is not UTF-8",
            line=line,
            column=column,
        ) from None


def check_working_directory() -> None:
    """Raise if the working directory has been removed, as some libraries then end the process."""
    try:
        os.getcwd()
    except OSError:
        raise OutputError("the working directory has been removed: change to another") from None


def real_path(path: str | Path) -> Path:
    """The absolute path, with links followed."""
    if not os.path.isabs(path):
        check_working_directory()
    return Path(os.path.realpath(path))


def check_target(path: str | Path) -> None:
    """Raise unless a file can be written at `path`: its folder exists and is writable, and `path`
    is not a folder."""
    target = Path(path)
    if not os.path.isdir(target.parent):
        raise OutputError(f"{path}: cannot be written: there is no folder '{target.parent}'")
    if os.path.isdir(target):
        raise OutputError(f"{path}: cannot be written: it is a folder")
    folder = real_path(target).parent
    # A pipe or a device is written to in place.
    if (target.is_file() or not target.exists()) and not os.access(folder, os.W_OK):
        raise OutputError(f"{path}: cannot be written: the folder '{folder}' is read-only")


def check_figure(path: str | Path) -> None:
    """Raise unless a figure can be written to this file."""
    check_target(path)
    if Path(path).suffix.lower() not in FIGURES:
        raise UnsupportedError(f"{path}: a figure's name ends in {', '.join(FIGURES)}")


def write_whole(path: str | Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a temporary file and move it to `path`, which is thus old or complete at any time.

    A device or a pipe is written to in place.
    """
    check_target(path)
    target = real_path(path)  # a link stays a link
    in_place = target.exists() and not target.is_file()
    partial = target.with_name(f"{_partial_prefix(target)}{secrets.token_hex(TOKEN)}")
    try:
        try:
            with open(target if in_place else partial, "wb" if in_place else "xb") as stream:
                write(stream)
                if not in_place:
                    stream.flush()
                    os.fsync(stream.fileno())  # the new name must not outlive its content
            if not in_place:
                if target.exists():
                    partial.chmod(target.stat().st_mode & 0o777)
                partial.replace(target)
        finally:
            if not in_place:
                partial.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from None


def clear_partial(path: str | Path, seconds: float) -> None:
    """Remove partial files of writers of this file, if older than `seconds`."""
    target = real_path(path)
    prefix = _partial_prefix(target)
    if not target.parent.is_dir():
        return
    for other in target.parent.iterdir():
        token = other.name.removeprefix(prefix)
        is_partial = other.name.startswith(prefix) and len(token) == 2 * TOKEN
        if is_partial and all(letter in "0123456789abcdef" for letter in token):
            with contextlib.suppress(OSError):
                if time.time() - other.stat().st_mtime > seconds:
                    other.unlink()


def _partial_prefix(target: Path) -> str:
    return f".{target.name[:40]}."

"""Arrays and a JSON header in one file, in NumPy's zip format. Never pickle."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import numpy as np
from numpy.typing import NDArray

from hylift.errors import FormatError
from hylift.files import read_bytes, write_whole
from hylift.words import option, printable, worded

Arrays = dict[str, NDArray[Any]]

T = TypeVar("T")

ZIP = b"PK"
"""First bytes of a zip file."""

PACKED = (ZIP_STORED, ZIP_DEFLATED)
"""Compression that is read."""

MOST_PACKED = 1032
"""Highest compression ratio of zip files."""

LARGE, DENSE = 1 << 28, 20
"""Bytes that a file may expand to without a higher limit; and times its own size, if that is more.
"""

HEADER, DIGEST = "header", "digest"
"""Names of the arrays that every file has."""

LONGEST = 160
"""Letters of a reason."""


@dataclass(frozen=True, slots=True)
class Archive:
    """A kind of file: its content, format and version."""

    what: str
    """With its article: 'a saved posterior'."""
    format: str
    version: int
    remedy: str = ""
    """The remedy for an unreadable file: 'infer again and save it'."""

    def write(
        self, path: str | Path, header: Mapping[str, Any], arrays: Arrays, *, compress: bool = True
    ) -> None:
        """Write a file; an existing one is replaced only when the new one is complete."""
        marked = {"format": self.format, "version": self.version, **header}
        stored = {HEADER: np.frombuffer(json.dumps(marked).encode(), dtype=np.uint8), **arrays}
        stored[DIGEST] = digest_of(stored)
        save = np.savez_compressed if compress else np.savez
        write_whole(path, lambda stream: save(stream, allow_pickle=False, **stored))

    def read(
        self,
        path: str | Path,
        restore: Callable[[dict[str, Any], Arrays], T],
        max_bytes: int | None = None,
    ) -> T:
        """The value that `restore` makes of the header and the arrays of a file.

        Raises a `FormatError` if the file is damaged or of another kind, or if what it declares
        takes more than `max_bytes` in memory (`LARGE`, or `DENSE` times the file, if larger).
        """
        content = read_bytes(path)
        try:
            if not content.startswith(ZIP):
                raise ValueError("it is not a zip file")
            with np.load(BytesIO(content), allow_pickle=False) as stored:
                size = _checked_size(stored.zip, len(content))
                self._check_limit(path, size, len(content), max_bytes)
                header = json.loads(stored[HEADER].tobytes())
                self._check_kind(path, header)
                arrays = {name: stored[name] for name in stored.files}
            digest = arrays.pop(DIGEST)
            if not np.array_equal(digest, digest_of(arrays)):
                raise ValueError("its content is not what was written")
            del arrays[HEADER]
            return restore(header, {name: np.asarray(a, order="C") for name, a in arrays.items()})
        except FormatError:
            raise
        except Exception as error:  # a damaged archive can fail in any of the layers that read it
            raise self.damaged(path, f"{type(error).__name__}: {error}") from None

    def damaged(self, path: str | Path, why: str) -> FormatError:
        """The error for a file that cannot be what it claims to be."""
        reason = printable(" ".join(why.split()), one_line=True)
        reason = reason if len(reason) <= LONGEST else f"{reason[: LONGEST - 1]}…"
        return FormatError(path, f"is not {self.what}, or is damaged ({reason}){self._remedy}")

    @property
    def _remedy(self) -> str:
        return f": {self.remedy}" if self.remedy else ""

    def _check_kind(self, path: str | Path, header: dict[str, Any]) -> None:
        if header.get("format") != self.format:
            raise FormatError(path, f"is not {self.what} (its format is '{header['format']}')")
        if header["version"] != self.version:
            raise FormatError(
                path,
                f"was saved by another version: format {header['version']}, not "
                f"{self.version}{self._remedy}",
            )

    def _check_limit(
        self, path: str | Path, size: int, file_size: int, max_bytes: int | None
    ) -> None:
        most = max(LARGE, DENSE * file_size) if max_bytes is None else max_bytes
        if size > most:
            raise FormatError(
                path,
                f"expands from {file_size:,} to {size:,} bytes, and at most {most:,} are read",
                remedy=worded("if you trust the file, allow more with ", option("max_bytes", size)),
            )


def digest_of(arrays: Arrays) -> NDArray[np.uint8]:
    """(32,): a hash of names, types, shapes and numbers."""
    found = hashlib.blake2b(digest_size=32)
    for name in sorted(arrays):
        array = arrays[name]
        found.update(repr((name, array.dtype.str, array.shape)).encode())
        found.update(array.tobytes())
    return np.frombuffer(found.digest(), dtype=np.uint8)


def _checked_size(members: ZipFile, size: int) -> int:
    """Bytes that the arrays of a file take, by what it says of them.

    Raises if an array claims to be larger than its stored bytes allow, so that a small file never
    makes us reserve much memory.
    """
    total, names = 0, [member.filename for member in members.infolist()]
    if len({*names}) < len(names):
        raise ValueError("two arrays have one name")
    for member in members.infolist():
        if not 0 <= member.compress_size <= size or member.compress_type not in PACKED:
            raise ValueError(f"{member.filename} is said to be larger than the file")
        with members.open(member) as stream:
            version = np.lib.format.read_magic(stream)
            if version == (1, 0):
                shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
            else:
                shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
        declared = math.prod(shape) * dtype.itemsize
        if declared > min(member.file_size, MOST_PACKED * member.compress_size):
            raise ValueError(f"{member.filename} is said to be larger than what is stored of it")
        total += max(declared, member.file_size)
    return total

"""Arrays and a JSON header in one file, in NumPy's zip format. Never pickle."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from hylift.errors import FormatError
from hylift.files import read_bytes, write_whole

Arrays = dict[str, NDArray[Any]]

T = TypeVar("T")

ZIP = b"PK"
"""First bytes of a zip file."""

MOST_PACKED = 1032
"""Highest compression ratio of zip files."""


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
        stored = {"header": np.frombuffer(json.dumps(marked).encode(), dtype=np.uint8), **arrays}
        save = np.savez_compressed if compress else np.savez
        write_whole(path, lambda stream: save(stream, allow_pickle=False, **stored))

    def read(self, path: str | Path, restore: Callable[[dict[str, Any], Arrays], T]) -> T:
        """The value that `restore` makes of the header and the arrays of a file.

        Raises a `FormatError` if the file is damaged or of another kind.
        """
        content = read_bytes(path)
        remedy = f": {self.remedy}" if self.remedy else ""
        try:
            if not content.startswith(ZIP):
                raise ValueError("not a zip file")
            with np.load(BytesIO(content), allow_pickle=False) as stored:
                _check_sizes(stored.zip, len(content))
                header = json.loads(stored["header"].tobytes())
                if header.get("format") != self.format:
                    raise FormatError(
                        path, f"is not {self.what} (its format is '{header['format']}')"
                    )
                if header["version"] != self.version:
                    raise FormatError(
                        path,
                        f"was saved by another version: format {header['version']}, not "
                        f"{self.version}{remedy}",
                    )
                arrays = {name: stored[name] for name in stored.files if name != "header"}
            return restore(header, arrays)
        except FormatError:
            raise
        except Exception as error:  # a damaged archive can fail in any of the layers that read it
            raise FormatError(
                path, f"is not {self.what}, or is damaged ({type(error).__name__}){remedy}"
            ) from None


def _check_sizes(members: ZipFile, size: int) -> None:
    """Raise if an array claims to be larger than its stored bytes allow, so that a small file
    never makes us reserve much memory."""
    for member in members.infolist():
        if not 0 <= member.compress_size <= size:
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

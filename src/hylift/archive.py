"""Arrays and a header of JSON in one file, in NumPy's zip format. Never pickle."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hylift.errors import FormatError
from hylift.files import read_bytes, write_whole

Arrays = dict[str, NDArray[Any]]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Archive:
    """A kind of file: what it holds, and in which version of its format."""

    what: str
    """With its article: 'a saved posterior'."""
    format: str
    version: int

    def write(
        self, path: str | Path, header: Mapping[str, Any], arrays: Arrays, *, compress: bool = True
    ) -> None:
        """Writes such a file; an existing one is replaced only when the new one is complete."""
        marked = {"format": self.format, "version": self.version, **header}
        stored = {"header": np.frombuffer(json.dumps(marked).encode(), dtype=np.uint8), **arrays}
        save = np.savez_compressed if compress else np.savez
        write_whole(path, lambda stream: save(stream, allow_pickle=False, **stored))

    def read(self, path: str | Path, restore: Callable[[dict[str, Any], Arrays], T]) -> T:
        """What `restore` makes of the header and the arrays of such a file.

        Whatever goes wrong in a file that is damaged or of another kind is a `FormatError`.
        """
        content = BytesIO(read_bytes(path))
        try:
            with np.load(content, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
            header = json.loads(arrays.pop("header").tobytes())
            if header.get("format") != self.format:
                raise FormatError(path, f"is not {self.what} (its format is '{header['format']}')")
            if header["version"] != self.version:
                raise FormatError(
                    path,
                    f"was saved by another version: format {header['version']}, not {self.version}",
                )
            return restore(header, arrays)
        except FormatError:
            raise
        except Exception as error:  # a damaged archive can fail in any of the layers that read it
            raise FormatError(
                path, f"is not {self.what}, or is damaged ({type(error).__name__})"
            ) from None

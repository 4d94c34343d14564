"""Runs of code that stands in a page or in an example."""

import contextlib
import io
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib


@dataclass(frozen=True, slots=True)
class Block:
    """Code that stands in a file."""

    code: str
    line: int
    """Of the file, the first is 1."""


@dataclass(frozen=True, slots=True)
class Run:
    """What blocks have printed and drawn."""

    printed: tuple[str, ...]
    """By each block."""
    drawn: tuple[tuple[str, ...], ...]
    """Names of the pictures that each block was the first to write."""
    pictures: dict[str, bytes]
    """PNG files in the end, by name."""


def run(blocks: Sequence[Block], path: Path) -> Run:
    """Runs the blocks of a file, one after the other, in an empty folder.

    Errors point to the line in the file.
    """
    namespace = {"__name__": "__main__", "__file__": str(path)}
    printed: list[str] = []
    drawn: list[tuple[str, ...]] = []
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        contextlib.chdir(folder),
        matplotlib.rc_context(),
    ):
        for block in blocks:
            # The empty lines give tracebacks the lines of the file.
            code = compile("\n" * (block.line - 1) + block.code, str(path), "exec")
            with contextlib.redirect_stdout(io.StringIO()) as stream:
                exec(code, namespace)
            printed.append(stream.getvalue())
            before = {name for names in drawn for name in names}
            drawn.append(tuple(sorted({one.name for one in Path().glob("*.png")} - before)))
        pictures = {one.name: one.read_bytes() for one in Path().glob("*.png")}
    return Run(tuple(printed), tuple(drawn), pictures)

"""Files that commands write: checked before any work; one that fails does not stop the others."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from hylift.cli.render import console, escape
from hylift.errors import HyliftError, UnsupportedError, did_you_mean
from hylift.files import FIGURES, OutputError, check_target, real_path
from hylift.posterior.export import json_text, write_json, write_table

if TYPE_CHECKING:
    import pyarrow as pa

TABLES = (".csv", ".parquet")
RESULTS = (".json", *TABLES)

Write = Callable[[Path], object]


@dataclass(frozen=True, slots=True)
class Output:
    """A file that an option may name, and what it is to hold."""

    path: str | Path | None
    """None where nothing is asked for; '-' is standard output, where that is allowed."""
    what: str
    """With its article: 'a race'."""
    endings: tuple[str, ...] = ()
    """In any case; none where they do not matter."""
    label: str = "Written to"
    can_print: bool = False

    @property
    def is_printed(self) -> bool:
        return self.can_print and self.path == "-"

    @property
    def file(self) -> Path | None:
        """The file to write, if there is one."""
        return None if self.path is None or self.is_printed else Path(self.path)

    @property
    def ending(self) -> str:
        return "" if self.file is None else self.file.suffix.lower()

    def check(self) -> None:
        """Raise if the file cannot be written, or has another ending."""
        if self.file is None:
            return
        check_target(self.file)
        known = [ending.lower() for ending in self.endings]
        if known and self.ending not in known:
            printed = ", or '-'" if self.can_print else ""
            raise UnsupportedError(
                f"{self.path}: {self.what} is written to a file in {', '.join(self.endings)}"
                f"{printed}.{did_you_mean(self.ending, known)}".removesuffix(".")
            )


def result(path: str | None, what: str, *endings: str) -> Output:
    """The file of `--output`: JSON, tables, and other formats of the command."""
    return Output(path, what, (*RESULTS, *endings), can_print=True)


def figure(path: Path | None, label: str = "Figure:") -> Output:
    return Output(path, "a figure", FIGURES, label)


def check_outputs(outputs: Sequence[Output], read: Iterable[Path]) -> None:
    """Raise if a file cannot be written, would hold two things, or replace an input."""
    for output in outputs:
        output.check()
    files = [output.file for output in outputs if output.file is not None]
    read = list(read)
    for number, file in enumerate(files):
        for path in read:
            if os.path.exists(file) and os.path.exists(path) and os.path.samefile(file, path):
                raise UnsupportedError(
                    f"{file}: is read by this command; name another file to write"
                )
        if real_path(file) in map(real_path, files[:number]):
            raise UnsupportedError(f"{file}: would be written twice; name two files")


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The answer of a command in its formats, each made on demand."""

    show: Callable[[Console], object]
    json: Callable[[], dict[str, Any]] | None = None
    table: Callable[[], pa.Table] | None = None
    formats: Mapping[str, Write] = field(default_factory=dict)
    """Other forms, by ending."""

    def write(self, path: Path) -> None:
        """Write the format that the ending of the path names."""
        ending = path.suffix.lower()
        if ending == ".json" and self.json is not None:
            write_json(self.json(), path)
        elif ending in TABLES and self.table is not None:
            write_table(self.table(), path)
        else:
            self.formats[ending](path)


def deliver(
    answer: CommandResult,
    output: Output,
    others: Sequence[tuple[Output, Write]] = (),
    *,
    quiet: bool,
) -> None:
    """Write an answer and other files, and show or print it.

    If a file cannot be written, the others are still written and the answer shown; the error is
    raised at the end.
    """
    errors, lines = [], []
    for one, write in [(output, answer.write), *others]:
        if one.file is None:
            continue
        try:
            write(one.file)
        except HyliftError as error:
            errors.append(error)
        else:
            lines.append(f"{one.label} {one.file}")
    if output.is_printed:
        assert answer.json is not None
        print_json(answer.json())
    elif not quiet:
        out = console()
        answer.show(out)
        for line in lines:
            out.print(escape(line), highlight=False, soft_wrap=True)
    sys.stdout.flush()  # before errors about files, which matter less
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise OutputError("\n".join(error.cli for error in errors)).in_lines()


def print_json(found: dict[str, Any]) -> None:
    """JSON is UTF-8, whatever the terminal is."""
    sys.stdout.flush()
    sys.stdout.buffer.write(json_text(found).encode())

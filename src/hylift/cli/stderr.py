"""Lines on the error stream: notes, warnings and errors, in terms of options."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hylift.errors import DoubtWarning
from hylift.words import cli_text, printable


class InterruptedAnswerError(Exception):
    """Ctrl-C has ended a command that had an answer to show."""


def tell(text: str) -> None:
    """Print a line on the error stream."""
    complain(f"hylift: {text}")


def complain(line: str) -> None:
    """Print a line on the error stream; ignore it if that is closed."""
    try:
        print(printable(line), file=sys.stderr, flush=True)
    except OSError:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def print_notes(notes: Sequence[str]) -> None:
    """Print the notes of a solution on the error stream."""
    for note in notes:
        tell(f"note: {printable(cli_text(note), one_line=True)}")


@contextmanager
def warnings_told(quiet: bool) -> Iterator[None]:
    """Print warnings as lines on the error stream; none when quiet."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of arithmetic; results are checked
        warnings.simplefilter("ignore" if quiet else "always", UserWarning)
        warnings.simplefilter("ignore", DoubtWarning)  # verdicts are shown with answers
        warnings.showwarning = lambda message, *_, **__: tell(f"warning: {_cli(message)}")
        yield


def _cli(warning: Warning | str) -> str:
    """The text of a warning, whose first argument may be worded for the command line."""
    return cli_text(warning.args[0] if isinstance(warning, Warning) else warning)

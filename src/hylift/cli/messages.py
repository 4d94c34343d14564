"""What the library says, as the command line says it: on the error stream, in terms of options."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

IN_OPTIONS = (
    (r"closed=(?:…|\['\w+'\]) \((--closed \w+)\)", r"\1"),
    (r"closed=… or --closed", "--closed"),
    (r"\(closed=…\)", "(--closed)"),
    (r"\b(unmatched|lift)='([\w-]+)'", r"--\1 \2"),
    (r"\bunmatched is '", "--unmatched is '"),
    (r"\bclosed names '", "--closed names '"),
    (r" \(Exact\(\w+=…\)\)", ""),
    (r"\bMeanField\(\)", "--method mean-field"),
    (
        r"\b(Exact|BVI|NPVI|BP|GaBP|EPBP|Gibbs|MaxWalkSAT)\(…?\)",
        lambda found: f"--method {found[1].lower()}",
    ),
    (r"\bevidence=\{'(\w+)': \[…\]\}", r"--evidence \1=FILE"),
    (r"name some of (the atoms|them)\b", "name some with --query"),
    (r"name atoms of one kind", "name atoms of one kind with --query"),
)
"""Ways in which Python is spoken of, and what to type instead."""


class InterruptedAnswerError(Exception):
    """Ctrl-C has ended a command that had an answer to show."""


def in_options(text: str) -> str:
    """A text of the library with options in place of arguments of functions."""
    for pattern, spoken in IN_OPTIONS:
        text = re.sub(pattern, spoken, text)
    return text


def tell(text: str) -> None:
    """Prints a line on the error stream."""
    print(f"hylift: {in_options(text)}", file=sys.stderr)


def print_notes(notes: Sequence[str]) -> None:
    """What a reader of the answer should know of how it came about, beside the answer."""
    for note in notes:
        tell(f"note: {note}")


@contextmanager
def warnings_told(quiet: bool) -> Iterator[None]:
    """Warnings are lines on the error stream; none when quiet."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of arithmetic; results are checked
        warnings.simplefilter("ignore" if quiet else "always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: tell(f"warning: {message}")
        yield

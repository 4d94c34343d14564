"""What the library says, as the command line says it: on the error stream, in terms of options."""

from __future__ import annotations

import ast
import os
import re
import shlex
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hylift.formats.table_file import listed_columns

METHODS = ("Exact", "MeanField", "BVI", "NPVI", "BP", "GaBP", "EPBP", "Gibbs", "MaxWalkSAT")
"""Methods as Python names them."""

SETTINGS = (
    *("closed", "unmatched", "components", "lift", "seconds", "checkpoint", "restarts"),
    *("max_steps", "optimiser", "learning_rate", "reals", "start", "damping", "schedule"),
    *("particles", "chains", "draws", "warm_up", "merge_factors", "flips"),
)
"""Arguments of functions and methods that options have the names of."""

ARGUMENT = rf"\b({'|'.join(SETTINGS)})=('[\w-]+'|…|True|-?\d[\d.,e+-]*\d|\d)"
CALL = re.compile(rf"\b({'|'.join(METHODS)})\((…?|{ARGUMENT}(?:, {ARGUMENT})*)\)")

SAID_OTHERWISE = (
    (r"closed=(?:…|\['\w+'\]) \((--closed \w+)\)", r"\1"),
    (r"closed=… or --closed", "--closed"),
    (r"\(closed=…\)", "(--closed)"),
    (r" \(Exact\(\w+=…\)\)", ""),  # limits that have no options
    (r"\bevidence=\{'(\w+)': \[…\]\}", r"--evidence \1=FILE"),
    (r"pass \{'Predicate': table\}", "pass --evidence PREDICATE=FILE"),
    (
        r"run infer\(…\) with 'marginals' among the tasks",
        "run `hylift infer` with --task marginals",
    ),
    (r"\bbethe_certificate\(graph\) lists\b", "`hylift check --bethe` lists"),
    (r"name other atoms, or use to_xarray\(…\)", "name other atoms with --query"),
    (r"name some of (the atoms|them)\b", "name some with --query"),
    (r"name atoms of one kind", "name atoms of one kind with --query"),
)
"""Sentences that take more than another spelling."""

WIDE = re.compile(
    r"^(?P<file>.+?)(?:, table '[^']*')?: (?:a table of|the constants of the type) "
    r"'(?P<name>\w+)' .*(?P<frame>df\[\[(?P<columns>.*?)\]\])"
)
"""Columns of a file to choose, as Python chooses those of a data frame."""

COLUMN = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|…""")
"""One of them, as Python writes a text; … stands for one that is not known."""

BARE = (
    rf"`({'|'.join(SETTINGS)})`",
    rf"^({'|'.join(SETTINGS)})(?= (?:is|names|needs) )",
    r"\b(warm_up|merge_factors|learning_rate)\b",
)
"""Settings without a value, where they cannot be other words."""


class InterruptedAnswerError(Exception):
    """Ctrl-C has ended a command that had an answer to show."""


def in_options(text: str) -> str:
    """A text of the library with options in place of arguments of functions.

    Lines of a model, which are indented, stay as they are.
    """
    return "\n".join(
        line if line.startswith("    ") else _in_options(line) for line in text.split("\n")
    )


def _in_options(line: str) -> str:
    for pattern, spoken in SAID_OTHERWISE:
        line = re.sub(pattern, spoken, line)
    line = WIDE.sub(_choice, line)
    line = CALL.sub(_call, line)
    line = re.sub(ARGUMENT, _argument, line)
    for pattern in BARE:
        line = re.sub(pattern, lambda found: _option(found[1]), line)
    return line


def _choice(found: re.Match[str]) -> str:
    """`in.csv: … (df[['paper', 'topic']])` as `in.csv: … (--evidence 'In=in.csv[paper,topic]')`."""
    written = COLUMN.findall(found["columns"])
    columns = listed_columns([word if word == "…" else ast.literal_eval(word) for word in written])
    chosen = shlex.quote(f"{found['name']}={found['file']}{columns}")
    return found[0].removesuffix(found["frame"]) + f"--evidence {chosen}"


def _call(found: re.Match[str]) -> str:
    """`BVI(reals='beta')` as `--method bvi --reals beta`."""
    name = "mean-field" if found[1] == "MeanField" else found[1].lower()
    arguments = [_argument(one) for one in re.finditer(ARGUMENT, found[2])]
    return " ".join([f"--method {name}", *arguments])


def _argument(found: re.Match[str]) -> str:
    """`reals='beta'` as `--reals beta`."""
    name, value = _option(found[1]), found[2].strip("'")
    return name if value in ("True", "…") else f"{name} {value}"


def _option(setting: str) -> str:
    return f"--{setting.replace('_', '-')}"


def tell(text: str) -> None:
    """Prints a line on the error stream."""
    complain(f"hylift: {in_options(text)}")


def complain(line: str) -> None:
    """Prints a line on the error stream, where that can be written; no answer is lost for it."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


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

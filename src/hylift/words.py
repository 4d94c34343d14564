"""Words for users: counts, lists, tables, and texts worded for Python and the command line."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

_UNSAFE = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
UNSAFE, UNSAFE_IN_LINE = re.compile(f"[{_UNSAFE}]"), re.compile(f"[{_UNSAFE}\t\n]")


class Wording(str):
    """A text in terms of Python, with another wording (`cli`) for the command line."""

    cli: str

    def __new__(cls, python: str, cli: str) -> Self:
        text = super().__new__(cls, python)
        text.cli = cli
        return text

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.python, self.cli)

    @property
    def python(self) -> str:
        return "".join(self)


class Doubt(Wording):
    """A note on an answer that says why it may be wrong."""


class Suspicion(Doubt):
    """A doubt that a run from flat starts dispels where it agrees."""


def cli_text(text: str) -> str:
    """The text in terms of the command line."""
    return text.cli if isinstance(text, Wording) else text


def worded(*parts: str) -> Wording:
    """The parts as one text, each in both wordings."""
    return Wording("".join(parts), "".join(map(cli_text, parts)))


def doubt(*parts: str) -> str:
    """The parts as one text that says why an answer may be wrong."""
    return Doubt("".join(parts), "".join(map(cli_text, parts)))


def suspicion(*parts: str) -> str:
    """The parts as one text that says what an answer may have missed."""
    return Suspicion("".join(parts), "".join(map(cli_text, parts)))


def shortened_notes(notes: Sequence[str], doubts: Sequence[str] = ()) -> str:
    """The number of notes and the most serious one; empty where there are none."""
    if not notes:
        return ""
    above = ": " if len(notes) == 1 else ", above all: "
    worst = printable((doubts or notes)[0], one_line=True)
    return f"; {counted(len(notes), 'note')}{above}{worst}"


def printable(text: str, *, one_line: bool = False) -> str:
    """The text with characters that a terminal would act upon, or that change the direction of
    writing, as escapes: names may come from anywhere. one_line: line ends and tabs, too."""
    if isinstance(text, Wording):
        wordings = (printable(one, one_line=one_line) for one in (text.python, text.cli))
        return type(text)(*wordings)
    unsafe = UNSAFE_IN_LINE if one_line else UNSAFE
    return unsafe.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def option(name: str, value: object = None) -> Wording:
    """A setting: `warm_up` and `--warm-up`, or `lift='exact'` and `--lift exact`."""
    spelled = f"--{name.replace('_', '-')}"
    if value is None:
        return Wording(name, spelled)
    return Wording(f"{name}={value!r}", spelled if value is True else f"{spelled} {value}")


def method_call(name: str, **settings: object) -> Wording:
    """A method: `BVI(reals='beta')` and `--method bvi --reals beta`."""
    options = [option(*setting) for setting in settings.items()]
    spelled = " ".join([f"--method {name.lower()}", *(one.cli for one in options)])
    return Wording(f"{name}({', '.join(options)})", spelled)


def counted(count: int, one: str, many: str | None = None) -> str:
    """`1 variable`, `2,500 variables`, `3 classes`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def duration(seconds: float) -> str:
    """`0.5 s`, `42 s`, `7 minutes`, `3.5 hours`, `12 days`."""
    for size, unit in ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.{0 if seconds >= 10 * size else 1}f} {unit}".replace(
                ".0 ", " "
            )
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


def num_classes(count: int) -> str:
    """`1 class`, `3 classes`."""
    return counted(count, "class", "classes")


def observed_and_measured(num_observed: int, num_measured: int) -> str:
    """`300 observed`, or `300 observed, 10 measured` where values with errors leave some hidden."""
    measured = f", {num_measured:,} measured" if num_measured else ""
    return f"{num_observed:,} observed{measured}"


def listed(names: Sequence[str], conjunction: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`; empty where there are no names."""
    *first, last = names or [""]
    return f"{', '.join(first)} {conjunction} {last}" if first else last


def either(names: Sequence[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    return listed(names, "or")


@dataclass(frozen=True, slots=True)
class TextTable:
    """Rows of words; `right` says which columns are numbers."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[int, ...]

    def __post_init__(self) -> None:
        header, *rows = (
            tuple(printable(word, one_line=True) for word in row)
            for row in (self.header, *self.rows)
        )
        object.__setattr__(self, "header", header)
        object.__setattr__(self, "rows", tuple(rows))

    def __str__(self) -> str:
        lines = [self.header, *self.rows]
        widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(
                f"{' ' * (width - _width(word))}{word}"
                if place in self.right
                else f"{word}{' ' * (width - _width(word))}"
                for place, (word, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )


def _width(word: str) -> int:
    """The columns that a word takes in a terminal."""
    if word.isascii():
        return len(word)
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in word)
    return len(word) + wide - sum(unicodedata.combining(letter) > 0 for letter in word)
